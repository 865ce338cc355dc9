"""What a screen shows of a figure is what its file has."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from hgviz import tasks
from hgviz.core import HeadId, Selection, finish, replace
from hgviz.figures import Spec, preview
from hgviz.figures.kinds.stages import stages_of
from hgviz.figures.paper import style
from hgviz.tasks import drawing
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


def test_of_all_levels_only_heads_that_may_be_shown_are_measured():
    capture = make_capture(SEA)
    first, *rest = stages_of(capture)
    chosen = [HeadId(one[-1], 1) for one in rest]
    spec = Spec("levels", Selection(chosen[0].layer, 1, 60, 29), heads=tuple(chosen[1:]))
    ready = finish(tasks.panel(spec, capture))
    facts = ready.content.facts
    assert {one.layer for one in facts} == {*first, *(one.layer for one in chosen)}
    assert len(rest) > 1 and len(facts) < len(capture.spec.heads)
    whole = finish(tasks.measure(capture))
    assert all(repr(fact) == repr(whole[head]) for head, fact in facts.items())


def test_of_a_long_text_only_a_stage_without_a_choice_is_measured(monkeypatch):
    """What is known already makes no other figure."""
    capture = make_capture(SEA)
    monkeypatch.setattr(drawing, "ROLES", len(capture.main) - 1)
    first, *rest = stages_of(capture)
    chosen = [HeadId(one[0], 1) for one in rest]
    spec = Spec("levels", Selection(chosen[0].layer, 1, 60, 29), heads=tuple(chosen[1:]))
    for known in (None, finish(tasks.measure(capture))):
        some = finish(tasks.panel(spec, capture, known)).content.facts
        assert {one.layer for one in some} == set(first)
        every = replace(spec, heads=(*spec.heads, HeadId(first[0], 0)))
        assert finish(tasks.panel(every, capture, known)).content.facts == {}
