"""Tiles by torch: what they show is what numpy's show, and the same in every read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from hgviz import tasks
from hgviz.core import finish
from hgviz.maps import DenseMap, LazyMap, Rule
from hgviz.models import open_model, surveying, tiling
from hgviz.models.weighing import visible
from tests.maps.test_lazy import layers, make
from tests.models.building import write_transformer
from tests.models.test_surveying import BY_TORCH, DEVICES

PADDED = np.arange(700) > 270
CAUSAL = Rule(0.35, ("softmax",), (None,), causal=True)
KINDS = {
    "causal": (Rule(0.35, ("softmax",), (None,), causal=True), 1300, 1300),
    "whole": (Rule(0.5, ("softmax",), (None,)), 700, 300),
    "padded": (Rule(0.5, ("softmax",), (None,), causal=True, keep=PADDED), 700, 700),
    "going down": (Rule(0.35, ("softmax",), (None,), causal=True, stride_q=4), 280, 1120),
    "going up": (Rule(0.35, ("softmax",), (None,), causal=True, stride_k=4), 1120, 280),
    "streaming": (CAUSAL.streamed((0,), (4, 290)), 1300, 1300),
    "streaming, padded": (replace(CAUSAL, keep=PADDED).streamed((0,), (4, 90)), 700, 700),
    "windowed": (Rule(0.35, ("softmax",), (None,), stride_q=4, windowed=True), 280, 1120),
    "ymish": (Rule(0.35, ("ymish",), ("l2",), causal=True), 1100, 1100),
    "ymish, literal": (Rule(0.35, ("ymish",), ("l2-literal",), causal=True), 600, 600),
    "tanh": (Rule(0.1, ("tanh",), (None,), causal=True), 600, 1100),
    "swish": (Rule(0.35, ("swish",), ("l2",), causal=True), 600, 600),
    "elu": (Rule(0.35, ("elu",), (None,)), 600, 500),
    "linear": (Rule(0.35, ("linear",), (None,), causal=True), 600, 600),
    "poly2": (Rule(0.35, ("poly2",), (None,), causal=True), 600, 600),
    "Gaussian kernel": (Rule(0.35, ("rbf",), (None,), causal=True), 600, 600),
    "softmax1": (Rule(0.35, ("softmax1",), (None,), causal=True), 600, 600),
}


@pytest.fixture(scope="module", autouse=True)
def small_ones_too():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(surveying, "LEAST", 0)
        yield


def near(found, wanted):
    """Within 1e-5, and 1e-4 of the largest magnitude of a row."""
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    largest = np.abs(wanted).max(axis=1, keepdims=True, initial=0)
    assert (np.abs(found - wanted) <= np.minimum(1e-5, 1e-4 * largest) + 1e-7).all()
    assert not np.signbit(found[found == 0]).any()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_map_reads_as_by_numpy_at_every_zoom(device, kind):
    maps = LazyMap(make(*KINDS[kind], width=64), (5,))
    read = tiling.reader(device)
    _, queries, keys = maps.shape
    for zoom in (0, 1, 3, 7, 9, 11, 30):
        near(read(maps, 5, None, None, zoom), maps.read(5, zoom=zoom))
    for rows, columns in (((3, 260), (200, 290)), ((queries - 5, queries), (0, keys))):
        for zoom in (0, 2):
            found = read(maps, 5, rows, columns, zoom)
            near(found, maps.read(5, rows, columns, zoom))
    assert read(maps, 5, (7, 7), (0, 4), 0).shape == (0, 4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_operands_of_every_precision_read_as_by_numpy(device, dtype):
    maps = LazyMap(make(*KINDS["causal"], width=64, dtype=dtype), (0,))
    near(tiling.reader(device)(maps, 0, None, None, 1), maps.read(0, zoom=1))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["causal", "ymish"])
def test_a_cell_has_the_same_bits_in_every_read(device, kind):
    maps = LazyMap(make(*KINDS[kind], width=64), (0,))
    read = tiling.reader(device)
    for zoom in (0, 2):
        whole = read(maps, 0, None, None, zoom)
        for top, left, size in ((0, 0, 64), (512, 16, 512), (1000, 900, 100), (96, 32, 1000)):
            found = read(maps, 0, (top, top + size), (left, left + size), zoom)
            at = whole[top >> zoom :, left >> zoom :][: found.shape[0], : found.shape[1]]
            assert (found == at).all()
        assert (tiling.reader(device)(maps, 0, None, None, zoom) == whole).all()


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(layers())
def test_a_map_of_any_rule_reads_as_by_numpy_or_not_at_all(factors):
    maps, read = LazyMap(factors, tuple(range(len(factors.q)))), tiling.reader(BY_TORCH)
    for head in maps.heads:
        for zoom in (0, 2):
            found, wanted = read(maps, head, None, None, zoom), maps.read(head, zoom=zoom)
            if found is not None:
                size = max(1, np.abs(wanted).max(initial=0))
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * size)


def test_what_is_not_made_of_q_and_k_alone_is_left_to_numpy():
    read = tiling.reader(BY_TORCH)
    none = np.zeros(30, bool)
    for rule in (
        Rule(0.4, ("topk",), (None,), top_k=3),
        Rule(0.4, ("softpick",), (None,)),
        Rule(0.4, ("softmax",), (None,), keep=none, empty_rows="uniform"),
    ):
        assert read(LazyMap(make(rule, 30, 30), (0,)), 0, None, None, 0) is None
    assert read(DenseMap(np.ones((1, 4, 4), np.float32), (0,)), 0, None, None, 0) is None
    assert tiling.reader("cpu") is None


def test_small_maps_are_left_to_numpy(monkeypatch):
    maps = LazyMap(make(*KINDS["causal"]), (0,))
    assert tiling.reader(BY_TORCH)(maps, 0, None, None, 0) is not None
    monkeypatch.setattr(surveying, "LEAST", 1300 * 1300 + 1)
    assert tiling.reader(BY_TORCH)(maps, 0, None, None, 0) is None


def test_the_parts_of_a_block_are_computed_once(monkeypatch):
    maps, computed = LazyMap(make(*KINDS["causal"]), (0,)), []
    monkeypatch.setattr(tiling, "visible", lambda *given: computed.append(given) or visible(*given))
    read = tiling.reader(BY_TORCH)
    for top in range(0, 1024, 256):
        for left in range(0, 1024, 256):
            near(read(maps, 0, (top, top + 256), (left, left + 256), 0),
                 maps.read(0, (top, top + 256), (left, left + 256)))  # fmt: skip
    assert len(computed) == 1


def test_operands_go_from_the_device_with_their_map():
    kept = tiling.reader(BY_TORCH).__self__._kept
    before = kept.held
    maps = LazyMap(make(*KINDS["elu"]), (0,))
    tiling.reader(BY_TORCH)(maps, 0, None, None, 0)
    assert kept.held > before
    del maps
    assert kept.held <= before


@pytest.mark.parametrize(
    "message",
    ["CUDA out of memory.", "MPS backend out of memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED"],
)
def test_a_device_without_memory_leaves_it_to_numpy(monkeypatch, message):
    def full(*_):
        raise RuntimeError(message)

    maps = LazyMap(make(*KINDS["elu"]), (0,))
    monkeypatch.setattr(tiling, "blocks", full)
    assert tiling.reader(BY_TORCH)(maps, 0, None, None, 1) is None
    monkeypatch.setattr(tiling, "blocks", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tiling.reader(BY_TORCH)(maps, 0, None, None, 1)


@pytest.mark.parametrize("device", DEVICES)
def test_a_capture_of_a_model_reads_on_its_device(device, tmp_path):
    path = write_transformer(tmp_path / "model", form="decoder", vocab_size=256)
    model = open_model(path)
    found = finish(tasks.capture(model, model.tokenize("Some text for a small model.")))
    read = tiling.reader(device)
    for maps in found.maps:
        for head in maps.heads:
            near(read(maps, head, None, None, 0), maps.read(head))
