"""What was freed, handed back to the system."""

from __future__ import annotations

import sys
from contextlib import suppress


def give_back() -> None:
    """Hand what was freed to the system: glibc holds on to it, 500 MB after a text of 900,000
    letters, and each thread to what it freed itself. It takes some 20 ms.
    """
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
