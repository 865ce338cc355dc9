"""Masks one above the other: what each scored, and what it saves."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from hgviz.core import HeadId
from hgviz.gui.livescore import points
from hgviz.gui.prune import mask_cells
from hgviz.study import Mask

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


def cells(masks, row):
    return tuple(masks.list.item(row, column).text() for column in range(3))


def test_they_stand_one_above_the_other_with_their_numbers(masks, scored):
    paired = scored.session.trial.paired
    name, score, change = cells(masks, 2)
    low, high = 100 * paired.score.low, 100 * paired.score.high
    assert (name, score) == ("3 off", f"{100 * paired.score.value:.1f} % ({low:.1f} to {high:.1f})")
    assert change == (
        f"{points(paired.difference)} points, {points(paired.low)} to {points(paired.high)}"
    )
    assert cells(masks, 0)[0] == "Whole model" and cells(masks, 0)[2] == ""
    tip = masks.list.item(2, 1).toolTip()
    assert "3 off: 0.0, 1.0, 2.1; saves " in tip and "parameters (" in tip


def test_enter_returns_to_a_mask_and_delete_forgets_it(masks, scored):
    masks.list.setFocus()
    masks.list.setCurrentCell(1, 0)
    QTest.keyClick(masks.list, Qt.Key.Key_Return)
    assert scored.session.off == OFF and masks.list.hasFocus()
    QTest.keyClick(masks.list, Qt.Key.Key_Delete)
    assert [one.name for one in scored.session.masks] == ["Whole model", "3 off"]


def test_a_mask_that_was_never_scored_says_so():
    bare = Mask("mine", OFF)
    assert mask_cells(bare, False) == ("mine", "not scored", "")
    assert mask_cells(bare, True) == ("mine", "measuring", "")
