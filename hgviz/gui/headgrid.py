"""All heads as cells: thumbnails, scores, conductance, and their colours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QKeyEvent,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QFrame, QWidget

from hgviz import palettes
from hgviz.analysis.importance import METHODS, Method, importance, mean_over_runs
from hgviz.core import HeadId, HeadSet, Integers, ModelSpec, progress
from hgviz.examples import EACH
from hgviz.gui import ink, sentences, theme
from hgviz.gui.language import tr
from hgviz.gui.layouts import FLAT, HeadLayout, HeadRow, RowsLayout, rows_layout
from hgviz.gui.sentences import Citation, counted, explanation, layer_name, method_explained
from hgviz.gui.theme import write
from hgviz.gui.widgets import Words, hbox, label, shows_tip, tip, vbox
from hgviz.language import decimals
from hgviz.study import Study
from hgviz.tasks.measurements import Patching

NAME, SMALL = 0.92, 0.85  # sizes of type, in parts of the window's

# --- grid -----------------------------------------------------------------------------------------

NO_HEADS = HeadLayout(0.0, 0.0, FLAT, (), ())

RING = 5  # px around a cell that its frames take
STEPS = {
    Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0),
    Qt.Key.Key_Home: (0, -(10**6)), Qt.Key.Key_End: (0, 10**6),
}  # fmt: skip
ACTS = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)


class HeadPicture:
    """The content of a HeadGrid: the layout of its heads and how each is drawn."""

    spec: ModelSpec

    def key(self) -> object:
        """What the layout depends on besides the room, to be compared."""
        raise NotImplementedError

    def arrange(self, room: QSize) -> HeadLayout:
        """Lay the heads out in a room."""
        raise NotImplementedError

    def paint_ground(self, painter: QPainter, layout: Any, shown: QRectF) -> None:
        """Draw what is behind and around all cells; shown: the part of it that is in view."""

    def paint_row(self, painter: QPainter, layout: Any, row: HeadRow, right: float) -> None:
        """Draw what stands beside the cells of a layer, up to an x at the right."""

    def paint_cell(self, painter: QPainter, head: HeadId, box: QRectF, is_off: bool) -> None:
        """Draw one head."""

    def words(self, head: HeadId, is_off: bool) -> str:
        """Describe a head in words, for its card and for screen readers."""
        raise NotImplementedError


class HeadGrid(QAbstractScrollArea):
    """All heads of a model: a click chooses one, and where it `switches`, switches it.

    walks: arrows go from head to head. A drag switches all heads that it comes over as the first
    one, with Shift whole layers.
    """

    picked = Signal(object)  # HeadId
    hovered = Signal(object)  # HeadId | None
    switched = Signal(object, bool)  # HeadSet; whether it is undone together with the last one
    rearranged = Signal()  # cells have another size

    def __init__(self, name: str, *, walks: bool = False, switches: bool = False) -> None:
        super().__init__()
        self.own_keys = (*(STEPS if walks else ()), *(ACTS if switches else ()))
        self.picture: HeadPicture | None = None
        self.head_layout: HeadLayout = NO_HEADS
        self.off: HeadSet = frozenset()
        self.chosen: HeadId | None = None
        self.opened: HeadSet = frozenset()
        self.ringed: HeadId | None = None
        self._switches = switches
        self._stroke: bool | None = None  # what a drag does: True switches off
        self._goes_on = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(name)
        self.viewport().setMouseTracking(True)
        self.verticalScrollBar().setSingleStep(24)

    def sizeHint(self) -> QSize:
        return QSize(592, 640)

    # --- what it shows ----------------------------------------------------------------------------

    def show_picture(self, picture: HeadPicture | None) -> None:
        """Show another picture; it is laid out again where its key is another."""
        before, self.picture = self.picture, picture
        if picture is None or before is None or before.key() != picture.key():
            self.rearrange()
        self._describe()
        self.viewport().update()

    def show_off(self, off: HeadSet) -> None:
        changed, self.off = off ^ self.off, off
        if changed:
            self._describe()
            self._repaint(*changed)

    def mark(
        self, chosen: HeadId | None, opened: HeadSet = frozenset(), ringed: HeadId | None = None
    ) -> None:
        """Frame the selected head, those last opened at other levels, and the one pointed at."""
        changed = {self.chosen, chosen, self.ringed, ringed, *(self.opened ^ opened)}
        is_moved = chosen != self.chosen
        self.chosen, self.opened, self.ringed = chosen, opened, ringed
        if is_moved:
            self._reveal()
            self._describe()
        self._repaint(*changed)

    def rearrange(self) -> None:
        """Lay out again, for another picture or another size."""
        before, view = self.sizes(), self.viewport().size()
        layout = NO_HEADS if self.picture is None else self.picture.arrange(view)
        self.head_layout = layout
        for bar, size, part in (
            (self.horizontalScrollBar(), layout.width, view.width()),
            (self.verticalScrollBar(), layout.height, view.height()),
        ):
            bar.setRange(0, max(0, round(size - part)))
            bar.setPageStep(part)
        # Qt hides no bar within its own layout
        QApplication.postEvent(self, QEvent(QEvent.Type.LayoutRequest))
        self._reveal()
        if before != self.sizes():
            self.rearranged.emit()
        self.viewport().update()

    def sizes(self) -> dict[HeadId, tuple[int, int]]:
        """Width and height of every cell in device pixels."""
        ratio = self.devicePixelRatioF()
        return {
            head: (max(1, round(cell.width() * ratio)), max(1, round(cell.height() * ratio)))
            for head, cell in self.head_layout.cells()
        }

    @property
    def shown(self) -> QRectF:
        """The part of the layout in view."""
        corner = QPointF(self.horizontalScrollBar().value(), self.verticalScrollBar().value())
        return QRectF(corner, self.viewport().size())

    def where(self, head: HeadId) -> QRect | None:
        """The cell of a head, in the coordinates of the viewport."""
        cell = self.head_layout.box(head)
        return None if cell is None else cell.translated(-self.shown.topLeft()).toRect()

    def words(self, head: HeadId) -> str:
        """Describe a head in words, for its card and for screen readers."""
        if self.picture is None or head.layer >= len(self.picture.spec.layers):
            return ""  # it is of the model before
        return self.picture.words(head, head in self.off)

    def _describe(self) -> None:
        words = []
        if self.picture is not None and self.chosen is not None:
            total = len(self.picture.spec.heads)
            off = tr("{n:,} of {total:,} heads off", n=len(self.off), total=total)
            words = [self.words(self.chosen), off if self.off else ""]
        self.setAccessibleDescription(" · ".join(filter(None, words)))

    def _repaint(self, *heads: HeadId | None) -> None:
        for layer in {head.layer for head in heads if head is not None}:
            if (row := self.head_layout.row(layer)) is not None:
                top = row.top - RING - self.shown.top()
                box = QRectF(0, top, self.width(), row.height + 2 * RING)
                self.viewport().update(box.toAlignedRect())

    def _reveal(self) -> None:
        box = self.where(self.chosen) if self.chosen is not None else None
        if box is not None:
            for bar, start, end, room in (
                (self.horizontalScrollBar(), box.left(), box.right(), self.viewport().width()),
                (self.verticalScrollBar(), box.top(), box.bottom(), self.viewport().height()),
            ):
                beyond = min(0, start - 24) or max(0, end + 24 - room)
                bar.setValue(bar.value() + beyond)

    # --- mouse and keyboard -----------------------------------------------------------------------

    def _head_at(self, place: QPointF) -> HeadId | None:
        return self.head_layout.head_at(place + self.shown.topLeft())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        head = self._head_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and head is not None:
            self.picked.emit(head)
            self._begin_stroke(head, event.modifiers())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        head = self._head_at(event.position())
        if head != self.ringed:
            pointing = Qt.CursorShape.PointingHandCursor
            self.viewport().setCursor(Qt.CursorShape.ArrowCursor if head is None else pointing)
            self._ring(head)
        if head is not None:
            self._go_on_stroke(head, event.modifiers())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._stroke = None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows walk, Space switches a head, Shift+Space its layer."""
        if event.key() not in self.own_keys or self.chosen is None or self.picture is None:
            super().keyPressEvent(event)
        elif event.key() in STEPS:
            self.picked.emit(self.head_layout.step(self.chosen, *STEPS[Qt.Key(event.key())]))
        else:
            self._begin_stroke(self.chosen, event.modifiers())
            self._stroke = None

    def _begin_stroke(self, head: HeadId, modifiers: Qt.KeyboardModifier) -> None:
        self._stroke, self._goes_on = head not in self.off if self._switches else None, False
        self._go_on_stroke(head, modifiers)

    def _go_on_stroke(self, head: HeadId, modifiers: Qt.KeyboardModifier) -> None:
        row = self.head_layout.row(head.layer)
        if self._stroke is None or row is None:
            return
        takes_layer = bool(modifiers & Qt.KeyboardModifier.ShiftModifier)
        heads = frozenset(head for head, _ in row.cells) if takes_layer else frozenset({head})
        off = self.off | heads if self._stroke else self.off - heads
        if off != self.off:
            goes_on, self._goes_on = self._goes_on, True
            self.switched.emit(off, goes_on)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave:
            self._ring(None)
        return shows_tip(event, self, self._tip_at) or super().viewportEvent(event)

    def _tip_at(self, place: QPointF) -> str:
        head = self._head_at(place)
        return "" if head is None else self.words(head)

    def _ring(self, head: HeadId | None) -> None:
        before, self.ringed = self.ringed, head
        self._repaint(before, head)
        self.hovered.emit(head)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.ApplicationFontChange):
            self.rearrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.rearrange()

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Repaint all of it: the names of the levels do not scroll."""
        self.viewport().update()

    # --- the picture ------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        picture, layout, shown = self.picture, self.head_layout, self.shown
        with theme.smooth_painter(self.viewport()) as painter:
            painter.fillRect(self.viewport().rect(), theme.current().pane)
            if picture is None:
                return
            painter.translate(-shown.topLeft())
            asked = event.region().translated(shown.topLeft().toPoint())
            picture.paint_ground(painter, layout, shown)
            draw_brackets(painter, layout, picture.spec)
            for row in layout.rows:
                strip = QRectF(shown.left(), row.top - RING, shown.width(), row.height + 2 * RING)
                if asked.intersects(strip.toAlignedRect()):
                    is_chosen = self.chosen is not None and row.layer == self.chosen.layer
                    draw_layer_name(painter, layout, row, picture.spec, is_chosen)
                    picture.paint_row(painter, layout, row, shown.right() - 16)
                    for head, box in row.cells:
                        if asked.intersects(box.toAlignedRect()):
                            picture.paint_cell(painter, head, box, head in self.off)
            self._paint_frames(painter, layout)
            if self.hasFocus() and not self.own_keys:
                ink.focus_ring(painter, shown)

    def _paint_frames(self, painter: QPainter, layout: HeadLayout) -> None:
        """Orange around the chosen head, dashed around those opened elsewhere, dark around the one
        pointed at."""
        now, is_small = theme.current(), layout.size < FLAT
        frames = [(head, now.mark, 2.0, True) for head in self.opened if head != self.chosen]
        if self.ringed is not None and self.ringed != self.chosen:
            frames.append((self.ringed, now.text, 1.5, False))
        if self.chosen is not None:
            frames.append((self.chosen, now.mark, 3.0, False))
        for head, colour, width, is_dashed in frames:
            if (cell := layout.box(head)) is None:
                continue
            pen = QPen(colour, width)
            if is_dashed:
                pen.setDashPattern([3, 1.6])
            out, radius = (width / 2 - 0.5, 2) if is_small else (width / 2 + 0.5, 5)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(pen)
            painter.drawRoundedRect(cell.adjusted(-out, -out, out, out), radius, radius)
            if head == self.chosen and self.own_keys and self.hasFocus():  # the keyboard is there
                around = cell.adjusted(-4, -4, 4, 4)
                theme.draw_box(painter, around, radius + 2, edge=now.press, width=1.5)


# --- around the cells -----------------------------------------------------------------------------


def draw_head_numbers(painter: QPainter, layout: HeadLayout, middle: float) -> None:
    """Number the columns, as many as there is room for; middle: the y of the numbers."""
    font, columns = theme.font(NAME), layout.columns
    metrics = QFontMetricsF(font)
    pitch = columns[1][1] - columns[0][1] if len(columns) > 1 else 80
    is_named = metrics.horizontalAdvance(tr("head {head}", head="00")) < pitch
    every = 1
    while not is_named and metrics.horizontalAdvance("00 ") > pitch * every:
        every *= 2
    for head, x in columns[::every]:
        words = tr("head {head}", head=head) if is_named else str(head)
        box, colour = QRectF(x - 40, middle - 10, 80, 20), theme.current().secondary
        write(painter, box, words, font, colour, theme.CENTRE)


def draw_layer_name(
    painter: QPainter, layout: HeadLayout, row: HeadRow, spec: ModelSpec, is_chosen: bool
) -> None:
    """The number of a layer left of its heads, and what the model calls it where that differs."""
    now, middle = theme.current(), row.top + row.height / 2
    box = QRectF(layout.edge(middle) - 47, middle - 10, 40, 20)
    font = theme.font(NAME, 600 if is_chosen else 400)
    colour = now.mark_text if is_chosen else now.secondary
    write(painter, box, str(row.layer), font, colour, theme.TO_RIGHT)
    if own := layer_name(spec, row.layer):
        used = QFontMetricsF(theme.font(NAME, 600)).horizontalAdvance("00") + 6
        box = QRectF(0, box.top(), box.right() - used, 20)
        write(painter, box, own, theme.font(SMALL), now.secondary, theme.TO_RIGHT)


def names_width(spec: ModelSpec) -> float:
    """Px that the names of layers take left of their numbers; 0 where they have none."""
    metrics = QFontMetricsF(theme.font(SMALL))
    names = [metrics.horizontalAdvance(layer_name(spec, layer.index)) for layer in spec.layers]
    return max(names, default=0.0) + 12 if any(names) else 0.0


def draw_signed_bar(painter: QPainter, track: QRectF, part: float) -> None:
    """A bar from the middle of a track, to the right where a part of its half is positive."""
    middle = track.center().x()
    left, right = sorted((middle, middle + part * track.width() / 2))
    bar = QRectF(left, track.top(), right - left, track.height())
    painter.fillRect(bar, ink.sides()[int(part > 0)])
    painter.fillRect(QRectF(round(middle), track.top(), 1, track.height()), theme.current().edge)


def draw_brackets(painter: QPainter, layout: HeadLayout, spec: ModelSpec) -> None:
    """A bracket over the heads that share their keys, above each first row with such groups."""
    painter.setPen(QPen(theme.current().secondary, 1.2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    before = (1, 0.0)
    for row in layout.rows:
        layer, boxes = spec.layers[row.layer], dict(row.cells)
        here = (layer.shared, row.cells[0][1].left() if row.cells else 0.0)
        groups = layer.groups.values() if layer.shared > 1 and here != before else ()
        before = here
        for heads in groups:
            first, last = (boxes[HeadId(row.layer, head)] for head in (heads[0], heads[-1]))
            left, right, top = first.left() + 0.5, last.right() - 0.5, row.top - 5.5
            painter.drawPolyline(
                [QPointF(left, top + 3), QPointF(left, top), QPointF(right, top),
                 QPointF(right, top + 3)]
            )  # fmt: skip


def key_group_words(spec: ModelSpec, head: HeadId) -> str:
    """The key group of a head in words, "" for a head with keys of its own."""
    layer = spec.layers[head.layer]
    heads = layer.groups.get(head.head // layer.shared, ())
    if len(heads) < 2:
        return ""
    is_run = len(heads) > 2 and heads[-1] - heads[0] == len(heads) - 1
    before, last = ", ".join(map(str, heads[:-1])), heads[-1]
    words = "{first} to {last}" if is_run else "{before} and {last}"
    return tr(
        "key group {layer}.g{group}: heads {heads} share their keys",
        layer=head.layer, group=head.head // layer.shared,
        heads=tr(words, first=heads[0], before=before, last=last),
    )  # fmt: skip


# --- shades ---------------------------------------------------------------------------------------

BEND = 0.7  # of colours about zero: small scores stay visible
# how many times a score is written, and its unit then: of bits, and of something else
SCALES = (
    (1.0, "bits per {noun}", "{unit}"),
    (1e3, "mbit per {noun}", "10⁻³ {unit}"),
    (1e6, "µbit per {noun}", "10⁻⁶ {unit}"),
)


@dataclass(frozen=True, slots=True)
class Shade:
    """A head's number in the unit of its shades, with its interval; NaN where it is not measured.

    part: on how much of the data, "" for all of it.
    """

    value: float
    low: float
    high: float
    part: str = ""

    @property
    def includes_zero(self) -> bool:
        """Whether the score is not significantly different from 0."""
        return self.low <= 0 <= self.high


@dataclass(frozen=True, slots=True)
class Shades:
    """A number of each head and the colours between low and high; symmetric where low is -high.

    bend: the power of the part of the scale that is coloured. ends: the words at the two ends of
    the bar. about: what the number means. part: on how much of the data the numbers are. layers: a
    number of whole layers, drawn as a bar beside each. digits: decimals of what a cell says.
    """

    label: str = ""
    unit: str = ""
    limits: tuple[float, float] = (-1.0, 1.0)
    heads: Mapping[HeadId, Shade] = field(default_factory=dict)
    palette: str = "blue-red"
    bend: float = BEND
    ends: tuple[str, str] = ("harmful", "important")
    about: str = ""
    part: str = ""
    layers: Mapping[int, float] = field(default_factory=dict)
    digits: int = 1

    def colour_of(self, value: float, dark: bool) -> QColor:
        low, high = self.limits
        place = min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5
        if low == -high:
            place = 0.5 + 0.5 * math.copysign(abs(2 * place - 1) ** self.bend, value)
        else:
            place = place**self.bend
        table = np.asarray(palettes.colours(self.palette, dark))
        return QColor(*map(int, table[round(place * (len(table) - 1))]))

    def measured(self, head: HeadId) -> Shade | None:
        """The number of a head, None where nothing was measured."""
        shade = self.heads.get(head)
        return None if shade is None or math.isnan(shade.value) else shade

    def colour(self, head: HeadId, dark: bool) -> QColor | None:
        """The colour of a cell, None where nothing was measured."""
        if (shade := self.measured(head)) is None:
            return None
        return self.colour_of(0.0 if shade.includes_zero else shade.value, dark)

    def number(self, head: HeadId) -> str:
        """The number in a cell: +4.2, ≈ 0, or nothing."""
        if (shade := self.measured(head)) is None:
            return ""
        return "≈ 0" if shade.includes_zero else decimals(shade.value, self.digits, signed=True)

    def words(self, head: HeadId) -> str:
        """Such as: +4.2 [3.9, 4.5] mbit per byte; for tooltips."""
        if (shade := self.measured(head)) is None:
            return tr("not measured")
        numbers = {"value": shade.value, "low": shade.low, "high": shade.high}
        words = "{value} {unit}" if shade.low == shade.high else "{value} [{low}, {high}] {unit}"
        words = "{value} [{low}, {high}] {unit}, not significant" if shade.includes_zero else words
        written = {name: decimals(n, self.digits, signed=True) for name, n in numbers.items()}
        return ", ".join(filter(None, (tr(words, unit=self.unit, **written), shade.part)))


def offered(study: Study | None) -> tuple[Method, ...]:
    """The scores that a study has."""
    return tuple(row for row in METHODS.values() if study is not None and row.is_measured(study))


def shades(study: Study, method: str) -> Shades:
    """The scores of all heads by a method."""
    progress(0, 1)
    scores = importance(study, method)
    score_method, needed = scores.method, scores.method.needed
    bits = score_method.unit == "nats"
    factor = needed / math.log(2) if bits else float(needed)
    values = scores.score * factor
    ends = np.sort([scores.low * factor, scores.high * factor], axis=0)
    sizes = np.abs(values[np.isfinite(values)])
    most = float(sizes.max()) if len(sizes) else 0.0
    scale, *units = next((row for row in SCALES if most * row[0] >= 1), SCALES[-1])
    noun = tr(place_noun(study.asked, study.spec))
    other = score_method.unit or tr(score_method.label).lower()
    unit = tr(units[0 if bits else 1], noun=noun, unit=other)
    seen, total, noun = _seen(study, score_method)
    rows = (np.stack([values, *ends], axis=1) * scale).tolist()
    heads = {
        head: Shade(value, low, high, _part(seen[at : at + 1], total, noun))
        for at, (head, (value, low, high)) in enumerate(zip(study.heads, rows, strict=True))
    }
    limit = max(most * scale, 1e-12)
    part = _part(seen[[head not in study.off for head in study.heads]], total, noun)
    about = method_explained(method)
    return Shades(tr(score_method.label), unit, (-limit, limit), heads, about=about, part=part)


DIRECTIONS = {  # of patching: what it is called, and what it means
    "denoised": ("Patching, denoised", "Share of the logit difference that is restored when a head "
                 "of the corrupted run takes its context from the clean run"),
    "noised": ("Patching, noised", "Share of the logit difference that is lost when a head of the "
               "clean run takes its context from the corrupted run"),
}  # fmt: skip
PATCHING = Citation("(Δ_patched − Δ_corrupted) / (Δ_clean − Δ_corrupted)", "Meng et al. 2022")


def patch_shades(patching: Patching, way: str) -> Shades:
    """What patching each head does, in per cent of the logit difference; way: one of DIRECTIONS."""
    title, about = DIRECTIONS[way]
    values = 100 * getattr(patching, way)
    limit = max(float(np.abs(values).max(initial=0)), 1e-12)
    heads = {
        head: Shade(value, value, value)
        for head, value in zip(patching.heads, values.tolist(), strict=True)
    }
    return Shades(
        tr(title), tr("% of the logit difference"), (-limit, limit), heads,
        ends=("opposes it", "supports it"), about=explanation(tr(about), PATCHING),
    )  # fmt: skip


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
    """The noun for one place that is scored: text, byte, masked token."""
    if asked in ("classes", "states"):
        return "text" if spec is None or spec.modality == "text" else spec.modality
    token = "byte" if spec is not None and spec.vocabulary == 256 else "token"
    return f"masked {token}" if asked == "masked" else token


# --- scores ---------------------------------------------------------------------------------------

EDGE = 7  # px of a cell that is off keep its colour
WORDS = 30  # px of width that "off" takes
LAYER_BAR, NARROW_ROWS = 150, 360  # px: the bars of layers, and the width from which they show
LEVEL_NAMES = 64  # px
WAYS = {"down": "pooling", "up": "upsampling", "cross": "cross-attention"}


class Scores(HeadPicture):
    """A row for each layer, its heads in the colours of their scores or of what they conduct."""

    def __init__(self, spec: ModelSpec, shades: Shades) -> None:
        self.spec, self.shades = spec, shades

    def key(self) -> object:
        return self.spec, bool(self.shades.layers)

    def arrange(self, room: QSize) -> RowsLayout:
        bars = LAYER_BAR if self.shades.layers and room.width() > NARROW_ROWS else 0
        levels = LEVEL_NAMES if len(self.spec.levels) > 1 else 0
        names = levels + names_width(self.spec)
        return rows_layout(self.spec, room.width() - bars, room.height(), names)

    def words(self, head: HeadId, is_off: bool) -> str:
        layer = self.spec.layers[head.layer]
        parts = [
            tr("Head {head}", head=head), layer_name(self.spec, head.layer),
            tr(WAYS.get(layer.role, "")), tr("switched off") if is_off else tr("on"),
        ]  # fmt: skip
        lines = [" · ".join(filter(None, parts)), key_group_words(self.spec, head)]
        if self.shades.label:
            words = self.shades.words(head)
            lines.append(tr("{score}: {value}", score=self.shades.label, value=words))
        return "\n".join(filter(None, lines))

    def paint_ground(self, painter: QPainter, layout: RowsLayout, shown: QRectF) -> None:
        now, bold = theme.current(), theme.font(weight=600)
        for group in layout.groups:
            theme.draw_box(painter, group.box, 6, ink.faint(now.silhouette[group.shade], 0.55))
            box = QRectF(group.box.left() + 12, group.box.top() + 4, 72, 28)
            write(painter, box, group.name, bold, now.text)
        draw_head_numbers(painter, layout, 11)

    def paint_row(self, painter: QPainter, layout: HeadLayout, row: HeadRow, right: float) -> None:
        """A funnel where a layer goes to another level, and the number of the layer as a bar."""
        now, middle = theme.current(), row.top + row.height / 2
        if row.kind in ("down", "up"):
            x, sign = layout.edge(middle) - 49, 1 if row.kind == "down" else -1
            wide, narrow = middle - 4 * sign, middle + 4 * sign
            painter.setPen(QPen(now.secondary, 1.2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            corners = ((x - 7, wide), (x + 7, wide), (x + 3.5, narrow), (x - 3.5, narrow))
            painter.drawPolygon(QPolygonF([QPointF(*corner) for corner in corners]))
        if row.layer not in self.shades.layers or right < layout.width + 44:
            return
        value, left = self.shades.layers[row.layer], layout.width
        most = max(map(abs, self.shades.layers.values())) or 1.0
        right = min(right, left + LAYER_BAR)
        track = QRectF(left, row.top + 4, right - left - 50, row.height - 8)
        draw_signed_bar(painter, track, value / most)
        box = QRectF(left, row.top, right - left, row.height)
        words = sentences.with_sign(value, 2)
        write(painter, box, words, theme.font(SMALL), now.text, theme.TO_RIGHT)

    def paint_cell(self, painter: QPainter, head: HeadId, box: QRectF, is_off: bool) -> None:
        """Its colour and number; a head that is off is hatched and keeps its colour at an edge."""
        now, bold = theme.current(), theme.font(NAME, 600)
        ground, metrics = self.shades.colour(head, now.dark), QFontMetricsF(bold)
        radius = 5.0 if box.width() > 30 else 2.5
        if not is_off:
            inner = box.adjusted(0.5, 0.5, -0.5, -0.5)
            theme.draw_box(painter, inner, radius, ground or now.raised, now.edge)
            words = self.shades.number(head)
            is_room = metrics.horizontalAdvance(words) < box.width() - 3 and box.height() > 14
            if ground is not None and is_room:
                rgb = np.array([ground.red(), ground.green(), ground.blue()])
                colour = QColor(*map(int, palettes.contrasting_colour(rgb)))
                write(painter, box, words, bold, colour, theme.CENTRE)
            return
        inner, edge = box.adjusted(0.75, 0.75, -0.75, -0.75), min(EDGE, box.width() / 3)
        theme.draw_box(painter, inner, radius, now.pane)
        painter.setBrushOrigin(box.topLeft())
        theme.draw_box(painter, inner, radius, ink.hatching(painter, ink.faint(now.secondary, 0.6)))
        painter.setBrushOrigin(QPointF(0, 0))
        painter.save()
        painter.setClipRect(QRectF(box.left(), box.top(), edge, box.height()))
        theme.draw_box(painter, inner, radius, ground or now.hover)
        painter.restore()
        theme.draw_box(painter, inner, radius, edge=now.text, width=1.5)
        x = box.left() + edge
        painter.drawLine(QPointF(x, inner.top()), QPointF(x, inner.bottom()))
        if box.width() > WORDS + edge and box.height() >= 14:
            word = tr("off")
            high = min(box.height() - 4, metrics.height() + 2)
            chip = QRectF(0, 0, metrics.horizontalAdvance(word) + 12, high)
            chip.moveCenter(QPointF(box.center().x() + edge / 2, box.center().y()))
            theme.draw_box(painter, chip, high / 2, now.pane)
            write(painter, chip, word, bold, now.text, theme.CENTRE)


# --- bar ------------------------------------------------------------------------------------------

STOPS = 41
RAMP, NUMBERS = 14, 20  # px: the height of the colours, and of the numbers beneath them
SHORT = 40  # px of the colours of a short bar


class Ramp(QWidget):
    """The colours of shades, with numbers beneath unless it is short."""

    def __init__(self, is_short: bool) -> None:
        super().__init__()
        self.shades, self._is_short = Shades(), is_short
        self.setMinimumWidth(SHORT if is_short else 60)
        self.setMaximumWidth(SHORT if is_short else 316)
        self.setFixedHeight(RAMP if is_short else RAMP + NUMBERS)

    def paintEvent(self, event: QPaintEvent) -> None:
        now, font, shades = theme.current(), theme.font(SMALL), self.shades
        low, high = shades.limits
        side = 0 if self._is_short else 8  # half of a number at the end
        bar = QRectF(self.rect()).adjusted(side, 1, -side, 0)
        bar.setHeight(RAMP - 2)
        with theme.smooth_painter(self) as painter:
            painter.setBrush(now.raised)
            if shades.label:
                colours = QLinearGradient(bar.topLeft(), bar.topRight())
                for part in np.linspace(0, 1, STOPS).tolist():
                    colour = shades.colour_of(low + part * (high - low), now.dark)
                    colours.setColorAt(part, colour)
                painter.setBrush(colours)
            painter.setPen(QPen(now.edge, 1))
            painter.drawRect(bar)
            for part in (0.0, 0.5, 1.0) if shades.label and not self._is_short else ():
                x = bar.left() + part * bar.width()
                painter.fillRect(QRectF(round(x), bar.bottom(), 1, 4), now.secondary)
                words = decimals(low + part * (high - low), 1, signed=True)
                wide = QFontMetricsF(font).horizontalAdvance(words)
                left = min(max(0.0, x - wide / 2), self.width() - wide)
                box = QRectF(left, bar.bottom() + 4, wide + 4, NUMBERS - 4)
                write(painter, box, words, font, now.secondary)


class OffSign(QWidget):
    """A small cell as heads that are off look."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(22, 18)

    def paintEvent(self, event: QPaintEvent) -> None:
        now, box = theme.current(), QRectF(1, 1, 20, 16)
        with theme.smooth_painter(self) as painter:
            for ground in (now.pane, ink.hatching(painter, ink.faint(now.secondary, 0.6))):
                theme.draw_box(painter, box, 4, ground, now.text, 1.2)


class ShadeBar(QWidget):
    """The colours of shades between their two ends, the unit and heads that are off beneath.

    is_short: the colours and ends alone, as wide as they need.
    """

    def __init__(self, is_short: bool = False) -> None:
        super().__init__()
        self.shades = Shades()
        self._ramp = Ramp(is_short)
        self._low, self._high = (label(factor=NAME, kind="secondary") for _ in range(2))
        self._unit, self._part = (Words(factor=SMALL, kind="secondary") for _ in range(2))
        top = Qt.AlignmentFlag.AlignVCenter if is_short else Qt.AlignmentFlag.AlignTop
        off = (OffSign(), label(tr("switched off"), factor=NAME, kind="secondary"))
        parts = (self._low, self._ramp, self._high, *(() if is_short else off))
        row = hbox(None, *((part, 0, top) for part in parts), spacing=6)
        if not is_short:
            row.setStretch(1, 4)
            row.addStretch(1)
        margins = (0, 0, 0, 0) if is_short else (16, 3, 16, 0)
        vbox(self, row, self._unit, self._part, margins=margins)
        self._unit.setVisible(not is_short)
        self._is_short = is_short
        self.show_shades(self.shades)

    def show_shades(self, shades: Shades) -> None:
        self.shades = self._ramp.shades = shades
        low, high = map(tr, shades.ends)
        self._low.setText(low)
        self._high.setText(high)
        self._unit.say(shades.unit if shades.label else tr("not measured yet"))
        self._part.say(shades.part)
        self._part.setVisible(bool(shades.part) and not self._is_short)
        self.setToolTip(tip(shades.about))
        first, second = (decimals(end, 1, signed=True) for end in shades.limits)
        words = tr("Colours: not measured yet")
        if shades.label:
            unit = ", ".join(filter(None, (shades.unit or shades.label, shades.part)))
            words = tr("Colours: {first} = {low}, {second} = {high}; {unit}", first=first,
                      second=second, low=low, high=high, unit=unit)  # fmt: skip
        self.setAccessibleName(words)
        self._ramp.update()
