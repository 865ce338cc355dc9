"""The table of classes and slices: live, sorted, copied, with the keyboard."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from hgviz.analysis import slices
from hgviz.analysis.slices import Part
from hgviz.core import HeadId
from hgviz.gui.changes import PartTable, part_verdict, part_words, row_of, signed

OFF = frozenset({HeadId(0, 0), HeadId(2, 1)})


def part(name, change, by="label", n=200, more=0.1):
    """A slice whose change has an interval of 4 points."""
    ends = (change, change - 0.02, change + 0.02)
    now = (0.8 + change, 0.7, 0.95)
    spread = (more, more - 0.05, more + 0.05)
    return Part(by, name, n, 400, (0.8, 0.75, 0.85), now, 9, 5, ends, (0.5, 0.5 + more), spread)


PARTS = (part("", -0.03, "all", 600), part("no", -0.1), part("yes", 0.05), part("so", 0.0))


@pytest.fixture
def table(qapp):
    """A table of three classes."""
    one = PartTable()
    one.show_parts(PARTS, "right", "text", "2 heads off")
    return one


def names(table):
    return [row.part.name for row in table.rows]


def settled(program, until):
    until(lambda: program.session.trial.done and program.session.trial.off == program.session.off)
    program.settle()


def test_all_places_stay_in_the_first_row_whatever_it_is_sorted_by(table):
    assert names(table) == ["", "no", "yes", "so"]
    table.sort_by(4)
    assert names(table) == ["", "yes", "so", "no"]
    table.sort_by(4)
    assert names(table) == ["", "no", "so", "yes"]
    title = table.headerData(4, Qt.Orientation.Horizontal)
    assert title == "Change, points  ↑"
    table.sort_by(0)
    assert names(table) == ["", "no", "yes", "so"]


def test_a_chosen_row_stays_chosen_when_numbers_change_the_order(table):
    from PySide6.QtCore import QPersistentModelIndex

    table.sort_by(4)
    chosen = QPersistentModelIndex(table.index(names(table).index("no"), 0))
    table.show_parts((*PARTS[:1], part("no", 0.3), *PARTS[2:]), "right", "text", "2 heads off")
    assert names(table) == ["", "no", "yes", "so"] and chosen.row() == 1


def test_what_may_be_nothing_is_told_from_better_and_worse():
    words = [part_verdict(row_of(one, "right"), "right") for one in PARTS]
    assert words == ["worse", "worse", "better", "may be nothing"]
    more = row_of(part("", 0, more=0.2), "loss")
    assert part_verdict(more, "loss") == "worse" and more.change[0] == pytest.approx(
        0.2 / np.log(2)
    )
    assert part_words(row_of(PARTS[1], "right"), 5, "right") == "−12.00 to −8.00"


@pytest.mark.parametrize(("value", "said"), [(0.0, "0"), (-1.2, "−1.20"), (0.001, "0")])
def test_changes_have_a_sign_and_a_real_minus(value, said):
    assert signed(value, "right") == said


def test_the_table_grows_with_the_score_and_adds_up(scored, until):
    page = scored.prune
    page.show_table("slices")
    seen = []
    scored.commands.pruning.switch(OFF)
    until(lambda: scored.session.trial.points)

    def done():
        seen.extend(row.part.n for row in page.slices.model.rows[:1] if row.now != row.whole)
        return scored.session.trial.done

    until(done)
    settled(scored, until)
    trial, rows = scored.session.trial, page.slices.model.rows
    assert seen == sorted(seen) and rows[0].part.n == trial.total
    assert (rows[0].part.lost, rows[0].part.won) == (trial.paired.lost, trial.paired.won)
    which = slices.of_examples(trial.examples, scored.session.spec)
    assert tuple(row.part for row in rows) == slices.table(
        trial.examples, trial.before, trial.now, which
    )
    assert {row.part.by for row in rows} == {"all", "token", "context", "level"}


def test_it_is_sorted_and_copied_with_the_keyboard(scored, until):
    page = scored.prune
    page.show_table("slices")
    scored.commands.pruning.switch(OFF)
    settled(scored, until)
    table, model = page.slices.table, page.slices.model
    table.setFocus()
    QTest.keyClick(table, Qt.Key.Key_Right)
    counts = [row.part.n for row in model.rows[1:]]
    assert model.by == 1 and counts == sorted(counts, reverse=True)
    QTest.keyClick(table, Qt.Key.Key_Space)
    assert [row.part.n for row in model.rows[1:]] == sorted(counts)
    QTest.keyClick(table, Qt.Key.Key_Down)
    assert table.currentIndex().row() == 1
    page.slices.copy()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == len(model.rows) + 1
    assert {len(line.split("\t")) for line in lines} == {20}
    assert lines[1].split("\t")[2] == str(model.rows[0].part.n)


def test_the_tabs_change_the_table_and_keep_the_keyboard(scored):
    page = scored.prune
    scored.frame.activateWindow()
    tabs = page.tabs[0]
    button = tabs.focusProxy()
    QTest.mouseClick(button.parent().findChildren(type(button))[1], Qt.MouseButton.LeftButton)
    assert page.slices.isVisible() and not page.changed.isVisible()
    assert {one.choice for one in page.tabs} == {"slices"}


def test_a_sample_of_the_data_says_so(pruning, until, story, monkeypatch):
    from hgviz.gui import trials

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
    if scored.session.history.past:
        scored.commands.run("undo")
        assert scored.session.off == OFF and "another model" not in hint.full
