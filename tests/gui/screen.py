"""Views alone on screen, everything drawn, and what they look like."""

from contextlib import contextmanager

import numpy as np
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from hgviz.analysis.heads import measure
from hgviz.core import Selection, finish
from hgviz.gui.jobs import Lanes
from hgviz.session import Session


@contextmanager
def showing(kind, session, width=592, height=714):
    """A view bound to a session, shown and settled."""
    view, lanes = kind(), Lanes()
    view.resize(width, height)
    view.bind(session, lanes)
    view.show()
    QApplication.processEvents()
    view.settle()
    view.settle()  # the first one may have changed the layout, and with it what is asked
    try:
        yield view
    finally:
        view.unbind()
        lanes.close()
        view.close()
        view.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


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


def session_of(capture, layer=12, head=5, query=60, facts=False):
    """A session with a capture and a selection in it."""
    session = Session()
    session.put(capture=capture)
    if facts:
        session.put(facts=finish(measure(capture)))
    session.put(selection=Selection(layer, head, query))
    return session


def picture(widget):
    """What a widget looks like: (height, width, 3) bytes of red, green and blue."""
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    return rows[:, : 3 * image.width()].reshape(image.height(), image.width(), 3).copy()


def colour_at(view, x, y):
    """The colour of a logical pixel of a widget, red, green, blue."""
    return view.grab().toImage().pixelColor(round(x), round(y)).getRgb()[:3]
