"""How alike the heads of a level are: the Jensen-Shannon distance of their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hgviz.analysis.differences import distance_of, divergence
from hgviz.analysis.tally import Array
from hgviz.analysis.tokens import Layout
from hgviz.core import HeadId, Map

ROWS = 32  # of a text, spread evenly over it
_HELD = 1 << 22  # weights that one head is compared with at a time


class Likeness:
    """Distances between all heads of some layers whose maps have the same rows and columns.

    The distance of two heads is that of hgviz compare: 0 for the same rows, 1 for rows that share
    no key; of the sizes of their weights, every row divided by its sum, the mean over at most so
    many rows of each text; rows counts them all.
    """

    def __init__(self, heads: Sequence[HeadId], most: int = ROWS) -> None:
        self.heads, self.rows, self._most = tuple(heads), 0, most
        self._total = np.zeros((len(heads), len(heads)))
        self._rows = np.zeros_like(self._total)

    def add(self, maps: Sequence[Map], layout: Layout) -> None:
        """Add a text: the maps of the layers, in the order of the heads, and how they lie."""
        for _ in self.steps(maps, layout):
            pass

    def steps(self, maps: Sequence[Map], layout: Layout) -> Iterator[float]:
        """The same by blocks of rows; yields the share that is done before each."""
        real = np.flatnonzero(layout.real)
        if not len(real):
            return
        some = np.unique(real[np.linspace(0, len(real) - 1, self._most).round().astype(int)])
        self.rows += len(some)
        each = max(ROWS, _HELD // max(1, len(self.heads) * maps[0].shape[2]))
        for start in range(0, len(some), each):
            yield start / len(some)
            self._compare(maps, some[start : start + each])

    def _compare(self, maps: Sequence[Map], rows: Array) -> None:
        chosen = np.stack([_rows_of(one, head, rows) for one in maps for head in one.heads])
        chosen = np.abs(chosen, dtype=float)
        total = chosen.sum(2)
        chosen /= np.where(total > 0, total, 1.0)[..., None]
        step = max(1, _HELD // max(1, chosen[0].size))
        for one in range(len(chosen) - 1):
            for start in range(one + 1, len(chosen), step):
                others = slice(start, min(start + step, len(chosen)))
                apart = distance_of(divergence(chosen[one][None], chosen[others]))
                both = (total[one] > 0) & (total[others] > 0)
                self._total[one, others] += (apart * both).sum(1)
                self._rows[one, others] += both.sum(1)

    def distances(self) -> Array:
        """(heads, heads): the mean distance of each two, 0 on the diagonal; NaN where no row of
        both has weight."""
        total, rows = self._total + self._total.T, self._rows + self._rows.T
        found: Array = np.full(total.shape, np.nan)
        np.divide(total, rows, out=found, where=rows > 0)
        np.fill_diagonal(found, 0.0)
        return found

    def nearest(self) -> dict[HeadId, tuple[HeadId, float]]:
        """For each head the one most like it, the earliest of several, and their distance."""
        found = self.distances()
        np.fill_diagonal(found, np.nan)
        return {
            head: (self.heads[int(np.nanargmin(row))], float(np.nanmin(row)))
            for head, row in zip(self.heads, found, strict=True)
            if not np.isnan(row).all()
        }


def _rows_of(known: Map, head: int, rows: Array) -> Array:
    """(rows, keys): some rows of a head, read block by block where they lie far apart."""
    gaps = np.flatnonzero(np.diff(rows) > 1) + 1
    parts = np.split(rows, gaps)
    return np.concatenate([known.read(head, (int(one[0]), int(one[-1]) + 1)) for one in parts])
