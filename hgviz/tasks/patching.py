"""Activation patching: which heads carry the difference between two texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hgviz.core import Floats, HeadId, HeadSet, Prompt, progress, readonly
from hgviz.errors import require

if TYPE_CHECKING:
    from hgviz.models.model import Model


@dataclass(frozen=True, slots=True)
class Patching:
    """What patching one head at a time does to the logit difference of two answers.

    clean, corrupted: the difference of both texts, in logits. denoised (H,): the share of it that
    comes back when a head of the corrupted run gets its context from the clean one. noised (H,):
    the share that is lost the other way. Both are 0 for a head without effect, 1 for all of it.
    """

    heads: tuple[HeadId, ...]
    denoised: Floats
    noised: Floats
    clean: float
    corrupted: float

    def to_rows(self) -> list[dict[str, Any]]:
        """A row for each head, the one that brings most back first."""
        order = np.argsort(-self.denoised, kind="stable")
        return [
            {
                "head": str(self.heads[at]), "denoised": float(self.denoised[at]),
                "noised": float(self.noised[at]),
            }
            for at in order
        ]  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """As `hgviz importance --method patching --json` prints it."""
        return {"clean": self.clean, "corrupted": self.corrupted, "heads": self.to_rows()}


def patching(
    model: Model,
    clean: Prompt,
    corrupted: Prompt,
    answer: int,
    wrong: int,
    off: HeadSet = frozenset(),
) -> Patching:
    """Patch every head between two texts, both ways.

    The logit difference is that of answer less that of wrong: tokens after the last one of the
    text, or classes. Raises HgvizError for texts of different lengths, and where both give the same
    difference.
    """
    from hgviz.models.patching import patch_each

    require(
        len(clean) == len(corrupted),
        f"the texts differ in length: {len(clean)} and {len(corrupted)} tokens",
        "Write the corrupted text with as many tokens as the clean one",
    )
    require(
        model.spec.goal in ("next", "classes") and not model.spec.two_texts,
        "this model predicts neither the next token nor a class of one text",
        "Open a language model or a classifier",
    )
    at = (slice(None),) if model.spec.goal == "classes" else (slice(None), clean.last)

    def difference(logits: Any) -> Any:
        return logits[(*at, answer)] - logits[(*at, wrong)]

    def of(prompt: Prompt) -> float:
        logits = model.trace(prompt, off=off)[None]
        return float(logits[(*at, answer)][0] - logits[(*at, wrong)][0])

    texts, ends = [model.tokens(one) for one in (clean, corrupted)], (of(clean), of(corrupted))
    span = ends[0] - ends[1]
    require(
        abs(span) > 1e-6 * max(1.0, abs(ends[0])),
        "both texts give the same logit difference: there is nothing to recover",
        "Choose answers between which the texts differ",
    )
    heads: list[HeadId] = []
    shares = np.zeros((2, len(model.spec.heads) - len(off)))
    for way, (source, target) in enumerate(((0, 1), (1, 0))):
        done, heads = 0, []
        for some, values in patch_each(model.module, texts[source], texts[target], difference, off):
            moved = values.double().cpu().numpy() - ends[target]
            shares[way, done : done + len(some)] = moved / (span if way == 0 else -span)
            done += len(some)
            heads += some
            progress(way * shares.shape[1] + done, shares.size, f"head {some[-1]}")
    return Patching(tuple(heads), readonly(shares[0]), readonly(shares[1]), *ends)
