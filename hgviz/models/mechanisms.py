"""Sources of attention scores other than the queries and keys of tokens.

Rotary positions (Su et al. 2021), scores by distance (Dai et al. 2019; Cordonnier et al. 2020),
synthesised scores (Tay et al. 2021), and keys and values projected to slots (Wang et al. 2020).

Shapes: B batch, H heads, Q queries, K keys, n tokens, L the longest text, r slots, d width, D head
width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgviz.maps.rule import Diagonals, Distance, Quadratic, Relative, Rule

Side = Literal["q", "k"]

# --- positions ------------------------------------------------------------------------------------


def rotate(x: Tensor, tokens: Tensor) -> Tensor:
    """x (..., n, D) with each pair of columns rotated by t f_c, f_c = 10000^(-2c / D).

    tokens (n,): the token position t of each row (Su et al. 2021, eq. 34).
    """
    angles = _angles(tokens, x.shape[-1])
    cos, sin = (part.to(x.dtype).to(x.device) for part in (angles.cos(), angles.sin()))
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def distance_features(deltas: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """phi(delta) (n, width): the sines, then the cosines, of delta * 10000^(-2c / width)."""
    angles = _angles(deltas, width)
    return torch.cat([angles.sin(), angles.cos()], dim=-1).to(dtype).to(deltas.device)


def distance_keys(terms: Distance, deltas: Tensor) -> Tensor:
    """r(delta) (H, n, E) of distances delta (n,); see hgviz.maps.rule.Distance."""
    if isinstance(terms, Relative):
        phi = distance_features(deltas, terms.weight.shape[-1], terms.weight.dtype)
        return torch.einsum("nd,hed->hne", phi, terms.weight) + terms.bias[:, None]
    if isinstance(terms, Quadratic):  # half precision cannot hold 257, mps has no float64
        exact = torch.float32 if deltas.device.type == "mps" else torch.float64
        a, c = terms.curve.to(exact).unbind(-1)
        curve = -a[:, None] * (deltas.to(exact) - c[:, None]) ** 2
        return curve[..., None].to(terms.curve.dtype)
    assert isinstance(terms, Diagonals)
    last = terms.values.shape[1] - 1
    biases: Tensor = terms.values[:, (deltas.long() - terms.lowest).clamp(0, last), None]
    return biases


class DistanceScores:
    """Relative-position scores of the heads of a layer, computed for blocks of rows.

    Row i and column j are j a - i b steps apart; visible keys lie from lowest to highest.
    """

    def __init__(
        self, terms: Distance, rule: Rule, queries: int, keys: int, device: torch.device
    ) -> None:
        step = min(rule.stride_q, rule.stride_k)
        self.a, self.b = rule.stride_k // step, rule.stride_q // step
        self.lowest, highest = -(queries - 1) * self.b, (keys - 1) * self.a
        if rule.causal:
            highest = min(highest, self.b - 1)
        steps = torch.arange(self.lowest, highest + 1, device=device)
        self.keys = distance_keys(terms, steps * (step / terms.unit))  # (H, distances, E)

    def scores(self, position: Tensor, rows: Tensor, keys: int, left: int = 0) -> Tensor:
        """Scores (B, H, rows, keys) of the queries position (B, H, rows, E) at row numbers rows.

        The first key is in column left. Cells that the rule masks are undefined.
        """
        count, first = len(rows), int(rows[0])
        if count <= int(rows[-1]) - first:  # not one after another
            parts = zip(position.split(1, dim=-2), rows.split(1), strict=True)
            return torch.cat([self.scores(*part, keys, left) for part in parts], dim=-2)
        start = left * self.a - (first + count - 1) * self.b - self.lowest
        size = (keys - 1) * self.a + count * self.b + 1
        r = self.keys[:, start : start + size]
        r = F.pad(r, (0, 0, 0, size - r.shape[1]))
        scores = position @ r.transpose(-1, -2)  # (B, H, rows, distances)
        # a row starts b distances before the row above: cut the flat array into rows b shorter
        begin, short = (count - 1) * self.b, size - self.b
        slanted = scores.flatten(2)[..., begin : begin + count * short]
        return slanted.unflatten(-1, (count, short))[..., : (keys - 1) * self.a + 1 : self.a]


class QuadraticPositions(nn.Module):
    """Learned quadratic position scores (Cordonnier et al. 2020): a Gaussian over distances.

    spread (H,) is 1 / sigma and centre (H,) the mean, in tokens; alpha = spread^2 / 2. The initial
    centres are the nearest distances, as in a convolution.
    """

    def __init__(self, heads: int, causal: bool) -> None:
        super().__init__()
        numbers = torch.arange(heads)
        alternating = torch.where(numbers % 2 == 1, -(numbers + 1) // 2, numbers // 2)  # 0, -1, 1
        self.spread = nn.Parameter(torch.ones(heads))
        self.centre = nn.Parameter((-numbers if causal else alternating).float())

    def forward(self, scale: float) -> Quadratic:
        """The terms (H, 2) alpha / scale and centre: attention multiplies scores by scale."""
        alpha = self.spread**2 / 2
        return Quadratic(torch.stack([alpha / scale, self.centre], -1))


def _angles(numbers: Tensor, width: int) -> Tensor:
    """float64 (n, width / 2): each number times 10000^(-2c / width)."""
    # float32 is off by 0.004 rad at token 100,000, and mps has no float64
    device = torch.device("cpu") if numbers.device.type == "mps" else numbers.device
    steps = torch.arange(width // 2, device=device, dtype=torch.float64)
    return numbers.to(device).double()[:, None] * 10000.0 ** (-2 * steps / width)


# --- synthesised scores ---------------------------------------------------------------------------
#
# Tay et al. 2021 (Synthesizer), written as products of queries and keys:
# dense: score_ij = W_2[j] . relu(W_1 x_i + b_1) + b_2[j],
#   query (relu(W_1 x_i + b_1), 1), key (W_2[j], b_2[j])
# random: score_ij = R[i, j], query R[i], key e_j; fixed is the same, not trained
# factorised: score_ij = R_1[i] . R_2[j]


class Table(nn.Module):
    """A vector of each head for each position, independent of the tokens: weight (H * width, L).

    bias (H, L): a further element of each vector. fixed: random and never trained.
    """

    def __init__(
        self, heads: int, width: int, longest: int, bias: bool = False, fixed: bool = False
    ) -> None:
        super().__init__()
        self.shape, weight = (heads, width), torch.randn(heads * width, longest)
        if fixed:
            self.register_buffer("weight", weight)
        else:
            self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(heads, longest)) if bias else None

    def forward(self, count: int) -> Tensor:
        """Vectors (1, H, count, width) of the first positions, of width + 1 with a bias"""
        rows = self.weight[:, :count].unflatten(0, self.shape).mT
        if self.bias is not None:
            rows = torch.cat([rows, self.bias[:, :count, None]], -1)
        return rows[None]


class Dense(nn.Module):
    """Dense scores: a row of scores is a function of its own token."""

    def __init__(self, heads: int, width: int, d_head: int, longest: int) -> None:
        super().__init__()
        self.shape = heads, d_head
        self.q = nn.Linear(width, heads * d_head)
        self.k = Table(heads, d_head, longest, bias=True)

    def project(self, side: Side, x: Tensor) -> Tensor:
        """Queries (B, H, n, D + 1) of tokens (B, n, d), or keys (1, H, n, D + 1) of positions"""
        if side == "k":
            return self.k(x.shape[1])
        hidden = F.relu(self.q(x)).unflatten(-1, self.shape).transpose(1, 2)
        return F.pad(hidden, (0, 1), value=1.0)


class Factorised(nn.Module):
    """Factorised random scores: the product of two tables of vectors of width rank."""

    def __init__(self, heads: int, longest: int, rank: int) -> None:
        super().__init__()
        self.q, self.k = Table(heads, rank, longest), Table(heads, rank, longest)

    def project(self, side: Side, x: Tensor) -> Tensor:
        """Queries or keys (1, H, n, rank) of the positions of tokens (B, n, d)"""
        table = self.q if side == "q" else self.k
        return table(x.shape[1])


class Random(nn.Module):
    """Random scores: one of each head for each pair of positions, trained or fixed."""

    def __init__(self, heads: int, longest: int, fixed: bool) -> None:
        super().__init__()
        self.q = Table(heads, longest, longest, fixed=fixed)

    def project(self, side: Side, x: Tensor) -> Tensor:
        """Queries (1, H, n, L) of the positions of tokens (B, n, d), or one-hot keys"""
        if side == "q":
            return self.q(x.shape[1])
        heads, longest = self.q.shape
        identity = torch.eye(longest, dtype=x.dtype, device=x.device)
        return identity[: x.shape[1]].expand(1, heads, -1, -1)


class Synthesis(nn.Module):
    """Queries and keys of a layer with synthesised scores, or a mixture of several forms.

    forms: names of models.transformer.SCORES; "dot" is the scaled product of the queries and keys
    of tokens. The weights of a mixture are softmax(mix), mix (H, forms) (Tay et al. 2021).
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

    def project(self, side: Side, x: Tensor, content: Tensor | None) -> Tensor:
        """Queries or keys (B, H, n, E) of tokens (B, n, d); content (B, H, n, D): those of dot"""
        parts = [
            content
            if content is not None and form == "dot"
            else getattr(self, form).project(side, x)
            for form in self.forms
        ]
        if side == "q":
            factors: list[Any] = [self.scale if form == "dot" else 1.0 for form in self.forms]
            if len(self.forms) > 1:
                weights = self.mix.softmax(-1)[..., None, None]
                factors = [weights[:, i] * factor for i, factor in enumerate(factors)]
            parts = [part * factor for part, factor in zip(parts, factors, strict=True)]
        return torch.cat([part.expand(len(x), -1, -1, -1) for part in parts], -1)


# --- keys and values projected to slots -----------------------------------------------------------


class Projection(nn.Module):
    """Projection of a sequence to r slots, the same for all heads: weight (r, L)."""

    def __init__(self, slots: int, longest: int) -> None:
        super().__init__()
        self.weight = _random_weight(slots, longest)

    def forward(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """(B, n, d) -> (B, r, d); keep (B, n): padding counts as zeros"""
        if keep is not None:
            x = x * keep[..., None]
        return self.weight[:, : x.shape[1]] @ x

    def mixture(self, tokens: int, keep: Tensor | None) -> Tensor:
        """Weight (1, r, n) of each token of one text in each slot; keep (1, n)"""
        return _mask_padding(self.weight[None, :, :tokens], keep)


class Mixture(nn.Module):
    """Projection of keys or values to slots: weight (h, r, L), bias (h, r).

    h is the number of heads, or 1 where they share the projection.
    """

    def __init__(self, heads: int, slots: int, longest: int, bias: bool) -> None:
        super().__init__()
        self.weight = _random_weight(heads, slots, longest)
        self.bias = nn.Parameter(torch.zeros(heads, slots)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """(B, H, n, D) -> (B, H, r, D)"""
        mixed = self.weight[..., : x.shape[-2]] @ x
        return mixed if self.bias is None else mixed + self.bias[..., None]


class Mixtures(nn.Module):
    """E and F of Linformer (Wang et al. 2020): K' = E K, V' = F V.

    bias: add a number to each slot of each head. shared: F is E.
    """

    def __init__(self, heads: int, slots: int, longest: int, bias: bool, shared: bool) -> None:
        super().__init__()
        self.k = Mixture(heads, slots, longest, bias)
        if not shared:
            self.v = Mixture(heads, slots, longest, bias)

    @property
    def value_mixture(self) -> Mixture:
        """F, which is E where keys and values share it."""
        return getattr(self, "v", self.k)

    def forward(self, k: Tensor, v: Tensor, keep: Tensor | None) -> tuple[Tensor, Tensor]:
        """k and v (B, H, n, D) -> (B, H, r, D); keep (B, n): padding counts as zeros"""
        if keep is not None:
            k, v = k * keep[:, None, :, None], v * keep[:, None, :, None]
        return self.k(k), self.value_mixture(v)

    def mixture(self, tokens: int, keep: Tensor | None) -> Tensor:
        """Weight (h, r, n) of the value of each token of one text in each slot; keep (1, n)"""
        return _mask_padding(self.value_mixture.weight[..., :tokens], keep)


def _random_weight(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(shape) / math.sqrt(max(shape[-1], 1)))


def _mask_padding(weight: Tensor, keep: Tensor | None) -> Tensor:
    return weight if keep is None else weight * keep[0]
