"""Draws the pictures of the guide: the window on the bundled models, light and dark.

Run from a checkout: python docs/pictures.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtGui import QImage

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

THEMES = ("light", "dark")
WIDTH = 1200  # px: sharp enough to read, small enough for a page


def main() -> None:
    """Draw every mode in both themes, then a classifier whose weights have signs."""
    from hgviz.gui.opening import CLASSIFIERS, FIRST, REVIEW
    from hgviz.gui.proof import window_picture
    from hgviz.resources import resource

    (HERE / "pictures").mkdir(exist_ok=True)
    for mode in ("inspect", "follow"):
        for dark in (False, True):
            keep(f"{mode}-{THEMES[dark]}", window_picture(resource(FIRST), dark, mode))
    with TemporaryDirectory() as folder:
        signed = captured(resource(CLASSIFIERS[1]), REVIEW, Path(folder) / "signed.h5")
        for dark in (False, True):
            keep(f"signed-{THEMES[dark]}", window_picture(signed, dark))


def captured(model: Path, text: str, file: Path) -> Path:
    """A capture of a text, written to a file."""
    from hgviz import tasks
    from hgviz.core import finish

    opened = finish(tasks.load(model, "cpu"))
    prompt, _ = tasks.prompt_from(opened, text)
    finish(tasks.capture(opened, prompt, out=file))
    return file


def keep(name: str, image: QImage) -> None:
    """Write a picture, small enough for a page."""
    from PySide6.QtCore import Qt

    image = image.scaledToWidth(WIDTH, Qt.TransformationMode.SmoothTransformation)
    path = HERE / "pictures" / f"{name}.png"
    image.save(str(path))
    print(f"{path.relative_to(HERE.parent)}  {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
