"""Makes every picture of the pages: figures by the commands that stand there, and the window.

Run from a checkout: python docs/pictures.py, for all; with --long also what takes many minutes;
with the names of pages, such as gallery, only theirs.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtGui import QImage

    from hgviz.gui.program import Program
    from hgviz.gui.window import Window

# as many threads as cores would add numbers in another order on another machine
os.environ["OMP_NUM_THREADS"] = "1"

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import pages  # noqa: E402 - beside this script

WINDOW = "window"
SEEN = "The window of hgviz, drawn by docs/pictures.py"
THEMES = ("light", "dark")
WIDTH = 1200  # px: sharp enough to read, small enough for a page
TEXTS = 120
BEGINNING = "The hourglass was turned, "
READ = 101  # the token whose answer is read: the d of turned


def main() -> None:
    """Make the figures of the pages that are named, or of all, and what is seen of the window."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("page", nargs="*", help="such as gallery; window: the pictures of it")
    parser.add_argument("--long", action="store_true", help="also what takes many minutes")
    asked = parser.parse_args()
    names = {page.stem for page in pages.pages()} | {WINDOW}
    if unknown := sorted(set(asked.page) - names):
        parser.error(f"There is no page {unknown[0]}; there are {', '.join(sorted(names))}.")
    for page in pages.pages():
        if page.stem in (asked.page or names):
            for path in pages.make(page, asked.long):
                told(path)
    if WINDOW in (asked.page or names):
        windows()


def windows() -> None:
    """The window: every mode, signed weights, many texts, and a text being written."""
    from hgviz.files import resource
    from hgviz.gui.sources import CLASSIFIERS, FIRST, REVIEW, SAMPLE

    pages.PICTURES.mkdir(exist_ok=True)
    for dark in (False, True):
        keep(f"inspect-{THEMES[dark]}", window(resource(FIRST), dark, "inspect"))
    keep("follow-light", window(resource(FIRST), False, "follow"))
    looks()
    kinds()
    across()
    exporting()
    studied()
    with TemporaryDirectory() as folder:
        compared(Path(folder))
        signed = captured(resource(CLASSIFIERS[1]), REVIEW, Path(folder) / "signed.h5")
        keep("signed-light", window(signed))
        many = captured_texts(resource(CLASSIFIERS[0]), Path(folder))
        keep("texts-light", searched(many, "great"))
        story = written(resource(SAMPLE), BEGINNING, Path(folder) / "story.h5")
        keep("written-light", window(story))


@contextmanager
def measured(path: Path, dark: bool = False) -> Iterator[tuple[Program, Window]]:
    """A program and its window on a capture, once its heads are measured."""
    from hgviz.gui.selftest import opened

    with opened(path, dark) as (program, frame):
        while not program.session.facts:
            program.settle()
        yield program, frame


def window(path: Path, dark: bool = False, mode: str = "inspect") -> QImage:
    """The window on a capture in one of its modes."""
    with measured(path, dark) as (program, frame):
        program.session.put(mode=mode)
        program.settle()
        return frame.grab().toImage()


def looks() -> None:
    """The other looks at a head that need no model."""
    from hgviz.files import resource
    from hgviz.gui.sources import FIRST

    for look in ("links", "neurons", "heads"):
        with measured(resource(FIRST)) as (program, frame):
            program.session.put(look=look)
            program.settle()
            keep(f"{look}-light", frame.grab().toImage())


def kinds() -> None:
    """The window on each kind of model that has a page of its own."""
    for name, file, look, layer, head, query in (
        ("vit", "colours", "image", 3, 2, 0),
        ("groups", "copy", "map", 1, 2, 16),
        ("cross", "dates", "map", 5, 3, 6),
        ("patches", "patches", "map", 3, 2, 18),
    ):
        with measured(pages.STUDIES / f"{file}.h5") as (program, frame):
            program.session.put(look=look)
            program.session.select(layer=layer, head=head, query=query, key=None)
            program.settle()
            keep(f"{name}-light", frame.grab().toImage())


def compared(folder: Path) -> None:
    """The Compare page: the sample beside itself with its softmax exchanged for ymish."""
    from hgviz import tasks
    from hgviz.files import resource
    from hgviz.gui.sources import FIRST, SAMPLE
    from hgviz.store import open_capture

    first = open_capture(resource(FIRST))
    other = tasks.load(resource(SAMPLE), "cpu", activation="ymish")
    prompt, _ = tasks.read_prompts(other, first.prompt.text)
    tasks.capture(other, prompt, out=folder / "other.h5")
    with measured(resource(FIRST)) as (program, frame):
        program.session.put(mode="compare", capture_b=open_capture(folder / "other.h5"))
        program.settle()
        keep("compare-light", frame.grab().toImage())


def across() -> None:
    """The Hourglass across its levels, one answer chosen."""
    from hgviz.files import resource
    from hgviz.gui.sources import FIRST

    with measured(resource(FIRST)) as (program, frame):
        program.session.put(look="across")
        program.session.select(query=READ, key=None)
        program.settle()
        keep("across-light", frame.grab().toImage())


def exporting() -> None:
    """What is asked before a figure is written, and its page."""
    from hgviz.files import resource
    from hgviz.gui.export import ExportDialog
    from hgviz.gui.selftest import picture_of
    from hgviz.gui.sources import FIRST

    with measured(resource(FIRST)) as (program, frame):
        program.settle()
        program.commands.run("export")
        dialog = frame.findChild(ExportDialog)
        while dialog.preview.picture is None:
            program.settle()
        keep("export-light", picture_of(frame))


def studied() -> None:
    """The page of a study of many runs: its cells, one chosen, and what is left as heads go."""
    import kept

    from hgviz.files import resource
    from hgviz.gui.sources import FIRST

    with measured(resource(FIRST)) as (program, frame), TemporaryDirectory() as folder:
        sweep = kept.restore("which-score", Path(folder) / "which-score")
        one = sweep.of("curve", method="michel", seed="3")[0]
        program.session.put(sweep=sweep, mode="sweep", cell=one.cell.key)
        program.sweep.show_chart("budgets")
        program.settle()
        keep("study-light", frame.grab().toImage())


def captured_texts(model: Path, folder: Path) -> Path:
    """The first of the bundled reviews, captured into one file."""
    from hgviz import tasks
    from hgviz.files import resource

    lines = resource("sample/reviews.tsv").read_text("utf-8").splitlines()[: TEXTS + 1]
    some = folder / "reviews.tsv"
    some.write_text("\n".join(lines) + "\n", "utf-8")
    opened = tasks.load(model, "cpu")
    tasks.capture_corpus(opened, some, folder / "reviews.h5")
    return folder / "reviews.h5"


def searched(file: Path, query: str) -> QImage:
    """The window on a capture of many texts while somebody looks for one."""

    with measured(file) as (program, frame):
        program.settle()
        program.inspect.texts.field.setText(query)
        program.settle()
        return frame.grab().toImage()


def written(model: Path, text: str, file: Path) -> Path:
    """A capture of a text that the model went on with."""
    from hgviz import tasks

    opened = tasks.load(model, "cpu")
    prompt, _ = tasks.read_prompts(opened, text)
    tasks.generate(opened, prompt, 96, out=file, seed=4, temperature=0.7)
    return file


def captured(model: Path, text: str, file: Path) -> Path:
    """A capture of a text, written to a file."""
    from hgviz import tasks

    opened = tasks.load(model, "cpu")
    prompt, _ = tasks.read_prompts(opened, text)
    tasks.capture(opened, prompt, out=file)
    return file


def keep(name: str, image: QImage) -> None:
    """Write a picture of the window, small enough for a page, that says what it is."""
    from PySide6.QtCore import Qt

    image = image.scaledToWidth(WIDTH, Qt.TransformationMode.SmoothTransformation)
    image.setText("Description", SEEN)
    path = pages.PICTURES / f"{name}.png"
    image.save(str(path))
    told(path)


def told(path: Path) -> None:
    """Say which picture is there now."""
    print(f"{path.relative_to(HERE.parent)}  {path.stat().st_size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
