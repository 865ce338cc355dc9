"""What charts of the window show, as values that need no screen: plots, and the points in them.

A `Chart` is made of `Plot`s, a plot of two axes and of lines, bands, points, bars, marks and notes.
`hgviz.gui.charts` draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hgviz.gui.language import tr
from hgviz.palettes import even_ticks

Values = Sequence[float] | np.ndarray
Colour = str | int  # a colour of the theme by name, or the number of a series
Direction = Literal["x", "y"]


def number(value: float) -> str:
    """87.5, −1.25, 12,000: a number on an axis."""
    return f"{value:,.4g}".replace("-", "−") if value else "0"


def count(value: float) -> str:
    """0, 500, 6k, 1.5M: a count on an axis."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def percent(value: float) -> str:
    """58 %, 57.5 %: a share on an axis."""
    return tr("{part} %", part=f"{100 * value:.4g}")


@dataclass(frozen=True, slots=True)
class Axis:
    """What lies along one side of a plot.

    low, high: its ends, all that can be seen of it; words: a number on it as text; ticks: where
    numbers stand and what they say, None for round numbers; whole: only whole numbers have ticks;
    end: a number that has one besides, such as that of all heads.
    """

    low: float
    high: float
    title: str = ""
    words: Callable[[float], str] = number
    ticks: tuple[tuple[float, str], ...] | None = None
    whole: bool = False
    end: float | None = None

    @classmethod
    def around(cls, values: Values, room: float = 0.05, title: str = "", **more: Any) -> Axis:
        """An axis on which all finite values lie, a share of room beyond the outermost."""
        finite = np.asarray(values, float)
        finite = finite[np.isfinite(finite)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        air = room * (high - low) or max(abs(high), 1.0) * 0.05
        return cls(low - air, high + air, title, **more)

    def marks(self, low: float, high: float, most: int) -> list[tuple[float, str]]:
        """Where numbers stand between two ends, at most so many, and what they say."""
        if self.ticks is not None:
            return [one for one in self.ticks if low <= one[0] <= high]
        found = [min(max(v, low), high) for v in even_ticks(low, high, most)]
        if self.whole:
            found = [v for v in found if v == round(v)]
        if self.end is not None and low <= self.end <= high:
            near = 0.06 * (high - low)
            found = [*(v for v in found if abs(v - self.end) > near), self.end]
        return [(v, self.words(v)) for v in found]


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A line through (x, y)."""

    x: Values
    y: Values
    colour: Colour = "press"
    width: float = 2.0
    style: Literal["solid", "dash", "dot"] = "solid"


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """All between low and high, along x."""

    x: Values
    low: Values
    high: Values
    colour: Colour = "press"
    alpha: float = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Marks at (x, y).

    shape: a number, of which six differ; told: what the point of a number says, its lines apart by
    line breaks: only such points are pointed at and walked; keys: what each stands for, such as a
    head; names: what is written beside those that are chosen, or stand apart, where there is room.
    """

    x: Values
    y: Values
    colour: Colour = "press"
    shape: int = 0
    size: float = 6.0  # px across
    hollow: bool = False
    told: Callable[[int], str] | None = None
    keys: tuple[Hashable, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """Intervals: at each x a bar from low to high, with caps."""

    x: Values
    low: Values
    high: Values
    colour: Colour = "press"


@dataclass(frozen=True, slots=True)
class Mark:
    """A straight line across the plot where x, or y, has a value."""

    direction: Direction
    value: float
    colour: Colour = "text"
    width: float = 1.0
    style: Literal["solid", "dash", "dot"] = "dash"


@dataclass(frozen=True, slots=True)
class Note:
    """Words beside one of some places (x, y): where least is covered. The first notes of a plot
    have the first choice; a later one that finds no free place is left out."""

    words: str
    places: tuple[tuple[float, float], ...]
    colour: Colour = "text"
    weight: int = 600


Part = Line | Band | Points | Bars | Mark | Note


@dataclass(frozen=True, slots=True)
class Plot:
    """Two axes and what is drawn over them, the first undermost."""

    x: Axis
    y: Axis
    parts: tuple[Part, ...]
    title: str = ""

    def of(self, kind: type) -> list[Any]:
        """Its parts of a kind, in order."""
        return [one for one in self.parts if isinstance(one, kind)]


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the legend: what a colour and a shape stand for."""

    words: str
    colour: Colour
    shape: int = 0
    hollow: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Slider:
    """A mark along x that is moved from stop to stop.

    stops: the x of each; at: the stop it is at, None where it is nowhere; words: on its handle;
    home: the stop that the End key goes to.
    """

    stops: Values
    at: int | None
    words: str
    home: int = 0


@dataclass(frozen=True, slots=True)
class Chart:
    """Plots in rows, with a legend above them.

    words: all of it in a sentence, for those who do not see it; of: what it is of, for as long as
    this stays the same a zoom does; across: how many plots stand in a row, 0 for as many as there
    is room for; reads: whether the pointer is at the point nearest to it, or at the one above or
    below it; walk: whether arrows go along the points as they are drawn, or to what is next on
    screen.
    """

    plots: tuple[Plot, ...] = ()
    words: str = ""
    legend: tuple[Entry, ...] = ()
    slider: Slider | None = None
    of: Hashable = None
    across: int = 0
    reads: Literal["point", "x"] = "point"
    walk: Literal["order", "space"] = "order"


class Spots:
    """All points of some plots that say something, by number: panel, x and y (n,)."""

    def __init__(self, plots: Sequence[Plot]) -> None:
        mine = [(at, part) for at, plot in enumerate(plots) for part in plot.of(Points)
                if part.told is not None]  # fmt: skip
        self.parts: list[Points] = [part for _, part in mine]
        sizes = [len(part.x) for part in self.parts]
        self._starts = np.cumsum([0, *sizes])
        self.panel = np.repeat(np.array([at for at, _ in mine], int), sizes)
        self.x = np.concatenate([np.zeros(0), *(np.asarray(p.x, float) for p in self.parts)])
        self.y = np.concatenate([np.zeros(0), *(np.asarray(p.y, float) for p in self.parts)])
        self._numbers = {
            key: int(start) + at
            for start, part in zip(self._starts, self.parts, strict=False)
            for at, key in enumerate(part.keys)
        }

    def __len__(self) -> int:
        return len(self.x)

    def _part(self, at: int) -> tuple[Points, int]:
        which = int(np.searchsorted(self._starts, at, side="right")) - 1
        return self.parts[which], at - int(self._starts[which])

    def find(self, key: Hashable) -> int | None:
        """The number of the point that stands for something."""
        return None if key is None else self._numbers.get(key)

    def told(self, at: int) -> str:
        """What a point says, in lines."""
        part, number_ = self._part(at)
        assert part.told is not None
        return part.told(number_)

    def key(self, at: int) -> Hashable:
        """What a point stands for; None for nothing."""
        part, number_ = self._part(at)
        return part.keys[number_] if part.keys else None

    def name(self, at: int) -> str:
        """What is written beside a point; "" for nothing."""
        part, number_ = self._part(at)
        return part.names[number_] if part.names else ""


__all__ = [
    "Axis", "Band", "Bars", "Chart", "Colour", "Entry", "Line", "Mark", "Note", "Part", "Plot",
    "Points", "Slider", "Spots", "Values", "count", "number", "percent",
]  # fmt: skip
