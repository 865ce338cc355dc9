"""Masks that were kept: sets of heads under a name, one above the other with what they scored."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QTableWidget, QTableWidgetItem, QVBoxLayout, QWidget

from hgviz.analysis.trial import Trial
from hgviz.core import ModelSpec, Off
from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.livescore import difference, saved_words, share_words
from hgviz.gui.widgets import Button, Words, label, tip
from hgviz.study import Mask

MASK = Qt.ItemDataRole.UserRole
ROW, MOST, MOST_LOW = 26, 6, 3  # px; rows that show without scrolling, in a low window
LOW = 720  # px of the window's height


class MaskList(QWidget):
    """Enter or a click returns to a mask, Delete forgets it."""

    picked = Signal(object)
    dropped = Signal(str)
    told = Signal(str)  # about the mask that the keyboard is on

    def __init__(self) -> None:
        super().__init__()
        self.keep = Button(tr("Keep this mask"), kind="link")
        compare = tr("Keep a mask to compare it with others.")
        self.none = Words(compare, factor=0.92, kind="secondary")
        self.list = QTableWidget(0, 3)
        self.list.setProperty("kind", "table")
        self.list.horizontalHeader().hide()
        self.list.horizontalHeader().setStretchLastSection(True)
        self.list.verticalHeader().hide()
        self.list.verticalHeader().setDefaultSectionSize(ROW)
        self.list.setShowGrid(False)
        self.list.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.list.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.list.setSelectionMode(QTableWidget.SelectionMode.SingleSelection)
        self.list.setTabKeyNavigation(False)
        self.list.setAccessibleName(tr("Masks"))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.itemClicked.connect(self._take)
        self.list.itemActivated.connect(self._take)
        self.list.currentItemChanged.connect(self._tell)
        self.list.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        action = QAction(tr("Forget this mask"), self.list)
        action.setShortcut(QKeySequence(Qt.Key.Key_Delete))
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        action.triggered.connect(self._drop)
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
        self.list.setRowCount(0)
        self.list.setRowCount(len(masks))
        for row, mask in enumerate(masks):
            here = mask.off == off
            saves = tr("saves {saved}", saved=saved_words(spec, mask.off, weights))
            for column, words in enumerate(mask_cells(mask, mask.off == going)):
                item = QTableWidgetItem(words)
                item.setData(MASK, mask)
                item.setFont(theme.font(0.92, 600 if here else 400))
                item.setToolTip(tip(f"{heads_words(mask)}; {saves}"))
                self.list.setItem(row, column, item)
            if here:
                self.list.setCurrentCell(row, 0)
        self.list.resizeColumnsToContents()
        if typed:
            self.list.setFocus()
        self.none.setVisible(not masks)
        self.list.setVisible(bool(masks))
        self.fit()
        self.keep.setEnabled(all(one.off != off for one in masks))

    def fit(self) -> None:
        """As many rows as the height of the window has room for."""
        self.list.setFixedHeight(ROW * min(self._most, self.list.rowCount()) + 2)

    @property
    def _most(self) -> int:
        return MOST_LOW if self.window().height() < LOW else MOST

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Delete forgets the mask at hand."""
        if event.key() == Qt.Key.Key_Delete:
            self._drop()
        else:
            super().keyPressEvent(event)

    def _take(self, item: QTableWidgetItem) -> None:
        self.picked.emit(item.data(MASK).off)

    def _tell(self, item: QTableWidgetItem | None) -> None:
        if item is not None and self.list.hasFocus():
            self.told.emit(heads_words(item.data(MASK)))

    def _drop(self) -> None:
        item = self.list.currentItem()
        if item is not None:
            self.dropped.emit(item.data(MASK).name)


def mask_cells(mask: Mask, going: bool) -> tuple[str, str, str]:
    """Its name, its score and the difference to the whole model: "3 off", "57.8 % (57.1 to 58.5)",
    "−0.05 points, −0.10 to +0.21"; going: whether it is being scored."""
    name, score = tr(mask.name), mask.score  # the name may be from here: Whole model, 3 off
    if score is None:
        return name, tr("measuring") if going else tr("not scored"), ""
    change = difference(*mask.change) if mask.change is not None and mask.off else ""
    if score.seen < score.total:
        seen = tr("{percent:.0f} % seen", percent=100 * score.seen / max(1, score.total))
        change = " · ".join(filter(None, (seen, change)))
    return name, share_words(score.value, score.low, score.high), change


def heads_words(mask: Mask) -> str:
    """3 off: 0.0, 2.1, 2.2."""
    heads = ", ".join(map(str, sorted(mask.off))) or tr("no head is off")
    return f"{tr(mask.name)}: {heads}"
