"""Longformer's attention: tokens see a band of keys around them, and some see all tokens, by
projections of their own, and are seen by all (Beltagy et al. 2020, arXiv 2004.05150, section 3).

transformers has code of its own for it, which cuts a padded text into chunks and gives weights by
their place in the band. Here the band is a rule, so that maps of texts without global tokens are
lazy; with some, whose rows no one product of queries and keys gives, weights are kept.

Shapes: B batch, n tokens, H heads, D head width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from hgviz.core import Goal

FAMILY = "longformer"
MODULE = "LongformerSelfAttention"


@dataclass(frozen=True, slots=True)
class Global:
    """The tokens that see all others and are seen by all: rows, bool (B, n); q, k and v
    (B, H, n, D) of their own projections; band: how far the others see to each side."""

    rows: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    band: int

    @property
    def seen(self) -> Tensor:
        """bool (B, 1, n, n): what tokens see that are not global."""
        place = torch.arange(self.rows.shape[1], device=self.rows.device)
        near = (place[:, None] - place).abs() <= self.band
        return near[None, None] | self.rows[:, None, None]

    def left(self, heads: Sequence[int]) -> Global:
        """The same of some heads: files keep these projections whole where heads are gone."""
        q, k, v = (one[:, list(heads)] for one in (self.q, self.k, self.v))
        return replace(self, q=q, k=k, v=v)

    def over(
        self, weights: Tensor, context: Tensor, keep: Tensor | None, scale: float
    ) -> tuple[Tensor, Tensor]:
        """Weights (B, H, n, n) and context (B, H, n, D) with the rows of these tokens as they
        are."""
        places = self.rows.any(0).nonzero()[:, 0]
        scores = scale * self.q[:, :, places] @ self.k.transpose(-1, -2)
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, None], torch.finfo(scores.dtype).min)
        exact = torch.promote_types(scores.dtype, torch.float32)
        own = scores.softmax(-1, dtype=exact).to(scores.dtype)
        chosen = self.rows[:, None, places, None]
        return (
            weights.index_copy(2, places, own.where(chosen, weights[:, :, places])),
            context.index_copy(2, places, (own @ self.v).where(chosen, context[:, :, places])),
        )


def parts(net: nn.Module) -> list[Any]:
    """The modules of a model that attend so."""
    return [part for part in net.modules() if type(part).__name__ == MODULE]


def global_tokens(goal: Goal, ids: Tensor | None, shape: torch.Size, config: Any) -> Tensor | None:
    """(B, n): 1 for the tokens that a model for a goal has global, as its class in transformers
    has them: the first of a classifier's text, and the question that answers are looked for, which
    ends at the first of three separators. None where it has none."""
    if goal == "classes":
        return torch.zeros(shape, dtype=torch.long).index_fill(1, torch.tensor([0]), 1)
    if goal != "ends":
        return None
    if ids is None:
        return torch.zeros(shape, dtype=torch.long)
    ends = ids == config.sep_token_id
    before = torch.arange(shape[1], device=ids.device) < ends.int().argmax(1, keepdim=True)
    return (before & (ends.sum(1, keepdim=True) == 3)).long()
