"""What one map weighs more than another, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Map
from hgviz.maps.tiles import TILE, Tiled


class Difference(Tiled):
    """A − B of two layers whose maps have as many rows and columns: signed, whatever they are.

    heads: for each head of A the one of B that is taken from it; A's numbers name the differences.
    A cell is the difference of the two float32 weights that A and B give for it. A cell of 2^zoom x
    2^zoom is the largest of these by magnitude, of two equal ones the positive: every weight is
    read for it, since the largest of A and of B may lie in different places.
    """

    def __init__(self, a: Map, b: Map, heads: Mapping[int, int]) -> None:
        if a.shape[1:] != b.shape[1:]:
            raise ValueError(f"no cell of {a.shape[1:]} is the same as one of {b.shape[1:]}")
        super().__init__((len(heads), *a.shape[1:]), tuple(heads), signed=True)
        self.a, self.b, self._pairs = a, b, tuple(heads.items())

    def weights(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """Tile (i, j) of A less that of B."""
        rows, columns = ((at * TILE, (at + 1) * TILE) for at in (i, j))
        head, other = self._pairs[place]
        found: NDArray[np.float32] = self.a.read(head, rows, columns)
        return found - self.b.read(other, rows, columns)
