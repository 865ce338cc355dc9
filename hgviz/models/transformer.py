"""The plain Transformer: an encoder, a decoder, or both (Vaswani et al. 2017).

BERT (Devlin et al. 2019), GPT-2 (Radford et al. 2019) and YUBERT, a BERT with several CLS tokens,
are settings of it (PRESETS). Shapes: B batch, n tokens, m tokens of the source or slots, d width.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from typing import Annotated, Any, Literal, cast

import msgspec
import torch
from torch import Tensor, nn

from hgviz.activations import ACTIVATIONS
from hgviz.core import HgvizError, Integers, Layer, Level, ModelSpec
from hgviz.maps.rule import Rule
from hgviz.models.layers import (
    NON_LINEARITIES,
    Attention,
    AttentionConfiguration,
    Collaborative,
    Count,
    Depth,
    DerivedWidth,
    FeedForward,
    Network,
    NonLinearity,
    ResidualBlock,
    Tokens,
    as_tokens,
    own_spans,
    require_even_heads,
    require_length,
)
from hgviz.models.mechanisms import Mixtures, Projection, Synthesis
from hgviz.models.run import EMBEDDING, Run

Slots = Projection | Mixtures
SCORES = ("dot", "dense", "random", "fixed", "factorised")  # mechanisms.Synthesis has the last four

# --- configuration --------------------------------------------------------------------------------


class TransformerConfig(
    AttentionConfiguration, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What an encoder, a decoder or both are built from; the keys of config.json.

    family is what people call it: transformer, bert, gpt2, yubert (see PRESETS). n_layers counts
    the only stack, or the encoder's; decoder_layers the decoder's of an encoder-decoder. cross: a
    decoder alone that attends to given encoder states. norm_first: pre-norm, else post-norm;
    final_norm: a norm after the last layer; embed_norm: one after the embeddings. segments: how
    many token types. feed_forward: its non-linearity. scaled: scores over sqrt(d_head);
    depth_scaled: also over the number of the layer, from 1.

    goal, labels: see ModelSpec. transform: a dense layer and a norm before the vocabulary (BERT).
    tied: the vocabulary's matrix is the embedding. cls: how many first tokens are put side by side
    into the classifier; pooler: what each passes through on its way.
    slots: a sequence projected to so many rows, 0 for none. slots_sharing "tokens": before the
    heads are split, slots_shared: by one matrix for all layers; else keys and values are
    (Linformer, Wang et al. 2020), by two matrices of each head ("none") or layer ("headwise"), or
    by one for both, of each layer ("kv") or of all ("layerwise"); slots_bias: a number more for
    each row. scores: one name of SCORES, or several joined by "+" whose scores are mixed, for all
    layers that attend to their own text, or for each of them; see models.mechanisms. rank: of
    factorised scores. positions "quadratic": each head looks around a distance of its own, see
    mechanisms.QuadraticPositions; content: whether queries and keys count as well. shared_width: of
    the queries and keys that all heads of a layer share and mix, 0 where each has its own; see
    layers.Collaborative. kept: the numbers of the heads that each layer still has, all where empty.
    """

    n_layers: Depth
    family: Literal["transformer", "bert", "gpt2", "yubert"] = "transformer"
    form: Literal["encoder", "decoder", "encoder-decoder"] = "encoder-decoder"
    decoder_layers: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    cross: bool = False
    norm_first: bool = False
    norm_eps: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1e-5
    final_norm: bool = False
    embed_norm: bool = False
    positions: Literal["learned", "sinusoidal", "rotary", "quadratic", "none"] = "sinusoidal"
    segments: Annotated[int, msgspec.Meta(ge=0, le=2**16)] = 0
    feed_forward: NonLinearity = "relu"
    scaled: bool = True
    depth_scaled: bool = False
    goal: Literal["next", "masked", "classes", "states"] = "next"
    labels: tuple[str, ...] = ()
    transform: bool = False
    tied: bool = True
    cls: Annotated[int, msgspec.Meta(ge=1, le=512)] = 1
    pooler: Literal["none", "shared", "separate"] = "shared"
    slots: DerivedWidth = 0
    slots_shared: bool = True
    slots_sharing: Literal["tokens", "none", "headwise", "kv", "layerwise"] = "tokens"
    slots_bias: bool = False
    scores: str | tuple[str, ...] = "dot"
    rank: Count = 8
    content: bool = True
    shared_width: DerivedWidth = 0

    def __post_init__(self) -> None:
        AttentionConfiguration.__post_init__(self)
        if isinstance(self.scores, str):
            self._set("scores", (self.scores,))
        if self.form == "encoder-decoder":
            self._set("decoder_layers", self.decoder_layers or self.n_layers)
        require_even_heads(self.positions, self.d_head)
        self.refuse(self._faults())

    def _faults(self) -> list[tuple[Any, str]]:
        """(condition, what is wrong) for every combination of keys that no model has."""
        encoder, after = self.form == "encoder", self.slots_sharing != "tokens"
        forms = {name for mixture in self.scores for name in mixture.split("+")}
        unknown, synthesised = sorted(forms - {*SCORES}), forms != {"dot"}
        quadratic, rotary = self.positions == "quadratic", self.positions == "rotary"
        fixed = self.positions == "learned" or self.slots > 0 or synthesised
        layers = sum(role == "self" for _, role in self.layer_table())
        shared = self.shared_width > 0
        named = [ACTIVATIONS[name] for name in self._activation_names()]
        by_features = any(row.features for row in named)
        by_tokens = any(row.features or row.of_keys for row in named)
        return [
            (fixed and not self.max_positions,
             "learned positions, a projected sequence and scores that are synthesised need "
             "max_positions, the longest text"),
            (self.slots and not encoder,
             "a projected sequence mixes all tokens and is never causal: only an encoder has it"),
            (self.slots and rotary,
             "rotary positions have no angle for the rows of a projected sequence"),
            (self.slots > (self.max_positions or self.slots),
             "a sequence is projected to at most max_positions rows"),
            (not self.slots and (after or self.slots_bias),
             "slots_sharing and slots_bias say how a sequence is projected: give slots as well"),
            (self.slots_bias and not after,
             "slots_bias belongs to keys and values that are projected: choose a slots_sharing"),
            (unknown, f"there are no scores {', '.join(unknown)[:40]!r}; "
             f"scores are {', '.join(SCORES)}, or several joined by +"),
            (any(len(set(parts)) < len(parts) for parts in (one.split("+") for one in self.scores)),
             "a mixture names each of its scores once"),
            (len(self.scores) not in (1, layers),
             f"scores needs one name, or one for each of the {layers} layers that attend to their "
             "own text"),
            (synthesised and self.slots,
             "a projected sequence has no places for scores that are synthesised"),
            (synthesised and by_tokens,
             "linear attention and rbf weigh what tokens are, and synthesised scores have none"),
            (quadratic and self.slots,
             "quadratic positions have no distance to the rows of a projected sequence"),
            (quadratic and by_features,
             "linear attention weighs features of tokens, and quadratic positions add to scores"),
            (not self.content and (not quadratic or synthesised),
             "without content there are only quadratic positions to attend by"),
            (shared and rotary,
             "rotary positions turn the queries and keys of each head by itself"),
            (shared and (synthesised or not self.content),
             "there are layers without queries and keys to share"),
            (shared and by_tokens,
             "linear attention and the Gaussian kernel see queries and keys, not only products"),
            (shared and self.slots_bias, "slots_bias adds to every number of a key of each head"),
            (self.cross and self.form != "decoder",
             "cross belongs to a decoder alone; an encoder-decoder always has it"),
            (self.goal == "classes" and not (encoder and self.labels),
             "a classifier is an encoder with labels"),
            (self.goal == "masked" and not encoder, "only an encoder fills in masked tokens"),
            (self.goal == "next" and encoder, "an encoder sees later tokens, so none is the next"),
        ]  # fmt: skip

    @property
    def two_texts(self) -> bool:
        """Whether a decoder attends to the states of an encoder."""
        return self.cross or self.form == "encoder-decoder"

    def layer_table(self) -> list[tuple[str, str]]:
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
        layers, scores = [], cycle(self.scores)
        for index, (name, role) in enumerate(self.layer_table()):
            in_encoder = self.form == "encoder" or name.startswith("encoder")
            level = int(self.two_texts and not name.startswith("encoder"))
            own = role == "self"
            layers.append(
                self.layer(
                    index, name=name, role=role, level=level,
                    key_level=0 if not own else 1 if self.slots else level,
                    causal=own and not in_encoder, scores=next(scores) if own else "dot",
                )
            )  # fmt: skip
        return tuple(layers)

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

    def rule(self, layer: Layer, **changes: Any) -> Rule:
        """How scores become weights in a layer."""
        return super().rule(layer, scale=self.scale(layer) if layer.scores == "dot" else 1.0)

    def spans(self, tokens: int, target: int = 0) -> tuple[Integers, ...]:
        """Every position stands for itself, in its own sequence."""
        return own_spans(self.levels, source=tokens, target=target, slots=self.slots)

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """A description of such a model, for people and files."""
        return replace(super().spec(name, digest, parameters), labels=self.labels)

    def build(self) -> Transformer:
        """The model, its weights as torch initializes them."""
        return Transformer(self)

    def _activation_names(self) -> set[str]:
        """The known activations, of any head."""
        lists = (part if isinstance(part, tuple) else (part,) for part in self.activations)
        return {name for part in lists for name in part if name in ACTIVATIONS}


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


# --- parts ----------------------------------------------------------------------------------------


class Embed(nn.Module):
    """Token, position and segment embeddings, added up."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config, width = config, config.d_model
        self.token = nn.Embedding(config.vocab_size, width)
        if config.positions == "learned":
            self.position = nn.Embedding(config.max_positions or 0, width)
        if config.segments:
            self.segment = nn.Embedding(config.segments, width)
        if config.embed_norm:
            self.ln = _norm(config)
        self.drop = nn.Dropout(0.0)  # training sets it

    def forward(self, tokens: Tokens) -> Tensor:
        """(B, n, d)"""
        x = self.token(tokens.ids) if tokens.embedded is None else tokens.embedded
        return self.add_positions(x, tokens.segments)

    def add_positions(self, x: Tensor, segments: Tensor | None = None) -> Tensor:
        """Token embeddings (B, n, d) with their positions and segments (zeros where not given)."""
        require_length(x.shape[1], self.config.max_positions)
        numbers = torch.arange(x.shape[1], device=x.device)
        if self.config.positions == "learned":
            x = x + self.position(numbers)
        elif self.config.positions == "sinusoidal":
            x = x + sinusoids(numbers, self.config.d_model, x.dtype)
        if self.config.segments:
            kinds = torch.zeros_like(numbers) if segments is None else segments
            x = x + self.segment(kinds)
        if self.config.embed_norm:
            x = self.ln(x)
        return self.drop(x)


def sinusoids(numbers: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """(n, width): sin(t f_c), cos(t f_c) by turns, f_c = 10000^(-2c / width) (Vaswani, 3.5)."""
    steps = torch.arange(-(-width // 2), dtype=torch.float64)
    angles = numbers.cpu().double()[:, None] * 10000.0 ** (-2 * steps / width)
    turned = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]
    return turned.to(dtype).to(numbers.device)


class Block(ResidualBlock):
    """Self-attention, cross-attention where there is a source, and feed-forward."""

    def __init__(self, config: TransformerConfig, layer: Layer, cross: Layer | None) -> None:
        super().__init__()
        self.norm_first = config.norm_first
        self.ln_attn, self.attn = _norm(config), _attention(config, layer)
        self.last = layer.index
        if cross is not None:
            self.ln_cross, self.cross = _norm(config), _attention(config, cross)
            self.last = cross.index
        self.projection = _slots(config, "layer")
        self.ln_ff = _norm(config)
        self.ff = FeedForward(config.d_model, config.d_ff, config.feed_forward)
        self.drop = nn.Dropout(0.0)

    def forward(
        self,
        x: Tensor,
        tokens: Tokens,
        memory: Tensor | None,
        shared: Slots | None,
        run: Run,
        rows: int | None = None,
    ) -> Tensor:
        """x (B, n, d), memory (B, m, d) of the source -> (B, n, d), or its first rows alone"""
        slots, first = self.projection or shared, self.norm_first

        def compute(x: Tensor) -> Tensor:
            y = self.ln_attn(x) if first else x
            z = x[:, :rows] + self.drop(self.attn(y[:, :rows], y, tokens.keep, None, run, slots))
            if memory is not None:
                keep = None if tokens.source is None else tokens.source.keep
                x = z if first else self.ln_attn(z)
                y = self.ln_cross(x) if first else x
                z = x + self.drop(self.cross(y, memory, keep, None, run))
            return self.finish(z)

        return run.block(self.last, compute, x)

    @property
    def norm_before_ff(self) -> nn.LayerNorm:
        """The norm that the feed-forward begins with."""
        if self.norm_first:
            return self.ln_ff
        return self.ln_cross if hasattr(self, "ln_cross") else self.ln_attn


class Transform(nn.Module):
    """What BERT does to hidden states before the vocabulary's matrix, and a bias after it."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.dense, self.ln = nn.Linear(config.d_model, config.d_model), _norm(config)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.kind = config.feed_forward

    def forward(self, x: Tensor, vocabulary: Tensor) -> Tensor:
        """x (B, n, d), vocabulary (V, d) -> (B, n, V)"""
        return self.ln(NON_LINEARITIES[self.kind](self.dense(x))) @ vocabulary.T + self.bias


class Classifier(nn.Module):
    """The first c tokens, side by side, to classes; BERT is c = 1."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.count, self.pooling, width = config.cls, config.pooler, config.d_model
        if config.pooler == "shared":
            self.pooler: nn.Module = nn.Linear(width, width)
        elif config.pooler == "separate":
            self.pooler = nn.ModuleList(nn.Linear(width, width) for _ in range(config.cls))
        self.classifier = nn.Linear(config.cls * width, len(config.labels))

    def forward(self, x: Tensor) -> Tensor:
        """(B, n, d) -> (B, classes)"""
        first = x[:, : self.count]  # (B, c, d)
        if self.pooling == "shared":
            first = torch.tanh(self.pooler(first))
        elif self.pooling == "separate":
            each = cast(nn.ModuleList, self.pooler)
            first = torch.stack([torch.tanh(part(first[:, i])) for i, part in enumerate(each)], 1)
        return self.classifier(first.flatten(1))


# --- the whole ------------------------------------------------------------------------------------


class Transformer(Network):
    """Tokens to what config.goal says."""

    config: TransformerConfig

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        layers = {layer.name: layer for layer in config.layers}

        def stack(name: str, count: int) -> nn.ModuleDict:
            names = [f"{name}.{i}" for i in range(count)]
            return nn.ModuleDict(
                {str(i): Block(config, layers[one], layers.get(f"{one}.cross"))
                 for i, one in enumerate(names)}
            )  # fmt: skip

        self.embed = Embed(config)
        if config.form == "encoder-decoder":
            self.encoder = stack("encoder", config.n_layers)
            if config.final_norm:
                self.encoder["ln_out"] = _norm(config)
            self.decoder = stack("decoder", config.decoder_layers)
        else:
            self.middle = stack("middle", config.n_layers)
        self.projection = _slots(config, "model")
        if config.final_norm:
            self.ln_f = _norm(config)
        speaks = config.goal in ("next", "masked")
        if speaks and not config.tied:
            self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        if speaks and config.transform:
            self.head: nn.Module = nn.ModuleDict({"mlm": Transform(config)})
        elif config.goal == "classes":
            self.head = Classifier(config)

    def forward(self, tokens: Tokens | Tensor, run: Run | None = None) -> Tensor:
        """Tokens, or ids (B, n) alone -> (B, n, vocabulary), (B, classes) or (B, n, d)"""
        given, run = as_tokens(tokens), run or Run()
        return self.from_embeddings(run.block(EMBEDDING, self.embed, given), given, run)

    def from_embeddings(self, x: Tensor, tokens: Tokens, run: Run | None = None) -> Tensor:
        """As forward, from the placed embeddings (B, n, d) of tokens.

        Errors: HgvizError for fewer tokens than a classifier reads, before anything is computed.
        """
        run = run or Run()
        if self.config.goal == "classes" and x.shape[1] < self.config.cls:
            raise HgvizError(
                f"the text has {x.shape[1]} tokens and this classifier reads {self.config.cls}: "
                "its first tokens are put side by side",
                "Begin the text with its special tokens, as its tokenizer does",
            )
        memory = self._memory(tokens.source, run)
        stack = self.decoder if self.config.form == "encoder-decoder" else self.middle
        x = self._stack(stack, x, tokens, memory, run)
        if self.config.final_norm:
            x = self.ln_f(x)
        return self._said(x)

    def _said(self, x: Tensor) -> Tensor:
        """Hidden states (B, n, d) to what config.goal asks for."""
        if self.config.goal == "states":
            return x
        if self.config.goal == "classes":
            return self.head(x)
        vocabulary = self.embed.token.weight if self.config.tied else self.lm_head.weight
        if self.config.transform:
            return cast(nn.ModuleDict, self.head)["mlm"](x, vocabulary)
        return x @ vocabulary.T

    def _memory(self, source: Tokens | None, run: Run) -> Tensor | None:
        """What the decoder attends to (B, m, d): given states, the encoder's, or nothing."""
        if not self.config.two_texts:
            return None
        if source is None:
            raise HgvizError(
                "this decoder looks at a second text, and there is none: "
                f"its family is {self.config.family}, its form {self.config.form}",
                "Give the decoder's text as well, or the states of an encoder",
            )
        if self.config.cross:
            return source.states
        return self._stack(self.encoder, self.embed(source), source, None, run)

    def _stack(
        self, stack: nn.ModuleDict, x: Tensor, tokens: Tokens, memory: Tensor | None, run: Run
    ) -> Tensor:
        blocks = [block for block in stack.values() if isinstance(block, Block)]
        for block in stack.values():
            if isinstance(block, Block):
                read_out = run.readout and block is blocks[-1] and self.config.goal == "classes"
                rows = self.config.cls if read_out else None
                x = block(x, tokens, memory, self.projection, run, rows)
            else:
                x = block(x)
        return x


def _attention(config: TransformerConfig, layer: Layer) -> Attention:
    # in cross-attention the two texts' positions have nothing to do with each other
    positions, width, longest = config.positions, config.d_head, config.max_positions or 0
    synthesis = mixtures = None
    if layer.role == "cross":
        positions = "none"
    if layer.scores != "dot":
        forms, heads = layer.scores.split("+"), len(layer.heads)
        synthesis = Synthesis(
            forms, heads, config.d_model, width, longest, config.rank, config.scale(layer)
        )
    if config.slots_sharing == "none":
        mixtures = Mixtures(
            len(layer.heads), config.slots, longest, config.slots_bias, shared=False
        )
    if config.shared_width:
        return Collaborative(
            layer, config.rule(layer), config.d_model, width, positions, config.shared_width,
            mixtures,
        )  # fmt: skip
    return Attention(
        layer, config.rule(layer), config.d_model, width, positions,
        synthesis=synthesis, mixtures=mixtures,
        content=config.content or layer.role == "cross",
    )  # fmt: skip


def _slots(config: TransformerConfig, whose: Literal["layer", "model"]) -> Slots | None:
    """What a layer projects its text by in all heads, or all layers do; None for neither."""
    sharing, longest = config.slots_sharing, config.max_positions or 0
    if sharing == "tokens":
        mine = config.slots_shared == (whose == "model")
        return Projection(config.slots, longest) if config.slots and mine else None
    if whose != ("model" if sharing == "layerwise" else "layer") or sharing == "none":
        return None
    return Mixtures(1, config.slots, longest, config.slots_bias, shared=sharing != "headwise")


def _norm(config: TransformerConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.d_model, eps=config.norm_eps)
