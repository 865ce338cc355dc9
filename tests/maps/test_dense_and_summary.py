"""Dense maps, summaries, pooling and the cache."""

import gc
import math
from dataclasses import replace

import numpy as np
import pytest

from hgviz.maps import DenseMap, Factors, LazyMap, Rule, Summary, lazy, pool, thumb_zoom
from hgviz.maps.survey import summarise
from hgviz.maps.tiles import Cache
from tests.maps.reference import pooled
from tests.maps.test_lazy import bits, make, same_bits


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("zoom", [0, 1, 4, 9, 11])
@pytest.mark.parametrize("reduce", ["max", "mean"])
def test_a_dense_map_reads_like_its_array(signed, zoom, reduce):
    array = np.random.default_rng(0).normal(size=(2, 530, 290)).astype(np.float32)
    array = array if signed else np.abs(array)
    maps = DenseMap(array, (1, 5), signed)
    same_bits(maps.read(5, zoom=zoom, reduce=reduce), pooled(array[1], zoom, reduce, signed))
    same_bits(maps.read(5, (3, 400), (256, 280)), array[1, 3:400, 256:280])
    same_bits(maps.read(1, zoom=zoom, reduce=reduce), pool(array[0], zoom, reduce, signed))


def test_a_causal_dense_map_shows_nothing_above_its_diagonal():
    array = np.ones((1, 600, 600), np.float32)
    assert (DenseMap(array, (0,), causal=True).read(0) == np.tri(600)).all()


def test_a_dense_map_in_bfloat16_and_negative_zero():
    array = bits(np.array([[[1.5, -0.0], [0.0, 0.25]]]))
    found = DenseMap(array, (0,), signed=True).read(0)
    assert found.tolist() == [[1.5, 0.0], [0.0, 0.25]]
    assert not np.signbit(found).any()


@pytest.mark.parametrize("size,zoom", [(1, 0), (128, 0), (129, 1), (256, 1), (257, 2), (2048, 4)])
def test_the_zoom_of_a_thumbnail_is_the_smallest_that_fits(size, zoom):
    assert thumb_zoom(size, 1) == thumb_zoom(1, size) == zoom
    assert -(-size >> zoom) <= 128


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


def test_rows_without_weights_have_no_entropy():
    found = DenseMap(np.zeros((1, 4, 4), np.float32), (0,)).summary(0)
    assert found.entropy.tolist() == [0] * 4 and found.rowmax.tolist() == [0] * 4


def test_a_stored_summary_is_not_computed_again():
    maps = LazyMap(make(Rule(1.0, ("softmax",), (None,)), 4, 4), (7,))
    kept = summarise(maps, 7)
    places = []
    stored = LazyMap(maps.factors, (7,), lambda place: places.append(place) or kept)
    assert stored.summary(7) is kept and places == [0]


def test_a_thumbnail_of_a_long_map_is_pooled_beyond_a_tile():
    # 2 x 40,000 cells need zoom 9, one more than a tile has
    array = np.zeros((1, 2, 40_000), np.float32)
    array[0, 1, 39_999] = 0.5
    found = DenseMap(array, (0,)).summary(0)
    assert isinstance(found, Summary) and found.thumb.shape == (1, 79)
    assert found.thumb[0, -1] == 0.5 and found.thumb[0, :-1].max() == 0
    assert math.isclose(found.entropy[1], 0, abs_tol=1e-6)


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


def test_the_cache_forgets_an_owner_even_while_it_is_at_work():
    cache = Cache(1000)
    for key in ((1, "q"), (1, "k"), (2, "q")):
        cache.get(key, lambda: np.zeros(10))
    cache.forget(1)
    assert cache.held == 80
    with cache._lock:  # as the collector of garbage does it, in the thread that holds it
        cache.forget(2)
    assert cache.held == 80
    cache.get((3, "q"), lambda: np.zeros(20))
    assert cache.held == 160


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
