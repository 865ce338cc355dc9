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


@pytest.mark.parametrize("dark", [False, True])
def test_any_text_has_rows(app, dark):
    theme.apply(app, dark)
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


LABELS = ("negative", "positive")
ODD = {3: "Ein Café,\nsehr GUT\tund teuer", 4: "<b>bold</b> & more", 5: "שלום עולם"}


def texts(count=300):
    """So many texts with labels in turn."""
    return tuple(
        Item(n, ODD.get(n, f"The {'film' if n % 3 else 'plot'} of evening {n} was long"), 20 + n,
             LABELS[n % 2] if n else "")
        for n in range(count)
    )  # fmt: skip


@pytest.fixture(scope="module")
def many():
    """A capture of the second of three hundred texts."""
    return replace(make_capture("It was late"), items=texts(), item=1, path="many.h5")


@pytest.fixture
def corpus(program, many, monkeypatch):
    """A program with a corpus open, whose texts are opened from memory."""
    asked = []

    def look(path, item=0):
        asked.append((path, item))
        progress(0, 1)
        length = 5 + item % 7
        other = make_capture("Every text is another text"[:length], seed=item)
        return sources.OpenedFile(path, replace(other, items=many.items, item=item, path=path))

    monkeypatch.setattr(sources, "look", look)
    program.session.put(capture=many)
    program.settle()
    program.asked = asked
    return program


@pytest.fixture
def panel(app, many):
    with shown(TextsPanel, size=(304, 320), capture=many) as (panel, _):
        yield panel


# --- searching ------------------------------------------------------------------------------------


def test_texts_are_found_by_their_words_counted_and_shown_plainly(panel):
    assert panel.found(3)[0] == "Ein Café, sehr GUT und teuer"
    row = panel.list.order.index(1, 0)
    assert row.data() == "2: The film of evening 1 was long, 21 tokens, positive"
    tip = panel.list.order.index(4, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert not TextQt.mightBeRichText(tip) and "<b>bold</b> & more" in tip and "--item 4" in tip
    for query, found in (
        ("café", [3]), ("cafe", []), ("SEHR gut und", [3]), ("<b>", [4]), ("שלום", [5]),
        ("evening 29 was", [29]),
    ):  # fmt: skip
        panel.field.setText(query)
        assert panel.list.rows == found
    assert panel.count.full == "1 of 300 texts"
    panel.field.setText("was long")
    text, start, end = panel.found(2)
    assert text[start:end] == "was long"
    panel.field.setText("xyzzy <b>")
    assert panel.none.full == "No text contains “xyzzy <b>”"
    assert panel.none.isVisible() and not panel.list.rows
    panel.field.clear()
    assert panel.none.isHidden() and panel.list.rows == [*range(300)]
    assert panel.count.full == "300 texts"


# --- in the window --------------------------------------------------------------------------------


def test_a_click_opens_a_text_and_the_keys_step_through_all(corpus, until):
    panel, session = corpus.inspect.texts, corpus.session
    session.select(layer=3, head=2)
    spot = panel.list.visualRect(panel.list.order.index(2, 0)).center()
    QTest.mouseClick(panel.list.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    until(lambda: session.capture.item == 2 and not busy(corpus))
    assert session.selection.head_id == (3, 2)  # the head stays
    for key, item in ((Qt.Key.Key_PageDown, 3), (Qt.Key.Key_PageUp, 2)):
        QTest.keyClick(corpus.frame, key, Qt.KeyboardModifier.ControlModifier)
        until(lambda item=item: session.capture.item == item and not busy(corpus))
    corpus.settle()
    corpus.commands.run("last_text")
    until(lambda: session.capture.item == 1 and not busy(corpus))
    for number in (5, 6, 299):  # the newest is shown
        corpus.commands.open_item(number)
    until(lambda: session.capture.item == 299 and not busy(corpus))
    assert session.capture.place_in_corpus == (300, 300)
    assert "last" in corpus.frame.actions_by_name["next_text"].toolTip()


# --- capturing a file of texts --------------------------------------------------------------------


@pytest.fixture
def ready(opened, monkeypatch, checkpoint):
    """A program with a model, whose captures of files never end by themselves."""

    def capture_corpus(model, corpus, out, off=frozenset(), force=False, **more):
        while True:
            progress(1, 40, "text 1 of 40")
            time.sleep(0.005)

    monkeypatch.setattr(tasks, "capture_corpus", capture_corpus)
    opened.session.put(checkpoint=str(checkpoint), model=tasks.load(checkpoint, "cpu"))
    opened.paths = []
    opened.commands.open_path = opened.paths.append
    return opened


def test_stop_opens_what_is_done(ready, until, tmp_path):
    out, strip = tmp_path / "out.h5", ready.inspect.strip
    for began in (False, True):
        if began:
            (tmp_path / "out.h5.part").mkdir()
        ready.commands.prompting.capture_corpus("in.tsv", str(out))
        until(lambda: ready.session.work[-1].note.startswith("text"))
        assert ready.session.work[-1].title == "Running model on in.tsv"
        assert "text" in strip.head.note.full and strip.capture_button.text() == "Stop"
        ready.commands.drop("capture")
        until(lambda: ready.session.work[-1].state == "stopped" and not ready.lanes.engine.jobs)
        QApplication.processEvents()
        assert ready.paths == ([f"{out}.part"] if began else [])
        assert not errors(ready) and strip.capture_button.text() == "Run model"


# --- with the model itself ------------------------------------------------------------------------


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.tsv"
    rows = (f"{text} number {n}\t{label}" for n, (text, label) in enumerate(
        [("A good film", "positive"), ("A bad film", "negative"), ("Ein Café", "positive")] * 3
    ))  # fmt: skip
    path.write_text("text\tlabel\n" + "\n".join(rows) + "\n", "utf-8")
    return path


def test_a_file_is_captured_listed_searched_and_walked_through(
    with_model, reviews, until, tmp_path
):
    session, out = with_model.session, tmp_path / "out.h5"
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
    with_model.commands.run("next_text")
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
