"""Segments of unequal length in the window: their marks, and the null group."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtCore import QPointF

from hgviz import tasks
from hgviz.core import HeadId, Selection, finish
from hgviz.gui import follow as trace
from hgviz.gui import program, theme
from hgviz.gui.layouts import stages
from hgviz.gui.text import TextStrip
from hgviz.gui.textrows import LEFT, TOP, null_box, segment_ends
from hgviz.gui.view import VIEWS
from hgviz.gui.view import view as view_of
from hgviz.models.formats.checkpoint import save
from hgviz.models.model import open_model
from hgviz.session import Session
from tests.gui.showing import colour_at, shown
from tests.making import make_capture
from tests.models.building import make_transformer

TEXT = "the glass has run and is turned now"
SPACES = frozenset(at for at, letter in enumerate(TEXT) if letter == " ")
KEYS = {"family": "dynamic", "n_layers": [1, 2, 1], "vocab_size": 256, "boundaries": "learned"}
WIDE = (1600, 188)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with random weights that finds some ends and not others."""
    made = make_transformer(**KEYS)
    ids = torch.tensor([[*TEXT.encode()]])
    with torch.no_grad():
        at = made.down[0].boundary["out"].bias
        scores = []
        made.down[0].boundary.register_forward_hook(lambda *found: scores.append(found[2]))
        made(ids)
        at -= scores[0].quantile(0.7)
    path = tmp_path_factory.mktemp("segments") / "dynamic"
    save(path, made.config, made.state_dict())
    return path


@pytest.fixture(scope="module")
def model(folder):
    return open_model(folder)


@pytest.fixture(scope="module")
def own(model):
    """A capture between the segments that the model finds."""
    return finish(tasks.capture(model, model.tokenize(TEXT)))


@pytest.fixture(scope="module")
def given(model):
    """One between words, whose last is in no segment."""
    ends = [at in SPACES for at in range(len(TEXT))]
    return finish(tasks.capture(model, model.cut(model.tokenize(TEXT), ends)))


# --- what is shown --------------------------------------------------------------------------------


def test_the_fixture_is_worth_its_name(own, given):
    found = set(segment_ends(own).tolist())
    assert 3 < len(found) < len(TEXT) - 3 and found != SPACES
    assert set(segment_ends(given).tolist()) == SPACES
    assert segment_ends(make_capture(TEXT)) is None


def test_segments_are_as_wide_as_their_tokens_and_stand_under_them(app, given):
    chosen = Selection(3, 0, 20)
    with shown(TextStrip, WIDE, capture=given, selection=chosen) as (view, _):
        strip = view.strip
        tokens, segments = strip.lines
        assert (tokens.level, segments.level) == ("1:1", "segments")
        assert segments.spans.tolist() == given.spans[1].tolist() and segments.null
        first, last = given.spans[1][2]
        box = strip._cell_box(1, 2)
        assert (box.left(), box.right()) == tuple(
            LEFT + round(strip.ruler.x(one)) for one in (first, last)
        )
        assert segments.chosen == given.position(1, 20)
        assert strip._cell_box(1, 0) == null_box(*strip.rows.tops[1])
        assert strip._cell_box(1, 0).right() < LEFT - 3  # no token is as far left


def test_a_letter_before_any_end_asks_the_null_group(app, given):
    with shown(TextStrip, WIDE, capture=given, selection=Selection(3, 0, 2)) as (view, _):
        assert view.strip.lines[1].chosen == 0
        top, height = view.strip.rows.tops[1]
        edge = null_box(top, height)
        found = colour_at(view.strip, edge.left(), TOP + edge.center().y())
        assert found == theme.current().mark.getRgb()[:3]
    assert "in none of the segments" in program.followed(given, Selection(3, 0, 2))


def test_what_is_after_the_last_end_is_in_no_segment(app, given):
    with shown(TextStrip, WIDE, capture=given, selection=Selection(3, 0, 34)) as (view, _):
        strip, last = view.strip, max(SPACES)
        top, height = strip.rows.tops[1]
        x = LEFT + strip.ruler.x(last + 2)
        assert strip.token_at(QPointF(x, TOP + top + height / 2)) is None
        image = strip.grab().toImage()
        row = {image.pixel(round(x) + dx, TOP + top + 4) for dx in range(12)}
        assert len(row) > 1  # hatched


def test_marks_stand_where_segments_end(app, given):
    with shown(TextStrip, WIDE, capture=given, selection=Selection(3, 0, 20)) as (view, _):
        strip = view.strip
        assert set(strip.segment_ends.tolist()) == SPACES
        assert "▾ A segment ends." in view.legend.full
        top, height = strip.rows.lane
        image, ink = strip.grab().toImage(), theme.current().text.getRgb()[:3]
        y = TOP + top + height - 4
        for token in range(1, len(TEXT)):
            x = round(LEFT + strip.ruler.x(token + 1))
            near = {image.pixelColor(x + dx, y).getRgb()[:3] for dx in (-1, 0)}
            assert (ink in near) == (token in SPACES)


def test_heads_that_are_switched_off_do_not_move_ends_that_were_given(app, own, given):
    for capture, again in ((own, True), (given, False)):
        session = Session()
        session.put(capture=capture, checkpoint="x", off=frozenset({HeadId(1, 0)}))
        assert session.outdated == again


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("ends", [(), (0,), (34,), tuple(range(35))])
def test_every_segmentation_is_drawn_in_every_look(app, model, dark, ends):
    theme.apply(app, dark)
    bits = [at in ends for at in range(len(TEXT))]
    capture = finish(tasks.capture(model, model.cut(model.tokenize(TEXT), bits)))
    views = [view_of(name) for name in VIEWS] if ends == (0,) else [TextStrip]
    for kind in views:
        for layer, query in ((1, 0), (3, 34)):
            fields = {"capture": capture, "selection": Selection(layer, 0, query, 0)}
            with shown(kind, (900, 400), **fields) as (view, _):
                assert not view.grab().isNull()
    theme.apply(app, False)


# --- the null group has a name --------------------------------------------------------------------


def test_the_null_group_is_named_wherever_it_is_looked_at(app, given):
    from hgviz.gui.map import MapView
    from hgviz.gui.panels import LooksPanel

    chosen = Selection(1, 0, 1, 1)  # before any end
    assert "query 0 (null group)" in program.chosen_words(given, chosen)
    with shown(MapView, capture=given, selection=chosen) as (view, _):
        names = view.canvas.scene.rows
        assert (names.glyph(0), names.place(0)) == ("∅", "null group: no part of the text")
        assert names.glyph(1) == "the·"
        assert "null group" in view.canvas.card.text
    with shown(LooksPanel, (304, 200), capture=given, selection=chosen) as (view, _):
        assert view.letter.text() == "∅" and "null group" in view.where.full
        assert [(one.glyph, one.before) for one in view.keys.keys] == [("∅", "null group")]


@pytest.mark.parametrize("kind", ["map", "links"])
def test_the_null_group_is_named_on_paper(given, tmp_path, kind):
    from hgviz.figures import Spec

    out = tmp_path / "figure.svg"
    finish(tasks.figure(Spec(kind, Selection(1, 0, 20)), given, out))
    assert ">∅<" in out.read_text()


@pytest.mark.parametrize(("token", "said"), [(34, "“w” is in no segment yet"), (14, "“r” joins")])
def test_what_follows_the_last_end_joins_no_segment_when_it_is_followed(given, token, said):
    wish = trace.Wish(Selection(3, 0, token), {}, {})
    way = stages(given.spec)
    assert said in finish(trace.follow(given, way, token, wish, str)).chips[0]
