"""A folder with a model of texts and one of images: each is opened for what is to be read."""

from __future__ import annotations

import transformers
from PIL import Image

from tests.models.zoo import write
from tests.test_pairs import tokenizer


def test_a_text_is_read_by_one_model_and_an_image_by_the_other(program, tmp_path, qtbot):
    folder, session = write(tmp_path / "clip", "clip", "CLIPModel"), program.session
    size = {"height": 32, "width": 32}
    transformers.ViTImageProcessor(size=size).save_pretrained(folder)
    tokenizer().save(str(folder / "tokenizer.json"))
    Image.new("RGB", (50, 40), (200, 30, 30)).save(tmp_path / "a.png")
    session.put(text="the cat sat")
    program.commands.open_path(str(folder))
    qtbot.waitUntil(
        lambda: session.model is not None and session.capture is not None, timeout=20000
    )
    program.settle()
    assert session.capture.prompt.text == "the cat sat"
    program.commands.open_path(str(tmp_path / "a.png"))
    qtbot.waitUntil(lambda: session.capture.prompt.text == "a.png", timeout=20000)
    qtbot.waitUntil(lambda: session.model is not None and session.capture.complete, timeout=20000)
    assert session.model.spec.modality == "image"
