"""Two captures compared, and what their rows say: closed forms, symmetry, numbers that are none."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from statsmodels.stats.contingency_tables import mcnemar

from hgviz import examples
from hgviz.analysis.comparison import compare, compare_answers, most_alike
from hgviz.analysis.metrics import NEAR_ZERO, effective_ranks
from hgviz.analysis.statistics import Answers, paired_difference, ratio_interval
from hgviz.analysis.tokens import Layout
from hgviz.core import HeadId, HgvizError, Prompt
from hgviz.maps import Factors, LazyMap
from tests.analysis.planting import plant
from tests.making import byte_prompt, make_capture

TEXT = "Every head looks somewhere else. " * 4


def dense(weights, prompt=None, signed=False, **keys):
    """A capture of one layer from its weights (heads, n, n)."""
    prompt = prompt or byte_prompt("abcdefghijklmnopqrstuvwxyz"[: np.shape(weights)[1]])
    return replace(plant(prompt, [np.asarray(weights)], causal=False, signed=signed), **keys)


def rows_of(random, *shape):
    found = random.random(shape) ** 3
    return found / found.sum(-1, keepdims=True)


def reference(a, b, exists):
    """The numbers of whole maps (rows, keys), by other means."""
    a, b = a.astype(float), b.astype(float)
    apart, sizes = np.abs(a - b), np.abs([a, b])
    shares = sizes / sizes.sum(2, keepdims=True)
    logs = np.log(np.where(shares > 0, shares, 1))
    top = sizes.max(2)
    highest = top.max(0)
    return {
        "largest": apart.max(),
        "mean": apart.sum() / exists.sum(),
        "relative_largest": (apart.max(1) / highest).max(),
        "relative_mean": (apart.sum(1) / exists.sum(1) / highest).mean(),
        "js": jensenshannon(*shares, base=2, axis=1).mean(),
        "entropy": -(shares * logs).sum(2).mean(1),
        "near_zero": [
            ((one < NEAR_ZERO * most[:, None]) & exists).sum() / exists.sum()
            for one, most in zip(sizes, top, strict=True)
        ],
        "negative": [(np.maximum(-x, 0).sum(1) / np.abs(x).sum(1)).mean() for x in (a, b)],
    }


@pytest.mark.parametrize("kind", ["softmax", "signed", "windowed"])
def test_every_head_agrees_with_its_whole_maps(kind):
    options = {} if kind == "softmax" else {kind: True}
    one, other = (make_capture(TEXT, heads=2, seed=seed, **options) for seed in (0, 1))
    found = compare(one, other)
    assert [head.head for head in found.heads] == [*one.spec.heads]
    assert found.only_a == found.only_b == found.notes == ()
    for head in found.heads:
        layer = head.head.layer
        maps = [side.maps[layer] for side in (one, other)]
        real = Layout(one, layer, {}).real
        a, b = (known.read(head.head.head)[real] for known in maps)
        exists = maps[0].factors.rule.sees(*map(np.arange, maps[0].shape[1:]))[real]
        hand = reference(a, b, exists | (a != 0) | (b != 0))
        for name, value in hand.items():
            assert getattr(head, name) == pytest.approx(value, abs=1e-6), (kind, head.head, name)
        if len(a) <= 256:
            ranks = effective_ranks(np.stack([a, b]))
            assert head.rank == pytest.approx(tuple(ranks), abs=1e-6)


def test_the_most_alike_head_is_found_wherever_the_other_model_has_it():
    random = np.random.default_rng(5)
    own, other = rows_of(random, 3, 9, 9), rows_of(random, 2, 9, 9)
    a, b = dense(own), dense(np.stack([*other, own[2]]))
    assert most_alike(a, b, HeadId(0, 2)) == (HeadId(0, 2), pytest.approx(0, abs=1e-6))
    found, distance = most_alike(a, b, HeadId(0, 0))
    apart = [jensenshannon(own[0], one, base=2, axis=1).mean() for one in (*other, own[2])]
    assert found.head == np.argmin(apart) and distance == pytest.approx(min(apart), abs=1e-6)
    assert most_alike(a, replace(b, maps=(None,)), HeadId(0, 0)) is None
    assert most_alike(replace(a, maps=(None,)), b, HeadId(0, 0)) is None


def test_weight_on_what_the_other_has_not_is_told():
    text = "ab"
    cls = Prompt(text, np.arange(3), ("[CLS]", "a", "b"), np.array([[-1, -1], [0, 1], [1, 2]]))
    weights = np.array([[[1, 0, 0], [0.5, 0.5, 0], [0.9, 0.05, 0.05]]])
    other = np.array([[[1, 0], [0.5, 0.5]]])
    (one,) = compare(dense(weights, cls), dense(other, byte_prompt(text))).heads
    assert (one.rows, one.columns) == (2, 2)
    assert one.outside == pytest.approx((0.7, 0.0))
    assert one.largest == pytest.approx(0.5)
    assert one.js == pytest.approx(0, abs=1e-6)  # what is left has the same shares


def test_what_only_one_side_has_is_never_dropped_in_silence():
    one = make_capture(TEXT)
    layers = tuple(
        replace(layer, heads=layer.heads[1:], activations=layer.activations[1:])
        if layer.index == 2
        else layer
        for layer in one.spec.layers
    )
    maps = list(one.maps)
    factors = one.maps[2].factors
    rule = factors.rule.select((1, 2, 3, 4, 5))
    parts = (factors.q[1:], factors.k[1:], factors.stat[1:], rule)
    kept = Factors(*parts, factors.proof_rows, factors.proof_values[1:])
    maps[2], maps[4] = LazyMap(kept, (1, 2, 3, 4, 5)), None
    other = replace(one, spec=replace(one.spec, layers=layers), maps=tuple(maps), logits=None)
    found = compare(one, other)
    gone = (HeadId(2, 0), *(HeadId(4, head) for head in range(6)))
    assert found.only_a == gone and found.only_b == ()
    assert {head.head for head in found.heads} == {*one.spec.heads} - {*gone}
    assert all(head.largest == 0 for head in found.heads)
    assert "the capture of B was interrupted: layers 4 are missing" in found.notes
    assert "B has no logits" in found.notes and found.logits is None


def test_levels_that_never_meet_are_named():
    weights = rows_of(np.random.default_rng(0), 1, 100, 100)
    prompt = byte_prompt("ab" * 100)
    ends = np.arange(100) * 2
    sides = [
        replace(
            dense(weights, prompt),
            spans=(np.stack([np.maximum(ends - back, 0), ends + 2 - back], 1),),
        )
        for back in (0, 1)
    ]
    found = compare(*sides)
    assert found.heads == found.only_a == found.only_b == ()
    assert found.notes[0] == "A and B have no positions in common in middle.0"


def test_rows_that_lie_far_apart_or_are_many_are_read_in_parts(monkeypatch):
    """A text put into the middle of another, and pieces of several tokens on one side."""
    monkeypatch.setattr("hgviz.analysis.comparison.MAX_ROWS", 16)
    random, word, size = np.random.default_rng(0), "abcdefghi ", 5
    short, long = word * 8, word * 4 + "x" * 99 + " " + word * 4
    starts = np.arange(0, 80, size)
    spans = np.stack([starts, starts + size], 1)
    pieces = tuple(short[a:b] for a, b in spans)
    prompt = Prompt(short, np.arange(len(spans)), pieces, spans)
    a, b = rows_of(random, 1, len(spans), len(spans)), rows_of(random, 1, 180, 180)
    (one,) = compare(dense(a, prompt), dense(b, byte_prompt(long))).heads
    kept = [*range(39), *range(139, 180)]  # a word has the space before it
    count = len(spans)
    merged = b[0][np.ix_(kept, kept)].reshape(count, size, count, size).mean(1).sum(-1)
    hand = reference(a[0], merged, np.ones((count, count), bool))
    assert (one.rows, one.columns) == (count, count)
    for name in ("largest", "mean", "js", "entropy"):
        assert getattr(one, name) == pytest.approx(hand[name], abs=1e-6), name


def test_rows_that_are_no_numbers_are_left_out_and_told():
    weights = rows_of(np.random.default_rng(0), 2, 4, 4)
    other = weights.copy()
    other[1, 2, 1] = np.nan
    found = compare(dense(weights), dense(other))
    assert (found.heads[1].rows, found.heads[1].broken) == (3, 1)
    assert found.heads[1].largest == 0 and found.heads[1].rank_rows == 3
    assert "rows with NaN or infinite weights are left out in 0.1" in found.notes
    nothing = compare(dense(weights), dense(other * np.nan))
    json.dumps(nothing.to_dict(), allow_nan=False)
    assert nothing.to_dict()["heads"][0]["largest"] is None


def test_texts_without_a_common_token_are_refused_in_a_line():
    weights = rows_of(np.random.default_rng(0), 1, 3, 3)
    pair = dense(weights, byte_prompt("abc")), dense(weights, byte_prompt("xyz"))
    with pytest.raises(HgvizError, match="no token in common"):
        compare(*pair)


def test_logits_are_compared_where_both_speak_of_one_token():
    random = np.random.default_rng(0)
    weights = rows_of(random, 1, 6, 6)
    one, other = random.normal(size=(2, 6, 256)).astype(np.float32)
    sides = [
        dense(weights, byte_prompt(text), logits=given)
        for text, given in (("ab cde", one), ("ab cdx", other))
    ]
    found = compare(*sides).logits
    assert (found.places, found.of) == (2, 6)  # the words differ from the space on
    assert found.largest == pytest.approx(np.abs(one[:2] - other[:2]).max())
    assert found.mean == pytest.approx(np.abs(one[:2] - other[:2]).mean())
    classes = [
        replace(side, spec=replace(side.spec, goal="classes", labels=("no", "yes")),
                logits=np.array(given))
        for side, given in zip(sides, ([1.0, 2.0], [3.0, 2.5]), strict=True)
    ]  # fmt: skip
    found = compare(*classes).logits
    assert (found.largest, found.same, found.of) == (2, 0, 1)
    assert compare(sides[0], classes[1]).notes[-1].endswith("different goals, next and classes")


def test_of_longer_maps_rows_are_spread_and_the_output_says_so(monkeypatch):
    monkeypatch.setattr("hgviz.analysis.metrics.CELLS", 3 * 256 * 1024)
    random, prompt = np.random.default_rng(0), byte_prompt("ab " * 341 + ".")
    sides = [dense(rows_of(random, 1, 1024, 1024), prompt) for _ in range(2)]
    found = compare(*sides)
    assert (found.heads[0].rows, found.heads[0].of) == (768, 1024)
    assert "at most 768 evenly spaced rows are measured of 1 long maps" in found.notes
    (every,) = compare(*sides, every_row=True).heads
    assert (every.rows, every.of) == (1024, 1024)


# --- rows -----------------------------------------------------------------------------------------


def pair(a, b):
    """One head that weighs as a beside one that weighs as b."""
    sides = (dense(weights[None], signed=bool((weights < 0).any())) for weights in (a, b))
    (one,) = compare(*sides).heads
    return one


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 7, 300]))
def test_rows_agree_with_another_implementation_and_do_not_care_which_is_a(seed, size):
    random = np.random.default_rng(seed)
    a, b = (random.normal(size=(2, size, size)) ** random.integers(1, 4)).astype(np.float32)
    prompt = byte_prompt("ab" * (size // 2) + "c" * (size % 2))
    sides = [dense(weights[None], prompt, signed=True) for weights in (a, b)]
    (there,), (back,) = compare(*sides).heads, compare(*sides[::-1]).heads
    for name, value in reference(a, b, np.ones(a.shape, bool)).items():
        assert getattr(there, name) == pytest.approx(value, abs=2e-6), name
        turned = getattr(back, name)
        turned = turned[::-1] if isinstance(turned, tuple) else turned
        assert getattr(there, name) == turned


# --- answers --------------------------------------------------------------------------------------

LABELS = ("no", "yes", "maybe")


def classes(wanted, labels=LABELS[:2]):
    texts = [
        Prompt(f"text {i}", np.array([i]), ("a",), np.array([[0, 1]])) for i in range(len(wanted))
    ]
    return examples.classification_examples(texts, wanted, labels, None)


def answers(given, loss=None):
    loss = np.ones(len(given)) if loss is None else loss
    return Answers(np.asarray(loss, np.float32), np.asarray(given, np.int64))


def of_classes(wanted, a, b, **labels):
    """The answers a and b of two models to the same rows."""
    asked = classes(wanted), classes(wanted, **labels)
    return compare_answers(asked, (answers(a), answers(b)), LABELS.__getitem__)


def test_classes_are_paired_row_by_row_whichever_side_is_a():
    wanted, a, b = np.random.default_rng(0).integers(0, 2, (3, 200))
    found, back = of_classes(wanted, a, b), of_classes(wanted, b, a)
    right, wins = a == wanted, b == wanted
    assert found.a.score.value == right.mean() and found.b.score.value == wins.mean()
    assert (found.a_only, found.b_only) == ((right & ~wins).sum(), (wins & ~right).sum())
    value, low, high = found.difference
    assert value == pytest.approx(wins.mean() - right.mean())
    assert (low, high) == paired_difference(found.a_only, found.b_only, 200)
    assert back.difference == pytest.approx((-value, -high, -low))
    table = [[0, found.a_only], [found.b_only, 0]]
    assert found.p == back.p == pytest.approx(mcnemar(table, exact=True).pvalue)
    assert found.agreement == back.agreement == (a == b).mean()
    assert len(found.differing) == (a != b).sum()
    answer = found.differing[0]
    at = answer.example
    assert (answer.text, answer.wanted) == (f"text {at}", LABELS[wanted[at]])
    assert (answer.a, answer.b) == (LABELS[a[at]], LABELS[b[at]])
    assert answer.right == ("a" if right[at] else "b")
    same = of_classes(wanted, a, a)
    assert same.difference[1] < same.difference[0] == 0 < same.difference[2]
    assert (same.agreement, same.p, same.differing) == (1, 1, ())


def test_tokens_are_paired_and_bits_have_an_interval_over_windows():
    random, text = np.random.default_rng(0), "to be or not to be "
    asked = examples.next_token_examples([byte_prompt(text * 20)], None, 50)
    losses = random.random((2, len(asked.wanted)))
    given = random.integers(0, 256, losses.shape)
    given[0, :9] = asked.wanted[:9]
    sides = tuple(answers(one, loss) for one, loss in zip(given, losses, strict=True))
    found = compare_answers((asked, asked), sides, chr)
    value, low, high = found.difference
    assert value == pytest.approx(found.b.score.value - found.a.score.value, abs=1e-6)
    more = np.add.reduceat(losses[1] - losses[0], asked.places[:-1]) / np.log(2)
    sizes = np.array([row.size for row in asked.rows])
    assert (value, low, high) == pytest.approx(ratio_interval(more, sizes), abs=1e-5)
    first, fourth = found.differing[0], found.differing[3]
    assert (first.example, first.place, first.right) == (0, 0, "a")
    assert (first.text, first.wanted, first.a) == (text[0], text[1], text[1])
    assert (fourth.text, fourth.wanted) == (text[:4], text[4])
    other = examples.next_token_examples([byte_prompt(text * 20)], None, 60)
    found = compare_answers((asked, other), (answers(asked.wanted), answers(other.wanted)), chr)
    assert found.difference is None and found.p is None and found.differing == ()
    assert found.notes == ("predictions are not paired: the tokens differ",)
    assert found.to_dict()["differing"] is None
