"""A row that was taken apart, with the names of what it is about: in numbers, words and a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hgviz.activations import ACTIVATIONS
from hgviz.core import Capture, HeadId, Integers, Task
from hgviz.gui import sentences
from hgviz.gui.grid import Names
from hgviz.gui.language import tr
from hgviz.gui.views import words
from hgviz.gui.views.grid import Words
from hgviz.maps import LazyMap
from hgviz.maps.anatomy import Anatomy, dissect

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
        one, key = self.anatomy, _quoted(self.columns.glyph(column))
        if one.filled:
            weight = self._at("weight", column)
            filled = "{query} sees no key; its row is filled evenly, with {weight} on {key}."
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
        act, far = ACTIVATIONS[one.activation], one.query.far
        position = self._at("position", column)
        if one.keys.any() or far is None or len(far) > 1:
            q, k = ("φ(q)", "φ(k)") if act.features else ("q", "k")
            yield tr(
                SQUARED if act.of_keys else ADDED, query=self._asking, key=key, q=q, k=k,
                products=words.counted(one.keys.shape[1], "product"),
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
            yield tr("the query does not see this key, and the weight is 0")
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
            yield tr("e to that power is {weight}, the weight", weight=weight)
        elif one.statistic is not None and not biased:
            over = SQUARES if act.power == 2 else OVER
            yield tr(over, total=total, weight=weight)
        else:
            yield tr("{activation} of that is {weight}, the weight",
                     activation=act.label, weight=weight)  # fmt: skip

    @property
    def _asking(self) -> str:
        return _quoted(self.rows.glyph(self.row))

    def table(self, order: Integers) -> list[list[str]]:
        """Every number in full: the columns, then the products one by one where they are not too
        many; nothing where there is no number.
        """
        one = self.anatomy
        width = len(one.query.left)
        elements = np.zeros((len(order), 0))
        if one.keys.size <= MOST_ELEMENTS:
            elements = one.elements(range(len(one.keys))).products[order]
        titles = [tr("column"), tr("key"), tr("where"), *(tr(stage.title) for stage in one.stages)]
        titles += [f"q·k {at}" for at in range(width if elements.size else 0)]
        lines = [titles]
        columns = [stage.values[order] for stage in one.stages]
        for at, column in enumerate(order.tolist()):
            numbers = [float(values[at]) for values in columns] + elements[at].tolist()
            lines.append([
                str(column), self.columns.glyph(column), self.columns.place(column),
                *("" if value != value else repr(value) for value in numbers),
            ])  # fmt: skip
        return lines


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
    return sentences.quoted(glyph) if glyph else tr("a place before the text")


def number(value: float) -> str:
    """1.539, −0.115; 0 only where it is exactly that; – for none."""
    if value != value:
        return "–"
    if abs(value) >= 10_000:
        return f"{value:.3e}".replace("-", "−")
    return words.weight(value, 3)
