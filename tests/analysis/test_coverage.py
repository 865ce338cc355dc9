"""How often intervals of 95 % hold what they are of: summed exactly, and drawn."""

import numpy as np
import pytest
from scipy import stats

from hgviz.analysis import scores

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
