"""What was measured of two models, in words, tables and charts: the report, block by block."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from hgviz.language import join_words, number, p_value, percent, percentage_points
from hgviz.tasks.charting import (
    activation_chart,
    distances_chart,
    slopes_chart,
    spectra_chart,
    strips_chart,
)
from hgviz.tasks.listing import differing, every_head, how, one_text
from hgviz.tasks.wording import both, interval, judged, label, lower, picture, unit

if TYPE_CHECKING:
    from hgviz.analysis.comparison import MetricChange
    from hgviz.analysis.statistics import Evaluation
    from hgviz.core import ModelSpec
    from hgviz.figures.report import Block, Document
    from hgviz.tasks.contrasting import Laboratory

WHAT = {
    "classes": "class", "tags": "class of a word", "ends": "beginning and end of the answer",
    "next": "next token", "masked": "masked token",
}  # fmt: skip


def document(found: Laboratory) -> Document:
    """The report."""
    from hgviz.figures.report import Document

    names = found.names
    blocks = [
        *_short(found), *_models(found), *_answers(found), *_activations(found), *_slopes(found),
        *_heads(found), *_ranks(found), *_distances(found), *one_text(found), *differing(found),
        *every_head(found), *how(found),
    ]  # fmt: skip
    one, other = found.models
    return Document(
        f"{names[0]} and {names[1]} on {found.data}",
        "Two models beside each other: A is the first, B the second. Every number was measured for "
        "this report, by the command at its end.",
        tuple(blocks),
        {
            "model": f"{one.name}, {other.name}",
            "checkpoint": f"{one.digest}, {other.digest}",
            "data": found.data,
            "texts": str(found.a.texts),
        },
    )


# --- in short -------------------------------------------------------------------------------------


def _short(found: Laboratory) -> list[Block]:
    from hgviz.figures.report import Heading, Points

    differ = [_sentence(found, one) for one in found.changes if one.differs and not one.exact]
    points = [_verdict(found), *filter(None, differ)]
    if same := [label(one.name) for one in found.changes if one.measured and not one.differs]:
        points.append(f"No difference was shown in: {', '.join(same)}.")
    points.append(
        "These are two checkpoints, not two ways of training: another seed may move any of these "
        f"numbers. Intervals of 95 % and p are over {found.noun}s."
    )
    return [Heading("In short"), Points(tuple(points))]


def _verdict(found: Laboratory) -> str:
    """Which answers better, and how sure that is."""
    one = found.answers
    if one.difference is None or one.p is None:
        return (
            "The answers of A and B are not paired, so their scores can only be put side by side."
        )
    value, low, high = one.difference
    if one.a.score.metric == "bits_per_byte":
        ends = (
            f"({number(low, signed=True)} to {number(high, signed=True)})"
            if math.isfinite(low)
            else ""
        )
        apart = low > 0 or high < 0
        which = (
            f"{'A' if value > 0 else 'B'} is better" if apart else "Neither is shown to be better"
        )
        return f"{which}: B less A is {number(value, signed=True)} bits per byte {ends}."
    ends = f"({percentage_points(low)} to {percentage_points(high)})"
    apart = low > 0 or high < 0
    which = f"{'B' if value > 0 else 'A'} answers better" if apart else (
        "Neither is shown to answer better")  # fmt: skip
    return (
        f"{which}: {percent(one.a.score.value)} of A's answers are right and "
        f"{percent(one.b.score.value)} of B's; B less A is {percentage_points(value)} points "
        f"{ends}, McNemar's p {p_value(one.p)}."
    )


def _sentence(found: Laboratory, one: MetricChange) -> str:
    """A difference that more than chance shows, in words."""
    a, b = number(one.a[0]), number(one.b[0])
    up = one.difference[0] > 0
    both = f"{b} in B against {a} in A"
    words = {
        "entropy": f"Rows of B spread over {'more' if up else 'fewer'} keys: entropy {both}, nats.",
        "near_zero": f"B has {'more' if up else 'fewer'} weights near zero: {both}.",
        "negative_mass": f"The share of weight below zero is {both}.",
        "row_sum": f"Rows add up to {both}.",
        "rank": f"Maps of B have a {'higher' if up else 'lower'} effective rank: {both} of what "
                "their size allows.",
        "apart": f"Heads of one layer are {'less' if up else 'more'} alike in B: distance {both}.",
        "slope": f"A score moves the log odds {'more' if up else 'less'} in B: {both}, nats.",
        "small": f"{'More' if up else 'Fewer'} slopes have vanished in B: {both}.",
        "passed": f"B's activation lets {'more' if up else 'less'} of the slope through: {both}.",
    }  # fmt: skip
    return words[one.name]


# --- the models and their answers -----------------------------------------------------------------


def _models(found: Laboratory) -> list[Block]:
    from hgviz.figures.report import Heading, Table

    rows: list[tuple[str, ...]] = []
    for name, of in (
        ("Name", lambda spec: spec.name),
        ("Kind", lambda spec: f"{spec.family}, {spec.form}" if spec.form else spec.family),
        ("Parameters", lambda spec: f"{spec.parameters:,}"),
        ("Layers × heads", _layers),
        ("Activations", _kinds),
        ("Checkpoint", lambda spec: spec.digest[:12]),
    ):
        rows.append((name, *(str(of(spec)) for spec in found.models)))
    if found.off:
        rows.append(("Heads off", "none", ", ".join(map(str, sorted(found.off)))))
    text = frozenset({0, 1, 2})
    return [Heading("The two models"), Table(("", "A", "B"), tuple(rows), text)]


def _layers(spec: ModelSpec) -> str:
    counts = [len(one.heads) for one in spec.layers]
    same = len(set(counts)) == 1
    return f"{len(counts)} × {counts[0]}" if counts and same else f"{len(counts)}: {counts}"


def _kinds(spec: ModelSpec) -> str:
    from hgviz.activations import ACTIVATIONS

    names = dict.fromkeys(name for one in spec.layers for name in one.activations)
    return "; ".join(ACTIVATIONS[name].label for name in names)


def _answers(found: Laboratory) -> list[Block]:
    from hgviz.figures.report import Heading, Table, Words

    one = found.answers
    bits = one.a.score.metric == "bits_per_byte"
    columns = ["", "Bits per byte" if bits else "Right", "Interval of 95 %", "Loss, nats"]
    extra = [name for name in ("f1", "mcc") if getattr(one.a, name) is not None]
    columns += [{"f1": "F1", "mcc": "Matthews"}[name] for name in extra]
    rows = [
        (name, *_score(side, bits), *(f"{getattr(side, each):.3f}" for each in extra))
        for name, side in zip(found.names, (one.a, one.b), strict=True)
    ]
    total = one.a.score.total
    blocks: list[Block] = [
        Heading("Do they answer alike?"),
        Words(f"Both were asked for the {WHAT[found.asked]} at {total:,} places of "
              f"{found.amount} of {found.data}."),
        Table(tuple(columns), tuple(rows)),
    ]  # fmt: skip
    if one.agreement is not None and one.p is not None:
        said = (
            f"They give the same answer at {percent(one.agreement)} of the places. Only A is "
            f"right at {one.a_only:,}, only B at {one.b_only:,}; were both equally good, a split "
            f"as uneven as that would come with probability {p_value(one.p)} (McNemar's exact "
            "test). "
        )
        if one.p >= 0.05:
            said += ("That is no proof that they are equally good: the interval of the difference "
                     "says how large it may be.")  # fmt: skip
        blocks.append(Words(said))
    return blocks


def _score(side: Evaluation, bits: bool) -> tuple[str, str, str]:
    one = side.score
    if bits:
        around = f"{one.low:.3f} to {one.high:.3f}" if math.isfinite(one.high) else "–"
        return f"{one.value:.3f}", around, f"{side.loss:.3f}"
    return (
        percent(one.value),
        f"{100 * one.low:.1f} to {100 * one.high:.1f} %",
        f"{side.loss:.4f}",
    )


# --- activations and slopes -----------------------------------------------------------------------


def _activations(found: Laboratory) -> list[Block]:
    from hgviz.activations import ACTIVATIONS
    from hgviz.figures.report import Heading, Words

    names = list(dict.fromkeys([*found.a.activations(), *found.b.activations()]))
    signed = [ACTIVATIONS[name].label for name in names if ACTIVATIONS[name].signed]
    said = "What a head weighs with is its scores, passed through its activation. "
    if signed:
        said += (
            f"{join_words(signed)} may weigh below zero: such a head can take away what another "
            "adds, and its rows need not sum to 1. "
        )
    if "softmax" in names:
        said += ("softmax is flat where one key has all the weight or none: there its derivative, "
                 "and with it what can be learnt, goes to zero. ")  # fmt: skip
    if "ymish" in names:
        said += "The derivative of ymish is zero only at a score of zero, and near 1 far from it."
    drawn = picture("plots", replace(activation_chart(names), title=""),
                       "Each activation and its derivative, by the same functions that the models "
                       "attend with.")  # fmt: skip
    return [Heading("What scores become"), Words(said.strip()), drawn]


def _slopes(found: Laboratory) -> list[Block]:
    from hgviz.figures.report import Heading, Words

    change = {one.name: one for one in found.changes}
    small, passed = change["small"], change["passed"]
    said = (
        "M is the log odds of the right answer, so that a model which is sure already is "
        "measured as fairly as one which is not. dM/dS is how far M moves with one score of one "
        "head, before mask, norm and activation; dM/dA how far it moves with the weight. Their "
        "ratio is what the activation, with its norm, lets through on the way back."
    )
    told = (
        f"Of the cells that M depends on, {percent(small.a[0])} of A's and "
        f"{percent(small.b[0])} of B's have a slope below a thousandth of the largest of their "
        f"head and {found.noun}. "
        f"{both(passed, 'of the slope at the weights passes on to the scores', True)} "
        "What is large at the scores is not better by itself: the ratio depends on the size of "
        "weights, and says how a step changes scores, not how well a model learns in the end."
    )
    return [
        Heading("Do gradients vanish at the scores?"),
        Words(said),
        picture("plots", slopes_chart(found.a, found.b, found.names),
                 "Left: how large scores are. Right: what passes, by the size of the score."
                 + _before(found)),
        Words(told),
    ]  # fmt: skip


def _before(found: Laboratory) -> str:
    """What else is to be known of the scores that are drawn."""
    names = {*found.a.activations(), *found.b.activations()}
    said = ""
    if names & {"softmax", "topk"}:
        said += " softmax knows scores only up to what a row has in common."
    if "ymish" in names:
        said += " ymish is given rows of length 1; scores here are those before that."
    return said


# --- heads ----------------------------------------------------------------------------------------


def _heads(found: Laboratory) -> list[Block]:
    from hgviz.analysis.metrics import METRICS, REPORT, metrics_for
    from hgviz.figures.report import Heading, Points, Table, Words

    rows = tuple(
        (
            f"{METRICS[one.name].label}{unit(one.name)}", number(one.a[0]), number(one.b[0]),
            number(one.difference[0], signed=True), interval(one), p_value(one.p), judged(one),
        )
        for one in found.changes
    )  # fmt: skip
    trained = (
        "Heads of one number have nothing to do with each other in two models that were trained "
        f"apart, so it is the mean over all heads that is compared, {found.noun} by {found.noun}."
    )
    return [
        Heading("What the heads do"),
        Words(f"Measured on {found.a.texts:,} {found.noun}s, the same for both. {trained}"),
        picture("strips", strips_chart(found.a, found.b, found.changes, found.names, found.noun),
                 "Every head of A and of B. Where marks lie apart, heads of one model do different "
                 "things."),
        Table(
            ("", "A", "B", "B less A", "Interval of 95 %", "p", ""), rows, frozenset({0, 6}),
            f"Means over heads and {found.noun}s. p: of no difference, adjusted for "
            f"{len(rows)} metrics (Benjamini and Hochberg). With so many cells behind every mean "
            "even a small difference is sure; whether it matters, its size says.",
        ),
        Points(tuple(f"{one.label}: {lower(one.description)}."
                     for one in metrics_for(REPORT).values()), True),
    ]  # fmt: skip


def _ranks(found: Laboratory) -> list[Block]:
    from hgviz.figures.report import Heading, Words

    rank = next(one for one in found.changes if one.name == "rank")
    said = (
        "A map whose queries all look at the same keys has one singular value; one that sends "
        "every query elsewhere has as many as it has rows. The effective rank counts them by "
        "their size. "
        f"{both(rank, 'of what the size of the map allows')}"
    )
    return [
        Heading("How much a map can tell apart"),
        Words(said),
        picture("plots", spectra_chart(found.a, found.b, found.names),
                 f"Left: singular values over the largest, mean over heads and {found.noun}s. "
                 f"Right: the effective rank of each head with its interval over {found.noun}s."),
    ]  # fmt: skip


def _distances(found: Laboratory) -> list[Block]:
    from hgviz.figures.report import Heading, Words

    apart = next(one for one in found.changes if one.name == "apart")
    said = (
        "The Jensen-Shannon distance of two heads compares where they look, row by row, by the "
        "size of weights: 0 where it is the same, 1 where they share no key. Heads that are alike "
        "do the same work twice. "
    )
    if math.isfinite(apart.a[0]):
        said += (f"Heads of one layer are {number(apart.a[0])} apart in A and "
                 f"{number(apart.b[0])} in B. ")  # fmt: skip
    if found.nearest is not None and found.across is not None:
        import numpy as np

        said += (f"Of all pairs of one head of A and one of B the nearest are "
                 f"{number(float(np.nanmin(found.across)))} apart.")  # fmt: skip
    return [
        Heading("Are heads different from each other?"),
        Words(said.strip()),
        picture("grids", distances_chart(found.a, found.b, found.across, found.names),
                 f"Means over {found.a.texts:,} {found.noun}s. Hatched: maps of other shapes."),
    ]  # fmt: skip


__all__ = ["document"]
