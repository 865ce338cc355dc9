"""The Inspect page: docks that are moved and hidden, kept for the next start, and reset."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz import settings
from hgviz.gui.inspect import InspectPage, WindowLayout
from hgviz.session.saved import Layout


def titles(program):
    """The docks on screen, from top to bottom."""
    column = program.inspect.column
    return [one for one in column.order if column.sections[one].isVisible()]


def choose(program, title, words):
    """Choose from the menu of a dock."""
    menu = program.inspect.column.sections[title].menu()
    next(one for one in menu.actions() if one.text() == words).trigger()
    menu.deleteLater()


def test_a_dock_moves_by_its_menu(opened):
    assert titles(opened) == ["This head", "Where it looks", "Heads worth a look", "Display"]
    choose(opened, "Display", "Move up")
    assert titles(opened)[2:] == ["Display", "Heads worth a look"]
    choose(opened, "This head", "Move up")  # it is the first already
    assert titles(opened)[0] == "This head"
    choose(opened, "This head", "Move down")
    assert titles(opened)[:2] == ["Where it looks", "This head"]


def test_a_dock_is_dragged_by_its_head(opened):
    column = opened.inspect.column
    head = column.sections["Heads worth a look"].head
    start = QPoint(40, 16)
    above = column.sections["This head"].mapToGlobal(QPoint(40, 4))
    QTest.mousePress(head, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(head, start - QPoint(0, 30))
    QTest.mouseMove(head, head.mapFromGlobal(above))
    assert column._mark.isVisible() or column._mark.y() == 0
    QTest.mouseRelease(head, Qt.MouseButton.LeftButton, pos=head.mapFromGlobal(above))
    assert titles(opened)[0] == "Heads worth a look" and column._mark.isHidden()


def test_the_arrangement_is_kept_for_the_next_start_and_reset(opened):
    column = opened.inspect.column
    column.arrange(("Display", "This head"))
    opened._keep_settings()
    kept = settings.load()
    assert titles(opened)[0] == "Display"
    assert kept.panels == column.order
    page = InspectPage()
    WindowLayout(opened.frame, page).restore(kept)
    assert page.column.order == column.order
    page.deleteLater()
    opened.commands.run("reset_layout")
    assert column.order == column.usual
    column.arrange(("None", "Display", "Display"))  # names of no dock, and one twice
    assert sorted(column.order) == sorted(column.usual)


@pytest.mark.parametrize("size", [(1600, 1000), (1100, 700)])
def test_docks_are_hidden_and_come_back_by_a_key(opened, size):
    opened.frame.resize(*size)
    QApplication.processEvents()
    page = opened.inspect
    where = page.tabs if size[0] < 1280 else page.column
    assert where.isVisible()
    opened.frame.activateWindow()
    for shown in (False, True):
        QTest.keyClick(opened.frame, Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier)
        assert where.isVisible() == shown
        assert settings.load().side == ("right" if shown else "hidden")


def test_docks_come_back_to_the_side_they_were_at(opened):
    page = opened.inspect
    opened.commands._prefer("side", "left")
    QApplication.processEvents()
    assert page.column.x() < page.hourglass.x() < page.middle.x()
    page.put_docks("hidden")
    opened.commands.run("docks")
    assert (page.side, page.across.indexOf(page.column)) == ("left", 0)
    opened.commands.run("docks")
    kept = settings.Settings(**opened.laying.kept())
    page.put_docks("right")
    opened.laying.restore(kept)
    assert page.side == "hidden"
    opened.commands.run("docks")
    assert page.side == "left"


def test_docks_are_hidden_only_on_their_page(opened):
    opened.session.put(mode="prune")
    opened.commands.run("docks")
    assert opened.inspect.side == "right" and "Inspect" in opened.frame.chosen_words.full


def test_tabs_stand_in_the_order_of_the_docks(opened):
    bar = opened.inspect.tabs.bar
    first = ("Display", "This head", "Where it looks", "Heads worth a look", "Texts", "Jobs")
    opened.inspect.column.arrange(first)
    opened.frame.resize(1100, 700)
    QApplication.processEvents()
    seen = [bar.tabText(at) for at in range(bar.count()) if bar.isTabVisible(at)]
    assert seen == [*first[:4]]
    opened.inspect.arrange(())
    assert bar.tabText(bar.count() - 1) == "Display"


def test_a_session_brings_its_layout_and_is_never_larger_than_the_screen(opened):
    laying = opened.laying
    opened.inspect.column.arrange(("Display",))
    wanted = laying.layout()
    laying.reset()
    laying.lay_out(wanted)
    found = laying.layout()
    assert found.panels == wanted.panels
    laying.lay_out(Layout(size=(32000, 32000)))
    room = opened.frame.screen().availableGeometry().size()
    assert opened.frame.width() <= max(room.width(), 1100)
    laying.lay_out(Layout(size=(1, 1), across=(0, 0, 0)))
    assert opened.frame.width() >= 1100
