"""Switching heads off: what each is worth, and what a model scores without some of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Off, Step, Task
from hgviz.study import UNASKED, UNKNOWN, Study
from hgviz.tasks.capturing import provenance
from hgviz.tasks.opening import Path_
from hgviz.tasks.scoring import examples_from

if TYPE_CHECKING:
    from hgviz.analysis.evaluation import Answers
    from hgviz.analysis.paired import Paired
    from hgviz.examples import Batch
    from hgviz.models.model import Model
    from hgviz.models.trials import Trials

OFTEN = 0.2  # s: a study that grows is shown at most so often
PERMUTATIONS = 20  # of Shapley values, unless more are asked for

Numbers = NDArray[np.int64]


def trials_of(
    model: Model,
    data: Path_,
    text_column: str = "",
    label_column: str = "",
    off: Off = frozenset(),
) -> Task[Trials]:
    """A model ready to be tried on some data. Errors: HgvizError, as examples_from.

    Also where no head does anything: switching off a whole layer has to change what is answered.
    """
    from hgviz.models.trials import Trials

    yield Step(0, 1, f"reading {Path(data).name}")
    trials = Trials(model, examples_from(model, data, text_column, label_column), off)
    trials.require_effect()
    return trials


def try_heads(trials: Trials, off: Off) -> Task[tuple[Paired, Answers]]:
    """What the model scores with heads off, beside the whole model; each Step has a Paired."""
    from hgviz.analysis import paired

    def without(batch: Batch) -> Any:
        return trials.without(batch, off)

    return (yield from paired.try_heads(trials.examples, trials.blocks, trials.whole, without, off))


def importance(
    trials: Trials,
    needs: Collection[str],
    data: str = "",
    seed: int = 0,
    permutations: int = PERMUTATIONS,
) -> Task[Study]:
    """Measure all heads; needs names the arrays of Study that are wanted, such as "gradient".

    Each Step carries the Study so far; one that is stopped can be kept as it is.
    """
    study = _Growing(trials, frozenset(needs), data, seed, permutations)
    yield from study.grow()
    return study.study


@dataclass(slots=True)
class _Part:
    """A part of the work: the arrays it fills, how much it is, and what does it, bit by bit."""

    names: tuple[str, ...]
    work: float
    steps: Callable[[], Iterator[float]]


class _Growing:
    """A study that is being measured; its arrays are filled where they stand."""

    def __init__(
        self, trials: Trials, needs: frozenset[str], data: str, seed: int, permutations: int
    ) -> None:
        from hgviz.analysis.evaluation import METRIC_OF
        from hgviz.analysis.orders import costs

        self.trials, self.needs, self.examples = trials, needs, trials.examples
        examples, heads = trials.examples, trials.model.spec.heads
        self._column = {head: at for at, head in enumerate(heads)}
        self._permutations = permutations
        rows, places, wide = len(examples), len(examples.wanted), len(heads)
        lengths = np.array([len(row.ids) for row in examples.rows], np.int64)
        parameters, flops = costs(trials.model.spec, lengths)

        def some(name: str, *shape: int) -> Any:
            return np.full(shape, np.nan, np.float32) if name in needs else None

        self.arrays: dict[str, Any] = {
            "gradient": some("gradient", rows, wide),
            "token_gradient": some("token_gradient", rows, wide),
            "loss_change": some("loss_change", places, wide),
            "change": np.full((places, wide), UNKNOWN, np.int8) if "change" in needs else None,
            "alone": some("alone", places, wide),
            "shapley": some("shapley", permutations, wide),
        }
        self.loss = np.full(places, np.nan, np.float32)
        self.given = np.full(places, UNASKED, np.int64)
        self.study = Study(
            spec=trials.model.spec,
            heads=heads,
            asked=examples.asked,
            metric=METRIC_OF[examples.asked],
            places=examples.places,
            wanted=examples.wanted,
            lengths=lengths,
            loss=self.loss,
            given=self.given,
            data=data,
            data_digest=examples.digest,
            labels=examples.labels,
            seed=seed,
            off=trials.off,
            sizes=np.array([row.size for row in examples.rows]),
            parameters=parameters,
            flops=flops,
            made=provenance(trials.model),
            **self.arrays,
        )

    def grow(self) -> Iterator[Step]:
        """Part after part, the cheapest first."""
        count, heads = sum(map(len, self.trials.blocks)), len(self._column)
        parts = [_Part((), 1.0, self._answer)]
        if self.needs & {"gradient", "token_gradient"}:
            parts.append(_Part(("gradient",), 2.0, self._slopes))
        if self.needs & {"loss_change", "change"}:
            parts.append(_Part(("loss_change",), heads / 2, self._one_by_one))
        if "alone" in self.needs:
            parts.append(_Part(("alone",), heads / 2, self._alone))
        if "shapley" in self.needs:
            parts.append(_Part(("shapley",), heads * self._permutations, self._shapley))
        total, done, told = sum(part.work for part in parts), 0.0, 0.0
        for part in parts:
            for share in part.steps():
                now = time.monotonic()
                shown = self.study if now - told > OFTEN else None
                told = now if shown is not None else told
                note = f"{', '.join(part.names) or 'the whole model'}, {count} batches"
                yield Step(done + share * part.work, total, note, shown)
            done += part.work

    def _batches(self) -> Iterator[tuple[float, Batch]]:
        batches = [batch for block in self.trials.blocks for batch in block]
        for number, batch in enumerate(batches, 1):
            yield number / len(batches), batch

    def _answer(self) -> Iterator[float]:
        for share, batch in self._batches():
            at = self.examples.where(batch)
            self.loss[at], self.given[at] = self.trials.whole(batch)
            yield share

    def _slopes(self) -> Iterator[float]:
        columns = np.array([self._column[head] for head in self.trials.heads], np.int64)
        for share, batch in self._batches():
            found = self.trials.slopes(batch)
            for name, values in zip(("gradient", "token_gradient"), found, strict=True):
                if (array := self.arrays[name]) is not None:
                    array[batch.rows[:, None], columns] = values
            yield share

    def _one_by_one(self) -> Iterator[float]:
        for share, batch in self._batches():
            at = self.examples.where(batch)
            wanted, right = self.examples.wanted[at], self.given[at] == self.examples.wanted[at]
            for head, (loss, given) in self.trials.one_by_one(batch):
                column = self._column[head]
                if self.arrays["loss_change"] is not None:
                    self.arrays["loss_change"][at, column] = loss - self.loss[at]
                if self.arrays["change"] is not None:
                    self.arrays["change"][at, column] = (given == wanted).astype(int) - right
            yield share

    def _alone(self) -> Iterator[float]:
        for share, batch in self._batches():
            at = self.examples.where(batch)
            for head, (loss, _) in self.trials.one_by_one(batch, alone=True):
                self.arrays["alone"][at, self._column[head]] = loss - self.loss[at]
            yield share

    def _shapley(self) -> Iterator[float]:
        """Heads join in a random order; a row sums to L(all) - L(none)."""
        random, heads = np.random.default_rng(self.study.seed), list(self.trials.heads)
        for number in range(self._permutations):
            order = [heads[at] for at in random.permutation(len(heads))]
            before = self._mean_loss(frozenset(heads))
            for step, head in enumerate(order, 1):
                now = self._mean_loss(frozenset(order[step:]))
                self.arrays["shapley"][number, self._column[head]] = now - before
                before = now
                yield (number + step / len(order)) / self._permutations

    def _mean_loss(self, off: Off) -> float:
        total = sum(
            float(self.trials.without(batch, off)[0].sum(dtype=float))
            for _, batch in self._batches()
        )
        return total / len(self.examples.wanted)


__all__ = ["importance", "trials_of", "try_heads"]
