"""The palette: every command and head by its name, with its keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QObject,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QLabel,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from hgviz.gui import theme
from hgviz.gui.actions import ACTIONS, MENUS
from hgviz.gui.dialogs import Overlay
from hgviz.gui.language import tr
from hgviz.gui.samples import name_of
from hgviz.gui.sentences import ends
from hgviz.gui.sessions import place_of
from hgviz.gui.tables import Index
from hgviz.gui.widgets import RETURN_KEYS, hbox, label, line
from hgviz.gui.window import FIND

if TYPE_CHECKING:
    from hgviz.core import HeadId
    from hgviz.session import Session

# --- keys -----------------------------------------------------------------------------------------


SYMBOLS = {
    "Left": "←", "Right": "→", "Up": "↑", "Down": "↓", "Return": "Enter", ".": "full stop",
    ",": "comma", "PgDown": "PgDn",
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
        ("Another query", ("Up", "Down")),
        ("One more query", ("Shift+Up", "Shift+Down")),
        ("Another key", ("Left", "Right")),
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


# --- palette --------------------------------------------------------------------------------------


ROW, ROWS = 40, 8  # px, rows seen at once
USED = 19  # what was found lately goes before an equally good match, wherever in its words that is
STEPS = {
    Qt.Key.Key_Down: 1,
    Qt.Key.Key_Up: -1,
    Qt.Key.Key_PageDown: ROWS,
    Qt.Key.Key_PageUp: -ROWS,
}


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One line: an action by name, a head, or a file that was opened before."""

    words: str
    note: str
    icon: str
    keys: str = ""
    action: str = ""
    head: HeadId | None = None
    off: str = ""
    path: str = ""
    used: bool = False


def entries(session: Session, used: tuple[str, ...] = ()) -> list[PaletteEntry]:
    """All there is to find, first the actions that were found last, the newest of these first."""
    found = [
        PaletteEntry(
            tr(one.words),
            tr(one.menu),
            one.icon,
            one.keys[0] if one.keys else "",
            action=one.name,
            off=tr(one.why_off(session)),
            used=one.name in used,
        )
        for one in ACTIONS
        if one.name != "find"
    ]
    found.sort(key=lambda one: used.index(one.action) if one.action in used else len(used))
    for path in session.recent:
        gone = tr("It is not there any more") if path in session.gone else ""
        name = name_of(path)
        words = tr("Open {name}", name=name)
        found.append(PaletteEntry(words, place_of(path), "open", path=path, off=gone))
    for head in session.spec.heads if session.spec else ():
        fact = session.facts.get(head)
        where = ends(session.spec, head.layer)
        if fact is not None and fact.role:
            note = tr(fact.role)
        elif where:
            note = tr("at {level}", level=where)
        else:
            note = tr("in layer {layer}", layer=head.layer)
        found.append(PaletteEntry(tr("Go to head {head}", head=head), note, "eye", head=head))
    return found


def match(query: str, words: str) -> tuple[int, tuple[int, ...]] | None:
    """How badly words match a query, 0 best, and which letters do; None where they do not.

    Every part of the query must be there: as a word's start, within a word, or letter by letter.
    """
    low, cost = words.lower(), 0
    places: list[int] = []
    for part in query.lower().split():
        at = low.find(part)
        while at > 0 and low[at - 1].isalnum() and (later := low.find(part, at + 1)) >= 0:
            at = later
        if at >= 0:
            cost += 0 if at == 0 or not low[at - 1].isalnum() else 20
            cost += min(at, 15)
            places += range(at, at + len(part))
            continue
        at = -1
        for char in part:
            before, at = at, low.find(char, at + 1)
            if at < 0:
                return None
            cost += 40 + at - before
            places.append(at)
    return cost, tuple(sorted(set(places)))


class CommandPalette(Overlay):
    """Type, choose with the arrows, press Return."""

    chosen = Signal(str)
    head_chosen = Signal(object)
    path_chosen = Signal(str)
    wide = 620
    top_part = 0.28

    def __init__(self, over: QWidget, session: Session, used: tuple[str, ...] = ()) -> None:
        super().__init__(over)
        self.body.setContentsMargins(1, 1, 1, 8)
        self.body.setSpacing(0)
        self.field = QLineEdit()
        self.field.setFrame(False)
        self.field.setStyleSheet("border: 0; background: transparent;")
        self.field.setFont(theme.font(1.15))
        self.field.setPlaceholderText(tr(FIND))
        self.field.setAccessibleName(tr(FIND))
        self.field.installEventFilter(self)
        self.field.textChanged.connect(self._narrow)
        self.count = label("", factor=0.92, kind="secondary")
        sign = QLabel()
        sign.setPixmap(theme.pixmap("search", 16, theme.current().secondary))
        self.body.addLayout(
            hbox(None, sign, (self.field, 1), self.count, margins=(18, 12, 18, 12), spacing=-1)
        )
        self.body.addWidget(line())
        self.body.addSpacing(6)
        self._session, self._used = session, used
        session.changed.connect(self._changed)
        self.model = _Matches(entries(session, used), self)
        self.list = QListView()
        self.list.setModel(self.model)
        self.list.setItemDelegate(_Painter(self.list))
        self.list.setFixedHeight(ROW * ROWS)
        self.list.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the field's arrows move in it
        self.list.setAccessibleName(tr("What was found"))
        self.list.setMouseTracking(True)
        self.list.clicked.connect(self._take)
        self.body.addWidget(self.list)
        self._narrow("")

    def open(self) -> None:
        """Start in the field."""
        super().open()
        self.field.setFocus()

    def finish(self) -> None:
        """Stop listening too."""
        if self.isVisible():
            self._session.changed.disconnect(self._changed)
        super().finish()

    def _changed(self, name: str) -> None:
        """There may be more to find now, and other reasons."""
        if name in ("capture", "spec", "facts", "work", "checkpoint", "recent", "gone"):
            self.model.all = entries(self._session, self._used)
            self._narrow(self.field.text())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The field's arrows move in the list; Return takes what is chosen there."""
        if watched is self.field and isinstance(event, QKeyEvent) and _pressed(event):
            step = STEPS.get(Qt.Key(event.key()))
            if step is not None:
                self._move(step)
                return True
            if event.key() in RETURN_KEYS:
                self._take(self.list.currentIndex())
                return True
        return super().eventFilter(watched, event)

    def _narrow(self, query: str) -> None:
        self.model.narrow(query)
        self.list.setCurrentIndex(self.model.index(0))
        self.list.scrollToTop()
        count, total = self.model.rowCount(), len(self.model.all)
        self.count.setText(tr("{count} of {total}", count=count, total=total))

    def _move(self, by: int) -> None:
        rows = self.model.rowCount()
        if rows:
            at = self.list.currentIndex().row() + by
            at = at % rows if abs(by) == 1 else max(0, min(rows - 1, at))
            self.list.setCurrentIndex(self.model.index(at))

    def _take(self, index: Index) -> None:
        if not index.isValid():
            return
        entry, _ = self.model.shown[index.row()]
        if entry.off:
            return  # the reason stands beside it
        self.finish()
        if entry.head is not None:
            self.head_chosen.emit(entry.head)
        elif entry.path:
            self.path_chosen.emit(entry.path)
        else:
            self.chosen.emit(entry.action)


class _Matches(QAbstractListModel):
    """The entries that match, best first."""

    def __init__(self, every: list[PaletteEntry], parent: QObject) -> None:
        super().__init__(parent)
        self.all = every
        self.shown: list[tuple[PaletteEntry, tuple[int, ...]]] = []

    def narrow(self, query: str) -> None:
        """Keep what matches the query; the note (a head's role, a menu) counts for less."""
        found = []
        for number, entry in enumerate(self.all):
            lately = -USED if entry.used and query else 0
            by_words = match(query, entry.words)
            by_note = match(query, f"{entry.words} {entry.note}")
            if by_words is not None:
                found.append((by_words[0] + lately, number, entry, by_words[1]))
            elif by_note is not None:
                length = len(entry.words)
                places = tuple(one for one in by_note[1] if one < length)
                found.append((by_note[0] + 100 + lately, number, entry, places))
        self.beginResetModel()
        found.sort(key=itemgetter(0, 1))
        self.shown = [(entry, places) for _, _, entry, places in found]
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        """How many match."""
        return len(self.shown)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The words, for the screen and for screen readers; the entry, for the painter."""
        entry, places = self.shown[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return ", ".join(filter(None, (entry.words, entry.off or entry.note, entry.keys)))
        if role == Qt.ItemDataRole.ToolTipRole:
            return entry.off or None
        if role == Qt.ItemDataRole.UserRole:
            return entry, places
        return None


def _pressed(event: QKeyEvent) -> bool:
    return event.type() == QEvent.Type.KeyPress


class _Painter(QStyledItemDelegate):
    """One line: icon, words with the letters that match in bold, a note; keys or why it is off."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """All lines are equally high."""
        return QSize(100, ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw one line."""
        entry, places = index.data(Qt.ItemDataRole.UserRole)
        now = theme.current()
        box = option.rect.adjusted(8, 0, -8, 0)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        if chosen or option.state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(now.tint if chosen else now.hover)
            painter.drawRoundedRect(box, 6, 6)
        ink = now.secondary if entry.off else now.text
        icon = theme.icon(entry.icon, now.press if chosen and not entry.off else now.secondary)
        icon.paint(painter, QRect(box.x() + 12, box.center().y() - 7, 16, 16))
        right = self._right(painter, entry, box, chosen)
        x, end = box.x() + 42, right - 12
        for words, font, colour in _runs(entry, places, ink):
            painter.setFont(font)
            painter.setPen(colour)
            metrics = QFontMetrics(font)
            room = end - x
            if room <= 0:
                break
            shown = metrics.elidedText(words, Qt.TextElideMode.ElideRight, room)
            painter.drawText(
                QRect(x, box.y(), room, box.height()), Qt.AlignmentFlag.AlignVCenter, shown
            )
            x += metrics.horizontalAdvance(words)
        painter.restore()

    def _right(self, painter: QPainter, entry: PaletteEntry, box: QRect, chosen: bool) -> int:
        """Draw what stands at the right end; give where it begins."""
        now = theme.current()
        x = box.right() - 12
        if entry.off:
            font = theme.font(0.92)
            room = box.width() // 2
            words = QFontMetrics(font).elidedText(entry.off, Qt.TextElideMode.ElideRight, room)
            x -= QFontMetrics(font).horizontalAdvance(words)
            painter.setFont(font)
            painter.setPen(now.warning)
            painter.drawText(
                QRect(x, box.y(), room, box.height()), Qt.AlignmentFlag.AlignVCenter, words
            )
            return x
        if not entry.keys:
            return x
        font = theme.font(0.85)
        metrics = QFontMetrics(font)
        for key in reversed(entry.keys.split("+")):
            words = tr(SYMBOLS[key]) if key in SYMBOLS else key
            wide = max(20, metrics.horizontalAdvance(words) + 12)
            cap = QRect(x - wide, box.center().y() - 9, wide, 20)
            painter.setPen(QPen(now.edge, 1))
            painter.setBrush(now.pane)
            painter.drawRoundedRect(cap, 4, 4)
            painter.setFont(font)
            painter.setPen(now.secondary)
            painter.drawText(cap, Qt.AlignmentFlag.AlignCenter, words)
            x -= wide + 4
        return x


def _runs(entry: PaletteEntry, places: tuple[int, ...], ink: Any) -> list[tuple[str, Any, Any]]:
    """The words in runs of bold (what matches) and plain, then the note."""
    out: list[tuple[str, Any, Any]] = []
    bold, plain = theme.font(weight=600), theme.font()
    start = 0
    for at in range(1, len(entry.words) + 1):
        if at == len(entry.words) or (at in places) != (start in places):
            out.append((entry.words[start:at], bold if start in places else plain, ink))
            start = at
    out.append((f"   {entry.note}", theme.font(0.92), theme.current().secondary))
    return out
