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
import difflib
import inspect
import os
import queue
import re
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from hgviz.core import Goal, HeadId, HgvizError, Layer, Role
from hgviz.maps.rule import Rule
from hgviz.models.attention import attend
from hgviz.models.blocks import Met, Network, Pass, Steps, Tokens
from hgviz.models.config.huggingface import TransformersConfig
from hgviz.models.config.shared import norms_of
from hgviz.models.dense import Weights
from hgviz.models.devices import room
from hgviz.models.formats.checkpoint import Checkpoint, digest_of
from hgviz.models.formats.files import require_finite
from hgviz.models.formats.readers import (
    BRING,
    line_of,
    located,
    plain,
    quoted,
    read_config,
    shown,
    weights_of,
)
from hgviz.models.formats.shards import read_weights
from hgviz.models.formats.source import Source
from hgviz.models.measures.variants import Projected
from hgviz.models.positions import Biases
from hgviz.models.tap import to_numpy, value_norms
from hgviz.models.weighing import alike, per_head, scored, weigh

NAME = "hgviz"  # of our functions, where transformers looks them up
SOURCE, TARGET = 5, 3  # tokens of the short pass: by their lengths the two texts are told apart
THREAD = "hgviz: layers of a pass"
SOFTMAXES = {F.softmax, torch.softmax, Tensor.softmax}
PROVED, SAME = 33, 1e-3  # tokens that outputs are compared on, and how far they may be off
OTHERWISE = "it attends to short texts otherwise than to long ones"
CRITICAL = 50  # of logging: nothing below is said
MOST_PARTS = 1024  # layers, heads or experts that a model may have besides one for each tensor
COUNTS = "(layer|depth|block|head|expert)(?!.*(size|dim|width|rank|id|channels)s?$)"
BUFFERS = (
    "position_ids", "token_type_ids", ".masked_bias", ".attn.bias", "rotary_emb.inv_freq",
    "num_batches_tracked", "relative_position_index",
)  # fmt: skip
GOALS: tuple[tuple[str, Goal], ...] = (  # what the name of a class ends with, and what it gives
    ("ForCausalLM", "next"), ("LMHeadModel", "next"), ("ForConditionalGeneration", "next"),
    ("MTModel", "next"), ("ForMaskedLM", "masked"), ("ForPreTraining", "states"),
    ("ForSequenceClassification", "classes"), ("ForImageClassification", "classes"),
)  # fmt: skip


# --- masks that are rules -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MaskRule:
    """Which keys a query sees: the fields of a Rule, and keep (B, K), False for padded keys."""

    causal: bool = False
    band: tuple[int, int] | None = None
    chunk: int | None = None
    keep: Tensor | None = None

    def both(self, other: MaskRule) -> MaskRule | None:
        """What two see in common; None where one number cannot say it."""
        bands = [one.band for one in (self, other) if one.band is not None]
        chunks = {one.chunk for one in (self, other) if one.chunk is not None}
        if len(chunks) > 1:
            return None
        keeps = [one.keep for one in (self, other) if one.keep is not None]
        keep = None if not keeps else keeps[0] if len(keeps) == 1 else keeps[0] & keeps[1]
        band = None
        if bands:
            band = min(one[0] for one in bands), min(one[1] for one in bands)
        return MaskRule(self.causal or other.causal, band, next(iter(chunks), None), keep)


FAR = 1 << 30  # of a band that is open on one side


def rule_of(function: Any) -> MaskRule | None:
    """What a function of transformers.masking_utils lets be seen; None for what is not known here.

    They are closures: their names say which, their cells of how many tokens.
    """
    name = getattr(function, "__qualname__", "").partition(".<locals>")[0]
    closure = getattr(function, "__closure__", None) or ()
    names = function.__code__.co_freevars if closure else ()
    cells = {key: cell.cell_contents for key, cell in zip(names, closure, strict=True)}
    if name == "causal_mask_function":
        return MaskRule(causal=True)
    if name == "bidirectional_mask_function":
        return MaskRule()
    if name == "sliding_window_overlay":
        return MaskRule(band=(int(cells["sliding_window"]) - 1, FAR))
    if name == "sliding_window_bidirectional_overlay":
        return MaskRule(band=(int(cells["sliding_window"]),) * 2)
    if name == "chunked_overlay" and not bool(torch.as_tensor(cells["left_padding"]).any()):
        return MaskRule(chunk=int(cells["chunk_size"]))
    if name == "padding_mask_function":
        return MaskRule(keep=cells["padding_mask"].bool())
    if name != "and_masks":
        return None
    found: MaskRule | None = MaskRule()
    for one in map(rule_of, cells["mask_functions"]):
        found = None if found is None or one is None else found.both(one)
    return found


class Mask(torch.Tensor):
    """An additive mask (B, 1, Q, K) that holds no numbers, only how they are made (given)."""

    given: dict[str, Any]

    @staticmethod
    def __new__(cls, given: dict[str, Any], dtype: torch.dtype) -> Mask:
        shape = (given["batch_size"], 1, given["q_length"], given["kv_length"])
        made: Mask = torch.Tensor._make_wrapper_subclass(
            cls, shape, dtype=dtype, device=given["device"]
        )
        made.given = given
        return made

    @property
    def rule(self) -> MaskRule | None:
        """What it lets be seen, None where a Rule cannot say it."""
        found = rule_of(self.given["mask_function"])
        keep = self.given["attention_mask"]
        return found if found is None or keep is None else found.both(MaskRule(keep=keep.bool()))

    def numbers(self) -> Tensor:
        """0 where a key is seen, else the lowest number."""
        from transformers.masking_utils import eager_mask

        found: Tensor = eager_mask(
            dtype=self.dtype, allow_is_bidirectional_skip=False, **self.given
        )
        return found

    def __repr__(self, *, tensor_contents: Any = None) -> Any:  # type: ignore[override]
        return f"Mask{tuple(self.shape)}"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return args[0]

        def dense(value: Any) -> Any:
            if isinstance(value, Mask):
                return value.numbers()
            if isinstance(value, tuple | list):
                return type(value)(map(dense, value))
            return value

        return func(*dense(args), **{key: dense(one) for key, one in (kwargs or {}).items()})


def mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: int = 0,
    mask_function: Any = None,
    attention_mask: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
    use_vmap: bool = False,
    device: Any = "cpu",
    **_: Any,
) -> Tensor:
    """The registered function for masks; see transformers.masking_utils.eager_mask."""
    given = {
        "batch_size": batch_size, "q_length": q_length, "kv_length": kv_length,
        "q_offset": q_offset, "kv_offset": kv_offset, "mask_function": mask_function,
        "attention_mask": attention_mask, "use_vmap": use_vmap, "device": device,
    }  # fmt: skip
    return Mask(given, dtype)


# --- attention ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """What a layer asked for: q (B, H, Q, D), k and v (B, G, K, D), the rule they meet by, and
    keep (B, K) and bias of it. added: what is added to scores that no rule can say; sinks
    (B, H, Q, 1): logits of every query that have no key, where they are not those of a head."""

    q: Tensor
    k: Tensor
    v: Tensor
    rule: Rule
    keep: Tensor | None = None
    bias: Biases | None = None
    added: Tensor | None = None
    sinks: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A layer that the short pass met: how many heads it has, of so many queries and keys."""

    heads: int
    queries: int
    keys: int
    causal: bool


@dataclass(slots=True)
class Running:
    """One pass: what is asked of it, and what is told of each layer when it is done."""

    network: Transformers | None = None
    run: Pass = field(default_factory=Pass)
    after: Callable[[int], None] = lambda index: None
    met: list[Found] | None = None  # of the short pass
    texts: int = 1  # side by side
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
            if call in config.apart:
                return None
            one = config.own[index] if index < len(config.own) else None
            lengths = (
                None if one is None else (self.lengths[one.level], self.lengths[one.key_level])
            )
            if lengths != (queries, keys):
                raise _unseen(config.family, OTHERWISE)
        self.count += 1
        return index


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
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    position_bias: Tensor | None = None,
    s_aux: Tensor | None = None,
    is_causal: bool | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """The registered function for attention: context (B, Q, H, D), and no weights."""
    sinks = more.get("sinks") if s_aux is None else s_aux
    attention_mask = _chosen(module, query, key, attention_mask, more)
    call = _call(query, key, value, attention_mask, scaling, softcap, position_bias, sinks)
    running = _running.get() or Running()
    index = running.layer(*call.q.shape[2:3], *call.k.shape[2:3])
    if index is None:
        return _attended(call, 0, Pass(), None).transpose(1, 2).contiguous(), None
    if running.met is not None:
        heads, queries = call.q.shape[1:3]
        running.met.append(Found(heads, queries, call.k.shape[2], call.rule.causal))
    if running.network is not None:
        call = replace(call, rule=running.network.ruled(index, call.rule))
    projections = () if running.network is None else running.network.projections
    out = projections[index] if index < len(projections) else None
    context = _attended(call, index, running.run, out)
    if (gates := running.run.gates.get(index)) is not None:
        context = context * gates[:, :, None, None]
    if running.run.record is not None:
        running.run.record.contexts[index] = context
    running.after(index)
    found = context.transpose(1, 2).contiguous()
    running.given = found.numel()
    return found, None


def _chosen(
    module: nn.Module, q: Tensor, k: Tensor, mask: Tensor | None, more: Mapping[str, Any]
) -> Tensor | None:
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
    assert mask is not None
    return mask.masked_fill(left, torch.finfo(q.dtype).min)


def _call(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    scaling: float | None,
    softcap: float | None,
    position_bias: Tensor | None,
    sinks: Tensor | None,
) -> Call:
    heads, queries, keys = q.shape[1], q.shape[2], k.shape[2]
    scale = q.shape[-1] ** -0.5 if scaling is None else float(scaling)
    found: MaskRule | None = MaskRule()
    if isinstance(mask, Mask):
        found = mask.rule
    elif mask is not None:
        found = _seen(mask)
    added = None
    if found is None or (queries != keys and (found.band or found.chunk)):
        assert mask is not None
        found, added = MaskRule(), mask.numbers() if isinstance(mask, Mask) else mask
    bias = None
    if position_bias is not None:
        line = diagonals(position_bias) if added is None else None
        if line is None:
            added = position_bias if added is None else added + position_bias
        elif line.any():
            bias = Biases((line / scale).to(q.dtype), 1 - queries)
    each = sinks if sinks is not None and sinks.numel() > heads else None
    if each is not None and added is None:
        added = q.new_zeros(())
    keep = None if found.keep is None or bool(found.keep.all()) else found.keep
    band = found.band
    if band is not None:  # as wide as the text at most
        band = min(band[0], keys), min(band[1], keys)
        band = None if found.causal and band[0] >= keys else (band[0], 0) if found.causal else band
    rule = Rule(
        scale, ("softmax",) * heads, (None,) * heads, causal=found.causal, band=band,
        chunk=found.chunk, softcap=softcap,
        sinks=None if sinks is None or each is not None
        else to_numpy(sinks.detach().float().reshape(-1)),
    )  # fmt: skip
    return Call(q, k, v, rule, keep, bias, added, each)


def _seen(mask: Tensor) -> MaskRule | None:
    """What a mask of numbers lets be seen, where all rows see the same keys, or those up to their
    own too; None for any other."""
    seen = mask if mask.dtype == torch.bool else mask > -1e4
    if mask.dtype != torch.bool and not ((mask == 0) | (mask <= -1e4)).all():
        return None
    if seen.dim() != 4 or not (seen == seen[:, :1]).all():
        return None
    queries, keys = seen.shape[-2:]
    keep = seen.any(-2)[:, 0]
    causal = queries == keys and not bool(seen[..., 0, 1:].any())
    wanted = keep[:, None, None].expand(seen.shape[0], 1, queries, keys)
    if causal:
        wanted = wanted.tril()
    return MaskRule(causal=causal, keep=keep) if torch.equal(wanted, seen[:, :1]) else None


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


def _attended(call: Call, index: int, run: Pass, out: nn.Linear | None) -> Tensor:
    """Context (B, H, Q, D) of a call, heads off, its tap told; out: what it goes through then."""
    heads, off = call.q.shape[1], [one.head for one in run.off if one.layer == index]

    def told(found: Any) -> None:
        assert run.tap is not None
        norms = None
        if out is not None and out.in_features == heads * call.v.shape[-1]:
            norms = to_numpy(value_norms(per_head(call.v, heads), out.weight))
        run.tap(index, replace(found, value_norms=norms))

    tap = None if run.tap is None else told
    if run.met is not None:
        k, v = per_head(call.k, heads), per_head(call.v, heads)
        run.met[index] = Met(call.q, k, v, call.keep, call.bias, call.rule)
    if call.added is None:
        return attend(
            call.q, call.k, call.v, call.rule, keep=call.keep, relative=call.bias, off=off,
            **{"maps" if run.dense else "tap": tap},
        )  # fmt: skip
    weights = dense(call)
    if tap is not None:
        tap(Weights(to_numpy(weights[0]), False, False))
    context = weights @ per_head(call.v, heads)
    return context.index_fill(1, torch.tensor(off, device=context.device), 0.0) if off else context


def dense(call: Call) -> Tensor:
    """The weights (B, H, Q, K) of a softmax whose scores have something added that no rule says."""
    if any(name != "softmax" for name in call.rule.activations):
        raise unexchanged("its model adds numbers to every score that no other activation knows")
    (one,) = alike(call.q, per_head(call.k, call.q.shape[1]), call.rule)
    scores, seen = scored(one, torch.arange(call.q.shape[2], device=call.q.device), call.keep)
    exact, lowest = scores.to(torch.promote_types(scores.dtype, torch.float32)), -1e30
    exact = exact.masked_fill(~seen, lowest)
    assert call.added is not None
    if call.added.dtype == torch.bool:
        exact = exact.masked_fill(~call.added, lowest)
    else:
        exact = (exact + call.added.to(exact.dtype)).clamp(min=lowest)
    sinks = one.sinks if call.sinks is None else call.sinks
    return weigh(exact, None, "softmax", sinks=sinks).to(call.q.dtype)


def unexchanged(why: str) -> HgvizError:
    """Why a layer keeps its softmax."""
    return HgvizError(
        "the activation of this layer cannot be exchanged", why, "Exchange that of another model"
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
        if func not in SOFTMAXES or not isinstance(found, Tensor) or found.shape[-1] < 2:
            return found
        if found.dim() == 4 and along in (-1, 3):
            return self._seen(found)
        heads, rest = divmod(len(found), self.running.texts)
        if found.dim() == 3 and along in (-1, 2) and heads > 1 and not rest:
            return self._seen(found.unflatten(0, (-1, heads))).flatten(0, 1)
        return found

    def _seen(self, weights: Tensor) -> Tensor:
        running, run = self.running, self.running.run
        queries, keys = weights.shape[2:]
        if (index := running.layer(queries, keys)) is None:
            return weights
        causal = queries == keys and not bool(weights.detach().triu(1).any())
        if running.met is not None:
            running.met.append(Found(weights.shape[1], queries, keys, causal))
        running.given = -weights.shape[1]  # how wide they are is not known here
        if run.tap is not None:
            run.tap(index, Weights(to_numpy(weights[0]), False, causal))
        off = [one.head for one in run.off if one.layer == index]
        if off:
            weights = weights.index_fill(1, torch.tensor(off, device=weights.device), 0.0)
        if (gates := run.gates.get(index)) is not None:
            weights = weights * gates[:, :, None, None]
        running.after(index)
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
        for block in _blocks(net):
            block.forward = partial(_block, self, block, block.forward)

    @property
    def table(self) -> nn.Embedding:
        """The embeddings of the vocabulary."""
        return _table(self.net)

    def projected(self) -> list[Projected]:
        """The layers whose heads go through a product that is known."""
        found = []
        for layer, out in zip(self.config.layers, self.projections, strict=True):
            if out is not None:
                found.append(Projected(layer, out, out.in_features // len(layer.heads)))
        return found

    @cached_property
    def projections(self) -> list[nn.Linear | None]:
        """By layer, the product that what heads give goes through; None where it is not known."""
        modules = {f"{name}.weight": one for name, one in self.net.named_modules()}
        found = [modules.get(_same(self.net, name, modules)) for name in self.config.outputs]
        return [one if isinstance(one, nn.Linear) else None for one in found]

    @cached_property
    def takes(self) -> Collection[str]:
        """The names of what the model can be given."""
        return inspect.signature(self.net.forward).parameters.keys()

    def ruled(self, index: int, rule: Rule) -> Rule:
        """The rule of a layer with the activations that its spec says."""
        names = self.config.layers[index].activations
        if names == rule.activations:
            return rule
        norms = norms_of(names, self.config.norms)
        return replace(rule, activations=names, norms=norms, top_k=self.config.top_k)

    def steps(self, tokens: Tokens, run: Pass | None = None) -> Steps:
        """As Network; layers are waited for only where something is kept of each."""
        run = run or Pass()
        if run.tap is None:
            found = self._logits(tokens, Running(self, run))
            yield from range(len(self.config.layers))
            return found
        told = partial(Running, self, run)
        return (yield from _by_layers(lambda after: self._logits(tokens, told(after))))

    def _logits(self, tokens: Tokens, running: Running) -> Tensor:
        given: dict[str, Any] = {"use_cache": False, "return_dict": True}
        texts = {"": tokens} if tokens.source is None else {"": tokens.source, "decoder_": tokens}
        for prefix, one in texts.items():
            given |= {
                f"{prefix}input_ids": one.ids if one.embedded is None else None,
                f"{prefix}attention_mask": None if one.keep is None else one.keep.long(),
                f"{prefix}inputs_embeds": one.embedded,
            }
        if tokens.segments is not None:
            given["token_type_ids"] = tokens.segments
        if "bbox" in self.takes:  # where on a page each word stands: nowhere
            one = texts[""]
            words = cast(Tensor, one.embedded if one.ids is None else one.ids)
            given["bbox"] = words.new_zeros((*words.shape[:2], 4), dtype=torch.long)
        sizes = [
            cast(Tensor, one.ids if one.embedded is None else one.embedded).shape[:2]
            for one in texts.values()
        ]
        running.texts, running.lengths = sizes[0][0], tuple(size[1] for size in sizes)
        watched = contextlib.nullcontext() if self.config.asks else Softmaxes(running)
        with _pass(running), watched, _unlogged():
            out = self.net(**{name: one for name, one in given.items() if one is not None})
        if running.network is not None and running.count != len(self.config.own):
            raise _unseen(self.config.family, OTHERWISE)
        return _output(out)


def _table(net: nn.Module) -> nn.Embedding:
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
    raise _unseen(type(net).__name__, "it has no table of tokens, so it reads no texts")


def _output(out: Any) -> Tensor:
    """Logits, else states, where a model gives several things: the first that it gives of these,
    of start and end of an answer both (B, n, 2), else the first of all."""
    if getattr(out, "start_logits", None) is not None:
        return torch.stack([out.start_logits, out.end_logits], -1)
    names = ("logits", "prediction_logits", "last_hidden_state")
    found = [out.get(name) for name in names] if isinstance(out, Mapping) else []
    rest = out.values() if isinstance(out, Mapping) else out
    return next(one for one in (*found, *rest) if isinstance(one, Tensor))


def _blocks(net: nn.Module) -> Iterator[nn.Module]:
    """What a model stacks: the outermost modules that stand in a list."""
    for part in net.children():
        if isinstance(part, nn.ModuleList):
            yield from part
        else:
            yield from _blocks(part)


def _parts(module: nn.Module) -> Iterator[nn.Module]:
    """What a module is made of, lists of modules taken apart."""
    for part in module.children():
        yield from _parts(part) if isinstance(part, nn.ModuleList) else (part,)


def _block(
    network: Transformers, block: nn.Module, forward: Callable[..., Any], *given: Any, **named: Any
) -> Any:
    """A block of a pass: what it gave before where that is known, else what it gives, to keep.

    Only of blocks whose layers attend and which give the stream alone: others may hand on more, as
    T5's first does its biases.
    """
    running = _running.get()
    if running is None:
        return forward(*given, **named)
    first = running.count
    last, calls = network.spans.get((block, first), (-1, 0))
    if last >= 0 and (known := running.run.skipped(last)) is not None:
        running.count, running.calls = last + 1, calls
        return known
    found = forward(*given, **named)
    if running.count > first and isinstance(found, Tensor):
        network.spans[block, first] = running.count - 1, running.calls
        running.run.left(running.count - 1, found)
    return found


def _by_layers(work: Callable[[Callable[[int], None]], Tensor]) -> Steps:
    """A pass in a thread of its own, which waits after each layer until the next one is wanted: no
    model of transformers can be left in the middle and gone on with in one thread."""
    told: queue.Queue[tuple[str, Any]] = queue.Queue()
    go, stop = threading.Semaphore(0), threading.Event()
    mode = torch.is_inference_mode_enabled()

    def after(index: int) -> None:
        told.put(("layer", index))
        go.acquire()
        if stop.is_set():
            raise GeneratorExit

    def whole() -> None:
        try:
            with torch.inference_mode(mode):
                told.put(("done", work(after)))
        except BaseException as error:  # it is raised again where the layers are waited for
            told.put(("failed", error))

    thread = threading.Thread(target=copy_context().run, args=(whole,), name=THREAD, daemon=True)
    thread.start()
    try:
        while True:
            kind, value = told.get()
            if kind == "done":
                return cast(Tensor, value)
            if kind == "failed":
                raise value
            yield value
            go.release()
    finally:
        stop.set()
        go.release()
        thread.join()


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
            "this model needs the package transformers, version 5 or later",
            line_of(error),
            "Install it: pip install 'transformers>=5'",
        ) from None

    transformers.utils.logging.disable_progress_bar()
    transformers.AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, mask)
    return transformers


def random_model(folder: Path) -> Path:
    """Write a Gemma 2 of two layers and random weights, which reads bytes, into a folder; gives
    that folder. It is there to see whether transformers works."""
    made = library()
    torch.manual_seed(0)
    sizes = made.Gemma2Config(
        vocab_size=256, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, intermediate_size=48, sliding_window=4,
        layer_types=["sliding_attention", "full_attention"],
    )  # fmt: skip
    with _quiet():
        made.Gemma2ForCausalLM(sizes).save_pretrained(folder)
    return folder


def known_types() -> dict[str, str]:
    """The model types that transformers knows, each with the name of its configuration."""
    library()
    from transformers.models.auto import configuration_auto

    found: Any = configuration_auto
    return dict(found.CONFIG_MAPPING_NAMES)


def require_known(data: Mapping[str, Any], where: str) -> str:
    """The model type of a config.json. Errors: HgvizError for code of its own, and unknown ones."""
    if data.get("auto_map"):
        raise HgvizError(
            f"{where} asks for code of its own",
            "its auto_map names Python files, and hgviz runs nothing that comes with a model",
            "Use a model of an architecture that transformers itself has",
        )
    kind, known = data.get("model_type"), known_types()
    if isinstance(kind, str) and kind in known:
        return kind
    near = difflib.get_close_matches(str(kind), known, 3, 0.6)
    stated, version = quoted(kind), library().__version__
    why = f"its model_type is {stated}, which transformers {version} does not know"
    if near:
        names = ", ".join(near)
        why = f"transformers {version} does not know {stated}; the nearest it knows are {names}"
    raise HgvizError(f"{where} is of a model that hgviz cannot run", why, BRING)


def classes_of(kind: str | None = None) -> set[str]:
    """The names of every class, or of those of a model type."""
    from transformers.models.auto import modeling_auto

    every: set[str] = set()
    for name in dir(modeling_auto):
        if name.endswith("_MAPPING_NAMES"):
            for key, one in getattr(modeling_auto, name).items():
                if kind in (None, key):
                    every |= {one} if isinstance(one, str) else set(one)
    return every


def class_of(data: Mapping[str, Any], kind: str) -> str:
    """The name of the class that a config.json names, else of the bare model of its type."""
    from transformers.models.auto import modeling_auto

    stated = data.get("architectures")
    first = stated[0] if isinstance(stated, list) and stated else None
    if isinstance(first, str) and first in classes_of() and hasattr(library(), first):
        return first
    bare = modeling_auto.MODEL_MAPPING_NAMES.get(kind)
    if isinstance(bare, str):
        return bare
    raise HgvizError(
        f"hgviz does not know which model {kind} is",
        f"its config.json names the architecture {quoted(first)}",
        "Save it again by transformers, as one of its own classes",
    )


def read(path: Path) -> Checkpoint:
    """A folder that save_pretrained wrote: its tensors as in its files, and its layers as they
    attend.

    Its files are read by hgviz's own bounded readers. Errors: HgvizError for whatever is missing,
    damaged, not known or does not fit together.
    """
    where, weights = located(path)[0], weights_of(path)
    data = read_config(where)
    kind = require_known(data, shown(where))
    made = getattr(library(), class_of(data, kind))
    own = getattr(made.config_class, "model_type", kind)
    if own != kind and made.__name__ not in classes_of(kind):
        raise HgvizError(
            f"{shown(where)} says two things",
            f"its model_type is {quoted(kind)}, and {made.__name__} is of the type {own}",
            "Put the config.json beside the weights that came with them",
        )
    held = read_weights(weights, lambda name: name.endswith(BUFFERS))
    require_finite(weights, held)
    stated = _stated(data, kind, where, weights, held)
    _require_fit(made, stated, where, weights, held)
    try:
        asks = _asks(made)
        try:
            net, missing = _loaded(made, stated, held, torch.float32, asks)
        except KeyError:  # a part looks attention up in a table of its own
            asks = False
            net, missing = _loaded(made, stated, held, torch.float32, asks)
        if missing:
            raise _unfit(where, weights, f"the file lacks {_listed(missing)}")
        network = Transformers(net, replace(_config(net, kind, made.__name__, data), asks=asks))
        config = network.config = _layers(network, held)
        _require_same(network)
    except HgvizError:
        raise
    except Exception as error:  # transformers raises whatever its parts do
        raise _unbuilt(where, error) from None
    config.box[:] = [network, held]
    sources = {name: Source(name) for name in held}
    return Checkpoint(config, held, digest_of(config, held), weights, sources)


def build(
    config: TransformersConfig, tensors: Mapping[str, Tensor], device: str, dtype: torch.dtype
) -> Transformers:
    """The model of a configuration with these tensors, by the names of its files.

    Errors: HgvizError for another activation where its softmaxes are its own.
    """
    if not config.asks and config.activations != ("softmax",):
        raise unexchanged("its model has attention code of its own")
    if config.box and config.box[1] is tensors and dtype == torch.float32:
        network = cast(Transformers, config.box[0])
        config.box.clear()
        network.config = config
    else:
        made = getattr(library(), config.made)
        with _quiet():
            stated = made.config_class.from_dict(_numbered(config.data))
        net, _ = _loaded(made, stated, tensors, dtype, config.asks)
        network = Transformers(net, config)
    with room(device, f"the model has {sum(map(Tensor.numel, tensors.values())):,} parameters"):
        return network.to(device)


def _asks(made: Any) -> bool:
    """Whether a class asks transformers for attention, by what it says of itself."""
    told = getattr(made, "_can_set_attn_implementation", None)
    return bool(told()) if told is not None else True


def _loaded(
    made: Any, stated: Any, tensors: Mapping[str, Tensor], dtype: torch.dtype, asks: bool
) -> tuple[Any, list[str]]:
    """A model with these tensors, and the names of those it lacks."""
    with (
        _quiet(),
        room("cpu", f"its tensors take {sum(t.nbytes for t in tensors.values()):,} bytes"),
    ):
        net, told = made.from_pretrained(
            None, config=stated, state_dict=dict(tensors), dtype=dtype,
            attn_implementation=NAME if asks else "eager", output_loading_info=True,
        )  # fmt: skip
    missing = [one for one in told["missing_keys"] if not one.endswith(BUFFERS)]
    return net.eval().requires_grad_(False), sorted(missing)


def _stated(
    data: dict[str, Any], kind: str, where: Path, weights: Path, held: Mapping[str, Tensor]
) -> Any:
    """What a config.json says, as transformers reads it; never more layers than there are tensors,
    since to make each takes its time."""
    library()
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    for key, value in _counts(data):
        if value > max(MOST_PARTS, len(held)):
            raise _unfit(where, weights, f"it holds {len(held):,} tensors, and {key} is {value:,}")
    try:
        with _quiet():
            return CONFIG_MAPPING[kind].from_dict(_numbered(data))
    except Exception as error:
        raise _unbuilt(where, error) from None


def _numbered(data: Any) -> Any:
    """What a config.json says, with the numbers that JSON lacks, as transformers writes them."""
    if isinstance(data, Mapping):
        if data.keys() == {"__float__"}:
            return float(data["__float__"])
        return {key: _numbered(one) for key, one in data.items()}
    return [*map(_numbered, data)] if isinstance(data, list) else data


def _counts(data: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """How many layers, heads and experts a config.json wants, its parts' too."""
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _counts(value)
        elif type(value) is int and re.search(COUNTS, key):
            yield key, value


def _require_fit(
    made: Any, stated: Any, where: Path, weights: Path, held: Mapping[str, Tensor]
) -> None:
    """Errors: HgvizError for tensors of another size than the model's, of which none is made."""
    try:
        with _quiet(), torch.device("meta"):
            wanted = {name: tuple(one.shape) for name, one in made(stated).state_dict().items()}
    except Exception as error:
        raise _unbuilt(where, error) from None
    for name, tensor in held.items():
        shape = wanted.get(name)
        if shape is not None and shape != tuple(tensor.shape):
            sizes = " x ".join(map(str, shape)), " x ".join(map(str, tensor.shape))
            raise _unfit(
                where, weights, f"{plain(name)} is {sizes[1]} in it, and {sizes[0]} by config.json"
            )


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
def _quiet() -> Iterator[None]:
    """The same, and no warning; not in passes, which have threads of their own: filters of warnings
    are those of all threads."""
    with _unlogged(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _unfit(where: Path, weights: Path, why: str) -> HgvizError:
    do = "Put the config.json beside them that came with these weights"
    return HgvizError(f"{shown(weights)} does not fit its config.json", why, do)


def _unbuilt(where: Path, error: Exception) -> HgvizError:
    why = f"transformers says: {line_of(error)}"
    return HgvizError(f"{shown(where)} does not describe a model that can be built", why,
                      "Copy or download it again")  # fmt: skip


def _listed(names: Sequence[str]) -> str:
    return plain(names[0]) + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _config(net: Any, kind: str, name: str, data: Mapping[str, Any]) -> TransformersConfig:
    told, text = net.config, _text_config(net)
    goal: Goal = next((goal for end, goal in GOALS if name.endswith(end)), "states")
    labels = tuple(plain(str(one)) for _, one in sorted((told.id2label or {}).items()))
    both = bool(getattr(told, "is_encoder_decoder", False))
    table = _table(net)
    return TransformersConfig(
        family=kind, made=name, data=data,
        width=int(getattr(text, "hidden_size", table.weight.shape[1])),
        vocab_size=int(table.weight.shape[0]), max_positions=None, goal=goal,
        labels=labels if goal == "classes" else (), form="encoder-decoder" if both else "",
    )  # fmt: skip


def _text_config(net: Any) -> Any:
    told = net.config
    return told.get_text_config(decoder=True) if hasattr(told, "get_text_config") else told


def _positions(used: Mapping[nn.Module, str], config: Any) -> int | None:
    """How many positions the tables of them have, of all modules that were used with their names;
    None where they are turned or biased."""
    stated = getattr(config, "max_position_embeddings", None)
    tables = [
        one.num_embeddings - (0 if one.padding_idx is None else one.padding_idx + 1)
        for one, name in used.items()
        if isinstance(one, nn.Embedding) and ("pos" in name.rpartition(".")[2] or "wpe" in name)
    ]
    if not tables:
        return None
    return min(*tables, stated) if isinstance(stated, int) and stated > 0 else min(tables)


def _layers(network: Transformers, held: Mapping[str, Tensor]) -> TransformersConfig:
    """The configuration with what attends, in order, and with the tensors that heads are put
    together by: told by a pass over a few tokens."""
    config, running, outputs = network.config, Running(met=[]), dict[int, str]()
    both = config.form == "encoder-decoder"
    names = {module: name for name, module in network.net.named_modules()}
    path, stack, used = dict[int, str](), list[str](), dict[nn.Module, str]()
    blocks, silent = dict.fromkeys(_blocks(network.net), 0), list[tuple[str, str]]()

    def before(module: nn.Module, given: tuple[Any, ...]) -> None:
        stack.append(names[module])
        used[module] = names[module]
        if module in blocks:
            blocks[module] = running.count
        if not isinstance(module, nn.Linear) or not running.given:
            return
        wanted, running.given = running.given, 0
        first = given[0] if given else None
        # of a softmax only the number of heads is known, as a negative one
        fits = isinstance(first, Tensor) and (
            first.numel() == wanted or (wanted < 0 and not module.in_features % -wanted)
        )
        if fits:
            outputs[running.count - 1] = names[module]

    def after(module: nn.Module, given: Any, found: Any) -> None:
        stack.pop()
        first = found[0] if isinstance(found, tuple) and found else found
        parts = [type(one).__name__ for one in _parts(module)]
        whole = module in blocks and isinstance(first, Tensor) and first.dim() == 3 and parts
        if whole and blocks[module] == running.count:
            mixers = [one for one in parts if not re.search("Norm|Dropout", one)]
            silent.append((names[module], ", ".join(dict.fromkeys(mixers))))

    running.after = lambda index: path.__setitem__(index, stack[-1] if stack else "")
    hooks = [one.register_forward_pre_hook(before) for one in names]
    hooks += [one.register_forward_hook(after, always_call=True) for one in names]
    given = Tokens(_ids(network, SOURCE))
    given = Tokens(_ids(network, TARGET), source=given) if both else given
    try:
        with torch.inference_mode():
            network._logits(given, running)
    finally:
        for hook in hooks:
            hook.remove()
    if {*network.net.modules()} != {*names}:  # as BigBird does
        raise _unseen(config.family, OTHERWISE)
    outputs = _proved(network, given, running.met or [], outputs)
    found, places = list[Layer](), list[int]()
    lengths = (SOURCE, TARGET) if both else (SOURCE,)
    for call, one in enumerate(running.met or ()):
        role: Role = "self"
        if both and one.queries == TARGET and one.keys == SOURCE:
            role = "cross"
        elif one.queries != one.keys or one.queries not in lengths:
            silent.append((path[call], "attention to something else than the tokens of a text"))
            continue
        level, heads = int(both and one.queries == TARGET), tuple(range(one.heads))
        places.append(call)
        found.append(
            Layer(
                len(found), path[call] or f"layer.{call}", role, level,
                0 if role == "cross" else level, heads, ("softmax",) * len(heads), one.causal,
            )
        )  # fmt: skip
    if not found and running.met:
        raise _unseen(config.family, f"{path[0]} weighs other keys than those of its text")
    if not found:
        raise _unseen(config.family, "it neither asks transformers for it nor weighs by a softmax")
    form = config.form or ("decoder" if any(one.causal for one in found) else "encoder")
    if form == "encoder" and config.goal == "next":  # as XLNet, which sees the token that it says
        config = replace(config, goal="states")
    tensors = [f"{outputs[at]}.weight" if at in outputs else "" for at in places]
    files = tuple(_same(network.net, one, held) for one in tensors)
    positions = _positions(used, _text_config(network.net))
    return replace(
        config, own=tuple(found), form=form, outputs=files, max_positions=positions,
        unattending=tuple(dict(silent).items()),
        apart=frozenset({*range(len(running.met or ()))} - {*places}),
    )  # fmt: skip


def _ids(network: Transformers, count: int) -> Tensor:
    """(1, count) Tokens of a text, none of the first, which often stand for padding."""
    ids = torch.arange(5, 5 + count, device=network.table.weight.device)
    return ids[None] % network.config.vocab_size


def _proved(
    network: Transformers, given: Tokens, met: Sequence[Found], outputs: Mapping[int, str]
) -> dict[int, str]:
    """Of the products that seemed to come after heads, those that are given zeros where the first
    head of their layer is off."""
    zeros: dict[int, bool] = {}

    def looked(index: int, module: nn.Module, given: tuple[Any, ...]) -> None:
        width = given[0].shape[-1] // met[index].heads
        zeros[index] = zeros.get(index, True) and not bool(given[0][..., :width].any())

    hooks = [
        network.net.get_submodule(name).register_forward_pre_hook(partial(looked, index))
        for index, name in outputs.items()
    ]
    off = frozenset(HeadId(index, 0) for index in outputs)
    try:
        with torch.inference_mode():
            network._logits(given, Running(run=Pass(off)))
    finally:
        for hook in hooks:
            hook.remove()
    return {index: name for index, name in outputs.items() if zeros.get(index)}


def _require_same(network: Transformers) -> None:
    """Errors: HgvizError where a model gives something else by our attention than by its own, so
    that its maps would not be what it does."""
    config = network.config
    if not config.asks:
        return
    length = min(PROVED, config.max_positions or PROVED)
    ids = _ids(network, length)
    given = Tokens(ids)
    if config.form == "encoder-decoder":
        given = Tokens(ids[:, : length // 2], source=given)
    net: Any = network.net
    with torch.inference_mode(), _quiet():
        ours = network._logits(given, Running())
        net.set_attn_implementation("eager")
        theirs = network._logits(given, Running())
        net.set_attn_implementation(NAME)
    apart, largest = float((ours - theirs).abs().max()), float(theirs.abs().max())
    if not apart <= SAME * max(1.0, largest):
        raise _unseen(
            config.family, f"by hgviz's attention its outputs are {apart:.1e} off, so it has more "
            "to it than hgviz knows",
        )  # fmt: skip


def _unseen(family: str, why: str) -> HgvizError:
    return HgvizError(
        f"hgviz does not see the attention of {family}", why, BRING,
    )  # fmt: skip


def _same(net: nn.Module, tensor: str, known: Collection[str]) -> str:
    """What a tensor is called among others: with or without the name of the bare model before it;
    "" where it is not there. So files and modules name one and the same."""
    prefix = f"{getattr(net, 'base_model_prefix', '')}."
    every = (tensor, prefix + tensor, tensor.removeprefix(prefix))
    return next((one for one in every if tensor and one in known), "")
