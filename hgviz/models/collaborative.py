"""Heads that share their queries and keys and mix them, each in its own way.

S^(h) = X W_Q diag(m_h) W_K^T X^T, of one W_Q and one W_K for all heads of a layer (Cordonnier,
Loukas and Jaggi 2020, eq. 6), and what biases add: c_h . x_key, and of the query b_h . x + e_h,
which softmax does not see. Shapes: B batch, n tokens, H heads, R shared width, d width.
"""

from __future__ import annotations

import warnings
from typing import ClassVar

import torch
from torch import Tensor, nn

from hgviz.core import Layer
from hgviz.maps.rule import Rule
from hgviz.models.blocks import Attention
from hgviz.models.slots import Mixtures
from hgviz.models.synthesis import Side


class Collaborative(Attention):
    """One layer of such heads: q_h = (x W_Q * m_h, b_h . x + e_h, 1), k_h = (x W_K, 1, c_h . x).

    Their product is the whole score, so all that reads queries and keys reads these. mix (H, R)
    holds every m_h, key_bias (H, d) every c_h, query_bias b_h and e_h.
    """

    of_all: ClassVar = ("o", "q", "k")

    def __init__(
        self,
        layer: Layer,
        rule: Rule,
        width: int,
        d_head: int,
        positions: str,
        shared: int,
        mixtures: Mixtures | None = None,
    ) -> None:
        super().__init__(layer, rule, width, d_head, positions, mixtures=mixtures)
        heads = len(layer.heads)
        self.q = nn.Linear(width, shared, bias=False)
        self.k = nn.Linear(width, shared, bias=False)
        self.mix = nn.Parameter(torch.empty(heads, shared))
        with warnings.catch_warnings():  # as in any layer without heads
            warnings.filterwarnings("ignore", "Initializing zero-element tensors")
            self.key_bias = nn.Linear(width, heads, bias=False)
            self.query_bias = nn.Linear(width, heads)
            nn.init.normal_(self.mix, std=(d_head / shared) ** 0.5)  # scores as of ordinary heads

    def _side(self, name: Side, x: Tensor) -> Tensor:
        if name == "q":
            own = self.q(x)[:, None] * self.mix[:, None]  # (B, H, n, R)
            bias = self.query_bias(x).mT[..., None]
            return torch.cat([own, bias, torch.ones_like(bias)], -1)
        own = self.k(x)[:, None].expand(-1, len(self.mix), -1, -1)
        bias = self.key_bias(x).mT[..., None]
        return torch.cat([own, torch.ones_like(bias), bias], -1)
