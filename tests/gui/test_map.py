"""The map of one head, on screen."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtWidgets import QApplication

from hgviz import palettes
from hgviz.analysis.roles import roles
from hgviz.core import Capture, Display, HeadId, Item, Selection
from hgviz.gui import theme
from hgviz.gui.map import MapView
from hgviz.gui.tiles import wanted
from hgviz.maps import DenseMap, LazyMap
from tests.gui.screen import colour_at, drag, plain, shown, wheel
from tests.making import byte_prompt, level_spans, make_capture, make_factors

TEXT = "The hourglass was used at sea. When the sand had run down, it was turned."


@pytest.fixture(scope="module")
def small():
    return make_capture(TEXT)


def with_weights(capture, layer, weights, signed=False):
    """The capture with known weights (heads, rows, columns) in one layer."""
    spec = capture.spec.layers[layer]
    maps = list(capture.maps)
    maps[layer] = DenseMap(np.asarray(weights, np.float32), spec.heads, signed, causal=True)
    return replace(capture, maps=tuple(maps))


def click(view, row, column, modifiers=Qt.KeyboardModifier.NoModifier, qtbot=None):
    place = view.canvas.cell_rect(row, column).center().toPoint()
    qtbot.mouseClick(view.canvas, Qt.MouseButton.LeftButton, modifiers, place)


def hover(view, row, column):
    view.canvas.pointed.emit((row, column))


# --- the picture ----------------------------------------------------------------------------------


def test_known_weights_have_exactly_their_colours(app):
    capture = make_capture("abcd", heads=1)
    weights = np.array([[[1, 0, 0, 0], [0.25, 0.75, 0, 0], [0, 0, 1, 0], [0.1, 0.2, 0.3, 0.4]]])
    capture = with_weights(capture, 0, weights)
    with shown(MapView, capture=capture, selection=Selection(0, 0)) as (view, _):
        cells = view.canvas.panes[0].pixels[48::96, 48::96]
    table = palettes.colours("viridis")
    expected = palettes.paint(palettes.palette_coordinates(weights[0], (0.0, 1.0), "sqrt"), table)
    seen = np.tril(np.ones((4, 4), bool))
    assert np.array_equal(cells[seen][:, :3], expected[seen])
    assert (cells[seen][:, 3] == 255).all()
    assert not cells[~seen].any()


def test_the_screen_shows_the_composed_pixels(app, small):
    with shown(MapView, capture=small, selection=Selection(0, 0)) as (view, _):
        picture = view.canvas.grab().toImage()
        rect = view.canvas.map_rect()
        for row, column in ((10, 3), (40, 40), (70, 0)):
            place = view.canvas.cell_rect(row, column).center()
            spot = (place - rect.topLeft()).toPoint()
            handed = view.canvas.panes[0].pixels[spot.y(), spot.x(), :3]
            assert picture.pixelColor(place.toPoint()).getRgb()[:3] == tuple(handed)


def test_masked_cells_look_unlike_zero_and_unlike_a_head_that_is_off(app, small):
    with shown(MapView, capture=small, selection=Selection(0, 0)) as (view, session):
        seen = view.canvas.panes[0].pixels[-10, 10]
        assert seen[3] == 255
        assert view.canvas.panes[0].pixels[10, -10, 3] == 0
        hidden = view.canvas.cell_rect(1, 60).center()
        assert min(colour_at(view.canvas, hidden.x(), hidden.y())) > 200
        before = view.canvas.grab().toImage()
        session.put(off=frozenset({HeadId(0, 0)}))
        view.settle()
        assert view.canvas.panes[0].scene.off
        assert view.canvas.grab().toImage() != before


def test_the_whole_map_of_a_signed_head_is_about_zero(app):
    capture = make_capture("abcdefgh" * 4, signed=True)
    with shown(MapView, capture=capture, selection=Selection(1, 0)) as (view, _):
        scene = view.canvas.panes[0].scene
        assert scene.limits[0] == -scene.limits[1]
        whole = capture.maps[1].read(0)
        assert scene.limits[1] == pytest.approx(np.abs(whole).max())
        assert np.allclose(scene.mass[:, 0], np.minimum(whole, 0).sum(axis=1), atol=1e-5)
        assert np.allclose(scene.mass[:, 1], np.maximum(whole, 0).sum(axis=1), atol=1e-5)
        table = palettes.colours("blue-red")
        zero = palettes.paint(
            palettes.palette_coordinates(np.zeros(1), scene.limits, "sqrt", True), table
        )
        assert np.abs(zero[0].astype(int) - (247, 247, 245)).max() <= 3


def test_the_dark_theme_keeps_the_colours_of_unsigned_data(app, small):
    with shown(MapView, capture=small, selection=Selection(0, 0)) as (view, _):
        light = view.canvas.panes[0].pixels.copy()
        theme.apply(app, dark=True)
        QApplication.processEvents()
        assert np.array_equal(view.canvas.panes[0].pixels, light)


def test_with_two_pixels_to_one_every_cell_is_a_square_of_whole_device_pixels(
    app, small, monkeypatch
):
    monkeypatch.setattr("hgviz.gui.heatmap.MapCanvas._ratio", property(lambda self: 2.0))
    with shown(MapView, capture=small, selection=Selection(0, 0)) as (view, _):
        scale = int(view.canvas.view.down.scale)
        assert scale == 2 * 544 // len(small.prompt)
        height, width = view.canvas.panes[0].pixels.shape[:2]
        assert (height, width) == (scale * len(small.prompt),) * 2
        assert view.canvas.map_rect().width() == width / 2
        block = view.canvas.panes[0].pixels[-scale:, :scale]
        assert (block == block[0, 0]).all()


def test_a_long_map_is_never_read_whole(app):
    capture = make_capture("ab" * 32, heads=1, strides=(1,))
    prompt, spec, random = byte_prompt("x" * 8192), capture.spec, np.random.default_rng(0)
    factors = make_factors(random, 8192, 8192, spec.layers[0], spec, prompt)
    asked = []

    class Watched(LazyMap):
        def read(self, head, rows=None, columns=None, zoom=0, reduce="max"):
            asked.append((rows, columns, zoom))
            return super().read(head, rows, columns, zoom, reduce)

    maps = (Watched(factors, (0,)), None, None)
    capture = Capture(spec, prompt, level_spans(8192, (1,), True), maps)
    chosen = Selection(0, 0, 8000)
    with shown(MapView, (260, 240), capture=capture, selection=chosen) as (view, _):
        assert view.canvas.view.zoom == 6
        assert view.canvas.panes[0].pixels[..., 3].any()
        assert view.canvas.panes[0].scene.limits[1] == pytest.approx(1.0, abs=0.02)
    cells = [
        (8192 if rows is None else rows[1] - rows[0])
        * (8192 if columns is None else columns[1] - columns[0])
        for rows, columns, _ in asked
    ]
    assert max(cells) <= 2048 * 2048


def test_tiles_that_come_one_by_one_end_in_the_same_picture(app, qtbot):
    capture = make_capture("The sand runs. " * 40, heads=1, strides=(1,))
    chosen = Selection(0, 0, 300)
    with shown(MapView, capture=capture, selection=chosen) as (view, _):
        together = view.canvas.panes[0].pixels.copy()
    with shown(MapView, visible=False, capture=capture, selection=chosen) as (view, _):
        view.show()
        qtbot.waitUntil(
            lambda: np.array_equal(view.canvas.panes[0].pixels, together), timeout=30_000
        )


def test_a_hidden_map_does_no_work(app, small, qtbot):
    with shown(MapView, visible=False, capture=small, selection=Selection(0, 0)) as (view, session):
        session.put(selection=Selection(0, 1, 5))
        qtbot.wait(120)
        assert view.canvas.panes[0].scene is None and len(view.tiles) == 0


@pytest.mark.parametrize("text", ["a", "ab"])
def test_one_and_two_tokens_have_a_map(app, text):
    for layer in (0, 2, 8):
        chosen = Selection(layer, 0, 0, 0)
        with shown(MapView, capture=make_capture(text), selection=chosen) as (view, _):
            assert view.canvas.panes[0].pixels.shape[0] <= 192
            assert view.canvas.sentence.text()


@pytest.mark.parametrize("size", [(240, 160), (300, 900), (1400, 300)])
def test_the_map_fits_any_room(app, small, size):
    with shown(MapView, size, capture=small, selection=Selection(0, 0, 10, 3)) as (view, _):
        rect = view.canvas.map_rect()
        assert view.canvas.rect().contains(rect.toAlignedRect())
        assert view.canvas.sentence.geometry().left() >= 0


def test_a_layer_that_is_not_captured_yet_says_so(app, small):
    partial = replace(small, maps=(*small.maps[:3], *(None for _ in small.maps[3:])))
    with shown(MapView, capture=partial, selection=Selection(5, 0)) as (view, session):
        assert view.empty[0] == "Layer 5 is not captured yet"
        session.put(capture=small)
        view.settle()
        assert view.canvas.panes[0].scene is not None


@pytest.mark.parametrize("layer", [2, 4, 8, 10])
def test_full_resampling_keeps_square_cells(app, small, layer):
    _, rows, columns = small.maps[layer].shape
    assert rows != columns
    with shown(MapView, capture=small, selection=Selection(layer, 0)) as (view, _):
        height, width = view.canvas.panes[0].pixels.shape[:2]
        assert width * rows == height * columns
        assert not view.full.isVisible()


@pytest.mark.parametrize(("layer", "shape"), [(2, (37, 2)), (8, (19, 2))])
def test_windows_are_a_band_until_the_whole_is_asked_for(app, layer, shape):
    capture = make_capture(TEXT, windowed=True)
    chosen = Selection(layer, 0, 20, 20)
    with shown(MapView, capture=capture, selection=chosen) as (view, _):
        assert view.canvas.panes[0].scene.source.shape == shape
        assert view.full.isVisible()
        whole = capture.maps[layer].read(0)
        down = capture.spec.layers[layer].role == "down"
        band = view.canvas.panes[0].scene.source.map.read(0)
        row, place = 3, 1
        where = (row, 2 * row + place) if down else (2 * row + place, row)
        assert band[row, place] == whole[where]
        view.full.setChecked(True)
        view.settle()
        assert view.canvas.panes[0].scene.source.shape == whole.shape


# --- reading it -----------------------------------------------------------------------------------


def test_a_sentence_and_a_card_say_what_the_cell_means(app):
    capture = make_capture("abcd", heads=1)
    weights = np.zeros((1, 4, 4))
    weights[0, :, 0] = 1
    weights[0, 3] = [0.89, 0.004, 0.1, 0.006]
    capture = with_weights(capture, 0, weights)
    with shown(MapView, capture=capture, selection=Selection(0, 0, 3, 0)) as (view, session):

        def said():
            view.settle()
            return plain(view.canvas.sentence.text())

        first = "d puts 89 % of its weight on a 3 letters back."
        assert said() == first and not view.canvas.panes[0].card.text
        hover(view, 3, 1)  # the card says the cell under the pointer, the sentence what is chosen
        assert said() == first and "<0.01" in plain(view.canvas.panes[0].card.text)
        hover(view, 3, 0)
        assert said() == first and not view.canvas.panes[0].card.text
        session.put(hover=None, selection=Selection(0, 0, 1, 3))
        assert said() == "d is masked for b: it comes after the query."
        session.select(query=3, key=None)
        assert said() == "d attends most to a: 89 % of its weight 3 letters back."
        session.select(query=None)
        assert said().startswith("Point at a cell")
        hover(view, 3, 0)
        assert said().startswith("Point at a cell") and "0.89" in plain(
            view.canvas.panes[0].card.text
        )


def test_a_text_of_html_and_marks_stays_text(app):
    capture = make_capture("<b>&amp;\u202eabc")
    with shown(MapView, capture=capture, selection=Selection(0, 0, 0, 0)) as (view, session):
        for token in range(len(capture.prompt)):
            session.select(query=token, key=token)
            view.settle()
            assert "\u202e" not in plain(view.canvas.sentence.text())
        assert plain(view.canvas.sentence.text()).startswith("c puts")
        session.select(query=0, key=0)
        assert plain(view.canvas.sentence.text()).startswith("< puts")


def test_the_pointer_moves_the_key_and_keeps_a_chosen_query(app, small):
    with shown(MapView, capture=small, selection=Selection(0, 0, 30, 5)) as (view, session):
        hover(view, 50, 12)
        assert session.hover == Selection(0, 0, 30, 12)
        assert session.selection == Selection(0, 0, 30, 5)
        assert (view.canvas.panes[0].cross.row, view.canvas.panes[0].cross.column) == (30, 12)
        view.canvas.pointed.emit(None)
        assert session.hover is None
        assert (view.canvas.panes[0].cross.row, view.canvas.panes[0].cross.column) == (30, 5)
        session.put(selection=Selection(0, 0))  # without a query both move
        view.settle()
        hover(view, 50, 12)
        assert session.hover == Selection(0, 0, 50, 12)
        view.settle()
        assert "from" in plain(view.canvas.panes[0].card.text)


def test_a_click_chooses_query_and_key(app, small, qtbot):
    with shown(MapView, capture=small, selection=Selection(0, 0)) as (view, session):
        click(view, 40, 7, qtbot=qtbot)
        assert (session.selection.query, session.selection.key) == (40, 7)


def test_at_a_coarser_level_a_cell_means_its_newest_token(app, small, qtbot):
    with shown(MapView, capture=small, selection=Selection(5, 0)) as (view, session):
        click(view, 10, 4, qtbot=qtbot)
        assert (session.selection.query, session.selection.key) == (40, 16)
        view.settle()
        hover(view, 10, 5)
        assert "letters 37 to 40" in plain(view.canvas.panes[0].card.text)


def test_the_arrows_move_query_and_key_and_escape_lets_go(app, small, qtbot):
    with shown(MapView, capture=small, selection=Selection(0, 0, 30, 5)) as (view, session):
        qtbot.keyClick(view.canvas, Qt.Key.Key_Down)
        qtbot.keyClick(view.canvas, Qt.Key.Key_Left)
        assert (session.selection.query, session.selection.key) == (31, 4)
        hover(view, 31, 9)
        qtbot.keyClick(view.canvas, Qt.Key.Key_Escape)
        assert session.hover is None and session.selection.query == 31
        qtbot.keyClick(view.canvas, Qt.Key.Key_Escape)
        assert session.selection.query is None and session.selection.key is None


@pytest.mark.parametrize("size", [(700, 640), (500, 440)])
def test_the_card_is_off_the_row_of_its_cell_and_off_axes_and_colours(app, small, size):
    with shown(MapView, size, capture=small, selection=Selection(0, 0)) as (view, session):
        shows = []
        for query, key in ((5, 2), (30, 5), (70, 1), (70, 68), (72, 72)):
            view.canvas.pointed.emit((query, key))
            view.settle()
            canvas, card = view.canvas, view.canvas.panes[0].card
            cell, inside = canvas.cell_rect(query, key), canvas.map_rect().toAlignedRect()
            shows.append(card.isVisible())
            if shows[-1]:
                box = card.geometry()
                below = box.top() > max(inside.bottom(), canvas.sentence.geometry().bottom())
                assert canvas.rect().contains(box) and (below or inside.contains(box))
                assert box.top() >= cell.bottom() + 21 or box.bottom() <= cell.top() - 21
        assert any(shows)


def test_the_wheel_zooms_at_the_pointer_and_double_click_fits(app, small, qtbot):
    with shown(MapView, capture=small, selection=Selection(0, 0)) as (view, _):
        whole = view.canvas.view
        place = view.canvas.cell_rect(20, 10).center()
        wheel(view.canvas, place, 4)
        assert view.canvas.view.down.scale > whole.down.scale
        assert view.canvas.cell_at(place) == (20, 10)
        qtbot.mouseDClick(view.canvas, Qt.MouseButton.LeftButton, pos=place.toPoint())
        assert view.canvas.view == whole


def test_dragging_pans(app, small, qtbot):
    with shown(MapView, capture=small, selection=Selection(0, 0)) as (view, session):
        wheel(view.canvas, QPointF(300, 300), 6)
        before = view.canvas.view
        drag(view.canvas, QPoint(300, 300), QPoint(260, 270))
        after = view.canvas.view
        assert after.across.start == before.across.start + 40
        assert after.down.start == before.down.start + 30
        assert session.selection.query is None


def test_the_scale_of_colours_is_that_of_the_session(app, small):
    with shown(MapView, capture=small, selection=Selection(0, 0)) as (view, session):
        session.put(display=Display(scale="log"))
        values = small.maps[0].read(0)
        table = palettes.colours("viridis")
        cell = view.canvas.cell_rect(60, 2).center() - view.canvas.map_rect().topLeft()
        colour = palettes.paint(
            palettes.palette_coordinates(values, view.canvas.panes[0].scene.limits, "log"), table
        )
        handed = view.canvas.panes[0].pixels[int(cell.y()), int(cell.x()), :3]
        assert tuple(handed) == tuple(colour[60, 2])


def test_limits_can_be_given_or_shared_by_all_heads(app, small):
    with shown(MapView, capture=small, selection=Selection(2, 0)) as (view, session):
        own = view.canvas.panes[0].scene.limits[1]
        session.put(display=Display(limits=(0.0, 0.25)))
        assert view.canvas.panes[0].scene.limits == (0.0, 0.25)
        session.put(display=Display(shared=True))
        view.settle()
        assert view.canvas.panes[0].scene.limits[1] == pytest.approx(1.0, abs=1e-5) and own < 1


def test_another_head_keeps_the_part_on_screen_where_the_shape_stays(app, small):
    with shown(MapView, capture=small, selection=Selection(0, 0)) as (view, session):
        wheel(view.canvas, QPointF(300, 300), 5)
        seen = view.canvas.view
        session.put(selection=Selection(1, 3))
        view.settle()
        assert view.canvas.view == seen
        session.put(selection=Selection(5, 0))
        view.settle()
        assert view.canvas.view.whole


def test_a_growing_capture_keeps_what_was_opened(app, small):
    partial = replace(small, maps=(*small.maps[:3], *(None for _ in small.maps[3:])))
    with shown(MapView, capture=partial, selection=Selection(0, 0)) as (view, session):
        source = view.canvas.panes[0].scene.source
        session.put(capture=small)
        view.settle()
        assert view.canvas.panes[0].scene.source is source
        session.put(capture=make_capture(TEXT, seed=1))
        view.settle()
        assert view.canvas.panes[0].scene.source is not source
        assert not [key for key in view.tiles._tiles if key.source is source]


def test_a_long_role_is_elided_and_never_pushes_the_controls_out(app, small):
    head = roles(small)[HeadId(0, 0)]
    facts = {HeadId(0, 0): replace(head, role="last comma or full stop")}
    chosen = Selection(0, 0)
    with shown(MapView, capture=small, selection=chosen, facts=facts) as (view, _):
        assert view.role.text() == "last comma or full stop"
        view.resize(330, 500)
        QApplication.processEvents()
        assert view.role.text().endswith("…")
        assert view.role.toolTip() == "last comma or full stop"
        assert view.export.geometry().right() < view.head.width()
        assert view.role.geometry().right() < view.level.geometry().left()


def test_the_map_of_an_edited_text_is_marked_as_old(app, small):
    with shown(MapView, capture=small, selection=Selection(0, 0)) as (view, session):
        assert view.before.isHidden()
        session.put(text="another")
        view.settle()
        assert view.before.isVisible() and view.canvas.panes[0].scene is not None


# --- a text that grows ----------------------------------------------------------------------------


def test_a_map_that_grows_stays_fitted_and_keeps_what_is_pointed_at(app, small):
    with shown(MapView, capture=small, selection=Selection(0, 1, 30)) as (view, session):
        hover(view, 30, 12)
        session.put(capture=make_capture(TEXT + " More of it came."))
        view.settle()
        assert view.canvas.view.whole
        assert view.canvas.view.down.cells == len(session.capture.prompt) > len(small.prompt)
        assert view.canvas.panes[0].cross.row == 30 and session.hover.key == 12


def test_a_part_of_a_map_that_grows_stays_where_it_was(app, small):
    with shown(MapView, capture=small, selection=Selection(0, 1, 70)) as (view, session):
        view.canvas.zoom(6, view.canvas.map_rect().topLeft())  # the query is out of sight
        before, seen = view.canvas.view, view.canvas.panes[0].pixels.copy()
        session.put(capture=grown(small, 20))
        view.settle()
        after = view.canvas.view
        assert (after.down.start, after.down.scale) == (before.down.start, before.down.scale)
        assert after.across.start == before.across.start
        assert after.down.cells == before.down.cells + 20
        assert np.array_equal(view.canvas.panes[0].pixels, seen)
        session.put(capture=make_capture("Another text."))
        view.settle()
        assert view.canvas.view.whole


def test_another_head_of_a_text_that_grew_is_shown_whole(app, small):
    with shown(MapView, capture=small, selection=Selection(0, 1, 70)) as (view, session):
        view.canvas.zoom(6, view.canvas.map_rect().topLeft())
        session.put(capture=grown(small, 20))
        session.select(layer=3)
        view.settle()
        assert view.canvas.view.whole


def test_no_tile_is_asked_for_outside_of_a_smaller_map(app, qtbot):
    """Its view is that of the map before until it is shown."""
    large = make_capture("A text. " * 120, (1,), 2)
    with shown(MapView, capture=large, selection=Selection(0, 0, 900)) as (view, session):
        wrong = []
        asked = view._supply.want
        view._supply.want = lambda opened, hurry: (
            wrong.append(hurry)
            if view.canvas.view.down.cells != opened.sources[0].shape[0]
            else None,
            asked(opened, hurry),
        )
        session.put(capture=make_capture("Short.", (1, 2), 2))
        qtbot.waitUntil(lambda: view.canvas.panes[0].scene.source.shape == (6, 6))
        assert not wrong


def test_another_text_of_a_corpus_is_shown_at_the_same_zoom(app, small):
    items = tuple(Item(n, "", 1) for n in range(3))
    first = replace(small, items=items, path="many.h5")
    longer = replace(make_capture("Another text. " * 12), items=items, item=1, path="many.h5")
    with shown(MapView, capture=first, selection=Selection(0, 1, 30)) as (view, session):
        view.canvas.zoom(9, view.canvas.map_rect().topLeft())
        scale = view.canvas.view.down.scale
        for capture in (longer, first):
            session.put(capture=capture)
            view.settle()
            assert view.canvas.view.down.scale == view.canvas.view.across.scale == scale
            assert view.canvas.view.down.cells == len(capture.prompt)
            row = session.selection.query  # what is chosen is in sight
            assert view.canvas.view.down.shown()[0] <= row < view.canvas.view.down.shown()[1]
        tiny = replace(make_capture("ab"), items=items, item=2, path="many.h5")
        session.put(capture=tiny)
        view.settle()
        assert view.canvas.view.whole and view.canvas.view.down.scale > scale


def grown(capture, tokens):
    """The capture with so many more tokens in its text; of layer 0 head 1 the maps are known."""
    text = capture.prompt.text + "x" * tokens
    longer = make_capture(text)
    old = capture.maps[0].read(1)
    size = len(longer.prompt)
    weights = np.zeros((6, size, size), np.float32)
    weights[1, : len(old), : len(old)] = old
    weights[1, len(old) :, 0] = 1e-9
    return with_weights(longer, 0, weights)


# --- what has not come yet ------------------------------------------------------------------------


def test_a_panned_picture_equals_one_composed_anew(app):
    capture = make_capture("The sand runs. " * 80, heads=1, strides=(1,))
    random = np.random.default_rng(0)
    with shown(MapView, capture=capture, selection=Selection(0, 0)) as (view, _):
        canvas = view.canvas
        for turns in (2, 9, -4):
            canvas.zoom(turns, canvas.map_rect().center())
            view.settle()
            for step in random.integers(-40, 41, (12, 2)):
                canvas.pan(QPointF(*map(int, step)))
                view.settle()
                moved = canvas.panes[0].pixels
                canvas.compose(afresh=True)
                assert np.array_equal(moved, canvas.panes[0].pixels)


@pytest.mark.parametrize(
    ("signed", "quality", "words"),
    [
        (False, "near", "within 2.8 % so far"), (True, "near", "within 5.6 % so far"),
        (False, "coarse", "coarser than it will be"), (False, "exact", ""),
    ],
)  # fmt: skip
def test_a_map_that_is_not_exact_yet_says_how_close_it_is(
    app, qtbot, monkeypatch, signed, quality, words
):
    capture = make_capture(TEXT, signed=signed)
    with shown(MapView, capture=capture, selection=Selection(0, 0)) as (view, _):
        canvas, pane = view.canvas, view.canvas.panes[0]
        assert canvas.is_exact
        monkeypatch.setattr("hgviz.gui.tiles.quality", lambda *_: quality)
        pane.screen = ()  # other tiles are on screen
        canvas.compose()
        assert not canvas.quality_words(pane)  # what is over in a moment is not worth a word
        qtbot.waitUntil(lambda: canvas.quality_words(pane) == words, timeout=30_000)
        monkeypatch.setattr("hgviz.gui.tiles.quality", lambda *_: "exact")
        canvas.compose()
        assert not canvas.quality_words(pane)


def test_the_neighbouring_heads_are_read_after_what_is_on_screen(app):
    capture = make_capture("The sand runs. " * 160, heads=3, strides=(1,))
    with shown(MapView, capture=capture, selection=Selection(0, 1)) as (view, _):
        asked = []
        view._supply._readers.want = lambda work, **_: asked.append(list(work))
        view.canvas.zoom(20, view.canvas.map_rect().center())
        view.tiles.clear()
        view.canvas.compose(afresh=True)
        beside = view._opener.neighbours(view._opened)
        assert [one.head for one in beside] == [HeadId(0, 2), HeadId(0, 0), HeadId(1, 1)]
        view._supply._read(beside, ahead=True)
        here = view._opened.sources[0]
        sources = [part.key.source for part in asked[-1]]
        on_screen = len(wanted(here, view.canvas.view))
        assert all(source is here for source in sources[:on_screen])
        assert set(sources) == {here, *(one.sources[0] for one in beside)}


def test_a_map_that_changed_while_hidden_is_read_as_the_new_one(app, small):
    larger = make_capture("The sand runs. " * 160, heads=1, strides=(1,))
    with shown(MapView, capture=small, selection=Selection(0, 0)) as (view, session):
        asked = []
        view._supply._readers.want = lambda work, **_: asked.append(list(work))
        view.hide()
        session.put(capture=larger)
        view.settle()
        view._supply._read([])  # the heads beside the one that was looked at are open by now
        assert not any(asked)
        view.show()
        view.settle()
        view.tiles.clear()
        view._supply._read([])
        assert {part.key.source for part in asked[-1]} == {view._opened.sources[0]}


def test_tiles_on_screen_are_read_before_the_others(app):
    capture = make_capture("The sand runs. " * 160, heads=1, strides=(1,))
    with shown(MapView, capture=capture, selection=Selection(0, 0)) as (view, _):
        canvas, asked = view.canvas, []
        view._supply._readers.want = lambda work, **_: asked.append(list(work))
        half, there = 1 / 2, canvas.view
        canvas._look(replace(there, down=there.down.at(half, 0), across=there.across.at(half, 0)))
        canvas.resize(canvas.width() // 3, canvas.height() // 3)
        view.tiles.clear()
        canvas._look(canvas.view)
        view._supply._read([], hurry=True)
        hurried = asked[-1]
        view._supply._read([])
        assert hurried == asked[-1][: len(hurried)]
        assert len(asked[-1]) == 2 * len(hurried)  # what is on screen, then what is left
        assert [part.key for part in hurried] == view.tiles.lacking(
            view._opened.sources[0], canvas.view
        )


def test_a_window_closes_while_tiles_are_on_their_way(app):
    capture = make_capture("The sand runs. " * 200, heads=1, strides=(1,))
    with shown(MapView, visible=False, capture=capture, selection=Selection(0, 0)) as (view, _):
        view.show()
        for _ in range(4):
            QApplication.processEvents()
    assert view._supply._readers is None
