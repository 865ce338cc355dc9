"""One order of undo for heads and masks, by the keys people press."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz.core import HeadId
from hgviz.session import undoing

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
ONE, TWO = frozenset({HeadId(0, 0)}), frozenset({HeadId(0, 0), HeadId(1, 1)})


def press(program, key, modifier=CTRL):
    program.frame.activateWindow()
    QTest.keyClick(QApplication.focusWidget() or program.frame, key, modifier)


def names(program):
    return [one.name for one in program.session.masks]


def test_masks_and_heads_are_taken_back_in_the_order_they_were_done(opened):
    pruning, session = opened.commands.pruning, opened.session
    pruning.switch(ONE)
    pruning.keep()
    pruning.switch(TWO)
    pruning.drop("1 off")
    seen = []
    for _ in range(4):
        press(opened, Qt.Key.Key_Z)
        seen.append((names(opened), len(session.off)))
    assert seen == [(["1 off"], 2), (["1 off"], 1), ([], 1), ([], 0)]
    assert not opened.frame.actions_by_name["undo"].isEnabled()
    for _ in range(4):
        press(opened, Qt.Key.Key_Z, CTRL | SHIFT)
    assert names(opened) == [] and session.off == TWO
    assert not opened.frame.actions_by_name["redo"].isEnabled()


def test_it_is_said_what_was_taken_back(opened):
    opened.commands.pruning.switch(ONE)
    opened.commands.pruning.keep()
    press(opened, Qt.Key.Key_Z)
    assert opened.frame.chosen_words.full == "Undone: keeping the mask 1 off"
    press(opened, Qt.Key.Key_Z)
    assert opened.frame.chosen_words.full == "Undone: switching head 0.0 off"
    press(opened, Qt.Key.Key_Z, CTRL | SHIFT)
    assert opened.frame.chosen_words.full == "Done again: switching head 0.0 off"


def test_something_new_ends_what_could_be_done_again(opened):
    opened.commands.pruning.switch(ONE)
    press(opened, Qt.Key.Key_Z)
    opened.commands.pruning.keep()
    assert not opened.session.history.future


def test_a_mask_that_comes_back_has_the_score_that_is_known_by_now(opened):
    from hgviz.core import Score
    from hgviz.study import Mask

    session, pruning = opened.session, opened.commands.pruning
    session.put(masks=(Mask("a", ONE), Mask("b", TWO)))
    pruning.drop("b")
    score = Score("accuracy", 0.5, 0.4, 0.6, 10, 10)
    session.put(masks=(Mask("a", ONE, score),))
    press(opened, Qt.Key.Key_Z)
    assert session.masks == (Mask("a", ONE, score), Mask("b", TWO))
    press(opened, Qt.Key.Key_Z, CTRL | SHIFT)
    session.put(history=undoing.unscored(session.history), masks=undoing.bare(session.masks))
    press(opened, Qt.Key.Key_Z)
    assert session.masks == (Mask("a", ONE), Mask("b", TWO))


def test_masks_stay_without_their_scores_where_other_data_is_chosen(scored, until, tmp_path):
    session, pruning = scored.session, scored.commands.pruning
    until(lambda: session.trial is not None and session.trial.done)
    pruning.switch(ONE)
    until(lambda: session.trial.done and session.trial.off == ONE)
    pruning.keep()
    assert session.masks[0].score is not None
    first = session.masks[0].score
    other = tmp_path / "other.txt"
    other.write_text("Another text that is read here. " * 12, encoding="utf-8")
    before = pruning.trials
    pruning.use(str(other))
    until(lambda: pruning.trials is not None and pruning.trials is not before)
    assert names(scored) == ["1 off"] and session.history.past
    until(lambda: session.trial is not None and session.trial.done)
    assert session.masks[0].score.total == session.trial.total != first.total
