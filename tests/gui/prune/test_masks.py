"""Masks one above the other: what each scored, what it saves, and what it is called."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit

from hgviz.core import HeadId
from hgviz.gui.prune.live import points
from hgviz.gui.prune.masks import LINES, mask_lines
from hgviz.study import Mask
from tests.gui.viewing import picture

OFF = frozenset({HeadId(0, 0), HeadId(2, 1)})
MORE = OFF | {HeadId(1, 0)}


@pytest.fixture
def masks(scored, until):
    """The list, with the whole model and two masks."""
    scored.commands.run("keep_mask")
    for off in (OFF, MORE):
        scored.commands.pruning.switch(off)
        until(lambda off=off: scored.session.trial.done and scored.session.trial.off == off)
        scored.commands.run("keep_mask")
    scored.settle()
    return scored.prune.heads.masks


def lines(masks, row):
    return masks.list.topLevelItem(row).data(0, LINES)


def test_they_stand_one_above_the_other_with_their_numbers(masks, scored):
    paired = scored.session.trial.paired
    (name, score), (off, change) = lines(masks, 2)
    assert name == "3 off" and off.startswith("3 off, saves ") and "parameters (" in off
    low, high = 100 * paired.score.low, 100 * paired.score.high
    assert score == f"{100 * paired.score.value:.1f} % ({low:.1f} to {high:.1f})"
    assert change == (
        f"{points(paired.difference)} points, {points(paired.low)} to {points(paired.high)}"
    )
    assert lines(masks, 0)[1] == ("no head is off", "")


def test_a_mask_is_given_another_name_by_the_keyboard(masks, scored):
    masks.list.setFocus()
    masks.list.setCurrentItem(masks.list.topLevelItem(1))
    QTest.keyClick(masks.list, Qt.Key.Key_F2)
    editor = masks.list.findChild(QLineEdit)
    editor.selectAll()
    QTest.keyClicks(editor, "a pair")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    QApplication.processEvents()
    assert [one.name for one in scored.session.masks] == ["Whole model", "a pair", "3 off"]
    assert lines(masks, 1)[0][0] == "a pair"
    for refused in ("", "  ", "3 off"):
        scored.commands.pruning.rename("a pair", refused)
    assert scored.session.masks[1].name == "a pair"


def test_enter_returns_to_a_mask_and_delete_forgets_it(masks, scored):
    masks.list.setFocus()
    masks.list.setCurrentItem(masks.list.topLevelItem(1))
    QTest.keyClick(masks.list, Qt.Key.Key_Return)
    assert scored.session.off == OFF and masks.list.hasFocus()
    QTest.keyClick(masks.list, Qt.Key.Key_Delete)
    assert [one.name for one in scored.session.masks] == ["Whole model", "3 off"]


def test_a_mask_that_was_never_scored_says_so(tiny):
    bare = Mask("mine", OFF)
    assert mask_lines(bare, tiny.spec, None, False)[0] == ("mine", "not scored")
    assert mask_lines(bare, tiny.spec, None, True)[0] == ("mine", "measuring")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [(1600, 1000), (1100, 700)])
def test_they_are_drawn_at_every_size(masks, scored, size, dark):
    scored.session.put(dark=dark)
    scored.frame.resize(*size)
    QApplication.processEvents()
    scored.settle()
    rows = masks.list.viewport()
    seen = picture(rows).astype(int)
    ground = seen[2, 2]
    # something is written at both ends of the first row
    first = seen[:46]
    for part in (first[:, 16:60], first[:, -60:-16]):
        assert (abs(part - ground).sum(axis=2) > 200).any()
