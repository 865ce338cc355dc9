"""A map as one HTML page to send to somebody: its cells tell their weights under the pointer."""

from __future__ import annotations

import json
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from hgviz.core import Capture, Integers, Prompt
from hgviz.errors import require
from hgviz.figures.cells import (
    head_details,
    is_signed,
    map_of,
    read_cells,
    seen_cells,
    shades_of,
    unseen_reason,
)
from hgviz.figures.labels import token_marks
from hgviz.figures.output import compact_png, record, require_folder, write
from hgviz.figures.spec import CaptureFacts, Panel
from hgviz.files import resource
from hgviz.palettes import colours

ENDING = ".html"
MOST = 512  # positions along a side: the page holds every weight


def write_html(panel: Panel, path: Path) -> Path:
    """Write the map of a head as a page without a network: every weight, as float32, and a picture.

    Raises HgvizError for other kinds of figure, and for maps of more than MOST positions.
    """
    content, spec = panel.content, panel.spec
    if isinstance(content, Capture):
        content = CaptureFacts(content)
    require(
        spec.kind == "map" and isinstance(content, CaptureFacts),
        f"HTML export supports the map of one head only: this figure is of kind {spec.kind}",
        "Use a file name ending in .pdf, .svg or .png",
    )
    assert isinstance(content, CaptureFacts)
    require_folder(path)
    capture, head = content.capture, spec.selection.head_id
    maps = map_of(capture, head)
    rows, columns = maps.shape[1:]
    require(
        max(rows, columns) <= MOST,
        f"this map has {rows:,} × {columns:,} weights: the limit for HTML is {MOST} × {MOST}",
        "Export it as a PDF, or capture a shorter text",
    )
    weights = read_cells(maps, head.head, (0, 0))
    seen = seen_cells(capture, head.layer, head=head.head)
    shades = shades_of(spec.display, is_signed(capture, head), [weights])
    role = content.facts[head].role if head in content.facts else ""
    title = f"Head {head}" if spec.title is None else spec.title
    details = head_details(capture, head, role)
    unseen = unseen_reason(capture, [head])
    about = record(panel, [], path)
    data: dict[str, Any] = {
        "title": title,
        "about": "  ·  ".join(filter(None, (capture.spec.name, details, unseen))),
        "rows": _names(capture.query_prompt(head.layer), capture.query_spans(head.layer)),
        "columns": _names(capture.key_prompt(head.layer), capture.key_spans(head.layer)),
        "weights": _text(weights.astype("<f4").tobytes()),
        "seen": _text(np.packbits(seen).tobytes()),
        "bar": _text(compact_png(colours(shades.palette)[None])),
        "ticks": shades.ticks(220.0, 32.0),
        "picture": _text(compact_png(np.dstack([shades.paint(weights), np.uint8(255) * seen]))),
        "record": "; ".join(f"{name}: {value}" for name, value in about.items()),
    }
    page = resource("report/map.html").read_text("utf-8")
    script = json.dumps(data).replace("<", "\\u003c")  # no text ends the script
    page = page.replace("{{ title }}", escape(title)).replace("{{ data }}", script)
    write(path, {path.name: page.encode()})
    return path


def _names(prompt: Prompt, spans: Integers) -> list[str]:
    """What each position is called, "" for one that stands for nothing."""
    names = [""] * len(spans)
    for mark in token_marks(prompt, spans):
        names[mark.start : mark.end] = [mark.words] * (mark.end - mark.start)
    return names


def _text(content: bytes) -> str:
    return b64encode(content).decode()
