"""The report of two models: one HTML page of tables with fixed captions and four charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from hgviz.activations import ACTIVATIONS
from hgviz.analysis.comparison import HeadDifference
from hgviz.analysis.metrics import EDGES, METRICS, REPORT, metrics_for
from hgviz.core import ModelSpec, Selection, progress
from hgviz.figures import output
from hgviz.figures.charts import Grid, Grids, Line, Plot, Plots, Strip, Strips
from hgviz.figures.output import Block, Document, Notes, Picture, Table
from hgviz.figures.page import Many
from hgviz.language import number, one_line, p_value, percent, percentage_points
from hgviz.tasks.charts import pair_chart
from hgviz.tasks.comparison import ModelComparison

MOST_DIFFERENT = 8  # rows of the table of heads that differ most
EXAMPLES = 12  # rows of the table of examples that are answered differently
HEADS = 200  # rows of the table of all heads of a model
FEWEST = 0.05  # per cent of the cells: sizes of scores with fewer are not drawn
FRACTIONS = {0.125: "⅛", 0.25: "¼", 0.5: "½"}
SIGNED = partial(number, signed=True)


def write_report(
    comparison: ModelComparison, out: str | Path, command: str = "hgviz compare"
) -> str:
    """Write the comparison of two models as an HTML page and return its path.

    command: what makes the page again; it stands at its end. The same numbers give the same bytes.
    """
    progress(0, 1, f"writing {Path(out).name}")
    return str(output.write_report(report_page(comparison), Path(out), command))


def report_page(comparison: ModelComparison) -> Document:
    """The page: predictions first, then the heads that differ most, then all measurements."""
    a, b = comparison.models
    blocks = (
        _scores(comparison), *_paired_answers(comparison), *_different_heads(comparison),
        _models(comparison), *_metrics(comparison), *_charts(comparison),
        *_different_answers(comparison), *_every_head(comparison), _definitions(),
        _method(comparison),
    )  # fmt: skip
    return Document(
        f"{comparison.names[0]} and {comparison.names[1]} on {comparison.data}",
        f"A is the first model, B the second. Predictions: {comparison.answers.a.score.total:,} of "
        f"{comparison.sample}. Heads: {comparison.a.texts:,} {comparison.noun}s. "
        "Brackets: 95 % intervals.",
        blocks,
        {
            "model": f"{a.name}, {b.name}",
            "checkpoint": f"{a.digest}, {b.digest}",
            "data": comparison.data,
            "texts": str(comparison.a.texts),
        },
    )


# --- answers --------------------------------------------------------------------------------------


def _scores(comparison: ModelComparison) -> Table:
    """The score of each model with its interval, and their difference."""
    answers = comparison.answers
    bits = answers.a.score.metric == "bits_per_byte"
    more = {name: label for name, label in (("f1", "F1"), ("mcc", "Matthews correlation"))
            if getattr(answers.a, name) is not None}  # fmt: skip
    rows = []
    for name, spec, side in zip("AB", comparison.models, (answers.a, answers.b), strict=True):
        ends = (side.score.value, side.score.low, side.score.high)
        score = _interval(*ends, number if bits else percent)
        others = (f"{getattr(side, other):.3f}" for other in more)
        rows.append((f"{name}, {spec.name}", score, f"{side.loss:.4f}", *others))
    if answers.difference is not None:
        apart = _interval(*answers.difference, SIGNED if bits else percentage_points)
        rows.append(("B − A", apart if bits else f"{apart} points", *[""] * (1 + len(more))))
    columns = ("", "Bits per byte" if bits else "Accuracy", "Loss (nats)", *more.values())
    return Table("Scores", columns, tuple(rows))


def _paired_answers(comparison: ModelComparison) -> Iterator[Table]:
    answers = comparison.answers
    if answers.agreement is not None and answers.p is not None:
        row = (
            f"{answers.pairs:,}", percent(answers.agreement), f"{answers.a_only:,}",
            f"{answers.b_only:,}", p_value(answers.p),
        )  # fmt: skip
        columns = ("Predictions", "Same", "Only A right", "Only B right", "McNemar’s exact test, p")
        yield Table("", columns, (row,), frozenset())


def _different_answers(comparison: ModelComparison) -> Iterator[Table]:
    differing = comparison.answers.differing
    rows = tuple(
        (one_line(answer.text), answer.wanted, answer.a, answer.b,
         f"{answer.loss_a:.3f}", f"{answer.loss_b:.3f}")
        for answer in differing[:EXAMPLES]
    )  # fmt: skip
    if rows:
        columns = (comparison.noun.capitalize(), "Label", "A", "B", "Loss of A", "Loss of B")
        caption = f"{len(rows):,} of {len(differing):,}, first those that one model gets right."
        yield Table("Different predictions", columns, rows, frozenset(range(4)), caption)


# --- heads ----------------------------------------------------------------------------------------


def _different_heads(comparison: ModelComparison) -> Iterator[Table]:
    rows = []
    for head in _by_distance(comparison)[:MOST_DIFFERENT]:
        name = str(head.head) if head.head == head.other else f"{head.head}, {head.other}"
        values = (head.js, head.largest, *head.entropy, *head.near_zero, *head.rank)
        rows.append((name, *map(number, values)))
    columns = (
        "Head", "JS distance", "Largest |A − B|", "Entropy, A", "Entropy, B", "Near-zero, A",
        "Near-zero, B", "Effective rank, A", "Effective rank, B",
    )  # fmt: skip
    caption = (
        "Heads of the same layer and index, sorted by the Jensen-Shannon distance of their maps on "
        f"the {comparison.noun} below: 0 identical, 1 no key in common."
    )
    if rows:
        yield Table("Heads that differ most", columns, tuple(rows), caption=caption)


def _by_distance(comparison: ModelComparison) -> list[HeadDifference]:
    """Heads of the same layer and number, those that differ most first."""
    heads = comparison.maps.heads if comparison.maps else ()
    return sorted(heads, key=lambda head: -np.nan_to_num(head.js, nan=-1.0))


def _metrics(comparison: ModelComparison) -> Iterator[Block]:
    """Every metric of both models: the change of its mean, and each head."""
    rows = [
        (_heading(change.name), number(change.a[0]), number(change.b[0]),
         _interval(*change.difference, SIGNED), p_value(change.p))
        for change in comparison.changes
    ]  # fmt: skip
    yield Table(
        "Metrics of heads", ("", "A", "B", "B − A", "p"), tuple(rows),
        caption=f"Means over heads and {comparison.a.texts:,} {comparison.noun}s; p for no "
        f"difference (normal, over {comparison.noun}s), adjusted for all metrics (Benjamini and "
        "Hochberg 1995).",
    )  # fmt: skip
    yield Picture(
        "", strips_chart(comparison),
        f"Marks: heads, mean over {comparison.noun}s. Bars: mean of all heads with its 95 % "
        "interval.",
    )  # fmt: skip


def _charts(comparison: ModelComparison) -> Iterator[Block]:
    """Gradients by the magnitude of scores, distances of heads, and the head that differs most."""
    yield Picture(
        "Gradients by the magnitude of scores", slopes_chart(comparison),
        "M is the log odds of the right class or token; S are scores, A weights. Left: magnitudes "
        f"of scores. Right: |dM/dS| over |dM/dA|, where at least {FEWEST} % of cells are.",
    )  # fmt: skip
    yield Picture(
        "Distances between heads", distances_chart(comparison),
        f"Jensen-Shannon distance, mean over {comparison.a.texts:,} {comparison.noun}s. Hatched: "
        "maps with different shapes.",
    )  # fmt: skip
    if heads := _by_distance(comparison):
        head, other = heads[0].head, heads[0].other
        selection = Selection(head.layer, head.head, beside=other)
        yield Picture(
            "The head that differs most", pair_chart(*comparison.captures, selection),
            f"{comparison.noun.capitalize()}: “{one_line(comparison.text)}”",
        )  # fmt: skip


def _every_head(comparison: ModelComparison) -> Iterator[Block]:
    metrics = metrics_for(REPORT)
    for name, side in zip("AB", (comparison.a, comparison.b), strict=True):
        values = [side.of_heads(metric)[0] for metric in metrics]
        heads = list(zip(side.heads, side.activations(), *values, strict=True))
        rows = tuple(
            (str(head), ACTIVATIONS[kind].name.replace("_", " "), *map(number, map(float, numbers)))
            for head, kind, *numbers in heads[:HEADS]
        )
        yield Table(
            f"All heads of {name}", ("Head", "Activation", *map(_heading, metrics)), rows,
            frozenset({0, 1}),
            f"The first {HEADS} of {len(heads):,}." if len(heads) > HEADS else "",
        )  # fmt: skip


# --- models, definitions and method ---------------------------------------------------------------


def _models(comparison: ModelComparison) -> Table:
    def layers(spec: ModelSpec) -> str:
        counts = [len(layer.heads) for layer in spec.layers]
        same = len(set(counts)) == 1
        return f"{len(counts)} × {counts[0]}" if same else f"{len(counts)}: {counts}"

    def activations(spec: ModelSpec) -> str:
        names = dict.fromkeys(name for layer in spec.layers for name in layer.activations)
        return "; ".join(ACTIVATIONS[name].label for name in names)

    off = ", ".join(map(str, sorted(comparison.heads_off))) or "none"
    values: dict[str, Callable[[ModelSpec], str]] = {
        "Name": lambda spec: spec.name,
        "Type": lambda spec: f"{spec.family}, {spec.form}" if spec.form else spec.family,
        "Parameters": lambda spec: f"{spec.parameters:,}",
        "Layers × heads": layers,
        "Activations": activations,
        "Checkpoint": lambda spec: spec.digest[:12],
    }
    rows = [(name, *map(value, comparison.models)) for name, value in values.items()]
    rows.append(("Heads off", "none", off))
    return Table("Models", ("", "A", "B"), tuple(rows), frozenset(range(3)))


def _definitions() -> Table:
    rows = tuple(
        (_heading(name), metric.description, metric.formula, metric.source)
        for name, metric in metrics_for(REPORT).items()
    )
    columns = ("Metric", "Meaning", "Formula", "Source")
    return Table("Definitions", columns, rows, frozenset(range(4)))


def _method(comparison: ModelComparison) -> Block:
    return Notes(
        "Method",
        (
            "Accuracy: Wilson’s interval. Difference of accuracies: Bonett and Price (2012). Means "
            f"over {comparison.noun}s and bits per byte: the normal interval.",
            f"Weights, scores and gradients of {comparison.noun}s come from one forward and one "
            f"backward pass; the {comparison.noun}s are a random sample, the same for both models.",
            "These are single checkpoints: another training seed may change any number.",
            *comparison.notes,
        ),
    )


# --- charts ---------------------------------------------------------------------------------------


def strips_chart(comparison: ModelComparison) -> Strips:
    """Every metric that was measured, a mark for each head; rows of signed weights only where a
    head has weights below zero."""
    a, b = comparison.a, comparison.b
    strips = []
    for change in comparison.changes:
        signed = change.name in ("negative_mass", "row_sum")
        if change.name == "small" or (signed and not (a.signed or b.signed)):
            continue
        if np.isfinite([change.a[0], change.b[0]]).any():
            metric = METRICS[change.name]
            heads = a.of_heads(change.name)[0], b.of_heads(change.name)[0]
            strips.append(Strip(metric.label, metric.unit, heads, (change.a, change.b)))
    return Strips(tuple(strips), comparison.names)


def slopes_chart(comparison: ModelComparison) -> Plots:
    """Where scores lie by their size, and what share of the slopes at the weights reaches them."""
    x = np.arange(len(EDGES) - 1, dtype=float)
    ticks = tuple(
        (place, FRACTIONS.get(edge, f"{edge:g}")) for place, edge in zip(x, EDGES[:-1], strict=True)
    )

    def lines(values: Sequence[Many]) -> tuple[Line, ...]:
        return tuple(
            Line(name, x, line) for name, line in zip(comparison.names, values, strict=True)
        )

    shares, passed = [], []
    for side in (comparison.a, comparison.b):
        cells, at_weights = side.cells.sum(0), side.at_weights.sum(0)
        shares.append(100 * cells / max(cells.sum(), 1))
        ratio = np.full(len(x), np.nan)
        np.divide(side.at_scores.sum(0), at_weights, out=ratio, where=at_weights > 0)
        passed.append(np.where(shares[-1] >= FEWEST, ratio, np.nan))
    axis = "Sum |dM/dS| over sum |dM/dA|"
    return Plots(
        (
            Plot("Magnitudes of scores", "|score|, from", "Cells, %", lines(shares), ticks),
            Plot("Gradient passed by the activation", "|score|, from", axis, lines(passed), ticks),
        )
    )


def distances_chart(comparison: ModelComparison) -> Grids:
    """Jensen-Shannon distances between heads: within A, within B, and from A to B."""
    a, b = (tuple(map(str, side.heads)) for side in (comparison.a, comparison.b))
    grids = [
        Grid("Within A", comparison.a.apart, a, a, "Head of A", "Head of A"),
        Grid("Within B", comparison.b.apart, b, b, "Head of B", "Head of B"),
    ]
    if comparison.across is not None:
        grids.append(Grid("A to B", comparison.across, a, b, "Head of A", "Head of B"))
    return Grids(tuple(grids), "Jensen-Shannon distance: 0 identical, 1 no key in common")


# --- words ----------------------------------------------------------------------------------------


def _interval(value: float, low: float, high: float, word: Callable[[float], str] = number) -> str:
    """An estimate with its interval: 0.842 [0.826, 0.857]."""
    ends = f" [{word(low)}, {word(high)}]" if np.isfinite([low, high]).all() else ""
    return f"{word(value)}{ends}"


def _heading(name: str) -> str:
    """A metric with its unit."""
    metric = METRICS[name]
    return f"{metric.label}, {metric.unit}" if metric.unit else metric.label
