"""Which windows and which rows a step sees: nothing but the seed and the step decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hgviz.models.training.plan import Stage

POOL = 50  # batches whose rows are sorted by length together


def random_of(seed: int, step: int, stream: int = 0) -> torch.Generator:
    """The random numbers of one step; streams tell what they are used for."""
    return torch.Generator().manual_seed((seed * 1_000_003 + step) + stream * 1_000_000_007)


def draw(texts: list[Tensor], weights: list[float], stage: Stage, step: int, seed: int) -> Tensor:
    """The windows of one step, (batch, length + 1); depends only on the seed and the step."""
    random = random_of(seed, step)
    odds = torch.tensor(weights or [float(len(text)) for text in texts])
    chosen = torch.multinomial(odds, stage.batch, replacement=True, generator=random)
    rows = []
    for which in chosen.tolist():
        text = texts[which]
        start = torch.randint(0, len(text) - stage.length, (1,), generator=random).item()
        rows.append(text[int(start) : int(start) + stage.length + 1])
    return torch.stack(rows).long()


@dataclass(frozen=True, slots=True)
class Windows:
    """Texts as ids, and how often a window is drawn from each."""

    texts: list[Tensor]
    weights: list[float]

    @property
    def tokens(self) -> int:
        """How many there are in all."""
        return sum(map(len, self.texts))

    def draw(self, stage: Stage, step: int, seed: int) -> Tensor:
        """See draw."""
        return draw(self.texts, self.weights, stage, step, seed)


def row_batches(lengths: Sequence[int], batch: int, seed: int, epoch: int) -> list[list[int]]:
    """The rows of each batch of an epoch: every row once, in batches of much the same length.

    Rows are shuffled, then sorted by length within pools of some batches, so that little is
    padding; the batches are shuffled again, so that no length comes first.
    """
    random = random_of(seed, epoch, 3)
    order = torch.randperm(len(lengths), generator=random).tolist()
    found = []
    for start in range(0, len(order), POOL * batch):
        pool = sorted(order[start : start + POOL * batch], key=lengths.__getitem__)
        found += [pool[i : i + batch] for i in range(0, len(pool), batch)]
    return [found[i] for i in torch.randperm(len(found), generator=random).tolist()]


class Epochs:
    """The batches of each epoch, of which the latest is kept."""

    def __init__(self, lengths: Sequence[int], batch: int, seed: int) -> None:
        self._lengths, self._batch, self._seed = lengths, batch, seed
        self._epoch = -1
        self._batches: list[list[int]] = []

    def __call__(self, epoch: int) -> list[list[int]]:
        """The rows of each batch of an epoch."""
        if epoch != self._epoch:
            self._batches = row_batches(self._lengths, self._batch, self._seed, epoch)
            self._epoch = epoch
        return self._batches
