"""Training models and scoring them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hgviz.core import HgvizError, Off, Step, Task
from hgviz.tasks.opening import Path_

if TYPE_CHECKING:
    from hgviz.analysis.evaluation import Evaluation
    from hgviz.examples import Examples
    from hgviz.models.model import Model
    from hgviz.models.training import Report


def train(config: Path_, out: Path_) -> Task[Report]:
    """Train a model from a TOML file into a folder; started again, it goes on where it was."""
    yield Step(0, 1, "loading torch")
    from hgviz.models import training

    return (yield from training.train(training.read_plan(config), out))


def evaluate(
    model: Model,
    data: Path_,
    text_column: str = "",
    label_column: str = "",
    off: Off = frozenset(),
) -> Task[Evaluation]:
    """Score a model: a classifier on labelled rows, a language model on a text or a column of them.

    Each Step carries the Score so far: texts come in one random order, so it is unbiased and its
    interval shrinks. Errors: HgvizError for data that cannot be used and labels it never learnt.
    """
    from hgviz.analysis import evaluation
    from hgviz.models.measures.trials import Trials

    yield Step(0, 1, f"reading {Path(data).name}")
    examples = examples_from(model, data, text_column, label_column)
    trials = Trials(model, examples, off, keep=0)
    return (yield from evaluation.evaluate(trials.whole, examples, off))


def examples_from(
    model: Model, data: Path_, text_column: str = "", label_column: str = ""
) -> Examples:
    """What a model is scored on: labelled rows for a classifier, else the tokens of a text, or of
    each text of a table by itself.

    Errors: HgvizError for data that cannot be used, and for a model that gives no answers.
    """
    from hgviz import examples
    from hgviz.models.texts import text as texts
    from hgviz.models.texts.labelled import is_table, read_rows, read_texts

    spec, encode = model.spec, model.tokenizer.encode
    if spec.two_texts or spec.goal == "states":
        raise HgvizError(
            "this model cannot be scored",
            "it needs a second text" if spec.two_texts else "it gives hidden states, no answers",
            "Choose a classifier, a language model or a masked language model",
        )
    limit = spec.max_positions
    if spec.goal == "classes":
        rows = read_rows(data, text_column, label_column)
        wanted = rows.numbers(spec.labels)
        return examples.labelled([encode(one) for one in rows.texts], wanted, spec.labels, limit)
    found = read_texts(data, text_column) if is_table(data) else (texts.read_text(data),)
    prompts = [encode(one) for one in found]
    if spec.goal == "next":
        return examples.following(prompts, limit)
    named = encode("[MASK]")  # what stands for a hidden token, by the tokenizer's own name
    masks = [int(one) for one, piece in zip(named.ids, named.pieces, strict=True)
             if piece in ("[MASK]", "<mask>")]  # fmt: skip
    if not masks:
        raise HgvizError("the tokenizer has no [MASK]", "", "Use the model's own tokenizer")
    return examples.masked(prompts, masks[0], limit)
