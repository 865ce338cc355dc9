"""Every activation, family and role is captured lazily, and its tiles are the model's weights."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.activations import ACTIVATIONS
from hgviz.core import HeadId, finish
from hgviz.maps import LazyMap, Rule, pool
from hgviz.models import attention, blocks, open_model
from hgviz.models.formats.checkpoint import save
from hgviz.models.formats.own import parse_config
from hgviz.models.model import Model
from hgviz.store import open_capture
from tests.closeness import scaled_error
from tests.maps.reference import choose, length, scores, visible, whole_map
from tests.models.building import make_config, make_hourglass, make_transformer

SIX = ["softmax", "selu", "elu", "leaky_relu", "swish", "ymish"]
MIXTURES = {
    "six": SIX,
    "unlike": ["topk", "linear", "softmax", "topk", "tanh", "linear"],
    "kernels": ["rbf", "poly2", "softmax", "rbf", "linear", "raw"],
    "open": ["softpick", "sigmoid", "softmax1", "softmax", "softpick", "tanh"],
    "by layer": None,
}
WIDTHS = {"d_model": 24, "n_heads": 6, "d_ff": 20, "vocab_size": 23}
NESTED = {"hierarchy": "1@1 1@2 1@4 1@2 1@1"}
WINDOWED = {"hierarchy": "1@1 1@2 1@1", "form": "windowed", "positions": "rotary"}
FAMILIES = {
    "hourglass": {**NESTED, "positions": "relative"},
    "bidirectional": {**NESTED, "positions": "rotary", "causal": False},
    "windowed": WINDOWED,
    "compat": {**WINDOWED, "masking": "compat", "positions": "none"},
    "encoder": {"family": "bert", "goal": "classes", "labels": ["no", "yes"]},
    "decoder": {"family": "gpt2"},
    "both": {"family": "transformer", "n_layers": 1},
    "cross": {"family": "transformer", "form": "decoder", "cross": True},
    "slots": {"family": "yubert", "labels": ["no", "yes"], "slots": 5, "max_positions": 40},
    "linformer": {
        "family": "bert", "goal": "states", "slots": 5, "max_positions": 40, "slots_bias": True,
        "slots_sharing": "headwise", "transform": False,
    },
}  # fmt: skip


def build(name, activation):
    """A float64 model of a family with one activation, or a mixture."""
    keys = {"n_layers": 2, **WIDTHS, **FAMILIES[name]}
    hourglass = "hierarchy" in keys
    if hourglass:
        del keys["n_layers"]
    given = MIXTURES.get(activation, activation)
    if given is None:  # another one in every layer
        config = make_config(**keys) if hourglass else parse_config(keys)
        names = list(ACTIVATIONS)
        given = [[names[layer.index % len(names)]] for layer in config.layers]
    keys |= {"activations": given, "top_k": 3}
    return make_hourglass(make_config(**keys)) if hourglass else make_transformer(**keys)


def opened(folder, module, dtype="float32"):
    """The same model from a file."""
    save(folder, module.config, {k: v.to(getattr(torch, dtype)) for k, v in
                                 module.state_dict().items()})  # fmt: skip
    return open_model(folder, dtype=dtype)


def prompts(model, tokens=22):
    """A text whose first three tokens are padding, and the decoder's where there is one."""
    random = np.random.default_rng(0)
    mask = np.arange(tokens) >= 3
    if model.takes_states:
        states = random.normal(size=(tokens, 24)).astype(np.float32)
        prompt = model.from_states(states, mask)
    else:
        prompt = model.from_ids(random.integers(0, 23, tokens), mask)
    if not model.spec.two_texts:
        return prompt, None
    return prompt, model.from_ids(random.integers(0, 23, 13), np.arange(13) < 11)


@pytest.fixture
def attended(monkeypatch):
    """Every call of attend: what it was given, and the context it gave."""
    calls = []

    def watched(q, k, v, rule, **options):
        context = attention.attend(q, k, v, rule, **options)
        calls.append((q, k, v, rule, options, context))
        return context

    monkeypatch.setattr(blocks, "attend", watched)
    return calls


def whole_rule(call):
    """The rule of a call with its mask and its relative terms."""
    _, _, _, rule, options, _ = call
    keep, relative = options["keep"], options["relative"]
    if relative is not None:
        relative = relative.each(lambda one: one.detach().double().numpy())
    return replace(rule, keep=None if keep is None else keep[0].numpy(), relative=relative)


def exact_map(call, head):
    """The map in float64, and the rows in which no two scores are nearly the k-th largest."""
    rule = whole_rule(call)
    q, k = (one[0, head].double().numpy() for one in call[:2])
    sound = np.ones(len(q), bool)
    if rule.activations[head] == "linear":
        q, k = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k))
    if rule.activations[head] == "topk":
        values, seen = scores(q, k, rule, head, np.float64), visible(rule, len(q), len(k))
        chosen = choose(values, seen, rule.top_k)
        for i in np.flatnonzero((seen & ~chosen).any(1)):
            gap = values[i][chosen[i]].min() - values[i][seen[i] & ~chosen[i]].max()
            sound[i] = gap > 1e-5 * np.abs(values[i]).max()
    return whole_map(q, k, rule, head), sound


def own_weights(call):
    """The weights of the float32 model, which times the values are its context."""
    q, k, v, rule, options, context = call
    found = attention.weights(q, k, rule, options["keep"], options["relative"])
    if rule.empty_rows == "zeros":
        assert (found @ v - context).abs().max() <= 2e-5 * max(1, context.abs().max())
    return found[0].numpy()


def rounding(call, head):
    """(queries, 1): what float32 leaves open of a score whose terms all but cancel."""
    rule, (q, k) = call[3], (one[0, head].double().numpy() for one in call[:2])
    terms = np.linalg.norm(q, axis=1) * np.linalg.norm(k, axis=1).max() * rule.scale_of(head)
    if rule.norms[head]:
        whole = whole_rule(call)
        values, seen = scores(q, k, whole, head, np.float64), visible(whole, len(q), len(k))
        terms /= np.maximum(length(values, seen), 1e-30)
    return 2.0**-22 * terms[:, None]


def close(found, expected, open_):
    """Within 1e-5, and within 1e-4 of the row's largest magnitude."""
    error = np.maximum(np.abs(found - expected) - open_, 0)
    largest = np.abs(expected).max(1, keepdims=True)
    return (error <= 1e-5 * np.maximum(largest, 1)).all() and (error <= 1e-4 * largest).all()


@pytest.mark.parametrize("activation", [*ACTIVATIONS, *MIXTURES])
@pytest.mark.parametrize("family", FAMILIES)
def test_tiles_are_the_weights_of_the_model(tmp_path, attended, family, activation):
    model = opened(tmp_path, build(family, activation))
    capture = finish(tasks.capture(model, *prompts(model)[:1], target=prompts(model)[1]))
    assert len(attended) == len(capture.maps)
    for call, maps, layer in zip(attended, capture.maps, model.spec.layers, strict=True):
        assert isinstance(maps, LazyMap)
        assert maps.shape == (6, call[0].shape[2], call[1].shape[2])
        weights = own_weights(call)
        for head, name in enumerate(layer.activations):
            found = maps.read(head)
            (exact, sound), open_ = exact_map(call, head), rounding(call, head)
            assert close(found[sound], exact[sound], open_[sound]), (layer.name, name)
            if call[3].empty_rows == "zeros":
                assert close(found, weights[head], open_), (layer.name, name)
            assert np.isfinite(found).all()
        largest = max(np.abs(maps.read(head)).max() for head in maps.heads)
        assert maps.verify_max_abs < 1e-4 * max(1, largest)


def captured(model, out=None, **options):
    """A capture of the prompts."""
    prompt, target = prompts(model)
    return finish(tasks.capture(model, prompt, out, target=target, **options))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_capture_of_heads_that_are_unlike_comes_back_from_its_file(tmp_path, family):
    model = opened(tmp_path / "model", build(family, "unlike"))
    kept, read = captured(model), captured(model, tmp_path / "a.h5")
    assert read.path and np.array_equal(kept.logits, read.logits)
    for one, two in zip(kept.maps, read.maps, strict=True):
        assert one.factors.rule.top_k == two.factors.rule.top_k == 3
        for head in one.heads:
            for options in ({}, {"zoom": 1}, {"zoom": 2, "reduce": "mean"}):
                found = one.read(head, **options), two.read(head, **options)
                np.testing.assert_allclose(*found, rtol=0, atol=1e-6)  # settled more or less
            np.testing.assert_allclose(
                one.summary(head).rowmax, two.summary(head).rowmax, rtol=1e-6, atol=1e-7
            )
            np.testing.assert_allclose(
                one.summary(head).thumb, two.summary(head).thumb, rtol=1e-3, atol=1e-7
            )
    again = open_capture(tmp_path / "a.h5")
    assert (again.target is None) == (kept.target is None)
    assert again.main.digest == kept.main.digest


@pytest.mark.parametrize("family", FAMILIES)
def test_heads_off_leave_the_maps_of_their_layer(tmp_path, family):
    model = opened(tmp_path, build(family, "unlike"))
    whole, without = captured(model), captured(model, off=frozenset([HeadId(0, 0), HeadId(0, 5)]))
    assert np.array_equal(whole.maps[0].read(0), without.maps[0].read(0))
    assert not np.array_equal(whole.logits, without.logits)


@pytest.mark.parametrize("name", ["topk", "linear"])
def test_many_tiles_at_every_zoom_are_one_map(tmp_path, name):
    model = opened(tmp_path, build("decoder", name))
    random = np.random.default_rng(1)
    capture = finish(tasks.capture(model, model.from_ids(random.integers(0, 23, 600))))
    maps = capture.maps[1]
    whole = maps.read(2)
    assert maps.verify_max_abs < 1e-5
    np.testing.assert_allclose(whole.sum(1), 1, atol=1e-5)
    for zoom in (1, 3, 8, 9):
        for reduce in ("max", "mean"):
            assert np.array_equal(maps.read(2, zoom=zoom, reduce=reduce), pool(whole, zoom, reduce))
    if name == "topk":
        assert ((whole > 0).sum(1) == np.minimum(np.arange(600) + 1, 3)).all()


def test_half_precision_is_captured_with_every_activation(tmp_path):
    for name in ("unlike", "six"):
        model = opened(tmp_path / name, build("decoder", name), "bfloat16")
        for maps in captured(model).maps:
            assert maps.verify_max_abs < 1e-4


@pytest.mark.parametrize("step", [0.0, 1e-7, 3e-6])
def test_keys_that_score_nearly_alike_are_listed(step):
    """A threshold between them would let either side of the gap through when it is recomputed."""
    random = torch.Generator().manual_seed(0)
    q = torch.randn(1, 1, 300, 16, generator=random)
    k = torch.randn(1, 1, 150, 16, generator=random).repeat_interleave(2, dim=2)
    k[:, :, 1::2] *= 1 + step
    rule = Rule(0.25, ("topk",), (None,), causal=True, top_k=5)
    found = attention.factors(q, k, rule, None, None)
    weights = attention.weights(q, k, rule)[0, 0].numpy()
    tiles = LazyMap(found, (0,))
    assert ((tiles.read(0) > 0) == (weights > 0)).all()
    assert scaled_error(tiles.read(0), weights) < 1e-5
    assert tiles.verify_max_abs < 1e-5
    assert np.array_equal(tiles.read(0, zoom=3), pool(tiles.read(0), 3))
    if step == 1e-7:
        assert len(found.kept) > 100 and np.isinf(found.threshold).sum() > 100


def test_a_layer_without_heads_is_captured(tmp_path):
    keys = {"family": "gpt2", **WIDTHS, "n_layers": 2, "activations": SIX}
    module = make_transformer(**keys, kept=[[], [1, 4]]).float().requires_grad_(False)
    tokenizer = opened(tmp_path / "whole", make_transformer(**keys)).tokenizer
    model = Model(module, module.config.spec("cut", "", 0), tokenizer, "cpu", "float32")
    capture = captured(model, tmp_path / "a.h5")
    assert [one.shape for one in capture.maps] == [(0, 22, 22), (2, 22, 22)]
    assert capture.maps[1].heads == (1, 4)
