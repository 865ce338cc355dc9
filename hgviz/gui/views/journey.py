"""The way of one letter through all levels: its stages, and where their strips stand. No Qt.

A strip is the text at one resolution. x is counted in the characters that tokens are written
with, so that letters and word pieces are laid out alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, Integers, ModelSpec
from hgviz.gui.views import words
from hgviz.gui.views.silhouette import visits

Kind = Literal["first", "in", "waist", "out", "last", "flat"]

TOP, ARCS, HIGH, ASIDE = 16, 62, 32, 8  # above all; for arcs; a strip; its silhouette's margin
PITCH, PITCH_MOST = 142, 156  # from stage to stage
TOGETHER = 156  # the last row and its words
NARROWER, NARROWEST = 0.84, 0.6  # how strips shrink from level to level
WIDEST = 15.0  # px a character
SHORT = 620  # px: the words over a strip may take this much even where the text is short
GROUPS = 4  # stages of a model that has one resolution only
PAST = 0.7  # of a window that is too short for the text lies before the letter
LONGEST = 12  # characters of a word piece that are shown


@dataclass(frozen=True, slots=True)
class Stage:
    """A stay at one level: its layers, and the layers of resampling that lead into it."""

    number: int
    level: int
    layers: tuple[int, ...]
    entries: tuple[int, ...]
    kind: Kind

    def title(self, spec: ModelSpec, noun: str) -> str:
        """What happens here, in words."""
        many = words.number(spec.levels[self.level].stride or 0)
        become = f"{many.capitalize()} {noun}s become one"
        layers = words.listed(self.layers, "layer").capitalize()
        return {
            "first": f"Read every {noun}",
            "in": become,
            "waist": f"{become}: look far, cheaply",
            "out": f"Spread back to {many} {noun}s",
            "last": f"Back at every {noun}, with what was learnt",
            "flat": f"{layers}: read every {noun}" if self.number == 1 else f"{layers}: look again",
        }[self.kind]

    def note(self, spec: ModelSpec, positions: int) -> str:
        """Positions, layers and, going down, the cost."""
        said = f"{words.counted(positions, 'position')}, {words.listed(self.layers, 'layer')}"
        stride = spec.levels[self.level].stride or 1
        cheap = self.kind in ("in", "waist") and stride > 1
        return f"{said}, {words.part(stride**2)} of the cost" if cheap else said


def stages(spec: ModelSpec) -> tuple[Stage, ...]:
    """One stage per visit of a level that has layers; a flat model in a few groups of layers."""
    stays: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
    entries: tuple[int, ...] = ()
    for visit in visits(spec):
        if visit.entry is not None:
            entries += (visit.entry.index,)
        if visit.rows:
            stays.append((visit.level, tuple(one.index for one in visit.rows), entries))
            entries = ()
    if len({level for level, _, _ in stays}) == 1:
        level, layers, _ = stays[0]
        groups = [tuple(map(int, one)) for one in np.array_split(layers, min(GROUPS, len(layers)))]
        return tuple(Stage(n + 1, level, one, (), "flat") for n, one in enumerate(groups))
    strides = [spec.levels[level].stride or 0 for level, _, _ in stays]
    waist = strides.index(max(strides))
    return tuple(
        Stage(n + 1, level, layers, before, _kind(n, strides, waist))
        for n, (level, layers, before) in enumerate(stays)
    )


def _kind(number: int, strides: Sequence[int], waist: int) -> Kind:
    if strides[number] == max(strides):
        return "waist"
    if strides[number] == min(strides):
        return "first" if number < waist else "last"
    return "in" if number < waist else "out"


# --- the strips -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Strip:
    """The text at one resolution.

    cells: position, left and right of each that is shown. first: the token that x counts from,
    before: the characters that the first cell reaches out before it.
    """

    level: int
    left: float
    top: float
    high: float
    unit: float
    before: float
    first: int
    edges: NDArray[np.float64]
    cells: tuple[tuple[int, float, float], ...]

    @property
    def right(self) -> float:
        """Where the last cell ends."""
        return self.cells[-1][2] if self.cells else self.left

    @property
    def bottom(self) -> float:
        """Where the cells end."""
        return self.top + self.high

    def x(self, token: int) -> float:
        """Where a token begins."""
        return self.left + (self.before + self.edges[token] - self.edges[self.first]) * self.unit

    def cell(self, position: int) -> tuple[float, float] | None:
        """Left and right of a position; None where it is not shown."""
        if not self.cells:
            return None
        at = position - self.cells[0][0]
        return self.cells[at][1:] if 0 <= at < len(self.cells) else None

    def at(self, x: float, y: float) -> int | None:
        """The position under a point."""
        if not self.top <= y < self.bottom:
            return None
        return next((p for p, left, right in self.cells if left <= x < right), None)


@dataclass(frozen=True, slots=True)
class Crossing:
    """Between two stages: the thread as left and right at its top and bottom, and who else gets."""

    top: float
    bottom: float
    thread: tuple[float, float, float, float] | None
    others: tuple[float, float, float, float] | None
    lines: tuple[tuple[float, float, bool], ...]


@dataclass(frozen=True, slots=True)
class Room:
    """What the picture may take; char is the least width of a letter that can still be read."""

    width: float
    height: float
    left: float = 148
    right: float = 65
    char: float = 6.8


@dataclass(frozen=True, slots=True)
class Course:
    """The whole picture. shown: the tokens it shows. own: the letter's position at each stage.

    right: where the words over a strip end at the latest.
    """

    width: float
    height: float
    right: float
    shown: tuple[int, int]
    strips: tuple[Strip, ...]
    crossings: tuple[Crossing, ...]
    together: Strip
    own: tuple[int, ...]
    outline: tuple[tuple[float, float], ...]


def char_edges(capture: Capture) -> NDArray[np.float64]:
    """(tokens + 1,): where each token begins, in characters; letters are one wide."""
    prompt = capture.prompt
    if words.unit(prompt) == "letter":
        return np.arange(len(prompt) + 1, dtype=np.float64)
    wide = [min(LONGEST, max(1, len(prompt.label(t)))) + 1.0 for t in range(len(prompt))]
    return np.concatenate([[0.0], np.cumsum(wide)])


def window(edges: NDArray[np.float64], token: int, fits: float, unit: int) -> tuple[int, int]:
    """The tokens shown where not all fit: around the letter, most of them before it.

    It begins at a multiple of unit, so that no position is cut at any level.
    """
    tokens = len(edges) - 1
    if edges[-1] <= fits:
        return 0, tokens
    start = min(max(0.0, edges[token] - PAST * fits), edges[-1] - fits)
    first = int(np.searchsorted(edges, start)) // unit * unit
    last = int(np.searchsorted(edges, edges[first] + fits, side="right")) - 1
    return first, min(tokens, max(last, token + 1))


def lay(
    capture: Capture, way: Sequence[Stage], token: int, edges: NDArray[np.float64], room: Room
) -> Course:
    """Strips for every stage, narrower where the text is shorter, with the letter's own cells."""
    levels = capture.spec.levels
    depths = sorted({levels[one.level].stride or 0 for one in way})
    scales = [max(NARROWEST, NARROWER ** depths.index(levels[s.level].stride or 0)) for s in way]
    wide = max(80.0, room.width - room.left - room.right)
    unit = max((one.stride or 1 for one in levels), default=1)
    shown = window(edges, token, wide * min(scales) / room.char, unit)
    per_char = min(WIDEST, wide / max(1.0, edges[shown[1]] - edges[shown[0]]))
    free = room.height - TOP - TOGETHER - ARCS - HIGH
    pitch = min(PITCH_MOST, max(PITCH, free / max(1, len(way) - 1)))
    middle = room.left + wide / 2
    strips = []
    for number, (stage, scale) in enumerate(zip(way, scales, strict=True)):
        top = TOP + ARCS + number * pitch
        strips.append(
            _strip(capture, stage.level, edges, shown, middle, top, wide * scale, per_char * scale)
        )
    below = strips[-1].bottom + 44
    last = _strip(capture, _finest(capture), edges, shown, middle, below, wide, per_char)
    own = tuple(capture.position(stage.level, token) for stage in way)
    crossings = tuple(
        _cross(capture, strips[n], strips[n + 1], own[n], own[n + 1], token)
        for n in range(len(way) - 1)
    )
    height = max(room.height, strips[-1].bottom + TOGETHER)
    right = max(last.right, min(room.left + wide, last.left + SHORT))
    return Course(
        room.width, height, right, shown, tuple(strips), crossings, last, own, _outline(strips)
    )


def _finest(capture: Capture) -> int:
    return next((n for n, one in enumerate(capture.spec.levels) if one.stride == 1), 0)


def _strip(
    capture: Capture,
    level: int,
    edges: NDArray[np.float64],
    shown: tuple[int, int],
    middle: float,
    top: float,
    wide: float,
    unit: float,
) -> Strip:
    spans: Integers = capture.spans[level]
    first, last = shown
    inside = np.flatnonzero((spans[:, 0] >= 0) & (spans[:, 1] > first) & (spans[:, 1] <= last))
    if not len(inside):
        return Strip(level, middle, top, HIGH, unit, 0, first, edges, ())
    start, end = (int(one) for one in spans[inside[0]])
    before = float(edges[first] - edges[min(start, first)])
    stride = capture.spec.levels[level].stride
    if inside[0] == 0 and stride is not None and stride > end - start and len(inside) > 1:
        before = float(stride - (end - start))  # the zeros of the causal shift
    chars = before + float(edges[spans[inside[-1], 1]] - edges[first])
    unit = min(unit, wide / chars)
    left = middle - chars * unit / 2
    rights = left + (before + edges[spans[inside, 1]] - edges[first]) * unit
    lefts = np.concatenate([[left], rights[:-1]])
    cells = tuple(zip(map(int, inside), map(float, lefts), map(float, rights), strict=True))
    return Strip(level, left, top, HIGH, unit, before, first, edges, cells)


def _cross(
    capture: Capture, above: Strip, below: Strip, mine: int, next_: int, token: int
) -> Crossing:
    upper = capture.spec.levels[above.level].stride or 0
    lower = capture.spec.levels[below.level].stride or 0
    top, bottom = above.bottom, below.top
    a, b = above.cell(mine), below.cell(next_)
    if a is None or b is None:
        return Crossing(top, bottom, None, None, ())
    if upper < lower:
        start, end = (int(one) for one in capture.spans[below.level][next_])
        shown = max(start, above.first)
        thread = (above.x(shown), above.x(max(end, shown + 1)), *b)
        return Crossing(top, bottom, thread, None, _lines(capture, above, below, token, True))
    lines = _lines(capture, below, above, token, False) if upper > lower else ()
    return Crossing(top, bottom, (*a, *b), _others(a, below, mine, upper, lower), lines)


def _others(
    cell: tuple[float, float], below: Strip, mine: int, upper: int, lower: int
) -> tuple[float, float, float, float] | None:
    """All positions that a shortened one goes back to."""
    if not lower or upper <= lower:
        return None
    times = upper // lower
    found = [one for q in range(mine * times, (mine + 1) * times) if (one := below.cell(q))]
    return (*cell, found[0][0], found[-1][1]) if found else None


def _lines(
    capture: Capture, outer: Strip, inner: Strip, token: int, inward: bool
) -> tuple[tuple[float, float, bool], ...]:
    """Which positions meet: x above, x below, and whether the letter can know of it.

    Going in a position ends where its newest token ends; going out it begins at the first token
    that receives it, which is later by the causal shift.
    """
    spans, stride = capture.spans[inner.level], capture.spec.levels[inner.level].stride
    every = -(-len(inner.cells) * 6 // max(1, int(inner.right - inner.left)))
    out = []
    for position, left, right in inner.cells[:: max(1, every)]:
        at = int(spans[position, 1]) if inward or stride is None else position * stride
        if outer.cells and outer.first <= at < len(outer.edges):
            x = outer.x(at)
            if outer.left <= x <= outer.right + 1:
                ends = (x, right) if inward else (left, x)
                out.append((*ends, int(spans[position, 1]) <= token + 1))
    return tuple(out)


def _outline(strips: Sequence[Strip]) -> tuple[tuple[float, float], ...]:
    left: list[tuple[float, float]] = []
    right: list[tuple[float, float]] = []
    for one in strips:
        top, bottom = one.top - ASIDE, one.bottom + ASIDE
        left += [(one.left - ASIDE, top), (one.left - ASIDE, bottom)]
        right += [(one.right + ASIDE, top), (one.right + ASIDE, bottom)]
    return tuple(right + left[::-1])
