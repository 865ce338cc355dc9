"""How the window is laid out: kept in the settings and in sessions, and reset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QSize

from hgviz.gui.window import SMALLEST
from hgviz.session.saved import Layout
from hgviz.settings import Settings

if TYPE_CHECKING:
    from hgviz.gui.inspect import InspectPage
    from hgviz.gui.window import Window


class Laying:
    """Reads and changes the layout of a window and of its Inspect page."""

    def __init__(self, frame: Window, page: InspectPage) -> None:
        self.frame, self.page = frame, page

    def restore(self, kept: Settings) -> None:
        """As it was when the window closed."""
        self.page.shown_at = kept.shown_at
        self.page.put_docks(kept.side)
        self.page.arrange(kept.panels)
        if kept.docks:
            self.page.across.restoreState(QByteArray.fromBase64(kept.docks.encode()))

    def kept(self) -> dict[str, object]:
        """What the settings keep of it."""
        return {
            "geometry": _text(self.frame.saveGeometry()),
            "docks": _text(self.page.across.saveState()),
            "panels": self.page.column.order,
            "side": self.page.side,
            "shown_at": self.page.shown_at,
        }

    def layout(self) -> Layout:
        """What a session keeps of it."""
        size, column = self.frame.normalGeometry().size(), self.page.column
        whole = self.frame.isMaximized() or self.frame.isFullScreen()
        widths = tuple(self.page.across.sizes()) if column.isVisible() else ()
        return Layout((size.width(), size.height()), whole, widths, column.order)

    def lay_out(self, wanted: Layout) -> None:
        """As a session has it, no larger than the screen."""
        frame, page = self.frame, self.page
        if wanted.size is not None and not (frame.isMaximized() or frame.isFullScreen()):
            if wanted.whole:
                frame.showMaximized()
            else:
                room = frame.screen().availableGeometry().size()
                frame.resize(QSize(*wanted.size).boundedTo(room).expandedTo(SMALLEST))
        if wanted.panels:
            page.arrange(wanted.panels)
        if len(wanted.across) == page.across.count() and page.column.isVisible():
            page.across.setSizes([*wanted.across])

    def reset(self) -> None:
        """As it is at first."""
        first = Settings()
        self.page.put_docks(first.side)
        self.page.arrange(first.panels)

    def turn(self) -> str:
        """Hide the docks, or show them where they were; gives the side they are at now."""
        if self.page.side == "hidden":
            self.page.put_docks(self.page.shown_at)
        else:
            self.page.put_docks("hidden")
        return self.page.side


def _text(state: QByteArray) -> str:
    return bytes(state.toBase64().data()).decode()


__all__ = ["Laying"]
