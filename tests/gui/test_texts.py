"""Captures of many texts in a window: listed, searched, opened one after the other."""

import time
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from hgviz import tasks
from hgviz.core import Item, Selection, progress
from hgviz.gui import sources
from hgviz.gui.panels import TextsPanel
from tests.gui.screen import busy, errors, shown
from tests.making import make_capture, stranger

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


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("café", [3]),
        ("cafe", []),
        ("SEHR gut und", [3]),
        ("<b>", [4]),
        ("שלום", [5]),
        ("evening 29 was", [29]),
    ],
)
def test_texts_are_found_by_their_words(panel, query, found):
    panel.field.setText(query)
    assert panel.list.rows == found


def test_the_panel_counts_what_it_found_and_offers_to_clear_a_vain_search(panel):
    panel.field.setText("evening 29 was")
    assert panel.count.full == "1 of 300 texts"
    panel.field.setText("xyzzy <b>")
    assert panel.none.full == "No text contains “xyzzy <b>”"
    assert panel.none.isVisible() and not panel.list.rows
    panel.field.clear()
    assert panel.none.isHidden() and panel.list.rows
    assert panel.count.full == "300 texts" and panel.list.rows == [*range(300)]


# --- the rows -------------------------------------------------------------------------------------


def test_a_row_says_its_text_plainly_and_marks_what_was_found(panel):
    assert panel.found(3)[0] == "Ein Café, sehr GUT und teuer"
    row = panel.list.order.index(1, 0)
    assert row.data() == "2: The film of evening 1 was long, 21 tokens, positive"
    tip = panel.list.order.index(4, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert not GuiQt.mightBeRichText(tip) and "<b>bold</b> & more" in tip and "--item 4" in tip
    panel.field.setText("was long")
    text, start, end = panel.found(2)
    assert text[start:end] == "was long"


@pytest.mark.parametrize("text", ["", "\n", "‮evil", "a" * 100_000, "\x00\x07", "ﬁ" * 300, "İ" * 40])
def test_texts_of_every_kind_are_drawn(app, text):
    capture = replace(make_capture("ab"), items=(Item(0, text, 7, text[:50]), Item(1, "b", 1)))
    with shown(TextsPanel, size=(304, 320), capture=capture) as (panel, _):
        panel.field.setText(text[-20:])
        assert panel.grab().width() == 304
        words = panel.list.order.index(0, 0).data()
        assert "\n" not in words and "‮" not in words


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


@pytest.mark.parametrize("began", [True, False])
def test_stop_opens_what_is_done(ready, until, tmp_path, began):
    out, strip = tmp_path / "out.h5", ready.inspect.strip
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
        [("A good film", "positive"), ("A bad film", "negative"), ("Ein Café", "positive")] * 20
    ))  # fmt: skip
    path.write_text("text\tlabel\n" + "\n".join(rows) + "\n", "utf-8")
    return path


def test_a_file_is_captured_listed_searched_and_walked_through(
    with_model, reviews, until, tmp_path
):
    session, out = with_model.session, tmp_path / "out.h5"
    with_model.commands.prompting.capture_corpus(str(reviews), str(out))
    until(lambda: session.capture.path == str(out) and session.facts and not busy(with_model))
    assert len(session.capture.items) == 60 and session.model is not None
    assert session.text == "A good film number 0"
    with_model.settle()
    panel = with_model.inspect.texts
    panel.field.setText("café")
    assert panel.count.full == "20 of 60 texts"
    session.select(layer=1, head=1)
    QTest.keyClick(panel.field, Qt.Key.Key_Return)
    until(lambda: session.capture.item == 2 and session.facts and not busy(with_model))
    assert session.text == "Ein Café number 2" and session.selection.head_id == (1, 1)
    with_model.commands.run("next_text")
    until(lambda: session.capture.item == 3 and not busy(with_model))
    with_model.settle()
    assert with_model.inspect.strip.head.title.text() == "Text 4 of 60"
    assert not errors(with_model)


@pytest.mark.parametrize("content", [b"\n\n", b"\x89HDF\r\n"])
def test_a_file_without_texts_is_refused_in_words(with_model, until, tmp_path, content):
    path = tmp_path / "odd.txt"
    path.write_bytes(content)
    before = with_model.session.capture
    with_model.commands.prompting.capture_corpus(str(path), str(tmp_path / "out.h5"))
    until(lambda: errors(with_model))
    (error,) = errors(with_model)
    assert "odd.txt" in error.what and "Traceback" not in str(error)
    assert with_model.session.capture is before
    assert not (tmp_path / "out.h5").exists()


# --- texts of strangers ---------------------------------------------------------------------------


def test_markup_and_controls_in_a_text_are_shown_as_plain_short_text(program):
    capture = stranger(make_capture("abcdefghij" * 4, (1, 2), 2))
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
        yield widget.toolTip(), GuiQt.mightBeRichText(widget.toolTip())
        yield widget.windowTitle(), False
        yield widget.accessibleName(), False
        if isinstance(widget, QLabel):
            form, said = widget.textFormat(), widget.text()
            auto = form == Qt.TextFormat.AutoText and GuiQt.mightBeRichText(said)
            yield said, auto or form == Qt.TextFormat.RichText
