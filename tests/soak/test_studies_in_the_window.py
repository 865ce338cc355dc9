"""A study run from the window: stopped, gone on with, and every kind of cell opened."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from tests.gui.conftest import app, program, until  # noqa: F401 - fixtures
from tests.soak.sweeps import TINY

pytestmark = pytest.mark.soak


def test_a_study_is_run_stopped_gone_on_with_and_opened(program, tmp_path, until):  # noqa: F811
    path, session, commands = tmp_path / "tiny.toml", program.session, program.commands
    path.write_text(TINY)
    commands.open_path(str(path))
    until(lambda: session.sweep is not None)
    out = session.sweep.path
    commands.start_sweep(out, "", False)
    until(lambda: session.sweep.counts["done"] >= 2, 300)
    commands.run("stop_sweep")
    until(lambda: not session.sweep.counts["running"])
    done = session.sweep.counts["done"]
    assert not session.sweep.complete and not commands.running.going
    commands.start_sweep(out, "", False)
    until(lambda: session.sweep.complete, 600)
    assert session.sweep.counts["done"] > done
    until(lambda: not commands.running.going)
    opened = {
        "train": lambda: session.capture is not None and session.capture.complete,
        "curve": lambda: session.study is not None and session.mode == "prune",
        "score": lambda: session.trial is not None and session.trial.done,
        "compare": lambda: session.beside is not None and session.mode == "compare",
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
