"""Writes the pages of the reference that are made from the code, commands and actions with keys,
and the one of models, from the table that benchmarks/zoo.py writes.

Run from a checkout after a change to any: python docs/reference.py.
"""

from __future__ import annotations

import csv
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from itertools import groupby
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
    from hgviz.gui.actions import ACTIONS, MENUS
    from hgviz.gui.palette import LOCAL

    actions = [
        (menu, [(one.words, one.keys) for one in ACTIONS if one.menu == menu]) for menu in MENUS
    ]
    lines = [
        "# Actions and keys", "", MADE, "",
        "Everything that can be done in the window, by menu, with its keys. F1 or "
        "Ctrl+Shift+P finds every action there by its words.", "",
    ]  # fmt: skip
    inside = False
    panes = groupby(LOCAL, key=lambda row: row[0])
    local = [(where, [(what, keys) for _, what, *keys in rows]) for where, rows in panes]
    for heading, rows in (*actions, *local):
        if heading not in MENUS and not inside:
            inside = True
            lines += ["## Inside of a pane", "", "While it has the keyboard.", ""]
        lines += [f"{'###' if inside else '##'} {heading}", "", "| action | keys |", "|---|---|"]
        for what, pressed in rows:
            lines.append(f"| {what} | {', '.join(f'`{one}`' for one in pressed)} |")
        lines.append("")
    return "\n".join(lines)


MAPS = {  # what is kept of the types that open exactly
    "lazy": "computed from queries and keys", "dense": "kept as weights",
    "both": "some computed, some kept",
}  # fmt: skip
WHY = {"refused": "refused", "differs": "differs", "outputs": "outputs alone are compared",
       "slow": "not done in time", "unbuilt": "not tried"}  # fmt: skip


def tried() -> tuple[str, list[dict[str, str]]]:
    """The version of transformers, and a row for each of its model types."""
    with (REFERENCE / "models.tsv").open(encoding="utf-8", newline="") as file:
        _, version = file.readline().split("\t")
        return version.strip(), list(csv.DictReader(file, delimiter="\t"))


def counted() -> str:
    """How many model types open, in a sentence."""
    version, rows = tried()
    exact = sum(row["found"] in MAPS for row in rows)
    parts = sum(row["found"] == "part" for row in rows)
    return (
        f"Of the {len(rows)} model types that transformers {version} knows, {parts} are parts of "
        f"others; of the other {len(rows) - parts}, {exact} open exactly"
    )


def models() -> str:
    """Every model type of transformers: what its maps are, or why it does not open."""
    rows = tried()[1]
    others = [row["others"].split("; ") for row in rows if row["others"]]
    opened, shut = sum(int(one[0]) for one in others), [name for one in others for name in one[1:]]
    counts = Counter(row["found"] for row in rows)
    kept = ", ".join(f"{counts[one]} {words}" for one, words in MAPS.items() if counts[one])
    lines = [
        "# Models of transformers", "",
        "<!-- Written by docs/reference.py from models.tsv, and that by benchmarks/zoo.py. -->", "",
        f"{counted()}. Each was built tiny and with random weights, opened from its folder, and "
        "compared with transformers itself, eager on the CPU: outputs within 1e-4 of the largest, "
        f"every map within 1e-5. By their maps they are: {kept}. "
        "[How it is done](opens.md#models-of-transformers).", "",
        "## Types that open", "",
        "Maps that are computed from queries and keys are exact at any length; those that are kept "
        "as weights are exact too, but grow with the square of the length. The class is the one "
        "that was compared. Of the other classes of these types (base models, language models, "
        "classifiers, and those that answer from a text) "
        f"{opened} open, each with its outputs proved as those of every model that is opened, and "
        f"{len(shut)} do not{': ' * bool(shut)}{', '.join(shut)}. A type that also reads images "
        "or sounds was given text alone where its class takes it.", "",
        "| type | class | maps | blocks without a map |", "|---|---|---|---|",
    ]  # fmt: skip
    for row in rows:
        if row["found"] in MAPS:
            cells = f"`{row['type']}`", row["class"], MAPS[row["found"]], row["without"]
            lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "## Types that do not", "", "| type | class | | why |", "|---|---|---|---|"]
    for row in rows:
        if row["found"] in WHY:
            why = row["why"].replace("|", "\\|").replace("<", "&lt;")
            lines.append(f"| `{row['type']}` | {row['class']} | {WHY[row['found']]} | {why} |")
    named = ", ".join(f"`{row['type']}`" for row in rows if row["found"] == "part")
    lines += ["", "## Parts of others", "",
              f"They are configurations inside of others and have no model of their own: {named}.",
              ""]  # fmt: skip
    return "\n".join(lines)


def fields() -> str:
    """Every dataset and attribute of captures and studies, as the schema's rows say."""
    import numpy as np

    from hgviz.store.schema import CAPTURE_FIELDS, STUDY_FIELDS, Field
    from hgviz.store.studies import FOLDER

    def notes(row: Field) -> str:
        kind = f"{row.kind} layers" if row.kind else ""
        allowed = "" if row.allowed == "any" else row.allowed
        return ", ".join(filter(None, (kind, "" if row.required else "optional", allowed)))

    def form(row: Field) -> str:
        plain = row.form.startswith(("JSON", "text", "any", "as "))
        return row.form.removesuffix(" as it is") if plain else f"({row.form.replace(' ', ', ')})"

    def types(row: Field) -> str:
        names = [np.dtype(name.replace("bool", "u1")).name for name in row.dtypes.split()]
        return ", ".join(names) or "uint8"

    def table(heads: str, rows: list[tuple[str, ...]]) -> list[str]:
        cells = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
        ruler = "|".join(["---"] * (heads.count("|") + 1))
        return [f"| {heads} |", f"|{ruler}|", *(f"| {row} |" for row in cells), ""]

    lines = [
        "# Fields of captures and studies", "", MADE, "",
        "Every dataset and attribute of [the files of captures and studies](file-format.md). "
        "Dimensions of one name agree within a group; JSON and text are UTF-8 bytes.", "",
    ]  # fmt: skip
    for noun, groups in (("capture", CAPTURE_FIELDS), ("study", STUDY_FIELDS)):
        for group, rows in groups.items():
            lines += [f"## `{group}` of a {noun}", ""]
            datasets = [row for row in rows if not row.attribute]
            lines += table(
                "name | holds | type | | meaning",
                [(f"`{row.path}`", form(row), types(row), notes(row), row.meaning)
                 for row in datasets],
            )  # fmt: skip
            attributes = [(f"`{row.attribute}`", row.form, notes(row), row.meaning)
                          for row in rows if row.attribute]  # fmt: skip
            lines += table("attribute | holds | | meaning", attributes) if attributes else []
    lines += ["## The folder of a study of many runs", "", "Format \"hgviz-sweep\": JSON and TOML, "
              "in UTF-8; AB are the first two digits of KEY, the key of a cell.", ""]  # fmt: skip
    files = [(f"`{path}`", ", ".join(getattr(file.kind, "__struct_fields__", ())), file.meaning)
             for path, file in FOLDER.items()]  # fmt: skip
    return "\n".join([*lines, *table("file | keys | meaning", files)])


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands, "keys.md": keys, "models.md": models, "fields.md": fields,
}  # fmt: skip
COUNTED = re.compile(r"Of the \d+\s+model\s+types\s+that\s+.*?\s+open\s+exactly", re.DOTALL)
SAYING = (REFERENCE / "opens.md", HERE.parent / "README.md")  # pages that say how many open


def main() -> None:
    """Write them."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    REFERENCE.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        (REFERENCE / name).write_text(make(), "utf-8")
    for page in SAYING:
        page.write_text(COUNTED.sub(counted(), page.read_text("utf-8")), "utf-8")


def _first(section: str) -> str:
    """The first paragraph below the heading of a section."""
    return section.partition("\n")[2].strip().partition("\n\n")[0]


if __name__ == "__main__":
    main()
