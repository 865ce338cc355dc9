"""The dock of a corpus: every text that was captured in one file, searched as one types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QModelIndex, QObject, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QListView,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from hgviz.core import Item, Task
from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.panels_parts.corpus import NARROW, ROW, RowPainter, Search, Texts
from hgviz.gui.view import View
from hgviz.gui.widgets import Button, Words, label

if TYPE_CHECKING:
    from hgviz.session import Session

HIGH, LOW = 207, 2 * ROW  # px: of the list, and where there is little room
ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)

Told = tuple[tuple[Item, ...], int, str]


class TextsPanel(View):
    """Lists the texts of the corpus; Enter or a click opens one. Absent for a text alone."""

    title = "Texts"
    topic = "texts"
    icon = "text"
    figureless = "It is a list of texts"
    needs = ("capture",)
    empty = ("One text alone", "Capture a file of texts to search them and step through them.")
    empty_actions = (("corpus", "Capture a file of texts…"),)
    lane = "here"

    picked = Signal(int)  # the number of an item
    wanted = Signal()  # the panel is to be seen

    def __init__(self) -> None:
        super().__init__()
        self.field = QLineEdit()
        self.field.setPlaceholderText(tr("Find a text"))
        self.field.setAccessibleName(tr("Find a text"))
        self.field.setToolTip(
            tr("Words of a text, or label:positive (Ctrl+F). Enter opens the first")
        )
        self.field.setClearButtonEnabled(False)
        self.field.textChanged.connect(self._narrow)
        self.count = Words(factor=0.92, kind="secondary")
        self.unit = label(factor=0.92, kind="secondary")
        self.model = Texts(self)
        self.list = TextList()
        self.list.setModel(self.model)
        self.list.setItemDelegate(RowPainter(self.list))
        self.list.clicked.connect(self._take)
        for one in (self.field, self.list):
            one.installEventFilter(self)
        self.none = Words(kind="secondary")
        self.clear = Button(tr("Clear the search"), kind="link")
        self.clear.clicked.connect(self._clear)
        nothing = QWidget()
        said = QVBoxLayout(nothing)
        said.setContentsMargins(16, 8, 16, 8)
        said.addWidget(self.none)
        said.addWidget(self.clear, 0, Qt.AlignmentFlag.AlignLeft)
        said.addStretch(1)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.list)
        self.stack.addWidget(nothing)
        self.stack.setMinimumHeight(LOW)
        self.stack.setMaximumHeight(HIGH)
        above, heads = QHBoxLayout(), QHBoxLayout()
        above.setContentsMargins(16, 0, 16, 0)
        above.addWidget(self.field)
        heads.setContentsMargins(16, 0, 24, 0)
        heads.addWidget(self.count, 1)
        heads.addWidget(self.unit)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 10, 0, 8)
        column.setSpacing(4)
        column.addLayout(above)
        column.addLayout(heads)
        column.addWidget(self.stack, 1)
        self.start_at(self.field)

    def request(self, session: Session) -> Task[Told] | None:
        """The texts, and which of them is open."""
        capture = session.capture
        if capture is None or not capture.items:
            return None
        return _told(capture.items, capture.item, capture.main.unit)

    def draw(self, result: Told) -> None:
        """List them; the open one is in sight."""
        items, now, unit = result
        moved = now != self.model.open or items != self.model.items
        self.model.show_items(items, now, unit)
        self.unit.setText(tr(f"{unit}s"))
        self._say()
        row = self.model.row_of(now)
        if moved and row >= 0:
            self.list.setCurrentIndex(self.model.index(row))

    def as_table(self) -> list[list[str]] | None:
        """The texts that are listed, whole, with their labels and sizes."""
        if not self.model.shown:
            return None
        heads = [tr(one) for one in ("Text number", "Text", "Label", "Tokens")]
        found = ((at, self.model.items[at]) for at in self.model.shown)
        return [heads] + [
            [str(at + 1), " ".join(one.text.split()), one.label, str(one.tokens)]
            for at, one in found
        ]

    def search(self) -> None:
        """Take the keyboard for a new search."""
        self.wanted.emit()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """In a narrow list each row names its own unit."""
        super().resizeEvent(event)
        self.unit.setVisible(self.width() >= NARROW)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The field's arrows lead into the list, Enter opens, Escape clears."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in ENTER:
                first = self.model.index(0) if watched is self.field else self.list.currentIndex()
                self._take(first)
                return True
            if event.key() == Qt.Key.Key_Escape and self.field.text():
                self._clear()
                return True
            if watched is self.field and event.key() == Qt.Key.Key_Down:
                self.list.setFocus(Qt.FocusReason.ShortcutFocusReason)
                if not self.list.currentIndex().isValid():
                    self.list.setCurrentIndex(self.model.index(0))
                return True
        return super().eventFilter(watched, event)

    def _narrow(self, query: str) -> None:
        self.model.narrow(Search.of(query))
        self._say()
        row = self.model.row_of(self.model.open)
        if row >= 0:
            self.list.setCurrentIndex(self.model.index(row))
        else:
            self.list.scrollToTop()

    def _say(self) -> None:
        found, every = self.model.rowCount(), len(self.model.items)
        narrowed = bool(self.field.text().strip())
        self.count.say(
            tr("{found:,} of {every:,} texts", found=found, every=every)
            if narrowed
            else tr("{n:,} texts", n=every)
        )
        self.none.say(tr("No text has “{words}”", words=self.field.text().strip()))
        self.stack.setCurrentIndex(0 if found else 1)
        self.list.setAccessibleName(tr("Texts: {count}", count=self.count.full))

    def _clear(self) -> None:
        self.field.clear()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _take(self, index: QModelIndex) -> None:
        if index.isValid():
            self.list.setCurrentIndex(index)
            self.picked.emit(self.model.item(index).number)


class TextList(QListView):
    """The rows: of one height, so that thousands cost nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.setUniformItemSizes(True)
        self.setResizeMode(QListView.ResizeMode.Adjust)  # narrow rows are higher
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFont(theme.font())
        self.setAccessibleName(tr("Texts"))
        self.setToolTip(
            tr("Enter or a click opens a text; Ctrl+PgUp and Ctrl+PgDown step through all")
        )

    def sizeHint(self) -> QSize:
        """A few rows."""
        return QSize(240, HIGH)


def _told(items: tuple[Item, ...], now: int, unit: str) -> Task[Told]:
    yield from ()
    return items, now, unit
