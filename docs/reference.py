"""Writes the pages of docs/reference that are made from the code, and the page of model types from
the table that benchmarks/zoo.py writes.

Run from a checkout after a change to any: python docs/reference.py.
"""

from __future__ import annotations

import csv
import os
import re
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

REFERENCE = HERE / "reference"
MADE = "<!-- Written by docs/reference.py from the code: change it there. -->"


def table(heads: str, rows) -> list[str]:
    """The lines of a table, and an empty one."""
    cells = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows)
    ruler = "|".join(["---"] * (heads.count("|") + 1))
    return [f"| {heads} |", f"|{ruler}|", *(f"| {row} |" for row in cells), ""]


def commands() -> str:
    """Every command with its options, as its parser has them."""
    import typer
    from typer.cli import get_docs_for_click

    from hgviz.cli import app

    group = typer.main.get_command(app)
    with group.make_context("hgviz", [], resilient_parsing=True) as context:
        text = get_docs_for_click(obj=group, ctx=context, name="hgviz")
    head, mark, body = text.partition("\n")[2].partition("\n## ")
    head = re.sub(r"\* `(\w+)`: .*", r"* [`\1`](#hgviz-\1)", head.strip())
    return f"# Commands\n\n{MADE}\n\nThe same as `--help`.\n\n{head}\n{mark}{body.strip()}\n"


def keys() -> str:
    """Every action of the window with its keys, and what keys do inside of a pane."""
    from hgviz.gui.actions import ACTIONS, MENU_ACTIONS
    from hgviz.gui.palette import LOCAL

    def section(heading, rows):
        pressed = ((what, ", ".join(f"`{key}`" for key in keys)) for what, keys in rows)
        return [heading, "", *table("action | keys", pressed)]

    lines = [
        "# Actions and keys", "", MADE, "",
        "Everything that can be done in the window, by menu, with its keys. F1 or "
        "Ctrl+Shift+P finds every action there by its words.", "",
    ]  # fmt: skip
    for menu in MENU_ACTIONS:
        lines += section(f"## {menu}", [(a.words, a.keys) for a in ACTIONS if a.menu == menu])
    lines += ["## Inside of a pane", "", "While it has the keyboard.", ""]
    for pane in dict.fromkeys(where for where, *_ in LOCAL):
        rows = [(what, keys) for where, what, *keys in LOCAL if where == pane]
        lines += section(f"### {pane}", rows)
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
        "The class is the one that was compared. Of the other classes of these types "
        f"{opened} open and {len(shut)} do not{': ' * bool(shut)}{', '.join(shut)}. A type that "
        "also reads images or sounds was given text alone where its class takes it.", "",
        *table("type | class | maps | blocks without a map",
               [(f"`{row['type']}`", row["class"], MAPS[row["found"]], row["without"])
                for row in rows if row["found"] in MAPS]),
        "## Types that do not", "",
        *table("type | class | | why",
               [(f"`{row['type']}`", row["class"], WHY[row["found"]],
                 row["why"].replace("<", "&lt;"))
                for row in rows if row["found"] in WHY]),
        "## Parts of others", "",
        "They are configurations inside of others and have no model of their own: "
        + ", ".join(f"`{row['type']}`" for row in rows if row["found"] == "part") + ".", "",
    ]  # fmt: skip
    return "\n".join(lines)


def fields() -> str:
    """Every dataset and attribute of captures and studies, as the schema's rows say."""
    import numpy as np

    from hgviz.store.schema import CAPTURE_FIELDS, STUDY_FIELDS
    from hgviz.store.studies import FOLDER

    def notes(row):
        kind = f"{row.kind} layers" if row.kind else ""
        allowed = "" if row.allowed == "any" else row.allowed
        return ", ".join(filter(None, (kind, "" if row.required else "optional", allowed)))

    def form(row):
        plain = row.form.startswith(("JSON", "text", "any", "as "))
        return row.form.removesuffix(" as it is") if plain else f"({row.form.replace(' ', ', ')})"

    def types(row):
        names = [np.dtype(name.replace("bool", "u1")).name for name in row.dtypes.split()]
        return ", ".join(names) or "uint8"

    lines = [
        "# Fields of captures and studies", "", MADE, "",
        "Every dataset and attribute of [the files of captures and studies](file-format.md). "
        "Dimensions of one name agree within a group; JSON and text are UTF-8 bytes.", "",
    ]  # fmt: skip
    for noun, groups in (("capture", CAPTURE_FIELDS), ("study", STUDY_FIELDS)):
        for group, rows in groups.items():
            datasets = [(f"`{row.path}`", form(row), types(row), notes(row), row.meaning)
                        for row in rows if not row.attribute]  # fmt: skip
            attributes = [(f"`{row.attribute}`", row.form, notes(row), row.meaning)
                          for row in rows if row.attribute]  # fmt: skip
            lines += [f"## `{group}` of a {noun}", ""]
            lines += table("name | holds | type | | meaning", datasets)
            lines += table("attribute | holds | | meaning", attributes) if attributes else []
    lines += ["## The folder of a study of many runs", "", "Format \"hgviz-sweep\": JSON and TOML, "
              "in UTF-8; AB are the first two digits of KEY, the key of a run.", ""]  # fmt: skip
    files = [(f"`{path}`", ", ".join(getattr(file.kind, "__struct_fields__", ())), file.meaning)
             for path, file in FOLDER.items()]  # fmt: skip
    return "\n".join([*lines, *table("file | keys | meaning", files)])


PAGES = {"commands.md": commands, "keys.md": keys, "models.md": models, "fields.md": fields}
COUNTED = re.compile(r"Of the \d+\s+model\s+types\s+that\s+.*?\s+open\s+exactly", re.DOTALL)
SAYING = (REFERENCE / "opens.md", HERE.parent / "README.md")  # pages that say how many open


def main() -> None:
    """Write them."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    for name, make in PAGES.items():
        (REFERENCE / name).write_text(make(), "utf-8")
    for page in SAYING:
        page.write_text(COUNTED.sub(counted(), page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
