"""What the cells of a single verb do on a worker: rows of tasks.cells.WORK.

Each opens what it needs by what it is given, or has it open from the cell before, and leaves its
arrays beside its result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hgviz.core import Step, Task, heads_named
from hgviz.sweep import Cell
from hgviz.tasks import lending

if TYPE_CHECKING:
    from hgviz.store.sweep import SweepFolder

Facts = dict[str, Any]
Does = Callable[["SweepFolder", Cell], Task[Facts]]


def _importance(folder: SweepFolder, cell: Cell) -> Task[Facts]:
    """Some arrays of all heads, on some batches or along some random orders."""
    from hgviz.store.portions import write_arrays
    from hgviz.tasks.dividing import taken
    from hgviz.tasks.studying import Growing, Portion, blank

    how = cell.given
    trials = lending.trials_of(how, cell.paths)
    portion = Portion(range(*how["batches"]), range(*how["orders"]))
    study = blank(trials, "", how["seed"])
    growing = Growing(trials, how["arrays"], study, portion.orders.stop, portion)
    yield from growing.grow()
    write_arrays(folder, cell.key, taken(growing, portion))
    return {"arrays": how["arrays"]}


def _order(folder: SweepFolder, cell: Cell) -> Task[Facts]:
    """An order of heads whose scores are measured again after each step."""
    from hgviz.analysis.orders import Limits
    from hgviz.tasks.pruning import renewed
    from hgviz.tasks.studying import blank

    how = cell.given
    trials = lending.trials_of(how, cell.paths)
    study = blank(trials, "", how["seed"])
    limits = Limits(study.heads, how["least"], off=study.off)
    order = yield from renewed(
        trials, study, limits, how["method"], how["key"], how["how"], how["normalise"]
    )
    return {"order": list(map(str, order))}


def _answers(folder: SweepFolder, cell: Cell) -> Task[Facts]:
    """What is answered with each of some sets of heads off, or on some batches."""
    from hgviz.store.portions import write_arrays
    from hgviz.tasks.pruning import answers_without

    how = cell.given
    trials = lending.trials_of(how, cell.paths)
    layers, found = trials.model.spec.layers, []
    for number, names in enumerate(how["sets"]):
        task = answers_without(trials, heads_named(",".join(names), layers))
        note = f"{len(names)} heads off"
        found.append((yield from _stepping(task, Step(number, len(how["sets"]), note))))
    loss, given = zip(*found, strict=True)
    write_arrays(folder, cell.key, {"loss": np.stack(loss), "given": np.stack(given)})
    return {"sets": len(found)}


def _stepping(task: Generator[None, None, Any], step: Step) -> Task[Any]:
    """A task whose every step is this one."""
    while True:
        try:
            next(task)
        except StopIteration as end:
            return end.value
        yield step


def _capture(folder: SweepFolder, cell: Cell) -> Task[Facts]:
    """Some texts of a corpus, into the folder that the capture grows in."""
    from hgviz.store import TextWriter
    from hgviz.store.schema import PART
    from hgviz.tasks.corpus import one_text

    how = cell.given
    model = lending.model_of(how, cell.paths["model"])
    read = lending.corpus_of(model, cell.paths["data"], how["corpus"])
    off = heads_named(",".join(how["off"]), model.spec.layers)
    out, some = str(folder.path).removesuffix(PART), range(*how["texts"])
    writer = TextWriter.joined(out, model.spec, some, off)
    for number in some:
        if number not in writer.done:
            yield from one_text(model, read, number, writer, len(read.texts))
    return {"texts": len(some)}


def _sides(folder: SweepFolder, cell: Cell) -> Task[Facts]:
    """What one of two models answers on some batches."""
    from hgviz.store.portions import write_arrays
    from hgviz.tasks.comparing import answers_to

    how, some = cell.given, range(*cell.given["batches"])
    trials = lending.trials_of(how, cell.paths, how["side"])
    found = yield from answers_to(trials, some=some)
    batches = [batch for block in trials.blocks for batch in block]
    at = np.concatenate([trials.examples.where(batches[number]) for number in some])
    write_arrays(folder, cell.key, {"loss": found.loss[at], "given": found.given[at]})
    return {"places": len(at)}


def _heads(folder: SweepFolder, cell: Cell) -> Task[Facts]:
    """What the heads of two models do with some texts."""
    from hgviz.store.portions import write_arrays
    from hgviz.tasks.contrasting import heads_on, looked_into
    from hgviz.tasks.sides import arrays_of

    how, some = cell.given, range(*cell.given["rows"])
    sides = [lending.trials_of(how, cell.paths, side) for side in ("a", "b")]
    models = [one.model for one in sides]
    looked = [looked_into(one.examples, None, how["texts"]) for one in sides]
    found: list[Any] = []
    for number in some:
        yield Step(len(found), len(some), f"text {number + 1:,}")
        found.append(heads_on(models, looked, number, sides[1].off))
    write_arrays(folder, cell.key, arrays_of(found))
    return {"texts": len(found)}


PORTIONS: Mapping[str, Does] = {
    "importance": _importance, "order": _order, "answers": _answers, "capture": _capture,
    "sides": _sides, "heads": _heads,
}  # fmt: skip

__all__ = ["PORTIONS"]
