"""Links between tokens, a line for each weight."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import asin, ceil, sin
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from PySide6.QtCore import QEvent, QMargins, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QLineEdit,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from hgviz import palettes
from hgviz.core import Capture, HeadId, HgvizError, Selection, parse_heads, progress
from hgviz.figures.spec import Spec
from hgviz.gui import ink, sentences, theme
from hgviz.gui.heatmap import share
from hgviz.gui.language import tr
from hgviz.gui.sentences import Citation, explanation
from hgviz.gui.view import CAPTURE, View
from hgviz.gui.widgets import (
    Flow,
    IconButton,
    PaneHead,
    Picker,
    Words,
    label,
    line,
    turns_along,
    vbox,
)
from hgviz.maps.links import (
    LinkOptions,
    Links,
    Side,
    comparable_layers,
    find_links,
    link_sides,
    places_of,
)
from hgviz.session import Session
from hgviz.session.navigation import step_token

if TYPE_CHECKING:
    from hgviz.gui.jobs import Lanes

# --- bar ------------------------------------------------------------------------------------------


HERE, LAYER, LEVEL, NAMED = "here", "layer", "level", "named"
CAP = 200  # links of a query and head, however they are chosen
DRAWN = "Which links of each query and head are drawn, {most} at most"
LIMITS = (
    ("Strongest", {"most": 1}), ("5 strongest", {"most": 5}), ("20 strongest", {"most": 20}),
    ("80 % of the weight", {"most": CAP, "mass": 0.8}),
)  # fmt: skip
USUAL = 1
VALUED = "Scale weights by the norm of the value: weight × |v·W_O|"
NORM = Citation("‖a_ij v_j W_O‖", "Kobayashi et al. 2020")
TOGGLES = (
    ("mean", "Mean of heads", "One link for all these heads: the mean of their weights"),
    ("words", "Merge subwords", "Merge tokens into words: rows averaged, columns added"),
    ("special", "Special tokens", "Show special tokens, padding and the zeros of a shift"),
    ("values", "Value norms", VALUED),
)
NO_NORMS = "This capture has no value norms: capture the text again to scale by them"


class LinkBar(Flow):
    """The controls of links; `changed` says that one was used."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__(QMargins(16, 2, 16, 6))
        self.heads, self.limit, self.named = Picker(), Picker(), QLineEdit()
        self.named.setPlaceholderText("12.5, 11.*")
        self.named.setFixedWidth(120)
        self.named.setToolTip(tr("Heads by number, such as 12.5, 11.*"))
        self.named.setAccessibleName(tr("Heads by number"))
        self.named.editingFinished.connect(self.changed)
        self.named.hide()
        for name in (HERE, LAYER, LEVEL, NAMED):
            self.heads.addItem(name, name)
        for words, limits in LIMITS:
            self.limit.addItem(tr(words), limits)
        self.limit.setCurrentIndex(USUAL)
        for box, name, about in (
            (self.heads, tr("Heads"), tr("Which heads have links")),
            (self.limit, tr("Links"), tr(DRAWN, most=CAP)),
        ):
            box.setAccessibleName(name)
            box.setToolTip(about)
            box.setSizeAdjustPolicy(Picker.SizeAdjustPolicy.AdjustToContents)
            box.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.heads.currentIndexChanged.connect(self._choose_heads)
        self.limit.currentIndexChanged.connect(self.changed)
        self.toggles: dict[str, QToolButton] = {}
        for name, words, about in TOGGLES:
            button = self.toggles[name] = QToolButton()
            button.setText(tr(words))
            button.setToolTip(tr(about))
            button.setCheckable(True)
            button.setFixedHeight(28)
            button.setChecked(name == "special")
            button.toggled.connect(self.changed)
        self.toggles["mean"].hide()
        for control in (self.heads, self.named, self.limit, *self.toggles.values()):
            self.add(control)

    def options(self, capture: Capture, chosen: Selection) -> LinkOptions:
        """The options chosen. Raises HgvizError for numbers of heads that the model lacks."""
        on: dict[str, Any] = {name: one.isChecked() for name, one in self.toggles.items()}
        heads = self._heads(capture, chosen)
        fuse: Literal["mean", "each"] = "mean" if on.pop("mean") and len(heads) > 1 else "each"
        options = LinkOptions(most=0, heads=heads, fuse=fuse, **on)
        return replace(options, **self.limit.currentData())

    def fit(self, capture: Capture, chosen: Selection) -> None:
        """Name the heads there are, and enable what this capture has."""
        level = sentences.ends(capture.spec, chosen.layer)
        for at, words in enumerate((
            tr("Head {head}", head=chosen.head_id),
            tr("Layer {layer}: all heads", layer=chosen.layer),
            tr("All heads at {level}", level=level) if level else tr("All heads"),
            tr("Heads by number…"),
        )):  # fmt: skip
            self.heads.setItemText(at, words)
        layers = comparable_layers(capture, chosen.layer)
        has_norms = all(getattr(capture.maps[at], "value_norms", None) is not None for at in layers)
        self.toggles["values"].setEnabled(has_norms)
        about = explanation(tr(VALUED), NORM) if has_norms else tr(NO_NORMS)
        self.toggles["values"].setToolTip(about)
        with suppress(HgvizError):
            self.toggles["mean"].setVisible(len(self._heads(capture, chosen)) > 1)

    def _heads(self, capture: Capture, chosen: Selection) -> tuple[HeadId, ...]:
        kind = self.heads.currentData()
        if kind == NAMED and self.named.text().strip():
            return tuple(sorted(parse_heads(self.named.text(), capture.spec.layers)))
        if kind in (HERE, NAMED):
            return (chosen.head_id,)
        layers = comparable_layers(capture, chosen.layer) if kind == LEVEL else (chosen.layer,)
        return tuple(HeadId(at, head) for at in layers for head in capture.spec.layers[at].heads)

    def _choose_heads(self) -> None:
        self.named.setVisible(self.heads.currentData() == NAMED)
        if self.named.isVisible():
            self.named.setFocus()
        self.changed.emit()


# --- curve ----------------------------------------------------------------------------------------


Curve = tuple[QPointF, QPointF, QPointF, QPointF]  # start, two control points, end


def in_view(a: QPointF, b: QPointF, low: float, high: float) -> Curve | None:
    """The part of a link's curve that lies between low and high along the text: start, two control
    points, end; None for none. What is far out of view would take long to stroke.

    Along the text the curve goes as 3 t^2 - 2 t^3, which is turned round by a sine.
    """
    first, last = a.y(), b.y()
    if max(first, last) < low or min(first, last) > high:
        return None
    bend = QPointF((b.x() - a.x()) / 2, 0)
    whole = (a, a + bend, b - bend, b)
    if first == last:
        return whole
    parts = sorted((one - first) / (last - first) for one in (low, high))
    ends = [0.5 - sin(asin(1 - 2 * min(1.0, max(0.0, one))) / 3) for one in parts]
    if ends == [0.0, 1.0]:
        return whole
    return between(whole, *ends)


def between(curve: Curve, start: float, end: float) -> Curve:
    """The part of a cubic curve between two of its parameters: its blossom at each corner."""

    def blossom(*at: float) -> QPointF:
        points = list(curve)
        for one in at:
            points = [p * (1 - one) + q * one for p, q in zip(points, points[1:], strict=False)]
        return points[0]

    return (
        blossom(start, start, start), blossom(start, start, end),
        blossom(start, end, end), blossom(end, end, end),
    )  # fmt: skip


# --- colours --------------------------------------------------------------------------------------


RED, BLUE = 215, 40  # of the 256 colours of signed weights


@dataclass(frozen=True, slots=True)
class HeadColours:
    """One strand of every query: its name, and its colours above and below zero."""

    name: str
    above: QColor
    below: QColor
    off: bool = False


def strands_of(links: Links, off: frozenset[object]) -> list[HeadColours]:
    """How each strand is named and coloured; off: heads that are switched off."""
    dark = theme.current().dark
    hues = palettes.CATEGORICAL_DARK if dark else palettes.CATEGORICAL
    if links.single:
        alone = len(links.heads) == 1
        name = str(links.heads[0]) if alone else tr(links.fuse)
        table = palettes.colours("blue-red", dark)
        plain = QColor(hues[0])
        above = QColor(*table[RED].tolist()) if links.signed else plain
        below = QColor(*table[BLUE].tolist()) if links.signed else plain
        return [HeadColours(name, above, below, alone and links.heads[0] in off)]
    found = []
    for at, head in enumerate(links.heads):
        hue = QColor(hues[at % len(hues)])
        found.append(HeadColours(str(head), hue, hue, head in off))
    return found


# --- axis -----------------------------------------------------------------------------------------


LONGEST = 18  # letters of a unit that are shown
PITCH, LETTER = 22, 17  # px of a row, and of a row of single letters
SAMPLED = 300  # units whose labels say how wide all are


@dataclass(frozen=True, slots=True)
class TokenAxis:
    """The units of a text below each other: how many, px of each along the text and across it."""

    count: int
    pitch: float
    width: float

    @classmethod
    def of(cls, side: Side) -> TokenAxis:
        """The axis of a side."""
        some = np.linspace(0, len(side) - 1, min(len(side), SAMPLED)).astype(int).tolist()
        labels = [end_label(side, at)[:LONGEST] for at in some]
        metrics = QFontMetricsF(theme.mono(1.0))
        width = max((metrics.horizontalAdvance(label) for label in labels), default=0.0)
        pitch = LETTER if max(map(len, labels), default=0) <= 2 else PITCH
        return cls(len(side), pitch, width + 14)

    @property
    def length(self) -> float:
        """Px of all of it."""
        return self.count * self.pitch

    def middle(self, place: int) -> float:
        """The middle of a unit."""
        return (place + 0.5) * self.pitch

    def at(self, along: float) -> int | None:
        """The unit at a place."""
        return int(along // self.pitch) if 0 <= along < self.length else None

    def within(self, first: float, last: float) -> tuple[int, int]:
        """The units between two places, half-open."""
        return max(0, int(first // self.pitch)), min(self.count, ceil(last / self.pitch))


# --- scene ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class LinkScene:
    """What is shown. links: of the chosen queries, or of all in view; hot: of the query under the
    pointer, where it is none of these. chosen: places of the queries chosen; key: of the key.
    """

    links: Links
    tracks: tuple[TokenAxis, TokenAxis]
    strands: tuple[HeadColours, ...]
    chosen: frozenset[int] = frozenset()
    key: int | None = None
    hot: Links | None = None
    titles: tuple[str, str] = ("Query", "Key")

    def stays(self, other: LinkScene) -> bool:
        """Whether the same texts stood there before."""
        mine, its = self.links, other.links
        return mine.queries is its.queries and mine.keys is its.keys

    @property
    def shown(self) -> Links:
        """The links whose numbers are said: of the query pointed at, else of those chosen."""
        return self.hot or self.links

    def beyond(self, view: tuple[int, int]) -> list[tuple[bool, int, int, float]]:
        """Links of chosen queries to keys that are not in view: whether before, the strongest, how
        many, how strong that is.
        """
        if not self.chosen and self.hot is None:
            return []
        size: dict[int, float] = {}
        for many in self.shown.strands.values():
            for strand in many:
                for key, weight in zip(strand.keys.tolist(), strand.weights.tolist(), strict=True):
                    size[key] = max(size.get(key, 0.0), abs(weight))
        found = []
        for before in (True, False):
            out = [key for key in size if (key < view[0] if before else key >= view[1])]
            if out:
                top = max(out, key=lambda one: size[one])
                found.append((before, top, len(out), size[top]))
        return found


def end_label(side: Side, place: int) -> str:
    """The label of a unit: a token's own, so that bytes of one character are named each."""
    unit = int(side.shown[place])
    start, end = (int(one) for one in side.tokens[unit])
    if start < 0:
        return "∅"
    if end - start == 1:
        return sentences.name(side.prompt, start).strip() or sentences.SPACE
    found = side.prompt.words(start, end)
    return sentences.shown(found.strip() or found) or " ".join(side.prompt.pieces[start:end])


def amount(value: float, signed: bool, digits: int = 2) -> str:
    """0.42; with signs, where there can be some."""
    return sentences.with_sign(value, digits) if signed else sentences.weight(value, digits)


# --- plan -----------------------------------------------------------------------------------------


PAD = 16
HEAD = 26  # px of the line that says what the columns are
GAP = 8  # px between a text and its links
LEAST = 110  # px of links
WIDEST = 420
STUB = 18  # px of what says that a link goes on beyond what is in view
STUB_WIDTH = 96


@dataclass(frozen=True, slots=True)
class LinkLayout:
    """Of a viewport of width x height px: start and room px along the text; the text of each side
    between sides[0] and sides[1] across it, its links between ends; value: how far it is scrolled,
    up to most.
    """

    start: float
    room: float
    sides: tuple[tuple[float, float], tuple[float, float]]
    ends: tuple[float, float]
    lengths: tuple[float, float]
    value: float
    scene: LinkScene

    @classmethod
    def of(cls, scene: LinkScene, width: float, height: float, value: float) -> LinkLayout:
        """The plan of a scene."""
        lengths = scene.tracks[0].length, scene.tracks[1].length
        most = max(48.0, width * 0.26)
        wide = [max(44.0, min(most, track.width)) for track in scene.tracks]
        free = width - 2 * PAD - wide[0] - wide[1] - 2 * GAP - LEAST
        reach = min(WIDEST, free + LEAST)
        # what is left over stands at both ends
        spare = width - 2 * PAD - sum(wide) - 2 * GAP - reach
        left = PAD + max(0.0, spare) / 2
        first = left, left + wide[0]
        ends = first[1] + GAP, first[1] + GAP + reach
        second = ends[1] + GAP, ends[1] + GAP + wide[1]
        return cls(HEAD, height - HEAD, (first, second), ends, lengths, value, scene)

    @property
    def most(self) -> float:
        """How far it scrolls: as far as the longer of the two goes."""
        return max(0.0, max(self.lengths) + 8 - self.room)

    def scrolled(self, value: float) -> LinkLayout:
        """The same, scrolled elsewhere."""
        return replace(self, value=value)

    def offset(self, side: int) -> float:
        """How far a side is scrolled; of two lengths, each is at the same part of its own."""
        over = max(0.0, self.lengths[side] + 8 - self.room)
        return self.value * over / self.most if self.most else 0.0

    def scroll_to(self, side: int, along: float) -> float:
        """How far to scroll so that a side begins at a place."""
        over = max(0.0, self.lengths[side] + 8 - self.room)
        return min(max(0.0, along), over) * self.most / over if over else 0.0

    def shown(self, side: int) -> tuple[int, int]:
        """The units of a side in view, half-open."""
        first = self.offset(side)
        return self.scene.tracks[side].within(first, first + self.room)

    def along(self, side: int, place: int) -> float:
        """The middle of a unit along the text, in px of the viewport."""
        return self.start + self.scene.tracks[side].middle(place) - self.offset(side)

    def box(self, side: int, place: int) -> QRectF:
        """Where a unit is written."""
        pitch = self.scene.tracks[side].pitch
        low, high = self.sides[side]
        return QRectF(low, self.along(side, place) - pitch / 2, high - low, pitch)

    def end(self, side: int, place: int) -> QPointF:
        """Where links meet a unit."""
        return QPointF(self.ends[side], self.along(side, place))

    def side_at(self, x: float, y: float) -> int | None:
        """Which text is at a place."""
        if y < self.start:
            return None
        for side, (low, high) in enumerate(self.sides):
            if low - GAP <= x <= high + GAP:
                return side
        return 1 if x > self.sides[1][1] else 0 if x < self.sides[0][0] else None

    def stubs(self, scene: LinkScene) -> list[tuple[QRectF, int]]:
        """Where it is said that links go on beyond what is in view, and to which key."""
        found = []
        for before, place, *_ in scene.beyond(self.shown(1)):
            low, high = self.sides[1]
            y = self.start if before else self.start + self.room - STUB
            wide = max(STUB_WIDTH, high - low)
            found.append((QRectF(low - GAP / 2, y, wide, STUB), place))
        return found


# --- brush ----------------------------------------------------------------------------------------


THIN, THICK = 0.8, 6.0  # px
PALE, FULL, BACK = 0.22, 0.92, 0.12  # how opaque weak links are, strong ones, and those behind
NEGATIVE = [3.0, 2.0]  # in widths of a line
EDGE = 8.0  # px beyond what is in view that curves are stroked
ALL = 0.6  # of that, where all queries have links
MOST = 4000  # links that are painted, the strongest
STEP = 3.0  # px between strands that end at one key
CENTRE = Qt.AlignmentFlag.AlignCenter


class LinkPainter:
    """One painting. hot: the side and place under the pointer."""

    def __init__(
        self,
        painter: QPainter,
        scene: LinkScene,
        plan: LinkLayout,
        hot: tuple[int, int] | None,
    ) -> None:
        self.painter, self.scene, self.plan, self.hot = painter, scene, plan, hot
        self.theme = theme.current()
        self.views = plan.shown(0), plan.shown(1)
        self.fonts = {
            (none, bold): theme.mono(0.92 if none else 1.0, 600 if bold else 400)
            for none in (False, True) for bold in (False, True)
        }  # fmt: skip
        self.letter = QFontMetricsF(self.fonts[False, True]).horizontalAdvance("0")

    def paint(self) -> None:
        """Links first, then what they link."""
        painter, plan = self.painter, self.plan
        painter.save()
        painter.setClipRect(QRectF(0, plan.start, 1e5, plan.room))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._links()
        self._texts()
        painter.restore()
        self._heads()
        self._stubs()

    # --- links ------------------------------------------------------------------------------------

    def _links(self) -> None:
        scene, plan = self.scene, self.plan
        found: list[tuple[bool, float, float, int, int, int]] = []
        for links in filter(None, (scene.links, scene.hot)):
            peak = max(scene.links.peak, links.peak) or 1.0
            for place, many in links.strands.items():
                for number, strand in enumerate(many):
                    for key, weight in zip(
                        strand.keys.tolist(), strand.weights.tolist(), strict=True
                    ):
                        front = self._in_front(place, key, links)
                        found.append((front, abs(weight) / peak, weight, number, place, key))
        found.sort(key=lambda one: one[:2])
        strands = len(scene.strands)
        step = min(STEP, 14 / max(1, strands))
        for front, part, weight, number, place, key in found[-MOST:]:
            if not self._near(place, key):
                continue
            beside = step * (number - (strands - 1) / 2)
            self._link(plan, place, key, weight, part, scene.strands[number], beside, front)

    def _in_front(self, place: int, key: int, links: Links) -> bool:
        """Whether a link is one of those looked at; all are where nothing is pointed at."""
        if self.hot is None:
            return links is self.scene.shown
        side, at = self.hot
        if side == 0 and at not in links.strands and self.scene.hot is None:
            return True
        return (place if side == 0 else key) == at

    def _near(self, place: int, key: int) -> bool:
        """Whether any of a link can be in view."""
        a, b = self.plan.along(0, place), self.plan.along(1, key)
        return max(a, b) >= self.plan.start and min(a, b) <= self.plan.start + self.plan.room

    def _link(
        self,
        plan: LinkLayout,
        place: int,
        key: int,
        weight: float,
        part: float,
        strand: HeadColours,
        beside: float,
        front: bool,
    ) -> None:
        a, b = plan.end(0, place), plan.end(1, key) + QPointF(0, beside)
        curve = in_view(a, b, plan.start - EDGE, plan.start + plan.room + EDGE)
        if curve is None:
            return
        path = QPainterPath(curve[0])
        path.cubicTo(*curve[1:])
        colour = strand.below if weight < 0 else strand.above
        alpha = (PALE + (FULL - PALE) * part) if front else BACK
        alpha *= (0.35 if strand.off else 1.0) * (1.0 if self.scene.chosen else ALL)
        wide = THIN + (THICK - THIN) * part
        # a line of 1 px takes a tenth of the time
        pen = QPen(ink.faint(colour, alpha), wide if wide >= 1.6 else 1.0)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        if weight < 0:
            pen.setDashPattern(NEGATIVE)
        self.painter.setBrush(Qt.BrushStyle.NoBrush)
        self.painter.setPen(pen)
        self.painter.drawPath(path)

    # --- texts ------------------------------------------------------------------------------------

    def _texts(self) -> None:
        scene, links = self.scene, self.scene.links
        linked = {int(key) for many in scene.shown.strands.values() for one in many
                  for key in one.keys}  # fmt: skip
        for side, of in enumerate((links.queries, links.keys)):
            for place in range(*self.views[side]):
                box = self.plan.box(side, place)
                chosen = side == 0 and place in scene.chosen
                key = side == 1 and place == scene.key
                hot = self.hot == (side, place)
                self._unit(of, place, side, box, chosen, key, hot, side == 1 and place in linked)

    def _unit(
        self, of: Side, place: int, side: int, box: QRectF, chosen: bool, key: bool, hot: bool,
        linked: bool,
    ) -> None:  # fmt: skip
        painter, now = self.painter, self.theme
        inner = box.adjusted(1, 1, -1, -1)
        if chosen or hot:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(now.mark_tint if chosen else now.hover)
            painter.drawRoundedRect(inner, 4, 4)
        if chosen or key:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(now.mark if chosen else now.text, 1.5))
            painter.drawRoundedRect(inner, 4, 4)
        none = bool(of.special[of.shown[place]])
        bold = chosen or linked
        painter.setFont(self.fonts[none, bold])
        quiet = none or (side == 1 and self.scene.chosen and not linked)
        colour = now.mark_text if chosen else now.secondary if quiet else now.text
        painter.setPen(colour)
        room = box.width() - 8
        text = end_label(of, place)
        metrics = painter.fontMetrics()
        if 2 * len(text) * self.letter > room and metrics.horizontalAdvance(text) > room:
            text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(1, int(room)))
        painter.drawText(
            box.adjusted(4, 0, -4, 0), theme.TO_RIGHT if side == 0 else theme.TO_LEFT, text
        )

    # --- what the columns are ---------------------------------------------------------------------

    def _heads(self) -> None:
        painter, plan, now = self.painter, self.plan, self.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(0.85, 600))
        painter.setPen(now.secondary)
        for side, title in enumerate(self.scene.titles):
            low, high = plan.sides[side]
            box = QRectF(low + 4, 0, max(high - low, 60) - 8, HEAD)
            if side == 0:
                box = QRectF(high - 64, 0, 60, HEAD)
            painter.drawText(box, theme.TO_LEFT if side else theme.TO_RIGHT, title)
        painter.fillRect(QRectF(0, HEAD - 1, painter.viewport().width(), 1), now.line)

    def _stubs(self) -> None:
        """How many links go on beyond what is in view, and to what most."""
        painter, now, keys = self.painter, self.theme, self.scene.links.keys
        said = self.scene.beyond(self.views[1])
        for (box, place), (before, _, count, _) in zip(
            self.plan.stubs(self.scene), said, strict=True
        ):
            painter.setPen(QPen(now.edge, 1))
            painter.setBrush(now.pane)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
            arrow = "↑" if before else "↓"
            more = f" +{count - 1}" if count > 1 else ""
            painter.setPen(now.text)
            painter.setFont(theme.font(0.85, 500))
            text = f"{arrow} {end_label(keys, place)}{more}"
            text = painter.fontMetrics().elidedText(
                text, Qt.TextElideMode.ElideRight, int(box.width()) - 10
            )
            painter.drawText(box, CENTRE, text)


# --- sentences ------------------------------------------------------------------------------------


# by whether weights can be negative, and whether the strongest link is named
SAID = {
    (False, False): "{who}: {links} with {share} of the weight",
    (False, True): "{who}: {links} with {share} of the weight, most {key} {amount}",
    (True, False): "{who}: {links} with {share} of the magnitude",
    (True, True): "{who}: {links} with {share} of the magnitude, most {key} {amount}",
}


def describe_links(links: Links, hot: Links | None, linking: LinkOptions, capture: Capture) -> str:
    """Such as "“s”: 5 links with 93 % of the weight, most “.” 0.89"."""
    shown = hot or links
    strands = [one for many in shown.strands.values() for one in many]
    if not shown.strands:
        return tr("The query is a special token, and these are hidden.")
    count = sum(len(one.keys) for one in strands)
    total = sum(one.total for one in strands)
    off = [str(one) for one in shown.heads if one in capture.off]
    if off and len(off) == len(shown.heads):
        if len(off) > 1:
            return tr("Heads {heads} are switched off.", heads=", ".join(off))
        return tr("Head {head} is switched off.", head=off[0])
    if not count:
        none = "No weight is large enough to be drawn." if total else "No weight in this row."
        return tr(none)
    part = sum(one.part * one.total for one in strands) / total if total else 0.0
    single = len(shown.strands) == 1
    who = tr("{n:,} queries", n=len(shown.strands))
    if single:
        who = sentences.quoted(end_label(shown.queries, next(iter(shown.strands))))
    parts = {"who": who, "links": sentences.counted(count, "link"), "share": share(part)}
    top = strands[0] if single and shown.single and len(strands[0].keys) else None
    if top is not None:
        digits = 3 if shown.values else 2
        parts["key"] = sentences.quoted(end_label(shown.keys, int(top.keys[0])))
        parts["amount"] = amount(float(top.weights[0]), shown.signed, digits)
    said = [tr(SAID[shown.signed, top is not None], **parts)]
    hidden = sum(one.hidden for one in strands)
    if hidden > 0 and total:
        said.append(tr("{share} on special tokens, hidden", share=share(hidden / total)))
    if linking.values:
        said.append(tr("weight × |v·W_O|"))
    if shown.signed:
        said.append(tr("dashed: below zero"))
    return " · ".join(said)


def table_of(links: Links) -> list[list[str]]:
    """A row for every link: both ends, the head (or how heads are put together), the weight."""
    rows = [[tr("Query position"), tr("Query"), tr("Key position"), tr("Key"), tr("Head"),
             tr("Weight")]]  # fmt: skip
    heads = [tr(links.fuse)] if links.single and len(links.heads) > 1 else map(str, links.heads)
    named = tuple(heads)
    for place, many in links.strands.items():
        for head, strand in zip(named, many, strict=True):
            for key, weight in zip(strand.keys.tolist(), strand.weights.tolist(), strict=True):
                ends = *_end(links.queries, place), *_end(links.keys, key)
                rows.append([*ends, head, repr(float(weight))])
    return rows


def _end(side: Side, place: int) -> tuple[str, str]:
    """The token of a unit, as a number, and what is written for it."""
    token = side.token(place)
    return "" if token is None else str(token), end_label(side, place)


# --- canvas ---------------------------------------------------------------------------------------


TURN = 66  # px for one
STEPS = {
    Qt.Key.Key_Up: ("query", -1), Qt.Key.Key_Down: ("query", 1),
    Qt.Key.Key_Left: ("key", -1), Qt.Key.Key_Right: ("key", 1),
}  # fmt: skip
QUERY, KEY = 0, 1


LinkEnd = tuple[int, int]  # a side, QUERY or KEY, and a place on it


class LinkCanvas(QAbstractScrollArea):
    """Queries on one side, keys on the other; says what the pointer chooses."""

    own_keys = tuple(STEPS)
    pointed = Signal(object)  # a LinkEnd, None for nothing
    queried = Signal(int, bool, bool)  # a place; whether it adds to those chosen, or goes up to it
    keyed = Signal(int)  # a place
    stepped = Signal(str, int, bool)  # query or key, by so much, adding
    left = Signal()  # Escape
    moved = Signal()  # other units are in view

    def __init__(self) -> None:
        super().__init__()
        self.scene: LinkScene | None = None
        self.plan: LinkLayout | None = None
        self.hot: LinkEnd | None = None
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

    def show_scene(self, scene: LinkScene | None) -> None:
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

    def _show_links(self, scene: LinkScene) -> None:
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
        if self.scene is None or self.plan is None or place >= self.scene.tracks[side].count:
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
        self.plan = LinkLayout.of(self.scene, size.width(), size.height(), self.bar.value())
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
        with QPainter(self.viewport()) as painter:
            painter.fillRect(self.viewport().rect(), theme.current().pane)
            if self.scene is not None and self.plan is not None:
                LinkPainter(painter, self.scene, self.plan, self.hot).paint()
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(self.viewport().rect()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()
        if self.scene is not None and self.scene.chosen:
            self.reveal(min(self.scene.chosen))
        self.moved.emit()

    def focusInEvent(self, event) -> None:
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event) -> None:
        super().focusOutEvent(event)
        self.viewport().update()

    # --- pointer ----------------------------------------------------------------------------------

    def spot(self, place: QPointF) -> LinkEnd | None:
        """The unit at a place of the viewport; of the two sides, only their text counts."""
        if self.plan is None or self.scene is None:
            return None
        side = self.plan.side_at(place.x(), place.y())
        if side is None:
            return None
        found = self.scene.tracks[side].at(place.y() - self.plan.start + self.plan.offset(side))
        return None if found is None else (side, found)

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
        (side, place), keys = found, event.modifiers()
        if side == KEY:
            self.keyed.emit(place)
            return
        adds = bool(keys & Qt.KeyboardModifier.ControlModifier)
        self._dragging = self._mine = True
        self.queried.emit(place, adds, bool(keys & Qt.KeyboardModifier.ShiftModifier))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Point, or drag over several queries."""
        found = self.spot(event.position())
        if found == self.hot:
            return
        self.point(found)
        self.pointed.emit(found)
        if self._dragging and found is not None and found[0] == QUERY:
            self._mine = True
            self.queried.emit(found[1], False, True)

    def point(self, spot: LinkEnd | None) -> None:
        """What the pointer is over, here or in another pane."""
        if spot != self.hot:
            self.hot = spot
            self.viewport().update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._dragging = False

    def leaveEvent(self, event: QEvent) -> None:
        self.point(None)
        self.pointed.emit(None)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave:
            self.leaveEvent(event)
        return super().viewportEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.bar.setValue(round(self.bar.value() - turns_along(event) * TURN))
        event.accept()

    # --- keys -------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Up and down move the query, with Shift they add to it; left and right the key."""
        held = event.modifiers()
        command = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
        if event.key() in STEPS and not held & command:
            adding = bool(held & Qt.KeyboardModifier.ShiftModifier)
            self.stepped.emit(*STEPS[Qt.Key(event.key())], adding)
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


# --- links ----------------------------------------------------------------------------------------


LEGEND = 24  # heads that are named with their colours
AHEAD = 8  # units beyond those in view whose links are read, where all have some
FIRST = 60  # of all, before anybody knows what is in view
NOTHING = ("No links to show yet", "Capture a text, and its strongest weights appear here.")


@dataclass(frozen=True, slots=True, eq=False)
class LinkData:
    """What was read: the links of the queries chosen (or of all in view), and of the one pointed
    at; or why there are none.
    """

    capture: Capture
    selection: Selection
    linking: LinkOptions
    links: Links | None = None
    hot: Links | None = None
    chosen: frozenset[int] = frozenset()
    error: HgvizError | None = None


class LinksView(View):
    """Queries on one side, keys on the other; click, Ctrl+click or drag chooses queries."""

    name, title = "links", "Links"
    topic = "links"
    figureless = "No links are drawn yet"
    lane = "map"
    needs: ClassVar[tuple[str, ...]] = ("capture", "selection", "hover", "off")
    watches: ClassVar[tuple[str, ...]] = ("text",)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.found: LinkData | None = None
        self._queries: tuple[int, ...] = ()  # tokens chosen beside the one of the session
        self._sides: tuple[object, tuple[Side, Side]] | None = None
        self.head = PaneHead(tr(self.title))
        self.level = label(factor=0.92, weight=500, kind="chip")
        self.before = label(tr("text before"), factor=0.92, weight=500, kind="chip")
        self.before.setToolTip(tr("The text was edited since this was captured"))
        self.level.hide()
        self.before.hide()
        self.everything = IconButton("text", tr("Show the links of every query in view (Esc)"))
        self.everything.clicked.connect(self.show_all)
        self.export = self.export_button()
        self.head.add_beside_title(self.level, self.before)
        self.head.add(self.everything, self.export)
        self.bar, self.web = LinkBar(), LinkCanvas()
        self.bar.changed.connect(self.refresh)
        self.web.pointed.connect(self._point)
        self.web.queried.connect(self._query)
        self.web.keyed.connect(self._key)
        self.web.stepped.connect(self._step)
        self.web.left.connect(self.show_all)
        self.web.moved.connect(self._moved)
        self.sentence = Words(factor=0.92, kind="secondary")
        self.sentence.setFixedHeight(26)
        self.sentence.setContentsMargins(16, 0, 16, 0)
        self.legend = label(factor=0.85, weight=500)
        self.legend.setTextFormat(Qt.TextFormat.RichText)
        self.legend.setContentsMargins(16, 0, 16, 4)
        self.legend.hide()
        self.error = label(wrap=True)
        self.error.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.error.hide()
        vbox(
            self.content, self.head, self.bar, self.legend, line(), (self.web, 1), (self.error, 1),
            line(), self.sentence,
        )  # fmt: skip
        self.start_at(self.web)

    # --- View -------------------------------------------------------------------------------------

    def bind(self, session: Session, lanes: Lanes) -> None:
        """Listen to a session."""
        super().bind(session, lanes)
        self.everything.setEnabled(session.selection.query is not None)

    def request(self, session: Session) -> Callable[[], LinkData] | None:
        """Read the rows of the queries that have links to be seen."""
        capture, chosen = session.capture, session.selection
        if capture is None or not all(map(len, capture.spans)):
            self.empty, self.empty_actions = NOTHING, CAPTURE
            return None
        if chosen.layer >= len(capture.maps) or capture.maps[chosen.layer] is None:
            reached = tr("They appear here as soon as the capture has reached it.")
            self.empty = tr("Layer {layer} is not captured yet", layer=chosen.layer), reached
            self.empty_actions = () if session.at_work else CAPTURE[:1]
            return None
        self.bar.fit(capture, chosen)
        hover = session.hover
        pointed = None if hover is None or session.looked_at is not hover else hover.query
        try:
            linking = replace(self.bar.options(capture, chosen), queries=self._tokens(session))
        except HgvizError as error:
            refused = LinkData(capture, chosen, LinkOptions(), error=error)
            return lambda: refused
        return partial(self._read, capture, chosen, linking, pointed, self.web.in_view())

    def draw(self, result: LinkData) -> None:
        """Show the links, or why there are none."""
        if self.session is None:
            return
        self.found = result
        self._entitle(result)
        if result.error is not None or result.links is None:
            self._fail(result.error)
            return
        self._fail(None)
        links, key, capture = result.links, result.selection.key, result.capture
        off = frozenset(capture.off | self.session.off)
        place = (
            None if key is None else links.keys.place(capture.column(result.selection.layer, key))
        )
        scene = LinkScene(
            links, self._tracks(links), tuple(strands_of(links, off)), result.chosen, place,
            result.hot, self._titles(capture, result.selection.layer),
        )  # fmt: skip
        self.web.show_scene(scene)
        named = (f'<span style="color:{one.above.name()}">━</span>&nbsp;{one.name}'
                 for one in scene.strands[:LEGEND])  # fmt: skip
        self.legend.setText("&nbsp;&nbsp; ".join(named))
        self.legend.setVisible(len(scene.strands) > 1)
        self.sentence.say(describe_links(result.links, result.hot, result.linking, capture))
        self.web.setAccessibleDescription(self.sentence.full)

    def noticed(self, name: str) -> None:
        """Another text: nothing chosen in the one before is in it."""
        if name == "capture" and self.session is not None and not self.grew:
            self._queries, self._sides = (), None
        if name == "text" and self.session is not None:
            self.before.setVisible(self.session.stale)

    def figure(self, session: Session) -> Spec | None:
        """The same links on paper."""
        if session.capture is None or self.found is None or self.found.error is not None:
            return None
        linking = self.found.linking
        if not linking.queries and self.found.links is not None:
            rows = (self.found.links.queries.token(one) for one in self.found.links.strands)
            linking = replace(linking, queries=tuple(one for one in rows if one is not None))
        return Spec("links", session.selection, session.display, links=linking)

    def as_text(self) -> str:
        """The sentence beneath the links."""
        return self.sentence.full

    def as_table(self) -> list[list[str]] | None:
        """Every link that is drawn, of all queries that have some."""
        links = None if self.found is None or self.found.error is not None else self.found.links
        return None if links is None else table_of(links)

    # --- reading ----------------------------------------------------------------------------------

    def _tokens(self, session: Session) -> tuple[int, ...]:
        """The tokens chosen: the session's query, and what was added to it."""
        query = session.selection.query
        if query is None:
            return ()
        return self._queries if query in self._queries else (query,)

    def _read(
        self,
        capture: Capture,
        chosen: Selection,
        linking: LinkOptions,
        pointed: int | None,
        window: tuple[int, int],
    ) -> LinkData:
        found = LinkData(capture, chosen, linking)
        progress(0, 1, "reading links")
        try:
            sides = self._sides_of(capture, chosen.layer, linking)
            places: tuple[int, ...]
            if linking.queries:
                places = places_of(capture, chosen, linking, sides[0])
            else:
                first, stop = window if window[1] > window[0] else (0, FIRST)
                places = tuple(range(max(0, first - AHEAD), min(len(sides[0]), stop + AHEAD)))
            links = find_links(capture, chosen, linking, places, sides)
            hot = None
            if pointed is not None and pointed < len(sides[0].prompt):
                place = sides[0].place(capture.row(chosen.layer, pointed))
                if place is not None and (place not in links.strands or len(places) > 1):
                    hot = find_links(capture, chosen, linking, (place,), sides)
        except HgvizError as error:
            return replace(found, error=error)
        marked = frozenset(places) if linking.queries else frozenset()
        return replace(found, links=links, hot=hot, chosen=marked)

    def _sides_of(self, capture: Capture, layer: int, linking: LinkOptions) -> tuple[Side, Side]:
        """What stands along both sides; the same object as long as it is the same."""
        of = capture.spec.layers[layer]
        key = (id(capture), of.level, of.key_level, of.role in ("down", "up"), linking.words,
               linking.special, capture.maps[layer] and capture.maps[layer].shape[1:])  # fmt: skip
        if self._sides is None or self._sides[0] != key:
            self._sides = key, link_sides(capture, layer, linking)
        return self._sides[1]

    def _tracks(self, links: Links) -> tuple[TokenAxis, TokenAxis]:
        old = self.web.scene
        if old is not None and (old.links.queries, old.links.keys) == (links.queries, links.keys):
            return old.tracks
        return TokenAxis.of(links.queries), TokenAxis.of(links.keys)

    # --- showing ----------------------------------------------------------------------------------

    def _entitle(self, result: LinkData) -> None:
        assert self.session is not None
        heads, linking = result.linking.heads, result.linking
        title = tr("Head {head}", head=heads[0] if heads else result.selection.head_id)
        if len(heads) > 1:
            mean = "{n:,} heads: mean" if linking.fuse == "mean" else "{n:,} heads"
            title = tr(mean, n=len(heads))
        self.head.title.setText(title)
        self.level.setText(sentences.ends(result.capture.spec, result.selection.layer))
        self.level.setVisible(bool(self.level.text()))
        self.before.setVisible(self.session.stale)
        many = len(result.chosen)
        noun = "word" if linking.words else result.capture.query_prompt(result.selection.layer).unit
        note = sentences.counted(many, noun) if many > 1 else ""
        self.head.note.say(note if linking.queries else tr("every query in view"))
        self.everything.setEnabled(bool(linking.queries))

    def _titles(self, capture: Capture, layer: int) -> tuple[str, str]:
        one, levels = capture.spec.layers[layer], capture.spec.levels
        sides = levels[one.level].sequence, levels[one.key_level].sequence
        if sides[0] == sides[1]:
            return tr("Query"), tr("Key")
        return tr(sides[0].capitalize()), tr(sides[1].capitalize())

    def _fail(self, error: HgvizError | None) -> None:
        """Show an error in place of the links; the controls stay, to correct it."""
        self.error.setText("\n".join(error.lines) if error is not None else "")
        self.error.setVisible(error is not None)
        self.web.setVisible(error is None)
        if error is not None:
            self.sentence.say("")
            self.legend.hide()

    # --- what people do ---------------------------------------------------------------------------

    def _moved(self) -> None:
        """Other queries are in view: where all have links, theirs are read."""
        links = None if self.found is None else self.found.links
        if links is None or self.found is None or self.found.linking.queries:
            return
        first, stop = self.web.in_view()
        if not set(range(first, stop)) <= links.strands.keys():
            self.refresh()

    def _token(self, side: int, place: int) -> int | None:
        links = None if self.found is None else self.found.links
        if links is None:
            return None
        return (links.queries if side == QUERY else links.keys).token(place)

    def _point(self, spot: LinkEnd | None) -> None:
        if self.session is None:
            return
        hover, chosen = None, self.session.selection
        if spot is not None and (token := self._token(*spot)) is not None:
            if spot[0] == QUERY:
                hover = replace(chosen, query=token, key=None)
            elif chosen.query is not None:
                hover = replace(chosen, key=token)
        self.session.put(hover=hover)

    def _query(self, place: int, adds: bool, upto: bool) -> None:
        """Choose a query; one more or one less; or all from the one of the session to it."""
        token = self._token(QUERY, place)
        if self.session is None or token is None or self.found is None or not self.found.links:
            return
        before = set(self._tokens(self.session))
        query = self.session.selection.query
        if adds and before:
            before = before - {token} if token in before else before | {token}
            query = token if token in before else max(before, default=None)
        elif upto and query is not None:
            rows = self.found.links.queries
            start = rows.place(self.found.capture.row(self.found.selection.layer, query))
            low, high = sorted((place, place if start is None else start))
            tokens = (rows.token(one) for one in range(low, high + 1))
            before = {query, *(one for one in tokens if one is not None)}
        else:
            before, query = {token}, token
        self._choose(tuple(sorted(before)), query)

    def _choose(self, tokens: tuple[int, ...], query: int | None) -> None:
        assert self.session is not None
        same = query == self.session.selection.query
        self._queries = tokens
        self.session.put(hover=None, selection=replace(self.session.selection, query=query))
        if same:
            self.refresh()

    def _key(self, place: int) -> None:
        token = self._token(1, place)
        if self.session is not None and token is not None:
            self.session.put(hover=None, selection=replace(self.session.selection, key=token))

    def _step(self, side: str, by: int, adding: bool) -> None:
        if self.session is None:
            return
        chosen = step_token(self.session, by, "query" if side == "query" else "key")
        if side == "query" and chosen.query is not None:
            kept = self._tokens(self.session) if adding else ()
            self._choose(tuple(sorted({*kept, chosen.query})), chosen.query)
            self._show_query()
        else:
            self.session.put(hover=None, selection=chosen)

    def _show_query(self) -> None:
        """Keep the query in view."""
        links = None if self.found is None else self.found.links
        query = None if self.session is None else self.session.selection.query
        if links is not None and query is not None and self.found is not None:
            place = links.queries.place(self.found.capture.row(self.found.selection.layer, query))
            if place is not None:
                self.web.reveal(place)

    def show_all(self) -> None:
        """The links of every query in view: none is chosen."""
        if self.session is not None:
            self._queries = ()
            self.session.put(
                hover=None,
                selection=replace(self.session.selection, query=None, key=None),
            )
