"""Differential attention: the map of a head is one softmax less lambda times another (Ye et al.
2024, arXiv 2410.05258).

transformers asks for the two softmaxes of a head as heads of their own, twice, once for each half
of the values. Here they are one head: its queries and keys are those of both softmaxes side by
side, its values both halves, and what it gives is normed by itself before it goes on.

Shapes: B batch, n tokens, H heads, D width of a query of one softmax.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

MODULE = "DiffLlamaAttention"


@dataclass(frozen=True, slots=True)
class Difference:
    """share: lambda, what the second softmax counts; norm: (B, H, n, 2 D) to the same, of what a
    head gives."""

    share: Tensor
    norm: Callable[[Tensor], Tensor]


def parts(net: nn.Module) -> list[Any]:
    """The modules of a model that attend so."""
    return [part for part in net.modules() if type(part).__name__ == MODULE]


def projected(
    module: Any, hidden: Tensor, turns: tuple[Tensor, Tensor], past: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries (B, H, n, 2 D), keys and values of a layer, of both softmaxes side by side."""
    products = module.q_proj, module.k_proj, module.v_proj
    q, k, v = (one(hidden).unflatten(-1, (-1, module.head_dim)).transpose(1, 2) for one in products)
    q, k = sys.modules[type(module).__module__].apply_rotary_pos_emb(q, k, *turns)
    if past is not None:
        k, v = past.update(k, v, module.layer_idx)
    q, k, v = (torch.cat(one.chunk(2, 1), -1) for one in (q, k, v))
    return q, k, v


def difference_of(module: Any) -> Difference:
    """What a layer subtracts, and how it norms what is left."""
    one, other = (
        (q * k).sum(dtype=torch.float32).exp().to(q.dtype)
        for q, k in ((module.lambda_q1, module.lambda_k1), (module.lambda_q2, module.lambda_k2))
    )
    share = one - other + module.lambda_init
    return Difference(share, lambda context: (1 - module.lambda_init) * module.groupnorm(context))
