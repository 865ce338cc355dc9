"""Predictions that change with heads off, one by one and by class and slice."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from hgviz.analysis.importance import SliceScore, score_slices, slices_of
from hgviz.core import HeadId
from hgviz.gui.changes import MEASURES, slice_columns

RIGHT, LOSS = MEASURES["right"], MEASURES["loss"]


def part(name, change, by="label", n=200, more=0.1):
    """A slice whose change has an interval of 4 points."""
    ends = (change, change - 0.02, change + 0.02)
    losses = tuple((mean, mean - 0.1, mean + 0.1) for mean in (0.5, 0.5 + more))
    spread = (more, more - 0.05, more + 0.05)
    now = (0.8 + change, 0.7, 0.95)
    return SliceScore(by, name, n, 400, (0.8, 0.75, 0.85), now, 9, 5, ends, losses, spread)


PARTS = (part("", -0.05, "all", 600), part("no", -0.1, n=100), part("yes", 0.05, n=300),
         part("so", 0.0, n=0))  # fmt: skip


def numbers(cells):
    return [float(cell) for cell in cells]


def test_every_pane_gives_its_values_as_a_table(traced, switch_off):
    switch_off(traced.session.study.curves[0].off(2))
    page, session = traced.prune, traced.session
    names, *rows = page.heads.as_table()
    assert names == ["head", "switched off", "Sensitivity", "low", "high"]
    assert [row[0] for row in rows] == [str(head) for head in session.spec.heads]
    assert {HeadId(*map(int, row[0].split("."))) for row in rows if row[1] == "1"} == session.off
    first = page.heads.bar.shades.heads[session.spec.heads[0]]
    assert numbers(rows[0][2:5]) == pytest.approx((first.value, first.low, first.high), rel=1e-5)

    trial = session.trial
    names, *rows = page.live.as_table()
    grown = [[one.seen, one.value, one.low, one.high] for one in trial.losses]
    assert [*map(numbers, rows[: len(grown)])] == grown
    totals = {row[0]: row[1:] for row in rows[len(grown) :]}
    assert numbers(totals["difference"]) == list(trial.slices[0].loss_change)

    curve, band = page.curve.line.curve, page.curve.line.band
    names, *rows = page.curve.as_table()
    assert len(rows) == len(curve.removed) + len(band.removed)
    assert [int(row[1]) for row in rows[: len(curve.removed)]] == curve.removed.tolist()
    assert float(rows[1][3]) == pytest.approx(float(curve.values[1]), rel=1e-5)

    switch_off(session.spec.heads[:6])
    page.changed.which.choose("all")
    traced.settle()
    names, *rows = page.changed.as_table()
    shown = page.changed.table.rows
    assert len(rows) == len(shown) and names[2:4] == ["Full model", "6 heads off"]
    assert rows[0][2].split()[-1] == ("right" if shown[0].was_right else "wrong")
    assert numbers(rows[0][4:]) == [shown[0].more, shown[0].loss[1]]


def test_an_empty_page_offers_one_next_step(pruning, story, until):
    page = pruning.prune
    for name in ("slices", "changed"):
        page.show_table(name)
        pruning.settle()
    first, *_ = (name for name, _ in page.live.empty.actions)
    assert pruning.frame.actions_by_name[first].isEnabled()
    assert not any(view.empty.actions for view in (page.curve, page.changed, page.slices))
    pruning.commands.use_data(str(story))
    until(lambda: pruning.session.trial is not None and pruning.session.trial.done)
    pruning.settle()
    assert page.curve.empty.actions == (("measure_heads", "Measure…"),)
    assert page.changed.empty.actions == (("switch_head", "Switch this head off"),)


def test_a_change_is_better_worse_or_not_significant():
    words = [RIGHT.verdict(one) for one in PARTS]
    assert words == ["worse", "worse", "better", "not significant"]
    assert LOSS.verdict(PARTS[0]) == "worse"
    assert LOSS.ends(PARTS[0])[0] == pytest.approx(0.1 / np.log(2))
    titles, *rows = (
        [column.words(one) for column in slice_columns(PARTS, RIGHT, "text", "1 head off")]
        for one in PARTS
    )
    assert titles[3:] == ["80.0 %", "75.0 %", "−5.00", "−7.00 to −3.00", "worse"]
    assert rows[0][5:7] == ["−10.00", "−12.00 to −8.00"] and rows[2][3:7] == ["–"] * 4
    assert [RIGHT.signed(value) for value in (0.0, -1.2, 0.001)] == ["0", "−1.20", "+<0.01"]


def test_slices_grow_with_the_score_are_sorted_and_copied_with_the_keyboard(scored, until):
    page, seen = scored.prune, []
    page.show_table("slices")
    scored.commands.pruning.switch(frozenset({HeadId(0, 0), HeadId(2, 1)}))
    table = page.slices.table

    def is_done():
        seen.extend(row.n for row in table.rows[:1])
        return scored.session.trial.done

    until(lambda: scored.session.trial.scores)
    until(is_done)
    scored.settle()
    trial = scored.session.trial
    assert seen == sorted(seen) and table.rows[0].n == trial.total
    which = slices_of(trial.examples)
    assert tuple(table.rows) == score_slices(trial.examples, trial.before, trial.now, which)

    table.show_rows(slice_columns(PARTS, RIGHT, "text", "2 heads off"), PARTS)
    table.setFocus()
    for _ in range(3):
        QTest.keyClick(table, Qt.Key.Key_Right)
    assert [row.n for row in table.rows] == [600, 0, 100, 300]
    QTest.keyClick(table, Qt.Key.Key_Space)
    assert [row.n for row in table.rows] == [600, 300, 100, 0]  # all of them stay first
    page.slices.copy()
    lines = [line.split("\t") for line in QGuiApplication.clipboard().text().splitlines()]
    assert len(lines) == len(PARTS) + 1 and {*map(len, lines)} == {8}
    assert lines[1][2] == str(table.rows[0].n)
