"""The table of predictions that changed; a row opens its text in Inspect, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QVBoxLayout

from hgviz.analysis.trial import Which
from hgviz.core import Task
from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.prune_parts.changes import (
    Change,
    Changes,
    ChangeTable,
    cell_words,
    changes,
    row_cells,
    verdict,
)
from hgviz.gui.prune_parts.rows import ENTER, LEFT, RIGHT, ROW, Index, RowTable, ground
from hgviz.gui.prune_parts.studied import DATA, possible
from hgviz.gui.view import View
from hgviz.gui.widgets import PaneHead, Segments

if TYPE_CHECKING:
    from hgviz.session import Session

WIDE = (0, 100, 130, 130, 104, 110)  # px of each column; the text takes the rest
HINT = "Enter opens one in Inspect; B shows it before and after"
KEEP = (("keep_mask", "Keep this mask"), ("remove_heads", "Remove for good…"))
KINDS: tuple[tuple[Which, str], ...] = (("lost", "Lost"), ("won", "Won"), ("all", "All"))
NARROW, NARROWEST = 620, 440  # px: below, the loss is left out


class ChangedView(View):
    """Lost, won, or all of them; Enter or a double click opens the text."""

    title = "Predictions that changed"
    figureless = "It is a list of texts"
    icon = "table"
    needs = ("trial", "dark")
    empty = ("No prediction changed yet", "Switch heads off: what they change is listed here.")

    empty_actions: tuple[tuple[str, str], ...] = (("switch_head", "Switch this head off"),)
    topic = "prune-changed"

    opened = Signal(str)  # a text

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title), tr(HINT))
        self.which = Segments(
            tuple((name, f"{tr(words)} 8,888", "") for name, words in KINDS), wide=72
        )
        self.which.chosen.connect(self._again)
        self.head.add(self.which)
        self.model = ChangeTable(self)
        self.table = ChangedTable()
        self.table.setModel(self.model)
        self.table.setItemDelegate(ChangePainter(self.table))
        self.table.activated.connect(self._open)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.table, 1)
        self.start_at(self.table)

    def request(self, session: Session) -> Task[Changes] | None:
        """The rows, once every place was seen."""
        trial = session.trial
        self.empty_actions = ()
        if trial is None:
            self.empty = ("No prediction changed yet", "Choose data for the model to answer.")
            self.empty_actions = possible(session, *DATA)[:1]
            return None
        if trial.whole:
            self.empty, self.empty_actions = type(self).empty, type(self).empty_actions
            return None
        if not trial.done:
            if trial.stopped:
                self.empty = ("The score was stopped", "Go on to see which predictions changed.")
                self.empty_actions = (("resume_score", "Go on"),)
                return None
            self.empty = ("On its way", "The list comes when every text was seen.")
            return None
        if not len(trial.changed("all")):
            self.empty = ("No prediction changed", "The model gives the same answers everywhere.")
            self.empty_actions = possible(session, *KEEP)
            return None
        kind: Which = self.which.choice  # type: ignore[assignment]
        return changes(trial, kind, session.model)

    def draw(self, result: Changes) -> None:
        """List them."""
        for number, (name, words) in enumerate(KINDS):
            button = self.which._group.button(number)
            button.setText(f"{tr(words)} {result.counts[name]:,}")
        self.model.show_changes(result)
        self.table.fit()
        shown = len(result.rows)
        more = result.counts.get(self.which.choice, shown) - shown  # type: ignore[call-overload]
        self.head.note.say(tr("the {n:,} with most loss", n=shown) if more > 0 else tr(HINT))
        self.table.setAccessibleName(tr("Predictions that changed: {n:,}", n=shown))
        if shown and not self.table.currentIndex().isValid():
            self.table.setCurrentIndex(self.model.index(0, 0))

    def as_table(self) -> list[list[str]] | None:
        """The rows that are listed, texts as long as they are shown."""
        found = self.model.found
        if not found.rows or self._stack.currentWidget() is not self.content:
            return None
        was, now = found.columns[2:4]
        names = (*found.columns[:2], was, tr("right"), now, tr("right"), tr("bits whole"),
                 tr("bits masked"))  # fmt: skip
        return [list(names), *map(row_cells, found.rows)]

    def _again(self, name: str) -> None:
        self.refresh()

    def _open(self, index: QModelIndex) -> None:
        trial = self.session.trial if self.session else None
        if index.isValid() and trial is not None:
            row: Change = index.data(Qt.ItemDataRole.UserRole)
            text = trial.examples.rows[row.example].text
            self.opened.emit(row.before if trial.examples.asked != "classes" else text)


class ChangedTable(RowTable):
    """Space and Enter open the row."""

    def fit(self) -> None:
        """Columns for the width there is."""
        room = self.viewport().width()
        hidden = {4} if room < NARROW else set()
        if room < NARROWEST:
            hidden.add(5)
        self.share(WIDE, frozenset(hidden), 0.8 if room < NARROW else 1.0)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Space and Enter open the row."""
        if event.key() in (Qt.Key.Key_Space, *ENTER) and self.currentIndex().isValid():
            self.activated.emit(self.currentIndex())
        else:
            super().keyPressEvent(event)


class ChangePainter(QStyledItemDelegate):
    """Text that ends where the answer is, right and wrong in word and colour, a bar of loss."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """All rows are equally high."""
        return QSize(60, ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a cell."""
        row, model = index.data(Qt.ItemDataRole.UserRole), index.model()
        assert isinstance(row, Change) and isinstance(model, ChangeTable)
        now, box = theme.current(), option.rect
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        ground(painter, box, option.state)
        inner = box.adjusted(16 if index.column() == 0 else 8, 0, -8, 0)
        if index.column() == 0:
            self._text(painter, inner, row, model.found.ends, chosen)
        elif index.column() in (2, 3):
            right = row.was_right if index.column() == 2 else row.is_right
            self._answer(painter, inner, row.whole if index.column() == 2 else row.now, right)
        elif index.column() == 4:
            self._bar(painter, inner, row, model.found.most)
        else:
            painter.setPen(now.text)
            painter.setFont(theme.mono(0.92) if index.column() == 1 else theme.font(0.92))
            said = cell_words(row, index.column())
            said = painter.fontMetrics().elidedText(
                said, Qt.TextElideMode.ElideRight, inner.width()
            )
            painter.drawText(inner, RIGHT if index.column() == 5 else LEFT, said)
        painter.restore()

    def _text(self, painter: QPainter, box: QRect, row: Change, ends: bool, chosen: bool) -> None:
        now = theme.current()
        painter.setFont(theme.mono(0.92) if ends else theme.font(0.92))
        painter.setPen(now.text)
        said = cell_words(row, 0)
        way = Qt.TextElideMode.ElideLeft if ends else Qt.TextElideMode.ElideMiddle
        if not ends:
            painter.drawText(box, LEFT, painter.fontMetrics().elidedText(said, way, box.width()))
            return
        room = box.adjusted(0, 0, -12, 0)
        painter.drawText(room, RIGHT, painter.fontMetrics().elidedText(said, way, room.width()))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.mark if chosen else now.edge)
        painter.drawRoundedRect(QRectF(box.right() - 8, box.center().y() - 7, 8, 15), 2, 2)

    def _answer(self, painter: QPainter, box: QRect, said: str, right: bool) -> None:
        now = theme.current()
        word = verdict(right)
        small = theme.font(0.92)
        room = box.width() - QFontMetrics(small).horizontalAdvance(word) - 8
        painter.setFont(theme.mono(0.92, 600))
        painter.setPen(now.good if right else now.bad)
        metrics = painter.fontMetrics()
        said = metrics.elidedText(said, Qt.TextElideMode.ElideRight, max(0, room))
        painter.drawText(box, LEFT, said)
        painter.setFont(small)
        painter.setPen(now.secondary)
        painter.drawText(box.adjusted(metrics.horizontalAdvance(said) + 8, 0, 0, 0), LEFT, word)

    def _bar(self, painter: QPainter, box: QRect, row: Change, most: float) -> None:
        """The number with its sign, and as a bar before it."""
        now = theme.current()
        said = cell_words(row, 4)
        painter.setFont(theme.font(0.85))
        painter.setPen(now.text)
        painter.drawText(box, RIGHT, said)
        room = box.width() - painter.fontMetrics().horizontalAdvance("+00.00") - 6
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.bad if row.more > 0 else now.good)
        wide = max(2.0, min(1.0, abs(row.more) / most) * room)
        painter.drawRoundedRect(QRectF(box.left(), box.center().y() - 3, wide, 7), 2, 2)
