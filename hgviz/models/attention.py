"""The one place where models attend: scores, masks, activations, heads off, and the tap.

Shapes: B batch, H heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hgviz.activations import ACTIVATIONS, NORM_EPSILON
from hgviz.core import HgvizError
from hgviz.maps.rule import Factors, Norm, Relative, Rule

ROWS = 512  # rows of scores held at once while statistics are taken
PROOF_ROWS = 8

Tap = Callable[[int, Factors], None]


# --- scores to weights ----------------------------------------------------------------------------


def weigh(
    scores: Tensor,
    keep: Tensor | None,
    activation: str,
    norm: Norm = None,
    k: int | None = None,
) -> Tensor:
    """Weights (..., q, k) of scaled scores (..., q, k).

    keep: bool, broadcastable to scores; a key that is not kept has weight, norm and sum exactly 0,
    and a row without keys is all zeros. norm "l2" divides each row by its Euclidean length + 1e-9,
    "l2-literal" adds the 1e-9 after the division, as the line ymish was published with.
    k: how many scores "topk" keeps (ties with the last one are kept too).
    Raises HgvizError for an unknown activation or norm, or topk without k.
    """
    if activation not in ACTIVATIONS:
        raise HgvizError(
            f"unknown attention activation {activation!r}",
            f"the known ones are {', '.join(ACTIVATIONS)}",
        )
    keep = torch.ones_like(scores, dtype=torch.bool) if keep is None else keep.expand_as(scores)
    scores = torch.where(keep, scores, 0.0)
    if norm is not None:
        scores = _normalised(scores, norm)
    if activation == "topk":
        keep = keep & _largest(scores.masked_fill(~keep, -torch.inf), k)
    row = ACTIVATIONS[activation]
    stat = None
    if row.statistic == "lse":
        lse = scores.masked_fill(~keep, -torch.inf).logsumexp(-1, keepdim=True)
        stat = torch.where(lse.isneginf(), 0.0, lse)
    return torch.where(keep, row.apply(scores, stat, torch), 0.0)


def _normalised(scores: Tensor, norm: Norm) -> Tensor:
    length = torch.linalg.vector_norm(scores, dim=-1, keepdim=True)
    if norm == "l2":
        return scores / (length + NORM_EPSILON)
    if norm == "l2-literal":
        return scores / length + NORM_EPSILON
    raise HgvizError(f"unknown norm {norm!r}", "the known ones are l2 and l2-literal")


def _largest(scores: Tensor, k: int | None) -> Tensor:
    if k is None or k < 1:
        raise HgvizError("topk needs k, the number of keys each query keeps", "", "Give k >= 1")
    last = scores.topk(min(k, scores.shape[-1]), dim=-1).values[..., -1:]
    return scores >= last


# --- attending ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bias:
    """Transformer-XL terms of one layer as tensors; shapes and source as hgviz.maps.Relative."""

    weight: Tensor
    bias: Tensor
    content: Tensor
    position: Tensor
    unit: int


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rule: Rule,
    *,
    keep: Tensor | None = None,
    relative: Bias | None = None,
    off: Collection[int] = (),
    tap: Callable[[Factors], None] | None = None,
) -> Tensor:
    """Context (B, H, Q, D) of q (B, H, Q, D) over k, v (B, H, K, D).

    rule says scale, activation and norm per head, and which keys a query sees; keep (B, K) is
    False for padded keys; off lists the positions of heads whose context is set to zero; tap is
    given what is needed to compute any weight again (one text at a time).
    """
    if tap is not None:
        tap(factors(q, k, rule, keep, relative))
    if rule.windowed:
        context = _attend_windows(q, k, v, rule, keep)
    else:
        context = _attend(q, k, v, rule, keep, relative)
    if off:
        context = context.index_fill(1, torch.tensor(sorted(off), device=q.device), 0.0)
    return context


def _attend(
    q: Tensor, k: Tensor, v: Tensor, rule: Rule, keep: Tensor | None, relative: Bias | None
) -> Tensor:
    plain = set(rule.activations) == {"softmax"} and set(rule.norms) == {None}
    if plain and keep is None and relative is None and _simple(rule, q, k):
        return F.scaled_dot_product_attention(q, k, v, is_causal=rule.causal, scale=rule.scale)
    rows = torch.arange(q.shape[-2], device=q.device)
    seen = visible(rule, rows, k.shape[-2], keep)
    empty = ~seen.any(-1, keepdim=True)
    if plain:
        # a fused kernel may give NaN for a row without keys: let it see all, overwrite it below
        mask = seen | empty
        if relative is not None:
            scores = rule.scale * _position_scores(q, relative, rule, k.shape[-2], rows)
            mask = scores.masked_fill(~mask, -torch.inf)
            q = q + relative.content[:, None]
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=rule.scale)
    else:
        context = weights(q, k, rule, keep, relative) @ v
    if keep is None:
        return context
    mean = v.mean(-2, keepdim=True)
    return torch.where(empty, mean if rule.empty_rows == "uniform" else 0.0 * mean, context)


def _simple(rule: Rule, q: Tensor, k: Tensor) -> bool:
    return not rule.causal or (rule.stride_q == rule.stride_k and q.shape[-2] == k.shape[-2])


def _attend_windows(q: Tensor, k: Tensor, v: Tensor, rule: Rule, keep: Tensor | None) -> Tensor:
    # fold each window into the batch: nothing outside it is ever computed
    batch, heads, queries, width = q.shape
    groups = min(queries, k.shape[-2])

    def fold(x: Tensor) -> Tensor:  # (B, H, G * s, D) -> (B * G, H, s, D)
        parts = x.unflatten(2, (groups, -1)).transpose(1, 2)
        return parts.flatten(0, 1)

    inner = replace(rule, windowed=False, causal=False)
    folded = None if keep is None else keep.reshape(batch * groups, -1)
    context = _attend(fold(q), fold(k), fold(v), inner, folded, None)
    parts = context.unflatten(0, (batch, groups)).transpose(1, 2)
    return parts.reshape(batch, heads, queries, width)


def visible(rule: Rule, rows: Tensor, keys: int, keep: Tensor | None) -> Tensor:
    """bool (B or 1, 1, rows, K): the cells that exist in the rows of the given numbers."""
    i = rows[:, None] * rule.stride_q
    j = torch.arange(keys, device=rows.device)[None, :] * rule.stride_k
    seen = torch.ones(len(rows), keys, dtype=torch.bool, device=rows.device)
    if rule.causal:
        seen &= j < i + rule.stride_q
    if rule.windowed:
        group = max(rule.stride_q, rule.stride_k)
        seen &= i // group == j // group
    seen = seen[None, None]
    return seen if keep is None else seen & keep[:, None, None, :]


def weights(
    q: Tensor,
    k: Tensor,
    rule: Rule,
    keep: Tensor | None = None,
    relative: Bias | None = None,
    rows: Tensor | None = None,
) -> Tensor:
    """The maps themselves (B, H, rows, K), without filling of empty rows."""
    scores, seen = _scores(q, k, rule, keep, relative, rows)
    parts = [
        weigh(scores[:, h : h + 1], seen, activation, norm)
        for h, (activation, norm) in enumerate(zip(rule.activations, rule.norms, strict=True))
    ]
    return torch.cat(parts, dim=1)


def _scores(
    q: Tensor,
    k: Tensor,
    rule: Rule,
    keep: Tensor | None,
    relative: Bias | None,
    rows: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Scaled scores (B, H, rows, K) and which of them exist."""
    numbers = torch.arange(q.shape[-2], device=q.device) if rows is None else rows
    part = q if rows is None else q[..., rows, :]
    content = part if relative is None else part + relative.content[:, None]
    scores = content @ k.transpose(-1, -2)
    if relative is not None:
        scores = scores + _position_scores(part, relative, rule, k.shape[-2], numbers)
    return scores * rule.scale, visible(rule, numbers, k.shape[-2], keep)


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


def _angles(numbers: Tensor, width: int) -> Tensor:
    """float64 (n, width / 2): each number times 10000^(-2c / width)."""
    # in float32 token 100,000 is already off by 0.004 rad, and mps has no float64
    device = torch.device("cpu") if numbers.device.type == "mps" else numbers.device
    steps = torch.arange(width // 2, device=device, dtype=torch.float64)
    return numbers.to(device).double()[:, None] * 10000.0 ** (-2 * steps / width)


def _position_scores(q: Tensor, relative: Bias, rule: Rule, keys: int, rows: Tensor) -> Tensor:
    """(q + v) . (W phi(delta) + b), (B, H, rows, K): one product per distinct distance."""
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


# --- the tap --------------------------------------------------------------------------------------


@torch.no_grad()
def factors(
    q: Tensor, k: Tensor, rule: Rule, keep: Tensor | None, relative: Bias | None
) -> Factors:
    """What a capture keeps of one layer of one text; q (1, H, Q, D), k (1, H, K, D)."""
    if len(q) != 1:
        raise HgvizError("only one text can be captured at a time", f"got a batch of {len(q)}")
    if q.device.type == "mps":  # it has no float64
        q, k, keep = q.cpu(), k.cpu(), None if keep is None else keep.cpu()
        relative = None if relative is None else _each(relative, Tensor.cpu)
    q, k = q.detach(), k.detach()
    rows = _proof_rows(q.shape[-2])
    at = torch.as_tensor(rows, device=q.device)
    exact = None if relative is None else _each(relative, Tensor.double)
    proof = weights(q.double(), k.double(), rule, keep, exact, at)[0]
    if rule.empty_rows == "uniform":
        proof = _filled(proof, rule, keep, at)
    complete = replace(
        rule,
        keep=None if keep is None else keep[0].cpu().numpy(),
        relative=None if relative is None else _numpy_relative(relative),
    )
    return Factors(
        q=_numpy(q[0]),
        k=_numpy(k[0]),
        stat=_numpy(_statistic(q, k, rule, keep, relative)),
        rule=complete,
        proof_rows=rows,
        proof_values=proof.float().cpu().numpy(),
        dtype=str(q.dtype).removeprefix("torch."),
    )


def _statistic(
    q: Tensor, k: Tensor, rule: Rule, keep: Tensor | None, relative: Bias | None
) -> Tensor:
    """float32 (H, Q): the row statistic of every head, by blocks of rows."""
    if q.dtype.itemsize < 4:  # in half precision it would put whole rows off by per cents
        q, k = q.float(), k.float()
        relative = None if relative is None else _each(relative, Tensor.float)
    out = []
    for start in range(0, q.shape[-2], ROWS):
        rows = torch.arange(start, min(start + ROWS, q.shape[-2]), device=q.device)
        scores, seen = _scores(q, k, rule, keep, relative, rows)
        stat = scores.masked_fill(~seen, -torch.inf).logsumexp(-1)
        stat = torch.where(stat.isneginf(), torch.inf, stat)
        for h, (activation, norm) in enumerate(zip(rule.activations, rule.norms, strict=True)):
            if norm is not None:
                one = torch.where(seen[:, 0], scores[:, h], 0.0)
                stat[:, h] = torch.linalg.vector_norm(one, dim=-1)
            elif ACTIVATIONS[activation].statistic == "none":
                stat[:, h] = 0.0
        out.append(stat[0].float())
    return torch.cat(out, dim=-1)


def _filled(proof: Tensor, rule: Rule, keep: Tensor | None, rows: Tensor) -> Tensor:
    """Rows without keys as the packages compute them that mask by a large negative number."""
    empty = ~visible(rule, rows, proof.shape[-1], keep)[0].any(-1, keepdim=True)
    whole = visible(replace(rule, causal=False), rows, proof.shape[-1], None)[0]
    return torch.where(empty, whole / whole.sum(-1, keepdim=True), proof)


def _proof_rows(queries: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    count = min(PROOF_ROWS, queries)
    return np.unique(np.linspace(0, queries - 1, count).round().astype(np.int64))


def _numpy_relative(one: Bias) -> Relative:
    found = _each(one, lambda part: _numpy(part.detach()))
    return Relative(found.weight, found.bias, found.content, found.position, found.unit)


def _each(one: Bias, change: Callable[[Tensor], Any]) -> Any:
    parts = (one.weight, one.bias, one.content, one.position)
    return Bias(*map(change, parts), one.unit)  # type: ignore[call-arg]


def _numpy(x: Tensor) -> Any:
    x = x.contiguous().cpu()
    if x.dtype == torch.bfloat16:  # numpy has no bfloat16: its bits, named by Factors.dtype
        return x.view(torch.int16).numpy().view(np.uint16)
    return x.numpy()
