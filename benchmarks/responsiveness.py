"""How late the window's event loop gets while a capture runs, beside an idle window's.

A timer asks for a turn every 5 ms; what counts is how much later than that each turn comes.
torch is imported and the model loaded before: its import holds the interpreter once, behind the
first picture.
"""

import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

EVERY = 5  # ms
SECONDS = 4
LIMIT = 50  # ms, of the 99th percentile
LETTERS = (136, 1024, 4096)


def main():
    """Print the percentiles, idle and for texts of several lengths."""
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    from hgviz.gui import app

    app.application()  # first, as in the program: it leaves a core to the window

    from hgviz.gui import opening
    from hgviz.gui.proof import opened
    from hgviz.gui.working import GOING
    from hgviz.resources import resource

    def delays(go_on):
        """Turn the loop while go_on says so; how late each turn was, ms."""
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
            time.sleep(0.0005)
        timer.stop()
        return late

    print(f"{'event loop later than asked, ms':34}{'median':>9}{'99 %':>9}{'worst':>9}{'limit':>8}")
    with opened(resource(opening.FIRST)) as (program, _):
        program.settle()

        def busy():
            return any(one.state in GOING for one in program.session.work)

        def capture(text):
            program.session.put(text=text)
            program.commands.run("capture")

        capture(opening.TEXT)  # loads torch and the model
        delays(busy)
        end = time.perf_counter() + SECONDS
        row("idle", delays(lambda: time.perf_counter() < end))
        for letters in LETTERS:
            late = []
            end = time.perf_counter() + SECONDS
            while time.perf_counter() < end:
                capture((opening.TEXT * (letters // len(opening.TEXT) + 1))[:letters])
                late += delays(busy)
            row(f"capturing {letters:,} letters", late, LIMIT)


def row(name, late, limit=""):
    """Print one line."""
    worst, far = max(late), statistics.quantiles(late, n=100)[98]
    print(f"{name:34}{statistics.median(late):9.1f}{far:9.1f}{worst:9.1f}{limit:>8}", flush=True)


if __name__ == "__main__":
    main()
