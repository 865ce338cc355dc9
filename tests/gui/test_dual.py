"""A dual encoder in a window: an image is asked for, then the text beside it, and both are seen."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from PySide6.QtWidgets import QFileDialog

from hgviz.gui.composing import TextDialog
from tests.test_dual import whole


@pytest.fixture
def waiting(program, tmp_path, qtbot):
    """A program with such a model, which has read nothing yet."""
    whole(tmp_path / "clip")
    for name in ("a.png", "b.png"):
        Image.new("RGB", (50, 40), (200, 30, 30)).save(tmp_path / name)
    program.commands.open_path(str(tmp_path / "clip"))
    qtbot.waitUntil(lambda: program.session.model is not None, timeout=20000)
    program.settle()
    return program


def answer(program, qtbot, text):
    """Give a text to the dialog that asks for one; what is captured then."""
    dialog, old = program.frame.findChild(TextDialog), program.session.capture
    dialog.edit.setPlainText(text)
    dialog._counted()
    assert dialog.default.isEnabled() == bool(text)
    if text:
        dialog._accept()
        qtbot.waitUntil(lambda: program.session.capture is not old, timeout=20000)
        qtbot.waitUntil(lambda: program.session.capture.complete, timeout=20000)
        program.settle()
    return program.session.capture


def test_an_image_is_captured_with_the_text_that_is_asked_for(waiting, tmp_path, qtbot):
    session = waiting.session
    waiting.commands.open_path(str(tmp_path / "a.png"))
    assert answer(waiting, qtbot, "") is None
    capture = answer(waiting, qtbot, "the cat sat")
    assert (capture.prompt.text, capture.target.text) == ("a.png", "the cat sat")
    assert waiting.inspect.strip.edit.text() == "Image and text…"
    waiting.commands.open_path(str(tmp_path / "b.png"))  # beside the text that is there
    qtbot.waitUntil(lambda: session.capture.prompt.text == "b.png", timeout=20000)
    assert session.capture.target.text == "the cat sat"
    waiting.commands.prompting.edit()
    capture = answer(waiting, qtbot, "a dog")
    assert (capture.prompt.text, capture.target.text) == ("b.png", "a dog")


def test_layers_of_the_image_lie_over_it_and_those_of_the_text_over_its_tokens(
    waiting, tmp_path, qtbot
):
    session = waiting.session
    waiting.commands.open_path(str(tmp_path / "a.png"))
    capture = answer(waiting, qtbot, "the cat sat")
    session.put(look="image")
    session.select(layer=1, head=2, query=6)
    waiting.settle()
    view = next(one for one in waiting.inspect.looks if one.name == "image")
    assert np.array_equal(view.found.row, capture.maps[1].read(2)[6])
    session.put(look="map")
    session.select(layer=3, head=2, query=2)
    waiting.settle()
    _, text = waiting.inspect.strip._shown.passages
    assert text.prompt is capture.target and [one.level for one in text.lines] == ["text"]
    assert np.allclose(text.lines[0].weights, capture.maps[3].read(2)[2], atol=1e-6)


def test_without_an_image_one_is_asked_for(waiting):
    waiting.commands.prompting.edit()
    (dialog,) = waiting.frame.findChildren(QFileDialog)
    assert dialog.windowTitle() == "Choose an image"
    dialog.close()
