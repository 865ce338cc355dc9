"""One grid for two heads: the same cells, tokens, or the pieces that two texts share."""

from dataclasses import replace

import numpy as np
import pytest

from hgviz.analysis.alignment import Alignment
from hgviz.analysis.meeting import Meeting
from hgviz.analysis.pairing import counterpart
from hgviz.core import HeadId, Prompt
from hgviz.maps import Projected
from tests.making import make_capture

TEXT = "The sand ran down."
FIRST = HeadId(0, 0)


def met(a, b, head=FIRST, other=None):
    return Meeting.of(Alignment(a, b), head, other or head)


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
    found = met(a, b)
    assert found.same and found.shape == a.maps[0].shape[1:]
    assert found.rows.both.all() and found.columns.both.all()
    assert found.cell(7, 3) == (7, 3) and found.tokens(7, 3) == (7, 3)


def test_two_levels_meet_in_tokens():
    a = make_capture("abcdefghij", strides=(1, 2, 4))
    middle = next(one.index for one in a.spec.layers if one.role == "self" and one.level == 2)
    found = met(a, a, HeadId(0, 1), HeadId(middle, 1))
    assert found.shape == (10, 10) and not found.same and found.rows.by_token
    # a token is spoken for by the position whose newest token is no later than it
    assert found.rows.b.positions.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
    # position g holds the tokens up to 4 g: the last one is in none, as nobody can look at it
    assert found.columns.b.positions.tolist() == [0, 1, 1, 1, 1, 2, 2, 2, 2]
    assert found.columns.both.tolist() == [True] * 9 + [False]
    assert found.cell(9, 9) == (9, 9) and found.tokens(6, 5) == (6, 5)


def test_a_level_spread_to_tokens_is_the_map_by_hand():
    a = make_capture("abcdefghijkl", strides=(1, 2, 4))
    middle = next(one.index for one in a.spec.layers if one.role == "self" and one.level == 2)
    found = met(a, a, HeadId(0, 1), HeadId(middle, 1))
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
    found = met(a, b)
    assert len(found.rows) == 4 and found.rows.both.all()
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
    found = met(a, b)
    assert found.shape == (18, 18) and not found.same
    assert found.rows.a.there.sum() == 12 and found.rows.b.there.all()
    gone = np.flatnonzero(~found.rows.both)
    assert len(gone) == 6 and (np.diff(gone) == 1).all() and gone[0] in (7, 8)
    assert found.tokens(int(gone[0]), 0) == (None, 0)
    for token in range(12):
        cell = found.cell(token, token)[0]
        assert found.tokens(cell, cell) == (token, token)
    ends = found.rows.spans[0]
    assert (np.diff(ends[:, 1]) >= 0).all()  # so that words can be found in it


def test_texts_that_share_nothing_have_no_cell_in_common():
    found = met(make_capture("aaaa"), make_capture("bbbbb"))
    assert found.shape == (9, 9) and not found.rows.both.any()


def test_no_position_is_lost_or_doubled_whatever_the_texts():
    random = np.random.default_rng(0)
    for _ in range(20):
        texts = ["".join(random.choice(list("ab c."), random.integers(1, 30))) for _ in range(2)]
        found = met(*(make_capture(text, strides=(1,), heads=1) for text in texts))
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
