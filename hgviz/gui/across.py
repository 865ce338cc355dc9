"""The Hourglass across its levels: one map composed of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from string import Template
from typing import ClassVar

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from hgviz import palettes
from hgviz.analysis.composition import (
    NOTE,
    Rollout,
    RolloutRows,
    describe_shares,
    mean_distances,
    rollout_capture,
)
from hgviz.core import (
    HEAD_FUSIONS,
    Capture,
    Floats,
    HeadFusion,
    HeadId,
    HeadSet,
    RolloutOptions,
    Selection,
    progress,
)
from hgviz.figures.spec import Spec
from hgviz.gui import heatmap, ink, sentences, theme
from hgviz.gui.grid import CaptureWords, MapAxis, Names, Viewport
from hgviz.gui.heatmap import Canvas, Supply
from hgviz.gui.ink import Cross, MapScene
from hgviz.gui.language import tr
from hgviz.gui.opened import OpenedMap, Opener
from hgviz.gui.sentences import Citation, explanation
from hgviz.gui.tiles import Tiles
from hgviz.gui.view import CAPTURE, MapsView, plain
from hgviz.gui.widgets import ARROWS, PaneHead, Picker, hbox, label, shows_tip, vbox
from hgviz.session import Session

# --- cache ----------------------------------------------------------------------------------------


WHOLE = 2048  # tokens of which the whole map is composed
TOO_LONG = (
    "The whole map is composed for texts of up to {most:,} {unit}s; of this one, the row of the "
    "selected answer."
)
ROLLOUTS = 3  # options whose rollout is kept for when one comes back to them


@dataclass(frozen=True, slots=True, eq=False)
class Across:
    """The rollout of one capture for one answer, as far as it is computed.

    row: what the answer at `query` is made of. opened: the whole map, ready for a canvas. reason:
    why there is no whole map, in words.
    """

    capture: Capture
    recipe: RolloutOptions
    query: int | None
    row: RolloutRows | None = None
    opened: OpenedMap | None = None
    reason: str = ""


class ComposedCache:
    """What was composed of the capture on screen, so that another answer is there at once."""

    def __init__(self, tiles: Tiles) -> None:
        self.opener = SingleOpener(tiles)
        self._capture: Capture | None = None
        self._rollouts: dict[RolloutOptions, Rollout] = {}
        self._opened: tuple[RolloutRows, OpenedMap] | None = None

    def across(self, capture: Capture, query: int | None, recipe: RolloutOptions) -> Across:
        """The row of an answer, a step's value once it is there, then the whole map."""
        if self._capture is None or capture.maps is not self._capture.maps:
            self._capture = capture
            self._rollouts.clear()
        rollout = self._rollouts.pop(recipe, None) or Rollout(capture, recipe)
        self._rollouts[recipe] = rollout
        while len(self._rollouts) > ROLLOUTS:
            del self._rollouts[next(iter(self._rollouts))]
        across = Across(capture, recipe, query, None if query is None else rollout.row(query))
        progress(0, 1, NOTE, across)
        if len(capture.main) <= WHOLE:
            return replace(across, opened=self._open(rollout))
        return replace(across, reason=tr(TOO_LONG, most=WHOLE, unit=tr(capture.main.unit)))

    def _open(self, rollout: Rollout) -> OpenedMap:
        whole = rollout.all_rows()
        if self._opened is None or self._opened[0] is not whole:
            composed = rollout_capture(rollout.capture, whole.weights, rollout.options)
            view = self.opener.view
            opened = self.opener.open(
                composed, HeadId(0, 0), query=None, whole=True, shared=False, view=view
            )
            self._opened = whole, opened
        return self._opened[1]


class SingleOpener(Opener):
    """Opens a map that has no others beside it."""

    def __init__(self, tiles: Tiles) -> None:
        super().__init__(tiles)
        self.view = Viewport.fitted((1, 1), (512, 512))

    def beside(self, opened: OpenedMap) -> list[OpenedMap]:
        """Nothing: there is one map only."""
        progress(0, 1)
        return []


# --- sentences ------------------------------------------------------------------------------------


SOURCES = 3  # named in a sentence
MARK = Template('<span style="font-family:$family;font-weight:600;color:$colour">$text</span>')
BOLD = Template("<b>$text</b>")
COMES = "{share} of the answer at {answer} comes from {token}."
COMES_ITSELF = "{share} of the answer at {answer} comes from {token}, itself."
COMES_BACK = "{share} of the answer at {answer} comes from {token}, {away} back."
COMES_AHEAD = "{share} of the answer at {answer} comes from {token}, {away} ahead."


def answer(across: Across, rows: Names, columns: Names) -> str:
    """Where the answer looked at comes from most, and which way."""
    if across.row is None or across.query is None:
        return tr("Point at a cell to read it; click to keep its answer.")
    weights = across.row.weights[0]
    order = np.argsort(-np.abs(weights), kind="stable")[:SOURCES]
    tokens = [
        f"{_cell(columns, int(at))} {amount(float(weights[at]), across.recipe.signed)}"
        for at in order
        if weights[at]
    ]
    own = _cell(rows, across.query)
    if not tokens:
        return tr("The answer at {answer} comes from nothing.", answer=own)
    signed = "The answer at {answer} weighs most {tokens}."
    most = signed if across.recipe.signed else "The answer at {answer} comes most from {tokens}."
    sentence = tr(most, answer=own, tokens=", ".join(tokens))
    return f"{sentence} {sentences.marked_up(_levels(across))}"


def cell(across: Across, rows: Names, columns: Names, row: int, column: int, value: float) -> str:
    """How much of one answer comes from one token."""
    ends = {"answer": _cell(rows, row), "token": _cell(columns, column)}
    if across.recipe.signed:
        adds = "{token} adds {amount} at the answer {answer}, all layers multiplied."
        takes = "{token} takes away {amount} at the answer {answer}, all layers multiplied."
        return tr(adds if value >= 0 else takes, amount=sentences.weight(abs(value), 3), **ends)
    ends["share"] = BOLD.substitute(text=heatmap.share(value))
    if rows.prompt is not columns.prompt:
        return tr(COMES, **ends)
    far = row - column
    said = COMES_BACK if far > 0 else COMES_AHEAD if far else COMES_ITSELF
    return tr(said, away=sentences.counted(abs(far), rows.prompt.unit), **ends)


def amount(value: float, signed: bool) -> str:
    """A share in per cent, or a signed weight."""
    return sentences.with_sign(value, 2) if signed else heatmap.share(value)


def _levels(across: Across) -> str:
    """How much of the answer went to each level, and from how far back; or from the source."""
    assert across.row is not None
    if not across.row.parts or across.query is None:
        return tr(describe_shares(across.capture, across.row, across.query))
    spec, unit = across.capture.spec, tr(across.capture.main.unit)
    distances = mean_distances(across.capture, across.row.parts, across.query)
    parts: list[str] = []
    for level, weights, far in zip(spec.levels, across.row.parts, distances, strict=True):
        if far == far:  # NaN: no part of the answer has this level as its innermost
            stays = "{share} stayed at {level}, from {far:,.0f}"
            goes = "{share} went to {level}, from {far:,.0f}"
            share = heatmap.share(round(float(weights.sum(dtype=float)), 6))
            said = tr(goes if level.index else stays, share=share, level=level.label, far=far)
            parts.append(
                said if parts else tr("{part} {unit}s back on average", part=said, unit=unit)
            )
    return "; ".join(parts) + "." if parts else ""


def _cell(names: Names, cell: int) -> str:
    return MARK.substitute(
        family=",".join(f"'{name}'" for name in theme.MONO),
        colour=theme.current().mark_text.name(),
        text=sentences.marked_up(names.glyph(cell)),
    )


# --- bars -----------------------------------------------------------------------------------------


LEFT, RIGHT = 88, 16  # px beside the bars: as the map has it
LEAST, TALLEST, WORDS = 44, 104, 60  # px of height: bars at least and at most, words under them
NAMES = {"rollout": "Rollout", "product": "Product"}
MEANINGS = {  # what the bars are, their formula
    "rollout": (
        "How much of the answer comes from each token, all layers taken together",
        Citation("R = Â_L … Â_1, Â = α I + (1 − α) A", "Abnar and Zuidema 2020"),
    ),
    "product": (
        "How much each token adds or takes away, all layers multiplied",
        Citation("Π_l (A_l + I)", "across.md"),
    ),
}  # fmt: skip


def tints(count: int) -> list[QColor]:
    """Colours of so many levels, from full resolution in: the further in, the more orange."""
    now = theme.current()
    return [blend(now.press, now.mark, number / max(1, count - 1)) for number in range(count)]


def blend(first: QColor, second: QColor, part: float) -> QColor:
    """A colour between two, `part` of the second."""
    both = zip(first.getRgb()[:3], second.getRgb()[:3], strict=True)  # type: ignore[index]
    return QColor(*(round(a + (b - a) * part) for a, b in both))


class CompositionBars(QWidget):
    """A bar for each token that an answer comes from, stacked by the levels it comes through."""

    own_keys = tuple(ARROWS)
    picked = Signal(int)  # a column

    def __init__(self) -> None:
        super().__init__()
        self.across: Across | None = None
        self.columns: Names | None = None
        self.rows: Names | None = None
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("The answer looked at, token by token"))
        self.chosen: int | None = None

    def sizeHint(self) -> QSize:
        """The bars at their least height, and the words."""
        return QSize(320, WORDS + LEAST)

    def minimumSizeHint(self) -> QSize:
        """As high as it needs to be."""
        return QSize(160, self.sizeHint().height())

    @property
    def weights(self) -> Floats | None:
        """(columns,) what the answer is made of, None before it is known."""
        return (
            None if self.across is None or self.across.row is None else self.across.row.weights[0]
        )

    @property
    def levels(self) -> tuple[Floats, ...]:
        """The answer in parts, by the level that each went no further in than."""
        return () if self.across is None or self.across.row is None else self.across.row.parts

    @property
    def kind(self) -> str:
        """What the weights are, a key of NAMES."""
        return "product" if self._signed else "rollout"

    @property
    def _signed(self) -> bool:
        return self.across is not None and self.across.recipe.signed

    def show_row(self, across: Across, rows: Names, columns: Names) -> None:
        """Show an answer."""
        self.across, self.rows, self.columns = across, rows, columns
        is_alone = across.opened is None and bool(across.reason)  # there is no map above
        self.setMaximumHeight(WORDS + TALLEST * (3 if is_alone else 1))
        self.updateGeometry()
        self.update()

    # --- where things are -------------------------------------------------------------------------

    @property
    def along(self) -> MapAxis | None:
        """The columns over the width, in logical px."""
        if self.columns is None or not len(self.columns):
            return None
        room = max(8, self.width() - LEFT - RIGHT)
        scale = room / len(self.columns)
        return MapAxis(len(self.columns), room, float(int(scale)) if scale >= 1 else scale)

    def column_at(self, place: QPointF) -> int | None:
        """The column under a place."""
        along = self.along
        return None if along is None else along.cell(place.x() - LEFT)

    # --- painting ---------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """The bars, and the words of the text under them."""
        along, weights = self.along, self.weights
        if along is None or weights is None or self.columns is None or self.across is None:
            return
        now = theme.current()
        with QPainter(self) as painter:
            bottom = float(self.height() - WORDS)
            self._paint_bars(painter, along, weights, QRectF(LEFT, 2, along.size, bottom - 8))
            if self.chosen is not None:  # the key, as the cross hair of the map above has it
                left, right = along.edges(self.chosen)
                box = QRectF(LEFT + left, 2, max(2.0, right - left), self.height() - WORDS)
                painter.setPen(QPen(now.mark, 1))
                painter.drawRect(box)
            if self.hasFocus():
                painter.save()
                ink.focus_ring(painter, QRectF(self.rect()))
                painter.restore()
            base = QRectF(LEFT, bottom - 2, along.size, 1)
            painter.setFont(theme.font(ink.AXIS))
            chosen = self._own()
            marks = self.columns.marks(along, 1.0, chosen)
            metrics = QFontMetricsF(theme.font(ink.AXIS))
            for label in marks.labels:
                painter.setPen(now.mark_text if label.chosen else now.secondary)
                painter.save()
                painter.translate(base.left() + label.middle, base.top() + 2)
                if len(label.text) == 1:
                    box = QRectF(-20, 0, 40, metrics.height())
                    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, label.text)
                else:
                    painter.rotate(90)
                    text = metrics.elidedText(label.text, Qt.TextElideMode.ElideRight, WORDS - 8)
                    box = QRectF(0, -metrics.height() / 2, WORDS, metrics.height())
                    painter.drawText(box, theme.TO_LEFT, text)
                painter.restore()

    def _own(self) -> int | None:
        assert self.across is not None and self.columns is not None
        if self.across.query is None or self.rows is None:
            return None
        return len(self.columns) - len(self.rows) + self.across.query

    def _paint_bars(self, painter: QPainter, along: MapAxis, values: Floats, box: QRectF) -> None:
        now = theme.current()
        values = np.nan_to_num(values, nan=0.0)
        most = float(np.abs(values).max(initial=0.0)) or 1.0
        painter.setFont(theme.font(ink.AXIS, 600))
        painter.setPen(now.secondary)
        title = QRectF(16, box.top(), LEFT - 24, 16)
        painter.drawText(title, theme.TO_RIGHT, tr(NAMES[self.kind]))
        painter.setFont(theme.font(ink.AXIS))
        top = tr("to {amount}", amount=amount(most, self._signed))
        painter.drawText(title.translated(0, 16), theme.TO_RIGHT, top)
        signed = bool((values < 0).any())
        zero = box.center().y() if signed else box.bottom()
        high = box.height() / (2 if signed else 1)
        bounds = along.bounds()
        layers = self._layers(values)
        gap = along.scale > 4
        for pixel, (first, after) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
            if gap and (pixel + 1) % int(along.scale) == 0:
                continue
            cells = slice(int(first), max(int(first) + 1, int(after)))
            if not len(values[cells]):
                continue
            at = int(first) + int(np.abs(values[cells]).argmax())
            base = zero
            for part, colour in layers:
                tall = high * min(1.0, abs(float(part[at])) / most)
                if tall:
                    y = base - tall if part[at] > 0 else base
                    painter.fillRect(QRectF(box.left() + pixel, y, 1, tall), colour)
                    base -= tall
        painter.setPen(QPen(now.edge, 1))
        painter.drawLine(QPointF(box.left(), zero + 0.5), QPointF(box.right(), zero + 0.5))

    def _layers(self, values: Floats) -> list[tuple[Floats, QColor]]:
        """What is stacked: of a rollout, what comes from each level of the model."""
        if (values < 0).any():
            negative, positive = ink.sides()
            return [(np.minimum(values, 0), negative), (np.maximum(values, 0), positive)]
        if not self.levels:
            return [(values, theme.current().press)]
        return list(zip(self.levels, tints(len(self.levels)), strict=True))

    # --- events -----------------------------------------------------------------------------------

    def said_at(self, place: QPointF) -> str:
        """The token under a place and its numbers."""
        if place.x() < LEFT and self.weights is not None:
            meaning, cited = MEANINGS[self.kind]
            return explanation(tr(meaning), cited)
        return self.said_of(self.column_at(place))

    def said_of(self, column: int | None) -> str:
        """A token and its numbers; "" for none."""
        if column is None or self.columns is None or self.across is None:
            return ""
        token = f"{sentences.shown(self.columns.glyph(column))}, {self.columns.place(column)}"
        if self.weights is None:
            return token
        return f"{token}; {self._number(float(self.weights[column]), column)}"

    def _number(self, value: float, column: int) -> str:
        """The weight of a column, with its name and its parts by level."""
        assert self.across is not None
        whole = amount(value, self._signed)
        if self._signed:
            return tr("product {amount}", amount=whole)
        if not self.levels or not value:
            return tr("rollout {amount}", amount=whole)
        by = ", ".join(
            tr("{amount} by {level}", level=level.label, amount=amount(float(part[column]), False))
            for part, level in zip(self.levels, self.across.capture.spec.levels, strict=True)
        )
        return tr("rollout {amount} ({parts})", amount=whole, parts=by)

    def choose(self, column: int | None) -> None:
        """Mark a token, and say its numbers to those who cannot see them."""
        if column is not None and (self.columns is None or column >= len(self.columns)):
            column = None
        self.chosen = column
        self.setAccessibleDescription(self.said_of(column))
        self.update()

    def table(self) -> list[list[str]]:
        """A row for each token, every number in full."""
        assert self.columns is not None and self.across is not None and self.weights is not None
        levels = zip(self.across.capture.spec.levels, self.levels, strict=False)
        numbers = [(tr(NAMES[self.kind]), self.weights)]
        numbers += [
            (tr("{name} by {level}", name=tr("Rollout"), level=level.label), values)
            for level, values in levels
        ]
        rows = [[tr("column"), tr("token"), tr("where"), *(name for name, _ in numbers)]]
        for column in range(len(self.columns)):
            names = self.columns.glyph(column), self.columns.place(column)
            cells = (float(values[column]) for _, values in numbers)
            rows.append([str(column), *names, *("" if np.isnan(x) else repr(x) for x in cells)])
        return rows

    def event(self, event: QEvent) -> bool:
        """The numbers of the token under the pointer."""
        return shows_tip(event, self, self.said_at) or super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose a token."""
        column = self.column_at(event.position())
        if column is not None and event.button() == Qt.MouseButton.LeftButton:
            self.picked.emit(column)


# --- recipe ---------------------------------------------------------------------------------------


FUSED = (
    ("mean", "Mean of heads", "Heads of a layer count alike"),
    ("max", "Largest head", "Of each cell the head that looks there most"),
    ("min", "Smallest head", "Of each cell the head that looks there least"),
    ("one", "This head", "In its layer the selected head alone; in others the mean"),
)
RESIDUAL = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
FUSING = (
    "How the heads of a layer become one map",
    Citation("A = mean_h A_h, max_h A_h, min_h A_h", "Abnar and Zuidema 2020; across.md"),
)
STAYING = (
    "How much of every sum is what was there before attention",
    Citation("Â = α I + (1 − α) A", "Abnar and Zuidema 2020"),
)
SIGNED = "Weights below zero stay so: the product of A + I", MEANINGS["product"][1]


class RecipeBar(QWidget):
    """Three controls in a row; `changed` says that one of them was used."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.fuse, self.residual = Picker(), Picker()
        for at, (name, said, why) in enumerate(FUSED):
            self.fuse.addItem(tr(said), name)
            self.fuse.setItemData(at, tr(why), Qt.ItemDataRole.ToolTipRole)
        for share in RESIDUAL:
            self.residual.addItem(tr("{share} residual", share=heatmap.share(share)), share)
        self.residual.setCurrentIndex(RESIDUAL.index(0.5))
        row = hbox(self, spacing=8)
        for box, name, (meaning, cited), wide in (
            (self.fuse, tr("Heads"), FUSING, 146),
            (self.residual, tr("Residual share"), STAYING, 132),
        ):
            box.setAccessibleName(name)
            box.setToolTip(explanation(tr(meaning), cited))
            box.setFixedWidth(wide)
            box.currentIndexChanged.connect(self._chosen)
            row.addWidget(box)
        self.signed = _switch(tr("Signed"), *SIGNED)
        self.signed.toggled.connect(self._chosen)
        row.addWidget(self.signed)

    def recipe(self, head: HeadId, off: HeadSet) -> RolloutOptions:
        """What is chosen; head: the selected one, off: those that are switched off."""
        chosen = self.fuse.currentData()
        heads = (head,) if chosen == "one" and head not in off else ()
        if self.signed.isChecked():
            return RolloutOptions(heads=heads, signed=True)
        fuse: HeadFusion = chosen if chosen in HEAD_FUSIONS else "mean"
        return RolloutOptions(fuse, heads, self.residual.currentData())

    def _chosen(self, _: object) -> None:
        plain = not self.signed.isChecked()
        for at in (1, 2):  # a signed product is of means
            self.fuse.model().item(at).setEnabled(plain)  # type: ignore[attr-defined]
        self.residual.setEnabled(plain)
        self.changed.emit()


def _switch(text: str, meaning: str, cited: Citation) -> QToolButton:
    out = QToolButton()
    out.setText(text)
    out.setCheckable(True)
    out.setFixedHeight(28)
    out.setToolTip(explanation(tr(meaning), cited))
    return out


# --- across ---------------------------------------------------------------------------------------


ROOMY, HIGH, NOTED = 560, 400, 720  # px: the title, the bars under a map, the note
NOTHING = ("No attention to compose yet", "Capture a text, and all its maps become one here.")


class AcrossView(MapsView):
    """All maps of a capture as one, for any choice of how; the answer looked at in detail."""

    name, title = "across", "Across levels"
    topic = "across"
    icon: ClassVar[str] = "hourglass"
    needs: ClassVar[tuple[str, ...]] = ("capture", "selection", "off")
    watches: ClassVar[tuple[str, ...]] = ("hover", "display")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tiles = Tiles()
        self._cache = ComposedCache(self.tiles)
        self._across: Across | None = None
        self._names: tuple[Names, Names] | None = None
        self._texts: tuple[Capture, CaptureWords] | None = None
        self.canvas = Canvas(self.tiles)
        self.canvas.setAccessibleName(tr("Map of all maps composed"))
        self._supply = Supply(self.canvas, self._cache.opener)
        self.bars = CompositionBars()
        self._build()

    def _build(self) -> None:
        self.head = PaneHead(tr("All maps"))
        self.choices = RecipeBar()
        self.choices.changed.connect(self.refresh)
        self.export = self.export_button()
        self.head.add(self.choices, self.export)
        self.reason = label(factor=0.92, kind="secondary", wrap=True)
        self.reason.setContentsMargins(16, 8, 16, 8)
        self.reason.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Maximum)
        self.reason.hide()
        vbox(self.content, self.head, (self.canvas, 5), self.reason, (self.bars, 2))
        self.canvas.pointed.connect(self._point)
        self.canvas.clicked.connect(self._click)
        self.canvas.moved.connect(self._fetch)
        for one in (self.canvas, self.bars):
            one.installEventFilter(self)
        self.bars.picked.connect(self._pick)
        self.start_at(self.canvas)

    # --- View -------------------------------------------------------------------------------------

    def request(self, session: Session) -> Callable[[], Across] | None:
        """Compose the row of the answer, then all of them."""
        capture = session.capture
        if capture is None or not len(capture.main):
            self.empty, self.empty_actions = NOTHING, CAPTURE
            return None
        return partial(
            self._cache.across, session.capture, self._answer(session), self._recipe(session)
        )

    def draw(self, result: Across) -> None:
        """Show as much of it as there is."""
        session = self.session
        if session is None or result.capture is not session.capture:
            return
        if self._across is None or self._across.capture is not result.capture:
            self._pointed = None
        self._across = result
        self._names = self._axis_names(result)
        shown = result.opened
        self.reason.setText(result.reason)
        self.reason.setVisible(bool(result.reason))
        self.bars.show_row(result, *self._names)
        self._fit_parts()
        self.head.note.say(tr(result.recipe.label))
        if shown is not None:
            self._present()
        self._follow()
        self._fetch()

    def noticed(self, name: str) -> None:
        """Other colours, another place under the pointer."""
        if self._across is None or self.session is None:
            return
        if name == "display":
            self._present()
        elif name == "hover":
            self._follow()

    def figure(self, session: Session) -> Spec | None:
        """The same map on paper."""
        if session.capture is None:
            return None
        # the key is chosen in the map of one head: here no column is
        chosen = replace(session.selection, query=self._answer(session), key=None)
        return Spec("rollout", chosen, session.display, recipe=self._recipe(session))

    def as_text(self) -> str:
        """The sentence beneath the map."""
        return plain(self.canvas.sentence.text())

    def as_table(self) -> list[list[str]] | None:
        """The answer looked at, token by token, as the bars have it."""
        return None if self.bars.weights is None else self.bars.table()

    def settle(self) -> None:
        """Ask, read every tile on screen and draw, now."""
        super().settle()
        if self._across is not None and (opened := self._across.opened) is not None:
            view = self.canvas.planned
            opened.load(self.tiles, self.tiles.lacking(opened.source, view))
            self.canvas.compose(afresh=True)
            self._present()
            self._follow()

    # --- what is asked for ------------------------------------------------------------------------

    def _recipe(self, session: Session) -> RolloutOptions:
        off = session.capture.off if session.capture is not None else frozenset()
        return self.choices.recipe(session.selection.head_id, off)

    def _answer(self, session: Session) -> int | None:
        """The token whose answer is looked at: the query, where it is of the text answered on."""
        assert session.capture is not None
        capture, chosen = session.capture, session.selection
        if capture.query_prompt(chosen.layer) is not capture.main or chosen.query is None:
            return capture.main.last
        return min(chosen.query, len(capture.main) - 1)

    # --- showing ----------------------------------------------------------------------------------

    def _axis_names(self, across: Across) -> tuple[Names, Names]:
        """What rows and columns are called: of the composed capture where it is there."""
        if across.opened is not None:
            return across.opened.grid.queries, across.opened.grid.keys
        if self._texts is None or self._texts[0] is not across.capture:
            self._texts = across.capture, CaptureWords()
        weights = np.zeros((1, 1), np.float32)
        bare = rollout_capture(across.capture, weights, across.recipe)
        texts = self._texts[1]
        layer = bare.spec.layers[0]
        rows = texts.names(bare, layer.level, bare.spans[layer.level])
        return rows, texts.names(bare, layer.key_level, bare.spans[layer.key_level])

    def _present(self) -> None:
        across, session = self._across, self.session
        if across is None or session is None or across.opened is None:
            return
        opened, grid = across.opened, across.opened.grid
        self.canvas.hidden_words = heatmap.hidden(grid.rule_of(opened.head.head))
        limits = palettes.limits_of(-opened.peak, opened.peak, opened.source.signed)
        scene = MapScene(opened.source, grid.rows, grid.columns, limits, session.display)
        self.canvas.show_scene(replace(scene, mass=opened.mass, sides=(tr("Token"), tr("Answer"))))

    def _fetch(self) -> None:
        if self._across is not None and self._across.opened is not None and self.isVisible():
            self._supply.want(self._across.opened)

    def _follow(self) -> None:
        """The cross hair, the card and the sentence."""
        across, session = self._across, self.session
        if across is None or session is None or self._names is None:
            return
        if across.capture is not session.capture:  # the next one brings its own
            return
        rows, columns = self._names
        row, column = across.query, self._column(session)
        if self._pointed is not None:
            row, column = self._pointed
        self.bars.choose(column)
        if across.opened is None:
            lines = filter(None, (across.reason, self.bars.said_of(column)))
            self.reason.setText("\n".join(lines))
            return
        ends = None
        if row is not None:
            causal = across.opened.source.rule.causal
            ends = (0, row + 1) if causal else (0, len(columns))
        self.canvas.point(Cross(row, column, ends))
        if row is None or column is None:
            self.canvas.say(answer(across, rows, columns), "")
            return
        weights = across.opened.source.map.read(0, (row, row + 1))[0]
        value = float(weights[column])
        reading = heatmap.CellReading(
            across.opened.head, rows, columns, row, weights, column, signed=across.recipe.signed
        )
        self.canvas.say(cell(across, rows, columns, row, column, value), reading.card())

    def _column(self, session: Session) -> int | None:
        """The column of the chosen key, where its text has columns."""
        assert self._across is not None
        capture, chosen = self._across.capture, session.looked_at
        if chosen.key is None:
            return None
        before = 0 if capture.target is None else len(capture.prompt)
        prompt = capture.key_prompt(session.selection.layer)
        if prompt is capture.main:
            return before + chosen.key
        return chosen.key if prompt is capture.prompt else None

    # --- what people do ---------------------------------------------------------------------------

    def _point(self, cell: tuple[int, int] | None) -> None:
        if self._across is None or self.session is None or cell == self._pointed:
            return
        self._pointed = cell if cell is not None and None not in cell else None
        hover, tokens = None, self._tokens(self._pointed)
        if tokens is not None:
            hover = Selection(*self.session.selection.head_id, query=tokens[0], key=tokens[1])
        self.session.put(hover=hover)
        self._follow()

    def _click(self, row: int, column: int) -> None:
        tokens = self._tokens((row, column))
        if self.session is not None and tokens is not None:
            self._choose(replace(self.session.selection, query=tokens[0], key=tokens[1]))

    def _pick(self, column: int) -> None:
        if self.session is not None and self._across is not None:
            row = self._across.query if self._across.query is not None else 0
            self._click(row, column)

    def _tokens(self, cell: tuple[int, int] | None) -> tuple[int, int | None] | None:
        """The query and key of a cell, as the selected layer counts them; None: it cannot."""
        if cell is None or self.session is None or self._across is None:
            return None
        capture, layer = self._across.capture, self.session.selection.layer
        if capture is not self.session.capture:
            return None  # another is on its way
        if capture.query_prompt(layer) is not capture.main:
            return None
        row, column = cell
        before = 0 if capture.target is None else len(capture.prompt)
        of_main = capture.key_prompt(layer) is capture.main
        inside = column >= before if of_main else column < before
        return row, (column - before * of_main) if inside else None

    def _escape(self, session: Session) -> bool:
        """Let go of the key."""
        if session.selection.key is None:
            return False
        self._choose(replace(session.selection, key=None))
        return True

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where it is narrow or low the map comes first."""
        super().resizeEvent(event)
        self._fit_parts()

    def _fit_parts(self) -> None:
        self.head.note.setVisible(self.width() >= NOTED)
        self.head.title.setVisible(self.width() >= ROOMY)
        across = self._across
        whole = across is None or across.opened is not None or not across.reason
        self.canvas.setVisible(whole)
        self.bars.setVisible(self.height() >= HIGH or not whole)
