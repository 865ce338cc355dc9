"""GPT-2 as the package transformers keeps it (models.md D): its matrices lie transposed."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, Any

import msgspec

from hgviz.core import Goal
from hgviz.models.config import TransformerConfig
from hgviz.models.config.shared import Count, Depth, Heads, Width
from hgviz.models.formats import huggingface
from hgviz.models.formats.huggingface import Source, Stated
from hgviz.models.formats.readers import converted

PREFIX = "transformer."
OUTER: tuple[str, ...] = ("lm_head.",)
EMBEDDING, HEAD = "wte.weight", "lm_head.weight"
INSTEAD: dict[str, str] = {}
BUFFERS = re.compile(r"h\.\d+\.(attn|crossattention)\.(bias|masked_bias)")
GOALS: dict[str, Goal] = {"GPT2LMHeadModel": "next", "GPT2Model": "states"}


class _Stated(Stated, frozen=True, kw_only=True):
    vocab_size: Count = 50257
    n_positions: Count = 1024
    n_embd: Width = 768
    n_layer: Depth = 12
    n_head: Heads = 12
    n_inner: Width | None = None
    activation_function: str = "gelu_new"
    layer_norm_epsilon: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1e-5
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False


def settle(data: dict[str, Any], names: Collection[str], where: str) -> TransformerConfig:
    """The configuration that config.json describes."""
    one = converted(data, _Stated, where)
    huggingface.require_absolute(one, where)
    huggingface.require_divided(one.n_embd, one.n_head, "n_embd, n_head", where)
    return TransformerConfig(
        family="gpt2",
        form="decoder",
        cross=one.add_cross_attention,
        vocab_size=one.vocab_size,
        d_model=one.n_embd,
        n_heads=one.n_head,
        n_layers=one.n_layer,
        d_ff=one.n_inner or 0,
        norm_first=True,
        norm_eps=one.layer_norm_epsilon,
        final_norm=True,
        positions="learned",
        max_positions=one.n_positions,
        feed_forward=huggingface.non_linearity(
            one.activation_function, "activation_function", where
        ),
        scaled=one.scale_attn_weights,
        depth_scaled=one.scale_attn_by_inverse_layer_idx,
        goal=huggingface.goal_of(one, GOALS, lambda: "next", where),
        tied=one.tie_word_embeddings,
        kept=huggingface.kept_of(one, one.n_layer, one.n_head, where),
    )


# --- names ----------------------------------------------------------------------------------------

_PLAIN = {"embed.token": "wte", "embed.position": "wpe", "ln_f": "ln_f", "lm_head": "lm_head"}
_NORMS = {"ln_attn": "ln_1", "ln_cross": "ln_cross_attn", "ln_ff": "ln_2"}
_TURNED = {  # the module, and which of how many blocks of it
    "attn.q": ("attn.c_attn", 0, 3),
    "attn.k": ("attn.c_attn", 1, 3),
    "attn.v": ("attn.c_attn", 2, 3),
    "attn.o": ("attn.c_proj", 0, 1),
    "cross.q": ("crossattention.q_attn", 0, 1),
    "cross.k": ("crossattention.c_attn", 0, 2),
    "cross.v": ("crossattention.c_attn", 1, 2),
    "cross.o": ("crossattention.c_proj", 0, 1),
    "ff.in": ("mlp.c_fc", 0, 1),
    "ff.out": ("mlp.c_proj", 0, 1),
}


def source(name: str, config: TransformerConfig) -> Source:
    """Where GPT-2's files keep a neutral tensor."""
    module, _, kind = name.rpartition(".")
    if not module.startswith("middle."):
        return Source(f"{_PLAIN[module]}.{kind}")
    _, layer, rest = module.split(".", 2)
    if rest in _NORMS:
        return Source(f"h.{layer}.{_NORMS[rest]}.{kind}")
    within, part, parts = _TURNED[rest]
    return Source(f"h.{layer}.{within}.{kind}", part, parts, turned=kind == "weight")


def harmless(config: TransformerConfig) -> re.Pattern[str]:
    """The vocabulary's matrix where it only repeats the embedding."""
    tied = config.tied and config.goal == "next"
    return re.compile(r"lm_head\.weight" if tied else r"(?!)")
