"""The statistic that goes with the tiles, and the rows that need it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hgviz.maps import ROUNDED, LazyMap, Rule, settled
from tests.maps.reference import scores, statistic, visible, whole_map
from tests.maps.test_lazy import make


@pytest.mark.parametrize("spread", [0.3, 1, 3, 40])
def test_rows_that_no_weight_dominates_are_left_and_every_tile_stays_exact(spread):
    rule = Rule(0.125, ("softmax",), (None,), causal=True)
    factors = make(rule, 700, 700, width=64)
    factors = replace(factors, q=spread * factors.q)
    model = scores(factors.q[0], factors.k[0], rule, 0, np.float32)
    stat = statistic(model, visible(rule, 700, 700), "softmax", None)
    factors = replace(factors, stat=stat[None].astype(np.float32))
    found, every = settled(factors, ROUNDED), settled(factors)
    if spread == 0.3:
        late = found.stat[0, 512:]
        assert (late == factors.stat[0, 512:]).all()
        assert not (every.stat[0, 512:] == factors.stat[0, 512:]).all()
    if spread == 40:
        assert np.array_equal(found.stat, every.stat)
    exact = whole_map(factors.q[0], factors.k[0], rule, 0)
    ends = [np.abs(LazyMap(one, (0,)).read(0) - exact).max() for one in (found, every)]
    assert ends[0] <= max(1.5 * ends[1], 5e-7)


def test_rows_without_keys_are_no_matter():
    rule = Rule(0.125, ("softmax",), (None,), causal=True, keep=np.arange(40) > 2)
    factors = make(rule, 40, 40, width=64)
    stat = np.array(factors.stat)
    stat[:, :3] = np.inf
    found = settled(replace(factors, stat=stat), ROUNDED)
    assert np.isinf(found.stat[0, :3]).all() and (LazyMap(found, (0,)).read(0)[:3] == 0).all()
