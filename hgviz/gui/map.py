"""The map of the head that is chosen, and of a picture that a model reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from hgviz import palettes
from hgviz.core import Capture, Display, Floats, HeadId, Selection, progress
from hgviz.core import Signal as Read
from hgviz.figures.spec import Spec
from hgviz.gui import heatmap, ink, sentences, theme, tiles
from hgviz.gui.grid import Grid, Viewport, banded, rule_of, seen_columns
from hgviz.gui.heatmap import HeadMapsView
from hgviz.gui.ink import ColourScale
from hgviz.gui.language import tr
from hgviz.gui.opened import OpenedMap, Opener
from hgviz.gui.tables import Table, span
from hgviz.gui.tiles import Tiles
from hgviz.gui.view import NOTHING, Empty, HeadTitle, View, plain, uncaptured
from hgviz.gui.widgets import ARROWS, Toggle, arrow_of, label, vbox
from hgviz.session import Session

# --- map ------------------------------------------------------------------------------------------

CELL = ("Query", "Query token", "Key", "Key token", "Weight")  # columns of a table of values
HELD = 12  # ms that another head may take to be there at once


class MapView(HeadMapsView):
    """The map of the selected head; hovering moves the key, a click keeps the query."""

    name, title, topic = "map", "Map", "map"
    wait = 0  # another head is there in the next picture
    needs = ("capture", "selection", "hover", "display", "facts", "off", "text")

    def __init__(self) -> None:
        super().__init__()
        self._opener = Opener(self.tiles)
        self._supply.neighbours = self._opener.neighbours
        self._supply.came.connect(self._show_when_read)
        self._reveal = False
        self._held = QTimer(self, singleShot=True, interval=HELD)
        self._held.timeout.connect(self._show_opened)
        self.full = Toggle(tr("Full matrix"), tr("Also show the zeros outside the windows"))
        self.full.toggled.connect(self.refresh)
        self.full.hide()
        self.head.add(self.full)
        self._add_buttons(tr("Fit map to pane (F)"))

    def unbind(self) -> None:
        self._held.stop()
        super().unbind()

    def request(self, session: Session) -> Callable[[], OpenedMap[Grid]] | Empty:
        """Open the head and read the row looked at."""
        capture, chosen = session.capture, session.selection
        if capture is None or not all(map(len, capture.spans)):
            return NOTHING
        if capture.maps[chosen.layer] is None:
            return uncaptured(session, chosen.layer)
        return partial(
            self._opener.open, capture, chosen.head_id, query=session.looked_at.query,
            whole=self.full.isChecked(), shared=session.display.shared, view=self.canvas.view,
            same_text=self._is_same_head(chosen.head_id, capture),
        )  # fmt: skip

    def draw(self, result: OpenedMap[Grid]) -> None:
        """Show the head; its tiles follow as they are read."""
        old, grown = self._opened, self._is_same_head(result.head, result.grid.capture)
        self._opened, shape = result, result.sources[0].shape
        if grown:
            self.canvas.grow(shape)
        stays = grown and self.session.grew
        self._reveal = self._reveal or (old is not result and not stays)
        same = old is not None and old.sources[0].shape == shape
        waits = same and old is not result and not grown
        if same or grown:  # else the part on screen is of a map of another size until it is shown
            self._fetch(hurry=waits or self._held.isActive())
        if waits and not self._supply.at_hand:
            self._held.start()
        elif old is not result or not self._held.isActive():
            self._show_opened()

    def _is_same_head(self, head: HeadId, capture: Capture) -> bool:
        """Whether the map that is open is of the same head in another text."""
        opened = self._opened
        return opened is not None and opened.head == head and opened.grid.capture is not capture

    def _show_when_read(self) -> None:
        """Tiles are there: of a head that is held back, perhaps all that come in a moment."""
        if self._held.isActive() and self._supply.at_hand:
            self._show_opened()

    def _show_opened(self) -> None:
        self._held.stop()
        if self._opened is not None:
            head, spec = self._opened.head, self._opened.grid.capture.spec
            self.head.before.setVisible(self.session.stale)
            self.full.setVisible(banded(spec.layers[head.layer]))
            levels = sentences.ends(spec, head.layer)
            self._entitle(tr("Head {head}", head=head), head, levels)
            self._show_maps(self._reveal)
            self._reveal = False

    def noticed(self, name: str) -> None:
        """Move the cross hair and change colours at once; another capture is another map."""
        super().noticed(name)
        if name == "capture" and not self.grew:
            self._pointed = None
            self._opened = self._opened if self.stepped else None

    def figure(self, session: Session) -> Spec | None:
        if session.capture is None:
            return None
        return Spec("map", session.marked, session.display)

    def as_table(self) -> list[list[str]] | None:
        """The row of the chosen query, else the cells on screen."""
        opened, view = self._opened, self.canvas.view
        if opened is None:
            return None
        query, table = self.session.selection.query, None
        if query is not None:
            table = row_table(opened, opened.grid.capture.row(opened.head.layer, query))
        return table or cell_table(opened, self.tiles, view)

    # --- showing ----------------------------------------------------------------------------------

    def _limits(self, opened: OpenedMap[Grid], session: Session) -> tuple[float, float]:
        most = self._opener.most
        if session.display.limits is None and session.display.shared and most is not None:
            return -most, most
        return super()._limits(opened, session)

    def _off(self, opened: OpenedMap[Grid]) -> tuple[bool, ...]:
        return (opened.head in self.session.off or opened.head in opened.grid.capture.off,)

    # --- what is looked at ------------------------------------------------------------------------

    def _follow(self, reveal: bool = False) -> None:
        """The cross hair, the card and the sentence for what is looked at."""
        opened, session = self._opened, self.session
        if opened is None or opened.head != session.selection.head_id:
            return  # the next one brings its own
        row, column = self._cell()
        if reveal:
            self.canvas.reveal(row, column)
        chosen = opened.grid.cell(session.selection.query, session.selection.key)
        pointed = self._reading(row, column) if (row, column) != chosen else None
        self.canvas.point(row, column, [pointed.card() if pointed is not None else ""])
        sentence = tr(heatmap.HINT)
        if chosen[0] is not None:
            reading = self._reading(*chosen)
            if reading is None:  # the row is being read, and is said then
                return
            sentence = reading.sentence()
        self.canvas.say(sentence)
        self.canvas.setAccessibleDescription(plain(sentence))

    def _reading(self, row: int | None, column: int | None) -> heatmap.CellReading | None:
        """What a cell says; None outside the map, and while its row is being read."""
        assert self._opened is not None
        opened, grid, key = self._opened, self._opened.grid, None
        if row is None:
            return None
        if column is not None:
            row, key = grid.whole(row, column) or (row, None)
        if row not in opened.rows:
            return None
        return heatmap.CellReading(
            opened.head, grid.queries, grid.keys, row, opened.rows[row][0], key,
            rule_of(grid.capture, opened.head), opened.signed, self._off(opened)[0],
        )  # fmt: skip


def row_table(opened: OpenedMap[Grid], row: int) -> Table | None:
    """The weights of one row of a whole map on every key that it sees; None until it was read."""
    if row not in opened.rows:
        return None
    weights, queries, keys = opened.rows[row][0], opened.grid.queries, opened.grid.keys
    inside = seen_columns(rule_of(opened.grid.capture, opened.head), row, len(weights))
    query = str(row), queries.glyph(row)
    return [
        [tr(title) for title in CELL],
        *([*query, str(key), keys.glyph(key), str(weights[key])] for key in inside.tolist()),
    ]


def cell_table(opened: OpenedMap[Grid], cache: Tiles, view: Viewport) -> Table:
    """The cells on screen; several that share a pixel are 0:4, with their largest weight."""
    source, grid = opened.sources[0], opened.grid
    values, hidden = tiles.compose(cache, source, view), tiles.unseen(source, view)
    rows, columns = (axis.ranges() for axis in view.axes)
    table = [[tr(title) for title in CELL]]
    for i, j in np.argwhere(~hidden & ~np.isnan(values)).tolist():
        first = grid.whole(int(rows[i, 0]), int(columns[j, 0]))
        last = grid.whole(int(rows[i, 1]) - 1, int(columns[j, 1]) - 1)
        if first is not None:
            query, key = (span(*ends) for ends in zip(first, last or first, strict=True))
            glyphs = grid.queries.glyph(first[0]), grid.keys.glyph(first[1])
            table.append([query, glyphs[0], key, glyphs[1], str(values[i, j])])
    return table


# --- image ----------------------------------------------------------------------------------------

PAD, BAR, GAP, NUMBERS = 24, 12, 16, 56  # px: around, the bar of colours, before it, its numbers
NO_IMAGE_YET = Empty(
    "No image yet", "Choose an image to see the attention of each head over it.",
    (("ids", "Choose a file…"),),
)  # fmt: skip
NO_IMAGE = Empty("This is not a capture of an image", "See its tokens on the map.")
ELSEWHERE = Empty("This layer does not attend to the image", "Choose another layer.")


@dataclass(frozen=True, slots=True, eq=False)
class ImageOverlay:
    """What a query looks at: row (n,) the weights of all positions, the last of which are
    patches."""

    capture: Capture
    chosen: Selection
    row: Floats
    scale: ColourScale

    @property
    def signal(self) -> Read:
        """The image."""
        assert self.capture.prompt.signal is not None
        return self.capture.prompt.signal

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.signal.grid or (1, 1)

    @property
    def added(self) -> int:
        """How many positions are no patches."""
        return len(self.row) - self.size[0] * self.size[1]

    def sentence(self, key: int | None) -> str:
        """Where the query looks, and how much of it is on no patch."""
        pieces, query = self.capture.prompt.pieces, self.chosen.query or 0
        at = int(np.abs(self.row).argmax()) if key is None else key
        most = "{query} attends most to {key}: {weight:.2g}."
        words = tr(most if key is None else "{query} attends to {key}: {weight:.2g}.",
                  query=pieces[query], key=pieces[at], weight=float(self.row[at]))  # fmt: skip
        if self.added:
            rest = float(self.row[: self.added].sum())
            words += " " + tr("{name} (not a patch): {weight:.2g} of the row.",
                             name=", ".join(pieces[: min(self.added, 2)]), weight=rest)  # fmt: skip
        return words


class ImageCanvas(QWidget):
    """The image as large as fits, its patches coloured by their weights, and the colours' bar."""

    own_keys = tuple(ARROWS)
    picked = Signal(int)  # a position
    pointed = Signal(object)  # a position, or None
    stepped = Signal(int, str)  # by so much, down ("query") or across ("key")

    def __init__(self) -> None:
        super().__init__()
        self._shown: ImageOverlay | None = None
        self._pixels = QImage()
        self._key: int | None = None
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(160, 120)

    def show_overlay(self, shown: ImageOverlay, key: int | None) -> None:
        """Show the weights of a row; key: the position that is looked at more closely."""
        self._shown, self._key, scale = shown, key, shown.scale
        picture = shown.signal.picture
        assert picture is not None
        patches = scale.rgb(shown.row[shown.added :].reshape(shown.size), theme.current().dark)
        pixels = np.ascontiguousarray(palettes.overlay(picture, patches))
        self._pixels = ink.image(pixels).copy()  # which owns its bytes
        self.setAccessibleName(shown.sentence(key))
        self.update()

    def image_box(self) -> QRectF:
        """Where the image lies."""
        size = self._pixels.size()
        room = QRectF(self.rect()).adjusted(PAD, PAD, -PAD - GAP - BAR - NUMBERS, -PAD)
        if size.isEmpty() or room.width() < 8 or room.height() < 8:
            return QRectF()
        scale = min(room.width() / size.width(), room.height() / size.height())
        wide, high = size.width() * scale, size.height() * scale
        left = room.left() + (room.width() - wide) / 2
        return QRectF(left, room.top() + (room.height() - high) / 2, wide, high)

    def patch_box(self, position: int) -> QRectF:
        """Where a patch lies; empty for a position that is none."""
        shown, box = self._shown, self.image_box()
        if shown is None or position < shown.added:
            return QRectF()
        rows, columns = shown.size
        row, column = divmod(position - shown.added, columns)
        wide, high = box.width() / columns, box.height() / rows
        return QRectF(box.left() + column * wide, box.top() + row * high, wide, high)

    def position_at(self, place: QPointF) -> int | None:
        """The position of the patch at a place."""
        shown, box = self._shown, self.image_box()
        if shown is None or not box.contains(place):
            return None
        rows, columns = shown.size
        row = min(rows - 1, int((place.y() - box.top()) / box.height() * rows))
        column = min(columns - 1, int((place.x() - box.left()) / box.width() * columns))
        return shown.added + row * columns + column

    def paintEvent(self, event: QPaintEvent) -> None:
        shown, box, now = self._shown, self.image_box(), theme.current()
        if shown is None or box.isEmpty():
            return
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
            painter.drawImage(box, self._pixels)
            painter.setPen(QPen(now.line, 1))
            painter.drawRect(box)
            for position, colour in ((self._key, now.text), (shown.chosen.query, now.mark)):
                patch = QRectF() if position is None else self.patch_box(position)
                for pen in (QPen(now.pane, 4), QPen(colour, 2)) if not patch.isEmpty() else ():
                    painter.setPen(pen)
                    painter.drawRect(patch)
            bar = QRectF(box.right() + GAP, box.top(), BAR, box.height())
            ink.colour_bar(painter, bar, shown.scale)
            if self.hasFocus():
                painter.setPen(QPen(now.press, 2))
                painter.drawRect(box.adjusted(-4, -4, 4, 4))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.pointed.emit(self.position_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        self.pointed.emit(None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.setFocus(Qt.FocusReason.MouseFocusReason)
        if (position := self.position_at(event.position())) is not None:
            self.picked.emit(position)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if (arrow := arrow_of(event)) is None:
            super().keyPressEvent(event)
        else:
            self.stepped.emit(*arrow)


class ImageView(View):
    """The image with what the query at hand looks at; a click on a patch makes it the query."""

    name, title, topic = "image", "Image", "image"
    lane = "map"
    needs = ("capture", "selection", "hover", "display", "dark")

    def __init__(self) -> None:
        super().__init__()
        self.overlay: ImageOverlay | None = None
        self.head = HeadTitle()
        self.head.add(self.export_button())
        self.canvas = ImageCanvas()
        self.canvas.picked.connect(self._pick)
        self.canvas.pointed.connect(self._point)
        self.canvas.stepped.connect(self._step)
        self.sentence = label(kind="secondary", wrap=True, margins=(PAD, 0, PAD, 12))
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        vbox(self.content, self.head, (self.canvas, 1), self.sentence)
        self.start_at(self.canvas)

    def request(self, session: Session) -> Callable[[], ImageOverlay] | Empty:
        """Read the row of the query that is chosen, else of the first."""
        capture, chosen = session.capture, session.selection
        if capture is None:
            return NO_IMAGE_YET
        signal = capture.prompt.signal
        if signal is None or signal.grid is None or signal.picture is None:
            return NO_IMAGE
        attention = capture.maps[chosen.layer] if chosen.layer < len(capture.maps) else None
        if attention is None or attention.shape[1:] != (len(capture.prompt),) * 2:
            return ELSEWHERE
        query = chosen.query or 0
        within = replace(chosen, query=min(query, len(capture.prompt) - 1))
        return partial(_overlay, capture, within, session.display)

    def draw(self, result: ImageOverlay) -> None:
        if self.session.capture is not result.capture:
            return
        self.overlay = result
        head, query = result.chosen.head_id, result.capture.prompt.pieces[result.chosen.query or 0]
        off = head in result.capture.off
        self.head.name_head(result.capture.spec, head)
        self.head.note.say(tr("switched off") if off else tr("query {query}", query=query))
        key = self._key()
        self.canvas.show_overlay(result, key)
        self.sentence.setText(result.sentence(key))

    def figure(self, session: Session) -> Spec | None:
        if self.overlay is None or self.overlay.capture is not session.capture:
            return None
        return Spec("image", replace(self.overlay.chosen, key=None), session.display)

    def as_text(self) -> str:
        return self.sentence.text()

    def as_table(self) -> list[list[str]] | None:
        """The weights of all patches."""
        if self.overlay is None:
            return None
        pieces = self.overlay.capture.prompt.pieces
        rows = [[pieces[at], repr(float(weight))] for at, weight in enumerate(self.overlay.row)]
        return [[tr("Key"), tr("Weight")], *rows]

    def _key(self) -> int | None:
        """The key under the pointer, here or in another pane."""
        if self.session.hover is None or self.overlay is None:
            return None
        key = self.session.looked_at.key
        return key if key is not None and key < len(self.overlay.row) else None

    def _pick(self, position: int) -> None:
        self.session.put(hover=None)
        self.session.select(query=position, key=None)

    def _point(self, position: int | None) -> None:
        if self.overlay is not None:
            hover = None if position is None else replace(self.overlay.chosen, key=position)
            self.session.put(hover=hover)

    def _step(self, by: int, way: str) -> None:
        """Go to the next patch; from what is none to the first patch."""
        if self.overlay is None:
            return
        (rows, columns), added = self.overlay.size, self.overlay.added
        row, column = divmod(max(0, (self.overlay.chosen.query or 0) - added), columns)
        if (self.overlay.chosen.query or 0) >= added:
            row, column = (row + by, column) if way == "query" else (row, column + by)
        if 0 <= row < rows and 0 <= column < columns:
            self._pick(added + row * columns + column)


def _overlay(capture: Capture, chosen: Selection, display: Display) -> ImageOverlay:
    """The row of a query, coloured up to its own largest weight unless limits are chosen."""
    progress(0, 1)
    attention, query, signal = capture.maps[chosen.layer], chosen.query or 0, capture.prompt.signal
    assert attention is not None and signal is not None and signal.grid is not None
    row = attention.read(chosen.head, rows=(query, query + 1))[0]
    patches = row[len(row) - signal.grid[0] * signal.grid[1] :]
    own = palettes.limits_of(float(patches.min()), float(patches.max()), attention.signed)
    scale = ColourScale(attention.signed, display.limits or own, display)
    return ImageOverlay(capture, chosen, row, scale)
