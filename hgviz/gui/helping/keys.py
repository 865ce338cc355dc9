"""The keys of every action, and what keys do inside of panes."""

from __future__ import annotations

from collections.abc import Iterator

from hgviz.gui.actions import ACTIONS, MENUS

SYMBOLS = {
    "Left": "←", "Right": "→", "Up": "↑", "Down": "↓", "Return": "Enter", ".": "full stop",
    ",": "comma", "PgDown": "PgDn",
}  # fmt: skip

# What keys do while a pane, a list or a dialog has the keyboard: (where, (what, keys), ...)
LOCAL = (
    ("Everywhere", (
        ("Next control", ("Tab",)),
        ("Press a button, tick a box", ("Space",)),
        ("Close a dialog", ("Esc",)),
        ("Do what a dialog offers", ("Return",)),
    )),
    ("Maps", (
        ("Query before, next query", ("Up", "Down")),
        ("Key before, next key", ("Left", "Right")),
        ("Zoom in, zoom out", ("+", "-")),
        ("Let go of what is pointed at or chosen", ("Esc",)),
    )),
    ("Text strip", (
        ("One more query", ("Shift+Left", "Shift+Right")),
    )),
    ("Links", (
        ("Another query", ("Up", "Down")),
        ("One more query", ("Shift+Up", "Shift+Down")),
        ("Another key", ("Left", "Right")),
        ("Scroll, to either end", ("PgUp", "PgDown", "Home", "End")),
        ("Let go", ("Esc",)),
    )),
    ("Follow", (
        ("Letter before, next letter", ("Left", "Right")),
    )),
    ("Lists of keys", (
        ("Key before, next key", ("Up", "Down")),
        ("A page of keys", ("PgUp", "PgDown")),
        ("Choose the key", ("Return",)),
    )),
    ("Attribution", (
        ("Walk the heads", ("Left", "Right", "Up", "Down")),
    )),
    ("Images", (
        ("From patch to patch", ("Left", "Right", "Up", "Down")),
    )),
    ("Wall of heads", (
        ("Walk the heads", ("Left", "Right", "Up", "Down")),
        ("First, last of a layer", ("Home", "End")),
        ("Off or on", ("Space",)),
        ("The whole layer", ("Shift+Space",)),
    )),
    ("How many heads can go", (
        ("One head less, one more", ("Left", "Right")),
        ("Five heads", ("PgDown", "PgUp")),
        ("None, as many as can go", ("Home", "End")),
    )),
    ("Masks", (
        ("Take one", ("Return",)),
        ("Forget it", ("Del",)),
    )),
    ("Tables", (
        ("Row before, next row", ("Up", "Down")),
        ("Open the row", ("Return",)),
        ("Slices: sort by another column", ("Left", "Right")),
        ("Slices: turn the order", ("Space",)),
    )),
    ("Charts", (
        ("Open the head", ("Return",)),
        ("Zoom in, zoom out", ("+", "-")),
        ("Move what is on screen", ("Shift+Left", "Shift+Right", "Shift+Up", "Shift+Down")),
        ("Show all of it again", ("0",)),
    )),
    ("Texts that are written", (
        ("Capture it, compare with it", ("Ctrl+Return",)),
        ("A new line", ("Return",)),
    )),
)  # fmt: skip


def groups() -> Iterator[tuple[str, list[tuple[str, tuple[str, ...]]]]]:
    """(heading, [(what, keys)]): the actions by menu, then what panes do."""
    for menu in MENUS:
        yield menu, [(one.words, one.keys) for one in ACTIONS if one.menu == menu]
    for where, rows in LOCAL:
        yield where, list(rows)


__all__ = ["LOCAL", "SYMBOLS", "groups"]
