"""The text at every resolution."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QImage, QPainter, QTextDocument, QWheelEvent
from PySide6.QtWidgets import QApplication

from hgviz import palettes
from hgviz.core import Display, HeadId, Prompt, Selection
from hgviz.gui import sentences, textrows, theme
from hgviz.gui.text import TextStrip
from hgviz.gui.textrows import LEFT, TOP, CellTexts, RowLayout, Ruler, TextRow
from hgviz.gui.widgets import turns_along
from tests.analysis.planting import segmented
from tests.gui.screen import colour_at, shown
from tests.making import byte_prompt, make_capture

TEXT = "The hourglass was used at sea. When the sand had run down, it was turned."
WIDE = (1600, 188)
NONE = Qt.KeyboardModifier.NoModifier


@pytest.fixture(scope="module")
def small():
    return make_capture(TEXT)


def centre(view, row, token):
    strip = view.strip
    top, height = strip.row_layout.tops[row]
    x = (strip.ruler.x(token) + strip.ruler.x(token + 1)) / 2
    return QPoint(round(LEFT + x), TOP + top + height // 2)


def corner(view, row, token):
    """A place in a cell beside its letter, in the coordinates of the strip."""
    top, _ = view.strip.row_layout.tops[row]
    return LEFT + round(view.strip.ruler.x(token)) + 2, TOP + top + 4


# --- the rows -------------------------------------------------------------------------------------


def test_cells_span_exactly_the_tokens_they_stand_for(app, small):
    with shown(TextStrip, WIDE, capture=small, selection=Selection(0, 0, 40)) as (view, _):
        assert [line.name for line in view.strip.rows] == ["1:1", "1:2", "1:4"]
        for line, stride in zip(view.strip.rows, (1, 2, 4), strict=True):
            assert tuple(line.cells[0]) == (0, 1)
            assert tuple(line.cells[1]) == (1, 1 + stride)
            assert line.chosen[1] - 1 == 40
        assert not view.strip.ruler.scrolls and not view.strip.row_layout.overview  # it fits


def test_the_background_is_the_weight_from_the_query(app, small):
    with shown(TextStrip, WIDE, capture=small, selection=Selection(0, 1, 40)) as (view, _):
        line = view.strip.rows[0]
        weights = small.maps[0].read(1)[40]
        assert np.array_equal(line.weights, weights)
        table = palettes.colours("viridis")
        limits = (0.0, float(weights.max()))
        for token in (3, 12, 39):
            placed = palettes.palette_coordinates(weights[token : token + 1], limits)
            expected = palettes.paint(placed, table)[0]
            assert colour_at(view.strip, *corner(view, 0, token)) == tuple(expected)
        assert colour_at(view.strip, *corner(view, 0, 60)) == theme.current().unseen.getRgb()[:3]


def test_every_level_shows_the_head_opened_there(app, small):
    with shown(TextStrip, WIDE, capture=small, selection=Selection(5, 2, 40)) as (view, session):
        session.put(selection=Selection(12, 4, 40))
        view.settle()
        heads = [line.head for line in view.strip.rows]
        assert heads[0] == HeadId(12, 4) == view.strip.selected != heads[1]
        assert heads[2] == HeadId(5, 2)


def test_ties_join_the_chosen_cells(app, small):
    with shown(TextStrip, WIDE, capture=small, selection=Selection(0, 0, 40)) as (view, _):
        for row in (0, 1):
            top, height = view.strip.row_layout.tops[row]
            x = LEFT + round((view.strip.ruler.x(40) + view.strip.ruler.x(41)) / 2)
            found = colour_at(view.strip, x, TOP + top + height + 3)
            assert found == theme.current().mark.getRgb()[:3]


@pytest.mark.parametrize("text", ["a", "ab", "\n", " ", "😀", "שלום", "안녕 hi", "a\u202eb\x00c"])
@pytest.mark.parametrize("dark", [False, True])
def test_any_text_has_rows(app, text, dark):
    theme.apply(app, dark)
    capture = make_capture(text)
    last = len(capture.prompt) - 1
    with shown(TextStrip, (900, 188), capture=capture, selection=Selection(0, 0, last)) as (
        view,
        _,
    ):
        assert len(view.strip.rows) == 3
        assert not view.strip.grab().isNull()


def test_a_switched_off_head_has_no_colours(app, small):
    off = frozenset({HeadId(0, 0)})
    with shown(TextStrip, WIDE, capture=small, selection=Selection(0, 0, 40), off=off) as (view, _):
        assert view.strip.rows[0].off and not view.strip.rows[1].off


def test_signed_weights_are_coloured_about_zero(app):
    capture = make_capture(TEXT, signed=True)
    with shown(TextStrip, WIDE, capture=capture, selection=Selection(0, 0, 40)) as (view, _):
        low, high = view.strip.rows[0].limits
        assert low == -high < 0
        assert "Red" in view.legend.full


def test_a_level_that_is_not_captured_yet_has_no_row(app, small):
    partial = replace(small, maps=(*small.maps[:2], *(None for _ in small.maps[2:])))
    with shown(TextStrip, WIDE, capture=partial, selection=Selection(0, 0, 40)) as (view, _):
        assert [line.name for line in view.strip.rows] == ["1:1"]


# --- choosing -------------------------------------------------------------------------------------


def test_a_click_chooses_the_query_and_with_alt_the_key(app, small, qtbot):
    with shown(TextStrip, WIDE, capture=small, selection=Selection(0, 0, 40)) as (view, session):
        left = Qt.MouseButton.LeftButton
        qtbot.mouseClick(view.strip, left, NONE, centre(view, 0, 50))
        assert session.selection.query == 50
        qtbot.mouseClick(view.strip, left, Qt.KeyboardModifier.AltModifier, centre(view, 0, 12))
        assert (session.selection.query, session.selection.key) == (50, 12)
        qtbot.mouseClick(view.strip, left, NONE, centre(view, 2, 18))
        assert session.selection.query == 20


def test_dragging_takes_the_mean_of_several_queries(app, small, qtbot):
    with shown(TextStrip, WIDE, capture=small, selection=Selection(0, 1, 40)) as (view, session):
        left = Qt.MouseButton.LeftButton
        qtbot.mousePress(view.strip, left, NONE, centre(view, 0, 44))
        for token in (46, 49):
            qtbot.mouseMove(view.strip, centre(view, 0, token))
        qtbot.mouseRelease(view.strip, left, NONE, centre(view, 0, 49))
        view.settle()
        expected = small.maps[0].read(1)[44:50].mean(axis=0)
        assert np.allclose(view.strip.rows[0].weights, expected)
        assert "The mean of 6 letters." in view.legend.full
        session.select(query=3)
        view.settle()
        assert "mean" not in view.legend.full


def test_pointing_at_a_letter_points_at_it_everywhere(app, small):
    with shown(TextStrip, WIDE, capture=small, selection=Selection(0, 0, 40)) as (view, session):
        view.strip.pointed.emit(12)
        assert session.hover == Selection(0, 0, 40, 12)
        view.strip.pointed.emit(None)
        assert session.hover is None


def test_a_label_opens_its_head(app, small, qtbot):
    with shown(TextStrip, WIDE, capture=small, selection=Selection(0, 0, 40)) as (view, session):
        top, height = view.strip.row_layout.tops[2]
        place = QPoint(60, TOP + top + height // 2)
        qtbot.mouseClick(view.strip, Qt.MouseButton.LeftButton, NONE, place)
        assert session.selection.head_id == view.strip.rows[2].head != HeadId(0, 0)


def test_the_buttons_ask_for_their_actions(app, small, qtbot):
    with shown(TextStrip, WIDE, capture=small) as (view, _):
        asked = []
        view.asked.connect(asked.append)
        view.edit.click()
        view.capture_button.click()
        assert asked == ["edit_text", "capture"]


def test_an_edited_text_is_marked_as_another(app, small):
    with shown(TextStrip, WIDE, capture=small, selection=Selection(0, 0, 4)) as (view, session):
        session.put(text="something else")
        view.settle()
        assert view.legend.full.startswith("Text before")


# --- long texts -----------------------------------------------------------------------------------


def test_a_long_text_scrolls_and_follows_the_selection(app):
    capture = make_capture(TEXT * 12, heads=2)
    with shown(TextStrip, (900, 188), capture=capture, selection=Selection(0, 0, 5)) as (
        view,
        session,
    ):
        assert view.strip.ruler.scrolls and view.strip.row_layout.overview
        assert view.strip.ruler.offset == 0
        session.select(query=600)
        view.settle()
        first, last = view.strip.ruler.shown()
        assert first < 600 < last
        QApplication.processEvents()
        assert not view.strip.grab().isNull()


def test_a_low_strip_leaves_the_legend_out(app, small):
    with shown(TextStrip, (900, 150), capture=small, selection=Selection(0, 0, 4)) as (view, _):
        view.show_legend(False)
        QApplication.processEvents()
        assert not view.legend.isVisible()
        top, height = view.strip.row_layout.tops[-1]
        assert TOP + top + height <= view.strip.height()


# --- pure -----------------------------------------------------------------------------------------


def test_the_bytes_of_a_character_share_one_glyph():
    prompt = byte_prompt("a😀é")
    found = CellTexts.of_tokens(prompt).glyphs(0, len(prompt))
    assert [(one.text, one.first, one.last) for one in found] == [
        ("a", 0, 1), ("😀", 1, 5), ("é", 5, 7),
    ]  # fmt: skip
    assert [one.first for one in CellTexts.of_tokens(prompt).glyphs(3, 5)] == [1]


def test_letters_from_the_right_are_marked_and_keep_their_cells():
    found = CellTexts.of_tokens(byte_prompt("aש")).glyphs(0, 3)
    assert [one.leftwards for one in found] == [False, True]
    assert [one.first for one in found] == [0, 1]


def test_a_sentence_about_a_letter_from_the_right_reads_from_the_left(app):
    document = QTextDocument()
    document.setPlainText(f"{sentences.quoted('שלום')} looks at {sentences.quoted('s')}")
    assert document.firstBlock().textDirection() == Qt.LayoutDirection.LeftToRight
    assert sentences.quoted("s") == "“s”"


def test_control_characters_can_be_seen():
    assert sentences.shown("\n\t\x00\u200f ") == "↵⇥␀\ufffd·"


def test_pieces_are_as_wide_as_their_letters_and_special_ones_are_chips():
    prompt = Prompt(
        "hour glass", np.arange(4), ("[CLS]", "hour", "glass", "[SEP]"),
        np.array([(-1, -1), (0, 4), (5, 10), (-1, -1)]),
    )  # fmt: skip
    assert CellTexts.of_tokens(prompt).widths.tolist() == [6, 5, 6, 6]
    assert [one.special for one in CellTexts.of_tokens(prompt).glyphs(0, 4)] == [
        True,
        False,
        False,
        True,
    ]
    assert prompt.unit == "token"


def test_words_are_found_by_offsets():
    prompt = byte_prompt("a bé\n c.")
    spans = sentences.word_spans(prompt)
    assert [prompt.words(*one) for one in spans.tolist()] == ["a", "bé", "c."]
    assert sentences.place(prompt, spans, 3, 4) == "in bé, position 3"
    assert sentences.place(prompt, spans, 8, 9) == "after c, position 8"
    assert sentences.place(prompt, spans, 2, 5) == "letters 2 to 4"


def test_the_ruler_finds_the_token_under_a_place():
    ruler = Ruler.fitted(np.ones(300), 500)
    for token in (0, 7, 40):
        assert ruler.at((ruler.x(token) + ruler.x(token + 1)) / 2) == token
    assert ruler.at(-1) is None
    moved = ruler.around(200)
    assert moved.shown()[0] < 200 < moved.shown()[1]


def test_the_ruler_is_turned_8_letters_a_notch_and_centred_as_far_as_there_is_text():
    ruler = Ruler.fitted(np.ones(300), 500)
    assert ruler.turned(-2).offset == 16 * ruler.width and ruler.turned(1).offset == 0
    assert ruler.turned(-2).turned(0.5).offset == 12 * ruler.width
    assert ruler.centred(0.5).at(250) in (149, 150)
    assert ruler.centred(0).offset == 0 and ruler.centred(1).shown()[1] == 300


@pytest.mark.parametrize(
    ("across", "down", "turns"), [(0, 120, 1), (-240, 120, -2), (30, -60, -0.5)]
)
def test_a_wheel_goes_along_the_way_it_was_turned_more(app, across, down, turns):
    place = QPointF(5, 5)
    event = QWheelEvent(place, place, QPoint(), QPoint(across, down), Qt.MouseButton.NoButton, NONE,
                        Qt.ScrollPhase.NoScrollPhase, False)  # fmt: skip
    assert turns_along(event) == turns


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("room", [100, 110, 130])
def test_rows_shrink_into_their_room(count, room):
    rows = RowLayout.fitted([36, *[26] * (count - 1)], room, scrolls=True)
    top, height = rows.tops[-1]
    assert top + height <= max(room, 18 * count + 12)
    assert rows.at(rows.tops[0][0]) == 0


def test_the_line_of_all_tokens_shows_the_largest_where_several_share_a_pixel():
    weights = np.zeros(1000, np.float32)
    weights[777] = 0.5
    seen = np.arange(1000) < 900
    spans = np.stack([np.arange(1000), np.arange(1, 1001)], axis=1)
    row = TextRow("1:1", None, spans, HeadId(0, 0), weights, seen, limits=(0.0, 0.5))
    found = textrows.overview_pixels(row, Display(), 100)
    assert tuple(found[77, :3]) == tuple(palettes.colours("viridis")[-1])
    assert (found[90:, 3] == 0).all() and (found[:90, 3] == 255).all()


# --- little room ----------------------------------------------------------------------------------


class Spy(QPainter):
    """A painter that keeps what it writes and from where to where."""

    def __init__(self, on):
        super().__init__(on)
        self.written = []

    def drawText(self, box, flags, text):
        if text:
            wide = self.fontMetrics().horizontalAdvance(text)
            self.written.append((text, box.left(), box.left() + wide))


@pytest.mark.parametrize("level", ["1:1", "segments", "target", "encoder"])
@pytest.mark.parametrize("null", [False, True])
def test_the_label_off_overlaps_neither_level_nor_head(app, level, null):
    spans = segmented("words").spans[1 if null else 0]
    image = QImage(200, 40, QImage.Format.Format_RGB32)
    with Spy(image) as painter:
        line = TextRow(level, None, spans, HeadId(1, 1), off=True)
        assert line.null == null
        textrows.paint_label(painter, line, QRectF(0, 0, 0, 30), True, Display())
    found = {text: (left, right) for text, left, right in painter.written if text != "∅"}
    assert {"off", "1.1"} < found.keys() and len(found) == 3
    ordered = sorted(found.values())
    for (_, right), (left, _) in zip(ordered, ordered[1:], strict=False):
        assert right <= left
    assert ordered[-1][1] <= textrows.LEFT


def test_the_null_group_is_there_before_any_segment(app):
    capture = segmented("none")
    assert len(capture.spans[1]) == 1
    with shown(TextStrip, (900, 188), capture=capture, selection=Selection(1, 1, 0)) as (view, _):
        line = view.strip.rows[1]
        assert line.null and line.chosen == (-1, -1) and line.weights.tolist() == [1.0]
