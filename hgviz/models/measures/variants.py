"""One model with other heads switched off, over and over, on the same texts: exact and fast.

A pass of the whole model leaves its parts behind (Known). A variant starts at its first layer with
a head off, takes what heads give there from the whole pass, goes through the layers after it side
by side with other variants, and is read out only where the answer is read. Shapes: B batch, V
variants, H heads, Q queries, D head width, d width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgviz.core import NO_STREAMING, HeadId, HgvizError, Layer, Off, Streaming
from hgviz.models.blocks import Attention, Fed, Known, Network, Pass, Tokens, repeated

MOST_TOKENS = 1024  # of all variants that go through the layers side by side: what caches hold


@dataclass(frozen=True, slots=True)
class Whole:
    """A pass of the whole model over some texts, and what it leaves to its variants."""

    tokens: Tokens
    known: Known


def attentions(module: Network) -> list[Attention]:
    """What attends, in order of computation."""
    found = {part.layer.index: part for part in module.modules() if isinstance(part, Attention)}
    return [found[index] for index in sorted(found)]


def gates_of(module: Network, texts: int) -> dict[int, Tensor]:
    """Open gates of all heads by layer, (texts, H) each, that slopes can be taken of."""
    kind = next(module.parameters())
    return {
        one.index: torch.ones(
            texts, len(one.heads), dtype=kind.dtype, device=kind.device
        ).requires_grad_()
        for one in layers_of(module)
    }


def layers_of(module: Network) -> tuple[Layer, ...]:
    """What attends, in order of computation; () of a model that does not."""
    return tuple(getattr(module.config, "layers", ()))


@dataclass(frozen=True, slots=True)
class Projected:
    """A layer of a model that is not hgviz's own: what heads give goes through o, d_head each."""

    layer: Layer
    o: nn.Linear
    d_head: int


def projections(module: Network) -> Sequence[Attention | Projected]:
    """Every layer that has heads, with the product behind them. Errors: HgvizError for a model
    whose products hgviz did not see."""
    own = attentions(module) or getattr(module, "projected", list)()
    known = {one.layer.index for one in own}
    for layer in layers_of(module):
        if layer.heads and layer.index not in known:
            raise HgvizError(
                f"layer {layer.index} of this model cannot be followed back",
                "hgviz did not see what its heads are put together by",
                "Choose another",
            )
    return [one for one in own if one.layer.heads]


def variants_of(
    module: Network, off: Off = frozenset(), streaming: Streaming = NO_STREAMING
) -> Variants:
    """A model and any of its heads off, by what of a pass it lets be known."""
    return (Variants if attentions(module) else Gated)(module, off, streaming)


class Variants:
    """A model, and any of its heads off.

    Everything here runs without gradients but `slopes`, which has them for gates alone.
    """

    def __init__(
        self, module: Network, off: Off = frozenset(), streaming: Streaming = NO_STREAMING
    ) -> None:
        self.module, self.off = module, off
        self._run = Pass(off, readout=not streaming.heads, streaming=streaming)
        self._attentions = attentions(module)
        fed: list[Fed | None] = [getattr(part, "fed", None) for part in module.modules()]
        self._fed = {one.layer: one for one in fed if one is not None}
        self._narrow: dict[int, Tensor] = {}  # of feed-forwards, as made
        _keep_what_is_freed()

    @property
    def heads(self) -> tuple[HeadId, ...]:
        """Every head of the model, in order of computation."""
        return tuple(
            HeadId(one.index, head) for one in layers_of(self.module) for head in one.heads
        )

    @torch.inference_mode()
    def whole(self, tokens: Tokens) -> tuple[Whole, Tensor]:
        """The model as it is, heads of `off` off; logits (B, classes) or (B, n, vocabulary)."""
        known = Known()
        logits = self._logits(tokens, replace(self._run, record=known))
        return Whole(tokens, known), logits

    @torch.inference_mode()
    def without(self, whole: Whole, off: Collection[HeadId]) -> Tensor:
        """Logits with more heads off, from the first block on that has one of them."""
        wanted = frozenset(off) | self.off
        first = min(wanted - self.off, default=HeadId(len(layers_of(self.module)), 0)).layer
        known = Known({last: one for last, one in whole.known.outputs.items() if last < first})
        return self._logits(whole.tokens, replace(self._run, off=wanted, known=known))

    @torch.inference_mode()
    def one_by_one(
        self, whole: Whole, alone: bool = False
    ) -> Iterator[tuple[tuple[HeadId, ...], Tensor]]:
        """Logits (V, B, ...) with each head off by itself, a few of a layer at a time.

        alone: with all others of its layer off instead. The last layers come first: they are
        nearly free.
        """
        size = max(1, MOST_TOKENS // max(1, _size(whole.tokens)))
        for attention in reversed(self._attentions):
            layer = attention.layer.index
            heads = [head for head in attention.layer.heads if HeadId(layer, head) not in self.off]
            begun = None if alone else self._begun(whole, attention)
            for start in range(0, len(heads), size):
                some = heads[start : start + size]
                off = [[one for one in heads if one != head] if alone else [head] for head in some]
                attended = self._attended(whole, attention, off)
                known = self._known(whole, layer, attended, len(some))
                if begun is not None:
                    places = [attention.layer.heads.index(head) for head in some]
                    known.hidden[layer] = begun.without(places, attended)
                run = replace(self._run, known=known)
                logits = self._logits(times_of(whole.tokens, len(some)), run)
                yield (
                    tuple(HeadId(layer, head) for head in some),
                    logits.unflatten(0, (len(some), -1)),
                )

    def without_effect(self, tokens: Tokens) -> int | None:
        """The first layer with heads, and weights that use them, whose absence changes no logit."""
        whole, logits = self.whole(tokens)
        for layer in layers_of(self.module):
            heads = {HeadId(layer.index, head) for head in layer.heads} - self.off
            used = heads and self._uses(layer)
            if used and torch.equal(self.without(whole, heads), logits):
                return layer.index
        return None

    def _uses(self, layer: Layer) -> bool:
        """Whether the weights of a layer use its heads."""
        one = next(one for one in self._attentions if one.layer.index == layer.index)
        return bool(one.o.weight.any()) and bool(one.v.weight.any())

    def _logits(self, tokens: Tokens, run: Pass) -> Tensor:
        return self.module(tokens, run)

    def _attended(self, whole: Whole, attention: Attention, off: Sequence[Sequence[int]]) -> Tensor:
        """(V * B, Q, d): what a layer gives with heads off, from what it gave: c W_O taken away."""
        layer, known, width = attention.layer.index, whole.known, attention.d_head
        contexts, given = known.contexts[layer], known.attended[layer]  # (B, H, Q, D), (B, Q, d)
        output = attention.o.weight.unflatten(1, (-1, width))  # (d, H, D)
        parts = []
        for heads in off:
            places = [attention.layer.heads.index(head) for head in heads]
            gone = contexts[:, places].transpose(1, 2).flatten(2)  # (B, Q, h * D)
            parts.append(given - gone @ output[:, places].flatten(1).T)
        return torch.cat(parts)

    def _known(self, whole: Whole, first: int, attended: Tensor, times: int) -> Known:
        """What of the whole pass holds before the first layer that differs, and there."""
        outputs = {last: one for last, one in whole.known.outputs.items() if last < first}
        # layers of the same block that come before it
        between = range(max(outputs, default=-1) + 1, first)
        same = {layer: repeated(whole.known.attended[layer], times) for layer in between}
        parts = {**same, first: attended}
        return Known(outputs, parts, times=times, copies=whole.known.copies)

    def _begun(self, whole: Whole, attention: Attention) -> Begun | None:
        """The feed-forward after a layer, begun; None where none follows or it does not pay."""
        layer, known = attention.layer.index, whole.known
        fed, contexts = self._fed.get(layer), known.contexts[layer]
        if fed is None or attention.o.weight.dtype.itemsize < 4:
            return None
        if layer not in self._narrow:
            if not _pays(contexts, attention.o.out_features):
                return None
            self._narrow[layer] = narrow(fed, attention)
        given = known.attended[layer]
        return Begun(fed, self._narrow[layer], contexts, given, known.sums[layer])

    # --- gradients --------------------------------------------------------------------------------

    def slopes(self, tokens: Tokens, losses: Callable[[Tensor], Tensor]) -> Slopes:
        """How each text's loss changes with the gate of each head, at gates of 1.

        One pass and its way back (Michel et al. 2019, eq. 2, before the absolute value); losses
        (logits) -> (B,). Layers that no loss depends on by a slope, as those that cut a text, have
        zeros.
        """
        known, gates = Known(), gates_of(self.module, _texts(tokens))
        with torch.enable_grad():
            run = replace(self._run, gates=gates, record=known)
            total = losses(self._logits(tokens, run)).sum()
            contexts = [known.contexts[layer] for layer in gates]  # (B, H, Q, D)
            slopes = torch.autograd.grad(total, contexts, allow_unused=True, materialize_grads=True)
        each = [(c * s).sum(-1).detach() for c, s in zip(contexts, slopes, strict=True)]
        return Slopes(
            torch.cat([one.sum(-1) for one in each], 1),
            torch.cat([one.abs().sum(-1) for one in each], 1),
        )


class Gated(Variants):
    """The same of a model whose layers are not hgviz's own: heads are gated where they give their
    part, and blocks before the first that has one of them give what they gave (Pass.known)."""

    @torch.inference_mode()
    def one_by_one(
        self, whole: Whole, alone: bool = False
    ) -> Iterator[tuple[tuple[HeadId, ...], Tensor]]:
        """As Variants."""
        size = max(1, MOST_TOKENS // max(1, _size(whole.tokens)))
        kind, texts = next(self.module.parameters()), _texts(whole.tokens)
        for layer in reversed(layers_of(self.module)):
            heads = [head for head in layer.heads if HeadId(layer.index, head) not in self.off]
            outputs = {last: one for last, one in whole.known.outputs.items() if last < layer.index}
            for start in range(0, len(heads), size):
                some = heads[start : start + size]
                gates = torch.full((len(some), len(layer.heads)), 0.0 if alone else 1.0)
                for row, head in enumerate(some):
                    gates[row, layer.heads.index(head)] = 1.0 if alone else 0.0
                each = gates.to(kind).repeat_interleave(texts, 0)
                known = Known(outputs, times=len(some), copies=whole.known.copies)
                run = replace(self._run, gates={layer.index: each}, known=known)
                logits = self._logits(times_of(whole.tokens, len(some)), run)
                yield (
                    tuple(HeadId(layer.index, head) for head in some),
                    logits.unflatten(0, (len(some), -1)),
                )

    def _uses(self, layer: Layer) -> bool:
        """Whether a text has to show it: not where it only cuts the text, nor where a later layer
        looks down from the same positions anew."""
        later = [one for one in layers_of(self.module) if one.index > layer.index]
        anew = [one.role for one in later if one.level == layer.level]
        return not (layer.cuts or (layer.role == "down" and "down" in anew))


class Begun:
    """The first product of a feed-forward where a head is missing from the stream z before it.

    W LN(z) + b = E z / s + e, where E is W, the norm's weights and the mean taken away in one, s
    the deviation of z. E (z - W_O c) = E z - (E W_O) c, and E W_O is as narrow as a head: d / D
    times less work.
    """

    def __init__(
        self, fed: Fed, narrow: Tensor, contexts: Tensor, given: Tensor, z: Tensor
    ) -> None:
        first = fed.ff.first
        self._norm, self._narrow, self._contexts = fed.norm, narrow, contexts
        self._rest = z - given  # (B, Q, d)
        self._whole = F.linear(_centred(z, -1) * fed.norm.weight, first.weight)  # (B, Q, d_ff)
        self._shift = F.linear(fed.norm.bias, first.weight, first.bias)  # (d_ff,)
        self._found: Tensor | None = None  # written anew for each few variants

    def without(self, places: Sequence[int], attended: Tensor) -> Tensor:
        """(V * B, Q, d_ff) without the head at each place, given what the layer gives then."""
        streams = attended.unflatten(0, (len(places), -1)) + self._rest  # (V, B, Q, d)
        width, epsilon = streams.shape[-1:], self._norm.eps
        scales = torch.native_layer_norm(streams, width, None, None, epsilon)[2]  # (V, B, Q, 1)
        if self._found is None or len(self._found) < len(places):
            self._found = self._whole.new_empty(len(places), *self._whole.shape)
        found = self._found[: len(places)]
        for out, place, scale in zip(found, places, scales, strict=True):
            torch.addcmul(self._shift, self._whole, scale, out=out)
            context = (self._contexts[:, place] * scale).flatten(0, 1)  # (B * Q, D)
            out.view(-1, out.shape[-1]).addmm_(context, self._narrow[place].T, alpha=-1)
        return found.flatten(0, 1)


def _keep_what_is_freed() -> None:
    """Let glibc's malloc keep large blocks for the next product, which fit into 32 MiB.

    It hands what is freed back to the system, to be faulted in again page by page, which took a
    tenth of the time here, up to the size of the largest block it has seen freed.
    """
    torch.empty(31 << 20, dtype=torch.uint8)


def narrow(fed: Fed, attention: Attention) -> Tensor:
    """(H, d_ff, D): E W_O of each head, see Begun."""
    output = _centred(attention.o.weight, 0) * fed.norm.weight[:, None]  # (d, H * D)
    found = fed.ff.first.weight @ output
    return found.unflatten(1, (-1, attention.d_head)).transpose(0, 1).contiguous()


def _pays(contexts: Tensor, width: int) -> bool:
    """Whether variants save at once what `narrow` takes, a product of as many rows as the width."""
    texts, heads, queries, _ = contexts.shape
    return texts * heads * queries >= 2 * width


def _centred(x: Tensor, dim: int) -> Tensor:
    return x - x.mean(dim, keepdim=True)


@dataclass(frozen=True, slots=True)
class Slopes:
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


def times_of(tokens: Tokens, times: int) -> Tokens:
    """All texts so many times, one copy after the other."""
    if times == 1:
        return tokens

    def of(part: Tensor | None) -> Tensor | None:
        return None if part is None else repeated(part, times)

    source = None if tokens.source is None else times_of(tokens.source, times)
    return replace(
        tokens, ids=of(tokens.ids), keep=of(tokens.keep), segments=of(tokens.segments),
        states=of(tokens.states), source=source, boundaries=of(tokens.boundaries),
        signal=of(tokens.signal), positions=of(tokens.positions),
    )  # fmt: skip
