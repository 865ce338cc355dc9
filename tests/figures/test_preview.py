"""What a screen shows of a figure is what its file has."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from hgviz import tasks
from hgviz.core import Selection, finish
from hgviz.figures import Spec, preview
from hgviz.figures.paper import style
from tests.figures.texts import SEA
from tests.making import make_capture

CAPTURE = make_capture(SEA)
SOME = Selection(12, 2, 60, 29)


def pixels(png):
    with Image.open(BytesIO(png)) as image:
        return np.array(image.convert("RGB"))


def previewed(spec, dots):
    return finish(tasks.preview(finish(tasks.panel(spec, CAPTURE)), dots))


@pytest.mark.parametrize("kind", ["map", "links", "wall", "levels"])
def test_at_the_dots_of_a_file_a_preview_is_its_picture(kind, tmp_path):
    spec = Spec(kind, SOME, width="acl")
    seen = previewed(spec, style.DOTS)
    finish(tasks.figure(spec, CAPTURE, tmp_path / "one.png"))
    assert np.array_equal(pixels(seen.png), pixels((tmp_path / "one.png").read_bytes()))
    assert seen.width == pytest.approx(3.03 * 72) and seen.smallest and seen.smallest >= 5


def test_a_preview_has_the_size_of_the_page_at_any_dots():
    coarse, fine = (previewed(Spec("map", SOME, width="89mm"), dots) for dots in (96.0, 220.0))
    assert (coarse.width, coarse.height) == (fine.width, fine.height)
    for seen in (coarse, fine):
        height, width, _ = pixels(seen.png).shape
        assert width == pytest.approx(seen.width / 72 * seen.dots, abs=1)
        assert height == pytest.approx(seen.height / 72 * seen.dots, abs=1)


def test_a_preview_of_a_poster_has_fewer_dots_and_the_same_page(monkeypatch):
    spec = Spec("map", SOME, width="acl")
    whole = previewed(spec, 100.0)
    monkeypatch.setattr(preview, "MOST", 20_000.0)
    small = previewed(spec, 100.0)
    height, width, _ = pixels(small.png).shape
    assert height * width < 21_000 and small.dots < whole.dots
    assert (small.width, small.height) == (whole.width, whole.height)
