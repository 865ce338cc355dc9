"""Captures in which heads stream, opened in the window: what the map, the panel and B show."""

from dataclasses import replace

import numpy as np
import pytest

from hgviz import tasks
from hgviz.core import NO_STREAMING, HeadId, Selection, Streaming, finish
from hgviz.gui import grid, heatmap, panels, sides, sources
from hgviz.gui.actions import by_name
from hgviz.maps import LazyMap, Rule
from hgviz.session.other import Other

FIRST = HeadId(0, 0)
FEW = Streaming(frozenset({FIRST}), 4, 16)
TEXT = "A sailor turned the glass, and the sand ran down again. "


@pytest.fixture
def streamed(program, checkpoint, tmp_path, until):
    """A program that shows a capture in which a head streams, from its file."""
    model, path = finish(tasks.load(checkpoint, "cpu")), str(tmp_path / "few.h5")
    prompt, _ = tasks.prompt_from(model, TEXT)
    finish(tasks.capture(model, prompt, path, streaming=FEW))
    program.commands.show_found(finish(sources.look(path)))
    program.session.put(checkpoint=str(checkpoint), selection=Selection(*FIRST, 40, 10))
    program.settle()
    return program


def test_the_map_of_a_head_that_streams_says_which_keys_it_sees(streamed):
    view = streamed.inspect.map
    assert view.streams.isVisible() and view.streams.text() == "streams"
    assert "the first 4 keys and the latest 16" in view.streams.toolTip()
    assert view.canvas.hidden_words == "not seen: neither of the first 4 nor the latest 16"
    assert "the head sees the first keys and the latest alone" in view.as_text()
    rows = streamed.session.capture.maps[0].read(0)
    assert (rows[40, 4:25] == 0).all() and (rows[40, 25:41] > 0).all() and (rows[40, :4] > 0).all()
    assert "Heads stream in this capture" in by_name("attribute").why_off(streamed.session)
    streamed.session.put(selection=Selection(1, 0, 40, 10))
    streamed.settle()
    assert not view.streams.isVisible()


def test_b_is_as_a_is_but_for_what_it_is_to_be_without(streamed, until):
    session, other = streamed.session, frozenset({HeadId(1, 0)})
    assert dict(sides.switched(session))[frozenset()] == "The whole model"
    for off, streaming in ((other, FEW), (frozenset(), NO_STREAMING)):
        streamed.commands.comparing.choose(Other("off", off=off))
        until(lambda off=off: session.beside is not None and session.beside.off == off)
        assert session.beside.streaming == streaming
    for one in (Other("activation", "ymish"), Other("text", text="The sand ran down.")):
        before = session.beside
        streamed.commands.comparing.choose(one)
        until(lambda was=before: session.beside is not was and session.beside.complete)
        assert session.beside.streaming == FEW


@pytest.mark.parametrize("padded", [False, True])
def test_ranges_are_seen_where_the_head_sees_any_of_their_cells(padded):
    random = np.random.default_rng(0)
    keep = np.r_[random.random(40) < 0.7, np.zeros(8, bool)] if padded else None
    rule = Rule(1.0, ("softmax",) * 2, (None,) * 2, causal=True, keep=keep)
    rule = rule.streamed({1}, (3, 7)).of(1)
    cells = rule.sees(np.arange(48), np.arange(48)).reshape(12, 4, 16, 3)
    rows, columns = (np.stack([np.arange(0, 48, n), np.arange(n, 49, n)], 1) for n in (4, 3))
    found = grid.seen(rule, rows, columns)
    some = cells.any(axis=(1, 3))
    assert found[some].all()
    if padded:  # a range is judged by its ends
        assert (found != some).mean() < 0.1
    else:
        assert np.array_equal(found, some)
    assert heatmap.hidden(rule) == "not seen: neither of the first 3 nor the latest 7"


def test_the_panel_of_a_head_says_how_many_keys_it_sees(capture):
    one = capture.maps[0]
    rule = one.factors.rule.streamed((1,), (4, 9))
    streams = LazyMap(replace(one.factors, rule=rule), one.heads)
    assert panels._limits(streams, one.heads[1]) == ("Streams: first 4, latest 9",)
    assert panels._limits(streams, one.heads[0]) == ()
