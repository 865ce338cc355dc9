"""Two models on the same data, measured by a scheduler's workers: their answers and their heads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hgviz.core import HgvizError, Off, Task
from hgviz.tasks.comparing import require_alike
from hgviz.tasks.contrasting import heads_on, looked_into
from hgviz.tasks.dividing import pace_of
from hgviz.tasks.opening import require_attention
from hgviz.tasks.scoring import examples_from
from hgviz.tasks.spreading import Spread, cut, ends, paced

if TYPE_CHECKING:
    from hgviz.analysis.evaluation import Answers
    from hgviz.analysis.passes import Text
    from hgviz.examples import Examples
    from hgviz.models.model import Model
    from hgviz.store.portions import PortionFolder
    from hgviz.sweep import Cell

NAMES = ("a", "b")
ARRAYS = ("spectra", "apart", "cells", "at_scores", "at_weights")  # of passes.Text, and values

Runs = list[tuple[range, str]]  # pieces of work by number, and the cell that did them


class Sides:
    """What workers measured of A and B: answers by batches, heads by texts; see spread_sides."""

    def __init__(
        self, folder: PortionFolder, models: Sequence[Model], answers: Sequence[Runs], heads: Runs
    ) -> None:
        from hgviz.store.portions import read_arrays

        self._folder, self._models, self._answers = folder, models, answers
        self._heads = {number: (key, number - some.start) for some, key in heads for number in some}
        self._keys = [key for runs in (*answers, heads) for _, key in runs]
        self._read = lru_cache(1)(partial(read_arrays, folder))

    def answers(self, side: int, examples: Examples) -> Answers:
        """What one of them answers to its examples. Errors: HgvizError for a damaged file."""
        from hgviz.analysis.evaluation import Answers

        found = Answers.none(examples)
        batches = [batch for block in examples.blocks() for batch in block]
        for some, key in self._answers[side]:
            at = np.concatenate([examples.where(batches[number]) for number in some])
            arrays = self._read(key)
            found.loss[at], found.given[at] = arrays["loss"], arrays["given"]
        return found

    def heads(self, number: int) -> tuple[Text, Text, Any]:
        """What laboratory.heads_on gives of one text, but for the rows themselves."""
        from hgviz.analysis.passes import MEASURES, Text

        key, at = self._heads[number]
        arrays, texts = self._read(key), []
        for name, model in zip(NAMES, self._models, strict=True):
            values = dict(zip(MEASURES, arrays[f"{name} values"][at], strict=True))
            column = {head: place for place, head in enumerate(model.spec.heads)}
            texts.append(Text(column, values, *(arrays[f"{name} {one}"][at] for one in ARRAYS)))
        return texts[0], texts[1], arrays["between"][at] if arrays["alike"][at] else None

    def finish(self) -> None:
        """All of it is written where it was asked for: nothing has to be kept any more."""
        self._folder.forget(self._keys)


def spread_sides(
    a: Model,
    b: Model,
    spread: Spread,
    off: Off = frozenset(),
    report: bool = False,
    texts: int | None = None,
) -> Task[Sides]:
    """Measure the answers of both and, for a report, the heads of both on some of the texts.

    off: heads that are off in B. Errors: HgvizError, as compare_answers and laboratory.
    """  # fmt: skip
    from hgviz.models.measures.trials import Trials

    models = (a, b)
    for model in models if report else ():
        require_attention(model.spec)
    require_alike(a, b)
    if a.spec.goal == "states":
        raise HgvizError(
            "workers compare no hidden states",
            "those of both models are needed at once",
            "Leave --scheduler out",
        )
    columns = (spread.text_column, spread.label_column)
    some = [examples_from(model, spread.data, *columns) for model in models]
    if spread.limit is not None:
        some = [one.sample(spread.limit) for one in some]
    offs = (frozenset[Any](), off)
    given = {
        name: origin.given(model, gone)
        for name, origin, model, gone in zip(NAMES, spread.models, models, offs, strict=True)
    }
    folder = spread.folder("compare", list(given.values()), some[0].digest)
    asked, parts = spread.asked(), []
    for name, model, examples, gone in zip(NAMES, models, some, offs, strict=True):
        trials = Trials(model, examples, gone, keep=0)
        count = sum(map(len, trials.blocks))
        runs = cut(count, pace_of(folder, trials, f"batch {name}"))
        mine = {**asked, "side": name, name: given[name]}
        parts.append((runs, spread.cells("sides", [{**mine, "batches": ends(r)} for r in runs])))
    if report:
        looked = [looked_into(one, None, texts) for one in some]
        count = min(map(len, looked))
        pace = paced(folder, "text", lambda: heads_on(models, looked, count // 2, off))
        runs = cut(count, pace)
        both = {**asked, **given, "texts": texts}
        parts.append((runs, spread.cells("heads", [{**both, "rows": ends(r)} for r in runs])))
    yield from spread.computed(folder, [cell for _, cells in parts for cell in cells])
    found = [_runs(runs, cells) for runs, cells in parts]
    return Sides(folder, models, found[:2], found[2] if report else [])


def _runs(runs: list[range], cells: list[Cell]) -> Runs:
    return [(some, cell.key) for some, cell in zip(runs, cells, strict=True)]


def arrays_of(found: Sequence[tuple[Text, Text, Any]]) -> dict[str, Any]:
    """What laboratory.heads_on gave of some texts, as Sides.heads reads it."""
    arrays: dict[str, Any] = {}
    for side, name in enumerate(NAMES):
        texts = [one[side] for one in found]
        arrays[f"{name} values"] = np.stack([np.stack(list(one.values.values())) for one in texts])
        for what in ARRAYS:
            arrays[f"{name} {what}"] = np.stack([getattr(one, what) for one in texts])
    nothing = np.full((len(found[0][0].column), len(found[0][1].column)), np.nan)
    apart = [one[2] for one in found]
    arrays["between"] = np.stack([nothing if one is None else one for one in apart])
    arrays["alike"] = np.array([one is not None for one in apart])
    return arrays


__all__ = ["Sides", "arrays_of", "spread_sides"]
