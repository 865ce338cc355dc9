"""Attributions as numbers: rank correlation, completeness, what lies behind a column."""

import math

import numpy as np
import pytest

from hgviz.analysis.attribution import Attribution, Beside, Question
from hgviz.core import HeadId
from tests.making import make_capture


def made(capture, tokens, **fields):
    given = {"value": 3.0, "start": 1.0, "source": None, "heads": {}}
    return Attribution(
        Question(0), capture.prompt, None, frozenset(), tokens=tokens, **given | fields
    )


def test_completeness_is_what_is_missing_of_the_change():
    capture = make_capture(text="short text")
    assert made(capture, np.full(10, 0.2)).error == pytest.approx(0, abs=1e-12)
    assert made(capture, np.full(10, 0.1)).error == pytest.approx(0.5)
    assert made(capture, np.zeros(10), start=3.0).error == 0
    assert made(capture, np.ones(10), start=3.0).error == math.inf


@pytest.mark.parametrize("layer", [0, 2, 3, 4, 6, 8, 10, 12])
def test_a_column_stands_for_the_tokens_behind_it(layer):
    capture = make_capture(text="a text of some length that is no multiple of four")
    tokens = np.random.default_rng(0).normal(size=len(capture.prompt))
    found = made(capture, tokens).behind(capture, layer)
    spans = capture.key_spans(layer)
    assert len(found) == capture.maps[layer].shape[2]
    for value, (start, end) in zip(found, spans.tolist(), strict=True):
        assert math.isnan(value) if start < 0 else value == pytest.approx(tokens[start:end].sum())


def test_it_is_of_its_own_text_and_mask_only():
    capture, other = make_capture(text="short text"), make_capture(text="other text")
    found = made(capture, np.zeros(10))
    assert found.of(capture) and not found.of(other)


def test_agreement_is_of_sizes_and_says_where_there_is_none():
    three = np.array([0.1, 0.2, 0.7])
    one = Beside(HeadId(0, 0), 2, np.arange(3), three, -three, three[::-1])
    assert one.agreements == pytest.approx((1, -1, -1))
    none = Beside(HeadId(0, 0), 2, np.arange(3), three, three, None).agreements
    assert none[0] == pytest.approx(1) and all(map(math.isnan, none[1:]))
