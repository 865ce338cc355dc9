"""Reading a map by tiles of a fixed grid, so that a cell has the same bits in every read; what
tiles are computed with: one thread of BLAS each, memory that is kept, exponentials."""

from __future__ import annotations

import ctypes
import sys
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats, HgvizError, Interval, Reduce
from hgviz.maps.pyramid import Pyramid, counts, fold_magnitude, fold_max, fold_sum

# --- threads of BLAS ------------------------------------------------------------------------------

# numpy's wheels rename OpenBLAS's functions; distributions and conda keep the plain names
_NAMES = (
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
)
_lock = threading.Lock()
_inside = 0
_before = 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Numpy's BLAS uses one thread while anybody is inside, and what it used before afterwards.

    The number belongs to the process, so the first one in sets it and the last one out restores
    it. Tiles get their parallelism from tile workers, whose products must not start threads.
    """
    global _inside, _before
    get, put = _threads()
    with _lock:
        _inside += 1
        if _inside == 1:
            _before = get()
            put(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                put(_before)


@cache
def _threads() -> tuple[Callable[[], int], Callable[[int], object]]:
    """The two functions of numpy's own BLAS; for one without them, two that do nothing."""
    for path in _libraries():
        with suppress(OSError):
            library = ctypes.CDLL(str(path))
            for get, put in _NAMES:
                if hasattr(library, get) and hasattr(library, put):
                    return getattr(library, get), getattr(library, put)
    return lambda: 1, lambda _: None


def _libraries() -> Iterator[Path]:
    # a symbol is looked up in what the extension was linked with, too, except on Windows
    yield Path(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    yield from Path(np.__file__).parent.parent.glob("numpy.libs/*openblas*")


# --- memory that is kept --------------------------------------------------------------------------


class Sized(Protocol):
    """Whatever knows its bytes."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        ...


Kept = TypeVar("Kept", bound=Sized)


class Cache:
    """Keeps what was used last; shared by threads, which make a missing value at the same time.

    Keys are tuples, of which the first part says whose a value is.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._held = limit, 0
        self._values: OrderedDict[tuple[Hashable, ...], Any] = OrderedDict()
        self._gone: deque[Hashable] = deque()
        self._lock = threading.Lock()

    def get(self, key: tuple[Hashable, ...], make: Callable[[], Kept]) -> Kept:
        """The value of a key, made if it is not there."""
        with self._lock:
            self._let_go()
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]  # type: ignore[no-any-return]
        value = make()
        with self._lock:
            if key not in self._values:
                self._values[key] = value
                self._held += value.nbytes
            while self._held > self._limit:
                self._held -= self._values.popitem(last=False)[1].nbytes
        return value

    def forget(self, owner: Hashable) -> None:
        """Let go of all values of an owner: now, or, where the cache is in use, at its next use.

        It waits for nothing, since it may be called while this very thread is at work here: when
        an owner is collected as garbage.
        """
        self._gone.append(owner)
        if self._lock.acquire(blocking=False):
            try:
                self._let_go()
            finally:
                self._lock.release()

    def _let_go(self) -> None:
        while self._gone:
            owner = self._gone.popleft()
            for key in [one for one in self._values if one[0] == owner]:
                self._held -= self._values.pop(key).nbytes

    @property
    def held(self) -> int:
        """Bytes in use."""
        return self._held


def give_back() -> None:
    """Hand what was freed to the system: glibc holds on to it, 500 MB after a text of 900,000
    letters, and each thread to what it freed itself. It takes some 20 ms.
    """
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


# --- exponentials ---------------------------------------------------------------------------------

_BITS = np.float32(1 / np.log(2))


def exponential(logs: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
    """e to some powers, as powers of 2 where these are faster.

    The product with 1 / log 2 is rounded, by which a weight e^-x is off by x e^-x 2^-24 at most:
    all in all half of what numpy's own exp is off.
    """
    found: NDArray[Any]
    if logs.dtype == np.float32 and _has_fast_powers_of_2():
        found = np.multiply(logs, _BITS, out=out)
        np.exp2(found, out=found)
    else:
        found = np.exp(logs, out=out)
    return found


@cache
def _has_fast_powers_of_2() -> bool:
    """Whether numpy takes float32 exp2 from Intel's vector library, as its builds for Linux do with
    AVX-512: with the product, two thirds of the time of exp. Elsewhere exp2 goes one by one.
    """
    if sys.platform != "linux":
        return False
    try:
        from numpy.lib.introspect import opt_func_info
    except ImportError:  # before numpy 2.2
        return False
    kinds = opt_func_info(func_name="^exp2$", signature="float32").get("exp2", {})
    return any(one["current"] in ("AVX512_SKX", "X86_V4") for one in kinds.values())


# --- tiles ----------------------------------------------------------------------------------------

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
            f"this layer has no head {head}: its heads are {listed}", "Choose one of these"
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
