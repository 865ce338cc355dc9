"""Maps over slots, laid on the tokens that these are mixed of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Map
from hgviz.maps.cache import Cache
from hgviz.maps.summary import Summary, summarise
from hgviz.maps.tiles import TILE, Tiled

KEPT = 1 << 24  # bytes of rows of the map over slots


class Mixed(Tiled):
    """P F of the maps P (heads, queries, slots) of a layer (Linformer, models.md C): how much of
    the value of each token comes to each query. Signed, and rows need not add up to 1.

    mixture (heads or 1, slots, tokens): F, as in Factors. Cells are summed in float64 from the
    float32 weights of P.
    """

    def __init__(self, whole: Map, mixture: NDArray[Any]) -> None:
        heads, queries, slots = whole.shape
        if mixture.shape[0] not in (1, heads) or mixture.shape[1] != slots:
            raise ValueError(f"a mixture {mixture.shape} is none of maps {whole.shape}")
        super().__init__((heads, queries, mixture.shape[2]), whole.heads, signed=True)
        self.whole, self.mixture = whole, mixture
        self._rows = Cache(KEPT)

    # as of maps that are computed from factors
    summarised, value_norms = False, None

    def summary(self, head: int) -> Summary:
        """Thumbnail, largest weights and entropies of a head."""
        return summarise(self, head)

    def weights(self, place: int, i: int, j: int) -> NDArray[Any]:
        """Tile (i, j) of the head stored at a place."""
        rows, columns = (slice(at * TILE, (at + 1) * TILE) for at in (i, j))

        def read() -> NDArray[Any]:
            return self.whole.read(self.heads[place], rows).astype(np.float64)

        part = self.mixture[place % self.mixture.shape[0], :, columns]
        return self._rows.get((place, i), read) @ np.asarray(part, np.float64)
