"""What stands below the maps of the Compare page: numbers over text."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from hgviz.gui.compare_parts.numbers import NumbersView
from hgviz.gui.compare_parts.texts import TextsView
from hgviz.gui.widgets import line

HIGH = 900  # px of the window's height
TEXT, TEXT_LOW = 190, 164  # px of the text, and in windows lower than HIGH
NUMBERS = 760  # px of the window's height from which numbers are shown: below, maps need the room


class Below(QWidget):
    """The numbers of a head over the text."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers, self.texts = NumbersView(), TextsView()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self._line = line()
        for pane in (line(), self.numbers, self._line, self.texts):
            column.addWidget(pane)

    @property
    def views(self) -> tuple[NumbersView, TextsView]:
        """Both."""
        return self.numbers, self.texts

    def respond(self, width: int, height: int) -> None:
        """Lower the text in low windows, and leave out the numbers in the lowest."""
        self.numbers.setVisible(height >= NUMBERS)
        self._line.setVisible(height >= NUMBERS)
        self.texts.setFixedHeight(TEXT if height >= HIGH else TEXT_LOW)
