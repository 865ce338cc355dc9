"""Curves of ever fewer heads beside random ones: counted by hand and by brute force."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.analysis import curves, scores
from hgviz.core import HeadId
from hgviz.study import Curve
from tests.studying import make_study

HEADS = tuple(HeadId(0, head) for head in range(12))


def curve_of(values, changes=None, low=None, removed=None, losses=None):
    """A curve of given values; changes are to the first one unless they are given."""
    values = np.array(values, np.float32)
    changes = values - values[0] if changes is None else np.array(changes, np.float32)
    low = changes - 0.02 if low is None else np.array(low, np.float32)
    removed = np.arange(len(values)) if removed is None else np.array(removed)
    losses = 1 - values if losses is None else np.array(losses, np.float32)
    return Curve(
        "signed", HEADS, removed, values, values - 0.1, values + 0.1, losses,
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
        interval = scores.agresti_coull(int(right[at].sum()), n)
        assert (found.low[at], found.high[at]) == pytest.approx(interval)
        lost, won = int((right[0] & ~right[at]).sum()), int((right[at] & ~right[0]).sum())
        ends = scores.paired_difference(lost, won, n) if at else (0, 0)
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
    others = (replace(same, rows=np.arange(8)), replace(same, order=HEADS[:5]), one)
    study = replace(make_study(), curves=(same, *others))
    assert curves.beside(study, one) == (same,)
