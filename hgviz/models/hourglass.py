"""The Hourglass (Nawrot et al. 2021, arXiv 2110.13711): shorten, process, upsample.

Two forms: "official" (trax) resamples by attention over all earlier positions, "windowed"
(hourglass-transformer-pytorch) over the group alone. Before shortening by k, causal models shift by
k - 1, so that no position sees a later token (section 2.2).

Shapes: B batch, n tokens, N tokens padded to a multiple of k, k shorten factor, m groups, d width.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgviz.core import HgvizError, Integers, Layer, Level, ModelSpec, readonly
from hgviz.errors import require
from hgviz.maps.rule import Rule
from hgviz.models.layers import (
    Attention,
    AttentionConfiguration,
    FeedForward,
    Network,
    RelativeBiases,
    ResidualBlock,
    Tokens,
    Width,
    as_tokens,
    require_even_heads,
)
from hgviz.models.run import Run

# --- hierarchies ----------------------------------------------------------------------------------


_STAGE = re.compile(r"([0-9]{1,7})@([0-9]{1,7})")
MOST_LAYERS, MOST_FACTOR = 1000, 2**16  # limits for untrusted files
_EXAMPLE = 'Write LAYERS@FACTOR for each stage, such as "2@1 1@2 3@4 1@2 2@1"'
_DEPTH_EXAMPLE = "Give depth as (2, (1, 4, 1), 2) with shorten_factor (3, 2), or as a number"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Numbers of layers per level, outermost first; factors[l] shortens level l to level l + 1.

    "2@1 1@2 3@4 1@2 2@1" has pre (2, 1), middle 3, post (2, 1) and factors (2, 2). Without
    shortening, pre, post and factors are empty.
    """

    pre: tuple[int, ...]
    middle: int
    post: tuple[int, ...]
    factors: tuple[int, ...]

    @property
    def strides(self) -> tuple[int, ...]:
        """Tokens per position at each level, full resolution first."""
        strides = [1]
        for factor in self.factors:
            strides.append(strides[-1] * factor)
        return tuple(strides)

    def __str__(self) -> str:
        down = [f"{n}@{k}" for n, k in zip(self.pre, self.strides, strict=False)]
        up = [f"{n}@{k}" for n, k in zip(self.post, self.strides, strict=False)]
        return " ".join([*down, f"{self.middle}@{self.strides[-1]}", *reversed(up)])

    def cost(self, tokens: int, width: int) -> float:
        """Multiply-adds of a forward pass, the sum of n_i (12 d^2 n / K + 2 n^2 d / K^2)."""
        counts = [a + b for a, b in zip(self.pre, self.post, strict=True)] + [self.middle]
        return sum(
            count * (12 * width**2 * tokens / k + 2 * tokens**2 * width / k**2)
            for count, k in zip(counts, self.strides, strict=True)
        )


def parse_hierarchy(text: str, vanilla: Sequence[int] | None = None) -> Hierarchy:
    """Parse a hierarchy such as "2@1 1@2 3@4 1@2 2@1".

    vanilla: the full-resolution layers (before, after), where text gives the shortened stages only.
    Raises HgvizError unless the factors mirror around the bottleneck, each a multiple of the next
    outer one.
    """
    matches = [_STAGE.fullmatch(part) for part in text.split()]
    if not matches or None in matches:
        raise _illegal(text, "it is not a list of LAYERS@FACTOR")
    counts = [int(match[1]) for match in matches if match]
    totals = [int(match[2]) for match in matches if match]
    if len(counts) % 2 == 0:
        raise _illegal(text, "the number of stages must be odd")
    if totals[0] != 1:
        if vanilla is None or len(vanilla) != 2:
            raise _illegal(
                text,
                "it starts with a shortened stage, but vanilla_layers (before, after) is unset",
            )
        counts, totals = [vanilla[0], *counts, vanilla[1]], [1, *totals, 1]
    elif vanilla is not None and list(vanilla) != [counts[0], counts[-1]]:
        raise _illegal(text, f"its full-resolution layers differ from vanilla_layers {vanilla}")
    if totals != totals[::-1]:
        raise _illegal(text, "its factors are not symmetric")
    waist = len(counts) // 2
    factors = []
    for outer, inner in pairwise(totals[: waist + 1]):
        if inner <= outer or inner % outer:
            raise _illegal(
                text, f"factor {inner} is not a multiple of the factor {outer} around it"
            )
        factors.append(inner // outer)
    return _hierarchy(text, counts[:waist], counts[waist], counts[waist + 1 :][::-1], factors)


def hierarchy_from_depth(depth: Any, shorten_factor: Any = None) -> Hierarchy:
    """Parse a nested depth such as (2, (1, 4, 1), 2) with shorten_factor (3, 2).

    A single factor applies to every level. Raises HgvizError for an invalid depth or factor.
    """
    pre: list[int] = []
    post: list[int] = []
    inner = depth
    while isinstance(inner, (tuple, list)):
        if len(inner) != 3 or not all(_is_count(inner[i]) for i in (0, 2)):
            raise _illegal(depth, "a depth must be a number or (before, inner, after)")
        pre.append(inner[0])
        post.append(inner[2])
        inner = inner[1]
        if len(pre) > 16:
            raise _illegal(depth, "it is nested more than 16 levels deep")
    if not _is_count(inner):
        raise _illegal(depth, "a depth must be a number or (before, inner, after)")
    single = not isinstance(shorten_factor, (tuple, list))
    factors = [shorten_factor] * len(pre) if single else list(shorten_factor)
    if pre and (len(factors) != len(pre) or not all(_is_count(k) and k >= 2 for k in factors)):
        raise _illegal(
            depth,
            f"shorten_factor {str(shorten_factor)[:40]} must be a number >= 2 for each of its "
            f"{len(pre)} levels",
        )
    return _hierarchy(depth, pre, inner, post, factors if pre else [])


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _hierarchy(
    source: Any, pre: list[int], middle: int, post: list[int], factors: list[int]
) -> Hierarchy:
    counts = [*pre, middle, *post]
    if min(counts) < 0 or sum(counts) > MOST_LAYERS or middle < 1:
        raise _illegal(
            source, f"it needs an innermost layer, and at most {MOST_LAYERS:,} layers in all"
        )
    if math.prod(factors) > MOST_FACTOR:
        raise _illegal(source, f"it shortens by more than {MOST_FACTOR:,}")
    return Hierarchy(tuple(pre), middle, tuple(post), tuple(factors))


def _illegal(source: Any, why: str) -> HgvizError:
    do = _EXAMPLE if isinstance(source, str) else _DEPTH_EXAMPLE
    return HgvizError(f"the hierarchy {repr(source)[:80]} is invalid: {why}", do)


def level_spans(tokens: int, strides: Sequence[int], causal: bool) -> tuple[Integers, ...]:
    """Per level, the tokens [start, end) of each position (positions, 2) of a text.

    Position g of stride K stands for tokens gK to gK + K - 1, or gK - K + 1 to gK if causal.
    """
    spans = []
    for stride in strides:
        first = np.arange(-(-tokens // stride), dtype=np.int64) * stride
        start = np.maximum(first - stride + 1, 0) if causal else first
        end = first + 1 if causal else np.minimum(first + stride, tokens)
        spans.append(readonly(np.stack([start, end], axis=1)))
    return tuple(spans)


# --- configuration --------------------------------------------------------------------------------


class HourglassConfig(
    AttentionConfiguration, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Configuration of an Hourglass; the fields are the keys of config.json.

    hierarchy, vanilla_layers: see parse_hierarchy. attention_downsampling, attention_upsampling:
    the pooling, or spreading, that makes the queries of resampling attention. masking "compat":
    masks as in hourglass-transformer-pytorch. residual: whether the states before shortening are
    added again after upsampling. widths: of each level, d_model everywhere where
    empty; heads are equally wide at all levels, d_ff grows with the width.
    """

    hierarchy: str
    family: Literal["hourglass"] = "hourglass"
    vanilla_layers: tuple[int, int] | None = None
    form: Literal["official", "windowed"] = "official"
    downsampling: Literal["average", "linear", "attention"] = "attention"
    upsampling: Literal["repeat", "linear", "attention"] = "attention"
    attention_downsampling: Literal["average", "linear"] = "average"
    attention_upsampling: Literal["repeat", "linear", "none"] = "linear"
    positions: Literal["learned", "relative", "rotary", "none"] = "relative"
    causal: bool = True
    masking: Literal["strict", "compat"] = "strict"
    residual: bool = True
    widths: tuple[Width, ...] = ()

    def __post_init__(self) -> None:
        AttentionConfiguration.__post_init__(self)
        self._set("hierarchy", str(parse_hierarchy(self.hierarchy, self.vanilla_layers)))
        self._set("vanilla_layers", None)
        require_even_heads(self.positions, self.d_head)
        levels = len(self.shape.factors) + 1
        require(
            not self.widths or (len(self.widths) == levels and self.widths[0] == self.d_model),
            f"widths needs a number for each of the {levels} levels, starting with d_model",
        )
        odd = [width for width in map(self.width, range(levels)) if width % 2]
        require(
            self.positions != "relative" or not odd,
            f"relative positions need an even width, not {odd[0] if odd else 0}",
        )
        require(
            self.positions != "learned" or self.max_positions,
            "learned positions need max_positions, the maximum length",
        )
        self.refuse(())

    @property
    def shape(self) -> Hierarchy:
        """Layers and factors, by level."""
        return parse_hierarchy(self.hierarchy)

    def width(self, level: int) -> int:
        """The width of the states of a level."""
        return self.widths[level] if self.widths else self.d_model

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The attention layers, in order of computation."""
        return tuple(
            self.layer(
                index, name=name, role=role, level=level, key_level=key_level,
                causal=self.causal and window is None, window=window,
            )
            for index, (name, role, level, key_level, window) in enumerate(self.layer_table())
        )  # fmt: skip

    def layer_table(self) -> list[tuple[str, Any, int, int, int | None]]:
        """(name, role, level, key level, window) of every attention layer, in order."""
        rows: list[tuple[str, Any, int, int, int | None]] = []
        windowed, shape = self.form == "windowed", self.shape
        for level, count in enumerate(shape.pre):
            rows += [(f"pre.{level}.{i}", "self", level, level, None) for i in range(count)]
            if self.downsampling == "attention":
                window = shape.factors[level] if windowed else None
                rows.append((f"down.{level}", "down", level + 1, level, window))
        inner = len(shape.pre)
        rows += [(f"middle.{i}", "self", inner, inner, None) for i in range(shape.middle)]
        for level in reversed(range(len(shape.post))):
            if self.upsampling == "attention":
                window = shape.factors[level] if windowed else None
                rows.append((f"up.{level}", "up", level, level + 1, window))
            count = shape.post[level]
            rows += [(f"post.{level}.{i}", "self", level, level, None) for i in range(count)]
        return rows

    @property
    def levels(self) -> tuple[Level, ...]:
        """The resolutions, full resolution first."""
        shifts = (0, *((k - 1 if self.causal else 0) for k in self.shape.factors))
        pairs = zip(self.shape.strides, shifts, strict=True)
        return tuple(Level(i, stride, shift) for i, (stride, shift) in enumerate(pairs))

    def rule(self, layer: Layer, **changes: Any) -> Rule:
        """The rule by which a layer turns scores into weights."""
        strides = self.shape.strides
        return super().rule(
            layer,
            stride_q=strides[layer.level],
            stride_k=strides[layer.key_level],
            windowed=layer.window is not None,
            empty_rows="uniform" if self.masking == "compat" else "zeros",
        )

    def spans(self, tokens: int, target: int = 0) -> tuple[Integers, ...]:
        """Per level, the tokens [start, end) of each position (positions, 2) of a text."""
        return level_spans(tokens, self.shape.strides, self.causal)

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """The ModelSpec of a model with this configuration."""
        base = self.attention_upsampling if self.upsampling == "attention" else self.upsampling
        return replace(super().spec(name, digest, parameters), upsampling=base)

    def build(self) -> Hourglass:
        """A model with this configuration and torch's initial weights."""
        return Hourglass(self)


# --- parts ----------------------------------------------------------------------------------------


def _attention(config: HourglassConfig, layer: Layer) -> Attention:
    shift = config.levels[layer.level].shift if layer.role == "down" else 0
    bias = config.form == "official"
    return Attention(
        layer, config.rule(layer), config.width(layer.level), config.d_head, config.positions, bias,
        shift, context_width=config.width(layer.key_level),
    )  # fmt: skip


def _feed_forward(config: HourglassConfig, level: int) -> FeedForward:
    # trax approximates gelu by tanh
    kind = "gelu_tanh" if config.form == "official" else "gelu"
    width = config.width(level)
    return FeedForward(width, config.d_ff * width // config.d_model, kind)


class Block(ResidualBlock):
    """Pre-norm self-attention and feed-forward."""

    def __init__(self, config: HourglassConfig, layer: Layer) -> None:
        super().__init__()
        level = layer.level
        self.ln_attn, self.ln_ff = _norm(config, level), _norm(config, level)
        self.attn, self.ff = _attention(config, layer), _feed_forward(config, level)
        self.drop = nn.Dropout(0.0)  # training sets it

    def forward(
        self, x: Tensor, keep: Tensor | None, rel: RelativeBiases | None, run: Run
    ) -> Tensor:
        """(B, n, d) -> (B, n, d)"""

        def compute(x: Tensor) -> Tensor:
            y = self.ln_attn(x)
            return self.finish(x + self.drop(self.attn(y, y, keep, rel, run)))

        return run.block(self.attn.layer.index, compute, x)


class Stack(nn.ModuleDict):
    """Blocks in sequence, followed by a norm in the official form."""

    def __init__(self, config: HourglassConfig, level: int, layers: list[Layer]) -> None:
        super().__init__({str(i): Block(config, layer) for i, layer in enumerate(layers)})
        if config.form == "official":
            self["ln_out"] = _norm(config, level)

    def forward(
        self, x: Tensor, keep: Tensor | None, rel: RelativeBiases | None, run: Run
    ) -> Tensor:
        """(B, n, d) -> (B, n, d)"""
        for block in self.values():
            x = block(x, keep, rel, run) if isinstance(block, Block) else block(x)
        return x


class Resampling(ResidualBlock):
    """Base of Down and Up: attention from the pooled or spread positions to their sources.

    levels: those of the result and of the sources. resize: from the width of the sources to that
    of the result, where these differ and no linear map changes it anyway.
    """

    resize: nn.Module

    def __init__(
        self, config: HourglassConfig, factor: int, layer: Layer | None, levels: tuple[int, int]
    ) -> None:
        super().__init__()
        self.config, self.factor, self.layer = config, factor, layer
        self.official, self.levels = config.form == "official", levels
        self.width, self.source_width = map(config.width, levels)

    def add_projections(self, linear: bool, layer: Layer | None) -> None:
        """Create resize, and the submodules of resampling attention if there is a layer for it."""
        equal = linear or self.width == self.source_width
        self.resize = nn.Identity() if equal else nn.Linear(self.source_width, self.width)
        if layer is None:
            return
        level, source = self.levels
        self.attn = _attention(self.config, layer)
        self.ff = _feed_forward(self.config, level)
        self.ln_ff, self.drop = _norm(self.config, level), nn.Identity()
        if self.official:
            self.ln_in = _norm(self.config, source)
            self.ln_query = _norm(self.config, level)
        else:
            self.ln_attn = _norm(self.config, level)

    def attend(
        self, q: Tensor, x: Tensor, keep: Tensor | None, rel: RelativeBiases | None, run: Run
    ) -> Tensor:
        """q (B, Q, d) attends over x (B, K, d), then a feed-forward -> (B, Q, d)"""

        def compute(q: Tensor) -> Tensor:
            query = q if self.official else self.ln_attn(q)
            return self.finish(q + self.attn(query, x, keep, rel, run))

        return run.block(self.attn.layer.index, compute, q)


class Down(Resampling):
    """Shorten (B, N, d), padded and shifted, to (B, m, d) (section 2.2)."""

    def __init__(
        self, config: HourglassConfig, factor: int, layer: Layer | None, outer: int
    ) -> None:
        super().__init__(config, factor, layer, (outer + 1, outer))
        kind = config.attention_downsampling if layer else config.downsampling
        if kind == "linear":
            self.proj = nn.Linear(factor * self.source_width, self.width)
        self.add_projections(kind == "linear", layer)

    def forward(self, x: Tensor, mask: Mask, rel: RelativeBiases | None, run: Run) -> Tensor:
        """(B, N, d) -> (B, m, d)"""
        if self.layer is None:
            return self.pool(x, mask)
        if not self.official:
            return self.attend(self.pool(x, mask), x, mask.keys, rel, run)
        x = self.ln_in(x)
        return self.attend(self.ln_query(self.pool(x, mask)), x, mask.keys, rel, run)

    def pool(self, x: Tensor, mask: Mask) -> Tensor:
        """Mean or linear map of each group, without masked positions if masking is strict."""
        valid = mask.keys if self.config.masking == "strict" else None
        if valid is not None:
            x = x * valid[..., None]
        groups = x.unflatten(1, (-1, self.factor))  # (B, m, k, d)
        if hasattr(self, "proj"):
            return self.proj(groups.flatten(2))
        if valid is None:
            return self.resize(groups.mean(2))
        sizes = valid.unflatten(1, (-1, self.factor)).sum(2).clamp(min=1)
        return self.resize(groups.sum(2) / sizes[..., None].to(x.dtype))


class Up(Resampling):
    """Upsample (B, m, d) to (B, N, d) and add the residual (B, N, d) (section 2.3)."""

    def __init__(
        self, config: HourglassConfig, factor: int, layer: Layer | None, outer: int
    ) -> None:
        super().__init__(config, factor, layer, (outer, outer + 1))
        self.kind = config.attention_upsampling if layer else config.upsampling
        if self.kind == "linear":
            self.proj = nn.Linear(self.source_width, factor * self.width)
        if self.official:
            self.ln_out = _norm(config, outer)
        self.add_projections(self.kind != "repeat", layer)

    def forward(
        self, x: Tensor, r: Tensor, keep: Tensor | None, rel: RelativeBiases | None, run: Run
    ) -> Tensor:
        """x (B, m, d), residual r (B, N, d), keep (B, m) or None -> (B, N, d)"""
        if not self.config.residual:
            r = torch.zeros_like(r)
        if not self.official:
            u = self.spread(x, keep) + r
            return u if self.layer is None else self.attend(u, x, keep, rel, run)
        if self.layer is None:
            return self.ln_out(self.spread(x, keep)) + r
        x = self.ln_in(x)
        u = self.ln_query(self.spread(x, keep)) + r
        # the residual enters twice, as in the official code
        return self.ln_out(self.attend(u, x, keep, rel, run)) + r

    def spread(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """Repeat each group k times, or map it to k positions, or return zeros."""
        if self.kind == "linear":
            x = self.proj(x).unflatten(-1, (self.factor, -1))  # (B, m, k, d)
        elif self.kind == "repeat":
            x = self.resize(x)[:, :, None].expand(-1, -1, self.factor, -1)
        else:
            x = x.new_zeros(x.shape[0], x.shape[1], self.factor, self.width)
        if keep is not None:
            x = x * keep[..., None, None]
        return x.flatten(1, 2)


@dataclass(frozen=True, slots=True)
class Mask:
    """Masks of shortening: keys (B, N), the positions that are pooled and attended to; groups
    (B, m), those with at least one token. None masks nothing."""

    keys: Tensor | None
    groups: Tensor | None


# --- model ----------------------------------------------------------------------------------------


class Hourglass(Network):
    """Token ids (B, n) -> logits (B, n, vocabulary) of the token after each position."""

    config: HourglassConfig

    def __init__(self, config: HourglassConfig) -> None:
        super().__init__(config)
        shape, layers = config.shape, {layer.name: layer for layer in config.layers}

        def stack(name: str, level: int, count: int) -> Stack:
            return Stack(config, level, [layers[f"{name}.{i}"] for i in range(count)])

        depth = range(len(shape.factors))
        self.embed = nn.ModuleDict({"token": nn.Embedding(config.vocab_size, config.d_model)})
        if config.positions == "learned":
            self.embed["position"] = nn.Embedding(config.max_positions or 0, config.d_model)
        relative = config.positions == "relative"
        self.rel = RelativeBiases(config.n_heads, config.d_head) if relative else None
        self.pre = nn.ModuleList(stack(f"pre.{i}", i, shape.pre[i]) for i in depth)
        self.down = nn.ModuleList(
            Down(config, shape.factors[i], layers.get(f"down.{i}"), i) for i in depth
        )
        self.middle = stack("middle", len(depth), shape.middle)
        self.up = nn.ModuleList(
            Up(config, shape.factors[i], layers.get(f"up.{i}"), i) for i in depth
        )
        self.post = nn.ModuleList(stack(f"post.{i}", i, shape.post[i]) for i in depth)
        if config.form == "windowed":
            self.ln_f = _norm(config, 0)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size)

    def forward(self, tokens: Tokens | Tensor, run: Run | None = None) -> Tensor:
        """Tokens, or ids (B, n) alone -> logits (B, n, vocabulary)"""
        tokens, run = as_tokens(tokens), run or Run()
        x = self.embed_tokens(tokens)
        if "position" in self.embed:
            x = x + self.embed["position"](torch.arange(x.shape[1], device=x.device))
        x = self._level(0, x, tokens.keep, run)
        if self.config.form == "windowed":
            x = self.ln_f(x)
        return self.lm_head(x)

    def _level(self, level: int, x: Tensor, keep: Tensor | None, run: Run) -> Tensor:
        """The states (B, n, d) of one level, from its first stack to its last."""
        rel = self.rel
        if level == len(self.config.shape.factors):
            return self.middle(x, keep, rel, run)
        factor, n = self.config.shape.factors[level], x.shape[1]
        x = self.pre[level](x, keep, rel, run)
        shift = self.shift(factor) if self.config.causal else 0
        r = F.pad(x, (0, 0, 0, -n % factor))  # (B, N, d)
        mask = self._mask(keep, x, factor, shift)
        x = self.down[level](F.pad(r, (0, 0, shift, -shift)), mask, rel, run)
        x = self._level(level + 1, x, mask.groups, run)
        # compat masking does not mask in upsampling
        groups = mask.groups if self.config.masking == "strict" else None
        x = self.up[level](x, r, groups, rel, run)[:, :n]
        return self.post[level](x, keep, rel, run)

    def shift(self, factor: int) -> int:
        """Positions by which a causal level shifts before shortening; fewer would leak."""
        return factor - 1

    def _mask(self, keep: Tensor | None, x: Tensor, factor: int, shift: int) -> Mask:
        """The masks for shortening x (B, n, d) by factor, after a shift."""
        n, windowed = x.shape[1], self.config.form == "windowed"
        if keep is None:
            # only the windowed form masks the zeros of the shift
            masks = windowed if shift else n % factor > 0
            if not masks or self.config.masking != "strict":
                return Mask(None, None)
            keep = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        real = F.pad(keep, (0, -n % factor), value=False)
        keys = F.pad(real, (shift, -shift), value=not windowed)
        shifted = F.pad(real, (shift, -shift), value=False)
        return Mask(keys, shifted.unflatten(1, (-1, factor)).any(-1))


def _norm(config: HourglassConfig, level: int) -> nn.LayerNorm:
    return nn.LayerNorm(config.width(level), eps=1e-6 if config.form == "official" else 1e-5)
