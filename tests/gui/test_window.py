"""The frame: menus, actions, keys; names for screen readers and ways by keys."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
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
from hgviz.gui.actions import ACTIONS
from hgviz.gui.window import LETTERS, keys_of
from tests.gui.screen import busy


def press(program, key):
    program.frame.activateWindow()
    QTest.keyClick(QApplication.focusWidget() or program.frame, key)
    QApplication.processEvents()


# those that close the window, and that which asks the desktop for another
NAMES = [one.name for one in ACTIONS if one.name not in ("quit", "close_window", "log")]


def test_every_action_can_be_run_with_a_capture_open(few_reviews, opened):
    session = opened.session
    before = {one: getattr(session, one) for one in ("capture", "facts", "mode", "look", "dark")}
    chosen = session.selection
    for name in NAMES:
        session.put(**before)
        session.put(selection=chosen)
        opened.commands.run(name)
        QApplication.processEvents()
        opened.settle()
        for dialog in opened.frame.findChildren(QDialog):
            dialog.close()
        assert opened.frame.isVisible(), name


def test_letters_step_through_heads_layers_and_levels_but_stay_in_a_text_field(opened):
    session = opened.session
    session.put(selection=Selection(0, 0, 20, 10))
    for key, head in (("L", (0, 1)), ("H", (0, 0)), ("J", (1, 0)), ("K", (0, 0))):
        press(opened, getattr(Qt.Key, f"Key_{key}"))
        assert session.selection.head_id == HeadId(*head)
    press(opened, Qt.Key.Key_D)
    assert session.spec.layers[session.selection.layer].level == 1
    press(opened, Qt.Key.Key_U)
    press(opened, Qt.Key.Key_Right)
    assert (session.selection.layer, session.selection.query) == (0, 21)
    field, before = QLineEdit(opened.frame), session.selection
    field.show()
    field.setFocus()
    press(opened, Qt.Key.Key_L)
    press(opened, Qt.Key.Key_Left)
    assert field.text() == "l" and session.selection == before


# --- keys -----------------------------------------------------------------------------------------


def test_every_action_has_keys_that_are_valid_and_its_own(app):
    every = [f"Alt+{letter}" for letter in LETTERS.values()]
    every += [key.toString() for one in ACTIONS for key in keys_of(one)]  # and of the platform
    assert all(every) and len(every) == len(set(every)) and all(one.keys for one in ACTIONS)


# --- without a mouse or without eyes --------------------------------------------------------------

CONTROLS = (
    QAbstractButton, QAbstractItemView, QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit,
    QPlainTextEdit, QTextBrowser, QTabBar,
)  # fmt: skip
WHOLE = (QAbstractItemView, QAbstractSpinBox, QComboBox, QTabBar, QAbstractButton)
PARTS = (QScrollBar, QSplitterHandle, QMenu, QMenuBar)  # of others, or owned by Qt
PLACES = {
    **{mode: {"mode": mode} for mode in ("follow", "prune", "compare")},
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


def faults(program, root, place):
    """What is wrong with the controls of a place."""
    every, by_keys = list(controls(root)), reached(root)
    for one in every:
        if not is_named(one):
            yield f"{place}, unnamed: {described(one)}"
        is_bare = isinstance(one, QAbstractScrollArea) and not isinstance(one, CONTROLS)
        if one.isEnabled() and not is_bare and one not in by_keys and not is_action(program, one):
            yield f"{place}, unreached: {described(one)}"


def test_every_control_of_a_page_and_dialog_has_a_name_and_a_way_by_keys(
    few_reviews, program, until
):
    program.session.put(ids="ids of another model.json")  # an example has a text of its own
    program.commands.open_example("compare")
    until(lambda: program.session.capture_b is not None and not busy(program))
    program.commands.run("bundled_data")
    until(lambda: program.session.trial is not None and not busy(program))
    found = []
    for place, fields in PLACES.items():
        program.session.put(**fields)
        program.settle()
        program.settle()
        found += faults(program, program.frame, place)
    for name in DIALOGS:
        program.commands.run(name)
        QApplication.processEvents()
        open_now = [one for one in program.frame.findChildren(QDialog) if one.isVisible()]
        found += faults(program, open_now[-1], name)
        for dialog in open_now:
            dialog.reject()
        QApplication.processEvents()
    assert not found


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


def test_f6_walks_all_panes_and_comes_round(opened):
    seen = []
    for _ in range(20):
        press(opened, Qt.Key.Key_F6)
        seen.append(QApplication.focusWidget())
    assert len(set(seen)) >= 3
    assert seen.count(seen[0]) > 1
