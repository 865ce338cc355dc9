"""From weights to colours on paper, and the bar that says which is which."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Display, Floats
from hgviz.figures.paper import style
from hgviz.figures.paper.page import Page
from hgviz.language import short_number
from hgviz.palettes import (
    LIGHT_PAGE,
    colours,
    limits_of,
    matching_palette,
    paint,
    palette_coordinates,
    ticks,
)

BAR, TICK, GAP = 7.0, 2.0, 2.5
LONGEST = 130.0  # of a bar below a figure


@dataclass(frozen=True, slots=True)
class Shades:
    """How weights are coloured: one palette over one range. beyond: whether there are weights below
    it, and above it, which have the colours of its ends.
    """

    palette: str
    limits: tuple[float, float]
    scale: str
    signed: bool
    beyond: tuple[bool, bool] = (False, False)

    def paint(self, weights: Floats, seen: NDArray[np.bool_] | None = None) -> NDArray[np.uint8]:
        """uint8 (..., 3); what is not seen takes its own grey."""
        placed = palette_coordinates(weights, self.limits, self.scale, self.signed)
        rgb = paint(placed, colours(self.palette))
        if seen is not None:
            rgb[~seen] = rgb_of(LIGHT_PAGE.unseen)
        return rgb

    def ticks(self, length: float, each: float = 9.0) -> list[tuple[float, str]]:
        """(place, words) along a bar of so many points, each of which takes so many."""
        found = ticks(
            self.limits, self.scale, self.signed, min(max(each / max(length, 1), 0.055), 0.5)
        )
        at = palette_coordinates(found, self.limits, self.scale, self.signed)
        words = [short_number(value, self.signed) for value in found]
        if self.beyond[0]:
            words[0] = f"≤ {words[0]}"
        if self.beyond[1]:
            words[-1] = f"≥ {words[-1]}"
        return list(zip(map(float, at), words, strict=True))


def shades_of(display: Display, signed: bool, weights: Iterable[Floats]) -> Shades:
    """The colours that suit some weights; limits that display does not give come from them."""
    found = [w[np.isfinite(w)] for w in weights]
    low = min((float(w.min(initial=0)) for w in found), default=0.0)
    high = max((float(w.max(initial=0)) for w in found), default=0.0)
    limits = display.limits or limits_of(low, high, signed)
    if signed:
        limits = limits_of(*limits, signed)
    hair = 1e-4 * (limits[1] - limits[0])
    beyond = low < limits[0] - hair, high > limits[1] + hair
    return Shades(matching_palette(display.palette, signed), limits, display.scale, signed, beyond)


def bar_width(shades: Shades) -> float:
    """The room that an upright bar with its numbers takes, however high it is."""
    words = {words for height in range(20, 640, 20) for _, words in shades.ticks(height)}
    widest = max(style.extent(one, style.SMALL) for one in words)
    return max(BAR + TICK + GAP + widest, style.extent("Weight", style.SMALL)) + 1


def upright_bar(page: Page, shades: Shades, x: float, y: float, height: float) -> None:
    """A colour bar from y down, exactly so high; lowest value below."""
    page.image(colours(shades.palette)[::-1, None], x, y, BAR, height)
    page.box(x, y, BAR, height, edge=LIGHT_PAGE.line)
    marks = shades.ticks(height)
    # a bar too short for two lines: its ends are written as close to it as they can be read
    spread = max(height, style.SMALL * 1.3)
    lift = (spread - height) / 2
    page.text(x, y - 6 - lift, "Weight", size=style.SMALL, colour=LIGHT_PAGE.secondary)
    for at, words in marks:
        level = y + height / 2 + (0.5 - at) * (height if len(marks) > 2 else spread)
        tip = y + (1 - at) * height
        page.lines([[(x + BAR, tip), (x + BAR + TICK, tip)]], LIGHT_PAGE.secondary)
        page.text(x + BAR + TICK + GAP, level, words, size=style.SMALL, middle=True)


def level_bar(page: Page, shades: Shades, x: float, y: float, room: float) -> float:
    """A colour bar from x on, its numbers below, lowest value left; gives where it ends below."""
    wide = [style.extent(words, style.SMALL) for _, words in shades.ticks(room)]
    outer, inner, last = max(wide[0], wide[-1]), max(wide[1:-1], default=0.0), wide[-1] / 2
    width = min(LONGEST, room - last)
    page.image(colours(shades.palette)[None], x, y, width, BAR)
    page.box(x, y, width, BAR, edge=LIGHT_PAGE.line)
    marks = shades.ticks(width, max((outer + inner) / 2, inner) + 4)
    if outer + inner + 8 > width:
        marks = [mark for mark in marks if mark[0] in (0.0, 1.0)]
    for at, words in marks:
        here = x + at * width
        page.lines([[(here, y + BAR), (here, y + BAR + TICK)]], LIGHT_PAGE.secondary)
        page.text(here, y + BAR + TICK + 7, words, size=style.SMALL, across="center")
    return y + BAR + TICK + 9


def rgb_of(colour: str) -> tuple[int, int, int]:
    """#RRGGBB as numbers."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
