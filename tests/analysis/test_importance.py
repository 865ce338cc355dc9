"""Scores of heads out of studies of random numbers, by the formulas written out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hgviz.analysis import scores
from hgviz.analysis.importance import METHODS, changes, importance
from hgviz.core import HgvizError
from hgviz.study import UNKNOWN, Learned
from tests.studying import make_study

MEASURED = [name for name, one in METHODS.items() if one.needs not in ("subset", "causal")]


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
        ends = scores.ratio_interval(list(sums[:, head]), list(study.counts))
        assert (found.low[head], found.high[head]) == pytest.approx(ends)


def test_sums_over_batches_spread_like_a_sum():
    study = make_study(3, 200)
    found = importance(study, "bertology", batch=10)
    sums = np.abs(study.gradient.astype(float).reshape(20, 10, -1).sum(1))
    half = scores.Z95 * sums.std(0, ddof=1) * np.sqrt(20)
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
        ends = scores.paired_difference(lost, won, 50)
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


def test_gates_held_both_ways_are_facilitating_and_held_in_neither_interfering():
    study = make_study(1, 5)
    on, off = np.ones((2, 18), np.float32), np.zeros((2, 18), np.float32)
    on[:, 0], off[:, 1] = 0, 1
    learned = (Learned("causal-on", on), Learned("causal-off", off))
    found = importance(replace(study, learned=learned), "causal")
    assert found.score.tolist() == [-1, 1, *[0] * 16]


def test_scores_that_cannot_be_made_say_why():
    study = make_study(1, 5, without=("gradient", "shapley"))
    for name in ("signed", "shapley", "subset", "causal"):
        with pytest.raises(HgvizError, match="nothing that"):
            importance(study, name)
    with pytest.raises(HgvizError, match="no score named magic"):
        importance(study, "magic")
    with pytest.raises(HgvizError, match="no examples"):
        importance(study, "loo", np.zeros(5, bool))
