"""Two models or captures beside each other: their maps on a text, their answers on some data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hgviz.core import Capture, HgvizError, Off, Step, Task
from hgviz.tasks.opening import Path_
from hgviz.tasks.scoring import examples_from

if TYPE_CHECKING:
    from hgviz.analysis.comparison import Comparison
    from hgviz.analysis.disagreement import Disagreement
    from hgviz.analysis.evaluation import Answers
    from hgviz.examples import Examples
    from hgviz.models.model import Model

GOALS = {
    "next": "the next token", "masked": "masked tokens", "classes": "a class",
    "states": "hidden states",
}  # fmt: skip


def compare(a: Capture, b: Capture, every: bool = False) -> Task[Comparison]:
    """The maps and logits of two captures beside each other, head by head.

    every: all rows of long maps, too, not some that are spread evenly. Steps carry what is measured
    so far. Errors: HgvizError where their texts have nothing in common.
    """
    from hgviz.analysis import comparison

    return (yield from comparison.compare(a, b, every))


def compare_answers(
    a: Model,
    b: Model,
    data: Path_,
    text_column: str = "",
    label_column: str = "",
    off: Off = frozenset(),
    limit: int | None = None,
) -> Task[Disagreement]:
    """What two models answer on the same data, and how sure it is that they differ.

    off: heads that are off in B. limit: on so many examples at most, the same ones for both.
    Errors: HgvizError for data that cannot be used, and for models that are asked other things.
    """
    from hgviz.analysis.disagreement import disagreement

    if a.spec.goal != b.spec.goal:
        raise HgvizError(
            "these two cannot be scored on the same data",
            f"A gives {GOALS[a.spec.goal]} and B {GOALS[b.spec.goal]}",
            "Choose two models of one kind",
        )
    yield Step(0, 2, f"reading {Path(data).name}")
    one, other = (examples_from(model, data, text_column, label_column) for model in (a, b))
    if limit is not None:
        one, other = one.sample(limit), other.sample(limit)
    first = yield from _answers(a, one, frozenset(), "A", 0)
    second = yield from _answers(b, other, off, "B", 1)

    def name(answer: int) -> str:
        return one.labels[answer] if one.labels else _token(a, answer)

    return disagreement((one, other), (first, second), name, (frozenset(), off))


def _answers(model: Model, examples: Examples, off: Off, name: str, done: int) -> Task[Answers]:
    from hgviz.analysis.evaluation import Answers
    from hgviz.models.measures.trials import Trials

    found, trials, seen = Answers.none(examples), Trials(model, examples, off, keep=0), 0
    for batch in (batch for block in trials.blocks for batch in block):
        yield Step(done + seen / len(examples), 2, f"model {name}")
        found.put(examples, batch, trials.whole(batch))
        seen += len(batch.rows)
    return found


def _token(model: Model, number: int) -> str:
    """What a token stands for; a byte that is no character, by its name."""
    prompt = model.tokenizer.decode(np.array([number], np.int64))
    label = prompt.label(0)
    return prompt.pieces[0] if "\N{REPLACEMENT CHARACTER}" in label else label


__all__ = ["compare", "compare_answers"]
