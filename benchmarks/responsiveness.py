"""How late the window's event loop gets while work goes on, beside an idle window's.

A timer asks for a turn every 5 ms; what counts is how much later than that each turn comes.
torch is imported and the model loaded before: its import holds the interpreter once, behind the
first picture. Names of parts to measure some only: capture prune.
"""

import os
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from table import heading, line

EVERY = 5  # ms
SECONDS = 4
LIMIT = 50  # ms, of the 99th percentile, while a text is captured
BESIDE = 16  # ms that it may be above an idle window's, while heads are tried
LETTERS = (136, 1024, 4096)
CLICK = 0.3  # seconds between two, in the mean
TRIED = 30  # seconds of trying heads


def main():
    """The parts asked for, or all."""
    asked = sys.argv[1:]
    from hgviz.gui.window import application

    application()  # first, as in the program: it leaves a core to the window
    for name, part in PARTS.items():
        if not asked or name in asked:
            part()


def delays(go_on, act=None):
    """Turn the loop while go_on says so; how late each turn was, ms. act: done after each turn."""
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    late, before = [], time.perf_counter()

    def turn():
        nonlocal before
        now = time.perf_counter()
        late.append(max(0.0, (now - before) * 1000 - EVERY))
        before = now

    timer = QTimer(interval=EVERY)
    timer.timeout.connect(turn)
    timer.start()
    while go_on():
        QApplication.processEvents()
        if act is not None:
            act()
        time.sleep(0.0005)
    timer.stop()
    return late


def seconds(count):
    """True for so many seconds."""
    end = time.perf_counter() + count
    return lambda: time.perf_counter() < end


def capture():
    """The Inspect page while texts of several lengths are captured."""
    from hgviz.files import resource
    from hgviz.gui.jobs import GOING
    from hgviz.gui.selftest import opened
    from hgviz.gui.sources import FIRST, TEXT

    heading("event loop later than asked, 99 % of its turns")
    with opened(resource(FIRST)) as (program, _):
        program.settle()

        def busy():
            return any(one.state in GOING for one in program.session.work)

        def capture(text):
            program.session.put(text=text)
            program.commands.run("capture")

        capture(TEXT)  # loads torch and the model
        delays(busy)
        row("an idle window", delays(seconds(SECONDS)))
        for letters in LETTERS:
            late, go_on = [], seconds(SECONDS)
            while go_on():
                capture((TEXT * (letters // len(TEXT) + 1))[:letters])
                late += delays(busy)
            row(f"capturing {letters:,} letters", late, f"{LIMIT} ms")


def prune():
    """The Prune page while a curve is drawn, a mask is scored, and heads are clicked at random."""
    for sample, data in (("softmax", "sample/reviews.tsv"), ("hourglass", "sample/reviews.tsv")):
        heading(f"event loop while heads of the sample {sample} are tried")
        tried(sample, data)


def tried(sample, data):
    """Idle, then busy, in the same window."""
    from PySide6.QtCore import Qt
    from PySide6.QtTest import QTest
    from PySide6.QtWidgets import QApplication

    from hgviz import tasks
    from hgviz.files import resource
    from hgviz.gui.selftest import opened
    from hgviz.gui.sources import FIRST

    path = resource(f"sample/{sample}")
    model = tasks.load(str(path), "cpu")
    with opened(resource(FIRST)) as (program, _):
        session, pruning = program.session, program.commands.pruning
        session.put(capture=None, model=model, checkpoint=str(path), mode="prune")
        program.commands.use_data(str(resource(data)))
        program.prune.show_table("slices")
        delays(lambda: session.trial is None or not session.trial.done)
        pruning.measure(frozenset({"gradient"}))
        delays(lambda: pruning.measuring)
        program.settle()
        far = row("an idle window", delays(seconds(SECONDS)))
        dice, grid = random.Random(0), program.prune.heads.grid
        clicked, next_click = 0, time.perf_counter()

        def click():
            nonlocal clicked, next_click
            if time.perf_counter() < next_click:
                return
            next_click = time.perf_counter() + dice.expovariate(1 / CLICK)
            place = grid.where(dice.choice(model.spec.heads)).center()
            QTest.mouseClick(grid.viewport(), Qt.MouseButton.LeftButton, pos=place)
            clicked += 1

        pruning.trace()
        go_on = seconds(TRIED)
        busy = delays(lambda: go_on() and pruning.measuring, click)
        QApplication.processEvents()
        row(f"a curve, a live score, {clicked} clicks", busy)
        above = statistics.quantiles(busy, n=100)[98] - far
        line("99th percentile above the idle window's", f"{above:.1f} ms", f"{BESIDE} ms")
        pruning.stop_measuring()
        pruning.stop_trial()


def row(name, late, limit=""):
    """Print one line; the 99th percentile."""
    worst, far = max(late), statistics.quantiles(late, n=100)[98]
    middle = statistics.median(late)
    line(f"{name} (median {middle:.1f}, worst {worst:.0f})", f"{far:.1f} ms", limit)
    return far


PARTS = {"capture": capture, "prune": prune}

if __name__ == "__main__":
    main()
