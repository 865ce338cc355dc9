"""Where tokens stand, as attention sees it: rotary turns, and distances of two kinds.

Shapes: B batch, H heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from hgviz.maps.rule import Diagonals, Distance, Quadratic, Relative, Rule


class Bias(ABC):
    """What the distance of a query and a key adds to their product, of the heads of one layer."""

    unit: int  # one step of delta, in tokens

    @abstractmethod
    def each(self, change: Callable[[Tensor], Any]) -> Self:
        """The same with every tensor changed; the first axis of each is that of heads."""

    @abstractmethod
    def to_keys(self, q: Tensor) -> Tensor:
        """What queries (B, H, Q, D) meet keys with, (B, H, Q, D)."""

    @abstractmethod
    def to_distances(self, q: Tensor) -> Tensor:
        """What they meet distances with, (B, H, Q, E)."""

    @abstractmethod
    def keys(self, deltas: Tensor) -> Tensor:
        """What they meet there, (H, n, E), for distances (n,)."""

    @abstractmethod
    def kept(self, change: Callable[[Tensor], NDArray[Any]]) -> Distance:
        """The same as a capture keeps it; change makes an array of a tensor."""


@dataclass(frozen=True, slots=True)
class Sinusoids(Bias):
    """Transformer-XL terms; shapes and source as hgviz.maps.Relative."""

    weight: Tensor
    bias: Tensor
    content: Tensor
    position: Tensor
    unit: int

    def each(self, change: Callable[[Tensor], Any]) -> Self:
        """The same with every tensor changed."""
        parts = (self.weight, self.bias, self.content, self.position)
        return type(self)(*map(change, parts), self.unit)  # type: ignore[call-arg]

    def to_keys(self, q: Tensor) -> Tensor:
        """q + u"""
        return q + self.content[:, None]

    def to_distances(self, q: Tensor) -> Tensor:
        """q + v"""
        return q + self.position[:, None]

    def keys(self, deltas: Tensor) -> Tensor:
        """W phi(delta) + b (Dai et al. 2019, 3.3)"""
        phi = distance_features(deltas, self.weight.shape[-1], self.weight.dtype)
        return torch.einsum("nd,hed->hne", phi, self.weight) + self.bias[:, None]

    def kept(self, change: Callable[[Tensor], NDArray[Any]]) -> Relative:
        """The same as a capture keeps it."""
        parts = (self.weight, self.bias, self.content, self.position)
        weight, bias, content, position = map(change, parts)
        return Relative(weight, bias, content, position, self.unit)


@dataclass(frozen=True, slots=True)
class Parabolas(Bias):
    """Quadratic terms; curve (H, 2) and source as hgviz.maps.Quadratic."""

    curve: Tensor
    unit: int = 1

    def each(self, change: Callable[[Tensor], Any]) -> Self:
        """The same with every tensor changed."""
        return type(self)(change(self.curve))

    def to_keys(self, q: Tensor) -> Tensor:
        """q"""
        return q

    def to_distances(self, q: Tensor) -> Tensor:
        """1"""
        return torch.ones_like(q[..., :1])

    def keys(self, deltas: Tensor) -> Tensor:
        """-a (delta - c)^2, in float64 where there is such a thing: half precision has no 257"""
        exact = torch.float32 if deltas.device.type == "mps" else torch.float64
        a, c = self.curve.to(exact).unbind(-1)
        found = -a[:, None] * (deltas.to(exact) - c[:, None]) ** 2
        return found[..., None].to(self.curve.dtype)

    def kept(self, change: Callable[[Tensor], NDArray[Any]]) -> Quadratic:
        """The same as a capture keeps it."""
        return Quadratic(change(self.curve))


@dataclass(frozen=True, slots=True)
class Biases(Bias):
    """A bias by distance; values (H, distances) and source as hgviz.maps.Diagonals."""

    values: Tensor
    lowest: int
    unit: int = 1

    def each(self, change: Callable[[Tensor], Any]) -> Self:
        """The same with every tensor changed."""
        return type(self)(change(self.values), self.lowest)

    def to_keys(self, q: Tensor) -> Tensor:
        """q"""
        return q

    def to_distances(self, q: Tensor) -> Tensor:
        """1"""
        return torch.ones_like(q[..., :1])

    def keys(self, deltas: Tensor) -> Tensor:
        """The bias of each distance"""
        last = self.values.shape[1] - 1
        return self.values[:, (deltas.long() - self.lowest).clamp(0, last), None]

    def kept(self, change: Callable[[Tensor], NDArray[Any]]) -> Diagonals:
        """The same as a capture keeps it."""
        return Diagonals(change(self.values), self.lowest)


class Quadratics(nn.Module):
    """Quadratic positions that are learnt: each head looks around a centre, as wide as it is.

    spread (H,) is 1 / sigma of its Gaussian and centre (H,) its mean, in tokens, so that alpha is
    spread^2 / 2: in one dimension Cordonnier's general Gaussian heads are the same thing. Heads
    begin as the taps of a convolution, one at each of the nearest distances.
    """

    def __init__(self, heads: int, causal: bool) -> None:
        super().__init__()
        numbers = torch.arange(heads)
        # 0, -1, -2, ..., or 0, -1, 1, -2, 2, ...
        both = torch.where(numbers % 2 == 1, -(numbers + 1) // 2, numbers // 2)
        self.spread = nn.Parameter(torch.ones(heads))
        self.centre = nn.Parameter((-numbers if causal else both).float())

    def forward(self, scale: float) -> Parabolas:
        """The terms beside products that are scaled so"""
        alpha = self.spread**2 / 2
        return Parabolas(torch.stack([alpha / scale, self.centre], -1))


def bias_of(kept: Distance, change: Callable[[NDArray[Any]], Tensor]) -> Bias:
    """The terms that a capture kept, as tensors."""
    if isinstance(kept, Diagonals):
        return Biases(change(kept.values), kept.lowest)
    if isinstance(kept, Quadratic):
        return Parabolas(change(kept.curve))
    parts = (kept.weight, kept.bias, kept.content, kept.position)
    weight, bias, content, position = map(change, parts)
    return Sinusoids(weight, bias, content, position, kept.unit)


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
    """What queries meet for every distance of a layer.

    Row i and column j are j a - i b steps apart, from lowest to highest where keys are seen.
    """

    def __init__(
        self, relative: Bias, rule: Rule, queries: int, keys: int, device: torch.device
    ) -> None:
        step = min(rule.stride_q, rule.stride_k)
        self.a, self.b = rule.stride_k // step, rule.stride_q // step
        self.lowest, highest = -(queries - 1) * self.b, (keys - 1) * self.a
        if rule.causal:
            highest = min(highest, self.b - 1)
        self.relative = relative
        steps = torch.arange(self.lowest, highest + 1, device=device)
        self.r = relative.keys(steps * (step / relative.unit))  # (H, E, D)

    def scores(self, q: Tensor, rows: Tensor, keys: int, left: int = 0) -> Tensor:
        """Scores by distance, (B, H, rows, K), of the rows of the given numbers with so many keys,
        the first of which stands in the column left.

        q (B, H, rows, D). Cells that are never seen hold any number.
        """
        count, first = len(rows), int(rows[0])
        if count <= int(rows[-1]) - first:  # not one after another
            each = [self.scores(q[..., [t], :], rows[t : t + 1], keys, left) for t in range(count)]
            return torch.cat(each, dim=-2)
        start = left * self.a - (first + count - 1) * self.b - self.lowest
        size = (keys - 1) * self.a + count * self.b + 1
        r = self.r[:, start : start + size]
        r = F.pad(r, (0, 0, 0, size - r.shape[1]))
        scores = self.relative.to_distances(q) @ r.transpose(-1, -2)  # (B, H, rows, distances)
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
