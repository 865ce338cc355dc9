"""The report on A and B from the window: which models it is of, and the task that makes it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hgviz import tasks
from hgviz.core import HgvizError, Off, Step, Task
from hgviz.gui import opening
from hgviz.gui.language import tr
from hgviz.gui.views.words import percent

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.session import Session

KINDS = "To read (*.html);;To print (*.pdf)"
NO_MODELS = {
    "text": "B is another text: a report is of two models",
    "head": "B is another head: a report is of two models",
    "segments": "B differs in its segments: a report is of two models",
}


def why_not(session: Session) -> str:
    """Why there can be no report on what is compared, "" where there can."""
    other, spec = session.other, session.spec
    if session.capture is None or session.beside is None or other is None:
        return "Needs a B: choose what to compare with first"
    if other.kind in NO_MODELS:
        return NO_MODELS[other.kind]
    if not session.checkpoint:
        return "Needs the checkpoint of A: a capture answers nothing new"
    if session.off:
        return "Switch all heads of A on first: a report is of the whole of A"
    if spec is not None and (spec.two_texts or spec.goal == "states"):
        return "There is no report on models of two inputs, or of hidden states"
    return "The model is at work: stop it first" if session.at_work else ""


def told(step: Step) -> str:
    """How far a report is, for the status bar."""
    share = percent(f"{100 * step.done / max(step.total, 1e-9):.0f}")
    return tr("Report on A and B, {share}: {note}", share=share, note=tr(step.note))


@dataclass(frozen=True, slots=True)
class Asked:
    """A report: of checkpoints with activations, A open already or None, on which data, where to.

    text: whose maps are shown, as on screen; "" for one of the data, of images, sounds and
    questions.
    """

    paths: tuple[str, str]
    activations: tuple[str, str]
    model: Model | None
    off: Off
    data: str
    text: str
    device: str
    out: str

    @classmethod
    def of(cls, session: Session, data: str, device: str, out: str) -> Asked:
        """The report on what the session compares."""
        other, a = session.other, session.capture
        assert other is not None and a is not None  # why_not says so
        same = other.kind != "model"
        activation = session.activation if other.kind == "off" else other.activation
        return cls(
            (session.checkpoint, session.checkpoint if same else other.path),
            (session.activation, activation), session.model,
            other.off if other.kind == "off" else frozenset(), data,
            "" if a.main.signal is not None or a.spec.goal == "ends" else a.main.text, device, out,
        )  # fmt: skip

    @property
    def command(self) -> str:
        """The command line that does the same, where A attends as it was trained."""
        words = ["hgviz", "compare", *self.paths, "--data", self.data]
        words += ["--activation", self.activations[1]] if self.activations[1] else []
        words += ["--off", ",".join(map(str, sorted(self.off)))] if self.off else []
        words += ["--text", self.text] if self.text else []
        return shlex.join([*words, "-o", self.out])

    def task(self) -> Task[str]:
        """What makes it; gives the path. Errors: HgvizError."""
        tasks.require_report(self.out)
        a = self.model
        if a is None:
            a = yield from self._load(0)
        same = self.paths[0] == self.paths[1] and self.activations[0] == self.activations[1]
        b = a
        if not same:
            if tasks.kind_of(self.paths[1]) != "checkpoint":
                raise HgvizError(
                    f"{opening.name_of(self.paths[1])} is a capture",
                    "it answers nothing new, and a report is of what two models answer",
                    "Put its checkpoint beside A",
                )
            b = yield from self._load(1)
        found = yield from tasks.laboratory(a, b, self.data, self.text, off=self.off)
        yield Step(1, 1, "writing the report")
        return (yield from tasks.report(found, self.out, self.command))

    def _load(self, side: int) -> Task[Model]:
        activation = self.activations[side] or None
        return (yield from tasks.load(self.paths[side], self.device, activation=activation))
