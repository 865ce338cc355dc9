"""Captures of the weights themselves, of every family, mask and activation."""

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.core import HgvizError, finish
from hgviz.maps import DenseMap, LazyMap, Rule
from hgviz.models import attention
from hgviz.models import dense as dense_maps
from hgviz.store import open_capture
from tests.models.test_capturing import FAMILIES, attended, build, opened, prompts, rounding

__all__ = ["attended"]  # a fixture

HALF = {"float32": 1e-5, "bfloat16": 2**-7, "float16": 2**-10}


def both(model, folder=None):
    """(weights, factors) of the same text"""
    prompt, target = prompts(model)
    out = None if folder is None else folder / "a.h5"
    return (
        finish(tasks.capture(model, prompt, out, target=target, dense=True)),
        finish(tasks.capture(model, prompt, target=target)),
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
    capture = finish(tasks.capture(model, prompt, tmp_path / "a.h5", dense=True))
    assert all(one.causal for one in capture.maps) and capture.made.dense
    again = open_capture(tmp_path / "a.h5")
    assert np.array_equal(again.maps[1].read(2), capture.maps[1].read(2))
    assert (np.triu(again.maps[1].read(2), 1) == 0).all()


def test_an_unfinished_capture_of_factors_is_not_gone_on_with(tmp_path):
    model = opened(tmp_path / "model", build("decoder", "softmax"))
    prompt, _ = prompts(model)
    begun = tasks.capture(model, prompt, tmp_path / "a.h5")
    next(begun)
    begun.close()
    with pytest.raises(HgvizError, match="kind of maps"):
        finish(tasks.capture(model, prompt, tmp_path / "a.h5", dense=True))


def test_maps_that_would_not_fit_are_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(dense_maps, "free_memory", lambda: 10**9)
    q = torch.zeros(1, 1, 1, 4).expand(1, 12, 30_000, 4)
    rule = Rule(0.5, ("softmax",) * 12, (None,) * 12, causal=True)
    with pytest.raises(HgvizError, match=r"take 43\.2 GB, and 1\.0 GB are free") as found:
        attention.attend(q, q, q, rule, maps=print)
    assert "Leave --dense out" in str(found.value) and "\n" not in str(found.value)


def test_one_text_is_kept_at_a_time():
    q = torch.zeros(2, 1, 3, 4)
    with pytest.raises(HgvizError, match="one text"):
        attention.attend(q, q, q, Rule(0.5, ("softmax",), (None,)), maps=print)


def test_a_layer_without_heads_has_no_weights():
    q, kept = torch.zeros(1, 0, 3, 4), []
    assert attention.attend(q, q, q, Rule(0.5, (), ()), maps=kept.append).shape == q.shape
    assert kept[0].values.shape == (0, 3, 3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("activation", ["softmax", "ymish", "topk", "six"])
@pytest.mark.parametrize("family", ["hourglass", "decoder", "encoder"])
def test_tiles_from_a_file_are_as_exact_as_float32_whatever_the_model_computes_in(
    tmp_path, attended, family, activation, dtype
):
    model = opened(tmp_path / "model", build(family, activation), dtype)
    prompt, _ = prompts(model, 300)
    capture = finish(tasks.capture(model, prompt, tmp_path / "a.h5"))
    for call, maps in zip(attended, capture.maps, strict=True):
        q, k, _, rule, options, _ = call
        terms = options["relative"]
        wide = [
            attention.weights(
                q.to(kind), k.to(kind), rule, options["keep"],
                None if terms is None else terms.each(lambda one, kind=kind: one.to(kind)),
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
