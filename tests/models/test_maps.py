"""Captures of the own families: maps as factors, as weights and from files, beside dense maps."""

import copy
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.activations import SIX_ACTIVATIONS
from hgviz.core import HeadId, HgvizError
from hgviz.maps import DenseMap, LazyMap, pool
from hgviz.models import open_model, run
from hgviz.models.attention import attend
from hgviz.models.layers import Attention
from hgviz.models.mechanisms import Mixtures
from hgviz.store import open_capture, write_capture
from tests.closeness import scaled_error
from tests.making import make_capture
from tests.models.building import FAMILIES, build, opened
from tests.models.dense import dense_maps, fill_empty
from tests.models.pairs import pairwise
from tests.progress import cancelled

MIXTURES = {
    "six": list(SIX_ACTIVATIONS),
    "unlike": ["topk", "linear", "softmax", "topk", "tanh", "linear"],
    "kernels": ["rbf", "poly2", "softmax", "rbf", "linear", "raw"],
    "without a sum": ["softpick", "sigmoid", "softmax1", "softmax", "softpick", "tanh"],
    "softmax": "softmax",
}  # fmt: skip


def allowed(row):
    """Whether such a model can be: kernels of queries and keys know no other scores."""
    if row["dtype"] == "float16" and row["activations"] in ("six", "kernels"):
        return False  # they grow out of its range
    other_scores = row["family"] in ("synthesizer", "shared", "quadratic", "places")
    return not other_scores or row["activations"] not in ("unlike", "kernels")


ROWS = pairwise(
    {
        "family": list(FAMILIES), "activations": list(MIXTURES),
        "dtype": ["float64", "float32", "bfloat16", "float16"], "off": [False, True],
    },
    allowed,
)  # fmt: skip


def prompts(model, tokens=22):
    """A text whose first three tokens are padding, and the decoder's where there is one."""
    random, mask = np.random.default_rng(0), np.arange(tokens) >= 3
    if model.spec.family == "dynamic":
        mask = np.arange(tokens) < tokens - 3
    if model.takes_states:
        states = random.normal(size=(tokens, 24)).astype(np.float32)
        prompt = model.from_states(states, mask)
    else:
        prompt = model.from_ids(random.integers(0, 23, tokens), mask)
    if not model.spec.two_texts:
        return prompt, None
    return prompt, model.from_ids(random.integers(0, 23, 13), np.arange(13) < 11)


def captured(model, out=None, **options):
    """A capture of the prompts."""
    prompt, target = prompts(model)
    return tasks.capture(model, prompt, out, target=target, **options)


@pytest.fixture
def calls(monkeypatch):
    """What every layer attended with: q, k, rule, keep and relative terms."""
    calls = []

    def watched(q, k, v, rule, **options):
        calls.append((q, k, rule, options["keep"], options["relative"]))
        return attend(q, k, v, rule, **options)

    monkeypatch.setattr(run, "attend", watched)
    return calls


@pytest.mark.parametrize("family", FAMILIES)
def test_maps_are_those_of_the_formulas_however_they_are_kept(tmp_path, calls, family):
    for at, row in enumerate(row for row in ROWS if row["family"] == family):
        module = build(family, MIXTURES[row["activations"]])
        model = opened(tmp_path / f"model {at}", module, row["dtype"])
        off = frozenset([HeadId(0, 0), HeadId(0, 5)]) if row["off"] else frozenset()
        path = tmp_path / f"{at}.h5"
        capture = captured(model, path, off=off)
        given = calls[-len(capture.maps) :]  # a pass that finds segments comes before
        again, dense = open_capture(path), captured(model, dense=True, off=off)
        assert again.off == capture.off == off
        assert len(capture.maps) == len(model.spec.layers)
        close = {"float64": 1e-6, "float32": 2e-5}.get(row["dtype"], 4e-3)
        if row["dtype"] == "float64":
            assert scaled_error(dense.logits, capture.logits) < 1e-9
        for number, (maps, call) in enumerate(zip(capture.maps, given, strict=True)):
            q, k, rule, keep, terms = call
            with torch.no_grad():
                exact = dense_maps(q, k, rule, keep, terms)
                wanted = fill_empty(exact, rule, keep)[0].numpy()
            assert isinstance(maps, LazyMap) and maps.shape == wanted.shape
            assert isinstance(dense.maps[number], DenseMap)
            assert dense.maps[number].signed == maps.signed
            assert again.maps[number].factors.rule.top_k == 3
            for place, head in enumerate(maps.heads):
                found = maps.read(head)
                if not (rule.activations[place] == "topk" and close > 1e-6):  # ties may fall apart
                    assert scaled_error(found, wanted[place]) < close, (row, number, head)
                assert np.array_equal(again.maps[number].read(head), found)
                summary, stored = maps.summary(head), again.maps[number].summary(head)
                np.testing.assert_allclose(stored.rowmax, summary.rowmax, 1e-6, 1e-7)
                if row["dtype"] == "float64":
                    assert scaled_error(dense.maps[number].read(head), found) < 1e-6
            assert maps.verify_max_abs < 2e-5 * max(1, np.abs(wanted).max())


# --- what is kept beside maps ---------------------------------------------------------------------


def lengths_of_values(model, prompt, target):
    """By layers: the norm of each value behind its head's rows of W_O, by hooks and numpy."""
    values, hooks = {}, []
    for part in model.module.modules():
        if isinstance(part, Attention):

            def note(_, __, out, part=part):
                values[part.layer.index] = part, out[0].double()

            hooks.append(part.v.register_forward_hook(note))
    tasks.capture(model, prompt, target=target)
    for hook in hooks:
        hook.remove()
    lengths = {}
    for index, (part, v) in values.items():
        owners = [one for one in model.module.modules() if getattr(one, "attn", None) is part]
        mixtures = next((one.projection for one in owners if hasattr(one, "projection")), None)
        heads = v.unflatten(1, (-1, part.d_head)).transpose(0, 1)  # (H, n, D)
        if isinstance(mixtures, Mixtures):  # values of slots, made of those of real tokens
            keep = torch.tensor(prompt.attention_mask)[:, None]
            heads = copy.deepcopy(mixtures.value_mixture).double()((heads * keep)[None])[0]
        out = part.o.weight.double().unflatten(1, (-1, part.d_head))
        behind = torch.einsum("hkd,ehd->hke", heads, out)
        lengths[index] = behind.norm(dim=-1).detach().numpy()
    return lengths


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "segments"])
def test_keys_are_kept_with_the_lengths_of_what_they_give(family, tmp_path):
    model = opened(tmp_path, build(family, "softmax"))
    prompt, target = prompts(model)
    wanted = lengths_of_values(model, prompt, target)
    for dense in (False, True):
        for number, maps in enumerate(captured(model, dense=dense).maps):
            assert maps.value_norms.dtype == np.float32
            np.testing.assert_allclose(maps.value_norms[...], wanted[number], 1e-5, 1e-6)


def test_a_pruned_layer_keeps_the_numbers_and_lengths_of_its_heads(tmp_path):
    model = opened(tmp_path / "whole", build("encoder", "softmax"), "bfloat16")
    tasks.prune(tmp_path / "whole", frozenset({HeadId(0, 1), HeadId(0, 4)}), tmp_path / "small")
    whole = captured(model).maps[0]
    left = captured(open_model(tmp_path / "small", dtype="bfloat16")).maps[0]
    assert left.heads == (0, 2, 3, 5) and left.value_norms.dtype == np.float32
    np.testing.assert_allclose(left.value_norms, whole.value_norms[[0, 2, 3, 5]], rtol=1e-5)
    empty = opened(tmp_path / "empty", build("decoder", MIXTURES["six"], kept=[[], [1, 4]]))
    maps = captured(empty, tmp_path / "a.h5").maps
    assert [one.shape for one in maps] == [(0, 22, 22), (2, 22, 22)] and maps[1].heads == (1, 4)


def test_lengths_come_back_from_a_file_bit_by_bit_and_are_checked(tmp_path):
    capture = make_capture("Some text. " * 9, strides=(1, 2), heads=2)
    random = np.random.default_rng(0)
    lengths = [random.random((one.shape[0], one.shape[2]), np.float32) for one in capture.maps]
    maps = tuple(
        LazyMap(replace(one.factors, value_norms=given), one.heads)
        for one, given in zip(capture.maps, lengths, strict=True)
    )
    path = write_capture(tmp_path / "a.h5", replace(capture, maps=maps))
    for one, given in zip(open_capture(path).maps, lengths, strict=True):
        assert (one.value_norms[...] == given).all() and (one.value_norms[1] == given[1]).all()
    again = open_capture(write_capture(tmp_path / "b.h5", open_capture(path)))
    assert (again.maps[2].value_norms[...] == lengths[2]).all()
    copied = tmp_path / "copy.h5"
    copied.write_bytes(path.read_bytes())
    with h5py.File(copied, "r+") as file:
        file["layers/000/value_norms"][0, 3] += 1
    damaged = open_capture(copied)
    assert (damaged.maps[0].read(0) == capture.maps[0].read(0)).all()
    with pytest.raises(HgvizError, match="not what was written"):
        damaged.maps[0].value_norms[0]
    plain = write_capture(tmp_path / "plain.h5", capture)
    assert all(one.value_norms is None for one in open_capture(plain).maps)
    wrong = tmp_path / "wrong.h5"
    wrong.write_bytes(plain.read_bytes())
    with h5py.File(wrong, "r+") as file:
        file["layers/000/value_norms"] = np.zeros((2, 5), "f4")
    with pytest.raises(HgvizError, match="instead of"):
        open_capture(wrong)


def test_an_unfinished_capture_of_factors_is_not_gone_on_with(tmp_path):
    model = opened(tmp_path / "model", build("decoder", "softmax"))
    cancelled(captured, model, tmp_path / "a.h5")
    with pytest.raises(HgvizError, match="kind of maps"):
        captured(model, tmp_path / "a.h5", dense=True)


def test_long_dense_and_lazy_maps_are_those_of_the_file(tmp_path):
    model = opened(tmp_path / "model", build("decoder", ["topk", "softmax"]))
    prompt = model.from_ids(np.random.default_rng(0).integers(0, 23, 600))
    lazy = tasks.capture(model, prompt, tmp_path / "lazy.h5")
    dense = tasks.capture(model, prompt, tmp_path / "dense.h5", dense=True)
    assert all(one.causal for one in dense.maps) and dense.made.dense
    for capture in (lazy, dense):
        again, maps = open_capture(capture.path).maps[1], capture.maps[1]
        assert not np.triu(maps.read(2), 1).any()
        for zoom, reduce in ((0, "max"), (3, "max"), (8, "mean"), (9, "max")):
            found = again.read(2, zoom=zoom, reduce=reduce)
            np.testing.assert_allclose(found, maps.read(2, zoom=zoom, reduce=reduce), 0, 1e-6)
            np.testing.assert_allclose(found, pool(maps.read(2), zoom, reduce), 0, 1e-6)
    assert ((lazy.maps[1].read(0) > 0).sum(1) == np.minimum(np.arange(600) + 1, 3)).all()
