"""Several figures on one sheet: in columns, row by row, (a) (b) (c)."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase

from hgviz.core import HgvizError, replace
from hgviz.figures import ranges
from hgviz.figures.content import Panel, Sheet
from hgviz.figures.page import Page
from hgviz.figures.pictures import DRAWINGS
from hgviz.figures.spec import NARROWEST, POINTS, points

BETWEEN, BELOW = 14.0, 12.0  # columns, rows


def arranged(sheet: Sheet, panels: Sequence[Panel]) -> Page:
    """The page of some panels, each as wide as its columns, those of a row level at the top.

    Errors: HgvizError where there is no panel, more than letters, or no room for a column.
    """
    page = Page(points(sheet.width))
    columns, column = _grid(sheet, panels)
    parts: list[tuple[Page, float, float]] = []
    at, top, bottom = 0, 0.0, 0.0
    for number, panel in enumerate(placed(sheet, panels)):
        span = min(panel.span, columns)
        if at + span > columns:
            at, top = 0, bottom + BELOW
        letter = f"({ascii_lowercase[number]})" if sheet.lettered else ""
        part = Page(points(panel.spec.width), page.figure, letter)
        DRAWINGS[panel.spec.kind].compose(part, panel.spec, panel.content)
        parts.append((part, at * (column + BETWEEN), top))
        page.notes += [f"{letter} {note}".strip() for note in part.notes]
        page.smallest = min(filter(None, (page.smallest, part.smallest)), default=None)
        at, bottom = at + span, max(bottom, top + part.height)
    page.close(bottom)
    for part, x, y in parts:
        part.put(x, y, page.width, page.height)
    return page


def placed(sheet: Sheet, panels: Sequence[Panel]) -> list[Panel]:
    """The panels as they stand on a sheet: as wide as their columns, and over the ranges that they
    share. Errors as of arranged."""
    wide = widths(sheet, panels)
    some = ranges.shared(panels, lambda kind: DRAWINGS[kind].reach) if sheet.shared else panels
    return [
        replace(one, spec=replace(one.spec, width=f"{width:.4f}pt"))
        for one, width in zip(some, wide, strict=True)
    ]


def widths(sheet: Sheet, panels: Sequence[Panel]) -> list[float]:
    """How wide each panel is, in points. Errors as of arranged."""
    columns, column = _grid(sheet, panels)
    spans = (min(one.span, columns) for one in panels)
    return [span * column + (span - 1) * BETWEEN for span in spans]


def _grid(sheet: Sheet, panels: Sequence[Panel]) -> tuple[int, float]:
    """How many columns there are, and how wide each is."""
    columns, width = _columns(sheet, panels), points(sheet.width)
    column = (width - BETWEEN * (columns - 1)) / columns
    if column < NARROWEST:
        raise HgvizError(
            f"{columns} columns have no room in {width / POINTS:.3g} in",
            f"each would be {column / POINTS:.2f} in, and nothing legible fits below "
            f"{NARROWEST / POINTS:.3g} in",
            "Take fewer columns or a wider figure",
        )
    return columns, column


def _columns(sheet: Sheet, panels: Sequence[Panel]) -> int:
    if not panels:
        raise HgvizError("a figure of no panel shows nothing", "", "Give it a panel")
    if len(panels) > len(ascii_lowercase):
        raise HgvizError(
            f"a figure cannot have {len(panels)} panels",
            f"they are named (a) to ({ascii_lowercase[-1]})",
            "Make two figures of it",
        )
    widest = max(one.span for one in panels)
    return max(1, min(sheet.columns, sum(one.span for one in panels)), min(widest, sheet.columns))
