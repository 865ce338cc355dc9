"""Configurations, token batches and layers that all model families share.

Shapes: B batch, n tokens, H heads, Q queries, K keys, D head width, d width.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self, cast

import msgspec
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgviz.activations import ACTIVATIONS
from hgviz.core import Goal, Integers, Layer, Level, ModelSpec, raise_if_cancelled, readonly
from hgviz.errors import no_attention_error, require
from hgviz.maps.rule import Distance, Norm, Relative, Rule
from hgviz.models.mechanisms import (
    Mixtures,
    Projection,
    QuadraticPositions,
    Side,
    Synthesis,
    rotate,
)
from hgviz.models.run import Run

CHUNK = 1 << 15  # tokens per call of a token-wise function, so that long texts fit in memory

NON_LINEARITIES: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
}
IN_PLACE: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": torch.ops.aten.gelu_,
    "gelu_tanh": partial(torch.ops.aten.gelu_, approximate="tanh"),
    "relu": F.relu_,
    "silu": partial(F.silu, inplace=True),
}


# --- configurations -------------------------------------------------------------------------------

Count = Annotated[int, msgspec.Meta(ge=1, le=2**24)]
Width = Annotated[int, msgspec.Meta(ge=1, le=2**20)]
Heads = Annotated[int, msgspec.Meta(ge=1, le=2**12)]
DerivedWidth = Annotated[int, msgspec.Meta(ge=0, le=2**20)]  # 0: derived from the other widths
Depth = Annotated[int, msgspec.Meta(ge=1, le=1000)]
NonLinearity = Literal["gelu", "gelu_tanh", "relu", "silu"]


class Configuration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the configurations of hgviz's own families; the fields are the keys of config.json.

    max_positions: the most tokens of a text, None for no limit.
    """

    vocab_size: Count
    d_model: Width
    family: str = ""
    model_type: Literal["hgviz"] = "hgviz"
    max_positions: Count | None = None

    @property
    def form(self) -> str:
        """The variant within the family, an empty string where there is only one."""
        return ""

    @property
    def goal(self) -> Goal:
        """What the outputs predict; see ModelSpec."""
        return "next"

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The attention layers, in order of computation."""
        return ()

    @property
    def levels(self) -> tuple[Level, ...]:
        """The resolutions, full resolution first."""
        return (Level(0),)

    def spans(self, tokens: int, target: int = 0) -> tuple[Integers, ...]:
        """Per level, the tokens [start, end) of each position (positions, 2) of a text."""
        return own_spans(self.levels, source=tokens, target=target)

    def replace(self, **changes: Any) -> Self:
        """A copy with these keys changed."""
        return msgspec.structs.replace(self, **changes)

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """The ModelSpec of a model with this configuration."""
        return ModelSpec(
            family=self.family, name=name, levels=self.levels,
            layers=self.layers, width=self.d_model, vocabulary=self.vocab_size, digest=digest,
            parameters=parameters, max_positions=self.max_positions, form=self.form,
            goal=self.goal,
        )  # fmt: skip

    def build(self) -> Network:
        """A model with this configuration and torch's initial weights."""
        raise NotImplementedError


class AttentionConfiguration(Configuration, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the configurations of families with attention.

    activations: see spread_activations. norms: {activation: l2 | l2-literal | none}. top_k: how
    many keys the activation topk keeps. kept: the heads left in each layer after pruning, all heads
    where empty.
    """

    n_heads: Heads
    d_head: DerivedWidth = 0
    d_ff: DerivedWidth = 0
    activations: str | tuple[str | tuple[str, ...], ...] = "softmax"
    norms: dict[str, str] = {}
    top_k: Count | None = None
    kept: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.activations, str):
            self._set("activations", (self.activations,))
        require(
            self.d_head or self.d_model % self.n_heads == 0,
            f"the number of heads must divide the width: "
            f"{self.d_model} / {self.n_heads} is not a whole number",
            "Change n_heads or d_model, or set d_head",
        )
        self._set("d_head", self.d_head or self.d_model // self.n_heads)
        self._set("d_ff", self.d_ff or 4 * self.d_model)

    def _set(self, name: str, value: Any) -> None:
        msgspec.structs.force_setattr(self, name, value)

    def refuse(self, faults: Iterable[tuple[Any, str]]) -> None:
        """Raise HgvizError for the first (condition, what is wrong) whose condition is true, and
        for an invalid `kept`."""
        layers, heads = len(self.layer_table()), range(self.n_heads)
        faults = (
            *faults,
            (self.kept and len(self.kept) != layers,
             f"kept needs the heads of each of the {layers} attention layers"),
            (any(list(left) != sorted({*left} & {*heads}) for left in self.kept),
             f"kept must list each head once, from 0 to {self.n_heads - 1}"),
        )  # fmt: skip
        for failed, what in faults:
            require(not failed, f"this model cannot be built: {what}", "Correct its configuration")

    def layer_table(self) -> Sequence[tuple[Any, ...]]:
        """A row for each attention layer, in order of computation; its name comes first."""
        raise NotImplementedError

    def layer(self, index: int, **fields: Any) -> Layer:
        """The Layer at an index, with its remaining heads and their activations."""
        heads = self.kept[index] if self.kept else tuple(range(self.n_heads))
        names = spread_activations(self.activations, index, self.n_heads)
        return Layer(
            index=index, heads=heads, activations=tuple(names[head] for head in heads), **fields
        )

    def rule(self, layer: Layer, **changes: Any) -> Rule:
        """The rule by which a layer turns scores into weights."""
        return Rule(
            **{"scale": self.d_head**-0.5, **changes},
            activations=layer.activations,
            norms=score_norms(layer.activations, self.norms),
            top_k=self.top_k,
            causal=layer.causal,
        )


def require_attention(config: Any) -> Any:
    """Return config. Raises HgvizError for a family without attention."""
    if isinstance(config, Configuration) and not hasattr(config, "activations"):
        raise no_attention_error(config.family)
    return config


def spread_activations(activations: Any, layer: int, heads: int) -> tuple[str, ...]:
    """The activation of each head of a layer.

    activations: one list of names for all layers, or a list per layer. A list shorter than the
    number of heads is spread over them in equal blocks ("split, activate, concat").
    """
    names = activations
    if names and not isinstance(names[0], str):
        names = names[layer]
    return tuple(names[head * len(names) // heads] for head in range(heads))


def own_spans(levels: Iterable[Level], **sizes: int) -> tuple[Integers, ...]:
    """Per level, the span [i, i + 1) of each position i, (positions, 2).

    sizes: the number of positions, by Level.sequence.
    """
    starts = [np.arange(sizes[level.sequence], dtype=np.int64) for level in levels]
    return tuple(readonly(np.stack([start, start + 1], axis=1)) for start in starts)


def score_norms(names: tuple[str, ...], norms: Mapping[str, str]) -> tuple[Norm, ...]:
    """The norm of each head's scores: that of norms for its activation, else the activation's."""
    # unknown activations are refused later, with an error message
    defaults = {name: row.norm or "none" for name, row in ACTIVATIONS.items()}
    values = [norms.get(name, defaults.get(name, "none")) for name in names]
    return tuple(None if norm == "none" else norm for norm in values)  # type: ignore[misc]


def require_even_heads(positions: str, d_head: int) -> None:
    """Raise HgvizError for rotary positions in heads of odd width."""
    require(
        positions != "rotary" or d_head % 2 == 0,
        f"rotary positions need an even head width, not {d_head}",
        "Choose an even width per head",
    )


# --- parts ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Cache:
    """What a model keeps of the tokens so far; None when empty. Of a model of transformers its keys
    and values, in the library's own type; of linear attention the states of its layers."""

    state: Any = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """A batch of texts, the input of every family.

    ids (B, n), or encoder states (B, n, d) in their place. keep (B, n): False for padding.
    segments (B, n): token types. source: the texts that a decoder attends to. embedded (B, n, d):
    token embeddings used instead of those of ids. boundaries (B, n): ends of segments, used instead
    of those that the model predicts. signal (B, ...): images or audio read instead of ids.
    positions (B, n): position of each token, used instead of 0 to n - 1. cache: keys and values of
    the preceding tokens, extended by this pass.
    """

    ids: Tensor | None = None
    keep: Tensor | None = None
    segments: Tensor | None = None
    states: Tensor | None = None
    source: Tokens | None = None
    embedded: Tensor | None = None
    boundaries: Tensor | None = None
    signal: Tensor | None = None
    positions: Tensor | None = None
    cache: Cache | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(B, n): texts, and tokens per text including padding."""
        tokens = self.states if self.ids is None else self.ids
        assert tokens is not None
        return tokens.shape[0], tokens.shape[1]

    def map(self, change: Callable[[Tensor], Tensor]) -> Tokens:
        """A copy with change applied to every tensor, including those of the source."""
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        changed: dict[str, Any] = {
            name: change(value) for name, value in tensors.items() if isinstance(value, Tensor)
        }
        source = None if self.source is None else self.source.map(change)
        return replace(self, **changed, source=source)

    def truncate(self, length: int) -> Tokens:
        """The first tokens of each text; images and audio are not cut."""
        source = None if self.source is None else self.source.truncate(length)
        text = self if self.signal is not None else self.map(lambda x: x[:, :length])
        return replace(text, source=source)


def repeat_batch(x: Tensor, times: int) -> Tensor:
    """Concatenate copies of a batch: (B, ...) -> (times * B, ...)."""
    return x.expand(times, *x.shape).flatten(0, 1)


def apply_in_chunks(function: Callable[..., Tensor], x: Tensor, *positions: Tensor) -> Tensor:
    """The token-wise function of x (..., n, d) and positions (n,).

    Without gradients it is applied to chunks of tokens. Raises Cancelled between chunks.
    """
    if torch.is_grad_enabled() or x.shape[-2] <= CHUNK:
        return function(x, *positions)
    results = []
    for chunk in zip(x.split(CHUNK, dim=-2), *(p.split(CHUNK) for p in positions), strict=True):
        raise_if_cancelled()
        results.append(function(*chunk))
    return torch.cat(results, dim=-2)


class RelativeBiases(nn.Module):
    """The biases u and v of relative attention (Dai et al. 2019), shared by all layers."""

    def __init__(self, heads: int, d_head: int) -> None:
        super().__init__()
        self.content_bias = nn.Parameter(torch.zeros(heads, d_head))
        self.position_bias = nn.Parameter(torch.zeros(heads, d_head))


class Attention(nn.Module):
    """Multi-head attention of one layer: the query, key, value and output projections.

    shift: how far the keys were shifted (a shifted key keeps its rotary position). synthesis:
    synthesised scores, which replace or join those of queries and keys. mixtures: projections of
    keys and values to slots, of each head. content: whether queries and keys are made of tokens,
    not of positions alone. context_width: width of the context where it is not that of x.
    shared_parts: submodules used by all heads; the rows of the others are
    divided among the heads.
    """

    shared_parts: ClassVar[tuple[str, ...]] = ("o",)
    distance_sign: ClassVar = 1  # of relative positions: 1 for key - query, -1 for query - key

    def __init__(
        self,
        layer: Layer,
        rule: Rule,
        width: int,
        d_head: int,
        positions: str,
        bias: bool = True,
        shift: int = 0,
        synthesis: Synthesis | None = None,
        mixtures: Mixtures | None = None,
        content: bool = True,
        context_width: int | None = None,
    ) -> None:
        super().__init__()
        inner = len(layer.heads) * d_head
        context_width = context_width or width
        self.layer, self.rule, self.d_head, self.shift = layer, rule, d_head, shift
        self.synthesis, self.mixtures = synthesis, mixtures
        self.has_content = content if synthesis is None else "dot" in synthesis.forms
        with warnings.catch_warnings():  # the weights of a layer without heads are empty
            warnings.filterwarnings("ignore", "Initializing zero-element tensors")
            if self.has_content:
                self.q = nn.Linear(width, inner, bias=bias)
                self.k = nn.Linear(context_width, inner, bias=bias)
            self.v = nn.Linear(context_width, inner, bias=bias)
            self.o = nn.Linear(inner, width)
            # hourglass-transformer-pytorch has no relative positions within a window
            self.relative = positions == "relative" and layer.window is None
            if self.relative:
                self.r = nn.Linear(width, inner)
        self.rotary = positions == "rotary"
        quadratic = positions == "quadratic"
        self.places = QuadraticPositions(len(layer.heads), layer.causal) if quadratic else None

    def forward(
        self,
        x: Tensor,
        context: Tensor,
        keep: Tensor | None,
        rel: RelativeBiases | None,
        run: Run,
        slots: Projection | Mixtures | None = None,
    ) -> Tensor:
        """x (B, Q, d) attends over context (B, K, d) -> (B, Q, d)

        keep (B, K): False for padding. slots: projection of the context, or of keys and values.
        """
        slots = self.mixtures or slots
        mixture = None if slots is None else slots.mixture(context.shape[1], keep)
        if isinstance(slots, Projection):
            context, keep = slots(context, keep), None
        q, k = self._project("q", x), self._project("k", context)
        v = self._split(apply_in_chunks(self.v, context))
        if isinstance(slots, Mixtures):
            (k, v), keep = slots(k, v, keep), None
        out = run.attend(
            self.layer.index, q, k, v, self.rule, heads=self.layer.heads, keep=keep,
            relative=self._distance_terms(rel), output=self.o, mixture=mixture,
        )  # fmt: skip
        return apply_in_chunks(self.o, out.transpose(1, 2).flatten(2))

    def _project(self, side: Side, x: Tensor) -> Tensor:
        """Queries or keys (B, H, n, D) of tokens (B, n, d)."""
        content = None
        if self.has_content:
            content = self._split(apply_in_chunks(getattr(self, side), x))
            if self.rotary:
                stride, shift = (
                    (self.rule.stride_q, 0) if side == "q" else (self.rule.stride_k, self.shift)
                )
                positions = (torch.arange(x.shape[1], device=x.device) - shift) * stride
                content = apply_in_chunks(rotate, content, positions)
        if self.synthesis is not None:
            return self.synthesis.project(side, x, content)
        if content is None:  # scores are those of positions alone
            return x.new_zeros(len(x), len(self.layer.heads), x.shape[1], 1)
        return content

    def _split(self, x: Tensor) -> Tensor:  # (B, n, H * D) -> (B, H, n, D)
        return x.unflatten(-1, (len(self.layer.heads), self.d_head)).transpose(1, 2)

    def _distance_terms(self, rel: RelativeBiases | None) -> Distance | None:
        if self.places is not None:
            return self.places(self.rule.scale)
        if not self.relative or rel is None:
            return None
        heads = (len(self.layer.heads), self.d_head)
        unit = self.rule.stride_q if self.layer.role == "up" else 1
        content: Tensor = rel.content_bias
        position: Tensor = rel.position_bias
        if len(content) > len(self.layer.heads):  # some heads are pruned
            numbers = list(self.layer.heads)
            content, position = content[numbers], position[numbers]
        return Relative(
            self.r.weight.unflatten(0, heads),
            self.r.bias.view(heads),
            content,
            position,
            unit * self.distance_sign,
        )


class Collaborative(Attention):
    """Collaborative attention: heads share W_Q and W_K of width R, and weigh their columns by m_h.

    S^(h) = X W_Q diag(m_h) W_K^T X^T (Cordonnier, Loukas and Jaggi 2020, eq. 6), plus the biases
    c_h . x_key and b_h . x_query + e_h (softmax cancels the latter). The score is the product of
    q_h = (x W_Q * m_h, b_h . x + e_h, 1) and k_h = (x W_K, 1, c_h . x). mix (H, R) holds m_h,
    key_bias (H, d) c_h, query_bias b_h and e_h.
    """

    shared_parts: ClassVar = ("o", "q", "k")

    def __init__(
        self,
        layer: Layer,
        rule: Rule,
        width: int,
        d_head: int,
        positions: str,
        shared: int,
        mixtures: Mixtures | None = None,
    ) -> None:
        super().__init__(layer, rule, width, d_head, positions, mixtures=mixtures)
        heads = len(layer.heads)
        self.q = nn.Linear(width, shared, bias=False)
        self.k = nn.Linear(width, shared, bias=False)
        self.mix = nn.Parameter(torch.empty(heads, shared))
        with warnings.catch_warnings():  # the weights of a layer without heads are empty
            warnings.filterwarnings("ignore", "Initializing zero-element tensors")
            self.key_bias = nn.Linear(width, heads, bias=False)
            self.query_bias = nn.Linear(width, heads)
            nn.init.normal_(self.mix, std=(d_head / shared) ** 0.5)  # scores as large as usual

    def _project(self, side: Side, x: Tensor) -> Tensor:
        if side == "q":
            content = self.q(x)[:, None] * self.mix[:, None]  # (B, H, n, R)
            bias = self.query_bias(x).mT[..., None]
            return torch.cat([content, bias, torch.ones_like(bias)], -1)
        content = self.k(x)[:, None].expand(-1, len(self.mix), -1, -1)
        bias = self.key_bias(x).mT[..., None]
        return torch.cat([content, torch.ones_like(bias), bias], -1)


class FeedForward(nn.ModuleDict):
    """A linear layer "in" to d_ff, a non-linearity, and a linear layer "out"."""

    def __init__(self, width: int, d_ff: int, kind: str) -> None:
        super().__init__({"in": nn.Linear(width, d_ff), "out": nn.Linear(d_ff, width)})
        self.kind = kind

    @property
    def first(self) -> nn.Linear:
        """The linear layer from d to d_ff."""
        return cast(nn.Linear, self["in"])

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        """(B, n, d) -> (B, n, d); hidden (B, n, d_ff): the output of "in", where it is known"""
        if hidden is None:
            return apply_in_chunks(lambda chunk: self._project_down(self["in"](chunk)), x)
        return self._project_down(hidden)

    def _project_down(self, hidden: Tensor) -> Tensor:
        # in place where possible: hidden is the largest tensor of a pass
        functions = IN_PLACE if hidden.is_inference() else NON_LINEARITIES
        return self["out"](functions[self.kind](hidden))


class ResidualBlock(nn.Module):
    """Base of blocks of attention and a feed-forward, each with a residual connection.

    norm_first: pre-norm (Xiong et al. 2020), else post-norm (Vaswani et al. 2017).
    """

    norm_first = True
    ff: FeedForward
    ln_attn: nn.LayerNorm
    ln_cross: nn.LayerNorm
    ln_ff: nn.LayerNorm
    drop: nn.Module

    @property
    def attentions(self) -> list[Attention]:
        """The attention modules, in order."""
        return [part for part in self.children() if isinstance(part, Attention)]

    @property
    def norm_before_ff(self) -> nn.LayerNorm:
        """The norm whose output the feed-forward reads."""
        if self.norm_first:
            return self.ln_ff
        return self.ln_cross if hasattr(self, "ln_cross") else self.ln_attn

    def finish(self, z: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Output (B, n, d) of the block from z, the sum after its last attention, before any norm.

        hidden (B, n, d_ff): the output of ff.first, where it is known.
        """
        if self.norm_first:
            return z + self.drop(self.ff(self.ln_ff(z), hidden))
        y = self.norm_before_ff(z)
        return self.ln_ff(y + self.drop(self.ff(y, hidden)))


class Network(nn.Module):
    """Base of all model families."""

    config: Any  # a Configuration, or that of a transformers model

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config

    def forward(self, tokens: Tokens | Tensor, run: Run | None = None) -> Tensor:
        """Logits (B, n, vocabulary) or (B, classes), or states (B, n, d), by config.goal.

        tokens: Tokens, or ids (B, n).
        """
        raise NotImplementedError

    @property
    def token_embedding(self) -> nn.Embedding:
        """The embedding of the vocabulary."""
        return cast(nn.Embedding, self.get_submodule("embed.token"))

    def embed_tokens(self, tokens: Tokens) -> Tensor:
        """Token embeddings (B, n, d), without positions."""
        return self.token_embedding(tokens.ids) if tokens.embedded is None else tokens.embedded

    def learn(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, n, vocabulary) of ids (B, n) in training, and the model's auxiliary loss."""
        logits: Tensor = self(ids)
        return logits, logits.new_zeros(())


def as_tokens(tokens: Tokens | Tensor) -> Tokens:
    """Tokens as they are, ids (B, n) as Tokens."""
    return Tokens(tokens) if isinstance(tokens, Tensor) else tokens


@dataclass(frozen=True, slots=True)
class ExternalLayer:
    """An attention layer of a transformers model, its output projection o and its head width."""

    layer: Layer
    o: nn.Linear
    d_head: int


def attention_layers(module: Network) -> tuple[Layer, ...]:
    """The attention layers of a model, in order of computation."""
    return tuple(getattr(module.config, "layers", ()))


def attention_modules(module: Network) -> list[Attention]:
    """The attention modules of a model of an own family, in order of computation."""
    modules = (part for part in module.modules() if isinstance(part, Attention))
    return sorted(modules, key=lambda part: part.layer.index)


def output_projections(module: Network) -> list[Attention | ExternalLayer]:
    """The layers of a model of any family whose output projection is known."""
    external: list[ExternalLayer] = getattr(module, "projected", list)()
    return [*attention_modules(module)] or [*external]
