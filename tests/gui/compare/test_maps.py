"""The maps of A and B and their difference, on screen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from hgviz import palettes
from hgviz.core import HeadId, Selection
from hgviz.gui import heatmap, theme
from hgviz.gui.compare import CompareView
from hgviz.gui.export import Drafts, ExportDialog, Wish
from hgviz.gui.grid import rule_of
from hgviz.gui.opened import Kept
from hgviz.gui.tiles import Key, Part, Source, Tiles
from hgviz.maps import DenseMap
from tests.gui import kinds
from tests.gui.showing import shown
from tests.making import make_capture

TEXT = "The hourglass was used at sea. When the sand had run down, it was turned."
SIZE = 1600, 610


@pytest.fixture(scope="module")
def pair():
    return make_capture(TEXT), make_capture(TEXT, seed=1)


@pytest.fixture(scope="module")
def signed():
    return make_capture(TEXT), make_capture(TEXT, seed=1, signed=True)


def comparing(a, b, head=(0, 0), size=SIZE, **chosen):
    selection = Selection(*head, **chosen)
    return shown(CompareView, size, capture=a, beside=b, selection=selection)


def wheel(pane, place, notches):
    QApplication.sendEvent(
        pane,
        QWheelEvent(
            place, pane.mapToGlobal(place), QPoint(), QPoint(0, 120 * notches),
            Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase, False,
        ),
    )  # fmt: skip


def coloured(weights, scene, dark=False):
    return palettes.paint(
        palettes.place(weights, scene.limits, scene.display.scale, scene.signed), scene.table(dark)
    )


# --- what is shown --------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True])
def test_every_cell_of_the_three_has_the_colour_of_its_weight(app, signed, dark):
    theme.apply(app, dark)
    a, b = signed
    with comparing(a, b) as (view, _):
        panes = view.trio.panes
        weights = a.maps[0].read(0), b.maps[0].read(0)
        step = int(panes[0].view.down.scale)
        seen = np.tri(len(TEXT), dtype=bool)
        for pane, values in zip(panes, (*weights, weights[0] - weights[1]), strict=True):
            cells = pane.pixels[step // 2 :: step, step // 2 :: step]
            assert np.array_equal(cells[seen][:, :3], coloured(values, pane.scene, dark)[seen])
            assert not cells[~seen].any()
    theme.apply(app, False)


def test_from_afar_a_pixel_is_the_largest_difference_of_its_cells(app):
    a, b = (make_capture("sand " * 260, strides=(1,), heads=1, seed=seed) for seed in range(2))
    with comparing(a, b, size=(900, 420)) as (view, _):
        pane = view.trio.panes[2]
        assert pane.view.zoom >= 1 and pane.quality == "exact"
        least = a.maps[0].read(0) - b.maps[0].read(0)
        rows, columns = pane.view.down.bounds(), pane.view.across.bounds()
        for y, x in ((90, 3), (90, 60), (120, 119), (140, 0)):
            cells = least[rows[y] : rows[y + 1], columns[x] : columns[x + 1]].ravel()
            largest = max(cells, key=lambda one: (abs(one), one))
            expected = coloured(np.array([largest]), pane.scene)[0]
            assert np.array_equal(pane.pixels[y, x, :3], expected)


def test_any_signed_side_makes_all_three_diverge_about_one_limit(app, signed):
    for a, b in (signed, signed[::-1]):
        with comparing(a, b) as (view, _):
            scenes = [pane.scene for pane in view.trio.panes]
            peak = max(np.abs(one.maps[0].read(0)).max() for one in (a, b))
            assert all(one.signed for one in scenes)
            assert {one.limits for one in scenes} == {(-peak, peak)}


def test_two_unsigned_sides_share_a_scale_from_zero_and_their_difference_its_reach(app, pair):
    with comparing(*pair) as (view, _):
        a, b, least = (pane.scene for pane in view.trio.panes)
        assert a.limits == b.limits and a.limits[0] == 0
        assert least.limits == (-a.limits[1], a.limits[1])
        assert (a.signed, b.signed, least.signed) == (False, False, True)


def test_gutters_hold_what_rows_add_up_to_on_one_scale(app, signed):
    a, b = signed
    with comparing(a, b) as (view, _):
        weights = a.maps[0].read(0), b.maps[0].read(0)
        for pane, values in zip(view.trio.panes, (*weights, weights[0] - weights[1]), strict=True):
            mass = pane.scene.mass
            np.testing.assert_allclose(mass[:, 0], np.minimum(values, 0).sum(1), atol=1e-5)
            np.testing.assert_allclose(mass[:, 1], np.maximum(values, 0).sum(1), atol=1e-5)
        most = max(np.abs(pane.scene.mass).max() for pane in view.trio.panes)
        assert {pane.most for pane in view.trio.panes} == {float(most)}


def test_without_a_second_one_the_view_says_what_to_do(app, pair):
    with shown(CompareView, SIZE, capture=pair[0]) as (view, _):
        assert view._notice.isVisible() and view._notice.said[0] == view.empty
        assert view.empty[0] == "Nothing to compare with yet"


def test_a_layer_that_a_has_not_captured_is_said(app, pair):
    a, b = pair
    halted = replace(a, maps=(None, *a.maps[1:]))
    with comparing(halted, b) as (view, _):
        assert view.empty[0] == "Layer 0 of A is not captured yet"


def test_two_tokens_and_one_are_shown_as_well(app):
    for text in ("ab", "a"):
        a, b = (make_capture(text, strides=(1,), seed=seed) for seed in range(2))
        with comparing(a, b) as (view, _):
            assert view.trio.panes[2].pixels.any() and view.trio.view.down.scale <= 96


# --- other cells ----------------------------------------------------------------------------------


def test_a_head_that_only_a_has_leaves_cards_that_say_so(app, pair):
    a, b = pair[0], make_capture(TEXT, heads=3)
    with comparing(a, b, head=(0, 5), query=20, key=10) as (view, session):
        cards = view.trio._lacks
        assert [card.isVisible() for card in cards] == [True, True]
        assert cards[0].what.text() == "B has no head 0.5"
        assert view.trio.panes[0].pixels.any() and view.trio.panes[1].scene is None
        view.grab()
        session.select(layer=0, head=1)
        view.settle()
        assert not any(card.isVisible() for card in cards)
        assert all(pane.pixels.any() for pane in view.trio.panes)


def test_a_pruned_side_stays_beside_the_heads_it_kept(app, pair):
    a, b = pair
    spec, whole = b.spec.layers[0], b.maps[0].read(4)
    layers = (replace(spec, heads=(4,), activations=("softmax",)), *b.spec.layers[1:])
    ragged = replace(
        b, spec=replace(b.spec, layers=layers), maps=(DenseMap(whole[None], (4,)), *b.maps[1:])
    )
    with comparing(a, ragged, head=(0, 4), query=20, key=10) as (view, session):
        assert "0.4" in view.head.title.text()
        assert view._compared.rows[20][1][10] == pytest.approx(whole[20, 10])
        session.select(layer=0, head=3)
        view.settle()
        assert view.trio._lacks[0].what.text() == "B has no head 0.3"


def test_texts_that_share_no_word_have_no_difference(app):
    with comparing(make_capture("aaaa"), make_capture("bbbb")) as (view, _):
        shows = [card.isVisible() for card in view.trio._lacks]
        assert shows == [False, True]
        assert view.trio._lacks[1].what.text() == "Nothing in common"


def test_what_only_one_text_has_lies_under_a_hatching_in_the_other(app):
    with comparing(make_capture("one two four"), make_capture("one two three four")) as (view, _):
        a, b, least = view.trio.panes
        assert not a.there[0].all() and b.there[0].all() and a.worded and b.worded
        gone = int(np.flatnonzero(~a.there[0])[0])
        for pane, hidden in ((a, True), (b, False), (least, True)):
            step = int(pane.view.down.scale)
            assert pane.pixels[gone * step + 1, 1].any() != hidden
        plain = a.grab().toImage()
        a.there = None
        assert a.grab().toImage() != plain


def test_two_levels_of_one_hourglass_stand_beside_each_other_in_tokens(app, pair):
    a = pair[0]
    middle = next(one.index for one in a.spec.layers if one.role == "self" and one.level == 2)
    with comparing(a, a, query=40, key=9, beside=HeadId(middle, 2)) as (view, session):
        assert view.trio.panes[1].scene.source.shape == (len(TEXT), len(TEXT))
        assert view.head.title.text() == f"Head 0.0 beside {middle}.2"
        assert "spread to letters" in view.legend.full
        found = a.maps[middle].read(2)[40 // 4, 3] / 4
        assert view._compared.rows[40][1][9] == pytest.approx(found, abs=1e-6)
        session.select(layer=1, head=3)
        assert session.selection.beside == HeadId(middle, 2)


KINDS = {
    "hourglass": lambda: make_capture(TEXT),
    "windowed": lambda: make_capture(TEXT, windowed=True, signed=True),
    "bert": kinds.bert,
    "pair": lambda: kinds.bert(pair=kinds.PAIR, seed=2),
    "gpt2": kinds.gpt2,
    "translator": kinds.translator,
    "slots": kinds.yubert,
}


@pytest.fixture(scope="module")
def every():
    return {name: make() for name, make in KINDS.items()}


@pytest.mark.parametrize("one", KINDS)
def test_any_head_stands_beside_any_of_any_model(app, every, one):
    a = every[one]
    with shown(CompareView, (1100, 500), capture=a) as (view, session):
        for name, b in every.items():
            session.put(beside=b)
            for layer in (0, len(a.spec.layers) - 1):
                other = HeadId(len(b.spec.layers) - 1 - layer % len(b.spec.layers), 1)
                session.put(selection=Selection(layer, 1, 4, 2, other))
                view.settle()
                found = view._compared
                assert found.meeting.other == other and found.masses is not None
                assert view.trio.panes[0].quality == "exact", name
                check_difference(found)
                view.grab()


def check_difference(found):
    """A − B is what A weighs less what B weighs where both stand for something, else nothing."""
    a, b, least = (one.map.read(one.head) for one in found.sources)
    both = np.ix_(found.meeting.rows.both, found.meeting.columns.both)
    expected = np.zeros_like(least)
    expected[both] = (a - b)[both]
    assert np.array_equal(least, expected)


# --- moving ---------------------------------------------------------------------------------------


def test_what_moves_in_one_moves_in_all_three_at_once(app, pair):
    with comparing(*pair) as (view, _):
        panes = view.trio.panes
        rect = panes[1].map_rect
        wheel(panes[1], rect.center(), 5)
        assert len({pane.view for pane in panes}) == 1 and not panes[0].view.whole
        before = panes[0].view
        panes[2].pan(QPointF(-30, -20))
        assert len({pane.view for pane in panes}) == 1 and panes[0].view != before
        view.settle()
        assert all(pane.quality == "exact" for pane in panes)
        view.fit()
        assert all(pane.view.whole for pane in panes)


def test_a_drag_and_a_double_click_do_the_same(app, pair, qtbot):
    with comparing(*pair) as (view, _):
        panes = view.trio.panes
        wheel(panes[0], panes[0].map_rect.center(), 4)
        before, start = panes[0].view, panes[2].map_rect.center().toPoint()
        qtbot.mousePress(panes[2], Qt.MouseButton.LeftButton, pos=start)
        qtbot.mouseMove(panes[2], start - QPoint(25, 0))
        qtbot.mouseRelease(panes[2], Qt.MouseButton.LeftButton, pos=start - QPoint(25, 0))
        assert panes[0].view == panes[1].view == panes[2].view != before
        qtbot.mouseDClick(panes[1], Qt.MouseButton.LeftButton, pos=start)
        assert all(pane.view.whole for pane in panes)


def test_one_cursor_says_what_each_weighs_there(app, signed):
    a, b = signed
    with comparing(a, b, query=30) as (view, session):
        view.trio.panes[1].pointed.emit((30, 12))
        view.settle()
        weights = [one.maps[0].read(0)[30, 12] for one in (a, b)]
        assert session.hover.query == 30 and session.hover.key == 12
        assert {(pane.cross.row, pane.cross.column) for pane in view.trio.panes} == {(30, 12)}
        said = [pane.card.text for pane in view.trio.panes]
        for text, value in zip(said, (*weights, weights[0] - weights[1]), strict=True):
            shown_ = f"{abs(value):.3f}" if abs(value) >= 0.001 else "&lt;0.001"
            assert shown_ in text
        view.trio.panes[1].pointed.emit(None)
        assert session.hover is None


def test_a_click_in_any_of_them_fixes_query_and_key(app, pair, qtbot):
    with comparing(*pair) as (view, session):
        pane = view.trio.panes[2]
        place = pane.cell_rect(44, 21).center().toPoint()
        qtbot.mouseClick(pane, Qt.MouseButton.LeftButton, pos=place)
        assert (session.selection.query, session.selection.key) == (44, 21)
        qtbot.keyClick(pane, Qt.Key.Key_Down)
        qtbot.keyClick(pane, Qt.Key.Key_Left)
        assert (session.selection.query, session.selection.key) == (45, 20)
        qtbot.keyClick(pane, Qt.Key.Key_Escape)
        assert session.selection.query is None


def test_masked_cells_and_those_one_side_lacks_are_said_on_their_cards(app):
    a, b = make_capture("one two four"), make_capture("one two three four")
    with comparing(a, b, query=3, key=1) as (view, session):
        gone = int(np.flatnonzero(~view.trio.panes[0].there[0])[0])
        session.put(selection=Selection(0, 0))
        view.settle()
        view._pointed = gone, 1
        view._compared.rows[gone] = tuple(np.zeros(18, np.float32) for _ in range(2))
        view._follow()
        said = [pane.card.text for pane in view.trio.panes]
        assert "not in A" in said[0] and "nothing to compare" in said[2]


# --- room -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(1600, 610), (1280, 420), (900, 330), (1000, 980), (500, 300)])
def test_all_three_are_equally_large_in_any_window_and_none_lies_over_another(app, pair, size):
    with comparing(*pair, size=size) as (view, _):
        panes = view.trio.panes
        rects = [pane.map_rect.translated(QPointF(pane.pos())) for pane in panes]
        assert len({rect.size().toTuple() for rect in rects}) == 1
        for number, rect in enumerate(rects):
            assert not any(rect.intersects(other) for other in rects[number + 1 :])


def test_in_a_narrow_high_window_the_difference_stands_below(app, pair):
    with comparing(*pair, size=(1000, 980)) as (view, _):
        a, b, least = view.trio.panes
        assert a.y() == b.y() < least.y() and least.worded
    with comparing(*pair, size=SIZE) as (view, _):
        assert len({pane.y() for pane in view.trio.panes}) == 1
        assert not view.trio.panes[2].worded


def test_blinking_swaps_a_and_b_in_one_place_twice_a_second(app, pair, until):
    with comparing(*pair) as (view, _):
        a, b, least = view.trio.panes
        view._choose_way("blink")
        assert view.trio._blinking.interval() == heatmap.BLINK == 500
        assert a.isVisible() and not b.isVisible() and least.isVisible()
        assert a.geometry() == b.geometry()
        until(b.isVisible, 5)
        assert not a.isVisible() and a.view == b.view
        view._choose_way("beside")
        assert a.isVisible() and b.isVisible() and a.x() < b.x()
        view._choose_way("blink")
        view.hide()
        assert not view.trio._blinking.isActive()
        view.show()
        assert view.trio._blinking.isActive()


# --- long texts -----------------------------------------------------------------------------------


def test_the_difference_is_made_of_tiles_that_are_there(app, pair, monkeypatch):
    a = pair[0]
    source, cache = Source(a.maps[0], 0, rule_of(a, HeadId(0, 0))), Tiles()
    kept = Kept(source, cache)
    cache.read(Part(Key(source, 0, 0, 0), 0, 0))
    expected = a.maps[0].read(0, (0, 73), (0, 73))
    monkeypatch.setattr(a.maps[0], "read", lambda *args: pytest.fail("it was there"))
    assert np.array_equal(kept.read(0, (0, 256), (0, 256)), expected)


def test_a_long_text_is_read_in_lanes_and_pans_while_it_comes(app, until):
    text = "When the sand had run down, it was turned. " * 60
    a, b = (make_capture(text, strides=(1,), heads=1, seed=seed) for seed in range(2))
    with shown(CompareView, SIZE, visible=False, capture=a, beside=b) as (view, session):
        session.put(selection=Selection(0, 0, 900))
        view.show()
        until(lambda: view.trio.view is not None)
        for pane in view.trio.panes:
            pane.zoom(20, pane.map_rect.center())
        view.trio.panes[0].pan(QPointF(400, 300))
        until(lambda: all(pane.quality == "exact" for pane in view.trio.panes))
        pane = view.trio.panes[2]
        row, column = pane.view.down.shown()[1] - 2, pane.view.across.shown()[0] + 1
        place = (pane.cell_rect(row, column).center() - pane.map_rect.topLeft()).toPoint()
        least = (a.maps[0].read(0, row_(row), row_(column)) - b.maps[0].read(
            0, row_(row), row_(column)))  # fmt: skip
        expected = coloured(least[0], pane.scene)[0]
        assert np.array_equal(pane.pixels[place.y(), place.x(), :3], expected)


def row_(cell):
    return cell, cell + 1


# --- on paper -------------------------------------------------------------------------------------


def test_what_is_exported_are_the_three_maps(program, pair, tmp_path, until):
    a, b = pair
    program.session.put(capture=a, beside=b, mode="compare", selection=Selection(0, 2))
    program.settle()
    spec = program.compare.maps.figure(program.session)
    assert spec.kind == "compare"
    program.commands.export()
    dialog = next(one for one in program.frame.findChildren(ExportDialog) if one.isVisible())
    assert dialog.choices.kind.currentData() == "compare"
    dialog.finish()
    wish = Wish(spec, (a, b), Drafts({}), "three.svg")
    program.commands._export_to(wish, str(tmp_path / "three.svg"))
    until(lambda: (tmp_path / "three.svg").exists())
    said = (tmp_path / "three.svg").read_text()
    assert "A − B" in said and "0.2" in said
