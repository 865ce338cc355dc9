"""The sheet of keys: what every action is done with, and what keys do inside of a pane."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from hgviz.gui.actions import ACTIONS, MENUS
from hgviz.gui.controls import Button, Words, label
from hgviz.gui.language import tr
from hgviz.gui.overlay import MARGIN, Overlay

SYMBOLS = {
    "Left": "←", "Right": "→", "Up": "↑", "Down": "↓", "Return": "Enter", ".": "full stop",
    ",": "comma", "PgDown": "PgDn",
}  # fmt: skip
COLUMN = 330  # px
STEPS = {
    Qt.Key.Key_Down: 0.1, Qt.Key.Key_Up: -0.1, Qt.Key.Key_PageDown: 0.9, Qt.Key.Key_PageUp: -0.9,
}  # fmt: skip

# What keys do while a pane, a list or a dialog has the keyboard: (where, (what, keys), ...)
LOCAL = (
    ("Everywhere", (
        ("Next control", ("Tab",)),
        ("Press a button, tick a box", ("Space",)),
        ("Close a dialog", ("Esc",)),
        ("Do what a dialog offers", ("Return",)),
    )),
    ("Maps", (
        ("Query before, next query", ("Up", "Down")),
        ("Key before, next key", ("Left", "Right")),
        ("Zoom in, zoom out", ("+", "-")),
        ("Let go of what is pointed at or chosen", ("Esc",)),
    )),
    ("Text strip", (
        ("One more query", ("Shift+Left", "Shift+Right")),
    )),
    ("Links", (
        ("Along the text: another query", ("Up", "Down")),
        ("One more query", ("Shift+Up", "Shift+Down")),
        ("Across it: another key", ("Left", "Right")),
        ("Scroll, to either end", ("PgUp", "PgDown", "Home", "End")),
        ("Let go", ("Esc",)),
    )),
    ("Follow", (
        ("Letter before, next letter", ("Left", "Right")),
    )),
    ("Lists of keys", (
        ("Key before, next key", ("Up", "Down")),
        ("A page of keys", ("PgUp", "PgDown")),
        ("Choose the key", ("Return",)),
    )),
    ("Attribution", (
        ("Walk the heads", ("Left", "Right", "Up", "Down")),
    )),
    ("Images", (
        ("From patch to patch", ("Left", "Right", "Up", "Down")),
    )),
    ("Wall of heads", (
        ("Walk the heads", ("Left", "Right", "Up", "Down")),
        ("First, last of a layer", ("Home", "End")),
        ("Off or on", ("Space",)),
        ("The whole layer", ("Shift+Space",)),
    )),
    ("How many heads can go", (
        ("One head less, one more", ("Left", "Right")),
        ("Five heads", ("PgDown", "PgUp")),
        ("None, as many as can go", ("Home", "End")),
    )),
    ("Masks", (
        ("Take one", ("Return",)),
        ("Rename it", ("F2",)),
        ("Forget it", ("Del",)),
    )),
    ("Tables", (
        ("Row before, next row", ("Up", "Down")),
        ("Open the row", ("Return",)),
        ("Slices: sort by another column", ("Left", "Right")),
        ("Slices: turn the order", ("Space",)),
    )),
    ("Charts", (
        ("Open the head", ("Return",)),
        ("Zoom in, zoom out", ("+", "-")),
        ("Move what is on screen", ("Shift+Left", "Shift+Right", "Shift+Up", "Shift+Down")),
        ("Show all of it again", ("0",)),
    )),
    ("Texts that are written", (
        ("Capture it, compare with it", ("Ctrl+Return",)),
        ("A new line", ("Return",)),
    )),
)  # fmt: skip


def groups() -> Iterator[tuple[str, list[tuple[str, tuple[str, ...]]]]]:
    """(heading, [(what, keys)]): the actions by menu, then what panes do."""
    for menu in MENUS:
        yield menu, [(one.words, one.keys) for one in ACTIONS if one.menu == menu]
    for where, rows in LOCAL:
        yield where, list(rows)


class Group(QWidget):
    """A heading with its rows."""

    def __init__(self, heading: str, rows: list[tuple[str, tuple[str, ...]]], local: bool) -> None:
        super().__init__()
        self.heading = tr(heading)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        head = label(self.heading, factor=0.92, weight=600, kind="secondary")
        column.addWidget(head)
        self._rows: list[tuple[QWidget, str]] = []
        for what, keys in rows:
            words = tr(what).rstrip("…")
            row = QWidget()
            line = QHBoxLayout(row)
            line.setContentsMargins(0, 0, 0, 0)
            line.setSpacing(4)
            line.addWidget(Words(words), 1)
            for one in caps(keys, local):
                line.addWidget(one)
            said = " ".join((self.heading, words, what, *keys)).casefold()
            row.setAccessibleName(f"{words}: {', '.join(keys)}")
            column.addWidget(row)
            self._rows.append((row, said))

    def narrow(self, parts: list[str]) -> int:
        """Show the rows in which all parts of what is looked for stand; how many those are."""
        found = 0
        for row, said in self._rows:
            fits = all(part in said for part in parts)
            row.setVisible(fits)
            found += fits
        self.setVisible(bool(found))
        return found


class ShortcutSheet(Overlay):
    """Every key, by menu and by pane, with a field that narrows them down."""

    wide = 1120
    top_part = 0.4

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self.field = QLineEdit()
        self.field.setPlaceholderText(tr("Find a key or what it does"))
        self.field.setAccessibleName(tr("Find a key or what it does"))
        self.field.setClearButtonEnabled(True)
        self.field.setMaximumWidth(320)
        self.field.textChanged.connect(self._narrow)
        self.field.installEventFilter(self)
        top = QHBoxLayout()
        top.addWidget(label(tr("Keyboard shortcuts"), factor=1.15, weight=600), 1)
        top.addWidget(self.field, 1)
        self.body.addLayout(top)
        self.groups = [
            Group(heading, rows, number >= len(MENUS))
            for number, (heading, rows) in enumerate(groups())
        ]
        self.none = label(tr("No key is named so"), kind="secondary")
        self.none.hide()
        inside = QWidget()
        self._columns = QHBoxLayout(inside)
        self._columns.setContentsMargins(4, 8, 12, 0)
        self._columns.setSpacing(40)
        self.area = QScrollArea()
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setWidgetResizable(True)
        self.area.setWidget(inside)
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the field's arrows scroll it
        inside.setAutoFillBackground(False)
        self.area.viewport().setAutoFillBackground(False)
        self.body.addWidget(self.none)
        self.body.addWidget(self.area, 1)
        self.default = Button(tr("Close"))
        self.default.clicked.connect(self.finish)
        note = tr("Letters act outside text fields. The wheel zooms maps and charts.")
        row = QHBoxLayout()
        row.addWidget(label(note, factor=0.92, kind="secondary"))
        row.addStretch(1)
        row.addWidget(self.default)
        self.body.addLayout(row)
        self._count = 0

    def open(self) -> None:
        """Start in the field."""
        super().open()
        self.field.setFocus()

    def place(self) -> None:
        """As many columns as there is room for, and as high as the window lets it be."""
        wide = min(self.wide, self.width() - 2 * MARGIN) - 48
        self._lay(max(1, min(3, wide // COLUMN)))
        self.area.setMinimumHeight(max(0, self.height() - 2 * MARGIN - 130))
        super().place()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The arrows of the field scroll the sheet."""
        if watched is self.field and event.type() == QEvent.Type.KeyPress:
            assert isinstance(event, QKeyEvent)
            step = STEPS.get(Qt.Key(event.key()))
            if step is not None:
                bar = self.area.verticalScrollBar()
                bar.setValue(bar.value() + round(step * bar.pageStep()))
                return True
        return super().eventFilter(watched, event)

    def _narrow(self, typed: str) -> None:
        parts = typed.casefold().split()
        found = sum(one.narrow(parts) for one in self.groups)
        self.none.setVisible(not found)
        self.area.verticalScrollBar().setValue(0)

    def _lay(self, count: int) -> None:
        """The groups one after the other in columns that are about equally high."""
        if count == self._count:
            return
        self._count = count
        while (old := self._columns.takeAt(0)) is not None:
            old.layout().deleteLater()
        share = sum(one.sizeHint().height() for one in self.groups) / count
        column, filled = QVBoxLayout(), 0.0
        columns = [column]
        for one in self.groups:
            high = one.sizeHint().height()
            if filled + high / 2 > share and len(columns) < count:
                column, filled = QVBoxLayout(), 0.0
                columns.append(column)
            column.addWidget(one)
            filled += high
        for column in columns:
            column.setSpacing(12)
            column.addStretch(1)
            self._columns.addLayout(column, 1)


def key_caps(keys: str) -> list[QLabel]:
    """A shortcut as one small cap for each key."""
    parts = ["+"] if keys == "+" else keys.split("+")
    return [label(tr(SYMBOLS.get(one, one)), factor=0.85, kind="key") for one in parts]


def caps(keys: tuple[str, ...], together: bool) -> list[QLabel]:
    """Several shortcuts: one or the other, or, where they stand together, such as both arrows, one
    after the other with what is held the first time only."""
    out, held = key_caps(keys[0]), keys[0].rpartition("+")[0]
    for one in keys[1:]:
        if not together:
            out.append(label(tr("or"), factor=0.85, kind="secondary"))
        same = together and held and one.rpartition("+")[0] == held
        out += key_caps(one.rpartition("+")[2] if same else one)
    return out


__all__ = ["LOCAL", "SYMBOLS", "ShortcutSheet", "groups", "key_caps"]
