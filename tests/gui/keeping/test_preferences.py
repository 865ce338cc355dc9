"""Preferences are made from Settings, and act at once."""

from typing import Annotated, Literal

import pytest
from msgspec import Meta
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from hgviz import settings
from hgviz.gui import dialogs, theme
from hgviz.gui.dialogs import SOURCES, Preferences, offered
from hgviz.settings import Settings


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


def test_the_system_s_theme_is_followed_while_nobody_chose_one(opened, monkeypatch):
    hints = QApplication.styleHints()
    system = [Qt.ColorScheme.Dark]
    monkeypatch.setattr(theme.QGuiApplication, "styleHints", lambda: Hints(system))
    hints.colorSchemeChanged.emit(Qt.ColorScheme.Dark)
    assert theme.current().dark and opened.session.dark
    system[0] = Qt.ColorScheme.Light
    hints.colorSchemeChanged.emit(Qt.ColorScheme.Light)
    assert not theme.current().dark
    settings.save(Settings(theme="light"))
    system[0] = Qt.ColorScheme.Dark
    hints.colorSchemeChanged.emit(Qt.ColorScheme.Dark)
    assert not theme.current().dark


class Hints:
    """What the system wants."""

    def __init__(self, wanted):
        self.wanted = wanted

    def colorScheme(self):
        return self.wanted[0]
