"""What is learnt: the next token, masked tokens, or the class of a text.

Every batch depends only on the seed and the step, so that trainings which differ in nothing but an
activation see the same batches, and a stopped one goes on as if it had not been.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from hgviz.models.layers import Network, Tokens
from hgviz.models.training.batches import Windows, random_of
from hgviz.models.training.plan import Recipe

Figures = dict[str, float]

NEITHER = -100  # a place that no loss is taken at
MASK_SEED = 12_345  # of the masks that are measured on
MOST_TOKENS = 16_384  # in a batch that is only measured


class Objective(Protocol):
    """What a training lowers, and what it is measured by."""

    @property
    def metric(self) -> str:
        """The figure that counts."""
        ...

    @property
    def per_epoch(self) -> float:
        """Steps of one pass over the training data."""
        ...

    def loss(self, model: Network, step: int, done: float) -> tuple[Tensor, float]:
        """The loss of one step's batch, and what the log says of it."""
        ...

    def measure(self, model: Network, whole: bool) -> Figures:
        """Figures on the held-out data, or on its beginning."""
        ...


# --- the next token -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NextToken:
    """A language model: every token of a window from those before it."""

    recipe: Recipe
    windows: Windows
    valid: Tensor
    bytes: int
    metric: str = "bits_per_byte"

    @property
    def per_epoch(self) -> float:
        """Steps that draw as many tokens as there are, at the first stage's size."""
        stage = self.recipe.stages[0]
        return self.windows.tokens / (stage.length * stage.batch)

    def loss(self, model: Network, step: int, done: float) -> tuple[Tensor, float]:
        """Nats per token; bits per token for the log."""
        stage = [one for one in self.recipe.stages if one.start <= done][-1]
        ids = self.windows.draw(stage, step, self.recipe.seed).to(self.recipe.device)
        with autocast(self.recipe):
            logits, beside = model.learn(ids[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
        return loss + beside, loss.item() / math.log(2)

    def measure(self, model: Network, whole: bool) -> Figures:
        """Bits per byte of UTF-8."""
        text = self.valid if whole else self.valid[: self.recipe.evaluate_bytes]
        bits = bits_per_byte(model, text, self.recipe.evaluate_length)
        predicted = self.bytes / max(len(self.valid) - 1, 1)  # bytes a token
        return {"bits_per_byte": bits / predicted}


@torch.inference_mode()
def bits_per_byte(model: Network, text: Tensor, length: int, batch_bytes: int = 8192) -> float:
    """Mean of -log2 p of every byte but the first of each window, windows side by side.

    text (bytes,) uint8; each window of `length` + 1 bytes shares one byte with the next, so every
    byte of the text but the very first is predicted exactly once, from at most `length` before it.
    Of a tokenizer's ids it is bits per token.
    """
    device = next(model.parameters()).device
    starts = list(range(0, len(text) - 1, length))
    bits, count, batch = 0.0, 0, max(1, batch_bytes // length)
    whole = [start for start in starts if start + length < len(text)]
    groups = [whole[i : i + batch] for i in range(0, len(whole), batch)]
    groups += [[start] for start in starts[len(whole) :]]
    for group in groups:
        ids = torch.stack([text[start : start + length + 1] for start in group]).long().to(device)
        logits = model(ids[:, :-1]).float()
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="sum")
        bits += loss.item() / math.log(2)
        count += ids[:, 1:].numel()
    return bits / max(count, 1)


# --- masked tokens --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MaskedTokens:
    """Some tokens of a window from all others (Devlin et al. 2019, 3.1)."""

    recipe: Recipe
    windows: Windows
    valid: Tensor
    mask_id: int
    size: int
    specials: tuple[int, ...]
    frame: tuple[tuple[int, ...], tuple[int, ...]]  # the special tokens around every window
    metric: str = "masked_accuracy"

    @property
    def per_epoch(self) -> float:
        """Steps that draw as many tokens as there are, at the first stage's size."""
        stage = self.recipe.stages[0]
        return self.windows.tokens / (stage.length * stage.batch)

    def loss(self, model: Network, step: int, done: float) -> tuple[Tensor, float]:
        """Nats per masked token."""
        stage = [one for one in self.recipe.stages if one.start <= done][-1]
        ids = self._framed(self.windows.draw(stage, step, self.recipe.seed)[:, :-1])
        random = random_of(self.recipe.seed, step, 1)
        given, wanted = self._masked(ids, random)
        with autocast(self.recipe):
            logits = self._guesses(model, given, wanted != NEITHER)
        loss = F.cross_entropy(logits.float(), wanted[wanted != NEITHER].to(logits.device))
        return loss, loss.item()

    @torch.inference_mode()
    def measure(self, model: Network, whole: bool) -> Figures:
        """Share of masked tokens guessed right, and nats per masked token; the masks are fixed."""
        length = min(self.recipe.evaluate_length, self.recipe.stages[-1].length)
        text = self.valid if whole else self.valid[: max(self.recipe.evaluate_bytes // 4, length)]
        parts = text[: len(text) // length * length].view(-1, length)
        random = random_of(MASK_SEED, 0)
        right = count = 0
        nats = 0.0
        for some in parts.split(max(1, MOST_TOKENS // length)):
            ids = self._framed(some.long())
            given, wanted = self._masked(ids, random)
            at = wanted != NEITHER
            logits = self._guesses(model, given, at).float().cpu()
            nats += F.cross_entropy(logits, wanted[at], reduction="sum").item()
            right += int((logits.argmax(-1) == wanted[at]).sum())
            count += len(logits)
        return {"masked_accuracy": right / max(count, 1), "loss": nats / max(count, 1)}

    def _guesses(self, model: Network, given: Tensor, at: Tensor) -> Tensor:
        """Logits (asked, V) of the tokens asked for."""
        given, at = given.to(self.recipe.device), at.to(self.recipe.device)
        if not getattr(model.config, "transform", False):
            return model(given)[at]
        # the vocabulary is most of the work: only the states asked for go through it
        head = model.get_submodule("head.mlm")
        hook = head.register_forward_pre_hook(lambda _, x: (x[0][at], *x[1:]))
        try:
            return model(given)
        finally:
            hook.remove()

    def _masked(self, ids: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
        return masked(ids, self.mask_id, self.size, self.specials, self.recipe.mask, random)

    def _framed(self, ids: Tensor) -> Tensor:
        """(B, n) between the special tokens that every text has."""
        sides = [torch.tensor(side).expand(len(ids), -1) for side in self.frame if side]
        first, last = sides[:1] if self.frame[0] else [], sides[-1:] if self.frame[1] else []
        return torch.cat([*first, ids, *last], dim=1)


def masked(
    ids: Tensor, mask_id: int, size: int, specials: tuple[int, ...], share: float,
    random: torch.Generator,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Ids (B, n) as given, and as wanted (NEITHER where nothing is asked).

    A share of the tokens is asked for: 80 % of them read the mask, 10 % a random token, 10 %
    themselves (Devlin et al. 2019, 3.1). At least one is.
    """
    dice = torch.rand(ids.shape, generator=random)
    usual = ~torch.isin(ids, torch.tensor(specials, dtype=ids.dtype))
    chosen = (dice < share) & usual
    if not chosen.any():
        chosen.view(-1)[torch.where(usual, dice, 2.0).argmin()] = True
    how = torch.rand(ids.shape, generator=random)
    others = torch.randint(0, size, ids.shape, generator=random)
    given = torch.where(chosen & (how < 0.8), mask_id, ids)
    given = torch.where(chosen & (how >= 0.9), others, given)
    return given, ids.masked_fill(~chosen, NEITHER)


# --- classes --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Labelled:
    """Texts as ids, and the numbers of their classes."""

    ids: tuple[Tensor, ...]  # each (n,)
    classes: Tensor  # (texts,)

    def batch(self, rows: list[int], pad: int) -> tuple[Tensor, Tensor | None, Tensor]:
        """ids (B, n), which of them are real (None: all), classes (B,)"""
        texts = [self.ids[row] for row in rows]
        ids = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=pad)
        lengths = torch.tensor([len(text) for text in texts])
        keep = torch.arange(ids.shape[1]) < lengths[:, None]
        return ids.long(), None if keep.all() else keep, self.classes[rows]


@dataclass(frozen=True, slots=True)
class Classes:
    """The class of a text, from the states of its first tokens."""

    recipe: Recipe
    train: Labelled
    valid: Labelled
    pad: int
    unknown: int | None
    specials: tuple[int, ...]
    order: Callable[[int], list[list[int]]]  # the batches of an epoch
    metric: str = "accuracy"

    @property
    def per_epoch(self) -> float:
        """Batches."""
        return math.ceil(len(self.train.ids) / self.recipe.batch)

    def loss(self, model: Network, step: int, done: float) -> tuple[Tensor, float]:
        """Cross-entropy in nats."""
        epoch, number = divmod(step, int(self.per_epoch))
        ids, keep, classes = self.train.batch(self.order(epoch)[number], self.pad)
        if self.recipe.token_dropout and self.unknown is not None:
            dice = torch.rand(ids.shape, generator=random_of(self.recipe.seed, step, 2))
            usual = ~torch.isin(ids, torch.tensor(self.specials, dtype=ids.dtype))
            dropped = (dice < self.recipe.token_dropout) & usual
            ids = ids.masked_fill(dropped, self.unknown)
        logits = self._logits(model, ids, keep)
        loss = F.cross_entropy(
            logits, classes.to(logits.device), label_smoothing=self.recipe.label_smoothing
        )
        return loss, loss.item()

    @torch.inference_mode()
    def measure(self, model: Network, whole: bool) -> Figures:
        """Accuracy, and cross-entropy in nats, on all held-out texts."""
        right, nats, texts = 0, 0.0, self.valid.ids
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        for start in range(0, len(order), 64):
            ids, keep, classes = self.valid.batch(order[start : start + 64], self.pad)
            logits = self._logits(model, ids, keep).cpu()
            right += int((logits.argmax(-1) == classes).sum())
            nats += F.cross_entropy(logits, classes, reduction="sum").item()
        return {"accuracy": right / len(order), "loss": nats / len(order)}

    def _logits(self, model: Network, ids: Tensor, keep: Tensor | None) -> Tensor:
        device = self.recipe.device
        kept = None if keep is None else keep.to(device)
        with autocast(self.recipe):
            logits = model(Tokens(ids.to(device), kept))
        return logits.float()


def autocast(recipe: Recipe) -> torch.autocast:
    """Half-precision matrix products, where the recipe wants them."""
    kind = torch.device(recipe.device).type
    return torch.autocast(kind, torch.bfloat16, enabled=recipe.autocast)


__all__ = [
    "NEITHER", "Classes", "Figures", "Labelled", "MaskedTokens", "NextToken", "Objective",
    "autocast", "bits_per_byte", "masked",
]  # fmt: skip
