"""What a figure says about where it comes from: names and digests, never folders or people."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import hgviz
from hgviz.core import Capture
from hgviz.figures.content import Looked, Panel
from hgviz.figures.options import Items, arguments, used
from hgviz.figures.spec import Spec, kind_of
from hgviz.files import SAMPLE, resource

# what a command says in place of files that are not saved yet
MISSING: dict[str, tuple[str, ...]] = {
    "capture": ("CAPTURE.h5",),
    "pair": ("A.h5", "B.h5"),
    "captures": ("CAPTURE.h5",),
    "study": ("STUDY.h5",),
    "studies": ("STUDY.h5",),
    "sweep": ("STUDY",),
    "answer": ("MODEL",),
}


def record(panel: Panel, notes: Sequence[str], path: Path) -> dict[str, str]:
    """What identifies a figure, in words, in the order it is written."""
    seen = panel.content
    about = _about(panel.spec, seen.capture) if isinstance(seen, Looked) else seen.about
    found = {
        "program": f"hgviz {hgviz.__version__}",
        "kind": panel.spec.kind,
        **about,
        "reduction": "; ".join(notes),
        "command": command(panel, path),
    }
    return {name: plain(value) for name, value in found.items() if value}


def _about(spec: Spec, capture: Capture) -> dict[str, str]:
    chosen, looked_at = spec.selection, used(spec.kind)
    layers = capture.spec.layers
    layer = layers[chosen.layer] if 0 <= chosen.layer < len(layers) else None
    shown = {
        "layer": f"{chosen.layer} ({layer.name})" if layer else "",
        "head": str(chosen.head),
        "query": "" if chosen.query is None else str(chosen.query),
    }
    return {
        "model": bare_name(capture.spec.name),
        "checkpoint": capture.spec.digest,
        **{name: words for name, words in shown.items() if name in looked_at},
        "off": ", ".join(str(head) for head in sorted(capture.off)),
        "streaming": capture.streaming.describe(),
        "text": capture.prompt.digest,
        "target": capture.target.digest if capture.target is not None else "",
        "generated": capture.made.generated,
    }


def metadata(form: str, record: dict[str, str]) -> dict[str, Any]:
    """The record as a file of this format keeps it."""
    title = ": ".join(filter(None, (kind_of(record["kind"]).label, record.get("model"))))
    lines = [f"{name}: {value}" for name, value in record.items()]
    found = {"Title": title, "Creator": record["program"]}
    # a date makes two runs differ, so there is one only where it was asked for
    dated = bool(os.environ.get("SOURCE_DATE_EPOCH"))
    if form == "pdf":
        kept = {"Subject": record["command"], "Keywords": "; ".join(lines)}
        return {**found, **kept, **({} if dated else {"CreationDate": None})}
    if form == "svg":
        return {**found, "Description": "; ".join(lines), **({} if dated else {"Date": None})}
    return {"Title": title, "Software": record["program"], "Description": "; ".join(lines)}


def command(panel: Panel, path: Path) -> str:
    """The command that draws a figure again; files are named without their folders."""
    files = [known_name(one) for one in panel.files]
    if len(set(files)) < len(set(panel.files)):
        files = []  # several of one name: no folder could hold them
    if kind_of(panel.spec.kind).of == "answer":
        return asking(panel, [one for one in files if one] or MISSING["answer"], path.name)
    return command_of(panel.spec, files, panel.item, path.name)


def asking(panel: Panel, models: Sequence[str], out: str) -> str:
    """The command that asks models again what a figure shows of them."""
    width = () if panel.spec.width == Spec().width else ("--width", panel.spec.width)
    title = () if panel.spec.title is None else ("--title", _as_drawn(panel.spec.title))
    verb = kind_of(panel.spec.kind).verb
    asked = getattr(panel.content, "asked", ())
    words = ["hgviz", verb, *models, *asked, *width, *title, "-o", out]
    return " ".join(map(quoted, words))


def _as_drawn(title: str) -> str:
    from hgviz.figures.paper.labels import visible  # loads matplotlib

    return visible(title, space=" ")


def quoted(word: str) -> str:
    """A word of a command on one line: lines and signs that nobody sees as shells spell them,
    since a file's header could not carry them."""
    if word.isprintable():
        return shlex.quote(word)
    spelled = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t"}
    signs = (spelled.get(one) or (one if one.isprintable() else _code(one)) for one in word)
    return f"$'{''.join(signs)}'"


def _code(sign: str) -> str:
    number = ord(sign)
    return f"\\x{number:02x}" if number < 0x80 else f"\\U{number:08x}"


def command_of(spec: Spec, files: Sequence[str], item: Items, out: str) -> str:
    """The command that draws a figure of files, as they are named; one that is not saved yet has
    a name that stands for it."""
    missing = MISSING[kind_of(spec.kind).of]
    named = [one or missing[at % len(missing)] for at, one in enumerate(files or missing)]
    named = [f"./{one}" if one.startswith("-") else one for one in named]
    if spec.title:
        spec = replace(spec, title=_as_drawn(spec.title))
    if spec.format and Path(out).name.lower().endswith(f".{spec.format}"):
        spec = replace(spec, format="")
    return shlex.join(["hgviz", "figure", *named, *arguments(spec, item), "-o", out])


def known_name(path: str) -> str:
    """The name of a file without its folder; of what comes with hgviz, the one it has everywhere:
    sample/first.h5."""
    if path and Path(path).parent == resource(SAMPLE):
        return f"{SAMPLE}/{Path(path).name}"
    return bare_name(path)


def without_folders(command: str) -> str:
    """A command whose files are named without their folders."""
    try:
        parts = shlex.split(command)
    except ValueError:
        parts = command.split()
    return shlex.join(bare_name(part) for part in parts)


def bare_name(name: str) -> str:
    """The last part of a path, of either kind of system; other words stay as they are."""
    if "/" not in name and "\\" not in name:
        return name
    return PureWindowsPath(PurePosixPath(name).name or "folder").name or "folder"


def plain(words: str) -> str:
    """Without what a file's header could not carry."""
    return "".join(one if one.isprintable() else "?" for one in words)
