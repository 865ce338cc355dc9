"""A model without attention is named for what it is, and what was open stays open."""

from __future__ import annotations

import pytest

from hgviz import tasks
from hgviz.core import finish
from hgviz.gui import hourglass
from hgviz.gui.dialogs import ErrorDialog
from tests.models import zoo
from tests.models.building import write_unattending


@pytest.mark.parametrize("keys", [{"family": "lstm"}, {"family": "window", "window": 3}])
def test_a_model_without_attention_is_refused_in_words(opened, capture, until, tmp_path, keys):
    program = opened
    write_unattending(tmp_path / "m", vocab_size=256, **keys)
    program.commands.open_path(str(tmp_path / "m"))
    until(lambda: program.frame.findChild(ErrorDialog) is not None)
    dialog = program.frame.findChild(ErrorDialog)
    assert "does not attend" in dialog.error.what and "hgviz reach" in dialog.error.do
    assert program.session.capture is capture
    program.settle()


def test_the_pane_of_layers_says_which_have_no_map_and_why(program, capture, until, tmp_path):
    path = zoo.write(tmp_path / "jamba", "jamba", "JambaForCausalLM")
    model = finish(tasks.load(path, "cpu"))
    view = program.inspect.hourglass
    program.session.put(model=model, checkpoint=str(path))
    program.settle()
    assert view.mapless.text() == "1 layer has no map: JambaMambaMixer, JambaMLP"
    assert view.mapless.toolTip() == "model.layers.0: JambaMambaMixer, JambaMLP"
    assert view.mapless.isVisible() and view.mapless.wordWrap()
    program.session.put(model=None, capture=capture, checkpoint="")
    program.settle()
    assert not view.mapless.isVisible()


def test_of_many_layers_without_a_map_the_first_are_listed():
    others = tuple((f"layers.{at}", "Mixer" if at % 2 else "Mamba") for at in range(40))
    assert hourglass.mapless_words(others) == "40 layers have no map: Mamba; Mixer"
    lines = hourglass.mapless_names(others).splitlines()
    assert lines[0] == "layers.0: Mamba" and lines[-1] == "and 24 more" and len(lines) == 17
    assert hourglass.mapless_words(()) == hourglass.mapless_names(()) == ""
