"""A verb's work cut into cells, which a scheduler's workers compute into the folder OUT.part.

How it is cut depends on how long a piece takes, never on how many workers there are; every number
is the one that the verb gives in one process with one thread. What is done stays when it is
stopped, and the same command goes on; one writer puts it together.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.cluster import run
from hgviz.core import HgvizError, Off, Step, Task
from hgviz.sweep import Cell
from hgviz.tasks.opening import Path_

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.store.portions import PortionFolder

# of work in a cell, where one piece of it is not more: docs/how-to/cluster.md says why
SECONDS = 1.0
THREADS = 1  # of a cell: sums over another number of them end in other bits


@dataclass(frozen=True, slots=True)
class Origin:
    """How a model was opened, so that a worker opens the same; as tasks.load."""

    path: Path_
    device: str = "auto"
    dtype: str = "float32"
    masking: str | None = None
    activation: str | None = None

    def given(self, model: Model, off: Off) -> dict[str, Any]:
        """What decides what it answers."""
        return {
            "model": model.spec.digest, "device": self.device, "dtype": self.dtype,
            "masking": self.masking, "activation": self.activation,
            "off": sorted(map(str, off)),
        }  # fmt: skip

    @property
    def absolute(self) -> str:
        """Where it lies, wherever a worker stands."""
        from hgviz.models.formats.cache import settled

        return os.path.abspath(settled(self.path))  # its links stay: files beside it are needed


@dataclass(frozen=True, slots=True)
class Spread:
    """Where a verb is computed, into which output, and what its workers open themselves.

    models: one, or A and B. limit: examples at most. force: what is begun at OUT is thrown away.
    """

    scheduler: str
    out: Path_
    models: tuple[Origin, ...]
    data: Path_
    text_column: str = ""
    label_column: str = ""
    limit: int | None = None
    force: bool = False

    def folder(self, verb: str, models: Sequence[Mapping[str, Any]], data: str) -> PortionFolder:
        """Where cells are kept, of a verb on models and data (its fingerprint).

        Errors: HgvizError where unfinished work of something else lies there, unless force.
        """
        from hgviz.store.files import writing
        from hgviz.store.portions import PortionFolder

        words = {"model": "model", "device": "device", "dtype": "number format",
                 "masking": "masking", "off": "set of heads switched off"}  # fmt: skip
        of = {name: [one[key] for one in models] for key, name in words.items()}
        with writing(Path(self.out)):
            return PortionFolder(self.out, {"verb": verb, **of, "data": data}, self.force)

    def asked(self) -> dict[str, Any]:
        """What decides which examples there are."""
        from hgviz.tasks.planning import digest_of_file

        columns = [self.text_column, self.label_column]
        return {"data": digest_of_file(self.data), "columns": columns, "limit": self.limit}

    @property
    def paths(self) -> dict[str, str]:
        """Where what a cell reads lies."""
        names = ("model",) if len(self.models) == 1 else ("model a", "model b")
        found = {name: one.absolute for name, one in zip(names, self.models, strict=True)}
        return found | {"data": os.path.abspath(self.data)}

    def cells(self, work: str, given: Sequence[Mapping[str, Any]]) -> list[Cell]:
        """Cells of one kind, numbered for people."""
        paths, total = self.paths, len(given)
        return [
            Cell(work, {**one, "threads": THREADS}, (), paths,
                 {"method": f"part {number:,} of {total:,}"})
            for number, one in enumerate(given, 1)
        ]  # fmt: skip

    def computed(self, folder: PortionFolder, cells: Sequence[Cell]) -> Task[None]:
        """Have all of these done. Errors: HgvizError for the first that is given up, and for a
        scheduler that is not there or goes away; what was done stays."""
        from hgviz.tasks.cells import work_in

        keys = [one.key for one in cells]
        done = folder.begin_cells(keys)
        yield Step(len(done), len(cells), f"{len(done):,} of {len(cells):,} parts are done")
        if len(done) == len(cells):
            return
        where = str(folder.path)
        try:
            with closing(run(cells, work_in(where), self.scheduler, done, where)) as task:
                for step in task:
                    if step.value is not None and step.value[1] == "failed":
                        raise _failed(folder, step.value[0])
                    yield Step(len(done) + step.done, len(cells), step.note)
        finally:
            if not any(map(folder.is_done, keys)):
                folder.forget(keys)  # there is nothing to go on with


def _failed(folder: PortionFolder, cell: Cell) -> HgvizError:
    return HgvizError(
        f"{cell.label} failed", folder.why_failed(cell.key),
        f"What was done is kept in {folder.path.name}; the same command goes on",
    )  # fmt: skip


def paced(folder: PortionFolder, name: str, piece: Callable[[], object]) -> float:
    """Seconds that a piece of work takes with THREADS, as measured when the work was begun."""
    from hgviz.models import devices

    if name not in folder.pace:
        with devices.threads(THREADS):
            folder.pace[name] = min(_seconds(piece) for _ in range(2))  # the first one warms up
    return folder.pace[name]


def _seconds(piece: Callable[[], object]) -> float:
    begun = time.perf_counter()
    piece()
    return time.perf_counter() - begun


def cut(count: int, seconds: float) -> list[range]:
    """So many pieces that take so long each, in runs that take SECONDS together or are one."""
    each = max(1, math.ceil(SECONDS / max(seconds, 1e-9)))
    return [range(start, min(start + each, count)) for start in range(0, count, each)]


def slice_of(some: range) -> slice:
    """The same numbers as a slice."""
    return slice(some.start, some.stop)


def ends(some: range) -> list[int]:
    """The same numbers as JSON."""
    return [some.start, some.stop]


__all__ = ["Origin", "Spread", "cut", "ends", "paced", "slice_of"]
