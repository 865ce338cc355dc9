"""What people choose in a view of maps: query and key by pointer and arrows, and the scale."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from hgviz import palettes
from hgviz.core import Selection
from hgviz.gui.language import tr
from hgviz.gui.view import View
from hgviz.gui.widgets import Segments, arrow_of
from hgviz.session import Session, step_token

if TYPE_CHECKING:
    pass

CAPTURE = (("capture", "Capture this text"), ("open_sample", "Open the sample"))
SCALES = (("linear", "Linear", ""), ("sqrt", "√", ""), ("log", "Log", ""))


def scale_choice() -> Segments:
    """How weights become colours, to choose from; pointed at, each says its whole name."""
    out = Segments([(name, tr(words), icon) for name, words, icon in SCALES], wide=42)
    out.setToolTip(tr("How weights become colours"))
    out.setAccessibleName(tr("How weights become colours"))
    for name, label in palettes.SCALES.items():
        out.allow(name, True, tr(label))
    return out


class MapsView(View):
    """A view of one map or several; it filters the keys of what shows them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._pointed: tuple[int, int] | None = None  # the cell under the pointer

    def _follow(self) -> None:
        """Show what is looked at now."""
        raise NotImplementedError

    def _choose(self, selection: Selection) -> None:
        assert self.session is not None
        self._pointed = None
        self.session.put(hover=None, selection=selection)

    def _choose_scale(self, name: str) -> None:
        if self.session is not None:
            scale = cast(palettes.Scale, name)
            self.session.put(display=replace(self.session.display, scale=scale))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """On a map the arrows go where they point: the query runs down, the key across."""
        if isinstance(event, QKeyEvent):
            if event.type() == QEvent.Type.ShortcutOverride and arrow_of(event) is not None:
                event.accept()
                return True
            if event.type() == QEvent.Type.KeyPress and self._press(event):
                return True
        return super().eventFilter(watched, event)

    def _press(self, event: QKeyEvent) -> bool:
        if self.session is None:
            return False
        if (arrow := arrow_of(event)) is not None:
            self._choose(step_token(self.session, *arrow))
            return True
        return event.key() == Qt.Key.Key_Escape and self._escape(self.session)

    def _escape(self, session: Session) -> bool:
        """First the hover, then the selection."""
        if session.hover is not None or self._pointed is not None:
            self._choose(session.selection)
            self._follow()
        elif session.selection.key is not None or session.selection.query is not None:
            self._choose(replace(session.selection, query=None, key=None))
        else:
            return False
        return True


NOTHING = ("No attention to show yet", "Capture a text, and every head's map appears here.")
