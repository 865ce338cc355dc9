"""The hourglass view in a real window: what it paints, and what a click does."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz import palettes
from hgviz.core import HeadId, Selection
from hgviz.gui import theme
from hgviz.gui.hourglass import HourglassView, metric_shades
from hgviz.maps import LazyMap
from hgviz.session import Session, Work
from tests.gui.screen import picture, session_of, showing
from tests.making import make_flat

pytestmark = pytest.mark.usefixtures("app")


def cell_of(view, head):
    """The pixels inside a cell, without its frame."""
    box = view.grid.where(head).adjusted(6, 6, -6, -6)
    return picture(view.grid.viewport())[box.top() : box.bottom(), box.left() : box.right()]


def colours(pixels):
    return {tuple(one) for one in pixels.reshape(-1, 3).tolist()}


@pytest.fixture
def view(capture):
    with showing(HourglassView, session_of(capture)) as view:
        yield view


def test_the_screen_shows_every_head_from_the_atlas(view, capture):
    atlas, sizes = view.data.atlas, view.grid.sizes()
    assert {head: place[2:] for head, place in atlas.places.items()} == sizes
    assert set(sizes) == set(capture.spec.heads)
    head = HeadId(0, 3)
    x, y, width, height = atlas.places[head]
    box = view.grid.where(head)
    screen = picture(view.grid.viewport())[box.top() :, box.left() :]
    inside = np.s_[16 : height - 6, 4:10]  # below the diagonal
    assert np.array_equal(screen[inside], atlas.image[y:, x:][inside][..., 2::-1])
    corner = screen[0, 0].tolist()  # round: the map does not reach it
    assert corner != atlas.image[y, x, 2::-1].tolist()


def test_the_head_under_the_pointer_has_a_ring_and_a_card(capture):
    session = session_of(capture, facts=True)
    with showing(HourglassView, session) as view:
        QTest.mouseMove(view.grid.viewport(), view.grid.where(HeadId(1, 1)).center())
        assert session.hover.head_id == HeadId(1, 1) == view.grid.ringed
        assert all(words in view.card.text for words in ("Head 1.1", "focus", "entropy"))
        assert view.card.isVisible()
        assert not view.card.geometry().intersects(view.grid.where(HeadId(1, 1)))
        assert view.grid.viewport().rect().contains(view.card.geometry())
        view.grid.hovered.emit(None)
        assert session.hover is None and not view.card.isVisible()


def test_a_partial_capture_has_empty_frames_and_the_running_layer_in_blue(capture):
    session = session_of(replace(capture, maps=(*capture.maps[:6], *[None] * 7)), layer=3)
    session.put(work=(Work("capture", "Capturing", 6, 13, state="running", keeps="six layers"),))
    with showing(HourglassView, session) as view:
        assert {head.layer for head in view.data.atlas.places} == set(range(6))
        empty, drawn = (len(colours(cell_of(view, HeadId(*one)))) for one in ((9, 2), (0, 2)))
        assert empty == 1 < drawn
        box = view.grid.where(HeadId(6, 2))
        edge = picture(view.grid.viewport())[box.center().y(), box.left() - 1 : box.left() + 2]
        press = theme.current().press.getRgb()[:3]
        assert (np.abs(edge.astype(int) - press).max(axis=1) < 90).any()
        assert "capturing" in view.head.note.full
        view.grid.hovered.emit(HeadId(9, 2))
        assert "not captured yet" in view.card.text


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
        view.resize(700, 800)
        view.settle()
        assert reads == dict.fromkeys(range(13), 6)
        before = view.data
        session.put(selection=Selection(0, 0, 3))
        view.settle()
        assert view.data is before


def test_without_a_capture_the_frames_are_empty_and_without_a_model_there_is_a_sample(capture):
    session, asked = Session(), []
    with showing(HourglassView, session) as view:
        view.asked.connect(asked.append)
        assert not view.content.isVisible()
        view._notice.asked.emit("open_sample")
        assert asked == ["open_sample"]
        session.put(spec=capture.spec)
        view.settle()
        assert view.content.isVisible() and view.grid.chosen is None
        assert "position" not in " ".join(view.grid.picture.scene.lines(0))
        assert len(colours(cell_of(view, HeadId(0, 0)))) == 1


def test_the_chosen_head_is_in_view(capture):
    session = session_of(capture)
    with showing(HourglassView, session, 300, 300) as view:
        for head in (HeadId(0, 0), HeadId(12, 5)):
            session.put(selection=Selection(*head, 3))
            assert view.grid.viewport().rect().contains(view.grid.where(head))


def test_many_heads_are_flat_and_their_level_stays_named_while_scrolled(capture):
    spec = replace(capture.spec, levels=capture.spec.levels[:1], layers=make_flat(48, 6).layers)
    long = replace(capture, spec=spec, maps=(capture.maps[0],) * 48, spans=capture.spans[:1])
    with showing(HourglassView, session_of(long, layer=47), 200, 400) as view:
        assert view.grid.verticalScrollBar().value() > 0
        assert (picture(view.grid.viewport())[4:30, 16:60] < 128).any()
        assert "colour: focus" in view.head.note.full
        box = view.grid.where(HeadId(40, 2)).adjusted(3, 3, -3, -3)
        cell = picture(view.grid.viewport())[box.top() : box.bottom(), box.left() : box.right()]
        assert len(colours(cell)) == 1 and cell[0, 0].tolist() != [255, 255, 255]


def test_the_menu_exports_copies_goes_and_colours(session):
    asked, shades = [], []
    with showing(HourglassView, session, 330, 714) as view:
        view.export_wanted.connect(lambda: asked.append("export"))
        view.shaded.connect(shades.append)
        menu = view.menu(HeadId(1, 2))
        said = {one.text(): one for one in menu.actions() if one.text()}
        assert list(said) == ["Go to head 1.2", "Export map…", "Colour heads by", "Copy picture"]
        said["Export map…"].trigger()
        assert session.selection.head_id == HeadId(1, 2) and asked == ["export"]
        said["Copy picture"].trigger()
        assert not QApplication.clipboard().pixmap().isNull()
        assert not view.metrics.isVisible()  # no room: the menu alone
        names = [one.text() for one in said["Colour heads by"].menu().actions()]
        assert names[:3] == ["Maps", "Focus (max)", "Entropy, nats"]
        said["Colour heads by"].menu().actions()[2].trigger()
        assert shades == ["entropy"]
        menu.deleteLater()


# --- heads coloured by a metric -------------------------------------------------------------------


def test_the_smallest_has_the_first_colour_and_the_largest_the_last(session):
    facts, table = session.facts, palettes.colours("viridis")
    shades = metric_shades(facts, "previous", "token", "viridis")
    values = {head: one.metrics["previous"] for head, one in facts.items()}
    for head, wanted in ((min(values, key=values.get), 0), (max(values, key=values.get), 255)):
        assert shades.colour(head, False).getRgb()[:3] == tuple(table[wanted].tolist())
    without = {**facts, HeadId(0, 0): replace(facts[HeadId(0, 0)], metrics={})}
    shades = metric_shades(without, "previous", "token", "viridis")
    assert shades.part == "clear: 1 without it" and shades.colour(HeadId(0, 0), False) is None
    assert metric_shades(facts, "rare", "token", "viridis") is None


def test_any_metric_colours_the_hourglass_and_maps_come_back(session):
    with showing(HourglassView, session, 700, 714) as view:
        maps, asked = picture(view.grid), []
        view.shaded.connect(asked.append)
        assert view.metrics.isVisible() and not view.bar.isVisible()
        view.metrics.activated.emit(view.metrics.findData("entropy"))
        assert asked == ["entropy"]
        session.put(shade="entropy")
        view.settle()
        assert len(colours(cell_of(view, session.selection.head_id))) == 1
        assert view.bar.isVisible() and "Entropy" in view.metrics.toolTip()
        session.put(shade="")
        view.settle()
        assert (picture(view.grid) == maps).all() and not view.bar.isVisible()
