"""Reports as one HTML page: figures inside it, no script, light or dark as the reader has it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from html import escape
from pathlib import Path
from typing import Literal

import jinja2
from markupsafe import Markup

import hgviz
from hgviz.core import HgvizError
from hgviz.figures.charts import Chart
from hgviz.figures.labels import figure_settings
from hgviz.figures.output import printable, require_folder, svg, without_folders
from hgviz.figures.output import write as write_files
from hgviz.figures.page import Page
from hgviz.figures.spec import Spec
from hgviz.files import resource
from hgviz.palettes import CATEGORICAL, CATEGORICAL_DARK, DARK_PAGE, LIGHT_PAGE, PageColours

WIDTH = 487.0  # of figures, in points


@dataclass(frozen=True, slots=True)
class Notes:
    """A list of sentences under a title."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of words under the names of columns; text: the columns that do not hold numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: frozenset[int] = frozenset({0})
    caption: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A chart with a caption below it."""

    title: str
    kind: Literal["plots", "strips", "grids", "three", "seeds", "budgets"]
    chart: Chart
    caption: str


Block = Notes | Table | Picture


@dataclass(frozen=True, slots=True)
class Document:
    """A report; a block without a title continues the one before it. about: what identifies the
    data, for the metadata of the file."""

    title: str
    subtitle: str
    blocks: tuple[Block, ...]
    about: Mapping[str, str] = field(default_factory=dict)


def require_page(path: Path) -> None:
    """Require that a report of this name can be written, before it is made. Raises HgvizError."""
    if path.suffix.lower() != ".html":
        raise HgvizError(
            f"a report cannot be written as {path.suffix.lower() or path.name!r}: "
            "it is an HTML page",
            "Give the file a name that ends in .html",
        )
    require_folder(path)


def write(report: Document, path: Path, command: str) -> Path:
    """Write a report and return its path. The same report gives the same bytes, or no file at all.

    command: what makes it again; names of folders are left out of it. Raises HgvizError.
    """
    require_page(path)
    record = {
        "program": f"hgviz {hgviz.__version__}",
        "kind": "report",
        **report.about,
        "command": without_folders(command),
    }
    record = {name: printable(value) for name, value in record.items() if value}
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    template = environment.from_string(resource("report/page.html").read_text("utf-8"))
    with figure_settings():
        page = template.render(
            report=report, record=record, svg=_svg,
            light=_variables(LIGHT_PAGE, CATEGORICAL),
            dark=_variables(DARK_PAGE, CATEGORICAL_DARK),
            text=Markup(' class="text"'),
        )  # fmt: skip
    write_files(path, {path.name: page.encode()})
    return path


def _variables(ink: PageColours, lines: tuple[str, ...]) -> str:
    return "".join(f"--{name}:{value};" for name, value in _colours(ink, lines).items())


def _colours(ink: PageColours, lines: tuple[str, ...]) -> dict[str, str]:
    """All that follows the page, by the names of its variables; of lines the last is plain ink."""
    names = (one.name for one in fields(ink) if one.name != "silhouette")
    found = {name.replace("_", "-"): getattr(ink, name) for name in names}
    return found | {f"line-{number}": one for number, one in enumerate(lines[:-1])}


def _svg(picture: Picture, number: int) -> Markup:
    """A figure whose ink follows the page and whose names are those of no other figure."""
    page = Page(WIDTH)
    picture.chart.draw(page, Spec(picture.kind))
    text = re.sub(r"^.*?(?=<svg )", "", svg(page.figure), flags=re.DOTALL)
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    prefix = f"f{number}-"
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r'href="#', f'href="#{prefix}', text)
    text = text.replace("url(#", f"url(#{prefix}")
    for name, colour in _colours(LIGHT_PAGE, CATEGORICAL).items():
        text = re.sub(re.escape(colour), f"var(--{name})", text, flags=re.IGNORECASE)
    text = text.replace("<svg ", f'<svg role="img" aria-label="{escape(picture.caption)}" ', 1)
    return Markup(text.strip())
