"""What a plain Transformer is built from: an encoder, a decoder or both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from hgviz.core import Goal, HgvizError, Integers, Layer, Level, ModelSpec, readonly
from hgviz.maps.rule import Rule
from hgviz.models.config.shared import (
    Chosen,
    Depth,
    Keys,
    head_width,
    norms_of,
    require_even,
    require_kept,
    spread,
)

Stacks = Literal["encoder", "decoder", "encoder-decoder"]


class TransformerKeys(Keys, frozen=True, kw_only=True, forbid_unknown_fields=True):
    n_layers: Depth
    family: Literal["transformer", "bert", "gpt2", "yubert"]
    form: Literal["encoder", "decoder", "encoder-decoder"] = "encoder-decoder"
    decoder_layers: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    cross: bool = False
    norm_first: bool = False
    norm_eps: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1e-5
    final_norm: bool = False
    embed_norm: bool = False
    positions: Literal["learned", "sinusoidal", "rotary", "none"] = "sinusoidal"
    segments: Annotated[int, msgspec.Meta(ge=0, le=2**16)] = 0
    feed_forward: Literal["gelu", "gelu_tanh", "relu", "silu"] = "relu"
    scaled: bool = True
    depth_scaled: bool = False
    goal: Literal["next", "masked", "classes", "states"] = "next"
    labels: list[str] = []
    transform: bool = False
    tied: bool = True
    cls: Annotated[int, msgspec.Meta(ge=1, le=512)] = 1
    pooler: Literal["none", "shared", "separate"] = "shared"
    slots: Chosen = 0
    slots_shared: bool = True
    kept: list[list[int]] = []


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    """What an encoder, a decoder or both are built from; the keys of config.json.

    family is what people call it: transformer, bert, gpt2, yubert (see PRESETS). n_layers counts
    the only stack, or the encoder's; decoder_layers the decoder's of an encoder-decoder. cross: a
    decoder alone that attends to given encoder states. norm_first: pre-norm, else post-norm;
    final_norm: a norm after the last layer; embed_norm: one after the embeddings. segments: how
    many token types. feed_forward: its non-linearity. scaled: scores over sqrt(d_head);
    depth_scaled: also over the number of the layer, from 1.

    goal, labels: see ModelSpec. transform: a dense layer and a norm before the vocabulary (BERT).
    tied: the vocabulary's matrix is the embedding. cls: how many first tokens are put side by side
    into the classifier (models.md B.4); pooler: what each passes through on its way.
    slots: a sequence projected to so many rows before the heads are split, 0 for none (B.5);
    slots_shared: by one matrix for all layers. kept: the numbers of the heads that each layer
    still has, all where empty.
    """

    vocab_size: int
    d_model: int
    n_heads: int
    n_layers: int
    family: Literal["transformer", "bert", "gpt2", "yubert"] = "transformer"
    form: Stacks = "encoder-decoder"
    decoder_layers: int = 0
    cross: bool = False
    d_head: int = 0
    d_ff: int = 0
    norm_first: bool = False
    norm_eps: float = 1e-5
    final_norm: bool = False
    embed_norm: bool = False
    positions: Literal["learned", "sinusoidal", "rotary", "none"] = "sinusoidal"
    max_positions: int | None = None
    segments: int = 0
    feed_forward: Literal["gelu", "gelu_tanh", "relu", "silu"] = "relu"
    activations: tuple[Any, ...] = ("softmax",)
    norms: Mapping[str, str] = field(default_factory=dict)
    top_k: int | None = None
    scaled: bool = True
    depth_scaled: bool = False
    goal: Goal = "next"
    labels: tuple[str, ...] = ()
    transform: bool = False
    tied: bool = True
    cls: int = 1
    pooler: Literal["none", "shared", "separate"] = "shared"
    slots: int = 0
    slots_shared: bool = True
    kept: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "d_head", head_width(self.d_model, self.n_heads, self.d_head))
        object.__setattr__(self, "d_ff", self.d_ff or 4 * self.d_model)
        if self.form == "encoder-decoder":
            object.__setattr__(self, "decoder_layers", self.decoder_layers or self.n_layers)
        require_even(self.positions, self.d_head)
        self._require_sound()

    def _require_sound(self) -> None:
        encoder, fixed = self.form == "encoder", self.positions == "learned" or self.slots > 0
        wrong = (
            (fixed and not self.max_positions,
             "learned positions and a projected sequence need max_positions, the longest text"),
            (self.slots and not encoder,
             "a projected sequence mixes all tokens and is never causal: only an encoder has it"),
            (self.slots and self.positions == "rotary",
             "rotary positions have no angle for the rows of a projected sequence"),
            (self.slots > (self.max_positions or self.slots),
             "a sequence is projected to at most max_positions rows"),
            (self.cross and self.form != "decoder",
             "cross belongs to a decoder alone; an encoder-decoder always has it"),
            (self.goal == "classes" and not (encoder and self.labels),
             "a classifier is an encoder with labels"),
            (self.goal == "masked" and not encoder, "only an encoder fills in masked tokens"),
            (self.goal == "next" and encoder, "an encoder sees later tokens, so none is the next"),
        )  # fmt: skip
        for failed, why in wrong:
            if failed:
                raise HgvizError("this model cannot be built", why, "Correct its configuration")
        require_kept(self.kept, len(self._names()), self.n_heads)

    @property
    def two_texts(self) -> bool:
        """Whether a decoder attends to the states of an encoder."""
        return self.cross or self.form == "encoder-decoder"

    def _names(self) -> list[tuple[str, str]]:
        """(name, role) of every layer that attends."""
        both = self.form == "encoder-decoder"
        found = [(f"encoder.{i}", "self") for i in range(self.n_layers)] if both else []
        stack = "decoder" if both else "middle"
        for i in range(self.decoder_layers if both else self.n_layers):
            found.append((f"{stack}.{i}", "self"))
            if self.two_texts:
                found.append((f"{stack}.{i}.cross", "cross"))
        return found

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer that attends, in order of computation."""
        found = []
        for index, (name, role) in enumerate(self._names()):
            heads = self.kept[index] if self.kept else tuple(range(self.n_heads))
            names = spread(self.activations, index, self.n_heads)
            level = int(self.two_texts and not name.startswith("encoder"))
            key_level = 0 if role == "cross" else 1 if self.slots else level
            causal = role == "self" and self.form != "encoder" and not name.startswith("encoder")
            found.append(
                Layer(
                    index, name, role, level, key_level, heads,  # type: ignore[arg-type]
                    tuple(names[head] for head in heads), causal,
                )
            )  # fmt: skip
        return tuple(found)

    @property
    def levels(self) -> tuple[Level, ...]:
        """The text; then the decoder's, or the rows it is projected to."""
        if self.two_texts:
            return Level(0), Level(1, sequence="target")
        return (Level(0), Level(1, sequence="slots")) if self.slots else (Level(0),)

    def rule(self, layer: Layer) -> Rule:
        """How scores become weights in a layer."""
        scale = self.d_head**-0.5 if self.scaled else 1.0
        if self.depth_scaled:
            number = int(layer.name.split(".")[1])
            scale /= number + 1
        return Rule(
            scale=scale,
            activations=layer.activations,
            norms=norms_of(layer.activations, self.norms),
            top_k=self.top_k,
            causal=layer.causal,
        )

    def spans(self, tokens: int, target: int = 0) -> tuple[Integers, ...]:
        """Every position stands for itself, in its own sequence."""
        sizes = {"source": tokens, "target": target, "slots": self.slots}
        ends = [np.arange(sizes[level.sequence], dtype=np.int64) for level in self.levels]
        return tuple(readonly(np.stack([end, end + 1], axis=1)) for end in ends)

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """What such a model is, for people and files."""
        return ModelSpec(
            family=self.family, name=name, levels=self.levels, layers=self.layers,
            width=self.d_model, vocabulary=self.vocab_size, digest=digest, parameters=parameters,
            max_positions=self.max_positions, form=self.form, goal=self.goal, labels=self.labels,
        )  # fmt: skip


_BERT = {
    "form": "encoder", "norm_eps": 1e-12, "embed_norm": True, "positions": "learned",
    "max_positions": 512, "segments": 2, "feed_forward": "gelu", "goal": "masked",
    "transform": True,
}  # fmt: skip
PRESETS: dict[str, dict[str, Any]] = {
    "transformer": {},
    "bert": _BERT,
    "yubert": {**_BERT, "goal": "classes", "cls": 4, "activations": "ymish"},
    "gpt2": {
        "form": "decoder", "norm_first": True, "final_norm": True, "positions": "learned",
        "max_positions": 1024, "feed_forward": "gelu_tanh",
    },
}  # fmt: skip
