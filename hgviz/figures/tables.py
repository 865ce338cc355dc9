"""The numbers behind every figure: a line for each cell, link or point that it shows.

Positions, tokens and their texts stand beside every weight, so that a table is read without the
capture. The names of columns are those of docs/how-to/numbers.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from math import isfinite, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, Floats, HeadId, Integers, Prompt
from hgviz.figures.charts import Row
from hgviz.figures.content import Charted, Looked
from hgviz.figures.heatmap import Edge, Three, zooms_of
from hgviz.figures.image import patch_weights, query_of
from hgviz.figures.levels import stage_of, stages_of
from hgviz.figures.paper.frame import Zooms, map_of, query_in, read_cells, token_in
from hgviz.figures.spec import Spec, points
from hgviz.figures.unseen import seen_cells
from hgviz.maps.links import Links, Side, find_links

MOST, MOST_OF_WALL = 1 << 20, 1 << 18  # cells that a table of maps has; what has more is reduced
LONGEST = 80  # characters of the text of one cell
DIGITS = 7
NUMBERS = float, np.floating  # as isinstance is quickest with
SEEN, UNSEEN, OFF = "seen", "not seen", "off"
QUERY = "row_first", "row_last", "query_first", "query_last", "query_text"
KEY = "column_first", "column_last", "key_first", "key_last", "key_text"
CELLS = "head", *QUERY, *KEY, "weight", "state", "reduction"
STRIPS = "stage", "level", "head", *QUERY, *KEY, "weight", "state"
LINKS = (
    "head", "query_first", "query_last", "query_text", "key_first", "key_last", "key_text",
    "weight", "state", "reduction",
)  # fmt: skip
THREE = *QUERY, *KEY, "A", "B", "A - B", "state", "reduction"
PATCHES = "head", "query_text", "key_text", "row", "column", "weight", "state"
STATES = {(True, True): SEEN, (True, False): "only A", (False, True): "only B"}


class Cell(NamedTuple):
    """A run of positions along one side of a map: first and last position, first and last token,
    both counted from 0 and included, "" where no token is behind it; and what these say.
    """

    first: int
    last: int
    token: int | str
    last_token: int | str
    text: str


# --- what every kind gives ------------------------------------------------------------------------


def charted(_: Spec, chart: Charted) -> Iterable[Row]:
    """The numbers of a chart."""
    return chart.rows()


def of_map(spec: Spec, looked: Looked) -> Iterator[Row]:
    """The weights of the selected head, reduced as the figure is where it has more than dots."""
    capture, chosen = looked.capture, spec.selection
    one = map_of(capture, chosen.layer, chosen.head)
    _require_tokens(spec, capture)
    zooms = reduction(one.shape[1:], zooms_of(capture, chosen.head_id, points(spec.width)))
    return chain([CELLS], _weights(capture, chosen.head_id, str(chosen.head_id), zooms))


def of_image(spec: Spec, looked: Looked) -> Iterator[Row]:
    """The weights of each head that is shown, over the patches, by row and column from 0; those of
    what the model adds to them have neither."""
    capture, query = looked.capture, query_of(spec, looked.capture)
    yield PATCHES
    named = "" if query is None else capture.prompt.pieces[query]
    for one in patch_weights(spec, capture):
        state = OFF if one.head in capture.off else SEEN
        for number, weight in enumerate(one.added.tolist()):
            piece = capture.prompt.pieces[number]
            yield str(one.head), named, piece, "", "", float(weight), state
        for (row, column), weight in np.ndenumerate(one.grid):
            yield str(one.head), named, f"{row},{column}", row, column, float(weight), state


def of_rollout(spec: Spec, looked: Looked) -> Iterator[Row]:
    """The one map of a composed capture."""
    capture = looked.capture
    shape = map_of(capture, 0, 0).shape[1:]
    zooms = reduction(shape, zooms_of(capture, HeadId(0, 0), points(spec.width)))
    return chain([CELLS], _weights(capture, HeadId(0, 0), "all", zooms))


def of_wall(spec: Spec, looked: Looked) -> Iterator[Row]:
    """The weights of every head, in cells so large that all of them together are not too many."""
    capture = looked.capture
    layers = [one for one in capture.spec.layers if one.heads]
    maps = [map_of(capture, one.index, one.heads[0]) for one in layers]
    zoom = 0
    while (
        sum(len(one.heads) * prod(cells(one.shape[1:], (zoom,) * 2)) for one in maps) > MOST_OF_WALL
    ):
        zoom += 1
    yield CELLS
    for layer, one in zip(layers, maps, strict=True):
        for head in one.heads:
            here = HeadId(layer.index, head)
            yield from _weights(capture, here, str(here), (zoom, zoom))


def of_levels(spec: Spec, looked: Looked) -> Iterator[Row]:
    """The row of the selected token in every stage, a line for each position it may look at."""
    capture, facts = looked.capture, looked.facts
    query = query_in(capture.main, spec.selection.query)
    yield STRIPS
    for number, layers in enumerate(stages_of(capture)):
        stage = stage_of(spec, capture, facts, layers, query)
        layer = stage.head.layer
        spans = capture.query_spans(layer)
        row = min(capture.row(layer, query), len(spans) - 1)
        asked = side(capture.query_prompt(layer), spans[row : row + 1], 0)[0]
        asked = asked._replace(first=row, last=row)
        start = (
            number + 1, capture.spec.levels[stage.level].label, str(stage.head), *asked,
        )  # fmt: skip
        off = stage.head in capture.off
        for at, key in enumerate(side(stage.prompt, stage.spans, 0)):
            seen = bool(stage.seen[at])
            weight = float(stage.weights[at]) if seen else ""
            yield (*start, *key, weight, OFF if off else SEEN if seen else UNSEEN)


def of_links(spec: Spec, looked: Looked) -> Iterator[Row]:
    """Every link, the strongest of each query and head first."""
    capture = looked.capture
    map_of(capture, spec.selection.layer, spec.selection.head)
    links = find_links(capture, spec.selection, spec.links)
    how = "; ".join(spec.links.captions[1:])
    yield LINKS
    for place, many in links.strands.items():
        asked = unit(links.queries, place)
        for head, name, strand in zip(_heads(links), names_of(links), many, strict=True):
            if head in capture.off:
                yield (name, *asked, "", "", "", "", OFF, how)
                continue
            for key, weight in zip(strand.keys.tolist(), strand.weights.tolist(), strict=True):
                yield (name, *asked, *unit(links.keys, key), weight, SEEN, how)


def of_three(_: Spec, chart: Three) -> Iterator[Row]:
    """Both weights and their difference, in the cells that both maps have on one grid."""
    rows = side(chart.rows_.prompt, _spans(chart.rows_), chart.zoom)
    columns = side(chart.columns.prompt, _spans(chart.columns), chart.zoom)
    how = reduced((chart.zoom, chart.zoom))
    yield THREE
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            a, b, both = (bool(seen[i, j]) for seen in chart.seen)
            weights = (
                float(one[i, j]) if seen else ""
                for one, seen in zip(chart.maps, (a, b, both), strict=True)
            )
            yield (*row, *column, *weights, STATES.get((a, b), UNSEEN), how)


# --- what they have in common ---------------------------------------------------------------------


def cell(value: Any) -> str:
    """A value as a table has it: a number with seven digits that count, nothing for no number.

    A text that a spreadsheet would take for a formula has an apostrophe before it, and so has one
    that looks so already: whoever reads it takes one away.
    """
    if isinstance(value, NUMBERS):
        return f"{value:.{DIGITS}g}" if isfinite(value) else ""
    return _text(value)


@lru_cache(maxsize=1 << 14, typed=True)  # tokens and their numbers come back in every line
def _text(value: str | int) -> str:
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.lstrip("'")[:1] in FORMULA else text


FORMULA = frozenset("=+-@\t\r\n＝＋－＠")  # what formulas begin with


def plain(text: str) -> str:
    """A text of a table as it was before `cell`."""
    return text[1:] if text[:1] == "'" and text.lstrip("'")[:1] in FORMULA else text


def side(prompt: Prompt, spans: Integers, zoom: int) -> list[Cell]:
    """The cells of 2^zoom positions along one side of a map; spans (positions, 2) are tokens."""
    found = []
    for first in range(0, len(spans), 1 << zoom):
        some = spans[first : first + (1 << zoom)]
        real = some[some[:, 1] > 0]
        last = first + len(some) - 1
        if len(real):
            start, end = int(max(real[:, 0].min(), 0)), int(real[:, 1].max())
            found.append(Cell(first, last, start, end - 1, text_of(prompt, start, end)))
        else:
            found.append(Cell(first, last, "", "", ""))
    return found


def text_of(prompt: Prompt, start: int, end: int) -> str:
    """The characters of tokens start..end-1, the names of tokens that have none; not too long."""
    found = prompt.words(start, end) or " ".join(prompt.pieces[start:end])
    return found if len(found) <= LONGEST else f"{found[: LONGEST - 1]}…"


def unit(one: Side, place: int) -> tuple[int | str, int | str, str]:
    """First token, last token and text of the unit shown at a place of a side."""
    start, end = (int(token) for token in one.tokens[one.shown[place]])
    if end <= 0:
        return "", "", ""
    return max(start, 0), end - 1, text_of(one.prompt, max(start, 0), end)


def names_of(links: Links) -> list[str]:
    """What the strands of links are called: heads, or how some are put together."""
    if links.fuse == "each" or len(links.heads) == 1:
        return [str(head) for head in links.heads]
    return [f"{links.fuse} of {', '.join(map(str, links.heads))}"]


def reduction(shape: tuple[int, ...], zooms: Zooms) -> Zooms:
    """The zooms, or the least above them, at which a map has at most MOST cells."""
    while prod(found := cells(shape, zooms)) > MOST:
        zooms = zooms[0] + (found[0] >= found[1]), zooms[1] + (found[1] >= found[0])
    return zooms


def cells(shape: tuple[int, ...], zooms: Zooms) -> tuple[int, int]:
    """How many rows and columns of cells a map has."""
    rows, columns = (-(-size >> zoom) for size, zoom in zip(shape, zooms, strict=True))
    return rows, columns


def reduced(zooms: Zooms) -> str:
    """What a cell is of the weights it stands for, "" where that is one."""
    rows, columns = (1 << zoom for zoom in zooms)
    return f"largest of {rows} x {columns}" if any(zooms) else ""


def _weights(capture: Capture, head: HeadId, name: str, zooms: Zooms) -> Iterator[Row]:
    """A line for each cell of a head's map; one alone where the head is off."""
    one = map_of(capture, *head)
    if head in capture.off:
        yield (name, *[""] * 11, OFF, "")
        return
    layer = head.layer
    rows = side(capture.query_prompt(layer), capture.query_spans(layer), zooms[0])
    columns = side(capture.key_prompt(layer), capture.key_spans(layer), zooms[1])
    found: Floats = read_cells(one, head.head, zooms)
    seen: NDArray[np.bool_] = seen_cells(capture, layer, zooms, head=head.head)
    how = reduced(zooms)
    for row, weights, there in zip(rows, found.tolist(), seen.tolist(), strict=True):
        for column, weight, shown in zip(columns, weights, there, strict=True):
            yield (name, *row, *column, weight, SEEN if shown else UNSEEN, how)


def _require_tokens(spec: Spec, capture: Capture) -> None:
    """Errors: HgvizError for a selected token that is not there, as the figure says it."""
    chosen = spec.selection
    if chosen.query is not None:
        token_in(capture.query_prompt(chosen.layer), chosen.query)
    if chosen.key is not None:
        token_in(capture.key_prompt(chosen.layer), chosen.key)


def _heads(links: Links) -> list[HeadId | None]:
    """The head of each strand, None for several."""
    return list(links.heads) if links.fuse == "each" or len(links.heads) == 1 else [None]


def _spans(edge: Edge) -> Integers:
    return edge.spans
