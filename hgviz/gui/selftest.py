"""Off screen: the demo that leaves its work in a folder, and the proof that a bundle works."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from hgviz import tasks
from hgviz.core import Capture, HgvizError, Selection
from hgviz.files import resource
from hgviz.gui import sources
from hgviz.gui.sentences import counted
from hgviz.gui.sources import FIRST, SAMPLE, TEXT
from hgviz.tasks.heads import role_evidence, role_sentence

if TYPE_CHECKING:
    from PySide6.QtGui import QImage

    from hgviz.gui.program import Program
    from hgviz.gui.window import Window

SIZE = (1600, 1000)
PAIR = ("sample/softmax", "sample/ymish")  # two classifiers, and the texts they know
REVIEWS = "sample/reviews.tsv"
STEPS = 32  # points of the path of an attribution
LICENCES = tuple(f"licenses/{name}" for name in ("README.md", "LGPL-3.0.txt", "GPL-3.0.txt"))


def demo(folder: Path) -> int:
    """Do the main job on the sample, off screen, into a folder; say what was done."""
    try:
        _require_room(folder)
        for line in _demo(folder):
            print(line, flush=True)
    except HgvizError as error:
        print(*error.lines, file=sys.stderr)
        return 1
    return 0


def _demo(folder: Path) -> Iterator[str]:
    from hgviz.figures import Spec
    from hgviz.store import open_capture

    model = tasks.load(resource(SAMPLE), "cpu")
    spec = model.spec
    layers, heads = counted(len(spec.layers), "layer"), counted(len(spec.heads), "head")
    sizes, parameters = ", ".join(level.label for level in spec.levels), f"{spec.parameters:,}"
    yield f"Opened {spec.name}: {parameters} parameters, {layers} with attention, at {sizes}."
    file = folder / "demo.h5"
    prompt, _ = tasks.read_prompts(model, TEXT)
    tasks.capture(model, prompt, out=file, force=True)
    capture, size = open_capture(file), f"{file.stat().st_size / 1e6:.1f} MB"
    yield f"Captured {counted(len(prompt), 'byte')} of text, {heads}, in {file} ({size})."
    found = sources.measure(capture)
    chosen = found.selection or Selection(len(spec.layers) - 1, 0, len(prompt) - 1)
    fact = found.facts[chosen.head_id]
    if fact.role:
        said = f"{role_sentence(fact)}. {role_evidence(fact)}."
        yield f"The clearest head is {chosen.head_id}: {said}"
    picture = folder / "window.png"
    if not window_picture(file).save(str(picture)):
        raise _unwritable(folder, "the image of the window could not be saved")
    yield f"Drew the window: {picture}."
    for kind in ("map", "levels"):
        path = folder / f"{kind}.pdf"
        tasks.draw(tasks.panel(Spec(kind, chosen), capture), path)
        yield f"Drew {path}."


def window_picture(path: Path, look: str = "map") -> QImage:
    """The window on a capture, as it looks when everything has been drawn."""
    with opened(path) as (program, frame):
        program.session.put(look=look)
        program.settle()
        return frame.grab().toImage()


@contextmanager
def opened(path: Path, dark: bool = False) -> Iterator[tuple[Program, Window]]:
    """A program and its window on a capture, off screen; no settings are written."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from hgviz.gui import theme
    from hgviz.gui.program import Program
    from hgviz.gui.window import Window, application

    theme.apply(application(), dark)
    frame = Window()
    frame.resize(*SIZE)
    frame.show()
    program = Program(frame, keep=False)
    try:
        program.commands.show_found(sources.look(str(path)))
        yield program, frame
    finally:
        program.close()
        frame.close()
        frame.deleteLater()


def selftest() -> int:
    """One line for each part; 1 if any of them fails."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="hgviz-") as folder:
        for words, check in _checks(Path(folder)):
            try:
                said = check()
            except Exception as error:  # every part is tried, whatever an earlier one did
                failed += 1
                print(f"FAILED  {words}: {type(error).__name__}: {error}", flush=True)
            else:
                print(f"ok      {words}{': ' if said else ''}{said}", flush=True)
    print(f"{counted(failed, 'check')} failed" if failed else "All checks passed")
    return 1 if failed else 0


def _checks(folder: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    file = folder / "selftest.h5"
    yield "load the libraries", _libraries
    yield "find icons, sample and licences", _resources
    yield "capture a text", partial(_captured, file)
    yield "read the capture", partial(_read_back, file)
    for form in ("pdf", "svg", "png", "pgf"):
        yield f"draw a figure as {form}", partial(_figure, file, folder, form)
    yield "attribute a prediction", _attributed
    yield "write a report", partial(_report, folder)
    yield "open a transformers model", partial(_transformers, folder)
    yield "draw the window", partial(_window, file)
    yield "draw a chart", partial(_window, file, look="heads")


def _libraries() -> str:
    names = (
        "numpy", "torch", "captum", "h5py", "matplotlib", "tokenizers", "PySide6", "pyqtgraph",
    )  # fmt: skip
    return ", ".join(f"{name} {import_module(name).__version__}" for name in names)


def _resources() -> str:
    icons = list(resource("icons").glob("*.svg"))
    needed = (SAMPLE, FIRST, REVIEWS, *PAIR, "icons/hgviz.svg", *LICENCES)
    missing = [str(resource(name)) for name in needed if not resource(name).exists()]
    if missing or not icons:
        raise FileNotFoundError(", ".join(missing) or "icons")
    return counted(len(icons), "icon")


def _captured(file: Path) -> str:
    model = tasks.load(resource(SAMPLE), "cpu")
    capture = tasks.capture(model, tasks.read_prompts(model, TEXT)[0], out=file)
    return f"{counted(len(capture.prompt), 'byte')}, {counted(len(capture.spec.heads), 'head')}"


def _read_back(file: Path) -> str:
    from hgviz.store import open_capture

    capture: Capture = open_capture(file)
    layer = next(one for one in capture.spec.layers if one.role == "self" and one.heads)
    found = capture.maps[layer.index]
    assert found is not None
    sums = found.read(layer.heads[0]).sum(axis=1)
    if not abs(sums - 1).max() < 1e-4:
        raise ValueError("the rows of a softmax map do not sum to 1")
    return f"every row of head {layer.index}.{layer.heads[0]} sums to 1"


def _figure(file: Path, folder: Path, form: str) -> str:
    from hgviz.figures import Spec
    from hgviz.store import open_capture

    path = folder / f"figure.{form}"
    tasks.draw(tasks.panel(Spec("map", Selection(0, 0, 0)), open_capture(file)), path)
    return f"{path.stat().st_size:,} bytes"


def _attributed() -> str:
    """By captum, of words that tokenizers cut."""
    model = tasks.load(resource(PAIR[0]), "cpu")
    prompt, _ = tasks.read_prompts(model, "a fine and moving film")
    seen = tasks.capture(model, prompt)
    question = tasks.default_question(model.spec.goal, seen.logits, prompt, None)
    assert question is not None
    found = tasks.attribute(model, prompt, replace(question, steps=STEPS))
    if not abs(found.total - found.change) < 0.05 * abs(found.change):
        raise ValueError(f"attributions sum to {found.total:.3g}, not to {found.change:.3g}")
    return f"{counted(len(prompt), 'token')} sum to {found.total:.2f} of {found.change:.2f}"


def _transformers(folder: Path) -> str:
    """A tiny one of random weights, with a window in every second layer."""
    from hgviz.models import pretrained

    path = pretrained.random_model(folder / "gemma2")
    model = tasks.load(path, "cpu")
    seen = tasks.capture(model, tasks.read_prompts(model, "a fine film")[0])
    rules = [one.factors.rule.band for one in seen.maps]  # type: ignore[union-attr]
    if rules != [(3, 0), None]:
        raise ValueError(f"unexpected attention windows: {rules}")
    return f"{counted(len(seen.spec.heads), 'head')} of {model.spec.family}"


def _report(folder: Path) -> str:
    a, b = (tasks.load(resource(name), "cpu") for name in PAIR)
    comparison = tasks.compare_models(a, b, resource(REVIEWS), limit=8, texts=2)
    path = Path(tasks.write_report(comparison, folder / "report.html"))
    return f"{path.stat().st_size:,} bytes"


def _window(file: Path, look: str = "map") -> str:
    image = window_picture(file, look=look)
    colours = {image.pixel(x, y) for x in range(0, SIZE[0], 7) for y in range(0, SIZE[1], 7)}
    if len(colours) < 50:
        raise ValueError(f"the picture has only {len(colours)} colours")
    return f"{image.width()} × {image.height()}"


def _require_room(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(folder, (error.strerror or str(error)).lower()) from None


def _unwritable(folder: Path, why: str) -> HgvizError:
    return HgvizError(
        f"cannot write to {folder}: {why}", "Choose another folder with --headless DIR"
    )
