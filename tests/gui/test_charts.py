"""Charts: what one shows is a value; pyqtgraph draws it, and people zoom and read it."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz.gui import theme
from hgviz.gui.charts import (
    Axis,
    Band,
    Chart,
    ChartPoints,
    ChartWidget,
    Intervals,
    LegendEntry,
    Line,
    Mark,
    Note,
    Plot,
    Points,
    Scale,
    Slider,
    place_notes,
    thinned,
)
from tests.gui.screen import drag, picture, wheel


def curve(count=21, slider=None, of="curve", notes=()):
    x = np.arange(float(count))
    y = 1 - (x / count) ** 2

    def told(at):
        return f"{at} off: {y[at]:.3f}\n{y[at] - 0.1:.3f} to {y[at] + 0.1:.3f}"

    parts = (
        Band(x, y - 0.1, y + 0.1), Mark("y", 0.5, "bad"), Line(x, y),
        Points(x, y, told=told), *notes,
    )  # fmt: skip
    plot = Plot(Axis(0.0, count - 1.0, "heads", whole=True), Axis(-0.2, 1.2, "share"), parts)
    return Chart((plot,), "A curve", slider=slider, of=of, reads="x")


def cloud(keys="abcde"):
    x, y = np.array([0.0, 1.0, 2.0, 3.0, 1.0]), np.array([0.0, 0.0, 0.0, 0.0, 5.0])
    points = Points(x, y, told=lambda at: f"point {keys[at]}", keys=tuple(keys), names=tuple(keys))
    plot = Plot(Axis.around(x, title="a"), Axis.around(y, title="b"), (points,))
    return Chart((plot,), "A cloud")


def inner(panel):
    """The place between the axes of a plot, in px of its view."""
    now = panel.scale
    return QRectF(now.left, now.top, now.width, now.height)


@pytest.fixture
def chart(app):
    one = ChartWidget("A chart")
    one.resize(600, 300)
    one.show()
    QApplication.processEvents()
    yield one
    one.close()
    one.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


# --- values ---------------------------------------------------------------------------------------


def test_an_axis_has_round_numbers_or_those_it_is_given():
    marks = Axis(0.0, 1.0).marks(0.0, 1.0, 6)
    assert [at for at, _ in marks] == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    whole = Axis(0, 24, whole=True, end=24).marks(0, 24, 6)
    assert [at for at, _ in whole] == [0, 5, 10, 15, 20, 24]
    named = Axis(0, 2, ticks=((0.5, "one"), (1.5, "two")))
    assert named.marks(0, 1, 9) == [(0.5, "one")]
    around = Axis.around([np.nan, 2.0, 2.0])
    assert around.low < 2 < around.high
    assert Axis.around([]).low < Axis.around([]).high


def test_points_are_numbered_over_all_plots():
    one, two = cloud("abcde").plots[0], cloud("vwxyz").plots[0]
    spots = ChartPoints((one, two))
    assert len(spots) == 10 and spots.find("w") == 6 and spots.find("q") is None
    assert spots.told(6) == "point w" and spots.key(0) == "a" and spots.name(9) == "z"
    assert spots.panel.tolist() == [0] * 5 + [1] * 5
    assert len(ChartPoints(())) == 0


places = st.floats(-1e4, 1e4)
ends = st.tuples(places, st.floats(0.01, 1e4)).map(lambda one: (one[0], one[0] + one[1]))
scales = st.builds(
    lambda x, y, left, top, wide, high: Scale(*x, *y, left, top, wide, high),
    ends, ends, places, places, st.floats(20, 4000), st.floats(20, 4000),
)  # fmt: skip


@given(scales, st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 10))
def test_a_scale_goes_to_pixels_and_back_and_zooms_around_a_place(scale, across, down, factor):
    at = scale.left + across * scale.width, scale.top + down * scale.height
    assert scale.holds(*at) or across in (0, 1) or down in (0, 1)
    assert scale.pixels(*scale.value(*at)) == pytest.approx(at, abs=1e-4)
    zoomed = scale.zoomed(factor, at)
    assert zoomed.value(*at) == pytest.approx(scale.value(*at), abs=1e-6 * (1 + abs(scale.x1)))
    assert zoomed.x1 - zoomed.x0 == pytest.approx(factor * (scale.x1 - scale.x0), rel=1e-6)
    only = scale.zoomed(factor, at, "x")
    assert only.ends[2:] == pytest.approx(scale.ends[2:]) and only.x0 == pytest.approx(zoomed.x0)
    moved = scale.panned(30, -20)
    assert moved.pixels(*scale.value(*at)) == pytest.approx((at[0] + 30, at[1] - 20), abs=1e-4)


@given(scales, st.lists(st.tuples(places, places), min_size=2, max_size=2))
def test_a_dragged_rectangle_is_a_part_of_the_visible_range(scale, two):
    x0, x1, y0, y1 = scale.between(*two, 14).ends
    assert scale.x0 <= x0 <= x1 <= scale.x1 and scale.y0 <= y0 <= y1 <= scale.y1
    if abs(two[0][0] - two[1][0]) <= 14:
        assert (x0, x1) == (scale.x0, scale.x1)


@given(
    scales,
    st.lists(st.tuples(st.text("abc ", min_size=1, max_size=20), places, places), max_size=12),
)
def test_notes_never_meet_and_never_leave_their_plot(scale, notes):
    some = [Note(words, ((x, y),)) for words, x, y in notes]
    found = place_notes([*some, Note("nowhere", ())], scale, lambda words: (7.0 * len(words), 15.0))
    assert "nowhere" not in [note.words for note, _ in found]
    for number, (_, (left, top, right, bottom)) in enumerate(found):
        assert left >= scale.left - 1e-6 and right <= scale.left + scale.width + 1e-6
        assert top >= scale.top - 1e-6 and bottom <= scale.top + scale.height + 1e-6
        for _, other in found[number + 1 :]:
            assert left >= other[2] or other[0] >= right or top >= other[3] or other[1] >= bottom


@given(
    st.integers(1, 5000), st.floats(0, 4000), st.floats(1, 4000), st.integers(1, 300),
    st.integers(0, 2**31),
)  # fmt: skip
def test_a_thinned_series_keeps_the_lowest_and_highest_of_what_is_seen(count, at, wide, px, seed):
    draw = np.random.default_rng(seed)
    x, y = np.sort(draw.uniform(0, 5000, count)), draw.normal(size=count)
    scale = Scale(at, at + wide, -5, 5, 0, 0, px, 100)
    line, band = Line(x, y), Band(x, y - 1, y + 1)
    few, fill = thinned(line, scale), thinned(band, scale)
    seen = (x >= scale.x0) & (x <= scale.x1)
    if seen.any():
        assert few.y.min() <= y[seen].min() and few.y.max() >= y[seen].max()
        assert fill.low.min() <= y[seen].min() - 1 and fill.high.max() >= y[seen].max() + 1
    assert set(few.y.tolist()) <= set(y.tolist()) and set(fill.low.tolist()) <= set(band.low)
    assert (np.diff(few.x) >= 0).all() and (np.diff(fill.x) >= 0).all()
    assert len(few.x) <= 4 * px + 4 and len(fill.x) <= 4 * px + 4
    if len(few.x) < len(x):  # the line goes on beyond both ends of what is seen
        assert few.x[0] <= max(scale.x0, x[0]) and few.x[-1] >= min(scale.x1, x[-1])
    back = Line([0.0, 2.0, 1.0] * 2000, np.zeros(6000))
    assert thinned(back, scale) is back


# --- what is seen ---------------------------------------------------------------------------------


def test_neither_the_window_nor_its_charts_import_pyqtgraph_before_one_is_drawn():
    code = (
        "import sys\n"
        "from PySide6.QtWidgets import QApplication\n"
        "from hgviz.gui import app, program, charts\n"
        "qt = app.application()\n"
        "one = charts.ChartWidget('x')\n"
        "one.show()\n"
        "qt.processEvents()\n"
        "assert 'pyqtgraph' not in sys.modules\n"
        "from hgviz.gui.charts import Axis, Chart, Plot\n"
        "one.show_chart(Chart((Plot(Axis(0, 1), Axis(0, 1), ()),)))\n"
        "assert 'pyqtgraph' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=100, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [(200, 120), (600, 300), (1400, 700)])
def test_every_part_is_drawn_in_every_size_and_theme(app, chart, size, dark):
    theme.apply(app, dark=dark)
    chart.resize(*size)
    blank = picture(chart)
    whole = curve(slider=Slider(np.arange(21.0), 3, "3 off"))
    plot = whole.plots[0]
    more = Intervals([4.0], [0.2], [0.9], 1), Note("words", ((10.0, 0.5),))
    plot = Plot(plot.x, plot.y, (*plot.parts, *more), "A title")
    chart.show_chart(Chart((plot, plot), "", (LegendEntry("one", 0), LegendEntry("two", 1, 1))))
    QApplication.processEvents()
    assert (picture(chart) != blank).any(axis=2).sum() > 300


@pytest.mark.parametrize("size", [(300, 160), (600, 300), (1400, 700)])
def test_words_never_overlap_and_stay_inside(chart, size):
    chart.resize(*size)
    notes = tuple(Note(f"a note of number {at}", ((at * 2.0, 0.9),)) for at in range(9))
    chart.show_chart(curve(notes=notes))
    (panel,) = chart.panels
    boxes = list(panel.notes.values())
    assert boxes and all(inner(panel).adjusted(-1, -1, 1, 1).contains(one) for one in boxes)
    assert not any(a.intersects(b) for at, a in enumerate(boxes) for b in boxes[at + 1 :])
    if size[0] >= 600:
        assert "a note of number 0" in panel.notes


def test_numbers_below_an_axis_stand_apart(chart):
    for width in (200, 320, 900):
        chart.resize(width, 200)
        chart.show_chart(curve(1001, of=width))
        (panel,) = chart.panels
        ticks = panel.bottom._tickLevels[0]
        x, _ = panel.scale.pixels([at for at, _ in ticks], [0.0] * len(ticks))
        widest = max(chart.fontMetrics().horizontalAdvance(words) for _, words in ticks)
        assert len(ticks) >= 2 and (np.diff(x) > 0.8 * widest).all()


# --- zoom -----------------------------------------------------------------------------------------


def test_the_wheel_and_keys_zoom_within_the_ends_and_a_double_click_shows_all(chart):
    chart.show_chart(curve())
    (panel,) = chart.panels
    whole, place = panel.scale.ends, inner(panel).center().toPoint()
    off = chart._view.pos()
    assert not chart.zoomed
    assert not wheel(chart, place, -1)  # all of it is seen: a page may scroll
    before = panel.scale.value(*(place - off).toTuple())
    assert wheel(chart, place, 1) and chart.zoomed
    # within two px: wider numbers beside it may have moved the plot
    after = panel.scale.value(*(place - off).toTuple())
    assert after == pytest.approx(before, abs=0.1)
    x0, x1, *_ = panel.scale.ends
    assert (x1 - x0) == pytest.approx((whole[1] - whole[0]) / 1.25, rel=1e-6)
    for _ in range(100):
        wheel(chart, place, 1)
    for _ in range(200):
        wheel(chart, place, -1)
    assert panel.scale.ends == pytest.approx(whole) and not chart.zoomed
    QTest.keyClick(chart, Qt.Key.Key_Plus)
    assert chart.zoomed
    QTest.keyClick(chart, Qt.Key.Key_0)
    assert not chart.zoomed
    QTest.keyClick(chart, Qt.Key.Key_Plus)
    QTest.keyClick(chart, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    assert panel.scale.ends[0] == pytest.approx(whole[0], abs=1.0) and chart.zoomed
    QTest.mouseDClick(chart, Qt.MouseButton.LeftButton, pos=place)
    assert not chart.zoomed


def test_a_drag_zooms_into_what_it_goes_over_and_the_middle_button_moves_it(chart):
    chart.show_chart(curve())
    (panel,) = chart.panels
    off = QPointF(chart._view.pos())
    one, other = (inner(panel).center() + QPointF(*by) + off for by in ((-100, -40), (80, 50)))
    (xa, ya), (xb, yb) = (panel.scale.value(*(at - off).toTuple()) for at in (one, other))
    drag(chart, one.toPoint(), other.toPoint())
    assert panel.scale.ends == pytest.approx((xa, xb, yb, ya), abs=0.2)
    before = panel.scale.ends
    drag(chart, one.toPoint(), one.toPoint() + QPoint(30, 0), Qt.MouseButton.MiddleButton)
    assert panel.scale.ends[0] < before[0] and panel.scale.ends[2:] == pytest.approx(before[2:])


def test_a_zoom_stays_while_a_curve_grows_and_goes_with_another(chart):
    chart.show_chart(curve())
    QTest.keyClick(chart, Qt.Key.Key_Plus)
    (panel,) = chart.panels
    zoomed = panel.scale.ends
    chart.show_chart(curve(40))
    assert panel.scale.ends == pytest.approx(zoomed)
    chart.show_chart(curve(40, of="another"))
    assert not chart.zoomed and panel.scale.ends[1] == 39


# --- points ---------------------------------------------------------------------------------------


def test_the_value_under_the_pointer_has_its_interval(chart):
    chart.show_chart(curve())
    said = []
    chart.pointed.connect(said.append)
    QTest.mouseMove(chart, QPoint(5, 5))
    QTest.mouseMove(chart, chart.where(10).toPoint() + QPoint(0, 40))  # at the same x
    assert said[-1] == "10 off: 0.773 · 0.673 to 0.873"
    assert "0.673 to 0.873" in chart.card.text and "10 off" in chart.accessibleDescription()
    QApplication.sendEvent(chart, QEvent(QEvent.Type.Leave))
    assert said[-1] == "" and chart.card.isHidden()


def test_a_click_chooses_what_a_point_stands_for_and_return_opens_it(chart):
    chart.show_chart(cloud())
    picked, entered = [], []
    chart.picked.connect(picked.append)
    chart.picked.connect(lambda key: chart.mark(key))
    chart.entered.connect(lambda: entered.append(1))
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=chart.where(0).toPoint())
    assert picked == ["a"] and chart.accessibleDescription() == "A cloud · point a"
    QTest.keyClick(chart, Qt.Key.Key_Return)
    assert entered
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=chart.where(3).toPoint())
    assert picked == ["a", "d"]
    QTest.mouseDClick(chart, Qt.MouseButton.LeftButton, pos=chart.where(3).toPoint())
    assert len(entered) == 2
    beside = chart.where(3).toPoint() + QPoint(-60, -60)
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=beside)
    assert picked == ["a", "d"]


def test_a_legend_takes_as_many_rows_as_it_needs(chart):
    entries = tuple(LegendEntry(f"a method of number {at}", at, at, at % 2 == 1) for at in range(9))
    for width in (220, 500, 1400):
        chart.resize(width, 400)
        chart.show_chart(Chart(cloud().plots, legend=entries, of=width))
        boxes = chart.legend.places(chart.legend.width())
        assert not any(a.intersects(b) for at, a in enumerate(boxes) for b in boxes[at + 1 :])
        assert max(one.right() for one in boxes) <= chart.legend.width()
        assert max(one.bottom() for one in boxes) <= chart.legend.height() + 1
        assert chart._view.geometry().top() >= chart.legend.geometry().bottom()
    assert "a method of number 8" in chart.legend.accessibleName()


def test_an_empty_chart_takes_every_key_and_move(chart):
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Plus, Qt.Key.Key_0, Qt.Key.Key_End):
        QTest.keyClick(chart, key)
    QTest.mouseMove(chart, QPoint(90, 90))
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=QPoint(90, 90))
    assert not wheel(chart, QPoint(90, 90), 1)
    chart.show_chart(curve())
    chart.show_chart(Chart())
    QTest.keyClick(chart, Qt.Key.Key_Right)
    assert chart.words == ""


# --- the slider -----------------------------------------------------------------------------------


def test_the_slider_is_dragged_called_by_a_click_and_moved_by_keys(chart):
    stops, moves = np.arange(21.0), []

    def show(at):
        chart.show_chart(curve(slider=Slider(stops, at, f"{at} off", home=7)))

    def slid(at, begun):
        moves.append((at, begun))
        show(at)

    chart.slid.connect(slid)
    show(0)
    QTest.keyClick(chart, Qt.Key.Key_Right)
    QTest.keyClick(chart, Qt.Key.Key_PageUp)
    QTest.keyClick(chart, Qt.Key.Key_End)
    assert moves == [(1, False), (6, False), (7, False)]
    place = chart.where(15).toPoint() + QPoint(0, 30)
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=place)
    assert moves[-1] == (15, False)
    handle = chart._handle.geometry().center()
    drag(chart, handle, QPoint(chart.where(3).toPoint().x(), handle.y()))
    assert moves[-1] == (3, True) and not chart.zoomed
    place = chart.where(12).toPoint() + QPoint(0, 30)
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=place)
    QTest.mouseDClick(chart, Qt.MouseButton.LeftButton, pos=place)
    assert moves[-1][0] == 3  # two clicks show all of the chart: the mark is where it was


# --- much, and long -------------------------------------------------------------------------------


def test_a_curve_that_grows_takes_no_more_items(chart):
    chart.show_chart(curve(5))
    scene = chart._view.scene()
    before = len(scene.items())
    for count in range(6, 120):
        chart.show_chart(curve(count))
    assert len(scene.items()) == before
    chart.show_chart(cloud())
    chart.show_chart(curve(9))
    assert len([one for one in scene.items() if one.isVisible()]) <= before + 1


def test_a_hundred_thousand_points_are_drawn_and_read(chart):
    x = np.arange(100_000.0)
    y = np.sin(x / 5000)
    parts = Line(x, y), Points(x, y, size=0.0, told=lambda at: f"{at}: {y[at]:.3f}")
    plot = Plot(Axis(0.0, 1e5), Axis(-1.1, 1.1), parts)
    chart.show_chart(Chart((plot,), reads="x"))
    assert (picture(chart) != picture(chart)[0, 0]).any()
    QTest.mouseMove(chart, QPoint(3, 3))
    QTest.mouseMove(chart, chart.where(50_000).toPoint())
    assert 49_500 < int(chart.words.partition(":")[0]) < 50_500


def test_charts_that_close_leave_nothing(app):
    for _ in range(50):
        one = ChartWidget("A chart")
        one.resize(400, 200)
        one.show()
        one.show_chart(curve())
        QApplication.processEvents()
        one.close()
        one.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not [one for one in app.allWidgets() if isinstance(one, ChartWidget)]
