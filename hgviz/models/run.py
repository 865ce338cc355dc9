"""Interventions in a forward pass and observers of it.

Models of every family call two methods of a `Run`: `attend` for attention and `block` around each
residual block. These two apply the interventions (heads off, gates, streaming heads) and notify the
observers (captures, gradients, reused outputs), so that model code stays as plain as in its paper.

Shapes: B batch, H heads, G key groups, Q queries, K keys, D head width, d model width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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
    extend_linear,
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
    """The inputs of attention in one layer: q (B, H, Q, D), k and v (B, G, K, D) and the rule.

    keep (B, K): False for padding. relative: relative-position terms. row_sums: row statistics,
    where an observer needs them. output: the output projection, where it is known. mixture
    (h, K, n): weight of each token in each slot, where keys are slots. length: the numbers of
    queries and keys without the padding that the model adds itself.
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
        """A copy without the padding that the model adds itself."""
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
    """The attention weights (B, H, Q, K) of a layer that computes them itself, without a rule.

    signed: whether weights may be negative. causal: whether later keys are masked. v (B, G, K, D)
    and output: the values and the output projection, where they are known.
    """

    layer: int
    weights: Tensor
    signed: bool = False
    causal: bool = False
    v: Tensor | None = None
    output: nn.Linear | None = None


class Observer:
    """Base of objects that a Run notifies; they may replace the context of a layer."""

    needs_row_sums = False  # whether on_attention reads call.row_sums

    def on_attention(self, call: AttentionCall, context: Tensor) -> Tensor | None:
        """Receive the context (B, H, Q, D) of a layer and return a replacement, or None."""

    def on_weights(self, call: WeightedCall, context: Tensor) -> Tensor | None:
        """As on_attention, of a layer that computes its weights itself.

        context: (B, H, Q, D), or the weights (B, H, Q, K) where only the model's softmax is hooked.
        """

    def on_block(self, index: int, x: Any, output: Any) -> None:
        """Receive input and output of the residual block whose last layer has this index.

        Both are (B, n, d) in own families.
        """


@dataclass(frozen=True, slots=True)
class Run:
    """A forward pass with some heads off, gated or streaming.

    off: heads whose context is replaced by zero, or by what `replacement` gives for a layer and its
    context (B, H, Q, D), before the output projection. gates: by layer, factors (B, H) of the
    heads' contexts, 0 as off; they may require gradients. streaming: heads that attend only to the
    first and the latest keys. reused: block outputs of an earlier pass on the same input, by the
    index of the last layer, returned instead of computed. readout: the last block of a classifier
    computes only the positions that it reads. failures: exceptions of observers, to tell them from
    those of the model.
    """

    off: HeadSet = frozenset()
    gates: Mapping[int, Tensor] = field(default_factory=dict)
    streaming: Streaming = NO_STREAMING
    observers: Sequence[Observer] = ()
    reused: Mapping[int, Any] = field(default_factory=dict)
    readout: bool = False
    replacement: Callable[[int, Tensor], Tensor] | None = None
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

        heads: the numbers of the heads, by default all; the rest as in AttentionCall.
        """
        numbers = range(q.shape[1]) if heads is None else heads
        streaming = self.streaming.places(layer, numbers) if self.streaming.heads else ()
        if streaming and not rule.windowed and sum(self.streaming.window) < k.shape[2]:
            rule = rule.with_streaming(streaming, self.streaming.window)
        needs_row_sums = any(observer.needs_row_sums for observer in self.observers)
        row_sums: RowLogSums | None = {} if needs_row_sums else None
        context = attend(q, k, v, rule, keep=keep, relative=relative, row_sums=row_sums)
        if self.observers:
            call = AttentionCall(
                layer, q, k, v, rule, keep, relative, row_sums, output, mixture, length
            )
            for observer in self.observers:
                context = self._notify(observer.on_attention, call, context)
        return self._apply_gates(layer, numbers, context)

    def apply_weighted(
        self, call: WeightedCall, context: Tensor, heads: Sequence[int] | None = None
    ) -> Tensor:
        """Context, or weights, of a layer that computes attention itself, after interventions.

        Observers are notified first.
        """
        for observer in self.observers:
            context = self._notify(observer.on_weights, call, context)
        numbers = range(context.shape[1]) if heads is None else heads
        return self._apply_gates(call.layer, numbers, context)

    def block(self, index: int, function: Callable[[Any], Any], x: Any) -> Any:
        """Output of the residual block whose last layer has this index: function(x), or reused."""
        if index in self.reused:
            return self.reused[index]
        output = function(x)
        self.notify_block(index, x, output)
        return output

    def notify_block(self, index: int, x: Any, output: Any) -> None:
        """Call on_block of every observer."""
        for observer in self.observers:
            observer.on_block(index, x, output)

    def _notify(
        self, observe: Callable[[Any, Tensor], Tensor | None], call: Any, context: Tensor
    ) -> Tensor:
        try:
            replacement = observe(call, context)
        except Exception as error:
            self.failures.append(error)
            raise
        return context if replacement is None else replacement

    def _apply_gates(self, layer: int, heads: Sequence[int], context: Tensor) -> Tensor:
        """A context (B, H, ...) times its gates, which are zero for heads that are off, and the
        rest of one of what stands in their place."""
        off = sorted(heads.index(head.head) for head in self.off if head.layer == layer)
        gates = self.gates.get(layer)
        if not off and gates is None:
            return context
        places = torch.tensor(off, dtype=torch.long, device=context.device)
        if self.replacement is not None:
            other = self.replacement(layer, context)
            own = context.index_copy(1, places, other[:, places])
            return own if gates is None else torch.lerp(other, own, gates[:, :, None, None])
        context = context.index_fill(1, places, 0.0)
        return context if gates is None else context * gates[:, :, None, None]


@dataclass(frozen=True, slots=True)
class RecurrentRun(Run):
    """A pass of a causal model of linear attention over the tokens that follow others.

    states (B, H, D, D + 1) by layer, see extend_linear: those of the tokens so far, to which this
    pass adds its own. A text is begun by several tokens, and goes on by one at a time.
    """

    states: dict[int, Tensor] = field(default_factory=dict)

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, rule: Rule, **more: Any
    ) -> Tensor:
        """Context (B, H, Q, D), as Run.attend."""
        begun = self.states.get(layer)
        context, self.states[layer] = extend_linear(q, k, v, begun)
        if context is None or begun is None:
            return Run.attend(self, layer, q, k, v, rule, **more)
        return self._apply_gates(layer, more.get("heads") or range(q.shape[1]), context)


class PassEnded(Exception):
    """Ends a pass that has come as far as it is needed."""


class LastLayer(Observer):
    """Ends a pass, by PassEnded, once all of these layers have attended.

    It comes after all other observers, so that they see the last layer.
    """

    def __init__(self, layers: Collection[int]) -> None:
        self._waiting = set(layers)

    def on_attention(self, call: AttentionCall, context: Tensor) -> None:
        """Count the layer."""
        self._count(call.layer)

    def on_weights(self, call: WeightedCall, context: Tensor) -> None:
        """Count the layer."""
        self._count(call.layer)

    def _count(self, layer: int) -> None:
        self._waiting.discard(layer)
        if not self._waiting:
            raise PassEnded


# --- recording ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DenseWeights:
    """Attention maps of one layer: values (heads, queries, keys) in the dtype of the model.

    bfloat16 is held as its bits. causal: whether row i is zero right of column i. value_norms and
    mixture: as in Factors.
    """

    values: NDArray[Any]
    signed: bool
    causal: bool
    value_norms: NDArray[Any] | None = None
    mixture: NDArray[Any] | None = None


class CaptureRecorder(Observer):
    """Passes the record of each layer to a capture, during the forward pass.

    on_layer(layer, record) receives Factors, or DenseWeights if dense is set or the layer computes
    its weights itself.
    """

    def __init__(self, on_layer: Callable[[int, Any], None], dense: bool = False) -> None:
        self._on_layer, self._dense = on_layer, dense
        self.needs_row_sums = not dense

    def on_attention(self, call: AttentionCall, context: Tensor) -> Tensor | None:
        """Record factors, or record the maps and replace the context by their product with v."""
        record: Any
        cut, replacement = call.without_padding(), None
        if self._dense:
            replacement, record = attend_by_maps(cut)
        else:
            record = factors(cut.q, cut.k, cut.rule, cut.keep, cut.relative, cut.row_sums)
        mixture = None if call.mixture is None else to_numpy(call.mixture.detach().float())
        norms = _value_norms(cut.v, call.output)
        self._on_layer(call.layer, replace(record, value_norms=norms, mixture=mixture))
        return replacement if cut is call else None

    def on_weights(self, call: WeightedCall, context: Tensor) -> None:
        """Record the weights."""
        norms = None if call.v is None else _value_norms(call.v, call.output)
        values = to_numpy(call.weights[0])
        self._on_layer(call.layer, DenseWeights(values, call.signed, call.causal, norms))


def _value_norms(v: Tensor, output: nn.Linear | None) -> Any:
    return None if output is None else to_numpy(value_norms(v, output.weight))


def attend_by_maps(call: AttentionCall) -> tuple[Tensor, DenseWeights]:
    """The context (1, H, Q, D) of a call, computed from its attention maps, and these maps.

    Raises HgvizError for a batch of several texts, and for maps larger than the free memory.
    """
    q, k, rule, keep = call.q, call.k, call.rule, call.keep
    if len(q) != 1:
        raise HgvizError(f"only one text can be captured at a time: got a batch of {len(q)}")
    v = expand_key_groups(call.v, q.shape[1])
    shape = (*q.shape[:3], k.shape[2])
    _require_memory(shape[1:], q.dtype.itemsize)
    uniform = keep is not None and rule.empty_rows == "uniform"
    maps, parts = torch.empty(shape, dtype=q.dtype), []
    # rows are summed in float32 at least, as in fused kernels
    exact = torch.promote_types(q.dtype, torch.float32)
    groups = [group.to(exact) for group in head_groups(q, k, rule, call.relative)]
    step = max(1, CELLS // max(1, shape[1] * shape[3]))
    for rows in torch.arange(shape[2], device=q.device).split(step) if groups else ():
        weights = in_layer_order(rule, [group.weigh(*group.scores(rows, keep)) for group in groups])
        if uniform:
            weights = fill_empty_rows(weights[0], rule, keep, rows)[None]
        weights = weights.to(q.dtype)
        parts.append(weights @ v)
        maps[:, :, int(rows[0]) : int(rows[-1]) + 1] = weights.detach()
    square = rule.stride_q == rule.stride_k and shape[2] == shape[3]
    signed = any(ACTIVATIONS[name].signed for name in rule.activations)
    context = torch.cat(parts, dim=2) if parts else torch.zeros_like(q)
    return context, DenseWeights(to_numpy(maps[0]), signed, rule.causal and square and not uniform)


def _require_memory(shape: tuple[int, ...], itemsize: int) -> None:
    heads, queries, keys = shape
    needed, free = heads * queries * keys * itemsize, free_memory()
    if free is not None and needed > free:
        raise HgvizError(
            f"the maps of a layer need {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free: "
            f"{heads} heads have {queries:,} x {keys:,} weights",
            "Leave --dense out to store q and k, from which weights are computed",
        )
