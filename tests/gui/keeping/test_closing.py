"""Closing asks where something would be lost; what runs shows, and stops, on every page."""

from types import SimpleNamespace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz.core import HeadId, Step
from hgviz.gui.jobchip import JobsPopup
from hgviz.gui.sessions import ClosingDialog, losses
from hgviz.study import Mask

CTRL = Qt.KeyboardModifier.ControlModifier


def forever(total=10):
    for at in range(10**9):
        yield Step(min(at * 0.001, total / 2), total, "on the way")


def start(program, key="report", title="Report on A and B", lasting=False):
    lane = program.lanes.facts
    program.commands.working.start(lane, key, title, forever(), print, keeps="keeps nothing",
                                   lasting=lasting)  # fmt: skip


@pytest.fixture
def asked(opened):
    """The dialog after Ctrl+Q, None where the window closed."""

    def ask():
        QTest.keyClick(opened.frame, Qt.Key.Key_Q, CTRL)
        QApplication.processEvents()
        found = [one for one in opened.frame.findChildren(ClosingDialog) if one.isVisible()]
        return found[0] if found else None

    return ask


def test_nothing_is_asked_where_nothing_would_be_lost(opened, asked):
    opened.session.put(masks=(Mask("a", frozenset({HeadId(0, 0)})),))  # the session comes back
    assert asked() is None and not opened.frame.isVisible()


def test_work_that_is_not_done_is_asked_about(opened, asked, until):
    start(opened)
    until(lambda: opened.session.work[-1].state == "running")
    dialog = asked()
    assert opened.frame.isVisible() and dialog is not None
    QTest.keyClick(dialog.default, Qt.Key.Key_Return)  # stay
    assert opened.frame.isVisible() and opened._open
    dialog = asked()
    dialog._confirm()
    assert not opened.frame.isVisible() and not opened._open


def test_what_would_be_lost_is_said(opened):
    session, working = opened.session, opened.commands.working
    assert losses(session, working, True) == ()
    session.put(masks=(Mask("a", frozenset()), Mask("b", frozenset())))
    assert losses(session, working, False) == ("2 masks with a name.",)
    lasts = SimpleNamespace(lasts=lambda key: True)
    start(opened, "save x", "Saving x")
    assert losses(session, lasts, True) == ()
    assert losses(session, working, True)[0].startswith("Not done yet: saving x")
    working.stop("save x")
    start(opened, "capture", "Capturing 20 letters")  # the next start captures them again
    assert losses(session, working, True) == ()
    working.stop("capture")


@pytest.mark.parametrize("page", ["follow", "compare"])
def test_a_job_shows_and_stops_on_every_page(opened, page, until, monkeypatch):
    opened.session.put(mode=page)
    opened._listing.setInterval(0)
    start(opened)
    until(lambda: opened.chip.isVisible() and opened.session.work[-1].state == "running")
    assert opened.chip._title.full == "Report on A and B"
    QTest.mouseClick(opened.chip, Qt.MouseButton.LeftButton, pos=QPoint(20, 10))
    (popup,) = opened.frame.findChildren(JobsPopup)
    assert popup.isVisible() and "report" in popup.list._rows
    popup.close()
    opened.chip._stop.click()
    until(lambda: opened.session.work[-1].state == "stopped")
    until(lambda: not opened.chip.isVisible())


def test_jobs_are_stopped_by_the_keyboard(opened, until):
    start(opened)
    until(lambda: opened.session.work[-1].state == "running")
    QTest.keyClick(opened.frame, Qt.Key.Key_J, CTRL)
    (popup,) = opened.frame.findChildren(JobsPopup)
    QTest.keyClick(popup.list._rows["report"][3], Qt.Key.Key_Space)
    until(lambda: opened.session.work[-1].state == "stopped")
    QTest.keyClick(popup, Qt.Key.Key_Escape)
    assert popup.isHidden()
