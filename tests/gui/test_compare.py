"""A, B and their difference: the maps, the rows of text, and the metrics of both heads."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QStyle

from hgviz import palettes
from hgviz.analysis.statistics import bits_per_byte
from hgviz.core import HeadId, Selection
from hgviz.gui import compare, theme
from hgviz.gui.compare import CompareView, NumbersView, TextsView, read_pair, rows_of
from hgviz.gui.export import ExportDialog, ExportRequest, FigureCache
from hgviz.gui.grid import rule_of
from hgviz.gui.opened import PairOpener, TiledMap
from hgviz.gui.sentences import share
from hgviz.gui.sides import SideBar, SideNames
from hgviz.gui.tiles import Key, Part, Source, Tiles
from hgviz.maps import DenseMap, Projected
from hgviz.session import Other, Session
from tests.gui import kinds
from tests.gui.kinds import gpt2, translator
from tests.gui.screen import drag, picture, showing, shown, shows_no_error, wheel
from tests.making import make_capture

TEXT = "The hourglass was used at sea. When the sand had run down, it was turned."
LONG = "The hourglass was used at sea. When the sand of the hourglass had run down, it was turned."
TOLD = SideNames("softmax", "ymish")
FIRST = HeadId(0, 0)
A, A_SIGNED = make_capture(TEXT), make_capture(TEXT, seed=1, signed=True)
B, FEW_HEADS = make_capture(TEXT, seed=1), make_capture(TEXT, heads=3)


@contextmanager
def comparing(a=A, b=B, head=(0, 0), size=(1600, 610), **chosen):
    """The maps of two heads: the view, its session, canvas and panes."""
    selection = Selection(*head, **chosen)
    with shown(CompareView, size, capture=a, beside=b, selection=selection) as (view, session):
        yield view, session, view.canvas, view.canvas.panes


def compared(a, b, head=FIRST, query=40, beside=None, kind="model"):
    """A session that compares two captures."""
    session = Session()
    session.put(capture=a, mode="compare")
    session.put(beside=b, other=Other(kind))
    session.put(selection=Selection(head.layer, head.head, query, beside=beside))
    return session


def pair_of(a, b, head=FIRST, other=None, query=40, key=None):
    """A row of two heads."""
    return read_pair(PairOpener(Tiles()).pair(a, b, head, other or head), query, key)


def three(a, b, layer=0, head=0):
    """The weights of A, of B and of A − B."""
    weights = [capture.maps[layer].read(head) for capture in (a, b)]
    return *weights, weights[0] - weights[1]


def coloured(weights, scene, dark=False):
    table = palettes.colours(palettes.matching_palette("", scene.signed), dark)
    return palettes.paint(scene.coordinates(np.asarray(weights)), table)


# --- the maps -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True])
def test_every_cell_of_the_three_has_the_colour_of_its_weight(app, dark):
    theme.apply(app, dark)
    with comparing(A, A_SIGNED) as (view, _, canvas, panes):
        step, seen = int(canvas.view.down.scale), np.tri(len(TEXT), dtype=bool)
        masses = []
        for pane, values in zip(panes, three(A, A_SIGNED), strict=True):
            cells = pane.pixels[step // 2 :: step, step // 2 :: step]
            assert np.array_equal(cells[seen][:, :3], coloured(values, pane.scene, dark)[seen])
            assert not cells[~seen].any()
            masses.append(np.stack([np.minimum(values, 0).sum(1), np.maximum(values, 0).sum(1)], 1))
            np.testing.assert_allclose(pane.scene.mass, masses[-1], atol=1e-5)
        canvas.grab()  # what rows add up to is drawn on one scale
        for pane in panes:
            assert pane.sums[0][2] == pytest.approx(np.abs(masses).max())
        header, *rows = view.as_table()
        assert header == ["Query", "Query text", "Key", "Key text", "A", "B", "A − B"]
        assert len(rows) == seen.sum()
        for query, asks, key, answers, *weights in (rows[0], rows[700], rows[-1]):
            cell = int(query), int(key)
            assert (asks, answers) == tuple(TEXT[place].replace(" ", "·") for place in cell)
            expected = [float(values[cell]) for values in three(A, A_SIGNED)]
            assert [float(weight) for weight in weights] == pytest.approx(expected)


def test_from_afar_a_pixel_is_the_largest_of_its_cells(app):
    a, b = (make_capture("sand " * 260, strides=(1,), heads=1, seed=seed) for seed in range(2))
    with comparing(a, b, size=(900, 420)) as (view, _, canvas, panes):
        assert canvas.view.zoom >= 1 and canvas.is_exact
        mine, _, difference = three(a, b)
        rows, columns = (axis.bounds() for axis in canvas.view.axes)
        for y, x in ((90, 3), (90, 60), (120, 119), (140, 0)):
            cells = difference[rows[y] : rows[y + 1], columns[x] : columns[x + 1]].ravel()
            largest = max(cells, key=lambda one: (abs(one), one))
            assert np.array_equal(panes[2].pixels[y, x, :3], coloured([largest], panes[2].scene)[0])
        table = view.as_table()[1:]
        query, _, key, _, weight, *_ = next(row for row in table if ":" in row[0] and row[4])
        (top, bottom), (left, right) = (map(int, ends.split(":")) for ends in (query, key))
        assert float(weight) == pytest.approx(float(mine[top:bottom, left:right].max()))


@pytest.mark.parametrize(
    ("a", "b", "signed"),
    [(A, A_SIGNED, (True,) * 3), (A_SIGNED, A, (True,) * 3), (A, B, (False, False, True))],
)
def test_any_signed_side_makes_all_three_diverge_about_one_limit(app, a, b, signed):
    with comparing(a, b) as (_, _, _, panes):
        peak = max(np.abs(capture.maps[0].read(0)).max() for capture in (a, b))
        assert tuple(pane.scene.signed for pane in panes) == signed
        for pane in panes:
            assert pane.scene.limits == (-peak if pane.scene.signed else 0.0, peak)


@pytest.mark.parametrize(
    ("a", "b", "title"),
    [
        (A, None, "Choose a second model"),
        (replace(A, maps=(None, *A.maps[1:])), B, "Layer 0 of A is not captured yet"),
    ],
)
def test_what_is_missing_is_said(app, a, b, title):
    with comparing(a, b) as (view, *_):
        assert view._notice.isVisible() and view._notice.said[0][0] == view.empty[0] == title
        assert view.as_table() is None


@pytest.mark.parametrize("text", ["ab", "a"])
def test_texts_of_one_and_two_tokens_are_compared(app, text):
    a, b = (make_capture(text, strides=(1,), seed=seed) for seed in range(2))
    with comparing(a, b) as (_, _, canvas, panes):
        assert panes[2].pixels.any() and canvas.view.down.scale <= 96


@pytest.mark.parametrize(
    ("a", "b", "head", "lacks"),
    [
        (A, FEW_HEADS, (0, 5), [None, "B has no head 0.5", "Nothing to subtract"]),
        (make_capture("aaaa"), make_capture("bbbb"), (0, 0), [None, None, "Nothing in common"]),
    ],
)
def test_what_one_side_lacks_is_said_in_its_place(app, a, b, head, lacks):
    with comparing(a, b, head, query=2, key=1) as (view, session, canvas, panes):
        assert [pane.lack and pane.lack[0] for pane in panes] == lacks
        assert panes[0].pixels.any() and panes[2].scene is None
        canvas.grab()
        row = view.as_table()[1]
        assert [not weight for weight in row[4:]] == [lack is not None for lack in lacks] or row[4]
        session.put(beside=a)
        view.settle()
        assert not any(pane.lack for pane in panes)
        assert all(pane.pixels.any() for pane in panes)


def test_a_pruned_side_stays_beside_the_heads_it_kept(app):
    spec, whole = B.spec.layers[0], B.maps[0].read(4)
    layers = (replace(spec, heads=(4,), activations=("softmax",)), *B.spec.layers[1:])
    ragged = replace(
        B, spec=replace(B.spec, layers=layers), maps=(DenseMap(whole[None], (4,)), *B.maps[1:])
    )
    with comparing(A, ragged, (0, 4), query=20, key=10) as (view, session, _, panes):
        assert "0.4" in view.head.title.text()
        assert view._opened.rows[20][1][10] == pytest.approx(whole[20, 10])
        session.select(layer=0, head=3)
        view.settle()
        assert panes[1].lack[0] == "B has no head 0.3"


def test_what_only_one_text_has_lies_under_a_hatching_in_the_other(app):
    a, b = make_capture("one two four"), make_capture("one two three four")
    with comparing(a, b) as (view, _, canvas, panes):
        gone = int(np.flatnonzero(~panes[0].there[0])[0])
        assert panes[1].there[0].all() and panes[0].has_words and panes[1].has_words
        step = int(canvas.view.down.scale)
        hidden = [not pane.pixels[gone * step + 1, 1].any() for pane in panes]
        assert hidden == [True, False, True]
        view._pointed = gone, 1
        view._opened.rows[gone] = tuple(np.zeros(18, np.float32) for _ in range(2))
        view._follow()
        assert "not in A" in panes[0].card.text and "nothing to compare" in panes[2].card.text
        plain = canvas.grab().toImage()
        panes[0].there = None
        assert canvas.grab().toImage() != plain
    with comparing(a, b, size=(1000, 980)) as (_, _, _, panes):  # the rows of B have room for words
        assert panes[1].rect.left() - panes[0].rect.right() >= 88 + 46


def test_two_levels_of_one_hourglass_stand_beside_each_other_in_tokens(app):
    middle = next(one.index for one in A.spec.layers if one.role == "self" and one.level == 2)
    chosen = {"query": 40, "key": 9, "beside": HeadId(middle, 2)}
    with comparing(A, A, **chosen) as (view, session, _, panes):
        assert panes[1].scene.source.shape == (len(TEXT), len(TEXT))
        assert view.head.title.text() == f"Heads 0.0 and {middle}.2"
        assert "upsampled to tokens" in view.legend.full
        expected = A.maps[middle].read(2)[40 // 4, 3] / 4
        assert view._opened.rows[40][1][9] == pytest.approx(expected, abs=1e-6)
        session.select(layer=1, head=3)
        assert session.selection.beside == HeadId(middle, 2)


KINDS = {
    "hourglass": lambda: A,
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
    """A − B is what A weighs less what B weighs where both stand for something, else nothing."""
    a = every[one]
    with comparing(a, a, size=(1100, 500)) as (view, session, canvas, _):
        for b in every.values():
            session.put(beside=b)
            for layer in (0, len(a.spec.layers) - 1):
                other = HeadId(len(b.spec.layers) - 1 - layer % len(b.spec.layers), 1)
                session.put(selection=Selection(layer, 1, 4, 2, other))
                view.settle()
                found = view._opened
                assert found.grid.head_b == other and found.masses and canvas.is_exact
                mine, its, difference = (one.map.read(one.head) for one in found.sources)
                both = np.ix_(found.grid.rows.in_both, found.grid.columns.in_both)
                expected = np.zeros_like(difference)
                expected[both] = (mine - its)[both]
                assert np.array_equal(difference, expected)


def test_zoom_pan_and_fit_act_on_all_three_maps(app, qtbot):
    with comparing() as (view, _, canvas, panes):
        wheel(canvas, canvas.map_rect(1).center(), 5)
        before, start = canvas.view, canvas.map_rect(2).center().toPoint()
        drag(canvas, start, start - QPoint(25, 0))
        assert canvas.view.across.start == before.across.start + 25
        assert {pane.picture.view for pane in panes} == {canvas.view}
        view.settle()
        assert canvas.is_exact
        qtbot.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=start)
        assert canvas.view.whole


def test_the_pointer_over_one_map_gives_the_weight_in_each_and_a_click_keeps_it(app, qtbot):
    with comparing(A, A_SIGNED, query=30) as (view, session, canvas, panes):
        canvas.pointed.emit((30, 12))
        view.settle()
        assert session.hover.query == 30 and session.hover.key == 12
        assert {(pane.cross.row, pane.cross.column) for pane in panes} == {(30, 12)}
        for pane, values in zip(panes, three(A, A_SIGNED), strict=True):
            value = abs(values[30, 12])
            assert (f"{value:.3f}" if value >= 0.001 else "&lt;0.001") in pane.card.text
        canvas.pointed.emit(None)
        assert session.hover is None
        place = canvas.cell_rect(44, 21, 2).center().toPoint()
        qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=place)
        qtbot.keyClick(canvas, Qt.Key.Key_Down)
        assert (session.selection.query, session.selection.key) == (45, 21)
        qtbot.keyClick(canvas, Qt.Key.Key_Escape)
        assert session.selection.query is None


@pytest.mark.parametrize(
    ("size", "stacked"),
    [((1600, 610), False), ((1280, 420), False), ((900, 330), False), ((1000, 980), True),
     ((500, 300), True)],
)  # fmt: skip
def test_all_three_are_equally_large_in_any_window_and_none_lies_over_another(app, size, stacked):
    with comparing(size=size) as (_, _, _, panes):
        rects = [pane.rect for pane in panes]
        assert len({rect.size().toTuple() for rect in rects}) == 1
        for number, rect in enumerate(rects):
            assert not any(rect.intersects(other) for other in rects[number + 1 :])
        assert rects[0].y() == rects[1].y()
        if size[1] > 600:
            assert (rects[2].y() > rects[0].y()) == panes[2].has_words == stacked


@pytest.mark.parametrize("moves", [False, True])
def test_blinking_swaps_a_and_b_in_one_place(app, moves, monkeypatch):
    hint = QStyle.StyleHint.SH_Widget_Animation_Duration
    with comparing() as (view, _, canvas, (a, b, difference)):
        kind = type(canvas.style())
        other = kind.styleHint
        monkeypatch.setattr(
            kind, "styleHint",
            lambda self, one, *rest: 200 * moves if one == hint else other(self, one, *rest),
        )  # fmt: skip
        view.way.chosen.emit("blink")
        assert canvas._blinking.isActive() == moves and canvas._blinking.interval() == 500
        assert a.visible and not b.visible and difference.visible and a.rect == b.rect
        view.hide()
        assert not canvas._blinking.isActive()
        view.show()
        view.way.chosen.emit("blink")  # pressed once more
        assert b.visible and not a.visible
        view.way.chosen.emit("beside")
        assert a.visible and b.visible and a.rect.x() < b.rect.x()
        assert not canvas._blinking.isActive()


def test_the_difference_is_made_of_tiles_that_are_there(app, monkeypatch):
    source, cache = Source(A.maps[0], 0, rule_of(A, FIRST)), Tiles()
    tiled = TiledMap(source, cache)
    cache.read(Part(Key(source, 0, 0, 0), 0, 0))
    expected = A.maps[0].read(0, (0, 73), (0, 73))
    monkeypatch.setattr(A.maps[0], "read", lambda *args: pytest.fail("it was there"))
    assert np.array_equal(tiled.read(0, (0, 256), (0, 256)), expected)


def test_a_long_text_is_read_in_lanes_and_pans_while_it_comes(app, until):
    text = "When the sand had run down, it was turned. " * 60
    a, b = (make_capture(text, strides=(1,), heads=1, seed=seed) for seed in range(2))
    with shown(CompareView, (1600, 610), visible=False, capture=a, beside=b) as (view, session):
        session.put(selection=Selection(0, 0, 900))
        view.show()
        canvas, difference = view.canvas, view.canvas.panes[2]
        until(lambda: canvas.view is not None)
        canvas.zoom(20, canvas.map_rect().center())
        canvas.pan(QPointF(400, 300))

        def is_drawn():
            """Whether a cell of A − B has its colour; what was there before is exact, too."""
            row, column = canvas.view.down.shown[1] - 2, canvas.view.across.shown[0] + 1
            place = (
                canvas.cell_rect(row, column, 2).center() - difference.rect.topLeft()
            ).toPoint()
            cell = (row, row + 1), (column, column + 1)
            weights = a.maps[0].read(0, *cell) - b.maps[0].read(0, *cell)
            expected = coloured(weights[0], difference.scene)[0]
            drawn = difference.pixels[place.y(), place.x(), :3]
            return canvas.is_exact and np.array_equal(drawn, expected)

        until(is_drawn)


def test_the_figure_has_the_three_maps(program, tmp_path, until):
    program.session.put(capture=A, beside=B, mode="compare", selection=Selection(0, 2))
    program.settle()
    spec = program.compare.maps.figure(program.session)
    program.commands.run("export")
    dialog = next(one for one in program.frame.findChildren(ExportDialog) if one.isVisible())
    assert dialog.choices.kind.currentData() == spec.kind == "compare"
    dialog.reject()
    wish = ExportRequest(spec, (A, B), FigureCache({}), "three.svg")
    program.commands.exporting.export_to(wish, str(tmp_path / "three.svg"))
    until(lambda: (tmp_path / "three.svg").exists())
    svg = (tmp_path / "three.svg").read_text()
    assert "A − B" in svg and "0.2" in svg


# --- rows of text ---------------------------------------------------------------------------------


def test_on_one_text_a_row_is_that_of_the_map_and_the_difference_is_exact():
    pair = pair_of(A, A_SIGNED, HeadId(1, 2))
    mine, its, difference = (weights[40] for weights in three(A, A_SIGNED, 1, 2))
    for found, expected in zip(pair.weights, (mine, its, difference), strict=True):
        assert np.array_equal(found, expected)
    assert pair.query == 40 and not pair.seen[0][41:].any() and pair.seen[0][:41].all()
    assert "".join(one.text for one in pair.names[0].glyphs(0, 9)) == "The·hourg"


@pytest.mark.parametrize("heads", [(HeadId(0, 1), HeadId(5, 2)), (HeadId(5, 2), HeadId(0, 1))])
def test_rows_of_two_levels_are_those_of_the_maps_spread_to_tokens(heads):
    pair = pair_of(A, A, *heads, key=7)
    grid = pair.opened.grid
    for half, head, edge in zip(pair.weights, heads, "ab", strict=False):
        axes = [getattr(one, edge) for one in (grid.rows, grid.columns)]
        whole = Projected(A.maps[head.layer], *axes)
        assert np.array_equal(half, whole.read(head.head, (40, 41))[0])
    assert len(pair.weights[2]) == len(TEXT) and (pair.query, pair.key) == (40, 7)


def test_texts_of_other_tokens_are_compared_in_the_pieces_both_have():
    a, b = make_capture("Good old sea, good sea."), gpt2("Good old sea, bad sea.")
    pair = pair_of(a, b, query=10)
    rows = rows_of(pair, TOLD)
    assert (rows[0].present != rows[1].present).any() and rows[2].present.any()
    assert np.array_equal(rows[2].present, rows[0].present & rows[1].present)
    for names in pair.names:
        written = "".join(one.text for one in names.glyphs(0, len(pair.opened.grid.columns)))
        assert written.replace("·", "").startswith("Goodoldsea,")
        assert (names.widths > 0).sum() == names.present.sum()


def test_rows_that_are_not_there_are_said():
    pair = pair_of(
        make_capture("The old sea was wide."), make_capture("The sea was wide."), query=5
    )
    assert pair.weights[1] is pair.weights[2] is None and pair.weights[0].sum() > 0.99
    rows = rows_of(pair, TOLD)  # of a letter in "old"
    assert rows[1].weights is None and "one side" in rows[2].message
    assert "B has no such row" in compare.sentence(pair, TOLD)
    blank = pair_of(A, A, query=None)
    assert blank.weights[0] is None and blank.row is None and compare.sentence(blank, TOLD) == ""


def test_bytes_of_one_character_share_what_is_written():
    a = make_capture("é한🙂 a")
    glyphs = pair_of(a, a, query=3).names[0].glyphs(0, len(a.prompt))
    assert [(one.text, one.first, one.last) for one in glyphs] == [
        ("é", 0, 2), ("한", 2, 5), ("🙂", 5, 9), ("·", 9, 10), ("a", 10, 11),
    ]  # fmt: skip


def test_the_sentence_describes_concentrated_and_spread_rows():
    pair = pair_of(make_capture(LONG), make_capture(LONG, seed=3, signed=True), query=60)
    stop = np.zeros(len(LONG), np.float32)
    stop[29], stop[58] = 0.89, 0.11
    sides = np.where(np.arange(len(LONG)) < 31, [(-1) ** n for n in range(len(LONG))], 0)
    pair = replace(pair, weights=(stop, (sides / 31).astype(np.float32), None))
    assert compare.sentence(pair, TOLD) == (
        "“s” with softmax: 89 % of the weight on “.” after “sea”. With ymish: spread over about 31 "
        "tokens, 3 % on “T” in “The”, 48 % of the mass negative; −0.032 on “.”."
    )
    nothing = replace(pair, weights=(stop, np.zeros(len(LONG), np.float32), None))
    assert "With ymish: no weight." in compare.sentence(nothing, TOLD)


def test_the_bits_per_byte_of_both_models_are_given_where_there_are_logits():
    bare = replace(B, logits=None)
    words = answers(A, B)
    assert words.startswith("This text: ") and " bits per byte with softmax, " in words
    assert "B has no logits" in answers(A, bare)
    assert "A has no logits" in answers(bare, A)
    assert answers(bare, replace(A, logits=None)) == ""


def answers(a, b):
    return compare.answer_words(a, b, (bits_per_byte(a), bits_per_byte(b)), TOLD)


def test_the_rows_of_text_take_clicks_and_give_their_values(app):
    session = compared(A, A_SIGNED)
    with showing(TextsView, session, 1600, 190) as view:
        header, *table = view.as_table()
        assert header == ["Key", "Key text in A", "Key text in B", "A", "B", "A − B"]
        weights = A.maps[0].read(0, (40, 41))[0]
        assert [float(one[3]) for one in table[:41]] == pytest.approx(weights[:41].tolist())
        assert len(table) == len(TEXT) and table[41][3:] == ["", "", ""]  # after query 40
        rows = view.rows
        x = 122 + (rows.ruler.x(50) + rows.ruler.x(51)) / 2
        place = QPointF(x, rows.bands[1].center().y()).toPoint()
        for modifier in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.AltModifier):
            QTest.mouseClick(rows, Qt.MouseButton.LeftButton, modifier, place)
        assert (session.selection.query, session.selection.key) == (50, 50)
        view.settle()
        assert view.pair.query == view.pair.key == 50
        assert view.words.text() == view.as_text() != ""


def test_a_click_in_cross_attention_chooses_the_key(app):
    a, b = translator(), translator(activations="ymish")
    layer = next(one.index for one in a.spec.layers if one.role == "cross")
    session = compared(a, b, HeadId(layer, 0), query=3)
    with showing(TextsView, session, 1400, 190) as view:
        view.rows.queried.emit((5, 5))
        assert session.selection.query == 3 and session.selection.key == 5


@pytest.mark.parametrize("size", [(1600, 190), (900, 158), (500, 164)])
def test_a_long_text_scrolls_to_the_query_under_its_overview(app, size):
    a, b = (make_capture(LONG * 6, strides=(1,), signed=signed) for signed in (False, True))
    with showing(TextsView, compared(a, b, query=400), *size) as view:
        rows = view.rows
        assert rows.ruler.scrolls and 0 <= rows.ruler.x(400) <= rows.ruler.room
        before = rows.ruler.offset
        rows._slide(QPointF(122.0, rows.overview_box.center().y()))
        assert rows.ruler.offset < before and rows.bands[-1].bottom() <= rows.height()


@pytest.mark.parametrize(
    ("a", "b", "head", "words", "messages"),
    [
        (make_capture("abcabc"), make_capture("xyzxyz"), FIRST, "B has no such row", (0, 1)),
        (A, FEW_HEADS, HeadId(0, 5), "B has no such head", (1, 1)),
    ],
)
def test_rows_that_b_lacks_are_said(app, a, b, head, words, messages):
    with showing(TextsView, compared(a, b, head, query=3), 900, 190) as view:
        assert words in view.words.text() and view.rows.rows[0].weights is not None
        assert tuple(bool(row.message) for row in view.rows.rows[1:]) == messages
        assert view.as_table()[1][3] and view.as_table()[1][5] == ""
        assert ("none in common" in view.head.note.full) == (head == FIRST)


@pytest.mark.parametrize("kind", [TextsView, NumbersView])
def test_layers_that_are_not_captured_yet_and_nothing_beside_are_no_error(app, kind):
    part = replace(A, maps=(None, *A.maps[1:]))
    for a, b in ((part, A), (A, part), (part, part)):
        with showing(kind, compared(a, b), 900, 190) as view:
            assert shows_no_error(view)
            view.session.put(beside=None)
            view.settle()
            assert shows_no_error(view)
    with showing(kind, Session(), 900, 300) as view:
        assert view.as_table() is None


# --- metrics of both heads ------------------------------------------------------------------------


def test_metrics_of_both_heads_stand_among_those_of_all(app):
    session = compared(A, A_SIGNED, HeadId(1, 1))
    with showing(NumbersView, session, 1600, 108) as view:
        negative, entropy = view.pairs["negative_mass"], view.pairs["entropy"]
        assert negative.lines["A"][1].text() == "0 %" != negative.lines["B"][1].text()
        assert len(entropy.lines["A"][0]._values) == 54
        view.pairs["focus"].lines["A"][0].clearFocus()
        assert "all 54 self-attention heads; dot: head 1.1" in view.head.note.full
        assert "A, head 1.1" in entropy.toolTip()
        rows, focus = view.as_table()[1:], view.pairs["focus"]
        assert len(rows) == 12 and rows[0][1:3] == ["A", "1.1"] and rows[1][1:3] == ["B", "1.1"]
        assert float(rows[0][3]) == focus.lines["A"][0]._mine
        assert f"place {rows[0][4]} of {rows[0][5]}" in focus.words
        assert view.as_text().count("\n") == 5
        session.put(selection=Selection(0, 3, 40))  # known: drawn without being asked for
        assert "A, head 0.3" in entropy.words and entropy.lines["A"][1].text() != "–"
        mark = np.array(theme.current().mark.getRgb()[:3])
        assert (np.abs(picture(view).astype(int) - mark).max(-1) < 8).sum() > 100  # twelve dots


def test_metrics_of_a_head_that_b_lacks_say_so(app):
    with showing(NumbersView, compared(A, FEW_HEADS, HeadId(0, 5)), 900, 108) as view:
        assert "B has no such head" in view.pairs["focus"].toolTip()
        view.pairs["focus"].lines["A"][0].clearFocus()
        assert "54 self-attention" in view.head.note.full


def test_the_sides_say_what_they_are(app):
    session = compared(A, B)
    with showing(SideBar, session, 900, 10) as view:
        assert view.a.name.text() != view.b.name.text()
        session.put(beside=None)
        view.settle()
        assert view.b.name.text() == "nothing yet"
        view.a.deleteLater()
        view.b.deleteLater()


def test_shares_are_whole_only_where_they_are():
    assert [share(one) for one in (0, 0.001, 0.52, 0.999, 1)] == [
        "0 %", "<1 %", "52 %", ">99 %", "100 %",
    ]  # fmt: skip
