"""A model that was pruned for good, in the window: layers without heads among others."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from hgviz import tasks
from hgviz.core import finish
from hgviz.gui import sources
from hgviz.models import open_model

OFF = ("0.*,2.*", "0.*,1.*,2.*,3.*,4.*")
LOOKS = ("next_head", "next_layer", "last_head", "level_in", "strongest", "follow", "last_layer")


@pytest.fixture(params=OFF, ids=["some layers", "all layers"])
def pruned(request, program, checkpoint, tmp_path):
    """A program with a capture of such a model in it."""
    finish(tasks.prune(checkpoint, request.param, tmp_path / "small"))
    model = open_model(tmp_path / "small")
    capture = finish(tasks.capture(model, model.tokenize("Read in groups.")))
    found = finish(sources.measure(capture))
    program.session.put(capture=capture, facts=found.facts)
    program.settle()
    return program


def test_a_pruned_hourglass_is_shown_and_walked_through(pruned):
    for name in LOOKS * 2:
        pruned.commands.run(name)
        QApplication.processEvents()
        pruned.settle()
    capture = pruned.session.capture
    chosen = pruned.session.selection
    assert not capture.spec.heads or chosen.head_id in capture.spec.heads
