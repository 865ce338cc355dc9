"""What the model is asked about, and getting the answer: in the engine lane, with Stop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hgviz import settings, tasks
from hgviz.analysis.attribution import Attribution, Question
from hgviz.core import Capture, Step, Task
from hgviz.gui import sentences
from hgviz.gui.language import tr
from hgviz.gui.views import sayings, verdict, words

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes
    from hgviz.gui.jobs import Working
    from hgviz.models.model import Model
    from hgviz.session import Session

EXPLAIN = "attribute"
MOST = 8  # answers that are offered
SUM = (
    "The tokens add up to {total}; the answer changes by {change}, from {start} to {end}: "
    "{missing} is missing after {steps}."
)
SUM_OFF = (
    "The tokens add up to {total}; the answer changes by {change}, from {start} to {end}: "
    "{missing} is missing after {steps}. More steps make it smaller."
)


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that can be asked about, and what it is called."""

    number: int
    words: str


def asked(session: Session) -> Question | None:
    """What is asked now: what was chosen, where it still fits, else what the model says."""
    capture, chosen = session.capture, session.question
    if capture is None or not capture.complete:
        return None
    mine = capture.query_prompt(session.selection.layer) is capture.main
    position = session.selection.query if mine else None
    if position is not None and position >= len(capture.main):
        position = None
    found = tasks.question_of(capture.spec.goal, capture.logits, capture.main, position)
    if found is None or chosen is None:
        return found
    found = replace(found, steps=chosen.steps, baseline=chosen.baseline)
    known = {one.number for one in choices(capture, found)}
    fits = chosen.position == found.position and chosen.number in known
    return replace(found, number=chosen.number) if fits else found


def choices(capture: Capture, question: Question, model: Model | None = None) -> tuple[Choice, ...]:
    """The classes; or the token that follows and those that the model finds likeliest there."""
    spec, logits = capture.spec, capture.logits
    assert logits is not None
    row = np.asarray(logits if question.position is None else logits[question.position], np.float64)
    shares = np.exp(row - row.max())
    shares /= shares.sum()
    if question.position is None:
        return tuple(
            Choice(number, f"{spec.labels[number]} {sayings.share(float(shares[number]))}")
            for number in range(len(row))
        )
    best = np.argsort(-row, kind="stable")[:MOST].tolist()
    after = question.position + 1
    follows = int(capture.main.ids[after]) if after < len(capture.main) else None
    if spec.goal == "next" and follows is not None and follows not in best:
        best = [follows, *best[:-1]]
    found = []
    for number in best:
        answer = f"{said(capture, number, model)} {sayings.share(float(shares[number]))}"
        if spec.goal == "next" and number == follows:
            answer = tr("{answer}, which follows", answer=answer)
        found.append(Choice(number, answer))
    return tuple(found)


def said(capture: Capture, number: int, model: Model | None = None) -> str:
    """A token by its id, as far as the text, its bytes or the tokenizer of its model tell."""
    there = np.flatnonzero(capture.main.ids == number)
    if len(there):
        return sentences.quoted(sentences.name(capture.main, int(there[0])))
    if capture.spec.vocabulary == 256:
        if number < 128:
            return sentences.quoted(sentences.shown(chr(number)))
        return tr("byte {n}", n=number)
    if text := verdict.spoken(capture, model, number):
        return sentences.quoted(sentences.shown(text))
    return tr("token {n:,}", n=number)


class Explaining:
    """Asks the model, and puts what it finds into the session."""

    def __init__(self, session: Session, lanes: Lanes, working: Working) -> None:
        self.session, self.lanes, self.working = session, lanes, working

    def start(self) -> None:
        """Attribute the answer that is asked about; a job before it is given up."""
        session, question = self.session, asked(self.session)
        capture = session.capture
        if capture is None or question is None:
            return
        task = attributed(session.model, session.checkpoint, session.activation, capture, question)
        self.working.start(
            self.lanes.engine, EXPLAIN, tr("Attributing the answer"), task, self._done,
            on_step=self._part, bound=True,
        )  # fmt: skip

    def stop(self) -> None:
        """What is found so far stays."""
        self.working.stop(EXPLAIN)

    def _part(self, step: Step) -> None:
        if isinstance(step.value, Attribution):
            self.session.put(explained=step.value)

    def _done(self, result: tuple[Model, Attribution]) -> None:
        model, found = result
        same = self.session.spec is not None and self.session.spec.digest == model.spec.digest
        if self.session.model is None and same:
            self.session.put(model=model)
        self.session.put(explained=found)


def attributed(
    model: Model | None, path: str, activation: str, capture: Capture, question: Question
) -> Task[tuple[Model, Attribution]]:
    """Open the model where it is not, and ask it."""
    if model is None:
        device = settings.load().device
        model = yield from tasks.load(path, device, activation=activation or None)
    found = yield from tasks.explain(
        model, capture.prompt, question, capture.target, capture.off, layers=True
    )
    return model, found


def complete_words(found: Attribution) -> str:
    """How far the sum is from what it should be, and of how many steps."""
    said = SUM
    percent = tr("{number} %", number=f"{100 * found.error:.2g}")
    if found.error < 1e-5:
        percent = tr("less than 0.001 %")
    elif found.error >= 1e-3:
        said = SUM_OFF
    total, change = (words.with_sign(one) for one in (found.total, found.change))
    start, end = (words.weight(one, 3) for one in (found.start, found.value))
    return tr(
        said, total=total, change=change, start=start, end=end, missing=percent,
        steps=words.counted(found.question.steps, "step"),
    )  # fmt: skip
