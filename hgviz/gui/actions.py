"""Everything a person can do: one row each; menus, shortcuts and the palette read this table.

Only the standard library: the menus are there before numpy is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from hgviz.gui import reasons as why

if TYPE_CHECKING:
    from hgviz.session import Session

MENUS = ("File", "Edit", "View", "Heads", "Analyse", "Help")

RECENT = "Open recent"

Reason = Callable[["Session"], str]


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
    why_off: Reason = why.always
    group: int = 0
    under: str = ""


# fmt: off
ACTIONS = (
    Action("open", "Open a file…", "open", ("Ctrl+O",), "File"),
    Action("open_folder", "Open a checkpoint folder…", "open", ("Ctrl+Shift+O",), "File"),
    Action("open_sweep_file", "Open a study file…", "open", ("F4",), "File"),
    Action("open_sample", "Open the sample", "hourglass", ("Alt+O",), "File"),
    Action("clear_recent", "Clear recent files", "close", ("Ctrl+Shift+Del",),
           "File", why.opened_before, 0, RECENT),
    Action("open_studied", "Open the model of this study…", "open", ("Ctrl+Shift+L",),
           "File", why.modelless),
    Action("exchange", "Open with another activation…", "open", ("Alt+X",),
           "File", why.can_capture),
    Action("save", "Save capture…", "save", ("Ctrl+S",), "File", why.slots_themselves, 1),
    Action("save_beside", "Save B…", "save", ("Alt+B",), "File", why.b_to_save, 1),
    Action("save_session", "Save session", "save", ("Ctrl+Shift+S",), "File", why.anything, 1),
    Action("save_session_as", "Save session as…", "save", ("Ctrl+Alt+S",), "File", why.anything, 1),
    Action("export", "Export figure…", "export", ("Ctrl+E",), "File", why.drawable, 1),
    Action("close_window", "Close window", "close", ("Ctrl+W",), "File", why.always, 2),
    Action("quit", "Quit", "close", ("Ctrl+Q",), "File", why.always, 2),
    Action("undo", "Undo", "undo", ("Ctrl+Z",), "Edit", why.undo),
    Action("redo", "Redo", "redo", ("Ctrl+Shift+Z", "Ctrl+Y"), "Edit", why.redo),
    Action("edit_text", "Edit text…", "edit", ("Ctrl+T",), "Edit", why.can_capture, 1),
    Action("ids", "Capture ids from a file…", "open", ("Ctrl+I",), "Edit", why.can_capture, 1),
    Action("find_text", "Find a text…", "search", ("Ctrl+F",), "Edit", why.corpus, 1),
    Action("copy", "Copy picture of this pane", "copy", ("Ctrl+C",), "Edit", why.seen, 3),
    Action("copy_table", "Copy values as a table", "table", ("Ctrl+Alt+C",), "Edit", why.seen, 3),
    Action("copy_command", "Copy as command", "copy", ("Ctrl+Shift+C",), "Edit", why.drawable, 3),
    Action("preferences", "Preferences…", "more", ("Ctrl+,",), "Edit", why.always, 4),
    Action("inspect", "Inspect", "eye", ("Ctrl+1",), "View"),
    Action("follow", "Follow", "follow", ("Ctrl+2",), "View", why.model),
    Action("prune", "Prune", "prune", ("Ctrl+3",), "View", why.model),
    Action("compare", "Compare", "compare", ("Ctrl+4",), "View", why.model),
    Action("sweep", "Study", "table", ("Ctrl+5",), "View", why.sweep),
    Action("fit", "Fit the map", "fit", ("F", "Ctrl+0"), "View", why.capture, 1),
    Action("next_pane", "Go to the next pane", "arrow-right", ("F6",), "View", why.always, 1),
    Action("last_pane", "Go to the pane before", "arrow-left", ("Shift+F6",),
           "View", why.always, 1),
    Action("next_text", "Next text", "arrow-right", ("Ctrl+PgDown",), "View", why.next_text, 2),
    Action("last_text", "Text before", "arrow-left", ("Ctrl+PgUp",), "View", why.text_before, 2),
    Action("tokens", "Slots, or the tokens behind them", "eye", ("Alt+K",), "View", why.slotted, 2),
    Action("theme", "Switch between light and dark", "moon", ("Ctrl+D",), "View", why.always, 3),
    Action("docks", "Show or hide the docks", "table", ("Ctrl+B",), "View", why.docked, 3),
    Action("reset_layout", "Reset the layout", "undo", ("Alt+0",), "View", why.always, 3),
    Action("full_screen", "Full screen", "fit", ("F11",), "View", why.always, 3),
    Action("look_map", "Look: map", "table", ("Alt+1",), "View", why.capture, 4),
    Action("look_links", "Look: links", "follow", ("Alt+2",), "View", why.capture, 4),
    Action("look_neurons", "Look: neurons", "table", ("Alt+3",), "View", why.capture, 4),
    Action("look_attribution", "Look: attribution", "eye", ("Alt+4",), "View", why.capture, 4),
    Action("look_across", "Look: across levels", "hourglass", ("Alt+5",), "View", why.capture, 4),
    Action("look_heads", "Look: all heads", "table", ("Alt+6",), "View", why.capture, 4),
    Action("next_head", "Next head", "arrow-right", ("L",), "Heads", why.model),
    Action("last_head", "Head before", "arrow-left", ("H",), "Heads", why.model),
    Action("next_layer", "Next layer", "arrow-down", ("J",), "Heads", why.model),
    Action("last_layer", "Layer before", "arrow-up", ("K",), "Heads", why.model),
    Action("level_in", "Coarser level", "hourglass", ("D",), "Heads", why.levels, 1),
    Action("level_out", "Finer level", "hourglass", ("U",), "Heads", why.levels, 1),
    Action("next_query", "Next query", "arrow-right", ("Right",), "Heads", why.capture, 2),
    Action("last_query", "Query before", "arrow-left", ("Left",), "Heads", why.capture, 2),
    Action("next_key", "Next key", "arrow-down", ("Down",), "Heads", why.capture, 2),
    Action("last_key", "Key before", "arrow-up", ("Up",), "Heads", why.capture, 2),
    Action("strongest", "Go to the strongest key", "eye", ("Shift+S",), "Heads", why.capture, 2),
    Action("switch_head", "Switch this head off or on", "prune", ("X",), "Heads", why.model, 3),
    Action("all_on", "Switch all heads on", "eye", ("Ctrl+Shift+A",), "Heads", why.some_off, 3),
    Action("keep_mask", "Keep this mask", "save", ("Ctrl+Shift+K",), "Heads", why.model, 3),
    Action("remove_heads", "Remove for good…", "prune", ("Ctrl+R",), "Heads", why.removable, 3),
    Action("before_after", "Before and after, all heads on", "eye", ("B",),
           "Heads", why.capture, 3),
    Action("table", "All heads in a table", "table", ("T",), "Heads", why.measured, 4),
    Action("capture", "Capture this text", "capture", ("Ctrl+Return",), "Analyse", why.can_capture),
    Action("corpus", "Capture a file of texts…", "capture", ("Ctrl+Shift+Return",),
           "Analyse", why.can_capture),
    Action("write", "Let the model write…", "edit", ("Ctrl+G",), "Analyse", why.can_write),
    Action("attribute", "Attribute the answer", "eye", ("Alt+Return",), "Analyse", why.askable, 1),
    Action("stop_attributing", "Stop attributing", "stop", ("Alt+.",),
           "Analyse", why.attributing, 1),
    Action("stop", "Stop capturing", "stop", ("Ctrl+.",), "Analyse", why.capturing, 1),
    Action("jobs", "All jobs…", "clock", ("Ctrl+J",), "Analyse", why.working, 1),
    Action("choose_data", "Score on data…", "prune", ("Ctrl+Shift+D",), "Analyse", why.can_try, 2),
    Action("bundled_data", "Score on the bundled reviews", "prune", ("Ctrl+Shift+B",),
           "Analyse", why.bundled, 2),
    Action("resume_score", "Go on with the score", "prune", ("Ctrl+Shift+R",),
           "Analyse", why.paused, 2),
    Action("measure_heads", "Measure what heads are worth…", "prune", ("Ctrl+Shift+M",),
           "Analyse", why.tried, 2),
    Action("trace_curve", "Draw how many heads can go", "prune", ("Ctrl+Shift+H",),
           "Analyse", why.traceable, 2),
    Action("save_study", "Save what was measured…", "save", ("Alt+S",), "Analyse", why.studied, 2),
    Action("compare_with", "Compare with…", "compare", ("C",), "Analyse", why.capture, 3),
    Action("compare_nothing", "Compare with nothing", "close", ("Alt+C",),
           "Analyse", why.beside, 3),
    Action("report_sides", "Copy the command of a report on A and B", "copy", ("Alt+R",),
           "Analyse", why.reportable, 3),
    Action("run_sweep", "Copy the command that runs this study", "copy", ("F5",),
           "Analyse", why.runnable, 4),
    Action("open_cell", "Open what this cell left", "open", ("Ctrl+F5",), "Analyse", why.cell, 4),
    Action("close_sweep", "Close this study", "close", ("Shift+F4",), "Analyse", why.sweep, 4),
    Action("find", "Find a command or head…", "search", ("Ctrl+Shift+P", "F1", "Ctrl+?"), "Help"),
    Action("explain", "What am I looking at?", "info", ("Shift+F1",), "Help", why.always, 1),
    Action("pages", "All pages of help", "info", ("Ctrl+Shift+F1",), "Help", why.always, 1),
    Action("guide", "Guide", "info", ("Ctrl+Shift+G",), "Help", why.always, 1),
    Action("log", "Show the log folder", "open", ("Ctrl+Shift+J",), "Help", why.always, 2),
    Action("about", "About hgviz", "info", ("Ctrl+Shift+I",), "Help", why.always, 2),
)
# fmt: on


def by_name(name: str) -> Action:
    """The action of that name; KeyError for none."""
    return {one.name: one for one in ACTIONS}[name]
