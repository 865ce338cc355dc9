"""The Hourglass (Nawrot et al. 2021, arXiv 2110.13711): shorten a text, process it, upsample it.

Two forms: "official" resamples by attention over all earlier positions (trax), "windowed" within
the group, as hourglass-transformer-pytorch computes. Before a causal model shortens by k it shifts
by k - 1, so that no position sees a later token (section 2.2). Shapes: B batch, n tokens, N tokens
padded to the factor, m groups, d width.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, cast

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
    as_tokens,
    require_even_heads,
    require_length,
)
from hgviz.models.run import Run

# --- hierarchies ----------------------------------------------------------------------------------


_STAGE = re.compile(r"([0-9]{1,7})@([0-9]{1,7})")
MOST_LAYERS, MOST_FACTOR = 1000, 2**16  # far above any use, for files of strangers
_EXAMPLE = 'Write "LAYERS@FACTOR" down to the waist and back up, such as "2@1 1@2 3@4 1@2 2@1"'
_DEPTH_EXAMPLE = "Give depth as (2, (1, 4, 1), 2) with shorten_factor (3, 2), or as a number"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Layers before and after each shortening, outside in; factors[l] shortens level l to l + 1.

    "2@1 1@2 3@4 1@2 2@1" is pre (2, 1), middle 3, post (2, 1), factors (2, 2); a model without
    shortening has pre = post = factors = ().
    """

    pre: tuple[int, ...]
    middle: int
    post: tuple[int, ...]
    factors: tuple[int, ...]

    @property
    def strides(self) -> tuple[int, ...]:
        """Tokens per position of every level, full resolution first."""
        strides = [1]
        for factor in self.factors:
            strides.append(strides[-1] * factor)
        return tuple(strides)

    def __str__(self) -> str:
        down = [f"{n}@{k}" for n, k in zip(self.pre, self.strides, strict=False)]
        up = [f"{n}@{k}" for n, k in zip(self.post, self.strides, strict=False)]
        return " ".join([*down, f"{self.middle}@{self.strides[-1]}", *reversed(up)])

    def cost(self, tokens: int, width: int) -> float:
        """Multiply-adds of one pass, sum of n_i (12 d^2 n / K + 2 n^2 d / K^2)."""
        counts = [a + b for a, b in zip(self.pre, self.post, strict=True)] + [self.middle]
        return sum(
            count * (12 * width**2 * tokens / k + 2 * tokens**2 * width / k**2)
            for count, k in zip(counts, self.strides, strict=True)
        )


def parse_hierarchy(text: str, vanilla: Sequence[int] | None = None) -> Hierarchy:
    """Read "2@1 1@2 3@4 1@2 2@1", or its shortened part with vanilla = (layers before, after).

    Raises HgvizError unless the factors are a palindrome that grows to the middle, each a multiple
    of the one around it.
    """
    matches = [_STAGE.fullmatch(part) for part in text.split()]
    if not matches or None in matches:
        raise _illegal(text, "it is not a row of LAYERS@FACTOR")
    counts = [int(match[1]) for match in matches if match]
    totals = [int(match[2]) for match in matches if match]
    if len(counts) % 2 == 0:
        raise _illegal(text, "it has no single waist: the number of stages is even")
    if totals[0] != 1:
        if vanilla is None or len(vanilla) != 2:
            raise _illegal(
                text, "it starts shortened and vanilla_layers (before, after) is missing"
            )
        counts, totals = [vanilla[0], *counts, vanilla[1]], [1, *totals, 1]
    elif vanilla is not None and list(vanilla) != [counts[0], counts[-1]]:
        raise _illegal(text, f"its full-resolution layers differ from vanilla_layers {vanilla}")
    if totals != totals[::-1]:
        raise _illegal(text, "its factors do not mirror around the waist")
    waist = len(counts) // 2
    factors = []
    for outer, inner in pairwise(totals[: waist + 1]):
        if inner <= outer or inner % outer:
            raise _illegal(
                text, f"factor {inner} is not 2, 3, ... times the factor {outer} around it"
            )
        factors.append(inner // outer)
    return _hierarchy(text, counts[:waist], counts[waist], counts[waist + 1 :][::-1], factors)


def hierarchy_from_depth(depth: Any, shorten_factor: Any = None) -> Hierarchy:
    """Read (2, (1, 4, 1), 2) with shorten_factor (3, 2); a single factor serves every level.

    Raises HgvizError for anything else.
    """
    pre: list[int] = []
    post: list[int] = []
    inner = depth
    while isinstance(inner, (tuple, list)):
        if len(inner) != 3 or not all(_is_count(inner[i]) for i in (0, 2)):
            raise _illegal(depth, "a depth is a number or (before, inner, after)")
        pre.append(inner[0])
        post.append(inner[2])
        inner = inner[1]
        if len(pre) > 16:
            raise _illegal(depth, "it is nested more than 16 deep")
    if not _is_count(inner):
        raise _illegal(depth, "a depth is a number or (before, inner, after)")
    single = not isinstance(shorten_factor, (tuple, list))
    factors = [shorten_factor] * len(pre) if single else list(shorten_factor)
    if pre and (len(factors) != len(pre) or not all(_is_count(k) and k >= 2 for k in factors)):
        raise _illegal(
            depth,
            f"shorten_factor {str(shorten_factor)[:40]} is no number >= 2 for each of its "
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
        raise _illegal(source, f"the innermost needs a layer; all have at most {MOST_LAYERS:,}")
    if math.prod(factors) > MOST_FACTOR:
        raise _illegal(source, f"it shortens by more than {MOST_FACTOR:,}")
    return Hierarchy(tuple(pre), middle, tuple(post), tuple(factors))


def _illegal(given: Any, why: str) -> HgvizError:
    do = _EXAMPLE if isinstance(given, str) else _DEPTH_EXAMPLE
    return HgvizError(f"the hierarchy {repr(given)[:80]} cannot be built: {why}", do)


def level_spans(tokens: int, strides: Sequence[int], causal: bool) -> tuple[Integers, ...]:
    """The tokens behind every position of every level, [gK-K+1, gK] when causal."""
    out = []
    for stride in strides:
        first = np.arange(-(-tokens // stride), dtype=np.int64) * stride
        start = np.maximum(first - stride + 1, 0) if causal else first
        end = first + 1 if causal else np.minimum(first + stride, tokens)
        out.append(readonly(np.stack([start, end], axis=1)))
    return tuple(out)


# --- configuration --------------------------------------------------------------------------------


class HourglassConfig(
    AttentionConfiguration, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What an Hourglass is built from; the keys of config.json.

    hierarchy: see parse_hierarchy, which joins vanilla_layers to it. attention_downsampling and
    attention_upsampling: what resampling attention starts from. masking "compat" computes masks as
    hourglass-transformer-pytorch does.
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

    def __post_init__(self) -> None:
        AttentionConfiguration.__post_init__(self)
        self._set("hierarchy", str(parse_hierarchy(self.hierarchy, self.vanilla_layers)))
        self._set("vanilla_layers", None)
        require_even_heads(self.positions, self.d_head)
        require(
            self.positions != "relative" or self.d_model % 2 == 0,
            f"relative positions need an even width, not {self.d_model}",
        )
        require(
            self.positions != "learned" or self.max_positions,
            "learned positions need max_positions, the longest text",
        )
        self.refuse(())

    @property
    def shape(self) -> Hierarchy:
        """Its layers and factors, level by level."""
        return parse_hierarchy(self.hierarchy)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer that attends, in order of computation."""
        return tuple(
            self.layer(
                index, name=name, role=role, level=level, key_level=key_level,
                causal=self.causal and window is None, window=window,
            )
            for index, (name, role, level, key_level, window) in enumerate(self.layer_table())
        )  # fmt: skip

    def layer_table(self) -> list[tuple[str, Any, int, int, int | None]]:
        """(name, role, level, key level, window) of every layer that attends."""
        places: list[tuple[str, Any, int, int, int | None]] = []
        windowed, shape = self.form == "windowed", self.shape
        for level, count in enumerate(shape.pre):
            places += [(f"pre.{level}.{i}", "self", level, level, None) for i in range(count)]
            if self.downsampling == "attention":
                window = shape.factors[level] if windowed else None
                places.append((f"down.{level}", "down", level + 1, level, window))
        inner = len(shape.pre)
        places += [(f"middle.{i}", "self", inner, inner, None) for i in range(shape.middle)]
        for level in reversed(range(len(shape.post))):
            if self.upsampling == "attention":
                window = shape.factors[level] if windowed else None
                places.append((f"up.{level}", "up", level, level + 1, window))
            count = shape.post[level]
            places += [(f"post.{level}.{i}", "self", level, level, None) for i in range(count)]
        return places

    @property
    def levels(self) -> tuple[Level, ...]:
        """Every resolution, full first."""
        shifts = (0, *((k - 1 if self.causal else 0) for k in self.shape.factors))
        pairs = zip(self.shape.strides, shifts, strict=True)
        return tuple(Level(i, stride, shift) for i, (stride, shift) in enumerate(pairs))

    def rule(self, layer: Layer, **changes: Any) -> Rule:
        """How scores become weights in a layer."""
        strides = self.shape.strides
        return super().rule(
            layer,
            stride_q=strides[layer.level],
            stride_k=strides[layer.key_level],
            windowed=layer.window is not None,
            empty_rows="uniform" if self.masking == "compat" else "zeros",
        )

    def spans(self, tokens: int, target: int = 0) -> tuple[Integers, ...]:
        """The tokens behind every position of every level, for a text of so many tokens."""
        return level_spans(tokens, self.shape.strides, self.causal)

    def spec(self, name: str, digest: str, parameters: int) -> ModelSpec:
        """A description of such a model, for people and files."""
        base = self.attention_upsampling if self.upsampling == "attention" else self.upsampling
        return replace(super().spec(name, digest, parameters), upsampling=base)

    def build(self) -> Hourglass:
        """The model, its weights as torch initializes them."""
        return Hourglass(self)


# --- parts ----------------------------------------------------------------------------------------


def _attention(config: HourglassConfig, layer: Layer) -> Attention:
    shift = config.levels[layer.level].shift if layer.role == "down" else 0
    bias = config.form == "official"
    return Attention(
        layer, config.rule(layer), config.d_model, config.d_head, config.positions, bias, shift
    )


def _feed_forward(config: HourglassConfig) -> FeedForward:
    # the official form's gelu is the tanh approximation
    kind = "gelu_tanh" if config.form == "official" else "gelu"
    return FeedForward(config.d_model, config.d_ff, kind)


class Block(ResidualBlock):
    """Pre-norm self-attention and feed-forward."""

    def __init__(self, config: HourglassConfig, layer: Layer) -> None:
        super().__init__()
        self.ln_attn, self.ln_ff = _norm(config), _norm(config)
        self.attn, self.ff = _attention(config, layer), _feed_forward(config)
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
    """Blocks one after the other; a norm after each stack belongs to the official form."""

    def __init__(self, config: HourglassConfig, layers: list[Layer]) -> None:
        super().__init__({str(i): Block(config, layer) for i, layer in enumerate(layers)})
        if config.form == "official":
            self["ln_out"] = _norm(config)

    def forward(
        self, x: Tensor, keep: Tensor | None, rel: RelativeBiases | None, run: Run
    ) -> Tensor:
        """(B, n, d) -> (B, n, d)"""
        for block in self.values():
            x = block(x, keep, rel, run) if isinstance(block, Block) else block(x)
        return x


class Resampling(ResidualBlock):
    """What Down and Up share: where they attend, the pooled or spread positions are the queries,
    and those that they were made of the keys."""

    def __init__(self, config: HourglassConfig, factor: int, layer: Layer | None) -> None:
        super().__init__()
        self.config, self.factor, self.layer = config, factor, layer
        self.official = config.form == "official"

    def add_attention(self, layer: Layer | None) -> None:
        """Make the parts of a layer that attends, where there is one."""
        if layer is None:
            return
        self.attn, self.ff = _attention(self.config, layer), _feed_forward(self.config)
        self.ln_ff, self.drop = _norm(self.config), nn.Identity()
        if self.official:
            self.ln_in, self.ln_query = _norm(self.config), _norm(self.config)
        else:
            self.ln_attn = _norm(self.config)

    def attend(
        self, q: Tensor, x: Tensor, keep: Tensor | None, rel: RelativeBiases | None, run: Run
    ) -> Tensor:
        """q (B, Q, d) attends over x (B, K, d), and a feed-forward follows -> (B, Q, d)"""

        def compute(q: Tensor) -> Tensor:
            query = q if self.official else self.ln_attn(q)
            return self.finish(q + self.attn(query, x, keep, rel, run))

        return run.block(self.attn.layer.index, compute, q)


class Down(Resampling):
    """Shorten (B, N, d), already padded and shifted, to (B, m, d)."""

    def __init__(self, config: HourglassConfig, factor: int, layer: Layer | None) -> None:
        super().__init__(config, factor, layer)
        kind = config.attention_downsampling if layer else config.downsampling
        if kind == "linear":
            self.proj = nn.Linear(factor * config.d_model, config.d_model)
        self.add_attention(layer)

    def forward(self, x: Tensor, mask: Mask, rel: RelativeBiases | None, run: Run) -> Tensor:
        """(B, N, d) -> (B, m, d)"""
        if self.layer is None:
            return self.pool(x, mask)
        if self.official:
            x = self.ln_in(x)
            return self.attend(self.ln_query(self.pool(x, mask)), x, mask.keys, rel, run)
        return self.attend(self.pool(x, mask), x, mask.keys, rel, run)

    def pool(self, x: Tensor, mask: Mask) -> Tensor:
        """The mean or a linear map of each group; strict masking leaves masked positions out."""
        counted = mask.keys if self.config.masking == "strict" else None
        if counted is not None:
            x = x * counted[..., None]
        groups = x.unflatten(1, (-1, self.factor))  # (B, m, k, d)
        if hasattr(self, "proj"):
            return self.proj(groups.flatten(2))
        if counted is None:
            return groups.mean(2)
        sizes = counted.unflatten(1, (-1, self.factor)).sum(2).clamp(min=1)
        return groups.sum(2) / sizes[..., None].to(x.dtype)


class Up(Resampling):
    """Grow (B, m, d) back to (B, N, d) and add the residual (B, N, d)."""

    def __init__(self, config: HourglassConfig, factor: int, layer: Layer | None) -> None:
        super().__init__(config, factor, layer)
        self.kind = config.attention_upsampling if layer else config.upsampling
        if self.kind == "linear":
            self.proj = nn.Linear(config.d_model, factor * config.d_model)
        if self.official:
            self.ln_out = _norm(config)
        self.add_attention(layer)

    def forward(
        self, x: Tensor, r: Tensor, keep: Tensor | None, rel: RelativeBiases | None, run: Run
    ) -> Tensor:
        """x (B, m, d), residual r (B, N, d), keep (B, m) or None -> (B, N, d)"""
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
        """Each group repeated, spread by a linear map, or nothing."""
        if self.kind == "linear":
            x = self.proj(x).unflatten(-1, (self.factor, -1))  # (B, m, k, d)
        elif self.kind == "repeat":
            x = x[:, :, None].expand(-1, -1, self.factor, -1)
        else:
            x = x.new_zeros(x.shape[0], x.shape[1], self.factor, x.shape[2])
        if keep is not None:
            x = x * keep[..., None, None]
        return x.flatten(1, 2)


@dataclass(frozen=True, slots=True)
class Mask:
    """Which positions count on the way down: keys (B, N) may be attended to or averaged, groups
    (B, m) hold at least one token; None where every one does."""

    keys: Tensor | None
    groups: Tensor | None


# --- the whole ------------------------------------------------------------------------------------


class Hourglass(Network):
    """ids (B, n) to logits (B, n, vocabulary); logits at i speak of what follows token i."""

    config: HourglassConfig

    def __init__(self, config: HourglassConfig) -> None:
        super().__init__(config)
        shape, layers = config.shape, {layer.name: layer for layer in config.layers}

        def stack(name: str, count: int) -> Stack:
            return Stack(config, [layers[f"{name}.{i}"] for i in range(count)])

        depth = range(len(shape.factors))
        self.embed = nn.ModuleDict({"token": nn.Embedding(config.vocab_size, config.d_model)})
        if config.positions == "learned":
            self.embed["position"] = nn.Embedding(config.max_positions or 0, config.d_model)
        self.rel = (
            RelativeBiases(config.n_heads, config.d_head)
            if config.positions == "relative"
            else None
        )
        self.pre = nn.ModuleList(stack(f"pre.{i}", shape.pre[i]) for i in depth)
        self.down = nn.ModuleList(
            Down(config, shape.factors[i], layers.get(f"down.{i}")) for i in depth
        )
        self.middle = stack("middle", shape.middle)
        self.up = nn.ModuleList(Up(config, shape.factors[i], layers.get(f"up.{i}")) for i in depth)
        self.post = nn.ModuleList(stack(f"post.{i}", shape.post[i]) for i in depth)
        if config.form == "windowed":
            self.ln_f = _norm(config)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size)

    def forward(self, tokens: Tokens | Tensor, run: Run | None = None) -> Tensor:
        """Tokens, or ids (B, n) alone -> logits (B, n, vocabulary)"""
        given, run = as_tokens(tokens), run or Run()
        x = self.embed_tokens(given)
        if "position" in self.embed:
            require_length(x.shape[1], self.config.max_positions)
            x = x + self.embed["position"](torch.arange(x.shape[1], device=x.device))
        x = self._level(0, x, given.keep, run)
        if self.config.form == "windowed":
            x = self.ln_f(x)
        return self.lm_head(x)

    def _level(self, level: int, x: Tensor, keep: Tensor | None, run: Run) -> Tensor:
        rel = self.rel
        if level == len(self.config.shape.factors):
            return self.middle(x, keep, rel, run)
        factor, n = self.config.shape.factors[level], x.shape[1]
        pre, down, up, post = self._parts(level)
        x = pre(x, keep, rel, run)
        shift = self.shift(factor) if self.config.causal else 0
        r = F.pad(x, (0, 0, 0, -n % factor))  # (B, N, d)
        mask = self._mask(keep, x, factor, shift)
        x = down(F.pad(r, (0, 0, shift, -shift)), mask, rel, run)
        x = self._level(level + 1, x, mask.groups, run)
        # the packages that mask by a large negative number do not mask on the way up
        upward = mask.groups if self.config.masking == "strict" else None
        return post(up(x, r, upward, rel, run)[:, :n], keep, rel, run)

    def shift(self, factor: int) -> int:
        """By how many positions a causal level shifts before it shortens: less would leak."""
        return factor - 1

    def _parts(self, level: int) -> tuple[Stack, Down, Up, Stack]:
        parts = self.pre[level], self.down[level], self.up[level], self.post[level]
        return cast(tuple[Stack, Down, Up, Stack], parts)

    def _mask(self, keep: Tensor | None, x: Tensor, factor: int, shift: int) -> Mask:
        batch, n = x.shape[:2]
        strict = self.config.masking == "strict"
        windowed = self.config.form == "windowed"
        if keep is None:
            # the official form attends to the zeros of the shift; strict windows leave them out
            needed = windowed if shift else n % factor
            if not (strict and needed):
                return Mask(None, None)
            keep = torch.ones(batch, n, dtype=torch.bool, device=x.device)
        real = F.pad(keep, (0, -n % factor), value=False)
        keys = F.pad(real, (shift, -shift), value=not windowed)
        shifted = F.pad(real, (shift, -shift), value=False)
        return Mask(keys, shifted.unflatten(1, (-1, factor)).any(-1))


def _norm(config: HourglassConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.d_model, eps=1e-6 if config.form == "official" else 1e-5)
