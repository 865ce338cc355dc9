"""How fast the window moves, compares and starts, off screen.

Parts: moving, comparing, startup. Captures are of random queries and keys,
kept in the system's folder for temporary files. Times are by the clock unless "processor" is said.
"""

import compileall
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from PySide6.QtCore import QEvent, QEventLoop, QPointF, Qt, QTimer
from PySide6.QtGui import QImage, QPainter, QPixmap
from PySide6.QtWidgets import QApplication
from table import line, run_parts

import hgviz
from hgviz.core import HeadId, Selection
from hgviz.gui import sources, theme
from hgviz.gui.compare import CompareView
from hgviz.gui.ink import image
from hgviz.gui.jobs import Lanes
from hgviz.gui.map import MapView
from hgviz.gui.selftest import opened
from hgviz.gui.window import application
from hgviz.session import Session
from hgviz.store import open_capture, write_capture

MIDDLE, LONG = 32_768, 131_072  # tokens
FOLDER = Path(tempfile.gettempdir(), "hgviz-bench")
ROOM = 800, 1000  # height and width of the map
STEP, FRAMES, FRAME = 13, 300, 1 / 60  # px, number and seconds of the frames of a pan
SECONDS = 60  # of random movements


def percentile(times, percent):
    """A percentile of times in ms."""
    return statistics.quantiles(times, n=100)[percent - 1] * 1000


def random_capture(length, layers, heads, activation="softmax", seed=0):
    """A causal capture of random queries and keys, written unless the file is there."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{activation}-{length}-{layers}-{heads}.h5"
    if not path.exists():
        dice, words = np.random.default_rng(seed), ("the ", "sand ", "ran ", "down ", "sailor ")
        shape = heads, length, 64
        given = [
            {"q": dice.normal(size=shape).astype(np.float32), "causal": True,
             "k": dice.normal(size=shape).astype(np.float32), "activation": activation}
            for _ in range(layers)
        ]  # fmt: skip
        write_capture(path, tokens=dice.choice(words, length).tolist(), layers=given)
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
    turn(lambda: view.canvas.panes[0].scene is not None)
    try:
        yield view
    finally:
        view.unbind()
        lanes.close()
        view.close()
        view.deleteLater()


def turn(until, seconds=600):
    """Run the event loop until something is so."""
    end = time.perf_counter() + seconds
    beat = QTimer(interval=2)  # wakes the loop, which sleeps in between as it does in the program
    beat.start()
    while not until():
        if time.perf_counter() > end:
            raise TimeoutError("it did not happen")
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    beat.stop()


def wait(seconds):
    """Run the event loop for a while."""
    end = time.perf_counter() + seconds
    turn(lambda: time.perf_counter() >= end)


def give_map_room(view, room):
    """Resize a view so that its map has a height and width."""
    height, width = view.canvas.room
    view.resize(view.width() + room[1] - width, view.height() + room[0] - height)
    turn(lambda: view.canvas.room == room)


def look(canvas, cells):
    """Show so many cells on a side of a pixel, at the lower left, and wait for the exact map."""
    down, across = (
        axis.at(1 / cells, 0).moved_to(round(axis.cells * share / cells))
        for axis, share in ((canvas.view.down, 0.75), (canvas.view.across, 0.3))
    )
    canvas._look(replace(canvas.view, down=down, across=across))
    turn(lambda: canvas.is_exact)


def delays(seconds, act=None, going=lambda: True, every=5):
    """Seconds by which turns of the event loop, asked for every 5 ms, are late.

    act: called once a frame. going: whether to go on before the time is over.
    """
    late, last = [], time.perf_counter()

    def tick():
        nonlocal last
        now = time.perf_counter()
        late.append(max(0.0, now - last - every / 1000))
        last = now

    timers = []
    for interval, call in ((every, tick), (round(1000 * FRAME), act or (lambda: None))):
        timer = QTimer(interval=interval, timerType=Qt.TimerType.PreciseTimer)
        timer.timeout.connect(call)
        timer.start()
        timers.append(timer)
    end = time.perf_counter() + seconds
    turn(lambda: time.perf_counter() >= end or not going(), 2 * seconds + 60)
    for timer in timers:
        timer.stop()
    return late


# --- moving ---------------------------------------------------------------------------------------


def moving():
    """Pans, other heads, and a minute of random movements in the whole window."""
    application()  # first, as in the program: it leaves a core to the window
    long, middle = random_capture(LONG, 2, 2), random_capture(MIDDLE, 4, 6)
    with shown(MapView, (1400, 1200), capture=long, selection=Selection(0, 0)) as view:
        give_map_room(view, ROOM)
        pan(view.canvas)
    with shown(MapView, (1400, 1200), capture=middle, selection=Selection(0, 0)) as view:
        give_map_room(view, ROOM)
        for cells in (1, 2):
            change_heads(view, cells)
    move_about(long)


def pan(canvas):
    """Frames of a pan beside bare blits of the same picture."""
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
        line("the same frames, 95 %", f"{percentile(clock, 95):.1f} ms", "8")


def change_heads(view, cells):
    """Time until another head's exact map is there, and what is stored of it before."""
    capture, canvas = view.session.capture, view.canvas
    heads = [HeadId(layer.index, head) for layer in capture.spec.layers for head in layer.heads]
    look(canvas, cells)
    stored, exact = [], []
    for head in [*heads[cells::2], heads[0]]:
        wait(0.1)
        view._supply._rest.stop()  # read ahead nothing, so that every head is cold
        start, old = time.perf_counter(), canvas.panes[0].scene.source
        view.session.put(selection=view.session.at(head))
        turn(lambda old=old: canvas.panes[0].scene.source is not old and overview_is_shown(view))
        stored.append(time.perf_counter() - start)
        turn(lambda: canvas.is_exact)
        exact.append(time.perf_counter() - start)
    where = f"another head, cold, {cells}x of {MIDDLE:,}, 95 %"
    line(f"{where}: stored overview", f"{percentile(stored, 95):.1f} ms", "16")
    line(f"{where}: exact", f"{percentile(exact, 95):.1f} ms", "16")


def overview_is_shown(view):
    """Whether every tile on screen has at least what the file stores of it."""
    head = view._opened
    missing = view.tiles.lacking(head.sources[0], view.canvas.view)
    return next(view.tiles.sketches(missing), None) is None


def move_about(capture):
    """How late the event loop is while somebody pans, zooms, hovers and changes heads."""
    sources.AT_ONCE = 0  # do not measure heads first
    with opened(capture.path) as (program, _):
        wait(2)
        canvas, dice = program.inspect.map.canvas, random.Random(0)
        line("event loop late, idle, 99 %", f"{percentile(delays(SECONDS / 4), 99):.1f} ms")

        def act():
            rect = canvas.panes[0].rect
            place = QPointF(rect.left() + dice.random() * rect.width(),
                            rect.top() + dice.random() * rect.height())  # fmt: skip
            action = dice.choices(("pan", "hover", "zoom", "head"), (50, 40, 5, 1))[0]
            if action == "pan":
                canvas.pan(QPointF(dice.choice((-STEP, STEP)), dice.choice((-STEP, 0, STEP))))
            elif action == "hover":
                canvas.pointed.emit(canvas.cell_at(place))
            elif action == "zoom":
                canvas.zoom(dice.choice((1, 1, -1)), place)
            else:
                layer = dice.choice(capture.spec.layers)
                program.session.select(layer=layer.index, head=dice.choice(layer.heads))

        late = percentile(delays(SECONDS, act), 99)
        line(f"event loop late, moving about for {SECONDS} s, 99 %", f"{late:.1f} ms", "16")


# --- comparing ------------------------------------------------------------------------------------


def comparing():
    """Frames of a pan through A, B and A - B, beside those of one map of either size."""
    theme.apply(application(), False)
    a, b = (
        random_capture(MIDDLE, 1, 1, name, seed) for seed, name in enumerate(("softmax", "tanh"))
    )
    fields = {"capture": a, "selection": Selection(0, 0, MIDDLE * 3 // 4, MIDDLE * 3 // 10)}
    sizes = (704, 714), (1600, 610)  # of Inspect's map and of Compare in a window of 1600 x 1000
    with (
        shown(MapView, sizes[0], **fields) as single,
        shown(CompareView, sizes[1], capture_b=b, **fields) as both,
    ):
        turn(lambda: both._opened is not None)
        both._opened.add_up()  # so that the sums of rows are drawn as well
        rooms = {"Inspect's": single.canvas.room, "one of the three": both.canvas.room}
        for cells in (1, 8):
            for name, room in rooms.items():
                give_map_room(single, room)
                look(single.canvas, cells)
                look(both.canvas, cells)
                ratio = compared_frames(single.canvas, both.canvas)
                line(f"frame of three maps / a map as large as {name}, {cells}x",
                     f"{ratio:.2f}", "2.2")  # fmt: skip


def compared_frames(*canvases):
    """Processor time of the second canvas's frames over the first's, medians."""
    taken = [], []
    for number in range(FRAMES):
        step = QPointF(-STEP if number % 40 < 20 else STEP, -STEP if number % 3 == 0 else 0)
        for times, canvas in zip(taken, canvases, strict=True):
            begin, start = time.perf_counter(), time.thread_time()
            canvas.pan(step)
            QApplication.sendPostedEvents(canvas.window(), QEvent.Type.UpdateRequest)  # it paints
            times.append(time.thread_time() - start)
            wait(max(0.0, FRAME - (time.perf_counter() - begin)))
    return statistics.median(taken[1]) / statistics.median(taken[0])


# --- startup --------------------------------------------------------------------------------------

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
SAMPLE = """
import os, time
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
    {painted}
app.window([resource("sample/first.h5")])
"""
FIRST_MAP = SAMPLE.format(painted="print(time.monotonic(), flush=True); QApplication.exit(0)")
AT_REST = SAMPLE.format(
    painted="""
    spent = lambda: print(sum(os.times()[:2]), flush=True)
    QTimer.singleShot(8000, spent)  # when torch is loaded behind the picture
    QTimer.singleShot(18000, lambda: (spent(), QApplication.exit(0)))"""
)


def startup(rounds=9):
    """Time to the help, the first frame and the sample's map, over the same without hgviz."""
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
        first, last = map(float, printed(home, "-c", AT_REST).split())
        line("window at rest, of a core", f"{10 * (last - first):.2f} %", "1")


def start(home, *arguments):
    """Seconds from the start of an interpreter until it prints the time, or ends."""
    begin = time.monotonic()  # one clock for all processes
    output = printed(home, *arguments)
    end = float(output) if arguments[0] == "-c" and output else time.monotonic()
    return end - begin


def printed(home, *arguments):
    """What an interpreter prints whose settings are in a folder of its own."""
    env = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home}
    command = [sys.executable, *arguments]
    output = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    return output


if __name__ == "__main__":
    run_parts({"moving": moving, "comparing": comparing, "startup": startup})
