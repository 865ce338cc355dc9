"""Where segments of unequal length end: marks over the text, and what belongs to no segment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from hgviz.analysis.texts import ends_of
from hgviz.core import Capture, Integers, Prompt
from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.views import ink, naming, words

LANE = 12  # px above the text, for the marks; a click there moves them
HALF, HIGH = 4.0, 6.0  # px: of a mark
NONE_YET = "in no segment yet"
HINTS = {
    "kept": "A segment ends {at}: click to join it to the next",
    "added": "A segment ends {at}, where the model has no end: click to take it away",
    "gone": "The model ends a segment {at}: click to have it back",
    "": "Click to end a segment {at}",
}


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """The tokens that close a segment, each (marks,) in order: kept as the model has them, added
    to these, and gone: where the model has one, and there is none. own: the model's are known."""

    kept: Integers
    added: Integers
    gone: Integers
    own: bool

    @property
    def moved(self) -> bool:
        """Whether any is not where the model has it."""
        return bool(len(self.added) or len(self.gone))

    def at(self, token: int) -> str:
        """kept, added, gone; "" where nothing ends."""
        found = (("kept", self.kept), ("added", self.added), ("gone", self.gone))
        return next((name for name, ends in found if token in ends), "")

    def said(self) -> str:
        """12 segments, as the model has them; 13 segments: 2 ends added, 1 taken away."""
        many = words.counted(len(self.kept) + len(self.added), "segment")
        if not self.own:
            return tr("{segments}, as they were given", segments=many)
        if not self.moved:
            return tr("{segments}, as the model has them", segments=many)
        added, gone = (words.counted(len(one), "end") for one in (self.added, self.gone))
        if not len(self.gone):
            return tr("{segments}: {ends} added", segments=many, ends=added)
        if not len(self.added):
            return tr("{segments}: {ends} taken away", segments=many, ends=gone)
        return tr("{segments}: {ends} added, {gone:,} taken away", segments=many, ends=added,
                  gone=len(self.gone))  # fmt: skip

    def legend(self) -> Iterator[str]:
        """What the marks mean."""
        yield tr("▾ A segment ends. Click above the text, or press S, to set or take one.")
        if len(self.added):
            yield tr("Blue: added.")
        if len(self.gone):
            yield tr("Hollow: the model's own, taken away.")


def marks_of(capture: Capture, own: Capture | None) -> Marks | None:
    """The marks of a capture beside those of the one between the model's own boundaries; None
    where no segments differ in length."""
    ends = ends_of(capture)
    if ends is None:
        return None
    found = None if own is None else ends_of(own)
    there = ends if found is None else found

    def ordered(some: frozenset[int]) -> Integers:
        return np.array(sorted(some), np.int64)

    return Marks(
        ordered(ends & there), ordered(ends - there), ordered(there - ends), found is not None
    )


class Place(NamedTuple):
    """Where marks are drawn. x: the right edge of a token; lane and row: top and height of the
    marks and of the text; foot: where their lines end; shown: the tokens on screen."""

    x: Callable[[int], float]
    lane: tuple[float, float]
    row: tuple[float, float]
    foot: float
    shown: tuple[int, int]


def draw(painter: QPainter, marks: Marks, where: Place, pointed: int | None = None) -> None:
    """Every mark on screen; pointed: the token after which a click would set or take one."""
    now = theme.current()
    first, last = where.shown
    kinds = ((marks.gone, now.secondary), (marks.kept, now.text), (marks.added, now.press))
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for ends, colour in kinds:
        gone = ends is marks.gone
        for token in ends[(ends >= first - 1) & (ends < last)].tolist():
            _mark(painter, where, token, colour, gone, token == pointed)
    if pointed is not None and not marks.at(pointed):
        _head(painter, where, pointed, ink.faint(now.press, 0.5), filled=True)
    painter.restore()


def _mark(
    painter: QPainter, where: Place, token: int, colour: QColor, gone: bool, pointed: bool
) -> None:
    x, top = where.x(token) - 0.5, where.row[0] - 1
    style = Qt.PenStyle.DotLine if gone else Qt.PenStyle.SolidLine
    for pen in (QPen(theme.current().pane, 4), QPen(colour, 1.5 if gone else 2, style)):
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        painter.setPen(pen)
        painter.drawLine(QPointF(x, top), QPointF(x, where.foot))
    _head(painter, where, token, theme.current().press if pointed else colour, filled=not gone)


def _head(painter: QPainter, where: Place, token: int, colour: QColor, filled: bool) -> None:
    x, bottom = where.x(token) - 0.5, where.lane[0] + where.lane[1] - 1
    painter.setPen(QPen(colour, 1.2))
    painter.setBrush(colour if filled else Qt.BrushStyle.NoBrush)
    painter.drawPolygon(
        QPolygonF([
            QPointF(x - HALF, bottom - HIGH), QPointF(x + HALF, bottom - HIGH), QPointF(x, bottom)
        ])
    )  # fmt: skip


def hint(marks: Marks, prompt: Prompt, token: int) -> str:
    """What is there, and what a click would do."""
    name = naming.quoted(naming.name(prompt, token))
    at = tr("after {name}, {unit} {number:,}", name=name, unit=tr(prompt.unit), number=token)
    return tr(HINTS[marks.at(token)], at=at)


def nobody(painter: QPainter, box: QRectF, ratio: float) -> None:
    """What comes after the last segment: hatched, and said where there is room."""
    now = theme.current()
    ink.unseen(painter, box, ratio)
    font = theme.font(0.85)
    painter.setFont(font)
    said = tr(NONE_YET)
    if painter.fontMetrics().horizontalAdvance(said) + 8 <= box.width():
        painter.setPen(now.secondary)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, said)


__all__ = ["LANE", "Marks", "Place", "draw", "hint", "marks_of", "nobody"]
