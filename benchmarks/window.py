"""How fast the window moves, compares and starts, off screen.

Parts: moving, comparing, startup. Captures are of random queries and keys,
kept in the system's folder for temporary files. Times are by the clock unless "processor" is said.
"""

import compileall
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from PySide6.QtCore import QEvent, QEventLoop, QPointF, QTimer
from PySide6.QtGui import QImage, QPainter, QPixmap
from PySide6.QtWidgets import QApplication
from table import line, run_parts

import hgviz
from hgviz.core import Selection
from hgviz.gui import theme
from hgviz.gui.compare import CompareView
from hgviz.gui.ink import image
from hgviz.gui.jobs import Lanes
from hgviz.gui.map import MapView
from hgviz.gui.window import application
from hgviz.session import Session
from hgviz.store import open_capture, write_capture

MIDDLE, LONG = 32_768, 131_072  # tokens
FOLDER = Path(tempfile.gettempdir(), "hgviz-bench")
ROOM = 800, 1000  # height and width of the map
STEP, FRAMES, FRAME = 13, 300, 1 / 60  # px, number and seconds of the frames of a pan


def percentile_95(times):
    """The 95th percentile of seconds, in words."""
    return f"{1000 * statistics.quantiles(times, n=100)[94]:.1f} ms"


def random_capture(length, layers, heads, activation="softmax"):
    """A causal capture of random queries and keys, written unless the file is there."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{activation}-{length}-{layers}-{heads}.h5"
    if not path.exists():
        random, contents = np.random.default_rng(len(activation)), []
        for _ in range(layers):
            q, k = random.normal(size=(2, heads, length, 64)).astype(np.float32)
            contents.append({"q": q, "k": k, "causal": True, "activation": activation})
        write_capture(path, tokens=["sand "] * length, layers=contents)
    return open_capture(path)


@contextmanager
def shown(kind, size, **fields):
    """A view of a size with its own session."""
    theme.apply(application(), False)
    view, lanes, session = kind(), Lanes(), Session()
    view.resize(*size)
    session.put(**fields)
    view.bind(session, lanes)
    view.show()
    wait_until(lambda: view.canvas.panes[0].scene is not None)
    try:
        yield view
    finally:
        view.unbind()
        lanes.close()
        view.close()
        view.deleteLater()


def wait_until(is_done):
    """Run the event loop until a function returns True, at most ten minutes."""
    end = time.perf_counter() + 600
    beat = QTimer(interval=2)  # wakes the loop, which sleeps in between as it does in the program
    beat.start()
    while not is_done():
        if time.perf_counter() > end:
            raise TimeoutError("nothing happened for ten minutes")
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    beat.stop()


def wait(seconds):
    """Run the event loop for a while."""
    end = time.perf_counter() + seconds
    wait_until(lambda: time.perf_counter() >= end)


def give_map_room(view, room):
    """Resize a view so that its map has a height and width."""
    height, width = view.canvas.room
    view.resize(view.width() + room[1] - width, view.height() + room[0] - height)
    wait_until(lambda: view.canvas.room == room)


def look(canvas, cells):
    """Show so many cells on a side of a pixel, at the lower left, and wait for the exact map."""
    down, across = (
        axis.at(1 / cells, 0).moved_to(round(axis.cells * share / cells))
        for axis, share in ((canvas.view.down, 0.75), (canvas.view.across, 0.3))
    )
    canvas._look(replace(canvas.view, down=down, across=across))
    wait_until(lambda: canvas.is_exact)


def moving():
    """Time of the frames of a pan, and until another head is there."""
    application()  # first, as in the program: it leaves a core to the window
    long, middle = random_capture(LONG, 2, 2), random_capture(MIDDLE, 4, 6)
    for capture, measure in ((long, pan), (middle, change_heads)):
        with shown(MapView, (1400, 1200), capture=capture, selection=Selection(0, 0)) as view:
            give_map_room(view, ROOM)
            measure(view)


def pan(view):
    """Time of the frames of a pan over that of bare blits of the same picture."""
    canvas = view.canvas
    screen = QPixmap(ROOM[1], ROOM[0])
    screen.fill(0)

    def blit(picture):
        with QPainter(screen) as painter:
            painter.drawImage(0, 0, picture)

    for cells in (1, 2, 8):
        look(canvas, cells)
        bare = image(canvas.panes[0].picture.pixels).convertToFormat(QImage.Format.Format_RGB32)
        frames, blits, clock = [], [], []
        for number in range(FRAMES):
            start, begin = time.thread_time(), time.perf_counter()
            canvas.pan(QPointF(-STEP, -STEP if number % 3 == 0 else 0))
            blit(image(canvas.panes[0].picture.pixels))
            frames.append(time.thread_time() - start)
            clock.append(time.perf_counter() - begin)
            start = time.thread_time()
            blit(bare)
            blits.append(time.thread_time() - start)
            wait(max(0.0, FRAME - (time.perf_counter() - begin)))
        ratio = statistics.median(frames) / statistics.median(blits)
        line(f"frame of a pan / bare blit, processor, {cells}x of {LONG:,}", f"{ratio:.1f}", "15")
        line("the same frames, 95 %", percentile_95(clock), "8")


def change_heads(view):
    """Time until the exact map of another head is there."""
    canvas, heads = view.canvas, view.session.capture.spec.heads
    for cells in (1, 2):
        look(canvas, cells)
        seconds = []
        for head in [*heads[cells::2], heads[0]]:
            wait(0.1)
            view._supply._rest.stop()  # read ahead nothing, so that every head is cold
            start, old = time.perf_counter(), canvas.panes[0].scene.source
            view.session.put(selection=view.session.at(head))
            wait_until(lambda old=old: canvas.panes[0].scene.source is not old and canvas.is_exact)
            seconds.append(time.perf_counter() - start)
        words = f"another head, cold, {cells}x of {MIDDLE:,}, until its map is exact, 95 %"
        line(words, percentile_95(seconds), "16")


def comparing():
    """Frames of a pan through A, B and A - B, beside those of one map of the size of each."""
    theme.apply(application(), False)
    a, b = (random_capture(MIDDLE, 1, 1, activation) for activation in ("softmax", "tanh"))
    fields = {"capture": a, "selection": Selection(0, 0, MIDDLE * 3 // 4, MIDDLE * 3 // 10)}
    with (
        shown(MapView, (704, 714), **fields) as single,
        shown(CompareView, (1600, 610), capture_b=b, **fields) as both,
    ):
        wait_until(lambda: both._opened is not None)
        both._opened.add_up()  # so that the sums of rows are drawn as well
        give_map_room(single, both.canvas.room)
        for cells in (1, 8):
            look(single.canvas, cells)
            look(both.canvas, cells)
            ratio = compared_frames(single.canvas, both.canvas)
            line(f"frame of three maps / one map as large as each, {cells}x", f"{ratio:.2f}", "2.2")


def compared_frames(*canvases):
    """Processor time of the second canvas's frames over the first's, medians."""
    seconds = [], []
    for number in range(FRAMES):
        step = QPointF(-STEP if number % 40 < 20 else STEP, -STEP if number % 3 == 0 else 0)
        for times, canvas in zip(seconds, canvases, strict=True):
            begin, start = time.perf_counter(), time.thread_time()
            canvas.pan(step)
            QApplication.sendPostedEvents(canvas.window(), QEvent.Type.UpdateRequest)  # it paints
            times.append(time.thread_time() - start)
            wait(max(0.0, FRAME - (time.perf_counter() - begin)))
    return statistics.median(seconds[1]) / statistics.median(seconds[0])


EMPTY_WINDOW = """
import time
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMainWindow
class Window(QMainWindow):
    def paintEvent(self, event):
        super().paintEvent(event)
        QTimer.singleShot(0, app.quit)
app = QApplication([])
window = Window()
window.resize(1600, 1000)
window.show()
app.exec()
print(time.monotonic())
"""
FIRST_FRAME = """
import os, time
from hgviz.gui import app
os.environ["HGVIZ_EXIT_AFTER_PAINT"] = "1"
app.window([])
print(time.monotonic())
"""
FIRST_MAP = """
import time
from PySide6.QtCore import QEvent, QObject, QTimer, Slot
from PySide6.QtWidgets import QApplication
from hgviz.gui import app
from hgviz.files import resource

class Watcher(QObject):
    def eventFilter(self, canvas, event):
        if event.type() == QEvent.Type.Paint and canvas.panes[0].scene and canvas.is_exact:
            canvas.removeEventFilter(self)
            QTimer.singleShot(0, painted)
        return False

class Starter(app.Starter):
    @Slot()
    def furnish(self):
        super().furnish()
        self.watcher = Watcher(self)
        self.program.inspect.map.canvas.installEventFilter(self.watcher)

app.Starter = Starter
def painted():
    print(time.monotonic(), flush=True)
    QApplication.exit(0)
app.window([resource("sample/first.h5")])
"""


def startup(rounds=9):
    """Time to the help, the first frame and the map of the sample, over the same without hgviz."""
    compileall.compile_dir(hgviz.__path__[0], quiet=1)  # as pip does
    with tempfile.TemporaryDirectory() as home:
        for name, ours, bare, limit in (
            ("hgviz --help", ["-m", "hgviz", "--help"], "import typer.rich_utils", "2"),
            ("first frame of the window", ["-c", FIRST_FRAME], EMPTY_WINDOW, "2"),
            ("map of the sample, exact", ["-c", FIRST_MAP], EMPTY_WINDOW, "6"),
        ):
            pairs = [(start(home, *ours), start(home, "-c", bare)) for _ in range(rounds + 1)][1:]
            mine, other = (statistics.median(times) for times in zip(*pairs, strict=True))
            line(name, f"{mine:.3f} s")
            line("  over the same without hgviz", f"{mine / other:.2f}", limit)


def start(home, *arguments):
    """Seconds from the start of a new interpreter until it prints the time, or ends."""
    begin = time.monotonic()  # one clock for all processes
    output = printed(home, *arguments)
    end = float(output) if arguments[0] == "-c" and output else time.monotonic()
    return end - begin


def printed(home, *arguments):
    """What a new interpreter prints, with its settings in the folder home."""
    env = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    run_parts(moving=moving, comparing=comparing, startup=startup)
