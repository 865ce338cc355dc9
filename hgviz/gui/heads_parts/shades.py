"""Heads coloured by a metric: the choice, the numbers behind the colours, and their range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QRectF, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from hgviz import palettes
from hgviz.analysis.heads import HeadFacts, applying
from hgviz.core import HeadId
from hgviz.gui import theme
from hgviz.gui.heads_parts.metrics import explained, named
from hgviz.gui.language import tr
from hgviz.gui.views.words import measured
from hgviz.gui.widgets import Picker

MAPS = "Maps"
BAR, HIGH = 40, 10  # px of the ramp
ROOMY = 560  # px of pane from which on there is room for the ramp
NARROW = 400  # px of pane below which the choice is in the menu alone
WIDEST = 150  # px of the list of metrics
TITLE = "Colour heads by"


@dataclass(frozen=True, slots=True)
class Shades:
    """A metric of all heads that have it; label: what it is called."""

    metric: str
    label: str
    values: Mapping[HeadId, float]
    missing: int

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest."""
        return min(self.values.values()), max(self.values.values())

    def shares(self) -> dict[HeadId, float]:
        """Return each head's value as a share: 0 for the smallest, 1 for the largest."""
        low, high = self.ends
        over = high - low
        return {head: (v - low) / over if over else 0.5 for head, v in self.values.items()}

    def sentence(self, ends: bool = True) -> str:
        """Such as "0.09 to 1.00; clear: 24 without it"; ends False: the range is seen beside it."""
        low, high = (measured(self.metric, one) for one in self.ends)
        said = [tr("{low} to {high}", low=low, high=high)] if ends else []
        if self.missing:
            said.append(tr("clear: {n:,} without it", n=self.missing))
        return "; ".join(said)


def shades_of(facts: Mapping[HeadId, HeadFacts], metric: str, unit: str) -> Shades | None:
    """The numbers of a metric; None for none, or where no head has it."""
    values = {head: one.metrics[metric] for head, one in facts.items() if metric in one.metrics}
    if not values:
        return None
    return Shades(metric, named(metric, unit), values, len(facts) - len(values))


class ShadeBar(QWidget):
    """The list of metrics and, where there is room, the ramp of colours with its ends."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.picker = Picker()
        self.picker.setAccessibleName(tr(TITLE))
        self.picker.setToolTip(tr(TITLE))
        self.picker.addItem(tr(MAPS), "")
        self.picker.activated.connect(self._activated)
        self.ramp = Ramp()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.ramp)
        row.addWidget(self.picker)
        self._offered: tuple[tuple[str, str], ...] = (("", tr(MAPS)),)
        self.hide()

    @property
    def choices(self) -> tuple[tuple[str, str], ...]:
        """The names that can be chosen, with what they are called."""
        return self._offered

    def show_metrics(
        self, facts: Mapping[HeadId, HeadFacts], unit: str, now: Shades | None, palette: str
    ) -> None:
        """Offer what says something of these heads; mark what colours them."""
        names = applying(one.metrics for one in facts.values())
        offered = (("", tr(MAPS)), *((name, named(name, unit)) for name in names))
        with QSignalBlocker(self.picker):
            if offered != self._offered:
                self._offered = offered
                self.picker.clear()
                for name, title in offered:
                    self.picker.addItem(title, name)
                    why = explained(name, unit) if name else ""
                    self.picker.setItemData(
                        self.picker.count() - 1, why, Qt.ItemDataRole.ToolTipRole
                    )
            at = self.picker.findData(now.metric if now is not None else "")
            self.picker.setCurrentIndex(max(0, at))
        told = tr(TITLE)
        if now is not None:
            chosen = tr("Colour heads by: {metric}", metric=f"{now.label}, {now.sentence()}")
            told = "\n".join([chosen, explained(now.metric, unit)])
        self.picker.setToolTip(told)
        said = self.picker.fontMetrics().horizontalAdvance(self.picker.currentText())
        self.picker.setFixedWidth(min(WIDEST, said + 46))
        self.ramp.show_shades(now, palette)
        self.respond()

    @property
    def roomy(self) -> bool:
        """Whether the pane has room for the ramp, too."""
        return self._room >= ROOMY

    @property
    def _room(self) -> int:
        pane = self.parentWidget()
        return pane.width() if pane is not None else 0

    def respond(self) -> None:
        """As much as the pane has room for."""
        self.setVisible(len(self._offered) > 1 and self._room >= NARROW)
        self.ramp.setVisible(self.ramp.shades is not None and self.roomy)

    def _activated(self, at: int) -> None:
        self.chosen.emit(self.picker.itemData(at))


class Ramp(QWidget):
    """The colours of a palette from the smallest number to the largest."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedHeight(28)
        self.setMinimumWidth(BAR)
        self.shades: Shades | None = None
        self._palette = ""

    def show_shades(self, shades: Shades | None, palette: str) -> None:
        """Another metric or palette."""
        self.shades, self._palette = shades, palette
        if shades is not None:
            low, high = self._ends()
            metrics = self.fontMetrics()
            self.setFixedWidth(BAR + metrics.horizontalAdvance(low + high) + 12)
            self.setAccessibleName(f"{shades.label}, {shades.sentence()}")
        self.update()

    def _ends(self) -> tuple[str, str]:
        assert self.shades is not None  # asked for only where there are some
        low, high = (measured(self.shades.metric, one) for one in self.shades.ends)
        return low, high

    def paintEvent(self, event: QPaintEvent) -> None:
        """The smallest number, the colours, the largest."""
        if self.shades is None:
            return
        now = theme.current()
        table = palettes.colours(palettes.suited(self._palette, False), now.dark)
        row = np.ascontiguousarray(table[None])
        low, high = self._ends()
        side = Qt.AlignmentFlag.AlignVCenter
        with QPainter(self) as painter:
            painter.setFont(theme.font(0.85))
            painter.setPen(now.secondary)
            box = QRectF(self.rect())
            painter.drawText(box, Qt.AlignmentFlag.AlignLeft | side, low)
            painter.drawText(box, Qt.AlignmentFlag.AlignRight | side, high)
            metrics = painter.fontMetrics()
            left = metrics.horizontalAdvance(low) + 6
            right = self.width() - metrics.horizontalAdvance(high) - 6
            image = QImage(row.data, 256, 1, 768, QImage.Format.Format_RGB888)
            top = (self.height() - HIGH) / 2
            painter.drawImage(QRectF(left, top, right - left, HIGH), image)
