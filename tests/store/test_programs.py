"""Captures that any program makes from arrays."""

import numpy as np
import pytest

from hgviz.core import HgvizError
from hgviz.store import open_capture, write_capture

RANDOM = np.random.default_rng(0)
TOKENS = ["The", " cat", " sat", " on", " it"]
Q, K = RANDOM.normal(size=(2, 2, 5, 8)).astype(np.float32)
KEEP = np.array([False, True, True, True, False])


def softmax(q, k, scale=8**-0.5, seen=True):
    scores = np.where(seen, scale * q @ k.T, -np.inf)
    powers = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e30))
    return powers / np.maximum(powers.sum(-1, keepdims=True), 1e-30)


def write(path, layer, tokens=TOKENS, **options):
    return write_capture(path / "one.h5", tokens=tokens, layers=[layer], **options)


@pytest.mark.parametrize(("layer", "expected"), [
    ({"q": Q, "k": K}, softmax(Q[1], K[1])), ({"q": Q.tolist(), "k": K[:1]}, softmax(Q[1], K[0])),
    ({"q": Q, "k": K, "causal": True, "keep": KEEP, "scale": 0.7},
     softmax(Q[1], K[1], 0.7, np.tri(5, dtype=bool) & KEEP)),
    ({"weights": Q[:, :, :5]}, Q[1, :, :5]),
])  # fmt: skip
def test_a_map_is_what_the_formula_says(tmp_path, layer, expected):
    capture = open_capture(write(tmp_path, layer))
    np.testing.assert_allclose(capture.maps[0].read(1), expected, atol=1e-6)
    assert capture.maps[0].signed is bool((expected < 0).any())
    assert capture.prompt.text == "The cat sat on it" and capture.prompt.label(1) == " cat"


@pytest.mark.parametrize("activation", ["softmax", "linear", "ymish", "sigmoid"])
@pytest.mark.parametrize("norm", [None, "l2", "l2-literal"])
def test_scores_of_any_activation_may_be_normalised(tmp_path, activation, norm):
    layer = {"q": Q, "k": K, "activation": activation, "norm": norm, "causal": True}
    assert open_capture(write(tmp_path, layer)).maps[0].verify_max_abs < 1e-6


@pytest.mark.parametrize(("layer", "words"), [
    ({}, "it has no 'q'"), ({"q": Q}, "it has no 'k'"), (None, "it is a NoneType"),
    ({"q": Q, "k": K[:, :4]}, "q is (2, 5, 8) and k (2, 4, 8)"),
    ({"q": Q[:, :4], "k": K[:, :4]}, "for 5 tokens"),
    ({"q": Q * np.nan, "k": K}, "not finite"),
    ({"q": Q, "k": K, "activation": "topk"}, "cannot be computed from q and k"),
    ({"q": Q, "k": K, "norm": "l3"}, "unknown norm 'l3'"),
    ({"q": Q, "k": K, "keep": [True]}, "keep is (1,)"), ({"q": Q, "k": K, "mask": None}, "'mask'"),
    ({"weights": np.ones((1, 4, 5))}, "weights are (1, 4, 5)"),
    ({"q": [[1.0], [2.0, 3.0]], "k": K}, "q is a list that numpy cannot read"),
    ({"q": Q, "k": K, "scale": np.nan}, "its scale is not a finite number"),
    ({"q": Q, "k": K, "causal": np.ones(5)}, "causal is neither True nor False"),
    ({"q": 1e30 * Q, "k": 1e30 * K}, "too large for float32"),
    ({"weights": np.full((1, 5, 5), 1e300)}, "not finite in float32"),
])  # fmt: skip
def test_a_layer_that_does_not_fit_is_named(tmp_path, layer, words):
    with pytest.raises(HgvizError) as caught:
        write(tmp_path, layer)
    assert caught.value.what.startswith("layer 0 cannot be saved") and words in str(caught.value)
    assert not list(tmp_path.iterdir())
