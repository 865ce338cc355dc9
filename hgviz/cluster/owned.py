"""Clusters that last as long as a run: workers on this machine, or jobs of Slurm."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from hgviz.core import HgvizError


def local(count: int) -> Any:
    """Workers of one thread each on this machine, one on each GPU by turns."""
    from distributed import Nanny, Scheduler, SpecCluster

    cards = gpus()
    workers = {
        number: {
            "cls": Nanny,
            "options": {
                "nthreads": 1, "memory_limit": None, "dashboard_address": None,
                "silence_logs": logging.CRITICAL,
                "env": {"CUDA_VISIBLE_DEVICES": cards[number % len(cards)]} if cards else {},
            },
        }
        for number in range(count)
    }  # fmt: skip
    address = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "dashboard": False}
    with _uninterrupted():
        return SpecCluster(
            scheduler={"cls": Scheduler, "options": address},
            workers=workers,
            silence_logs=logging.CRITICAL,
        )


def jobqueue() -> Any:
    """dask_jobqueue's module for Slurm. When it is imported it takes Ctrl+C for itself, to end the
    process without a word; that is given back."""
    before = signal.getsignal(signal.SIGINT)
    try:
        import dask_jobqueue.slurm
    finally:
        if signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)
    return dask_jobqueue.slurm


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl+C, which a terminal sends to all processes, is for this one alone: threads that begin
    here, and processes that these start, never hear of it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # where it begins, it lets the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def gpus() -> list[str]:
    """The GPUs of this machine, by what they are called in CUDA_VISIBLE_DEVICES."""
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return [one for one in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if one]
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return re.findall(r"^GPU (\d+):", listed.stdout, re.MULTILINE)


def slurm(profile: str) -> Any:
    """Workers as jobs of Slurm. profile: a YAML file with the options of dask_jobqueue's
    SLURMCluster, and jobs, how many."""
    import yaml

    try:
        with open(profile, encoding="utf-8") as file:
            options: dict[str, Any] = yaml.safe_load(file)
        jobs = int(options.get("jobs", 1))
        options = {name: value for name, value in options.items() if name != "jobs"}
    except OSError as error:
        raise HgvizError(f"cannot read {profile}: "
f"{(error.strerror or str(error)).lower()}",
"Give the profile of a cluster; see docs/studies.md") from None  # fmt: skip
    except (UnicodeDecodeError, yaml.YAMLError, AttributeError, ValueError) as error:
        raise HgvizError(f"{profile} is no profile of a cluster: "
f"{str(error).splitlines()[0]}",
"It is YAML with jobs, cores, memory, walltime, queue; see docs/studies.md") from None  # fmt: skip
    try:
        SLURMCluster = jobqueue().SLURMCluster
        # any port is good for the pages of the scheduler: two runs on one machine need two
        there = {"dashboard_address": ":0", **options.pop("scheduler_options", {})}
        wanted = {"processes": 1, **options, "scheduler_options": there}
        with _uninterrupted():
            return SLURMCluster(**wanted, n_workers=jobs)
    except ImportError:
        raise HgvizError(
            "Slurm needs dask-jobqueue: it is not installed", "Run: pip install 'hgviz[cluster]'"
        ) from None
    except (TypeError, ValueError, OSError) as error:
        raise HgvizError(
            f"no cluster by {profile}: {str(error).splitlines()[0]}", "Change it, or ask its admins"
        ) from None
