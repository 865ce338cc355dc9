"""Where one answer of a model comes from, beside what a head looks at there: numbers, no model.

Attention is not explanation (Jain and Wallace 2019): whether the keys that a head looks at most are
those that the answer comes from is told by Spearman's rank correlation, of sizes, over the keys
that the query sees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.statistics import spearman
from hgviz.core import Capture, HeadId, HeadSet, Integers, Prompt

Doubles = NDArray[np.float64]

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
class Beside:
    """The keys of a query, or of all queries, in one head: how they are looked at and what comes of
    it. columns (keys,): the numbers of those seen that stand for tokens; all else (keys,).

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


__all__ = ["COMPLETE", "Attribution", "Beside", "Question"]
