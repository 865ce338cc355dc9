"""The maps of one head in A and in B, and the difference of the two."""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from hgviz.core import Task
from hgviz.gui.actions import ACTIONS
from hgviz.gui.controls import PaneHead
from hgviz.gui.views.base import View
from hgviz.session import Session

NOTHING = (
    "Nothing to compare with yet",
    "Put a second model, activation or text beside this one: two maps and their difference appear.",
)
ASK = (("compare_with", "Compare with…"),)


class CompareView(View):
    """A, B and A − B at equal size, with one cursor, one scale and one part on screen."""

    title = "Compare"
    lane = "map"
    icon: ClassVar[str] = "compare"
    needs: ClassVar[tuple[str, ...]] = (
        "capture", "beside", "selection", "hover", "display", "facts", "off",
    )  # fmt: skip
    empty = NOTHING
    empty_actions = ASK if any(one.name == "compare_with" for one in ACTIONS) else ()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.head = PaneHead("Head")
        self._seats = tuple(QHBoxLayout() for _ in range(2))
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.head)
        row = QHBoxLayout()
        for seat in self._seats:
            row.addLayout(seat, 1)
        column.addLayout(row)
        column.addStretch(1)

    def seat(self, a: QWidget, b: QWidget) -> None:
        """Put what names and chooses the sides over their maps."""
        for seat, one in zip(self._seats, (a, b), strict=True):
            seat.addWidget(one)

    def explain(self, words: str) -> None:
        """Say in the head how B differs from A."""
        self.head.note.say(words)

    def request(self, session: Session) -> Task[None] | None:
        """Nothing, until there are two."""
        return None

    def draw(self, result: None) -> None:
        """Nothing, until there are two."""
