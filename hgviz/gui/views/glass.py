"""The hourglass as a canvas: paints a layout and an atlas, and says what was pointed at."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFontMetricsF,
    QHelpEvent,
    QImage,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QToolTip

from hgviz.core import HeadId
from hgviz.gui import theme
from hgviz.gui.atlas import Atlas
from hgviz.gui.ink import focus_ring
from hgviz.gui.language import tr
from hgviz.gui.layouts import arrange
from hgviz.gui.views.silhouette import Layout, Room
from hgviz.gui.views.strokes import MARGIN, Brush, Look, Scene

NARROW = 440  # px: below this the levels keep only their names


class Glass(QAbstractScrollArea):
    """Paints the hourglass and knows which head is under the pointer."""

    picked = Signal(object)  # HeadId
    hovered = Signal(object)  # HeadId | None
    asked_menu = Signal(object, QPoint)  # HeadId | None, global place
    rearranged = Signal()  # thumbnails have another size: an atlas in that size is wanted

    def __init__(self) -> None:
        super().__init__()
        self.scene: Scene | None = None
        self.layout_: Layout | None = None
        self.chosen: HeadId | None = None
        self.opened: Mapping[int, HeadId] = {}
        self.ringed: HeadId | None = None
        self._atlas = Atlas.empty()
        self._image = QImage()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Hourglass"))
        self.viewport().setMouseTracking(True)
        self.verticalScrollBar().setSingleStep(24)

    # --- what it is told --------------------------------------------------------------------------

    def show_scene(self, scene: Scene) -> None:
        """Lay out another model or text."""
        if scene != self.scene:
            self.scene = scene
            self.rearrange()

    def show_atlas(self, atlas: Atlas) -> None:
        """Take new pictures; the old ones stay until this is called."""
        height, width = atlas.image.shape[:2]
        form = QImage.Format.Format_ARGB32_Premultiplied
        self._atlas = atlas  # the image below only borrows its memory
        self._image = QImage(atlas.image.data, width, height, 4 * width, form)
        self.viewport().update()

    def mark(
        self, chosen: HeadId | None, opened: Mapping[int, HeadId], ringed: HeadId | None
    ) -> None:
        """Frame the selected head, the ones last opened elsewhere, and the one pointed at."""
        if chosen != self.chosen and chosen is not None:
            self._reveal(chosen)
        self.chosen, self.opened, self.ringed = chosen, opened, ringed
        self.viewport().update()

    def sizes(self) -> dict[HeadId, tuple[int, int]]:
        """Width and height of every cell in device pixels."""
        if self.layout_ is None:
            return {}
        ratio = self.devicePixelRatioF()
        return {
            head: (max(1, round(cell.width * ratio)), max(1, round(cell.height * ratio)))
            for head, cell in self.layout_.cells()
        }

    def rearrange(self) -> None:
        """Lay out again, for another scene or another size."""
        if self.scene is None:
            return
        before = self.sizes()
        self.layout_ = arrange(self.scene.spec, self.scene.lengths, self._room())
        view = self.viewport().size()
        for bar, whole, part in (
            (self.horizontalScrollBar(), self.layout_.width, view.width()),
            (self.verticalScrollBar(), self.layout_.height, view.height()),
        ):
            bar.setRange(0, max(0, round(whole - part)))
            bar.setPageStep(part)
        if self.chosen is not None:
            self._reveal(self.chosen)
        if before != self.sizes():
            self.rearranged.emit()
        self.viewport().update()

    def where(self, head: HeadId) -> QRect | None:
        """The cell of a head, in the coordinates of the viewport."""
        row = self.layout_.row(head.layer) if self.layout_ is not None else None
        for number, cell in row.cells if row is not None else ():
            if number == head.head:
                left, top = self._scrolled()
                return QRectF(cell.x - left, cell.y - top, cell.width, cell.height).toRect()
        return None

    def head_at(self, place: QPointF) -> HeadId | None:
        """The head under a place of the viewport."""
        if self.layout_ is None or self.scene is None:
            return None
        left, top = self._scrolled()
        return self.layout_.at(place.x() + left, place.y() + top)

    # --- geometry ---------------------------------------------------------------------------------

    def _room(self) -> Room:
        view = self.viewport().size()
        details = view.width() >= NARROW
        small = QFontMetricsF(theme.font(0.92))
        lines = [
            line for level in range(len(self.scene.lengths)) for line in self.scene.lines(level)
        ]
        text = max(map(small.horizontalAdvance, lines)) if details and lines else 26
        title = QFontMetricsF(theme.font(0.92)).height()
        bold = QFontMetricsF(theme.font(1.08, 600)).height()
        return Room(
            view.width(),
            view.height(),
            label=MARGIN + max(text, 40) + 32,
            right=48 if self._has_residual() else MARGIN,
            title=title + 14,
            bottom=title + 8 if self.scene is not None and self.scene.plain else 10,
            details=details,
            full_label=bold + 3 * small.lineSpacing() + 12,
            short_label=bold,
        )

    def _has_residual(self) -> bool:
        """Whether a path goes round some layers: the residual one, or the source to a decoder."""
        if self.scene is None or len(self.scene.lengths) == 1:
            return False
        encoded = any(one.level == 0 for one in self.scene.spec.layers)
        return not self.scene.plain or (self.scene.spec.two_texts and encoded)

    def _scrolled(self) -> tuple[int, int]:
        return self.horizontalScrollBar().value(), self.verticalScrollBar().value()

    def _reveal(self, head: HeadId) -> None:
        row = self.layout_.row(head.layer) if self.layout_ is not None else None
        if row is None:
            return
        bar, high = self.verticalScrollBar(), self.viewport().height()
        if row.top - 24 < bar.value():
            bar.setValue(round(row.top) - 24)
        elif row.top + row.height + 24 > bar.value() + high:
            bar.setValue(round(row.top + row.height) + 24 - high)

    def sizeHint(self) -> QSize:
        """The size of the design."""
        return QSize(592, 640)

    # --- events -----------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out for the new size."""
        self.rearrange()

    def changeEvent(self, event: QEvent) -> None:
        """Another font has other widths; another theme other colours."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.ApplicationFontChange):
            self.rearrange()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the head under the pointer; the right button asks for its menu."""
        head = self.head_at(event.position())
        if event.button() == Qt.MouseButton.RightButton:
            self.asked_menu.emit(head, event.globalPosition().toPoint())
        elif event.button() == Qt.MouseButton.LeftButton and head is not None:
            self.picked.emit(head)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """The menu key asks for the menu of the chosen head."""
        where = self.where(self.chosen) if self.chosen is not None else None
        if event.reason() == QContextMenuEvent.Reason.Keyboard and where is not None:
            self.asked_menu.emit(self.chosen, self.viewport().mapToGlobal(where.center()))
        else:
            super().contextMenuEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Ring the head under the pointer."""
        head = self.head_at(event.position())
        pointing = Qt.CursorShape.PointingHandCursor
        self.viewport().setCursor(Qt.CursorShape.ArrowCursor if head is None else pointing)
        self.hovered.emit(head)

    def viewportEvent(self, event: QEvent) -> bool:
        """Leaving clears the ring; a level's name says the rest where it had to be short."""
        if event.type() == QEvent.Type.Leave:
            self.hovered.emit(None)
        elif isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            self._tell(event)
            return True
        return super().viewportEvent(event)

    def _tell(self, event: QHelpEvent) -> None:
        _, top = self._scrolled()
        at = event.pos().y() + top
        names = self.layout_.labels if self.layout_ is not None else ()
        near = next((one for one in names if one.top <= at < one.top + 24), None)
        if near is None or event.pos().x() > 60:
            QToolTip.hideText()
        else:
            QToolTip.showText(event.globalPos(), ", ".join(self.scene.lines(near.level)), self)

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Everything moves but the names of the levels, so all is painted again."""
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint what is in view."""
        with QPainter(self.viewport()) as painter:
            painter.fillRect(self.viewport().rect(), theme.current().pane)
            if self.scene is None or self.layout_ is None:
                return
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            left, top = self._scrolled()
            painter.translate(-left, -top)
            opened = frozenset(self.opened.values())
            look = Look(self.chosen, self.ringed, opened, self.shown)
            Brush(painter, self.layout_, self.scene, look).paint(self._image, self._atlas)
            if self.hasFocus():
                focus_ring(painter, self.shown)

    @property
    def shown(self) -> QRectF:
        """The part of the layout in view."""
        left, top = self._scrolled()
        view = self.viewport().size()
        return QRectF(left, top, view.width(), view.height())
