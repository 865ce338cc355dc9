"""One view in a window of its own, off screen, everything drawn; and what it looks like."""

from __future__ import annotations

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
