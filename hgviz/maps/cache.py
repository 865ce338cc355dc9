"""What was made a moment ago, up to so many bytes."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, Protocol, TypeVar


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
