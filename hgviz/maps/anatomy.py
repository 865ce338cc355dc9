"""How one row of a map comes about, number by number: from q . k of every element to the weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS, NORM_EPSILON, SUM_EPSILON
from hgviz.core import Step, Task
from hgviz.maps.lazy import LazyMap
from hgviz.maps.operands import plain
from hgviz.maps.relative import Distances
from hgviz.maps.rule import Factors, Rule

BLOCK = 4096  # keys that are multiplied at a time

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stage:
    """One column of numbers, (keys,), NaN where there is none: what it is called, and what it is.

    kind: product, position, score, seen, kept, normed, exponent or weight.
    """

    kind: str
    title: str
    says: str
    values: Doubles


@dataclass(frozen=True, slots=True)
class Elements:
    """What scores are made of, element by element: left (d,) times right (keys, d) = products.

    left is the query, right the keys; of relative positions right is W phi(delta) + b.
    """

    left: Doubles
    right: Doubles
    products: Doubles

    @classmethod
    def of(cls, left: Doubles, right: NDArray[Any]) -> Elements:
        """The products of one query with some keys."""
        wide = np.asarray(right, np.float64)
        return cls(left, wide, left * wide)


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """One row of a head and what it meets keys with, in float64.

    q (d,): as captured, phi(q) where features are weighed; content, position (d,): the u and v that
    are added to it, None where positions are not relative.
    """

    row: int
    place: int
    rule: Rule
    q: Doubles
    content: Doubles | None
    position: Doubles | None

    @classmethod
    def of(cls, factors: Factors, place: int, row: int) -> Query:
        """The query of a row of the head stored at a place."""
        rule = factors.rule
        q = plain(factors.q[place, row : row + 1], np.float64)[0]
        relative = rule.relative
        if relative is None or ACTIVATIONS[rule.activations[place]].features is not None:
            return cls(row, place, rule, q, None, None)
        content, position = (
            plain(part[place], np.float64) for part in (relative.content, relative.position)
        )
        return cls(row, place, rule, q, content, position)

    def with_keys(self, keys: NDArray[Any]) -> Elements:
        """q . k, or (q + u) . k, of some keys (keys, d)."""
        return Elements.of(self.q if self.content is None else self.q + self.content, keys)

    def with_distances(self, columns: range) -> Elements | None:
        """(q + v) . (W phi(delta) + b) of some columns (Dai et al. 2019, 3.3); None where there is
        no such thing.
        """
        relative = self.rule.relative
        if relative is None or self.position is None or not len(columns):
            return None
        distances, row = Distances(self.rule, relative), range(self.row, self.row + 1)
        weight, bias = (
            plain(part[self.place], np.float64) for part in (relative.weight, relative.bias)
        )
        band = distances.keys(weight, bias, *distances.band(row, columns))
        return Elements.of(self.q + self.position, band[:: distances.a])


@dataclass(frozen=True, slots=True, eq=False)
class Anatomy:
    """One row of a head, taken apart in float64.

    keys (keys, d): as captured, bits of bfloat16 as float32. stages: the columns, in the order in
    which they follow from each other, the weight last. seen (keys,): which keys the mask leaves.
    length: of the scores seen, None where they are not normalised; statistic: the log-sum-exp or
    the sum of the row, None where its activation needs neither. filled: whether no key is seen and
    the row is filled evenly in place of what the stages give.
    """

    query: Query
    keys: NDArray[Any]
    stages: tuple[Stage, ...]
    seen: NDArray[np.bool_]
    length: float | None = None
    statistic: float | None = None
    filled: bool = False

    @property
    def activation(self) -> str:
        """The name of the head's activation."""
        return self.query.rule.activations[self.query.place]

    @property
    def weights(self) -> Doubles:
        """(keys,) The row of the map."""
        return self.stages[-1].values

    def stage(self, kind: str) -> Doubles | None:
        """(keys,) The numbers of a kind of stage; None where this head has no such."""
        return next((one.values for one in self.stages if one.kind == kind), None)

    def elements(self, columns: range) -> Elements:
        """What q . k is made of for some columns."""
        return self.query.with_keys(self.keys[columns.start : columns.stop])


def dissect(one: LazyMap, head: int, row: int) -> Task[Anatomy]:
    """Take a row of a head apart, some thousand keys at a time; all that is held is its keys.

    Its weights are those that `read` gives, up to the rounding of these. Errors: HgvizError for a
    head this layer has not, IndexError for a row outside the map.
    """
    place, factors = one.place(head), one.factors
    _, queries, keys = one.shape
    if not 0 <= row < queries:
        raise IndexError(f"row {row} of {queries}")
    query, parts = Query.of(factors, place, row), []
    products, positions = np.zeros(keys), np.zeros(keys)
    for start in range(0, keys, BLOCK):
        columns = range(start, min(start + BLOCK, keys))
        part = plain(
            factors.k[place, start : columns.stop],
            np.float64 if factors.dtype == "float64" else np.float32,
        )
        products[start : columns.stop] = query.with_keys(part).products.sum(axis=1)
        if (far := query.with_distances(columns)) is not None:
            positions[start : columns.stop] = far.products.sum(axis=1)
        parts.append(part)
        yield Step(columns.stop, keys, "Multiplying the query with its keys")
    whole = np.concatenate(parts) if parts else np.zeros((0, len(query.q)))
    return _staged(factors, query, whole, products, positions)


# --- from scores to weights -----------------------------------------------------------------------


def _staged(
    factors: Factors, query: Query, keys: NDArray[Any], products: Doubles, positions: Doubles
) -> Anatomy:
    rule, place, row = query.rule, query.place, query.row
    act, norm = ACTIVATIONS[rule.activations[place]], rule.norms[place]
    stat = float(factors.stat[place, row])
    stages, scores = _scored(query, products, positions)
    seen = rule.sees(np.array([row]), np.arange(len(keys)))[0]
    values = np.where(seen, scores, np.nan)
    stages.append(Stage("seen", "Seen", "The score, where the mask lets the query see", values))
    if factors.threshold is not None and rule.top_k_of(place) is not None:
        kept = _kept(factors, place, row, scores if act.statistic == "lse" else np.abs(scores))
        values = np.where(kept, values, np.nan)
        says = f"Only the {rule.top_k} largest scores are kept"
        stages.append(Stage("kept", f"Top {rule.top_k}", says, values))
    length = None
    if norm is not None:
        own = None if act.statistic == "none" else factors.norm
        length = stat if own is None else float(own[place, row])
        values = (
            values / (length if length > 0 else 1.0) + NORM_EPSILON
            if norm == "l2-literal"
            else values / (length + NORM_EPSILON)
        )
        says = "The score over the length of the row's scores"
        stages.append(Stage("normed", "÷ length", says, values))
    if act.statistic == "lse":
        values = values - stat
        says = "Less the log-sum-exp of the row: what e is raised to"
        stages.append(Stage("exponent", "− log-sum", says, values))
    elif act.statistic == "sum":
        values = values / (stat + SUM_EPSILON)
    weights = np.where(np.isnan(values), 0.0, _activated(act.name, values))
    filled = rule.empty_rows == "uniform" and rule.keep is not None and not seen.any()
    if filled:
        first, stop = rule.window(row, len(keys))
        weights[first:stop] = 1 / (stop - first)
    stages.append(Stage("weight", "Weight", WEIGHED[act.statistic].format(act.label), weights))
    statistic = None if act.statistic == "none" else stat
    return Anatomy(query, keys, tuple(stages), seen, length, statistic, filled)


WEIGHED = {
    "lse": "e to that power: the weight of the map",
    "sum": "The score over the sum of the row: the weight of the map",
    "none": "{} of that: the weight of the map",
}


def _scored(query: Query, products: Doubles, positions: Doubles) -> tuple[list[Stage], Doubles]:
    """What the products add up to, and the scores that come of it."""
    act = ACTIVATIONS[query.rule.activations[query.place]]
    scale = query.rule.scale_of(query.place)
    if act.features is not None:
        says = "Features of query and key, multiplied element by element and added up"
        return [Stage("product", "φ(q)·φ(k)", says, products)], products
    says = "Query and key, multiplied element by element and added up"
    stages = [Stage("product", "q·k", says, products)]
    if query.position is not None:
        says = "The query with the bias u, times the key, element by element, added up"
        stages = [Stage("product", "(q+u)·k", says, products)]
        says = "The query with the bias v, times what stands for the distance, added up"
        stages.append(Stage("position", "(q+v)·r", says, positions))
        products = products + positions
    scores = products * scale
    says = f"What is added up, times {scale:.6g}: the score before the mask"
    stages.append(Stage("score", "Score", says, scores))
    return stages, scores


def _kept(factors: Factors, place: int, row: int, sizes: Doubles) -> NDArray[np.bool_]:
    """(keys,) Which keys are among the k largest, as the model chose them."""
    assert factors.threshold is not None
    found: NDArray[np.bool_] = sizes >= float(factors.threshold[place, row])
    if factors.kept is not None:
        pairs = factors.kept[...]
        found[pairs[(pairs[:, 0] == place) & (pairs[:, 1] == row), 2]] = True
    return found


def _activated(name: str, values: Doubles) -> Doubles:
    with np.errstate(invalid="ignore", over="ignore"):
        found: Doubles = ACTIVATIONS[name].apply(values, None, np)
    return found


__all__ = ["Anatomy", "Elements", "Query", "Stage", "dissect"]
