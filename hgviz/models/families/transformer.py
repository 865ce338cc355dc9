"""The plain Transformer: an encoder, a decoder, or both (Vaswani et al. 2017).

BERT (Devlin et al. 2019), GPT-2 (Radford et al. 2019) and YUBERT (models.md B) are settings of it.
Every parameter bears its neutral name of models.md D. Shapes: B batch, n tokens, m tokens of the
source or slots, d width.
"""

from __future__ import annotations

from typing import Literal, cast

import torch
from torch import Tensor, nn

from hgviz.core import HgvizError, Layer
from hgviz.models.config import TransformerConfig
from hgviz.models.inputs import too_long
from hgviz.models.layers import (
    NON_LINEARITIES,
    Attention,
    Collaborative,
    FeedForward,
    Network,
    ResidualBlock,
    Tokens,
    as_tokens,
)
from hgviz.models.mechanisms import Mixtures, Projection, Synthesis
from hgviz.models.run import EMBEDDING, Run

Slots = Projection | Mixtures

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
        given = self.token(tokens.ids) if tokens.embedded is None else tokens.embedded
        return self.placed(given, tokens.segments)

    def placed(self, x: Tensor, segments: Tensor | None = None) -> Tensor:
        """Token embeddings (B, n, d) with their positions and segments (zeros where not given)."""
        length, limit = x.shape[1], self.config.max_positions
        if limit is not None and length > limit:
            raise too_long(length, limit)
        numbers = torch.arange(length, device=x.device)
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
    """The first c tokens, side by side, to classes (models.md B.4); BERT is c = 1."""

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

    @property
    def table(self) -> nn.Embedding:
        """The embeddings of the vocabulary."""
        return self.embed.token

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
        mixtures = Mixtures(len(layer.heads), config.slots, longest, config.slots_bias, one=False)
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
    return Mixtures(1, config.slots, longest, config.slots_bias, one=sharing != "headwise")


def _norm(config: TransformerConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.d_model, eps=config.norm_eps)
