"""The maps of A and B and their difference, on screen."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QStyle

from hgviz import palettes
from hgviz.analysis.alignment import Alignment, SharedGrid
from hgviz.core import HeadId, Selection
from hgviz.gui import compare, heatmap, textrows, theme
from hgviz.gui.compare import CompareView, NumbersView, PairReader, TextsView, rows_of
from hgviz.gui.export import ExportDialog, ExportRequest, FigureCache
from hgviz.gui.grid import rule_of
from hgviz.gui.opened import TiledMap
from hgviz.gui.sentences import share
from hgviz.gui.sides import SideBar, SideNames
from hgviz.gui.tiles import Key, Part, Source, Tiles
from hgviz.maps import DenseMap, Projected
from hgviz.session import Other, Session
from tests.gui import kinds
from tests.gui.kinds import bert, gpt2, translator
from tests.gui.screen import drag, picture, showing, shown, shows_no_error, wheel
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


def coloured(weights, scene, dark=False):
    return palettes.paint(
        palettes.palette_coordinates(weights, scene.limits, scene.display.scale, scene.signed),
        palettes.colours(palettes.matching_palette("", scene.signed), dark),
    )


# --- what is shown --------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True])
def test_every_cell_of_the_three_has_the_colour_of_its_weight(app, signed, dark):
    theme.apply(app, dark)
    a, b = signed
    with comparing(a, b) as (view, _):
        panes = view.canvas.panes
        weights = a.maps[0].read(0), b.maps[0].read(0)
        step = int(view.canvas.view.down.scale)
        seen = np.tri(len(TEXT), dtype=bool)
        for pane, values in zip(panes, (*weights, weights[0] - weights[1]), strict=True):
            cells = pane.pixels[step // 2 :: step, step // 2 :: step]
            assert np.array_equal(cells[seen][:, :3], coloured(values, pane.scene, dark)[seen])
            assert not cells[~seen].any()


def test_from_afar_a_pixel_is_the_largest_difference_of_its_cells(app):
    a, b = (make_capture("sand " * 260, strides=(1,), heads=1, seed=seed) for seed in range(2))
    with comparing(a, b, size=(900, 420)) as (view, _):
        pane = view.canvas.panes[2]
        assert view.canvas.view.zoom >= 1 and view.canvas.is_exact
        least = a.maps[0].read(0) - b.maps[0].read(0)
        rows, columns = (axis.bounds() for axis in view.canvas.view.axes)
        for y, x in ((90, 3), (90, 60), (120, 119), (140, 0)):
            cells = least[rows[y] : rows[y + 1], columns[x] : columns[x + 1]].ravel()
            largest = max(cells, key=lambda one: (abs(one), one))
            expected = coloured(np.array([largest]), pane.scene)[0]
            assert np.array_equal(pane.pixels[y, x, :3], expected)


def test_any_signed_side_makes_all_three_diverge_about_one_limit(app, signed):
    for a, b in (signed, signed[::-1]):
        with comparing(a, b) as (view, _):
            scenes = [pane.scene for pane in view.canvas.panes]
            peak = max(np.abs(one.maps[0].read(0)).max() for one in (a, b))
            assert all(one.signed for one in scenes)
            assert {one.limits for one in scenes} == {(-peak, peak)}


def test_two_unsigned_sides_share_a_scale_from_zero_and_their_difference_its_reach(app, pair):
    with comparing(*pair) as (view, _):
        a, b, least = (pane.scene for pane in view.canvas.panes)
        assert a.limits == b.limits and a.limits[0] == 0
        assert least.limits == (-a.limits[1], a.limits[1])
        assert (a.signed, b.signed, least.signed) == (False, False, True)


def test_gutters_hold_what_rows_add_up_to_on_one_scale(app, signed):
    a, b = signed
    with comparing(a, b) as (view, _):
        weights = a.maps[0].read(0), b.maps[0].read(0)
        for pane, values in zip(
            view.canvas.panes, (*weights, weights[0] - weights[1]), strict=True
        ):
            mass = pane.scene.mass
            np.testing.assert_allclose(mass[:, 0], np.minimum(values, 0).sum(1), atol=1e-5)
            np.testing.assert_allclose(mass[:, 1], np.maximum(values, 0).sum(1), atol=1e-5)
        most = max(np.abs(pane.scene.mass).max() for pane in view.canvas.panes)
        view.grab()
        assert {pane.sums[0][2] for pane in view.canvas.panes} == {float(most)}


def test_without_a_b_the_view_says_what_to_do(app, pair):
    with shown(CompareView, SIZE, capture=pair[0]) as (view, _):
        assert view._notice.isVisible() and view._notice.said[0] == view.empty
        assert view.empty[0] == "Choose a second model"


def test_a_layer_that_a_has_not_captured_is_said(app, pair):
    a, b = pair
    halted = replace(a, maps=(None, *a.maps[1:]))
    with comparing(halted, b) as (view, _):
        assert view.empty[0] == "Layer 0 of A is not captured yet"


def test_texts_of_one_and_two_tokens_are_compared(app):
    for text in ("ab", "a"):
        a, b = (make_capture(text, strides=(1,), seed=seed) for seed in range(2))
        with comparing(a, b) as (view, _):
            assert view.canvas.panes[2].pixels.any() and view.canvas.view.down.scale <= 96


# --- other cells ----------------------------------------------------------------------------------


def test_a_head_that_only_a_has_leaves_cards_that_say_so(app, pair):
    a, b = pair[0], make_capture(TEXT, heads=3)
    with comparing(a, b, head=(0, 5), query=20, key=10) as (view, session):
        a_pane, *others = view.canvas.panes
        assert [pane.lack[0] for pane in others] == ["B has no head 0.5", "Nothing to subtract"]
        assert a_pane.pixels.any() and others[0].scene is None
        view.grab()
        session.select(layer=0, head=1)
        view.settle()
        assert not any(pane.lack for pane in view.canvas.panes)
        assert all(pane.pixels.any() for pane in view.canvas.panes)


def test_a_pruned_side_stays_beside_the_heads_it_kept(app, pair):
    a, b = pair
    spec, whole = b.spec.layers[0], b.maps[0].read(4)
    layers = (replace(spec, heads=(4,), activations=("softmax",)), *b.spec.layers[1:])
    ragged = replace(
        b, spec=replace(b.spec, layers=layers), maps=(DenseMap(whole[None], (4,)), *b.maps[1:])
    )
    with comparing(a, ragged, head=(0, 4), query=20, key=10) as (view, session):
        assert "0.4" in view.head.title.text()
        assert view._opened.rows[20][1][10] == pytest.approx(whole[20, 10])
        session.select(layer=0, head=3)
        view.settle()
        assert view.canvas.panes[1].lack[0] == "B has no head 0.3"


def test_texts_that_share_no_word_have_no_difference(app):
    with comparing(make_capture("aaaa"), make_capture("bbbb")) as (view, _):
        assert [pane.lack and pane.lack[0] for pane in view.canvas.panes] == [
            None, None, "Nothing in common",
        ]  # fmt: skip


def test_what_only_one_text_has_lies_under_a_hatching_in_the_other(app):
    with comparing(make_capture("one two four"), make_capture("one two three four")) as (view, _):
        a, b, least = view.canvas.panes
        assert not a.there[0].all() and b.there[0].all() and a.has_words and b.has_words
        gone = int(np.flatnonzero(~a.there[0])[0])
        for pane, hidden in ((a, True), (b, False), (least, True)):
            step = int(view.canvas.view.down.scale)
            assert pane.pixels[gone * step + 1, 1].any() != hidden
        plain = view.canvas.grab().toImage()
        a.there = None
        assert view.canvas.grab().toImage() != plain


def test_two_levels_of_one_hourglass_stand_beside_each_other_in_tokens(app, pair):
    a = pair[0]
    middle = next(one.index for one in a.spec.layers if one.role == "self" and one.level == 2)
    with comparing(a, a, query=40, key=9, beside=HeadId(middle, 2)) as (view, session):
        assert view.canvas.panes[1].scene.source.shape == (len(TEXT), len(TEXT))
        assert view.head.title.text() == f"Heads 0.0 and {middle}.2"
        assert "upsampled to letters" in view.legend.full
        found = a.maps[middle].read(2)[40 // 4, 3] / 4
        assert view._opened.rows[40][1][9] == pytest.approx(found, abs=1e-6)
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
                found = view._opened
                assert found.grid.head_b == other and found.masses is not None
                assert view.canvas.is_exact, name
                check_difference(found)
                view.grab()


def check_difference(found):
    """A − B is what A weighs less what B weighs where both stand for something, else nothing."""
    a, b, least = (one.map.read(one.head) for one in found.sources)
    both = np.ix_(found.grid.rows.in_both, found.grid.columns.in_both)
    expected = np.zeros_like(least)
    expected[both] = (a - b)[both]
    assert np.array_equal(least, expected)


# --- moving ---------------------------------------------------------------------------------------


def test_zoom_and_pan_act_on_all_three_maps(app, pair):
    with comparing(*pair) as (view, _):
        canvas, panes = view.canvas, view.canvas.panes
        wheel(canvas, canvas.map_rect(1).center(), 5)
        before = canvas.view
        assert not before.whole and {pane.picture.view for pane in panes} == {before}
        canvas.pan(QPointF(-30, -20))
        assert canvas.view != before and {pane.picture.view for pane in panes} == {canvas.view}
        view.settle()
        assert canvas.is_exact
        view.fit()
        assert canvas.view.whole


def test_a_drag_pans_and_a_double_click_fits_all_three_maps(app, pair, qtbot):
    with comparing(*pair) as (view, _):
        canvas = view.canvas
        wheel(canvas, canvas.map_rect().center(), 4)
        before, start = canvas.view, canvas.map_rect(2).center().toPoint()
        drag(canvas, start, start - QPoint(25, 0))
        assert canvas.view.across.start == before.across.start + 25
        qtbot.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=start)
        assert canvas.view.whole


def test_the_pointer_over_one_map_gives_the_weight_in_each(app, signed):
    a, b = signed
    with comparing(a, b, query=30) as (view, session):
        view.canvas.pointed.emit((30, 12))
        view.settle()
        weights = [one.maps[0].read(0)[30, 12] for one in (a, b)]
        assert session.hover.query == 30 and session.hover.key == 12
        assert {(pane.cross.row, pane.cross.column) for pane in view.canvas.panes} == {(30, 12)}
        said = [pane.card.text for pane in view.canvas.panes]
        for text, value in zip(said, (*weights, weights[0] - weights[1]), strict=True):
            shown_ = f"{abs(value):.3f}" if abs(value) >= 0.001 else "&lt;0.001"
            assert shown_ in text
        view.canvas.pointed.emit(None)
        assert session.hover is None


def test_a_click_in_any_of_them_fixes_query_and_key(app, pair, qtbot):
    with comparing(*pair) as (view, session):
        pane = view.canvas
        place = pane.cell_rect(44, 21, 2).center().toPoint()
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
        gone = int(np.flatnonzero(~view.canvas.panes[0].there[0])[0])
        session.put(selection=Selection(0, 0))
        view.settle()
        view._pointed = gone, 1
        view._opened.rows[gone] = tuple(np.zeros(18, np.float32) for _ in range(2))
        view._follow()
        said = [pane.card.text for pane in view.canvas.panes]
        assert "not in A" in said[0] and "nothing to compare" in said[2]


# --- room -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(1600, 610), (1280, 420), (900, 330), (1000, 980), (500, 300)])
def test_all_three_are_equally_large_in_any_window_and_none_lies_over_another(app, pair, size):
    with comparing(*pair, size=size) as (view, _):
        rects = [pane.rect for pane in view.canvas.panes]
        assert len({rect.size().toTuple() for rect in rects}) == 1
        for number, rect in enumerate(rects):
            assert not any(rect.intersects(other) for other in rects[number + 1 :])


def test_in_a_narrow_high_window_the_difference_stands_below(app, pair):
    with comparing(*pair, size=(1000, 980)) as (view, _):
        a, b, least = view.canvas.panes
        assert a.rect.y() == b.rect.y() < least.rect.y() and least.has_words
    with comparing(*pair, size=SIZE) as (view, _):
        assert len({pane.rect.y() for pane in view.canvas.panes}) == 1
        assert not view.canvas.panes[2].has_words


def test_blinking_swaps_a_and_b_in_one_place_twice_a_second(app, pair, until):
    with comparing(*pair) as (view, _):
        canvas, (a, b, least) = view.canvas, view.canvas.panes
        view.way.chosen.emit("blink")
        assert canvas._blinking.interval() == heatmap.BLINK == 500
        assert a.visible and not b.visible and least.visible and a.rect == b.rect
        until(lambda: b.visible, 5)
        assert not a.visible
        view.way.chosen.emit("beside")
        assert a.visible and b.visible and a.rect.x() < b.rect.x()
        view.way.chosen.emit("blink")
        view.hide()
        assert not canvas._blinking.isActive()
        view.show()
        assert canvas._blinking.isActive()


# --- long texts -----------------------------------------------------------------------------------


def test_the_difference_is_made_of_tiles_that_are_there(app, pair, monkeypatch):
    a = pair[0]
    source, cache = Source(a.maps[0], 0, rule_of(a, HeadId(0, 0))), Tiles()
    kept = TiledMap(source, cache)
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
        canvas = view.canvas
        until(lambda: canvas.view is not None)
        canvas.zoom(20, canvas.map_rect().center())
        canvas.pan(QPointF(400, 300))
        difference = canvas.panes[2]

        def is_drawn():
            """Whether a cell of A - B has its colour; what was there before is exact, too."""
            if not canvas.is_exact:
                return False
            row, column = canvas.view.down.shown()[1] - 2, canvas.view.across.shown()[0] + 1
            middle = canvas.cell_rect(row, column, 2).center() - difference.rect.topLeft()
            place, cell = middle.toPoint(), ((row, row + 1), (column, column + 1))
            weights = a.maps[0].read(0, *cell) - b.maps[0].read(0, *cell)
            expected = coloured(weights[0], difference.scene)[0]
            return np.array_equal(difference.pixels[place.y(), place.x(), :3], expected)

        until(is_drawn)
        assert is_drawn()


# --- on paper -------------------------------------------------------------------------------------


def test_the_figure_has_the_three_maps(program, pair, tmp_path, until):
    a, b = pair
    program.session.put(capture=a, beside=b, mode="compare", selection=Selection(0, 2))
    program.settle()
    spec = program.compare.maps.figure(program.session)
    assert spec.kind == "compare"
    program.commands.run("export")
    dialog = next(one for one in program.frame.findChildren(ExportDialog) if one.isVisible())
    assert dialog.choices.kind.currentData() == "compare"
    dialog.reject()
    wish = ExportRequest(spec, (a, b), FigureCache({}), "three.svg")
    program.commands.exporting.export_to(wish, str(tmp_path / "three.svg"))
    until(lambda: (tmp_path / "three.svg").exists())
    said = (tmp_path / "three.svg").read_text()
    assert "A − B" in said and "0.2" in said


# --- numbers and text of both sides ---------------------------------------------------------------

LONG = "The hourglass was used at sea. When the sand of the hourglass had run down, it was turned."
TOLD = SideNames("softmax", "ymish")

FIRST = HeadId(0, 0)


def pair_of(a, b, head=FIRST, other=None, query=40, key=None):
    """A row of two heads."""
    return textrows.read_pair(SharedGrid.of(Alignment(a, b), head, other or head), query, key)


def compared(a, b, head=FIRST, query=40, beside=None, kind="model"):
    """A session that compares two captures."""
    session = Session()
    session.put(capture=a, mode="compare")
    session.put(beside=b, other=Other(kind))
    session.put(selection=Selection(head.layer, head.head, query, beside=beside))
    return session


# --- a row of both --------------------------------------------------------------------------------


def test_on_one_text_a_row_is_that_of_the_map_and_the_difference_is_exact():
    a, b = make_capture(LONG), make_capture(LONG, seed=1, signed=True)
    pair = pair_of(a, b, HeadId(1, 2))
    mine, its = a.maps[1].read(2, (40, 41))[0], b.maps[1].read(2, (40, 41))[0]
    assert np.array_equal(pair.a.weights, mine) and np.array_equal(pair.b.weights, its)
    assert np.array_equal(pair.difference, mine - its) and pair.signed
    assert pair.query == 40 and not pair.a.seen[41:].any() and pair.a.seen[:41].all()
    assert "".join(one.text for one in pair.names[0].glyphs(0, 9)) == "The·hourg"


@pytest.mark.parametrize("heads", [(HeadId(0, 1), HeadId(5, 2)), (HeadId(5, 2), HeadId(0, 1))])
def test_rows_of_two_levels_are_those_of_the_maps_spread_to_tokens(heads):
    a = make_capture(LONG)
    grid = SharedGrid.of(Alignment(a, a), *heads)
    pair = textrows.read_pair(grid, 40, 7)
    for half, head, edge in ((pair.a, heads[0], "a"), (pair.b, heads[1], "b")):
        axes = [getattr(one, edge) for one in (grid.rows, grid.columns)]
        whole = Projected(a.maps[head.layer], *axes)
        assert np.array_equal(half.weights, whole.read(head.head, (40, 41))[0])
        assert half.weights.sum() == pytest.approx(1, abs=1e-5)
    assert len(pair.difference) == len(LONG) and (pair.query, pair.key) == (40, 7)


def test_texts_of_other_tokens_are_compared_in_the_pieces_both_have():
    a, b = make_capture("Good old sea, good sea."), gpt2("Good old sea, bad sea.")
    grid = SharedGrid.of(Alignment(a, b), HeadId(0, 0), HeadId(0, 0))
    pair = textrows.read_pair(grid, 10, None)
    rows = rows_of(pair, TOLD)
    assert (rows[0].present != rows[1].present).any() and rows[2].present.any()
    assert np.array_equal(rows[2].present, rows[0].present & rows[1].present)
    for names in pair.names:
        written = "".join(one.text for one in names.glyphs(0, len(grid.columns)))
        assert written.replace("·", "").startswith("Goodoldsea,")
        assert (names.widths > 0).sum() == names.present.sum()


def test_a_row_that_b_lacks_is_shown_for_a_alone():
    a, b = make_capture("The old sea was wide."), make_capture("The sea was wide.")
    pair = pair_of(a, b, query=5)  # in "old"
    assert pair.b is None and pair.difference is None and pair.a.weights.sum() > 0.99
    rows = rows_of(pair, TOLD)
    assert rows[1].weights is None and "one side" in rows[2].message
    assert "B has no such row" in compare.sentence(pair, TOLD)


def test_bytes_of_one_character_share_what_is_written():
    text = "é한🙂 a"
    a = make_capture(text)
    names = pair_of(a, a, query=3).names[0]
    found = names.glyphs(0, len(a.prompt))
    assert [one.text for one in found] == ["é", "한", "🙂", "·", "a"]
    assert [(one.first, one.last) for one in found] == [(0, 2), (2, 5), (5, 9), (9, 10), (10, 11)]
    assert names.glyphs(6, 8)[0].first == 5


def test_a_text_of_one_letter_and_no_query_can_be_read():
    a = make_capture("a")
    assert pair_of(a, a, query=0).a.weights.tolist() == [1.0]
    blank = pair_of(a, a, query=None)
    assert blank.a is None and blank.row is None and compare.sentence(blank, TOLD) == ""


# --- in words -------------------------------------------------------------------------------------


def test_the_sentence_describes_concentrated_and_spread_rows():
    pair = pair_of(make_capture(LONG), make_capture(LONG, seed=3, signed=True), query=60)
    stop = np.zeros(len(LONG), np.float32)
    stop[29], stop[58] = 0.89, 0.11
    sides = np.where(np.arange(len(LONG)) < 31, [(-1) ** n for n in range(len(LONG))], 0)
    pair = replace(
        pair, a=replace(pair.a, weights=stop, signed=False),
        b=replace(pair.b, weights=(sides / 31).astype(np.float32), signed=True),
    )  # fmt: skip
    assert compare.sentence(pair, TOLD) == (
        "“s” with softmax: 89 % of the weight on “.” after “sea”. With ymish: spread over about 31 "
        "letters, 3 % on “T” in “The”, 48 % of the mass negative; −0.032 on “.”."
    )
    even = replace(pair, a=replace(pair.a, weights=np.full(len(LONG), 0.01, np.float32)), b=pair.a)
    assert "spread over about 90 letters, 1 % on “T” in “The”" in compare.sentence(even, TOLD)
    nothing = replace(pair, b=replace(pair.b, weights=np.zeros(len(LONG), np.float32)))
    assert "With ymish: no weight." in compare.sentence(nothing, TOLD)


def test_the_numbers_of_a_row_are_those_of_closed_forms():
    uniform = compare.RowFacts.of(np.full(8, 1 / 8, np.float32))
    assert uniform.spread == pytest.approx(8) and uniform.share == pytest.approx(1 / 8)
    signed = compare.RowFacts.of(np.array([1, -1, 2, 0], np.float32))
    assert (signed.mass, signed.top, signed.share, signed.negative) == (4, 2, 0.5, 0.25)
    assert compare.RowFacts.of(np.zeros(3, np.float32)).mass == 0


def test_the_bits_per_byte_of_both_models_are_given_where_there_are_logits():
    a, b = make_capture(LONG), make_capture(LONG, seed=1)
    said = compare.of_text(a, b, TOLD)
    assert said.startswith("This text: ") and " bits per byte with softmax, " in said
    assert "B has no logits" in compare.of_text(a, replace(b, logits=None), TOLD)
    assert "A has no logits" in compare.of_text(replace(a, logits=None), b, TOLD)
    bare = [replace(one, logits=None) for one in (a, b)]
    assert compare.of_text(*bare, TOLD) == ""
    assert compare.same(a, b) == "same text" and compare.same(a, bert()) == "two texts"
    assert compare.same(make_capture(LONG), gpt2(LONG)) == "same text, other tokens"


# --- the views ------------------------------------------------------------------------------------


def test_numbers_of_both_heads_stand_among_those_of_all(app):
    a, b = make_capture(LONG), make_capture(LONG, seed=1, signed=True)
    session = compared(a, b, HeadId(1, 1))
    with showing(NumbersView, session, 1600, 108) as view:
        values = {
            letter: line[1].text() for letter, line in view.pairs["negative_mass"].lines.items()
        }
        assert values["A"] == "0 %" and "%" in values["B"] != "0 %"
        assert len(view.pairs["entropy"].lines["A"][0]._values) == 54
        view.pairs["focus"].lines["A"][0].clearFocus()
        assert "all 54 self-attention heads; dot: head 1.1" in view.head.note.full
        assert "A, head 1.1" in view.pairs["entropy"].toolTip()
        session.put(selection=Selection(0, 3, 40))  # known: drawn without being asked for
        assert "A, head 0.3" in view.pairs["entropy"].words
        assert view.pairs["entropy"].lines["A"][1].text() != "–"
        mark = np.array(theme.current().mark.getRgb()[:3])
        assert (np.abs(picture(view).astype(int) - mark).max(-1) < 8).sum() > 100  # twelve dots


def test_numbers_of_a_head_that_b_lacks_say_so(app):
    a, b = make_capture(LONG), make_capture(LONG, heads=2)
    with showing(NumbersView, compared(a, b, HeadId(0, 5)), 900, 108) as view:
        assert "B has no such head" in view.pairs["focus"].toolTip()
        view.pairs["focus"].lines["A"][0].clearFocus()
        assert "54 self-attention" in view.head.note.full


def test_the_rows_of_text_take_clicks(app):
    a, b = make_capture(LONG), make_capture(LONG, seed=1)
    session = compared(a, b)
    with showing(TextsView, session, 1600, 190) as view:
        rows = view.rows
        x = 122 + (rows.ruler.x(50) + rows.ruler.x(51)) / 2
        place = QPointF(x, rows.bands[1].center().y()).toPoint()
        QTest.mouseClick(rows, Qt.MouseButton.LeftButton, pos=place)
        assert session.selection.query == 50
        QTest.mouseClick(rows, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.AltModifier, place)
        assert session.selection.key == 50
        view.settle()
        assert view._pair.query == view._pair.key == 50
        QTest.mouseMove(rows, place)
        assert view.words.text()


def test_a_click_in_cross_attention_chooses_the_key(app):
    a, b = translator(), translator(activations="ymish")
    layer = next(one.index for one in a.spec.layers if one.role == "cross")
    session = compared(a, b, HeadId(layer, 0), query=3)
    with showing(TextsView, session, 1400, 190) as view:
        view.rows.queried.emit((5, 5))
        assert session.selection.query == 3 and session.selection.key == 5


@pytest.mark.parametrize("size", [(1600, 190), (900, 158), (500, 164)])
def test_a_long_text_scrolls_to_the_query_under_its_overview(app, size):
    a = make_capture(LONG * 6, strides=(1,))
    session = compared(a, make_capture(LONG * 6, strides=(1,), signed=True), query=400)
    with showing(TextsView, session, *size) as view:
        rows = view.rows
        assert rows.ruler.scrolls and 0 <= rows.ruler.x(400) <= rows.ruler.room
        before = rows.ruler.offset
        place = QPointF(122.0, rows.overview_box.center().y()).toPoint()
        QTest.mouseClick(rows, Qt.MouseButton.LeftButton, pos=place)
        assert rows.ruler.offset < before
        assert rows.bands[-1].bottom() <= rows.height()


def test_texts_with_nothing_in_common_are_shown_and_said(app):
    a, b = make_capture("abcabc"), make_capture("xyzxyz")
    with showing(TextsView, compared(a, b, query=3), 900, 190) as view:
        assert "none in common" in view.head.note.full
        assert "B has no such row" in view.words.text()
        assert view.rows.rows[2].message


def test_a_head_that_b_lacks_leaves_the_row_of_a(app):
    a, b = make_capture(LONG), make_capture(LONG, heads=2)
    with showing(TextsView, compared(a, b, HeadId(0, 5)), 900, 190) as view:
        assert view.rows.rows[0].weights is not None and "no such head" in view.rows.rows[1].message
        assert "B has no such head" in view.words.text()


def test_layers_that_are_not_captured_yet_and_nothing_beside_are_no_error(app):
    a = make_capture(LONG)
    part = replace(a, maps=(None, *a.maps[1:]))
    for one, other in ((part, a), (a, part), (part, part)):
        session = compared(one, other)
        for kind in (TextsView, NumbersView):
            with showing(kind, session, 900, 190) as view:
                assert shows_no_error(view)
                session.put(beside=None)
                view.settle()
                assert shows_no_error(view)


def test_the_reader_opens_a_meeting_once():
    a, b = make_capture(LONG), make_capture(LONG, seed=1)
    reader, session = PairReader(), compared(a, b)
    first = reader.read(a, b, session.selection, TOLD, session.display)
    again = reader.read(a, b, replace(session.selection, query=9), TOLD, session.display)
    assert again.pair.grid is first.pair.grid and again.of_text == first.of_text
    other = reader.read(b, a, session.selection, TOLD, session.display)
    assert other.pair.grid.a is b


def test_shares_are_whole_only_where_they_are():
    assert [share(one) for one in (0, 0.001, 0.52, 0.999, 1)] == [
        "0 %", "<1 %", "52 %", ">99 %", "100 %",
    ]  # fmt: skip


@pytest.fixture
def signed_pair():
    """Two captures of one text, the second signed."""
    return make_capture(LONG), make_capture(LONG, seed=1, signed=True)


# --- values as tables -----------------------------------------------------------------------------


def test_the_maps_give_every_weight_on_screen(app, signed_pair):
    a, b = signed_pair
    with showing(CompareView, compared(a, b, HeadId(1, 2)), 1600, 610) as view:
        header, *rows = view.as_table()
        assert header == ["Query", "Query text", "Key", "Key text", "A", "B", "A − B"]
        assert len(rows) == len(LONG) * (len(LONG) + 1) // 2  # a causal map
        mine, its = a.maps[1].read(2), b.maps[1].read(2)
        for query, asks, key, answers, *weights in (rows[0], rows[700], rows[-1]):
            cell = int(query), int(key)
            assert (asks, answers) == tuple(LONG[one].replace(" ", "·") for one in cell)
            expected = mine[cell], its[cell], mine[cell] - its[cell]
            assert [float(one) for one in weights] == pytest.approx([float(x) for x in expected])


def test_from_afar_the_maps_give_the_largest_of_the_cells_of_a_pixel(app):
    a, b = (make_capture("sand " * 260, strides=(1,), heads=1, seed=seed) for seed in range(2))
    with showing(CompareView, compared(a, b, query=3), 900, 420) as view:
        rows = view.as_table()[1:]
        whole = a.maps[0].read(0)
        query, _, key, _, weight, *_ = next(one for one in rows if ":" in one[0] and one[4])
        (top, bottom), (left, right) = (map(int, one.split(":")) for one in (query, key))
        assert float(weight) == pytest.approx(float(whole[top:bottom, left:right].max()))


def test_a_head_that_b_lacks_leaves_its_columns_empty(app):
    a, b = make_capture(LONG), make_capture(LONG, heads=2)
    with showing(CompareView, compared(a, b, HeadId(0, 5)), 1600, 610) as view:
        first = view.as_table()[1]
        assert first[4] and first[5:] == ["", ""]
    with showing(TextsView, compared(a, b, HeadId(0, 5)), 900, 190) as view:
        assert view.as_table()[1][3] and view.as_table()[1][4:] == ["", ""]


def test_the_text_gives_the_row_of_the_query(app, signed_pair):
    with showing(TextsView, compared(*signed_pair), 1600, 190) as view:
        header, *rows = view.as_table()
        assert header == ["Key", "Key text in A", "Key text in B", "A", "B", "A − B"]
        assert len(rows) == len(LONG) and rows[41][3:] == ["", "", ""]  # after query 40
        weights = signed_pair[0].maps[0].read(0, (40, 41))[0]
        assert [float(one[3]) for one in rows[:41]] == pytest.approx(weights[:41].tolist())
        assert view.as_text() == view.words.text()


def test_the_numbers_give_both_heads_and_their_places(app, signed_pair):
    with showing(NumbersView, compared(*signed_pair, HeadId(1, 1)), 1600, 108) as view:
        rows = view.as_table()[1:]
        assert len(rows) == 12 and rows[0][1:3] == ["A", "1.1"] and rows[1][1:3] == ["B", "1.1"]
        focus = view.pairs["focus"]
        assert float(rows[0][3]) == focus.lines["A"][0]._mine
        assert f"place {rows[0][4]} of {rows[0][5]}" in focus.words
        assert view.as_text().count("\n") == 5


def test_the_sides_say_what_they_are(app, signed_pair):
    session = compared(*signed_pair)
    with showing(SideBar, session, 900, 10) as view:
        assert view.a.name.text() != view.b.name.text()
        session.put(beside=None)
        view.settle()
        assert view.b.name.text() == "nothing yet"
        view.a.deleteLater()
        view.b.deleteLater()


def test_an_empty_view_has_no_table(app):
    for kind in (CompareView, NumbersView, TextsView):
        with showing(kind, Session(), 900, 300) as view:
            assert view.as_table() is None


# --- motion ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("moves", [False, True])
def test_blinking_turns_when_asked_and_by_itself_only_where_things_may_move(
    app, signed_pair, moves, monkeypatch
):
    hint = QStyle.StyleHint.SH_Widget_Animation_Duration
    with showing(CompareView, compared(*signed_pair), 1600, 610) as view:
        kind = type(view.canvas.style())
        other = kind.styleHint
        monkeypatch.setattr(
            kind, "styleHint",
            lambda self, one, *rest: 200 * moves if one == hint else other(self, one, *rest),
        )  # fmt: skip
        view.way.chosen.emit("blink")
        assert view.canvas._blinking.isActive() == moves
        first = [pane.visible for pane in view.canvas.panes]
        view.way.chosen.emit("blink")  # pressed once more
        assert [pane.visible for pane in view.canvas.panes][:2] == first[1::-1]
        view.way.chosen.emit("beside")
        assert not view.canvas._blinking.isActive()
