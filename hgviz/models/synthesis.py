"""Scores that no two tokens make: attention that is synthesised (Tay et al. 2021, models.md C).

Every form is a product of queries with keys, so that nothing behind it knows of any other:
dense, score_ij = W_2[j] . relu(W_1 x_i + b_1) + b_2[j], of (relu(...), 1) with (W_2[j], b_2[j]);
random, score_ij = R[i, j], of R[i] with e_j, fixed is the same as it was drawn; factorised,
score_ij = R_1[i] . R_2[j]. Shapes: B batch, H heads, n positions, L the longest text, D head width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Side = Literal["q", "k"]


class Table(nn.Module):
    """A row of numbers for each position, whatever stands there: weight (H * width, L).

    bias: one number more in each row, (H, L). fixed: as they were drawn, never trained.
    """

    def __init__(
        self, heads: int, width: int, longest: int, bias: bool = False, fixed: bool = False
    ) -> None:
        super().__init__()
        self.shape, drawn = (heads, width), torch.randn(heads * width, longest)
        if fixed:
            self.register_buffer("weight", drawn)
        else:
            self.weight = nn.Parameter(drawn)
        self.bias = nn.Parameter(torch.zeros(heads, longest)) if bias else None

    def forward(self, count: int) -> Tensor:
        """(1, H, count, width), or width + 1, of the first positions"""
        rows = self.weight[:, :count].unflatten(0, self.shape).mT
        if self.bias is not None:
            rows = torch.cat([rows, self.bias[:, :count, None]], -1)
        return rows[None]


class Dense(nn.Module):
    """A row of scores from its own token alone."""

    def __init__(self, heads: int, width: int, d_head: int, longest: int) -> None:
        super().__init__()
        self.shape = heads, d_head
        self.q = nn.Linear(width, heads * d_head)
        self.k = Table(heads, d_head, longest, bias=True)

    def side(self, name: Side, x: Tensor) -> Tensor:
        """Queries (B, H, n, D + 1) of tokens (B, n, d), keys (1, H, n, D + 1) of their places"""
        if name == "k":
            return self.k(x.shape[1])
        hidden = F.relu(self.q(x)).unflatten(-1, self.shape).transpose(1, 2)
        return F.pad(hidden, (0, 1), value=1.0)


class Factorised(nn.Module):
    """Scores of rank numbers for the place of the query, and as many for that of the key."""

    def __init__(self, heads: int, longest: int, rank: int) -> None:
        super().__init__()
        self.q, self.k = Table(heads, rank, longest), Table(heads, rank, longest)

    def side(self, name: Side, x: Tensor) -> Tensor:
        """(1, H, n, rank) of the places of tokens (B, n, d)"""
        part = self.q if name == "q" else self.k
        return part(x.shape[1])


class Random(nn.Module):
    """A score for each pair of places, learnt, or fixed as it was drawn."""

    def __init__(self, heads: int, longest: int, fixed: bool) -> None:
        super().__init__()
        self.q = Table(heads, longest, longest, fixed=fixed)

    def side(self, name: Side, x: Tensor) -> Tensor:
        """(1, H, n, L) of the places of tokens (B, n, d); key j is 1 at j"""
        if name == "q":
            return self.q(x.shape[1])
        heads, longest = self.q.shape
        one = torch.eye(longest, dtype=x.dtype, device=x.device)
        return one[: x.shape[1]].expand(1, heads, -1, -1)


class Synthesis(nn.Module):
    """The queries and keys of one layer whose scores are synthesised, or a mixture of several.

    forms: names of config.transformer.SCORES; "dot" among them takes queries and keys of tokens,
    its scores times scale. A mixture adds them up, by weights of each head that add up to 1:
    softmax of mix (H, forms).
    """

    def __init__(
        self,
        forms: Sequence[str],
        heads: int,
        width: int,
        d_head: int,
        longest: int,
        rank: int,
        scale: float,
    ) -> None:
        super().__init__()
        self.forms, self.scale = tuple(forms), scale
        if "dense" in forms:
            self.dense = Dense(heads, width, d_head, longest)
        if "factorised" in forms:
            self.factorised = Factorised(heads, longest, rank)
        for name in ("random", "fixed"):
            if name in forms:
                setattr(self, name, Random(heads, longest, name == "fixed"))
        if len(forms) > 1:
            self.mix = nn.Parameter(torch.zeros(heads, len(forms)))

    def side(self, name: Side, x: Tensor, own: Tensor | None) -> Tensor:
        """Queries or keys (B, H, n, E) of tokens (B, n, d); own (B, H, n, D): those
        of "dot"."""
        parts = [
            own if own is not None and form == "dot" else getattr(self, form).side(name, x)
            for form in self.forms
        ]
        if name == "q":
            parts = [part * share for part, share in zip(parts, self._shares(), strict=True)]
        return torch.cat([part.expand(len(x), -1, -1, -1) for part in parts], -1)

    def _shares(self) -> list[Any]:
        """What the scores of each form are multiplied by, (H, 1, 1) or a number."""
        scales = [self.scale if form == "dot" else 1.0 for form in self.forms]
        if len(self.forms) == 1:
            return scales
        shares = self.mix.softmax(-1)[..., None, None]
        return [shares[:, at] * scale for at, scale in enumerate(scales)]
