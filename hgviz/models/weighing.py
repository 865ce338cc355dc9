"""From queries and keys to weights: which cells exist, what they score, what they weigh.

Shapes: B batch, H heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from hgviz.activations import ACTIVATIONS, NORM_EPSILON
from hgviz.core import HgvizError, raise_if_cancelled
from hgviz.errors import choose
from hgviz.maps.rule import Norm, Rule
from hgviz.models.positions import Bias, Distances

# how much is held at once of all heads of a kind and all texts: on a CPU what its caches hold
ROWS = 512
CELLS, DEVICE_CELLS = 1 << 20, 1 << 26

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
    k: only the k largest scores of a row keep their weight, ties with the last one too; with
    activations that are no softmax the k largest by magnitude (models.md B.6). topk needs it.
    sinks: (..., 1, 1), logits that take part in the sum of each row of a softmax and have no key.
    Raises HgvizError for an unknown activation or norm, a k below 1, and topk without k.
    """
    row = ACTIVATIONS[choose(activation, ACTIVATIONS, "attention activation")]
    if keep is not None and keep.is_floating_point():
        raise HgvizError(f"a mask of keys is boolean: this one holds {keep.dtype}", "Give bools")
    seen = torch.ones_like(scores, dtype=torch.bool) if keep is None else keep.bool()
    scores = torch.where(seen, scores, 0.0)
    chosen = seen
    if k is not None or activation == "topk":
        chosen = largest(sizes(scores, activation), seen, k)
    if norm is not None:
        scores = normalised(scores, norm)
    stat = None
    if row.statistic == "lse":
        scores, terms = row.split(scores, torch)
        stat = log_sum(terms, chosen, sinks, row.sink)
        scores = scores.masked_fill(~chosen, -torch.inf)  # exp(0 - stat) may be too large
    elif row.statistic == "sum":
        stat = (torch.where(chosen, scores, 0.0) ** row.power).sum(-1, keepdim=True)
    return torch.where(chosen, row.apply(scores, stat, torch), 0.0)


def normalised(scores: Tensor, norm: Norm) -> Tensor:
    """Scores (..., q, k) over the length of their row; masked ones are 0 and stay so for l2."""
    choose(str(norm), ("l2", "l2-literal"), "norm")
    wide = torch.promote_types(scores.dtype, torch.float32)  # 1e-9 is 0 in float16
    length = torch.linalg.vector_norm(scores, dim=-1, keepdim=True, dtype=wide)
    if norm == "l2":
        found = scores / (length + NORM_EPSILON)
    else:  # where all scores are 0 the line as published gives NaN
        found = scores / torch.where(length > 0, length, 1.0) + NORM_EPSILON
    return found.to(scores.dtype)


def log_sum(scores: Tensor, seen: Tensor, *sinks: Tensor | float | None) -> Tensor:
    """Log-sum-exp (..., q, 1) of the scores that are seen and the sinks that there are; finite for
    a row without any."""
    # such a row takes all its scores: log 0 has no gradient
    taken = seen | ~seen.any(-1, keepdim=True)
    found = scores.masked_fill(~taken, -torch.inf).logsumexp(-1, keepdim=True)
    for one in sinks:
        if one is not None:
            found = torch.logaddexp(found, torch.as_tensor(one).to(found))
    return found


def sizes(scores: Tensor, activation: str) -> Tensor:
    """What the k largest are chosen by: scores, or magnitudes where negative ones weigh too."""
    return scores if ACTIVATIONS[activation].statistic == "lse" else scores.abs()


def largest(sizes: Tensor, seen: Tensor, k: int | None) -> Tensor:
    """Which of the cells seen are among the k largest of their row, or as large as the last."""
    if k is None or k < 1:
        raise HgvizError("topk needs k, the number of keys each query keeps", "Give k >= 1")
    sizes = sizes.masked_fill(~seen, -torch.inf)
    last = sizes.topk(min(k, sizes.shape[-1]), dim=-1).values[..., -1:]
    return seen & (sizes >= last)


# --- queries and keys to scores -------------------------------------------------------------------


@dataclass(frozen=True)
class Alike:
    """Heads of one layer that share activation and norm: q (B, h, Q, D), k (B, h, K, D).

    places are theirs among the layer's heads; rule and relative are for them alone. group: of the
    keys and values that they share, None where each has its own.
    """

    places: tuple[int, ...]
    rule: Rule
    relative: Bias | None
    q: Tensor
    k: Tensor
    group: int | None = None

    def of(self, whole: Tensor) -> Tensor:
        """Their part of something of all heads (B, H, ...)."""
        return whole[:, _index(self.places)]

    def values(self, v: Tensor) -> Tensor:
        """Their values (B, h, K, D) of those of all groups or heads (B, G, K, D)."""
        return self.of(v) if self.group is None else _shared(v, self.group, len(self.places))

    @cached_property
    def distances(self) -> Distances | None:
        """Their relative positions, made once for all rows."""
        if self.relative is None:
            return None
        sizes = self.q.shape[-2], self.k.shape[-2]
        return Distances(self.relative, self.rule, *sizes, self.q.device)

    @property
    def activation(self) -> str:
        """The activation they share."""
        return self.rule.activations[0]

    @property
    def norm(self) -> Norm:
        """The norm they share."""
        return self.rule.norms[0]

    @property
    def sinks(self) -> Tensor | None:
        """(h, 1, 1) A logit of each that no key has, where a softmax weighs."""
        if self.rule.sinks is None or not ACTIVATIONS[self.activation].softmax:
            return None
        return torch.as_tensor(self.rule.sinks, device=self.q.device)[:, None, None]

    def weigh(self, scores: Tensor, seen: Tensor) -> Tensor:
        """Their weights (B, h, rows, keys) of scaled scores."""
        k = self.rule.top_k_of(0)
        return weigh(scores, seen, self.activation, self.norm, k, self.sinks)


def alike(q: Tensor, k: Tensor, rule: Rule, relative: Bias | None = None) -> Iterator[Alike]:
    """The heads of a layer, sorted by kind and by group of keys k (B, G, K, D), which are not
    copied; queries and keys are features where these are weighed.

    Features take no part in relative positions: there are no scores to add them to.
    """
    each = q.shape[1] // max(1, k.shape[1])
    for places, group in _grouped(rule, each):
        at, terms = _index(places), None
        their_q = q[:, at]
        their_k = k[:, at] if group is None else _shared(k, group, len(places))
        features = ACTIVATIONS[rule.activations[places[0]]].features
        if features is not None:
            their_q, their_k = features(their_q, torch), features(their_k, torch)
        elif relative is not None:
            terms = relative.each(lambda one, at=at: one[at])  # type: ignore[misc]
        yield Alike(places, rule.only(places), terms, their_q, their_k, group)


def _grouped(rule: Rule, each: int) -> Iterator[tuple[tuple[int, ...], int | None]]:
    """The places of heads of a kind that share keys, of so many heads each, and their group."""
    for places in rule.alike():
        if each <= 1:
            yield places, None
            continue
        for group, some in groupby(places, lambda place: place // each):
            yield tuple(some), group


def _shared(x: Tensor, group: int, heads: int) -> Tensor:
    """Keys or values (B, heads, K, D) that heads share, held once."""
    return x[:, group : group + 1].expand(-1, heads, -1, -1)


def per_head(x: Tensor, heads: int) -> Tensor:
    """Keys or values (B, G, K, D) of groups of heads, as every head has them (B, H, K, D)."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], dim=1)


def in_order(rule: Rule, parts: list[Tensor]) -> Tensor:
    """What was made for each kind of heads (B, h, ...), as (B, H, ...) in the layer's order."""
    order = [place for places in rule.alike() for place in places]
    joined = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
    if order == sorted(order):
        return joined
    return joined[:, [order.index(place) for place in range(len(order))]]


def _index(places: tuple[int, ...]) -> Any:
    # a slice is a view, a list a copy
    together = places[-1] - places[0] + 1 == len(places)
    return slice(places[0], places[-1] + 1) if together else list(places)


def row_blocks(one: Alike) -> Iterator[tuple[Tensor, slice]]:
    """The numbers of a few rows at a time, and the columns outside which they see no key."""
    batch, heads, queries, _ = one.q.shape
    keys = one.k.shape[-2]
    cells = CELLS if one.q.device.type == "cpu" else DEVICE_CELLS
    near = one.rule.nearest
    across = min(keys, (one.rule.width(keys) if near is None else sum(near)) + ROWS)
    step = min(ROWS, max(16, cells // max(1, batch * heads * across)))
    for start in range(0, queries, step):
        raise_if_cancelled()
        stop = min(start + step, queries)
        first, last = one.rule.reach(start, keys)[0], one.rule.reach(stop - 1, keys)[1]
        first = max(0, min(first, last - 1))  # one that nobody sees is better than none
        yield torch.arange(start, stop, device=one.q.device), slice(first, last)


def visible(rule: Rule, rows: Tensor, columns: Tensor, keep: Tensor | None) -> Tensor:
    """bool (B or 1, 1, rows, columns): the cells that exist, by the numbers of both."""
    seen: Tensor = rule.allows(rows, columns)[None, None]
    if rule.nearest is not None:
        seen = seen & rule.nears(rows, columns, before(keep)).unsqueeze(-3)
    return seen if keep is None else seen & keep[:, None, None, columns]


def before(keep: Tensor | None) -> Tensor | None:
    """(B, keys + 1): how many of the keys that are kept (B, keys) come before each, and in all."""
    return None if keep is None else F.pad(keep.cumsum(-1), (1, 0))


def needed(rule: Rule, rows: Tensor, within: slice, keep: Tensor | None) -> Tensor | None:
    """The numbers (n,) of the columns within some, of which a row of these sees any where its heads
    see the first keys and the latest; None where they see all."""
    if rule.nearest is None:
        return None
    columns = torch.arange(within.start, within.stop, device=rows.device)
    near: Tensor = rule.nears(rows[:1], columns, before(keep))  # the next rows see what is later
    return columns[near.reshape(-1, len(columns)).any(0)]


def scored(
    one: Alike,
    rows: Tensor,
    keep: Tensor | None,
    within: slice = slice(None),
    columns: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Scaled scores (B, h, rows, columns) of some rows with the keys of some columns, all if not
    given, and which exist; columns: of those within, only these, by number.
    """
    q, k = one.q[..., rows, :], one.k[..., within, :]
    first, keys = within.start or 0, k.shape[-2]
    some = slice(None) if columns is None else columns - first
    k = k[..., some, :]
    content = q if one.relative is None else one.relative.to_keys(q)
    scores = content @ k.transpose(-1, -2)
    of_keys = ACTIVATIONS[one.activation].of_keys
    if of_keys is not None:
        scores = scores + of_keys(k, torch)[..., None, :]
    if one.distances is not None:
        scores = scores + one.distances.scores(q, rows, keys, first)[..., some]
    columns = torch.arange(first, first + keys, device=q.device)[some]
    scores = scores * one.rule.scale_of(0)
    if (cap := one.rule.softcap) is not None:
        scores = (scores / cap).tanh() * cap
    return scores, visible(one.rule, rows, columns, keep)


def weights(
    q: Tensor,
    k: Tensor,
    rule: Rule,
    keep: Tensor | None = None,
    relative: Bias | None = None,
    rows: Tensor | None = None,
) -> Tensor:
    """The maps themselves (B, H, rows, K), without filling of empty rows."""
    rows = torch.arange(q.shape[-2], device=q.device) if rows is None else rows
    parts = []
    for one in alike(q, k, rule, relative):
        parts.append(one.weigh(*scored(one, rows, keep)))
    return in_order(rule, parts) if parts else q.new_zeros(len(q), 0, len(rows), k.shape[-2])
