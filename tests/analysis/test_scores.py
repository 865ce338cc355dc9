"""Scores, their intervals and numbers over seeds, against closed forms, scipy and counted sums."""

import math
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hgviz.analysis import replicates, scores


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


# --- numbers over seeds ---------------------------------------------------------------------------


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


# --- how often intervals hold ---------------------------------------------------------------------


SIZES = (32, 33, 38, 44, 48, 64, 100, 140, 250, 500, 1000, 2000)
SHARES = np.linspace(0.5, 0.99, 197)
ONE_SIDED = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5)  # of those that disagree, how many the other way
DISCORDANT = np.geomspace(0.003, 0.3, 15)


def share_coverage(interval, total):
    """Shares of 50 to 99 %, and for each P(the interval of Binomial(total, share) holds it).

    Among them are both sides of every end, where coverage jumps, so the least and the most are
    exact; the mean is over SHARES, which come first.
    """
    low, high = np.array([interval(right, total) for right in range(total + 1)]).T
    ends = np.concatenate([low, high])
    shares = np.concatenate([SHARES, ends - 1e-10, ends + 1e-10])
    shares = shares[(shares >= 0.5) & (shares <= 0.99)]
    # those that hold a share are next to each other
    first, last = np.searchsorted(high, shares), np.searchsorted(low, shares, side="right") - 1
    chance = stats.binom(total, shares)
    return shares, chance.cdf(last) - chance.cdf(first - 1)


def paired_coverage(total, discordant, other):
    """P(the interval holds the change), over all outcomes but one in ten million."""
    count = stats.binom(total, discordant)
    most = int(count.isf(1e-8)) + 1
    lost, won = np.meshgrid(np.arange(most), np.arange(most), indexing="ij")
    kept = (lost + won <= most) & (count.pmf(lost + won) > 1e-12)
    lost, won = lost[kept], won[kept]
    chance = count.pmf(lost + won) * stats.binom.pmf(won, lost + won, other)
    lost, won, chance = (part[chance > 1e-12] for part in (lost, won, chance))
    b, c, n = lost + 1, won + 1, total + 2
    half = scores.student95(total) * np.sqrt((b + c) - (b - c) ** 2 / n) / n
    truth = discordant * (2 * other - 1)
    return float(chance[np.abs((c - b) / n - truth) <= half + 1e-12].sum())


def test_the_interval_of_a_share_holds_it():
    for total in SIZES:
        shares, found = share_coverage(scores.agresti_coull, total)
        assert found.min() >= 0.93, total
        assert found[total * (1 - shares) >= 20].max(initial=0.0) <= 0.97, total
        assert 0.949 <= found[: len(SHARES)].mean() <= 0.96, total


def test_wilsons_interval_holds_its_share_but_where_hardly_anything_is_wrong():
    least = {}
    for total in SIZES:
        shares, found = share_coverage(scores.wilson, total)
        least[total] = found.min()
        assert found[total * (1 - shares) >= 20].max(initial=0.0) <= 0.97, total
        assert 0.949 <= found[: len(SHARES)].mean() <= 0.954, total
    assert all(found >= 0.93 for total, found in least.items() if total > 410)
    assert min(least.values()) == least[32] == pytest.approx(0.8943, abs=1e-4)


def test_the_interval_of_a_paired_difference_holds_it():
    for total in (32, 40, 64, 128, 300, 2000):
        for discordant in DISCORDANT:
            for other in ONE_SIDED:
                found = paired_coverage(total, discordant, other)
                assert found >= 0.93, (total, discordant, other)
                if total * discordant >= 25:
                    assert found <= 0.97, (total, discordant, other)


@pytest.mark.parametrize("total", [*range(32, 131, 7), 200, 500, 1000, 1500, 2000])
def test_the_interval_holds_a_change_that_can_only_go_one_way(total):
    """On both sides of every end, where coverage jumps: the least is exact."""
    counts = np.arange(total + 1)
    low, high = np.array([scores.paired_difference(lost, 0, total) for lost in counts]).T
    ends = np.concatenate([-low, -high])
    shares = np.concatenate([ends - 1e-10, ends + 1e-10, DISCORDANT])
    shares = shares[(shares >= 0.003) & (shares <= 0.3), None]
    holds = (low <= -shares) & (-shares <= high)
    found = (stats.binom.pmf(counts, total, shares) * holds).sum(1)
    assert found.min() >= 0.93
    assert found[total * shares[:, 0] >= 25].max(initial=0.0) <= 0.97


@pytest.mark.parametrize("seed", range(3))
def test_pairs_that_are_drawn_are_held_as_often(seed):
    """Whole models of 50 to 99 % and variants of them, at random: 400 pairs, 1,000 draws each."""
    random = np.random.default_rng(seed)
    held_shares, held_changes, draws = [], [], 1000
    for _ in range(400):
        total = int(np.exp(random.uniform(np.log(32), np.log(2000))))
        right, discordant = random.uniform(0.5, 0.99), np.exp(random.uniform(*np.log([0.003, 0.3])))
        # no more can be won than was wrong
        won = discordant * random.uniform(0, min(1, (1 - right) / discordant))
        lost = discordant - won
        drawn = random.multinomial(total, [right - lost, lost, won, 1 - right - won], draws)
        ends = {
            (int(b), int(c)): scores.paired_difference(int(b), int(c), total)
            for b, c in np.unique(drawn[:, 1:3], axis=0)
        }
        low, high = np.array([ends[int(b), int(c)] for b, c in drawn[:, 1:3]]).T
        held_changes.append(((low <= won - lost) & (won - lost <= high)).mean())
        counts = drawn[:, 0] + drawn[:, 1]
        ends = {int(one): scores.agresti_coull(int(one), total) for one in np.unique(counts)}
        low, high = np.array([ends[int(one)] for one in counts]).T
        held_shares.append(((low <= right) & (right <= high)).mean())
    noise = 3.5 * np.sqrt(0.95 * 0.05 / draws)  # 3.5 standard errors of each of 400
    for held in (held_shares, held_changes):
        assert min(held) >= 0.93 - noise
        assert np.mean(held) >= 0.95
