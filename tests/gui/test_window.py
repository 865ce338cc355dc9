"""The frame: menus, actions, keys; names for screen readers, Tab, and a mark of the focus."""

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QAccessible, QKeyEvent, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialog,
    QLabel,
    QLineEdit,
    QMenu,
    QMenuBar,
    QPlainTextEdit,
    QScrollBar,
    QSplitterHandle,
    QTabBar,
    QTextBrowser,
    QWidget,
)

from hgviz.core import HeadId, Selection
from hgviz.gui.actions import ACTIONS, MENUS
from hgviz.gui.widgets import Button
from hgviz.gui.window import LETTERS, keys_of, lettered
from tests.gui.screen import busy
from tests.studying import make_sweep


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


@pytest.mark.parametrize("names", [NAMES[::2], NAMES[1::2]], ids=["even", "odd"])
def test_every_action_can_be_run_with_a_capture_open(few_reviews, opened, names):
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


def test_letters_step_through_heads_layers_and_levels_but_stay_in_a_text_field(opened):
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
    field, before = QLineEdit(opened.frame), session.selection
    field.show()
    field.setFocus()
    press(opened, Qt.Key.Key_L)
    press(opened, Qt.Key.Key_Left)
    assert field.text() == "l" and session.selection == before


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


def test_keys_of_actions_are_valid_unique_and_of_no_desktop_and_plain_ones_only_step(app):
    """Letters alone act outside of text fields only, so few things have one."""
    taken = {QKeySequence(key).toString() for key in TAKEN}
    taken |= {f"Alt+{letter}" for letter in LETTERS.values()}
    assert len(set(LETTERS.values())) == len(MENUS)
    every = [key.toString() for one in ACTIONS for key in keys_of(one)]  # and of the platform
    assert len(every) == len(set(every))
    for action in ACTIONS:
        assert own(action) and all(own(action)) and not taken & set(own(action)), action.name
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


# --- without a mouse or without eyes --------------------------------------------------------------

CONTROLS = (
    QAbstractButton, QAbstractItemView, QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit,
    QPlainTextEdit, QTextBrowser, QTabBar,
)  # fmt: skip
WHOLE = (QAbstractItemView, QAbstractSpinBox, QComboBox, QTabBar, QAbstractButton)
PARTS = (QScrollBar, QSplitterHandle, QMenu, QMenuBar)  # of others, or owned by Qt
PLACES = {
    **{mode: {"mode": mode} for mode in ("follow", "prune", "compare", "sweep")},
    **{look: {"mode": "inspect", "look": look}
       for look in ("map", "links", "neurons", "attribution", "across", "heads")},
}  # fmt: skip
DIALOGS = (
    "explain", "pages", "about", "find", "preferences", "export",
    "edit_text", "compare_with", "measure_heads", "exchange",
)  # fmt: skip


def ancestors(one):
    while (one := one.parentWidget()) is not None:
        yield one


def controls(root):
    """What people act on: controls of Qt, and what is drawn by hand and takes the keyboard."""
    for one in (root, *root.findChildren(QWidget)):
        is_driven = isinstance(one, QAbstractItemView) and not one.focusPolicy()  # by a field
        inside = any(isinstance(above, WHOLE) for above in ancestors(one))
        takes_keys = one.focusPolicy() & Qt.FocusPolicy.TabFocus and not isinstance(one, QLabel)
        is_control = isinstance(one, CONTROLS) or takes_keys
        if one.isVisible() and is_control and not (is_driven or inside or isinstance(one, PARTS)):
            yield one


def described(one):
    """A widget, so that it is found again."""
    names = [type(each).__name__ for each in (one, *ancestors(one))][:4]
    return f"{' in '.join(names)} {one.toolTip() or getattr(one, 'text', str)()!r}"


def is_named(one):
    """Whether a screen reader has a name for it."""
    interface = QAccessible.queryAccessibleInterface(one)
    return bool(interface is not None and interface.text(QAccessible.Text.Name).strip())


def tab_stops(root):
    """Every widget that Tab comes to, from where the keyboard is, round once."""
    seen = []
    for _ in range(400):
        QTest.keyClick(QApplication.focusWidget() or root, Qt.Key.Key_Tab)
        here = QApplication.focusWidget() or root
        if seen and here is seen[0] and here is not seen[-1]:  # within a page Tab walks its links
            break
        seen.append(here)
    return seen


def reached(root):
    """What Tab comes to; of several buttons that belong together, arrows reach the others."""
    found = set(tab_stops(root))
    for one in list(found):
        group = one.group() if isinstance(one, QAbstractButton) else None
        found |= {*(group.buttons() if group is not None else ()), one.focusProxy()}
    return found


def is_action(program, one):
    """Whether an action of the window does the same: what it is named by, or its own words."""
    actions = program.frame.actions_by_name
    said = {action.text().rstrip("…") for action in actions.values()}
    words = f"{one.toolTip()}|{one.accessibleName()}".replace(" (", "|").replace("…", "")
    return (one.property("action") or "") in actions or bool(said & set(words.split("|")))


def looks_focused(one):
    """Whether the pixels around a widget change as it gets the keyboard."""
    window = one.window()
    area = one.rect().translated(one.mapTo(window, QPoint())).adjusted(-3, -3, 3, 3)
    window.setFocus()
    QApplication.processEvents()
    before = window.grab(area).toImage()
    one.setFocus(Qt.FocusReason.TabFocusReason)
    QApplication.processEvents()
    return window.grab(area).toImage() != before


def faults(program, root, place):
    """What is wrong with the controls of a place."""
    every, by_keys, kinds = list(controls(root)), reached(root), set()
    for one in every:
        if not is_named(one):
            yield f"{place}, unnamed: {described(one)}"
        is_bare = isinstance(one, QAbstractScrollArea) and not isinstance(one, CONTROLS)
        if one.isEnabled() and not is_bare and one not in by_keys and not is_action(program, one):
            yield f"{place}, unreached: {described(one)}"
        kind = (type(one).__name__, one.property("kind"))
        takes_keys = one.focusPolicy() & Qt.FocusPolicy.TabFocus and one.isEnabled()
        if takes_keys and kind not in kinds and one.visibleRegion().boundingRect().isValid():
            kinds.add(kind)
            if not looks_focused(one):
                yield f"{place}, unmarked: {described(one)}"


@pytest.fixture
def classifiers(few_reviews, program, until):
    """The sample classifier scored on some of the bundled reviews, with another as B."""
    program.commands.open_example("compare")
    until(lambda: program.session.capture_b is not None and not busy(program))
    program.commands.run("bundled_data")
    until(lambda: program.session.trial is not None and not busy(program))
    return program


def faults_of(program, *places):
    found = []
    for place in places:
        program.session.put(**PLACES.get(place, {}))
        program.settle()
        program.settle()
        found += faults(program, program.frame, place)
    return found


@pytest.mark.timeout(300)
def test_every_control_of_a_page_and_dialog_has_a_name_a_way_by_keys_and_a_focus_mark(classifiers):
    found = faults_of(classifiers, *(place for place in PLACES if place != "sweep"))
    for name in DIALOGS:
        classifiers.commands.run(name)
        QApplication.processEvents()
        open_now = [one for one in classifiers.frame.findChildren(QDialog) if one.isVisible()]
        found += faults(classifiers, open_now[-1], name)
        for dialog in open_now:
            dialog.reject()
        QApplication.processEvents()
    assert not found


def test_every_control_of_the_empty_page_and_of_a_study_has_them_too(program, until, tmp_path):
    assert not faults_of(program, "empty")
    make_sweep(folder=tmp_path)
    program.commands.open_path(str(tmp_path))
    until(lambda: program.session.sweep is not None and not busy(program))
    assert not faults_of(program, "sweep")
