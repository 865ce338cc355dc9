"""BERT as the package transformers keeps it (models.md D): encoders, classifiers and decoders."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, Any

import msgspec

from hgviz.core import Goal, HgvizError
from hgviz.models.config import TransformerConfig
from hgviz.models.config.shared import Count, Depth, Heads, Width
from hgviz.models.formats import huggingface
from hgviz.models.formats.huggingface import Source, Stated
from hgviz.models.formats.readers import BRING, converted

PREFIX = "bert."
OUTER: tuple[str, ...] = ("cls.", "classifier.")
EMBEDDING, HEAD = "embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"
INSTEAD = {"cls.predictions.bias": "cls.predictions.decoder.bias"}
BUFFERS = re.compile(r"embeddings\.(position_ids|token_type_ids)")
GOALS: dict[str, Goal] = {
    "BertModel": "states",
    "BertForMaskedLM": "masked",
    "BertForPreTraining": "masked",
    "BertLMHeadModel": "next",
    "BertForSequenceClassification": "classes",
}


class _Stated(Stated, frozen=True, kw_only=True):
    vocab_size: Count = 30522
    hidden_size: Width = 768
    num_hidden_layers: Depth = 12
    num_attention_heads: Heads = 12
    intermediate_size: Width = 3072
    hidden_act: str = "gelu"
    max_position_embeddings: Count = 512
    type_vocab_size: Annotated[int, msgspec.Meta(ge=1, le=2**16)] = 2
    layer_norm_eps: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1e-12
    is_decoder: bool = False
    pad_token_id: int | None = 0


def settle(data: dict[str, Any], names: Collection[str], where: str) -> TransformerConfig:
    """The configuration that config.json describes; names of tensors where it says no goal."""
    one = converted(data, _Stated, where)
    _require_bert(one, where)
    huggingface.require_absolute(one, where)
    keys = "hidden_size, num_attention_heads"
    huggingface.require_divided(one.hidden_size, one.num_attention_heads, keys, where)
    goal = huggingface.goal_of(one, GOALS, lambda: _guess(names), where)
    if goal in ("next", "masked"):
        goal = "next" if one.is_decoder else "masked"
    if one.is_decoder and goal == "classes":
        raise _unlike(where, "is_decoder is true, and a classifier is an encoder")
    if one.add_cross_attention and not one.is_decoder:
        raise _unlike(where, "add_cross_attention is true, and is_decoder is not")
    return TransformerConfig(
        family="bert",
        form="decoder" if one.is_decoder else "encoder",
        cross=one.add_cross_attention,
        vocab_size=one.vocab_size,
        d_model=one.hidden_size,
        n_heads=one.num_attention_heads,
        n_layers=one.num_hidden_layers,
        d_ff=one.intermediate_size,
        norm_eps=one.layer_norm_eps,
        embed_norm=True,
        positions="learned",
        max_positions=one.max_position_embeddings,
        segments=one.type_vocab_size,
        feed_forward=huggingface.non_linearity(one.hidden_act, "hidden_act", where),
        goal=goal,
        labels=huggingface.labels_of(one, where) if goal == "classes" else (),
        transform=goal in ("next", "masked"),
        tied=one.tie_word_embeddings,
        kept=huggingface.kept_of(one, one.num_hidden_layers, one.num_attention_heads, where),
    )


def _require_bert(one: _Stated, where: str) -> None:
    """Errors: HgvizError for RoBERTa and its kin under the name bert: their tensors have BERT's
    names, but positions count from behind the padding token, so that every output would be wrong.
    """
    rows, pad, types = one.max_position_embeddings, one.pad_token_id, one.type_vocab_size
    marks = (
        (f"max_position_embeddings {rows}", rows % 512 == 2),
        (f"pad_token_id {pad}", pad == 1),
        (f"type_vocab_size {types}", types == 1),
    )
    found = [words for words, there in marks if there]
    if len(found) > 1:
        raise HgvizError(
            f"{where} says bert, and describes RoBERTa, which hgviz cannot run",
            f"{' and '.join(found)} are RoBERTa's: its positions begin behind the padding token",
            BRING,
        )


def _guess(names: Collection[str]) -> Goal:
    if "classifier.weight" in names:
        return "classes"
    return "masked" if any(name.startswith("cls.predictions.") for name in names) else "states"


def _unlike(where: str, why: str) -> HgvizError:
    return HgvizError(f"{where} does not describe a model hgviz can build", why, f"Correct {where}")


# --- names ----------------------------------------------------------------------------------------

_MODULES = {
    "attn.q": "attention.self.query",
    "attn.k": "attention.self.key",
    "attn.v": "attention.self.value",
    "attn.o": "attention.output.dense",
    "ln_attn": "attention.output.LayerNorm",
    "cross.q": "crossattention.self.query",
    "cross.k": "crossattention.self.key",
    "cross.v": "crossattention.self.value",
    "cross.o": "crossattention.output.dense",
    "ln_cross": "crossattention.output.LayerNorm",
    "ff.in": "intermediate.dense",
    "ff.out": "output.dense",
    "ln_ff": "output.LayerNorm",
    "embed.token": "embeddings.word_embeddings",
    "embed.position": "embeddings.position_embeddings",
    "embed.segment": "embeddings.token_type_embeddings",
    "embed.ln": "embeddings.LayerNorm",
    "head.pooler": "pooler.dense",
    "head.classifier": "classifier",
    "head.mlm.dense": "cls.predictions.transform.dense",
    "head.mlm.ln": "cls.predictions.transform.LayerNorm",
    "head.mlm": "cls.predictions",
    "lm_head": "cls.predictions.decoder",
}


def source(name: str, config: TransformerConfig) -> Source:
    """Where BERT's files keep a neutral tensor."""
    module, _, kind = name.rpartition(".")
    if not module.startswith("middle."):
        return Source(f"{_MODULES[module]}.{kind}")
    _, layer, rest = module.split(".", 2)
    return Source(f"encoder.layer.{layer}.{_MODULES[rest]}.{kind}")


def harmless(config: TransformerConfig) -> re.Pattern[str]:
    """Weights of other goals that a model of this one is often kept with."""
    pooler = r"pooler\.dense\.(weight|bias)"
    if config.goal == "states":
        return re.compile(pooler)
    if config.goal == "classes":
        return re.compile(r"(?!)")
    repeated = r"|cls\.predictions\.decoder\.weight" if config.tied else ""
    return re.compile(rf"{pooler}|cls\.seq_relationship\.(weight|bias){repeated}")
