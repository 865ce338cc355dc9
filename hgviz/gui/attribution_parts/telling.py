"""What was found of an answer in words and in numbers: agreement, and tables to copy."""

from __future__ import annotations

import math

from hgviz.analysis.attribution import Attribution, Beside
from hgviz.gui.grid import Names
from hgviz.gui.heads_parts.metrics import Cited
from hgviz.gui.language import tr
from hgviz.gui.views import words

RANKED = "How alike two orders of the keys are: 1 the same, −1 the other way round, 0 unrelated"
SPEARMAN = Cited("ρ = cov(r, r′) / (σ_r σ_r′)", "Spearman 1904; Jain and Wallace 2019")
CONDUCTS = "The part of the answer that passes through a head on the way from the baseline"
CONDUCTANCE = Cited("Σ_e ∫₀¹ ∂F / ∂h_e · dh_e", "Dhamdhere et al. 2018")
COMPLETES = "What the tokens add up to should be the change of the answer along the path"
COMPLETENESS = Cited("Σ_i IG_i = F(x) − F(x′)", "Sundararajan et al. 2017")
FIRST = "How keys rank by attention agrees {slope} with gradient × attention"
SECOND = "How keys rank by attention agrees {tokens} with integrated gradients"
BOTH = (
    "How keys rank by attention agrees {slope} with gradient × attention and {tokens} with "
    "integrated gradients"
)


def table_of(beside: Beside, names: Names) -> list[list[str]]:
    """A row for every key, every number in full."""
    rows = [[tr("column"), tr("key"), tr("where"), tr("attention"), tr("gradient × attention"),
             tr("integrated gradients")]]  # fmt: skip
    parts = (beside.attention, beside.slope, beside.tokens)
    for at, column in enumerate(beside.columns.tolist()):
        numbers = ("" if part is None else repr(float(part[at])) for part in parts)
        rows.append([str(column), names.glyph(column), names.place(column), *numbers])
    return rows


def heads_of(found: Attribution) -> list[list[str]]:
    """A row for every head: what it conducts of the answer."""
    rows = [[tr("head"), tr("conductance")]]
    rows += [[str(head), repr(float(value))] for head, value in sorted(found.heads.items())]
    return rows


def agreement_words(beside: Beside) -> str:
    """How alike the sizes are ranked, as a sentence."""
    slope, tokens, both = beside.agreements
    said = {
        name: words.with_sign(value, 2)
        for name, value in (("slope", slope), ("tokens", tokens))
        if not math.isnan(value)
    }
    if not said:
        return tr("There are too few keys here, or all are alike: their order says nothing.")
    parts = [tr(BOTH if len(said) == 2 else FIRST if "slope" in said else SECOND, **said)]
    if not math.isnan(both):
        parts.append(tr("these two agree {amount}", amount=words.with_sign(both, 2)))
    keys = words.counted(len(beside.columns), "key")
    return tr("{agreement} (Spearman, of sizes, {keys}).", agreement="; ".join(parts), keys=keys)
