"""Orders of heads and what heads cost: sorted by hand, by brute force and by closed forms."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.analysis import orders
from hgviz.core import HeadId, HeadWeights, Layer, Level, ModelSpec

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
    one = HeadWeights(side, side if groups else (0, 0), 2 * D_H, keeps_one)
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
