"""How much heads repeat each other: closed forms, and distances against scipy."""

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from hgviz.analysis.redundancy import ROWS, OfMaps, Spectrum, of_weights
from hgviz.core import HeadId, Layer
from tests.analysis.planting import letters, plant


def layer(heads):
    names = ("softmax",) * heads
    return Layer(0, "middle.0", "self", 0, 0, tuple(range(heads)), names, False)


def of(q, k):
    """The redundancy of heads with queries and keys (H, D, d)."""
    heads, width, d = q.shape
    mix = np.repeat(np.eye(heads), width, axis=1)
    return of_weights(layer(heads), q.reshape(-1, d), mix, k.reshape(-1, d), heads * width)


def orthogonal(rows, d, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, rows)))[0].T


def test_heads_that_are_the_same_have_the_rank_of_one_and_cosines_of_1():
    q, k = (np.tile(orthogonal(4, 20, seed), (3, 1, 1)) for seed in (0, 1))
    found = of(q, k)
    assert found.stacked.rank == 4 and found.stacked.ranks() == {0.9: 4, 0.95: 4, 0.99: 4}
    assert found.stacked.most == 12
    np.testing.assert_allclose(found.stacked.values[:4], np.sqrt(3), rtol=1e-9)
    assert found.over_heads.rank == 1 and found.over_heads.ranks()[0.99] == 1
    np.testing.assert_allclose(found.alike, 1.0, rtol=1e-12)
    assert found.mean == pytest.approx(1.0)


def test_orthogonal_heads_have_full_rank_and_cosines_of_0():
    q, k = (orthogonal(12, 20, seed).reshape(3, 4, 20) for seed in (0, 1))
    found = of(q, k)
    assert found.stacked.rank == 12 and found.stacked.ranks() == {0.9: 11, 0.95: 12, 0.99: 12}
    assert found.over_heads.rank == 3 and found.over_heads.ranks()[0.99] == 3
    np.testing.assert_allclose(found.alike, np.eye(3), atol=1e-12)
    assert found.mean == pytest.approx(0.0, abs=1e-12)


def test_numbers_are_those_of_the_matrices():
    random = np.random.default_rng(4)
    q, k = random.normal(size=(2, 3, 4, 10))
    found = of(q, k)
    matrices = q.transpose(0, 2, 1) @ k  # (H, d, d)
    stacked = np.linalg.svd(matrices.reshape(-1, 10), compute_uv=False)
    np.testing.assert_allclose(found.stacked.values, stacked, rtol=1e-8)
    vectors = matrices.reshape(3, -1)
    over = np.linalg.svd(vectors, compute_uv=False)
    np.testing.assert_allclose(found.over_heads.values, over, rtol=1e-9)
    sizes = np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(found.alike, vectors @ vectors.T / np.outer(sizes, sizes))
    pairs = {(a.head, b.head): value for a, b, value in found.pairs}
    assert pairs[0, 2] == pytest.approx(found.alike[0, 2])
    assert [abs(one) for *_, one in found.pairs] == sorted(np.abs(list(pairs.values())))[::-1]


def test_a_turned_head_has_a_cosine_of_minus_1():
    q, k = np.random.default_rng(0).normal(size=(2, 1, 3, 8))
    found = of(np.concatenate([q, -q]), np.concatenate([k, k]))
    assert found.alike[0, 1] == pytest.approx(-1.0) and found.mean == pytest.approx(1.0)


def test_heads_without_weights_have_no_cosine():
    q, k = np.random.default_rng(0).normal(size=(2, 2, 3, 8))
    q[1] = 0
    found = of(q, k)
    assert np.isnan(found.alike[0, 1]) and found.pairs == [] and np.isnan(found.mean)
    assert found.facts()["cosines"][0][1] is None and found.facts()["mean"] is None


def test_nothing_has_no_rank():
    none = Spectrum(np.zeros(3), 3)
    assert none.rank == 0 and set(none.ranks().values()) == {0}


# --- maps -----------------------------------------------------------------------------------------


def of_maps(*texts):
    found = OfMaps()
    for maps in texts:
        shares = list(found.add(plant(letters("x" * maps[0].shape[1]), list(maps), causal=False)))
        assert all(0 <= one < 1 for one in shares)
    return found.found()


def test_the_distance_of_maps_is_scipys_over_all_rows_of_all_texts():
    random = np.random.default_rng(1)
    texts = [[random.gamma(0.2, size=(3, n, n)) for _ in range(2)] for n in (40, 70)]
    for at, one in enumerate(of_maps(*texts)):
        assert one.layer.index == at and one.rows == 110 and not one.cosines
        for i in range(3):
            for j in range(3):
                rows = [jensenshannon(maps[at][i], maps[at][j], base=2, axis=1) for maps in texts]
                assert one.alike[i, j] == pytest.approx(np.concatenate(rows).mean(), abs=1e-6)


def test_the_same_maps_are_0_apart_and_those_without_a_common_key_1():
    n = 12
    (one,) = of_maps([np.stack([np.eye(n), np.eye(n), np.eye(n)[::-1]])])
    assert one.alike[0, 1] == 0 and one.alike[0, 2] == pytest.approx(1)
    assert one.pairs[0] == (HeadId(0, 0), HeadId(0, 1), 0.0)
    assert one.mean == pytest.approx(2 / 3)


def test_blocks_of_rows_give_the_same_as_all_at_once(monkeypatch):
    maps = np.random.default_rng(2).gamma(0.3, size=(3, 90, 90))
    (whole,) = of_maps([maps])
    monkeypatch.setattr("hgviz.analysis.likeness._HELD", 1)
    (parts,) = of_maps([maps])
    np.testing.assert_allclose(parts.alike, whole.alike, rtol=1e-12)


def test_long_texts_have_rows_spread_over_them():
    n = ROWS + 100
    (one,) = of_maps([np.stack([np.eye(n), np.eye(n)])])
    assert one.rows == ROWS and one.alike[0, 1] == 0
