"""The Hourglass: a text shrinks level by level, is thought about cheaply, and grows back.

Nawrot et al. 2021 (arXiv 2110.13711). Two forms (models.md A.4, A.5): "official" resamples by
attention over all earlier positions, "windowed" within the group, as hourglass-transformer-pytorch
computes. Every parameter bears its neutral name of models.md D. Shapes: B batch, n tokens,
N tokens padded to the factor, m groups, d width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgviz.core import Layer
from hgviz.models.config import HourglassConfig
from hgviz.models.inputs import too_long
from hgviz.models.layers import (
    Attention,
    FeedForward,
    Network,
    RelativeBiases,
    ResidualBlock,
    Tokens,
    as_tokens,
)
from hgviz.models.run import Run

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
        shape, layers = config.hierarchy, {layer.name: layer for layer in config.layers}

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
        x = self.table(given.ids) if given.embedded is None else given.embedded
        if "position" in self.embed:
            limit = self.config.max_positions or 0
            if x.shape[1] > limit:
                raise too_long(x.shape[1], limit)
            x = x + self.embed["position"](torch.arange(x.shape[1], device=x.device))
        x = self._level(0, x, given.keep, run)
        if self.config.form == "windowed":
            x = self.ln_f(x)
        return self.lm_head(x)

    @property
    def table(self) -> nn.Embedding:
        """The embeddings of the vocabulary."""
        return cast(nn.Embedding, self.embed["token"])

    def _level(self, level: int, x: Tensor, keep: Tensor | None, run: Run) -> Tensor:
        rel = self.rel
        if level == len(self.config.hierarchy.factors):
            return self.middle(x, keep, rel, run)
        factor, n = self.config.hierarchy.factors[level], x.shape[1]
        pre, down, up, post = self._parts(level)
        x = pre(x, keep, rel, run)
        shift = factor - 1 + self.config.shift_offset if self.config.causal else 0
        r = F.pad(x, (0, 0, 0, -n % factor))  # (B, N, d)
        mask = self._mask(keep, x, factor, shift)
        x = down(F.pad(r, (0, 0, shift, -shift)), mask, rel, run)
        x = self._level(level + 1, x, mask.groups, run)
        # the packages that mask by a large negative number do not mask on the way up
        upward = mask.groups if self.config.masking == "strict" else None
        return post(up(x, r, upward, rel, run)[:, :n], keep, rel, run)

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
