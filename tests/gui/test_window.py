"""The frame: menus, actions, keys; names for screen readers and ways by keys."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt
from PySide6.QtGui import QAccessible, QColor, QImage
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

from hgviz import settings
from hgviz.core import HeadId, Selection
from hgviz.gui import app, selftest, theme
from hgviz.gui.actions import ACTIONS
from hgviz.gui.dialogs import Question
from hgviz.gui.program import Program
from hgviz.gui.window import LETTERS, Window, keys_of
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


# --- the program ----------------------------------------------------------------------------------


ROOT = Path(__file__).parents[2]
HEAVY = (
    "numpy", "torch", "h5py", "matplotlib", "tokenizers", "psygnal", "pyqtgraph", "transformers",
    "hgviz.core",
)  # fmt: skip

FIRST_PAINT = f"""
import sys
from hgviz.gui.window import application
from hgviz.gui import app, theme
def look():
    print([name for name in {HEAVY!r} if name in sys.modules])
    sys.stdout.flush()
start = app.Starter.__init__
def watched(self, frame, *given):
    frame.painted.connect(look)
    start(self, frame, *given)
app.Starter.__init__ = watched
sys.exit(app.window([]))
"""


def test_the_window_paints_before_anything_heavy_is_imported_and_ends_without_a_word():
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen", "HGVIZ_EXIT_AFTER_PAINT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_PAINT], capture_output=True, text=True, timeout=100,
        cwd=ROOT, env=environment | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
    assert "QThread" not in done.stderr and "Traceback" not in done.stderr


def test_a_missing_library_is_named_with_what_installs_it(monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("QT_QPA_PLATFORM", "xcb")
    monkeypatch.setattr(app, "_loads", lambda name: "cursor" not in name)
    assert app.window([]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "apt-get install libxcb-cursor0" in said


# --- the demo and the selftest, off screen --------------------------------------------------------


def test_the_demo_writes_its_files_again_and_says_what_it_did(app, tmp_path, capsys):
    folder = tmp_path / "new" / "demo"
    folder.mkdir(parents=True)
    for name in ("demo.h5", "map.pdf"):
        (folder / name).write_text("of an earlier demo")
    assert selftest.demo(folder) == 0
    files = {path.name for path in folder.iterdir()}
    assert files == {"demo.h5", "window.png", "map.pdf", "levels.pdf"}
    assert all(path.stat().st_size > 1000 for path in folder.iterdir())
    said = capsys.readouterr().out
    assert "1:1, 1:2, 1:4" in said and "clearest head" in said


def test_the_selftest_passes(app, capsys):
    assert selftest.selftest() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "All checks passed"
    assert all(line.startswith("ok") for line in lines[:-1])


# --- garbage --------------------------------------------------------------------------------------


def test_no_object_of_a_window_is_left_for_python_to_delete(app, capture, facts):
    """Python deletes in whatever thread collects garbage; outside the thread of the window that
    crashes."""
    gc.collect()
    frame = Window()
    frame.show()
    program = Program(frame)
    program.session.put(capture=capture, facts=dict(facts))
    for mode in ("inspect", "follow", "prune", "compare"):
        program.session.put(mode=mode)
        program.settle()
    program.close()
    frame.close()
    frame.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    program = frame = None
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        found = [one for one in gc.garbage if isinstance(one, QObject)]
        assert found  # there is a window in it, which Qt deleted
        # the hints are the application's own, and outlive every window
        left = {type(one).__name__ for one in found if shiboken6.isValid(one)} - {"QStyleHints"}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert not left


def test_garbage_of_any_thread_is_collected_in_the_window_s(new_program, until):
    class Ring:
        def __init__(self):
            self.itself = self

    def make_rings():
        rings.extend(weakref.ref(Ring()) for _ in range(20_000))

    rings, threads = [], set()
    gc.callbacks.append(lambda *_: threads.add(threading.current_thread()))
    try:
        programs = new_program(), new_program()
        programs[0].close()  # the other still works
        job = programs[1].lanes.engine.submit("rings", "", make_rings)
        assert job.wait(30)
        until(lambda: rings[-1]() is None)
    finally:
        gc.callbacks.pop()
    assert threads == {threading.main_thread()}
    programs[1].close()
    assert gc.isenabled()


# --- interface scale ------------------------------------------------------------------------------


def test_a_larger_interface_comes_with_a_restart_that_opens_what_was_open(opened, monkeypatch):
    monkeypatch.setattr(Window, "close", lambda self: True)
    for action in ["smaller"] + ["larger"] * 7:
        opened.commands.run(action)
        for box in opened.frame.findChildren(Question):
            box.reject()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert settings.load().interface_scale == "200 %"
    assert "already" in opened.frame.chosen_words.full
    opened.commands.run("smaller")
    (box,) = opened.frame.findChildren(Question)
    assert "175 %" in box.title.text()
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert opened.frame.restarts

    started = []
    monkeypatch.setattr(app, "_run_window", lambda *given: app.RESTART)
    monkeypatch.setattr(os, "execve", lambda *given: started.append(given))
    monkeypatch.setenv("QT_SCALE_FACTOR", "1")
    app.window([Path("a.h5")])
    ((_, arguments, environment),) = started
    assert arguments[1:] == ["-m", "hgviz"] and app.RESTORE in environment
    assert environment["QT_SCALE_FACTOR"] == "1"


def contrast(one: QColor, other: QColor) -> float:
    """The contrast ratio of WCAG 2."""

    def light(colour: QColor) -> float:
        parts = (colour.redF(), colour.greenF(), colour.blueF())
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("one", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_all_text_reaches_a_contrast_of_4_5(one):
    grounds = (one.window, one.pane, one.raised, one.hover)
    for ink in (one.text, one.secondary, one.press, one.mark_text, one.good, one.bad, one.warning):
        for ground in grounds[:3]:
            assert contrast(ink, ground) >= 4.5, (ink.name(), ground.name())
    assert contrast(one.text, one.hover) >= 4.5
    assert contrast(one.on_press, one.press) >= 4.5
    assert contrast(one.mark_text, one.mark_tint) >= 4.5
    assert all(contrast(one.text, tint) >= 4.5 for tint in one.silhouette)


def test_every_icon_of_an_action_is_drawn_in_the_colour_of_text(app):
    for name in {action.icon for action in ACTIONS}:
        image = theme.pixmap(name, 64).toImage().convertToFormat(QImage.Format.Format_RGBA8888)
        pixels = np.array(image.constBits(), np.uint8).reshape(-1, 4)
        solid = np.unique(pixels[pixels[:, 3] == 255], axis=0)
        assert solid.tolist() == [list(theme.current().text.getRgb())], name
