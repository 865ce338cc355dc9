"""Learning to write a second text from a first: an encoder and a decoder (Vaswani et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from hgviz.core import HgvizError
from hgviz.models.config import Config
from hgviz.models.layers import Network, Tokens
from hgviz.models.texts.labelled import Rows
from hgviz.models.training.batches import Epochs
from hgviz.models.training.objectives import NEITHER, Figures, autocast
from hgviz.models.training.plan import Recipe
from hgviz.models.training.vocabulary import Coder

Texts = tuple[Tensor, ...]  # each (n,)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Every token of the second text from those before it and the whole first text."""

    recipe: Recipe
    train: tuple[Texts, Texts]
    valid: tuple[Texts, Texts]
    pad: int
    order: Callable[[int], list[list[int]]]  # the batches of an epoch
    metric: str = "token_accuracy"

    @property
    def per_epoch(self) -> float:
        """Batches."""
        return math.ceil(len(self.train[0]) / self.recipe.batch)

    def loss(self, model: Network, step: int, done: float) -> tuple[Tensor, float]:
        """Nats per token."""
        epoch, number = divmod(step, int(self.per_epoch))
        logits, wanted = self._guesses(model, self.train, self.order(epoch)[number])
        loss = F.cross_entropy(logits, wanted, label_smoothing=self.recipe.label_smoothing)
        return loss, loss.item()

    @torch.inference_mode()
    def measure(self, model: Network, whole: bool) -> Figures:
        """Share of tokens that are the likeliest, each after the true ones, and nats per token."""
        right, count, nats = 0, 0, 0.0
        order = sorted(range(len(self.valid[0])), key=lambda row: len(self.valid[0][row]))
        for start in range(0, len(order), self.recipe.batch):
            rows = order[start : start + self.recipe.batch]
            logits, wanted = self._guesses(model, self.valid, rows)
            right += int((logits.argmax(-1) == wanted).sum())
            nats += F.cross_entropy(logits, wanted, reduction="sum").item()
            count += len(wanted)
        return {"token_accuracy": right / count, "loss": nats / count}

    def _guesses(
        self, model: Network, texts: tuple[Texts, Texts], rows: list[int]
    ) -> tuple[Tensor, Tensor]:
        """Logits (tokens, V) of all second texts side by side, and the tokens they are of."""
        device = self.recipe.device
        source, keep = self._padded([texts[0][row] for row in rows])
        target, real = self._padded([texts[1][row] for row in rows])
        given = Tokens(
            target[:, :-1].to(device), source=Tokens(source.to(device), keep.to(device))
        )  # what follows a text's end is masked by what is causal
        wanted = target.masked_fill(~real, NEITHER)[:, 1:].to(device)
        with autocast(self.recipe):
            logits = model(given)
        return logits.float()[wanted != NEITHER], wanted[wanted != NEITHER]

    def _padded(self, texts: list[Tensor]) -> tuple[Tensor, Tensor]:
        ids = pad_sequence(texts, batch_first=True, padding_value=self.pad)
        lengths = torch.tensor([len(text) for text in texts])
        return ids.long(), torch.arange(ids.shape[1]) < lengths[:, None]


def paired(rows: Rows, config: Config, coder: Coder, length: int) -> tuple[Texts, Texts]:
    """Both texts of every row as ids, cut to what the model reads; the second of a model of
    transformers after the token that its decoder begins with.

    Errors: HgvizError for a second text of one token, after which nothing can be written.
    """
    longest = min([one for one in (length, config.max_positions) if one], default=None)
    sides = [coder.rows(list(texts), longest) for texts in (rows.texts, rows.labels)]
    begins = getattr(config, "data", {}).get("decoder_start_token_id")
    if isinstance(begins, int):
        sides[1] = [[begins, *ids][:longest] for ids in sides[1]]
    short = next((i for i, ids in enumerate(sides[1]) if len(ids) < 2), None)
    if short is not None:
        raise HgvizError(
            f"{rows.name}, line {rows.lines[short]:,}: the second text is too short: "
            "its first token is given, and no other follows",
            "Use a tokenizer, whose texts begin and end with special tokens",
        )
    first, second = (tuple(torch.tensor(ids, dtype=torch.int32) for ids in one) for one in sides)
    return first, second


def epochs_of(train: tuple[Texts, Texts], recipe: Recipe) -> Epochs:
    """Batches of pairs of much the same length."""
    lengths = [len(a) + len(b) for a, b in zip(*train, strict=True)]
    return Epochs(lengths, recipe.batch, recipe.seed)
