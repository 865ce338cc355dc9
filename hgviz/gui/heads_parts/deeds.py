"""What one head shows, with the evidence, and the rows in which it shows that most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QListView,
    QScrollArea,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from hgviz.analysis.gathered import Example, Passage
from hgviz.analysis.heads import HeadFacts
from hgviz.core import HeadId
from hgviz.gui import sentences, theme
from hgviz.gui.language import tr
from hgviz.gui.rows import walks
from hgviz.gui.views import words
from hgviz.gui.widgets import Button, Words, label

if TYPE_CHECKING:
    from PySide6.QtCore import QPersistentModelIndex

    Index = QModelIndex | QPersistentModelIndex

ROW, PAD = 28, 16  # px
SHARE, TEXT = 44, 56  # px: the share at the right, the number of the text at the left
CONTEXT = 24  # characters on either side
LOOKS = "{query} looks at {key}, share {share}"
LOOKS_IN = "Text {n:,}: {query} looks at {key}, share {share}"
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class Deeds(QWidget):
    """The chosen head: its sentence, everything it shows, the head most like it, examples."""

    opened = Signal(object)  # Example
    picked = Signal(object)  # HeadId

    def __init__(self) -> None:
        super().__init__()
        self.sentence = Words(factor=1.08, weight=600)
        self.like = Button("", kind="link", weight=400)
        self.like.setToolTip(tr("Go to the head whose rows are most like this one's"))
        self.like.clicked.connect(self._go)
        self._nearest: HeadId | None = None
        top = QHBoxLayout()
        top.setContentsMargins(PAD, 6, PAD - 4, 0)
        top.addWidget(self.sentence, 1)
        top.addWidget(self.like)
        self.shown = label(factor=0.92, kind="secondary")
        self.shown.setWordWrap(True)
        self.shown.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.shown.setContentsMargins(PAD, 0, PAD, 2)
        self.title = Words(factor=0.92, weight=600)
        self.title.setContentsMargins(PAD, 2, PAD, 0)
        self.examples = Examples()
        self.rows = Rows(self)
        self.examples.setModel(self.rows)
        self.examples.setItemDelegate(RowPainter(self.examples))
        self.examples.setUniformItemSizes(True)
        self.examples.setMouseTracking(True)
        self.examples.setFrameShape(QFrame.Shape.NoFrame)
        self.examples.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.examples.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.examples.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.examples.setAccessibleName(tr("Where this head does it most"))
        self.examples.clicked.connect(self._open)
        self.examples.activated.connect(self._open)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 6)
        column.setSpacing(2)
        column.addLayout(top)
        for one in (self.shown, self.title, self.examples):
            column.addWidget(one)
        column.addStretch(1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inside)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inside.setProperty("kind", "pane")
        inside.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(area)
        self.setMinimumHeight(96)

    def sizeHint(self) -> QSize:
        """A few examples."""
        return QSize(400, 190)

    def show_head(self, facts: HeadFacts | None, many: bool) -> None:
        """Say what is known of a head; many: of several texts."""
        for one in (self.shown, self.title, self.examples, self.like):
            one.setVisible(facts is not None)
        if facts is None:
            self.sentence.say(tr("Not measured: this head's layer is not captured"))
            return
        self.sentence.say(f"{facts.head}: {tr(facts.sentence)}")
        told = [f"{tr(one.words)}: {tr(one.evidence)}" for one in facts.named]
        self.shown.setText("\n".join(told or [tr(facts.evidence)]))
        self._nearest = facts.nearest
        self.like.setVisible(facts.nearest is not None)
        if facts.nearest is not None:
            apart = words.weight(facts.metrics["nearest"])
            said = tr("Most like {head}, {distance} apart", head=facts.nearest, distance=apart)
            self.like.setText(said)
        self.title.setVisible(bool(facts.examples))
        self.title.say(tr("Where it does so most" if facts.finder else "Where it is most focused"))
        self.rows.take(facts.examples, many)
        self.examples.setFixedHeight(ROW * len(facts.examples))

    def _open(self, index: Index) -> None:
        self.opened.emit(self.rows.examples[index.row()])

    def _go(self) -> None:
        if self._nearest is not None:
            self.picked.emit(self._nearest)


class Examples(QListView):
    """The list of examples; arrows walk it while it has the keyboard."""

    def event(self, event: QEvent) -> bool:
        """Keep the arrows."""
        if walks(event):
            event.accept()
            return True
        return super().event(event)


class Rows(QAbstractListModel):
    """The examples of a head."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.examples: tuple[Example, ...] = ()
        self.many = False

    def take(self, examples: tuple[Example, ...], many: bool) -> None:
        """Hold those of another head."""
        self.beginResetModel()
        self.examples, self.many = examples, many
        self.endResetModel()

    def rowCount(self, parent: Any = None) -> int:
        """How many there are."""
        return 0 if parent is not None and parent.isValid() else len(self.examples)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """A sentence, for screen readers and as a tooltip; the example for the painter."""
        one = self.examples[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            looks = sentences.shown(one.to[1]) if one.key is not None else tr("no token")
            return tr(
                LOOKS_IN if self.many else LOOKS, n=one.text + 1, query=sentences.shown(one.at[1]),
                key=looks, share=words.weight(one.share),
            )  # fmt: skip
        return one if role == Qt.ItemDataRole.UserRole else None


class RowPainter(QStyledItemDelegate):
    """Text number, the query in its place, what it looks at in its own, the share."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """All rows are equally high."""
        return QSize(100, ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw one row."""
        one, model = index.data(Qt.ItemDataRole.UserRole), index.model()
        assert isinstance(one, Example) and isinstance(model, Rows)
        now, box = theme.current(), option.rect.adjusted(8, 1, -8, -1)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(now.hover)
            painter.drawRoundedRect(box, 6, 6)
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(now.press, 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), 6, 6)
        box = box.adjusted(8, 0, -8, 0)
        painter.setFont(theme.font(0.85))
        painter.setPen(now.secondary)
        if model.many:
            painter.drawText(box, LEFT, tr("text {n:,}", n=one.text + 1))
            box.setLeft(box.left() + TEXT)
        painter.setFont(theme.font(0.92, 600))
        painter.setPen(now.text)
        painter.drawText(box, RIGHT, words.weight(one.share))
        box.setRight(box.right() - SHARE)
        arrow = 22
        half = (box.width() - arrow) // 2
        _quote(painter, QRect(box.left(), box.top(), half, box.height()), one.at)
        painter.setFont(theme.font())
        painter.setPen(now.secondary)
        middle = QRect(box.left() + half, box.top(), arrow, box.height())
        painter.drawText(middle, Qt.AlignmentFlag.AlignCenter, "→")
        to = one.to if one.key is not None else ("", tr("no token"), "")
        _quote(painter, QRect(middle.right(), box.top(), half, box.height()), to)
        painter.restore()


def _quote(painter: QPainter, box: QRect, passage: Passage) -> None:
    """A passage whose middle stands in the middle of a box, cut at both ends."""
    now = theme.current()
    before, it, after = (sentences.shown(one, 2 * CONTEXT).replace("·", " ") for one in passage)
    it = sentences.shown(passage[1], CONTEXT)
    plain, bold = theme.mono(0.92), theme.mono(0.92, 700)
    wide = min(QFontMetrics(bold).horizontalAdvance(it) + 6, box.width())
    side = (box.width() - wide) // 2
    chip = QRect(box.left() + side, box.top() + 4, wide, box.height() - 8)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(now.hover)
    painter.drawRoundedRect(chip, 3, 3)
    painter.setFont(bold)
    painter.setPen(now.text)
    painter.drawText(chip, Qt.AlignmentFlag.AlignCenter, it)
    metrics = QFontMetrics(plain)
    painter.setFont(plain)
    painter.setPen(now.secondary)
    first = metrics.elidedText(before, Qt.TextElideMode.ElideLeft, max(0, side - 3))
    last = metrics.elidedText(after, Qt.TextElideMode.ElideRight, max(0, side - 3))
    painter.drawText(QRect(box.left(), box.top(), side - 3, box.height()), RIGHT, first)
    painter.drawText(QRect(chip.right() + 4, box.top(), side - 3, box.height()), LEFT, last)
