"""What each head is worth, by every score there is: reductions of a study, without the model.

numpy only. Every score is a sum over rows (examples, batches of them, random orders, runs) over
another sum, so all have one interval: that of a ratio over rows drawn at random, which is the
normal one of a mean where rows are of one size. Changes of right and wrong have Bonett and Price's.
E examples, H heads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.statistics import (
    benjamini_hochberg,
    finite_or_none,
    mcnemar,
    paired_difference,
    ratio_interval,
)
from hgviz.core import HeadId, HgvizError, Integers
from hgviz.errors import require
from hgviz.study import UNKNOWN, Study

BATCH = 32  # examples in a batch, which bertology depends on

Many = NDArray[np.float64]
Rows = tuple[NDArray[Any], NDArray[Any]]  # sums (rows, H), sizes (rows, H) or (rows, 1)
Chosen = NDArray[np.int64]  # examples by number


@dataclass(frozen=True, slots=True)
class Method:
    """A score. needs: the array of Study it reduces, or the name of what was learned.

    needed: 1 where a high score means that a head is needed, -1 where a low one does. unit: of the
    score. stated: what else the number depends on, for people.
    """

    name: str
    label: str
    formula: str
    source: str
    needs: str
    unit: str
    rows: Callable[[Study, Chosen, int], Rows]
    needed: int = 1
    stated: str = ""

    def measured(self, study: Study) -> bool:
        """Whether a study has what it is made from."""
        if self.name in LEARNED:
            return any(one.method == self.name for one in study.learned)
        return getattr(study, self.needs) is not None


@dataclass(frozen=True, slots=True, eq=False)
class Importance:
    """A score of all heads, in order of computation: (H,) each, NaN where it was not measured.

    low, high: 95 %. rank: 1 is the most needed head, 0 one that was not measured. need: the score
    turned so that high is needed, for orders and colours. p: McNemar's exact p that switching the
    head off changes no answer, adjusted: among all heads (Benjamini and Hochberg); NaN where
    answers were not measured. rows: how many examples it is from.
    """

    method: Method
    heads: tuple[HeadId, ...]
    score: Many
    low: Many
    high: Many
    rank: Integers
    p: Many
    adjusted: Many
    rows: int

    @property
    def need(self) -> Many:
        """(H,): high where a head is needed."""
        return self.score * self.method.needed

    @property
    def zero(self) -> NDArray[np.bool_]:
        """(H,): whether the interval includes 0, so that the head may be worth nothing."""
        inside: NDArray[np.bool_] = (self.low <= 0) & (self.high >= 0)
        return inside

    @property
    def least(self) -> tuple[HeadId, ...]:
        """The heads from the least needed on."""
        return tuple(self.heads[at] for at in np.argsort(-self.rank) if self.rank[at])

    def facts(self) -> list[dict[str, Any]]:
        """As `hgviz importance --json` prints it, the most needed head first."""
        order = [at for at in np.argsort(self.rank) if self.rank[at]]
        return [
            {
                "head": str(self.heads[at]), "score": float(self.score[at]),
                "low": finite_or_none(self.low[at]), "high": finite_or_none(self.high[at]),
                "rank": int(self.rank[at]),
            }
            for at in order
        ]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What switching each head off does to right and wrong: (H,) each.

    change: of the share of right answers, low and high its interval (Bonett and Price); lost and
    won: places that became wrong or right; p and adjusted as in Importance.
    """

    change: Many
    low: Many
    high: Many
    lost: Integers
    won: Integers
    p: Many
    adjusted: Many


def importance(
    study: Study,
    method: str,
    rows: NDArray[Any] | None = None,
    batch: int = BATCH,
) -> Importance:
    """The scores of all heads; rows: only of some examples, by number or as a mask (E,).

    Errors: HgvizError for an unknown method, and for one that was not measured.
    """
    one, some = _method(study, method), _chosen(study, rows)
    score, low, high = ratio_interval(*one.rows(study, some, batch))
    found = changes(study, some)
    if study.asked == "states" and one.unit == "nats":
        one = replace(one, unit="1 - cosine")
    return Importance(
        one, study.heads, score, low, high, _ranks(score * one.needed), found.p, found.adjusted,
        len(some),
    )  # fmt: skip


def changes(study: Study, rows: NDArray[Any] | None = None) -> Changes:
    """What each head off does to the share of right answers; NaN where it was not measured."""
    heads = len(study.heads)
    nothing, none = np.full(heads, np.nan), np.zeros(heads, np.int64)
    if study.change is None:
        return Changes(nothing, nothing, nothing, none, none, nothing, nothing)
    change = study.change[study.places_of(_chosen(study, rows))]
    lost, won = ((change == sign).sum(0) for sign in (-1, 1))
    seen = (change != UNKNOWN).sum(0)
    with np.errstate(invalid="ignore"):
        middle = np.where(seen, (won - lost) / seen, np.nan)
    low, high, p = (
        np.where(seen, one, np.nan)
        for one in (*paired_difference(lost, won, seen), mcnemar(lost, won))
    )
    return Changes(middle, low, high, lost, won, p, benjamini_hochberg(p))


def _method(study: Study, name: str) -> Method:
    one = METHODS.get(name)
    if one is None:
        raise HgvizError(
            f"there is no score named {name}: there are {', '.join(METHODS)}", "Choose one"
        )
    if not one.measured(study):
        raise HgvizError(f"the study has nothing that {name} is made from: "
f"it was made without {one.needs}",
f"Train them, then: hgviz importance --method {name} --gates DIR"
            if name in LEARNED
            else "Measure the heads by this method first")  # fmt: skip
    return one


def _chosen(study: Study, rows: NDArray[Any] | None) -> Chosen:
    every = np.arange(len(study))
    found = every if rows is None else every[np.asarray(rows)]
    require(len(found), "there are no examples to score heads on", "Choose some")
    return found


def _ranks(need: Many) -> Integers:
    """(H,): 1 for the highest, 0 for NaN; equal ones in order of computation."""
    found = np.zeros(len(need), np.int64)
    order = np.argsort(-need, kind="stable")
    order = order[~np.isnan(need[order])]
    found[order] = np.arange(1, len(order) + 1)
    return found


# --- the rows of every score ----------------------------------------------------------------------


def summed(study: Study, values: NDArray[Any], some: Chosen) -> Rows:
    """Sums (examples, H) over the places of each example, and how many places it has."""
    counts = study.counts
    found = np.zeros((len(study), values.shape[1]))
    full = np.flatnonzero(counts)
    if len(full):
        found[full] = np.add.reduceat(values, study.places[:-1][full], axis=0, dtype=float)
    return found[some], counts[some][:, None]


def _slopes(reduced: Callable[[Many], Many], places: bool) -> Callable[[Study, Chosen, int], Rows]:
    """Of G, per place or per example."""

    def rows(study: Study, some: Chosen, batch: int) -> Rows:
        assert study.gradient is not None
        sizes = study.counts[some][:, None] if places else np.ones((len(some), 1))
        return reduced(study.gradient[some].astype(float)), sizes

    return rows


def _token_slopes(study: Study, some: Chosen, batch: int) -> Rows:
    """Per token; in the last layer of a classifier, where one token is read, per example."""
    assert study.token_gradient is not None
    sizes = np.repeat(study.lengths[some][:, None].astype(float), len(study.heads), 1)
    if study.asked == "classes":
        last = study.spec.layers[-1].index
        sizes[:, [head.layer == last for head in study.heads]] = 1.0
    return study.token_gradient[some], sizes


def _batches(study: Study, some: Chosen, batch: int) -> Rows:
    """The sum over batches, so the sizes of all batches add up to 1."""
    assert study.gradient is not None
    starts = np.arange(0, len(some), batch)
    sums = np.abs(np.add.reduceat(study.gradient[some], starts, axis=0, dtype=float))
    seen = (~np.isnan(sums)).sum(0)
    return sums, np.where(seen, 1.0, 0.0) / np.maximum(seen, 1) * np.ones((len(starts), 1))


def _left_out(study: Study, some: Chosen, batch: int) -> Rows:
    assert study.loss_change is not None
    return summed(study, study.loss_change, some)


def _alone(study: Study, some: Chosen, batch: int) -> Rows:
    assert study.alone is not None
    return summed(study, study.alone, some)


def _permutations(study: Study, some: Chosen, batch: int) -> Rows:
    """One row per random order, whatever the examples: it is of the mean loss of all."""
    assert study.shapley is not None
    return study.shapley, np.ones((len(study.shapley), 1))


def _gates(study: Study, some: Chosen, batch: int) -> Rows:
    """One row per seed of a training."""
    (runs,) = (one.runs.astype(float) for one in study.learned if one.method == "gates")
    return runs, np.ones((len(runs), 1))


LEARNED = {"gates"}  # methods whose scores trainings give


METHODS: dict[str, Method] = {
    one.name: one
    for one in (
        Method(
            "signed", "Predicted loss change", "-mean G", "first order; Michel et al. 2019, eq. 2",
            "gradient", "nats", _slopes(np.negative, True),
        ),
        Method(
            "michel", "Sensitivity", "mean |G|", "Michel, Levy, Neubig 2019, eq. 2",
            "gradient", "nats", _slopes(np.abs, True),
        ),
        Method(
            "michel-token", "Sensitivity per token", "sum over tokens of |c . dL/dc| / tokens",
            "the BERT code of Michel et al. 2019", "token_gradient", "nats", _token_slopes,
            stated="the last layer of a classifier per example",
        ),
        Method(
            "bertology", "Sensitivity per batch", "sum over batches of |sum of G|",
            "Hugging Face's bertology; TextPruner", "gradient", "nats", _batches,
            stated="the size of a batch",
        ),
        Method(
            "fisher", "Fisher information", "mean G^2", "Kwon et al. 2022",
            "gradient", "nats^2", _slopes(np.square, False),
        ),
        Method(
            "loo", "Loss change", "loss without the head - loss", "Michel et al. 2019, 3.2",
            "loss_change", "nats", _left_out,
        ),
        Method(
            "all-but-one", "Loss change with this head alone",
            "loss with only this head in its layer - loss", "Michel et al. 2019, 3.3",
            "alone", "nats", _alone, needed=-1,
        ),
        Method(
            "shapley", "Shapley value", "mean over orders of what joining does to the loss",
            "Held, Yang 2023", "shapley", "nats", _permutations, needed=-1,
            stated="how many random orders",
        ),
        Method(
            "gates", "Hard-concrete gate", "clip(1.2 sigmoid(log a) - 0.1, 0, 1)",
            "Voita et al. 2019", "gates", "", _gates, stated="training",
        ),
    )
}  # fmt: skip
