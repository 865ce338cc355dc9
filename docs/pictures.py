"""Draws the pictures of the guide: the window on the sample's first capture, light and dark.

Run from a checkout: python docs/pictures.py
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

WIDTH = 1200  # px: sharp enough to read, small enough for a page


def main() -> None:
    """Draw every mode in both themes."""
    from PySide6.QtCore import Qt

    from hgviz.gui.opening import FIRST
    from hgviz.gui.proof import window_picture
    from hgviz.resources import resource

    folder = HERE / "pictures"
    folder.mkdir(exist_ok=True)
    for mode in ("inspect", "follow"):
        for dark in (False, True):
            image = window_picture(resource(FIRST), dark, mode)
            image = image.scaledToWidth(WIDTH, Qt.TransformationMode.SmoothTransformation)
            path = folder / f"{mode}-{'dark' if dark else 'light'}.png"
            image.save(str(path))
            print(f"{path.relative_to(HERE.parent)}  {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
