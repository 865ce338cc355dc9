"""Every kind of figure, whatever the text, the model and the width: nothing overlaps, nothing is
cut, everything can be read. `make soak` draws all of them at every width."""

import numpy as np
import pytest

from hgviz.core import Display, Selection
from hgviz.figures import WIDTHS, Spec, composed, points
from hgviz.figures.paper import style
from hgviz.figures.paper.labels import axis_marks, size_for, visible
from hgviz.figures.paper.page import Page
from tests.figures.flaws import flaws, seen
from tests.figures.pages import EVERY_WIDTH, page_of, selections, some_pages
from tests.figures.texts import MAKERS, capture_of


@pytest.mark.parametrize("name", MAKERS)
def test_no_figure_of_any_text_has_a_flaw(name):
    for kind, width, page in some_pages(name):
        assert page.width == pytest.approx(points(width), abs=0.01)
        assert flaws(page) == [], (kind, width)


def test_every_width_is_drawn_for_every_kind():
    drawn = {(kind, (5 * name + 2 * kind) % len(EVERY_WIDTH)) for name in range(len(MAKERS))
             for kind in range(6)}  # fmt: skip
    assert len(drawn) == 6 * len(EVERY_WIDTH) == 6 * (len(WIDTHS) + 2)


PAGE = (100.0, 60.0)
RASTER = np.zeros((200, 1, 3), np.uint8)
WRONG = {
    "'abc' lies over 'x'": lambda page: page.text(12, 50, "x"),
    "'long' is 10": lambda page: page.text(95, 20, "long"),
    "'abc' lies over a raster": lambda page: page.image(RASTER, 5, 40, 10, 10),
    "'abc' lies over a fill": lambda page: page.box(5, 40, 10, 10, fill="red"),
    "'abc' lies over a fill.": lambda page: page.polygon([(0, 60), (20, 60), (20, 30)], "red"),
    "'abc' is crossed by a line": lambda page: page.lines([[(0, 48), (90, 48)]], "red"),
    "'abc' is crossed by a line.": lambda page: page.marks([(14, 48)], "o", "red", 3),
    "'abc' is crossed by a line..": lambda page: page.hatch(0, 30, 50, 29, None),
    "'a line' is": lambda page: page.marks([(99.5, 8)], "o", "red", 3),
    "'a line' is.": lambda page: page.box(50, 10, 50, 10, edge="red", line=1),
    "'a fill' is": lambda page: page.box(50, 10, 60, 10, fill="red"),
    "a colour bar": lambda page: (
        page.box(20, 5, 30, 30, edge="red"), page.image(RASTER, 60, 5.2, 7, 30)
    ),
    "no font has": lambda page: page.text(50, 20, "\U0001f9ff"),
    "there is text of 4": lambda page: page.text(50, 20, "small", size=4),
    "the smallest text": lambda page: page.axes.text(50, 20, "x", size=5.5),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("flaw", WRONG)
def test_a_flaw_is_found(flaw):
    with style.dressed():
        page = Page(PAGE[0])
        page.text(10, 50, "abc", size=7)
        WRONG[flaw](page)
        page.close(PAGE[1])
        assert any(one.startswith(flaw.rstrip(".")) for one in flaws(page))


@pytest.mark.parametrize("name", ["sea", "Hangul", "words", "long names", "many and one", "long"])
@pytest.mark.parametrize("width", ["acl", "neurips"])
def test_the_labels_of_a_map_are_those_of_its_axes_and_no_others(name, width):
    capture = capture_of(name)
    chosen = selections(capture)[1]
    with style.dressed():
        page = composed(Spec("map", chosen, width=width), capture)
        left, right, bottom, top = page.axes.images[0].get_extent()
    found = [one for one in page.axes.texts if one.get_size() < style.TITLE]
    spans = capture.query_spans(chosen.layer)
    cell = (bottom - top) / len(spans)
    size = size_for(cell)
    room = min(0.24 * page.width, 64.0)
    prompt = capture.query_prompt(chosen.layer)
    row = capture.row(chosen.layer, chosen.query)
    marks = axis_marks(prompt, spans, cell, size, room, row)
    drawn = {(t.get_text(), round(t.get_position()[1], 3)) for t in found
             if t.get_ha() == "right" and t.get_rotation() == 0}  # fmt: skip
    wanted = {(m.words, round(top + m.middle * cell + 0.36 * size, 3)) for m in marks}
    assert drawn == wanted
    if cell >= size * 1.18:  # each token has one, whole or elided
        for mark, (start, end) in zip(marks, spans, strict=False):
            whole = visible(prompt.words(int(start), int(end)).strip())
            assert mark.words == whole or whole.startswith(mark.words[:-1]) or not whole


@pytest.mark.parametrize("name", ["sea", "ragged", "two texts", "many layers", "windowed"])
def test_a_wall_has_no_holes_but_where_heads_are_missing(name):
    capture = capture_of(name)
    with style.dressed():
        page = composed(Spec("wall", Selection(), Display(shared=False), "neurips"), capture)
    heads = [(layer, head) for layer in capture.spec.layers for head in layer.heads]
    boxes = [one.get_extent() for one in page.axes.images]  # left, right, bottom, top
    assert len(boxes) == len(heads)
    rows = {}
    for (layer, head), box in zip(heads, boxes, strict=True):
        rows.setdefault(layer.index, []).append((head, box))
    before = None
    for row in rows.values():
        (_, (left, right, bottom, top)), *_ = row
        places = np.array([(head, (box[0] + box[1]) / 2) for head, box in row])
        steps = np.unique(np.round(np.diff(places[:, 1]) / np.diff(places[:, 0]), 3))
        side = max(right - left, bottom - top)
        assert len(steps) <= 1 and all(right - left <= steps) and all(steps <= 1.3 * side + 3)
        assert before is None or 0 <= top - before <= 24.01  # two levels and two texts meet
        before = bottom


@pytest.mark.parametrize("kind", ["map", "links", "wall", "levels", "compare", "rollout"])
def test_a_figure_without_a_title_has_no_hole_where_it_was(kind):
    with_, without = (page_of(kind, "words", number, "icml") for number in (0, 2))
    assert without.height < with_.height - 8
    drawn = seen(without)
    highest = max(drawn.boxes[:, 3].max(), drawn.segments[..., 1].max())
    assert without.height - highest < 12


def test_the_colour_bar_is_as_tall_as_the_map():
    with style.dressed():
        page = composed(Spec("map", Selection(12, 2), width="acl"), capture_of("sea"))
    data, bar = page.axes.images
    assert data.get_extent()[2:] == bar.get_extent()[2:]
    left, right, bottom, top = data.get_extent()
    assert right - left == pytest.approx(bottom - top)  # square cells
