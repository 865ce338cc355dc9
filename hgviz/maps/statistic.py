"""The row statistic that goes with the tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS
from hgviz.maps.lazy import LazyMap
from hgviz.maps.rule import Factors, Rule, plain
from hgviz.maps.survey import lengths, log_sums, totals
from hgviz.maps.tiles import Tiled

ROUNDED = 2.0**-23  # how far a log-sum-exp of float32 is off, relative to itself or to 1
HARMLESS = 4e-7  # a weight may be off by 5e-7, and scores of small weights are off by little

# maps, place of a head, rows that matter or None for all: as hgviz.maps.survey.totals
Totals = Callable[[Tiled, int, NDArray[np.bool_] | None], NDArray[np.float64]]


def settled(factors: Factors, rounded: float | None = None, totals: Totals = totals) -> Factors:
    """The same factors, with statistics under which the rows of softmaxes and of linear attention
    sum to what they should in the tiles.

    A model takes the statistic of its own scores, whose rounding errors are not those of the
    tiles; in the model's weights they cancel, between the two they add up. One pass over the
    tiles puts what is left of them into the statistic. Rows without keys stay as they are.
    rounded: how far log-sum-exps are off at most, relative to themselves; where it is known, only
    rows are looked at that have a weight which could be off by more than is harmless. totals: what
    adds rows up.
    """
    maps = LazyMap(factors, tuple(range(factors.q.shape[0])))
    stat = np.array(factors.stat[...], np.float64)
    for place in range(len(stat)):
        rows = None if rounded is None else _doubtful(factors, place, rounded)
        stat[place] = settled_rows(maps, place, rows, totals)
    return replace(factors, stat=stat)


def settled_rows(
    maps: LazyMap, place: int, rows: NDArray[np.bool_] | None = None, totals: Totals = totals
) -> NDArray[np.float64]:
    """The statistic (queries,) that goes with the tiles of the head stored at a place."""
    factors = maps.factors
    act = ACTIVATIONS[factors.rule.activations[place]]
    if act.statistic == "none":
        return np.array(factors.stat[place], np.float64)
    if act.logs is not None:  # what a row sums to does not tell
        return with_sink(log_sums(maps, place), factors.rule, place)
    return settled_row(factors, place, totals(maps, place, rows))


def with_sink(stat: NDArray[np.float64], rule: Rule, place: int) -> NDArray[np.float64]:
    """Log-sum-exps of the scores of a head (queries,), with its sinks among them."""
    act, good = ACTIVATIONS[rule.activations[place]], np.isfinite(stat)
    learnt = None if rule.sinks is None or not act.softmax else float(rule.sinks[place])
    for sink in (learnt, act.sink):
        if sink is not None:
            stat = np.where(good, np.logaddexp(np.where(good, stat, 0.0), sink), stat)
    return stat


def measured(factors: Factors) -> Factors:
    """The same factors with the statistics and norms of their rows, whatever was there; not of
    topk. One pass over the tiles, two where scores are normalised before they are summed.
    """
    stat, heads = np.zeros(factors.q.shape[:2]), tuple(range(len(factors.q)))
    norm, both = np.zeros(stat.shape, np.float32), False
    for place in heads:
        rule = factors.rule
        kind = ACTIVATIONS[rule.activations[place]].statistic
        if rule.norms[place] is not None:
            found = lengths(
                LazyMap(replace(factors, stat=stat, rule=_scores(rule, place)), heads), place
            )
            both = both or kind != "none"
            (stat if kind == "none" else norm)[place] = found
        normal = replace(factors, stat=stat, norm=norm)
        if kind == "lse":
            stat[place] = with_sink(log_sums(LazyMap(normal, heads), place), rule, place)
        elif kind == "sum":
            stat[place] = settled_row(normal, place, totals(LazyMap(normal, heads), place))
    return replace(factors, stat=stat, norm=norm if both else None)


def _scores(rule: Rule, place: int) -> Rule:
    """The rule under which the `logs` of a head are its scaled scores."""
    names = [name if ACTIVATIONS[name].softmax else "softmax" for name in rule.activations]
    norms, scale = (None,) * len(names), rule.scale_of(place)
    return replace(rule, scale=scale, activations=tuple(names), norms=norms)


def settled_row(factors: Factors, place: int, total: NDArray[np.float64]) -> NDArray[np.float64]:
    """The statistic (queries,) of the head stored at a place, given what its rows sum to; NaN
    leaves it as it is.
    """
    stat = np.array(factors.stat[place], np.float64)
    good = np.isfinite(stat) & np.isfinite(total) & (total > 0)
    kind = ACTIVATIONS[factors.rule.activations[place]]
    if kind.statistic == "lse":
        stat[good] += np.log(total[good])
        stat[good] = with_sink(stat[good], factors.rule, place)
    elif kind.statistic == "sum":  # a row sums to S / (S + epsilon), S the sum in the tiles
        stat[good] = total[good] * (stat[good] + kind.epsilon)
    return stat


def _doubtful(factors: Factors, place: int, rounded: float) -> NDArray[np.bool_] | None:
    """(queries,) The rows of a softmax in which a weight may be off; None for all.

    No score is larger than the lengths of query and key allow (Cauchy-Schwarz).
    """
    rule = factors.rule
    kind = ACTIVATIONS[rule.activations[place]]
    more = rule.norms[place], rule.relative, kind.of_keys, kind.sink, rule.sinks, rule.softcap
    if not kind.softmax or any(one is not None for one in more):
        return None
    q, k = (np.linalg.norm(plain(one[place], np.float32), axis=1) for one in (factors.q, factors.k))
    stat: NDArray[Any] = np.asarray(factors.stat[place], np.float64)
    with np.errstate(invalid="ignore"):
        largest = np.exp(np.minimum(abs(rule.scale) * q * k.max(initial=0.0) - stat, 0.0))
        found: NDArray[np.bool_] = largest * rounded * np.maximum(np.abs(stat), 1.0) > HARMLESS
    return found
