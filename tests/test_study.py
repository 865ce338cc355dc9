"""What a study says of itself."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.study import UNASKED, Curve
from tests.studying import make_study


def test_no_array_of_a_study_can_be_written():
    study = make_study()
    for one in (study, *study.learned, *study.curves):
        arrays = [getattr(one, each.name) for each in fields(one)]
        arrays = [array for array in arrays if isinstance(array, np.ndarray)]
        assert arrays and not any(array.flags.writeable for array in arrays)


def test_what_fills_an_array_goes_on_behind_a_study():
    loss = np.zeros(9, np.float32)
    study = make_study()
    growing = type(study)(
        study.spec, study.heads, "classes", "accuracy", study.places, study.wanted, study.lengths,
        loss, study.given,
    )  # fmt: skip
    loss[3] = 1
    assert growing.loss[3] == 1


@given(st.integers(1, 30), st.sampled_from(["classes", "next", "masked"]), st.integers(0, 99))
def test_places_of_examples_are_those_between_their_ends(examples, asked, seed):
    study = make_study(seed, examples, asked)
    rows = np.random.default_rng(seed).random(examples) < 0.5
    expected = np.zeros(len(study.wanted), bool)
    for row in np.flatnonzero(rows):
        expected[study.places[row] : study.places[row + 1]] = True
    assert (study.places_of(rows) == expected).all()
    assert (study.places_of(np.flatnonzero(rows)) == expected).all()
    assert len(study) == examples and study.counts.sum() == len(study.wanted)


def test_what_was_not_asked_is_not_right():
    study = make_study(1, 20, done=0.5)
    assert not study.right[10:].any() and study.answered.tolist() == [True] * 10 + [False] * 10
    assert (study.given[10:] == UNASKED).all()


def test_a_curve_knows_what_is_off_at_each_step():
    one: Curve = make_study().curves[0]
    assert one.off(0) == frozenset()
    assert one.off(3) == {*one.order[:3]}
    with pytest.raises(AttributeError):
        one.seed = 1
