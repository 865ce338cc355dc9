"""What must not happen while a window is used, and what must not grow."""

import ctypes
import gc
import logging
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

from PySide6.QtCore import QCoreApplication, QEvent, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from hgviz.core import HgvizError
from hgviz.jobs import Job

KEPT = (".ttf", ".otf", ".ttc", ".cache")  # fonts, for each thread, and what Qt knows of files
HARMLESS = "This plugin does not support"  # what windows off screen cannot do


class Census(NamedTuple):
    """How much of everything there is.

    objects: those that Python's collector knows; modules: those imported so far; files: open ones
    but KEPT; memory: bytes in RAM, after what is free was given back to the system.
    """

    widgets: int
    objects: int
    modules: int
    threads: int
    files: tuple[str, ...]
    memory: int

    @classmethod
    def take(cls) -> Self:
        """Count now, after everything that waits for deletion is deleted."""
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        gc.collect()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        ctypes.CDLL(None).malloc_trim(0)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            len(QApplication.allWidgets()),
            len(gc.get_objects()),
            len(sys.modules),
            len(os.listdir("/proc/self/task")),
            tuple(one for one in _open_files() if one[:1] == "/" and not one.endswith(KEPT)),
            pages * os.sysconf("SC_PAGE_SIZE"),
        )

    @property
    def told(self) -> str:
        """In words."""
        return (
            f"{self.widgets} widgets, {self.objects:,} objects of {self.modules:,} modules, "
            f"{self.threads} threads, {len(self.files)} files, {self.memory / 2**20:.0f} MB"
        )


def _open_files() -> list[str]:
    """What is open, but for the list of what is open."""
    found = []
    for one in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{one}"))
    return found


@contextmanager
def watched() -> Iterator[list[str]]:
    """Collect what nobody foresaw: exceptions of slots, threads and lanes, also those that a pane
    or a dialog told of, and warnings of Qt.

    An error of three lines is none of them: that is how the program says what is wrong.
    """
    found: list[str] = []

    def uncaught(kind, error, trace) -> None:
        found.append("".join(traceback.format_exception(kind, error, trace)))

    def lost(told) -> None:
        found.append(f"{told.err_msg or 'ignored'}: {told.object!r}: {told.exc_value!r}")

    def in_thread(told) -> None:
        uncaught(told.exc_type, told.exc_value, told.exc_traceback)

    def of_qt(kind, context, words) -> None:
        if not words.startswith(HARMLESS):
            found.append(f"Qt: {words}")

    tell = Job._tell

    def of_lanes(job, listener, value) -> None:
        if isinstance(value, BaseException) and not isinstance(value, HgvizError):
            found.append(f"{job.title}: {''.join(traceback.format_exception(value))}")
        tell(job, listener, value)

    log, handler = logging.getLogger("hgviz.window"), logging.Handler(logging.ERROR)
    handler.emit = lambda told: found.append(handler.format(told))  # type: ignore[method-assign]
    log.addHandler(handler)
    hooks = sys.excepthook, sys.unraisablehook, threading.excepthook
    sys.excepthook, sys.unraisablehook, threading.excepthook = uncaught, lost, in_thread
    before = qInstallMessageHandler(of_qt)
    Job._tell = of_lanes
    try:
        yield found
    finally:
        log.removeHandler(handler)
        Job._tell = tell
        qInstallMessageHandler(before)
        sys.excepthook, sys.unraisablehook, threading.excepthook = hooks
