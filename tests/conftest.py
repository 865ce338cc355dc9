"""Guards around every test, and what most of them need."""

import gc
import json
import math
import os
import re
import sys
import threading
import time

import hypothesis
import pytest

# machines are shared: how long an example takes says nothing of the code
hypothesis.settings.register_profile(
    "shared", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("shared")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# read when numpy and torch are loaded, which is after this: the tests run in as many processes as
# there are cores, and threads that spin while they wait would hold up one another many times over
os.environ.setdefault("OMP_NUM_THREADS", "1")
# every module is compiled once, and not by each process that tests start, even on a machine that
# keeps no bytecode: there `hgviz info` took a third longer, and so did collecting these tests
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.fixture
def run(capfd, monkeypatch):
    """Run a command line on the CPU; returns exit code, standard output and standard error."""
    from hgviz import cli

    monkeypatch.setenv("HGVIZ_DEVICE", "cpu")
    monkeypatch.setattr(
        "hgviz.cli.terminal.MINUTE", math.inf
    )  # no lines of progress on a slow machine

    def call(*words):
        capfd.readouterr()
        code = cli.main([str(word) for word in words], cli.Window(None, None))
        return code, *capfd.readouterr()

    return call


@pytest.fixture
def output(run):
    """Run a command line that must succeed without a warning; returns what it prints."""
    announcements = re.compile(r"Measuring .*: about .*\n|Verifying with .*\n")

    def call(*words):
        code, out, error = run(*words)
        assert (code, announcements.sub("", error)) == (0, ""), error
        return out

    return call


@pytest.fixture
def facts(output):
    """Run a command line that must succeed, with --json; returns what it prints, parsed."""
    return lambda *words: json.loads(output(*words, "--json"))


@pytest.fixture
def refusal(run):
    """Run a command line that must fail; returns the only line that it writes."""

    def call(*words, code=1):
        found, out, error = run(*words)
        assert (found, out, error.count("\n")) == (code, "", 1), error
        assert "Unexpected error" not in error
        return error

    return call


@pytest.fixture(scope="session")
def capture():
    """A capture of a small hourglass with three levels; it is frozen, so tests share it."""
    from tests.making import make_capture

    return make_capture()


@pytest.fixture(autouse=True)
def own_settings(tmp_path_factory, monkeypatch):
    """No test, and no process it starts, reads or writes the settings of the person at work, or
    their log."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture(autouse=True)
def no_thread_is_left():
    """Fail a test that leaves a thread behind."""
    before = set(threading.enumerate())
    yield
    end = time.monotonic() + 30
    while (left := set(threading.enumerate()) - before) and time.monotonic() < end:
        time.sleep(0.01)
    assert not left, f"threads left running: {sorted(thread.name for thread in left)}"


@pytest.fixture(autouse=True)
def no_window_is_left():
    """Fail a test that leaves a top-level widget behind."""
    before = set(_windows())
    yield
    if set(_windows()) - before:
        gc.collect()
    left = set(_windows()) - before
    assert not left, f"windows left open: {left}"


def _windows():
    """The top-level widgets there are; Qt is not loaded only to find that there are none."""
    widgets = sys.modules.get("PySide6.QtWidgets")
    app = widgets and widgets.QApplication.instance()
    if not app:
        return []
    from PySide6.QtCore import QCoreApplication, QEvent

    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    return app.topLevelWidgets()
