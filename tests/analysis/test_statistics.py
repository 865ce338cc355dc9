"""Intervals and tests against statsmodels, scipy, closed forms and counted outcomes; the numbers of
answers to examples and captures."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hgviz.analysis.statistics import (
    agresti_coull,
    benjamini_hochberg,
    bits_per_byte,
    confusion,
    f1_score,
    matthews,
    mcnemar,
    mean_ranks,
    paired_difference,
    random_order_test,
    ratio_interval,
    sign_test,
    sign_test_of_counts,
    spearman,
    student_interval,
    student_test,
    wilson,
)
from tests.gui.kinds import bert, classifier, gpt2, translator
from tests.making import make_capture


@pytest.fixture(scope="module")
def statsmodels():
    """What statsmodels has; it loads pandas, which only the process that runs this needs."""
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.proportion import proportion_confint

    return SimpleNamespace(mcnemar=mcnemar, adjusted=multipletests, interval=proportion_confint)


# --- shares and means -----------------------------------------------------------------------------


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_intervals_of_a_share_are_those_of_statsmodels(statsmodels, counts):
    right, total = counts
    low, high = wilson(right, total)
    assert 0 <= low <= right / total <= high <= 1
    assert (low, high) == pytest.approx(statsmodels.interval(*counts, method="wilson"), abs=1e-12)
    wide = agresti_coull(right, total)
    assert wide == pytest.approx(statsmodels.interval(*counts, method="agresti_coull"), abs=1e-12)
    assert wide[0] <= low + 1e-12 and high - 1e-12 <= wide[1]
    assert wilson(0, 0) == agresti_coull(0, 0) == (0.0, 1.0)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 300))
def test_a_paired_difference_has_bonett_and_prices_interval(lost, won, same):
    # with one more pair on each side, and Wald's interval of what the pairs then changed by
    total = lost + won + same + 1
    changes = np.repeat([-1.0, 1.0, 0.0], [lost + 1, won + 1, same + 1])
    half = stats.t.ppf(0.975, total) * stats.sem(changes, ddof=0)
    low, high = paired_difference(lost, won, total)
    assert low == pytest.approx(max(changes.mean() - half, -1))
    assert high == pytest.approx(min(changes.mean() + half, 1))
    ends = paired_difference([lost, won], [won, lost], total)
    assert [end.tolist() for end in ends] == [[low, -high], [high, -low]]


def test_rows_that_were_not_measured_do_not_count_and_one_row_has_no_interval():
    values = np.array([[1.0, np.nan, np.nan], [3.0, 2.0, np.nan], [8.0, 6.0, np.nan]])
    mean, low, high = ratio_interval(values, np.ones((3, 1)))
    assert mean == pytest.approx([4, 4, np.nan], nan_ok=True)
    assert (mean[1], low[1], high[1]) == ratio_interval(values[1:, 1])
    assert ratio_interval(np.array([3.0]), np.array([2.0])) == (1.5, -math.inf, math.inf)


def test_the_interval_and_the_test_over_seeds_are_students():
    values = np.random.default_rng(0).normal(size=5)
    found = student_interval([*values, np.nan])
    expected = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-10)
    assert found.mean == pytest.approx(values.mean()) and len(found.values) == 5
    assert student_test(values) == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    one = student_interval([0.9])
    assert one.to_dict() == {"values": [0.9], "mean": 0.9, "low": None, "high": None}
    assert np.isnan(student_interval([]).mean) and np.isnan(student_test(np.ones(1)))


# --- tests and ranks ------------------------------------------------------------------------------


@given(st.integers(0, 4000), st.integers(0, 4000))
def test_mcnemars_p_is_that_of_statsmodels_and_scipy(statsmodels, lost, won):
    p = mcnemar(lost, won)
    expected = statsmodels.mcnemar([[1, lost], [won, 1]], exact=True).pvalue
    assert p == pytest.approx(expected, rel=1e-9)
    assert p == mcnemar(won, lost) == mcnemar([lost], [won])[0]
    if lost + won:
        assert p == pytest.approx(stats.binomtest(lost, lost + won).pvalue, rel=1e-9)


@pytest.mark.parametrize(
    "counts", [[2, 1], [1, 1, 1], [3, -1, 2, 2], [3, 3, -2, 1, 1, 0, 0, -1], [5, 4, 3, 2, 1, 1, 3]]
)
def test_sign_tests_are_those_of_all_choices(counts):
    expected = stats.permutation_test(
        (np.array(counts, float),), np.sum, permutation_type="samples", n_resamples=np.inf
    ).pvalue
    assert sign_test_of_counts(np.array(counts)) == pytest.approx(expected)
    assert sign_test(np.array(counts, float)) == pytest.approx(expected)


def test_many_values_are_drawn_and_p_is_never_zero():
    values = np.random.default_rng(3).normal(0.25, 1, 40)
    expected = stats.permutation_test(
        (values,), np.sum, permutation_type="samples", n_resamples=20_000, rng=5
    ).pvalue
    assert sign_test(values) == pytest.approx(expected, abs=0.015)
    assert sign_test(values) == sign_test(values)  # the same draws each time
    assert np.isnan(sign_test([])) and sign_test([0.0, 0.0]) == 1.0
    assert sign_test_of_counts(np.zeros(3, int)) == 1.0
    counts = np.random.default_rng(0).integers(-3, 4, 300)
    assert sign_test_of_counts(counts) == pytest.approx(sign_test(counts.astype(float)), abs=0.02)
    assert 0 < sign_test_of_counts(np.ones(5000, int)) < 1e-200


def test_random_orders_are_combined_over_models():
    orders = [np.arange(20.0)]
    for score, expected in ((99.0, 1 / 21), (19.0, 2 / 21), (-1.0, 1.0)):
        assert random_order_test([score], orders) == pytest.approx(expected)
    assert np.isnan(random_order_test([], []))
    # 3 x 4 combinations, of which those with a sum of 4 or more count
    assert random_order_test([2.0, 2.0], [np.arange(3.0), np.arange(4.0)]) == pytest.approx(4 / 13)
    many = [np.random.default_rng(seed).normal(size=20) for seed in range(6)]
    scale = np.sqrt(sum(map(np.var, many)))
    expected = stats.norm.sf(-sum(row.mean() for row in many), scale=scale)
    assert random_order_test([0.0] * 6, many) == pytest.approx(expected, abs=0.03)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_adjusted_ps_are_those_of_statsmodels_and_what_was_not_tested_is_no_test(statsmodels, p):
    expected = statsmodels.adjusted(p, method="fdr_bh")[1]
    adjusted = benjamini_hochberg(np.array([*p, np.nan]))
    assert adjusted == pytest.approx([*expected, np.nan], nan_ok=True)
    assert np.isnan(benjamini_hochberg(np.array([np.nan]))).all()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), max_size=30))
def test_the_rank_correlation_is_that_of_mean_ranks(pairs):
    first, second = np.array(pairs, float).reshape(-1, 2).T
    found = spearman(first, second)
    if len(pairs) < 3 or len(set(first)) == 1 or len(set(second)) == 1:
        assert np.isnan(found)
    else:
        ranks = [stats.rankdata(row) for row in (first, second)]
        assert found == pytest.approx(np.corrcoef(*ranks)[0, 1], abs=1e-12)


def test_equal_methods_share_their_rank():
    values = np.array([[0.5, 0.7, 0.7, 0.1], [1.0, np.nan, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]])
    assert mean_ranks(values).tolist() == [[3.0, 1.5, 1.5, 4.0], [1.0, 2.0, 3.0, 4.0]]
    assert mean_ranks([[0.1 + 0.2, 0.3]]).tolist() == [[1.5, 1.5]]


# --- how often intervals hold ---------------------------------------------------------------------


# --- how often intervals hold ---------------------------------------------------------------------


def held(shares, low, high):
    """The chance that the interval of a count, low and high (total + 1,), holds each share."""
    counts = np.arange(len(low))
    holds = (low <= shares[:, None]) & (shares[:, None] <= high)
    return (stats.binom.pmf(counts, len(low) - 1, shares[:, None]) * holds).sum(1)


@pytest.mark.parametrize("total", [32, 512])
def test_intervals_hold_as_often_as_the_page_says(total):
    """Of shares of 50 to 99 %, and of changes of 0.3 to 30 % that only go one way: on both sides
    of every end, where coverage jumps, so that the least is exact."""
    counts = np.arange(total + 1)
    narrow = np.array([wilson(int(right), total) for right in counts]).T
    even, one_way = np.linspace(0.5, 0.99, 197), np.geomspace(0.003, 0.3, 15)
    for (low, high), least in (
        (narrow, 0.8943 if total < 410 else 0.93), (agresti_coull(counts, total), 0.93)
    ):  # fmt: skip
        ends = np.concatenate([low - 1e-10, low + 1e-10, high - 1e-10, high + 1e-10])
        found = held(ends[(ends >= 0.5) & (ends <= 0.99)], low, high)
        assert found.min() >= least - 5e-5 and 0.949 <= held(even, low, high).mean() <= 0.96
    low, high = paired_difference(counts, 0, total)
    ends = np.concatenate([-low - 1e-10, 1e-10 - low, -high - 1e-10, 1e-10 - high, one_way])
    ends = ends[(ends >= 0.003) & (ends <= 0.3)]
    found = held(ends, -high, -low)
    assert found.min() >= 0.93 and found[total * ends >= 25].max(initial=0.0) <= 0.97


# --- classes, and bits of captures ----------------------------------------------------------------


@given(*[st.integers(0, 50)] * 4)
def test_two_classes_have_the_textbook_formulas(tn, fp, fn, tp):
    table = np.array([[tn, fp], [fn, tp]])
    wanted, predictions = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [tn, fp, fn, tp], axis=0).T
    assert (confusion(wanted, predictions, 2) == table).all()
    f1 = 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0
    assert f1_score(table) == pytest.approx(f1)
    below = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    assert matthews(table) == pytest.approx((tp * tn - fp * fn) / math.sqrt(below) if below else 0)


def without_the_first(prompt):
    """The bytes of all tokens but the first and those after the text."""
    real = prompt.spans[1:][prompt.spans[1:, 0] >= 0]
    first = max(int(prompt.spans[0, 1]), 0)
    return len(prompt.text[first : real[:, 1].max()].encode())


@pytest.mark.parametrize(
    ("make", "size_of"),
    [
        (lambda: make_capture("The hourglass was used at sea. " * 20), without_the_first),
        (lambda: make_capture("한국어 🙂 é"), lambda prompt: len(prompt.text.encode()) - 1),
        (gpt2, without_the_first),
        (translator, without_the_first),
    ],
    ids=["bytes in several blocks", "long characters", "word pieces", "two texts"],
)
def test_bits_per_byte_are_those_of_torch(make, size_of):
    capture = make()
    rows = torch.tensor(np.array(capture.logits[:-1]), dtype=torch.float64)
    wanted = torch.tensor(np.array(capture.main.ids[1:]))
    nats = F.cross_entropy(rows, wanted, reduction="sum").item()
    expected = nats / math.log(2) / size_of(capture.main)
    assert bits_per_byte(capture) == pytest.approx(expected, rel=1e-12)


def test_there_are_no_bits_where_nothing_was_predicted():
    capture = make_capture("The sea.")
    broken = np.array(capture.logits)
    broken[2] = np.nan
    for other in (
        make_capture("The sea.", logits=False), bert(), classifier(), make_capture("a"),
        replace(capture, logits=capture.logits[:3]), replace(capture, logits=broken),
    ):  # fmt: skip
        assert bits_per_byte(other) is None
