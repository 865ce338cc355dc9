"""A process that is killed takes nothing along: what it had open is offered at the next start."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz.core import HeadId, Selection
from hgviz.gui import sessions as recovery
from hgviz.gui.dialogs import Question
from hgviz.gui.sessions import last
from hgviz.session.document import read_document
from tests.gui.screen import busy, error_dialogs
from tests.studying import make_study

# a window with a study that nobody saved
MEASURED = """
import sys
from PySide6.QtCore import QTimer
from hgviz.gui import app
from hgviz.gui.program import Program
from tests.studying import make_study

first = Program.open_first
def opened(self, *given):
    first(self, *given)
    QTimer.singleShot(0, self.frame, lambda: work(self.session))
def work(session):
    study = make_study()
    session.put(capture=None, model=None, spec=study.spec, study=study, unsaved=True)
Program.open_first = opened
sys.exit(app.window(sys.argv[1:2]))
"""


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(recovery, "SOON", 20)


@pytest.fixture
def start(new_program):
    """Open a window as at the start of the program, with paths to open."""

    def open_window(*paths):
        program = new_program()
        program.open_first([str(path) for path in paths])
        QApplication.processEvents()
        return program

    return open_window


def offers(program):
    """The dialogs that offer what a killed process had open."""
    return [one for one in program.frame.findChildren(Question) if one.isVisible()]


def files():
    """The files that are kept of what is open, without locks."""
    return sorted(one.name for one in last().parent.glob("open*") if one.suffix != ".lock")


def kept_session():
    """The session that is kept of the first window."""
    return read_document(last().with_name("open.hgviz"))


def die(program):
    """End a window as a killed process does."""
    program.recovery.close(complete=False)
    program.close()


def test_scores_masks_and_curves_of_a_killed_process_come_back(
    start, short_checkpoint, until, tmp_path
):
    story = tmp_path / "story.txt"  # of three windows
    story.write_text("The bell rang, and the sand ran down. " * 14, encoding="utf-8")
    one = start(short_checkpoint)
    session, pruning = one.session, one.commands.pruning
    until(lambda: session.capture is not None and not busy(one))
    one.commands.use_data(str(story))
    until(lambda: session.trial is not None and session.trial.done)
    session.put(off=frozenset({HeadId(1, 0)}), mode="prune")
    until(lambda: session.trial.off == session.off and session.trial.done)
    pruning.keep()
    pruning.measure(frozenset({"gradient"}), curve=True)
    until(lambda: session.study is not None and session.study.curves and not pruning.measuring)
    until(lambda: one.recovery._kept == one.recovery._next())
    masks, study = session.masks, session.study
    die(one)
    program = start()
    (dialog,) = offers(program)
    before, session = files(), program.session
    words = " ".join(words for _, words in recovery.contents(kept_session()))
    assert "not saved yet" in words and "tiny" in words and "story.txt" in words
    assert session.capture is None  # nothing else opens behind the question
    QTest.keyClick(dialog.default, Qt.Key.Key_Return)
    until(lambda: session.trial is not None and session.trial.done and not busy(program))
    assert session.masks == masks and session.off == {HeadId(1, 0)} and session.mode == "prune"
    assert np.array_equal(session.study.arrays["gradient"], study.arrays["gradient"])
    assert len(session.study.curves) == len(study.curves)
    assert session.unsaved and session.study.path == ""
    assert program.commands.pruning.known is session.study  # measuring goes on with it
    until(lambda: len(files()) == 2 and files() != before)
    other = tmp_path / "other.txt"
    other.write_text("Nothing of the bell. " * 60, encoding="utf-8")
    program.commands.use_data(str(other))  # on other data the study goes, the masks stay
    until(lambda: session.study is None and session.trial is not None and session.trial.done)
    until(lambda: not busy(program))
    assert session.masks[0].score.value == session.trial.losses[-1].value


@pytest.mark.parametrize("way", [signal.SIGTERM, signal.SIGKILL])
def test_an_unsaved_study_is_recovered_after_a_signal(way, start, capture_file, until):
    """SIGTERM ends the window in order, and nobody can be asked about what would be lost."""
    one = subprocess.Popen(
        [sys.executable, "-c", MEASURED, str(capture_file)],
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
    )
    try:
        until(lambda: "open.hgviz" in files() and kept_session().unsaved)
        one.send_signal(way)
        assert one.wait(60) == (128 + way if way == signal.SIGTERM else -way)
    finally:
        one.kill()
        one.wait()
    again = start()
    QTest.keyClick(offers(again)[0].default, Qt.Key.Key_Return)
    until(lambda: again.session.study is not None and not busy(again))
    assert again.session.unsaved and again.session.study.measured()["gradient"] == 1


def test_a_second_window_does_no_harm_to_the_first(start, capture_file, until):
    first = start(capture_file)
    until(lambda: files())
    second = start(capture_file)
    assert not offers(second)  # what a living window has open was not left
    second.session.put(selection=Selection(1, 0, 15, 4))
    until(lambda: not busy(first) and not busy(second) and not second.recovery._timer.isActive())
    assert kept_session().selection.query != 15
    second.close()
    assert files()
    first.close()
    assert not files()


def test_an_unanswered_recovery_is_offered_again_until_it_is_discarded(start, capture_file, until):
    one = start(capture_file)
    until(lambda: one.session.capture is not None and not busy(one))
    one.session.put(selection=Selection(1, 0, 5, None))
    until(lambda: files() and not busy(one))
    die(one)
    one = start(capture_file)
    QTest.keyClick(offers(one)[0], Qt.Key.Key_Escape)
    until(lambda: one.session.capture is not None and not busy(one))
    one.session.put(selection=Selection(1, 0, 3, None))
    until(lambda: not one.recovery._timer.isActive())
    one.close()
    again = start()
    offers(again)[0].buttons[1].click()
    until(lambda: again.session.capture is not None and not busy(again))
    assert again.session.selection.query == 5
    die(again)
    third = start()
    offers(third)[0].buttons[0].click()
    assert not files()
    until(lambda: third.session.capture is not None)  # the usual start


def test_a_damaged_recovery_file_is_reported_once_and_kept(start, capture_file):
    file, content = last().with_name("open.hgviz"), b'{"format": "hgviz session"}'
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    one = start(capture_file)
    (said,) = error_dialogs(one)
    assert len(said.error.lines) == 2 and "damaged-" in said.error.do
    (away,) = file.parent.glob("damaged-*.hgviz")
    assert away.read_bytes() == content and not file.exists()
    one.close()
    assert not error_dialogs(start())


def test_a_full_disk_is_reported_once(start, capture_file, until, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recovery, "write_document", full)
    one, said = start(capture_file), []
    one.commands.say = said.append
    until(lambda: any("No space left" in words for words in said))
    one.session.put(look="links")
    until(lambda: not busy(one) and not one.recovery._timer.isActive())
    assert sum("No space left" in words for words in said) == 1 and files() == []


def test_an_interrupted_write_leaves_the_session_before(start, capture_file, until, monkeypatch):
    """Killed between the study and the session: the session names the study that it had."""
    one = start(capture_file)
    until(lambda: one.session.capture is not None and not busy(one))
    study = make_study()
    one.session.put(capture=None, model=None, spec=study.spec, study=study, unsaved=True)
    until(lambda: one.recovery._kept is not None and one.recovery._kept.study is study)
    before = files()

    def killed(*_):
        raise OSError("cut off")

    monkeypatch.setattr(recovery, "write_document", killed)
    one.session.put(study=make_study(1), unsaved=True)
    until(lambda: len(files()) == len(before) + 1)
    assert set(before) < set(files())
    assert Path(kept_session().unsaved).name in before
