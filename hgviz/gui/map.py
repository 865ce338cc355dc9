"""The map of one head: every weight, who looks at what, and one sentence about it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolButton, QVBoxLayout, QWidget

from hgviz import palettes
from hgviz.core import HeadId, Integers, Selection, Task, finish
from hgviz.figures.spec import Spec
from hgviz.gui import values
from hgviz.gui.heatmap import Canvas
from hgviz.gui.language import tr
from hgviz.gui.tiles import Tiles
from hgviz.gui.views import sayings, words
from hgviz.gui.views.choosing import CAPTURE, NOTHING, MapsView, scale_choice
from hgviz.gui.views.crosshair import Cross
from hgviz.gui.views.grid import banded
from hgviz.gui.views.opened import Opened, Opener
from hgviz.gui.views.picture import Scene
from hgviz.gui.views.sight import rule_of, seen
from hgviz.gui.views.still import plain
from hgviz.gui.views.supply import Supply
from hgviz.gui.widgets import IconButton, PaneHead, label, tip
from hgviz.session import Session

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes

LEAST_ROLE = 48  # px of a chip: less than this says nothing
CHIP = 18  # px of it beside its words
HELD = 12  # ms that another head may take to be there at once


class MapView(MapsView):
    """The map of the selected head; hovering moves the key, a click keeps the query."""

    name, title, topic = "map", "Map", "map"
    lane = "map"
    wait = 0  # another head is there in the next picture
    icon: ClassVar[str] = "table"
    needs: ClassVar[tuple[str, ...]] = (
        "capture", "selection", "hover", "display", "facts", "off", "text",
    )  # fmt: skip

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tiles = Tiles()
        self.canvas = Canvas(self.tiles)
        self._opener = Opener(self.tiles)
        self._opened: Opened | None = None
        self._whole = False
        self._role = ""
        self._supply = Supply(self.canvas, self._opener)
        self._supply.outgrown.connect(self._present)
        self._supply.added_up.connect(self._present)
        self._supply.came.connect(self._came)
        self._reveal = False
        self._held = QTimer(self, singleShot=True, interval=HELD)
        self._held.timeout.connect(self._show_opened)
        self._build()

    def _build(self) -> None:
        self.head = PaneHead(tr("Head"))
        self.role = label(factor=0.92, weight=500, kind="chip")
        self.role.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.role.setMinimumWidth(LEAST_ROLE)
        self.level = label(factor=0.92, weight=500, kind="chip")
        self.streams = label(tr("streams"), factor=0.92, weight=500, kind="chip")
        self.before = label(tr("text before"), factor=0.92, weight=500, kind="chip")
        self.before.setToolTip(tr("The text was edited since this was captured"))
        self.full = QToolButton()
        self.full.setText(tr("Full matrix"))
        self.full.setCheckable(True)
        self.full.setFixedHeight(28)
        self.full.setToolTip(tr("Show the zeros outside the windows too"))
        self.full.toggled.connect(self._show_whole)
        self.scale = scale_choice()
        self.scale.chosen.connect(self._choose_scale)
        self.fit_button = IconButton("fit", tr("Fit the map (F)"))
        self.fit_button.clicked.connect(self.fit)
        self.export = IconButton("export", tr("Export figure… (Ctrl+E)"))
        self.export.clicked.connect(lambda: self.asked.emit("export"))
        self.head.add_beside_title(self.role, self.level, self.streams, self.before)
        self.head.add(self.full, self.scale, self.fit_button, self.export)
        for one in (self.role, self.level, self.streams, self.before, self.full):
            one.hide()
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.canvas, 1)
        self.canvas.pointed.connect(self._point)
        self.canvas.clicked.connect(self._click)
        self.canvas.moved.connect(self._fetch)
        self.canvas.installEventFilter(self)
        self.start_at(self.canvas)

    # --- View -------------------------------------------------------------------------------------

    def bind(self, session: Session, lanes: Lanes) -> None:
        """Listen, and show the scale in use."""
        super().bind(session, lanes)
        self._supply.start(lanes, self.show_error)
        self.scale.choose(session.display.scale)

    def unbind(self) -> None:
        """Stop listening and reading."""
        self._held.stop()
        super().unbind()
        self._supply.stop()

    def request(self, session: Session) -> Task[Opened] | None:
        """Open the head and read the row looked at."""
        capture, chosen = session.capture, session.selection
        if capture is None or not all(map(len, capture.spans)):
            self.empty, self.empty_actions = NOTHING, CAPTURE
            return None
        if chosen.layer >= len(capture.maps) or capture.maps[chosen.layer] is None:
            self.empty = (
                tr("Layer {layer} is not captured yet", layer=chosen.layer),
                "It appears here as soon as the capture has reached it.",
            )
            going = session.at_work
            self.empty_actions = (("jobs", "All jobs…"),) if going else CAPTURE[:1]
            return None
        return self._opener.open(
            capture,
            chosen.head_id,
            query=session.looked_at.query,
            whole=self._whole,
            shared=session.display.shared,
            view=self.canvas.planned,
            grown=self._opened is not None and self._opened.went_on(chosen.head_id, capture),
        )

    def draw(self, result: Opened) -> None:
        """Show the head; its tiles follow as they are read."""
        old, self._opened = self._opened, result
        grown = old is not None and old.went_on(result.head, result.grid.capture)
        if grown:
            self.canvas.grow(result.source.shape, result.grid.wide)
        stays = grown and self.session is not None and self.session.grew
        self._reveal = self._reveal or (old is not result and not stays)
        same = old is not None and old.source.shape == result.source.shape
        waits = same and old is not result and not grown
        if same or grown:  # else the part on screen is of a map of another size until it is shown
            self._fetch(hurry=waits or self._held.isActive())
        if waits and not self._supply.at_hand:
            self._held.start()
        elif old is not result or not self._held.isActive():
            self._show_opened()

    def _show_opened(self) -> None:
        self._held.stop()
        if self._opened is not None:
            self._entitle()
            self._present()
            self._follow(reveal=self._reveal)
            self._reveal = False
            self._fetch()

    def _came(self) -> None:
        """Tiles are there: of a head that is held back, perhaps all that come in a moment."""
        if self._held.isActive() and self._supply.at_hand:
            self._show_opened()

    def noticed(self, name: str) -> None:
        """Move the cross hair and change colours at once."""
        if name in ("selection", "hover"):
            self._follow(reveal=name == "selection" and self._pointed is None)
        elif name == "display" and self.session is not None:
            self.scale.choose(self.session.display.scale)
            self._present()
        elif name == "capture" and self.session is not None and not self.session.grew:
            self._pointed = None
            self._opened = self._opened if self.session.stepped else None

    def figure(self, session: Session) -> Spec | None:
        """The same map on paper."""
        if session.capture is None:
            return None
        return Spec(kind="map", selection=session.marked, display=session.display)

    def as_text(self) -> str:
        """The sentence beneath the map."""
        return plain(self.canvas.sentence.text())

    def as_table(self) -> list[list[str]] | None:
        """The row of the chosen query, else the cells on screen."""
        opened, session, view = self._opened, self.session, self.canvas.view
        if opened is None or session is None or view is None:
            return None
        query, found = session.selection.query, None
        if query is not None:
            found = values.of_row(opened, opened.grid.capture.row(opened.head.layer, query))
        return found or values.of_cells(opened, self.tiles, view)

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
        if self._opened is not None:
            view = self.canvas.planned
            finish(self._opened.load(self.tiles, self.tiles.lacking(self._opened.source, view)))
            self.canvas.compose(afresh=True)
            self._show_opened()

    # --- showing ----------------------------------------------------------------------------------

    def _fetch(self, hurry: bool = False) -> None:
        """Have the tiles read that the screen lacks."""
        if self._opened is not None and self.isVisible():
            self._supply.want(self._opened, hurry)

    def _present(self) -> None:
        opened, session = self._opened, self.session
        if opened is None or session is None or session.capture is None:
            return
        grid = opened.grid
        self.canvas.hidden_words = sayings.hidden(grid.rule_of(opened.head.head))
        limits = self._limits(opened, session)
        scene = Scene(opened.source, grid.rows, grid.columns, limits, session.display, self._off)
        scene = replace(scene, wide=grid.wide, mass=opened.mass, sides=grid.sides)
        self.canvas.show_scene(scene)

    def _limits(self, opened: Opened, session: Session) -> tuple[float, float]:
        limits, most = session.display.limits, self._opener.most
        peak = most if session.display.shared and most is not None else opened.peak
        return palettes.limits_of(*(limits or (-peak, peak)), opened.source.signed)

    def _entitle(self) -> None:
        assert self._opened is not None and self.session is not None
        head, spec = self._opened.head, self._opened.grid.capture.spec
        layer, facts = spec.layers[head.layer], self.session.facts.get(head)
        self.head.title.setText(tr("Head {head}", head=head))
        self._role = tr(facts.role) if facts else ""
        self.level.setText(words.ends(spec, head.layer))
        self.level.setVisible(bool(self.level.text()))
        self._say_streaming(head)
        self.before.setVisible(self.session.stale)
        self.full.setVisible(banded(layer))
        self._fit_role()

    def _say_streaming(self, head: HeadId) -> None:
        """Whether the head streams in the capture, and which keys it sees there."""
        assert self._opened is not None
        streaming = self._opened.grid.capture.streaming
        self.streams.setVisible(head in streaming.heads)
        said = tr("It sees the first {sink:,} keys and the latest {recent:,}.",
                  sink=streaming.sink, recent=streaming.recent)  # fmt: skip
        self.streams.setToolTip(tip(said))

    def _fit_role(self) -> None:
        """The role in the room that the rest of the head leaves, elided."""
        room = self.head.room_for(self.role, self.width())
        metrics = self.role.fontMetrics()
        said = metrics.elidedText(self._role, Qt.TextElideMode.ElideRight, room - CHIP)
        self.role.setText(said)
        self.role.setToolTip(self._role if said != self._role else "")
        self.role.setVisible(bool(self._role) and room >= LEAST_ROLE)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the head."""
        super().resizeEvent(event)
        self._fit_role()

    @property
    def _off(self) -> bool:
        assert self._opened is not None and self.session is not None
        head = self._opened.head
        return head in self.session.off or head in self._opened.grid.capture.off

    # --- what is looked at ------------------------------------------------------------------------

    def _cell(self) -> tuple[int | None, int | None]:
        """The row and column on screen: of the pointer, its row kept where a query is chosen."""
        if self._opened is None or self.session is None:
            return None, None
        chosen, grid = self.session.looked_at, self._opened.grid
        row, column = grid.cell(chosen.query, chosen.key)
        if self._pointed is None:
            return row, column
        kept = self.session.selection.query is not None and row is not None and grid.band is None
        return (row if kept else self._pointed[0]), self._pointed[1]

    def _follow(self, reveal: bool = False) -> None:
        """The cross hair, the card and the sentence for what is looked at."""
        if self._opened is None or self.session is None:
            return
        if self._opened.head != self.session.selection.head_id:  # the next one brings its own
            return
        (row, column), grid = self._cell(), self._opened.grid
        ends = None
        if row is not None:
            cells = np.arange(grid.map.shape[2])
            rule = self._opened.source.rule
            inside = np.flatnonzero(seen(rule, _one(row), np.stack([cells, cells + 1], 1)))
            ends = (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 0)
        if reveal:
            self.canvas.reveal(row, column)
        self.canvas.point(Cross(row, column, ends))
        self._say(row, column)

    def _say(self, row: int | None, column: int | None) -> None:
        assert self._opened is not None and self.session is not None
        opened, chosen = self._opened, self.session.looked_at.query
        capture, layer = opened.grid.capture, opened.head.layer
        if row is None or chosen is None:
            self.canvas.say(tr(sayings.HINT))
            return
        at, key = capture.row(layer, chosen), None
        if column is not None:
            at, key = opened.grid.whole(row, column) or (at, None)
        weights = opened.rows.get(at)
        if weights is None:  # it is being read, and will be said then
            return
        rule = rule_of(capture, opened.head)
        said = sayings.Reading(
            opened.head,
            opened.grid.queries,
            opened.grid.keys,
            at,
            weights,
            key,
            seen=key is None or bool(seen(rule, _one(at), _one(key))),
            near=rule.nearest,
            signed=opened.source.signed,
            off=self._off,
        )
        sentence = said.sentence()
        self.canvas.say(sentence, said.card())
        if self._pointed is None:
            self.canvas.setAccessibleDescription(plain(sentence))

    # --- what people do ---------------------------------------------------------------------------

    def _point(self, cell: tuple[int, int] | None) -> None:
        if self.session is None or self._opened is None or cell == self._pointed:
            return
        self._pointed, before = cell, self.session.hover
        row, column = self._cell()
        hover = None
        if cell is not None and row is not None and column is not None:
            query, key = self._opened.grid.tokens(row, column)
            hover = Selection(*self._opened.head, query=query, key=key)
        self.session.put(hover=hover)
        if hover == before:  # the same tokens, such as two places of the shift
            self._follow()

    def _click(self, row: int, column: int) -> None:
        if self.session is None or self._opened is None:
            return
        query, key = self._opened.grid.tokens(row, column)
        if query is not None:
            self._choose(replace(self.session.selection, query=query, key=key))

    def _show_whole(self, whole: bool) -> None:
        self._whole = whole
        self.refresh()


def _one(cell: int) -> Integers:
    return np.array([[cell, cell + 1]])
