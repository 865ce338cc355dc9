"""Gates, heads off and checkpoints with fewer heads in every kind of training."""

import json

import msgspec
import pytest
import torch

from hgviz.core import HeadId, finish
from hgviz.models import open_model
from hgviz.models.formats.checkpoint import save
from hgviz.models.formats.readers import read
from hgviz.models.surgery import removal
from hgviz.models.training import read_plan, train
from tests.models.building import write_checkpoint
from tests.models.folders import own_bert
from tests.models.training.test_pairs import PLAN as PAIRS

TEXT = "the cats sat , un the cat .\n" * 60
STAGES = [{"start": 0.0, "length": 12, "batch": 4}]
BYTES = {"vocab_size": 256, "hierarchy": "1@1 1@2 1@4 1@2 1@1", "positions": "relative"}
GATES = ({"method": "gates", "lambda": 0.1, "freeze": False}, {"method": "subset", "keep": 3},
         {"method": "causal", "lambda": 0.1})  # fmt: skip


def hourglass(folder):
    write_checkpoint(folder / "model", dtype=torch.float32, **BYTES)
    return ["text.txt"], "text.txt"


def masked(folder):
    own_bert(folder / "model", goal="masked")
    return ["text.txt"], "text.txt"


def pairs(folder):
    (folder / "rows.tsv").write_text("source\ttarget\n" + "one two\teins zwei\ntwo\tzwei\n" * 20)
    text = PAIRS.replace("train.tsv", "rows.tsv").replace("dev.tsv", "rows.tsv")
    (folder / "first.toml").write_text(text.replace("steps = 40", "steps = 2"))
    finish(train(read_plan(folder / "first.toml"), folder / "model"))
    return ["rows.tsv"], "rows.tsv"


def plan(folder, make, gates=None, **model):
    """Three steps from what make wrote into folder/model."""
    (folder / "text.txt").write_text(TEXT)
    train, valid = make(folder)
    data = {
        "model": {"from": "model", **model},
        "data": {"train": train, "valid": valid},
        "recipe": {"steps": 3, "batch": 4, "rate": 1e-2, "decay": 0.0, "stages": STAGES,
                   "evaluate_every": 2, "evaluate_length": 12},
        **({"gates": gates} if gates else {}),
    }  # fmt: skip
    (folder / "plan.toml").write_bytes(msgspec.toml.encode(data))
    return read_plan(folder / "plan.toml")


@pytest.mark.parametrize("gates", GATES, ids=[one["method"] for one in GATES])
@pytest.mark.parametrize("make", [hourglass, masked, pairs])
def test_gates_are_learned_in_every_kind_of_training(tmp_path, make, gates):
    finish(train(plan(tmp_path, make, gates), tmp_path / "out"))
    told = json.loads((tmp_path / "out" / "gates.json").read_text())
    heads = [str(head) for head in open_model(tmp_path / "out").spec.heads]
    assert told["heads"] == heads
    assert all(list(values) == heads for values in told["learned"].values())
    # a layer's heads are not treated alike, so each gate has met its own head
    assert all(len({*values.values()}) > len(heads) // 2 for values in told["learned"].values())


@pytest.mark.parametrize("make", [hourglass, masked, pairs])
def test_heads_stay_off_in_every_kind_of_training(tmp_path, make):
    finish(train(plan(tmp_path, make, off="0.1,1.*"), tmp_path / "out"))
    before, after = (read(tmp_path / name) for name in ("model", "out"))
    off = {HeadId(0, 1), *(HeadId(1, head) for head in before.config.layers[1].heads)}
    for layer, name in ((one, one.name) for one in before.config.layers):
        name += "" if layer.role == "cross" else ".attn"
        for place, head in enumerate(layer.heads):
            values, columns = (
                [one.tensors[f"{name}.{part}.weight"].float() for one in (before, after)]
                for part in "vo"
            )
            rows = [one.unflatten(0, (len(layer.heads), -1))[place] for one in values]
            there = HeadId(layer.index, head) not in off
            assert torch.equal(*rows) != there
            assert bool(columns[1].unflatten(1, (len(layer.heads), -1))[:, place].any()) == there


@pytest.mark.parametrize("make", [hourglass, masked, pairs])
def test_a_smaller_checkpoint_is_trained_with_an_empty_layer_too(tmp_path, make):
    start = plan(tmp_path, make, GATES[0])
    found = read(tmp_path / "model")
    off = {HeadId(0, 1), *(HeadId(1, head) for head in found.config.layers[1].heads)}
    one = removal.smaller(found, frozenset(off))
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "model" / name).unlink()
    save(tmp_path / "model", one.config, one.tensors)
    report = finish(train(start, tmp_path / "out"))
    assert report.before["original"]
    heads = open_model(tmp_path / "out").spec.heads
    assert set(heads) == set(open_model(tmp_path / "model").spec.heads)
    assert HeadId(0, 0) in heads
    assert not off & set(heads)
