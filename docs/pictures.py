"""Draws the pictures of the guide: the window on the bundled models, light and dark.

Run from a checkout: python docs/pictures.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtGui import QImage

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

THEMES = ("light", "dark")
WIDTH = 1200  # px: sharp enough to read, small enough for a page
TEXTS = 120
COMPARED = ["michel", "loo", "signed"]
BOTH_READ = "My uncle had told us that the book was great. Like the book, the hero was awful."
BEGINNING = "The hourglass was turned, "
READ = 101  # the letter whose answer is read: the d of turned


def main() -> None:
    """Draw every mode in both themes, signed weights, many texts, and a text being written."""
    from hgviz.gui.opening import CLASSIFIERS, FIRST, REVIEW, SAMPLE
    from hgviz.gui.proof import window_picture
    from hgviz.resources import resource

    (HERE / "pictures").mkdir(exist_ok=True)
    for mode in ("inspect", "follow"):
        for dark in (False, True):
            keep(f"{mode}-{THEMES[dark]}", window_picture(resource(FIRST), dark, mode))
    looks()
    reading()
    with TemporaryDirectory() as folder:
        compared(Path(folder))
        signed = captured(resource(CLASSIFIERS[1]), REVIEW, Path(folder) / "signed.h5")
        for dark in (False, True):
            keep(f"signed-{THEMES[dark]}", window_picture(signed, dark))
        many = captured_texts(resource(CLASSIFIERS[0]), Path(folder))
        for dark in (False, True):
            keep(f"texts-{THEMES[dark]}", searched(many, "great label:negative", dark))
        heads(Path(folder))
        ymish(Path(folder))
        story = written(resource(SAMPLE), BEGINNING, Path(folder) / "story.h5")
        keep("written-light", window_picture(story))


def looks() -> None:
    """The other looks at a head that need no model."""
    from hgviz.gui.opening import FIRST
    from hgviz.gui.proof import opened
    from hgviz.resources import resource

    for look in ("links", "neurons", "heads"):
        with opened(resource(FIRST)) as (program, frame):
            program.session.put(look=look)
            program.settle()
            keep(f"{look}-light", frame.grab().toImage())


def compared(folder: Path) -> None:
    """The Compare page: the sample beside itself with its softmax exchanged for ymish."""
    from hgviz import tasks
    from hgviz.core import finish
    from hgviz.gui.opening import FIRST, SAMPLE
    from hgviz.gui.proof import opened
    from hgviz.resources import resource
    from hgviz.store import open_capture

    first = open_capture(resource(FIRST))
    other = finish(tasks.load(resource(SAMPLE), "cpu", activation="ymish"))
    prompt, _ = tasks.prompt_from(other, first.prompt.text)
    finish(tasks.capture(other, prompt, out=folder / "other.h5"))
    for dark in (False, True):
        with opened(resource(FIRST), dark) as (program, frame):
            program.session.put(mode="compare", beside=open_capture(folder / "other.h5"))
            program.settle()
            keep(f"compare-{THEMES[dark]}", frame.grab().toImage())


def reading() -> None:
    """The Hourglass across its levels: the window, and the figures of reading-an-hourglass.md."""
    from hgviz import tasks
    from hgviz.core import Selection, finish
    from hgviz.figures import Spec
    from hgviz.gui.opening import FIRST
    from hgviz.gui.proof import opened
    from hgviz.resources import resource
    from hgviz.store import open_capture

    for dark in (False, True):
        with opened(resource(FIRST), dark) as (program, frame):
            program.session.put(look="across")
            program.session.select(query=READ, key=None)
            program.settle()
            keep(f"across-{THEMES[dark]}", frame.grab().toImage())
    capture = open_capture(resource(FIRST))
    for kind in ("levels", "rollout"):
        path = HERE / "pictures" / f"reading-{kind}.png"
        spec = Spec(kind, Selection(11, 2, READ), width="icml")
        finish(tasks.figure(spec, capture, path))
        print(f"{path.relative_to(HERE.parent)}  {path.stat().st_size / 1000:.0f} kB")


def heads(folder: Path) -> None:
    """What heads of a classifier are worth, and what is lost as they go: figures of heads.md."""
    from hgviz import tasks
    from hgviz.core import finish
    from hgviz.figures import Spec
    from hgviz.gui.opening import CLASSIFIERS
    from hgviz.resources import resource

    opened = finish(tasks.load(resource(CLASSIFIERS[0]), "cpu"))
    trials = finish(tasks.trials_of(opened, resource("sample/reviews.tsv")))
    needs = {"gradient", "token_gradient", "loss_change", "change"}
    study = finish(tasks.study(trials, needs, folder / "study.h5", "reviews.tsv"))
    for method in COMPARED:
        study = finish(tasks.curve(trials, study, method))
    for kind, methods in (("scores", ["loo"]), ("curve", COMPARED)):
        path = HERE / "pictures" / f"heads-{kind}.png"
        finish(tasks.figure(Spec(kind, width="icml", methods=tuple(methods)), study, path))
        print(f"{path.relative_to(HERE.parent)}  {path.stat().st_size / 1000:.0f} kB")


def ymish(folder: Path) -> None:
    """The two activations, and a head of both on one review: figures of does-ymish-help.md."""
    from hgviz import tasks
    from hgviz.core import Selection, finish
    from hgviz.figures import Spec
    from hgviz.gui.opening import CLASSIFIERS
    from hgviz.resources import resource
    from hgviz.store import open_capture

    paths = [
        captured(resource(one), BOTH_READ, folder / f"{Path(one).name}.h5")
        for one in CLASSIFIERS[:2]
    ]
    captures = [open_capture(path) for path in paths]
    for kind, name in (("activation", "activation"), ("compare", "pair")):
        path = HERE / "pictures" / f"ymish-{name}.png"
        spec = Spec(kind, Selection(3, 0), width="6.5in")
        finish(tasks.figure(spec, captures, path))
        print(f"{path.relative_to(HERE.parent)}  {path.stat().st_size / 1000:.0f} kB")


def captured_texts(model: Path, folder: Path) -> Path:
    """The first of the bundled reviews, captured into one file."""
    from hgviz import tasks
    from hgviz.core import finish
    from hgviz.resources import resource

    lines = resource("sample/reviews.tsv").read_text("utf-8").splitlines()[: TEXTS + 1]
    some = folder / "reviews.tsv"
    some.write_text("\n".join(lines) + "\n", "utf-8")
    opened = finish(tasks.load(model, "cpu"))
    finish(tasks.capture_corpus(opened, some, folder / "reviews.h5"))
    return folder / "reviews.h5"


def searched(file: Path, query: str, dark: bool) -> QImage:
    """The window on a capture of many texts while somebody looks for one."""
    from hgviz.gui.proof import opened

    with opened(file, dark) as (program, frame):
        program.settle()
        program.inspect.texts.field.setText(query)
        program.settle()
        return frame.grab().toImage()


def written(model: Path, text: str, file: Path) -> Path:
    """A capture of a text that the model went on with."""
    from hgviz import tasks
    from hgviz.core import finish

    opened = finish(tasks.load(model, "cpu"))
    prompt, _ = tasks.prompt_from(opened, text)
    finish(tasks.generate(opened, prompt, 96, out=file, seed=4, temperature=0.7))
    return file


def captured(model: Path, text: str, file: Path) -> Path:
    """A capture of a text, written to a file."""
    from hgviz import tasks
    from hgviz.core import finish

    opened = finish(tasks.load(model, "cpu"))
    prompt, _ = tasks.prompt_from(opened, text)
    finish(tasks.capture(opened, prompt, out=file))
    return file


def keep(name: str, image: QImage) -> None:
    """Write a picture, small enough for a page."""
    from PySide6.QtCore import Qt

    image = image.scaledToWidth(WIDTH, Qt.TransformationMode.SmoothTransformation)
    path = HERE / "pictures" / f"{name}.png"
    image.save(str(path))
    print(f"{path.relative_to(HERE.parent)}  {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
