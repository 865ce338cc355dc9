"""Where tokens stand, as attention sees it: rotary turns and Transformer-XL distances.

Shapes: B batch, H heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hgviz.maps.rule import Rule


@dataclass(frozen=True, slots=True)
class Bias:
    """Transformer-XL terms of one layer as tensors; shapes and source as hgviz.maps.Relative."""

    weight: Tensor
    bias: Tensor
    content: Tensor
    position: Tensor
    unit: int

    def each(self, change: Callable[[Tensor], Any]) -> Bias:
        """The same with every tensor changed."""
        parts = (self.weight, self.bias, self.content, self.position)
        return Bias(*map(change, parts), self.unit)  # type: ignore[call-arg]


def rotate(x: Tensor, tokens: Tensor) -> Tensor:
    """Rotary positions: turn each pair of x (..., n, D) by t f_c, f_c = 10000^(-2c / D).

    tokens (n,): the token position t that each row stands for (Su et al. 2021, eq. 34).
    """
    angles = _angles(tokens, x.shape[-1])
    cos, sin = (part.to(x.dtype).to(x.device) for part in (angles.cos(), angles.sin()))
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def distance_features(deltas: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """phi (n, width) of distances (n,): sines, then cosines, of delta * 10000^(-2c / width)."""
    angles = _angles(deltas, width)
    return torch.cat([angles.sin(), angles.cos()], dim=-1).to(dtype).to(deltas.device)


def distance_scores(q: Tensor, relative: Bias, rule: Rule, keys: int, rows: Tensor) -> Tensor:
    """(q + v) . (W phi(delta) + b), (B, H, rows, K): one product per distinct distance.

    q (B, H, rows, D) are the rows of the given numbers (Dai et al. 2019, eq. 3.3).
    """
    step = min(rule.stride_q, rule.stride_k)
    j = torch.arange(keys, device=q.device) * rule.stride_k // step
    i = rows * rule.stride_q // step
    offset = j[None, :] - i[:, None]
    lowest = offset.min()
    distances = torch.arange(int(lowest), int(offset.max()) + 1, device=q.device)
    width = relative.weight.shape[-1]
    phi = distance_features(distances * (step / relative.unit), width, q.dtype)
    r = torch.einsum("nd,hed->hne", phi, relative.weight) + relative.bias[:, None]
    scores = (q + relative.position[:, None]) @ r.transpose(-1, -2)  # (B, H, rows, distances)
    index = (offset - lowest).expand(*scores.shape[:-1], keys)
    return scores.gather(-1, index)


def _angles(numbers: Tensor, width: int) -> Tensor:
    """float64 (n, width / 2): each number times 10000^(-2c / width)."""
    # in float32 token 100,000 is already off by 0.004 rad, and mps has no float64
    device = torch.device("cpu") if numbers.device.type == "mps" else numbers.device
    steps = torch.arange(width // 2, device=device, dtype=torch.float64)
    return numbers.to(device).double()[:, None] * 10000.0 ** (-2 * steps / width)
