"""What the signed rows of a map add up to: bars beside it, one for each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Map
from hgviz.figures.paper import style
from hgviz.figures.paper.page import Page
from hgviz.figures.paper.shades import Shades
from hgviz.language import short_number
from hgviz.palettes import LIGHT_PAGE

WIDEST, PART, GAP = 46.0, 0.135, 7.0  # of the bars: in points, and of the page
NARROWEST = 180.0  # of a page that has room for them
BELOW = 9.0  # and below it, for their scale
ROWS = 256
TONE = 0.3  # of the largest weight, whose colour the bars have


@dataclass(frozen=True, slots=True)
class Sums:
    """Of each row of a map, or of each run of rows where it is reduced: above, below 0, all."""

    positive: NDArray[np.float64]
    negative: NDArray[np.float64]

    @property
    def all(self) -> NDArray[np.float64]:
        """What a row adds up to."""
        return self.positive + self.negative

    @property
    def ends(self) -> tuple[float, float]:
        """From where to where the bars reach; 0 lies within."""
        return float(self.negative.min(initial=0)), float(self.positive.max(initial=0))


def width_on(page: float) -> float:
    """How wide the bars are on a page so wide; beside a map they take GAP more."""
    return min(WIDEST, PART * page)


def sums_of(one: Map, head: int, zoom: int = 0) -> Sums:
    """The sums of a head's rows; where each row of a figure stands for several, their mean."""
    parts = []
    for start in range(0, one.shape[1], ROWS):
        weights = one.read(head, (start, min(start + ROWS, one.shape[1]))).astype(np.float64)
        parts.append([np.maximum(weights, 0).sum(1), np.minimum(weights, 0).sum(1)])
    both = np.concatenate(parts, axis=1)
    starts = np.arange(0, both.shape[1], 1 << zoom)
    counts = np.diff(np.append(starts, both.shape[1]))
    positive, negative = np.add.reduceat(both, starts, axis=1) / counts
    return Sums(positive, negative)


def bars(
    page: Page, shades: Shades, sums: Sums, x: float, y: float, row: float, end: float
) -> None:
    """The bars of rows that are so high, from x and y on, down to end; a line at each sum."""
    (low, high), width = sums.ends, width_on(page.width)
    scale = width / max(high - low, 1e-30)
    zero = x - low * scale
    limit = max(abs(one) for one in shades.limits) or 1.0
    tops = np.minimum(y + np.arange(len(sums.positive) + 1) * row, end)
    for values, side in ((sums.positive, 1.0), (sums.negative, -1.0)):
        fill = shades.paint(np.array([side * TONE * limit], np.float32))[0] / 255
        page.polygon(_steps(zero, zero + values * scale, tops), tuple(fill))
    at = zero + sums.all * scale
    lines = [[(a, t), (a, b)] for a, t, b in zip(at, tops, tops[1:], strict=False)]
    page.lines(lines, LIGHT_PAGE.text, min(1.2, max(0.5, row / 6)))
    page.lines([[(zero, y), (zero, end)]], LIGHT_PAGE.secondary, 0.5)
    page.text(
        x + width / 2,
        y - 6,
        "Row sum",
        size=style.SMALL,
        colour=LIGHT_PAGE.secondary,
        across="center",
    )
    ends = [(x, low), (x + width, high)]
    said = [
        (place, short_number(float(f"{value:.2g}"), True), abs(value))
        for place, value in ends
        if value
    ]
    if sum(style.extent(words, style.SMALL) / 2 for _, words, _ in said) + 2 > width:
        said = [max(said, key=lambda one: one[2])]  # 0 and the farther end say how long bars are
    for place, words, _ in said:
        page.text(place, end + 7.5, words, size=style.SMALL, across="center")


def _steps(
    zero: float, ends: NDArray[np.float64], tops: NDArray[np.float64]
) -> list[tuple[float, float]]:
    """An outline of bars from one line."""
    across = np.repeat(ends, 2)
    down = np.stack([tops[:-1], tops[1:]], axis=1).ravel()
    return [(zero, tops[0]), *zip(across, down, strict=True), (zero, tops[-1])]
