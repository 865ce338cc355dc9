"""Two models beside each other, in everything that is measured here: for one report."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hgviz.core import (
    Capture,
    HeadId,
    HeadSet,
    HgvizError,
    ModelSpec,
    Prompt,
    Selection,
    progress,
    progress_within,
)
from hgviz.errors import require
from hgviz.examples import WINDOW, Asked, describe_sample
from hgviz.tasks.capturing import capture
from hgviz.tasks.comparing import Names, compare, compare_answers, in_both
from hgviz.tasks.opening import Path_, prompt_from, require_attention
from hgviz.tasks.scoring import examples_from

if TYPE_CHECKING:
    from hgviz.analysis.comparison import Comparison, Disagreement, MetricChange, ModelMetrics
    from hgviz.analysis.metrics import Gradients, TextMetrics
    from hgviz.examples import Examples
    from hgviz.figures.heatmap import Three
    from hgviz.figures.paper.axes import Many
    from hgviz.models.attribution import ScoreGradients
    from hgviz.models.model import Model

TEXTS = 128  # whose maps and slopes are measured, unless more or fewer are asked for
TOKENS = 8 * WINDOW  # of a language model, whose windows are longer
NOUNS = {"text": "text", "image": "image", "audio": "sound"}
SHARES = {"answers": 0.2, "heads": 0.7, "text": 0.1}  # of the work, about


@dataclass(frozen=True, slots=True)
class Laboratory:
    """All that a report says. across (heads of A, heads of B): the mean distance of their rows,
    None where no text is cut alike; of so many examples, texts were looked into; nearest: the head
    of A and that of B that are most alike, chosen: A's head that is least like B's of that number.
    """

    models: tuple[ModelSpec, ModelSpec]
    off: HeadSet
    data: str
    answers: Disagreement
    a: ModelMetrics
    b: ModelMetrics
    changes: tuple[MetricChange, ...]
    across: Many | None
    text: str
    captures: tuple[Capture, Capture]
    comparison: Comparison | None
    chosen: Three | None
    nearest: Three | None
    asked: Asked
    examples: int
    notes: tuple[str, ...] = ()

    @property
    def amount(self) -> str:
        """What their answers are to, in words."""
        return describe_sample(self.asked, self.examples, self.answers.a.texts)

    @property
    def noun(self) -> str:
        """What one of the things is called that both read."""
        return NOUNS[self.models[0].modality]

    @property
    def names(self) -> tuple[str, str]:
        """What A and B are called, told apart where they have one name."""
        one, other = (spec.name or "model" for spec in self.models)
        marked = ", heads off" if self.off else ""
        if one == other + marked:
            return f"{one} (A)", f"{other} (B)"
        return one, other + marked

    def facts(self) -> dict[str, Any]:
        """Every number of the report, as `hgviz compare --json` prints it."""
        heads = []
        for side, bench in (("a", self.a), ("b", self.b)):
            for name in bench.values:
                value, low, high = bench.of_heads(name)
                for at, head in enumerate(bench.heads):
                    ends = (value[at], low[at], high[at])
                    numbers = (float(x) if np.isfinite(x) else None for x in ends)
                    found = zip(("value", "low", "high"), numbers, strict=True)
                    heads.append({"side": side, "head": str(head), "metric": name, **dict(found)})
        return {
            "kind": "report",
            "data": self.data,
            **{
                side: {"model": spec.name, "checkpoint": spec.digest}
                for side, spec in zip("ab", self.models, strict=True)
            },
            "off": sorted(map(str, self.off)),
            "answers": self.answers.facts(),
            "texts": self.a.texts,
            "metrics": [one.facts() for one in self.changes],
            "heads": heads,
            "maps": None if self.comparison is None else self.comparison.facts(),
            "notes": list(self.notes),
        }


def laboratory(
    a: Model,
    b: Model,
    data: Path_,
    text: str = "",
    text_column: str = "",
    label_column: str = "",
    off: HeadSet = frozenset(),
    limit: int | None = None,
    texts: int | None = None,
    labels: tuple[Names, Names] = (None, None),
    signal: Path_ | None = None,
) -> Laboratory:
    """Measure two models on the same data: their answers to all of it, their heads and what
    reaches their scores on some of its texts, and their maps on one.

    off: heads that are off in B. limit: at most so many examples; texts: of which so many are
    looked into. text, or the file of a picture or a sound: whose maps are shown, "" for one that is
    answered differently. labels: as compare_answers. Errors: HgvizError for data that cannot be
    used, for models that are asked other things, and for such as give hidden states.
    """
    from hgviz.analysis.comparison import metric_changes
    from hgviz.tasks.charting import pair_chart

    for model in (a, b):
        require_attention(model.spec)
        _require_answers(model.spec)
    given = _given((a, b), text, signal)
    asked = (a, b, data, text_column, label_column)
    with _share("answers"):
        answers = compare_answers(*asked, off, limit, labels)
    progress(SHARES["answers"], 1, f"reading {Path(data).name}")
    sides = [
        examples_from(model, data, text_column, label_column, names)
        for model, names in zip((a, b), labels, strict=True)
    ]
    sides = [*in_both(*sides)]
    count = len(sides[0])
    some = [looked_into(one, limit, texts) for one in sides]
    with _share("heads"):
        one, other, across = _heads((a, b), some, off)
    if given is not None:
        whole = shown = text or given[0].text
    elif a.spec.modality == "text" and some[0].asked != "ends":
        whole = _shown(answers, some[0])
        shown = _fitting((a, b), whole)
        given = a.tokenize(shown), b.tokenize(shown)
    else:
        every = [one.sample(limit) if limit else one for one in sides]
        at = answers.differing[0].example if answers.differing else 0
        given = a.of_example(every[0].rows[at]), b.of_example(every[1].rows[at])
        whole = shown = given[0].text
    with _share("text"):
        captures = _captures((a, b), given, off)
    comparison = _compared(captures)
    least, alike = _pairs(comparison, across, one, other)
    notes = []
    if across is None:
        notes.append("A and B cut every text into other tokens, or at other levels, so the "
                     "distances of A's heads to B's are not given")  # fmt: skip
    notes += _without_slopes("A", one) + _without_slopes("B", other)
    if shown != whole:
        notes.append("the text whose maps are shown is cut to what both have positions for")
    if answers.agreement is not None:
        notes += answers.notes
    if comparison is not None:
        notes += comparison.notes
    charts = [
        None if chosen is None else pair_chart(captures[0], captures[1], chosen)
        for chosen in (least, alike)
    ]
    return Laboratory(
        (a.spec, b.spec), off, Path(data).name, answers, one, other, metric_changes(one, other),
        across, shown, captures, comparison, charts[0], charts[1], sides[0].asked,
        count, tuple(notes),
    )  # fmt: skip


def require_report(out: Path_) -> None:
    """Errors: HgvizError where no report can be written to a file, before anything is measured."""
    from hgviz.figures.report import require

    require(Path(out))


def words_of(text: str | None, text_file: Path_ | None) -> str:
    """The text that is given, as such or in a file, "" for none. Errors: HgvizError."""
    from hgviz.models.prompts import read_text

    return read_text(text_file) if text_file is not None else text or ""


def report(found: Laboratory, out: Path_, command: str = "hgviz compare") -> str:
    """Write what was measured as an HTML page; the same numbers give the same bytes."""
    from hgviz.figures.report import write
    from hgviz.tasks.telling import document

    progress(0, 1, f"writing {Path(out).name}")
    return str(write(document(found), Path(out), command))


# --- parts ----------------------------------------------------------------------------------------


def _share(name: str) -> AbstractContextManager[None]:
    """Report the progress made inside as that of a part of the work, one of SHARES."""
    names = list(SHARES)
    start = sum(SHARES[one] for one in names[: names.index(name)])
    return progress_within(start, start + SHARES[name], 1)


def _require_answers(spec: ModelSpec) -> None:
    """Errors: HgvizError for a model that gives no answers to be measured by."""
    require(
        spec.goal != "states",
        "there is no report on hidden states: "
        "it says what moves the odds of right answers, and these models give none",
        "Leave it out, or write OUT.json or OUT.csv",
    )


class _Passed:
    """A pass over one text and its way back; layers that have weights alone, no scores that they
    are made of, give these without slopes."""

    def __init__(self, scored: ScoreGradients, weighed: Capture) -> None:
        self.scored, self.weighed = scored, weighed

    def shape(self, layer: int) -> tuple[int, int, int]:
        """Heads, queries and keys of a layer."""
        one = self.weighed.maps[layer]
        assert one is not None
        return self.scored.shape(layer) if layer in self.scored.layers else one.shape

    def rows(self, layer: int, rows: range) -> Gradients:
        """Some rows of all its heads."""
        from hgviz.analysis.tokens import Layout
        from hgviz.models.attribution import Slopes

        if layer in self.scored.layers:
            return self.scored.rows(layer, rows)
        one = self.weighed.maps[layer]
        assert one is not None
        heads = self.weighed.spec.layers[layer].heads
        weights = np.stack([one.read(head, rows) for head in heads])
        part = slice(rows.start, rows.stop)
        there = Layout(self.weighed, layer, {}).block(part, slice(0, weights.shape[2])).seen
        none = np.zeros_like(weights)
        seen = there | (weights != 0).any(0)
        return Slopes(heads, rows, none, weights, none, none, seen)


def _passed(
    model: Model, examples: Examples, number: int, off: HeadSet
) -> ScoreGradients | _Passed:
    """What one text gives of every layer of a model."""
    from hgviz.models.attribution import example_gradients

    found = example_gradients(model, examples.batch([number]), off)
    if not _unscored(model.spec, found.layers):
        return found
    row = examples.rows[number]
    prompt = model.of_example(row if row.first is None else row.first)
    target = None if row.first is None else model.of_example(row)
    return _Passed(found, capture(model, prompt, off=off, target=target))


def _without_slopes(name: str, side: ModelMetrics) -> list[str]:
    """A sentence on the layers that no head of has slopes, nothing where there are none."""
    seen = {
        head.layer
        for at, head in enumerate(side.heads)
        if np.isfinite(side.values["slope"][:, at]).any()
    }
    lack = ", ".join(map(str, _unscored(side.spec, sorted(seen))))
    why = "which have weights alone, or which no answer depends on"
    return [f"{name} has no slopes in its layers {lack}, {why}"] if lack else []


def _unscored(spec: ModelSpec, met: Sequence[int]) -> list[int]:
    """The layers with heads that are not among those that were met."""
    return [one.index for one in spec.layers if one.heads and one.index not in met]


def _given(
    models: tuple[Model, Model], text: str, signal: Path_ | None
) -> tuple[Prompt, Prompt] | None:
    """What is to be shown, as both read it; None where nobody said it. Errors: HgvizError."""
    if not text and signal is None:
        return None
    one, other = (prompt_from(m, text or None, signal_file=signal)[0] for m in models)
    return one, other


def looked_into(examples: Examples, limit: int | None, texts: int | None) -> Examples:
    """Those whose heads are measured."""
    some = examples.sample(limit) if limit else examples
    if texts is None and some.asked == "next":
        some = some.sample_of(TOKENS)
    return some.sample(texts or TEXTS)


def _heads(
    models: tuple[Model, Model], some: Sequence[Examples], off: HeadSet
) -> tuple[ModelMetrics, ModelMetrics, Many | None]:
    """What the heads of both do with each text, and how far they are apart."""
    from hgviz.analysis.comparison import MetricCollector, NanMean

    sides = [MetricCollector(model.spec) for model in models]
    beside, total = NanMean(), min(map(len, some))
    for number in range(total):
        progress(number, total, f"heads of both on text {number + 1:,} of {total:,}")
        looked = heads_on(models, some, number, off)
        for side, text in zip(sides, looked[:2], strict=True):
            side.add(text)
        if looked[2] is not None:
            beside.add(looked[2])
    return sides[0].metrics(), sides[1].metrics(), beside.value()


def heads_on(
    models: Sequence[Model], some: Sequence[Examples], number: int, off: HeadSet
) -> tuple[TextMetrics, TextMetrics, Many | None]:
    """What the heads of both do with one text and, where both cut it alike, how far apart they are
    (heads of A, heads of B). off: heads that are off in B."""
    from hgviz.analysis.metrics import distances_between, measure_text

    rows, found = [one.rows[number] for one in some], []
    for model, side, gone in zip(models, some, (frozenset[HeadId](), off), strict=True):
        found.append(measure_text(_passed(model, side, number, gone), model.spec))
    one, other = found
    alike = np.array_equal(rows[0].ids, rows[1].ids)  # of pictures and sounds as many positions
    return one, other, distances_between(one, other) if alike else None


def _shown(answers: Disagreement, some: Examples) -> str:
    """The text whose maps are shown: the shortest that is answered differently, or any."""
    if answers.differing and some.asked == "classes":
        texts = [one.text for one in answers.differing]
        return min(texts, key=len)
    return some.rows[0].text


def _fitting(models: tuple[Model, Model], text: str) -> str:
    """As much of a text as both models have positions for: rows of data are cut, too."""
    for model in models:
        room = model.spec.max_positions
        while text and room and (tokens := len(model.tokenizer.encode(text))) > room:
            text = text[: min(len(text) - 1, len(text) * room // tokens)]
    return text


def _captures(
    models: tuple[Model, Model], given: tuple[Prompt, Prompt], off: HeadSet
) -> tuple[Capture, Capture]:
    found = []
    for model, prompt, gone in zip(models, given, (frozenset[HeadId](), off), strict=True):
        found.append(capture(model, prompt, off=gone))
    return found[0], found[1]


def _compared(captures: tuple[Capture, Capture]) -> Comparison | None:
    """Head by head; None where the two texts share no token."""
    try:
        return compare(*captures)
    except HgvizError:
        return None


def _pairs(
    comparison: Comparison | None, across: Many | None, a: ModelMetrics, b: ModelMetrics
) -> tuple[Selection | None, Selection | None]:
    """The heads of one number that differ the most in the text, and those that are most alike of
    all over the data."""
    least = alike = None
    if comparison is not None and comparison.heads:
        known = [one for one in comparison.heads if one.js == one.js]
        most = max(known or comparison.heads, key=lambda one: one.js if one.js == one.js else 0.0)
        least = Selection(most.head.layer, most.head.head, beside=most.other)
    if across is not None and comparison is not None:
        i, j = np.unravel_index(int(np.nanargmin(across)), across.shape)
        alike = Selection(*a.heads[int(i)], beside=b.heads[int(j)])
    return least, alike


__all__ = [
    "Laboratory", "heads_on", "laboratory", "looked_into", "report", "require_report",
    "words_of",
]  # fmt: skip
