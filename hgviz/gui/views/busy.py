"""That a pane is at work: a bar, then how far it is, how long it takes, and Stop."""

from __future__ import annotations

import time

from PySide6.QtCore import QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QWidget

from hgviz.core import Step
from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.views.words import percent
from hgviz.gui.widgets import Button, PaneHead, Words

BAR_AFTER, WORDS_AFTER = 200, 1000  # ms: shorter work shows nothing at all
BAR, HIGH, EDGE = 2, 30, 6  # px


class Busy(QWidget):
    """Nothing under 200 ms, then a 2 px bar along the top, after 1 s words with per cent, and Stop.

    What is stopped says how far it came until it goes on.
    """

    stopped = Signal()
    resumed = Signal()

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self._part = 0.0
        self._began = 0.0
        self._held = False
        self.told = QFrame(over)  # no child of the bar: what lies under that is pointed at
        self.told.setProperty("kind", "card")
        self._words = Words(factor=0.92, kind="secondary")
        self._words.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self.button = Button(tr("Stop"), "stop", kind="link")
        self.button.clicked.connect(self._pressed)
        row = QHBoxLayout(self.told)
        row.setContentsMargins(12, 1, 4, 1)
        row.addWidget(self._words, 1)
        row.addWidget(self.button)
        self.told.hide()
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._appear)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def begin(self) -> None:
        """Work was handed over."""
        self._began, self._part, self._held = time.monotonic(), 0.0, False
        self.told.hide()
        if not self.isVisible():
            self._timer.start(BAR_AFTER)

    def step(self, step: Step) -> None:
        """So much is done."""
        self._part = step.done / step.total if step.total else 0.0
        spent = time.monotonic() - self._began
        if self.isVisible() and spent * 1000 > WORDS_AFTER:
            left = spent * (1 - self._part) / self._part if self._part else None
            said = (tr(step.note), self._per_cent, time_left(left))
            self._say(" · ".join(filter(None, said)))
        self.update()

    def hold(self, kept: bool) -> None:
        """The work was stopped by hand; kept: whether a part of the picture is there."""
        self._timer.stop()
        self._held = True
        if kept:
            words = tr("Stopped at {percent}: this is a part of it", percent=self._per_cent)
        else:
            words = tr("Stopped at {percent}: nothing is drawn yet", percent=self._per_cent)
        self._say(words)

    def stop(self) -> None:
        """The work is over."""
        self._timer.stop()
        self.hide()
        self.told.hide()

    def place(self) -> None:
        """The bar along the top of the pane, the words at its right, under its head."""
        over = self.parentWidget()
        self.setGeometry(QRect(0, 0, over.width(), BAR))
        heads = (one for one in over.findChildren(PaneHead) if one.isVisible())
        top = max((one.mapTo(over, one.rect().bottomLeft()).y() for one in heads), default=0)
        size = self.told.layout().sizeHint() + QSize(2 * EDGE, 0)  # what frames take
        size = size.boundedTo(over.size() - QSize(2 * EDGE, 0))
        top = top if top < over.height() // 3 else 0  # the head of a pane, not one further down
        self.told.setGeometry(over.width() - size.width() - EDGE, top + EDGE, size.width(), HIGH)

    @property
    def _per_cent(self) -> str:
        return percent(f"{100 * self._part:.0f}")

    def _say(self, words: str) -> None:
        self._words.say(words)
        self._words.setVisible(bool(words))
        button = tr("Go on") if self._held else tr("Stop")
        if self.button.text() != button:
            self.button.setText(button)
            self.button.wear("arrow-right" if self._held else "stop")
        self.place()
        for one in (self, self.told):
            one.show()
            one.raise_()

    def _pressed(self) -> None:
        (self.resumed if self._held else self.stopped).emit()

    def _appear(self) -> None:
        """The bar; later Stop, though nobody knows how far it is."""
        if self.isVisible():
            if self.told.isHidden():
                self._say("")
            return
        self.place()
        self.show()
        self.raise_()
        self._timer.start(WORDS_AFTER - BAR_AFTER)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The bar; the part that is done is blue."""
        now = theme.current()
        with QPainter(self) as painter:
            painter.fillRect(0, 0, self.width(), 2, now.hover)
            painter.fillRect(0, 0, max(24, round(self.width() * self._part)), 2, now.press)


def time_left(seconds: float | None, short: bool = False) -> str:
    """Such as "about 20 s left", short "20 s"; or nothing while nobody can know."""
    if seconds is None:
        return ""
    if seconds < 90:
        amount = tr("{n} s", n=max(1, round(seconds)))
    else:
        amount = tr("{n} min", n=round(seconds / 60))
    return amount if short else tr("about {time} left", time=amount)
