"""Measuring all heads of a model into a study, which is saved while it grows and can be resumed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.importance import METHODS, removal_costs
from hgviz.analysis.statistics import METRIC_OF
from hgviz.core import (
    HeadSet,
    Step,
    current_listener,
    listening,
    progress,
    progress_as,
    progress_within,
)
from hgviz.errors import require
from hgviz.examples import EACH
from hgviz.files import file_lock
from hgviz.study import ARRAYS, NO_PREDICTION, UNKNOWN, Study, unmeasured
from hgviz.tasks.captures import provenance, require_attention

if TYPE_CHECKING:
    from hgviz.examples import Batch
    from hgviz.models.trials import Trials

OFTEN = 0.2  # s between two reports of the growing study
SAVED = 10.0  # s between two writes of it
SHARE = 20  # the least time between two writes, in times of a write
TIMED_TOKENS = 2048  # of the texts that are timed for an estimate
PERMUTATIONS = 20  # of Shapley values, unless more are asked for


def study(
    trials: Trials,
    needs: Collection[str],
    out: str | Path,
    data: str = "",
    seed: int = 0,
    permutations: int = PERMUTATIONS,
    force: bool = False,
    announce: Callable[[float], None] | None = None,
) -> Study:
    """Measure all heads into a file; what a study of the same model and data has is kept.

    The file is written every few seconds and when the work is stopped. announce: as in importance.
    Raises HgvizError, also where `out` is a study of something else, unless force, which replaces
    it.
    """
    known = None if force else kept_study(out, trials, seed)
    work = partial(importance, trials, needs, data, seed, permutations, known, announce)
    return keeping(out, work)


def kept_study(
    out: str | Path,
    trials: Trials,
    seed: int | None = None,
    do: str = "Choose another file, or use --force to replace it",
) -> Study | None:
    """The study in a file, None where there is no file. Raises HgvizError(do=do) for one of another
    model, other examples or other heads off, and of another seed where one is given."""
    from hgviz.store import open_study

    if not Path(out).exists():
        return None
    stored = open_study(out)
    spec, examples = trials.model.spec, trials.examples
    pairs = {
        "another model": (stored.spec.digest, spec.digest),
        "other examples": (stored.data_digest, examples.digest),
        "other heads switched off": (stored.off, trials.off),
        "another ablation": (stored.ablation, trials.ablation),
        "another seed": (stored.seed, stored.seed if seed is None else seed),
    }
    for words, (old, new) in pairs.items():
        was = f"it is of {stored.spec.name} on {stored.data or 'other data'}"
        require(old == new, f"{out} is a study of {words}: {was}", do)
    return stored


def keeping(out: str | Path, work: Callable[[], Study]) -> Study:
    """Call a function whose progress carries the study so far, and write that every few seconds,
    when it ends and when it is stopped. Raises HgvizError where it cannot be written, or where
    another process writes it."""
    from hgviz.store import require_place, write_study

    require_place(out)
    newest: Study | None = None
    due, listener = time.monotonic() + SAVED, current_listener()

    def keep(step: Step) -> None:
        nonlocal newest, due
        newest = step.value if isinstance(step.value, Study) else newest
        if newest is not None and (now := time.monotonic()) > due:
            write_study(out, newest, force=True)
            due = time.monotonic() + max(SAVED, SHARE * (time.monotonic() - now))
        listener(step)

    with file_lock(Path(out)):
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
    announce: Callable[[float], None] | None = None,
) -> Study:
    """Measure all heads; needs names the arrays that are wanted: of study.ARRAYS, such as
    "gradient", or of a method that measures its own.

    known: a study of the same model, examples, heads off and seed, of which only what is missing
    is measured. The progress carries the Study so far, at most every OFTEN; one that is stopped
    can be saved and resumed. announce: called with the seconds that this will take, before it
    begins. Raises HgvizError where all heads are off or losses are not finite.
    """
    require_attention(trials.model.spec)
    require(trials.heads, "all heads are off: none is left to measure", "Leave some heads on")
    measurement = _Measurement(trials, needs, known or _blank(trials, data, seed), permutations)
    if announce is not None:
        announce(measurement.seconds())
    measurement.run()
    return measurement.study


def _blank(trials: Trials, data: str, seed: int) -> Study:
    """A study in which nothing is measured yet."""
    spec, examples, costs = trials.model.spec, trials.examples, trials.head_costs
    lengths = np.array([len(row.ids) for row in examples.rows], np.int64)
    sources = np.array([len((row.first or row).ids) for row in examples.rows], np.int64)
    saved = (None, None) if costs is None else removal_costs(spec, costs, lengths, sources)
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
        ablation=trials.ablation,
        sizes=np.array([row.size for row in examples.rows]),
        saved_parameters=saved[0],
        saved_flops=saved[1],
        made=replace(provenance(trials.model), seed=seed),
    )


class _Measurement:
    """A study that is being measured; its arrays are filled in place."""

    def __init__(
        self, trials: Trials, needs: Collection[str], known: Study, permutations: int
    ) -> None:
        self.trials, self.examples, self.permutations = trials, trials.examples, permutations
        self.batches = [batch for block in trials.blocks for batch in block]
        self.column = {head: at for at, head in enumerate(known.heads)}
        self.columns = np.array([self.column[head] for head in trials.heads], np.int64)
        self.methods = [method for method in METHODS.values() if method.measure is not None]
        sizes = {"examples": len(known), "places": len(known.loss), "permutations": permutations}
        rows = {method.needs: len(known) for method in self.methods}
        rows |= {name: sizes[array.rows] for name, array in ARRAYS.items()}
        self.needs = [name for name in rows if name in needs]
        self.arrays: dict[str, NDArray[Any]] = {}
        for name in dict.fromkeys((*known.arrays, *self.needs)):
            old = known.arrays.get(name, np.empty((0, len(known.heads))))
            blank, kind = (UNKNOWN, np.int8) if name == "change" else (np.nan, np.float32)
            shape = max(rows.get(name, 0), len(old)), len(known.heads)
            self.arrays[name] = np.full(shape, blank, kind)
            self.arrays[name][: len(old)] = old
        self.loss, self.given = known.loss.copy(), known.given.copy()
        self.study = replace(known, loss=self.loss, given=self.given, arrays=self.arrays)
        self._reported = 0.0

    def run(self) -> None:
        """Measure what is wanted and missing, the cheapest first."""
        heads = len(self.columns)
        parts: list[tuple[tuple[str, ...], float, Callable[..., None], tuple[Any, ...]]] = [
            ((), 1.0, self._answer, ()),
            *(((method.needs,), 1.0, self._by_example, (method.measure, self.trials))
              for method in self.methods),
            (("gradient", "token_gradient"), 2.0, self._by_example, (self.trials.gate_gradients,)),
            (("loss_change", "change"), heads / 2, self._by_head, (False,)),
            (("alone",), heads / 2, self._by_head, (True,)),
            (("shapley",), heads * self.permutations, self._shapley, ()),
        ]  # fmt: skip
        parts = [part for part in parts if not part[0] or {*self.needs} & {*part[0]}]
        total, done = sum(work for _, work, *_ in parts), 0.0
        for names, work, measure, arguments in parts:
            words = ", ".join(name for name in names if name in self.needs).replace("_", " ")
            note = partial(self._with_study, words or "full model")
            with progress_within(done, done + work, total), progress_as(note):
                measure(names, *arguments)
            done += work

    def seconds(self) -> float:
        """The seconds that run will take, extrapolated from passes over a few texts."""
        batch = self.batches[len(self.batches) // 2]
        most = max(1, TIMED_TOKENS // batch.ids.shape[1])
        batch = self.examples.batch(batch.rows[:most])
        heads, count = self.trials.heads, len(self.columns)

        def time_of(work: Callable[..., Any], *arguments: Any) -> float:
            progress(0, 1, "estimating the time")
            start = time.perf_counter()
            work(*arguments)
            return time.perf_counter() - start

        def for_missing(seconds: float, *names: str) -> float:
            """The seconds for all batches that lack these arrays, given those of one batch."""
            tokens = sum(missing.ids.size for *_, missing in self._missing(names))
            return seconds * tokens / batch.ids.size

        time_of(self.trials.baseline, batch)  # warms up
        total = for_missing(time_of(self.trials.baseline, batch))
        for method in self.methods:
            if method.measure is not None and method.needs in self.needs:
                total += for_missing(time_of(method.measure, self.trials, batch), method.needs)
        slopes = ("gradient", "token_gradient")
        if {*slopes} & {*self.needs}:
            total += for_missing(time_of(self.trials.gate_gradients, batch), *slopes)
        sample = [frozenset({heads[at]}) for at in (0, count // 2, -1)]
        for names in (("loss_change", "change"), ("alone",)):
            if {*names} & {*self.needs}:
                passes = [time_of(self.trials.without, batch, off) for off in sample]
                total += for_missing(count * sum(passes) / len(passes), *names)
        if "shapley" in self.needs:
            orders = np.isnan(self.arrays["shapley"][:, self.columns]).any(axis=1).sum()
            tokens = sum(part.ids.size for part in self.batches) / batch.ids.size
            half = time_of(self.trials.without, batch, frozenset(heads[::2]))
            total += half * count * float(orders) * tokens
        return total

    def _with_study(self, words: str, step: Step) -> Step:
        """A step with the study so far, unless that was reported a moment ago."""
        now = time.monotonic()
        is_due = now - self._reported > OFTEN
        self._reported = now if is_due else self._reported
        return Step(step.done, step.total, words, self.study if is_due else None)

    def _missing(self, names: Sequence[str] = ()) -> Iterator[tuple[int, int, Batch]]:
        """The batches without a part of some arrays, or of the baseline: number, count, batch."""

        def lacks(batch: Batch) -> bool:
            places = self.examples.where(batch)
            if not names:
                return bool((self.given[places] == NO_PREDICTION).any())
            is_by_place = names[0] in ARRAYS and ARRAYS[names[0]].rows == "places"
            rows = (places if is_by_place else batch.rows)[:, None]
            arrays = [self.arrays[name] for name in names if name in self.needs]
            return any(bool(unmeasured(array[rows, self.columns]).any()) for array in arrays)

        missing = [batch for batch in self.batches if lacks(batch)]
        return ((number, len(missing), batch) for number, batch in enumerate(missing))

    def _answer(self, _: Collection[str]) -> None:
        """Fill in the losses and answers of the baseline."""
        for number, count, batch in self._missing():
            at = self.examples.where(batch)
            loss, given = self.trials.baseline(batch)
            require(
                np.isfinite(loss).all(),
                "the model outputs no probabilities: some losses are not finite",
                "Try another precision, or check the weights",
            )
            self.loss[at], self.given[at] = loss, given
            progress(number + 1, count)

    def _by_example(
        self, names: Sequence[str], measure: Callable[..., Any], *arguments: Any
    ) -> None:
        """Fill arrays whose rows are examples; measure gives (examples, all heads) for each name,
        or the array itself for one name."""
        for number, count, batch in self._missing(names):
            found = measure(*arguments, batch)
            for name, values in zip(names, [found] if len(names) == 1 else found, strict=True):
                if name in self.arrays:
                    self.arrays[name][batch.rows[:, None], self.columns] = values[:, self.columns]
            progress(number + 1, count)

    def _by_head(self, names: Sequence[str], alone: bool) -> None:
        """Fill arrays whose rows are places, head after head: without it, or with it alone in its
        layer."""
        for number, count, batch in self._missing(names):
            at = self.examples.where(batch)
            wanted = self.examples.wanted[at]
            right = self.given[at] == wanted
            answers = self.trials.without_each(batch, alone)
            for done, (head, (loss, given)) in enumerate(answers, 1):
                change = loss - self.loss[at]
                values = {"loss_change": change, "alone": change}
                values["change"] = (given == wanted).astype(int) - right
                for name in names:
                    if name in self.arrays:
                        self.arrays[name][at, self.column[head]] = values[name]
                progress(number + done / len(self.columns), count)

    def _shapley(self, _: Collection[str]) -> None:
        """Let heads join in random orders; a row sums to L(all) - L(none)."""
        random, heads = np.random.default_rng(self.study.seed), list(self.trials.heads)
        values = self.arrays["shapley"]
        for number in range(self.permutations):
            order = [heads[at] for at in random.permutation(len(heads))]
            if not np.isnan(values[number, self.columns]).any():
                continue
            before = self._mean_loss(frozenset(heads))
            for step, head in enumerate(order, 1):
                loss = self._mean_loss(frozenset(order[step:]))
                values[number, self.column[head]] = loss - before
                before = loss
                progress(number + step / len(order), self.permutations)

    def _mean_loss(self, off: HeadSet) -> float:
        losses = (self.trials.without(batch, off)[0] for batch in self.batches)
        return sum(float(loss.sum(dtype=float)) for loss in losses) / len(self.examples.wanted)


__all__ = ["importance", "keeping", "kept_study", "study"]
