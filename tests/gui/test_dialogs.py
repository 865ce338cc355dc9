"""Dialogs: errors, texts, licences, preferences."""

from types import SimpleNamespace
from typing import Annotated, Literal

import pytest
from msgspec import Meta
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QTextBrowser,
)

from hgviz import settings
from hgviz.core import HgvizError
from hgviz.gui import dialogs, theme
from hgviz.gui.dialogs import (
    SOURCES,
    About,
    ErrorDialog,
    Licences,
    Preferences,
    TextDialog,
    counted_text,
    offered,
)
from hgviz.gui.help import Explanation
from hgviz.settings import Settings

ERROR = HgvizError(
    "this checkpoint could not be opened: config.json says dim 192; the weights say 256",
    "Set dim to 256, or choose another file",
    "tensor expected found",
)


def said(dialog):
    return [one.text() for one in dialog.card.findChildren(QLabel) if one.text()]


def test_an_error_has_a_title_and_its_reason_and_what_to_do(program):
    dialog = ErrorDialog(program.frame, ERROR)
    dialog.open()
    assert said(dialog)[:3] == [
        "This checkpoint could not be opened",
        "config.json says dim 192; the weights say 256.",
        "Set dim to 256, or choose another file.",
    ]


def test_return_takes_the_offered_step_and_escape_closes(program):
    asked = []
    dialog = ErrorDialog(program.frame, ERROR, ("open", "Choose another file…"))
    dialog.asked.connect(asked.append)
    dialog.open()
    QTest.keyClick(QApplication.focusWidget() or dialog, Qt.Key.Key_Return)
    assert asked == ["open"]
    other = ErrorDialog(program.frame, ERROR)
    other.open()
    QTest.keyClick(other, Qt.Key.Key_Escape)
    assert not other.isVisible()


def test_a_dialog_closes_though_what_had_the_keyboard_before_is_gone(program):
    field = QLineEdit(program.frame)
    field.show()
    field.setFocus()
    dialog = ErrorDialog(program.frame, ERROR)
    dialog.open()
    field.deleteLater()
    QCoreApplication.sendPostedEvents(field, QEvent.Type.DeferredDelete)
    dialog.default.click()
    assert not dialog.isVisible()


def test_an_error_keeps_the_keyboard_and_waits_for_the_one_before(program):
    """After a file dialog the window is active again later than the error is there."""
    one, two, three = (ErrorDialog(program.frame, ERROR) for _ in range(3))
    for each in (one, two, three):
        each.open()
    program.frame.toolbar.models.setFocus()
    assert one.isAncestorOf(QApplication.focusWidget()) and not two.isVisible()
    mode = program.session.mode
    for key in (Qt.Key.Key_2, Qt.Key.Key_O):
        QTest.keyClick(program.frame, key, Qt.KeyboardModifier.ControlModifier)
    assert program.session.mode == mode and not program.frame.findChildren(QFileDialog)
    for shown, more in ((one, two), (two, three)):
        QTest.keyClick(program.frame, Qt.Key.Key_Escape)
        assert not shown.isVisible() and more.isVisible()
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert not three.isVisible()


def test_details_are_folded_and_can_be_copied(program):
    dialog = ErrorDialog(program.frame, ERROR)
    dialog.open()
    details = dialog.card.findChild(QPlainTextEdit)
    assert details.isHidden()
    dialog._fold.click()
    assert details.isVisible()
    dialog._copy()
    assert "tensor expected found" in QGuiApplication.clipboard().text()


def test_tab_stays_inside_the_card(program):
    dialog = ErrorDialog(program.frame, ERROR, ("open", "Choose another file…"))
    dialog.open()
    for _ in range(7):
        QTest.keyClick(QApplication.focusWidget() or dialog, Qt.Key.Key_Tab)
        assert dialog.isAncestorOf(QApplication.focusWidget())


def test_a_click_beside_the_card_closes_it_and_one_on_it_does_not(program):
    dialog = About(program.frame)
    dialog.open()
    QTest.mouseClick(dialog, Qt.MouseButton.LeftButton, pos=dialog.card.geometry().center())
    assert dialog.isVisible()
    QTest.mouseClick(dialog, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
    assert not dialog.isVisible()


@pytest.mark.parametrize(
    ("text", "most", "words", "fits"),
    [
        ("", 10, "Empty: there is nothing to capture", False),
        ("abc", 10, "3 of 10 bytes", True),
        ("abc", None, "3 bytes", True),
        ("é" * 6, 10, "12 of 10 bytes: 2 too many", False),
        ("👩‍👩‍👧", 4096, "18 of 4,096 bytes", True),
    ],
)
def test_a_text_is_counted_in_bytes_against_the_limit(text, most, words, fits):
    assert counted_text(text, True, most) == (words, fits)


def test_a_text_of_any_script_is_captured_by_ctrl_return_and_an_empty_one_is_not(opened, until):
    chosen = []
    dialog = TextDialog(opened.frame, "old", opened.session.spec)
    dialog.chosen.connect(lambda text, second: chosen.append(text))
    dialog.open()
    dialog.edit.setPlainText("שלום 👩‍👩‍👧\nzwei")
    QTest.keyClick(dialog.edit, Qt.Key.Key_Return)
    assert not chosen  # Return alone is a new line
    dialog.edit.setPlainText("שלום 👩‍👩‍👧\nzwei")
    QTest.keyClick(dialog.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert chosen == ["שלום 👩‍👩‍👧\nzwei"]
    dialog = TextDialog(opened.frame, "old", opened.session.spec)
    dialog.chosen.connect(lambda text, second: chosen.append(text))
    dialog.open()
    dialog.edit.clear()
    until(lambda: not dialog.default.isEnabled())
    QTest.keyClick(dialog.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert len(chosen) == 1


def test_about_leads_to_the_licences(program, tmp_path, monkeypatch):
    (tmp_path / "README.md").write_text("Qt is under the LGPL.")
    (tmp_path / "bundled.md").write_text("| name |\n|---|\n| numpy |")
    monkeypatch.setattr(dialogs, "resource", lambda name: tmp_path)
    about = About(program.frame)
    about.open()
    (button,) = (one for one in about.card.findChildren(QPushButton) if one.text() == "Licences")
    button.click()
    assert not about.isVisible()
    (shown,) = program.frame.findChildren(Licences)
    words = shown.card.findChild(QTextBrowser).toPlainText()
    assert "LGPL" in words and "numpy" in words


@pytest.mark.parametrize("size", [(1100, 700), (1600, 1000)])
def test_every_dialog_fits_the_window(opened, size):
    opened.frame.resize(*size)
    QApplication.processEvents()
    for dialog in (
        ErrorDialog(opened.frame, ERROR),
        TextDialog(opened.frame, "text", opened.session.spec),
        Explanation(opened.frame, "keys"),
        About(opened.frame),
        Licences(opened.frame),
    ):
        dialog.open()
        QApplication.processEvents()
        assert opened.frame.rect().contains(dialog.card.geometry()), type(dialog).__name__
        dialog.finish()


# --- preferences ----------------------------------------------------------------------------------


@pytest.fixture
def dialog(opened):
    opened.frame.activateWindow()
    QTest.keyClick(opened.frame, Qt.Key.Key_Comma, Qt.KeyboardModifier.ControlModifier)
    (one,) = opened.frame.findChildren(Preferences)
    yield one
    one.finish()


def test_every_setting_with_a_title_has_a_control_with_its_value(dialog):
    assert [*dialog.controls] == [name for name, *_ in offered()]
    for name, control in dialog.controls.items():
        assert control.accessibleName(), name
        if hasattr(control, "currentData"):
            assert control.currentData() == getattr(Settings(), name)
    titles = [one.text() for one in dialog.findChildren(QLabel)]
    assert "Theme" in titles and "Colours of weights" in titles


def test_a_new_setting_needs_only_its_field(opened, monkeypatch):
    class More(Settings, frozen=True):
        pace: Annotated[Literal["slow", "fast"], Meta(title="Pace")] = "slow"
        quiet: Annotated[bool, Meta(title="Quiet", description="No sound.")] = False
        hidden: int = 3

    monkeypatch.setattr(dialogs, "Settings", More)
    assert [name for name, *_ in offered()][-2:] == ["pace", "quiet"]
    monkeypatch.setattr(settings, "load", More)
    one = Preferences(opened.frame)
    assert one.controls["pace"].count() == 2 and one.controls["quiet"].text() == "Quiet"
    one.deleteLater()


def test_the_values_of_every_setting_are_known():
    for name, _, meta in offered():
        source = (meta.extra or {}).get("from")
        assert source is None or getattr(Settings(), name) in SOURCES[source]()


def test_a_choice_acts_at_once_and_is_kept(opened, dialog):
    control = dialog.controls["theme"]
    control.setFocus()
    QTest.keyClick(control, Qt.Key.Key_D)  # one key: a box forgets the last after 400 ms
    assert theme.current().dark and settings.load().theme == "dark"
    dialog.controls["palette"].setCurrentIndex(dialog.controls["palette"].findData("magma"))
    assert opened.session.display.palette == settings.load().palette == "magma"
    QTest.keyClick(dialog.controls["restore"], Qt.Key.Key_Space)
    assert not settings.load().restore
    dialog._reset()
    assert settings.load().theme == "auto" and settings.load().palette == "viridis"
    assert settings.load().restore


def test_the_theme_of_the_system_is_followed_until_one_is_chosen(opened, monkeypatch):
    changed = QApplication.styleHints().colorSchemeChanged
    for chosen, system, dark in (
        ("auto", Qt.ColorScheme.Dark, True), ("auto", Qt.ColorScheme.Light, False),
        ("light", Qt.ColorScheme.Dark, False),
    ):  # fmt: skip
        settings.save(Settings(theme=chosen))
        hints = SimpleNamespace(colorScheme=lambda system=system: system)
        monkeypatch.setattr(theme.QGuiApplication, "styleHints", lambda hints=hints: hints)
        changed.emit(system)
        assert theme.current().dark == opened.session.dark == dark
