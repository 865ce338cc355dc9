"""Scores of heads, orders and pruning curves: by hand, by brute force and by closed forms."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hgviz.analysis.importance import (
    METHODS,
    Limits,
    changes,
    curve_points,
    importance,
    mean_along,
    nearest_point,
    order_by_need,
    pruning_curve,
    random_band,
    random_chance,
    random_curves_beside,
    random_order,
    removable_heads,
    removal_costs,
    saved_share,
    savings,
    split_examples,
)
from hgviz.analysis.statistics import Z95, agresti_coull, paired_difference, ratio_interval
from hgviz.core import HeadCost, HeadId, HgvizError, Layer, Level, ModelSpec
from hgviz.study import UNKNOWN, PruningCurve
from tests.studying import make_study

HEADS = tuple(HeadId(layer, head) for layer in range(3) for head in range(4))
NEEDS = st.lists(st.integers(-5, 5), min_size=12, max_size=12)


# --- what heads cost ------------------------------------------------------------------------------


WIDTH, HEAD_WIDTH = 24, 6


ONE = (Level(0),)


def spec_of(layers, levels=ONE):
    return ModelSpec("test", "test", levels, tuple(layers), WIDTH, 10)


def layer(index, role="self", level=0, key_level=0, heads=(0, 1, 2, 3), window=None):
    return Layer(
        index, f"l.{index}", role, level, key_level, heads, ("softmax",) * len(heads), False, window
    )


def weights_of(spec, keeps_one=False):
    """Of heads with four products of equal size, in matrices."""
    side = (2 * WIDTH * HEAD_WIDTH, 4 * WIDTH * HEAD_WIDTH)
    return [HeadCost(side, side, 2 * HEAD_WIDTH, keeps_one)] * len(spec.layers)


def costs(spec, *tokens):
    return removal_costs(spec, weights_of(spec), *map(np.array, tokens))


def alone(costs, spec):
    """What each head saves if it is the only one that is off."""
    return np.array([savings(costs, spec, [head])[1] for head in spec.heads])


@given(st.integers(1, 40), st.sampled_from([1, 2, 4]))
def test_a_head_of_self_attention_costs_what_the_closed_form_says(positions, factor):
    spec = spec_of([layer(0, level=1, key_level=1)], (Level(0), Level(1, factor)))
    parameters, flops = (alone(part, spec) for part in costs(spec, [positions * factor]))
    assert (parameters == 4 * WIDTH * HEAD_WIDTH).all()
    assert flops == pytest.approx(
        8 * positions * WIDTH * HEAD_WIDTH + 4 * positions**2 * HEAD_WIDTH
    )


@pytest.mark.parametrize(("window", "pairs"), [(None, 3 * 10), (4, 3 * 4)])
def test_going_down_and_up_counts_both_levels_and_the_cells_of_windows(window, pairs):
    layers = [layer(0, "down", 1, 0, window=window), layer(1, "up", 0, 1, window=window)]
    spec = spec_of(layers, (Level(0), Level(1, 4)))
    _, flops = costs(spec, [10])  # 3 groups of 4
    assert alone(flops, spec) == pytest.approx(4 * WIDTH * HEAD_WIDTH * 13 + 4 * pairs * HEAD_WIDTH)


def test_texts_are_counted_one_by_one_and_a_decoder_counts_the_other_text_where_its_keys_are():
    spec = spec_of([layer(0)])
    each = [costs(spec, [tokens])[1] for tokens in (3, 90)]
    assert costs(spec, [3, 90])[1] == pytest.approx(np.mean(each, axis=0))
    levels = (Level(0), Level(1, sequence="target"))
    spec = spec_of([layer(0), layer(1, "self", 1, 1), layer(2, "cross", 1, 0)], levels)
    _, flops = costs(spec, [7], [20])
    around, inside = 4 * WIDTH * HEAD_WIDTH, 4 * HEAD_WIDTH
    assert alone(flops, spec)[[0, 4, 8]] == pytest.approx([
        around * 40 + inside * 400, around * 14 + inside * 49, around * 27 + inside * 140,
    ])  # fmt: skip


def test_keys_go_with_the_last_head_of_their_group():
    spec = spec_of([replace(layer(0, heads=(0, 1, 3)), shared=2), layer(1, heads=())])
    side = 2 * WIDTH * HEAD_WIDTH
    order = [HeadId(0, head) for head in (3, 0, 1)]
    for keeps_one, last in ((False, 2 * side), (True, 0)):
        parameters, _ = removal_costs(spec, weights_of(spec, keeps_one), np.array([5]))
        totals = [0, 2 * side, 3 * side, 3 * side + last]
        assert savings(parameters, spec, order).tolist() == totals
        assert savings(parameters, spec, order[1:], order[:1]).tolist() == totals[1:]
        assert alone(parameters, spec).tolist() == [side, side, 2 * side]


def test_what_is_off_is_a_share_of_all_that_could_be():
    study = make_study(off=[(0, 1)])
    order = tuple(head for head in study.heads if head not in study.off)
    shares = saved_share(study, replace(curve_of([0.9, 0.8]), order=order), "flops")
    assert len(shares) == len(order) + 1 and (np.diff(shares) > 0).all() and 0.9 < shares[-1] < 1


# --- orders ---------------------------------------------------------------------------------------


@given(NEEDS)
def test_all_heads_go_from_the_least_needed_on_and_ties_in_order(needs):
    order = order_by_need(np.array(needs), Limits(HEADS))
    assert order == tuple(sorted(HEADS, key=lambda head: (needs[HEADS.index(head)], head)))


@given(NEEDS, st.integers(0, 5), st.sets(st.sampled_from(HEADS)), st.sets(st.sampled_from(HEADS)))
def test_limits_hold_at_every_step_and_nothing_more_could_go(needs, least, protected, off):
    limits = Limits(HEADS, least, protected, frozenset(off))
    order = order_by_need(np.array(needs), limits)
    assert len({*order}) == len(order) and not {*order} & (protected | off)
    on = Counter(head.layer for head in HEADS if head not in off)
    for head in order:
        assert on[head.layer] > least
        on[head.layer] -= 1
    for head in set(HEADS) - set(order) - protected - off:
        assert on[head.layer] <= least


def test_heads_that_were_not_measured_stay():
    needs = np.arange(12.0)
    needs[[0, 5]] = np.nan
    assert {*order_by_need(needs, Limits(HEADS))} == {*HEADS} - {HEADS[0], HEADS[5]}


def test_a_seed_is_an_order_and_every_head_comes_first_about_as_often():
    for least in range(4):
        order = random_order(Limits(HEADS, least), 7)
        assert order == random_order(Limits(HEADS, least), 7) and len(order) == 3 * (4 - least)
    firsts = Counter(random_order(Limits(HEADS), seed)[0] for seed in range(1200))
    assert set(firsts) == set(HEADS) and max(firsts.values()) < 150 and min(firsts.values()) > 60


@given(st.integers(2, 300), st.integers(0, 99), st.floats(0.05, 0.95))
def test_order_and_curve_share_no_example_and_leave_none_out(count, seed, share):
    first, second = split_examples(count, seed, share)
    assert sorted([*first, *second]) == list(range(count))
    assert len(first) and len(second) and abs(len(first) - share * count) <= 1
    again = split_examples(count, seed, share)
    assert (first == again[0]).all() and (second == again[1]).all()


# --- scores of heads ------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["classes", "next", "masked"])
def test_every_score_is_its_formula(asked):
    study = make_study(1, 40, asked)
    values = {name: np.asarray(array, float) for name, array in study.arrays.items()}
    g, d, only = (values[name] for name in ("gradient", "loss_change", "alone"))
    places, last = study.places[-1], [head.layer == 8 for head in study.heads]
    tokens = values["token_gradient"].sum(0)
    formulas = {
        "signed": -g.sum(0) / places,
        "michel": np.abs(g).sum(0) / places,
        "michel-token": tokens / study.lengths.sum(),
        "bertology": np.abs(g[:32].sum(0)) + np.abs(g[32:].sum(0)),
        "fisher": (g**2).mean(0),
        "loo": d.mean(0),
        "all-but-one": only.mean(0),
        "shapley": values["shapley"][:2].mean(0),
        "gates": np.asarray(study.learned[0].runs, float).mean(0),
    }
    if asked == "classes":
        formulas["michel-token"][last] = tokens[last] / 40
    assert set(formulas) == set(METHODS)
    for name, expected in formulas.items():
        found = importance(study, name)
        assert found.score == pytest.approx(expected, rel=1e-5), name
        assert (found.low <= found.score).all() and (found.score <= found.high).all()


def test_intervals_are_those_of_a_mean_of_a_ratio_and_of_a_sum():
    study = make_study(5, 40)
    for name, values in (("loo", "loss_change"), ("michel", "gradient")):
        found, wide = importance(study, name), study.arrays[values].astype(float)
        wide = np.abs(wide) if name == "michel" else wide
        low, high = stats.norm.interval(0.95, wide.mean(0), stats.sem(wide))
        assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    windows = make_study(2, 30, "next")
    parts = np.split(windows.arrays["loss_change"].astype(float), np.cumsum(windows.counts)[:-1])
    sums = np.array([part.sum(0) for part in parts])
    _, low, high = ratio_interval(sums, windows.counts[:, None])
    found = importance(windows, "loo")
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    many = make_study(3, 200)
    found = importance(many, "bertology", batch=10)
    sums = np.abs(many.arrays["gradient"].astype(float).reshape(20, 10, -1).sum(1))
    assert found.score == pytest.approx(sums.sum(0))
    assert found.high - found.score == pytest.approx(Z95 * sums.std(0, ddof=1) * np.sqrt(20))


def test_rank_one_is_the_most_needed_head():
    study = make_study(7, 12)
    for name in METHODS:
        found = importance(study, name)
        needed = sorted(range(len(found.heads)), key=lambda at: -found.need[at])
        assert [int(found.rank[at]) for at in needed] == list(range(1, len(needed) + 1))
        assert found.least_needed == tuple(found.heads[at] for at in reversed(needed))
    assert (importance(study, "loo").need == importance(study, "loo").score).all()
    assert (importance(study, "shapley").need == -importance(study, "shapley").score).all()


def test_rows_are_those_of_the_command_line():
    rows = importance(make_study(4, 9), "michel").to_rows()
    assert [list(row) for row in rows] == [["head", "score", "low", "high", "rank"]] * 18
    assert [row["rank"] for row in rows] == list(range(1, 19))
    assert rows[0]["score"] == max(row["score"] for row in rows)
    rows = importance(make_study(4, 1), "michel").to_rows()
    assert {row["low"] for row in rows} == {row["high"] for row in rows} == {None}


def test_heads_that_were_off_have_no_score_and_no_rank():
    study = make_study(5, 30, off=((0, 1), (3, 0)))
    for name in (name for name in METHODS if name != "gates"):
        found = importance(study, name)
        assert np.flatnonzero(np.isnan(found.score)).tolist() == [1, 6], name
        assert len(found.to_rows()) == 16 and found.rank.max() == 16
        assert not {study.heads[1], study.heads[6]} & {*found.least_needed}


def test_what_a_running_study_has_is_scored_as_if_it_were_all():
    running = make_study(8, 40, "next", done=0.5)
    for name in ("signed", "loo", "all-but-one", "michel", "fisher", "michel-token"):
        whole = importance(running, name, np.arange(20))
        assert importance(running, name).score == pytest.approx(whole.score), name


@given(st.sets(st.integers(0, 29), min_size=2), st.integers(0, 20))
def test_examples_are_chosen_by_number_or_by_a_mask(rows, seed):
    study, chosen = make_study(seed, 30, "masked"), np.array(sorted(rows))
    mask = np.isin(np.arange(30), chosen)
    first, second = importance(study, "loo", chosen), importance(study, "loo", mask)
    assert first.score == pytest.approx(second.score, nan_ok=True) and first.rows == len(rows)
    places = study.places_of(mask)
    if places.any():
        expected = study.arrays["loss_change"][places].mean(0)
        assert first.score == pytest.approx(expected, rel=1e-4, abs=1e-7)


def test_changes_are_counted_and_tested_head_by_head():
    study = make_study(9, 50)
    found = changes(study)
    for at in range(len(study.heads)):
        lost, won = (int((study.arrays["change"][:, at] == sign).sum()) for sign in (-1, 1))
        assert (found.lost[at], found.won[at]) == (lost, won)
        assert found.change[at] == pytest.approx((won - lost) / 50)
        assert (found.low[at], found.high[at]) == pytest.approx(paired_difference(lost, won, 50))
        assert found.p[at] == pytest.approx(stats.binomtest(lost, lost + won).pvalue)
    assert found.adjusted == pytest.approx(stats.false_discovery_control(found.p))
    assert importance(study, "loo").adjusted == pytest.approx(found.adjusted)


def test_answers_that_were_not_measured_are_not_tested():
    found = changes(make_study(1, 20, without=("change",)))
    assert np.isnan(found.p).all() and np.isnan(found.change).all()
    study = make_study(1, 20)
    change = study.arrays["change"].copy()
    change[:, 2], change[10:, 3] = UNKNOWN, UNKNOWN
    found = changes(replace(study, arrays={**study.arrays, "change": change}))
    assert np.isnan([found.p[2], found.change[2], found.low[2]]).all()
    assert found.change[3] == pytest.approx(study.arrays["change"][:10, 3].mean())


def test_scores_that_cannot_be_made_say_why():
    study = replace(make_study(1, 5, without=("gradient", "shapley")), learned=())
    for name in ("signed", "shapley", "gates"):
        with pytest.raises(HgvizError, match="nothing that"):
            importance(study, name)
    with pytest.raises(HgvizError, match="unknown score 'magic'"):
        importance(study, "magic")
    with pytest.raises(HgvizError, match="no examples"):
        importance(study, "loo", np.zeros(5, bool))


# --- pruning curves -------------------------------------------------------------------------------


TWELVE = tuple(HeadId(0, head) for head in range(12))


def curve_of(values, changes=None, low=None, removed=None):
    """A curve of given values; changes are to the first one unless they are given."""
    values = np.array(values, np.float32)
    changes = values - values[0] if changes is None else np.array(changes, np.float32)
    low = changes - 0.02 if low is None else np.array(low, np.float32)
    removed = np.arange(len(values)) if removed is None else np.array(removed)
    return PruningCurve(
        "signed", TWELVE, removed, values, values - 0.1, values + 0.1, 1 - values,
        changes, low, changes + 0.02, np.arange(9),
    )  # fmt: skip


@pytest.mark.parametrize("asked", ["classes", "next", "masked"])
def test_a_curve_counts_what_was_right_place_by_place(asked):
    study = make_study(1, 40, asked)
    rows, random = np.arange(5, 40, 2), np.random.default_rng(1)
    wanted = study.wanted[study.places_of(rows)]
    n = len(wanted)
    predictions = np.where(random.random((3, n)) < [[0.9], [0.7], [0.5]], wanted, 9)
    losses = random.random((3, n)).astype(np.float32)
    found = pruning_curve(study, study.heads, [0, 2, 7], losses, predictions, rows, "loo", 4)
    right = predictions == wanted
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
    points = curve_points(heads, most)
    assert points[0] == 0 and points[-1] == heads and len(points) <= max(most, 2)
    steps = np.diff(points)
    assert (steps > 0).all() and steps.max() - steps.min() <= 1
    assert heads >= most or (steps == 1).all()


@given(st.lists(st.integers(-30, 10), min_size=1, max_size=12), st.integers(0, 15))
def test_k_is_the_last_number_before_the_first_loss_of_more_than_a_point(changes, wide):
    changes = np.array([0, *changes]) / 1000
    low = changes - wide / 1000
    low[0] = 0
    bounds = removable_heads(curve_of(0.8 + changes, changes, low))
    for bound, side in zip(bounds, (changes, low), strict=True):
        fine = [k for k in range(len(side)) if all(side[: k + 1] >= -0.01 - 1e-9)]
        assert bound == max(fine)
    assert bounds[1] <= bounds[0]


def test_a_recovery_after_a_loss_of_two_points_does_not_count():
    curve = curve_of([0.9, 0.9, 0.88, 0.9, 0.9], removed=[0, 2, 4, 6, 8])
    assert removable_heads(curve) == (2, 0)
    assert removable_heads(curve, 0.03)[0] == 8


def test_the_mean_along_a_line_is_its_middle():
    assert mean_along([0, 1, 4], [1.0, 0.75, 0.0]) == pytest.approx(0.5)
    assert mean_along([0, 2, 8], [0.9, 0.8, 0.5]) == pytest.approx((2 * 0.85 + 6 * 0.65) / 8)
    assert mean_along([3], [0.25]) == 0.25


@pytest.mark.parametrize(
    ("share", "at"), [(0.5, 2), (0.25, 1), (0.37, 1), (0.375, 1), (0.38, 2), (1.0, 4), (0.01, 0)]
)
def test_a_budget_is_the_nearest_point_that_was_measured(share, at):
    assert nearest_point(np.array([0, 2, 4, 6, 8]), 8, share) == at


def test_beyond_the_end_of_a_curve_nothing_was_measured():
    assert nearest_point(np.array([0, 2, 4]), 8, 0.75) is None
    assert nearest_point(np.array([0, 2, 4]), 8, 0.6) == 2


def test_a_band_holds_what_quantiles_hold_where_all_of_its_curves_are():
    values = np.random.default_rng(1).random((30, 6))
    band = random_band([curve_of(row) for row in values])
    expected = np.quantile(values, [0.1, 0.5, 0.9], axis=0)
    assert [band.low, band.middle, band.high] == [pytest.approx(row) for row in expected]
    assert band.orders == 30
    long, short = curve_of(np.ones(6)), curve_of(np.zeros(3), removed=[0, 2, 9])
    assert random_band([long, short]).removed.tolist() == [0, 2]
    assert random_band([]).orders == 0 and not len(random_band([]).removed)


@given(st.integers(1, 30), st.integers(0, 999))
def test_chance_counts_the_random_orders_that_do_as_well(count, seed):
    random = np.random.default_rng(seed)
    randoms = [curve_of(row) for row in random.random((count, 5))]
    mine = curve_of(random.random(5))
    areas = [mean_along(curve.removed, curve.values) for curve in (mine, *randoms)]
    better = sum(area >= areas[0] - 1e-9 for area in areas[1:])
    assert random_chance(mine, randoms) == pytest.approx((1 + better) / (1 + count))


def test_chance_compares_only_points_that_all_have():
    """Between fewer points a bent curve has a smaller area: the same order must not look better."""
    bent = curve_of([0.9, 0.9, 0.9, 0.9, 0.5])
    coarse = [curve_of([0.9, 0.9, 0.5], removed=[0, 2, 4]) for _ in range(20)]
    assert random_chance(bent, coarse) == 1.0


def test_random_curves_of_other_examples_or_fewer_heads_are_not_beside_one():
    curve = curve_of([0.9, 0.8])
    same = replace(curve, method="random", seed=1)
    others = (replace(same, rows=np.arange(8)), replace(same, order=TWELVE[:5]), curve)
    study = replace(make_study(), curves=(same, *others))
    assert random_curves_beside(study, curve) == (same,)
