"""The page of a figure: a sheet of known width on which everything is placed in points.

x runs right and y runs down from the top left corner. Nothing is fitted afterwards, so a width
asked for is the width of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Polygon, Rectangle
from matplotlib.path import Path as Outline
from matplotlib.text import Text
from numpy.typing import NDArray

from hgviz.figures.paper import style
from hgviz.figures.spec import POINTS
from hgviz.palettes import LIGHT_PAGE

MIDDLE = 0.36  # of the size of a text: from its baseline up to the middle of its capitals
HATCH_GAP, HATCH_LINE = 3.2, 0.35
Points = Sequence[tuple[float, float]]
Boxes = NDArray[np.float64]  # (boxes, 4): left, top, right, bottom


class Page:
    """A sheet to draw on.

    notes: what its file must say about how it was drawn; smallest: the size of its smallest text,
    in points, None before there is one.
    """

    def __init__(self, width: float) -> None:
        self.width = width
        self.height = 0.0
        self.notes: list[str] = []
        self.smallest: float | None = None
        self.figure = Figure(figsize=(width / POINTS, 1), dpi=POINTS)
        self.axes: Axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_axis_off()
        self.axes.set_autoscale_on(False)
        self._layer = 1.0

    def close(self, height: float) -> None:
        """Cut the sheet below the last thing drawn."""
        self.height = height
        self.figure.set_size_inches(self.width / POINTS, height / POINTS)
        self.axes.set(xlim=(0, self.width), ylim=(height, 0))

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = style.TEXT,
        colour: Any = LIGHT_PAGE.text,
        across: str = "left",
        middle: bool = False,
        turned: bool = False,
        bold: bool = False,
        fixed: bool = False,
    ) -> Text:
        """A line of text from its baseline, or about the middle of its capitals.

        turned: read from below, x being its baseline or middle; across is then along y.
        """
        self.smallest = min(size, self.smallest or size)
        if middle and turned:
            x += MIDDLE * size
        elif middle:
            y += MIDDLE * size
        return self.axes.text(
            x, y, words, color=colour, ha=across, va="baseline", rotation=90 if turned else 0,
            rotation_mode="anchor", parse_math=False, zorder=self._next() + 1000,
            fontproperties=style.properties(size, bold, fixed),
        )  # fmt: skip

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: Any = None,
        edge: Any = None,
        line: float = 0.5,
    ) -> None:
        """A rectangle."""
        self.axes.add_artist(
            Rectangle(
                (x, y), width, height, facecolor=fill or "none", edgecolor=edge or "none",
                linewidth=line if edge else 0, joinstyle="miter", zorder=self._next(),
            )
        )  # fmt: skip

    def polygon(self, corners: Points, fill: Any, alpha: float = 1.0) -> None:
        """A filled outline without an edge."""
        self.axes.add_artist(
            Polygon(
                corners, closed=True, facecolor=fill, edgecolor="none", linewidth=0, alpha=alpha,
                zorder=self._next(),
            )
        )  # fmt: skip

    def lines(self, lines: Any, colour: Any, width: float = 0.5, alpha: float = 1.0) -> Any:
        """Straight lines, each a sequence of points."""
        drawn = LineCollection(
            lines, colors=colour, linewidths=width, alpha=alpha, zorder=self._next(),
            capstyle="butt",
        )  # fmt: skip
        self.axes.add_artist(drawn)
        return drawn

    def curve(
        self,
        points: Points,
        colour: Any,
        width: float,
        alpha: float = 1.0,
        dash: tuple[float, ...] = (),
    ) -> None:
        """A cubic curve: start, two control points, end; of dashes and gaps if given."""
        codes = [Outline.MOVETO, Outline.CURVE4, Outline.CURVE4, Outline.CURVE4]
        self.axes.add_artist(
            PathPatch(
                Outline(np.array(points), codes), facecolor="none", edgecolor=colour,
                linewidth=width, alpha=alpha, zorder=self._next(),
                linestyle=(0, dash) if dash else "-", capstyle="butt" if dash else "round",
            )
        )  # fmt: skip

    def stroke(
        self, points: Points, colour: Any, width: float, dash: tuple[float, ...] = ()
    ) -> None:
        """A line through points, of dashes and gaps in points if given."""
        self.axes.add_artist(
            Line2D(
                *zip(*points, strict=True), color=colour, linewidth=width,
                linestyle=(0, dash) if dash else "-", solid_joinstyle="round",
                solid_capstyle="butt", dash_capstyle="butt", zorder=self._next(),
            )
        )  # fmt: skip

    def marks(
        self,
        points: Points,
        marker: str,
        colour: Any,
        size: float,
        hollow: bool = False,
        alpha: float = 1.0,
    ) -> None:
        """A marker at each point; hollow: filled with the colour of paper."""
        if not points:
            return
        self.axes.add_artist(
            Line2D(
                *zip(*points, strict=True), linestyle="none", marker=marker, markersize=size,
                markerfacecolor=LIGHT_PAGE.paper if hollow else colour, markeredgecolor=colour,
                markeredgewidth=0.8 if hollow else 0.0, zorder=self._next(), alpha=alpha,
            )
        )  # fmt: skip

    def image(
        self,
        rgb: NDArray[np.uint8],
        x: float,
        y: float,
        width: float,
        height: float,
        cut: tuple[float, float] | None = None,
    ) -> None:
        """A raster over a rectangle; cut: the width and height of it that are shown."""
        drawn = AxesImage(
            self.axes, extent=(x, x + width, y + height, y), interpolation="none", origin="upper",
            zorder=self._next(),
        )  # fmt: skip
        drawn.set_data(rgb)
        self.axes.add_artist(drawn)
        if cut:
            drawn.set_clip_path(Rectangle((x, y), *cut, transform=self.axes.transData))

    def hatch(
        self, x: float, y: float, width: float, height: float, where: Boxes | None = None
    ) -> None:
        """Thin diagonal lines over a rectangle, only inside some boxes of it if given.

        They are cut here: a clip of a large map's outline takes some programs a minute.
        """
        whole = np.array([[x, y, x + width, y + height]])
        boxes = (
            whole if where is None else np.clip(where, whole[0, [0, 1] * 2], whole[0, [2, 3] * 2])
        )
        starts = np.arange(-height, width, HATCH_GAP)
        left, top, right, bottom = boxes.T
        low = np.maximum(left - x - starts[:, None], y + height - bottom)
        high = np.minimum(right - x - starts[:, None], y + height - top)
        line, box = np.nonzero(high > low)
        if not len(line):
            return
        low, high = low[line, box], high[line, box]
        order = np.lexsort((low, line))
        line, low, high = line[order], low[order], high[order]
        apart = (np.diff(line) > 0) | (low[1:] > high[:-1] + 1e-6)  # boxes that touch share a line
        first = np.flatnonzero(np.r_[True, apart])
        start, low, high = x + starts[line[first]], low[first], np.maximum.reduceat(high, first)
        ends = [(start + at, y + height - at) for at in (low, high)]
        self.lines(np.stack([np.stack(one, -1) for one in ends], 1), LIGHT_PAGE.hatch, HATCH_LINE)

    def _next(self) -> float:
        """What is drawn later lies above."""
        self._layer += 1e-3
        return self._layer


def boxes_of(cells: NDArray[np.bool_], x: float, y: float, cell: tuple[float, float]) -> Boxes:
    """The boxes of the True cells of a grid of cells (width, height) from (x, y); none overlap."""
    found: list[NDArray[np.float64]] = []
    first = 0
    for row in range(1, len(cells) + 1):
        if row < len(cells) and np.array_equal(cells[row], cells[first]):
            continue  # equal rows share their boxes
        edges = np.flatnonzero(np.diff(cells[first].astype(np.int8), prepend=0, append=0))
        left, right = (x + edges.reshape(-1, 2) * cell[0]).T
        top, bottom = np.full(len(left), y + first * cell[1]), np.full(len(left), y + row * cell[1])
        found.append(np.stack([left, top, right, bottom], 1))
        first = row
    return np.concatenate([np.zeros((0, 4)), *found])
