"""Programs in real windows, off screen, and the files that they open."""

import time

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication

from hgviz import tasks
from hgviz.files import resource
from hgviz.gui import commands, sources, theme
from hgviz.gui.program import Program
from hgviz.gui.window import Window
from hgviz.store import write_capture
from tests.gui.kinds import write_tiny
from tests.gui.screen import busy, session_of


@pytest.fixture
def app(qapp):
    """The application in the light theme; a test may leave it in the dark one."""
    theme.apply(qapp, dark=False)
    return qapp


@pytest.fixture
def new_program(app):
    """Open a program in a window of its own, 1600 x 1000; all of them close after the test."""
    programs = []

    def open_program():
        frame = Window()
        frame.resize(1600, 1000)
        frame.show()
        programs.append(Program(frame))
        QApplication.processEvents()
        return programs[-1]

    yield open_program
    for program in programs:
        program.close()
        program.frame.close()
        program.frame.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def program(new_program):
    """A program with nothing open."""
    return new_program()


@pytest.fixture(scope="session")
def facts(capture):
    """The facts of every head of the capture."""
    return sources.measure(capture).facts


@pytest.fixture
def session(capture, facts):
    """A session with the capture, one of its heads and queries, and what is measured of it."""
    session = session_of(capture)
    session.put(facts=dict(facts))
    return session


@pytest.fixture
def opened(program, capture, facts):
    """A program with the capture open, everything drawn."""
    program.session.put(capture=capture, facts=dict(facts))
    program.settle()
    return program


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """A folder with a tiny hourglass that reads bytes, with random weights."""
    return write_tiny(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def with_model(program, checkpoint, until):
    """A program with the tiny hourglass open, and the usual text captured."""
    program.commands.open_path(str(checkpoint))
    until(lambda: program.session.capture is not None and not busy(program))
    return program


@pytest.fixture
def until():
    """Handle events until a condition holds."""

    def wait(condition, seconds=120.0):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it did not happen"
            QApplication.processEvents()
            time.sleep(0.005)

    return wait


@pytest.fixture
def capture_file(tmp_path, capture):
    """The capture in a file."""
    path = tmp_path / "kept.h5"
    write_capture(path, capture)
    return path


@pytest.fixture
def few_reviews(tmp_path_factory, monkeypatch):
    """Have a hundred of the two thousand bundled reviews; ask for it before a program."""
    few = tmp_path_factory.mktemp("reviews") / "reviews.tsv"
    lines = resource(commands.REVIEWS).read_text("utf-8").splitlines(keepends=True)
    few.write_text("".join(lines[:101]), "utf-8")
    found = {commands.REVIEWS: few}
    monkeypatch.setattr(commands, "resource", lambda name: found.get(name) or resource(name))


# --- the Prune page -------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def short_checkpoint(tmp_path_factory):
    """The same hourglass with room for 256 bytes, not 1024, so that it is scored fast."""
    return write_tiny(tmp_path_factory.mktemp("models") / "tiny", max_positions=256)


@pytest.fixture(scope="session")
def story(tmp_path_factory):
    """A text of six windows of that model."""
    path = tmp_path_factory.mktemp("data") / "story.txt"
    path.write_text("The bell rang, and the sand ran down. " * 40, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tiny(short_checkpoint):
    """That model, loaded."""
    return tasks.load(str(short_checkpoint), "cpu")


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
    """The Prune page with the story as its data, the whole model scored."""
    pruning.commands.use_data(str(story))
    until(lambda: pruning.session.trial is not None and pruning.session.trial.done)
    pruning.settle()
    return pruning


@pytest.fixture
def switch_off(scored, until):
    """Switch these heads alone off on the Prune page, and wait for their score, drawn."""

    def switch(heads):
        trying, off = scored.commands.pruning, frozenset(heads)
        trying.switch(off)
        until(lambda: scored.session.trial.done and scored.session.trial.off == off)
        scored.settle()

    return switch


@pytest.fixture
def traced(scored, until):
    """The scored page with heads measured by gradients, and their pruning curve."""
    pruning, session = scored.commands.pruning, scored.session
    pruning.measure(frozenset({"gradient"}), curve=True)
    until(lambda: session.study is not None and len(session.study.curves) == 21)
    until(lambda: not pruning.measuring)
    scored.settle()
    return scored
