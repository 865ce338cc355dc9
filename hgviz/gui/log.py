"""The log of errors that nobody foresaw."""

from __future__ import annotations

import logging
import os
import sys
import threading
from io import TextIOWrapper
from logging import LogRecord
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Any

import platformdirs
from PySide6.QtCore import QMessageLogContext, QtMsgType, qFormatLogMessage, qInstallMessageHandler

from hgviz import __version__
from hgviz.core import HgvizError

MOST, KEPT = 512 << 10, 3  # bytes of a file, and older files beside it
FORMAT = f"%(asctime)s %(levelname)s hgviz {__version__}, process %(process)d\n%(message)s\n"
GRAVE = {QtMsgType.QtWarningMsg, QtMsgType.QtCriticalMsg, QtMsgType.QtFatalMsg}

_log = logging.getLogger("hgviz.window")
_log.propagate = False  # else the root's handlers would write it to the terminal
_log.addHandler(logging.NullHandler())
_before: list[Any] = []  # the hooks that start() put its own before
_files: list[logging.Handler] = []  # at most one


def file() -> Path:
    """Where it is written."""
    return platformdirs.user_log_path("hgviz", appauthor=False) / "hgviz.log"


def start() -> None:
    """From now on write to the file; once, as the program starts."""
    _before[:] = before, in_thread = sys.excepthook, threading.excepthook

    def uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType) -> None:
        record(error)
        before(kind, error, trace)

    def uncaught_in_thread(told: threading.ExceptHookArgs) -> None:
        if told.exc_value is not None:
            record(told.exc_value)
        in_thread(told)

    sys.excepthook, threading.excepthook = uncaught, uncaught_in_thread
    qInstallMessageHandler(_of_qt)


def stop() -> None:
    """Write no more; the hooks that were there are there again."""
    if _before:
        sys.excepthook, threading.excepthook = _before
        _before.clear()
        qInstallMessageHandler(None)
    while _files:
        _log.removeHandler(_files[0])
        _files.pop().close()


def record(error: BaseException) -> None:
    """Write an error that nobody foresaw, which no HgvizError is and no stop by a person."""
    if not isinstance(error, HgvizError | KeyboardInterrupt | SystemExit):
        _open()
        _log.error("%s: %s", type(error).__name__, error, exc_info=error)


def _open() -> None:
    """Have a file to write to, once there is something to write; it is seldom needed."""
    if _before and not _files:
        handler = Quiet(file(), maxBytes=MOST, backupCount=KEPT, encoding="utf-8", delay=True)
        handler.setFormatter(logging.Formatter(FORMAT))
        _log.addHandler(handler)
        _files.append(handler)


def _of_qt(kind: QtMsgType, context: QMessageLogContext, words: str) -> None:
    """What Qt says goes where it would go without this, and warnings to the file too."""
    if kind in GRAVE:
        _open()
        _log.warning("Qt: %s", words)
    if sys.stderr is not None:  # a program of Windows may have none
        print(qFormatLogMessage(kind, context, words), file=sys.stderr, flush=True)
    if kind == QtMsgType.QtFatalMsg:
        os.abort()


class Quiet(RotatingFileHandler):
    """A file that is made when there is something to write, and that a disk may refuse."""

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        return super()._open()

    def handleError(self, record: LogRecord) -> None:
        """What cannot be written is lost: to say so would be the next error."""
