"""The metrics of heads as the window speaks of them: what each is called, and what it means."""

from __future__ import annotations

from typing import NamedTuple

from hgviz.analysis.tally import METRICS
from hgviz.gui.language import tr


class Cited(NamedTuple):
    """A formula, and the paper or page that it is from."""

    formula: str
    source: str


def named(metric: str, unit: str) -> str:
    """What a metric of METRICS is called, for a text of letters or of tokens."""
    return tr(METRICS[metric].words, unit=tr(unit))


def explained(metric: str, unit: str) -> str:
    """What a metric means, its formula, and where it comes from: a line each."""
    one = METRICS[metric]
    meaning = tr(one.description, unit=tr(unit))
    return explanation(meaning, Cited(one.formula, one.source))


def explanation(meaning: str, formula: Cited | str, source: str = "") -> str:
    """A number in three lines."""
    cited = formula if isinstance(formula, Cited) else Cited(formula, source)
    return "\n".join([meaning, cited.formula, tr("Source: {source}", source=cited.source)])
