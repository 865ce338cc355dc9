"""One map or three on a canvas: pan, zoom, point, and what a cell says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import (
    QEvent,
    QObject,
    QPoint,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import (
    QHelpEvent,
    QHideEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QLabel,
    QSizePolicy,
    QStyle,
    QToolTip,
    QWidget,
)

from hgviz.core import Floats, HeadId
from hgviz.gui import ink, sentences, theme, tiles
from hgviz.gui.grid import AxisTextCache, Bools, MapAxis, Marks, Names, Viewport
from hgviz.gui.ink import CellCard, Cross, MapPicture, MapScene, Pixels, Sentence
from hgviz.gui.language import tr
from hgviz.gui.opened import Lack, OpenedMap, OpenedPair, Opener, There
from hgviz.gui.tiles import Key, Part, Quality, Readers, Source, Tiles
from hgviz.gui.widgets import ARROWS, NOTCH, hbox, label, vbox
from hgviz.maps import Rule
from hgviz.maps.overview import SIGNED_ERROR, UNSIGNED_ERROR
from hgviz.maps.rule import StreamingWindow

if TYPE_CHECKING:
    from hgviz.gui.jobs import Lanes

# --- readings -------------------------------------------------------------------------------------


HINT = "Point at a cell to read it; click to keep its query."
END = Template(
    '<tr><td style="$note;padding-right:8px">$name</td>'
    '<td align="right" style="padding-right:8px">$glyph</td><td>$place</td></tr>'
)
CARD = Template(
    '<span style="$big">$value</span>&nbsp;&nbsp;<span style="$note">$what</span>'
    '<table cellspacing="0" cellpadding="1" style="margin-top:4px">$ends</table>'
)
MARK = Template('<span style="font-family:$family;font-weight:600;color:$colour">$text</span>')
BOLD = Template('<span style="font-weight:600;color:$colour">$text</span>')


@dataclass(frozen=True, slots=True)
class CellReading:
    """One row of a head's whole map, and the column looked at.

    weights (keys,): the row; seen: whether the query could look there; off: it is switched off;
    near: how many first and latest keys it sees, None for all.
    """

    head: HeadId
    rows: Names
    columns: Names
    row: int
    weights: Floats
    column: int | None = None
    seen: bool = True
    signed: bool = False
    off: bool = False
    near: StreamingWindow = None

    @property
    def weight(self) -> float:
        """The weight at the column; 0 without one."""
        return float(self.weights[self.column]) if self.column is not None else 0.0

    @property
    def total(self) -> float:
        """What the row adds up to."""
        return float(self.weights.sum(dtype=np.float64))

    def sentence(self) -> str:
        """HTML: "s puts 89 % of its weight on . 31 letters back."."""
        query = _mark(self.rows.glyph(self.row))
        if self.off:
            return tr("Head {head} is switched off: it adds nothing to {query}.",
                      head=self.head, query=query)  # fmt: skip
        if self.column is None:
            strongest = int(np.abs(self.weights).argmax())
            if self.weights[strongest] == 0:
                return tr("{query} attends to nothing here.", query=query)
            said = "{query} attends most to {key}: {amount}{away}. {sum}"
            amount = self._amount(float(self.weights[strongest]))
            return self._said(said, query, strongest, amount)
        if not self.seen:
            key = _mark(self.columns.glyph(self.column))
            return tr("{key} is masked for {query}: {why}.", key=key, query=query,
                      why=self._why())  # fmt: skip
        if self.weight == 0:
            return self._said("{query} puts nothing on {key}{away}. {sum}", query, self.column)
        if not self.signed:
            said = "{query} puts {amount} of its weight on {key}{away}. {sum}"
            return self._said(said, query, self.column, _bold(share(self.weight)))
        said = (
            "{query} adds {amount} of {key}{away}. {sum}"
            if self.weight > 0
            else "{query} takes away {amount} of {key}{away}. {sum}"
        )
        return self._said(said, query, self.column, _bold(sentences.weight(abs(self.weight), 3)))

    def card(self) -> str:
        """HTML: the weight, large, and the two ends."""
        now = theme.current()
        if self.column is None:
            return ""
        note = f"color:{now.secondary.name()}"
        big = f"font-size:{theme.font(1.55).pixelSize()}px;font-weight:600"
        if not self.seen:
            value, what = "–", self._why()
        elif self.signed:
            value = sentences.with_sign(self.weight, 2)
            what = tr("is taken away") if self.weight < 0 else tr("is added")
            what = what if self.weight else tr("no weight")
        else:
            value, what = sentences.weight(self.weight), tr("of this row’s weight")
        ends = "".join(
            END.substitute(
                note=note,
                name=name,
                glyph=_mark(names.glyph(cell)),
                place=sentences.marked_up(names.place(cell)),
            )
            for name, names, cell in (
                (tr("from"), self.rows, self.row),
                (tr("to"), self.columns, self.column),
            )
        )
        return CARD.substitute(big=big, value=_escaped(value), note=note, what=what, ends=ends)

    def _said(self, said: str, query: str, column: int, amount: str = "") -> str:
        """A sentence about the query and a key, filled in."""
        key, away = _mark(self.columns.glyph(column)), self._away(column)
        said = tr(said, query=query, key=key, amount=amount, away=away, sum=self._sum())
        return said.rstrip()

    def _amount(self, weight: float) -> str:
        if self.signed:
            return _bold(sentences.with_sign(weight))
        return _bold(tr("{share} of its weight", share=share(weight)))

    def _sum(self) -> str:
        """What the row adds up to, where that is not 1."""
        if not self.signed:
            said = tr("The row adds up to {sum:.3f}.", sum=self.total)
            return "" if f"{self.total:.3f}" == "1.000" else said
        positive = float(np.maximum(self.weights, 0).sum(dtype=np.float64))
        negative = float(np.minimum(self.weights, 0).sum(dtype=np.float64))
        total = _escaped(ink.sums(negative, positive, 3))
        return tr("The row adds up to {sum}.", sum=total)

    def _away(self, column: int) -> str:
        """How far a key is from the query, in words."""
        query, key = (
            int(names.spans[cell, 1]) - 1
            for names, cell in ((self.rows, self.row), (self.columns, column))
        )
        if query < 0 or key < 0 or self.rows.prompt is not self.columns.prompt:
            return ""
        if query == key:
            same = self.rows.spans[self.row, 0] == self.columns.spans[column, 0]
            return tr(", itself") if same else ""
        far = sentences.counted(abs(query - key), self.rows.prompt.unit)
        return tr(" {far} back" if key < query else " {far} ahead", far=far)

    def _why(self) -> str:
        start = int(self.columns.spans[self.column or 0, 0])
        same = self.rows.prompt is self.columns.prompt
        after = same and start >= 0 and start >= int(self.rows.spans[self.row, 1])
        if after:
            return tr("it comes after the query")
        if self.near is not None and not self._padded:
            return tr("it is neither among the first keys nor the latest")
        return tr("it is outside the mask")

    @property
    def _padded(self) -> bool:
        return int(self.columns.spans[self.column or 0, 0]) < 0


def hidden(rule: Rule) -> str:
    """Why some cells of a map are not seen, for the chip on it; empty where all are."""
    if rule.causal and rule.sees_all:
        return tr("masked (causal)")
    if rule.streaming_window is not None:
        sink, recent = rule.streaming_window
        return tr("masked: neither of the first {sink:,} nor the latest {recent:,}",
                  sink=sink, recent=recent)  # fmt: skip
    if not rule.sees_all:
        return tr("masked: outside its window")
    padded = rule.keep is not None and not rule.keep.all()
    return tr("masked: padding") if padded else ""


def share(weight: float) -> str:
    """A part in per cent: 89 %, 0.4 %, <0.1 %."""
    percent = 100 * weight
    if weight == 0:
        return sentences.percent("0")
    if percent < 0.1:
        return sentences.percent("<0.1")
    return sentences.percent(f"{percent:.0f}" if percent >= 1 else f"{percent:.1f}")


def _mark(text: str) -> str:
    """A glyph of the text: monospaced, in the colour of the selection."""
    now = theme.current()
    family = ",".join(f"'{name}'" for name in theme.MONO)
    colour = now.mark_text.name()
    return MARK.substitute(family=family, colour=colour, text=sentences.marked_up(text))


def _bold(text: str) -> str:
    now = theme.current()
    said = _escaped(text).replace(" ", "&nbsp;")
    return BOLD.substitute(colour=now.text.name(), text=said)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


# --- footnote -------------------------------------------------------------------------------------


AFTER = 200  # ms: what is over before nobody needs to know
HIGH = 18  # px


class Footnote(QObject):
    """Says that a picture is not exact while that lasts; `changed` is called when it says so."""

    def __init__(self, parent: QObject, changed: Callable[[], None]) -> None:
        super().__init__(parent)
        self.words = ""
        self._quality: Quality = "exact"
        self._signed = False
        self._changed = changed
        self._wait = QTimer(self, singleShot=True, interval=AFTER)
        self._wait.timeout.connect(self._say)

    def judge(self, quality: Quality, signed: bool) -> None:
        """The picture is of such a quality from now on."""
        self._quality, self._signed = quality, signed
        if quality == "exact":
            self._wait.stop()
            self._say()
        elif self.words:
            self._say()
        elif not self._wait.isActive():
            self._wait.start()

    def draw(self, painter: QPainter, rect: QRectF, view: Viewport) -> None:
        """At the right beneath a map, in logical px."""
        each = f"{1 / view.down.scale:.3g}"
        size = tr("1 px = {each} × {each}, max", each=each) if view.down.scale < 1 else ""
        said = " · ".join(filter(None, (self.words, size)))
        if said:
            painter.setFont(theme.font(ink.AXIS))
            painter.setPen(theme.current().secondary)
            # a narrow map has room to its right
            box = QRectF(rect.right() - 400, rect.bottom() + 2, 400, HIGH)
            where = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop
            painter.drawText(box, where, said)

    def _say(self) -> None:
        said = {"exact": "", "near": self._near, "coarse": tr("coarser than it will be")}
        if said[self._quality] != self.words:
            self.words = said[self._quality]
            self._changed()

    @property
    def _near(self) -> str:
        error = SIGNED_ERROR if self._signed else UNSIGNED_ERROR
        return tr("within {error:.1f} % so far", error=100 * error)


# --- pointer --------------------------------------------------------------------------------------


STILL = 4  # px: a press that moves less is a click
TURNS = {Qt.Key.Key_Plus: 1, Qt.Key.Key_Equal: 1, Qt.Key.Key_Minus: -1}


class Pointer(QObject):
    """Filters the events of one canvas."""

    def __init__(self, canvas: Canvas) -> None:
        super().__init__(canvas)
        self._canvas = canvas
        self._grip: QPointF | None = None  # where the button went down, or the last drag was
        self._doing = ""  # "": pressed at most; pan, inset
        self._turned = 0
        canvas.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take mouse and wheel, and the keys that zoom; leave the rest."""
        kind = event.type()
        if kind == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            return self._type(event)
        if kind == QEvent.Type.Leave:
            self._turned = 0
            self._canvas.pointed.emit(None)
        elif isinstance(event, QWheelEvent):
            self._zoom(event)
            return True
        elif isinstance(event, QHelpEvent) and kind == QEvent.Type.ToolTip:
            said = self._canvas.sums_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), said, self._canvas)  # "" hides it
            return True
        elif isinstance(event, QMouseEvent):
            if kind == QEvent.Type.MouseMove:
                self._move(event.position())
            elif event.button() == Qt.MouseButton.LeftButton:
                if kind == QEvent.Type.MouseButtonPress:
                    self._press(event)
                elif kind == QEvent.Type.MouseButtonRelease:
                    self._release(event.position())
                elif kind == QEvent.Type.MouseButtonDblClick:
                    self._canvas.fit()
        return False

    def _press(self, event: QMouseEvent) -> None:
        place = event.position()
        self._grip, self._doing = place, ""
        if self._canvas.inset.contains(place):
            self._doing = "inset"
            self._canvas.centre(place)

    def _move(self, place: QPointF) -> None:
        canvas = self._canvas
        if self._grip is None:
            row, column = canvas.cell_at(place)
            over = row is None or column is None or canvas.inset.contains(place)
            canvas.pointed.emit(None if over else (row, column))
        elif self._doing == "inset":
            canvas.centre(place)
        else:
            step = place - self._grip
            if self._doing == "pan" or step.manhattanLength() >= STILL:
                self._doing = "pan"
                canvas.setCursor(Qt.CursorShape.ClosedHandCursor)
                canvas.pan(step)
                self._grip = place

    def _release(self, place: QPointF) -> None:
        canvas, did = self._canvas, self._doing
        clicked = self._grip is not None and not did
        self._grip, self._doing = None, ""
        canvas.unsetCursor()
        if clicked:
            row, column = canvas.cell_at(place)
            if row is not None and column is not None:
                canvas.clicked.emit(row, column)

    def _type(self, event: QKeyEvent) -> bool:
        """+ and − zoom at what is looked at."""
        canvas, key = self._canvas, Qt.Key(event.key())
        row, column = canvas.cross.row, canvas.cross.column
        if key not in TURNS or canvas.view is None:
            return False
        there = row is not None and column is not None
        cell = canvas.cell_rect(row, column) if there else canvas.map_rect
        canvas.zoom(TURNS[key], cell.center())
        return True

    def _zoom(self, event: QWheelEvent) -> None:
        """Whole turns only; fine wheels add up."""
        self._turned += event.angleDelta().y()
        turns = int(self._turned / NOTCH)
        self._turned -= turns * NOTCH
        if turns:
            self._canvas.zoom(turns, event.position())


# --- heatmap --------------------------------------------------------------------------------------


LEFT, RIGHT = 88, 68  # logical px beside a map: words, numbers
TOP, BOTTOM = 71, 60  # above and below it: words, sentence
LOW_TOP, LOW_BOTTOM, LOW_CANVAS = 42, 40, 430  # the same in a canvas that is lower
PAD, GAP, GUTTER, UNDER = 13, 13, 48, HIGH
ROOMY = 420  # px that a sentence is at ease in

Cell = tuple[int | None, int | None]


class Canvas(QWidget):
    """Shows a Scene; says what the pointer does. It reads nothing: tiles come into its cache."""

    own_keys = tuple(ARROWS)
    pointed = Signal(object)  # (row, column) under the pointer, None when it leaves
    clicked = Signal(int, int)  # row, column
    moved = Signal()  # another part is on screen: its tiles are wanted
    ringed = QWidget.rect  # what the mark of the keyboard goes around
    left, top, below = LEFT, TOP, 0  # below: px from the map to what is noted beneath it

    def __init__(self, cache: tiles.Tiles) -> None:
        super().__init__()
        self.cache = cache
        self.scene: MapScene | None = None
        self.view: Viewport | None = None
        self.cross = Cross()
        self.hidden_words = ""
        self._picture = MapPicture()
        self._ground: tuple[object, QPixmap] | None = None
        self._thumb: Pixels | None = None
        self.quality: Quality = "exact"
        self._screen: tuple[object, ...] = ()  # the tiles it was judged by
        self._footnote = Footnote(self, self.update)
        self.written = AxisTextCache()
        self.card = CellCard(self)
        self.sentence = Sentence(self)
        self._pointer = Pointer(self)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Map of attention weights"))

    def minimumSizeHint(self) -> QSize:
        return QSize(LEFT + RIGHT + 48, LOW_TOP + LOW_BOTTOM + 48)

    # --- what is shown ----------------------------------------------------------------------------

    def show_scene(self, scene: MapScene) -> None:
        """Show a head; the part on screen stays where the shape does."""
        old, self.scene = self.scene, scene
        if old is None or self.view is None or self.view.of(scene.source.shape) is not self.view:
            self.fit()
        elif old.signed != scene.signed:  # the gutter takes or leaves room
            self._resize()
        self._thumb = None
        self.compose()

    def grow(self, shape: tuple[int, int], wide: int) -> None:
        """The map is so large now: the part on screen stays, a whole map is fitted again."""
        if self.view is not None:
            self.view = self.view.of(shape, wide, grown=True)

    def fit(self) -> None:
        """The whole map."""
        if self.scene is not None:
            shape = self.scene.source.shape
            self._look(Viewport.fitted(shape, self.room, self._ratio, self.scene.wide))

    def compose(self, afresh: bool = False) -> None:
        """Bring the picture up to date: other colours, another head or part, or all of it."""
        if self.scene is None or self.view is None:
            return
        if afresh:
            self._picture = MapPicture()
        self._picture.show(self.scene, self.cache, self.view, theme.current().dark)
        self._judge()
        self._place_card()
        self.update()

    def renew(self, parts: Iterable[tiles.Part]) -> None:
        """Paint what has just been read."""
        scene, view, ratio = self.scene, self._picture.view, self._ratio
        if scene is None or view is None:
            return
        on_screen = (view.box(*one.ranges) for one in parts if one.key.source is scene.source)
        boxes = [one for one in on_screen if one[0] < one[1] and one[2] < one[3]]
        if len(boxes) > 3:  # one large box is sooner painted than many small ones
            low, high = np.min(boxes, axis=0), np.max(boxes, axis=0)
            boxes = [(int(low[0]), int(high[1]), int(low[2]), int(high[3]))]
        for box in boxes:
            top, bottom, left, right = box
            self._picture.renew(scene, self.cache, box, theme.current().dark)
            spot = QRectF(left, top, right - left, bottom - top)
            corner = self.map_rect.topLeft() + spot.topLeft() / ratio
            self.update(QRectF(corner, spot.size() / ratio).toAlignedRect())
        if boxes:
            self._judge()

    def _judge(self) -> None:
        assert self.scene is not None and self.view is not None
        source, screen = self.scene.source, tiles.screen(self.scene.source, self.view)
        if screen != self._screen or self.quality != "exact":
            self._screen, self.quality = screen, tiles.quality(self.cache, source, self.view)
            self._footnote.judge(self.quality, self.scene.signed)

    def point(self, cross: Cross) -> None:
        """Draw the cross hair at a cell; None takes it away."""
        if cross != self.cross:
            self.cross = cross
            self._place_card()
            self.update()

    def say(self, sentence: str, card: str = "") -> None:
        """HTML: the sentence beneath the map, and what the card beside the cell says."""
        self.sentence.setFont(theme.font())
        self.sentence.setText(sentence)
        self.card.say(card)
        self._place_sentence()
        self._place_card()

    def reveal(self, row: int | None, column: int | None) -> None:
        """Move just as far as it takes to have a cell on screen."""
        if self.view is None:
            return
        down = self.view.down if row is None else self.view.down.around(row)
        across = self.view.across if column is None else self.view.across.around(column)
        self._look(replace(self.view, down=down, across=across))

    def zoom(self, turns: int, place: QPointF) -> None:
        """Some steps closer (> 0) or further away; what is at a place stays there."""
        if self.view is not None:
            before = self.map_rect.left()
            spot = (place - self.map_rect.topLeft()) * self._ratio
            self.view = self.view.zoomed(turns, spot.y(), spot.x())
            self.pan(QPointF(before - self.map_rect.left(), 0))  # it may begin further left now

    def pan(self, step: QPointF) -> None:
        """Move the map along."""
        if self.view is not None:
            step = step * self._ratio
            self._look(self.view.panned(round(step.y()), round(step.x())))

    def centre(self, place: QPointF) -> None:
        """Go where a place of the small map points to."""
        if self.view is not None and not self.inset.isEmpty():
            self._look(ink.view_at(self.view, self.inset, place))

    # --- where things are -------------------------------------------------------------------------

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """uint8 (height, width, 4): red, green, blue of what is shown, alpha 0 where unseen."""
        return ink.channels(self._picture.pixels)

    @property
    def planned(self) -> Viewport:
        """What is on screen, or will be."""
        return self.view or Viewport.fitted((1, 1), self.room, self._ratio)

    @property
    def room(self) -> tuple[int, int]:
        """(height, width) for a map, in device pixels."""
        right = RIGHT + (GUTTER if self.scene is not None and self.scene.signed else 0)
        bottom = BOTTOM if self.top == TOP else LOW_BOTTOM
        height, width = self.height() - self.top - bottom, self.width() - LEFT - right
        return max(8, int(height * self._ratio)), max(8, int(width * self._ratio))

    @property
    def map_rect(self) -> QRectF:
        """The map, in logical px; in the middle of the room where it is narrower."""
        if self.view is None:
            return QRectF(self.left, self.top, 0, 0)
        height, width = (size / self._ratio for size in self.view.size)
        left = (self.room[1] - self.view.size[1]) // 2
        spare = (self.room[0] - self.view.size[0]) // self._ratio  # for longer words above
        top = min(TOP, self.top + spare)
        return QRectF(self.left + left / self._ratio, top, width, height)

    def cell_at(self, place: QPointF) -> Cell:
        """The row and column under a place; None, None outside the map."""
        if self.view is None:
            return None, None
        spot = (place - self.map_rect.topLeft()) * self._ratio
        row, column = self.view.down.cell(spot.y()), self.view.across.cell(spot.x())
        return (None, None) if row is None or column is None else (row, column)

    def cell_rect(self, row: int, column: int) -> QRectF:
        """A cell, in logical px."""
        assert self.view is not None
        (top, bottom), (left, right) = self.view.down.edges(row), self.view.across.edges(column)
        box = QRectF(left, top, right - left, bottom - top)
        corner, ratio = self.map_rect.topLeft(), self._ratio
        return QRectF(corner + box.topLeft() / ratio, box.size() / ratio)

    @property
    def _ratio(self) -> float:
        return self.devicePixelRatioF()

    # --- painting ---------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """From the ground up: hatching and colour bar, picture, axes, cross hair, chips."""
        if self.scene is None or self.view is None or self._picture.view != self.view:
            return
        with QPainter(self) as painter:
            rect, scene, view = self.map_rect, self.scene, self.view
            corner, signed = (rect.topLeft() * self._ratio).toPoint(), scene.signed
            painter.drawPixmap(0, 0, self._drawn_ground())
            painter.save()
            painter.scale(1 / self._ratio, 1 / self._ratio)
            painter.drawImage(corner, self._picture.image())
            painter.restore()
            self._veil(painter, rect)
            if not rect.contains(QRectF(event.rect())):
                self._axes(painter, rect)
            painter.save()
            painter.scale(1 / self._ratio, 1 / self._ratio)
            causal = scene.source.rule.causal
            ink.draw_cross(painter, self.cross, view, corner, signed=signed, causal=causal)
            painter.restore()
            ink.markers(painter, self.cross, view, rect)
            self._notes(painter, rect)
            if self.card.isVisible():
                ink.shadow(painter, QRectF(self.card.geometry()), 8)
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(self.ringed()))

    def _veil(self, painter: QPainter, rect: QRectF) -> None:
        """What lies over the picture."""
        if self.scene is not None and self.scene.off:
            ink.switched_off(painter, rect, self._ratio)

    def _axes(self, painter: QPainter, rect: QRectF) -> None:
        """Words at the left and above."""
        assert self.scene is not None and self.view is not None
        scene, view, ratio = self.scene, self.view, self._ratio
        down = self.written.marks(scene.rows, view.down, ratio, self.cross.row)
        across = self.written.marks(scene.columns, view.across, ratio, self.cross.column)
        ink.axes(painter, rect, (self.left, round(rect.top())), down, across, scene.sides)
        self._sums(painter)

    def _sums(self, painter: QPainter) -> None:
        """What the rows of a signed map add up to."""
        scene, view = self.scene, self.view
        if scene is not None and view is not None and scene.signed and scene.mass is not None:
            ink.draw_row_sums(painter, self._gutter(), view.down, self._ratio, scene.mass)

    def _drawn_ground(self) -> QPixmap:
        """What stays while the map moves: its frame, what is masked, the colour bar."""
        scene, rect, ratio = self.scene, self.map_rect, self._ratio
        assert scene is not None and self.view is not None
        colours = scene.limits, scene.display, scene.signed, theme.current().dark
        key = self.size().toTuple(), rect.getRect(), ratio, colours
        if self._ground is None or self._ground[0] != key:
            out = QPixmap(self.size() * ratio)
            out.setDevicePixelRatio(ratio)
            out.fill(Qt.GlobalColor.transparent)
            with QPainter(out) as painter:
                ink.unseen(painter, rect, ratio)
                painter.setPen(QPen(theme.current().edge, 1))
                painter.drawRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5))
                self._sides(painter, rect)
            self._ground = key, out
        return self._ground[1]

    def _sides(self, painter: QPainter, rect: QRectF) -> None:
        """The colour bar, as high as the map."""
        assert self.scene is not None
        left = rect.right() + GAP + (ink.WIDE + 10 if self.scene.signed else 0)
        bar = QRectF(left, rect.top(), ink.BAR, rect.height())
        ink.colour_bar(painter, bar, self.scene, tr("Weight"))

    def _gutter(self) -> QRectF:
        """Where the sums of the rows stand."""
        rect = self.map_rect
        return QRectF(rect.right() + GAP, rect.top(), ink.WIDE, rect.height())

    def sums_at(self, place: QPointF) -> str:
        """What is said of the row beside a place of the gutter; "" elsewhere."""
        scene, view = self.scene, self.view
        if scene is None or view is None or scene.mass is None or not scene.signed:
            return ""
        return ink.said(self._gutter(), view.down, self._ratio, scene.mass, place)

    def _notes(self, painter: QPainter, rect: QRectF) -> None:
        """Chips on the map, how much a pixel stands for, the whole in a corner."""
        assert self.scene is not None and self.view is not None
        hidden = not self._picture.pixels[::8, ::-8].all()  # looked at here and there
        said = tr("off: this head adds nothing") if self.scene.off else self.hidden_words * hidden
        if said:
            ink.chip(painter, rect.topRight() + QPointF(-PAD, PAD), said, rect.width() - 2 * PAD)
        self._footnote.draw(painter, rect.adjusted(0, 0, 0, self.below), self.view)
        box, thumb = self.inset, self._overview()
        if thumb is not None and not box.isEmpty():
            ink.draw_inset(painter, box, thumb, self.view)

    def _overview(self) -> QImage | None:
        """The thumbnail of the whole head, where there is one; it shares the canvas's memory."""
        if self.scene is None or self.scene.source.thumb is None:
            return None
        if self._thumb is None:
            self._thumb = ink.thumbnail(self.scene, theme.current().dark)
        return ink.image(self._thumb)

    @property
    def inset(self) -> QRectF:
        """Where the whole is shown small; empty while all of it is on screen."""
        thumb = None if self.view is None or self.view.whole else self._overview()
        return QRectF() if thumb is None else ink.place(self.map_rect, thumb)

    # --- the words --------------------------------------------------------------------------------

    def _place_sentence(self) -> None:
        """Beneath the map, from its left edge where there is room."""
        rect = self.map_rect
        left = round(rect.left()) if self.width() - rect.left() >= ROOMY else LEFT
        width = self.width() - left - PAD
        height = self.sentence.heightForWidth(width)
        self.sentence.setGeometry(left, round(rect.bottom()) + UNDER, width, height)

    def _place_card(self) -> None:
        """Off the cell, its row and its column; hidden where there is no such place."""
        row, column = self.cross.row, self.cross.column
        if self.view is None or row is None or column is None or self.card.empty:
            self.card.hide()
            return
        below = self.map_rect.bottomLeft().toPoint()
        if not self.sentence.isHidden():
            below = self.sentence.geometry().bottomLeft() + QPoint(0, GAP)
        cell = self.cell_rect(row, column)
        if self.map_rect.intersects(cell):
            self.card.stand(cell, self.map_rect, below)
        else:
            self.card.hide()

    # --- size and theme ---------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the part on screen, or all of it."""
        self.top = LOW_TOP if self.height() < LOW_CANVAS else TOP
        self._resize()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._thumb = None
            self.compose()
        elif event.type() == QEvent.Type.DevicePixelRatioChange:
            self._resize()
        super().changeEvent(event)

    def _resize(self) -> None:
        if self.view is not None and self.scene is not None:
            self._look(self.view.resized(self.room, self._ratio, self.scene.wide))

    def _look(self, view: Viewport) -> None:
        self.view = view
        self._place_sentence()
        self.compose()
        self.moved.emit()


# --- supply ---------------------------------------------------------------------------------------


REST = 150  # ms without a movement before anything is read ahead
QUICK = 2  # zooms up to which is computed ahead; above, only what is stored is read
AT_ONCE = 1  # zooms up to which a screen is computed before anybody has seen what is stored


class TileSupply(QObject):
    """Keeps canvases in tiles. None of it waits: what comes is shown when it is there."""

    outgrown = Signal()  # weights are larger than the colours allowed for
    came = Signal()  # more was read
    added_up = Signal()  # what the rows add up to is known
    _came: Callable[[list[Part]], None]  # parts of tiles were read
    _look_ahead: Callable[[], None]  # nobody moved for a while: read what may be seen next

    def __init__(self, cache: Tiles, parent: QObject) -> None:
        super().__init__(parent)
        self.cache = cache
        self._opened: Any = None
        self._screen: tuple[object, ...] = ()  # what was asked for last,
        self._ahead = False  # and whether more than that
        self._lanes: Lanes | None = None
        self._readers: Readers | None = None
        self._rest = QTimer(self, singleShot=True, interval=REST)
        self._rest.timeout.connect(self._look_ahead)

    def start(self, lanes: Lanes, on_error: Callable[[BaseException], None]) -> None:
        """Read off the GUI thread from now on."""
        self._lanes, self._on_error = lanes, on_error
        self._readers = Readers(self.cache, lanes.bridge.post, self._came, on_error)

    def stop(self) -> None:
        """Wait for what is being read; nothing comes any more."""
        self._rest.stop()
        if self._readers is not None and self._lanes is not None:
            self._readers.close()
            for lane in (self._lanes.map, self._lanes.files):
                lane.cancel(self._key)
        self._readers, self._opened = None, None

    @property
    def _key(self) -> str:
        return f"supply {id(self)}"

    def _add_up(self, opened: OpenedMap | OpenedPair) -> None:
        assert self._lanes is not None
        self._lanes.files.submit(
            self._key, "Map", opened.add_up, on_done=self._added_up,
            on_error=self._on_error, post=self._lanes.bridge.post,
        )  # fmt: skip

    def _added_up(self, result: None) -> None:
        self.added_up.emit()

    def _saw(self, opened: OpenedMap | OpenedPair, parts: list[Part]) -> None:
        """Say so where a tile that came has larger weights than were known."""
        larger = [opened.saw(self.cache, one.key) for one in parts]  # every one of them
        if any(larger):
            self.outgrown.emit()


class Supply(TileSupply):
    """Keeps the canvas of one head in tiles."""

    def __init__(self, canvas: Canvas, opener: Opener) -> None:
        super().__init__(canvas.cache, canvas)
        self._canvas, self._opener = canvas, opener
        self._left: Source | None = None  # what came of it was not painted any more

    def want(self, opened: OpenedMap, hurry: bool = False) -> None:
        """Have the tiles read that the screen lacks; whatever was on order is forgotten.

        hurry: the window waits, for all of it or for what is stored.
        """
        if self._readers is None or self._lanes is None:
            return
        if opened is not self._opened:
            self._opened = opened
            scene, left, self._left = self._canvas.scene, self._left, None
            if scene is not None and scene.source is opened.source is left:
                self._canvas.compose(afresh=True)  # come back to before another one was shown
            self._lanes.files.cancel(self._key)
            if opened.unfinished:
                self._add_up(opened)
        view = self._canvas.view
        screen = () if view is None else (hurry, *tiles.screen(opened.source, view))
        if screen != self._screen or self._ahead:
            self._screen = screen
            self._read([], hurry)
        self._rest.start()

    @property
    def at_hand(self) -> bool:
        """Whether what is read in a moment is there: all of a screen, or what is stored of it."""
        cache, view = self.cache, self._canvas.view
        if self._opened is None or view is None:
            return False
        lacking = cache.lacking(self._opened.source, view)
        if view.zoom <= AT_ONCE:
            return not lacking
        return next(cache.sketches(lacking), None) is None

    def _read(self, beside: list[OpenedMap], hurry: bool = False) -> None:
        """What is on screen first, then around it, then the same part of other heads; in a hurry
        what is on screen alone.
        """
        self._ahead = bool(beside)
        cache, view = self.cache, self._canvas.view
        if self._readers is None or self._opened is None or view is None:
            return
        source = self._opened.source
        ring = tiles.around(source, view) if beside else []
        others = [
            key
            for one in beside if one.source.shape == source.shape
            for key in cache.lacking(one.source, view)
        ]  # fmt: skip
        wanted, soon = cache.lacking(source, view), view.zoom <= AT_ONCE
        # in a hurry nothing competes with what is stored
        work = [cache.parts(wanted, view)] if soon or not hurry else []
        if not hurry:
            work.append(cache.parts(tiles.wanted(source, view)))
        if view.zoom <= QUICK:
            work += [cache.parts(ring), cache.parts(others, view)]
        self._readers.want(
            chain.from_iterable(work),
            stored=cache.sketches(wanted + ring + others),
            hurry=hurry and soon,
        )

    def _look_ahead(self) -> None:
        if self._opened is None or self._lanes is None:
            return
        self._lanes.map.submit(
            self._key, "Map", partial(self._opener.beside, self._opened),
            on_done=self._read, post=self._lanes.bridge.post, on_error=lambda _: None,
        )  # fmt: skip

    def _came(self, parts: list[Part]) -> None:
        opened, scene = self._opened, self._canvas.scene
        if opened is None or scene is None or scene.source is opened.source:
            self._canvas.renew(parts)
        else:  # another head is shown in a moment: nobody would see it
            self._left = scene.source
        self.came.emit()
        if opened is not None:
            self._saw(opened, parts)


# --- supply of a pair -----------------------------------------------------------------------------


class PairSupply(TileSupply):
    """Keeps three canvases in tiles: A and B first, for of these A − B is made where they are."""

    def __init__(self, cache: Tiles, canvases: Sequence[Canvas]) -> None:
        super().__init__(cache, canvases[0])
        self._canvases = canvases
        self._adding = False  # or added up

    def want(self, compared: OpenedPair) -> None:
        """Have the tiles read that the screen lacks; whatever was on order is forgotten."""
        if self._readers is None or self._lanes is None:
            return
        if compared is not self._opened:
            self._opened, self._screen = compared, ()
            self._lanes.files.cancel(self._key)
            self._adding = compared.masses is not None
        view = self._canvases[0].view
        if view is None:
            return
        screen = tiles.screen(compared.sources[0], view)
        if screen != self._screen or self._ahead:
            self._screen = screen
            self._read(ahead=False)
        self._add_up_exact()
        self._rest.start()

    def _add_up_exact(self) -> None:
        """Once the screen is exact: sums take as long as the whole difference."""
        if self._adding or self._opened is None or self._lanes is None:
            return
        if all(one.quality == "exact" for one in self._canvases[: len(self._opened.shown)]):
            self._adding = True
            self._add_up(self._opened)

    def forget(self) -> None:
        """Nothing is compared any more."""
        self._opened, self._screen = None, ()
        self._rest.stop()
        if self._readers is not None and self._lanes is not None:
            self._readers.want(iter(()))
            self._lanes.files.cancel(self._key)

    def _read(self, ahead: bool) -> None:
        """What is on screen first; ahead: then what lies around it."""
        self._ahead = ahead
        view = self._canvases[0].view
        if self._readers is None or self._opened is None or view is None:
            return
        sources = self._opened.shown
        # from afar A and B are there as they are stored, while A − B is nowhere
        far = view.zoom > QUICK and all(one.lowest is not None for one in sources[:2])
        screen = _order([self.cache.lacking(one, view) for one in sources], far)
        whole = _order([tiles.wanted(one, view) for one in sources], far)
        ring = _order([tiles.around(one, view) for one in sources]) if ahead else []
        work = [self.cache.parts(screen, view), self.cache.parts(whole)]
        if view.zoom <= QUICK:
            work.append(self.cache.parts(ring))
            screen = screen + ring
        self._readers.want(chain.from_iterable(work), stored=self.cache.sketches(screen))

    def _look_ahead(self) -> None:
        self._read(ahead=True)

    def _came(self, parts: list[Part]) -> None:
        compared = self._opened
        if compared is None:
            return
        for canvas in self._canvases:
            canvas.renew(parts)
        self._add_up_exact()
        self.came.emit()
        self._saw(compared, parts)


def _order(wanted: Sequence[list[Key]], last_first: bool = False) -> list[Key]:
    """Tiles of A and B in turn, then those of A − B, which is made of them; or the other way."""
    sides = [one for pair in zip_longest(*wanted[:2]) for one in pair if one is not None]
    rest = [key for keys in wanted[2:] for key in keys]
    return rest + sides if last_first else sides + rest


# --- pane -----------------------------------------------------------------------------------------


FOOT_HEIGHT = 52  # the bar, its values, a note
ROW_WORDS, BARE = 88, 8  # left of a map with words for its rows, and without
GUTTER_ROOM, GUTTER_GAP = 46, 3  # its gutter, and what is free beside that
CLOSE = 7  # px from a map to its gutter, whose title is wider
BAR = 9  # high, and as far from the map
BELOW = 35  # px from the map to what is noted beneath the bar


class Pane(Canvas):
    """A map of three that look at the same part: where it looks is for `turned` to say.

    there: which rows and which columns it has anything in, None for all. worded: whether it names
    its rows; the others stand beside it.
    """

    def __init__(self, cache: Tiles, name: str, written: AxisTextCache) -> None:
        super().__init__(cache)
        self.written = written
        self.there: tuple[Bools, Bools] | None = None
        self.space = 8, 8
        self._summed: tuple[object, QPixmap] | None = None  # the gutter as it was drawn last
        self.most = 0.0  # the largest sum of a row in all three
        self.small_map = False  # whether the whole is shown in a corner
        self.turned: Callable[[Viewport], None] = self.turn
        self.top, self.below = TOP, BELOW
        self.worded = True
        self.card.least = 0
        self.sentence.hide()
        self.setAccessibleName(tr("Map of {side}", side=name))

    @property
    def worded(self) -> bool:
        """Whether it has words for its rows."""
        return self.left == ROW_WORDS

    @worded.setter
    def worded(self, worded: bool) -> None:
        self.left = ROW_WORDS if worded else BARE

    def take(self, scene: MapScene, view: Viewport) -> None:
        """Show a scene from there."""
        self.scene, self._thumb = scene, None
        self.turn(view)

    def turn(self, view: Viewport) -> None:
        """Look there, alone."""
        self.view = view
        self.compose()

    @property
    def room(self) -> tuple[int, int]:
        """(height, width) for a map in device pixels: the same in all three."""
        return self.space

    @property
    def map_rect(self) -> QRectF:
        """The map, in logical px, at the left of its room."""
        height, width = (0, 0) if self.view is None else self.view.size
        return QRectF(self.left, self.top, width / self._ratio, height / self._ratio)

    def minimumSizeHint(self) -> QSize:
        """Whoever arranges the three gives it its room."""
        return QSize(0, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Whoever arranges the three turns them, when all have their room."""

    def _resize(self) -> None:
        """The same."""

    def _look(self, view: Viewport) -> None:
        self.turned(view)

    def ringed(self) -> QRect:
        """The map alone: three of them stand side by side."""
        return self.map_rect.toAlignedRect().adjusted(-5, -5, 5, 5)

    # --- painting ---------------------------------------------------------------------------------

    def _axes(self, painter: QPainter, rect: QRectF) -> None:
        if self.worded:
            super()._axes(painter, rect)
            return
        assert self.scene is not None and self.view is not None
        columns, ratio = self.scene.columns, self._ratio
        across = self.written.marks(columns, self.view.across, ratio, self.cross.column)
        ink.axes(painter, rect, (ROW_WORDS, self.top), Marks(), across, None)
        self._sums(painter)

    def _gutter(self) -> QRectF:
        """Closer to the map than where a map stands alone: the next one follows."""
        rect = self.map_rect
        return QRectF(rect.right() + CLOSE, rect.top(), ink.WIDE, rect.height())

    def _sums(self, painter: QPainter) -> None:
        """What the rows add up to, on the scale of all three."""
        assert self.scene is not None and self.view is not None
        along, mass = self.view.down, self.scene.mass
        if mass is None:
            return
        box = self._gutter().adjusted(-20, -26, 20, 2)
        key = along, id(mass), self.most, box.getRect(), self._ratio, theme.current().dark
        if self._summed is None or self._summed[0] != key:
            drawn = QPixmap((box.size() * self._ratio).toSize())
            drawn.setDevicePixelRatio(self._ratio)
            drawn.fill(Qt.GlobalColor.transparent)
            with QPainter(drawn) as inside:
                inside.translate(-box.topLeft())
                ink.draw_row_sums(
                    inside, self._gutter(), along, self._ratio, mass, self.most, tr("row")
                )
            self._summed = key, drawn
        painter.drawPixmap(box.topLeft(), self._summed[1])

    def _veil(self, painter: QPainter, rect: QRectF) -> None:
        """What this side has not lies under a hatching of its own."""
        super()._veil(painter, rect)
        if self.there is None or self.view is None:
            return
        now, ratio = theme.current(), self._ratio
        brush = ink.hatching(ink.faint(now.secondary, 0.55), ratio)
        painter.save()
        painter.setBrushOrigin(rect.topLeft())
        for first, last in _gone(self.view.down, self.there[0]):
            box = QRectF(0, first / ratio, rect.width(), (last - first) / ratio)
            painter.fillRect(box.translated(rect.topLeft()), now.hover)
            painter.fillRect(box.translated(rect.topLeft()), brush)
        for first, last in _gone(self.view.across, self.there[1]):
            box = QRectF(first / ratio, 0, (last - first) / ratio, rect.height())
            painter.fillRect(box.translated(rect.topLeft()), now.hover)
            painter.fillRect(box.translated(rect.topLeft()), brush)
        painter.restore()

    def _sides(self, painter: QPainter, rect: QRectF) -> None:
        """The colour bar beneath."""
        assert self.scene is not None
        bar = QRectF(rect.left(), rect.bottom() + BAR, rect.width(), BAR)
        ink.flat_bar(painter, bar, self.scene)

    def sums_at(self, place: QPointF) -> str:
        """What is said of the row beside a place of the gutter; "" elsewhere."""
        scene, view = self.scene, self.view
        if scene is None or view is None or scene.mass is None:
            return ""
        return ink.said(self._gutter(), view.down, self._ratio, scene.mass, place)

    def _overview(self) -> QImage | None:
        return super()._overview() if self.small_map else None

    def _place_sentence(self) -> None:
        """There is none: what a row does is said below all three."""
        self.sentence.setGeometry(QRect())


def _gone(along: MapAxis, there: Bools) -> list[tuple[int, int]]:
    """The runs of pixels in which there is nothing, half-open."""
    bounds = along.bounds()
    ends = np.maximum(bounds[1:], bounds[:-1] + 1)
    known = np.concatenate([[0], np.cumsum(there)])
    gone = known[np.minimum(ends, len(there))] == known[np.minimum(bounds[:-1], len(there))]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], gone, [False]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


# --- missing map ----------------------------------------------------------------------------------


INSET = 16  # px of hatching around what is said, at least


class MissingMap(QWidget):
    """What one side has and the other has not, in words over a hatching."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.what = label(weight=600)
        self.why = label(factor=0.92, kind="secondary")
        column = vbox(self, 1, margins=(2 * INSET, INSET, 2 * INSET, INSET), spacing=4)
        for one in (self.what, self.why):
            one.setWordWrap(True)
            one.setAlignment(Qt.AlignmentFlag.AlignCenter)
            one.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
            column.addWidget(one)
        column.addStretch(1)
        self.hide()

    def say(self, what: str, why: str = "") -> None:
        """What is not there, and why."""
        self.what.setText(what)
        self.why.setText(why)
        self.why.setVisible(bool(why))
        self.setAccessibleName(" ".join(filter(None, (what, why))))

    def paintEvent(self, event: QPaintEvent) -> None:
        now, ratio = theme.current(), self.devicePixelRatioF()
        words = _written(self.what)
        if not self.why.isHidden():
            words = words.united(_written(self.why))
        with QPainter(self) as painter:
            rect = QRectF(self.rect())
            ink.unseen(painter, rect, ratio)
            painter.setPen(QPen(now.edge, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(now.line, 1))
            painter.setBrush(now.pane)
            painter.drawRoundedRect(words.adjusted(-12, -8, 12, 8), 8, 8)


def _written(words: QLabel) -> QRectF:
    """Where the words of a label stand in it."""
    box = words.geometry()
    how = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
    return QRectF(words.fontMetrics().boundingRect(box, how, words.text()))


# --- three maps -----------------------------------------------------------------------------------


NAMES = ("A", "B", "A − B")
SEAT = 34  # px over each map
ROOMIER = 48  # px more than that where maps leave room
SIGN = 28  # px between a gutter and the next map, with a sign in it
BLINK = 500  # ms that A or B is shown
SMALLEST = 64  # px of a map


class MapTrio(QWidget):
    """Three panes, a seat over each for what names it, and a minus and an equals sign."""

    moved = Signal()  # another part is on screen

    def __init__(self, cache: Tiles) -> None:
        super().__init__()
        written = AxisTextCache()
        self.panes = tuple(Pane(cache, name, written) for name in NAMES)
        self.seats = tuple(_seat() for _ in NAMES)
        self._signs: tuple[QLabel, ...] = (label("−", factor=1.3), label("=", factor=1.3))
        for one in (*self.panes, *self.seats, *self._signs):
            one.setParent(self)
        for one in self.panes:
            one.turned = self.look
        self.panes[0].small_map = True
        for one in self._signs:
            one.setAlignment(Qt.AlignmentFlag.AlignCenter)
            one.resize(SIGN, 24)
        self._lacks = tuple(MissingMap(one) for one in self.panes[1:])
        self._scenes: tuple[MapScene, ...] = ()
        self._blinks = False
        self._blinking = QTimer(self, interval=BLINK)
        self._blinking.timeout.connect(self._swap)
        self._other = False  # whether B is the one of the two that is shown
        self._worded_b = False

    @property
    def view(self) -> Viewport | None:
        """The part on screen."""
        return self.panes[0].view

    @property
    def blinking(self) -> bool:
        """Whether A and B take turns in one place."""
        return self._blinks

    def show_scenes(
        self, scenes: Sequence[MapScene], there: Sequence[There], worded_b: bool
    ) -> None:
        """Show two heads and their difference; the part on screen stays where the shape does.

        there: what each of the three has anything in. worded_b: whether the rows of B are called
        otherwise than those of A.
        """
        masses = [one.mass for one in scenes if one.mass is not None]
        most = max((float(np.abs(one).max(initial=0)) for one in masses), default=0.0)
        for one, has in zip(self.panes, there, strict=True):
            one.there, one.most = has, most
        self._scenes = tuple(scenes)
        if worded_b != self._worded_b:
            self._worded_b = worded_b
            self.arrange()
        view = self.view
        shape = scenes[0].source.shape
        if view is None:
            view = self._fitted(shape)
        view = view.of(shape)
        for one, scene in zip(self.panes, scenes, strict=True):
            one.take(scene, view)
        self.moved.emit()

    def look(self, view: Viewport) -> None:
        """All look there."""
        for one in self.panes:
            one.turn(view)
        self._place_lacks()
        self.moved.emit()

    def lack(self, b: Lack, least: Lack) -> None:
        """Say in the places of B and of A − B why they are not there; a card hides all of one."""
        for one, card, lack in zip(self.panes[1:], self._lacks, (b, least), strict=True):
            card.setVisible(lack is not None)
            reached = Qt.FocusPolicy.StrongFocus if lack is None else Qt.FocusPolicy.NoFocus
            one.setFocusPolicy(reached)  # what is not there has nothing to walk on
            if lack is not None:
                card.say(*lack)
                one.scene = None
                one.update()
        self._place_lacks()

    def fit(self) -> None:
        """The whole maps."""
        if self._scenes:
            self.look(self._fitted(self._scenes[0].source.shape))

    def point(self, crosses: Sequence[Cross], cards: Sequence[str]) -> None:
        """The cursor in all three, and what is said beside it."""
        for one, cross, card in zip(self.panes, crosses, cards, strict=True):
            one.card.say(card)
            one.point(cross)
            one.say("", card)

    def reveal(self, row: int | None, column: int | None) -> None:
        """Move just as far as it takes to have a cell on screen."""
        self.panes[0].reveal(row, column)

    def blink(self, on: bool) -> None:
        """Show A and B in turn in one place, or beside each other again. Asked for once more it
        turns at once, and only so where nothing may move by itself."""
        if on and self.blinking:
            self._swap()
        if on == self.blinking:
            return
        self._blinks, self._other = on, False
        self._run(on and self.isVisible())
        self.arrange()
        self._show_turn()

    # --- where everything is ----------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.arrange()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self.arrange()
        super().changeEvent(event)

    def arrange(self) -> None:
        """Side by side, or A − B below the two where that makes all of them larger."""
        wide, stacked = self._row(), self._stack()
        side, corners = max(wide, stacked, key=lambda one: one[0])
        ratio = self.devicePixelRatioF()
        for number, (one, seat, corner) in enumerate(
            zip(self.panes, self.seats, corners, strict=True)
        ):
            one.worded, one.top = self._has_words(number, corners), self._top
            one.space = max(8, int(side * ratio)), max(8, int(side * ratio))
            left = one.left
            one.setGeometry(
                corner.x() - left, corner.y() + SEAT,
                left + side + GUTTER_ROOM, self._top + side + FOOT_HEIGHT,
            )  # fmt: skip
            seat.setGeometry(corner.x(), corner.y(), side + GUTTER_ROOM - 8, SEAT)
        self._place_signs(side, corners)
        view = self.view
        if view is not None and self._scenes:
            self.look(view.resized(self.panes[0].space, ratio))

    def _place_lacks(self) -> None:
        """Each card where a map would be, as large as that of A."""
        size = self.panes[0].map_rect.size().toSize()
        for card, one in zip(self._lacks, self.panes[1:], strict=True):
            card.setGeometry(QRect(QPoint(one.left, one.top), size))

    def _row(self) -> tuple[int, tuple[QPoint, ...]]:
        """Side by side: how large each is, and where its seat begins."""
        count = 2 if self.blinking else 3
        margins = [ROW_WORDS, *[SIGN + (ROW_WORDS if self._worded_b else 0), SIGN][: count - 1]]
        width = (self.width() - sum(margins) - count * GUTTER_ROOM) // count
        side = self._square(width, self.height())
        spare = self.width() - sum(margins) - count * (side + GUTTER_ROOM)
        margins[1:] = [one + min(ROOMIER, max(0, spare) // count) for one in margins[1:]]
        lefts, x = [], 0
        for margin in margins:
            x += margin
            lefts.append(x)
            x += side + GUTTER_ROOM
        if self.blinking:
            lefts.insert(0, lefts[0])
        return side, tuple(QPoint(left, 0) for left in lefts)

    def _stack(self) -> tuple[int, tuple[QPoint, ...]]:
        """A − B below A and B."""
        if self.blinking:
            return 0, ()
        between = SIGN + (ROW_WORDS if self._worded_b else 0)
        width = (self.width() - ROW_WORDS - between - 2 * GUTTER_ROOM) // 2
        side = self._square(width, self.height() // 2)
        left = ROW_WORDS + side + GUTTER_ROOM + between
        down = SEAT + self._top + side + FOOT_HEIGHT
        return side, (QPoint(ROW_WORDS, 0), QPoint(left, 0), QPoint(ROW_WORDS, down))

    def _square(self, width: int, height: int) -> int:
        return max(SMALLEST, min(width, height - SEAT - self._top - FOOT_HEIGHT))

    @property
    def _top(self) -> int:
        """Px for the words above each map."""
        return LOW_TOP if self.height() < LOW_CANVAS else TOP

    def _has_words(self, number: int, corners: tuple[QPoint, ...]) -> bool:
        """A names its rows, B where they are others, A − B where it stands at the left."""
        if number == 1:
            return self._worded_b or self.blinking
        return number == 0 or corners[2].x() == corners[0].x()

    def _place_signs(self, side: int, corners: tuple[QPoint, ...]) -> None:
        """A minus between A and B, an equals sign before A − B; none while A and B blink."""
        for number, (sign, one) in enumerate(zip(self._signs, self.panes[1:], strict=True)):
            sign.setVisible(not self.blinking and (one is self.panes[1] or not one.worded))
            before = self.panes[number].geometry().right() - GUTTER_GAP
            x = (before + one.x() + (0 if one.worded else BARE) - sign.width()) // 2
            sign.move(x, one.y() + self._top + side // 2 - sign.height() // 2)

    def _fitted(self, shape: tuple[int, int]) -> Viewport:
        return Viewport.fitted(shape, self.panes[0].space, self.devicePixelRatioF())

    # --- blinking ---------------------------------------------------------------------------------

    def _swap(self) -> None:
        self._other = not self._other
        self._show_turn()

    def _show_turn(self) -> None:
        shown = (not self.blinking or not self._other, not self.blinking or self._other)
        for one, seat, there in sorted(
            zip(self.panes, self.seats, shown, strict=False), key=lambda turn: not turn[2]
        ):  # first what comes, which takes the keyboard from what goes
            if not there and one.hasFocus():
                self.panes[shown.index(True)].setFocus()
            one.setVisible(there)
            seat.setVisible(there)

    def showEvent(self, event: QShowEvent) -> None:
        self._run(self._blinks)
        super().showEvent(event)

    def _run(self, on: bool) -> None:
        """Turn by itself or not; never where the system asks for less motion."""
        hint = QStyle.StyleHint.SH_Widget_Animation_Duration
        if on and self.style().styleHint(hint, None, self) > 0:
            self._blinking.start()
        else:
            self._blinking.stop()

    def hideEvent(self, event: QHideEvent) -> None:
        """Nothing blinks where nobody looks."""
        self._blinking.stop()
        super().hideEvent(event)


def _seat() -> QWidget:
    out = QWidget()
    hbox(out, margins=(0, 4, 0, 4), spacing=8)
    return out
