"""Scores of answers, intervals of 95 % and tests, made by scipy.stats.

Examples are answered in one random order, so that a score is unbiased from the first block on.
Intervals hold for a number of examples chosen beforehand: nothing corrects for stopping when a
score pleases. A place is where something is asked: the class of a text, a token of a window.

An interval over seeds says where the mean of many more seeds would lie. A test over texts says
whether the models at hand differ on more texts like these: the sign of a text is drawn once for the
models of all seeds, so that what they have in common on a text counts once. A difference is
significant where both say so. How often intervals hold, summed exactly:
docs/explanation/statistics.md.

Written out are what scipy has no closed form for: Agresti and Coull's (1998) and Bonett and Price's
(2012) interval, that of the ratio of two sums, and sign tests, which scipy's permutation_test finds
30 times as slowly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # loads scipy.stats when a function first asks for it, which takes half a second
from numpy.typing import ArrayLike, NDArray

from hgviz.core import (
    NO_STREAMING,
    Ablation,
    Capture,
    Floats,
    HeadSet,
    Integers,
    MetricEstimate,
    Streaming,
    progress,
)
from hgviz.examples import EACH, Batch, Examples, describe_sample
from hgviz.study import NO_PREDICTION

Z95 = 1.959963984540054  # the 97.5 % quantile of the normal distribution
SIGNIFICANT = 0.05  # p below which a difference is significant
MAX_EXACT = 16  # values for which a sign test counts every choice of signs
DRAWS = 20_000  # random choices of signs or of orders beyond that
ROUNDING = 1e-9

METRIC_OF = {
    "classes": "accuracy", "tags": "tag_accuracy", "ends": "end_accuracy", "next": "bits_per_byte",
    "masked": "masked_accuracy", "states": "cosine_distance",
}  # fmt: skip
COSINE_TO_A = "cosine_distance_to_a"  # of two models' states
LOGIT_ROWS = 256  # rows of logits whose probabilities are computed at once

FloatArray = NDArray[np.float64]
Places = NDArray[np.bool_]
Answer = Callable[[Batch], tuple[Floats, Integers]]  # loss and predictions (places,), as in Answers


# --- shares and means -----------------------------------------------------------------------------


def wilson(right: int, total: int) -> tuple[float, float]:
    """Wilson's (1927) interval of the share right / total; (0, 1) where nothing was counted."""
    if total == 0:
        return 0.0, 1.0
    interval = scipy.stats.binomtest(right, total).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def agresti_coull(right: ArrayLike, total: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Agresti and Coull's interval of the share right / total, numbers or arrays; (0, 1) where
    nothing was counted. It has the same middle as Wilson's and is wider."""
    n = np.add(total, Z95 * Z95)
    share = np.add(right, Z95 * Z95 / 2) / n
    half = Z95 * np.sqrt(share * (1 - share) / n)
    low = np.maximum(share - half, 0.0) * np.greater(total, 0)  # rounding leaves 5e-17 of nothing
    return low, np.minimum(share + half, 1.0)


def paired_difference(
    lost: ArrayLike, won: ArrayLike, total: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Bonett and Price's interval of the change (won - lost) / total of a share, numbers or arrays;
    (-1, 1) where nothing was counted.

    lost, won: texts that became wrong and right. With Student's quantile of `total` degrees of
    freedom: with the normal one the interval holds too seldom where all changes go one way.
    """
    b, c, n = np.add(lost, 1), np.add(won, 1), np.add(total, 2)
    middle = (c - b) / n
    quantile = scipy.stats.t.ppf(0.975, np.maximum(total, 1))
    half = quantile * np.sqrt(np.maximum((b + c) - (b - c) ** 2 / n, 0.0)) / n
    return np.maximum(middle - half, -1.0), np.minimum(middle + half, 1.0)


def ratio_interval(
    sums: NDArray[Any], sizes: NDArray[Any] | float = 1.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """sum(sums) / sum(sizes) over the first axis, and its normal interval when rows are drawn at
    random (Cochran 1977, 2.11).

    sums (rows, ...), sizes of the same shape or one that broadcasts; with sizes of 1 it is the
    mean. Rows whose sum is NaN do not count. A single row has the interval (-inf, inf).
    """
    measured = ~np.isnan(sums)
    x, n = np.where(measured, sums, 0.0), np.where(measured, sizes, 0.0)
    rows, total = measured.sum(0), n.sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = x.sum(0) / total
        squares = ((x - np.where(measured, value, 0.0) * n) ** 2).sum(0)
        error = np.sqrt(squares / (rows - 1) * rows) / np.abs(total)
    half = np.where(rows > 1, Z95 * error, math.inf)
    return value, value - half, value + half


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """The mean of values (n,), one for each seed, with its interval of 95 %; low and high are NaN
    for fewer than two values."""

    values: FloatArray
    mean: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """The values, mean, low and high for JSON; NaN is null."""
        ends = {"mean": self.mean, "low": self.low, "high": self.high}
        return {"values": self.values.tolist()} | {k: finite_or_none(x) for k, x in ends.items()}


def student_interval(values: Sequence[float] | NDArray[Any]) -> Interval:
    """The mean of values (n,) with Student's interval; NaN and infinities are left out."""
    numbers = np.asarray(values, float)
    numbers = numbers[np.isfinite(numbers)]
    mean = float(numbers.mean()) if len(numbers) else math.nan
    if len(numbers) < 2:
        return Interval(numbers, mean, math.nan, math.nan)
    quantile = float(scipy.stats.t.ppf(0.975, len(numbers) - 1))
    half = quantile * float(numbers.std(ddof=1)) / math.sqrt(len(numbers))
    return Interval(numbers, mean, mean - half, mean + half)


def finite_or_none(value: float) -> float | None:
    """The number, or None (null in JSON) for NaN and infinities."""
    return float(value) if math.isfinite(value) else None


# --- tests ----------------------------------------------------------------------------------------


def mcnemar(lost: ArrayLike, won: ArrayLike) -> FloatArray:
    """Exact two-sided p of McNemar's test, of numbers or arrays: 2 P(X <= min(lost, won)),
    X binomial of lost + won fair draws, at most 1."""
    least, total = np.minimum(lost, won), np.add(lost, won)
    p: FloatArray = np.minimum(2 * scipy.stats.binom.cdf(least, total, 0.5), 1.0)
    return p


def student_test(values: FloatArray) -> float:
    """Two-sided p of Student's test that the mean of values (n,) is 0; NaN for fewer than two, 0
    for equal values that are not 0."""
    if len(values) < 2:
        return math.nan
    mean = abs(float(values.mean()))
    if scipy.stats.sem(values) <= ROUNDING * mean or not mean:
        return 0.0 if mean else 1.0
    return float(scipy.stats.ttest_1samp(values, 0.0).pvalue)


def sign_test_of_counts(counts: NDArray[np.int64]) -> float:
    """Two-sided p of the sum of counts (texts,) when each might as well have the opposite sign.

    counts: how many more seeds are right on a text with one model than with another. Exact for any
    number of texts: a random sign times m has the characteristic function cos(m w), and the sum has
    the product of all. For one seed this is McNemar's exact test.
    """
    sizes = np.abs(np.asarray(counts, np.int64))
    sizes = sizes[sizes > 0]
    total = int(sizes.sum())
    if not total:
        return 1.0
    length = 2 * total + 1
    angles = 2 * np.pi * np.arange(total + 1) / length  # the product is even: half is enough
    product = np.ones(total + 1)
    for size, repeats in zip(*np.unique(sizes, return_counts=True), strict=True):
        product *= np.cos(size * angles) ** int(repeats)
    chances = np.fft.irfft(product, length)  # of the sums 0, 1 ... total, then of -total ... -1
    observed = abs(int(np.sum(counts)))
    inside = chances[:observed].sum() + chances[1:observed][::-1].sum() if observed else 0.0
    # rounding hides chances below 1e-16; the most extreme choice alone has this one
    least = 2.0 ** (1.0 - min(len(sizes), 1000))
    return float(min(max(1.0 - inside, least), 1.0))


def sign_test(values: NDArray[Any]) -> float:
    """Two-sided p of the sum of values (n,) when each might as well have the opposite sign.

    Exact for up to MAX_EXACT values other than 0, else of DRAWS random choices and the observed
    one; NaN for no value.
    """
    numbers = np.asarray(values, float)
    if not len(numbers):
        return math.nan
    numbers = numbers[np.abs(numbers) > ROUNDING]
    count, observed = len(numbers), abs(float(numbers.sum()))
    if not count:
        return 1.0
    if count <= MAX_EXACT:
        # the last sign stays: the other half of all choices has the same sums, negated
        negative = np.arange(1 << (count - 1))[:, None] >> np.arange(count) & 1
        return float((np.abs((1 - 2 * negative) @ numbers) >= observed - ROUNDING).mean())
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (DRAWS, count))
    extreme = int((np.abs(signs @ numbers) >= observed - ROUNDING).sum())
    return (1 + extreme) / (DRAWS + 1)


def random_order_test(scores: Sequence[float], orders: Sequence[NDArray[Any]]) -> float:
    """One-sided p of the sum of scores (models,) against random orders; NaN for no model.

    orders: for each model what its random orders score (orders,). One order of each model is drawn,
    in all combinations where there are at most DRAWS, else DRAWS times. The observed scores count
    as one more, so that for one model with 20 orders the least p is 1 / 21.
    """
    if not len(scores):
        return math.nan
    observed = float(np.sum(scores)) - ROUNDING * len(scores)
    if math.prod(len(row) for row in orders) <= DRAWS:
        sums = np.zeros(1)
        for row in orders:
            sums = np.add.outer(sums, np.asarray(row, float)).ravel()
    else:
        random = np.random.default_rng(1)
        sums = np.sum([random.choice(np.asarray(row, float), DRAWS) for row in orders], axis=0)
    return (1 + int((sums >= observed).sum())) / (len(sums) + 1)


def benjamini_hochberg(p: NDArray[Any]) -> FloatArray:
    """p (n,) adjusted for n tests (Benjamini and Hochberg 1995): those below q hold at a false
    discovery rate of q. NaN stays NaN and counts as no test."""
    adjusted = np.full(np.shape(p), np.nan)
    tested = ~np.isnan(p)
    if tested.any():
        adjusted[tested] = scipy.stats.false_discovery_control(np.asarray(p, float)[tested])
    return adjusted


def is_significant(difference: Interval, adjusted: float) -> bool:
    """Whether a difference is more than chance: 0 lies outside its interval over seeds, and its
    adjusted p is below SIGNIFICANT; never for one seed."""
    return bool((difference.low > 0 or difference.high < 0) and adjusted < SIGNIFICANT)


# --- ranks ----------------------------------------------------------------------------------------


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Spearman's rank correlation (1904) of two rows of numbers; NaN for fewer than three, and
    where all numbers of a row are equal."""
    first, second = np.asarray(first), np.asarray(second)
    if len(first) < 3 or (first == first[0]).all() or (second == second[0]).all():
        return math.nan
    return float(scipy.stats.spearmanr(first, second).statistic)


def mean_ranks(values: NDArray[Any]) -> FloatArray:
    """The rank of each method on each model: values (models, methods), the highest has rank 1,
    equal ones share their mean rank. Models that lack a method are left out."""
    numbers = np.asarray(values, float)
    # rounded, because equal shares may differ by rounding
    numbers = np.round(numbers[np.isfinite(numbers).all(1)], 9)
    ranks: FloatArray = scipy.stats.rankdata(-numbers, axis=1)
    return ranks


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

    loss: nats per text or token. accuracy: of a language model, the share of next tokens that it
    predicts. right: per text in the order of the file. cut: texts longer than
    the model reads, of which it saw the beginning. windows, texts: a language model was scored on
    so many windows of so many texts. streaming: heads that saw the first and latest keys; cached:
    the part of all keys of the longest text, of `longest` tokens, that these keep.
    ablation: what took the place of heads that were off.
    """

    score: MetricEstimate
    loss: float
    f1: float | None = None
    mcc: float | None = None
    perplexity: float | None = None
    accuracy: float | None = None
    right: tuple[bool, ...] = ()
    cut: int = 0
    windows: int = 0
    texts: int = 0
    streaming: Streaming = NO_STREAMING
    longest: int = 0
    cached: float = 1.0
    ablation: Ablation = "zero"

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
        extra = {
            "f1": self.f1, "mcc": self.mcc, "perplexity": self.perplexity,
            "next_token_accuracy": self.accuracy,
        }  # fmt: skip
        result |= {name: value for name, value in extra.items() if value is not None}
        if self.windows:
            result |= {"windows": self.windows, "texts": self.texts}
        if self.streaming.heads:
            result |= {**self.streaming.to_dict(), "longest": self.longest, "cached": self.cached}
        if self.ablation != "zero":
            result["ablation"] = self.ablation
        return result | ({"cut": self.cut} if self.cut else {})


def evaluate(answer: Answer, examples: Examples, off: HeadSet = frozenset()) -> Evaluation:
    """The score of a model on examples, see METRIC_OF; the progress carries the MetricEstimate of
    the examples answered so far."""
    answers = Answers.unasked(examples)
    for block in examples.blocks():
        for batch in block:
            answers.put(examples, batch, answer(batch))
        score = estimate(examples, answers, off)
        progress(score.seen, score.total, describe_score(score), score)
    return evaluation_of(examples, answers, off)


def estimate(examples: Examples, answers: Answers, off: HeadSet = frozenset()) -> MetricEstimate:
    """The score at the places that were answered, with its interval of 95 %."""
    places = answers.predictions != NO_PREDICTION
    seen, total = int(places.sum()), len(places)
    if examples.asked == "next":
        first = examples.places[:-1]
        sums = np.add.reduceat(answers.loss.astype(float), first)[places[first]]
        sizes = np.array([row.size for row in examples.rows])[places[first]]
        _, low, high = map(float, ratio_interval(sums / np.log(2), sizes))
        # a window of a token that is a space of the tokenizer's own has no bytes
        value, low = float(sums.sum()) / math.log(2) / max(float(sizes.sum()), 1.0), max(low, 0.0)
    elif examples.asked == "states":
        value, low, high = map(float, ratio_interval(answers.loss[places].astype(float)))
        low = max(low, 0.0)
    else:
        right = int((answers.predictions[places] == examples.wanted[places]).sum())
        value, (low, high) = right / max(seen, 1), wilson(right, seen)
    return MetricEstimate(METRIC_OF[examples.asked], value, low, high, seen, total, off)


def evaluation_of(examples: Examples, answers: Answers, off: HeadSet = frozenset()) -> Evaluation:
    """The evaluation of answers to all examples."""
    loss = float(answers.loss.mean(dtype=float))
    fields: dict[str, Any] = {"windows": len(examples), "texts": examples.texts}
    if examples.asked in EACH:
        fields = {"cut": examples.cut}
    if examples.asked == "classes":
        table = confusion(examples.wanted, answers.predictions, len(examples.labels))
        right = tuple((answers.predictions == examples.wanted).tolist())
        fields |= {"f1": f1_score(table), "mcc": matthews(table), "right": right}
    if examples.asked == "next":  # infinite where a float cannot hold it
        fields["perplexity"] = math.exp(loss) if loss < 700 else math.inf
        fields["accuracy"] = float((answers.predictions == examples.wanted).mean())
    return Evaluation(estimate(examples, answers, off), loss, **fields)


def describe_score(score: MetricEstimate) -> str:
    """A score with its interval and the number of places, in words."""
    count = f"{score.seen:,} of {score.total:,}" if score.seen < score.total else f"{score.total:,}"
    if score.metric == "bits_per_byte":
        part = f" of the first {score.seen:,} tokens" if score.seen < score.total else ""
        ends = f" ({score.low:.3f} to {score.high:.3f})" if math.isfinite(score.high) else ""
        return f"{score.value:.3f} bits per byte{ends}{part}"
    distances = {METRIC_OF["states"]: "the full model's", COSINE_TO_A: "A's"}
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
