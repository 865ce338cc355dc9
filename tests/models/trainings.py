"""Small training files of every kind, and trainings that are stopped."""

import json
import random

import msgspec

from hgviz.models.training import read_plan, train
from tests.progress import cancelled

WINDOWS = [{"start": 0.0, "length": 16, "batch": 2}, {"start": 0.5, "length": 24, "batch": 1}]
CLASSIFIER = {
    "model": {
        "family": "bert", "goal": "classes", "d_model": 24, "d_ff": 32, "n_heads": 6, "n_layers": 1,
        "max_positions": 16, "segments": 0, "activations": "softmax",
    },
    "tokenizer": {"kind": "words", "size": 40},
    "data": {"train": ["train.tsv"], "valid": "dev.tsv"},
    "recipe": {"steps": 60, "batch": 16, "rate": 1e-2, "warmup": 5, "seed": 3, "save_every": 2,
               "evaluate_every": 30},
}  # fmt: skip
KINDS = {
    "next": {
        "model": {"hierarchy": "1@1 1@2 1@1", "vocab_size": 256, "d_model": 16, "n_heads": 2,
                  "positions": "rotary"},
        "data": {"train": ["a.txt"], "valid": "b.txt"},
        "recipe": {"steps": 60, "warmup": 2, "rate": 1e-2, "save_every": 2, "evaluate_every": 3,
                   "evaluate_length": 32, "stages": WINDOWS},
    },
    "masked": {
        "model": {**CLASSIFIER["model"], "goal": "masked", "max_positions": 20},
        "tokenizer": {"kind": "words", "size": 30},
        "data": {"train": ["words.txt"], "valid": "words.txt"},
        "recipe": {"steps": 80, "warmup": 5, "rate": 2e-2, "save_every": 2, "evaluate_every": 40,
                   "evaluate_length": 16, "stages": [{"start": 0.0, "length": 12, "batch": 8}]},
    },
    "classes": CLASSIFIER,
    "pairs": {
        "model": {"family": "transformer", "d_model": 32, "d_ff": 64, "n_heads": 4, "n_layers": 1,
                  "norm_first": True, "final_norm": True, "positions": "learned",
                  "max_positions": 8, "activations": ["softmax", "ymish"]},
        "tokenizer": {"kind": "words", "size": 20},
        "data": {"train": ["pairs.tsv"], "valid": "pairs.tsv"},
        "recipe": {"steps": 40, "batch": 16, "rate": 1e-2, "warmup": 5, "save_every": 3,
                   "evaluate_every": 20},
    },
    "segments": {
        "model": {"family": "dynamic", "vocab_size": 256, "d_model": 16, "d_ff": 24, "n_heads": 2,
                  "n_layers": [1, 1, 1], "boundaries": "learned"},
        "data": {"train": ["a.txt"], "valid": "b.txt"},
        "recipe": {"steps": 40, "warmup": 4, "rate": 1e-2, "initial": 0.2, "save_every": 20,
                   "evaluate_every": 20, "evaluate_length": 48,
                   "stages": [{"start": 0.0, "length": 40, "batch": 4}]},
    },
}  # fmt: skip
ENGLISH, GERMAN = ("one", "two", "three", "four"), ("eins", "zwei", "drei", "vier")


def write_data(folder):
    """The files of all KINDS. Of two names the first is the class: no bag of words can tell."""
    (folder / "a.txt").write_text("the cat sat on the mat and the dog sat on the log. " * 20)
    (folder / "b.txt").write_text("the dog sat on the mat. " * 20)
    # the same word over and over: whoever looks at any other token knows it
    lines = [" ".join([word] * 60) for word in ("one", "two", "three", "four", "five") * 2]
    (folder / "words.txt").write_text("\n".join(lines))
    for name, count in (("train", 300), ("dev", 60)):
        dice, rows = random.Random(count), ["sentence\tlabel"]
        for _ in range(count):
            names = dice.sample(["ann", "bob"], 2)
            middle = " ".join(dice.choices(["and", "or", "so"], k=dice.randrange(4)))
            rows.append(f"{names[0]} {middle} {names[1]}\t{names[0]}")
        (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n")
    dice, rows = random.Random(0), ["source\ttarget"]
    for _ in range(200):
        words = [dice.randrange(4)] * dice.randrange(1, 4)
        rows.append("\t".join(" ".join(names[i] for i in words) for names in (ENGLISH, GERMAN)))
    (folder / "pairs.tsv").write_text("\n".join(rows) + "\n")


def plan(folder, tables, **changes):
    """The plan of tables in a folder, with other keys in some of them; None: without a table."""
    tables = dict(tables)
    for name, keys in changes.items():
        tables[name] = None if keys is None else {**tables.get(name, {}), **keys}
    tables = {name: keys for name, keys in tables.items() if keys is not None}
    (folder / "plan.toml").write_bytes(msgspec.toml.encode(tables))
    return read_plan(folder / "plan.toml")


def log(folder):
    """The rows of a training's log."""
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def interrupt(plan, folder, number):
    """Train until a step of this number is done, and end there."""
    cancelled(train, plan, folder, when=lambda step: step.value["step"] >= number)


def train_twice(plan, folder, *steps, files=("model.safetensors",)):
    """Train in one go, and again with a stop after each of some steps: the files are the same.

    Returns both reports.
    """
    whole = train(plan, folder / "whole")
    for step in steps:
        interrupt(plan, folder / "stopped", step)
        assert (folder / "stopped" / "state.pt").exists()
    stopped = train(plan, folder / "stopped")
    assert not (folder / "stopped" / "state.pt").exists()
    for name in files:
        assert (folder / "whole" / name).read_bytes() == (folder / "stopped" / name).read_bytes()
    return whole, stopped
