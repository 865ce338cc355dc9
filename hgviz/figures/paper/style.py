"""How figures are dressed: settings by context, fonts that can be embedded, sizes of text."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from matplotlib import font_manager, style
from matplotlib.ft2font import LoadFlags

from hgviz.figures.spec import POINTS

TEXT = 7.0
SMALL = 6.5
TITLE = 8.0
MEASURED = 100.0  # the size texts are measured at
DOTS = 300  # per inch, of a PNG and of the rasters inside the other formats
ACROSS = 3600  # dots of a PNG at most: 12 in; four times as many take 11 GB to draw

# Asked in turn for each character. TrueType only: a CFF font cannot be embedded as Type 42.
FALLBACKS = (
    "NanumGothic", "Noto Sans Arabic", "Noto Naskh Arabic", "Noto Sans Hebrew",
    "Noto Sans Devanagari", "Noto Sans Bengali", "Noto Sans Tamil", "Noto Sans Thai",
    "Noto Sans Armenian", "Noto Sans Georgian", "Noto Sans Ethiopic", "Noto Sans Symbols",
    "Noto Sans Symbols2", "Noto Sans Math",
)  # fmt: skip
PROPORTIONAL, FIXED = "DejaVu Sans", "DejaVu Sans Mono"  # matplotlib brings these two itself

SETTINGS: dict[str, Any] = {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "hgviz",
    "image.interpolation": "none",
    "image.composite_image": False,
    "text.parse_math": False,
    "text.hinting": "none",
    "font.size": TEXT,
    "savefig.dpi": DOTS,
    "pgf.rcfonts": False,
}


def dots(width: float) -> float:
    """Dots per inch of a page so many points wide."""
    return min(float(DOTS), ACROSS * POINTS / width)


@contextmanager
def dressed() -> Iterator[None]:
    """The settings of figures, whatever those of this machine are."""
    logs = [logging.getLogger(name) for name in ("fontTools", "matplotlib.font_manager")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)  # they report tables of no use in a subset
    try:
        with style.context(["default", SETTINGS]):
            yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)


@lru_cache(maxsize=2)
def families(fixed: bool = False) -> tuple[str, ...]:
    """The font families to use, the first that has a character draws it."""
    first = (FIXED, PROPORTIONAL) if fixed else (PROPORTIONAL,)
    files = {one.name: one.fname for one in font_manager.fontManager.ttflist}
    there = [name for name in FALLBACKS if name in files and _is_truetype(files[name])]
    return (*first, *there)


@lru_cache(maxsize=8192)
def drawable(character: str) -> bool:
    """Whether a font at hand has this character."""
    fonts = (font_manager.get_font(name) for name in _files(False, False))
    return any(font.get_char_index(ord(character)) for font in fonts)


@lru_cache(maxsize=16384)
def extent(words: str, size: float, bold: bool = False, fixed: bool = False) -> float:
    """The width of a line of text in points."""
    font = font_manager.get_font(_files(bold, fixed))  # one for each thread
    font.set_size(MEASURED, POINTS)
    font.set_text(words, 0.0, flags=LoadFlags.NO_HINTING)
    width: float = font.get_width_height()[0] / 64 * size / MEASURED
    return width


@lru_cache(maxsize=64)
def properties(size: float, bold: bool = False, fixed: bool = False) -> Any:
    """The font of a text."""
    return font_manager.FontProperties(
        family=list(families(fixed)), size=size, weight="bold" if bold else "normal"
    )


@lru_cache(maxsize=4)
def _files(bold: bool, fixed: bool) -> tuple[str, ...]:
    """The font files of a text, in the order they are asked."""
    weight = "bold" if bold else "normal"
    wanted = (font_manager.FontProperties(family=[name], weight=weight) for name in families(fixed))
    return tuple(font_manager.findfont(one) for one in wanted)


def _is_truetype(name: str) -> bool:
    try:
        with open(name, "rb") as file:
            return file.read(4) in (b"\0\1\0\0", b"true")
    except OSError:
        return False
