"""The heads of a layer made one map, read in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hgviz.analysis.operators import Array
from hgviz.core import Capture, Layer, RolloutOptions, progress
from hgviz.maps import SlotMap, Tiled

HELD = 1 << 25  # cells of fused maps that one composition keeps, 256 MB
ROWS = 256
ENDS = 64  # values at each end of a vector that may differ from all the others
DOING = "composing all maps"
LARGER = {"max": np.maximum, "min": np.minimum}


class Fused:
    """What the heads of a layer that count look at together, read in blocks of rows.

    Rows of |A| are divided by their sums: that changes nothing but rounding where a row is a
    distribution already, and makes signed weights shares of their row. A signed recipe takes the
    weights as they are.
    """

    def __init__(
        self, capture: Capture, layer: Layer, recipe: RolloutOptions | None = None
    ) -> None:
        found = capture.maps[layer.index]
        assert found is not None
        self.map, self.recipe = found, recipe or RolloutOptions()
        on = [h for h in found.heads if (layer.index, h) not in capture.off]
        named = [h for h in on if (layer.index, h) in self.recipe.heads]
        self.heads = named or on
        self.index, self.cross = layer.index, layer.role == "cross"
        # no row looks right of itself
        self.causal = layer.causal and layer.role == "self"
        self.even = self._even(capture, layer)
        self.held: list[Array] | None = None

    @property
    def blocks(self) -> int:
        """How many blocks of rows there are."""
        return -(-self.map.shape[1] // ROWS)

    def hold(self) -> None:
        """Keep all of it."""
        held = []
        for block in self._read():
            held.append(block)
            progress(0, 1, DOING)
        self.held = held

    def right(self, values: Array) -> Array:
        """A v, (keys,) -> (queries,)"""
        few = self._few(values)
        if few is not None:
            return self._almost_even(values, *few)
        out = np.zeros(self.map.shape[1])
        for where, block in self._blocks():
            out[where] = block @ values[: block.shape[1]]
            progress(0, 1, DOING)
        return out

    def left(self, rows: Array) -> Array:
        """X A, (r, queries) -> (r, keys)"""
        out = np.zeros((len(rows), self.map.shape[2]))
        wanted = np.abs(rows).sum(axis=0) > 0
        for number in range(self.blocks):
            where = slice(number * ROWS, min((number + 1) * ROWS, self.map.shape[1]))
            if wanted[where].any():
                block = self._at(number)
                out[:, : block.shape[1]] += rows[:, where] @ block
                progress(0, 1, DOING)
        return out

    # --- blocks of rows ---------------------------------------------------------------------------

    def _read(self) -> Iterator[Array]:
        return (self._of_rows(number) for number in range(self.blocks))

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        for number in range(self.blocks):
            block = self._at(number)
            yield slice(number * ROWS, number * ROWS + len(block)), block

    def _at(self, number: int) -> Array:
        return self.held[number] if self.held is not None else self._of_rows(number)

    def _of_rows(self, number: int) -> Array:
        start, stop = number * ROWS, min((number + 1) * ROWS, self.map.shape[1])
        keys = self.map.shape[2]
        return self._block(start, stop, min(stop, keys) if self.causal else keys)

    def _block(self, start: int, stop: int, keys: int) -> Array:
        """Rows start..stop of what the heads are fused to, columns up to keys."""
        blocks = (self.map.read(head, (start, stop), (0, keys)) for head in self.heads)
        larger = LARGER.get(self.recipe.fuse)
        if self.recipe.signed or self.even:
            whole = np.zeros((stop - start, keys))
            for block in blocks:
                whole += block
            return whole / len(self.heads) if self.recipe.signed else _normal(whole)
        normal = (_normal(block) for block in blocks)
        whole = next(normal)
        for block in normal:
            whole = whole + block if larger is None else larger(whole, block)
        return whole / len(self.heads) if larger is None else _normal(whole)

    # --- rows that are known to add up to 1 -------------------------------------------------------

    def _even(self, capture: Capture, layer: Layer) -> bool:
        """Whether rows are distributions to rounding, so that the mean of heads is one, too."""
        kinds = dict(zip(layer.heads, layer.activations, strict=False))
        plain = all(kinds.get(head) == "softmax" for head in self.heads)
        plain = plain and not isinstance(self.map, SlotMap)
        return plain and not self.recipe.signed and self.recipe.fuse == "mean" and self._full(
            capture, layer
        )  # fmt: skip

    def _full(self, capture: Capture, layer: Layer) -> bool:
        """Whether every row has keys: of a whole text that nothing is masked in."""
        prompts = capture.query_prompt(layer.index), capture.key_prompt(layer.index)
        masks = [one.attention_mask for one in prompts]
        whole = all(mask is None or bool(np.all(mask)) for mask in masks)
        return whole and isinstance(self.map, Tiled) and min(self.map.shape[1:]) > 0

    def _few(self, values: Array) -> tuple[int, int] | None:
        """How many values at both ends differ from all between; None for any others."""
        if not self.even or self.held is not None or len(values) < 2 * ENDS + 2:
            return None
        other = np.flatnonzero(values != values[len(values) // 2])
        first = int(other[other < ENDS].max(initial=-1)) + 1
        last = len(values) - int(other[other >= len(values) - ENDS].min(initial=len(values)))
        inside = ((other >= first) & (other < len(values) - last)).any()
        return None if inside else (first, last)

    def _almost_even(self, values: Array, first: int, last: int) -> Array:
        """A v where all of v is alike but for some at its ends: only there A is read."""
        alike, keys = values[len(values) // 2], len(values)
        out = np.full(self.map.shape[1], float(alike))
        for start, stop in ((0, first), (keys - last, keys)):
            for head in self.heads if start < stop else ():
                less = (alike - values[start:stop]) / len(self.heads)
                out -= self.map.read(head, None, (start, stop)).astype(np.float64) @ less
                progress(0, 1, DOING)
        return out


def inverse(sums: Array) -> Array:
    """1 / sum, 0 where a row has no mass: zero rows stay zero."""
    return np.divide(1.0, sums, out=np.zeros(sums.shape), where=sums > 0)


def _normal(weights: Array) -> Array:
    size = np.abs(weights, dtype=np.float64)
    return size * inverse(size.sum(axis=1))[:, None]
