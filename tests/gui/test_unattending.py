"""A model without attention is named for what it is, and what was open stays open."""

from __future__ import annotations

import pytest

from hgviz.gui.dialogs import ErrorDialog
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
