"""The cursor of a comparison: where it stands in A, B and A − B, and what each weighs there."""

from __future__ import annotations

import numpy as np

from hgviz.gui import theme
from hgviz.gui.compare.compared import Compared
from hgviz.gui.views import words
from hgviz.gui.views.crosshair import Cross
from hgviz.gui.views.sight import seen
from hgviz.gui.views.tiles import Source

NAMES = ("A", "B")


def crosses(compared: Compared, row: int | None, column: int | None) -> tuple[Cross, ...]:
    """The cross hair of each of the three: a row as far as that one sees."""
    return tuple(Cross(row, column, _ends(one, row)) for one in compared.sources)


def cards(compared: Compared, row: int | None, column: int | None) -> tuple[str, str, str]:
    """HTML: what A, B and A − B weigh at a cell; "" where the row is still being read."""
    if row is None or column is None or row not in compared.rows:
        return "", "", ""
    a, b = (side[column] for side in compared.rows[row])
    edges = compared.meeting.rows, compared.meeting.columns
    there = [
        bool(one.there[row] and other.there[column])
        for one, other in ((edges[0].a, edges[1].a), (edges[0].b, edges[1].b))
    ]
    said = []
    for name, weight, source, here in zip(NAMES, (a, b), compared.sources[:2], there, strict=True):
        if not here:
            said.append(_card("–", f"not in {name}"))
        elif not _seen(source, row, column):
            said.append(_card("–", "not seen"))
        else:
            write = words.with_sign if source.signed else words.weight
            said.append(_card(write(float(weight), 3)))
    if all(there) and _seen(compared.sources[2], row, column):
        least = _card(words.with_sign(float(a - b), 3))
    else:
        least = _card("–", "nothing to compare")
    return said[0], said[1], least


def _ends(source: Source, row: int | None) -> tuple[int, int] | None:
    if row is None:
        return None
    cells = np.arange(source.shape[1])
    found = seen(source.rule, np.array([[row, row + 1]]), np.stack([cells, cells + 1], 1))
    inside = np.flatnonzero(found)
    return (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 0)


def _seen(source: Source, row: int, column: int) -> bool:
    return bool(seen(source.rule, np.array([[row, row + 1]]), np.array([[column, column + 1]])))


def _card(value: str, why: str = "") -> str:
    big = f"font-size:{theme.font(1.15).pixelSize()}px;font-weight:600"
    note = f'&nbsp; <span style="color:{theme.current().secondary.name()}">{why}</span>'
    return f'<span style="{big}">{value.replace("<", "&lt;")}</span>{note if why else ""}'
