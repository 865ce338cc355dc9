"""Charts: what one shows is a value; pyqtgraph draws it, and people zoom and read it."""

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

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
from tests.gui.screen import click_chart, drag, place_in, point_at, wheel


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
