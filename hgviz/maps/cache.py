"""What was made a moment ago, up to so many bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar


class Sized(Protocol):
    """Whatever knows its bytes."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        ...


Kept = TypeVar("Kept", bound=Sized)


class Cache:
    """Keeps what was used last; shared by threads, which make a missing value at the same time."""

    def __init__(self, limit: int) -> None:
        self._limit, self._held = limit, 0
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """The value of a key, made if it is not there."""
        with self._lock:
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

    @property
    def held(self) -> int:
        """Bytes in use."""
        return self._held
