"""The heads of a layer made one map, read in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hgviz.analysis.operators import Array
from hgviz.core import Capture, Layer
from hgviz.recipe import Recipe

HELD = 1 << 25  # cells of fused maps that one composition keeps, 256 MB
ROWS = 256
LARGER = {"max": np.maximum, "min": np.minimum}


class Fused:
    """What the heads of a layer that count look at together, read in blocks of rows.

    Rows of |A| are divided by their sums: that changes nothing but rounding where a row is a
    distribution already, and makes signed weights shares of their row. A signed recipe takes the
    weights as they are.
    """

    def __init__(
        self, capture: Capture, layer: Layer, held: bool, recipe: Recipe | None = None
    ) -> None:
        found = capture.maps[layer.index]
        assert found is not None
        self.map, self.recipe = found, recipe or Recipe()
        on = [h for h in found.heads if (layer.index, h) not in capture.off]
        named = [h for h in on if (layer.index, h) in self.recipe.heads]
        self.heads = named or on
        self.cross = layer.role == "cross"
        self.held: list[Array] | None = list(self._read()) if held else None

    def _read(self) -> Iterator[Array]:
        queries = self.map.shape[1]
        for start in range(0, queries, ROWS):
            yield self._block(start, min(start + ROWS, queries), self.map.shape[2])

    def _block(self, start: int, stop: int, keys: int) -> Array:
        """Rows start..stop of what the heads are fused to, columns up to keys."""
        blocks = (self.map.read(head, (start, stop), (0, keys)) for head in self.heads)
        if self.recipe.signed:
            whole = np.zeros((stop - start, keys))
            for block in blocks:
                whole += block
            return whole / len(self.heads)
        even = (_normal(block) for block in blocks)
        whole = next(even)
        larger = LARGER.get(self.recipe.fuse)
        for block in even:
            whole = whole + block if larger is None else larger(whole, block)
        return whole / len(self.heads) if larger is None else _normal(whole)

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        for number, block in enumerate(self.held if self.held is not None else self._read()):
            yield slice(number * ROWS, number * ROWS + len(block)), block

    def right(self, values: Array) -> Array:
        """A v, (keys,) -> (queries,)"""
        return np.concatenate([block @ values for _, block in self._blocks()])

    def left(self, rows: Array) -> Array:
        """X A, (r, queries) -> (r, keys)"""
        out = np.zeros((len(rows), self.map.shape[2]))
        for where, block in self._blocks():
            if rows[:, where].any():
                out += rows[:, where] @ block
        return out

    def corner(self, queries: int, keys: int) -> Array:
        """The first rows and columns, (queries, keys); zeros beyond what there is."""
        _, rows, columns = self.map.shape
        out = np.zeros((queries, keys))
        rows, columns = min(queries, rows), min(keys, columns)
        for start in range(0, rows, ROWS):
            stop = min(start + ROWS, rows)
            out[start:stop, :columns] = self._block(start, stop, columns)
        return out


def inverse(sums: Array) -> Array:
    """1 / sum, 0 where a row has no mass: zero rows stay zero."""
    return np.divide(1.0, sums, out=np.zeros(sums.shape), where=sums > 0)


def _normal(weights: Array) -> Array:
    size = np.abs(weights, dtype=np.float64)
    return size * inverse(size.sum(axis=1))[:, None]
