"""Which positions of two captures stand for the same part of a text, and one grid for two heads."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.analysis.alignment import Alignment, SharedGrid, counterpart
from hgviz.core import Capture, HeadId, Layer, Level, ModelSpec, Prompt
from hgviz.maps import DenseMap, Projected
from tests.making import byte_prompt, make_capture

TEXT = "The sand ran down."
FIRST = HeadId(0, 0)
NOWHERE = (-1, -1)


def shared_grid(a, b, head=FIRST, other=None):
    return SharedGrid.of(Alignment(a, b), head, other or head)


def tokens(text, *spans):
    """A prompt of tokens by their characters; a name stands for a special token."""
    pieces = [one if isinstance(one, str) else text[slice(*one)] for one in spans]
    places = [NOWHERE if isinstance(one, str) else one for one in spans]
    ids = [sum(piece.encode()) for piece in pieces]
    return Prompt(text, np.array(ids), tuple(pieces), np.array(places).reshape(-1, 2))


def ids(*pieces):
    """A prompt of ids without a text."""
    return Prompt("", np.arange(len(pieces)), pieces, np.full((len(pieces), 2), -1))


def plain(prompt, stride=1, shift=0):
    """A capture of one layer, at a level of so many tokens a position."""
    count = len(prompt)
    first = np.arange(0, count, stride) - shift
    spans = np.stack([np.maximum(first, 0), np.minimum(first + stride, count)], 1)
    layer = Layer(0, "layer.0", "self", 0, 0, (0,), ("softmax",), False)
    spec = ModelSpec("plain", "plain", (Level(0, stride),), (layer,), 8, 256)
    one = DenseMap(np.broadcast_to(np.float32(0), (1, len(spans), len(spans))), (0,))
    return Capture(spec, prompt, (spans,), (one,))


# --- which cells ----------------------------------------------------------------------------------


def test_two_levels_meet_in_tokens_and_a_level_spread_to_them_is_the_map_by_hand():
    a = make_capture("abcdefghijkl", strides=(1, 2, 4))
    middle = next(one.index for one in a.spec.layers if one.role == "self" and one.level == 2)
    found = shared_grid(a, a, HeadId(0, 1), HeadId(middle, 1))
    assert found.shape == (12, 12) and not found.is_identity and found.rows.by_token
    # a token is spoken for by the position whose newest token is no later than it
    assert found.rows.b.positions.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]
    # position g holds the tokens up to 4 g: the last ones are in none, as nobody can look at them
    assert found.columns.b.positions.tolist() == [0, 1, 1, 1, 1, 2, 2, 2, 2]
    assert found.columns.in_both.tolist() == [True] * 9 + [False] * 3
    assert found.cell(9, 9) == (9, 9) and found.tokens(6, 5) == (6, 5)
    laid = Projected(a.maps[middle], found.rows.b, found.columns.b).read(1)
    weights, spans = a.maps[middle].read(1), a.spans[2]
    shares = np.zeros((3, 12))
    for position, (start, stop) in enumerate(spans):
        if start >= 0:
            shares[:, start:stop] += weights[:, [position]] / (stop - start)
    np.testing.assert_allclose(laid, shares.repeat(4, 0), atol=1e-6)
    np.testing.assert_allclose(laid.sum(1), np.repeat(weights.sum(1), 4), atol=1e-5)
    assert not np.triu(laid, 1).any()  # still causal


# --- which head -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "chosen", "expected"),
    [
        ((4, 2), None, (4, 2)), ((4, 2), (0, 1), (0, 1)), ((4, 5), None, None),
        ((4, 2), (99, 0), None), ((3, 2), None, None),
    ],
)  # fmt: skip
def test_the_head_of_the_same_number_stands_beside_unless_another_is_chosen(head, chosen, expected):
    a, b = make_capture(TEXT), make_capture(TEXT, heads=3)
    b = replace(b, maps=(*b.maps[:3], None, *b.maps[4:]))  # a capture that was stopped
    found = counterpart(a, b, HeadId(*head), chosen and HeadId(*chosen))
    assert found == (expected and HeadId(*expected))


# --- which positions ------------------------------------------------------------------------------


UNHAPPY, LONG = "unhappy end", "abcdefghij" * 20


@pytest.mark.parametrize(
    ("a", "b", "pieces"),
    [
        # the same tokens, one by one
        (plain(byte_prompt("häuser")), plain(byte_prompt("häuser")), ([*range(7)], [*range(7)])),
        # the finest pieces that both have
        (plain(tokens(UNHAPPY, (0, 7), (7, 11))), plain(tokens(UNHAPPY, (0, 2), (2, 7), (8, 11))),
         ([0, 1], [0, 0, 1])),
        # special tokens by their names in turn
        (plain(tokens("ab cd", "[CLS]", (0, 2), "[SEP]", (3, 5), "[SEP]")),
         plain(tokens("ab cd", "[CLS]", "[CLS]", (0, 1), (1, 2), "[SEP]", (3, 5))),
         ([0, 1, 2, 3, -1], [0, -1, 1, 1, 2, 3])),
        # levels, where both begin a position; one that a causal model shifts has no such place
        # before the end, which is no piece of a long text
        (plain(byte_prompt(LONG[:10]), 2), plain(byte_prompt(LONG[:10]), 4),
         ([0, 0, 1, 1, 2], [0, 1, 2])),
        (plain(byte_prompt(LONG[:10]), 2), plain(byte_prompt(LONG[:10]), 2, shift=1),
         ([0] * 5, [0] * 5)),
        (plain(byte_prompt(LONG), 2), plain(byte_prompt(LONG), 2, shift=1),
         ([-1] * 100, [-1] * 100)),
        # of other texts the words that both have
        (plain(byte_prompt("the old cat sat")), plain(byte_prompt("the cat sat down")),
         ([0, 1, 2, *[-1] * 4, *range(3, 11)], [*range(11), *[-1] * 5])),
        # no token that reaches into a word that the other lacks, or that it breaks up
        (plain(tokens("the old cat sat", (0, 7), (7, 11), (11, 15))),
         plain(byte_prompt("the cat sat down")),
         ([-1, 0, 1], [*[-1] * 3, *[0] * 4, *[1] * 4, *[-1] * 5])),
        (plain(tokens("cat sat", (0, 7))), plain(tokens("cat has sat", (0, 11))), ([-1], [-1])),
        # ids by their names
        (plain(ids("a", "b", "c")), plain(ids("a", "x", "c")), ([0, -1, 1], [0, -1, 1])),
        # nothing
        (plain(tokens("")), plain(byte_prompt("abc")), ([], [-1] * 3)),
        (plain(byte_prompt("abc")), plain(byte_prompt("xyz")), ([-1] * 3, [-1] * 3)),
    ],
)  # fmt: skip
def test_positions_share_the_finest_pieces_that_both_texts_have(a, b, pieces):
    for one, other, expected in ((a, b, pieces), (b, a, pieces[::-1])):
        found = Alignment(one, other).rows(one.spec.layers[0], other.spec.layers[0])
        assert (found.a.tolist(), found.b.tolist()) == expected


def test_two_long_texts_meet_in_their_ends_in_little_time():
    inner = [" ".join(str(i * step % 997) for i in range(30_000)) for step in (7, 11)]
    texts = [f"The same beginning. {one} The same end." for one in inner]
    found = Alignment(*(plain(byte_prompt(one)) for one in texts)).tokens()
    assert 33 <= found.count < 100
    assert found.a[-9:].tolist() == list(range(found.count - 9, found.count))


@given(st.text("ab \n", max_size=12), st.data())
def test_pieces_never_fall_and_hold_the_same_characters_on_both_sides(text, data):
    sides = []
    for _ in range(2):
        cuts = data.draw(st.sets(st.integers(0, len(text))))
        ends = sorted({0, len(text), *cuts})
        sides.append(tokens(text, *zip(ends[:-1], ends[1:], strict=True)))
    found = Alignment(*map(plain, sides)).tokens()
    characters = [
        {number: "".join(np.array(one.pieces)[numbers == number]) for number in range(found.count)}
        for one, numbers in zip(sides, (found.a, found.b), strict=True)
    ]
    assert characters[0] == characters[1] and "" not in characters[0].values()
    require_ascending(found)


def require_ascending(found):
    for side in (found.a, found.b):
        numbers = side[side >= 0]
        assert (np.diff(numbers) >= 0).all()
        assert set(numbers.tolist()) == set(range(found.count))
