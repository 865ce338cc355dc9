"""Everything a person can do, one row each, and why it cannot be done now."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.session import Session

# --- reasons --------------------------------------------------------------------------------------


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
    from hgviz.analysis.composition import has_slots, is_of_tokens

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
    from hgviz.session.navigation import step_item

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


def reads_text(model: Model) -> bool:
    """Whether a model reads texts: without a tokenizer it reads ids."""
    return model.spec.modality == "text" and type(model.tokenizer).__name__ != "Bare"


# --- actions --------------------------------------------------------------------------------------


MENUS = ("File", "Edit", "View", "Heads", "Analyse", "Help")

RECENT = "Open recent"

Reason = Callable[["Session"], str]


class Action(NamedTuple):
    """One thing to do. name: what Commands.method finds it by; why_off: "" while it can be done.

    group: a line is drawn in the menu where it changes. keys: in Qt's portable words. under: the
    menu inside that menu which it stands in.
    """

    name: str
    words: str
    icon: str
    keys: tuple[str, ...]
    menu: str
    why_off: Reason = always
    group: int = 0
    under: str = ""


# fmt: off
ACTIONS = (
    Action("open", "Open a file…", "open", ("Ctrl+O",), "File"),
    Action("open_folder", "Open a checkpoint folder…", "open", ("Ctrl+Shift+O",), "File"),
    Action("open_sweep_file", "Open a study file…", "open", ("F4",), "File"),
    Action("open_sample", "Open the sample", "hourglass", ("Alt+O",), "File"),
    Action("clear_recent", "Clear recent files", "close", ("Ctrl+Shift+Del",),
           "File", opened_before, 0, RECENT),
    Action("open_studied", "Open the model of this study…", "open", ("Ctrl+Shift+L",),
           "File", modelless),
    Action("exchange", "Open with another activation…", "open", ("Alt+X",),
           "File", can_capture),
    Action("save", "Save capture…", "save", ("Ctrl+S",), "File", slots_themselves, 1),
    Action("save_beside", "Save B…", "save", ("Alt+B",), "File", b_to_save, 1),
    Action("save_session", "Save session", "save", ("Ctrl+Shift+S",), "File", anything, 1),
    Action("save_session_as", "Save session as…", "save", ("Ctrl+Alt+S",), "File", anything, 1),
    Action("export", "Export figure…", "export", ("Ctrl+E",), "File", drawable, 1),
    Action("close_window", "Close window", "close", ("Ctrl+W",), "File", always, 2),
    Action("quit", "Quit", "close", ("Ctrl+Q",), "File", always, 2),
    Action("undo", "Undo", "undo", ("Ctrl+Z",), "Edit", undo),
    Action("redo", "Redo", "redo", ("Ctrl+Shift+Z", "Ctrl+Y"), "Edit", redo),
    Action("edit_text", "Edit text…", "edit", ("Ctrl+T",), "Edit", can_capture, 1),
    Action("ids", "Capture ids from a file…", "open", ("Ctrl+I",), "Edit", can_capture, 1),
    Action("find_text", "Find a text…", "search", ("Ctrl+F",), "Edit", corpus, 1),
    Action("copy", "Copy picture of this pane", "copy", ("Ctrl+C",), "Edit", seen, 3),
    Action("copy_table", "Copy values as a table", "table", ("Ctrl+Alt+C",), "Edit", seen, 3),
    Action("copy_command", "Copy as command", "copy", ("Ctrl+Shift+C",), "Edit", drawable, 3),
    Action("preferences", "Preferences…", "more", ("Ctrl+,",), "Edit", always, 4),
    Action("inspect", "Inspect", "eye", ("Ctrl+1",), "View"),
    Action("follow", "Follow", "follow", ("Ctrl+2",), "View", model),
    Action("prune", "Prune", "prune", ("Ctrl+3",), "View", model),
    Action("compare", "Compare", "compare", ("Ctrl+4",), "View", model),
    Action("sweep", "Study", "table", ("Ctrl+5",), "View", sweep),
    Action("fit", "Fit the map", "fit", ("F", "Ctrl+0"), "View", capture, 1),
    Action("next_pane", "Go to the next pane", "arrow-right", ("F6",), "View", always, 1),
    Action("last_pane", "Go to the pane before", "arrow-left", ("Shift+F6",),
           "View", always, 1),
    Action("next_text", "Next text", "arrow-right", ("Ctrl+PgDown",), "View", next_text, 2),
    Action("last_text", "Text before", "arrow-left", ("Ctrl+PgUp",), "View", text_before, 2),
    Action("tokens", "Slots, or the tokens behind them", "eye", ("Alt+K",), "View", slotted, 2),
    Action("theme", "Switch between light and dark", "moon", ("Ctrl+D",), "View", always, 3),
    Action("docks", "Show or hide the docks", "table", ("Ctrl+B",), "View", docked, 3),
    Action("reset_layout", "Reset the layout", "undo", ("Alt+0",), "View", always, 3),
    Action("full_screen", "Full screen", "fit", ("F11",), "View", always, 3),
    Action("look_map", "Look: map", "table", ("Alt+1",), "View", capture, 4),
    Action("look_links", "Look: links", "follow", ("Alt+2",), "View", capture, 4),
    Action("look_neurons", "Look: neurons", "table", ("Alt+3",), "View", capture, 4),
    Action("look_attribution", "Look: attribution", "eye", ("Alt+4",), "View", capture, 4),
    Action("look_across", "Look: across levels", "hourglass", ("Alt+5",), "View", capture, 4),
    Action("look_heads", "Look: all heads", "table", ("Alt+6",), "View", capture, 4),
    Action("next_head", "Next head", "arrow-right", ("L",), "Heads", model),
    Action("last_head", "Head before", "arrow-left", ("H",), "Heads", model),
    Action("next_layer", "Next layer", "arrow-down", ("J",), "Heads", model),
    Action("last_layer", "Layer before", "arrow-up", ("K",), "Heads", model),
    Action("level_in", "Coarser level", "hourglass", ("D",), "Heads", levels, 1),
    Action("level_out", "Finer level", "hourglass", ("U",), "Heads", levels, 1),
    Action("next_query", "Next query", "arrow-right", ("Right",), "Heads", capture, 2),
    Action("last_query", "Query before", "arrow-left", ("Left",), "Heads", capture, 2),
    Action("next_key", "Next key", "arrow-down", ("Down",), "Heads", capture, 2),
    Action("last_key", "Key before", "arrow-up", ("Up",), "Heads", capture, 2),
    Action("strongest", "Go to the strongest key", "eye", ("Shift+S",), "Heads", capture, 2),
    Action("switch_head", "Switch this head off or on", "prune", ("X",), "Heads", model, 3),
    Action("all_on", "Switch all heads on", "eye", ("Ctrl+Shift+A",), "Heads", some_off, 3),
    Action("keep_mask", "Keep this mask", "save", ("Ctrl+Shift+K",), "Heads", model, 3),
    Action("remove_heads", "Remove for good…", "prune", ("Ctrl+R",), "Heads", removable, 3),
    Action("before_after", "Before and after, all heads on", "eye", ("B",),
           "Heads", capture, 3),
    Action("table", "All heads in a table", "table", ("T",), "Heads", measured, 4),
    Action("capture", "Capture this text", "capture", ("Ctrl+Return",), "Analyse", can_capture),
    Action("corpus", "Capture a file of texts…", "capture", ("Ctrl+Shift+Return",),
           "Analyse", can_capture),
    Action("write", "Let the model write…", "edit", ("Ctrl+G",), "Analyse", can_write),
    Action("attribute", "Attribute the answer", "eye", ("Alt+Return",), "Analyse", askable, 1),
    Action("stop_attributing", "Stop attributing", "stop", ("Alt+.",),
           "Analyse", attributing, 1),
    Action("stop", "Stop capturing", "stop", ("Ctrl+.",), "Analyse", capturing, 1),
    Action("jobs", "All jobs…", "clock", ("Ctrl+J",), "Analyse", working, 1),
    Action("choose_data", "Score on data…", "prune", ("Ctrl+Shift+D",), "Analyse", can_try, 2),
    Action("bundled_data", "Score on the bundled reviews", "prune", ("Ctrl+Shift+B",),
           "Analyse", bundled, 2),
    Action("resume_score", "Go on with the score", "prune", ("Ctrl+Shift+R",),
           "Analyse", paused, 2),
    Action("measure_heads", "Measure what heads are worth…", "prune", ("Ctrl+Shift+M",),
           "Analyse", tried, 2),
    Action("trace_curve", "Draw how many heads can go", "prune", ("Ctrl+Shift+H",),
           "Analyse", traceable, 2),
    Action("save_study", "Save what was measured…", "save", ("Alt+S",), "Analyse", studied, 2),
    Action("compare_with", "Compare with…", "compare", ("C",), "Analyse", capture, 3),
    Action("compare_nothing", "Compare with nothing", "close", ("Alt+C",),
           "Analyse", beside, 3),
    Action("report_sides", "Copy the command of a report on A and B", "copy", ("Alt+R",),
           "Analyse", reportable, 3),
    Action("run_sweep", "Copy the command that runs this study", "copy", ("F5",),
           "Analyse", runnable, 4),
    Action("open_cell", "Open what this cell left", "open", ("Ctrl+F5",), "Analyse", cell, 4),
    Action("close_sweep", "Close this study", "close", ("Shift+F4",), "Analyse", sweep, 4),
    Action("find", "Find a command or head…", "search", ("Ctrl+Shift+P", "F1", "Ctrl+?"), "Help"),
    Action("explain", "What am I looking at?", "info", ("Shift+F1",), "Help", always, 1),
    Action("pages", "All pages of help", "info", ("Ctrl+Shift+F1",), "Help", always, 1),
    Action("guide", "Guide", "info", ("Ctrl+Shift+G",), "Help", always, 1),
    Action("log", "Show the log folder", "open", ("Ctrl+Shift+J",), "Help", always, 2),
    Action("about", "About hgviz", "info", ("Ctrl+Shift+I",), "Help", always, 2),
)
# fmt: on


def by_name(name: str) -> Action:
    """The action of that name; KeyError for none."""
    return {one.name: one for one in ACTIONS}[name]
