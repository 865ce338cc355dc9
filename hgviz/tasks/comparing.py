"""Two models or captures beside each other: their maps on a text, their answers on some data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hgviz.core import Capture, HeadSet, HgvizError, progress
from hgviz.errors import require
from hgviz.examples import Examples
from hgviz.tasks.attributing import said_by
from hgviz.tasks.opening import Path_
from hgviz.tasks.scoring import examples_from

if TYPE_CHECKING:
    from hgviz.analysis.comparison import Comparison, Disagreement
    from hgviz.analysis.statistics import Answers
    from hgviz.models.model import Model
    from hgviz.models.trials import Trials

GOALS = {
    "next": "the next token", "masked": "masked tokens", "classes": "a class",
    "states": "hidden states", "tags": "classes of tokens", "ends": "ends of answers",
}  # fmt: skip
Names = Mapping[str, str] | None  # what a model calls the labels of the data


def compare(a: Capture, b: Capture, every_row: bool = False) -> Comparison:
    """The maps and logits of two captures beside each other, head by head.

    every_row: all rows of long maps, too, not some that are spread evenly. The progress carries
    what is measured so far. Errors: HgvizError where their texts have nothing in common.
    """
    from hgviz.analysis import comparison

    return comparison.compare(a, b, every_row)


def compare_answers(
    a: Model,
    b: Model,
    data: Path_,
    text_column: str = "",
    label_column: str = "",
    off: HeadSet = frozenset(),
    limit: int | None = None,
    labels: tuple[Names, Names] = (None, None),
) -> Disagreement:
    """What two models answer on the same data, and how sure it is that they differ; of models that
    give hidden states, how far those of B are from A's.

    off: heads that are off in B. limit: on so many examples at most, the same ones for both.
    labels: what A and B call the labels of the data. Errors: HgvizError for data that cannot be
    used, and for models that are asked other things.
    """
    from hgviz.analysis import comparison
    from hgviz.models.trials import Trials

    require_alike(a, b)
    progress(0, 2, f"reading {Path(data).name}")
    one, other = (
        examples_from(model, data, text_column, label_column, names)
        for model, names in zip((a, b), labels, strict=True)
    )
    one, other = in_both(one, other)
    if limit is not None:
        one, other = one.sample(limit), other.sample(limit)
    if one.asked == "states":
        sides = Trials(a, one, cache_bytes=0), Trials(b, other, off, cache_bytes=0)
        require_widths(*sides)
        first = _states_of(sides[0], "model A", 0)
        second = _states_of(sides[1], "model B", 1)
        return comparison.compare_states(one, (first, second), (frozenset(), off))
    first = _answers_of(Trials(a, one, cache_bytes=0), "model A", 0)
    second = _answers_of(Trials(b, other, off, cache_bytes=0), "model B", 1)

    def name(answer: int) -> str:
        return one.labels[answer] if one.labels else said_by(a, answer)

    return comparison.compare_answers((one, other), (first, second), name, (frozenset(), off))


def require_alike(a: Model, b: Model) -> None:
    """Errors: HgvizError for models that read other things, or are asked other things."""
    from hgviz.models.model import READS

    if a.spec.modality != b.spec.modality:
        raise HgvizError(
            "these two cannot be scored on the same data: "
            f"A reads {READS[a.spec.modality]} and B {READS[b.spec.modality]}",
            "Choose two models of one kind",
        )
    if a.spec.goal != b.spec.goal:
        raise HgvizError(
            "these two cannot be scored on the same data: "
            f"A gives {GOALS[a.spec.goal]} and B {GOALS[b.spec.goal]}",
            "Choose two models of one kind",
        )


def require_widths(a: Trials, b: Trials) -> None:
    """Errors: HgvizError for models whose states are of other widths, by one example of each."""
    widths = [one.states(one.examples.batch([0])).shape[-1] for one in (a, b)]
    if widths[0] != widths[1]:
        raise HgvizError(
            "the states of these two cannot be compared: "
            f"those of A have {widths[0]:,} numbers and those of B {widths[1]:,}",
            "Choose two models of one width",
        )


def _states_of(trials: Trials, name: str, done: int) -> Any:
    """(examples, d) What a model makes of its examples, of unit length."""
    examples, parts = trials.examples, dict[int, Any]()
    for batch in (batch for block in trials.blocks for batch in block):
        progress(done + len(parts) / len(examples), 2, name)
        parts |= dict(zip(batch.rows.tolist(), trials.states(batch).cpu().numpy(), strict=True))
    return np.stack([parts[row] for row in range(len(examples))])


def _answers_of(trials: Trials, name: str, done: int) -> Answers:
    """The answers of a model to its examples."""
    from hgviz.analysis.statistics import Answers

    examples = trials.examples
    found, seen = Answers.unasked(examples), 0
    for batch in (batch for block in trials.blocks for batch in block):
        progress(done + seen / len(examples), 2, name)
        found.put(examples, batch, trials.baseline(batch))
        seen += len(batch.rows)
    return found


def in_both(one: Examples, other: Examples) -> tuple[Examples, Examples]:
    """Of the questions that two models read those that both do, in one order; other examples are
    given back as they are. Errors: HgvizError where there are none."""
    sources = [[row.source for row in side.rows] for side in (one, other)]
    if one.asked != "ends" or sources[0] == sources[1]:
        return one, other
    common = {*sources[0]} & {*sources[1]}
    require(
        common,
        "these two read no answer in common: "
        "where one reads it, it lies beyond what the other reads",
        "Take shorter texts",
    )
    first, second = (
        replace(
            side.part([at for at, source in enumerate(which) if source in common]),
            cut=side.cut + len(side) - len(common),
        )
        for side, which in zip((one, other), sources, strict=True)
    )
    return first, replace(second, order=first.order)


__all__ = ["compare", "compare_answers", "require_alike"]
