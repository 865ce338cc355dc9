"""The same model again and again on the same texts, each time with other heads off.

A baseline pass leaves behind what its blocks return. A pass with further heads off begins at the
first layer that has one of them, runs side by side with passes without other heads of that layer,
and is read out only where the answer is read. In hgviz's own families the block of that first layer
is not computed again either: the contribution of a head is subtracted from the residual stream
behind its attention. Results are exact up to rounding.

Shapes: B texts, V variants (other heads off), H heads, Q queries, D head width, d model width.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from hgviz.core import (
    NO_STREAMING,
    Ablation,
    Floats,
    HeadCost,
    HeadId,
    HeadSet,
    Integers,
    Layer,
    Streaming,
)
from hgviz.errors import require
from hgviz.examples import IGNORE_INDEX, Batch, Examples
from hgviz.models.attention import to_numpy
from hgviz.models.layers import (
    Network,
    ResidualBlock,
    Tokens,
    attention_layers,
    attention_modules,
    repeat_batch,
)
from hgviz.models.model import Model, batch_tokens
from hgviz.models.pruning import head_costs
from hgviz.models.run import AttentionCall, Observer, Run, WeightedCall

SIDE_BY_SIDE = 1024  # tokens of all variants that go through a layer together: what caches hold
CACHE_BYTES = 1 << 30
LOGITS = 1 << 24  # whose probabilities are held at once
EXCERPT = 64  # tokens
EQUAL_COSINES = 1e-9

# (places,) each: the loss in nats (or 1 - cosine), and the predicted class, token or example
Predictions = tuple[Floats, Integers]


# --- a model and its heads ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplacementContexts:
    """What takes the place of the contexts of heads that are off, for a batch of B texts.

    By layer contexts (B, Q', H, D) and how many of their queries are real (B,): a longer text goes
    through them again.
    """

    contexts: Mapping[int, Tensor]
    queries: Mapping[int, Tensor]

    def __call__(self, layer: int, context: Tensor) -> Tensor:
        """In place of a context (V * B, H, Q, D), one of the same shape."""
        own, queries = self.contexts[layer], self.queries[layer]
        rows = torch.arange(len(context), device=own.device)[:, None] % len(own)
        positions = torch.arange(context.shape[2], device=own.device) % queries[rows]
        return own[rows, positions].transpose(1, 2)

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return sum(context.nbytes for context in self.contexts.values())


@dataclass(slots=True)
class BaselinePass(Observer):
    """What a pass over some texts leaves to passes with further heads off.

    By layer: inputs and outputs (B, n, d) of the block that the layer is the last of, and contexts
    (B, H, Q, D). replacement: as in Run.
    """

    tokens: Tokens
    replacement: ReplacementContexts | None = None
    inputs: dict[int, Tensor] = field(default_factory=dict)
    outputs: dict[int, Tensor] = field(default_factory=dict)
    contexts: dict[int, Tensor] = field(default_factory=dict)
    copies: dict[tuple[int, int], Tensor] = field(default_factory=dict)

    def on_attention(self, call: AttentionCall, context: Tensor) -> None:
        """Record the context of a layer."""
        self.contexts[call.layer] = context

    def on_block(self, index: int, x: Any, output: Any) -> None:
        """Record the input and output of a block that returns the residual stream alone."""
        if isinstance(output, Tensor):
            self.inputs[index], self.outputs[index] = x, output

    def outputs_before(self, layer: float, variants: int = 1) -> dict[int, Tensor]:
        """The outputs (V * B, n, d) of the blocks before a layer, repeated for each variant."""
        return {index: self._repeat(index, variants) for index in self.outputs if index < layer}

    def _repeat(self, index: int, variants: int) -> Tensor:
        if variants == 1:
            return self.outputs[index]
        if (index, variants) not in self.copies:
            self.copies[index, variants] = repeat_batch(self.outputs[index], variants)
        return self.copies[index, variants]


@dataclass(slots=True)
class GateGradientRecorder(Observer):
    """Records the context (B, H, Q, D) of each layer so that it requires gradients.

    A layer that weighs by code of its own may hand over its weights instead: a gate scales a head's
    weights as it scales its context.
    """

    contexts: dict[int, Tensor] = field(default_factory=dict)
    calls: dict[int, AttentionCall] = field(default_factory=dict)

    def on_attention(self, call: AttentionCall, context: Tensor) -> Tensor:
        """Record the call and its context."""
        self.calls[call.layer] = call
        return self._record(call.layer, context)

    def on_weights(self, call: WeightedCall, context: Tensor) -> Tensor:
        """Record a context, or weights."""
        return self._record(call.layer, context)

    def _record(self, layer: int, context: Tensor) -> Tensor:
        if not context.requires_grad:  # no layer before it does
            context = context.detach().requires_grad_()
        self.contexts[layer] = context
        return context


@dataclass(eq=False, repr=False)
class HeadAblation:
    """A model whose heads can be switched off, some of them (off) from the start.

    whole: every position of the last block is computed, also where a classifier reads only some.
    Everything runs without gradients but `gate_gradients`.
    """

    module: Network
    off: HeadSet = frozenset()
    streaming: Streaming = NO_STREAMING
    whole: bool = False

    def __post_init__(self) -> None:
        readout = not (self.streaming.heads or self.whole)
        self._run = Run(self.off, streaming=self.streaming, readout=readout)
        blocks = [part for part in self.module.modules() if isinstance(part, ResidualBlock)]
        self._blocks = {  # in which a pass with heads off can begin
            block.attentions[0].layer.index: block for block in blocks if len(block.attentions) == 1
        }
        self._head_ff_weights: dict[int, Tensor] = {}
        # glibc returns large freed blocks to the system, which took a tenth of the time here, but
        # for sizes up to the largest block that it has seen freed (at most 32 MiB)
        torch.empty(31 << 20, dtype=torch.uint8)

    @property
    def heads(self) -> tuple[HeadId, ...]:
        """Every head of the model, in order of computation."""
        layers = attention_layers(self.module)
        return tuple(HeadId(layer.index, head) for layer in layers for head in layer.heads)

    @torch.inference_mode()
    def baseline(
        self, tokens: Tokens, replacement: ReplacementContexts | None = None
    ) -> tuple[BaselinePass, Tensor]:
        """The baseline pass and its logits (B, classes) or (B, n, vocabulary)."""
        recorder = BaselinePass(tokens, replacement)
        run = replace(self._run, observers=(recorder,), replacement=replacement)
        return recorder, self.module(tokens, run)

    @torch.inference_mode()
    def record_everywhere(self, tokens: Tokens) -> BaselinePass:
        """A baseline pass that computes every position of the last block."""
        recorder = BaselinePass(tokens)
        self.module(tokens, replace(self._run, observers=(recorder,), readout=False))
        return recorder

    @torch.inference_mode()
    def ablate(self, baseline: BaselinePass, off: Collection[HeadId]) -> Tensor:
        """Logits with further heads off."""
        every = frozenset(off) | self.off
        first = min((head.layer for head in every - self.off), default=math.inf)
        reused = baseline.outputs_before(first)
        run = replace(self._run, off=every, reused=reused, replacement=baseline.replacement)
        return self.module(baseline.tokens, run)

    @torch.inference_mode()
    def run_each(
        self,
        tokens: Tokens,
        layers: Iterable[Layer],
        run_of: Callable[[Layer], Callable[[Sequence[int]], Run]],
    ) -> Iterator[tuple[tuple[HeadId, ...], Tensor]]:
        """Some heads of a layer that are on, and logits (V, B, ...) of a variant for each of them.

        run_of: of a layer, a function from places of heads to the run of their variants, each in
        its own copy of the texts.
        """
        size = max(1, SIDE_BY_SIDE // max(1, math.prod(tokens.shape)))
        for layer in layers:
            heads = [HeadId(layer.index, head) for head in layer.heads]
            places = [place for place, head in enumerate(heads) if head not in self.off]
            run_variants = run_of(layer)
            for start in range(0, len(places), size):
                variants = places[start : start + size]
                repeated = tokens.map(partial(repeat_batch, times=len(variants)))
                logits = self.module(repeated, run_variants(variants))
                logits = logits.unflatten(0, (len(variants), -1))
                yield tuple(heads[place] for place in variants), logits

    def ablate_each(
        self, baseline: BaselinePass, alone: bool = False
    ) -> Iterator[tuple[tuple[HeadId, ...], Tensor]]:
        """Some heads of a layer and logits (V, B, ...) with each of them off by itself.

        alone: with all others of its layer off instead. The last layers come first: they are
        nearly free.
        """
        layers = reversed(attention_layers(self.module))
        run_of = partial(self._run_without, baseline, alone=alone)
        return self.run_each(baseline.tokens, layers, run_of)

    def _run_without(
        self, baseline: BaselinePass, layer: Layer, *, alone: bool
    ) -> Callable[[Sequence[int]], Run]:
        """A function from places of heads in a layer to the run with each off (or alone) in its
        own copy of the texts."""
        block, start = self._blocks.get(layer.index), None
        if block is not None and layer.index in baseline.inputs:
            off = [layer.heads.index(head.head) for head in self.off if head.layer == layer.index]
            weights = self._ff_weights(baseline, block)
            start = BlockAblation(baseline, block, off, weights)

        def run_without(places: Sequence[int]) -> Run:
            variants, gates = len(places), {}
            reused = baseline.outputs_before(layer.index, variants)
            if start is not None:
                reused[layer.index] = start.alone(places) if alone else start.without(places)
            else:
                factors = torch.full((variants, len(layer.heads)), 0.0 if alone else 1.0)
                factors[range(variants), list(places)] = 1.0 if alone else 0.0
                factors = factors.repeat_interleave(baseline.tokens.shape[0], 0)
                gates[layer.index] = factors.to(next(self.module.parameters()))
            replacement = baseline.replacement
            return replace(self._run, gates=gates, reused=reused, replacement=replacement)

        return run_without

    def _ff_weights(self, baseline: BaselinePass, block: ResidualBlock) -> Tensor | None:
        """The head_ff_weights of a block; None where they do not pay, or are too imprecise."""
        attention = block.attentions[0]
        layer, contexts = attention.layer.index, baseline.contexts[attention.layer.index]
        if attention.o.weight.dtype.itemsize < 4:
            return None
        if layer not in self._head_ff_weights:
            if not saves_time(contexts, attention.o.out_features):
                return None
            self._head_ff_weights[layer] = head_ff_weights(block)
        return self._head_ff_weights[layer]

    def find_unused_layer(self, tokens: Tokens) -> int | None:
        """The first layer whose heads can all be off without a change of any logit, although its
        weights use them; None where there is none."""
        baseline, logits = self.baseline(tokens)
        for layer in attention_layers(self.module):
            heads = {HeadId(layer.index, head) for head in layer.heads} - self.off
            used = heads and self._must_have_effect(layer)
            if used and torch.equal(self.ablate(baseline, heads), logits):
                return layer.index
        return None

    def _must_have_effect(self, layer: Layer) -> bool:
        """Whether a text has to show the heads of a layer: not where its weights do not use them,
        where it only ends segments, nor where a later layer shortens the same positions again."""
        own = [part for part in attention_modules(self.module) if part.layer.index == layer.index]
        if own:
            return bool(own[0].o.weight.any()) and bool(own[0].v.weight.any())
        later = {
            (other.level, other.role)
            for other in attention_layers(self.module)
            if other.index > layer.index
        }
        return not layer.cuts and not (layer.role == "down" and (layer.level, "down") in later)

    def gate_gradients(
        self,
        tokens: Tokens,
        losses: Callable[[Tensor], Tensor],
        replacement: ReplacementContexts | None = None,
    ) -> tuple[Tensor, Tensor]:
        """How each text's loss changes with the gate of each head, at gates of 1, (B, heads): the
        sum over tokens of c . dL/dc, and the sum of |c . dL/dc|.

        One pass forward and one back (Michel et al. 2019, equation 2, before the absolute value).
        losses: logits -> (B,). Layers that no loss depends on smoothly, such as those that end
        segments, have zeros.
        """
        recorder = GateGradientRecorder()
        with torch.enable_grad():
            run = replace(self._run, observers=(recorder,), replacement=replacement)
            total = losses(self.module(tokens, run)).sum()
            layers = attention_layers(self.module)
            contexts = [recorder.contexts[layer.index] for layer in layers]
            slopes = torch.autograd.grad(total, contexts, allow_unused=True, materialize_grads=True)
            if replacement is not None:  # a gate goes from what stands in its place to the context
                pairs = zip(layers, contexts, strict=True)
                contexts = [c - replacement(layer.index, c) for layer, c in pairs]
        products = [(c * s).sum(-1).detach() for c, s in zip(contexts, slopes, strict=True)]
        gates = torch.cat([product.sum(-1) for product in products], 1)
        return gates, torch.cat([product.abs().sum(-1) for product in products], 1)


class BlockAblation:
    """What a block returns where heads are missing from the stream z behind its attention.

    A head's contribution is subtracted: z - c_h W_O^h, where c_h is its context less what takes
    its place, if anything does. The first product of the feed-forward goes
    by heads as well: W LN(z) + b = E z / s + e, where E is W times the norm's weights and without
    the mean, and s the deviation of z. E (z - W_O c) = E z - (E W_O) c, and E W_O is as narrow as a
    head: d / D times less work. off: places of heads that are off in the baseline as well;
    ff_weights: those of head_ff_weights, or None to compute that product as usual.
    """

    def __init__(
        self,
        baseline: BaselinePass,
        block: ResidualBlock,
        off: Sequence[int],
        ff_weights: Tensor | None,
    ) -> None:
        self._block, self._attention, self._ff_weights = block, block.attentions[0], ff_weights
        layer = self._attention.layer.index
        contexts = baseline.contexts[layer]  # (B, H, Q, D)
        places = torch.tensor(sorted(off), dtype=torch.long, device=contexts.device)
        if baseline.replacement is None:
            contexts = contexts.index_fill(1, places, 0.0) if off else contexts
            self._contexts = contexts
        else:
            other = baseline.replacement(layer, contexts)
            contexts = contexts.index_copy(1, places, other[:, places])
            self._contexts = contexts - other
        queries = contexts.shape[2]
        added = self._attention.o(contexts.transpose(1, 2).flatten(2))
        self._z = baseline.inputs[layer][:, :queries] + added  # (B, Q, d)
        if ff_weights is not None:
            norm, first = block.norm_before_ff, block.ff.first
            self._product = F.linear(_subtract_mean(self._z, -1) * norm.weight, first.weight)
            self._shift = F.linear(norm.bias, first.weight, first.bias)  # (d_ff,)
            self._buffer = self._product.new_empty(0, *self._product.shape)

    def without(self, places: Sequence[int]) -> Tensor:
        """The output (V * B, Q, d) without the head at each place."""
        streams = torch.stack([self._stream_without([place]) for place in places])  # (V, B, Q, d)
        hidden = None
        if self._ff_weights is not None:
            hidden = self._first_product(self._ff_weights, places, streams)
        return self._block.finish(streams.flatten(0, 1), hidden)

    def alone(self, places: Sequence[int]) -> Tensor:
        """The output (V * B, Q, d) with the head at each place as the only one."""
        heads = range(self._contexts.shape[1])
        streams = [self._stream_without([h for h in heads if h != place]) for place in places]
        return self._block.finish(torch.cat(streams))

    def _stream_without(self, places: Sequence[int]) -> Tensor:
        """The stream (B, Q, d) without the contribution of some heads."""
        output = self._attention.o.weight.unflatten(1, (-1, self._attention.d_head))  # (d, H, D)
        contexts = self._contexts[:, places].transpose(1, 2).flatten(2)  # (B, Q, h * D)
        return self._z - contexts @ output[:, places].flatten(1).T

    def _first_product(self, ff_weights: Tensor, places: Sequence[int], streams: Tensor) -> Tensor:
        """The first product (V * B, Q, d_ff) of the feed-forward without the head at each place."""
        width, epsilon = streams.shape[-1:], self._block.norm_before_ff.eps
        scales = torch.native_layer_norm(streams, width, None, None, epsilon)[2]  # (V, B, Q, 1)
        if len(self._buffer) < len(places):
            self._buffer = self._product.new_empty(len(places), *self._product.shape)
        products = self._buffer[: len(places)]
        for product, place, scale in zip(products, places, scales, strict=True):
            torch.addcmul(self._shift, self._product, scale, out=product)
            context = (self._contexts[:, place] * scale).flatten(0, 1)  # (B * Q, D)
            product.view(-1, product.shape[-1]).addmm_(context, ff_weights[place].T, alpha=-1)
        return products.flatten(0, 1)


def head_ff_weights(block: ResidualBlock) -> Tensor:
    """(H, d_ff, D): E W_O of each head, see BlockAblation."""
    attention = block.attentions[0]
    output = (
        _subtract_mean(attention.o.weight, 0) * block.norm_before_ff.weight[:, None]
    )  # (d, H * D)
    product = block.ff.first.weight @ output
    return product.unflatten(1, (-1, attention.d_head)).transpose(0, 1).contiguous()


def saves_time(contexts: Tensor, width: int) -> bool:
    """Whether variants of these contexts (B, H, Q, D) save at once what head_ff_weights costs, a
    product of as many rows as the model is wide."""
    texts, heads, queries, _ = contexts.shape
    return texts * heads * queries >= 2 * width


def _subtract_mean(x: Tensor, dim: int) -> Tensor:
    return x - x.mean(dim, keepdim=True)


@dataclass(slots=True)
class HeadPatch(Observer):
    """Gives copy i of a text the context of the head at places[i] of a layer from another run.

    source: the contexts (1, H, Q, D) of the layer in that run.
    """

    layer: int
    places: list[int]
    source: Tensor

    def on_attention(self, call: AttentionCall, context: Tensor) -> Tensor | None:
        """Replace the contexts of the layer."""
        if call.layer != self.layer:
            return None
        patched = context.clone()
        patched[range(len(self.places)), self.places] = self.source[0, self.places]
        return patched


def patch_each(
    module: Network, source: Tokens, text: Tokens, off: HeadSet = frozenset()
) -> Iterator[tuple[tuple[HeadId, ...], Tensor]]:
    """Activation patching: some heads of a layer and logits (V, 1, ...) of a text (1, n), each head
    with its context from a run on source (1, n).

    Every later layer is computed anew, as in the causal tracing of Meng et al. (2022, arXiv
    2202.05262); Wang et al. (2023, arXiv 2211.00593) measure heads by a difference of logits.
    """
    ablation = HeadAblation(module, off)
    clean, baseline = map(ablation.record_everywhere, (source, text))

    def run_of(layer: Layer) -> Callable[[Sequence[int]], Run]:
        require(
            layer.index in clean.contexts,
            f"layer {layer.index} cannot be patched: it computes its context with its own code",
            "Use a model whose attention hgviz computes, such as GPT-2, BERT or Llama",
        )
        require(
            clean.contexts[layer.index].shape == baseline.contexts[layer.index].shape,
            f"layer {layer.index} cannot be patched: the texts have different numbers of segments",
            "Choose texts with equally many segments",
        )

        def run_patched(places: Sequence[int]) -> Run:
            patch = HeadPatch(layer.index, [*places], clean.contexts[layer.index])
            reused = baseline.outputs_before(layer.index, len(places))
            return Run(off, observers=(patch,), reused=reused)

        return run_patched

    return ablation.run_each(text, attention_layers(module), run_of)


# --- a model and its examples ---------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Trials:
    """What a model predicts for examples, and what it predicts with heads off.

    off: heads that are off in the baseline already; streaming: heads that see fewer keys in all
    passes. ablation: what takes the place of a head that is off; another example is drawn with
    seed. blocks: batches in the order of the examples, by the sizes that Examples.blocks takes; a
    score is fair after each block. cache_bytes: memory for what blocks return in baseline passes.
    """

    model: Model
    examples: Examples
    off: HeadSet = frozenset()
    cache_bytes: int = CACHE_BYTES
    sizes: Sequence[int] = ()
    streaming: Streaming = NO_STREAMING
    ablation: Ablation = "zero"
    seed: int = 0

    def __post_init__(self) -> None:
        self.blocks = tuple(map(tuple, self.examples.blocks(self.sizes)))
        whole = self.ablation == "resample"  # of another text every position may be taken
        self._ablation = HeadAblation(self.model.module, self.off, self.streaming, whole)
        self._cache: dict[bytes, tuple[BaselinePass, Predictions]] = {}  # by the rows of a batch
        self._free_bytes = self.cache_bytes

    @cached_property
    def head_costs(self) -> tuple[HeadCost, ...] | None:
        """The weights of one head of each layer; None where they cannot be told apart by heads."""
        return head_costs(self.model.module)

    @property
    def heads(self) -> tuple[HeadId, ...]:
        """The heads that can be switched off, in order of computation."""
        return tuple(head for head in self._ablation.heads if head not in self.off)

    @property
    def batches(self) -> list[Batch]:
        """All batches, block after block."""
        return [batch for block in self.blocks for batch in block]

    def part(self, rows: Integers) -> Trials:
        """The same with these examples alone."""
        examples = self.examples.part(rows)
        return replace(self, examples=examples, cache_bytes=CACHE_BYTES, sizes=())

    def baseline(self, batch: Batch) -> Predictions:
        """Loss and prediction of the baseline."""
        return self._baseline(batch)[1]

    def without(self, batch: Batch, off: Collection[HeadId]) -> Predictions:
        """Loss and prediction with these heads off."""
        if not frozenset(off) - self.off:
            return self.baseline(batch)
        return self._predictions(self._ablation.ablate(self._baseline(batch)[0], off), batch)

    def without_each(
        self, batch: Batch, alone: bool = False
    ) -> Iterator[tuple[HeadId, Predictions]]:
        """Each head, the last layers first, with loss and prediction without it.

        alone: where it is the only head of its layer that is on.
        """
        baseline, _ = self._ablation.baseline(self._tokens(batch), self._replacement(batch))
        for heads, variants in self._ablation.ablate_each(baseline, alone):
            for head, logits in zip(heads, variants, strict=True):
                yield head, self._predictions(logits, batch)

    def contexts(self, batch: Batch) -> list[Floats]:
        """The context (B, H, Q, D) of each layer that attends in the baseline, in order of
        computation; NaN for queries that are padding."""
        return [
            to_numpy(context.float().masked_fill(~real[:, None, :, None], math.nan))
            for _, context, real in self._record_contexts(batch, self._ablation)
        ]

    def _record_contexts(
        self, batch: Batch, ablation: HeadAblation
    ) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Each layer that attends, its contexts (B, H, Q, D) and which queries (B, Q) are real."""
        recorder = ablation.record_everywhere(self._tokens(batch))
        for layer in attention_layers(self.model.module):
            require(
                layer.index in recorder.contexts,
                f"heads of layer {layer.index} can only be set to zero: "
                "the layer computes its context with its own code",
                "Use zero ablation",
            )
            context = recorder.contexts[layer.index]
            real = self._real_queries(batch, layer, context.shape[2])
            yield layer.index, context, real.to(context.device)

    # --- what takes the place of heads that are off -----------------------------------------------

    def _replacement(self, batch: Batch) -> ReplacementContexts | None:
        """What takes the place of heads that are off in the texts of a batch."""
        if self.ablation == "zero":
            return None
        return self._mean_contexts if self.ablation == "mean" else self._partner_contexts(batch)

    @cached_property
    def _full_model(self) -> HeadAblation:
        """The model with all heads on, whose contexts take the place of others."""
        return HeadAblation(self.model.module, streaming=self.streaming)

    @cached_property
    def _mean_contexts(self) -> ReplacementContexts:
        """The mean context of every head over all real queries of all examples."""
        sums: dict[int, Tensor] = {}
        counts = Counter[int]()
        kinds: dict[int, Tensor] = {}  # of what dtype, and where
        for batch in self.batches:
            for layer, context, real in self._record_contexts(batch, self._full_model):
                total = context.transpose(1, 2)[real].cpu().double().sum(0)  # (H, D)
                sums[layer] = sums.get(layer, 0) + total
                counts[layer] += int(real.sum())
                kinds[layer] = context[:0]
        means = {
            layer: (total / counts[layer])[None, None].to(kinds[layer])
            for layer, total in sums.items()
        }
        lengths = {layer: mean.new_ones(1, dtype=torch.long) for layer, mean in means.items()}
        return ReplacementContexts(means, lengths)

    @cached_property
    def _partners(self) -> Integers:
        """(examples,): another example for each, along a circle in random order."""
        require(
            len(self.examples) > 1,
            "resampling needs at least two examples",
            "Use more data, or another ablation",
        )
        order = np.random.default_rng(self.seed).permutation(len(self.examples))
        partners = np.empty_like(order)
        partners[order] = np.roll(order, 1)
        return partners

    def _partner_contexts(self, batch: Batch) -> ReplacementContexts:
        """The contexts of the partner of each text of a batch, real queries first."""
        partners = self._partners[batch.rows]
        by_layer: dict[int, dict[int, Tensor]] = {}  # and by row: (Q', H, D)
        for part in self.examples.batches(np.unique(partners)):
            for layer, context, real in self._record_contexts(part, self._full_model):
                by_row = by_layer.setdefault(layer, {})
                for row, text, keep in zip(part.rows, context.transpose(1, 2), real, strict=True):
                    by_row[int(row)] = text[keep]
        contexts, queries = {}, {}
        for layer, by_row in by_layer.items():
            texts = [by_row[row] for row in partners.tolist()]
            contexts[layer] = pad_sequence(texts, batch_first=True)
            queries[layer] = torch.tensor([*map(len, texts)], device=texts[0].device)
        return ReplacementContexts(contexts, queries)

    def _real_queries(self, batch: Batch, layer: Layer, queries: int) -> Tensor:
        """(B, Q): the queries of a layer with a token that is no padding; all of them where
        segments of tokens differ in length."""
        level = self.model.spec.levels[layer.level]
        text = batch.first if batch.first is not None and level.sequence == "source" else batch
        mask, stride = torch.tensor(text.mask), level.stride or 1
        mask = F.pad(mask, (0, -mask.shape[1] % stride)).unflatten(1, (-1, stride)).any(-1)
        return mask if mask.shape[1] == queries else mask.new_ones(len(mask), queries)

    def gate_gradients(self, batch: Batch) -> tuple[Floats, Floats]:
        """(B, heads) each: the gradient of each text's summed loss by each gate, and the sum over
        tokens of the sizes of its parts, see GateGradients. Raises HgvizError for hidden states."""
        require(
            self.examples.asked != "states",
            "gradient scores are undefined for this model: it outputs hidden states, "
            "and their distance to the full model's has gradient 0 with all heads on",
            "Choose --method loo, all-but-one or shapley",
        )
        wanted = torch.tensor(batch.wanted, device=self.model.device).flatten()

        def losses(logits: Tensor) -> Tensor:
            flat = logits.flatten(0, -2)
            nats = F.cross_entropy(flat, wanted, ignore_index=IGNORE_INDEX, reduction="none")
            return nats.unflatten(0, (len(logits), -1)).sum(1)

        gates, parts = self._ablation.gate_gradients(
            self._tokens(batch), losses, self._replacement(batch)
        )
        return to_numpy(gates.float()), to_numpy(parts.float())

    def require_effect(self) -> None:
        """Raise HgvizError naming a layer whose heads can be switched off without any effect.

        A change anywhere is proof, so the beginning of one text is tried first. Layers that add
        nothing (no heads, or an output matrix of zeros) are passed over.
        """
        tokens = self._tokens(self.blocks[0][0])
        excerpt = tokens.map(lambda x: x[:1]).truncate(EXCERPT)
        if self._ablation.find_unused_layer(excerpt) is None:
            return
        layer = self._ablation.find_unused_layer(tokens)
        require(
            layer is None,
            f"switching off the heads of layer {layer} has no effect: hgviz did not find them",
            "Report this model as a bug",
        )

    @torch.inference_mode()
    def states(self, batch: Batch) -> Tensor:
        """The pooled hidden states (B, d) of the baseline, see pool_states."""
        _, states = self._ablation.baseline(self._tokens(batch), self._replacement(batch))
        return pool_states(states, batch)

    def _baseline(self, batch: Batch) -> tuple[BaselinePass, Predictions]:
        rows = batch.rows.tobytes()
        if rows not in self._cache:
            baseline, logits = self._ablation.baseline(
                self._tokens(batch), self._replacement(batch)
            )
            outputs, replacement = baseline.outputs, baseline.replacement
            baseline = BaselinePass(baseline.tokens)
            size = sum(output.nbytes for output in outputs.values())
            size += 0 if replacement is None else replacement.nbytes
            if size <= self._free_bytes:  # all that a pass with heads off begins with
                baseline = BaselinePass(baseline.tokens, replacement, outputs=outputs)
                self._free_bytes -= size
            self._cache[rows] = baseline, self._predictions(logits, batch)
        baseline, predictions = self._cache[rows]
        if baseline.replacement is None:
            baseline = replace(baseline, replacement=self._replacement(batch))
        return baseline, predictions

    def _predictions(self, outputs: Tensor, batch: Batch) -> Predictions:
        if self.examples.asked == "states":
            states = pool_states(outputs, batch)
            distances, nearest = nearest_states(states, self._baseline_states, batch)
            return distances, self.examples.wanted[nearest]
        if self.examples.asked == "ends":  # no answer begins or ends in padding
            keep = torch.tensor(batch.mask, device=outputs.device)[:, None]
            outputs = outputs.masked_fill(~keep, torch.finfo(outputs.dtype).min)
        return predictions_of(outputs, batch)

    @cached_property
    def _baseline_states(self) -> Tensor:
        """(examples, d) The pooled states of the baseline for each example."""
        states: dict[int, Tensor] = {}
        for batch in self.batches:
            states |= dict(zip(batch.rows.tolist(), self.states(batch), strict=True))
        return torch.stack([states[row] for row in range(len(self.examples))])

    def _tokens(self, batch: Batch) -> Tokens:
        dtype = next(self.model.module.parameters()).dtype
        return batch_tokens(batch, self.model.device, dtype)


def pool_states(states: Tensor, batch: Batch) -> Tensor:
    """(B, d) of unit length: the mean of states (B, n, d) over real tokens, as sentence encoders
    are read (Reimers and Gurevych 2019), or states (B, d) themselves; float64."""
    pooled = states.double()
    if pooled.ndim == 3:
        keep = torch.tensor(batch.mask, device=states.device)[..., None].to(pooled)
        if keep.shape[1] != pooled.shape[1]:  # positions of several tokens
            keep = torch.ones_like(pooled[..., :1])
        pooled = (pooled * keep).sum(1) / keep.sum(1)
    return F.normalize(pooled, dim=-1)


def nearest_states(states: Tensor, baseline: Tensor, batch: Batch) -> Predictions:
    """How far pooled states (B, d) moved, 1 - cosine to their own baseline state, and which example
    has the nearest baseline state (examples, d)."""
    cosines = states @ baseline.mT
    own = torch.tensor(batch.rows, device=states.device)
    unmoved = cosines.gather(1, own[:, None])[:, 0]
    # of texts that are alike, a text is its own nearest
    is_nearest = unmoved >= cosines.max(1).values - EQUAL_COSINES
    nearest = torch.where(is_nearest, own, cosines.argmax(1))
    return to_numpy((1 - unmoved).clamp(min=0).float()), to_numpy(nearest)


@torch.inference_mode()
def predictions_of(logits: Tensor, batch: Batch) -> Predictions:
    """Losses in nats and likeliest answers at the places of a batch; logits (B, classes),
    (B, n, vocabulary), or (B, 2, n) of where answers begin and end."""
    asked = torch.tensor(batch.asked, device=logits.device)
    wanted = torch.tensor(batch.wanted[batch.asked], device=logits.device)
    rows = logits[asked]  # (places, answers)
    size = max(1, LOGITS // rows.shape[-1])
    losses, answers = [], []
    for part, right in zip(rows.split(size), wanted.split(size), strict=True):
        losses.append(F.cross_entropy(part.double(), right, reduction="none"))
        answers.append(part.argmax(-1))
    return to_numpy(torch.cat(losses).float()), to_numpy(torch.cat(answers))
