"""Hierarchies, the official Hourglass beside its description, and digests that stay."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.core import HgvizError
from hgviz.files import resource
from hgviz.maps import LazyMap
from hgviz.models import open_model
from hgviz.models.hourglass import Hierarchy, hierarchy_from_depth, parse_hierarchy
from hgviz.models.run import CaptureRecorder
from hgviz.store import open_capture
from tests.closeness import scaled_error
from tests.models.building import make_config, make_hourglass, write_checkpoint
from tests.models.official import Official


def test_a_string_and_a_depth_tuple_say_the_same():
    shape = parse_hierarchy("2@1 1@3 4@6 1@3 2@1")
    assert shape == hierarchy_from_depth((2, (1, 4, 1), 2), (3, 2))
    assert shape == parse_hierarchy("1@3 4@6 1@3", vanilla=(2, 2))
    assert (shape.pre, shape.middle, shape.post, shape.factors) == ((2, 1), 4, (2, 1), (3, 2))
    assert shape.strides == (1, 3, 6)


def test_a_scalar_factor_serves_every_level_and_lists_are_tuples():
    assert hierarchy_from_depth([1, [1, 2, 1], 2], 2) == parse_hierarchy("1@1 1@2 2@4 1@2 2@1")
    assert hierarchy_from_depth(3) == parse_hierarchy("3@1")


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(2, 4)), max_size=4),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(0, 4),
)
def test_every_hierarchy_comes_back_from_its_string(inner, middle, first, last):
    counts = tuple(count for count, _ in inner[1:])
    factors = tuple(factor for _, factor in inner)
    pre, post = ((first, *counts), (last, *counts)) if inner else ((), ())
    shape = Hierarchy(pre, middle, post, factors)
    assert parse_hierarchy(str(shape)) == shape


def test_the_cost_of_a_layer_falls_with_its_level():
    """12 d^2 n / K + 2 n^2 d / K^2 multiply-adds."""
    assert parse_hierarchy("1@1").cost(100, 8) == 12 * 64 * 100 + 2 * 10_000 * 8
    whole = parse_hierarchy("1@1 1@2 1@1").cost(100, 8)
    assert whole == 2 * parse_hierarchy("1@1").cost(100, 8) + 12 * 64 * 50 + 2 * 2500 * 8


@pytest.mark.parametrize(
    "text, why",
    [
        ("", "it is not a row of LAYERS@FACTOR"),
        ("2@1 1-2 2@1", "it is not a row of LAYERS@FACTOR"),
        ("1@2 1@2", "it has no single waist: the number of stages is even"),
        ("1@3 4@6 1@3", "it starts shortened and vanilla_layers (before, after) is missing"),
        ("1@1 1@2 1@3", "its factors do not mirror around the waist"),
        ("1@1 1@2 1@3 1@2 1@1", "factor 3 is not 2, 3, ... times the factor 2 around it"),
        ("1@1 1@1 1@1", "factor 1 is not 2, 3, ... times the factor 1 around it"),
        ("1@1 0@2 1@1", "the innermost needs a layer; all have at most 1,000"),
        ("1@1 1@131072 1@1", "it shortens by more than 65,536"),
    ],
)
def test_an_illegal_string_is_refused_in_one_line(text, why):
    with pytest.raises(HgvizError) as caught:
        parse_hierarchy(text)
    assert str(caught.value) == (
        f"the hierarchy {text!r} cannot be built: {why}. "
        'Write "LAYERS@FACTOR" down to the waist and back up, such as "2@1 1@2 3@4 1@2 2@1".'
    )


@pytest.mark.parametrize(
    "depth, factor, why",
    [
        ((1, 2), 2, "a depth is a number or (before, inner, after)"),
        ((1, (1, 2, 1), 1), (2,), "shorten_factor (2,) is no number >= 2 for each of its 2 levels"),
        ((1, 1, 1), (2, 2), "shorten_factor (2, 2) is no number >= 2 for each of its 1 levels"),
        ((1, 1, 1), None, "shorten_factor None is no number >= 2 for each of its 1 levels"),
        ((1, 1, 1), 1, "shorten_factor 1 is no number >= 2 for each of its 1 levels"),
        ((1, 0, 1), 2, "the innermost needs a layer; all have at most 1,000"),
    ],
)
def test_an_illegal_depth_is_refused_in_one_line(depth, factor, why):
    with pytest.raises(HgvizError) as caught:
        hierarchy_from_depth(depth, factor)
    assert str(caught.value) == (
        f"the hierarchy {depth!r} cannot be built: {why}. "
        "Give depth as (2, (1, 4, 1), 2) with shorten_factor (3, 2), or as a number."
    )


# --- the official form ----------------------------------------------------------------------------


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
    shape = config.shape
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
    logits = model.trace(model.from_ids(ids, mask), observers=[CaptureRecorder(tapped.__setitem__)])
    assert list(tapped) == list(range(len(model.spec.layers)))
    assert np.abs(logits - other.logits(ids, mask)).max() < 1e-9
    assert len(other.maps) == len(tapped)
    for layer, expected in zip(model.spec.layers, other.maps, strict=True):
        ours = LazyMap(tapped[layer.index], layer.heads)
        assert ours.shape == expected.shape
        for head in layer.heads:
            assert scaled_error(ours.read(head), expected[head]) < 1e-5


# --- digests --------------------------------------------------------------------------------------


# of the bundled checkpoints as they were first published; keys of a configuration that come later
# stand in `later` of digest_of, with the values that say nothing
KNOWN = {"softmax": "b6adc29d6186dd60"}


@pytest.mark.parametrize("name", KNOWN)
def test_a_new_key_of_a_configuration_leaves_old_digests_alone(name):
    assert open_model(resource(f"sample/{name}")).spec.digest.startswith(KNOWN[name])


def test_the_bundled_capture_is_of_the_bundled_hourglass():
    capture = open_capture(resource("sample/first.h5"))
    assert open_model(resource("sample/hourglass")).spec.digest == capture.spec.digest
