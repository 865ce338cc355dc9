"""Work of a library that may never end, and how long it is waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """What work returns or raises. Errors: TimeoutError when it takes longer.

    The work must let other threads run. It cannot be stopped: after the error it goes on in a
    thread that nobody waits for, at the end of the program neither.
    """
    results: list[Result] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # panics of Rust are no Exceptions
            failures.append(error)

    thread = threading.Thread(target=run, name="waited for", daemon=True)
    thread.start()
    thread.join(seconds)
    if failures:
        raise failures[0]
    if not results:
        raise TimeoutError
    return results[0]
