"""What outputs depend on: the attention rollout of a capture, and the reach of models."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFileDialog, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from hgviz import tasks
from hgviz.analysis.composition import (
    NOTE,
    Rollout,
    RolloutRows,
    describe_shares,
    mean_distances,
    rollout_capture,
)
from hgviz.core import (
    HEAD_FUSIONS,
    Capture,
    HeadFusion,
    HeadId,
    RolloutOptions,
    Selection,
    progress,
)
from hgviz.errors import require
from hgviz.figures.spec import Spec, answer_command, known_name
from hgviz.gui import heatmap, sentences
from hgviz.gui.charts import Axis, Band, Chart, ChartWidget, Plot, Points, number, percent
from hgviz.gui.dialogs import WEIGHTS, Form, ask_for
from hgviz.gui.grid import CaptureWords, Grid, Names, Viewport
from hgviz.gui.heatmap import MapsView
from hgviz.gui.language import tr
from hgviz.gui.opened import OpenedMap, Opener, recent
from hgviz.gui.sentences import Citation, explanation
from hgviz.gui.sources import name_of, shown_error
from hgviz.gui.tables import Table, key_table
from hgviz.gui.tiles import Tiles
from hgviz.gui.view import CAPTURE, Empty
from hgviz.gui.widgets import Button, IconButton, PaneHead, Picker, Toggle, Words, hbox, label, vbox
from hgviz.session import Session

if TYPE_CHECKING:
    from hgviz.figures import Panel
    from hgviz.tasks.reachability import Reach

# --- cache ----------------------------------------------------------------------------------------

WHOLE = 2048  # tokens of which the whole map is composed
TOO_LONG = (
    "The full rollout is computed for texts of up to {most:,} {unit}s; for this one, only the row "
    "of the selected output."
)
ROLLOUTS = 3  # options whose rollout is kept for when one comes back to them


@dataclass(frozen=True, slots=True, eq=False)
class Across:
    """The rollout of one capture for one answer, as far as it is computed.

    rows, columns: what answers and tokens are called. row: what the answer at `query` is made of.
    opened: the whole map, ready for a canvas. reason: why there is no whole map, in words.
    """

    capture: Capture
    recipe: RolloutOptions
    rows: Names
    columns: Names
    query: int | None
    row: RolloutRows | None = None
    opened: OpenedMap[Grid] | None = None
    reason: str = ""

    @property
    def measure(self) -> str:
        """What the weights of an answer are, a key of ABOUT."""
        return "Product" if self.recipe.signed else "Rollout"


class ComposedCache:
    """What was composed of the capture on screen, so that another answer is there at once."""

    def __init__(self, tiles: Tiles) -> None:
        self.opener = Opener(tiles)
        self._capture: Capture | None = None
        self._names: tuple[Names, Names] | None = None
        self._rollouts: OrderedDict[RolloutOptions, Rollout] = OrderedDict()
        self._opened: tuple[RolloutRows, OpenedMap[Grid]] | None = None

    def across(self, capture: Capture, query: int | None, recipe: RolloutOptions) -> Across:
        """The row of an answer, a step's value once it is there, then the whole map."""
        if self._names is None or self._capture is None or capture.maps is not self._capture.maps:
            self._capture = capture
            self._rollouts.clear()
            blank = rollout_capture(capture, np.zeros((1, 1), np.float32), recipe)
            layer, words = blank.spec.layers[0], CaptureWords()
            rows, columns = (words.names(blank, level, blank.spans[level])
                             for level in (layer.level, layer.key_level))  # fmt: skip
            self._names = rows, columns
        make = partial(Rollout, capture, recipe)
        rollout, _ = recent(self._rollouts, recipe, make, ROLLOUTS)
        row = None if query is None else rollout.row(query)
        across = Across(capture, recipe, *self._names, query, row)
        progress(0, 1, NOTE, across)
        if len(capture.main) <= WHOLE:
            return replace(across, opened=self._open(rollout))
        return replace(across, reason=tr(TOO_LONG, most=WHOLE, unit=tr(capture.main.unit)))

    def _open(self, rollout: Rollout) -> OpenedMap[Grid]:
        whole = rollout.all_rows()
        if self._opened is None or self._opened[0] is not whole:
            composed = rollout_capture(rollout.capture, whole.weights, rollout.options)
            view = Viewport.fitted((1, 1), (512, 512))
            opened = self.opener.open(
                composed, HeadId(0, 0), query=None, whole=True, shared=False, view=view
            )
            opened.titles = tr("Token"), tr("Output")
            self._opened = whole, opened
        return self._opened[1]


# --- sentences ------------------------------------------------------------------------------------

SOURCES = 3  # named in a sentence


def answer(across: Across) -> str:
    """Describe the sources of the selected output, and its share of each level."""
    if across.row is None or across.query is None:
        return tr("Point at a cell to read it; click to select its output.")
    weights, signed = across.row.weights[0], across.recipe.signed
    order = np.argsort(-np.abs(weights), kind="stable")[:SOURCES]
    tokens = [f"{_cell(across.columns, at)} {amount(float(weights[at]), signed)}"
              for at in order.tolist() if weights[at]]  # fmt: skip
    own = _cell(across.rows, across.query)
    if not tokens:
        return tr("The output at {output} has no weight on any token.", output=own)
    words = "Top sources of the output at {output}: {tokens}."
    if signed:
        words = "Largest weights of the output at {output}: {tokens}."
    sentence = tr(words, output=own, tokens=", ".join(tokens))
    return f"{sentence} {sentences.marked_up(_levels(across))}"


def cell(across: Across, row: int, column: int, value: float) -> str:
    """How much of one output comes from one token, in words."""
    rows, columns = across.rows, across.columns
    ends = {"output": _cell(rows, row), "token": _cell(columns, column)}
    if across.recipe.signed:
        way = "adds {amount} to" if value >= 0 else "subtracts {amount} from"
        words = f"{{token}} {way} the output at {{output}} (product of all layers)."
        return tr(words, amount=sentences.weight(abs(value), 3), **ends)
    ends["share"] = f"<b>{sentences.share(value)}</b>"
    way = ""
    if rows.prompt is columns.prompt:
        far = row - column
        way = ", {away} back" if far > 0 else ", {away} ahead" if far < 0 else ", itself"
        ends["away"] = sentences.counted(abs(far), rows.prompt.unit)
    return tr("{share} of the output at {output} comes from {token}" + way + ".", **ends)


def amount(value: float, signed: bool) -> str:
    """A share in per cent, or a signed weight."""
    return sentences.with_sign(value, 2) if signed else sentences.share(value)


def _levels(across: Across) -> str:
    """How much of the answer went to each level, and from how far back; or from the source."""
    if not across.row.parts or across.query is None:
        return tr(describe_shares(across.capture, across.row, across.query))
    spec, unit = across.capture.spec, tr(across.capture.main.unit)
    distances = mean_distances(across.capture, across.row.parts, across.query)
    parts: list[str] = []
    for level, weights, far in zip(spec.levels, across.row.parts, distances, strict=True):
        if far == far:  # NaN: no part of the answer has this level as its innermost
            words = "{share} went to {level}" if level.index else "{share} stayed at {level}"
            words += ", from {far:,.0f}" if parts else ", from {far:,.0f} {unit}s back on average"
            share = sentences.share(round(float(weights.sum(dtype=float)), 6))
            parts.append(tr(words, share=share, level=level.label, far=far, unit=unit))
    return "; ".join(parts) + "." if parts else ""


def _cell(names: Names, cell: int) -> str:
    return heatmap.marked(names.glyph(cell))


# --- the row of an answer -------------------------------------------------------------------------

COLOURS = (0, 2, 3, 4, 5, 6)  # of series, by level; orange means chosen
LABELS = 10  # tokens that are written under the bars
TALLEST = 200  # px of the chart under a map
ABOUT = {  # what the bars are, their formula
    "Rollout": (
        "Share of the output that comes from each token, through all layers",
        Citation("R = Â_L … Â_1, Â = α I + (1 − α) A", "Abnar and Zuidema 2020"),
    ),
    "Product": (
        "What each token adds or subtracts, through all layers",
        Citation("Π_l (A_l + I)", "maps.md"),
    ),
}  # fmt: skip


def row_chart(across: Across) -> Chart:
    """A bar for each token that an answer comes from, stacked by the levels it comes through."""
    if across.row is None or not len(across.columns):
        return Chart()
    weights, signed = np.nan_to_num(across.row.weights[0], nan=0.0), across.recipe.signed
    count = len(weights)
    if (weights < 0).any():
        stacks = [("bad", "", np.maximum(weights, 0)), ("press", "", np.minimum(weights, 0))]
    else:
        levels = zip(across.capture.spec.levels, across.row.parts, strict=False)
        stacks = [(COLOURS[at % 6], level.label, part) for at, (level, part) in enumerate(levels)]
    x = np.repeat(np.arange(count), 4) + np.tile([-0.45, -0.45, 0.45, 0.45], count)
    base, parts = np.zeros(count), []
    for colour, name, values in stacks or [("press", "", weights)]:
        top = base + values
        high = np.stack([base, top, top, base], axis=1).ravel()
        parts.append(Band(x, np.repeat(base, 4), high, colour, 1.0, name))
        base = base if colour == "bad" else top  # what is taken away hangs from zero
    words, keys = partial(token_words, across), tuple(range(count))
    points = Points(np.arange(count), weights, size=0.0, words=words, keys=keys)
    low, high = float(weights.min(initial=0.0)), float(weights.max(initial=0.0)) or 1.0
    end, write = len(across.columns) - 0.5, number if signed else percent
    y = Axis(1.05 * low, 1.05 * high, tr(across.measure), write)
    plot = Plot(Axis(-0.5, end, names=token_names(across.columns)), y, (*parts, points))
    return Chart((plot,), tr("Selected output by token"), of=end, by_x=True)


def token_names(columns: Names) -> tuple[tuple[float, str], ...]:
    """Some words along a text, each at one of its tokens; tokens where there are no words."""
    names = []
    step = max(1, len(columns) // LABELS)
    for first in range(0, len(columns), step):
        part = range(first, min(first + step, len(columns)))
        column = next((at for at in part if columns.word_tokens(at)), first)
        names.append((float(column), columns.word(column)[0]))
    return tuple(names)


def token_words(across: Across, column: int) -> str:
    """A token, the weight of an answer on it, and that weight by level."""
    columns, signed = across.columns, across.recipe.signed
    total = float(across.row.weights[0][column])
    lines = [
        f"{sentences.shown(columns.glyph(column))}, {columns.place(column)}",
        f"{tr(across.measure)} {amount(total, signed)}",
    ]
    if not signed and total:
        lines += [
            tr("{amount} via {level}", level=level.label, amount=amount(float(part[column]), False))
            for part, level in zip(across.row.parts, across.capture.spec.levels, strict=False)
        ]
    return "\n".join(lines)


# --- recipe ---------------------------------------------------------------------------------------

FUSED = (
    ("mean", "Mean of heads", "The mean over the heads of a layer"),
    ("max", "Max of heads", "The maximum over the heads of a layer, cell by cell"),
    ("min", "Min of heads", "The minimum over the heads of a layer, cell by cell"),
    ("one", "This head", "The selected head in its layer, the mean in all others"),
)
RESIDUAL = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
FUSING = (
    "How the heads of a layer are combined",
    Citation("A = mean_h A_h, max_h A_h, min_h A_h", "Abnar and Zuidema 2020; maps.md"),
)
STAYING = (
    "Share of the residual connection in each layer",
    Citation("Â = α I + (1 − α) A", "Abnar and Zuidema 2020"),
)
SIGNED = "Keep negative weights: the product of A + I, not normalised", ABOUT["Product"][1]


# --- view -----------------------------------------------------------------------------------------

ROOMY, HIGH, NOTED = 560, 400, 720  # px: the title, the bars under a map, the note
NOTHING = Empty("No attention rollout yet", "Run the model on a text to compute it.", CAPTURE)


class AcrossView(MapsView):
    """All maps of a capture as one, for any choice of how; the answer looked at in detail."""

    name, title, topic = "across", "Attention rollout", "across"
    needs = ("capture", "selection", "off")
    watches = ("hover", "display")

    def __init__(self) -> None:
        super().__init__()
        self._cache = ComposedCache(self.tiles)
        self._across: Across | None = None
        self.canvas.setAccessibleName(tr("Attention rollout"))
        self.bars = ChartWidget(tr("Selected output by token"))
        self.head = PaneHead(tr("Attention rollout"))
        self.fuse, self.residual = Picker(tr("Heads")), Picker(tr("Residual share"))
        self.fuse.offer((name, tr(words), tr(why)) for name, words, why in FUSED)
        shares = ((part, tr("{share} residual", share=sentences.share(part))) for part in RESIDUAL)
        self.residual.offer(shares, 0.5)
        self.signed = Toggle(tr("Signed"), explanation(tr(SIGNED[0]), SIGNED[1]))
        self.signed.toggled.connect(self._choose_recipe)
        for picker, wide, (meaning, cited) in (
            (self.fuse, 146, FUSING), (self.residual, 132, STAYING),
        ):  # fmt: skip
            picker.setFixedWidth(wide)
            picker.setToolTip(explanation(tr(meaning), cited))
            picker.currentIndexChanged.connect(self._choose_recipe)
        self.head.add(self.fuse, self.residual, self.signed, self.export_button())
        self.reason = label(factor=0.92, kind="secondary", wrap=True, margins=(16, 8, 16, 8))
        self.reason.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Maximum)
        self.reason.hide()
        vbox(self.content, self.head, (self.canvas, 5), self.reason, (self.bars, 2))
        self.bars.picked.connect(self._pick)

    def request(self, session: Session) -> Callable[[], Across] | Empty:
        capture = session.capture
        if capture is None or not len(capture.main):
            return NOTHING
        return partial(self._cache.across, capture, self._answer(session), self._recipe(session))

    def draw(self, result: Across) -> None:
        if result.capture is not self.session.capture:
            return
        if self._across is None or self._across.capture is not result.capture:
            self._pointed = None
        self._across, self._opened = result, result.opened
        self.reason.setText(result.reason)
        self.reason.setVisible(bool(result.reason))
        self.bars.show_chart(row_chart(result))
        about, cited = ABOUT[result.measure]
        self.bars.setToolTip(explanation(tr(about), cited))
        self.bars.setMaximumHeight(TALLEST * (2 if result.reason else 1))
        self._fit_parts()
        self._show_maps()

    def figure(self, session: Session) -> Spec | None:
        if session.capture is None:
            return None
        # the key is chosen in the map of one head: here no column is
        chosen = replace(session.selection, query=self._answer(session), key=None)
        return Spec("rollout", chosen, session.display, recipe=self._recipe(session))

    def as_table(self) -> Table | None:
        across = self._across
        if across is None or across.row is None:
            return None
        numbers = {tr(across.measure): across.row.weights[0]}
        for level, values in zip(across.capture.spec.levels, across.row.parts, strict=False):
            numbers[tr("{name} via {level}", name=tr("Rollout"), level=level.label)] = values
        return key_table(across.columns, range(len(across.columns)), numbers)

    # --- what is asked for ------------------------------------------------------------------------

    def _recipe(self, session: Session) -> RolloutOptions:
        chosen, head = self.fuse.currentData(), session.selection.head_id
        off = session.capture.off if session.capture is not None else frozenset()
        heads = (head,) if chosen == "one" and head not in off else ()
        if self.signed.isChecked():
            return RolloutOptions(heads=heads, signed=True)
        fuse: HeadFusion = chosen if chosen in HEAD_FUSIONS else "mean"
        return RolloutOptions(fuse, heads, self.residual.currentData())

    def _choose_recipe(self, _: object) -> None:
        plain = not self.signed.isChecked()
        for at in (1, 2):  # a signed product is of means
            self.fuse.model().item(at).setEnabled(plain)  # type: ignore[attr-defined]
        self.residual.setEnabled(plain)
        self.refresh()

    def _answer(self, session: Session) -> int | None:
        """The token whose answer is looked at: the query, where it is of the text answered on."""
        capture, chosen = session.capture, session.selection
        if capture.query_prompt(chosen.layer) is not capture.main or chosen.query is None:
            return capture.main.last
        return min(chosen.query, len(capture.main) - 1)

    def _limits(self, opened: OpenedMap[Grid], session: Session) -> tuple[float, float]:
        return -opened.peak, opened.peak

    def _follow(self, reveal: bool = False) -> None:
        across = self._across
        if across is None or across.capture is not self.session.capture:
            return  # the next one brings its own
        row, column = self._cell()
        self.bars.mark(column)
        if across.opened is None:
            self.reason.setText("\n".join(filter(None, (across.reason, self.bars.words))))
            return
        if row is None or column is None:
            self.canvas.point(row, column, [""])
            self.canvas.say(answer(across))
            return
        weights = across.opened.sources[0].map.read(0, (row, row + 1))[0]
        value = float(weights[column])
        reading = heatmap.CellReading(
            across.opened.head, across.rows, across.columns, row, weights, column,
            signed=across.recipe.signed,
        )  # fmt: skip
        self.canvas.point(row, column, [reading.card()])
        self.canvas.say(cell(across, row, column, value))

    def _cell(self) -> heatmap.Cell:
        """The cell under the pointer, else the answer and the key looked at, where its text has
        columns."""
        across, key = self._across, self.session.looked_at.key
        if across is None or self._pointed is not None:
            return self._pointed or (None, None)
        capture = across.capture
        prompt = capture.key_prompt(self.session.selection.layer)
        of_main = prompt is capture.main
        if key is None or not (of_main or prompt is capture.prompt):
            return across.query, None
        return across.query, key + self._before * of_main

    @property
    def _before(self) -> int:
        """How many columns come before those of the text answered on: the other text's."""
        capture = self._across.capture if self._across is not None else None
        return 0 if capture is None or capture.target is None else len(capture.prompt)

    # --- what people do ---------------------------------------------------------------------------

    def _pick(self, column: int) -> None:
        if self._across is not None:
            self._click(self._across.query or 0, column)

    def _selection_of(self, row: int, column: int) -> Selection:
        """The query and key of a cell, as the selected layer counts them."""
        capture, chosen = self.session.capture, self.session.selection
        is_shown = self._across is not None and self._across.capture is capture
        if capture is None or not is_shown:
            return replace(chosen, query=None, key=None)  # another is on its way
        if capture.query_prompt(chosen.layer) is not capture.main:
            return replace(chosen, query=None, key=None)
        of_main = capture.key_prompt(chosen.layer) is capture.main
        is_inside = column >= self._before if of_main else column < self._before
        key = column - self._before * of_main if is_inside else None
        return replace(chosen, query=row, key=key)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where it is narrow or low the map comes first."""
        super().resizeEvent(event)
        self._fit_parts()

    def _fit_parts(self) -> None:
        across = self._across if self.width() >= NOTED else None
        self.head.note.say("" if across is None else tr(across.recipe.label))
        self.head.title.setVisible(self.width() >= ROOMY)
        whole = self._across is None or not self._across.reason
        self.canvas.setVisible(whole)
        self.bars.setVisible(self.height() >= HIGH or not whole)


# --- reach ----------------------------------------------------------------------------------------

REACH = "reach"  # a job
EXCERPT = 200  # characters of the text on screen
MANY = 6  # models in one figure
CHECKPOINTS = f"Checkpoints (config.json {' '.join(WEIGHTS)})"
REACH_HELP = (
    "How much each output depends on each token, from gradients in float64. Works with any model "
    "that reads text, also without attention, such as an LSTM."
)


@dataclass(frozen=True, slots=True)
class ReachRequest:
    """Paths of checkpoints, the text they read, and the text of decoders with two."""

    models: tuple[str, ...] = ()
    text: str = ""
    target: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `hgviz reach` that ask the same of the models."""
        target = ("--target", self.target) if self.target else ()
        return ("--text", self.text, *target)

    def measure(self) -> ReachFigure:
        """Measure one model after the other. Errors: HgvizError."""
        reaches = []
        for path in self.models:
            model = tasks.load(path, "cpu", dtype="float64")
            is_pair = model.spec.form == "encoder-decoder"
            require(
                self.target or not is_pair,
                f"{name_of(path)} reads two texts",
                "Also enter the decoder's text",
            )
            target = self.target if is_pair else None
            reaches.append(tasks.reach(model, *tasks.read_prompts(model, self.text, target=target)))
        return ReachFigure(self, tuple(reaches))


@dataclass(frozen=True, slots=True, eq=False)
class ReachFigure:
    """The reach of some models, ready to be drawn."""

    request: ReachRequest
    reaches: tuple[Reach, ...]

    def panel(self, spec: Spec) -> Panel:
        """The figure of `hgviz reach`."""
        request = self.request
        return tasks.reach_panel(spec, self.reaches, None, request.options, request.models)

    def command(self, spec: Spec, out: str) -> str:
        """The command that measures it again."""
        models = [name if name.startswith("sample/") else path
                  for path in self.request.models for name in [known_name(path)]]  # fmt: skip
        return answer_command(spec, self.request.options, models, Path(out).name)


class ReachRunner:
    """Asks for models and a text, measures the reach, and shows it. commands: of the window."""

    def __init__(self, commands: Any) -> None:
        self.commands = commands
        self._request = ReachRequest()

    def ask(self, error: str = "") -> None:
        """Ask what to measure, first what was asked last."""
        session, request = self.commands.session, self._request
        models = request.models or tuple(filter(None, [session.checkpoint]))
        request = replace(request, models=models, text=request.text or session.text[:EXCERPT])
        ReachDialog(self.commands.window, request, error).ask(self._start)

    def _start(self, request: ReachRequest) -> None:
        self._request = request
        self.commands.working.start(
            self.commands.lanes.engine, REACH, tr("Measuring reach"), request.measure,
            lambda figure: self.commands.exporting.show_answer(Spec("reach"), figure),
            lambda error: self.ask(" ".join(map(tr, shown_error(error).lines))),
        )  # fmt: skip


class ReachDialog(Form):
    """The models whose reach is measured, and their text. error: what went wrong the last time."""

    def __init__(self, window: QWidget, request: ReachRequest, error: str = "") -> None:
        super().__init__(window, tr("Reach of outputs"), tr(REACH_HELP))
        self.models = list(request.models)
        self.text, self.target = QLineEdit(request.text), QLineEdit(request.target)
        self.text.setCursorPosition(0)
        self.target.setPlaceholderText(tr("Only for encoder-decoders"))
        self._list = QVBoxLayout()
        self._add = Button(tr("Add checkpoint…"), "open")
        self._add.clicked.connect(self._choose)
        self.row(tr("Text"), self.text)
        self.row(tr("Decoder's text"), self.target)
        self.row(tr("Models"), self._list)
        self.offer(Button(tr("Measure"), kind="filled"), self._add)
        self._show_models()
        self.failure = error
        self.check()
        for field in (self.text, self.target):
            field.textChanged.connect(self.check_changed)

    def answer(self) -> tuple[ReachRequest]:
        return (ReachRequest(tuple(self.models), self.text.text(), self.target.text()),)

    def problem(self) -> str:
        if not self.models:
            return tr("Add a checkpoint.")
        return "" if self.text.text() else tr("Enter a text.")

    def _choose(self) -> None:
        mode = QFileDialog.FileMode.ExistingFile
        ask_for(self, tr("Add a checkpoint"), mode, self.add, tr(CHECKPOINTS))

    def add(self, path: str) -> None:
        """Add a checkpoint: a weights file, or the folder of a config.json."""
        place = Path(path)
        self.models.append(str(place.parent if place.name == "config.json" else place))
        self._show_models()

    def _remove(self, place: int) -> None:
        del self.models[place]
        self._show_models()

    def _show_models(self) -> None:
        self.check_changed()
        while item := self._list.takeAt(0):
            item.widget().hide()
            item.widget().deleteLater()
        for place, path in enumerate(self.models):
            row, name = QWidget(), Words(name_of(path))
            name.setToolTip(path)
            remove = IconButton("close", tr("Remove {name}", name=name_of(path)))
            remove.clicked.connect(partial(self._remove, place))
            hbox(row, (name, 1), remove)
            self._list.addWidget(row)
        self._add.setEnabled(len(self.models) < MANY)
