"""Distances between heads."""

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from hgviz.analysis.layout import Layout
from hgviz.analysis.likeness import ROWS, Likeness
from hgviz.core import HeadId
from tests.analysis.planting import letters, plant


def likeness(*maps, causal=False):
    capture = plant(letters("x" * maps[0].shape[1]), list(maps), causal=causal)
    heads = [HeadId(i, h) for i, one in enumerate(maps) for h in range(len(one))]
    found = Likeness(heads)
    found.add(capture.maps, Layout(capture, 0, {}))
    return found


def test_the_same_map_is_0_apart_and_one_without_a_common_key_1():
    n = 10
    same, other = np.eye(n), np.eye(n)[::-1]
    found = likeness(np.stack([same, same]), other[None])
    assert found.distances()[0, 1] == 0
    assert found.distances()[0, 2] == pytest.approx(1)
    near = found.nearest()
    assert near[HeadId(0, 0)] == (HeadId(0, 1), 0)
    assert near[HeadId(0, 1)] == (HeadId(0, 0), 0)
    assert near[HeadId(1, 0)][0] == HeadId(0, 0)


def test_distances_are_scipys_over_the_rows_that_are_read():
    random = np.random.default_rng(1)
    n = 70
    maps = random.gamma(0.2, size=(4, n, n))
    found = likeness(maps).distances()
    rows = np.unique(np.linspace(0, n - 1, ROWS).round().astype(int))
    for i in range(4):
        for j in range(4):
            wanted = jensenshannon(maps[i][rows], maps[j][rows], base=2, axis=1).mean()
            assert found[i, j] == pytest.approx(wanted, abs=1e-5)


def test_many_heads_at_a_time_give_the_same_as_one(monkeypatch):
    maps = np.random.default_rng(2).gamma(0.3, size=(5, 20, 20))
    whole = likeness(maps).distances()
    monkeypatch.setattr("hgviz.analysis.likeness._HELD", 1)
    np.testing.assert_array_equal(likeness(maps).distances(), whole)


def test_heads_without_weight_are_like_none():
    found = likeness(np.stack([np.eye(6), np.zeros((6, 6))]))
    assert np.isnan(found.distances()[0, 1]) and found.nearest() == {}


def test_signed_maps_count_by_their_size():
    one = np.eye(8)
    assert likeness(np.stack([one, -one])).distances()[0, 1] == 0
