"""Why an action cannot be done now: one function each, "" while it can be.

Only the standard library: the menus are there before numpy is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.session import Session

NO_WRITER = {
    "masked": "This model does not write: it fills in hidden tokens",
    "classes": "This model does not write: it chooses among classes",
    "states": "This model does not write: it gives hidden states",
}

NO_MODELS = {
    "text": "B is another text: a report compares two models",
    "head": "B is another head: a report compares two models",
}


def always(session: Session) -> str:
    return ""


def docked(session: Session) -> str:
    return "" if session.mode == "inspect" else "The docks are on the page Inspect"


def model(session: Session) -> str:
    return "" if session.spec else "Needs a model: open one first"


def capture(session: Session) -> str:
    return "" if session.capture else "Needs a capture: capture a text first"


def drawable(session: Session) -> str:
    return "" if session.study or session.sweep else capture(session)


def b_to_save(session: Session) -> str:
    if session.beside is None:
        return "Needs a B: choose what to compare with first"
    if session.beside is session.capture or session.beside.path:
        return "B lies in a file already"
    return "" if session.beside.complete else "Needs the whole capture: some layers are missing"


def whole_capture(session: Session) -> str:
    if session.capture is not None and not session.capture.complete:
        return "Needs the whole capture: some layers are missing"
    return capture(session)


def can_capture(session: Session) -> str:
    if not session.checkpoint:
        return "Needs a checkpoint: open one first"
    return "The model is at work: stop it first" if session.at_work else ""


def capturing(session: Session) -> str:
    return "" if session.at_work else "Nothing is running"


def working(session: Session) -> str:
    return "" if session.work else "Nothing is running"


def levels(session: Session) -> str:
    if session.spec is not None and len(session.spec.levels) == 1:
        return "This model has one resolution only"
    return model(session)


def corpus(session: Session) -> str:
    many = session.capture is not None and session.capture.items
    return "" if many else "Needs a capture of many texts: capture a file of texts first"


def slotted(session: Session) -> str:
    if session.capture is None:
        return capture(session)
    from hgviz.analysis.mixed import has_slots, is_of_tokens

    slots = has_slots(session.capture) or is_of_tokens(session.capture)
    return "" if slots else "This model looks at tokens, not at slots that are mixed of them"


def slots_themselves(session: Session) -> str:
    if not slotted(session) and all(one.sequence != "slots" for one in session.spec.levels):
        return "Needs the slots themselves: show them first"
    return whole_capture(session)


def next_text(session: Session) -> str:
    return corpus(session) or ("" if step(session, 1) else "This is the last text")


def text_before(session: Session) -> str:
    return corpus(session) or ("" if step(session, -1) else "This is the first text")


def step(session: Session, by: int) -> bool:
    from hgviz.session import step_item

    return step_item(session, by) is not None


def askable(session: Session) -> str:
    if session.capture is not None and session.capture.spec.goal == "states":
        return "This model gives hidden states, no answer to attribute"
    if session.capture is not None and session.capture.streaming.heads:
        return "Heads stream in this capture: only answers of heads that see all are attributed"
    if session.model is None and not session.checkpoint:
        return capture(session) or "Needs the model: open its checkpoint first"
    return whole_capture(session)


def attributing(session: Session) -> str:
    runs = any(one.key == "attribute" and one.state in ("waiting", "running")
               for one in session.work)  # fmt: skip
    return "" if runs else "Nothing is being attributed"


def can_write(session: Session) -> str:
    spec = session.spec
    if spec is None or can_capture(session):
        return can_capture(session)
    if spec.goal != "next":
        return NO_WRITER[spec.goal]
    side = "target" if spec.two_texts else "source"
    mine = [one for one in spec.layers if spec.levels[one.level].sequence == side]
    if not all(one.causal for one in mine if one.role == "self"):
        return "This model does not write: it reads what comes after, too"
    return ""


def can_try(session: Session) -> str:
    spec = session.spec
    if spec is None or (session.model is None and not session.checkpoint):
        return "Needs a checkpoint: open one first"
    if not spec.answers:
        return "This model cannot be scored: it reads two texts"
    return ""


def bundled(session: Session) -> str:
    if said := can_try(session):
        return said
    if session.spec.modality != "text" or session.spec.goal in ("tags", "ends"):
        return "The reviews are no data for this model"
    if not session.spec.labels and session.spec.goal == "classes":
        return "The reviews have labels that this model does not know"
    return ""


def tried(session: Session) -> str:
    return "" if session.trial else "Needs data: choose some on the Prune page first"


def paused(session: Session) -> str:
    stopped = session.trial is not None and session.trial.stopped
    return "" if stopped else "No score was stopped"


def studied(session: Session) -> str:
    return "" if session.study and session.score else "The heads are not measured yet"


def traceable(session: Session) -> str:
    if studied(session) or tried(session):
        return studied(session) or tried(session)
    same = session.trial.examples.digest == session.study.data_digest and not session.study.off
    return "" if same else "The heads were measured on other data: measure them here first"


def modelless(session: Session) -> str:
    waits = session.study and session.model is None and not session.checkpoint
    return "" if waits else "No study waits for its model"


def removable(session: Session) -> str:
    if not session.checkpoint:
        return "Needs a checkpoint: open one first"
    if session.activation:
        return "Its activation was exchanged: open the checkpoint as it is first"
    return some_off(session)


def undo(session: Session) -> str:
    return "" if session.history.past else "Nothing to undo"


def redo(session: Session) -> str:
    return "" if session.history.future else "Nothing to redo"


def beside(session: Session) -> str:
    return "" if session.beside else "Needs a B: choose what to compare with first"


def reportable(session: Session) -> str:
    """Why there is no report on A and B, "" where there is one."""
    other, spec = session.other, session.spec
    if session.capture is None or session.beside is None or other is None:
        return "Needs a B: choose what to compare with first"
    if other.kind in NO_MODELS:
        return NO_MODELS[other.kind]
    if other.kind == "model" and session.beside.path == other.path:
        return "B is a capture: a report compares two models"
    if not session.checkpoint:
        return "Needs the checkpoint of A: open it first"
    if session.activation:
        return "Its activation was exchanged: open the checkpoint as it is first"
    if session.off:
        return "Switch all heads of A on first: a report compares the whole of A"
    if spec is not None and (spec.two_texts or spec.goal == "states"):
        return "There is no report on models of two inputs, or of hidden states"
    return "" if session.data else "Needs data: choose some on the Prune page first"


def some_off(session: Session) -> str:
    return "" if session.off else "No head is switched off"


def opened_before(session: Session) -> str:
    return "" if session.recent else "No file was opened yet"


def sweep(session: Session) -> str:
    return "" if session.sweep else "Needs a study of many runs: open its file or folder first"


def seen(session: Session) -> str:
    return "" if session.sweep else model(session)


def runnable(session: Session) -> str:
    if session.sweep is None:
        return sweep(session)
    return "Everything is done" if session.sweep.complete else ""


def cell(session: Session) -> str:
    if session.sweep is None:
        return sweep(session)
    found = (one.state for one in session.sweep.standings if one.cell.key == session.cell)
    state = next(found, "")
    if not state:
        return "Needs a cell: choose one first"
    return "" if state == "done" else "This cell is not done yet"


def anything(session: Session) -> str:
    there = session.capture or session.checkpoint or session.study
    return "" if there else "Nothing is open yet"


def measured(session: Session) -> str:
    return "" if session.facts else "The heads are not measured yet"


def reads_pairs(model: Model) -> bool:
    """Whether a model reads two texts as one input."""
    spec = model.spec
    return getattr(model.config, "segments", 0) > 1 or spec.goal == "ends" or spec.reads_twice


def reads_text(model: Model) -> bool:
    """Whether a model reads texts: without a tokenizer it reads ids."""
    return model.spec.modality == "text" and type(model.tokenizer).__name__ != "Bare"
