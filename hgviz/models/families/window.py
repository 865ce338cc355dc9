"""A word-window model: every position of a layer sees the few positions around it, and no other.

What is further away comes by way of the layers in between: n tokens apart takes n / radius layers
(models.md C). A layer is x + f(W [LN(x) of the window, oldest first] + b), beyond the ends of the
text zeros. Shapes: B batch, n tokens, w positions of a window, d width.
"""

from __future__ import annotations

from typing import cast

import torch.nn.functional as F
from torch import Tensor, nn

from hgviz.models.config import WindowConfig
from hgviz.models.inputs import too_long
from hgviz.models.layers import NON_LINEARITIES, Network, Tokens, as_tokens
from hgviz.models.run import Run


class Mixture(nn.Module):
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
    """ids (B, n) to logits (B, n, vocabulary), of the next token or, both ways, of each itself."""

    config: WindowConfig

    def __init__(self, config: WindowConfig) -> None:
        super().__init__(config)
        self.embed = nn.ModuleDict({"token": nn.Embedding(config.vocab_size, config.d_model)})
        self.middle = nn.ModuleList(Mixture(config) for _ in range(config.n_layers))
        self.ln_f = nn.LayerNorm(config.d_model)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size)

    def forward(self, tokens: Tokens | Tensor, run: Run | None = None) -> Tensor:
        """Tokens, or ids (B, n) alone -> (B, n, vocabulary)"""
        given = as_tokens(tokens)
        x = self.table(given.ids) if given.embedded is None else given.embedded
        limit = self.config.max_positions
        if limit is not None and x.shape[1] > limit:
            raise too_long(x.shape[1], limit)
        for layer in self.middle:
            x = x + layer(x, given.keep)
        return self.lm_head(self.ln_f(x))

    @property
    def table(self) -> nn.Embedding:
        """The embeddings of the vocabulary."""
        return cast(nn.Embedding, self.embed["token"])
