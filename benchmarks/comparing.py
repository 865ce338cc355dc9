"""How two captures of 32,768 tokens and their difference move, beside a single map.

A is a softmax of random queries and keys, B a tanh of others: 64 wide, float32, causal, with stored
levels, kept in a folder of the system's temporary files (or the one given). A frame is a pan by 13
px and the painting of all that moved, off screen, in the time of the processor; frames of the
single map and of the comparison take turns. The single map is as large as Inspect shows it in a
window of 1600 x 1000, the three as large as Compare does; then it is as large as one of the three.
"""

import os
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fluid import FRAME, STEP, WIDTH, WORDS, turn, wait
from table import heading, line

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

LENGTH = 32_768
FRAMES = 300
MOST = 2.2
INSPECT, COMPARE = (704, 714), (1600, 610)  # px of the views in a window of 1600 x 1000
ZOOMS = 1, 8  # cells on a side of a pixel


def main():
    """Print the lines, with their limits."""
    from hgviz.gui import theme
    from hgviz.gui.window import application
    from hgviz.store import open_capture

    theme.apply(application(), False)
    folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.gettempdir()) / "hgviz-comparing"
    folder.mkdir(exist_ok=True)
    a, b = (open_capture(made(folder, seed, name)) for seed, name in enumerate(("softmax", "tanh")))
    heading(f"comparing two captures of {LENGTH:,} tokens")
    with single(a) as view, compared(a, b) as both:
        trio = both.canvas
        turn(lambda: both._opened is not None)
        both._opened.add_up()  # so that the sums of rows are drawn, too
        for times in ZOOMS:
            for said, size in (("", INSPECT), (" of the size of one of three", None)):
                resize(view, size, trio.room)
                look(view.canvas, times)
                look(trio, times)
                turn(lambda: view.canvas.is_exact and trio.is_exact, 600)
                found = frames(view.canvas, trio)
                ratio = statistics.median(found[1]) / statistics.median(found[0])
                ms = " and ".join(f"{1000 * statistics.median(one):.2f}" for one in found)
                print(f"  frame at {times}x, a map{said} and three: {ms} ms", flush=True)
                line(f"frame / a map's{said}, {times}x", f"{ratio:.2f}", f"at most {MOST}")
        overview(trio)


def frames(canvas, trio):
    """Seconds of frames of a map, and of the three."""
    from PySide6.QtCore import QEvent, QPointF
    from PySide6.QtWidgets import QApplication

    found = [], []
    for number in range(FRAMES):
        step = QPointF(-STEP if number % 40 < 20 else STEP, -STEP if number % 3 == 0 else 0)
        for times, moved in zip(found, (canvas, trio), strict=True):
            clock, start = time.perf_counter(), time.thread_time()
            moved.pan(step)
            # what Qt does next: it paints, once, everything in the window that is to be painted
            QApplication.sendPostedEvents(moved.window(), QEvent.Type.UpdateRequest)
            times.append(time.thread_time() - start)
            wait(max(0.0, FRAME - (time.perf_counter() - clock)))
    return found


def overview(trio):
    """How long the exact difference of the whole takes: every weight of both is computed."""
    trio.fit()
    start = time.perf_counter()
    turn(lambda: trio.is_exact, 600)
    line("the whole difference, exact", f"{time.perf_counter() - start:.1f} s")


def look(canvas, times):
    """Go where cells are so many times smaller than pixels."""
    scale = 1 / times
    rows, columns = (
        along.at(scale, 0).moved_to(round(along.cells * scale * part))
        for along, part in ((canvas.view.down, 0.75), (canvas.view.across, 0.3))
    )
    canvas._look(replace(canvas.view, down=rows, across=columns))


def resize(view, size, room):
    """Give a map's view a size, or its map a room."""
    if size is not None:
        view.resize(*size)
    else:
        height, width = view.canvas.room
        view.resize(view.width() + room[1] - width, view.height() + room[0] - height)
        turn(lambda: view.canvas.room == room)


# --- what is shown --------------------------------------------------------------------------------


@contextmanager
def single(capture):
    """The map of the first head."""
    from hgviz.gui.map import MapView

    with shown(MapView, INSPECT, capture=capture) as view:
        turn(lambda: view.canvas.panes[0].scene is not None)
        yield view


@contextmanager
def compared(a, b):
    """The maps of the first heads of both."""
    from hgviz.gui.compare import CompareView

    with shown(CompareView, COMPARE, capture=a, beside=b) as view:
        turn(lambda: view.canvas.panes[0].scene is not None)
        yield view


@contextmanager
def shown(kind, size, **fields):
    """A view of a size in a session of its own."""
    from hgviz.core import Selection
    from hgviz.gui.jobs import Lanes
    from hgviz.session import Session

    view, lanes, session = kind(), Lanes(), Session()
    view.resize(*size)
    session.put(**fields, selection=Selection(0, 0, LENGTH * 3 // 4 + 200, LENGTH * 3 // 10 + 200))
    view.bind(session, lanes)
    view.show()
    try:
        yield view
    finally:
        view.unbind()
        lanes.close()
        view.close()
        view.deleteLater()


def made(folder, seed, activation):
    """A capture of one head, made unless it is there."""
    import numpy as np

    from hgviz.core import Capture, Layer, Level, ModelSpec, Prompt
    from hgviz.maps import Factors, Rule, recompute_statistics
    from hgviz.store import Writer

    path = folder / f"{activation}.h5"
    if path.exists():
        return path
    words, places = np.random.default_rng(0), np.arange(LENGTH)
    pieces = tuple(WORDS[one] for one in words.integers(0, len(WORDS), LENGTH))
    ends = np.cumsum([len(one) for one in pieces])
    spans = np.stack([ends - [len(one) for one in pieces], ends], axis=1)
    prompt = Prompt("".join(pieces), places % len(WORDS), pieces, spans)
    spec = ModelSpec(
        family="given", name=activation, levels=(Level(0),), width=WIDTH, vocabulary=0,
        layers=(Layer(0, "layer.0", "self", 0, 0, (0,), (activation,), True),),
    )  # fmt: skip
    rule = Rule(WIDTH**-0.5, (activation,), (None,), causal=True)
    draw = np.random.default_rng(seed)
    q, k = (draw.normal(size=(1, LENGTH, WIDTH)).astype(np.float32) for _ in range(2))
    none = np.zeros(0, np.int64), np.zeros((1, 0, LENGTH), np.float32)
    spans = (np.stack([places, places + 1], axis=1),)
    with Writer(path, Capture(spec, prompt, spans, ())) as writer:
        writer.add(
            0, recompute_statistics(Factors(q, k, np.zeros((1, LENGTH), np.float32), rule, *none))
        )
        return writer.finish()


if __name__ == "__main__":
    main()
