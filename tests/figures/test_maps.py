"""What figures of captures show: each weight in its colour, what is unseen or off, words for all.

Long texts: no more cells than dots, no peak lost, a side that fits not reduced, small files.
"""

from base64 import b64decode
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from hgviz import tasks
from hgviz.core import Display, HeadId, HgvizError, RolloutOptions, Selection, Streaming
from hgviz.figures import Spec
from hgviz.figures.cells import seen_cells, shades_of, unseen_reason
from hgviz.figures.heatmap import ImagePatches, RowSumBars
from hgviz.figures.output import RASTER, compose
from hgviz.maps import DenseMap, LazyMap
from hgviz.palettes import (
    LUMA,
    OPACITY,
    PALETTES,
    SCALES,
    colours,
    paint,
    palette_coordinates,
)
from tests.analysis.planting import hourglass, letters, translated
from tests.figures.making import (
    OF_CAPTURE,
    SEA,
    draw,
    mixed,
    plain,
    projected,
    states,
)
from tests.making import make_capture, make_image_capture
from tests.maps.reference import pooled

CAPTURE = make_capture(SEA)
UNSEEN = (0xF0, 0xF2, 0xF4)
SOURCE, TARGET = plain(["alte", "Brücke"]).prompt, plain(["old", "low", "bridge"]).prompt
PAIR = translated(SOURCE, TARGET, encoder=1, heads=3)
CROSS = 2  # encoder.0, decoder.0, decoder.0.cross, ...
few = settings(max_examples=12, deadline=None)


def page_of(kind, capture, *chosen, **more):
    return compose(Spec(kind, Selection(*chosen), **more), capture)


def words(page):
    return [text.get_text() for text in page.axes.texts]


def rasters(page):
    return [np.asarray(image.get_array()) for image in page.axes.images]


# --- colours --------------------------------------------------------------------------------------

ends = st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).map(sorted).map(tuple)
ends |= st.sampled_from([(0.0, 1e-80), (-1e-46, 0.0), (0.0, 0.0), (3.0, 3.0), (-1e308, 1e308)])
displays = st.builds(
    Display, palette=st.sampled_from(list(PALETTES)), limits=st.none() | ends,
    scale=st.sampled_from(list(SCALES)), shared=st.booleans(),
)  # fmt: skip


def scaled(signed, seed):
    """Three words, each head larger or smaller than the others, by far."""
    capture = (mixed if signed else plain)(["one", "two", "three"])
    random, maps = np.random.default_rng(seed), []
    for dense in capture.maps:
        factors = 10 ** random.uniform(-3, 1, (len(dense.heads), 1, 1))
        maps.append(DenseMap((dense.array * factors).astype("f4"), dense.heads, dense.signed))
    return replace(capture, maps=tuple(maps))


def painted(values, display, signed, everything):
    """A raster on one scale, written here a second time."""
    low, high = display.limits or (min(everything.min(), 0), max(everything.max(), 0))
    reach = max(abs(low), abs(high)) or 1.0
    limits = (-reach, reach) if signed else display.limits or (0.0, high if high > 0 else 1.0)
    suits = PALETTES[display.palette].signed == signed
    name = display.palette if suits else "blue-red" if signed else "viridis"
    return paint(palette_coordinates(values, limits, display.scale, signed), colours(name))


@few
@given(st.integers(0, 9), displays, st.booleans())
def test_all_maps_of_a_wall_share_one_scale(seed, display, signed):
    capture = scaled(signed, seed)
    everything = np.concatenate([dense.array.ravel() for dense in capture.maps])
    page = page_of("wall", capture, display=replace(display, shared=True), width="acl")
    found = rasters(page)
    heads = [(layer, head) for layer, dense in enumerate(capture.maps) for head in dense.heads]
    assert len(found) == len(heads) + 1  # and the bar
    for (layer, head), rgb in zip(heads, found, strict=False):
        wanted = painted(capture.maps[layer].read(head), display, signed, everything)
        np.testing.assert_array_equal(rgb, wanted)


@pytest.mark.parametrize("signed", [False, True])
def test_the_map_shows_every_weight_in_its_colour(signed):
    capture = make_capture(SEA, signed=signed)
    shown, values = rasters(page_of("map", capture, 12, 2))[0], capture.maps[12].read(2)
    seen = seen_cells(capture, 12)
    np.testing.assert_array_equal(shown[seen], painted(values, Display(), signed, values)[seen])
    assert (shown[~seen] == UNSEEN).all()


def test_the_rows_of_a_signed_head_are_added_up_beside_it():
    values = np.random.default_rng(0).normal(size=(2, 600, 600)).astype("f4")
    maps = DenseMap(values, (0, 1), signed=True)
    found, coarse = (RowSumBars.of(maps, 1, zoom=zoom) for zoom in (0, 3))
    total, in_eights = (bars.positive + bars.negative for bars in (found, coarse))
    np.testing.assert_allclose(total, values[1].sum(1, dtype=np.float64), atol=1e-4)
    np.testing.assert_allclose(found.positive, np.maximum(values[1], 0).sum(1), rtol=1e-4)
    np.testing.assert_allclose(in_eights, total.reshape(-1, 8).mean(1), atol=1e-9)


# --- what is unseen or off ------------------------------------------------------------------------


def streaming():
    """A capture whose head 0.1 sees the first 3 keys and the latest 9, and its rule."""
    capture = make_capture(SEA[:75])
    lazy = capture.maps[0]
    rule = lazy.factors.rule.with_streaming((1,), (3, 9))
    maps = (LazyMap(replace(lazy.factors, rule=rule), lazy.heads), *capture.maps[1:])
    return replace(capture, maps=maps, streaming=Streaming(frozenset({HeadId(0, 1)}), 3, 9)), rule


@pytest.mark.parametrize("zoom", [0, 3])
def test_heads_that_stream_see_the_first_keys_and_the_latest_alone(zoom, tmp_path):
    capture, rule = streaming()
    assert np.array_equal(seen_cells(capture, 0, zoom, head=0), seen_cells(capture, 0, zoom))
    places = np.arange(capture.maps[0].shape[1])
    sees = rule.of(1).sees(places, places).astype("f4")
    wanted = pooled(sees, zoom, "max", False) > 0
    assert np.array_equal(seen_cells(capture, 0, zoom, head=1), wanted)
    text = draw(Spec("map", Selection(0, 1, 40)), capture, tmp_path / "map.svg").read_text()
    assert "outside sinks and window" in text
    assert "0.1 (first 3, latest 9)" in text


def _padded():
    capture = plain(["a", "b", "c"])
    mask = np.array([True, True, True, False, False])
    return replace(capture, prompt=replace(capture.prompt, attention_mask=mask))


@pytest.mark.parametrize(
    ("make", "head", "reason"),
    [
        (lambda: make_capture("abcd"), HeadId(0, 0), "masked (causal)"),
        (lambda: make_capture("abcd", windowed=True), HeadId(2, 0),
         "masked (outside the window)"),
        (lambda: plain(["a"]), HeadId(0, 0), ""),
        (_padded, HeadId(0, 0), "masked (padding)"),
        (lambda: streaming()[0], HeadId(0, 1), "masked (causal or outside sinks and window)"),
    ],
)  # fmt: skip
def test_the_reason_is_said(make, head, reason):
    assert unseen_reason(make(), [head]) == reason


@pytest.mark.parametrize("kind", OF_CAPTURE)
def test_a_head_that_is_off_is_never_drawn_as_zero(kind):
    off = replace(CAPTURE, off=frozenset({HeadId(0, 0)}))
    whole, less = (page_of(kind, capture, 0, 0) for capture in (CAPTURE, off))
    drawn = [len(page.axes.images) + len(page.axes.patches) for page in (whole, less)]
    assert drawn[1] < drawn[0] or kind == "wall"
    assert len(less.axes.images) < len(whole.axes.images) or kind in ("levels", "links")
    assert any("off" in text.split(": ")[0] for text in words(less))


# --- words and places -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "capture", "chosen", "said"),
    [
        ("map", PAIR, (CROSS, 1, 2, 1), {"Source →", "Target ↓", "source → target, decoder.0",
                                         "alte", "Brücke", "old", "bridge"}),
        ("wall", PAIR, (), {"source", "target, decoder.0", "source → target, decoder.0"}),
        ("map", translated(states(4), TARGET, encoder=0, heads=3), (1, 0),
         {"State →", "Target ↓", "state 0", "state 3", "masked (padding)"}),
        ("map", projected(["a", "b"]), (0, 0), {"Slot →", "Query ↓", "slot 4", "5 slots"}),
        ("levels", PAIR, (0, 0, 2), {"From “low”", "head 1.0", "head 4.0", "Brücke"}),
        ("levels", plain(["one", "two"]), (1, 2, 0), {"head 0.0", "head 1.2", "head 2.0"}),
        ("levels", plain(["one", "two"], layers=24), (0, 0), {"12 of 24 layers"}),
    ],
)  # fmt: skip
def test_axes_and_levels_are_named(kind, capture, chosen, said):
    assert said <= set(words(page_of(kind, capture, *chosen)))


# --- images and rollout ---------------------------------------------------------------------------

IMAGE = make_image_capture()
HEADS = tuple(HeadId(1, head) for head in range(3))


@pytest.mark.parametrize("query", [None, 7])
def test_a_row_lies_over_its_patches_and_the_rest_is_said(query):
    spec = Spec("image", Selection(1, 2, query), heads=HEADS)
    patches = ImagePatches(IMAGE, {}).weights(spec)
    for one in patches:
        row = IMAGE.maps[1].read(one.head.head)[query or 0]
        assert np.array_equal(one.grid.ravel(), row[1:]) and one.added.tolist() == [row[0]]
    page, picture = compose(spec, IMAGE), IMAGE.prompt.signal.picture
    assert any(f"1.2 {100 * row[0]:.0f} %" in text for text in words(page))
    drawn = [rgb for rgb in rasters(page) if rgb.shape == picture.shape]
    assert len(drawn) == 1 + len(HEADS)
    wanted = shades_of(spec.display, False, [one.grid for one in patches]).paint(patches[2].grid)
    grey = picture[9, 17] @ LUMA  # of the patch in row 1, column 2
    assert np.abs(drawn[3][9, 17] - (OPACITY * wanted[1, 2] + (1 - OPACITY) * grey)).max() <= 1


def test_what_an_image_has_not_is_one_clear_line():
    for spec, error in (
        (Spec("image", Selection(1, 0, 99)), "has no token 99"),
        (Spec("image", Selection(4, 0)), "has no layer 4"),
        (Spec("image", heads=(HeadId(0, 9),)), "has no head 9"),
    ):
        with pytest.raises(HgvizError, match=error):
            compose(spec, IMAGE)


PHRASE = letters("The hourglass was used ")


@pytest.mark.parametrize(
    ("capture", "spec", "said"),
    [
        (hourglass(PHRASE, (1, 2, 6)),
         Spec("rollout", Selection(0, 0, 9), recipe=RolloutOptions(fuse="max", residual=0.3)),
         ["maximum of the heads, 30 % residual", "Of the output at token 9", "passes through 1:2",
          "--query 9 --fuse max --residual 0.3", "masked (causal)"]),
        (translated(letters("The hou"), letters("The "), signed=True),
         Spec("rollout", recipe=RolloutOptions(signed=True)),
         ["signed product", "Row sum", "Source →"]),
    ],
)  # fmt: skip
def test_a_rollout_says_how_maps_were_composed_and_which_way_answers_took(
    capture, spec, said, tmp_path
):
    tasks.draw(tasks.panel(spec, capture), tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text("utf-8")
    assert [part for part in said if part not in text] == []


# --- long texts -----------------------------------------------------------------------------------


def test_a_map_of_4096_tokens_is_small_and_loses_no_peak(tmp_path):
    capture = make_capture((SEA * 50)[:4096], strides=(1,), heads=1, logits=False)
    spec, note = Spec("map", width="acl"), "each cell is the largest of 8 × 8 weights"
    page, values = compose(spec, capture), capture.maps[0].read(0, zoom=3)
    shown, seen = rasters(page)[0], seen_cells(capture, 0, 3)
    weights = capture.maps[0].read(0).reshape(512, 8, 512, 8)
    np.testing.assert_array_equal(values, weights.max(axis=(1, 3)))
    np.testing.assert_array_equal(shown[seen], painted(values, Display(), False, values)[seen])
    assert page.notes == [note]
    svg = draw(spec, capture, tmp_path / "f.svg").read_text()
    assert len(svg) < 2_000_000 and f"reduction: {note}" in svg
    images = [Image.open(BytesIO(b64decode(m[1]))) for m in RASTER.findall(svg)]
    image = max(images, key=lambda one: one.width * one.height)
    found = np.asarray(image.convert("RGB"))
    assert image.mode == "P" and ((found == shown).all() or (found == shown[::-1]).all())


def test_a_wall_with_signed_heads_says_what_the_colours_mean():
    assert "blue: weights below 0, red: above 0" in words(page_of("wall", mixed(["a"])))
