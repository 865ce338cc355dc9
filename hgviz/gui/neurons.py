"""One query with all its keys, from q . k element by element to the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter

from hgviz.activations import ACTIVATIONS
from hgviz.core import Capture, Display, HeadId, Integers, Selection
from hgviz.figures.spec import Spec
from hgviz.gui import ink, sentences, theme
from hgviz.gui.grid import CaptureWords, Names
from hgviz.gui.language import tr
from hgviz.gui.sentences import Citation, explanation
from hgviz.gui.tables import REST, Column, RowTable, Table, key_column, key_table
from hgviz.gui.view import CAPTURE, OPEN_CHECKPOINT, Empty, HeadTitle, View, uncaptured
from hgviz.gui.widgets import Segments, label, line, tip, vbox
from hgviz.maps import LazyMap, SlotMap
from hgviz.maps.anatomy import Anatomy, Stage, dissect
from hgviz.session import Session

# --- anatomy of a row -----------------------------------------------------------------------------

ADDED = "{query} with {key}: {products} of {q} and {k} sum to {total}"
SQUARED = (
    "{query} with {key}: {products} of {q} and {k}, minus half the squared norm of k, "
    "sum to {total}"
)
FAR = "those with the distance sum to {amount}"
CENTRE = "the distance from the centre adds {amount}"
CENTRE_ALONE = "{query} with {key}: the distance from the centre adds {amount}"
FILLED = "Every key of {query} is masked, so its row is uniform: {weight} on {key}."
STEPS = {  # by the kind of a stage, what it makes of the number before
    "score": "times {scale}: {amount}",
    "normed": "divided by the norm of the row, {length}: {amount}",
    "rectified": "ln(exp − 1) of that: {amount}",
    "exponent": "minus the log-sum-exp of the row, {total}: {amount}",
    "biased": "minus the log of the number of keys not masked, {total}: {amount}",
}
LOST = {  # by the kind of a stage, why a key has no number there
    "seen": "this key is masked: weight 0",
    "kept": "not among the {top_k:,} largest: weight 0",
    "rectified": "not above 0: weight 0",
}
EXP = "exp of that: weight {amount}"
OVER = "divided by the sum of the row, {total}: weight {amount}"
SQUARES = "its square divided by the sum of squares of the row, {total}: weight {amount}"
OTHERWISE = "{activation} of that: weight {amount}"
MOST_ELEMENTS = 1 << 18  # numbers that a copied table has besides its columns


@dataclass(frozen=True, slots=True, eq=False)
class RowAnatomy:
    """One row of a head, and what its row and columns stand for."""

    capture: Capture
    head: HeadId
    anatomy: Anatomy
    rows: Names
    columns: Names
    products: float  # the largest element by magnitude, of all keys
    positions: float  # the same of the distances

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
        """How one weight is computed: "64 products sum to 12.310; times 0.125: 1.539; …"."""
        one = self.anatomy
        names = {"query": self.rows.glyph(one.query.row), "key": self.columns.glyph(column)}
        names = {end: sentences.quoted(glyph) if glyph else tr("a position before the text")
                 for end, glyph in names.items()}  # fmt: skip
        if one.filled:
            return tr(FILLED, weight=number(float(one.weights[column])), **names)
        return f"{'; '.join([*self._products(column, names), *self._steps(column)])}."

    def _products(self, column: int, names: dict[str, str]) -> list[str]:
        one, far = self.anatomy, self.anatomy.query.position
        amounts = {stage.kind: number(float(stage.values[column])) for stage in one.stages}
        if far is not None and len(far) == 1 and not one.keys.any():
            return [tr(CENTRE_ALONE, amount=amounts["position"], **names)]
        act = ACTIVATIONS[one.activation]
        q, k = ("φ(q)", "φ(k)") if act.features else ("q", "k")
        products = sentences.counted(one.keys.shape[1], "product")
        words = SQUARED if act.of_keys else ADDED
        clauses = [tr(words, q=q, k=k, products=products, total=amounts["product"], **names)]
        if far is not None:
            clauses.append(tr(FAR if len(far) > 1 else CENTRE, amount=amounts["position"]))
        return clauses

    def _steps(self, column: int) -> list[str]:
        """What becomes of the score, up to the weight or to where the key has no number."""
        one, act = self.anatomy, ACTIVATIONS[self.anatomy.activation]
        clauses: list[str] = []
        facts = {
            "scale": f"{one.query.rule.scale:.4g}", "total": number(one.statistic or 0.0),
            "length": number(one.length or 0.0), "activation": act.label,
            "top_k": one.query.rule.top_k,
        }  # fmt: skip
        steps, kinds = dict(STEPS), {stage.kind for stage in one.stages}
        if "exponent" in kinds:
            steps["weight"] = EXP
        elif one.statistic is not None and "biased" not in kinds:
            steps["weight"] = SQUARES if act.power == 2 else OVER
        else:
            steps["weight"] = OTHERWISE
        for stage in one.stages:
            amount = float(stage.values[column])
            if np.isnan(amount) and stage.kind in LOST:
                return [*clauses, tr(LOST[stage.kind], **facts)]
            if stage.kind in steps:
                clauses.append(tr(steps[stage.kind], amount=number(amount), **facts))
        return clauses

    def table(self, order: Integers) -> Table:
        """Every number in full: the columns, then the products one by one where they are not too
        many."""
        one = self.anatomy
        numbers = {tr(stage.title): stage.values[order] for stage in one.stages}
        if one.keys.size <= MOST_ELEMENTS:
            products = one.elements(range(len(one.keys))).products[order]
            numbers |= {f"q·k {at}": values for at, values in enumerate(products.T)}
        return key_table(self.columns, order.tolist(), numbers)


def dissected(capture: Capture, head: HeadId, query: int, texts: CaptureWords) -> RowAnatomy:
    """Take the row of a query apart in a head whose map is computed from queries and keys."""
    one: Any = capture.maps[head.layer]
    row = min(capture.row(head.layer, query), one.shape[1] - 1)
    found = dissect(one, head.head, row)
    rows, columns = texts.of_layer(capture, head.layer)
    tallest = np.abs(np.asarray(found.keys)).max(axis=0, initial=0.0)
    products = float((np.abs(found.query.left[: len(tallest)]) * tallest).max(initial=0.0))
    near = found.query.with_distances(range(min(len(found.keys), 256)))
    positions = 0.0 if near is None else float(np.abs(near.products).max(initial=0.0))
    return RowAnatomy(capture, head, found, rows, columns, products, positions)


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
    "kept": Citation("s_ij, s_ij ≥ t_i", "maps.md"),
    "normed": Citation("s_ij / √(Σ_k s_ik²)", "maps.md"),
    "rectified": Citation("ln(exp s_ij − 1)", "maps.md"),
    "exponent": Citation("s_ij − ln Σ_k exp s_ik", "maps.md"),
    "biased": Citation("s_ij − ln n", "maps.md"),
    "weight": Citation("a_ij = f(s_ij)", "maps.md"),
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
                ink.unseen(painter, box.adjusted(0, 3, 0, -3))
                return
            is_plain = one.seen[column]
            if stage.kind == "weight":
                bar, is_plain = QRectF(box.left(), box.bottom() - 3, box.width(), 2), bool(amount)
                painter.fillRect(bar, now.hover)
                side = now.mark if chosen else now.secondary
                side = ink.sides()[amount > 0] if is_signed else side
                long = bar.width() * abs(amount) / most
                painter.fillRect(QRectF(bar.right() - long, bar.top(), long, bar.height()), side)
            colour = now.text if is_plain else now.secondary
            font = theme.font(0.92, 600 if chosen else 400)
            theme.write(painter, box, number(amount), font, colour, theme.TO_RIGHT)

        about = explanation(tr(stage.says), FORMULAS[stage.kind])
        wide = WEIGHT if stage.kind == "weight" else NUMBER
        return Column(
            tr(stage.title), lambda column: number(value(column)), value, wide, about,
            right=True, paint=paint,
        )  # fmt: skip

    return [
        key_column(found.columns, KEY),
        Column(
            tr("q·k per dimension"), lambda column: "", width=REST,
            about=tr("Query times key in each dimension: blue negative, red positive"),
            least=wide + LEAST, paint=paint_products,
        ),
        *map(number_column, one.stages),
    ]  # fmt: skip


def paint_cells(painter: QPainter, box: QRectF, values: NDArray[np.float64], limit: float) -> None:
    """One row of signed numbers (d,) as coloured cells side by side, sharp."""
    if not len(values) or box.width() <= 0:
        return
    scale = ink.ColourScale(True, (-limit, limit), Display(scale="sqrt"))
    row = values[None].astype(np.float32)
    painter.drawImage(box, ink.image(scale.painted(row, theme.current().dark)))


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


ORDERS = (("text", "By position"), ("weight", "By weight"))
NOTHING = Empty(
    "No attention captured yet", "Run the model on a text to see its queries and keys.", CAPTURE
)
NO_QUERY = Empty(
    "No query chosen", "Choose a query in the text below to list its keys.",
    (("next_query", "Choose a query"),),
)  # fmt: skip
MIXED = Empty(
    "The keys of this layer are slots",
    "Weights on the tokens behind slots are not products of queries and keys.",
    (("tokens", "Show the slots"),),
)
DENSE = Empty(
    "This capture has weights only",
    "It has no queries and keys. Capture the text again without --dense.",
    CAPTURE[:1],
)


class NeuronView(View):
    """Every number between a query, its keys and their weights; a click chooses the key."""

    name, title, topic = "neurons", "Neurons", "neurons"
    lane = "map"
    needs = ("capture", "selection", "hover")

    def __init__(self) -> None:
        super().__init__()
        self.found: RowAnatomy | None = None
        self._texts = CaptureWords()
        self.head = HeadTitle()
        self.order = Segments(ORDERS, tr("Order of the keys"))
        self.order.chosen.connect(lambda _: self.found is not None and self.draw(self.found))
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
        self.sentence = label(kind="secondary", wrap=True, margins=(16, 6, 16, 8))
        self.sentence.setMinimumHeight(2 * self.sentence.fontMetrics().height() + 14)
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignVCenter)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        vbox(self.content, self.head, self.lanes, line(), (self.keys, 1), line(), self.sentence)
        self.start_at(self.keys)

    def request(self, session: Session) -> Callable[[], RowAnatomy] | Empty:
        capture, chosen, query = session.capture, session.selection, session.looked_at.query
        if capture is None or not all(map(len, capture.spans)):
            return NOTHING
        one = capture.maps[chosen.layer]
        if one is None:
            return uncaptured(session, chosen.layer)
        if isinstance(one, SlotMap):
            return MIXED
        if not isinstance(one, LazyMap):
            return DENSE if session.checkpoint else DENSE._replace(actions=OPEN_CHECKPOINT)
        if query is None or query >= len(capture.query_prompt(chosen.layer)):
            return NO_QUERY
        return partial(dissected, capture, chosen.head_id, query, self._texts)

    def draw(self, result: RowAnatomy) -> None:
        self.found = result
        self.head.name_head(result.capture.spec, result.head)
        row = result.anatomy.query.row
        glyph, place = result.rows.glyph(row), result.rows.place(row)
        self.head.note.say(tr("query {glyph} {place}", glyph=glyph, place=place))
        order = result.order(self.order.choice == "weight").tolist()
        self.keys.show_rows(key_columns(result), order)
        self._follow(result)

    def noticed(self, name: str) -> None:
        if self.found is not None and self._is_chosen(self.found):
            self._follow(self.found)

    def figure(self, session: Session) -> Spec | None:
        if self.found is None or not self._is_chosen(self.found):
            return None
        chosen = replace(session.selection, key=session.marked.key)  # its query is what is drawn
        spec = Spec("neurons", chosen, session.display)
        return replace(spec, order="weight") if self.order.choice == "weight" else spec

    def as_table(self) -> Table | None:
        if self.found is None:
            return None
        return self.found.table(self.found.order(self.order.choice == "weight"))

    def _is_chosen(self, found: RowAnatomy) -> bool:
        chosen, query = self.session.selection, self.session.looked_at.query
        return (
            found.capture is self.session.capture
            and chosen.head_id == found.head
            and query is not None
            and found.capture.row(chosen.layer, query) == found.anatomy.query.row
        )

    def _follow(self, found: RowAnatomy) -> None:
        """Show the elements and the sentence of the key looked at, or else of the strongest."""
        key = self.session.looked_at.key
        column = found.strongest
        if key is not None and found.capture.column(found.head.layer, key) < len(found.columns):
            column = found.capture.column(found.head.layer, key)
        self.keys.choose(column)
        lanes = [] if column is None else lanes_of(found, column)
        self.lanes.show_rows(lane_columns(), lanes)
        self.lanes.setFixedHeight(LANE * max(3, len(lanes)) + 4)
        said = tr("This query has no keys.") if column is None else found.sentence(column)
        self.sentence.setText(said)
        self.sentence.setToolTip(tip(said))

    def _sentence(self, column: int) -> str:
        return "" if self.found is None else self.found.sentence(column)

    def _token(self, column: int | None) -> int | None:
        if self.found is None or column is None:
            return None
        return self.found.capture.column_token(self.found.head.layer, column)

    def _pick(self, column: int) -> None:
        if (token := self._token(column)) is not None:
            self.session.put(hover=None)
            self.session.select(key=token)

    def _point(self, column: int | None) -> None:
        if self.found is None:
            return
        key, query = self._token(column), self.session.selection.query
        hover = Selection(*self.found.head, query=query, key=key)
        self.session.put(hover=None if key is None or query is None else hover)
