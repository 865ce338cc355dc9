"""Resampling within windows, drawn as a band: one row per window, its places across."""

from __future__ import annotations

import numpy as np

from hgviz.core import Floats, Interval, Map, Reduce
from hgviz.maps import pool

ROWS = 64  # windows read at once: what lies off the diagonal is read for nothing


class Band:
    """The weights (windows, places) of a map whose other weights are all zero.

    down: row g of the map has its weights in columns g*window up to (g + 1)*window. Else (going
    up) rows g*window up to (g + 1)*window have theirs in column g.
    """

    def __init__(self, whole: Map, window: int, down: bool) -> None:
        self.whole, self.window, self.down = whole, window, down

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, windows, places)"""
        heads, queries, keys = self.whole.shape
        return heads, queries if self.down else keys, self.window

    @property
    def heads(self) -> tuple[int, ...]:
        """The head numbers, in stored order."""
        return self.whole.heads

    @property
    def signed(self) -> bool:
        """Whether weights can be negative."""
        return self.whole.signed

    def cell(self, row: int, column: int) -> tuple[int, int]:
        """The cell of the whole map that a cell of the band shows."""
        place = row * self.window + column
        return (row, place) if self.down else (place, row)

    def read(
        self,
        head: int,
        rows: Interval = None,
        columns: Interval = None,
        zoom: int = 0,
        reduce: Reduce = "max",
    ) -> Floats:
        """float32 (rows, columns) in cells of 2^zoom; rows and columns are pairs from 0."""
        first, last = _pair(rows, self.shape[1])
        start, end = _pair(columns, self.window)
        out = np.zeros((last - first, self.window), np.float32)
        for at in range(first, last, ROWS):
            stop = min(at + ROWS, last)
            out[at - first : stop - first] = self._read(head, at, stop)
        return pool(out[:, start:end], zoom, reduce, self.signed)

    def _read(self, head: int, first: int, last: int) -> Floats:
        wide = (first * self.window, last * self.window)
        narrow = (first, last)
        rows, columns = (narrow, wide) if self.down else (wide, narrow)
        block = self.whole.read(head, rows=rows, columns=columns)
        if not self.down:
            block = block.T
        out = np.zeros((last - first, self.window), np.float32)
        for at, row in enumerate(block):
            part = row[at * self.window : (at + 1) * self.window]
            out[at, : len(part)] = part
        return out


def _pair(interval: Interval, size: int) -> tuple[int, int]:
    if interval is None:
        return 0, size
    if isinstance(interval, tuple):
        return interval
    first, last, _ = slice(interval.start, interval.stop).indices(size)
    return first, last
