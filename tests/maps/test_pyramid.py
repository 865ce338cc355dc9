"""Levels of a map in one byte a cell."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hgviz.maps import DenseMap, LazyMap, Rule
from hgviz.maps.pyramid import (
    SIGNED_ERROR,
    UNSIGNED_ERROR,
    Range,
    decode,
    encode,
    lowest_zoom,
    pool,
    zooms,
)
from hgviz.maps.survey import pyramid_of, survey, to_store
from tests.maps.test_lazy import make

WEIGHTS = st.floats(-100, 100, width=32, allow_subnormal=False)
MAPS = arrays(np.float32, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=WEIGHTS)


@pytest.mark.parametrize("signed", [False, True])
@given(values=MAPS, power=st.integers(-9, 9))
@settings(deadline=None)
def test_a_code_is_within_the_error_that_is_promised(signed, values, power):
    values = values * np.float32(10.0**power)
    values = values if signed else np.abs(values)
    within = Range.of(values, signed)
    found = decode(encode(values, within), within)
    error = SIGNED_ERROR if signed else UNSIGNED_ERROR
    seen = np.abs(values) >= within.floor
    assert within.sensible
    assert (np.abs(found - values)[seen] <= error * np.abs(values)[seen]).all()
    assert (np.abs(found - values)[~seen] <= within.floor).all()
    assert (found[values == 0] == 0).all()
    assert (np.sign(found) * np.sign(values) >= 0).all()
    assert np.abs(values).max() <= within.maximum * (1 + 1e-6)


def test_codes_span_a_million_in_both_forms():
    for signed in (False, True):
        within = Range.of(np.array([1e-30, 1.0]), signed)
        assert 1e-6 / 2 < within.floor < 1.2e-6
    assert Range.of(np.array([0.25, 0.5]), False).floor == 0.25


def test_what_is_no_number_has_no_code():
    values = np.array([np.nan, 1.0, 0.5], np.float32)
    within = Range.of(np.array([0.5, 1.0]), False)
    assert decode(encode(values, within), within)[0] == 0
    assert not Range.of(np.array([np.nan, 1.0]), False).maximum
    assert not Range.of(np.array([np.inf, 1.0]), False).maximum


@pytest.mark.parametrize(
    "size,zoom", [(128, None), (4096, None), (4097, 3), (8192, 3), (32768, 4), (131_072, 5)]
)
def test_the_finest_level_grows_with_half_the_length(size, zoom):
    assert lowest_zoom(size, 5) == lowest_zoom(5, size) == zoom
    assert (3 in zooms(8192, 8192, 6)["max"]) and (3 not in zooms(8192, 8192, 6)["mean"])


def stored(maps):
    """A map that has its own pyramid at hand."""
    kept = {}
    for place in range(maps.shape[0]):
        kept[place] = pyramid_of(maps, survey(maps, place, to_store(maps)))
    maps._pyramids = kept.__getitem__
    return maps


KINDS = [("softmax", None), ("ymish", "l2"), ("elu", None), ("linear", None)]


@pytest.mark.parametrize("activation,norm", KINDS)
@pytest.mark.parametrize("causal", [False, True])
def test_an_overview_is_the_map_within_a_few_percent(activation, norm, causal):
    rule = Rule(0.5, (activation,), (norm,), causal=causal)
    maps = stored(LazyMap(make(rule, 4200, 700, width=4), (3,)))
    error = SIGNED_ERROR if maps.signed else UNSIGNED_ERROR
    for zoom in (3, 4, 6, 7):
        for window in ((None, None), ((200, 1111), (100, 5000))):
            exact, found = (one(3, *window, zoom=zoom) for one in (maps.read, maps.overview))
            limit = 1.001 * error * np.abs(exact) + 1.2e-6 * np.abs(exact).max()
            if zoom > 6:  # from codes: of two weights nearly alike the other sign may win
                found, exact = np.abs(found), np.abs(exact)
            assert found.shape == exact.shape and (np.abs(found - exact) <= limit).all()
    for zoom in (4, 6, 12):
        exact, found = (one(3, zoom=zoom, reduce="mean") for one in (maps.read, maps.overview))
        assert found.shape == exact.shape
        # coarser means come from finer ones, whose errors all count where signs cancel
        sizes = pool(np.abs(maps.read(3)), zoom, "mean")
        assert (np.abs(found - exact) <= 1.001 * error * sizes + 1e-5 * sizes.max()).all()


def test_there_is_no_overview_of_fine_zooms_and_of_small_maps():
    rule = Rule(0.5, ("softmax",), (None,))
    maps = stored(LazyMap(make(rule, 4200, 20, width=4), (0,)))
    assert maps.overview(0, zoom=2) is None and maps.overview(0, zoom=3) is not None
    assert maps.overview(0, zoom=3, reduce="mean") is None
    assert LazyMap(make(rule, 4200, 20, width=4), (0,)).overview(0, zoom=3) is None
    small = LazyMap(make(rule, 300, 20, width=4), (0,))
    assert pyramid_of(small, survey(small, 0, to_store(small))) is None


def test_an_empty_window_and_all_of_a_map_as_one_cell():
    array = np.zeros((1, 400, 4200), np.float32)
    array[0, 300, 4199] = 0.75
    maps = stored(DenseMap(array, (0,)))
    assert maps.overview(0, (5, 5), None, 4).size == 0
    assert maps.overview(0, zoom=40)[0, 0] == pytest.approx(0.75)
    assert maps.overview(0, zoom=40, reduce="mean")[0, 0] == pytest.approx(
        0.75 / (400 * 4200), rel=0.03
    )


def test_a_map_of_zeros_has_levels_of_zeros():
    maps = stored(DenseMap(np.zeros((1, 4200, 10), np.float32), (0,)))
    assert not maps.overview(0, zoom=5).any()


def test_rows_are_surveyed_as_they_are_read():
    rule = Rule(0.5, ("softmax", "tanh"), (None, None), causal=True)
    factors = make(rule, 600, 600)
    rows = np.array([0, 255, 256, 599])
    maps = LazyMap(factors, (0, 1))
    proof = np.stack([maps.read(head)[rows] for head in (0, 1)]) + np.float32(0.125)
    maps = LazyMap(replace(factors, proof_rows=rows, proof_values=proof), (0, 1))
    for place in (0, 1):
        found = survey(maps, place, to_store(maps, tuple(rows))).rows
        assert maps.compared(place, found) == maps.compared(place) == pytest.approx(0.125, abs=1e-6)
