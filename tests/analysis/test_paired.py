"""Answers beside those of another model or of fewer heads, in parts, and bits of texts."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from hgviz import examples
from hgviz.analysis.comparison import LISTED_EXAMPLES, compare_answers
from hgviz.analysis.evaluation import Answers
from hgviz.analysis.importance import importance
from hgviz.analysis.paired import paired, try_heads
from hgviz.analysis.slices import Slice, levels, of_examples, slices, table
from hgviz.analysis.statistics import paired_difference, ratio_interval
from hgviz.analysis.surprise import bits_per_byte
from hgviz.core import HeadId, Prompt
from hgviz.examples import classification_examples, next_token_examples
from tests.gui.kinds import bert, classifier, gpt2, translator
from tests.making import byte_prompt, make_capture, make_spec
from tests.progress import steps_of
from tests.studying import make_study

OFF = frozenset({HeadId(0, 1)})


def texts(count):
    nowhere = np.array([[0, 1]])
    prompts = [Prompt("a", np.array([number]), ("a",), nowhere) for number in range(count)]
    return classification_examples(
        prompts, [number % 2 for number in range(count)], ("no", "yes"), None
    )


def answering(given, losses=0.5):
    """A model that gives each text, known by its only id, a class."""

    def answer(batch):
        return np.full(len(batch.rows), losses, np.float32), given[batch.ids[:, 0]]

    return answer


@given(st.integers(1, 400), st.integers(0, 2**32 - 1))
def test_lost_and_won_are_counted_text_by_text(count, seed):
    random, examples = np.random.default_rng(seed), texts(count)
    before, now = random.integers(0, 2, (2, count))
    answered = answering(before), answering(now, 0.75)
    found, whole, answers = try_heads(examples, examples.blocks(), *answered, OFF)
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
    live = [
        step.value
        for step in steps_of(
            try_heads, examples, examples.blocks(), answering(same), answering(same), OFF
        )
    ]
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
    which = of_examples(examples, make_spec((1,), 2))
    live = [
        step.value
        for step in steps_of(
            try_heads, examples, examples.blocks(), answering(before), answering(now), OFF, which
        )
    ]
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


# --- two models -----------------------------------------------------------------------------------


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
    facts = found.facts()
    assert len(facts["examples"]) == LISTED_EXAMPLES and facts["differing"] == count
    assert len(found.facts(None)["examples"]) == count


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
    assert found.facts()["differing"] is None


def test_one_window_has_no_interval_and_the_facts_are_json():
    asked = examples.next_token_examples([byte_prompt("to be or not")])
    count = len(asked.wanted)
    found = compare_answers((asked, asked), (answers(asked.wanted), answers([0] * count)), chr)
    facts = json.loads(json.dumps(found.facts(), allow_nan=False))
    assert facts["difference"] == {"value": 0.0, "low": None, "high": None}


# --- parts of a study -----------------------------------------------------------------------------


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
            assert one.change[1:] == paired_difference(one.lost, one.won, one.n)
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
    return next_token_examples([prompt], None, length)


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
    examples = next_token_examples(
        [Prompt(words, np.array([7, 8, 9]), ("so", " 12", " up"), spans)], None
    )
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


# --- bits per byte --------------------------------------------------------------------------------


def nats(logits, ids):
    """What torch says all tokens but the first cost."""
    rows = torch.tensor(np.array(logits[:-1]), dtype=torch.float64)
    return F.cross_entropy(rows, torch.tensor(np.array(ids[1:])), reduction="sum").item()


def test_of_bytes_it_is_the_mean_over_all_but_the_first():
    capture = make_capture("The hourglass was used at sea. " * 20)  # more than a block of rows
    wanted = nats(capture.logits, capture.prompt.ids) / np.log(2) / (len(capture.prompt) - 1)
    assert bits_per_byte(capture) == pytest.approx(wanted, rel=1e-12)


def test_characters_of_several_bytes_count_all_of_them():
    capture = make_capture("한국어 🙂 é")
    size = len("한국어 🙂 é".encode()) - 1
    wanted = nats(capture.logits, capture.prompt.ids) / np.log(2) / size
    assert bits_per_byte(capture) == pytest.approx(wanted, rel=1e-12)


def test_of_word_pieces_it_counts_the_bytes_they_stand_for():
    capture = gpt2()
    prompt = capture.prompt
    size = len(prompt.text[prompt.spans[0, 1] :].encode())
    wanted = nats(capture.logits, prompt.ids) / np.log(2) / size
    assert bits_per_byte(capture) == pytest.approx(wanted, rel=1e-12)


def test_of_two_texts_it_is_the_decoder_s():
    capture = translator()
    assert capture.target is not None
    target = capture.target
    real = target.spans[1:][target.spans[1:, 0] >= 0]
    size = len(target.text[: real[:, 1].max()].encode())
    wanted = nats(capture.logits, target.ids) / np.log(2) / size
    assert bits_per_byte(capture) == pytest.approx(wanted, rel=1e-12)


def test_there_is_none_where_nothing_was_foretold():
    assert bits_per_byte(make_capture("The sea.", logits=False)) is None
    assert bits_per_byte(bert()) is None and bits_per_byte(classifier()) is None
    assert bits_per_byte(make_capture("a")) is None
    one = make_capture("The sea.")
    assert bits_per_byte(replace(one, logits=one.logits[:3])) is None
    broken = np.array(one.logits)
    broken[2] = np.nan
    assert bits_per_byte(replace(one, logits=broken)) is None
