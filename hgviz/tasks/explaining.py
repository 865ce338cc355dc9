"""Where an answer comes from: tokens, layers, heads, and one head beside its own attention."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from hgviz.core import Capture, HeadId, HeadSet, HgvizError, Prompt, progress, progress_within
from hgviz.tasks.opening import require_attention

if TYPE_CHECKING:
    from hgviz.analysis.attribution import Attribution, Beside, Question
    from hgviz.models.model import Model

Found = TypeVar("Found")

ROWS = 256  # of a map that are added up at a time
FEWER = 4  # layers are walked through one by one, each with so many times fewer steps
LEAST_STEPS = 16


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
    from hgviz.analysis.attribution import Attribution
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


def head_beside(found: Attribution, capture: Capture, head: HeadId, query: int | None) -> Beside:
    """One head, for a query (a token) or, None, all of them: its attention, gradient times
    attention, and what the tokens behind its keys add to the answer.
    """
    from hgviz.analysis.attribution import Beside

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
    return Beside(
        head, row, columns, attention[columns], slope[columns],
        None if behind is None else behind[columns],
    )  # fmt: skip


def question_of(
    model_goal: str, logits: np.ndarray | None, prompt: Prompt, position: int | None
) -> Question | None:
    """What is asked where nobody says: the class the model gives; the token that comes next in the
    text, or, where there is none or the model fills in, the one that the model gives there.
    """
    from hgviz.analysis.attribution import Question

    if logits is None or model_goal == "states":
        return None
    if model_goal == "classes":
        return Question(int(np.argmax(logits)))
    at = prompt.last if position is None else min(position, len(prompt) - 1)
    follows = model_goal == "next" and at + 1 < len(prompt)
    return Question(int(prompt.ids[at + 1]) if follows else int(np.argmax(logits[at])), at)
