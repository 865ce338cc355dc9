"""Configurations of the own families: hierarchies, digests, what can be and what is refused."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hgviz.activations import SIX_ACTIVATIONS
from hgviz.core import HeadId, HgvizError
from hgviz.files import resource
from hgviz.models import open_model
from hgviz.models.config import outline, shapes_of
from hgviz.models.generation import Writing
from hgviz.models.hourglass import Hierarchy, hierarchy_from_depth, parse_hierarchy
from hgviz.models.model import with_activation
from hgviz.store import open_capture
from tests.models.building import (
    FAMILIES,
    build,
    make_config,
    make_hourglass,
    make_transformer,
    make_unattending,
    opened,
    texts_for,
)
from tests.models.test_references import make_segments

# --- hierarchies ----------------------------------------------------------------------------------


def test_a_string_and_a_depth_tuple_say_the_same():
    shape = parse_hierarchy("2@1 1@3 4@6 1@3 2@1")
    assert shape == hierarchy_from_depth((2, (1, 4, 1), 2), (3, 2))
    assert shape == parse_hierarchy("1@3 4@6 1@3", vanilla=(2, 2))
    assert (shape.pre, shape.middle, shape.post, shape.factors) == ((2, 1), 4, (2, 1), (3, 2))
    assert shape.strides == (1, 3, 6)
    nested = hierarchy_from_depth([1, [1, 2, 1], 2], 2)  # one factor for every level
    assert nested == parse_hierarchy("1@1 1@2 2@4 1@2 2@1")
    assert hierarchy_from_depth(3) == parse_hierarchy("3@1")
    # 12 d^2 n / K + 2 n^2 d / K^2 multiply-adds of a layer
    flat = 12 * 64 * 100 + 2 * 10_000 * 8
    assert parse_hierarchy("1@1").cost(100, 8) == flat
    whole = parse_hierarchy("1@1 1@2 1@1").cost(100, 8)
    assert whole == 2 * flat + 12 * 64 * 50 + 2 * 2500 * 8


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


STRINGS = {
    "": "it is not a row of LAYERS@FACTOR",
    "2@1 1-2 2@1": "it is not a row of LAYERS@FACTOR",
    "1@2 1@2": "it has no single waist: the number of stages is even",
    "1@3 4@6 1@3": "it starts shortened and vanilla_layers (before, after) is missing",
    "1@1 1@2 1@3": "its factors do not mirror around the waist",
    "1@1 1@2 1@3 1@2 1@1": "factor 3 is not 2, 3, ... times the factor 2 around it",
    "1@1 1@1 1@1": "factor 1 is not 2, 3, ... times the factor 1 around it",
    "1@1 0@2 1@1": "the innermost needs a layer; all have at most 1,000",
    "1@1 1@131072 1@1": "it shortens by more than 65,536",
}
EACH = "is no number >= 2 for each of its"
DEPTHS = [
    ((1, 2), 2, "a depth is a number or (before, inner, after)"),
    ((1, (1, 2, 1), 1), (2,), f"shorten_factor (2,) {EACH} 2 levels"),
    ((1, 1, 1), (2, 2), f"shorten_factor (2, 2) {EACH} 1 levels"),
    ((1, 1, 1), None, f"shorten_factor None {EACH} 1 levels"),
    ((1, 1, 1), 1, f"shorten_factor 1 {EACH} 1 levels"),
    ((1, 0, 1), 2, "the innermost needs a layer; all have at most 1,000"),
]


@pytest.mark.parametrize("form", ["official", "windowed"])
def test_without_the_residual_the_positions_of_a_group_are_alike(form):
    keys = {"form": form, "upsampling": "repeat", "hierarchy": "1@1 1@3 0@1", "causal": False}
    ids = torch.arange(12)[None]
    for residual in (True, False):
        model = make_hourglass(make_config(**keys, residual=residual, positions="none"))
        groups = model(ids).unflatten(1, (-1, 3))
        assert bool((groups == groups[:, :, :1]).all()) != residual


def test_an_illegal_hierarchy_is_refused_in_one_line():
    ways = (
        'Write "LAYERS@FACTOR" down to the waist and back up, such as "2@1 1@2 3@4 1@2 2@1".',
        "Give depth as (2, (1, 4, 1), 2) with shorten_factor (3, 2), or as a number.",
    )
    for text, why in STRINGS.items():
        with pytest.raises(HgvizError) as error:
            parse_hierarchy(text)
        assert str(error.value) == f"the hierarchy {text!r} cannot be built: {why}. {ways[0]}"
    for depth, factor, why in DEPTHS:
        with pytest.raises(HgvizError) as error:
            hierarchy_from_depth(depth, factor)
        assert str(error.value) == f"the hierarchy {depth!r} cannot be built: {why}. {ways[1]}"


# --- what can be ----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_heads_of_six_activations_work_in_every_family(family, tmp_path, monkeypatch):
    """And the outline of each has its shapes and draws no number."""
    model = opened(tmp_path, build(family, list(SIX_ACTIVATIONS)), "float64")
    assert all(layer.activations == SIX_ACTIVATIONS for layer in model.spec.layers)
    logits = model.run(**texts_for(model)).logits
    off = model.run(**texts_for(model), off={HeadId(0, 5)}).logits
    assert np.isfinite(logits).all() and np.abs(off - logits).max() > 1e-6
    shapes = {name: tuple(one.shape) for name, one in model.module.state_dict().items()}
    config = model.module.config
    for drawn in ("normal_", "uniform_"):
        monkeypatch.setattr(torch.Tensor, drawn, None)
    assert shapes_of(config) == shapes
    assert all(one.is_meta for one in outline(config).state_dict().values())


def test_activations_are_spread_over_the_heads_of_each_layer():
    model = make_transformer(form="decoder", activations=[["tanh"], ["softmax", "ymish"]])
    activations = [layer.activations for layer in model.config.layers]
    assert activations == [("tanh", "tanh"), ("softmax", "ymish")]


def test_digests_of_what_is_bundled_stay():
    softmax = open_model(resource("sample/softmax")).spec.digest
    assert softmax.startswith("b6adc29d6186dd60")  # as it was first published
    capture = open_capture(resource("sample/first.h5"))
    assert open_model(resource("sample/hourglass")).spec.digest == capture.spec.digest


# --- what cannot be -------------------------------------------------------------------------------

ENCODER, DECODER = {"form": "encoder", "goal": "states"}, {"form": "decoder"}
SLOTS = {"slots": 4, "max_positions": 9}
PROJECTED = {**ENCODER, **SLOTS}
TRANSFORMERS = [
    ({**DECODER, **SLOTS}, "never causal"),
    ({**ENCODER, "slots": 4}, "need max_positions"),
    ({**PROJECTED, "slots": 9, "max_positions": 4}, "at most max"),
    ({**PROJECTED, "positions": "rotary"}, "rotary positions have no angle"),
    ({"form": "encoder"}, "none is the next"),
    ({**DECODER, "goal": "masked"}, "only an encoder fills in"),
    ({"form": "encoder", "goal": "classes"}, "a classifier is an encoder with labels"),
    ({**ENCODER, "cross": True}, "cross belongs to a decoder"),
    ({**DECODER, "kept": [[0]]}, "2 layers that attend"),
    ({**DECODER, "kept": [[0], [2]]}, "from 0 to 1"),
    ({**DECODER, "d_model": 13}, "2 heads do not divide"),
    ({**DECODER, "activations": "ymisch"}, "no activation 'ymisch'"),
    ({**DECODER, "activations": "topk"}, "needs top_k"),
    ({**DECODER, "norms": {"ymish": "l3"}}, "no norm 'l3'"),
    ({**DECODER, "n_layers": 10**9}, "n_layers"),
    ({**ENCODER, "cls_width": 20}, "choose goal classes"), ({"cls_width": -1}, "cls_width"),
    ({"form": "sideways"}, "form"),
    ({**DECODER, "family": "bard"}, "family"),
]  # fmt: skip
HOURGLASSES = [
    ({"widths": (12,)}, "a number for each of the 2 levels"),
    ({"widths": (8, 12)}, "the first"),
    ({"widths": (12, 7)}, "an even width, not 7"),
    ({"widths": (12, 0)}, "widths"),
]
SEGMENTS = [
    ({"n_layers": [1, 2]}, "three numbers"), ({"n_layers": [0, 0, 0]}, "a layer"),
    ({"n_layers": [2, 0, 1]}, "no layer reads"), ({"d_model": 9, "n_heads": 3}, "even width"),
    ({"boundaries": "whitespace", "whitespace_id": None}, "whitespace_id"),
    ({"whitespace_id": 23}, "ids end at 22"), ({"boundaries": "guessed"}, "boundaries"),
    ({"prior": 1.5}, "prior"),
]  # fmt: skip
UNATTENDING = [
    ({"family": "window", "window": 4, "causal": False}, "no middle"),
    ({"family": "window"}, "window"), ({"family": "lstm", "n_heads": 2}, "n_heads"),
    ({"family": "lstm", "causal": False}, "causal"),
]  # fmt: skip


@pytest.mark.parametrize("make, keys, words", [
    *((make_config, *row) for row in HOURGLASSES),
    *((make_transformer, *row) for row in TRANSFORMERS),
    *((lambda **keys: make_segments("learned", **keys), *row) for row in SEGMENTS),
    *((make_unattending, *row) for row in UNATTENDING),
])  # fmt: skip
def test_a_model_that_cannot_be_is_refused_in_one_line(make, keys, words):
    with pytest.raises(HgvizError) as error:
        make(**keys)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_what_models_without_attention_cannot_do_is_said(tmp_path):
    with pytest.raises(HgvizError, match="longest|at most 8"):
        make_unattending(family="lstm", max_positions=8)(torch.arange(11)[None])
    with pytest.raises(HgvizError, match="does not attend"):
        with_activation(make_unattending(family="lstm").config, "ymish")
    both_ways = opened(tmp_path, make_unattending(family="window", window=5, causal=False))
    assert both_ways.spec.goal == "masked"
    with pytest.raises(HgvizError, match="cannot write"):
        Writing(both_ways, both_ways.from_ids([1, 2]))


# --- other activations ----------------------------------------------------------------------------


@pytest.mark.parametrize("text, names, norms, top_k", [
    ("ymish", ("ymish",), {}, None),
    ("ymish:l2-literal", ("ymish",), {"ymish": "l2-literal"}, None),
    ("ymish:none", ("ymish",), {"ymish": "none"}, None),
    ("topk:8", ("topk",), {}, 8),
    (" softmax , topk:3,ymish:l2-literal,ymish:l2-literal",
     ("softmax", "topk", "ymish", "ymish"), {"ymish": "l2-literal"}, 3),
])  # fmt: skip
def test_a_text_names_activations_norms_and_keys(text, names, norms, top_k):
    config = with_activation(make_config(n_heads=4), text)
    assert (config.activations, dict(config.norms), config.top_k) == (names, norms, top_k)


@pytest.mark.parametrize("text, words", [
    ("relu", "there is no activation 'relu'; there are softmax"),
    ("", "there is no activation ''"), ("softmax,", "there is no activation ''"),
    *((text, "needs a number of keys")
      for text in ("topk", "topk:0", "topk:-1", "topk:1e9", "topk:9999999999")),
    ("ymish:l3", "there is no norm 'l3'; norms are none, l2, l2-literal"),
    ("ymish:", "names no norm"),
    ("topk:2,topk:3,tanh,tanh", "topk stands there in two ways"),
    ("ymish,ymish:none", "ymish stands there in two ways"),
    ("tanh,ymish,elu", "a number of names that divides the 4 heads"),
    ("x" * 10_000, "there is no activation 'xxx"),
])  # fmt: skip
def test_a_text_that_names_no_activation_is_one_error(text, words):
    with pytest.raises(HgvizError) as error:
        with_activation(make_config(n_heads=4), text)
    assert words in str(error.value) and "\n" not in str(error.value)
    assert len(str(error.value)) < 500
