"""Plain files that may be a stranger's: no link, no pipe, nothing endless; JSON of some shape."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from hgviz.core import HgvizError
from hgviz.errors import file_error

MOST = 1e18
Kind = TypeVar("Kind")


def number(value: Any) -> float:
    """A number from 0 on; 0 for anything else, also for what is no number, or endless."""
    good = isinstance(value, int | float) and 0 <= value < MOST
    return float(value) if good else 0.0


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A file to read, which is neither a link, that could lead anywhere, nor a pipe, that would
    be waited for. Errors: HgvizError, OSError."""
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, name, 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise damaged(path, "it is no file")
        yield file


def read_plain(path: Path, most: int) -> bytes:
    """What a file holds. Errors: HgvizError, FileNotFoundError."""
    try:
        with opened(path) as file:
            content = file.read(most + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise damaged(path, "it is a link") from None
        raise file_error(f"cannot read {path}", error) from error
    if len(content) > most:
        raise damaged(path, f"it is larger than {most >> 20:,} MB")
    return content


def typed(path: Path, content: bytes, kind: type[Kind]) -> Kind:
    """JSON of a shape. Errors: HgvizError that says where it is another."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise damaged(path, str(error) or "it is nested too deep") from error


def read_object(path: Path, most: int) -> dict[str, Any]:
    """The object of a JSON file. Errors: HgvizError, FileNotFoundError."""
    content = read_plain(path, most)
    try:
        told = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged(path, "it is no JSON") from error
    if not isinstance(told, dict):
        raise damaged(path, "it is no object")
    return told


def damaged(path: Path, why: str) -> HgvizError:
    """What is said of a file of a study that is not as hgviz writes them."""
    return HgvizError(f"{path} is damaged: {why}", "Delete it and run the study again")
