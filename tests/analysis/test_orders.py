"""Scores of heads, orders and curves of ever fewer: by hand, by brute force and by closed forms."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hgviz.analysis import curves, orders
from hgviz.analysis.importance import METHODS, changes, importance
from hgviz.analysis.statistics import Z95, agresti_coull, paired_difference, ratio_interval
from hgviz.core import HeadCost, HeadId, HgvizError, Layer, Level, ModelSpec
from hgviz.study import UNKNOWN, PruningCurve
from tests.studying import make_study

HEADS = tuple(HeadId(layer, head) for layer in range(3) for head in range(4))
NUMBERS = st.lists(st.integers(-5, 5), min_size=12, max_size=12)


# --- costs ----------------------------------------------------------------------------------------


ONE = (Level(0),)


def spec_of(layers, levels=ONE, width=24):
    return ModelSpec("test", "test", levels, tuple(layers), width, 10)


def layer(index, role="self", level=0, key_level=0, heads=(0, 1, 2, 3), window=None):
    return Layer(
        index, f"l.{index}", role, level, key_level, heads, ("softmax",) * len(heads), False, window
    )


D, D_H = 24, 6


def weights_of(spec, keeps_one=False, groups=True):
    """Of heads of four products of equal size, in matrices."""
    side = (2 * D * D_H, 4 * D * D_H)
    one = HeadCost(side, side if groups else (0, 0), 2 * D_H, keeps_one)
    return [one] * len(spec.layers)


def costs(spec, *tokens, **more):
    return orders.costs(spec, weights_of(spec), *map(np.array, tokens), **more)


def alone(costs, spec):
    """What each head saves if it is the only one that is off."""
    return np.array([orders.saved(costs, spec, [head])[1] for head in spec.heads])


@given(st.integers(1, 40), st.sampled_from([1, 2, 4]))
def test_a_head_of_self_attention_costs_what_the_closed_form_says(positions, factor):
    spec = spec_of([layer(0, level=1, key_level=1)], (Level(0), Level(1, factor)))
    parameters, flops = (alone(one, spec) for one in costs(spec, [positions * factor]))
    assert (parameters == 4 * D * D_H).all()
    t = positions
    assert flops == pytest.approx(8 * t * D * D_H + 4 * t**2 * D_H)


def test_going_down_and_up_counts_both_levels_and_the_cells_of_windows():
    levels = (Level(0), Level(1, 4))
    for window, pairs in ((None, 3 * 10), (4, 3 * 4)):
        spec = spec_of(
            [layer(0, "down", 1, 0, window=window), layer(1, "up", 0, 1, window=window)], levels
        )
        _, flops = costs(spec, [10])  # 3 groups of 4
        assert alone(flops, spec) == pytest.approx(4 * D * D_H * 13 + 4 * pairs * D_H)


def test_texts_are_counted_one_by_one_and_then_in_the_mean():
    spec = spec_of([layer(0)])
    each = [costs(spec, [tokens])[1] for tokens in (3, 90)]
    assert costs(spec, [3, 90])[1] == pytest.approx(np.mean(each, axis=0))


def test_a_decoder_counts_the_other_text_where_its_keys_are():
    levels = (Level(0), Level(1, sequence="target"))
    spec = spec_of([layer(0), layer(1, "self", 1, 1), layer(2, "cross", 1, 0)], levels)
    _, flops = costs(spec, [7], [20])
    around, inside = 4 * D * D_H, 4 * D_H
    assert alone(flops, spec)[[0, 4, 8]] == pytest.approx([
        around * 40 + inside * 400, around * 14 + inside * 49, around * 27 + inside * 140,
    ])  # fmt: skip


def test_keys_go_with_the_last_head_of_their_group():
    spec = spec_of([replace(layer(0, heads=(0, 1, 3)), shared=2), layer(1, heads=())])
    side = 2 * D * D_H
    order = [HeadId(0, head) for head in (3, 0, 1)]
    for keeps_one, last in ((False, 2 * side), (True, 0)):
        parameters, _ = orders.costs(spec, weights_of(spec, keeps_one), np.array([5]))
        totals = [0, 2 * side, 3 * side, 3 * side + last]
        assert orders.saved(parameters, spec, order).tolist() == totals
        assert orders.saved(parameters, spec, order[1:], order[:1]).tolist() == totals[1:]
        assert alone(parameters, spec).tolist() == [side, side, 2 * side]


# --- orders ---------------------------------------------------------------------------------------


@given(NUMBERS)
def test_all_heads_go_from_the_least_needed_on_and_ties_in_order(needs):
    order = orders.sorted_order(np.array(needs), orders.Limits(HEADS))
    assert order == tuple(sorted(HEADS, key=lambda head: (needs[HEADS.index(head)], head)))


@given(NUMBERS, st.integers(0, 5), st.sets(st.sampled_from(HEADS)), st.sets(st.sampled_from(HEADS)))
def test_limits_hold_at_every_step_and_nothing_more_could_go(needs, least, protected, off):
    limits = orders.Limits(HEADS, least, protected, frozenset(off))
    order = orders.sorted_order(np.array(needs), limits)
    assert len({*order}) == len(order)
    assert not {*order} & (protected | off)
    on = Counter(head.layer for head in HEADS if head not in off)
    for head in order:
        assert on[head.layer] > least
        on[head.layer] -= 1
    for head in set(HEADS) - set(order) - protected - off:
        assert on[head.layer] <= least


@given(NUMBERS, st.integers(0, 3), st.integers(1, 11))
def test_no_other_heads_within_the_limits_are_needed_less(needs, least, count):
    limits = orders.Limits(HEADS[:8], least)
    order = orders.sorted_order(np.array(needs[:8]), limits)[:count]
    need = dict(zip(HEADS, needs, strict=True))
    others = [
        some for some in combinations(HEADS[:8], len(order))
        if all(4 - sum(h.layer == i for h in some) >= least for i in range(2))
    ]  # fmt: skip
    best = min(sum(need[head] for head in some) for some in others)
    assert sum(need[head] for head in order) == best


def test_heads_that_were_not_measured_stay():
    needs = np.arange(12.0)
    needs[[0, 5]] = np.nan
    assert set(orders.sorted_order(needs, orders.Limits(HEADS))) == {*HEADS} - {HEADS[0], HEADS[5]}


# --- chance ---------------------------------------------------------------------------------------


@given(st.integers(0, 999), st.integers(0, 3))
def test_a_seed_is_an_order(seed, least):
    limits = orders.Limits(HEADS, least)
    order = orders.shuffled(limits, seed)
    assert order == orders.shuffled(limits, seed)
    assert len(order) == 3 * (4 - least)


def test_every_head_comes_first_about_as_often():
    firsts = Counter(orders.shuffled(orders.Limits(HEADS), seed)[0] for seed in range(1200))
    assert set(firsts) == set(HEADS) and max(firsts.values()) < 150 and min(firsts.values()) > 60


@given(st.integers(2, 300), st.integers(0, 99), st.floats(0.05, 0.95))
def test_order_and_curve_share_no_example_and_leave_none_out(rows, seed, share):
    first, second = orders.split(rows, seed, share)
    assert sorted([*first, *second]) == list(range(rows))
    assert len(first) and len(second) and abs(len(first) - share * rows) <= 1
    again = orders.split(rows, seed, share)
    assert (first == again[0]).all() and (second == again[1]).all()


# --- scores of heads ------------------------------------------------------------------------------


MEASURED = [*METHODS]


def each(values, counts):
    """(E, H): sums over the places of each example."""
    return np.array([part.sum(0) for part in np.split(values, np.cumsum(counts)[:-1])])


@pytest.mark.parametrize("asked", ["classes", "next", "masked"])
def test_every_score_is_its_formula(asked):
    study = make_study(1, 40, asked)
    g, d, alone = (
        np.asarray(array, float) for array in (study.gradient, study.loss_change, study.alone)
    )
    places, last = study.places[-1], [head.layer == 8 for head in study.heads]
    tokens = np.asarray(study.token_gradient, float).sum(0)
    formulas = {
        "signed": -g.sum(0) / places,
        "michel": np.abs(g).sum(0) / places,
        "michel-token": tokens / study.lengths.sum(),
        "bertology": np.abs(g[:32].sum(0)) + np.abs(g[32:].sum(0)),
        "fisher": (g**2).mean(0),
        "loo": d.mean(0),
        "all-but-one": alone.mean(0),
        "shapley": np.asarray(study.shapley, float)[:2].mean(0),
        "gates": np.asarray(study.learned[0].runs, float).mean(0),
    }
    if asked == "classes":
        formulas["michel-token"][last] = tokens[last] / 40
    assert set(formulas) == set(MEASURED)
    for name, expected in formulas.items():
        found = importance(study, name)
        assert found.score == pytest.approx(expected, rel=1e-5), name
        assert (found.low <= found.score).all() and (found.score <= found.high).all()


@given(st.integers(2, 60), st.integers(0, 99))
def test_one_place_per_example_has_the_normal_interval_of_a_mean(examples, seed):
    study = make_study(seed, examples)
    for name, values in (("loo", study.loss_change), ("signed", -study.gradient)):
        found = importance(study, name)
        wide = values.astype(float)
        low, high = stats.norm.interval(0.95, wide.mean(0), stats.sem(wide))
        assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_windows_have_the_interval_of_a_ratio():
    study = make_study(2, 30, "next")
    found = importance(study, "loo")
    sums = each(study.loss_change.astype(float), study.counts)
    for head in range(len(study.heads)):
        ends = ratio_interval(sums[:, head], study.counts)[1:]
        assert (found.low[head], found.high[head]) == pytest.approx(ends)


def test_sums_over_batches_spread_like_a_sum():
    study = make_study(3, 200)
    found = importance(study, "bertology", batch=10)
    sums = np.abs(study.gradient.astype(float).reshape(20, 10, -1).sum(1))
    half = Z95 * sums.std(0, ddof=1) * np.sqrt(20)
    assert found.score == pytest.approx(sums.sum(0))
    assert found.high - found.score == pytest.approx(half)


@given(st.integers(0, 99))
def test_rank_one_is_the_most_needed_head(seed):
    study = make_study(seed, 12)
    for name in MEASURED:
        found = importance(study, name)
        needed = sorted(range(len(found.heads)), key=lambda at: -found.need[at])
        assert [int(found.rank[at]) for at in needed] == list(range(1, len(needed) + 1))
        assert found.least == tuple(found.heads[at] for at in reversed(needed))
    assert (importance(study, "loo").need == importance(study, "loo").score).all()
    assert (importance(study, "shapley").need == -importance(study, "shapley").score).all()


def test_facts_are_those_of_the_command_line():
    facts = importance(make_study(4, 9), "michel").facts()
    assert [list(one) for one in facts] == [["head", "score", "low", "high", "rank"]] * 18
    assert [one["rank"] for one in facts] == list(range(1, 19))
    assert facts[0]["score"] == max(one["score"] for one in facts)
    assert all(type(one["head"]) is str and one["low"] <= one["high"] for one in facts)


def test_an_interval_without_ends_is_null():
    facts = importance(make_study(4, 1), "michel").facts()
    assert {one["low"] for one in facts} == {one["high"] for one in facts} == {None}


def test_heads_that_were_off_have_no_score_and_no_rank():
    study = make_study(5, 30, off=((0, 1), (3, 0)))
    for name in ("signed", "bertology", "loo", "all-but-one", "fisher", "michel-token", "shapley"):
        found = importance(study, name)
        assert np.flatnonzero(np.isnan(found.score)).tolist() == [1, 6], name
        assert len(found.facts()) == 16 and found.rank.max() == 16
        assert not {study.heads[1], study.heads[6]} & {*found.least}


@given(st.integers(0, 30))
def test_what_a_running_study_has_is_scored_as_if_it_were_all(seed):
    running = make_study(seed, 40, "next", done=0.5)
    for name in ("signed", "loo", "all-but-one", "michel", "fisher", "michel-token"):
        whole = importance(running, name, np.arange(20))
        assert importance(running, name).score == pytest.approx(whole.score), name


@given(st.sets(st.integers(0, 29), min_size=2), st.integers(0, 20))
def test_some_examples_are_chosen_by_number_or_by_a_mask(rows, seed):
    study, chosen = make_study(seed, 30, "masked"), np.array(sorted(rows))
    mask = np.isin(np.arange(30), chosen)
    first, second = importance(study, "loo", chosen), importance(study, "loo", mask)
    assert first.score == pytest.approx(second.score, nan_ok=True) and first.rows == len(rows)
    places = study.places_of(mask)
    if places.any():
        assert first.score == pytest.approx(study.loss_change[places].mean(0), rel=1e-4, abs=1e-7)


@given(st.integers(0, 99))
def test_changes_are_counted_and_tested_head_by_head(seed):
    study = make_study(seed, 50)
    found = changes(study)
    for at in range(len(study.heads)):
        lost, won = ((study.change[:, at] == sign).sum() for sign in (-1, 1))
        assert (found.lost[at], found.won[at]) == (lost, won)
        assert found.change[at] == pytest.approx((won - lost) / 50)
        ends = paired_difference(lost, won, 50)
        assert (found.low[at], found.high[at]) == pytest.approx(ends)
        assert found.p[at] == pytest.approx(stats.binomtest(int(lost), int(lost + won)).pvalue)
    assert found.adjusted == pytest.approx(stats.false_discovery_control(found.p))
    assert importance(study, "loo").adjusted == pytest.approx(found.adjusted)


def test_answers_that_were_not_measured_are_not_tested():
    found = changes(make_study(1, 20, without=("change",)))
    assert np.isnan(found.p).all() and np.isnan(found.change).all()
    study = make_study(1, 20)
    change = study.change.copy()
    change[:, 2], change[10:, 3] = UNKNOWN, UNKNOWN
    found = changes(replace(study, change=change))
    assert np.isnan([found.p[2], found.change[2], found.low[2]]).all()
    assert found.change[3] == pytest.approx(study.change[:10, 3].mean())


def test_scores_that_cannot_be_made_say_why():
    study = make_study(1, 5, without=("gradient", "shapley"))
    for name in ("signed", "shapley", "gates"):
        with pytest.raises(HgvizError, match="nothing that"):
            importance(replace(study, learned=()), name)
    with pytest.raises(HgvizError, match="no score named magic"):
        importance(study, "magic")
    with pytest.raises(HgvizError, match="no examples"):
        importance(study, "loo", np.zeros(5, bool))


# --- curves ---------------------------------------------------------------------------------------


TWELVE = tuple(HeadId(0, head) for head in range(12))


def curve_of(values, changes=None, low=None, removed=None, losses=None):
    """A curve of given values; changes are to the first one unless they are given."""
    values = np.array(values, np.float32)
    changes = values - values[0] if changes is None else np.array(changes, np.float32)
    low = changes - 0.02 if low is None else np.array(low, np.float32)
    removed = np.arange(len(values)) if removed is None else np.array(removed)
    losses = 1 - values if losses is None else np.array(losses, np.float32)
    return PruningCurve(
        "signed", TWELVE, removed, values, values - 0.1, values + 0.1, losses,
        changes, low, changes + 0.02, np.arange(9),
    )  # fmt: skip


# --- curves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["classes", "next", "masked"])
def test_a_curve_counts_what_was_right_place_by_place(asked):
    study = make_study(1, 40, asked)
    rows, random = np.arange(5, 40, 2), np.random.default_rng(1)
    wanted = study.wanted[study.places_of(rows)]
    n = len(wanted)
    given_ = np.where(random.random((3, n)) < [[0.9], [0.7], [0.5]], wanted, 9)
    losses = random.random((3, n)).astype(np.float32)
    found = curves.curve(study, study.heads, [0, 2, 7], losses, given_, rows, "loo", 4)
    right = given_ == wanted
    assert found.values == pytest.approx(right.mean(1))
    assert found.loss == pytest.approx(losses.mean(1))
    assert found.change == pytest.approx(right.mean(1) - right[0].mean())
    for at in range(3):
        interval = agresti_coull(int(right[at].sum()), n)
        assert (found.low[at], found.high[at]) == pytest.approx(interval)
        lost, won = int((right[0] & ~right[at]).sum()), int((right[at] & ~right[0]).sum())
        ends = paired_difference(lost, won, n) if at else (0, 0)
        assert (found.change_low[at], found.change_high[at]) == pytest.approx(ends)
    assert (found.method, found.seed) == ("loo", 4)
    assert found.off(2) == {*study.heads[:2]} and found.off(0) == frozenset()


@given(st.integers(1, 300), st.integers(2, 60))
def test_points_go_from_none_to_all_in_equal_steps(heads, most):
    found = curves.points(heads, most)
    assert found[0] == 0 and found[-1] == heads and len(found) <= max(most, 2)
    steps = np.diff(found)
    assert (steps > 0).all() and steps.max() - steps.min() <= 1
    if heads < most:
        assert (steps == 1).all()


# --- k* -------------------------------------------------------------------------------------------

WHOLE = st.lists(st.integers(-30, 10), min_size=1, max_size=12)


@given(WHOLE, st.integers(0, 15))
def test_k_is_the_last_number_before_the_first_loss_of_more_than_a_point(changes, wide):
    changes = np.array([0, *changes]) / 1000
    low = changes - wide / 1000
    low[0] = 0
    one = curve_of(0.8 + changes, changes, low)
    for bound, side in zip(curves.allowed(one), (changes, low), strict=True):
        fine = [k for k in range(len(side)) if all(side[: k + 1] >= -0.01 - 1e-9)]
        assert bound == max(fine)
    assert curves.allowed(one)[1] <= curves.allowed(one)[0]


def test_a_recovery_after_a_loss_of_two_points_does_not_count():
    one = curve_of([0.9, 0.9, 0.88, 0.9, 0.9], removed=[0, 2, 4, 6, 8])
    assert curves.allowed(one) == (2, 0)
    assert curves.allowed(one, 0.03)[0] == 8


# --- area, band, chance ---------------------------------------------------------------------------


def test_the_area_of_a_straight_line_is_its_middle():
    assert curves.area(curve_of(np.linspace(0.9, 0.5, 5))) == pytest.approx(0.7)
    assert curves.area(curve_of([0.9, 0.8, 0.5], removed=[0, 2, 8])) == pytest.approx(
        (2 * 0.85 + 6 * 0.65) / 8
    )
    assert curves.area(curve_of([0.9])) == pytest.approx(0.9)
    assert curves.area(curve_of([0.9, 0.5]), losses=True) == pytest.approx(0.3)


@given(st.integers(1, 40), st.integers(0, 99))
def test_a_band_holds_what_quantiles_hold(count, seed):
    values = np.random.default_rng(seed).random((count, 6))
    found = curves.band([curve_of(one) for one in values])
    low, middle, high = np.quantile(values, [0.1, 0.5, 0.9], axis=0)
    assert found.low == pytest.approx(low) and found.high == pytest.approx(high)
    assert found.middle == pytest.approx(middle) and found.orders == count


def test_a_band_is_where_all_of_its_curves_are():
    long, short = curve_of(np.ones(6)), curve_of(np.zeros(3), removed=[0, 2, 9])
    assert curves.band([long, short]).removed.tolist() == [0, 2]
    assert curves.band([]).orders == 0 and not len(curves.band([]).removed)


def test_a_curve_is_above_within_or_below_the_band():
    randoms = [curve_of([0.9, value, value, value]) for value in np.linspace(0.5, 0.6, 21)]
    one = curve_of([0.9, 0.7, 0.55, 0.4])
    assert curves.outside(one, curves.band(randoms)).tolist() == [0, 1, 0, -1]
    assert curves.outside(curve_of([0.9, 0.7]), curves.band(randoms)).tolist() == [0, 1, 0, 0]


@given(st.integers(1, 30), st.integers(0, 999))
def test_chance_counts_the_random_orders_that_do_as_well(count, seed):
    random = np.random.default_rng(seed)
    randoms = [curve_of(one) for one in random.random((count, 5))]
    mine = curve_of(random.random(5))
    better = sum(curves.area(one) >= curves.area(mine) - 1e-9 for one in randoms)
    assert curves.chance(mine, randoms) == pytest.approx((1 + better) / (1 + count))


def test_chance_and_lead_compare_only_points_that_all_have():
    """Between fewer points a bent curve has a smaller area: the same order must not look better."""
    bent = [0.9, 0.9, 0.9, 0.9, 0.5]
    coarse = [curve_of([0.9, 0.9, 0.5], removed=[0, 2, 4]) for _ in range(20)]
    assert curves.area(curve_of(bent)) > curves.area(coarse[0])
    assert curves.chance(curve_of(bent), coarse) == 1.0
    assert curves.lead(curve_of(bent), curves.band(coarse)) == pytest.approx(0.0)


def test_a_lead_is_what_lies_between_a_curve_and_the_middle_of_random_ones():
    randoms = [curve_of([0.9, value, 0.5]) for value in np.linspace(0.6, 0.8, 21)]
    band = curves.band(randoms)
    assert curves.lead(curve_of([0.9, 0.8, 0.5]), band) == pytest.approx(0.05)  # 0.1 at the middle
    assert curves.lead(curve_of([0.9, 0.6, 0.5]), band) == pytest.approx(-0.05)


def test_what_is_off_is_a_share_of_all_that_could_be():
    study = make_study(off=[(0, 1)])
    order = tuple(head for head in study.heads if head not in study.off)
    found = curves.saved(study, replace(curve_of([0.9, 0.8]), order=order), "flops")
    assert len(found) == len(order) + 1 and (np.diff(found) > 0).all() and 0.9 < found[-1] < 1


def test_random_curves_of_other_examples_or_fewer_heads_are_not_beside_one():
    one = curve_of([0.9, 0.8])
    same = replace(one, method="random", seed=1)
    others = (replace(same, rows=np.arange(8)), replace(same, order=TWELVE[:5]), one)
    study = replace(make_study(), curves=(same, *others))
    assert curves.beside(study, one) == (same,)
