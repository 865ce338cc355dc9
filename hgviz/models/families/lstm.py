"""An LSTM language model (Hochreiter, Schmidhuber 1997): it reads a text token by token, and hands
on one state of fixed size for all that it has read.

Its layers are torch.nn.LSTM's, with its names and its gates in its order. Shapes: B batch,
n tokens, d width, L layers.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from hgviz.models.blocks import EMBEDDED, Network, Pass, Steps, Tokens, finish_steps
from hgviz.models.config import LSTMConfig
from hgviz.models.inputs import too_long


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

    def forward(self, tokens: Tokens | Tensor, run: Pass | None = None) -> Tensor:
        """Tokens, or ids (B, n) alone -> (B, n, vocabulary)"""
        given = Tokens(tokens) if isinstance(tokens, Tensor) else tokens
        return finish_steps(self.steps(given, run))

    @property
    def table(self) -> nn.Embedding:
        """The embeddings of the vocabulary."""
        return cast(nn.Embedding, self.embed["token"])

    def steps(self, tokens: Tokens, run: Pass | None = None) -> Steps:
        """As forward; no layer attends, so that nothing is yielded on the way."""
        run = run or Pass()
        x = self.table(tokens.ids) if tokens.embedded is None else tokens.embedded
        end, limit = run.first + x.shape[1], self.config.max_positions
        if limit is not None and end > limit:
            raise too_long(end, limit)
        yield from ()
        return self.lm_head(self._read(self.drop(run.left(EMBEDDED, x)), tokens.keep, run))

    def _read(self, x: Tensor, keep: Tensor | None, run: Pass) -> Tensor:
        """(B, n, d) -> (B, n, d). Tokens that are masked are read last, so that none hears them."""
        if keep is not None:
            order = (~keep).to(torch.int8).argsort(dim=1, stable=True)[..., None].expand_as(x)
            states, _ = self.lstm(x.gather(1, order))
            return torch.zeros_like(states).scatter(1, order, states)
        if run.past is None:
            return self.lstm(x)[0]
        states, run.past.recurrent = self.lstm(x, run.past.recurrent)
        return states
