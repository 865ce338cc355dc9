"""One forward pass: what is changed in it, and who observes it.

Models of every family call two methods of a `Run`: `attend` where a layer attends, and `block`
around each residual block. Whatever hgviz changes in a pass (heads off, gates, heads that stream)
or learns from it (captures, slopes, outputs that later passes reuse) happens behind these two
calls, so that model code stays as plain as in its paper.

Shapes: B batch, H heads, G key groups, Q queries, K keys, D head width, d model width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hgviz.activations import ACTIVATIONS
from hgviz.core import NO_STREAMING, HeadSet, HgvizError, Streaming
from hgviz.maps.rule import Distance, Rule
from hgviz.models.attention import (
    CELLS,
    RowLogSums,
    attend,
    expand_key_groups,
    factors,
    fill_empty_rows,
    head_groups,
    in_layer_order,
    to_numpy,
    value_norms,
)
from hgviz.models.devices import free_memory

EMBEDDING = -1  # the index of the block that embeds tokens


@dataclass(frozen=True, slots=True)
class AttentionCall:
    """What one layer attended with: q (B, H, Q, D), k and v (B, G, K, D) and the rule.

    keep (B, K): False for keys that are padding. relative: relative positions. row_sums: the row
    statistics that came with the context, where an observer asked for them. output: the product
    behind the heads, where it is known. mixture (h, K, n): the share of each token in each slot,
    where keys are slots. length: how many queries and keys are positions of the model, where the
    rest is padding of its own.
    """

    layer: int
    q: Tensor
    k: Tensor
    v: Tensor
    rule: Rule
    keep: Tensor | None = None
    relative: Distance | None = None
    row_sums: RowLogSums | None = None
    output: nn.Linear | None = None
    mixture: Tensor | None = None
    length: tuple[int, int] | None = None

    def without_padding(self) -> AttentionCall:
        """The same call of the queries and keys that are positions of the model."""
        if self.length is None:
            return self
        queries, keys = self.length
        keep = None if self.keep is None else self.keep[:, :keys]
        return replace(
            self, q=self.q[:, :, :queries], k=self.k[:, :, :keys], v=self.v[:, :, :keys],
            keep=keep, row_sums=None, length=None,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class WeightedCall:
    """What one layer weighed by, where no rule gives its weights (B, H, Q, K).

    signed: whether weights may be negative; causal: whether queries see no later key. v
    (B, G, K, D) and output: the values and the product behind the heads, where they are known.
    """

    layer: int
    weights: Tensor
    signed: bool = False
    causal: bool = False
    v: Tensor | None = None
    output: nn.Linear | None = None


class Observer:
    """Sees what passes the calls of a run, and may replace a context."""

    needs_row_sums = False  # whether `attended` reads call.row_sums

    def attended(self, call: AttentionCall, context: Tensor) -> Tensor | None:
        """Called with the context (B, H, Q, D) of a layer; a tensor returned replaces it."""

    def weighted(self, call: WeightedCall, context: Tensor) -> Tensor | None:
        """Called instead of `attended` for a layer whose weights no rule gives.

        context: (B, H, Q, D), or the weights themselves (B, H, Q, K) of a model of which hgviz
        sees no more than its softmax; a tensor returned replaces it.
        """

    def finished_block(self, index: int, x: Any, output: Any) -> None:
        """Called with what a residual block was given and what it returned, (B, n, d) in own
        families; index: the number of its last layer."""


@dataclass(frozen=True, slots=True)
class Run:
    """A forward pass with some heads off, gated or streaming.

    off: heads whose context is set to zero, before the output projection. gates: by layer, factors
    (B, H) of the heads' contexts; they may require gradients. streaming: heads that see the first
    and the latest keys alone. reused: by the number of its last layer, what a block returned in an
    earlier pass on the same input; it is not computed again. readout: only positions that a
    classifier answers from leave its last block. failures: errors of observers, which are not
    errors of the model.
    """

    off: HeadSet = frozenset()
    gates: Mapping[int, Tensor] = field(default_factory=dict)
    streaming: Streaming = NO_STREAMING
    observers: Sequence[Observer] = ()
    reused: Mapping[int, Any] = field(default_factory=dict)
    readout: bool = False
    failures: list[Exception] = field(default_factory=list)

    def attend(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        rule: Rule,
        *,
        heads: Sequence[int] | None = None,
        keep: Tensor | None = None,
        relative: Distance | None = None,
        output: nn.Linear | None = None,
        mixture: Tensor | None = None,
        length: tuple[int, int] | None = None,
    ) -> Tensor:
        """Context (B, H, Q, D) of q (B, H, Q, D) over k and v (B, G, K, D).

        heads: the numbers of the heads, all if not given; the rest as in AttentionCall.
        """
        numbers = range(q.shape[1]) if heads is None else heads
        streaming = self.streaming.places(layer, numbers) if self.streaming.heads else ()
        if streaming and not rule.windowed and sum(self.streaming.window) < k.shape[2]:
            rule = rule.streamed(streaming, self.streaming.window)
        needs_row_sums = any(observer.needs_row_sums for observer in self.observers)
        row_sums: RowLogSums | None = {} if needs_row_sums else None
        context = attend(q, k, v, rule, keep=keep, relative=relative, row_sums=row_sums)
        if self.observers:
            call = AttentionCall(
                layer, q, k, v, rule, keep, relative, row_sums, output, mixture, length
            )
            for observer in self.observers:
                context = self._observed(observer.attended, call, context)
        return self._gated(layer, numbers, context)

    def apply_weighted(
        self, call: WeightedCall, context: Tensor, heads: Sequence[int] | None = None
    ) -> Tensor:
        """The context, or weights, of a layer that computes its own attention, after observers,
        with heads off and gates applied."""
        for observer in self.observers:
            context = self._observed(observer.weighted, call, context)
        numbers = range(context.shape[1]) if heads is None else heads
        return self._gated(call.layer, numbers, context)

    def block(self, index: int, function: Callable[[Any], Any], x: Any) -> Any:
        """What the residual block whose last layer has this number returns for x: taken from an
        earlier pass, or computed."""
        if index in self.reused:
            return self.reused[index]
        output = function(x)
        self.notify_block(index, x, output)
        return output

    def notify_block(self, index: int, x: Any, output: Any) -> None:
        """Call `finished_block` of every observer."""
        for observer in self.observers:
            observer.finished_block(index, x, output)

    def _observed(
        self, observe: Callable[[Any, Tensor], Tensor | None], call: Any, context: Tensor
    ) -> Tensor:
        try:
            replacement = observe(call, context)
        except Exception as error:
            self.failures.append(error)
            raise
        return context if replacement is None else replacement

    def _gated(self, layer: int, heads: Sequence[int], context: Tensor) -> Tensor:
        """A context (B, H, ...) with its heads off and gated."""
        off = sorted(heads.index(head.head) for head in self.off if head.layer == layer)
        if off:
            context = context.index_fill(1, torch.tensor(off, device=context.device), 0.0)
        gates = self.gates.get(layer)
        return context if gates is None else context * gates[:, :, None, None]


# --- recording ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DenseWeights:
    """The maps of one layer: values (heads, queries, keys) in the dtype of the model, bfloat16 as
    its bits; causal: row i has none right of column i; value_norms and mixture as in Factors.
    """

    values: NDArray[Any]
    signed: bool
    causal: bool
    value_norms: NDArray[Any] | None = None
    mixture: NDArray[Any] | None = None


class CaptureRecorder(Observer):
    """Hands over what a capture keeps of each layer while the pass goes on.

    on_layer(layer, kept) is called with Factors, or with DenseWeights where `dense` asks for them
    or no rule gives the weights of a layer.
    """

    def __init__(self, on_layer: Callable[[int, Any], None], dense: bool = False) -> None:
        self._on_layer, self._dense = on_layer, dense
        self.needs_row_sums = not dense

    def attended(self, call: AttentionCall, context: Tensor) -> Tensor | None:
        """Keep factors; or weights, and let the model go on with the context that they give."""
        kept: Any
        real, replacement = call.without_padding(), None
        if self._dense:
            replacement, kept = attend_by_maps(real)
        else:
            kept = factors(real.q, real.k, real.rule, real.keep, real.relative, real.row_sums)
        mixture = None if call.mixture is None else to_numpy(call.mixture.detach().float())
        norms = _value_norms(real.v, call.output)
        self._on_layer(call.layer, replace(kept, value_norms=norms, mixture=mixture))
        return replacement if real is call else None

    def weighted(self, call: WeightedCall, context: Tensor) -> None:
        """Keep the weights."""
        norms = None if call.v is None else _value_norms(call.v, call.output)
        values = to_numpy(call.weights[0])
        self._on_layer(call.layer, DenseWeights(values, call.signed, call.causal, norms))


def _value_norms(v: Tensor, output: nn.Linear | None) -> Any:
    return None if output is None else to_numpy(value_norms(v, output.weight))


def attend_by_maps(call: AttentionCall) -> tuple[Tensor, DenseWeights]:
    """The context (1, H, Q, D) of a call of one text, and the weights that gave it.

    Raises HgvizError where the maps would not fit the memory.
    """
    q, k, rule, keep = call.q, call.k, call.rule, call.keep
    if len(q) != 1:
        raise HgvizError(f"only one text can be captured at a time: got a batch of {len(q)}")
    v = expand_key_groups(call.v, q.shape[1])
    shape = (*q.shape[:3], k.shape[2])
    _require_room(shape[1:], q.dtype.itemsize)
    uniform = keep is not None and rule.empty_rows == "uniform"
    maps, parts = torch.empty(shape, dtype=q.dtype), []
    # no row is summed in less than float32, as in fused kernels
    exact = torch.promote_types(q.dtype, torch.float32)
    groups = [group.to(exact) for group in head_groups(q, k, rule, call.relative)]
    step = max(1, CELLS // max(1, shape[1] * shape[3]))
    for rows in torch.arange(shape[2], device=q.device).split(step) if groups else ():
        weights = in_layer_order(rule, [one.weigh(*one.scores(rows, keep)) for one in groups])
        if uniform:
            weights = fill_empty_rows(weights[0], rule, keep, rows)[None]
        weights = weights.to(q.dtype)
        parts.append(weights @ v)
        maps[:, :, int(rows[0]) : int(rows[-1]) + 1] = weights.detach()
    square = rule.stride_q == rule.stride_k and shape[2] == shape[3]
    signed = any(ACTIVATIONS[name].signed for name in rule.activations)
    context = torch.cat(parts, dim=2) if parts else torch.zeros_like(q)
    return context, DenseWeights(to_numpy(maps[0]), signed, rule.causal and square and not uniform)


def _require_room(shape: tuple[int, ...], itemsize: int) -> None:
    heads, queries, keys = shape
    needed, free = heads * queries * keys * itemsize, free_memory()
    if free is not None and needed > free:
        raise HgvizError(
            f"the maps of a layer take {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free: "
            f"{heads} heads have {queries:,} x {keys:,} weights",
            "Leave --dense out: q and k are kept then, from which any weight is computed",
        )
