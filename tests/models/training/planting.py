"""A small classifier whose heads are known to solve its task, to interfere, or not to matter."""

import json
import random

import msgspec
import torch

from hgviz.core import HeadId
from hgviz.models.formats.checkpoint import save
from hgviz.models.training import read_plan, train
from tests.models.building import make_transformer
from tests.progress import cancelled

PLANTED = {
    "vocab_size": 256, "d_model": 8, "n_heads": 4, "n_layers": 1, "d_ff": 8, "form": "encoder",
    "goal": "classes", "labels": ["a", "b"], "pooler": "none", "positions": "none",
    "norm_first": True,
}  # fmt: skip
SOLVES, INTERFERES = HeadId(0, 1), HeadId(0, 2)
CAUSAL = {"method": "causal", "lambda": 0.02}


def plant(folder):
    """A classifier of bytes whose head 0.1 tells a from b; 0.2 is swayed by c and d, which mean
    nothing, and what the others say is never read."""
    model = make_transformer(**PLANTED)
    model.requires_grad_(False)
    for name, parameter in model.named_parameters():
        parameter.fill_(float("ln" in name and name.endswith("weight")))
    pair = torch.tensor([1.0, -1.0], dtype=torch.float64)
    embed, attention = model.embed.token.weight, model.middle["0"].attn
    for letters, first in (("ab", 0), ("cd", 2), (">", 4)):
        for sign, letter in zip((1, -1), letters, strict=False):
            embed[ord(letter), first : first + 2] = sign * pair
    # every head attends to all tokens alike: a value in its first row, said by its first column
    for head, reads, says in ((0, 0, 4), (1, 0, 6), (2, 2, 6), (3, 2, 4)):
        attention.v.weight[2 * head, reads : reads + 2] = pair
        attention.o.weight[says : says + 2, 2 * head] = 4 * pair
    model.head.classifier.weight[0, 6:] = pair
    model.head.classifier.weight[1, 6:] = -pair
    save(folder, model.config, model.state_dict())


def write_rows(folder):
    """Texts of one a or b, which is their label, among letters that say nothing."""
    dice = random.Random(0)
    for name, count in (("train", 160), ("dev", 80)):
        rows = []
        for _ in range(count):
            label = dice.choice("ab")
            letters = [label, *dice.choices("cd", k=5)]
            dice.shuffle(letters)
            rows.append(f">{''.join(letters)}\t{label}")
        (folder / f"{name}.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n")


def plan(folder, gates, recipe=None, **model):
    """A plan that goes on from folder/model."""
    data = {
        "model": {"from": "model", **model},
        "data": {"train": ["train.tsv"], "valid": "dev.tsv"},
        "recipe": {
            "steps": 90, "batch": 32, "warmup": 5, "threads": 1, "seed": 1, "save_every": 2,
            "evaluate_every": 45, **(recipe or {}),
        },
        **({"gates": gates} if gates else {}),
    }  # fmt: skip
    path = folder / "plan.toml"
    path.write_bytes(msgspec.toml.encode(data))
    return read_plan(path)


def gates_of(folder):
    return json.loads((folder / "gates.json").read_text())


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
    stopped = train(plan, folder / "stopped")
    for name in files:
        assert (folder / "whole" / name).read_bytes() == (folder / "stopped" / name).read_bytes()
    return whole, stopped
