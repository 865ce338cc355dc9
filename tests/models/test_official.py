"""The official form computes as an independent implementation of its description does."""

import numpy as np
import pytest

from hgviz.maps import LazyMap
from hgviz.models import open_model
from tests.closeness import scaled_error
from tests.models.building import make_config, make_hourglass, write_checkpoint
from tests.models.official import Official

FLAT, ONE, NESTED = "2@1", "1@1 2@3 1@1", "1@1 1@2 1@6 1@2 2@1"
CASES = {
    "without shortening": (FLAT, {}, 9, None),
    "the defaults": (ONE, {}, 12, None),
    "ragged": (ONE, {}, 13, None),
    "nested": (NESTED, {}, 12, None),
    "nested, ragged": (NESTED, {}, 15, None),
    "both ways": (ONE, {"causal": False}, 12, None),
    "both ways, ragged": (ONE, {"causal": False}, 10, None),
    "both ways, nested, ragged": (NESTED, {"causal": False}, 15, None),
    "average, repeat": (ONE, {"downsampling": "average", "upsampling": "repeat"}, 13, None),
    "linear, linear": (ONE, {"downsampling": "linear", "upsampling": "linear"}, 13, None),
    "linear, attention": (NESTED, {"downsampling": "linear"}, 13, None),
    "attention, repeat": (NESTED, {"upsampling": "repeat"}, 13, None),
    "attention on linear, attention on repeat": (
        ONE, {"attention_downsampling": "linear", "attention_upsampling": "repeat"}, 13, None,
    ),
    "attention on nothing": (NESTED, {"attention_upsampling": "none"}, 13, None),
    "linear both ways, ragged": (
        ONE, {"downsampling": "linear", "upsampling": "linear", "causal": False}, 13, None,
    ),
    "rotary": (ONE, {"positions": "rotary"}, 12, None),
    "rotary, nested, ragged": (NESTED, {"positions": "rotary"}, 17, None),
    "rotary, both ways, ragged": (NESTED, {"positions": "rotary", "causal": False}, 17, None),
    "learned": (ONE, {"positions": "learned", "max_positions": 40}, 13, None),
    "learned, nested, both ways": (
        NESTED, {"positions": "learned", "max_positions": 40, "causal": False}, 12, None,
    ),
    "no positions": (ONE, {"positions": "none"}, 13, None),
    "padded at the right": (NESTED, {}, 15, "right"),
    "padded at the left": (NESTED, {"positions": "rotary"}, 15, "left"),
    "both ways, padded, average": (
        ONE, {"causal": False, "downsampling": "average", "upsampling": "repeat"}, 14, "left",
    ),
    "both ways, padded, linear": (ONE, {"causal": False, "downsampling": "linear"}, 14, "right"),
}  # fmt: skip


def reference(config, weights):
    shape = config.hierarchy
    return Official(
        {name: tensor.numpy() for name, tensor in weights.items()},
        (shape.pre, shape.middle, shape.post),
        shape.factors,
        config.n_heads,
        down=config.downsampling,
        up=config.upsampling,
        base_down=config.attention_downsampling,
        base_up=config.attention_upsampling,
        positions=config.positions,
        causal=config.causal,
    )


def mask_of(kind, length):
    if kind is None:
        return None
    real = np.arange(length) < length - 5
    return real if kind == "right" else real[::-1].copy()


@pytest.mark.parametrize("hierarchy, changes, length, kind", CASES.values(), ids=CASES.keys())
def test_logits_and_maps_are_those_of_the_description(tmp_path, hierarchy, changes, length, kind):
    changes = {"hierarchy": hierarchy, **changes}
    config = make_config(**changes)
    model = open_model(write_checkpoint(tmp_path, **changes), dtype="float64")
    other = reference(config, make_hourglass(config).state_dict())
    ids, mask = np.random.default_rng(0).integers(0, 23, length), mask_of(kind, length)
    tapped = {}
    trace = model.trace(model.from_ids(ids, mask), tap=tapped.__setitem__)
    order = []
    try:
        while True:
            order.append(next(trace))
    except StopIteration as end:
        logits = end.value
    assert order == list(range(len(model.spec.layers)))
    assert np.abs(logits - other.logits(ids, mask)).max() < 1e-9
    assert len(other.maps) == len(tapped)
    for layer, expected in zip(model.spec.layers, other.maps, strict=True):
        ours = LazyMap(tapped[layer.index], layer.heads)
        assert ours.shape == expected.shape
        for head in layer.heads:
            assert scaled_error(ours.read(head), expected[head]) < 1e-5
