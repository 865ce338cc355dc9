"""Surveys on a device: what they find is what tiles give, on every device that is here."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings

from hgviz import tasks
from hgviz.maps import LazyMap, Quadratic, Relative, Rule, overview, recompute_statistics
from hgviz.maps.lazy import corrected_statistic
from hgviz.maps.tiles import SurveyRequest, row_totals, survey, tile_blocks
from hgviz.models import device_maps, open_model
from hgviz.models.device_maps import DeviceHead, blocks_on
from tests.maps.reference import scores, statistic, visible, whole_map
from tests.maps.test_lazy import layers, make
from tests.models.building import write_transformer

BY_TORCH = "cpu:0"  # the CPU under a name that numpy does not answer to
DEVICES = [
    BY_TORCH,
    pytest.param(
        "cuda",
        marks=pytest.mark.skipif(
            not torch.cuda.is_available(), reason="this machine has no CUDA device"
        ),
    ),
]


@pytest.fixture(autouse=True, scope="module")
def small_maps_too():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_maps, "LEAST", 0)
        yield


FINDINGS = "total", "top", "entropy", "cells", "sums", "rows"


def head(rule, queries, keys, spread=1.0, **options):
    """A softmax whose scores spread by so much, with the statistics of a model in float32."""
    factors = make(rule, queries, keys, width=64, **options)
    if spread != 1:
        factors = replace(factors, q=np.float32(spread) * factors.q)
        model = scores(factors.q[0], factors.k[0], rule, 0, np.float32)
        stat = statistic(model, visible(rule, queries, keys), "softmax", None)
        factors = replace(factors, stat=stat[None].astype(np.float32))
    return factors


def softmax(scale=0.125, **options):
    return Rule(scale, ("softmax",), (None,), **options)


def agree(one, other, tolerance=2e-5):
    """Two surveys within the rounding of float32; entropies are sums of many."""
    for name in FINDINGS:
        a, b = getattr(one, name), getattr(other, name)
        assert a.shape == b.shape and a.dtype == b.dtype, name
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=tolerance, err_msg=name)


def distances(unit=1):
    """Relative positions of one head."""
    random = np.random.default_rng(0)
    shapes = (1, 64, 12), (1, 64), (1, 64), (1, 64)
    return Relative(*(0.5 * random.normal(size=one).astype(np.float32) for one in shapes), unit)


KINDS = {
    "whole": (softmax(), 700, 300),
    "causal": (softmax(causal=True), 700, 700),
    "padded": (softmax(causal=True, keep=np.arange(600) > 270), 600, 600),
    "streaming": (softmax(causal=True).with_streaming((0,), (4, 90)), 700, 700),
    "streaming, padded": (
        softmax(causal=True, keep=np.arange(600) > 270).with_streaming((0,), (4, 90)),
        600,
        600,
    ),
    "holes": (softmax(0.3, keep=np.arange(300) % 7 > 2), 520, 300),
    "going down": (softmax(causal=True, stride_q=4), 150, 600),
    "going up": (softmax(causal=True, stride_k=4), 600, 150),
    "windowed": (softmax(causal=True, stride_q=4, windowed=True), 150, 600),
    "windowed up": (softmax(stride_k=3, windowed=True), 600, 200),
    "relative": (softmax(causal=True, relative=distances()), 600, 600),
    "quadratic": (softmax(relative=Quadratic(np.array([[0.02, -5]], np.float32))), 600, 500),
    "Gaussian kernel": (Rule(0.125, ("rbf",), (None,), causal=True), 600, 600),
    "Gaussian kernel, relative": (
        Rule(0.125, ("rbf",), (None,), causal=True, relative=distances()),
        600,
        600,
    ),
    "relative down": (softmax(causal=True, stride_q=3, relative=distances(3)), 200, 600),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_softmax_is_surveyed_as_by_numpy(device, kind, dtype, monkeypatch):
    monkeypatch.setattr(device_maps, "CELLS", 1)  # a tile's rows in each part
    rule, queries, keys = KINDS[kind]
    maps = LazyMap(head(rule, queries, keys, dtype=dtype), (0,))
    for wanted in (
        SurveyRequest(3, 4, (0, queries // 2, queries - 1)),
        SurveyRequest(8),
        SurveyRequest(0, 1),
    ):
        agree(survey(maps, 0, wanted, blocks_on(device)), survey(maps, 0, wanted))


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_no_number_and_what_is_settled_is_found_as_by_numpy(device):
    factors = recompute_statistics(head(softmax(causal=True), 600, 600, 40))
    q = np.array(factors.q)
    q[0, 300, 3] = np.nan
    maps, wanted = LazyMap(replace(factors, q=q), (0,)), SurveyRequest(3, 4, (10, 300))
    one = survey(maps, 0, wanted, blocks_on(device))
    # scores reach 200 here, and each library's products round them by some 1e-5
    agree(one, survey(maps, 0, wanted), 5e-5)
    assert np.isnan(one.total[300]) and np.isfinite(one.total[301])


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(layers())
def test_a_map_of_any_rule_is_surveyed_by_torch_or_numpy(factors):
    maps = LazyMap(factors, tuple(range(len(factors.q))))
    wanted = SurveyRequest(2, 3, (0, maps.shape[1] - 1))
    for place in range(len(maps.heads)):
        one, other = survey(maps, place, wanted, blocks_on(BY_TORCH)), survey(maps, place, wanted)
        size = np.abs(other.top).max()
        agree(one, other, 1e-5 * max(1, size))


def test_what_is_no_plain_softmax_is_left_to_numpy(monkeypatch):
    def refuse(*_):
        raise AssertionError("nothing to be done on a device")

    monkeypatch.setattr(device_maps, "DeviceHead", refuse)
    uniform = softmax(keep=np.zeros(30, bool), empty_rows="uniform")
    for rule in (
        Rule(0.4, ("topk",), (None,), top_k=3), Rule(0.4, ("softmax",), ("l2",)),
        Rule(0.4, ("ymish",), ("l2",)), Rule(0.4, ("linear",), (None,)), uniform,
    ):  # fmt: skip
        maps = LazyMap(make(rule, 30, 30), (0,))
        one, other = (
            survey(maps, 0, SurveyRequest(2), blocks_on(BY_TORCH)),
            survey(maps, 0, SurveyRequest(2)),
        )
        assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in FINDINGS)
    assert blocks_on("cpu") is tile_blocks


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("spread", [0.3, 3, 40])
@pytest.mark.parametrize("relative", [None, distances()])
def test_statistics_settled_by_a_device_leave_numpys_tiles_exact(device, spread, relative):
    factors = head(softmax(causal=True, relative=relative), 700, 700, spread)
    maps = LazyMap(factors, (0,))
    exact = whole_map(factors.q[0], factors.k[0], factors.rule, 0)
    total = survey(maps, 0, SurveyRequest(3), blocks_on(device)).total
    found = replace(factors, stat=corrected_statistic(factors, 0, total)[None])
    errors = [
        np.abs(LazyMap(one, (0,)).read(0) - exact).max()
        for one in (found, recompute_statistics(factors))
    ]
    assert errors[0] <= max(1.2 * errors[1], 5e-7)


def test_where_a_weight_is_large_totals_and_rows_are_those_of_numpys_tiles():
    """Near 1 a weight shows the rounding of its score, which is another one in each library."""
    factors = head(softmax(causal=True), 512, 512, 40)
    maps, wanted = LazyMap(factors, (0,)), SurveyRequest(3, None, (0, 300, 511))
    one, other = survey(maps, 0, wanted, blocks_on(BY_TORCH)), survey(maps, 0, wanted)
    near = other.rows > 0.5
    assert near.any() and np.array_equal(one.rows[near], other.rows[near])
    sums = maps.read(0).sum(1, dtype=np.float64)
    for found in (one, other):  # a rounding of float32
        np.testing.assert_allclose(found.total, sums, rtol=0, atol=1.3e-7)


@pytest.mark.parametrize(
    "error",
    [torch.cuda.OutOfMemoryError("CUDA out of memory."), RuntimeError("MPS backend out of memory")],
)
def test_a_device_out_of_memory_leaves_the_head_to_numpy(error, monkeypatch):
    monkeypatch.setattr(device_maps, "CELLS", 1)
    weights, calls = DeviceHead.weights, []

    def full(self, rows, columns):
        calls.append(columns)
        if len(calls) == 2:  # with a part of it found already
            raise error
        return weights(self, rows, columns)

    monkeypatch.setattr(DeviceHead, "weights", full)
    maps, wanted = LazyMap(head(softmax(), 600, 300), (0,)), SurveyRequest(3, 4, (599,))
    one, other = survey(maps, 0, wanted, blocks_on(BY_TORCH)), survey(maps, 0, wanted)
    assert len(calls) == 2
    assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in FINDINGS)


def test_other_errors_of_a_device_are_not_hidden(monkeypatch):
    def broken(*_):
        raise RuntimeError("an illegal instruction was encountered")

    monkeypatch.setattr(DeviceHead, "weights", broken)
    with pytest.raises(RuntimeError, match="illegal instruction"):
        survey(LazyMap(head(softmax(), 30, 30), (0,)), 0, SurveyRequest(2), blocks_on(BY_TORCH))


def test_products_are_taken_without_tf32_which_is_then_as_it_was(monkeypatch):
    matmul, during = torch.backends.cuda.matmul, []
    weights = DeviceHead.weights

    def watched(self, rows, columns):
        during.append(matmul.fp32_precision)
        return weights(self, rows, columns)

    monkeypatch.setattr(DeviceHead, "weights", watched)
    before, matmul.fp32_precision = matmul.fp32_precision, "tf32"
    try:
        survey(LazyMap(head(softmax(), 30, 30), (0,)), 0, SurveyRequest(2), blocks_on(BY_TORCH))
        assert during == ["ieee"] and matmul.fp32_precision == "tf32"
    finally:
        matmul.fp32_precision = before


# --- captures -------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """The devices that weights of a head were computed on."""
    devices = []

    class Watched(DeviceHead):
        def __init__(self, maps, place, device):
            devices.append(device)
            super().__init__(maps, place, device)

    monkeypatch.setattr(device_maps, "DeviceHead", Watched)
    return devices


@pytest.fixture
def folder(tmp_path):
    return write_transformer(
        tmp_path / "model", dtype=torch.float32, form="decoder", vocab_size=256
    )


def on(folder, device):
    """The model on a device, where BY_TORCH is the CPU."""
    model = open_model(folder, device="cpu" if device == BY_TORCH else device)
    model.device = device
    return model


@pytest.mark.parametrize("device", DEVICES)
def test_a_capture_is_surveyed_on_the_device_of_its_model(
    tmp_path, folder, device, asked, monkeypatch
):
    monkeypatch.setattr(overview, "_SMALL", 64)  # levels of a text that is soon captured
    ids = np.random.default_rng(0).integers(0, 256, 1100)
    captures = []
    for name in ("cpu", device):
        model = on(folder, name)
        out = tmp_path / f"{len(captures)}.h5"
        captures.append(tasks.capture(model, model.from_ids(ids), out))
    assert asked == 4 * [device]
    for one, other in zip(captures[0].maps, captures[1].maps, strict=True):
        assert other.verify_max_abs <= max(1.5 * one.verify_max_abs, 5e-7)
        for head in one.heads:
            np.testing.assert_allclose(other.read(head), one.read(head), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(other.read(head).sum(1), 1, atol=1e-6)
            for zoom, reduce in ((3, "max"), (4, "mean")):
                a, b = (maps.overview(head, zoom=zoom, reduce=reduce) for maps in (one, other))
                np.testing.assert_allclose(b, a, rtol=0.06, atol=1e-6)
            a, b = one.summary(head), other.summary(head)
            np.testing.assert_allclose(b.thumb, a.thumb, rtol=2e-3, atol=1e-5)
            np.testing.assert_allclose(b.rowmax, a.rowmax, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(b.entropy, a.entropy, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_a_capture_in_memory_is_settled_there(folder, device, asked, monkeypatch):
    captures = []
    for name in ("cpu", device):
        model = on(folder, name)
        ids = np.random.default_rng(0).integers(0, 256, 300)
        captures.append(tasks.capture(model, model.from_ids(ids)))
    assert asked == 4 * [device]
    for one, other in zip(captures[0].maps, captures[1].maps, strict=True):
        assert other.verify_max_abs <= max(1.5 * one.verify_max_abs, 5e-7)


def test_rows_that_need_no_adding_up_are_not_sent_to_a_device(asked):
    maps, none = LazyMap(head(softmax(), 300, 300), (0,)), np.zeros(300, bool)
    assert np.isnan(row_totals(maps, 0, none, blocks_on(BY_TORCH))).all() and not asked
    every = row_totals(maps, 0, None, blocks_on(BY_TORCH))
    assert asked == [BY_TORCH]
    np.testing.assert_allclose(every, row_totals(maps, 0), rtol=1e-6)


def test_small_maps_are_left_to_numpy(asked, monkeypatch):
    maps = LazyMap(head(softmax(), 300, 300), (0,))
    for least, count in ((300 * 300 + 1, 0), (300 * 300, 1)):
        monkeypatch.setattr(device_maps, "LEAST", least)
        survey(maps, 0, SurveyRequest(3), blocks_on(BY_TORCH))
        assert len(asked) == count


def test_texts_of_a_corpus_are_surveyed_there_too(tmp_path, folder, asked):
    corpus = tmp_path / "texts.txt"
    corpus.write_text("one\ntwo\n")
    model = on(folder, BY_TORCH)
    tasks.capture_corpus(model, corpus, tmp_path / "a.h5")
    assert asked == 8 * [BY_TORCH]
