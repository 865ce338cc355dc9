"""Planted heads are named for what they do, and heads that do nothing are not named."""

from dataclasses import replace

import numpy as np
import pytest

from hgviz.analysis.metrics import METRICS, applicable
from hgviz.analysis.roles import ROLES, notable_heads, rank, roles, top_keys
from hgviz.core import HeadId, Selection
from hgviz.tasks.evidence import role_evidence, role_sentence
from tests.analysis.planting import Planted, hourglass, key_of, letters, pieces, plant
from tests.progress import steps_of

TEXT = (
    "The hourglass was used at sea. When the sand of the hourglass had run down, the sailor on "
    "watch turned the hourglass, and rang the bell. Four bells, then eight: Anna Karlsson counted "
    "them, wrote 16 and 24 into the book, and went below. Nobody counted the sand. The sand ran on."
)
N = len(TEXT)


def looking(wanted, share=0.6, n=N):
    """(n, n) causal: `share` of each row's weight evenly on the wanted keys, the rest evenly."""
    seen = np.tril(np.ones((n, n)))
    out = np.zeros((n, n))
    for i in range(n):
        keys = [j for j in wanted(i) if 0 <= j <= i]
        out[i] = seen[i] / seen[i].sum()
        if keys:
            out[i] *= 1 - share
            out[i, keys] += share / len(keys)
    return out


def last(members):
    return lambda i: [j for j in range(i + 1) if members(TEXT[j])][-1:]


def word_first(i):
    if not TEXT[i].isalnum():
        return []
    while i and TEXT[i - 1].isalnum():
        i -= 1
    return [i]


def sentence_first(i):
    stops = [j for j in range(i) if TEXT[j] == "."]
    return [stops[-1] + 2] if stops else [0]


def word_at(i):
    start = word_first(i)[0]
    return TEXT[start:].split()[0].strip(".,:").lower()


def same_word(i):
    if not TEXT[i].isalnum():
        return []
    return [j for j in range(word_first(i)[0]) if TEXT[j].isalnum() and word_at(j) == word_at(i)]


def every(members):
    return lambda i: [j for j in range(i + 1) if members(TEXT[j])]


PLANTED = {
    "previous token": lambda i: [i - 1],
    "two back": lambda i: [i - 2],
    "three back": lambda i: [i - 3],
    "local": lambda i: range(i - 4, i + 1),
    "current token": lambda i: [i],
    "first token": lambda i: [0],
    "word start": word_first,
    "current word": lambda i: range(word_first(i)[0], i + 1) if TEXT[i].isalnum() else [],
    "last space": last(str.isspace),
    "last punctuation": last(lambda one: one in ".,:"),
    "sentence start": sentence_first,
    "capitals": every(str.isupper),
    "punctuation": every(lambda one: one in ".,:"),
    "spaces": every(str.isspace),
    "word starts": lambda i: [j for j in range(i + 1) if word_first(j) == [j]],
    "digits": every(str.isdigit),
    "vowels": every(lambda one: one.lower() in "aeiou"),
    "induction": lambda i: [j for j in range(1, i) if TEXT[j - 1] == TEXT[i]],
    "last duplicate": lambda i: [j for j in range(i) if TEXT[j] == TEXT[i]][-1:],
    "duplicate token": lambda i: [j for j in range(i) if TEXT[j] == TEXT[i]],
    "same word": same_word,
    "induction 2": lambda i: [j for j in range(2, i) if TEXT[j - 2 : j] == TEXT[i - 1 : i + 1]],
    "induction 3": lambda i: [j for j in range(3, i) if TEXT[j - 3 : j] == TEXT[i - 2 : i + 1]],
    "previous word": lambda i: (
        range(word_first(i)[0] - 1 - len(TEXT[: word_first(i)[0] - 1].split()[-1]),
              word_first(i)[0] - 1)
        if TEXT[i].isalnum() and word_first(i)[0] else []
    ),
}  # fmt: skip


@pytest.mark.parametrize("role", PLANTED)
def test_a_planted_head_is_named_for_what_it_does(role):
    facts = roles(plant(letters(TEXT), [looking(PLANTED[role])[None]]))
    found = facts[HeadId(0, 0)]
    assert key_of(found) == role, found
    assert found.score > 0.5 and "by chance" in role_evidence(found)
    assert found.role and role_sentence(found) and "{" not in found.role + role_sentence(found)


@pytest.mark.parametrize("role", ["previous token", "word start", "last punctuation", "same word"])
def test_a_head_that_only_half_does_it_is_named_too(role):
    head = looking(PLANTED[role], share=0.2)
    found = roles(plant(letters(TEXT), [head[None]]))[HeadId(0, 0)]
    assert key_of(found) == role
    assert role_sentence(found) == f"Leans towards: {found.role}"


def test_one_place_near_by_is_named_rather_than_its_neighbourhood():
    head = looking(lambda i: [i - 1], share=0.55) + looking(PLANTED["local"], share=0.98)
    found = roles(plant(letters(TEXT), [head[None]]))[HeadId(0, 0)]
    assert key_of(found) == "local"  # 38 % on the previous letter, 77 % near by
    head = looking(lambda i: [i - 1], share=0.99) + looking(PLANTED["local"], share=0.99)
    found = roles(plant(letters(TEXT), [head[None]]))[HeadId(0, 0)]
    assert key_of(found) == "previous token" and found.role == "previous letter"


def softmax(scores):
    scores = np.where(np.tril(np.ones_like(scores)) > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize("sharpness", [0.5, 2, 5, 20])
def test_heads_that_look_at_random_are_not_named(sharpness):
    random = np.random.default_rng(int(sharpness * 10))
    maps = softmax(sharpness * random.normal(size=(40, N, N)))
    facts = roles(plant(letters(TEXT), [maps])).values()
    assert {key_of(one) for one in facts} == {""}
    assert {one.role for one in facts} <= {"", "everything"}
    assert notable_heads({one.head: one for one in facts}) == []


def test_heads_with_a_favourite_place_are_not_given_a_meaning():
    random = np.random.default_rng(5)
    favourites = 8 * (random.permuted(np.tile(np.arange(N) == 100, (60, 1)), axis=1))
    maps = softmax(favourites[:, None, :] + random.normal(size=(60, N, N)))
    facts = roles(plant(letters(TEXT), [maps])).values()
    named = [one for one in facts if key_of(one) not in ("", "first token")]
    assert named == []


def test_an_even_head_is_said_to_spread():
    facts = roles(plant(letters(TEXT), [looking(lambda i: [])[None]]))
    found = facts[HeadId(0, 0)]
    assert (found.role, found.clarity) == ("everything", 0.0)
    assert role_evidence(found) == "its rows are 100 % as even as they could be"


def test_the_numbers_are_what_they_say():
    head = looking(lambda i: [i - 1], share=0.5)
    metrics = roles(plant(letters(TEXT), [head[None]]))[HeadId(0, 0)].metrics
    rows = [row[: i + 1] for i, row in enumerate(head) if i >= 15]
    mean = lambda of: np.mean([of(row) for row in rows])  # noqa: E731
    wanted = {
        "focus": mean(np.max),
        "entropy": mean(lambda row: -(row * np.log(row)).sum()),
        "distance": mean(lambda row: (row * np.arange(len(row))[::-1]).sum()),
        "previous": mean(lambda row: row[-2]),
        "first": mean(lambda row: row[0]),
        "same": mean(lambda row: row[-1]),
    }
    repeated = [i for i in range(15, N) if TEXT[i] in TEXT[:i]]
    at = lambda i, *keys: sum(head[i, list(keys)])  # noqa: E731
    wanted["same token"] = np.mean(
        [at(i, *(j for j in range(i) if TEXT[j] == TEXT[i])) for i in repeated]
    )
    followed = [[j for j in range(1, i) if TEXT[j - 1] == TEXT[i]] for i in range(15, N)]
    wanted["induction"] = np.mean([at(i + 15, *keys) for i, keys in enumerate(followed) if keys])
    most = row_argmax_offsets(head)
    wanted["positional"], wanted["offset"] = np.mean(most == -1), -1
    assert list(metrics) == [name for name in METRICS if name in wanted]
    assert dict(metrics) == pytest.approx(wanted, rel=1e-5)
    assert np.isnan(metrics["diagonal"]) and applicable([metrics]) == tuple(metrics)


def row_argmax_offsets(head):
    """How far each row that counts looks most."""
    return np.array([np.argmax(row[: i + 1]) - i for i, row in enumerate(head) if i >= 15])


def test_blocks_of_rows_and_columns_give_the_same(monkeypatch):
    planted = ("previous token", "word start", "last duplicate")
    heads = np.stack([looking(PLANTED[role]) for role in planted])
    capture = plant(letters(TEXT), [heads])
    whole = roles(capture)
    monkeypatch.setattr("hgviz.analysis.metrics.BLOCK_ROWS", 17)
    monkeypatch.setattr("hgviz.analysis.roles.BLOCK_COLUMNS", 23)
    parts = roles(capture)
    for head, one in whole.items():
        assert one.metrics == pytest.approx(parts[head].metrics, rel=1e-5)
        assert (one.role, role_evidence(one)) == (parts[head].role, role_evidence(parts[head]))


def test_of_very_long_texts_some_rows_are_measured_and_it_is_said(monkeypatch):
    monkeypatch.setattr("hgviz.analysis.metrics.BLOCK_ROWS", 16)
    monkeypatch.setattr("hgviz.analysis.metrics.CELLS", 16 * N * 8)
    facts = roles(plant(letters(TEXT), [looking(lambda i: [i - 1])[None]]))
    found = facts[HeadId(0, 0)]
    assert key_of(found) == "previous token"
    assert "; measured on 1" in role_evidence(found) and f"of {N} rows" in role_evidence(found)


def test_tokens_are_called_tokens_and_letters_letters():
    words = [part for word in TEXT.split() for part in (f" {word}",)]
    n = len(words)
    maps = looking(lambda i: [i - 1], n=n)[None]
    found = roles(plant(pieces(*words), [maps]))[HeadId(0, 0)]
    assert found.role == "previous token"
    assert role_sentence(found) == "Looks at the previous token"
    assert METRICS["distance"].named("token") == "Distance, tokens"
    assert METRICS["distance"].named("letter") == "Distance, letters"


def test_later_keys_count_where_they_are_seen():
    maps = np.eye(N, k=1) * 0.9 + 0.1 / N
    found = roles(plant(letters(TEXT), [maps[None]], causal=False))[HeadId(0, 0)]
    assert found.role == "next letter"
    assert ROLES["next token"].later


def test_signed_weights_count_by_their_size_and_it_is_said():
    head = -looking(lambda i: [i - 1])
    found = roles(plant(letters(TEXT), [head[None]], signed=True))[HeadId(0, 0)]
    assert found.role == "previous letter"
    assert "of the size of its weights" in role_evidence(found)


def test_shortened_levels_speak_of_positions_and_groups():
    def weights(layer, seen):
        rows, columns = np.indices(seen.shape)
        own = {"self": rows, "down": rows * 2 + 1, "up": rows // 2}[layer.role]
        step = 2 if layer.role == "down" else 1
        far = own - columns
        first = np.where((far >= step) & (far < 2 * step), 0.8, 0.01) * seen
        second = np.where((far >= 0) & (far < step), 0.8, 0.01) * seen
        both = np.stack([first, second])
        return both / both.sum(-1, keepdims=True)

    capture = hourglass(letters(TEXT), (1, 2, 4), weights=weights)
    facts = roles(capture)
    for layer in capture.spec.layers:
        place_of = "letter" if layer.level == 0 else "position"
        place_of = place_of if layer.role == "self" else "group"
        assert facts[HeadId(layer.index, 0)].role == f"previous {place_of}", layer.name
        assert facts[HeadId(layer.index, 1)].role == f"the {place_of} itself", layer.name


def test_what_a_shortened_position_stands_for_decides():
    def weights(layer, seen):
        keys = seen.shape[1]
        stride = 2**layer.key_level
        shift = {"down": 1}.get(layer.role, 0)
        spans = [range((c - shift) * stride - stride + 1, (c - shift) * stride + 1)
                 for c in range(keys)]  # fmt: skip
        marks = [any(0 <= t < N and TEXT[t].isupper() for t in span) for span in spans]
        raw = np.where(marks, 20.0, 0.2) * seen
        return np.broadcast_to(raw / raw.sum(-1, keepdims=True), (2, *seen.shape))

    capture = hourglass(letters(TEXT), (1, 2, 4), weights=weights)
    for found in roles(capture).values():
        assert key_of(found) == "capitals", found


def test_windows_with_a_single_key_are_called_trivial():
    capture = hourglass(letters(TEXT), (1, 2, 4), form="windowed")
    facts = roles(capture)
    ups = [layer.index for layer in capture.spec.layers if layer.role == "up"]
    for found in (one for head, one in facts.items() if head.layer in ups):
        assert role_sentence(found) == "One key, always 1 (trivial)" and found.clarity == 0
    downs = [layer for layer in capture.spec.layers if layer.role == "down"]
    leaning = {
        layer.index: np.broadcast_to(
            np.where(np.indices(capture.maps[layer.index].shape[1:])[1] % 2, 0.9, 0.1)
            * (capture.maps[layer.index].weights[0] > 0), capture.maps[layer.index].shape)
        for layer in downs
    }  # fmt: skip
    maps = tuple(Planted(leaning[i]) if i in leaning else one
                 for i, one in enumerate(capture.maps))  # fmt: skip
    facts = roles(replace(capture, maps=maps))
    for layer in downs:
        assert facts[HeadId(layer.index, 0)].role == "newest of its group"


def test_layers_not_yet_captured_are_left_out_and_every_layer_is_a_step():
    capture = hourglass(letters(TEXT[:40]), (1, 2))
    partial = replace(capture, maps=(capture.maps[0], None, *capture.maps[2:]))
    steps = steps_of(roles, partial)
    values = [step.value for step in steps if step.value is not None]
    assert len(values) == len(capture.spec.layers)
    assert {head.layer for head in values[-1]} == {0, 2, 3, 4}
    assert steps[-1].done == steps[-1].total == 5


@pytest.mark.parametrize("text", ["a", "ab", "😀😀", "مرحبا بالعالم", "     ", "\n\n"])
def test_short_and_strange_texts_are_measured_without_a_name_too_many(text):
    capture = hourglass(letters(text), (1, 2))
    for found in roles(capture).values():
        assert role_sentence(found) and np.isfinite(list(found.metrics.values())).all()
        assert key_of(found) == ""


def test_masked_tokens_do_not_count():
    prompt = letters(TEXT)
    keep = np.arange(N) < N - 50
    head = looking(lambda i: [i - 1] if i < N - 50 else [i])
    capture = plant(replace(prompt, attention_mask=keep), [head[None]])
    found = roles(capture)[HeadId(0, 0)]
    assert key_of(found) == "previous token" and found.metrics["same"] < 0.02


def test_notable_heads_differ_in_role_and_level():
    facts = roles(plant(letters(TEXT), [
        np.stack([looking(PLANTED[role], share) for role, share in
                  (("previous token", 0.9), ("previous token", 0.8), ("last punctuation", 0.6),
                   ("first token", 0.9))])
    ]))  # fmt: skip
    best = notable_heads(facts)
    assert [key_of(one) for one in best] == ["previous token", "last punctuation", "first token"]
    assert best[0].head == HeadId(0, 0)
    assert len(notable_heads(facts, count=1)) == 1


def test_a_place_is_a_rank_among_self_attention():
    facts = roles(hourglass(letters(TEXT), (1, 2)))
    selfs = [one for one in facts.values() if one.kind == "self"]
    ranks = sorted(rank("focus", one.head, facts).rank for one in selfs)
    assert ranks == list(range(1, len(selfs) + 1))
    assert {rank("focus", one.head, facts).total for one in selfs} == {len(selfs)}
    best = max(selfs, key=lambda one: one.metrics["focus"])
    assert rank("focus", best.head, facts).rank == 1


def test_where_a_letter_looks_names_tokens_and_columns():
    capture = hourglass(letters(TEXT), (1, 2, 4))
    for layer in capture.spec.layers:
        row = capture.row(layer.index, 60)
        weights = capture.maps[layer.index].weights[1, row]
        found = top_keys(capture, Selection(layer.index, 1, query=60), count=5)
        assert [column for _, column, _ in found] == list(np.argsort(-weights)[:5])
        for token, column, weight in found:
            assert token == capture.column_token(layer.index, column)
            assert weight == pytest.approx(weights[column], rel=1e-6)


def test_the_zeros_of_the_shift_have_no_token():
    def weights(layer, seen):
        raw = seen * np.where(np.arange(seen.shape[1]) == 0, 9.0, 0.1)
        return np.broadcast_to(raw / raw.sum(-1, keepdims=True), (2, *seen.shape))

    capture = hourglass(letters(TEXT[:20]), (1, 2), weights=weights)
    down = next(layer.index for layer in capture.spec.layers if layer.role == "down")
    token, column, weight = top_keys(capture, Selection(down, 0, query=10))[0]
    assert (token, column) == (None, 0) and weight > 0.5
    assert top_keys(replace(capture, maps=(None,) * 5), Selection(0, 0)) == []
