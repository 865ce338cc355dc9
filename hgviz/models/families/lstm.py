"""An LSTM language model (Hochreiter, Schmidhuber 1997): it reads a text token by token, and hands
on one state of fixed size for all that it has read.

Its layers are torch.nn.LSTM's, with its names and its gates in its order. Shapes: B batch,
n tokens, d width, L layers.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from hgviz.models.config import LSTMConfig
from hgviz.models.inputs import too_long
from hgviz.models.layers import Network, Tokens, as_tokens
from hgviz.models.run import Run


class LSTM(Network):
    """ids (B, n) to logits (B, n, vocabulary); logits at i speak of what follows token i."""

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
        limit = self.config.max_positions
        if limit is not None and x.shape[1] > limit:
            raise too_long(x.shape[1], limit)
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
