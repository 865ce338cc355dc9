"""Every activation, family and role is captured lazily, densely, and with norms of values."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.activations import ACTIVATIONS
from hgviz.core import HeadId, HgvizError
from hgviz.maps import DenseMap, LazyMap, Rule, pool
from hgviz.models import attention, open_model, run
from hgviz.models.attention import value_norms
from hgviz.models.checkpoints import save
from hgviz.models.config import parse_config
from hgviz.models.layers import Attention
from hgviz.models.mechanisms import Mixtures
from hgviz.models.model import Model
from hgviz.store import open_capture, write_capture
from tests.closeness import scaled_error
from tests.making import make_capture
from tests.maps.reference import choose, length, scores, visible, whole_map
from tests.models.building import make_config, make_hourglass, make_transformer
from tests.models.running import captured_layer
from tests.progress import cancelled

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

    monkeypatch.setattr(run, "attend", watched)
    return calls


def whole_rule(call):
    """The rule of a call with its mask and its relative terms."""
    _, _, _, rule, options, _ = call
    keep, relative = options["keep"], options["relative"]
    if relative is not None:
        relative = relative.map(lambda one: one.detach().double().numpy())
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
    capture = tasks.capture(model, *prompts(model)[:1], target=prompts(model)[1])
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
    return tasks.capture(model, prompt, out, target=target, **options)


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
    capture = tasks.capture(model, model.from_ids(random.integers(0, 23, 600)))
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


# --- dense maps -----------------------------------------------------------------------------------


__all__ = ["attended"]  # a fixture

HALF = {"float32": 1e-5, "bfloat16": 2**-7, "float16": 2**-10}


def both(model, folder=None):
    """(weights, factors) of the same text"""
    prompt, target = prompts(model)
    out = None if folder is None else folder / "a.h5"
    return (
        tasks.capture(model, prompt, out, target=target, dense=True),
        tasks.capture(model, prompt, target=target),
    )


@pytest.mark.parametrize("activation", ["softmax", "unlike", "six", "by layer"])
@pytest.mark.parametrize("family", FAMILIES)
def test_weights_that_are_kept_are_those_that_are_computed(tmp_path, family, activation):
    model = opened(tmp_path / "model", build(family, activation), "float64")
    dense, lazy = both(model, tmp_path)
    np.testing.assert_allclose(dense.logits, lazy.logits, atol=1e-9)
    for one, two in zip(dense.maps, lazy.maps, strict=True):
        assert isinstance(one, DenseMap) and isinstance(two, LazyMap)
        assert one.array.dtype == np.float64 and one.signed == two.signed
        for head in one.heads:
            for options in ({}, {"zoom": 2}, {"zoom": 1, "reduce": "mean"}):
                found, expected = one.read(head, **options), two.read(head, **options)
                if options == {"zoom": 2}:  # of two as large, one of each sign, either may win
                    found, expected = abs(found), abs(expected)
                np.testing.assert_allclose(found, expected, atol=3e-7, rtol=1e-4)


@pytest.mark.parametrize("dtype", HALF)
def test_weights_are_kept_in_the_precision_of_the_model(tmp_path, dtype):
    model = opened(tmp_path / "model", build("hourglass", "six"), dtype)
    dense, lazy = both(model, tmp_path)
    for one, two in zip(dense.maps, lazy.maps, strict=True):
        assert one.array.dtype.name == {"bfloat16": "uint16"}.get(dtype, dtype)
        if one is dense.maps[0]:  # what comes after has other queries: the context was rounded
            for head in one.heads:
                expected = two.read(head)
                bound = HALF[dtype] * np.abs(expected).max(1, keepdims=True) + 1e-6
                assert (np.abs(one.read(head) - expected) <= bound).all()


def test_a_causal_map_stores_nothing_above_its_diagonal(tmp_path):
    model = opened(tmp_path / "model", build("decoder", "softmax"))
    prompt = model.from_ids(np.random.default_rng(0).integers(0, 23, 600))
    capture = tasks.capture(model, prompt, tmp_path / "a.h5", dense=True)
    assert all(one.causal for one in capture.maps) and capture.made.dense
    again = open_capture(tmp_path / "a.h5")
    assert np.array_equal(again.maps[1].read(2), capture.maps[1].read(2))
    assert (np.triu(again.maps[1].read(2), 1) == 0).all()


def test_an_unfinished_capture_of_factors_is_not_gone_on_with(tmp_path):
    model = opened(tmp_path / "model", build("decoder", "softmax"))
    prompt, _ = prompts(model)
    cancelled(tasks.capture, model, prompt, tmp_path / "a.h5")
    with pytest.raises(HgvizError, match="kind of maps"):
        tasks.capture(model, prompt, tmp_path / "a.h5", dense=True)


def test_maps_that_would_not_fit_are_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(run, "free_memory", lambda: 10**9)
    q = torch.zeros(1, 1, 1, 4).expand(1, 12, 30_000, 4)
    rule = Rule(0.5, ("softmax",) * 12, (None,) * 12, causal=True)
    with pytest.raises(HgvizError, match=r"take 43\.2 GB, and 1\.0 GB are free") as found:
        captured_layer(q, q, q, rule, dense=True)
    assert "Leave --dense out" in str(found.value) and "\n" not in str(found.value)


def test_one_text_is_kept_at_a_time():
    q = torch.zeros(2, 1, 3, 4)
    with pytest.raises(HgvizError, match="one text"):
        captured_layer(q, q, q, Rule(0.5, ("softmax",), (None,)), dense=True)


def test_a_layer_without_heads_has_no_weights():
    q = torch.zeros(1, 0, 3, 4)
    context, kept = captured_layer(q, q, q, Rule(0.5, (), ()), dense=True)
    assert context.shape == q.shape and kept.values.shape == (0, 3, 3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("activation", ["softmax", "ymish", "topk", "six"])
@pytest.mark.parametrize("family", ["hourglass", "decoder", "encoder"])
def test_tiles_from_a_file_are_as_exact_as_float32_whatever_the_model_computes_in(
    tmp_path, attended, family, activation, dtype
):
    model = opened(tmp_path / "model", build(family, activation), dtype)
    prompt, _ = prompts(model, 300)
    capture = tasks.capture(model, prompt, tmp_path / "a.h5")
    for call, maps in zip(attended, capture.maps, strict=True):
        q, k, _, rule, options, _ = call
        terms = options["relative"]
        wide = [
            attention.weights(
                q.to(kind), k.to(kind), rule, options["keep"],
                None if terms is None else terms.map(lambda one, kind=kind: one.to(kind)),
            )[0].double().numpy()
            for kind in (torch.float64, torch.float32)
        ]  # fmt: skip
        for head in maps.heads:
            exact, own = (one[head] for one in wide)
            seen = exact.any(1)  # rows without keys read as the masking says
            chosen = ((exact != 0) == (own != 0)).all(1) & seen
            error = np.maximum(np.abs(maps.read(head) - exact) - rounding(call, head), 0)[chosen]
            largest = np.abs(exact).max(1, keepdims=True)[chosen]
            limit = max(2 * np.abs(own - exact)[chosen].max(), 5e-7)
            assert error.max() <= limit * max(1, largest.max())
            assert (error <= 1e-5 * np.maximum(largest, 1)).all()


# --- norms of values ------------------------------------------------------------------------------


def plainly(model, prompt, target):
    """By layers: the norm of each value behind its head's rows of W_O, by hooks and numpy."""
    seen, hooks = {}, []
    for part in model.module.modules():
        if isinstance(part, Attention):

            def note(_, __, out, part=part):
                seen[part.layer.index] = (part, out[0].double().numpy())

            hooks.append(part.v.register_forward_hook(note))
    tasks.capture(model, prompt, target=target)
    for one in hooks:
        one.remove()
    found = {}
    for index, (part, values) in seen.items():
        weight = part.o.weight.double().numpy()
        width, rows = part.d_head, []
        owners = [one for one in model.module.modules() if getattr(one, "attn", None) is part]
        mixtures = next((one.projection for one in owners if hasattr(one, "projection")), None)
        if isinstance(mixtures, Mixtures):  # values of slots, made of those of real tokens
            mix = mixtures.value_mixture
            real = (
                values if prompt.attention_mask is None else values * prompt.attention_mask[:, None]
            )
            heads = torch.tensor(real).unflatten(1, (-1, width)).transpose(0, 1)[None]
            values = mix.double()(heads)[0].transpose(0, 1).flatten(1).detach().numpy()
        for place in range(len(part.layer.heads)):
            columns = slice(place * width, (place + 1) * width)
            given = np.einsum("kd,ed->ke", values[:, columns], weight[:, columns])
            rows.append(np.sqrt((given**2).sum(-1)))
        found[index] = np.array(rows)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_every_layer_of_every_family_says_what_its_keys_give(family, tmp_path):
    model = opened(tmp_path, build(family, "softmax"))
    prompt, target = prompts(model)
    found = tasks.capture(model, prompt, target=target)
    expected = plainly(model, prompt, target)
    assert sorted(expected) == [layer.index for layer in model.spec.layers]
    for index, one in enumerate(found.maps):
        assert one.value_norms.shape == (one.shape[0], one.shape[2])
        assert one.value_norms.dtype == np.float32
        np.testing.assert_allclose(one.value_norms, expected[index], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_they_are_numbers_of_float32_whatever_the_model_computes_in(dtype, tmp_path):
    model = opened(tmp_path, build("encoder", "softmax"), dtype)
    found = tasks.capture(model, prompts(model)[0])
    for one in found.maps:
        assert one.value_norms.dtype == np.float32 and (one.value_norms > 0).all()


SHAPES = ((2, 3, 7, 5), (3, 8, 4, 1), (3, 8, 4, 20), (1, 1, 1, 3), (0, 4, 6, 5), (2, 3, 7, 0))


def test_wide_and_narrow_heads_and_layers_without_any():
    random = torch.manual_seed(0)
    for heads, width, inner, keys in SHAPES:
        v = torch.randn(1, heads, keys, width, generator=random)
        out = torch.randn(inner, heads * width, generator=random)
        parts = out.view(inner, heads, width)
        expected = torch.einsum("hkd,ehd->hke", v[0], parts).norm(dim=-1)
        torch.testing.assert_close(value_norms(v, out), expected, rtol=1e-5, atol=1e-6)


def test_weights_kept_themselves_bring_them_too(tmp_path):
    model = opened(tmp_path / "m", build("decoder", "tanh"))
    prompt, _ = prompts(model)
    lazy = tasks.capture(model, prompt)
    dense = tasks.capture(model, prompt, tmp_path / "dense.h5", dense=True)
    for one, two in zip(lazy.maps, dense.maps, strict=True):
        assert isinstance(two, DenseMap)
        np.testing.assert_allclose(two.value_norms[...], one.value_norms, rtol=1e-5)


def test_a_pruned_layer_has_those_of_the_heads_it_kept(tmp_path):
    model = opened(tmp_path / "m", build("encoder", "softmax"))
    off = frozenset({HeadId(0, 1), HeadId(0, 4)})
    tasks.prune(tmp_path / "m", off, tmp_path / "small")
    small = open_model(tmp_path / "small")
    prompt, _ = prompts(model)
    whole = tasks.capture(model, prompt).maps[0]
    left = tasks.capture(small, prompt).maps[0]
    kept = [head for head in whole.heads if head not in (1, 4)]
    assert left.heads == tuple(kept)
    np.testing.assert_allclose(left.value_norms, whole.value_norms[kept], rtol=1e-5)


def test_they_come_back_from_a_file_bit_by_bit_and_are_checked(tmp_path):
    capture = make_capture("Some text. " * 9, strides=(1, 2), heads=2)
    norms = [
        np.random.default_rng(at).random((one.shape[0], one.shape[2]), np.float32)
        for at, one in enumerate(capture.maps)
    ]
    maps = tuple(
        type(one)(replace(one.factors, value_norms=given), one.heads)
        for one, given in zip(capture.maps, norms, strict=True)
    )
    path = write_capture(tmp_path / "a.h5", replace(capture, maps=maps))
    for one, given in zip(open_capture(path).maps, norms, strict=True):
        assert (one.value_norms[...] == given).all() and (one.value_norms[1] == given[1]).all()
    again = write_capture(tmp_path / "b.h5", open_capture(path))
    assert (open_capture(again).maps[2].value_norms[...] == norms[2]).all()
    copy = tmp_path / "c.h5"
    copy.write_bytes(path.read_bytes())
    with h5py.File(copy, "r+") as file:
        file["layers/000/value_norms"][0, 3] += 1
    damaged = open_capture(copy)
    assert (damaged.maps[0].read(0) == capture.maps[0].read(0)).all()
    with pytest.raises(HgvizError, match="not what was written"):
        damaged.maps[0].value_norms[0]


def test_captures_of_before_and_of_other_programs_have_none(tmp_path):
    capture = make_capture("Some text. ", strides=(1,), heads=1)
    path = write_capture(tmp_path / "a.h5", capture)
    assert all(one.value_norms is None for one in open_capture(path).maps)


def test_a_file_with_as_many_as_it_has_not_keys_is_refused(tmp_path):
    path = write_capture(tmp_path / "a.h5", make_capture("Some text. ", strides=(1,), heads=2))
    with h5py.File(path, "r+") as file:
        file["layers/000/value_norms"] = np.zeros((2, 5), "f4")
    with pytest.raises(HgvizError, match="instead of"):
        open_capture(path)
