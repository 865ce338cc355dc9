"""The file of the log: bounded, made when it is needed, and never an error itself."""

from __future__ import annotations

from io import TextIOWrapper
from logging import LogRecord
from logging.handlers import RotatingFileHandler
from pathlib import Path


class Quiet(RotatingFileHandler):
    """A file that is made when there is something to write, and that a disk may refuse."""

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        return super()._open()

    def handleError(self, record: LogRecord) -> None:
        """What cannot be written is lost: to say so would be the next error."""


__all__ = ["Quiet"]
