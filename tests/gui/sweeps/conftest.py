"""Folders of studies with cells in every state, written as runs write them; nothing is computed."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from hgviz import tasks
from hgviz.store.sweep import SweepFolder
from hgviz.sweep import Cell

STUDY = """
title = "Which activation"
question = "Does one need fewer heads?"
asks = ["score", "curve", "compare"]
seeds = {seeds}
activations = ["softmax", "ymish"]
methods = ["michel"]
[[models]]
name = "small"
family = "bert"
[[data]]
name = "reviews"
valid = "reviews.tsv"
"""
RIGHT = {"count": 8, "bits": "f0"}


def planned(seeds=(1, 2), models=("small",), methods=("michel", "random")):
    """The cells of such a study, those first that others need."""
    cells = []
    for model in models:
        for seed in seeds:
            trained = []
            for activation in ("softmax", "ymish"):
                place = {
                    "data": "reviews", "model": model, "activation": activation, "seed": str(seed),
                }  # fmt: skip
                train = Cell("train", {"plan": {"data": {}}, "of": place}, (), {}, place)
                given = {"trained": train.key}
                measure = Cell("measure", {**given, "arrays": ["change"]}, (train.key,), {}, place)
                cells += [train, Cell("score", given, (train.key,), {}, place), measure]
                cells += [
                    Cell("curve", {**given, "method": one}, (train.key, measure.key), {},
                         {**place, "method": one})
                    for one in methods
                ]  # fmt: skip
                trained.append(train.key)
            a, b = trained
            given = {"a": {"trained": a}, "b": {"trained": b}}
            cells.append(Cell("compare", given, (a, b), {}, place))
    return cells


def found_by(cell):
    """What such a cell might find."""
    value = 0.8 + 0.01 * int(cell.place["seed"]) + 0.02 * (cell.place["activation"] == "ymish")
    curve = {
        "method": cell.place.get("method", ""), "seed": 0, "unit": "accuracy", "examples": 8,
        "order": [], "off": [0, 2, 4], "values": [value, value - 0.1, 0.5], "loss": [0.4] * 3,
        "change": [0.0] * 3,
    }  # fmt: skip
    return {
        "train": {"metric": "accuracy", "value": value},
        "score": {"metric": "accuracy", "value": value, "low": value - 0.02, "high": value + 0.02,
                  "loss": 0.4, "total": 8, "parameters": 1000, "right": RIGHT},
        "measure": {"heads": 4, "examples": 8, "arrays": ["change"]},
        "curve": {"heads": 4, "curves": [curve]},
        "compare": {"answers": {"difference": {"value": 0.012, "low": -0.01, "high": 0.03},
                                "agreement": 0.9}, "metrics": []},
    }[cell.work]  # fmt: skip


def finish_cell(folder, cell, host="node01"):
    """Keep what a cell found."""
    folder.keep(cell.key, found_by(cell), {"seconds": 2.0, "host": host})


@pytest.fixture
def folder(tmp_path):
    """A study of 22 cells of which nothing is done yet."""
    found = SweepFolder(tmp_path / "study")
    found.write_plan(STUDY.format(seeds=[1, 2]), planned())
    return found


@pytest.fixture
def begun(folder):
    """The same: a seed is done, one cell failed."""
    cells = folder.cells()
    for cell in cells:
        if cell.place["seed"] == "1":
            finish_cell(folder, cell)
    second = [one for one in cells if one.place["seed"] == "2"]
    folder.fail(second[5].key, "the loss is no number. Lower the rate", "Traceback: NaN")
    return folder


@pytest.fixture
def studied(program, begun):
    """A program on the page of that study, everything drawn."""
    show(program, begun)
    return program


def show(program, folder):
    """Open a folder and draw it."""
    program.commands.show_sweep(tasks.sweep_at(folder.path), str(folder.path))
    QApplication.processEvents()
    program.settle()
