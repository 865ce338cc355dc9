"""How long until something is there: the help, and the first painted frame of the window.

Each beside what it cannot be faster than, whole processes, taken in turn, medians.
"""

import os
import statistics
import subprocess
import sys
import time

from table import line

ROUNDS = 9
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
PAIRS = (
    ("hgviz --help", ["-m", "hgviz", "--help"], "import typer.rich_utils", 2.0),
    ("first frame of the window", ["-m", "hgviz"], EMPTY_WINDOW, 2.0),
)


def main():
    """Print a line of ratios for each."""
    for name, ours, beside, limit in PAIRS:
        both = [(seconds(ours), seconds(["-c", beside])) for _ in range(ROUNDS + 1)][1:]
        mine, other = (statistics.median(times) for times in zip(*both, strict=True))
        line(name, f"{mine:.3f} s")
        line("  over the same without hgviz", f"{mine / other:.2f}", f"{limit}")


def seconds(arguments):
    """The wall time of one interpreter from its start to its end."""
    settings = {"HGVIZ_EXIT_AFTER_PAINT": "1", "QT_QPA_PLATFORM": "offscreen"}
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], check=True, env=os.environ | settings, capture_output=True
    )
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
