"""The canvas of the Follow page: the way of a letter by stages, and what was clicked on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QToolTip

from hgviz.core import Capture
from hgviz.gui import theme
from hgviz.gui.follow import Pen
from hgviz.gui.ink import focus_ring
from hgviz.gui.language import tr
from hgviz.gui.sentences import quoted, shown
from hgviz.gui.views import words
from hgviz.gui.views.journey import Room, Strip, char_edges, lay
from hgviz.gui.views.stages import Stage
from hgviz.gui.views.strips import Story
from hgviz.gui.views.trace import Look, Trace

if TYPE_CHECKING:
    from hgviz.session import Session


class Trail(QAbstractScrollArea):
    """Paints the way of a letter, and says what was clicked."""

    picked = Signal(int)  # a token
    head_picked = Signal(object)  # HeadId

    def __init__(self) -> None:
        super().__init__()
        self.story: Story | None = None
        self._told: tuple[Capture, tuple[Stage, ...], Trace, Session] | None = None
        self._picture: tuple[int, float, QPixmap] | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Follow one letter"))
        self.viewport().setMouseTracking(True)
        self.verticalScrollBar().setSingleStep(24)

    @property
    def looks(self) -> tuple[Look, ...]:
        """What is shown at each stage."""
        return self.story.trace.looks if self.story is not None else ()

    def show_trace(
        self, capture: Capture, way: tuple[Stage, ...], trace: Trace, session: Session
    ) -> None:
        """Show one letter's way."""
        self._told = (capture, way, trace, session)
        self.rearrange()

    def rearrange(self) -> None:
        """Lay out again, for another letter or another size."""
        if self._told is None:
            return
        capture, way, trace, session = self._told
        view = self.viewport().size()
        mono = theme.mono(0.85)
        room = Room(
            view.width(),
            view.height(),
            left=_left(way),
            right=65 if any(one.kind == "last" or one.beside for one in way) else 24,
            char=QFontMetricsF(mono).horizontalAdvance("m"),
        )
        course = lay(capture, way, trace.token, char_edges(capture, trace.level), room)
        prompts = tuple(capture.prompt_of(one.index) for one in capture.spec.levels)
        self._picture = None
        noun = prompts[trace.level].unit
        self.story = Story(capture, way, course, trace, session.display, noun, prompts)
        name = quoted(shown(prompts[trace.level].label(trace.token)))
        self.setAccessibleDescription(f"{tr(noun)} {trace.token:,} {name}. {trace.sentence}")
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, round(course.height - view.height())))
        bar.setPageStep(view.height())
        self.viewport().update()

    def _walk(self, by: int) -> None:
        if self.story is not None:
            last = len(self.story.prompts[self.story.trace.level]) - 1
            self.picked.emit(max(0, min(last, self.story.trace.token + by)))

    # --- events -----------------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Keep the keys of this page from the window's shortcuts."""
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and event.key() in self._keys()
            and not event.modifiers()
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Follow the letter before or after by the arrows."""
        act = self._keys().get(event.key())
        if act is None or event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().keyPressEvent(event)
        else:
            act()

    def _keys(self) -> dict[int, Callable[[], None]]:
        return {
            Qt.Key.Key_Left: self._back,
            Qt.Key.Key_Right: self._forth,
        }

    def _back(self) -> None:
        self._walk(-1)

    def _forth(self) -> None:
        self._walk(1)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose a letter, or the head a stage shows."""
        if self.story is None or event.button() != Qt.MouseButton.LeftButton:
            return
        x, y = event.position().x(), event.position().y() + self.verticalScrollBar().value()
        found = self._at(x, y)
        if found is not None:
            strip, position = found
            levels, own = self.story.capture.spec.levels, self.story.trace.level
            if levels[strip.level].sequence == levels[own].sequence:
                self.picked.emit(int(self.story.capture.spans[strip.level][position][1]) - 1)
            return
        for number, look in enumerate(self.looks):
            if look.head is not None and self.story.head_box(number).contains(x, y):
                self.head_picked.emit(look.head)

    def _at(self, x: float, y: float) -> tuple[Strip, int] | None:
        if self.story is None:
            return None
        for strip in (*self.story.course.strips, self.story.course.together):
            position = strip.at(x, y)
            if position is not None:
                return strip, position
        return None

    def viewportEvent(self, event: QEvent) -> bool:
        """The weight of the cell under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            found = self._at(event.pos().x(), event.pos().y() + self.verticalScrollBar().value())
            said = self._said(*found) if found is not None else ""
            if said:
                QToolTip.showText(event.globalPos(), said, self)
            else:
                QToolTip.hideText()
            return True
        return super().viewportEvent(event)

    def _said(self, strip: Strip, position: int) -> str:
        story = self.story
        if story is None:
            return ""
        start, end = (int(one) for one in story.capture.spans[strip.level][position])
        prompt = story.prompts[strip.level]
        name = shown(prompt.label(start) if end - start == 1 else prompt.words(start, end))
        weights, seen = story.trace.together, story.seen
        if strip is not story.course.together:
            look = self.looks[story.course.strips.index(strip)]
            weights, seen = look.weights, look.seen
        if weights is None:
            return name
        if position >= seen:
            return tr("{name}: not seen, comes after the {unit}", name=name, unit=tr(story.noun))
        return f"{name} {words.weight(float(weights[position]), 3)}"

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out for the new size."""
        self.rearrange()

    def sizeHint(self) -> QSize:
        """The size of the design."""
        return QSize(1600, 890)

    def changeEvent(self, event: QEvent) -> None:
        """Another theme or font: paint anew."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self.rearrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the story from its picture."""
        with QPainter(self.viewport()) as painter:
            painter.fillRect(self.viewport().rect(), theme.current().pane)
            if self.story is None:
                return
            painter.translate(0, -self.verticalScrollBar().value())
            painter.drawPixmap(0, 0, self._painted(self.story))
            if self.hasFocus():
                painter.resetTransform()
                focus_ring(painter, QRectF(self.viewport().rect()))

    def _painted(self, story: Story) -> QPixmap:
        """The picture of a story; painting it takes longer than a frame, so it is kept."""
        ratio = self.devicePixelRatioF()
        if self._picture is None or self._picture[:2] != (id(story), ratio):
            size = QSizeF(story.course.width, story.course.height) * ratio
            pixels = QPixmap(size.toSize())
            pixels.setDevicePixelRatio(ratio)
            pixels.fill(theme.current().pane)
            painter = QPainter(pixels)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            Pen(painter, story).paint()
            painter.end()
            self._picture = (id(story), ratio, pixels)
        return self._picture[2]


def _left(way: tuple[Stage, ...]) -> int:
    noted = any(one.kind in ("own", "cross", "slots") for one in way)  # head 1.0 on the source
    return 184 if noted or any(one.beside for one in way) else 148
