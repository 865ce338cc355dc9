"""Every action has keys of its own, which nobody else takes."""

import ast
from pathlib import Path

import pytest
from PySide6.QtGui import QKeySequence

import hgviz
from hgviz.gui.actions import ACTIONS, MENUS
from hgviz.gui.window import LETTERS, keys_of, lettered

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
    return [QKeySequence(key).toString() for key in one.keys]


def test_every_action_has_a_key_that_is_one():
    assert not [one.name for one in ACTIONS if not one.keys]
    assert all(key for one in ACTIONS for key in own(one))


def test_no_two_actions_share_a_key_nor_what_the_platform_adds(app):
    keys = [key.toString() for one in ACTIONS for key in keys_of(one)]
    assert len(keys) == len(set(keys))


def test_no_action_takes_what_desktops_text_fields_or_menus_have():
    taken = {QKeySequence(key).toString() for key in TAKEN}
    taken |= {f"Alt+{letter}" for letter in LETTERS.values()}
    assert len(set(LETTERS.values())) == len(MENUS)
    for one in ACTIONS:
        assert not taken & set(own(one)), one.name


@pytest.mark.parametrize("one", ACTIONS, ids=lambda one: one.name)
def test_plain_keys_only_step(one):
    """Letters alone act outside of text fields only, so few things have one."""
    for key in own(one):
        held, _, last = key.rpartition("+")
        function = last[0] == "F" and last[1:].isdigit()
        assert held not in PLAIN or function or key in STEPPING


def shortcuts_of_views():
    """Sequences that a view gives its own actions: file and words."""
    root = Path(hgviz.__file__).parent / "gui"
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "QShortcut":
                yield path.name


def test_no_view_has_a_shortcut_of_the_whole_window():
    """What a view does by key it does while it has the keyboard: keyPressEvent, or one of a widget;
    LOCAL lists it."""
    assert not list(shortcuts_of_views())


def test_a_menu_is_opened_by_a_letter():
    assert lettered("Heads", "D") == "Hea&ds"
