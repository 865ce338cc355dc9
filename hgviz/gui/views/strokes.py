"""How the hourglass is painted: one pass from the silhouette to the frames."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontMetricsF,
    QImage,
    QPainter,
    QPainterPath,
    QPen,
    QPolygonF,
)

from hgviz.core import HeadId, ModelSpec, Off
from hgviz.gui import theme
from hgviz.gui.atlas import Atlas
from hgviz.gui.ink import faint, hatching
from hgviz.gui.language import tr
from hgviz.gui.views import words
from hgviz.gui.views.silhouette import FLAT, Label, Layout, Rect, Residual

MARGIN = 16  # the padding of a pane
BAR = 56  # the longest bar of a cost


@dataclass(frozen=True, slots=True)
class Scene:
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
    off: Off = frozenset()

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
        return tr("Source in") if source else tr(f"{words.READ[self.spec.modality]} in"), out

    def lines(self, level: int) -> tuple[str, ...]:
        """What is written under the name of a level: positions, tokens each, cost."""
        stride = self.spec.levels[level].stride
        if self.plain:
            named = {"slots": "slot"}.get(self.spec.levels[level].sequence, self.nouns[level])
            return () if self.ghost else (words.counted(self.lengths[level], named),)
        out = [] if self.ghost else [words.counted(self.lengths[level], "position")]
        if stride is not None:
            out += [
                tr("{many} each", many=words.counted(stride, self.noun)),
                tr("cost {part}", part=words.fraction(stride**2)),
            ]
        return tuple(out)


@dataclass(frozen=True, slots=True)
class Look:
    """What changes while looking: the frames, and the part that is in view."""

    chosen: HeadId | None
    ringed: HeadId | None
    opened: frozenset[HeadId]
    shown: QRectF


class Brush:
    """One painting of the glass, from the silhouette to the frames."""

    def __init__(self, painter: QPainter, layout: Layout, scene: Scene, look: Look) -> None:
        self.painter, self.layout, self.scene, self.look = painter, layout, scene, look
        self.theme = theme.current()

    def paint(self, image: QImage, atlas: Atlas) -> None:
        """Everything, back to front."""
        self._silhouette()
        for one in self.layout.residuals:
            self._residual(one)
        self._titles()
        self._cells(image, atlas)
        self._numbers()
        for label in self.layout.labels:
            self._label(label)
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
                painter.drawRect(_rect(band.box))
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
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
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
            for head, cell in row.cells:
                box = _rect(cell)
                edge = now.press if row.layer == self.scene.running else now.edge
                path = QPainterPath()
                path.addRoundedRect(box, radius, radius)
                missing = row.layer in self.scene.missing
                painter.fillPath(path, now.raised if missing else now.pane)
                if row.layer in self.scene.only:
                    painter.fillPath(path, QBrush(now.unseen_hatch, Qt.BrushStyle.BDiagPattern))
                elif not missing and (spot := atlas.places.get(HeadId(row.layer, head))):
                    self._blit(path, box, image, QRect(*spot))
                if HeadId(row.layer, head) in self.scene.off:
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
            side = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            self._write(box, str(row.layer), font, colour, side)
            if self.scene.spec.layers[row.layer].role == "cross" and row.height >= 30:
                under, quiet = box.translated(0, 13), self.theme.secondary
                self._write(under, tr("cross"), theme.font(0.85), quiet, side)

    def _label(self, label: Label) -> None:
        """The name of a level, kept in view while any of its rows is."""
        now = self.theme
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        x, name = MARGIN, theme.font(1.08, 600)
        y = self._pinned(label)
        high = QFontMetricsF(name).height()
        colour = now.text if label.full else now.secondary
        title = words.level(self.scene.spec, label.level)
        if self.scene.plain and len(self.scene.spec.levels) == 1:
            title = tr(words.READ[self.scene.spec.modality])
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

    def _pinned(self, label: Label) -> float:
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
            for number, cell in row.cells:
                head = HeadId(row.layer, number)
                here = head == chosen
                if here:
                    self._frame(cell, now.mark, 3, Qt.PenStyle.SolidLine)
                elif head in self.look.opened and row.layer not in self.scene.missing:
                    self._frame(cell, now.mark, 2, Qt.PenStyle.DashLine)
                if head == self.look.ringed and not here:
                    self._frame(cell, now.text, 1.5, Qt.PenStyle.SolidLine)

    def _frame(self, cell: Rect, colour: QColor, width: float, style: Qt.PenStyle) -> None:
        small = self.layout.size < FLAT
        out = width / 2 - 0.5 if small else width / 2 + 0.5
        pen = QPen(colour, width, style)
        if style == Qt.PenStyle.DashLine:
            pen.setDashPattern([3, 1.6])
        self.painter.setBrush(Qt.BrushStyle.NoBrush)
        self.painter.setPen(pen)
        radius = 2 if small else 5
        self.painter.drawRoundedRect(_rect(cell).adjusted(-out, -out, out, out), radius, radius)

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


def _rect(one: Rect) -> QRectF:
    return QRectF(one.x, one.y, one.width, one.height)
