"""What a rule lets a row see and score: windows, chunks, caps, sinks, biases and shared keys.

The reference writes every map whole, in float64, from the formulas of the papers.
"""

from dataclasses import replace

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hgviz.maps import Factors, Grouped, LazyMap, Rule, recompute_statistics, with_statistics
from hgviz.maps.anatomy import dissect
from hgviz.maps.rule import Diagonals, proof_rows
from tests.closeness import scaled_error
from tests.maps.reference import OPEN, whole_map

HEADS, WIDTH = 4, 8


def reference(q, k, rule):
    """Whole maps (heads, queries, keys) in float64; heads may share keys."""
    each = HEADS // len(k)
    return np.stack([whole_map(q[h], k[h // each], rule, h) for h in range(HEADS)])


@st.composite
def layers(draw, biased=True):
    """q (4, n, 8), k (groups, n, 8) and a rule for them."""
    n, groups = draw(st.integers(1, 40)), draw(st.sampled_from([1, 2, 4]))
    random = np.random.default_rng(draw(st.integers(0, 2**31)))
    q, k = (random.normal(size=(h, n, WIDTH)).astype(np.float32) for h in (HEADS, groups))
    band = draw(st.none() | st.tuples(st.integers(0, 12), st.integers(0, 12)))
    given_ = {
        "causal": draw(st.booleans()), "band": band,
        "chunk": draw(st.none() | st.integers(1, 9)),
        "softcap": draw(st.none() | st.sampled_from([1.0, 5.0, 50.0])),
    }  # fmt: skip
    if given_["causal"] and draw(st.booleans()):
        few = st.none() | st.tuples(st.integers(0, 9), st.integers(1, 12))
        given_["streaming"] = tuple(draw(st.lists(few, min_size=HEADS, max_size=HEADS)))
    if draw(st.booleans()):
        given_["sinks"] = random.normal(size=HEADS).astype(np.float32)
    if draw(st.booleans()):
        given_["keep"] = random.random(n) < 0.7
    if biased and draw(st.booleans()):
        values = random.normal(size=(HEADS, 2 * n - 1)).astype(np.float32)
        given_["relative"] = Diagonals(values, 1 - n)
    names = draw(st.lists(st.sampled_from(["softmax", *OPEN]), min_size=HEADS, max_size=HEADS))
    names = names if draw(st.booleans()) else ["softmax"] * HEADS
    rule = Rule(WIDTH**-0.5, tuple(names), (None,) * HEADS, **given_)
    return q, k, rule


def factors_of(q, k, rule):
    keys = Grouped(k, HEADS) if len(k) < HEADS else k
    rows = np.zeros(0, np.int64)
    given_ = Factors(
        q, keys, np.zeros(q.shape[:2]), rule, rows, np.zeros((HEADS, 0, k.shape[1]), np.float32)
    )
    return with_statistics(given_)


@given(layers())
@settings(max_examples=120, deadline=None)
def test_tiles_and_their_pools_are_the_maps_of_the_formulas(layer):
    q, k, rule = layer
    found, whole = LazyMap(factors_of(q, k, rule), tuple(range(HEADS))), reference(q, k, rule)
    for head in range(HEADS):
        assert scaled_error(found.read(head), whole[head]) < 2e-6
        pooled = found.read(head, zoom=2)
        n = len(whole[head])
        for a in range(0, n, 4):
            for b in range(0, n, 4):
                peak = whole[head][a : a + 4, b : b + 4].max()
                assert abs(pooled[a // 4, b // 4] - peak) < 2e-6
    wrong = found.factors.stat + np.where(np.isfinite(found.factors.stat), 1e-3, 0.0)
    again = recompute_statistics(replace(found.factors, stat=wrong))
    finite = np.isfinite(again.stat)
    assert np.allclose(again.stat[finite], found.factors.stat[finite], atol=2e-6)


@given(layers(), st.integers(0, 39), st.integers(0, HEADS - 1))
@settings(max_examples=60, deadline=None)
def test_one_row_taken_apart_gives_the_row(layer, row, head):
    q, k, rule = layer
    row = min(row, q.shape[1] - 1)
    found = dissect(LazyMap(factors_of(q, k, rule), tuple(range(HEADS))), head, row)
    assert scaled_error(found.weights, reference(q, k, rule)[head, row]) < 2e-6


@given(st.integers(1, 20_000), st.integers(1, 20_000))
@example(2, 2049)
def test_proof_rows_are_in_order_with_the_last_and_few_of_long_maps(queries, keys):
    rows = proof_rows(queries, keys)
    assert rows[-1] == queries - 1 and (np.diff(rows) > 0).all() and rows[0] >= 0
    assert min(2, queries) <= len(rows) <= 8
    assert len(rows) <= max(2, (1 << 14) // keys)
    if keys <= 2048:
        assert len(rows) == min(8, queries) and rows[0] == 0 or queries == 1
