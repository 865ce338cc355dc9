"""Without a mouse or without eyes: names for screen readers, Tab, and a mark of the focus."""

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QAccessible, QKeyEvent
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
from tests.sweeps import make_sweep

CONTROLS = (
    QAbstractButton, QAbstractItemView, QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit,
    QPlainTextEdit, QTextBrowser, QTabBar,
)  # fmt: skip
WHOLE = (QAbstractItemView, QAbstractSpinBox, QComboBox, QTabBar, QAbstractButton)
PARTS = (QScrollBar, QSplitterHandle, QMenu, QMenuBar)  # of others, or owned by Qt
PAGES = ("follow", "prune", "compare")
LOOKS = ("map", "links", "neurons", "attribution", "across", "heads")
OVERLAYS = (
    "explain", "pages", "about", "find", "preferences", "export",
    "edit_text", "compare_with", "measure_heads", "exchange",
)  # fmt: skip


@pytest.fixture
def classifiers(program, until):
    """The sample classifier scored on the bundled reviews, with another classifier as B."""
    program.commands.open_example("compare")
    until(lambda: program.session.beside is not None and not busy(program))
    program.commands.run("bundled_data")
    until(lambda: program.session.trial is not None and not busy(program))
    return program


def show(program, place):
    """Go to a page, or to a look of Inspect."""
    if place in LOOKS:
        program.session.put(mode="inspect", look=place)
    elif place != "empty":
        program.session.put(mode=place)
    program.settle()
    program.settle()


def visible(root):
    return [one for one in (root, *root.findChildren(QWidget)) if one.isVisible()]


def controls(root):
    """What people act on: controls of Qt, and what is drawn by hand and takes the keyboard."""
    found = []
    for one in visible(root):
        drives = isinstance(one, QAbstractItemView) and not one.focusPolicy()  # a field drives it
        if drives or isinstance(one, PARTS) or inside(one, WHOLE):
            continue
        drawn = one.focusPolicy() & Qt.FocusPolicy.TabFocus and not isinstance(one, QLabel)
        if isinstance(one, CONTROLS) or drawn:
            found.append(one)
    return found


def inside(one, kinds):
    """Whether a widget is a part of a control, such as the viewport of a list."""
    above = one.parentWidget()
    while above is not None:
        if isinstance(above, kinds):
            return True
        above = above.parentWidget()
    return False


def named(one):
    """What a screen reader says of a widget."""
    seen = QAccessible.queryAccessibleInterface(one)
    return seen.text(QAccessible.Text.Name).strip() if seen is not None else ""


def told(one):
    """A widget, so that it is found again."""
    above, names = one, []
    while above is not None and len(names) < 4:
        names.append(type(above).__name__)
        above = above.parentWidget()
    text = one.text() if isinstance(one, QAbstractButton) else ""
    return f"{' in '.join(names)} {text or one.toolTip()!r}"


def unnamed(root):
    return sorted({told(one) for one in controls(root) if not named(one)})


def walked(root):
    """Every widget that Tab comes to, from where the keyboard is, round once."""
    seen = []
    here = QApplication.focusWidget() or root
    for _ in range(400):
        press = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Tab, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(here, press)
        here = QApplication.focusWidget() or root
        if seen and here is seen[0] and here is not seen[-1]:  # within a page Tab walks its links
            break
        seen.append(here)
    return seen


def owned(program, one):
    """Whether an action of the window does the same: what it is named by, or its own words."""
    name = one.property("action") or ""
    if name in program.frame.actions_by_name:
        return True
    said = {action.text().rstrip("…") for action in program.frame.actions_by_name.values()}
    words = f"{one.toolTip()}|{one.accessibleName()}".replace(" (", "|").replace("…", "")
    return bool(said & set(words.split("|")))


def unreached(program, root):
    """Controls that act and that neither Tab nor an action reaches."""
    reached = set(walked(root))
    for one in list(reached):  # one of several that belong together: arrows reach the others
        group = one.group() if isinstance(one, QAbstractButton) else None
        reached |= set(group.buttons()) if group is not None else set()
        reached |= {one.focusProxy()} if one.focusProxy() else set()
    missing = []
    for one in controls(root):
        bare = isinstance(one, QAbstractScrollArea) and not isinstance(one, CONTROLS)
        if not one.isEnabled() or bare or one in reached or owned(program, one):
            continue
        missing.append(told(one))
    return sorted(set(missing))


def unmarked(root):
    """Kinds of controls that look the same with the keyboard and without."""
    tried, lacking = set(), []
    for one in controls(root):
        kind = (type(one).__name__, one.property("kind"))
        takes = one.focusPolicy() & Qt.FocusPolicy.TabFocus and one.isEnabled()
        if not takes or kind in tried or not one.visibleRegion().boundingRect().isValid():
            continue
        tried.add(kind)
        if not looks_focused(one):
            lacking.append(told(one))
    return lacking


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


def faults(program, root, place, found):
    """Add what is wrong in a place to what was found."""
    for what, lacking in (
        ("unnamed", unnamed(root)), ("unreached", unreached(program, root)),
        ("unmarked", unmarked(root)),
    ):  # fmt: skip
        found += [f"{place}, {what}: {one}" for one in lacking]


def test_every_control_of_a_page_has_a_name_a_way_by_keys_and_a_focus_mark(classifiers):
    found = []
    for place in (*LOOKS, *PAGES):
        show(classifiers, place)
        faults(classifiers, classifiers.frame, place, found)
    assert not found


def test_every_control_of_a_dialog_has_a_name_a_way_by_keys_and_a_focus_mark(classifiers):
    found = []
    show(classifiers, "map")
    for name in OVERLAYS:
        classifiers.commands.run(name)
        QApplication.processEvents()
        cards = [one for one in classifiers.frame.findChildren(QDialog) if one.isVisible()]
        assert cards, f"{name}: {classifiers.frame.chosen_words.full}"
        faults(classifiers, cards[-1], name, found)
        for card in cards:
            card.reject()
        QApplication.processEvents()
    assert not found


def test_every_control_of_the_empty_page_and_of_a_study_has_them_too(program, until, tmp_path):
    found = []
    show(program, "empty")
    faults(program, program.frame, "empty", found)
    make_sweep(folder=tmp_path)
    program.commands.open_path(str(tmp_path))
    until(lambda: program.session.sweep is not None and not busy(program))
    show(program, "sweep")
    faults(program, program.frame, "study", found)
    assert not found
