"""The one place where models attend, and what a capture keeps of it.

Heads of a layer may differ in activation, norm, keys and window. `head_groups` sorts them into
groups that are computed alike, and `attend` gives each group its context by the form that suits it:
the fused kernel for softmax, running sums for linear attention, blocks that stay in a processor's
cache for weights of a score alone, blocks of rows for all else.
`factors` keeps q, k and the row statistics, from which any part of a map can be computed again.

Shapes: B batch, H heads of a layer, h heads of a group, G key groups, Q queries, K keys, D head
width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby, product
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from hgviz.activations import ACTIVATIONS, LEAK, NORM_EPSILON, SUM_EPSILON
from hgviz.core import HgvizError, raise_if_cancelled
from hgviz.errors import choose
from hgviz.maps.rule import Distance, Factors, Grouped, Norm, Rule, proof_rows
from hgviz.models.mechanisms import DistanceScores

# a block of rows holds at most so many cells of all heads of a group: on a CPU what its caches hold
ROWS = 512
CELLS, DEVICE_CELLS = 1 << 20, 1 << 26
RECOMPUTE_CELLS = 1 << 25  # of a group: larger maps are computed again on the way back
LONG_CELLS = 1 << 28  # of a group: some tenths of a second of the CPU's kernel
LEAST_ROWS = 64  # of one call of the kernel, however many keys there are
LINEAR_ROWS = 128  # that meet their newest keys one by one in causal linear attention
CACHE_CELLS, CACHE_ROWS = 1 << 18, 256  # scores of one head that a processor's cache holds
LEAST_CELLS = 1 << 16  # of a head's map, from which on heads are worth to be taken one by one
MIN_GAP = 1e-5  # of a row's largest score: a threshold in a narrower gap would not be recomputed

RowLogSums = dict[tuple[int, ...], Tensor]  # log-sum-exp (B, h, Q) by the heads of a group

# --- scores to weights ----------------------------------------------------------------------------


def weigh(
    scores: Tensor,
    keep: Tensor | None,
    activation: str,
    norm: Norm = None,
    k: int | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """Weights (..., q, k) of scaled scores (..., q, k); of phi(q) . phi(k) for "linear".

    keep: bool, broadcastable to scores; a key that is not kept has weight, norm and sum exactly 0,
    and a row without keys is all zeros. norm "l2" divides each row by its Euclidean length + 1e-9,
    "l2-literal" adds the 1e-9 after the division, as the line ymish was published with.
    k: only the k largest scores of a row keep their weight, ties with the last one too; the k
    largest magnitudes for activations that are no softmax. The activation topk needs it.
    sinks (..., 1, 1): logits that take part in the sum of each row of a softmax and have no key.
    Raises HgvizError for an unknown activation or norm, a k below 1, and topk without k.
    """
    row = ACTIVATIONS[choose(activation, ACTIVATIONS, "attention activation")]
    if keep is not None and keep.is_floating_point():
        raise HgvizError(f"a mask of keys must be boolean: this one is {keep.dtype}", "Use bool")
    seen = torch.ones_like(scores, dtype=torch.bool) if keep is None else keep.bool()
    scores = torch.where(seen, scores, 0.0)
    chosen = seen
    if k is not None or activation == "topk":
        chosen = choose_largest(ranking(scores, activation), seen, k)
    if norm is not None:
        scores = normalize_rows(scores, norm)
    stat = None
    if row.statistic == "lse":
        scores, terms = row.split(scores, torch)
        stat = log_sum_exp(terms, chosen, sinks, row.sink)
        scores = scores.masked_fill(~chosen, -torch.inf)  # exp(0 - stat) may be too large
    elif row.statistic == "sum":
        stat = (torch.where(chosen, scores, 0.0) ** row.power).sum(-1, keepdim=True)
    return torch.where(chosen, row.apply(scores, stat, torch), 0.0)


def normalize_rows(scores: Tensor, norm: Norm) -> Tensor:
    """Scores (..., q, k) over the length of their row; masked ones are 0, and stay 0 for l2."""
    choose(str(norm), ("l2", "l2-literal"), "norm")
    wide = torch.promote_types(scores.dtype, torch.float32)  # 1e-9 is 0 in float16
    length = torch.linalg.vector_norm(scores, dim=-1, keepdim=True, dtype=wide)
    if norm == "l2":
        normalized = scores / (length + NORM_EPSILON)
    else:  # where all scores are 0 the line as published gives NaN
        normalized = scores / torch.where(length > 0, length, 1.0) + NORM_EPSILON
    return normalized.to(scores.dtype)


def log_sum_exp(scores: Tensor, seen: Tensor, *sinks: Tensor | float | None) -> Tensor:
    """Log-sum-exp (..., q, 1) of the seen scores and the sinks; finite for a row without any."""
    # such a row counts all its scores: log 0 has no gradient
    counted = seen | ~seen.any(-1, keepdim=True)
    total = scores.masked_fill(~counted, -torch.inf).logsumexp(-1, keepdim=True)
    for sink in sinks:
        if sink is not None:
            total = torch.logaddexp(total, torch.as_tensor(sink).to(total))
    return total


def ranking(scores: Tensor, activation: str) -> Tensor:
    """What the k largest are chosen by: scores, or magnitudes where negative scores weigh too."""
    return scores if ACTIVATIONS[activation].statistic == "lse" else scores.abs()


def choose_largest(ranks: Tensor, seen: Tensor, k: int | None) -> Tensor:
    """Which of the seen cells are among the k largest of their row, or as large as the last."""
    if k is None or k < 1:
        raise HgvizError("topk needs k, the number of keys each query keeps", "Give k >= 1")
    ranks = ranks.masked_fill(~seen, -torch.inf)
    last = ranks.topk(min(k, ranks.shape[-1]), dim=-1).values[..., -1:]
    return seen & (ranks >= last)


# --- queries and keys to scores -------------------------------------------------------------------


@dataclass(frozen=True)
class HeadGroup:
    """Heads of one layer that share activation, norm and window: q (B, h, Q, D), k (B, h, K, D).

    heads: their places among the layer's heads. rule and relative are for them alone. key_group:
    the number of the keys and values that they share, None where each has its own.
    """

    heads: tuple[int, ...]
    rule: Rule
    relative: Distance | None
    q: Tensor
    k: Tensor
    key_group: int | None = None

    @property
    def activation(self) -> str:
        """The activation they share."""
        return self.rule.activations[0]

    @property
    def norm(self) -> Norm:
        """The norm they share."""
        return self.rule.norms[0]

    @property
    def cells(self) -> int:
        """How many weights their maps have, of all texts."""
        return self.q.shape[:-1].numel() * self.k.shape[-2]

    def of_layer(self, x: Tensor) -> Tensor:
        """Their part of a tensor of all heads (B, H, ...)."""
        return x[:, _index(self.heads)]

    def values(self, v: Tensor) -> Tensor:
        """Their values (B, h, K, D) of those of all key groups or heads (B, G, K, D)."""
        if self.key_group is None:
            return self.of_layer(v)
        return _expand_group(v, self.key_group, len(self.heads))

    @cached_property
    def distances(self) -> DistanceScores | None:
        """Their scores by distance, made once for all rows."""
        if self.relative is None:
            return None
        sizes = self.q.shape[-2], self.k.shape[-2]
        return DistanceScores(self.relative, self.rule, *sizes, self.q.device)

    @property
    def sinks(self) -> Tensor | None:
        """A logit (h, 1, 1) of each head that no key has, where a softmax weighs."""
        if self.rule.sinks is None or not ACTIVATIONS[self.activation].softmax:
            return None
        return torch.as_tensor(self.rule.sinks, device=self.q.device)[:, None, None]

    def row_blocks(self) -> Iterator[tuple[Tensor, slice]]:
        """The numbers of some rows at a time, and the columns outside which they see no key."""
        queries, keys = self.q.shape[-2], self.k.shape[-2]
        cells = CELLS if self.q.device.type == "cpu" else DEVICE_CELLS
        near = self.rule.streaming_window
        across = min(keys, (self.rule.width(keys) if near is None else sum(near)) + ROWS)
        step = min(ROWS, max(16, cells // max(1, self.q.shape[:2].numel() * across)))
        for start in range(0, queries, step):
            raise_if_cancelled()
            stop = min(start + step, queries)
            first, last = self.rule.reach(start, keys)[0], self.rule.reach(stop - 1, keys)[1]
            first = max(0, min(first, last - 1))  # a column that nobody sees is better than none
            yield torch.arange(start, stop, device=self.q.device), slice(first, last)

    def scores(
        self,
        rows: Tensor,
        keep: Tensor | None,
        span: slice = slice(None),
        columns: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Scaled scores (B, h, rows, columns) of some rows with the keys of a span, and which of
        these cells exist, bool. columns: of the span only these, by number."""
        q, k = self.q[..., rows, :], self.k[..., span, :]
        first, keys = span.start or 0, k.shape[-2]
        chosen = slice(None) if columns is None else columns - first
        k = k[..., chosen, :]
        content, position = (q, q) if self.relative is None else self.relative.query_terms(q)
        scores = content @ k.transpose(-1, -2)
        of_keys = ACTIVATIONS[self.activation].of_keys
        if of_keys is not None:
            scores = scores + of_keys(k, torch)[..., None, :]
        if self.distances is not None:
            scores = scores + self.distances.scores(position, rows, keys, first)[..., chosen]
        columns = torch.arange(first, first + keys, device=q.device)[chosen]
        scores = scores * self.rule.scale_of(0)
        cap = self.rule.softcap  # of scores, which products of features are not
        if cap is not None and ACTIVATIONS[self.activation].features is None:
            scores = (scores / cap).tanh() * cap
        return scores, visible(self.rule, rows, columns, keep)

    def weigh(self, scores: Tensor, seen: Tensor) -> Tensor:
        """Their weights (B, h, rows, columns) of scaled scores."""
        k = self.rule.top_k_of(0)
        return weigh(scores, seen, self.activation, self.norm, k, self.sinks)

    def to(self, dtype: torch.dtype) -> HeadGroup:
        """The same group in another precision."""
        terms = None if self.relative is None else self.relative.map(lambda part: part.to(dtype))
        return replace(self, q=self.q.to(dtype), k=self.k.to(dtype), relative=terms)

    def single_heads(self) -> Iterator[HeadGroup]:
        """Each head as a group of its own."""
        for at, place in enumerate(self.heads):
            part = slice(at, at + 1)
            terms = self.relative
            if terms is not None:
                terms = terms.map(lambda array, part=part: array[part])  # type: ignore[misc]
            yield HeadGroup(
                (place,), self.rule.select((at,)), terms, self.q[:, part], self.k[:, part]
            )


def head_groups(
    q: Tensor, k: Tensor, rule: Rule, relative: Distance | None = None
) -> Iterator[HeadGroup]:
    """The heads of a layer by kind and by key group of k (B, G, K, D), which is not copied.

    Queries and keys are features where these are weighed; such heads take no part in relative
    positions, since there are no scores to add them to.
    """
    heads_per_group = q.shape[1] // max(1, k.shape[1])
    for kind in rule.head_kinds():
        shared: Any = [(None, kind)]
        if heads_per_group > 1:
            shared = groupby(kind, lambda head: head // heads_per_group)
        for key_group, members in shared:
            heads = tuple(members)
            at = _index(heads)
            group_q, terms = q[:, at], None
            group_k = k[:, at] if key_group is None else _expand_group(k, key_group, len(heads))
            features = ACTIVATIONS[rule.activations[heads[0]]].features
            if features is not None:
                group_q, group_k = features(group_q, torch), features(group_k, torch)
            elif relative is not None:
                terms = relative.map(lambda array, at=at: array[at])  # type: ignore[misc]
            yield HeadGroup(heads, rule.select(heads), terms, group_q, group_k, key_group)


def _expand_group(x: Tensor, group: int, heads: int) -> Tensor:
    """Keys or values (B, heads, K, D) that heads share, held once."""
    return x[:, group : group + 1].expand(-1, heads, -1, -1)


def _index(heads: tuple[int, ...]) -> Any:
    # a slice is a view, a list a copy
    together = heads[-1] - heads[0] + 1 == len(heads)
    return slice(heads[0], heads[-1] + 1) if together else list(heads)


def expand_key_groups(x: Tensor, heads: int) -> Tensor:
    """Keys or values (B, G, K, D) of key groups, one copy a head (B, H, K, D)."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], dim=1)


def in_layer_order(rule: Rule, parts: Sequence[Tensor]) -> Tensor:
    """Results of the head groups of a layer (B, h, ...), as (B, H, ...) in the layer's order."""
    order = [place for places in rule.head_kinds() for place in places]
    joined = parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=1)
    if order == sorted(order):
        return joined
    return joined[:, [order.index(place) for place in range(len(order))]]


def visible(rule: Rule, rows: Tensor, columns: Tensor, keep: Tensor | None) -> Tensor:
    """bool (B or 1, 1, rows, columns): the cells that exist, by row and column numbers."""
    seen: Tensor = rule.allows(rows, columns)[None, None]
    if rule.streaming_window is not None:
        seen = seen & rule.in_streaming_window(rows, columns, _keys_before(keep)).unsqueeze(-3)
    return seen if keep is None else seen & keep[:, None, None, columns]


def visible_columns(rule: Rule, rows: Tensor, span: slice, keep: Tensor | None) -> Tensor | None:
    """The numbers (n,) of the columns of a span that any of these rows sees, for heads that stream;
    None for others, whose rows see all."""
    if rule.streaming_window is None:
        return None
    columns = torch.arange(span.start, span.stop, device=rows.device)
    # the rows below the first see what is later
    near: Tensor = rule.in_streaming_window(rows[:1], columns, _keys_before(keep))
    return columns[near.reshape(-1, len(columns)).any(0)]


def _keys_before(keep: Tensor | None) -> Tensor | None:
    """How many kept keys come before each key of keep (B, K), and in all: (B, K + 1)."""
    return None if keep is None else F.pad(keep.cumsum(-1), (1, 0))


def weights(
    q: Tensor, k: Tensor, rule: Rule, keep: Tensor | None = None, relative: Distance | None = None
) -> Tensor:
    """The maps themselves (B, H, Q, K), without filling of empty rows."""
    rows = torch.arange(q.shape[-2], device=q.device)
    parts = [group.weigh(*group.scores(rows, keep)) for group in head_groups(q, k, rule, relative)]
    return in_layer_order(rule, parts) if parts else q.new_zeros(len(q), 0, len(rows), k.shape[-2])


# --- attending ------------------------------------------------------------------------------------


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rule: Rule,
    *,
    keep: Tensor | None = None,
    relative: Distance | None = None,
    row_sums: RowLogSums | None = None,
) -> Tensor:
    """Context (B, H, Q, D) of q (B, H, Q, D) over k, v (B, G, K, D), G key groups or all H heads.

    rule: scale, activation and norm per head, and which keys a query sees. keep (B, K): False for
    padded keys. row_sums: where given, filled with the row statistics that come with the context.
    """
    raise_if_cancelled()
    if rule.windowed:
        return _attend_windows(q, k, v, rule, keep)
    if row_sums is None and keep is None and relative is None and _is_one_call(q, k, v, rule):
        # the kernel itself reads keys once that several heads share
        return F.scaled_dot_product_attention(
            q, k, v, is_causal=rule.causal, scale=rule.scale, enable_gqa=True
        )
    parts = []
    for group in head_groups(q, k, rule, relative):
        context, log_sum = _attend_group(group, group.values(v), keep, row_sums is not None)
        parts.append(context)
        if row_sums is not None and log_sum is not None:
            row_sums[group.heads] = log_sum
    if not parts:
        return torch.zeros_like(q)  # a layer without heads
    context = in_layer_order(rule, parts)
    if keep is None:
        return context
    # a fused kernel gives rows without keys some mean, and packages that mask by a large negative
    # number give them the mean over all keys, future ones too
    filling = v.new_zeros(())
    if rule.empty_rows == "uniform":
        filling = expand_key_groups(v.mean(-2, keepdim=True), q.shape[1])
    return torch.where(_empty_rows(rule, q.shape[-2], keep), filling, context)


def _attend_windows(q: Tensor, k: Tensor, v: Tensor, rule: Rule, keep: Tensor | None) -> Tensor:
    # fold each window into the batch: nothing outside it is ever computed
    batch, queries = len(q), q.shape[-2]
    windows = min(queries, k.shape[-2])
    # going up, the last window may lack rows
    q = F.pad(q, (0, 0, 0, -queries % max(1, rule.stride_k // rule.stride_q)))

    def fold(x: Tensor) -> Tensor:  # (B, H, windows * s, D) -> (B * windows, H, s, D)
        parts = x.unflatten(2, (windows, -1)).transpose(1, 2)
        return parts.flatten(0, 1)

    inner = replace(rule, windowed=False, causal=False)
    folded = None if keep is None else keep.reshape(batch * windows, -1)
    context = attend(fold(q), fold(k), fold(v), inner, keep=folded)
    parts = context.unflatten(0, (batch, windows)).transpose(1, 2)
    return parts.flatten(2, 3)[:, :, :queries]


def _is_one_call(q: Tensor, k: Tensor, v: Tensor, rule: Rule) -> bool:
    """Whether the fused kernel attends for all heads of a layer at once: softmax over all keys, or
    over all up to the row's own, of a map small enough that a stop can wait for it."""
    softmax = {*rule.activations} == {"softmax"} and not any(rule.norms)
    plain = rule.softcap is None and rule.sinks is None and rule.sees_all and not rule.streaming
    square = rule.stride_q == rule.stride_k and q.shape[-2] == k.shape[-2]
    small = q.shape[:-1].numel() * k.shape[-2] <= LONG_CELLS
    fits = q.device.type == "cpu" and q.shape[-1] == v.shape[-1] and small
    return softmax and plain and fits and (square or not rule.causal)


def _empty_rows(rule: Rule, queries: int, keep: Tensor) -> Tensor:
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


def _attend_group(
    group: HeadGroup, v: Tensor, keep: Tensor | None, want_sums: bool
) -> tuple[Tensor, Tensor | None]:
    """Context (B, h, Q, D) of a group over its values (B, h, K, D), and the log-sum-exp (B, h, Q)
    of its rows where that is wanted and comes with the context."""
    rule, row = group.rule, ACTIVATIONS[group.activation]
    if rule.streaming_window is None and group.norm is None:
        # of keys that are wider than values the fused kernel of a CPU would hold whole maps
        plain = rule.softcap is None and rule.sinks is None
        if plain and group.activation == "softmax" and group.q.shape[-1] == v.shape[-1]:
            return _attend_fused(group, v, keep, want_sums)
        if row.features is not None and rule.sees_all:  # whose sums go on from row to row
            return _attend_linear(group, v, keep), None
    if group.q.device.type == "cpu" and not torch.is_grad_enabled():
        if _is_pointwise(group, v):
            return _attend_pointwise(group, v, keep), None
        plain = group.norm is None and rule.sinks is None and rule.streaming_window is None
        top_k = rule.top_k or 0  # values that are read one by one may not outnumber the map
        plain = plain and 0 < top_k * v.shape[-1] <= group.k.shape[-2]
        if group.activation == "topk" and plain:
            return _attend_topk(group, v, keep, top_k), None
    return _attend_by_rows(group, v, keep), None


def _attend_by_rows(group: HeadGroup, v: Tensor, keep: Tensor | None) -> Tensor:
    """Weights times values, a block of rows at a time."""
    on_cpu = group.q.device.type == "cpu"
    recompute = torch.is_grad_enabled() and on_cpu and group.cells > RECOMPUTE_CELLS
    of_keys, parts = ACTIVATIONS[group.activation].of_keys, []
    if recompute and group.relative is None and group.rule.softcap is None and of_keys is None:
        return cast(Tensor, RecomputedAttention.apply(group.q, group.k, v, group, keep))
    for rows, span in group.row_blocks():
        block = partial(_attend_rows, group, v, keep, rows, span)
        if recompute:
            parts.append(checkpoint(block, use_reentrant=False, preserve_rng_state=False))
        else:
            parts.append(block())
    return torch.cat(parts, dim=-2)


def _attend_rows(
    group: HeadGroup, v: Tensor, keep: Tensor | None, rows: Tensor, span: slice
) -> Tensor:
    columns = visible_columns(group.rule, rows, span, keep)
    row_weights = group.weigh(*group.scores(rows, keep, span, columns))
    return row_weights @ v[..., span if columns is None else columns, :]


class RecomputedAttention(torch.autograd.Function):
    """Attention by plain scores whose maps are computed again on the way back, block by block."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, group: HeadGroup, keep: Tensor | None
    ) -> Tensor:
        """Context (B, h, Q, D) of a group with queries q and keys k."""
        ctx.save_for_backward(q, k, v)
        ctx.group, ctx.keep = group, keep
        return _attend_group(replace(group, q=q, k=k), v, keep, want_sums=False)[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients by q, k and v, of one head and some rows at a time."""
        q, k, v = ctx.saved_tensors
        by_q, by_k, by_v = (q.new_zeros(x.shape) for x in (q, k, v))
        scale = ctx.group.rule.scale_of(0)
        for text, place in product(*map(range, q.shape[:2])):
            at = slice(text, text + 1), slice(place, place + 1)
            head = HeadGroup((place,), ctx.group.rule.select((place,)), None, q[at], k[at])
            keep = None if ctx.keep is None else ctx.keep[at[0]]
            for rows, span in head.row_blocks():
                scores, seen = head.scores(rows, keep, span)
                with torch.enable_grad():
                    weights = head.weigh(scores.requires_grad_(), seen)
                by_context = gradient[text, place, rows]
                by_weights = (by_context @ v[text, place, span].T)[None, None]
                (by_scores,) = torch.autograd.grad(weights, scores, by_weights)
                by_products = by_scores[0, 0] * scale
                by_q[text, place, rows] = by_products @ k[text, place, span]
                by_k[text, place, span] += by_products.T @ q[text, place, rows]
                by_v[text, place, span] += weights[0, 0].detach().T @ by_context
        return by_q, by_k, by_v, None, None


# --- weights of a score alone ---------------------------------------------------------------------

# in place, in the fewest passes over memory; a score of 0 weighs 0
FUSED: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh_,
    "swish": partial(F.silu, inplace=True),
    "selu": torch.selu_,
    "elu": partial(F.elu, inplace=True),
    "leaky_relu": partial(F.leaky_relu, negative_slope=LEAK, inplace=True),
    "ymish": lambda scores: scores.mul_(scores.tanh().abs_()),
    "raw": lambda scores: scores,
}


def _is_pointwise(group: HeadGroup, v: Tensor) -> bool:
    """Whether weights are FUSED functions of plain scores of all keys, or all up to the row's own,
    over their norm at most; of maps large enough."""
    simple = group.activation in FUSED and group.norm in (None, "l2")
    simple = simple and group.rule.softcap is None and _kernel_knows_mask(group, None)
    large = group.q.shape[-2] * group.k.shape[-2] >= LEAST_CELLS
    exact = group.q.dtype == v.dtype and v.dtype in (torch.float32, torch.float64)
    return simple and large and exact


def _attend_pointwise(group: HeadGroup, v: Tensor, keep: Tensor | None) -> Tensor:
    """Context by blocks of rows of one head, whose scores stay in the cache and in one place."""
    q, k, causal = group.q, group.k, group.rule.causal
    if keep is not None:  # padded keys get scores of 0, and these weigh 0
        k = torch.where(keep[:, None, :, None], k, 0.0)
    q = q * group.rule.scale_of(0)
    queries, keys = q.shape[-2], k.shape[-2]
    context = q.new_empty(*q.shape[:-1], v.shape[-1])
    rows = min(CACHE_ROWS, max(16, CACHE_CELLS // keys))
    memory = q.new_empty(rows * keys)
    for text, head in product(*map(range, q.shape[:2])):
        raise_if_cancelled()
        columns, values = k[text, head].T, v[text, head]
        for start in range(0, queries, rows):
            stop = min(start + rows, queries)
            seen = stop if causal else keys
            scores = memory[: (stop - start) * seen].view(stop - start, seen)
            torch.mm(q[text, head, start:stop], columns[:, :seen], out=scores)
            if causal:
                scores[:, start:].tril_()
            if group.norm is not None:
                scores /= torch.linalg.vector_norm(scores, dim=1, keepdim=True) + NORM_EPSILON
            weights = FUSED[group.activation](scores)
            torch.mm(weights, values[:seen], out=context[text, head, start:stop])
    return context


def _attend_topk(group: HeadGroup, v: Tensor, keep: Tensor | None, top_k: int) -> Tensor:
    """Softmax of the k largest scores of each row, and only their values; where several are as
    large as the last, all of these, by the map."""
    parts = []
    for rows, span in group.row_blocks():
        scores, seen = group.scores(rows, keep, span)
        scores = scores.masked_fill(~seen, -torch.inf)
        kept = min(top_k, scores.shape[-1])
        largest, places = scores.topk(kept, dim=-1)
        values = v[..., span, :]
        if ((scores >= largest[..., -1:]) & seen).sum(-1).max() > kept:
            parts.append(group.weigh(torch.where(seen, scores, 0.0), seen) @ values)
            continue
        weights = torch.where(largest.isneginf(), 0.0, largest.softmax(-1))  # rows without keys
        index = places.flatten(2)[..., None].expand(-1, -1, -1, v.shape[-1])
        chosen = values.gather(2, index).unflatten(2, places.shape[2:])  # (B, h, rows, k, D)
        parts.append((weights[..., None, :] @ chosen).squeeze(-2))
    return torch.cat(parts, dim=-2)


# --- softmax by the fused kernel ------------------------------------------------------------------


def _attend_fused(
    group: HeadGroup, v: Tensor, keep: Tensor | None, want_sums: bool
) -> tuple[Tensor, Tensor | None]:
    """Context and, where wanted and exact, the log-sum-exp that the kernel comes by on its way."""
    on_cpu, in_one_call = group.q.device.type == "cpu", _kernel_knows_mask(group, keep)
    if on_cpu and in_one_call and group.cells > LONG_CELLS and not torch.is_grad_enabled():
        context, sums = _attend_long(group, v)
        return context, sums if want_sums else None
    if not want_sums or not on_cpu or not (in_one_call or group.q.dtype.itemsize >= 4):
        # in half precision the sum is not that of scores that come as a mask
        parts = [
            F.scaled_dot_product_attention(
                q, k, v[..., columns, :], mask, is_causal=causal, scale=group.rule.scale
            )
            for q, k, columns, mask, causal in _kernel_calls(group, keep)
        ]
        return _join_rows(parts), None
    pairs = [
        _flash(group, q, k, v[..., columns, :], causal, mask)
        for q, k, columns, mask, causal in _kernel_calls(group, keep)
    ]
    context, sums = (_join_rows(part) for part in zip(*pairs, strict=True))
    if keep is not None:
        empty = _empty_rows(group.rule, sums.shape[-1], keep)
        sums = sums.masked_fill(empty[..., 0], torch.inf)
    return context, sums


def _kernel_knows_mask(group: HeadGroup, keep: Tensor | None) -> bool:
    """Whether the fused kernel needs no mask: rows see all keys, or all up to their own."""
    square = group.rule.stride_q == group.rule.stride_k and group.q.shape[-2] == group.k.shape[-2]
    plain = group.rule.sees_all and keep is None and group.relative is None
    return plain and (square or not group.rule.causal)


def _kernel_calls(
    group: HeadGroup, keep: Tensor | None
) -> Iterator[tuple[Tensor, Tensor, slice, Tensor | None, bool]]:
    """The calls of the fused kernel: queries, keys, the span of these, a mask, whether causal."""
    q, k, rule = group.q, group.k, group.rule
    if _kernel_knows_mask(group, keep):
        yield q, k, slice(None), None, rule.causal
        return
    for rows, span in group.row_blocks():
        content = q[..., rows, :]
        columns = torch.arange(span.start, span.stop, device=q.device)
        seen = visible(rule, rows, columns, keep)
        # the kernel may give NaN for a row without keys: let it see all, it is overwritten
        mask = seen | ~seen.any(-1, keepdim=True)
        if group.relative is not None and group.distances is not None:
            content, position = group.relative.query_terms(content)
            scores = group.distances.scores(position, rows, len(columns), span.start)
            mask = (rule.scale * scores).masked_fill(~mask, -torch.inf)
        yield content, k[..., span, :], span, mask, False


def _flash(
    group: HeadGroup, q: Tensor, k: Tensor, v: Tensor, causal: bool, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Context and log-sum-exp of queries over the keys that there are, by the CPU's kernel."""
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, -torch.inf)
    context, sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, 0.0, causal, attn_mask=mask, scale=group.rule.scale
    )
    return context, sums


def _attend_long(group: HeadGroup, v: Tensor) -> tuple[Tensor, Tensor]:
    """The same a block of rows at a time, so that it can be cancelled. The kernel knows causal
    squares alone: rows meet the keys of their own block and those before it in two calls, whose
    log-sum-exps join them to one softmax (Milakov and Gimelshein 2018)."""
    q, k, parts = group.q, group.k, []
    step = max(LEAST_ROWS, LONG_CELLS // max(1, q.shape[:-2].numel() * k.shape[-2]))
    for start in range(0, q.shape[-2], step):
        raise_if_cancelled()
        rows = slice(start, start + step)
        queries = q[..., rows, :]
        if not group.rule.causal:
            parts.append(_flash(group, queries, k, v, causal=False))
            continue
        context, sums = _flash(group, queries, k[..., rows, :], v[..., rows, :], causal=True)
        if start:
            earlier = _flash(group, queries, k[..., :start, :], v[..., :start, :], causal=False)
            total = torch.logaddexp(sums, earlier[1])
            share, earlier_share = ((part - total).exp()[..., None] for part in (sums, earlier[1]))
            context = (context * share + earlier[0] * earlier_share).to(q.dtype)
            sums = total
        parts.append((context, sums))
    context, sums = (torch.cat(part, dim=2) for part in zip(*parts, strict=True))
    return context, sums


def _join_rows(parts: Sequence[Tensor]) -> Tensor:
    """Blocks of rows (B, h, rows, ...) as (B, h, Q, ...); a single block is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=2)


# --- linear attention -----------------------------------------------------------------------------


def _attend_linear(group: HeadGroup, v: Tensor, keep: Tensor | None) -> Tensor:
    """Linear attention without its map, in O(n) (Katharopoulos et al. 2020, eqs. 5 and 9)."""
    q, k, exact = group.q, group.k, torch.promote_types(v.dtype, torch.float32)
    if keep is not None:
        k = torch.where(keep[:, None, :, None], k, 0.0)
    # a column of ones sums the weights; sums over a whole text need more than half precision
    q, k, values = q.to(exact), k.to(exact), F.pad(v.to(exact), (0, 1), value=1.0)
    total = _sum_products(q, k, values, group.rule)
    return (total[..., :-1] / (total[..., -1:] + SUM_EPSILON)).to(v.dtype)


def extend_linear(
    q: Tensor, k: Tensor, v: Tensor, state: Tensor | None
) -> tuple[Tensor | None, Tensor]:
    """Linear attention as a recurrent network (Katharopoulos et al. 2020, section 3.4).

    state (B, H, D, D + 1): the sum over the tokens so far of phi(k) [v, 1]; None: there are none.
    Returns the context of one token (B, H, 1, D), None of several, and the state with them.
    """
    features = ACTIVATIONS["linear"].features
    assert features is not None
    exact = torch.promote_types(v.dtype, torch.float32)
    values = F.pad(v.to(exact), (0, 1), value=1.0)
    added = features(k, torch).to(exact).transpose(-1, -2) @ values
    state = added if state is None else state + added
    if q.shape[-2] != 1:
        return None, state
    total = features(q, torch).to(exact) @ state
    return (total[..., :-1] / (total[..., -1:] + SUM_EPSILON)).to(v.dtype), state


def _sum_products(q: Tensor, k: Tensor, v: Tensor, rule: Rule) -> Tensor:
    """Sums (B, h, Q, E) of (q . k_j) v_j over the keys that each row sees, v (B, h, K, E).

    Causal: old keys by their sum of k^T v, the newest by their products.
    """
    if not rule.causal:
        return q @ (k.transpose(-1, -2) @ v)
    keys, parts, done = k.shape[-2], [], 0
    past = q.new_zeros(*k.shape[:2], k.shape[-1], v.shape[-1])  # (B, h, D, D + 1)
    for start in range(0, q.shape[-2], LINEAR_ROWS):
        stop = min(start + LINEAR_ROWS, q.shape[-2])
        all_see, reach = rule.reach(start, keys)[1], rule.reach(stop - 1, keys)[1]
        old, new = slice(done, all_see), slice(all_see, reach)
        past = past + k[..., old, :].transpose(-1, -2) @ v[..., old, :]
        done = all_see
        rows = torch.arange(start, stop, device=q.device)
        columns = torch.arange(all_see, reach, device=q.device)
        queries = q[..., start:stop, :]
        near = queries @ k[..., new, :].transpose(-1, -2)
        near = torch.where(visible(rule, rows, columns, None), near, 0.0)
        parts.append(queries @ past + near @ v[..., new, :])
    return torch.cat(parts, dim=-2)


# --- what a capture keeps -------------------------------------------------------------------------


@torch.no_grad()
def factors(
    q: Tensor,
    k: Tensor,
    rule: Rule,
    keep: Tensor | None,
    relative: Distance | None,
    row_sums: RowLogSums | None = None,
) -> Factors:
    """What a capture keeps of one layer of one text, as numpy arrays; q (1, H, Q, D), k
    (1, G, K, D) of G key groups or all H heads, kept once where all heads are of a kind.

    row_sums: statistics that are known already, which saves a pass over the scores.
    Raises HgvizError for a batch of several texts.
    """
    if len(q) != 1:
        raise HgvizError(f"only one text can be captured at a time: got a batch of {len(q)}")
    if q.device.type == "mps":  # it has no float64
        q, k, keep = q.cpu(), k.cpu(), None if keep is None else keep.cpu()
        relative = None if relative is None else relative.map(Tensor.cpu)
    q, k = q.detach(), k.detach()
    groups = tuple(head_groups(q, k, rule, relative))
    statistics = RowStatistics.measure(groups, q, rule, keep, row_sums)
    rows = proof_rows(q.shape[-2], k.shape[-2])
    at = torch.as_tensor(rows, device=q.device)
    queries, keys = map(to_numpy, _operands(groups, q, k, rule))
    proof = k.new_zeros(0, len(rows), k.shape[2])
    if groups:
        proof = _proof(statistics, groups, rule, keep, at)
    complete = replace(
        rule,
        keep=None if keep is None else keep[0].cpu().numpy(),
        relative=None if relative is None else relative.map(to_numpy),
    )
    norm, threshold = statistics.norm, statistics.threshold
    return Factors(
        q=queries,
        k=Grouped(keys, len(queries)) if len(keys) < len(queries) else keys,
        stat=to_numpy(statistics.stat),
        rule=complete,
        proof_rows=rows,
        proof_values=to_numpy(proof.float()),
        dtype=str(q.dtype).removeprefix("torch."),
        norm=None if norm is None else to_numpy(norm),
        threshold=None if threshold is None else to_numpy(threshold),
        kept=None if threshold is None else statistics.sorted_pairs(),
    )


def _operands(
    groups: tuple[HeadGroup, ...], q: Tensor, k: Tensor, rule: Rule
) -> tuple[Tensor, Tensor]:
    """Queries (H, Q, D) and keys (G or H, K, D) as a capture keeps them: features where these are
    weighed, and keys that heads share once where all heads are of a kind."""
    if not groups:
        return q[0], k[0]
    queries = in_layer_order(rule, [group.q for group in groups])[0]
    if k.shape[1] < q.shape[1] and len({*zip(rule.activations, rule.norms, strict=True)}) == 1:
        # heads of a key group that stream are a group of their own, with the same keys
        keys = {group.key_group: group.k[:, :1] for group in groups}
        return queries, torch.cat([keys[number] for number in range(k.shape[1])], dim=1)[0]
    return queries, in_layer_order(rule, [group.k for group in groups])[0]


@dataclass(slots=True)
class RowStatistics:
    """The row statistics of all heads of one layer of one text, float32 (H, Q); see Factors.

    pairs: (n, 3) head, row and key of the chosen keys of rows with a narrow gap, by blocks.
    """

    stat: Tensor
    norm: Tensor | None
    threshold: Tensor | None
    pairs: list[Tensor]

    @classmethod
    def measure(
        cls,
        groups: tuple[HeadGroup, ...],
        q: Tensor,
        rule: Rule,
        keep: Tensor | None,
        row_sums: RowLogSums | None = None,
    ) -> RowStatistics:
        """Those of the groups of a layer with queries q (1, H, Q, D)."""
        zeros = torch.zeros(q.shape[1:3], device=q.device)
        two_statistics = any(
            norm is not None and ACTIVATIONS[name].statistic != "none"
            for name, norm in zip(rule.activations, rule.norms, strict=True)
        )
        chooses = any(rule.top_k_of(place) is not None for place in range(len(rule.activations)))
        statistics = cls(
            zeros, zeros.clone() if two_statistics else None,
            torch.full_like(zeros, -torch.inf) if chooses else None, [],
        )  # fmt: skip
        for group in groups:
            if row_sums and group.heads in row_sums:
                statistics.stat[list(group.heads)] = row_sums[group.heads][0].to(zeros)
            else:
                statistics._add(group if q.dtype.itemsize >= 4 else group.to(torch.float32), keep)
        return statistics

    def _add(self, group: HeadGroup, keep: Tensor | None) -> None:
        """Measure a group, by blocks of rows."""
        row, top_k = ACTIVATIONS[group.activation], group.rule.top_k_of(0)
        heads = torch.tensor(group.heads, device=group.q.device)
        if row.statistic == "none" and group.norm is None and top_k is None:
            return
        for rows, span in group.row_blocks():
            at = (heads[:, None], rows)
            columns = visible_columns(group.rule, rows, span, keep)
            scores, seen = (part[0] for part in group.scores(rows, keep, span, columns))
            scores = torch.where(seen, scores, 0.0)
            if top_k is not None and self.threshold is not None:
                ranks = ranking(scores, group.activation)
                chosen = choose_largest(ranks, seen, top_k)
                narrow, self.threshold[at] = _threshold(ranks, seen, chosen)
                head, line, key = (chosen & narrow[..., None]).nonzero().T
                number = span.start + key if columns is None else columns[key]
                self.pairs.append(torch.stack((heads[head], rows[line], number), dim=1))
                seen = chosen
            if group.norm is not None:
                length = torch.linalg.vector_norm(scores, dim=-1).float()
                if row.statistic == "none":
                    self.stat[at] = length
                elif self.norm is not None:
                    self.norm[at] = length
                scores = normalize_rows(scores, group.norm)
            if row.statistic == "lse":
                total = log_sum_exp(row.split(scores, torch)[1], seen, group.sinks, row.sink)
                self.stat[at] = torch.where(seen.any(-1), total[..., 0], torch.inf).float()
            elif row.statistic == "sum":
                self.stat[at] = (torch.where(seen, scores, 0.0) ** row.power).sum(-1).float()

    def chosen(self, group: HeadGroup, scores: Tensor, rows: Tensor) -> Tensor:
        """bool (1, h, rows, K): above the threshold, or listed for a row with a narrow gap."""
        assert self.threshold is not None
        heads = torch.tensor(group.heads, device=rows.device)
        chosen = ranking(scores, group.activation) >= self.threshold[heads][:, rows, None]
        head, row, key = torch.cat(self.pairs).T
        here = torch.isin(head, heads) & torch.isin(row, rows)
        head, row, key = head[here], row[here], key[here]
        chosen[0, torch.searchsorted(heads, head), torch.searchsorted(rows, row), key] = True
        return chosen

    def sorted_pairs(self) -> NDArray[np.int32]:
        """The pairs (n, 3) in order."""
        pairs = torch.cat(self.pairs).cpu().numpy().astype(np.int32)
        return np.ascontiguousarray(pairs[np.lexsort(pairs.T[::-1])])


def _threshold(ranks: Tensor, seen: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """(narrow, threshold), both (h, rows): half-way between the last chosen and the first dropped.

    Where the gap is narrow the threshold is +inf: the chosen keys themselves are kept.
    """
    last = ranks.masked_fill(~chosen, torch.inf).amin(-1)
    first = ranks.masked_fill(chosen | ~seen, -torch.inf).amax(-1)
    largest = torch.where(seen, ranks.abs(), 0.0).amax(-1)
    dropped = ~first.isneginf()
    narrow = dropped & (last - first < MIN_GAP * largest)
    middle = torch.where(dropped, first + (last - first) / 2, -torch.inf)
    return narrow, torch.where(narrow, torch.inf, middle).float()


def _proof(
    statistics: RowStatistics,
    groups: tuple[HeadGroup, ...],
    rule: Rule,
    keep: Tensor | None,
    rows: Tensor,
) -> Tensor:
    """Rows of the maps (H, rows, K), computed in float64, with the keys that the model chose."""
    parts: dict[int, Tensor] = {}
    for group in groups:
        for head in group.single_heads():  # all together in float64 would be twice what is kept
            scores, seen = head.to(torch.float64).scores(rows, keep)
            scores = torch.where(seen, scores, 0.0)
            all_keys = None
            if statistics.threshold is not None and head.rule.top_k_of(0) is not None:
                seen = seen & statistics.chosen(head, scores, rows)
                all_keys = scores.shape[-1]
            if head.norm is not None:
                scores = normalize_rows(scores, head.norm)
            exact = weigh(scores, seen, head.activation, None, all_keys, head.sinks)
            parts[head.heads[0]] = exact[0].float()
    proof = torch.cat([parts[place] for place in sorted(parts)])
    return fill_empty_rows(proof, rule, keep, rows) if rule.empty_rows == "uniform" else proof


def fill_empty_rows(weights: Tensor, rule: Rule, keep: Tensor | None, rows: Tensor) -> Tensor:
    """Weights (H, rows, K) with rows that see no key as the packages compute them that mask by a
    large negative number: uniform over all keys, or all of their window."""
    columns = torch.arange(weights.shape[-1], device=weights.device)
    empty = ~visible(rule, rows, columns, keep)[0].any(-1, keepdim=True)
    unmasked = replace(rule, causal=False, band=None, chunk=None, streaming=())
    whole = visible(unmasked, rows, columns, None)[0].to(weights.dtype)
    return torch.where(empty, whole / whole.sum(-1, keepdim=True), weights)


@torch.no_grad()
def value_norms(v: Tensor, out: Tensor) -> Tensor:
    """|v_j W_O| (H, K) float32 of v (1, G, K, D) of key groups, out (d, H * D) being the weight of
    the product behind the heads: what a key adds to the stream at weight 1 (Kobayashi et al. 2020,
    eq. 4).
    """
    exact, (groups, keys, width) = torch.promote_types(v.dtype, torch.float32), v.shape[1:]
    parts = out.detach().to(exact).unflatten(1, (-1, width)).movedim(1, 0)  # (H, d, D)
    if keys > width:  # R of W = Q R is as long, and no wider than a head; to find it takes d D²
        parts = torch.linalg.qr(parts.cpu(), mode="r").R.to(v.device)
    heads_per_group = len(parts) // max(1, groups)
    norms = [v.new_zeros(0, keys, dtype=exact)]
    for group, values in enumerate(v[0]):  # of all heads at once it would be as large as queries
        projections = parts[group * heads_per_group : (group + 1) * heads_per_group]
        norms.append(torch.linalg.vector_norm(values.to(exact) @ projections.mT, dim=-1))
    return torch.cat(norms).float()


def to_numpy(x: Tensor) -> Any:
    """The same numbers on the CPU; bfloat16, which numpy has not, as its bits in uint16."""
    x = x.detach().contiguous().cpu()
    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).numpy().view(np.uint16)
    return x.numpy()
