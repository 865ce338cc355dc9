"""Models with several widths: wider inner levels of an Hourglass, wide CLS tokens.

Rows of other tables show that such an Hourglass computes what it should and is causal, that a head
off is a head removed, and which widths are refused.
"""

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.maps import LazyMap
from hgviz.models import open_model
from hgviz.models.attribution import measure_reach
from hgviz.models.config import parse_config
from hgviz.models.run import Run
from hgviz.models.training import train
from tests.models.building import SMALL, make_hourglass, make_transformer, write_module
from tests.models.test_heads_off import tokens_of, without
from tests.models.trainings import KINDS, plan, write_data

CLASSES = {"goal": "classes", "labels": ["no", "yes"], "form": "encoder", "max_positions": 16}
BERT = {"family": "bert", "cls_width": 20, **CLASSES}
MODELS = {
    "wider inside": {"hierarchy": "1@1 1@2 1@4 1@2 1@1", "widths": (12, 16, 24)},
    "narrower inside, windowed": {"widths": (12, 8), "form": "windowed", "positions": "rotary"},
    "wide CLS": BERT,
    "narrow CLS": {**BERT, "cls_width": 6},
    "two wide CLS, pre-norm": {**BERT, "cls": 2, "norm_first": True, "final_norm": True},
    "wide CLS, slots": {**BERT, "slots": 5, "pooler": "separate", "activations": "ymish"},
}
every_model = pytest.mark.parametrize("name", MODELS)


def make(name):
    keys = MODELS[name]
    if "family" in keys:
        return make_transformer(**keys).requires_grad_(False)
    return make_hourglass(parse_config({**SMALL, **keys})).requires_grad_(False)


@every_model
def test_a_folder_is_read_back(tmp_path, name):
    module = make(name)
    model = open_model(write_module(tmp_path / "mine", module), dtype="float64")
    tokens = tokens_of(module)
    assert model.config == module.config
    assert torch.equal(without(model.module, tokens, ()), without(module, tokens, ()))


@every_model
def test_every_level_is_captured(tmp_path, name):
    model = open_model(write_module(tmp_path / "mine", make(name)))
    capture = tasks.capture(model, model.from_ids(np.arange(3, 16) % 23), tmp_path / "out.h5")
    assert len(capture.maps) == len(model.spec.layers)
    for layer, maps in zip(model.spec.layers, capture.maps, strict=True):
        assert isinstance(maps, LazyMap) and maps.verify_max_abs < 1e-6
        assert {layer.level, layer.key_level} <= {*range(len(capture.spec.levels))}


@pytest.mark.parametrize("name", ["wide CLS", "two wide CLS, pre-norm"])
def test_a_wide_cls_is_projected_into_and_out_of_every_layer(name):
    """By the formulas of WideCLS, around the blocks of a model without."""
    module = make(name)
    tokens, count = tokens_of(module), module.config.cls
    logits = module(tokens)
    x = module.embed(tokens)
    wide = module.widen(x[:, :count])
    for block in module.middle.values():
        own, block.wide = block.wide, None
        y = block(torch.cat([own.into(wide), x[:, count:]], 1), tokens, None, None, Run())
        wide = wide + own.out(y[:, :count])
        if not module.config.norm_first:
            mean, deviation = wide.mean(-1, keepdim=True), wide.std(-1, False, keepdim=True)
            scaled = (wide - mean) / (deviation**2 + module.config.norm_eps).sqrt()
            wide = scaled * own.ln.weight + own.ln.bias
        x = y
    if module.config.final_norm:
        wide = module.ln_f(wide)
    states = torch.tanh(module.head.pooler(wide))
    expected = module.head.classifier(states.flatten(1))
    assert states.shape[-1] == 20
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)


def test_the_facts_of_a_model_name_its_widths(tmp_path):
    facts = tasks.info(write_module(tmp_path / "levels", make("wider inside")))
    assert facts["width"] == 12 and facts["widths"] == (12, 16, 24) and "cls_width" not in facts
    facts = tasks.info(write_module(tmp_path / "cls", make("wide CLS")))
    assert facts["width"] == 12 and facts["cls_width"] == 20 and "widths" not in facts


def test_equal_widths_are_the_model_without(tmp_path):
    plain = make_hourglass(parse_config({**SMALL, "causal": True}))
    equal = make_hourglass(parse_config({**SMALL, "causal": True, "widths": (12, 12)}))
    assert plain.state_dict().keys() == equal.state_dict().keys()
    assert torch.equal(plain(torch.arange(9)[None]), equal(torch.arange(9)[None]))


@pytest.mark.parametrize("kind, keys", [
    ("next", {"widths": [16, 24]}), ("classes", {"cls_width": 40, "cls": 2}),
])  # fmt: skip
def test_training_makes_one(tmp_path, kind, keys):
    write_data(tmp_path)
    changed = {**KINDS[kind], "model": {**KINDS[kind]["model"], **keys}}
    train(plan(tmp_path, changed, recipe={"steps": 4}), tmp_path / "out")
    config = open_model(tmp_path / "out").config
    assert all(getattr(config, key) in (value, tuple(value) if isinstance(value, list) else value)
               for key, value in keys.items())  # fmt: skip


def test_all_tokens_read_a_wide_cls(tmp_path):
    model = open_model(write_module(tmp_path / "mine", make("wide CLS")), dtype="float64")
    assert measure_reach(model, model.from_ids(np.arange(3, 12))).own[:, 0].min() > 1e-3
