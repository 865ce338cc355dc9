"""The table of classes and slices: how each fares with heads off, while the score still grows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem, QVBoxLayout

from hgviz.analysis.trial import Trial
from hgviz.core import Step, Task
from hgviz.gui import theme
from hgviz.gui.changes import BY, PICTURE, Measure, PartTable, Row, name_words, table, verdict
from hgviz.gui.language import tr
from hgviz.gui.prune_parts.changes import off_words
from hgviz.gui.prune_parts.rows import LEFT, RIGHT, ROW, Index, RowTable, ground
from hgviz.gui.prune_parts.shades import place_noun
from hgviz.gui.prune_parts.studied import DATA, possible
from hgviz.gui.view import View
from hgviz.gui.widgets import PaneHead, Segments

if TYPE_CHECKING:
    from hgviz.session import Session

WIDE = (0, 84, 100, 108, 116, 146, 160)  # px of each column; the name takes the rest
TIGHT = (0, 80, 104, 0, 116, 0, 124)
NARROW, TIGHTER, TIGHTEST = 900, 750, 470  # px: below, columns are left out
HINT = "intervals of one slice each; Left, Right and Space sort, Ctrl+C copies"


class SlicesView(View):
    """One row for every class or slice; sorted by any column."""

    title = "Classes and slices"
    figureless = "It is a table, which Ctrl+C copies"
    icon = "table"
    needs = ("trial", "dark", "data")
    lane = "here"
    topic = "prune-slices"
    empty = ("Choose data to see classes and slices", "Every one is a row here, with its interval.")

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title), tr(HINT))
        self.which = Segments((("right", tr("Right"), ""), ("loss", tr("Loss"), "")), wide=72)
        self.which.chosen.connect(self._again)
        self.head.add(self.which)
        self.model = PartTable(self)
        self.table = SliceTable(self.model)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.table, 1)
        self.start_at(self.table)

    def request(self, session: Session) -> Task[Trial] | None:
        """The trial so far; nothing without data."""
        trial = session.trial
        if trial is None or trial.paired is None:
            there = bool(session.data)
            self.empty = (
                ("On its way", "The first numbers come in a moment.")
                if there
                else (type(self).empty)
            )
            self.empty_actions = () if there else possible(session, *DATA)[:1]
            return None
        return _given(trial)

    def draw(self, result: Trial) -> None:
        """Show the numbers there are."""
        assert self.session is not None and result.paired is not None
        measure: Measure = self.which.choice  # type: ignore[assignment]
        noun = place_noun(result.examples.asked, self.session.spec)
        now = off_words(len(result.off)) if not result.whole else tr("No head off")
        self.model.show_parts(result.paired.parts, measure, noun, now)
        self.table.fit()
        self.table.setAccessibleName(tr("Classes and slices: {n}", n=len(self.model.rows)))
        if self.model.rows and not self.table.currentIndex().isValid():
            self.table.setCurrentIndex(self.model.index(0, 0))

    def as_text(self) -> str:
        """All numbers as a table."""
        return "".join("\t".join(row) + "\n" for row in self.as_table() or ())

    def as_table(self) -> list[list[str]] | None:
        """Everything that is known of every slice, as the rows stand."""
        return table(self.model.rows) if self.model.rows else None

    def _again(self, name: str) -> None:
        self.refresh()


class SliceTable(RowTable):
    """Clicks on the head of a column, or Left, Right and Space, sort."""

    def __init__(self, model: PartTable) -> None:
        super().__init__()
        self.parts = model
        self.setModel(model)
        self.setItemDelegate(SlicePainter(self))
        header = self.horizontalHeader()
        header.setSectionsClickable(True)
        header.sectionClicked.connect(model.sort_by)

    def fit(self) -> None:
        """Columns for the width there is."""
        room = self.viewport().width()
        tight = room < TIGHTER
        hidden = {5} if room < NARROW else set()
        if tight:
            hidden.add(3)  # whole and change say as much
        if room < TIGHTEST:
            hidden.add(PICTURE)
        self.share(TIGHT if tight else WIDE, frozenset(hidden))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and Right choose the column to sort by, Space turns the order."""
        shown = [n for n in range(len(WIDE)) if not self.isColumnHidden(n)]
        at = shown.index(self.parts.by) if self.parts.by in shown else 0
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        if event.key() in steps:
            column = shown[max(0, min(at + steps[Qt.Key(event.key())], len(shown) - 1))]
            if column != self.parts.by:
                self.parts.sort_by(column)
        elif event.key() == Qt.Key.Key_Space:
            self.parts.sort_by(self.parts.by)
        else:
            super().keyPressEvent(event)


class SlicePainter(QStyledItemDelegate):
    """What a slice is in grey before its name; the change as a dot on its interval."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """All rows are equally high."""
        return QSize(60, ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a cell."""
        row, model, column = index.data(Qt.ItemDataRole.UserRole), index.model(), index.column()
        assert isinstance(row, Row) and isinstance(model, PartTable)
        now, box, every = theme.current(), option.rect, row.part.by == "all"
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ground(painter, box, option.state)
        inner = box.adjusted(16 if column == 0 else 8, 0, -8, 0)
        if column == PICTURE:
            self._interval(painter, inner, row, model)
        else:
            painter.setPen(now.text)
            painter.setFont(theme.font(0.92, 600 if every or column == 4 else 400))
            if column == 0 and not every:
                painter.setPen(now.secondary)
                kind = tr(BY[row.part.by])
                painter.drawText(inner, LEFT, kind)
                inner.setLeft(inner.left() + painter.fontMetrics().horizontalAdvance(kind) + 8)
                painter.setPen(now.text)
            if column == 5:
                painter.setPen(now.secondary)
            said = name_words(row.part) if column == 0 and not every else index.data()
            said = painter.fontMetrics().elidedText(
                said, Qt.TextElideMode.ElideRight, inner.width()
            )
            painter.drawText(inner, RIGHT if column else LEFT, said)
        if every:
            painter.setPen(QPen(now.line, 1))
            painter.drawLine(box.bottomLeft(), box.bottomRight())
        painter.restore()

    def _interval(self, painter: QPainter, box: QRect, row: Row, model: PartTable) -> None:
        """0 in the middle, worse at its left; hollow where the interval has 0 in it."""
        now, middle, y = theme.current(), box.center().x() + 0.5, box.center().y() + 0.5
        painter.setPen(QPen(now.edge, 1))
        painter.drawLine(QPointF(middle, box.top()), QPointF(middle, box.bottom() + 1))
        if not row.part.n:
            return
        way = (1 if model.measure == "right" else -1) * (box.width() / 2 - 6) / model.most

        def x(value: float) -> float:
            reach = box.width() / 2
            return (
                middle + max(-reach, min(reach, value * way))
                if math.isfinite(value)
                else (middle + math.copysign(reach, value * way))
            )

        said = verdict(row, model.measure)
        ink = {"worse": now.bad, "better": now.good}.get(said, now.secondary)
        value, low, high = row.change
        painter.setPen(QPen(ink, 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        painter.drawLine(QPointF(x(low), y), QPointF(x(high), y))
        painter.setPen(QPen(ink, 1.5))
        painter.setBrush(now.pane if said == "may be nothing" else ink)
        painter.drawEllipse(QRectF(x(value) - 3.5, y - 3.5, 7, 7))


def _given(trial: Trial) -> Task[Trial]:
    yield Step(0, 1)
    return trial
