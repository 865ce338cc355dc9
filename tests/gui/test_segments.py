"""Segments of unequal length in the window, and on paper."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from hgviz.core import HeadId, Selection
from hgviz.figures.content.unseen import reason, seen_cells
from hgviz.gui import program
from hgviz.gui.follow import FollowView, Room, char_edges, lay
from hgviz.gui.hourglass import HourglassView
from hgviz.gui.layouts import Room as Space
from hgviz.gui.layouts import arrange, stages
from hgviz.gui.text import TextStrip
from tests.analysis.test_segments import ENDS, TEXT, make
from tests.gui.showing import shown
from tests.test_families import call


@cache
def made(name="words"):
    return make(name)


def test_the_stage_of_segments_is_the_waist():
    capture = made()
    way = stages(capture.spec)
    assert [one.kind for one in way] == ["first", "waist", "last"]
    assert way[1].title(capture.spec, "letter") == "Letters become segments: look far, cheaply"
    layout = arrange(capture.spec, [len(one) for one in capture.spans], Space(600, 900))
    outer, inner, again = (one.box.width for one in layout.bands)
    assert inner < outer == again
    assert [one.level for one in layout.residuals] == [0]


@pytest.mark.parametrize("name", ENDS)
def test_a_letter_is_followed_to_its_segment_and_back(name):
    capture = made(name)
    for token in (0, 1, len(TEXT) // 2, len(TEXT) - 1):
        course = lay(capture, stages(capture.spec), token, char_edges(capture), Room(1200, 800))
        position = capture.position(1, token)
        cell = course.strips[1].cell(position)
        if position == 0 or cell is None:  # nothing is read of the null group
            continue
        back = course.crossings[1].others
        assert back is not None and back[:2] == cell
        readers = [t for t in range(len(TEXT)) if capture.position(1, t) == position]
        ends = [course.strips[2].cell(t) for t in readers]
        inside = [one for one in ends if one is not None]
        assert back[2:] == (inside[0][0], inside[-1][1])


def test_every_segment_stands_in_the_text_strip(qtbot):
    capture = made()
    fields = {"capture": capture, "selection": Selection(3, 1, 30)}
    with shown(TextStrip, (1600, 188), **fields) as (view, session):
        line = next(one for one in view.strip.lines if one.head and one.head.layer == 3)
        assert line.spans.tolist() == capture.spans[1].tolist()
        session.put(selection=Selection(3, 1, 0))  # which reads the null group alone
        view.settle()
        assert not view.grab().toImage().isNull()


@pytest.mark.parametrize("kind", [HourglassView, FollowView])
@pytest.mark.parametrize("name", ["words", "none", "every token"])
def test_views_show_any_segments(qtbot, kind, name):
    with shown(kind, (900, 700), capture=made(name), selection=Selection(2, 1, 5)) as (view, _):
        assert not view.grab().toImage().isNull()


def test_the_null_group_looks_at_itself_and_is_called_none():
    capture = made()
    seen = seen_cells(capture, 2)
    np.testing.assert_array_equal(seen, np.tri(len(seen), dtype=bool))
    assert reason(capture, [HeadId(2, 0)]) == "not seen: comes after the query"
    said = program.followed(capture, Selection(0, 0, 0))
    assert said.endswith("in none of the segments yet")
    assert "in position 1 of segments (“every·”)" in program.followed(capture, Selection(0, 0, 6))


@pytest.mark.parametrize("kind", ["map", "levels", "links", "wall"])
def test_figures_show_segments(tmp_path, kind):
    from hgviz.store import write_capture

    write_capture(tmp_path / "c.h5", made())
    out = tmp_path / "figure.svg"
    given = ("--layer", 3, "--head", 1, "-o", out)
    assert call("figure", tmp_path / "c.h5", "--kind", kind, *given) == 0
    words = out.read_text()
    assert "segments" in words and (kind == "wall" or ">every<" in words or ">e<" in words)
