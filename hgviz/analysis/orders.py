"""In which order heads are switched off, and what each saves. numpy only.

One-shot orders sort by one set of scores. Iterative ones ask for new scores with what is off so
far; they are the exact greedy order where one head goes at a time and its score is what the loss
rises by. Random ones are what every other has to beat.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hgviz.core import HeadId, Integers, Layer, ModelSpec, Off

Key = Literal["score", "parameters", "flops"]
Group = Literal["layer", "level"]
Order = tuple[HeadId, ...]
Needs = NDArray[np.float64]  # (H,): high where a head is needed

EPSILON = 1e-20  # what keeps a norm from 0 (Michel et al. 2019)


# --- what a head costs ----------------------------------------------------------------------------


def costs(
    spec: ModelSpec,
    tokens: NDArray[Any],
    sources: NDArray[Any] | None = None,
    head_width: int = 0,
    positions: Mapping[int, int] | None = None,
) -> tuple[Needs, Needs]:
    """Weights (H,) and FLOPs (H,) that go with each head, of texts of so many tokens (E,).

    4 d d_h weights of its four products; FLOPs 4 d d_h (Tq + Tk) + 4 pairs d_h, in the mean over
    the texts; pairs = Tq Tk or the cells of its windows. sources (E,): tokens of the other text
    that a decoder attends to, else as many. head_width 0: the width over the heads of the widest
    layer. positions: of levels that no stride tells, which else count as unshortened.
    """
    width = head_width or spec.width // max((one.head + 1 for one in spec.heads), default=1)
    own = np.asarray(tokens, float)
    other = own if sources is None else np.asarray(sources, float)
    found = []
    for layer in spec.layers:
        queries, keys = (
            _positions(spec, level, own, other, positions or {})
            for level in (layer.level, layer.key_level)
        )
        around = 4 * spec.width * width * (queries + keys)
        found += [float((around + 4 * _pairs(layer, queries, keys) * width).mean())] * len(
            layer.heads
        )
    return np.full(len(found), 4.0 * spec.width * width), np.array(found)


def _positions(
    spec: ModelSpec, index: int, own: Needs, other: Needs, given: Mapping[int, int]
) -> Needs:
    level = spec.levels[index]
    if index in given:
        return np.full(len(own), float(given[index]))
    tokens = other if spec.two_texts and level.sequence == "source" else own
    found: Needs = np.ceil(tokens / (level.stride or 1))
    return found


def _pairs(layer: Layer, queries: Needs, keys: Needs) -> Needs:
    """The cells that are computed: all, or windows of the finer side's positions each."""
    return queries * keys if layer.window is None else np.minimum(queries, keys) * layer.window


# --- scores that layers or levels share -----------------------------------------------------------


def groups(spec: ModelSpec, by: Group) -> Integers:
    """(H,): the number of the group of each head, a layer or a level.

    Heads that go down, up or across are groups of their own, as they do other work.
    """
    names: list[Any] = []
    for layer in spec.layers:
        away = layer.role if layer.role != "self" else ""
        name = layer.index if by == "layer" else (spec.levels[layer.level].index, away)
        names += [name] * len(layer.heads)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], np.int64)


def norms(scores: NDArray[Any], grouped: Integers) -> Needs:
    """(H,): the length of the scores of each head's group, sqrt(sum I^2) + 1e-20."""
    squares = np.bincount(grouped, np.nan_to_num(scores) ** 2, minlength=1)
    found: Needs = np.sqrt(squares)[grouped] + EPSILON
    return found


# --- what may go ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limits:
    """What stays: at least so many heads in every layer, and those that are protected.

    A layer that has fewer loses none; off: heads that are off before anything is ordered.
    """

    heads: Order
    least: int = 0
    protected: Collection[HeadId] = frozenset()
    off: Off = field(default_factory=frozenset)

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


def one_shot(needs: NDArray[Any], limits: Limits, per: NDArray[Any] | None = None) -> Order:
    """Heads from the least needed on; equal ones in order of computation.

    needs (H,), high where a head is needed; NaN was not measured and never goes. per (H,): what a
    head saves, by which its need is divided.
    """
    gone: dict[HeadId, None] = {}
    for head in _sorted(needs, limits.heads, per):
        if limits.may_go(head, gone):
            gone[head] = None
    return tuple(gone)


def iterative(
    limits: Limits, step: int = 1, per: NDArray[Any] | None = None
) -> Generator[Off, NDArray[Any], Order]:
    """Heads in groups of `step`: yields what is off, is sent the needs (H,) there.

    The caller measures between the two as it likes; `asking` does it by a callback. Exact greedy:
    step 1, and needs that are how much the loss rises with one head more off.
    """
    gone: dict[HeadId, None] = {}
    while any(limits.may_go(head, gone) for head in limits.heads):
        needs = yield limits.off | gone.keys()
        some = 0
        for head in _sorted(needs, limits.heads, per):
            if some < step and limits.may_go(head, gone):
                gone[head], some = None, some + 1
        if not some:  # nothing that may go was measured
            break
    return tuple(gone)


def asking(
    order: Generator[Off, NDArray[Any], Order], needs: Callable[[Off], NDArray[Any]]
) -> Generator[Off, None, Order]:
    """Run an iterative order by a callback; yields what is off before each step."""
    try:
        off = next(order)
        while True:
            yield off
            off = order.send(needs(off))
    except StopIteration as end:
        return tuple(end.value)


def shuffled(limits: Limits, seed: int) -> Order:
    """A random order under the same limits, the same for the same seed."""
    random = np.random.default_rng(seed)
    return one_shot(random.permutation(len(limits.heads)), limits)


def split(rows: int, seed: int = 0, share: float = 0.5) -> tuple[Integers, Integers]:
    """Rows for the order and other ones for the curve, both sorted; by the seed alone.

    A curve measured where its order was chosen looks better than it is.
    """
    drawn = np.random.default_rng(seed).permutation(rows).astype(np.int64)
    first = min(max(round(rows * share), 1), rows - 1) if rows > 1 else rows
    return np.sort(drawn[:first]), np.sort(drawn[first:])


def _sorted(needs: NDArray[Any], heads: Sequence[HeadId], per: NDArray[Any] | None) -> list[HeadId]:
    values = np.asarray(needs, float) if per is None else np.asarray(needs, float) / per
    return [heads[at] for at in np.argsort(values, kind="stable") if not np.isnan(values[at])]
