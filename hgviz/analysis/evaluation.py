"""A model's score while it grows: texts in one random order, so that an early score is unbiased.

Whoever looks early and stops when the score pleases is not corrected for: intervals hold for a
number of texts chosen beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.statistics import ratio_interval, wilson
from hgviz.core import NO_STREAMING, Floats, HeadSet, Integers, MetricEstimate, Streaming, progress
from hgviz.examples import Batch, Examples, describe_sample

METRIC_OF = {
    "classes": "accuracy", "tags": "tag_accuracy", "ends": "end_accuracy", "next": "bits_per_byte",
    "masked": "masked_accuracy", "states": "cosine_distance",
}  # fmt: skip
COSINE_TO_A = "cosine_distance_to_a"  # of two models' states

Answer = Callable[[Batch], tuple[Floats, Integers]]  # loss and given (places,), as in Answers


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a model scored; fields that its task does not have are None.

    loss: nats per text or token. right: per text in the order of the file. cut: texts longer than
    the model reads, of which it saw the beginning. windows: of so many texts a language model was
    scored on so many. streaming: heads that saw the first and latest keys; cached: of all keys of
    the longest text, of so many tokens, the part that is kept then.
    """

    score: MetricEstimate
    loss: float
    f1: float | None = None
    mcc: float | None = None
    perplexity: float | None = None
    right: tuple[bool, ...] = ()
    cut: int = 0
    windows: int = 0
    texts: int = 0
    streaming: Streaming = NO_STREAMING
    longest: int = 0
    cached: float = 1.0

    @property
    def on(self) -> str:
        """What a language model was scored on, to stand behind its score; else ""."""
        return f", on {describe_sample('next', self.windows, self.texts)}" if self.windows else ""

    def facts(self) -> dict[str, Any]:
        """As `hgviz evaluate --json` prints it."""
        one = self.score
        found: dict[str, Any] = {
            "metric": one.metric, "value": one.value, "low": one.low, "high": one.high,
            "loss": self.loss, "seen": one.seen, "total": one.total,
            "off": [str(head) for head in sorted(one.off)],
        }  # fmt: skip
        found |= {end: None for end in ("low", "high") if not math.isfinite(found[end])}
        extra = {"f1": self.f1, "mcc": self.mcc, "perplexity": self.perplexity}
        found |= {name: value for name, value in extra.items() if value is not None}
        if self.windows:
            found |= {"windows": self.windows, "texts": self.texts}
        if (few := self.streaming).heads:
            found |= {**few.to_dict(), "longest": self.longest, "cached": self.cached}
        return found | ({"cut": self.cut} if self.cut else {})


@dataclass(frozen=True, slots=True)
class Answers:
    """What a model answered at every place of some examples: nats of surprise, and what it gave.

    loss (places,) float32; given (places,) its likeliest class or token, -1 where not yet asked.
    """

    loss: Floats
    given: Integers

    @classmethod
    def none(cls, examples: Examples) -> Answers:
        """Nothing answered yet."""
        places = int(examples.places[-1])
        return cls(np.zeros(places, np.float32), np.full(places, -1, np.int64))

    def put(self, examples: Examples, batch: Batch, found: tuple[Floats, Integers]) -> None:
        """Take in what was answered at the places of a batch."""
        at = examples.where(batch)
        self.loss[at], self.given[at] = found


def evaluate(answer: Answer, examples: Examples, off: HeadSet = frozenset()) -> Evaluation:
    """Accuracy of a classifier, of classes of tokens, of where answers begin and end, of images to
    a text, bits per byte of a language model, masked accuracy, and 1 - cosine of states to those of
    the whole model.

    The progress carries the Score so far.
    """
    answers, looked_at = Answers.none(examples), np.zeros(len(examples), bool)
    for block in examples.blocks():
        for batch in block:
            answers.put(examples, batch, answer(batch))
            looked_at[batch.rows] = True
        score = scored(examples, answers, looked_at, off)
        progress(score.seen, score.total, told(score), score)
    return evaluated(examples, answers, off)


def scored(
    examples: Examples, answers: Answers, looked_at: NDArray[np.bool_], off: HeadSet = frozenset()
) -> MetricEstimate:
    """The score of the examples looked at (examples,), with its interval of 95 %."""
    counts = np.diff(examples.places)
    places = np.repeat(looked_at, counts)
    seen, total = int(places.sum()), len(places)
    metric = METRIC_OF[examples.asked]
    if examples.asked == "next":
        sums = np.add.reduceat(answers.loss.astype(float), examples.places[:-1])[looked_at]
        sizes = np.array([row.size for row in examples.rows])[looked_at]
        # a window of a token that is a space of the tokenizer's own counts none
        size = max(float(sizes.sum()), 1.0)
        _, low, high = map(float, ratio_interval(sums / np.log(2), sizes))
        value = float(sums.sum()) / math.log(2) / size
        return MetricEstimate(metric, value, max(low, 0.0), high, seen, total, off)
    if examples.asked == "states":
        value, low, high = map(float, ratio_interval(answers.loss[places].astype(float)))
        return MetricEstimate(metric, value, max(low, 0.0), high, seen, total, off)
    right = int((answers.given[places] == examples.wanted[places]).sum())
    return MetricEstimate(metric, right / max(seen, 1), *wilson(right, seen), seen, total, off)


def evaluated(examples: Examples, answers: Answers, off: HeadSet = frozenset()) -> Evaluation:
    """What answers to all examples come to."""
    score = scored(examples, answers, np.ones(len(examples), bool), off)
    loss = float(answers.loss.mean(dtype=float))
    if examples.asked in ("tags", "ends", "states"):
        return Evaluation(score, loss, cut=examples.cut)
    if examples.asked != "classes":
        found = Evaluation(score, loss, windows=len(examples), texts=examples.texts)
        if examples.asked == "masked":
            return found
        # infinite where a float cannot hold it
        perplexity = math.exp(loss) if loss < 700 else math.inf
        return replace(found, perplexity=perplexity)
    table = confusion(examples.wanted, answers.given, len(examples.labels))
    right = tuple(bool(one) for one in answers.given == examples.wanted)
    f1, mcc = f1_score(table), matthews(table)
    return Evaluation(score, loss, f1, mcc, None, right, examples.cut)


def confusion(wanted: Integers, given: Integers, classes: int) -> Integers:
    """(classes, classes): how many examples of the row's class were given the column's."""
    counts: Integers = np.bincount(wanted * classes + given, minlength=classes * classes)
    return counts.reshape(classes, classes).astype(np.int64)


def f1_score(table: Integers) -> float:
    """F1 of a confusion table: of class 1 where there are two classes, else the mean over classes.

    A class that is neither wanted nor given counts as 0.
    """
    right = np.diag(table).astype(float)
    both = (table.sum(0) + table.sum(1)).astype(float)
    scores = np.divide(2 * right, both, out=np.zeros_like(right), where=both > 0)
    return float(scores[1] if len(table) == 2 else scores.mean())


def matthews(table: Integers) -> float:
    """Matthews correlation of a confusion table (Gorodkin 2004); 0 where one side has one class."""
    counts = table.astype(float)
    total, right = counts.sum(), np.trace(counts)
    wanted, given = counts.sum(1), counts.sum(0)
    variances = (total**2 - given @ given) * (total**2 - wanted @ wanted)
    return float((right * total - wanted @ given) / math.sqrt(variances)) if variances > 0 else 0.0


def told(score: MetricEstimate) -> str:
    """A score in words."""
    if score.metric == "bits_per_byte":
        part = f" of the first {score.seen:,} tokens" if score.seen < score.total else ""
        around = f" ({score.low:.3f} to {score.high:.3f})" if np.isfinite(score.high) else ""
        return f"{score.value:.3f} bits per byte{around}{part}"
    count = f"{score.seen:,} of {score.total:,}" if score.seen < score.total else f"{score.total:,}"
    around = f" ({score.low:.4f} to {score.high:.4f})" if np.isfinite(score.high) else ""
    if score.metric == METRIC_OF["states"]:
        return f"1 - cosine to the whole model's states {score.value:.4f}{around} on {count}"
    if score.metric == COSINE_TO_A:
        return f"1 - cosine to A's states {score.value:.4f}{around} on {count}"
    around = f"{100 * score.low:.1f} to {100 * score.high:.1f} %"
    return f"{score.metric.replace('_', ' ')} {100 * score.value:.1f} % ({around}) on {count}"
