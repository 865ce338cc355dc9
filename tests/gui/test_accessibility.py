"""Without a mouse or without eyes: names for screen readers, Tab, and a mark of the focus."""

import pytest
from PySide6.QtCore import QPoint, Qt
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

from tests.gui.screen import busy
from tests.studying import make_sweep

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
def classifiers(program, until):
    """The sample classifier scored on the bundled reviews, with another classifier as B."""
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


def test_every_control_of_a_page_has_a_name_a_way_by_keys_and_a_focus_mark(classifiers):
    assert not faults_of(classifiers, *(place for place in PLACES if place != "sweep"))


def test_every_control_of_a_dialog_has_a_name_a_way_by_keys_and_a_focus_mark(classifiers):
    found = []
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
