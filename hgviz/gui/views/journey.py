"""The way of one letter through all levels: where the strips of its stages stand. No Qt.

A strip is the text at one resolution. x is counted in the characters that tokens are written
with, so that letters and word pieces are laid out alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, Integers
from hgviz.gui.views.stages import Stage
from hgviz.gui.views.words import coarseness

TOP, ARCS, HIGH, ASIDE = 16, 62, 32, 8  # above all; for arcs; a strip; its silhouette's margin
PITCH, PITCH_MOST = 142, 156  # from stage to stage
TOGETHER = 156  # the last row and its words
NARROWER, NARROWEST = 0.84, 0.6  # how strips shrink from level to level
WIDEST = 15.0  # px a character
SHORT = 620  # px: the words over a strip may take this much even where the text is short
THREAD = 14.0  # px: the thread at most, where a cell holds a whole word
PAST = 0.7  # of a window that is too short for the text lies before the letter
LONGEST = 12  # characters of a word piece that are shown


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

    right: where the words over a strip end at the latest. cells: left and right of the letter at
    each stage; where the strip is of another text, of the stage before.
    """

    width: float
    height: float
    right: float
    shown: tuple[int, int]
    strips: tuple[Strip, ...]
    crossings: tuple[Crossing, ...]
    together: Strip
    own: tuple[int | None, ...]
    outline: tuple[tuple[float, float], ...]
    cells: tuple[tuple[float, float] | None, ...] = ()


def char_edges(capture: Capture, level: int = 0) -> NDArray[np.float64]:
    """(tokens + 1,): where each token begins, in characters; letters are one wide."""
    prompt = capture.prompt_of(level)
    if prompt.unit == "letter":
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
    steps = [coarseness(levels[one.level]) for one in way]
    depths = sorted({*steps})
    scales = [max(NARROWEST, NARROWER ** depths.index(one)) for one in steps]
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
        part = (edges, shown, per_char * scale)
        if stage.away:
            part = _other(capture, stage, token, wide, room)
        strips.append(_strip(capture, stage.level, *part[:2], middle, top, wide * scale, part[2]))
    below = strips[-1].bottom + 44
    home = way[0].own if way[0].beside else _finest(capture)
    last = _strip(capture, home, edges, shown, middle, below, wide, per_char)
    own = tuple(None if s.away else capture.position(s.level, token) for s in way)
    cells = _own_cells(strips, own)
    crossings = tuple(
        _cross(capture, strips[n], strips[n + 1], own[n], own[n + 1], token)
        if not way[n].beside
        else _straight(strips[n], strips[n + 1], cells[n], cells[n + 1])
        for n in range(len(way) - 1)
    )
    height = max(room.height, strips[-1].bottom + TOGETHER)
    right = max(last.right, min(room.left + wide, last.left + SHORT))
    return Course(
        room.width, height, right, shown, tuple(strips), crossings, last, own,
        _outline(strips), cells,
    )  # fmt: skip


def _other(
    capture: Capture, stage: Stage, token: int, wide: float, room: Room
) -> tuple[NDArray[np.float64], tuple[int, int], float]:
    """Edges, tokens shown and the width of a character in a strip of another text."""
    edges = char_edges(capture, stage.level)
    tokens, mine = len(edges) - 1, len(capture.prompt_of(stage.own))
    near = min(max(0, tokens - 1), token * tokens // max(1, mine))
    shown = window(edges, near, wide / room.char, 1)
    return edges, shown, min(WIDEST, wide / max(1.0, edges[shown[1]] - edges[shown[0]]))


def _own_cells(
    strips: Sequence[Strip], own: Sequence[int | None]
) -> tuple[tuple[float, float] | None, ...]:
    """Where the letter is at each stage; beside a strip of another text where it was before."""
    found: list[tuple[float, float] | None] = []
    for strip, position in zip(strips, own, strict=True):
        before = found[-1] if found else None
        found.append(before if position is None else strip.cell(position))
    return tuple(found)


def _straight(
    above: Strip, below: Strip, mine: tuple[float, float] | None, next_: tuple[float, float] | None
) -> Crossing:
    """Between two strips of one resolution: a thread no wider than it need be."""
    if mine is None or next_ is None:
        return Crossing(above.bottom, below.top, None, None, ())
    a, b = (_narrow(one) for one in (mine, next_))
    return Crossing(above.bottom, below.top, (*a, *b), None, ())


def _narrow(cell: tuple[float, float]) -> tuple[float, float]:
    half, middle = min(THREAD, cell[1] - cell[0]) / 2, sum(cell) / 2
    return middle - half, middle + half


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
    stride, shift = capture.spec.levels[level].stride, capture.spec.levels[level].shift
    if inside[0] == 0 and shift and stride and stride > end - start and len(inside) > 1:
        before = float(stride - (end - start))  # the zeros of the causal shift
    chars = before + float(edges[spans[inside[-1], 1]] - edges[first])
    unit = min(unit, wide / chars)
    left = middle - chars * unit / 2
    rights = left + (before + edges[spans[inside, 1]] - edges[first]) * unit
    lefts = np.concatenate([[left], rights[:-1]])
    cells = tuple(zip(map(int, inside), map(float, lefts), map(float, rights), strict=True))
    return Strip(level, left, top, HIGH, unit, before, first, edges, cells)


def _cross(
    capture: Capture,
    above: Strip,
    below: Strip,
    mine: int | None,
    next_: int | None,
    token: int,
) -> Crossing:
    upper, lower = (coarseness(capture.spec.levels[s.level]) for s in (above, below))
    top, bottom = above.bottom, below.top
    assert mine is not None and next_ is not None  # resolutions of one text
    a, b = above.cell(mine), below.cell(next_)
    if a is None or b is None:
        return Crossing(top, bottom, None, None, ())
    if upper < lower:
        start, end = (int(one) for one in capture.spans[below.level][next_])
        shown = max(start, above.first)
        thread = (above.x(shown), above.x(max(end, shown + 1)), *b)
        return Crossing(top, bottom, thread, None, _lines(capture, above, below, token, True))
    lines = _lines(capture, below, above, token, False) if upper > lower else ()
    back = _receivers(capture, above.level, below.level, mine) if upper > lower else range(0)
    found = [one for q in back if (one := below.cell(q))]
    others = (*a, found[0][0], found[-1][1]) if found else None
    reached = upper <= lower or next_ in back  # what was left out gets nothing back
    return Crossing(top, bottom, (*a, *b) if reached else None, others, lines)


def _receivers(capture: Capture, inner: int, outer: int, mine: int) -> range:
    """All positions that a shortened one goes back to."""
    upper, lower = (capture.spec.levels[one].stride for one in (inner, outer))
    if upper and lower:
        times, apart = upper // lower, capture.spec.levels[inner].apart
        first = (mine - apart) * times + apart
        return range(max(0, first), first + times)
    ends = capture.spans[inner][:, 1]  # a segment is read from its last token on
    stop = int(ends[mine + 1]) - 1 if mine + 1 < len(ends) else len(capture.spans[outer])
    return range(max(0, int(ends[mine]) - 1), stop)


def _lines(
    capture: Capture, outer: Strip, inner: Strip, token: int, inward: bool
) -> tuple[tuple[float, float, bool], ...]:
    """Which positions meet: x above, x below, and whether the letter can know of it.

    Going in a position ends where its newest token ends; going out it begins at the first token
    that receives it, which is later by the causal shift.
    """
    spans, level = capture.spans[inner.level], capture.spec.levels[inner.level]
    stride, apart = level.stride, level.apart
    every = -(-len(inner.cells) * 6 // max(1, int(inner.right - inner.left)))
    out = []
    for position, left, right in inner.cells[:: max(1, every)]:
        end = int(spans[position, 1])
        at = end if inward else end - 1
        if not inward and stride is not None:
            at = max(0, (position - apart) * stride + apart)
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
