"""What the Prune page says in words and as tables."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from hgviz.analysis.importance import SliceScore, score_slices, slices_of
from hgviz.core import HeadId
from hgviz.gui.changes import (
    MEASURES,
    slice_columns,
)

RIGHT, LOSS = MEASURES["right"], MEASURES["loss"]
OFF = frozenset({HeadId(0, 0), HeadId(2, 1)})


@pytest.fixture
def two_off(traced, switch_off):
    """The page with scores and a curve, two heads off."""
    switch_off(traced.session.study.curves[0].off(2))
    return traced


def show_classes(page):
    """Put slices of a classifier into the table: the story of these tests has no classes."""
    parts = [part("", 0.05, "all", 400), part("no", 0.1, n=100), part("yes", -0.1, n=300)]
    page.slices.table.show_rows(slice_columns(parts, RIGHT, "text", "2 heads off"), parts)


def numbers(cells):
    return [float(one) for one in cells]


def test_every_pane_gives_its_values_as_a_table(two_off, switch_off):
    heads, session = two_off.prune.heads, two_off.session
    names, *rows = heads.as_table()
    assert names == ["head", "switched off", "Sensitivity", "low", "high"]
    assert [row[0] for row in rows] == [str(one) for one in session.spec.heads]
    assert {HeadId(*map(int, row[0].split("."))) for row in rows if row[1] == "1"} == session.off
    first = heads.bar.shades.heads[session.spec.heads[0]]
    assert numbers(rows[0][2:5]) == pytest.approx((first.value, first.low, first.high), rel=1e-5)

    trial = two_off.session.trial
    names, *rows = two_off.prune.live.as_table()
    assert names == ["seen", "loss, nats", "low", "high"]
    grown = rows[: len(trial.losses)]
    assert [numbers(row) for row in grown] == [
        [x.seen, x.value, x.low, x.high] for x in trial.losses
    ]
    beside = {row[0]: row[1:] for row in rows[len(trial.losses) :]}
    assert numbers(beside["difference"]) == list(trial.slices[0].loss_change)
    assert beside["newly wrong"] == [str(trial.slices[0].lost), "", ""]

    view = two_off.prune.curve
    one, band = view.line.curve, view.line.band
    names, *rows = view.as_table()
    assert len(rows) == len(one.removed) + len(band.removed)
    assert {len(row) for row in rows} == {len(names)}
    assert [int(row[1]) for row in rows[: len(one.removed)]] == one.removed.tolist()
    assert float(rows[1][3]) == pytest.approx(float(one.values[1]), rel=1e-5)
    assert rows[-1][0].startswith("20 random orders")

    page = two_off.prune
    switch_off(session.spec.heads[:6])
    page.changed.which.choose("all")
    two_off.settle()
    names, *rows = page.changed.as_table()
    assert len(rows) == len(page.changed.table.rows) and len(names) == len(rows[0]) == 6
    first = page.changed.table.rows[0]
    assert rows[0][2].split()[-1] == ("right" if first.was_right else "wrong")
    assert float(rows[0][5]) == first.loss[1]
    page.show_table("slices")
    two_off.settle()
    assert len(page.slices.as_table()) == len(page.slices.table.rows) + 1


def test_an_empty_pane_offers_the_next_step(pruning, story, until):
    page = pruning.prune
    page.show_table("slices")
    pruning.settle()
    page.show_table("changed")
    pruning.settle()
    for view in (page.live, page.curve, page.changed, page.slices):
        (first, _), *_ = view.empty_actions
        assert pruning.frame.actions_by_name[first].isEnabled()
    pruning.commands.use_data(str(story))
    until(lambda: pruning.session.trial is not None and pruning.session.trial.done)
    pruning.settle()
    assert page.curve.empty_actions == (("measure_heads", "Measure…"),)
    assert page.changed.empty_actions == (("switch_head", "Switch this head off"),)


# --- the table of classes and slices: live, sorted, copied, with the keyboard ---------------------


def part(name, change, by="label", n=200, more=0.1):
    """A slice whose change has an interval of 4 points."""
    ends = (change, change - 0.02, change + 0.02)
    now = (0.8 + change, 0.7, 0.95)
    losses = tuple((mean, mean - 0.1, mean + 0.1) for mean in (0.5, 0.5 + more))
    spread = (more, more - 0.05, more + 0.05)
    return SliceScore(by, name, n, 400, (0.8, 0.75, 0.85), now, 9, 5, ends, losses, spread)


PARTS = (part("", -0.03, "all", 600), part("no", -0.1), part("yes", 0.05), part("so", 0.0))


def test_a_change_is_better_worse_or_not_significant():
    words = [RIGHT.verdict(one) for one in PARTS]
    assert words == ["worse", "worse", "better", "not significant"]
    more = part("", 0, more=0.2)
    assert LOSS.verdict(more) == "worse"
    assert LOSS.ends(more)[0] == pytest.approx(0.2 / np.log(2))
    columns = {column.title: column for column in slice_columns(PARTS, RIGHT, "text", "1 head off")}
    assert columns["95 % interval"].words(PARTS[1]) == "−12.00 to −8.00"
    assert columns["Change, points"].words(PARTS[1]) == "−10.00"
    assert [RIGHT.signed(value) for value in (0.0, -1.2, 0.001)] == ["0", "−1.20", "+<0.01"]


def test_the_table_grows_with_the_score_and_adds_up(scored, until):
    page = scored.prune
    page.show_table("slices")
    seen = []
    scored.commands.pruning.switch(OFF)
    until(lambda: scored.session.trial.scores)

    def done():
        seen.extend(row.n for row in page.slices.table.rows[:1])
        return scored.session.trial.done

    until(done)
    scored.settle()
    trial, rows = scored.session.trial, page.slices.table.rows
    assert seen == sorted(seen) and rows[0].n == trial.total
    which = slices_of(trial.examples)
    assert tuple(rows) == score_slices(trial.examples, trial.before, trial.now, which)
    assert {row.by for row in rows} == {"all"}


def test_it_is_sorted_and_copied_with_the_keyboard(scored, switch_off):
    page = scored.prune
    page.show_table("slices")
    switch_off(OFF)
    show_classes(page)
    table = page.slices.table
    table.setFocus()
    for _ in range(3):
        QTest.keyClick(table, Qt.Key.Key_Right)
    assert [row.n for row in table.rows] == [400, 100, 300]
    QTest.keyClick(table, Qt.Key.Key_Space)
    assert [row.n for row in table.rows] == [400, 300, 100]  # all of them stay first
    page.slices.copy()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == len(table.rows) + 1
    assert {len(line.split("\t")) for line in lines} == {20}
    assert lines[1].split("\t")[2] == str(table.rows[0].n)
