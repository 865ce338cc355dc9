"""What a monkey does with its hands: keys, the mouse, and what it types and finds under them."""

from collections import deque
from contextlib import suppress

import numpy as np
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QKeySequence, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QFileDialog,
    QLineEdit,
    QPlainTextEdit,
    QWidget,
)
from shiboken6 import isValid

from hgviz.gui.dialogs import Form
from hgviz.gui.program import Program
from hgviz.gui.window import SMALLEST

KEYS = (
    "Tab", "Return", "Esc", "Space", "Left", "Right", "Up", "Down", "Home", "End", "PgUp",
    "PgDown", "Del", "F6", "F1", "+", "-", "/", "0", "1", "9", *"ABCDFHJKLNSTUWXZ",
)  # fmt: skip
HELD = ("", "", "", "", "Shift+", "Ctrl+", "Alt+", "Ctrl+Shift+")
TYPED = ("x", "hourglass", "12.5, 4.*", "", "0", "나는 \U0001f600", "<b>x</b>", "a" * 300, "1:2")
SIZES = ((1100, 700), (1280, 800), (1600, 1000), (1920, 1080), (2200, 700))


class Hands:
    """At the window of a program. log: the last ten things done, with the number of the step."""

    program: Program
    random: np.random.Generator
    log: deque[str]
    number = 0
    _closed = False

    def say(self, words: str) -> None:
        """Note what is about to be done."""
        self.log.append(f"{self.number}: {words}")

    def key(self) -> None:
        """Press a key, or a few."""
        for _ in range(self.random.integers(1, 5)):
            target = self._typed_to()
            if target is None or isinstance(target.window(), QFileDialog):
                return
            keys = self._one_of(HELD) + self._one_of(KEYS)
            self.say(f"key {keys} to {name_of(target)}")
            QTest.keySequence(target, QKeySequence(keys))
            if self._closed:
                return

    def type(self) -> None:
        """Type something where something is typed."""
        fields = [one for one in self._inside() if isinstance(one, QLineEdit | QPlainTextEdit)]
        if not fields:
            return self.key()
        field, text = self._one_of(fields), self._one_of(TYPED)
        self.say(f"type {text[:12]!r} into {name_of(field)}")
        if field.isEnabled() and not field.isReadOnly():
            field.setFocus()
            field.selectAll()
            field.insert(text) if isinstance(field, QLineEdit) else field.insertPlainText(text)

    def click(self) -> None:
        """Click a widget, or drag over it, in its middle or anywhere."""
        one, at = self._place()
        if one is None:
            return
        right = self.random.random() < 0.15
        button = Qt.MouseButton.RightButton if right else Qt.MouseButton.LeftButton
        held = self._one_of((*[Qt.KeyboardModifier.NoModifier] * 4,
                             Qt.KeyboardModifier.ShiftModifier,
                             Qt.KeyboardModifier.ControlModifier))  # fmt: skip
        how = self.random.random()
        self.say(f"{'drag' if how < 0.2 else 'click'} {name_of(one)} at {at.x()}, {at.y()}")
        if how < 0.2:
            with suppress(RuntimeError):
                QTest.mousePress(one, button, held, at)
            for _ in range(3):
                with suppress(RuntimeError):  # what is dragged may have gone meanwhile
                    at = QPoint(*(int(self.random.integers(-9, max(1, side) + 9))
                                  for side in (one.width(), one.height())))  # fmt: skip
                    QTest.mouseMove(one, at)
            with suppress(RuntimeError):
                QTest.mouseRelease(one, button, held, at)
        else:
            with suppress(RuntimeError):
                press = QTest.mouseDClick if how < 0.3 else QTest.mouseClick
                press(one, button, held, at)

    def hover(self) -> None:
        """Move the pointer over something."""
        one, at = self._place()
        if one is not None:
            self.say(f"hover over {name_of(one)} at {at.x()}, {at.y()}")
            with suppress(RuntimeError):
                QTest.mouseMove(one, at)

    def wheel(self) -> None:
        """Turn the wheel over something, with Ctrl or without."""
        one, at = self._place()
        if one is None:
            return
        turn = QPoint(0, int(self._one_of((-360, -120, 120, 360))))
        held = self._one_of((Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier))
        self.say(f"wheel {turn.y()} over {name_of(one)} at {at.x()}, {at.y()}")
        with suppress(RuntimeError):
            event = QWheelEvent(
                QPointF(at), QPointF(one.mapToGlobal(at)), QPoint(), turn, Qt.MouseButton.NoButton,
                held, Qt.ScrollPhase.NoScrollPhase, False,
            )  # fmt: skip
            QApplication.sendEvent(one, event)

    def resize(self) -> None:
        """Give the window another size."""
        wide, high = self._one_of(SIZES)
        self.say(f"resize {wide} x {high}")
        assert wide >= SMALLEST.width() and high >= SMALLEST.height()
        self.program.frame.showNormal()
        self.program.frame.resize(wide, high)

    # --- what is there ----------------------------------------------------------------------------

    def _dialog(self) -> QFileDialog | Form | None:
        frame = self.program.frame
        asked = [one for one in frame.findChildren(QFileDialog) if one.isVisible()]
        shown = [one for one in frame.findChildren(Form) if one.isVisible()]
        return (asked or shown or [None])[-1]

    def _top(self) -> QWidget | None:
        """What takes the mouse; None while a file is asked for, whose buttons change the disk."""
        if isinstance(self._dialog(), QFileDialog):
            return None
        return QApplication.activePopupWidget() or self._dialog() or self.program.frame

    def _inside(self) -> list[QWidget]:
        top = self._top()
        return [one for one in top.findChildren(QWidget) if one.isVisible()] if top else []

    def _place(self) -> tuple[QWidget | None, QPoint]:
        """A widget that can be seen, and a point in it."""
        top = self._top()
        if top is None:
            return None, QPoint()
        if self.random.random() < 0.5:  # what something comes of
            wants = (QAbstractButton, QComboBox)
            some = [one for one in self._inside() if isinstance(one, wants) and one.isEnabled()]
            some = [one for one in some if not one.visibleRegion().isEmpty()]
            if some:
                one = self._one_of(some)
                return one, one.visibleRegion().boundingRect().center()
        at = QPoint(int(self.random.integers(top.width())), int(self.random.integers(top.height())))
        one = top.childAt(at)
        if one is None or not isValid(one):  # a list that is being deleted,
            one = top
        if not isValid(one):  # or what held it
            return None, QPoint()
        return one, one.mapFrom(top, at)

    def _typed_to(self) -> QWidget | None:
        popup = QApplication.activePopupWidget()
        return popup or QApplication.focusWidget() or self._top()

    def _one_of(self, some):
        return some[int(self.random.integers(len(some)))]


def name_of(one: QWidget) -> str:
    """A widget as people would call it; some go between being found and being used."""
    if not isValid(one):
        return "what has gone"
    words = one.accessibleName() or (one.text() if isinstance(one, QAbstractButton) else "")
    return f"{type(one).__name__} {words[:24]!r}" if words else type(one).__name__


__all__ = ["Hands", "name_of"]
