"""Scores and curves of heads, cut into cells for a scheduler's workers and put together again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hgviz.core import HeadId, Integers, Task
from hgviz.study import SCORE, UNASKED, Study
from hgviz.tasks.pruning import (
    How,
    at_random,
    one_shot,
    points_of,
    require_renewable,
    timed_along,
    with_curve,
)
from hgviz.tasks.spreading import Spread, cut, ends, paced, slice_of
from hgviz.tasks.studying import PERMUTATIONS, Growing, Portion, blank, kept_study, unmeasured

if TYPE_CHECKING:
    from hgviz.analysis.orders import Group, Key
    from hgviz.models.measures.trials import Trials
    from hgviz.store.portions import PortionFolder

# what the rows of an array are, where they are not random orders
ROWS = {
    "gradient": "examples", "token_gradient": "examples", "loss_change": "places",
    "change": "places", "alone": "places",
}  # fmt: skip


# --- scores ---------------------------------------------------------------------------------------


def spread_study(
    trials: Trials,
    needs: Collection[str],
    spread: Spread,
    data: str = "",
    seed: int = 0,
    permutations: int = PERMUTATIONS,
) -> Task[Study]:
    """Measure all heads into a file, as studying.study does, by a scheduler's workers."""
    from hgviz.store import require_place, write_study
    from hgviz.store.portions import read_arrays

    known = None if spread.force else kept_study(spread.out, trials, seed)
    growing = Growing(trials, needs, known or blank(trials, data, seed), permutations)
    require_place(spread.out)
    model = spread.models[0].given(trials.model, trials.off)
    folder = spread.folder("importance", [model], trials.examples.digest)
    given = {**model, **spread.asked(), "seed": seed}
    portions = _portions(growing, permutations, pace_of(folder, trials))
    cells = spread.cells("importance", [
        {**given, "arrays": list(names), "batches": ends(one.batches), "orders": ends(one.orders)}
        for one, names in portions
    ])  # fmt: skip
    yield from spread.computed(folder, cells)
    for cell, (portion, _) in zip(cells, portions, strict=True):
        _put(growing, portion, read_arrays(folder, cell.key))
    write_study(spread.out, growing.study, force=True)
    folder.forget([one.key for one in cells])
    return growing.study


def taken(growing: Growing, portion: Portion) -> dict[str, Any]:
    """What is measured of a portion, by the names of Study."""
    return {name: values[at] for name, values, at in _of(growing, portion)}


def _put(growing: Growing, portion: Portion, found: Mapping[str, Any]) -> None:
    """Take in what taken gave; what is measured already stays."""
    for name, values, at in _of(growing, portion):
        if name in found:
            old = values[at]
            known = old != UNASKED if name == "given" else ~unmeasured(old)
            values[at] = np.where(known, old, found[name])


def _of(growing: Growing, portion: Portion) -> Iterator[tuple[str, Any, Any]]:
    """The arrays that have rows in a portion, and which these are."""
    if portion.orders:
        yield "shapley", growing.arrays["shapley"], slice_of(portion.orders)
        return
    some = growing.batches[slice_of(portion.batches)]
    rows = {
        "examples": np.concatenate([one.rows for one in some]),
        "places": np.concatenate([growing.examples.where(one) for one in some]),
    }
    for name, kind in ROWS.items():
        if name in growing.arrays:
            yield name, growing.arrays[name], rows[kind]
    yield "loss", growing.loss, rows["places"]
    yield "given", growing.given, rows["places"]


def _portions(
    growing: Growing, permutations: int, pace: float
) -> list[tuple[Portion, tuple[str, ...]]]:
    """What is not measured yet, and the arrays of each. pace: seconds of a batch."""
    found: list[tuple[Portion, tuple[str, ...]]] = []
    names = tuple(sorted(growing.needs - {"shapley"}))
    columns = [at for at, head in enumerate(growing.study.heads) if head not in growing.study.off]
    work = sum(part.work for part in growing.parts() if part.names != ("shapley",))
    for some in cut(len(growing.batches), pace * work):
        portion = Portion(batches=some)
        for name, values, at in _of(growing, portion):
            if name == "given" and (values[at] == UNASKED).any():
                break
            if name in names and unmeasured(values[at][:, columns]).any():
                break
        else:
            continue
        found.append((portion, names))
    if "shapley" in growing.needs:
        lacking = unmeasured(growing.arrays["shapley"][:permutations, columns]).any(1)
        for some in cut(permutations, pace * len(columns) * len(growing.batches)):
            if lacking[slice_of(some)].any():
                found.append((Portion(orders=some), ("shapley",)))
    return found


def pace_of(folder: PortionFolder, trials: Trials, name: str = "batch") -> float:
    """Seconds of one batch, neither the shortest nor the longest."""
    batches = [batch for block in trials.blocks for batch in block]
    part = trials.examples.part(batches[len(batches) // 2].rows)

    def once() -> None:
        fresh = type(trials)(trials.model, part, trials.off, keep=0)
        for block in fresh.blocks:
            for batch in block:
                fresh.whole(batch)

    return paced(folder, name, once)


# --- curves ---------------------------------------------------------------------------------------


def spread_curve(
    trials: Trials,
    study: Study,
    spread: Spread,
    method: str = SCORE,
    key: Key = "score",
    how: How = "one-shot",
    random: int = 20,
    least: int = 0,
    normalise: Group | None = None,
    timed: bool = False,
) -> Task[Study]:
    """A study with a curve and its random ones in its file, as pruning.curve, by workers.

    An order that is measured again after each step is one cell, since no step can begin before the
    last. Times are taken here, at the end, all on one machine.
    """
    from hgviz.analysis import curves, orders
    from hgviz.store import require_place, write_study
    from hgviz.store.portions import read_arrays

    require_place(spread.out)
    limits = orders.Limits(study.heads, least, off=study.off)
    model = spread.models[0].given(trials.model, trials.off)
    folder = spread.folder("curve", [model], trials.examples.digest)
    given = {**model, **spread.asked()}
    others = at_random(study, limits, random)
    points_of(study, others, least, curves.MOST)  # what cannot be is refused before a cluster
    if how == "one-shot":
        made, order = [], one_shot(study, limits, method, key, normalise)
    else:
        require_renewable(method, how)
        asked = {"seed": study.seed, "method": method, "key": key, "how": how, "least": least}
        made = spread.cells("order", [{**given, **asked, "normalise": normalise}])
        yield from spread.computed(folder, made)
        names = folder.found(made[0].key)["order"]
        order = tuple(HeadId(*map(int, name.split("."))) for name in names)
    own = (method, key, how, normalise or "", study.seed, order)
    lines = [own, *others]
    rows, wanted = points_of(study, lines, least, curves.MOST)
    half = trials.examples.part(rows)
    along = [
        (lines[number], removed, _sets(lines[number][-1], removed)) for number, removed in wanted
    ]
    sets = list(dict.fromkeys(off for _, _, some in along for off in some))
    runs = cut(len(sets), pace_of(folder, trials) * sum(map(len, half.blocks())))
    cells = spread.cells("answers", [
        {**given, "half": study.seed, "sets": [list(off) for off in sets[slice_of(some)]]}
        for some in runs
    ])  # fmt: skip
    yield from spread.computed(folder, cells)
    at = {off: (cell.key, row) for cell, some in zip(cells, runs, strict=True)
          for row, off in enumerate(sets[slice_of(some)])}  # fmt: skip
    read = lru_cache(4)(partial(read_arrays, folder))
    for line, removed, some in along:
        found = [{name: values[row] for name, values in read(key).items()}
                 for key, row in map(at.__getitem__, some)]  # fmt: skip
        losses, answers = (np.stack([one[name] for one in found]) for name in ("loss", "given"))
        study = with_curve(study, line, removed, losses, answers, rows)
    write_study(spread.out, study, force=True)
    folder.forget([one.key for one in (*made, *cells)])
    if timed:
        study = yield from timed_along(trials, study, own, curves.MOST)
        write_study(spread.out, study, force=True)
    return study


def _sets(order: Sequence[HeadId], removed: Integers) -> list[tuple[str, ...]]:
    """Which heads are off at each point: orders share some of these sets."""
    return [tuple(map(str, sorted(order[:count]))) for count in removed]


__all__ = ["pace_of", "spread_curve", "spread_study", "taken"]
