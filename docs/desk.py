"""A desk to work at: an X server nobody sees, a window manager, and a keyboard. No mouse.

What happens in the window is known from outside alone, as it is to a person: by how the screen
looks, by the titles of its windows, by the clipboard, and by the files that are left.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import matplotlib
from PIL import Image, ImageChops, ImageGrab

# the program, and the Debian package that has it
NEEDED = {
    "Xvfb": "xvfb",
    "xdotool": "xdotool",
    "openbox": "openbox",
    "xclip": "xclip",
    "pdftotext": "poppler-utils",
}
SIZE = (1440, 1040)  # px of the screen
QUIET = 0.5  # s without a change: then it stands still
LOADED = 3.0  # s of the same once it has started: models come after the first picture
BLINK = 60  # px that may change in a picture that stands still: a text cursor is smaller
PATIENCE = 60.0  # s that anything may take

# the words of Qt for keys, where X has others
KEYS = {
    "Ctrl": "ctrl", "Shift": "shift", "Alt": "alt", "Del": "Delete", "PgDown": "Next",
    "PgUp": "Prior", "Esc": "Escape", ".": "period", ",": "comma", "?": "question",
}  # fmt: skip


class Desk:
    """hgviz in a window of its own, at home in an empty folder; use it in a `with`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._open = ExitStack()
        self._program: subprocess.Popen[bytes] | None = None
        self.environment = _environment(home)
        self.display = ""

    def __enter__(self) -> Desk:
        try:
            self._set_up()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    # --- the program ------------------------------------------------------------------------------

    def start(self, *arguments: str) -> None:
        """Start hgviz as a person does, in place of the one before, and wait until it is drawn."""
        self.stop()
        words = [sys.executable, "-m", "hgviz", *arguments]
        self._program = subprocess.Popen(words, env=self.environment, cwd=self.home)
        self.until(lambda: self.title.endswith("hgviz"), "the window of hgviz")
        self.until(lambda: " · " in self.title, "something open in it")
        self.still(quiet=LOADED)

    def stop(self) -> None:
        """End the program; what it asks before it closes is not part of any task."""
        if self._program is not None:
            self._program.terminate()
            self._program.wait(10)
            self._program = None

    # --- the keyboard -----------------------------------------------------------------------------

    def press(self, *keys: str) -> None:
        """Press keys one after the other, in Qt's words: Ctrl+Shift+P."""
        for one in keys:
            parts = one.split("+")  # of letters a capital one would hold Shift, too
            named = (part.lower() if len(part) == 1 else KEYS.get(part, part) for part in parts)
            self._run("xdotool", "key", "+".join(KEYS.get(part, part) for part in named))

    def type(self, text: str) -> None:
        """Type a text."""
        self._run("xdotool", "type", "--delay", "6", text)

    # --- what is seen -----------------------------------------------------------------------------

    def look(self) -> Image.Image:
        """The screen as it is now."""
        return ImageGrab.grab(xdisplay=self.display)

    def still(self, before: Image.Image | None = None, quiet: float = QUIET) -> Image.Image:
        """The screen once it has stood still for a while, and is another than before; TimeoutError
        if it never does."""
        end = time.monotonic() + PATIENCE
        last, since = self.look(), time.monotonic()
        while time.monotonic() < end:
            time.sleep(0.1)
            now = self.look()
            if changed(last, now) > BLINK:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > quiet and (
                before is None or changed(before, now) > BLINK
            ):
                return now
        raise TimeoutError(f"The screen does not change or stand still: {self.title}")

    @property
    def title(self) -> str:
        """The title of the window that has the keyboard, "" for none."""
        words = ["xdotool", "getwindowfocus", "getwindowname"]
        asked = subprocess.run(words, env=self.environment, capture_output=True, text=True)
        return asked.stdout.strip()

    @property
    def clipboard(self) -> str:
        """The text on the clipboard."""
        return self._run("xclip", "-o", "-selection", "clipboard")

    def until(self, true: Callable[[], object], what: str) -> None:
        """Wait until it is true; TimeoutError says what was waited for."""
        end = time.monotonic() + PATIENCE
        while not true():
            if self._program is not None and self._program.poll() is not None:
                raise RuntimeError(f"hgviz ended by itself before there was {what}")
            if time.monotonic() > end:
                raise TimeoutError(f"There is not {what}, but: {self.title}")
            time.sleep(0.05)

    # --- inside -----------------------------------------------------------------------------------

    def _set_up(self) -> None:
        seen, tell = os.pipe()
        wide, high = SIZE
        words = ["Xvfb", "-displayfd", str(tell), "-screen", "0", f"{wide}x{high}x24"]
        self._background([*words, "-nolisten", "tcp"], pass_fds=(tell,))
        os.close(tell)
        with os.fdopen(seen) as answer:
            self.display = f":{answer.readline().strip()}"
        self.environment["DISPLAY"] = self.display
        self._background(["openbox", "--config-file", os.devnull])
        self._open.callback(self.stop)

    def _background(self, words: list[str], pass_fds: tuple[int, ...] = ()) -> None:
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(
            words, env=self.environment, stdout=quiet, stderr=quiet, pass_fds=pass_fds
        )
        self._open.callback(process.wait)
        self._open.callback(process.terminate)

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            words, env=self.environment, check=True, timeout=PATIENCE, stdout=subprocess.PIPE
        )
        return done.stdout.decode()


def changed(one: Image.Image, other: Image.Image) -> int:
    """How many pixels of two pictures of one size differ."""
    apart = ImageChops.difference(one, other).convert("L").point(lambda value: value and 255)
    return apart.histogram()[255]


def missing() -> list[str]:
    """The Debian packages that a desk needs and that are not here."""
    return [package for program, package in NEEDED.items() if shutil.which(program) is None]


def _environment(home: Path) -> dict[str, str]:
    """That of a person who has never started hgviz, without a desktop that is asked for files."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    for name in ("QT_QPA_PLATFORM", "DBUS_SESSION_BUS_ADDRESS", "WAYLAND_DISPLAY"):
        kept.pop(name, None)
    kept |= {"HOME": str(home), "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}
    run = home / ".run"
    run.mkdir(mode=0o700, parents=True)
    # matplotlib looks at every font of a new home, which nobody waits for twice
    return kept | {"XDG_RUNTIME_DIR": str(run), "MPLCONFIGDIR": matplotlib.get_cachedir()}
