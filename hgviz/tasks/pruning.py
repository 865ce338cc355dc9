"""Switching heads off: what each is worth, and what a model scores without some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hgviz.analysis.importance import (
    POINTS,
    Limits,
    MaskTrial,
    curve_points,
    importance,
    order_by_need,
    pruning_curve,
    random_order,
    split_examples,
    try_mask,
)
from hgviz.core import (
    HeadId,
    HeadSet,
    HgvizError,
    Integers,
    progress,
    progress_within,
)
from hgviz.errors import require
from hgviz.study import SCORE, PruningCurve, Study
from hgviz.tasks.scoring import examples_from

if TYPE_CHECKING:
    from hgviz.examples import Batch
    from hgviz.models.model import Model
    from hgviz.models.trials import Trials

BAND = 13  # points along a random order, of which there are many
TIMED = 16  # texts of a pass that is timed


def trials_of(
    model: Model,
    data: str | Path,
    text_column: str = "",
    label_column: str = "",
    off: HeadSet = frozenset(),
    limit: int | None = None,
    labels: Mapping[str, str] | None = None,
) -> Trials:
    """A model ready to be tried on some data.

    labels: what the model calls the labels of the data; limit: on so many of its examples at most,
    drawn at random, the same ones each time. Errors: HgvizError, as examples_from, and where
    switching off a whole layer changes nothing.
    """
    from hgviz.models.trials import Trials

    progress(0, 1, f"reading {Path(data).name}")
    examples = examples_from(model, data, text_column, label_column, labels)
    trials = Trials(model, examples if limit is None else examples.sample(limit), off)
    trials.require_effect()
    return trials


def try_heads(trials: Trials, off: HeadSet) -> MaskTrial:
    """What the model answers with heads off, beside the baseline; see analysis.importance."""

    def without(batch: Batch) -> Any:
        return trials.without(batch, off)

    trial = MaskTrial(off, trials.examples, head_costs=trials.head_costs)
    return try_mask(trial, trials.blocks, trials.baseline, without)


def curve(
    trials: Trials,
    study: Study,
    method: str = SCORE,
    random: int = 20,
    least: int = 0,
    most: int | None = None,
    timed: bool = False,
) -> Study:
    """A score along an order of the study's heads, beside so many random orders, in the study.

    The order is made from one half of the examples and measured on the other. least: heads that
    stay in every layer. most: points along the curve; random ones have fewer. timed: with the times
    of the order's points, see curve_times. The progress carries the study
    so far; curves that it has are not measured again. Errors: HgvizError for a method that was not
    measured.
    """
    limits = Limits(study.heads, least, off=study.off)
    own = (method, study.seed, order_of(study, limits, method))
    lines = [own, *at_random(study, limits, random)]
    study = _along(trials, study, lines, least, most or POINTS)
    if timed:
        study = timed_along(trials, study, own, most or POINTS)
    return study


def timed_along(trials: Trials, study: Study, line: Along, most: int) -> Study:
    """The study with the times of the curve along one of its orders."""
    _, rows = split_examples(len(study), study.seed)
    removed = curve_points(len(line[-1]), most)
    one = next(one for one in study.curves if _is(one, line, rows, removed))
    return curve_times(trials, study, one)


def random_curves(
    trials: Trials, study: Study, count: int, least: int = 0, most: int | None = None
) -> Study:
    """The study with a score along so many random orders, as curve measures them."""
    limits = Limits(study.heads, least, off=study.off)
    lines = at_random(study, limits, count)
    return _along(trials, study, lines, least, most or POINTS)


def curve_times(trials: Trials, study: Study, one: PruningCurve) -> Study:
    """The study with the times of one of its curves, see Curve.times; one that has them is left.

    At each point a model is built that really lacks the heads, and takes turns with the whole one
    on the examples' first texts, over and over where they are few, cut to TIMED_TOKENS: with all
    points or not at all, so that all are of one machine. Errors: HgvizError for a study of
    another model, and for a model that cannot be made smaller.
    """
    if study.spec.digest != trials.model.spec.digest:
        raise HgvizError(
            f"the study is of another model: it measured {study.spec.name}", "Open that model"
        )
    if one.times is not None:
        return study
    progress(0, len(one.removed), "the whole model")
    from hgviz.models import pruning

    text = pruning.example_batches(trials.examples, trials.model.spec, 1)[0]
    text, times = pruning.timed_batch(text, TIMED), []
    whole = pruning.runner_without(trials.model, frozenset())
    for at, count in enumerate(one.removed.tolist()):
        smaller = pruning.runner_without(trials.model, study.off | one.off(count))
        note = f"{count} of {len(one.order)} heads off"
        with progress_within(at, at + 1, len(one.removed)):
            latency = pruning.measure_latency(whole, smaller, text, note)
        times.append((latency.before, latency.after))
    timed = replace(one, times=np.array(times, np.float32))
    return replace(study, curves=tuple(timed if each is one else each for each in study.curves))


# method, seed, order: what a curve is along
Along = tuple[str, int, tuple[HeadId, ...]]


def at_random(study: Study, limits: Limits, count: int) -> list[Along]:
    """So many random orders, each of its own seed."""
    seeds = range(study.seed + 1, study.seed + 1 + count)
    return [("random", seed, random_order(limits, seed)) for seed in seeds]


def _along(trials: Trials, study: Study, lines: Sequence[Along], least: int, most: int) -> Study:
    """The study with a score along each of some orders, but for those that it has."""
    rows, wanted = points_of(study, lines, least, most)
    answers = _Answers(type(trials)(trials.model, trials.examples.part(rows), trials.off))
    places = len(answers.trials.examples.wanted)
    for number, removed in wanted:
        name, order = lines[number][0], lines[number][-1]
        words = f"{name} order {number}" if name == "random" else f"the order of {name}"
        losses = np.zeros((len(removed), places), np.float32)
        given = np.zeros((len(removed), places), np.int64)
        so_far = study
        for at, count in enumerate(removed, 1):
            done = number + at / len(removed)
            with progress_within(done - 1 / len(removed), done, len(lines)):
                losses[at - 1], given[at - 1] = answers.without(order, count, words)
            points = removed[:at], losses[:at], given[:at]
            so_far = with_curve(study, lines[number], *points, rows)
            progress(done, len(lines), words, so_far)
        study = so_far
    return study


def points_of(
    study: Study, lines: Sequence[Along], least: int, most: int
) -> tuple[Integers, list[tuple[int, Integers]]]:
    """The examples that curves are measured on, and of each line that the study has no curve of its
    number and how many heads are off at each point. Errors: HgvizError where there can be none."""
    _, rows = split_examples(len(study), study.seed)
    require(
        len(rows),
        "one example is too few for a curve: its order is made from others",
        "Take more data",
    )
    if not all(line[-1] for line in lines):
        raise HgvizError(
            f"no head can go: {least} stay in every layer", "Let fewer stay, or name no number"
        )
    wanted = []
    for number, line in enumerate(lines):
        removed = curve_points(len(line[-1]), most)
        if line[0] == "random":
            removed = removed[curve_points(len(removed) - 1, BAND)]
        if not any(_is(one, line, rows, removed) for one in study.curves):
            wanted.append((number, removed))
    return rows, wanted


def with_curve(
    study: Study, line: Along, removed: Integers, losses: Any, given: Any, rows: Integers
) -> Study:
    """The study with what was answered along a line, in place of an earlier one of its kind."""
    name, seed, order = line
    one = pruning_curve(study, order, removed.tolist(), losses, given, rows, name, seed)
    return _with(study, one)


def order_of(study: Study, limits: Limits, method: str) -> tuple[HeadId, ...]:
    """The order of heads by a score on one half of the examples.

    Raises HgvizError where the study does not have the score.
    """
    rows, _ = split_examples(len(study), study.seed)
    return order_by_need(importance(study, method, rows=rows).need, limits)


class _Answers:
    """What a model answers along orders of heads; those that all orders share are kept."""

    def __init__(self, trials: Trials) -> None:
        self.trials = trials
        self._kept: dict[HeadSet, tuple[Any, Any]] = {}

    def without(self, order: Sequence[HeadId], count: int, note: str) -> tuple[Any, Any]:
        """Losses and answers (places,) without the first heads of an order."""
        off = frozenset(order[:count])
        if off in self._kept:
            return self._kept[off]
        examples = self.trials.examples
        losses = np.zeros(len(examples.wanted), np.float32)
        given = np.zeros(len(examples.wanted), np.int64)
        batches = [batch for block in self.trials.blocks for batch in block]
        for number, batch in enumerate(batches, 1):
            at = examples.where(batch)
            losses[at], given[at] = self.trials.without(batch, off)
            progress(number, len(batches), note)
        if count in (0, len(order)):
            self._kept[off] = losses, given
        return losses, given


def _is(one: PruningCurve, line: Along, rows: Integers, removed: Integers) -> bool:
    """Whether a curve is along this line, on these rows and at these points."""
    same = (one.method, one.order) == (line[0], line[-1])
    return same and np.array_equal(one.rows, rows) and np.array_equal(one.removed, removed)


def _with(study: Study, one: PruningCurve) -> Study:
    """The study with a curve in place of an earlier one of the same kind and seed."""

    def kind(curve: PruningCurve) -> Any:
        return curve.method, curve.seed, len(curve.order)

    others = (other for other in study.curves if kind(other) != kind(one))
    return replace(study, curves=(*others, one))


__all__ = ["curve", "curve_times", "random_curves", "trials_of", "try_heads"]
