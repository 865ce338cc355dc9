"""How a strip of text is painted: cells coloured by weight, one letter to a slot, and words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen

from hgviz import palettes
from hgviz.core import Capture, Display, Floats, Integers, Prompt
from hgviz.gui import sentences, theme
from hgviz.gui.ink import faint
from hgviz.gui.language import tr
from hgviz.gui.sentences import name
from hgviz.gui.views import words
from hgviz.gui.views.journey import ASIDE, Course, Strip
from hgviz.gui.views.stages import Stage
from hgviz.gui.views.tablerow import Table
from hgviz.gui.views.trace import Trace

LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
SMALL = 40  # px: the thumbnail of a stage
LARGEST = 16  # px: the largest letters


@dataclass(frozen=True, slots=True)
class Story:
    """Everything the picture shows."""

    capture: Capture
    way: tuple[Stage, ...]
    course: Course
    trace: Trace
    display: Display
    noun: str
    prompts: tuple[Prompt, ...]

    @property
    def seen(self) -> int:
        """How many tokens can have had a part in the answer."""
        layers = [one for one in self.capture.spec.layers if one.level == self.trace.level]
        causal = all(one.causal for one in layers if one.role == "self")
        return self.trace.token + 1 if causal else len(self.prompts[self.trace.level])

    def head_box(self, number: int) -> QRectF:
        """Where the head of a stage is shown: right of the strip, or over its right end."""
        strip, right = self.course.strips[number], self.course.right
        if self.way[number].beside:
            return QRectF(
                strip.right + ASIDE + 10, (strip.top + strip.bottom - SMALL) / 2, SMALL, SMALL
            )
        return QRectF(strip.right - 220, strip.top - 54, right - strip.right + 220, 46)


class StripPen:
    """Paints strips and words of a story."""

    def __init__(self, painter: QPainter, story: Story) -> None:
        self.painter, self.story = painter, story
        self.theme = theme.current()

    def strip(self, strip: Strip, weights: Floats | None, seen: int, signed: bool) -> None:
        """Cells that are seen in the colour of their weight, the rest grey; then the letters."""
        grounds = self._grounds(strip, weights, seen, signed)
        gap = 1.0 if strip.cells and strip.cells[0][2] - strip.cells[0][1] > 12 else 0.0
        spans = self.story.capture.spans[strip.level]
        inks = palettes.readable(grounds)
        font = self._letter_font(strip)
        metrics = QFontMetricsF(font)
        faded: dict[int, tuple[QPen, QPen]] = {}
        self.painter.setFont(font)
        for number, (position, left, right) in enumerate(strip.cells):
            known = weights is not None and position < seen
            ground = QColor(*map(int, grounds[number])) if known else self.theme.unseen
            area = QRectF(left, strip.top, right - left - (gap if known else 0), strip.high)
            self.painter.fillRect(area, ground)
            ink = QColor(*map(int, inks[number])) if known else self.theme.secondary
            faded[ink.rgb()] = faded.get(ink.rgb()) or (QPen(ink), QPen(faint(ink, 0.45)))
            start, end = (int(one) for one in spans[position])
            for token in range(start, end):
                self._letter(strip, token, (left, right), faded[ink.rgb()], metrics)

    def _grounds(
        self, strip: Strip, weights: Floats | None, seen: int, signed: bool
    ) -> palettes.Colours:
        shown_here = np.zeros(len(strip.cells), np.float32)
        for number, (position, _, _) in enumerate(strip.cells):
            if weights is not None and position < min(seen, len(weights)):
                shown_here[number] = weights[position]
        display = self.story.display
        most = float(np.abs(weights).max(initial=0)) if weights is not None else 1.0
        table = palettes.colours(palettes.suited(display.palette, signed), self.theme.dark)
        limits = palettes.limits_of(-most if signed else 0.0, most, signed)
        return palettes.paint(palettes.place(shown_here, limits, display.scale, signed), table)

    def _letter_font(self, strip: Strip) -> QFont:
        font = theme.mono()
        font.setPixelSize(max(theme.SMALLEST, min(LARGEST, int(strip.unit / 0.61))))
        return font

    def _letter(
        self,
        strip: Strip,
        token: int,
        cell: tuple[float, float],
        pens: tuple[QPen, QPen],
        metrics: QFontMetricsF,
    ) -> None:
        """One letter in the middle of its place; a space is faint."""
        left, right = strip.x(token), strip.x(token + 1)
        if right > cell[1] + 0.5 or left < cell[0] - 0.5:
            left, right = cell
        prompt = self.story.prompts[strip.level]
        text, said = prompt.label(token), name(prompt, token)
        if len(said) > 1:
            said = metrics.elidedText(said, Qt.TextElideMode.ElideRight, right - left)
        self.painter.setPen(pens[text == " "])
        x = (left + right - metrics.horizontalAdvance(said)) / 2
        y = strip.top + (strip.high + metrics.ascent() - metrics.descent()) / 2
        self.painter.drawText(QPointF(x, y), said)

    def own(self, strip: Strip, own: int) -> None:
        """Frame the cell of the letter itself."""
        cell = strip.cell(own)
        if cell is None:
            return
        self.painter.setBrush(Qt.BrushStyle.NoBrush)
        self.painter.setPen(QPen(self.theme.mark, 2.5))
        box = QRectF(cell[0], strip.top, cell[1] - cell[0], strip.high).adjusted(-1, -2, 1, 2)
        self.painter.drawRoundedRect(box, 4, 4)

    def word(self, x: float, y: float, said: str, font: QFont, colour: QColor) -> float:
        """Write a text; where it ends."""
        wide = QFontMetricsF(font).horizontalAdvance(said)
        self.write(QRectF(x, y, wide + 4, 18), said, font, colour)
        return x + wide

    def elided(self, said: str, font: QFont, room: float) -> str:
        """A text cut to a room."""
        return QFontMetricsF(font).elidedText(said, Qt.TextElideMode.ElideRight, max(0, room))

    def write(
        self, box: QRectF, said: str, font: QFont, colour: QColor, side: Qt.AlignmentFlag = LEFT
    ) -> None:
        """Write a text into a box."""
        self.painter.setFont(font)
        self.painter.setPen(colour)
        self.painter.drawText(box, side, said)


def width(font: QFont, said: str) -> float:
    """How wide a text is in a font."""
    return QFontMetricsF(font).horizontalAdvance(said)


def of_story(story: Story) -> Table:
    """One row for each stage of a letter's way with its strongest keys, then all of them
    together."""
    capture, most = story.capture, max((len(one.top) for one in story.trace.looks), default=0)
    numbered = (
        (tr("Key {number}", number=one + 1), tr("Weight {number}", number=one + 1))
        for one in range(most)
    )
    heads = [tr("Stage"), tr("What happens"), tr("Level"), tr("Head"), tr("Role")]
    out = [[*heads, *(one for pair in numbered for one in pair)]]
    for stage, look in zip(story.way, story.trace.looks, strict=True):
        known = [str(stage.number), stage.title(capture.spec, story.noun)]
        known += [words.level(capture.spec, stage.level), look.name, look.role]
        from_layers = [look.head.layer] if look.head is not None else stage.layers[:1]
        spans = [capture.key_spans(one) for one in from_layers]  # a stranger's map may have more
        out.append(known + _keys(story, stage.level, look.top, most, *spans))
    together = story.trace.together
    if together is not None:
        order = np.argsort(-together, kind="stable")[:most]
        top = [(int(key), float(together[key])) for key in order if together[key] > 0]
        level = story.trace.level
        all_of = [str(len(story.way) + 1), tr("All levels"), words.level(capture.spec, level)]
        out.append([*all_of, "", "", *_keys(story, level, top, most)])
    return out


def _keys(
    story: Story, level: int, top: Iterable[tuple[int, float]], most: int,
    spans: Integers | None = None,
) -> list[str]:  # fmt: skip
    """Glyph and weight of the strongest keys, as many cells as there are names. spans: what the
    keys stand for, where that is not the level's own."""
    cells, prompt = [], story.prompts[level]
    spans = story.capture.spans[level] if spans is None else spans
    for key, weight in top:
        start, end = (int(one) for one in spans[key])
        glyph = sentences.glyph(prompt, start, end) if start >= 0 else "∅"
        cells += [f"{key} {glyph}", repr(weight)]
    return cells + [""] * (2 * most - len(cells))
