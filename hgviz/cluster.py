"""Where cells are computed: in this process, by workers on this machine, or on a cluster.

dask.distributed (extra `cluster`) is imported when a scheduler is asked for. A cell is work that
leaves its result in a file; what crosses to a worker and back is the cell and one word.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, Protocol

from hgviz.core import HgvizError, Step, Task

if TYPE_CHECKING:
    from distributed import Client

HERE = ""  # the scheduler of whoever asks for none: this process
FORMS = "local:N, tcp://host:8786 or slurm:profile.yaml"
PATIENCE = 60.0  # s until a cluster has a worker
LOST = 6  # deaths of workers at one cell before it began
ROOM = 5.0  # s: how often a cluster is asked how many threads it has
WAIT = 0.5  # s: how often a person is told of a cluster at work

Outcome = Literal["done", "again", "failed"]


class Cell(Protocol):
    """What is computed: see hgviz.sweep.Cell."""

    @property
    def key(self) -> str: ...
    @property
    def needs(self) -> tuple[str, ...]: ...
    @property
    def label(self) -> str: ...


Work = Callable[[Any], Task[Outcome]]


def require_scheduler(scheduler: str) -> None:
    """Errors: HgvizError for what is no scheduler, and where dask.distributed is missing."""
    if scheduler == HERE:
        return
    kind, _, rest = scheduler.partition(":")
    good = {
        "local": rest.isdecimal() and 0 < int(rest) <= 1024,
        "tcp": rest.startswith("//"), "tls": rest.startswith("//"),
        "slurm": bool(rest),
    }  # fmt: skip
    if not good.get(kind):
        raise HgvizError(
            f"there is no scheduler {scheduler[:60]!r}", f"it is {FORMS}", "Choose one of these"
        )
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise HgvizError(
            f"the scheduler {scheduler} needs dask.distributed", "it is not installed",
            "Run: pip install 'hgviz[cluster]'",
        ) from None  # fmt: skip


def run(
    cells: Sequence[Any], work: Work, scheduler: str = HERE, done: Collection[str] = ()
) -> Task[None]:
    """Compute cells, those first that others need, until none is left that can be.

    work: does one cell to its end; it says "done", "failed" where the cell is given up, or "again".
    done: cells that need not be computed. Each Step's value is a cell and its outcome, or None. A
    cell whose worker dies is done again. Errors: HgvizError for a scheduler that cannot be had or
    goes away, and whatever work raises: then all that is done stays.
    """
    require_scheduler(scheduler)
    order = Order(cells, done)
    if scheduler == HERE:
        yield from _here(order, work)
        return
    with _client(scheduler) as client:
        yield from _there(order, work, client, scheduler)


class Order:
    """Which cells may be computed: all that they need is done."""

    def __init__(self, cells: Sequence[Any], done: Collection[str] = ()) -> None:
        keys = {one.key for one in cells} - set(done)
        self.total = len(keys)
        self.done = 0
        self._missing = {
            one.key: {key for key in one.needs if key in keys} for one in cells if one.key in keys
        }
        self._cells = {one.key: one for one in cells if one.key in keys}
        self._for: dict[str, list[str]] = {}
        for key, missing in self._missing.items():
            for need in missing:
                self._for.setdefault(need, []).append(key)
        self._ready = deque(key for key, missing in self._missing.items() if not missing)

    def take(self) -> Any | None:
        """A cell that can be computed now."""
        return self._cells[self._ready.popleft()] if self._ready else None

    def give_back(self, cell: Any) -> None:
        """It is to be computed again, after the others."""
        self._ready.append(cell.key)

    def end(self, cell: Any, outcome: Outcome) -> None:
        """What becomes of the cells that need it: after a failure they are never ready."""
        if outcome == "again":
            return self.give_back(cell)
        self.done += 1
        if outcome == "done":
            for key in self._for.get(cell.key, ()):
                self._missing[key].discard(cell.key)
                if not self._missing[key]:
                    self._ready.append(key)
        return None


def _here(order: Order, work: Work) -> Task[None]:
    while (cell := order.take()) is not None:
        with closing(work(cell)) as task:
            outcome: Outcome = yield from _inside(task, order, cell)
        order.end(cell, outcome)
        yield Step(order.done, order.total, cell.label, (cell, outcome))


def _inside(task: Task[Outcome], order: Order, cell: Any) -> Task[Outcome]:
    """A cell as its share of all of them."""
    while True:
        try:
            step = next(task)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        share = step.done / step.total if step.total else 0.0
        yield Step(order.done + min(share, 1.0), order.total, f"{cell.label}, {step.note}")


# --- dask.distributed -----------------------------------------------------------------------------


def whole(work: Work, cell: Any) -> Outcome:
    """A worker's side: a cell to its end."""
    task = work(cell)
    while True:
        try:
            next(task)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _there(order: Order, work: Work, client: Client, scheduler: str) -> Task[None]:
    """As many cells at a time as there are threads, so that a death is of one cell's making."""
    running: dict[Any, Any] = {}
    ended: SimpleQueue[Any] = SimpleQueue()
    deaths: Counter[str] = Counter()
    sent = room = 0
    asked = -ROOM
    while True:
        if time.monotonic() - asked > ROOM:  # not for every cell: the answer names every worker
            asked, room = time.monotonic(), max(1, sum(client.nthreads().values()))
        while len(running) < room and (cell := order.take()) is not None:
            sent += 1
            # a key of its own for each try: a scheduler remembers what it has seen
            key = f"{cell.key}-{os.getpid()}-{sent}"
            future = client.submit(whole, work, cell, key=key, pure=False, retries=0)
            running[future] = cell
            future.add_done_callback(ended.put)
        if not running:
            return
        try:
            future = ended.get(timeout=WAIT)
        except Empty:
            _require_there(client, scheduler, order)
            yield Step(order.done, order.total, f"{len(running)} running, {room} at a time")
            continue
        _require_there(client, scheduler, order)
        cell = running.pop(future)
        outcome = _outcome(future)
        if outcome == "died":
            deaths[cell.key] += 1
            if deaths[cell.key] > LOST:
                raise HgvizError(
                    f"the workers of {scheduler} die", f"{LOST} of them died at {cell.label}",
                    "See what their logs say; what was done is kept",
                )  # fmt: skip
            outcome = "again"
        order.end(cell, outcome)
        yield Step(order.done, order.total, cell.label, (cell, outcome))


def _outcome(future: Any) -> Any:
    """What became of a cell, "died" where its worker did. Errors: what its work raised."""
    from distributed.scheduler import KilledWorker

    if future.status == "finished":
        return future.result()
    if future.status == "error":
        error = future.exception()
        if not isinstance(error, KilledWorker):
            raise error
        return "died"
    return "again"  # cancelled with its worker


def _require_there(client: Client, scheduler: str, order: Order) -> None:
    if client.status != "running":
        raise HgvizError(
            f"the scheduler {scheduler} went away", f"{order.done} of {order.total} cells are done "
            "and kept", "Start it again, then run the same command",
        )  # fmt: skip


@contextmanager
def _client(scheduler: str) -> Iterator[Client]:
    """A cluster that has at least one worker. Errors: HgvizError where none can be had."""
    import dask
    from distributed import Client

    quiet = {
        "distributed.scheduler.allowed-failures": 0,  # tries are counted in the cells' files
        "distributed.scheduler.work-stealing": False,
        "distributed.worker.memory.terminate": False,
        "distributed.admin.tick.limit": "60s",  # a cell may hold the interpreter for long
        "logging.distributed": "critical",
    }
    kind, _, rest = scheduler.partition(":")
    with dask.config.set(quiet):
        try:
            owner: Any = None
            if kind == "local":
                owner = _local(int(rest))
            elif kind == "slurm":
                owner = _slurm(rest)
            client = Client(owner or scheduler, timeout=PATIENCE, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise HgvizError(
                f"there is no scheduler at {scheduler}", str(error).splitlines()[0].lower(),
                "Start one with `dask scheduler`, then workers with `dask worker`",
            ) from None  # fmt: skip
        try:
            try:
                client.wait_for_workers(1, timeout=PATIENCE)
            except TimeoutError:
                raise HgvizError(
                    f"{scheduler} has no worker", f"none came in {PATIENCE:.0f} s",
                    "Start workers with `dask worker`, or see what the cluster says",
                ) from None  # fmt: skip
            yield client
        finally:
            client.close()
            if owner is not None:
                owner.close()


def _local(count: int) -> Any:
    """Workers of one thread each on this machine, one on each GPU by turns."""
    from distributed import Nanny, Scheduler, SpecCluster

    gpus = _gpus()
    workers = {
        number: {
            "cls": Nanny,
            "options": {
                "nthreads": 1, "memory_limit": None, "dashboard_address": None,
                "silence_logs": logging.CRITICAL,
                "env": {"CUDA_VISIBLE_DEVICES": gpus[number % len(gpus)]} if gpus else {},
            },
        }
        for number in range(count)
    }  # fmt: skip
    address = {"host": "127.0.0.1", "dashboard_address": None, "dashboard": False}
    return SpecCluster(
        scheduler={"cls": Scheduler, "options": address},
        workers=workers,
        silence_logs=logging.CRITICAL,
    )


def _gpus() -> list[str]:
    """The GPUs of this machine, by what they are called in CUDA_VISIBLE_DEVICES."""
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return [one for one in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if one]
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return re.findall(r"^GPU (\d+):", listed.stdout, re.MULTILINE)


def _slurm(profile: str) -> Any:
    """Workers as jobs of Slurm. profile: a YAML file with the options of dask_jobqueue's
    SLURMCluster, and jobs, how many."""
    import yaml

    try:
        with open(profile, encoding="utf-8") as file:
            options: Mapping[str, Any] = yaml.safe_load(file)
        jobs = int(options.get("jobs", 1))
        options = {name: value for name, value in options.items() if name != "jobs"}
    except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError, ValueError) as error:
        raise HgvizError(
            f"{profile} is no profile of a cluster", str(error).splitlines()[0],
            "It is YAML with jobs, cores, memory, walltime, queue; see docs/studies.md",
        ) from None  # fmt: skip
    try:
        from dask_jobqueue.slurm import SLURMCluster

        return SLURMCluster(**{"processes": 1, **options}, n_workers=jobs)
    except ImportError:
        raise HgvizError(
            "Slurm needs dask-jobqueue", "it is not installed", "Run: pip install 'hgviz[cluster]'"
        ) from None
    except (TypeError, ValueError, OSError) as error:
        raise HgvizError(
            f"no cluster by {profile}", str(error).splitlines()[0], "Change it, or ask its admins"
        ) from None
