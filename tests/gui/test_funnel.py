"""A Funnel in the window, and on paper: levels with [CLS] apart, and tokens that are left out."""

from __future__ import annotations

from functools import cache

import pytest

from hgviz.core import Selection, finish
from hgviz.gui.follow import Room, Wish, char_edges, follow, lay
from hgviz.gui.hourglass import HourglassView
from hgviz.gui.layouts import stages
from hgviz.gui.view import VIEWS
from hgviz.gui.view import view as view_of
from hgviz.store import write_capture
from tests.analysis.test_funnel import N, make
from tests.gui.showing import shown
from tests.test_families import call

SIZES = {"blocks": (2, 2, 2)}


@cache
def made():
    return make("apart", **SIZES)[0]


@cache
def base():
    return make("apart", **SIZES, after=None)[0]


@cache
def no_stay():
    """Nothing but the layer that looks down at the last level."""
    return make("apart")[0]


def course(token):
    return lay(made(), stages(made().spec), token, char_edges(made()), Room(1200, 800))


@pytest.mark.parametrize("token", [0, 1, 4, 5, 17])
def test_a_letter_is_followed_to_its_positions_and_back(token):
    way, found = stages(made().spec), course(token)
    assert [one.level for one in way] == [0, 1, 2, 0]
    back = found.crossings[-1].others
    own = found.strips[2].cell(made().position(2, token))
    assert back is not None and back[:2] == own
    together = [at for at in range(N) if made().position(2, at) == made().position(2, token)]
    ends = [one for at in together if (one := found.strips[3].cell(at))]
    assert back[2:] == (ends[0][0], ends[-1][1])
    assert found.strips[1].before == 0  # no zeros of a shift


def test_a_letter_that_is_left_out_gets_nothing_back():
    assert N == 31 and made().spans[2][-1].tolist() == [25, 29]
    for token, back in ((0, True), (28, True), (29, False), (30, False)):
        wish = Wish(Selection(0, 0, token), {}, {})
        said = finish(follow(made(), stages(made().spec), token, wish, str)).chips[-1]
        assert (course(token).crossings[-1].thread is not None) is back
        assert ("gets nothing back" not in said) is back


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("capture", [made, base, no_stay])
def test_views_show_it(qtbot, kind, capture):
    with shown(view_of(kind), (900, 700), capture=capture(), selection=Selection(2, 1, N - 1)) as (
        view,
        _,
    ):
        assert not view.grab().toImage().isNull()


def test_only_with_its_decoder_a_text_grows_back(qtbot):
    for capture, said in ((made(), True), (base(), False)):
        with shown(HourglassView, (900, 700), capture=capture) as (view, _):
            assert ("grows back" in view.head.note.text()) is said


@pytest.mark.parametrize("kind", ["map", "levels", "links", "wall", "rollout"])
def test_figures_show_it(tmp_path, kind):
    write_capture(tmp_path / "c.h5", made())
    out = tmp_path / "f.svg"
    asked = ("--kind", kind, "--layer", 2, "--head", 1, "--query", N - 1, "-o", out)
    assert call("figure", tmp_path / "c.h5", *asked) == 0 and out.stat().st_size > 1000
