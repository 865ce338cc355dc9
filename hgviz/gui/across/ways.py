"""The hourglass of ways: how much of an answer goes down to each level and comes back, drawn."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QHelpEvent, QPainter, QPaintEvent, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from hgviz.analysis.together import reach
from hgviz.gui import theme
from hgviz.gui.across.composed import Across
from hgviz.gui.language import tr
from hgviz.gui.views.ink import faint, hatching
from hgviz.gui.views.sayings import share

WIDE = 188  # px
BAR = 18  # px: a level
NARROWER = 0.62  # from level to level
UNIT = 46.0  # px that all of an answer is wide
HEAD, FOOT = 30, 26  # px over and under the picture
MIDDLE = 0.44  # of the width
POOLED = "{share} is pooled, going down from {outer} to {inner}"
LOOKED_DOWN = "{share} is looked at, going down from {outer} to {inner}"
COPIED = "{share} is copied, going up from {inner} to {outer}"
LOOKED_UP = "{share} is looked at, going up from {inner} to {outer}"


@dataclass(frozen=True, slots=True)
class Way:
    """One connection: a ribbon from (x, y) to (x, y), so wide, and what it is in words."""

    start: tuple[float, float]
    end: tuple[float, float]
    wide: float
    looked: bool
    words: str
    label: str = ""
    label_at: tuple[float, float] = (0.0, 0.0)


class Ways(QWidget):
    """Levels as bars, narrower inwards; ribbons between them as wide as what goes there."""

    def __init__(self) -> None:
        super().__init__()
        self.across: Across | None = None
        self.ribbons: tuple[Way, ...] = ()
        self.deepest = ""
        self.setFixedWidth(WIDE)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setMouseTracking(True)
        self.setAccessibleName(tr("Which way the answer took"))

    def sizeHint(self) -> QSize:
        """Narrow and high."""
        return QSize(WIDE, 360)

    def show_ways(self, across: Across) -> None:
        """Show the answer of a row; nothing where there is one level only."""
        self.across = across
        told = [one.words for one in self._laid()]
        self.setAccessibleDescription("; ".join(told))
        self.update()

    @property
    def labels(self) -> tuple[str, ...]:
        """The levels from top to bottom: down to the waist and back."""
        if self.across is None:
            return ()
        spec = self.across.of.spec
        down = [one.label for one in spec.levels]
        return (*down, *reversed(down[:-1]))

    # --- where things are -------------------------------------------------------------------------

    def _bars(self) -> list[QRectF]:
        count = len(self.labels)
        room = self.height() - HEAD - FOOT - BAR
        step = room / max(1, count - 1)
        out = []
        for number in range(count):
            half = 0.38 * WIDE * NARROWER ** min(number, count - 1 - number)
            y = HEAD + step * number
            out.append(QRectF(MIDDLE * WIDE - half, y, 2 * half, BAR))
        return out

    def _laid(self) -> tuple[Way, ...]:
        """Every ribbon, from the widest level in."""
        self.ribbons = ()
        if self.across is None or self.across.row is None or not self.across.row.crossings:
            return ()
        bars, found = self._bars(), []
        count = len(bars)
        levels = self.across.of.spec.levels
        nothing = self.across.row.nothing
        far = reach(self.across.of, self.across.row.levels, self.across.query or 0)
        backs = ["" if one != one else tr("{n:,.0f} back", n=one) for one in far] or [""] * count
        before = 1.0 - (float(nothing[0]) if nothing is not None else 0.0)
        for level, one in enumerate(self.across.row.crossings):
            through = float(one.through[0])
            names = levels[level].label, levels[level + 1].label
            outer, back = bars[level], bars[count - 1 - level]
            inner, inner_back = bars[level + 1], bars[count - 2 - level]
            stays = max(0.0, before - through)
            x = outer.left() + 5 + UNIT * stays / 2
            found.append(
                Way((x, outer.bottom()), (x, back.top()), UNIT * stays, False,
                    self._stays(stays, names[0], backs[level]),
                    f"{share(round(stays, 6))}\n{backs[level]}",
                    (x + UNIT * stays / 2 + 5, (outer.bottom() + inner.top()) / 2))
            )  # fmt: skip
            down = (float(one.pooled[0]), POOLED), (float(one.looked_down[0]), LOOKED_DOWN)
            up = (float(one.copied[0]), COPIED), (float(one.looked_up[0]), LOOKED_UP)
            for parts, top, bottom in ((down, outer, inner), (up, inner_back, back)):
                found += _pair(parts, top, bottom, names)
            before = through
        self.deepest = backs[len(levels) - 1]
        self.ribbons = tuple(found)
        return self.ribbons

    def _stays(self, part: float, level: str, back: str) -> str:
        said = "{share} stays at {level}, from {back}" if back else "{share} stays at {level}"
        return tr(said, share=share(part), level=level, back=back)

    # --- painting ---------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """The ribbons, then the bars with their names."""
        now = theme.current()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            font = theme.font(0.85)
            painter.setFont(theme.font(0.85, 600))
            painter.setPen(now.secondary)
            painter.drawText(QPointF(8, 18), tr("Which way, from how far"))
            for one in self._laid():
                self._ribbon(painter, one)
            tints = now.silhouette
            painter.setFont(theme.font(0.85, 600))
            for number, (bar, label) in enumerate(zip(self._bars(), self.labels, strict=True)):
                depth = min(number, len(self.labels) - 1 - number)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(tints[min(depth, 2)])
                painter.drawRoundedRect(bar, 3, 3)
                painter.setPen(now.text)
                painter.drawText(bar, Qt.AlignmentFlag.AlignCenter, label)
            painter.setFont(font)
            painter.setPen(now.text)
            metrics, bars = QFontMetricsF(font), self._bars()
            roomy = len(bars) > 1 and bars[1].top() - bars[0].bottom() > 3 * metrics.height()
            for one in self.ribbons:
                if one.label:
                    x, y = one.label_at
                    lines = one.label.split("\n")[: 2 if roomy else 1]
                    for number, words in enumerate(lines):
                        x = min(x, WIDE - metrics.horizontalAdvance(words) - 2)
                        painter.setPen(now.secondary if number else now.text)
                        down = metrics.ascent() / 2 - 1 + number * metrics.height()
                        painter.drawText(QPointF(x, y + down), words)
            self._waist(painter)
            self._key(painter)

    def _ribbon(self, painter: QPainter, one: Way) -> None:
        if one.wide <= 0:
            return
        now = theme.current()
        half = max(one.wide, 0.6) / 2
        (x0, y0), (x1, y1) = one.start, one.end
        shape = QPolygonF(
            [QPointF(x0 - half, y0), QPointF(x0 + half, y0), QPointF(x1 + half, y1),
             QPointF(x1 - half, y1)]
        )  # fmt: skip
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(_ink(one.looked))
        painter.drawPolygon(shape)
        if one.looked:
            painter.setBrush(hatching(faint(now.pane, 0.7), self.devicePixelRatioF()))
            painter.drawPolygon(shape)

    def _waist(self, painter: QPainter) -> None:
        """How far back what went through the innermost level comes from, beside it."""
        bars = self._bars()
        bar = bars[len(bars) // 2] if bars else QRectF()
        if self.deepest and self.ribbons:
            painter.setPen(theme.current().secondary)
            box = QRectF(bar.right() + 6, bar.top(), WIDE - bar.right() - 8, bar.height())
            side = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(box, side, self.deepest)

    def _key(self, painter: QPainter) -> None:
        """What a plain and a hatched ribbon are."""
        now, y = theme.current(), self.height() - 14.0
        x = 8.0
        painter.setFont(theme.font(0.85))
        metrics = QFontMetricsF(theme.font(0.85))
        for looked, said in ((False, tr("pooled, copied")), (True, tr("attention"))):
            painter.setPen(Qt.PenStyle.NoPen)
            box = QRectF(x, y, 10, 9)
            painter.setBrush(_ink(looked))
            painter.drawRect(box)
            if looked:
                painter.setBrush(hatching(faint(now.pane, 0.7), self.devicePixelRatioF()))
                painter.drawRect(box)
            painter.setPen(now.secondary)
            painter.drawText(QPointF(x + 14, y + 9), said)
            x += 24 + metrics.horizontalAdvance(said)

    def event(self, event: QEvent) -> bool:
        """What a ribbon is, in words."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.said_at(QPointF(event.pos())), self)
            return True
        return super().event(event)

    def said_at(self, place: QPointF) -> str:
        """The words of the ribbon at a place, "" beside all of them."""
        for one in self.ribbons:
            (x0, y0), (x1, y1) = one.start, one.end
            if y0 <= place.y() <= y1:
                part = (place.y() - y0) / max(1e-9, y1 - y0)
                if abs(place.x() - (x0 + part * (x1 - x0))) <= max(one.wide, 6.0) / 2:
                    return one.words
        return ""


def _pair(
    parts: tuple[tuple[float, str], tuple[float, str]],
    top: QRectF,
    bottom: QRectF,
    names: tuple[str, str],
) -> list[Way]:
    """Two ribbons side by side at the right of two bars: by pooling or copying, by attention.

    names: of the level outside and of the one further in.
    """
    widths = [UNIT * value for value, _ in parts]
    ends = []
    for bar in (top, bottom):
        right = bar.right() - 4
        ends.append((right - widths[1] - widths[0] / 2, right - widths[1] / 2))
    out = []
    y0, y1 = top.bottom(), bottom.top()
    total = sum(value for value, _ in parts)
    for number, (value, does) in enumerate(parts):
        label = share(round(total, 6)) if number else ""
        middle = (ends[0][1] + ends[1][1] + widths[1]) / 2
        at = (middle + 5, (y0 + y1) / 2)
        out.append(
            Way((ends[0][number], y0), (ends[1][number], y1), widths[number], bool(number),
                tr(does, share=share(value), outer=names[0], inner=names[1]), label, at)
        )  # fmt: skip
    return out


def _ink(looked: bool) -> QColor:
    now = theme.current()
    return now.mark if looked else faint(now.mark, 0.55)
