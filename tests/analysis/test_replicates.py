"""Numbers over seeds: intervals, tests and ranks against closed forms and scipy."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from hgviz.analysis import replicates, scores


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 7, 8, 15])
def test_student_of_few_seeds_is_exact(degrees):
    assert scores.student95(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-11)
    for t in (0.0, 0.3, -2.0, 12.7):
        wanted = 2 * stats.t.sf(abs(t), degrees)
        assert scores.student_beyond(t, degrees) == pytest.approx(wanted, abs=1e-13)


def test_the_interval_over_seeds_is_scipys():
    values = np.random.default_rng(0).normal(size=5)
    found = replicates.spread([*values, np.nan])
    wanted = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx(wanted, rel=1e-10)
    assert found.mean == pytest.approx(values.mean()) and len(found.values) == 5
    assert replicates.student(values) == pytest.approx(stats.ttest_1samp(values, 0).pvalue)


def test_the_interval_of_two_seeds_has_a_closed_form():
    found = replicates.spread([1.0, 3.0])
    assert found.high - found.mean == pytest.approx(np.tan(0.475 * np.pi))  # the quantile x 1


def test_one_seed_has_no_interval_and_none_has_no_mean():
    one = replicates.spread([0.9])
    assert one.mean == 0.9 and np.isnan([one.low, one.high]).all() and not one.sure
    assert one.facts() == {"values": [0.9], "mean": 0.9, "low": None, "high": None}
    assert np.isnan(replicates.spread([]).mean) and np.isnan(replicates.student(np.ones(1)))
    assert not replicates.told_apart(replicates.spread([0.9]), 0.0001)


def test_an_interval_over_seeds_holds_as_often_as_it_says():
    drawn = np.random.default_rng(1).normal(size=(4000, 3))
    found = [replicates.spread(one) for one in drawn]
    holds = np.mean([one.low <= 0 <= one.high for one in found])
    assert abs(holds - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 4000)


def test_alike_seeds_are_told_apart_only_where_they_are_not_zero():
    assert replicates.student(np.zeros(3)) == 1.0
    assert replicates.student(np.full(3, 0.25)) == 0.0
    assert replicates.spread(np.full(3, 0.25)).sure and not replicates.spread(np.zeros(3)).sure


# --- signs ----------------------------------------------------------------------------------------


def every_sign(values):
    values = np.array(values, float)
    sums = np.array([*product((-1, 1), repeat=len(values))]) @ values
    return np.mean(np.abs(sums) >= abs(values.sum()) - 1e-9)


@pytest.mark.parametrize(
    "apart", [[1], [1, 1, 1], [3, -1, 2, 2], [3, 3, -2, 1, 1, 0, 0, -1], [5, 4, 3, 2, 1, 1, 2, 3]]
)
def test_signs_of_counts_are_those_of_all_ways(apart):
    assert replicates.signs_of_counts(np.array(apart)) == pytest.approx(every_sign(apart))
    assert replicates.signs(np.array(apart, float)) == pytest.approx(every_sign(apart))


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (0, 9), (3, 12), (40, 41), (700, 500)])
def test_of_one_seed_it_is_mcnemars_test(lost, won):
    apart = np.array([-1] * lost + [1] * won + [0] * 99)
    assert replicates.signs_of_counts(apart) == pytest.approx(scores.mcnemar(lost, won), abs=1e-12)


def test_counts_may_be_many_and_p_is_never_zero():
    apart = np.random.default_rng(0).integers(-3, 4, 300)
    drawn = replicates.signs(apart.astype(float))
    assert replicates.signs_of_counts(apart) == pytest.approx(drawn, abs=0.02)
    assert 0 < replicates.signs_of_counts(np.ones(5000, int)) < 1e-200


def test_what_seeds_share_on_a_text_counts_once():
    """Three seeds that agree on every text are no more than one."""
    one = np.array([1, 1, 1, -1, 1, 1, 0])
    p = replicates.signs_of_counts(one)
    assert replicates.signs_of_counts(3 * one) == pytest.approx(p)
    assert p > replicates.signs_of_counts(np.tile(one, 3))


def test_many_numbers_are_drawn_as_scipy_draws_them():
    values = np.random.default_rng(3).normal(0.25, 1, 40)
    wanted = stats.permutation_test(
        (values,), np.sum, permutation_type="samples", n_resamples=20_000, rng=5
    ).pvalue
    assert replicates.signs(values) == pytest.approx(wanted, abs=0.015)
    assert replicates.signs(values) == replicates.signs(values)  # the same draws each time
    assert np.isnan(replicates.signs([])) and replicates.signs([0.0, 0.0]) == 1.0


# --- random orders, ranks and budgets -------------------------------------------------------------


def test_the_best_of_twenty_orders_of_one_model_is_one_of_21():
    orders = [np.arange(20.0)]
    assert replicates.against_random([99.0], orders) == pytest.approx(1 / 21)
    assert replicates.against_random([19.0], orders) == pytest.approx(2 / 21)
    assert replicates.against_random([-1.0], orders) == 1.0
    assert np.isnan(replicates.against_random([], []))


def test_of_several_models_one_order_each_is_drawn():
    orders = [np.arange(3.0), np.arange(4.0)]
    ways = [a + b for a, b in product(*orders)]
    wanted = (1 + sum(one >= 4 for one in ways)) / 13
    assert replicates.against_random([2.0, 2.0], orders) == pytest.approx(wanted)
    many = [np.random.default_rng(seed).normal(size=20) for seed in range(6)]
    assert replicates.against_random([0.0] * 6, many) == pytest.approx(
        stats.norm.sf(-sum(one.mean() for one in many), scale=np.sqrt(sum(map(np.var, many)))),
        abs=0.03,
    )


def test_ranks_are_scipys_and_equal_ones_share_theirs():
    values = np.array([[0.5, 0.7, 0.7, 0.1], [1.0, np.nan, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]])
    found = replicates.ranks(values)
    assert found.shape == (2, 4) and found[0].tolist() == [3.0, 1.5, 1.5, 4.0]
    for mine, row in zip(found, values[[0, 2]], strict=True):
        assert mine.tolist() == stats.rankdata(-row).tolist()


@pytest.mark.parametrize(
    ("share", "at"), [(0.5, 2), (0.25, 1), (0.37, 1), (0.375, 1), (0.38, 2), (1.0, 4), (0.01, 0)]
)
def test_a_budget_is_the_nearest_point_that_was_measured(share, at):
    assert replicates.nearest(np.array([0, 2, 4, 6, 8]), 8, share) == at


def test_beyond_the_end_of_a_curve_nothing_was_measured():
    assert replicates.nearest(np.array([0, 2, 4]), 8, 0.75) is None
    assert replicates.nearest(np.array([0, 2, 4]), 8, 0.6) == 2


def test_the_area_of_a_line_is_its_middle():
    assert replicates.mean_along([0, 1, 4], [1.0, 0.75, 0.0]) == pytest.approx(0.5)
    assert replicates.mean_along([3], [0.25]) == 0.25
