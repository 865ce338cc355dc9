"""The wall of heads: one cell each, painted as one widget; a click switches a head off or on."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QResizeEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from hgviz.core import HeadId, ModelSpec, Off
from hgviz.gui import theme
from hgviz.gui.ink import faint, hatching
from hgviz.gui.language import tr
from hgviz.gui.prune_parts.cells import Row, Wall, lay
from hgviz.gui.prune_parts.shades import Shades, ink

EDGE = 7  # px of a cell that is off keep its colour
RING = 5  # px around a cell that its rings take
WORDS, FIGURES = 30, 17  # px of width that "off" and the shortest number take
WAYS = {"down": "shortens", "up": "lengthens", "cross": "between texts"}
STEPS = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}
ENDS = (Qt.Key.Key_Home, Qt.Key.Key_End)
ACTS = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)


class HeadWall(QWidget):
    """Heads as cells. A drag paints one direction; with Shift whole layers are switched."""

    switched = Signal(object, bool)  # heads; a stroke goes on: it is undone together with the last
    pointed = Signal(object)  # a head, or None
    chosen = Signal(object)  # the head under the keyboard's cursor

    def __init__(self) -> None:
        super().__init__()
        self.wall: Wall | None = None
        self.spec: ModelSpec | None = None
        self.off: Off = frozenset()
        self.shades = Shades()
        self.at = HeadId(0, 0)
        self.room = 0  # px of height that there are without scrolling
        self._hover: HeadId | None = None
        self._way: bool | None = None  # what the drag paints: True switches off
        self._begun = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Heads"))

    # --- what it shows ----------------------------------------------------------------------------

    def show_model(self, spec: ModelSpec | None) -> None:
        """Another model."""
        if spec != self.spec:
            self.spec = spec
            self._lay()

    def show_off(self, off: Off) -> None:
        """The heads that are off, at once."""
        if off != self.off:
            changed, self.off = off ^ self.off, off
            self._describe()
            self._refresh(*changed)

    def show_shades(self, shades: Shades) -> None:
        """The scores."""
        self.shades = shades
        self.update()

    def show_cursor(self, head: HeadId) -> None:
        """The head at hand."""
        if head != self.at:
            before, self.at = self.at, head
            self._describe()
            self._refresh(before, head)

    def set_room(self, height: int) -> None:
        """How high the pane is; the wall scrolls beyond."""
        if height != self.room:
            self.room = height
            self._lay()

    def words(self, head: HeadId) -> str:
        """What is to be said of a head."""
        state = tr("switched off") if head in self.off else tr("on")
        parts = [tr("Head {head}", head=head), state]
        if self.shades.label:
            parts.append(
                tr("{score}: {value}", score=self.shades.label, value=self.shades.words(head))
            )
        # the model may have changed before the head at hand did
        layers = self.spec.layers if self.spec else ()
        layer = layers[head.layer] if head.layer < len(layers) else None
        if layer is not None and layer.role != "self":
            parts.insert(1, tr(WAYS[layer.role]))
        return (
            "\n".join((" · ".join(parts[:-1]), parts[-1]))
            if self.shades.label
            else " · ".join(parts)
        )

    def sizeHint(self) -> QSize:
        """As high as the wall."""
        high = self.wall.height if self.wall else 0
        return QSize(320, round(high))

    # --- the mouse --------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Switch a head, or with Shift its layer; a drag goes on with the same direction."""
        head = self._at(event.position())
        if event.button() != Qt.MouseButton.LeftButton or head is None:
            return
        self.chosen.emit(head)
        self._way, self._begun = head not in self.off, False
        self._paint(head, bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Paint, or point."""
        head = self._at(event.position())
        if head != self._hover:
            before, self._hover = self._hover, head
            self.pointed.emit(head)
            self._refresh(before, head)
        if self._way is not None and head is not None:
            self._paint(head, bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """The stroke is over."""
        self._way = None

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is pointed at."""
        before, self._hover = self._hover, None
        self.pointed.emit(None)
        self._refresh(before)

    def _paint(self, head: HeadId, layer: bool) -> None:
        row = self.wall.row_of(head.layer) if self.wall and layer else None
        some = frozenset(one for one, _ in row.cells) if row else frozenset({head})
        off = self.off | some if self._way else self.off - some
        if off != self.off:
            begun, self._begun = self._begun, True
            self.switched.emit(off, begun)

    def _at(self, point: QPointF) -> HeadId | None:
        return self.wall.head_at(point) if self.wall else None

    # --- the keyboard -----------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Keep the arrows from the window's shortcuts; tell of the cell under the pointer."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            plain = not event.modifiers() & ~(
                Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.KeypadModifier
            )
            if plain and (event.key() in STEPS or event.key() in (*ENDS, *ACTS)):
                event.accept()
                return True
        if isinstance(event, QHelpEvent):
            head = self._at(QPointF(event.pos()))
            if head is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), self.words(head), self)
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows walk, Space switches, Shift+Space the layer."""
        key = event.key()
        if key in STEPS:
            self._step(*STEPS[Qt.Key(key)])
        elif key in ENDS:
            row = self.wall.row_of(self.at.layer) if self.wall else None
            if row and row.cells:
                self.chosen.emit(row.cells[-1 if key == Qt.Key.Key_End else 0][0])
        elif key in ACTS:
            self._way, self._begun = self.at not in self.off, False
            self._paint(self.at, bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
            self._way = None
        else:
            super().keyPressEvent(event)

    def _step(self, down: int, right: int) -> None:
        rows = [one for one in self.wall.rows if one.cells] if self.wall else []
        at = next((n for n, one in enumerate(rows) if one.layer == self.at.layer), None)
        if at is None:
            return
        if right:
            heads = [head for head, _ in rows[at].cells]
            here = heads.index(self.at) if self.at in heads else 0
            self.chosen.emit(heads[max(0, min(here + right, len(heads) - 1))])
            return
        row = rows[max(0, min(at + down, len(rows) - 1))]
        self.chosen.emit(min((one for one, _ in row.cells),
                             key=lambda one: abs(one.head - self.at.head)))  # fmt: skip

    def focusInEvent(self, event: QEvent) -> None:
        """Show the ring."""
        self.update()

    def focusOutEvent(self, event: QEvent) -> None:
        """Hide the ring."""
        self.update()

    # --- the picture ------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay it out for the new width."""
        self._lay()

    def _lay(self) -> None:
        self.wall = lay(self.spec, self.width(), self.room) if self.spec else None
        self.setMinimumHeight(round(self.wall.height) if self.wall else 0)
        self.updateGeometry()
        self._describe()
        self.update()

    def _refresh(self, *heads: HeadId | None) -> None:
        """Paint the cells of some heads again, with their rings and the numbers of their layers."""
        for row in self.wall.rows if self.wall else ():
            for head, box in row.cells:
                if head in heads:
                    self.update(box.adjusted(-RING, -RING, RING, RING).toAlignedRect())
                    side = QRectF(0, row.top, row.cells[0][1].left(), row.height)
                    self.update(side.toAlignedRect())

    def _describe(self) -> None:
        heads = len(self.spec.heads) if self.spec else 0
        self.setAccessibleDescription(
            " · ".join((
                tr("{n:,} of {total:,} heads off", n=len(self.off), total=heads),
                self.words(self.at),
            ))
            if self.spec and self.spec.layers else ""
        )  # fmt: skip

    def paintEvent(self, event: QPaintEvent) -> None:
        """Groups, then the cells that have to be drawn."""
        if self.wall is None:
            return
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._groups(painter, self.wall)
            asked = event.region()
            for row in self.wall.rows:
                whole = QRectF(0, row.top - RING, self.width(), row.height + 2 * RING)
                if not asked.intersects(whole.toAlignedRect()):
                    continue
                self._side(painter, row)
                for head, box in row.cells:
                    if asked.intersects(box.toAlignedRect()):
                        self._cell(painter, head, box)
            box = self.wall.box(self.at)
            if box is not None:
                self._ring(painter, box)

    def _groups(self, painter: QPainter, wall: Wall) -> None:
        now = theme.current()
        painter.setPen(Qt.PenStyle.NoPen)
        for group in wall.groups:
            painter.setBrush(faint(now.silhouette[group.shade], 0.55))
            painter.drawRoundedRect(group.box, 6, 6)
        painter.setPen(now.text)
        painter.setFont(theme.font(weight=600))
        for group in wall.groups:
            box = QRectF(group.box.left() + 12, group.box.top() + 4, 72, 28)
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, group.name)
        painter.setPen(now.secondary)
        painter.setFont(theme.font(0.85))
        said = tr("head {n}") if wall.cell > 46 else "{n}"
        every = 1 if wall.cell > 17 else 4
        for head, middle in wall.columns:
            if head % every == 0:
                box = QRectF(middle - 30, 2, 60, 18)
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, said.format(n=head))

    def _side(self, painter: QPainter, row: Row) -> None:
        """The number of a layer, and a funnel where it goes to another level."""
        assert self.wall is not None
        now = theme.current()
        first = self.wall.columns[0][1] - self.wall.cell / 2
        middle = row.top + row.height / 2
        chosen = row.layer == self.at.layer
        painter.setFont(theme.font(0.92, 600 if chosen else 400))
        painter.setPen(now.text)
        box = QRectF(first - 44, middle - 10, 34, 20)
        painter.drawText(
            box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, str(row.layer)
        )
        if row.way in ("down", "up"):
            x, sign = first - 52, 1 if row.way == "down" else -1
            wide, narrow = middle - 4 * sign, middle + 4 * sign
            painter.setPen(QPen(now.secondary, 1.2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            corners = ((x - 7, wide), (x + 7, wide), (x + 3.5, narrow), (x - 3.5, narrow))
            painter.drawPolygon(QPolygonF([QPointF(*one) for one in corners]))

    def _cell(self, painter: QPainter, head: HeadId, box: QRectF) -> None:
        now = theme.current()
        ground = self.shades.colour(head, now.dark)
        radius = 5.0 if box.width() > 30 else 2.5
        if head in self.off:
            self._off(painter, box, ground, radius)
            return
        painter.setPen(QPen(now.secondary if head == self._hover else now.edge, 1))
        painter.setBrush(ground or now.raised)
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        said = self.shades.number(head)
        painter.setFont(theme.font(0.92, 600))
        room = painter.fontMetrics().horizontalAdvance(said)
        if said and ground is not None and room < box.width() - 3 and box.height() > 14:
            painter.setPen(ink(ground))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, said)

    def _off(self, painter: QPainter, box: QRectF, ground: QColor | None, radius: float) -> None:
        """Hatched, framed, "off"; the edge keeps the score."""
        now = theme.current()
        inner = box.adjusted(0.75, 0.75, -0.75, -0.75)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.pane)
        painter.drawRoundedRect(inner, radius, radius)
        painter.setBrushOrigin(box.topLeft())
        painter.setBrush(hatching(faint(now.secondary, 0.6), self.devicePixelRatioF()))
        painter.drawRoundedRect(inner, radius, radius)
        painter.setBrushOrigin(QPointF(0, 0))
        edge = min(EDGE, box.width() / 3)
        painter.save()
        painter.setClipRect(QRectF(box.left(), box.top(), edge, box.height()))
        painter.setBrush(ground or now.hover)
        painter.drawRoundedRect(inner, radius, radius)
        painter.restore()
        painter.setPen(QPen(now.text, 1.5))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(inner, radius, radius)
        painter.drawLine(
            QPointF(box.left() + edge, inner.top()), QPointF(box.left() + edge, inner.bottom())
        )
        if box.width() > WORDS + edge and box.height() >= 14:
            painter.setFont(theme.font(0.92, 600))
            metrics = painter.fontMetrics()
            word = tr("off")
            wide = metrics.horizontalAdvance(word) + 12
            high = min(box.height() - 4, metrics.height() + 2)
            chip = QRectF(0, 0, wide, high)
            chip.moveCenter(QPointF(box.center().x() + edge / 2, box.center().y()))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(now.pane)
            painter.drawRoundedRect(chip, high / 2, high / 2)
            painter.setPen(now.text)
            painter.drawText(chip, Qt.AlignmentFlag.AlignCenter, word)

    def _ring(self, painter: QPainter, box: QRectF) -> None:
        """Orange: the head at hand; blue outside: the keyboard is here."""
        now = theme.current()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(now.mark, 2))
        painter.drawRoundedRect(box.adjusted(-1, -1, 1, 1), 6, 6)
        if self.hasFocus():
            painter.setPen(QPen(now.press, 1.5))
            painter.drawRoundedRect(box.adjusted(-3, -3, 3, 3), 7, 7)
