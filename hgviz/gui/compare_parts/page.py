"""The Compare page: the maps of A and B and what lies between them, numbers and text below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from hgviz.gui.compare import CompareView
from hgviz.gui.compare_parts.below import Below
from hgviz.gui.sides import Sides
from hgviz.gui.view import View

if TYPE_CHECKING:
    from hgviz.gui.compare_parts.commands import CompareCommands


class ComparePage(QWidget):
    """A, B and A − B over what numbers and text say of both."""

    def __init__(self) -> None:
        super().__init__()
        self.maps, self.sides, self.below = CompareView(), Sides(), Below()
        self.maps.seat(self.sides.a, self.sides.b)
        self.sides.explained.connect(self.maps.explain)
        self.sides.paired.connect(self.below.setVisible)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.sides)
        column.addWidget(self.maps, 1)
        column.addWidget(self.below)

    @property
    def views(self) -> tuple[View, ...]:
        """Every view of the page; F6 walks them in this order."""
        return (self.maps, *self.below.views, self.sides)

    def join(self, commands: CompareCommands) -> None:
        """Have what people do here done."""
        sides = self.sides
        sides.more = commands.opened_before
        sides.side.connect(commands.choose_side)
        sides.activation.connect(commands.choose_a)
        sides.wanted.connect(commands.ask_side)
        sides.folder.connect(commands.ask_model)
        sides.stopped.connect(commands.comparing.stop)

    def take_focus(self) -> bool:
        """The keyboard goes to what the page is about."""
        return self.maps.take_focus()

    def respond(self, width: int, height: int) -> None:
        """The maps make room by themselves."""
        self.below.respond(width, height)
