"""Parts of a study: every example is in one of each kind, and parts add up to the whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.analysis import scores
from hgviz.analysis.importance import importance
from hgviz.analysis.slices import levels, slices, table
from tests.studying import make_study


def of(study, by):
    return tuple(one for one in slices(study) if one.by == by)


@given(st.integers(1, 60), st.integers(0, 99))
def test_every_example_is_in_one_class_and_one_length(examples, seed):
    study = make_study(seed, examples)
    for by in ("label", "length"):
        rows = np.concatenate([one.rows for one in of(study, by)])
        assert sorted(rows) == list(range(examples))
        assert all(len(one.rows) for one in of(study, by))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60))
def test_lengths_come_in_quarters_and_no_length_in_two(lengths):
    study = replace(make_study(1, len(lengths)), lengths=np.array(lengths))
    parts = [{*study.lengths[one.rows].tolist()} for one in of(study, "length")]
    assert 1 <= len(parts) <= 4
    assert all(max(a) < min(b) for a, b in zip(parts, parts[1:], strict=False))


def test_lengths_are_named_by_their_ends():
    study = replace(make_study(1, 8), lengths=np.array([3, 4, 5, 6, 7, 8, 9, 1200]))
    names = [one.name for one in of(study, "length")]
    assert names == ["3 to 4 tokens", "5 to 6 tokens", "7 to 8 tokens", "9 to 1,200 tokens"]


def test_tokens_have_no_classes():
    assert not of(make_study(1, 9, "next"), "label")


@given(st.integers(0, 99), st.sampled_from(["classes", "next"]))
def test_a_table_adds_up_to_the_whole(seed, asked):
    study = make_study(seed, 40, asked)
    now = np.random.default_rng(seed).permutation(study.given)
    parts = table(study, now, of(study, "length"))
    right = now == study.wanted
    assert sum(one.n for one in parts) == len(study.wanted)
    assert sum(one.lost for one in parts) == (study.right & ~right).sum()
    assert sum(one.won for one in parts) == (~study.right & right).sum()
    for one in parts:
        assert one.now[0] - one.before[0] == pytest.approx(one.change)
        if one.n:
            assert (one.low, one.high) == scores.paired_difference(one.lost, one.won, one.n)


def test_places_that_were_not_asked_yet_are_not_counted():
    study = make_study(3, 20, done=0.5)
    now = study.given.copy()
    now[:4] = -1
    assert sum(one.n for one in table(study, now, of(study, "label"))) == 6
    nothing = table(study, np.full(20, -1), of(study, "label"))
    assert {(one.n, one.now, one.low, one.high) for one in nothing} == {(0, (0, 0, 1), -1, 1)}


def test_scores_level_by_level_have_resampling_by_itself():
    study = make_study(4, 50)
    found = importance(study, "loo")
    rows = levels(study, found)
    assert [one.name for one in rows] == ["1:1", "1:2, down", "1:2", "1:1, up"]
    assert sorted(head for one in rows for head in one.heads) == list(study.heads)
    for one in rows:
        at = [study.heads.index(head) for head in one.heads]
        assert one.mean == pytest.approx(found.score[at].mean())
        assert (one.needed, one.harmful) == ((found.low[at] > 0).sum(), (found.high[at] < 0).sum())


def test_where_a_low_score_means_needed_the_signs_turn_around():
    study = make_study(4, 50)
    shapley = np.tile(np.float32([[-1], [-1.1]]), 18)
    rows = levels(study, importance(replace(study, shapley=shapley), "shapley"))
    assert [(one.needed, one.harmful) for one in rows] == [(len(one.heads), 0) for one in rows]
