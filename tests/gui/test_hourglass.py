"""The hourglass view in a real window: what it paints, and what a click does."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication

from hgviz import palettes
from hgviz.core import Display, HeadId, Selection
from hgviz.gui import theme
from hgviz.gui.hourglass import HourglassView, metric_shades
from hgviz.maps import LazyMap
from hgviz.session import Session, Work
from tests.gui.screen import picture, session_of, showing
from tests.making import make_capture

pytestmark = pytest.mark.usefixtures("app")


def click(view, head, button=Qt.MouseButton.LeftButton):
    place = view.grid.where(head).center()
    for kind in (QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonRelease):
        where = QPointF(place)
        globally = view.grid.viewport().mapToGlobal(where)
        event = QMouseEvent(kind, where, globally, button, button, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(view.grid.viewport(), event)


def cell_of(view, head):
    """The pixels inside a cell, without its frame."""
    box = view.grid.where(head).adjusted(4, 4, -4, -4)
    return picture(view.grid.viewport())[box.top() : box.bottom(), box.left() : box.right()]


@pytest.fixture
def view(capture):
    with showing(HourglassView, session_of(capture)) as view:
        yield view


def test_every_head_has_its_picture(view, capture):
    assert set(view.data.atlas.places) == set(capture.spec.heads)
    sizes = view.grid.sizes()
    for head, (_, _, width, height) in view.data.atlas.places.items():
        assert (width, height) == sizes[head]


def test_the_screen_shows_the_atlas(view):
    head = HeadId(0, 3)
    x, y, width, height = view.data.atlas.places[head]
    drawn = view.data.atlas.image[y : y + height, x : x + width]
    box = view.grid.where(head)
    screen = picture(view.grid.viewport())[box.top() :, box.left() :]
    inside = np.s_[6 : height - 6, 4:10]  # below the diagonal
    assert np.array_equal(screen[inside][10:], drawn[inside][10:, :, 2::-1])


def test_a_click_selects_and_the_frame_moves(view):
    session = view.session
    click(view, HeadId(5, 1))
    assert session.selection.head_id == HeadId(5, 1)
    assert session.selection.query == 60
    assert session.opened[2] == HeadId(5, 1)
    assert view.grid.chosen == HeadId(5, 1)
    box = view.grid.where(HeadId(5, 1))
    mark = theme.current().mark
    ring = picture(view.grid.viewport())[box.center().y(), box.left() - 3 : box.left()]
    assert (np.abs(ring.astype(int) - mark.getRgb()[:3]).max(axis=1) < 60).any()


def test_the_head_under_the_pointer_has_a_ring_and_a_card(capture):
    session = session_of(capture, facts=True)
    with showing(HourglassView, session) as view:
        view.grid.hovered.emit(HeadId(1, 1))
        assert session.hover.head_id == HeadId(1, 1)
        card = view.card
        assert card.isVisible() and "Head 1.1" in card.text
        assert "focus" in card.text and "entropy" in card.text
        assert not card.geometry().intersects(view.grid.where(HeadId(1, 1)))
        assert view.grid.viewport().rect().contains(card.geometry())
        view.grid.hovered.emit(None)
        assert session.hover is None and not card.isVisible()


def test_a_partial_capture_has_empty_frames_and_the_running_layer_in_blue(capture):
    part = replace(capture, maps=(*capture.maps[:6], *[None] * 7))
    session = session_of(part, layer=3)
    session.put(work=(Work("capture", "Capturing", 6, 13, state="running", keeps="six layers"),))
    with showing(HourglassView, session) as view:
        assert view.grid.picture.scene.missing == frozenset(range(6, 13))
        assert view.grid.picture.scene.running == 6
        assert {head.layer for head in view.data.atlas.places} == set(range(6))
        assert len({tuple(one) for one in cell_of(view, HeadId(9, 2)).reshape(-1, 3)}) == 1
        box = view.grid.where(HeadId(6, 2))
        edge = picture(view.grid.viewport())[box.center().y(), box.left() - 1 : box.left() + 2]
        press = theme.current().press.getRgb()[:3]
        assert (np.abs(edge.astype(int) - press).max(axis=1) < 90).any()
        assert "capturing" in view.head.note.full


def test_finished_layers_are_not_read_again(capture, monkeypatch):
    reads, summary = Counter(), LazyMap.summary

    def counted(layer, head):
        reads[capture.maps.index(layer)] += 1
        return summary(layer, head)

    monkeypatch.setattr(LazyMap, "summary", counted)
    session = session_of(replace(capture, maps=(*capture.maps[:3], *[None] * 10)))
    with showing(HourglassView, session) as view:
        assert reads == {0: 6, 1: 6, 2: 6}
        session.put(capture=capture)
        view.settle()
        view.resize(700, 800)
        view.settle()
        assert reads == dict.fromkeys(range(13), 6)


def test_without_a_capture_the_frames_are_empty(capture):
    session = Session()
    session.put(spec=capture.spec)
    with showing(HourglassView, session) as view:
        assert view.grid.picture.scene.ghost and view.grid.chosen is None
        assert "position" not in " ".join(view.grid.picture.scene.lines(0))


def test_without_a_model_the_pane_offers_the_sample():
    with showing(HourglassView, Session()) as view:
        asked = []
        view.asked.connect(asked.append)
        assert not view.content.isVisible()
        view._notice.asked.emit("open_sample")
        assert asked == ["open_sample"]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("signed", [False, True])
def test_signed_and_dark_are_drawn(app, dark, signed):
    theme.apply(app, dark)
    capture = make_capture("The hourglass was used at sea.", signed=signed)
    with showing(HourglassView, session_of(capture, query=3)) as view:
        pixels = picture(view.grid.viewport())
        pane = np.array(theme.current().pane.getRgb()[:3])
        assert (pixels[-3, 5] == pane).all()
        assert len({tuple(one) for one in cell_of(view, HeadId(0, 4)).reshape(-1, 3)}) > 5


@pytest.mark.parametrize("text", ["H", "Hi"])
def test_tiny_texts_are_drawn(text):
    capture = make_capture(text)
    with showing(HourglassView, session_of(capture, query=0)) as view:
        assert len(view.data.atlas.places) == 78


def test_a_hidden_view_does_not_work(view, qtbot):
    session = view.session
    before = view.data
    view.hide()
    session.put(display=Display(palette="magma"))
    qtbot.wait(80)
    assert view.data is before
    view.show()
    qtbot.waitUntil(lambda: view.data is not before, timeout=30_000)


def test_the_same_question_gives_the_same_picture(view):
    session = view.session
    before = view.data
    session.put(selection=Selection(0, 0, 3))
    view.settle()
    assert view.data is before


@pytest.mark.parametrize("size", [(592, 640), (400, 500), (300, 300)])
def test_the_chosen_head_is_in_view(capture, size):
    session = session_of(capture)
    with showing(HourglassView, session, *size) as view:
        for head in (HeadId(0, 0), HeadId(12, 5)):
            session.put(selection=Selection(*head, 3))
            assert view.grid.viewport().rect().contains(view.grid.where(head))


def test_level_names_stay_in_view_while_their_rows_do(capture):
    spec = capture.spec
    many = replace(
        spec,
        levels=spec.levels[:1],
        layers=tuple(replace(spec.layers[0], index=n) for n in range(48)),
    )
    long = replace(capture, spec=many, maps=(capture.maps[0],) * 48, spans=capture.spans[:1])
    with showing(HourglassView, session_of(long, layer=47), 592, 400) as view:
        grid = view.grid
        assert grid.verticalScrollBar().value() > 0
        assert (picture(grid.viewport())[4:30, 16:60] < 128).any()


def test_the_menu_exports_copies_and_goes(view):
    session = view.session
    asked = []
    view.export_wanted.connect(lambda: asked.append("export"))
    menu = view.menu(HeadId(1, 2))
    said = {one.text(): one for one in menu.actions() if one.text()}
    assert list(said) == ["Go to head 1.2", "Export map…", "Copy picture"]
    said["Export map…"].trigger()
    assert session.selection.head_id == HeadId(1, 2) and asked == ["export"]
    said["Copy picture"].trigger()
    assert not QApplication.clipboard().pixmap().isNull()
    assert [one.text() for one in view.menu(None).actions()] == ["Copy picture"]


def test_the_picture_from_a_lane_equals_the_one_computed_at_once(view):
    session = view.session
    view.data = None
    again = view.request(session)()
    view.data = None
    view.settle()
    assert np.array_equal(again.atlas.image, view.data.atlas.image)


# --- heads coloured by a metric -------------------------------------------------------------------


def test_the_smallest_has_the_first_colour_and_the_largest_the_last(session):
    facts = session.facts
    shades = metric_shades(facts, "previous", "letter", "viridis")
    values = {head: one.metrics["previous"] for head, one in facts.items()
              if "previous" in one.metrics}  # fmt: skip
    table = palettes.colours("viridis")
    for head, wanted in ((min(values, key=values.get), 0), (max(values, key=values.get), 255)):
        assert shades.colour(head, False).getRgb()[:3] == tuple(table[wanted].tolist())
    assert shades.part == ""
    without = replace(facts[HeadId(0, 0)], metrics={})
    some = metric_shades({**facts, HeadId(0, 0): without}, "previous", "letter", "viridis")
    assert some.part == "clear: 1 without it" and some.colour(HeadId(0, 0), False) is None
    assert metric_shades(facts, "rare", "letter", "viridis") is None
    assert metric_shades({}, "focus", "letter", "viridis") is None


def test_any_metric_colours_the_hourglass_and_maps_come_back(session):
    with showing(HourglassView, session, 700, 714) as view:
        maps = picture(view.grid)
        asked = []
        view.shaded.connect(asked.append)
        assert view.metrics.isVisible() and not view.metrics.bar.isVisible()
        view.metrics.picker.activated.emit(view.metrics.picker.findData("entropy"))
        assert asked == ["entropy"]
        session.put(shade="entropy")
        view.settle()
        flat = picture(view.grid)
        assert (flat != maps).any() and view.metrics.bar.isVisible()
        head = session.selection.head_id
        left, top, right, bottom = view.grid.head_layout.box(head).toRect().getCoords()
        inside = flat[top + 6 : bottom - 6, left + 6 : right - 6]
        assert (inside == inside[0, 0]).all()  # one colour
        session.put(shade="")
        view.settle()
        assert (picture(view.grid) == maps).all() and not view.metrics.bar.isVisible()


def test_every_metric_can_be_chosen_from_the_menu_as_well(session):
    with showing(HourglassView, session, 330, 714) as view:
        assert not view.metrics.isVisible()  # no room
        menu = view.menu(None)
        inside = next(one.menu() for one in menu.actions() if one.text() == "Colour heads by")
        names = [one.text() for one in inside.actions()]
        assert names[:3] == ["Maps", "Focus (max)", "Entropy, nats"]
        asked = []
        view.shaded.connect(asked.append)
        inside.actions()[2].trigger()
        assert asked == ["entropy"]
        menu.deleteLater()
