"""The pages: their commands are those of the program, and their pictures what these draw."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
import typer
from PIL import Image

from hgviz.cli import app, verbs
from hgviz.figures import ANSWERS, FIGURES

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))

import pages  # noqa: E402 - beside the pages

PAGES = pages.pages()
KINDS = (pages.ALWAYS, pages.LONG, pages.ELSEWHERE)
PICTURES = sorted(one.name for one in pages.PICTURES.iterdir())
COMMANDS = typer.main.get_command(app)


def said(picture: str) -> str:
    """What a picture says of itself."""
    with Image.open(pages.PICTURES / picture) as image:
        return str(image.info.get("Description", ""))


def makers(picture: str) -> list[list[str]]:
    """The commands of all pages that write this picture."""
    return [found[picture] for page in PAGES if picture in (found := pages.written(page, *KINDS))]


def asked(words: list[str]):
    """What a command asks for, defaults included."""
    with COMMANDS.make_context("hgviz", words[1:2], resilient_parsing=True) as whole:
        verb = COMMANDS.get_command(whole, words[1])
        with verb.make_context(words[1], words[2:], whole) as context:
            return context.params


def every_command(page: Path) -> list[list[str]]:
    """The commands of a page: of its blocks, and of lines that are set in by four blanks."""
    text = page.read_text("utf-8")
    shown = "\n".join(re.findall(r"^    (hgviz .*)$", text, re.MULTILINE))
    found = [
        *pages.blocks(page),
        pages.Block(pages.ELSEWHERE, re.sub(r" {3,}\S.*$", "", shown, flags=re.MULTILINE)),
    ]
    return [
        words
        for block in found
        if block.kind in KINDS
        for words in block.commands()
        if words[0] == "hgviz" and len(words) > 1 and words[1] in verbs()
    ]


def test_every_picture_is_shown_by_a_page_and_every_page_shows_what_is_there():
    assert set().union(*map(pages.shown, PAGES)) == set(PICTURES)


@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_is_the_window_or_what_one_command_of_a_page_draws(picture):
    description = said(picture)
    if picture.endswith(("-light.png", "-dark.png")):
        assert description == "The window of hgviz, drawn by docs/pictures.py"
        return
    (words,) = makers(picture)
    _, _, stored = description.rpartition("command: ")
    assert shlex.split(stored) == words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_is_one_of_the_program(page):
    for words in every_command(page):
        try:
            params = asked(words)
        except Exception as error:
            raise AssertionError(f"{page.name}: {shlex.join(words)}") from error
        if words[1] == "figure" and not words[2].endswith(".toml"):
            assert params["kind"] in FIGURES, shlex.join(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_run_are_commands_of_hgviz_alone(page):
    for block in pages.blocks(page):
        assert not block.kind.startswith("sh ") or block.kind in KINDS
        programs = {"hgviz"} if block.kind == pages.ALWAYS else {"hgviz", "python"}
        if block.kind != pages.ELSEWHERE and block.kind in KINDS:
            assert {words[0] for words in block.commands()} <= programs


def test_the_gallery_has_every_kind_of_figure_and_a_sheet():
    drawn = pages.written(DOCS / "gallery.md", pages.ALWAYS)
    kinds = {Path(name).stem for name in drawn}
    assert kinds == {*FIGURES, *ANSWERS, "sheet"}
    for name, words in drawn.items():
        assert asked(words).get("kind") in (None, Path(name).stem)
    assert pages.shown(DOCS / "gallery.md") == set(drawn)
    headings = re.findall(r"^## (\w+)$", (DOCS / "gallery.md").read_text("utf-8"), re.MULTILINE)
    assert set(headings) == {*FIGURES, *ANSWERS}


def test_a_page_makes_its_pictures_the_same_from_an_empty_folder(tmp_path, monkeypatch):
    """Of two pages, so that one shows what the other draws."""
    for name in ("DOCS", "PICTURES"):
        monkeypatch.setattr(pages, name, tmp_path / "docs" / ("" if name == "DOCS" else "pictures"))
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs/one.md"
    figure = "hgviz figure two.toml \\\n  -o a.png  # two panels"
    panel = '[[panel]]\nof = ["sample/first.h5"]\nkind = "activation"\n'
    page.write_text(
        f"One.\n\n```toml two.toml\n{panel}\n{panel}title = 'B'\n```\n\n```sh\n{figure}\n```\n\n"
        "```sh long\nhgviz no such verb\n```\n\n```text\nhgviz neither\n```\n"
    )
    (tmp_path / "README.md").write_text("![Shown](docs/pictures/a.png)\n")
    assert pages.make(tmp_path / "README.md") == []
    (made,) = pages.make(page)
    assert made == tmp_path / "docs/pictures/a.png"
    first = made.read_bytes()
    assert said(made.name).endswith("command: hgviz figure two.toml -o a.png")
    pages.make(page)
    assert made.read_bytes() == first
    with pytest.raises(SystemExit, match="no such verb"):
        pages.make(page, long=True)
    assert Path.cwd().is_dir() and made.read_bytes() == first
