"""Everything a person can do: one row each; menus, shortcuts, the palette and F1 read this table.

Only the standard library: the menus are there before numpy is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hgviz.session import Session

MENUS = ("File", "Edit", "View", "Heads", "Analyse", "Help")

RECENT = "Open recent"

NO_WRITER = {
    "masked": "fills in hidden tokens",
    "classes": "chooses among classes",
    "states": "gives hidden states",
}

Reason = Callable[["Session"], str]


def _always(session: Session) -> str:
    return ""


def _model(session: Session) -> str:
    return "" if session.spec else "Needs a model: open one first"


def _capture(session: Session) -> str:
    return "" if session.capture else "Needs a capture: capture a text first"


def _drawable(session: Session) -> str:
    return "" if session.study or session.sweep else _capture(session)


def _b_to_save(session: Session) -> str:
    if session.beside is None:
        return "Needs a B: choose what to compare with first"
    if session.beside is session.capture or session.beside.path:
        return "B lies in a file already"
    return "" if session.beside.complete else "Needs the whole capture: some layers are missing"


def _whole_capture(session: Session) -> str:
    if session.capture is not None and not session.capture.complete:
        return "Needs the whole capture: some layers are missing"
    return _capture(session)


def _can_capture(session: Session) -> str:
    if not session.checkpoint:
        return "Needs a checkpoint: open one first"
    return "The model is at work: stop it first" if session.at_work else ""


def _capturing(session: Session) -> str:
    return "" if session.at_work else "Nothing is running"


def _working(session: Session) -> str:
    return "" if session.work else "Nothing is running"


def _levels(session: Session) -> str:
    if session.spec is not None and len(session.spec.levels) == 1:
        return "This model has one resolution only"
    return _model(session)


def _corpus(session: Session) -> str:
    many = session.capture is not None and session.capture.items
    return "" if many else "Needs a capture of many texts: capture a file of texts first"


def _slotted(session: Session) -> str:
    if session.capture is None:
        return _capture(session)
    from hgviz.analysis.mixed import has_slots, is_of_tokens

    slots = has_slots(session.capture) or is_of_tokens(session.capture)
    return "" if slots else "This model looks at tokens, not at slots that are mixed of them"


def _slots_themselves(session: Session) -> str:
    if not _slotted(session) and all(one.sequence != "slots" for one in session.spec.levels):
        return "Needs the slots themselves: show them first"
    return _whole_capture(session)


def _next_text(session: Session) -> str:
    return _corpus(session) or ("" if _step(session, 1) else "This is the last text")


def _text_before(session: Session) -> str:
    return _corpus(session) or ("" if _step(session, -1) else "This is the first text")


def _step(session: Session, by: int) -> bool:
    from hgviz.session import step_item

    return step_item(session, by) is not None


def _askable(session: Session) -> str:
    if session.capture is not None and session.capture.spec.goal == "states":
        return "This model gives hidden states, no answer to attribute"
    if session.model is None and not session.checkpoint:
        return _capture(session) or "Needs the model: open its checkpoint first"
    return _whole_capture(session)


def _attributing(session: Session) -> str:
    runs = any(one.key == "attribute" and one.state in ("waiting", "running")
               for one in session.work)  # fmt: skip
    return "" if runs else "Nothing is being attributed"


def _can_write(session: Session) -> str:
    spec = session.spec
    if spec is None or _can_capture(session):
        return _can_capture(session)
    if spec.goal != "next":
        return f"This model does not write: it {NO_WRITER[spec.goal]}"
    side = "target" if spec.two_texts else "source"
    mine = [one for one in spec.layers if spec.levels[one.level].sequence == side]
    if not all(one.causal for one in mine if one.role == "self"):
        return "This model does not write: it reads what comes after, too"
    return ""


def _can_try(session: Session) -> str:
    spec = session.spec
    if spec is None or (session.model is None and not session.checkpoint):
        return "Needs a checkpoint: open one first"
    if spec.two_texts or spec.goal == "states":
        return "This model cannot be scored: it " + (
            "reads two texts" if spec.two_texts else "gives hidden states"
        )
    return ""


def _bundled(session: Session) -> str:
    if not _can_try(session) and not session.spec.labels and session.spec.goal == "classes":
        return "The reviews have labels that this model does not know"
    return _can_try(session)


def _tried(session: Session) -> str:
    return "" if session.trial else "Needs data: choose some on the Prune page first"


def _studied(session: Session) -> str:
    return "" if session.study and session.score else "The heads are not measured yet"


def _traceable(session: Session) -> str:
    if _studied(session) or _tried(session):
        return _studied(session) or _tried(session)
    same = session.trial.examples.digest == session.study.data_digest and not session.study.off
    return "" if same else "The heads were measured on other data: measure them here first"


def _timeable(session: Session) -> str:
    from hgviz.gui.prune.line import curve_of

    one = curve_of(session)
    if one is None or one.removed[-1] < len(one.order):
        return _traceable(session) or "There is no curve yet: draw how many heads can go first"
    return "This curve is timed" if one.times is not None else _traceable(session)


def _modelless(session: Session) -> str:
    waits = session.study and session.model is None and not session.checkpoint
    return "" if waits else "No study waits for its model"


def _removable(session: Session) -> str:
    if not session.checkpoint:
        return "Needs a checkpoint: open one first"
    if session.activation:
        return "Its activation was exchanged: open the checkpoint as it is first"
    return _some_off(session)


def _undo(session: Session) -> str:
    return "" if session.history.past else "Nothing to undo"


def _redo(session: Session) -> str:
    return "" if session.history.future else "Nothing to redo"


def _beside(session: Session) -> str:
    return "" if session.beside else "Needs a B: choose what to compare with first"


def _reportable(session: Session) -> str:
    from hgviz.gui.compare.reporting import why_not

    return why_not(session)


def _trainable(session: Session) -> str:
    if not session.checkpoint:
        return "Needs a checkpoint: open one first"
    return _can_try(session).replace("scored", "trained") or _capture(session)


def _cuttable(session: Session) -> str:
    from hgviz.analysis.texts import ends_of

    if session.capture is None:
        return _capture(session)
    if ends_of(session.capture) is None:
        many = len(session.capture.spec.levels) > 1
        return "This model reads " + ("segments of one length" if many else "no segments")
    if session.stale:
        return "The text was edited: capture it first"
    if not session.checkpoint:
        return "Needs the model: open its checkpoint first"
    return "" if session.cutting else _can_capture(session)  # the newest wins


def _some_off(session: Session) -> str:
    return "" if session.off else "No head is switched off"


def _opened_before(session: Session) -> str:
    return "" if session.recent else "No file was opened yet"


def _sweep(session: Session) -> str:
    return "" if session.sweep else "Needs a study of many runs: open its file or folder first"


def _running(session: Session) -> bool:
    return any(one.key == "run study" and one.state in ("waiting", "running")
               for one in session.work)  # fmt: skip


def _seen(session: Session) -> str:
    return "" if session.sweep else _model(session)


def _runnable(session: Session) -> str:
    if session.sweep is None or _running(session):
        return _sweep(session) or "It runs already"
    return "Everything is done" if session.sweep.complete else ""


def _stoppable(session: Session) -> str:
    return "" if _running(session) else "No study is run from here"


def _failed(session: Session) -> str:
    if session.sweep is None or _running(session):
        return _runnable(session)
    return "" if session.sweep.counts["failed"] else "Nothing failed"


def _cell(session: Session) -> str:
    if session.sweep is None:
        return _sweep(session)
    found = (one.state for one in session.sweep.standings if one.cell.key == session.cell)
    state = next(found, "")
    if not state:
        return "Needs a cell: choose one first"
    return "" if state == "done" else "This cell is not done yet"


def _anything(session: Session) -> str:
    there = session.capture or session.checkpoint or session.study
    return "" if there else "Nothing is open yet"


def _measured(session: Session) -> str:
    return "" if session.facts else "The heads are not measured yet"


class Action(NamedTuple):
    """One thing to do. name: the method of Commands that does it; why_off: "" while it can be done.

    group: a line is drawn in the menu where it changes. keys: in Qt's portable words. under: the
    menu inside that menu which it stands in.
    """

    name: str
    words: str
    icon: str
    keys: tuple[str, ...]
    menu: str
    why_off: Reason = _always
    group: int = 0
    under: str = ""


ACTIONS = (
    Action("open", "Open a file…", "open", ("Ctrl+O",), "File"),
    Action("open_folder", "Open a checkpoint folder…", "open", ("Ctrl+Shift+O",), "File"),
    Action("open_sweep_file", "Open a study file…", "open", (), "File"),
    Action("open_sample", "Open the sample", "hourglass", (), "File"),
    Action("clear_recent", "Clear recent files", "close", (), "File", _opened_before, 0, RECENT),
    Action("open_studied", "Open the model of this study…", "open", (), "File", _modelless),
    Action("exchange", "Open with another activation…", "open", (), "File", _can_capture),
    Action("save", "Save capture…", "save", ("Ctrl+S",), "File", _slots_themselves, 1),
    Action("save_beside", "Save B…", "save", (), "File", _b_to_save, 1),
    Action("save_session", "Save session", "save", ("Ctrl+Shift+S",), "File", _anything, 1),
    Action("save_session_as", "Save session as…", "save", ("Ctrl+Alt+S",), "File", _anything, 1),
    Action("export", "Export figure…", "export", ("Ctrl+E",), "File", _drawable, 1),
    Action("quit", "Quit", "close", ("Ctrl+Q",), "File", _always, 2),
    Action("undo", "Undo", "undo", ("Ctrl+Z",), "Edit", _undo),
    Action("redo", "Redo", "redo", ("Ctrl+Shift+Z",), "Edit", _redo),
    Action("edit_text", "Edit text…", "edit", ("Ctrl+T",), "Edit", _can_capture, 1),
    Action("ids", "Capture ids from a file…", "open", (), "Edit", _can_capture, 1),
    Action("find_text", "Find a text…", "search", ("Ctrl+F",), "Edit", _corpus, 1),
    Action("cut_here", "End a segment here, or not", "edit", ("S",), "Edit", _cuttable, 2),
    Action("cut_words", "Segments: one for each word", "edit", (), "Edit", _cuttable, 2),
    Action("cut_evenly", "Segments: all of one length…", "edit", (), "Edit", _cuttable, 2),
    Action("uncut", "Segments: as the model has them", "undo", (), "Edit", _cuttable, 2),
    Action("copy", "Copy picture of this pane", "copy", ("Ctrl+C",), "Edit", _seen, 3),
    Action("copy_command", "Copy as command", "copy", ("Ctrl+Shift+C",), "Edit", _drawable, 3),
    Action("preferences", "Preferences…", "more", ("Ctrl+,",), "Edit", _always, 4),
    Action("inspect", "Inspect", "eye", ("Ctrl+1",), "View"),
    Action("follow", "Follow", "follow", ("Ctrl+2",), "View", _model),
    Action("prune", "Prune", "prune", ("Ctrl+3",), "View", _model),
    Action("compare", "Compare", "compare", ("Ctrl+4",), "View", _model),
    Action("sweep", "Study", "table", ("Ctrl+5",), "View", _sweep),
    Action("fit", "Fit the map", "fit", ("F",), "View", _capture, 1),
    Action("next_pane", "Go to the next pane", "arrow-right", ("F6",), "View", _always, 1),
    Action("last_pane", "Go to the pane before", "arrow-left", ("Shift+F6",), "View", _always, 1),
    Action("next_text", "Next text", "arrow-right", ("Ctrl+PgDown",), "View", _next_text, 2),
    Action("last_text", "Text before", "arrow-left", ("Ctrl+PgUp",), "View", _text_before, 2),
    Action("tokens", "Slots, or the tokens behind them", "eye", (), "View", _slotted, 2),
    Action("theme", "Switch between light and dark", "moon", ("Ctrl+D",), "View", _always, 3),
    Action("docks", "Show or hide the docks", "table", ("Ctrl+B",), "View", _always, 3),
    Action("reset_layout", "Reset the layout", "undo", (), "View", _always, 3),
    Action("full_screen", "Full screen", "fit", ("F11",), "View", _always, 3),
    Action("look_map", "Look: map", "table", ("Alt+1",), "View", _capture, 4),
    Action("look_links", "Look: links", "follow", ("Alt+2",), "View", _capture, 4),
    Action("look_neurons", "Look: neurons", "table", ("Alt+3",), "View", _capture, 4),
    Action("look_attribution", "Look: attribution", "eye", ("Alt+4",), "View", _capture, 4),
    Action("look_across", "Look: across levels", "hourglass", ("Alt+5",), "View", _capture, 4),
    Action("look_heads", "Look: all heads", "table", ("Alt+6",), "View", _capture, 4),
    Action("next_head", "Next head", "arrow-right", ("L",), "Heads", _model),
    Action("last_head", "Head before", "arrow-left", ("H",), "Heads", _model),
    Action("next_layer", "Next layer", "arrow-down", ("J",), "Heads", _model),
    Action("last_layer", "Layer before", "arrow-up", ("K",), "Heads", _model),
    Action("level_in", "Coarser level", "hourglass", ("D",), "Heads", _levels, 1),
    Action("level_out", "Finer level", "hourglass", ("U",), "Heads", _levels, 1),
    Action("next_query", "Next query", "arrow-right", ("Right",), "Heads", _capture, 2),
    Action("last_query", "Query before", "arrow-left", ("Left",), "Heads", _capture, 2),
    Action("next_key", "Next key", "arrow-down", ("Down",), "Heads", _capture, 2),
    Action("last_key", "Key before", "arrow-up", ("Up",), "Heads", _capture, 2),
    Action("strongest", "Go to the strongest key", "eye", ("Shift+S",), "Heads", _capture, 2),
    Action("switch_head", "Switch this head off or on", "prune", ("X",), "Heads", _model, 3),
    Action("all_on", "Switch all heads on", "eye", (), "Heads", _some_off, 3),
    Action("keep_mask", "Keep this mask", "save", (), "Heads", _model, 3),
    Action("remove_heads", "Remove for good…", "prune", ("Ctrl+R",), "Heads", _removable, 3),
    Action("before_after", "Before and after, all heads on", "eye", ("B",), "Heads", _capture, 3),
    Action("table", "All heads in a table", "table", ("T",), "Heads", _measured, 4),
    Action("capture", "Capture this text", "capture", ("Ctrl+Return",), "Analyse", _can_capture),
    Action("corpus", "Capture a file of texts…", "capture", (), "Analyse", _can_capture),
    Action("write", "Let the model write…", "edit", ("Ctrl+G",), "Analyse", _can_write),
    Action("attribute", "Attribute the answer", "eye", ("Alt+Return",), "Analyse", _askable, 1),
    Action("stop_attributing", "Stop attributing", "stop", (), "Analyse", _attributing, 1),
    Action("stop", "Stop capturing", "stop", ("Ctrl+.",), "Analyse", _capturing, 1),
    Action("jobs", "All jobs…", "clock", ("Ctrl+J",), "Analyse", _working, 1),
    Action("choose_data", "Score on data…", "prune", (), "Analyse", _can_try, 2),
    Action("bundled_data", "Score on the bundled reviews", "prune", (), "Analyse", _bundled, 2),
    Action("measure_heads", "Measure what heads are worth…", "prune", (), "Analyse", _tried, 2),
    Action("trace_curve", "Draw how many heads can go", "prune", (), "Analyse", _traceable, 2),
    Action("time_curve", "Time smaller models along it", "clock", (), "Analyse", _timeable, 2),
    Action("save_study", "Save what was measured…", "save", (), "Analyse", _studied, 2),
    Action("compare_with", "Compare with…", "compare", ("C",), "Analyse", _capture, 3),
    Action("train_beside", "Train B for a while…", "capture", (), "Analyse", _trainable, 3),
    Action("compare_nothing", "Compare with nothing", "close", (), "Analyse", _beside, 3),
    Action("report_sides", "Report on A and B…", "export", (), "Analyse", _reportable, 3),
    Action("run_sweep", "Run this study…", "table", ("F5",), "Analyse", _runnable, 4),
    Action("stop_sweep", "Stop this study", "stop", ("Shift+F5",), "Analyse", _stoppable, 4),
    Action("retry_sweep", "Try cells again that failed…", "redo", (), "Analyse", _failed, 4),
    Action("open_cell", "Open what this cell left", "open", ("Ctrl+F5",), "Analyse", _cell, 4),
    Action("close_sweep", "Close this study", "close", (), "Analyse", _sweep, 4),
    Action("find", "Find a command or head…", "search", ("Ctrl+Shift+P",), "Help"),
    Action("shortcuts", "Keyboard shortcuts", "keyboard", ("F1",), "Help"),
    Action("about", "About hgviz", "info", (), "Help", _always, 1),
)


def by_name(name: str) -> Action:
    """The action of that name; KeyError for none."""
    return {one.name: one for one in ACTIONS}[name]
