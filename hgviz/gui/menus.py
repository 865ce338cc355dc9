"""The menu bar: every row of ACTIONS in its menu, under its keys and those of the platform."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu

from hgviz.gui.actions import ACTIONS, MENUS, Action
from hgviz.gui.language import tr

# Alt and the letter opens the menu
LETTERS = {"File": "F", "Edit": "E", "View": "V", "Heads": "D", "Analyse": "A", "Help": "H"}
ROLES = {
    "about": QAction.MenuRole.AboutRole, "quit": QAction.MenuRole.QuitRole,
    "preferences": QAction.MenuRole.PreferencesRole,
}  # fmt: skip
Standard = QKeySequence.StandardKey
STANDARD = {
    "open": Standard.Open, "save": Standard.Save, "close_window": Standard.Close,
    "quit": Standard.Quit, "undo": Standard.Undo, "redo": Standard.Redo, "copy": Standard.Copy,
    "find_text": Standard.Find, "preferences": Standard.Preferences,
    "full_screen": Standard.FullScreen, "find": Standard.HelpContents,
    "explain": Standard.WhatsThis,
}  # fmt: skip


def fill(
    window: QMainWindow, triggered: Callable[[], None]
) -> tuple[dict[str, QAction], dict[str, QMenu]]:
    """Fill the menu bar: the actions by name, and the menus inside others by their words."""
    actions: dict[str, QAction] = {}
    inside: dict[str, QMenu] = {}
    bar = window.menuBar()
    for name in MENUS:
        menu = QMenu(lettered(tr(name), LETTERS[name]), window)
        menu.setToolTipsVisible(True)
        bar.addMenu(menu)
        rows = [one for one in ACTIONS if one.menu == name]
        for number, one in enumerate(rows):
            if number and one.group != rows[number - 1].group:
                menu.addSeparator()
            if one.under and one.under not in inside:
                inside[one.under] = menu.addMenu(tr(one.under))
                inside[one.under].setToolTipsVisible(True)
            action = actions[one.name] = _action(window, one)
            action.triggered.connect(triggered)
            (inside[one.under] if one.under else menu).addAction(action)
    return actions, inside


def lettered(words: str, letter: str) -> str:
    """Words of a menu with the letter that opens it marked."""
    at = words.lower().index(letter.lower())
    return f"{words[:at]}&{words[at:]}"


def keys_of(one: Action) -> list[QKeySequence]:
    """The keys of an action, first its own, then what the platform has for it."""
    keys = [QKeySequence(key) for key in one.keys]
    if one.name in STANDARD:
        bound = QKeySequence.keyBindings(STANDARD[one.name])
        keys += [key for key in bound if key.toString() not in _taken()]
    return keys


@cache
def _taken() -> set[str]:
    return {QKeySequence(key).toString() for one in ACTIONS for key in one.keys}


def _action(window: QMainWindow, one: Action) -> QAction:
    action = QAction(tr(one.words), window)  # no icons in menus: a column of them is loud
    action.setObjectName(one.name)
    action.setShortcuts(keys_of(one))
    action.setMenuRole(ROLES.get(one.name, QAction.MenuRole.NoRole))
    window.addAction(action)
    return action


__all__ = ["fill", "keys_of", "lettered"]
