"""The grid of cells on screen: one picture, the chosen cell, what is under the pointer, keys."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.sweeps import about
from hgviz.gui.sweeps.layout import NONE, Layout
from hgviz.gui.sweeps.raster import BAND, CODE, HIGHEST, Geometry, draw, geometry
from hgviz.gui.views.cellcard import CellCard
from hgviz.gui.views.ink import focus_ring
from hgviz.sweep import Standing
from hgviz.tasks.plotting import OWN

ROW = Template(
    "<tr><td style='color:$colour'>$name&nbsp;&nbsp;</td><td>$words</td></tr>"
)  # of what is said beside a cell
PAD = 16  # px around
KIND, SUB, SEED = 20, 17, 18  # px of height of the three heads
NAMES, NARROWEST = 240, 72  # px at most, and at least, for what rows are called
MIDDLE = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
SEEDS = 13  # px of a column from which its seed is written
ARROWS = {
    Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}  # fmt: skip
KEYS = (*ARROWS, Qt.Key.Key_Home, Qt.Key.Key_End, Qt.Key.Key_Return, Qt.Key.Key_Enter)


class Canvas(QWidget):
    """All cells of a study. picked: the number of a cell, NONE for no more; entered: it is wanted;
    pointed: what is under the pointer, in a line, "" for nothing."""

    picked = Signal(int)
    entered = Signal()
    pointed = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAccessibleName(tr("Cells of the study"))
        self.card = CellCard(self)
        self.layout_: Layout | None = None
        self.standings: Sequence[Standing] = ()
        self.geo: Geometry | None = None
        self.chosen = NONE
        self._origin = (0, 0)  # px of the first cell
        self._picture: QPixmap | None = None
        self._under: tuple[tuple[int, int], tuple[int, int]] | None = None

    # --- what the view tells it -------------------------------------------------------------------

    def show_cells(self, layout: Layout, standings: Sequence[Standing], chosen: int) -> None:
        """Show how cells stand now."""
        moved = layout is not self.layout_
        self.layout_, self.standings, self.chosen = layout, standings, chosen
        if moved or self.geo is None:
            self._place()
        self._picture = None
        if self._under is not None:
            self._tell()
        self._name()
        self.update()

    def choose(self, chosen: int) -> None:
        """Frame another cell."""
        self.chosen = chosen
        self._name()
        self.update()

    def box(self, cell: int) -> QRectF:
        """Where a cell is drawn."""
        assert self.layout_ is not None and self.geo is not None
        row, column = (int(one) for one in self.layout_.places[cell])
        return self.geo.box(row, column).translated(*self._origin)

    @property
    def wanted(self) -> int:
        """px of height that cells of their largest size would take."""
        rows = len(self.layout_.rows) if self.layout_ is not None else 1
        bands = len(self.layout_.bands) if self.layout_ is not None else 1
        return self._top + rows * HIGHEST + (bands - 1) * BAND + 16

    def sizeHint(self) -> QSize:
        """Whatever is there."""
        return QSize(640, 360)

    # --- places -----------------------------------------------------------------------------------

    @property
    def _top(self) -> int:
        """px of height of the heads of columns."""
        return 8 + KIND + (SUB if self._subs else 0) + SEED

    @property
    def _subs(self) -> bool:
        return self.layout_ is not None and any(name for name, *_ in self.layout_.groups)

    def _place(self) -> None:
        """Where names, heads and cells have room."""
        layout = self.layout_
        if layout is None or not layout.rows:
            self.geo = None
            return
        metrics = QFontMetricsF(theme.font(0.92, 600))
        need = max((metrics.horizontalAdvance(name) for name in self._names()), default=0.0)
        names = max(NARROWEST, min(NAMES, self.width() // 4, round(need) + 12))
        left = PAD + names
        top = self._top
        wide, high = self.width() - left - PAD, self.height() - top - 12
        self.geo = geometry(layout, max(40, wide), max(24, high))
        self._origin = (left, top)

    def _names(self) -> list[str]:
        """What every row is called; what all have in common is left out."""
        assert self.layout_ is not None
        rows = self.layout_.rows
        many = [len({row[at] for row in rows}) > 1 for at in range(3)]
        if not any(many):  # "own" by itself says nothing; then the model does
            own = {row[2] for row in rows} == {OWN}
            many = [False, own, not own]
        out = []
        for row in rows:
            parts = [name for name, told in zip(row, many, strict=True) if told and name]
            some = parts or [row[2] or row[1] or row[0]]
            out.append(", ".join(map(about.called, some)))
        return out

    # --- painting ---------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Heads, names, the picture of all cells, and what is chosen or pointed at."""
        geo, layout = self.geo, self.layout_
        if geo is None or layout is None:
            return
        with QPainter(self) as painter:
            self._heads(painter, layout, geo)
            self._rows(painter, layout, geo)
            if self._picture is None:
                self._picture = self._drawn(layout, geo)
            painter.drawPixmap(QPointF(*self._origin), self._picture)
            self._marks(painter, geo)

    def _drawn(self, layout: Layout, geo: Geometry) -> QPixmap:
        ratio = self.devicePixelRatioF()
        wide, high = geo.size
        out = QPixmap(round((wide + 1) * ratio), round((high + 1) * ratio))
        out.setDevicePixelRatio(ratio)
        out.fill(Qt.GlobalColor.transparent)
        with QPainter(out) as painter:
            draw(painter, layout, self.standings, geo, ratio)
        return out

    def _heads(self, painter: QPainter, layout: Layout, geo: Geometry) -> None:
        now = theme.current()
        left, _ = self._origin
        starts = [self._across(geo, first, end)[0] for _, first, end in layout.blocks]
        ends = [*starts[1:], self.width() - 4.0]  # a narrow block has the room up to the next
        for (name, *_), x0, x1 in zip(layout.blocks, starts, ends, strict=True):
            room = QRectF(x0, 8, max(x1 - x0 - 8, 24), KIND)
            self._say(painter, room, about.kind(name), theme.font(0.92, 600), now.text, LEFT)
        if self._subs:
            for name, first, end in layout.groups:
                x0, x1 = self._across(geo, first, end)
                room = QRectF(x0, 8 + KIND, x1 - x0 - 4, SUB)
                self._say(painter, room, name, theme.font(0.85), now.secondary, LEFT)
        if geo.wide >= SEEDS and not geo.together:
            y = self._top - SEED
            for column, x in zip(layout.columns, geo.lefts, strict=True):
                room = QRectF(left + x - 2, y, geo.wide + 3, SEED - 4)
                self._say(painter, room, column.seed, theme.font(0.85), now.secondary, MIDDLE)
            room = QRectF(PAD, y, left - PAD - 8, SEED - 4)
            self._say(painter, room, tr("seed"), theme.font(0.85), now.secondary, RIGHT)

    def _across(self, geo: Geometry, first: int, end: int) -> tuple[float, float]:
        """Where columns begin and end on screen."""
        drawn = [
            x for x, (a, b) in zip(geo.lefts, geo.columns, strict=True) if a < end and b > first
        ]
        left = self._origin[0]
        return left + drawn[0], left + drawn[-1] + geo.wide

    def _rows(self, painter: QPainter, layout: Layout, geo: Geometry) -> None:
        now, names = theme.current(), self._names()
        left, top = self._origin
        taken = -1e9
        for y, (first, _) in zip(geo.tops, geo.rows, strict=True):
            middle = top + y + geo.high / 2
            if middle - 8 < taken:
                continue
            taken = middle + 8
            room = QRectF(PAD, middle - 9, left - PAD - 8, 18)
            font = theme.font(0.92 if geo.high >= 16 else 0.85, 500)
            self._say(painter, room, names[first], font, now.text, RIGHT)

    def _say(self, painter, room, words, font, colour, align) -> None:  # type: ignore[no-untyped-def]
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        painter.setPen(colour)
        shown = metrics.elidedText(words, Qt.TextElideMode.ElideRight, room.width())
        if len(shown) > 1 or shown == words:  # three dots alone say nothing
            painter.drawText(room, align, shown)

    def _marks(self, painter: QPainter, geo: Geometry) -> None:
        now = theme.current()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if self._under is not None:
            (row, _), (column, _) = self._under
            box = geo.box(row, column).translated(*self._origin)
            painter.setPen(QPen(now.text, 1))
            painter.drawRoundedRect(box.adjusted(-1.5, -1.5, 1.5, 1.5), 3, 3)
        if self.chosen != NONE and self.chosen < len(self.standings):
            box = self.box(self.chosen).adjusted(-2, -2, 2, 2)
            painter.setPen(QPen(now.mark, 2.5))
            painter.drawRoundedRect(box, 4, 4)
        if self.hasFocus():
            focus_ring(painter, QRectF(self.rect()))

    # --- pointer ----------------------------------------------------------------------------------

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Tell of what is under the pointer."""
        found = self._found(event.position())
        if found != self._under:
            self._under = found
            self._tell()
            self.update()

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is pointed at."""
        self._under = None
        self.card.hide()
        self.pointed.emit("")
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the cell."""
        if event.button() == Qt.MouseButton.LeftButton:
            found = self._found(event.position())
            self.picked.emit(NONE if found is None else self._foremost(found))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Open it."""
        if self._found(event.position()) is not None:
            self.entered.emit()

    def _found(self, at: QPointF) -> tuple[tuple[int, int], tuple[int, int]] | None:
        if self.geo is None or self.layout_ is None:
            return None
        found = self.geo.under(at.x() - self._origin[0], at.y() - self._origin[1])
        return found if found is not None and len(self._inside(found)) else None

    def _inside(self, found: tuple[tuple[int, int], tuple[int, int]]) -> list[int]:
        assert self.layout_ is not None
        (top, bottom), (left, right) = found
        there = self.layout_.at[top:bottom, left:right]
        return [int(one) for one in there[there != NONE]]

    def _foremost(self, found: tuple[tuple[int, int], tuple[int, int]]) -> int:
        """Of several, the one that most needs somebody: failed, then running, then any."""
        ranks = {"failed": 0, "running": 1, "blocked": 3}
        return min(self._inside(found), key=lambda one: ranks.get(self.standings[one].state, 2))

    def _tell(self) -> None:
        if self._under is None or self.geo is None:
            self.card.hide()
            self.pointed.emit("")
            return
        cells = self._inside(self._under)
        if len(cells) == 1:
            one = self.standings[cells[0]]
            self.card.say(card_of(one))
            self.pointed.emit(about.line_of(one))
        else:
            counts = np.bincount([CODE[self.standings[one].state] for one in cells], minlength=5)
            parts = ", ".join(
                tr(about.COUNTS[state], n=int(count))
                for state, count in zip(about.STATES, counts, strict=True) if count
            )  # fmt: skip
            many = about.cells(len(cells))
            self.card.say(f"<b>{escape(many)}</b><br>{escape(parts)}")
            self.pointed.emit(f"{many}: {parts}")
        (row, _), (column, _) = self._under
        over = self.mapTo(self.card.parentWidget(), QPoint(0, 0))
        box = self.geo.box(row, column).translated(*self._origin).translated(QPointF(over))
        self.card.stand(box, QRect(), QRectF(self.rect()).translated(QPointF(over)))
        self.card.raise_()

    def _explained(self, at: QPointF) -> str:
        """What the kind of cells finds over whose columns a place is; "" among the cells."""
        if self.geo is None or self.layout_ is None or at.y() > self._top:
            return ""
        for work, first, end in self.layout_.blocks:
            left, right = self._across(self.geo, first, end)
            if left <= at.x() <= right:
                return about.explained("Found", work)
        return ""

    # --- keys -------------------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Arrows walk the cells while they have the keyboard; heads say what stands below them."""
        if isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self._explained(QPointF(event.pos())), self)
            return True
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
            if plain and (event.key() in KEYS or event.key() == Qt.Key.Key_Escape):
                event.accept()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows step, Home and End go to the ends of the row, Enter opens, Esc lets go."""
        layout, key = self.layout_, event.key()
        if layout is None or not len(self.standings):
            super().keyPressEvent(event)
            return
        here = self.chosen
        if key in ARROWS:
            self.picked.emit(layout.step(here, *ARROWS[Qt.Key(key)]) if here != NONE else 0)
        elif key in (Qt.Key.Key_Home, Qt.Key.Key_End) and here != NONE:
            self.picked.emit(layout.ends(here, key == Qt.Key.Key_End))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and here != NONE:
            self.entered.emit()
        elif key == Qt.Key.Key_Escape:
            self.picked.emit(NONE)
        else:
            super().keyPressEvent(event)

    # --- events -----------------------------------------------------------------------------------

    def _name(self) -> None:
        there = 0 <= self.chosen < len(self.standings)
        self.setAccessibleDescription(about.line_of(self.standings[self.chosen]) if there else "")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Cells as large as there is room."""
        super().resizeEvent(event)
        self._place()
        self._picture, self._under = None, None
        self.card.hide()

    def changeEvent(self, event: QEvent) -> None:
        """Another theme, or another font."""
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self._picture = None
            self._place()
        super().changeEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The ring."""
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """No ring."""
        super().focusOutEvent(event)
        self.update()


def card_of(one: Standing) -> str:
    """Everything known of a cell, as HTML."""
    colour = theme.current().secondary.name()
    rows = "".join(
        ROW.substitute(colour=colour, name=escape(tr(name)), words=escape(words[:160]))
        for name, words in about.facts(one)
    )
    return f"<b>{escape(about.name(one.cell))}</b><table>{rows}</table>"
