"""Attending models of the package transformers, run by hgviz's attention.

transformers asks a registered function for the context of every layer (its AttentionInterface) and
another one for every mask. Ours reads masks as rules and calls `run.attend`, so that heads are
switched off, activations exchanged and captures made as in hgviz's own models. Where a Rule cannot
say how scores become weights, the weights are computed here and kept. Of models with attention code
of their own, the softmaxes are observed. Layers are found by a pass over a few tokens: every call
for attention is one.

transformers is imported when a model is opened, and reaches for no hub.

Shapes: B batch, H heads, G key groups, Q queries, K keys, D head width, n tokens, d model width.
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

from hgviz.core import Goal, HgvizError, Modality
from hgviz.errors import require
from hgviz.files import first_line, printable
from hgviz.maps.rule import Diagonals, Rule
from hgviz.models.attention import expand_key_groups, head_groups, to_numpy, weigh
from hgviz.models.devices import out_of_memory
from hgviz.models.layers import ExternalLayer, Network, Tokens, as_tokens, score_norms
from hgviz.models.masks import Mask, MaskRule, mask, rule_of_mask
from hgviz.models.patches import PatchBoundaries, boundaries_of, install_boundaries
from hgviz.models.pretrained_config import RemainingHeads, TransformersConfig
from hgviz.models.run import PassEnded, Run, WeightedCall

NAME = "hgviz"  # of our functions, where transformers looks them up
SOURCE, TARGET = 5, 3  # tokens of the probing pass: the lengths tell the two texts apart
POSITION_LIMIT = 1 << 24  # of position_ids where no table bounds them
SAMPLES = 8000  # of a random sound
LOWEST = -1e30  # a score that no softmax sees
RESCALED = ("dynamic", "longrope")  # rotary angles of early tokens that depend on later ones
SOFTMAXES = {F.softmax, torch.softmax, Tensor.softmax}
MODALITIES: dict[str, Modality] = {  # by what a class calls such an input
    "pixel_values": "image", "input_values": "audio", "input_features": "audio",
}  # fmt: skip
OUTPUTS = ("logits", "prediction_logits", "last_hidden_state")  # the first that a model gives
SUBTRACTS = "the map of its heads is the difference of two softmaxes"
ADDS = "the model adds values to its scores that are not a mask"
LENGTH_DEPENDENT = "its attention differs between short and long texts"
CAPTURE_ADVICE = (  # for a model that hgviz cannot run
    "To inspect its attention, run it yourself and save queries and keys with hgviz.write_capture"
)


def unseen(family: str, why: str) -> HgvizError:
    """The error for a model whose attention hgviz cannot find."""
    return HgvizError(f"hgviz cannot record the attention of {family}: {why}", CAPTURE_ADVICE)


def streaming_error(layer: int, why: str) -> HgvizError:
    """The error for heads that cannot be limited to the first and the latest keys."""
    return HgvizError(
        f"heads of layer {layer} cannot stream: {why}", "Choose heads of other layers"
    )


def activation_error(why: str) -> HgvizError:
    """The error for a layer whose softmax cannot be exchanged for another activation."""
    return HgvizError(
        f"the activation of this layer cannot be replaced: {why}", "Choose another model"
    )


# --- the pass that runs ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LayerShape:
    """A layer that attended in the probing pass: its sizes, and whether it is causal."""

    batch: int
    heads: int
    groups: int
    queries: int
    keys: int
    causal: bool


# called with layer, module, q, k, v and sinks; a context (B, Q, H, D) that it returns is used
Watch = Callable[[int, nn.Module, Tensor, Tensor, Tensor, Tensor | None], Tensor | None]


@dataclass(slots=True)
class ActivePass:
    """A forward pass of a model of transformers.

    remaining: the heads of each layer of a pruned model. cached: whether tokens follow others, or
    others will follow. on_layer: called with the index of each layer after it has attended. shapes:
    filled by the probing pass. batch, lengths: texts, and tokens per level. boundaries: of the
    patches of a Byte Latent Transformer. context_size: the size of the last context until it is
    multiplied; of an observed softmax, minus its heads. layers, calls: layers so far, and calls for
    attention, which include those to no text.
    """

    network: Transformers | None = None
    run: Run = field(default_factory=Run)
    remaining: Sequence[RemainingHeads] = ()
    cached: bool = False
    on_layer: Callable[[int], None] = lambda index: None
    shapes: list[LayerShape] | None = None
    watch: Watch | None = None
    batch: int = 1
    lengths: tuple[int, ...] = ()
    boundaries: PatchBoundaries | None = None
    context_size: int = 0
    layers: int = 0
    calls: int = 0

    def begin_layer(self, queries: int, keys: int) -> int | None:
        """The index of the layer that attends now; None where it attends to no text.

        Raises HgvizError for a layer that the probing pass did not find.
        """
        call, index = self.calls, self.layers
        self.calls += 1
        if self.network is not None:
            config = self.network.config
            if call in config.skipped_calls:
                return None
            if self.boundaries is not None and self.boundaries.ends is not None:
                self.lengths = self.boundaries.sizes(with_open_patch=True)
            layers = config.own_layers[index : index + 1]
            expected = [(self.lengths[x.level], self.lengths[x.key_level]) for x in layers]
            if not self.cached and expected != [(queries, keys)]:
                raise unseen(config.family, LENGTH_DEPENDENT)
        self.layers += 1
        return index

    def length(self, index: int) -> tuple[int, int] | None:
        """The queries and keys of a layer that are positions, where an open patch is none."""
        if self.network is None or self.boundaries is None or self.boundaries.ends is None:
            return None
        layer = self.network.config.own_layers[index]
        sizes = self.boundaries.sizes(with_open_patch=False)
        return sizes[layer.level], sizes[layer.key_level]

    def heads(self, index: int) -> Sequence[int] | None:
        """The numbers of the heads of a layer of a pruned model, else None."""
        return self.remaining[index].heads if self.remaining else None


_active: ContextVar[ActivePass | None] = ContextVar("active pass", default=None)


@contextlib.contextmanager
def _activate_pass(active: ActivePass) -> Iterator[None]:
    token = _active.set(active)
    try:
        yield
    finally:
        _active.reset(token)


# --- attention ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """What a layer attends with: q (B, H, Q, D), k and v (B, G, K, D), their rule, keep (B, K) and
    bias.

    What no rule says: added, broadcastable to scores (B, H, Q, K), numbers or bool; sinks
    (B, H, Q, 1), a logit of each query without a key; a Longformer's global tokens; the difference
    of two softmaxes, whose q and k stand side by side.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    rule: Rule
    keep: Tensor | None = None
    bias: Diagonals | None = None
    added: Tensor | None = None
    sinks: Tensor | None = None
    global_tokens: GlobalTokens | None = None
    difference: Difference | None = None

    def truncate(self, queries: int, keys: int) -> Call:
        """The first queries and keys."""
        return replace(
            self, q=self.q[:, :, :queries], k=self.k[:, :, :keys], v=self.v[:, :, :keys],
            keep=None if self.keep is None else self.keep[:, :keys],
            added=None if self.added is None else self.added[..., :queries, :keys],
        )  # fmt: skip


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | MaskRule | None,
    scaling: float | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """The registered function for attention: the context (B, Q, H, D), and no weights.

    query (B, H, Q, D), key and value (B, G, K, D). more: what models add to scores, as
    transformers' eager attention takes it, and the fields of a Call that FORWARDS give.
    """
    active = _active.get() or ActivePass()
    sinks = more.get("sinks") if more.get("s_aux") is None else more["s_aux"]
    attention_mask = _mask_of_indexer(module, query, key, attention_mask, active, more)
    index, computed_heads = active.begin_layer(query.shape[2], key.shape[2]), query.shape[1]
    if active.watch is not None and index is not None:
        watched = active.watch(index, module, query, key, value, sinks)
        if watched is not None:
            return watched, None
    bias, global_tokens = more.get("position_bias"), more.get("global_tokens")
    if index is not None and index < len(active.remaining):
        left = active.remaining[index]
        query, key, value, bias, sinks = _remaining_heads(left, query, key, value, bias, sinks)
        global_tokens = global_tokens and global_tokens.of_heads(left.heads)
    call = _call(query, key, value, attention_mask, scaling, more.get("softcap"), bias, sinks)
    if type(module).__name__ == LONGFORMER:
        call = replace(call, rule=replace(call.rule, empty_rows="zeros"))
    if global_tokens is not None:
        call = replace(call, added=global_tokens.visible, global_tokens=global_tokens)
    if (difference := more.get("difference")) is not None:
        call = replace(call, added=query.new_zeros(()), difference=difference)
    if index is None:
        context = _attend(call, 0, ActivePass())
    else:
        if active.shapes is not None:
            batch, heads, queries = call.q.shape[:3]
            groups, keys = call.k.shape[1:3]
            shape = LayerShape(batch, heads, groups, queries, keys, call.rule.causal)
            active.shapes.append(shape)
        if active.network is not None and active.network.config.replaces_softmax:
            config = active.network.config
            names = config.layers[index].activations
            rule = replace(
                call.rule, activations=names, norms=score_norms(names, config.norms),
                top_k=config.top_k, empty_rows="zeros",
            )  # fmt: skip
            call = replace(call, rule=rule)
        context = _attend(call, index, active)
        active.on_layer(index)
    if context.shape[1] < computed_heads:  # a layer without heads computes with zeros of one
        context = F.pad(context, (0, 0, 0, 0, 0, computed_heads - context.shape[1]))
    if index is not None:
        active.context_size = context.numel()
    return context.transpose(1, 2).contiguous(), None


def _mask_of_indexer(
    module: Any, q: Tensor, k: Tensor, mask: Any, active: ActivePass, more: Mapping[str, Any]
) -> Any:
    """A mask without the keys that an indexer left out: all but its indices (B, Q, n) of keys, or
    its block_indices of blocks of keys. Eager code of models masks them before it attends."""
    keys, blocks, count = more.get("indices"), more.get("block_indices"), k.shape[2]
    if keys is None and blocks is None:
        return mask
    if active.cached:
        raise unseen(type(module).__name__, "its indexer selects keys from a cache")
    if blocks is not None:
        positions = more.get("position_ids")
        if positions is None:
            positions = torch.arange(count - q.shape[2], count, device=q.device)[None]
        return module.indexer.build_block_mask(blocks, mask, count, q.dtype, q.device, positions)
    assert keys is not None
    if keys.shape[-1] >= count:
        return mask
    hidden = keys.new_ones((*keys.shape[:2], count), dtype=torch.bool)
    hidden = hidden.scatter(-1, keys.long(), False)[:, None]
    return mask.masked_fill(hidden, torch.finfo(q.dtype).min)


def _remaining_heads(
    left: RemainingHeads, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, sinks: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """What the heads that pruning has left attend with: each with keys of its own where key groups
    have unequally many heads, and their part of biases of the layer with all heads.

    Raises HgvizError where the layer computes other heads.
    """
    words = "{} heads in {} key groups"
    require(
        (q.shape[1], k.shape[1]) == left.sizes,
        "the remaining heads in config.json do not fit the weights: "
        f"{printable(left.name)} has {words.format(q.shape[1], k.shape[1])}, and "
        f"{words.format(*left.sizes)} by config.json",
        "Use the config.json that came with these weights",
    )
    count = len(left.heads)
    if bias is not None and bias.shape[1] not in (count, left.of):  # zeros of a narrower layer
        bias = bias[:, :1].expand(-1, left.of, -1, -1)
    if bias is not None and bias.shape[1] != count:
        bias = bias[:, list(left.heads)]
    if not left.is_even or not count:
        k, v = k[:, left.keys], v[:, left.keys]
    return q[:, :count], k, v, bias, None if sinks is None else sinks[:count]


def _call(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | MaskRule | None,
    scaling: float | None,
    softcap: float | None,
    position_bias: Tensor | None,
    sinks: Tensor | None,
) -> Call:
    heads, queries, keys = q.shape[1], q.shape[2], k.shape[2]
    scale = q.shape[-1] ** -0.5 if scaling is None else float(scaling)
    says: MaskRule | None = MaskRule() if mask is None else rule_of_mask(mask)
    added = bias = None
    if says is None or (queries != keys and (says.band or says.chunk)):
        says, added = MaskRule(), mask.numbers() if isinstance(mask, Mask) else cast(Tensor, mask)
    if position_bias is not None:
        line = diagonals(position_bias) if added is None else None
        if line is None:
            added = position_bias if added is None else added + position_bias
        elif line.any():
            bias = Diagonals((line / scale).to(q.dtype), 1 - queries)
    sinks_by_query = sinks is not None and sinks.numel() > heads
    if sinks_by_query and added is None:
        added = q.new_zeros(())
    keep = None if says.keep is None or bool(says.keep.all()) else says.keep
    band = says.band
    if band is not None:  # as wide as the text at most
        behind, ahead = min(band[0], keys), 0 if says.causal else min(band[1], keys)
        band = None if says.causal and behind >= keys else (behind, ahead)
    # masks of transformers are large negative numbers: a row that sees no key has the mean of all,
    # unless a sink takes it
    uniform = keep is not None and sinks is None
    rule = Rule(
        scale, ("softmax",) * heads, (None,) * heads, causal=says.causal, band=band,
        chunk=says.chunk, softcap=softcap, empty_rows="uniform" if uniform else "zeros",
        sinks=None if sinks is None or sinks_by_query
        else to_numpy(sinks.detach().float().reshape(-1)),
    )  # fmt: skip
    return Call(q, k, v, rule, keep, bias, added, sinks if sinks_by_query else None)


def diagonals(bias: Tensor) -> Tensor | None:
    """The bias (1, H, Q, K) by distance from 1 - Q on, (H, Q + K - 1); None where it depends on
    more than the distance."""
    if bias.dim() != 4 or len(bias) != 1:
        return None
    queries, keys = bias.shape[-2:]
    line = torch.cat([bias[0, :, :, 0].flip(-1), bias[0, :, 0, 1:]], -1)
    rows = (line[:, queries - 1 - row :][:, :keys] for row in range(queries))
    if all(torch.equal(line_of_row, bias[0, :, row]) for row, line_of_row in enumerate(rows)):
        return line
    return None


def _attend(call: Call, index: int, active: ActivePass) -> Tensor:
    """The context (B, H, Q, D) of a call, after the interventions of the run."""
    run, heads, length = active.run, call.q.shape[1], active.length(index)
    projections = () if active.network is None else active.network.projections
    output = projections[index] if index < len(projections) else None
    if output is not None and output.in_features != heads * call.v.shape[-1]:
        output = None
    if call.added is None:
        return run.attend(
            index, call.q, call.k, call.v, call.rule, heads=active.heads(index), keep=call.keep,
            relative=call.bias, output=output, length=length,
        )  # fmt: skip
    if run.streaming.places(index, active.heads(index) or range(heads)):
        raise streaming_error(index, SUBTRACTS if call.difference else ADDS)
    weights = dense_weights(call)
    context = weights @ expand_key_groups(call.v, heads)
    if call.global_tokens is not None:
        weights, context = call.global_tokens.replace_rows(
            weights, context, call.keep, call.rule.scale
        )
    is_signed = call.difference is not None
    if call.difference is not None:
        context, output = call.difference.norm(context), None  # no value norm is that of a weight
    if length is not None and run.observers and length != (call.q.shape[2], call.k.shape[2]):
        call = call.truncate(*length)
        weights = dense_weights(call)
    record = WeightedCall(index, weights, is_signed, is_signed and call.rule.causal, call.v, output)
    return run.apply_weighted(record, context, active.heads(index))


def dense_weights(call: Call) -> Tensor:
    """The weights (B, H, Q, K) of a call with something that no rule says."""
    if any(name != "softmax" for name in call.rule.activations):
        raise activation_error(SUBTRACTS if call.difference else ADDS)
    if call.difference is not None:
        halves = zip(call.q.chunk(2, -1), call.k.chunk(2, -1), strict=True)
        first, second = (dense_weights(replace(call, q=q, k=k, difference=None)) for q, k in halves)
        return first - call.difference.share * second
    if not call.q.shape[1]:  # of a layer without heads
        return call.q.new_zeros(*call.q.shape[:3], call.k.shape[2])
    (group,) = head_groups(call.q, expand_key_groups(call.k, call.q.shape[1]), call.rule)
    rows = torch.arange(call.q.shape[2], device=call.q.device)
    scores, visible = group.scores(rows, call.keep)
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    scores = scores.masked_fill(~visible, LOWEST)
    assert call.added is not None
    if call.added.dtype == torch.bool:
        scores = scores.masked_fill(~call.added, LOWEST)
    else:
        scores = (scores + call.added.to(scores.dtype)).clamp(min=LOWEST)
    sinks = group.sinks if call.sinks is None else call.sinks
    return weigh(scores, None, "softmax", sinks=sinks).to(call.q.dtype)


class SoftmaxMode(TorchFunctionMode):
    """Observes the softmaxes (B, H, Q, K) or (B * H, Q, K) of a model with attention code of its
    own: notifies the run of their weights, and sets those of heads that are off to zero."""

    def __init__(self, active: ActivePass) -> None:
        super().__init__()
        self.active = active

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        output = func(*args, **(kwargs or {}))
        if func not in SOFTMAXES or not isinstance(output, Tensor):
            return output
        dim = (kwargs or {}).get("dim", args[1] if len(args) > 1 else None)
        if dim not in (-1, output.dim() - 1) or (
            output.shape[-1] < 2 and 1 not in self.active.lengths
        ):
            return output
        if output.dim() == 4:
            return self._observe(output)
        heads, rest = divmod(len(output), self.active.batch)
        if output.dim() == 3 and heads > 1 and not rest:
            return self._observe(output.unflatten(0, (-1, heads))).flatten(0, 1)
        return output

    def _observe(self, weights: Tensor) -> Tensor:
        active, run = self.active, self.active.run
        batch, heads, queries, keys = weights.shape
        if (index := active.begin_layer(queries, keys)) is None:
            return weights
        is_pooled = active.network is not None and active.network.config.pooling is not None
        causal = queries == keys and not is_pooled and not bool(weights.detach().triu(1).any())
        if active.shapes is not None:  # which heads share keys is not seen
            active.shapes.append(LayerShape(batch, heads, heads, queries, keys, causal))
        active.context_size = -heads  # the width of values is not known here
        if run.streaming.places(index, range(heads)):
            raise streaming_error(
                index, "its model has its own attention code, which is only observed"
            )
        call = WeightedCall(index, weights, causal=causal)
        weights = run.apply_weighted(call, weights, active.heads(index))
        active.on_layer(index)
        return weights


# --- single architectures -------------------------------------------------------------------------

LONGFORMER, DIFFERENTIAL = "LongformerSelfAttention", "DiffLlamaAttention"


@dataclass(frozen=True, slots=True)
class GlobalTokens:
    """The tokens of a Longformer that attend to all others and are attended to by all (Beltagy et
    al. 2020, arXiv 2004.05150, section 3).

    rows: bool (B, n). q, k and v (B, H, n, D): of their own projections. band: how far the other
    tokens attend to either side.
    """

    rows: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    band: int

    @property
    def visible(self) -> Tensor:
        """bool (B, 1, n, n): what tokens that are not global attend to."""
        place = torch.arange(self.rows.shape[1], device=self.rows.device)
        near = (place[:, None] - place).abs() <= self.band
        return near[None, None] | self.rows[:, None, None]

    def of_heads(self, heads: Sequence[int]) -> GlobalTokens:
        """Those of some heads; files keep these projections whole where heads are pruned."""
        q, k, v = (part[:, list(heads)] for part in (self.q, self.k, self.v))
        return replace(self, q=q, k=k, v=v)

    def replace_rows(
        self, weights: Tensor, context: Tensor, keep: Tensor | None, scale: float
    ) -> tuple[Tensor, Tensor]:
        """Weights (B, H, n, n) and context (B, H, n, D) with those of global tokens put in."""
        places = self.rows.any(0).nonzero()[:, 0]
        scores = scale * self.q[:, :, places] @ self.k.transpose(-1, -2)
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, None], torch.finfo(scores.dtype).min)
        exact = torch.promote_types(scores.dtype, torch.float32)
        own = scores.softmax(-1, dtype=exact).to(scores.dtype)
        chosen = self.rows[:, None, places, None]
        return (
            weights.index_copy(2, places, own.where(chosen, weights[:, :, places])),
            context.index_copy(2, places, (own @ self.v).where(chosen, context[:, :, places])),
        )


def longformer_forward(
    module: Any,
    hidden_states: Tensor,
    attention_mask: Tensor,
    is_index_global_attn: Tensor | None = None,
    is_global_attn: bool = False,
    **unused: Any,
) -> tuple[Tensor]:
    """The output (B, m, d) of a Longformer's layer, with the band as a rule.

    transformers pads texts to whole chunks of m tokens and keeps weights by place in the band.
    attention_mask (B, m): below 0 for padding.
    """
    active, padded = _active.get() or ActivePass(), hidden_states.shape[1]
    length = active.lengths[0] if active.lengths else padded

    def by_head(projection: nn.Module) -> Tensor:
        projected: Tensor = projection(hidden_states[:, :length])
        return projected.unflatten(-1, (-1, module.head_dim)).transpose(1, 2)

    band, global_tokens = int(module.one_sided_attn_window_size), None
    if is_global_attn:
        assert is_index_global_attn is not None
        global_tokens = GlobalTokens(
            is_index_global_attn[:, :length], by_head(module.query_global),
            by_head(module.key_global), by_head(module.value_global), band,
        )  # fmt: skip
    rule = MaskRule(
        band=None if global_tokens else (band, band), keep=attention_mask[:, :length] >= 0
    )
    q, k, v = by_head(module.query), by_head(module.key), by_head(module.value)
    attended, _ = attention(module, q, k, v, rule, global_tokens=global_tokens)
    output = F.pad(attended.flatten(2), (0, 0, 0, padded - length))
    active.context_size = output.numel()
    return (output,)


def longformer_global_mask(
    goal: Goal, ids: Tensor | None, shape: torch.Size, net_config: Any
) -> Any:
    """1 (B, n) for the tokens that a Longformer's class has global: a classifier's first token, and
    the question that answers are looked for, up to the first of three separators. None for none."""
    if goal == "classes":
        return torch.zeros(shape, dtype=torch.long).index_fill(1, torch.tensor([0]), 1)
    if goal != "ends":
        return None
    if ids is None:
        return torch.zeros(shape, dtype=torch.long)
    ends = ids == net_config.sep_token_id
    before = torch.arange(shape[1], device=ids.device) < ends.int().argmax(1, keepdim=True)
    return (before & (ends.sum(1, keepdim=True) == 3)).long()


@dataclass(frozen=True, slots=True)
class Difference:
    """How the second softmax of differential attention is subtracted (Ye et al. 2024, arXiv
    2410.05258): share is lambda, norm normalises contexts (B, H, n, 2 D)."""

    share: Tensor
    norm: Callable[[Tensor], Tensor]


def differential_forward(
    module: Any,
    hidden_states: Tensor,
    position_embeddings: tuple[Tensor, Tensor],
    attention_mask: Tensor | None = None,
    past_key_values: Any = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """The output (B, n, d) of a layer of differential attention.

    transformers has the two softmaxes of a head as two heads, computed once for each half of the
    values. Here they are one head, with the queries and keys of both side by side.
    """
    projections = module.q_proj, module.k_proj, module.v_proj
    q, k, v = (
        projection(hidden_states).unflatten(-1, (-1, module.head_dim)).transpose(1, 2)
        for projection in projections
    )
    q, k = sys.modules[type(module).__module__].apply_rotary_pos_emb(q, k, *position_embeddings)
    if past_key_values is not None:
        k, v = past_key_values.update(k, v, module.layer_idx)
    q, k, v = (torch.cat(part.chunk(2, 1), -1) for part in (q, k, v))
    first, second = (
        (q_part * k_part).sum(dtype=torch.float32).exp().to(q_part.dtype)
        for q_part, k_part in (
            (module.lambda_q1, module.lambda_k1), (module.lambda_q2, module.lambda_k2)
        )
    )  # fmt: skip
    difference = Difference(
        first - second + module.lambda_init,
        lambda context: (1 - module.lambda_init) * module.groupnorm(context),
    )
    context, _ = attention(
        module, q, k, v, attention_mask, module.scaling, difference=difference, **more
    )
    output: Tensor = module.o_proj(context.flatten(2))
    return output, None


FORWARDS: dict[str, Callable[..., Any]] = {  # by class, in place of its own forward
    LONGFORMER: longformer_forward, DIFFERENTIAL: differential_forward,
}  # fmt: skip


def modules_of(net: nn.Module, *names: str) -> list[Any]:
    """The modules of these classes."""
    return [module for module in net.modules() if type(module).__name__ in names]


@contextlib.contextmanager
def own_forwards(net: nn.Module) -> Iterator[None]:
    """Within, the layers of FORWARDS attend by their own code."""
    replaced = [
        (module, vars(module).pop("forward"))
        for module in modules_of(net, *FORWARDS)
        if "forward" in vars(module)
    ]
    try:
        yield
    finally:
        for module, forward in replaced:
            module.forward = forward


def answers_at_end(net: nn.Module) -> bool:
    """Whether it is a classifier as BART's, whose decoder reads the text again and which answers at
    the last end-of-text token."""
    name = type(net).__name__
    twice = "decoder_input_ids" in inspect.signature(type(net).forward).parameters
    is_classifier = name.endswith("ForSequenceClassification")
    return twice and is_classifier and hasattr(net, "classification_head")


def classifier_logits(net: Any, read: Tensor, **arguments: Any) -> dict[str, Tensor]:
    """The logits (B, classes) of such a classifier at the last end in each text of ids read (B, n),
    or at the last position of a text without; its own code wants ids, and equally many ends."""
    states = getattr(net, net.base_model_prefix)(**arguments)[0]
    places = torch.arange(read.shape[1], device=read.device)
    last = places.where(read == net.config.eos_token_id, -1).amax(1) % states.shape[1]
    return {"logits": net.classification_head(states[torch.arange(len(states)), last])}


# --- the model ------------------------------------------------------------------------------------


class Transformers(Network):
    """A model of transformers, run as hgviz's own families are."""

    config: TransformersConfig

    def __init__(self, net: nn.Module, config: TransformersConfig) -> None:
        super().__init__(config)
        self.net = net
        # by block and index of its first layer: the index of its last one, and of the last call
        self.spans: dict[tuple[nn.Module, int], tuple[int, int]] = {}
        for module in modules_of(net, *FORWARDS):
            module.forward = partial(FORWARDS[type(module).__name__], module)
        for block in residual_blocks(net):
            block.forward = partial(self._run_block, block, block.forward)
        if answers_at_end(net):
            cast(Any, net).forward = partial(classifier_logits, net)
        if config.patches is not None:
            install_boundaries(net, config.patches, self.token_embedding, _active_boundaries)

    def forward(self, tokens: Tokens | Tensor, run: Run | None = None) -> Tensor:
        """Logits (B, n, vocabulary) or (B, classes), or states (B, n, d), by config.goal.

        tokens: Tokens, or ids (B, n).
        """
        return self.compute(as_tokens(tokens), ActivePass(self, run or Run()))

    def compute(self, tokens: Tokens, active: ActivePass) -> Tensor:
        """The output of a pass, as forward.

        Raises HgvizError for a text that the model cannot read, or reads by other layers than in
        the probing pass.
        """
        config, cache, patches = self.config, tokens.cache, self.config.patches
        active.cached, active.remaining = cache is not None, config.remaining
        arguments = self._arguments(tokens)
        active.batch, active.lengths = self._sizes(tokens)
        if patches is not None and tokens.ids is not None:
            active.boundaries = boundaries_of(self.net, patches, tokens)
            active.lengths = patches.sizes(tokens.ids.shape[1], 0)
            if active.boundaries.patcher is None:
                arguments["patch_lengths"] = active.boundaries.patch_lengths(tokens.ids)
        observed = contextlib.nullcontext() if config.uses_interface else SoftmaxMode(active)
        # setting a level clears the cache of logging, which every token of a text would pay for
        is_step = cache is not None and cache.state is not None
        with (
            _activate_pass(active),
            observed,
            contextlib.nullcontext() if is_step else _without_logs(),
        ):
            try:
                output = self.net(**arguments)
            except (RuntimeError, IndexError, ValueError, TypeError) as error:
                is_own = any(error is failure for failure in active.run.failures)
                if is_own or active.network is None or out_of_memory(error):
                    raise
                raise HgvizError(
                    f"this {config.family} cannot read this text: "
                    f"transformers says: {first_line(error)}",
                    "Use another text, or correct its config.json as the message says",
                ) from error
        if active.network is not None and active.layers != len(config.own_layers):
            raise unseen(config.family, LENGTH_DEPENDENT)
        if cache is not None:
            cache.state = getattr(output, "past_key_values", None)
        return _main_output(output)

    def _arguments(self, tokens: Tokens) -> dict[str, Any]:
        """What the model in transformers is called with."""
        config, cache, source = self.config, tokens.cache, tokens.source
        arguments: dict[str, Any] = {"return_dict": True}
        if config.form != "encoder-decoder" or "use_cache" in self.takes:
            arguments["use_cache"] = cache is not None
        if cache is not None:
            arguments["past_key_values"] = cache.state
        texts = {"": tokens} if source is None else {"": source, "decoder_": tokens}
        if config.cross:
            require(
                source is not None and source.states is not None,
                "this model is a decoder that needs the hidden states of an encoder",
                "Give them with the text",
            )
            assert source is not None
            texts, arguments["encoder_hidden_states"] = {"": tokens}, source.states
            arguments["encoder_attention_mask"] = _numbers(source.keep)
        for prefix, text in texts.items():
            if text.signal is not None:
                arguments[self.signal] = text.signal
            else:
                arguments |= {
                    f"{prefix}input_ids": text.ids if text.embedded is None else None,
                    f"{prefix}attention_mask": _numbers(text.keep),
                    f"{prefix}inputs_embeds": text.embedded,
                }
        if config.patches is not None and tokens.ids is not None:
            arguments |= {"input_ids": tokens.ids, "inputs_embeds": None}
        if source is not None and answers_at_end(self.net):
            arguments["read"] = source.ids
        arguments["token_type_ids"] = tokens.segments
        first = texts[""]
        if tokens.positions is not None:
            arguments["position_ids"] = tokens.positions
            if tokens.keep is None:  # else texts would end wherever positions do not count up
                arguments["attention_mask"] = torch.ones_like(tokens.positions)
        elif first is tokens and tokens.keep is not None and not tokens.keep[:, 0].all():
            start = 0 if config.form == "decoder" else self.first_position
            if start is not None and "position_ids" in self.takes:
                counted = tokens.keep.long().cumsum(-1) - 1  # as generate() does
                arguments["position_ids"] = counted.clamp(min=0) + start
        read = first.embedded if first.ids is None else first.ids
        if config.family == "longformer" and read is not None:
            mask = longformer_global_mask(config.goal, first.ids, read.shape[:2], self.net.config)
            arguments["global_attention_mask"] = None if mask is None else mask.to(read.device)
        if "bbox" in self.takes and read is not None:  # where words stand on a page: nowhere
            arguments["bbox"] = read.new_zeros((*read.shape[:2], 4), dtype=torch.long)
        return {name: value for name, value in arguments.items() if value is not None}

    def _sizes(self, tokens: Tokens) -> tuple[int, tuple[int, ...]]:
        """The number of texts, and the tokens of each level."""
        source = tokens.source
        parts = [tokens.ids if tokens.embedded is None else tokens.embedded]
        if source is not None:
            ids = source.ids if source.embedded is None else source.embedded
            parts = [source.states if self.config.cross else ids, *parts]
        sizes = [(1, 0) if part is None else part.shape[:2] for part in parts]
        lengths = tuple(length for _, length in sizes)
        if self.config.pooling is not None:
            lengths = tuple(map(len, self.config.pooling.spans(*lengths)))
        return sizes[-1][0], lengths

    def _run_block(
        self, block: nn.Module, forward: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """The output of a block, or that of an earlier pass where the run reuses it; as Run.block.

        Only blocks that return the stream alone are reused: others hand on more, as T5's first
        block its biases.
        """
        active = _active.get()
        if active is None:
            return forward(*args, **kwargs)
        run, first = active.run, active.layers
        last, calls = self.spans.get((block, first), (None, 0))
        if last is not None and last in run.reused:
            active.layers, active.calls = last + 1, calls
            return run.reused[last]
        output = forward(*args, **kwargs)
        if active.layers > first:  # which layers a block has is known once it has run
            if isinstance(output, Tensor):
                self.spans[block, first] = active.layers - 1, active.calls
            run.notify_block(active.layers - 1, args[0] if args else None, output)
        return output

    def boundaries(self, tokens: Tokens, run: Run | None = None) -> Tensor:
        """bool (B, n): the last bytes of patches; those given, else the patcher's with the heads of
        run.off off, else all bytes."""
        patches, ids, net_config = self.config.patches, tokens.ids, cast(Any, self.net.config)
        assert patches is not None and ids is not None
        boundaries = boundaries_of(self.net, patches, tokens)
        if boundaries.patcher is None:
            boundaries.patch_lengths(ids)
        else:
            active = ActivePass(
                self, Run((run or Run()).off), self.config.remaining, boundaries=boundaries,
                lengths=patches.sizes(ids.shape[1], 0),
            )  # fmt: skip
            with _activate_pass(active), _without_logs():
                boundaries.patcher(
                    ids, patch_size=net_config.patch_size,
                    threshold=net_config.patching_threshold,
                    max_patch_length=net_config.max_patch_length,
                )  # fmt: skip
        assert boundaries.ends is not None
        return boundaries.ends

    # --- what it reads

    @cached_property
    def takes(self) -> Collection[str]:
        """The arguments of the model in transformers."""
        return inspect.signature(type(self.net).forward).parameters.keys()

    @cached_property
    def signal(self) -> str:
        """The argument for images or audio."""
        main = str(self.net.main_input_name)
        return (
            main if main in MODALITIES else next(name for name in MODALITIES if name in self.takes)
        )

    @property
    def token_embedding(self) -> nn.Embedding:
        """The embedding of the vocabulary."""
        return vocabulary_table(self.net)

    @property
    def weight(self) -> Tensor:
        """One of its weights, which are all on one device."""
        return next(self.net.parameters())

    def example(self, source: int, target: int) -> Tokens:
        """An arbitrary input: source tokens, or an image or sound that it can read; target tokens
        of a decoder."""
        config, device = self.config, self.weight.device

        def text(count: int) -> Tokens:  # none of the first ids, which often stand for padding
            return Tokens(torch.arange(5, 5 + count, device=device)[None] % config.vocab_size)

        if config.cross:
            generator = torch.Generator().manual_seed(0)
            states = torch.randn((1, source, config.d_model), generator=generator)
            return replace(text(target), source=Tokens(states=states.to(self.weight)))
        read = text(source) if config.modality == "text" else self._example_signal
        return replace(text(target), source=read) if config.form == "encoder-decoder" else read

    @cached_property
    def _example_signal(self) -> Tokens:
        """A random image or sound, of the first of some shapes that the model can read."""
        random, stated = np.random.default_rng(0), partial(stated_of, self.net.config)
        shapes: list[tuple[int, ...]]
        bins = stated("num_mel_bins", "input_feat_per_channel")
        if self.signal == "pixel_values":
            size = stated("image_size") or 224
            size = list(size.values()) if isinstance(size, dict) else size
            height, width = (size, size) if isinstance(size, int) else size[-2:]
            shapes = [(stated("num_channels") or 3, height, width)]
        elif bins:
            longest = stated("max_source_positions") or 50
            shapes = [(bins, 2 * longest), (2 * longest, bins), (stated("max_length") or 100, bins)]
        else:
            shapes = [(SAMPLES,), (100, stated("feature_projection_input_dim") or 160)]
        failures = []
        for shape in shapes:
            signal = torch.from_numpy(random.normal(size=(1, *shape)).astype(np.float32))
            try:
                count = self.positions(signal)
            except Exception as error:  # of another shape, as its parts say it
                failures.append(first_line(error))
            else:
                ids = torch.zeros(1, count, dtype=torch.long, device=self.weight.device)
                return Tokens(ids, signal=signal.to(self.weight))
        raise unseen(self.config.family, failures[0])

    def random_signals(self, count: int) -> Tokens:
        """A batch of random images or sounds, with a token of the decoder where there is one."""
        example = self.example(1, 1)
        read = example if example.source is None else example.source
        assert read.signal is not None
        generator = torch.Generator().manual_seed(0)
        signal = torch.randn((count, *read.signal.shape[1:]), generator=generator).to(read.signal)
        ids = torch.zeros(count, self.positions(read.signal), dtype=torch.long)
        signals = Tokens(ids.to(signal.device), signal=signal)
        if example.ids is None or example.source is None:
            return signals
        return replace(example, ids=example.ids.repeat(count, 1), source=signals)

    def positions(self, signal: Tensor) -> int:
        """The number of positions that the first attention layer makes of an image or sound
        (1, ...)."""
        active = ActivePass(shapes=[])
        shapes = cast(list[LayerShape], active.shapes)

        def stop(index: int) -> None:
            if shapes[-1].queries > 1:
                raise PassEnded

        active.on_layer = stop
        tokens = Tokens(signal=signal.to(self.weight))
        if self.config.form == "encoder-decoder":
            ids = torch.zeros(1, 1, dtype=torch.long, device=self.weight.device)
            tokens = Tokens(ids, source=tokens)
        with contextlib.suppress(PassEnded), torch.inference_mode():
            self.compute(tokens, active)
        return shapes[-1].queries

    def shift_right(self, ids: Tensor) -> Tensor:
        """What the decoder of a model that reads its text twice reads of ids (B, n): the same, one
        token later.

        Raises HgvizError for a text without the token at which such a classifier answers.
        """
        net, end = cast(Any, self.net), cast(Any, self.net.config).eos_token_id
        require(
            not answers_at_end(net) or bool((ids == end).any(1).all()),
            "this classifier predicts at the last end token: "
            f"the text has no token {end}, the eos_token_id in config.json",
            "Use token IDs with it, or a tokenizer that adds it",
        )
        if hasattr(net, "_shift_right"):
            return cast(Tensor, net._shift_right(ids))
        shift = sys.modules[type(net).__module__].shift_tokens_right
        arguments = ids, net.config.pad_token_id, net.config.decoder_start_token_id
        return cast(Tensor, shift(*arguments[: len(inspect.signature(shift).parameters)]))

    # --- positions and caches

    @cached_property
    def can_cache(self) -> bool:
        """Whether a token can be read with the keys and values of those before it: in text decoders
        whose blocks all attend to keys that no later token changes."""
        config = self.config
        if not config.uses_interface or config.form != "decoder" or config.modality != "text":
            return False
        if config.unattending or config.skipped_calls or "past_key_values" not in self.takes:
            return False
        rotary = str([getattr(module, "rope_type", None) for module in self.net.modules()])
        is_rescaled = any(kind in rotary for kind in RESCALED)
        return not is_rescaled and all(layer.causal for layer in config.own_layers)

    @property
    def most_positions(self) -> int | None:
        """The number of positions that position_ids may name; None where it takes none."""
        tables = [table.num_embeddings for table in _position_tables(self.net)]
        return min(tables, default=POSITION_LIMIT) if "position_ids" in self.takes else None

    @property
    def counts_padding(self) -> bool:
        """Whether padding has positions in a learned table, and position_ids are not taken."""
        return "position_ids" not in self.takes and bool(_position_tables(self.net))

    @cached_property
    def first_position(self) -> int | None:
        """The learned position of a text's first token, of a model that counts padding as well;
        None where padding is not counted, or position_ids are not taken."""
        if "position_ids" not in self.takes or self.config.form == "encoder-decoder":
            return None
        used, tables = list[list[int]](), _position_tables(self.net)
        if not tables:
            return None
        ids = self.example(SOURCE, 1).ids
        assert ids is not None
        mask = torch.ones_like(ids)
        mask[:, 0] = 0

        def record(table: nn.Module, args: tuple[Tensor, ...]) -> None:
            used.append(args[0].flatten().tolist())

        with contextlib.ExitStack() as hooks, torch.inference_mode(), _without_logs():
            for table in tables:
                hooks.enter_context(table.register_forward_pre_hook(record))
            with _activate_pass(ActivePass()):
                self.net(input_ids=ids, attention_mask=mask)
        return next((row[0] for row in used if row == [*range(row[0], row[0] + SOURCE)]), None)

    # --- output projections

    @cached_property
    def projections(self) -> list[nn.Linear | None]:
        """By layer, its output projection; None where it is not known."""
        modules = [
            self.net.get_submodule(name) if name else None for name in self.config.output_modules
        ]
        return [module if isinstance(module, nn.Linear) else None for module in modules]

    def projected(self) -> list[ExternalLayer]:
        """The layers whose output projection is known."""
        return [
            ExternalLayer(layer, output, output.in_features // len(layer.heads))
            for layer, output in zip(self.config.layers, self.projections, strict=True)
            if output is not None and layer.heads
        ]


def _numbers(keep: Tensor | None) -> Tensor | None:
    return None if keep is None else keep.long()


def _main_output(output: Any) -> Tensor:
    """Start and end logits of an answer as (B, 2, n); else the first of OUTPUTS that a model gives;
    else its first tensor."""
    ends = [getattr(output, name, None) for name in ("start_logits", "end_logits")]
    if all(isinstance(end, Tensor) for end in ends):
        return torch.stack(cast(list[Tensor], ends), 1)
    named = [output.get(name) for name in OUTPUTS] if isinstance(output, Mapping) else []
    rest = output.values() if isinstance(output, Mapping) else output
    return next(value for value in (*named, *rest) if isinstance(value, Tensor))


def vocabulary_table(net: nn.Module) -> nn.Embedding:
    """The embedding of the vocabulary, or the first embedding where a model does not name it.

    Raises HgvizError for a model without any.
    """
    try:
        named: Any = net.get_input_embeddings()  # type: ignore[operator]
    except NotImplementedError:
        named = None
    if isinstance(getattr(named, "weight", None), Tensor):
        return cast(nn.Embedding, named)
    inside = named.modules() if isinstance(named, nn.Module) else ()
    for module in (*inside, *net.modules()):
        if isinstance(module, nn.Embedding):
            return module
    raise unseen(type(net).__name__, "it has no token embedding")


def _position_tables(net: nn.Module) -> list[nn.Embedding]:
    """The embeddings of learned positions."""
    return [
        module for name, module in net.named_modules()
        if isinstance(module, nn.Embedding) and re.search("pos|wpe", name.rpartition(".")[2])
    ]  # fmt: skip


def residual_blocks(net: nn.Module) -> Iterator[nn.Module]:
    """What a model stacks: the outermost modules that stand in a list."""
    for module in net.children():
        if isinstance(module, nn.ModuleList):
            yield from module
        else:
            yield from residual_blocks(module)


def _active_boundaries() -> PatchBoundaries | None:
    active = _active.get()
    return None if active is None else active.boundaries


# --- the library ----------------------------------------------------------------------------------


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
            "Install it with pip install 'transformers>=5'",
        ) from None

    transformers.utils.logging.disable_progress_bar()
    transformers.AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, mask)
    return transformers


@contextlib.contextmanager
def _without_logs() -> Iterator[None]:
    """Within, transformers logs nothing: what it says is in our errors, or concerns nobody."""
    logs = library().utils.logging
    level = logs.get_verbosity()
    logs.set_verbosity(logs.CRITICAL)
    try:
        yield
    finally:
        logs.set_verbosity(level)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Within, transformers neither logs nor warns. Not for passes, which have threads of their own:
    warning filters are shared by all threads."""
    with _without_logs(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def library_errors(what: str, do: str) -> Iterator[None]:
    """Within, whatever transformers raises becomes an HgvizError that says what was tried."""
    try:
        yield
    except HgvizError:
        raise
    except Exception as error:  # transformers raises whatever its parts do
        raise HgvizError(f"{what}: transformers says: {first_line(error)}", do) from None


def stated_of(config: Any, *names: str) -> Any:
    """The value of the first of these names in a configuration or in that of its part for images or
    audio; None for none."""
    parts = [config, *(getattr(config, f"{part}_config", None) for part in ("vision", "audio"))]
    values = (getattr(part, name, None) for part in parts for name in names)
    return next((value for value in values if value is not None), None)
