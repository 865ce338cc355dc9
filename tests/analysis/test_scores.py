"""Scores and their intervals against closed forms, counted sums and published examples."""

import math
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hgviz.analysis import scores


@pytest.fixture(scope="module")
def theirs():
    """What statsmodels has; it loads pandas, which only the process that runs this needs."""
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.proportion import proportion_confint

    return SimpleNamespace(mcnemar=mcnemar, adjusted=multipletests, interval=proportion_confint)


COUNTS = st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS)
def test_wilsons_ends_are_where_the_score_test_just_rejects(counts):
    right, total = counts
    low, high = scores.wilson(right, total)
    share = right / total
    assert 0 <= low <= share <= high <= 1
    for end, exact in ((low, right == 0), (high, right == total)):
        if not exact:
            assert abs(share - end) == pytest.approx(
                scores.Z95 * math.sqrt(end * (1 - end) / total), rel=1e-6, abs=1e-9
            )


def test_wilsons_interval_of_a_published_example():
    # Newcombe 1998, table I: 81 of 263
    assert scores.wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert scores.wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_nothing_seen_says_nothing():
    assert scores.wilson(0, 0) == (0.0, 1.0)
    assert scores.agresti_coull(0, 0) == (0.0, 1.0)


@given(COUNTS)
def test_intervals_of_a_share_are_those_of_statsmodels_and_scipy(theirs, counts):
    right, total = counts
    for name, interval in (("wilson", scores.wilson), ("agresti_coull", scores.agresti_coull)):
        found = interval(right, total)
        assert found == pytest.approx(theirs.interval(right, total, method=name), abs=1e-12)
    scipys = stats.binomtest(right, total).proportion_ci(method="wilson")
    assert scores.wilson(right, total) == pytest.approx((scipys.low, scipys.high), abs=1e-12)


@given(COUNTS)
def test_agresti_and_coulls_interval_lies_around_wilsons(counts):
    low, high = scores.wilson(*counts)
    wide_low, wide_high = scores.agresti_coull(*counts)
    assert wide_low <= low + 1e-12 and high - 1e-12 <= wide_high


@given(st.integers(0, 4000), st.integers(0, 4000))
def test_mcnemars_p_is_that_of_statsmodels_and_scipy(theirs, lost, won):
    found = scores.mcnemar(lost, won)
    wanted = theirs.mcnemar([[1, lost], [won, 1]], exact=True).pvalue
    assert found == pytest.approx(wanted, rel=1e-9)
    if lost + won:
        assert found == pytest.approx(stats.binomtest(lost, lost + won).pvalue, rel=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_adjusted_ps_are_those_of_statsmodels_and_scipy(theirs, p):
    found = scores.benjamini_hochberg(np.array(p))
    assert found == pytest.approx(theirs.adjusted(p, method="fdr_bh")[1])
    assert found == pytest.approx(stats.false_discovery_control(p))


def test_what_was_not_tested_is_no_test():
    p = np.array([0.01, np.nan, 0.04, np.nan])
    found = scores.benjamini_hochberg(p)
    assert found == pytest.approx([0.02, np.nan, 0.04, np.nan], nan_ok=True)
    assert np.isnan(scores.benjamini_hochberg(np.array([np.nan]))).all()


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 300))
def test_a_paired_difference_has_bonett_and_prices_interval(lost, won, same):
    # with one more pair on each side, and Wald's interval of what the pairs then changed by
    total = lost + won + same + 1
    changes = np.repeat([-1.0, 1.0, 0.0], [lost + 1, won + 1, same + 1])
    half = scores.student95(total) * stats.sem(changes, ddof=0)
    low, high = scores.paired_difference(lost, won, total)
    assert low == pytest.approx(max(changes.mean() - half, -1))
    assert high == pytest.approx(min(changes.mean() + half, 1))


@given(st.integers(2, 60), st.integers(0, 99))
def test_rows_of_one_size_have_the_normal_interval_of_a_mean(count, seed):
    values = np.random.default_rng(seed).normal(3, 2, (count, 2))
    found, low, high = scores.ratios(values, np.ones((count, 1)))
    assert found == pytest.approx(values.mean(0))
    ends = stats.norm.interval(0.95, values.mean(0), stats.sem(values))
    assert (low, high) == (pytest.approx(ends[0]), pytest.approx(ends[1]))


def test_rows_that_were_not_measured_do_not_count():
    values = np.array([[1.0, np.nan, np.nan], [3.0, 2.0, np.nan], [8.0, 6.0, np.nan]])
    found, low, high = scores.ratios(values, np.ones((3, 1)))
    assert found == pytest.approx([4, 4, np.nan], nan_ok=True)
    alone = scores.ratios(values[1:, 1:2], np.ones((2, 1)))
    assert (low[1], high[1]) == (alone[1][0], alone[2][0])


@given(st.integers(0, 12), st.integers(0, 12))
def test_mcnemar_counts_every_outcome_that_is_no_likelier(lost, won):
    total = lost + won
    extreme = sum(1 for one in product((0, 1), repeat=min(total, 12)) if sum(one) <= min(lost, won))
    if total <= 12:
        assert scores.mcnemar(lost, won) == pytest.approx(min(1.0, 2 * extreme / 2**total))
    assert scores.mcnemar(lost, won) == scores.mcnemar(won, lost)


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 500))
def test_a_paired_difference_lies_in_its_interval_unless_it_is_extreme(lost, won, same):
    total = lost + won + same + 1
    low, high = scores.paired_difference(lost, won, total)
    assert -1 <= low < high <= 1
    back = scores.paired_difference(won, lost, total)
    assert back == pytest.approx((-high, -low))


def test_a_confusion_table_counts_pairs():
    table = scores.confusion(np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 2, 0]), 3)
    assert table.tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 1]]


@given(*[st.integers(0, 50)] * 4)
def test_two_classes_have_the_textbook_formulas(tn, fp, fn, tp):
    table = np.array([[tn, fp], [fn, tp]])
    f1 = 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0
    assert scores.f1(table) == pytest.approx(f1)
    below = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    mcc = (tp * tn - fp * fn) / math.sqrt(below) if below else 0.0
    assert scores.matthews(table) == pytest.approx(mcc)


def test_matthews_is_the_correlation_of_two_binary_series():
    random = np.random.default_rng(3)
    wanted = random.integers(0, 2, 400)
    given_ = np.where(random.random(400) < 0.8, wanted, 1 - wanted)
    table = scores.confusion(wanted, given_, 2)
    assert scores.matthews(table) == pytest.approx(np.corrcoef(wanted, given_)[0, 1])


def test_more_classes_have_the_mean_f1_and_perfect_answers_score_one():
    table = np.diag([5, 1, 3])
    assert scores.f1(table) == scores.matthews(table) == pytest.approx(1.0)
    table = np.array([[2, 1, 0], [0, 3, 0], [0, 2, 0]])
    assert scores.f1(table) == pytest.approx((4 / 5 + 6 / 9 + 0) / 3)


def test_surprise_is_minus_ln_p_without_overflow():
    logits = np.array([[1000.0, 0.0], [0.0, 0.0]])
    assert scores.surprise(logits, np.array([0, 1])) == pytest.approx([0.0, math.log(2)])
    assert scores.surprise(logits, np.array([1, 1])) == pytest.approx([1000.0, math.log(2)])


@given(st.integers(2, 1000), st.integers(1, 10_000))
def test_uniform_guesses_cost_the_logarithm_of_the_choices(choices, tokens):
    nats = tokens * math.log(choices)
    assert scores.bits_per_byte(nats, tokens) == pytest.approx(math.log2(choices))
    assert scores.perplexity(nats, tokens) == pytest.approx(choices)


def test_an_endless_perplexity_is_infinite():
    assert scores.perplexity(1e6, 1) == math.inf


def test_windows_of_one_size_have_the_interval_of_a_mean():
    sums = np.random.default_rng(1).normal(20, 3, 50)
    low, high = scores.ratio_interval(sums, [10] * 50)
    half = scores.Z95 * sums.std(ddof=1) / math.sqrt(50) / 10
    assert (low, high) == pytest.approx((sums.mean() / 10 - half, sums.mean() / 10 + half))


def test_one_window_says_nothing_about_others():
    assert scores.ratio_interval([3.0], [2.0]) == (-math.inf, math.inf)


# --- orders ---------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), min_size=3, max_size=30))
def test_the_rank_correlation_is_that_of_scipy_with_ties(pairs):
    first, second = np.array(pairs, float).T
    found = scores.spearman(first, second)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(stats.spearmanr(first, second).statistic, abs=1e-12)


def test_the_rank_correlation_of_orders_and_of_too_little():
    assert scores.spearman([1, 2, 3, 9], [10, 20, 21, 22]) == pytest.approx(1)
    assert scores.spearman([1, 2, 3, 9], [4, 3, 2, -5]) == pytest.approx(-1)
    assert np.isnan(scores.spearman([1, 2], [1, 2])) and np.isnan(scores.spearman([], []))


def test_students_quantile_is_scipys():
    for degrees in range(16, 200):
        assert scores.student95(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), abs=4e-5)
    assert scores.student95(10**9) == pytest.approx(scores.Z95)
