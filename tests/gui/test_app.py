"""Starting: what is imported before the first paint, and what is missing on a machine."""

import os
import subprocess
import sys

import pytest

from hgviz.gui import app, theme
from hgviz.gui.application import application
from hgviz.gui.program import parameters

HEAVY = (
    "numpy", "torch", "h5py", "matplotlib", "tokenizers", "psygnal", "pyqtgraph", "transformers",
    "hgviz.core",
)  # fmt: skip

FIRST_PAINT = f"""
import sys
from hgviz.gui.application import application
from hgviz.gui import app, theme
def look():
    print([name for name in {HEAVY!r} if name in sys.modules])
    sys.stdout.flush()
start = app.Starter.__init__
def watched(self, frame, *given):
    frame.painted.connect(look)
    start(self, frame, *given)
app.Starter.__init__ = watched
sys.exit(app.window([]))
"""


def run(code, **env):
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"} | env,
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_nothing_heavy_is_imported_before_the_first_paint():
    done = run(FIRST_PAINT, HGVIZ_EXIT_AFTER_PAINT="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_the_frame_starts_paints_and_ends_without_a_word():
    done = run("import sys; from hgviz.gui import app; sys.exit(app.window([]))",
               HGVIZ_EXIT_AFTER_PAINT="1")  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    assert "QThread" not in done.stderr and "Traceback" not in done.stderr


def test_a_missing_library_of_x_is_one_line_with_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("QT_QPA_PLATFORM", "xcb")
    monkeypatch.setattr(app, "_loads", lambda name: "cursor" not in name)
    assert app.window([]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "apt-get install libxcb-cursor0" in said


@pytest.mark.parametrize(("choice", "dark"), [("light", False), ("dark", True), ("auto", False)])
def test_the_theme_is_the_chosen_one_or_the_system_s(qapp, choice, dark):
    assert theme.wants_dark(choice) == dark


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, ""), (950, ""), (48_000, "48.0 k"), (6_034_240, "6.0 M"), (110e6, "110 M")],
)
def test_sizes_are_said_short(count, words):
    assert parameters(count) == words


def test_pyside_keeps_its_references():
    """PySide6 6.12.0 on Python 3.11 lost one at every call that returns nothing, and aborted."""
    done = run(
        "from PySide6.QtCore import QObject\n"
        "one = QObject()\n"
        "for _ in range(100_000): one.setObjectName('a')\n"
        "print('alive')"
    )
    assert done.stdout == "alive\n"


def test_other_threads_give_way_to_the_window_within_a_millisecond(qapp):
    before = sys.getswitchinterval()
    try:
        application()
        assert sys.getswitchinterval() < 0.001
    finally:
        sys.setswitchinterval(before)
