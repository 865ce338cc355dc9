"""Starting the window: the frame first, painted at once; everything heavy comes behind it.

Before the first paint only PySide6, the settings and the standard library are imported.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6 import QtCore
from PySide6.QtWidgets import QApplication

from hgviz import settings
from hgviz.gui import language, theme
from hgviz.gui.window import RESTORE, SIZE, SMALLEST, Window, application

if TYPE_CHECKING:
    from hgviz.gui.program import Program

RESTART = 100  # an exit status of the event loop: start again, with what is open
TITLE = 40  # px that a title bar may take: not every window manager shrinks a window for it

# What Qt needs to open a window under X, and the Debian packages that have it.
X_LIBRARIES = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-shape.so.0": "libxcb-shape0",
}


def window(paths: Sequence[Path], go_on: bool = True) -> int:
    """The window, on checkpoints, captures, studies or a session file; without any, on what was
    open last, at first the sample. go_on: False for the sample at any time."""
    if missing := missing_packages():
        words = f"System packages that Qt needs are missing. Run: apt-get install {missing}"
        print(words, file=sys.stderr)
        return 1
    gc.disable()  # until the program stands: all that is made before is there to stay
    environment = dict(os.environ)
    kept = settings.load()
    os.environ["QT_SCALE_FACTOR"] = str(scale_factor(kept, environment))
    language.choose(kept.language)
    app = application()
    with closing(Signals(app)):
        code = _run_window(app, kept, [str(path) for path in paths], go_on)
    if code == RESTART:
        launcher = [] if getattr(sys, "frozen", False) else ["-m", "hgviz"]
        environment |= {RESTORE: "1"}
        os.execve(sys.executable, [sys.executable, *launcher], environment)
    return code


def scale_factor(kept: settings.Settings, environment: Mapping[str, str]) -> float:
    """How many times larger the window is drawn: the interface scale, on top of the user's own
    QT_SCALE_FACTOR. Qt reads it when the application starts."""
    own = float(kept.interface_scale.rstrip(" %")) / 100
    with suppress(ValueError):
        return own * float(environment.get("QT_SCALE_FACTOR", 1))
    return own


def _run_window(app: QApplication, kept: settings.Settings, paths: list[str], go_on: bool) -> int:
    """Show one window until it is closed, and return the exit status or RESTART."""
    theme.apply(app, theme.wants_dark(kept.theme))
    frame = Window()
    place(frame, kept)
    if "HGVIZ_EXIT_AFTER_PAINT" in os.environ:
        frame.painted.connect(app.quit)
    starter = Starter(frame, paths, go_on)
    frame.show()
    code = app.exec()
    starter.close()
    if starter.error is not None:
        raise starter.error
    code = RESTART if frame.restarts else code
    frame.deleteLater()
    QtCore.QCoreApplication.sendPostedEvents(None, QtCore.QEvent.Type.DeferredDelete)
    return code


def demo(headless: Path | None = None) -> int:
    """The window on the sample; with a folder, the same work off screen."""
    if headless is None:
        return window([], go_on=False)
    from hgviz.gui import selftest as proof

    return proof.demo(headless)


def selftest() -> int:
    """Prove that the parts of an installed or frozen program work; 1 if one does not."""
    from hgviz.gui import selftest as proof

    return proof.selftest()


def place(frame: Window, kept: settings.Settings) -> None:
    """Where the window was, or large in the middle of the screen."""
    room = frame.screen().availableGeometry()
    room.adjust(0, 0, 0, -TITLE)
    if kept.interface_scale != settings.INTERFACE_SCALES[0]:  # the screen has fewer pixels
        frame.setMinimumSize(SMALLEST.boundedTo(room.size()))
    if frame.restoreGeometry(QtCore.QByteArray.fromBase64(kept.geometry.encode())):
        return
    frame.resize(QtCore.QSize(SIZE).boundedTo(room.size()).expandedTo(frame.minimumSize()))
    frame.move(room.center() - frame.rect().center())


def missing_packages() -> str:
    """The Debian packages a window under X lacks; Qt would abort without a word of help."""
    platform = os.environ.get("QT_QPA_PLATFORM", "")
    if sys.platform != "linux" or (platform and not platform.startswith("xcb")):
        return ""
    if os.environ.get("WAYLAND_DISPLAY") and not platform:
        return ""
    return " ".join(package for name, package in X_LIBRARIES.items() if not _loads(name))


def _loads(name: str) -> bool:
    import ctypes

    with suppress(OSError):
        return bool(ctypes.CDLL(name))
    return False


class Signals(QtCore.QObject):
    """Ctrl+C, `kill` and a terminal that closes end the window in order, so that what is open is
    there again at the next start; a second one ends it at once."""

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self._inner, self._outer = socket.socketpair()
        for one in (self._inner, self._outer):
            one.setblocking(False)
        # Python runs its handlers between two lines of Python, of which an idle window runs none
        self._waker = QtCore.QSocketNotifier(
            self._inner.fileno(), QtCore.QSocketNotifier.Type.Read, self
        )
        self._waker.activated.connect(self._wake)
        self._wakeup = signal.set_wakeup_fd(self._outer.fileno(), warn_on_full_buffer=False)
        self._before: dict[int, Any] = {}
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            ignored = number is not None and signal.getsignal(number) == signal.SIG_IGN
            if number is not None and not (ignored and name == "SIGHUP"):  # as nohup asks
                self._before[number] = signal.signal(number, self._come)

    def close(self) -> None:
        """Signals do again what they did before."""
        for number, one in self._before.items():
            signal.signal(number, signal.SIG_DFL if one is None else one)
        signal.set_wakeup_fd(self._wakeup)
        self._waker.setEnabled(False)
        for one in (self._inner, self._outer):
            one.close()
        self.deleteLater()

    @QtCore.Slot()
    def _wake(self) -> None:
        with suppress(OSError):
            self._inner.recv(64)

    def _come(self, number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        QtCore.QTimer.singleShot(0, partial(QApplication.exit, 128 + number))


class Starter(QtCore.QObject):
    """Waits for the first paint, then brings in the program."""

    def __init__(self, frame: Window, paths: list[str], go_on: bool = True) -> None:
        super().__init__(frame)
        self._frame, self._paths, self._go_on = frame, paths, go_on
        self.program: Program | None = None
        self.error: Exception | None = None
        if "HGVIZ_EXIT_AFTER_PAINT" not in os.environ:
            frame.painted.connect(self.furnish)

    @QtCore.Slot()
    def furnish(self) -> None:
        """Import what is heavy and show the first capture."""
        from hgviz.gui import log

        log.start()
        QApplication.instance().aboutToQuit.connect(log.stop)
        try:
            from hgviz.gui.program import Program

            self.program = Program(self._frame, whole=False)
            self.program.open_first(self._paths, self._go_on)
        except Exception as error:  # Qt would print it and leave an empty window standing
            log.record(error)
            self.error = error
            QApplication.exit(1)
        gc.freeze()  # it lasts as long as the window: nobody need look through it again and again

    def close(self) -> None:
        """Stop whatever still runs; what the window was made of may go."""
        if self.program is not None:
            self.program.close()
        gc.unfreeze()
        gc.enable()
