"""The hourglass view in a real window: what it paints, and what a click does."""

from collections import Counter
from dataclasses import replace

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz.core import HeadId, Selection
from hgviz.gui.hourglass import HourglassView, metric_shades
from hgviz.maps import LazyMap
from hgviz.session import Session, Work
from tests.gui.screen import picture, session_of, showing

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


def test_a_partial_capture_has_empty_frames(capture):
    session = session_of(replace(capture, maps=(*capture.maps[:6], *[None] * 7)), layer=3)
    session.put(work=(Work("capture", "Capturing", 6, 13, state="running", keeps="six layers"),))
    with showing(HourglassView, session) as view:
        assert {head.layer for head in view.data.atlas.places} == set(range(6))
        empty, drawn = (len(colours(cell_of(view, HeadId(*one)))) for one in ((9, 2), (0, 2)))
        assert empty == 1 < drawn and view.grid.picture.scene.running == 6
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


def test_heads_without_a_metric_stay_clear_and_are_counted(session):
    facts, head = session.facts, HeadId(0, 0)
    without = {**facts, head: replace(facts[head], metrics={})}
    shades = metric_shades(without, "previous", "token", "viridis")
    assert shades.part == "clear: 1 without it" and shades.colour(head, False) is None
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
