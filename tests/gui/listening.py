"""What a window says: the words of its widgets, of what it paints, and what has no translation."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from PySide6.QtCore import (
    QAbstractItemModel,
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QPoint,
    QPointF,
    Qt,
)
from PySide6.QtGui import QAction, QContextMenuEvent, QHelpEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QGroupBox,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QTabBar,
    QTextBrowser,
    QToolTip,
    QWidget,
)

from hgviz.gui import language

ROWS = 40  # of a list or table that are read
GRID = 4  # places across and down a picture that are pointed at
CODE = "hgviz/gui/"
TAG = re.compile(r"<[^>]*>")


class Listening:
    """Collects words by the file that says them: heard holds (file, words)."""

    def __init__(self, monkeypatch) -> None:
        self.heard: set[tuple[str, str]] = set()
        self.missed: set[tuple[str, str]] = set()
        paint, missing = QPainter.drawText, language._missing

        def drawn(painter, *given):
            self._hear(_caller(), *given)
            return paint(painter, *given)

        def shown(*given, **more):
            self._hear(_caller(), *given)

        def missed(text):
            if re.search("[A-Za-z]{2}", text):
                self.missed.add((_caller(), text))
            return missing(text)

        monkeypatch.setattr(QPainter, "drawText", drawn)
        monkeypatch.setattr(QToolTip, "showText", staticmethod(shown))
        monkeypatch.setattr(language, "_missing", missed)

    def look(self, window: QWidget) -> None:
        """Hear everything that stands on screen now, and paint it."""
        window.grab()
        for action in window.findChildren(QAction):
            self._hear(CODE + "actions.py", action.text(), action.toolTip())
        for one in (window, *window.findChildren(QWidget)):
            if isinstance(one, QMenu) or one.isVisible():
                self._hear(_file(one), *_words(one))

    def point(self, window: QWidget) -> None:
        """Point everywhere, ask for tooltips and menus, and hear what is said."""
        for one in window.findChildren(QWidget):
            if one.isVisible() and type(one).__module__.startswith("hgviz.gui"):
                for at in _places(one):
                    _send(one, at)
                self._menus(one)
        QApplication.processEvents()

    def menu(self, file: str, menu: QMenu) -> None:
        """Hear what a menu offers, and close it."""
        for action in menu.actions():
            self._hear(file, action.text(), action.toolTip())
        menu.close()

    def _menus(self, one: QWidget) -> None:
        middle = one.rect().center()
        event = QContextMenuEvent(
            QContextMenuEvent.Reason.Mouse, middle, one.mapToGlobal(middle)
        )  # fmt: skip
        QApplication.sendEvent(one, event)
        for menu in [top for top in QApplication.topLevelWidgets() if isinstance(top, QMenu)]:
            if menu.isVisible():
                self.menu(_file(one), menu)

    def _hear(self, file: str, *words: object) -> None:
        for one in words:
            if isinstance(one, str) and one.strip():
                self.heard.add((file, TAG.sub(" ", one) if "<" in one else one))


def _words(one: QWidget) -> Iterator[str]:
    yield from (one.toolTip(), one.accessibleName(), one.accessibleDescription())
    yield from (one.windowTitle(), one.statusTip(), one.whatsThis())
    if isinstance(one, QLabel):
        yield getattr(one, "full", "") or one.text()
    elif isinstance(one, QAbstractButton):
        yield one.text()
    elif isinstance(one, QMenu | QGroupBox):
        yield one.title()
    elif isinstance(one, QLineEdit | QPlainTextEdit):
        yield one.placeholderText()
    elif isinstance(one, QTextBrowser):
        yield from one.toPlainText().splitlines()
    elif isinstance(one, QAbstractSpinBox):
        yield from (one.text(), one.specialValueText())
    elif isinstance(one, QTabBar):
        for at in range(one.count()):
            yield from (one.tabText(at), one.tabToolTip(at))
    if isinstance(one, QComboBox | QAbstractItemView) and one.model() is not None:
        yield from _items(one.model())


def _items(model: QAbstractItemModel) -> Iterator[str]:
    roles = (
        Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole
    )  # fmt: skip
    one_column = isinstance(model, QAbstractListModel)  # which keeps its number to itself
    columns = 1 if one_column else model.columnCount(QModelIndex())
    for role in roles:
        for column in range(columns):
            yield model.headerData(column, Qt.Orientation.Horizontal, role)
            for row in range(min(ROWS, model.rowCount(QModelIndex()))):
                yield model.data(model.index(row, column), role)


def _places(one: QWidget) -> Iterator[QPointF]:
    for across in range(1, 2 * GRID, 2):
        for down in range(1, 2 * GRID, 2):
            yield QPointF(one.width() * across / (2 * GRID), one.height() * down / (2 * GRID))


def _send(one: QWidget, at: QPointF) -> None:
    spot = at.toPoint()
    QApplication.sendEvent(
        one,
        QMouseEvent(
            QEvent.Type.MouseMove, at, one.mapToGlobal(at), Qt.MouseButton.NoButton,
            Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
        ),
    )  # fmt: skip
    help_ = QHelpEvent(QEvent.Type.ToolTip, spot, one.mapToGlobal(QPoint(spot)))
    QApplication.sendEvent(one, help_)


def _file(one: QWidget) -> str:
    """The file of the nearest widget of hgviz that it stands in; what stands everywhere apart."""
    everywhere = ("controls", "overlay", "busy", "base")
    found: QWidget | None = one
    while found is not None:
        module = type(found).__module__
        if module.startswith("hgviz.gui") and module.rpartition(".")[2] not in everywhere:
            return module.replace(".", "/") + ".py"
        found = found.parentWidget()
    return CODE + "?"


def _caller() -> str:
    """The file of hgviz/gui whose code is at work."""
    frame = sys._getframe(2)
    while frame is not None:
        name = Path(frame.f_code.co_filename).as_posix()
        if CODE in name and not name.endswith("gui/language.py"):
            return CODE + name.rpartition(CODE)[2]
        frame = frame.f_back
    return CODE + "?"
