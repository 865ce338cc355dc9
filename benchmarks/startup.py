"""How long until something is there: the help, the window's first painted frame, the map of the
sample; and what a window takes that nobody touches. hgviz is compiled beforehand, as pip does where
it is installed.

Times are from the start of a process, of the help to its end, each beside what it cannot be faster
than, taken in turn, medians. They have a home of their own, so that nothing is opened but the
sample. A machine that is busy spoils them: `chrt -f 10` as root puts others off meanwhile.
"""

import compileall
import os
import statistics
import subprocess
import sys
import tempfile
import time

from table import line

import hgviz

ROUNDS = 9
SETTLED, IDLE = 8, 10  # s: until torch is loaded behind the picture, and that are measured
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
FRAME = """
import os
import time
from hgviz.gui import app
os.environ["HGVIZ_EXIT_AFTER_PAINT"] = "1"
app.window([])
print(time.monotonic())
"""
SAMPLE = """
import os
import time
from PySide6.QtCore import QEvent, QObject, QTimer, Slot
from PySide6.QtWidgets import QApplication
from hgviz.gui import app
from hgviz.files import resource

class Eye(QObject):
    def eventFilter(self, canvas, event):
        if event.type() == QEvent.Type.Paint and canvas.panes[0].scene and canvas.is_exact:
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
def seen():
    print(time.monotonic(), flush=True)
    QApplication.exit(0)

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
PAIRS = (  # what, its program, what it is beside, limit
    ("hgviz --help", ["-m", "hgviz", "--help"], "import typer.rich_utils", 2.0),
    ("first frame of the window", ["-c", FRAME], EMPTY_WINDOW, 2.0),
    ("map of the sample, exact", ["-c", USEFUL], EMPTY_WINDOW, 6.0),
)


def main():
    """Print a line of ratios for each, and the share of a core that a window at rest takes."""
    compileall.compile_dir(hgviz.__path__[0], quiet=1)
    with tempfile.TemporaryDirectory() as home:
        for name, ours, beside, limit in PAIRS:
            both = [
                (seconds(ours, home), seconds(["-c", beside], home)) for _ in range(ROUNDS + 1)
            ][1:]
            mine, other = (statistics.median(times) for times in zip(*both, strict=True))
            line(name, f"{mine:.3f} s")
            line("  over the same without hgviz", f"{mine / other:.2f}", f"{limit}")
        share = float(ended(["-c", UNTOUCHED], home).split()[-1])
        line(f"window at rest, of a core, over {IDLE} s", f"{100 * share:.2f} %", "1 %")


def seconds(arguments, home):
    """The time from the start of an interpreter to the moment it prints, or to its end."""
    start = time.monotonic()  # one clock for all processes
    said = ended(arguments, home)
    return (time.monotonic() if "-c" not in arguments or not said else float(said)) - start


def ended(arguments, home):
    """What one interpreter printed, off screen, at home in a folder."""
    given = {"QT_QPA_PLATFORM": "offscreen", "HOME": home, "XDG_CONFIG_HOME": home}
    done = subprocess.run(
        [sys.executable, *arguments], check=True, env=os.environ | given,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    return done.stdout


if __name__ == "__main__":
    main()
