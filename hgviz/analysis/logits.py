"""How far apart what two models gave is, where both speak of the same token or class."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hgviz.analysis.alignment import Alignment
from hgviz.analysis.differences import Array, finite
from hgviz.core import Integers

_ROWS = 256  # at once
TINY = 1e-30  # in place of a length of 0


@dataclass(frozen=True, slots=True)
class LogitDifference:
    """What two models gave at the places that both have. same: the share of places where the
    largest is that of the same token or class, NaN for states; moved: the mean 1 - cosine of
    states, NaN for logits."""

    largest: float
    mean: float
    same: float
    places: int
    of: int
    moved: float = float("nan")

    def facts(self) -> dict[str, Any]:
        """As `hgviz compare --json` prints it."""
        states = np.isfinite(self.moved)
        known = asdict(self).items()
        return {name: finite(one) for name, one in known if states or name != "moved"}


def logits_apart(alignment: Alignment) -> tuple[LogitDifference | None, str]:
    """How far the logits are apart where both say something of one token; else why not."""
    a, b = alignment.a, alignment.b
    if a.logits is None or b.logits is None:
        missing = [name for name, one in (("A", a), ("B", b)) if one.logits is None]
        return None, "neither has logits" if len(missing) == 2 else f"{missing[0]} has no logits"
    what = "their last hidden states" if a.spec.goal == "states" else "their logits"
    unlike = f"{what} are not compared: they are of"
    if a.spec.goal != b.spec.goal:
        return None, f"{unlike} other kinds, {a.spec.goal} and {b.spec.goal}"
    one, other = a.logits, b.logits
    if one.shape[-1] != other.shape[-1] or a.spec.labels != b.spec.labels:
        return (
            None,
            f"{unlike} {one.shape[-1]:,} and {other.shape[-1]:,} answers, not the same ones",
        )
    if a.spec.goal == "classes":
        one, other = np.atleast_2d(one), np.atleast_2d(other)
        at, of = [np.zeros(1, np.int64)] * 2, 1
    else:
        shared = alignment.tokens()
        sides = shared.a, shared.b
        single = [np.bincount(x[x >= 0], minlength=shared.count) == 1 for x in sides]
        pieces = np.flatnonzero(single[0] & single[1])
        at, of = [np.flatnonzero(np.isin(x, pieces)) for x in sides], max(map(len, sides))
        if not len(pieces):
            return None, f"{unlike} other tokens"
        same = (a.main.ids[at[0]] == b.main.ids[at[1]]).all()
        if (len(one), len(other)) != tuple(map(len, sides)) or not same:
            return None, f"{unlike} other vocabularies"
    found = _apart(one, other, at, of, a.spec.goal == "states")
    if not np.isfinite(found.largest):
        return None, f"{what} hold what is no number"
    return found, ""


def _apart(a: Array, b: Array, at: list[Integers], of: int, states: bool) -> LogitDifference:
    """How far logits are apart at some rows of each, some at a time."""
    largest = total = same = moved = 0.0
    for start in range(0, len(at[0]), _ROWS):
        part = slice(start, start + _ROWS)
        one, other = np.asarray(a[at[0][part]], float), np.asarray(b[at[1][part]], float)
        with np.errstate(invalid="ignore"):
            apart = np.abs(one - other)
        largest = float(np.maximum(largest, apart.max()))
        total += float(apart.sum())
        same += float((one.argmax(-1) == other.argmax(-1)).sum())
        if states:
            lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
            moved += float((1 - (one * other).sum(-1) / np.maximum(lengths, TINY)).sum())
    count, none = len(at[0]), float("nan")
    mean = total / (count * a.shape[-1])
    if states:
        return LogitDifference(largest, mean, none, count, of, max(0.0, moved / count))
    return LogitDifference(largest, mean, same / count, count, of)
