"""A model that writes in a window: its newest words are shown, and a stop keeps what it wrote."""

import time
from dataclasses import replace
from threading import Event

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz import tasks
from hgviz.core import Selection, progress
from hgviz.gui.dialogs import WriteDialog, WritingOptions
from hgviz.store import open_capture
from tests.gui.screen import busy, errors
from tests.making import byte_prompt, make_capture

GIVEN = "The sand of the hourglass had run down, "
ADDED = "and the sailor on watch turned it, and rang the bell."


def grown(letters):
    """A capture of the text with so many letters more; random maps, but of the right shapes."""
    return make_capture(GIVEN + ADDED[:letters])


def stand_in(go, stop_at=24):
    """A model that writes a letter at a time, and waits for `go` at one of them."""

    def generate(model, prompt, count, off=frozenset(), target=None, seed=None, temperature=1.0):
        for number in range(1, count + 1):
            text = byte_prompt(GIVEN + ADDED[:number])
            progress(number, count, f"token {number} of {count}", text)
            while number == stop_at and not go.is_set():
                time.sleep(0.005)
                progress(number, count, f"token {number} of {count}", text)
        return grown(count)

    return generate


@pytest.fixture
def ready(program, checkpoint, monkeypatch):
    """A program with a model and a text, everything drawn; what it writes is a stand-in that waits
    for `go` at the tenth letter."""
    program.go = Event()
    monkeypatch.setattr(tasks, "generate", stand_in(program.go, 10), raising=False)
    model = tasks.load(checkpoint, "cpu")
    capture = make_capture(GIVEN)
    model.spec = replace(model.spec, digest=capture.spec.digest)  # what it writes is of this model
    program.session.put(capture=capture)
    program.session.put(checkpoint=str(checkpoint), model=model)
    program.session.put(selection=Selection(1, 2, 20, 10))
    program.settle()
    return program


def test_the_newest_words_are_shown_and_the_place_of_the_reader_stays(ready, until):
    session = ready.session
    ready.inspect.map.canvas.zoom(5, QPointF(400, 300))
    before = ready.inspect.map.canvas.view
    ready.commands.prompting.write_so(WritingOptions(24))
    until(lambda: session.work[-1].note.endswith(ADDED[:10].rstrip()))
    assert session.work[-1].note.startswith("token 10 of 24: …")
    assert session.capture.main.text == GIVEN
    ready.go.set()
    until(lambda: not busy(ready) and session.facts)
    ready.settle()
    assert len(session.capture.main) == len(GIVEN) + 24
    assert session.selection == Selection(1, 2, 20, 10)
    after = ready.inspect.map.canvas.view
    assert (after.down.start, after.down.scale) == (before.down.start, before.down.scale)
    assert after.down.cells == len(GIVEN) + 24
    assert session.written == len(GIVEN)
    assert session.text == GIVEN + ADDED[:24] and not session.stale
    assert not errors(ready)


@pytest.mark.parametrize("end", ["", "!"])  # "!": as a token that the model takes away first
def test_stop_keeps_what_is_written(ready, until, end):
    ready.session.put(text=GIVEN + end)
    ready.commands.prompting.write_so(WritingOptions(24))
    until(lambda: ready.session.work[-1].done == 10)
    assert ready.inspect.strip.capture_button.text() == "Stop"
    ready.inspect.strip.capture_button.click()
    until(lambda: not busy(ready) and ready.session.facts)
    assert ready.session.capture.main.text == ready.session.text == GIVEN + ADDED[:10]
    assert ready.session.written == len(GIVEN) and ready.session.capture.complete
    said = ready.session.capture.made.generated
    assert said == f"10 tokens after {len(GIVEN)}, greedy; stopped by hand"
    assert not errors(ready)


def test_a_text_whose_writing_was_stopped_can_be_saved(with_model, until, tmp_path):
    program = with_model
    given = len(program.session.capture.main)
    program.commands.prompting.write_so(WritingOptions(100_000, seed=1))
    until(lambda: program.session.work[-1].done > 20)
    program.commands.run("stop")
    until(lambda: not busy(program) and len(program.session.capture.main) > given)
    kept = program.session.capture
    program.commands._save(program.session.capture, str(tmp_path / "kept.h5"))
    until(lambda: not busy(program))
    again = open_capture(tmp_path / "kept.h5")
    assert again.prompt.digest == kept.prompt.digest and again.complete
    for mine, other in zip(kept.maps, again.maps, strict=True):
        assert np.array_equal(mine.read(mine.heads[0]), other.read(other.heads[0]))
    program.session.put(capture=make_capture("Something else"))
    program.commands.open_path(str(tmp_path / "kept.h5"))
    until(lambda: program.session.capture.path and not busy(program))
    assert program.session.written == given
    assert not errors(program)


def test_a_model_writes_what_the_verb_gives_and_nothing_after_an_empty_text(with_model, until):
    program, session = with_model, with_model.session
    given = len(session.capture.main)
    prompt = session.model.tokenize(session.text)
    again = tasks.generate(session.model, prompt, 12, seed=3, temperature=2.0)
    program.commands.prompting.write_so(WritingOptions(12, seed=3, temperature=2.0))
    until(lambda: not busy(program))
    assert session.capture.prompt.digest == again.prompt.digest
    assert session.written == given
    for mine, other in zip(session.capture.maps, again.maps, strict=True):
        assert np.array_equal(mine.read(mine.heads[0]), other.read(other.heads[0]))
    program.settle()
    assert "Dotted: written by the model." in program.inspect.strip.legend.full
    assert not errors(program)
    before = session.capture
    session.put(text="")
    program.commands.prompting.write_so(WritingOptions(9))
    until(lambda: errors(program))
    assert "empty" in str(errors(program)[0]).lower() and session.capture is before


@pytest.mark.parametrize(
    ("room", "last", "typed", "given"),
    [
        (None, WritingOptions(), 12, [WritingOptions(12, None, 1.0)]),
        (None, WritingOptions(5, 7, 0.5), None, [WritingOptions(5, 7, 0.5)]),
        (0, WritingOptions(), None, []),
        (1, WritingOptions(), None, [WritingOptions(1)]),
        (40, WritingOptions(), None, [WritingOptions(40)]),
    ],
)
def test_the_dialog_gives_what_is_chosen_and_no_more_than_the_model_can_read(
    opened, room, last, typed, given
):
    said = []
    dialog = WriteDialog(opened.frame, "Once <b>upon", "token", room, last, said.append)
    dialog.open()
    QApplication.processEvents()
    assert dialog.seed.isEnabled() == dialog.temperature.isEnabled() == (last.seed is not None)
    assert dialog.default.isEnabled() == bool(given)
    if typed:
        dialog.count.setValue(typed)
        QTest.keyClick(dialog.count, Qt.Key.Key_Return)
    else:
        dialog.default.click()
    assert said == given
