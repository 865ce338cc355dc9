"""Roles of heads: planted heads are named for what they do, those that do nothing are not."""

from dataclasses import replace

import numpy as np
import pytest

from hgviz.analysis.roles import ROLES, corpus_roles, notable_heads, rank, roles, top_keys
from hgviz.analysis.tokens import Lexicon
from hgviz.core import HeadId, Selection
from hgviz.maps import LazyMap
from hgviz.tasks.heads import (
    corpus_notes,
    role_evidence,
    role_sentence,
)
from tests.analysis.planting import (
    even_rows,
    hourglass,
    key_of,
    letters,
    plant,
    planted,
    spaced,
    tagged,
    translated,
)
from tests.making import (
    byte_prompt,
    layer_shape,
    level_spans,
    make_factors,
    make_spec,
)

FIRST = HeadId(0, 0)
TEXT = (
    "The hourglass was used at sea. When the sand of the hourglass had run down, the sailor on "
    "watch turned the hourglass, and rang the bell. Four bells, then eight: Anna Karlsson counted "
    "them, wrote 16 and 24 into the book, and went below. Nobody counted the sand. The sand ran on."
)
N = len(TEXT)
SOURCE = [
    "the", "old", "bridge", "was", "too", "low", "for", "the", "ships", "that", "came", "up", "the",
    "river", "in", "the", "spring",
]  # fmt: skip
TARGET = [
    "in", "spring", "the", "ships", "on", "the", "river", "were", "too", "high", "for", "that",
    "low", "bridge",
]  # fmt: skip
PARTS = (
    "[CLS]", "the", "un", "##believ", "##able", "story", "of", "a", "fisher", "##man", "[SEP]",
    "the", "fisher", "##man", "never", "tell", "##s", "the", "story", "[SEP]",
)  # fmt: skip
COUNT = len(PARTS)


def looking(wanted, share=0.6, rows=N, columns=0):
    """(rows, columns): `share` of each row's weight evenly on wanted(row), the rest evenly; causal
    where no columns are named."""
    seen = np.ones((rows, columns)) if columns else np.tril(np.ones((rows, rows)))
    weights = even_rows(seen)
    for row in range(rows):
        if keys := [key for key in wanted(row) if 0 <= key < seen.shape[1] and seen[row, key]]:
            weights[row] *= 1 - share
            weights[row, keys] += share / len(keys)
    return weights


def role_of(weights, prompt=None, **how):
    """What is found of one head on a text."""
    return roles(plant(prompt or letters(TEXT), [weights[None]], **how))[FIRST]


def over(*captures, lexicon=None):
    """The roles over some captures."""
    return corpus_roles(captures.__getitem__, range(len(captures)), lexicon)


def previous(count):
    weights = np.eye(count, k=-1)
    weights[0, 0] = 1
    return weights


# --- every role -----------------------------------------------------------------------------------


def last(is_member):
    return lambda i: [j for j in range(i + 1) if is_member(TEXT[j])][-1:]


def every(is_member):
    return lambda i: [j for j in range(i + 1) if is_member(TEXT[j])]


def after_same(size):
    return lambda i: [j for j in range(size, i) if TEXT[j - size : j] == TEXT[i - size + 1 : i + 1]]


def word_first(i):
    if not TEXT[i].isalnum():
        return []
    while i and TEXT[i - 1].isalnum():
        i -= 1
    return [i]


def word_at(i):
    return TEXT[word_first(i)[0] :].split()[0].strip(".,:").lower()


def same_word(i):
    start = word_first(i)
    return [j for j in range(*start or (0,)) if TEXT[j].isalnum() and word_at(j) == word_at(i)]


def previous_word(i):
    if not TEXT[i].isalnum() or not word_first(i)[0]:
        return []
    end = word_first(i)[0] - 1
    return range(end - len(TEXT[:end].split()[-1]), end)


def sentence_first(i):
    stops = [j for j in range(i) if TEXT[j] == "."]
    return [stops[-1] + 2] if stops else [0]


PLANTED = {
    "previous token": lambda i: [i - 1],
    "two back": lambda i: [i - 2],
    "three back": lambda i: [i - 3],
    "local": lambda i: range(i - 4, i + 1),
    "current token": lambda i: [i],
    "first token": lambda i: [0],
    "word start": word_first,
    "current word": lambda i: range(word_first(i)[0], i + 1) if TEXT[i].isalnum() else [],
    "previous word": previous_word,
    "last space": last(str.isspace),
    "last punctuation": last(lambda letter: letter in ".,:"),
    "sentence start": sentence_first,
    "capitals": every(str.isupper),
    "punctuation": every(lambda letter: letter in ".,:"),
    "spaces": every(str.isspace),
    "word starts": lambda i: [j for j in range(i + 1) if word_first(j) == [j]],
    "digits": every(str.isdigit),
    "vowels": every(lambda letter: letter.lower() in "aeiou"),
    "last duplicate": lambda i: [j for j in range(i) if TEXT[j] == TEXT[i]][-1:],
    "duplicate token": lambda i: [j for j in range(i) if TEXT[j] == TEXT[i]],
    "same word": same_word,
    "induction": after_same(1),
    "induction 2": after_same(2),
    "induction 3": after_same(3),
}


@pytest.mark.parametrize("role", PLANTED)
def test_a_planted_head_has_its_role(role):
    found = role_of(looking(PLANTED[role]))
    assert key_of(found) == role, found
    assert found.score > 0.5 and "(chance " in role_evidence(found)
    assert found.role and role_sentence(found) and "{" not in found.role + role_sentence(found)
    if role == "word start":
        half = role_of(looking(PLANTED[role], share=0.2))
        assert key_of(half) == role and role_sentence(half) == f"Partly: {half.role}"


@pytest.mark.parametrize(
    ("role", "wanted", "label"),
    [
        ("separator", lambda i: [10, 19], "separators"),
        ("special", lambda i: [0, 10, 19], "special tokens"),
        ("last token", lambda i: [19], "last token"),
        ("next token", lambda i: [i + 1], "next token"),
        ("neighbours", lambda i: range(i - 2, i + 3), "local, both sides"),
        ("same elsewhere", lambda i: [j for j in range(COUNT) if PARTS[j] == PARTS[i] and j != i],
         "same token elsewhere"),
    ],
)  # fmt: skip
def test_word_pieces_are_tokens_and_special_ones_are_told_apart(role, wanted, label):
    found = role_of(looking(wanted, 0.7, COUNT, COUNT), tagged(*PARTS), causal=False)
    assert (key_of(found), found.role) == (role, label)


def same_place(i):
    n, m = len(TARGET), len(SOURCE)
    return [j for j in range(m) if j * n < (i + 1) * m and (j + 1) * n > i * m]


def crossing(wanted):
    """A capture whose layer 3 looks from the target at wanted tokens of the source."""
    n, m = len(TARGET), len(SOURCE)
    maps = np.stack([looking(wanted, 0.7, n, m), np.full((n, m), 1 / m)])
    words = sorted({*SOURCE, *TARGET})
    source, target = (
        replace(spaced(side), ids=np.array([words.index(word) for word in side]))
        for side in (SOURCE, TARGET)
    )
    return translated(source, target, {"decoder.0.cross": maps})


@pytest.mark.parametrize(
    ("role", "wanted", "sentence"),
    [
        ("same place", same_place, "Attends to the source in order (diagonal)"),
        ("same token", lambda i: [j for j, word in enumerate(SOURCE) if word == TARGET[i]],
         "Attends to the same token of the source"),
        ("first token", lambda i: [0], "Attends to the first token of the source"),
        ("last token", lambda i: [len(SOURCE) - 1], "Attends to the last token of the source"),
        ("", lambda i: [SOURCE.index("ships")], "Mostly attends to “ships”"),
    ],
)  # fmt: skip
def test_a_head_between_two_texts_has_the_roles_of_both(role, wanted, sentence):
    every_head = roles(crossing(wanted))
    found = every_head[HeadId(3, 0)]
    assert rank("distance", found.head, every_head) == (0, 0)  # between two texts there is none
    assert (key_of(found), role_sentence(found)) == (role, sentence)
    if not role:
        assert found.most == SOURCE.index("ships") and found.most_share > 0.7
        assert "mean attention" in role_evidence(found)


def test_the_other_text_of_a_pair_is_a_role():
    kinds = np.repeat([0, 1], [len(SOURCE), len(TARGET)])
    prompt = replace(spaced(SOURCE + TARGET), token_type_ids=kinds)
    weights = looking(lambda i: np.flatnonzero(kinds != kinds[i]), 0.9, len(kinds), len(kinds))
    assert role_of(weights, prompt, causal=False).role == "other text"


# --- no role --------------------------------------------------------------------------------------


def softmax(scores):
    scores = np.where(np.tril(np.ones_like(scores)) > 0, scores, -np.inf)
    return even_rows(np.exp(scores - scores.max(-1, keepdims=True)))


@pytest.mark.parametrize("sharpness", [0.5, 20])
def test_heads_that_look_at_random_have_no_role(sharpness):
    random = np.random.default_rng(int(sharpness * 10))
    maps = softmax(sharpness * random.normal(size=(20, N, N)))
    found = roles(plant(letters(TEXT), [maps]))
    assert {key_of(head) for head in found.values()} == {""}
    assert {head.role for head in found.values()} <= {"", "uniform"}
    assert notable_heads(found) == []


@pytest.mark.parametrize("text", ["", "a", "مرحبا بالعالم"])
def test_short_and_strange_texts_have_no_roles(text):
    n = len(text)
    found = over(plant(letters(text), [np.tril(np.ones((2, n, n)))]))
    assert not any(map(key_of, found.heads.values())) and len(found.heads) == 2
    for head in roles(hourglass(letters(text), (1, 2))).values() if text else ():
        assert key_of(head) == "" and role_sentence(head)
        assert np.isfinite(list(head.metrics.values())).all()


def test_padding_does_not_count():
    is_kept = np.arange(N) < N - 50
    prompt = replace(letters(TEXT), attention_mask=is_kept)
    found = role_of(looking(lambda i: [i - 1] if i < N - 50 else [i]), prompt)
    assert key_of(found) == "previous token" and found.metrics["same"] < 0.02
    capture = crossing(same_place)
    mask = np.arange(len(SOURCE)) < 12
    maps = list(capture.maps)
    maps[3] = planted(even_rows(maps[3].array * mask))
    source = replace(capture.prompt, attention_mask=mask)
    found = roles(replace(capture, prompt=source, maps=tuple(maps)))[HeadId(3, 1)]
    assert found.role == "uniform"  # even over what there is


# --- levels, signs, words -------------------------------------------------------------------------


def test_shortened_levels_speak_of_positions_and_groups():
    def weights(layer, seen):
        rows, columns = np.indices(seen.shape)
        own = {"self": rows, "down": rows * 2 + 1, "up": rows // 2}[layer.role]
        step, far = 2 if layer.role == "down" else 1, own - columns
        first = np.where((far >= step) & (far < 2 * step), 0.8, 0.01) * seen
        second = np.where((far >= 0) & (far < step), 0.8, 0.01) * seen
        return even_rows(np.stack([first, second]))

    capture = hourglass(letters(TEXT), (1, 2, 4), weights=weights)
    found = roles(capture)
    for layer in capture.spec.layers:
        place = "token" if layer.level == 0 else "position"
        place = place if layer.role == "self" else "group"
        assert found[HeadId(layer.index, 0)].role == f"previous {place}", layer.name
        assert found[HeadId(layer.index, 1)].role == f"current {place}", layer.name


def test_a_head_on_the_rarest_word_of_each_sentence_is_named_where_a_corpus_counts_words():
    random, common, sentences = np.random.default_rng(4), [f"w{at}" for at in range(8)], []
    texts = []
    for number in range(30):
        words = list(random.choice(common, size=9))
        place = int(random.integers(1, 8))
        words.insert(place, f"rare{number}")
        weights = looking(lambda i, place=place: [place], 0.9, 10, 10)
        sentences.append(" ".join(words))
        texts.append(plant(spaced(words), [np.stack([weights, np.eye(10)])], causal=False))
    lexicon = Lexicon(sentences, common=8)
    assert lexicon.rare == 30 and lexicon.uses("rare3") == 1 and lexicon.uses("w1") == np.inf
    rare, same = over(*texts, lexicon=lexicon).heads.values()
    assert rare.metrics["rare"] == 1 and same.metrics["rare"] == pytest.approx(0.1)
    assert key_of(rare) == "rare word" and "rarest" in role_sentence(rare)
    plain = over(*texts).heads[FIRST]
    assert "rare" not in plain.metrics and key_of(plain) != "rare word"
    notes = corpus_notes(over(*texts, lexicon=Lexicon(sentences)))
    assert any("no word is rare" in note for note in notes)


# --- metrics beside roles -------------------------------------------------------------------------


def dense_numbers(maps, n):
    """Row by row in float64, written differently: loops over rows, no blocks of columns."""
    weights = maps.read(maps.heads[0]).astype(float)
    shares = [row[: at + 1] / row[: at + 1].sum() for at, row in enumerate(weights)]
    mass = np.zeros(n)  # by how far back
    for row in shares:
        mass[: len(row)] += row[::-1]
    p = mass / np.arange(n, 0, -1)
    norm, rows = np.cumsum(p), range(15, n)  # 16 keys and more count
    apart = sum(((row - p[at::-1] / norm[at]) ** 2).sum() for at, row in enumerate(shares))
    uneven = sum((row**2).sum() - 1 / len(row) for row in shares)
    centre = -(p * np.arange(n)).sum() / p.sum()
    offsets = [int(shares[at].argmax()) - at for at in rows]
    values, times = np.unique(offsets, return_counts=True)
    means = {
        "focus": np.max, "same": lambda row: row[-1], "previous": lambda row: row[-2],
        "first": lambda row: row[0], "entropy": lambda row: -(row * np.log(row)).sum(),
        "distance": lambda row: (row * np.arange(len(row))[::-1]).sum(),
    }  # fmt: skip
    return {name: np.mean([of(shares[at]) for at in rows]) for name, of in means.items()} | {
        "positional": times.max() / len(rows), "offset": values[times.argmax()],
        "convolution": 1 - apart / uneven, "centre": centre,
        "width": np.sqrt((p * (np.arange(n) + centre) ** 2).sum() / p.sum()),
    }  # fmt: skip


@pytest.mark.parametrize("n", [1536, pytest.param(8192, marks=pytest.mark.soak)])
def test_every_metric_equals_a_dense_computation_without_a_whole_map(n, monkeypatch):
    prompt = byte_prompt("Some words, again and again. " * (n // 29 + 1))
    spec = make_spec((1,), heads=1)
    spec = replace(spec, layers=spec.layers[:1])
    shape = layer_shape(spec, spec.layers[0], len(prompt))
    factors = make_factors(np.random.default_rng(0), *shape, spec.layers[0], spec, prompt)
    maps, spans = LazyMap(factors, (0,)), level_spans(len(prompt), (1,), causal=True)
    sizes, read = [], maps.read
    maps.read = lambda *where, **how: sizes.append((found := read(*where, **how)).size) or found
    base = plant(letters("x"), [np.ones((1, 1, 1))])
    capture = replace(base, spec=spec, prompt=prompt, spans=spans, maps=(maps,))
    monkeypatch.setattr("hgviz.analysis.metrics.CELLS", 1 << 40)  # every row
    few = {name: ROLES[name] for name in ("previous token", "current token", "first token")}
    monkeypatch.setattr("hgviz.analysis.roles.roles_for", lambda layout: few)
    found = over(capture).heads[FIRST].metrics
    assert max(sizes) <= 256 * len(prompt)
    for name, value in dense_numbers(maps, len(prompt)).items():
        assert found[name] == pytest.approx(value, abs=1e-5, rel=1e-5), name


# --- many texts -----------------------------------------------------------------------------------


def test_over_texts_every_row_counts_once():
    texts = [
        plant(letters("ab" * (len(one) // 2)), [np.stack([one, np.eye(len(one))])])
        for one in (np.eye(60), previous(30))
    ]
    found = over(*texts)
    share = 23 / (46 + 23)  # rows with a quarter of all keys, at most 16
    moving, still = found.heads.values()
    assert found.texts == 2 and found.tokens == 90
    numbers = {name: moving.metrics[name] for name in ("previous", "same", "positional")}
    assert numbers == pytest.approx({"previous": share, "same": 1 - share, "positional": 1 - share})
    assert role_evidence(moving).endswith("over 2 texts")
    assert still.metrics["variance"] == 0 < moving.metrics["variance"]


# --- among heads, and top keys --------------------------------------------------------------------


def test_top_keys_name_tokens_and_columns():
    capture = hourglass(letters(TEXT), (1, 2, 4))
    for layer in capture.spec.layers:
        weights = capture.maps[layer.index].array[1, capture.row(layer.index, 60)]
        found = top_keys(capture, Selection(layer.index, 1, query=60), count=5)
        columns = np.argsort(-weights)[:5]
        assert [column for _, column, _ in found] == [*columns]
        assert [weight for *_, weight in found] == pytest.approx(weights[columns], rel=1e-6)
        assert [token for token, *_ in found] == [
            capture.column_token(layer.index, int(column)) for column in columns
        ]
    assert top_keys(replace(capture, maps=(None,) * 9), Selection(0, 0)) == []
    crossed = crossing(lambda i: [i])
    assert top_keys(crossed, Selection(3, 0, 2))[0][:2] == (2, 2)
    assert top_keys(crossed, Selection(3, 0))[0][:2] == (len(TARGET) - 1,) * 2
