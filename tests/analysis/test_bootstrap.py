"""Drawing rows again, against scipy and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hgviz.analysis import bootstrap, scores

LITTLE = np.random.default_rng(0)
WANTED = LITTLE.integers(0, 3, 300)
BEFORE = np.where(LITTLE.random(300) < 0.8, WANTED, LITTLE.integers(0, 3, 300))
NOW = np.where(LITTLE.random(300) < 0.6, WANTED, LITTLE.integers(0, 3, 300))


@given(st.integers(1, 30), st.integers(1, 4), st.integers(0, 99))
def test_draws_are_of_as_many_rows_and_always_the_same_ones(rows, columns, seed):
    values = np.random.default_rng(seed).random((rows, columns))
    counted = np.hstack([values, np.ones((rows, 1))])
    found = bootstrap.resampled(counted, 50, seed)
    assert (found[:, -1] == rows).all()
    assert found[:, :-1] == pytest.approx(bootstrap.resampled(values, 50, seed))
    assert (found[:, :-1] <= values.max(0) * rows + 1e-9).all()


def test_draws_are_the_same_however_few_are_held_at_once(monkeypatch):
    values = np.random.default_rng(1).random((40, 3))
    whole = bootstrap.resampled(values, 100)
    monkeypatch.setattr(bootstrap, "CELLS", 700)
    assert bootstrap.resampled(values, 100) == pytest.approx(whole)


def test_the_mean_of_draws_spreads_like_a_mean():
    values = np.random.default_rng(2).normal(3, 2, (500, 1))
    found = bootstrap.resampled(values, 4000)[:, 0] / 500
    assert found.mean() == pytest.approx(values.mean(), abs=0.01)
    assert found.std() == pytest.approx(values.std() / np.sqrt(500), rel=0.05)


@pytest.mark.parametrize(
    ("found", "statistic"),
    [
        (
            bootstrap.f1_change(WANTED, BEFORE, NOW, 3),
            lambda rows, answer: scores.f1(scores.confusion(WANTED[rows], answer[rows], 3)),
        ),
        (
            bootstrap.matthews_change(WANTED, BEFORE, NOW, 3),
            lambda rows, answer: scores.matthews(scores.confusion(WANTED[rows], answer[rows], 3)),
        ),
        (
            bootstrap.pearson_change(WANTED, BEFORE, NOW),
            lambda rows, answer: stats.pearsonr(WANTED[rows], answer[rows])[0],
        ),
    ],
    ids=["f1", "mcc", "pearson"],
)
def test_a_change_and_its_interval_are_scipys(found, statistic):
    def change(rows):
        return statistic(rows, NOW) - statistic(rows, BEFORE)

    value, low, high = found
    assert value == pytest.approx(change(np.arange(300)))
    other = stats.bootstrap(
        (np.arange(300),), change, vectorized=False, method="percentile", n_resamples=1000,
        rng=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    assert (low, high) == pytest.approx((other.low, other.high), abs=0.12 * (high - low))
    assert low < value < high


def test_bits_of_windows_change_by_their_sums():
    random = np.random.default_rng(3)
    sizes, before = random.integers(50, 60, 80).astype(float), random.normal(90, 5, 80)
    now = before + random.normal(2, 1, 80)
    value, low, high = bootstrap.bits_change(before, now, sizes)
    assert value == pytest.approx((now - before).sum() / np.log(2) / sizes.sum())
    normal = scores.ratio_interval(list((now - before) / np.log(2)), list(sizes))
    assert (low, high) == pytest.approx(normal, abs=0.1 * (high - low))


def test_the_same_answers_have_changed_by_nothing():
    for found in (
        bootstrap.f1_change(WANTED, NOW, NOW, 3),
        bootstrap.matthews_change(WANTED, NOW, NOW, 3),
        bootstrap.pearson_change(WANTED, NOW, NOW),
        bootstrap.bits_change(NOW, NOW, WANTED),
    ):
        assert found == (0.0, 0.0, 0.0)


def test_what_does_not_vary_correlates_with_nothing():
    assert bootstrap.pearson_change(WANTED, np.full(300, 0.1), np.full(300, 7.3)) == (0, 0, 0)
