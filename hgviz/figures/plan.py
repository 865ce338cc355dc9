"""A figure of several panels as it is written down, FIG.toml: what each shows, and of which files.

width = "neurips"        # all of these may be left out
columns = 2
letters = true
share = false

[[panel]]
of = ["my.h5"]           # beside FIG.toml
kind = "map"             # and its options, as the command line has them
layer = 3
head = 5
span = 2                 # columns
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from string import ascii_lowercase as LETTERS
from typing import Any

from hgviz.core import HgvizError
from hgviz.figures import FIGURES
from hgviz.figures.content import Sheet
from hgviz.figures.forms import FLAG, TEXT, TEXTS, WHOLE, Form, Unfit, Value
from hgviz.figures.options import Items, used, values
from hgviz.figures.spec import Spec, points

ENDING = ".toml"
WHOLE_SHEET: dict[str, Form] = {
    "width": TEXT, "columns": WHOLE, "letters": FLAG, "share": FLAG,
}  # fmt: skip
OF_SHEET = ("width", "format")  # options of figures that a sheet has for all its panels
CAPTURED = ("capture", "pair", "captures")  # what may hold many texts
MOST = 12  # columns


@dataclass(frozen=True, slots=True)
class Planned:
    """A panel as it is written down: its kind, its files as they are named, which text of them,
    how many columns it takes, and its options as spec_of takes them.
    """

    kind: str
    files: tuple[str, ...]
    items: tuple[int, ...]
    span: int
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a FIG.toml says."""

    sheet: Sheet
    panels: tuple[Planned, ...]


def read(path: Path) -> Plan:
    """What a FIG.toml says. Errors: HgvizError that names the panel and the key that is wrong, and
    what can stand there."""
    try:
        content = path.read_bytes()
        found = tomllib.loads(content.decode())
    except OSError as error:
        raise HgvizError(
            f"{path} cannot be read", str(error.strerror or error), "Check the path"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise HgvizError(
            f"{path} is no TOML", str(error), "Mend it, or see the guide for an example"
        ) from error
    _require_known(str(path), found, (*WHOLE_SHEET, "panel"))
    given = {name: _fit(str(path), name, found[name], form) for name, form in WHOLE_SHEET.items()
             if name in found}  # fmt: skip
    panels = found.get("panel", [])
    if not isinstance(panels, list) or not all(isinstance(one, dict) for one in panels):
        raise HgvizError(f"panel in {path} is no list of panels", "", "Begin each with [[panel]]")
    if not 0 < len(panels) <= len(LETTERS):
        raise HgvizError(
            f"{path} has {len(panels) or 'no'} panel{'s' * (len(panels) > 1)}",
            f"it can have 1 to {len(LETTERS)}, (a) to ({LETTERS[-1]}), each under [[panel]]",
            "Add one" if not panels else "Make two figures of it",
        )
    columns = given.get("columns", 2)
    if not 1 <= columns <= MOST:
        raise HgvizError(
            f"columns in {path} cannot be {columns}", f"it is a whole number from 1 to {MOST}",
            "Choose another",
        )  # fmt: skip
    points(width := given.get("width", Spec().width))
    return Plan(
        Sheet(
            width, columns=columns, lettered=given.get("letters", len(panels) > 1),
            shared=given.get("share", False), file=path.name, digest=sha256(content).hexdigest(),
        ),
        tuple(_planned(f"Panel {at} of {path}", one, columns) for at, one in enumerate(panels, 1)),
    )  # fmt: skip


def table(spec: Spec, files: Sequence[str], item: Items = 0) -> str:
    """A figure as a panel of a FIG.toml: the lines from [[panel]] on."""
    found = {"of": list(files), "kind": spec.kind, **values(spec, item)}
    lines = [f"{name} = {_written(one)}" for name, one in found.items() if name not in OF_SHEET]
    return "\n".join(["[[panel]]", *lines, ""])


def _written(value: Value) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    import tomli_w

    return tomli_w.dumps({"a": value}).removeprefix("a = ").strip()


def _planned(where: str, found: dict[str, Any], columns: int) -> Planned:
    """A panel, where: its name in errors."""
    if "kind" not in found:
        raise HgvizError(
            f"{where} has no kind", f"it is one of {', '.join(FIGURES)}", 'Add kind = "map"'
        )
    kind = _fit(where, "kind", found["kind"], TEXT)
    if kind not in FIGURES:
        raise HgvizError(
            f"kind in {where} cannot be {kind!r}", f"it is one of {', '.join(FIGURES)}",
            "Choose one of these",
        )  # fmt: skip
    if not found.get("of"):
        raise HgvizError(f"{where} is of no file", "", 'Add of = ["my.h5"]')
    files = _fit(where, "of", found["of"], TEXTS)
    if sheets := [one for one in files if one.endswith(ENDING)]:
        raise HgvizError(
            f"{where} cannot be of {sheets[0]}", "a panel shows captures or studies, no sheet",
            "Write its panels here",
        )  # fmt: skip
    options = {name: form for name, form in used(kind).items() if name not in OF_SHEET}
    known = ["of", "kind", "span", *(["item"] if FIGURES[kind].of in CAPTURED else []), *options]
    _require_known(where, found, known, kind)
    span = _fit(where, "span", found.get("span", 1), WHOLE)
    if not 1 <= span <= columns:
        raise HgvizError(
            f"span in {where} cannot be {span}", f"the sheet has {columns} columns",
            "Choose fewer, or give the sheet more",
        )  # fmt: skip
    return Planned(
        kind, files, _items(where, found.get("item", 0), len(files)), span,
        {name: one for name, one in found.items() if name in options},
    )  # fmt: skip


def items_of(given: Any, count: int) -> tuple[int, ...]:
    """Which text of each of some files: 3, for all of them, or "3,0". Errors: Unfit."""
    if isinstance(given, str):
        parts = given.split(",")
        if not all(part.strip().isdecimal() for part in parts):
            raise Unfit
        given = [int(part) for part in parts]
    found = [WHOLE.read(one, Spec(), ()) for one in (given if isinstance(given, list) else [given])]
    if len(found) not in (1, count):
        raise Unfit
    return tuple(found * count if len(found) == 1 else found)


def _items(where: str, given: Any, count: int) -> tuple[int, ...]:
    try:
        return items_of(given, count)
    except Unfit:
        raise HgvizError(
            f"item in {where} cannot be {given!r}",
            "it is the number of a text, from 0, or one for each file",
            "Choose another",
        ) from None


def _fit(where: str, name: str, value: Any, form: Form) -> Any:
    try:
        return form.read(value, Spec(), ())
    except Unfit:
        raise HgvizError(
            f"{name} in {where} cannot be {value!r}", f"it takes {form.takes}", "Choose another"
        ) from None


def _require_known(
    where: str, found: Mapping[str, Any], known: Sequence[str], kind: str = ""
) -> None:
    if unknown := [name for name in found if name not in known]:
        whose = f"a figure of kind {kind}" if kind else "a sheet"
        raise HgvizError(
            f"{where} has an unknown key {unknown[0]!r}",
            f"{whose} takes {', '.join(known)}",
            "Correct its name, or leave it out",
        )
