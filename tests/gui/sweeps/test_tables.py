"""The page of a study as tables, and what its facts are."""

from __future__ import annotations

from PySide6.QtCore import Qt

from hgviz.gui.help import find
from hgviz.gui.studies import SweepPage
from tests.gui.sweeps.conftest import show


def test_every_view_gives_its_values_as_a_table(studied):
    page, session = studied.sweep, studied.session
    studied.commands.choose_cell(session.sweep.of("score", seed="1")[0].cell.key)
    for name in ("budgets", "reached"):
        page.show_chart(name)
        studied.settle()
    for view in page.views:
        names, *rows = view.as_table()
        assert rows and all(len(row) == len(names) for row in rows), view
        assert not any("\t" in cell or "\n" in cell for row in rows for cell in row)
    grid = dict(zip(*page.cells.as_table()[:2], strict=True))
    assert grid["State"] == "done" and float(grid["Value"]) == 81.0 and grid["Took, s"] == "2.0"
    facts = dict(page.cell.as_table()[1:])
    assert (facts["Metric"], facts["Low"], facts["High"]) == ("accuracy", "79.0", "83.0")
    assert "the loss is no number. Lower the rate" in [row[-1] for row in page.cells.as_table()]
    assert page.summary.as_table() == [
        ["State", "Cells"], ["done", "11"], ["waiting", "5"], ["failed", "1"],
        ["blocked", "5"],
    ]  # fmt: skip
    mean = [row for row in page.reached.as_table() if "mean" in row]
    assert len(mean) == 2 and mean[0][-1] == ""  # one seed has no interval


def test_a_study_that_is_not_there_has_no_table(program):
    assert [view.as_table() for view in program.sweep.views] == [None] * 5


def test_every_fact_says_what_it_is_and_where_from(studied):
    page = studied.sweep
    for one in studied.session.sweep.standings:
        studied.commands.choose_cell(one.cell.key)
        page.cell.settle()
        shown = [(name, words) for name, words in page.cell._facts if not name.isHidden()]
        assert shown and all(name.toolTip() and words.toolTip() for name, words in shown)
    rows, tip = page.cells.table.rows, Qt.ItemDataRole.ToolTipRole
    across = Qt.Orientation.Horizontal
    assert all(rows.headerData(at, across, tip) for at in range(rows.columnCount()))
    assert "√n" in page.reached.head.title.toolTip()


def test_a_pane_that_is_empty_says_so(program, folder):
    show(program, folder)
    page = program.sweep
    page.show_chart("budgets")
    program.settle()
    for view in (page.cell, page.reached, page.budgets):
        assert view._notice is not None


def test_every_pane_has_its_page(app):
    page = SweepPage()
    topics = [view.topic for view in page.views]
    page.deleteLater()
    assert len(set(topics)) == 5 and all(find(topic) for topic in (*topics, "export"))
