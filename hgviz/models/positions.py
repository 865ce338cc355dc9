"""Where tokens stand, as attention sees it: rotary turns and Transformer-XL distances.

Shapes: B batch, H heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
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


class Distances:
    """What queries meet for every distance of a layer: W phi(delta) + b (Dai et al. 2019, 3.3).

    Row i and column j are j a - i b steps apart, from lowest to highest where keys are seen.
    """

    def __init__(self, relative: Bias, rule: Rule, queries: int, keys: int) -> None:
        step = min(rule.stride_q, rule.stride_k)
        self.a, self.b = rule.stride_k // step, rule.stride_q // step
        self.lowest, highest = -(queries - 1) * self.b, (keys - 1) * self.a
        if rule.causal:
            highest = min(highest, self.b - 1)
        weight, self.position = relative.weight, relative.position
        steps = torch.arange(self.lowest, highest + 1, device=weight.device)
        phi = distance_features(steps * (step / relative.unit), weight.shape[-1], weight.dtype)
        self.r = torch.einsum("nd,hed->hne", phi, weight) + relative.bias[:, None]  # (H, E, D)

    def scores(self, q: Tensor, rows: Tensor, keys: int) -> Tensor:
        """(q + v) . r by distance, (B, H, rows, K), of the rows of the given numbers.

        q (B, H, rows, D). Cells that are never seen hold any number.
        """
        count, first = len(rows), int(rows[0])
        if count <= int(rows[-1]) - first:  # not one after another
            each = [self.scores(q[..., [t], :], rows[t : t + 1], keys) for t in range(count)]
            return torch.cat(each, dim=-2)
        start = -(first + count - 1) * self.b - self.lowest
        size = (keys - 1) * self.a + count * self.b + 1
        r = self.r[:, start : start + size]
        r = F.pad(r, (0, 0, 0, size - r.shape[1]))
        scores = (q + self.position[:, None]) @ r.transpose(-1, -2)  # (B, H, rows, distances)
        # each row begins b distances before the one above: cut the flat rows b shorter
        begin, short = (count - 1) * self.b, size - self.b
        slanted = scores.flatten(2)[..., begin : begin + count * short]
        return slanted.unflatten(-1, (count, short))[..., : (keys - 1) * self.a + 1 : self.a]


def _angles(numbers: Tensor, width: int) -> Tensor:
    """float64 (n, width / 2): each number times 10000^(-2c / width)."""
    # in float32 token 100,000 is already off by 0.004 rad, and mps has no float64
    device = torch.device("cpu") if numbers.device.type == "mps" else numbers.device
    steps = torch.arange(width // 2, device=device, dtype=torch.float64)
    return numbers.to(device).double()[:, None] * 10000.0 ** (-2 * steps / width)
