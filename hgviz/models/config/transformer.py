"""What a plain Transformer is built from: an encoder, a decoder or both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import cycle
from typing import Annotated, Any, Literal

import msgspec

from hgviz.activations import ACTIVATIONS
from hgviz.core import Goal, HgvizError, Integers, Layer, Level, ModelSpec
from hgviz.maps.rule import Rule
from hgviz.models.config.shared import (
    Chosen,
    Count,
    Depth,
    Keys,
    head_width,
    norms_of,
    own_spans,
    require_even,
    require_kept,
    spread,
)

Stacks = Literal["encoder", "decoder", "encoder-decoder"]
Positions = Literal["learned", "sinusoidal", "rotary", "quadratic", "none"]
SCORES = (
    "dot",
    "dense",
    "random",
    "fixed",
    "factorised",
)  # models.mechanisms has all but the first


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
    positions: Positions = "sinusoidal"
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
    slots_sharing: Literal["tokens", "none", "headwise", "kv", "layerwise"] = "tokens"
    slots_bias: bool = False
    scores: str | list[str] = "dot"
    rank: Count = 8
    content: bool = True
    shared_width: Chosen = 0
    kept: list[list[int]] = []

    def arguments(self) -> dict[str, Any]:
        """As the shared keys, one form of scores for all layers as a list."""
        one = (self.scores,) if isinstance(self.scores, str) else tuple(self.scores)
        return {**super().arguments(), "scores": one}


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
    slots: a sequence projected to so many rows, 0 for none. slots_sharing "tokens": before the
    heads are split (B.5), slots_shared: by one matrix for all layers; else keys and values are
    (Linformer, Wang et al. 2020), by two matrices of each head ("none") or layer ("headwise"), or
    by one for both, of each layer ("kv") or of all ("layerwise"); slots_bias: a number more for
    each row. scores: one name of SCORES, or several joined by "+" whose scores are mixed, for all
    layers that attend to their own text, or for each of them; see models.mechanisms. rank: of
    factorised scores. positions "quadratic": each head looks around a distance of its own, see
    mechanisms.QuadraticPositions; content: whether queries and keys count as well. shared_width: of
    the queries and keys that all heads of a layer share and mix, 0 where each has its own; see
    layers.Collaborative. kept: the numbers of the heads that each layer still has, all where empty.
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
    positions: Positions = "sinusoidal"
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
    slots_sharing: Literal["tokens", "none", "headwise", "kv", "layerwise"] = "tokens"
    slots_bias: bool = False
    scores: tuple[str, ...] = ("dot",)
    rank: int = 8
    content: bool = True
    shared_width: int = 0
    kept: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "d_head", head_width(self.d_model, self.n_heads, self.d_head))
        object.__setattr__(self, "d_ff", self.d_ff or 4 * self.d_model)
        if self.form == "encoder-decoder":
            object.__setattr__(self, "decoder_layers", self.decoder_layers or self.n_layers)
        require_even(self.positions, self.d_head)
        self._require_sound()

    def _require_sound(self) -> None:
        encoder, after = self.form == "encoder", self.slots_sharing != "tokens"
        forms = {name for one in self.scores for name in one.split("+")}
        synthesised = forms != {"dot"}
        fixed = self.positions == "learned" or self.slots > 0 or synthesised
        wrong = (
            (fixed and not self.max_positions,
             "learned positions, a projected sequence and scores that are synthesised need "
             "max_positions, the longest text"),
            (self.slots and not encoder,
             "a projected sequence mixes all tokens and is never causal: only an encoder has it"),
            (self.slots and self.positions == "rotary",
             "rotary positions have no angle for the rows of a projected sequence"),
            (self.slots > (self.max_positions or self.slots),
             "a sequence is projected to at most max_positions rows"),
            (not self.slots and (after or self.slots_bias),
             "slots_sharing and slots_bias say how a sequence is projected: give slots as well"),
            (self.slots_bias and not after,
             "slots_bias belongs to keys and values that are projected: choose a slots_sharing"),
            *self._wrong_scores(forms, synthesised),
            *self._wrong_places(synthesised),
            *(self._wrong_sharing(synthesised) if self.shared_width else ()),
            (self.cross and self.form != "decoder",
             "cross belongs to a decoder alone; an encoder-decoder always has it"),
            (self.goal == "classes" and not (encoder and self.labels),
             "a classifier is an encoder with labels"),
            (self.goal == "masked" and not encoder, "only an encoder fills in masked tokens"),
            (self.goal == "next" and encoder, "an encoder sees later tokens, so none is the next"),
        )  # fmt: skip
        for failed, why in wrong:
            if failed:
                raise HgvizError(f"this model cannot be built: {why}", "Correct its configuration")
        require_kept(self.kept, len(self._names()), self.n_heads)

    def _wrong_places(self, synthesised: bool) -> list[tuple[Any, str]]:
        quadratic = self.positions == "quadratic"
        return [
            (quadratic and self.slots,
             "quadratic positions have no distance to the rows of a projected sequence"),
            (quadratic and any(ACTIVATIONS[name].features for name in self._named()),
             "linear attention weighs features of tokens, and quadratic positions add to scores"),
            (not self.content and (not quadratic or synthesised),
             "without content there are only quadratic positions to attend by"),
        ]  # fmt: skip

    def _named(self) -> set[str]:
        """The activations that are known, wherever they are."""
        lists = (one if isinstance(one, tuple) else (one,) for one in self.activations)
        return {name for one in lists for name in one if name in ACTIVATIONS}

    def _wrong_scores(self, forms: set[str], synthesised: bool) -> list[tuple[Any, str]]:
        layers = sum(role == "self" for _, role in self._names())
        unknown = sorted(forms - {*SCORES})
        return [
            (unknown, f"there are no scores {', '.join(unknown)[:40]!r}; "
             f"scores are {', '.join(SCORES)}, or several joined by +"),
            (any(len(set(parts)) < len(parts) for parts in (one.split("+") for one in self.scores)),
             "a mixture names each of its scores once"),
            (len(self.scores) not in (1, layers),
             f"scores needs one name, or one for each of the {layers} layers that attend to their "
             "own text"),
            (synthesised and self.slots,
             "a projected sequence has no places for scores that are synthesised"),
            (synthesised and any(ACTIVATIONS[name].features or ACTIVATIONS[name].of_keys
                                 for name in self._named()),
             "linear attention and rbf weigh what tokens are, and synthesised scores have none"),
        ]  # fmt: skip

    def _wrong_sharing(self, synthesised: bool) -> list[tuple[Any, str]]:
        kinds = [ACTIVATIONS[name] for name in self._named()]
        return [
            (self.positions == "rotary",
             "rotary positions turn the queries and keys of each head by itself"),
            (synthesised or not self.content, "there are layers without queries and keys to share"),
            (any(one.features or one.of_keys for one in kinds),
             "linear attention and the Gaussian kernel see queries and keys, not only products"),
            (self.slots_bias, "slots_bias adds to every number of a key of each head"),
        ]  # fmt: skip

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
        found, scores = [], cycle(self.scores)
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
                    scores=next(scores) if role == "self" else "dot",
                )
            )  # fmt: skip
        return tuple(found)

    @property
    def levels(self) -> tuple[Level, ...]:
        """The text; then the decoder's, or the rows it is projected to."""
        if self.two_texts:
            return Level(0), Level(1, sequence="target")
        return (Level(0), Level(1, sequence="slots")) if self.slots else (Level(0),)

    def scale(self, layer: Layer) -> float:
        """What multiplies products of queries and keys that are made of tokens."""
        scale = self.d_head**-0.5 if self.scaled else 1.0
        return scale / (int(layer.name.split(".")[1]) + 1) if self.depth_scaled else scale

    def rule(self, layer: Layer) -> Rule:
        """How scores become weights in a layer."""
        return Rule(
            scale=self.scale(layer) if layer.scores == "dot" else 1.0,
            activations=layer.activations,
            norms=norms_of(layer.activations, self.norms),
            top_k=self.top_k,
            causal=layer.causal,
        )

    def spans(self, tokens: int, target: int = 0) -> tuple[Integers, ...]:
        """Every position stands for itself, in its own sequence."""
        return own_spans(self.levels, source=tokens, target=target, slots=self.slots)

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
