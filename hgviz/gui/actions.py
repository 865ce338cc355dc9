"""Everything a person can do in the window: one row each, with what it needs."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.session import Session


class Need(NamedTuple):
    """A condition of an action, and the sentence that says it is not met.

    The needs of an action are asked in their order: a later one may rely on those before it.
    """

    is_met: Callable[[Session], object]
    otherwise: str


MODEL = Need(attrgetter("spec"), "Open a model first")
CAPTURE = Need(attrgetter("capture"), "Run a model on a text first")
COMPLETE = Need(
    attrgetter("capture.complete"), "The capture is incomplete: some layers are missing"
)
CHECKPOINT = Need(attrgetter("checkpoint"), "Open a checkpoint first")
ANYTHING = Need(lambda s: s.capture or s.checkpoint or s.study, "Nothing is open yet")
PAGE = Need(lambda s: s.sweep or s.spec, MODEL.otherwise)
IDLE = Need(lambda s: not s.at_work, "The model is running: stop it first")
LOADABLE = Need(lambda s: s.model or s.checkpoint, "Open the checkpoint of this capture first")
OWN_ACTIVATION = Need(
    lambda s: not s.activation, "The activation was replaced: open the original checkpoint first"
)
TEXTS = Need(lambda s: s.capture and s.capture.items, "Run a model on a text file first")
COMPARISON = Need(attrgetter("capture_b"), "Choose what to compare with first")
STUDY = Need(attrgetter("sweep"), "Open a study of many runs first")
DATA = Need(attrgetter("trial"), "Choose data on the Prune page first")
IMPORTANCE = Need(lambda s: s.study and s.score, "Compute head importance first")
HEADS_OFF = Need(attrgetter("off"), "No head is switched off")
LEVELS = Need(lambda s: len(s.spec.levels) > 1, "This model has only one resolution")
RUNNING = Need(attrgetter("at_work"), "Nothing is running")
ANSWERS = Need(attrgetter("spec.answers"), "Models that read two texts cannot be evaluated")


def _generates(session: Session) -> bool:
    spec = session.spec
    if spec is None or spec.goal != "next":
        return spec is None
    side = "target" if spec.two_texts else "source"
    return all(
        layer.causal
        for layer in spec.layers
        if layer.role == "self" and spec.levels[layer.level].sequence == side
    )


def _has_slots(session: Session) -> bool:
    from hgviz.analysis.composition import has_slots, is_of_tokens

    return has_slots(session.capture) or is_of_tokens(session.capture)


def _shows_slots(session: Session) -> bool:
    slots = any(level.sequence == "slots" for level in session.spec.levels)
    return slots or not _has_slots(session)


def _reads_reviews(session: Session) -> bool:
    spec = session.spec
    if spec.modality != "text" or spec.goal in ("tags", "ends"):
        return False
    return bool(spec.labels) or spec.goal != "classes"


def _importance_is_of_data(session: Session) -> bool:
    study = session.study
    return session.trial.examples.digest == study.data_digest and not study.off


FIGURE = Need(lambda s: s.study or s.sweep or s.capture, CAPTURE.otherwise)
SLOTS = Need(_has_slots, "This model has no slots")
EVALUABLE = (MODEL, LOADABLE, ANSWERS)
REPORTABLE = (
    CAPTURE,
    COMPARISON,
    Need(attrgetter("comparison"), COMPARISON.otherwise),
    Need(lambda s: s.comparison.kind not in ("text", "head"), "A report compares two models"),
    Need(
        lambda s: s.comparison.kind != "model" or s.capture_b.path != s.comparison.path,
        "B is a saved capture: a report compares two models",
    ),
    CHECKPOINT,
    OWN_ACTIVATION,
    Need(lambda s: not s.off, "Switch all heads on first: a report compares full models"),
    Need(
        lambda s: s.spec is None or not (s.spec.two_texts or s.spec.goal == "states"),
        "Reports do not support models with two texts or hidden states",
    ),
    Need(attrgetter("data"), DATA.otherwise),
)


def reads_text(model: Model) -> bool:
    """Whether a model reads texts: without a tokenizer it reads ids."""
    return model.spec.modality == "text" and type(model.tokenizer).__name__ != "Bare"


RECENT = "Open recent"


class Action(NamedTuple):
    """One thing to do."""

    name: str  # what Commands.method finds it by
    words: str
    icon: str
    keys: tuple[str, ...]  # in Qt's portable words
    needs: tuple[Need, ...] = ()
    group: int = 0  # a line is drawn in the menu where it changes
    submenu: str = ""  # the menu inside its menu which has it
    menu: str = ""  # filled in from MENU_ACTIONS

    def why_off(self, session: Session) -> str:
        """Why it cannot be done now, "" where it can."""
        missing = (need.otherwise for need in self.needs if not need.is_met(session))
        return next(missing, "")


# fmt: off
MENU_ACTIONS: dict[str, tuple[Action, ...]] = {  # by menu
    "File": (
        Action("open", "Open file…", "open", ("Ctrl+O",)),
        Action("open_folder", "Open checkpoint folder…", "open", ("Ctrl+Shift+O",)),
        Action("open_sweep_file", "Open study file…", "open", ("F4",)),
        Action("open_sample", "Open sample model", "hourglass", ("Alt+O",)),
        Action("clear_recent", "Clear recent files", "close", ("Ctrl+Shift+Del",),
               (Need(attrgetter("recent"), "No recent files"),), 0, RECENT),
        Action("exchange", "Replace activation function…", "open", ("Alt+X",), (CHECKPOINT, IDLE)),
        Action("save", "Save capture…", "save", ("Ctrl+S",),
               (CAPTURE, Need(_shows_slots, "Show slots first: captures store slots"), COMPLETE),
               1),
        Action("save_beside", "Save comparison capture…", "save", ("Alt+B",),
               (COMPARISON,
                Need(lambda s: s.capture_b is not s.capture and not s.capture_b.path,
                     "The comparison is already saved"),
                Need(attrgetter("capture_b.complete"), COMPLETE.otherwise)), 1),
        Action("save_session", "Save session", "save", ("Ctrl+Shift+S",), (ANYTHING,), 1),
        Action("save_session_as", "Save session as…", "save", ("Ctrl+Alt+S",), (ANYTHING,), 1),
        Action("export", "Export figure…", "export", ("Ctrl+E",), (FIGURE,), 1),
        Action("close_window", "Close window", "close", ("Ctrl+W",), (), 2),
        Action("quit", "Quit", "close", ("Ctrl+Q",), (), 2),
    ),
    "Edit": (
        Action("undo", "Undo", "undo", ("Ctrl+Z",), (Need(attrgetter("undo"), "Nothing to undo"),)),
        Action("redo", "Redo", "redo", ("Ctrl+Shift+Z", "Ctrl+Y"),
               (Need(attrgetter("redo"), "Nothing to redo"),)),
        Action("edit_text", "Edit text…", "edit", ("Ctrl+T",), (CHECKPOINT, IDLE), 1),
        Action("ids", "Run token IDs from file…", "open", ("Ctrl+I",), (CHECKPOINT, IDLE), 1),
        Action("find_text", "Find text…", "search", ("Ctrl+F",), (TEXTS,), 1),
        Action("copy", "Copy picture of this pane", "copy", ("Ctrl+C",), (PAGE,), 3),
        Action("copy_table", "Copy values as a table", "table", ("Ctrl+Alt+C",), (PAGE,), 3),
        Action("copy_command", "Copy as command", "copy", ("Ctrl+Shift+C",), (FIGURE,), 3),
        Action("preferences", "Preferences…", "more", ("Ctrl+,",), (), 4),
    ),
    "View": (
        Action("inspect", "Inspect", "eye", ("Ctrl+1",)),
        Action("follow", "Follow", "follow", ("Ctrl+2",), (MODEL,)),
        Action("prune", "Prune", "prune", ("Ctrl+3",), (MODEL,)),
        Action("compare", "Compare", "compare", ("Ctrl+4",), (MODEL,)),
        Action("sweep", "Study", "table", ("Ctrl+5",), (STUDY,)),
        Action("fit", "Fit map to pane", "fit", ("F", "Ctrl+0"), (CAPTURE,), 1),
        Action("next_pane", "Next pane", "arrow-right", ("F6",), (), 1),
        Action("last_pane", "Previous pane", "arrow-left", ("Shift+F6",), (), 1),
        Action("next_text", "Next text", "arrow-right", ("Ctrl+PgDown",),
               (TEXTS, Need(lambda s: s.item(1) is not None, "This is the last text")), 2),
        Action("last_text", "Previous text", "arrow-left", ("Ctrl+PgUp",),
               (TEXTS, Need(lambda s: s.item(-1) is not None, "This is the first text")), 2),
        Action("tokens", "Show slots / tokens", "eye", ("Alt+K",), (CAPTURE, SLOTS), 2),
        Action("theme", "Toggle dark mode", "moon", ("Ctrl+D",), (), 3),
        Action("larger", "Increase interface scale", "fit", ("Ctrl++", "Ctrl+="), (), 3),
        Action("smaller", "Decrease interface scale", "fit", ("Ctrl+-",), (), 3),
        Action("docks", "Show side panels", "table", ("Ctrl+B",),
               (Need(lambda s: s.mode == "inspect", "Side panels belong to the Inspect page"),), 3),
        Action("reset_layout", "Reset layout", "undo", ("Alt+0",), (), 3),
        Action("full_screen", "Full screen", "fit", ("F11",), (), 3),
        Action("look_map", "Show map", "table", ("Alt+1",), (CAPTURE,), 4),
        Action("look_links", "Show links", "follow", ("Alt+2",), (CAPTURE,), 4),
        Action("look_neurons", "Show neurons", "table", ("Alt+3",), (CAPTURE,), 4),
        Action("look_attribution", "Show attribution", "eye", ("Alt+4",), (CAPTURE,), 4),
        Action("look_across", "Show attention rollout", "hourglass", ("Alt+5",), (CAPTURE,), 4),
        Action("look_heads", "Show all heads", "table", ("Alt+6",), (CAPTURE,), 4),
    ),
    "Heads": (
        Action("next_head", "Next head", "arrow-right", ("L",), (MODEL,)),
        Action("last_head", "Previous head", "arrow-left", ("H",), (MODEL,)),
        Action("next_layer", "Next layer", "arrow-down", ("J",), (MODEL,)),
        Action("last_layer", "Previous layer", "arrow-up", ("K",), (MODEL,)),
        Action("level_in", "Coarser level", "hourglass", ("D",), (MODEL, LEVELS), 1),
        Action("level_out", "Finer level", "hourglass", ("U",), (MODEL, LEVELS), 1),
        Action("next_query", "Next query", "arrow-right", ("Right",), (CAPTURE,), 2),
        Action("last_query", "Previous query", "arrow-left", ("Left",), (CAPTURE,), 2),
        Action("next_key", "Next key", "arrow-down", ("Down",), (CAPTURE,), 2),
        Action("last_key", "Previous key", "arrow-up", ("Up",), (CAPTURE,), 2),
        Action("strongest", "Go to strongest key", "eye", ("Shift+S",), (CAPTURE,), 2),
        Action("switch_head", "Switch head off or on", "prune", ("X",), (MODEL,), 3),
        Action("all_on", "Switch all heads on", "eye", ("Ctrl+Shift+A",), (HEADS_OFF,), 3),
        Action("keep_mask", "Save mask", "save", ("Ctrl+Shift+K",), (MODEL,), 3),
        Action("save_mask", "Save mask file…", "save", ("Ctrl+Alt+K",), (MODEL, HEADS_OFF), 3),
        Action("remove_heads", "Prune and save model…", "prune", ("Ctrl+R",),
               (CHECKPOINT, OWN_ACTIVATION, HEADS_OFF), 3),
        Action("before_after", "Toggle pruned / full model", "eye", ("B",), (CAPTURE,), 3),
        Action("table", "All heads in a table", "table", ("T",),
               (Need(attrgetter("facts"), "The heads are not measured yet"),), 4),
    ),
    "Analyse": (
        Action("capture", "Run model on this text", "capture", ("Ctrl+Return",),
               (CHECKPOINT, IDLE)),
        Action("corpus", "Run model on a text file…", "capture", ("Ctrl+Shift+Return",),
               (CHECKPOINT, IDLE)),
        Action("write", "Generate text…", "edit", ("Ctrl+G",),
               (CHECKPOINT, IDLE, Need(_generates, "This model does not generate text"))),
        Action("attribute", "Compute attribution", "eye", ("Alt+Return",),
               (CAPTURE,
                Need(lambda s: s.capture.spec.modality == "text",
                     "Attribution needs tokens: this model reads images or sound"),
                Need(lambda s: s.capture.spec.goal != "states",
                     "This model outputs hidden states: attribution needs logits"),
                Need(lambda s: not s.capture.streaming.heads,
                     "This capture has streaming heads: attribution needs heads that see all keys"),
                LOADABLE, COMPLETE), 1),
        Action("stop_attributing", "Stop attribution", "stop", ("Alt+.",),
               (Need(lambda s: s.job("attribute"), "No attribution is running"),), 1),
        Action("stop", "Stop the model", "stop", ("Ctrl+.",), (RUNNING,), 1),
        Action("jobs", "Jobs…", "clock", ("Ctrl+J",),
               (Need(attrgetter("work"), RUNNING.otherwise),), 1),
        Action("choose_data", "Evaluate on dataset…", "prune", ("Ctrl+Shift+D",), EVALUABLE, 2),
        Action("bundled_data", "Evaluate on bundled reviews", "prune", ("Ctrl+Shift+B",),
               (*EVALUABLE, Need(_reads_reviews, "The bundled reviews do not fit this model")), 2),
        Action("resume_score", "Resume evaluation", "prune", ("Ctrl+Shift+R",),
               (Need(lambda s: s.trial and s.trial.stopped, "No evaluation was stopped"),), 2),
        Action("measure_heads", "Compute head importance…", "prune", ("Ctrl+Shift+M",), (DATA,), 2),
        Action("trace_curve", "Compute pruning curve", "prune", ("Ctrl+Shift+H",),
               (IMPORTANCE, DATA,
                Need(_importance_is_of_data,
                     "Importance was computed on other data: compute it on this data first")), 2),
        Action("patch_heads", "Patch heads between two texts…", "compare", ("Ctrl+Alt+H",),
               (CHECKPOINT, IDLE), 3),
        Action("measure_reach", "Measure reach of outputs…", "follow", ("Ctrl+Alt+O",), (), 3),
        Action("save_study", "Save importance scores…", "save", ("Alt+S",), (IMPORTANCE,), 2),
        Action("compare_with", "Compare with…", "compare", ("C",), (CAPTURE,), 3),
        Action("bundled_pair", "Compare the bundled softmax and ymish models", "compare",
               ("Ctrl+Alt+B",), (), 3),
        Action("pair_alike", "Pair with the most similar head of B", "compare", ("Alt+P",),
               (CAPTURE, COMPARISON), 3),
        Action("compare_nothing", "Stop comparing", "close", ("Alt+C",), (COMPARISON,), 3),
        Action("report_sides", "Copy comparison report command", "copy", ("Alt+R",), REPORTABLE, 3),
        Action("run_sweep", "Copy command to run this study", "copy", ("F5",),
               (STUDY,
                Need(lambda s: not s.sweep.complete, "All runs of this study are finished")), 4),
        Action("open_cell", "Open run output", "open", ("Ctrl+F5",),
               (STUDY, Need(lambda s: s.run and s.run.state == "done",
                            "Choose a finished run first")), 4),
        Action("close_sweep", "Close study", "close", ("Shift+F4",), (STUDY,), 4),
    ),
    "Help": (
        Action("find", "Search…", "search", ("Ctrl+Shift+P", "F1", "Ctrl+?")),
        Action("explain", "About this pane", "info", ("Shift+F1",), (), 1),
        Action("pages", "Help topics", "info", ("Ctrl+Shift+F1",), (), 1),
        Action("guide", "User guide", "info", ("Ctrl+Shift+G",), (), 1),
        Action("log", "Show log folder", "open", ("Ctrl+Shift+J",), (), 2),
        Action("about", "About hgviz", "info", ("Ctrl+Shift+I",), (), 2),
    ),
}
# fmt: on

ACTIONS = tuple(one._replace(menu=menu) for menu, rows in MENU_ACTIONS.items() for one in rows)
BY_NAME = {action.name: action for action in ACTIONS}
