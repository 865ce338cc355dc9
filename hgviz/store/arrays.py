"""Arrays that stay in the file: sliced like arrays, checked when they are first touched."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hgviz.store.guard import Refused, numbers, reading
from hgviz.store.packing import Packed

RUN = 256  # rows that have a checksum of their own, those of a tile


class Stored:
    """A dataset (heads, ...) that is read where it is sliced. Errors: HgvizError.

    check is called with the head's place before anything of it is handed out.
    """

    def __init__(
        self, dataset: h5py.Dataset | Packed, path: str, check: Callable[[int], None] | None = None
    ) -> None:
        self._dataset, self._path, self._check = dataset, path, check
        self.shape: tuple[int, ...] = dataset.shape
        self.dtype: np.dtype[Any] = dataset.dtype

    def __getitem__(self, at: Any) -> NDArray[Any]:
        with reading(self._path):
            if self._check is not None:
                self._check(at[0] if isinstance(at, tuple) else at)
            values: NDArray[Any] = self._dataset[at]
            return values


class Whole(Stored):
    """A small dataset, compared with its checksum where it is sliced; chunks have their own."""

    def __getitem__(self, at: Any) -> NDArray[Any]:
        if self._dataset.chunks is not None:
            return super().__getitem__(at)
        with reading(self._path):
            values: NDArray[Any] = numbers(self._dataset)[at]
            return values


class Rows(Stored):
    """A large dataset (rows, ...), such as the logits of a long text by a model of many tokens: it
    is read where it is sliced, and as a whole by numpy.asarray. Errors: HgvizError."""

    def __init__(self, dataset: h5py.Dataset, path: str) -> None:
        super().__init__(dataset, path)
        self.ndim, self.nbytes = len(self.shape), dataset.size * dataset.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: Any) -> NDArray[Any]:
        if isinstance(at, np.ndarray) and at.dtype != bool and at.size:  # in any order
            first = int(at.min())
            some = super().__getitem__(slice(first, int(at.max()) + 1))
            found: NDArray[Any] = some[at - first]
            return found
        return super().__getitem__(at)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[...], dtype)


def checksum(parts: Iterable[NDArray[Any]]) -> int:
    """The crc32 of some arrays one after another."""
    found = 0
    for one in parts:
        found = zlib.crc32(np.ascontiguousarray(one).data, found)
    return found


def run_checksums(values: NDArray[Any]) -> list[int]:
    """The crc32 of every run of RUN rows."""
    return [checksum([values[top : top + RUN]]) for top in range(0, len(values), RUN)]


class Checksums:
    """The crc32 of each head over some datasets, compared once, when the head is first read."""

    def __init__(self, datasets: Sequence[Any], expected: tuple[int, ...]) -> None:
        self._datasets, self._expected = datasets, expected
        self._good: set[int] = set()

    def check(self, place: int) -> None:
        """Raises Refused when a head is not what was written."""
        if place in self._good:
            return
        if checksum(one[place] for one in self._datasets) != self._expected[place]:
            raise Refused(f"{self._datasets[0].parent.name} is not what was written to it")
        self._good.add(place)


class StoredRuns(Stored):
    """A dataset (heads, rows, ...) whose runs of RUN rows are each compared with their checksum
    (heads, runs) when they are first read.
    """

    def __init__(
        self, dataset: h5py.Dataset | Packed, path: str, expected: NDArray[np.uint32]
    ) -> None:
        super().__init__(dataset, path)
        self._expected = expected
        self._good = np.zeros(expected.shape, bool)

    def __getitem__(self, at: Any) -> NDArray[Any]:
        if at is Ellipsis:
            return np.stack([self[place] for place in range(self.shape[0])])
        place, rows = at if isinstance(at, tuple) else (at, slice(None))
        if not isinstance(rows, slice):
            one: NDArray[Any] = self[place, rows : rows + 1][0]
            return one
        start, stop, _ = rows.indices(self.shape[1])
        first, last = start // RUN, -(-stop // RUN)
        with reading(self._path):
            values: NDArray[Any] = self._dataset[place, first * RUN : last * RUN]
            for run in first + np.flatnonzero(~self._good[place, first:last]):
                part = values[(run - first) * RUN : (run - first + 1) * RUN]
                if checksum([part]) != self._expected[place, run]:
                    raise Refused(f"{self._dataset.name} is not what was written to it")
                self._good[place, run] = True
            return values[start - first * RUN : stop - first * RUN]
