"""What stands below the maps: numbers over text, in low windows one of the two."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from hgviz.gui.compare.numbers import NumbersView
from hgviz.gui.compare.texts import TextsView
from hgviz.gui.controls import Segments, line
from hgviz.gui.views.base import View

HIGH, MIDDLE, LOW = 900, 760, 690  # px of the window's height
TEXTS = (190, 164, 140)  # px of the text: in high windows, below HIGH, below LOW
TURNS = (("numbers", "Numbers", ""), ("texts", "Text", ""))


class Below(QWidget):
    """Numbers and text. In low windows a bar says which of the two is there."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers, self.texts = NumbersView(), TextsView()
        self.turns = Segments(TURNS)
        self.turns.setAccessibleName("What stands below the maps")
        self.turns.chosen.connect(self._turn)
        self.bar = QWidget()
        self.bar.setProperty("kind", "pane")
        inside = QHBoxLayout(self.bar)
        inside.setContentsMargins(16, 4, 16, 2)
        inside.addWidget(self.turns)
        inside.addStretch(1)
        self.lines = (line(), line())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for one in (self.lines[0], self.bar, self.numbers, self.lines[1], self.texts):
            column.addWidget(one)
        self._low = False
        self.turns.choose("texts")
        self.respond(1600, 1000)

    @property
    def views(self) -> tuple[View, ...]:
        """Both."""
        return self.numbers, self.texts

    def respond(self, width: int, height: int) -> None:
        """The text gives way in low windows; in the lowest, one of the two does."""
        self._low = height < MIDDLE
        at = 0 if height >= HIGH else 1 if height >= LOW else 2
        self.texts.setFixedHeight(TEXTS[at])
        self._turn(self.turns.choice)

    def _turn(self, name: str) -> None:
        self.bar.setVisible(self._low)
        self.lines[1].setVisible(not self._low)
        self.numbers.setVisible(not self._low or name == "numbers")
        self.texts.setVisible(not self._low or name == "texts")


__all__ = ["Below"]
