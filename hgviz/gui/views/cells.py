"""The text as cells: one per token, as wide as what it shows, and where the rows of levels lie."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Floats, HeadId, Integers, Prompt
from hgviz.gui import sentences

NARROWEST, WIDEST = 9.5, 16.0  # logical px for one letter: below it the text scrolls
FIRST, OTHERS, LEAST, GAP = 36, 26, 15, 6  # heights of rows, px between them
SPECIAL = 6  # letters of a special token that are shown


@dataclass(frozen=True, slots=True)
class Glyph:
    """What is written over the cells of tokens first..last-1; a character may have several."""

    text: str
    first: int
    last: int
    space: bool = False
    special: bool = False
    leftwards: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One row of the strip: what one head gives the cells of one level.

    spans (cells, 2): their tokens. weights (cells,) or None where no query is chosen; seen
    (cells,). chosen: the cell of the query. head None: the text alone. off: switched off.
    """

    level: str
    head: HeadId | None
    spans: Integers
    weights: Floats | None = None
    seen: NDArray[np.bool_] | None = None
    chosen: int | None = None
    key: int | None = None
    limits: tuple[float, float] = (0.0, 1.0)
    signed: bool = False
    off: bool = False

    @property
    def null(self) -> bool:
        """Whether its first cell stands for no token: the null group."""
        return len(self.spans) > 0 and bool(self.spans[0, 1] < 0)

    def cell(self, token: int) -> int | None:
        """The cell whose tokens include a token."""
        at = int(np.searchsorted(self.spans[:, 1], token, side="right"))
        return at if at < len(self.spans) and self.spans[at, 0] <= token else None


@dataclass(frozen=True, slots=True, eq=False)
class Ruler:
    """Where tokens lie across: edges (tokens + 1,) in letters, width px per letter, from left."""

    edges: Floats
    width: float
    room: float
    offset: float = 0.0

    @classmethod
    def fitted(cls, prompt: Prompt, room: float, offset: float = 0.0) -> Ruler:
        """All of a text in the room, or as much of it as stays readable."""
        sizes = widths(prompt)
        edges = np.concatenate([[0.0], np.cumsum(sizes)])
        width = room / max(1.0, float(edges[-1]))
        out = cls(edges, min(WIDEST, max(NARROWEST, width)), room)
        return out.moved(offset)

    @property
    def length(self) -> float:
        """Px of the whole text."""
        return float(self.edges[-1]) * self.width

    @property
    def scrolls(self) -> bool:
        """Whether there is more than the room shows."""
        return self.length > self.room + 0.5

    def moved(self, offset: float) -> Ruler:
        """Scrolled to an offset, as far as there is text."""
        most = max(0.0, self.length - self.room)
        return Ruler(self.edges, self.width, self.room, max(0.0, min(offset, most)))

    def turned(self, turns: float) -> Ruler:
        """Scrolled by turns of the wheel, 8 letters each."""
        return self.moved(self.offset - turns * 8 * self.width)

    def centred(self, part: float) -> Ruler:
        """Scrolled to have in its middle a part of the text, from 0 to 1."""
        return self.moved(part * self.length - self.room / 2)

    def x(self, token: int) -> float:
        """The left edge of a token."""
        return float(self.edges[token]) * self.width - self.offset

    def token(self, x: float) -> int | None:
        """The token at a place."""
        if not 0 <= x < min(self.room, self.length - self.offset):
            return None
        at = int(np.searchsorted(self.edges, (x + self.offset) / self.width, side="right")) - 1
        return min(at, len(self.edges) - 2)

    def shown(self) -> tuple[int, int]:
        """The tokens on screen, half-open."""
        first = int(np.searchsorted(self.edges, self.offset / self.width, side="right")) - 1
        last = int(np.searchsorted(self.edges, (self.offset + self.room) / self.width))
        return max(0, first), min(last, len(self.edges) - 1)

    def around(self, token: int) -> Ruler:
        """Scrolled just as far as it takes to see a token and what is near it."""
        margin = min(6 * self.width, self.room / 4)
        left, right = self.x(token), self.x(token + 1)
        if left < margin:
            return self.moved(self.offset + left - margin)
        if right > self.room - margin:
            return self.moved(self.offset + right - self.room + margin)
        return self


@dataclass(frozen=True, slots=True)
class Rows:
    """Where the rows lie: (top, height) of each, the height of the overview above them, and
    (top, height) of the lane between."""

    tops: tuple[tuple[int, int], ...] = field(default=())
    overview: int = 0
    lane: tuple[int, int] = (0, 0)

    @classmethod
    def fitted(cls, count: int, room: int, scrolls: bool, lane: int = 0) -> Rows:
        """So many rows in a room; they shrink alike, the first stays the largest. lane: px."""
        overview = 8 if scrolls else 0
        gap = GAP if count <= 4 else 3
        left = room - lane - (overview + gap if overview else 0) - gap * max(0, count - 1)
        wanted = FIRST + OTHERS * (count - 1)
        scale = min(1.0, left / max(1, wanted))
        heights = [max(LEAST, int(scale * (OTHERS if n else FIRST))) for n in range(count)]
        top, tops = (overview + gap if overview else 0) + lane, []
        above = top - lane
        for height in heights:
            tops.append((top, height))
            top += height + gap
        return cls(tuple(tops), overview, (above, lane))

    def at(self, y: float) -> int | None:
        """The row at a height."""
        for number, (top, height) in enumerate(self.tops):
            if top <= y < top + height:
                return number
        return None


def widths(prompt: Prompt) -> NDArray[np.float64]:
    """(tokens,) letters of room for each token: 1, or what a piece of several needs."""
    sizes = np.where(prompt.spans[:, 0] >= 0, prompt.spans[:, 1] - prompt.spans[:, 0], 0)
    if not len(sizes) or sizes.max() <= 1:
        sizes = np.ones(len(prompt.spans))
    else:
        sizes = np.maximum(sizes, 1) + 1.0
    for at in np.flatnonzero(prompt.spans[:, 0] < 0):
        sizes[at] = min(SPECIAL, len(_special(prompt.pieces[at]))) + 1.0
    return sizes.astype(np.float64)


def glyphs(prompt: Prompt, first: int, last: int) -> list[Glyph]:
    """What is written over tokens first..last-1: a character of several bytes once."""
    out = []
    first = _back_to_start(prompt, first)
    at = first
    while at < last:
        end = at + 1
        start = prompt.spans[at, 0]
        if start < 0:
            name = sentences.shown(_special(prompt.pieces[at]), SPECIAL)
            out.append(Glyph(name, at, end, special=True))
            at = end
            continue
        while end < len(prompt.spans) and (prompt.spans[end] == prompt.spans[at]).all():
            end += 1
        label = prompt.words(at, end)
        turned = any(unicodedata.bidirectional(one) in ("R", "AL") for one in label)
        text = sentences.shown(label)
        out.append(Glyph(text, at, end, space=label == " ", leftwards=turned))
        at = end
    return out


def _special(piece: str) -> str:
    """The name of a special token; of slots and states, as their row is named, the number."""
    return piece.removeprefix("slot ").removeprefix("state ")


def _back_to_start(prompt: Prompt, token: int) -> int:
    """The first token of the character a token is a part of."""
    while (
        token > 0
        and prompt.spans[token, 0] >= 0
        and (prompt.spans[token] == prompt.spans[token - 1]).all()
    ):
        token -= 1
    return token
