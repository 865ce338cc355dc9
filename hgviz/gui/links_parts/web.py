"""The two texts and the links between them: what is in view is painted, however long they are."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea

from hgviz.gui import ink, theme
from hgviz.gui.language import tr
from hgviz.gui.links_parts.brush import Brush
from hgviz.gui.links_parts.plan import Plan
from hgviz.gui.links_parts.scene import Scene
from hgviz.gui.links_parts.track import Track
from hgviz.gui.widgets import turns_along

TURN = 66  # px for one
QUERY, KEY = 0, 1


@dataclass(frozen=True, slots=True)
class Spot:
    """What is under the pointer: a unit on the side of queries or of keys, at a place."""

    side: int
    place: int


class Web(QAbstractScrollArea):
    """Queries on one side, keys on the other; says what the pointer chooses."""

    pointed = Signal(object)  # a Spot, None for nothing
    queried = Signal(int, bool, bool)  # a place; whether it adds to those chosen, or goes up to it
    keyed = Signal(int)  # a place
    stepped = Signal(str, int, bool)  # query or key, by so much, adding
    left = Signal()  # Escape
    moved = Signal()  # other units are in view

    def __init__(self) -> None:
        super().__init__()
        self.scene: Scene | None = None
        self.plan: Plan | None = None
        self.hot: Spot | None = None
        self._dragging = self._mine = False  # mine: what is chosen was chosen here
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.setMinimumSize(160, 80)
        self.setAccessibleName(tr("Links between queries and keys"))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.bar = self.verticalScrollBar()
        self.bar.valueChanged.connect(self._scrolled)

    # --- what is shown ----------------------------------------------------------------------------

    def show_scene(self, scene: Scene | None) -> None:
        """Show links; the same texts stay where they are."""
        old, self.scene = self.scene, scene
        fresh = old is None or scene is None or not scene.stays(old)
        if fresh:
            self.hot = None
        self._lay_out()
        others = old is None or scene is None or scene.chosen != old.chosen
        if scene is not None and (fresh or (others and not self._mine)):
            self._show_links(scene)
        self._mine = False
        self.viewport().update()

    def _show_links(self, scene: Scene) -> None:
        """Scroll to the queries chosen, and to their strongest key where both fit."""
        if not scene.chosen or self.plan is None:
            return
        self.reveal(min(scene.chosen))
        beyond = scene.beyond(self.plan.shown(KEY))
        if not beyond:
            return
        key = max(beyond, key=lambda one: one[3])[1]
        a = scene.tracks[QUERY].middle(min(scene.chosen))
        b = scene.tracks[KEY].middle(key)
        if abs(b - a) < self.plan.room - 60:
            value = self.plan.scroll_to(QUERY, (a + b) / 2 - self.plan.room / 2)
        else:  # the query at the far end: as much as can be seen of the way there
            edge = 40 if b > a else self.plan.room - 40
            value = self.plan.scroll_to(QUERY, a - edge)
        self.bar.setValue(round(value))

    def reveal(self, place: int, side: int = QUERY) -> None:
        """Scroll just as far as it takes to see a unit, and some of what is around it."""
        if self.scene is None or self.plan is None or place >= len(self.scene.tracks[side]):
            return
        margin = self.plan.room / 4
        middle = self.scene.tracks[side].middle(place)
        at = middle - self.plan.offset(side)
        if not margin / 4 <= at <= self.plan.room - margin / 4:
            self.bar.setValue(round(self.plan.scroll_to(side, middle - self.plan.room / 2)))

    def in_view(self) -> tuple[int, int]:
        """The queries in view, half-open."""
        return (0, 0) if self.plan is None else self.plan.shown(QUERY)

    def _lay_out(self) -> None:
        if self.scene is None:
            self.bar.setRange(0, 0)
            return
        size = self.viewport().size()
        self.plan = Plan.of(self.scene, size.width(), size.height(), self.bar.value())
        self.bar.blockSignals(True)
        self.bar.setPageStep(max(1, int(self.plan.room)))
        self.bar.setSingleStep(TURN // 3)
        self.bar.setRange(0, max(0, int(self.plan.most)))
        self.bar.blockSignals(False)
        self.plan = self.plan.scrolled(self.bar.value())

    def _scrolled(self) -> None:
        if self.plan is not None:
            self.plan = self.plan.scrolled(self.bar.value())
            self.viewport().update()
            self.moved.emit()

    # --- painting ---------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """The texts, the links, the numbers."""
        with QPainter(self.viewport()) as painter:
            painter.fillRect(self.viewport().rect(), theme.current().pane)
            if self.scene is not None and self.plan is not None:
                hot = None if self.hot is None else (self.hot.side, self.hot.place)
                Brush(painter, self.scene, self.plan, hot, self.hasFocus()).paint()
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(self.viewport().rect()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out again; other units may be in view."""
        super().resizeEvent(event)
        self._lay_out()
        self.moved.emit()

    def focusInEvent(self, event) -> None:
        """Show that keys act here."""
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event) -> None:
        """Keys act elsewhere."""
        super().focusOutEvent(event)
        self.viewport().update()

    # --- pointer ----------------------------------------------------------------------------------

    def spot(self, place: QPointF) -> Spot | None:
        """The unit at a place of the viewport; of the two sides, only their text counts."""
        if self.plan is None or self.scene is None:
            return None
        side = self.plan.side_at(place.x(), place.y())
        if side is None:
            return None
        found = self.track(side).at(place.y() - self.plan.start + self.plan.offset(side))
        return None if found is None else Spot(side, found)

    def track(self, side: int) -> Track:
        """Where the units of a side lie."""
        assert self.scene is not None
        return self.scene.tracks[side]

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose a query (Ctrl: one more, Shift: all up to it), or a key, or go to an end."""
        if event.button() != Qt.MouseButton.LeftButton:
            return
        if self.plan is not None and self.scene is not None:
            for box, place in self.plan.stubs(self.scene):
                if box.contains(event.position()):
                    self.reveal(place, KEY)
                    return
        found = self.spot(event.position())
        if found is None:
            return
        keys = event.modifiers()
        if found.side == KEY:
            self.keyed.emit(found.place)
            return
        adds = bool(keys & Qt.KeyboardModifier.ControlModifier)
        self._dragging = self._mine = True
        self.queried.emit(found.place, adds, bool(keys & Qt.KeyboardModifier.ShiftModifier))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Point, or drag over several queries."""
        found = self.spot(event.position())
        if found == self.hot:
            return
        self.point(found)
        self.pointed.emit(found)
        if self._dragging and found is not None and found.side == QUERY:
            self._mine = True
            self.queried.emit(found.place, False, True)

    def point(self, spot: Spot | None) -> None:
        """What the pointer is over, here or in another pane."""
        if spot != self.hot:
            self.hot = spot
            self.viewport().update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Let go."""
        self._dragging = False

    def leaveEvent(self, event: QEvent) -> None:
        """The pointer is over nothing."""
        self.point(None)
        self.pointed.emit(None)

    def viewportEvent(self, event: QEvent) -> bool:
        """The pointer may leave the viewport alone."""
        if event.type() == QEvent.Type.Leave:
            self.leaveEvent(event)
        return super().viewportEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Along the text."""
        self.bar.setValue(round(self.bar.value() - turns_along(event) * TURN))
        event.accept()

    # --- keys -------------------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Arrows are taken before they are the menu's."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            taken = self._step_of(event) is not None or event.key() == Qt.Key.Key_Escape
            event.setAccepted(taken)
            if taken:
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Up and down move the query, with Shift they add to it; left and right the key."""
        step = self._step_of(event)
        if step is not None:
            adding = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self.stepped.emit(*step, adding)
        elif event.key() in (Qt.Key.Key_PageDown, Qt.Key.Key_PageUp):
            way = 1 if event.key() == Qt.Key.Key_PageDown else -1
            self.bar.setValue(self.bar.value() + way * self.bar.pageStep())
        elif event.key() in (Qt.Key.Key_Home, Qt.Key.Key_End):
            home = event.key() == Qt.Key.Key_Home
            self.bar.setValue(self.bar.minimum() if home else self.bar.maximum())
        elif event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            event.ignore()

    def _step_of(self, event: QKeyEvent) -> tuple[str, int] | None:
        if event.modifiers() & (
            Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
        ):
            return None
        key = Qt.Key(event.key())
        return {
            Qt.Key.Key_Up: ("query", -1), Qt.Key.Key_Down: ("query", 1),
            Qt.Key.Key_Left: ("key", -1), Qt.Key.Key_Right: ("key", 1),
        }.get(key)  # fmt: skip
