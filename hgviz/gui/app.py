"""Starting the window: the frame first, painted at once; everything heavy comes behind it.

Before the first paint only PySide6, the settings and the standard library are imported.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import (
    QByteArray,
    QCoreApplication,
    QEvent,
    QObject,
    QSize,
    QSocketNotifier,
    Qt,
    QTimer,
    Slot,
)
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from hgviz import __version__, settings
from hgviz.gui import theme
from hgviz.gui.window import SIZE, SMALLEST, Window

if TYPE_CHECKING:
    from hgviz.gui.program import Program

TITLE = 40  # px that a title bar may take: not every window manager shrinks a window for it

# s that work in another thread keeps the interpreter when the window wants it. With Python's 5 ms a
# picture that asks for it several times came late while heads were tried.
TURN = 0.0005

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
    missing = missing_packages()
    if missing:
        print(
            f"The system lacks what Qt needs to open a window. Run: apt-get install {missing}",
            file=sys.stderr,
        )
        return 1
    gc.disable()  # until the program stands: all that is made before is there to stay
    app = application()
    with closing(Signals(app)):
        return _shown(app, [str(path) for path in paths], go_on)


def _shown(app: QApplication, paths: list[str], go_on: bool) -> int:
    """Show one window until it is closed, and return the exit status."""
    kept = settings.load()
    theme.apply(app, wants_dark(kept.theme))
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
    frame.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    return code


def demo(headless: Path | None = None) -> int:
    """The window on the sample; with a folder, the same work off screen."""
    if headless is None:
        return window([], go_on=False)
    from hgviz.gui import proof

    return proof.demo(headless)


def selftest() -> int:
    """Prove that the parts of an installed or frozen program work; 1 if one does not."""
    from hgviz.gui import proof

    return proof.selftest()


def application() -> QApplication:
    """The one QApplication."""
    read_no_sources()
    spare_a_core()
    keep_memory()
    sys.setswitchinterval(TURN)
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = QApplication(["hgviz"])
    app.setApplicationName("hgviz")
    app.setApplicationVersion(__version__)
    app.setDesktopFileName("hgviz")
    return app


def read_no_sources() -> None:
    """Have PySide6 import modules without a look into their source.

    It reads the file of every module that is imported, of torch's two thousand as well, to see
    whether `from __feature__ import ...` could matter in it; hgviz never says that. A fifth of what
    importing the program takes, and of what torch takes in it, went there.
    """
    feature: Any = sys.modules.get("shibokensupport.feature")
    if hasattr(feature, "_mod_uses_pyside"):  # no public way; another release may have none
        feature._mod_uses_pyside = lambda module: False


def spare_a_core() -> None:
    """Leave a core to the window, and let idle threads of torch and numpy sleep.

    Read by their thread pools when they are loaded, which is after this. With every core taken,
    threads that spin while they wait hold up the window, and each other: on two busy cores a
    capture of 136 bytes took 4 s with two threads and 0.2 s with one.
    """
    spare = max(1, (os.cpu_count() or 2) - 1)
    os.environ.setdefault("OMP_NUM_THREADS", str(spare))
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def keep_memory() -> None:
    """Have glibc hold on to what is freed, up to 128 MB, and keep it in one place.

    What a picture is put together in is freed after every frame. Handing it to the system and
    asking for it again, page by page, took longer than the picture itself: 12 ms against 4. Heaps
    of their own for each of the many threads keep gaps that no other thread fills: 200 MB after
    5,000 deeds in 50 windows.
    """
    if sys.platform == "linux":
        import ctypes

        # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX
        trim, own_pages, arenas = -1, -3, -8
        with suppress(OSError, AttributeError):  # another C library
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(trim, 128 << 20)
            mallopt(own_pages, 32 << 20)
            mallopt(arenas, 2)


def wants_dark(choice: str) -> bool:
    """The theme chosen, or with auto the system's."""
    if choice == "auto":
        return QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
    return choice == "dark"


def place(frame: Window, kept: settings.Settings) -> None:
    """Where the window was, or large in the middle of the screen."""
    if frame.restoreGeometry(QByteArray.fromBase64(kept.geometry.encode())):
        return
    room = frame.screen().availableGeometry()
    room.adjust(0, 0, 0, -TITLE)
    frame.resize(QSize(SIZE).boundedTo(room.size()).expandedTo(SMALLEST))
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

    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


class Signals(QObject):
    """Ctrl+C, `kill` and a terminal that closes end the window in order, so that what is open is
    there again at the next start; a second one ends it at once."""

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self._inner, self._outer = socket.socketpair()
        for one in (self._inner, self._outer):
            one.setblocking(False)
        # Python runs its handlers between two lines of Python, of which an idle window runs none
        self._waker = QSocketNotifier(self._inner.fileno(), QSocketNotifier.Type.Read, self)
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

    @Slot()
    def _wake(self) -> None:
        with suppress(OSError):
            self._inner.recv(64)

    def _come(self, number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        QTimer.singleShot(0, partial(QApplication.exit, 128 + number))


class Starter(QObject):
    """Waits for the first paint, then brings in the program."""

    def __init__(self, frame: Window, paths: list[str], go_on: bool = True) -> None:
        super().__init__(frame)
        self._frame, self._paths, self._go_on = frame, paths, go_on
        self.program: Program | None = None
        self.error: Exception | None = None
        if "HGVIZ_EXIT_AFTER_PAINT" not in os.environ:
            frame.painted.connect(self.furnish)

    @Slot()
    def furnish(self) -> None:
        """Import what is heavy and show the first capture."""
        from hgviz.gui.helping import log

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
        gc.enable()

    def close(self) -> None:
        """Stop whatever still runs; what the window was made of may go."""
        gc.unfreeze()
        gc.enable()
        if self.program is not None:
            self.program.close()
