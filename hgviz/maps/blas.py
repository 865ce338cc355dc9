"""One thread for numpy's matrix products, so that the same product always gives the same bits."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import numpy as np

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
