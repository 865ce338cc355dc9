"""What models of every family are made of, and what goes through them.

Shapes: B batch, n tokens, H heads, Q queries, K keys, D head width, d width.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgviz.activations import ACTIVATIONS
from hgviz.core import NO_STREAMING, Layer, Off, Streaming, raise_if_cancelled
from hgviz.maps.rule import Rule
from hgviz.models.attention import Bias, Tap, attend, rotate
from hgviz.models.config import Config
from hgviz.models.positions import Quadratics, Sinusoids
from hgviz.models.slots import Mixtures, Projection
from hgviz.models.synthesis import Side, Synthesis
from hgviz.models.tap import to_numpy, value_norms

PIECE = 1 << 15  # tokens of a long text at a time, where each is read by itself
EMBEDDED = -1  # in place of a layer's number, before the first

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


@dataclass(frozen=True, slots=True)
class Tokens:
    """A batch of texts: ids (B, n); keep (B, n), False where padded; segments (B, n), the token
    types; or an encoder's states (B, n, d) in place of ids. source: the texts a decoder looks at.
    embedded (B, n, d): token embeddings in place of those of ids, which then only count.
    boundaries (B, n): what closes a segment, in place of what a model of segments finds itself.
    signal (B, ...): pictures or sounds in place of ids, which then only count.
    positions (B, n): the position of each token, in place of those that the model counts.
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


@dataclass(slots=True)
class Known:
    """What a pass leaves behind, by the numbers of layers, and what another need not compute.

    outputs (B, n, d) of the block that a layer is the last of, attended (B, Q, d) of a layer,
    contexts (B, H, Q, D) of its heads, sums (B, Q, d) of the stream and what it attended, before
    any norm; hidden (B, Q, d_ff): the first product of the feed-forward that follows. streams: as
    outputs, of blocks that hand on more than these and so have to be computed again. Embeddings
    are the output of layer EMBEDDED. times: how many variants of its texts the other pass runs side
    by side; copies: outputs so many times, for all passes with the same outputs.
    """

    outputs: dict[int, Tensor] = field(default_factory=dict)
    attended: dict[int, Tensor] = field(default_factory=dict)
    contexts: dict[int, Tensor] = field(default_factory=dict)
    sums: dict[int, Tensor] = field(default_factory=dict)
    hidden: dict[int, Tensor] = field(default_factory=dict)
    times: int = 1
    copies: dict[tuple[int, int], Tensor] = field(default_factory=dict)
    streams: dict[int, Tensor] = field(default_factory=dict)

    def output(self, layer: int) -> Tensor | None:
        """(times * B, n, d), None where it is to be computed."""
        found = self.outputs.get(layer)
        if found is None or self.times == 1:
            return found
        if (layer, self.times) not in self.copies:
            self.copies[layer, self.times] = repeated(found, self.times)
        return self.copies[layer, self.times]


@dataclass(frozen=True, slots=True)
class Met:
    """What a layer attended with: q (B, H, Q, D), k and v (B, H, K, D), keep (B, K), the rule."""

    q: Tensor
    k: Tensor
    v: Tensor
    keep: Tensor | None
    relative: Bias | None
    rule: Rule


@dataclass(slots=True)
class Cache:
    """Keys and values of the tokens that a model of transformers has read, as its own code keeps
    them; None where nothing was read, or nothing is kept."""

    kept: Any = None


@dataclass(frozen=True, slots=True)
class Pass:
    """What one forward pass is asked for besides logits, and what it need not compute.

    gates: by layer, (B, H) factors of what its heads give. cache: what is kept of the tokens that
    these follow, to which these are added. known: parts of another pass of the same texts, taken as
    they are. record: gets the parts of this one. readout: only positions that a classifier reads
    leave its last block, and no map is whole there. dense: the tap is for weights themselves.
    met: gets what each layer attended with, by its number; not together with cache or readout.
    streaming: heads that see the first keys and the latest; not together with cache, readout or
    met.
    """

    off: Off = frozenset()
    tap: Tap | None = None
    cache: Cache | None = None
    gates: Mapping[int, Tensor] = field(default_factory=dict)
    known: Known | None = None
    record: Known | None = None
    readout: bool = False
    dense: bool = False
    met: dict[int, Met] | None = None
    streaming: Streaming = NO_STREAMING

    def skipped(self, layer: int) -> Tensor | None:
        """The output of the block whose last layer this is, None where it is to be computed."""
        return None if self.known is None else self.known.output(layer)

    def hidden(self, layer: int) -> Tensor | None:
        """What the feed-forward after this layer begins with, None where it is to be computed."""
        return None if self.known is None else self.known.hidden.get(layer)

    def summed(self, layer: int, z: Tensor) -> Tensor:
        """The stream with what a layer attended, on its way on."""
        if self.record is not None:
            self.record.sums[layer] = z
        return z

    def left(self, layer: int, output: Tensor) -> Tensor:
        """The output of a block, on its way on."""
        if self.record is not None:
            self.record.outputs[layer] = output
        return output


def repeated(x: Tensor, times: int) -> Tensor:
    """(B, ...) -> (times * B, ...), one copy of all texts after the other."""
    return x.expand(times, *x.shape).flatten(0, 1)


def by_pieces(part: Callable[..., Tensor], x: Tensor, *places: Tensor) -> Tensor:
    """What a part that reads every token by itself makes of x (..., n, d) and of places (n,); of a
    long text piece after piece, between which whoever waits can stop it."""
    if torch.is_grad_enabled() or x.shape[-2] <= PIECE:
        return part(x, *places)
    parts = []
    pieces = zip(x.split(PIECE, dim=-2), *(one.split(PIECE) for one in places), strict=True)
    for piece in pieces:
        raise_if_cancelled()
        parts.append(part(*piece))
    return torch.cat(parts, dim=-2)


class Relative(nn.Module):
    """The biases u and v of relative attention, shared by every layer."""

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
        self.places = Quadratics(len(layer.heads), layer.causal) if quadratic else None
        # nothing comes between keys and what they are made of
        kinds = [ACTIVATIONS[name] for name in rule.activations]
        featured = any(one.features or one.of_keys for one in kinds)
        placed = self.rotary or self.relative or quadratic
        self.direct = not (placed or layer.window or featured)

    def forward(
        self,
        x: Tensor,
        context: Tensor,
        keep: Tensor | None,
        rel: Relative | None,
        run: Pass,
        slots: Projection | Mixtures | None = None,
    ) -> Tensor:
        """x (B, Q, d) attends over context (B, K, d), or over what slots makes of it; keep (B, K)
        or None -> (B, Q, d)"""
        layer, tap = self.layer, run.tap
        slots = self.mixtures or slots
        mixture = None if slots is None or tap is None else slots.mixture(context.shape[1], keep)
        if isinstance(slots, Projection):
            context, keep = slots(context, keep), None
        if run.known is not None and layer.index in run.known.attended:
            return run.known.attended[layer.index]
        off = [layer.heads.index(one.head) for one in run.off if one.layer == layer.index]
        q = self._side("q", x)
        few = run.readout and tap is None and self._spares(x, context, slots)
        if not few:
            k, v = self._side("k", context), self._split(by_pieces(self.v, context))
            if isinstance(slots, Mixtures):
                (k, v), keep = slots(k, v, keep), None
            q, k = self._longer(q, k, rel)
        relative = self._distances(rel)
        if run.met is not None:
            run.met[layer.index] = Met(q, k, v, keep, relative, self.rule)
        if few:
            out = self._met(q, context, keep, off)
        else:
            given = None if tap is None else partial(self._tapped, tap, v, mixture)
            out = attend(
                q, k, v, self.rule, keep=keep, relative=relative, off=off,
                streaming=run.streaming.places(layer.index, layer.heads), near=run.streaming.near,
                **{"maps" if run.dense else "tap": given},
            )  # fmt: skip
        if (gates := run.gates.get(layer.index)) is not None:
            out = out * gates[:, :, None, None]
        attended = by_pieces(self.o, out.transpose(1, 2).flatten(2))
        if run.record is not None:
            run.record.contexts[layer.index] = out
            run.record.attended[layer.index] = attended
        return attended

    def _side(self, name: Side, x: Tensor) -> Tensor:
        """Queries or keys (B, H, n, D) of tokens (B, n, d)."""
        own = self._split(by_pieces(getattr(self, name), x)) if self.meets else None
        if self.rotary and own is not None:
            at = (0, self.rule.stride_q) if name == "q" else (-self.shift, self.rule.stride_k)
            own = by_pieces(rotate, own, self._tokens(own, *at))
        if self.synthesis is not None:
            return self.synthesis.side(name, x, own)
        if own is None:  # positions alone are weighed
            return x.new_zeros(len(x), len(self.layer.heads), x.shape[1], 1)
        return own

    def _tapped(self, tap: Tap, v: Tensor, mixture: Tensor | None, found: Any) -> None:
        """Hand on what was attended with, how much every key has to give, and what it is of."""
        norms = to_numpy(value_norms(v, self.o.weight))
        of = None if mixture is None else to_numpy(mixture.detach().float())
        tap(self.layer.index, replace(found, value_norms=norms, mixture=of))

    def _spares(self, x: Tensor, context: Tensor, slots: Projection | Mixtures | None) -> bool:
        """Whether queries are so few that keys and values cost more to make than to go without."""
        queries, keys = x.shape[1], context.shape[1]
        direct = self.direct and self.synthesis is None and not isinstance(slots, Mixtures)
        return direct and queries * (self.d_head + keys) < keys * self.d_head

    def _met(self, q: Tensor, context: Tensor, keep: Tensor | None, off: Collection[int]) -> Tensor:
        """(B, H, Q, D) of queries that meet the tokens themselves: q . W_K x = (W_K^T q) . x, and
        W_V comes after the sum over tokens. A last entry of 1 in each token carries the biases."""
        x = F.pad(context, (0, 1), value=1.0)[:, None].expand(-1, q.shape[1], -1, -1)
        q = torch.einsum("bhqd,hde->bhqe", q, self._by_head(self.k))
        out = attend(q, x, x, self.rule, keep=keep, off=off)
        return torch.einsum("bhqe,hde->bhqd", out, self._by_head(self.v))

    def _by_head(self, part: nn.Linear) -> Tensor:  # (H, D, d + 1): weight and bias
        bias = part.weight.new_zeros(len(part.weight)) if part.bias is None else part.bias
        joined = torch.cat([part.weight, bias[:, None]], 1)
        return joined.unflatten(0, (len(self.layer.heads), self.d_head))

    def _split(self, x: Tensor) -> Tensor:  # (B, n, H * D) -> (B, H, n, D)
        return x.unflatten(-1, (len(self.layer.heads), self.d_head)).transpose(1, 2)

    def _tokens(self, x: Tensor, first: int, stride: int) -> Tensor:
        """The token each row stands for."""
        return (torch.arange(x.shape[-2], device=x.device) + first) * stride

    def _longer(self, q: Tensor, k: Tensor, rel: Relative | None) -> tuple[Tensor, Tensor]:
        """With what else their product is to say."""
        return q, k

    def _distances(self, rel: Relative | None) -> Bias | None:
        if self.places is not None:
            return self.places(self.rule.scale)
        return self._bias(rel) if self.relative and rel is not None else None

    def _bias(self, rel: Relative) -> Sinusoids:
        heads = (len(self.layer.heads), self.d_head)
        unit = self.rule.stride_q if self.layer.role == "up" else 1
        content: Tensor = rel.content_bias
        position: Tensor = rel.position_bias
        if len(content) > len(self.layer.heads):  # shared by the number of a head
            numbers = list(self.layer.heads)
            content, position = content[numbers], position[numbers]
        return Sinusoids(
            self.r.weight.unflatten(0, heads), self.r.bias.view(heads), content, position, unit
        )


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
            return by_pieces(lambda part: self._fed(self["in"](part)), x)
        return self._fed(hidden)

    def _fed(self, hidden: Tensor) -> Tensor:
        # the largest thing in a pass, not held twice without need
        kinds = IN_PLACE if hidden.is_inference() else NON_LINEARITIES
        return self["out"](kinds[self.kind](hidden))


class Fed(NamedTuple):
    """A feed-forward, the norm that it begins with, and the layer of attention before that."""

    layer: int
    norm: nn.LayerNorm
    ff: FeedForward


class Network(nn.Module):
    """What every family of models is."""

    config: Config

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config

    def forward(self, tokens: Tokens | Tensor, run: Pass | None = None) -> Tensor:
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


def tokens_from(tokens: Tokens | Tensor) -> Tokens:
    """The same, where ids (B, n) alone were given as Tokens."""
    return Tokens(tokens) if isinstance(tokens, Tensor) else tokens
