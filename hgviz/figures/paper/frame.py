"""What all kinds of figures share: finding their maps, their titles and their legends."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from math import ceil, log2

import numpy as np

from hgviz.activations import ACTIVATIONS
from hgviz.core import Capture, Floats, HeadId, HgvizError, Layer, Map, Prompt
from hgviz.figures.paper import style
from hgviz.figures.paper.labels import LEAST, wrapped
from hgviz.figures.paper.page import Page
from hgviz.figures.spec import POINTS
from hgviz.maps import SlotMap, pool
from hgviz.palettes import LIGHT_PAGE

TITLE_LINES, TITLE_LEADING = 3, 10.0
SWATCH = 12.0
Zooms = tuple[int, int]  # a cell of a map is 2^a rows and 2^b columns of weights


def map_of(capture: Capture, layer: int, head: int) -> Map:
    """The maps of a layer that has this head. Errors: HgvizError when it is not there."""
    layers = capture.spec.layers
    if not 0 <= layer < len(layers):
        raise HgvizError(
            f"this capture has no layer {layer}: its layers are 0 to {len(layers) - 1}",
            "Choose one of these",
        )
    found = capture.maps[layer]
    if found is None:
        raise HgvizError(
            f"layer {layer} is not in this capture: "
            "the capture was interrupted before it got there",
            "Capture again: it goes on where it stopped",
        )
    if head not in found.heads:
        raise HgvizError(
            f"layer {layer} has no head {head}: "
            + (
                f"its heads are {', '.join(map(str, found.heads))}"
                if found.heads
                else "it has none"
            ),
            "Choose one of these" if found.heads else "Choose another layer",
        )
    return found


def token_in(prompt: Prompt, token: int) -> int:
    """The token itself. Errors: HgvizError for one beyond the text."""
    if not 0 <= token < len(prompt):
        unit = prompt.unit if prompt.unit in ("slot", "state") else "token"
        raise HgvizError(
            f"this capture has no {unit} {token}: there it has {len(prompt):,}, numbered from 0",
            "Choose one of these",
        )
    return token


def query_in(prompt: Prompt, query: int | None) -> int:
    """The chosen query, the last one where none is. Errors as token_in."""
    return token_in(prompt, prompt.last if query is None else query)


def has_negative_weights(capture: Capture, layer: int, head: int) -> bool:
    """Whether weights of a head can be negative; heads of one layer may differ in that."""
    found = map_of(capture, layer, head)
    kinds = dict(zip(found.heads, capture.spec.layers[layer].activations, strict=False))
    mixed = {ACTIVATIONS[name].signed for name in kinds.values()}
    own = len(mixed) == 2 and not isinstance(found, SlotMap)
    return ACTIVATIONS[kinds[head]].signed if own else found.signed


def zoom_for(positions: int, room: float, page: float = 0.0) -> int:
    """The zoom at which so many positions are at most one dot each over room in points, on a page
    so wide; 0: one of any usual width."""
    dots = max(room / POINTS * (style.dots(page) if page else style.DOTS), 1)
    return max(0, ceil(log2(max(positions, 1) / dots)))


def read_cells(one: Map, head: int, zooms: Zooms) -> Floats:
    """Weights of a head (rows / 2^a, columns / 2^b), of each cell the largest; zooms: a and b."""
    rows, columns = zooms
    more = abs(rows - columns)
    weights = one.read(head, zoom=min(zooms))
    if not more:
        return weights
    lines = weights if rows < columns else weights.T
    found = np.concatenate([pool(line[None], more, signed=one.signed) for line in lines])
    return found if rows < columns else found.T


def reduced(zooms: Zooms) -> str:
    """What a reduced map must say."""
    rows, columns = (1 << zoom for zoom in zooms)
    return f"each cell is the largest of {rows:,} × {columns:,} weights"


def heading(page: Page, bold: str, plain: str) -> float:
    """A line in bold and in grey over the page, if any, or as many as it takes; gives where it
    ends.
    """
    if not bold:
        return 2.0
    y = style.TITLE
    lines = wrapped(bold, page.width, style.TITLE, bold=True, most=TITLE_LINES)
    for number, line in enumerate(lines):
        y += TITLE_LEADING if number else 0.0
        page.text(0, y, line, size=style.TITLE, bold=True)
    start = style.extent(lines[-1], style.TITLE, bold=True) + 8
    rest = wrapped(plain, page.width, style.TEXT, most=TITLE_LINES) if plain else []
    if len(rest) == 1 and start + style.extent(rest[0], style.TEXT) <= page.width:
        page.text(start, y, rest[0], colour=LIGHT_PAGE.secondary)
        rest = []
    for line in rest:
        y += TITLE_LEADING
        page.text(0, y, line, colour=LIGHT_PAGE.secondary)
    return y + 0.4 * style.TITLE + 4


def activation_of(capture: Capture, head: HeadId) -> str:
    """What a head's scores pass through, "" for softmax."""
    kinds = capture.spec.layers[head.layer].activations
    name = dict(zip(capture.spec.layers[head.layer].heads, kinds, strict=False)).get(head.head, "")
    return "" if name in ("", "softmax") else ACTIVATIONS[name].label


def own_name(layer: Layer) -> str:
    """What a model calls a layer that it numbers otherwise, as "layers.3" of the only layer that
    attends in a hybrid model; "" where both numbers are one."""
    parts = layer.name.split(".")
    first = next((at for at, part in enumerate(parts) if part.isdecimal()), len(parts))
    numbers = [*takewhile(str.isdecimal, parts[first:])]
    if not numbers or numbers == [str(layer.index)]:
        return ""
    return ".".join(parts[:first] + numbers).removeprefix("model.")


def level_name(capture: Capture, layer: int, with_own: bool = True) -> str:
    """1:2, or 1:1 → 1:2 where keys and queries lie on different levels; else own_name.

    source, target, or source → target where there are two texts, with own_name; how many slots
    where there are, or lie between. with_own: False leaves own_name out where there is no room.
    """
    one = capture.spec.layers[layer]
    own = own_name(one) if with_own else ""
    levels = capture.spec.levels
    known = capture.maps[layer]
    if isinstance(known, SlotMap):
        return f"through {known.whole.shape[2]:,} slots"
    if len(levels) == 1:
        return own
    sides = [levels[one.key_level].sequence, levels[one.level].sequence]
    if "slots" in sides:
        return f"{len(capture.spans[one.key_level]):,} slots"
    if capture.spec.two_texts:
        return ", ".join(filter(None, (" → ".join(dict.fromkeys(sides)), own)))
    if one.level == one.key_level:
        return levels[one.level].label
    return f"{levels[one.key_level].label} → {levels[one.level].label}"


def legend(
    page: Page, notes: list[str], x: float, y: float, width: float, hatched: bool = True
) -> float:
    """Notes below a figure, the first with a swatch of what is not seen; gives where they end."""
    start, line = x, y + 7
    if notes and notes[0]:
        page.box(x, line - 6, 9, 6.5, fill=LIGHT_PAGE.unseen)
        if hatched:
            page.hatch(x, line - 6, 9, 6.5, None)
        page.box(x, line - 6, 9, 6.5, edge=LIGHT_PAGE.line)
        start += SWATCH
    at = start
    for words in filter(None, notes):
        for number, part in enumerate(wrapped(words, x + width - start, style.SMALL)):
            need = style.extent(part, style.SMALL)
            if at > start and (number or at + need > x + width):
                at, line = start, line + 9
            page.text(at, line, part, size=style.SMALL, colour=LIGHT_PAGE.secondary)
            at += need + 12
    return line + 2 if any(notes) else y


def footnotes(page: Page, notes: Sequence[str], x: float, y: float) -> float:
    """Notes below a chart, each as many lines as it takes; y and what it gives are baselines."""
    room = page.width - x - 2
    for note in notes:
        for line in wrapped(note, room, style.SMALL):
            y += 10
            page.text(x, y, line, size=style.SMALL, colour=LIGHT_PAGE.secondary)
    return y


def together(notes: Sequence[str], room: float) -> list[str]:
    """Short notes beside each other, a dot between: a line ends where one does, if it can."""
    lines: list[str] = []
    for note in notes:
        longer = f"{lines[-1]}  ·  {note}" if lines else note
        if lines and style.extent(longer, style.SMALL) <= room:
            lines[-1] = longer
        else:
            lines.append(note)
    return lines


def off_card(page: Page, x: float, y: float, width: float, height: float) -> None:
    """What stands for a head that is switched off."""
    page.box(x, y, width, height, fill=LIGHT_PAGE.unseen)
    page.hatch(x, y, width, height, None)
    page.box(x, y, width, height, edge=LIGHT_PAGE.secondary, line=0.8)
    size = min(style.TEXT, width / 2.2, height)
    if size >= LEAST:
        half = style.extent("off", size) / 2 + 1.5
        page.box(x + width / 2 - half, y + height / 2 - size * 0.6, 2 * half, size * 1.2,
                 fill=LIGHT_PAGE.unseen)  # fmt: skip
        page.text(x + width / 2, y + height / 2, "off", size=size, across="center", middle=True,
                  colour=LIGHT_PAGE.secondary)  # fmt: skip
