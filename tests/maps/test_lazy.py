"""Tiles against whole maps in float64, and against each other bit by bit."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hgviz.core import HgvizError
from hgviz.maps import (
    ROUNDED,
    Factors,
    LazyMap,
    Quadratic,
    Relative,
    Rule,
    recompute_statistics,
    tiles,
    with_statistics,
)
from hgviz.maps.tiles import exponential
from tests.maps.reference import (
    FORMULAS,
    OPEN,
    SOFTMAXES,
    SUMS,
    choose,
    length,
    pooled,
    scores,
    statistic,
    visible,
    whole_map,
)

slow = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def bits(x):
    """float32 as the bits of bfloat16."""
    return (np.asarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def numbers(x):
    """Bits of bfloat16 as float32."""
    return (x.astype(np.uint32) << 16).view(np.float32) if x.dtype == np.uint16 else x


def make(rule: Rule, queries: int, keys: int, width: int = 8, seed: int = 0, dtype="float32"):
    """Random factors whose statistics are what a model in that dtype would give."""
    random = np.random.default_rng(seed)
    heads = len(rule.activations)
    work = np.float64 if dtype == "float64" else np.float32
    q, k = (random.normal(size=(heads, n, width)).astype(work) for n in (queries, keys))
    for h in np.flatnonzero([name == "linear" for name in rule.activations]):
        q[h], k[h] = (np.where(x > 0, x + 1, np.exp(x)) for x in (q[h], k[h]))
    if dtype == "bfloat16":
        q, k = bits(q), bits(k)
    elif dtype == "float16":
        q, k = q.astype(np.float16), k.astype(np.float16)
    none = np.zeros(0, np.int64)
    return measured(Factors(q, k, none, rule, none, np.zeros((heads, 0, keys), np.float32), dtype))


def measured(factors: Factors) -> Factors:
    """Factors with the row statistics of their own scores."""
    rule, (heads, queries, _), keys = factors.rule, factors.q.shape, factors.k.shape[1]
    work = np.float64 if factors.dtype == "float64" else np.float32
    norm, stat = np.zeros((2, heads, queries), np.float32)
    threshold, kept = np.full((heads, queries), -np.inf, np.float32), []
    for h, name in enumerate(rule.activations):
        values, seen = scored(factors, h, work), visible(rule, queries, keys)
        if name == "topk":
            chosen = choose(values, seen, rule.top_k)
            for i in range(queries):
                last = values[i][chosen[i]].min(initial=np.inf)
                first = values[i][seen[i] & ~chosen[i]].max(initial=-np.inf)
                if first == -np.inf:
                    continue
                threshold[h, i] = (last + first) / 2
                if last - first < 1e-5 * np.abs(values[i][seen[i]]).max():
                    threshold[h, i] = np.inf
                    kept += [(h, i, j) for j in np.flatnonzero(chosen[i])]
        if rule.norms[h] and name in (*SOFTMAXES, *SUMS, *OPEN):
            norm[h] = length(values, seen)
            values = values / (norm[h][:, None] + work(1e-9))
        stat[h] = statistic(values, chosen if name == "topk" else seen, name, rule.norms[h])
    pairs = np.array(kept, np.int32).reshape(-1, 3)
    return replace(factors, stat=stat, norm=norm, threshold=threshold, kept=pairs)


def scored(factors: Factors, h: int, work=np.float32):
    """Scaled scores of a head, as a model computes them."""
    return scores(numbers(factors.q[h]), numbers(factors.k[h]), factors.rule, h, work)


def exactly(factors: Factors, h: int):
    """The map of a head in float64, of the keys that were chosen in float32."""
    rule, chosen = factors.rule, None
    if rule.activations[h] == "topk":
        seen = visible(rule, *factors.q.shape[1:2], *factors.k.shape[1:2])
        work = np.float64 if factors.dtype == "float64" else np.float32
        chosen = choose(scored(factors, h, work), seen, rule.top_k)
    return whole_map(numbers(factors.q[h]), numbers(factors.k[h]), rule, h, chosen)


@st.composite
def layers(draw, most=600):
    """A rule of any kind with a shape that fits it."""
    factor, stride = draw(st.sampled_from([1, 1, 2, 3, 4])), draw(st.sampled_from([1, 2, 6]))
    role = draw(st.sampled_from(["self", "down", "up"])) if factor > 1 else "self"
    groups = draw(st.integers(1, most // factor if role != "self" else most))
    queries = groups * factor if role == "up" else groups
    keys = groups * factor if role == "down" else groups
    if role == "self" and draw(st.booleans()):
        keys = draw(st.integers(1, most))
    kinds = [*SOFTMAXES, *SUMS, *OPEN, *FORMULAS]
    names = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=2))
    relative = None
    if draw(st.integers(0, 3)) == 0:
        random = np.random.default_rng(draw(st.integers(0, 9)))
        wide, centres = random.uniform(0, 4, len(names)), random.uniform(-9, 9, len(names))
        reach = max(queries, keys) * stride * factor
        curve = np.stack([wide / reach**2, centres], 1).astype(np.float32)
        relative = Quadratic(curve)
    elif draw(st.booleans()):
        random = np.random.default_rng(draw(st.integers(0, 9)))
        unit = factor * stride if role == "up" and draw(st.booleans()) else 1
        shapes = [(len(names), 8, 12), *[(len(names), 8)] * 3]
        relative = Relative(*(random.normal(size=s).astype(np.float32) * 0.5 for s in shapes), unit)
    keep = None
    if draw(st.booleans()):
        random = np.random.default_rng(draw(st.integers(0, 9)))
        keep = random.random(keys) < draw(st.sampled_from([0.0, 0.3, 0.9]))
    rule = Rule(
        scale=draw(st.sampled_from([8**-0.5, 0.5])),
        activations=tuple(names),
        norms=tuple(draw(st.sampled_from([None, None, "l2"])) for _ in names),
        top_k=draw(st.sampled_from([1, 3, 40])),
        stride_q=stride * (factor if role == "down" else 1),
        stride_k=stride * (factor if role == "up" else 1),
        causal=draw(st.booleans()),
        windowed=role != "self" and draw(st.booleans()),
        empty_rows=draw(st.sampled_from(["zeros", "uniform"])),
        keep=keep,
        relative=relative,
    )
    kinds = ["float32", "float32", "float16", "bfloat16", "float64"]
    dtype = draw(st.sampled_from(kinds))
    return make(rule, queries, keys, seed=draw(st.integers(0, 99)), dtype=dtype)


def same_bits(a, b):
    """Equal to the last bit, the sign of zero included."""
    assert a.dtype == b.dtype == np.float32
    assert a.shape == b.shape
    assert (a.view(np.uint32) == b.view(np.uint32)).all()


@slow
@given(layers())
def test_a_map_of_any_rule_is_the_one_in_float64(factors):
    maps = LazyMap(factors, tuple(range(len(factors.q))))
    for head in maps.heads:
        exact = exactly(factors, head)
        found = maps.read(head)
        error = np.abs(found - exact)
        if factors.rule.norms[head]:  # a score that all but cancels, divided by itself: no digits
            size = length(scored(factors, head), visible(factors.rule, *maps.shape[1:]))
            error *= np.minimum(size, 1)[:, None]
        largest = np.abs(exact).max(1, keepdims=True)
        assert (error <= 1e-5 * np.maximum(1, largest)).all()
        assert (error <= np.maximum(1e-4 * largest, 1e-30)).all()
        assert not (np.signbit(found) & (found == 0)).any()
        assert (found[exact == 0] == 0).all()


@slow
@given(layers(), st.data())
def test_a_cell_has_the_same_bits_in_every_read(factors, data):
    maps = LazyMap(factors, tuple(range(len(factors.q))))
    whole = maps.read(0)
    for _ in range(4):
        (a, b), (c, d) = (
            sorted(data.draw(st.integers(0, size)) for _ in "ab") for size in maps.shape[1:]
        )
        same_bits(maps.read(0, (a, b), slice(c, d)), whole[a:b, c:d])


@slow
@given(layers(most=300), st.integers(0, 12), st.sampled_from(["max", "mean"]), st.data())
def test_a_pooled_read_has_the_bits_of_pooling_the_whole_map(factors, zoom, reduce, data):
    maps = LazyMap(factors, tuple(range(len(factors.q))))
    expected = pooled(maps.read(0), zoom, reduce, maps.signed)
    whole = maps.read(0, zoom=zoom, reduce=reduce)
    if factors.dtype == "float64" and reduce == "mean":  # of numbers that no read shows whole
        np.testing.assert_allclose(whole, expected, rtol=1e-6, atol=1e-12)
        expected = whole
    same_bits(whole, expected)
    (a, b), (c, d) = (
        sorted(data.draw(st.integers(0, size)) for _ in "ab") for size in maps.shape[1:]
    )
    part = maps.read(0, range(a, b), (c, d), zoom, reduce)
    if a < b and c < d:
        rows, columns = (slice(s >> zoom, -(-e >> zoom)) for s, e in ((a, b), (c, d)))
        same_bits(part, expected[rows, columns])
    else:
        assert part.size == 0


@pytest.mark.parametrize(("width", "sharp"), [(48, 0.5), (64, 4.0)])
def test_over_a_layer_the_error_is_at_most_twice_that_of_the_model(width, sharp):
    rule = Rule(width**-0.5, ("softmax",) * 2, (None,) * 2, causal=True)
    factors = make(rule, 700, 700, width)
    factors = replace(factors, q=factors.q * np.float32(sharp), k=factors.k * np.float32(sharp))
    seen = np.tri(700, dtype=bool)
    model, ours, stat = 0.0, 0.0, []
    for h in range(2):
        s = np.where(seen, scores(factors.q[h], factors.k[h], rule, h, np.float32), -np.inf)
        stat.append(statistic(s, seen, "softmax", None))
        e = np.exp(s - s.max(1, keepdims=True))
        exact = whole_map(factors.q[h], factors.k[h], rule, h)
        model = max(model, np.abs(e / e.sum(1, keepdims=True) - exact).max())
        # as captures keep them: products of tiles may round otherwise than the model's
        kept = recompute_statistics(replace(factors, stat=np.stack(stat + [stat[0]])[:2]), ROUNDED)
        ours = max(ours, np.abs(LazyMap(kept, (0, 1)).read(h) - exact).max())
    assert ours <= max(2 * model, 5e-7)


def test_threads_get_the_same_bits_and_leave_the_number_of_threads_alone():
    get, put = tiles._threads()
    before = get()
    put(2)
    maps = LazyMap(make(Rule(0.2, ("softmax",), (None,)), 1000, 1000, width=32), (0,))
    expected = maps.read(0)
    with ThreadPoolExecutor(6) as threads:
        found = threads.map(lambda _: (maps.read(0) == expected).all(), range(30))
    assert all(found) and get() == 2
    put(before)


def test_numbers_that_are_not_finite_are_shown_and_not_warned_about():
    factors = make(Rule(1.0, ("softmax",), (None,)), 5, 5)
    q = factors.q.copy()
    q[0, 2] = np.nan
    found = LazyMap(replace(factors, q=q), (0,)).read(0)
    assert np.isnan(found[2]).all() and np.isfinite(found[[0, 1, 3, 4]]).all()


def test_what_cannot_be_read_is_refused():
    maps = LazyMap(make(Rule(1.0, ("softmax",), (None,)), 5, 5), (4,))
    with pytest.raises(HgvizError, match="its heads are 4"):
        maps.read(0)
    for wrong in ({"zoom": -1}, {"reduce": "median"}, {"rows": slice(0, 4, 2)}):
        with pytest.raises(ValueError):
            maps.read(4, **wrong)


def test_the_proof_rows_are_compared_with_the_tiles():
    rule = Rule(0.3, ("softmax",), (None,), causal=True)
    factors = make(rule, 300, 300)
    exact = whole_map(factors.q[0], factors.k[0], rule, 0)
    rows = np.array([0, 150, 299])
    proof = exact[None, rows].astype(np.float32)
    good = LazyMap(replace(factors, proof_rows=rows, proof_values=proof), (0,))
    assert 0 < good.verify_max_abs < 1e-6
    proof[0, 1, 7] += 0.25
    bad = LazyMap(replace(factors, proof_rows=rows, proof_values=proof), (0,))
    assert bad.verify_max_abs == pytest.approx(0.25, abs=1e-6)


# --- row statistics -------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", [0.3, 40])
def test_rows_that_no_weight_dominates_are_left_and_every_tile_stays_exact(spread):
    rule = Rule(0.125, ("softmax",), (None,), causal=True)
    factors = make(rule, 700, 700, width=64)
    factors = replace(factors, q=spread * factors.q)
    model = scores(factors.q[0], factors.k[0], rule, 0, np.float32)
    stat = statistic(model, visible(rule, 700, 700), "softmax", None)
    factors = replace(factors, stat=stat[None].astype(np.float32))
    found, every = recompute_statistics(factors, ROUNDED), recompute_statistics(factors)
    if spread == 0.3:
        late = found.stat[0, 512:]
        assert (late == factors.stat[0, 512:]).all()
        assert not (every.stat[0, 512:] == factors.stat[0, 512:]).all()
    if spread == 40:
        assert np.array_equal(found.stat, every.stat)
    exact = whole_map(factors.q[0], factors.k[0], rule, 0)
    ends = [np.abs(LazyMap(one, (0,)).read(0) - exact).max() for one in (found, every)]
    assert ends[0] <= max(1.5 * ends[1], 5e-7)


@pytest.mark.parametrize("activation", ["softmax", "linear", "ymish", "tanh", *OPEN])
@pytest.mark.parametrize(("norm", "dtype"), [(None, "float64"), ("l2-literal", "float32")])
def test_what_is_measured_of_any_rule_gives_its_maps(activation, norm, dtype):
    rule = Rule(0.3, (activation,) * 2, (norm,) * 2, causal=True, keep=np.arange(300) > 2)
    factors = make(rule, 300, 300, width=16)
    q, k = (np.abs(one.astype(dtype)) for one in (factors.q, factors.k))
    found = with_statistics(replace(factors, q=q, k=k, stat=None, norm=None, dtype=dtype))
    for head in range(2):
        exact = whole_map(q[head], k[head], rule, head)
        error = LazyMap(found, (0, 1)).read(head) - exact
        assert np.abs(error).max() < 1e-6 * max(1, np.abs(exact).max())


# --- exponentials ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("dtype,error", [("float32", 1.3e-7), ("float64", 3e-16)])
def test_weights_are_as_exact_as_their_numbers(monkeypatch, fast, dtype, error):
    monkeypatch.setattr(tiles, "_has_fast_powers_of_2", lambda: fast)
    logs = -np.linspace(0, 90, 100_003).astype(dtype)
    exact = np.exp(logs.astype(np.longdouble))
    found = exponential(logs)
    assert found.dtype == dtype and np.abs(found - exact).max() < error
    seen = exact > 1e-30
    assert (np.abs(found / exact - 1)[seen] < 40 * error).all()
