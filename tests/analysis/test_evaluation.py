"""Scores of answers, of slices, with heads off beside the baseline, and bits of captures."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from hgviz.analysis.importance import (
    Slice,
    compare_with_baseline,
    score_heads_off,
    score_slices,
    slices_of,
)
from hgviz.analysis.statistics import (
    Answers,
    bits_per_byte,
    confusion,
    f1_score,
    matthews,
    paired_difference,
)
from hgviz.core import HeadId, Prompt
from hgviz.examples import classification_examples, next_token_examples
from tests.gui.kinds import bert, classifier, gpt2, translator
from tests.making import byte_prompt, make_capture
from tests.progress import steps_of

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

    def answer(batch):
        return np.full(len(batch.rows), losses, np.float32), predictions[batch.ids[:, 0]]

    return answer


def answers(predictions, loss=None):
    predictions = np.asarray(predictions, np.int64)
    loss = np.ones(len(predictions)) if loss is None else loss
    return Answers(np.asarray(loss, np.float32), predictions)


# --- classes --------------------------------------------------------------------------------------


def test_a_confusion_table_counts_pairs():
    table = confusion(np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 2, 0]), 3)
    assert table.tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 1]]


@given(*[st.integers(0, 50)] * 4)
def test_two_classes_have_the_textbook_formulas(tn, fp, fn, tp):
    table = np.array([[tn, fp], [fn, tp]])
    f1 = 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0
    assert f1_score(table) == pytest.approx(f1)
    below = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    assert matthews(table) == pytest.approx((tp * tn - fp * fn) / math.sqrt(below) if below else 0)


def test_more_classes_have_the_mean_f1_and_perfect_answers_score_one():
    table = np.diag([5, 1, 3])
    assert f1_score(table) == matthews(table) == pytest.approx(1.0)
    table = np.array([[2, 1, 0], [0, 3, 0], [0, 2, 0]])
    assert f1_score(table) == pytest.approx((4 / 5 + 6 / 9 + 0) / 3)


# --- heads off beside the baseline ----------------------------------------------------------------


@given(st.integers(1, 400), st.integers(0, 2**32 - 1))
def test_lost_and_won_are_counted_text_by_text(count, seed):
    random, examples = np.random.default_rng(seed), texts(count)
    before, now = random.integers(0, 2, (2, count))
    models = answering(before), answering(now, 0.75)
    score, baseline, off = score_heads_off(examples, examples.blocks(), *models, OFF)
    right = np.arange(count) % 2
    assert score.lost == sum((before == right) & (now != right))
    assert score.won == sum((before != right) & (now == right))
    assert score.baseline.value == pytest.approx((before == right).mean())
    assert score.score.value == pytest.approx((now == right).mean())
    assert score.difference == pytest.approx(score.score.value - score.baseline.value)
    assert score.low < score.difference < score.high or score.difference in (-1, 1)
    assert (score.loss, score.baseline_loss, score.score.off) == (0.75, 0.5, OFF)
    assert score.done and (off.predictions == now).all() and (baseline.predictions == before).all()


def test_a_score_and_its_slices_grow_from_the_first_block_on():
    examples = texts(700)
    models = answering(np.arange(700) % 2), answering(np.zeros(700, np.int64))
    slices = slices_of(examples)
    steps = steps_of(score_heads_off, examples, examples.blocks(), *models, OFF, slices)
    live = [step.value for step in steps]
    assert [score.score.seen for score in live] == [32, 288, 544, 700]
    assert [score.done for score in live] == [False, False, False, True]
    widths = [score.high - score.low for score in live]
    assert widths == sorted(widths, reverse=True) and min(widths) > 0
    for score in live:
        every, no, yes = score.slices
        assert (every.n, every.lost, every.won) == (score.score.seen, score.lost, score.won)
        assert no.n + yes.n == every.n and (no.name, yes.name) == ("no", "yes")
        assert (no.lost, yes.lost) == (0, yes.n)
    assert [part.total for part in live[-1].slices] == [700, 350, 350]


def test_where_nothing_was_answered_anything_is_possible():
    examples = texts(4)
    nothing = Answers.unasked(examples)
    score = compare_with_baseline(examples, nothing, nothing, np.zeros(4, bool))
    assert (score.low, score.high, score.score.low, score.score.high) == (-1, 1, 0, 1)
    assert score.p == 1 and score.difference == 0
    (part,) = score_slices(examples, nothing, nothing, slices_of(examples)[:1])
    assert (part.n, part.total, part.now, part.change) == (0, 4, (0, 0, 1), (0, -1, 1))


def test_a_sample_says_how_many_there_were():
    examples = texts(30)
    sample = examples.sample(10)
    assert (len(sample), sample.among) == (10, 30)
    first = [examples.rows[row] for row in examples.order[:10]]
    assert [sample.rows[row] for row in sample.order] == first
    assert examples.sample(30) is examples and examples.among == 0


# --- slices ---------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 30), min_size=2, max_size=60))
def test_every_example_is_in_one_class_and_one_quarter_of_the_lengths(lengths):
    examples = texts(len(lengths), lengths)
    whole, *slices = slices_of(examples)
    assert whole.by == "all" and whole.places.all()
    for by in ("label", "length"):
        places = [part.places for part in slices if part.by == by]
        assert len(places) != 1 and all(part.any() for part in places)
        assert not places or (np.sum(places, axis=0) == 1).all()
    parts = [examples.lengths[part.places] for part in slices if part.by == "length"]
    assert len(parts) <= 4
    assert all(max(a) < min(b) for a, b in zip(parts, parts[1:], strict=False))


def test_lengths_are_named_by_their_ends_and_tokens_have_no_classes():
    slices = slices_of(texts(8, [3, 4, 5, 6, 7, 8, 9, 1200]))
    names = [part.name for part in slices if part.by == "length"]
    assert names == ["3 to 4 tokens", "5 to 6 tokens", "7 to 8 tokens", "9 to 1,200 tokens"]
    windows = next_token_examples([byte_prompt("to be or not to be")], None, 6)
    assert [part.by for part in slices_of(windows)] == ["all"]


@given(st.integers(0, 99))
def test_the_scores_of_slices_add_up(seed):
    random, examples = np.random.default_rng(seed), texts(40, [1, 2, 3, 4, 5] * 8)
    before, now = (answers(random.integers(0, 2, 40), random.random(40)) for _ in range(2))
    slices = [part for part in slices_of(examples) if part.by == "length"]
    scores = score_slices(examples, before, now, slices)
    was, is_now = (side.predictions == examples.wanted for side in (before, now))
    assert sum(part.n for part in scores) == 40
    assert sum(part.lost for part in scores) == (was & ~is_now).sum()
    assert sum(part.won for part in scores) == (~was & is_now).sum()
    for part in scores:
        assert part.now[0] - part.before[0] == pytest.approx(part.change[0])
        assert part.loss[1] - part.loss[0] == pytest.approx(part.loss_change[0])
        assert part.change[1:] == paired_difference(part.lost, part.won, part.n)
        assert part.loss_change[1] <= part.loss_change[0] <= part.loss_change[2]


def test_places_that_were_not_answered_yet_are_not_counted():
    random, examples = np.random.default_rng(3), texts(20)
    before, now = random.integers(0, 2, (2, 20))
    before[10:], now[:4] = -1, -1
    every = [Slice("all", "", np.ones(20, bool))]
    (part,) = score_slices(examples, answers(before), answers(now), every)
    assert (part.n, part.total) == (6, 20)


def test_the_interval_of_a_change_of_loss_is_that_of_a_mean():
    random, examples = np.random.default_rng(5), texts(50)
    losses = random.normal(0.3, 1, (2, 50)).astype(np.float32)
    sides = [answers(examples.wanted, loss) for loss in losses]
    (part,) = score_slices(examples, *sides, [Slice("all", "", np.ones(50, bool))])
    more = (losses[1] - losses[0]).astype(float)
    half = 1.96 * more.std(ddof=1) / np.sqrt(50)
    expected = (more.mean(), more.mean() - half, more.mean() + half)
    assert part.loss_change == pytest.approx(expected, 1e-3)


# --- bits per byte --------------------------------------------------------------------------------


def without_the_first(prompt):
    return len(prompt.text[prompt.spans[0, 1] :].encode())


def up_to_the_last(prompt):
    real = prompt.spans[1:][prompt.spans[1:, 0] >= 0]
    return len(prompt.text[: real[:, 1].max()].encode())


@pytest.mark.parametrize(
    ("make", "size_of"),
    [
        (lambda: make_capture("The hourglass was used at sea. " * 20), without_the_first),
        (lambda: make_capture("한국어 🙂 é"), lambda prompt: len(prompt.text.encode()) - 1),
        (gpt2, without_the_first),
        (translator, up_to_the_last),
    ],
    ids=["bytes in several blocks", "long characters", "word pieces", "two texts"],
)
def test_bits_per_byte_are_those_of_torch(make, size_of):
    capture = make()
    rows = torch.tensor(np.array(capture.logits[:-1]), dtype=torch.float64)
    wanted = torch.tensor(np.array(capture.main.ids[1:]))
    nats = F.cross_entropy(rows, wanted, reduction="sum").item()
    expected = nats / math.log(2) / size_of(capture.main)
    assert bits_per_byte(capture) == pytest.approx(expected, rel=1e-12)


def test_there_are_no_bits_where_nothing_was_predicted():
    assert bits_per_byte(make_capture("The sea.", logits=False)) is None
    assert bits_per_byte(bert()) is None and bits_per_byte(classifier()) is None
    assert bits_per_byte(make_capture("a")) is None
    capture = make_capture("The sea.")
    assert bits_per_byte(replace(capture, logits=capture.logits[:3])) is None
    broken = np.array(capture.logits)
    broken[2] = np.nan
    assert bits_per_byte(replace(capture, logits=broken)) is None
