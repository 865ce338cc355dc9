"""Captures that any program makes from arrays."""

import numpy as np
import pytest

from hgviz.core import HgvizError
from hgviz.store import describe, open_capture, write_capture

RANDOM = np.random.default_rng(0)
TOKENS = ["The", " cat", " sat", " on", " it"]
Q, K = RANDOM.normal(size=(2, 2, 5, 8)).astype(np.float32)


def softmax(scores):
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def written(path, **layer):
    return open_capture(write_capture(path / "one.h5", tokens=TOKENS, layers=[layer], force=True))


def test_queries_and_keys_become_maps(tmp_path):
    expected = softmax(Q @ K.transpose(0, 2, 1) / np.sqrt(8))
    shared = softmax(Q @ K[0].T / np.sqrt(8))
    for q, k, wanted in ((Q, K[:1], shared), (Q.tolist(), K.tolist(), expected), (Q, K, expected)):
        capture = written(tmp_path, q=q, k=k)
        for head in range(2):
            np.testing.assert_allclose(capture.maps[0].read(head), wanted[head], atol=1e-6)
    assert capture.prompt.text == "The cat sat on it"
    assert capture.prompt.label(1) == " cat"
    assert capture.maps[0].verify_max_abs < 1e-6


def test_causal_maps_with_padding_and_a_scale_of_their_own(tmp_path):
    keep = np.array([False, True, True, True, False])
    capture = written(tmp_path, q=Q, k=K, causal=True, keep=keep, scale=0.7)
    scores = np.where(np.tri(5, dtype=bool) & keep, 0.7 * Q @ K.transpose(0, 2, 1), -1e30)
    expected = softmax(scores)
    expected[:, 0] = 0  # sees no key
    np.testing.assert_allclose(capture.maps[0].read(1), expected[1], atol=1e-6)


@pytest.mark.parametrize(
    "activation", ["softmax", "linear", "ymish", "softmax1", "softpick", "sigmoid"]
)
@pytest.mark.parametrize("norm", [None, "l2", "l2-literal"])
def test_scores_of_any_activation_are_weighed_and_may_be_normalised(tmp_path, activation, norm):
    capture = written(tmp_path, q=Q, k=K, activation=activation, norm=norm, causal=True)
    assert capture.maps[0].verify_max_abs < 1e-6


def _linear(q, k):
    phi = [np.where(x > 0, x, np.expm1(np.minimum(x, 0))) + 1 for x in (q, k)]
    scores = phi[0] @ phi[1].T
    return scores / (scores.sum(-1, keepdims=True) + 1e-6)


def _ymish(q, k):
    scores = q @ k.T / np.sqrt(8)
    z = scores / (np.linalg.norm(scores, axis=-1, keepdims=True) + 1e-9)
    return z * np.tanh(abs(z))


@pytest.mark.parametrize(("name", "formula"), [("linear", _linear), ("ymish", _ymish)])
def test_other_activations_have_their_formula(tmp_path, name, formula):
    capture = written(tmp_path, q=Q, k=K, activation=name)
    np.testing.assert_allclose(capture.maps[0].read(0), formula(Q[0], K[0]), atol=1e-6)
    assert capture.maps[0].signed is (name == "ymish")


def test_layers_of_weights_and_logits_are_kept_as_they_are(tmp_path):
    logits = RANDOM.normal(size=(5, 11)).astype(np.float32)
    weights = RANDOM.normal(size=(3, 5, 5)).astype(np.float32)
    layers = [{"q": Q, "k": K}, {"weights": weights, "name": "mine"}]
    path = write_capture(tmp_path / "o.h5", tokens=TOKENS, layers=layers, name="m", logits=logits)
    capture = open_capture(path)
    assert np.array_equal(capture.logits, logits)
    assert np.array_equal(capture.maps[1].read(2), weights[2])
    assert [layer["heads"] for layer in describe(path)["layers"]] == [2, 3]
    assert [layer.name for layer in capture.spec.layers] == ["layer.0", "mine"]


@pytest.mark.parametrize("layer, words", [
    ({}, "it lacks 'q'"),
    ({"q": Q}, "it lacks 'k'"),
    ({"q": Q, "k": K[:, :4]}, "q is (2, 5, 8) and k (2, 4, 8)"),
    ({"q": Q[:, :4], "k": K[:, :4]}, "for 5 tokens"),
    ({"q": Q * np.nan, "k": K}, "not finite"),
    ({"q": Q.astype(int), "k": K}, "int64"),
    ({"q": Q, "k": K, "activation": "topk"}, "not computed from q and k alone"),
    ({"q": Q, "k": K, "activation": "gelu"}, "'gelu'"),
    ({"q": Q, "k": K, "norm": "l3"}, "no norm 'l3'"),
    ({"q": Q, "k": K, "keep": [True]}, "keep is (1,)"),
    ({"q": Q, "k": K, "mask": None}, "'mask'"),
    ({"weights": np.ones((1, 4, 5))}, "weights are (1, 4, 5)"),
    (None, "it is a NoneType"),
    ({"q": [[1.0], [2.0, 3.0]], "k": K}, "q is a list that numpy cannot read"),
    ({"q": Q.astype(complex), "k": K}, "q is complex128"),
    ({"q": Q, "k": K, "scale": np.nan}, "its scale is no finite number"),
    ({"q": Q, "k": K, "scale": None}, "its scale is no finite number"),
    ({"q": Q, "k": K, "causal": np.ones(5)}, "causal is neither True nor False"),
    ({"q": 1e30 * Q, "k": 1e30 * K}, "too large for float32"),
    ({"weights": np.full((1, 5, 5), 1e300)}, "not finite in float32"),
])  # fmt: skip
def test_what_does_not_fit_is_said_with_its_layer(tmp_path, layer, words):
    with pytest.raises(HgvizError) as caught:
        write_capture(tmp_path / "one.h5", tokens=TOKENS, layers=[layer])
    assert "layer 0" in str(caught.value)
    assert words in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_words_without_spaces_are_told_apart_and_no_words_are_refused(tmp_path):
    layer = {"weights": np.eye(2)[None]}
    capture = open_capture(write_capture(tmp_path / "o.h5", tokens=["on", "it"], layers=[layer]))
    assert capture.prompt.text == "on it"
    assert capture.prompt.label(1) == "it"
    with pytest.raises(HgvizError, match="nothing to keep"):
        write_capture(tmp_path / "n.h5", tokens=[], layers=[])


@pytest.mark.parametrize("logits", ["x", 5.0, np.ones((7, 3)), np.ones((1, 5, 3)), [[1], [2, 3]]])
def test_logits_that_are_no_row_for_each_token_are_refused(tmp_path, logits):
    with pytest.raises(HgvizError, match="logits cannot be kept"):
        write_capture(tmp_path / "o.h5", tokens=TOKENS, layers=[{"q": Q, "k": K}], logits=logits)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["<b>\0\n" * 200, 5, None, "층🙂"])
def test_any_name_will_do(tmp_path, name):
    layer = {"q": Q, "k": K, "name": name}
    path = write_capture(tmp_path / "o.h5", tokens=TOKENS, layers=[layer], name=name)
    for found in (open_capture(path).spec.name, open_capture(path).spec.layers[0].name):
        assert found.isprintable() and found.startswith(str(name)[:3])
