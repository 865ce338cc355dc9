"""The cursor of a comparison: where it stands in A, B and A − B, and what each weighs there."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from typing import TYPE_CHECKING, cast

import numpy as np

from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.opened import Compared
from hgviz.gui.tiles import Source
from hgviz.gui.views import words
from hgviz.gui.views.crosshair import Cross
from hgviz.gui.views.sight import seen

if TYPE_CHECKING:
    from hgviz.maps import Difference

NAMES = ("A", "B")
CARD = Template('<span style="$big">$value</span>$note')
NOTE = Template('&nbsp; <span style="color:$colour">$why</span>')


def crosses(compared: Compared, row: int | None, column: int | None) -> tuple[Cross, ...]:
    """The cross hair of each of the three: a row as far as that one sees."""
    return tuple(Cross(row, column, _ends(one, row)) for one in compared.sources)


@dataclass(frozen=True, slots=True)
class Read:
    """What one of the three weighs at a cell: value "–" where there is nothing, why says so; both
    "" where no cell is looked at."""

    value: str = ""
    why: str = ""

    @property
    def card(self) -> str:
        """HTML for the card beside the cell."""
        if not self.value:
            return ""
        big = f"font-size:{theme.font(1.15).pixelSize()}px;font-weight:600"
        colour = theme.current().secondary.name()
        note = NOTE.substitute(colour=colour, why=self.why) if self.why else ""
        return CARD.substitute(big=big, value=self.value.replace("<", "&lt;"), note=note)


def read(compared: Compared, row: int | None, column: int | None) -> tuple[Read, Read, Read]:
    """What A, B and A − B weigh at a cell; nothing of what has no map, and where the row is still
    being read."""
    blank = Read()
    if row is None or column is None or row not in compared.rows:
        return blank, blank, blank
    a, b = (side[column] for side in compared.rows[row])
    edges = compared.meeting.rows, compared.meeting.columns
    there = [
        bool(one.there[row] and other.there[column])
        for one, other in ((edges[0].a, edges[1].a), (edges[0].b, edges[1].b))
    ]
    found = []
    for name, weight, source, here in zip(NAMES, (a, b), compared.sources[:2], there, strict=True):
        if not here:
            found.append(Read("–", tr("not in {side}", side=name)))
        elif not _seen(source, row, column):
            found.append(Read("–", tr("not seen")))
        else:
            write = words.with_sign if source.signed else words.weight
            found.append(Read(write(float(weight), 3)))
    if all(there) and _seen(compared.sources[2], row, column):
        less = cast("Difference", compared.sources[2].map).subtract(a, b)
        found.append(Read(words.with_sign(float(less), 3)))
    else:
        found.append(Read("–", tr("nothing to compare")))
    shown = [blank if lack else one for one, lack in zip(found[1:], compared.lacks, strict=True)]
    return found[0], shown[0], shown[1]


def _ends(source: Source, row: int | None) -> tuple[int, int] | None:
    if row is None:
        return None
    cells = np.arange(source.shape[1])
    found = seen(source.rule, np.array([[row, row + 1]]), np.stack([cells, cells + 1], 1))
    inside = np.flatnonzero(found)
    return (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 0)


def _seen(source: Source, row: int, column: int) -> bool:
    return bool(seen(source.rule, np.array([[row, row + 1]]), np.array([[column, column + 1]])))
