"""Views alone on screen, everything drawn; what they look like, and what is done to them."""

from contextlib import contextmanager

import numpy as np
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QTextDocument, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz.analysis.roles import roles
from hgviz.core import Selection
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.jobs import Lanes
from hgviz.gui.view import Notice
from hgviz.session import Session


@contextmanager
def showing(kind, session, width=592, height=714, visible=True):
    """A view of a session, drawn unless it is hidden; its lanes are closed at the end."""
    view, lanes = kind(), Lanes()
    view.resize(width, height)
    view.bind(session, lanes)
    if visible:
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
    """The same of a new session with such fields: (view, session)."""
    session = Session()
    session.put(**fields)
    with showing(kind, session, *size, visible=visible) as view:
        yield view, session


def session_of(capture, layer=12, head=5, query=60, facts=False):
    """A session with a capture and a selection in it."""
    session = Session()
    session.put(capture=capture)
    if facts:
        session.put(facts=roles(capture))
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


def shows_no_error(view):
    """Paint a view: whether it shows its picture, or what it lacks, and no error."""
    view.grab()
    return not any(one.isVisible() and one.content is None for one in view.findChildren(Notice))


def plain(html):
    """The words of rich text, without marks of direction and with plain spaces."""
    document = QTextDocument()
    document.setHtml(html)
    text = document.toPlainText().replace("\u2068", "").replace("\u2069", "")
    return text.replace("\u00a0", " ")


def busy(program):
    """Whether anything is waiting or running."""
    return program.session.job() is not None


def error_dialogs(program):
    """The error dialogs that are not hidden."""
    return [one for one in program.frame.findChildren(ErrorDialog) if not one.isHidden()]


def errors(program):
    """The errors that these dialogs show."""
    return [dialog.error for dialog in error_dialogs(program)]


def choose(picker, name):
    """Choose the entry of a combo box that has such data."""
    picker.setCurrentIndex(picker.findData(name))


def wheel(widget, place, notches):
    """Turn the wheel over a place of a widget; whether the widget took it."""
    place = QPointF(place)
    event = QWheelEvent(
        place, widget.mapToGlobal(place), QPoint(), QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)
    return event.isAccepted()


def drag(widget, start, end, button=Qt.MouseButton.LeftButton):
    """Press the mouse at one place of a widget, move it, and let go at another."""
    QTest.mousePress(widget, button, pos=start)
    for part in (0.3, 0.7, 1.0):
        QTest.mouseMove(widget, start + (end - start) * part)
    QTest.mouseRelease(widget, button, pos=end)


# --- charts ---------------------------------------------------------------------------------------


def place_in(chart, x, y):
    """Where values of the first plot of a chart are, in px of its view."""
    QApplication.processEvents()
    place = chart.plots[0].place(x, y)
    return QPoint(round(place.x()), round(place.y()))


def point_at(chart, place):
    """Move the pointer over a chart to a place of its view."""
    QTest.mouseMove(chart.view.viewport(), place + QPoint(3, 3))
    QTest.mouseMove(chart.view.viewport(), place)


def click_chart(chart, place, twice=False):
    """Click a place of the view of a chart, once or twice."""
    left, view = Qt.MouseButton.LeftButton, chart.view.viewport()
    QTest.mouseClick(view, left, pos=place)
    if twice:
        QTest.mouseDClick(view, left, pos=place)
        QTest.mouseRelease(view, left, pos=place)
