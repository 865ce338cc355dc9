"""The text at every resolution: its rows, what is chosen in it, where cells are."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QImage, QPainter, QTextDocument, QWheelEvent
from PySide6.QtTest import QTest

from hgviz import palettes
from hgviz.core import Display, HeadId, Prompt, Selection
from hgviz.gui import ink, sentences, textrows, theme
from hgviz.gui.text import TextStrip
from hgviz.gui.textrows import LEFT, CellTexts, RowLayout, Ruler, TextRow
from hgviz.gui.widgets import turns_along
from tests.analysis.planting import segmented
from tests.gui.screen import colour_at, shown
from tests.making import byte_prompt, make_capture

TEXT = "The hourglass was used at sea. When the sand had run down, it was turned."
WIDE = (1600, 188)
PLAIN, ALT = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.AltModifier


@pytest.fixture(scope="module")
def small():
    return make_capture(TEXT)


@pytest.fixture
def strip(app, small):
    """The view and session of a strip with head 0.1 and query 40."""
    with shown(TextStrip, WIDE, capture=small, selection=Selection(0, 1, 40)) as (view, session):
        yield view, session


def place(view, row, token):
    """The middle of a token in a row."""
    box = view.strip.box((token, token + 1), view.strip.bands[row])
    return box.center().toPoint()


def click(view, spot, keys=PLAIN):
    QTest.mouseClick(view.strip, Qt.MouseButton.LeftButton, keys, spot)


# --- the rows -------------------------------------------------------------------------------------


def test_cells_span_the_tokens_they_stand_for_in_the_colour_of_the_weight(strip, small):
    view, _ = strip
    rows = view.strip.rows
    assert [row.name for row in rows] == ["1:1", "1:2", "1:4"]
    for row, stride in zip(rows, (1, 2, 4), strict=True):
        assert row.cells[:2].tolist() == [[0, 1], [1, 1 + stride]] and row.chosen[1] == 41
    assert not view.strip.ruler.scrolls and not view.strip.row_layout.overview  # it fits
    weights = small.maps[0].read(1)[40]
    assert np.array_equal(rows[0].weights, weights)
    for token in (3, 12, 39):
        placed = palettes.palette_coordinates(weights[token, None], (0.0, float(weights.max())))
        expected = palettes.paint(placed, palettes.colours("viridis"))[0]
        box = view.strip.box((token, token + 1), view.strip.bands[0])
        assert colour_at(view.strip, box.left() + 2, box.top() + 4) == tuple(expected)
    box = view.strip.box((60, 61), view.strip.bands[0])
    unseen = theme.current().unseen.getRgb()[:3]
    assert colour_at(view.strip, box.left() + 2, box.top() + 4) == unseen


def test_every_level_shows_the_head_opened_there_and_ties_join_the_chosen_cells(strip):
    view, session = strip
    for selection in (Selection(5, 2, 40), Selection(12, 4, 40)):
        session.put(selection=selection)
        view.settle()
    heads = [row.head for row in view.strip.rows]
    assert heads[0] == HeadId(12, 4) != heads[1] and heads[2] == HeadId(5, 2)
    for row in (0, 1):
        x, y = place(view, row, 40).x(), view.strip.bands[row].bottom() + 3
        assert colour_at(view.strip, x, y) == theme.current().mark.getRgb()[:3]


@pytest.mark.parametrize("text", ["a", "\n", " ", "😀", "שלום", "안녕 hi", "a\u202eb\x00c"])
@pytest.mark.parametrize("dark", [False, True])
def test_any_text_has_rows(app, text, dark):
    theme.apply(app, dark)
    capture = make_capture(text, signed=True)
    selection = Selection(0, 0, len(capture.prompt) - 1)
    with shown(TextStrip, (900, 188), capture=capture, selection=selection) as (view, _):
        assert len(view.strip.rows) == 3 and not view.strip.grab().isNull()
        low, high = view.strip.rows[0].limits
        assert low == -high < 0 and "Red" in view.legend.full


def test_heads_that_are_off_have_no_colours_and_levels_that_are_not_captured_no_row(app, small):
    part = replace(small, maps=(*small.maps[:2], *(None for _ in small.maps[2:])))
    off, chosen = frozenset({HeadId(0, 0)}), Selection(0, 0, 40)
    for capture, coloured in ((small, [False, True, True]), (part, [False])):
        with shown(TextStrip, WIDE, capture=capture, selection=chosen, off=off) as (view, _):
            assert [row.coloured for row in view.strip.rows] == coloured
            view.strip.grab()


def test_the_null_group_is_there_before_any_segment(app):
    capture = segmented("none")
    with shown(TextStrip, (900, 188), capture=capture, selection=Selection(1, 1, 0)) as (view, _):
        row = view.strip.rows[1]
        assert row.null and row.chosen == (-1, -1) and row.weights.tolist() == [1.0]


# --- choosing -------------------------------------------------------------------------------------


def test_a_click_chooses_the_query_with_alt_the_key_and_a_label_its_head(strip):
    view, session = strip
    click(view, place(view, 0, 50))
    click(view, place(view, 0, 12), ALT)
    assert (session.selection.query, session.selection.key) == (50, 12)
    click(view, place(view, 2, 18))
    assert session.selection.query == 20  # the newest token of the cell
    head = view.strip.rows[2].head
    click(view, QPoint(60, round(view.strip.bands[2].center().y())))
    assert session.selection.head_id == head != HeadId(0, 1)


def test_dragging_takes_the_mean_of_several_queries(strip, small):
    view, session = strip
    QTest.mousePress(view.strip, Qt.MouseButton.LeftButton, PLAIN, place(view, 0, 44))
    for token in (46, 49):
        QTest.mouseMove(view.strip, place(view, 0, token))
    QTest.mouseRelease(view.strip, Qt.MouseButton.LeftButton, PLAIN, place(view, 0, 49))
    view.settle()
    assert np.allclose(view.strip.rows[0].weights, small.maps[0].read(1)[44:50].mean(axis=0))
    assert "The mean of 6 tokens." in view.legend.full
    session.select(query=3)
    view.settle()
    assert "mean" not in view.legend.full


def test_pointing_at_a_token_points_at_it_everywhere(strip):
    view, session = strip
    QTest.mouseMove(view.strip, place(view, 0, 12))
    assert session.hover == Selection(0, 1, 40, 12)
    view.strip.pointed.emit(None)
    assert session.hover is None


def test_the_buttons_ask_for_their_actions_and_an_edited_text_is_marked(strip):
    view, session = strip
    asked = []
    view.asked.connect(asked.append)
    view.edit.click()
    view.capture_button.click()
    assert asked == ["edit_text", "capture"]
    session.put(text="something else")
    view.settle()
    assert view.legend.full.startswith("Text before")


def test_a_long_text_scrolls_to_the_query_and_a_low_strip_leaves_the_legend_out(app):
    capture = make_capture(TEXT * 12, heads=2)
    with shown(TextStrip, (900, 150), capture=capture, selection=Selection(0, 0, 5)) as (
        view,
        session,
    ):
        assert view.strip.ruler.offset == 0 and view.strip.row_layout.overview
        session.select(query=600)
        view.settle()
        first, last = view.strip.ruler.shown()
        assert first < 600 < last
        view.show_legend(False)
        assert not view.legend.isVisible()
        assert view.strip.bands[-1].bottom() <= view.strip.height()
        click(view, QPoint(LEFT + 1, round(view.strip.overview_box.center().y())))
        assert view.strip.ruler.offset == 0 and session.selection.query == 600


# --- cells and words ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "first", "glyphs"),
    [
        ("a😀é", 0, [("a", 0, 1), ("😀", 1, 5), ("é", 5, 7)]),
        ("a😀é", 3, [("😀", 1, 5), ("é", 5, 7)]),
        ("aש", 0, [("a", 0, 1), ("ש", 1, 3)]),
    ],
)
def test_the_bytes_of_a_character_share_one_glyph(text, first, glyphs):
    prompt = byte_prompt(text)
    found = CellTexts.of_tokens(prompt).glyphs(first, len(prompt))
    assert [(one.text, one.first, one.last) for one in found] == glyphs
    assert [one.leftwards for one in found] == [one.text == "ש" for one in found]


def test_pieces_are_as_wide_as_their_characters_and_special_ones_are_framed():
    prompt = Prompt(
        "hour glass", np.arange(4), ("[CLS]", "hour", "glass", "[SEP]"),
        np.array([(-1, -1), (0, 4), (5, 10), (-1, -1)]),
    )  # fmt: skip
    texts = CellTexts.of_tokens(prompt)
    assert texts.widths.tolist() == [6, 5, 6, 6]
    assert CellTexts.of_tokens(prompt, limit=4).widths.tolist() == [6, 5, 5, 6]
    assert [one.special for one in texts.glyphs(0, 4)] == [True, False, False, True]


def test_words_are_found_by_offsets_and_shown_with_all_that_is_in_them(app):
    prompt = byte_prompt("a bé\n c.")
    spans = sentences.word_spans(prompt)
    assert [prompt.words(*one) for one in spans.tolist()] == ["a", "bé", "c."]
    assert sentences.place(prompt, spans, 3, 4) == "in bé, position 3"
    assert sentences.place(prompt, spans, 8, 9) == "after c, position 8"
    assert sentences.shown("\n\t\x00\u200f ") == "↵⇥␀\ufffd·"
    document = QTextDocument()
    document.setPlainText(f"{sentences.quoted('שלום')} attends to {sentences.quoted('s')}")
    assert document.firstBlock().textDirection() == Qt.LayoutDirection.LeftToRight


def test_the_ruler_finds_units_and_scrolls_as_far_as_there_is_text():
    ruler = Ruler.fitted(np.ones(300), 500)
    for unit in (0, 7, 40):
        assert ruler.at((ruler.x(unit) + ruler.x(unit + 1)) / 2) == unit
    assert ruler.at(-1) is None and ruler.around(20) is ruler
    first, last = ruler.around(200).shown()
    assert first < 200 < last
    assert ruler.turned(-2).offset == 16 * ruler.width and ruler.turned(1).offset == 0
    assert ruler.turned(-2).turned(0.5).offset == 12 * ruler.width
    assert ruler.centred(0.5).at(250) in (149, 150)
    assert ruler.centred(0).offset == 0 and ruler.centred(1).shown()[1] == 300


@pytest.mark.parametrize(
    ("across", "down", "turns"), [(0, 120, 1), (-240, 120, -2), (30, -60, -0.5)]
)
def test_a_wheel_goes_along_the_way_it_was_turned_more(app, across, down, turns):
    spot = QPointF(5, 5)
    event = QWheelEvent(spot, spot, QPoint(), QPoint(across, down), Qt.MouseButton.NoButton, PLAIN,
                        Qt.ScrollPhase.NoScrollPhase, False)  # fmt: skip
    assert turns_along(event) == turns


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("room", [100, 110, 130])
def test_rows_shrink_into_their_room(count, room):
    rows = RowLayout.fitted([36, *[26] * (count - 1)], room, scrolls=True)
    top, height = rows.tops[-1]
    assert top + height <= max(room, 18 * count + 12)
    assert rows.at(rows.tops[0][0]) == 0


@pytest.mark.parametrize("signed", [False, True])
def test_the_overview_shows_the_largest_where_several_units_share_a_pixel(signed):
    weights = np.zeros(1000, np.float32)
    weights[777] = -0.5 if signed else 0.5
    seen = np.arange(1000) < 900
    limits = palettes.limits_of(-0.5 if signed else 0.0, 0.5, signed)
    row = TextRow("1:1", None, None, None, weights, seen, limits=limits, signed=signed)
    pixels = ink.channels(textrows.overview_pixels(row, Display(), 100))[0]
    table = palettes.colours(palettes.matching_palette(Display().palette, signed))
    assert tuple(pixels[77, :3]) == tuple(table[0 if signed else -1])
    assert (pixels[90:, 3] == 0).all() and (pixels[:90, 3] == 255).all()


class Spy(QPainter):
    """A painter that keeps what it writes and from where to where."""

    def __init__(self, on):
        super().__init__(on)
        self.written = []

    def drawText(self, box, flags, text):
        if text and text != "∅":
            wide = self.fontMetrics().horizontalAdvance(text)
            self.written.append((box.left(), box.left() + wide, text))


@pytest.mark.parametrize("level", ["1:1", "segments", "target", "encoder"])
@pytest.mark.parametrize("null", [False, True])
def test_the_label_off_overlaps_neither_level_nor_head(app, level, null):
    cells = segmented("words").spans[1 if null else 0]
    image = QImage(200, 40, QImage.Format.Format_RGB32)
    with Spy(image) as painter:
        row = TextRow(level, None, cells, HeadId(1, 1), off=True)
        assert row.null == null
        textrows.paint_label(painter, row, QRectF(0, 0, 0, 30), True, Display())
        written = sorted(painter.written)
    assert [text for _, _, text in written][1:] == ["off", "1.1"]
    for (_, right, _), (left, _, _) in zip(written, written[1:], strict=False):
        assert right <= left
    assert written[-1][1] <= LEFT
