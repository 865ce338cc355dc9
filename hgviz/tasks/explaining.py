"""Where an answer comes from: tokens, layers, heads, and one head beside its own attention.

Attention is not explanation (Jain and Wallace 2019): whether the keys that a head attends to most
are those that the answer comes from is measured by Spearman's rank correlation of sizes, over the
keys that the query sees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.statistics import spearman
from hgviz.core import (
    Capture,
    HeadId,
    HeadSet,
    HgvizError,
    Integers,
    Prompt,
    progress,
    progress_within,
)
from hgviz.tasks.captures import require_attention

if TYPE_CHECKING:
    from hgviz.models.model import Model

Found = TypeVar("Found")
Doubles = NDArray[np.float64]

ROWS = 256  # of a map that are added up at a time
FEWER = 4  # layers are walked through one by one, each with so many times fewer steps
LEAST_STEPS = 16
COMPLETE = 1e-3  # of the change: a path of which no more is missing is good


@dataclass(frozen=True, slots=True)
class Question:
    """Which number of a model's answer is asked about, and how.

    number: a class, or a token's id at a position; position None: of classes. steps: points of the
    path; baseline: where it begins (models.attribution).
    """

    number: int
    position: int | None = None
    steps: int = 128
    baseline: str = "blank"


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """What an answer comes from. value, start: the answer of the text, and where the path begins.

    tokens (n,): integrated gradients of the text that the model speaks about, source (m,) of the
    one its decoder looks at; heads: conductance; layers: integrated gradients of what each layer
    attends, None while they are not there. slopes: models.gradients of the same answer, for single
    heads, None where there are none. prompt: the text that was read.
    """

    question: Question
    prompt: Prompt
    target: Prompt | None
    off: HeadSet
    value: float
    start: float
    tokens: Doubles
    source: Doubles | None
    heads: dict[HeadId, float]
    layers: dict[int, float] | None = None
    slopes: Any = None

    @property
    def change(self) -> float:
        """What the attributions add up to, if the path had no end of steps."""
        return self.value - self.start

    @property
    def total(self) -> float:
        """What they do add up to."""
        return float(self.tokens.sum()) + (0.0 if self.source is None else float(self.source.sum()))

    @property
    def error(self) -> float:
        """|total - change| / |change|: what completeness lacks; 0 where there is nothing to say."""
        missing = abs(self.total - self.change)
        return missing / abs(self.change) if self.change else math.inf if missing else 0.0

    def of(self, capture: Capture) -> bool:
        """Whether it speaks about the text of a capture, with the same heads off and none that
        streams."""
        same = self.prompt.digest == capture.prompt.digest and self.off == capture.off
        same = same and not capture.streaming.heads
        if self.target is None or capture.target is None:
            return same and self.target is capture.target
        return same and self.target.digest == capture.target.digest

    def behind(self, capture: Capture, layer: int) -> Doubles | None:
        """(columns,) What the tokens behind each column of a layer's map add to the answer; NaN
        for padding. None where columns are no tokens.
        """
        side = capture.spec.levels[capture.spec.layers[layer].key_level].sequence
        if side == "slots":
            return None
        given = self.source if self.target is not None and side == "source" else self.tokens
        if given is None:
            return None
        spans = capture.key_spans(layer)
        sums = np.concatenate([[0.0], np.cumsum(given)])
        start, end = spans.clip(0, len(given)).T
        return np.where(spans[:, 0] >= 0, sums[end] - sums[start], np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class KeyScores:
    """The keys of a query, or of all queries (row None), in one head: their attention and what they
    add to the answer. columns (keys,): the keys seen that stand for tokens; all else (keys,).

    attention: the weights; of all queries their mean. slope: gradient times attention, their sum.
    tokens: integrated gradients of the tokens behind, None where there are none.
    """

    head: HeadId
    row: int | None
    columns: Integers
    attention: Doubles
    slope: Doubles
    tokens: Doubles | None

    @property
    def agreements(self) -> tuple[float, float, float]:
        """Spearman's correlation of the sizes of attention and gradient x attention, of attention
        and integrated gradients, of the two; NaN where there are too few keys."""
        none = float("nan")
        pairs = ((self.attention, self.slope), (self.attention, self.tokens),
                 (self.slope, self.tokens))  # fmt: skip
        a, b, c = (none if y is None else spearman(np.abs(x), np.abs(y)) for x, y in pairs)
        return a, b, c


def explain(
    model: Model,
    prompt: Prompt,
    question: Question,
    target: Prompt | None = None,
    off: HeadSet = frozenset(),
    layers: bool = False,
) -> Attribution:
    """Integrated gradients of tokens, conductance of heads, slopes for single heads; layers: their
    integrated gradients, too, which take a walk each. The progress carries what is found so far.

    Errors: HgvizError for an answer that is not there, and for a model without answers.
    """
    from hgviz.models.attribution import AnswerLogit, AttributionPath, score_gradients

    require_attention(model.spec)
    progress(0, 1, "Placing the text")
    answer = AnswerLogit(question.number, question.position)
    path = AttributionPath(model, prompt, answer, target, question.baseline, off)
    whole = 0.4 if layers else 0.9  # of the work, as a bar shows it
    with progress_within(0.0, whole, 1.0):
        walked = path.integrate(question.steps)
    found = Attribution(
        question, prompt, target, off, walked.value, walked.baseline, walked.tokens,
        walked.source, dict(zip(model.spec.heads, walked.heads.tolist(), strict=True)),
    )  # fmt: skip
    progress(whole, 1, "Taking the slopes of every head")
    found = replace(found, slopes=score_gradients(model, prompt, answer, target, off))
    if not layers:
        return found
    progress(whole, 1, "Walking through each layer", found)
    with progress_within(whole, 1.0, 1.0):
        each = path.integrate_layers(max(LEAST_STEPS, question.steps // FEWER))
    numbers = (one.layer.index for one in path.layers)
    return replace(found, layers=dict(zip(numbers, each.tolist(), strict=True)))


def head_beside(found: Attribution, capture: Capture, head: HeadId, query: int | None) -> KeyScores:
    """One head, for a query (a token) or, None, all of them: its attention, gradient times
    attention, and what the tokens behind its keys add to the answer.
    """
    maps = capture.maps[head.layer]
    if maps is None:
        raise HgvizError(f"layer {head.layer} is not captured yet", "Wait for it")
    row = None if query is None else capture.row(head.layer, query)
    rows = range(maps.shape[1]) if row is None else range(row, row + 1)
    keys = maps.shape[2]
    attention, slope, seen = np.zeros(keys), np.zeros(keys), np.zeros(keys, bool)
    for start in range(rows.start, rows.stop, ROWS):
        part = range(start, min(start + ROWS, rows.stop))
        one = found.slopes.head(head, part)
        weights = maps.read(head.head, (part.start, part.stop))
        attention += weights.sum(axis=0, dtype=np.float64) / len(rows)
        slope += (one.weights * one.at_weights)[0].sum(axis=0, dtype=np.float64)
        seen |= one.seen.any(axis=0)
        progress(part.stop - rows.start, len(rows), "Reading the head")
    columns = np.flatnonzero(seen & (capture.key_spans(head.layer)[:, 0] >= 0))
    behind = found.behind(capture, head.layer)
    return KeyScores(
        head, row, columns, attention[columns], slope[columns],
        None if behind is None else behind[columns],
    )  # fmt: skip


def question_of(
    model_goal: str, logits: np.ndarray | None, prompt: Prompt, position: int | None
) -> Question | None:
    """What is asked where nobody says: the class the model gives; the token that comes next in the
    text, or, where there is none or the model fills in, the one that the model gives there.
    """
    if logits is None or model_goal == "states":
        return None
    if model_goal == "classes":
        return Question(int(np.argmax(logits)))
    at = prompt.last if position is None else min(position, len(prompt) - 1)
    follows = model_goal == "next" and at + 1 < len(prompt)
    return Question(int(prompt.ids[at + 1]) if follows else int(np.argmax(logits[at])), at)
