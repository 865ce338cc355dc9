"""The text at every resolution: its rows, what is chosen in it, where cells are."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QTextDocument
from PySide6.QtTest import QTest

from hgviz import palettes
from hgviz.core import HeadId, Selection
from hgviz.gui import sentences, theme
from hgviz.gui.text import TextStrip
from hgviz.gui.textrows import LEFT, CellTexts
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
    assert not view.strip.ruler.scrolls and not view.strip.overview  # it fits
    weights = small.maps[0].read(1)[40]
    assert np.array_equal(rows[0].weights, weights)
    placed = palettes.palette_coordinates(weights[12, None], (0.0, float(weights.max())))
    expected = palettes.paint(placed, palettes.colours("viridis"))[0]
    box = view.strip.box((12, 13), view.strip.bands[0])
    assert colour_at(view.strip, box.left() + 2, box.top() + 4) == tuple(expected)


def test_every_level_shows_the_head_opened_there(strip):
    view, session = strip
    for selection in (Selection(5, 2, 40), Selection(12, 4, 40)):
        session.put(selection=selection)
        view.settle()
    heads = [row.head for row in view.strip.rows]
    assert heads[0] == HeadId(12, 4) != heads[1] and heads[2] == HeadId(5, 2)


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
    assert "Mean of 6 tokens." in view.legend.full
    session.select(query=3)
    view.settle()
    assert "mean" not in view.legend.full


def test_the_buttons_ask_for_their_actions_and_an_edited_text_is_marked(strip):
    view, session = strip
    asked = []
    view.asked.connect(asked.append)
    view.edit.click()
    view.capture_button.click()
    assert asked == ["edit_text", "capture"]
    session.put(text="something else")
    view.settle()
    assert view.legend.full.startswith("Previous text")


def test_a_long_text_scrolls_to_the_query_and_a_low_strip_leaves_the_legend_out(app):
    capture = make_capture(TEXT * 12, heads=2)
    with shown(TextStrip, (900, 150), capture=capture, selection=Selection(0, 0, 5)) as (
        view,
        session,
    ):
        assert view.strip.ruler.offset == 0 and view.strip.overview
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
