"""One row of an attention map step by step, from the products of elements to the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS, NORM_EPSILON, Activation
from hgviz.core import progress
from hgviz.maps.lazy import LazyMap
from hgviz.maps.rule import Diagonals, DistanceScores, Factors, Rule, plain

BLOCK = 4096  # keys that are multiplied at a time

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stage:
    """One step from scores to weights: a number for each key (keys,), NaN where there is none.

    kind: product, position, score, seen, kept, normed, rectified, exponent, biased or weight.
    """

    kind: str
    title: str
    says: str
    values: Doubles


@dataclass(frozen=True, slots=True)
class ElementProducts:
    """Products of single elements, whose sum is a score: left (d,) times right (keys, d).

    left is the query and right are the keys; for relative positions right is W phi(delta) + b.
    """

    left: Doubles
    right: Doubles
    products: Doubles

    @classmethod
    def of(cls, left: Doubles, right: NDArray[Any]) -> ElementProducts:
        """The products of a query (d,) with keys (keys, d)."""
        wide = np.asarray(right, np.float64)
        return cls(left, wide, left * wide)


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """The query of one row of a head, in float64.

    left (d,): q as captured, phi(q) where features are weighed, with u added where positions are
    those of Transformer-XL, and a last 1 where keys add a term to any product. position: what is
    multiplied with distances, q + v or 1; None where positions are not relative.
    """

    row: int
    place: int
    rule: Rule
    left: Doubles
    position: Doubles | None
    distances: DistanceScores | None

    @classmethod
    def of(cls, factors: Factors, place: int, row: int) -> Query:
        """The query of a row of the head stored at a place."""
        rule = factors.rule
        act = ACTIVATIONS[rule.activations[place]]
        q = plain(factors.q[place, row : row + 1], np.float64)
        distances, left, position = None, q, None
        if rule.relative is not None and act.features is None:
            distances = DistanceScores(rule, np.float64)
            left, rows = distances.head(place).query_terms(q)
            position = rows[0]
        left = left[0] if act.of_keys is None else np.append(left[0], 1.0)
        return cls(row, place, rule, left, position, distances)

    @property
    def activation(self) -> Activation:
        """The activation of the head."""
        return ACTIVATIONS[self.rule.activations[self.place]]

    @property
    def names(self) -> tuple[str, str]:
        """The symbols of the two factors of q . k."""
        if self.activation.features is not None:
            return "φ(q)", "φ(k)"
        return ("q", "k") if self.distances is None else self.distances.head(self.place).names[:2]

    @property
    def position_names(self) -> tuple[str, str]:
        """The symbols of the two factors of the position term."""
        return ("", "") if self.distances is None else self.distances.head(self.place).names[2:]

    def with_keys(self, keys: NDArray[Any]) -> ElementProducts:
        """Products of q, or q + u, with keys (keys, d), with the term that keys add."""
        of_keys = self.activation.of_keys
        if of_keys is not None:
            wide = np.asarray(keys, np.float64)
            keys = np.column_stack([wide, of_keys(wide, np)])
        return ElementProducts.of(self.left, keys)

    def with_distances(self, columns: range) -> ElementProducts | None:
        """The products of the position term of some columns; None without relative positions."""
        if self.distances is None or self.position is None or not len(columns):
            return None
        row = range(self.row, self.row + 1)
        band = self.distances.keys(self.place, *self.distances.span(row, columns))
        return ElementProducts.of(self.position, band[:: self.distances.a])


@dataclass(frozen=True, slots=True, eq=False)
class Anatomy:
    """One row of a head with all steps of its computation, in float64.

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
        """(keys,) The numbers of a kind of stage; None where the head has no such stage."""
        return next((one.values for one in self.stages if one.kind == kind), None)

    def elements(self, columns: range) -> ElementProducts:
        """The products of the elements of the query with those of the keys of some columns."""
        return self.query.with_keys(self.keys[columns.start : columns.stop])


def dissect(maps: LazyMap, head: int, row: int) -> Anatomy:
    """Compute a row of a head step by step, some thousand keys at a time; memory holds its keys.

    Its weights are those that `read` gives, up to the rounding of these. Errors: HgvizError for a
    head this layer has not, IndexError for a row outside the map.
    """
    place, factors = maps.place(head), maps.factors
    _, queries, keys = maps.shape
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
        progress(columns.stop, keys, "computing products of query and keys")
    whole = np.concatenate(parts) if parts else np.zeros((0, factors.k.shape[2]))
    return _compute_stages(factors, query, whole, products, positions)


# --- from scores to weights -----------------------------------------------------------------------


def _compute_stages(
    factors: Factors, query: Query, keys: NDArray[Any], products: Doubles, positions: Doubles
) -> Anatomy:
    rule, place, row = query.rule, query.place, query.row
    act, norm = ACTIVATIONS[rule.activations[place]], rule.norms[place]
    stat = float(factors.stat[place, row])
    stages, scores = _scores_of(query, products, positions)
    seen = rule.of(place).sees(np.array([row]), np.arange(len(keys)))[0]
    values = np.where(seen, scores, np.nan)
    stages.append(Stage("seen", "Masked score", "The score of keys that are not masked", values))
    if factors.threshold is not None and rule.top_k_of(place) is not None:
        kept = _largest_keys(
            factors, place, row, scores if act.statistic == "lse" else np.abs(scores)
        )
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
        says = "The score divided by the norm of the row's scores"
        stages.append(Stage("normed", "÷ norm", says, values))
    if act.statistic == "lse":
        power, _ = act.split(values, np)
        if power is not values:
            values = np.where(np.isfinite(power), power, np.nan)
            says = "ln(exp(score) − 1); undefined for scores of 0 or less"
            stages.append(Stage("rectified", "ln(e^s − 1)", says, values))
        values = values - stat
        kind, title, says = LESS.get(act.name, LESS["softmax"])
        stages.append(Stage(kind, title, says, values))
    elif act.statistic == "sum":
        values = values / act.divisor(stat)
    weights = np.where(np.isnan(values), 0.0, _apply_activation(act.name, values))
    filled = rule.empty_rows == "uniform" and rule.keep is not None and not seen.any()
    if filled:
        first, stop = rule.window(row, len(keys))
        weights[first:stop] = 1 / (stop - first)
    kind = "none" if stages[-1].kind == "biased" else act.statistic
    kind = "squares" if act.power == 2 else kind
    stages.append(Stage("weight", "Weight", WEIGHED[kind].format(act.label), weights))
    statistic = None if act.statistic == "none" else stat
    return Anatomy(query, keys, tuple(stages), seen, length, statistic, filled)


LESS = {
    "softmax": ("exponent", "ln weight", "Minus the log-sum-exp of the row: the log of the weight"),
    "sigmoid": ("biased", "− ln n", "Minus the logarithm of the number of keys not masked"),
}
WEIGHED = {
    "lse": "exp of the previous value: the weight of the map",
    "sum": "The score divided by the sum of the row: the weight of the map",
    "squares": "The squared score divided by the row's sum of squares: the weight of the map",
    "none": "{} of the previous value: the weight of the map",
}


def _scores_of(query: Query, products: Doubles, positions: Doubles) -> tuple[list[Stage], Doubles]:
    """What the products add up to, and the scores that come of it."""
    act, scale = query.activation, query.rule.scale_of(query.place)
    if act.features is not None:
        says = "Dot product of the features of query and key"
        return [Stage("product", "φ(q)·φ(k)", says, products)], products
    left, right = query.names
    title = f"({left})·{right}" if len(left) > 1 else f"{left}·{right}"
    says = "Dot product of query and key"
    if left == "q+u":
        says = "Dot product of the query plus bias u with the key"
    if act.of_keys is not None:
        title, says = f"{title} − ½|k|²", f"{says}, minus half the squared norm of the key"
    stages = [Stage("product", title, says, products)]
    if query.position is not None:
        left, right = query.position_names
        title, says = right, "Quadratic penalty for the distance from the centre"
        if isinstance(query.rule.relative, Diagonals):
            says = "Bias for the distance from query to key"
        if left != "1":
            title = f"({left})·{right}"
            says = "Dot product of the query plus bias v with the position embedding"
        stages.append(Stage("position", title, says, positions))
        products = products + positions
    scores = products * scale
    says = f"The sum so far, times {scale:.6g}: the score before the mask"
    if (cap := query.rule.softcap) is not None:
        scores = np.tanh(scores / cap) * cap
        says = f"The sum so far, times {scale:.6g}, soft-capped: {cap:g} tanh(s / {cap:g})"
    stages.append(Stage("score", "Score", says, scores))
    return stages, scores


def _largest_keys(factors: Factors, place: int, row: int, sizes: Doubles) -> NDArray[np.bool_]:
    """(keys,) Which keys are among the k largest, as the model chose them."""
    assert factors.threshold is not None
    found: NDArray[np.bool_] = sizes >= float(factors.threshold[place, row])
    if factors.kept is not None:
        pairs = factors.kept[...]
        found[pairs[(pairs[:, 0] == place) & (pairs[:, 1] == row), 2]] = True
    return found


def _apply_activation(name: str, values: Doubles) -> Doubles:
    with np.errstate(invalid="ignore", over="ignore"):
        found: Doubles = ACTIVATIONS[name].apply(values, None, np)
    return found


__all__ = ["Anatomy", "ElementProducts", "Query", "Stage", "dissect"]
