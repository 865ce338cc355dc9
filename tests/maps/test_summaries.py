"""Dense maps, summaries, histograms, levels of a map in one byte a cell, and the cache."""

import gc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hgviz.maps import DenseMap, Factors, LazyMap, Rule, lazy, overview
from hgviz.maps.overview import (
    SIGNED_ERROR,
    UNSIGNED_ERROR,
    Histogram,
    Range,
    decode,
    encode,
    pool,
)
from hgviz.maps.tiles import Cache, build_pyramid, storage_request, survey
from hgviz.store import open_capture, write_capture
from tests.making import make_capture
from tests.maps.reference import pooled
from tests.maps.test_lazy import make, same_bits


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("zoom", [0, 1, 9])
@pytest.mark.parametrize("reduce", ["max", "mean"])
def test_a_dense_map_reads_like_its_array(signed, zoom, reduce):
    array = np.random.default_rng(0).normal(size=(2, 530, 290)).astype(np.float32)
    array = array if signed else np.abs(array)
    maps = DenseMap(array, (1, 5), signed)
    same_bits(maps.read(5, zoom=zoom, reduce=reduce), pooled(array[1], zoom, reduce, signed))
    same_bits(maps.read(5, (3, 400), (256, 280)), array[1, 3:400, 256:280])
    same_bits(maps.read(1, zoom=zoom, reduce=reduce), pool(array[0], zoom, reduce, signed))


def test_a_uniform_head_has_the_entropy_of_the_keys_it_sees():
    factors = make(Rule(1.0, ("softmax",), (None,), causal=True), 600, 600)
    stat = np.log(np.arange(1, 601, dtype=np.float32))[None]
    found = LazyMap(replace(factors, q=0 * factors.q, stat=stat), (0,)).summary(0)
    np.testing.assert_allclose(found.entropy, np.log(np.arange(1, 601)), atol=1e-5)
    np.testing.assert_allclose(found.rowmax, 1 / np.arange(1, 601), rtol=2e-6)


@pytest.mark.parametrize("activation", ["softmax", "ymish", "elu"])
def test_a_summary_says_what_the_whole_map_says(activation):
    norm = "l2" if activation == "ymish" else None
    maps = LazyMap(make(Rule(0.7, (activation,), (norm,), causal=True), 300, 300), (2,))
    whole, found = maps.read(2), maps.summary(2)
    same_bits(found.thumb, maps.read(2, zoom=2))
    same_bits(found.rowmax, _largest(whole))
    shares = np.abs(whole) / np.abs(whole).sum(1, keepdims=True)
    logs = np.where(shares > 0, np.log(np.maximum(shares, 1e-30)), 0)
    np.testing.assert_allclose(found.entropy, -(shares * logs).sum(1), atol=1e-5)


def _largest(whole):
    high, low = whole.max(1), whole.min(1)
    return np.where(high >= -low, high, low)


def test_the_cache_holds_no_more_than_its_limit_and_drops_the_oldest():
    cache = Cache(3 * 80)
    made = []

    def value(name):
        return cache.get((name,), lambda: made.append(name) or np.zeros(10))

    for name in "abcabd":  # d drops c, the one not used for longest
        value(name)
    assert cache.held == 3 * 80
    value("a"), value("c")
    assert made == list("abcdc")
    cache.get(("huge",), lambda: np.zeros(1000))
    assert cache.held == 0


def test_what_tiles_were_made_of_goes_with_their_map():
    draw = np.random.default_rng(0)
    q, k = (draw.normal(size=(1, 300, 8)).astype(np.float32) for _ in range(2))
    none = np.zeros(0, np.int64), np.zeros((1, 0, 300), np.float32)
    rule = Rule(1.0, ("softmax",), (None,), causal=True)
    gc.collect()
    before = lazy._READY.held
    maps = LazyMap(Factors(q, k, np.zeros((1, 300), np.float32), rule, *none), (0,))
    maps.read(0)
    assert lazy._READY.held > before
    del maps
    assert lazy._READY.held == before


# --- histograms -----------------------------------------------------------------------------------


def test_a_quantile_is_the_magnitude_that_the_share_does_not_exceed():
    values = np.linspace(0.001, 1.0, 1000, dtype=np.float32).reshape(50, 20)
    for signed in (False, True):
        shown = np.where(np.arange(20) % 2, -values, values) if signed else values
        within = overview.Range.of(shown, signed)
        found = Histogram.of(overview.encode(shown, within), within)
        assert found.counts.sum() == 1000
        for share in (0.05, 0.5, 0.99, 1.0):
            assert found.quantile(share) == pytest.approx(share, rel=0.06 if signed else 0.03)


@pytest.mark.parametrize("signed", [False, True])
def test_a_stored_histogram_counts_the_finest_kept_cells(tmp_path, monkeypatch, signed):
    monkeypatch.setattr(overview, "_SMALL", 16)  # levels as of a long text
    capture = make_capture("x. " * 367, (1,), 1, signed=signed, logits=False)
    opened = open_capture(write_capture(tmp_path / "a.h5", capture))
    for one in opened.maps:
        summary, cells = one.summary(0), np.abs(one.read(0, zoom=3))
        assert summary.hist is not None and summary.hist.counts.sum() == cells.size
        assert summary.peak == pytest.approx(cells.max(), rel=1e-5)
        seen = np.quantile(cells, 0.9)
        assert summary.quantile(0.9) == pytest.approx(seen, rel=0.08)
        plain = make_small(one)
        assert plain.hist is None and plain.quantile(1.0) == pytest.approx(summary.peak, rel=0.06)


def make_small(one):
    """The summary that is computed anew, from the map itself."""
    return DenseMap(one.read(0)[None], (0,), signed=one.signed).summary(0)


# --- levels ---------------------------------------------------------------------------------------


WEIGHTS = st.floats(-100, 100, width=32, allow_subnormal=False)
MAPS = arrays(np.float32, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=WEIGHTS)


@pytest.mark.parametrize("signed", [False, True])
@given(values=MAPS, power=st.integers(-9, 9))
@settings(deadline=None)
def test_a_code_is_within_the_error_that_is_promised(signed, values, power):
    values = values * np.float32(10.0**power)
    values = values if signed else np.abs(values)
    within = Range.of(values, signed)
    found = decode(encode(values, within), within)
    error = SIGNED_ERROR if signed else UNSIGNED_ERROR
    seen = np.abs(values) >= within.floor
    assert within.is_valid
    assert (np.abs(found - values)[seen] <= error * np.abs(values)[seen]).all()
    assert (np.abs(found - values)[~seen] <= within.floor).all()
    assert (found[values == 0] == 0).all()
    assert (np.sign(found) * np.sign(values) >= 0).all()
    assert np.abs(values).max() <= within.maximum * (1 + 1e-6)


def test_codes_span_a_million_in_both_forms():
    for signed in (False, True):
        within = Range.of(np.array([1e-30, 1.0]), signed)
        assert 1e-6 / 2 < within.floor < 1.2e-6
    assert Range.of(np.array([0.25, 0.5]), False).floor == 0.25


def stored(maps):
    """A map that has its own pyramid at hand."""
    kept = {}
    for place in range(maps.shape[0]):
        kept[place] = build_pyramid(maps, survey(maps, place, storage_request(maps)))
    maps._pyramids = kept.__getitem__
    return maps


@pytest.mark.parametrize(
    ("activation", "norm", "causal"),
    [("softmax", None, True), ("ymish", "l2", False)],
)
def test_an_overview_is_the_map_within_a_few_percent(activation, norm, causal):
    rule = Rule(0.5, (activation,), (norm,), causal=causal)
    maps = stored(LazyMap(make(rule, 4200, 700, width=4), (3,)))
    error = SIGNED_ERROR if maps.signed else UNSIGNED_ERROR
    for zoom in (3, 4, 6, 7):
        for window in ((None, None), ((200, 1111), (100, 5000))):
            exact, found = (one(3, *window, zoom=zoom) for one in (maps.read, maps.overview))
            limit = 1.001 * error * np.abs(exact) + 1.2e-6 * np.abs(exact).max()
            if zoom > 6:  # from codes: of two weights nearly alike the other sign may win
                found, exact = np.abs(found), np.abs(exact)
            assert found.shape == exact.shape and (np.abs(found - exact) <= limit).all()
    for zoom in (4, 6, 12):
        exact, found = (one(3, zoom=zoom, reduce="mean") for one in (maps.read, maps.overview))
        assert found.shape == exact.shape
        # coarser means come from finer ones, whose errors all count where signs cancel
        sizes = pool(np.abs(maps.read(3)), zoom, "mean")
        assert (np.abs(found - exact) <= 1.001 * error * sizes + 1e-5 * sizes.max()).all()


def test_there_is_no_overview_of_fine_zooms_and_of_small_maps():
    rule = Rule(0.5, ("softmax",), (None,))
    maps = stored(LazyMap(make(rule, 4200, 20, width=4), (0,)))
    assert maps.overview(0, zoom=2) is None and maps.overview(0, zoom=3) is not None
    assert maps.overview(0, zoom=3, reduce="mean") is None
    assert LazyMap(make(rule, 4200, 20, width=4), (0,)).overview(0, zoom=3) is None
    small = LazyMap(make(rule, 300, 20, width=4), (0,))
    assert build_pyramid(small, survey(small, 0, storage_request(small))) is None
