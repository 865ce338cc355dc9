"""In which order heads are switched off, and what each saves. numpy only.

An order sorts heads by one set of scores. A random one is what every other has to beat.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import HeadCost, HeadId, HeadSet, Integers, Layer, ModelSpec

Order = tuple[HeadId, ...]
Needs = NDArray[np.float64]  # (H,): high where a head is needed


# --- what heads cost ------------------------------------------------------------------------------


def costs(
    spec: ModelSpec,
    weights: Sequence[HeadCost],
    tokens: NDArray[Any],
    sources: NDArray[Any] | None = None,
) -> tuple[Needs, Needs]:
    """Parameters (H, 3) and FLOPs (H, 3) that `prune` removes: with each head, with its key group
    once all heads of that are off, and with its layer once all heads of that are off.

    weights: by layer. FLOPs are of texts of so many tokens (E,), in the mean: those of a position
    times the positions of queries or keys, and 2 for each pair and each number of a query and a
    value; pairs = Tq Tk or the cells of windows. sources (E,): tokens of the other text that a
    decoder attends to, else as many. Levels without a stride count as unshortened. The third is
    below 0 where a layer without heads keeps the weights of one.
    """
    own = np.asarray(tokens, float)
    other = own if sources is None else np.asarray(sources, float)
    parameters, flops = list[list[float]](), list[list[float]]()
    for layer, one in zip(spec.layers, weights, strict=True):
        queries, keys = (_positions(spec, at, own, other) for at in (layer.level, layer.key_level))
        around = one.queries[1] * queries.mean(), one.keys[1] * keys.mean()
        inside = 2 * one.width * _pairs(layer, queries, keys).mean()
        sizes = one.queries[0], one.keys[0]
        stays = -int(one.keeps_one)
        parameters += [[*sizes, stays * sum(sizes)]] * len(layer.heads)
        flops += [[around[0] + inside, around[1], stays * sum(around)]] * len(layer.heads)
    return np.array(parameters, float).reshape(-1, 3), np.array(flops, float).reshape(-1, 3)


def saved(
    costs: NDArray[Any], spec: ModelSpec, order: Sequence[HeadId], off: Collection[HeadId] = ()
) -> Needs:
    """(len(order) + 1,): what is saved, of costs (H, 3), by so many heads of an order, and by those
    that are off before."""
    steps = {head: step for step, head in enumerate(order, 1)} | dict.fromkeys(off, 0)
    totals = np.zeros(len(order) + 2)  # the last one: what stays on
    at = 0
    for layer in spec.layers:
        last = {head: steps.get(HeadId(layer.index, head), len(order) + 1) for head in layer.heads}
        for heads in layer.groups.values():
            for head in heads:
                totals[last[head]] += costs[at, 0]
                at += 1
            totals[max(last[head] for head in heads)] += costs[at - 1, 1]
        if last:
            totals[max(last.values())] += costs[at - 1, 2]
    return np.cumsum(totals[:-1])


def _positions(spec: ModelSpec, index: int, own: Needs, other: Needs) -> Needs:
    level = spec.levels[index]
    tokens = other if spec.two_texts and level.sequence == "source" else own
    found: Needs = np.ceil(tokens / (level.stride or 1))
    return found


def _pairs(layer: Layer, queries: Needs, keys: Needs) -> Needs:
    """The cells that are computed: all, or windows of the finer side's positions each."""
    return queries * keys if layer.window is None else np.minimum(queries, keys) * layer.window


# --- what may go ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limits:
    """What stays: at least so many heads in every layer, and those that are protected.

    A layer that has fewer loses none; off: heads that are off before anything is ordered.
    """

    heads: Order
    least: int = 0
    protected: Collection[HeadId] = frozenset()
    off: HeadSet = field(default_factory=frozenset)

    def may_go(self, head: HeadId, gone: Collection[HeadId]) -> bool:
        """Whether a head may be switched off after those that are."""
        if head in gone or head in self.off or head in self.protected:
            return False
        left = sum(
            one.layer == head.layer and one not in gone and one not in self.off
            for one in self.heads
        )
        return left > self.least


# --- orders ---------------------------------------------------------------------------------------


def sorted_order(needs: NDArray[Any], limits: Limits) -> Order:
    """Heads from the least needed on; equal ones in order of computation.

    needs (H,), high where a head is needed; NaN was not measured and never goes.
    """
    gone: dict[HeadId, None] = {}
    for at in np.argsort(np.asarray(needs, float), kind="stable"):
        head = limits.heads[at]
        if not np.isnan(needs[at]) and limits.may_go(head, gone):
            gone[head] = None
    return tuple(gone)


def shuffled(limits: Limits, seed: int) -> Order:
    """A random order under the same limits, the same for the same seed."""
    random = np.random.default_rng(seed)
    return sorted_order(random.permutation(len(limits.heads)), limits)


def split(rows: int, seed: int = 0, share: float = 0.5) -> tuple[Integers, Integers]:
    """Rows for the order and other ones for the curve, both sorted; by the seed alone.

    A curve measured where its order was chosen looks better than it is.
    """
    drawn = np.random.default_rng(seed).permutation(rows).astype(np.int64)
    first = min(max(round(rows * share), 1), rows - 1) if rows > 1 else rows
    return np.sort(drawn[:first]), np.sort(drawn[first:])
