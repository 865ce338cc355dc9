"""How long until something is there: the help, the window's first painted frame, the map of the
sample; and what a window takes that nobody touches.

Times are of whole processes, each beside what it cannot be faster than, taken in turn, medians.
They have a home of their own, so that nothing is opened but the sample.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

from table import line

ROUNDS = 9
SETTLED, IDLE = 8, 10  # s: until torch is loaded behind the picture, and that are measured
EMPTY_WINDOW = """
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
"""
SAMPLE = """
import os
from PySide6.QtCore import QEvent, QObject, QTimer, Slot
from PySide6.QtWidgets import QApplication
from hgviz.gui import app
from hgviz.resources import resource

class Eye(QObject):
    def eventFilter(self, canvas, event):
        if event.type() == QEvent.Type.Paint and canvas.scene and canvas.quality == "exact":
            canvas.removeEventFilter(self)
            QTimer.singleShot(0, seen)
        return False

class Starter(app.Starter):
    @Slot()
    def furnish(self):
        super().furnish()
        self.eye = Eye(self)
        self.program.inspect.map.canvas.installEventFilter(self.eye)

app.Starter = Starter
"""
USEFUL = f"""{SAMPLE}
seen = lambda: QApplication.exit(0)
app.window([resource("sample/first.h5")])
"""
UNTOUCHED = f"""{SAMPLE}
spent = []
def note():
    spent.append(sum(os.times()[:2]))

def seen():
    QTimer.singleShot({SETTLED * 1000}, note)
    QTimer.singleShot({(SETTLED + IDLE) * 1000}, lambda: (note(), QApplication.exit(0)))

app.window([resource("sample/first.h5")])
print((spent[1] - spent[0]) / {IDLE})
"""
FRAME = {"HGVIZ_EXIT_AFTER_PAINT": "1"}
PAIRS = (  # what, its program and settings, what it is beside, limit
    ("hgviz --help", ["-m", "hgviz", "--help"], {}, "import typer.rich_utils", 2.0),
    ("first frame of the window", ["-m", "hgviz"], FRAME, EMPTY_WINDOW, 2.0),
    ("map of the sample, exact", ["-c", USEFUL], {}, EMPTY_WINDOW, 6.0),
)


def main():
    """Print a line of ratios for each, and the share of a core that a window at rest takes."""
    with tempfile.TemporaryDirectory() as home:
        for name, ours, settings, beside, limit in PAIRS:
            both = [
                (seconds(ours, home, settings), seconds(["-c", beside], home))
                for _ in range(ROUNDS + 1)
            ][1:]
            mine, other = (statistics.median(times) for times in zip(*both, strict=True))
            line(name, f"{mine:.3f} s")
            line("  over the same without hgviz", f"{mine / other:.2f}", f"{limit}")
        share = float(ended(["-c", UNTOUCHED], home).split()[-1])
        line(f"window at rest, of a core, over {IDLE} s", f"{100 * share:.2f} %", "1 %")


def seconds(arguments, home, settings=()):
    """The wall time of one interpreter from its start to its end."""
    start = time.perf_counter()
    ended(arguments, home, settings)
    return time.perf_counter() - start


def ended(arguments, home, settings=()):
    """What one interpreter printed, off screen, at home in a folder."""
    given = {"QT_QPA_PLATFORM": "offscreen", "HOME": home, "XDG_CONFIG_HOME": home}
    done = subprocess.run(
        [sys.executable, *arguments], check=True, env=os.environ | given | dict(settings),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    return done.stdout


if __name__ == "__main__":
    main()
