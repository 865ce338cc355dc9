"""Masks that were kept: sets of heads under a name, one above the other with what they scored."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import (
    QAbstractItemModel,
    QModelIndex,
    QPersistentModelIndex,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from hgviz.analysis.trial import Trial
from hgviz.core import HeadWeights, ModelSpec, Off
from hgviz.gui import theme
from hgviz.gui.controls import Button, Words, label, tip
from hgviz.gui.language import tr
from hgviz.gui.prune.live import difference, saved_words, share_words
from hgviz.study import Mask

Index = QModelIndex | QPersistentModelIndex

MASK, HERE, LINES = (Qt.ItemDataRole.UserRole + n for n in range(3))
ROW, MOST, MOST_LOW = 46, 4, 2  # px; rows that show without scrolling, in a low window
LOW = 720  # px of the window's height
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class MaskPainter(QStyledItemDelegate):
    """Name and score, beneath what is off and saved, and the difference to the whole model; the
    mask on the wall stands on the tint of what is chosen. renamed: what a row is called, and is to
    be called."""

    renamed = Signal(str, str)

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """All rows are equally high."""
        return QSize(200, ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a row of it."""
        now, box = theme.current(), QRectF(option.rect)
        here = bool(index.data(HERE))
        focus = option.widget is not None and option.widget.hasFocus()
        at_hand = bool(option.state & QStyle.StateFlag.State_Selected) and focus
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if here or at_hand:
            painter.setBrush(now.mark_tint if here else now.hover)
            whole = box.adjusted(8, 1, -8, -1)
            painter.drawRoundedRect(whole, 6, 6)
            if at_hand:
                painter.setPen(QPen(now.press, 1.5))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(whole.adjusted(1, 1, -1, -1), 6, 6)
        for row, sides in enumerate(index.data(LINES)):
            line = QRectF(box.left() + 16, box.top() + 4 + 19 * row, box.width() - 32, 19)
            painter.setPen(now.secondary if row else now.text)
            painter.setFont(theme.font(0.85 if row else 0.92, 600 if here and not row else 400))
            self._sides(painter, line, sides)
        painter.restore()

    def _sides(self, painter: QPainter, line: QRectF, sides: tuple[str, str]) -> None:
        """The numbers stand at the right, one below the other; words give way."""
        measure = painter.fontMetrics()
        words, numbers = sides
        wide = measure.horizontalAdvance(numbers)
        room = round(line.width() - wide - 12)
        painter.drawText(line, RIGHT, numbers)
        elided = measure.elidedText(words, Qt.TextElideMode.ElideRight, room)
        painter.drawText(line, LEFT, elided)

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        """What it is called now."""
        assert isinstance(editor, QLineEdit)
        editor.setText(index.data(MASK).name)

    def updateEditorGeometry(
        self, editor: QWidget, option: QStyleOptionViewItem, index: Index
    ) -> None:
        """Over the whole row."""
        editor.setGeometry(option.rect.adjusted(8, 8, -8, -8))

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: Index) -> None:
        """Say what it is to be called; whoever keeps the masks decides."""
        assert isinstance(editor, QLineEdit)
        self.renamed.emit(index.data(MASK).name, editor.text())


class MaskList(QWidget):
    """Enter or a click returns to a mask, F2 gives it another name, Delete forgets it."""

    picked = Signal(object)
    dropped = Signal(str)
    renamed = Signal(str, str)
    told = Signal(str)  # about the mask that the keyboard is on

    def __init__(self) -> None:
        super().__init__()
        self.keep = Button(tr("Keep this mask"), kind="link")
        compare = tr("Keep a mask to compare it with others.")
        self.none = Words(compare, factor=0.92, kind="secondary")
        self.list = QTreeWidget()
        self.list.setHeaderHidden(True)
        self.list.setRootIsDecorated(False)
        self.list.setFrameShape(QTreeWidget.Shape.NoFrame)
        painter = MaskPainter(self.list)
        painter.renamed.connect(self.renamed)
        self.list.setItemDelegate(painter)
        self.list.setUniformRowHeights(True)
        self.list.setAccessibleName(tr("Masks"))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.list.itemClicked.connect(self._take)
        self.list.itemActivated.connect(self._take)
        self.list.currentItemChanged.connect(self._tell)
        self.list.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        for words, keys, does in (
            ("Rename this mask", Qt.Key.Key_F2, self._rename),
            ("Forget this mask", Qt.Key.Key_Delete, self._drop),
        ):
            action = QAction(tr(words), self.list)
            action.setShortcut(QKeySequence(keys))
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            action.triggered.connect(does)
            self.list.addAction(action)
        above = QHBoxLayout()
        above.setContentsMargins(16, 0, 12, 0)
        above.addWidget(label(tr("Masks"), weight=600), 1)
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
        self.show_masks((), frozenset(), None, None)

    def show_masks(
        self,
        masks: tuple[Mask, ...],
        off: Off,
        trial: Trial | None,
        spec: ModelSpec | None,
    ) -> None:
        """List them; the one that is on the wall is marked."""
        going = trial.off if trial is not None and not trial.done and not trial.stopped else None
        weights = None if trial is None else trial.weights
        shown = (masks, off, going, weights)
        if shown == self._shown:
            return
        self._shown = shown
        typed = self.list.hasFocus()
        self.list.clear()
        for mask in masks:
            here = mask.off == off
            lines = mask_lines(mask, spec, weights, mask.off == going)
            item = QTreeWidgetItem()
            item.setData(0, MASK, mask)
            item.setData(0, HERE, here)
            item.setData(0, LINES, lines)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsEditable)
            said = [" ".join(filter(None, sides)) for sides in lines]
            said += [tr("on the wall now")] * here
            item.setData(0, Qt.ItemDataRole.AccessibleTextRole, ", ".join(said))
            item.setToolTip(0, tip(heads_words(mask)))
            self.list.addTopLevelItem(item)
            if here:
                self.list.setCurrentItem(item)
        if typed:
            self.list.setFocus()
        self.none.setVisible(not masks)
        self.list.setVisible(bool(masks))
        self.fit()
        self.keep.setEnabled(all(one.off != off for one in masks))

    def fit(self) -> None:
        """As many rows as the height of the window has room for."""
        self.list.setFixedHeight(ROW * min(self._most, self.list.topLevelItemCount()) + 2)

    @property
    def _most(self) -> int:
        return MOST_LOW if self.window().height() < LOW else MOST

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Delete forgets the mask at hand."""
        if event.key() == Qt.Key.Key_Delete:
            self._drop()
        else:
            super().keyPressEvent(event)

    def _take(self, item: QTreeWidgetItem) -> None:
        self.picked.emit(item.data(0, MASK).off)

    def _tell(self, item: QTreeWidgetItem | None) -> None:
        if item is not None and self.list.hasFocus():
            self.told.emit(heads_words(item.data(0, MASK)))

    def _rename(self) -> None:
        item = self.list.currentItem()
        if item is not None:
            self.list.editItem(item)

    def _drop(self) -> None:
        item = self.list.currentItem()
        if item is not None:
            self.dropped.emit(item.data(0, MASK).name)


def mask_lines(
    mask: Mask, spec: ModelSpec | None, weights: Sequence[HeadWeights] | None, going: bool
) -> tuple[tuple[str, str], ...]:
    """("12 cheapest", "57.8 % (57.1 to 58.5)"), ("12 off, saves 295 k …", "−0.05 points, …")."""
    count, score, change = len(mask.off), mask.score, mask.change
    off = tr("no head is off")
    if count:
        off = tr("{n:,} off, saves {saved}", n=count, saved=saved_words(spec, mask.off, weights))
    name = tr(mask.name)  # which it may have from here: Whole model, 3 off
    if score is None:
        return (name, tr("measuring") if going else tr("not scored")), (off, "")
    value = share_words(score.value, score.low, score.high)
    beside = difference(*change) if change is not None and count else ""
    if score.seen < score.total:
        seen = tr("{percent:.0f} % seen", percent=100 * score.seen / max(1, score.total))
        beside = " · ".join(filter(None, (seen, beside)))
    return (name, value), (off, beside)


def heads_words(mask: Mask) -> str:
    """3 off: 0.0, 2.1, 2.2."""
    heads = ", ".join(map(str, sorted(mask.off))) or tr("no head is off")
    return f"{tr(mask.name)}: {heads}"


__all__ = ["MaskList", "mask_lines"]
