"""Figures as files: PDF, SVG, PNG, PGF and tables, the same bytes every time, whole or not at all.

A file says what its figure is of, by names and digests, never folders or people, and the command
that draws it again.
"""

from __future__ import annotations

import csv
import errno
import os
import re
import shlex
import warnings
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO, StringIO
from math import isfinite, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import hgviz
from hgviz.core import Capture, HgvizError
from hgviz.errors import HgvizWarning
from hgviz.figures.labels import BOX, DOTS, figure_settings, record_missing
from hgviz.figures.page import Page, dots_per_inch
from hgviz.figures.pgf import compact_png, render_pgf
from hgviz.figures.spec import (
    MISSING,
    POINTS,
    TABLE,
    Content,
    Looked,
    Panel,
    Spec,
    answer_command,
    bare_name,
    csv_beside,
    describe_capture,
    figure_command,
    format_of,
    kind_of,
    known_name,
    points,
)
from hgviz.files import write_atomic

LISTED = 8  # characters without a font that a warning names
PREVIEW_PIXELS = 24e6  # of a picture on a screen: a larger one has fewer dots

# --- drawing --------------------------------------------------------------------------------------


@figure_settings()
def compose(spec: Spec, content: Content | Capture) -> Page:
    """The page of a figure, not yet written; a capture stands for itself with nothing known of its
    heads.

    Raises HgvizError for an unknown kind or width, and for a capture that lacks what is shown.
    """
    kind, page = kind_of(spec.kind), Page(points(spec.width), spec.title)
    drawing: Any = Looked(content) if isinstance(content, Capture) else content
    if isinstance(drawing, Looked):
        drawing = kind.load()(drawing.capture, drawing.facts)
    drawing.draw(page, spec)
    return page


@figure_settings()
def draw(panel: Panel, path: str | Path) -> Path:
    """Write a figure to path and return the path; a .csv has its numbers in place of a picture.

    It appears whole or not at all. Warns of characters that no font has. Raises HgvizError.
    """
    path = Path(path)
    if not panel.spec.format and path.suffix.lower() == TABLE:
        return write_numbers(panel, path)
    form = format_of(path, panel.spec.format)
    require_folder(path)
    with record_missing() as missing:
        page = compose(panel.spec, panel.content)
        files = render(page.figure, form, path, record(panel, page.notes, path))
    write(path, files)
    if missing:
        names = ", ".join(f"U+{ord(character):04X}" for character in sorted(missing)[:LISTED])
        more = f" and {len(missing) - LISTED} more" if len(missing) > LISTED else ""
        line = f"{path.name}: no installed font has {names}{more}; printed as {BOX}."
        warnings.warn(f"{line} Install a font that has them.", HgvizWarning, stacklevel=3)
    return path


@dataclass(frozen=True, slots=True)
class Preview:
    """A page as a picture. png: at so many dots per inch; width and height: of the page, in points;
    smallest: its smallest text in points, None where it has none; notes: what its file says of how
    it was drawn."""

    png: bytes
    dots: float
    width: float
    height: float
    smallest: float | None
    notes: tuple[str, ...]


@figure_settings()
def preview(panel: Panel, dots: float) -> Preview:
    """The picture of a figure at so many dots per inch, fewer for a poster. Raises HgvizError."""
    page = compose(panel.spec, panel.content)
    pixels = page.width * page.height * (dots / POINTS) ** 2
    dots /= sqrt(max(1.0, pixels / PREVIEW_PIXELS))
    buffer = BytesIO()
    page.figure.savefig(
        buffer, format="png", dpi=dots, bbox_inches=None, pil_kwargs={"compress_level": 1}
    )
    return Preview(
        buffer.getvalue(), dots, page.width, page.height, page.smallest, tuple(page.notes)
    )


# --- what a file says of its figure ---------------------------------------------------------------


def record(panel: Panel, notes: Sequence[str], path: Path) -> dict[str, str]:
    """What identifies a figure, in words, in the order it is written."""
    content = panel.content
    entries = {
        "program": f"hgviz {hgviz.__version__}",
        "kind": panel.spec.kind,
        **(_about(panel.spec, content.capture) if isinstance(content, Looked) else content.about),
        "reduction": "; ".join(notes),
        "command": command(panel, path),
    }
    return {name: printable(value) for name, value in entries.items() if value}


def _about(spec: Spec, capture: Capture) -> dict[str, str]:
    chosen, layers = spec.selection, capture.spec.layers
    is_there = 0 <= chosen.layer < len(layers)
    shown = {
        "layer": f"{chosen.layer} ({layers[chosen.layer].name})" if is_there else "",
        "head": str(chosen.head),
        "query": "" if chosen.query is None else str(chosen.query),
    }
    places = kind_of(spec.kind).options.split()
    shown = {name: words for name, words in shown.items() if f"selection.{name}" in places}
    return describe_capture(capture, shown)


def command(panel: Panel, path: Path) -> str:
    """The command that draws a figure again; files are named without their folders."""
    spec, files = panel.spec, [known_name(name) for name in panel.files]
    if len(set(files)) < len(set(panel.files)):
        files = []  # several of one name: no folder could hold them
    if kind_of(spec.kind).of == "answer":
        models = [name for name in files if name] or MISSING["answer"]
        return answer_command(spec, getattr(panel.content, "asked", ()), models, path.name)
    return figure_command(spec, files, panel.item, path.name)


def metadata(form: str, record: dict[str, str]) -> dict[str, Any]:
    """The record as a file of this format keeps it."""
    title = ": ".join(filter(None, (kind_of(record["kind"]).label, record.get("model"))))
    lines = "; ".join(f"{name}: {value}" for name, value in record.items())
    if form == "png":
        return {"Title": title, "Software": record["program"], "Description": lines}
    entries = {"Title": title, "Creator": record["program"]}
    if form == "svg":
        entries["Description"] = lines
    else:
        entries |= {"Subject": record["command"], "Keywords": lines}
    # a date makes two runs differ, so there is one only where it was asked for
    is_dated = bool(os.environ.get("SOURCE_DATE_EPOCH"))
    return entries if is_dated else {**entries, "Date" if form == "svg" else "CreationDate": None}


def without_folders(command: str) -> str:
    """A command whose files are named without their folders."""
    try:
        parts = shlex.split(command)
    except ValueError:
        parts = command.split()
    return shlex.join(map(bare_name, parts))


def printable(words: str) -> str:
    """Without what a file's header could not carry."""
    return "".join(sign if sign.isprintable() else "?" for sign in words)


# --- pictures -------------------------------------------------------------------------------------


def render(figure: Figure, form: str, path: Path, record: dict[str, str]) -> dict[str, bytes]:
    """The files of a figure, name -> content: one, or for LaTeX also its rasters."""
    if form == "pgf":
        return render_pgf(figure, path, record)
    buffer = BytesIO()
    dots = dots_per_inch(figure.get_figwidth() * POINTS) if form == "png" else DOTS
    figure.savefig(buffer, format=form, dpi=dots, bbox_inches=None, metadata=metadata(form, record))
    content = buffer.getvalue()
    return {path.name: compact_svg(content.decode()).encode() if form == "svg" else content}


def svg(figure: Figure) -> str:
    """A figure as the SVG that a page holds inside."""
    buffer = BytesIO()
    figure.savefig(buffer, format="svg", dpi=DOTS, bbox_inches=None, metadata={"Date": None})
    return compact_svg(buffer.getvalue().decode())


RASTER = re.compile(r"(data:image/png;base64,)\s*([A-Za-z0-9+/=\s]+)")  # inside an SVG


def compact_svg(text: str) -> str:
    """An SVG whose rasters are written as compact_png writes them, where that is smaller."""

    def rewrite(match: re.Match[str]) -> str:
        content = b64decode(match[2])
        with Image.open(BytesIO(content)) as image:
            smaller = compact_png(np.asarray(image))
        return match[1] + b64encode(min(smaller, content, key=len)).decode()

    return RASTER.sub(rewrite, text)


# --- tables ---------------------------------------------------------------------------------------

DIGITS = 7
NUMBERS = float, np.floating  # as isinstance is quickest with
FORMULA = frozenset("=+-@\t\r\n＝＋－＠")  # what formulas begin with


def write_numbers(panel: Panel, path: str | Path) -> Path:
    """Write the numbers of a figure as a CSV named after its path. Raises HgvizError."""
    kind, content = kind_of(panel.spec.kind), panel.content
    out = csv_beside(Path(path))
    require_folder(out)
    if isinstance(content, Looked):
        rows = kind.load()(content.capture, content.facts).rows(panel.spec)
    else:
        rows = content.rows()
    write(out, {out.name: csv_table(rows)})
    return out


def csv_table(rows: Iterable[tuple[Any, ...]]) -> bytes:
    """Rows as CSV (RFC 4180) in UTF-8; what is no number is empty, and no cell a formula."""
    buffer = StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerows([csv_cell(value) for value in row] for row in rows)
    return buffer.getvalue().encode(errors="backslashreplace")


def csv_cell(value: Any) -> str:
    """A value as a table has it: a number with seven digits that count, nothing for no number.

    A text that a spreadsheet would take for a formula has an apostrophe before it, and so has one
    that looks so already: whoever reads it takes one away.
    """
    if isinstance(value, NUMBERS):
        return f"{value:.{DIGITS}g}" if isfinite(value) else ""
    return _csv_text(value)


@lru_cache(maxsize=1 << 14, typed=True)  # tokens and their numbers come back in every line
def _csv_text(value: str | int) -> str:
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.lstrip("'")[:1] in FORMULA else text


# --- files ----------------------------------------------------------------------------------------


def require_folder(path: Path) -> None:
    """Raise HgvizError where a file of this name cannot be."""
    if os.path.isdir(path):  # False also for names that no system takes
        raise HgvizError(
            f"{path.name} is a folder: a figure is a file", "Give the figure another name"
        )
    if not os.path.isdir(path.absolute().parent):
        raise HgvizError(
            f"there is no folder {path.parent}: a figure is written into a folder that exists",
            "Make it first, or choose another",
        )


def write(path: Path, files: dict[str, bytes]) -> None:
    """Write files beside each other, the one named path last. Raises HgvizError."""
    for name in sorted(files, key=lambda name: name == path.name):
        try:
            write_atomic(path.with_name(name), files[name])
        except OSError as error:
            raise _write_error(path.with_name(name), error) from error


def _write_error(path: Path, error: OSError) -> HgvizError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return HgvizError(
            f"{path.name} could not be written: the disk is full", "Make room and try again"
        )
    if error.errno == errno.ENAMETOOLONG:
        return HgvizError(
            "the figure could not be written: its name is too long", "Give it a shorter one"
        )
    return HgvizError(
        f"{path.name} could not be written: {path.parent}: {error.strerror or error}",
        "Choose a folder you may write to",
    )
