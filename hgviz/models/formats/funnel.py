"""Funnel-Transformers as the package transformers keeps them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from torch import Tensor

from hgviz.core import Goal, HgvizError
from hgviz.models.config import FunnelConfig
from hgviz.models.config.funnel import Decoders
from hgviz.models.config.shared import Count, Depth, Heads, Width
from hgviz.models.formats import huggingface
from hgviz.models.formats.huggingface import Source, Stated
from hgviz.models.formats.readers import converted

PREFIX = "funnel."
OUTER: tuple[str, ...] = ("lm_head.", "classifier.", "discriminator_predictions.")
EMBEDDING, HEAD = "embeddings.word_embeddings.weight", "lm_head.weight"
INSTEAD: dict[str, str] = {}
BUFFERS = re.compile(r"(?!)")
GOALS: dict[str, Goal] = {
    "FunnelModel": "states",
    "FunnelBaseModel": "states",
    "FunnelForMaskedLM": "masked",
    "FunnelForSequenceClassification": "classes",
}
SHORT = ("FunnelBaseModel", "FunnelForSequenceClassification")  # no decoder


class _Stated(Stated, frozen=True, kw_only=True):
    vocab_size: Count = 30522
    block_sizes: tuple[Depth, ...] = (4, 4, 4)
    block_repeats: tuple[Depth, ...] | None = None
    num_decoder_layers: Decoders = 2
    d_model: Width = 768
    n_head: Heads = 12
    d_head: Width = 64
    d_inner: Width = 3072
    hidden_act: str = "gelu_new"
    layer_norm_eps: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1e-9
    pooling_type: Literal["mean", "max"] = "mean"
    attention_type: Literal["relative_shift", "factorized"] = "relative_shift"  # the same numbers
    separate_cls: bool = True
    truncate_seq: bool = True
    pool_q_only: bool = True


def settle(data: dict[str, Any], names: Collection[str], where: str) -> FunnelConfig:
    """The configuration that config.json describes; names of tensors where it says no goal."""
    one = converted(data, _Stated, where)
    if one.block_repeats not in (None, (1,) * len(one.block_sizes)):
        raise HgvizError(
            f"{where} does not describe a model hgviz can build",
            "block_repeats: there are layers that are run several times, with the same weights",
            "Choose a checkpoint whose layers are run once",
        )
    goal = huggingface.goal_of(one, GOALS, lambda: _guess(names), where)
    named = one.architectures[0] if one.architectures else ""
    decoded = any(name.startswith("decoder.") for name in names) or goal == "masked"
    short = named in SHORT if named else not decoded
    return FunnelConfig(
        vocab_size=one.vocab_size,
        d_model=one.d_model,
        n_heads=one.n_head,
        n_layers=one.block_sizes,
        form="base" if short else "funnel",
        decoder_layers=0 if short else one.num_decoder_layers,
        d_head=one.d_head,
        d_ff=one.d_inner,
        pooling=one.pooling_type,
        pool_queries=one.pool_q_only,
        apart=one.separate_cls,
        truncated=one.truncate_seq,
        feed_forward=huggingface.non_linearity(one.hidden_act, "hidden_act", where),
        norm_eps=one.layer_norm_eps,
        goal=goal,
        labels=huggingface.labels_of(one, where) if goal == "classes" else (),
        tied=one.tie_word_embeddings,
    )


def _guess(names: Collection[str]) -> Goal:
    if any(name.startswith("classifier.") for name in names):
        return "classes"
    return "masked" if "lm_head.bias" in names else "states"


# --- names ----------------------------------------------------------------------------------------

_MODULES = {
    "embed.token": "embeddings.word_embeddings",
    "embed.ln": "embeddings.layer_norm",
    "attn.q": "attention.q_head",
    "attn.k": "attention.k_head",
    "attn.v": "attention.v_head",
    "attn.o": "attention.post_proj",
    "ln_attn": "attention.layer_norm",
    "ff.in": "ffn.linear_1",
    "ff.out": "ffn.linear_2",
    "ln_ff": "ffn.layer_norm",
    "head.in": "classifier.linear_hidden",
    "head.out": "classifier.linear_out",
    "lm_head": "lm_head",
}
# by the axes of a file's tensor that become those of heads, and what follows them
_HEADS = {
    "attn.r.weight": ("attention.r_kernel", (1, 2, 0)),
    "attn.content_bias": ("attention.r_w_bias", (0, 1)),
    "attn.position_bias": ("attention.r_r_bias", (0, 1)),
    "attn.kind_bias": ("attention.r_s_bias", (0, 1)),
    "attn.kind": ("attention.seg_embed", (1, 0, 2)),
}


@dataclass(frozen=True, slots=True)
class OfHeads(Source):
    """A tensor that keeps its heads on an axis of their own; axes: where the file has them and what
    follows. Of three whose heads come second, the neutral tensor has the first two as rows."""

    axes: tuple[int, ...] = ()
    heads: int = 1

    def shape(self, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the tensor in the file."""
        if self._joined:
            wanted = (self.heads, wanted[0] // self.heads, *wanted[1:])
        return tuple(wanted[self.axes.index(axis)] for axis in range(len(wanted)))

    def take(self, tensor: Tensor) -> Tensor:
        """The neutral tensor out of the file's."""
        found = tensor.permute(self.axes)
        return (found.flatten(0, 1) if self._joined else found).contiguous()

    def put(self, tensor: Tensor, new: Tensor) -> Tensor:
        """The file's tensor with another neutral tensor in it."""
        whole = new.unflatten(0, (self.heads, -1)) if self._joined else new
        back = [self.axes.index(axis) for axis in range(len(self.axes))]
        return whole.permute(back).to(tensor.dtype).contiguous()

    @property
    def _joined(self) -> bool:
        return self.axes == (1, 2, 0)


def source(name: str, config: FunnelConfig) -> Source:
    """Where the files keep a neutral tensor."""
    if name == "bias":
        return Source("lm_head.bias")
    if not name.startswith("layers."):
        module, _, kind = name.rpartition(".")
        return Source(f"{_MODULES[module]}.{kind}")
    _, number, rest = name.split(".", 2)
    layer, place = int(number), "decoder.layers"
    for block, count in enumerate(config.n_layers):
        if layer < count:
            place = f"encoder.blocks.{block}"
            break
        layer -= count
    if rest in _HEADS:
        kept, axes = _HEADS[rest]
        return OfHeads(f"{place}.{layer}.{kept}", axes=axes, heads=config.n_heads)
    module, _, kind = rest.rpartition(".")
    return Source(f"{place}.{layer}.{_MODULES[module]}.{kind}")


def harmless(config: FunnelConfig) -> re.Pattern[str]:
    """Weights of other goals that a model of this one is often kept with."""
    if config.goal == "masked":
        return re.compile(r"lm_head\.weight" if config.tied else r"(?!)")
    if config.goal == "classes":
        return re.compile(r"(?!)")
    left = r"discriminator_predictions\..*|lm_head\..*"
    return re.compile(rf"{left}|decoder\..*" if config.form == "base" else left)
