"""Answers with heads off beside those of the whole model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.analysis import slices
from hgviz.analysis.evaluation import Answers
from hgviz.analysis.paired import paired, try_heads
from hgviz.core import HeadId, Prompt, finish
from hgviz.examples import labelled
from tests.making import make_spec

OFF = frozenset({HeadId(0, 1)})


def texts(count):
    nowhere = np.array([[0, 1]])
    prompts = [Prompt("a", np.array([number]), ("a",), nowhere) for number in range(count)]
    return labelled(prompts, [number % 2 for number in range(count)], ("no", "yes"), None)


def answering(given, losses=0.5):
    """A model that gives each text, known by its only id, a class."""

    def answer(batch):
        return np.full(len(batch.rows), losses, np.float32), given[batch.ids[:, 0]]

    return answer


@given(st.integers(1, 400), st.integers(0, 2**32 - 1))
def test_lost_and_won_are_counted_text_by_text(count, seed):
    random, examples = np.random.default_rng(seed), texts(count)
    before, now = random.integers(0, 2, (2, count))
    task = try_heads(examples, examples.blocks(), answering(before), answering(now, 0.75), OFF)
    found, whole, answers = finish(task)
    right = np.arange(count) % 2
    assert found.lost == sum((before == right) & (now != right))
    assert found.won == sum((before != right) & (now == right))
    assert found.whole.value == pytest.approx((before == right).mean())
    assert found.score.value == pytest.approx((now == right).mean())
    assert found.difference == pytest.approx(found.score.value - found.whole.value)
    assert found.low < found.difference < found.high or found.difference in (-1, 1)
    assert (found.loss, found.whole_loss, found.score.off) == (0.75, 0.5, OFF)
    assert found.done and (answers.given == now).all() and (whole.given == before).all()


def test_a_score_is_there_from_the_first_block_on_and_grows():
    examples, same = texts(700), np.arange(700) % 2
    task = try_heads(examples, examples.blocks(), answering(same), answering(same), OFF)
    live = [step.value for step in task]
    assert [one.score.seen for one in live] == [32, 288, 544, 700]
    widths = [one.high - one.low for one in live]
    assert widths == sorted(widths, reverse=True) and min(widths) > 0
    assert [one.done for one in live] == [False, False, False, True]


def test_where_nothing_was_seen_anything_is_possible():
    examples = texts(4)
    none = Answers.none(examples)
    found = paired(examples, none, none, np.zeros(4, bool))
    assert (found.low, found.high, found.score.low, found.score.high) == (-1, 1, 0, 1)
    assert found.p == 1 and found.difference == 0


def test_slices_are_counted_while_the_score_grows():
    examples = texts(700)
    before, now = np.arange(700) % 2, np.zeros(700, np.int64)
    which = slices.of_examples(examples, make_spec((1,), 2))
    task = try_heads(examples, examples.blocks(), answering(before), answering(now), OFF, which)
    live = [step.value for step in task]
    for one in live:
        every, no, yes = one.parts
        assert (every.n, every.lost, every.won) == (one.score.seen, one.lost, one.won)
        assert no.n + yes.n == every.n and (no.name, yes.name) == ("no", "yes")
        assert (no.lost, yes.lost) == (0, yes.n)
    assert [one.total for one in live[-1].parts] == [700, 350, 350] and live[0].parts[0].n == 32


def test_a_sample_says_how_many_there_were():
    examples = texts(30)
    some = examples.sample(10)
    assert (len(some), some.among) == (10, 30)
    assert [some.rows[row] for row in some.order] == [
        examples.rows[row] for row in examples.order[:10]
    ]
    assert examples.sample(30) is examples and examples.among == 0
