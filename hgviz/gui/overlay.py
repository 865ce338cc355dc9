"""What floats over the window: a card on a scrim, which keeps the keyboard until it is closed."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QFrame,
    QGraphicsDropShadowEffect,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.widgets import Button

MARGIN = 24  # px of scrim that always shows around a card
RETURN = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class Overlay(QWidget):
    """A card over the window. A subclass fills `card`; `default` is what Return presses."""

    closed = Signal()
    wide = 560  # px
    top_part = 0.5  # where the free height goes: 0.5 centres, less moves up

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self.default: QPushButton | None = None
        self.card = QFrame(self)
        self.card.setProperty("kind", "float")
        self.body = QVBoxLayout(self.card)
        self.body.setContentsMargins(24, 20, 24, 16)
        self.body.setSpacing(8)
        shadow = QGraphicsDropShadowEffect(self.card)
        shadow.setBlurRadius(40)
        shadow.setOffset(0, 8)
        shadow.setColor(theme.current().scrim)
        self.card.setGraphicsEffect(shadow)
        self._before = QApplication.focusWidget()
        self.hide()

    def open(self) -> None:
        """Show it over the whole window and take the keyboard."""
        self.parentWidget().installEventFilter(self)
        self.setGeometry(self.parentWidget().rect())
        self.show()
        self.raise_()
        self.place()
        self._app.focusChanged.connect(self._keep_keyboard)
        if not self.isAncestorOf(QApplication.focusWidget() or self):
            self._take_keyboard()

    def offer(self, default: QPushButton) -> None:
        """End the card with the button that does it, and Cancel."""
        self.default = default
        cancel = Button(tr("Cancel"))
        cancel.clicked.connect(self.finish)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(default)
        row.addWidget(cancel)
        self.body.addSpacing(12)
        self.body.addLayout(row)

    def finish(self) -> None:
        """Close, and give the keyboard back to where it was."""
        if self.isVisible():
            self.leave()
            self.closed.emit()
            self.deleteLater()

    def leave(self) -> None:
        """Hide, to be opened again, and give the keyboard back to where it was."""
        self.parentWidget().removeEventFilter(self)
        self._app.focusChanged.disconnect(self._keep_keyboard)
        self.hide()
        before = self._before  # which may be gone by now, with the dialog that it was part of
        if before is not None and isValid(before) and before.isVisible():
            before.setFocus(Qt.FocusReason.PopupFocusReason)

    def place(self) -> None:
        """Put the card where it belongs, never larger than the window."""
        wide = min(self.wide, self.width() - 2 * MARGIN)
        self.card.setFixedWidth(wide)
        self.card.layout().activate()
        need = self.card.layout().totalHeightForWidth(wide)
        need = max(need, self.card.layout().totalMinimumSize().height())
        if need <= 0:
            need = self.card.sizeHint().height()
        high = min(need, self.height() - 2 * MARGIN)
        top = max(MARGIN, round((self.height() - high) * self.top_part))
        self.card.setGeometry((self.width() - wide) // 2, top, wide, high)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the window's size, and have the keys that nobody in the window has."""
        if watched is not self.parentWidget():
            return False
        if event.type() == QEvent.Type.Resize:
            self.setGeometry(self.parentWidget().rect())
            self.place()
        elif event.type() in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress):
            QApplication.sendEvent(self, event)
            return True
        return False

    @property
    def _app(self) -> QApplication:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        return app

    def _keep_keyboard(self, _: QWidget | None, now: QWidget | None) -> None:
        """Take the keyboard back from what lies beneath: the window gives it there once it is
        active again after a file dialog."""
        above = now
        while above is not None and not isinstance(above, Overlay):
            above = above.parentWidget()
        window = self.window()
        if now is not None and above is None and now is not window and now.window() is window:
            self._take_keyboard()

    def _take_keyboard(self) -> None:
        first = self.default or next(iter(self._stops()), None)
        if first is not None:
            first.setFocus(Qt.FocusReason.PopupFocusReason)

    def event(self, event: QEvent) -> bool:
        """Keep the window's shortcuts away while it is open, and its own keys once it is not."""
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        if event.type() == QEvent.Type.KeyPress and self.isHidden():
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape closes, Return presses the default button."""
        if event.key() == Qt.Key.Key_Escape:
            self.finish()
        elif event.key() in RETURN:
            here = QApplication.focusWidget()
            button = here if isinstance(here, QAbstractButton) else self.default
            if button is not None and button.isEnabled():
                button.click()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click beside the card closes it."""
        if not self.card.geometry().contains(event.position().toPoint()):
            self.finish()

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Tab goes round inside the card."""
        stops = self._stops()
        if stops:
            here = QApplication.focusWidget()
            at = stops.index(here) if here in stops else -1
            to = stops[(at + (1 if forward else -1)) % len(stops)]
            to.setFocus(Qt.FocusReason.TabFocusReason)
            for area in self.card.findChildren(QScrollArea):
                if area.isAncestorOf(to):
                    area.ensureWidgetVisible(to)
        return True

    def paintEvent(self, event: QPaintEvent) -> None:
        """The scrim."""
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), theme.current().scrim)

    def _stops(self) -> list[QWidget]:
        return [
            one
            for one in self.card.findChildren(QWidget)
            if one.focusPolicy() & Qt.FocusPolicy.TabFocus and one.isVisible() and one.isEnabled()
        ]


def ctrl_return(event: QKeyEvent) -> bool:
    """Whether Ctrl+Return was pressed: Ctrl by itself has its own modifier, too, and is not."""
    held = event.modifiers() & Qt.KeyboardModifier.ControlModifier
    return event.key() in RETURN and bool(held)
