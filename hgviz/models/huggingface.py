"""Any attending model of the package transformers, by the one function here that attends.

transformers asks a registered function for the context of every layer (its AttentionInterface) and
another for every mask. Ours for masks makes none: a `Mask` says the rule, and turns into numbers
only where model code computes with it. Ours for attention reads that rule and calls `attend`, so
that heads go off, activations are exchanged and captures are kept as in hgviz's own models. What a
Rule cannot say is weighed here, and its weights are kept.

Layers are found by a short pass: whatever asks for attention is one, in order of computation.
transformers is imported when a model is opened, and never reaches for a hub.

Shapes: B batch, H heads, G groups of keys, Q queries, K keys, D head width.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from hgviz.core import Floats, HgvizError, Modality
from hgviz.files import first_line, printable
from hgviz.maps.rule import Diagonals, Rule
from hgviz.models import differential, longformer
from hgviz.models.attention import expand_key_groups, head_groups, to_numpy, weigh
from hgviz.models.devices import out_of_memory
from hgviz.models.differential import Difference, difference_of
from hgviz.models.layers import ExternalLayer, Network, Tokens, as_tokens, value_norms_of
from hgviz.models.masks import Mask, MaskRule, mask, seen
from hgviz.models.patches import PatchBoundaries, boundaries_of, install_boundaries
from hgviz.models.pretrained_config import RemainingHeads, TransformersConfig
from hgviz.models.run import Run, WeightedCall

NAME = "hgviz"  # of our functions, where transformers looks them up
SOURCE, TARGET = 5, 3  # tokens of the short pass: by their lengths the two texts are told apart
MOST_PLACES = 1 << 24  # positions that may be given where no table bounds them
SAMPLES = 8000  # of a sound of the short pass
RESCALED = ("dynamic", "longrope")  # rotary angles of early tokens that depend on later ones
SOFTMAXES = {F.softmax, torch.softmax, Tensor.softmax}
MODALITIES: dict[str, Modality] = {  # by what a class calls such an input
    "pixel_values": "image", "input_values": "audio", "input_features": "audio",
}  # fmt: skip
PAIRS = (
    ("start_logits", "end_logits"), ("image_embeds", "text_embeds"), ("audio_embeds", "text_embeds")
)  # fmt: skip
OTHERWISE = "it attends to short texts otherwise than to long ones"
SUBTRACTS = "the map of its heads is the difference of two softmaxes"
CRITICAL = 50  # of logging: nothing below is said
CAPTURE_ADVICE = (  # for a model that hgviz cannot run
    "To look at its attention, run it yourself and write its queries and keys with "
    "hgviz.store.write_capture"
)


# --- attention ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """What a layer asked for: q (B, H, Q, D), k and v (B, G, K, D), the rule they meet by, and
    keep (B, K) and bias of it. added: what is added to scores that no rule can say; sinks
    (B, H, Q, 1): logits of every query that have no key, where they are not those of a head;
    others: the tokens that see by projections of their own; difference: of q and k of two softmaxes
    side by side, how the second is subtracted."""

    q: Tensor
    k: Tensor
    v: Tensor
    rule: Rule
    keep: Tensor | None = None
    bias: Diagonals | None = None
    added: Tensor | None = None
    sinks: Tensor | None = None
    others: longformer.Global | None = None
    difference: Difference | None = None

    def part(self, queries: int, keys: int) -> Call:
        """The first so many queries and keys."""
        if (queries, keys) == (self.q.shape[2], self.k.shape[2]):
            return self
        return replace(
            self, q=self.q[:, :, :queries], k=self.k[:, :, :keys], v=self.v[:, :, :keys],
            keep=None if self.keep is None else self.keep[:, :keys],
            added=None if self.added is None else self.added[..., :queries, :keys],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """A layer that the short pass met: how many heads it has, in so many groups of keys, of so many
    queries and keys, for each of so many inputs."""

    batch: int
    heads: int
    groups: int
    queries: int
    keys: int
    causal: bool


# of a layer: its module, q, k, v and sinks -> the context it is to give, None for its own
Watch = Callable[[int, nn.Module, Tensor, Tensor, Tensor, Tensor | None], Tensor | None]


@dataclass(slots=True)
class Running:
    """One pass: what is asked of it, and how far it is. on_layer: called with the number of each
    layer that has attended. kept: what is left of each layer, () of a whole model; watch: who sees
    what a layer asks with. cached: whether its tokens follow others, or may be followed."""

    network: Transformers | None = None
    run: Run = field(default_factory=Run)
    cached: bool = False
    on_layer: Callable[[int], None] = lambda index: None
    met: list[Found] | None = None  # of the short pass
    kept: Sequence[RemainingHeads] = ()
    watch: Watch | None = None
    texts: int = 1  # side by side
    cut: PatchBoundaries | None = None  # into patches
    lengths: tuple[int, ...] = ()  # tokens of a text, by level
    given: int = 0  # numbers that the heads of the last layer gave, until they are multiplied
    count: int = 0  # layers so far
    calls: int = 0  # the same, and what attends to no text

    def layer(self, queries: int, keys: int) -> int | None:
        """The number of the layer that attends now; None where it attends to no text.

        Errors: HgvizError for another one than in the short pass.
        """
        call, index = self.calls, self.count
        self.calls += 1
        if self.network is not None:
            config = self.network.config
            if call in config.skipped_calls:
                return None
            one = config.own_layers[index] if index < len(config.own_layers) else None
            levels = () if one is None else (one.level, one.key_level)
            if self.cut is not None and self.cut.ends is not None:
                self.lengths = self.cut.sizes(with_open_patch=True)
            sizes = tuple(self.lengths[level] for level in levels)
            if not self.cached and sizes != (queries, keys):
                raise unseen(config.family, OTHERWISE)
        self.count += 1
        return index

    def positions(self, index: int) -> tuple[int, int] | None:
        """How many queries and keys of a layer are positions of its levels, where others are
        patches that nothing closed."""
        if self.network is None or self.cut is None or self.cut.ends is None:
            return None
        one, sizes = self.network.config.own_layers[index], self.cut.sizes(with_open_patch=False)
        return sizes[one.level], sizes[one.key_level]

    def heads(self, index: int) -> Sequence[int] | None:
        """The numbers of the heads that are left of a layer; None of a whole model."""
        return self.kept[index].heads if self.kept else None


_running: ContextVar[Running | None] = ContextVar("running", default=None)


@contextlib.contextmanager
def _pass(running: Running) -> Iterator[None]:
    before = _running.set(running)
    try:
        yield
    finally:
        _running.reset(before)


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | MaskRule | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    position_bias: Tensor | None = None,
    s_aux: Tensor | None = None,
    is_causal: bool | None = None,
    others: longformer.Global | None = None,
    difference: Difference | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """The registered function for attention: context (B, Q, H, D), and no weights."""
    sinks = more.get("sinks") if s_aux is None else s_aux
    running = _running.get() or Running()
    if running.cached and {"indices", "block_indices"} & more.keys():
        raise unseen(type(module).__name__, "an indexer chooses among keys that a cache has")
    attention_mask = _chosen(module, query, key, attention_mask, more)
    index = running.layer(query.shape[2], key.shape[2])
    if running.watch is not None and index is not None:
        told = running.watch(index, module, query, key, value, sinks)
        if told is not None:
            return told, None
    computed = query.shape[1]
    if index is not None and index < len(running.kept):
        query, key, value, position_bias, sinks = _left(
            running.kept[index], query, key, value, position_bias, sinks
        )
        others = others and others.left(running.kept[index].heads)
    call = _call(
        query, key, value, attention_mask, scaling, softcap, position_bias, sinks,
        zeros=type(module).__name__ == longformer.MODULE,
    )  # fmt: skip
    if others is not None:
        call = replace(call, added=others.seen, others=others)
    if difference is not None:
        call = replace(call, added=query.new_zeros(()), difference=difference)
    if index is None:
        return _laid_out(_attended(call, 0, Running(), None), computed), None
    if running.met is not None:
        batch, heads, queries = call.q.shape[:3]
        groups, keys = call.k.shape[1:3]
        running.met.append(Found(batch, heads, groups, queries, keys, call.rule.causal))
    if running.network is not None:
        call = replace(call, rule=running.network.ruled(index, call.rule))
    projections = () if running.network is None else running.network.projections
    out = projections[index] if index < len(projections) else None
    context = _attended(call, index, running, out)
    running.on_layer(index)
    found = _laid_out(context, computed)
    running.given = found.numel()
    return found, None


def _laid_out(context: Tensor, computed: int) -> Tensor:
    """(B, H, Q, D) -> (B, Q, H, D), with zeros that a layer without heads computes with."""
    if context.shape[1] < computed:
        context = F.pad(context, (0, 0, 0, 0, 0, computed - context.shape[1]))
    return context.transpose(1, 2).contiguous()


def banded(
    module: Any,
    hidden_states: Tensor,
    attention_mask: Tensor,
    is_index_masked: Tensor | None = None,
    is_index_global_attn: Tensor | None = None,
    is_global_attn: bool = False,
    output_attentions: bool = False,
) -> tuple[Tensor]:
    """A Longformer's layer in place of its own code: hidden_states (B, m, d), which padding has
    made longer than the text; attention_mask (B, m): below 0 where a token is padding."""
    running, padded = _running.get() or Running(), hidden_states.shape[1]
    length = running.lengths[0] if running.lengths else padded

    def heads(product: nn.Module) -> Tensor:
        found: Tensor = product(hidden_states[:, :length])
        return found.unflatten(-1, (-1, module.head_dim)).transpose(1, 2)

    band, others = int(module.one_sided_attn_window_size), None
    if is_global_attn:
        assert is_index_global_attn is not None
        others = longformer.Global(
            is_index_global_attn[:, :length], heads(module.query_global),
            heads(module.key_global), heads(module.value_global), band,
        )  # fmt: skip
    keep = attention_mask[:, :length] >= 0
    rule = MaskRule(band=None if others else (band, band), keep=keep)
    context, _ = attention(
        module, heads(module.query), heads(module.key), heads(module.value), rule, others=others
    )
    found = F.pad(context.flatten(2), (0, 0, 0, padded - length))
    running.given = found.numel()
    return (found,)


def differential_forward(
    module: Any,
    hidden_states: Tensor,
    position_embeddings: tuple[Tensor, Tensor],
    attention_mask: Tensor | None = None,
    past_key_values: Any = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """A layer of differential attention in place of its own code: hidden_states (B, n, d)."""
    q, k, v = differential.projected(module, hidden_states, position_embeddings, past_key_values)
    context, _ = attention(
        module, q, k, v, attention_mask, module.scaling, difference=difference_of(module), **more
    )
    found: Tensor = module.o_proj(context.flatten(2))
    return found, None


def _left(
    kept: RemainingHeads, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, sinks: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """What the heads that are left of a layer ask with, each with keys of its own where groups have
    unequally many, and their part of biases that are those of the whole layer.

    Errors: HgvizError where the layer computes other heads.
    """
    if (q.shape[1], k.shape[1]) != kept.sizes:
        words = "{} heads in {} groups of keys"
        raise HgvizError(
            "the heads that config.json says are left do not fit the weights: "
            f"{printable(kept.name)} has {words.format(q.shape[1], k.shape[1])}, and "
            f"{words.format(*kept.sizes)} by config.json",
            "Put the config.json beside them that came with these weights",
        )
    count = len(kept.heads)
    if bias is not None and bias.shape[1] not in (count, kept.of):  # zeros of a narrower layer
        bias = bias[:, :1].expand(-1, kept.of, -1, -1)
    if bias is not None and bias.shape[1] != count:
        bias = bias[:, list(kept.heads)]
    if not kept.is_even or not count:
        k, v = k[:, kept.keys], v[:, kept.keys]
    return q[:, :count], k, v, bias, None if sinks is None else sinks[:count]


def _chosen(
    module: nn.Module,
    q: Tensor,
    k: Tensor,
    mask: Tensor | MaskRule | None,
    more: Mapping[str, Any],
) -> Tensor | MaskRule | None:
    """A mask without the keys that an indexer left out, which eager code of models takes out of it
    before it attends; indices (B, Q, n) of single keys, block_indices of blocks of them."""
    keys, blocks = more.get("indices"), more.get("block_indices")
    if blocks is not None:
        places = more.get("position_ids")
        if places is None:
            places = torch.arange(k.shape[2] - q.shape[2], k.shape[2], device=q.device)[None]
        build: Any = module.indexer.build_block_mask  # type: ignore[union-attr]
        found: Tensor = build(blocks, mask, k.shape[2], q.dtype, q.device, places)
        return found
    if keys is None or keys.shape[-1] >= k.shape[2]:
        return mask
    left = keys.new_ones((*keys.shape[:2], k.shape[2]), dtype=torch.bool)
    left = left.scatter(-1, keys.long(), False)[:, None]
    assert isinstance(mask, Tensor)
    return mask.masked_fill(left, torch.finfo(q.dtype).min)


def _call(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | MaskRule | None,
    scaling: float | None,
    softcap: float | None,
    position_bias: Tensor | None,
    sinks: Tensor | None,
    zeros: bool = False,
) -> Call:
    """zeros: rows that see no key are 0."""
    heads, queries, keys = q.shape[1], q.shape[2], k.shape[2]
    scale = q.shape[-1] ** -0.5 if scaling is None else float(scaling)
    found: MaskRule | None = MaskRule()
    if isinstance(mask, MaskRule):
        found = mask
    elif isinstance(mask, Mask):
        found = mask.rule
    elif mask is not None:
        found = seen(mask)
    added = None
    if found is None or (queries != keys and (found.band or found.chunk)):
        assert isinstance(mask, Tensor)
        found, added = MaskRule(), mask.numbers() if isinstance(mask, Mask) else mask
    bias = None
    if position_bias is not None:
        line = diagonals(position_bias) if added is None else None
        if line is None:
            added = position_bias if added is None else added + position_bias
        elif line.any():
            bias = Diagonals((line / scale).to(q.dtype), 1 - queries)
    each = sinks if sinks is not None and sinks.numel() > heads else None
    if each is not None and added is None:
        added = q.new_zeros(())
    keep = None if found.keep is None or bool(found.keep.all()) else found.keep
    band = found.band
    if band is not None:  # as wide as the text at most
        band = min(band[0], keys), min(band[1], keys)
        band = None if found.causal and band[0] >= keys else (band[0], 0) if found.causal else band
    # masks of transformers are large negative numbers: a row that sees no key has the mean of all,
    # unless a sink takes it, or the model's own code sets it to 0
    uniform = keep is not None and sinks is None and not zeros
    rule = Rule(
        scale, ("softmax",) * heads, (None,) * heads, causal=found.causal, band=band,
        chunk=found.chunk, softcap=softcap, empty_rows="uniform" if uniform else "zeros",
        sinks=None if sinks is None or each is not None
        else to_numpy(sinks.detach().float().reshape(-1)),
    )  # fmt: skip
    return Call(q, k, v, rule, keep, bias, added, each)


def diagonals(bias: Tensor) -> Tensor | None:
    """(H, Q + K - 1) The numbers of a bias (1, H, Q, K) by distance from 1 - Q on, where it says
    no more than that; else None."""
    if bias.dim() != 4 or len(bias) != 1:
        return None
    queries, keys = bias.shape[-2:]
    line = torch.cat([bias[0, :, :, 0].flip(-1), bias[0, :, 0, 1:]], -1)
    for row in range(queries):
        start = queries - 1 - row
        if not torch.equal(line[:, start : start + keys], bias[0, :, row]):
            return None
    return line


def _attended(call: Call, index: int, running: Running, out: nn.Linear | None) -> Tensor:
    """Context (B, H, Q, D) of a call, as it goes on; out: what it goes through then."""
    run, heads = running.run, call.q.shape[1]
    if out is not None and out.in_features != heads * call.v.shape[-1]:
        out = None
    length = running.positions(index)
    if call.added is None:
        return run.attend(
            index, call.q, call.k, call.v, call.rule, heads=running.heads(index), keep=call.keep,
            relative=call.bias, output=out, length=length,
        )  # fmt: skip
    if run.streaming.places(index, running.heads(index) or range(heads)):
        why = "its model adds numbers to scores that no mask says"
        raise unstreamed(index, SUBTRACTS if call.difference is not None else why)
    weights = dense(call)
    context = weights @ expand_key_groups(call.v, heads)
    if call.others is not None:
        weights, context = call.others.over(weights, context, call.keep, call.rule.scale)
    signed = call.difference is not None
    if call.difference is not None:
        context, out = call.difference.norm(context), None  # no value norm is that of a weight
    real = call
    if length is not None and run.observers:
        real = call.part(*length)
        weights = weights if real is call else dense(real)
    seen = WeightedCall(index, weights, signed, signed and call.rule.causal, real.v, out)
    return run.apply_weighted(seen, context, running.heads(index))


def dense(call: Call) -> Tensor:
    """The weights (B, H, Q, K) of a softmax whose scores have something added that no rule says."""
    if any(name != "softmax" for name in call.rule.activations):
        why = "its model adds numbers to every score that no other activation knows"
        raise unexchanged(SUBTRACTS if call.difference is not None else why)
    if call.difference is not None:
        halves = zip(call.q.chunk(2, -1), call.k.chunk(2, -1), strict=True)
        one, other = (dense(replace(call, q=q, k=k, difference=None)) for q, k in halves)
        return one - call.difference.share * other
    if not call.q.shape[1]:  # of a layer all of whose heads are gone
        return call.q.new_zeros(*call.q.shape[:3], call.k.shape[2])
    (same,) = head_groups(call.q, expand_key_groups(call.k, call.q.shape[1]), call.rule)
    scores, seen = same.scores(torch.arange(call.q.shape[2], device=call.q.device), call.keep)
    exact, lowest = scores.to(torch.promote_types(scores.dtype, torch.float32)), -1e30
    exact = exact.masked_fill(~seen, lowest)
    assert call.added is not None
    if call.added.dtype == torch.bool:
        exact = exact.masked_fill(~call.added, lowest)
    else:
        exact = (exact + call.added.to(exact.dtype)).clamp(min=lowest)
    sinks = same.sinks if call.sinks is None else call.sinks
    return weigh(exact, None, "softmax", sinks=sinks).to(call.q.dtype)


def unstreamed(layer: int, why: str) -> HgvizError:
    """Why the heads of a layer see all they see."""
    return HgvizError(f"heads of layer {layer} cannot stream: {why}", "Name heads of other layers")


def unexchanged(why: str) -> HgvizError:
    """Why a layer keeps its softmax."""
    return HgvizError(
        f"the activation of this layer cannot be exchanged: {why}", "Exchange that of another model"
    )


class Softmaxes(TorchFunctionMode):
    """Sees the softmaxes (B, H, Q, K) or (B * H, Q, K) of a model that has attention code of its
    own: keeps their weights, and switches heads off where they weigh."""

    def __init__(self, running: Running) -> None:
        super().__init__()
        self.running = running

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        along = (kwargs or {}).get("dim", args[1] if len(args) > 1 else None)
        if func not in SOFTMAXES or not isinstance(found, Tensor):
            return found
        if found.shape[-1] < 2 and 1 not in self.running.lengths:
            return found
        if found.dim() == 4 and along in (-1, 3):
            return self._seen(found)
        heads, rest = divmod(len(found), self.running.texts)
        if found.dim() == 3 and along in (-1, 2) and heads > 1 and not rest:
            return self._seen(found.unflatten(0, (-1, heads))).flatten(0, 1)
        return found

    def _seen(self, weights: Tensor) -> Tensor:
        running, run = self.running, self.running.run
        batch, heads, queries, keys = weights.shape
        if (index := running.layer(queries, keys)) is None:
            return weights
        pooled = running.network is not None and running.network.config.pooling is not None
        causal = queries == keys and not pooled and not bool(weights.detach().triu(1).any())
        if running.met is not None:
            # which of them share keys is not seen
            running.met.append(Found(batch, heads, heads, queries, keys, causal))
        running.given = -weights.shape[1]  # how wide they are is not known here
        if run.streaming.places(index, range(weights.shape[1])):
            raise unstreamed(index, "its model weighs by code of its own, which is only looked at")
        call = WeightedCall(index, weights, causal=causal)
        weights = run.apply_weighted(call, weights, running.heads(index))
        running.on_layer(index)
        return weights


# --- the model ------------------------------------------------------------------------------------


class Transformers(Network):
    """A model of transformers that is read and stopped as hgviz's own are."""

    config: TransformersConfig

    def __init__(self, net: nn.Module, config: TransformersConfig) -> None:
        super().__init__(config)
        self.net = net
        # after each block with its first layer: the number of its last one, and of calls
        self.spans: dict[tuple[nn.Module, int], tuple[int, int]] = {}
        for part in longformer.parts(net):
            part.forward = partial(banded, part)
        for part in differential.parts(net):
            part.forward = partial(differential_forward, part)
        for block in blocks(net):
            block.forward = partial(_block, self, block, block.forward)
        if answers_at_end(net):
            cast(Any, net).forward = partial(classifier_logits, net)
        if config.patches is not None:
            install_boundaries(net, config.patches, self.token_embedding, _cut_now)

    @cached_property
    def can_cache(self) -> bool:
        """Whether a token can be read with the keys and values of those before it: in a text
        decoder all of whose blocks attend to keys that no later token changes."""
        config = self.config
        if not config.uses_interface or config.form != "decoder" or config.modality != "text":
            return False
        if config.unattending or config.skipped_calls or "past_key_values" not in self.takes:
            return False
        turned = str([getattr(one, "rope_type", None) for one in self.net.modules()])
        return all(one.causal for one in config.own_layers) and not any(
            one in turned for one in RESCALED
        )

    def boundaries(self, tokens: Tokens, run: Run | None = None) -> Tensor:
        """bool (B, n): the bytes that close a patch: those given, else what the patcher says with
        heads of run.off off, else all."""
        patches, ids = self.config.patches, tokens.ids
        assert patches is not None and ids is not None
        cut, told = boundaries_of(self.net, patches, tokens), cast(Any, self.net.config)
        if cut.patcher is None:
            cut.patch_lengths(ids)
        else:
            running = Running(self, Run((run or Run()).off), kept=self.config.remaining, cut=cut)
            running.lengths = patches.sizes(ids.shape[1], 0)
            with _pass(running), _unlogged():
                cut.patcher(
                    ids, patch_size=told.patch_size, threshold=told.patching_threshold,
                    max_patch_length=told.max_patch_length,
                )  # fmt: skip
        assert cut.ends is not None
        return cut.ends

    @property
    def token_embedding(self) -> nn.Embedding:
        """The embeddings of the vocabulary."""
        return table_of(self.net)

    @property
    def weight(self) -> Tensor:
        """Any of its weights, which all lie on one device."""
        return next(self.net.parameters())

    def example(self, source: int, target: int) -> Tokens:
        """What it reads, at random: so many tokens, or a picture or sound of a size that it takes;
        so many of its decoder."""
        config, device = self.config, self.weight.device

        def ids(count: int) -> Tokens:  # none of the first, which often stand for padding
            return Tokens(torch.arange(5, 5 + count, device=device)[None] % config.vocab_size)

        if config.cross:
            made = torch.Generator().manual_seed(0)
            states = torch.randn((1, source, config.d_model), generator=made)
            return replace(ids(target), source=Tokens(states=states.to(self.weight)))
        given = ids(source) if config.modality == "text" else self._sample
        return replace(ids(target), source=given) if config.form == "encoder-decoder" else given

    def drawn(self, count: int) -> Tokens:
        """So many pictures or sounds of numbers drawn at random, with a token of its decoder."""
        given = self.example(1, 1)
        one = given if given.source is None else given.source
        assert one.signal is not None
        made = torch.Generator().manual_seed(0)
        signal = torch.randn((count, *one.signal.shape[1:]), generator=made).to(one.signal)
        ids = torch.zeros(count, self.positions(one.signal), dtype=torch.long)
        some = Tokens(ids.to(signal.device), signal=signal)
        return some if given.ids is None else replace(given, ids=given.ids.repeat(count, 1),
                                                      source=some)  # fmt: skip

    @cached_property
    def _sample(self) -> Tokens:
        failed: Exception | None = None
        for one in map(torch.from_numpy, examples(self.net.config, self.signal)):
            try:
                count = self.positions(one[None])
            except Exception as error:  # of another shape, as their parts say it
                failed = failed or error
            else:
                ids = torch.zeros(1, count, dtype=torch.long, device=self.weight.device)
                return Tokens(ids, signal=one[None].to(self.weight))
        why = (
            "no picture or sound was known that it takes" if failed is None else first_line(failed)
        )
        raise unseen(self.config.family, why)

    def positions(self, signal: Tensor) -> int:
        """How many positions the first layer that attends makes of a picture or sound (1, ...),
        beside a text of one token where the model reads one too."""
        met: list[Found] = []
        running = Running(met=met)

        def enough(index: int) -> None:
            if met[-1].queries > 1:
                raise _Met

        running.on_layer = enough
        target = None
        if self.config.form == "encoder-decoder":
            target = torch.zeros(1, 1, dtype=torch.long, device=self.weight.device)
        source = Tokens(signal=signal.to(self.weight))
        given = source if target is None else Tokens(target, source=source)
        with contextlib.suppress(_Met), torch.inference_mode():
            self._logits(given, running)
        return met[-1].queries

    @cached_property
    def signal(self) -> str:
        """What the model calls the picture or sound that it is given."""
        main = str(self.net.main_input_name)
        return main if main in MODALITIES else next(one for one in MODALITIES if one in self.takes)

    def projected(self) -> list[ExternalLayer]:
        """The layers whose heads go through a product that is known."""
        found = []
        for layer, out in zip(self.config.layers, self.projections, strict=True):
            if out is not None and layer.heads:
                found.append(ExternalLayer(layer, out, out.in_features // len(layer.heads)))
        return found

    @cached_property
    def projections(self) -> list[nn.Linear | None]:
        """By layer, the product that what heads give goes through; None where it is not known."""
        found = [self.net.get_submodule(one) if one else None for one in self.config.output_modules]
        return [one if isinstance(one, nn.Linear) else None for one in found]

    @property
    def most_positions(self) -> int | None:
        """The number of positions that position_ids may name; None where it takes none."""
        tables = [one.num_embeddings for one in position_tables(self.net)]
        return min(tables, default=MOST_PLACES) if "position_ids" in self.takes else None

    @property
    def counts_padding(self) -> bool:
        """Whether padding has positions in a learned table, and positions cannot be given."""
        return "position_ids" not in self.takes and bool(position_tables(self.net))

    @cached_property
    def first_position(self) -> int | None:
        """The position of a text's first token in a learned table, of a model that counts padding
        as well; None where padding is not counted, or positions cannot be given."""
        if "position_ids" not in self.takes or self.config.form == "encoder-decoder":
            return None
        seen: list[Tensor] = []
        hooks = [
            one.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
            for one in position_tables(self.net)
        ]
        if not hooks:
            return None
        ids = self.example(SOURCE, 1).ids
        assert ids is not None
        mask = torch.ones_like(ids)
        mask[:, 0] = 0
        try:
            with torch.inference_mode(), _pass(Running()), _unlogged():
                self.net(input_ids=ids, attention_mask=mask)
        finally:
            for hook in hooks:
                hook.remove()
        lines = (one.flatten().tolist() for one in seen)
        return next((one[0] for one in lines if one == [*range(one[0], one[0] + SOURCE)]), None)

    @cached_property
    def takes(self) -> Collection[str]:
        """The names of what the model can be given."""
        return inspect.signature(type(self.net).forward).parameters.keys()

    def shifted(self, ids: Tensor) -> Tensor:
        """The ids (B, n) that the decoder of a model that reads its text twice reads, as its class
        makes them: those of the text, one token later.

        Errors: HgvizError for a text without the token that such a classifier answers at.
        """
        net, end = cast(Any, self.net), cast(Any, self.net.config).eos_token_id
        if answers_at_end(net) and not bool((ids == end).any(1).all()):
            raise HgvizError(
                "the text has no end that this classifier could answer at: "
                f"it answers at the last token {end}, the eos_token_id of its config.json",
                "Give ids with it, or a tokenizer that adds it",
            )
        if hasattr(net, "_shift_right"):
            return cast(Tensor, net._shift_right(ids))
        shift = sys.modules[type(net).__module__].shift_tokens_right
        given = ids, net.config.pad_token_id, net.config.decoder_start_token_id
        return cast(Tensor, shift(*given[: len(inspect.signature(shift).parameters)]))

    def ruled(self, index: int, rule: Rule) -> Rule:
        """The rule of a layer with the activations that its spec says."""
        if not self.config.exchanged:
            return rule
        names = self.config.layers[index].activations
        norms = value_norms_of(names, self.config.norms)
        return replace(
            rule, activations=names, norms=norms, top_k=self.config.top_k, empty_rows="zeros"
        )

    def forward(self, tokens: Tokens | Tensor, run: Run | None = None) -> Tensor:
        """Tokens, or ids (B, n) alone -> (B, n, vocabulary), (B, classes) or (B, n, d)"""
        return self._logits(as_tokens(tokens), Running(self, run or Run()))

    def _logits(self, tokens: Tokens, running: Running) -> Tensor:
        running.kept = self.config.remaining
        cache = tokens.cache
        running.cached = cache is not None
        given: dict[str, Any] = {"return_dict": True}
        if self.config.form != "encoder-decoder" or "use_cache" in self.takes:
            given["use_cache"] = cache is not None
        if cache is not None:
            given["past_key_values"] = cache.state
        source = tokens.source
        texts = {"": tokens} if source is None else {"": source, "decoder_": tokens}
        if source is not None and source.states is not None:
            texts, given["encoder_hidden_states"] = {"": tokens}, source.states
            if source.keep is not None:
                given["encoder_attention_mask"] = source.keep.long()
        elif self.config.cross:
            raise HgvizError(
                "this model needs the states of an encoder: it is a decoder that attends to them",
                "Give them with the text",
            )
        for prefix, one in texts.items():
            if one.signal is not None:
                given[self.signal] = one.signal
                continue
            given |= {
                f"{prefix}input_ids": one.ids if one.embedded is None else None,
                f"{prefix}attention_mask": None if one.keep is None else one.keep.long(),
                f"{prefix}inputs_embeds": one.embedded,
            }
        patches = self.config.patches
        if patches is not None and tokens.ids is not None:
            given |= {"input_ids": tokens.ids, "inputs_embeds": None}
        if source is not None and answers_at_end(self.net):
            given["read"] = source.ids
        if tokens.segments is not None:
            given["token_type_ids"] = tokens.segments
        if tokens.positions is not None:
            given["position_ids"] = tokens.positions
            if tokens.keep is None:  # else texts would end wherever positions do not count up
                given["attention_mask"] = torch.ones_like(tokens.positions)
        elif texts[""] is tokens and tokens.keep is not None and not tokens.keep[:, 0].all():
            first = 0 if self.config.form == "decoder" else self.first_position
            if first is not None and "position_ids" in self.takes:
                counted = tokens.keep.long().cumsum(-1) - 1  # as generate() does
                given["position_ids"] = counted.clamp(min=0) + first
        if self.config.family == longformer.FAMILY:
            one, told = texts[""], self.net.config
            of = one.embedded if one.ids is None else one.ids
            assert of is not None
            asked = longformer.global_tokens(self.config.goal, one.ids, of.shape[:2], told)
            given["global_attention_mask"] = None if asked is None else asked.to(of.device)
        if "bbox" in self.takes:  # where on a page each word stands: nowhere
            one = texts[""]
            read = one.embedded if one.ids is None else one.ids
            assert read is not None
            given["bbox"] = read.new_zeros((*read.shape[:2], 4), dtype=torch.long)
        parts = [one.ids if one.embedded is None else one.embedded for one in texts.values()]
        parts = [given.get("encoder_hidden_states"), *parts] if self.config.cross else parts
        sizes = [(1, 0) if one is None else one.shape[:2] for one in parts]
        lengths, pooling = tuple(size[1] for size in sizes), self.config.pooling
        lengths = tuple(map(len, pooling.spans(*lengths))) if pooling is not None else lengths
        running.texts, running.lengths = sizes[-1][0], lengths
        if patches is not None and tokens.ids is not None:
            running.cut = boundaries_of(self.net, patches, tokens)
            running.lengths = patches.sizes(tokens.ids.shape[1], 0)
            if running.cut.patcher is None:
                given["patch_lengths"] = running.cut.patch_lengths(tokens.ids)
        watched = contextlib.nullcontext() if self.config.uses_interface else Softmaxes(running)
        # to change what is logged clears a cache of logging, which every token would pay for
        follows = cache is not None and cache.state is not None
        unlogged = contextlib.nullcontext() if follows else _unlogged()
        with _pass(running), watched, unlogged:
            out = self._run({name: one for name, one in given.items() if one is not None}, running)
        if running.network is not None and running.count != len(self.config.own_layers):
            raise unseen(self.config.family, OTHERWISE)
        if cache is not None:
            cache.state = getattr(out, "past_key_values", None)
        return _output(out)

    def _run(self, given: dict[str, Any], running: Running) -> Any:
        try:
            return self.net(**given)
        except Exception as error:
            if any(error is one for one in running.run.failures):
                raise
            told = isinstance(error, (RuntimeError, IndexError, ValueError, TypeError))
            if running.network is None or not told or out_of_memory(error):
                raise
            raise HgvizError(
                f"this {self.config.family} cannot read this text: "
                f"transformers says: {first_line(error)}",
                "Give another text, or set in its config.json what it asks for",
            ) from error


def answers_at_end(net: nn.Module) -> bool:
    """Whether it is a classifier whose decoder reads the text again, as BART's, and answers at its
    last end-of-text token."""
    made = type(net)
    twice = "decoder_input_ids" in inspect.signature(made.forward).parameters
    named = made.__name__.endswith("ForSequenceClassification")
    return twice and named and hasattr(net, "classification_head")


def classifier_logits(net: Any, read: Tensor, **given: Any) -> dict[str, Tensor]:
    """The logits (B, classes) of such a classifier in place of its own code, which wants ids, and
    texts with equally many ends: read (B, n), of the last end in each; of texts without, as they
    are drawn for proofs, of the last position."""
    states = getattr(net, net.base_model_prefix)(**given)[0]
    places = torch.arange(read.shape[1], device=read.device)
    last = places.where(read == net.config.eos_token_id, -1).amax(1) % states.shape[1]
    return {"logits": net.classification_head(states[torch.arange(len(states)), last])}


@contextlib.contextmanager
def own_forwards(net: nn.Module) -> Iterator[None]:
    """Within, layers that attend by code of hgviz in place of their own attend by their own."""
    every = longformer.parts(net) + differential.parts(net)
    ours = [(part, vars(part).pop("forward")) for part in every if "forward" in vars(part)]
    try:
        yield
    finally:
        for part, forward in ours:
            part.forward = forward


def table_of(net: nn.Module) -> nn.Embedding:
    """The embeddings of the vocabulary; the first table where a model does not say which it is.

    Errors: HgvizError for a model without any.
    """
    try:
        found: Any = net.get_input_embeddings()  # type: ignore[operator]
    except NotImplementedError:
        found = None
    if isinstance(getattr(found, "weight", None), Tensor):
        return cast(nn.Embedding, found)
    every = [*(found.modules() if isinstance(found, nn.Module) else ()), *net.modules()]
    for one in every:
        if isinstance(one, nn.Embedding):
            return one
    raise unseen(type(net).__name__, "it has no table of tokens, so it reads no texts")


def position_tables(net: nn.Module) -> list[nn.Embedding]:
    """The tables of learned positions of a model."""
    return [
        one for name, one in net.named_modules()
        if isinstance(one, nn.Embedding) and re.search("pos|wpe", name.rpartition(".")[2])
    ]  # fmt: skip


def _output(out: Any) -> Tensor:
    """Logits, else states, where a model gives several things: the first that it gives of these,
    of start and end of an answer both (B, 2, n), of an image or sound and a text both (B, 2, d),
    else the first of all."""
    for pair in PAIRS:
        both = [getattr(out, name, None) for name in pair]
        tensors = [one for one in both if isinstance(one, Tensor)]
        if len({one.shape for one in tensors}) == 1 < len(tensors):
            return torch.stack(tensors, 1)
    names = ("logits", "prediction_logits", "last_hidden_state")
    found = [out.get(name) for name in names] if isinstance(out, Mapping) else []
    rest = out.values() if isinstance(out, Mapping) else out
    return next(one for one in (*found, *rest) if isinstance(one, Tensor))


class _Met(Exception):
    """A layer was met, and no more is wanted of the pass."""


def blocks(net: nn.Module) -> Iterator[nn.Module]:
    """What a model stacks: the outermost modules that stand in a list."""
    for part in net.children():
        if isinstance(part, nn.ModuleList):
            yield from part
        else:
            yield from blocks(part)


def parts(module: nn.Module) -> Iterator[nn.Module]:
    """What a module is made of, lists of modules taken apart."""
    for part in module.children():
        yield from parts(part) if isinstance(part, nn.ModuleList) else (part,)


def _block(
    network: Transformers, block: nn.Module, forward: Callable[..., Any], *given: Any, **named: Any
) -> Any:
    """What a block of transformers returns, as Run.block: which layers it has is known only once it
    has run, so that observers are told afterwards.

    Reused are blocks that return the stream alone: others hand on more, as T5's first its biases.
    """
    running = _running.get()
    if running is None:
        return forward(*given, **named)
    run, first = running.run, running.count
    last, calls = network.spans.get((block, first), (None, 0))
    if last is not None and last in run.reused:
        running.count, running.calls = last + 1, calls
        return run.reused[last]
    output = forward(*given, **named)
    if running.count > first:  # which layers a block has is known once it has run
        if isinstance(output, Tensor):
            network.spans[block, first] = running.count - 1, running.calls
        run.notify_block(running.count - 1, given[0] if given else None, output)
    return output


def _cut_now() -> PatchBoundaries | None:
    running = _running.get()
    return None if running is None else running.cut


# --- opening --------------------------------------------------------------------------------------


@cache
def library() -> Any:
    """transformers, with our functions registered and every hub out of reach."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import transformers
        from transformers.masking_utils import AttentionMaskInterface
    except ImportError as error:
        raise HgvizError(
            f"this model needs the package transformers, version 5 or later: {first_line(error)}",
            "Install it: pip install 'transformers>=5'",
        ) from None

    transformers.utils.logging.disable_progress_bar()
    transformers.AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, mask)
    return transformers


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """What transformers logs is said by errors here, or to nobody."""
    told = library().utils.logging
    before = told.get_verbosity()
    told.set_verbosity(CRITICAL)
    try:
        yield
    finally:
        told.set_verbosity(before)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """The same, and no warning; not in passes, which have threads of their own: filters of warnings
    are those of all threads."""
    with _unlogged(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def stated_of(config: Any, *names: str) -> Any:
    """What a configuration, or that of its part for pictures or sounds, says under one of these
    names; None where it says nothing."""
    parts = [config, *(getattr(config, f"{name}_config", None) for name in ("vision", "audio"))]
    found = (getattr(part, name, None) for part in parts for name in names)
    return next((one for one in found if one is not None), None)


def examples(config: Any, signal: str) -> Iterator[Floats]:
    """Pictures or sounds at random, of the shapes that a model may read that calls them so."""
    random, stated = np.random.default_rng(0), partial(stated_of, config)
    shapes: list[tuple[int, ...]]
    size = stated("image_size") or 224
    size = list(size.values()) if isinstance(size, dict) else size
    height, width = (size, size) if isinstance(size, int) else size[-2:]
    bins, frames = stated("num_mel_bins", "input_feat_per_channel"), stated("max_length")
    if signal == "pixel_values":
        shapes = [(stated("num_channels") or 3, height, width)]
    elif bins:
        longest = stated("max_source_positions") or 50
        shapes = [(bins, 2 * longest), (2 * longest, bins), (frames or 100, bins)]
    else:
        shapes = [(SAMPLES,), (100, stated("feature_projection_input_dim") or 160)]
    for shape in shapes:
        yield random.normal(size=shape).astype(np.float32)


def unseen(family: str, why: str) -> HgvizError:
    return HgvizError(f"hgviz does not see the attention of {family}: {why}", CAPTURE_ADVICE)
