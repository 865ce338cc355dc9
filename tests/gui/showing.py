"""Views on screen, with lanes that are closed again."""

from __future__ import annotations

from contextlib import contextmanager

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication

from hgviz.gui.jobs import Lanes
from hgviz.session import Session


@contextmanager
def shown(kind, size=(704, 713), visible=True, **fields):
    """A view of a session with such fields, everything drawn; (view, session)."""
    lanes, session, view = Lanes(), Session(), kind()
    view.resize(*size)
    session.put(**fields)
    view.bind(session, lanes)
    if visible:
        view.show()
        QApplication.processEvents()
        view.settle()
    try:
        yield view, session
    finally:
        view.unbind()
        lanes.close()
        view.close()
        view.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def colour_at(view, x, y):
    """The colour of a logical pixel of a widget, red, green, blue."""
    return view.grab().toImage().pixelColor(round(x), round(y)).getRgb()[:3]
