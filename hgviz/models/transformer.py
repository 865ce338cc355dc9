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
)
from hgviz.models.mechanisms import Mixtures, Projection, Synthesis
from hgviz.models.run import EMBEDDING, RecurrentRun, Run

Slots = Projection | Mixtures
SCORES = ("dot", "dense", "random", "fixed", "factorised")  # mechanisms.Synthesis has the last four

# --- configuration --------------------------------------------------------------------------------


class TransformerConfig(
    AttentionConfiguration, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Configuration of an encoder, a decoder or both; the fields are the keys of config.json.

    family: transformer, bert, gpt2 or yubert (see PRESETS). n_layers: depth of the only stack, or
    of the encoder; decoder_layers: of the decoder of an encoder-decoder. cross: a decoder alone
    attends to the encoder states in its input. norm_first: pre-norm, else post-norm; final_norm:
    norm after the last layer; embed_norm: norm after the embeddings. segments: number of token
    types. feed_forward: its non-linearity. scaled: divide scores by sqrt(d_head); depth_scaled:
    also by the layer number, from 1. goal, labels: see ModelSpec. transform: dense layer and norm
    before the vocabulary (BERT). tied: the output matrix is the token embedding. cls: number of
    first tokens that the classifier reads; cls_width: their own width, 0 for d_model, see WideCLS;
    pooler: the layer between them and the classifier.

    slots: project a sequence to this many rows, 0 for none. slots_sharing "tokens": project the
    layer's input, with one matrix for all layers if slots_shared. Else project keys and values
    (Linformer, Wang et al. 2020), with two matrices of each head ("none") or layer ("headwise"), or
    one matrix of each layer ("kv") or of the model ("layerwise"). slots_bias: add a bias to each
    row. scores: a name of SCORES, or several mixed ("dot+random"), for all self-attention layers or
    for each; see models.mechanisms. rank: width of factorised scores. positions "quadratic": see
    mechanisms.QuadraticPositions. content: whether scores include queries and keys of tokens.
    shared_width: width of collaborative queries and keys, 0 for ordinary heads; see
    layers.Collaborative.
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
    cls_width: DerivedWidth = 0
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
        encoder, linformer = self.form == "encoder", self.slots_sharing != "tokens"
        forms = {name for mixture in self.scores for name in mixture.split("+")}
        unknown, synthesised = sorted(forms - {*SCORES}), forms != {"dot"}
        quadratic, rotary = self.positions == "quadratic", self.positions == "rotary"
        bounded = self.positions == "learned" or self.slots > 0 or synthesised
        layers = sum(role == "self" for _, role in self.layer_table())
        shared = self.shared_width > 0
        lists = (part if isinstance(part, tuple) else (part,) for part in self.activations)
        activations = [
            ACTIVATIONS[name] for names in lists for name in names if name in ACTIVATIONS
        ]
        by_features = any(row.features for row in activations)
        by_tokens = any(row.features or row.of_keys for row in activations)
        return [
            (bounded and not self.max_positions,
             "learned positions, slots and synthesised scores need max_positions, the maximum "
             "length"),
            (self.slots and not encoder, "slots mix all tokens, so they need an encoder"),
            (self.slots and rotary, "rotary positions cannot be used with slots"),
            (self.slots > (self.max_positions or self.slots),
             "slots must be at most max_positions"),
            (not self.slots and (linformer or self.slots_bias),
             "slots_sharing and slots_bias need slots"),
            (self.slots_bias and not linformer, "slots_bias needs slots_sharing"),
            (unknown, f"unknown scores {', '.join(unknown)[:40]!r}; "
             f"scores are {', '.join(SCORES)}, or several joined by +"),
            (any(len(set(parts)) < len(parts) for parts in (mix.split("+") for mix in self.scores)),
             "a mixture must name each of its scores once"),
            (len(self.scores) not in (1, layers),
             f"scores needs one name, or one for each of the {layers} self-attention layers"),
            (synthesised and self.slots, "synthesised scores cannot be used with slots"),
            (synthesised and by_tokens,
             "synthesised scores cannot be used with linear attention or rbf"),
            (quadratic and self.slots, "quadratic positions cannot be used with slots"),
            (quadratic and by_features,
             "quadratic positions cannot be used with linear attention"),
            (not self.content and (not quadratic or synthesised),
             "without content only quadratic positions can be used"),
            (shared and rotary, "rotary positions cannot be used with shared_width"),
            (shared and (synthesised or not self.content),
             "shared_width needs queries and keys in every layer"),
            (shared and by_tokens,
             "linear attention and rbf cannot be used with shared_width"),
            (shared and self.slots_bias, "slots_bias cannot be used with shared_width"),
            (self.cross and self.form != "decoder",
             "cross is only for a decoder; an encoder-decoder always has it"),
            (self.goal == "classes" and not (encoder and self.labels),
             "a classifier must be an encoder with labels"),
            (self.cls_width and self.goal != "classes", "cls_width needs the goal classes"),
            (self.goal == "masked" and not encoder, "the goal masked needs an encoder"),
            (self.goal == "next" and encoder, "the goal next needs a decoder"),
        ]  # fmt: skip

    @property
    def two_texts(self) -> bool:
        """Whether a decoder attends to encoder states."""
        return self.cross or self.form == "encoder-decoder"

    def layer_table(self) -> list[tuple[str, str]]:
        """(name, role) of every attention layer, in order of computation."""
        both = self.form == "encoder-decoder"
        rows = [(f"encoder.{i}", "self") for i in range(self.n_layers)] if both else []
        stack = "decoder" if both else "middle"
        for i in range(self.decoder_layers if both else self.n_layers):
            rows.append((f"{stack}.{i}", "self"))
            if self.two_texts:
                rows.append((f"{stack}.{i}.cross", "cross"))
        return rows

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The attention layers, in order of computation."""
        layers, scores = [], cycle(self.scores)
        for index, (name, role) in enumerate(self.layer_table()):
            in_encoder = self.form == "encoder" or name.startswith("encoder")
            level = int(self.two_texts and not name.startswith("encoder"))
            cross = role == "cross"
            layers.append(
                self.layer(
                    index, name=name, role=role, level=level,
                    key_level=0 if cross else 1 if self.slots else level,
                    causal=not (cross or in_encoder), scores="dot" if cross else next(scores),
                )
            )  # fmt: skip
        return tuple(layers)

    @property
    def levels(self) -> tuple[Level, ...]:
        """Level 0 is the text; level 1 the decoder's text, or the slots."""
        if self.two_texts:
            return Level(0), Level(1, sequence="target")
        return (Level(0), Level(1, sequence="slots")) if self.slots else (Level(0),)

    def scale(self, layer: Layer) -> float:
        """The factor of the products of queries and keys in a layer."""
        scale = self.d_head**-0.5 if self.scaled else 1.0
        return scale / (int(layer.name.split(".")[1]) + 1) if self.depth_scaled else scale

    def rule(self, layer: Layer, **changes: Any) -> Rule:
        """The rule by which a layer turns scores into weights."""
        return super().rule(layer, scale=self.scale(layer) if layer.scores == "dot" else 1.0)

    def spans(self, tokens: int, target: int = 0) -> tuple[Integers, ...]:
        """Per level, the tokens [start, end) of each position (positions, 2): itself alone."""
        return own_spans(self.levels, source=tokens, target=target, slots=self.slots)

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """The ModelSpec of a model with this configuration."""
        return replace(super().spec(name, digest, parameters), labels=self.labels)

    def build(self) -> Transformer:
        """A model with this configuration and torch's initial weights."""
        return Transformer(self)


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
    """Sum of token, position and segment embeddings."""

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
        first = 0 if tokens.positions is None else int(tokens.positions[0, 0])
        return self.add_positions(x, tokens.segments, first)

    def add_positions(self, x: Tensor, segments: Tensor | None = None, first: int = 0) -> Tensor:
        """Add positions, from `first` on, and segments (default: segment 0) to token embeddings
        (B, n, d)."""
        positions = torch.arange(first, first + x.shape[1], device=x.device)
        if self.config.positions == "learned":
            x = x + self.position(positions)
        elif self.config.positions == "sinusoidal":
            x = x + sinusoids(positions, self.config.d_model, x.dtype)
        if self.config.segments:
            x = x + self.segment(torch.zeros_like(positions) if segments is None else segments)
        if self.config.embed_norm:
            x = self.ln(x)
        return self.drop(x)


def sinusoids(positions: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """Sinusoidal encodings (n, width): columns sin(t f_c), cos(t f_c) in turn, of positions t (n,).

    f_c = 10000^(-2c / width) (Vaswani et al. 2017, section 3.5).
    """
    steps = torch.arange(-(-width // 2), dtype=torch.float64)
    angles = positions.cpu().double()[:, None] * 10000.0 ** (-2 * steps / width)
    encodings = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]
    return encodings.to(dtype).to(positions.device)


UNTURNED = ("none", "learned", "sinusoidal")  # positions that do not turn queries and keys


def _continue_cache(tokens: Tokens, run: Run) -> tuple[Tokens, RecurrentRun]:
    """Tokens with their positions after those in the cache, and a run that adds to its states."""
    assert tokens.cache is not None
    done, states = tokens.cache.state or (0, {})
    batch, count = tokens.shape
    tokens.cache.state = done + count, states
    positions = torch.arange(done, done + count).expand(batch, count)
    return replace(tokens, positions=positions), RecurrentRun(run.off, states=states)


# states (B, n, d) of all tokens, and those (B, c, W) of wide CLS tokens beside them
Stream = Tensor | tuple[Tensor, Tensor]


class WideCLS(nn.Module):
    """The residual stream of CLS tokens that are wider (W) than all others (d), for one block.

    The block reads them through a projection to d, in place of their first c rows, and what it
    returns for these rows is projected to W and added: w' = w + W_out y + b, followed by a norm in
    post-norm models.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.into = nn.Linear(config.cls_width, config.d_model)
        self.out = nn.Linear(config.d_model, config.cls_width)
        norm = nn.LayerNorm(config.cls_width, eps=config.norm_eps)
        self.ln = nn.Identity() if config.norm_first else norm

    def read(self, x: Tensor, wide: Tensor) -> Tensor:
        """States (B, n, d) whose first rows are wide (B, c, W), projected."""
        return torch.cat([self.into(wide), x[:, wide.shape[1] :]], dim=1)

    def add(self, wide: Tensor, y: Tensor) -> Tensor:
        """wide (B, c, W) after a block that returns y (B, n, d)."""
        return self.ln(wide + self.out(y[:, : wide.shape[1]]))


class Block(ResidualBlock):
    """Self-attention, cross-attention in decoders with a source, and feed-forward."""

    def __init__(self, config: TransformerConfig, layer: Layer, cross: Layer | None) -> None:
        super().__init__()
        self.norm_first = config.norm_first
        self.ln_attn, self.attn = _norm(config), _attention(config, layer)
        self.last = layer.index
        if cross is not None:
            self.ln_cross, self.cross = _norm(config), _attention(config, cross)
            self.last = cross.index
        self.projection = _slots(config, "layer")
        self.wide = WideCLS(config) if config.cls_width else None
        self.ln_ff = _norm(config)
        self.ff = FeedForward(config.d_model, config.d_ff, config.feed_forward)
        self.drop = nn.Dropout(0.0)

    def forward(
        self,
        x: Stream,
        tokens: Tokens,
        memory: Tensor | None,
        shared: Slots | None,
        run: Run,
        rows: int | None = None,
    ) -> Stream:
        """x (B, n, d), memory (B, m, d): encoder states -> (B, n, d), or only the first rows"""
        slots, first = self.projection or shared, self.norm_first

        def compute(stream: Stream) -> Stream:
            if self.wide is None:
                return attend_and_feed(cast(Tensor, stream))
            x, wide = stream
            y = attend_and_feed(self.wide.read(x, wide))
            return y, self.wide.add(wide, y)

        def attend_and_feed(x: Tensor) -> Tensor:
            y = self.ln_attn(x) if first else x
            z = x[:, :rows] + self.drop(self.attn(y[:, :rows], y, tokens.keep, None, run, slots))
            if memory is not None:
                keep = None if tokens.source is None else tokens.source.keep
                x = z if first else self.ln_attn(z)
                y = self.ln_cross(x) if first else x
                z = x + self.drop(self.cross(y, memory, keep, None, run))
            return self.finish(z)

        return run.block(self.last, compute, x)


class Transform(nn.Module):
    """The masked-language-model head of BERT: dense layer, norm, output matrix, bias."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.dense, self.ln = nn.Linear(config.d_model, config.d_model), _norm(config)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.kind = config.feed_forward

    def forward(self, x: Tensor, vocabulary: Tensor) -> Tensor:
        """x (B, n, d), vocabulary (V, d) -> (B, n, V)"""
        return self.ln(NON_LINEARITIES[self.kind](self.dense(x))) @ vocabulary.T + self.bias


class Classifier(nn.Module):
    """Classifier of the concatenated states of the first c tokens; BERT has c = 1.

    cls_width: they are wider than the other tokens, and come by themselves.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.count, self.pooling = config.cls, config.pooler
        width = config.cls_width or config.d_model
        if config.pooler == "shared":
            self.pooler: nn.Module = nn.Linear(width, width)
        elif config.pooler == "separate":
            self.pooler = nn.ModuleList(nn.Linear(width, width) for _ in range(config.cls))
        self.classifier = nn.Linear(config.cls * width, len(config.labels))

    def forward(self, x: Tensor) -> Tensor:
        """(B, n, d), or (B, c, W) -> (B, classes)"""
        first = x[:, : self.count]  # (B, c, d)
        if self.pooling == "shared":
            first = torch.tanh(self.pooler(first))
        elif self.pooling == "separate":
            poolers = enumerate(cast(nn.ModuleList, self.pooler))
            first = torch.stack([torch.tanh(pooler(first[:, i])) for i, pooler in poolers], 1)
        return self.classifier(first.flatten(1))


# --- model ----------------------------------------------------------------------------------------


class Transformer(Network):
    """An encoder, a decoder or both, with the output head of config.goal."""

    config: TransformerConfig

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        layers = {layer.name: layer for layer in config.layers}

        def stack(name: str, count: int) -> nn.ModuleDict:
            return nn.ModuleDict({
                str(i): Block(config, layers[f"{name}.{i}"], layers.get(f"{name}.{i}.cross"))
                for i in range(count)
            })  # fmt: skip

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
            self.ln_f = nn.LayerNorm(config.cls_width or config.d_model, eps=config.norm_eps)
        if config.cls_width:
            self.widen = nn.Linear(config.d_model, config.cls_width)
        predicts_tokens = config.goal in ("next", "masked")
        if predicts_tokens and not config.tied:
            self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        if predicts_tokens and config.transform:
            self.head: nn.Module = nn.ModuleDict({"mlm": Transform(config)})
        elif config.goal == "classes":
            self.head = Classifier(config)

    def forward(self, tokens: Tokens | Tensor, run: Run | None = None) -> Tensor:
        """Tokens, or ids (B, n) alone -> (B, n, vocabulary), (B, classes) or (B, n, d)"""
        tokens, run = as_tokens(tokens), run or Run()
        if tokens.cache is not None:
            tokens, run = _continue_cache(tokens, run)
        return self.from_embeddings(run.block(EMBEDDING, self.embed, tokens), tokens, run)

    @property
    def can_cache(self) -> bool:
        """Whether a token can be read with the states of those before it: linear attention."""
        config = self.config
        names = {name for layer in config.layers for name in layer.activations}
        is_plain = config.form == "decoder" and not (config.cross or config.norms)
        return is_plain and names == {"linear"} and config.positions in UNTURNED

    def from_embeddings(self, x: Tensor, tokens: Tokens, run: Run | None = None) -> Tensor:
        """As forward, from embeddings with positions x (B, n, d).

        Raises HgvizError for fewer tokens than a classifier reads.
        """
        run = run or Run()
        if self.config.goal == "classes" and x.shape[1] < self.config.cls:
            raise HgvizError(
                f"this classifier needs at least {self.config.cls} tokens: "
                f"the text has {x.shape[1]}",
                "Begin the text with special tokens, as its tokenizer does",
            )
        memory = self._memory(tokens.source, run)
        stack = self.decoder if self.config.form == "encoder-decoder" else self.middle
        start: Stream = x
        if self.config.cls_width:
            start = x, self.widen(x[:, : self.config.cls])
        states = self._stack(stack, start, tokens, memory, run)
        x = states if isinstance(states, Tensor) else states[1]
        if self.config.final_norm:
            x = self.ln_f(x)
        if self.config.goal == "states":
            return x
        if self.config.goal == "classes":
            return self.head(x)
        vocabulary = self.embed.token.weight if self.config.tied else self.lm_head.weight
        if self.config.transform:
            return cast(nn.ModuleDict, self.head)["mlm"](x, vocabulary)
        return x @ vocabulary.T

    def _memory(self, source: Tokens | None, run: Run) -> Tensor | None:
        """Encoder states (B, m, d) for cross-attention, None for models without it."""
        if not self.config.two_texts:
            return None
        if source is None:
            raise HgvizError(
                "this decoder attends to a second text, which is missing: "
                f"its family is {self.config.family}, its form {self.config.form}",
                "Give the decoder's text as well, or the states of an encoder",
            )
        if self.config.cross:
            return source.states
        return cast(Tensor, self._stack(self.encoder, self.embed(source), source, None, run))

    def _stack(
        self, stack: nn.ModuleDict, x: Stream, tokens: Tokens, memory: Tensor | None, run: Run
    ) -> Stream:
        blocks = [block for block in stack.values() if isinstance(block, Block)]
        for block in blocks:
            readout = run.readout and block is blocks[-1] and self.config.goal == "classes"
            rows = self.config.cls if readout else None
            x = block(x, tokens, memory, self.projection, run, rows)
        return stack["ln_out"](x) if "ln_out" in stack else x


def _attention(config: TransformerConfig, layer: Layer) -> Attention:
    positions, width, longest = config.positions, config.d_head, config.max_positions or 0
    heads, synthesis, mixtures = len(layer.heads), None, None
    if layer.role == "cross":  # positions of two texts have no distance
        positions = "none"
    if layer.scores != "dot":
        forms, scale = layer.scores.split("+"), config.scale(layer)
        synthesis = Synthesis(forms, heads, config.d_model, width, longest, config.rank, scale)
    if config.slots_sharing == "none":
        mixtures = Mixtures(heads, config.slots, longest, config.slots_bias, shared=False)
    common = layer, config.rule(layer), config.d_model, width, positions
    if config.shared_width:
        return Collaborative(*common, config.shared_width, mixtures)
    content = config.content or layer.role == "cross"
    return Attention(*common, synthesis=synthesis, mixtures=mixtures, content=content)


def _slots(config: TransformerConfig, owner: Literal["layer", "model"]) -> Slots | None:
    """The projection to slots that a layer or the model owns for all its heads, or None."""
    sharing, longest = config.slots_sharing, config.max_positions or 0
    if sharing == "tokens":
        owned = config.slots_shared == (owner == "model")
        return Projection(config.slots, longest) if config.slots and owned else None
    if sharing == "none" or owner != ("model" if sharing == "layerwise" else "layer"):
        return None
    return Mixtures(1, config.slots, longest, config.slots_bias, shared=sharing != "headwise")


def _norm(config: TransformerConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.d_model, eps=config.norm_eps)
