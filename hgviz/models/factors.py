"""What a capture keeps of a layer: its factors, on the CPU, as numpy.

Shapes: H heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgviz.activations import ACTIVATIONS
from hgviz.core import HgvizError
from hgviz.maps.rule import Factors, Grouped, Rule, proof_rows
from hgviz.models.positions import Bias
from hgviz.models.weighing import (
    Alike,
    alike,
    in_order,
    largest,
    log_sum,
    needed,
    normalised,
    row_blocks,
    scored,
    sizes,
    visible,
    weigh,
)

MIN_GAP = 1e-5  # of a row's largest score: a threshold in a narrower gap would not be recomputed

RowLogSums = dict[tuple[int, ...], Tensor]  # by the places of heads alike: log-sum-exp (B, h, Q)


@torch.no_grad()
def factors(
    q: Tensor,
    k: Tensor,
    rule: Rule,
    keep: Tensor | None,
    relative: Bias | None,
    row_sums: RowLogSums | None = None,
) -> Factors:
    """What a capture keeps of one layer of one text; q (1, H, Q, D), k (1, G, K, D) of G groups of
    heads or all H, kept once where all heads are of a kind.

    row_sums: what is known of heads already, which saves a pass over their scores.
    """
    if len(q) != 1:
        raise HgvizError(f"only one text can be captured at a time: got a batch of {len(q)}")
    if q.device.type == "mps":  # it has no float64
        q, k, keep = q.cpu(), k.cpu(), None if keep is None else keep.cpu()
        relative = None if relative is None else relative.each(Tensor.cpu)
    q, k = q.detach(), k.detach()
    kinds = tuple(alike(q, k, rule, relative))
    found = row_statistics(kinds, q, rule, keep, row_sums)
    rows = proof_rows(q.shape[-2], k.shape[-2])
    at = torch.as_tensor(rows, device=q.device)
    queries, keys = map(to_numpy, operands(kinds, q, k, rule))
    proof = _proof(found, kinds, rule, keep, at) if kinds else k.new_zeros(0, len(rows), k.shape[2])
    complete = replace(
        rule,
        keep=None if keep is None else keep[0].cpu().numpy(),
        relative=None if relative is None else relative.kept(to_numpy),
    )
    return Factors(
        q=queries,
        k=Grouped(keys, len(queries)) if len(keys) < len(queries) else keys,
        stat=to_numpy(found.stat),
        rule=complete,
        proof_rows=rows,
        proof_values=to_numpy(proof.float()),
        dtype=str(q.dtype).removeprefix("torch."),
        norm=None if found.norm is None else to_numpy(found.norm),
        threshold=None if found.threshold is None else to_numpy(found.threshold),
        kept=None if found.threshold is None else _pairs(found.kept),
    )


def operands(kinds: tuple[Alike, ...], q: Tensor, k: Tensor, rule: Rule) -> tuple[Tensor, Tensor]:
    """Queries (H, Q, D) and keys (G or H, K, D) as a capture keeps them: features where these are
    weighed, and keys that heads share once where all heads are of a kind."""
    if not kinds:
        return q[0], k[0]
    queries = in_order(rule, [one.q for one in kinds])[0]
    if k.shape[1] < q.shape[1] and len({*zip(rule.activations, rule.norms, strict=True)}) == 1:
        each = {one.group: one.k[:, :1] for one in kinds}  # of a group that some heads stream, once
        return queries, torch.cat([each[group] for group in range(k.shape[1])], dim=1)[0]
    return queries, in_order(rule, [one.k for one in kinds])[0]


@torch.no_grad()
def value_norms(v: Tensor, out: Tensor) -> Tensor:
    """|v_j W_O| (H, K) float32 of v (1, G, K, D) of groups, out (d, H * D) being the weight
    of the product behind the heads: what a key adds to the stream at weight 1 (Kobayashi et
    al. 2020, eq. 4).
    """
    exact, (groups, keys, width) = torch.promote_types(v.dtype, torch.float32), v.shape[1:]
    parts = out.detach().to(exact).unflatten(1, (-1, width)).movedim(1, 0)  # (H, d, D)
    if keys > width:  # R of W = Q R is as long, and no wider than a head; to find it takes d D²
        parts = torch.linalg.qr(parts.cpu(), mode="r").R.to(v.device)
    each, found = len(parts) // max(1, groups), [v.new_zeros(0, keys, dtype=exact)]
    for place, values in enumerate(v[0]):  # of all heads at once it would be as large as queries
        weights = parts[place * each : (place + 1) * each]
        found.append(torch.linalg.vector_norm(values.to(exact) @ weights.mT, dim=-1))
    return torch.cat(found).float()


def row_statistics(
    kinds: tuple[Alike, ...],
    q: Tensor,
    rule: Rule,
    keep: Tensor | None,
    row_sums: RowLogSums | None = None,
) -> RowStatistics:
    """The row statistics of all heads of one layer of one text, q (1, H, Q, D)."""
    found = RowStatistics.of(q, rule)
    for one in kinds:
        if row_sums and one.places in row_sums:
            found.stat[list(one.places)] = row_sums[one.places][0].to(found.stat)
        else:
            _fill(found, one if q.dtype.itemsize >= 4 else _wider(one, torch.float32), keep)
    return found


@dataclass(slots=True)
class RowStatistics:
    """The row statistics of all heads, float32 (H, Q); see Factors."""

    stat: Tensor
    norm: Tensor | None
    threshold: Tensor | None
    kept: list[Tensor]

    @classmethod
    def of(cls, q: Tensor, rule: Rule) -> RowStatistics:
        zeros = torch.zeros(q.shape[1:3], device=q.device)
        places = range(len(rule.activations))
        both = any(
            norm is not None and ACTIVATIONS[name].statistic != "none"
            for name, norm in zip(rule.activations, rule.norms, strict=True)
        )
        some = any(rule.top_k_of(place) is not None for place in places)
        return cls(
            zeros, zeros.clone() if both else None,
            torch.full_like(zeros, -torch.inf) if some else None, [],
        )  # fmt: skip


def _fill(found: RowStatistics, one: Alike, keep: Tensor | None) -> None:
    """The statistics of some heads, by blocks of rows."""
    act, top_k = ACTIVATIONS[one.activation], one.rule.top_k_of(0)
    places = torch.tensor(one.places, device=one.q.device)
    if act.statistic == "none" and one.norm is None and top_k is None:
        return
    for rows, columns in row_blocks(one):
        at = (places[:, None], rows)
        some = needed(one.rule, rows, columns, keep)
        scores, seen = (part[0] for part in scored(one, rows, keep, columns, some))
        scores = torch.where(seen, scores, 0.0)
        if top_k is not None and found.threshold is not None:
            chosen = largest(sizes(scores, one.activation), seen, top_k)
            narrow, found.threshold[at] = _threshold(sizes(scores, one.activation), seen, chosen)
            head, row, key = (chosen & narrow[..., None]).nonzero().T
            pairs = places[head], rows[row], columns.start + key if some is None else some[key]
            found.kept.append(torch.stack(pairs, dim=1))
            seen = chosen
        if one.norm is not None:
            length = torch.linalg.vector_norm(scores, dim=-1).float()
            if act.statistic == "none":
                found.stat[at] = length
            elif found.norm is not None:
                found.norm[at] = length
            scores = normalised(scores, one.norm)
        if act.statistic == "lse":
            stat = log_sum(act.split(scores, torch)[1], seen, one.sinks, act.sink)
            stat = torch.where(seen.any(-1), stat[..., 0], torch.inf)
            found.stat[at] = stat.float()
        elif act.statistic == "sum":
            found.stat[at] = (torch.where(seen, scores, 0.0) ** act.power).sum(-1).float()


def _threshold(sizes: Tensor, seen: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """(narrow, threshold), both (h, rows), half-way between the last chosen and the first dropped.

    Where the gap is narrow the threshold is +inf: the chosen keys themselves are kept.
    """
    last = sizes.masked_fill(~chosen, torch.inf).amin(-1)
    first = sizes.masked_fill(chosen | ~seen, -torch.inf).amax(-1)
    whole = torch.where(seen, sizes.abs(), 0.0).amax(-1)
    dropped = ~first.isneginf()
    narrow = dropped & (last - first < MIN_GAP * whole)
    middle = torch.where(dropped, first + (last - first) / 2, -torch.inf)
    return narrow, torch.where(narrow, torch.inf, middle).float()


def _proof(
    found: RowStatistics, kinds: tuple[Alike, ...], rule: Rule, keep: Tensor | None, rows: Tensor
) -> Tensor:
    """Rows of the maps in float64 (H, rows, K), with the keys that the model chose."""
    parts: dict[int, Tensor] = {}
    for kind in kinds:
        for one in _singly(kind):  # in float64 all heads together would be twice what is kept
            scores, seen = scored(_wider(one, torch.float64), rows, keep)
            scores = torch.where(seen, scores, 0.0)
            all_keys = None
            if found.threshold is not None and one.rule.top_k_of(0) is not None:
                seen, all_keys = seen & _chosen(found, one, scores, rows), scores.shape[-1]
            if one.norm is not None:
                scores = normalised(scores, one.norm)
            weights = weigh(scores, seen, one.activation, None, all_keys, one.sinks)
            parts[one.places[0]] = weights[0].float()
    proof = torch.cat([parts[place] for place in sorted(parts)])
    return fill_empty_rows(proof, rule, keep, rows) if rule.empty_rows == "uniform" else proof


def _singly(kind: Alike) -> Iterator[Alike]:
    """Each of the heads for itself."""
    for at, place in enumerate(kind.places):
        part = slice(at, at + 1)
        terms = kind.relative
        if terms is not None:
            terms = terms.each(lambda one, part=part: one[part])  # type: ignore[misc]
        q, k = kind.q[:, part], kind.k[:, part]
        yield Alike((place,), kind.rule.only((at,)), terms, q, k)


def _chosen(found: RowStatistics, one: Alike, scores: Tensor, rows: Tensor) -> Tensor:
    """bool (1, h, rows, K): above the threshold, or on the list of a row with a narrow gap."""
    assert found.threshold is not None
    places = torch.tensor(one.places, device=rows.device)
    chosen = sizes(scores, one.activation) >= found.threshold[places][:, rows, None]
    place, row, key = torch.cat(found.kept).T
    here = torch.isin(place, places) & torch.isin(row, rows)
    place, row, key = place[here], row[here], key[here]
    chosen[0, torch.searchsorted(places, place), torch.searchsorted(rows, row), key] = True
    return chosen


def fill_empty_rows(proof: Tensor, rule: Rule, keep: Tensor | None, rows: Tensor) -> Tensor:
    """Rows without keys as the packages compute them that mask by a large negative number."""
    columns = torch.arange(proof.shape[-1], device=proof.device)
    empty = ~visible(rule, rows, columns, keep)[0].any(-1, keepdim=True)
    every = replace(rule, causal=False, band=None, chunk=None, near=())
    whole = visible(every, rows, columns, None)[0].to(proof.dtype)
    return torch.where(empty, whole / whole.sum(-1, keepdim=True), proof)


# --- numpy ----------------------------------------------------------------------------------------


def _pairs(kept: list[Tensor]) -> np.ndarray[Any, np.dtype[np.int32]]:
    """int32 (pairs, 3), sorted: head, row and key."""
    pairs = torch.cat(kept).cpu().numpy().astype(np.int32)
    return np.ascontiguousarray(pairs[np.lexsort(pairs.T[::-1])])


def _wider(one: Alike, dtype: torch.dtype) -> Alike:
    terms = None if one.relative is None else one.relative.each(lambda part: part.to(dtype))
    return replace(one, q=one.q.to(dtype), k=one.k.to(dtype), relative=terms)


def to_numpy(x: Tensor) -> Any:
    """The same on the CPU, bfloat16 as its bits."""
    x = x.detach().contiguous().cpu()
    if x.dtype == torch.bfloat16:  # numpy has no bfloat16: its bits, named by Factors.dtype
        return x.view(torch.int16).numpy().view(np.uint16)
    return x.numpy()
