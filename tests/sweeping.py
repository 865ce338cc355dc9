"""Cells that take no time or misbehave, for tests of what computes cells. Workers import this."""

import errno
import os
import signal
import time
from pathlib import Path

from hgviz.core import Step
from hgviz.store.sweep import SweepFolder
from hgviz.sweep import Cell
from hgviz.tasks import cells as real

STUDY = """
models = [{name = "none", checkpoint = "none"}]
data = [{valid = "none.tsv"}]
"""


def folder_of(path, cells):
    """A folder with a plan of these cells."""
    folder = SweepFolder(path)
    folder.write_plan(STUDY, cells)
    return folder


def cell(number, do="note", needs=(), **given):
    """A cell that does something; needs: other cells."""
    keys = tuple(one.key for one in needs)
    return Cell("do", {"do": do, "number": number, **given}, keys, {}, {"seed": str(number)})


def work_in(path):
    """What computes them."""
    return real.work_in(str(path), measure)


def measure(folder, cell):
    """Do what the cell says, and give its number and what it needed."""
    traces = Path(folder.path) / "traces"
    traces.mkdir(exist_ok=True)
    trace = traces / f"{cell.key}-{len(list(traces.glob(f'{cell.key}-*')))}-{os.getpid()}"
    trace.touch()
    yield Step(0, 1, "begun")
    yield from DO[cell.given["do"]](folder, cell)
    needed = [folder.found(key)["sum"] for key in cell.needs]
    return {"sum": cell.given["number"] + sum(needed)}


def tries(folder, cell):
    """The processes that tried a cell."""
    found = sorted((Path(folder.path) / "traces").glob(f"{cell.key}-*"))
    return [int(one.name.rpartition("-")[2]) for one in found]


def _note(folder, cell):
    yield Step(1, 1)


def _fail(folder, cell):
    raise ValueError("this one never works")
    yield


def _die(folder, cell):
    yield Step(0, 1)
    os.kill(os.getpid(), signal.SIGKILL)


def _die_once(folder, cell):
    if len(tries(folder, cell)) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    yield Step(0, 1)


def _wait(folder, cell):
    """Until a file says go, which lies in the folder."""
    while not (Path(folder.path) / "go").exists():
        time.sleep(0.01)
        yield Step(0, 1, "waiting")


def _full(folder, cell):
    yield Step(0, 1)
    if not (Path(folder.path) / "room").exists():
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError:
            raise RuntimeError("a library hides what the system said") from None


DO = {
    "note": _note, "fail": _fail, "die": _die, "die once": _die_once, "wait": _wait, "full": _full,
}  # fmt: skip
