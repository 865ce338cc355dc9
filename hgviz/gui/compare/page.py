"""The Compare page: the maps of A and B and what lies between them, numbers and text below."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from hgviz.gui.compare.maps import CompareView
from hgviz.gui.views.base import View


class ComparePage(QWidget):
    """A, B and A − B over what numbers and text say of both."""

    def __init__(self) -> None:
        super().__init__()
        self.maps = CompareView()
        self.below = QVBoxLayout()
        self.below.setContentsMargins(0, 0, 0, 0)
        self.below.setSpacing(0)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.maps, 1)
        column.addLayout(self.below)
        self.setFocusProxy(self.maps)

    @property
    def views(self) -> tuple[View, ...]:
        """Every view of the page; F6 walks them in this order."""
        return (self.maps,)

    def respond(self, width: int, height: int) -> None:
        """The maps make room by themselves."""
