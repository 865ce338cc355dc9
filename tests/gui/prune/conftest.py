"""A tiny model at the Prune page, with data."""

from __future__ import annotations

import json
import shutil

import pytest
from PySide6.QtWidgets import QApplication

from hgviz import tasks
from hgviz.core import finish
from hgviz.gui.dialogs import ErrorDialog


@pytest.fixture(scope="session")
def checkpoint(checkpoint, tmp_path_factory):
    """The tiny hourglass, which here sees 256 bytes at once and not 1024: it is scored often."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    shutil.copytree(checkpoint, folder)
    keys = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(keys | {"max_positions": 256}))
    return folder


@pytest.fixture(scope="session")
def story(tmp_path_factory):
    """Six windows of text."""
    path = tmp_path_factory.mktemp("data") / "story.txt"
    path.write_text("The bell rang, and the sand ran down. " * 40, encoding="utf-8")
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
