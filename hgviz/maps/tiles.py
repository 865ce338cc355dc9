"""Reading a map by tiles of a fixed grid, so that a cell has the same bits in every read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats, HgvizError, Interval, Reduce
from hgviz.maps.blas import one_thread
from hgviz.maps.pooling import counts, fold_magnitude, fold_max, fold_sum
from hgviz.maps.pyramid import Pyramid

TILE = 256
TILE_ZOOM = 8  # at this zoom a tile is one cell

Pieces = Callable[[int, int, range, int], Iterator[tuple[int, NDArray[Any] | None]]]
Window = tuple[int, int, int, int]  # top, bottom, left, right, half-open


class Tiled(ABC):
    """The maps of one layer, put together from tiles of TILE x TILE cells on a grid from (0, 0).

    Subclasses give tiles of weights; head numbers are turned into places (0, 1, ..) here.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        heads: tuple[int, ...],
        signed: bool,
        pyramids: Callable[[int], Pyramid] | None = None,
    ) -> None:
        if len(heads) != shape[0]:
            raise ValueError(f"{len(heads)} head numbers for {shape[0]} maps")
        self._shape, self._heads, self._signed = shape, tuple(heads), signed
        self._pyramids = pyramids

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)"""
        return self._shape

    @property
    def heads(self) -> tuple[int, ...]:
        """The head numbers, in stored order."""
        return self._heads

    @property
    def signed(self) -> bool:
        """Whether weights can be negative."""
        return self._signed

    def read(
        self,
        head: int,
        rows: Interval = None,
        columns: Interval = None,
        zoom: int = 0,
        reduce: Reduce = "max",
    ) -> Floats:
        """Weights of a head in cells of 2^zoom x 2^zoom positions, float32 (rows, columns).

        head is the head's number. rows and columns are half-open from 0 (a slice, a range, a pair,
        None for all), widened to multiples of 2^zoom and cut by the matrix. max: the largest value
        of a cell, for signed maps that of largest magnitude; mean: over the cell's part inside the
        matrix, what is masked counting as 0. Raises HgvizError for a head this layer has not.
        """
        place = self.place(head)
        if zoom < 0 or reduce not in ("max", "mean"):
            raise ValueError(f"no such reading: zoom {zoom}, reduce {reduce!r}")
        zoom = min(zoom, max(self.shape[1:]).bit_length())  # from there on all is one cell
        top, bottom = widened(rows, self.shape[1], zoom)
        left, right = widened(columns, self.shape[2], zoom)
        inner = min(zoom, TILE_ZOOM)
        window = (top >> inner, -(-bottom >> inner), left >> inner, -(-right >> inner))
        with one_thread(), np.errstate(invalid="ignore", over="ignore"):
            if reduce == "max":
                cells = self._assembled(self.pooled, place, window, inner, np.float32)
                found = self.fold(cells, zoom - inner)
            else:
                sums = self._assembled(self._summed, place, window, inner, np.float64)
                found = fold_sum(sums, zoom - inner) / counts((bottom - top, right - left), zoom)
                found = found.astype(np.float32) + np.float32(0)
        return found

    def overview(
        self,
        head: int,
        rows: Interval = None,
        columns: Interval = None,
        zoom: int = 0,
        reduce: Reduce = "max",
    ) -> Floats | None:
        """What `read` gives, from levels kept in the capture: no product, however large the map.

        Weights differ by at most 2.8 % (5.6 % where they are signed), those more than 10^5.9 times
        smaller than the largest read as 0 or as that. None where no level is as fine as the zoom.
        """
        place = self.place(head)
        if self._pyramids is None or zoom < 0:
            return None
        zoom = min(zoom, max(self.shape[1:]).bit_length())
        (top, bottom), (left, right) = (
            widened(one, size, zoom)
            for one, size in ((rows, self.shape[1]), (columns, self.shape[2]))
        )
        down, across = (top >> zoom, -(-bottom >> zoom)), (left >> zoom, -(-right >> zoom))
        return self._pyramids(place).read(down, across, zoom, reduce)

    def place(self, head: int) -> int:
        """Where a head number is stored. Raises HgvizError when it is not."""
        if head in self._heads:
            return self._heads.index(head)
        listed = ", ".join(map(str, self._heads)) or "none"
        raise HgvizError(
            f"this layer has no head {head}", f"its heads are {listed}", "Choose one of these"
        )

    @abstractmethod
    def weights(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """Tile (i, j) of the head stored at a place; None where all its cells are zero."""

    def pooled(
        self, place: int, i: int, tiles: range, zoom: int
    ) -> Iterator[tuple[int, NDArray[Any] | None]]:
        """Tiles (i, j) in cells of 2^zoom, zoom <= TILE_ZOOM, each its largest weight: the first j
        of one or more that lie side by side, and their cells, None where one is all zeros. These
        are good until the next ones.
        """
        for j in tiles:
            tile = self.weights(place, i, j)
            yield j, None if tile is None else self.fold(tile, zoom)

    def tiles_in(self, i: int) -> range:
        """The tiles j of block row i outside which there are only zeros."""
        return range(-(-self.shape[2] // TILE))

    def by_softmax(self, place: int) -> bool:
        """Whether the weights of a head are exponentials, of what `logs` gives."""
        return False

    def logs(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """Of a softmax: the logarithms of a tile of weights, -inf where nothing weighs; None where
        all are.
        """
        raise NotImplementedError

    def terms(self, place: int, i: int, j: int) -> NDArray[Any] | None:
        """What the log-sum-exp of rows is taken of in a tile, as logs."""
        raise NotImplementedError

    def fold(self, values: NDArray[Any], zoom: int) -> NDArray[Any]:
        """Largest values, or those of largest magnitude where weights are signed."""
        return fold_magnitude(values, zoom) if self._signed else fold_max(values, zoom)

    def _summed(
        self, place: int, i: int, tiles: range, zoom: int
    ) -> Iterator[tuple[int, NDArray[Any] | None]]:
        for j in tiles:
            tile = self.weights(place, i, j)
            yield j, None if tile is None else fold_sum(tile, zoom)

    def _assembled(
        self, pieces: Pieces, place: int, window: Window, zoom: int, dtype: type[Any]
    ) -> NDArray[Any]:
        """The pieces of all tiles that meet a window, both in cells of 2^zoom."""
        top, bottom, left, right = window
        cells = np.empty((bottom - top, right - left), dtype)
        step = TILE >> zoom
        for i in range(top // step, -(-bottom // step)):
            above, some = i * step - top, self.tiles_in(i)
            band = cells[max(above, 0) : above + step]
            band[:, : max(some.start * step - left, 0)] = 0
            band[:, max(some.stop * step - left, 0) :] = 0
            met = range(max(left // step, some.start), min(-(-right // step), some.stop))
            for j, part in pieces(place, i, met, zoom):
                before = j * step - left
                width = step if part is None else part.shape[1]
                target = band[:, max(before, 0) : before + width]
                if part is None:
                    target[:] = 0
                else:
                    cut = part[max(-above, 0) :, max(-before, 0) :]
                    cut = cut[: target.shape[0], : target.shape[1]]
                    # adding 0 turns -0 into 0; while copying, since a pass of its own is dear
                    np.add(cut, 0, out=target, dtype=dtype, casting="same_kind")
        return cells


def widened(interval: Interval, size: int, zoom: int) -> tuple[int, int]:
    """(start, stop) of an interval, rounded outwards to multiples of 2^zoom and cut at size."""
    if isinstance(interval, tuple):
        interval = slice(*(max(0, end) for end in interval))
    elif isinstance(interval, range):
        interval = slice(interval.start, interval.stop, interval.step)
    start, stop, step = (interval or slice(None)).indices(size)
    if step != 1:
        raise ValueError(f"rows and columns are read one after another, not by steps of {step}")
    if stop <= start:
        return 0, 0
    return start >> zoom << zoom, min(-(-stop >> zoom) << zoom, size)
