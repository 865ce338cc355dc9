"""A sequence mixed into r slots: all of it before the heads are split, or keys and values after.

Shapes: B batch, H heads, n tokens, L the longest text, r slots, d width, D head width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Projection(nn.Module):
    """weight (r, L), shared by the keys and values of all heads (models.md B.5)."""

    def __init__(self, slots: int, longest: int) -> None:
        super().__init__()
        self.weight = _drawn(slots, longest)

    def forward(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """(B, n, d) -> (B, r, d); padded tokens are zero before they are mixed."""
        if keep is not None:
            x = x * keep[..., None]
        return self.weight[:, : x.shape[1]] @ x

    def mixture(self, tokens: int, keep: Tensor | None) -> Tensor:
        """(1, r, n): the part of each token of one text in each slot, keep (1, n) of it."""
        return _kept(self.weight[None, :, :tokens], keep)


class Mixture(nn.Module):
    """What keys or values are mixed by: weight (h, r, L), bias (h, r); h = 1: the same in all
    heads."""

    def __init__(self, heads: int, slots: int, longest: int, bias: bool) -> None:
        super().__init__()
        self.weight = _drawn(heads, slots, longest)
        self.bias = nn.Parameter(torch.zeros(heads, slots)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """(B, H, n, D) -> (B, H, r, D)"""
        mixed = self.weight[..., : x.shape[-2]] @ x
        return mixed if self.bias is None else mixed + self.bias[..., None]


class Mixtures(nn.Module):
    """E and F of Linformer (Wang et al. 2020): K' = E K, V' = F V, which may be one; a bias is a
    number more in every place of a slot."""

    def __init__(self, heads: int, slots: int, longest: int, bias: bool, one: bool) -> None:
        super().__init__()
        self.k = Mixture(heads, slots, longest, bias)
        if not one:
            self.v = Mixture(heads, slots, longest, bias)

    @property
    def of_values(self) -> Mixture:
        """F, which is E where there is one for both."""
        return getattr(self, "v", self.k)

    def forward(self, k: Tensor, v: Tensor, keep: Tensor | None) -> tuple[Tensor, Tensor]:
        """Both (B, H, n, D) -> (B, H, r, D); those of padded tokens are zero before."""
        if keep is not None:
            k, v = k * keep[:, None, :, None], v * keep[:, None, :, None]
        return self.k(k), self.of_values(v)

    def mixture(self, tokens: int, keep: Tensor | None) -> Tensor:
        """(h, r, n): the part of the value of each token of one text in that of each slot."""
        return _kept(self.of_values.weight[..., :tokens], keep)


def _drawn(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(shape) / math.sqrt(max(shape[-1], 1)))


def _kept(weight: Tensor, keep: Tensor | None) -> Tensor:
    return weight if keep is None else weight * keep[0]
