"""What charts of the window show, as values that need no screen: plots, and the points in them.

A `Chart` is made of `Plot`s, a plot of two axes and of lines, bands, points, bars, marks and notes.
`Scale` says which part of a plot is on screen and where; `Spots` are the points that say something;
`place_notes` finds where words stand. `hgviz.gui.charts` draws it all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
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
        even = even_ticks(low, high, most)
        while len(even) < 2 and most < 9:  # one number gives no scale
            most += 1
            even = even_ticks(low, high, most)
        found = [min(max(v, low), high) for v in even]
        if self.whole:
            found = [v for v in found if v == round(v)]
        if self.end is not None and low <= self.end <= high:
            near = 0.06 * (high - low)
            found = [*(v for v in found if abs(v - self.end) > near), self.end]
        return [(v, self.words(v)) for v in found]

    def marks_apart(
        self,
        low: float,
        high: float,
        room: float,
        measure: Callable[[str], float],
        cut: Callable[[str, float], str],
    ) -> list[tuple[float, str]]:
        """As many numbers between two ends as stand beside each other on so many px.

        measure: px of words; cut: words made as short as so many px.
        """
        px = room / ((high - low) or 1.0)  # of one unit
        found = self.marks(low, high, 10)
        if self.ticks is not None and len(found) > 1:
            each = px * (found[1][0] - found[0][0]) - 6
            if each > 40:
                return [(at, cut(words, each)) for at, words in found]
        for most in (10, 8, 6, 5, 4, 3, 2):
            found = self.marks(low, high, most)
            at = px * np.array([at for at, _ in found])
            half = np.array([measure(words) / 2 for _, words in found])
            if (at[:-1] + half[:-1] + 8 <= at[1:] - half[1:]).all():
                return found
        return [one for at, one in enumerate(found) if at in (0, len(found) - 1)]


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

    @property
    def ends(self) -> tuple[float, float, float, float]:
        """All that can be seen: x from and to, y from and to."""
        return float(self.x.low), float(self.x.high), float(self.y.low), float(self.y.high)

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

    @property
    def value(self) -> float | None:
        """The x it is at; None for nowhere."""
        return None if self.at is None else float(self.stops[min(self.at, len(self.stops) - 1)])


@dataclass(frozen=True, slots=True)
class Chart:
    """Plots in rows, with a legend above them.

    words: all of it in a sentence, for those who do not see it; of: what it is of, for as long as
    this stays the same a zoom does; across: how many plots stand in a row, 0 for as many as there
    is room for; reads: whether the pointer is at the point nearest to it, or at the one above or
    below it.
    """

    plots: tuple[Plot, ...] = ()
    words: str = ""
    legend: tuple[Entry, ...] = ()
    slider: Slider | None = None
    of: Hashable = None
    across: int = 0
    reads: Literal["point", "x"] = "point"


# --- from values to pixels ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scale:
    """The part of a plot that is on screen, x0 to x1 and y0 to y1, and its place there in px."""

    x0: float
    x1: float
    y0: float
    y1: float
    left: float
    top: float
    width: float
    height: float

    @property
    def ends(self) -> tuple[float, float, float, float]:
        """x from and to, y from and to."""
        return self.x0, self.x1, self.y0, self.y1

    def shows(self, x0: float, x1: float, y0: float, y1: float) -> bool:
        """Whether all between these ends is on screen."""
        far = np.subtract(self.ends, (x0, x1, y0, y1))
        return bool((np.abs(far) <= 1e-6 * np.repeat([x1 - x0, y1 - y0], 2)).all())

    def holds(self, across: float, down: float) -> bool:
        """Whether a place in px is between the axes."""
        return 0 <= across - self.left <= self.width and 0 <= down - self.top <= self.height

    def pixels(self, x: Values | float, y: Values | float) -> tuple[np.ndarray, np.ndarray]:
        """Where values are, across and down in px."""
        across = (np.asarray(x, float) - self.x0) / ((self.x1 - self.x0) or 1.0)
        up = (np.asarray(y, float) - self.y0) / ((self.y1 - self.y0) or 1.0)
        return self.left + across * self.width, self.top + (1 - up) * self.height

    def value(self, across: float, down: float) -> tuple[float, float]:
        """The x and y of a place in px."""
        x = self.x0 + (across - self.left) / (self.width or 1.0) * (self.x1 - self.x0)
        return x, self.y1 - (down - self.top) / (self.height or 1.0) * (self.y1 - self.y0)

    def zoomed(
        self, factor: float, at: tuple[float, float] | None = None, sides: str = "xy"
    ) -> Scale:
        """`factor` times as much along these sides, around a place in px; None: the middle."""
        x, y = self.value(*(at or (self.left + self.width / 2, self.top + self.height / 2)))
        across, up = (factor if side in sides else 1.0 for side in "xy")
        return replace(
            self, x0=x + (self.x0 - x) * across, x1=x + (self.x1 - x) * across,
            y0=y + (self.y0 - y) * up, y1=y + (self.y1 - y) * up,
        )  # fmt: skip

    def between(self, one: tuple[float, float], other: tuple[float, float], least: float) -> Scale:
        """What lies between two places in px; all of a side where they are nearer than `least`."""
        (xa, ya), (xb, yb) = self.value(*one), self.value(*other)
        x0, x1, y0, y1 = self.ends
        if abs(one[0] - other[0]) > least:
            x0, x1 = np.clip(sorted((xa, xb)), x0, x1).tolist()
        if abs(one[1] - other[1]) > least:
            y0, y1 = np.clip(sorted((ya, yb)), y0, y1).tolist()
        return replace(self, x0=x0, x1=x1, y0=y0, y1=y1)

    def panned(self, across: float, down: float) -> Scale:
        """What is on screen moved by so many px."""
        x = -across * (self.x1 - self.x0) / (self.width or 1.0)
        y = down * (self.y1 - self.y0) / (self.height or 1.0)
        return replace(self, x0=self.x0 + x, x1=self.x1 + x, y0=self.y0 + y, y1=self.y1 + y)


def thinned(part: Line | Band, scale: Scale) -> Line | Band:
    """What a line or band looks like at a scale: what is beyond its ends, and all but the lowest
    and highest of each px, left out. One whose x goes back and forth is as it was."""
    x = np.asarray(part.x, float)
    columns = max(1, int(scale.width))
    if len(x) <= 4 * columns or (np.diff(x) < 0).any():
        return part
    first = max(0, int(np.searchsorted(x, scale.x0)) - 1)
    last = min(len(x), int(np.searchsorted(x, scale.x1, side="right")) + 1)
    each = -(-(last - first) // columns)
    starts = np.arange(first, last, each)
    if each <= 2:
        chosen = slice(first, last)
    elif isinstance(part, Line):
        y = np.asarray(part.y, float)[first:last]
        rows = np.full(len(starts) * each, y[-1])  # the last px is filled up
        rows[: len(y)] = y
        rows = rows.reshape(-1, each)
        ends = starts[:, None] + np.sort([rows.argmin(axis=1), rows.argmax(axis=1)], axis=0).T
        chosen = np.unique([first, *ends.ravel().clip(max=last - 1), last - 1])
    if isinstance(part, Line):
        return replace(part, x=x[chosen], y=np.asarray(part.y)[chosen])
    low, high = np.asarray(part.low, float)[:last], np.asarray(part.high, float)[:last]
    return replace(
        part, x=np.append(x[starts], x[last - 1]),
        low=np.append(np.minimum.reduceat(low, starts), low[-1]),
        high=np.append(np.maximum.reduceat(high, starts), high[-1]),
    )  # fmt: skip


# --- points that say something --------------------------------------------------------------------

NEAR = 16  # px from a point at which a place is at it
NAMED = 16  # points that are named by themselves, where there is room
CROWD = 1000  # points of which none is


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

    def key(self, at: int | None) -> Hashable:
        """What a point stands for; None for nothing."""
        if at is None:
            return None
        part, number_ = self._part(at)
        return part.keys[number_] if part.keys else None

    def name(self, at: int) -> str:
        """What is written beside a point; "" for nothing."""
        part, number_ = self._part(at)
        return part.names[number_] if part.names else ""

    def nearest(
        self, panel: int, scale: Scale, place: tuple[float, float], reads: str
    ) -> int | None:
        """The point of a plot that a place in px is at, as a chart reads; None for none."""
        mine = np.flatnonzero(self.panel == panel)
        if not len(mine):
            return None
        x, y = scale.pixels(self.x[mine], self.y[mine])
        aside, off = np.abs(x - place[0]), np.abs(y - place[1])
        if reads == "x":
            return int(mine[np.lexsort((off, aside))[0]])
        far = np.hypot(aside, off)
        return int(mine[np.argmin(far)]) if far.min() <= NEAR else None

    def names(
        self, panel: int, scale: Scale, chosen: int | None, asked: set[int | None]
    ) -> list[Note]:
        """The names of the chosen point, of those asked for, and of some that stand apart."""
        mine = np.flatnonzero(self.panel == panel)
        if not len(mine) or not any(part.names for part in self.parts):
            return []
        first = [one for one in mine.tolist() if one == chosen or one in asked]
        lone: list[int] = []
        if len(mine) <= CROWD:
            x, y = scale.pixels(self.x[mine], self.y[mine])
            far = np.sort(np.hypot(x[:, None] - x, y[:, None] - y), axis=1)
            second = far[:, min(2, len(mine) - 1)]  # to its second neighbour
            lone = mine[np.argsort(-second, kind="stable")[:NAMED]].tolist()
        return [
            Note(
                self.name(one), ((float(self.x[one]), float(self.y[one])),),
                "mark_text" if one == chosen else "text" if one in asked else "secondary",
            )
            for one in dict.fromkeys([*first, *lone])
            if self.name(one)
        ]  # fmt: skip


# --- where words stand ----------------------------------------------------------------------------

Box = tuple[float, float, float, float]  # left, top, right, bottom in px


def place_notes(
    notes: Sequence[Note], scale: Scale, measure: Callable[[str], tuple[float, float]]
) -> list[tuple[Note, Box]]:
    """Each note in the box nearest to its places that meets no note before it; no note without one.

    measure: the width and height of words in px.
    """
    found: list[tuple[Note, Box]] = []
    for note in notes:
        for box in _boxes(note, scale, *measure(note.words)):
            left, top, right, bottom = box
            if not any(
                left < b[2] and b[0] < right and top < b[3] and b[1] < bottom for _, b in found
            ):
                found.append((note, box))
                break
    return found


def _boxes(note: Note, scale: Scale, wide: float, high: float) -> Iterator[Box]:
    """Every box in which a note might stand, the nearest to its places first."""
    right, bottom = scale.left + scale.width, scale.top + scale.height
    places = [tuple(map(float, scale.pixels(*place))) for place in note.places]
    for out in (6.0, 14.0, 26.0, 42.0):
        for x, y in places:
            if not (scale.left - 1 <= x <= right + 1 and scale.top - 1 <= y <= bottom + 1):
                continue
            for left in (x + out, x - wide / 2, x - out - wide):
                for middle in (y - out - 6, y, y + out + 6):
                    if (left, middle) == (x - wide / 2, y):  # on the place itself
                        continue
                    in_plot = min(max(left, scale.left), right - wide)
                    top = middle - high / 2
                    if scale.left <= in_plot and scale.top <= top and top + high <= bottom:
                        yield in_plot, top, in_plot + wide, top + high


__all__ = [
    "Axis", "Band", "Bars", "Chart", "Colour", "Entry", "Line", "Mark", "Note", "Part", "Plot",
    "Points", "Scale", "Slider", "Spots", "Values", "count", "number", "percent", "place_notes",
    "thinned",
]  # fmt: skip
