"""The third state of a head: it streams, in the score, the capture, the wall and the session."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from hgviz import settings, tasks
from hgviz.core import NO_STREAMING, HeadId, Selection, Streaming, finish
from hgviz.gui import opening, reasons
from hgviz.gui.actions import by_name
from hgviz.gui.compare import offers
from hgviz.gui.keeping import recovery
from hgviz.gui.panels import heads
from hgviz.gui.prune import trying
from hgviz.gui.views import sayings, sight
from hgviz.maps import LazyMap, Rule
from hgviz.session import Session
from hgviz.session.other import Other
from hgviz.session.saved import FORMAT, VERSION, Saved, SavedStreaming
from tests.gui.showing import colour_at

FIRST = HeadId(0, 0)


def quiet(program):
    return not any(one.state in ("waiting", "running") for one in program.session.work)


def settled(program, until):
    until(lambda: program.session.trial.done)
    until(lambda: program.session.trial.variant == program.session.variant)
    program.settle()


@pytest.fixture
def eager(pruning):
    """A program on its Prune page, with heads that are to see the latest 16 keys."""
    settings.save(settings.Settings(recent_keys="16"))
    pruning.session.put(selection=Selection(*FIRST))
    return pruning


def test_its_key_lets_a_head_stream_and_undo_takes_it_back(eager):
    session = eager.session
    QTest.keyClick(eager.frame, Qt.Key.Key_X, Qt.KeyboardModifier.ShiftModifier)
    assert session.streaming == Streaming(frozenset({FIRST}), 4, 16) and not session.off
    eager.commands.run("undo")
    assert session.streaming == NO_STREAMING
    eager.commands.run("redo")
    eager.commands.run("stream_head")
    assert session.streaming == NO_STREAMING


def test_a_head_is_on_streams_or_is_off_and_never_two_of_these(eager):
    session, run = eager.session, eager.commands.run
    run("stream_head")
    run("switch_head")
    assert session.off == {FIRST} and session.streaming == NO_STREAMING
    run("stream_head")
    assert not session.off and session.streaming.heads == {FIRST}
    run("undo")  # one step each, whatever it changed
    assert session.off == {FIRST} and session.streaming == NO_STREAMING
    run("undo")
    assert not session.off and session.streaming.heads == {FIRST}
    assert not by_name("all_on").why_off(session)
    run("all_on")
    assert session.variant == (frozenset(), NO_STREAMING)


def test_only_heads_whose_queries_have_latest_keys_stream(eager, tiny):
    spec = tiny.spec
    cases = (("causal", False, "keys that come later"), ("window", 2, "sees windows"))
    for name, value, why in cases:
        layer = replace(spec.layers[0], **{name: value})
        session = Session()
        session.put(spec=replace(spec, layers=(layer, *spec.layers[1:])), selection=Selection(0))
        assert why in reasons.streamable(session)
        assert not layer.can_stream
    assert reasons.streamable(eager.session) == ""
    eager.session.model = SimpleNamespace(config=SimpleNamespace(asks=False))
    assert "code of its own" in reasons.streamable(eager.session)
    eager.session.model = tiny
    assert "Needs a model" in reasons.streamable(Session())


def test_the_live_score_is_that_of_heads_that_stream(eager, story, until):
    eager.commands.use_data(str(story))
    until(lambda: eager.session.trial is not None and eager.session.trial.done)
    whole = eager.session.trial
    eager.commands.run("stream_head")
    settled(eager, until)
    trial, trials = eager.session.trial, eager.commands.pruning.trials
    assert trial.streaming == eager.session.streaming and not trial.whole
    few = trials.streamed(trial.streaming)
    again = finish(trying.trying(trials, frozenset(), trial.streaming))
    assert again.paired.score.value == trial.paired.score.value
    losses = np.concatenate([few.whole(batch)[0] for block in few.blocks for batch in block])
    assert trial.now.loss.sum() == pytest.approx(losses.sum(), rel=1e-6)
    assert trial.now.loss.sum() != pytest.approx(whole.now.loss.sum(), rel=1e-9)
    assert trial.before.loss.sum() == pytest.approx(whole.now.loss.sum(), rel=1e-6)
    assert "1 streaming" in eager.prune.live.head.title.text()
    assert eager.prune.live.lines["Difference"].text() != "0: no head is off"
    eager.commands.run("undo")  # the score of before is shown again at once
    assert eager.session.trial is whole
    given_ = tasks.evaluate(trials.model, story, streaming=trial.streaming)
    assert finish(given_).loss == pytest.approx(trial.now.loss.mean(), rel=1e-5)


def test_masks_are_of_heads_that_are_off_alone(eager, story, until):
    eager.commands.use_data(str(story))
    until(lambda: eager.session.trial is not None and eager.session.trial.done)
    eager.commands.pruning.switch(frozenset({HeadId(1, 0)}))
    eager.commands.run("keep_mask")
    settled(eager, until)
    kept = eager.session.masks
    eager.commands.run("stream_head")
    settled(eager, until)
    assert eager.session.masks == kept
    assert "Masks keep" in by_name("keep_mask").why_off(eager.session)
    assert not eager.prune.heads.masks.keep.isEnabled()


def test_the_wall_marks_heads_that_stream_in_light_and_dark(eager):
    wall, session = eager.prune.heads.wall, eager.session
    other = HeadId(0, 1)
    for dark in (False, True):
        session.put(dark=dark)
        eager.commands.pruning.stream(frozenset())
        eager.settle()
        box = wall.wall.box(other)
        x, y = round(box.left() + box.width() * 0.25), round(box.bottom() - 8)
        before = colour_at(wall, x, y)
        eager.commands.pruning.stream(frozenset({other}))
        eager.settle()
        assert colour_at(wall, x, y) != before
    assert "streams: first 4, latest 16" in wall.words(other)
    assert "1 streaming" in eager.prune.heads.head.note.text()
    assert "1 streaming" in wall.accessibleDescription()
    rows = eager.prune.heads.as_table()
    assert [(row[0], row[-1]) for row in rows[1:3]] == [("0.0", "0"), ("0.1", "1")]


def test_the_preference_says_how_many_keys_and_acts_at_once(eager):
    eager.commands.run("stream_head")
    eager.commands._prefer("recent_keys", "64")
    assert eager.session.streaming == Streaming(frozenset({FIRST}), 4, 64)
    eager.commands.run("undo")
    assert eager.session.streaming.recent == 16
    eager.commands.pruning.all_on()
    eager.commands._prefer("recent_keys", "1024")
    assert eager.session.streaming == NO_STREAMING
    eager.commands.run("stream_head")
    assert eager.session.streaming.recent == 1024


def test_the_next_capture_is_of_heads_that_stream_and_the_map_says_so(eager, until, monkeypatch):
    monkeypatch.setattr(opening, "is_quick", lambda capture: False)  # as of a long text
    session, view = eager.session, eager.inspect.map
    text = "A sailor turned the glass, and the sand ran down again. "
    session.put(text=text, mode="inspect")
    eager.commands.run("capture")
    until(lambda: session.capture is not None and session.capture.complete and quiet(eager))
    session.put(selection=Selection(*FIRST, 40))
    eager.commands.run("stream_head")
    eager.settle()
    assert view.streams.text() == "streams: not in this capture"
    assert "capture the text again" in view.streams.toolTip()
    assert "the model writes when all see all keys" in by_name("write").why_off(session)
    eager.commands.run("capture")
    until(lambda: session.capture.streaming == session.streaming and quiet(eager))
    session.put(selection=Selection(*FIRST, 40, 10))
    eager.settle()
    assert view.streams.text() == "streams"
    assert view.canvas.hidden_words == "not seen: neither of the first 4 nor the latest 16"
    assert "the head sees the first keys and the latest alone" in view.as_text()
    rows = session.capture.maps[0].read(0)
    assert (rows[40, 4:25] == 0).all() and (rows[40, 25:41] > 0).all() and (rows[40, :4] > 0).all()
    assert "Heads stream in this capture" in by_name("attribute").why_off(session)
    eager.commands.pruning.all_on()
    eager.settle()
    assert view.streams.text() == "streamed"


@pytest.mark.parametrize("padded", [False, True])
def test_ranges_are_seen_where_the_head_sees_any_of_their_cells(padded):
    random = np.random.default_rng(0)
    keep = np.r_[random.random(40) < 0.7, np.zeros(8, bool)] if padded else None
    rule = Rule(1.0, ("softmax",) * 2, (None,) * 2, causal=True, keep=keep)
    rule = rule.streamed({1}, (3, 7)).of(1)
    cells = rule.sees(np.arange(48), np.arange(48)).reshape(12, 4, 16, 3)
    rows, columns = (np.stack([np.arange(0, 48, n), np.arange(n, 49, n)], 1) for n in (4, 3))
    found = sight.seen(rule, rows, columns)
    some = cells.any(axis=(1, 3))
    assert found[some].all()
    if padded:  # a range is judged by its ends
        assert (found != some).mean() < 0.1
    else:
        assert np.array_equal(found, some)
    assert sayings.hidden(rule) == "not seen: neither of the first 3 nor the latest 7"


def test_b_is_as_a_is_but_for_what_it_is_to_be_without(eager, until):
    session = eager.session
    session.put(text="A sailor turned the glass, and the sand ran down.")
    eager.commands.run("stream_head")
    eager.commands.run("capture")
    until(lambda: session.capture is not None and session.capture.complete and quiet(eager))
    few, other = session.capture.streaming, frozenset({HeadId(1, 0)})
    offered = dict(offers.switched(session))
    assert offered[frozenset()] == "The whole model"
    for off, streaming in ((other, few), (frozenset(), NO_STREAMING)):
        eager.commands.comparing.choose(Other("off", off=off))
        until(lambda off=off: session.beside is not None and session.beside.off == off)
        assert session.beside.streaming == streaming
    eager.commands.comparing.choose(Other("activation", "ymish"))
    until(lambda: session.beside is not None and session.beside.spec.name.endswith("ymish"))
    assert session.beside.streaming == few


def test_the_panel_of_a_head_says_how_many_keys_it_sees(capture):
    one = capture.maps[0]
    rule = one.factors.rule.streamed((1,), (4, 9))
    streams = LazyMap(replace(one.factors, rule=rule), one.heads)
    assert heads._limits(streams, one.heads[1]) == ("Streams: first 4, latest 9",)
    assert heads._limits(streams, one.heads[0]) == ()


def test_what_was_left_says_how_many_heads_stream():
    kept = Saved(FORMAT, VERSION, streaming=SavedStreaming(("0.0", "0.1"), 4, 9))
    assert ("Heads that stream", "2") in recovery.contents(kept)
