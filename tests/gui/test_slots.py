"""The tokens behind slots, in a real window."""

from __future__ import annotations

import numpy as np

from hgviz.analysis.mixed import is_of_tokens, of_tokens
from hgviz.core import HeadId, Selection, replace
from hgviz.gui.actions import by_name
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.export import command_for, offers
from hgviz.gui.view import LOOKS
from hgviz.maps import LazyMap
from tests.gui import kinds


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
    assert "show them first" in by_name("save").why_off(session)
    program.commands.run("tokens")
    program.settle()
    assert session.capture.spec == capture.spec and session.off == {HeadId(0, 1)}
    assert np.array_equal(session.capture.spans[1], capture.spans[1])
    assert session.capture.maps[1] is capture.maps[1]
    assert not by_name("save").why_off(session)
    assert not program.frame.findChildren(ErrorDialog)


def test_what_has_no_slots_says_so(opened):
    assert "not at slots" in by_name("tokens").why_off(opened.session)
    before = opened.session.capture
    opened.commands.run("tokens")
    assert opened.session.capture is before


def test_slots_of_unknown_tokens_are_said_in_a_dialog(program):
    program.session.put(capture=kinds.yubert())
    program.commands.run("tokens")
    (dialog,) = program.frame.findChildren(ErrorDialog)
    assert "does not say which tokens" in dialog.error.what
    dialog.close()


def test_every_head_of_tokens_is_signed():
    from hgviz.analysis.heads import signed
    from hgviz.figures.paper.frame import signed_head

    capture = of_tokens(linformer())
    assert all(signed(capture.spec.layers[0], capture.maps[0]))
    assert all(signed_head(capture, 0, head) for head in range(4))


def test_neurons_send_to_the_slots(program):
    program.session.put(capture=of_tokens(linformer()), look="neurons")
    program.settle()
    view = next(one for one in program.commands.views if one.name == "neurons")
    assert view.empty[0] == "Queries meet slots here"
    assert view.empty_actions == (("tokens", "Show the slots"),)
