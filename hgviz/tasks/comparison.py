"""Two models or captures compared: their maps of a text, and their answers to the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hgviz.analysis import comparison
from hgviz.analysis.comparison import compare as compare
from hgviz.analysis.metrics import Gradients, distances_between, measure_text
from hgviz.analysis.statistics import finite_or_none
from hgviz.analysis.tokens import Layout
from hgviz.core import (
    Capture,
    HeadId,
    HeadSet,
    HgvizError,
    ModelSpec,
    progress,
    progress_within,
)
from hgviz.errors import require
from hgviz.examples import WINDOW, Examples, describe_sample
from hgviz.language import sentence
from hgviz.tasks.attribution import token_name
from hgviz.tasks.captures import capture, read_prompts, require_attention
from hgviz.tasks.scoring import answers_of, examples_from

if TYPE_CHECKING:
    from hgviz.figures.page import Many
    from hgviz.models.attribution import ScoreGradients
    from hgviz.models.model import Model
    from hgviz.models.trials import Trials

GOALS = {
    "next": "the next token", "masked": "masked tokens", "classes": "a class",
    "states": "hidden states", "tags": "classes of tokens", "ends": "ends of answers",
}  # fmt: skip
NOUNS = {"text": "text", "image": "image", "audio": "sound"}
METRIC_TEXTS = 128  # texts whose head metrics are measured by default
METRIC_TOKENS = 8 * WINDOW  # the same for language models, whose windows are longer

Names = Mapping[str, str] | None  # the labels of the data and what a model calls them


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """Everything that is measured of two models on the same data.

    Attributes:
        heads_off: heads that are switched off in B.
        answers: the scores of both on all data, and where they differ.
        a, b: the metrics of their heads on some of the texts.
        changes: B less A of every metric.
        across: (heads of A, heads of B) mean Jensen-Shannon distance of two heads over texts, None
            where the models tokenize every text differently.
        text, captures: the text whose maps are shown, and the maps of both.
        maps: the captures compared head by head, None where they share no token.
        examples: how many examples the data have.
    """

    models: tuple[ModelSpec, ModelSpec]
    heads_off: HeadSet
    data: str
    answers: comparison.Disagreement
    a: comparison.ModelMetrics
    b: comparison.ModelMetrics
    changes: tuple[comparison.MetricChange, ...]
    across: Many | None
    text: str
    captures: tuple[Capture, Capture]
    maps: comparison.Comparison | None
    sample: str
    notes: tuple[str, ...] = ()

    @property
    def noun(self) -> str:
        """What both models read: text, image or sound."""
        return NOUNS[self.models[0].modality]

    @property
    def names(self) -> tuple[str, str]:
        """The names of A and B, marked "(A)" and "(B)" where they are the same."""
        a, b = (spec.name or "model" for spec in self.models)
        b += ", heads off" if self.heads_off else ""
        return (f"{a} (A)", f"{b} (B)") if a == b else (a, b)

    def to_dict(self) -> dict[str, Any]:
        """Every number, as `hgviz compare --json` prints it."""
        heads = [
            {
                "side": side, "head": str(head), "metric": name,
                **{end: finite_or_none(float(number))
                   for end, number in zip(("value", "low", "high"), numbers, strict=True)},
            }
            for side, metrics in (("a", self.a), ("b", self.b))
            for name in metrics.values
            for head, *numbers in zip(metrics.heads, *metrics.of_heads(name), strict=True)
        ]  # fmt: skip
        return {
            "kind": "report",
            "data": self.data,
            **{
                side: {"model": spec.name, "checkpoint": spec.digest}
                for side, spec in zip("ab", self.models, strict=True)
            },
            "off": sorted(map(str, self.heads_off)),
            "answers": self.answers.to_dict(),
            "texts": self.a.texts,
            "metrics": [change.to_dict() for change in self.changes],
            "heads": heads,
            "maps": self.maps and self.maps.to_dict(),
            "notes": list(self.notes),
        }


def compare_answers(
    a: Model,
    b: Model,
    data: str | Path,
    text_column: str = "",
    label_column: str = "",
    off: HeadSet = frozenset(),
    limit: int | None = None,
    labels: tuple[Names, Names] = (None, None),
    batch_size: int | None = None,
) -> comparison.Disagreement:
    """Compare the answers of two models to the same data, or their hidden states.

    off: heads that are switched off in B. limit, batch_size: as in scoring.examples_from, the same
    examples for both. labels: the labels of the data and what A and B call them. Raises HgvizError
    for data that cannot be used, and for models with different goals.
    """
    sides = _read_sides((a, b), data, (text_column, label_column), labels, limit, batch_size)
    return _compare_answers((a, b), sides, off)


def compare_models(
    a: Model,
    b: Model,
    data: str | Path,
    text: str = "",
    text_column: str = "",
    label_column: str = "",
    off: HeadSet = frozenset(),
    limit: int | None = None,
    texts: int | None = None,
    labels: tuple[Names, Names] = (None, None),
    signal: str | Path | None = None,
    batch_size: int | None = None,
) -> ModelComparison:
    """Compare two models on the same data: their answers to all of it, the metrics of their heads
    on some of it, and their maps of one text.

    off, limit, labels, batch_size: as in compare_answers. texts: how many examples the metrics are
    measured on. text, signal: the text, or the file of an image or a sound, whose maps are
    compared; by default one that is answered differently. Raises HgvizError for data that cannot
    be used, for models with different goals, and for models that give hidden states.
    """
    for model in (a, b):
        require_attention(model.spec)
        require(
            model.spec.goal != "states",
            "a report needs predictions that are right or wrong: these models output hidden states",
            "Use -o OUT.json or OUT.csv instead",
        )
    shown = None
    if text or signal is not None:
        shown = tuple(read_prompts(m, text or None, signal_file=signal)[0] for m in (a, b))
    with progress_within(0.0, 0.2, 1.0):  # shares of the time, about
        sides = _read_sides((a, b), data, (text_column, label_column), labels, limit, batch_size)
        answers = _compare_answers((a, b), sides, off)
    measured = [
        examples.sample_of(METRIC_TOKENS) if texts is None and examples.asked == "next"
        else examples
        for examples in sides
    ]  # fmt: skip
    measured = [examples.sample(texts or METRIC_TEXTS) for examples in measured]
    with progress_within(0.2, 0.9, 1.0):
        metrics_a, metrics_b, across = _measure_heads((a, b), measured, off)
    is_cut = False
    if shown is not None:
        text = text or shown[0].text
    elif a.spec.modality == "text" and measured[0].asked != "ends":
        # the shortest text that both classify differently, or else the first
        whole = measured[0].rows[0].text
        if measured[0].asked == "classes":
            whole = min((answer.text for answer in answers.differing), key=len, default=whole)
        text = _cut_to_fit((a, b), whole)
        is_cut = text != whole
        shown = a.tokenize(text), b.tokenize(text)
    else:
        number = answers.differing[0].example if answers.differing else 0
        rows = [side.rows[number] for side in sides]
        shown = a.of_example(rows[0]), b.of_example(rows[1])
        text = shown[0].text
    with progress_within(0.9, 1.0, 1.0):
        captures = capture(a, shown[0]), capture(b, shown[1], off=off)
    notes = [_without_slopes("A", metrics_a), _without_slopes("B", metrics_b)]
    try:
        maps = compare(*captures)
    except HgvizError as error:  # the two share no token
        maps = None
        notes.append(sentence(error.what))
    if across is None:
        notes.append(
            "Distances between heads of A and of B are not measured: "
            "the models tokenize every text differently, or have different levels."
        )
    if is_cut:
        notes.append("The text of the maps is truncated to the maximum length of both models.")
    if answers.agreement is not None:
        notes += map(sentence, answers.notes)
    if maps is not None:
        notes += map(sentence, maps.notes)
    return ModelComparison(
        (a.spec, b.spec), off, Path(data).name, answers, metrics_a, metrics_b,
        comparison.metric_changes(metrics_a, metrics_b), across, text, captures, maps,
        describe_sample(sides[0].asked, len(sides[0]), answers.a.texts),
        tuple(note for note in notes if note),
    )  # fmt: skip


def _read_sides(
    models: tuple[Model, Model],
    data: str | Path,
    columns: tuple[str, str],
    labels: tuple[Names, Names],
    limit: int | None,
    batch_size: int | None,
) -> tuple[Examples, Examples]:
    """The data as each model reads it.

    Of questions only those whose answer both models read, in one order. Raises HgvizError for
    models that read different kinds of input, or have different goals.
    """
    from hgviz.models.model import READS

    kinds = [(READS[model.spec.modality], GOALS[model.spec.goal]) for model in models]
    for what, in_a, in_b in zip(("reads", "outputs"), *kinds, strict=True):
        require(
            in_a == in_b,
            f"these models cannot be scored on the same data: A {what} {in_a}, B {in_b}",
            "Choose two models of the same kind",
        )
    progress(0, 2, f"reading {Path(data).name}")
    a, b = (
        examples_from(model, data, *columns, names, batch_size=batch_size)
        for model, names in zip(models, labels, strict=True)
    )
    sources_a, sources_b = ([row.source for row in side.rows] for side in (a, b))
    if a.asked == "ends" and sources_a != sources_b:
        common = {*sources_a} & {*sources_b}
        what = "no answer is within the maximum length of both models"
        require(common, what, "Use shorter texts")
        a, b = (
            replace(
                side.part([row for row, source in enumerate(sources) if source in common]),
                cut=side.cut + len(side) - len(common),
            )
            for side, sources in ((a, sources_a), (b, sources_b))
        )
        b = replace(b, order=a.order)
    return (a, b) if limit is None else (a.sample(limit), b.sample(limit))


def _compare_answers(
    models: tuple[Model, Model], sides: tuple[Examples, Examples], off: HeadSet
) -> comparison.Disagreement:
    """The answers of two models to the same data, or their hidden states."""
    from hgviz.models.trials import Trials

    heads_off = (frozenset[HeadId](), off)
    trials = [
        Trials(model, examples, heads, cache_bytes=0)
        for model, examples, heads in zip(models, sides, heads_off, strict=True)
    ]
    if sides[0].asked == "states":
        a, b = (one.states(one.examples.batch([0])).shape[-1] for one in trials)
        require(
            a == b,
            "the hidden states of these models cannot be compared: "
            f"their width is {a:,} in A and {b:,} in B",
            "Choose two models of the same width",
        )
        states = _states(trials[0], "model A", 0), _states(trials[1], "model B", 1)
        return comparison.compare_states(sides[0], states, heads_off)
    answers = []
    for number, one in enumerate(trials):
        with progress_within(number, number + 1, 2):
            answers.append(answers_of(one, one.baseline, f"model {'AB'[number]}"))

    def name(answer: int) -> str:
        labels = sides[0].labels
        return labels[answer] if labels else token_name(models[0], answer)

    return comparison.compare_answers(sides, (answers[0], answers[1]), name, heads_off)


def _states(trials: Trials, name: str, done: int) -> Any:
    """(examples, width) hidden states of unit length."""
    states = dict[int, Any]()
    for batch in trials.batches:
        progress(done + len(states) / len(trials.examples), 2, name)
        states |= dict(zip(batch.rows.tolist(), trials.states(batch).cpu().numpy(), strict=True))
    return np.stack([states[row] for row in range(len(trials.examples))])


# --- heads ----------------------------------------------------------------------------------------


def _measure_heads(
    models: tuple[Model, Model], examples: Sequence[Examples], off: HeadSet
) -> tuple[comparison.ModelMetrics, comparison.ModelMetrics, Many | None]:
    """The metrics of the heads of both, and the mean distances between them over texts."""
    sides = [comparison.MetricCollector(model.spec) for model in models]
    across, total = comparison.NanMean(), min(map(len, examples))
    for number in range(total):
        progress(number, total, f"heads of both on text {number + 1:,} of {total:,}")
        text_a, text_b = (
            measure_text(_gradients(model, side, number, heads_off), model.spec)
            for model, side, heads_off in zip(models, examples, (frozenset(), off), strict=True)
        )
        sides[0].add(text_a)
        sides[1].add(text_b)
        # of images and sounds the ids say how many positions there are
        if np.array_equal(examples[0].rows[number].ids, examples[1].rows[number].ids):
            across.add(distances_between(text_a, text_b))
    return sides[0].metrics(), sides[1].metrics(), across.value()


class _GradientsAndWeights:
    """The gradients of one example; of layers without scores, such as a Synthesizer's, only the
    weights, with slopes of zero."""

    def __init__(self, gradients: ScoreGradients, capture: Capture) -> None:
        self.gradients, self.capture = gradients, capture

    def shape(self, layer: int) -> tuple[int, int, int]:
        """Heads, queries and keys of a layer."""
        maps = self.capture.maps[layer]
        assert maps is not None
        return self.gradients.shape(layer) if layer in self.gradients.layers else maps.shape

    def rows(self, layer: int, rows: range) -> Gradients:
        """Weights and slopes of some rows of all heads of a layer."""
        from hgviz.models.attribution import Slopes

        if layer in self.gradients.layers:
            return self.gradients.rows(layer, rows)
        maps = self.capture.maps[layer]
        assert maps is not None
        heads = self.capture.spec.layers[layer].heads
        weights = np.stack([maps.read(head, rows) for head in heads])
        columns = slice(0, weights.shape[2])
        seen = Layout(self.capture, layer, {}).block(slice(rows.start, rows.stop), columns).seen
        zeros = np.zeros_like(weights)
        return Slopes(heads, rows, zeros, weights, zeros, zeros, seen | (weights != 0).any(0))


def _gradients(
    model: Model, examples: Examples, number: int, off: HeadSet
) -> ScoreGradients | _GradientsAndWeights:
    """The gradients of the log odds of what is wanted of an example, in every layer of a model."""
    from hgviz.models.attribution import ScoreGradients, log_odds
    from hgviz.models.model import batch_tokens

    batch, dtype = examples.batch([number]), next(model.module.parameters()).dtype
    tokens = batch_tokens(batch, model.device, dtype)
    gradients = ScoreGradients(model.module, tokens, log_odds(batch.wanted[0]), off)
    if not _lacking(model.spec, gradients.layers):
        return gradients
    row = examples.rows[number]
    prompt = model.of_example(row if row.first is None else row.first)
    target = None if row.first is None else model.of_example(row)
    return _GradientsAndWeights(gradients, capture(model, prompt, off=off, target=target))


def _without_slopes(name: str, side: comparison.ModelMetrics) -> str:
    """A note on the layers that have no gradients, "" where every layer has them."""
    with_slopes = np.flatnonzero(np.isfinite(side.values["slope"]).any(0))
    layers = {side.heads[number].layer for number in with_slopes}
    if not (lacking := _lacking(side.spec, layers)):
        return ""
    return (
        f"{name} has no gradients in layers {', '.join(map(str, lacking))}, "
        "which have no scores, or on which no output depends."
    )


def _lacking(spec: ModelSpec, layers: Any) -> list[int]:
    """The layers with heads that are not among those given."""
    return [layer.index for layer in spec.layers if layer.heads and layer.index not in layers]


def _cut_to_fit(models: tuple[Model, Model], text: str) -> str:
    """The beginning of a text for which both models have positions."""
    for model in models:
        room = model.spec.max_positions
        while text and room and (tokens := len(model.tokenizer.encode(text))) > room:
            text = text[: min(len(text) - 1, len(text) * room // tokens)]
    return text
