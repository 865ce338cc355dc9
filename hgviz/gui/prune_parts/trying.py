"""The tasks behind the Prune page: what runs in the engine lane, and what it hands back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hgviz import tasks
from hgviz.analysis import slices
from hgviz.analysis.importance import METHODS
from hgviz.analysis.paired import Paired
from hgviz.analysis.trial import Point, Trial
from hgviz.core import Capture, HgvizError, Off, Step, Task
from hgviz.examples import EACH, WINDOW, Examples
from hgviz.gui import opening
from hgviz.study import SCORE, Study

if TYPE_CHECKING:
    from hgviz.models.measures.trials import Trials
    from hgviz.models.model import Model

FIRST = ("loo", SCORE)  # what colours the wall unless something else is chosen
POINTS = 25  # of a curve; random orders have fewer
# what is tried, drawn at random where there is more
EXAMPLES = {"classes": 4000, "tags": 4000, "ends": 1000, "states": 1000, "masked": 400}
TOKENS = 32 * WINDOW  # of a language model
# of their blocks: a score shows soon, and grows in small steps
SIZES = {"next": (1, 2, 4)} | dict.fromkeys((*EACH, "masked"), (32, 64))
SHORT = 256  # tokens: as many shorter windows as have these together stand for one


class Urgent:
    """A task that goes before the one that runs; only the newest is kept."""

    def __init__(self) -> None:
        self._tasks: deque[Task[Any]] = deque(maxlen=1)  # both ends are safe between threads

    def put(self, task: Task[Any]) -> None:
        """Have it done next, in place of one that waits or runs."""
        self._tasks.append(task)

    def clear(self) -> None:
        """Nothing is urgent any more, and what is under way ends."""
        self._tasks.append(_nothing())

    def steps(self) -> Iterator[Step]:
        """The steps of what is urgent now, until there is nothing."""
        while self._tasks:
            task = self._tasks.popleft()
            with closing(task):
                for step in task:
                    yield step
                    if self._tasks:
                        break


def _nothing() -> Task[None]:
    yield from ()


def prepare(
    model: Model | None,
    checkpoint: str,
    device: str,
    data: str,
    study: Study | None = None,
    labels: Mapping[str, str] | None = None,
) -> Task[Trials]:
    """A model ready to be tried on a file, loaded first where it is not open yet.

    labels: the model's class of each label of the file. study: one that is open; where the file has
    the examples it was made of, those are tried.
    """
    if model is None:
        if not checkpoint:
            raise HgvizError(
                "There is no model to try", "a capture alone answers nothing",
                "Open the checkpoint it was made with",
            )  # fmt: skip
        model = yield from tasks.load(checkpoint, device)
    yield Step(0, 1, f"reading {Path(data).name}")
    examples = tasks.examples_from(model, data, labels=labels)
    measured = None if study is None else examples.sample(len(study))
    if measured is None or study is None or measured.digest != study.data_digest:
        most = EXAMPLES.get(examples.asked)
        measured = examples.sample(most) if most else examples.sample_of(TOKENS)
    return (yield from ready(model, measured))


def ready(model: Model, examples: Examples) -> Task[Trials]:
    """A model ready to be tried on examples, a few at a time. Errors: as tasks.trials_of."""
    from hgviz.models.measures.trials import Trials

    yield Step(0, 1, "trying whether heads do anything")
    sizes = SIZES[examples.asked]
    if examples.asked == "next":
        each = max(1, int(SHORT / examples.lengths.mean()))
        sizes = tuple(each * size for size in sizes)
    trials = Trials(model, examples, sizes=sizes)
    trials.require_effect()
    return trials


def trying(trials: Trials, off: Off) -> Task[Trial]:
    """What the model scores without these heads; each Step carries the Trial so far."""
    trial = Trial(off, trials.examples, weights=trials.weights)
    parts = slices.of_examples(trials.examples, trials.model.spec)
    with closing(tasks.try_heads(trials, off, parts)) as task:
        while True:
            try:
                step = next(task)
            except StopIteration as end:
                found, before, now = end.value
                break
            if isinstance(step.value, Paired):
                score = step.value.score
                point = Point(score.seen, score.value, score.low, score.high)
                trial = replace(trial, points=(*trial.points, point), paired=step.value)
                step = replace(step, value=trial)
            yield step
    trial = replace(trial, paired=found, before=before, now=now)
    yield Step(trial.total, trial.total, "", trial)
    return trial


def measuring(
    trials: Trials, needs: frozenset[str], data: str, known: Study | None, urgent: Urgent
) -> Task[Study]:
    """Measure what is not known of all heads; what is urgent goes before."""
    return (yield from _yielding(tasks.importance(trials, needs, data, known=known), urgent))


def tracing(trials: Trials, study: Study, method: str, urgent: Urgent) -> Task[Study]:
    """The curve of a score beside random orders; what is urgent goes before."""
    task = tasks.curve(trials, study, method, most=POINTS)
    return (yield from _yielding(task, urgent))


def both(wish: opening.Wish, model: Model | None) -> Task[tuple[Capture, Capture]]:
    """A text captured with the whole model, and without the heads that are off."""
    _, model, whole = yield from opening.capture_text(replace(wish, off=frozenset()), model)
    _, _, without = yield from opening.capture_text(wish, model)
    return whole, without


def save(study: Study, path: str) -> Task[str]:
    """Write what was measured to a file, in place of one that is there."""
    from hgviz.store import write_study

    yield Step(0, 1, f"writing {Path(path).name}")
    return str(write_study(path, study, force=True))


def _yielding(task: Task[Study], urgent: Urgent) -> Task[Study]:
    """A study that grows, each time as a new object; after every step what is urgent. A step may
    be skipped where many come, so what is done of that comes again with steps that have no study.
    """
    tried: Trial | None = None
    with closing(task):
        while True:
            try:
                step = next(task)
            except StopIteration as end:
                found: Study = end.value
                return found
            yield replace(step, value=tried if step.value is None else replace(step.value))
            for other in urgent.steps():  # how far it is with the study is what is told
                if isinstance(other.value, Trial) and other.value.done:
                    tried = other.value
                yield replace(step, value=other.value)


def drawn(study: Study) -> str:
    """Which score of a study to show first: the best of those that have a curve."""
    score = best(study, "")
    curves = [one for one in study.curves if METHODS.get(one.method)]
    mine = [one for one in curves if one.method == score] or [
        one for one in curves if METHODS[one.method].measured(study)
    ]
    return mine[-1].method if mine else score


def best(study: Study, chosen: str) -> str:
    """The score that colours the heads: the chosen one, else the best there is."""
    there = [name for name, one in METHODS.items() if one.measured(study) and _any(study, name)]
    if chosen in there:
        return chosen
    return next((one for one in (*FIRST, *there) if one in there), "")


def _any(study: Study, name: str) -> bool:
    values = getattr(study, METHODS[name].needs, None)
    return values is None or bool(np.isfinite(values).any())
