"""What goes with a figure, in its file and beside it: its numbers, and what it shows in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from string import ascii_lowercase

from hgviz.core import replace
from hgviz.figures.content import Panel, Sheet
from hgviz.figures.content.charts import Row
from hgviz.figures.files import export
from hgviz.figures.paper.sheet import widths
from hgviz.figures.pictures import DRAWINGS
from hgviz.figures.spec import TABLE, WORDS, name_beside
from hgviz.figures.words import spoken, tables
from hgviz.language import counted


def words(panel: Panel) -> str:
    """What a figure shows, in a few sentences. Errors: HgvizError, as drawing it."""
    found = DRAWINGS[panel.spec.kind].words(panel.spec, panel.content)
    title = spoken.visible(panel.spec.title or "", 2 * spoken.NAME)
    return spoken.joined([title, found])


def words_of_sheet(sheet: Sheet, panels: Sequence[Panel]) -> str:
    """What every panel of a sheet shows."""
    whole = f"{counted(len(panels), 'panel')}."
    each = [
        f"({letter}) {words(one)}"
        for letter, one in zip(ascii_lowercase, _sized(sheet, panels), strict=False)
    ]
    return " ".join([whole, *each])


def rows(panel: Panel) -> Iterable[Row]:
    """The numbers of a figure, the names of their columns first. Errors: HgvizError."""
    return DRAWINGS[panel.spec.kind].rows(panel.spec, panel.content)


def rows_of_sheet(sheet: Sheet, panels: Sequence[Panel]) -> Iterable[Row]:
    """The numbers of every panel of a sheet, its letter first."""
    each = [rows(one) for one in _sized(sheet, panels)]
    return tables.beside(list(zip(ascii_lowercase, each, strict=False)))


def files(
    path: Path, numbers: Iterable[Row] | None = None, said: str | None = None
) -> dict[str, bytes]:
    """The files beside a figure: name -> content."""
    found: dict[str, bytes] = {}
    if numbers is not None:
        found[name_beside(path, TABLE)] = export.table(numbers)
    if said is not None:
        found[name_beside(path, WORDS)] = f"{said}\n".encode()
    return found


def _sized(sheet: Sheet, panels: Sequence[Panel]) -> list[Panel]:
    """The panels with the width that each has on its sheet."""
    return [
        replace(one, spec=replace(one.spec, width=f"{width:.4f}pt"))
        for one, width in zip(panels, widths(sheet, panels), strict=True)
    ]
