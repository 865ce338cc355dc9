"""The statistic that goes with the tiles, the rows that need it, and exponentials by either way."""

from dataclasses import replace

import numpy as np
import pytest

from hgviz.maps import ROUNDED, LazyMap, Rule, recompute_statistics, with_statistics
from hgviz.maps import tiles as module
from hgviz.maps.tiles import exponential
from tests.maps.reference import OPEN, scores, statistic, visible, whole_map
from tests.maps.test_lazy import make


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
    monkeypatch.setattr(module, "_has_fast_powers_of_2", lambda: fast)
    logs = -np.linspace(0, 90, 100_003).astype(dtype)
    exact = np.exp(logs.astype(np.longdouble))
    found = exponential(logs)
    assert found.dtype == dtype and np.abs(found - exact).max() < error
    seen = exact > 1e-30
    assert (np.abs(found / exact - 1)[seen] < 40 * error).all()
