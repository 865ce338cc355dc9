"""What heads are for over many texts, how texts are read, and how far heads are from each other."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from hgviz.analysis.metrics import LIKENESS_ROWS, HeadDistances
from hgviz.analysis.roles import ROLES, corpus_roles, roles
from hgviz.analysis.tokens import Layout, Lexicon, TokenReading
from hgviz.core import Capture, HeadId, Prompt
from hgviz.maps import DenseMap, LazyMap
from hgviz.tasks.evidence import (
    corpus_notes,
    role_evidence,
    role_sentence,
    role_words,
    roles_to_dict,
)
from tests.analysis.planting import hourglass, key_of, letters, pieces, plant, translated
from tests.making import (
    byte_prompt,
    layer_shape,
    level_spans,
    make_capture,
    make_factors,
    make_spec,
)
from tests.progress import steps_of

FIRST = HeadId(0, 0)
WORDS = ["the", "cat", "sat", "on", "the", "mat", "and", "the", "dog", "lay", "by", "the", "door"]


@pytest.fixture(scope="module")
def small():
    """A short text at two levels, three heads a layer."""
    return make_capture("It thinks where there is little to read. " * 3, (1, 2), heads=3)


def over(*captures, lexicon=None):
    """The habits over some captures."""
    return corpus_roles(captures.__getitem__, range(len(captures)), lexicon)


def even_rows(values):
    return values / values.sum(-1, keepdims=True)


def previous(n):
    out = np.eye(n, k=-1)
    out[0, 0] = 1
    return out


def spaced(words):
    """A text with each word its own token, a space before all but the first."""
    return pieces(*[("" if at == 0 else " ") + word for at, word in enumerate(words)])


# --- closed forms ---------------------------------------------------------------------------------


def test_identity_previous_even_sink_and_toeplitz_maps_have_the_numbers_they_must():
    n = 64
    far = np.arange(n)[:, None] - np.arange(n)
    sink = np.zeros((n, n))
    sink[:, 0] = 1
    toeplitz = even_rows(0.5 ** far.clip(0) * (far >= 0))
    maps = np.stack([np.eye(n), previous(n), even_rows(np.tril(np.ones((n, n)))), sink, toeplitz])
    found = over(plant(letters("ab" * (n // 2)), [maps])).heads
    same, back, even, rest, kernel = (found[HeadId(0, head)].metrics for head in range(5))
    rows = np.arange(16, n + 1)  # keys of the rows that count
    assert same["focus"] == back["focus"] == rest["focus"] == 1
    assert even["focus"] == pytest.approx(np.mean(1 / rows))
    assert even["entropy"] == pytest.approx(np.mean(np.log(rows)))
    assert [one["entropy"] for one in (same, back, rest)] == [0, 0, 0]
    assert (same["same"], back["previous"], rest["first"]) == (1, 1, 1)
    assert even["same"] == even["previous"] == even["first"] == pytest.approx(np.mean(1 / rows))
    assert (same["offset"], same["positional"]) == (0, 1)
    assert (back["offset"], back["positional"]) == (-1, 1)
    assert (kernel["offset"], kernel["positional"]) == (0, 1)
    assert rest["positional"] == pytest.approx(1 / len(rows))
    assert rest["distance"] == pytest.approx(np.mean(rows - 1))
    assert even["distance"] == pytest.approx(np.mean((rows - 1) / 2))
    assert same["convolution"] == pytest.approx(1) and back["convolution"] > 0.99
    assert kernel["convolution"] > 0.99 and rest["convolution"] < 0.5
    assert "convolution" not in even  # nothing tells its rows apart
    named = [[one.name for one in role_words(found[HeadId(0, head)])] for head in range(5)]
    for head, name in ((0, "current token"), (1, "previous token"), (3, "first token")):
        assert named[head][0] == name
    assert {"positional", "convolution"} <= set(named[0]) & set(named[1])
    assert "positional" not in named[3] + named[2] and "convolution" not in named[3]


@pytest.mark.parametrize("n", [3072, pytest.param(8192, marks=pytest.mark.soak)])
def test_every_metric_equals_a_dense_computation_of_a_long_text_without_a_whole_map(n, monkeypatch):
    prompt = byte_prompt("Some words, again and again. " * (n // 29 + 1))
    spec = make_spec((1,), heads=1)
    spec = replace(spec, layers=spec.layers[:1])
    shape = layer_shape(spec, spec.layers[0], len(prompt))
    random = np.random.default_rng(0)
    whole = LazyMap(make_factors(random, *shape, spec.layers[0], spec, prompt), (0,))
    spans = level_spans(len(prompt), (1,), causal=True)
    capture = Capture(spec, prompt, spans, (Watched(whole),))
    length = len(capture.prompt)
    assert length >= n
    monkeypatch.setattr("hgviz.analysis.metrics.CELLS", 1 << 40)  # every row
    few = {name: ROLES[name] for name in ("previous token", "current token", "first token")}
    monkeypatch.setattr("hgviz.analysis.roles.roles_for", lambda layout: few)
    found = over(capture).heads[FIRST].metrics
    assert capture.maps[0].most <= 256 * length  # cells read at a time
    wanted = dense_numbers(whole, length)
    assert set(wanted) <= set(found)
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value, abs=1e-5, rel=1e-5), name


class Watched:
    """A map that knows the most cells that were ever asked of it at once."""

    def __init__(self, known):
        self._known, self.most = known, 0
        self.shape, self.heads, self.signed = known.shape, known.heads, known.signed

    def read(self, head, rows=None, columns=None, zoom=0, reduce="max"):
        found = self._known.read(head, rows, columns, zoom, reduce)
        self.most = max(self.most, found.size)
        return found


def dense_numbers(known, n):
    """Row by row in float64, written differently: loops over diagonals, no blocks of columns."""
    counts = np.arange(1, n + 1)
    focus, entropy, distance, same, back, first = np.zeros((6, n))
    most = np.zeros(n, int)
    mass, squares, cross = np.zeros(n), 0.0, 0.0
    for start in range(0, n, 512):
        block = known.read(known.heads[0], (start, min(start + 512, n))).astype(float)
        for row, weights in enumerate(block, start):
            seen = weights[: row + 1]
            share = seen / seen.sum()
            focus[row], most[row] = share.max(), share.argmax()
            some = share[share > 0]
            entropy[row] = -(some * np.log(some)).sum()
            distance[row] = (share * np.arange(row, -1, -1)).sum()
            same[row], first[row] = share[row], share[0]
            back[row] = share[row - 1] if row else 0
            mass[: row + 1] += share[::-1]  # by how far back
            squares += (share**2).sum()
            cross += 1 / (row + 1)
    p = mass / np.arange(n, 0, -1)
    norm = np.cumsum(p)
    kernel = 0.0
    for start in range(0, n, 512):
        block = known.read(known.heads[0], (start, min(start + 512, n))).astype(float)
        for row, weights in enumerate(block, start):
            share = weights[: row + 1] / weights[: row + 1].sum()
            kernel += ((share - p[row::-1] / norm[row]) ** 2).sum()
    centre = -(p * np.arange(n)).sum() / p.sum()
    width = np.sqrt((p * (np.arange(n) + centre) ** 2).sum() / p.sum())
    some = counts >= 16
    offsets, times = np.unique((most - np.arange(n))[some], return_counts=True)
    return {
        "focus": focus[some].mean(), "entropy": entropy[some].mean(),
        "distance": distance[some].mean(), "same": same[some].mean(),
        "previous": back[some].mean(), "first": first[some].mean(),
        "positional": times.max() / some.sum(), "offset": offsets[times.argmax()],
        "convolution": 1 - kernel / (squares - cross), "centre": centre, "width": width,
    }  # fmt: skip


@pytest.mark.parametrize("signed", [False, True])
def test_lazy_maps_of_all_levels_give_what_the_same_maps_give_when_dense(signed):
    text = "A short text, read at three levels; read it again. " * 3
    lazy = make_capture(text, heads=2, signed=signed)
    maps = []
    for layer, one in zip(lazy.spec.layers, lazy.maps, strict=True):
        values = np.stack([one.read(head) for head in one.heads])
        maps.append(DenseMap(values, layer.heads, one.signed))
    dense = replace(lazy, maps=tuple(maps))
    first, second = over(lazy).heads, over(dense).heads
    assert list(first) == list(second) == list(lazy.spec.heads)
    for head, one in first.items():
        assert one.role == second[head].role
        assert list(one.metrics) == list(second[head].metrics)
        for name, value in one.metrics.items():
            assert value == pytest.approx(second[head].metrics[name], abs=1e-5), (head, name)
    assert any("Signed".lower() in one for one in corpus_notes(over(lazy))) == signed


# --- many texts -----------------------------------------------------------------------------------


def test_one_text_alone_gives_what_measuring_it_gives(small):
    alone = roles(small)
    for head, one in over(small).heads.items():
        known = alone[head]
        assert (one.role, role_sentence(one), role_evidence(one)) == (
            known.role, role_sentence(known), role_evidence(known)
        )  # fmt: skip
        for name, value in known.metrics.items():
            assert one.metrics[name] == value


def test_over_texts_every_row_counts_once():
    long, short = 60, 30
    texts = [plant(letters("ab" * (n // 2)), [np.stack([one, np.eye(n)])])
             for n, one in ((long, np.eye(long)), (short, previous(short)))]  # fmt: skip
    found = over(*texts)
    counted = (46, 23)  # rows with a quarter of all keys, at most 16
    share = counted[1] / sum(counted)
    assert found.texts == 2 and found.tokens == long + short
    assert found.heads[FIRST].metrics["previous"] == pytest.approx(share)
    assert found.heads[FIRST].metrics["same"] == pytest.approx(1 - share)
    assert found.heads[FIRST].metrics["positional"] == pytest.approx(1 - share)
    assert role_evidence(found.heads[FIRST]).endswith("over 2 texts")
    assert found.heads[HeadId(0, 1)].metrics["variance"] == 0
    assert found.heads[FIRST].metrics["variance"] > 0


def test_a_corpus_of_one_text_twice_is_that_text(small):
    two, one = over(small, small).heads, over(small).heads
    for head, known in one.items():
        for name, value in known.metrics.items():
            assert two[head].metrics[name] == pytest.approx(value, abs=1e-9), name


def test_roles_show_over_texts_too_short_to_show_one_alone():
    texts = [plant(spaced(WORDS[:7]), [previous(7)[None]], causal=True) for _ in range(12)]
    assert not over(texts[0]).heads[FIRST].role
    found = over(*texts).heads[FIRST]
    assert key_of(found) == "previous token" and found.score == pytest.approx(1)


def test_examples_are_the_rows_that_do_it_most():
    random = np.random.default_rng(3)
    texts = []
    for _ in range(5):
        strength = random.uniform(0.5, 1, size=(40, 1))
        weights = strength * previous(40) + (1 - strength) * np.eye(40)
        weights[0] = np.eye(40)[0]
        texts.append(plant(letters("ab" * 20), [weights[None]]))
    found = over(*texts).heads[FIRST]
    assert key_of(found) == "previous token"
    shares = [one.share for one in found.examples]
    assert len(shares) == 8
    every = {
        (text, row): float(one.maps[0].weights[0][row, row - 1])
        for text, one in enumerate(texts) for row in range(15, 40)
    }  # fmt: skip
    best = [max(v for (text, _), v in every.items() if text == at) for at in range(5)]
    assert max(shares) == pytest.approx(max(best), abs=1e-6)
    for one in found.examples:
        assert one.share == pytest.approx(every[one.text, one.query], abs=1e-6)
        assert one.key == one.query - 1
    assert max(map([one.text for one in found.examples].count, range(5))) <= 2


def test_examples_are_quoted_from_their_texts():
    text = "It thinks where there is little to read, and rests elsewhere."
    n = len(text)
    (one,) = [plant(letters(text), [previous(n)[None]])]
    for example in over(one).heads[FIRST].examples:
        before, it, after = example.at
        assert it == text[example.query] and example.to[1] == text[example.key]
        assert before == text[max(0, example.query - 24) : example.query]
        assert after == text[example.query + 1 : example.query + 25]


def test_while_it_goes_on_steps_carry_what_is_known_so_far():
    texts = [plant(letters("ab" * 20), [previous(40)[None]]) for _ in range(6)]
    steps = steps_of(corpus_roles, texts.__getitem__, range(6))
    so_far = [one.value.texts for one in steps if one.value is not None]
    assert so_far == [1, 2, 4]
    done = [one.done for one in steps]
    assert done == sorted(done) and done[-1] < steps[-1].total == 6


# --- words and positions --------------------------------------------------------------------------


def test_a_head_on_the_rarest_word_of_each_sentence_is_named_where_a_corpus_counts_words():
    random = np.random.default_rng(4)
    common = [f"w{at}" for at in range(8)]
    sentences = []
    for number in range(30):
        words = list(random.choice(common, size=9))
        words.insert(int(random.integers(1, 8)), f"rare{number}")
        sentences.append(words)
    texts = []
    for words in sentences:
        n = len(words)
        weights = np.full((n, n), 0.1 / n)
        weights[:, next(at for at, one in enumerate(words) if one.startswith("rare"))] += 0.9
        texts.append(plant(spaced(words), [np.stack([weights, np.eye(n)])], causal=False))
    lexicon = Lexicon((" ".join(words) for words in sentences), common=8)
    assert lexicon.rare == 30 and lexicon.uses("rare3") == 1 and lexicon.uses("w1") == np.inf
    found = over(*texts, lexicon=lexicon).heads
    rare, same = found[FIRST], found[HeadId(0, 1)]
    assert rare.metrics["rare"] == 1 and same.metrics["rare"] == pytest.approx(0.1)
    assert key_of(rare) == "rare word" and "rarest" in role_sentence(rare)
    plain = over(*texts).heads
    assert "rare" not in plain[FIRST].metrics and key_of(plain[FIRST]) != "rare word"
    common_only = over(*texts, lexicon=Lexicon(" ".join(one) for one in sentences))
    assert any("no word is rare" in note for note in corpus_notes(common_only))


def test_in_a_causal_map_the_rarest_word_is_the_rarest_so_far():
    prompt = spaced(["the", "the", "odd", "the", "odder", "the"])
    lexicon = Lexicon(["the the the odd odd odder"], common=1)
    first, end = TokenReading(prompt, lexicon).rarest_word(causal=True)
    assert first.tolist() == [-1, -1, 2, 2, 4, 4] and end.tolist() == [-1, -1, 3, 3, 5, 5]
    first, _ = TokenReading(prompt, lexicon).rarest_word(causal=False)
    assert first.tolist() == [4] * 6
    assert TokenReading(prompt).rarest_word(causal=False)[0].tolist() == [-1] * 6
    assert TokenReading(letters(""), lexicon).rarest_word(causal=True)[0].tolist() == []


def test_offsets_of_a_shortened_level_are_in_tokens():
    def weights(layer, seen):
        n, m = seen.shape
        out = np.where(np.eye(n, m, k=-1) * seen > 0, 1.0, 0.0)
        out[~out.any(1), 0] = 1
        return np.stack([out, out])

    capture = hourglass(letters("ab" * 60), (1, 4), weights=weights)
    middle = next(one for one in capture.spec.layers if one.level == 1 and one.role == "self")
    one = over(capture).heads[HeadId(middle.index, 0)].metrics
    assert one["offset"] == -4 and one["positional"] > 0.95
    assert one["centre"] == pytest.approx(-4, abs=0.3) and one["convolution"] > 0.9


def test_two_texts_have_neither_offsets_nor_kernels_and_pruned_heads_keep_their_names():
    source, target = spaced(WORDS), spaced(WORDS[::-1])
    found = over(translated(source, target)).heads
    cross = next(one for one in found.values() if one.kind == "cross")
    assert not {"offset", "positional", "convolution", "centre"} & set(cross.metrics)
    assert "nearest" in cross.metrics
    n = 40
    maps = [np.stack([np.eye(n), previous(n)])]
    whole = plant(letters("ab" * 20), maps)
    layer = replace(whole.spec.layers[0], heads=(3, 5))
    kept = Renamed(whole.maps[0], (3, 5))
    cut = replace(whole, spec=replace(whole.spec, layers=(layer,)), maps=(kept,))
    found = over(cut).heads
    assert list(found) == [HeadId(0, 3), HeadId(0, 5)]
    assert key_of(found[HeadId(0, 5)]) == "previous token"
    assert found[HeadId(0, 5)].nearest == HeadId(0, 3)


class Renamed:
    """A map of which only some head numbers are left."""

    def __init__(self, known, numbers):
        self._known, self.heads = known, numbers
        self.shape, self.signed = known.shape, known.signed

    def read(self, head, *rest, **more):
        return self._known.read(self.heads.index(head), *rest, **more)


def test_layers_that_are_not_captured_are_left_out_and_it_is_said(small):
    part = replace(small, maps=(*small.maps[:3], *[None] * (len(small.maps) - 3)))
    found = over(part)
    assert {head.layer for head in found.heads} == {0, 1, 2}
    assert any("not captured" in note for note in corpus_notes(found))


@pytest.mark.parametrize("text", ["", "a", "ab"])
def test_tiny_texts_are_measured_without_a_word_too_much(text):
    n = len(text)
    found = over(plant(letters(text), [np.tril(np.ones((2, n, n)))]))
    assert all(not key_of(one) for one in found.heads.values())
    assert set(found.heads) == {HeadId(0, 0), HeadId(0, 1)}
    both = over(*[plant(letters(one), [np.eye(len(one))[None]]) for one in ("", "abcabcabc")])
    assert both.texts == 2 and FIRST in both.heads


def test_what_is_told_holds_every_metric_and_can_be_written_as_json(small):
    import json

    told = roles_to_dict(over(small))
    json.dumps(told, allow_nan=False)
    assert len(told["heads"]) == len(small.spec.heads)
    assert set(told["metrics"]) <= set(told["heads"][0])


# --- reading a text -------------------------------------------------------------------------------


def marked(flags, text):
    return "".join(one for one, flag in zip(text, flags, strict=True) if flag)


def test_words_begin_and_end_where_letters_do():
    text = "Don't stop: it's 12 o'clock"
    found = TokenReading(letters(text))
    assert marked(found.starts_word, text) == "Dsi1o"
    assert [text[found.word_first[i] : found.word_end[i]] for i in (2, 8, 14, 18, 25)] == [
        "Don't", "stop", "it's", "12", "o'clock",
    ]  # fmt: skip
    assert found.word_first[5] == -1 and found.word[5] == -1


def test_equal_words_are_spelled_alike_whatever_their_capitals():
    found = TokenReading(letters("The cat and the dog"))
    assert found.spelling[0] == found.spelling[12] != found.spelling[4]


def test_sentences_begin_after_full_stops_and_not_after_abbreviations():
    text = "It fell, e.g. by 3.5 m. Then it stopped! Why? 天気。明日。\nend"
    found = TokenReading(letters(text))
    assert marked(found.starts_sentence, text) == "ITW天明e"
    assert found.sentence_first[text.index("stopped")] == text.index("Then")


def test_a_token_counts_for_what_it_holds():
    found = TokenReading(pieces("The", " old", " clock", ".", " It", " rang"))
    assert found.unit == "token"
    assert list(found.starts_word) == [True, True, True, False, True, True]
    assert list(found.starts_sentence) == [True, False, False, False, True, False]
    assert list(found.is_stop) == [False, False, False, True, False, False]
    assert list(found.is_capital) == [True, False, False, False, True, False]


def test_bytes_of_one_character_are_letters_of_one_word():
    found = TokenReading(byte_prompt("né là"))
    assert found.unit == "letter"
    assert list(found.word) == [0, 0, 0, -1, 1, 1, 1]
    assert list(found.starts_word) == [True, False, False, False, True, False, False]


def test_special_tokens_are_outside_of_everything():
    spans = np.array([[-1, -1], [0, 2], [-1, -1]])
    found = TokenReading(Prompt("Hi", np.array([0, 5, 1]), ("[CLS]", "Hi", "[SEP]"), spans))
    assert list(found.word) == [-1, 0, -1]
    assert not (found.is_space | found.is_stop | found.is_capital)[[0, 2]].any()


def test_the_last_same_letter_and_the_last_letters_together():
    found = TokenReading(letters("abcab"))
    assert list(found.same_before) == [-1, -1, -1, 0, 1]
    assert found.grams[2][1] == found.grams[2][4] != found.grams[2][2]
    assert found.grams[2][0] == -1 and (found.grams[3][2:] >= 0).all()


def test_an_empty_text_has_nothing():
    found = TokenReading(letters(""))
    assert len(found.word) == len(found.sentence_first) == len(found.grams[3]) == 0


def test_a_token_of_many_words_starts_one():
    prompt = Prompt(
        text="one two three four", ids=np.array([0, 1, 2]), pieces=("one two ", "three", " four"),
        spans=np.array([[0, 8], [8, 13], [13, 18]]),
    )  # fmt: skip
    found = TokenReading(prompt)
    assert found.word.tolist() == [0, 1, 2]
    assert found.starts_word.all()
    assert found.spelling.tolist() == [0, 2, 3]


def test_a_word_of_a_million_letters_is_read_once():
    text = "A" * 1_000_000 + " " + "a" * 1_000_000
    spans = np.array([[0, 1_000_000], [1_000_001, 2_000_001]])
    found = TokenReading(Prompt(text, np.array([0, 1]), ("A", "a"), spans))
    assert found.spelling.tolist() == [0, 0]


# --- distances between heads ----------------------------------------------------------------------


def likeness(*maps, causal=False):
    capture = plant(letters("x" * maps[0].shape[1]), list(maps), causal=causal)
    heads = [HeadId(i, h) for i, one in enumerate(maps) for h in range(len(one))]
    found = HeadDistances(heads)
    found.add(capture.maps, Layout(capture, 0, {}))
    return found


def test_the_same_map_is_0_apart_and_one_without_a_common_key_1():
    n = 10
    same, other = np.eye(n), np.eye(n)[::-1]
    found = likeness(np.stack([same, same]), other[None])
    assert found.distances()[0, 1] == 0
    assert found.distances()[0, 2] == pytest.approx(1)
    near = found.nearest()
    assert near[HeadId(0, 0)] == (HeadId(0, 1), 0)
    assert near[HeadId(0, 1)] == (HeadId(0, 0), 0)
    assert near[HeadId(1, 0)][0] == HeadId(0, 0)


def test_distances_are_scipys_over_the_rows_that_are_read():
    random = np.random.default_rng(1)
    n = 70
    maps = random.gamma(0.2, size=(4, n, n))
    found = likeness(maps).distances()
    rows = np.unique(np.linspace(0, n - 1, LIKENESS_ROWS).round().astype(int))
    for i in range(4):
        for j in range(4):
            wanted = jensenshannon(maps[i][rows], maps[j][rows], base=2, axis=1).mean()
            assert found[i, j] == pytest.approx(wanted, abs=1e-5)


def test_many_heads_at_a_time_give_the_same_as_one(monkeypatch):
    maps = np.random.default_rng(2).gamma(0.3, size=(5, 20, 20))
    whole = likeness(maps).distances()
    monkeypatch.setattr("hgviz.analysis.metrics.WEIGHTS_AT_ONCE", 1)
    np.testing.assert_array_equal(likeness(maps).distances(), whole)


def test_heads_without_weight_are_like_none():
    found = likeness(np.stack([np.eye(6), np.zeros((6, 6))]))
    assert np.isnan(found.distances()[0, 1]) and found.nearest() == {}


def test_signed_maps_count_by_their_size():
    one = np.eye(8)
    assert likeness(np.stack([one, -one])).distances()[0, 1] == 0
