"""Every kind of cell of a study, opened in the window."""

import pytest
from PySide6.QtWidgets import QApplication

from hgviz import tasks
from tests.gui.conftest import app, new_program, program, until  # noqa: F401 - fixtures
from tests.soak.sweeps import TINY

pytestmark = pytest.mark.soak


def test_every_kind_of_cell_is_opened(program, tmp_path, until):  # noqa: F811
    path, session, commands = tmp_path / "tiny.toml", program.session, program.commands
    path.write_text(TINY)
    tasks.run_sweep(path, tmp_path / "tiny")
    commands.open_path(str(path))
    until(lambda: session.sweep is not None and session.sweep.complete)
    opened = {
        "train": lambda: session.capture is not None and session.capture.complete,
        "curve": lambda: session.study is not None and session.mode == "prune",
        "score": lambda: session.capture is not None and session.mode == "inspect",
        "compare": lambda: session.capture_b is not None and session.mode == "compare",
    }
    for work, there in opened.items():
        session.put(mode="sweep")
        commands.choose_cell(session.sweep.of(work)[0].cell.key)
        QApplication.processEvents()
        commands.run("open_cell")
        until(there)
        assert program.frame.toolbar.models.name.full.startswith("tiny")
    methods = {one.method for one in session.study.curves} if session.study else set()
    assert methods <= {"michel", "random"}
