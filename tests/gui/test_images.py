"""Models that read images: the look Image, and images that are opened, scored and compared."""

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest

from hgviz import palettes
from hgviz.gui.view import LOOKS
from tests.gui.screen import colour_at, errors
from tests.making import make_capture, make_image_capture
from tests.models.building import write_transformer
from tests.models.zoo import write
from tests.test_evaluate import tokenizer

CAPTURE = make_image_capture(rows=4, columns=6, heads=3)


def write_vit(folder, size=32, patch=8):
    """A checkpoint that reads images of size x size pixels, in patches."""
    write(folder, "vit", "ViTForImageClassification", image_size=size, patch_size=patch)
    write_processor(folder, size)
    return str(folder)


def write_processor(folder, size=32):
    sides = {"height": size, "width": size}
    transformers.ViTImageProcessor(size=sides).save_pretrained(folder)


def write_image(path, colour=(200, 30, 30)):
    Image.new("RGB", (50, 40), colour).save(path)
    return str(path)


@pytest.fixture
def seen(program):
    """A program that shows an image."""
    program.session.put(capture=CAPTURE, mode="inspect")
    program.session.put(look="image")
    program.settle()
    return program


def view_of(program):
    return next(one for one in program.inspect.looks if one.name == "image")


def test_the_row_of_the_query_lies_over_the_image(seen):
    view = view_of(seen)
    seen.session.select(layer=1, head=2, query=9)
    seen.settle()
    row = CAPTURE.maps[1].read(2)[9]
    assert np.array_equal(view.found.row, row)
    placed = palettes.palette_coordinates(
        row[1:].reshape(4, 6), (0.0, float(row[1:].max())), seen.session.display.scale
    )
    overlaid = palettes.paint(placed, palettes.colours("viridis"))
    wanted = palettes.overlay(CAPTURE.prompt.signal.picture, overlaid)[20, 40]
    box = view.canvas.image_box()
    place = box.topLeft() + QPointF(40.5 * box.width() / 48, 20.5 * box.height() / 32)
    found = colour_at(view.canvas, place.x(), place.y())
    assert np.abs(np.array(found) - wanted).max() <= 2
    assert "(not a patch): " in view.as_text() and view.as_table()[10][0] == "1,2"
    assert view.figure(seen.session).kind == "image"


def test_a_click_and_the_arrows_choose_the_query(seen):
    view = view_of(seen)
    canvas = view.canvas
    place = canvas.patch_box(1 + 2 * 6 + 4).center().toPoint()
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=place)
    assert seen.session.selection.query == 1 + 2 * 6 + 4
    seen.settle()
    for key, query in ((Qt.Key.Key_Up, 11), (Qt.Key.Key_Left, 10), (Qt.Key.Key_Down, 16)):
        QTest.keyClick(canvas, key)
        assert seen.session.selection.query == query
        seen.settle()
    seen.session.select(query=1)
    seen.settle()
    QTest.keyClick(canvas, Qt.Key.Key_Left)  # at the edge it stays
    assert seen.session.selection.query == 1
    QTest.mouseMove(canvas, canvas.patch_box(20).center().toPoint())
    assert seen.session.hover is not None and seen.session.hover.key == 20
    seen.settle()
    assert f"attends to {CAPTURE.prompt.pieces[20]}:" in view.as_text()


def test_a_text_has_no_tab_for_images(seen):
    bar = seen.inspect.tabbed.bar
    at = [*LOOKS].index("image")
    assert bar.isTabVisible(at)
    seen.session.put(capture=make_capture("No image."))
    seen.settle()
    assert not bar.isTabVisible(at) and seen.session.look == "map"


def test_an_image_that_is_opened_is_read_by_the_model_at_hand(program, tmp_path, until):
    session = program.session
    program.commands.open_path(write_vit(tmp_path / "vit"))
    until(lambda: session.model is not None)
    assert session.capture is None
    for name, colour in (("a.png", (200, 30, 30)), ("b.png", (20, 30, 230))):
        program.commands.open_path(write_image(tmp_path / name, colour))
        until(lambda name=name: session.capture is not None and session.capture.main.text == name)
        picture = session.capture.prompt.signal.picture
        assert np.abs(picture[5, 5].astype(int) - colour).max() <= 1
    program.settle()
    assert session.look == "image" and view_of(program).drawn
    assert program.inspect.strip.edit.text() == "Choose image…"


def test_the_next_model_reads_the_text_at_hand_and_no_image(program, tmp_path, until):
    session, commands = program.session, program.commands
    keys = {"dtype": torch.float32, "vocab_size": 256, "max_positions": 80}
    both = write_transformer(tmp_path / "both", form="encoder-decoder", **keys)
    short = write_transformer(tmp_path / "short", form="decoder", **keys | {"max_positions": 16})
    text = "The bell rang, and the sand ran down."

    def opens(folder, words=None):
        commands.open_path(str(folder))
        until(lambda: session.checkpoint == str(folder) and session.model is not None)
        if words:
            until(lambda: session.capture is not None and session.capture.main.text == words)
            assert not errors(program)

    session.put(text=text)
    opens(write_vit(tmp_path / "vit"))
    commands.open_path(write_image(tmp_path / "face.png"))
    until(lambda: session.capture is not None and session.capture.main.text == "face.png")
    assert session.text == text and not session.stale
    opens(both, text)
    commands.prompting.capture_text(text, "Die Glocke.")
    until(lambda: session.capture.target.text == "Die Glocke.")
    opens(short, text[:16])
    assert "was truncated: this model reads at most 16 bytes" in program.frame.chosen_words.full
    assert (session.text, session.second) == (text[:16], "")


def test_a_folder_of_two_models_reads_texts_by_one_and_images_by_the_other(
    program, tmp_path, until
):
    folder, session = write(tmp_path / "clip", "clip", "CLIPModel"), program.session
    write_processor(folder)
    tokenizer().save(str(folder / "tokenizer.json"))
    session.put(text="the cat sat")
    program.commands.open_path(str(folder))
    until(lambda: session.model is not None and session.capture is not None)
    program.settle()
    assert session.capture.prompt.text == "the cat sat"
    program.commands.open_path(write_image(tmp_path / "a.png"))
    until(lambda: session.capture.prompt.text == "a.png" and session.capture.complete)
    until(lambda: session.model is not None)
    assert session.model.spec.modality == "image"
