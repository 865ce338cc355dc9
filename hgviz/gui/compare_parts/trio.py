"""A, B and A − B side by side at equal size: what moves in one moves in all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QStyle, QWidget

from hgviz.gui.compare_parts import pane
from hgviz.gui.compare_parts.lack import LackCard
from hgviz.gui.compare_parts.pane import Pane
from hgviz.gui.grid import Written
from hgviz.gui.opened import Lack, There
from hgviz.gui.tiles import Tiles
from hgviz.gui.views.crosshair import Cross
from hgviz.gui.views.picture import Scene
from hgviz.gui.views.viewport import Viewport
from hgviz.gui.widgets import label

NAMES = ("A", "B", "A − B")
SEAT = 34  # px over each map
LOW = 430  # px of height: the words above the maps give way
ROOMIER = 48  # px more than that where maps leave room
SIGN = 28  # px between a gutter and the next map, with a sign in it
BLINK = 500  # ms that A or B is shown
SMALLEST = 64  # px of a map


class Trio(QWidget):
    """Three panes, a seat over each for what names it, and a minus and an equals sign."""

    moved = Signal()  # another part is on screen

    def __init__(self, cache: Tiles) -> None:
        super().__init__()
        written = Written()
        self.panes = tuple(Pane(cache, name, written) for name in NAMES)
        self.seats = tuple(_seat() for _ in NAMES)
        self._signs: tuple[QLabel, ...] = (label("−", factor=1.3), label("=", factor=1.3))
        for one in (*self.panes, *self.seats, *self._signs):
            one.setParent(self)
        for one in self.panes:
            one.turned = self.look
        self.panes[0].small_map = True
        for one in self._signs:
            one.setAlignment(Qt.AlignmentFlag.AlignCenter)
            one.resize(SIGN, 24)
        self._lacks = tuple(LackCard(one) for one in self.panes[1:])
        self._scenes: tuple[Scene, ...] = ()
        self._blinks = False
        self._blinking = QTimer(self, interval=BLINK)
        self._blinking.timeout.connect(self._swap)
        self._other = False  # whether B is the one of the two that is shown
        self._worded_b = False

    @property
    def view(self) -> Viewport | None:
        """The part on screen."""
        return self.panes[0].view

    @property
    def blinking(self) -> bool:
        """Whether A and B take turns in one place."""
        return self._blinks

    def show_scenes(self, scenes: Sequence[Scene], there: Sequence[There], worded_b: bool) -> None:
        """Show two heads and their difference; the part on screen stays where the shape does.

        there: what each of the three has anything in. worded_b: whether the rows of B are called
        otherwise than those of A.
        """
        masses = [one.mass for one in scenes if one.mass is not None]
        most = max((float(np.abs(one).max(initial=0)) for one in masses), default=0.0)
        for one, has in zip(self.panes, there, strict=True):
            one.there, one.most = has, most
        self._scenes = tuple(scenes)
        if worded_b != self._worded_b:
            self._worded_b = worded_b
            self.arrange()
        view = self.view
        shape = scenes[0].source.shape
        if view is None:
            view = self._fitted(shape)
        view = view.of(shape)
        for one, scene in zip(self.panes, scenes, strict=True):
            one.take(scene, view)
        self.moved.emit()

    def look(self, view: Viewport) -> None:
        """All look there."""
        for one in self.panes:
            one.turn(view)
        self._place_lacks()
        self.moved.emit()

    def lack(self, b: Lack, least: Lack) -> None:
        """Say in the places of B and of A − B why they are not there; a card hides all of one."""
        for one, card, lack in zip(self.panes[1:], self._lacks, (b, least), strict=True):
            card.setVisible(lack is not None)
            reached = Qt.FocusPolicy.StrongFocus if lack is None else Qt.FocusPolicy.NoFocus
            one.setFocusPolicy(reached)  # what is not there has nothing to walk on
            if lack is not None:
                card.say(*lack)
                one.scene = None
                one.update()
        self._place_lacks()

    def fit(self) -> None:
        """The whole maps."""
        if self._scenes:
            self.look(self._fitted(self._scenes[0].source.shape))

    def point(self, crosses: Sequence[Cross], cards: Sequence[str]) -> None:
        """The cursor in all three, and what is said beside it."""
        for one, cross, card in zip(self.panes, crosses, cards, strict=True):
            one.card.say(card)
            one.point(cross)
            one.say("", card)

    def reveal(self, row: int | None, column: int | None) -> None:
        """Move just as far as it takes to have a cell on screen."""
        self.panes[0].reveal(row, column)

    def blink(self, on: bool) -> None:
        """Show A and B in turn in one place, or beside each other again. Asked for once more it
        turns at once, and only so where nothing may move by itself."""
        if on and self.blinking:
            self._swap()
        if on == self.blinking:
            return
        self._blinks, self._other = on, False
        self._run(on and self.isVisible())
        self.arrange()
        self._show_turn()

    # --- where everything is ----------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give all three the same room."""
        self.arrange()

    def changeEvent(self, event: QEvent) -> None:
        """Another screen."""
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self.arrange()
        super().changeEvent(event)

    def arrange(self) -> None:
        """Side by side, or A − B below the two where that makes all of them larger."""
        wide, stacked = self._row(), self._stack()
        side, corners = max(wide, stacked, key=lambda one: one[0])
        ratio = self.devicePixelRatioF()
        for number, (one, seat, corner) in enumerate(
            zip(self.panes, self.seats, corners, strict=True)
        ):
            one.worded, one.top = self._has_words(number, corners), self._top
            one.space = max(8, int(side * ratio)), max(8, int(side * ratio))
            left = one.left
            one.setGeometry(
                corner.x() - left, corner.y() + SEAT,
                left + side + pane.RIGHT, self._top + side + pane.BOTTOM,
            )  # fmt: skip
            seat.setGeometry(corner.x(), corner.y(), side + pane.RIGHT - 8, SEAT)
        self._place_signs(side, corners)
        view = self.view
        if view is not None and self._scenes:
            self.look(view.resized(self.panes[0].space, ratio))

    def _place_lacks(self) -> None:
        """Each card where a map would be, as large as that of A."""
        size = self.panes[0].map_rect.size().toSize()
        for card, one in zip(self._lacks, self.panes[1:], strict=True):
            card.setGeometry(QRect(QPoint(one.left, one.top), size))

    def _row(self) -> tuple[int, tuple[QPoint, ...]]:
        """Side by side: how large each is, and where its seat begins."""
        count = 2 if self.blinking else 3
        margins = [pane.LEFT, *[SIGN + (pane.LEFT if self._worded_b else 0), SIGN][: count - 1]]
        width = (self.width() - sum(margins) - count * pane.RIGHT) // count
        side = self._square(width, self.height())
        spare = self.width() - sum(margins) - count * (side + pane.RIGHT)
        margins[1:] = [one + min(ROOMIER, max(0, spare) // count) for one in margins[1:]]
        lefts, x = [], 0
        for margin in margins:
            x += margin
            lefts.append(x)
            x += side + pane.RIGHT
        if self.blinking:
            lefts.insert(0, lefts[0])
        return side, tuple(QPoint(left, 0) for left in lefts)

    def _stack(self) -> tuple[int, tuple[QPoint, ...]]:
        """A − B below A and B."""
        if self.blinking:
            return 0, ()
        between = SIGN + (pane.LEFT if self._worded_b else 0)
        width = (self.width() - pane.LEFT - between - 2 * pane.RIGHT) // 2
        side = self._square(width, self.height() // 2)
        left = pane.LEFT + side + pane.RIGHT + between
        down = SEAT + self._top + side + pane.BOTTOM
        return side, (QPoint(pane.LEFT, 0), QPoint(left, 0), QPoint(pane.LEFT, down))

    def _square(self, width: int, height: int) -> int:
        return max(SMALLEST, min(width, height - SEAT - self._top - pane.BOTTOM))

    @property
    def _top(self) -> int:
        """Px for the words above each map."""
        return pane.LOW_TOP if self.height() < LOW else pane.TOP

    def _has_words(self, number: int, corners: tuple[QPoint, ...]) -> bool:
        """A names its rows, B where they are others, A − B where it stands at the left."""
        if number == 1:
            return self._worded_b or self.blinking
        return number == 0 or corners[2].x() == corners[0].x()

    def _place_signs(self, side: int, corners: tuple[QPoint, ...]) -> None:
        """A minus between A and B, an equals sign before A − B; none while A and B blink."""
        for number, (sign, one) in enumerate(zip(self._signs, self.panes[1:], strict=True)):
            sign.setVisible(not self.blinking and (one is self.panes[1] or not one.worded))
            before = self.panes[number].geometry().right() - pane.GAP
            x = (before + one.x() + (0 if one.worded else pane.BARE) - sign.width()) // 2
            sign.move(x, one.y() + self._top + side // 2 - sign.height() // 2)

    def _fitted(self, shape: tuple[int, int]) -> Viewport:
        return Viewport.fitted(shape, self.panes[0].space, self.devicePixelRatioF())

    # --- blinking ---------------------------------------------------------------------------------

    def _swap(self) -> None:
        self._other = not self._other
        self._show_turn()

    def _show_turn(self) -> None:
        shown = (not self.blinking or not self._other, not self.blinking or self._other)
        for one, seat, there in sorted(
            zip(self.panes, self.seats, shown, strict=False), key=lambda turn: not turn[2]
        ):  # first what comes, which takes the keyboard from what goes
            if not there and one.hasFocus():
                self.panes[shown.index(True)].setFocus()
            one.setVisible(there)
            seat.setVisible(there)

    def showEvent(self, event: QShowEvent) -> None:
        """Go on blinking."""
        self._run(self._blinks)
        super().showEvent(event)

    def _run(self, on: bool) -> None:
        """Turn by itself or not; never where the system asks for less motion."""
        hint = QStyle.StyleHint.SH_Widget_Animation_Duration
        if on and self.style().styleHint(hint, None, self) > 0:
            self._blinking.start()
        else:
            self._blinking.stop()

    def hideEvent(self, event: QHideEvent) -> None:
        """Nothing blinks where nobody looks."""
        self._blinking.stop()
        super().hideEvent(event)


def _seat() -> QWidget:
    out = QWidget()
    row = QHBoxLayout(out)
    row.setContentsMargins(0, 4, 0, 4)
    row.setSpacing(8)
    return out
