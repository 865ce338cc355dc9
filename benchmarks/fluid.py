"""How the window moves through captures of long texts, and its charts through long series.

Two captures are made of random queries and keys, float32, 64 wide, causal, with stored levels, and
kept in a folder of the system's temporary files (or the one given). The window is a real one, off
screen; times are those of the clock unless "processor" is said. What is cold was never read by the
process, though the file may be in the system's memory.
"""

import os
import random
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from table import line

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

SIZES = {32_768: (4, 6), 131_072: (2, 2)}  # layers and heads
WIDTH = 64
ROOM = 800, 1000  # of the map, height and width
STEP = 13  # px a frame
FRAME = 1 / 60  # s
GROWN = 6_000  # points of a curve after ten minutes
MINUTE = float(os.environ.get("HGVIZ_MINUTE", "60"))  # s
WORDS = ("the ", "sand ", "ran ", "down ", "and ", "was ", "turned ", "by ", "a ", "sailor ")


def main():
    """Print the lines, with their limits."""
    from hgviz.gui.window import application

    application()  # first, as in the program: it leaves a core to the window
    folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.gettempdir()) / "hgviz-fluid"
    folder.mkdir(exist_ok=True)
    files = {length: made(folder, length) for length in SIZES}
    print(f"{'ms':58}{'median':>8}{'95 %':>8}{'99 %':>8}   at most")
    with shown(files[131_072]) as view:
        pan(view)
    for length in SIZES:
        with shown(files[length]) as view:
            overviews(view, length)
    with shown(files[32_768]) as view:
        flips(view)
    openings(files[32_768])
    charts()
    minute(files[131_072])


def row(name, times, *limits):
    """Print one line; times in seconds."""
    ms = [1000 * one for one in times]
    cuts = statistics.quantiles(ms, n=100)
    numbers = "".join(f"{one:8.2f}" for one in (statistics.median(ms), cuts[94], cuts[98]))
    print(f"{name:58}{numbers}   {' '.join(limits)}", flush=True)
    for limit in filter(None, limits):
        share, _, most = limit.rpartition(": ")
        found = {"95 %": cuts[94], "99 %": cuts[98]}.get(share, statistics.median(ms))
        line(f"{name}, {share or 'median'}", f"{found:.2f} ms", f"at most {most}")


# --- captures -------------------------------------------------------------------------------------


def made(folder, length):
    """The capture of a length, made unless it is there."""
    import numpy as np

    from hgviz.core import Capture, Layer, Level, ModelSpec, Prompt
    from hgviz.maps import Factors, Rule, recompute_statistics
    from hgviz.store import Writer

    path, (layers, heads) = folder / f"{length}.h5", SIZES[length]
    if path.exists():
        return path
    draw, places = np.random.default_rng(0), np.arange(length)
    pieces = tuple(WORDS[one] for one in draw.integers(0, len(WORDS), length))
    ends = np.cumsum([len(one) for one in pieces])
    spans = np.stack([ends - [len(one) for one in pieces], ends], axis=1)
    prompt = Prompt("".join(pieces), np.arange(length) % len(WORDS), pieces, spans)
    acts = ("softmax",) * heads
    numbers = tuple(range(heads))
    spec = ModelSpec(
        family="given", name="random", levels=(Level(0),), width=heads * WIDTH, vocabulary=0,
        layers=tuple(
            Layer(one, f"layer.{one}", "self", 0, 0, numbers, acts, True) for one in range(layers)
        ),
    )  # fmt: skip
    rule = Rule(WIDTH**-0.5, acts, (None,) * heads, causal=True)
    none = np.zeros(0, np.int64), np.zeros((heads, 0, length), np.float32)
    spans = (np.stack([places, places + 1], axis=1),)
    with Writer(path, Capture(spec, prompt, spans, ())) as writer:
        for layer in range(layers):
            print(f"making layer {layer + 1} of {layers} of {path}", file=sys.stderr, flush=True)
            q, k = (draw.normal(size=(heads, length, WIDTH)).astype(np.float32) for _ in range(2))
            stat = np.zeros((heads, length), np.float32)
            writer.add(layer, recompute_statistics(Factors(q, k, stat, rule, *none)))
        return writer.finish()


# --- the map alone --------------------------------------------------------------------------------


@contextmanager
def shown(path):
    """The view of a map, as large as ROOM, on the first head of a capture."""
    from hgviz.core import Selection
    from hgviz.gui import theme
    from hgviz.gui.jobs import Lanes
    from hgviz.gui.map import MapView
    from hgviz.gui.window import application
    from hgviz.session import Session
    from hgviz.store import open_capture

    theme.apply(application(), False)
    view, lanes, session = MapView(), Lanes(), Session()
    view.resize(1400, 1200)
    session.put(capture=open_capture(path), selection=Selection(0, 0))
    view.bind(session, lanes)
    view.show()
    turn(lambda: view.canvas.panes[0].scene is not None)
    height, width = view.canvas.room
    view.resize(1400 + ROOM[1] - width, 1200 + ROOM[0] - height)
    turn(lambda: view.canvas.room == ROOM)
    try:
        yield view
    finally:
        view.unbind()
        lanes.close()
        view.close()
        view.deleteLater()


def turn(until, seconds=60):
    """Turn the event loop until something is so."""
    from PySide6.QtCore import QEventLoop, QTimer
    from PySide6.QtWidgets import QApplication

    end = time.perf_counter() + seconds
    beat = QTimer(interval=2)  # so that it wakes up and looks; it sleeps in between, as exec does
    beat.start()
    while not until():
        if time.perf_counter() > end:
            raise TimeoutError("it did not happen")
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    beat.stop()


def wait(seconds):
    """Turn it for a while."""
    end = time.perf_counter() + seconds
    turn(lambda: time.perf_counter() >= end)


def look(view, times, down=0.75, across=0.3):
    """Go where cells are so many times smaller than pixels."""
    canvas, scale = view.canvas, 1 / times
    rows, columns = (
        along.at(scale, 0).moved_to(round(along.cells * scale * part))
        for along, part in ((canvas.view.down, down), (canvas.view.across, across))
    )
    canvas._look(replace(canvas.view, down=rows, across=columns))


def exact(view):
    """Wait for the picture that is meant."""
    turn(lambda: view.canvas.is_exact)


def pan(view):
    """Frames of 13 px beside a bare blit, in turn, at three zooms."""
    from PySide6.QtCore import QPointF
    from PySide6.QtGui import QImage, QPainter, QPixmap

    from hgviz.gui.ink import image

    canvas, screen = view.canvas, QPixmap(ROOM[1], ROOM[0])
    screen.fill(0)

    def blit(picture):
        with QPainter(screen) as painter:
            painter.drawImage(0, 0, picture)

    for times in (1, 2, 8):
        look(view, times)
        exact(view)
        bare = image(canvas.panes[0].picture.pixels).convertToFormat(QImage.Format.Format_RGB32)
        frames, blits, late = [], [], []
        for number in range(300):
            step = QPointF(-STEP, -STEP if number % 3 == 0 else 0)
            start, clock = time.thread_time(), time.perf_counter()
            canvas.pan(step)
            blit(image(canvas.panes[0].picture.pixels))
            frames.append(time.thread_time() - start)
            late.append(time.perf_counter() - clock)
            start = time.thread_time()
            blit(bare)
            blits.append(time.thread_time() - start)
            wait(max(0.0, FRAME - (time.perf_counter() - clock)))
        row(f"bare blit, processor, {times}x of 131,072", blits)
        row(f"frame of a pan by {STEP} px, processor", frames)
        ratio = statistics.median(frames) / statistics.median(blits)
        line(f"frame / bare blit, {times}x of 131,072", f"{ratio:.1f}", "at most 15")
        row(f"the same by the clock, {times}x", late, "95 %: 8")


def flips(view):
    """To heads nobody looked at before, at 1x and 2x of 32k, until the exact picture is there."""
    from hgviz.core import HeadId

    capture = view.session.capture
    heads = [HeadId(one.index, head) for one in capture.spec.layers for head in one.heads][1:]
    random.Random(0).shuffle(heads)
    for times in (1, 2):
        look(view, times)
        exact(view)
        found, spent = [], []
        for head in heads[times - 1 :: 2]:
            wait(0.1)
            view._supply._rest.stop()  # nothing is read ahead: it would not be cold
            start, worked = time.perf_counter(), time.process_time()
            view.session.put(selection=view.session.at(head))
            shows = lambda head=head: (  # noqa: E731
                view.canvas.panes[0].scene.source.map is capture.maps[head.layer]
                and view.canvas.panes[0].scene.source.head == head.head
                and view.canvas.is_exact
            )
            turn(shows)
            found.append(time.perf_counter() - start)
            spent.append(time.process_time() - worked)
        row(f"another head, cold, exact, {times}x of 32,768", found, "95 %: 16")
        row("of it processor, all threads", spent)


def overviews(view, length):
    """To other heads at zooms from 1x to the whole, until what is stored is on screen."""
    from hgviz.core import HeadId

    capture = view.session.capture
    heads = [HeadId(one.index, head) for one in capture.spec.layers for head in one.heads]
    for name, times in (("1x", 1), ("4x", 4), ("16x", 16), ("64x", 64), ("whole", 0)):
        if times:
            look(view, times)
        else:
            view.canvas.fit()
        found = []
        for number in range(24):
            wait(0.03)
            view._supply._rest.stop()
            head = heads[(number + 1) % len(heads)]
            for opened in view._opener._opened.values():
                if opened is not view._opened:
                    view.tiles.drop(opened.sources)
            start = time.perf_counter()
            view.session.put(selection=view.session.at(head))
            source = view.canvas.panes[0].scene.source
            turn(
                lambda old=source: (
                    view.canvas.panes[0].scene.source is not old and overview_shown(view)
                )
            )
            found.append(time.perf_counter() - start)
        row(f"stored overview of another head, {name} of {length:,}", found, "95 %: 16")


def overview_shown(view):
    """Whether the tiles in place of which something coarser is shown have what is stored."""
    opened = view._opened
    keys = view.tiles.lacking(opened.sources[0], view.canvas.view)
    return next(view.tiles.sketches(keys), None) is None


# --- the whole window -----------------------------------------------------------------------------


def charts():
    """A chart of 100,000 points is moved and zoomed; a curve grows by ten points a second for ten
    minutes, as fast as it can."""
    import numpy as np
    from PySide6.QtCore import QCoreApplication

    from hgviz.gui.charts import Axis, Band, Chart, ChartWidget, Line, Plot, Points

    def chart(count, end):
        x = np.arange(float(count))
        y = 1 - x / end + 0.05 * np.sin(x / 50)
        parts = Band(x, y - 0.1, y + 0.1), Line(x, y), Points(x, y, size=0.0, words="{}".format)
        return Chart((Plot(Axis(0.0, end), Axis(-0.2, 1.2), parts),), of=end, by_x=True)

    one = ChartWidget("a long series")
    one.resize(ROOM[1], ROOM[0])
    one.show()
    one.show_chart(chart(100_000, 1e5))
    frames, box = [], one.plots[0].box
    for number in range(120):
        start = time.perf_counter()
        if number % 2:
            box.scaleBy([0.9 if number < 40 else 1.1] * 2)
        else:
            box.translateBy(x=-STEP * box.viewPixelSize()[0])
        one.grab()
        frames.append(time.perf_counter() - start)
    row("frame of a chart of 100,000 points, moved or zoomed", frames, "95 %: 33")
    grown = []
    for count in range(10, GROWN, 10):
        start = time.perf_counter()
        one.show_chart(chart(count, float(GROWN)))
        QCoreApplication.processEvents()
        grown.append(time.perf_counter() - start)
        if count == GROWN // 10:
            early, items = memory(), len(one.view.scene().items())
    row(f"ten points more of a curve that grows to {GROWN:,}", grown, "95 %: 33")
    line("memory of its last nine tenths", f"{(memory() - early) / 1e6:.1f} MB", "at most 10")
    line("items more", f"{len(one.view.scene().items()) - items}", "at most 0")
    one.close()


def memory():
    """Bytes that this process holds."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def openings(path):
    """Opening heads at 32k that were open before, and others of the same file."""
    from hgviz.core import HeadId
    from hgviz.gui.grid import Viewport
    from hgviz.gui.opened import Opener
    from hgviz.gui.tiles import Tiles
    from hgviz.store import open_capture

    capture, opener = open_capture(path), Opener(Tiles())
    view = Viewport.fitted((1, 1), ROOM)
    times = []
    for layer in capture.spec.layers:
        for head in layer.heads:
            start = time.thread_time()
            opener.open(
                    capture, HeadId(layer.index, head), query=None, whole=False, shared=False,
                    view=view,
                )  # fmt: skip
            times.append(time.thread_time() - start)
    print(f"{'opening the first head of 32,768, processor':58}{1000 * times[0]:8.2f}")
    row("opening another, processor", times[1:], "20")


def minute(path):
    """How late the event loop is, idle and while somebody moves about."""
    from PySide6.QtCore import QPointF

    from hgviz.gui import sources
    from hgviz.gui.selftest import opened

    sources.AT_ONCE = 0  # heads are not measured: the window opens such captures the same way
    with opened(path) as (program, frame):
        wait(2)
        view, dice = program.inspect.map, random.Random(0)
        canvas, session = view.canvas, program.session
        capture = session.capture
        row("event loop later than asked, idle", delays(MINUTE / 4), "")
        chosen = {"what": "pan", "step": QPointF(-STEP, 0)}

        def choose():
            chosen["what"] = dice.choice(["pan"] * 5 + ["hover"] * 3 + ["zoom"] * 3 + ["flip"])
            chosen["step"] = QPointF(*(dice.choice([-STEP, 0, STEP]) for _ in range(2)))
            if chosen["what"] == "flip":
                layer = dice.choice(capture.spec.layers)
                head = dice.choice(layer.heads)
                session.select(layer=layer.index, head=head)

        def act():
            if dice.random() < 0.08:
                choose()
            rect = canvas.panes[0].rect
            place = QPointF(
                rect.left() + dice.random() * rect.width(),
                rect.top() + dice.random() * rect.height(),
            )
            if chosen["what"] == "pan":
                canvas.pan(chosen["step"])
            elif chosen["what"] == "zoom" and dice.random() < 0.2:
                canvas.zoom(dice.choice([1, 1, -1]), place)
            elif chosen["what"] == "hover":
                canvas.pointed.emit(canvas.cell_at(place))

        row(f"while somebody moves about, {MINUTE:.0f} s", delays(MINUTE, act), "99 %: 16")


def delays(seconds, act=None, every=0.005):
    """Seconds that turns of the event loop come late; act is called once a frame in it."""
    from PySide6.QtCore import Qt, QTimer

    late, before = [], time.perf_counter()

    def tick():
        nonlocal before
        now = time.perf_counter()
        late.append(max(0.0, now - before - every))
        before = now

    timers = [(tick, round(1000 * every))] + ([(act, round(1000 * FRAME))] if act else [])
    running = []
    for call, interval in timers:
        timer = QTimer(interval=interval, timerType=Qt.TimerType.PreciseTimer)
        timer.timeout.connect(call)
        timer.start()
        running.append(timer)
    wait(seconds)
    for timer in running:
        timer.stop()
    return late


if __name__ == "__main__":
    main()
