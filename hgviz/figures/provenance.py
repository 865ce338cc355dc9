"""What a figure says about where it comes from: names and digests, never folders or people."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import hgviz
from hgviz.core import Capture
from hgviz.figures.spec import Spec


def record(
    spec: Spec, capture: Capture, notes: list[str], command: str, path: Path
) -> dict[str, str]:
    """What identifies a figure, in words, in the order it is written."""
    chosen = spec.selection
    layers = capture.spec.layers
    layer = layers[chosen.layer] if 0 <= chosen.layer < len(layers) else None
    found = {
        "program": f"hgviz {hgviz.__version__}",
        "kind": spec.kind,
        "model": bare_name(capture.spec.name),
        "checkpoint": capture.spec.digest,
        "layer": f"{chosen.layer} ({layer.name})" if layer else "",
        "head": str(chosen.head) if spec.kind != "wall" else "",
        "query": "" if chosen.query is None else str(chosen.query),
        "off": ", ".join(str(head) for head in sorted(capture.off)),
        "text": capture.prompt.digest,
        "target": capture.target.digest if capture.target is not None else "",
        "generated": capture.made.generated,
        "reduction": "; ".join(notes),
        "command": without_folders(command or command_for(spec, capture, path)),
    }
    return {name: plain(value) for name, value in found.items() if value}


def record_of_chart(spec: Spec, about: Mapping[str, str], command: str) -> dict[str, str]:
    """What identifies a figure of studies, in words; about: models, data and their digests."""
    found = {
        "program": f"hgviz {hgviz.__version__}",
        "kind": spec.kind,
        **about,
        "command": without_folders(command or f"hgviz figure STUDY.h5 --kind {spec.kind}"),
    }
    return {name: plain(value) for name, value in found.items() if value}


def metadata(form: str, record: dict[str, str]) -> dict[str, Any]:
    """The record as a file of this format keeps it."""
    title = f"{record['kind']} of {record.get('model') or 'a capture'}"
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


def command_for(spec: Spec, capture: Capture, path: Path) -> str:
    """The command that draws a figure again from its capture."""
    chosen = spec.selection
    parts = ["hgviz", "figure", capture.path or "CAPTURE.h5", "--kind", spec.kind]
    parts += ["--layer", str(chosen.layer), "--head", str(chosen.head)]
    if chosen.query is not None:
        parts += ["--query", str(chosen.query)]
    parts += spec.recipe.options if spec.kind == "rollout" else ()
    parts += spec.links.arguments if spec.kind == "links" else ()
    parts += ["--width", spec.width, "-o", path.name]
    return shlex.join(parts)


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
