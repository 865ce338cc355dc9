"""The way of one letter is laid out truthfully, for every text, level and width."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hgviz.core import Prompt
from hgviz.gui.follow import ASIDE, Room, char_edges, lay, window
from hgviz.gui.layouts import stages
from tests.making import make_capture, make_spec

SEA = "The hourglass was used at sea. When the sand of the hourglass had run down, it was turned."
CAPTURES = {
    strides: make_capture(SEA, strides=strides, heads=2)
    for strides in ((1,), (1, 2), (1, 2, 4), (1, 3, 6), (1, 2, 4, 12, 24))
}


@settings(deadline=None)
@given(
    strides=st.sampled_from(list(CAPTURES)),
    token=st.integers(0, len(SEA) - 1),
    width=st.integers(300, 2400),
    height=st.integers(300, 1400),
)
def test_strips_are_inside_apart_and_hold_the_letter(strides, token, width, height):
    capture = CAPTURES[strides]
    way = stages(capture.spec)
    room = Room(width, height)
    course = lay(capture, way, token, char_edges(capture), room)
    first, last = course.shown
    assert 0 <= first <= token < last <= len(SEA)
    assert first % strides[-1] == 0
    for above, below in zip(course.strips, course.strips[1:], strict=False):
        assert above.bottom + 80 < below.top
    assert course.together.bottom < course.height
    for strip, own in zip(course.strips, course.own, strict=True):
        assert room.left - 0.01 <= strip.left
        assert strip.right <= max(width - room.right, room.left + 80) + 0.01
        for (p, _, right), (q, left, _) in zip(strip.cells, strip.cells[1:], strict=False):
            assert q == p + 1 and left == pytest.approx(right)
        cell = strip.cell(own)
        assert cell is not None and cell[0] < cell[1]
        assert strip.at(sum(cell) / 2, strip.top + 1) == own


@settings(deadline=None)
@given(token=st.integers(0, len(SEA) - 1), width=st.integers(300, 2400))
def test_a_cell_spans_exactly_the_letters_it_stands_for(token, width):
    capture = CAPTURES[1, 2, 4]
    course = lay(capture, stages(capture.spec), token, char_edges(capture), Room(width, 800))
    for strip in course.strips:
        for position, left, right in strip.cells[1:]:
            start, end = capture.spans[strip.level][position]
            assert left == pytest.approx(strip.x(start))
            assert right == pytest.approx(strip.x(end))


def test_strips_are_centred_and_narrower_where_the_text_is_shorter():
    capture = CAPTURES[1, 2, 4]
    course = lay(capture, stages(capture.spec), 60, char_edges(capture), Room(1600, 858))
    middles = [(one.left + one.right) / 2 for one in course.strips]
    assert max(middles) - min(middles) < 1
    wide = [one.right - one.left for one in course.strips]
    assert wide[0] > wide[1] > wide[2] < wide[3] < wide[4]
    assert wide[1] == wide[3]
    assert course.outline[0] == (course.strips[0].right + ASIDE, course.strips[0].top - ASIDE)


def test_the_thread_takes_what_is_pooled_and_gives_it_back():
    capture = CAPTURES[1, 2, 4]
    course = lay(capture, stages(capture.spec), 60, char_edges(capture), Room(1600, 858))
    top, first = course.crossings[0], course.strips[0]
    assert top.thread[:2] == (first.x(59), first.x(61))
    assert top.thread[2:] == course.strips[1].cell(30)
    assert top.others is None
    up, two = course.crossings[2], course.strips[3]
    assert up.thread == (*course.strips[2].cell(15), *two.cell(30))
    assert up.others[2:] == (two.cell(30)[0], two.cell(31)[1])


def test_lines_join_the_positions_that_meet():
    capture = CAPTURES[1, 2]
    course = lay(capture, stages(capture.spec), 40, char_edges(capture), Room(1600, 858))
    down, up = course.crossings
    outer, inner = course.strips[0], course.strips[1]
    for number, (above, below, known) in enumerate(down.lines):
        end = capture.spans[1][number][1]
        assert (above, below) == (outer.x(end), inner.cell(number)[1])
        assert known == (end <= 41)
    for number, (above, below, _) in enumerate(up.lines):
        assert (above, below) == (inner.cell(number)[0], outer.x(2 * number))


@settings(deadline=None)
@given(st.integers(1, 400), st.floats(10, 500), st.sampled_from([1, 2, 4, 24]), st.data())
def test_a_window_holds_the_letter_and_starts_on_a_whole_position(tokens, fits, unit, data):
    token = data.draw(st.integers(0, tokens - 1))
    first, last = window(np.arange(tokens + 1.0), token, fits, unit)
    assert 0 <= first <= token < last <= tokens
    assert first % unit == 0
    if tokens <= fits:
        assert (first, last) == (0, tokens)


def test_word_pieces_are_as_wide_as_their_words():
    base = make_capture("abcd")
    pieces = ("The", "hourglass", "was", "extraordinarily-long")
    spans, at = [], 0
    for one in pieces:
        spans.append((at, at + len(one)))
        at += len(one) + 1
    prompt = Prompt(" ".join(pieces), np.arange(4), pieces, np.array(spans))
    assert char_edges(replace(base, prompt=prompt)).tolist() == [0, 4, 14, 18, 31]
    assert char_edges(base).tolist() == [0, 1, 2, 3, 4]


def test_stages_say_in_words_what_happens():
    spec = make_spec((1, 2, 4), 6)
    way = stages(spec)
    assert [one.title(spec, "letter") for one in way] == [
        "Read every letter",
        "Two letters become one",
        "Four letters become one: look far, cheaply",
        "Spread back to two letters",
        "Back at every letter, with what was learnt",
    ]
    assert way[0].note(spec, 136) == "136 positions, layers 0 and 1"
    assert way[1].note(spec, 68) == "68 positions, layer 3, a quarter of the cost"
    assert way[2].note(spec, 34) == "34 positions, layers 5 to 7, a sixteenth of the cost"
    assert way[3].note(spec, 68) == "68 positions, layer 9"
    assert [one.entries for one in way] == [(), (2,), (4,), (8,), (10,)]
    odd = make_spec((1, 3, 24), 2)
    assert [one.title(odd, "token") for one in stages(odd)][1:3] == [
        "Three tokens become one",
        "24 tokens become one: look far, cheaply",
    ]


def test_a_model_without_levels_is_followed_in_groups_of_layers():
    spec = make_spec((1,), 2)
    layers = tuple(replace(spec.layers[0], index=n) for n in range(12))
    way = stages(replace(spec, layers=layers))
    assert [one.layers for one in way] == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)]
    assert way[0].title(spec, "token") == "Layers 0 to 2"
    assert len(stages(replace(spec, layers=layers[:1]))) == 1
