"""A row of a map taken apart: every column by its formula, the last one the map's own weights."""

import numpy as np
import pytest
from hypothesis import given

from hgviz.maps import LazyMap, Quadratic, Rule
from hgviz.maps.anatomy import dissect
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


def test_the_norm_as_published_adds_after_it_divides():
    factors = make(Rule(0.5, ("ymish",), ("l2-literal",), causal=True), 9, 9)
    found, one = row_of(factors, 0, 6), LazyMap(factors, (0,))
    assert np.array_equal(found.stage("normed")[:7], found.stage("seen")[:7] / found.length + 1e-9)
    assert close(found.weights, one.read(0, (6, 7))[0])


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
