"""Where cells are computed: in this process, by workers on this machine, or on a cluster.

dask.distributed (extra `cluster`) is imported when a scheduler is asked for. A cell is work that
leaves its result in a file; what crosses to a worker and back is the cell and one word.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from queue import Empty
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import urlsplit

from hgviz import __version__
from hgviz.core import (
    Cancelled,
    HgvizError,
    Step,
    cancelled_if,
    progress,
    progress_as,
    raise_if_cancelled,
)

if TYPE_CHECKING:
    from distributed import Client

HERE = ""  # the scheduler of whoever asks for none: this process
FORMS = "local:N, tcp://host:8786 or slurm:profile.yaml"
PORT = 8786  # of a scheduler, unless it says another
ANSWER = 10.0  # s until a scheduler answers
PATIENCE = (
    60.0  # s until it has a worker; jobs of Slurm may wait in its queue for as long as it likes
)
DEATHS = 10  # workers of this run that die at one cell; other schedulers have a number of their own
ROOM = 5.0  # s: how often a cluster is asked how many threads it has
WAIT = 0.5  # s: how often a person is told of a cluster at work

ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # until a cell says

Outcome = Literal["done", "again", "failed"]


class Cell(Protocol):
    """What is computed: see hgviz.study.Cell."""

    @property
    def key(self) -> str: ...
    @property
    def needs(self) -> tuple[str, ...]: ...
    @property
    def label(self) -> str: ...


Work = Callable[[Any], Outcome]


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
            f"there is no scheduler {scheduler[:60]!r}: it is {FORMS}", "Choose one of these"
        )
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise HgvizError(f"the scheduler {scheduler} needs dask.distributed: "
"it is not installed",
"Run: pip install 'hgviz[cluster]'") from None  # fmt: skip


def run(
    cells: Sequence[Any],
    work: Work,
    scheduler: str = HERE,
    done: Collection[str] = (),
    folder: str = "",
    give_up: Callable[[Any], Outcome] | None = None,
) -> None:
    """Compute cells, those first that others need, until none is left that can be.

    work: does one cell to its end; it says "done", "failed", or "again" where it was stopped. done:
    cells that need not be computed. folder: what all workers must see. The progress carries a cell
    and its outcome, or None. A cell whose worker dies is computed again; give_up says what becomes
    of one at which worker after worker died. Errors: HgvizError for a scheduler that cannot be had
    or goes away, for workers with another hgviz, and whatever work raises: then all that is done
    stays.
    """
    require_scheduler(scheduler)
    order = Order(cells, done)
    if scheduler == HERE:
        _here(order, work)
        return
    with _client(scheduler) as client:
        _workers(client, scheduler)
        _require_alike(client, folder)
        _there(order, work, client, scheduler, give_up)


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

    def end(self, cell: Any, outcome: Outcome) -> None:
        """What becomes of it, and of the cells that need it: after a failure they are never ready;
        what is to be computed again comes after the others."""
        if outcome == "again":
            return self._ready.append(cell.key)
        self.done += 1
        if outcome == "done":
            for key in self._for.get(cell.key, ()):
                self._missing[key].discard(cell.key)
                if not self._missing[key]:
                    self._ready.append(key)
        return None


def _here(order: Order, work: Work) -> None:
    while (cell := order.take()) is not None:
        with progress_as(partial(_of_all, order, cell.label)):
            outcome = work(cell)
        order.end(cell, outcome)
        progress(order.done, order.total, cell.label, (cell, outcome))


def _of_all(order: Order, label: str, step: Step) -> Step:
    """The progress of a cell as a part of that of all cells."""
    share = min(step.done / step.total, 1.0) if step.total else 0.0
    return Step(order.done + share, order.total, f"{label}, {step.note}")


# --- dask.distributed -----------------------------------------------------------------------------


_one_at_a_time = threading.Lock()  # torch has one count of threads, and one state of chance


def whole(work: Work, cell: Any, version: str = __version__) -> Outcome:
    """A worker's side: a cell to its end, unless the worker is told to end before.

    version: of the hgviz that asks. Errors: HgvizError where it is another, and what work raises.
    """
    if version != __version__:
        raise _other(socket.gethostname(), __version__, version)
    with _one_at_a_time, cancelled_if(_is_ending):
        try:
            raise_if_cancelled()
            return work(cell)
        except Cancelled:
            return "again"


def _is_ending() -> bool:
    """Whether this is a worker that closes: its job is over, or the run was stopped."""
    from distributed import get_worker

    try:
        return get_worker().status.name in ("closing", "closed", "stopping", "failed")
    except ValueError:
        return False


def _workers(client: Client, scheduler: str) -> None:
    """Wait for the first worker. Errors: HgvizError where none comes."""
    begun = time.monotonic()
    while not client.nthreads():
        if time.monotonic() - begun > PATIENCE and not scheduler.startswith("slurm:"):
            raise HgvizError(
                f"{scheduler} has no worker: none came in {PATIENCE:.0f} s",
                "Start workers with `dask worker`, or see what the cluster says",
            )
        progress(0, 1, "waiting for a worker")
        time.sleep(WAIT)


def _require_alike(client: Client, folder: str) -> None:
    """Errors: HgvizError where a worker has another hgviz, or does not see the folder.

    Of workers that come later the first is asked with each cell, and the second shows when they
    begin one: there is no place for it.
    """
    told: Any = client.get_versions(packages=["hgviz"])
    for address, one in told["workers"].items():
        theirs = one["packages"].get("hgviz")
        if theirs != __version__:
            raise _other(address, theirs, __version__)
    if not folder:
        return
    with tempfile.NamedTemporaryFile(prefix=".seen-", dir=folder) as marker:
        seen = client.run(os.path.exists, marker.name)
    blind = [address for address, sees in seen.items() if not sees]
    if blind:
        raise HgvizError(
            f"the worker {blind[0]} does not see {folder}: "
            f"{len(blind)} of {len(seen)} workers share no such folder with this machine",
            "Choose a folder that all machines have under one name",
        )


def _other(where: str, theirs: str | None, ours: str) -> HgvizError:
    return HgvizError(
        f"the worker {where} has {f'hgviz {theirs}' if theirs else 'no hgviz'}: "
        f"the run is of hgviz {ours}",
        "Install the same version there, and start it again",
    )


def _there(
    order: Order,
    work: Work,
    client: Client,
    scheduler: str,
    give_up: Callable[[Any], Outcome] | None,
) -> None:
    """As many cells at a time as there are workers, so that a death is of one cell's making."""
    from distributed import as_completed

    running: dict[Any, Any] = {}  # cells on workers, by their futures
    ended = as_completed(loop=client.loop)
    deaths: Counter[str] = Counter()
    sent = room = 0
    asked = -ROOM
    while True:
        if time.monotonic() - asked > ROOM:  # not for every cell: the answer names every worker
            asked, room = time.monotonic(), max(1, len(client.nthreads()))
        while len(running) < room and (cell := order.take()) is not None:
            sent += 1
            # a key of its own for each try: a scheduler remembers what it has seen
            key = f"{cell.key}-{os.getpid()}-{sent}"
            future = client.submit(whole, work, cell, __version__, key=key, pure=False, retries=0)
            running[future] = cell
            ended.add(future)
        if not running:
            return
        try:
            future = ended.queue.get(timeout=WAIT)
        except Empty:
            _require_there(client, scheduler, order)
            progress(order.done, order.total, f"{len(running)} running")
            continue
        _require_there(client, scheduler, order)
        cell = running.pop(future)
        outcome = _outcome(future)
        if outcome == "died":
            asked = -ROOM  # there is a worker less
            deaths[cell.key] += DEATHS if scheduler.startswith(("tcp:", "tls:")) else 1
            outcome = "again"
            if deaths[cell.key] >= DEATHS and give_up is not None:
                outcome = give_up(cell)
        order.end(cell, outcome)
        progress(order.done, order.total, cell.label, (cell, outcome))


def _outcome(future: Any) -> Any:
    """What became of a cell, "died" where worker after worker did. Errors: what its work raised."""
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
            f"the scheduler {scheduler} went away: "
            f"{order.done} of {order.total} cells are done "
            "and kept",
            "Start it again, then run the same command",
        )


def _require_answer(address: str) -> None:
    """Errors: OSError, in words, where nothing listens; a Client would try for long, and leave a
    thread."""
    try:
        there = urlsplit(address)
        host, port = there.hostname or "", there.port or PORT
    except ValueError as error:
        raise OSError(str(error)) from None
    try:
        socket.create_connection((host, port), timeout=ANSWER).close()
    except ConnectionRefusedError:
        raise OSError(f"nothing listens at port {port} of {host}") from None
    except socket.gaierror:
        raise OSError(f"no machine is called {host}") from None
    except TimeoutError:
        raise OSError(f"{host} did not answer within {ANSWER:g} s") from None
    except OSError as error:
        raise OSError(error.strerror or str(error)) from None


@contextmanager
def _client(scheduler: str) -> Iterator[Client]:
    """A cluster, which may have no worker yet. Errors: HgvizError where none can be had."""
    import dask
    from distributed import Client

    from hgviz.cluster.owned import local, slurm

    quiet = {
        "distributed.scheduler.allowed-failures": 0,
        "distributed.scheduler.work-stealing": False,
        "distributed.worker.memory.terminate": False,
        "distributed.worker.profile.enabled": False,
        # not dask's own, which has the allocator give every page back: twice the time of a pass
        "distributed.nanny.pre-spawn-environ": dict.fromkeys(ONE_THREAD, "1"),
        "distributed.admin.tick.limit": "60s",  # a cell may hold the interpreter for long
        "logging.distributed": "critical",
    }
    kind, _, rest = scheduler.partition(":")
    with dask.config.set(quiet):
        try:
            owner: Any = None
            if kind == "local":
                owner = local(int(rest))
            elif kind == "slurm":
                owner = slurm(rest)
            else:
                _require_answer(scheduler)
            client = Client(owner or scheduler, timeout=ANSWER, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise HgvizError(f"there is no scheduler at {scheduler}: "
f"{(error.strerror or str(error)).splitlines()[0]}",
"Start one with `dask scheduler`, then workers with `dask worker`") from None  # fmt: skip
        try:
            yield client
        finally:
            client.close()
            if owner is not None:
                owner.close()
