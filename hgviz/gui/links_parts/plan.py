"""Where everything lies: texts, links and numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFontMetricsF

from hgviz.gui import theme
from hgviz.gui.links_parts.scene import Scene
from hgviz.gui.links_parts.track import LONGEST

PAD = 16
HEAD = 26  # px of the line that says what the columns are
COLUMN = 60  # px of the numbers beside the keys
GAP = 8  # px between a text and its links
LEAST = 110  # px of links
WIDEST = 420
STUB = 18  # px of what says that a link goes on beyond what is in view
STUB_WIDE = 96


@dataclass(frozen=True, slots=True)
class Plan:
    """Of a viewport of width x height px: start and room px along the text; the text of each side
    between sides[0] and sides[1] across it, its links between ends, and numbers from there on,
    None where there are none; value: how far it is scrolled, up to most.
    """

    start: float
    room: float
    sides: tuple[tuple[float, float], tuple[float, float]]
    ends: tuple[float, float]
    numbers: float | None
    lengths: tuple[float, float]
    value: float
    scene: Scene

    @classmethod
    def of(cls, scene: Scene, width: float, height: float, value: float) -> Plan:
        """The plan of a scene."""
        lengths = scene.tracks[0].length, scene.tracks[1].length
        letter = QFontMetricsF(theme.mono(1.0)).horizontalAdvance("0")
        most = max(48.0, width * 0.26)
        wide = [
            min(most, min(LONGEST, int(one.letters.max(initial=3))) * letter + 14)
            for one in scene.tracks
        ]
        wide = [max(44.0, one) for one in wide]
        free = width - 2 * PAD - wide[0] - wide[1] - 2 * GAP - LEAST
        column = COLUMN if len(scene.strands) == 1 and free >= COLUMN else 0
        reach = min(WIDEST, free + LEAST - column)
        # what is left over stands at both ends
        spare = width - 2 * PAD - sum(wide) - 2 * GAP - reach - column
        left = PAD + max(0.0, spare) / 2
        first = left, left + wide[0]
        ends = first[1] + GAP, first[1] + GAP + reach
        second = ends[1] + GAP, ends[1] + GAP + wide[1]
        return cls(
            HEAD, height - HEAD, (first, second), ends, second[1] if column else None, lengths,
            value, scene,
        )  # fmt: skip

    @property
    def most(self) -> float:
        """How far it scrolls: as far as the longer of the two goes."""
        return max(0.0, max(self.lengths) + 8 - self.room)

    def scrolled(self, value: float) -> Plan:
        """The same, scrolled elsewhere."""
        return replace(self, value=value)

    def offset(self, side: int) -> float:
        """How far a side is scrolled; of two lengths, each is at the same part of its own."""
        over = max(0.0, self.lengths[side] + 8 - self.room)
        return self.value * over / self.most if self.most else 0.0

    def scroll_to(self, side: int, along: float) -> float:
        """How far to scroll so that a side begins at a place."""
        over = max(0.0, self.lengths[side] + 8 - self.room)
        return min(max(0.0, along), over) * self.most / over if over else 0.0

    def shown(self, side: int) -> tuple[int, int]:
        """The units of a side in view, half-open."""
        first = self.offset(side)
        return self.scene.tracks[side].within(first, first + self.room)

    def along(self, side: int, place: int) -> float:
        """The middle of a unit along the text, in px of the viewport."""
        return self.start + self.scene.tracks[side].middle(place) - self.offset(side)

    def box(self, side: int, place: int) -> QRectF:
        """Where a unit is written."""
        track, off = self.scene.tracks[side], self.start - self.offset(side)
        a, b = float(track.edges[place]) + off, float(track.edges[place + 1]) + off
        low, high = self.sides[side]
        return QRectF(low, a, high - low, b - a)

    def end(self, side: int, place: int) -> QPointF:
        """Where links meet a unit."""
        return QPointF(self.ends[side], self.along(side, place))

    def side_at(self, x: float, y: float) -> int | None:
        """Which text is at a place, with the numbers beside the keys."""
        if y < self.start:
            return None
        for side, (low, high) in enumerate(self.sides):
            if low - GAP <= x <= high + GAP:
                return side
        return 1 if x > self.sides[1][1] else 0 if x < self.sides[0][0] else None

    def stubs(self, scene: Scene) -> list[tuple[QRectF, int]]:
        """Where it is said that links go on beyond what is in view, and to which key."""
        found = []
        for before, place, *_ in scene.beyond(self.shown(1)):
            low, high = self.sides[1]
            y = self.start if before else self.start + self.room - STUB
            wide = max(STUB_WIDE, high - low)
            found.append((QRectF(low - GAP / 2, y, wide, STUB), place))
        return found
