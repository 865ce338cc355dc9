"""The one place where models attend: every kind of head by the form that suits it.

Shapes: B batch, H heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hgviz.activations import ACTIVATIONS, SUM_EPSILON
from hgviz.core import raise_if_cancelled
from hgviz.maps.rule import Rule
from hgviz.models.factors import RowLogSums, factors
from hgviz.models.positions import Bias, distance_features, rotate
from hgviz.models.weighing import (
    Alike,
    alike,
    in_order,
    needed,
    per_head,
    row_blocks,
    scored,
    visible,
    weigh,
    weights,
)

AGAIN = 1 << 25  # cells of a kind of heads in one layer
LONG = 1 << 28  # cells of all heads: some tenths of a second of the CPU's kernel
FEW = 64  # rows that one call is worth, however many keys there are
CHUNK = 128  # rows that meet their newest keys one by one in causal linear attention


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rule: Rule,
    *,
    keep: Tensor | None = None,
    relative: Bias | None = None,
    row_sums: RowLogSums | None = None,
) -> Tensor:
    """Context (B, H, Q, D) of q (B, H, Q, D) over k, v (B, G, K, D), G groups of heads or all H.

    rule says scale, activation and norm per head, and which keys a query sees; keep (B, K) is
    False for padded keys; row_sums, where given, gets the row statistics that come with the
    context.
    """
    raise_if_cancelled()
    if rule.windowed:
        return _attend_windows(q, k, v, rule, keep)
    return _attend(q, k, v, rule, keep, relative, row_sums)


def _attend_windows(q: Tensor, k: Tensor, v: Tensor, rule: Rule, keep: Tensor | None) -> Tensor:
    # fold each window into the batch: nothing outside it is ever computed
    batch, queries = len(q), q.shape[-2]
    groups = min(queries, k.shape[-2])
    # going up, the last window may lack rows
    q = F.pad(q, (0, 0, 0, -queries % max(1, rule.stride_k // rule.stride_q)))

    def fold(x: Tensor) -> Tensor:  # (B, H, G * s, D) -> (B * G, H, s, D)
        parts = x.unflatten(2, (groups, -1)).transpose(1, 2)
        return parts.flatten(0, 1)

    inner = replace(rule, windowed=False, causal=False)
    folded = None if keep is None else keep.reshape(batch * groups, -1)
    context = _attend(fold(q), fold(k), fold(v), inner, folded, None)
    parts = context.unflatten(0, (batch, groups)).transpose(1, 2)
    return parts.flatten(2, 3)[:, :, :queries]


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rule: Rule,
    keep: Tensor | None,
    relative: Bias | None,
    row_sums: RowLogSums | None = None,
) -> Tensor:
    if row_sums is None and keep is None and relative is None and _is_one_call(q, k, v, rule):
        # the kernel itself reads keys once that several heads share
        return F.scaled_dot_product_attention(
            q, k, v, is_causal=rule.causal, scale=rule.scale, enable_gqa=True
        )
    parts = []
    for one in alike(q, k, rule, relative):
        form = _form(one, v)
        if row_sums is not None and form is _fused and _gives_sums(one, keep):
            context, row_sums[one.places] = _fused_and_summed(one, one.values(v), keep)
            parts.append(context)
        else:
            parts.append(form(one, one.values(v), keep))
    if not parts:
        return torch.zeros_like(q)  # a layer without heads
    context = in_order(rule, parts)
    if keep is None:
        return context
    # a fused kernel gives rows without keys some mean, and packages that mask by a large negative
    # number give them the mean over all keys, future ones too
    filling = v.new_zeros(())
    if rule.empty_rows == "uniform":
        filling = per_head(v.mean(-2, keepdim=True), q.shape[1])
    return torch.where(_empty(rule, q.shape[-2], keep), filling, context)


def _is_one_call(q: Tensor, k: Tensor, v: Tensor, rule: Rule) -> bool:
    """Whether the fused kernel attends for all heads of a layer at once: softmax over all keys, or
    over all up to the row's own, of a map small enough that a stop can wait for it."""
    softmax = {*rule.activations} == {"softmax"} and not any(rule.norms)
    plain = rule.softcap is None and rule.sinks is None and rule.whole and not rule.near
    square = rule.stride_q == rule.stride_k and q.shape[-2] == k.shape[-2]
    small = q.shape[:-1].numel() * k.shape[-2] <= LONG
    fits = q.device.type == "cpu" and q.shape[-1] == v.shape[-1] and small
    return softmax and plain and fits and (square or not rule.causal)


def _empty(rule: Rule, queries: int, keep: Tensor) -> Tensor:
    """bool (B, 1, Q, 1): the rows that see no key."""
    count, rows = keep.shape[-1], torch.arange(queries, device=keep.device)
    first, stop = torch.zeros_like(rows), torch.full_like(rows, count)
    if rule.causal:  # as Rule.reach
        stop = -(-((rows + 1) * rule.stride_q) // rule.stride_k)
    if rule.band is not None:
        first, stop = rows - rule.band[0], stop.minimum(rows + rule.band[1] + 1)
    if rule.chunk is not None:
        start = rows // rule.chunk * rule.chunk
        first, stop = first.maximum(start), stop.minimum(start + rule.chunk)
    seen = F.pad(keep.cumsum(-1), (1, 0))  # of the keys before each
    before, all_ = (seen[:, None, ends.clamp(0, count), None] for ends in (first, stop))
    return before == all_


# --- the forms: (B, h, Q, D) of heads alike and their v (B, h, K, D) ------------------------------

Form = Callable[[Alike, Tensor, Tensor | None], Tensor]


def _form(one: Alike, v: Tensor) -> Form:
    if one.rule.nearest is not None:
        return _streamed
    # of keys that are wider than values the fused kernel of a CPU would hold whole maps
    plain = one.norm is None and one.rule.softcap is None and one.rule.sinks is None
    if plain and one.activation == "softmax" and one.q.shape[-1] == v.shape[-1]:
        return _fused
    features = ACTIVATIONS[one.activation].features is not None
    if one.norm is None and features and one.rule.whole:  # whose sums go on from row to row
        return _linear
    return _weighed


def _weighed(one: Alike, v: Tensor, keep: Tensor | None) -> Tensor:
    """Weights times values, a block of rows at a time."""
    parts = []
    again = torch.is_grad_enabled() and _many(one)
    for rows, columns in row_blocks(one):
        block = partial(_weighed_block, one, v, keep, rows, columns)
        if again:
            parts.append(checkpoint(block, use_reentrant=False, preserve_rng_state=False))
        else:
            parts.append(block())
    return torch.cat(parts, dim=-2)


def _weighed_block(
    one: Alike, v: Tensor, keep: Tensor | None, rows: Tensor, columns: slice
) -> Tensor:
    return one.weigh(*scored(one, rows, keep, columns)) @ v[..., columns, :]


def _streamed(one: Alike, v: Tensor, keep: Tensor | None) -> Tensor:
    """Weights times values over the first keys and the latest, a block of rows at a time."""
    parts = []
    for rows, within in row_blocks(one):
        columns = needed(one.rule, rows, within, keep)
        parts.append(one.weigh(*scored(one, rows, keep, within, columns)) @ v[..., columns, :])
    return torch.cat(parts, dim=-2)


def _many(one: Alike) -> bool:
    """Whether maps are too large to be kept for the way back, and are computed again there."""
    cells = one.q.shape[:-1].numel() * one.k.shape[-2]
    return one.q.device.type == "cpu" and cells > AGAIN


def _fused(one: Alike, v: Tensor, keep: Tensor | None) -> Tensor:
    """Softmax by the fused kernel, whole where it knows the mask itself."""
    if _long(one, keep):
        return _fused_by_rows(one, v)[0]
    parts = [
        F.scaled_dot_product_attention(
            q, k, v[..., columns, :], mask, is_causal=causal, scale=one.rule.scale
        )
        for q, k, columns, mask, causal in _calls(one, keep)
    ]
    return _joined(parts)


def _fused_and_summed(one: Alike, v: Tensor, keep: Tensor | None) -> tuple[Tensor, Tensor]:
    """The same with the log-sum-exp (B, h, Q) that the kernel comes by on its way."""
    if _long(one, keep):
        return _fused_by_rows(one, v)
    parts = [
        _flash(
            one, q, k, v[..., columns, :], causal, None if mask is None else _added(mask, q.dtype)
        )
        for q, k, columns, mask, causal in _calls(one, keep)
    ]
    context, sums = (_joined(part) for part in zip(*parts, strict=True))
    if keep is not None:
        sums = sums.masked_fill(_empty(one.rule, sums.shape[-1], keep)[..., 0], torch.inf)
    return context, sums


def _flash(
    one: Alike, q: Tensor, k: Tensor, v: Tensor, causal: bool, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Context and log-sum-exp of queries over the keys that there are, by the CPU's kernel."""
    scale = one.rule.scale
    context, sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, 0.0, causal, attn_mask=mask, scale=scale
    )
    return context, sums


def _long(one: Alike, keep: Tensor | None) -> bool:
    """Whether one call of the kernel would take so long that nobody could stop it meanwhile."""
    if one.q.device.type != "cpu" or torch.is_grad_enabled():
        return False
    return one.q.shape[:-1].numel() * one.k.shape[-2] > LONG and _whole(one, keep)


def _fused_by_rows(one: Alike, v: Tensor) -> tuple[Tensor, Tensor]:
    """The same a block of rows at a time. The kernel knows causal squares alone: rows meet the keys
    of their own block and those before it in two calls, which their log-sum-exps make one softmax
    of (Milakov and Gimelshein 2018)."""
    q, k, parts = one.q, one.k, []
    step = max(FEW, LONG // max(1, q.shape[:-2].numel() * k.shape[-2]))
    for start in range(0, q.shape[-2], step):
        raise_if_cancelled()
        rows = slice(start, start + step)
        few = q[..., rows, :]
        if not one.rule.causal:
            parts.append(_flash(one, few, k, v, causal=False))
            continue
        context, sums = _flash(one, few, k[..., rows, :], v[..., rows, :], causal=True)
        if start:
            before, its = _flash(one, few, k[..., :start, :], v[..., :start, :], causal=False)
            both = torch.logaddexp(sums, its)
            mine, theirs = ((part - both).exp()[..., None] for part in (sums, its))
            context, sums = (context * mine + before * theirs).to(q.dtype), both
        parts.append((context, sums))
    context, sums = (torch.cat(part, dim=2) for part in zip(*parts, strict=True))
    return context, sums


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """(B, h, Q, ...) of parts of the rows."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=2)  # which would copy one


def _gives_sums(one: Alike, keep: Tensor | None) -> bool:
    """Whether the kernel's log-sum-exp is that of the scores; in half precision not of those that
    come as a mask.
    """
    return one.q.device.type == "cpu" and (_whole(one, keep) or one.q.dtype.itemsize >= 4)


def _calls(
    one: Alike, keep: Tensor | None
) -> Iterator[tuple[Tensor, Tensor, slice, Tensor | None, bool]]:
    """What the fused kernel is called with: queries, keys and which these are, a mask, whether it
    is causal.
    """
    q, k, rule, relative = one.q, one.k, one.rule, one.relative
    if _whole(one, keep):
        yield q, k, slice(None), None, rule.causal
        return
    for rows, columns in row_blocks(one):
        part = q[..., rows, :]
        numbers = torch.arange(columns.start, columns.stop, device=q.device)
        seen = visible(rule, rows, numbers, keep)
        # the kernel may give NaN for a row without keys: let it see all, it is overwritten
        mask = seen | ~seen.any(-1, keepdim=True)
        if relative is not None and one.distances is not None:
            scores = rule.scale * one.distances.scores(part, rows, len(numbers), columns.start)
            mask = scores.masked_fill(~mask, -torch.inf)
            part = relative.to_keys(part)
        yield part, k[..., columns, :], columns, mask, False


def _added(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask as what is added to scores."""
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, -torch.inf)


def _whole(one: Alike, keep: Tensor | None) -> bool:
    """Whether the fused kernel knows the mask itself."""
    square = one.rule.stride_q == one.rule.stride_k and one.q.shape[-2] == one.k.shape[-2]
    if not one.rule.whole:
        return False
    return keep is None and one.relative is None and (square or not one.rule.causal)


def _linear(one: Alike, v: Tensor, keep: Tensor | None) -> Tensor:
    """Linear attention without its map, in O(n) (Katharopoulos et al. 2020, eqs. 5 and 9)."""
    q, k, exact = one.q, one.k, torch.promote_types(v.dtype, torch.float32)
    if keep is not None:
        k = torch.where(keep[:, None, :, None], k, 0.0)
    # a column of ones sums the weights; sums over a whole text need more than half precision
    q, k, values = q.to(exact), k.to(exact), F.pad(v.to(exact), (0, 1), value=1.0)
    if one.rule.causal:
        total = _prefix_sums(q, k, values, one.rule)
    else:
        total = q @ (k.transpose(-1, -2) @ values)
    return (total[..., :-1] / (total[..., -1:] + SUM_EPSILON)).to(v.dtype)


def _prefix_sums(q: Tensor, k: Tensor, v: Tensor, rule: Rule) -> Tensor:
    """Each row's q . k over the keys it reaches, times v: the old by their sum, the new by map."""
    keys, parts, done = k.shape[-2], [], 0
    past = q.new_zeros(*k.shape[:2], k.shape[-1], v.shape[-1])  # (B, h, D, D + 1)
    for start in range(0, q.shape[-2], CHUNK):
        stop = min(start + CHUNK, q.shape[-2])
        all_see, reach = rule.reach(start, keys)[1], rule.reach(stop - 1, keys)[1]
        old, new = slice(done, all_see), slice(all_see, reach)
        past = past + k[..., old, :].transpose(-1, -2) @ v[..., old, :]
        done = all_see
        rows = torch.arange(start, stop, device=q.device)
        columns = torch.arange(all_see, reach, device=q.device)
        part = q[..., start:stop, :]
        near = part @ k[..., new, :].transpose(-1, -2)
        near = torch.where(visible(rule, rows, columns, None), near, 0.0)
        parts.append(part @ past + near @ v[..., new, :])
    return torch.cat(parts, dim=-2)


__all__ = [
    "Bias", "attend", "distance_features", "factors", "rotate", "visible", "weigh", "weights",
]  # fmt: skip
