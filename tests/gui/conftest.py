"""A program in a real window, off screen."""

import json
import shutil
import time

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication

from hgviz import tasks
from hgviz.core import finish
from hgviz.gui.dialogs import ErrorDialog


@pytest.fixture
def app(qapp):
    """The application, dressed in the light theme."""
    from hgviz.gui import theme

    theme.apply(qapp, dark=False)
    return qapp


@pytest.fixture
def program(app):
    """A program with nothing open, in a window of 1600 x 1000."""
    from hgviz.gui.program import Program
    from hgviz.gui.window import Window

    frame = Window()
    frame.resize(1600, 1000)
    frame.show()
    one = Program(frame)
    QApplication.processEvents()
    yield one
    one.close()
    frame.close()
    frame.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture(scope="session")
def facts(capture):
    """What is measured of the capture: once, nothing changes it."""
    from hgviz.gui import sources

    return finish(sources.measure(capture)).facts


@pytest.fixture
def opened(program, capture, facts):
    """The same with a capture in it, everything drawn."""
    program.session.put(capture=capture, facts=dict(facts))
    program.settle()
    return program


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """A folder with a tiny hourglass that reads bytes, with random weights."""
    import torch

    from hgviz.models.config import HourglassConfig
    from hgviz.models.families.hourglass import Hourglass
    from hgviz.models.formats.checkpoint import save
    from hgviz.models.hierarchy import parse_hierarchy

    torch.manual_seed(0)
    config = HourglassConfig(256, 16, 2, parse_hierarchy("1@1 1@2 1@1"), positions="rotary")
    folder = tmp_path_factory.mktemp("models") / "tiny"
    save(folder, config, Hourglass(config).state_dict())
    return folder


@pytest.fixture
def until():
    """Turn the event loop until something is so."""

    def wait(condition, seconds=120.0):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it did not happen"
            QApplication.processEvents()
            time.sleep(0.005)

    return wait


@pytest.fixture
def kept(tmp_path, capture):
    """A capture in a file."""
    from hgviz.store import write_capture

    path = tmp_path / "kept.h5"
    write_capture(path, capture)
    return path


# --- the Prune page -------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def short_checkpoint(checkpoint, tmp_path_factory):
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
def tiny(short_checkpoint):
    """The tiny hourglass, open."""
    return finish(tasks.load(str(short_checkpoint), "cpu"))


@pytest.fixture
def pruning(program, tiny, short_checkpoint):
    """A program on its Prune page, without data."""
    program.session.put(model=tiny, checkpoint=str(short_checkpoint))
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
