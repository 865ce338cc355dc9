"""What is said beneath a map: how much a pixel stands for, and how true it is by now."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QRectF, Qt, QTimer
from PySide6.QtGui import QPainter

from hgviz.gui import ink, theme
from hgviz.gui.language import tr
from hgviz.gui.views.mosaic import Quality
from hgviz.gui.views.viewport import Viewport
from hgviz.maps.pyramid import SIGNED_ERROR, UNSIGNED_ERROR

AFTER = 200  # ms: what is over before nobody needs to know
HIGH = 18  # px


class Footnote(QObject):
    """Says that a picture is not exact while that lasts; `changed` is called when it says so."""

    def __init__(self, parent: QObject, changed: Callable[[], None]) -> None:
        super().__init__(parent)
        self.words = ""
        self._quality: Quality = "exact"
        self._signed = False
        self._changed = changed
        self._wait = QTimer(self, singleShot=True, interval=AFTER)
        self._wait.timeout.connect(self._say)

    def judge(self, quality: Quality, signed: bool) -> None:
        """The picture is of such a quality from now on."""
        self._quality, self._signed = quality, signed
        if quality == "exact":
            self._wait.stop()
            self._say()
        elif self.words:
            self._say()
        elif not self._wait.isActive():
            self._wait.start()

    def draw(self, painter: QPainter, rect: QRectF, view: Viewport) -> None:
        """At the right beneath a map, in logical px."""
        each = f"{1 / view.down.scale:.3g}"
        size = tr("1 px = {each} × {each}, max", each=each) if view.down.scale < 1 else ""
        said = " · ".join(filter(None, (self.words, size)))
        if said:
            painter.setFont(theme.font(ink.AXIS))
            painter.setPen(theme.current().secondary)
            # a narrow map has room to its right
            box = QRectF(rect.right() - 400, rect.bottom() + 2, 400, HIGH)
            where = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop
            painter.drawText(box, where, said)

    def _say(self) -> None:
        said = {"exact": "", "near": self._near, "coarse": tr("coarser than it will be")}
        if said[self._quality] != self.words:
            self.words = said[self._quality]
            self._changed()

    @property
    def _near(self) -> str:
        error = SIGNED_ERROR if self._signed else UNSIGNED_ERROR
        return tr("within {error:.1f} % so far", error=100 * error)
