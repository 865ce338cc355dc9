"""The numbers of a figure, and of all panels of a sheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import ascii_lowercase

from hgviz.core import replace
from hgviz.figures import tables
from hgviz.figures.content import Panel, Sheet
from hgviz.figures.content.charts import Row
from hgviz.figures.paper.sheet import widths
from hgviz.figures.pictures import DRAWINGS


def rows(panel: Panel) -> Iterable[Row]:
    """The numbers of a figure, the names of their columns first. Errors: HgvizError."""
    return DRAWINGS[panel.spec.kind].rows(panel.spec, panel.content)


def rows_of_sheet(sheet: Sheet, panels: Sequence[Panel]) -> Iterable[Row]:
    """The numbers of every panel of a sheet, its letter first."""
    each = [rows(one) for one in _sized(sheet, panels)]
    return tables.beside(list(zip(ascii_lowercase, each, strict=False)))


def _sized(sheet: Sheet, panels: Sequence[Panel]) -> list[Panel]:
    """The panels with the width that each has on its sheet."""
    return [
        replace(one, spec=replace(one.spec, width=f"{width:.4f}pt"))
        for one, width in zip(panels, widths(sheet, panels), strict=True)
    ]
