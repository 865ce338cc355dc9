"""A model with heads off beside the whole one, on the same texts: what was lost and what won."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.evaluation import Answer, Answers
from hgviz.analysis.slices import Part, Slice, table
from hgviz.analysis.statistics import agresti_coull, mcnemar, paired_difference
from hgviz.core import HeadSet, MetricEstimate, progress
from hgviz.examples import Batch, Examples

SHARES = {
    "classes": "accuracy", "tags": "tag_accuracy", "ends": "end_accuracy",
    "next": "next_token_accuracy", "masked": "masked_accuracy", "states": "retrieval_accuracy",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Paired:
    """Answers with heads off against those of the whole model, on the places seen so far.

    score, whole: shares of right answers, with Agresti and Coull's intervals. low, high: the
    interval of their difference (Bonett and Price 2012). lost, won: places right before and wrong
    now, and the other way. loss, whole_loss: nats per place. All of 95 %, not corrected for looking
    early. parts: the same of slices, where there are any.
    """

    score: MetricEstimate
    whole: MetricEstimate
    lost: int
    won: int
    low: float
    high: float
    loss: float
    whole_loss: float
    parts: tuple[Part, ...] = ()

    @property
    def difference(self) -> float:
        """What the share of right answers changed by."""
        return (self.won - self.lost) / self.score.seen if self.score.seen else 0.0

    @property
    def p(self) -> float:
        """McNemar's exact p that nothing but chance made the difference."""
        return float(mcnemar(self.lost, self.won))

    @property
    def done(self) -> bool:
        """Whether every place was seen."""
        return self.score.seen == self.score.total


def paired(
    examples: Examples,
    whole: Answers,
    answers: Answers,
    places: NDArray[np.bool_],
    off: HeadSet = frozenset(),
    slices: Sequence[Slice] = (),
) -> Paired:
    """The two sets of answers at some places (places,)."""
    wanted, total = examples.wanted[places], len(places)
    before, now = whole.given[places] == wanted, answers.given[places] == wanted
    seen, lost, won = len(wanted), int((before & ~now).sum()), int((now & ~before).sum())
    metric = SHARES[examples.asked]

    def share(right: NDArray[np.bool_], heads: HeadSet) -> MetricEstimate:
        count = int(right.sum())
        low, high = map(float, agresti_coull(count, seen))
        return MetricEstimate(metric, count / max(seen, 1), low, high, seen, total, heads)

    loss, before_loss = (
        float(one.loss[places].mean(dtype=float)) if seen else 0.0 for one in (answers, whole)
    )
    low, high = map(float, paired_difference(lost, won, seen))
    return Paired(
        share(now, off), share(before, frozenset()), lost, won, low, high, loss, before_loss,
        table(examples, whole, answers, slices),
    )  # fmt: skip


def try_heads(
    examples: Examples,
    blocks: Iterable[Sequence[Batch]],
    whole: Answer,
    without: Answer,
    off: HeadSet,
    slices: Sequence[Slice] = (),
) -> tuple[Paired, Answers, Answers]:
    """Answer block after block; the progress carries the Paired so far.

    Returns it with the answers of the whole model and those with heads off. slices: parts of the
    places that are told apart (analysis.slices).
    """
    before, now = Answers.none(examples), Answers.none(examples)
    places = np.zeros(len(examples.wanted), bool)
    found = paired(examples, before, now, places, off, slices)
    for block in blocks:
        for batch in block:
            at = examples.where(batch)
            before.loss[at], before.given[at] = whole(batch)
            now.loss[at], now.given[at] = without(batch)
            places[at] = True
        found = paired(examples, before, now, places, off, slices)
        progress(found.score.seen, found.score.total, "", found)
    return found, before, now
