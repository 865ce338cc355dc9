"""Models without attention, as baselines: an LSTM, and layers over windows of tokens.

Shapes: B batch, n tokens, w positions of a window, d width, L layers.
"""

from __future__ import annotations

from typing import Annotated, Literal

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
)
from hgviz.models.run import Run


class LSTMConfig(Configuration, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Configuration of an LSTM; the fields are the keys of config.json."""

    n_layers: Depth
    family: Literal["lstm"] = "lstm"

    @property
    def causal(self) -> bool:
        """Whether no output depends on a later token: always true."""
        return True

    def build(self) -> LSTM:
        """A model with this configuration and torch's initial weights."""
        return LSTM(self)


class LSTM(Network):
    """An LSTM language model (Hochreiter, Schmidhuber 1997), with the parameters of torch.nn.LSTM.

    ids (B, n) -> logits (B, n, vocabulary) of the token after each position.
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
        tokens = as_tokens(tokens)
        x = self.drop(self.embed_tokens(tokens))
        if tokens.keep is None:
            return self.lm_head(self.lstm(x)[0])
        # padding is moved to the end, where no other token depends on it
        order = (~tokens.keep).to(torch.int8).argsort(dim=1, stable=True)[..., None].expand_as(x)
        states, _ = self.lstm(x.gather(1, order))
        return self.lm_head(torch.zeros_like(states).scatter(1, order, states))


class WindowConfig(Configuration, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Configuration of a window model; the fields are the keys of config.json.

    window: how many positions a layer reads: the position and those before it if causal, else as
    many on either side (window is odd). feed_forward: the non-linearity of a layer.
    """

    n_layers: Depth
    window: Annotated[int, msgspec.Meta(ge=2, le=4096)]
    family: Literal["window"] = "window"
    causal: bool = True
    feed_forward: NonLinearity = "gelu"

    def __post_init__(self) -> None:
        require(
            self.causal or self.window % 2,
            f"a window of {self.window} positions has no centre: "
            "it must have equally many neighbours on either side",
            "Choose an odd window, or causal = true",
        )

    @property
    def goal(self) -> Goal:
        """The next token for causal models, masked tokens for others."""
        return "next" if self.causal else "masked"

    @property
    def radius(self) -> int:
        """The largest distance between a position and those that one layer reads for it."""
        return self.window - 1 if self.causal else (self.window - 1) // 2

    def build(self) -> Window:
        """A model with this configuration and torch's initial weights."""
        return Window(self)


class WindowLayer(nn.Module):
    """Layer norm, linear map of the concatenated window, non-linearity."""

    def __init__(self, config: WindowConfig) -> None:
        super().__init__()
        self.config = config
        self.ln = nn.LayerNorm(config.d_model)
        self.mix = nn.Linear(config.window * config.d_model, config.d_model)
        self.drop = nn.Dropout(0.0)  # training sets it

    def forward(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """Residual (B, n, d) of x (B, n, d); keep (B, n): False for padding"""
        radius = self.config.radius
        y = self.ln(x) if keep is None else self.ln(x) * keep[..., None]
        y = F.pad(y, (0, 0, radius, 0 if self.config.causal else radius))
        # a convolution equals a linear map of each window, without a copy of the windows
        kernel = self.mix.weight.unflatten(1, (self.config.window, -1)).transpose(1, 2)
        mixed = F.conv1d(y.transpose(1, 2), kernel, self.mix.bias).transpose(1, 2)
        return self.drop(NON_LINEARITIES[self.config.feed_forward](mixed))


class Window(Network):
    """Residual layers x + f(W [LN(x) of a window, oldest first] + b), zero beyond the text.

    ids (B, n) -> logits (B, n, vocabulary), of the next token if causal, else of each token itself.
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
        tokens = as_tokens(tokens)
        x = self.embed_tokens(tokens)
        for layer in self.middle:
            x = x + layer(x, tokens.keep)
        return self.lm_head(self.ln_f(x))
