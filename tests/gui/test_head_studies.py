"""A study of the heads of one model: opened alone, with its model, and beside another."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from hgviz import tasks
from hgviz.core import HeadId
from hgviz.figures import FIGURES
from hgviz.gui.export import drawn_of
from hgviz.store import open_study, write_study
from tests.gui.kinds import write_tiny
from tests.gui.screen import busy, error_dialogs

OFF = frozenset({HeadId(0, 0), HeadId(2, 1)})


@pytest.fixture(scope="session")
def measured(tiny, story, tmp_path_factory):
    """A study of the tiny hourglass on the story, with a curve."""
    trials = tasks.trials_of(tiny, story)
    study = tasks.importance(trials, {"gradient"}, "story.txt")
    study = tasks.curve(trials, study, "michel", random=2, most=4)
    return write_study(tmp_path_factory.mktemp("studies") / "heads.h5", study)


@pytest.fixture(scope="session")
def stranger(tmp_path_factory):
    """A folder with another model."""
    return write_tiny(tmp_path_factory.mktemp("others") / "stranger", hierarchy="1@1")


def said(view):
    """What a pane says in place of its picture."""
    return "\n".join(one.text() for one in view._notice.findChildren(QLabel))


def open_file(program, path, until):
    program.commands.open_path(str(path))
    QApplication.processEvents()
    until(lambda: not busy(program))
    program.settle()


def open_model(program, path, until):
    open_file(program, path, until)
    until(lambda: program.session.capture is not None and not busy(program))


def score(program, path, until):
    """Score the model on a text."""
    program.commands.pruning.use(str(path))
    until(lambda: program.session.trial is not None and program.session.trial.done)


# --- by itself ------------------------------------------------------------------------------------


def test_a_study_is_shown_without_its_model(program, measured, until):
    program.open_first([str(measured)])
    until(lambda: program.session.study is not None)
    program.settle()
    session, page = program.session, program.prune
    assert page.isVisible() and session.mode == "prune" and not error_dialogs(program)
    assert session.score == "michel"  # which has a curve
    assert len(page.heads.bar.shades.heads) == len(session.study.heads)
    assert page.curve.line.curve.order == open_study(measured).curves[0].order
    assert "heads.h5: tiny on story.txt" in said(page.live)
    assert str(measured) in program.commands.opened_before
    assert "Study heads.h5" in program.frame.made_words.full
    names = ("choose_data", "measure_heads", "trace_curve", "remove_heads")
    assert not any(program.frame.actions_by_name[one].isEnabled() for one in names)


# --- with its model -------------------------------------------------------------------------------


def test_a_study_stays_when_its_model_is_opened(program, measured, short_checkpoint, until):
    open_file(program, measured, until)
    assert program.prune.live._notice.findChildren(type(program.prune.live.change))
    open_model(program, short_checkpoint, until)
    program.settle()
    session = program.session
    assert session.checkpoint == str(short_checkpoint) and session.study is not None
    assert session.mode == "prune" and "Choose data" in said(program.prune.live)


def test_a_study_is_extended_on_its_own_data_and_replaced_on_other_data(
    program, measured, short_checkpoint, story, tmp_path, until
):
    open_model(program, short_checkpoint, until)
    open_file(program, measured, until)
    session, pruning = program.session, program.commands.pruning
    assert session.checkpoint == str(short_checkpoint) and session.mode == "prune"
    score(program, story, until)
    assert pruning.known is session.study
    program.commands.run("keep_mask")
    pruning.switch(OFF)
    until(lambda: session.trial.done and session.trial.off == OFF)
    program.commands.run("keep_mask")
    pruning.measure(frozenset({"gradient", "token_gradient"}))
    until(lambda: not pruning.measuring)
    assert np.allclose(
        session.study.arrays["gradient"], open_study(measured).arrays["gradient"], atol=1e-4
    )
    assert "token_gradient" in session.study.arrays and len(session.study.curves) == 3
    other = tmp_path / "other.txt"
    other.write_text("Another text, about nothing. " * 40, encoding="utf-8")
    score(program, other, until)
    assert session.study is not None and pruning.known is None
    whole, pair = session.masks
    assert whole.score is None and pair.score == session.trial.losses[-1]
    pruning.measure(frozenset({"gradient"}))
    until(lambda: not pruning.measuring)
    assert session.study.path == "" and not session.study.curves


def test_a_study_of_a_sample_is_extended_on_the_same_rows(
    program, tiny, short_checkpoint, story, tmp_path, until
):
    trials = tasks.trials_of(tiny, story, limit=3)
    study = tasks.importance(trials, {"gradient"}, "story.txt")
    open_model(program, short_checkpoint, until)
    open_file(program, write_study(tmp_path / "a.h5", study), until)
    score(program, story, until)
    assert program.commands.pruning.known is not None


def test_a_saved_study_opens_with_its_masks_and_numbers(
    program, short_checkpoint, story, tmp_path, until
):
    open_model(program, short_checkpoint, until)
    session, pruning = program.session, program.commands.pruning
    score(program, story, until)
    pruning.measure(frozenset({"gradient"}))
    until(lambda: session.study is not None and not pruning.measuring)
    pruning.switch(OFF)
    until(lambda: session.trial.done and session.trial.off == OFF)
    program.commands.run("keep_mask")
    before, masks = session.study, session.masks
    path = tmp_path / "saved.h5"
    program.commands._save_study(str(path))
    until(lambda: path.exists() and not busy(program))
    assert drawn_of(session, FIGURES["scores"])[0].path == str(path)  # the command of its figure
    session.put(unsaved=True)
    assert drawn_of(session, FIGURES["scores"])[0].path == ""  # of more than the file has
    pruning.drop("2 off")
    open_file(program, path, until)
    assert session.masks == masks and session.masks[0].name == "2 off"
    assert np.array_equal(session.study.arrays["gradient"], before.arrays["gradient"])
    assert session.study.data_digest == before.data_digest and pruning.known is not None


# --- beside another model -------------------------------------------------------------------------


def test_a_study_of_another_model_opens_after_a_question(program, measured, stranger, until):
    open_model(program, stranger, until)
    session = program.session
    before = session.capture
    open_file(program, measured, until)
    (dialog,) = error_dialogs(program)
    assert dialog.error.what.endswith("it measured tiny, and stranger is open")
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert session.capture is before and session.study is None and session.mode == "inspect"
    open_file(program, measured, until)
    (dialog,) = error_dialogs(program)
    dialog.default.click()
    program.settle()
    assert session.study is not None and session.spec.digest == session.study.spec.digest
    assert session.model is None and session.capture is None and session.checkpoint == ""
    assert "of this study, tiny, is not open" in said(program.prune.live)
