"""Metrics and charts as a report has them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hgviz import language
from hgviz.language import number

if TYPE_CHECKING:
    from hgviz.analysis.comparison import MetricChange
    from hgviz.figures.report import Picture


def picture(kind: str, chart: object, caption: str) -> Picture:
    """A chart, and what it shows."""
    from hgviz.figures.report import Picture

    return Picture(kind, chart, caption)  # type: ignore[arg-type]


def label(name: str) -> str:
    """What a metric is called within a sentence."""
    from hgviz.analysis.metrics import METRICS

    words = METRICS[name].label
    return words if words[1].isupper() or "|d" in words else lower(words)


def lower(words: str) -> str:
    """Words with a small first letter."""
    return f"{words[0].lower()}{words[1:]}"


def unit(name: str) -> str:
    """Its unit after a comma, "" where it has none."""
    from hgviz.analysis.metrics import METRICS

    return f", {METRICS[name].unit}" if METRICS[name].unit else ""


def both(one: MetricChange, of: str, percent: bool = False) -> str:
    """A and B, and whether they differ."""
    said = language.percent if percent else number
    a, b = said(one.a[0]), said(one.b[0])
    told = "" if one.differs else ", which shows no difference"
    return f"In A it is {a}, in B {b} {of}{told}."


def judged(one: MetricChange) -> str:
    """Whether a metric differs, in two words."""
    if one.exact:
        return "the same"
    if not one.measured:
        return "not measured"
    return "differs" if one.differs else "not shown to differ"


def interval(one: MetricChange) -> str:
    """The ends of a difference."""
    low, high = one.difference[1:]
    return (
        f"{number(low, signed=True)} to {number(high, signed=True)}" if math.isfinite(low) else "–"
    )
