"""How well a model answers examples, with intervals, and what it answers with heads off.

Examples are answered in one random order, so that a score is unbiased from the first block on.
Intervals hold for a number of examples chosen beforehand: nothing corrects for stopping when a
score pleases. A place is where something is asked: the class of a text, a token of a window.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.statistics import (
    agresti_coull,
    finite_or_none,
    mcnemar,
    paired_difference,
    ratio_interval,
    wilson,
)
from hgviz.core import (
    NO_STREAMING,
    Capture,
    Floats,
    HeadCost,
    HeadSet,
    Integers,
    MetricEstimate,
    Streaming,
    progress,
)
from hgviz.examples import EACH, Batch, Examples, describe_sample
from hgviz.study import NO_PREDICTION

METRIC_OF = {
    "classes": "accuracy", "tags": "tag_accuracy", "ends": "end_accuracy", "next": "bits_per_byte",
    "masked": "masked_accuracy", "states": "cosine_distance",
}  # fmt: skip
SHARE_OF = METRIC_OF | {"next": "next_token_accuracy", "states": "retrieval_accuracy"}
COSINE_TO_A = "cosine_distance_to_a"  # of two models' states
LENGTH_PARTS = 4  # parts of the examples by length, of as many examples each
LOGIT_ROWS = 256  # rows of logits whose probabilities are computed at once

Answer = Callable[[Batch], tuple[Floats, Integers]]  # loss and predictions (places,), as in Answers
Ends = tuple[float, float, float]  # a value and its interval of 95 %
Places = NDArray[np.bool_]


# --- answers and their score ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answers:
    """What a model answered at every place of some examples.

    loss (places,) float32: nats of what is right, of states 1 - cosine; predictions (places,): the
    likeliest class or token, NO_PREDICTION where it was not asked yet.
    """

    loss: Floats
    predictions: Integers

    @classmethod
    def unasked(cls, examples: Examples) -> Answers:
        """No place answered yet."""
        places = int(examples.places[-1])
        return cls(np.zeros(places, np.float32), np.full(places, NO_PREDICTION, np.int64))

    def put(self, examples: Examples, batch: Batch, answer: tuple[Floats, Integers]) -> None:
        """Fill in the places of a batch."""
        places = examples.where(batch)
        self.loss[places], self.predictions[places] = answer


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a model scored; fields that its task does not have are None.

    loss: nats per text or token. right: per text in the order of the file. cut: texts longer than
    the model reads, of which it saw the beginning. windows, texts: a language model was scored on
    so many windows of so many texts. streaming: heads that saw the first and latest keys; cached:
    the part of all keys of the longest text, of `longest` tokens, that these keep.
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

    def to_dict(self) -> dict[str, Any]:
        """As `hgviz evaluate --json` prints it."""
        score = self.score
        result: dict[str, Any] = {
            "metric": score.metric, "value": score.value,
            "low": finite_or_none(score.low), "high": finite_or_none(score.high),
            "loss": self.loss, "seen": score.seen, "total": score.total,
            "off": [str(head) for head in sorted(score.off)],
        }  # fmt: skip
        extra = {"f1": self.f1, "mcc": self.mcc, "perplexity": self.perplexity}
        result |= {name: value for name, value in extra.items() if value is not None}
        if self.windows:
            result |= {"windows": self.windows, "texts": self.texts}
        if self.streaming.heads:
            result |= {**self.streaming.to_dict(), "longest": self.longest, "cached": self.cached}
        return result | ({"cut": self.cut} if self.cut else {})


def evaluate(answer: Answer, examples: Examples, off: HeadSet = frozenset()) -> Evaluation:
    """The score of a model on examples, see METRIC_OF; the progress carries the MetricEstimate of
    the examples answered so far."""
    answers, answered = Answers.unasked(examples), np.zeros(len(examples), bool)
    for block in examples.blocks():
        for batch in block:
            answers.put(examples, batch, answer(batch))
            answered[batch.rows] = True
        score = estimate(examples, answers, answered, off)
        progress(score.seen, score.total, describe_score(score), score)
    return evaluation_of(examples, answers, off)


def estimate(
    examples: Examples, answers: Answers, answered: Places, off: HeadSet = frozenset()
) -> MetricEstimate:
    """The score of the answered examples (examples,), with its interval of 95 %."""
    places = np.repeat(answered, np.diff(examples.places))
    seen, total = int(places.sum()), len(places)
    if examples.asked == "next":
        sums = np.add.reduceat(answers.loss.astype(float), examples.places[:-1])[answered]
        sizes = np.array([row.size for row in examples.rows])[answered]
        _, low, high = map(float, ratio_interval(sums / np.log(2), sizes))
        # a window of a token that is a space of the tokenizer's own has no bytes
        value = float(sums.sum()) / math.log(2) / max(float(sizes.sum()), 1.0)
        low = max(low, 0.0)
    elif examples.asked == "states":
        value, low, high = map(float, ratio_interval(answers.loss[places].astype(float)))
        low = max(low, 0.0)
    else:
        right = int((answers.predictions[places] == examples.wanted[places]).sum())
        value, (low, high) = right / max(seen, 1), wilson(right, seen)
    return MetricEstimate(METRIC_OF[examples.asked], value, low, high, seen, total, off)


def evaluation_of(examples: Examples, answers: Answers, off: HeadSet = frozenset()) -> Evaluation:
    """The evaluation of answers to all examples."""
    score = estimate(examples, answers, np.ones(len(examples), bool), off)
    loss = float(answers.loss.mean(dtype=float))
    if examples.asked == "classes":
        table = confusion(examples.wanted, answers.predictions, len(examples.labels))
        right = tuple((answers.predictions == examples.wanted).tolist())
        return Evaluation(
            score, loss, f1_score(table), matthews(table), right=right, cut=examples.cut
        )
    if examples.asked in ("tags", "ends", "states"):
        return Evaluation(score, loss, cut=examples.cut)
    evaluation = Evaluation(score, loss, windows=len(examples), texts=examples.texts)
    if examples.asked == "masked":
        return evaluation
    # infinite where a float cannot hold it
    return replace(evaluation, perplexity=math.exp(loss) if loss < 700 else math.inf)


def describe_score(score: MetricEstimate) -> str:
    """A score with its interval and the number of places, in words."""
    count = f"{score.seen:,} of {score.total:,}" if score.seen < score.total else f"{score.total:,}"
    if score.metric == "bits_per_byte":
        part = f" of the first {score.seen:,} tokens" if score.seen < score.total else ""
        ends = f" ({score.low:.3f} to {score.high:.3f})" if math.isfinite(score.high) else ""
        return f"{score.value:.3f} bits per byte{ends}{part}"
    distances = {METRIC_OF["states"]: "the whole model's", COSINE_TO_A: "A's"}
    if score.metric in distances:
        ends = f" ({score.low:.4f} to {score.high:.4f})" if math.isfinite(score.high) else ""
        return f"1 - cosine to {distances[score.metric]} states {score.value:.4f}{ends} on {count}"
    ends = f"{100 * score.low:.1f} to {100 * score.high:.1f} %"
    return f"{score.metric.replace('_', ' ')} {100 * score.value:.1f} % ({ends}) on {count}"


def confusion(wanted: Integers, predictions: Integers, classes: int) -> Integers:
    """(classes, classes): how many examples of the row's class were predicted as the column's."""
    counts: Integers = np.bincount(wanted * classes + predictions, minlength=classes * classes)
    return counts.reshape(classes, classes).astype(np.int64)


def f1_score(table: Integers) -> float:
    """F1 of a confusion table: of class 1 where there are two classes, else the mean over classes.

    A class that is neither wanted nor predicted counts as 0.
    """
    right = np.diag(table).astype(float)
    both = (table.sum(0) + table.sum(1)).astype(float)
    scores = np.divide(2 * right, both, out=np.zeros_like(right), where=both > 0)
    return float(scores[1] if len(table) == 2 else scores.mean())


def matthews(table: Integers) -> float:
    """Matthews correlation of a confusion table (Gorodkin 2004); 0 where one side has one class."""
    counts = table.astype(float)
    total, right = counts.sum(), np.trace(counts)
    wanted, predicted = counts.sum(1), counts.sum(0)
    variances = (total**2 - predicted @ predicted) * (total**2 - wanted @ wanted)
    if variances <= 0:
        return 0.0
    return float((right * total - wanted @ predicted) / math.sqrt(variances))


def bits_per_byte(capture: Capture) -> float | None:
    """Bits per byte of UTF-8 that a language model needs for the text of a capture, all tokens but
    the first; of a decoder with a source, for its own text.

    None for models that do not predict the next token, without logits or characters, and for a text
    of one token.
    """
    prompt, logits = capture.main, capture.logits
    if capture.spec.goal != "next" or logits is None or np.ndim(logits) != 2 or len(prompt) < 2:
        return None
    size = float(prompt.byte_counts()[1:].sum())
    if not size or len(logits) != len(prompt):
        return None
    nats, ids = 0.0, np.asarray(prompt.ids)
    for start in range(0, len(ids) - 1, LOGIT_ROWS):
        stop = min(start + LOGIT_ROWS, len(ids) - 1)
        rows = np.asarray(logits[start:stop], np.float64)
        rows = rows - rows.max(axis=1, keepdims=True)
        chosen = rows[np.arange(stop - start), ids[start + 1 : stop + 1]]
        nats += float((np.log(np.exp(rows).sum(axis=1)) - chosen).sum())
    return nats / math.log(2) / size if math.isfinite(nats) else None


# --- slices ---------------------------------------------------------------------------------------


By = Literal["all", "label", "length"]


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """Some of all places (places,) under a name."""

    by: By
    name: str
    places: Places


def slices_of(examples: Examples) -> tuple[Slice, ...]:
    """All places, then one slice for each class and for each quarter of the lengths of texts,
    where there are two or more."""
    slices = [*_by_label(examples), *_by_length(examples)] if examples.asked in EACH else []
    kinds = [part.by for part in slices]
    whole = Slice("all", "", np.ones(len(examples.wanted), bool))
    return whole, *(part for part in slices if kinds.count(part.by) > 1)


def _by_label(examples: Examples) -> Iterator[Slice]:
    if examples.asked == "classes":
        for number in np.unique(examples.wanted).tolist():
            name = examples.labels[number] if number < len(examples.labels) else str(number)
            yield Slice("label", name, examples.wanted == number)


def _by_length(examples: Examples) -> Iterator[Slice]:
    """Quarters by length; texts of one length are never in two of them."""
    lengths = examples.lengths
    inner = np.linspace(0, 1, LENGTH_PARTS + 1)[1:-1]
    edges = np.unique(np.quantile(lengths, inner, method="lower"))
    quarters = np.searchsorted(edges, lengths, side="left")
    for number in np.unique(quarters):
        rows = quarters == number
        low, high = int(lengths[rows].min()), int(lengths[rows].max())
        name = f"{low:,} to {high:,} tokens" if low < high else f"{low:,} tokens"
        yield Slice("length", name, np.repeat(rows, np.diff(examples.places)))


@dataclass(frozen=True, slots=True)
class SliceScore:
    """What heads off do to a slice, at the `n` of its `total` places that were answered.

    before, now: shares right of the baseline and with heads off, with Agresti and Coull's interval.
    lost, won: places that became wrong and right; change: of the share, with Bonett and Price's
    interval. loss: mean nats of both; loss_change with its interval over examples (Cochran 1977,
    2.11), infinite for one example.
    """

    by: By
    name: str
    n: int
    total: int
    before: Ends
    now: Ends
    lost: int
    won: int
    change: Ends
    loss: tuple[float, float]
    loss_change: Ends


def score_slices(
    examples: Examples, before: Answers, now: Answers, slices: Sequence[Slice]
) -> tuple[SliceScore, ...]:
    """The scores of slices, at the places that both models have answered."""
    both = (before.predictions != NO_PREDICTION) & (now.predictions != NO_PREDICTION)
    example = np.searchsorted(examples.places, np.arange(len(both)), side="right")
    right = [side.predictions == examples.wanted for side in (before, now)]
    scores = []
    for part in slices:
        places = np.flatnonzero(both & part.places)
        was, is_now = (side[places] for side in right)
        n, lost, won = len(places), int((was & ~is_now).sum()), int((is_now & ~was).sum())
        low, high = map(float, paired_difference(lost, won, n))
        means, loss_change = (0.0, 0.0), (0.0, -math.inf, math.inf)
        if n:
            losses = [side.loss[places].astype(float) for side in (before, now)]
            means = (float(losses[0].mean()), float(losses[1].mean()))
            sizes = np.bincount(example[places])
            sums = np.bincount(example[places], losses[1] - losses[0])
            _, *ends = map(float, ratio_interval(sums[sizes > 0], sizes[sizes > 0]))
            loss_change = (means[1] - means[0], ends[0], ends[1])
        scores.append(
            SliceScore(
                part.by, part.name, n, int(part.places.sum()), _share(was), _share(is_now),
                lost, won, ((won - lost) / max(n, 1), low, high), means, loss_change,
            )
        )  # fmt: skip
    return tuple(scores)


def _share(right: Places) -> Ends:
    """The share that is right, with Agresti and Coull's interval."""
    low, high = map(float, agresti_coull(int(right.sum()), len(right)))
    return int(right.sum()) / max(len(right), 1), low, high


# --- heads off beside the baseline ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PairedScore:
    """Answers with heads off against those of the baseline, on the places answered so far.

    score, baseline: shares of right answers with Agresti and Coull's intervals. low, high: interval
    of their difference (Bonett and Price 2012). lost, won: places that became wrong and right.
    loss, baseline_loss: nats per place. slices: the same for each slice. All intervals of 95 %.
    """

    score: MetricEstimate
    baseline: MetricEstimate
    lost: int
    won: int
    low: float
    high: float
    loss: float
    baseline_loss: float
    slices: tuple[SliceScore, ...] = ()

    @property
    def difference(self) -> float:
        """The change of the share of right answers."""
        return (self.won - self.lost) / self.score.seen if self.score.seen else 0.0

    @property
    def p(self) -> float:
        """McNemar's exact p that the difference is chance."""
        return float(mcnemar(self.lost, self.won))

    @property
    def done(self) -> bool:
        """Whether every place was answered."""
        return self.score.seen == self.score.total


def compare_with_baseline(
    examples: Examples,
    before: Answers,
    now: Answers,
    places: Places,
    off: HeadSet = frozenset(),
    slices: Sequence[Slice] = (),
) -> PairedScore:
    """The score of answers with heads off beside the baseline's, at some places (places,)."""
    wanted, total = examples.wanted[places], len(places)
    was, is_now = (side.predictions[places] == wanted for side in (before, now))
    seen, lost, won = len(wanted), int((was & ~is_now).sum()), int((is_now & ~was).sum())
    metric = SHARE_OF[examples.asked]
    low, high = map(float, paired_difference(lost, won, seen))
    loss, baseline_loss = (
        float(side.loss[places].mean(dtype=float)) if seen else 0.0 for side in (now, before)
    )
    return PairedScore(
        MetricEstimate(metric, *_share(is_now), seen, total, off),
        MetricEstimate(metric, *_share(was), seen, total, frozenset()),
        lost, won, low, high, loss, baseline_loss, score_slices(examples, before, now, slices),
    )  # fmt: skip


def try_heads(
    examples: Examples,
    blocks: Iterable[Sequence[Batch]],
    baseline: Answer,
    without: Answer,
    off: HeadSet,
    slices: Sequence[Slice] = (),
) -> tuple[PairedScore, Answers, Answers]:
    """The score with heads off beside the baseline's, with the answers of the baseline and those
    with heads off; the progress carries the PairedScore so far."""
    before, now = Answers.unasked(examples), Answers.unasked(examples)
    places = np.zeros(len(examples.wanted), bool)
    score = compare_with_baseline(examples, before, now, places, off, slices)
    for block in blocks:
        for batch in block:
            before.put(examples, batch, baseline(batch))
            now.put(examples, batch, without(batch))
            places[examples.where(batch)] = True
        score = compare_with_baseline(examples, before, now, places, off, slices)
        progress(score.score.seen, score.score.total, "", score)
    return score, before, now


Which = Literal["lost", "won", "all"]


class ScorePoint(NamedTuple):
    """The share of right answers after so many places, and its interval of 95 %."""

    seen: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class MaskTrial:
    """A set of heads that is tried out in the window, and its score as far as it is known.

    points: one per block of examples. before, now: answers of the baseline and with heads off, None
    until every place was answered. stopped: whether nobody goes on with it. head_costs: by layer,
    the weights of one head; None where they do not go by heads.
    """

    off: HeadSet
    examples: Examples
    points: tuple[ScorePoint, ...] = ()
    paired: PairedScore | None = None
    before: Answers | None = None
    now: Answers | None = None
    stopped: bool = False
    head_costs: tuple[HeadCost, ...] | None = None

    @property
    def done(self) -> bool:
        """Whether every place was answered."""
        return self.now is not None

    @property
    def seen(self) -> int:
        """How many places were answered."""
        return self.points[-1].seen if self.points else 0

    @property
    def total(self) -> int:
        """How many places there are."""
        return int(self.examples.places[-1])

    def changed(self, which: Which = "all") -> Integers:
        """The numbers of the places whose answer changed: those that became wrong ("lost") or right
        ("won"), or all, also where one wrong answer became another."""
        if self.before is None or self.now is None:
            return np.zeros(0, np.int64)
        was, is_now = (side.predictions == self.examples.wanted for side in (self.before, self.now))
        changed = {
            "lost": was & ~is_now,
            "won": is_now & ~was,
            "all": self.before.predictions != self.now.predictions,
        }
        return np.flatnonzero(changed[which])
