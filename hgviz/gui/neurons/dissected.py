"""A row that was taken apart, with the names of what it is about: in numbers, words and a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hgviz.activations import ACTIVATIONS
from hgviz.core import Capture, HeadId, Integers, Task
from hgviz.gui.views import naming, words
from hgviz.gui.views.axes import Names
from hgviz.gui.views.grid import Words
from hgviz.maps import LazyMap
from hgviz.maps.anatomy import Anatomy, dissect

MOST_ELEMENTS = 1 << 18  # numbers that a copied table has besides its columns


@dataclass(frozen=True, slots=True, eq=False)
class Dissected:
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
    def row(self) -> int:
        """The row of the map."""
        return self.anatomy.query.row

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
        one = self.anatomy
        name, act = _quoted(self.columns.glyph(column)), ACTIVATIONS[one.activation]

        def at(kind: str) -> str:
            found = one.stage(kind)
            return "" if found is None else number(float(found[column]))

        if one.filled:
            return (
                f"{self._asking} sees no key; its row is filled evenly, with {at('weight')} "
                f"on {name}."
            )
        asks, meets = ("φ(q)", "φ(k)") if act.features else ("q", "k")
        more = ", less half the square of k’s length," if act.of_keys else ""
        said = (
            f"{self._asking} with {name}: {words.counted(one.keys.shape[1], 'product')} of "
            f"{asks} and {meets}{more} add up to {at('product')}"
        )
        if (far := one.query.far) is not None and len(far) > 1:
            said += f", those with the distance to {at('position')}"
        elif far is not None:
            there = f"{said}, and" if one.keys.any() else f"{self._asking} with {name}:"
            said = f"{there} the distance from the centre adds {at('position')}"
        if score := at("score"):
            said += f"; times {one.query.rule.scale:.4g} that is {score}"
        if not one.seen[column]:
            return f"{said}. The query does not see this key, and the weight is 0."
        kept = one.stage("kept")
        if kept is not None and np.isnan(kept[column]):
            return f"{said}. That is not among the {one.query.rule.top_k} largest: the weight is 0."
        if one.length is not None:
            said += f"; over the length of the row, {number(one.length)}, it is {at('normed')}"
        if exponent := at("exponent"):
            total = number(one.statistic or 0.0)
            said += f"; less the log-sum-exp of the row, {total}, it is {exponent}"
            return f"{said}, and e to that power is {at('weight')}, the weight."
        if one.statistic is not None:
            square = "its square over the sum of squares" if act.power == 2 else "over the sum"
            said += f"; {square} of the row, {number(one.statistic)}"
            return f"{said}, it is {at('weight')}, the weight."
        return f"{said}; {act.label} of that is {at('weight')}, the weight."

    @property
    def _asking(self) -> str:
        return _quoted(self.rows.glyph(self.row))

    def table(self, order: Integers) -> str:
        """Tab-separated, every number in full: the columns, then the products one by one where
        they are not too many; nothing where there is no number.
        """
        one = self.anatomy
        width = len(one.query.left)
        elements = np.zeros((len(order), 0))
        if one.keys.size <= MOST_ELEMENTS:
            elements = one.elements(range(len(one.keys))).products[order]
        titles = ["column", "key", "where", *(stage.title for stage in one.stages)]
        titles += [f"q·k {at}" for at in range(width if elements.size else 0)]
        lines = [titles]
        columns = [stage.values[order] for stage in one.stages]
        for at, column in enumerate(order.tolist()):
            numbers = [float(values[at]) for values in columns] + elements[at].tolist()
            lines.append([
                str(column), self.columns.glyph(column), self.columns.place(column),
                *("" if value != value else repr(value) for value in numbers),
            ])  # fmt: skip
        return "\n".join("\t".join(line) for line in lines) + "\n"


def dissected(capture: Capture, head: HeadId, query: int, texts: Words) -> Task[Dissected]:
    """Take the row of a query apart in a head whose map is computed from queries and keys."""
    layer = capture.spec.layers[head.layer]
    one = capture.maps[head.layer]
    assert isinstance(one, LazyMap)
    row = min(capture.row(head.layer, query), one.shape[1] - 1)
    found = yield from dissect(one, head.head, row)
    rows, columns = (
        texts.names(capture, level, spans)
        for level, spans in (
            (layer.level, capture.query_spans(head.layer)),
            (layer.key_level, capture.key_spans(head.layer)),
        )
    )
    return Dissected(capture, head, found, rows, columns, *_reach(found))


def _reach(one: Anatomy) -> tuple[float, float]:
    """The largest product by magnitude with keys, and with distances."""
    query = one.query
    tallest = np.abs(np.asarray(one.keys)).max(axis=0, initial=0.0)
    products = float((np.abs(query.left[: len(tallest)]) * tallest).max(initial=0.0))
    near = query.with_distances(range(min(len(one.keys), 256)))
    positions = 0.0 if near is None else float(np.abs(near.products).max(initial=0.0))
    return products, positions


def _quoted(glyph: str) -> str:
    return naming.quoted(glyph) if glyph else "a place before the text"


def number(value: float) -> str:
    """1.539, −0.115; 0 only where it is exactly that; – for none."""
    if value != value:
        return "–"
    if abs(value) >= 10_000:
        return f"{value:.3e}".replace("-", "−")
    return words.weight(value, 3)
