"""Measuring what all heads of a model do: on data, into a study, which is saved while it grows and
can be resumed; and between two texts, by activation patching."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.importance import METHODS, removal_costs
from hgviz.analysis.statistics import METRIC_OF
from hgviz.core import (
    Floats,
    HeadId,
    HeadSet,
    Prompt,
    Step,
    current_listener,
    listening,
    progress,
    progress_as,
    progress_within,
    readonly,
)
from hgviz.errors import require
from hgviz.examples import EACH
from hgviz.files import file_lock
from hgviz.study import ARRAYS, NO_PREDICTION, UNKNOWN, Study, unmeasured
from hgviz.tasks.captures import provenance, require_attention

if TYPE_CHECKING:
    from hgviz.examples import Batch
    from hgviz.models.model import Model
    from hgviz.models.trials import Trials

OFTEN = 0.2  # s between two reports of the growing study
SAVED = 10.0  # s between two writes of it
SHARE = 20  # the least time between two writes, in times of a write
TIMED_TOKENS = 2048  # of the texts that are timed for an estimate
PERMUTATIONS = 20  # of Shapley values, unless more are asked for
SLOPES, CHANGES = ("gradient", "token_gradient"), ("loss_change", "change")  # measured together


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
    out: str | Path | None = None,
    force: bool = False,
) -> Study:
    """Measure all heads; needs names the arrays that are wanted: of study.ARRAYS, such as
    "gradient", or of a method that measures its own.

    known: a study of the same model, examples, heads off and seed, of which only what is missing
    is measured. The progress carries the Study so far, at most every OFTEN; one that is stopped
    can be saved and resumed. announce: called with the seconds that this will take, before it
    begins. out: a file that is written as by `keeping` and whose study is the known one, unless
    force replaces it. Raises HgvizError where all heads are off or losses are not finite, and for
    the file of another study.
    """
    if out is not None:
        known = None if force else kept_study(out, trials, seed)
    require_attention(trials.model.spec)
    require(trials.heads, "all heads are off: none is left to measure", "Leave some heads on")

    def measure() -> Study:
        start = known or _blank(trials, data, seed)
        measurement = _Measurement(trials, needs, start, permutations)
        if announce is not None:
            announce(measurement.seconds())
        measurement.run()
        return measurement.study

    return measure() if out is None else keeping(out, measure)


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
        self.batches = trials.batches
        self.column = {head: at for at, head in enumerate(known.heads)}
        self.columns = np.array([self.column[head] for head in trials.heads], np.int64)
        methods = [method for method in METHODS.values() if method.measure is not None]
        # arrays whose rows are examples, and what gives them for a batch
        self.by_example: list[tuple[tuple[str, ...], Callable[[Batch], Any]]] = [
            *(((method.needs,), partial(method.measure, trials))
              for method in methods if method.measure is not None),
            (SLOPES, trials.gate_gradients),
        ]  # fmt: skip
        sizes = {"examples": len(known), "places": len(known.loss), "permutations": permutations}
        rows = {method.needs: len(known) for method in methods}
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
        parts: list[tuple[tuple[str, ...], float, Callable[[tuple[str, ...]], None]]] = [
            ((), 1.0, self._answer),
            *((names, float(len(names)), partial(self._by_example, measure))
              for names, measure in self.by_example),
            (CHANGES, heads / 2, partial(self._by_head, False)),
            (("alone",), heads / 2, partial(self._by_head, True)),
            (("shapley",), heads * self.permutations, self._shapley),
        ]  # fmt: skip
        parts = [part for part in parts if not part[0] or self._is_needed(part[0])]
        total, done = sum(work for _, work, _ in parts), 0.0
        for names, work, measure in parts:
            words = ", ".join(name for name in names if name in self.needs).replace("_", " ")
            note = partial(self._with_study, words or "full model")
            with progress_within(done, done + work, total), progress_as(note):
                measure(names)
            done += work

    def _is_needed(self, names: Sequence[str]) -> bool:
        return not {*names}.isdisjoint(self.needs)

    def seconds(self) -> float:
        """The seconds that run will take, extrapolated from passes over a few texts."""
        batch = self.batches[len(self.batches) // 2]
        most = max(1, TIMED_TOKENS // batch.ids.shape[1])
        batch = self.examples.batch(batch.rows[:most])
        heads, count = self.trials.heads, len(self.columns)

        def per_token(work: Callable[..., Any], *arguments: Any) -> float:
            progress(0, 1, "estimating the time")
            start = time.perf_counter()
            work(*arguments)
            return (time.perf_counter() - start) / batch.ids.size

        def missing_tokens(names: Sequence[str] = ()) -> int:
            return sum(missing.ids.size for *_, missing in self._missing(names))

        per_token(self.trials.baseline, batch)  # warms up
        total = per_token(self.trials.baseline, batch) * missing_tokens()
        for names, measure in self.by_example:
            if self._is_needed(names):
                total += per_token(measure, batch) * missing_tokens(names)
        sample = [frozenset({heads[at]}) for at in (0, count // 2, -1)]
        for names in (CHANGES, ("alone",)):
            if self._is_needed(names):
                passes = [per_token(self.trials.without, batch, off) for off in sample]
                total += count * sum(passes) / len(passes) * missing_tokens(names)
        if "shapley" in self.needs:
            orders = np.isnan(self.arrays["shapley"][:, self.columns]).any(axis=1).sum()
            tokens = sum(part.ids.size for part in self.batches)
            half = per_token(self.trials.without, batch, frozenset(heads[::2]))
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

    def _answer(self, _: Sequence[str]) -> None:
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

    def _by_example(self, measure: Callable[[Batch], Any], names: Sequence[str]) -> None:
        """Fill arrays whose rows are examples; measure gives (examples, all heads) for each name,
        or the array itself for one name."""
        for number, count, batch in self._missing(names):
            found = measure(batch)
            for name, values in zip(names, [found] if len(names) == 1 else found, strict=True):
                if name in self.arrays:
                    self.arrays[name][batch.rows[:, None], self.columns] = values[:, self.columns]
            progress(number + 1, count)

    def _by_head(self, alone: bool, names: Sequence[str]) -> None:
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

    def _shapley(self, _: Sequence[str]) -> None:
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


# --- between two texts ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Patching:
    """What patching one head at a time does to the logit difference of two answers.

    clean, corrupted: the difference of both texts, in logits. denoised (H,): the share of it that
    comes back when a head of the corrupted run gets its context from the clean one. noised (H,):
    the share that is lost the other way. Both are 0 for a head without effect, 1 for all of it.
    """

    heads: tuple[HeadId, ...]
    denoised: Floats
    noised: Floats
    clean: float
    corrupted: float

    def to_rows(self) -> list[dict[str, Any]]:
        """A row for each head, the one that brings most back first."""
        rows = zip(self.heads, self.denoised.tolist(), self.noised.tolist(), strict=True)
        return [
            {"head": str(head), "denoised": denoised, "noised": noised}
            for head, denoised, noised in sorted(rows, key=lambda row: -row[1])
        ]

    def to_dict(self) -> dict[str, Any]:
        """As `hgviz importance --method patching --json` prints it."""
        return {"clean": self.clean, "corrupted": self.corrupted, "heads": self.to_rows()}


def patching(
    model: Model,
    clean: Prompt,
    corrupted: Prompt,
    answer: int,
    wrong: int,
    off: HeadSet = frozenset(),
) -> Patching:
    """Patch every head between two texts, both ways.

    The logit difference is that of answer less that of wrong: tokens after the last one of the
    text, or classes. Raises HgvizError for texts of different lengths, and where both give the same
    difference.
    """
    from hgviz.models.trials import patch_each

    require(
        len(clean) == len(corrupted),
        f"the texts differ in length: {len(clean)} and {len(corrupted)} tokens",
        "Write the corrupted text with as many tokens as the clean one",
    )
    require(
        model.spec.goal in ("next", "classes") and not model.spec.two_texts,
        "this model predicts neither the next token nor a class of one text",
        "Open a language model or a classifier",
    )
    at = (slice(None),) if model.spec.goal == "classes" else (slice(None), clean.last)

    def difference(logits: Any) -> Any:
        return logits[(*at, answer)] - logits[(*at, wrong)]

    prompts = clean, corrupted
    ends = [float(difference(model.trace(prompt, off=off)[None])[0]) for prompt in prompts]
    texts = [model.tokens(prompt) for prompt in prompts]
    span = ends[0] - ends[1]
    require(
        abs(span) > 1e-6 * max(1.0, abs(ends[0])),
        "both texts give the same logit difference: there is nothing to recover",
        "Choose answers between which the texts differ",
    )
    heads: list[HeadId] = []
    shares = np.zeros((2, len(model.spec.heads) - len(off)))
    for way, (source, target) in enumerate(((0, 1), (1, 0))):
        done, heads = 0, []
        for some, logits in patch_each(model.module, texts[source], texts[target], off):
            moved = difference(logits.flatten(0, 1)).double().cpu().numpy() - ends[target]
            shares[way, done : done + len(some)] = moved / (span if way == 0 else -span)
            done += len(some)
            heads += some
            progress(way * shares.shape[1] + done, shares.size, f"head {some[-1]}")
    return Patching(tuple(heads), readonly(shares[0]), readonly(shares[1]), ends[0], ends[1])
