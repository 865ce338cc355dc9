"""A row of a map taken apart: every column by its formula, the last one the map's own weights."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from hgviz.core import HgvizError
from hgviz.maps import LazyMap, Quadratic, Relative, Rule
from hgviz.maps.anatomy import BLOCK, dissect
from tests.maps.reference import length, scores, visible
from tests.maps.test_lazy import layers, make, numbers, slow


def row_of(factors, place, row):
    heads = tuple(range(len(factors.q)))
    return dissect(LazyMap(factors, heads), heads[place], row)


def close(found, wanted, exact=1e-6):
    """Within 1e-6 of the weight, or of the largest of its row where that is above 1."""
    return np.abs(found - wanted).max(initial=0) <= exact * max(1, np.abs(wanted).max(initial=0))


@slow
@given(layers(most=300))
def test_the_last_column_is_the_row_of_the_map(factors):
    one = LazyMap(factors, tuple(range(len(factors.q))))
    _, queries, _ = one.shape
    for place in one.heads:
        for row in {0, queries // 2, queries - 1}:
            found = dissect(one, place, row)
            map_row = one.read(place, (row, row + 1))[0]
            assert close(found.weights, map_row)


@slow
@given(layers(most=60))
def test_every_column_is_what_the_formulas_say(factors):
    rule = factors.rule
    for place, name in enumerate(rule.activations):
        row = factors.q.shape[1] // 2
        found = row_of(factors, place, row)
        q, k = numbers(factors.q[place]), numbers(factors.k[place])
        exact = scores(q, k, rule, place, np.float64)[row]
        seen = visible(rule, len(q), len(k))[row]
        kind = "product" if name == "linear" else "score"
        assert np.allclose(found.stage(kind), exact, rtol=1e-9, atol=1e-9)
        assert np.array_equal(found.seen, seen)
        assert np.array_equal(np.isnan(found.stage("seen")), ~seen)
        if rule.norms[place]:
            own = length(exact[None], seen[None])[0]
            assert found.length == pytest.approx(own, rel=1e-5, abs=1e-7)
        if (positions := found.stage("position")) is not None:
            sums = (found.stage("product") + positions) * rule.scale_of(place)
            assert np.allclose(sums, exact, rtol=1e-9, atol=1e-9)


def test_the_elements_add_up_to_the_columns():
    random = np.random.default_rng(1)
    relative = Relative(*(random.normal(size=s).astype(np.float32) for s in (
        (2, 8, 12), (2, 8), (2, 8), (2, 8))))  # fmt: skip
    rule = Rule(0.25, ("softmax", "ymish"), (None, "l2"), causal=True, relative=relative)
    factors = make(rule, 40, 40)
    for place in range(2):
        found = row_of(factors, place, 17)
        some = range(5, 31)
        one, far = found.elements(some), found.query.with_distances(some)
        assert np.allclose(one.products.sum(1), found.stage("product")[5:31], rtol=0, atol=1e-12)
        assert np.allclose(far.products.sum(1), found.stage("position")[5:31], rtol=0, atol=1e-12)
        assert np.array_equal(
            one.left, factors.q[place, 17].astype(float) + relative.content[place]
        )
        assert np.array_equal(one.right, factors.k[place, 5:31].astype(float))


def test_what_keys_and_distances_add_has_its_place_beside_the_product():
    curve = np.array([[0.5, -1.0], [0.02, 3.0]], np.float32)
    rule = Rule(0.25, ("rbf", "ymish"), (None, "l2"), causal=True, relative=Quadratic(curve))
    factors = make(rule, 40, 40)
    for place, (a, c) in enumerate(curve.astype(float)):
        found = row_of(factors, place, 17)
        q, k = factors.q[place, 17].astype(float), factors.k[place].astype(float)
        product = k @ q - (0.5 * (k**2).sum(1) if place == 0 else 0)
        assert np.allclose(found.stage("product"), product, rtol=0, atol=1e-12)
        assert np.allclose(found.elements(range(40)).products.sum(1), product, rtol=0, atol=1e-12)
        far = -a * (np.arange(40) - 17 - c) ** 2
        assert np.allclose(found.stage("position"), far, rtol=0, atol=1e-12)
        assert np.allclose(found.stage("score"), 0.25 * (product + far), rtol=0, atol=1e-12)
        assert found.query.with_distances(range(3, 9)).products[:, 0].tolist() == far[3:9].tolist()


def test_a_softmax_by_hand():
    rule = Rule(0.5, ("softmax",), (None,), causal=True)
    factors = make(rule, 3, 3)
    q = np.array([[[1.0, 0.0], [1.0, 2.0], [0.0, 1.0]]], np.float32)
    k = np.array([[[2.0, 0.0], [0.0, 2.0], [9.0, 9.0]]], np.float32)
    lse = np.log(np.exp(1) + np.exp(2))
    stat = np.array([[1.0, lse, 0.0]])
    found = row_of(replace(factors, q=q, k=k, stat=stat), 0, 1)
    assert [one.kind for one in found.stages] == ["product", "score", "seen", "exponent", "weight"]
    assert found.elements(range(0, 2)).products.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert found.stage("score").tolist() == [1.0, 2.0, 13.5]
    assert found.stage("seen")[:2].tolist() == [1.0, 2.0] and np.isnan(found.stage("seen")[2])
    assert np.allclose(found.weights, [np.exp(1 - lse), np.exp(2 - lse), 0])
    assert found.weights.sum() == pytest.approx(1, abs=1e-12)


def test_the_norm_as_published_adds_after_it_divides():
    factors = make(Rule(0.5, ("ymish",), ("l2",), causal=True), 9, 9)
    literal = replace(factors, rule=replace(factors.rule, norms=("l2-literal",)))
    found, one = row_of(literal, 0, 6), LazyMap(literal, (0,))
    assert np.array_equal(found.stage("normed")[:7], found.stage("seen")[:7] / found.length + 1e-9)
    assert close(found.weights, one.read(0, (6, 7))[0])


def test_bfloat16_and_more_keys_than_a_block():
    rule = Rule(0.5, ("softmax",), (None,))
    factors = make(rule, 2, BLOCK + 5, dtype="bfloat16")
    found, one = row_of(factors, 0, 1), LazyMap(factors, (0,))
    assert found.keys.shape == (BLOCK + 5, 8)
    assert close(found.weights, one.read(0, (1, 2))[0])
    assert found.weights.sum() == pytest.approx(1, abs=1e-5)


def test_a_row_without_keys_is_filled_as_the_map_fills_it():
    rule = Rule(0.5, ("softmax",), (None,), keep=np.zeros(6, bool), empty_rows="uniform")
    factors = make(rule, 4, 6)
    found = row_of(factors, 0, 2)
    assert found.filled and found.weights.tolist() == [1 / 6] * 6
    strict = row_of(replace(factors, rule=replace(rule, empty_rows="zeros")), 0, 2)
    assert not strict.filled and not strict.weights.any()


def test_heads_and_rows_that_are_not_there():
    one = LazyMap(make(Rule(1.0, ("tanh",), (None,)), 3, 3), (7,))
    with pytest.raises(HgvizError, match="no head 0"):
        dissect(one, 0, 0)
    with pytest.raises(IndexError):
        dissect(one, 7, 3)
