"""Models without attention, to compare with: an LSTM, and layers that mix windows of words.

Shapes: B batch, n tokens, w positions of a window, d width, L layers.
"""

from __future__ import annotations

from typing import Annotated, Literal, cast

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgviz.core import Goal
from hgviz.errors import require
from hgviz.models.layers import (
    NON_LINEARITIES,
    Configuration,
    Depth,
    Network,
    NonLinearity,
    Tokens,
    as_tokens,
    require_length,
)
from hgviz.models.run import Run


class LSTMConfig(Configuration, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an LSTM is built from; the keys of config.json."""

    n_layers: Depth
    family: Literal["lstm"] = "lstm"

    @property
    def causal(self) -> bool:
        """Whether no output depends on a later token: always."""
        return True

    def build(self) -> LSTM:
        """The model, its weights as torch initializes them."""
        return LSTM(self)


class LSTM(Network):
    """An LSTM language model (Hochreiter, Schmidhuber 1997), with torch.nn.LSTM's names and gates.

    ids (B, n) to logits (B, n, vocabulary); logits at i are of the token after i.
    """

    config: LSTMConfig

    def __init__(self, config: LSTMConfig) -> None:
        super().__init__(config)
        width = config.d_model
        self.embed = nn.ModuleDict({"token": nn.Embedding(config.vocab_size, width)})
        self.drop = nn.Dropout(0.0)  # training sets it
        self.lstm = nn.LSTM(width, width, config.n_layers, batch_first=True)
        self.lm_head = nn.Linear(width, config.vocab_size)

    def forward(self, tokens: Tokens | Tensor, run: Run | None = None) -> Tensor:
        """Tokens, or ids (B, n) alone -> (B, n, vocabulary)"""
        given = as_tokens(tokens)
        x = self.table(given.ids) if given.embedded is None else given.embedded
        require_length(x.shape[1], self.config.max_positions)
        return self.lm_head(self._read(self.drop(x), given.keep))

    @property
    def table(self) -> nn.Embedding:
        """The embeddings of the vocabulary."""
        return cast(nn.Embedding, self.embed["token"])

    def _read(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """(B, n, d) -> (B, n, d). Tokens that are masked are read last, so that none hears them."""
        if keep is not None:
            order = (~keep).to(torch.int8).argsort(dim=1, stable=True)[..., None].expand_as(x)
            states, _ = self.lstm(x.gather(1, order))
            return torch.zeros_like(states).scatter(1, order, states)
        return self.lstm(x)[0]


class WindowConfig(Configuration, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a window model is built from; the keys of config.json.

    window: how many positions a layer mixes. causal: the position itself and those before it; else
    as many on either side, so that window is odd. feed_forward: the non-linearity of a layer.
    """

    n_layers: Depth
    window: Annotated[int, msgspec.Meta(ge=2, le=4096)]
    family: Literal["window"] = "window"
    causal: bool = True
    feed_forward: NonLinearity = "gelu"

    def __post_init__(self) -> None:
        require(
            self.causal or self.window % 2,
            f"a window of {self.window} positions has no middle: "
            "as many of its neighbours lie on either side of a position",
            "Choose an odd window, or causal = true",
        )

    @property
    def goal(self) -> Goal:
        """The next token; tokens that are hidden where later ones are seen."""
        return "next" if self.causal else "masked"

    @property
    def radius(self) -> int:
        """How many positions away one layer reaches."""
        return self.window - 1 if self.causal else (self.window - 1) // 2

    def build(self) -> Window:
        """The model, its weights as torch initializes them."""
        return Window(self)


class WindowLayer(nn.Module):
    """One layer: a norm, a linear map of the positions of a window, a non-linearity."""

    def __init__(self, config: WindowConfig) -> None:
        super().__init__()
        self.config = config
        self.ln = nn.LayerNorm(config.d_model)
        self.mix = nn.Linear(config.window * config.d_model, config.d_model)
        self.drop = nn.Dropout(0.0)  # training sets it

    def forward(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """x (B, n, d), keep bool (B, n) or None -> what is added to x (B, n, d)"""
        radius = self.config.radius
        y = self.ln(x) if keep is None else self.ln(x) * keep[..., None]
        seen = F.pad(y, (0, 0, radius, 0 if self.config.causal else radius))
        # a convolution takes the same products, and no copy of each position for every window
        kernel = self.mix.weight.unflatten(1, (self.config.window, -1)).transpose(1, 2)
        mixed = F.conv1d(seen.transpose(1, 2), kernel, self.mix.bias).transpose(1, 2)
        return self.drop(NON_LINEARITIES[self.config.feed_forward](mixed))


class Window(Network):
    """Every position of a layer sees the few positions around it: x + f(W [LN(x) of the window,
    oldest first] + b), beyond the ends of the text zeros.

    ids (B, n) to logits (B, n, vocabulary), of the next token or, both ways, of each itself.
    """

    config: WindowConfig

    def __init__(self, config: WindowConfig) -> None:
        super().__init__(config)
        self.embed = nn.ModuleDict({"token": nn.Embedding(config.vocab_size, config.d_model)})
        self.middle = nn.ModuleList(WindowLayer(config) for _ in range(config.n_layers))
        self.ln_f = nn.LayerNorm(config.d_model)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size)

    def forward(self, tokens: Tokens | Tensor, run: Run | None = None) -> Tensor:
        """Tokens, or ids (B, n) alone -> (B, n, vocabulary)"""
        given = as_tokens(tokens)
        x = self.table(given.ids) if given.embedded is None else given.embedded
        require_length(x.shape[1], self.config.max_positions)
        for layer in self.middle:
            x = x + layer(x, given.keep)
        return self.lm_head(self.ln_f(x))

    @property
    def table(self) -> nn.Embedding:
        """The embeddings of the vocabulary."""
        return cast(nn.Embedding, self.embed["token"])
