"""What rows have to say: closed forms, symmetry, and numbers that are none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from hgviz.analysis.differences import NEAR_ZERO, compared, effective_rank

N = 8
IDENTITY = np.eye(N, dtype=np.float32)
UNIFORM = np.full((N, N), 1 / N, np.float32)
SINK = np.eye(1, N, dtype=np.float32).repeat(N, 0)
PREVIOUS = np.eye(N, k=-1, dtype=np.float32) + np.eye(1, N, dtype=np.float32) * np.eye(N, 1)


def told(a, b):
    return compared(a, b, np.ones(a.shape, bool), np.ones(b.shape, bool))


def test_identity_beside_uniform_rows():
    found = told(IDENTITY, UNIFORM)
    assert found["largest"] == pytest.approx(1 - 1 / N)
    assert found["relative"] == pytest.approx(1 - 1 / N)
    assert found["total"] == pytest.approx(2 * (N - 1) / N)
    assert found["relative_mean"] == pytest.approx(2 * (N - 1) / N**2)
    middle = np.array([(1 + 1 / N) / 2] + [1 / (2 * N)] * (N - 1))
    bits = -(middle * np.log2(middle)).sum() - np.log2(N) / 2
    assert found["js"] == pytest.approx(np.sqrt(bits))
    assert found["entropy"][0] == pytest.approx(0)
    assert found["entropy"][1] == pytest.approx(np.log(N))
    assert (found["near"][0] == N - 1).all() and (found["near"][1] == 0).all()
    assert (found["negative"] == 0).all()


def test_what_has_nothing_in_common_is_at_a_distance_of_1():
    found = told(IDENTITY[1:], PREVIOUS[1:])
    assert found["js"] == pytest.approx(1)
    assert (found["largest"] == 1).all()


@pytest.mark.parametrize("one", [IDENTITY, UNIFORM, SINK, PREVIOUS, -UNIFORM, 0 * IDENTITY])
def test_a_map_is_no_different_from_itself(one):
    found = told(one, one)
    for name in ("largest", "total", "relative", "relative_mean", "js"):
        assert (found[name] == 0).all()


def test_a_map_and_its_negative_share_sizes_and_differ_twofold():
    found = told(UNIFORM, -UNIFORM)
    assert found["largest"] == pytest.approx(2 / N)
    assert found["relative"] == pytest.approx(2)
    assert (found["js"] == 0).all()
    assert found["negative"].tolist() == [[0.0] * N, [1.0] * N]


def test_the_effective_rank_of_known_maps():
    assert effective_rank(IDENTITY) == pytest.approx(N)
    assert effective_rank(UNIFORM) == pytest.approx(1)
    assert effective_rank(SINK) == pytest.approx(1)
    # two rows look at the first key, so one singular value is the square root of 2
    shares = np.array([np.sqrt(2)] + [1.0] * (N - 2))
    shares /= shares.sum()
    assert effective_rank(PREVIOUS) == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))
    assert effective_rank(np.zeros((3, 4))) == 0
    assert np.isnan(effective_rank(np.zeros((0, 4))))


def test_cells_that_do_not_exist_are_not_counted():
    causal = np.tril(np.ones((N, N), bool))
    weights = (causal / causal.sum(1, keepdims=True)).astype(np.float32)
    found = compared(weights, np.eye(N, dtype=np.float32), causal, causal)
    assert found["cells"].tolist() == found["has"][0].tolist() == [*range(1, N + 1)]
    assert found["near"][1].tolist() == [*range(N)]


def test_a_row_without_weight_says_nothing_and_one_without_numbers_is_marked():
    a, b = UNIFORM.copy(), UNIFORM.copy()
    a[0], a[1, 3], b[2, 0] = 0, np.nan, np.inf
    found = told(a, b)
    assert found["broken"].tolist() == [False, True, True] + [False] * (N - 3)
    assert found["mass"][:, 1:3].max() == 0 and found["mass"][0, 0] == 0
    assert all(np.isfinite(one).all() for one in found.values())


def test_the_distance_of_what_is_nearly_alike_does_not_cancel_out():
    a = np.full((1, 4), 0.25)
    b = a + np.array([[1e-9, -1e-9, 2e-9, -2e-9]])
    # half the sum of squares over 8 m, in bits
    expected = np.sqrt(((b - a) ** 2 / (8 * 0.25)).sum() / np.log(2))
    assert told(a, b)["js"][0] == pytest.approx(expected, rel=1e-4)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([1, 3, 1023, 1025, 2100]))
def test_rows_agree_with_another_implementation_and_do_not_care_which_is_a(seed, rows, keys):
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(2, rows, keys)).astype(np.float32) ** random.integers(1, 4)
    there = told(a, b)
    back = told(b, a)
    sizes = np.abs([a, b]).astype(float)
    shares = sizes / sizes.sum(2, keepdims=True)
    assert there["js"] == pytest.approx(jensenshannon(*shares, base=2, axis=1), abs=1e-7)
    assert there["largest"] == pytest.approx(np.abs(a.astype(float) - b).max(1))
    logs = np.log(np.where(shares > 0, shares, 1))
    assert there["entropy"] == pytest.approx(-(shares * logs).sum(2), abs=1e-6)
    top = sizes.max(2, keepdims=True)
    assert (there["near"] == (sizes < NEAR_ZERO * top).sum(2)).all()
    for name in ("largest", "total", "relative", "relative_mean", "js", "cells"):
        assert np.array_equal(there[name], back[name]), name
    for name in ("entropy", "near", "has", "negative", "mass"):
        assert np.array_equal(there[name], back[name][::-1]), name
