"""A desk with a short text, at which figures are wanted, and the dialog that is opened there."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QBuffer, QCoreApplication, QEvent
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget

from hgviz import tasks
from hgviz.core import Selection, Step
from hgviz.figures import Spec, points
from hgviz.figures.preview import Preview
from hgviz.gui.export import ExportDialog
from hgviz.gui.jobs import Lanes
from hgviz.session import Session
from tests.making import make_capture

TEXT = "The hourglass was used at sea. When the sand had run down, it was turned."


@pytest.fixture(scope="module")
def short():
    return make_capture(TEXT, strides=(1, 2), heads=3)


class Desk:
    """A window without panes, a session, and lanes: all that the dialog needs."""

    def __init__(self, **fields):
        self.frame, self.session, self.lanes = QWidget(), Session(), Lanes()
        self.session.put(**fields)
        self.frame.resize(1600, 1000)
        self.frame.show()

    def close(self):
        self.lanes.close()
        self.frame.close()
        self.frame.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def drawn(app, short):
    """A desk with a short text, a head, a query and a key."""
    one = Desk(capture=short, selection=Selection(4, 2, 40, 20))
    yield one
    one.close()


@pytest.fixture
def quick(drawn, monkeypatch):
    """The same where no test looks at what is drawn: blank pages of the width that is asked."""

    def blank(ready, dots):
        yield Step(0, 1)
        wide = points(ready.spec.width)
        png = QBuffer()
        image = QImage(round(wide / 72 * dots), 100, QImage.Format.Format_RGB32)
        image.save(png, "PNG")
        return Preview(png.data().data(), dots, wide, 100 / dots * 72, 6.5, ())

    monkeypatch.setattr(tasks, "preview", blank)
    return drawn


def exporting(drawn, **more):
    """The dialog of the map."""
    session = drawn.session
    spec = Spec("map", session.selection, session.display)
    dialog = ExportDialog(drawn.frame, session, drawn.lanes, [spec], **more)
    dialog.open()
    return dialog


def shown(dialog):
    return dialog.preview.sheet.picture is not None and not dialog._wait.isActive()


def choose(picker, name):
    picker.setCurrentIndex(picker.findData(name))
