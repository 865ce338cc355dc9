"""The look Image: the image that was read, and over it what the query at hand looks at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QVBoxLayout, QWidget

from hgviz import palettes
from hgviz.core import Capture, Floats, Selection, Step, Task
from hgviz.core import Signal as Read
from hgviz.figures.spec import Spec
from hgviz.gui import ink, theme
from hgviz.gui.language import tr
from hgviz.gui.view import View
from hgviz.gui.widgets import IconButton, PaneHead, label
from hgviz.palettes import Colours, Limits

if TYPE_CHECKING:
    from hgviz.session import Session

PAD, BAR, GAP, NUMBERS = 24, 12, 16, 56  # px: around, the bar of colours, before it, its numbers
NOTHING = ("No image yet", "Capture an image, and what each head looks at lies over it here.")
NO_IMAGE = ("This capture is of no image", "Its tokens are in the map.")
ELSEWHERE = ("This layer does not look at the image from itself", "Choose another layer.")
STEPS = {
    Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Overlay:
    """What a query looks at: row (n,) the weights of all positions, the last of which are patches;
    limits: what the ends of the colours stand for."""

    capture: Capture
    chosen: Selection
    row: Floats
    limits: Limits
    signed: bool

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
        most = "{query} looks at {key} most: {weight:.2g}."
        said = tr(most if key is None else "{query} looks at {key}: {weight:.2g}.",
                  query=pieces[query], key=pieces[at], weight=float(self.row[at]))  # fmt: skip
        if self.added:
            rest = float(self.row[: self.added].sum())
            said += " " + tr("{name}, which is no patch, has {weight:.2g} of the row.",
                             name=", ".join(pieces[: min(self.added, 2)]), weight=rest)  # fmt: skip
        return said


class ImageCanvas(QWidget):
    """The image as large as fits, its patches coloured by their weights, and the colours' bar."""

    picked = Signal(int)  # a position
    pointed = Signal(object)  # a position, or None
    stepped = Signal(int, int)  # rows, columns

    def __init__(self) -> None:
        super().__init__()
        self._shown: Overlay | None = None
        self._pixels = QImage()
        self._bar: Colours = np.zeros((1, 3), np.uint8)
        self._key: int | None = None
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(160, 120)

    def show_overlay(self, shown: Overlay, table: Colours, scale: str, key: int | None) -> None:
        """Show the weights of a row; key: the position that is looked at more closely."""
        self._shown, self._bar, self._key = shown, table, key
        picture = shown.signal.picture
        assert picture is not None
        grid = shown.row[shown.added :].reshape(shown.size)
        placed = palettes.place(grid, shown.limits, scale, shown.signed)
        rgb = np.ascontiguousarray(palettes.laid(picture, palettes.paint(placed, table)))
        height, width = rgb.shape[:2]
        self._pixels = QImage(rgb.data, width, height, 3 * width, QImage.Format.Format_RGB888)
        self._pixels = self._pixels.copy()  # which owns its bytes
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
        """Draw the image, a ring around the query and the key, and the bar."""
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
            self._paint_bar(painter, box, shown)
            if self.hasFocus():
                painter.setPen(QPen(now.press, 2))
                painter.drawRect(box.adjusted(-4, -4, 4, 4))

    def _paint_bar(self, painter: QPainter, box: QRectF, shown: Overlay) -> None:
        now = theme.current()
        bar = QRectF(box.right() + GAP, box.top(), BAR, box.height())
        column = np.ascontiguousarray(self._bar[::-1])
        colours = QImage(column.data, 1, len(column), 3, QImage.Format.Format_RGB888)
        painter.drawImage(bar, colours)
        painter.setPen(QPen(now.line, 1))
        painter.drawRect(bar)
        painter.setFont(theme.font(0.85))
        painter.setPen(now.secondary)
        for value, y in zip(shown.limits[::-1], (bar.top(), bar.bottom()), strict=True):
            place = QRectF(bar.right() + 6, y - 10, NUMBERS - 6, 20)
            painter.drawText(place, ink.TO_LEFT, palettes.written(float(value), shown.signed))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Say which patch is under the pointer."""
        self.pointed.emit(self.position_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        """None is any more."""
        self.pointed.emit(None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A patch becomes the query."""
        self.setFocus(Qt.FocusReason.MouseFocusReason)
        if (position := self.position_at(event.position())) is not None:
            self.picked.emit(position)

    def event(self, event: QEvent) -> bool:
        """Arrows are its own while it has the keyboard, not the window's."""
        shortcut = event.type() == QEvent.Type.ShortcutOverride
        if isinstance(event, QKeyEvent) and shortcut and _step_of(event) is not None:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows go from patch to patch."""
        if (step := _step_of(event)) is not None:
            self.stepped.emit(*step)
            return
        super().keyPressEvent(event)


def _step_of(event: QKeyEvent) -> tuple[int, int] | None:
    """Rows and columns that an arrow key alone goes."""
    plain = event.modifiers() in (
        Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier,
    )  # fmt: skip
    return STEPS.get(Qt.Key(event.key())) if plain else None


class ImageView(View):
    """The image with what the query at hand looks at; a click on a patch makes it the query."""

    name, title = "image", "Image"
    topic = "image"
    lane = "map"
    icon: ClassVar[str] = "table"
    needs: ClassVar[tuple[str, ...]] = ("capture", "selection", "hover", "display", "dark")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.found: Overlay | None = None
        self.head = PaneHead(tr("Head"))
        self.export = IconButton("export", tr("Export figure… (Ctrl+E)"))
        self.export.clicked.connect(lambda: self.asked.emit("export"))
        self.head.add(self.export)
        self.canvas = ImageCanvas()
        self.canvas.picked.connect(self._pick)
        self.canvas.pointed.connect(self._point)
        self.canvas.stepped.connect(self._step)
        self.sentence = label(kind="secondary")
        self.sentence.setWordWrap(True)
        self.sentence.setContentsMargins(PAD, 0, PAD, 12)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.canvas, 1)
        column.addWidget(self.sentence)
        self.start_at(self.canvas)

    # --- View -------------------------------------------------------------------------------------

    def request(self, session: Session) -> Task[Overlay] | None:
        """Read the row of the query that is chosen, else of the first."""
        capture, chosen = session.capture, session.selection
        self.empty_actions: tuple[tuple[str, str], ...] = ()
        if capture is None:
            self.empty, self.empty_actions = NOTHING, (("ids", "Choose a file…"),)
            return None
        signal = capture.prompt.signal
        if signal is None or signal.grid is None or signal.picture is None:
            self.empty = NO_IMAGE
            return None
        one = capture.maps[chosen.layer] if chosen.layer < len(capture.maps) else None
        if one is None or one.shape[1:] != (len(capture.prompt),) * 2:
            self.empty = ELSEWHERE
            return None
        query = chosen.query or 0
        return _overlay(capture, replace(chosen, query=min(query, len(capture.prompt) - 1)),
                        session.display.limits)  # fmt: skip

    def draw(self, result: Overlay) -> None:
        """Show the row."""
        session = self.session
        if session is None or session.capture is not result.capture:
            return
        self.found = result
        head, query = result.chosen.head_id, result.capture.prompt.pieces[result.chosen.query or 0]
        off = head in result.capture.off
        self.head.title.setText(tr("Head {head}", head=head))
        self.head.note.say(tr("switched off") if off else tr("from {query}", query=query))
        name = palettes.suited(session.display.palette, result.signed)
        table = palettes.colours(name, theme.current().dark)
        key = self._key()
        self.canvas.show_overlay(result, table, session.display.scale, key)
        self.sentence.setText(result.sentence(key))

    def figure(self, session: Session) -> Spec | None:
        """The same on paper."""
        if self.found is None or self.found.capture is not session.capture:
            return None
        return Spec("image", replace(self.found.chosen, key=None), session.display)

    def as_text(self) -> str:
        """What is said below the image."""
        return self.sentence.text()

    def as_table(self) -> list[list[str]] | None:
        """The weights of all patches."""
        if self.found is None:
            return None
        pieces = self.found.capture.prompt.pieces
        rows = [[pieces[at], repr(float(one))] for at, one in enumerate(self.found.row)]
        return [[tr("Key"), tr("Weight")], *rows]

    # --- inside -----------------------------------------------------------------------------------

    def _key(self) -> int | None:
        """The key under the pointer, here or in another pane."""
        session = self.session
        if session is None or session.hover is None or self.found is None:
            return None
        key = session.looked_at.key
        return key if key is not None and key < len(self.found.row) else None

    def _pick(self, position: int) -> None:
        if self.session is not None:
            self.session.put(hover=None)
            self.session.select(query=position, key=None)

    def _point(self, position: int | None) -> None:
        session = self.session
        if session is None or self.found is None:
            return
        hover = None if position is None else replace(self.found.chosen, key=position)
        if hover != session.hover:
            session.put(hover=hover)

    def _step(self, down: int, across: int) -> None:
        if self.found is None:
            return
        rows, columns = self.found.size
        at = (self.found.chosen.query or 0) - self.found.added
        row, column = divmod(at, columns) if at >= 0 else (0, 0)
        row, column = row + down * (at >= 0), column + across * (at >= 0)
        if 0 <= row < rows and 0 <= column < columns:
            self._pick(self.found.added + row * columns + column)


def _overlay(capture: Capture, chosen: Selection, limits: Limits | None) -> Task[Overlay]:
    """The row of a query, coloured up to its own largest weight unless limits are chosen."""
    yield Step(0, 1)
    one, query = capture.maps[chosen.layer], chosen.query or 0
    assert one is not None
    row = one.read(chosen.head, rows=(query, query + 1))[0]
    rows, columns = (capture.prompt.signal.grid if capture.prompt.signal else None) or (1, 1)
    patches = row[len(row) - rows * columns :]
    ends = limits or palettes.limits_of(float(patches.min()), float(patches.max()), one.signed)
    return Overlay(capture, chosen, row, ends, one.signed)


__all__ = ["ImageCanvas", "ImageView"]
