"""A try of a cell: from its beginning to its result file, or to why it has none."""

from __future__ import annotations

import os
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import hgviz
from hgviz.cluster import Outcome
from hgviz.core import HgvizError, Step, Task
from hgviz.errors import explained
from hgviz.sweep import Cell

if TYPE_CHECKING:
    from hgviz.store.sweep import SweepFolder

Measure = Callable[["SweepFolder", Cell], Task[dict[str, Any]]]


class Tried:
    """The work of a folder's cells, for cluster.run: measure gives what a cell found."""

    def __init__(self, path: str, measure: Measure) -> None:
        self.path, self.measure, self.run = path, measure, os.getpid()

    def __call__(self, cell: Cell) -> Task[Outcome]:
        from hgviz.store.sweep import GONE, TRIES, SweepFolder

        folder = SweepFolder(self.path, self.run)
        if folder.is_done(cell.key):  # by another run, or a worker that was thought dead
            return "done"
        if folder.is_given_up(cell.key):
            return "failed"
        tries = folder.begin(cell.key)
        if not tries:
            return "taken"
        if tries > TRIES:
            folder.fail(cell.key, TRIES, f"{GONE}: it has no more than {TRIES} tries")
            return "failed"
        begun = time.perf_counter()
        try:
            found = yield from _beating(folder, cell, tries, self.measure(folder, cell))
            folder.keep(cell.key, found, _made(time.perf_counter() - begun))
        except (GeneratorExit, KeyboardInterrupt):
            folder.release(cell.key)
            raise
        except Exception as error:
            if _is_of_the_place(error):
                folder.release(cell.key)
                raise _full(folder) from error
            line = " ".join(explained(error).lines)
            if tries < TRIES:
                folder.beat(cell.key, tries, 0.0, "", line)
                return "again"
            folder.fail(cell.key, tries, line, "".join(traceback.format_exception(error)))
            return "failed"
        return "done"

    def release(self, cell: Cell) -> None:
        """Its worker was ended with the run: that was no try."""
        from hgviz.store.sweep import SweepFolder

        with suppress(HgvizError):
            SweepFolder(self.path).release(cell.key, anyone=True)


def _is_of_the_place(error: BaseException | None) -> bool:
    """Whether it would happen to every cell: the disk is full. Libraries hide what the system
    said behind errors of their own."""
    from hgviz.store.files import is_full

    while error is not None:
        if is_full(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _full(folder: SweepFolder) -> HgvizError:
    return HgvizError(
        "the disk is full", f"what is done is kept in {folder.path}",
        "Free some space, then run the same command",
    )  # fmt: skip


def _beating(
    folder: SweepFolder, cell: Cell, tries: int, task: Task[dict[str, Any]]
) -> Task[dict[str, Any]]:
    """A task that is said to be alive all the time, and how far it is."""
    with _heart(folder, cell.key, tries) as tell, closing(task):
        while True:
            try:
                step = next(task)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            tell(step)
            yield Step(step.done, step.total, step.note)


@contextmanager
def _heart(folder: SweepFolder, key: str, tries: int) -> Iterator[Callable[[Step], None]]:
    """A thread that says how far a try is, also while one step of it takes long."""
    from hgviz.store.sweep import BEAT, SELDOM

    last = Step(0, 1)
    over = threading.Event()

    def tell(step: Step) -> None:
        nonlocal last
        last = step

    def beat() -> None:
        pause = BEAT
        while not over.wait(pause):
            pause = min(SELDOM, 1.5 * pause)  # a thousand workers share one disk
            share = last.done / last.total if last.total else 0.0
            with suppress(HgvizError):  # the work itself says it when the disk is full
                folder.beat(key, tries, share, last.note)

    thread = threading.Thread(target=beat, name=f"cell {key}", daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        over.set()
        thread.join()


def _made(seconds: float) -> dict[str, Any]:
    """What is said of a result beside the numbers."""
    from hgviz.tasks.capturing import versions

    return {
        "seconds": seconds, "host": socket.gethostname(), "pid": os.getpid(),
        "program": hgviz.__version__, "versions": dict(versions()),
    }  # fmt: skip


__all__ = ["Tried"]
