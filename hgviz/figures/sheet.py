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
    number, bottom = 0, -BELOW
    for row in _rows(columns, placed(sheet, panels)):
        top, at = bottom + BELOW, 0
        letters = [f"({one})" * sheet.lettered for one in ascii_lowercase[number:]]
        for part, panel in zip(_row(page, row, letters), row, strict=True):
            parts.append((part, at * (column + BETWEEN), top))
            page.notes += [f"{part.letter} {note}".strip() for note in part.notes]
            page.smallest = min(filter(None, (page.smallest, part.smallest)), default=None)
            at, bottom = at + panel.span, max(bottom, top + part.height)
        number += len(row)
    page.close(bottom)
    for part, x, y in parts:
        part.put(x, y, page.width, page.height)
    return page


def _rows(columns: int, panels: Sequence[Panel]) -> list[list[Panel]]:
    """The panels that stand beside each other, none wider than all columns."""
    rows: list[list[Panel]] = []
    taken = columns
    for panel in panels:
        span = min(panel.span, columns)
        if taken + span > columns:
            rows.append([])
            taken = 0
        rows[-1].append(replace(panel, span=span))
        taken += span
    return rows


def _row(page: Page, row: Sequence[Panel], letters: Sequence[str]) -> list[Page]:
    """Panels beside each other; maps whose labels need less room begin where the others do."""
    parts = [_part(page, one, letter) for one, letter in zip(row, letters, strict=False)]
    begin = max(part.above for part in parts)
    for at, part in enumerate(parts):
        if 0 < part.above < begin:
            part.axes.remove()
            parts[at] = _part(page, row[at], letters[at], begin)
    return parts


def _part(page: Page, panel: Panel, letter: str, above: float = 0.0) -> Page:
    part = Page(points(panel.spec.width), page.figure, letter)
    part.above = above
    DRAWINGS[panel.spec.kind].compose(part, panel.spec, panel.content)
    return part


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
