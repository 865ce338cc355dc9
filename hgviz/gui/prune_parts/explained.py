"""What the numbers of the Prune page mean: a sentence, the formula and where it comes from each."""

from __future__ import annotations

from hgviz.analysis.importance import METHODS
from hgviz.gui.heads_parts.metrics import explanation
from hgviz.gui.language import tr

# Of every score of METHODS, which has the source: what it says, its formula.
SCORES = {
    "signed": (
        "How far the loss rises with the head off, as its slope foretells; on texts like those of "
        "the training the slopes cancel, and what is left is mostly chance",
        "−Σ G / n,  G = ∂L/∂x,  x: 1 on, 0 off",
    ),
    "michel": (
        "How much the loss of each text depends on the head, up or down; what is asked first, "
        "because slopes of both signs do not cancel",
        "Σ |G| / n,  G = ∂L/∂x,  x: 1 on, 0 off",
    ),
    "michel-token": (
        "The same sum of sizes, taken token by token of what the head gives; the last layer of a "
        "classifier per text",
        "Σ |c · ∂L/∂c| / n,  c: what the head gives",
    ),
    "bertology": (
        "How much the loss of batches of 32 texts depends on the head; another batch size is "
        "another number",
        "Σ |Σ G|,  the inner sum over a batch",
    ),
    "fisher": (
        "How much the loss depends on the head, large slopes before all: an estimate of the "
        "curvature",
        "Σ G² / N,  N texts",
    ),
    "loo": (
        "How far the loss really rises with only this head off: measured, not foretold",
        "Σ (L₋ₕ − L) / n",
    ),
    "all-but-one": (
        "How far the loss rises with only this head on in its layer; a needed head has a low one, "
        "so the wall turns its sign",
        "Σ (Lₕ − L) / n,  Lₕ: alone in its layer",
    ),
    "shapley": (
        "What joining does to the loss, in the mean over random orders; a needed head has a low "
        "one, so the wall turns its sign",
        "φₕ = mean (L(S ∪ h) − L(S)),  Σ φₕ = L(all) − L(none)",
    ),
    "gates": (
        "The gate that training with a price for every open one left the head, 0 to 1",
        "clip(1.2 σ(ln α) − 0.1, 0, 1)",
    ),
    "subset": (
        "The weight that training left the head when only so many could stay",
        "w of softmax((w + Gumbel) / τ), top K, τ → 0",
    ),
    "causal": (
        "Where two gates ended, one pushed open and one pushed shut: 1 helps, −1 is in the way, 0 "
        "does not matter",
        "g₊ + g₋ − 1",
    ),
}

# Of every other number of the page: what it says, its formula, its source.
NUMBERS = {
    "right": (
        "The share of answers that are right with these heads off, with its interval of 95 %: "
        "Agresti and Coull's",
        "p̃ ± z √(p̃ (1 − p̃) / ñ),  ñ = n + z²,  p̃ = (k + z²/2) / ñ,  z = 1.96",
        "Agresti, Coull 1998; statistics.md",
    ),
    "early": (
        "Looking early is not corrected for: the interval holds for a number of texts chosen "
        "beforehand",
        "P(p in the interval) ≈ 95 %",
        "statistics.md",
    ),
    "whole": (
        "The share that the whole model has right, on the places that both have answered",
        "k / n",
        "statistics.md",
    ),
    "difference": (
        "What the share of right answers changed by, in points, with Bonett and Price's interval "
        "for pairs; where it includes 0, it may be nothing",
        "(c − b) / n;  d ± t √((b′ + c′) − (b′ − c′)² / n′) / n′,  d = (c′ − b′) / n′,  "
        "b′ = b + 1, c′ = c + 1, n′ = n + 2",
        "Bonett, Price 2012; statistics.md",
    ),
    "changed": (
        "Answers that were right and are wrong now (b), and the other way round (c); p: how often "
        "chance alone would split them as unevenly",
        "p = min(1, 2 P(X ≤ min(b, c))),  X ~ B(b + c, ½)",
        "McNemar 1947, exact; statistics.md",
    ),
    "saved": (
        "The parameters that are removed with the heads: queries and output of each head, keys and "
        "values of each key group whose heads are all off",
        "Σ heads |W_Q, W_O| + Σ groups |W_K, W_V|",
        "heads.md",
    ),
    "more": (
        "How many bits of loss more this place has with the heads off; more is worse",
        "(L₋ − L) / ln 2",
        "statistics.md",
    ),
    "loss": (
        "Bits of loss of the whole model, and with the heads off",
        "−log₂ p(what is wanted)",
        "Shannon 1948; statistics.md",
    ),
    "change": (
        "What the slice changed by with the heads off; points of right answers, or bits of loss",
        "(c − b) / n,  or the mean of (L₋ − L) / ln 2",
        "statistics.md",
    ),
    "ends": (
        "The interval of 95 % of that change; where 0 is in it, it may be nothing. Not adjusted "
        "for how many slices there are",
        "Bonett, Price 2012 (points); Cochran 1977, 2.11 (bits)",
        "statistics.md",
    ),
    "allowed": (
        "k*: the most heads off at which, and at every smaller number measured, the score falls by "
        "at most 1 point; at 95 %: the same of the lower end of the interval",
        "k* = max {k : value(j) ≥ value(0) − 0.01 for all j ≤ k}",
        "heads.md; statistics.md",
    ),
    "heads": ("How many heads are switched off", "k", "heads.md"),
    "parameters": (
        "The share of the parameters of all heads that is removed with those that are off",
        "Σ heads |W_Q, W_O| + Σ groups |W_K, W_V|",
        "statistics.md",
    ),
    "flops": (
        "The share of the operations of all heads that is removed with those that are off, in a "
        "mean text",
        "Σ heads (2 |W_Q, W_O| Tq + 4 pairs dₕ) + Σ groups 2 |W_K, W_V| Tk",
        "statistics.md",
    ),
}  # fmt: skip


def explained(method: str) -> str:
    """A score of METHODS in words, with its formula and its source."""
    said, formula = SCORES[method]
    return explanation(tr(said), tr(formula), tr(METHODS[method].source))


def explained_all(arrays: tuple[str, ...]) -> str:
    """Every score that some arrays of a study give, under its name."""
    made = (one for one in METHODS.values() if one.needs in arrays)
    return "\n\n".join(f"{tr(one.label)}\n{explained(one.name)}" for one in made)


def told(number: str) -> str:
    """Another number of the page, in the same way."""
    said, formula, source = NUMBERS[number]
    return explanation(tr(said), tr(formula), tr(source))
