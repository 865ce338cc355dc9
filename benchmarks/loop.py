"""How late the event loop is while a capture runs, beside an idle window in the same process.

A timer asks to be woken every 5 ms; how much later it is woken is what a person feels. Idle and
capturing take turns; torch is imported before (its import holds the interpreter once).
"""

import os
import statistics
import time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import Qt, QTimer

from hgviz import tasks
from hgviz.core import finish
from hgviz.gui import opening
from hgviz.gui.app import application
from hgviz.resources import resource

TICK, ROUNDS, SECONDS, BYTES, LIMIT = 5, 4, 4.0, 2048, 50


class Pulse:
    """Collects by how many milliseconds the loop was late."""

    def __init__(self):
        self.late = []
        self.timer = QTimer(interval=TICK, timerType=Qt.TimerType.PreciseTimer)
        self.timer.timeout.connect(self.beat)

    def beat(self):
        now = time.perf_counter()
        self.late.append(max(0.0, 1000 * (now - self.last) - TICK))
        self.last = now

    def over(self, app, running):
        """The delays while `running` is true."""
        self.late, self.last = [], time.perf_counter()
        self.timer.start()
        while running():
            app.processEvents()
            time.sleep(0.0005)
        self.timer.stop()
        return self.late


def main():
    """Print the delays of an idle and of a capturing window."""
    from hgviz.gui.program import Program
    from hgviz.gui.window import Window

    app = application()
    frame = Window()
    frame.resize(1600, 1000)
    frame.show()
    program = Program(frame, keep=False)
    sample = str(resource(opening.SAMPLE))
    model = finish(tasks.load(sample, "cpu"))
    text = (opening.TEXT + " ") * (BYTES // len(opening.TEXT) + 1)
    program.session.put(checkpoint=sample, model=model, spec=model.spec, text=text[:BYTES])
    pulse, idle, busy, captures = Pulse(), [], [], 0
    program.commands.capture()
    pulse.over(app, lambda: going(program))
    for _ in range(ROUNDS):
        end = time.perf_counter() + SECONDS
        idle += pulse.over(app, lambda end=end: time.perf_counter() < end)
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            program.commands.capture()
            busy += pulse.over(app, lambda: going(program))
            captures += 1
    program.close()
    frame.close()
    print(f"{captures} captures of {BYTES:,} bytes, their measuring and drawing included")
    print(f"{'event loop delay, ms':28}{'median':>9}{'95 %':>9}{'99 %':>9}{'most':>9}{'limit':>8}")
    for name, late, limit in (("idle window", idle, ""), ("while capturing", busy, LIMIT)):
        cuts = statistics.quantiles(late, n=100)
        row = "".join(f"{value:9.1f}" for value in (cuts[49], cuts[94], cuts[98], max(late)))
        print(f"{name:28}{row}{limit:>8}")


def going(program):
    """Whether a job is under way."""
    return any(one.state in ("waiting", "running") for one in program.session.work)


if __name__ == "__main__":
    main()
