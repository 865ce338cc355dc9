"""Figures of two texts, slots, signed heads, one level, images, and all maps composed."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from hgviz import tasks
from hgviz.core import Display, HeadId, HgvizError, RolloutOptions, Selection
from hgviz.figures import Spec, labels
from hgviz.figures.cells import shades_of
from hgviz.figures.heatmap import ImagePatches, RowSumBars
from hgviz.figures.output import compose
from hgviz.palettes import LUMA, OPACITY, colours, paint, palette_coordinates
from hgviz.store import open_capture, write_capture
from tests.analysis.planting import hourglass, letters, translated
from tests.figures.flaws import overlaps, texts
from tests.figures.texts import KINDS, SEA, Dense, draw, mixed, paired, plain, projected, states
from tests.making import make_capture
from tests.pictures import make_image_capture

SOURCE, TARGET = plain(["alte", "Brücke"]).prompt, plain(["old", "low", "bridge"]).prompt
PAIR = paired(SOURCE, TARGET)
CROSS = 2  # encoder.0, decoder.0, decoder.0.cross, ...


def page_of(kind, capture, *chosen, **more):
    with labels.figure_settings():
        return compose(Spec(kind, Selection(*chosen), **more), capture)


def words(page):
    return [text.get_text() for text in page.axes.texts]


# --- two texts ------------------------------------------------------------------------------------


def test_a_map_between_two_texts_has_the_source_across_and_the_target_down():
    page = page_of("map", PAIR, CROSS, 1, 2, 1)
    found = words(page)
    for one in (
        "Source →",
        "Target ↓",
        "source → target, decoder.0",
        "alte",
        "Brücke",
        "old",
        "bridge",
    ):
        assert one in found
    across = {t.get_text(): t.get_position()[1] for t in page.axes.texts}
    assert across["Brücke"] < across["old"] < across["bridge"]  # above the map; down beside it
    shown = np.asarray(page.axes.images[0].get_array())
    weights = PAIR.maps[CROSS].weights[1]
    assert shown.shape == (5, 4, 3)
    np.testing.assert_array_equal(
        shown, paint(palette_coordinates(weights, (0, weights.max())), colours("viridis"))
    )


@pytest.mark.parametrize(
    ("layer", "name"), [(0, "source"), (1, "target, decoder.0"), (2, "source → target, decoder.0")]
)
def test_a_layer_says_whose_tokens_it_looks_at(layer, name):
    assert name in words(page_of("map", PAIR, layer, 0))
    assert name in words(page_of("wall", PAIR))


@pytest.mark.parametrize("name, said", [
    ("model.layers.2.self_attn", "layers.2"), ("model.layers.0.self_attn", ""),
    ("encoder.blocks.1.0.attention", "encoder.blocks.1.0"), ("attention", ""),
])  # fmt: skip
def test_a_layer_that_a_hybrid_model_numbers_otherwise_has_its_name_beside_its_number(name, said):
    capture = plain(["old", "low"])
    layer = replace(capture.spec.layers[0], name=name)
    capture = replace(capture, spec=replace(capture.spec, layers=(layer, *capture.spec.layers[1:])))
    for kind in ("map", "wall", "links"):
        found = " ".join(words(page_of(kind, capture, 0, 0)))
        assert (said in found) and ("layers.0" not in found)


def test_states_and_slots_are_named_on_the_axis():
    found = words(page_of("map", paired(states(4), TARGET, encoder=False), 1, 0))
    assert {"State →", "Target ↓", "state 0", "state 3", "not seen: padding"} <= set(found)
    found = words(page_of("map", projected(["a", "b"]), 0, 0))
    assert {"Slot →", "Query ↓", "slot 4", "5 slots"} <= set(found)


def test_padding_of_one_text_is_not_that_of_the_other():
    capture = paired(states(4), TARGET, encoder=False)
    shown = np.asarray(page_of("map", capture, 1, 0).axes.images[0].get_array())
    assert (shown[:, 3] == (0xF0, 0xF2, 0xF4)).all()
    assert not (shown[:, :3] == (0xF0, 0xF2, 0xF4)).all(-1).any()
    own = np.asarray(page_of("map", capture, 0, 0).axes.images[0].get_array())
    assert not (own[4] == (0xF0, 0xF2, 0xF4)).all(-1).any()  # all of the target is real


def test_the_wall_sets_the_decoder_apart_from_the_encoder():
    page = page_of("wall", PAIR)
    tops = sorted({round(min(i.get_extent()[2:]), 2) for i in page.axes.images})
    ends = sorted({round(max(i.get_extent()[2:]), 2) for i in page.axes.images})
    gaps = [b - a for a, b in zip(ends, tops[1:], strict=False)]
    assert gaps[0] == max(gaps) > gaps[2] > gaps[1]  # the stacks, two layers, both maps of one
    assert len(page.axes.images) == 15


def test_the_widest_and_the_narrowest_maps_of_a_wall_can_still_be_seen():
    one = plain(["a"], special=False).prompt
    for capture in (paired(plain(SEA.split() * 9).prompt, one), paired(one, plain(["b"]).prompt)):
        for image in page_of("wall", capture).axes.images:
            left, right, bottom, top = image.get_extent()
            assert right - left >= 2.9 and abs(bottom - top) >= 2.9


def test_levels_follow_a_token_of_the_target_into_the_source():
    page = page_of("levels", PAIR, 0, 0, 2)
    found = words(page)
    assert "From “low”" in found
    assert [one for one in found if one.startswith("head")] == [
        "head 1.0", "head 2.0", "head 3.0", "head 4.0",
    ]  # fmt: skip
    assert found.count("Brücke") == 2 and found.count("bridge") == 2


@pytest.mark.parametrize(
    ("kind", "chosen", "said"),
    [
        ("map", (CROSS, 0, 5), "no token 5"),
        ("map", (CROSS, 0, 4, 4), "no token 4"),
        ("levels", (CROSS, 0, 5), "no token 5"),
    ],
)
def test_tokens_are_counted_in_their_own_text(kind, chosen, said):
    with pytest.raises(HgvizError, match=said):
        page_of(kind, PAIR, *chosen)
    page_of(kind, PAIR, *(chosen[:2] + (4, 3)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_names_both_texts(kind, tmp_path):
    with Image.open(draw(Spec(kind), PAIR, tmp_path / "f.png")) as image:
        said = image.info["Description"]
    assert f"text: {SOURCE.digest}" in said and f"target: {TARGET.digest}" in said


# --- signed heads ---------------------------------------------------------------------------------


def test_the_rows_of_a_signed_head_are_added_up_beside_it():
    random = np.random.default_rng(0)
    weights = random.normal(size=(2, 600, 600)).astype("f4")
    found = RowSumBars.of(Dense(weights, (0, 1), signed=True), 1)
    np.testing.assert_allclose(found.total, weights[1].sum(1, dtype=np.float64), atol=1e-4)
    np.testing.assert_allclose(found.positive, np.maximum(weights[1], 0).sum(1), rtol=1e-4)
    coarse = RowSumBars.of(Dense(weights, (0, 1), signed=True), 1, zoom=3)
    np.testing.assert_allclose(coarse.total, found.total.reshape(-1, 8).mean(1), atol=1e-9)


@pytest.mark.parametrize(
    ("head", "palette", "more"), [(0, "viridis", ""), (1, "blue-red", "ymish, x·tanh|x|")]
)
def test_heads_of_one_layer_are_coloured_each_as_suits_it(head, palette, more):
    capture = mixed(["a", "b"])
    page = page_of("map", capture, 0, head)
    weights = capture.maps[0].weights[head]
    reach = np.abs(weights).max()
    limits = (-reach, reach) if head else (0, weights.max())
    expected = paint(palette_coordinates(weights, limits, signed=head > 0), colours(palette))
    np.testing.assert_array_equal(np.asarray(page.axes.images[0].get_array()), expected)
    assert ("Row sum" in words(page)) == (head > 0)
    assert not more or more in words(page)


def test_a_page_too_narrow_for_sums_shows_the_map_alone():
    assert "Row sum" not in words(page_of("map", mixed(["a", "b"]), 0, 1, width="1.6in"))


def test_a_signed_wall_shares_one_range_about_zero_or_says_what_the_colours_mean():
    capture = mixed(["a", "b"])
    assert "blue and red: weights below and above 0" in words(page_of("wall", capture))
    page = page_of("wall", capture, display=Display(shared=True))
    top = max(np.abs(one.weights).max() for one in capture.maps)
    first = capture.maps[0].weights[0]
    expected = paint(palette_coordinates(first, (-top, top), signed=True), colours("blue-red"))
    np.testing.assert_array_equal(np.asarray(page.axes.images[0].get_array()), expected)


# --- a single level -------------------------------------------------------------------------------


def test_a_model_of_one_level_is_followed_through_its_layers():
    capture = plain(["one", "two"], layers=3)
    page = page_of("levels", capture, 1, 2, 0)
    found = words(page)
    assert [one for one in found if one.startswith("head")] == ["head 0.0", "head 1.2", "head 2.0"]
    assert "1:1" not in found and found.count("two") == 3
    many = words(page_of("levels", plain(["one", "two"], layers=24), 0, 0))
    assert sum(one.startswith("head") for one in many) == 12 and "12 of 24 layers" in many


# --- images ---------------------------------------------------------------------------------------


IMAGE = make_image_capture()
HEADS = tuple(HeadId(1, head) for head in range(3))


def overlaid(spec, capture=IMAGE):
    with labels.figure_settings():
        page = compose(spec, capture)
        return page, texts(page)


@pytest.mark.parametrize("query", [None, 0, 7])
def test_a_row_lies_over_its_patches_and_the_rest_is_said(query):
    spec = Spec("image", Selection(1, 2, query), heads=HEADS)
    for one in ImagePatches(IMAGE, {}).weights(spec):
        row = IMAGE.maps[1].read(one.head.head)[query or 0]
        assert np.array_equal(one.grid.ravel(), row[1:]) and one.added.tolist() == [row[0]]
    page, boxes = overlaid(spec)
    assert not overlaps(boxes)
    said = [one.get_text() for one in page.axes.texts]
    row = IMAGE.maps[1].read(2)[query or 0]
    assert any(f"1.2 {100 * row[0]:.0f} %" in one for one in said)
    arrays = [one.get_array() for one in page.axes.get_children() if hasattr(one, "get_array")]
    images = [one for one in arrays if getattr(one, "ndim", 0) == 3]
    drawn = [one for one in images if one.shape == IMAGE.prompt.signal.picture.shape]
    assert len(drawn) == 1 + len(HEADS)
    grid = ImagePatches(IMAGE, {}).weights(spec)[2].grid
    every = [one.grid for one in ImagePatches(IMAGE, {}).weights(spec)]
    wanted = shades_of(spec.display, False, every).paint(grid)
    grey = IMAGE.prompt.signal.picture[9, 17] @ LUMA  # of the patch in row 1, column 2
    assert np.abs(drawn[3][9, 17] - (OPACITY * wanted[1, 2] + (1 - OPACITY) * grey)).max() <= 1


def test_without_a_position_of_its_own_the_mean_of_all_queries_is_shown():
    capture = make_image_capture(added=0)
    (one,) = ImagePatches(capture, {}).weights(Spec("image", Selection(0, 1)))
    assert np.allclose(one.grid.ravel(), capture.maps[0].read(1).mean(0)) and not len(one.added)
    page, _ = overlaid(Spec("image", Selection(0, 1)), capture)
    assert "from all queries" in [one.get_text() for one in page.axes.texts]


def test_it_is_written_with_its_numbers_and_from_its_file(tmp_path):
    write_capture(tmp_path / "a.h5", replace(IMAGE, off=frozenset({HeadId(1, 1)})))
    capture = open_capture(tmp_path / "a.h5")
    spec = Spec("image", Selection(1, 0, 5), heads=HEADS)
    tasks.figure(spec, capture, tmp_path / "a.pdf", numbers=True)
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 25
    found = [float(one["weight"]) for one in rows if one["head"] == "1.0"]
    assert np.allclose(found, IMAGE.maps[1].read(0)[5], rtol=1e-6)
    assert {one["state"] for one in rows if one["head"] == "1.1"} == {"off"}


@pytest.mark.parametrize("spec, words", [
    (Spec("image", Selection(1, 0, 99)), "has no token 99"),
    (Spec("image", Selection(4, 0)), "has no layer 4"),
    (Spec("image", heads=(HeadId(0, 9),)), "has no head 9"),
])  # fmt: skip
def test_what_is_not_there_is_one_clear_line(spec, words):
    with pytest.raises(HgvizError, match=words):
        overlaid(spec)


def test_a_text_has_no_image():
    with pytest.raises(HgvizError, match="not of an image in patches"):
        overlaid(Spec("image"), make_capture())


# --- all maps composed ----------------------------------------------------------------------------


PHRASE = "The hourglass was used at sea. When the sand had run down, the bell was rung."


def drawn(spec, capture, path):
    tasks.figure(spec, capture, path)
    return path.read_text("utf-8")


@pytest.fixture(scope="module")
def whole():
    return hourglass(letters(PHRASE[:22]), (1, 2, 6))


def test_it_says_how_maps_were_composed_and_which_way_answers_took(whole, tmp_path):
    said = drawn(Spec("rollout"), whole, tmp_path / "a.svg")
    for words in (
        "All maps composed",
        "mean of the heads, half residual",
        "Of an answer, on average",
    ):
        assert words in said
    assert "took the way through 1:2" in said and "comes after the query" in said
    recipe = RolloutOptions(fuse="max", residual=0.3)
    said = drawn(Spec("rollout", Selection(0, 0, 9), recipe=recipe), whole, tmp_path / "b.svg")
    assert "largest of the heads, 30 % residual" in said and "Of the answer at letter 9" in said
    assert "--query 9 --fuse max --residual 0.3" in said


def test_a_signed_product_diverges_and_has_row_sums(tmp_path):
    capture = translated(letters(PHRASE[:7]), letters(PHRASE[:4]), signed=True)
    said = drawn(Spec("rollout", recipe=RolloutOptions(signed=True)), capture, tmp_path / "s.svg")
    assert "signed product" in said and "Row sum" in said and "Source →" in said
    plain = drawn(Spec("rollout", Selection(1, 0, 2, 1)), capture, tmp_path / "p.svg")
    assert "comes from the source" in plain


def test_what_is_not_composed_or_not_there_is_said(whole, tmp_path):
    with pytest.raises(HgvizError, match="is not composed"):
        draw(Spec("rollout"), whole, tmp_path / "a.svg")
    with pytest.raises(HgvizError, match="no token 99"):
        tasks.figure(Spec("rollout", Selection(0, 0, 99)), whole, tmp_path / "a.svg")
