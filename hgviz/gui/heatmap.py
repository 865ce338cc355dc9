"""One map, or three that look at the same part: drawn, moved, pointed at, read in tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QStyle, QWidget

from hgviz import palettes
from hgviz.core import Floats, HeadId, Selection
from hgviz.gui import ink, sentences, theme, tiles
from hgviz.gui.grid import Bools, Grid, MapAxis, Marks, Names, Viewport, exists, seen_columns
from hgviz.gui.ink import CellCard, Cross, MapPicture, MapScene, Pixels
from hgviz.gui.language import tr
from hgviz.gui.opened import Lack, OpenedMap, There, TileSupply
from hgviz.gui.tiles import Part, Quality, Tiles
from hgviz.gui.view import HeadTitle, View, plain
from hgviz.gui.widgets import (
    ARROWS,
    NOTCH,
    IconButton,
    Words,
    arrow_of,
    hbox,
    label,
    shows_tip,
    vbox,
)
from hgviz.maps import Rule
from hgviz.maps.overview import SIGNED_ERROR, UNSIGNED_ERROR
from hgviz.session import Session
from hgviz.session.navigation import step_token

if TYPE_CHECKING:
    from hgviz.gui.jobs import Lanes

# --- what a cell says -----------------------------------------------------------------------------

HINT = "Point at a cell to read it; click to select its query."


@dataclass(frozen=True, slots=True)
class CellReading:
    """The weights of one query, and the key that is pointed at or chosen, in words.

    weights (keys,): the row. rule: which cells exist, None for all. off: the head is switched off.
    """

    head: HeadId
    rows: Names
    columns: Names
    row: int
    weights: Floats
    column: int | None = None
    rule: Rule | None = None
    signed: bool = False
    off: bool = False

    def sentence(self) -> str:
        """HTML: "s puts 89 % of its weight on . 31 tokens back."."""
        query = marked(self.rows.glyph(self.row))
        if self.off:
            return tr("Head {head} is switched off: it adds nothing to {query}.",
                      head=self.head, query=query)  # fmt: skip
        column = int(np.abs(self.weights).argmax()) if self.column is None else self.column
        weight, key = float(self.weights[column]), marked(self.columns.glyph(column))
        if self._is_masked:
            return tr("{key} is masked for {query}: {why}.", key=key, query=query,
                      why=self._reason())  # fmt: skip
        amount = _bold(sentences.weight(abs(weight), 3) if self.signed else sentences.share(weight))
        if self.column is None:
            if weight == 0:
                return tr("{query} attends to nothing here.", query=query)
            words = "{query} attends most to {key}: {amount}{away}. {sum}"
            amount = tr("{share} of its weight", share=sentences.share(weight))
            amount = _bold(sentences.with_sign(weight) if self.signed else amount)
        elif weight == 0:
            words = "{query} puts no weight on {key}{away}. {sum}"
        elif not self.signed:
            words = "{query} puts {amount} of its weight on {key}{away}. {sum}"
        elif weight > 0:
            words = "{query} adds {amount} of {key}{away}. {sum}"
        else:
            words = "{query} subtracts {amount} of {key}{away}. {sum}"
        return tr(words, query=query, key=key, amount=amount, away=self._distance(column),
                  sum=self._sum()).rstrip()  # fmt: skip

    def card(self) -> str:
        """HTML: the weight, large, and the two ends; "" without a column."""
        if self.column is None:
            return ""
        note = f"color:{theme.current().secondary.name()}"
        big = f"font-size:{theme.font(1.55).pixelSize()}px;font-weight:600"
        weight = float(self.weights[self.column])
        if self._is_masked:
            value, what = "–", self._reason()
        elif self.signed:
            value = sentences.with_sign(weight, 2)
            what = tr("subtracted") if weight < 0 else tr("added") if weight else ""
            what = what or tr("no weight")
        else:
            value, what = sentences.weight(weight), tr("of this row’s weight")
        sides = (tr("from"), self.rows, self.row), (tr("to"), self.columns, self.column)
        ends = "".join(
            f'<tr><td style="{note};padding-right:8px">{name}</td>'
            f'<td align="right" style="padding-right:8px">{marked(names.glyph(cell))}</td>'
            f"<td>{sentences.marked_up(names.place(cell))}</td></tr>"
            for name, names, cell in sides
        )
        number = f'<span style="{big}">{escape(value, quote=False)}</span>&nbsp;&nbsp;'
        table = '<table cellspacing="0" cellpadding="1" style="margin-top:4px">'
        return f'{number}<span style="{note}">{what}</span>{table}{ends}</table>'

    def _sum(self) -> str:
        """The sum of the row in words; empty where it is 1."""
        parts = np.minimum(self.weights, 0), np.maximum(self.weights, 0)
        negative, positive = (float(part.sum(dtype=np.float64)) for part in parts)
        if self.signed:
            total = escape(ink.sum_words(negative, positive, 3), quote=False)
            return tr("The row sums to {sum}.", sum=total)
        words = tr("The row sums to {sum:.3f}.", sum=negative + positive)
        return "" if f"{negative + positive:.3f}" == "1.000" else words

    def _distance(self, column: int) -> str:
        """The distance of a key from the query in words; "" between two texts."""
        query, key = int(self.rows.spans[self.row, 1]) - 1, int(self.columns.spans[column, 1]) - 1
        if query < 0 or key < 0 or self.rows.prompt is not self.columns.prompt:
            return ""
        if query == key:
            is_same = self.rows.spans[self.row, 0] == self.columns.spans[column, 0]
            return tr(", itself") if is_same else ""
        distance = sentences.counted(abs(query - key), self.rows.prompt.unit)
        return tr(" {far} back" if key < query else " {far} ahead", far=distance)

    @property
    def _is_masked(self) -> bool:
        if self.column is None or self.rule is None:
            return False
        return not exists(self.rule, self.row, self.column)

    def _reason(self) -> str:
        start = int(self.columns.spans[self.column, 0])
        same_text = self.rows.prompt is self.columns.prompt
        if same_text and start >= 0 and start >= int(self.rows.spans[self.row, 1]):
            return tr("it comes after the query")
        if self.rule.streaming_window is not None and start >= 0:
            return tr("it is not among the first or the latest keys")
        return tr("it is outside the mask")


def hidden(rule: Rule) -> str:
    """Why some cells of a map are masked, for the chip on it; empty where none is."""
    if rule.causal and rule.sees_all:
        return tr("masked (causal)")
    if rule.streaming_window is not None:
        sink, recent = rule.streaming_window
        return tr("masked: not in the first {sink:,} or latest {recent:,}",
                  sink=sink, recent=recent)  # fmt: skip
    if not rule.sees_all:
        return tr("masked: outside the window")
    padded = rule.keep is not None and not rule.keep.all()
    return tr("masked: padding") if padded else ""


def marked(text: str) -> str:
    """A glyph of the text: monospaced, in the colour of the selection."""
    family = ",".join(f"'{name}'" for name in theme.MONO)
    style = f"font-family:{family};font-weight:600;color:{theme.current().mark_text.name()}"
    return f'<span style="{style}">{sentences.marked_up(text)}</span>'


def _bold(text: str) -> str:
    words = escape(text, quote=False).replace(" ", "&nbsp;")
    return f'<span style="font-weight:600;color:{theme.current().text.name()}">{words}</span>'


# --- canvas ---------------------------------------------------------------------------------------

LEFT, RIGHT = 88, 68  # logical px beside a map alone: words, numbers
TOP, BOTTOM = 71, 60  # above and below it: words, sentence
LOW_TOP, LOW_BOTTOM, LOW_CANVAS = 42, 40, 430  # the same in a canvas that is lower
PAD, GAP, GUTTER = 13, 13, 48
HIGH = 18  # px of a line of words
ROOMY = 420  # px that a sentence is at ease in
SEAT, FOOT = 34, 52  # px over each of three maps, and below: the bar, its values, a note
GUTTER_ROOM, GUTTER_GAP = 46, 3  # px for the sums of its rows, and what is free beside these
CLOSE = 7  # px from one of three maps to the sums of its rows
BAR_HIGH, BAR_GAP, NOTE_DOWN = 9, 9, 35  # px: its bar, the gap to that, and to the note below
SIGN, MORE_ROOM = 28, 48  # px between two maps with a sign there, and more where maps leave room
SMALLEST = 64  # px of one of three maps
CLICK = 4  # px: a press that moves less is a click
LATE = 200  # ms: a picture that is exact before needs no word
BLINK = 500  # ms that A or B is shown
TURNS = {Qt.Key.Key_Plus: 1, Qt.Key.Key_Equal: 1, Qt.Key.Key_Minus: -1}

Cell = tuple[int | None, int | None]


class MapPane:
    """One map of a canvas: its scene, picture and place.

    note: the words of a chip on it. rect: the map in logical px. has_words: whether its rows are
    named. there: the rows and columns it has anything in, None for all. lack: what is said in its
    place.
    """

    def __init__(self, canvas: QWidget, alone: bool) -> None:
        self.scene: MapScene | None = None
        self.note = ""
        self.cross = Cross()
        self.card, self.missing = CellCard(canvas, 200 if alone else 0), CellCard(canvas, 0)
        self.missing.setWordWrap(True)
        self.missing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.rect = QRectF()
        self.corner = QPointF()
        self.has_words = self.visible = True
        self.there: There = None
        self.lack: Lack = None
        self.picture = MapPicture()
        self.quality: Quality = "exact"
        self.screen: tuple[object, ...] = ()  # the tiles that the quality was found by
        self.thumb: Pixels | None = None
        self.sums: tuple[object, QPixmap] | None = None  # as they were drawn last


class MapCanvas(QWidget):
    """Shows one map or three, all the same part, and emits what the pointer does.

    It reads nothing: tiles come into its cache. A canvas of three has a seat over each map for what
    names it.
    """

    own_keys = tuple(ARROWS)
    pointed = Signal(object)  # (row, column) under the pointer, None when it leaves
    clicked = Signal(int, int)  # row, column
    moved = Signal()  # another part is on screen: its tiles are wanted

    def __init__(self, cache: Tiles, count: int = 1) -> None:
        super().__init__()
        self.cache = cache
        self.alone = count == 1
        self.panes = tuple(MapPane(self, self.alone) for _ in range(count))
        self.seats = () if self.alone else tuple(QWidget(self) for _ in range(count))
        for seat in self.seats:
            hbox(seat, margins=(0, 4, 0, 4), spacing=8)
        self.room = 8, 8  # (height, width) for each map, in device pixels
        self.view = Viewport.fitted((1, 1), self.room)  # the part on screen
        self.blinks = False  # whether A and B take turns in one place
        self._shows_b = self._names_b = False
        self._top = TOP
        self._ground: tuple[object, QPixmap] | None = None
        self._grip: QPointF | None = None  # where the button went down, or the last drag was
        self._drags = False
        self._turned = 0
        self.sentence = label(kind="secondary", wrap=True)
        self.sentence.setParent(self)
        self.sentence.setTextFormat(Qt.TextFormat.RichText)
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.sentence.setVisible(self.alone)
        self._patience = QTimer(self, singleShot=True, interval=LATE)  # with what is not exact
        self._patience.timeout.connect(self.update)
        self._blinking = QTimer(self, interval=BLINK)
        self._blinking.timeout.connect(self._swap)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(
            tr("Map of attention weights" if self.alone else "Maps of A, of B, and of A − B")
        )

    def minimumSizeHint(self) -> QSize:
        if not self.alone:
            return QSize(0, 0)
        return QSize(LEFT + RIGHT + 48, LOW_TOP + LOW_BOTTOM + 48)

    # --- what is shown ----------------------------------------------------------------------------

    def show_scenes(
        self,
        scenes: Sequence[MapScene],
        there: Sequence[There] = (None,),
        lacks: Sequence[Lack] = (None,),
    ) -> None:
        """Show the maps of heads; the part on screen stays where the shape does.

        there: the rows and columns that each has anything in; lacks: what is said in the place of
        one that is not there.
        """
        for pane, scene, has, lack in zip(self.panes, scenes, there, lacks, strict=True):
            pane.scene = scene if lack is None else None
            pane.there, pane.lack, pane.thumb = has, lack, None
            pane.missing.say("" if lack is None else "<b>{}</b><br>{}".format(*map(escape, lack)))
        self._names_b = not self.alone and scenes[1].rows is not scenes[0].rows
        self._arrange()
        view = self.view.of(scenes[0].source.shape).resized(self.room, self._ratio)
        self._look(view, moves=view != self.view)

    def grow(self, shape: tuple[int, int]) -> None:
        """Show the same head for a text of another length; the part on screen stays."""
        self.view = self.view.of(shape, same_text=True)

    def fit(self) -> None:
        self._look(Viewport.fitted(self.view.shape, self.room, self._ratio))

    def compose(self, afresh: bool = False) -> None:
        """Compose the pictures again after a change of colours, head or part."""
        for pane in self.panes:
            if pane.scene is not None and pane.scene.source.shape == self.view.shape:
                if afresh:
                    pane.picture = MapPicture()
                pane.picture.show(pane.scene, self.cache, self.view, theme.current().dark)
                self._judge(pane)
        self._place_cards()
        self.update()

    def renew(self, parts: Sequence[Part]) -> None:
        for pane in self.panes:
            scene, view, ratio = pane.scene, pane.picture.view, self._ratio
            if scene is None or view is None:
                continue
            boxes = [view.box(*part.ranges) for part in parts if part.key.source is scene.source]
            boxes = [box for box in boxes if box[0] < box[1] and box[2] < box[3]]
            if len(boxes) > 3:  # one large box is sooner painted than many small ones
                tops, bottoms, lefts, rights = zip(*boxes, strict=True)
                boxes = [(min(tops), max(bottoms), min(lefts), max(rights))]
            for box in boxes:
                pane.picture.renew(scene, self.cache, box, theme.current().dark)
                top, bottom, left, right = (edge / ratio for edge in box)
                place = QRectF(left, top, right - left, bottom - top)
                self.update(place.translated(pane.rect.topLeft()).toAlignedRect())
            if boxes:
                self._judge(pane)

    def point(self, row: int | None, column: int | None, cards: Sequence[str]) -> None:
        """Draw the cross hairs at a cell, and HTML cards beside it."""
        for pane, card in zip(self.panes, cards, strict=True):
            ends = None
            if row is not None and pane.scene is not None:
                inside = seen_columns(pane.scene.source.rule, row, pane.scene.source.shape[1])
                ends = (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 0)
            cross = Cross(row, column, ends)
            if cross != pane.cross:
                pane.cross = cross
                self.update()
            pane.card.say(card)
        self._place_cards()

    def say(self, sentence: str) -> None:
        """Show a sentence (HTML) beneath a single map."""
        self.sentence.setFont(theme.font())
        self.sentence.setText(sentence)
        self._place_sentence()
        self._place_cards()

    def reveal(self, row: int | None, column: int | None) -> None:
        """Scroll until a cell is on screen, no further."""
        down = self.view.down if row is None else self.view.down.around(row)
        across = self.view.across if column is None else self.view.across.around(column)
        if (down, across) != self.view.axes:
            self._look(replace(self.view, down=down, across=across))

    def zoom(self, turns: int, place: QPointF) -> None:
        """Zoom in (turns > 0) or out around a place."""
        rect = self._pane_at(place).rect
        spot = (place - rect.topLeft()) * self._ratio
        self.view = self.view.zoomed(turns, spot.y(), spot.x())
        before = rect.left()
        self._place()
        after = self._pane_at(place).rect.left()  # it may begin further left now
        self.pan(QPointF(before - after, 0))

    def pan(self, step: QPointF) -> None:
        step = step * self._ratio
        self._look(self.view.panned(round(step.y()), round(step.x())))

    def blink(self, on: bool) -> None:
        """Show A and B in turn in one place, or beside each other again. Asked for once more it
        turns at once, and only so where nothing may move by itself."""
        if on and self.blinks:
            self._swap()
        elif on != self.blinks:
            self.blinks, self._shows_b = on, False
            animation = QStyle.StyleHint.SH_Widget_Animation_Duration
            if on and self.style().styleHint(animation, None, self) > 0:
                self._blinking.start()
            else:
                self._blinking.stop()
            self._resize()

    @property
    def is_exact(self) -> bool:
        """Whether every map is drawn at the resolution that it asks for."""
        return all(pane.quality == "exact" for pane in self.panes if pane.lack is None)

    def _look(self, view: Viewport, moves: bool = True) -> None:
        self.view = view
        self._place()
        self.compose()
        if moves:
            self.moved.emit()

    def _judge(self, pane: MapPane) -> None:
        """Measure how coarse a picture is; show a note if it stays coarse for a while."""
        source = pane.scene.source
        screen = tiles.screen(source, self.view)
        if screen == pane.screen and pane.quality == "exact":
            return
        was_exact = self.is_exact
        pane.screen, pane.quality = screen, tiles.quality(self.cache, source, self.view)
        if self.is_exact and not was_exact:
            self._patience.stop()
            self.update()
        elif was_exact and not self.is_exact:
            self._patience.start()

    # --- where things are -------------------------------------------------------------------------

    @property
    def _ratio(self) -> float:
        return self.devicePixelRatioF()

    def cell_at(self, place: QPointF) -> Cell:
        spot = (place - self._pane_at(place).rect.topLeft()) * self._ratio
        row, column = self.view.down.cell(spot.y()), self.view.across.cell(spot.x())
        return (None, None) if row is None or column is None else (row, column)

    def cell_rect(self, row: int, column: int, number: int = 0) -> QRectF:
        (top, bottom), (left, right) = self.view.down.edges(row), self.view.across.edges(column)
        corner, ratio = self.panes[number].rect.topLeft(), self._ratio
        size = QSize(right - left, bottom - top)
        return QRectF(corner + QPointF(left, top) / ratio, size.toSizeF() / ratio)

    def _pane_at(self, place: QPointF) -> MapPane:
        """The map under a place; the first where there is none."""
        inside = (pane for pane in self.panes if pane.visible and pane.rect.contains(place))
        return next(inside, self.panes[0])

    def _arrange(self) -> None:
        """Give every map its room: beneath words, beside numbers, over the sentence or the bar."""
        self._top = LOW_TOP if self.height() < LOW_CANVAS else TOP
        if self.alone:
            scene = self.panes[0].scene
            wide = self.width() - LEFT - RIGHT - (GUTTER if scene and scene.signed else 0)
            high = self.height() - self._top - (BOTTOM if self._top == TOP else LOW_BOTTOM)
            self.room = max(8, int(high * self._ratio)), max(8, int(wide * self._ratio))
            return
        # A names its rows, B where they are others or take the place of those of A
        count, names_b = (2 if self.blinks else 3), LEFT if self._names_b else 0
        margins = [LEFT, SIGN + names_b, SIGN][:count]
        free = self.width() - sum(margins) - count * GUTTER_ROOM
        side = max(SMALLEST, min(free // count, self.height() - SEAT - self._top - FOOT))
        more = min(MORE_ROOM, max(0, free - count * side) // count)
        self.room = max(8, int(side * self._ratio)), max(8, int(side * self._ratio))
        left = -more
        for number, (pane, seat) in enumerate(zip(self.panes, self.seats, strict=True)):
            if not (self.blinks and number == 1):
                left += margins.pop(0) + more + (side + GUTTER_ROOM if number else 0)
            pane.corner = QPointF(left, SEAT + self._top)
            pane.visible = not self.blinks or number == 2 or (number == 1) == self._shows_b
            pane.has_words = number == 0 or (number == 1 and (self._names_b or self.blinks))
            seat.setGeometry(left, 0, side + GUTTER_ROOM - 8, SEAT)
            seat.setVisible(pane.visible)

    def _place(self) -> None:
        """Place the maps in their rooms: a single one in the middle, three at the left."""
        view, ratio = self.view, self._ratio
        height, width = (size / ratio for size in view.size)
        if self.alone:
            left = (self.room[1] - view.size[1]) // 2 / ratio
            spare = (self.room[0] - view.size[0]) // ratio  # for longer words above
            self.panes[0].corner = QPointF(LEFT + left, min(TOP, self._top + spare))
        for pane in self.panes:
            pane.rect = QRectF(pane.corner.x(), pane.corner.y(), width, height)
        self._place_sentence()

    def _place_sentence(self) -> None:
        rect = self.panes[0].rect
        left = round(rect.left()) if self.width() - rect.left() >= ROOMY else LEFT
        width = self.width() - left - PAD
        height = self.sentence.heightForWidth(width)
        self.sentence.setGeometry(left, round(rect.bottom()) + HIGH, width, height)

    def _place_cards(self) -> None:
        """Place the cards off the cell, its row and its column; hide them without such a place."""
        for number, pane in enumerate(self.panes):
            row, column, card = pane.cross.row, pane.cross.column, pane.card
            pane.missing.setVisible(pane.lack is not None and pane.visible)
            width = max(0, int(pane.rect.width()) - 64)
            box = QRectF(0, 0, width, pane.missing.heightForWidth(width))
            box.moveCenter(pane.rect.center())
            pane.missing.setGeometry(box.toRect())
            is_lacking = not card.text() or pane.scene is None or not pane.visible
            if row is None or column is None or is_lacking:
                card.hide()
                continue
            below = pane.rect.bottomLeft().toPoint()
            if self.alone:
                below = self.sentence.geometry().bottomLeft() + QPoint(0, GAP)
            cell = self.cell_rect(row, column, number)
            if pane.rect.intersects(cell):
                card.stand(cell, pane.rect, below)
            else:
                card.hide()

    # --- painting ---------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        view, ratio, changed = self.view, self._ratio, QRectF(event.rect())
        panes = [pane for pane in self.panes if pane.visible]
        with QPainter(self) as painter:
            painter.drawPixmap(0, 0, self._drawn_ground(panes))
            for pane in panes:
                rect, scene, cross = pane.rect, pane.scene, pane.cross
                around = rect.adjusted(-LEFT, -TOP, RIGHT + GUTTER, FOOT)
                if scene is None or pane.picture.view != view or not around.intersects(changed):
                    continue
                corner = (rect.topLeft() * ratio).toPoint()
                painter.save()
                painter.scale(1 / ratio, 1 / ratio)
                painter.drawImage(corner, ink.image(pane.picture.pixels))
                painter.restore()
                self._veil(painter, pane)
                if not rect.contains(changed):
                    down, titles = Marks(), None
                    if pane.has_words:
                        down, titles = scene.rows.marks(view.down, ratio, cross.row), scene.titles
                    across = scene.columns.marks(view.across, ratio, cross.column)
                    room = LEFT, round(rect.top()) if self.alone else self._top
                    ink.axes(painter, rect, room, down, across, titles)
                    self._draw_sums(painter, pane)
                causal = scene.source.rule.causal
                ink.draw_cross(painter, cross, view, corner, signed=scene.signed, causal=causal)
                ink.markers(painter, cross, view, rect)
                self._draw_notes(painter, pane)
            if not self.alone and not self.blinks:
                self._draw_signs(painter)
            if self.hasFocus():
                first = QRectF(panes[0].rect.toAlignedRect().adjusted(-5, -5, 5, 5))
                ink.focus_ring(painter, QRectF(self.rect()) if self.alone else first)

    def _drawn_ground(self, panes: Sequence[MapPane]) -> QPixmap:
        """Return what stays while maps move: frames, hatching, colour bars, missing maps."""
        ratio, dark = self._ratio, theme.current().dark
        looks = [
            (pane.rect.getRect(), pane.lack, scene and (scene.limits, scene.display, scene.signed))
            for pane in panes
            for scene in (pane.scene,)
        ]
        key = self.size().toTuple(), ratio, dark, looks
        if self._ground is None or self._ground[0] != key:
            ground = QPixmap(self.size() * ratio)
            ground.setDevicePixelRatio(ratio)
            ground.fill(Qt.GlobalColor.transparent)
            with QPainter(ground) as painter:
                for pane in panes:
                    rect = pane.rect
                    ink.unseen(painter, rect)
                    ink.framed(painter, rect, theme.current().edge)
                    if pane.scene is not None and self.alone:
                        before = GAP + (ink.WIDE + 10 if pane.scene.signed else 0)
                        bar = QRectF(rect.right() + before, rect.top(), ink.BAR, rect.height())
                        ink.colour_bar(painter, bar, pane.scene, tr("Weight"))
                    elif pane.scene is not None:
                        bar = QRectF(rect.left(), rect.bottom() + BAR_GAP, rect.width(), BAR_HIGH)
                        ink.colour_bar(painter, bar, pane.scene)
            self._ground = key, ground
        return self._ground[1]

    def _veil(self, painter: QPainter, pane: MapPane) -> None:
        """Hatch a head that is switched off, and rows and columns that a side does not have."""
        rect, ratio, now = pane.rect, self._ratio, theme.current()
        if pane.scene.off:
            ink.switched_off(painter, rect)
        for axis, there in zip(self.view.axes, pane.there or (), strict=False):
            for first, last in _missing_runs(axis, there):
                start, size = first / ratio, (last - first) / ratio
                box, corner = QRectF(start, 0, size, rect.height()), rect.topLeft()
                if axis is self.view.down:
                    box = QRectF(0, start, rect.width(), size)
                lines = ink.faint(now.secondary, 0.55)
                ink.hatched(painter, box.translated(corner), now.hover, lines, corner)

    def sums_rect(self, pane: MapPane) -> QRectF:
        """The box of the row sums; empty without them."""
        scene, rect = pane.scene, pane.rect
        if scene is None or scene.mass is None or (self.alone and not scene.signed):
            return QRectF()
        gap = GAP if self.alone else CLOSE  # of three, the next one follows
        return QRectF(rect.right() + gap, rect.top(), ink.WIDE, rect.height())

    def _draw_sums(self, painter: QPainter, pane: MapPane) -> None:
        """Draw the row sums, of three maps on one scale; the picture is cached, as it is slow."""
        gutter = self.sums_rect(pane)
        if gutter.isEmpty():
            return
        masses = [pane.scene.mass for pane in self.panes if pane.scene is not None]
        most = max(float(np.abs(mass).max(initial=0)) for mass in masses if mass is not None)
        axis, ratio, mass = self.view.down, self._ratio, pane.scene.mass
        key = axis, id(mass), most, gutter.getRect(), ratio, theme.current().dark
        box = gutter.adjusted(-20, -26, 20, 2)
        if pane.sums is None or pane.sums[0] != key:
            drawn = QPixmap((box.size() * ratio).toSize())
            drawn.setDevicePixelRatio(ratio)
            drawn.fill(Qt.GlobalColor.transparent)
            with QPainter(drawn) as inside:
                inside.translate(-box.topLeft())
                title = "" if self.alone else tr("row")
                ink.draw_row_sums(inside, gutter, axis, mass, most, title)
            pane.sums = key, drawn
        painter.drawPixmap(box.topLeft(), pane.sums[1])

    def sums_at(self, place: QPointF) -> str:
        """The row sum at a place: "row 3: sum +0.43: +0.71 −0.28"; "" elsewhere."""
        for pane in self.panes:
            gutter = self.sums_rect(pane)
            if pane.visible and gutter.contains(place):
                row = self.view.down.cell((place.y() - gutter.top()) * self._ratio)
                mass = pane.scene.mass if pane.scene is not None else None
                if row is not None and mass is not None and row < len(mass):
                    total = ink.sum_words(float(mass[row, 0]), float(mass[row, 1]))
                    return tr("row {row:,}: sum {sum}", row=row, sum=total)
        return ""

    def _draw_notes(self, painter: QPainter, pane: MapPane) -> None:
        """Draw chips, the note on resolution, and the small overview in a corner."""
        rect, view = pane.rect, self.view
        hides = not pane.picture.pixels[::8, ::-8].all()  # looked at here and there
        note = tr("off: this head adds nothing") if pane.scene.off else pane.note * hides
        if note:
            ink.chip(painter, rect.topRight() + QPointF(-PAD, PAD), note, rect.width() - 2 * PAD)
        sides = [f"{1 / min(1, axis.scale):.3g}" for axis in view.axes]  # cells that share a pixel
        shared = tr("1 px = {rows} × {columns}, max", rows=sides[0], columns=sides[1])
        parts = self.quality_words(pane), "" if sides == ["1", "1"] else shared
        words = " · ".join(filter(None, parts))
        if words:
            down = 2 if self.alone else 2 + NOTE_DOWN
            # a narrow map has room to its left
            box = QRectF(rect.right() - 400, rect.bottom() + down, 400, HIGH)
            where = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop
            font, colour = theme.font(ink.AXIS), theme.current().secondary
            theme.write(painter, box, words, font, colour, where)
        if pane is self.panes[0] and not view.whole and pane.scene.source.thumb is not None:
            if pane.thumb is None:
                pane.thumb = ink.thumbnail(pane.scene, theme.current().dark)
            ink.draw_inset(painter, rect, pane.thumb, view)

    def quality_words(self, pane: MapPane) -> str:
        """How coarse a picture is, once it has been so for a while."""
        if self._patience.isActive() or pane.quality == "exact" or pane.scene is None:
            return ""
        if pane.quality == "coarse":
            return tr("loading full resolution")
        error = SIGNED_ERROR if pane.scene.signed else UNSIGNED_ERROR
        return tr("loading, within {error:.1f} %", error=100 * error)

    def _draw_signs(self, painter: QPainter) -> None:
        side = self.room[0] / self._ratio
        for sign, before, pane in zip("−=", self.panes, self.panes[1:], strict=False):
            left = before.corner.x() + side + GUTTER_ROOM - GUTTER_GAP
            right = pane.corner.x() - (LEFT if pane.has_words else 0)
            x, y = (left + right - SIGN) // 2, pane.corner.y() + side // 2 - 12
            box, colour = QRectF(x, y, SIGN, 24), theme.current().text
            theme.write(painter, box, sign, theme.font(1.3), colour, theme.CENTRE)

    # --- the pointer and keys ---------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        return shows_tip(event, self, self.sums_at) or super().event(event)

    def leaveEvent(self, event: QEvent) -> None:
        self._turned = 0
        self.pointed.emit(None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._grip, self._drags = event.position(), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = event.position()
        if self._grip is None:
            row, column = self.cell_at(place)
            self.pointed.emit(None if row is None or column is None else (row, column))
        elif self._drags or (place - self._grip).manhattanLength() >= CLICK:
            self._drags = True
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self.pan(place - self._grip)
            self._grip = place

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        is_click = self._grip is not None and not self._drags
        self._grip, self._drags = None, False
        self.unsetCursor()
        row, column = self.cell_at(event.position())
        if is_click and row is not None and column is not None:
            self.clicked.emit(row, column)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom by whole notches; the steps of fine wheels add up."""
        self._turned += event.angleDelta().y()
        turns = int(self._turned / NOTCH)
        self._turned -= turns * NOTCH
        if turns:
            self.zoom(turns, event.position())
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Zoom by + and − around the chosen cell."""
        cross, key = self.panes[0].cross, Qt.Key(event.key())
        if key not in TURNS:
            super().keyPressEvent(event)
            return
        has_cell = cross.row is not None and cross.column is not None
        rect = self.cell_rect(cross.row, cross.column) if has_cell else self.panes[0].rect
        self.zoom(TURNS[key], rect.center())

    # --- size, theme, blinking --------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._resize()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            for pane in self.panes:
                pane.thumb = None
            self.compose()
        elif event.type() == QEvent.Type.DevicePixelRatioChange:
            self._resize()
        super().changeEvent(event)

    def _resize(self) -> None:
        """Keep the part on screen, or the whole map, at another size."""
        self._arrange()
        self._look(self.view.resized(self.room, self._ratio))

    def _swap(self) -> None:
        self._shows_b = not self._shows_b
        self._arrange()
        self._place_cards()
        self.update()


def _missing_runs(axis: MapAxis, there: Bools) -> list[tuple[int, int]]:
    """Half-open runs of pixels without any cell."""
    bounds = axis.bounds()
    ends = np.maximum(bounds[1:], bounds[:-1] + 1)
    counts = np.concatenate([[0], np.cumsum(there)])
    gone = counts[np.minimum(ends, len(there))] == counts[np.minimum(bounds[:-1], len(there))]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], gone, [False]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


# --- views of maps --------------------------------------------------------------------------------


class MapsView(View):
    """A view of one map or three, whose cells stand for a query and a key of one head."""

    count: ClassVar[int] = 1  # of maps
    lane = "map"

    def __init__(self) -> None:
        super().__init__()
        self.tiles = Tiles()
        self.canvas = MapCanvas(self.tiles, self.count)
        self._opened: OpenedMap[Any] | None = None
        self._pointed: tuple[int, int] | None = None  # the cell under the pointer
        self._supply = TileSupply(self.canvas)
        self._supply.outgrown.connect(self._present)
        self._supply.added_up.connect(self._present)
        self.canvas.pointed.connect(self._point)
        self.canvas.clicked.connect(self._click)
        self.canvas.moved.connect(self._fetch)
        self.canvas.installEventFilter(self)
        self.start_at(self.canvas)

    def bind(self, session: Session, lanes: Lanes) -> None:
        super().bind(session, lanes)
        self._supply.start(lanes, self.show_error)

    def unbind(self) -> None:
        super().unbind()
        self._supply.stop()

    @property
    def zoomed(self) -> bool:
        return not self.canvas.view.whole

    def fit(self) -> None:
        self.canvas.fit()

    def as_text(self) -> str:
        return plain(self.canvas.sentence.text()) if self.canvas.alone else super().as_text()

    def settle(self) -> None:
        """Ask, read every tile on screen and draw, now."""
        super().settle()
        if self._opened is not None:
            self._opened.load(self.tiles, self.canvas.view)
            self.canvas.compose(afresh=True)
            self._show_maps()

    def noticed(self, name: str) -> None:
        if name in ("selection", "hover"):
            self._follow(reveal=name == "selection" and self._pointed is None)
        elif name == "display":
            self._present()

    # --- showing ----------------------------------------------------------------------------------

    def _show_maps(self, reveal: bool = False) -> None:
        """Show what is open and what is looked at, and have tiles read that the screen lacks."""
        self._present()
        self._follow(reveal)
        self._fetch()

    def _fetch(self, hurry: bool = False) -> None:
        if self._opened is not None and self.isVisible():
            self._supply.want(self._opened, hurry)

    def _present(self) -> None:
        opened, session = self._opened, self.session
        if opened is None:
            return
        if self.canvas.alone:
            self.canvas.panes[0].note = hidden(opened.grid.rule_of(opened.head.head))
        limits, scenes = self._limits(opened, session), []
        masses = opened.masses or (None,) * self.count
        parts = zip(opened.sources, opened.names, masses, self._off(opened), strict=True)
        for source, (rows, columns), mass, off in parts:
            signed = opened.signed or source.signed
            ends = palettes.limits_of(*limits, signed)
            scenes.append(
                MapScene(signed, ends, session.display, source, rows, columns, off, mass,
                         opened.titles)
            )  # fmt: skip
        self.canvas.show_scenes(scenes, opened.there, opened.lacks)

    def _limits(self, opened: OpenedMap[Any], session: Session) -> tuple[float, float]:
        """The weights that the ends of the colours stand for."""
        return session.display.limits or (-opened.peak, opened.peak)

    def _off(self, opened: OpenedMap[Any]) -> tuple[bool, ...]:
        return (False,) * self.count

    # --- what is looked at ------------------------------------------------------------------------

    def _follow(self, reveal: bool = False) -> None:
        """Show what is looked at now. reveal: move until it is on screen."""
        raise NotImplementedError

    def _cell(self) -> Cell:
        """The row and column looked at: of the pointer, its row kept where a query is chosen."""
        if self._opened is None:
            return None, None
        looked, grid = self.session.looked_at, self._opened.grid
        row, column = grid.cell(looked.query, looked.key)
        if self._pointed is None:
            return row, column
        keeps_row = self.session.selection.query is not None and row is not None
        in_band = isinstance(grid, Grid) and grid.band is not None
        return (row if keeps_row and not in_band else self._pointed[0]), self._pointed[1]

    # --- what people do ---------------------------------------------------------------------------

    def _selection_of(self, row: int, column: int) -> Selection:
        """What a cell stands for: a head with a query and a key, None for what it has not."""
        if self._opened is None:  # another is on its way
            return replace(self.session.selection, query=None, key=None)
        query, key = self._opened.grid.tokens(row, column)
        return Selection(*self._opened.head, query=query, key=key)

    def _point(self, cell: tuple[int, int] | None) -> None:
        if cell == self._pointed:
            return
        self._pointed, before = cell, self.session.hover
        hover, (row, column) = None, self._cell()
        if cell is not None and row is not None and column is not None:
            hover = self._selection_of(row, column)
        self.session.put(hover=hover)
        if hover == before:  # the same tokens, or a cell that stands for none
            self._follow()

    def _click(self, row: int, column: int) -> None:
        chosen = self._selection_of(row, column)
        if chosen.query is not None:
            selection = self.session.selection
            self._choose(replace(selection, query=chosen.query, key=chosen.key))

    def _choose(self, selection: Selection) -> None:
        self._pointed = None
        self.session.put(hover=None, selection=selection)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """On a map the arrows go where they point: the query runs down, the key across."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if (arrow := arrow_of(event)) is not None:
                self._choose(step_token(self.session, *arrow))
                return True
            if event.key() == Qt.Key.Key_Escape and self._escape():
                return True
        return super().eventFilter(watched, event)

    def _escape(self) -> bool:
        """Let go of the hover first, then of the selection; whether there was anything."""
        session = self.session
        if session.hover is not None or self._pointed is not None:
            self._choose(session.selection)
            self._follow()
        elif session.selection.key is not None or session.selection.query is not None:
            self._choose(replace(session.selection, query=None, key=None))
        else:
            return False
        return True


class HeadMapsView(MapsView):
    """A view of the maps of the selected head, named above them with its role and its levels."""

    def __init__(self) -> None:
        super().__init__()
        self.role = Words(factor=0.92, weight=500, kind="chip")
        self.role.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.role.hide()
        self.head = HeadTitle(self.role)
        vbox(self.content, self.head, (self.canvas, 1))

    def _add_buttons(self, fit_words: str) -> None:
        fit_button = IconButton("fit", fit_words)
        fit_button.clicked.connect(self.fit)
        self.export = self.export_button()
        self.head.add(fit_button, self.export)

    def _entitle(self, title: str, head: HeadId, levels: str) -> None:
        facts = self.session.facts.get(head)
        self.head.title.setText(title)
        self.head.show_level(levels)
        self.role.say(tr(facts.role) if facts else "")
        self.role.setVisible(bool(self.role.full))
