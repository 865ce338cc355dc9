"""The command palette."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from hgviz.core import HeadId
from hgviz.gui.actions import ACTIONS
from hgviz.gui.palette import CommandPalette, entries, match


@pytest.fixture
def finder(opened):
    one = CommandPalette(opened.frame, opened.session)
    one.open()
    yield one
    one.finish()


def lines(finder):
    return [entry.words for entry, _ in finder.model.shown]


def test_a_word_s_start_matches_better_than_its_middle():
    assert match("head", "Next head")[0] < match("ead", "Next head")[0]
    assert match("nh", "Next head")[0] > match("ead", "Next head")[0]
    assert match("xyz", "Next head") is None
    assert match("", "Next head") == (0, ())


def test_the_letters_that_match_are_named():
    assert match("head", "Next head")[1] == (5, 6, 7, 8)
    assert match("ne he", "Next head")[1] == (0, 1, 5, 6)


def test_every_action_and_every_head_with_its_role_is_there(opened):
    found = entries(opened.session)
    assert {one.action for one in found if one.action} == {one.name for one in ACTIONS} - {"find"}
    roles = {one.head: one.note for one in found if one.head}
    assert set(roles) == set(opened.session.spec.heads)
    named = [head for head, fact in opened.session.facts.items() if fact.role]
    assert named and all(roles[head] == opened.session.facts[head].role for head in named)


def test_typing_narrows_and_return_goes_to_the_head(opened, finder):
    QTest.keyClicks(finder.field, "5.1")
    assert lines(finder)[0] == "Go to head 5.1"
    gone = []
    finder.head_chosen.connect(gone.append)
    QTest.keyClick(finder.field, Qt.Key.Key_Return)
    assert gone == [HeadId(5, 1)]
    assert not finder.isVisible()


def test_a_role_is_found_by_its_words(opened, finder):
    finder.field.setText("previous")
    assert any("Go to head" in words for words in lines(finder))


def test_the_arrows_move_and_go_round(finder):
    QTest.keyClick(finder.field, Qt.Key.Key_Down)
    assert finder.list.currentIndex().row() == 1
    QTest.keyClick(finder.field, Qt.Key.Key_Up)
    QTest.keyClick(finder.field, Qt.Key.Key_Up)
    assert finder.list.currentIndex().row() == finder.model.rowCount() - 1


def test_what_cannot_be_done_says_why_and_does_nothing(finder):
    said = []
    finder.chosen.connect(said.append)
    finder.field.setText("stop the model")
    assert "Nothing is running" in finder.model.index(0).data()
    QTest.keyClick(finder.field, Qt.Key.Key_Return)
    assert not said and finder.isVisible()


def test_escape_closes_and_letters_do_not_step_heads_while_it_is_open(opened, finder):
    before = opened.session.selection
    QTest.keyClicks(finder.field, "hljk")
    assert opened.session.selection == before
    QTest.keyClick(finder.field, Qt.Key.Key_Escape)
    assert not finder.isVisible()


def test_heads_that_come_while_it_is_open_can_be_found(program, capture):
    one = CommandPalette(program.frame, program.session)
    one.open()
    few = one.model.rowCount()
    program.session.put(capture=capture)
    assert one.model.rowCount() == few + len(capture.spec.heads)
    assert one.isAncestorOf(program.frame.focusWidget())


def test_keys_do_nothing_where_nothing_is_found(finder):
    asked = []
    finder.chosen.connect(asked.append)
    finder.field.setText("qqqqqqq")
    assert finder.model.rowCount() == 0
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Down):
        QTest.keyClick(finder.field, key)
    assert not asked and finder.isVisible()
