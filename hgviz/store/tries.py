"""What a try of a cell says of itself while it runs, and whether it still does."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from typing import Any

from hgviz.store.strangers import number

ALIVE = 60.0  # s without a word after which a try counts as dead


def word(
    tries: int, mark: str, share: float = 0.0, note: str = "", line: str = "", run: int = 0
) -> str:
    """What the try of this process says now; mark: the snapshot that was there when it began; run:
    the process that it works for."""
    told = {
        "tries": tries, "mark": mark, "share": share, "note": note, "line": line, "run": run,
        "time": time.time(), "host": socket.gethostname(), "pid": os.getpid(),
    }  # fmt: skip
    return json.dumps(told)


def is_mine(told: Mapping[str, Any]) -> bool:
    """Whether it is a try of this process."""
    return bool(told.get("host") == socket.gethostname() and told.get("pid") == os.getpid())


def is_alive(told: Mapping[str, Any]) -> bool:
    """Whether a try still runs, as far as can be told from here."""
    if told.get("line") or abs(time.time() - number(told.get("time"))) > ALIVE:
        return False
    if told.get("host") != socket.gethostname() or os.name != "posix":
        return True
    return _is_there(told.get("pid"))


def is_orphan(told: Mapping[str, Any]) -> bool:
    """Whether a worker's try ended with the run that it was for, as far as can be told from here:
    who was killed together with everything is not known to have died of its cell."""
    if told.get("line") or told.get("host") != socket.gethostname() or os.name != "posix":
        return False
    run = number(told.get("run"))
    return run > 0 and run != number(told.get("pid")) and not _is_there(run)


def _is_there(pid: Any) -> bool:
    """Whether this machine has such a process."""
    try:
        os.kill(int(number(pid)), 0)  # asks only
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
