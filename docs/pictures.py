"""Draws the pictures of the pages: figures by the commands that stand there, and the window.

Run from a checkout: python docs/pictures.py [PAGE]... [window].

A block ```sh of a page has commands that are run here, one page after the other, each in an empty
folder that holds what docs/studies does, its CSVs as the folders of studies. ```sh elsewhere needs
what a reader has to bring, or takes minutes, and is not run. A block ```toml NAME is a file beside
them. A picture that a command writes and a page shows goes into docs/pictures.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# as many threads as cores would add numbers in another order on another machine
os.environ["OMP_NUM_THREADS"] = "1"

DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures"
STUDIES = DOCS / "studies"  # results that take long, so that pages can draw them
ALWAYS, ELSEWHERE = "sh", "sh elsewhere"
sys.path.insert(0, str(DOCS.parent))

_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"""pictures/([\w.-]+\.(?:png|svg))[)" ]""")


# --- pages and their commands ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page: what stands behind its fence, and the text within."""

    kind: str
    text: str

    def commands(self) -> Iterator[list[str]]:
        """The words of every command, without comments."""
        for line in self.text.replace("\\\n", " ").splitlines():
            if words := shlex.split(line, comments=True):
                yield words


def pages() -> list[Path]:
    """The README and all pages of docs/ and its folders."""
    return [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, from the first to the last."""
    return [Block(kind.strip(), text) for kind, text in _BLOCK.findall(page.read_text("utf-8"))]


def shown(page: Path) -> set[str]:
    """The files of docs/pictures that a page shows."""
    return set(_SHOWN.findall(page.read_text("utf-8")))


def written(page: Path, *kinds: str) -> dict[str, list[str]]:
    """The pictures that blocks of these kinds write: the name of each file, and its command."""
    return {
        words[-1]: words
        for block in blocks(page) if block.kind in kinds
        for words in block.commands()
        if words[0] == "hgviz" and words[-2] == "-o" and words[-1].endswith((".png", ".svg"))
    }  # fmt: skip


def make(page: Path) -> list[Path]:
    """Run the commands of a page, and return the pictures of them that any page shows.

    Raises SystemExit where a command fails.
    """
    import kept

    from hgviz.cli import Window, main

    wanted = set().union(*map(shown, pages())) & set(written(page, ALWAYS))
    if not wanted:
        return []
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file in STUDIES.glob("*"):
            shutil.copy(file, folder)
            if file.suffix == ".csv":
                kept.restore(file.stem, folder / file.stem)
        for block in blocks(page):
            kind, _, file_name = block.kind.partition(" ")
            if kind == "toml" and file_name:
                (folder / file_name).write_text(block.text, "utf-8")
            for words in block.commands() if block.kind == ALWAYS else ():
                print(f"$ {shlex.join(words)}", flush=True)
                with chdir(folder):
                    if main(words[1:], Window(lambda path: 1, lambda: 1)):
                        raise SystemExit(f"This command of a page fails: {shlex.join(words)}")
        PICTURES.mkdir(exist_ok=True)
        return [Path(shutil.copy(folder / one, PICTURES / one)) for one in sorted(wanted)]


# --- the window -----------------------------------------------------------------------------------

WINDOW = "window"
DESCRIPTION = "The window of hgviz, drawn by docs/pictures.py"
WIDTH = 1200  # px: sharp enough to read, small enough for a page

# name of the picture; capture of docs/studies, "" for the sample; fields of the session; selection
VIEWS: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
    ("inspect-light", "", {}, {}),
    ("inspect-dark", "", {}, {}),
    ("follow-light", "", {"mode": "follow"}, {"query": 101, "key": 74}),
    ("links-light", "", {"look": "links"}, {}),
    ("heads-light", "", {"look": "heads"}, {}),
    ("across-light", "", {"look": "across"}, {"query": 101, "key": None}),
    ("vit-light", "colours", {"look": "image"}, {"layer": 3, "head": 2, "query": 0, "key": None}),
    ("groups-light", "copy", {}, {"layer": 1, "head": 2, "query": 16, "key": None}),
    ("cross-light", "dates", {}, {"layer": 5, "head": 3, "query": 6, "key": None}),
    ("patches-light", "patches", {}, {"layer": 3, "head": 2, "query": 18, "key": None}),
)


def draw_window() -> Iterator[Path]:
    """Draw the views, the page Compare (softmax and ymish) and the page Study."""
    import kept

    from hgviz import tasks
    from hgviz.files import resource
    from hgviz.gui.sources import FIRST, SAMPLE
    from hgviz.store import open_capture

    for name, capture, fields, selection in VIEWS:
        path = STUDIES / f"{capture}.h5" if capture else resource(FIRST)
        with window(path, name.endswith("-dark")) as (program, frame):
            if selection:
                program.session.select(**selection)
            yield grab(name, program, frame, fields)
    model = tasks.load(resource(SAMPLE), "cpu", activation="ymish")
    prompt, _ = tasks.read_prompts(model, open_capture(resource(FIRST)).prompt.text)
    with TemporaryDirectory() as folder, window(resource(FIRST)) as (program, frame):
        tasks.capture(model, prompt, out=Path(folder) / "other.h5")
        other = open_capture(Path(folder) / "other.h5")
        yield grab("compare-light", program, frame, {"mode": "compare", "capture_b": other})
    with TemporaryDirectory() as folder, window(resource(FIRST)) as (program, frame):
        sweep = kept.restore("which-score", Path(folder) / "which-score")
        cell = sweep.of("curve", method="michel", seed="3")[0].cell.key
        program.session.put(sweep=sweep, mode="sweep", cell=cell)
        program.sweep.show_chart("budgets")
        yield grab("study-light", program, frame, {})


@contextmanager
def window(path: Path, dark: bool = False) -> Iterator[tuple[Any, Any]]:
    """A program and its window on a capture, once its heads are measured."""
    from hgviz.gui.selftest import opened

    with opened(path, dark) as (program, frame):
        while not program.session.facts:
            program.settle()
        yield program, frame


def grab(name: str, program: Any, frame: Any, fields: dict[str, Any]) -> Path:
    """Write a picture of the window with these fields of its session."""
    from PySide6.QtCore import Qt

    program.session.put(**fields)
    program.settle()
    image = frame.grab().toImage()
    image = image.scaledToWidth(WIDTH, Qt.TransformationMode.SmoothTransformation)
    image.setText("Description", DESCRIPTION)
    image.save(str(PICTURES / f"{name}.png"))
    return PICTURES / f"{name}.png"


def main() -> None:
    """Draw the pictures of the pages that are named, or of all."""
    names = {page.stem for page in pages()} | {WINDOW}
    asked = set(sys.argv[1:]) or names
    if asked - names:
        raise SystemExit(f"There is no page {min(asked - names)}: {', '.join(sorted(names))}.")
    for page in pages():
        for path in make(page) if page.stem in asked else ():
            print(path.name, flush=True)
    for path in draw_window() if WINDOW in asked else ():
        print(path.name, flush=True)


if __name__ == "__main__":
    main()
