"""Hierarchies: strings and depth tuples say the same, and illegal ones are refused by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.core import HgvizError
from hgviz.models.hierarchy import Hierarchy, from_depth, parse_hierarchy


def test_a_string_and_a_depth_tuple_say_the_same():
    shape = parse_hierarchy("2@1 1@3 4@6 1@3 2@1")
    assert shape == from_depth((2, (1, 4, 1), 2), (3, 2))
    assert shape == parse_hierarchy("1@3 4@6 1@3", vanilla=(2, 2))
    assert (shape.pre, shape.middle, shape.post, shape.factors) == ((2, 1), 4, (2, 1), (3, 2))
    assert shape.strides == (1, 3, 6)


def test_a_scalar_factor_serves_every_level_and_lists_are_tuples():
    assert from_depth([1, [1, 2, 1], 2], 2) == parse_hierarchy("1@1 1@2 2@4 1@2 2@1")
    assert from_depth(3) == parse_hierarchy("3@1")


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(2, 4)), max_size=4),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(0, 4),
)
def test_every_hierarchy_comes_back_from_its_string(inner, middle, first, last):
    counts = tuple(count for count, _ in inner[1:])
    factors = tuple(factor for _, factor in inner)
    pre, post = ((first, *counts), (last, *counts)) if inner else ((), ())
    shape = Hierarchy(pre, middle, post, factors)
    assert parse_hierarchy(str(shape)) == shape


def test_the_cost_of_a_layer_falls_with_its_level():
    """12 d^2 n / K + 2 n^2 d / K^2 multiply-adds, models.md A.2."""
    assert parse_hierarchy("1@1").cost(100, 8) == 12 * 64 * 100 + 2 * 10_000 * 8
    whole = parse_hierarchy("1@1 1@2 1@1").cost(100, 8)
    assert whole == 2 * parse_hierarchy("1@1").cost(100, 8) + 12 * 64 * 50 + 2 * 2500 * 8


@pytest.mark.parametrize(
    "text, why",
    [
        ("", "it is not a row of LAYERS@FACTOR"),
        ("2@1 1-2 2@1", "it is not a row of LAYERS@FACTOR"),
        ("1@2 1@2", "it has no single waist: the number of stages is even"),
        ("1@3 4@6 1@3", "it starts shortened and vanilla_layers (before, after) is missing"),
        ("1@1 1@2 1@3", "its factors do not mirror around the waist"),
        ("1@1 1@2 1@4 2@2 1@1", "its shortened layers do not mirror around the waist"),
        ("1@1 1@2 1@3 1@2 1@1", "factor 3 is not 2, 3, ... times the factor 2 around it"),
        ("1@1 1@1 1@1", "factor 1 is not 2, 3, ... times the factor 1 around it"),
        ("1@1 0@2 1@1", "a shortened stage needs a layer; all have at most 1,000"),
        ("1@1 1@131072 1@1", "it shortens by more than 65,536"),
    ],
)
def test_an_illegal_string_is_refused_in_one_line(text, why):
    with pytest.raises(HgvizError) as caught:
        parse_hierarchy(text)
    assert str(caught.value) == (
        f"the hierarchy {text!r} cannot be built. {why}. "
        'Write "LAYERS@FACTOR" down to the waist and back up, such as "2@1 1@2 3@4 1@2 2@1".'
    )


@pytest.mark.parametrize(
    "depth, factor, why",
    [
        ((1, 2), 2, "a depth is a number or (before, inner, after)"),
        ((1, (1, 2, 1), 1), (2,), "shorten_factor (2,) is no number >= 2 for each of its 2 levels"),
        ((1, 1, 1), (2, 2), "shorten_factor (2, 2) is no number >= 2 for each of its 1 levels"),
        ((1, 1, 1), None, "shorten_factor None is no number >= 2 for each of its 1 levels"),
        ((1, 1, 1), 1, "shorten_factor 1 is no number >= 2 for each of its 1 levels"),
        ((1, 0, 1), 2, "the innermost needs a layer; all have at most 1,000"),
    ],
)
def test_an_illegal_depth_is_refused_in_one_line(depth, factor, why):
    with pytest.raises(HgvizError) as caught:
        from_depth(depth, factor)
    assert str(caught.value) == (
        f"the hierarchy {depth!r} cannot be built. {why}. "
        "Give depth as (2, (1, 4, 1), 2) with shorten_factor (3, 2), or as a number."
    )
