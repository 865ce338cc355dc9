"""What one map weighs more than another, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats, Map
from hgviz.maps.tiles import TILE, Tiled

Bools = NDArray[np.bool_]


class Difference(Tiled):
    """A − B of two layers whose maps have as many rows and columns: signed, whatever they are.

    heads: for each head of A the one of B that is taken from it; A's numbers name the differences.
    A cell is the difference of the two float32 weights that A and B give for it. A cell of 2^zoom x
    2^zoom is the largest of these by magnitude, of two equal ones the positive: every weight is
    read for it, since the largest of A and of B may lie in different places. both: which rows and
    which columns stand for something in A and in B, None for all; elsewhere there is no difference.
    """

    def __init__(
        self, a: Map, b: Map, heads: Mapping[int, int], both: tuple[Bools, Bools] | None = None
    ) -> None:
        if a.shape[1:] != b.shape[1:]:
            raise ValueError(f"no cell of {a.shape[1:]} is the same as one of {b.shape[1:]}")
        super().__init__((len(heads), *a.shape[1:]), tuple(heads), signed=True)
        self.a, self.b, self._pairs, self._both = a, b, tuple(heads.items()), both

    def weights(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """Tile (i, j) of A less that of B."""
        rows, columns = ((at * TILE, (at + 1) * TILE) for at in (i, j))
        head, other = self._pairs[place]
        a, b = self.a.read(head, rows, columns), self.b.read(other, rows, columns)
        return self.between(a, b, rows, columns)

    def between(
        self, a: Floats, b: Floats, rows: tuple[int, int], columns: tuple[int, int]
    ) -> Floats:
        """The difference of two blocks of weights; 0 where only one side has anything."""
        found: Floats = a - b
        if self._both is not None:
            down, across = (
                one[slice(*ends)] for one, ends in zip(self._both, (rows, columns), strict=True)
            )
            found[~down] = 0
            found[:, ~across] = 0
        return found
