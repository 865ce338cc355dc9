"""Maps stored as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.maps.pyramid import Pyramid
from hgviz.maps.rule import plain
from hgviz.maps.summary import Summary, summarise
from hgviz.maps.tiles import TILE, Tiled


class DenseMap(Tiled):
    """Weights (heads, queries, keys) that cannot be computed from queries and keys.

    array may be anything that is sliced like an array, bfloat16 as its bits in uint16; causal:
    row i has no weights right of column i, and what is stored there is not read. value_norms and
    mixture as in Factors.
    """

    def __init__(
        self,
        array: NDArray[Any],
        heads: tuple[int, ...],
        signed: bool = False,
        causal: bool = False,
        stored: Callable[[int], Summary] | None = None,
        pyramids: Callable[[int], Pyramid] | None = None,
        value_norms: NDArray[Any] | None = None,
        mixture: NDArray[Any] | None = None,
    ) -> None:
        heads_, queries, keys = array.shape
        super().__init__((heads_, queries, keys), heads, signed, pyramids)
        self.array, self.causal, self._stored = array, causal, stored
        self.value_norms, self.mixture = value_norms, mixture

    @property
    def summarised(self) -> bool:
        """Whether summaries are kept, so that asking for one computes nothing."""
        return self._stored is not None

    def summary(self, head: int) -> Summary:
        """Thumbnail, largest weights and entropies of a head; computed unless stored."""
        return self._stored(self.place(head)) if self._stored else summarise(self, head)

    def weights(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """Tile (i, j) of the head stored at a place; None above the diagonal of a causal map."""
        if self.causal and j > i:
            return None
        rows, columns = (slice(at * TILE, (at + 1) * TILE) for at in (i, j))
        tile = plain(self.array[place, rows, columns], np.float32)
        return np.tril(tile) if self.causal and i == j else tile
