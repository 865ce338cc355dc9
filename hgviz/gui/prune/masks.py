"""Masks that were kept: sets of heads under a name with their scores, to return to."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAction, QFontMetrics, QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from hgviz.analysis.trial import Trial
from hgviz.core import Off
from hgviz.gui import theme
from hgviz.gui.controls import Button, Words, label
from hgviz.study import Mask

Index = QModelIndex | QPersistentModelIndex

HERE = Qt.ItemDataRole.UserRole + 1
ROW, MOST = 30, 4  # px, rows that show without scrolling


class MaskPainter(QStyledItemDelegate):
    """A row of 30 px; the mask on the wall stands on the tint of what is chosen."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """All rows are equally high."""
        wide = QFontMetrics(theme.font(0.92, 600)).horizontalAdvance(index.data())
        return QSize(wide + (32 if index.column() < 2 else 40), ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a cell of it."""
        now, box, column = theme.current(), QRectF(option.rect), index.column()
        here = bool(index.data(HERE))
        focus = option.widget is not None and option.widget.hasFocus()
        at_hand = bool(option.state & QStyle.StateFlag.State_Selected) and focus
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if here or at_hand:
            painter.setClipRect(box)
            painter.setBrush(now.mark_tint if here else now.hover)
            whole = box.adjusted(8 if column == 0 else -20, 1, -8 if column == 2 else 20, -1)
            painter.drawRoundedRect(whole, 6, 6)
            if at_hand:
                painter.setPen(QPen(now.press, 1.5))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(whole.adjusted(1, 1, -1, -1), 6, 6)
        painter.setPen(now.text if column != 1 else now.secondary)
        painter.setFont(theme.font(0.92, 600 if here and column != 1 else 400))
        inner = box.adjusted(16 if column == 0 else 8, 0, -16 if column == 2 else -8, 0)
        side = Qt.AlignmentFlag.AlignRight if column == 2 else Qt.AlignmentFlag.AlignLeft
        said = painter.fontMetrics().elidedText(
            index.data(), Qt.TextElideMode.ElideRight, round(inner.width())
        )
        painter.drawText(inner, side | Qt.AlignmentFlag.AlignVCenter, said)
        painter.restore()


class MaskList(QWidget):
    """Name, how many heads, score; Enter or a click returns to one, Delete forgets it."""

    picked = Signal(object)
    dropped = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.keep = Button("Keep this mask", kind="link")
        self.none = Words("Keep a mask to compare it with others.", factor=0.92, kind="secondary")
        self.list = QTreeWidget()
        self.list.setColumnCount(3)
        self.list.setHeaderHidden(True)
        self.list.setRootIsDecorated(False)
        self.list.setFrameShape(QTreeWidget.Shape.NoFrame)
        self.list.setItemDelegate(MaskPainter(self.list))
        self.list.setUniformRowHeights(True)
        self.list.setAccessibleName("Masks")
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.list.itemClicked.connect(self._take)
        self.list.itemActivated.connect(self._take)
        self.list.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        forget = QAction("Forget this mask", self.list)
        forget.triggered.connect(self._drop)
        self.list.addAction(forget)
        header = self.list.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for column in (1, 2):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        above = QHBoxLayout()
        above.setContentsMargins(16, 0, 12, 0)
        above.addWidget(label("Masks", weight=600), 1)
        above.addWidget(self.keep)
        said = QHBoxLayout()
        said.setContentsMargins(16, 0, 16, 8)
        said.addWidget(self.none)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 4)
        column.setSpacing(2)
        column.addLayout(above)
        column.addLayout(said)
        column.addWidget(self.list)
        self._shown: object = None
        self.show_masks((), frozenset(), None)

    def show_masks(self, masks: tuple[Mask, ...], off: Off, trial: Trial | None) -> None:
        """List them; the one that is on the wall is marked."""
        going = trial is not None and not trial.done and not trial.stopped
        shown = (masks, off, going)
        if shown == self._shown:
            return
        self._shown = shown
        self.list.clear()
        for mask in masks:
            score = mask.score
            here = mask.off == off
            if score is None:
                said = "not scored"
            else:
                said = f"{100 * score.value:.1f} %"
                said += f", {score.seen / max(1, score.total):.0%} seen" * (
                    score.seen < score.total
                )
            item = QTreeWidgetItem([mask.name, f"{len(mask.off)} off", said])
            item.setData(0, Qt.ItemDataRole.UserRole, mask)
            item.setToolTip(0, ", ".join(map(str, sorted(mask.off))) or "no head is off")
            for column in range(3):
                item.setData(column, HERE, here)
            self.list.addTopLevelItem(item)
            if here:
                self.list.setCurrentItem(item)
        self.none.setVisible(not masks)
        self.list.setVisible(bool(masks))
        self.list.setFixedHeight(ROW * min(MOST, len(masks)) + 2)
        self.keep.setEnabled(all(one.off != off for one in masks))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Delete forgets the mask at hand."""
        if event.key() == Qt.Key.Key_Delete:
            self._drop()
        else:
            super().keyPressEvent(event)

    def _take(self, item: QTreeWidgetItem) -> None:
        self.picked.emit(item.data(0, Qt.ItemDataRole.UserRole).off)

    def _drop(self) -> None:
        item = self.list.currentItem()
        if item is not None:
            self.dropped.emit(item.data(0, Qt.ItemDataRole.UserRole).name)
