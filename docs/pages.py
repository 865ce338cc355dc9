"""The pages as the source of their figures: the commands that stand in them, and running these.

A block ```sh has commands that `make docs` runs, one page after the other, each page in an empty
folder of its own that holds what docs/studies does, its CSVs as the folders of studies; ```sh long
takes many minutes, and `make docs-all` runs it too; ```sh elsewhere needs what a reader has to
bring, and nothing here runs it. A block ```toml NAME is a file that lies beside them. What a
command of ```sh writes and a page shows is its picture.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures"
STUDIES = DOCS / "studies"  # what studies found that take long, so that pages can draw it
DRAWN = (".png", ".svg")  # what browsers show
ALWAYS, LONG, ELSEWHERE = "sh", "sh long", "sh elsewhere"

_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"""pictures/([\w.-]+\.(?:png|svg))[)" ]""")


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
    """All pages that people read: the README and those of docs/ and its folders."""
    written = (one for one in DOCS.rglob("*.md") if STUDIES not in one.parents)
    return [DOCS.parent / "README.md", *sorted(written)]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, from the first to the last."""
    found = _BLOCK.findall(page.read_text("utf-8"))
    return [Block(kind.strip(), text) for kind, text in found]


def shown(page: Path) -> set[str]:
    """The files of docs/pictures that a page shows."""
    return set(_SHOWN.findall(page.read_text("utf-8")))


def written(page: Path, *kinds: str) -> dict[str, list[str]]:
    """The pictures that blocks of these kinds write: the name of each file, and its command."""
    found: dict[str, list[str]] = {}
    for block in blocks(page):
        for words in block.commands() if block.kind in kinds else ():
            if words[0] == "hgviz" and words[-2] == "-o" and words[-1].endswith(DRAWN):
                found[words[-1]] = words
    return found


def make(page: Path, long: bool = False) -> list[Path]:
    """Run what stands in a page, and put those of its figures that any page shows in their place.

    long: also what takes many minutes. Raises SystemExit where a command fails.
    """
    kinds = (ALWAYS, LONG) if long else (ALWAYS,)
    wanted = set().union(*map(shown, pages())) & set(written(page, *kinds))
    if not wanted:
        return []
    with TemporaryDirectory() as name:
        folder = Path(name)
        if STUDIES.is_dir():
            import kept

            shutil.copytree(STUDIES, folder, dirs_exist_ok=True)
            for file in STUDIES.glob("*.csv"):
                kept.restore(file.stem, folder / file.stem)
        for block in blocks(page):
            kind, _, file = block.kind.partition(" ")
            if kind == "toml" and file:
                (folder / file).write_text(block.text, "utf-8")
            for words in block.commands() if block.kind in kinds else ():
                _run(words, folder)
        PICTURES.mkdir(exist_ok=True)
        return [Path(shutil.copy(folder / one, PICTURES / one)) for one in sorted(wanted)]


def _run(words: list[str], folder: Path) -> None:
    print(f"$ {shlex.join(words)}", flush=True)
    program, *arguments = words
    if program == "python":
        subprocess.run([sys.executable, *arguments], cwd=folder, check=True)
        return
    from hgviz.cli import Window, main

    before = Path.cwd()
    os.chdir(folder)
    try:
        if program != "hgviz" or main(arguments, Window(lambda path: 1, lambda: 1)):
            raise SystemExit(f"This command of a page did not work: {shlex.join(words)}")
    finally:
        os.chdir(before)
