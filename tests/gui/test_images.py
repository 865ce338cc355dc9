"""The look Image in a window: the row of the query over the picture, by mouse and keys."""

import shlex

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest

from hgviz import palettes
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.view import LOOKS
from tests.making import make_capture
from tests.models.building import write_transformer
from tests.models.zoo import write
from tests.pictures import make_image_capture
from tests.test_pairs import tokenizer

CAPTURE = make_image_capture(rows=4, columns=6, heads=3)


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
    box = view.canvas.image_box()
    shot = view.canvas.grab().toImage()
    table = palettes.colours("viridis", False)
    limits = (0.0, float(row[1:].max()))
    placed = palettes.place(row[1:].reshape(4, 6), limits, seen.session.display.scale)
    wanted = palettes.laid(CAPTURE.prompt.signal.picture, palettes.paint(placed, table))
    for y, x in ((2, 3), (20, 40), (31, 47)):
        place = box.topLeft() + QPointF((x + 0.5) * box.width() / 48, (y + 0.5) * box.height() / 32)
        found = shot.pixelColor(place.toPoint()).getRgb()[:3]
        assert np.abs(np.array(found) - wanted[y, x]).max() <= 2
    assert "which is no patch" in view.as_text() and view.as_table()[10][0] == "1,2"
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
    assert f"looks at {CAPTURE.prompt.pieces[20]}:" in view.as_text()


def test_a_text_has_no_tab_for_images(seen):
    bar = seen.inspect.tabbed.bar
    at = [*LOOKS].index("image")
    assert bar.isTabVisible(at)
    seen.session.put(capture=make_capture("No image."))
    seen.settle()
    assert not bar.isTabVisible(at) and seen.session.look == "map"


def test_an_image_that_is_opened_is_read_by_the_model_at_hand(program, tmp_path, qtbot):
    import transformers

    write(tmp_path / "vit", "vit", "ViTForImageClassification", image_size=32, patch_size=8)
    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    processor.save_pretrained(tmp_path / "vit")
    for name, colour in (("a.png", (200, 30, 30)), ("b.png", (20, 30, 230))):
        Image.new("RGB", (50, 40), colour).save(tmp_path / name)
    program.commands.open_path(str(tmp_path / "vit"))
    qtbot.waitUntil(lambda: program.session.model is not None, timeout=20000)
    assert program.session.capture is None
    for name, colour in (("a.png", (200, 30, 30)), ("b.png", (20, 30, 230))):
        old = program.session.capture
        program.commands.open_path(str(tmp_path / name))
        qtbot.waitUntil(lambda old=old: _another(program.session.capture, old), timeout=20000)
        picture = program.session.capture.prompt.signal.picture
        assert np.abs(picture[5, 5].astype(int) - colour).max() <= 1
    program.settle()
    assert program.inspect.strip.edit.text() == "Choose image…"


def _another(now, old):
    return now is not None and now is not old


def test_images_whose_answer_changed_are_named_by_their_files(program, tmp_path, qtbot):
    import transformers

    from hgviz.core import HeadId, finish
    from hgviz.gui.changes import changes

    write(tmp_path / "vit", "vit", "ViTForImageClassification", image_size=32, patch_size=8)
    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    processor.save_pretrained(tmp_path / "vit")
    random, lines = np.random.default_rng(0), ["image,label"]
    for at in range(40):
        pixels = random.integers(0, 255, (32, 32, 3)) * (np.arange(3) != at % 4)
        pixels = pixels.astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{at}.png")
        lines.append(f"{at}.png,LABEL_{at % 2}")
    (tmp_path / "a.csv").write_text("\n".join(lines))
    program.commands.open_path(str(tmp_path / "vit"))
    qtbot.waitUntil(lambda: program.session.model is not None, timeout=20000)
    program.commands.use_data(str(tmp_path / "a.csv"))
    qtbot.waitUntil(lambda: _done(program.session.trial, frozenset()), timeout=30000)
    off = frozenset(HeadId(layer, head) for layer in (0, 1) for head in range(3 + layer))
    program.session.put(off=off)
    qtbot.waitUntil(lambda: _done(program.session.trial, off), timeout=30000)
    found = finish(changes(program.session.trial, "all", program.session.model))
    assert found.rows and all(one.before.endswith(".png") for one in found.rows)
    assert {one.whole for one in found.rows} <= {"LABEL_0", "LABEL_1"}


def _done(trial, off):
    return trial is not None and trial.done and trial.off == off


def test_an_image_stands_beside_what_another_model_makes_of_it(program, tmp_path, qtbot):
    import transformers

    from hgviz import cli
    from hgviz.gui.commands import report_command
    from hgviz.session.other import Other

    for name, size, patch in (("a", 32, 8), ("b", 16, 4), ("c", 32, 16)):
        write(
            tmp_path / name, "vit", "ViTForImageClassification", image_size=size, patch_size=patch
        )
        processor = transformers.ViTImageProcessor(size={"height": size, "width": size})
        processor.save_pretrained(tmp_path / name)
    Image.new("RGB", (50, 40), (200, 30, 30)).save(tmp_path / "a.png")
    (tmp_path / "a.csv").write_text("image,label\na.png,LABEL_0\na.png,LABEL_1\n")
    session = program.session
    program.commands.open_path(str(tmp_path / "a"))
    qtbot.waitUntil(lambda: session.model is not None, timeout=20000)
    program.commands.open_path(str(tmp_path / "a.png"))
    qtbot.waitUntil(lambda: session.capture is not None and session.capture.complete, timeout=20000)
    for name in ("b", "c"):
        old = session.beside
        program.commands.comparing.choose(Other("model", path=str(tmp_path / name)))
        qtbot.waitUntil(lambda old=old: _another(session.beside, old), timeout=20000)
        qtbot.waitUntil(lambda: session.beside.complete, timeout=20000)
        program.settle()
        beside = session.beside.prompt
        assert beside.signal.grid == ((4, 4) if name == "b" else (2, 2))
        assert beside.text == "a.png"
        session.put(data=str(tmp_path / "a.csv"))
        command = shlex.split(report_command(session))
        assert "--text" not in command
        command[-1] = str(tmp_path / f"{name}.html")
        assert cli.main(command[1:], cli.Window(None, None)) == 0
        report = (tmp_path / f"{name}.html").read_text()
        assert ("do not cut it alike" in report) == (name == "c")


def test_what_one_model_read_is_not_forced_on_the_next(program, tmp_path, qtbot):
    session, commands = program.session, program.commands
    folders = {name: tmp_path / name for name in ("vit", "both", "short")}
    import transformers

    write(folders["vit"], "vit", "ViTForImageClassification", image_size=32, patch_size=8)
    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    processor.save_pretrained(folders["vit"])
    keys = {"dtype": torch.float32, "vocab_size": 256, "max_positions": 80}
    write_transformer(folders["both"], form="encoder-decoder", **keys)
    write_transformer(folders["short"], form="decoder", **keys | {"max_positions": 16})
    Image.new("RGB", (40, 40)).save(tmp_path / "face.png")
    text = "The bell rang, and the sand ran down."

    def opens(name):
        commands.open_path(str(folders[name]))
        qtbot.waitUntil(
            lambda: session.checkpoint == str(folders[name]) and session.model is not None,
            timeout=20000,
        )

    def reads(words):
        qtbot.waitUntil(lambda: session.capture and session.capture.main.text == words,
                        timeout=20000)  # fmt: skip
        assert not program.frame.findChildren(ErrorDialog)

    session.put(text=text)
    opens("vit")
    commands.open_path(str(tmp_path / "face.png"))
    reads("face.png")
    assert session.text == text and not session.stale
    opens("both")
    reads(text)
    commands.prompting.capture_text(text, "Die Glocke.")
    qtbot.waitUntil(lambda: session.capture.target.text == "Die Glocke.", timeout=20000)
    opens("short")
    reads(text[:16])
    assert "was cut: this model reads 16 bytes" in program.frame.chosen_words.full
    assert (session.text, session.second) == (text[:16], "")


# --- a folder with a model of texts and one of images: each is opened for what is to be read ------


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
