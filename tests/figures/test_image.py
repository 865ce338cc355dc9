"""An image with what a query looks at over it: the weights of the row, patch by patch."""

import csv

import numpy as np
import pytest

from hgviz import tasks
from hgviz.core import HeadId, HgvizError, Selection, finish, replace
from hgviz.figures import Spec, composed
from hgviz.figures.kinds.image import overlays
from hgviz.figures.paper import style
from hgviz.figures.paper.shades import shades_of
from hgviz.palettes import LUMA, OPACITY
from hgviz.store import open_capture, write_capture
from tests.figures.flaws import overlaps, texts
from tests.making import make_capture
from tests.pictures import make_image_capture

CAPTURE = make_image_capture()
HEADS = tuple(HeadId(1, head) for head in range(3))


def page_of(spec, capture=CAPTURE):
    with style.dressed():
        page = composed(spec, capture)
        return page, texts(page)


@pytest.mark.parametrize("query", [None, 0, 7])
def test_a_row_lies_over_its_patches_and_the_rest_is_said(query):
    spec = Spec("image", Selection(1, 2, query), heads=HEADS)
    for one in overlays(spec, CAPTURE):
        row = CAPTURE.maps[1].read(one.head.head)[query or 0]
        assert np.array_equal(one.grid.ravel(), row[1:]) and one.added.tolist() == [row[0]]
    page, boxes = page_of(spec)
    assert not overlaps(boxes)
    said = [one.get_text() for one in page.axes.texts]
    row = CAPTURE.maps[1].read(2)[query or 0]
    assert any(f"1.2 {100 * row[0]:.0f} %" in one for one in said)
    arrays = [one.get_array() for one in page.axes.get_children() if hasattr(one, "get_array")]
    images = [one for one in arrays if getattr(one, "ndim", 0) == 3]
    drawn = [one for one in images if one.shape == CAPTURE.prompt.signal.picture.shape]
    assert len(drawn) == 1 + len(HEADS)
    grid = overlays(spec, CAPTURE)[2].grid
    every = [one.grid for one in overlays(spec, CAPTURE)]
    wanted = shades_of(spec.display, False, every).paint(grid)
    grey = CAPTURE.prompt.signal.picture[9, 17] @ LUMA  # of the patch in row 1, column 2
    assert np.abs(drawn[3][9, 17] - (OPACITY * wanted[1, 2] + (1 - OPACITY) * grey)).max() <= 1


def test_without_a_position_of_its_own_the_mean_of_all_queries_is_shown():
    capture = make_image_capture(added=0)
    (one,) = overlays(Spec("image", Selection(0, 1)), capture)
    assert np.allclose(one.grid.ravel(), capture.maps[0].read(1).mean(0)) and not len(one.added)
    page, _ = page_of(Spec("image", Selection(0, 1)), capture)
    assert "from all queries" in [one.get_text() for one in page.axes.texts]


def test_it_is_written_with_its_numbers_and_from_its_file(tmp_path):
    write_capture(tmp_path / "a.h5", replace(CAPTURE, off=frozenset({HeadId(1, 1)})))
    capture = open_capture(tmp_path / "a.h5")
    spec = Spec("image", Selection(1, 0, 5), heads=HEADS)
    finish(tasks.figure(spec, capture, tmp_path / "a.pdf", numbers=True))
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 25
    found = [float(one["weight"]) for one in rows if one["head"] == "1.0"]
    assert np.allclose(found, CAPTURE.maps[1].read(0)[5], rtol=1e-6)
    assert {one["state"] for one in rows if one["head"] == "1.1"} == {"off"}


@pytest.mark.parametrize("spec, words", [
    (Spec("image", Selection(1, 0, 99)), "has no token 99"),
    (Spec("image", Selection(4, 0)), "has no layer 4"),
    (Spec("image", heads=(HeadId(0, 9),)), "has no head 9"),
])  # fmt: skip
def test_what_is_not_there_is_one_clear_line(spec, words):
    with pytest.raises(HgvizError, match=words):
        page_of(spec)


def test_a_text_has_no_image():
    with pytest.raises(HgvizError, match="not of an image in patches"):
        page_of(Spec("image"), make_capture())
