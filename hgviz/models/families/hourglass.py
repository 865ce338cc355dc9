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
from hgviz.models.blocks import (
    Attention,
    Fed,
    FeedForward,
    Network,
    Pass,
    Relative,
    Tokens,
    tokens_from,
)
from hgviz.models.config import HourglassConfig
from hgviz.models.inputs import too_long

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


class Block(nn.Module):
    """Pre-norm self-attention and feed-forward."""

    def __init__(self, config: HourglassConfig, layer: Layer) -> None:
        super().__init__()
        self.ln_attn, self.ln_ff = _norm(config), _norm(config)
        self.attn, self.ff = _attention(config, layer), _feed_forward(config)
        self.drop = nn.Dropout(0.0)  # training sets it

    def forward(self, x: Tensor, keep: Tensor | None, rel: Relative | None, run: Pass) -> Tensor:
        """(B, n, d) -> (B, n, d)"""
        number = self.attn.layer.index
        found = run.skipped(number)
        if found is not None:
            return found
        y = self.ln_attn(x)
        x = run.summed(number, x + self.drop(self.attn(y, y, keep, rel, run)))
        return run.left(number, x + self.drop(self.ff(self.ln_ff(x), run.hidden(number))))

    @property
    def fed(self) -> Fed:
        """What its feed-forward begins with."""
        return Fed(self.attn.layer.index, self.ln_ff, self.ff)


class Stack(nn.ModuleDict):
    """Blocks one after the other; a norm after each stack belongs to the official form."""

    def __init__(self, config: HourglassConfig, layers: list[Layer]) -> None:
        super().__init__({str(i): Block(config, layer) for i, layer in enumerate(layers)})
        if config.form == "official":
            self["ln_out"] = _norm(config)

    def forward(self, x: Tensor, keep: Tensor | None, rel: Relative | None, run: Pass) -> Tensor:
        """(B, n, d) -> (B, n, d)"""
        for block in self.values():
            x = block(x, keep, rel, run) if isinstance(block, Block) else block(x)
        return x


class Down(nn.Module):
    """Shorten (B, N, d), already padded and shifted, to (B, m, d)."""

    def __init__(self, config: HourglassConfig, factor: int, layer: Layer | None) -> None:
        super().__init__()
        self.config, self.factor, self.layer = config, factor, layer
        base = config.attention_downsampling if layer else config.downsampling
        if base == "linear":
            self.proj = nn.Linear(factor * config.d_model, config.d_model)
        if layer is None:
            return
        self.attn, self.ff, self.ln_ff = (
            _attention(config, layer),
            _feed_forward(config),
            _norm(config),
        )
        if config.form == "official":
            self.ln_in, self.ln_query = _norm(config), _norm(config)
        else:
            self.ln_attn = _norm(config)

    def forward(self, x: Tensor, mask: Mask, rel: Relative | None, run: Pass) -> Tensor:
        """(B, N, d) -> (B, m, d)"""
        if self.layer is None:
            return self.base(x, mask)
        found = run.skipped(self.layer.index)
        if found is not None:
            return found
        if self.config.form == "official":
            y = self.ln_in(x)
            q = self.ln_query(self.base(y, mask))
            z = q + self.attn(q, y, mask.keys, rel, run)
        else:
            q = self.base(x, mask)
            z = q + self.attn(self.ln_attn(q), x, mask.keys, rel, run)
        number, z = self.layer.index, run.summed(self.layer.index, z)
        return run.left(number, z + self.ff(self.ln_ff(z), run.hidden(number)))

    @property
    def fed(self) -> Fed | None:
        """What its feed-forward begins with, where it attends."""
        return None if self.layer is None else Fed(self.layer.index, self.ln_ff, self.ff)

    def base(self, x: Tensor, mask: Mask) -> Tensor:
        """The mean or a linear map of each group; strict masking leaves masked positions out."""
        counted = mask.keys if self.config.masking == "strict" else None
        if counted is not None:
            x = x * counted[..., None]
        groups = x.unflatten(1, (-1, self.factor))  # (B, m, k, d)
        if hasattr(self, "proj"):
            return self.proj(groups.flatten(2))
        if counted is None:
            return groups.mean(2)
        return groups.sum(2) / counted.unflatten(1, (-1, self.factor)).sum(2, keepdim=False).clamp(
            min=1
        )[..., None].to(x.dtype)


class Up(nn.Module):
    """Grow (B, m, d) back to (B, N, d) and add the residual (B, N, d)."""

    def __init__(self, config: HourglassConfig, factor: int, layer: Layer | None) -> None:
        super().__init__()
        self.config, self.factor, self.layer = config, factor, layer
        self.kind = config.attention_upsampling if layer else config.upsampling
        if self.kind == "linear":
            self.proj = nn.Linear(config.d_model, factor * config.d_model)
        official = config.form == "official"
        if official:
            self.ln_out = _norm(config)
        if layer is None:
            return
        self.attn, self.ff, self.ln_ff = (
            _attention(config, layer),
            _feed_forward(config),
            _norm(config),
        )
        if official:
            self.ln_in, self.ln_query = _norm(config), _norm(config)
        else:
            self.ln_attn = _norm(config)

    def forward(
        self,
        x: Tensor,
        r: Tensor,
        keep: Tensor | None,
        rel: Relative | None,
        run: Pass,
    ) -> Tensor:
        """x (B, m, d), residual r (B, N, d), keep (B, m) or None -> (B, N, d)"""
        if self.layer is None:
            return self._grown(x, r, keep, rel, run)
        found = run.skipped(self.layer.index)
        if found is not None:
            return found
        return run.left(self.layer.index, self._grown(x, r, keep, rel, run))

    def _grown(
        self,
        x: Tensor,
        r: Tensor,
        keep: Tensor | None,
        rel: Relative | None,
        run: Pass,
    ) -> Tensor:
        if self.config.form == "windowed":
            u = self.base(x, keep) + r
            if self.layer is None:
                return u
            z = u + self.attn(self.ln_attn(u), x, keep, rel, run)
            return self._fed(z, run)
        if self.layer is None:
            return self.ln_out(self.base(x, keep)) + r
        y = self.ln_in(x)
        u = self.ln_query(self.base(y, keep)) + r
        z = u + self.attn(u, y, keep, rel, run)
        return (
            self.ln_out(self._fed(z, run)) + r
        )  # the residual enters twice, as in the official code

    def _fed(self, z: Tensor, run: Pass) -> Tensor:
        number = self.attn.layer.index
        return run.summed(number, z) + self.ff(self.ln_ff(z), run.hidden(number))

    @property
    def fed(self) -> Fed | None:
        """What its feed-forward begins with, where it attends."""
        return None if self.layer is None else Fed(self.layer.index, self.ln_ff, self.ff)

    def base(self, x: Tensor, keep: Tensor | None) -> Tensor:
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
            Relative(config.n_heads, config.d_head) if config.positions == "relative" else None
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

    def forward(self, tokens: Tokens | Tensor, run: Pass | None = None) -> Tensor:
        """Tokens, or ids (B, n) alone -> logits (B, n, vocabulary)"""
        given, run = tokens_from(tokens), run or Pass()
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

    def _level(self, level: int, x: Tensor, keep: Tensor | None, run: Pass) -> Tensor:
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
