"""Heads of models that are no Hourglass: two texts, slots, signed weights, special tokens."""

from dataclasses import replace

import numpy as np
import pytest

from hgviz.analysis.metrics import applicable
from hgviz.analysis.roles import notable_heads, rank, roles, top_keys
from hgviz.analysis.tokens import TokenReading
from hgviz.core import HeadId, Layer, Level, Selection, slot_prompt
from hgviz.tasks.evidence import role_evidence, role_sentence
from tests.analysis.planting import Planted, key_of, letters, pieces, plant, translated

SOURCE = (
    "the", "old", "bridge", "was", "too", "low", "for", "the", "ships", "that", "came", "up", "the",
    "river", "in", "the", "spring",
)  # fmt: skip
TARGET = (
    "in", "spring", "the", "ships", "on", "the", "river", "were", "too", "high", "for", "that",
    "low", "bridge",
)  # fmt: skip


def text(words):
    return pieces(*(f" {word}" for word in words))


def tagged(*parts):
    """Word pieces of parts such as [CLS], film, ##s; special ones stand for no characters."""
    texts = ["" if part[0] == "[" else part.removeprefix("##") for part in parts]
    gaps = [" " * (part[0] != "[" and not part.startswith("##")) for part in parts]
    ends = np.cumsum([len(gap + one) for gap, one in zip(gaps, texts, strict=True)])
    spans = np.stack([ends - [len(one) for one in texts], ends], axis=1)
    spans[[part[0] == "[" for part in parts]] = -1
    whole = "".join(gap + one for gap, one in zip(gaps, texts, strict=True))
    ids = np.array([sorted(set(parts)).index(part) for part in parts], np.int64)
    return replace(letters(whole), ids=ids, pieces=tuple(parts), spans=spans)


def mixed(wanted, n, m=None, share=0.7):
    """(n, m): `share` of each row's weight evenly on the wanted keys, the rest evenly."""
    m = m or n
    out = np.full((n, m), 1 / m)
    for i in range(n):
        if keys := list(wanted(i)):
            out[i] *= 1 - share
            out[i, keys] += share / len(keys)
    return out


def measured(capture, layer=0, head=0):
    return roles(capture)[HeadId(layer, head)]


# --- two texts ------------------------------------------------------------------------------------


def crossing(wanted):
    """What is found of a head of cross-attention that looks where wanted(target token) says."""
    n, m = len(TARGET), len(SOURCE)
    weights = np.stack([mixed(wanted, n, m), np.full((n, m), 1 / m)])
    capture = translated(text(SOURCE), text(TARGET), {"decoder.0.cross": weights})
    layer = next(one.index for one in capture.spec.layers if one.name == "decoder.0.cross")
    return capture, measured(capture, layer)


def same_place(i):
    n, m = len(TARGET), len(SOURCE)
    return [j for j in range(m) if j * n < (i + 1) * m and (j + 1) * n > i * m]


@pytest.mark.parametrize(
    ("finder", "wanted", "sentence"),
    [
        ("same place", same_place, "Follows the source in order"),
        ("same token", lambda i: [j for j, word in enumerate(SOURCE) if word == TARGET[i]],
         "Looks at the same token of the source"),
        ("first token", lambda i: [0], "Rests on the first token of the source"),
        ("last token", lambda i: [len(SOURCE) - 1], "Rests on the last token of the source"),
    ],
)  # fmt: skip
def test_a_head_between_two_texts_is_named_by_what_is_in_both(finder, wanted, sentence):
    _, found = crossing(wanted)
    if finder == "same token":  # the two texts number their words apart: join them
        known = sorted({*SOURCE, *TARGET})
        ids = [np.array([known.index(one) for one in words]) for words in (SOURCE, TARGET)]
        capture, _ = crossing(wanted)
        source, target = (
            replace(one, ids=own)
            for one, own in zip((capture.prompt, capture.target), ids, strict=True)
        )
        capture = replace(capture, prompt=source, target=target)
        found = measured(capture, 3)
    assert (key_of(found), role_sentence(found)) == (finder, sentence)


def test_between_two_texts_nothing_is_said_of_distances():
    capture, found = crossing(same_place)
    absent = {"distance", "previous", "same", "next", "induction", "same token"}
    assert not absent & set(found.metrics)
    assert {"focus", "entropy", "first", "last", "diagonal"} <= set(found.metrics)
    assert found.metrics["diagonal"] > 0.7
    facts = roles(capture)
    assert rank("distance", found.head, facts) == (0, 0)
    assert facts[HeadId(2, 0)].metrics["distance"] > 0  # the decoder's own text has some
    assert "diagonal" not in facts[HeadId(2, 0)].metrics
    assert set(applicable(one.metrics for one in facts.values())) > set(found.metrics)
    assert notable_heads(facts)[-1].head == found.head


def test_a_key_that_all_rows_rest_on_is_named_by_its_word():
    _, found = crossing(lambda i: [SOURCE.index("ships")])
    assert (found.role, role_sentence(found)) == ("one token", "Rests on “ships”")
    assert found.most == SOURCE.index("ships") and found.most_share > 0.7
    assert "over all rows, goes there" in role_evidence(found)


def test_states_of_an_encoder_are_called_states_and_have_no_words():
    n, m = len(TARGET), 9
    weights = np.stack([mixed(lambda i: [0], n, m)] * 2)
    states = replace(slot_prompt(m), pieces=tuple(f"state {i}" for i in range(m)),
                     states=np.zeros((m, 4), np.float32))  # fmt: skip
    capture = translated(states, text(TARGET), {"decoder.0.cross": weights}, encoder=0)
    found = measured(capture, 1)
    assert role_sentence(found) == "Rests on the first state of the source"
    weights = np.stack([mixed(lambda i: [4], n, m)] * 2)
    capture = translated(states, text(TARGET), {"decoder.0.cross": weights}, encoder=0)
    assert role_sentence(measured(capture, 1)) == "Rests on “state 4”"


def test_the_keys_that_a_token_of_the_target_looks_at_are_tokens_of_the_source():
    capture, _ = crossing(lambda i: [i])
    assert top_keys(capture, Selection(3, 0, 2))[0][:2] == (2, 2)
    assert top_keys(capture, Selection(3, 0))[0][:2] == (len(TARGET) - 1, len(TARGET) - 1)


def test_padding_of_the_source_is_not_looked_at():
    capture, _ = crossing(same_place)
    mask = np.arange(len(SOURCE)) < 12
    one = capture.maps[3].weights * mask
    maps = list(capture.maps)
    maps[3] = Planted(one / one.sum(-1, keepdims=True))
    source = replace(capture.prompt, attention_mask=mask)
    found = measured(replace(capture, prompt=source, maps=tuple(maps)), 3, 1)
    assert found.role == "everything"  # even over what there is


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 7), (7, 1), (2, 2)])
def test_the_shortest_texts_have_no_roles(n, m):
    capture = translated(text(SOURCE[:n]), text(TARGET[:m]))
    for one in roles(capture).values():
        assert key_of(one) == "" and role_sentence(one)
        assert np.isfinite(list(one.metrics.values())).all()
    if n == 1:
        found = roles(capture)[HeadId(3, 0)]
        assert found.role == "one key" and role_evidence(found).startswith("there is a single key")


# --- a projected sequence -------------------------------------------------------------------------


def slotted(weights, prompt):
    """One layer whose keys are slots."""
    count = weights.shape[-1]
    layer = Layer(0, "middle.0", "self", 0, 1, (0,), ("softmax",), False)
    base = plant(prompt, [np.eye(len(prompt))[None]], causal=False)
    levels = (Level(0), Level(1, sequence="slots"))
    at = np.arange(count)
    return replace(
        base, spec=replace(base.spec, levels=levels, layers=(layer,)), maps=(Planted(weights),),
        spans=(base.spans[0], np.stack([at, at + 1], axis=1)),
    )  # fmt: skip


def test_slots_are_no_words_and_have_no_places():
    capture = slotted(mixed(lambda i: [2], len(SOURCE), 5)[None], text(SOURCE))
    found = measured(capture)
    assert set(found.metrics) == {"focus", "entropy"}
    assert (found.role, role_sentence(found)) == ("one slot", "Rests on “slot 2”")
    even = slotted(np.full((1, len(SOURCE), 5), 0.2), text(SOURCE))
    assert measured(even).role == "everything"


# --- word pieces and special tokens ---------------------------------------------------------------

PARTS = (
    "[CLS]", "the", "un", "##believ", "##able", "story", "of", "a", "fisher", "##man", "[SEP]",
    "the", "fisher", "##man", "never", "tell", "##s", "the", "story", "[SEP]",
)  # fmt: skip
LENGTH = len(PARTS)


@pytest.mark.parametrize(
    ("finder", "wanted", "role"),
    [
        ("first token", lambda i: [0], "first token"),
        ("separator", lambda i: [10, 19], "separators"),
        ("special", lambda i: [0, 10, 19], "special tokens"),
        ("last token", lambda i: [19], "last token"),
        ("previous token", lambda i: [i - 1] if i else [], "previous token"),
        ("next token", lambda i: [i + 1] if i + 1 < LENGTH else [], "next token"),
        ("neighbours", lambda i: [j for j in range(i - 2, i + 3) if 0 <= j < LENGTH],
         "its neighbours"),
        ("same elsewhere", lambda i: [j for j in range(LENGTH) if PARTS[j] == PARTS[i] and j != i],
         "the same token elsewhere"),
    ],
)  # fmt: skip
def test_word_pieces_are_tokens_and_special_ones_are_told_apart(finder, wanted, role):
    found = measured(plant(tagged(*PARTS), [mixed(wanted, LENGTH)[None]], causal=False))
    assert (key_of(found), found.role) == (finder, role)


def test_the_other_text_of_a_pair_is_told():
    kinds = np.repeat([0, 1], [len(SOURCE), len(TARGET)])
    prompt = replace(text(SOURCE + TARGET), token_type_ids=kinds)
    wanted = lambda i: np.flatnonzero(kinds != kinds[i])  # noqa: E731
    found = measured(plant(prompt, [mixed(wanted, len(kinds), share=0.9)[None]], causal=False))
    assert found.role == "the other text"


def test_confidence_is_told_with_and_without_special_tokens():
    head = mixed(lambda i: [10, 19], LENGTH, share=0.8)
    metrics = measured(plant(tagged(*PARTS), [head[None]], causal=False)).metrics
    assert metrics["focus"] == pytest.approx(0.41)
    assert metrics["words"] == pytest.approx(0.01)
    assert metrics["separators"] == pytest.approx(0.82)
    plain = measured(plant(text(SOURCE), [np.eye(len(SOURCE))[None]], causal=False)).metrics
    assert not {"words", "separators"} & set(plain)


@pytest.mark.parametrize(
    ("prompt", "unit"),
    [
        (letters("ab"), "letter"),
        (tagged("[CLS]", "a", "[SEP]"), "token"),
        (tagged("[CLS]", "이", "##다", "[SEP]"), "token"),
        (tagged("a", "##b"), "token"),
        (replace(letters("ab"), spans=np.full((2, 2), -1)), "token"),
        (slot_prompt(3), "slot"),
    ],
)
def test_no_word_piece_is_called_a_letter(prompt, unit):
    assert TokenReading(prompt).unit == unit


def test_special_tokens_are_known_by_name_where_there_is_no_text():
    bare = replace(tagged(*PARTS), text="", spans=np.full((LENGTH, 2), -1))
    assert np.flatnonzero(TokenReading(bare).special).tolist() == [0, 10, 19]
    assert np.flatnonzero(TokenReading(bare).separator).tolist() == [10, 19]
    several = TokenReading(tagged("[CLS]", "[CLS]", "[CLS]", "a", "[SEP]"))
    assert np.flatnonzero(several.opening).tolist() == [0, 1, 2]
    padded = replace(tagged("[CLS]", "a", "[SEP]", "[PAD]"), attention_mask=np.arange(4) < 3)
    assert np.flatnonzero(TokenReading(padded).separator).tolist() == [2]
    assert TokenReading(padded).end == 2


# --- signed weights -------------------------------------------------------------------------------


def test_heads_of_one_layer_speak_each_of_its_own_sign():
    n = len(SOURCE)
    softmax = mixed(lambda i: [0], n)
    signed = np.where(np.arange(n) == 0, 0.4, -0.02) * np.ones((n, n))
    capture = plant(text(SOURCE), [np.stack([softmax, signed])], causal=False, signed=True)
    layer = replace(capture.spec.layers[0], activations=("softmax", "ymish"))
    capture = replace(capture, spec=replace(capture.spec, layers=(layer,)))
    one, other = (measured(capture, 0, head) for head in (0, 1))
    assert (key_of(one), key_of(other)) == ("first token", "first token")
    assert "of its weight," in role_evidence(one) and "above 0" not in role_evidence(one)
    assert "of the size of its weights" in role_evidence(other)
    assert f"a row adds up to 0.40 above 0 and −{0.02 * (n - 1):.2f} below" in role_evidence(other)
    assert not {"positive", "negative"} & set(one.metrics)
    assert other.metrics["positive"] == pytest.approx(0.4)
    assert other.metrics["negative"] == pytest.approx(-0.02 * (n - 1))
    assert other.metrics["first"] == pytest.approx(0.4 / (0.4 + 0.02 * (n - 1)))


def test_rows_of_zeros_are_no_weight_at_all():
    n = len(SOURCE)
    capture = plant(text(SOURCE), [np.zeros((1, n, n))], causal=False, signed=True)
    found = measured(capture)
    assert key_of(found) == "" and found.most is None
    assert found.metrics["positive"] == found.metrics["negative"] == 0
