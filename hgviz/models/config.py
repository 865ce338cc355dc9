"""What models are built from: the keys of config.json, and the layers they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hgviz.core import Goal, HgvizError, Integers, Layer, Level, ModelSpec, readonly
from hgviz.maps.rule import Norm, Rule
from hgviz.models.hierarchy import Hierarchy, level_spans

Form = Literal["official", "windowed"]
Stacks = Literal["encoder", "decoder", "encoder-decoder"]


# --- shared by both families ----------------------------------------------------------------------


def spread(activations: tuple[Any, ...], layer: int, heads: int) -> tuple[str, ...]:
    """The activation of each head of a layer, from what config.json says.

    One name for the model, a list for the heads of every layer, or one list per layer. A list
    shorter than the heads goes over them in equal blocks (models.md B.3).
    """
    given = activations
    if given and not isinstance(given[0], str):
        given = given[layer]
    return tuple(given[head * len(given) // heads] for head in range(heads))


def norms_of(names: tuple[str, ...], norms: Mapping[str, str]) -> tuple[Norm, ...]:
    """The norm of each head's scores: what norms says of its activation, else "l2" for ymish."""
    found = [norms.get(name, "l2" if name == "ymish" else "none") for name in names]
    return tuple(None if norm == "none" else norm for norm in found)  # type: ignore[misc]


def head_width(d_model: int, n_heads: int, d_head: int) -> int:
    """d_head, or the width over the heads. Raises HgvizError where that is no whole number."""
    if not d_head and d_model % n_heads:
        raise HgvizError(
            f"{n_heads} heads do not divide the width {d_model}",
            f"{d_model} / {n_heads} is not a whole number",
            "Change n_heads or d_model, or give d_head",
        )
    return d_head or d_model // n_heads


def _require_kept(kept: tuple[tuple[int, ...], ...], layers: int, heads: int) -> None:
    if kept and len(kept) != layers:
        why = f"kept needs the heads of each of the {layers} layers that attend"
    elif any([*one] != sorted({*one} & {*range(heads)}) for one in kept):
        why = f"kept lists the numbers of heads, each once, from 0 to {heads - 1}"
    else:
        return
    raise HgvizError("this model cannot be built", why, "Correct its configuration")


def _require_even(positions: str, d_head: int) -> None:
    if positions == "rotary" and d_head % 2:
        raise HgvizError(
            f"rotary positions cannot turn heads of width {d_head}",
            "they turn pairs of numbers",
            "Choose an even width per head",
        )


# --- Hourglass ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HourglassConfig:
    """What an Hourglass is built from; the keys of config.json, with its defaults.

    downsampling: average | linear | attention; upsampling: repeat | linear | attention;
    attention_downsampling (average | linear) and attention_upsampling (repeat | linear | none) are
    the bases that resampling attention starts from. positions: learned | relative | rotary | none.
    activations: see spread; norms: {activation: l2 | l2-literal | none}; top_k: how many keys the
    activation topk keeps. masking "compat" computes masks as hourglass-transformer-pytorch does
    (models.md A.9). kept: the numbers of the heads that each layer still has, all where empty.
    """

    vocab_size: int
    d_model: int
    n_heads: int
    hierarchy: Hierarchy
    form: Form = "official"
    d_head: int = 0
    d_ff: int = 0
    downsampling: Literal["average", "linear", "attention"] = "attention"
    upsampling: Literal["repeat", "linear", "attention"] = "attention"
    attention_downsampling: Literal["average", "linear"] = "average"
    attention_upsampling: Literal["repeat", "linear", "none"] = "linear"
    positions: Literal["learned", "relative", "rotary", "none"] = "relative"
    max_positions: int | None = None
    causal: bool = True
    activations: tuple[Any, ...] = ("softmax",)
    norms: Mapping[str, str] = field(default_factory=dict)
    top_k: int | None = None
    masking: Literal["strict", "compat"] = "strict"
    kept: tuple[tuple[int, ...], ...] = ()
    shift_offset: int = field(
        default=0, repr=False
    )  # added to the shift k - 1; tests show the leak

    def __post_init__(self) -> None:
        object.__setattr__(self, "d_head", head_width(self.d_model, self.n_heads, self.d_head))
        object.__setattr__(self, "d_ff", self.d_ff or 4 * self.d_model)
        _require_even(self.positions, self.d_head)
        if self.positions == "relative" and self.d_model % 2:
            raise HgvizError(f"relative positions need an even width, not {self.d_model}")
        if self.positions == "learned" and not self.max_positions:
            raise HgvizError("learned positions need max_positions, the longest text")
        _require_kept(self.kept, len(self._places()), self.n_heads)

    @property
    def family(self) -> str:
        """What kind of model this is."""
        return "hourglass"

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer that attends, in order of computation."""
        found = []
        for index, (name, role, level, key_level, window) in enumerate(self._places()):
            heads = self.kept[index] if self.kept else tuple(range(self.n_heads))
            names = spread(self.activations, index, self.n_heads)
            found.append(
                Layer(
                    index, name, role, level, key_level, heads,
                    tuple(names[head] for head in heads),
                    self.causal and window is None, window,
                )
            )  # fmt: skip
        return tuple(found)

    def _places(self) -> list[tuple[str, Any, int, int, int | None]]:
        """(name, role, level, key level, window) of every layer that attends."""
        found: list[tuple[str, Any, int, int, int | None]] = []
        windowed, shape = self.form == "windowed", self.hierarchy
        for level, count in enumerate(shape.pre):
            found += [(f"pre.{level}.{i}", "self", level, level, None) for i in range(count)]
            if self.downsampling == "attention":
                window = shape.factors[level] if windowed else None
                found.append((f"down.{level}", "down", level + 1, level, window))
        inner = len(shape.pre)
        found += [(f"middle.{i}", "self", inner, inner, None) for i in range(shape.middle)]
        for level in reversed(range(len(shape.post))):
            if self.upsampling == "attention":
                window = shape.factors[level] if windowed else None
                found.append((f"up.{level}", "up", level, level + 1, window))
            count = shape.post[level]
            found += [(f"post.{level}.{i}", "self", level, level, None) for i in range(count)]
        return found

    @property
    def levels(self) -> tuple[Level, ...]:
        """Every resolution, full first."""
        shifts = (0, *((k - 1 if self.causal else 0) for k in self.hierarchy.factors))
        pairs = zip(self.hierarchy.strides, shifts, strict=True)
        return tuple(Level(i, stride, shift) for i, (stride, shift) in enumerate(pairs))

    def rule(self, layer: Layer) -> Rule:
        """How scores become weights in a layer."""
        strides = self.hierarchy.strides
        return Rule(
            scale=self.d_head**-0.5,
            activations=layer.activations,
            norms=norms_of(layer.activations, self.norms),
            top_k=self.top_k,
            stride_q=strides[layer.level],
            stride_k=strides[layer.key_level],
            causal=layer.causal,
            windowed=layer.window is not None,
            empty_rows="uniform" if self.masking == "compat" else "zeros",
        )

    def spans(self, tokens: int, target: int = 0) -> tuple[Integers, ...]:
        """The tokens behind every position of every level, for a text of so many tokens."""
        return level_spans(tokens, self.hierarchy.strides, self.causal)

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """What such a model is, for people and files."""
        base = self.attention_upsampling if self.upsampling == "attention" else self.upsampling
        return ModelSpec(
            family=self.family, name=name, levels=self.levels, layers=self.layers,
            width=self.d_model, vocabulary=self.vocab_size, digest=digest, parameters=parameters,
            max_positions=self.max_positions, form=self.form, upsampling=base,
        )  # fmt: skip


# --- the plain Transformer ------------------------------------------------------------------------


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
        _require_even(self.positions, self.d_head)
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
        _require_kept(self.kept, len(self._names()), self.n_heads)

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
Config = HourglassConfig | TransformerConfig
