"""The map of one head, on screen."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtWidgets import QApplication

from hgviz import palettes
from hgviz.core import Display, Item, Selection
from hgviz.gui.ink import channels
from hgviz.gui.map import MapView
from hgviz.maps import DenseMap
from tests.gui.screen import colour_at, drag, plain, shown, wheel
from tests.making import make_capture

TEXT = "The hourglass was used at sea. When the sand had run down, it was turned."


@pytest.fixture(scope="module")
def small():
    return make_capture(TEXT)


@contextmanager
def mapped(capture, *chosen, size=(704, 713), **fields):
    """The map of a selection: its view, session, canvas and pane."""
    selection = Selection(*chosen)
    with shown(MapView, size, capture=capture, selection=selection, **fields) as (view, session):
        yield view, session, view.canvas, view.canvas.panes[0]


def with_weights(capture, layer, weights):
    """The capture with known weights (heads, rows, columns) in one layer."""
    heads = capture.spec.layers[layer].heads
    maps = list(capture.maps)
    maps[layer] = DenseMap(np.asarray(weights, np.float32), heads, False, causal=True)
    return replace(capture, maps=tuple(maps))


# --- the picture ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["sqrt", "log"])
def test_known_weights_have_exactly_their_colours(app, scale):
    weights = np.array([[[1, 0, 0, 0], [0.25, 0.75, 0, 0], [0, 0, 1, 0], [0.1, 0.2, 0.3, 0.4]]])
    capture = with_weights(make_capture("abcd", heads=1), 0, weights)
    with mapped(capture, 0, 0, display=Display(scale=scale)) as (_, _, canvas, pane):
        cells = channels(pane.picture.pixels)[48::96, 48::96]
        seen = np.tril(np.ones((4, 4), bool))
        places = palettes.palette_coordinates(weights[0], (0.0, 1.0), scale)
        expected = palettes.paint(places, palettes.colours("viridis"))
        assert np.array_equal(cells[seen][:, :3], expected[seen])
        assert (cells[seen][:, 3] == 255).all() and not cells[~seen].any()
        place = canvas.cell_rect(3, 1).center()  # the screen shows the same
        assert colour_at(canvas, place.x(), place.y()) == tuple(cells[3, 1, :3])


@pytest.mark.parametrize(("layer", "cell"), [(2, (3, 7)), (8, (7, 3))])  # down and up
def test_windows_are_a_band_until_the_whole_is_asked_for(app, layer, cell):
    capture = make_capture(TEXT, windowed=True)
    with mapped(capture, layer, 0, 20, 20) as (view, _, _, pane):
        whole, band = capture.maps[layer].read(0), pane.scene.source.map.read(0)
        assert pane.scene.source.shape[1] == 2 and view.full.isVisible()
        assert band[3, 1] == whole[cell]
        view.full.setChecked(True)
        view.settle()
        assert pane.scene.source.shape == whole.shape


# --- what it says ---------------------------------------------------------------------------------


def test_a_sentence_and_a_card_say_what_the_cell_means(app):
    weights = np.zeros((1, 4, 4))
    weights[0, :, 0] = 1
    weights[0, 3] = [0.89, 0.004, 0.1, 0.006]
    capture = with_weights(make_capture("abcd", heads=1), 0, weights)
    with mapped(capture, 0, 0, 3, 0) as (view, session, canvas, pane):

        def said():
            view.settle()
            return plain(canvas.sentence.text())

        first = "d puts 89 % of its weight on a 3 tokens back."
        assert said() == first and not pane.card.text()
        _, *rows = view.as_table()  # the row of the query
        assert [(row[0], row[2]) for row in rows] == [("3", str(key)) for key in range(4)]
        copied = np.array([float(row[4]) for row in rows], np.float32)
        assert np.array_equal(copied, weights[0, 3].astype(np.float32))
        canvas.pointed.emit((3, 1))  # the card says the cell under the pointer
        assert said() == first and "<0.01" in plain(pane.card.text())
        session.put(hover=None, selection=Selection(0, 0, 1, 3))
        assert said() == "d is masked for b: it comes after the query."
        session.select(query=3, key=None)
        assert said() == "d attends most to a: 89 % of its weight 3 tokens back."
        session.select(query=None)
        canvas.pointed.emit((3, 0))
        assert said().startswith("Point at a cell") and "0.89" in plain(pane.card.text())


# --- pointer and keys -----------------------------------------------------------------------------


def test_a_click_chooses_arrows_move_and_escape_lets_go(app, small, qtbot):
    with mapped(small, 0, 0) as (_, session, canvas, _):
        place = canvas.cell_rect(40, 7).center().toPoint()
        qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=place)
        assert (session.selection.query, session.selection.key) == (40, 7)
        qtbot.keyClick(canvas, Qt.Key.Key_Down)
        qtbot.keyClick(canvas, Qt.Key.Key_Left)
        assert (session.selection.query, session.selection.key) == (41, 6)
        canvas.pointed.emit((41, 9))
        qtbot.keyClick(canvas, Qt.Key.Key_Escape)
        assert session.hover is None and session.selection.query == 41
        qtbot.keyClick(canvas, Qt.Key.Key_Escape)
        assert session.selection.query is None and session.selection.key is None


def test_the_wheel_zooms_at_the_pointer_a_drag_pans_and_a_double_click_fits(app, small, qtbot):
    with mapped(small, 0, 0) as (_, session, canvas, _):
        whole, place = canvas.view, canvas.cell_rect(20, 10).center()
        wheel(canvas, place, 4)
        before = canvas.view
        assert before.down.scale > whole.down.scale and canvas.cell_at(place) == (20, 10)
        wheel(canvas, QPointF(300, 300), 3)
        before = canvas.view
        drag(canvas, QPoint(300, 300), QPoint(260, 270))
        assert canvas.view.across.start == before.across.start + 40
        assert canvas.view.down.start == before.down.start + 30
        assert session.selection.query is None
        qtbot.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=place.toPoint())
        assert canvas.view == whole


# --- another head, another text -------------------------------------------------------------------


def test_limits_can_be_given_or_shared_by_all_heads(app, small):
    with mapped(small, 2, 0) as (view, session, _, pane):
        own = pane.scene.limits[1]
        session.put(display=Display(limits=(0.0, 0.25)))
        assert pane.scene.limits == (0.0, 0.25)
        session.put(display=Display(shared=True))
        view.settle()
        assert pane.scene.limits[1] == pytest.approx(1.0, abs=1e-5) and own < 1


def test_another_text_of_a_corpus_is_shown_at_the_same_zoom(app, small):
    items = tuple(Item(n, "", 1) for n in range(2))
    first = replace(small, items=items, path="many.h5")
    longer = replace(make_capture("Another text. " * 12), items=items, item=1, path="many.h5")
    with mapped(first, 0, 1, 30) as (view, session, canvas, _):
        canvas.zoom(9, canvas.panes[0].rect.topLeft())
        scale = canvas.view.down.scale
        for capture in (longer, first):
            session.put(capture=capture)
            view.settle()
            assert canvas.view.down.scale == canvas.view.across.scale == scale
            assert canvas.view.down.cells == len(capture.prompt)
            first_row, last_row = canvas.view.down.shown  # what is chosen is in sight
            assert first_row <= session.selection.query < last_row


# --- tiles that come ------------------------------------------------------------------------------


def test_a_panned_picture_equals_one_composed_anew(app):
    capture = make_capture("The sand runs. " * 80, heads=1, strides=(1,))
    random = np.random.default_rng(0)
    with mapped(capture, 0, 0) as (view, _, canvas, pane):
        for turns in (2, 9, -4):
            canvas.zoom(turns, canvas.panes[0].rect.center())
            view.settle()
            for step in random.integers(-40, 41, (6, 2)):
                canvas.pan(QPointF(*map(int, step)))
                view.settle()
                moved = pane.picture.pixels
                canvas.compose(afresh=True)
                assert np.array_equal(moved, pane.picture.pixels)


def test_a_window_closes_while_tiles_are_on_their_way(app):
    capture = make_capture("The sand runs. " * 200, heads=1, strides=(1,))
    with mapped(capture, 0, 0, visible=False) as (view, _, _, _):
        view.show()
        for _ in range(4):
            QApplication.processEvents()
    assert view._supply._readers is None


def test_a_map_that_is_not_exact_yet_says_how_close_it_is(app, small, qtbot, monkeypatch):
    with mapped(small, 0, 0) as (_, _, canvas, pane):
        monkeypatch.setattr("hgviz.gui.tiles.quality", lambda *_: "near")
        pane.screen = ()  # other tiles are on screen
        canvas.compose()
        assert not canvas.quality_words(pane)  # what is over in a moment is not worth a word
        words = "loading, within 2.8 %"
        qtbot.waitUntil(lambda: canvas.quality_words(pane) == words, timeout=30_000)


def test_a_click_before_the_next_map_is_there_chooses_nothing(app, small):
    with mapped(small, 0, 0) as (_, session, canvas, _):
        session.put(capture=make_capture("another", heads=1))
        chosen = session.selection
        canvas.clicked.emit(1, 1)
        assert session.selection == chosen
