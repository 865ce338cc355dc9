"""The layers and configurations that all families share, and what goes through them.

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
from hgviz.core import (
    Goal,
    HgvizError,
    Integers,
    Layer,
    Level,
    ModelSpec,
    raise_if_cancelled,
    readonly,
)
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

PIECE = 1 << 15  # tokens of a long text at a time, where each is read by itself

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
    """What a model of hgviz's own families is built from; its fields are the keys of config.json.

    max_positions: the longest text, None for any.
    """

    vocab_size: Count
    d_model: Width
    family: str = ""
    model_type: Literal["hgviz"] = "hgviz"
    max_positions: Count | None = None

    @property
    def form(self) -> str:
        """Which form of its family it is, "" where there is one."""
        return ""

    @property
    def goal(self) -> Goal:
        """What its outputs say; see ModelSpec."""
        return "next"

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer that attends, in order of computation."""
        return ()

    @property
    def levels(self) -> tuple[Level, ...]:
        """Every resolution, full first."""
        return (Level(0),)

    def spans(self, tokens: int, target: int = 0) -> tuple[Integers, ...]:
        """The tokens behind every position of every level, for a text of so many tokens."""
        return own_spans(self.levels, source=tokens, target=target)

    def replace(self, **changes: Any) -> Self:
        """The same configuration with other values of some keys."""
        return msgspec.structs.replace(self, **changes)

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """A description of such a model, for people and files."""
        return ModelSpec(
            family=self.family, name=name, levels=self.levels,
            layers=self.layers, width=self.d_model, vocabulary=self.vocab_size, digest=digest,
            parameters=parameters, max_positions=self.max_positions, form=self.form,
            goal=self.goal,
        )  # fmt: skip

    def build(self) -> Network:
        """The model, its weights as torch initializes them."""
        raise NotImplementedError


class AttentionConfiguration(Configuration, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What families that attend are built from.

    activations: see spread_activations. norms: {activation: l2 | l2-literal | none}. top_k: how
    many keys the activation topk keeps. kept: the numbers of the heads that each layer still has,
    all where empty.
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
        self._set("d_head", head_width(self.d_model, self.n_heads, self.d_head))
        self._set("d_ff", self.d_ff or 4 * self.d_model)

    def _set(self, name: str, value: Any) -> None:
        msgspec.structs.force_setattr(self, name, value)

    def require(self, faults: Iterable[tuple[Any, str]]) -> None:
        """Raise HgvizError for the first of the (condition, what is wrong) that holds, and for
        heads in `kept` that a layer has not."""
        layers, heads = len(self.places()), range(self.n_heads)
        listed = [list(numbers) for numbers in self.kept]
        faults = (
            *faults,
            (self.kept and len(self.kept) != layers,
             f"kept needs the heads of each of the {layers} layers that attend"),
            (any(numbers != sorted({*numbers} & {*heads}) for numbers in listed),
             f"kept lists the numbers of heads, each once, from 0 to {self.n_heads - 1}"),
        )  # fmt: skip
        for failed, what in faults:
            require(not failed, f"this model cannot be built: {what}", "Correct its configuration")

    def places(self) -> Sequence[tuple[Any, ...]]:
        """What is known of every layer that attends, besides its heads."""
        raise NotImplementedError

    def layer(self, index: int, **places: Any) -> Layer:
        """The layer of a number, with the heads that are left and their activations."""
        heads = self.kept[index] if self.kept else tuple(range(self.n_heads))
        names = spread_activations(self.activations, index, self.n_heads)
        return Layer(
            index=index, heads=heads, activations=tuple(names[head] for head in heads), **places
        )

    def rule(self, layer: Layer, **changes: Any) -> Rule:
        """How scores become weights in a layer."""
        return Rule(
            **{"scale": self.d_head**-0.5, **changes},
            activations=layer.activations,
            norms=norms_of(layer.activations, self.norms),
            top_k=self.top_k,
            causal=layer.causal,
        )


def require_attention(config: Any) -> Any:
    """The same configuration. Raises HgvizError for a model whose layers do not attend."""
    if isinstance(config, Configuration) and not isinstance(config, AttentionConfiguration):
        raise no_attention_error(config.family)
    return config


def spread_activations(activations: Any, layer: int, heads: int) -> tuple[str, ...]:
    """The activation of each head of a layer, from what config.json says.

    One name for the model, a list for the heads of every layer, or one list per layer. A list
    shorter than the heads goes over them in equal blocks ("split, activate, concat").
    """
    names = activations
    if names and not isinstance(names[0], str):
        names = names[layer]
    return tuple(names[head * len(names) // heads] for head in range(heads))


def own_spans(levels: Iterable[Level], **sizes: int) -> tuple[Integers, ...]:
    """(positions, 2) of each level whose sequence has so many positions, each for itself."""
    ends = [np.arange(sizes[level.sequence], dtype=np.int64) for level in levels]
    return tuple(readonly(np.stack([end, end + 1], axis=1)) for end in ends)


def norms_of(names: tuple[str, ...], norms: Mapping[str, str]) -> tuple[Norm, ...]:
    """The norm of each head's scores: what norms says of its activation, else its own."""
    # unknown names are refused later, in words
    own = {name: row.norm or "none" for name, row in ACTIVATIONS.items()}
    chosen = [norms.get(name, own.get(name, "none")) for name in names]
    return tuple(None if norm == "none" else norm for norm in chosen)  # type: ignore[misc]


def head_width(d_model: int, n_heads: int, d_head: int) -> int:
    """d_head, or the width over the heads. Raises HgvizError where that is no whole number."""
    require(
        d_head or d_model % n_heads == 0,
        f"{n_heads} heads do not divide the width {d_model}: "
        f"{d_model} / {n_heads} is not a whole number",
        "Change n_heads or d_model, or give d_head",
    )
    return d_head or d_model // n_heads


def require_even_heads(positions: str, d_head: int) -> None:
    """Raise HgvizError for rotary positions of heads of an odd width."""
    require(
        positions != "rotary" or d_head % 2 == 0,
        f"rotary positions cannot turn heads of width {d_head}: they turn pairs of numbers",
        "Choose an even width per head",
    )


# --- parts ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Cache:
    """Keys and values of the tokens that a model of transformers has read, as its own code keeps
    them; None where nothing was read, or nothing is kept."""

    kept: Any = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """A batch of texts: ids (B, n); keep (B, n), False where padded; segments (B, n), the token
    types; or an encoder's states (B, n, d) in place of ids. source: the texts a decoder looks at.
    embedded (B, n, d): token embeddings in place of those of ids, which then only count.
    boundaries (B, n): what closes a segment, in place of what a model of segments finds itself.
    signal (B, ...): pictures or sounds in place of ids, which then only count.
    positions (B, n): the position of each token, in place of those that the model counts.
    cache: keys and values of the tokens that these follow, to which theirs are added.
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
        """How many texts there are, and how many tokens each has, padding included."""
        counted = self.states if self.ids is None else self.ids
        assert counted is not None
        return counted.shape[0], counted.shape[1]

    def map(self, change: Callable[[Tensor], Tensor]) -> Tokens:
        """The same texts with every tensor changed, those of the source as well."""
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        changed: dict[str, Any] = {
            name: change(value) for name, value in tensors.items() if isinstance(value, Tensor)
        }
        source = None if self.source is None else self.source.map(change)
        return replace(self, **changed, source=source)

    def truncated(self, length: int) -> Tokens:
        """The first tokens of each text; pictures and sounds stay whole."""
        source = None if self.source is None else self.source.truncated(length)
        text = self if self.signal is not None else self.map(lambda x: x[:, :length])
        return replace(text, source=source)


def repeat_batch(x: Tensor, times: int) -> Tensor:
    """The batch repeated, one copy of all texts after the other: (B, ...) -> (times * B, ...)."""
    return x.expand(times, *x.shape).flatten(0, 1)


def apply_in_chunks(part: Callable[..., Tensor], x: Tensor, *places: Tensor) -> Tensor:
    """Apply a token-wise function to x (..., n, d) and positions (n,), without gradients in chunks
    between which the work can be cancelled."""
    if torch.is_grad_enabled() or x.shape[-2] <= PIECE:
        return part(x, *places)
    parts = []
    pieces = zip(x.split(PIECE, dim=-2), *(one.split(PIECE) for one in places), strict=True)
    for piece in pieces:
        raise_if_cancelled()
        parts.append(part(*piece))
    return torch.cat(parts, dim=-2)


class RelativeBiases(nn.Module):
    """The biases u and v of relative attention (Dai et al. 2019), shared by all layers."""

    def __init__(self, heads: int, d_head: int) -> None:
        super().__init__()
        self.content_bias = nn.Parameter(torch.zeros(heads, d_head))
        self.position_bias = nn.Parameter(torch.zeros(heads, d_head))


class Attention(nn.Module):
    """Queries, keys and values of one layer around the one function that attends.

    shift: how many zeros the keys were shifted by (a shifted key keeps its rotary position).
    synthesis: what makes queries and keys in place of tokens, or beside them. mixtures: what its
    heads project their keys and values by, each head by its own. content: whether what tokens say
    counts beside where they stand. of_all: its parts that belong to all heads; the rows of all
    others go by heads.
    """

    of_all: ClassVar[tuple[str, ...]] = ("o",)

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
    ) -> None:
        super().__init__()
        inner = len(layer.heads) * d_head
        self.layer, self.rule, self.d_head, self.shift = layer, rule, d_head, shift
        self.synthesis, self.mixtures = synthesis, mixtures
        self.meets = content if synthesis is None else "dot" in synthesis.forms
        with warnings.catch_warnings():  # a layer may have no heads, and so weights of no numbers
            warnings.filterwarnings("ignore", "Initializing zero-element tensors")
            if self.meets:
                self.q = nn.Linear(width, inner, bias=bias)
                self.k = nn.Linear(width, inner, bias=bias)
            self.v = nn.Linear(width, inner, bias=bias)
            self.o = nn.Linear(inner, width)
            # windows are as the package computes them: no positions inside
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
        """x (B, Q, d) attends over context (B, K, d), or over what slots makes of it; keep (B, K)
        or None -> (B, Q, d)"""
        slots = self.mixtures or slots
        mixture = None if slots is None else slots.mixture(context.shape[1], keep)
        if isinstance(slots, Projection):
            context, keep = slots(context, keep), None
        q, k = self._side("q", x), self._side("k", context)
        v = self._split(apply_in_chunks(self.v, context))
        if isinstance(slots, Mixtures):
            (k, v), keep = slots(k, v, keep), None
        out = run.attend(
            self.layer.index, q, k, v, self.rule, heads=self.layer.heads, keep=keep,
            relative=self._distances(rel), output=self.o, mixture=mixture,
        )  # fmt: skip
        return apply_in_chunks(self.o, out.transpose(1, 2).flatten(2))

    def _side(self, name: Side, x: Tensor) -> Tensor:
        """Queries or keys (B, H, n, D) of tokens (B, n, d)."""
        own = self._split(apply_in_chunks(getattr(self, name), x)) if self.meets else None
        if self.rotary and own is not None:
            at = (0, self.rule.stride_q) if name == "q" else (-self.shift, self.rule.stride_k)
            own = apply_in_chunks(rotate, own, self._tokens(own, *at))
        if self.synthesis is not None:
            return self.synthesis.side(name, x, own)
        if own is None:  # positions alone are weighed
            return x.new_zeros(len(x), len(self.layer.heads), x.shape[1], 1)
        return own

    def _split(self, x: Tensor) -> Tensor:  # (B, n, H * D) -> (B, H, n, D)
        return x.unflatten(-1, (len(self.layer.heads), self.d_head)).transpose(1, 2)

    def _tokens(self, x: Tensor, first: int, stride: int) -> Tensor:
        """The token each row stands for."""
        return (torch.arange(x.shape[-2], device=x.device) + first) * stride

    def _distances(self, rel: RelativeBiases | None) -> Distance | None:
        if self.places is not None:
            return self.places(self.rule.scale)
        return self._bias(rel) if self.relative and rel is not None else None

    def _bias(self, rel: RelativeBiases) -> Relative:
        heads = (len(self.layer.heads), self.d_head)
        unit = self.rule.stride_q if self.layer.role == "up" else 1
        content: Tensor = rel.content_bias
        position: Tensor = rel.position_bias
        if len(content) > len(self.layer.heads):  # shared by the number of a head
            numbers = list(self.layer.heads)
            content, position = content[numbers], position[numbers]
        return Relative(
            self.r.weight.unflatten(0, heads), self.r.bias.view(heads), content, position, unit
        )


class Collaborative(Attention):
    """Heads that share one W_Q and W_K of width R and mix them, each in its own way.

    S^(h) = X W_Q diag(m_h) W_K^T X^T (Cordonnier, Loukas and Jaggi 2020, eq. 6), and what biases
    add: c_h . x_key, and of the query b_h . x + e_h, which softmax does not see. With
    q_h = (x W_Q * m_h, b_h . x + e_h, 1) and k_h = (x W_K, 1, c_h . x) the product is the whole
    score, so that everything that reads queries and keys reads these. mix (H, R) holds every m_h,
    key_bias (H, d) every c_h, query_bias b_h and e_h.
    """

    of_all: ClassVar = ("o", "q", "k")

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
        with warnings.catch_warnings():  # as in any layer without heads
            warnings.filterwarnings("ignore", "Initializing zero-element tensors")
            self.key_bias = nn.Linear(width, heads, bias=False)
            self.query_bias = nn.Linear(width, heads)
            nn.init.normal_(self.mix, std=(d_head / shared) ** 0.5)  # scores as of ordinary heads

    def _side(self, name: Side, x: Tensor) -> Tensor:
        if name == "q":
            own = self.q(x)[:, None] * self.mix[:, None]  # (B, H, n, R)
            bias = self.query_bias(x).mT[..., None]
            return torch.cat([own, bias, torch.ones_like(bias)], -1)
        own = self.k(x)[:, None].expand(-1, len(self.mix), -1, -1)
        bias = self.key_bias(x).mT[..., None]
        return torch.cat([own, torch.ones_like(bias), bias], -1)


class FeedForward(nn.ModuleDict):
    """in, a non-linearity, out."""

    def __init__(self, width: int, d_ff: int, kind: str) -> None:
        super().__init__({"in": nn.Linear(width, d_ff), "out": nn.Linear(d_ff, width)})
        self.kind = kind

    @property
    def first(self) -> nn.Linear:
        """Its first product."""
        return cast(nn.Linear, self["in"])

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        """(B, n, d) -> (B, n, d); hidden (B, n, d_ff): the first product, where it is known"""
        if hidden is None:
            return apply_in_chunks(lambda part: self._fed(self["in"](part)), x)
        return self._fed(hidden)

    def _fed(self, hidden: Tensor) -> Tensor:
        # the largest thing in a pass, not held twice without need
        kinds = IN_PLACE if hidden.is_inference() else NON_LINEARITIES
        return self["out"](kinds[self.kind](hidden))


class ResidualBlock(nn.Module):
    """Attention, then a feed-forward, each added to the residual stream.

    norm_first: norms come before each part (Xiong et al. 2020), else after each sum (Vaswani et
    al. 2017).
    """

    norm_first = True
    ff: FeedForward
    ln_ff: nn.LayerNorm
    drop: nn.Module

    @property
    def attentions(self) -> list[Attention]:
        """Its layers of attention, in order."""
        return [part for part in self.children() if isinstance(part, Attention)]

    @property
    def norm_before_ff(self) -> nn.LayerNorm:
        """The norm that the feed-forward begins with."""
        return self.ln_ff

    def finish(self, z: Tensor, hidden: Tensor | None = None) -> Tensor:
        """The output (B, n, d) of the block for the stream z after its last attention, before any
        norm; hidden (B, n, d_ff): the first product of the feed-forward, where it is known."""
        if self.norm_first:
            return z + self.drop(self.ff(self.ln_ff(z), hidden))
        y = self.norm_before_ff(z)
        return self.ln_ff(y + self.drop(self.ff(y, hidden)))


class Network(nn.Module):
    """What every family of models is."""

    config: Any  # a Configuration, or that of a model of transformers

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config

    def forward(self, tokens: Tokens | Tensor, run: Run | None = None) -> Tensor:
        """What config.goal asks of tokens, or of ids (B, n) alone: logits (B, n, vocabulary) or
        (B, classes), or states (B, n, d)."""
        raise NotImplementedError

    @property
    def table(self) -> nn.Embedding:
        """The embeddings of the vocabulary."""
        raise NotImplementedError

    def learn(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, n, vocabulary) of ids (B, n) while the next token is learnt, and what is to
        become less besides their loss: nothing, where a family does not say otherwise."""
        logits: Tensor = self(ids)
        return logits, logits.new_zeros(())


def require_length(length: int, limit: int | None) -> None:
    """Raise HgvizError for a text of more tokens than a model has positions for."""
    if limit is not None and length > limit:
        raise HgvizError(
            f"the text has {length:,} tokens and this model reads at most {limit:,}: "
            "its positions end there",
            "Shorten the text",
        )


def as_tokens(tokens: Tokens | Tensor) -> Tokens:
    """The same Tokens, or ids (B, n) wrapped in Tokens."""
    return Tokens(tokens) if isinstance(tokens, Tensor) else tokens


@dataclass(frozen=True, slots=True)
class ExternalLayer:
    """A layer of a model that is not hgviz's own: its heads' contexts, d_head wide each, go through
    the product o."""

    layer: Layer
    o: nn.Linear
    d_head: int


def attention_layers(module: Network) -> tuple[Layer, ...]:
    """The layers of attention of a model, in order of computation; () of a model without any."""
    return tuple(getattr(module.config, "layers", ()))


def attention_modules(module: Network) -> list[Attention]:
    """The attention modules of a model of an own family, in order of computation."""
    modules = (part for part in module.modules() if isinstance(part, Attention))
    return sorted(modules, key=lambda part: part.layer.index)


def output_projections(module: Network) -> list[Attention | ExternalLayer]:
    """The layers of a model of any family whose heads go through a product that hgviz knows."""
    external: list[ExternalLayer] = getattr(module, "projected", list)()
    return [*attention_modules(module)] or [*external]
