"""Runs of a study from the window: a process of its own that ends, fails or is stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from hgviz.core import HgvizError, finish
from hgviz.gui.sweeps import running
from hgviz.gui.sweeps.asking import RunDialog
from hgviz.gui.sweeps.running import RUN, apart, command
from tests.gui.sweeps.conftest import show

ENDLESS = """
import pathlib, sys, time
from hgviz.terminal import stopped_by_signals
at = pathlib.Path(sys.argv[-1])
with stopped_by_signals():
    try:
        (at / "begun").touch()
        time.sleep(600)
    except KeyboardInterrupt:
        (at / "stopped").touch()
"""


@pytest.fixture
def program_says(monkeypatch):
    """Have a script take the place of hgviz."""

    def put(script):
        monkeypatch.setattr(running, "program", lambda: [sys.executable, "-c", script])

    return put


def nothing():
    return 0.0, 1.0


def test_a_run_is_what_anybody_could_type():
    assert command("a.toml", "out") == ["study", "run", "a.toml", "-o", "out"]
    assert command("a.toml", "out", "local:2", True)[5:] == ["--scheduler", "local:2", "--again"]


def test_a_run_that_ends_well_says_nothing(program_says):
    program_says("print('done')")
    finish(apart([], nothing))


def test_cells_that_failed_are_no_error_of_the_run(program_says):
    program_says("import sys; print('Given up: score.', file=sys.stderr); sys.exit(1)")
    finish(apart([], nothing))


def test_what_stopped_a_run_is_its_reason(program_says):
    program_says("import sys; print('no room on the disk', file=sys.stderr); sys.exit(1)")
    with pytest.raises(HgvizError) as caught:
        finish(apart([], nothing))
    assert "o room on the disk" in caught.value.lines[1] and "kept" in caught.value.lines[2]


@pytest.mark.skipif(sys.platform == "win32", reason="it is interrupted in another way there")
@pytest.mark.parametrize("inherited", [signal.SIG_DFL, signal.SIG_IGN])
def test_stop_is_as_ctrl_c_and_the_window_goes_on(
    program, folder, program_says, until, monkeypatch, inherited
):
    """Also where hgviz was started in the background of a script, which ignores Ctrl+C."""
    begin = partial(signal.signal, signal.SIGINT, inherited)
    monkeypatch.setattr(subprocess, "Popen", partial(subprocess.Popen, preexec_fn=begin))
    show(program, folder)
    program_says(ENDLESS)
    program.commands.start_sweep(str(folder.path), "", False)
    begun, stopped = (Path(folder.path) / name for name in ("begun", "stopped"))
    assert program.commands.running.going
    # the script takes the last word of the command for its folder
    until(begun.exists)
    until(lambda: program.sweep.summary.stop.isVisible())
    program.commands.run("stop_sweep")
    assert not program.commands.running.going
    until(stopped.exists)
    until(lambda: [one.state for one in program.session.work if one.key == RUN] == ["stopped"])
    assert program.sweep.summary.run.isVisible()


def test_the_dialog_says_the_command_and_asks_for_a_scheduler_that_can_be_had(studied):
    studied.commands.run("retry_sweep")
    dialog = studied.frame.findChild(RunDialog)
    asked = []
    dialog.chosen.connect(lambda *given: asked.append(given))
    dialog.chosen.disconnect(studied.commands.start_sweep)
    assert dialog.command.full.endswith("--again") and dialog.again.isChecked()
    dialog.how._group.button(2).click()
    assert not dialog.go.isEnabled()
    dialog.address.setText("elsewhere")
    dialog.go.click()
    assert "no scheduler" in dialog.wrong.text() and not asked
    dialog.how._group.button(0).click()
    dialog.go.click()
    assert asked == [(studied.session.sweep.path, "", True)]
