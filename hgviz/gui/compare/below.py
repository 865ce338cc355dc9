"""What stands below the maps: numbers over text, in low windows one of the two."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from hgviz.gui.compare.numbers import NumbersView
from hgviz.gui.compare.texts import TextsView
from hgviz.gui.controls import Segments, line
from hgviz.gui.language import tr

HIGH, MIDDLE, LOW = 900, 760, 690  # px of the window's height
TEXTS = (190, 164, 158)  # px of the text: in high windows, below HIGH, below LOW
TURNS = (("numbers", "Numbers", ""), ("texts", "Text", ""))


class Below(QWidget):
    """Numbers and text. In low windows the head of either has tabs that say which is there."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers, self.texts = NumbersView(), TextsView()
        turns = [(name, tr(words), icon) for name, words, icon in TURNS]
        self.tabs = (Segments(turns), Segments(turns))  # the same on both
        self._heads = (self.numbers.head, self.texts.head)
        for head, tabs in zip(self._heads, self.tabs, strict=True):
            head.add_beside_title(tabs)
            tabs.setAccessibleName(tr("What stands below the maps"))
            tabs.chosen.connect(self.show_part)
        self.line = line()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for one in (line(), self.numbers, self.line, self.texts):
            column.addWidget(one)
        self._low, self._part = False, "texts"
        self.respond(1600, 1000)

    @property
    def views(self) -> tuple[NumbersView, TextsView]:
        """Both."""
        return self.numbers, self.texts

    def respond(self, width: int, height: int) -> None:
        """The text gives way in low windows; in the lowest, one of the two does."""
        self._low = height < MIDDLE
        at = 0 if height >= HIGH else 1 if height >= LOW else 2
        self.texts.setFixedHeight(TEXTS[at])
        self._lay_out()

    def show_part(self, name: str) -> None:
        """Show the numbers or the text, where there is no room for both."""
        typed = self.isAncestorOf(QApplication.focusWidget() or self)
        self._part = name
        self._lay_out()
        if typed:  # the keyboard stays on the tab that was pressed
            self.tabs[name == "texts"].setFocus()

    def _lay_out(self) -> None:
        self.numbers.setVisible(not self._low or self._part == "numbers")
        self.texts.setVisible(not self._low or self._part == "texts")
        for head, tabs in zip(self._heads, self.tabs, strict=True):
            head.title.setVisible(not self._low)
            tabs.setVisible(self._low)
            tabs.choose(self._part)
        self.line.setVisible(not self._low)


__all__ = ["Below"]
