"""Tables, charts, the grid of heads and panes at work, each alone."""

import threading
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz.core import HeadId, progress
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
from hgviz.gui.headgrid import HeadGrid, Scores, Shade, Shades
from hgviz.gui.layouts import HourglassRoom, hourglass_layout, rows_layout
from hgviz.gui.tables import REST, Column, RowTable
from hgviz.gui.view import View
from hgviz.session import Session
from tests.gui.screen import click_chart, drag, place_in, point_at, showing, wheel
from tests.making import make_flat, make_spec

pytestmark = pytest.mark.usefixtures("app")


# --- a table of rows ------------------------------------------------------------------------------


def test_rows_are_walked_read_and_opened_by_keys(app, qtbot):
    rows = [("b", 2.0), ("a", float("nan")), ("c", 1.0)]
    columns = [
        Column("Name", lambda row: row[0], width=REST),
        Column("Number", lambda row: f"{row[1]:.0f}", lambda row: row[1], 80, "n", True),
    ]
    table = RowTable("Rows", lambda row: row[0], lambda row: f"{row[0]}\n{row[1]}")
    qtbot.addWidget(table)
    table.show_rows(columns, rows)
    table.show()
    picked, opened, told = [], [], []
    table.picked.connect(lambda row: picked.append(row[0]))
    table.opened.connect(lambda row: opened.append(row[0]))
    table.described.connect(told.append)
    table.activateWindow()
    table.setFocus()
    QApplication.processEvents()
    table.choose("b")
    QTest.keyClick(table, Qt.Key.Key_Down)
    assert picked[-1] == "a" and told[-1] == "a · nan"
    QTest.keyClick(table, Qt.Key.Key_Return)
    assert opened == ["a"]
    table.sortByColumn(1, Qt.SortOrder.DescendingOrder)
    assert [row[0] for row in table.rows] == ["b", "c", "a"]
    QTest.keyClick(table, Qt.Key.Key_Space)
    assert [row[0] for row in table.rows] == ["a", "c", "b"]
    assert table.cells() == [["Name", "Number"], ["a", ""], ["c", "1.0"], ["b", "2.0"]]


# --- charts ---------------------------------------------------------------------------------------


def curve(slider=None):
    x = np.arange(21.0)
    y = 1 - (x / 21) ** 2
    parts = (
        Band(x, y - 0.1, y + 0.1), Line(x, y), Points(x, y, words=str, name="points"),
        Intervals([4.0], [0.2], [0.9], 1), Note("a note", 10.0, 0.5),
    )  # fmt: skip
    plot = Plot(Axis(0.0, 20.0, "heads", count), Axis(-0.2, 1.2, "share"), parts, "A title")
    return Chart((plot,), "A curve", slider=slider, of="curve", by_x=True)


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


def test_a_click_chooses_what_a_point_stands_for_and_two_open_it(chart):
    x, y, keys = [0.0, 1.0, 2.0, 3.0, 1.0], [0.0, 0.0, 0.0, 0.0, 5.0], tuple("abcde")
    points = Points(x, y, words=lambda at: f"point {keys[at]}", keys=keys)
    chart.show_chart(Chart((Plot(Axis.around(x), Axis.around(y), (points,)),), "A cloud"))
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


# --- the grid of heads ----------------------------------------------------------------------------


BUTTON, SHIFTED = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def grid(app):
    """A grid of 4 x 6 heads in a window, and what it asked for."""
    one = HeadGrid("Heads", walks=True, switches=True)
    one.resize(600, 500)
    one.show_picture(Scores(make_flat(4, 6), Shades()))
    one.mark(HeadId(0, 0))
    one.switched.connect(lambda off, along: one.show_off(off))
    one.picked.connect(one.mark)
    one.show()
    yield one
    one.close()
    one.deleteLater()


def at(grid, layer, head):
    return grid.where(HeadId(layer, head)).center()


def test_a_click_switches_a_head_and_shift_its_layer(grid):
    view = grid.viewport()
    QTest.mouseClick(view, BUTTON, pos=at(grid, 1, 2))
    assert grid.off == {HeadId(1, 2)} and grid.chosen == HeadId(1, 2)
    QTest.mouseClick(view, BUTTON, pos=at(grid, 1, 2))
    QTest.mouseClick(view, Qt.MouseButton.RightButton, pos=at(grid, 1, 2))
    QTest.mouseClick(view, BUTTON, pos=QPoint(3, 3))
    assert not grid.off
    QTest.mouseClick(view, BUTTON, SHIFTED, at(grid, 2, 3))
    assert grid.off == {HeadId(2, head) for head in range(6)}
    QTest.keyClick(grid, Qt.Key.Key_Space, SHIFTED)
    assert not grid.off


def test_the_keyboard_walks_and_switches(grid):
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Space):
        QTest.keyClick(grid, key)
    assert grid.chosen == HeadId(1, 2) and grid.off == {HeadId(1, 2)}
    for key, head in ((Qt.Key.Key_End, (1, 5)), (Qt.Key.Key_Right, (1, 5)),
                      (Qt.Key.Key_Home, (1, 0))):  # fmt: skip
        QTest.keyClick(grid, key)
        assert grid.chosen == head
    assert grid.accessibleDescription().startswith("Head 1.0")
    grid.resize(600, 150)
    grid.mark(HeadId(3, 5))  # it is scrolled into view
    assert grid.viewport().rect().contains(grid.where(HeadId(3, 5)))
    QTest.mouseMove(grid.viewport(), at(grid, 3, 2))
    assert grid.ringed == HeadId(3, 2)


# --- colours --------------------------------------------------------------------------------------


def test_a_score_whose_interval_has_zero_says_that_it_may_be_nothing():
    scores = {HeadId(0, 0): Shade(0.4, -0.1, 0.9), HeadId(0, 1): Shade(0.4, 0.1, 0.9)}
    shades = Shades("Loss change", "bits", (-4.0, 4.0), scores)
    numbers = [shades.number(HeadId(0, head)) for head in range(3)]
    assert numbers == ["≈ 0", "+0.4", ""] and shades.colour(HeadId(0, 2), False) is None
    assert shades.colour(HeadId(0, 0), False) == shades.colour_of(0.0, False)
    assert "not significant" in shades.words(HeadId(0, 0))
    needed, harmful = (shades.colour_of(score, False) for score in (4.0, -4.0))
    assert needed.red() > needed.blue() and harmful.blue() > harmful.red()


# --- where heads stand ----------------------------------------------------------------------------


@given(
    strides=st.sampled_from([(1,), (1, 3), (1, 2, 4), (1, 2, 4, 8), (1, 2, 12)]),
    heads=st.integers(1, 40),
    shared=st.integers(1, 8),
    windowed=st.booleans(),
    width=st.integers(90, 2000),
    height=st.integers(100, 1500),
    tokens=st.integers(1, 5000),
)
def test_nothing_overlaps_and_all_is_inside(
    strides, heads, shared, windowed, width, height, tokens
):
    spec = make_spec(strides, heads, windowed=windowed)
    spec = replace(spec, layers=tuple(replace(one, shared=shared) for one in spec.layers))
    lengths = [-(-tokens // level.stride) for level in spec.levels]
    layout = hourglass_layout(spec, lengths, HourglassRoom(width, height))
    for row in layout.rows:
        for _, cell in row.cells:
            left = layout.edge(cell.y() + cell.height() / 2)
            assert 91 <= left <= cell.x() and cell.right() <= layout.width - 48 + 1
            assert layout.top < cell.y() and cell.bottom() < layout.bottom <= layout.height
    for made in (layout, rows_layout(spec, width, height)):
        assert [row.layer for row in made.rows] == list(range(len(spec.layers)))
        for above, below in zip(made.rows, made.rows[1:], strict=False):
            assert above.top + above.height < below.top
        for row in made.rows:
            assert [head.head for head, _ in row.cells] == list(range(heads))
            for (head, a), (_, b) in zip(row.cells, row.cells[1:], strict=False):
                assert a.right() < b.x() and made.head_at(a.center()) == head


# --- panes at work --------------------------------------------------------------------------------


class Slow(View):
    """Draws a letter a step; `go` is how many it may."""

    title = "Slow"
    needs = ("text",)
    go, seen, asked_for = 2, "", 0

    def request(self, session):
        self.asked_for += 1
        return self._letters

    def _letters(self):
        for at in range(4):
            while at >= self.go:
                progress(at, 4, "", "abcd"[:at] or None)
                time.sleep(0.005)
            progress(at + 1, 4, "letters", "abcd"[: at + 1])
        return "abcd"

    def draw(self, result):
        self.seen = result


def test_work_that_is_stopped_can_be_resumed(until):
    with showing(Slow, Session(), 500, 300, visible=False) as slow:
        slow.show()
        until(lambda: slow._busy.card.isVisible())
        assert slow._busy.button.text() == "Stop" and slow.seen == "ab"
        QTest.keyClick(slow._busy.button, Qt.Key.Key_Space)
        assert slow._busy._words.full == "Stopped at 50 %: partial result"
        assert slow._busy.button.text() == "Resume" and slow.seen == "ab"
        slow.go = 4
        QTest.mouseClick(slow._busy.button, Qt.MouseButton.LeftButton)
        until(lambda: slow.seen == "abcd")
        until(lambda: slow._busy.card.isHidden())
        assert slow.asked_for == 2


def shown_range(chart):
    """The ends of x and y on screen."""
    return np.ravel(chart.plots[0].box.viewRange()).tolist()


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


class Late(View):
    """Says which B it was asked for, and which there is when that is drawn."""

    title = "Late"
    needs = ("capture_b",)

    def __init__(self):
        super().__init__()
        self.reading, self.pairs = threading.Event(), []

    def request(self, session):
        return partial(self._read, session.capture_b)

    def _read(self, beside):
        progress(0, 1)
        self.reading.set()
        return beside

    def draw(self, result):
        self.pairs.append((result, self.session.capture_b))


def test_the_answer_about_an_old_b_is_not_drawn_beside_the_new_one(app, until):
    session, first, then = Session(), object(), object()
    session.put(capture_b=first)
    with showing(Late, session, visible=False) as view:
        view.show()
        view._ask()
        assert view.reading.wait(5)
        time.sleep(0.05)  # what was read is on its way to this thread, which has not looked yet
        session.put(capture_b=then)
        until(lambda: view.pairs)
        assert view.pairs == [(then, then)]


class Endless(View):
    """Works until it is stopped."""

    needs = ("text",)
    lane = "facts"

    def request(self, session):
        return self._work

    def _work(self):
        while True:
            time.sleep(0.001)
            progress(0, 1)

    def draw(self, result):
        raise AssertionError("it never comes to an end")


def test_the_work_of_a_hidden_view_is_dropped_once_its_question_is_stale(app, until):
    session = Session()
    with showing(Endless, session, visible=False) as view:
        view.show()
        facts = view._lanes.facts
        until(lambda: facts.jobs)
        view.hide()
        assert facts.jobs  # leaving for a moment loses nothing
        session.put(text="another")
        until(lambda: not facts.jobs)
        view.show()
        until(lambda: facts.jobs)
