"""Small maps tell the truth: pooled, never averaged, masked where masked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hgviz import palettes
from hgviz.core import HeadId
from hgviz.gui.atlas import Thumb, compose, fitted, largest, painted, places, seen, thumb
from hgviz.maps import Rule
from tests.making import make_capture

TABLE = palettes.colours("viridis")


def small(values, slope=None, signed=False, kind="map"):
    values = np.asarray(values, np.float32)
    return Thumb(values, values.shape, slope, signed, 0.5, kind)


@settings(deadline=None)
@given(st.integers(1, 90), st.integers(1, 90), st.integers(1, 70), st.integers(0, 5), st.booleans())
def test_the_largest_weight_survives_any_size(rows, columns, size, seed, signed):
    values = np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)
    if not signed:
        values = np.abs(values)
    out = fitted(values, size, size, signed)
    assert out.shape == (size, size)
    assert set(out.ravel()) <= set(values.ravel())
    assert np.abs(out).max() == np.abs(values).max()


def test_the_map_of_a_layer_is_pooled_as_its_summary(capture):
    one = thumb(capture, capture.maps[0], capture.spec.layers[0], 3)
    whole = capture.maps[0].read(3)
    step = one.shape[0] // one.values.shape[0]
    blocks = whole[: 3 * step, : 3 * step].reshape(3, step, 3, step)
    assert np.array_equal(one.values[:3, :3], blocks.max(axis=(1, 3)))


@pytest.mark.parametrize("layer", [0, 2, 4, 8, 10])
def test_the_visible_cells_are_those_of_the_rule(capture, layer):
    one = capture.spec.layers[layer]
    _, *shape = capture.maps[layer].shape
    queries, keys = shape
    slope = thumb(capture, capture.maps[layer], one, 0).slope
    mine = Thumb(np.zeros(shape, np.float32), tuple(shape), slope, False, 0)
    stride = [capture.spec.levels[n].stride for n in (one.level, one.key_level)]
    i, j = np.arange(queries)[:, None] * stride[0], np.arange(keys)[None] * stride[1]
    assert np.array_equal(seen(mine), j < i + stride[0])


@pytest.mark.parametrize("step", [1, 4])
def test_small_maps_of_heads_that_stream_are_clear_where_these_see_nothing(step):
    rule = Rule(1.0, ("softmax",), (None,), causal=True).with_streaming((0,), (3, 7))
    cells = rule.sees(np.arange(48), np.arange(48))
    some = cells.reshape(48 // step, step, 48 // step, step).any((1, 3))
    one = Thumb(np.zeros(some.shape, np.float32), (48, 48), 1.0, False, 0.0, near=(3, 7))
    assert np.array_equal(seen(one), some)


def test_masked_cells_are_clear_without_teeth_and_zero_has_the_colour_of_zero():
    out = painted(small(np.eye(4), slope=1.0), 4, 4, 1.0, TABLE)
    assert (out[np.triu_indices(4, 1)] == 0).all()
    assert (out[np.tril_indices(4)][:, 3] == 255).all()
    assert tuple(out[2, 0, :3][::-1]) == tuple(TABLE[0])
    assert tuple(out[2, 2, :3][::-1]) == tuple(TABLE[255])
    values = np.tril(np.ones((68, 68), np.float32))
    for size in (30, 56, 66, 68, 90, 132):
        out = painted(small(values, slope=1.0), size, size, 1.0, TABLE)
        assert (out[out[..., 3] > 0][:, :3] == TABLE[255][::-1]).all()


def test_early_rows_do_not_set_the_scale():
    values = np.full((80, 80), 0.1, np.float32)
    values[:5] = 1.0
    assert largest(small(np.tril(values), slope=1.0)) == pytest.approx(0.1)
    assert largest(small(values)) == pytest.approx(1.0)
    assert largest(small(np.zeros((0, 0)))) == 0


def test_windows_are_read_without_their_zeros():
    capture = make_capture(windowed=True)
    for layer in (2, 4, 8, 10):
        one, known = capture.spec.layers[layer], capture.maps[layer]
        found = places(known, one, 2)
        whole = known.read(2)
        if one.role == "up":
            whole = whole.T
        assert found.sum() == pytest.approx(whole.sum(), rel=1e-5)
        assert found.shape[1] == one.window
        assert np.array_equal(found[3], whole[3, 3 * one.window : 4 * one.window])


def test_windows_of_one_key_have_a_kind_of_their_own():
    capture = make_capture(windowed=True)
    up = thumb(capture, capture.maps[10], capture.spec.layers[10], 0)
    down = thumb(capture, capture.maps[2], capture.spec.layers[2], 0)
    assert (up.kind, down.kind) == ("only", "places")
    atlas = compose({HeadId(10, 0): up}, {HeadId(10, 0): (8, 4)}, "viridis")
    assert not atlas.image.any()


def test_the_atlas_holds_each_map_in_its_place_and_a_shared_scale_has_one_maximum():
    maps = {HeadId(0, h): small(np.full((4, 4), (h + 1) / 4)) for h in range(3)}
    maps[HeadId(2, 1)] = small(np.eye(4))
    sizes = dict.fromkeys(maps, (6, 6)) | {HeadId(2, 1): (9, 5), HeadId(5, 0): (3, 3)}
    atlas = compose(maps, sizes, "viridis")
    assert set(atlas.places) == set(maps) and atlas.image.shape == (11, 18, 4)
    cover = np.zeros(atlas.image.shape[:2], int)
    for x, y, width, height in atlas.places.values():
        assert atlas.image[y : y + height, x : x + width, 3].all()
        cover[y : y + height, x : x + width] += 1
    assert cover.max() == 1
    shared = compose(maps, sizes, "viridis", shared=True).image[3, [3, 9, 15]]
    own = atlas.image[3, [3, 9, 15]]
    assert (own == own[0]).all() and (shared[0] != shared[1]).any()
    nothing = compose({}, {HeadId(0, 0): (4, 4)}, "viridis")
    assert nothing.places == {} and nothing.image.shape == (1, 1, 4)
