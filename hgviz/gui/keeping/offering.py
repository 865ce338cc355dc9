"""Where the files opened last are offered: a menu, and a list on the empty page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QGridLayout, QMenu, QWidget

from hgviz.gui.keeping.recent import place_of
from hgviz.gui.language import tr
from hgviz.gui.samples import name_of
from hgviz.gui.widgets import Button, IconButton, Words, label, tip

if TYPE_CHECKING:
    from hgviz.session import Session

GONE = "not there any more"
FEW = 5  # files on the empty page
NAME = 240  # px: room for the name of one
ELIDED = Qt.TextElideMode.ElideMiddle


class RecentMenu:
    """Fills a menu with the files opened last, above the actions it has, each time it is opened.

    look: what has session.gone brought up to date.
    """

    def __init__(
        self, menu: QMenu, session: Session, look: Callable[[], None], chosen: Callable[[str], None]
    ) -> None:
        self._menu, self._session, self._chosen = menu, session, chosen
        self._own = menu.actions()
        self._line = menu.insertSeparator(self._own[0])
        self._files: list[QAction] = []
        menu.aboutToShow.connect(self.fill)
        menu.aboutToShow.connect(look)
        self.fill()

    def fill(self) -> None:
        """Offer what there is now; the first nine have a digit to press."""
        for one in self._files:
            self._menu.removeAction(one)
            one.deleteLater()
        self._files = []
        names = Counter(map(name_of, self._session.recent))
        for number, path in enumerate(self._session.recent, 1):
            name = name_of(path)
            name += f"   {place_of(path)}" if names[name] > 1 else ""
            name = name.replace("&", "&&")
            gone = f"   ({tr(GONE)})" if path in self._session.gone else ""
            action = QAction(f"{f'&{number}   ' if number < 10 else ''}{name}{gone}", self._menu)
            action.setToolTip(tip(path))
            action.triggered.connect(partial(self._chosen, path))
            self._menu.insertAction(self._line, action)
            self._files.append(action)
        self._menu.menuAction().setEnabled(bool(self._files))


class RecentList(QWidget):
    """The few files opened last, each a link; one that has gone says so and can be removed."""

    chosen = Signal(str)
    removed = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(1, 1)
        self._shown: object = None
        self.hide()

    def show_files(self, recent: tuple[str, ...], gone: frozenset[str]) -> None:
        """List them under a title; nothing at all where there are none."""
        shown = recent[:FEW], gone
        if shown == self._shown:
            return
        self._shown = shown
        while (item := self._grid.takeAt(0)) is not None:
            item.widget().hide()
            item.widget().deleteLater()
        self._grid.addWidget(label(tr("Opened last"), weight=600), 0, 0, 1, 3)
        for row, path in enumerate(recent[:FEW], 1):
            name = name_of(path)
            link = Button(name, "open", kind="link")
            link.setText(link.fontMetrics().elidedText(name, ELIDED, NAME))
            link.setAccessibleName(tr("Open {name}", name=name))
            link.setToolTip(tip(path))
            link.clicked.connect(partial(self.chosen.emit, path))
            self._grid.addWidget(link, row, 0)
            lost = path in gone
            words = Words(tr(GONE) if lost else place_of(path), kind="secondary")
            self._grid.addWidget(words, row, 1)
            if lost:
                cross = IconButton("close", tr("Remove {name} from the list", name=name))
                cross.clicked.connect(partial(self.removed.emit, path))
                self._grid.addWidget(cross, row, 2)
        self.setVisible(bool(recent))


__all__ = ["RecentList", "RecentMenu"]
