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
    from hgviz.models.measures.trials import Trials
    from hgviz.models.model import Model
    from hgviz.tasks.sides import Sides

GOALS = {
    "next": "the next token", "masked": "masked tokens", "classes": "a class",
    "states": "hidden states", "tags": "classes of tokens", "ends": "ends of answers",
}  # fmt: skip
BESIDE = ("next", "masked", "classes")  # what answers of two models are set beside each other


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
    found: Sides | None = None,
) -> Task[Disagreement]:
    """What two models answer on the same data, and how sure it is that they differ.

    off: heads that are off in B. limit: on so many examples at most, the same ones for both. found:
    where workers measured it already, see tasks.sides. Errors: HgvizError for data that cannot be
    used, and for models that are asked other things.
    """
    from hgviz.analysis.disagreement import disagreement
    from hgviz.models.measures.trials import Trials

    require_alike(a, b)
    yield Step(0, 2, f"reading {Path(data).name}")
    one, other = (examples_from(model, data, text_column, label_column) for model in (a, b))
    if limit is not None:
        one, other = one.sample(limit), other.sample(limit)
    if found is not None:
        first, second = found.answers(0, one), found.answers(1, other)
    else:
        first = yield from answers_to(Trials(a, one, keep=0), "model A", 0)
        second = yield from answers_to(Trials(b, other, off, keep=0), "model B", 1)

    def name(answer: int) -> str:
        return one.labels[answer] if one.labels else _token(a, answer)

    return disagreement((one, other), (first, second), name, (frozenset(), off))


def require_alike(a: Model, b: Model) -> None:
    """Errors: HgvizError for models that are asked other things, or such as are compared by what
    they attend to alone."""
    from hgviz.models.inputs import READS

    for one in (a, b):
        if one.spec.modality != "text" or one.spec.goal not in BESIDE:
            text = one.spec.modality == "text"
            what = GOALS[one.spec.goal] if text else READS[one.spec.modality]
            raise HgvizError(
                "the answers of these two are not compared",
                f"{one.spec.name} is a model of {what}, of which only maps are",
                "Compare two captures: hgviz compare A.h5 B.h5",
            )
    if a.spec.goal != b.spec.goal:
        raise HgvizError(
            "these two cannot be scored on the same data",
            f"A gives {GOALS[a.spec.goal]} and B {GOALS[b.spec.goal]}",
            "Choose two models of one kind",
        )


def answers_to(
    trials: Trials, name: str = "", done: int = 0, some: range | None = None
) -> Task[Answers]:
    """What a model answers to its examples; some: only to these of its batches."""
    from hgviz.analysis.evaluation import Answers

    examples = trials.examples
    found, seen = Answers.none(examples), 0
    batches = [batch for block in trials.blocks for batch in block]
    for batch in batches if some is None else batches[some.start : some.stop]:
        yield Step(done + seen / len(examples), 2, name)
        found.put(examples, batch, trials.whole(batch))
        seen += len(batch.rows)
    return found


def _token(model: Model, number: int) -> str:
    """What a token stands for; a byte that is no character, by its name."""
    prompt = model.tokenizer.decode(np.array([number], np.int64))
    label = prompt.label(0)
    return prompt.pieces[0] if "\N{REPLACEMENT CHARACTER}" in label else label


__all__ = ["answers_to", "compare", "compare_answers", "require_alike"]
