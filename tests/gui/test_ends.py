"""Segments of unequal length in the window: their marks, what a click or a key makes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz import tasks
from hgviz.analysis.texts import ends_given, ends_of
from hgviz.core import HeadId, Selection, finish
from hgviz.gui import status, theme
from hgviz.gui.actions import by_name
from hgviz.gui.compare.told import sides_of
from hgviz.gui.cutting import LengthDialog
from hgviz.gui.looks import VIEWS
from hgviz.gui.looks import view as view_of
from hgviz.gui.views import trace
from hgviz.gui.views.labels import null_box
from hgviz.gui.views.stages import stages
from hgviz.gui.views.strip import LEFT, TOP
from hgviz.gui.views.text import TextStrip
from hgviz.gui.working import GOING
from hgviz.models.formats.checkpoint import save
from hgviz.models.model import open_model
from hgviz.session import OWN, Session
from hgviz.session.other import Other
from hgviz.store import open_capture, write_capture
from tests.gui.showing import colour_at, shown
from tests.making import make_capture
from tests.models.building import make_transformer, write_transformer

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


def busy(program):
    return any(one.state in GOING for one in program.session.work)


@pytest.fixture
def window(program, folder, model, own):
    """The window on the capture, with the model that made it."""
    program.session.put(capture=own, model=model, checkpoint=str(folder), text=TEXT)
    program.session.put(selection=Selection(3, 0, 12))
    program.settle()
    return program


@pytest.fixture
def act(window, until):
    """Do something and wait until the text is captured again."""

    def doing(what, *given):
        what(*given)
        until(lambda: not busy(window))
        window.settle()

    return doing


def lane(strip, token):
    top, height = strip.rows.lane
    return QPoint(round(LEFT + strip.ruler.x(token + 1)), TOP + top + height // 2)


def hover(strip, place):
    spot = QPointF(place)
    none = Qt.MouseButton.NoButton
    event = QMouseEvent(
        QEvent.Type.MouseMove, spot, strip.mapToGlobal(spot), none, none,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    QApplication.sendEvent(strip, event)


# --- what is shown --------------------------------------------------------------------------------


def test_the_fixture_is_worth_its_name(own, given):
    found = ends_of(own)
    assert 3 < len(found) < len(TEXT) - 3 and found != SPACES
    assert ends_of(given) == ends_given(given) == SPACES and ends_given(own) is None
    assert ends_of(make_capture(TEXT)) is None


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
    assert "in none of the segments" in status.followed(given, Selection(3, 0, 2))


def test_what_is_after_the_last_end_is_in_no_segment(app, given):
    with shown(TextStrip, WIDE, capture=given, selection=Selection(3, 0, 34)) as (view, _):
        strip, last = view.strip, max(SPACES)
        top, height = strip.rows.tops[1]
        x = LEFT + strip.ruler.x(last + 2)
        assert strip.token_at(QPointF(x, TOP + top + height / 2)) is None
        image = strip.grab().toImage()
        row = {image.pixel(round(x) + dx, TOP + top + 4) for dx in range(12)}
        assert len(row) > 1  # hatched


def test_marks_stand_where_segments_end_and_say_who_ended_them(app, own, given):
    session = Session()
    session.put(capture=own)
    assert session.own is own
    with shown(TextStrip, WIDE, capture=own, selection=Selection(3, 0, 20)) as (view, session):
        marks = view._shown.marks
        assert set(marks.kept.tolist()) == ends_of(own) and not marks.moved
        assert view._said.endswith("as the model has them")
        session.put(capture=given)
        view.settle()
        marks = view._shown.marks
        assert set(marks.added.tolist()) == SPACES - ends_of(own)
        assert set(marks.gone.tolist()) == ends_of(own) - SPACES
        assert f"{len(SPACES)} segments: {len(marks.added)} ends added" in view._said
        assert "Blue: added." in view.legend.full and "Hollow" in view.legend.full
        strip = view.strip
        token = int(marks.added[0])
        head = lane(strip, token) + QPoint(0, 2)
        blue = theme.current().press.getRgb()[:3]
        image = strip.grab().toImage()
        near = {image.pixelColor(head.x() + dx, head.y()).getRgb()[:3] for dx in (-2, -1, 0, 1)}
        assert blue in near
        assert session.own is own


def test_a_given_segmentation_alone_says_that_it_was_given(app, given):
    with shown(TextStrip, WIDE, capture=given, selection=Selection(3, 0, 20)) as (view, session):
        assert session.own is None and view._said == f"{len(SPACES)} segments, as they were given"
        assert session.boundaries == SPACES and not session.cutting


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


# --- what is done ---------------------------------------------------------------------------------


def test_a_click_above_the_text_ends_a_segment_and_undo_takes_it_back(window, own, act):
    session, strip = window.session, window.inspect.strip.strip
    free = next(at for at in range(5, 30) if at not in ends_of(own))
    hover(strip, lane(strip, free))
    assert strip.toolTip() == f"Click to end a segment after “{TEXT[free]}”, letter {free}"
    act(lambda: QTest.mouseClick(strip, Qt.MouseButton.LeftButton, pos=lane(strip, free)))
    assert ends_of(session.capture) == ends_of(own) | {free} == session.boundaries
    assert session.selection == Selection(3, 0, 12)  # what was looked at stays
    assert session.facts and session.own is own
    hover(strip, lane(strip, free))
    assert "where the model has no end" in strip.toolTip()
    act(window.commands.run, "undo")
    assert ends_of(session.capture) == ends_of(own) and session.capture.prompt.boundaries is None
    act(window.commands.run, "redo")
    assert ends_of(session.capture) == ends_of(own) | {free}
    act(lambda: QTest.mouseClick(strip, Qt.MouseButton.LeftButton, pos=lane(strip, free)))
    assert session.boundaries == "" and session.own is session.capture  # it is the model's again


def test_an_edit_gives_what_the_model_gives_between_these_segments(window, model, act):
    session = window.session
    act(window.commands.run, "cut_here")
    bits = np.isin(np.arange(len(TEXT)), [*ends_of(session.capture)])
    assert session.capture.prompt.boundaries.tolist() == bits.tolist()
    wanted = model.run(session.capture.prompt.ids, boundaries=bits).logits
    np.testing.assert_array_equal(session.capture.logits, wanted)


def test_words_one_length_and_the_model_itself(window, own, act):
    session = window.session
    act(window.commands.run, "cut_words")
    assert ends_of(session.capture) == SPACES
    window.commands.run("cut_evenly")
    (dialog,) = window.frame.findChildren(LengthDialog)
    dialog.count.setValue(4)
    act(dialog._accept)
    assert ends_of(session.capture) == {*range(0, len(TEXT), 4)}
    act(window.commands.run, "uncut")
    assert ends_of(session.capture) == ends_of(own) and ends_given(session.capture) is None
    act(window.commands.run, "undo")
    assert ends_of(session.capture) == {*range(0, len(TEXT), 4)}


def test_segments_outlive_another_capture_of_the_text_and_no_other_text(window, act):
    session = window.session
    act(window.commands.run, "cut_words")
    session.put(off=frozenset({HeadId(1, 0)}))
    act(window.commands.run, "capture")
    assert ends_of(session.capture) == SPACES and session.capture.off
    assert session.own is None  # with heads off the model may find others
    act(window.commands.prompting.capture_text, "another text")
    assert session.boundaries == "" and not session.history.past
    assert ends_given(session.capture) is None


def test_b_of_compare_is_what_the_model_finds(window, own, act):
    session = window.session
    act(window.commands.run, "cut_words")
    act(window.commands.comparing.choose, Other("segments"))
    assert session.beside is own and sides_of(session).b == "own ends"
    act(window.commands.cut_at, 5)
    assert session.beside is own
    assert "segments" in by_name("report_sides").why_off(session)
    act(window.commands.prompting.capture_text, "another text")
    act(lambda: None)
    assert session.beside is session.own


def test_where_a_is_what_the_model_finds_too_that_is_said(window, own, act):
    session = window.session
    act(window.commands.run, "cut_words")
    act(window.commands.comparing.choose, Other("segments"))
    assert session.beside is own
    act(window.commands.run, "uncut")
    act(lambda: None)
    assert session.capture is session.own is session.beside
    assert (sides_of(session).a, sides_of(session).note[:4]) == ("A", "Both")


# --- refusals -------------------------------------------------------------------------------------


def why(session):
    return by_name("cut_here").why_off(session)


def test_refusals_are_one_line(app, own, tmp_path):
    session = Session()
    assert why(session) == "Needs a capture: capture a text first"
    session.put(capture=make_capture(TEXT), checkpoint="x")
    assert why(session) == "This model reads segments of one length"
    session.put(capture=finish(_plain(tmp_path)))
    assert why(session) == "This model reads no segments"
    write_capture(tmp_path / "one.h5", own)
    session.put(capture=open_capture(tmp_path / "one.h5"), checkpoint="")
    assert why(session) == "Needs the model: open its checkpoint first"
    session.put(checkpoint="x")
    assert why(session) == ""
    session.put(text="edited")
    assert why(session) == "The text was edited: capture it first"


def _plain(folder):
    plain = open_model(write_transformer(folder / "plain", vocab_size=256, form="decoder"))
    return tasks.capture(plain, plain.tokenize("text"))


def test_a_click_that_cannot_be_done_says_why(window):
    window.session.put(checkpoint="", model=None)
    before = window.session.capture
    window.commands.cut_at(3)
    assert "open its checkpoint" in window.frame.chosen_words.text()
    assert window.session.capture is before and window.session.boundaries == ""
    window.session.put(checkpoint="x", selection=replace(window.session.selection, query=None))
    window.commands.run("cut_here")
    assert "Choose where" in window.frame.chosen_words.text()


def test_undo_of_heads_comes_after_that_of_segments(window, act):
    session, commands = window.session, window.commands
    act(commands.pruning.switch, frozenset({HeadId(1, 0)}))
    act(commands.run, "cut_words")
    act(commands.run, "undo")
    assert session.off and session.boundaries == ""
    commands.run("undo")
    assert not session.off
    assert by_name("undo").why_off(session) == "Nothing to undo"


def test_own_is_a_word_that_no_way_is_called():
    from hgviz.models.texts.boundaries import WAYS

    assert OWN not in {one.name for one in WAYS}


# --- the null group has a name --------------------------------------------------------------------


def test_the_null_group_is_named_wherever_it_is_looked_at(app, given):
    from hgviz.gui.panels.looks import LooksPanel
    from hgviz.gui.views.map import MapView

    chosen = Selection(1, 0, 1, 1)  # before any end
    assert "query 0 (null group)" in status.chosen_words(given, chosen)
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
