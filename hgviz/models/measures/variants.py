"""One model with other heads switched off, over and over, on the same texts: exact and fast.

A pass of the whole model leaves behind what its blocks return. A variant starts at its first layer
with a head off, goes through the layers after it side by side with other variants, and is read out
only where the answer is read. In hgviz's own families the block of that first layer is not computed
again either: a head's part is taken away from the stream behind its attention. Shapes: B batch,
V variants, H heads, Q queries, D head width, d width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgviz.core import NO_STREAMING, HeadId, HeadSet, HgvizError, Layer, Streaming
from hgviz.models.layers import Attention, Network, ResidualBlock, Tokens, repeat_batch
from hgviz.models.run import AttentionCall, Observer, Run, WeightedCall

MOST_TOKENS = 1024  # of all variants that go through the layers side by side: what caches hold


@dataclass(slots=True)
class BaselinePass(Observer):
    """A pass of the whole model over some texts, and what it leaves to its variants.

    By the numbers of layers: inputs and outputs (B, n, d) of the block that a layer is the last
    of, and contexts (B, H, Q, D).
    """

    tokens: Tokens
    inputs: dict[int, Tensor] = field(default_factory=dict)
    outputs: dict[int, Tensor] = field(default_factory=dict)
    contexts: dict[int, Tensor] = field(default_factory=dict)
    copies: dict[tuple[int, int], Tensor] = field(default_factory=dict)

    def attended(self, call: AttentionCall, context: Tensor) -> None:
        """Keep the context of a layer."""
        self.contexts[call.layer] = context

    def finished_block(self, index: int, x: Any, output: Any) -> None:
        """Keep what a block was given and what it returned, where that is its whole output."""
        if isinstance(output, Tensor):
            self.inputs[index], self.outputs[index] = x, output


class RepeatedOutputs(Mapping[int, Tensor]):
    """The outputs of the blocks before a layer, for so many variants side by side.

    Each is copied when it is asked for, once for all variants. output: what the block of that layer
    itself returns in the variants, where that is known.
    """

    def __init__(
        self, baseline: BaselinePass, layer: int, variants: int = 1, output: Tensor | None = None
    ) -> None:
        self._baseline, self._variants = baseline, variants
        self._indices = [index for index in baseline.outputs if index < layer]
        self._last = {} if output is None else {layer: output}

    def __getitem__(self, index: int) -> Tensor:
        if index in self._last:
            return self._last[index]
        if index not in self._indices:
            raise KeyError(index)
        output, place = self._baseline.outputs[index], (index, self._variants)
        if self._variants == 1:
            return output
        if place not in self._baseline.copies:
            self._baseline.copies[place] = repeat_batch(output, self._variants)
        return self._baseline.copies[place]

    def __contains__(self, index: object) -> bool:
        return index in self._last or index in self._indices

    def __iter__(self) -> Iterator[int]:
        return chain(self._indices, self._last)

    def __len__(self) -> int:
        return len(self._indices) + len(self._last)


def attention_modules(module: Network) -> list[Attention]:
    """The attention modules of a model of an own family, in order of computation."""
    found = {part.layer.index: part for part in module.modules() if isinstance(part, Attention)}
    return [found[index] for index in sorted(found)]


def attention_layers(module: Network) -> tuple[Layer, ...]:
    """The layers of attention of a model, in order of computation; () of one without any."""
    return tuple(getattr(module.config, "layers", ()))


@dataclass(frozen=True, slots=True)
class ExternalLayer:
    """A layer of a model that is not hgviz's own: what heads give goes through o, d_head each."""

    layer: Layer
    o: nn.Linear
    d_head: int


def output_projections(module: Network) -> Sequence[Attention | ExternalLayer]:
    """Every layer that has heads, with the product behind them. Errors: HgvizError for a model
    whose products hgviz did not see."""
    own = attention_modules(module) or getattr(module, "projected", list)()
    known = {one.layer.index for one in own}
    for layer in attention_layers(module):
        if layer.heads and layer.index not in known:
            raise HgvizError(
                f"layer {layer.index} of this model cannot be followed back: "
                "hgviz did not see what its heads are put together by",
                "Choose another",
            )
    return [one for one in own if one.layer.heads]


class HeadAblation:
    """A model, and any of its heads off.

    Everything runs without gradients but `gate_gradients`, which has them for contexts alone.
    """

    def __init__(
        self, module: Network, off: HeadSet = frozenset(), streaming: Streaming = NO_STREAMING
    ) -> None:
        self.module, self.off = module, off
        self._run = Run(off, streaming=streaming, readout=not streaming.heads)
        blocks = [part for part in module.modules() if isinstance(part, ResidualBlock)]
        self._blocks = {  # those that a variant can begin inside of
            block.attentions[0].layer.index: block for block in blocks if len(block.attentions) == 1
        }
        self._narrow: dict[int, Tensor] = {}  # of feed-forwards, as made
        _keep_what_is_freed()

    @property
    def heads(self) -> tuple[HeadId, ...]:
        """Every head of the model, in order of computation."""
        return tuple(
            HeadId(one.index, head) for one in attention_layers(self.module) for head in one.heads
        )

    @torch.inference_mode()
    def baseline(self, tokens: Tokens) -> tuple[BaselinePass, Tensor]:
        """The baseline pass, heads of `off` off; logits (B, classes) or (B, n, vocabulary)."""
        recorder = BaselinePass(tokens)
        return recorder, self.module(tokens, replace(self._run, observers=(recorder,)))

    @torch.inference_mode()
    def ablate(self, baseline: BaselinePass, off: Collection[HeadId]) -> Tensor:
        """Logits with further heads off, computed from the first block on that has one of them."""
        wanted = frozenset(off) | self.off
        first = min(wanted - self.off, default=HeadId(len(attention_layers(self.module)), 0)).layer
        run = replace(self._run, off=wanted, reused=RepeatedOutputs(baseline, first))
        return self.module(baseline.tokens, run)

    @torch.inference_mode()
    def ablate_each(
        self, baseline: BaselinePass, alone: bool = False
    ) -> Iterator[tuple[tuple[HeadId, ...], Tensor]]:
        """Logits (V, B, ...) with each head off by itself, a few of a layer at a time.

        alone: with all others of its layer off instead. The last layers come first: they are
        nearly free.
        """
        size = max(1, MOST_TOKENS // max(1, _size(baseline.tokens)))
        for layer in reversed(attention_layers(self.module)):
            heads = [head for head in layer.heads if HeadId(layer.index, head) not in self.off]
            start_of = self._starts(baseline, layer, alone)
            for start in range(0, len(heads), size):
                some = heads[start : start + size]
                places = [layer.heads.index(head) for head in some]
                logits = self.module(repeat_tokens(baseline.tokens, len(some)), start_of(places))
                yield (
                    tuple(HeadId(layer.index, head) for head in some),
                    logits.unflatten(0, (len(some), -1)),
                )

    def _starts(
        self, baseline: BaselinePass, layer: Layer, alone: bool
    ) -> Callable[[Sequence[int]], Run]:
        """What makes the run of some variants, by the places of their heads in a layer."""
        block, start = self._blocks.get(layer.index), None
        if block is not None:
            off = [layer.heads.index(one.head) for one in self.off if one.layer == layer.index]
            start = BlockAblation(baseline, block, off, self._narrow_of(baseline, block))

        def run_of(places: Sequence[int]) -> Run:
            if start is not None:
                output = start.alone(places) if alone else start.without(places)
                reused = RepeatedOutputs(baseline, layer.index, len(places), output)
                return replace(self._run, reused=reused)
            kind = next(self.module.parameters())
            gates = torch.full((len(places), len(layer.heads)), 0.0 if alone else 1.0)
            gates[range(len(places)), list(places)] = 1.0 if alone else 0.0
            each = gates.to(kind).repeat_interleave(_texts(baseline.tokens), 0)
            reused = RepeatedOutputs(baseline, layer.index, len(places))
            return replace(self._run, gates={layer.index: each}, reused=reused)

        return run_of

    def _narrow_of(self, baseline: BaselinePass, block: ResidualBlock) -> Tensor | None:
        """What BlockStart needs to begin the feed-forward; None where that does not pay."""
        attention = block.attentions[0]
        layer, contexts = attention.layer.index, baseline.contexts[attention.layer.index]
        if attention.o.weight.dtype.itemsize < 4:
            return None
        if layer not in self._narrow:
            if not _pays(contexts, attention.o.out_features):
                return None
            self._narrow[layer] = head_ff_weights(block)
        return self._narrow[layer]

    def find_unused_layer(self, tokens: Tokens) -> int | None:
        """The first layer whose heads can all be off without a change of any logit, though its
        weights use them; None where there is none."""
        whole, logits = self.baseline(tokens)
        for layer in attention_layers(self.module):
            heads = {HeadId(layer.index, head) for head in layer.heads} - self.off
            used = heads and self._uses(layer)
            if used and torch.equal(self.ablate(whole, heads), logits):
                return layer.index
        return None

    def _uses(self, layer: Layer) -> bool:
        """Whether a text has to show the heads of a layer: not where its weights do not use them,
        where it only cuts the text, nor where a later layer looks down from the same positions."""
        own = next(
            (one for one in attention_modules(self.module) if one.layer.index == layer.index), None
        )
        if own is not None:
            return bool(own.o.weight.any()) and bool(own.v.weight.any())
        later = [one for one in attention_layers(self.module) if one.index > layer.index]
        anew = [one.role for one in later if one.level == layer.level]
        return not (layer.cuts or (layer.role == "down" and "down" in anew))

    # --- gradients --------------------------------------------------------------------------------

    def gate_gradients(self, tokens: Tokens, losses: Callable[[Tensor], Tensor]) -> GateGradients:
        """How each text's loss changes with the gate of each head, at gates of 1.

        One pass and its way back (Michel et al. 2019, eq. 2, before the absolute value); losses
        (logits) -> (B,). Layers that no loss depends on by a slope, as those that cut a text, have
        zeros.
        """
        recorder = GateGradientRecorder()
        with torch.enable_grad():
            run = replace(self._run, observers=(recorder,))
            total = losses(self.module(tokens, run)).sum()
            contexts = [recorder.contexts[layer.index] for layer in attention_layers(self.module)]
            slopes = torch.autograd.grad(total, contexts, allow_unused=True, materialize_grads=True)
        each = [(c * s).sum(-1).detach() for c, s in zip(contexts, slopes, strict=True)]
        return GateGradients(
            torch.cat([one.sum(-1) for one in each], 1),
            torch.cat([one.abs().sum(-1) for one in each], 1),
        )


class GateGradientRecorder(Observer):
    """Keeps what the heads of each layer give, (B, H, Q, D) by layer, so that gradients can be
    taken by it; what a gate moves of a head's weights, it moves of its context."""

    def __init__(self) -> None:
        self.contexts: dict[int, Tensor] = {}
        self.calls: dict[int, AttentionCall] = {}

    def attended(self, call: AttentionCall, context: Tensor) -> Tensor:
        """Keep the call, and a context that requires gradients."""
        self.calls[call.layer] = call
        return self._kept(call.layer, context)

    def weighted(self, call: WeightedCall, context: Tensor) -> Tensor:
        """Keep a context, or weights, that require gradients."""
        return self._kept(call.layer, context)

    def _kept(self, layer: int, context: Tensor) -> Tensor:
        if not context.requires_grad:  # nothing before it does
            context = context.detach().requires_grad_()
        self.contexts[layer] = context
        return context


class BlockAblation:
    """What a block returns where heads are missing from the stream z behind its attention.

    A head's part is taken away: z - c_h W_O^h. The first product of the feed-forward goes by heads
    as well: W LN(z) + b = E z / s + e, where E is W, the norm's weights and the mean taken away in
    one, s the deviation of z. E (z - W_O c) = E z - (E W_O) c, and E W_O is as narrow as a head:
    d / D times less work.
    """

    def __init__(
        self,
        baseline: BaselinePass,
        block: ResidualBlock,
        off: Sequence[int],
        narrow: Tensor | None,
    ) -> None:
        self._block, self._attention, self._narrow = block, block.attentions[0], narrow
        layer = self._attention.layer.index
        self._contexts = baseline.contexts[layer]  # (B, H, Q, D)
        if off:
            places = torch.tensor(sorted(off), device=self._contexts.device)
            self._contexts = self._contexts.index_fill(1, places, 0.0)
        queries = self._contexts.shape[2]
        given = self._attention.o(self._contexts.transpose(1, 2).flatten(2))  # (B, Q, d)
        self._z = baseline.inputs[layer][:, :queries] + given
        if narrow is None:
            return
        norm, first = block.norm_before_ff, block.ff.first
        self._whole = F.linear(_centred(self._z, -1) * norm.weight, first.weight)  # (B, Q, d_ff)
        self._shift = F.linear(norm.bias, first.weight, first.bias)  # (d_ff,)
        self._found: Tensor | None = None  # written anew for each few variants

    def without(self, places: Sequence[int]) -> Tensor:
        """(V * B, Q, d) without the head at each place."""
        streams = torch.stack([self._less([place]) for place in places])  # (V, B, Q, d)
        hidden = None if self._narrow is None else self._hidden(self._narrow, places, streams)
        return self._block.finish(streams.flatten(0, 1), hidden)

    def alone(self, places: Sequence[int]) -> Tensor:
        """(V * B, Q, d) with the head at each place as the only one."""
        every = range(self._contexts.shape[1])
        streams = [self._less([other for other in every if other != place]) for place in places]
        return self._block.finish(torch.cat(streams))

    def _less(self, places: Sequence[int]) -> Tensor:
        """The stream (B, Q, d) less the part of some heads."""
        output = self._attention.o.weight.unflatten(1, (-1, self._attention.d_head))  # (d, H, D)
        gone = self._contexts[:, places].transpose(1, 2).flatten(2)  # (B, Q, h * D)
        return self._z - gone @ output[:, places].flatten(1).T

    def _hidden(self, narrow: Tensor, places: Sequence[int], streams: Tensor) -> Tensor:
        """(V * B, Q, d_ff) The first product of the feed-forward without the head at each place."""
        width, epsilon = streams.shape[-1:], self._block.norm_before_ff.eps
        scales = torch.native_layer_norm(streams, width, None, None, epsilon)[2]  # (V, B, Q, 1)
        if self._found is None or len(self._found) < len(places):
            self._found = self._whole.new_empty(len(places), *self._whole.shape)
        found = self._found[: len(places)]
        for out, place, scale in zip(found, places, scales, strict=True):
            torch.addcmul(self._shift, self._whole, scale, out=out)
            context = (self._contexts[:, place] * scale).flatten(0, 1)  # (B * Q, D)
            out.view(-1, out.shape[-1]).addmm_(context, narrow[place].T, alpha=-1)
        return found.flatten(0, 1)


def _keep_what_is_freed() -> None:
    """Let glibc's malloc keep large blocks for the next product, which fit into 32 MiB.

    It hands what is freed back to the system, to be faulted in again page by page, which took a
    tenth of the time here, up to the size of the largest block it has seen freed.
    """
    torch.empty(31 << 20, dtype=torch.uint8)


def head_ff_weights(block: ResidualBlock) -> Tensor:
    """(H, d_ff, D): E W_O of each head, see BlockStart."""
    attention = block.attentions[0]
    output = _centred(attention.o.weight, 0) * block.norm_before_ff.weight[:, None]  # (d, H * D)
    found = block.ff.first.weight @ output
    return found.unflatten(1, (-1, attention.d_head)).transpose(0, 1).contiguous()


def _pays(contexts: Tensor, width: int) -> bool:
    """Whether variants save at once what `narrow` takes, a product of as many rows as the width."""
    texts, heads, queries, _ = contexts.shape
    return texts * heads * queries >= 2 * width


def _centred(x: Tensor, dim: int) -> Tensor:
    return x - x.mean(dim, keepdim=True)


@dataclass(frozen=True, slots=True)
class GateGradients:
    """gates (B, heads): dL_b / dx_h = sum over tokens of c . dL/dc; tokens (B, heads): the sum of
    their sizes, |c . dL/dc|."""

    gates: Tensor
    tokens: Tensor


def _texts(tokens: Tokens) -> int:
    given = tokens.ids if tokens.ids is not None else tokens.states
    assert given is not None
    return len(given)


def _size(tokens: Tokens) -> int:
    given = tokens.ids if tokens.ids is not None else tokens.states
    assert given is not None
    return given.shape[0] * given.shape[1]


def repeat_tokens(tokens: Tokens, times: int) -> Tokens:
    """The same tokens with the batch repeated, one copy of all texts after the other."""
    if times == 1:
        return tokens

    def of(part: Tensor | None) -> Tensor | None:
        return None if part is None else repeat_batch(part, times)

    source = None if tokens.source is None else repeat_tokens(tokens.source, times)
    return replace(
        tokens, ids=of(tokens.ids), keep=of(tokens.keep), segments=of(tokens.segments),
        states=of(tokens.states), source=source, boundaries=of(tokens.boundaries),
        signal=of(tokens.signal), positions=of(tokens.positions),
    )  # fmt: skip
