"""The map of one head: every weight, which letter looks at which, and one sentence about it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLabel, QToolButton, QVBoxLayout, QWidget

from hgviz import palettes
from hgviz.core import Capture, Floats, HeadId, Integers, Selection, Step, Task, finish
from hgviz.figures.spec import Spec
from hgviz.gui import theme
from hgviz.gui.controls import IconButton, PaneHead, Segments, label
from hgviz.gui.views.base import View
from hgviz.gui.views.canvas import LEFT, Block, Canvas, Cross
from hgviz.gui.views.grid import Grid, banded, word_spans
from hgviz.gui.views.picture import Scene
from hgviz.gui.views.sayings import HINT, Reading
from hgviz.gui.views.tiles import Key, Source, Tiles, rule_of, seen
from hgviz.gui.views.viewport import Viewport
from hgviz.session import step_token

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes
    from hgviz.session import Session

SMALL = 2**22  # cells: up to here the whole map is a matter of a moment
ROWS_KEPT = 256
SCALES = (("linear", "Linear", ""), ("sqrt", "√", ""), ("log", "Log", ""))
ARROWS = {
    Qt.Key.Key_Up: (-1, "query"),
    Qt.Key.Key_Down: (1, "query"),
    Qt.Key.Key_Left: (-1, "key"),
    Qt.Key.Key_Right: (1, "key"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a request brings: the head, its largest weight (None: not known yet), a row read.

    The row is one of the whole map, also where a band is shown.
    """

    head: HeadId
    grid: Grid
    source: Source
    peak: float | None
    row: tuple[int, Floats] | None


class MapView(View):
    """The map of the selected head."""

    title: ClassVar[str] = "Map"
    icon: ClassVar[str] = "table"
    needs: ClassVar[tuple[str, ...]] = (
        "capture", "selection", "hover", "display", "facts", "off",
    )  # fmt: skip
    empty: ClassVar[tuple[str, str]] = (
        "No attention to show yet",
        "Capture a text, and every head's map appears here.",
    )
    empty_actions: ClassVar[tuple[tuple[str, str], ...]] = (
        ("capture", "Capture this text"),
        ("open_sample", "Open the sample"),
    )

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tiles = Tiles()
        self.canvas = Canvas(self.tiles)
        self._words: tuple[Capture, Integers] | None = None
        self._found: Found | None = None
        self._sources: OrderedDict[tuple[int, int, bool], tuple[Grid, Source]] = OrderedDict()
        self._rows: OrderedDict[tuple[Source, int], Floats] = OrderedDict()
        self._peaks: dict[Source, float] = {}
        self._shared: tuple[Capture, float] | None = None
        self._mass: dict[Source, Floats] = {}
        self._pointed: tuple[int, int] | None = None
        self._whole = False
        self._build()

    def _build(self) -> None:
        self.head = PaneHead("Head")
        self.role = label(factor=0.92, weight=500, kind="chip")
        self.level = label(factor=0.92, weight=500, kind="chip")
        self.full = QToolButton()
        self.full.setText("Full matrix")
        self.full.setCheckable(True)
        self.full.setFixedHeight(28)
        self.full.setToolTip("Show the zeros outside the windows too")
        self.full.toggled.connect(self._show_whole)
        self.full.hide()
        self.scale = Segments(SCALES, wide=42)
        self.scale.setToolTip("How weights become colours")
        self.scale.chosen.connect(self._choose_scale)
        self.fit_button = IconButton("fit", "Fit the map (F)")
        self.fit_button.clicked.connect(self.fit)
        self.export_button = IconButton("export", "Export figure… (Ctrl+E)")
        self.export_button.clicked.connect(self._export)
        self.head.add_beside_title(self.role, self.level)
        self.head.add(self.full, self.scale, self.fit_button, self.export_button)
        self.sentence = QLabel()
        self.sentence.setTextFormat(Qt.TextFormat.RichText)
        self.sentence.setWordWrap(True)
        self.sentence.setMinimumHeight(36)
        self.sentence.setContentsMargins(LEFT, 0, 16, 8)
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.canvas, 1)
        column.addWidget(self.sentence)
        self.canvas.pointed.connect(self._point)
        self.canvas.clicked.connect(self._click)
        self.canvas.blocked.connect(self._say_block)
        self.canvas.moved.connect(self._fetch)
        self.setFocusProxy(self.canvas)
        self.canvas.installEventFilter(self)

    # --- View -------------------------------------------------------------------------------------

    def bind(self, session: Session, lanes: Lanes) -> None:
        """Listen, and show the scale in use."""
        super().bind(session, lanes)
        self.scale.choose(session.display.scale)

    def request(self, session: Session) -> Task[Found] | None:
        """Open the head and read the row looked at."""
        capture, chosen = session.capture, session.selection
        if capture is None or not len(capture.prompt):
            return None
        if chosen.layer >= len(capture.maps) or capture.maps[chosen.layer] is None:
            self.empty = (
                f"Layer {chosen.layer} is not captured yet",
                "It appears here as soon as the capture has reached it.",
            )
            self.empty_actions = ()
            return None
        return self._open(session, capture, chosen)

    def draw(self, result: Found) -> None:
        """Show the head; its tiles follow as they are read."""
        new = self._found is None or self._found.source is not result.source
        self._found = result
        if result.row is not None:
            self._keep_row(result.source, *result.row)
        if result.peak is not None:
            self._peaks[result.source] = result.peak
        if new:
            self.canvas.drop_block()
        self._title()
        self._show()
        self._follow(reveal=new)

    def noticed(self, name: str) -> None:
        """Move the cross hair and change colours at once."""
        if name in ("selection", "hover"):
            self._follow(reveal=name == "selection" and self._pointed is None)
        elif name == "display" and self.session is not None:
            self.scale.choose(self.session.display.scale)
            self._show()
        elif name == "capture":
            self._pointed = None
            self._found = None

    def figure(self, session: Session) -> Spec | None:
        """The same map on paper."""
        if session.capture is None:
            return None
        return Spec(kind="map", selection=session.selection, display=session.display)

    def fit(self) -> None:
        """The whole map."""
        self.canvas.fit()

    def settle(self) -> None:
        """Ask, read every tile on screen and draw, now."""
        super().settle()
        if self._found is not None:
            finish(self._loading(self.canvas.missing(), self._found.source))
            self._show()

    # --- reading, in the lane ---------------------------------------------------------------------

    def _open(self, session: Session, capture: Capture, chosen: Selection) -> Task[Found]:
        query = self._query(session)
        key = (chosen.layer, chosen.head, self._whole)
        known = self._sources.get(key)
        if known is None or known[0].capture is not capture:
            if self._words is None or self._words[0] is not capture:
                self._words = (capture, word_spans(capture))
            grid = Grid.of(capture, chosen.layer, self._whole, self._words[1])
            yield Step(0, 3, "Opening the head")
            source, peak = self._source(capture, grid, chosen.head)
            if peak is not None:
                self._peaks[source] = peak
            self._sources[key] = (grid, source)
            while len(self._sources) > 32:
                self._sources.popitem(last=False)
        grid, source = self._sources[key]
        view = self.canvas.view
        if source.shape[0] * source.shape[1] <= SMALL and view is not None:
            yield from self.tiles.load(self._ahead(source, grid.wide))
        if session.display.shared and (self._shared is None or self._shared[0] is not capture):
            yield from self._share(capture)
        row = None
        at = None if query is None else capture.row(chosen.layer, query)
        if at is not None and at < len(grid.queries) and (source, at) not in self._rows:
            layer = capture.maps[chosen.layer]
            assert layer is not None
            row = (at, layer.read(chosen.head, rows=(at, at + 1))[0])
        yield Step(3, 3)
        return Found(chosen.head_id, grid, source, self._peaks.get(source), row)

    def _source(self, capture: Capture, grid: Grid, head: int) -> tuple[Source, float | None]:
        """The head's thumbnail and largest weight, where these are stored or soon computed."""
        layer = capture.maps[grid.layer]
        cells = grid.map.shape[1] * grid.map.shape[2]
        if layer is None or not (capture.path or cells <= SMALL):
            return Source(grid.map, head, grid.rule), None
        facts = layer.summary(head)  # type: ignore[attr-defined]
        peak = float(np.abs(facts.rowmax).max(initial=0.0))
        thumb = None if grid.band is not None else facts.thumb
        return Source(grid.map, head, grid.rule, thumb), peak

    def _ahead(self, source: Source, wide: int) -> list[Key]:
        """The tiles of the view that a head of this shape will have."""
        view = self.canvas.view
        scene = self.canvas.scene
        if view is None or scene is None or scene.source.shape != source.shape:
            view = Viewport.fitted(source.shape, self.canvas.room, 1.0, wide)
        return self.tiles.missing(source, view)

    def _share(self, capture: Capture) -> Task[None]:
        """The largest weight of all heads."""
        most, heads = 0.0, capture.spec.heads
        for number, one in enumerate(heads):
            layer = capture.maps[one.layer]
            if layer is not None and (capture.path or layer.shape[1] * layer.shape[2] <= SMALL):
                rowmax = layer.summary(one.head).rowmax  # type: ignore[attr-defined]
                most = max(most, float(np.abs(rowmax).max(initial=0.0)))
            yield Step(number + 1, len(heads), "Comparing the heads")
        self._shared = (capture, most)

    def _loading(self, keys: list[Key], source: Source) -> Task[None]:
        """The tiles, then what the rows of a signed map add up to."""
        yield from self.tiles.load(keys)
        rows, columns = source.shape
        if not source.map.signed or source in self._mass:
            return
        mass = np.zeros((rows, 2), np.float32)
        for top in range(0, rows, 256):
            for left in range(0, columns, 4096):
                block = source.map.read(
                    source.head, (top, min(top + 256, rows)), (left, min(left + 4096, columns))
                )
                mass[top : top + 256, 0] += np.minimum(block, 0).sum(axis=1)
                mass[top : top + 256, 1] += np.maximum(block, 0).sum(axis=1)
            yield Step(top, rows, "Adding up the rows")
        self._mass[source] = mass

    # --- showing ----------------------------------------------------------------------------------

    def _fetch(self) -> None:
        """Have the tiles read that the screen lacks; whatever was on order is forgotten."""
        if self._found is None or self._lanes is None or not self.isVisible():
            return
        keys, source = self.canvas.missing(), self._found.source
        if not keys and (not source.map.signed or source in self._mass):
            return
        lane = getattr(self._lanes, self.lane)
        lane.submit(
            f"tiles {id(self)}",
            "Map",
            self._loading(keys, source),
            on_step=self._came,
            on_done=self._came,
            on_error=self.show_error,
            post=self._lanes.bridge.post,
        )

    def _came(self, step: object) -> None:
        """More tiles are there."""
        if self._found is not None:
            self._show(fetch=False)

    def _show(self, fetch: bool = True) -> None:
        found, session = self._found, self.session
        if found is None or session is None or session.capture is None:
            return
        scene = Scene(
            found.source,
            found.grid.rows,
            found.grid.columns,
            self._limits(found, session),
            session.display,
            off=found.head in session.off or found.head in session.capture.off,
            wide=found.grid.wide,
            mass=self._mass.get(found.source),
        )
        rule = found.grid.rule
        self.canvas.hidden_words = "not seen: comes after the query" if rule.causal else (
            "not seen: outside its window" if rule.windowed else "")  # fmt: skip
        self.canvas.show_scene(scene)
        if fetch:
            self._fetch()

    def _limits(self, found: Found, session: Session) -> tuple[float, float]:
        signed = found.source.map.signed
        if session.display.limits is not None:
            low, high = session.display.limits
            return palettes.limits_of(low, high, signed)
        peak = self._peaks.get(found.source)
        if session.display.shared and self._shared is not None:
            peak = self._shared[1]
        if peak is None:  # so far: it grows with what was read
            peak = max(
                (float(np.abs(tile).max(initial=0.0)) for tile in self.tiles.of(found.source)),
                default=1.0,
            )
        return palettes.limits_of(-peak, peak, signed)

    def _title(self) -> None:
        assert self._found is not None and self.session is not None
        head = self._found.head
        capture = self._found.grid.capture
        layer = capture.spec.layers[head.layer]
        facts = self.session.facts.get(head)
        self.head.title.setText(f"Head {head}")
        self.role.setText(facts.role if facts else "")
        self.role.setVisible(bool(facts and facts.role))
        ends = [capture.spec.levels[one].label for one in (layer.key_level, layer.level)]
        self.level.setText(ends[0] if ends[0] == ends[1] else " → ".join(ends))
        self.full.setVisible(banded(layer))

    # --- what is looked at ------------------------------------------------------------------------

    def _query(self, session: Session) -> int | None:
        hover = session.hover
        if hover is not None and hover.query is not None:
            return hover.query
        return session.selection.query

    def _key(self, session: Session) -> int | None:
        hover = session.hover
        if hover is not None and hover.query is not None:
            return hover.key
        return session.selection.key

    def _cell(self) -> tuple[int | None, int | None]:
        if self._found is None or self.session is None:
            return None, None
        row, column = self._found.grid.cell(self._query(self.session), self._key(self.session))
        if self._pointed is not None:
            fixed = self.session.selection.query is not None and self._found.grid.band is None
            return row if fixed and row is not None else self._pointed[0], self._pointed[1]
        return row, column

    def _follow(self, reveal: bool = False) -> None:
        """The cross hair, the card, the sentence and the read-out for what is looked at."""
        if self._found is None or self.session is None:
            return
        row, column = self._cell()
        grid = self._found.grid
        ends = None
        if row is not None:
            cells = np.arange(grid.map.shape[2])
            visible = np.flatnonzero(seen(grid.rule, _one(row), np.stack([cells, cells + 1], 1)))
            ends = (int(visible[0]), int(visible[-1]) + 1) if len(visible) else (0, 0)
        if reveal:
            self.canvas.reveal(row, column)
        self.canvas.point(Cross(row, column, ends))
        self._say(row, column)

    def _say(self, row: int | None, column: int | None) -> None:
        assert self._found is not None and self.session is not None
        found, chosen = self._found, self._query(self.session)
        if row is None or chosen is None:
            self._tell(HINT, "")
            return
        at, key = found.grid.capture.row(found.head.layer, chosen), None
        if column is not None:
            at, key = found.grid.whole(row, column) or (at, None)
        weights = self._rows.get((found.source, at))
        if weights is None:  # it is being read and will be said then
            return
        rule = rule_of(found.grid.capture, found.head.layer)
        inside = key is None or bool(seen(rule, _one(at), _one(key)))
        said = Reading(
            found.head, found.grid.queries, found.grid.keys, at, weights, key, inside,
            found.source.map.signed, bool(self.canvas.scene and self.canvas.scene.off),
        )  # fmt: skip
        self._tell(said.sentence(), said.card())

    def _tell(self, sentence: str, card: str) -> None:
        self.sentence.setFont(theme.font())
        self.sentence.setStyleSheet(f"color: {theme.current().secondary.name()}")
        if self.canvas.block is None:
            self.sentence.setText(sentence)
        self.canvas.say(card)

    def _keep_row(self, source: Source, row: int, weights: Floats) -> None:
        self._rows[(source, row)] = weights
        while len(self._rows) > ROWS_KEPT:
            self._rows.popitem(last=False)

    # --- what people do ---------------------------------------------------------------------------

    def _point(self, cell: tuple[int, int] | None) -> None:
        if self.session is None or self._found is None or cell == self._pointed:
            return
        self._pointed = cell
        row, column = self._cell()
        if cell is None or row is None or column is None:
            self.session.put(hover=None)
            self._follow()
            return
        query, key = self._found.grid.tokens(row, column)
        hover = Selection(*self._found.head, query=query, key=key)
        if hover == self.session.hover:
            self._follow()
        self.session.put(hover=hover)

    def _click(self, row: int, column: int) -> None:
        if self.session is None or self._found is None:
            return
        query, key = self._found.grid.tokens(row, column)
        if query is not None:
            self._pointed = None
            self.session.put(
                hover=None, selection=replace(self.session.selection, query=query, key=key)
            )

    def _say_block(self, block: Block | None) -> None:
        """How much of their weight the rows of a block have in it."""
        if block is None or self._found is None:
            self._follow()
            return
        top, bottom, left, right = block
        if (bottom - top) * (right - left) > SMALL:
            self.sentence.setText(f"{bottom - top:,} × {right - left:,} cells")
            return
        source = self._found.source
        values = source.map.read(source.head, rows=(top, bottom), columns=(left, right))
        mean = float(values.sum(dtype=np.float64)) / (bottom - top)
        what = "on average a row has {:.3f} of its weight here" if not source.map.signed else (
            "on average a row adds up to {:+.3f} here")  # fmt: skip
        largest = palettes.written(float(values.flat[np.abs(values).argmax()]), source.map.signed)
        self.sentence.setText(
            f"{bottom - top:,} × {right - left:,} cells: {what.format(mean).replace('-', '−')}, "
            f"the largest is {largest}."
        )

    def _choose_scale(self, name: str) -> None:
        if self.session is not None:
            self.session.put(display=replace(self.session.display, scale=name))

    def _show_whole(self, whole: bool) -> None:
        self._whole = whole
        self.refresh()

    def _export(self) -> None:
        self.asked.emit("export")

    def eventFilter(self, watched: object, event: QEvent) -> bool:
        """On the map the arrows go where they point: the query runs down, the key across."""
        if event.type() == QEvent.Type.ShortcutOverride and self._arrow(event) is not None:
            event.accept()
            return True
        if event.type() == QEvent.Type.KeyPress and self._press(event):
            return True
        return super().eventFilter(watched, event)  # type: ignore[arg-type]

    def _press(self, event: QKeyEvent) -> bool:
        arrow = self._arrow(event)
        if self.session is None:
            return False
        if arrow is not None:
            self._pointed = None
            self.session.put(hover=None, selection=step_token(self.session, *arrow))
            return True
        if event.key() == Qt.Key.Key_Escape:
            return self._escape(self.session)
        return False

    def _arrow(self, event: QKeyEvent) -> tuple[int, Any] | None:
        plain = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        return ARROWS.get(Qt.Key(event.key())) if not plain else None

    def _escape(self, session: Session) -> bool:
        """First the block, then the hover, then the selection."""
        if self.canvas.block is not None:
            self.canvas.drop_block()
        elif session.hover is not None or self._pointed is not None:
            self._pointed = None
            session.put(hover=None)
            self._follow()
        elif session.selection.key is not None or session.selection.query is not None:
            session.put(selection=replace(session.selection, query=None, key=None))
        else:
            return False
        return True


def _one(cell: int) -> Integers:
    return np.array([[cell, cell + 1]])
