"""The Funnel-Transformer: blocks of layers, between which the text is pooled by two.

Dai et al. 2020 (arXiv 2006.03236). Going down, the pooled positions look at all of those above; a
decoder spreads the last positions over the tokens again and adds what the first block gave.
Post-norm, with Transformer-XL positions and token types in the scores, neither of which [CLS] takes
part in where it is kept apart. Shapes: B batch, n tokens, m positions of a level, H heads, D head
width, d width.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgviz.core import Layer
from hgviz.models.blocks import (
    EMBEDDED,
    Attention,
    Fed,
    FeedForward,
    Network,
    Pass,
    Steps,
    Tokens,
    finish_steps,
)
from hgviz.models.config import FunnelConfig
from hgviz.models.config.funnel import CLS, KINDS
from hgviz.models.positions import Sinusoids, distance_features

# --- parts ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Places:
    """The positions of a level: their token types (B, m), and which count as keys (B, m)."""

    kinds: Tensor
    keep: Tensor | None

    def pooled(self, first: Tensor, last: Tensor) -> Places:
        """Those of the next level, each of the positions first to last (m,) of this one: of the
        type of the first, and a key where both are."""
        keep = self.keep
        return Places(
            self.kinds[:, first], None if keep is None else keep[:, first] & keep[:, last]
        )


class Placed(Attention):
    """Attention whose scores know of distances and token types, but for those of [CLS].

    score = [(q + u).k + (q + v).(W phi(delta)) + (q + s).e] * scale, e being one vector for another
    token type and one for the same; both later terms are 0 for the first query and the first key
    where [CLS] is apart. All of this is a product of longer queries and keys, beside distances:
    q' = [q, q + v, (q + s).e for each type, what the distance of the first key adds, negative],
    k' = [k, 0, which type it is of, whether it is the first], and W' is 0 but for q + v.
    """

    def __init__(self, config: FunnelConfig, layer: Layer) -> None:
        width, heads, inner = config.d_model, len(layer.heads), len(layer.heads) * config.d_head
        super().__init__(layer, config.rule(layer), width, config.d_head, "none")
        with warnings.catch_warnings():  # a layer may have no heads
            warnings.filterwarnings("ignore", "Initializing zero-element tensors")
            self.q = nn.Linear(width, inner, bias=False)
            self.r = nn.Linear(width, inner, bias=False)
        self.apart, self.direct = int(config.apart), False
        self.content_bias = nn.Parameter(torch.zeros(heads, config.d_head))  # u
        self.position_bias = nn.Parameter(torch.zeros(heads, config.d_head))  # v
        self.kind_bias = nn.Parameter(torch.zeros(heads, config.d_head))  # s
        self.kind = nn.Parameter(torch.zeros(heads, 2, config.d_head))  # other, same

    def _longer(self, q: Tensor, k: Tensor, rel: Any) -> tuple[Tensor, Tensor]:
        """(B, H, Q, E), (B, H, K, E) of q (B, H, Q, D), k (B, H, K, D); rel: Places of both."""
        mine, theirs = (one.kinds for one in cast(tuple[Places, Places], rel))
        rows, columns = (torch.arange(one.shape[2], device=q.device)[:, None] for one in (q, k))
        looks, first = (rows >= self.apart).to(q.dtype), (columns < self.apart).to(k.dtype)
        placed = (q + self.position_bias[:, None]) * looks
        weight = self._weight()
        phi = distance_features(rows[:, 0] * self.rule.stride_q, weight.shape[-1], weight.dtype)
        back = (placed * torch.einsum("qw,hdw->hqd", phi, weight)).sum(-1, keepdim=True)
        every = torch.arange(KINDS, device=q.device)
        same = (mine[..., None] == every) | (mine[..., None] == CLS) | (every == CLS)  # (B, Q, 3)
        both = torch.einsum("bhqd,hsd->bhqs", q + self.kind_bias[:, None], self.kind)
        added = torch.where(same[:, None], both[..., 1:], both[..., :1]) * looks
        told = F.one_hot(theirs, KINDS).to(k.dtype) * (1 - first)
        rest = torch.cat([told, first.expand(len(k), -1, -1)], -1)[:, None]
        return (
            torch.cat([q, placed, added, -back], -1),
            torch.cat([k, torch.zeros_like(k), rest.expand(-1, k.shape[1], -1, -1)], -1),
        )

    def _distances(self, rel: Any) -> Sinusoids:
        """What q + v meets in the longer queries: distances i - j in tokens, back from the query"""
        weight = self._weight()
        whole = F.pad(weight, (0, 0, self.d_head, KINDS + 1))  # (H, E, d)
        zeros = whole.new_zeros(whole.shape[:2])
        content = F.pad(self.content_bias, (0, whole.shape[1] - self.d_head))
        return Sinusoids(whole, zeros, content, zeros, unit=-1)

    def _weight(self) -> Tensor:
        """W (H, D, d). With [CLS] apart, position p of a level begins at token (p - 1) stride + 1:
        going down all distances are some tokens less, by which W is turned instead."""
        weight = self.r.weight.unflatten(0, (len(self.layer.heads), self.d_head))
        less = self.apart * (self.rule.stride_q - self.rule.stride_k)
        if not less:
            return weight
        turn = torch.tensor([less], device=weight.device)
        sin, cos = distance_features(turn, weight.shape[-1], weight.dtype)[0].chunk(2)
        sines, cosines = weight.chunk(2, -1)
        return torch.cat([sines * cos + cosines * sin, cosines * cos - sines * sin], -1)


class Block(nn.Module):
    """Attention and feed-forward, each followed by a norm of the sum."""

    def __init__(self, config: FunnelConfig, layer: Layer) -> None:
        super().__init__()
        self.attn = Placed(config, layer)
        self.ff = FeedForward(config.d_model, config.d_ff, config.feed_forward)
        self.ln_attn, self.ln_ff = _norm(config), _norm(config)
        self.drop = nn.Dropout(0.0)  # training sets it

    def forward(
        self, x: Tensor, context: Tensor, places: tuple[Places, Places], run: Pass
    ) -> Tensor:
        """x (B, Q, d) looks at context (B, K, d), places are those of both -> (B, Q, d)"""
        number = self.attn.layer.index
        found = run.skipped(number)
        if found is not None:
            return found
        keep = places[1].keep
        if keep is not None:  # masked scores are a million less: where all are, none is
            keep = keep | ~keep.any(1, keepdim=True)
        looked = self.attn(x, context, keep, cast(Any, places), run)
        x = self.ln_attn(run.summed(number, x + self.drop(looked)))
        return run.left(number, self.ln_ff(x + self.drop(self.ff(x, run.hidden(number)))))

    @property
    def fed(self) -> Fed:
        """What its feed-forward begins with."""
        return Fed(self.attn.layer.index, self.ln_attn, self.ff)


class Classifier(nn.ModuleDict):
    """The first position to classes."""

    def __init__(self, config: FunnelConfig) -> None:
        width = config.d_model
        parts = {"in": nn.Linear(width, width), "out": nn.Linear(width, len(config.labels))}
        super().__init__(parts)

    def forward(self, x: Tensor) -> Tensor:
        """(B, n, d) -> (B, classes)"""
        return self["out"](torch.tanh(self["in"](x[:, 0])))


# --- the whole ------------------------------------------------------------------------------------


class Funnel(Network):
    """Tokens to what config.goal says; of an encoder alone, states of its last positions."""

    config: FunnelConfig

    def __init__(self, config: FunnelConfig) -> None:
        super().__init__(config)
        self.embed = nn.ModuleDict(
            {"token": nn.Embedding(config.vocab_size, config.d_model), "ln": _norm(config)}
        )
        self.layers = nn.ModuleList(Block(config, layer) for layer in config.layers)
        if config.goal == "classes":
            self.head = Classifier(config)
        elif config.goal == "masked":
            self.bias = nn.Parameter(torch.zeros(config.vocab_size))
            if not config.tied:
                self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)

    def forward(self, tokens: Tokens | Tensor, run: Pass | None = None) -> Tensor:
        """Tokens, or ids (B, n) alone -> (B, n, vocabulary), (B, classes) or (B, n or m, d)"""
        given = Tokens(tokens) if isinstance(tokens, Tensor) else tokens
        return finish_steps(self.steps(given, run))

    @property
    def table(self) -> nn.Embedding:
        """The embeddings of the vocabulary."""
        return cast(nn.Embedding, self.embed["token"])

    def steps(self, tokens: Tokens, run: Pass | None = None) -> Steps:
        """As forward, yielding the index of each layer when it is done."""
        run = run or Pass()
        x = run.skipped(EMBEDDED)
        if x is None:
            given = self.table(tokens.ids) if tokens.embedded is None else tokens.embedded
            x = run.left(EMBEDDED, self.embed["ln"](given))
        kinds = tokens.segments
        if kinds is None:
            kinds = torch.zeros(x.shape[:2], dtype=torch.long, device=x.device)
        full = here = Places(kinds, tokens.keep)
        blocks = iter(cast("list[Block]", self.layers))
        first = x
        for number, count in enumerate(self.config.n_layers):
            context, there = x, here
            if number:
                x, here = self._pooled(x, here)
                if not self.config.pool_queries:
                    context, there = x, here
            for _ in range(count):
                block = next(blocks)
                x = block(x, context, (here, there), run)
                yield block.attn.layer.index
                context, there = x, here
            first = first if number else x
        if self.config.form == "funnel":
            x = first + self._spread(x, first.shape[1])
            for block in blocks:
                x = block(x, x, (full, full), run)
                yield block.attn.layer.index
        return self._said(x)

    def _pooled(self, x: Tensor, places: Places) -> tuple[Tensor, Places]:
        """(B, n, d) -> (B, m, d): the mean or the maximum of each group of one or two."""
        groups = torch.from_numpy(self.config.groups(x.shape[1])).to(x.device)
        first, last = groups[:, 0], groups[:, 1] - 1
        both = x[:, first], x[:, last]
        mean = self.config.pooling == "mean"
        return (both[0] + both[1]) / 2 if mean else torch.maximum(*both), places.pooled(first, last)

    def _spread(self, x: Tensor, length: int) -> Tensor:
        """(B, m, d) -> (B, n, d): each position at its tokens, zeros at those left out."""
        level = self.config.levels[-1]
        at = (torch.arange(length, device=x.device) - level.apart) // (level.stride or 1)
        at = at + level.apart
        whole = F.pad(x, (0, 0, 0, 1))  # what is left out
        return whole[:, at.clamp(max=x.shape[1])]

    def _said(self, x: Tensor) -> Tensor:
        """States (B, n, d) to what config.goal asks for."""
        if self.config.goal == "states":
            return x
        if self.config.goal == "classes":
            return self.head(x)
        vocabulary = self.table.weight if self.config.tied else self.lm_head.weight
        return x @ vocabulary.T + self.bias


def _norm(config: FunnelConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.d_model, eps=config.norm_eps)
