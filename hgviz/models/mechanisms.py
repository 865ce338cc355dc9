"""What scores are made of besides the products of queries and keys.

Rotary positions (Su et al. 2021), scores by distance (Dai et al. 2019; Cordonnier et al. 2020),
synthesised scores (Tay et al. 2021), and keys that are mixtures of tokens (Wang et al. 2020).

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


def distance_keys(terms: Distance, deltas: Tensor) -> Tensor:
    """r(delta) (H, n, E) of the distances (n,); see hgviz.maps.rule.Distance."""
    if isinstance(terms, Relative):
        phi = distance_features(deltas, terms.weight.shape[-1], terms.weight.dtype)
        return torch.einsum("nd,hed->hne", phi, terms.weight) + terms.bias[:, None]
    if isinstance(terms, Quadratic):  # in float64 where there is such a thing: no half has 257
        exact = torch.float32 if deltas.device.type == "mps" else torch.float64
        a, c = terms.curve.to(exact).unbind(-1)
        curve = -a[:, None] * (deltas.to(exact) - c[:, None]) ** 2
        return curve[..., None].to(terms.curve.dtype)
    assert isinstance(terms, Diagonals)
    last = terms.values.shape[1] - 1
    biases: Tensor = terms.values[:, (deltas.long() - terms.lowest).clamp(0, last), None]
    return biases


class DistanceScores:
    """The scores by distance of some heads of a layer, for blocks of rows.

    Row i and column j are j a - i b steps apart, from lowest to highest where keys are seen.
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
        """Scores (B, H, rows, K) of positions (B, H, rows, E), the queries of the given row
        numbers, with so many keys, the first of which stands in the column left.

        Cells that are never seen hold any number.
        """
        count, first = len(rows), int(rows[0])
        if count <= int(rows[-1]) - first:  # not one after another
            single_rows = [
                self.scores(position[..., [row], :], rows[row : row + 1], keys, left)
                for row in range(count)
            ]
            return torch.cat(single_rows, dim=-2)
        start = left * self.a - (first + count - 1) * self.b - self.lowest
        size = (keys - 1) * self.a + count * self.b + 1
        r = self.keys[:, start : start + size]
        r = F.pad(r, (0, 0, 0, size - r.shape[1]))
        scores = position @ r.transpose(-1, -2)  # (B, H, rows, distances)
        # each row begins b distances before the one above: cut the flat rows b shorter
        begin, short = (count - 1) * self.b, size - self.b
        slanted = scores.flatten(2)[..., begin : begin + count * short]
        return slanted.unflatten(-1, (count, short))[..., : (keys - 1) * self.a + 1 : self.a]


class QuadraticPositions(nn.Module):
    """Learned quadratic positions: each head attends to a Gaussian around a distance.

    spread (H,) is 1 / sigma of the Gaussian and centre (H,) its mean, in tokens, so that alpha is
    spread^2 / 2; in one dimension Cordonnier's general Gaussian heads are the same. Heads start as
    the taps of a convolution, one at each of the nearest distances.
    """

    def __init__(self, heads: int, causal: bool) -> None:
        super().__init__()
        numbers = torch.arange(heads)
        # 0, -1, -2, ..., or 0, -1, 1, -2, 2, ...
        both = torch.where(numbers % 2 == 1, -(numbers + 1) // 2, numbers // 2)
        self.spread = nn.Parameter(torch.ones(heads))
        self.centre = nn.Parameter((-numbers if causal else both).float())

    def forward(self, scale: float) -> Quadratic:
        """The terms (H, 2) of scores that are multiplied by scale."""
        alpha = self.spread**2 / 2
        return Quadratic(torch.stack([alpha / scale, self.centre], -1))


def _angles(numbers: Tensor, width: int) -> Tensor:
    """float64 (n, width / 2): each number times 10000^(-2c / width)."""
    # in float32 token 100,000 is already off by 0.004 rad, and mps has no float64
    device = torch.device("cpu") if numbers.device.type == "mps" else numbers.device
    steps = torch.arange(width // 2, device=device, dtype=torch.float64)
    return numbers.to(device).double()[:, None] * 10000.0 ** (-2 * steps / width)


# --- synthesised scores ---------------------------------------------------------------------------
#
# Every form is a product of queries with keys, so that what reads queries and keys needs no other
# case: dense, score_ij = W_2[j] . relu(W_1 x_i + b_1) + b_2[j], of (relu(...), 1) with
# (W_2[j], b_2[j]); random, score_ij = R[i, j], of R[i] with e_j (fixed is the same, not trained);
# factorised, score_ij = R_1[i] . R_2[j].


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


# --- keys that are mixtures of tokens -------------------------------------------------------------


class Projection(nn.Module):
    """weight (r, L), shared by the keys and values of all heads."""

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
