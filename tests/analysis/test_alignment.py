"""Which positions of two captures stand for the same part of a text, and one grid for two heads."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.analysis.alignment import Alignment, SharedGrid, common_pieces, counterpart
from hgviz.core import Capture, HeadId, Layer, Level, ModelSpec, Prompt
from hgviz.maps import DenseMap, Projected
from tests.making import byte_prompt, make_capture

TEXT = "The sand ran down."
FIRST = HeadId(0, 0)


def shared_grid(a, b, head=FIRST, other=None):
    return SharedGrid.of(Alignment(a, b), head, other or head)


def in_words(text):
    """A capture of one level whose tokens are words, with the space before them."""
    a = make_capture("x" * len(text.split()), strides=(1,), heads=2)
    pieces, start = [], 0
    for word in text.split():
        end = text.index(word, start) + len(word)
        pieces.append((start, end))
        start = end
    spans = np.array(pieces, np.int64)
    words = tuple(text[first:last] for first, last in pieces)
    return replace(a, prompt=Prompt(text, np.arange(len(words)), words, spans))


# --- which cells ----------------------------------------------------------------------------------


def test_two_models_on_one_text_meet_in_the_cells_they_have():
    a, b = (make_capture(TEXT, seed=seed) for seed in range(2))
    found = shared_grid(a, b)
    assert found.is_identity and found.shape == a.maps[0].shape[1:]
    assert found.rows.in_both.all() and found.columns.in_both.all()
    assert found.cell(7, 3) == (7, 3) and found.tokens(7, 3) == (7, 3)


def test_two_levels_meet_in_tokens():
    a = make_capture("abcdefghij", strides=(1, 2, 4))
    middle = next(one.index for one in a.spec.layers if one.role == "self" and one.level == 2)
    found = shared_grid(a, a, HeadId(0, 1), HeadId(middle, 1))
    assert found.shape == (10, 10) and not found.is_identity and found.rows.by_token
    # a token is spoken for by the position whose newest token is no later than it
    assert found.rows.b.positions.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
    # position g holds the tokens up to 4 g: the last one is in none, as nobody can look at it
    assert found.columns.b.positions.tolist() == [0, 1, 1, 1, 1, 2, 2, 2, 2]
    assert found.columns.in_both.tolist() == [True] * 9 + [False]
    assert found.cell(9, 9) == (9, 9) and found.tokens(6, 5) == (6, 5)


def test_a_level_spread_to_tokens_is_the_map_by_hand():
    a = make_capture("abcdefghijkl", strides=(1, 2, 4))
    middle = next(one.index for one in a.spec.layers if one.role == "self" and one.level == 2)
    found = shared_grid(a, a, HeadId(0, 1), HeadId(middle, 1))
    laid = Projected(a.maps[middle], found.rows.b, found.columns.b).read(1)
    whole = a.maps[middle].read(1)
    for t in range(12):
        for u in range(12):
            holders = [g for g, (x, y) in enumerate(a.spans[2]) if x <= u < y]
            share = sum(whole[t // 4, g] / (a.spans[2][g, 1] - a.spans[2][g, 0]) for g in holders)
            assert laid[t, u] == pytest.approx(share, abs=1e-6)
    assert np.allclose(laid.sum(1), np.repeat(whole.sum(1), 4), atol=1e-5)
    assert not np.triu(laid, 1).any()  # still causal


def test_letters_and_words_of_one_text_meet_in_words():
    a, b = make_capture(TEXT, strides=(1,), heads=2), in_words(TEXT)
    found = shared_grid(a, b)
    assert len(found.rows) == 4 and found.rows.in_both.all()
    laid = Projected(a.maps[0], found.rows.a, found.columns.a).read(0)
    cuts = [0, 3, 8, 12, 18]
    whole = a.maps[0].read(0)
    for i in range(4):
        for j in range(4):
            block = whole[cuts[i] : cuts[i + 1], cuts[j] : cuts[j + 1]]
            assert laid[i, j] == pytest.approx(block.sum(1).mean(), abs=1e-6)
    assert found.cell(4, 0) == (1, 0) and found.tokens(1, 0) == (7, 2)


def test_what_only_one_text_has_stands_between():
    a, b = make_capture("one two four"), make_capture("one two three four")
    found = shared_grid(a, b)
    assert found.shape == (18, 18) and not found.is_identity
    assert found.rows.a.there.sum() == 12 and found.rows.b.there.all()
    gone = np.flatnonzero(~found.rows.in_both)
    assert len(gone) == 6 and (np.diff(gone) == 1).all() and gone[0] in (7, 8)
    assert found.tokens(int(gone[0]), 0) == (None, 0)
    for token in range(12):
        cell = found.cell(token, token)[0]
        assert found.tokens(cell, cell) == (token, token)
    ends = found.rows.spans[0]
    assert (np.diff(ends[:, 1]) >= 0).all()  # so that words can be found in it


def test_texts_that_share_nothing_have_no_cell_in_common():
    found = shared_grid(make_capture("aaaa"), make_capture("bbbbb"))
    assert found.shape == (9, 9) and not found.rows.in_both.any()


def test_no_position_is_lost_or_doubled_whatever_the_texts():
    random = np.random.default_rng(0)
    for _ in range(20):
        texts = ["".join(random.choice(list("ab c."), random.integers(1, 30))) for _ in range(2)]
        found = shared_grid(*(make_capture(text, strides=(1,), heads=1) for text in texts))
        for axis, text in ((found.rows.a, texts[0]), (found.rows.b, texts[1])):
            assert sorted(axis.positions) == list(range(len(text)))
            assert (np.diff(axis.cells) >= 0).all()


# --- which head -----------------------------------------------------------------------------------


def test_the_head_of_the_same_number_stands_beside_unless_another_is_chosen():
    a, b = make_capture(TEXT), make_capture(TEXT, heads=3)
    assert counterpart(a, b, HeadId(4, 2)) == HeadId(4, 2)
    assert counterpart(a, b, HeadId(4, 2), HeadId(0, 1)) == HeadId(0, 1)


def test_a_head_that_b_lacks_has_none_beside_it():
    a, b = make_capture(TEXT), make_capture(TEXT, heads=3)
    assert counterpart(a, b, HeadId(4, 5)) is None
    assert counterpart(a, b, HeadId(4, 2), HeadId(99, 0)) is None
    halted = replace(b, maps=(*b.maps[:4], None, *b.maps[5:]))
    assert counterpart(a, halted, HeadId(4, 2)) is None
    assert counterpart(a, make_capture(TEXT, strides=(1,)), HeadId(2, 0)) is None  # it resamples


# --- which positions ------------------------------------------------------------------------------


NOWHERE = (-1, -1)


def tokens(text, *spans):
    """A prompt of tokens by their characters; a name stands for a special token."""
    pieces = [one if isinstance(one, str) else text[slice(*one)] for one in spans]
    places = [NOWHERE if isinstance(one, str) else one for one in spans]
    ids = [sum(piece.encode()) for piece in pieces]
    return Prompt(text, np.array(ids), tuple(pieces), np.array(places).reshape(-1, 2))


def plain(prompt, stride=1, shift=0):
    """A capture of one layer, at a level of so many tokens a position."""
    count = len(prompt)
    first = np.arange(0, count, stride) - shift
    spans = np.stack([np.maximum(first, 0), np.minimum(first + stride, count)], 1)
    layer = Layer(0, "layer.0", "self", 0, 0, (0,), ("softmax",), False)
    spec = ModelSpec("plain", "plain", (Level(0, stride),), (layer,), 8, 256)
    one = DenseMap(np.broadcast_to(np.float32(0), (1, len(spans), len(spans))), (0,))
    return Capture(spec, prompt, (spans,), (one,))


def rows(a, b):
    found = Alignment(a, b).rows(a.spec.layers[0], b.spec.layers[0])
    return found.a.tolist(), found.b.tolist()


def test_the_same_tokens_meet_one_by_one():
    one = plain(byte_prompt("häuser"))
    assert rows(one, one) == (list(range(7)), list(range(7)))
    assert Alignment(one, one).tokens().is_identity


def test_a_text_cut_otherwise_meets_in_the_finest_pieces_that_both_have():
    text = "unhappy end"
    a = plain(tokens(text, (0, 7), (7, 11)))
    b = plain(tokens(text, (0, 2), (2, 7), (8, 11)))
    assert rows(a, b) == ([0, 1], [0, 0, 1])
    assert rows(b, a) == ([0, 0, 1], [0, 1])
    crossing = plain(tokens(text, (0, 5), (5, 11)))
    assert rows(a, crossing) == ([0, 0], [0, 0])


def test_special_tokens_meet_by_their_names_in_turn():
    text = "ab cd"
    a = plain(tokens(text, "[CLS]", (0, 2), "[SEP]", (3, 5), "[SEP]"))
    b = plain(tokens(text, "[CLS]", "[CLS]", (0, 1), (1, 2), "[SEP]", (3, 5)))
    assert rows(a, b) == ([0, 1, 2, 3, -1], [0, -1, 1, 1, 2, 3])


def test_bytes_of_a_character_are_one_piece_beside_characters():
    text = "aäb"
    assert rows(plain(byte_prompt(text)), plain(tokens(text, (0, 1), (1, 2), (2, 3)))) == (
        [0, 1, 1, 2],
        [0, 1, 2],
    )


def test_levels_meet_where_both_begin_a_position():
    prompt = byte_prompt("abcdefghij")
    assert rows(plain(prompt, 2), plain(prompt, 4)) == ([0, 0, 1, 1, 2], [0, 1, 2])
    assert rows(plain(prompt, 2), plain(prompt, 3)) == ([0, 0, 0, 1, 1], [0, 0, 1, 1])
    # one shifted by a token, as a causal model shortens, meets nowhere before the end
    assert rows(plain(prompt, 2), plain(prompt, 2, shift=1))[0] == [0] * 5
    # which is no piece of a text any more where that is long
    long = byte_prompt("abcdefghij" * 20)
    assert max(rows(plain(long, 2), plain(long, 2, shift=1))[0]) == -1


def test_other_texts_meet_in_the_words_that_both_have():
    a = plain(byte_prompt("the old cat sat"))
    b = plain(byte_prompt("the cat sat down"))
    first, second = rows(a, b)
    assert [one for one, piece in zip("the old cat sat", first, strict=True) if piece >= 0] == [
        *"the cat sat"
    ]
    assert first[3:7] == [-1] * 4  # " old"
    assert second == [*range(11), -1, -1, -1, -1, -1]
    # a token that reaches into a word that the other lacks has no counterpart
    words = plain(tokens("the old cat sat", (0, 7), (7, 11), (11, 15)))
    assert rows(words, b)[0] == [-1, 0, 1]


def test_a_token_that_the_other_text_breaks_up_is_no_counterpart():
    a = plain(tokens("cat sat", (0, 7)))
    b = plain(tokens("cat has sat", (0, 11)))
    assert rows(a, b) == ([-1], [-1])


def test_ids_without_a_text_meet_by_their_names():
    def ids(*pieces):
        nowhere = np.full((len(pieces), 2), -1)
        return plain(Prompt("", np.arange(len(pieces)), pieces, nowhere))

    assert rows(ids("a", "b", "c"), ids("a", "x", "c")) == ([0, -1, 1], [0, -1, 1])


def test_empty_texts_and_nothing_in_common_are_no_piece():
    empty = plain(tokens(""))
    assert rows(empty, empty) == ([], [])
    assert Alignment(plain(byte_prompt("abc")), plain(byte_prompt("xyz"))).tokens().count == 0
    assert Alignment(empty, plain(byte_prompt("abc"))).tokens().count == 0


def test_two_long_texts_meet_in_their_ends_in_little_time():
    inner = [" ".join(str(i * step % 997) for i in range(30_000)) for step in (7, 11)]
    texts = [f"The same beginning. {one} The same end." for one in inner]
    found = Alignment(*(plain(byte_prompt(one)) for one in texts)).tokens()
    assert 33 <= found.count < 100
    assert found.a[-9:].tolist() == list(range(found.count - 9, found.count))


def test_a_shortened_layer_meets_itself_with_the_zeros_of_its_shift():
    one = make_capture()
    other = replace(one, spec=replace(one.spec, name="another"))
    for layer in one.spec.layers:
        alignment = Alignment(one, other)
        assert alignment.rows(layer, layer).is_identity
        assert alignment.columns(layer, layer).is_identity


@given(st.text("ab \n", max_size=12), st.data())
def test_pieces_never_fall_and_hold_the_same_characters_on_both_sides(text, data):
    sides = []
    for _ in range(2):
        cuts = data.draw(st.sets(st.integers(0, len(text))))
        ends = sorted({0, len(text), *cuts})
        sides.append(tokens(text, *zip(ends[:-1], ends[1:], strict=True)))
    found = rows(*map(plain, sides))
    for piece in range(max(found[0], default=-1) + 1):
        held = [
            "".join(one.pieces[at] for at, number in enumerate(numbers) if number == piece)
            for one, numbers in zip(sides, found, strict=True)
        ]
        assert held[0] == held[1] != ""
    for numbers in found:
        kept = [one for one in numbers if one >= 0]
        assert kept == sorted(kept)
        assert set(kept) == set(range(max(kept, default=-1) + 1))


@pytest.mark.parametrize("seed", range(5))
def test_numbers_that_fall_are_left_out(seed):
    random = np.random.default_rng(seed)
    found = common_pieces(random.integers(-1, 6, 12), random.integers(-1, 6, 12))
    for side in (found.a, found.b):
        kept = side[side >= 0]
        assert (np.diff(kept) >= 0).all()
        assert set(kept.tolist()) == set(range(found.count))
