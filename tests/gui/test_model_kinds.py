"""Every kind of model in the window: encoders, decoders, both, slots, signed and mixed heads."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz import tasks
from hgviz.analysis.composition import is_of_tokens
from hgviz.core import HeadId, Selection
from hgviz.gui import sources
from hgviz.gui.actions import BY_NAME
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.export import command_for, offers
from hgviz.gui.follow import FollowView
from hgviz.gui.grid import signed
from hgviz.gui.hourglass import HourglassView
from hgviz.gui.links import LinksView
from hgviz.gui.map import MapView
from hgviz.gui.sentences import of_text
from hgviz.gui.text import TextStrip
from hgviz.gui.textrows import LEFT, TOP
from hgviz.gui.view import LOOKS
from hgviz.maps import LazyMap
from hgviz.models import open_model
from tests.gui import kinds
from tests.gui.kinds import ENGLISH, GERMAN, KINDS
from tests.gui.screen import plain, shown, shows_no_error
from tests.making import make_capture
from tests.models import zoo

CROSS = Selection(4, 1, 6, 3)  # of the translator: target gut, source is
WIDE = (1600, 188)


@cache
def made(name, **keys):
    return KINDS[name](**keys)


def place(strip, row, token):
    top, height = strip.tops[row]
    x = (strip.ruler.x(token) + strip.ruler.x(token + 1)) / 2
    return QPoint(round(LEFT + x), TOP + top + height // 2)


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_every_head_of_every_kind_opens_in_every_view(app, name):
    capture = made(name)
    for layer in capture.spec.layers:
        chosen = Selection(layer.index, layer.heads[-1], 3, 2)
        with shown(MapView, capture=capture, selection=chosen) as (view, _):
            whole = capture.maps[layer.index].read(layer.heads[-1])
            assert view.canvas.panes[0].scene.source.shape == whole.shape
            assert plain(view.canvas.sentence.text())
        with shown(TextStrip, WIDE, capture=capture, selection=chosen) as (view, _):
            assert any(line.weights is not None for line in view._data.rows)
            assert view.legend.full
    for layer in (capture.spec.layers[0], capture.spec.layers[-1]):
        chosen = Selection(layer.index, 0, 3)
        for look in (FollowView, LinksView):
            with shown(look, (900, 500), capture=capture, selection=chosen) as (view, _):
                assert shows_no_error(view)


# --- two texts ------------------------------------------------------------------------------------


def test_a_map_between_two_texts_names_both(app):
    capture = made("translator")
    with shown(MapView, capture=capture, selection=CROSS) as (view, _):
        scene = view.canvas.panes[0].scene
        assert scene.source.shape == (len(capture.target), len(capture.prompt))
        assert scene.titles == ("Source", "Target")
        assert view.head.level.text() == "decoder 0 cross"
        assert scene.rows.glyph(6) == "gut" and scene.columns.glyph(3) == "is"
        said = plain(view.canvas.sentence.text())
        assert said.startswith("gut puts") and "of its weight on is." in said  # no distance
        view.canvas.pointed.emit((6, 4))
        card = plain(view.canvas.panes[0].card.text())
        assert "gut" in card and "position 4" in card


def test_the_text_strip_shows_both_and_a_click_means_query_or_key(app, qtbot):
    capture = made("translator")
    with shown(TextStrip, WIDE, capture=capture, selection=CROSS) as (view, session):
        source, target = view.strips
        assert source.isVisible() and target.isVisible()
        assert tuple(one.rows[0].texts.prompt.text for one in view.strips) == (ENGLISH, GERMAN)
        (line,) = source.rows
        assert line.head == HeadId(4, 1)
        assert np.array_equal(line.weights, capture.maps[4].read(1)[6])
        assert (line.key, line.chosen) == ((3, 4), None)
        assert target.rows[0].chosen == (6, 7)
        qtbot.mouseClick(source, Qt.MouseButton.LeftButton, pos=place(source, 0, 9))
        assert session.selection == replace(CROSS, key=9)
        qtbot.mouseClick(target, Qt.MouseButton.LeftButton, pos=place(target, 0, 2))
        assert session.selection == replace(CROSS, key=9, query=2)


def test_the_question_of_a_pane_holds_the_capture_it_was_asked_of(program, capture, facts):
    """A lane comes to it when the session is further."""
    session, small = program.session, make_capture("ab", heads=1)
    session.put(capture=capture, facts=facts, selection=Selection(12, 5, 60, 3), capture_b=capture)
    program.complete()
    asked = {view: view.request(session) for view in program.views}
    asked = {view: work for view, work in asked.items() if callable(work)}
    assert len(asked) > 5
    session.put(capture=small, facts={}, selection=Selection(0, 0, 1, 0), capture_b=None)
    for view, work in asked.items():
        assert work() is not None, type(view).__name__


# --- what the model says --------------------------------------------------------------------------


def test_a_classifier_says_its_class(app):
    capture = made("classifier")
    assert of_text(capture).sentence() == "positive 97 %"
    bare = replace(capture, spec=replace(capture.spec, labels=()))
    assert of_text(bare).answers[0][0] == "class 1"  # without a name
    with shown(TextStrip, WIDE, capture=capture, selection=Selection(0, 0, 3)) as (view, _):
        assert view.verdict.isVisible() and view.verdict.text() == "positive 97 %"
    with shown(HourglassView, (592, 714), capture=capture) as (view, _):
        assert view.grid.picture.scene.ends() == ("Text in", "Classes")
    with shown(FollowView, WIDE, capture=capture, selection=Selection(0, 0, 3)) as (view, _):
        told = view.canvas.scene.trace.verdict
        assert told.question("token") == "Prediction:"
        assert [name for name, _ in told.answers] == ["positive", "negative"]


# --- slots ----------------------------------------------------------------------------------------


def test_slots_are_columns_and_a_row_of_their_own(app, qtbot):
    capture = made("yubert")
    with shown(MapView, capture=capture, selection=Selection(1, 0, 5, 3)) as (view, _):
        assert view.canvas.panes[0].scene.source.shape == (18, 8)
        assert view.canvas.panes[0].scene.columns.glyph(3) == "slot 3"
        assert view.head.level.text() == "slots → text"
    chosen = Selection(1, 0, 5, 3)
    with shown(TextStrip, WIDE, capture=capture, selection=chosen) as (view, session):
        text, slots = view.strips
        assert text.rows[0].weights is None and text.rows[0].chosen == (5, 6)
        assert np.array_equal(slots.rows[0].weights, capture.maps[1].read(0)[5])
        qtbot.mouseClick(slots, Qt.MouseButton.LeftButton, pos=place(slots, 0, 6))
        assert session.selection == Selection(1, 0, 5, 6)


# --- signs ----------------------------------------------------------------------------------------


def test_signed_maps_are_symmetric_about_zero_and_their_sentences_say_the_sign(app):
    capture = made("ymish")
    weights = capture.maps[0].read(4)
    row, column = (int(one) for one in np.unravel_index(weights.argmin(), weights.shape))
    chosen = Selection(0, 4, row, column)
    with shown(MapView, capture=capture, selection=chosen) as (view, session):
        low, high = view.canvas.panes[0].scene.limits
        assert -low == high == pytest.approx(float(np.abs(weights).max()))
        said = plain(view.canvas.sentence.text())
        total, plus = float(weights[row].sum()), float(np.maximum(weights[row], 0).sum())
        assert f"subtracts {-weights[row, column]:.3f} of" in said
        assert f"sums to {total:+.3f}: +{plus:.3f} −".replace("-", "−") in said
        session.select(key=int(weights[row].argmax()))
        assert "adds" in plain(view.canvas.sentence.text())
        view.canvas.pointed.emit((row, column))
        assert "subtracted" in plain(view.canvas.panes[0].card.text())


def test_each_head_of_a_mixed_layer_has_its_own_signs(app):
    capture = made("six")
    assert capture.maps[0].signed
    expected = [False, True, True, True, True, True]
    assert [signed(capture, HeadId(0, head)) for head in range(6)] == expected
    with shown(MapView, capture=capture, selection=Selection(0, 0, 3, 3)) as (view, _):
        scene = view.canvas.panes[0].scene
        assert not scene.signed and scene.limits[0] == 0 and scene.mass is None
        assert "of its weight on" in plain(view.canvas.sentence.text())
    for head, legend in enumerate(("Brighter", "Red: positive")):
        chosen = Selection(0, head, 3)
        with shown(TextStrip, WIDE, capture=capture, selection=chosen) as (view, _):
            assert view.strip.rows[0].signed == (head == 1) and legend in view.legend.full


# --- following two texts --------------------------------------------------------------------------


def test_a_target_token_is_followed_by_turns_into_the_source(app):
    capture = made("translator")
    with shown(FollowView, (1600, 900), capture=capture, selection=CROSS) as (view, session):
        story = view.canvas.scene
        assert [one.kind for one in story.trace.way] == ["own", "cross"] * 3
        assert [one.level for one in story.trace.way] == [1, 0] * 3
        assert [one is None for one in story.layout.own] == [False, True] * 3
        assert view.token.text() == "gut"
        assert "through the decoder" in view.head.note.full
        assert "the source" in story.trace.sentence
        row = capture.maps[4].read(1)[6]
        assert np.array_equal(story.trace.rows[1].weights, row)
        QTest.keyClick(view.canvas, Qt.Key.Key_Right)
        assert session.selection.query == 7


# --- the tokens behind slots ----------------------------------------------------------------------


def linformer():
    """A classifier of eight slots in heads of several activations, with what they are mixed of."""
    capture = kinds.yubert(activations=["softmax", "ymish", "tanh", "softmax"], n_heads=4)
    random, tokens = np.random.default_rng(0), len(capture.prompt)
    maps = tuple(
        LazyMap(replace(one.factors, mixture=random.normal(size=(1, 8, tokens)).astype("f4")),
                one.heads)
        for one in capture.maps
    )  # fmt: skip
    return replace(capture, maps=maps, path="/somewhere/lin.h5")


def test_slots_give_way_to_the_tokens_behind_them_and_come_back(program):
    session, capture = program.session, linformer()
    session.put(capture=capture, selection=Selection(1, 0, 5, 3), off=frozenset({HeadId(0, 1)}))
    program.settle()
    program.commands.run("tokens")
    program.settle()
    assert is_of_tokens(session.capture) and session.selection == Selection(1, 0, 5, None)
    assert session.off == {HeadId(0, 1)} and session.capture.path == capture.path
    for look in LOOKS:
        session.put(look=look)
        program.settle()
    found = {one.name: one for one in offers(session, ())}
    for name in ("map", "links", "wall", "levels"):
        command = command_for(found[name].of, found[name].spec, "f.pdf").words
        assert " --tokens " in command and "/somewhere/lin.h5" in command
    assert "--tokens" not in command_for(found["rollout"].of, found["rollout"].spec, "f.pdf").words
    assert "Show slots first" in BY_NAME["save"].why_off(session)
    program.commands.run("tokens")
    program.settle()
    assert session.capture.spec == capture.spec and session.off == {HeadId(0, 1)}
    assert np.array_equal(session.capture.spans[1], capture.spans[1])
    assert session.capture.maps[1] is capture.maps[1]
    assert not BY_NAME["save"].why_off(session)
    assert not program.frame.findChildren(ErrorDialog)


# --- layers that do not attend --------------------------------------------------------------------


def test_the_pane_of_layers_says_how_many_have_no_map_and_why(program, capture, until, tmp_path):
    path = zoo.write(tmp_path / "jamba", "jamba", "JambaForCausalLM")
    model = tasks.load(path, "cpu")
    view = program.inspect.hourglass
    program.session.put(model=model, checkpoint=str(path))
    program.settle()
    assert view.mapless.text() == "1 layer has no map: JambaMambaMixer, JambaMLP"
    assert view.mapless.isVisible() and view.mapless.wordWrap()
    program.session.put(model=None, capture=capture, checkpoint="")
    program.settle()
    assert not view.mapless.isVisible()


# --- layers without heads -------------------------------------------------------------------------

STEPS = ("next_head", "next_layer", "last_head", "level_in", "strongest", "follow", "last_layer")


@pytest.fixture(params=["0.*,2.*", "0.*,1.*,2.*,3.*,4.*"], ids=["some layers", "all layers"])
def pruned(request, program, checkpoint, tmp_path):
    """A program with a capture of such a model in it."""
    tasks.prune(checkpoint, request.param, tmp_path / "small")
    model = open_model(tmp_path / "small")
    capture = tasks.capture(model, model.tokenize("Read in groups."))
    program.session.put(capture=capture, facts=sources.measure(capture).facts)
    program.settle()
    return program


def test_a_pruned_hourglass_is_shown_and_walked_through(pruned):
    for name in STEPS * 2:
        pruned.commands.run(name)
        QApplication.processEvents()
        pruned.settle()
    capture = pruned.session.capture
    chosen = pruned.session.selection
    assert not capture.spec.heads or chosen.head_id in capture.spec.heads
