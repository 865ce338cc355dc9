"""Whole attention maps in float64, straight from the formulas of the papers: the reference of every
rule. Nothing is shared with hgviz but the fields of its rules."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor


def dense_maps(q, k, rule, keep=None, relative=None) -> Tensor:
    """Maps (B, H, Q, K) of q (B, H, Q, D) and k (B, G, K, D); they have gradients."""
    k = k.double().repeat_interleave(q.shape[1] // max(1, k.shape[1]), 1)
    cells = visible_cells(rule, q.shape[2], k.shape[2], keep)
    maps = [
        head_map(dense_scores(q[:, h].double(), k[:, h], rule, relative, h), rule, h, cells[:, h])
        for h in range(q.shape[1])
    ]
    return torch.stack(maps, 1) if maps else q.new_zeros(*q.shape[:3], k.shape[2]).double()


def dense_context(maps, v, rule, keep) -> Tensor:
    """Maps times v (B, G, K, D); "uniform" rows read the mean over all keys, or their window."""
    v = v.double().repeat_interleave(maps.shape[1] // max(1, v.shape[1]), 1)
    return fill_empty(maps, rule, keep) @ v


def fill_empty(maps, rule, keep) -> Tensor:
    """The maps, with rows that see no key as rule.empty_rows says."""
    if rule.empty_rows == "zeros" or keep is None:
        return maps
    cells = visible_cells(rule, *maps.shape[2:], keep)
    bare = type(rule)(rule.scale, rule.activations, rule.norms, rule.stride_q, rule.stride_k,
                      windowed=rule.windowed)  # fmt: skip
    window = visible_cells(bare, *maps.shape[2:], None).double()
    return torch.where(cells.any(-1, keepdim=True), maps, window / window.sum(-1, keepdim=True))


def visible_cells(rule, queries, keys, keep) -> Tensor:
    """bool (B or 1, H, Q, K): the cells that exist."""
    i = torch.arange(queries)[:, None] * rule.stride_q
    j = torch.arange(keys) * rule.stride_k
    real = torch.ones(1, keys, dtype=torch.bool) if keep is None else torch.as_tensor(keep)
    earlier = j < i + rule.stride_q
    cells = earlier if rule.causal else torch.ones_like(earlier)
    if rule.windowed:
        group = max(rule.stride_q, rule.stride_k)
        cells = cells & (i // group == j // group)
    if rule.band is not None:
        cells = cells & (i - j <= rule.band[0]) & (j - i <= rule.band[1])
    if rule.chunk is not None:
        cells = cells & (i // rule.chunk == j // rule.chunk)
    cells = cells & real[:, None]
    number = real.cumsum(-1)[:, None] - 1  # of a key among the real ones
    latest = (earlier & real[:, None]).sum(-1, keepdim=True) - 1
    heads = []
    for near in rule.streaming or (None,) * len(rule.activations):
        sink, recent = near or (keys, keys)
        heads.append(cells & ((number < sink) | (number > latest - recent)))
    return torch.stack(heads, 1) if heads else cells[:, None][:, :0]


def dense_scores(q, k, rule, relative, head) -> Tensor:
    """Scaled scores (B, Q, K) of queries and keys (B, n, D) of one head."""
    scores = _scaled_scores(q, k, rule, relative, head)
    if rule.softcap is None or rule.activations[head] == "linear":  # features are no scores
        return scores
    return rule.softcap * torch.tanh(scores / rule.softcap)


def head_map(scores, rule, head, cells) -> Tensor:
    """Map (B, Q, K) of the scaled scores of one head."""
    name, norm = rule.activations[head], rule.norms[head]
    sink = 0.0 if rule.sinks is None else float(np.exp(rule.sinks[head]))
    chosen = largest(scores, cells, rule.top_k) if name == "topk" else cells
    if norm is not None:
        length = torch.linalg.vector_norm(torch.where(cells, scores, 0.0), dim=-1, keepdim=True)
        if norm == "l2":
            scores = scores / (length + 1e-9)
        else:
            scores = scores / torch.where(length > 0, length, 1.0) + 1e-9
    return dense_weights(name, torch.where(chosen, scores, 0.0), chosen, sink)


def _scaled_scores(q, k, rule, relative, head) -> Tensor:
    if rule.activations[head] == "linear":
        return (F.elu(q) + 1) @ (F.elu(k) + 1).mT
    scores = q @ k.mT
    if rule.activations[head] == "rbf":  # exp(-|q - k|^2 / 2), without what a row has in common
        scores = scores - (k**2).sum(-1)[:, None] / 2
    distance = (
        torch.arange(k.shape[1]) * rule.stride_k - torch.arange(q.shape[1])[:, None] * rule.stride_q
    ).double()
    if relative is None:
        return scores * rule.scale
    if hasattr(relative, "curve"):
        a, c = relative.curve[head].double()
        return (scores - a * (distance - c) ** 2) * rule.scale
    if hasattr(relative, "values"):
        return (scores + relative.values[head][distance.long() - relative.lowest]) * rule.scale
    half = relative.weight.shape[-1] // 2
    angles = (distance / relative.unit)[..., None] * 10000.0 ** (
        -torch.arange(half).double() / half
    )
    phi = torch.cat([angles.sin(), angles.cos()], -1)
    r = phi @ relative.weight[head].double().T + relative.bias[head]  # (Q, K, D)
    scores = scores + (relative.content[head].double() @ k.mT)[:, None]
    scores = scores + torch.einsum("bqd,qkd->bqk", q + relative.position[head], r)
    return scores * rule.scale


def largest(scores, cells, count) -> Tensor:
    """bool: the cells whose score is among the count largest of their row, ties included."""
    ordered = scores.masked_fill(~cells, -torch.inf).sort(-1, descending=True).values
    return cells & (scores >= ordered[..., min(count, scores.shape[-1]) - 1, None])


def dense_weights(name, s, cells, sink=0.0) -> Tensor:
    """Weights of scores s (..., Q, K), which are 0 outside the cells that exist."""

    def total(x):
        return torch.where(cells, x, 0.0).sum(-1, keepdim=True)

    def share(x, y):
        return x / torch.where(y > 0, y, 1.0)

    formulas = {
        "softmax": lambda: share(s.exp(), total(s.exp()) + sink),
        "softmax1": lambda: s.exp() / (1 + total(s.exp()) + sink),
        "softpick": lambda: s.expm1().relu() / (total(s.expm1().abs()) + 1e-8),
        "sigmoid": lambda: 1 / (1 + cells.sum(-1, keepdim=True) * (-s).exp()),
        "linear": lambda: s / (total(s) + 1e-6),
        "poly2": lambda: s**2 / (total(s**2) + 1e-18),
        "raw": lambda: s,
        "tanh": lambda: s.tanh(),
        "swish": lambda: F.silu(s),
        "elu": lambda: F.elu(s),
        "selu": lambda: F.selu(s),
        "leaky_relu": lambda: F.leaky_relu(s, 0.1),
        "ymish": lambda: s * s.abs().tanh(),
    }
    formula = formulas[{"topk": "softmax", "rbf": "softmax"}.get(name, name)]
    return torch.where(cells, formula(), 0.0)
