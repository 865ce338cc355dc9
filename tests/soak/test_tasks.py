"""Five tasks done by the keyboard alone, in a real window under X that nobody sees.

What happens is known from outside, as it is to a person: by how the screen looks, by the titles of
windows, by the clipboard, and by the files that are written.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack

import matplotlib
import pytest
from PIL import ImageChops, ImageGrab

from hgviz.files import resource
from hgviz.gui.actions import BY_NAME
from hgviz.gui.sources import REVIEW
from hgviz.store import open_capture

pytestmark = pytest.mark.soak

PROGRAMS = ("Xvfb", "xdotool", "openbox", "xclip", "pdftotext")  # make deps installs them
TEXT = "A sailor turned the glass when the sand had run down."
QUIET = 0.5  # s without a change: the screen stands still
LOADED = 3.0  # s of the same once the program has started: models come after the first picture
BLINK = 60  # px that may change in a picture that stands still: a text cursor is smaller
PATIENCE = 60.0  # s that anything may take

# the words of Qt for keys, where X has others
KEYS = {
    "Ctrl": "ctrl", "Shift": "shift", "Alt": "alt", "Del": "Delete", "PgDown": "Next",
    "PgUp": "Prior", "Esc": "Escape", ".": "period", ",": "comma", "?": "question",
}  # fmt: skip


class Desk:
    """hgviz in a window on a display of its own, with an empty home; use it in a `with`."""

    def __init__(self, home):
        self.home = home
        self._open = ExitStack()
        self._program = None
        kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
        for name in ("QT_QPA_PLATFORM", "DBUS_SESSION_BUS_ADDRESS", "WAYLAND_DISPLAY"):
            kept.pop(name, None)
        run = home / ".run"
        run.mkdir(mode=0o700, parents=True)
        # matplotlib reads every font where it has no cache
        self.environment = {
            **kept, "HOME": str(home), "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1",
            "XDG_RUNTIME_DIR": str(run), "MPLCONFIGDIR": matplotlib.get_cachedir(),
        }  # fmt: skip

    def __enter__(self):
        seen, tell = os.pipe()
        words = ["Xvfb", "-displayfd", str(tell), "-screen", "0", "1440x1040x24"]
        self._start(*words, "-nolisten", "tcp", pass_fds=(tell,))
        os.close(tell)
        with os.fdopen(seen) as answer:
            self.environment["DISPLAY"] = f":{answer.readline().strip()}"
        self._start("openbox", "--config-file", os.devnull)
        return self

    def __exit__(self, *_):
        self.stop()
        self._open.close()

    def open(self, *arguments):
        """Start hgviz in place of the one before, and wait until it is drawn."""
        self.stop()
        words = [sys.executable, "-m", "hgviz", *arguments]
        self._program = subprocess.Popen(words, env=self.environment, cwd=self.home)
        self.until(lambda: self.title.endswith("hgviz") and " · " in self.title, "a window")
        self.still(quiet=LOADED)

    def stop(self):
        """End the program."""
        if self._program is not None:
            self._program.terminate()
            self._program.wait(10)
            self._program = None

    def press(self, *keys, quiet=QUIET):
        """Press keys one after the other, each once the screen stands still: names of actions,
        or keys in Qt's words; what begins with a blank is typed."""
        picture = self.still()
        for key in keys:
            if key.startswith(" "):
                self._run("xdotool", "type", "--delay", "6", key[1:])
            else:
                parts = (BY_NAME[key].keys[0] if key in BY_NAME else key).split("+")
                named = [part.lower() if len(part) == 1 else part for part in parts]
                self._run("xdotool", "key", "+".join(KEYS.get(part, part) for part in named))
            picture = self.still(picture, quiet)

    def save_as(self, name, title):
        """Give the file a name in the dialog of this title, and wait until it is written."""
        self.until(lambda: self.title.endswith(title), title)
        self.press(f" {name}", "Return")
        self.until((self.home / name).exists, name)
        return self.home / name

    def still(self, before=None, quiet=QUIET):
        """The screen once it has stood still for a while, and differs from `before`."""
        end = time.monotonic() + PATIENCE
        last, since = self._look(), time.monotonic()
        while time.monotonic() < end:
            time.sleep(0.1)
            now = self._look()
            if changed(last, now) > BLINK:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > quiet and (
                before is None or changed(before, now) > BLINK
            ):
                return now
        raise TimeoutError(f"The screen does not change or stand still: {self.title}")

    @property
    def title(self):
        """The title of the window that has the keyboard, "" for none."""
        words = ["xdotool", "getwindowfocus", "getwindowname"]
        asked = subprocess.run(words, env=self.environment, capture_output=True, text=True)
        return asked.stdout.strip()

    @property
    def clipboard(self):
        """The text on the clipboard."""
        return self._run("xclip", "-o", "-selection", "clipboard")

    def until(self, true, what):
        """Wait until it is true."""
        end = time.monotonic() + PATIENCE
        while not true():
            assert self._program.poll() is None, f"hgviz ended before there was {what}"
            assert time.monotonic() < end, f"There is not {what}, but: {self.title}"
            time.sleep(0.05)

    def _look(self):
        return ImageGrab.grab(xdisplay=self.environment["DISPLAY"])

    def _start(self, *words, **more):
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(words, env=self.environment, stdout=quiet, stderr=quiet, **more)
        self._open.callback(process.wait)
        self._open.callback(process.terminate)

    def _run(self, *words):
        done = subprocess.run(
            words, env=self.environment, check=True, timeout=PATIENCE, stdout=subprocess.PIPE
        )
        return done.stdout.decode()


def changed(one, other):
    """How many pixels of two pictures of one size differ."""
    apart = ImageChops.difference(one, other).convert("L").point(lambda value: value and 255)
    return apart.histogram()[255]


@pytest.fixture
def desk(tmp_path):
    """A desk, where what it needs is installed."""
    if any(shutil.which(name) is None for name in PROGRAMS):
        pytest.skip("make deps installs what a desk needs")
    with Desk(tmp_path / "home") as one:
        yield one


@pytest.mark.timeout(600)
def test_a_weight_is_read_and_a_text_captured_by_the_keyboard_alone(desk):
    desk.open()
    desk.press("find", " 12.2", "Return", "strongest", "copy")
    row = open_capture(resource("sample/first.h5")).maps[12].read(2, (64, 65), (0, 136))[0]
    assert f"{100 * row.max():.0f} % of its weight" in desk.clipboard
    assert f"{64 - row.argmax()} tokens back" in desk.clipboard

    desk.press("edit_text", f" {TEXT}", "Ctrl+Return", "level_in", "next_head", "copy", "save")
    capture = open_capture(desk.save_as("mine.h5", "Save capture"))
    assert capture.prompt.text == TEXT
    assert capture.complete and len(capture.maps) == 13
    rows = capture.maps[2].read(3, (0, 27), (0, 27))
    assert any(f"{100 * row.max():.0f} % of its weight" in desk.clipboard for row in rows)


@pytest.mark.timeout(600)
def test_heads_are_switched_off_and_pruned_by_the_keyboard_alone(desk):
    desk.open("sample/softmax")
    desk.press("prune")
    desk.press("bundled_data", quiet=3.0)
    desk.press("switch_head", "undo", "next_layer", "switch_head", "next_head", "switch_head")
    desk.press("remove_heads", "Return")
    name = "softmax-sample-without-2"
    desk.until((desk.home / name).exists, name)
    desk.press("Return")
    desk.until(lambda: desk.title.endswith(f"{name} · hgviz"), f"{name} in the window")
    words = [sys.executable, "-m", "hgviz", "info", name, "--json"]
    told = subprocess.run(words, cwd=desk.home, check=True, capture_output=True, text=True)
    assert sum(layer["heads"] for layer in json.loads(told.stdout)["layers"]) == 22


@pytest.mark.timeout(600)
def test_two_models_are_compared_by_the_keyboard_alone(desk):
    desk.open("sample/softmax")
    desk.press("compare_with", "Return", "next_head", "save_beside")
    capture = open_capture(desk.save_as("ymish.h5", "Save comparison capture"))
    assert {one for layer in capture.spec.layers for one in layer.activations} == {"ymish"}
    assert capture.prompt.text == REVIEW


@pytest.mark.timeout(600)
def test_a_figure_is_exported_by_the_keyboard_alone(desk):
    desk.open("sample/first.h5")
    desk.press("find", " 12.2", "Return", "strongest")
    desk.press("export", quiet=6.0)
    desk.press("Return")
    file = desk.save_as("figure.pdf", "Export figure")
    asked = {"check": True, "capture_output": True, "text": True}
    words = subprocess.run(["pdftotext", file, "-"], **asked).stdout
    assert "Head 12.2" in words and "hourglass" in words
    assert "hgviz figure" in subprocess.run(["pdfinfo", file], **asked).stdout
