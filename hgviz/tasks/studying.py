"""Measuring all heads into a study, which is kept while it grows and gone on with."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.importance import METHODS, Method, removal_costs
from hgviz.analysis.statistics import METRIC_OF
from hgviz.core import HeadSet, HgvizError, Step, current_listener, listening, progress
from hgviz.errors import require
from hgviz.examples import EACH
from hgviz.study import ARRAYS, NO_PREDICTION, UNKNOWN, Study, unmeasured
from hgviz.tasks.captures import provenance, require_attention

if TYPE_CHECKING:
    from hgviz.examples import Batch
    from hgviz.models.trials import Trials

OFTEN = 0.2  # s: a study that grows is shown at most so often
SAVED = 10.0  # s: and written at most so often
SHARE = 20  # times as long is measured as is spent on writing
OTHER_FILE = "Choose another file, or use --force to begin anew"
PERMUTATIONS = 20  # of Shapley values, unless more are asked for

Numbers = NDArray[np.int64]


def study(
    trials: Trials,
    needs: Collection[str],
    out: str | Path,
    data: str = "",
    seed: int = 0,
    permutations: int = PERMUTATIONS,
    force: bool = False,
) -> Study:
    """Measure all heads into a file: what a study of the same model and data has stays in it.

    Written every few seconds and when it is stopped. Errors: HgvizError, also where out is a study
    of something else, unless force, which begins anew.
    """
    known = None if force else kept_study(out, trials, seed)
    return keeping(out, partial(importance, trials, needs, data, seed, permutations, known))


def kept_study(
    out: str | Path, trials: Trials, seed: int | None = None, do: str = OTHER_FILE
) -> Study | None:
    """The study in a file, None where there is no file. Errors: HgvizError for one of another
    model, other examples or other heads off, and of another seed where one is given."""
    from hgviz.store import open_study

    if not Path(out).exists():
        return None
    found = open_study(out)
    spec, examples = trials.model.spec, trials.examples
    pairs = {
        "another model": (found.spec.digest, spec.digest),
        "other examples": (found.data_digest, examples.digest),
        "other heads switched off": (found.off, trials.off),
        "another seed": (found.seed, found.seed if seed is None else seed),
    }
    wrong = [words for words, (one, other) in pairs.items() if one != other]
    if wrong:
        was = f"it is of {found.spec.name} on {found.data or 'other data'}"
        raise HgvizError(f"{out} is a study of {wrong[0]}: {was}, and was not touched", do)
    return found


def keeping(out: str | Path, work: Callable[[], Study]) -> Study:
    """Call a function whose progress carries the study so far, and write that every few seconds,
    when it ends and when it is stopped. Raises HgvizError where it cannot be written."""
    from hgviz.store import require_place, write_study

    require_place(out)
    newest: Study | None = None
    due, tell = time.monotonic() + SAVED, current_listener()

    def keep(step: Step) -> None:
        nonlocal newest, due
        newest = step.value if isinstance(step.value, Study) else newest
        if newest is not None and (now := time.monotonic()) > due:
            write_study(out, newest, force=True)
            due = time.monotonic() + max(SAVED, SHARE * (time.monotonic() - now))
        tell(step)

    try:
        with listening(keep):
            newest = work()
        return newest
    finally:
        if newest is not None:
            write_study(out, newest, force=True)


def importance(
    trials: Trials,
    needs: Collection[str],
    data: str = "",
    seed: int = 0,
    permutations: int = PERMUTATIONS,
    known: Study | None = None,
) -> Study:
    """Measure all heads; needs names the arrays that are wanted: of study.ARRAYS, such as
    "gradient", or of a method that measures its own.

    known: a study of the same model, examples, heads off and seed, of which only what is missing
    is measured. The progress carries the Study so far, at most every OFTEN; one that is stopped
    can be kept as it is.
    """
    growing = Growing(trials, needs, known or blank(trials, data, seed), permutations)
    growing.grow()
    return growing.study


def blank(trials: Trials, data: str, seed: int) -> Study:
    """A study in which nothing is measured yet."""
    spec, examples = trials.model.spec, trials.examples
    lengths = np.array([len(row.ids) for row in examples.rows], np.int64)
    sources = np.array([len((row.first or row).ids) for row in examples.rows], np.int64)
    parameters, flops = (
        (None, None)
        if trials.head_costs is None
        else removal_costs(spec, trials.head_costs, lengths, sources)
    )
    return Study(
        spec=spec,
        heads=spec.heads,
        asked=examples.asked,
        metric=METRIC_OF[examples.asked],
        places=examples.places,
        wanted=examples.wanted,
        lengths=lengths,
        loss=np.full(len(examples.wanted), np.nan, np.float32),
        given=np.full(len(examples.wanted), NO_PREDICTION, np.int64),
        data=data,
        data_digest=examples.digest,
        labels=examples.labels,
        texts=0 if examples.asked in EACH else examples.texts,
        seed=seed,
        off=trials.off,
        sizes=np.array([row.size for row in examples.rows]),
        saved_parameters=parameters,
        saved_flops=flops,
        made=replace(provenance(trials.model), seed=seed),
    )


@dataclass(slots=True)
class _Part:
    """A part of the work: the arrays it fills, how much it is, and what does it, bit by bit."""

    names: tuple[str, ...]
    work: float
    steps: Callable[[], Iterator[float]]


class Growing:
    """A study that is being measured; its arrays are filled where they stand."""

    def __init__(
        self,
        trials: Trials,
        needs: Collection[str],
        begun: Study,
        permutations: int,
    ) -> None:
        require_attention(trials.model.spec)
        require(
            trials.heads,
            "all heads are off: there is none left to measure",
            "Leave some of them on",
        )
        self.trials, self.needs, self.examples = trials, frozenset(needs), trials.examples
        self.batches = tuple(batch for block in trials.blocks for batch in block)
        column = {head: at for at, head in enumerate(begun.heads)}
        self._column, self._permutations = column, permutations
        self._columns = np.array([column[head] for head in trials.heads], np.int64)
        self.loss, self.given = begun.loss.copy(), begun.given.copy()
        sizes = {"examples": len(begun), "places": len(self.loss), "permutations": permutations}
        self._own = [method for method in METHODS.values() if method.measure is not None]
        rows = {method.needs: sizes["examples"] for method in self._own}
        rows |= {name: sizes[array.rows] for name, array in ARRAYS.items()}
        self.arrays: dict[str, Any] = {}
        for name in {**begun.arrays, **dict.fromkeys(name for name in rows if name in needs)}:
            old = begun.arrays.get(name)
            count = rows.get(name, 0) if old is None else max(rows.get(name, 0), len(old))
            self.arrays[name] = _filled(name, count, len(column), old)
        self.study = replace(begun, loss=self.loss, given=self.given, arrays=self.arrays)

    def grow(self) -> None:
        """Part after part, the cheapest first."""
        parts = self.parts()
        total, done, told = sum(part.work for part in parts), 0.0, 0.0
        for part in parts:
            words = ", ".join(part.names).replace("_", " ") or "the whole model"
            for share in part.steps():
                now = time.monotonic()
                shown = self.study if now - told > OFTEN else None
                told = now if shown is not None else told
                progress(done + share * part.work, total, words, shown)
            done += part.work

    def parts(self) -> list[_Part]:
        """What is wanted, in that order."""
        heads = len(self._columns)
        steps = {
            "gradients": (2.0, self._slopes),
            "each head off": (heads / 2, self._one_by_one),
            "each head alone": (heads / 2, self._alone),
            "random orders": (heads * self._permutations, self._shapley),
        }
        parts = [_Part((), 1.0, self._answer)]
        for method in self._own:
            if method.needs in self.needs:
                parts.append(_Part((method.needs,), 1.0, partial(self._measure, method)))
        for step, (work, measure) in steps.items():
            names = [name for name, array in ARRAYS.items() if array.step == step]
            if wanted := tuple(name for name in names if name in self.needs):
                parts.append(_Part(wanted, work, measure))
        return parts

    def _batches(self, lacks: Callable[[Batch], bool]) -> Iterator[tuple[float, float, Batch]]:
        """Batches that lack something, each with its share of the work, from where to where."""
        missing = [one for one in self.batches if lacks(one)]
        for number, batch in enumerate(missing):
            yield number / len(missing), 1 / len(missing), batch

    def _lacks(self, names: tuple[str, ...], rows: Numbers) -> bool:
        """Whether something that is wanted is not measured at some rows of these arrays."""
        return any(
            bool(unmeasured(self.arrays[name][rows[:, None], self._columns]).any())
            for name in names
            if name in self.needs
        )

    def _answer(self) -> Iterator[float]:
        def lacks(batch: Batch) -> bool:
            return bool((self.given[self.examples.where(batch)] == NO_PREDICTION).any())

        for start, share, batch in self._batches(lacks):
            at = self.examples.where(batch)
            loss, given = self.trials.baseline(batch)
            require(
                np.isfinite(loss).all(),
                "the model gives no probabilities: some of its losses are not finite",
                "Try it in another precision, or look at its weights",
            )
            self.loss[at], self.given[at] = loss, given
            yield start + share

    def _measure(self, method: Method) -> Iterator[float]:
        """The array that a method measures itself."""
        name, measure = method.needs, method.measure
        assert measure is not None
        for start, share, batch in self._batches(lambda batch: self._lacks((name,), batch.rows)):
            values = measure(self.trials, batch)
            self.arrays[name][batch.rows[:, None], self._columns] = values[:, self._columns]
            yield start + share

    def _slopes(self) -> Iterator[float]:
        names = ("gradient", "token_gradient")
        for start, share, batch in self._batches(lambda batch: self._lacks(names, batch.rows)):
            for name, values in zip(names, self.trials.gate_gradients(batch), strict=True):
                if name in self.arrays:
                    self.arrays[name][batch.rows[:, None], self._columns] = values[:, self._columns]
            yield start + share

    def _one_by_one(self) -> Iterator[float]:
        names = ("loss_change", "change")
        for at, column, loss, given, done in self._each(names, alone=False):
            wanted = self.examples.wanted[at]
            right = self.given[at] == wanted
            if "loss_change" in self.arrays:
                self.arrays["loss_change"][at, column] = loss - self.loss[at]
            if "change" in self.arrays:
                self.arrays["change"][at, column] = (given == wanted).astype(int) - right
            yield done

    def _alone(self) -> Iterator[float]:
        for at, column, loss, _, done in self._each(("alone",), alone=True):
            self.arrays["alone"][at, column] = loss - self.loss[at]
            yield done

    def _each(
        self, names: tuple[str, ...], alone: bool
    ) -> Iterator[tuple[Numbers, int, Any, Any, float]]:
        """Places, column, loss and answer of every head on every batch, and how far that is."""

        def lacks(batch: Batch) -> bool:
            return self._lacks(names, self.examples.where(batch))

        for start, share, batch in self._batches(lacks):
            at = self.examples.where(batch)
            for number, (head, found) in enumerate(self.trials.without_each(batch, alone), 1):
                done = start + share * number / len(self._columns)
                yield at, self._column[head], *found, done

    def _shapley(self) -> Iterator[float]:
        """Heads join in a random order; a row sums to L(all) - L(none)."""
        random, heads = np.random.default_rng(self.study.seed), list(self.trials.heads)
        values = self.arrays["shapley"]
        for number in range(self._permutations):
            order = [heads[at] for at in random.permutation(len(heads))]
            if not np.isnan(values[number, self._columns]).any():
                continue
            before = self._mean_loss(frozenset(heads))
            for step, head in enumerate(order, 1):
                now = self._mean_loss(frozenset(order[step:]))
                values[number, self._column[head]] = now - before
                before = now
                yield (number + step / len(order)) / self._permutations

    def _mean_loss(self, off: HeadSet) -> float:
        batches = (batch for block in self.trials.blocks for batch in block)
        total = sum(float(self.trials.without(one, off)[0].sum(dtype=float)) for one in batches)
        return total / len(self.examples.wanted)


def _filled(name: str, rows: int, heads: int, old: Any) -> Any:
    """An array in which nothing is measured but what was."""
    nothing, kind = (UNKNOWN, np.int8) if name == "change" else (np.nan, np.float32)
    found = np.full((rows, heads), nothing, kind)
    if old is not None:
        found[: len(old)] = old
    return found


__all__ = [
    "blank", "importance", "keeping", "kept_study", "study",
]  # fmt: skip
