"""The one QApplication, and what the process needs before it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

from PySide6.QtWidgets import QApplication

from hgviz import __version__

RESTORE = "HGVIZ_RESTORE"  # in the environment: open what was open, whatever the settings say

# s that work in another thread keeps the interpreter when the window wants it. With Python's 5 ms a
# picture that asks for it several times came late while heads were tried.
TURN = 0.0005


def application() -> QApplication:
    """The one QApplication."""
    read_no_sources()
    spare_a_core()
    keep_memory()
    sys.setswitchinterval(TURN)
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = QApplication(["hgviz"])
    app.setApplicationName("hgviz")
    app.setApplicationVersion(__version__)
    app.setDesktopFileName("hgviz")
    return app


def read_no_sources() -> None:
    """Have PySide6 import modules without a look into their source.

    It reads the file of every module that is imported, of torch's two thousand as well, to see
    whether `from __feature__ import ...` could matter in it; hgviz never says that. A fifth of what
    importing the program takes, and of what torch takes in it, went there.
    """
    feature: Any = sys.modules.get("shibokensupport.feature")
    if hasattr(feature, "_mod_uses_pyside"):  # no public way; another release may have none
        feature._mod_uses_pyside = frozenset().__contains__  # of no module


def spare_a_core() -> None:
    """Leave a core to the window, and let idle threads of torch and numpy sleep.

    Read by their thread pools when they are loaded, which is after this. With every core taken,
    threads that spin while they wait hold up the window, and each other: on two busy cores a
    capture of 136 bytes took 4 s with two threads and 0.2 s with one.
    """
    spare = max(1, (os.cpu_count() or 2) - 1)
    os.environ.setdefault("OMP_NUM_THREADS", str(spare))
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def keep_memory() -> None:
    """Have glibc hold on to what is freed, up to 128 MB, and keep it in one place.

    What a picture is put together in is freed after every frame. Handing it to the system and
    asking for it again, page by page, took longer than the picture itself: 12 ms against 4. Heaps
    of their own for each of the many threads keep gaps that no other thread fills: 200 MB after
    5,000 deeds in 50 windows.
    """
    if sys.platform == "linux":
        import ctypes

        # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX
        trim, own_pages, arenas = -1, -3, -8
        with suppress(OSError, AttributeError):  # another C library
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(trim, 128 << 20)
            mallopt(own_pages, 32 << 20)
            mallopt(arenas, 2)
