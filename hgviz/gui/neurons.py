"""One query with all its keys, from q . k element by element to the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QPainter, QResizeEvent
from PySide6.QtWidgets import QWidget

from hgviz import palettes
from hgviz.activations import ACTIVATIONS
from hgviz.core import Capture, HeadId, Integers, Prompt, Selection
from hgviz.figures.spec import Spec
from hgviz.gui import ink, sentences, theme
from hgviz.gui.grid import CaptureWords, Names
from hgviz.gui.language import tr
from hgviz.gui.sentences import Citation, explanation
from hgviz.gui.tables import REST, Column, RowTable, key_column, paint_text
from hgviz.gui.view import CAPTURE, OPEN_CHECKPOINT, View
from hgviz.gui.widgets import PaneHead, Segments, label, line, tip, vbox
from hgviz.maps import LazyMap, SlotMap
from hgviz.maps.anatomy import Anatomy, Stage, dissect

if TYPE_CHECKING:
    from hgviz.session import Session

# --- anatomy of a row -----------------------------------------------------------------------------


ADDED = "{query} with {key}: {products} of {q} and {k} add up to {total}"
SQUARED = (
    "{query} with {key}: {products} of {q} and {k}, less half the square of k’s length, "
    "add up to {total}"
)
FAR = "those with the distance add up to {amount}"
CENTRE = "the distance from the centre adds {amount}"
CENTRE_ALONE = "{query} with {key}: the distance from the centre adds {amount}"
OVER = "over the sum of the row, {total}, it is {weight}, the weight"
SQUARES = "its square over the sum of squares of the row, {total}, is {weight}, the weight"
MOST_ELEMENTS = 1 << 18  # numbers that a copied table has besides its columns


@dataclass(frozen=True, slots=True, eq=False)
class RowAnatomy:
    """One row of a head, and what its row and columns stand for.

    products and positions: the largest of their elements by magnitude, of all keys.
    """

    capture: Capture
    head: HeadId
    anatomy: Anatomy
    rows: Names
    columns: Names
    products: float
    positions: float

    @property
    def strongest(self) -> int | None:
        """The column with the largest weight; None where there are no keys."""
        weights = self.anatomy.weights
        return int(np.abs(weights).argmax()) if len(weights) else None

    def order(self, by_weight: bool) -> Integers:
        """The columns as they are listed: in their order, or the largest weight first."""
        if not by_weight:
            return np.arange(len(self.anatomy.weights))
        return np.argsort(-np.abs(self.anatomy.weights), kind="stable")

    def sentence(self, column: int) -> str:
        """The way of one key: "64 products add up to 12.310; times 0.125 that is 1.539; …"."""
        one, key = self.anatomy, _quoted(self.columns.glyph(column))
        if one.filled:
            weight = self._at("weight", column)
            filled = (
                "every key of {query} is masked; its row is filled evenly, with {weight} on {key}."
            )
            return tr(filled, query=self._asking, weight=weight, key=key)
        said = [*self._scored(column, key), *self._weighed(column)]
        return tr("{steps}.", steps="; ".join(said))

    def _at(self, kind: str, column: int) -> str:
        """A number on the way of a key; "" where there is none."""
        found = self.anatomy.stage(kind)
        return "" if found is None else number(float(found[column]))

    def _scored(self, column: int, key: str) -> Iterator[str]:
        """What is multiplied and added up: a clause for each step as far as the score."""
        one = self.anatomy
        act, far = ACTIVATIONS[one.activation], one.query.position
        position = self._at("position", column)
        if one.keys.any() or far is None or len(far) > 1:
            q, k = ("φ(q)", "φ(k)") if act.features else ("q", "k")
            yield tr(
                SQUARED if act.of_keys else ADDED, query=self._asking, key=key, q=q, k=k,
                products=sentences.counted(one.keys.shape[1], "product"),
                total=self._at("product", column),
            )  # fmt: skip
            if far is not None:
                yield tr(FAR if len(far) > 1 else CENTRE, amount=position)
        else:
            yield tr(CENTRE_ALONE, query=self._asking, key=key, amount=position)
        if score := self._at("score", column):
            scale = f"{one.query.rule.scale:.4g}"
            yield tr("times {scale} that is {score}", scale=scale, score=score)

    def _weighed(self, column: int) -> Iterator[str]:
        """What becomes of a score: a clause for each step as far as the weight."""
        one, weight = self.anatomy, self._at("weight", column)
        act, kept = ACTIVATIONS[one.activation], one.stage("kept")
        if not one.seen[column]:
            yield tr("this key is masked, and the weight is 0")
            return
        if kept is not None and np.isnan(kept[column]):
            least = "that is not among the {n:,} largest, and the weight is 0"
            yield tr(least, n=one.query.rule.top_k)
            return
        if one.length is not None:
            normed = "over the length of the row, {length}, it is {amount}"
            yield tr(normed, length=number(one.length), amount=self._at("normed", column))
        total = number(one.statistic or 0.0)
        if (rectified := one.stage("rectified")) is not None:
            if np.isnan(rectified[column]):
                yield tr("that is not above 0, and the weight is 0")
                return
            yield tr("the logarithm of e to that, less 1, is {amount}",
                     amount=self._at("rectified", column))  # fmt: skip
        if biased := self._at("biased", column):
            keys = "less the logarithm of the number of keys seen, {total}, it is {amount}"
            yield tr(keys, total=total, amount=biased)
        if exponent := self._at("exponent", column):
            less = "less the log-sum-exp of the row, {total}, it is {amount}"
            yield tr(less, total=total, amount=exponent)
            yield tr("exp of that is {weight}, the weight", weight=weight)
        elif one.statistic is not None and not biased:
            over = SQUARES if act.power == 2 else OVER
            yield tr(over, total=total, weight=weight)
        else:
            yield tr("{activation} of that is {weight}, the weight",
                     activation=act.label, weight=weight)  # fmt: skip

    @property
    def _asking(self) -> str:
        return _quoted(self.rows.glyph(self.anatomy.query.row))

    def table(self, order: Integers) -> list[list[str]]:
        """Every number in full: the columns, then the products one by one where they are not too
        many; nothing where there is no number.
        """
        one = self.anatomy
        elements = np.zeros((len(order), 0))
        if one.keys.size <= MOST_ELEMENTS:
            elements = one.elements(range(len(one.keys))).products[order]
        titles = [tr("column"), tr("key"), tr("where"), *(tr(stage.title) for stage in one.stages)]
        titles += [f"q·k {at}" for at in range(len(one.query.left) if elements.size else 0)]
        lines = [titles]
        columns = [stage.values[order] for stage in one.stages]
        for at, column in enumerate(order.tolist()):
            numbers = [float(values[at]) for values in columns] + elements[at].tolist()
            lines.append([
                str(column), self.columns.glyph(column), self.columns.place(column),
                *("" if value != value else repr(value) for value in numbers),
            ])  # fmt: skip
        return lines


def dissected(capture: Capture, head: HeadId, query: int, texts: CaptureWords) -> RowAnatomy:
    """Take the row of a query apart in a head whose map is computed from queries and keys."""
    layer = capture.spec.layers[head.layer]
    one = capture.maps[head.layer]
    assert isinstance(one, LazyMap)
    row = min(capture.row(head.layer, query), one.shape[1] - 1)
    found = dissect(one, head.head, row)
    rows, columns = (
        texts.names(capture, level, spans)
        for level, spans in (
            (layer.level, capture.query_spans(head.layer)),
            (layer.key_level, capture.key_spans(head.layer)),
        )
    )
    return RowAnatomy(capture, head, found, rows, columns, *_reach(found))


def _reach(one: Anatomy) -> tuple[float, float]:
    """The largest product by magnitude with keys, and with distances."""
    query = one.query
    tallest = np.abs(np.asarray(one.keys)).max(axis=0, initial=0.0)
    products = float((np.abs(query.left[: len(tallest)]) * tallest).max(initial=0.0))
    near = query.with_distances(range(min(len(one.keys), 256)))
    positions = 0.0 if near is None else float(np.abs(near.products).max(initial=0.0))
    return products, positions


def _quoted(glyph: str) -> str:
    return sentences.quoted(glyph) if glyph else tr("a place before the text")


def number(value: float) -> str:
    """1.539, −0.115; 0 only where it is exactly that; – for none."""
    if value != value:
        return "–"
    if abs(value) >= 10_000:
        return f"{value:.3e}".replace("-", "−")
    return sentences.weight(value, 3)


# --- columns --------------------------------------------------------------------------------------


KEY, NUMBER, WEIGHT = 132, 72, 104  # px: columns of the key, of numbers, and the one with a bar
LEAST = 56  # px: narrower pictures of products show nothing
ROW_HEIGHT = 22  # px

# the formula of a column by its kind, and where it comes from
FORMULAS = {
    "product": Citation("q_i · k_j = Σ_e q_ie k_je", "Vaswani et al. 2017"),
    "position": Citation("r_ij", "mechanisms.md"),
    "score": Citation("s_ij = c (q_i · k_j + r_ij), c = 1 / √d", "Vaswani et al. 2017"),
    "seen": Citation("s_ij, j ∈ V_i", "Vaswani et al. 2017"),
    "kept": Citation("s_ij, s_ij ≥ t_i", "activations.md"),
    "normed": Citation("s_ij / √(Σ_k s_ik²)", "activations.md"),
    "rectified": Citation("ln(exp s_ij − 1)", "activations.md"),
    "exponent": Citation("s_ij − ln Σ_k exp s_ik", "activations.md"),
    "biased": Citation("s_ij − ln n", "activations.md"),
    "weight": Citation("a_ij = f(s_ij)", "activations.md"),
}


def key_columns(found: RowAnatomy) -> list[Column]:
    """The columns of a list of keys, from the products to the weight; its rows are columns of the
    map."""
    one, weights = found.anatomy, found.anatomy.weights
    most = float(np.abs(weights).max(initial=0.0)) or 1.0
    is_signed = bool((weights < 0).any())
    wide = KEY + sum(WEIGHT if stage.kind == "weight" else NUMBER for stage in one.stages)

    def paint_products(painter: QPainter, box: QRectF, column: int, chosen: bool) -> None:
        keys = np.asarray(one.keys)[column : column + 1]
        products = one.query.with_keys(keys).products[0]
        paint_cells(painter, box.adjusted(0, 4, 0, -4), products, found.products or 1.0)

    def number_column(stage: Stage) -> Column:
        def value(column: int) -> float:
            return float(stage.values[column])

        def paint(painter: QPainter, box: QRectF, column: int, chosen: bool) -> None:
            now, amount = theme.current(), value(column)
            if amount != amount:  # masked, or not among the largest
                ink.unseen(painter, box.adjusted(0, 3, 0, -3), painter.device().devicePixelRatioF())
                return
            painter.setFont(theme.font(0.92, 600 if chosen else 400))
            if stage.kind != "weight":
                colour = now.text if one.seen[column] else now.secondary
                paint_text(painter, box, number(amount), colour, theme.TO_RIGHT)
                return
            bar = QRectF(box.left(), box.bottom() - 3, box.width(), 2)
            painter.fillRect(bar, now.hover)
            side = ink.sides()[amount > 0] if is_signed else now.mark if chosen else now.secondary
            long = bar.width() * abs(amount) / most
            painter.fillRect(QRectF(bar.right() - long, bar.top(), long, bar.height()), side)
            colour = now.text if amount else now.secondary
            paint_text(painter, box, number(amount), colour, theme.TO_RIGHT)

        return Column(
            tr(stage.title), lambda column: number(value(column)), value,
            WEIGHT if stage.kind == "weight" else NUMBER, explained(stage), right=True, paint=paint,
        )  # fmt: skip

    return [
        key_column(found.columns, KEY),
        Column(
            tr("q·k per dimension"), lambda column: "", width=REST,
            about=tr("Query times key in every dimension: blue takes away, red adds"),
            least=wide + LEAST, paint=paint_products,
        ),
        *map(number_column, one.stages),
    ]  # fmt: skip


def paint_cells(painter: QPainter, box: QRectF, values: NDArray[np.float64], limit: float) -> None:
    """One row of signed numbers (d,) as coloured cells side by side, sharp."""
    if not len(values) or box.width() <= 0:
        return
    table = palettes.colours(palettes.matching_palette("", True), theme.current().dark)
    placed = palettes.palette_coordinates(values[None], (-limit, limit), "sqrt", signed=True)
    pixels = np.ascontiguousarray(palettes.paint(placed, table))
    line = 3 * len(values)
    image = QImage(pixels.data, len(values), 1, line, QImage.Format.Format_RGB888)
    painter.drawImage(box, image)


def explained(stage: Stage) -> str:
    """What a column is, its formula, and where that comes from."""
    return explanation(tr(stage.says), FORMULAS[stage.kind])


# --- one key --------------------------------------------------------------------------------------


LANE = 28  # px: the height of a lane


@dataclass(frozen=True, slots=True)
class NumberLane:
    """One row of numbers (d,) of a query with a key, as cells or as bars with their sum."""

    name: str
    values: NDArray[np.float64]
    limit: float
    bars: bool = False


def lanes_of(found: RowAnatomy, column: int) -> list[NumberLane]:
    """Query, key and products; those of the distance after them."""
    one, query = found.anatomy, found.anatomy.query
    near = one.elements(range(column, column + 1))
    far = query.with_distances(range(column, column + 1))
    groups = [(*query.names, near, found.products)]
    if far is not None and len(far.left) > 1:
        groups.append((*query.position_names, far, found.positions))
    lanes = []
    for first, second, part, limit in groups:
        for name, values in ((first, part.left), (second, part.right[0])):
            lanes.append(NumberLane(name, values, float(np.abs(values).max(initial=0.0)) or 1.0))
        lanes.append(NumberLane(f"{first} · {second}", part.products[0], limit or 1.0, bars=True))
    return lanes


def lane_columns() -> list[Column]:
    """The columns of a list of lanes: name, picture, sum."""

    def paint(painter: QPainter, box: QRectF, lane: NumberLane, chosen: bool) -> None:
        if not lane.bars:
            paint_cells(painter, box.adjusted(0, 4, 0, -4), lane.values, lane.limit)
            return
        step, middle = box.width() / max(1, len(lane.values)), box.center().y()
        most = max(lane.limit, float(np.abs(lane.values).max(initial=0.0))) or 1.0
        gap = 1.0 if step >= 4 else 0.0
        for at, value in enumerate(lane.values.tolist()):
            tall = abs(value) / most * (box.height() / 2 - 1)
            top = middle - tall if value > 0 else middle
            bar = QRectF(box.left() + at * step, top, max(0.5, step - gap), tall)
            painter.fillRect(bar, ink.sides()[value > 0])
        painter.fillRect(QRectF(box.left(), round(middle), box.width(), 1), theme.current().edge)

    def total(lane: NumberLane) -> str:
        return f"Σ {number(float(lane.values.sum()))}" if lane.bars else ""

    return [
        Column("", lambda lane: lane.name, width=72, colour=lambda lane: theme.current().secondary),
        Column("", total, width=REST, paint=paint),
        Column("", total, width=96, weight=600),
    ]


# --- view -----------------------------------------------------------------------------------------


LOW_VIEW = 320  # px of height
ORDERS = (("text", "In order", ""), ("weight", "By weight", ""))
NOTHING = ("No attention captured yet", "Capture a text to see queries, keys and their products.")
NO_QUERY = ("No query is chosen", "Choose one in the text below to list its keys.")
MIXED = (
    "Queries meet slots here",
    "Weights on the tokens behind slots are no products of queries and keys.",
)
DENSE = (
    "This capture has weights only",
    "It was made without queries and keys. Capture the text again, without --dense.",
)


class NeuronView(View):
    """Every number between a query, its keys and their weights; a click chooses the key."""

    name, title = "neurons", "Neurons"
    topic = "neurons"
    lane = "map"
    needs: ClassVar[tuple[str, ...]] = ("capture", "selection", "hover")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.found: RowAnatomy | None = None
        self._texts = CaptureWords()
        self._of: tuple[Prompt, Prompt | None] | None = None
        self.head = PaneHead(tr("Head"))
        self.level = label(factor=0.92, weight=500, kind="chip")
        self.level.hide()
        self.order = Segments([(name, tr(said), icon) for name, said, icon in ORDERS])
        self.order.setToolTip(tr("Order of the keys"))
        self.order.setAccessibleName(tr("Order of the keys"))
        self.order.chosen.connect(lambda _: self.found is not None and self.draw(self.found))
        self.head.add_beside_title(self.level)
        self.head.add(self.order, self.export_button())
        self.lanes = RowTable(
            tr("Products by dimension"), lambda lane: lane.name, sorts=False, height=LANE
        )
        self.lanes.horizontalHeader().hide()
        self.lanes.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.lanes.setSelectionMode(RowTable.SelectionMode.NoSelection)
        self.lanes.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.keys = RowTable(
            tr("Every key of this query"), about=self._sentence, sorts=False, height=ROW_HEIGHT
        )
        self.keys.picked.connect(self._pick)
        self.keys.pointed.connect(self._point)
        self.sentence = label(kind="secondary", wrap=True)
        self.sentence.setMargin(0)
        self.sentence.setContentsMargins(16, 6, 16, 8)
        self.sentence.setMinimumHeight(2 * self.sentence.fontMetrics().height() + 14)
        self._foot = line()
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignVCenter)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        vbox(self.content, self.head, self.lanes, line(), (self.keys, 1), self._foot, self.sentence)
        self.start_at(self.keys)

    # --- View -------------------------------------------------------------------------------------

    def request(self, session: Session) -> Callable[[], RowAnatomy] | None:
        """Take the row of the query looked at apart."""
        capture, chosen, query = session.capture, session.selection, session.looked_at.query
        self.empty_actions: tuple[tuple[str, str], ...] = ()
        if capture is None or not all(map(len, capture.spans)):
            self.empty, self.empty_actions = NOTHING, CAPTURE
            return None
        one = capture.maps[chosen.layer] if chosen.layer < len(capture.maps) else None
        if one is None:
            reached = tr("It is shown as soon as it is captured.")
            self.empty = tr("Layer {layer} is not captured yet", layer=chosen.layer), reached
            self.empty_actions = () if session.at_work else CAPTURE[:1]
            return None
        if isinstance(one, SlotMap):
            self.empty, self.empty_actions = MIXED, (("tokens", "Show the slots"),)
            return None
        if not isinstance(one, LazyMap):
            self.empty = DENSE
            self.empty_actions = CAPTURE[:1] if session.checkpoint else OPEN_CHECKPOINT
            return None
        if query is None or query >= len(capture.query_prompt(chosen.layer)):
            self.empty, self.empty_actions = NO_QUERY, (("next_query", "Choose a query"),)
            return None
        return partial(dissected, capture, chosen.head_id, query, self._named(capture))

    def draw(self, result: RowAnatomy) -> None:
        if self.session is None:
            return
        self.found = result
        spec, head = result.capture.spec, result.head
        self.head.title.setText(tr("Head {head}", head=head))
        self.level.setText(sentences.ends(spec, head.layer))
        self.level.setVisible(bool(self.level.text()))
        row = result.anatomy.query.row
        glyph, place = result.rows.glyph(row), result.rows.place(row)
        self.head.note.say(tr("query {glyph} {place}", glyph=glyph, place=place))
        self.keys.show_rows(key_columns(result), self._ordered().tolist())
        self.keys.choose(self._column())
        self._follow()

    def noticed(self, name: str) -> None:
        """Another key of the same row is there at once."""
        if name in ("selection", "hover") and self._same():
            self.keys.choose(self._column())
            self._follow()

    def figure(self, session: Session) -> Spec | None:
        if session.capture is None or self.found is None or not self._same():
            return None
        chosen = replace(session.selection, key=session.marked.key)  # its query is what is drawn
        spec = Spec("neurons", chosen, session.display)
        return replace(spec, order="weight") if self.order.choice == "weight" else spec

    def as_text(self) -> str:
        return "".join("\t".join(row) + "\n" for row in self.as_table() or ())

    def as_table(self) -> list[list[str]] | None:
        return None if self.found is None else self.found.table(self._ordered())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where there is little room the keys have it, with their sentences as tooltips."""
        super().resizeEvent(event)
        low = self.height() < LOW_VIEW
        self.lanes.setHidden(low)
        for one in (self._foot, self.sentence):
            one.setHidden(low)

    # --- inside -----------------------------------------------------------------------------------

    def _named(self, capture: Capture) -> CaptureWords:
        """The words of the texts of a capture, found once."""
        of = (capture.prompt, capture.target)
        if self._of is None or any(a is not b for a, b in zip(of, self._of, strict=True)):
            self._texts, self._of = CaptureWords(), of
        return self._texts

    def _same(self) -> bool:
        """Whether what is on screen is the row that is chosen."""
        session, found = self.session, self.found
        if session is None or found is None or found.capture is not session.capture:
            return False
        chosen, query = session.selection, session.looked_at.query
        return (
            chosen.head_id == found.head
            and query is not None
            and found.capture.row(chosen.layer, query) == found.anatomy.query.row
        )

    def _ordered(self) -> Integers:
        assert self.found is not None
        return self.found.order(self.order.choice == "weight")

    def _column(self) -> int | None:
        """The column of the key looked at; without one, the strongest."""
        assert self.found is not None and self.session is not None
        key = self.session.looked_at.key
        if key is not None:
            column = self.found.capture.column(self.found.head.layer, key)
            if column < len(self.found.anatomy.weights):
                return column
        return self.found.strongest

    def _follow(self) -> None:
        """The elements and the sentence of the key looked at."""
        column = self._column()
        lanes = [] if self.found is None or column is None else lanes_of(self.found, column)
        self.lanes.show_rows(lane_columns(), lanes)
        self.lanes.setFixedHeight(LANE * max(3, len(lanes)) + 4)
        none = tr("This query has no keys.")
        said = none if column is None else self.found.sentence(column)
        self.sentence.setText(said)
        self.sentence.setToolTip(tip(said))

    def _sentence(self, column: int) -> str:
        return "" if self.found is None else self.found.sentence(column)

    def _token(self, column: int) -> int | None:
        assert self.found is not None
        return self.found.capture.column_token(self.found.head.layer, column)

    def _pick(self, column: int) -> None:
        if self.session is not None and (token := self._token(column)) is not None:
            self.session.put(hover=None)
            self.session.select(key=token)

    def _point(self, column: int | None) -> None:
        """Ring the same key in the other panes."""
        session = self.session
        if session is None or self.found is None:
            return
        key = None if column is None else self._token(column)
        query = session.selection.query
        hover = None
        if key is not None and query is not None:
            hover = replace(Selection(*self.found.head), query=query, key=key)
        session.put(hover=hover)
