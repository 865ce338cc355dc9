"""Checkpoints of hourglass-transformer-pytorch compute as that package does, masks included."""

import numpy as np
import pytest

from hgviz.maps import LazyMap
from hgviz.models import open_model
from hgviz.models.run import CaptureRecorder
from tests.models import package

WIDTH = {"num_tokens": 29, "dim": 24, "max_seq_len": 320, "heads": 3, "dim_head": 8}
NESTED = [1, [1, 2, 1], 2]
CASES = {
    # name: (arguments, length, mask)
    "flat, causal": ({"depth": 2, "causal": True}, 13, None),
    "flat, both ways, padded at the right": ({"depth": 3, "causal": False}, 11, "right"),
    "average": ({"depth": [1, 2, 1], "shorten_factor": 2, "causal": True}, 12, None),
    "ragged": ({"depth": [1, 2, 1], "shorten_factor": 3, "causal": True}, 13, None),
    "ragged, a mask of ones": (
        {"depth": [1, 2, 1], "shorten_factor": 3, "causal": True}, 13, "ones",
    ),
    "linear, no attention": (
        {"depth": [2, 1, 1], "shorten_factor": 4, "causal": True, "attn_resampling": False,
         "updown_sample_type": "linear"}, 14, None,
    ),
    "average, no attention, padded at the left": (
        {"depth": [1, 1, 1], "shorten_factor": 2, "causal": True, "attn_resampling": False},
        9, "left",
    ),
    "nested, ragged": ({"depth": NESTED, "shorten_factor": [2, 3], "causal": True}, 17, None),
    "nested, linear, padded at the right": (
        {"depth": NESTED, "shorten_factor": [3, 2], "causal": True, "updown_sample_type": "linear"},
        17, "right",
    ),
    "nested, padded at the left": (
        {"depth": NESTED, "shorten_factor": [3, 2], "causal": True}, 20, "left",
    ),
    "both ways, ragged, padded at the right": (
        {"depth": [1, 1, 1], "shorten_factor": 3, "causal": False}, 14, "right",
    ),
    "both ways, linear, padded at the left": (
        {"depth": [1, 1, 1], "shorten_factor": 2, "causal": False, "updown_sample_type": "linear"},
        13, "left",
    ),
    "both ways, nested, holes in the mask": (
        {"depth": NESTED, "shorten_factor": 2, "causal": False}, 15, "holes",
    ),
    "three levels down, one factor for all": (
        {"depth": [1, NESTED, 1], "shorten_factor": 2, "causal": True,
         "updown_sample_type": "linear"}, 23, None,
    ),
    "no layers before": ({"depth": [0, 2, 1], "shorten_factor": 2, "causal": True}, 10, None),
    "longer than a tile": ({"depth": [1, 1, 1], "shorten_factor": 3, "causal": True}, 301, None),
}  # fmt: skip
TOLERANCE = {"float64": 1e-9, "float32": 5e-5}


def mask_of(kind, length):
    mask = np.ones((2, length), bool)
    if kind == "right":
        mask[1, length // 2 :] = False
    elif kind == "left":
        mask[1, : length // 2] = False
    elif kind == "holes":
        mask[1, 2:7] = mask[1, -2:] = mask[0, 0] = False
    return None if kind is None else mask


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request, tmp_path):
    arguments, length, kind = request.param
    arguments = {"attn_resampling": True, "updown_sample_type": "naive", **WIDTH, **arguments}
    given = {name: _tuples(value) for name, value in arguments.items()}
    if isinstance(given["depth"], int):
        arguments = {
            name: one for name, one in arguments.items() if name[:4] not in ("attn", "updo")
        }
    reference = package.build(**given)
    folder = package.write(tmp_path / "checkpoint", reference, arguments)
    ids = np.random.default_rng(0).integers(0, WIDTH["num_tokens"], (2, length))
    return reference, folder, ids, mask_of(kind, length)


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_logits_are_the_packages(case, dtype):
    reference, folder, ids, mask = case
    ours = open_model(folder, dtype=dtype).run(ids, attention_mask=mask).logits
    difference = np.abs(ours - package.logits(reference, ids, mask)).max()
    assert difference <= TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_softmax_map_is_the_packages(case, dtype):
    reference, folder, ids, mask = case
    model = open_model(folder, dtype=dtype)
    worst = 0.0
    for row in range(2):
        keep = None if mask is None else mask[row]
        expected = package.maps(reference, ids[row], keep)
        tapped = {}
        model.trace(model.from_ids(ids[row], keep), observers=[CaptureRecorder(tapped.__setitem__)])
        assert len(expected) == len(tapped) == len(model.spec.layers)
        for layer, weights in zip(model.spec.layers, expected, strict=True):
            ours = LazyMap(tapped[layer.index], layer.heads)
            assert ours.shape == weights.shape
            for head in layer.heads:
                worst = max(worst, np.abs(ours.read(head) - weights[head]).max())
    assert worst <= 1e-5


def test_strict_masking_lets_no_padding_through(tmp_path):
    arguments = {**WIDTH, "depth": [1, 1, 1], "shorten_factor": 2, "causal": False}
    given = {**arguments, "depth": (1, 1, 1)}
    folder = package.write(tmp_path / "checkpoint", package.build(**given), {**arguments})
    mask = np.array([True] * 7 + [False] * 4)
    ids = np.arange(11)
    other = np.where(mask, ids, 28)
    strict = open_model(folder, dtype="float64", masking="strict")
    assert strict.masking == "strict"
    one, two = (strict.run(each, attention_mask=mask).logits[:7] for each in (ids, other))
    assert np.array_equal(one, two)
    compat = open_model(folder, dtype="float64")
    assert compat.masking == "compat"
    one, two = (compat.run(each, attention_mask=mask).logits[:7] for each in (ids, other))
    assert np.abs(one - two).max() > 1e-3  # the package lets padding through, A.9


def test_strict_masking_reads_a_padded_text_like_the_text_alone(tmp_path):
    arguments = {**WIDTH, "depth": NESTED, "shorten_factor": [2, 3], "causal": True}
    given = {**arguments, "depth": _tuples(NESTED), "shorten_factor": (2, 3)}
    folder = package.write(
        tmp_path / "checkpoint", package.build(**given), arguments, masking="strict"
    )
    strict = open_model(folder, dtype="float64")
    ids = np.random.default_rng(1).integers(0, 29, 13)
    padded = np.concatenate([ids, [3, 4, 5, 6, 7]])
    mask = np.arange(18) < 13
    whole = strict.run(padded, attention_mask=mask).logits[:13]
    assert np.abs(whole - strict.run(ids).logits).max() < 1e-12
