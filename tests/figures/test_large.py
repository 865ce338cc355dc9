"""Maps of long texts on paper: no more cells than dots, none of them lost, small files."""

from base64 import b64decode
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from hgviz.core import Capture, HeadId, Selection
from hgviz.figures import WIDTHS, Looked, Panel, Spec, labels, output, points
from hgviz.figures import page as page_of_figures
from hgviz.figures.cells import read_cells, seen_cells
from hgviz.figures.heatmap import HeadMap, zooms_of
from hgviz.figures.output import RASTER, compact_svg, compose
from hgviz.figures.pgf import compact_png
from hgviz.maps import DenseMap, LazyMap
from hgviz.palettes import colours, paint, palette_coordinates
from hgviz.tasks.charting import pair_chart
from tests import making
from tests.figures.texts import SEA, plain
from tests.gui.kinds import translator
from tests.making import level_spans

TOKENS = 8192
ROWS = 512
TWO_MEGABYTES = 2_000_000


def long(tokens, kind=4, signed=False):
    """A layer of one head on a long text, by its queries and keys; kind 4 looks at random."""
    text = (SEA * (1 + tokens // len(SEA)))[:tokens]
    spec = making.make_spec((1,), 1, signed)
    layer = replace(spec.layers[0], index=kind)
    prompt = making.byte_prompt(text)
    random = np.random.default_rng(0)
    factors = making.make_factors(random, tokens, tokens, layer, spec, prompt)
    return Capture(
        spec=replace(spec, layers=(replace(layer, index=0),)), prompt=prompt,
        spans=level_spans(tokens, (1,), causal=True), maps=(LazyMap(factors, layer.heads),),
    )  # fmt: skip


@pytest.fixture(scope="module")
def capture():
    return long(TOKENS)


@pytest.fixture(scope="module")
def largest(capture):
    """The largest of 8 x 8 weights, of rows read as they are and folded here."""
    side, out = 8, []
    for start in range(0, TOKENS, ROWS):
        rows = capture.maps[0].read(0, (start, start + ROWS))
        folded = rows.reshape(ROWS // side, side, TOKENS // side, side)
        out.append(folded.max(axis=(1, 3)))
    return np.concatenate(out)


@pytest.mark.parametrize(("width", "side"), [("acl", 16), ("neurips", 8), ("ieee2", 8)])
def test_a_map_of_8192_tokens_is_small_and_loses_no_peak(capture, largest, width, side, tmp_path):
    spec = Spec("map", Selection(0, 0, 5000, 4000), width=width)
    more = side // 8
    cells = TOKENS // side
    weights = largest.reshape(cells, more, cells, more).max(axis=(1, 3))
    note = f"each cell is the largest of {side} × {side} weights"
    with labels.figure_settings():
        page = compose(spec, capture)
        shown = np.asarray(page.axes.images[0].get_array())
        seen = seen_cells(capture, 0, side.bit_length() - 1)
        expected = paint(palette_coordinates(weights, (0, weights.max())), colours("viridis"))
        np.testing.assert_array_equal(shown[seen], expected[seen])
        assert shown.shape == (cells, cells, 3) and page.notes == [note]
        record = output.record(Panel(spec, Looked(capture)), page.notes, tmp_path / "f.pdf")
        for form in ("pdf", "svg", "png", "pgf"):
            files = output.render(page.figure, form, tmp_path / f"f.{form}", record)
            assert sum(map(len, files.values())) < TWO_MEGABYTES, form
            assert_said(note, form, files[f"f.{form}"])
            if form == "svg":
                assert_the_same(shown, svg_rasters(files["f.svg"]))
            if form == "pgf":
                rasters = [BytesIO(one) for name, one in files.items() if name.endswith("png")]
                assert_the_same(shown, map(Image.open, rasters))


def assert_said(note, form, content):
    """The reduction stands in the file's own words about itself."""
    if form == "png":
        with Image.open(BytesIO(content)) as image:
            assert f"reduction: {note}" in image.info["Description"]
    elif form == "pdf":
        plain = f"reduction: {note}".encode("latin-1")
        assert plain in content or plain.replace(b"\xd7", b"\\327") in content or (
            f"reduction: {note}".encode("utf-16-be") in content
        )  # fmt: skip
    else:
        assert f"reduction: {note}" in content.decode()


def svg_rasters(content):
    found = RASTER.findall(content.decode())
    return [Image.open(BytesIO(b64decode(one))) for _, one in found]


def assert_the_same(shown, images):
    image = max(images, key=lambda one: one.width * one.height)
    found = np.asarray(image.convert("RGB"))
    assert (found == shown).all() or (found == shown[::-1]).all()
    assert image.mode == "P"


# --- no more cells than dots ----------------------------------------------------------------------


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("count", [300, 700, 1503])
def test_a_map_has_no_more_cells_than_dots_at_any_width(count, signed):
    capture = plain(["word"] * (count - 2), layers=1, heads=1)
    capture = replace(capture, maps=(replace(capture.maps[0], signed=signed),))
    for width in (*WIDTHS, "1.5in", "900pt"):
        zoom, across = zooms_of(capture, HeadId(0, 0), points(width))
        assert zoom == across
        if width in ("acl", "1.5in"):
            with labels.figure_settings():
                page = compose(Spec("map", width=width), capture)
            image = page.axes.images[0]
            left, right, *_ = image.get_extent()
            cells = image.get_array().shape[1]
            assert cells == -(-count // 2**zoom)
            assert cells <= (right - left) / 72 * labels.DOTS * 1.03
            assert cells > (right - left) / 72 * labels.DOTS / 2.8 or zoom == 0


def test_a_side_that_fits_is_not_reduced_with_the_other(tmp_path):
    capture = translator("see " * 1500, "the old sea " * 2)
    layer = next(one for one in capture.spec.layers if one.role == "cross")
    one, head = capture.maps[layer.index], HeadId(layer.index, 0)
    count = one.shape[1]
    assert count < 12 and one.shape[2] > 1400
    zoom, across = zooms_of(capture, head, points("acl"))
    assert (zoom, across) == (0, 2)
    whole, step = one.read(0), 1 << across
    ends = range(0, whole.shape[1], step)
    wanted = np.stack([whole[:, at : at + step].max(axis=1) for at in ends], axis=1)
    np.testing.assert_array_equal(read_cells(one, 0, (zoom, across)), wanted)
    np.testing.assert_array_equal(read_cells(DenseMap(one.read(0).T[None], (0,), False), 0, (2, 0)),
                                  wanted.T)  # fmt: skip
    spec = Spec("map", Selection(*head), width="acl")
    with labels.figure_settings():
        page = compose(spec, capture)
    assert page.notes == ["each cell is the largest of 1 × 4 weights"]
    image = page.axes.images[0]
    left, right, low, high = image.get_extent()
    assert image.get_array().shape[0] == count and abs(high - low) >= 40
    rows = list(HeadMap(capture, {}).rows(spec))[1:]
    assert {row[1] == row[2] for row in rows} == {True} and len(rows) == wanted.size
    assert {row[-1] for row in rows} == {"largest of 1 x 4"}


def test_a_map_keeps_its_cells_where_there_are_dots_for_them():
    capture = plain(["word"] * 198, layers=1, heads=1)
    assert {zooms_of(capture, HeadId(0, 0), points(width)) for width in WIDTHS} == {(0, 0)}
    assert zooms_of(long(64), HeadId(0, 0), 108.0) == (0, 0)


def test_pairs_have_no_more_cells_than_dots():
    one, two = (plain(["word"] * 498, layers=1, heads=1, seed=seed) for seed in (0, 1))
    chart = pair_chart(one, two, Selection(0, 0))
    assert chart.zoom == 0
    with labels.figure_settings():
        page = compose(Spec("compare", width="acl"), chart)
    a, b, apart = (image.get_array() for image in page.axes.images[:3])
    assert a.shape == b.shape == apart.shape == (250, 250, 3)
    assert page.notes == ["each cell is the largest of 2 × 2 weights"]
    first, second = (one.maps[0].weights[0], two.maps[0].weights[0])
    folded = first.reshape(250, 2, 250, 2).max(axis=(1, 3))
    top = max(first.max(), second.max())
    np.testing.assert_array_equal(
        a, paint(palette_coordinates(folded, (0, top)), colours("viridis"))
    )
    cells = (first - second).reshape(250, 2, 250, 2).swapaxes(1, 2).reshape(250, 250, 4)
    at = np.abs(cells).argmax(-1)[..., None]
    largest = np.take_along_axis(cells, at, -1)[..., 0]
    reach = np.abs(largest).max()
    wanted = paint(
        palette_coordinates(np.abs(largest), (-reach, reach), signed=True), colours("blue-red")
    )
    mirrored = paint(
        palette_coordinates(-np.abs(largest), (-reach, reach), signed=True), colours("blue-red")
    )
    same = (apart == np.where((largest < 0)[..., None], mirrored, wanted)).all(-1)
    assert same.mean() > 0.999  # of two of one magnitude, either


def test_a_poster_has_no_more_cells_than_a_page_could_hold(capture):
    assert zooms_of(capture, HeadId(0, 0), 2880.0) == (3, 3)
    assert zooms_of(long(64), HeadId(0, 0), 2880.0) == (0, 0)


def test_a_png_of_a_poster_has_fewer_dots():
    assert (
        page_of_figures.dots_per_inch(points("nature2"))
        == page_of_figures.dots_per_inch(864)
        == 300
    )
    assert page_of_figures.dots_per_inch(2880) * 40 == pytest.approx(page_of_figures.MOST_ACROSS)


# --- rasters --------------------------------------------------------------------------------------


def test_a_raster_of_few_colours_is_written_as_places_in_a_table():
    random = np.random.default_rng(0)
    table = random.integers(0, 256, (256, 3), np.uint8)
    dots = table[random.integers(0, 256, (70, 90))]
    found = Image.open(BytesIO(compact_png(dots)))
    assert found.mode == "P"
    np.testing.assert_array_equal(np.asarray(found.convert("RGB")), dots)
    assert compact_png(dots) == compact_png(dots.copy())


def test_a_raster_of_many_colours_or_with_holes_stays_as_it_is():
    many = np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)
    np.testing.assert_array_equal(np.asarray(Image.open(BytesIO(compact_png(many)))), many)
    holes = np.zeros((4, 5, 4), np.uint8)
    np.testing.assert_array_equal(np.asarray(Image.open(BytesIO(compact_png(holes)))), holes)


def test_an_svg_without_rasters_stays_as_it_is():
    svg = "<svg>data:image/jpeg;base64,AAAA</svg>"
    assert compact_svg(svg) == svg
