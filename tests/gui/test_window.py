"""The frame: menus, keys, modes, sizes, drops, closing."""

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLineEdit, QWidget

from hgviz.core import HeadId, Selection
from hgviz.gui.actions import ACTIONS, MENUS
from hgviz.gui.widgets import Button
from hgviz.gui.window import LETTERS, keys_of, lettered


def press(program, key, modifier=Qt.KeyboardModifier.NoModifier):
    program.frame.activateWindow()
    QTest.keyClick(QApplication.focusWidget() or program.frame, key, modifier)
    QApplication.processEvents()


def test_every_action_is_in_a_menu_and_has_a_command(program):
    menus = [menu.menu() for menu in program.frame.menuBar().actions()]
    menus += program.frame.menus.values()
    shown = [one.objectName() for menu in menus for one in menu.actions() if one.objectName()]
    assert sorted(shown) == sorted(one.name for one in ACTIONS)
    assert all(callable(program.commands.method(one.name)) for one in ACTIONS)
    words = [menu.text() for menu in program.frame.menuBar().actions()]
    assert [one.replace("&", "") for one in words] == list(MENUS)
    assert len({one[one.index("&") + 1] for one in words}) == len(MENUS)
    assert lettered("Heads", "D") == "Hea&ds"
    assert lettered("파일", "F") == "파일(&F)"


def test_an_action_that_cannot_be_done_is_off_and_says_why(opened):
    actions, session = opened.frame.actions_by_name, opened.session
    facts = session.facts
    assert all(actions[name].isEnabled() for name in ("open", "save", "next_head", "table"))
    assert not actions["capture"].isEnabled()  # there is no checkpoint beside it
    assert "checkpoint" in actions["capture"].toolTip()
    session.put(facts={})
    assert not actions["table"].isEnabled()
    session.put(facts=facts)
    assert actions["table"].isEnabled()
    session.put(capture=None)
    assert not actions["save"].isEnabled() and "on a text" in actions["save"].toolTip()
    assert actions["open"].isEnabled()


# those that close the window, and that which asks the desktop for another
NAMES = [one.name for one in ACTIONS if one.name not in ("quit", "close_window", "log")]


@pytest.mark.parametrize("names", [NAMES[at::7] for at in range(7)], ids=lambda one: one[0])
def test_every_action_can_be_run_with_a_capture_open(opened, names):
    session = opened.session
    before = {one: getattr(session, one) for one in ("capture", "facts", "mode", "look", "dark")}
    chosen = session.selection
    for name in names:
        session.put(**before)
        session.put(selection=chosen)
        try:
            opened.commands.run(name)
            QApplication.processEvents()
            opened.settle()
        except Exception as error:
            error.add_note(f"by {name}")
            raise
        for dialog in opened.frame.findChildren(QDialog):
            dialog.close()
        assert opened.frame.isVisible(), name


def test_the_keyboard_steps_through_heads_layers_levels_letters(opened):
    session = opened.session
    session.put(selection=Selection(0, 0, 20, 10))
    press(opened, Qt.Key.Key_L)
    assert session.selection.head_id == HeadId(0, 1)
    press(opened, Qt.Key.Key_H)
    press(opened, Qt.Key.Key_J)
    assert session.selection.head_id == HeadId(1, 0)
    press(opened, Qt.Key.Key_K)
    press(opened, Qt.Key.Key_D)
    assert session.spec.layers[session.selection.layer].level == 1
    press(opened, Qt.Key.Key_U)
    assert session.selection.layer == 0
    press(opened, Qt.Key.Key_Right)
    assert session.selection.query == 21


def test_letters_stay_in_a_text_field(opened):
    before = opened.session.selection
    field = QLineEdit(opened.frame)
    field.show()
    field.setFocus()
    press(opened, Qt.Key.Key_L)
    press(opened, Qt.Key.Key_Left)
    assert field.text() == "l"
    assert opened.session.selection == before


def test_f6_walks_all_panes_and_comes_round(opened):
    seen = []
    for _ in range(20):
        press(opened, Qt.Key.Key_F6)
        seen.append(QApplication.focusWidget())
    assert len(set(seen)) >= 3
    assert seen.count(seen[0]) > 1


def test_nothing_open_shows_the_empty_page(program):
    assert program.frame.pages.currentWidget() is program.empty
    asked = []
    program.empty.asked.connect(asked.append)
    program.empty.asked.disconnect(program.commands.run)
    program.empty.findChildren(Button)[0].click()
    assert asked == ["open_sample"]


# --- keys -----------------------------------------------------------------------------------------

PLAIN = {"Shift", ""}
STEPPING = set("SFHJKLUDXBTC") | {"Shift+S", "Shift+X", "Right", "Left", "Down", "Up"}
# what desktops take before any program: GNOME, KDE, Windows, input methods; and what edits text
TAKEN = {
    "Alt+F4", "Alt+Tab", "Alt+Space", "Alt+F1", "Alt+F2", "Ctrl+F1", "Ctrl+F2", "Ctrl+F3",
    "Ctrl+F4", "Ctrl+F7", "Ctrl+F8", "Ctrl+F9", "Ctrl+F10", "Ctrl+F12", "F10", "Shift+F10",
    "Ctrl+Esc",
    "Ctrl+Space", "Shift+Space", "Ctrl+Shift+U", "Ctrl+Alt+T", "Ctrl+Alt+L", "Ctrl+Alt+D",
    "Ctrl+Alt+Del", "Ctrl+Shift+Esc", "Ctrl+Shift+0", "Ctrl+Alt+A", "Ctrl+Alt+R",
    "Ctrl+A", "Ctrl+X", "Ctrl+V", "Ctrl+K", "Ctrl+U", "Ctrl+Left", "Ctrl+Right", "Ctrl+Home",
    "Ctrl+End", "Ctrl+Backspace", "Ctrl+Del", "Shift+Del", "Shift+Ins", "Tab", "Shift+Tab", "Esc",
    "Return", "Enter", "Space", "Home", "End", "PgUp", "PgDown", "Del", "Backspace",
}  # fmt: skip


def own(one):
    """The keys of an action, "" for one that Qt does not know."""
    return [QKeySequence(key).toString() for key in one.keys]


PLAINLY = Qt.KeyboardModifier.NoModifier


def test_every_action_has_a_valid_key_and_plain_keys_only_step():
    """Letters alone act outside of text fields only, so few things have one."""
    for action in ACTIONS:
        assert own(action) and all(own(action)), action.name
        for key in own(action):
            held, _, last = key.rpartition("+") if key[-1] != "+" else (key[:-2], "", "+")
            function = last[0] == "F" and last[1:].isdigit()
            assert held not in PLAIN or function or key in STEPPING, action.name


def test_a_pane_with_the_keyboard_keeps_its_own_keys(opened, monkeypatch):
    panes = [one for one in opened.frame.findChildren(QWidget) if getattr(one, "own_keys", ())]
    assert len(panes) >= 10
    for pane in panes:
        monkeypatch.setattr(QApplication, "focusWidget", lambda pane=pane: pane)
        for key, held, own in (
            *((key, PLAINLY, True) for key in pane.own_keys),
            (pane.own_keys[0], Qt.KeyboardModifier.ControlModifier, False),
            (Qt.Key.Key_J, PLAINLY, False),
        ):
            event = QKeyEvent(QEvent.Type.ShortcutOverride, key, held)
            event.ignore()
            QApplication.sendEvent(opened.frame, event)
            assert event.isAccepted() == own, (type(pane).__name__, key)


def test_no_two_actions_share_a_key_nor_what_the_platform_adds(app):
    keys = [key.toString() for one in ACTIONS for key in keys_of(one)]
    assert len(keys) == len(set(keys))


def test_no_action_takes_what_desktops_text_fields_or_menus_have():
    taken = {QKeySequence(key).toString() for key in TAKEN}
    taken |= {f"Alt+{letter}" for letter in LETTERS.values()}
    assert len(set(LETTERS.values())) == len(MENUS)
    for one in ACTIONS:
        assert not taken & set(own(one)), one.name
