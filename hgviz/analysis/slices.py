"""Parts of a study that may behave differently: classes, short and long texts, levels. numpy only.

All are reductions; no model is asked again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis import scores
from hgviz.analysis.importance import Importance
from hgviz.analysis.orders import groups
from hgviz.core import HeadId
from hgviz.study import Study

By = Literal["label", "length"]

PARTS = 4  # of the lengths, with as many examples each


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """Some examples under a name; rows (n,) are their numbers."""

    by: By
    name: str
    rows: NDArray[np.int64]


def slices(study: Study) -> tuple[Slice, ...]:
    """Classes, where there are any, then quarters of the lengths; empty ones are left out."""
    return (*_labels(study), *_lengths(study))


@dataclass(frozen=True, slots=True)
class Part:
    """How a slice fares: n places, shares right of the whole model and with heads off, both with
    Agresti and Coull's interval, lost and won, and the change's interval (Bonett and Price).
    """

    name: str
    n: int
    before: tuple[float, float, float]
    now: tuple[float, float, float]
    lost: int
    won: int
    low: float
    high: float

    @property
    def change(self) -> float:
        """Of the share of right answers."""
        return (self.won - self.lost) / self.n if self.n else 0.0


def table(study: Study, given: NDArray[Any], which: tuple[Slice, ...]) -> tuple[Part, ...]:
    """What heads off do to each slice: given (P,) is what was answered then, -1 not yet."""
    found = []
    for one in which:
        at = study.places_of(one.rows) & study.answered & (given >= 0)
        before, now = study.right[at], given[at] == study.wanted[at]
        n, lost, won = int(at.sum()), int((before & ~now).sum()), int((now & ~before).sum())
        ends = scores.paired_difference(lost, won, n) if n else (-1.0, 1.0)
        found.append(Part(one.name, n, _share(before), _share(now), lost, won, *ends))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Worth:
    """The heads of a level, or of the layers between two: their scores together.

    mean of the scores; harmful, needed: heads whose whole interval lies below or above 0.
    """

    name: str
    heads: tuple[HeadId, ...]
    mean: float
    needed: int
    harmful: int


def levels(study: Study, found: Importance) -> tuple[Worth, ...]:
    """Scores level by level; layers that go down, up or across stand by themselves."""
    grouped, spec = groups(study.spec, "level"), study.spec
    turned = found.method.needed
    ends = np.sort(np.stack([found.low * turned, found.high * turned]), axis=0)
    result = []
    for number in dict.fromkeys(grouped.tolist()):
        at = np.flatnonzero((grouped == number) & ~np.isnan(found.score))
        layer = spec.layers[found.heads[int(np.argmax(grouped == number))].layer]
        away = "" if layer.role == "self" else f", {layer.role}"
        result.append(
            Worth(
                spec.levels[layer.level].label + away,
                tuple(found.heads[i] for i in at),
                float(found.score[at].mean()) if len(at) else float("nan"),
                int((ends[0, at] > 0).sum()),
                int((ends[1, at] < 0).sum()),
            )
        )
    return tuple(result)


def _labels(study: Study) -> tuple[Slice, ...]:
    if study.asked != "classes":
        return ()
    found = [
        Slice("label", label, np.flatnonzero(study.wanted == number))
        for number, label in enumerate(study.labels)
    ]
    return tuple(one for one in found if len(one.rows))


def _lengths(study: Study) -> tuple[Slice, ...]:
    """Quarters by length; texts of one length are never in two of them."""
    edges = np.quantile(study.lengths, np.linspace(0, 1, PARTS + 1)[1:-1], method="lower")
    part = np.searchsorted(np.unique(edges), study.lengths, side="left")
    found = []
    for number in np.unique(part):
        rows = np.flatnonzero(part == number)
        least, most = int(study.lengths[rows].min()), int(study.lengths[rows].max())
        name = f"{least:,} to {most:,} tokens" if least < most else f"{least:,} tokens"
        found.append(Slice("length", name, rows))
    return tuple(found)


def _share(right: NDArray[np.bool_]) -> tuple[float, float, float]:
    count, n = int(right.sum()), len(right)
    return (count / n, *scores.agresti_coull(count, n)) if n else (0.0, 0.0, 1.0)
