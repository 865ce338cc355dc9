"""Scores of heads, orders, curves and heads off beside the baseline: by hand, by brute force and by
closed forms."""

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
    MaskTrial,
    changes,
    importance,
    order_by_need,
    pruning_curve,
    random_band,
    removable_heads,
    removal_costs,
    savings,
    split_examples,
    try_mask,
)
from hgviz.analysis.statistics import (
    Z95,
    agresti_coull,
    paired_difference,
    ratio_interval,
)
from hgviz.core import HeadCost, HeadId, HgvizError, Layer, Level, ModelSpec, Prompt
from hgviz.examples import classification_examples
from hgviz.study import PruningCurve
from tests.studying import make_study

HEADS = tuple(HeadId(layer, head) for layer in range(3) for head in range(4))
NEEDS = st.lists(st.integers(-5, 5), min_size=12, max_size=12)


# --- what heads cost ------------------------------------------------------------------------------


WIDTH, HEAD_WIDTH = 24, 6
SIDE = 2 * WIDTH * HEAD_WIDTH  # weights of queries and outputs, or of keys and values, of one head


ONE_LEVEL = (Level(0),)


def spec_of(layers, levels=ONE_LEVEL):
    return ModelSpec("test", "test", levels, tuple(layers), WIDTH, 10)


def layer(index, role="self", level=0, key_level=0, heads=(0, 1, 2, 3), window=None):
    return Layer(
        index, f"l.{index}", role, level, key_level, heads, ("softmax",) * len(heads), False, window
    )


def costs(spec, *tokens, keeps_one=False):
    """Parameters and FLOPs of heads with four products of equal size, in matrices."""
    cost = HeadCost((SIDE, 2 * SIDE), (SIDE, 2 * SIDE), 2 * HEAD_WIDTH, keeps_one)
    return removal_costs(spec, [cost] * len(spec.layers), *map(np.array, tokens))


def alone(costs, spec):
    """What each head saves if it is the only one that is off."""
    return np.array([savings(costs, spec, [head])[1] for head in spec.heads])


def flops(queries, keys, pairs):
    """Those of one head: two products of each position, and two of each pair."""
    return 2 * SIDE * (queries + keys) + 4 * HEAD_WIDTH * pairs


HALVED, TARGET = (Level(0), Level(1, 4)), (Level(0), Level(1, sequence="target"))


@pytest.mark.parametrize(
    ("spec", "tokens", "expected"),
    [
        (spec_of([layer(0)]), [[10]], [flops(10, 10, 100)]),
        (spec_of([layer(0, level=1, key_level=1)], HALVED), [[10]], [flops(3, 3, 9)]),
        (spec_of([layer(0, "down", 1, 0), layer(1, "up", 0, 1)], HALVED), [[10]],
         [flops(10, 3, 30)] * 2),
        (spec_of([layer(0, "down", 1, 0, window=4)], HALVED), [[10]], [flops(10, 3, 12)]),
        # texts one by one
        (spec_of([layer(0)]), [[3, 90]], [(flops(3, 3, 9) + flops(90, 90, 8100)) / 2]),
        # the other text where the keys are there
        (spec_of([layer(0), layer(1, "self", 1, 1), layer(2, "cross", 1, 0)], TARGET), [[7], [20]],
         [flops(20, 20, 400), flops(7, 7, 49), flops(7, 20, 140)]),
    ],
)  # fmt: skip
def test_a_head_costs_what_the_closed_form_says(spec, tokens, expected):
    parameters, found = (alone(part, spec) for part in costs(spec, *tokens))
    assert (parameters == 2 * SIDE).all()
    assert found == pytest.approx(np.repeat(expected, 4))


def test_keys_go_with_the_last_head_of_their_group():
    spec = spec_of([replace(layer(0, heads=(0, 1, 3)), shared=2), layer(1, heads=())])
    order = [HeadId(0, head) for head in (3, 0, 1)]
    for keeps_one, last in ((False, 2 * SIDE), (True, 0)):
        parameters, _ = costs(spec, [5], keeps_one=keeps_one)
        totals = [0, 2 * SIDE, 3 * SIDE, 3 * SIDE + last]
        assert savings(parameters, spec, order).tolist() == totals
        assert savings(parameters, spec, order[1:], order[:1]).tolist() == totals[1:]
        assert alone(parameters, spec).tolist() == [SIDE, SIDE, 2 * SIDE]


# --- orders ---------------------------------------------------------------------------------------


@given(NEEDS, st.sets(st.integers(0, 11)))
def test_heads_go_from_the_least_needed_on_ties_in_order_and_unmeasured_ones_stay(needs, unknown):
    values = np.array(needs, float)
    values[[*unknown]] = np.nan
    known = [head for at, head in enumerate(HEADS) if at not in unknown]
    expected = sorted(known, key=lambda head: (needs[HEADS.index(head)], head))
    assert order_by_need(values, Limits(HEADS)) == tuple(expected)


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


@given(st.integers(2, 300), st.integers(0, 99), st.floats(0.05, 0.95))
def test_order_and_curve_share_no_example_and_leave_none_out(count, seed, share):
    first, second = split_examples(count, seed, share)
    assert sorted([*first, *second]) == list(range(count))
    assert len(first) and len(second) and abs(len(first) - share * count) <= 1
    assert all(map(np.array_equal, (first, second), split_examples(count, seed, share)))


# --- scores of heads ------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["classes", "next"])
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
    study, windows, many = make_study(5, 40), make_study(2, 30, "next"), make_study(3, 640)
    loss_change, gradient = (study.arrays[x].astype(float) for x in ("loss_change", "gradient"))
    sizes = np.abs(gradient)
    parts = np.split(windows.arrays["loss_change"].astype(float), np.cumsum(windows.counts)[:-1])
    sums = np.array([part.sum(0) for part in parts])
    batches = np.abs(many.arrays["gradient"].astype(float).reshape(20, 32, -1).sum(1))
    half = Z95 * batches.std(0, ddof=1) * np.sqrt(20)
    for measured, name, expected in (
        (study, "loo", stats.norm.interval(0.95, loss_change.mean(0), stats.sem(loss_change))),
        (study, "michel", stats.norm.interval(0.95, sizes.mean(0), stats.sem(sizes))),
        (windows, "loo", ratio_interval(sums, windows.counts[:, None])[1:]),
        (many, "bertology", (batches.sum(0) - half, batches.sum(0) + half)),
    ):
        found = importance(measured, name)
        assert np.stack([found.low, found.high]) == pytest.approx(np.stack(expected)), name


def test_rank_one_is_the_most_needed_head_and_heads_that_were_off_have_none():
    whole, study = make_study(7, 12), make_study(5, 30, off=((0, 1), (3, 0)))
    for name, method in METHODS.items():
        found = importance(whole, name)
        assert found.need == pytest.approx(method.needed * found.score)
        needed = sorted(range(18), key=lambda at: -found.need[at])
        assert [int(found.rank[at]) for at in needed] == list(range(1, 19))
        assert found.least_needed == tuple(found.heads[at] for at in reversed(needed))
        if not method.learned:
            found = importance(study, name)
            assert np.flatnonzero(np.isnan(found.score)).tolist() == [1, 6], name
            assert len(found.to_rows()) == len(found.least_needed) == found.rank.max() == 16
            assert not {study.heads[1], study.heads[6]} & {*found.least_needed}


def test_changes_are_counted_and_tested_head_by_head_where_they_were_measured():
    study = make_study(9, 50)
    found, change = changes(study), study.arrays["change"]
    lost, won = ((change == sign).sum(0) for sign in (-1, 1))
    assert (found.lost == lost).all() and (found.won == won).all()
    assert found.change == pytest.approx((won - lost) / 50)
    ends = np.stack(paired_difference(lost, won, 50))
    assert np.stack([found.low, found.high]) == pytest.approx(ends)
    p = [stats.binomtest(int(x), int(x + y)).pvalue for x, y in zip(lost, won, strict=True)]
    assert found.p == pytest.approx(np.array(p))
    assert found.adjusted == pytest.approx(stats.false_discovery_control(p))
    missing = changes(make_study(1, 20, without=("change",)))
    assert np.isnan(missing.p).all() and np.isnan(missing.change).all()


def test_scores_that_cannot_be_made_say_why():
    study = replace(make_study(1, 5, without=("gradient", "shapley")), learned=())
    for name, rows, message in (
        ("signed", None, "was not measured"), ("gates", None, "was not measured"),
        ("magic", None, "unknown score 'magic'"),
        ("loo", np.zeros(5, bool), "no examples"),
    ):  # fmt: skip
        with pytest.raises(HgvizError, match=message):
            importance(study, name, rows)


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


@pytest.mark.parametrize("asked", ["classes", "next"])
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
    ends = np.stack(agresti_coull(right.sum(1), n))
    assert np.stack([found.low, found.high]) == pytest.approx(ends)
    lost, won = (right[0] & ~right).sum(1), (right & ~right[0]).sum(1)
    ends = np.stack(paired_difference(lost, won, n)) * [0, 1, 1]  # the baseline has not changed
    assert np.stack([found.change_low, found.change_high]) == pytest.approx(ends)
    assert (found.method, found.seed) == ("loo", 4)
    assert found.off(2) == {*study.heads[:2]} and found.off(0) == frozenset()


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


def test_a_band_holds_what_quantiles_hold_where_all_of_its_curves_are():
    values = np.random.default_rng(1).random((30, 6))
    band = random_band([curve_of(row) for row in values])
    expected = np.quantile(values, [0.1, 0.5, 0.9], axis=0)
    assert [band.low, band.middle, band.high] == [pytest.approx(row) for row in expected]
    assert band.orders == 30
    long, short = curve_of(np.ones(6)), curve_of(np.zeros(3), removed=[0, 2, 9])
    assert random_band([long, short]).removed.tolist() == [0, 2]
    assert random_band([]).orders == 0 and not len(random_band([]).removed)


# --- heads off beside the baseline ----------------------------------------------------------------


OFF = frozenset({HeadId(0, 1)})


def texts(count, lengths=None):
    """Texts of the classes no and yes by turns, each of one token unless lengths says more."""
    lengths = [1] * count if lengths is None else lengths
    prompts = [
        Prompt("a" * n, np.full(n, at), ("a",) * n, np.stack([np.arange(n), np.arange(n) + 1], 1))
        for at, n in enumerate(lengths)
    ]
    return classification_examples(prompts, [at % 2 for at in range(count)], ("no", "yes"), None)


def answering(predictions, losses=0.5):
    """A model that predicts a class of each text, known by its first id."""
    losses = np.full(len(predictions), losses, np.float32)
    return lambda batch: (losses[batch.ids[:, 0]], predictions[batch.ids[:, 0]])


@given(st.integers(1, 400), st.integers(0, 2**32 - 1))
def test_lost_and_won_are_counted_text_by_text(count, seed):
    random, examples = np.random.default_rng(seed), texts(count)
    before, now = random.integers(0, 2, (2, count))
    trial = MaskTrial(OFF, examples)
    assert not len(trial.changed())
    trial = try_mask(trial, examples.blocks(), answering(before), answering(now, 0.75))
    right, (every, *_), score = np.arange(count) % 2, trial.slices, trial.scores[-1]
    was, is_now = before == right, now == right
    assert trial.changed("lost").tolist() == np.flatnonzero(was & ~is_now).tolist()
    assert trial.changed("won").tolist() == np.flatnonzero(~was & is_now).tolist()
    assert trial.changed().tolist() == np.flatnonzero(before != now).tolist()
    assert (every.lost, every.won) == (len(trial.changed("lost")), len(trial.changed("won")))
    assert every.before == pytest.approx((was.mean(), *agresti_coull(was.sum(), count)))
    assert every.now == pytest.approx((is_now.mean(), *agresti_coull(is_now.sum(), count)))
    change = is_now.mean() - was.mean(), *paired_difference(every.lost, every.won, count)
    assert every.change == pytest.approx(change)
    changed = every.lost + every.won
    expected = stats.binomtest(every.lost, changed).pvalue if changed else 1
    assert every.p == pytest.approx(expected)
    assert [ends[0] for ends in (*every.loss, every.loss_change)] == [0.5, 0.75, 0.25]
    assert every.loss[0][1:] == pytest.approx((0.5, 0.5) if count > 1 else (-np.inf, np.inf))
    assert not trial.losses and trial.headline == trial.scores
    assert (score.value, score.low, score.high) == every.now and score.off == OFF
    assert trial.done and score.metric == "accuracy" and score.seen == score.total == count
