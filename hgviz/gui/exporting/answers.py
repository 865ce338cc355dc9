"""Where an answer comes from, as what is open knows it: figures that no file is drawn of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from hgviz import tasks
from hgviz.analysis.attribution import Attribution
from hgviz.core import Capture, Display, Selection, Step, Task
from hgviz.tasks.attributing import Method

if TYPE_CHECKING:
    from hgviz.figures import Panel, Spec
    from hgviz.models.model import Model
    from hgviz.session import Session

NO_ANSWER = "attribute the answer first"
LABELS: dict[str, str] = {
    "tokens": "Where an answer comes from: tokens",
    "layers": "Where an answer comes from: layers",
    "heads": "Where an answer comes from: heads",
    "attention": "Where an answer comes from: keys of a head",
}


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """What a model was asked about a text and what was found; says: the token asked about; model
    and checkpoint: what was asked, and where it lies; activation: what its own was exchanged for.
    """

    found: Attribution
    capture: Capture
    says: str
    model: Model | None
    checkpoint: str
    activation: str = ""

    def panel(self, spec: Spec) -> Task[Panel]:
        """A figure of it made ready; spec.methods: which of LABELS. Errors: HgvizError."""
        method = cast(Method, spec.methods[0])
        chosen, beside = spec.selection, None
        yield Step(0, 1, "reading the answer")
        if method == "attention":
            beside = yield from tasks.head_beside(
                self.found, self.capture, chosen.head_id, chosen.query
            )
        given = tasks.given_words(self.model, self.capture)
        if given and self.activation:
            given = *given, "--activation", self.activation
        return tasks.attribution_panel(
            spec, self.found, self.capture, method, says=self.says, beside=beside,
            query=chosen.query if beside is not None else None, given=given,
            model=self.checkpoint,
        )  # fmt: skip

    def command(self, spec: Spec, out: str) -> Task[str]:
        """The command that asks again, of the model where it lies. Errors: HgvizError."""
        from hgviz.figures.provenance import MISSING, asking

        ready = yield from self.panel(spec)
        return asking(ready, [self.checkpoint or MISSING["answer"][0]], Path(out).name)


def answered(session: Session) -> Answered | None:
    """What was found of the text on screen; None where nobody asked."""
    from hgviz.gui.attribution_parts.asking import said

    capture, found = session.capture, session.explained
    if capture is None or found is None or not found.of(capture):
        return None
    asked = found.question
    says = "" if asked.position is None else said(capture, asked.number).strip("“”")
    if says and session.model is not None:  # in the words that the command has
        says = tasks.said_by(session.model, asked.number)
    return Answered(found, capture, says, session.model, session.checkpoint, session.activation)


def answers(of: Answered, selection: Selection) -> tuple[Spec, ...]:
    """A figure for each way to look at an answer that was walked far enough."""
    from hgviz.figures import Spec

    there = {"layers": of.found.layers is not None, "attention": of.found.slopes is not None}
    return tuple(
        Spec("attribution", selection, Display(scale="linear"), methods=(one,))
        for one in get_args(Method)
        if there.get(one, True)
    )


__all__ = ["LABELS", "NO_ANSWER", "Answered", "answered", "answers"]
