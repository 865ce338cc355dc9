"""Colours of weights, and what is hatched since the rule of a layer does not let a query see it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hgviz.core import Display, HeadId, Selection, Streaming
from hgviz.figures import Spec, labels
from hgviz.figures.cells import seen_cells, shades_of, unseen_reason
from hgviz.figures.levels import Levels
from hgviz.figures.output import compose
from hgviz.maps import LazyMap
from hgviz.palettes import PALETTES, SCALES, colours, limits_of, paint, palette_coordinates
from hgviz.tasks.charting import pair_chart
from tests.figures.texts import SEA, Dense, draw, mixed, plain
from tests.making import make_capture

weights = arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 5)),
                 elements=st.floats(-1e6, 1e6, width=32) | st.just(np.nan))  # fmt: skip
ends = st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).map(sorted).map(tuple)
ends |= st.sampled_from([(0.0, 1e-80), (-1e-46, 0.0), (0.0, 0.0), (3.0, 3.0), (-1e308, 1e308)])
displays = st.builds(
    Display, palette=st.sampled_from(list(PALETTES)), limits=st.none() | ends,
    scale=st.sampled_from(list(SCALES)), shared=st.booleans(),
)  # fmt: skip
few = settings(max_examples=12, deadline=None)


@given(st.lists(weights, max_size=3), displays)
@example([np.array([[141.0]], np.float32)], Display("viridis", (0.0, 4.14e-37), "linear"))
@example([], Display("viridis", (0.0, 5e-324), "linear"))
def test_signed_weights_are_symmetric_about_zero_whatever_was_asked(data, display):
    shades = shades_of(display, True, data)
    low, high = shades.limits
    assert low == -high < 0 < high
    assert PALETTES[shades.palette].signed
    table = colours(shades.palette)
    assert (shades.paint(np.zeros(1, np.float32))[0] == table[128]).all()
    for one in data:
        known = one[np.isfinite(one)]
        at, other = (
            palette_coordinates(side, shades.limits, shades.scale, True) for side in (known, -known)
        )
        np.testing.assert_allclose(at + other, 1, atol=1e-6)
        assert (np.sign(at - 0.5) * np.sign(known) >= 0).all()
    if display.limits is not None and any(display.limits):
        assert high == max(map(abs, display.limits))
    elif display.limits is None:
        known = np.concatenate([np.abs(one[np.isfinite(one)]) for one in data] or [[]])
        assert high == (known.max(initial=0) or 1)


@given(st.lists(weights, max_size=3), displays)
def test_weights_without_a_sign_begin_at_zero_unless_limits_say_otherwise(data, display):
    data = [np.abs(one) for one in data]
    shades = shades_of(display, False, data)
    assert not PALETTES[shades.palette].signed
    if display.limits is None:
        top = max((np.nanmax(one, initial=0) for one in data), default=0)
        assert shades.limits == (0, top or 1)
    else:
        assert shades.limits == display.limits


def rasters(page):
    return [np.asarray(image.get_array()) for image in page.axes.images]


def scaled(capture, seed):
    """The same, each head larger or smaller than the others, by far."""
    random = np.random.default_rng(seed)
    maps = []
    for one in capture.maps:
        factors = 10 ** random.uniform(-3, 1, (len(one.heads), 1, 1))
        maps.append(Dense((one.weights * factors).astype("f4"), one.heads, one.signed))
    return replace(capture, maps=tuple(maps))


def expected(capture, layer, head, display, signed, everything):
    """The raster of a head on one scale, written here a second time."""
    low, high = display.limits or (min(everything.min(), 0), max(everything.max(), 0))
    reach = max(abs(low), abs(high)) or 1.0
    limits = (-reach, reach) if signed else display.limits or (0.0, high if high > 0 else 1.0)
    name = display.palette if PALETTES[display.palette].signed == signed else (
        "blue-red" if signed else "viridis"
    )  # fmt: skip
    one = capture.maps[layer].read(head)
    rgb = paint(palette_coordinates(one, limits, display.scale, signed), colours(name))
    rgb[~seen_cells(capture, layer)] = (0xF0, 0xF2, 0xF4)
    return rgb


@few
@given(st.integers(0, 9), displays, st.booleans())
def test_all_maps_of_a_wall_share_one_scale(seed, display, signed):
    words = ["one", "two", "three"]
    capture = scaled(mixed(words) if signed else plain(words, layers=2), seed)
    display = replace(display, shared=True)
    everything = np.concatenate([one.weights.ravel() for one in capture.maps])
    with labels.figure_settings():
        found = rasters(compose(Spec("wall", display=display, width="acl"), capture))
    heads = [(layer, head) for layer, one in enumerate(capture.maps) for head in one.heads]
    assert len(found) == len(heads) + 1  # and the bar
    for (layer, head), rgb in zip(heads, found, strict=False):
        wanted = expected(capture, layer, head, display, signed, everything)
        np.testing.assert_array_equal(rgb, wanted)


@few
@given(st.integers(0, 9), displays, st.booleans())
def test_two_heads_and_their_difference_share_one_scale(seed, display, signed):
    words = ["one", "two", "three"]
    make = mixed if signed else plain
    capture, other = scaled(make(words), seed), scaled(make(words), seed + 1)
    chart = pair_chart(capture, other, Selection(0, 1))
    with labels.figure_settings():
        a, b, apart = rasters(compose(Spec("compare", display=display, width="acl"), chart))[:3]
    one, two = capture.maps[0].read(1), other.maps[0].read(1)
    both = np.stack([one, two, one - two] if signed else [one, two])
    np.testing.assert_array_equal(a, expected(capture, 0, 1, display, signed, both))
    np.testing.assert_array_equal(b, expected(other, 0, 1, display, signed, both))
    shown = replace(display, limits=display.limits if signed else None)
    difference = replace(capture, maps=(Dense((one - two)[None], (1,), True), *capture.maps[1:]))
    whole = both if signed else one - two
    np.testing.assert_array_equal(apart, expected(difference, 0, 1, shown, True, whole))


@few
@given(st.integers(0, 9), displays, st.booleans())
def test_all_stages_of_a_token_share_one_scale(seed, display, signed):
    words = ["one", "two", "three"]
    capture = scaled(mixed(words) if signed else plain(words, layers=2), seed)
    spec = Spec("levels", Selection(0, 1, 2), display, width="acl", heads=(HeadId(1, 2),))
    stages = Levels(capture, {}).stages(spec)
    rows = np.concatenate([one.weights for one in stages])
    reach = max(map(abs, display.limits)) if display.limits else np.abs(rows).max()
    limits = (-(reach or 1), reach or 1) if signed else display.limits or limits_of(0, reach, False)
    suits = PALETTES[display.palette].signed == signed
    name = display.palette if suits else ("blue-red" if signed else "viridis")
    wanted = paint(palette_coordinates(rows, limits, display.scale, signed), colours(name))
    with labels.figure_settings():
        page = compose(spec, capture)
    painted = {tuple(np.rint(np.array(one.get_facecolor()[:3]) * 255)) for one in page.axes.patches}
    assert {tuple(map(float, one)) for one in wanted} <= painted


@pytest.mark.parametrize("limits", [(0.0, 0.2), (-0.2, 0.1), (-0.2, 0.2)])
def test_limits_of_signed_weights_are_those_of_the_bar(limits):
    with labels.figure_settings():
        page = compose(Spec("map", Selection(0, 1), Display(limits=limits)), mixed(["a", "b"]))
    words = {text.get_text() for text in page.axes.texts}
    assert {"≤ −0.2", "0", "≥ +0.2"} <= words  # there are weights beyond


# --- what is hatched ------------------------------------------------------------------------------


def rule_sees(capture, layer):
    """By strides, as the model itself has it."""
    one = capture.spec.layers[layer]
    stride_q = capture.spec.levels[one.level].stride
    stride_k = capture.spec.levels[one.key_level].stride
    _, queries, keys = capture.maps[layer].shape
    i, j = np.arange(queries)[:, None] * stride_q, np.arange(keys)[None] * stride_k
    group = max(stride_q, stride_k)
    return (i // group == j // group) if one.window else (j < i + stride_q)


@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("length", [64, 61, 5, 1])
def test_seen_is_what_the_rule_says_for_every_real_query(length, windowed):
    capture = make_capture(SEA[:length], windowed=windowed)
    for layer in range(len(capture.spec.layers)):
        real = capture.query_spans(layer)[:, 1] > 0
        seen = seen_cells(capture, layer)
        np.testing.assert_array_equal(seen[real], rule_sees(capture, layer)[real])
        assert not seen[~real].any()


@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("zoom", [1, 2, 3, 7])
def test_a_larger_cell_is_seen_where_any_of_it_is(zoom, windowed):
    capture = make_capture(SEA[:75], windowed=windowed)
    side = 1 << zoom
    for layer in range(len(capture.spec.layers)):
        fine = seen_cells(capture, layer)
        high, wide = (-(-n // side) * side for n in fine.shape)
        padded = np.zeros((high, wide), bool)
        padded[: fine.shape[0], : fine.shape[1]] = fine
        pooled = padded.reshape(high // side, side, wide // side, side).any((1, 3))
        seen = seen_cells(capture, layer, zoom)
        assert seen.shape == pooled.shape
        assert (seen >= pooled).all()
        if capture.spec.layers[layer].window is None:
            np.testing.assert_array_equal(seen, pooled)


def test_padded_tokens_are_not_seen():
    capture = plain(["a", "b", "c"])
    assert seen_cells(capture, 0).all()
    assert unseen_reason(capture, [HeadId(0, 0)]) == ""
    mask = np.array([True, True, True, False, False])
    padded = replace(capture, prompt=replace(capture.prompt, attention_mask=mask))
    seen = seen_cells(padded, 0)
    assert seen[:3, :3].all()
    assert not seen[:, 3:].any()
    assert not seen[3:].any()
    assert unseen_reason(padded, [HeadId(0, 0)]) == "not seen: padding"


def test_the_reason_is_said():
    assert unseen_reason(make_capture("abcd"), [HeadId(0, 0)]) == "not seen: comes after the query"
    assert (
        unseen_reason(make_capture("abcd", windowed=True), [HeadId(2, 0)])
        == "not seen: outside the window"
    )
    assert unseen_reason(make_capture("a"), [HeadId(0, 0)]) == ""


@pytest.mark.parametrize("zoom", [0, 1, 3])
def test_heads_that_stream_see_the_first_keys_and_the_latest_alone(zoom):
    capture = make_capture(SEA[:75])
    one = capture.maps[0]
    rule = one.factors.rule.with_streaming((1,), (3, 9))
    streams = LazyMap(replace(one.factors, rule=rule), one.heads)
    capture = replace(capture, maps=(streams, *capture.maps[1:]))
    assert np.array_equal(seen_cells(capture, 0, zoom, head=0), seen_cells(capture, 0, zoom))
    n, side = one.shape[1], 1 << zoom
    padded = np.zeros((-(-n // side) * side,) * 2, bool)
    padded[:n, :n] = rule.of(1).sees(np.arange(n), np.arange(n))
    pooled = padded.reshape(len(padded) // side, side, -1, side).any((1, 3))
    assert np.array_equal(seen_cells(capture, 0, zoom, head=1), pooled)
    why = "not seen: comes after the query, or neither among the first keys nor the latest"
    assert unseen_reason(capture, [HeadId(0, 1)]) == why
    assert unseen_reason(capture, [HeadId(0, 0)]) == "not seen: comes after the query"


def test_a_figure_of_a_head_that_streams_hatches_what_it_does_not_see(tmp_path):
    capture = make_capture(SEA[:75])
    one = capture.maps[0]
    few = Streaming(frozenset({HeadId(0, 1)}), 3, 9)
    rule = one.factors.rule.with_streaming((1,), few.window)
    streams = LazyMap(replace(one.factors, rule=rule), one.heads)
    capture = replace(capture, maps=(streams, *capture.maps[1:]), streaming=few)
    spec = Spec("map", Selection(0, 1, 40))
    path = tmp_path / "map.svg"
    draw(spec, capture, path)
    said = path.read_text()
    assert "neither among the first keys nor the latest" in said
    assert "0.1 (first 3, latest 9)" in said
