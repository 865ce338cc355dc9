"""Links between tokens, a line for each weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import ceil
from typing import Any, Literal

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
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
)
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QAbstractSlider,
    QBoxLayout,
    QLineEdit,
    QSizePolicy,
    QWidget,
)

from hgviz import palettes
from hgviz.core import Capture, HeadId, HeadSet, HgvizError, Selection, parse_heads, progress
from hgviz.figures.spec import Spec
from hgviz.gui import ink, sentences, theme
from hgviz.gui.language import tr
from hgviz.gui.sentences import Citation, explanation
from hgviz.gui.tables import Table
from hgviz.gui.view import CAPTURE, Empty, HeadTitle, View, uncaptured
from hgviz.gui.widgets import ARROWS, IconButton, Picker, Toggle, Words, hbox, label, line, vbox
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

# --- bar ------------------------------------------------------------------------------------------

HEADS = ("here", "layer", "level", "named")  # which heads have links
CAP = 200  # links of a query and head, however they are chosen
LIMITS = (
    ("Strongest", {"most": 1}), ("5 strongest", {"most": 5}), ("20 strongest", {"most": 20}),
    ("80 % of the weight", {"most": CAP, "mass": 0.8}),
)  # fmt: skip
USUAL = 1  # of LIMITS
DRAWN = "Links drawn for each query and head, {most} at most"
VALUED = "Scale weights by the norm of the value: weight × |v·W_O|"
NORM = Citation("‖a_ij v_j W_O‖", "Kobayashi et al. 2020")
NO_NORMS = "This capture has no value norms: run the model again to add them"
TOGGLES = (
    ("mean", "Mean of heads", "One link for all these heads, with the mean of their weights"),
    ("words", "Merge subwords", "Merge tokens into words: rows averaged, columns added"),
    ("special", "Special tokens", "Show special tokens, padding and positions before the text"),
    ("values", "Value norms", VALUED),
)


class LinkBar(QWidget):
    """The controls of links, in a row or in two; `changed` says that one was used."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.heads, self.limit = Picker(tr("Heads to draw links for")), Picker(tr(DRAWN, most=CAP))
        self.limit.offer(((at, tr(words)) for at, (words, _) in enumerate(LIMITS)), USUAL)
        self.named = QLineEdit()
        self.named.setPlaceholderText("12.5, 11.*")
        self.named.setFixedWidth(120)
        self.named.setToolTip(tr("Heads by number, such as 12.5, 11.*"))
        self.named.setAccessibleName(tr("Heads by number"))
        self.named.editingFinished.connect(self.changed)
        self.heads.currentIndexChanged.connect(self._choose_heads)
        self.limit.currentIndexChanged.connect(self.changed)
        self.toggles = {
            name: Toggle(tr(words), tr(about), name == "special") for name, words, about in TOGGLES
        }
        for picker in (self.heads, self.limit):
            picker.setSizeAdjustPolicy(Picker.SizeAdjustPolicy.AdjustToContents)
        for toggle in self.toggles.values():
            toggle.toggled.connect(self.changed)
        for control in (self.named, self.toggles["mean"]):
            control.hide()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        rows = (self.heads, self.named, self.limit), self.toggles.values()
        self.rows = [hbox(None, *row, spacing=6) for row in rows]
        self.box = hbox(self, *self.rows, 1, margins=(16, 2, 16, 6), spacing=6)
        for row in self.rows:
            self.box.setAlignment(row, Qt.AlignmentFlag.AlignLeft)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._wrap()

    def _wrap(self) -> None:
        """Put the toggles below where they have no room beside the lists."""
        wide = sum(row.sizeHint().width() for row in self.rows) + 3 * 6 + 32
        ways = QBoxLayout.Direction
        self.box.setDirection(ways.LeftToRight if wide <= self.width() else ways.TopToBottom)

    def options(self, capture: Capture, chosen: Selection) -> LinkOptions:
        """The options chosen. Raises HgvizError for numbers of heads that the model lacks."""
        on: dict[str, Any] = {name: button.isChecked() for name, button in self.toggles.items()}
        heads = self._heads(capture, chosen)
        fuse: Literal["mean", "each"] = "mean" if on.pop("mean") and len(heads) > 1 else "each"
        return LinkOptions(heads=heads, fuse=fuse, **on, **LIMITS[self.limit.currentData()][1])

    def fit(self, capture: Capture, chosen: Selection) -> None:
        """Name the heads there are, and enable what this capture has."""
        level = sentences.ends(capture.spec, chosen.layer)
        words = (
            tr("Head {head}", head=chosen.head_id),
            tr("Layer {layer}: all heads", layer=chosen.layer),
            tr("All heads at {level}", level=level) if level else tr("All heads"),
            tr("Heads by number…"),
        )
        self.heads.offer(zip(HEADS, words, strict=True), self.heads.currentData())
        maps = (capture.maps[layer] for layer in comparable_layers(capture, chosen.layer))
        has_norms = all(getattr(attention, "value_norms", None) is not None for attention in maps)
        self.toggles["values"].setEnabled(has_norms)
        about = explanation(tr(VALUED), NORM) if has_norms else tr(NO_NORMS)
        self.toggles["values"].setToolTip(about)
        with suppress(HgvizError):
            self.toggles["mean"].setVisible(len(self._heads(capture, chosen)) > 1)
        self._wrap()

    def _heads(self, capture: Capture, chosen: Selection) -> tuple[HeadId, ...]:
        which, numbers = self.heads.currentData(), self.named.text().strip()
        if which == "named" and numbers:
            return tuple(sorted(parse_heads(numbers, capture.spec.layers)))
        if which in ("here", "named"):
            return (chosen.head_id,)
        is_level = which == "level"
        layers = comparable_layers(capture, chosen.layer) if is_level else (chosen.layer,)
        return tuple(HeadId(at, head) for at in layers for head in capture.spec.layers[at].heads)

    def _choose_heads(self) -> None:
        is_named = self.heads.currentData() == "named"
        self.named.setVisible(is_named)
        if is_named:
            self.named.setFocus()
        self.changed.emit()


# --- scene ----------------------------------------------------------------------------------------

LONGEST = 18  # characters of a unit that are shown
PITCH, NARROW_PITCH = 22, 17  # px of a row, and of a row of single characters
SAMPLED = 300  # units whose labels say how wide all are
QUERY, KEY = 0, 1

LinkEnd = tuple[int, int]  # a side, QUERY or KEY, and a place on it


@dataclass(frozen=True, slots=True)
class HeadColours:
    """The links of one head, or of heads combined: their name, and colours above and below 0."""

    name: str
    above: QColor
    below: QColor
    off: bool = False


def head_colours(links: Links, off: HeadSet) -> tuple[HeadColours, ...]:
    """The colours of each head of some links. off: heads that are switched off."""
    names = palettes.CATEGORICAL_DARK if theme.current().dark else palettes.CATEGORICAL
    hues = [QColor(names[at % len(names)]) for at in range(len(links.heads))]
    if not links.single:
        heads = zip(links.heads, hues, strict=True)
        return tuple(HeadColours(str(head), hue, hue, head in off) for head, hue in heads)
    head, is_alone = links.heads[0], len(links.heads) == 1
    below, above = ink.sides() if links.signed else (hues[0], hues[0])
    name = str(head) if is_alone else tr(links.fuse)
    return (HeadColours(name, above, below, is_alone and head in off),)


@lru_cache(maxsize=4)
def unit_size(side: Side) -> tuple[float, float]:
    """Px of a unit of a side along the text, and of the widest across it."""
    places = np.linspace(0, len(side) - 1, min(len(side), SAMPLED)).astype(int).tolist()
    labels = [end_label(side, place)[:LONGEST] for place in places]
    metrics = QFontMetricsF(theme.mono(1.0))
    width = max((metrics.horizontalAdvance(label) for label in labels), default=0.0)
    pitch = NARROW_PITCH if max(map(len, labels), default=0) <= 2 else PITCH
    return pitch, width + 14


@dataclass(frozen=True, slots=True, eq=False)
class LinkScene:
    """What is shown. links: of the chosen queries, or of all in view; hot: of the query under the
    pointer, where it is none of these. chosen: places of the queries chosen; key: of the key.
    """

    links: Links
    colours: tuple[HeadColours, ...]
    chosen: frozenset[int] = frozenset()
    key: int | None = None
    hot: Links | None = None
    titles: tuple[str, str] = ("Query", "Key")

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.links.queries, self.links.keys


def every_link(links: Links) -> Iterator[tuple[int, int, int, float]]:
    """Every link: the place of its query, the number of its head, the place of its key, weight."""
    for place, strands in links.strands.items():
        for number, strand in enumerate(strands):
            for key, weight in zip(strand.keys.tolist(), strand.weights.tolist(), strict=True):
                yield place, number, key, weight


def end_label(side: Side, place: int) -> str:
    """The label of a unit: a token's own, so that bytes of one character are named each."""
    start, end = side.tokens[side.shown[place]].tolist()
    if start < 0:
        return "∅"
    if end - start == 1:
        return sentences.name(side.prompt, start).strip() or sentences.SPACE
    words = side.prompt.words(start, end)
    return sentences.shown(words.strip() or words) or " ".join(side.prompt.pieces[start:end])


# --- layout ---------------------------------------------------------------------------------------

PAD, GAP = 16, 8  # px around all, between a text and its links
HEAD = 26  # px of the line that says what the columns are
WIDEST = 420  # px of links
AFTER = 8  # px after the last unit
STUB, STUB_WIDTH = 18, 124  # px of what says that links lead out of view


@dataclass(frozen=True, slots=True)
class FarKey:
    """What says that links of the chosen queries lead out of view: the strongest key there, whether
    it comes before what is in view, how many keys there are, its weight."""

    box: QRectF
    place: int
    before: bool
    count: int
    weight: float


@dataclass(frozen=True, slots=True)
class LinkLayout:
    """Of a viewport: room px along the text below the heads; the text of each side between sides[0]
    and sides[1] across it, its links between ends; value: how far it is scrolled, up to most."""

    scene: LinkScene
    width: float
    room: float
    sides: tuple[tuple[float, float], tuple[float, float]]
    ends: tuple[float, float]
    value: float = 0

    @classmethod
    def of(cls, scene: LinkScene, size: QSize) -> LinkLayout:
        """The layout of a scene in a viewport."""
        width, height = size.toTuple()
        most = max(48.0, width * 0.26)
        first, second = (max(44.0, min(most, unit_size(side)[1])) for side in scene.sides)
        free = width - 2 * PAD - first - second - 2 * GAP
        reach = min(WIDEST, free)
        left = PAD + max(0.0, free - reach) / 2  # what is left over stands at both ends
        ends = left + first + GAP, left + first + GAP + reach
        sides = (left, left + first), (ends[1] + GAP, ends[1] + GAP + second)
        return cls(scene, width, height - HEAD, sides, ends)

    def pitch(self, side: int) -> float:
        """Px of a unit of a side along the text."""
        return unit_size(self.scene.sides[side])[0]

    def over(self, side: int) -> float:
        """Px of a side that its room does not show."""
        length = len(self.scene.sides[side]) * self.pitch(side)
        return max(0.0, length + AFTER - self.room)

    @property
    def most(self) -> float:
        """The scroll range: that of the longer side."""
        return max(self.over(QUERY), self.over(KEY))

    def offset(self, side: int) -> float:
        """How far a side is scrolled; of two lengths, each is at the same part of its own."""
        return self.value * self.over(side) / self.most if self.most else 0.0

    def scroll_to(self, side: int, along: float) -> float:
        """The scroll value at which a side begins at a place."""
        over = self.over(side)
        return min(max(0.0, along), over) * self.most / over if over else 0.0

    def shown(self, side: int) -> tuple[int, int]:
        """The units of a side in view, half-open."""
        pitch, first = self.pitch(side), self.offset(side)
        stop = min(len(self.scene.sides[side]), ceil((first + self.room) / pitch))
        return int(first // pitch), stop

    def middle(self, side: int, place: int) -> float:
        """The middle of a unit along the text, in px from its beginning."""
        return (place + 0.5) * self.pitch(side)

    def along(self, side: int, place: int) -> float:
        """The middle of a unit along the text, in px of the viewport."""
        return HEAD + self.middle(side, place) - self.offset(side)

    def box(self, side: int, place: int) -> QRectF:
        pitch, (low, high) = self.pitch(side), self.sides[side]
        return QRectF(low, self.along(side, place) - pitch / 2, high - low, pitch)

    def end_at(self, place: QPointF) -> LinkEnd | None:
        """The unit whose text is at a place, or beside it away from the links."""
        (first, second), x = self.sides, place.x()
        side = QUERY if x <= first[1] + GAP else KEY if x >= second[0] - GAP else None
        if side is None or place.y() < HEAD:
            return None
        at = int((place.y() - HEAD + self.offset(side)) // self.pitch(side))
        return (side, at) if at < len(self.scene.sides[side]) else None

    def far_keys(self) -> list[FarKey]:
        """The far keys above and below: where links of the chosen queries lead out of view."""
        scene = self.scene
        sizes: dict[int, float] = {}
        if scene.chosen or scene.hot is not None:
            for _, _, key, weight in every_link(scene.hot or scene.links):
                sizes[key] = max(sizes.get(key, 0.0), abs(weight))
        first, stop = self.shown(KEY)
        low, high = self.sides[KEY]
        wide = max(STUB_WIDTH, high - low)
        left = min(low - GAP / 2, self.width - wide - 4)
        far_keys = []
        for before in (True, False):
            keys = [key for key in sizes if (key < first if before else key >= stop)]
            if keys:
                strongest = max(keys, key=lambda key: sizes[key])
                box = QRectF(left, HEAD if before else HEAD + self.room - STUB, wide, STUB)
                far_keys.append(FarKey(box, strongest, before, len(keys), sizes[strongest]))
        return far_keys


def visible_curve(a: QPointF, b: QPointF, low: float, high: float) -> QPainterPath | None:
    """The curve of a link between low and high along the text, None where nothing of it is there.
    An end far out of view is moved nearer, as all of the curve would take long to stroke."""
    if max(a.y(), b.y()) < low or min(a.y(), b.y()) > high:
        return None
    a, b = (QPointF(end.x(), min(max(end.y(), low - FAR_OUT), high + FAR_OUT)) for end in (a, b))
    middle = (a.x() + b.x()) / 2
    path = QPainterPath(a)
    path.cubicTo(QPointF(middle, a.y()), QPointF(middle, b.y()), b)
    return path


# --- painting -------------------------------------------------------------------------------------

THIN, THICK = 0.8, 6.0  # px
PALE, FULL, BEHIND = 0.22, 0.92, 0.12  # how opaque weak links are, strong ones, and those behind
NEGATIVE = [3.0, 2.0]  # dashes, in widths of a line
EDGE = 8.0  # px beyond what is in view that curves are stroked
FAR_OUT = 4000.0  # px out of view: no end of a curve is further
ALL = 0.6  # how opaque they are where all queries have links
MOST = 4000  # links that are painted, the strongest
STEP = 3.0  # px between heads that end at one key
FAR = {True: ("↑", "Ctrl+↑"), False: ("↓", "Ctrl+↓")}  # arrow and key, by whether it comes before


def paint_scene(painter: QPainter, plan: LinkLayout, hot: LinkEnd | None) -> None:
    """Paint links first, then what they link, then what is not in view. hot: what the pointer is
    over."""
    scene, now = plan.scene, theme.current()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setClipRect(QRectF(0, HEAD, plan.width, plan.room))
    paint_links(painter, plan, hot)
    linked = {key for _, _, key, _ in every_link(scene.hot or scene.links)}
    for side in (QUERY, KEY):
        for place in range(*plan.shown(side)):
            is_linked = side == KEY and place in linked
            paint_unit(painter, plan, (side, place), is_linked, (side, place) == hot)
    painter.setClipping(False)
    for side, title in enumerate(scene.titles):
        low, high = plan.sides[side]
        box = QRectF(low + 4, 0, max(high - low, 60) - 8, HEAD)
        if side == QUERY:
            box.moveRight(high - 4)
        font, align = theme.font(0.85, 600), theme.TO_LEFT if side else theme.TO_RIGHT
        theme.write(painter, box, title, font, now.secondary, align)
    painter.fillRect(QRectF(0, HEAD - 1, plan.width, 1), now.line)
    for far in plan.far_keys():
        paint_far_key(painter, far, end_label(scene.links.keys, far.place))


def paint_links(painter: QPainter, plan: LinkLayout, hot: LinkEnd | None) -> None:
    """Paint the strongest links, those in front last."""
    scene, rows = plan.scene, []
    for links in filter(None, (scene.links, scene.hot)):
        peak = max(scene.links.peak, links.peak) or 1.0
        # all are in front where nothing is pointed at, or a query without links of its own
        is_front = links is (scene.hot or scene.links)
        if hot is not None and (hot[0] == KEY or hot[1] in links.strands or scene.hot is not None):
            is_front = False
        for place, number, key, weight in every_link(links):
            in_front = is_front or hot in ((QUERY, place), (KEY, key))
            rows.append((in_front, abs(weight) / peak, weight, number, place, key))
    rows.sort(key=lambda row: row[:2])
    step = min(STEP, 14 / max(1, len(scene.colours)))
    low, high = HEAD - EDGE, HEAD + plan.room + EDGE
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for in_front, part, weight, number, place, key in rows[-MOST:]:
        aside = step * (number - (len(scene.colours) - 1) / 2)
        start = QPointF(plan.ends[0], plan.along(QUERY, place))
        end = QPointF(plan.ends[1], plan.along(KEY, key) + aside)
        curve = visible_curve(start, end, low, high)
        if curve is None:
            continue
        head = scene.colours[number]
        alpha = PALE + (FULL - PALE) * part if in_front else BEHIND
        alpha *= (0.35 if head.off else 1.0) * (1.0 if scene.chosen else ALL)
        wide = THIN + (THICK - THIN) * part
        colour = ink.faint(head.below if weight < 0 else head.above, alpha)
        pen = QPen(colour, wide if wide >= 1.6 else 1.0)  # of 1 px takes a tenth of the time
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        if weight < 0:
            pen.setDashPattern(NEGATIVE)
        painter.setPen(pen)
        painter.drawPath(curve)


def paint_unit(
    painter: QPainter, plan: LinkLayout, end: LinkEnd, is_linked: bool, is_hot: bool
) -> None:
    """Paint a unit of a text: tinted when chosen or pointed at, bold when it is linked."""
    (side, place), scene, now = end, plan.scene, theme.current()
    axis, box = scene.sides[side], plan.box(side, place)
    chosen = side == QUERY and place in scene.chosen
    inner = box.adjusted(1, 1, -1, -1)
    if chosen or is_hot:
        theme.draw_box(painter, inner, 4, now.mark_tint if chosen else now.hover)
    if chosen or (side == KEY and place == scene.key):
        edge = now.mark if chosen else now.text
        theme.draw_box(painter, inner, 4, edge=edge, width=1.5)
    special = bool(axis.special[axis.shown[place]])
    quiet = special or (side == KEY and scene.chosen and not is_linked)
    font = theme.mono(0.92 if special else 1.0, 600 if chosen or is_linked else 400)
    colour = now.mark_text if chosen else now.secondary if quiet else now.text
    align = theme.TO_LEFT if side else theme.TO_RIGHT
    theme.write(painter, box.adjusted(4, 0, -4, 0), end_label(axis, place), font, colour, align)


def paint_far_key(painter: QPainter, far: FarKey, key: str) -> None:
    """Paint to which key links lead out of view, how many more, and which keys of the keyboard go
    there."""
    now, box, (arrow, keys) = theme.current(), far.box, FAR[far.before]
    font, more = theme.font(0.85, 500), f" +{far.count - 1}" if far.count > 1 else ""
    theme.draw_box(painter, box.adjusted(0.5, 0.5, -0.5, -0.5), 8, now.pane, now.edge)
    at_right = box.adjusted(0, 0, -8, 0)
    wide = theme.write(painter, at_right, keys, font, now.secondary, theme.TO_RIGHT)
    at_left = box.adjusted(8, 0, -12 - wide, 0)
    theme.write(painter, at_left, f"{arrow} {key}{more}", font, now.text)


# --- words ----------------------------------------------------------------------------------------


def describe_links(links: Links, off: HeadSet) -> str:
    """Such as "“s”: 5 links with 93 % of the weight, strongest “.” 0.89"; off: heads off."""
    strands = [strand for many in links.strands.values() for strand in many]
    heads = [str(head) for head in links.heads if head in off]
    if not links.strands:
        return tr("The query is a special token, and special tokens are hidden.")
    if heads and len(heads) == len(links.heads):
        if len(heads) > 1:
            return tr("Heads {heads} are switched off.", heads=", ".join(heads))
        return tr("Head {head} is switched off.", head=heads[0])
    count = sum(len(strand.keys) for strand in strands)
    total = sum(strand.total for strand in strands)
    if not count:
        none = "No weight is large enough to draw." if total else "All weights of this row are 0."
        return tr(none)
    part = sum(strand.part * strand.total for strand in strands) / total
    who = tr("{n:,} queries", n=len(links.strands))
    if len(links.strands) == 1:
        who = sentences.quoted(end_label(links.queries, next(iter(links.strands))))
    mass = "magnitude" if links.signed else "weight"
    amount, number = sentences.share(round(part, 6)), sentences.counted(count, "link")
    words = tr(f"{{who}}: {{links}} with {{share}} of the {mass}", who=who, links=number,
               share=amount)  # fmt: skip
    if len(strands) == 1:
        write = sentences.with_sign if links.signed else sentences.weight
        amount = write(float(strands[0].weights[0]), 3 if links.values else 2)
        key = sentences.quoted(end_label(links.keys, int(strands[0].keys[0])))
        words = tr("{links}, strongest {key} {amount}", links=words, key=key, amount=amount)
    hidden = sentences.share(sum(strand.hidden for strand in strands) / total)
    notes = {
        words: True,
        tr("{share} on special tokens, hidden", share=hidden): any(one.hidden for one in strands),
        tr("weight × |v·W_O|"): links.values,
        tr("dashed: negative"): links.signed,
    }
    return " · ".join(note for note, holds in notes.items() if holds)


def link_table(links: Links) -> Table:
    """A row for every link: both ends, the head (or how heads are combined), the weight."""
    titles = "Query position", "Query", "Key position", "Key", "Head", "Weight"
    table = [[*map(tr, titles)]]
    fused = links.single and len(links.heads) > 1
    names = [tr(links.fuse)] if fused else [str(head) for head in links.heads]
    for place, number, key, weight in every_link(links):
        ends = []
        for side, at in ((links.queries, place), (links.keys, key)):
            token = side.token(at)
            ends += ["" if token is None else str(token), end_label(side, at)]
        table.append([*ends, names[number], repr(float(weight))])
    return table


# --- canvas ---------------------------------------------------------------------------------------

SINGLE_STEP = 22  # px; the wheel goes three of them
SHIFT, CONTROL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier
KEYPAD = Qt.KeyboardModifier.KeypadModifier
SCROLLS = {
    Qt.Key.Key_PageUp: QAbstractSlider.SliderAction.SliderPageStepSub,
    Qt.Key.Key_PageDown: QAbstractSlider.SliderAction.SliderPageStepAdd,
    Qt.Key.Key_Home: QAbstractSlider.SliderAction.SliderToMinimum,
    Qt.Key.Key_End: QAbstractSlider.SliderAction.SliderToMaximum,
}


class LinkCanvas(QAbstractScrollArea):
    """Queries on one side, keys on the other; says what the pointer chooses."""

    own_keys = tuple(ARROWS)
    pointed = Signal(object)  # a LinkEnd, None for nothing
    queried = Signal(int, bool, bool)  # a place; whether it adds to those chosen, or goes up to it
    keyed = Signal(int)  # a place
    stepped = Signal(int, str, bool)  # by so much, query or key, adding
    left = Signal()  # Escape
    moved = Signal()  # other units are in view

    def __init__(self) -> None:
        super().__init__()
        self.plan: LinkLayout | None = None
        self.hot: LinkEnd | None = None
        self._dragging = False
        self._chosen_here = False  # by the pointer: what it points at stays where it is
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.viewport().setAutoFillBackground(False)  # so that it is painted when focus changes
        self.setMinimumSize(160, 80)
        self.setAccessibleName(tr("Links between queries and keys"))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.bar = self.verticalScrollBar()
        self.bar.setSingleStep(SINGLE_STEP)
        self.bar.valueChanged.connect(self._scroll)

    # --- what is shown ----------------------------------------------------------------------------

    def show_scene(self, scene: LinkScene) -> None:
        """Show links; the same texts stay where they are unless something else is chosen."""
        old = self.plan.scene if self.plan is not None else None
        fresh = old is None or old.sides != scene.sides
        if fresh:
            self.hot = None
        self._lay_out(scene)
        if fresh or not self._chosen_here:
            if scene.chosen and (fresh or scene.chosen != old.chosen):
                self._show_links(scene)
            elif scene.key is not None and (fresh or scene.key != old.key):
                self.reveal(scene.key, KEY)
        self._chosen_here = False
        self.viewport().update()

    def _show_links(self, scene: LinkScene) -> None:
        """Scroll to the queries chosen, and to their strongest key where both fit."""
        query = min(scene.chosen)
        self.reveal(query)
        far_keys = self.plan.far_keys()
        if not far_keys:
            return
        key = max(far_keys, key=lambda far: far.weight).place
        a, b = self.plan.middle(QUERY, query), self.plan.middle(KEY, key)
        along = (a + b - self.plan.room) / 2
        if abs(b - a) >= self.plan.room - 60:  # the query at the far end: as much as can be seen
            along = a - (40 if b > a else self.plan.room - 40)
        self.bar.setValue(round(self.plan.scroll_to(QUERY, along)))

    def reveal(self, place: int, side: int = QUERY) -> None:
        """Scroll just as far as it takes to see a unit, and some of what is around it."""
        plan = self.plan
        if plan is None or place >= len(plan.scene.sides[side]):
            return
        margin = plan.room / 16
        if not margin <= plan.along(side, place) - HEAD <= plan.room - margin:
            start = plan.middle(side, place) - plan.room / 2
            self.bar.setValue(round(plan.scroll_to(side, start)))

    def in_view(self) -> tuple[int, int]:
        """The queries in view, half-open."""
        return (0, 0) if self.plan is None else self.plan.shown(QUERY)

    def _lay_out(self, scene: LinkScene) -> None:
        self.plan = None  # what the scroll bar says meanwhile is of no plan
        plan = LinkLayout.of(scene, self.viewport().size())
        self.bar.setPageStep(max(1, int(plan.room)))
        self.bar.setRange(0, int(plan.most))
        self.plan = replace(plan, value=self.bar.value())

    def _scroll(self) -> None:
        if self.plan is not None:
            self.plan = replace(self.plan, value=self.bar.value())
            self.viewport().update()
            self.moved.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self.viewport()) as painter:
            painter.fillRect(self.viewport().rect(), theme.current().pane)
            if self.plan is not None:
                paint_scene(painter, self.plan, self.hot)
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(self.viewport().rect()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        if self.plan is not None:
            self._lay_out(self.plan.scene)
            if self.plan.scene.chosen:
                self.reveal(min(self.plan.scene.chosen))
        self.moved.emit()

    # --- pointer ----------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose a query (Ctrl: one more, Shift: all up to it), or a key, or go to a far one."""
        if event.button() != Qt.MouseButton.LeftButton or self.plan is None:
            return
        for far in self.plan.far_keys():
            if far.box.contains(event.position()):
                self._go_to(far)
                return
        end = self.plan.end_at(event.position())
        if end is None:
            return
        self._chosen_here = True
        if end[0] == KEY:
            self.keyed.emit(end[1])
            return
        self._dragging = True
        modifiers = event.modifiers()
        self.queried.emit(end[1], bool(modifiers & CONTROL), bool(modifiers & SHIFT))

    def _go_to(self, far: FarKey) -> None:
        self.reveal(far.place, KEY)
        self._chosen_here = True
        self.keyed.emit(far.place)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        end = None if self.plan is None else self.plan.end_at(event.position())
        if end == self.hot:
            return
        self._point(end)
        if self._dragging and end is not None and end[0] == QUERY:
            self._chosen_here = True
            self.queried.emit(end[1], False, True)

    def _point(self, end: LinkEnd | None) -> None:
        self.hot = end
        self.viewport().update()
        self.pointed.emit(end)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._dragging = False

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave:
            self._point(None)
        return super().viewportEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Up and down move the query, with Shift they add to it, with Ctrl they go to the strongest
        key out of view; left and right move the key."""
        modifiers, key = event.modifiers() & ~KEYPAD, Qt.Key(event.key())
        if key in ARROWS and not modifiers & ~SHIFT:
            self.stepped.emit(*ARROWS[key], bool(modifiers & SHIFT))
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down) and modifiers == CONTROL:
            for far in self.plan.far_keys() if self.plan is not None else ():
                if far.before == (key == Qt.Key.Key_Up):
                    self._go_to(far)
        elif key in SCROLLS:
            self.bar.triggerAction(SCROLLS[key])
        elif key == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            event.ignore()


# --- view -----------------------------------------------------------------------------------------

LEGEND = 24  # heads that are named with their colours
AHEAD = 8  # units beyond those in view whose links are read, where all have some
FIRST = 60  # of all, before anybody knows what is in view
NOTHING = Empty(
    "No links to show yet", "Run the model on a text to see its strongest weights.", CAPTURE
)


@dataclass(frozen=True, slots=True, eq=False)
class LinkData:
    """What was read: the links of the queries chosen (or of all in view), and of the one pointed
    at; or why there are none.
    """

    capture: Capture
    selection: Selection
    options: LinkOptions
    links: Links | None = None
    hot: Links | None = None
    chosen: frozenset[int] = frozenset()
    error: HgvizError | None = None


class LinksView(View):
    """Queries on one side, keys on the other; click, Ctrl+click or drag chooses queries."""

    name, title, topic = "links", "Links", "links"
    figureless = "There are no links yet"
    lane = "map"
    needs = ("capture", "selection", "hover", "off")
    watches = ("text",)

    def __init__(self) -> None:
        super().__init__()
        self.data: LinkData | None = None
        self._queries: tuple[int, ...] = ()  # tokens chosen beside the one of the session
        self._sides: tuple[object, tuple[Side, Side]] | None = None
        self.head = HeadTitle()
        self.everything = IconButton("text", tr("Show the links of all queries in view (Esc)"))
        self.everything.clicked.connect(self.show_all)
        self.head.add(self.everything, self.export_button())
        self.bar, self.canvas = LinkBar(), LinkCanvas()
        self.bar.changed.connect(self.refresh)
        self.canvas.pointed.connect(self._point)
        self.canvas.queried.connect(self._query)
        self.canvas.keyed.connect(self._key)
        self.canvas.stepped.connect(self._step)
        self.canvas.left.connect(self.show_all)
        self.canvas.moved.connect(self._read_more)
        self.sentence = Words(factor=0.92, kind="secondary")
        self.sentence.setFixedHeight(26)
        self.sentence.setContentsMargins(16, 0, 16, 0)
        self.legend = label(factor=0.85, weight=500, margins=(16, 0, 16, 4))
        self.legend.setTextFormat(Qt.TextFormat.RichText)
        self.error = label(wrap=True)
        self.error.setAlignment(Qt.AlignmentFlag.AlignCenter)
        for widget in (self.legend, self.error):
            widget.hide()
        vbox(
            self.content, self.head, self.bar, self.legend, line(), (self.canvas, 1),
            (self.error, 1), line(), self.sentence,
        )  # fmt: skip
        self.start_at(self.canvas)

    @property
    def links(self) -> Links | None:
        return None if self.data is None else self.data.links

    def request(self, session: Session) -> Callable[[], LinkData] | Empty:
        capture, chosen = session.capture, session.selection
        self.everything.setEnabled(chosen.query is not None)
        if capture is None or not all(map(len, capture.spans)):
            return NOTHING
        if capture.maps[chosen.layer] is None:
            return uncaptured(session, chosen.layer)
        self.bar.fit(capture, chosen)
        hover = session.hover
        pointed = None if hover is None or session.looked_at is not hover else hover.query
        try:
            options = replace(self.bar.options(capture, chosen), queries=self._tokens(session))
        except HgvizError as error:
            refused = LinkData(capture, chosen, LinkOptions(), error=error)
            return lambda: refused
        data = LinkData(capture, chosen, options)
        return partial(self._read, data, pointed, self.canvas.in_view())

    def _read(self, data: LinkData, pointed: int | None, in_view: tuple[int, int]) -> LinkData:
        """Read the links of the queries of the options, or of all in view, and of the one pointed
        at."""
        capture, chosen, options = data.capture, data.selection, data.options
        progress(0, 1, "Reading links")
        try:
            sides = self._sides_of(capture, chosen.layer, options)
            queries = sides[QUERY]
            first, stop = in_view if in_view[1] > in_view[0] else (0, FIRST)
            places = tuple(range(max(0, first - AHEAD), min(len(queries), stop + AHEAD)))
            if options.queries:
                places = places_of(capture, chosen, options, queries)
            links = find_links(capture, chosen, options, places, sides)
            hot = None
            if pointed is not None and pointed < len(queries.prompt):
                place = queries.place(capture.row(chosen.layer, pointed))
                if place is not None and (place not in links.strands or len(places) > 1):
                    hot = find_links(capture, chosen, options, (place,), sides)
        except HgvizError as error:
            return replace(data, error=error)
        marked = frozenset(places) if options.queries else frozenset()
        return replace(data, links=links, hot=hot, chosen=marked)

    def _sides_of(self, capture: Capture, layer: int, options: LinkOptions) -> tuple[Side, Side]:
        """What stands along both sides; the same object as long as it is the same."""
        layers = comparable_layers(capture, layer)
        key = id(capture), layers, options.words, options.special
        if self._sides is None or self._sides[0] != key:
            self._sides = key, link_sides(capture, layer, options)
        return self._sides[1]

    def draw(self, result: LinkData) -> None:
        """Show the links, or why there are none; the controls stay, to correct it."""
        self.data = result
        self._entitle(result)
        error, links, capture = result.error, result.links, result.capture
        self.error.setText("\n".join(error.lines) if error is not None else "")
        self.error.setVisible(links is None)
        self.canvas.setVisible(links is not None)
        if links is None:
            self.sentence.say("")
            self.legend.hide()
            return
        layer, key = capture.spec.layers[result.selection.layer], result.selection.key
        if key is not None:
            key = links.keys.place(capture.column(layer.index, key))
        levels = (capture.spec.levels[at].sequence for at in (layer.level, layer.key_level))
        asking, answering = (tr(sequence.capitalize()) for sequence in levels)
        titles = (tr("Query"), tr("Key")) if asking == answering else (asking, answering)
        colours = head_colours(links, capture.off | self.session.off)
        scene = LinkScene(links, colours, result.chosen, key, result.hot, titles)
        self.canvas.show_scene(scene)
        names = (f'<span style="color:{head.above.name()}">━</span>&nbsp;{head.name}'
                 for head in colours[:LEGEND])  # fmt: skip
        self.legend.setText("&nbsp;&nbsp; ".join(names))
        self.legend.setVisible(len(colours) > 1)
        self.sentence.say(describe_links(result.hot or links, capture.off))
        self.canvas.setAccessibleDescription(self.sentence.full)

    def _entitle(self, result: LinkData) -> None:
        heads, options, layer = result.options.heads, result.options, result.selection.layer
        mean = "Mean of {n:,} heads" if options.fuse == "mean" else "{n:,} heads"
        head = heads[0] if heads else result.selection.head_id
        title = tr(mean, n=len(heads)) if len(heads) > 1 else ""
        self.head.name_head(result.capture.spec, head, title)
        self.head.before.setVisible(self.session.stale)
        note = "" if options.queries else tr("all queries in view")
        if len(result.chosen) > 1:
            prompt = result.capture.query_prompt(layer)
            noun = "word" if options.words else prompt.unit
            note = sentences.counted(len(result.chosen), noun)
        self.head.note.say(note)

    def noticed(self, name: str) -> None:
        """Another text: nothing chosen in the one before is in it."""
        if name == "capture" and not self.grew:
            self._queries, self._sides = (), None
        elif name == "text":
            self.head.before.setVisible(self.session.stale)

    def figure(self, session: Session) -> Spec | None:
        if session.capture is None or self.data is None or self.links is None:
            return None
        options = self.data.options
        if not options.queries:
            tokens = (self.links.queries.token(place) for place in self.links.strands)
            options = replace(options, queries=tuple(one for one in tokens if one is not None))
        return Spec("links", session.selection, session.display, links=options)

    def as_text(self) -> str:
        return self.sentence.full

    def as_table(self) -> list[list[str]] | None:
        return None if self.links is None else link_table(self.links)

    # --- what people do ---------------------------------------------------------------------------

    def _tokens(self, session: Session) -> tuple[int, ...]:
        """The tokens chosen: the session's query, and what was added to it."""
        query = session.selection.query
        if query is None:
            return ()
        return self._queries if query in self._queries else (query,)

    def _token(self, end: LinkEnd) -> int | None:
        return (self.links.queries if end[0] == QUERY else self.links.keys).token(end[1])

    def _place(self, query: int) -> int | None:
        """The place of a token among the queries, None where it is not there."""
        return self.links.queries.place(self.data.capture.row(self.data.selection.layer, query))

    def _read_more(self) -> None:
        """Other queries are in view: where all have links, theirs are read."""
        if self.links is None or self.data is None or self.data.options.queries:
            return
        if not set(range(*self.canvas.in_view())) <= self.links.strands.keys():
            self.refresh()

    def _point(self, end: LinkEnd | None) -> None:
        hover, chosen = None, self.session.selection
        if end is not None and (token := self._token(end)) is not None:
            if end[0] == QUERY:
                hover = replace(chosen, query=token, key=None)
            elif chosen.query is not None:
                hover = replace(chosen, key=token)
        self.session.put(hover=hover)

    def _query(self, place: int, adds: bool, up_to: bool) -> None:
        """Choose a query; one more or one less; or all from the one of the session to it."""
        token = self._token((QUERY, place))
        if token is None:
            return
        tokens = set(self._tokens(self.session))
        query: int | None = self.session.selection.query
        if adds and tokens:
            tokens ^= {token}
            query = token if token in tokens else max(tokens, default=None)
        elif up_to and query is not None:
            start = self._place(query)
            low, high = sorted((place, place if start is None else start))
            between = (self._token((QUERY, at)) for at in range(low, high + 1))
            tokens = {query, *(token for token in between if token is not None)}
        else:
            tokens, query = {token}, token
        self._choose(tokens, replace(self.session.selection, query=query))

    def _choose(self, tokens: set[int], selection: Selection) -> None:
        same = selection.query == self.session.selection.query
        self._queries = tuple(sorted(tokens))
        self.session.put(hover=None, selection=selection)
        if same:
            self.refresh()

    def _key(self, place: int) -> None:
        token = self._token((KEY, place))
        if token is not None:
            self.session.put(hover=None, selection=replace(self.session.selection, key=token))

    def _step(self, by: int, side: Literal["query", "key"], adding: bool) -> None:
        chosen = step_token(self.session, by, side)
        if side == "key" or chosen.query is None:
            self.session.put(hover=None, selection=chosen)
            return
        others = self._tokens(self.session) if adding else ()
        self._choose({*others, chosen.query}, chosen)
        place = self._place(chosen.query)
        if place is not None:
            self.canvas.reveal(place)

    def show_all(self) -> None:
        """The links of every query in view: none is chosen."""
        self._choose(set(), replace(self.session.selection, query=None, key=None))
