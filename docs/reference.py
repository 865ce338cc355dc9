"""Writes the pages of the reference that are made from the code: commands, and actions with keys.

Run from a checkout after a change to either: python docs/reference.py.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

REFERENCE = HERE / "reference"
MADE = "<!-- Written by docs/reference.py from the code: change it there. -->"

_SUMMARIES = re.compile(r"\*\*Commands\*\*:\n\n(?:\* .*\n)+\n")


def commands() -> str:
    """Every command with all it takes, as its parser knows it."""
    import typer
    from typer.cli import get_docs_for_click

    from hgviz.cli import app

    group = typer.main.get_command(app)
    with group.make_context("hgviz", [], resilient_parsing=True) as context:
        text = get_docs_for_click(obj=group, ctx=context, name="hgviz")
    sections = _SUMMARIES.sub("", text).split("\n## ")
    verbs = [one.partition("\n")[0].strip("`") for one in sections[1:]]
    listed = "\n".join(
        f"- [`{verb}`](#{verb.replace(' ', '-')}): {_first(section)}"
        for verb, section in zip(verbs, sections[1:], strict=True)
    )
    head = sections[0].partition("\n")[2].strip()
    body = "\n\n".join(f"## {one.strip()}" for one in sections[1:])
    said = "What each command takes, as `--help` says it."
    return f"# Commands\n\n{MADE}\n\n{said}\n\n{head}\n\n{listed}\n\n{body}\n"


def keys() -> str:
    """Every action of the window with its keys, and what keys do inside of a pane."""
    from hgviz.gui.actions import MENUS
    from hgviz.gui.helping.keys import groups

    lines = [
        "# Actions and keys", "", MADE, "",
        "Everything that can be done in the window, by menu, with its keys. F1 shows the same "
        "there, and Ctrl+Shift+P finds every action by its words.", "",
    ]  # fmt: skip
    inside = False
    for heading, rows in groups():
        if heading not in MENUS and not inside:
            inside = True
            lines += ["## Inside of a pane", "", "While it has the keyboard.", ""]
        lines += [f"{'###' if inside else '##'} {heading}", "", "| action | keys |", "|---|---|"]
        for what, pressed in rows:
            lines.append(f"| {what} | {', '.join(f'`{one}`' for one in pressed)} |")
        lines.append("")
    return "\n".join(lines)


PAGES: dict[str, Callable[[], str]] = {"commands.md": commands, "keys.md": keys}


def main() -> None:
    """Write them."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    REFERENCE.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        (REFERENCE / name).write_text(make(), "utf-8")


def _first(section: str) -> str:
    """The first paragraph below the heading of a section."""
    return section.partition("\n")[2].strip().partition("\n\n")[0]


if __name__ == "__main__":
    main()
