"""Sweeps without models, and cells that take no time or misbehave. Workers import this."""

import errno
import os
import signal
import time
import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from hgviz.core import progress
from hgviz.store.studies import SweepFolder
from hgviz.study import Cell, Standing, StudyFile, Sweep
from hgviz.tasks.studies import compute_cell, packed

FILE = """
title = "Which activation, which heads"
question = "Does an activation other than softmax reach more, and whose heads can go?"
asks = [{asks}]
models = [{models}]
activations = [{activations}]
seeds = [{seeds}]
methods = [{methods}]
[[data]]
name = "reviews"
train = ["reviews.tsv"]
valid = "reviews.tsv"
[recipe]
steps = 3
"""
METHODS = ("michel", "loo", "fisher")
TEXTS, HEADS, ORDERS = 400, 24, 20
# what an activation is worth, and what an order is
WORTH = {"softmax": 0.80, "ymish": 0.83, "topk": 0.76}
BENDS = {"michel": 3.0, "loo": 4.0, "fisher": 2.8, "random": 1.4}
MADE = {"seconds": 2.0, "host": "alpha", "program": "0.1.0",
        "versions": {"python": "3.11.9", "torch": "2.6.0"}}  # fmt: skip


def study_file(models=("small",), activations=("softmax", "ymish"), seeds=(1, 2, 3),
               methods=METHODS):  # fmt: skip
    """The text of a study file."""
    named = ", ".join(f'{{name = "{one}", family = "bert", goal = "classes"}}' for one in models)
    words = [", ".join(f'"{one}"' for one in some) for some in (activations, methods)]
    asks = '"score", "curve"' + ', "compare"' * (len(activations) > 1)
    return FILE.format(asks=asks, models=named, activations=words[0], methods=words[1],
                       seeds=", ".join(map(str, seeds)))  # fmt: skip


def make_sweep(models=("small",), activations=("softmax", "ymish"), seeds=(1, 2, 3),
               methods=METHODS, folder=None):  # fmt: skip
    """A sweep whose cells are all done, in a folder where one is given."""
    standings = []
    for model in models:
        for activation in activations:
            for seed in seeds:
                place = {"data": "reviews", "model": model, "activation": activation,
                         "seed": str(seed)}  # fmt: skip
                standings += _of_model(place, activations[0], methods)
    text = study_file(models, activations, seeds, methods)
    if folder is not None:
        write(Path(folder), text, standings)
        return SweepFolder(folder).sweep()
    asked = msgspec.convert(tomllib.loads(text), StudyFile)
    return Sweep(asked, tuple(standings), "which-activation")


def write(folder, text, standings):
    """The folder of some cells; those that are done have results, those that failed their line."""
    kept = SweepFolder(folder)
    kept.write_plan(text, [one.cell for one in standings])
    for one in standings:
        if one.state == "done":
            kept.keep(one.cell.key, one.found, dict(one.made))
        elif one.state == "failed":
            kept.fail(one.cell.key, one.line)


def without(sweep, *keys, state="waiting", line=""):
    """The same sweep, some cells not done."""
    return replace(sweep, standings=tuple(
        Standing(one.cell, state, line=line) if one.cell.key in keys else one
        for one in sweep.standings
    ))  # fmt: skip


def _of_model(place, base, methods):
    seed = int(place["seed"])
    random = np.random.default_rng([seed, len(place["model"]), len(place["activation"])])
    worth = WORTH.get(place["activation"], 0.8) + 0.02 * (place["model"] == "large")
    worth += 0.004 * random.normal()
    # texts are as hard for one model as for another
    hard = np.random.default_rng(7).uniform(size=TEXTS)
    right = hard + 0.05 * random.normal(size=TEXTS) < worth
    train = Cell("train", {"plan": {**place}, "files": {"valid": "d" * 64}}, (), {}, place)
    data = {"data": "d" * 64, "columns": ["", ""], "device": "cpu", "threads": 1}
    found = {"metric": "accuracy", "value": float(right.mean()), "figures": {}, "steps": 3,
             "digest": train.key}  # fmt: skip
    yield _done(train, found)
    score = Cell("score", {"trained": train.key, **data}, (train.key,), {}, place)
    yield _done(score, {
        "metric": "accuracy", "value": float(right.mean()), "low": 0.0, "high": 1.0,
        "seen": TEXTS, "total": TEXTS, "off": [], "loss": float(1 - worth), "f1": 0.8, "mcc": 0.6,
        "cut": 0, "parameters": 12_345, "model": train.key, "right": packed(right),
    })  # fmt: skip
    measure = Cell("measure", {"trained": train.key, **data, "seed": seed}, (train.key,), {}, place)
    yield _done(measure, {"arrays": ["gradient"], "heads": HEADS, "examples": 200, "loss": 0.5,
                          "model": train.key})  # fmt: skip
    for method in (*methods, "random"):
        given = {"trained": train.key, **data, "seed": seed, "method": method}
        cell = Cell("curve", given, (train.key, measure.key), {}, {**place, "method": method})
        curves = [_curve(method, worth, random) for _ in range(ORDERS if method == "random" else 1)]
        yield _done(cell, {"curves": curves, "heads": HEADS})
    if place["activation"] != base:
        cell = Cell("compare", {"a": base, "b": train.key, **data}, (train.key,), {}, place)
        metrics = [{"metric": "entropy", "difference": -0.5 + 0.1 * random.normal()}]
        yield _done(cell, {"answers": {"agreement": 0.9}, "metrics": metrics, "heads": []})


def _curve(method, worth, random):
    off = list(range(0, HEADS + 1, 2))
    share = np.array(off) / HEADS
    bend = BENDS.get(method, 2.0) + 0.3 * random.normal()
    values = 0.5 + (worth - 0.5) * (1 - share ** max(bend, 0.3))
    return {"method": method, "seed": 0, "unit": "accuracy", "examples": 200, "order": [],
            "off": off, "values": values.tolist(), "loss": (1 - values).tolist(),
            "change": (values - values[0]).tolist()}  # fmt: skip


def _done(cell, found):
    return Standing(cell, "done", found, seconds=2.0, host="alpha", made=MADE)


# --- cells ----------------------------------------------------------------------------------------


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
    return partial(compute_cell, str(path), measure=measure)


def measure(folder, cell):
    """Do what the cell says, and give its number and what it needed."""
    traces = Path(folder.path) / "traces"
    traces.mkdir(exist_ok=True)
    trace = traces / f"{cell.key}-{len(list(traces.glob(f'{cell.key}-*')))}-{os.getpid()}"
    trace.touch()
    progress(0, 1, "begun")
    DO[cell.given["do"]](folder, cell)
    needed = [folder.found(key)["sum"] for key in cell.needs]
    return {"sum": cell.given["number"] + sum(needed)}


def tries(folder, cell):
    """The processes that tried a cell."""
    found = sorted((Path(folder.path) / "traces").glob(f"{cell.key}-*"))
    return [int(one.name.rpartition("-")[2]) for one in found]


def _note(folder, cell):
    progress(1, 1)


def _fail(folder, cell):
    raise ValueError("this one never works")


def _die(folder, cell):
    progress(0, 1)
    os.kill(os.getpid(), signal.SIGKILL)


def _die_once(folder, cell):
    if len(tries(folder, cell)) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    progress(0, 1)


def _wait(folder, cell):
    """Until a file says go, which lies in the folder."""
    while not (Path(folder.path) / "go").exists():
        time.sleep(0.01)
        progress(0, 1, "waiting")


def _full(folder, cell):
    progress(0, 1)
    if not (Path(folder.path) / "room").exists():
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError:
            raise RuntimeError("a library hides what the system said") from None


DO = {
    "note": _note, "fail": _fail, "die": _die, "die once": _die_once, "wait": _wait, "full": _full,
}  # fmt: skip
