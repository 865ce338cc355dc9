"""What is said of a page: its size in the unit it was asked in, and what is wrong with it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hgviz.core import Display, HgvizError
from hgviz.figures.spec import UNITS, WIDTHS, points
from hgviz.gui.language import tr
from hgviz.palettes import PALETTES, suited

if TYPE_CHECKING:
    from hgviz.gui.exporting.offers import Command
    from hgviz.gui.exporting.preview import Picture

LEGIBLE = 5.0  # points: journals print nothing smaller
DECIMALS = {"in": 2, "mm": 0, "cm": 1, "pt": 0}
SCALES = {"linear": "linear", "sqrt": "square root", "log": "logarithm"}

# what a format is for, where its name does not say it
USES = {
    "pdf": "Vectors with their fonts inside: for LaTeX, Word and every journal.",
    "svg": "Vectors, words as text: for web pages, and to be changed in Inkscape or Illustrator.",
    "png": "Pixels: for slides, e-mail, and programs that take nothing else.",
    "pgf": "LaTeX sets its words in the font of the paper: \\input it.",
}


def unit_of(width: str) -> str:
    """The unit of a preset or a length: in, mm, cm or pt."""
    length = WIDTHS[width][0] if width in WIDTHS else width
    match = re.search(r"[a-z]+$", length.strip().lower())
    return match[0] if match and match[0] in UNITS else "in"


def measures(picture: Picture, width: str) -> str:
    """5.50 × 4.21 in · 396 × 303 pt · smallest text 6.5 pt."""
    unit = unit_of(width)
    wide, high = (f"{one / UNITS[unit]:.{DECIMALS[unit]}f}"
                  for one in (picture.width, picture.height))  # fmt: skip
    parts = [f"{wide} × {high} {unit}"]
    if unit != "pt":
        parts.append(f"{picture.width:.0f} × {picture.height:.0f} pt")
    if picture.smallest is not None:
        parts.append(tr("smallest text {n} pt", n=f"{picture.smallest:.3g}"))
    return "   ·   ".join(parts)


def warning(picture: Picture) -> str:
    """What is too small; "" for nothing."""
    if picture.smallest is None or picture.smallest >= LEGIBLE:
        return ""
    said = (
        "Too small to read: text of {n} pt, where journals ask for {least:g}. "
        "Choose a wider figure."
    )
    return tr(said, n=f"{picture.smallest:.3g}", least=LEGIBLE)


def notes(picture: Picture) -> str:
    """What was reduced, chosen and left out, as its file says it; "" for nothing."""
    return " ".join(
        f"{one[:1].upper()}{one[1:]}{'' if one.endswith('.') else '.'}"
        for one in map(tr, dict.fromkeys(picture.notes))
    )


def wrong_width(width: str) -> str:
    """Why this is no width for a figure; "" for one that is."""
    try:
        points(width)
    except HgvizError as error:
        return f"{tr(error.lines[0])} {tr(error.lines[-1])}"
    return ""


def colours(display: Display, signed: bool) -> str:
    """Viridis, square root, up to 0.8; signed: whether weights may be below zero."""
    parts = [tr(PALETTES[suited(display.palette, signed)].label), tr(SCALES[display.scale])]
    if display.limits is not None:
        parts.append(tr("up to {n:g}", n=display.limits[1]))
    return ", ".join(parts)


def copied(command: Command) -> str:
    """What is said once a command is on the clipboard."""
    if command.lacks:
        return tr("Copied; {lacks}", lacks=command.lacks)
    return tr("Copied: it draws this figure again")


def written(path: str, numbers: bool) -> str:
    """Say that a figure was exported, and its numbers with it."""
    if numbers:
        return tr("Exported {path}, and 1 file beside it", path=path)
    return tr("Exported {path}", path=path)


__all__ = [
    "USES", "colours", "copied", "measures", "notes", "unit_of", "warning", "written",
    "wrong_width",
]  # fmt: skip
