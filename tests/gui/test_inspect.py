"""The Inspect page: the hourglass and its small maps, docks and the panels in them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz import palettes
from hgviz.analysis.roles import notable_heads, roles, top_keys
from hgviz.core import Display, HeadId, Selection
from hgviz.gui import panels
from hgviz.gui.atlas import Thumb, fitted, paint_all
from hgviz.gui.hourglass import HourglassView, metric_shades
from hgviz.gui.panels import DisplayPanel, NotablePanel, TopKeysPanel
from hgviz.session import Session
from hgviz.session.document import Layout
from tests.gui.screen import picture, showing, shown

pytestmark = pytest.mark.usefixtures("app")


def cell_of(view, head):
    """The pixels inside a cell, without its frame."""
    box = view.grid.where(head).adjusted(6, 6, -6, -6)
    return picture(view.grid.viewport())[box.top() : box.bottom(), box.left() : box.right()]


def colours(pixels):
    return {tuple(one) for one in pixels.reshape(-1, 3).tolist()}


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
        session.put(capture=replace(capture, maps=(*capture.maps[:6], *[None] * 7)))
        view.settle()
        empty, drawn = (len(colours(cell_of(view, HeadId(*one)))) for one in ((9, 2), (0, 2)))
        assert empty == 1 < drawn


# --- heads coloured by a metric -------------------------------------------------------------------


def test_any_metric_colours_the_hourglass_and_maps_come_back(session):
    facts, head = session.facts, HeadId(0, 0)
    without = {**facts, head: replace(facts[head], metrics={})}
    shades = metric_shades(without, "previous", "token", "viridis")
    assert shades.part == "no colour: 1 without a value" and shades.colour(head, False) is None
    assert metric_shades(facts, "rare", "token", "viridis") is None
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
        assert view.figure(session).kind == "wall"
        session.put(shade="")
        view.settle()
        assert (picture(view.grid) == maps).all() and not view.bar.isVisible()
        session.select(layer=0, head=1)
        assert view.grid.chosen == HeadId(0, 1) and (picture(view.grid) != maps).any()


# --- small maps -----------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(1, 90), st.integers(1, 90), st.integers(1, 70), st.integers(0, 5), st.booleans())
def test_the_largest_weight_survives_any_size(rows, columns, size, seed, signed):
    values = np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)
    if not signed:
        values = np.abs(values)
    out = fitted(values, size, size, signed)
    assert out.shape == (size, size)
    assert set(out.ravel()) <= set(values.ravel())
    assert np.abs(out).max() == np.abs(values).max()


# --- docks and panels -----------------------------------------------------------------------------


def docks_shown(page):
    """The docks whose panels are seen: not those behind another tab."""
    QApplication.processEvents()
    return [title for title, dock in page.docks.items() if dock.widget().widget().isVisible()]


def test_docks_are_the_same_after_a_low_window_and_are_hidden_by_a_key(opened):
    page = opened.inspect
    opened.frame.activateWindow()
    for size in ((1600, 1000), (1100, 700)):
        opened.frame.resize(*size)
        QApplication.processEvents()
        before = docks_shown(page)
        for now in ([], before):
            QTest.keyClick(opened.frame, Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier)
            assert docks_shown(page) == now
    opened.frame.resize(1600, 1000)
    page.tabifyDockWidget(page.docks["Head details"], page.docks["Top keys"])
    for size in ((1100, 700), (1600, 1000)):
        opened.frame.resize(*size)
        QApplication.processEvents()
    assert page.docks["Top keys"] in page.tabifiedDockWidgets(page.docks["Head details"])
    opened.laying.lay_out(Layout(size=(32000, 32000), docks="no base64"))
    room = opened.frame.screen().availableGeometry().size()
    assert opened.frame.width() <= max(room.width(), 1600)


def test_the_five_strongest_keys_are_listed_with_their_words(session, capture):
    for selection, glyph, where in (
        (Selection(12, 5, 60), 1, "position 60"),
        (Selection(5, 1, 60), 4, "tokens 57 to 60"),
        (Selection(2, 0, 0), 1, ""),
    ):
        session.put(selection=selection)
        with showing(TopKeysPanel, session, 304, 240) as view:
            found = [(token, weight) for token, _, weight in top_keys(capture, selection)]
            assert [(one.token, one.weight) for one in view.list.rows] == found
            assert len(view.query.text()) == glyph and where in view.where.full
            for one in view.list.rows:
                assert one.inside in ("", one.glyph) or not one.inside.strip("·")
            assert {len(one.glyph) for one in view.list.rows} <= {1, glyph}


def test_the_clearest_heads_are_listed_or_it_is_said_that_no_head_has_a_role(session, capture):
    facts = roles(capture)
    session.put(facts=facts)
    with showing(NotablePanel, session, 304, 240) as view:
        assert [row.role for row in view.list.rows] == notable_heads(facts, panels.MOST)
        session.put(facts={head: replace(role, clarity=0.0) for head, role in facts.items()})
        view.settle()
        assert not view.content.isVisible()
        assert view._notice.content[0][0] == "No notable heads"


# --- the panel that says how weights become colours -----------------------------------------------


def test_the_display_panel_shows_the_display_and_writes_one_field_each(app):
    with shown(DisplayPanel, (304, 160), display=Display("magma", (0.0, 0.5), "log")) as (view, s):
        shown_now = view.palettes.currentData(), view.scale.choice, view.top.text()
        assert shown_now == ("magma", "log", "0.5")
        offered = [view.palettes.itemData(at) for at in range(view.palettes.count())]
        assert offered == [one.name for one in palettes.PALETTES.values() if not one.signed]
        view.palettes.activated.emit(view.palettes.findData("cividis"))
        view.scale.chosen.emit("linear")
        view.shared.setChecked(True)
        view.top.setText("0.2")
        view.top.editingFinished.emit()
        assert s.display == Display("cividis", (0.0, 0.2), "linear", True)
        for text in ("", "0", "-1"):
            view.top.setText(text)
            view.top.editingFinished.emit()
            assert s.display.limits is None


def small(values, slope=None, signed=False, kind="map"):
    values = np.asarray(values, np.float32)
    return Thumb(values, values.shape, slope, signed, 0.5, kind)


def test_each_map_has_its_size_and_a_shared_scale_has_one_maximum():
    maps = {HeadId(0, h): small(np.full((4, 4), (h + 1) / 4)) for h in range(3)}
    sizes = dict.fromkeys(maps, (6, 6)) | {HeadId(0, 2): (9, 5), HeadId(5, 0): (3, 3)}
    own, shared = (paint_all(maps, sizes, "viridis", shared=one) for one in (False, True))
    assert {head: one.shape for head, one in own.items()} == {
        head: (*sizes[head][::-1], 4) for head in maps
    }
    first, last = HeadId(0, 0), HeadId(0, 2)
    assert (own[first][0, 0] == own[last][0, 0]).all()
    assert (shared[first][0, 0] != shared[last][0, 0]).any()


def test_a_click_on_a_key_chooses_it_and_a_layer_that_is_not_there_lists_none(
    session, capture, qtbot
):
    with showing(TopKeysPanel, session, 304, 240) as view:
        spot = view.list.visualRect(view.list.order.index(1, 0)).center()
        qtbot.mouseClick(view.list.viewport(), Qt.MouseButton.LeftButton, pos=spot)
        assert session.selection.key == view.list.rows[1].token
        session.put(capture=replace(capture, maps=(*capture.maps[:6], *[None] * 7)))
        session.put(selection=Selection(12, 0, 3))
        view.settle()
        assert not view.content.isVisible()
