"""The Inspect page: docks that are moved and hidden, kept for the next start, and reset."""

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from hgviz import settings
from hgviz.gui.inspect import InspectPage, WindowLayout
from hgviz.session.document import Layout

Area = Qt.DockWidgetArea


def shown(page):
    """The docks whose panels are seen: not those behind another tab."""
    QApplication.processEvents()
    return [title for title, dock in page.docks.items() if dock.widget().widget().isVisible()]


def test_the_docks_are_the_same_after_a_low_window(opened):
    page = opened.inspect
    page.tabifyDockWidget(page.docks["This head"], page.docks["Top keys"])
    for size in ((1100, 700), (1600, 1000)):
        opened.frame.resize(*size)
        QApplication.processEvents()
    assert page.docks["Top keys"] in page.tabifiedDockWidgets(page.docks["This head"])


def test_the_arrangement_is_kept_for_the_next_start_and_reset(opened):
    page = opened.inspect
    page.addDockWidget(Area.LeftDockWidgetArea, page.docks["Display"])
    opened._keep_settings()
    other = InspectPage()
    WindowLayout(opened.frame, other).restore(settings.load())
    assert other.dockWidgetArea(other.docks["Display"]) == Area.LeftDockWidgetArea
    other.deleteLater()
    opened.commands.run("reset_layout")
    assert page.dockWidgetArea(page.docks["Display"]) == Area.RightDockWidgetArea
    before = page.state()
    page.restore(before[:40])  # a damaged one changes nothing
    assert page.state() == before


@pytest.mark.parametrize("size", [(1600, 1000), (1100, 700)])
def test_docks_are_hidden_and_come_back_by_a_key(opened, size):
    opened.frame.resize(*size)
    QApplication.processEvents()
    before = shown(opened.inspect)
    opened.frame.activateWindow()
    for now in ([], before):
        QTest.keyClick(opened.frame, Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier)
        assert shown(opened.inspect) == now


def test_no_widget_is_left_behind_when_texts_come_and_go(opened):
    page, counts = opened.inspect, []
    for _ in range(4):
        for there in (True, False):
            page.show_texts(there)
            QTest.qWait(20)
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        counts.append(len(page.findChildren(QWidget)))
    assert len(set(counts[1:])) == 1, counts


def test_a_session_brings_its_layout_and_is_never_larger_than_the_screen(opened):
    laying, page = opened.laying, opened.inspect
    opened.frame.resize(1100, 700)
    page.docks["Display"].setFloating(True)
    QApplication.processEvents()
    wanted = laying.layout()
    page.arrange()
    laying.lay_out(wanted)
    assert page.docks["Display"].isFloating()
    laying.lay_out(Layout(size=(32000, 32000)))
    room = opened.frame.screen().availableGeometry().size()
    assert opened.frame.width() <= max(room.width(), 1100)
    laying.lay_out(Layout(size=(1, 1), docks="no base64"))
    assert opened.frame.width() >= 1100
