"""The values on screen as tables, and what the keyboard does to a map, a text and a list."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from hgviz.core import HeadId
from hgviz.gui.map import MapView
from hgviz.gui.tables import REST, Column, RowTable
from hgviz.gui.text import TextStrip
from tests.gui.screen import showing

SHIFT = Qt.KeyboardModifier.ShiftModifier


pytestmark = pytest.mark.usefixtures("app")


def row_of(capture, head, query):
    """The weights of the query that a head's map has."""
    row = capture.row(head.layer, query)
    return capture.maps[head.layer].read(head.head, (row, row + 1))[0]


# --- tables ---------------------------------------------------------------------------------------


def test_the_map_gives_the_row_of_the_query(session, capture):
    with showing(MapView, session, 704, 713) as view:
        heads, *rows = view.as_table()
        assert heads == ["Query", "Query token", "Key", "Key token", "Weight"]
        assert [int(one[2]) for one in rows] == list(range(61))  # what comes after is not seen
        assert {one[0] for one in rows} == {"60"}
        weights = np.array([float(one[4]) for one in rows], np.float32)
        assert np.array_equal(weights, row_of(capture, HeadId(12, 5), 60)[:61])
        assert rows[4][3] == capture.prompt.label(4)


def test_the_text_gives_a_row_for_each_token(session, capture):
    with showing(TextStrip, session, 1600, 188) as view:
        heads, *rows = view.as_table()
        assert heads[:3] == ["Text", "Position", "Token"] and "1:1 head 12.5" in heads
        assert len(rows) == len(capture.prompt)
        at = heads.index("1:1 head 12.5")
        weights = row_of(capture, HeadId(12, 5), 60)
        assert [np.float32(one[at]) for one in rows[:61]] == weights[:61].tolist()
        assert all(one[at] == "" for one in rows[61:])


# --- a table of rows ------------------------------------------------------------------------------


ROWS = [{"name": name, "n": n} for name, n in (("b", 2.0), ("a", float("nan")), ("c", 1.0))]


def columns(least=0):
    return [
        Column("Name", lambda row: row["name"], width=REST),
        Column("Number", lambda row: f"{row['n']:.0f}", lambda row: row["n"], 80, "n", True,
               least=least),
    ]  # fmt: skip


@pytest.fixture
def table(app, qtbot):
    widget = RowTable("Rows", lambda row: row["name"], lambda row: f"{row['name']}\n{row['n']}")
    qtbot.addWidget(widget)
    widget.resize(300, 200)
    widget.show_rows(columns(), ROWS)
    widget.show()
    return widget


def names(table):
    return [row["name"] for row in table.rows]


def test_a_table_is_sorted_by_titles_and_keys_and_numbers_that_are_none_come_last(table):
    assert names(table) == ["b", "a", "c"]
    table.sortByColumn(1, Qt.SortOrder.DescendingOrder)
    assert names(table) == ["b", "c", "a"]
    QTest.keyClick(table, Qt.Key.Key_Space)
    assert names(table) == ["a", "c", "b"]
    QTest.keyClick(table, Qt.Key.Key_Left)
    assert names(table) == ["a", "b", "c"]
    assert table.cells() == [["Name", "Number"], ["a", ""], ["b", "2.0"], ["c", "1.0"]]


def test_the_chosen_row_stays_when_rows_have_other_numbers_or_another_order(table):
    picked = []
    table.picked.connect(picked.append)
    table.choose("c")
    assert table.chosen == ROWS[2] and not picked
    table.sortByColumn(0, Qt.SortOrder.DescendingOrder)
    table.show_rows(columns(), [*ROWS[:2], {"name": "c", "n": 9.0}])
    assert table.chosen["n"] == 9.0 and names(table) == ["c", "b", "a"]
    table.show_rows(columns(), [{"name": "d", "n": 0.0}, *ROWS])
    assert table.chosen["name"] == "c" and not picked
    table.choose("x")
    assert table.chosen is None


def test_rows_are_walked_read_and_opened_by_keys(table):
    picked, opened, told = [], [], []
    table.picked.connect(lambda row: picked.append(row["name"]))
    table.opened.connect(lambda row: opened.append(row["name"]))
    table.described.connect(told.append)
    table.activateWindow()
    table.setFocus()
    table.choose("b")
    QTest.keyClick(table, Qt.Key.Key_Down)
    assert picked == ["a"] and told[-1] == "a · nan"
    QTest.keyClick(table, Qt.Key.Key_Return)
    assert opened == ["a"]


def test_a_hundred_thousand_rows_are_asked_for_as_they_come_on_screen(app, qtbot):
    asked = set()

    def words(row):
        asked.add(row)
        return str(row)

    table = RowTable("Rows", sorts=False)
    qtbot.addWidget(table)
    table.resize(300, 200)
    table.show_rows([Column("Number", words, width=REST)], range(131_072))
    table.choose(100_000)
    table.show()
    table.grab()
    assert len(asked) < 100 and 100_000 in asked
