"""Answers of two models to the same data, paired."""

import json

import numpy as np
import pytest

from hgviz import examples
from hgviz.analysis.comparison import LISTED_EXAMPLES, compare_answers
from hgviz.analysis.statistics import Answers, paired_difference, ratio_interval
from hgviz.core import Prompt
from tests.making import byte_prompt

LABELS = ("no", "yes")


def classes(wanted, labels=LABELS):
    prompts = [
        Prompt(f"text {i}", np.array([i]), ("a",), np.array([[0, 1]])) for i in range(len(wanted))
    ]
    return examples.classification_examples(prompts, wanted, labels, None)


def answers(given, loss=None):
    given = np.asarray(given, np.int64)
    return Answers(np.asarray(np.ones(len(given)) if loss is None else loss, np.float32), given)


def test_classes_are_paired_row_by_row():
    from statsmodels.stats.contingency_tables import mcnemar

    random = np.random.default_rng(0)
    wanted, a, b = random.integers(0, 2, (3, 200))
    found = compare_answers((classes(wanted),) * 2, (answers(a), answers(b)), LABELS.__getitem__)
    right, wins = a == wanted, b == wanted
    assert found.a.score.value == right.mean() and found.b.score.value == wins.mean()
    assert (found.a_only, found.b_only) == ((right & ~wins).sum(), (wins & ~right).sum())
    value, low, high = found.difference
    assert value == pytest.approx(wins.mean() - right.mean())
    assert (low, high) == paired_difference(found.a_only, found.b_only, 200)
    table = [[0, found.a_only], [found.b_only, 0]]
    assert found.p == pytest.approx(mcnemar(table, exact=True).pvalue)
    assert found.agreement == (a == b).mean()
    assert len(found.differing) == (a != b).sum()
    one = found.differing[0]
    assert (one.text, one.wanted) == (f"text {one.example}", LABELS[wanted[one.example]])
    assert (one.a, one.b) == (LABELS[a[one.example]], LABELS[b[one.example]])
    assert one.right == ("a" if right[one.example] else "b")


def test_a_model_does_not_differ_from_itself():
    random = np.random.default_rng(0)
    wanted, given = random.integers(0, 2, (2, 50))
    found = compare_answers((classes(wanted),) * 2, (answers(given),) * 2, LABELS.__getitem__)
    assert found.difference[0] == 0 and found.difference[1] < 0 < found.difference[2]
    assert (found.agreement, found.p, found.differing) == (1, 1, ())


def test_sides_change_places():
    random = np.random.default_rng(1)
    wanted, a, b = random.integers(0, 2, (3, 60))
    asked = (classes(wanted),) * 2
    there = compare_answers(asked, (answers(a), answers(b)), LABELS.__getitem__)
    back = compare_answers(asked, (answers(b), answers(a)), LABELS.__getitem__)
    assert there.p == back.p and there.agreement == back.agreement
    assert there.difference == pytest.approx(
        (-back.difference[0], -back.difference[2], -back.difference[1])
    )


def test_classes_in_another_order_are_the_same_classes():
    wanted = np.array([0, 1, 1, 0])
    turned = classes(1 - wanted, LABELS[::-1])
    found = compare_answers(
        (classes(wanted), turned), (answers(wanted), answers(1 - wanted)), LABELS.__getitem__
    )
    assert (found.agreement, found.b.score.value) == (1, 1)


def test_a_class_that_only_one_model_knows_is_said_to_be_another():
    wanted = np.array([0, 1])
    other = classes(wanted, ("no", "yes", "maybe"))
    found = compare_answers(
        (classes(wanted), other), (answers([0, 1]), answers([0, 2])), LABELS.__getitem__
    )
    assert found.differing[0].b == "another class"


def test_those_that_one_side_gets_right_come_first_and_the_list_is_short():
    labels, count = ("no", "yes", "maybe"), 60
    wanted = np.zeros(count, np.int64)
    a, b = np.full(count, 1), np.full(count, 2)
    a[50:] = 0
    found = compare_answers(
        (classes(wanted, labels),) * 2, (answers(a), answers(b)), labels.__getitem__
    )
    assert [one.example for one in found.differing[:11]] == [*range(50, 60), 0]
    facts = found.to_dict()
    assert len(facts["examples"]) == LISTED_EXAMPLES and facts["differing"] == count
    assert len(found.to_dict(None)["examples"]) == count


def test_tokens_are_paired_and_bits_have_an_interval_over_windows():
    random = np.random.default_rng(0)
    asked = examples.next_token_examples([byte_prompt("to be or not to be " * 20)], None, 50)
    places = len(asked.wanted)
    losses = random.random((2, places))
    given = random.integers(0, 256, (2, places))
    given[0, :9] = asked.wanted[:9]
    sides = [answers(one, loss) for one, loss in zip(given, losses, strict=True)]
    found = compare_answers((asked, asked), tuple(sides), chr)
    bits = found.b.score.value - found.a.score.value
    value, low, high = found.difference
    assert value == pytest.approx(bits, abs=1e-6) and low < value < high
    more = np.add.reduceat(losses[1] - losses[0], asked.places[:-1]) / np.log(2)
    sizes = [row.size for row in asked.rows]
    assert (low, high) == pytest.approx(
        ratio_interval(np.array(more), np.array(sizes))[1:], abs=1e-5
    )
    first = found.differing[0]
    assert (first.example, first.place, first.right) == (0, 0, "a")
    text = "to be or not to be "
    assert (first.text, first.wanted, first.a) == (text[0], text[1], text[1])
    fourth = found.differing[3]
    assert fourth.text == text[:4] and fourth.wanted == text[4]


def test_answers_to_other_tokens_are_not_paired():
    text = "to be or not to be " * 20
    one, other = (
        examples.next_token_examples([byte_prompt(text)], None, size) for size in (50, 60)
    )
    count = len(one.wanted)
    sides = answers(one.wanted), answers(other.wanted)
    found = compare_answers((one, other), sides, chr)
    assert count == len(other.wanted)
    assert found.difference is None and found.p is None and found.differing == ()
    assert found.notes == ("answers are not paired: the tokens are not the same",)
    assert found.to_dict()["differing"] is None


def test_one_window_has_no_interval_and_the_facts_are_json():
    asked = examples.next_token_examples([byte_prompt("to be or not")])
    count = len(asked.wanted)
    found = compare_answers((asked, asked), (answers(asked.wanted), answers([0] * count)), chr)
    facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert facts["difference"] == {"value": 0.0, "low": None, "high": None}
