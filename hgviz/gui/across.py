"""The look Across levels: all maps as one, and which way an answer took."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from hgviz import palettes
from hgviz.core import Capture, Selection, Task, finish
from hgviz.figures.spec import Spec
from hgviz.gui.across_parts import saying
from hgviz.gui.across_parts.bars import Bars
from hgviz.gui.across_parts.choices import Choices
from hgviz.gui.across_parts.composed import Across, Kept
from hgviz.gui.grid import Names
from hgviz.gui.heatmap import Canvas
from hgviz.gui.language import tr
from hgviz.gui.tiles import Tiles
from hgviz.gui.view import View
from hgviz.gui.views import sayings
from hgviz.gui.views.crosshair import Cross
from hgviz.gui.views.grid import Words as Texts
from hgviz.gui.views.picture import Scene
from hgviz.gui.views.still import plain
from hgviz.gui.views.supply import Supply
from hgviz.gui.widgets import IconButton, PaneHead, arrow_of, label
from hgviz.recipe import Recipe
from hgviz.session import Session, step_token

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes

ROOMY, HIGH, NOTED = 560, 400, 720  # px: the title, the bars under a map, the note
NOTHING = ("No attention to compose yet", "Capture a text, and all its maps become one here.")


class AcrossView(View):
    """All maps of a capture as one, for any choice of how; the answer looked at in detail."""

    name, title = "across", "Across levels"
    topic = "across"
    icon: ClassVar[str] = "hourglass"
    needs: ClassVar[tuple[str, ...]] = ("capture", "selection", "off")
    watches: ClassVar[tuple[str, ...]] = ("hover", "display")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tiles = Tiles()
        self._kept = Kept(self.tiles)
        self._across: Across | None = None
        self._names: tuple[Names, Names] | None = None
        self._texts: tuple[Capture, Texts] | None = None
        self._pointed: tuple[int, int] | None = None
        self.canvas = Canvas(self.tiles)
        self.canvas.setAccessibleName(tr("Map of all maps composed"))
        self._supply = Supply(self.canvas, self._kept.opener)
        self.bars = Bars()
        self._build()

    def _build(self) -> None:
        self.head = PaneHead(tr("All maps"))
        self.choices = Choices()
        self.choices.changed.connect(self.refresh)
        self.export = IconButton("export", tr("Export figure… (Ctrl+E)"))
        self.export.clicked.connect(self._export)
        self.head.add(self.choices, self.export)
        self.why = label(factor=0.92, kind="secondary")
        self.why.setWordWrap(True)
        self.why.setContentsMargins(16, 8, 16, 8)
        self.why.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Maximum)
        self.why.hide()
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.canvas, 5)
        column.addWidget(self.why)
        column.addWidget(self.bars, 2)
        self.canvas.pointed.connect(self._point)
        self.canvas.clicked.connect(self._click)
        self.canvas.moved.connect(self._fetch)
        for one in (self.canvas, self.bars):
            one.installEventFilter(self)
        self.bars.picked.connect(self._pick)
        self.start_at(self.canvas)

    # --- View -------------------------------------------------------------------------------------

    def bind(self, session: Session, lanes: Lanes) -> None:
        """Listen, and read tiles off the GUI thread."""
        super().bind(session, lanes)
        self._supply.start(lanes, self.show_error)

    def unbind(self) -> None:
        """Stop listening and reading."""
        super().unbind()
        self._supply.stop()

    def request(self, session: Session) -> Task[Across] | None:
        """Compose the row of the answer, then all of them."""
        capture = session.capture
        if capture is None or not len(capture.main):
            self.empty, self.empty_actions = NOTHING, (
                ("capture", "Capture this text"), ("open_sample", "Open the sample"),
            )  # fmt: skip
            return None
        return self._kept.across(session.capture, self._answer(session), self._recipe(session))

    def draw(self, result: Across) -> None:
        """Show as much of it as there is."""
        session = self.session
        if session is None or result.of is not session.capture:
            return
        if self._across is None or self._across.of is not result.of:
            self._pointed = None
        self._across = result
        self._names = self._named(result)
        shown = result.opened
        self.why.setText(result.why)
        self.why.setVisible(bool(result.why))
        self.bars.show_row(result, *self._names)
        self._fit_parts()
        self.head.note.say(tr(result.recipe.label))
        if shown is not None:
            self._present()
        self._follow()
        self._fetch()

    def noticed(self, name: str) -> None:
        """Other colours, another place under the pointer."""
        if self._across is None or self.session is None:
            return
        if name == "display":
            self._present()
        elif name == "hover":
            self._follow()

    def figure(self, session: Session) -> Spec | None:
        """The same map on paper."""
        if session.capture is None:
            return None
        # the key is chosen in the map of one head: here no column is
        chosen = replace(session.selection, query=self._answer(session), key=None)
        return Spec("rollout", chosen, session.display, recipe=self._recipe(session))

    def as_text(self) -> str:
        """The sentence beneath the map."""
        return plain(self.canvas.sentence.text())

    def as_table(self) -> list[list[str]] | None:
        """The answer looked at, token by token, as the bars have it."""
        return self.bars.table() if self._across is not None and self.bars.lanes else None

    @property
    def zoomed(self) -> bool:
        """Whether some of the map is off the pane."""
        return self.canvas.view is not None and not self.canvas.view.whole

    def fit(self) -> None:
        """The whole map."""
        self.canvas.fit()

    def settle(self) -> None:
        """Ask, read every tile on screen and draw, now."""
        super().settle()
        if self._across is not None and (opened := self._across.opened) is not None:
            view = self.canvas.planned
            finish(opened.load(self.tiles, self.tiles.lacking(opened.source, view)))
            self.canvas.compose(afresh=True)
            self._present()
            self._follow()

    # --- what is asked for ------------------------------------------------------------------------

    def _recipe(self, session: Session) -> Recipe:
        off = session.capture.off if session.capture is not None else frozenset()
        return self.choices.recipe(session.selection.head_id, off)

    def _answer(self, session: Session) -> int | None:
        """The token whose answer is looked at: the query, where it is of the text answered on."""
        assert session.capture is not None
        capture, chosen = session.capture, session.selection
        if capture.query_prompt(chosen.layer) is not capture.main or chosen.query is None:
            return capture.main.last
        return min(chosen.query, len(capture.main) - 1)

    def _export(self) -> None:
        self.asked.emit("export")

    # --- showing ----------------------------------------------------------------------------------

    def _named(self, across: Across) -> tuple[Names, Names]:
        """What rows and columns are called: of the composed capture where it is there."""
        if across.opened is not None:
            return across.opened.grid.queries, across.opened.grid.keys
        if self._texts is None or self._texts[0] is not across.of:
            self._texts = across.of, Texts()
        from hgviz.analysis.together import as_capture

        weights = np.zeros((1, 1), np.float32)
        bare = as_capture(across.of, weights, across.recipe)
        texts = self._texts[1]
        layer = bare.spec.layers[0]
        rows = texts.names(bare, layer.level, bare.spans[layer.level])
        return rows, texts.names(bare, layer.key_level, bare.spans[layer.key_level])

    def _present(self) -> None:
        across, session = self._across, self.session
        if across is None or session is None or across.opened is None:
            return
        opened, grid = across.opened, across.opened.grid
        self.canvas.hidden_words = sayings.hidden(grid.rule_of(opened.head.head))
        limits = palettes.limits_of(-opened.peak, opened.peak, opened.source.signed)
        scene = Scene(opened.source, grid.rows, grid.columns, limits, session.display)
        self.canvas.show_scene(replace(scene, mass=opened.mass, sides=(tr("Token"), tr("Answer"))))

    def _fetch(self) -> None:
        if self._across is not None and self._across.opened is not None and self.isVisible():
            self._supply.want(self._across.opened)

    def _follow(self) -> None:
        """The cross hair, the card and the sentence."""
        across, session = self._across, self.session
        if across is None or session is None or self._names is None:
            return
        if across.of is not session.capture:  # the next one brings its own
            return
        rows, columns = self._names
        row, column = across.query, self._column(session)
        if self._pointed is not None:
            row, column = self._pointed
        self.bars.choose(column)
        if across.opened is None:
            told = filter(None, (across.why, self.bars.said_of(column)))
            self.why.setText("\n".join(told))
            return
        ends = None
        if row is not None:
            causal = across.opened.source.rule.causal
            ends = (0, row + 1) if causal else (0, len(columns))
        self.canvas.point(Cross(row, column, ends))
        if row is None or column is None:
            self.canvas.say(saying.answer(across, rows, columns), "")
            return
        read = across.opened.source.map.read(0, (row, row + 1))[0]
        value = float(read[column])
        said = sayings.Reading(
            across.opened.head, rows, columns, row, read, column, signed=across.recipe.signed
        )
        self.canvas.say(saying.cell(across, rows, columns, row, column, value), said.card())

    def _column(self, session: Session) -> int | None:
        """The column of the chosen key, where its text has columns."""
        assert self._across is not None
        capture, chosen = self._across.of, session.looked_at
        if chosen.key is None:
            return None
        before = 0 if capture.target is None else len(capture.prompt)
        prompt = capture.key_prompt(session.selection.layer)
        if prompt is capture.main:
            return before + chosen.key
        return chosen.key if prompt is capture.prompt else None

    # --- what people do ---------------------------------------------------------------------------

    def _point(self, cell: tuple[int, int] | None) -> None:
        if self._across is None or self.session is None or cell == self._pointed:
            return
        self._pointed = cell if cell is not None and None not in cell else None
        hover, found = None, self._tokens(self._pointed)
        if found is not None:
            hover = Selection(*self.session.selection.head_id, query=found[0], key=found[1])
        self.session.put(hover=hover)
        self._follow()

    def _click(self, row: int, column: int) -> None:
        found = self._tokens((row, column))
        if self.session is not None and found is not None:
            self._choose(replace(self.session.selection, query=found[0], key=found[1]))

    def _pick(self, column: int) -> None:
        if self.session is not None and self._across is not None:
            row = self._across.query if self._across.query is not None else 0
            self._click(row, column)

    def _tokens(self, cell: tuple[int, int] | None) -> tuple[int, int | None] | None:
        """The query and key of a cell, as the selected layer counts them; None: it cannot."""
        if cell is None or self.session is None or self._across is None:
            return None
        capture, layer = self._across.of, self.session.selection.layer
        if capture is not self.session.capture:
            return None  # another is on its way
        if capture.query_prompt(layer) is not capture.main:
            return None
        row, column = cell
        before = 0 if capture.target is None else len(capture.prompt)
        of_main = capture.key_prompt(layer) is capture.main
        inside = column >= before if of_main else column < before
        return row, (column - before * of_main) if inside else None

    def _choose(self, selection: Selection) -> None:
        assert self.session is not None
        self._pointed = None
        self.session.put(hover=None, selection=selection)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """On the map and its bars the arrows go where they point; Esc lets go of the key."""
        if isinstance(event, QKeyEvent) and self.session is not None:
            arrow = arrow_of(event)
            if event.type() == QEvent.Type.ShortcutOverride and arrow is not None:
                event.accept()
                return True
            if event.type() == QEvent.Type.KeyPress and arrow is not None:
                self._choose(step_token(self.session, *arrow))
                return True
            escape = event.type() == QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Escape
            if escape and self.session.selection.key is not None:
                self._choose(replace(self.session.selection, key=None))
                return True
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where it is narrow or low the map comes first."""
        super().resizeEvent(event)
        self._fit_parts()

    def _fit_parts(self) -> None:
        self.head.note.setVisible(self.width() >= NOTED)
        self.head.title.setVisible(self.width() >= ROOMY)
        across = self._across
        whole = across is None or across.opened is not None or not across.why
        self.canvas.setVisible(whole)
        self.bars.setVisible(self.height() >= HIGH or not whole)
