"""Studies made without models, of one model and of many runs, whose cells take no time or
misbehave, and small classifiers over words with data for them. Workers import this."""

import errno
import json
import os
import signal
import time
import tomllib
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import msgspec
import numpy as np

from hgviz.core import HeadId, MetricEstimate, Provenance, progress
from hgviz.store.studies import SweepFolder
from hgviz.study import (
    NO_PREDICTION,
    UNKNOWN,
    Cell,
    LearnedImportance,
    Mask,
    PruningCurve,
    Standing,
    Study,
    StudyFile,
    Sweep,
)
from hgviz.tasks.studies import compute_cell, packed
from tests.making import make_spec

OPTIONAL = ("gradient", "token_gradient", "loss_change", "change", "alone", "shapley")
TEXT = "the cat sat on the mat and the dög sat on the log. " * 4
WORDS = ["the", "cat", "sat", "on", "mat", "and", "dog", "log"]


def make_study(seed=0, examples=9, asked="classes", done=1.0, without=(), off=(), curves=2):
    """A study whose beginning, a share `done` of its examples, is measured."""
    random = np.random.default_rng(seed)
    spec = make_spec((1, 2), 2)
    heads = spec.heads
    counts = np.ones(examples, np.int64)
    if asked != "classes":
        counts = random.integers(0, 5, examples)
        counts[random.integers(examples)] = 3
    places = np.concatenate([[0], np.cumsum(counts)])
    total, classes = int(places[-1]), 2 if asked == "classes" else spec.vocabulary
    reached = round(done * examples)
    known = np.arange(total) < places[reached]

    def some(rows, reached, sign=1):
        values = random.normal(size=(rows, len(heads))).astype(np.float32) ** sign
        values[reached:] = np.nan
        values[:, [heads.index(HeadId(*one)) for one in off]] = np.nan
        return values

    change = random.integers(-1, 2, (total, len(heads))).astype(np.int8)
    change[places[reached] :] = UNKNOWN
    arrays = {
        "gradient": some(examples, reached),
        "token_gradient": some(examples, reached, 2),
        "loss_change": some(total, places[reached]),
        "change": change,
        "alone": some(total, places[reached]),
        "shapley": some(3, 2),
    }
    arrays = {name: values for name, values in arrays.items() if name not in without}
    return Study(
        spec=spec, heads=heads, asked=asked, metric="accuracy", places=places,
        wanted=random.integers(0, classes, total),
        lengths=random.integers(1, 9, examples),
        loss=np.where(known, random.random(total), np.nan).astype(np.float32),
        given=np.where(known, random.integers(0, classes, total), NO_PREDICTION),
        data="rows.tsv", data_digest="5" * 64,
        labels=("no", "yes") if asked == "classes" else (), seed=3,
        off=frozenset(HeadId(*one) for one in off),
        sizes=random.random(examples) if asked == "next" else None,
        saved_parameters=random.random((len(heads), 3)),
        saved_flops=random.random((len(heads), 3)),
        learned=(
            LearnedImportance(
                "gates", random.random((2, len(heads))).astype(np.float32), "two runs"
            ),
        ),
        curves=tuple(make_curve(random, heads, examples, not at % 2) for at in range(curves)),
        masks=(
            Mask("none of layer 0", frozenset(heads[:2])),
            Mask(
                "scored", frozenset(), MetricEstimate("accuracy", 0.5, 0.4, 0.6, 9, 9),
                (0.1, -0.05, 0.2),
            ),
            Mask(
                "one window", frozenset(),
                MetricEstimate("bits_per_byte", 2.0, -np.inf, np.inf, 9, 9),
            ),
        ),
        made=Provenance("hgviz 0", "2026-01-01", seed=3, versions=(("numpy", "2"),)),
        arrays=arrays,
    )  # fmt: skip


def make_curve(random, heads, examples, timed):
    """A curve along a random order of all heads but one, at some of its points."""
    order = tuple(heads[at] for at in random.permutation(len(heads))[:-1])
    removed = np.unique(np.append(random.integers(0, len(order) + 1, 4), 0))
    numbers = {
        name: random.random(len(removed)).astype(np.float32)
        for name in ("values", "low", "high", "loss", "change", "change_low", "change_high")
    }
    rows = np.flatnonzero(random.integers(0, 2, examples))
    times = random.random((len(removed), 2)).astype(np.float32) + 1 if timed else None
    return PruningCurve("random", order, removed, rows=rows, seed=7, times=times, **numbers)


def classifier(folder, labels=("no", "yes"), **keys):
    """Write a random classifier over words, with its tokenizer; returns its folder."""
    import torch

    from hgviz.models.text import TokenizerPlan, train_tokenizer
    from tests.models.building import write_transformer

    coder = train_tokenizer(TokenizerPlan("words", least=1), [TEXT, "dog"], 1)
    write_transformer(
        folder, vocab_size=coder.size, family="bert", goal="classes", labels=list(labels),
        **{"n_layers": 1, "max_positions": 12, "dtype": torch.float32, **keys},
    )  # fmt: skip
    coder.save(folder)
    return folder


def rows(folder, count=100, labels=("no", "yes")):
    """Write a table of random sentences with labels; returns its path."""
    random = np.random.default_rng(5)
    lines = [
        f"{' '.join(random.choice(WORDS, random.integers(1, 9)))}\t{random.choice(labels)}"
        for _ in range(count)
    ]
    path = folder / "rows.tsv"
    path.write_text("sentence\tlabel\n" + "\n".join(lines) + "\n")
    return path


# --- studies of many runs -------------------------------------------------------------------------


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
    names = ", ".join(f'{{name = "{one}", family = "bert", goal = "classes"}}' for one in models)
    asks = ["score", "curve", *["compare"] * (len(activations) > 1)]
    lists = {"asks": asks, "activations": activations, "methods": methods, "seeds": seeds}
    return FILE.format(models=names, **{name: json.dumps(one)[1:-1] for name, one in lists.items()})


def make_sweep(models=("small",), activations=("softmax", "ymish"), seeds=(1, 2, 3),
               methods=METHODS, folder=None):  # fmt: skip
    """A study whose cells are all done, in a folder where one is given."""
    standings = []
    for model, activation, seed in product(models, activations, seeds):
        place = {"data": "reviews", "model": model, "activation": activation, "seed": str(seed)}
        standings += _of_model(place, activations[0], methods)
    text = study_file(models, activations, seeds, methods)
    if folder is not None:
        write(folder, text, standings)
        return SweepFolder(folder).sweep()
    asked = msgspec.convert(tomllib.loads(text), StudyFile)
    return Sweep(asked, tuple(standings), "which-activation")


def write(folder, text, standings):
    """Write a folder of cells, with results where they are done and lines where they failed."""
    study = SweepFolder(folder)
    study.write_plan(text, [one.cell for one in standings])
    for one in standings:
        if one.state == "done":
            study.keep(one.cell.key, one.found, dict(one.made))
        elif one.state == "failed":
            study.fail(one.cell.key, one.line)


def without(sweep, *keys, state="waiting", line=""):
    """The same study with some cells not done."""
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
    score = {"metric": "accuracy", "value": float(right.mean())}
    train = Cell("train", {"plan": {**place}, "files": {"valid": "d" * 64}}, (), {}, place)
    needs = (train.key,)

    def done(work, result, needs=needs, more_place=(), **given):
        cell = Cell(work, given, needs, {}, {**place, **dict(more_place)})
        return Standing(cell, "done", result, seconds=2.0, host="alpha", made=MADE)

    yield done("train", {**score, "figures": {}, "steps": 3, "digest": train.key}, (),
               **train.given)  # fmt: skip
    data = {"data": "d" * 64, "columns": ["", ""], "device": "cpu", "threads": 1}
    given = {"trained": train.key, **data}
    yield done("score", {
        **score, "low": 0.0, "high": 1.0, "seen": TEXTS, "total": TEXTS, "off": [],
        "loss": float(1 - worth), "f1": 0.8, "mcc": 0.6, "cut": 0, "parameters": 12_345,
        "model": train.key, "right": packed(right),
    }, **given)  # fmt: skip
    measure = done("measure", {"arrays": ["gradient"], "heads": HEADS, "examples": 200,
                               "loss": 0.5, "model": train.key}, **given, seed=seed)  # fmt: skip
    yield measure
    for method in (*methods, "random"):
        curves = [_curve(method, worth, random) for _ in range(ORDERS if method == "random" else 1)]
        yield done("curve", {"curves": curves, "heads": HEADS}, (*needs, measure.cell.key),
                   {"method": method}, **given, seed=seed, method=method)  # fmt: skip
    if place["activation"] != base:
        metrics = [{"metric": "entropy", "difference": -0.5 + 0.1 * random.normal()}]
        result = {"answers": {"agreement": 0.9}, "metrics": metrics, "heads": []}
        yield done("compare", result, a=base, b=train.key, **data)


def _curve(method, worth, random):
    off = list(range(0, HEADS + 1, 2))
    bend = BENDS.get(method, 2.0) + 0.3 * random.normal()
    values = 0.5 + (worth - 0.5) * (1 - (np.array(off) / HEADS) ** max(bend, 0.3))
    numbers = {"values": values, "loss": 1 - values, "change": values - values[0]}
    lists = {name: array.tolist() for name, array in numbers.items()}
    return {"method": method, "seed": 0, "unit": "accuracy", "examples": 200, "order": [],
            "off": off, **lists}  # fmt: skip


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
    """Do what the cell says, and return its number added to those of the cells it needs."""
    traces = Path(folder.path) / "traces"
    traces.mkdir(exist_ok=True)
    (traces / f"{cell.key}-{len(tries(folder, cell))}-{os.getpid()}").touch()
    progress(0, 1, "begun")
    DO[cell.given["do"]](folder, cell)
    return {"sum": cell.given["number"] + sum(folder.found(key)["sum"] for key in cell.needs)}


def tries(folder, cell):
    """The processes that tried a cell."""
    traces = sorted((Path(folder.path) / "traces").glob(f"{cell.key}-*"))
    return [int(trace.name.rpartition("-")[2]) for trace in traces]


def _fail(folder, cell):
    raise ValueError("this one never works")


def _die(folder, cell):
    os.kill(os.getpid(), signal.SIGKILL)


def _die_once(folder, cell):
    if len(tries(folder, cell)) == 1:
        _die(folder, cell)


def _wait(folder, cell):
    """Wait until the folder has a file "go"."""
    while not (Path(folder.path) / "go").exists():
        time.sleep(0.01)
        progress(0, 1, "waiting")


def _full(folder, cell):
    """Find the disk full, as long as the folder has no file "room"."""
    if not (Path(folder.path) / "room").exists():
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError:
            raise RuntimeError("a library hides what the system said") from None


DO = {
    "note": lambda folder, cell: None, "fail": _fail, "die": _die, "die once": _die_once,
    "wait": _wait, "full": _full,
}  # fmt: skip
