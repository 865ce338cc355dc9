"""Tables and charts: rows and points that are walked, sorted, chosen and copied."""

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz.core import HeadId
from hgviz.gui.charts import (
    Axis,
    Band,
    Chart,
    ChartWidget,
    Intervals,
    Line,
    Note,
    Plot,
    Points,
    Slider,
    count,
)
from hgviz.gui.map import MapView
from hgviz.gui.tables import REST, Column, RowTable
from tests.gui.screen import click_chart, drag, place_in, point_at, showing, wheel

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


def curve(size=21, slider=None, of="curve", name=""):
    x = np.arange(float(size))
    y = 1 - (x / size) ** 2
    interval = "{} off: {:.3f}\n{:.3f} to {:.3f}".format
    words = [interval(at, value, value - 0.1, value + 0.1) for at, value in enumerate(y)]
    parts = (
        Band(x, y - 0.1, y + 0.1), Line(x, y, name=name),
        Points(x, y, words=words.__getitem__, name="points"), Intervals([4.0], [0.2], [0.9], 1),
        Note("a note", 10.0, 0.5),
    )  # fmt: skip
    plot = Plot(Axis(0.0, size - 1.0, "heads", count), Axis(-0.2, 1.2, "share"), parts, "A title")
    return Chart((plot,), "A curve", slider=slider, of=of, by_x=True)


def cloud():
    x, y, keys = [0.0, 1.0, 2.0, 3.0, 1.0], [0.0, 0.0, 0.0, 0.0, 5.0], tuple("abcde")
    points = Points(x, y, words=lambda at: f"point {keys[at]}", keys=keys)
    return Chart((Plot(Axis.around(x), Axis.around(y), (points,)),), "A cloud")


@pytest.fixture
def chart(app):
    widget = ChartWidget("A chart")
    widget.resize(600, 300)
    widget.show()
    QApplication.processEvents()
    yield widget
    widget.close()
    widget.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def shown_range(chart):
    """The ends of x and y on screen."""
    return np.ravel(chart.plots[0].box.viewRange()).tolist()


# --- zoom -----------------------------------------------------------------------------------------


def test_the_wheel_zooms_within_the_ends_a_drag_moves_and_a_double_click_shows_all(chart):
    chart.show_chart(curve())
    view, place, whole = chart.view.viewport(), place_in(chart, 8.0, 0.6), shown_range(chart)
    assert not chart.zoomed
    wheel(view, place, 3)
    QApplication.processEvents()
    zoomed = shown_range(chart)
    assert chart.zoomed and whole[0] < zoomed[0] < 8 < zoomed[1] < whole[1]
    drag(view, place, place + QPoint(40, 0))
    assert shown_range(chart)[0] < zoomed[0]
    for _ in range(30):
        wheel(view, place, -3)
    assert shown_range(chart) == pytest.approx(whole) and not chart.zoomed
    wheel(view, place, 3)
    click_chart(chart, place, twice=True)
    assert not chart.zoomed


# --- points ---------------------------------------------------------------------------------------


def test_the_value_under_the_pointer_has_its_interval(chart):
    chart.show_chart(curve())
    said = []
    chart.pointed.connect(said.append)
    point_at(chart, place_in(chart, 10.0, 0.1))  # at the same x
    assert said[-1] == "10 off: 0.773 · 0.673 to 0.873"
    assert "0.673 to 0.873" in chart.card.text() and "10 off" in chart.accessibleDescription()
    QApplication.sendEvent(chart, QEvent(QEvent.Type.Leave))
    assert said[-1] == "" and chart.card.isHidden()


def test_a_click_chooses_what_a_point_stands_for_and_two_open_it(chart):
    chart.show_chart(cloud())
    picked, entered, hovered = [], [], []
    chart.picked.connect(picked.append)
    chart.picked.connect(chart.mark)
    chart.hovered.connect(hovered.append)
    chart.entered.connect(lambda: entered.append(1))
    point_at(chart, place_in(chart, 0.0, 0.0))
    assert hovered[-1] == "a"
    click_chart(chart, place_in(chart, 0.0, 0.0))
    assert picked == ["a"] and chart.accessibleDescription() == "A cloud · point a"
    click_chart(chart, place_in(chart, 3.0, 0.0), twice=True)
    assert picked == ["a", "d"] and entered
    click_chart(chart, place_in(chart, 3.0, 0.0) + QPoint(-60, -60))
    assert picked == ["a", "d"]


# --- the slider -----------------------------------------------------------------------------------


def test_the_slider_is_dragged_called_by_a_click_and_moved_by_keys(chart):
    stops, moves = np.arange(21.0), []

    def show(at):
        chart.show_chart(curve(slider=Slider(stops, at, f"{at} off", home=7)))

    def slide(at, begun):
        moves.append((at, begun))
        show(at)

    chart.slid.connect(slide)
    show(0)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_PageUp, Qt.Key.Key_End, Qt.Key.Key_Home):
        QTest.keyClick(chart, key)
    assert moves == [(1, False), (6, False), (7, False), (0, False)]
    click_chart(chart, place_in(chart, 15.0, 0.1))
    assert moves[-1] == (15, False) and chart.handle.text() == "15 off"
    point_at(chart, place_in(chart, 15.0, 0.2))
    drag(chart.view.viewport(), place_in(chart, 15.0, 0.2), place_in(chart, 3.2, 0.2))
    assert moves[-1] == (3, True) and not chart.zoomed
    assert (moves[4], moves[5][1]) == ((15, False), False)  # a drag begins a move of its own
    show(None)
    assert chart.handle.isVisible() and not chart.plots[0].slider.isVisible()
    QTest.keyClick(chart, Qt.Key.Key_Right)
    assert moves[-1] == (1, False)
