"""A tiny model at the Prune page, with data."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from hgviz import tasks
from hgviz.core import finish
from hgviz.gui.dialogs import ErrorDialog


@pytest.fixture(scope="session")
def story(tmp_path_factory):
    """Six windows of text."""
    path = tmp_path_factory.mktemp("data") / "story.txt"
    path.write_text("The bell rang, and the sand ran down. " * 160, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tiny(checkpoint):
    """The tiny hourglass, open."""
    return finish(tasks.load(str(checkpoint), "cpu"))


@pytest.fixture
def pruning(program, tiny, checkpoint):
    """A program on its Prune page, without data."""
    program.session.put(model=tiny, checkpoint=str(checkpoint))
    program.commands.run("prune")
    QApplication.processEvents()
    program.settle()
    return program


@pytest.fixture
def scored(pruning, story, until):
    """The same with data, the whole model scored."""
    pruning.commands.use_data(str(story))
    until(lambda: pruning.session.trial is not None and pruning.session.trial.done)
    pruning.settle()
    return pruning


@pytest.fixture
def errors(program):
    """What error dialogs say."""
    return lambda: [
        one.error for one in program.frame.findChildren(ErrorDialog) if not one.isHidden()
    ]
