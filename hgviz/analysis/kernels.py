"""How much self-attention is a convolution: one kernel over distance, whatever the text says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hgviz.analysis.tally import Array
from hgviz.analysis.tokens import Bools, Layout
from hgviz.core import Map

CORNER = 64  # rows and keys whose cells are compared between texts
LIKE, NARROW = 0.9, 1.5  # a head is conv-like above this score, up to this width in positions
_NOTHING = 1e-12  # of what a row holds: rows as even as this tell nothing apart


class Kernel(NamedTuple):
    """What a head's maps are as a convolution (Cordonnier et al. 2020).

    score: 1 - ||A - T||^2 / ||A - U||^2, averaged over the texts: A the sizes of the weights, their
    rows divided by their sums; T the kernel at every row, what it may see normalised to 1; U even
    rows; NaN where all rows are even. centre and width: the mean and the standard deviation of the
    kernel, in positions, -1 is the one before. variance: of a cell between texts, averaged over the
    cells of the first 64 rows and keys that at least two texts have; NaN of one text.
    """

    score: float
    centre: float
    width: float
    variance: float

    @property
    def like(self) -> bool:
        """Whether the head may be called convolution-like."""
        return self.score > LIKE and self.width <= NARROW


class Kernels:
    """The kernels of the heads of a layer of self-attention, of one text or of many.

    Two passes over the same texts: `add` all of them, then `compare` all of them. Each holds one
    block of rows of one head.
    """

    def __init__(self, heads: int) -> None:
        self._mass: Array = np.zeros((heads, 1))  # by offset, from -reach to reach
        self._pairs: Array = np.zeros(1)
        self._scores: list[Array] = []
        self._corner = np.zeros((2, heads, CORNER, CORNER))  # sums of A and of A^2
        self._met = np.zeros((CORNER, CORNER))

    @property
    def reach(self) -> int:
        """How far apart two positions of the longest text are."""
        return len(self._pairs) // 2

    def add(self, known: Map, layout: Layout, blocks: list[slice]) -> Iterator[float]:
        """The first pass: what every offset gets. Yields the share of it that is done."""
        self._widen(known.shape[1] - 1)
        for number, rows in enumerate(blocks):
            yield number / len(blocks)
            columns, seen = _seen(layout, rows)
            low = self.reach - rows.stop + 1  # where the first offset of a block is kept
            high = low + columns + len(seen) - 1
            self._pairs[low:high] += _diagonals(seen.astype(float))
            inner = seen[: max(0, CORNER - rows.start), :CORNER]  # what of it lies in the corner
            last, wide = rows.start + len(inner), inner.shape[1]
            corner = np.s_[rows.start : last, :wide]
            if len(inner):
                self._met[corner] += inner
            for head, sizes in enumerate(_even_sums(known, rows, columns, seen)):
                self._mass[head, low:high] += _diagonals(sizes)
                for power in (1, 2) if len(inner) else ():
                    self._corner[power - 1, head][corner] += sizes[: len(inner), :wide] ** power

    def compare(self, known: Map, layout: Layout, blocks: list[slice]) -> Iterator[float]:
        """The second pass: how far the maps are from the kernel of all texts."""
        kernels = self._kernels()
        apart, uneven, whole = np.zeros((3, len(kernels)))
        for number, rows in enumerate(blocks):
            yield number / len(blocks)
            columns, seen = _seen(layout, rows)
            count = seen.sum(1)
            even = np.divide(1.0, count, out=np.zeros(len(seen)), where=count > 0)
            for head, sizes in enumerate(_even_sums(known, rows, columns, seen)):
                wanted = np.where(seen, _along(kernels[head], rows, columns), 0.0)
                total = wanted.sum(1)
                wanted /= np.where(total > 0, total, 1.0)[:, None]
                there = sizes.any(1)  # a row without weight is no row
                apart[head] += np.square(sizes - wanted)[there].sum()
                uneven[head] += np.square(sizes - even[:, None] * seen)[there].sum()
                whole[head] += np.square(sizes).sum()
        score = np.full(len(kernels), np.nan)
        np.divide(apart, uneven, out=score, where=uneven > _NOTHING * whole)
        self._scores.append(1 - score)

    def found(self) -> list[Kernel]:
        """The kernel of each head."""
        offsets = np.arange(-self.reach, self.reach + 1)
        met = self._met >= 2
        out = []
        for head, kernel in enumerate(self._kernels()):
            total = kernel.sum()
            scores = np.array([one[head] for one in self._scores])
            scores = scores[~np.isnan(scores)]
            if not total > 0 or not len(scores):
                out.append(Kernel(*[float("nan")] * 4))
                continue
            centre = float(kernel @ offsets / total)
            width = float(np.sqrt(kernel @ (offsets - centre) ** 2 / total))
            mean, square = (one[head][met] / self._met[met] for one in self._corner)
            varies = float(np.maximum(square - mean**2, 0).mean()) if met.any() else float("nan")
            out.append(Kernel(float(scores.mean()), centre, width, varies))
        return out

    def _kernels(self) -> Array:
        """(heads, offsets): the mean weight at each offset, over the pairs that are seen."""
        found: Array = np.zeros(self._mass.shape)
        return np.divide(self._mass, self._pairs, out=found, where=self._pairs > 0)

    def _widen(self, reach: int) -> None:
        more = reach - self.reach
        if more > 0:
            self._pairs = np.pad(self._pairs, more)
            self._mass = np.pad(self._mass, ((0, 0), (more, more)))


def _seen(layout: Layout, rows: slice) -> tuple[int, Bools]:
    """How many columns a block of rows sees at most, and which cells (rows, columns) they are."""
    columns = min(rows.stop, len(layout.key)) if layout.causal else len(layout.key)
    seen = layout.block(rows, slice(0, columns)).seen & layout.real[rows][:, None]
    return columns, seen


def _even_sums(known: Map, rows: slice, columns: int, seen: Bools) -> Iterator[Array]:
    """For each head the sizes of the weights that are seen, each row divided by its sum."""
    for head in known.heads:
        sizes = np.abs(known.read(head, rows, slice(0, columns)).astype(float)) * seen
        total = sizes.sum(1)
        yield sizes / np.where(total > 0, total, 1.0)[:, None]


def _diagonals(values: Array) -> Array:
    """(rows + columns - 1,): the sums along the diagonals, from the lower left corner on."""
    rows, columns = values.shape
    wide = np.zeros((rows, rows + columns))
    wide[:, :columns] = values[::-1]
    # read with rows shorter by one, each row moves one place to the right
    skewed = wide.ravel()[: rows * (rows + columns - 1)].reshape(rows, rows + columns - 1)
    found: Array = skewed.sum(0)
    return found


def _along(kernel: Array, rows: slice, columns: int) -> Array:
    """(rows, columns): the kernel at the offset of every cell."""
    reach = len(kernel) // 2
    windows = np.lib.stride_tricks.sliding_window_view(kernel, columns)
    found: Array = windows[reach - rows.stop + 1 : reach - rows.start + 1][::-1]
    return found
