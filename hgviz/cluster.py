"""Computing the runs of a study on a cluster: workers on this machine, those of a dask scheduler,
or jobs of Slurm.

dask.distributed (extra `cluster`) is imported when a scheduler is asked for. A run leaves its
result in a file; only its description and whether it is done cross the network.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from graphlib import TopologicalSorter
from multiprocessing import resource_tracker
from queue import Empty
from typing import Any
from urllib.parse import urlsplit

from hgviz import __version__
from hgviz.core import Cancelled, cancelled_if, progress, raise_if_cancelled
from hgviz.errors import HgvizError, require

Work = Callable[[Any], bool]  # computes a cell; returns whether it is done, not failed

PORT = 8786  # of a scheduler whose address has none
ANSWER = 10.0  # s until a scheduler answers
FIRST_WORKER = 60.0  # s until there is a worker; jobs of Slurm may wait for as long as they like
ROOM = 5.0  # s between two counts of the workers
WAIT = 0.5  # s between two reports while nothing ends
CONFIG = {
    "distributed.scheduler.allowed-failures": 4,  # a cell fails when 5 workers die twice
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
    # dask's own has the allocator give every page back, which doubles the time of a pass
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"
    ),
    "distributed.admin.tick.limit": "60s",  # a cell may hold the interpreter for long
    "logging.distributed": "critical",
}


def require_scheduler(scheduler: str) -> None:
    """Require a well-formed scheduler and dask.distributed. Raises HgvizError.

    scheduler: "local:N", "tcp://host:8786" or "slurm:profile.yaml".
    """
    kind, _, rest = scheduler.partition(":")
    is_local = kind == "local" and rest.isdecimal() and 0 < int(rest) <= 1024
    require(
        is_local or re.match("(tcp|tls)://|slurm:.", scheduler),
        f"{scheduler[:60]!r} is not a scheduler",
        "Write local:N, tcp://host:8786 or slurm:profile.yaml",
    )
    try:
        import distributed  # noqa: F401
    except ImportError:
        what = f"the scheduler {scheduler} needs dask.distributed, which is not installed"
        raise HgvizError(what, "Run: pip install 'hgviz[cluster]'") from None


def compute(cells: Sequence[Any], work: Work, scheduler: str, folder: str, died: Work) -> None:
    """Compute cells on workers, each once those of `cells` that it needs are done.

    died: called in place of work for a cell at which worker after worker died. folder: what all
    workers must see. The progress carries (cell, whether it is done) for each cell that ends.
    Raises HgvizError for a scheduler that does not answer or goes away and for workers with
    another version, and whatever work raises; all results that are written stay.
    """
    with connect(scheduler) as client:
        _require_workers(client, scheduler, folder)
        _compute(client, cells, work, scheduler, died)


def _compute(client: Any, cells: Sequence[Any], work: Work, scheduler: str, died: Work) -> None:
    """Submit as many cells at a time as there are workers.

    dask computes a cell again when its worker dies, and gives it up after some deaths, which it
    blames on all cells that the worker had; so in the end such a cell is tried alone.
    """
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    by_key = {cell.key: cell for cell in cells}
    order = TopologicalSorter({cell.key: by_key.keys() & {*cell.needs} for cell in cells})
    order.prepare()
    ready = deque(order.get_ready())
    running: dict[Any, Any] = {}  # cells by their futures
    ended = as_completed(loop=client.loop)
    suspects: dict[str, bool] = {}  # keys of cells whose workers died, and whether they ran alone
    done = room = 0
    counted = -ROOM
    while ready or running or not all(suspects.values()):
        if not ready and not running:
            ready.append(next(key for key, was_alone in suspects.items() if not was_alone))
            suspects[ready[0]] = True
        if time.monotonic() - counted > ROOM:  # seldom: the answer names every worker
            counted, room = time.monotonic(), max(1, len(client.nthreads()))
        while ready and len(running) < room:
            cell = by_key[ready.popleft()]
            future = client.submit(compute_on_worker, work, cell, __version__, pure=False)
            running[future] = cell
            ended.add(future)
        try:
            future = ended.queue.get(timeout=WAIT)
        except Empty:
            future = None
        require(
            client.status == "running",
            f"the scheduler {scheduler} disconnected: {done} of {len(cells)} runs are saved",
            "Start it again, then run the same command",
        )
        if future is None:
            progress(done, len(cells), f"{len(running)} running")
            continue
        cell = running.pop(future)
        try:
            is_done = future.result()
        except KilledWorker:
            if not suspects.setdefault(cell.key, False):
                continue
            is_done = died(cell)
        if is_done:
            order.done(cell.key)
            ready += order.get_ready()
        done += 1
        progress(done, len(cells), cell.label, (cell, is_done))


_one_at_a_time = threading.Lock()  # torch has one number of threads for the whole process


def compute_on_worker(work: Work, cell: Any, version: str) -> bool:
    """Compute a cell on a worker; a worker that is told to close gives it back to the scheduler.

    Raises HgvizError where the command is of another version than the worker.
    """
    from distributed import Reschedule, get_worker

    def is_closing() -> bool:
        try:
            return get_worker().status.name in ("closing", "closed", "stopping", "failed")
        except ValueError:
            return False

    _require_version(socket.gethostname(), __version__, version)
    with _one_at_a_time, cancelled_if(is_closing):
        try:
            raise_if_cancelled()
            return work(cell)
        except Cancelled:
            raise Reschedule from None


def _require_workers(client: Any, scheduler: str, folder: str) -> None:
    """Wait for the first worker; require that all have this version and see the folder.

    Workers that come later check the version themselves, with each cell.
    """
    start = time.monotonic()
    while not client.nthreads():
        require(
            scheduler.startswith("slurm:") or time.monotonic() - start < FIRST_WORKER,
            f"{scheduler} has no worker: none connected within {FIRST_WORKER:.0f} s",
            "Start workers with `dask worker`, or read the log of the cluster",
        )
        progress(0, 1, "waiting for a worker")
        time.sleep(WAIT)
    for address, worker in client.get_versions(packages=["hgviz"])["workers"].items():
        _require_version(address, worker["packages"].get("hgviz"), __version__)
    with tempfile.NamedTemporaryFile(prefix=".seen-", dir=folder) as marker:
        seen = client.run(os.path.exists, marker.name)
    blind = [address for address, sees in seen.items() if not sees]
    if blind:
        raise HgvizError(
            f"the worker {blind[0]} cannot access {folder}: "
            f"{len(blind)} of {len(seen)} workers do not share this folder with this machine",
            "Choose a folder that all machines have at the same path",
        )


def _require_version(where: str, theirs: str | None, ours: str) -> None:
    require(
        theirs == ours,
        f"the worker {where} has {f'hgviz {theirs}' if theirs else 'no hgviz'}: "
        f"this command needs hgviz {ours}",
        "Install the same version there and restart the worker",
    )


# --- clusters -------------------------------------------------------------------------------------


@contextmanager
def connect(scheduler: str) -> Iterator[Any]:
    """A client of a scheduler, which is started and ended here unless it has an address."""
    import dask
    from distributed import Client

    kind, _, rest = scheduler.partition(":")
    with dask.config.set(CONFIG):
        try:
            cluster = {"local": local_workers, "slurm": slurm_jobs}.get(kind, lambda _: None)(rest)
            if cluster is None:  # a Client would try for long, and leave a thread
                address = urlsplit(scheduler)
                place = (address.hostname or "", address.port or PORT)
                socket.create_connection(place, timeout=ANSWER).close()
            client = Client(cluster or scheduler, timeout=ANSWER, set_as_default=False)
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).splitlines()[0].lower()
            raise HgvizError(
                f"there is no scheduler at {scheduler}: {reason}",
                "Start one with `dask scheduler`, then workers with `dask worker`",
            ) from None
        try:
            yield client
        finally:
            client.close()
            if cluster is not None:
                cluster.close()


def local_workers(count: str) -> Any:
    """Workers of one thread each on this machine; where it has GPUs, one GPU each by turns."""
    from distributed import Nanny, Scheduler, SpecCluster

    class ImpatientNanny(Nanny):
        """Starts a worker anew when it dies, and does not wait for its cell when it ends it."""

        async def kill(self, timeout: float = 5, reason: str = "nanny-kill") -> None:
            await super().kill(min(timeout, 0.5), reason)

    if "CUDA_VISIBLE_DEVICES" in os.environ:
        gpus = [name for name in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if name]
    else:
        try:
            listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=20).stdout
        except (OSError, subprocess.TimeoutExpired):
            listed = b""
        gpus = re.findall(r"^GPU (\d+):", listed.decode(), re.MULTILINE)
    options = {"nthreads": 1, "memory_limit": None, "dashboard_address": None,
               "silence_logs": logging.CRITICAL}  # fmt: skip
    workers = {}
    for number in range(int(count)):
        env = {"CUDA_VISIBLE_DEVICES": gpus[number % len(gpus)]} if gpus else {}
        workers[number] = {"cls": ImpatientNanny, "options": {**options, "env": env}}
    address = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "dashboard": False}
    with _interrupts_kept():
        scheduler = {"cls": Scheduler, "options": address}
        return SpecCluster(scheduler=scheduler, workers=workers, silence_logs=logging.CRITICAL)


def slurm_jobs(profile: str) -> Any:
    """Workers as jobs of Slurm. Raises HgvizError.

    profile: a YAML file with the options of dask_jobqueue's SLURMCluster, and jobs, how many.
    """
    import yaml

    try:
        with open(profile, encoding="utf-8") as file:
            options: dict[str, Any] = dict(yaml.safe_load(file))
        jobs = int(options.pop("jobs", 1))
    except OSError as error:
        what = f"cannot read {profile}: {(error.strerror or str(error)).lower()}"
        raise HgvizError(what, "Give a cluster profile; see `hgviz docs study`") from None
    except (yaml.YAMLError, TypeError, ValueError) as error:
        raise HgvizError(
            f"{profile} is not a cluster profile: {str(error).splitlines()[0]}",
            "Write YAML with jobs, cores, memory, walltime, queue; see `hgviz docs study`",
        ) from None
    # any port will do for the pages of the scheduler: two runs on one machine need two
    scheduler = {"dashboard_address": ":0", **options.pop("scheduler_options", {})}
    options = {"processes": 1, **options, "scheduler_options": scheduler, "n_workers": jobs}
    try:
        with _interrupts_kept():
            from dask_jobqueue import slurm

            return slurm.SLURMCluster(**options)
    except ImportError:
        what = "Slurm needs dask-jobqueue, which is not installed"
        raise HgvizError(what, "Run: pip install 'hgviz[cluster]'") from None
    except (TypeError, ValueError, OSError) as error:
        what = f"cannot start a cluster with {profile}: {str(error).splitlines()[0]}"
        raise HgvizError(what, "Change the profile, or ask the cluster's admins") from None


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Leave Ctrl+C, which a terminal sends to all processes, to this one alone.

    Threads and processes that start inside ignore it; a handler that is set inside (dask_jobqueue
    sets one) is removed again.
    """
    handler = signal.getsignal(signal.SIGINT)
    has_mask = hasattr(signal, "pthread_sigmask")
    if has_mask:
        resource_tracker.ensure_running()  # it unblocks the signal when it starts
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not handler:
            signal.signal(signal.SIGINT, handler)
        if has_mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


__all__ = ["Work", "compute", "require_scheduler"]
