"""How two heads differ: what their rows have to say, and what is told of the heads.

Weights count by their size wherever shares are told, as in heads; differences keep their signs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.tokens import Bools
from hgviz.core import HeadId
from hgviz.maps.overview import entropy_of
from hgviz.maps.tiles import one_thread

NEAR_ZERO = 0.01  # of the largest weight of a row
_COLUMNS = 256  # at once, as many as a core's cache holds
_ALMOST = -1 + 2.0**-53

Array = NDArray[Any]
Pair = tuple[float, float]  # of A and of B


@dataclass(frozen=True, slots=True)
class HeadDifference:
    """A head of A beside that of B; pairs are A's number and B's, NaN where there is none.

    rows of the of rows that both have were measured, on so many columns. largest and mean are of
    |A - B|, the mean over the cells that exist; relative ones are divided by the largest weight of
    the row on either side, and the mean is over rows. js: the Jensen-Shannon distance of |A| and
    |B|, divided by their row sums: the square root of the divergence in bits, from 0 (alike) to 1
    (nothing in common), its mean over the rows that both give weight to. entropy (nats) and
    negative (the share of a row's weight below 0) are means over the rows with weight; near_zero
    is the share of cells below NEAR_ZERO of their row's largest. rank: the effective rank (Roy and
    Vetterli 2007) of rank_rows rows, spread evenly. outside: the share of weight on columns that
    the other has not. broken: rows left out, as they hold what is no number.
    """

    head: HeadId
    other: HeadId
    layer: str
    role: str
    activation: tuple[str, str]
    rows: int
    of: int
    columns: int
    largest: float
    mean: float
    relative_largest: float
    relative_mean: float
    js: float
    entropy: Pair
    near_zero: Pair
    negative: Pair
    rank: Pair
    rank_rows: int
    outside: Pair
    broken: int = 0

    def facts(self) -> dict[str, Any]:
        """One level deep, None for what is no number."""
        found: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, HeadId):
                found[field.name] = str(value)
            elif isinstance(value, tuple):
                found |= {f"{field.name}_{side}": x for side, x in zip("ab", value, strict=True)}
            else:
                found[field.name] = value
        return {name: finite(value) for name, value in found.items()}


def compared(a: Array, b: Array, has_a: Bools, has_b: Bools) -> dict[str, Array]:
    """What the rows of two maps (rows, columns) have to say; has: the cells that exist.

    (rows,) largest and total of |A - B|, the cells that either has, the same relative to the row's
    largest weight (relative, relative_mean), js, and broken: whether it holds what is no number.
    (2, rows), of A and of B: mass, entropy, near, the cells that count for near (has), negative.
    """
    used = np.flatnonzero((has_a | has_b).any(0))
    stop = int(used[-1]) + 1 if len(used) else 0  # beyond it a causal strip is empty
    a, b, has_a, has_b = (one[:, :stop] for one in (a, b, has_a, has_b))
    mass = np.stack([np.abs(one).sum(1, dtype=float) for one in (a, b)])
    top = np.stack([np.abs(one).max(1, initial=0).astype(float) for one in (a, b)])
    broken = ~np.isfinite(mass).all(0)
    mass[:, broken], top[:, broken] = 0, 0
    if broken.any():
        a, b = (np.where(broken[:, None], 0, one) for one in (a, b))
    logs, below, near, has = np.zeros((4, *mass.shape))
    largest, total, cells, js = np.zeros((4, len(a)))
    over = np.where(mass > 0, mass, 1.0)
    for start in range(0, stop, _COLUMNS):
        part = slice(start, start + _COLUMNS)
        signed = [one[:, part].astype(float) for one in (a, b)]
        exist = [one[:, part] for one in (has_a, has_b)]
        apart = np.abs(signed[0] - signed[1])
        largest = np.maximum(largest, apart.max(1))
        total += apart.sum(1)
        cells += (exist[0] | exist[1]).sum(1)
        shares = []
        for side, (x, here) in enumerate(zip(signed, exist, strict=True)):
            below[side] -= np.minimum(x, 0).sum(1)
            size = np.abs(x, out=x)
            near[side] += ((size < NEAR_ZERO * top[side][:, None]) & here).sum(1)
            has[side] += here.sum(1)
            shares.append(size / over[side][:, None])
            logs[side] += np.vecdot(size, np.log(np.maximum(size, np.finfo(float).tiny)))
        js += divergence(*shares)
    highest = np.maximum(top[0], top[1])
    some = highest > 0
    return {
        "largest": largest,
        "total": total,
        "cells": cells,
        "relative": np.divide(largest, highest, out=np.zeros(len(a)), where=some),
        "relative_mean": np.divide(
            total, highest * np.maximum(cells, 1), out=np.zeros(len(a)), where=some
        ),
        "js": distance_of(js),
        "broken": broken,
        "mass": mass,
        "entropy": np.stack([entropy_of(*one) for one in zip(mass, logs, strict=True)]),
        "near": near,
        "has": has,
        "negative": below / over,
    }


def divergence(p: Array, q: Array) -> Array:
    """(rows,): what these columns add to the Jensen-Shannon divergence, in nats; never below 0.

    Written about the mean m = (p + q) / 2, so that what is nearly alike does not cancel out:
    m [(1 + d) log(1 + d) + (1 - d) log(1 - d)] / 2, d = (p - q) / (p + q).
    """
    both = p + q
    d = (p - q) / np.maximum(both, np.finfo(float).tiny)
    terms = (1 + d) * np.log1p(np.maximum(d, _ALMOST))
    terms += (1 - d) * np.log1p(np.maximum(-d, _ALMOST))
    found: Array = np.vecdot(both, terms) / 4
    return found


def distance_of(nats: Array) -> Array:
    """The Jensen-Shannon distance, 0 for the same to 1 for nothing in common, of a divergence in
    nats (Endres and Schindelin 2003)."""
    found: Array = np.sqrt(np.clip(nats / np.log(2), 0, 1))
    return found


def effective_rank(matrix: Array) -> float:
    """exp of the entropy of the singular values, divided by their sum (Roy and Vetterli 2007).

    From 1 to the smaller side; 0 for a matrix of zeros, NaN for one without rows.
    """
    if not matrix.size:
        return float("nan")
    with one_thread():  # as many as there are cores wait for each other
        sizes = np.linalg.svd(matrix.astype(float), compute_uv=False)
    return float(rank_of(sizes))


def rank_of(sizes: Array) -> Array:
    """The same of singular values (..., K); NaN where they are none."""
    total = sizes.sum(-1, keepdims=True)
    shares = np.divide(sizes, total, out=np.zeros_like(sizes), where=total > 0)
    logs = np.log(np.where(shares > 0, shares, 1.0))
    some = np.where(np.isnan(total), np.nan, total > 0)[..., 0]
    found: Array = some * np.exp(-(shares * logs).sum(-1))
    return found


def finite(value: Any) -> Any:
    """The value, None for a number that is none."""
    return None if isinstance(value, float) and not np.isfinite(value) else value
