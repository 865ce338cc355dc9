"""All heads as cells: thumbnails, scores, conductance, and their colours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QContextMenuEvent,
    QFont,
    QFontMetricsF,
    QHelpEvent,
    QImage,
    QKeyEvent,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPolygonF,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QFrame,
    QToolTip,
    QWidget,
)

from hgviz import palettes
from hgviz.analysis.importance import METHODS, Method, importance, mean_over_runs
from hgviz.core import HeadId, HeadSet, Integers, ModelSpec, progress
from hgviz.examples import EACH
from hgviz.gui import ink, sentences, theme
from hgviz.gui.atlas import Atlas, Thumb
from hgviz.gui.ink import faint, focus_ring, hatching
from hgviz.gui.language import tr
from hgviz.gui.layouts import (
    FLAT,
    HeadRow,
    HourglassLayout,
    HourglassRoom,
    LevelLabel,
    Residual,
    Wall,
    arrange,
    lay,
)
from hgviz.gui.sentences import counted, method_explained
from hgviz.gui.widgets import hbox, label, shows_tip, tip, vbox
from hgviz.language import decimals
from hgviz.study import Study

if TYPE_CHECKING:
    from hgviz.session import Session

# --- strokes --------------------------------------------------------------------------------------


MARGIN = 16  # the padding of a pane
BAR = 56  # the longest bar of a cost


@dataclass(frozen=True, slots=True)
class HourglassScene:
    """What the glass shows: a model, how long each level is, and which layers are there.

    missing: layers not captured yet; running: the one being captured. only: layers whose windows
    hold one key, so that its weight is always 1. nouns: what a
    position of each level is called. says: what a classifier says of the text. off: heads that are
    switched off.
    """

    spec: ModelSpec
    lengths: tuple[int, ...]
    nouns: tuple[str, ...] = ("letter",)
    missing: frozenset[int] = frozenset()
    running: int | None = None
    only: frozenset[int] = frozenset()
    ghost: bool = False
    says: str = ""
    off: HeadSet = frozenset()

    @property
    def noun(self) -> str:
        """What a position of the finest level is called."""
        return self.nouns[0]

    @property
    def plain(self) -> bool:
        """Whether there is but one resolution, of one text or two."""
        return all(one.stride == 1 for one in self.spec.levels)

    def ends(self) -> tuple[str, str]:
        """What goes in above and comes out below."""
        last = self.nouns[self.spec.layers[-1].level] if self.spec.layers else self.noun
        out = {
            "classes": self.says or tr("Classes"),
            "masked": tr("Masked {units}", units=tr(f"{last}s")),
            "states": tr("States"),
            "tags": tr("Classes of tokens"),
            "ends": tr("Answer"),
        }.get(self.spec.goal, tr("Next {unit}", unit=tr(last)))
        encoded = any(one.level == 0 for one in self.spec.layers)
        source = self.spec.two_texts and encoded and self.spec.modality == "text"
        return tr("Source in") if source else tr(f"{sentences.READ[self.spec.modality]} in"), out

    def lines(self, level: int) -> tuple[str, ...]:
        """What is written under the name of a level: positions, tokens each, cost."""
        stride = self.spec.levels[level].stride
        if self.plain:
            named = {"slots": "slot"}.get(self.spec.levels[level].sequence, self.nouns[level])
            return () if self.ghost else (sentences.counted(self.lengths[level], named),)
        out = [] if self.ghost else [sentences.counted(self.lengths[level], "position")]
        if stride is not None:
            out += [
                tr("{many} each", many=sentences.counted(stride, self.noun)),
                tr("attention cost {part}", part=sentences.fraction(stride**2)),
            ]
        return tuple(out)


@dataclass(frozen=True, slots=True)
class HourglassFrames:
    """What changes while looking: the frames, and the part that is in view."""

    chosen: HeadId | None
    ringed: HeadId | None
    opened: frozenset[HeadId]
    shown: QRectF


class HourglassPainter:
    """One painting of the glass, from the silhouette to the frames."""

    def __init__(
        self,
        painter: QPainter,
        layout: HourglassLayout,
        scene: HourglassScene,
        look: HourglassFrames,
    ) -> None:
        self.painter, self.layout, self.scene, self.look = painter, layout, scene, look
        self.theme = theme.current()

    def paint(self, image: QImage, atlas: Atlas) -> None:
        self._silhouette()
        for one in self.layout.residuals:
            self._residual(one)
        self._titles()
        self._cells(image, atlas)
        self._numbers()
        for side in self.layout.labels:
            self._label(side)
        self._frames()

    def _silhouette(self) -> None:
        now, painter = self.theme, self.painter
        painter.setPen(QPen(now.line, 1))
        painter.setBrush(now.silhouette[0])
        painter.drawPolygon(QPolygonF([QPointF(x, y) for x, y in self.layout.outline]))
        painter.setPen(Qt.PenStyle.NoPen)
        depths = sorted({one.stride or 0 for one in self.scene.spec.levels})
        for band in self.layout.bands:
            depth = depths.index(self.scene.spec.levels[band.level].stride or 0)
            if depth:
                painter.setBrush(now.silhouette[min(depth, 2)])
                painter.drawRect(band.box)
        painter.setPen(QPen(now.edge, 1))
        for x0, y0, x1, y1 in self.layout.lines:
            painter.drawLine(QPointF(x0, y0), QPointF(x1, y1))

    def _residual(self, one: Residual) -> None:
        painter, now = self.painter, self.theme
        path = QPainterPath(QPointF(one.edge, one.top))
        bend = min(8.0, (one.bottom - one.top) / 2)
        path.lineTo(one.lane - bend, one.top)
        path.quadTo(one.lane, one.top, one.lane, one.top + bend)
        path.lineTo(one.lane, one.bottom - bend)
        path.quadTo(one.lane, one.bottom, one.lane - bend, one.bottom)
        path.lineTo(one.edge + 8, one.bottom)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(now.secondary, 1.25))
        painter.drawPath(path)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.secondary)
        tip = QPointF(one.edge + 2, one.bottom)
        painter.drawPolygon(QPolygonF([tip, tip + QPointF(7, -4), tip + QPointF(7, 4)]))
        if one == max(self.layout.residuals, key=lambda path: path.bottom - path.top):
            self._upright(one)

    def _upright(self, one: Residual) -> None:
        font = theme.font(0.85)
        said = tr("residual path: keeps every {unit}", unit=tr(self.scene.noun))
        said = tr("what the encoder read") if self.scene.spec.two_texts else said
        room = one.bottom - one.top - 16
        said = QFontMetricsF(font).elidedText(said, Qt.TextElideMode.ElideRight, room)
        self.painter.save()
        self.painter.translate(one.lane + 13, (one.top + one.bottom) / 2)
        self.painter.rotate(-90)
        self._write(QRectF(-room / 2, -8, room, 16), said, font, self.theme.secondary,
                    Qt.AlignmentFlag.AlignCenter)  # fmt: skip
        self.painter.restore()

    def _titles(self) -> None:
        font, layout = theme.font(0.92), self.layout
        high = QFontMetricsF(font).height()
        y = layout.top - high - 5
        quiet = theme.font(0.85, 600)
        left = theme.TO_LEFT
        above, under_all = self.scene.ends()
        under = max((one.top + one.height for one in layout.labels), default=0)
        self._write(QRectF(MARGIN, y, 120, high), f"{above} ↓", quiet, self.theme.secondary, left)
        at = layout.bottom + 5 if self.scene.plain else max(layout.bottom - high, under + 4)
        below = QRectF(MARGIN, at, 120, high)
        said = QFontMetricsF(quiet).elidedText(f"{under_all} ↓", Qt.TextElideMode.ElideRight, 118)
        self._write(below, said, quiet, self.theme.secondary, left)
        every = 1
        pitch = layout.columns[1][1] - layout.columns[0][1] if len(layout.columns) > 1 else 80
        metrics = QFontMetricsF(font)
        named = metrics.horizontalAdvance(tr("head {head}", head="00")) < pitch
        while not named and metrics.horizontalAdvance("00 ") > pitch * every:
            every *= 2
        for column, x in layout.columns[::every]:
            box = QRectF(x - 40, y, 80, high)
            said = tr("head {head}", head=column) if named else str(column)
            self._write(box, said, font, self.theme.secondary)

    def _cells(self, image: QImage, atlas: Atlas) -> None:
        painter, now = self.painter, self.theme
        view = self.look.shown.adjusted(0, -8, 0, 8)
        radius = 3 if self.layout.size >= 28 else 1.5
        for row in self.layout.rows:
            if row.top > view.bottom() or row.top + row.height < view.top():
                continue
            for head, box in row.cells:
                edge = now.press if row.layer == self.scene.running else now.edge
                path = QPainterPath()
                path.addRoundedRect(box, radius, radius)
                missing = row.layer in self.scene.missing
                painter.fillPath(path, now.raised if missing else now.pane)
                if row.layer in self.scene.only:
                    painter.fillPath(path, QBrush(now.unseen_hatch, Qt.BrushStyle.BDiagPattern))
                elif not missing and (spot := atlas.places.get(head)):
                    self._blit(path, box, image, QRect(*spot))
                if head in self.scene.off:
                    painter.fillPath(path, faint(now.pane, 0.72))
                    ratio = painter.device().devicePixelRatioF()
                    painter.fillPath(path, hatching(faint(now.secondary, 0.6), ratio))
                width = 1.5 if row.layer == self.scene.running else 1
                painter.strokePath(path, QPen(edge, width))

    def _blit(self, path: QPainterPath, box: QRectF, image: QImage, spot: QRect) -> None:
        self.painter.save()
        self.painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
        self.painter.drawImage(box, image, QRectF(spot))
        self.painter.restore()

    def _numbers(self) -> None:
        for row in self.layout.rows:
            chosen = self.look.chosen is not None and row.layer == self.look.chosen.layer
            font = theme.font(0.92, 600 if chosen else 400)
            colour = self.theme.mark_text if chosen else self.theme.secondary
            middle = row.top + row.height / 2
            right = self.layout.edge(middle) - 7
            box = QRectF(right - 40, middle - 10, 40, 20)
            side = theme.TO_RIGHT
            self._write(box, str(row.layer), font, colour, side)
            if self.scene.spec.layers[row.layer].role == "cross" and row.height >= 30:
                under, quiet = box.translated(0, 13), self.theme.secondary
                self._write(under, tr("cross"), theme.font(0.85), quiet, side)

    def _label(self, label: LevelLabel) -> None:
        """The name of a level, kept in view while any of its rows is."""
        now = self.theme
        left = theme.TO_LEFT
        x, name = MARGIN, theme.font(1.08, 600)
        y = self._pinned(label)
        high = QFontMetricsF(name).height()
        colour = now.text if label.full else now.secondary
        title = sentences.level(self.scene.spec, label.level)
        if self.scene.plain and len(self.scene.spec.levels) == 1:
            title = tr(sentences.READ[self.scene.spec.modality])
        title = title if ":" in title else title.capitalize()
        self._write(QRectF(x, y, 80, high), title, name, colour, left)
        y += high
        small = theme.font(0.92)
        for line in self.scene.lines(label.level) if label.full else ():
            step = QFontMetricsF(small).lineSpacing()
            self._write(QRectF(x, y, 200, step), line, small, now.secondary, left)
            y += step
        stride = self.scene.spec.levels[label.level].stride
        if label.full and stride is not None and not self.scene.plain:
            self._cost(x, y + 4, 1 / stride**2)

    def _pinned(self, label: LevelLabel) -> float:
        view = self.look.shown
        inside = max(label.top, min(view.top() + 4, label.last - label.height))
        return min(inside, max(view.bottom() - label.height, label.first))

    def _cost(self, x: float, y: float, share: float) -> None:
        self.painter.setPen(Qt.PenStyle.NoPen)
        for width, colour in ((BAR, self.theme.hover), (max(4, BAR * share), self.theme.press)):
            self.painter.setBrush(colour)
            self.painter.drawRoundedRect(QRectF(x, y, width, 4), 2, 2)

    def _frames(self) -> None:
        now = self.theme
        chosen = self.look.chosen
        for row in self.layout.rows:
            for head, cell in row.cells:
                here = head == chosen
                if here:
                    self._frame(cell, now.mark, 3, Qt.PenStyle.SolidLine)
                elif head in self.look.opened and row.layer not in self.scene.missing:
                    self._frame(cell, now.mark, 2, Qt.PenStyle.DashLine)
                if head == self.look.ringed and not here:
                    self._frame(cell, now.text, 1.5, Qt.PenStyle.SolidLine)

    def _frame(self, cell: QRectF, colour: QColor, width: float, style: Qt.PenStyle) -> None:
        small = self.layout.size < FLAT
        out = width / 2 - 0.5 if small else width / 2 + 0.5
        pen = QPen(colour, width, style)
        if style == Qt.PenStyle.DashLine:
            pen.setDashPattern([3, 1.6])
        self.painter.setBrush(Qt.BrushStyle.NoBrush)
        self.painter.setPen(pen)
        radius = 2 if small else 5
        self.painter.drawRoundedRect(cell.adjusted(-out, -out, out, out), radius, radius)

    def _write(
        self,
        box: QRectF,
        said: str,
        font: QFont,
        colour: QColor,
        side: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignCenter,
    ) -> None:
        self.painter.setFont(font)
        self.painter.setPen(colour)
        self.painter.drawText(box, side, said)


# --- glass ----------------------------------------------------------------------------------------


NARROW = 440  # px: below this the levels keep only their names


class HeadGrid(QAbstractScrollArea):
    """Paints the hourglass and knows which head is under the pointer."""

    picked = Signal(object)  # HeadId
    hovered = Signal(object)  # HeadId | None
    asked_menu = Signal(object, QPoint)  # HeadId | None, global place
    rearranged = Signal()  # thumbnails have another size: an atlas in that size is wanted

    def __init__(self) -> None:
        super().__init__()
        self.scene: HourglassScene | None = None
        self.layout_: HourglassLayout | None = None
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

    def show_scene(self, scene: HourglassScene) -> None:
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
            head: (max(1, round(cell.width() * ratio)), max(1, round(cell.height() * ratio)))
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
        cell = self.layout_.box(head) if self.layout_ is not None else None
        return None if cell is None else cell.translated(-self.shown.topLeft()).toRect()

    def head_at(self, place: QPointF) -> HeadId | None:
        """The head under a place of the viewport."""
        if self.layout_ is None or self.scene is None:
            return None
        return self.layout_.head_at(place + self.shown.topLeft())

    # --- geometry ---------------------------------------------------------------------------------

    def _room(self) -> HourglassRoom:
        view = self.viewport().size()
        details = view.width() >= NARROW
        small = QFontMetricsF(theme.font(0.92))
        lines = [
            line for level in range(len(self.scene.lengths)) for line in self.scene.lines(level)
        ]
        text = max(map(small.horizontalAdvance, lines)) if details and lines else 26
        title = QFontMetricsF(theme.font(0.92)).height()
        bold = QFontMetricsF(theme.font(1.08, 600)).height()
        return HourglassRoom(
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
        return QSize(592, 640)

    # --- events -----------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
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
        with QPainter(self.viewport()) as painter:
            painter.fillRect(self.viewport().rect(), theme.current().pane)
            if self.scene is None or self.layout_ is None:
                return
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            left, top = self._scrolled()
            painter.translate(-left, -top)
            opened = frozenset(self.opened.values())
            look = HourglassFrames(self.chosen, self.ringed, opened, self.shown)
            HourglassPainter(painter, self.layout_, self.scene, look).paint(
                self._image, self._atlas
            )
            if self.hasFocus():
                focus_ring(painter, self.shown)

    @property
    def shown(self) -> QRectF:
        """The part of the layout in view."""
        left, top = self._scrolled()
        view = self.viewport().size()
        return QRectF(left, top, view.width(), view.height())


# --- card -----------------------------------------------------------------------------------------


OFF = 12  # px between the card and what it speaks about
DOES = {
    "down": "how positions are pooled",
    "up": "how they are spread again",
    "cross": "how the target looks at the source",
}


class HeadCard(QFrame):
    """A quiet card; the pointer goes through it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("kind", "float")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._name = label(weight=600)
        self._level = label(factor=0.92, kind="chip")
        self._role = label()
        self._numbers = label(factor=0.92, kind="secondary")
        top = hbox(None, self._name, self._level, 1, spacing=8)
        vbox(self, top, self._role, self._numbers, margins=(12, 8, 12, 8), spacing=3)
        self.hide()

    def tell(self, session: Session, head: HeadId, small: Thumb | None) -> None:
        """Say what is known about a head."""
        spec = session.spec
        if spec is None:
            return
        layer = spec.layers[head.layer]
        facts = session.facts.get(head)
        self._name.setText(tr("Head {head}", head=head))
        self._level.setText(sentences.ends(spec, head.layer))
        self._level.setVisible(bool(self._level.text()))
        self._role.setText(_role(layer.role, small, facts.role if facts is not None else ""))
        self._numbers.setText(_numbers(facts.metrics if facts is not None else {}, small))
        for one in (self._role, self._numbers):
            one.setVisible(bool(one.text()))
        self.adjustSize()

    def stand_by(self, where: QRect) -> None:
        """Beside a place of the parent, inside it, never over the place."""
        room = self.parentWidget().size()
        x = where.right() + OFF
        if x + self.width() > room.width():
            x = where.left() - OFF - self.width()
        y = min(max(4, where.top()), room.height() - self.height() - 4)
        if x < 4:
            x = 4
            y = where.bottom() + OFF
            if y + self.height() > room.height():
                y = where.top() - OFF - self.height()
        self.move(x, max(4, y))
        self.show()
        self.raise_()


def _role(role: str, small: Thumb | None, said: str) -> str:
    if small is None:
        return tr("not captured yet")
    if small.kind == "only":
        return tr("one key, always 1")
    return tr(said or DOES.get(role, ""))


def _numbers(metrics: dict[str, float], small: Thumb | None) -> str:
    if small is None or small.kind == "only":
        return ""
    parts = [tr("focus {value}", value=sentences.weight(metrics.get("focus", small.focus)))]
    if "entropy" in metrics:
        parts.append(tr("entropy {value} nats", value=sentences.weight(metrics["entropy"])))
    return " · ".join(parts)


# --- shades ---------------------------------------------------------------------------------------


EXPONENT = 0.7  # of the colour: small scores stay visible
SCALES = ((1.0, ""), (1e3, "thousandths"), (1e6, "millionths"))
# a score of bits, or of something else, as many times as SCALES say
BITS = {
    "": "bits per {noun}",
    "thousandths": "thousandths of a bit per {noun}",
    "millionths": "millionths of a bit per {noun}",
}
OTHERS = {
    "": "{unit}", "thousandths": "thousandths of {unit}", "millionths": "millionths of {unit}",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shade:
    """A head's score. value: in the unit of the wall, NaN where it is not measured; zero: whether
    its interval includes 0; part: on how much of the data, "" for all of it."""

    value: float
    low: float
    high: float
    zero: bool
    part: str = ""


@dataclass(frozen=True, slots=True)
class Shades:
    """The scores of all heads under one colour scale, symmetric about 0 up to limit.

    part: on how much of the data the numbers are. told: what the score means. layers: a number of
    whole layers, drawn as a bar beside each. digits: decimals of what a cell says.
    """

    label: str = ""
    unit: str = ""
    limit: float = 1.0
    heads: Mapping[HeadId, Shade] = field(default_factory=dict)
    told: str = ""
    part: str = ""
    layers: Mapping[int, float] = field(default_factory=dict)
    digits: int = 1

    def colour(self, head: HeadId, dark: bool) -> QColor | None:
        """The colour of a cell, None where nothing was measured."""
        one = self.heads.get(head)
        if one is None or math.isnan(one.value):
            return None
        return colour(0.0 if one.zero else one.value / self.limit, dark)

    def number(self, head: HeadId) -> str:
        """What a cell says: +4.2, ≈ 0, nothing."""
        one = self.heads.get(head)
        if one is None or math.isnan(one.value):
            return ""
        return "≈ 0" if one.zero else decimals(one.value, self.digits, signed=True)

    def words(self, head: HeadId) -> str:
        """Such as: +4.2 (3.9 to 4.5) thousandths of a bit per byte; for tooltips."""
        one = self.heads.get(head)
        if one is None or math.isnan(one.value):
            return tr("not measured")
        parts = {
            name: decimals(getattr(one, name), self.digits, signed=True)
            for name in ("value", "low", "high")
        } | {"unit": self.unit}
        said = "{value} {unit}" if one.low == one.high else "{value} ({low} to {high}) {unit}"
        said = "{value} ({low} to {high}) {unit}: may be nothing" if one.zero else said
        return ", ".join(filter(None, (tr(said, **parts), one.part)))


def colour(part: float, dark: bool) -> QColor:
    """The colour of a part of the limit, -1 to 1."""
    part = max(-1.0, min(1.0, part))
    bent = math.copysign(abs(part) ** EXPONENT, part)
    table = np.asarray(palettes.colours("blue-red", dark))
    red, green, blue = table[round((0.5 + 0.5 * bent) * (len(table) - 1))].tolist()
    return QColor(red, green, blue)


def text_colour(ground: QColor) -> QColor:
    """Black or white on a colour, whichever contrasts more."""
    return QColor(
        *(
            int(one)
            for one in palettes.contrasting_colour(
                np.array([ground.red(), ground.green(), ground.blue()])
            )
        )
    )


def offered(study: Study | None) -> tuple[Method, ...]:
    """The scores that a study has."""
    return tuple(one for one in METHODS.values() if study is not None and one.is_measured(study))


def shades(study: Study, method: str) -> Shades:
    """The scores of all heads by a method."""
    progress(0, 1)
    found = importance(study, method)
    one, needed = found.method, found.method.needed
    bits = one.unit == "nats"
    factor = needed / math.log(2) if bits else float(needed)
    values, ends = found.score * factor, np.sort([found.low * factor, found.high * factor], axis=0)
    known = np.abs(values[np.isfinite(values)])
    most = float(known.max()) if len(known) else 0.0
    scale, name = next(
        ((number, said) for number, said in SCALES if most * number >= 1), SCALES[-1]
    )
    unit = (
        tr(BITS[name], noun=tr(place_noun(study.asked, study.spec)))
        if bits
        else tr(OTHERS[name], unit=one.unit or tr(one.label).lower())
    )
    seen, total, noun = _seen(study, one)
    heads = {
        head: Shade(
            float(values[at] * scale), float(ends[0][at] * scale), float(ends[1][at] * scale),
            bool(ends[0][at] <= 0 <= ends[1][at]), _part(seen[at : at + 1], total, noun),
        )
        for at, head in enumerate(study.heads)
    }  # fmt: skip
    part = _part(seen[[head not in study.off for head in study.heads]], total, noun)
    return Shades(
        tr(one.label), unit, max(most * scale, 1e-12), heads, method_explained(method), part
    )


def _seen(study: Study, method: Method) -> tuple[Integers, int, str]:
    """(H,): on how many examples, or random orders, each head is measured; how many there are; and
    what they are called."""
    values = study.arrays.get(method.needs)
    if values is None:  # learned by training
        return np.zeros(len(study.heads), int), 0, ""
    noun = place_noun("classes", study.spec) if study.asked in EACH else "window"
    if len(values) == len(study.wanted):
        values = values[study.places[:-1][np.diff(study.places) > 0]]  # the first of each
    noun = "order" if method.rows is mean_over_runs else noun
    return (~np.isnan(values)).sum(0), len(values), noun


def _part(seen: Integers, total: int, noun: str) -> str:
    """on 96 of 872 texts, on 64 to 96 of 872 texts; "" where all heads are measured on all."""
    if not len(seen) or seen.min() == total:
        return ""
    least, most = (f"{number:,}" for number in (seen.min(), seen.max()))
    some = least if least == most else tr("{low} to {high}", low=least, high=most)
    return tr("on {some} of {all}", some=some, all=counted(total, noun))


def place_noun(asked: str, spec: ModelSpec | None) -> str:
    """What is counted: text, byte, hidden token."""
    if asked in ("classes", "states"):
        return "text" if spec is None or spec.modality == "text" else spec.modality
    token = "byte" if spec is not None and spec.vocabulary == 256 else "token"
    return f"hidden {token}" if asked == "masked" else token


# --- headgrid -------------------------------------------------------------------------------------


EDGE = 7  # px of a cell that is off keep its colour
RING = 5  # px around a cell that its rings take
WORDS, FIGURES = 30, 17  # px of width that "off" and the shortest number take
LAYER_BAR, NARROW_WALL = 150, 360  # px: the bars of layers, and the width from which they show
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
    """Heads as cells in the colours of their scores.

    switches: whether a click or a drag switches heads off and on, with Shift whole layers; else it
    chooses a head.
    """

    own_keys = (*STEPS, *ENDS, *ACTS)
    switched = Signal(object, bool)  # heads; a stroke goes on: it is undone together with the last
    pointed = Signal(object)  # a head, or None
    chosen = Signal(object)  # the head under the keyboard's cursor

    def __init__(self, name: str, switches: bool = True) -> None:
        super().__init__()
        self._switches = switches
        self.wall: Wall | None = None
        self.spec: ModelSpec | None = None
        self.off: HeadSet = frozenset()
        self.shades = Shades()
        self.at = HeadId(0, 0)
        self.room = 0  # px of height that there are without scrolling
        self._hover: HeadId | None = None
        self._way: bool | None = None  # what the drag paints: True switches off
        self._begun = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(name)

    # --- what it shows ----------------------------------------------------------------------------

    def show_model(self, spec: ModelSpec | None) -> None:
        """Another model."""
        if spec != self.spec:
            self.spec = spec
            self._lay()

    def show_off(self, off: HeadSet) -> None:
        """The heads that are off, at once."""
        if off != self.off:
            changed, self.off = off ^ self.off, off
            self._describe()
            self._refresh(*changed)

    def show_shades(self, shades: Shades) -> None:
        """The scores."""
        before, self.shades = self.shades, shades
        if bool(before.layers) != bool(shades.layers):
            self._lay()
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
        high = self.wall.height if self.wall else 0
        return QSize(320, round(high))

    # --- the mouse --------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Switch a head, or with Shift its layer; a drag goes on with the same direction."""
        head = self._at(event.position())
        if event.button() != Qt.MouseButton.LeftButton or head is None:
            return
        self.chosen.emit(head)
        self._way, self._begun = head not in self.off if self._switches else None, False
        self._paint(head, bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        head = self._at(event.position())
        if head != self._hover:
            before, self._hover = self._hover, head
            self.pointed.emit(head)
            self._refresh(before, head)
        if head is not None:
            self._paint(head, bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._way = None

    def leaveEvent(self, event: QEvent) -> None:
        before, self._hover = self._hover, None
        self.pointed.emit(None)
        self._refresh(before)

    def _paint(self, head: HeadId, layer: bool) -> None:
        if self._way is None:
            return
        row = self.wall.row(head.layer) if self.wall and layer else None
        some = frozenset(one for one, _ in row.cells) if row else frozenset({head})
        off = self.off | some if self._way else self.off - some
        if off != self.off:
            begun, self._begun = self._begun, True
            self.switched.emit(off, begun)

    def _at(self, point: QPointF) -> HeadId | None:
        return self.wall.head_at(point) if self.wall else None

    # --- the keyboard -----------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        return shows_tip(event, self, self._words_at) or super().event(event)

    def _words_at(self, place: QPointF) -> str:
        head = self._at(place)
        return "" if head is None else self.words(head)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows walk, Space switches, Shift+Space the layer."""
        key = event.key()
        if key in STEPS:
            self._step(*STEPS[Qt.Key(key)])
        elif key in ENDS:
            row = self.wall.row(self.at.layer) if self.wall else None
            if row and row.cells:
                self.chosen.emit(row.cells[-1 if key == Qt.Key.Key_End else 0][0])
        elif key in ACTS and self._switches:
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
        self.update()

    def focusOutEvent(self, event: QEvent) -> None:
        self.update()

    # --- the picture ------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._lay()

    def _lay(self) -> None:
        bars = LAYER_BAR if self.shades.layers and self.width() > NARROW_WALL else 0
        self.wall = lay(self.spec, self.width() - bars, self.room) if self.spec else None
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
        if self.wall is None:
            return
        with theme.smooth_painter(self) as painter:
            self._groups(painter, self.wall)
            asked = event.region()
            for row in self.wall.rows:
                whole = QRectF(0, row.top - RING, self.width(), row.height + 2 * RING)
                if not asked.intersects(whole.toAlignedRect()):
                    continue
                self._side(painter, row)
                if row.layer in self.shades.layers and self.wall.width + 60 < self.width():
                    self._bar(painter, row)
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
        said = tr("head {n}") if wall.size > 46 else "{n}"
        every = 1 if wall.size > 17 else 4
        for head, middle in wall.columns:
            if head % every == 0:
                box = QRectF(middle - 30, 2, 60, 18)
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, said.format(n=head))

    def _side(self, painter: QPainter, row: HeadRow) -> None:
        """The number of a layer, and a funnel where it goes to another level."""
        assert self.wall is not None
        now = theme.current()
        first = self.wall.columns[0][1] - self.wall.size / 2
        middle = row.top + row.height / 2
        chosen = row.layer == self.at.layer
        painter.setFont(theme.font(0.92, 600 if chosen else 400))
        painter.setPen(now.text)
        box = QRectF(first - 44, middle - 10, 34, 20)
        painter.drawText(box, theme.TO_RIGHT, str(row.layer))
        if row.kind in ("down", "up"):
            x, sign = first - 52, 1 if row.kind == "down" else -1
            wide, narrow = middle - 4 * sign, middle + 4 * sign
            painter.setPen(QPen(now.secondary, 1.2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            corners = ((x - 7, wide), (x + 7, wide), (x + 3.5, narrow), (x - 3.5, narrow))
            painter.drawPolygon(QPolygonF([QPointF(*one) for one in corners]))

    def _bar(self, painter: QPainter, row: HeadRow) -> None:
        """The number of a layer as a bar from the middle, to the right where it is positive."""
        assert self.wall is not None
        now, value = theme.current(), self.shades.layers[row.layer]
        most = max(map(abs, self.shades.layers.values())) or 1.0
        left, right = self.wall.width, min(self.width() - 16.0, self.wall.width + LAYER_BAR)
        half = (right - left - 50) / 2
        middle, long = left + half, half * abs(value) / most
        start = middle if value > 0 else middle - long
        colour = ink.sides()[1 if value > 0 else 0]
        painter.fillRect(QRectF(start, row.top + 4, long, row.height - 8), colour)
        painter.fillRect(QRectF(round(middle), row.top, 1, row.height), now.edge)
        painter.setPen(now.text)
        painter.setFont(theme.font(0.85))
        box = QRectF(left, row.top, right - left, row.height)
        painter.drawText(box, theme.TO_RIGHT, sentences.with_sign(value, 2))

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
            painter.setPen(text_colour(ground))
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


# --- bar ------------------------------------------------------------------------------------------


STOPS = 41
HIGH, NARROW_BAR = 44, 520  # px


class ShadeBar(QWidget):
    """harmful [colours] needed, numbers and the unit beneath."""

    def __init__(self) -> None:
        super().__init__()
        self.shades = Shades()
        self.setFixedHeight(HIGH)

    def sizeHint(self) -> QSize:
        return QSize(300, HIGH)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """A narrow bar has its unit beneath."""
        self._fit()

    def _fit(self) -> None:
        lines = (self.width() <= NARROW_BAR) + bool(self.shades.part)
        self.setFixedHeight(HIGH + 16 * lines)

    def show_shades(self, shades: Shades) -> None:
        """Another scale."""
        self.shades = shades
        self._fit()
        self.setToolTip(tip(shades.told))
        self.setAccessibleName(
            tr(
                "Colours: {low} is harmful, {high} needed; {unit}",
                low=decimals(-shades.limit, 1, signed=True),
                high=decimals(shades.limit, 1, signed=True),
                unit=", ".join(filter(None, (shades.unit, shades.part))),
            )
            if shades.label else tr("Colours: nothing is measured yet")
        )  # fmt: skip
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        now = theme.current()
        with theme.smooth_painter(self) as painter:
            painter.setFont(theme.font(0.92))
            measure = painter.fontMetrics().horizontalAdvance
            ends = tr("harmful"), tr("needed"), tr("switched off")
            before, after, off = map(measure, ends)
            legend = self.width() > before + after + off + 240
            right = self.width() - 16 - (off + 52 if legend else 0)
            bar = QRectF(16 + before + 10, 3, 0, 14)
            bar.setRight(max(bar.left() + 60, min(bar.left() + 300, right - after - 10)))
            painter.setPen(now.secondary)
            painter.drawText(QRectF(16, 0, before + 4, 20), theme.TO_LEFT, ends[0])
            painter.drawText(QRectF(bar.right() + 10, 0, after + 4, 20), theme.TO_LEFT, ends[1])
            self._bar(painter, bar)
            if legend:
                box = QRectF(bar.right() + after + 34, 2, 20, 16)
                painter.setPen(QPen(now.text, 1.2))
                painter.setBrush(now.pane)
                painter.drawRoundedRect(box, 4, 4)
                painter.setBrush(hatching(faint(now.secondary, 0.6), self.devicePixelRatioF()))
                painter.drawRoundedRect(box, 4, 4)
                painter.setPen(now.secondary)
                painter.setFont(theme.font(0.92))
                painter.drawText(QRectF(box.right() + 8, 0, off + 4, 20), theme.TO_LEFT, ends[2])
            self._numbers(painter, bar)

    def _bar(self, painter: QPainter, bar: QRectF) -> None:
        now = theme.current()
        if self.shades.label:
            colours = QLinearGradient(bar.topLeft(), bar.topRight())
            for at in range(STOPS):
                part = at / (STOPS - 1)
                colours.setColorAt(part, colour(2 * part - 1, now.dark))
            painter.setBrush(colours)
        else:
            painter.setBrush(now.raised)
        painter.setPen(QPen(now.edge, 1))
        painter.drawRect(bar)

    def _numbers(self, painter: QPainter, bar: QRectF) -> None:
        now, one = theme.current(), self.shades
        painter.setFont(theme.font(0.85))
        painter.setPen(now.secondary)
        if not one.label:
            painter.drawText(
                QRectF(bar.left(), 22, bar.width(), 18), theme.TO_LEFT, tr("not measured yet")
            )
            return
        end = 0.0
        for part in (-1.0, 0.0, 1.0):
            x = bar.left() + (part + 1) / 2 * bar.width()
            painter.drawLine(QPointF(x, bar.bottom()), QPointF(x, bar.bottom() + 4))
            said = decimals(part * one.limit, 1, signed=True)
            wide = painter.fontMetrics().horizontalAdvance(said)
            painter.drawText(QRectF(x - wide / 2 - 2, 22, wide + 4, 18), theme.TO_LEFT, said)
            end = x + wide / 2
        if self.width() <= NARROW_BAR:
            end, top = 4.0, 39
        else:
            top = 22
        room = self.width() - 12 - end - 12
        painter.drawText(QRectF(16, top + 17, self.width() - 28, 18), theme.TO_LEFT, one.part)
        said = painter.fontMetrics().elidedText(one.unit, Qt.TextElideMode.ElideRight, round(room))
        painter.drawText(QRectF(end + 12, top, room, 18), theme.TO_LEFT, said)
