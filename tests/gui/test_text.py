"""The text at every resolution, and captures of many texts: listed, searched, opened."""

import time
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import Qt as TextQt
from PySide6.QtGui import QTextDocument
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from hgviz import palettes, tasks
from hgviz.core import HeadId, Item, Selection, progress
from hgviz.gui import sentences, sources, theme
from hgviz.gui.panels import TextsPanel
from hgviz.gui.text import TextStrip
from hgviz.gui.textrows import LEFT
from tests.gui.screen import busy, colour_at, errors, shown
from tests.making import byte_prompt, make_capture, stranger

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


def test_any_text_has_rows(app):
    theme.apply(app, dark=True)
    for text in ("\n", "😀", "שלום", "a\u202eb\x00c"):
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
    asked = []
    view.asked.connect(asked.append)
    view.edit.click()
    view.capture_button.click()
    assert asked == ["edit_text", "capture"]
    session.put(text="something else")
    view.settle()
    assert view.legend.full.startswith("Previous text")


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


# --- captures of many texts -----------------------------------------------------------------------


TEXTS = (
    "The film was long", "The plot was late", "The evening", "Ein Café,\nsehr GUT\tund teuer",
    "<b>bold</b> & more", "שלום עולם",
)  # fmt: skip


def test_texts_are_found_by_their_words_counted_and_shown_plainly(app):
    items = tuple(Item(n, text, 20 + n, "positive") for n, text in enumerate(TEXTS))
    capture = replace(make_capture("It was late"), items=items, item=1, path="many.h5")
    with shown(TextsPanel, size=(304, 320), capture=capture) as (panel, _):
        assert panel.found(3)[0] == "Ein Café, sehr GUT und teuer"
        row = panel.list.order.index(1, 0)
        assert row.data() == "2: The plot was late, 21 tokens, positive"
        tip = panel.list.order.index(4, 0).data(Qt.ItemDataRole.ToolTipRole)
        assert not TextQt.mightBeRichText(tip) and "<b>bold</b> & more" in tip
        for query, found in (
            ("café", [3]), ("cafe", []), ("SEHR gut und", [3]), ("<b>", [4]), ("שלום", [5]),
        ):  # fmt: skip
            panel.field.setText(query)
            assert panel.list.rows == found
        assert panel.count.full == "1 of 6 texts"
        panel.field.setText("was long")
        text, start, end = panel.found(0)
        assert text[start:end] == "was long"
        panel.field.setText("xyzzy <b>")
        assert panel.none.full == "No text contains “xyzzy <b>”"
        assert panel.none.isVisible() and not panel.list.rows


# --- capturing a file of texts --------------------------------------------------------------------


def test_stop_opens_what_is_done(with_model, until, tmp_path, monkeypatch):
    def capture_corpus(*given, **more):
        while True:
            progress(1, 40, "text 1 of 40")
            time.sleep(0.005)

    session, out, paths = with_model.session, tmp_path / "out.h5", []
    monkeypatch.setattr(tasks, "capture_corpus", capture_corpus)
    with_model.commands.open_path = paths.append
    for began in (False, True):
        if began:
            (tmp_path / "out.h5.part").mkdir()
        with_model.commands.prompting.capture_corpus("in.tsv", str(out))
        until(lambda: session.work[-1].note.startswith("text"))
        assert session.work[-1].title == "Running model on in.tsv"
        with_model.inspect.strip.capture_button.click()  # Stop
        until(lambda: session.work[-1].state == "stopped" and not with_model.lanes.engine.jobs)
        QApplication.processEvents()
        assert paths == ([f"{out}.part"] if began else []) and not errors(with_model)


def test_a_file_is_captured_listed_searched_and_walked_through(with_model, until, tmp_path):
    session, out, reviews = with_model.session, tmp_path / "out.h5", tmp_path / "reviews.tsv"
    names = ["A good film", "A bad film", "Ein Café"] * 3
    rows = (f"{text} number {n}\tpositive\n" for n, text in enumerate(names))
    reviews.write_text("text\tlabel\n" + "".join(rows), "utf-8")
    with_model.commands.prompting.capture_corpus(str(reviews), str(out))
    until(lambda: session.capture.path == str(out) and session.facts and not busy(with_model))
    assert len(session.capture.items) == 9 and session.model is not None
    assert session.text == "A good film number 0"
    with_model.settle()
    panel = with_model.inspect.texts
    panel.field.setText("café")
    assert panel.count.full == "3 of 9 texts"
    session.select(layer=1, head=1)
    QTest.keyClick(panel.field, Qt.Key.Key_Return)
    until(lambda: session.capture.item == 2 and session.facts and not busy(with_model))
    assert session.text == "Ein Café number 2" and session.selection.head_id == (1, 1)
    QTest.keyClick(with_model.frame, Qt.Key.Key_PageDown, Qt.KeyboardModifier.ControlModifier)
    until(lambda: session.capture.item == 3 and not busy(with_model))
    with_model.settle()
    assert with_model.inspect.strip.head.title.text() == "Text 4 of 9"
    assert not errors(with_model)
    before = session.capture
    (tmp_path / "odd.txt").write_bytes(b"\n\n")
    commands = with_model.commands
    commands.prompting.capture_corpus(str(tmp_path / "odd.txt"), str(tmp_path / "none.h5"))
    until(lambda: errors(with_model))
    (error,) = errors(with_model)
    assert "odd.txt" in error.what and "Traceback" not in str(error)
    assert session.capture is before and not (tmp_path / "none.h5").exists()


# --- texts of strangers ---------------------------------------------------------------------------


def test_markup_and_controls_in_a_text_are_shown_as_plain_short_text(program):
    capture = stranger(make_capture("abcdefghij" * 4, (1, 2), 2), size=1 << 18)
    found = sources.measure(capture)
    program.session.put(capture=capture, facts=found.facts)
    program.settle()
    for token in (0, 5):
        program.session.put(selection=Selection(1, 0, token, 4))
        program.settle()
        QApplication.processEvents()
        for said, rich in words_on_screen():
            assert not {"\0", "\x1b", "\u202e"} & {*said}, said[:80]
            assert len(said) < 5000, said[:80]
            assert not rich or ("<img" not in said and "<b>x" not in said), said[:80]


def words_on_screen():
    """What labels, titles and tips show, and whether Qt takes it for markup."""
    for widget in QApplication.allWidgets():
        yield widget.toolTip(), TextQt.mightBeRichText(widget.toolTip())
        yield widget.windowTitle(), False
        yield widget.accessibleName(), False
        if isinstance(widget, QLabel):
            form, said = widget.textFormat(), widget.text()
            auto = form == Qt.TextFormat.AutoText and TextQt.mightBeRichText(said)
            yield said, auto or form == Qt.TextFormat.RichText
