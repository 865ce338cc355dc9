"""Parts of a study: every example is in one of each kind, and parts add up to the whole."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.analysis import scores
from hgviz.analysis.evaluation import Answers
from hgviz.analysis.importance import importance
from hgviz.analysis.slices import Slice, levels, of_examples, slices, table
from hgviz.examples import following
from hgviz.prompt import Prompt
from tests.making import make_spec
from tests.studying import make_study


def whole(study):
    return Answers(study.loss, study.given)


def of(study, by):
    return tuple(one for one in slices(study) if one.by == by)


@given(st.integers(1, 60), st.integers(0, 99))
def test_every_example_is_in_one_class_and_one_length(examples, seed):
    study = make_study(seed, examples)
    for by in ("label", "length"):
        places = [one.places for one in of(study, by)]
        assert (np.sum(places, axis=0) == 1).all() and len(places[0]) == examples
        assert all(one.any() for one in places)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60))
def test_lengths_come_in_quarters_and_no_length_in_two(lengths):
    study = replace(make_study(1, len(lengths)), lengths=np.array(lengths))
    parts = [{*study.lengths[one.places].tolist()} for one in of(study, "length")]
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
    parts = table(study, whole(study), Answers(study.loss * 2, now), of(study, "length"))
    right = now == study.wanted
    assert sum(one.n for one in parts) == len(study.wanted)
    assert sum(one.lost for one in parts) == (study.right & ~right).sum()
    assert sum(one.won for one in parts) == (~study.right & right).sum()
    for one in parts:
        assert one.now[0] - one.before[0] == pytest.approx(one.change[0])
        assert one.loss[1] - one.loss[0] == pytest.approx(one.more[0])
        if one.n:
            assert one.change[1:] == scores.paired_difference(one.lost, one.won, one.n)
            assert one.more[1] <= one.more[0] <= one.more[2]


def test_places_that_were_not_asked_yet_are_not_counted():
    study = make_study(3, 20, done=0.5)
    now = study.given.copy()
    now[:4] = -1
    parts = table(study, whole(study), Answers(study.loss, now), of(study, "label"))
    assert sum(one.n for one in parts) == 6 and sum(one.total for one in parts) == 20
    none = Answers(study.loss, np.full(20, -1))
    nothing = table(study, whole(study), none, of(study, "label"))
    assert {(one.n, one.now, one.change) for one in nothing} == {(0, (0, 0, 1), (0, -1, 1))}


def test_the_interval_of_more_loss_is_that_of_a_mean():
    study = make_study(5, 50)
    random = np.random.default_rng(5)
    now = study.loss + random.normal(0.3, 1, 50).astype(np.float32)
    (part,) = table(
        study, whole(study), Answers(now, study.given), [Slice("all", "", np.ones(50, bool))]
    )
    more = (now - study.loss).astype(float)
    reach = 1.96 * more.std(ddof=1) / np.sqrt(50)
    assert part.more == pytest.approx((more.mean(), more.mean() - reach, more.mean() + reach), 1e-3)


def text_of(words, asked="next", length=8):
    """A text of bytes, as it is asked for."""
    ids = np.frombuffer(words.encode(), np.uint8).astype(np.int64)
    at = np.arange(len(ids))
    prompt = Prompt(words, ids, tuple(words), np.stack([at, at + 1], 1))
    return following([prompt], None, length)


def test_tokens_are_told_apart_by_what_they_are():
    examples = text_of("ab 12, cd?")
    found = {one.name: one.places for one in of_examples(examples, make_spec((1, 2), 2))
             if one.by == "token"}  # fmt: skip
    wanted = np.array([chr(one) for one in examples.wanted])
    assert "".join(wanted) == "b 12, cd?"
    for name, signs in (
        ("letters", "bcd"), ("digits", "12"), ("spaces", "  "), ("other signs", ",?")
    ):  # fmt: skip
        assert "".join(wanted[found[name]]) == signs


def test_a_word_piece_that_begins_with_a_space_is_what_comes_after_it():
    words = "so 12 up"
    spans = np.array([[0, 2], [2, 5], [5, 8]])
    examples = following([Prompt(words, np.array([7, 8, 9]), ("so", " 12", " up"), spans)], None)
    names = {one.name for one in of_examples(examples, make_spec((1,), 2)) if one.by == "token"}
    assert names == {"digits", "spaces"}  # where the last one ends is not known


def test_tokens_are_told_apart_by_what_comes_before_and_their_place_in_a_group():
    examples = text_of("abcdefghijklmnopqrstuvwxy", length=16)
    found = of_examples(examples, make_spec((1, 2), 2))
    assert found[0].by == "all" and found[0].places.all()
    context = {one.name: int(one.places.sum()) for one in found if one.by == "context"}
    assert context == {"1": 2, "2 to 4": 6, "5 to 16": 16}
    group = {one.name: np.flatnonzero(one.places) for one in found if one.by == "level"}
    assert list(group) == ["1 of 2", "2 of 2"]
    assert (group["1 of 2"][:8] == np.arange(0, 16, 2)).all()
    flat = of_examples(examples, make_spec((1,), 2))
    assert not [one for one in flat if one.by == "level"]


def test_a_kind_with_one_slice_alone_is_left_out():
    examples = text_of("abcdef")
    kinds = {one.by for one in of_examples(examples, make_spec((1,), 2))}
    assert kinds == {"all", "context"}


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
