"""What the Prune page says in words and as tables."""

import numpy as np
import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QGuiApplication, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip

from hgviz.analysis.importance import METHODS, SliceScore, score_slices, slices_of
from hgviz.core import HeadId
from hgviz.gui import trials
from hgviz.gui.changes import (
    Changes,
    change_columns,
    change_of,
    change_words,
    interval_words,
    part_verdict,
    signed,
    slice_columns,
    slice_words,
)
from hgviz.gui.dialogs import CHOICES, MeasureDialog
from hgviz.gui.sentences import NUMBER_WORDS, SCORES, method_explained, term_explained

OFF = frozenset({HeadId(0, 0), HeadId(2, 1)})


@pytest.fixture
def two_off(traced, switch_off):
    """The page with scores and a curve, two heads off."""
    switch_off(traced.session.study.curves[0].off(2))
    return traced


def show_classes(page):
    """Put slices of a classifier into the table: the story of these tests has no classes."""
    parts = [part("", 0.05, "all", 400), part("no", 0.1, n=100), part("yes", -0.1, n=300)]
    page.slices.table.show_rows(slice_columns(parts, "right", "text", "2 heads off"), parts)


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
    assert names == ["seen", "share right", "low", "high"]
    grown = rows[: len(trial.scores)]
    assert [numbers(row) for row in grown] == [
        [x.seen, x.value, x.low, x.high] for x in trial.scores
    ]
    beside = {row[0]: row[1:] for row in rows[len(trial.scores) :]}
    assert numbers(beside["difference"]) == list(trial.slices[0].change)
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
    assert len(rows) == len(page.changed.table.rows) and len(names) == len(rows[0]) == 8
    assert {row[3] for row in rows} <= {"0", "1"} and float(rows[0][6]) >= 0
    page.show_table("slices")
    two_off.settle()
    assert len(page.slices.as_table()) == len(page.slices.table.rows) + 1


def test_an_empty_pane_has_no_table(pruning):
    page = pruning.prune
    tables = [one.as_table() for one in (page.live, page.curve, page.changed, page.slices)]
    assert tables == [None] * 4


def test_the_status_bar_says_what_is_under_the_keyboard(two_off, until):
    view, session = two_off.prune.curve, two_off.session
    chart = view.chart
    two_off.frame.activateWindow()
    chart.setFocus()
    QTest.keyClick(chart, Qt.Key.Key_Right)
    value = 100 * session.study.curves[0].values[3]
    assert two_off.frame.chosen_words.full == view.words
    assert view.words.startswith(f"3 of {len(session.spec.heads)} heads off · 3 heads off: ")
    assert f"{value:.1f} %" in view.words
    with_keyboard = chart.grab().toImage()
    chart.clearFocus()
    assert chart.grab().toImage() != with_keyboard  # there, too, it has a ring

    page = two_off.prune
    page.show_table("slices")
    until(lambda: session.trial.done and len(session.trial.off) == 3)
    two_off.settle()
    show_classes(page)
    page.slices.table.setFocus()
    QTest.keyClick(page.slices.table, Qt.Key.Key_Down)
    row = page.slices.table.rows[1]
    assert two_off.frame.chosen_words.full == slice_words(row).replace("\n", " · ")
    assert slice_words(row).startswith(f"Label  {row.name}: {row.n:,} of {row.total:,}\n")
    assert f"{row.lost:,} newly wrong, {row.won:,} newly right" in slice_words(row)

    two_off.commands.run("keep_mask")
    two_off.commands.run("all_on")
    two_off.commands.run("keep_mask")
    masks = two_off.prune.heads.masks.list
    masks.setFocus()
    masks.selectRow(1)
    QTest.keyClick(masks, Qt.Key.Key_Up)
    mask = two_off.session.masks[0]
    heads = ", ".join(map(str, sorted(mask.off)))
    assert mask.off and two_off.frame.chosen_words.full.startswith(f"{mask.name}: {heads} · ")


def test_every_score_and_number_is_explained():
    assert set(SCORES) == set(METHODS)
    for name, one in METHODS.items():
        lines = method_explained(name).splitlines()
        assert len(lines) == 3 and lines[2] == f"Source: {one.source}"
    assert all(len(term_explained(one).splitlines()) == 3 for one in NUMBER_WORDS)


def test_every_number_and_cell_is_explained_under_the_pointer(two_off, monkeypatch):
    page = two_off.prune
    assert "Σ |G| / n" in page.heads.colour.toolTip() and "Σ |G| / n" in page.heads.bar.toolTip()
    every = [
        page.heads.colour.itemData(n, Qt.ItemDataRole.ToolTipRole)
        for n in range(page.heads.colour.count())
    ]
    assert all("Source: " in one for one in every)
    said = [one.toolTip() for one in (*page.live.names.values(), page.live.value, page.live.early)]
    assert all("Source: " in one for one in said)
    assert "k*" in page.curve.head.title.toolTip()
    of_changes = change_columns(Changes((), {}, ("",) * 6))
    of_slices = slice_columns(PARTS, "right", "text", "2 heads off")
    assert all("Source: " in column.about for column in (*of_changes[4:], *of_slices[3:]))
    two_off.commands.run("measure_heads")
    dialog = two_off.frame.findChild(MeasureDialog)
    for box, (arrays, *_) in zip(dialog.boxes, CHOICES, strict=True):
        made = [one.label for one in METHODS.values() if one.needs in arrays]
        assert made and all(one in box.toolTip() for one in made)
    dialog.reject()
    wall = two_off.prune.heads.grid
    head = two_off.session.spec.heads[3]
    at = wall.where(head).center()
    shown = []
    monkeypatch.setattr(QToolTip, "showText", lambda at, words, widget: shown.append(words))
    QApplication.sendEvent(
        wall.viewport(), QHelpEvent(QEvent.Type.ToolTip, at, wall.mapToGlobal(at))
    )
    assert shown == [wall.words(head)]
    two_off.session.select(layer=head.layer, head=head.head)
    assert wall.words(head).replace("\n", " · ") in two_off.frame.chosen_words.full


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


def test_a_stopped_score_is_resumed_from_the_list_of_changes(scored, until):
    session, page = scored.session, scored.prune
    action = scored.frame.actions_by_name["resume_score"]
    assert not action.isEnabled() and action.toolTip() == "No evaluation was stopped"
    scored.commands.pruning.switch(OFF)
    scored.commands.pruning.stop_trial()
    scored.settle()
    assert session.trial.stopped and action.isEnabled()
    assert page.changed.empty_actions == (("resume_score", "Resume"),)
    scored.commands.run("resume_score")
    until(lambda: session.trial.done and session.trial.off == OFF)


# --- the table of classes and slices: live, sorted, copied, with the keyboard ---------------------


def part(name, change, by="label", n=200, more=0.1):
    """A slice whose change has an interval of 4 points."""
    ends = (change, change - 0.02, change + 0.02)
    now = (0.8 + change, 0.7, 0.95)
    spread = (more, more - 0.05, more + 0.05)
    return SliceScore(
        by, name, n, 400, (0.8, 0.75, 0.85), now, 9, 5, ends, (0.5, 0.5 + more), spread
    )


PARTS = (part("", -0.03, "all", 600), part("no", -0.1), part("yes", 0.05), part("so", 0.0))


def test_a_change_is_better_worse_or_not_significant():
    words = [part_verdict(one, "right") for one in PARTS]
    assert words == ["worse", "worse", "better", "not significant"]
    more = part("", 0, more=0.2)
    assert part_verdict(more, "loss") == "worse"
    assert change_of(more, "loss")[0] == pytest.approx(0.2 / np.log(2))
    assert interval_words(PARTS[1], "right") == "−12.00 to −8.00"
    assert change_words(PARTS[1], "right") == "−10.00"
    assert [signed(value, "right") for value in (0.0, -1.2, 0.001)] == ["0", "−1.20", "+<0.01"]


def test_slices_are_sorted_by_what_is_worse(qapp):
    columns = slice_columns(PARTS, "right", "text", "2 heads off")
    by = {column.title: column for column in columns}
    order = sorted(PARTS, key=by["Change, points"].value)
    assert [one.name for one in order] == ["no", "", "so", "yes"]
    assert [by["Full model"].words(one) for one in order] == ["80.0 %"] * 4


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


def test_the_tabs_change_the_table(scored):
    page = scored.prune
    scored.frame.activateWindow()
    tabs = page.tabs[0]
    button = tabs.focusProxy()
    QTest.mouseClick(button.parent().findChildren(type(button))[1], Qt.MouseButton.LeftButton)
    assert page.slices.isVisible() and not page.changed.isVisible()
    assert {one.choice for one in page.tabs} == {"slices"}


def test_a_score_on_a_sample_of_the_data_says_so(pruning, until, story, monkeypatch):
    monkeypatch.setattr(trials, "TOKENS", 3 * 256)
    pruning.commands.use_data(str(story))
    until(lambda: pruning.session.trial is not None and pruning.session.trial.done)
    pruning.settle()
    said = [one.full for one in pruning.prune.live.sample]
    assert said == ["3 of 6 windows,", "drawn with seed 0", ""]  # labels need no note
    monkeypatch.setattr(trials, "TOKENS", 6 * 256)
    pruning.commands.use_data(str(story))
    until(lambda: pruning.session.trial is not None and pruning.session.trial.done)
    pruning.settle()
    assert not any(one.full for one in pruning.prune.live.sample)


def test_another_model_says_that_its_heads_are_on(scored, until, capture):
    scored.commands.pruning.switch(OFF)
    scored.session.put(capture=capture, model=None, checkpoint="")
    scored.settle()
    hint = scored.prune.heads.hint
    assert hint.full.startswith("This is another model: all its heads are on")
    if scored.session.undo:
        scored.commands.run("undo")
        assert scored.session.off == OFF and "another model" not in hint.full
