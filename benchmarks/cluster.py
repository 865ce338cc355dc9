"""Studies on a cluster: what it costs beside the work, what a second worker gains, and where a
study for a thousand GPUs would break.

    python benchmarks/cluster.py             about six minutes
    python benchmarks/cluster.py overhead    or gain, plan, messages: that part alone

Overhead: cells that wait a second, on local:2, with the files that every cell has. Gain: heads of
the sample measured by one worker and by two, in turn. Plan: a grid of 130,000 cells is planned,
written, filled with results of the size that real ones have and read; and a scheduler with 64
workers is given cells that do nothing, so that what it does for each can be counted.
"""

import inspect
import json
import logging
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from table import heading, line

from hgviz import cluster
from hgviz.store.studies import SweepFolder, read_study_file
from hgviz.study import Cell
from hgviz.tasks.studies import compute_cell, plan

CELLS, SECONDS = 240, 1.0
ROUNDS = 3
GPUS = 1000
GAIN = """
asks = ["curve"]
methods = ["loo"]
seeds = [{seeds}]
[[models]]
name = "sample"
checkpoint = "sample/softmax"
[[data]]
valid = "sample/reviews.tsv"
[curve]
limit = 600
random = 0
"""
LARGE = """
asks = ["score", "curve"]
activations = [{activations}]
seeds = [{seeds}]
methods = ["signed", "michel", "michel-token", "bertology", "fisher", "loo", "all-but-one"]
{models}
{data}
[tokenizer]
size = 500
[recipe]
steps = 1000
"""

WORKERS = """
import asyncio
from distributed import Worker

async def stay():
    workers = [Worker("{address}", nthreads=1, dashboard=False) for _ in range({count})]
    await asyncio.gather(*workers)
    await asyncio.gather(*(one.finished() for one in workers))

asyncio.run(stay())
"""


def wait(path, cell):
    """Wait for a second, and write a result as every cell does."""
    time.sleep(SECONDS)
    SweepFolder(path).keep(cell.key, {"value": 1.0}, {"seconds": SECONDS})
    return True


def nothing(cell):
    """Do nothing, to see what a cell costs."""
    return True


def main():
    """Print the lines of every part, or of the one that is named."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    parts = {"overhead": overhead, "gain": gain, "plan": large, "messages": messages}
    for name in sys.argv[1:] or parts:
        with tempfile.TemporaryDirectory() as folder:
            parts[name](Path(folder))


def overhead(path):
    """Seconds beside the work, start and end of the cluster included."""
    heading(f"{CELLS} cells of {SECONDS:.0f} s on local:2")
    cells = [Cell("wait", {"number": number}) for number in range(CELLS)]
    folder = SweepFolder(path)
    folder.write_plan('models = [{name = "none", d_model = 8}]\ndata = [{valid = "x"}]\n', cells)
    took = timed(cells, partial(wait, str(path)), "local:2", path)
    ideal = CELLS * SECONDS / 2
    line("wall time beyond the work", f"{100 * (took / ideal - 1):.1f} %", "at most 5 %")
    line("of it the start and end of the cluster", f"{timed([], nothing, 'local:2', path):.1f} s")


def gain(path):
    """The same study by one worker, by two and by two processes that know of no cluster, in turn:
    what those gain is what the two cores were free to give at that time."""
    heading("heads of the sample measured, one loss at a time: 24 cells")
    file = path / "study.toml"
    file.write_text(GAIN.format(seeds=", ".join(map(str, range(12)))))
    cells = plan(read_study_file(file), path)
    found = {"local:1": [], "local:2": [], "apart": []}
    for number in range(ROUNDS):
        for scheduler, times in found.items():
            out = path / f"{scheduler[-1]}-{number}"
            SweepFolder(out).write_plan(file.read_text(), cells)
            if scheduler == "apart":
                times.append(apart(cells, str(out)))
            else:
                times.append(timed(cells, partial(compute_cell, str(out)), scheduler, out))
            shutil.rmtree(out)
    one, two, two_apart = (statistics.median(times) for times in found.values())
    line("one worker", f"{one:.1f} s")
    line("two workers", f"{two:.1f} s")
    line("one / two", f"{one / two:.2f}", "at least 1.7")
    line("one / two processes without a cluster", f"{one / two_apart:.2f}")


def apart(cells, path):
    """Seconds that every other cell takes in one process and the rest in another."""
    begun = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.starmap(half, [(path, cells[::2]), (path, cells[1::2])], chunksize=1)
    return time.perf_counter() - begun


def half(path, cells):
    """Compute cells one after the other."""
    for cell in cells:
        compute_cell(path, cell)


def large(path):
    """What a study of ten thousand trainings asks of files, of memory and of a scheduler."""
    heading(f"a study for {GPUS:,} GPUs")
    rows = Path("resources/sample/reviews.tsv").read_text()
    for n in range(5):  # other data each, or cells of two would be one
        (path / f"rows-{n}.tsv").write_text(rows[: len(rows) - n])
    models = [f'[[models]]\nname = "{n}"\nfamily = "bert"\ngoal = "classes"\nd_model = {8 * n}\n'
              f"n_heads = 4\nn_layers = 2\n" for n in range(1, 11)]  # fmt: skip
    data = [f'[[data]]\nname = "{n}"\ntrain = ["rows-{n}.tsv"]\nvalid = "rows-{n}.tsv"\n'
            for n in range(5)]  # fmt: skip
    file = path / "study.toml"
    names = ["softmax", "tanh", "swish", "selu", "elu", "leaky_relu", "ymish", "linear"]
    names += ["rbf", "poly2"]
    file.write_text(
        LARGE.format(
            activations=", ".join(f'"{one}"' for one in names), models="\n".join(models),
            seeds=", ".join(map(str, range(20))), data="\n".join(data),
        )
    )  # fmt: skip
    begun = time.perf_counter()
    cells = plan(read_study_file(file), path)
    line("cells", f"{len(cells):,}")
    line("to plan them", f"{time.perf_counter() - begun:.1f} s")
    folder = SweepFolder(path / "out")
    begun = time.perf_counter()
    folder.write_plan(file.read_text(), cells)
    line("to write the plan", f"{time.perf_counter() - begun:.1f} s")
    size = folder.path.joinpath("plan.json").stat().st_size
    line("plan.json", f"{size / 2**20:.0f} MB")
    line("of it a cell", f"{size / len(cells):,.0f} bytes")
    results(folder, cells)
    begun = time.perf_counter()
    sweep = folder.sweep()
    line("to see how all stand, the first time", f"{time.perf_counter() - begun:.1f} s")
    assert sweep.complete
    begun = time.perf_counter()
    folder.sweep(sweep)
    line("and again", f"{time.perf_counter() - begun:.1f} s")


def results(folder, cells):
    """Results of the size that those of a small study have, by their kind."""
    sizes = {"train": 500, "score": 700, "measure": 400, "curve": 1500}
    written = Counter()
    for cell in cells:
        told = {"found": {"filler": "x" * sizes[cell.work]}, "made": {"seconds": 1.0}}
        path = folder.result_at(cell.key)
        path.write_text(json.dumps(told))
        written["bytes"] += path.stat().st_size
    line("bytes of results, but for models and studies", f"{written['bytes'] / 2**20:.0f} MB")


def messages(path):
    """Cells that do nothing, so that what is left is what a scheduler does for a cell."""
    from distributed.scheduler import heartbeat_interval

    heading("a scheduler")
    with cells_on(inside(16)) as (there, client, took):
        heard, sent = counted(there.scheduler)
        count = took()[0]
        about = sum(heard[name] for name in heard if "heartbeat" not in name)
        line("messages to the scheduler for a cell", f"{about / count:.1f}")
        line("messages from it for a cell", f"{sent['all'] / count:.1f}")
    with scheduler_process() as (pid, address), cells_on(outside(address, 64)) as (_, _, took):
        before = processor(pid)
        time.sleep(10)
        idle = (processor(pid) - before) / 10 / 64
        before, wire = processor(pid), loopback()
        count, seconds = took()
        busy = (processor(pid) - before - idle * 64 * seconds) / count
        line("bytes on the wire for a cell, both ways", f"{(loopback() - wire) / count:,.0f}")
        line("scheduler's processor time for a cell", f"{1000 * busy:.2f} ms")
        line("and for each of 64 workers that wait, a second", f"{1000 * idle:.2f} ms")
        idle *= heartbeat_interval(64) / heartbeat_interval(GPUS)  # many say less often they live
        left = 1 - GPUS * idle
        line(
            f"share of time that {GPUS:,} waiting workers take of it (computed)",
            f"{100 * GPUS * idle:.0f} %",
        )
        line(f"seconds that a cell must take to keep {GPUS:,} at work (computed)",
             f"{GPUS * busy / left:.1f} s")  # fmt: skip


@contextmanager
def cells_on(there):
    """A cluster, its client, and what computes cells on it and says how many and how long."""
    from distributed import Client

    with there as owner, Client(owner.scheduler_address, set_as_default=False) as client:
        client.wait_for_workers(len(owner.workers))

        def took(count=2000):
            cells = [Cell("nothing", {"number": number}) for number in range(count)]
            begun = time.perf_counter()
            cluster._compute(client, cells, nothing, "", nothing)
            return count, time.perf_counter() - begun

        yield owner, client, took


def inside(count):
    """A scheduler and workers in this process."""
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=count, threads_per_worker=1, processes=False, dashboard_address=None
    )


@contextmanager
def outside(address, count):
    """Workers in a process of their own for a scheduler in another."""
    command = [sys.executable, "-c", WORKERS.format(address=address, count=count)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdin=subprocess.PIPE)
    try:
        yield SimpleNamespace(scheduler_address=address, workers=range(count))
    finally:
        process.terminate()
        process.wait()


@contextmanager
def scheduler_process():
    """A scheduler as a cluster has it: its process and its address."""
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0",
               "--dashboard-address", "", "--no-dashboard"]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "scheduler.json"
        process = subprocess.Popen(
            [*command, "--scheduler-file", str(told)], stderr=subprocess.DEVNULL, cwd=folder
        )
        try:
            while not told.exists():
                time.sleep(0.1)
            yield process.pid, json.loads(told.read_text())["address"]
        finally:
            process.terminate()
            process.wait()


def processor(pid):
    """Seconds of processor time that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def loopback():
    """Bytes that have gone through the loopback device."""
    row = next(one for one in Path("/proc/net/dev").read_text().splitlines() if "lo:" in one)
    return int(row.partition(":")[2].split()[0])


def counted(scheduler):
    """Counters of what a scheduler hears, by name, and of what it sends."""
    heard, sent = Counter(), Counter()

    def counting(name, handler):
        def heard_one(*given, **named):
            heard[name] += 1
            return handler(*given, **named)

        async def awaited(*given, **named):
            return await heard_one(*given, **named)

        return awaited if inspect.iscoroutinefunction(handler) else heard_one

    for name, handler in list(scheduler.stream_handlers.items()):
        scheduler.stream_handlers[name] = counting(name, handler)
    for each in list(scheduler.stream_comms.values()):
        plain = each.send

        def send(*messages, plain=plain):
            sent["all"] += len(messages)
            return plain(*messages)

        each.send = send
    return heard, sent


def timed(cells, work, scheduler, path):
    """Seconds that some cells take."""
    begun = time.perf_counter()
    cluster.compute(cells, work, scheduler, str(path), work)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
