"""At every scale of the screen, pictures have its own pixels and nothing stands outside."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LOOK = """
import sys
from hgviz.gui import app as apps, theme
from hgviz.gui.window import Window
from tests.making import make_capture

ratio = float(sys.argv[1])
app = apps.application()
theme.apply(app, False)
frame = Window()
frame.resize(1100, 700)
frame.show()
from hgviz.gui.program import Program
from PySide6.QtWidgets import QAbstractButton

program = Program(frame, keep=False)
program.session.put(capture=make_capture())
program.settle()
whole = frame.grab()
assert whole.devicePixelRatio() == ratio
assert (whole.width(), whole.height()) == (round(1100 * ratio), round(700 * ratio))
for size in (16, 64):
    drawn = theme.pixmap("eye", size)
    assert (drawn.width(), drawn.devicePixelRatio()) == (round(size * ratio), ratio)
for button in frame.findChildren(QAbstractButton):
    if button.isVisible() and not button.icon().isNull():
        sizes = [one.height() for one in button.icon().availableSizes()]
        assert max(sizes) >= round(16 * ratio), (button.text(), sizes)
    if button.isVisible():
        corner = button.mapTo(frame, button.rect().bottomRight())
        assert frame.rect().contains(corner), button.text()
program.close()
"""


@pytest.mark.parametrize("ratio", ["1.5"])  # where rounding shows
def test_pictures_have_the_pixels_of_the_screen(ratio, tmp_path):
    screen = {"QT_SCALE_FACTOR": ratio, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", LOOK, ratio], env=os.environ | screen, cwd=ROOT,
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
