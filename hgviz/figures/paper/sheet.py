"""Several figures on one sheet: in columns, row by row, (a) (b) (c)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from string import ascii_lowercase

from hgviz.core import HgvizError, replace
from hgviz.figures.content import Panel, Sheet
from hgviz.figures.forms import number_words
from hgviz.figures.kinds import ranges
from hgviz.figures.paper.page import Page
from hgviz.figures.pictures import DRAWINGS
from hgviz.figures.spec import NARROWEST, POINTS, points

BETWEEN, BELOW = 14.0, 12.0  # columns, rows
Numbered = tuple[int, Panel]  # from 0


def arranged(sheet: Sheet, panels: Sequence[Panel]) -> Page:
    """The page of some panels, each as wide as its columns, those of a row level at the top.

    Errors: HgvizError where there is no panel, more than letters, or no room for a column; what is
    wrong in a panel says which it is.
    """
    page = Page(points(sheet.width))
    columns, column = _grid(sheet, panels)
    parts: list[tuple[Page, float, float]] = []
    bottom = -BELOW
    for row in _rows(columns, placed(sheet, panels)):
        top, at = bottom + BELOW, 0
        for part, (_, panel) in zip(_row(page, sheet, row), row, strict=True):
            parts.append((part, at * (column + BETWEEN), top))
            page.notes += [f"{part.letter} {note}".strip() for note in part.notes]
            page.smallest = min(filter(None, (page.smallest, part.smallest)), default=None)
            at, bottom = at + panel.span, max(bottom, top + part.height)
    page.close(bottom)
    for part, x, y in parts:
        part.put(x, y, page.width, page.height)
    return page


def placed(sheet: Sheet, panels: Sequence[Panel]) -> list[Panel]:
    """The panels as they stand on a sheet: as wide as their columns, and over the ranges that they
    share. Errors as of arranged."""
    wide = widths(sheet, panels)
    if sheet.shared:
        reaches: list[ranges.Reach] = []
        for number, one in enumerate(panels):
            own = one.spec.display.limits is not None  # its weights need not be read
            with _naming(sheet, number):
                reach = ranges.nothing if own else DRAWINGS[one.spec.kind].reach
                reaches.append(reach(one.spec, one.content))
        panels = ranges.shared(panels, reaches)
    return [
        replace(one, spec=replace(one.spec, width=f"{number_words(round(width, 4))}pt"))
        for one, width in zip(panels, wide, strict=True)
    ]


def widths(sheet: Sheet, panels: Sequence[Panel]) -> list[float]:
    """How wide each panel is, in points. Errors as of arranged."""
    columns, column = _grid(sheet, panels)
    spans = (min(one.span, columns) for one in panels)
    return [span * column + (span - 1) * BETWEEN for span in spans]


def _rows(columns: int, panels: Sequence[Panel]) -> list[list[Numbered]]:
    """The panels that stand beside each other, none wider than all columns."""
    rows: list[list[Numbered]] = []
    taken = columns
    for number, panel in enumerate(panels):
        span = min(panel.span, columns)
        if taken + span > columns:
            rows.append([])
            taken = 0
        rows[-1].append((number, replace(panel, span=span)))
        taken += span
    return rows


def _row(page: Page, sheet: Sheet, row: Sequence[Numbered]) -> list[Page]:
    """Panels beside each other; maps whose labels need less room begin where the others do."""
    parts = [_part(page, sheet, one) for one in row]
    begin = max(part.above for part in parts)
    for at, part in enumerate(parts):
        if 0 < part.above < begin:
            part.axes.remove()
            parts[at] = _part(page, sheet, row[at], begin)
    return parts


def _part(page: Page, sheet: Sheet, numbered: Numbered, above: float = 0.0) -> Page:
    number, panel = numbered
    letter = f"({ascii_lowercase[number]})" if sheet.lettered else ""
    part = Page(points(panel.spec.width), page.figure, letter)
    part.above = above
    with _naming(sheet, number):
        DRAWINGS[panel.spec.kind].compose(part, panel.spec, panel.content)
    return part


@contextmanager
def _naming(sheet: Sheet, number: int) -> Iterator[None]:
    """Say in errors which panel they are of."""
    try:
        yield
    except HgvizError as error:
        what = f"Panel {number + 1} of {sheet.file or 'the sheet'}: {error.what}"
        raise HgvizError(what, error.why, error.do, error.details) from error


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
