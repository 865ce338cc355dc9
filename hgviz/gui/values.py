"""What the views show as tables of values: for those who compute with them or cannot see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hgviz.analysis.heads import METRICS
from hgviz.core import HeadId
from hgviz.gui import sentences
from hgviz.gui import tiles as mosaic
from hgviz.gui.grid import Viewport, rule_of, seen
from hgviz.gui.language import tr
from hgviz.gui.sentences import metric_name
from hgviz.gui.tables import Table, _number, span

if TYPE_CHECKING:
    from hgviz.gui.atlas import Thumb
    from hgviz.gui.opened import Opened
    from hgviz.gui.textrows import Line, Passage
    from hgviz.gui.tiles import Tiles
    from hgviz.session import Session

CELL = ("Query", "Query token", "Key", "Key token", "Weight")


def of_row(opened: Opened, row: int) -> Table | None:
    """The weights of one row of a whole map on every key that it sees; None until it was read."""
    weights = opened.rows.get(row)
    if weights is None:
        return None
    queries, keys = opened.grid.queries, opened.grid.keys
    cells = np.arange(len(weights))
    rule = rule_of(opened.grid.capture, opened.head)
    there = seen(rule, np.array([[row, row + 1]]), np.stack([cells, cells + 1], axis=1))[0]
    query = str(row), queries.glyph(row)
    return [
        [tr(one) for one in CELL],
        *(
            [*query, str(at), keys.glyph(at), str(weights[at])]
            for at in np.flatnonzero(there).tolist()
        ),
    ]


def of_cells(opened: Opened, tiles: Tiles, view: Viewport) -> Table:
    """The cells on screen; several that share a pixel are 0:4, with their largest weight."""
    values = mosaic.compose(tiles, opened.source, view)
    hidden = mosaic.unseen(opened.source, view)
    rows, columns = mosaic.ranges(view.down), mosaic.ranges(view.across)
    out, grid = [[tr(one) for one in CELL]], opened.grid
    for i in range(len(rows)):
        for j in range(len(columns)):
            first = grid.whole(int(rows[i, 0]), int(columns[j, 0]))
            last = grid.whole(int(rows[i, 1]) - 1, int(columns[j, 1]) - 1)
            if hidden[i, j] or first is None or np.isnan(values[i, j]):
                continue
            query, key = (span(*one) for one in zip(first, last or first, strict=True))
            glyphs = grid.queries.glyph(first[0]), grid.keys.glyph(first[1])
            out.append([query, glyphs[0], key, glyphs[1], str(values[i, j])])
    return out


def of_heads(session: Session, thumbs: dict[HeadId, Thumb]) -> Table | None:
    """Every head of a model: its level, what it does, and the numbers on its card and of its
    colour."""
    spec = session.spec
    if spec is None:
        return None
    unit = session.capture.main.unit if session.capture is not None else "letter"
    facts = session.habits.facts if session.habits is not None else session.facts
    shade = [session.shade] if session.shade in METRICS else []
    metrics = dict.fromkeys(("focus", "entropy", *shade))
    out = [[tr("Head"), tr("Level"), tr("Role"), *(metric_name(one, unit) for one in metrics)]]
    for head in spec.heads:
        known, small = facts.get(head), thumbs.get(head)
        numbers = dict(known.metrics) if known is not None else {}
        if small is not None:
            numbers.setdefault("focus", small.focus)
        role = tr(known.role) if known is not None else "" if small else tr("not captured yet")
        cells = (_number(numbers.get(one)) for one in metrics)
        out.append([str(head), sentences.ends(spec, head.layer), role, *cells])
    return out


def of_passages(passages: Sequence[Passage]) -> Table:
    """One row for each token of each text, with the weight of the cell that it is in, level by
    level."""
    heads = [
        (passage, line)
        for passage in passages
        for line in passage.lines
        if line.weights is not None
    ]
    names = [
        " ".join(filter(None, (line.level, tr("head {head}", head=line.head)))) for _, line in heads
    ]
    out = [[tr("Text"), tr("Position"), tr("Token"), *names]]
    for number, passage in enumerate(passages, 1):
        for token in range(len(passage.prompt)):
            weights = (_weight(line, token) if of is passage else "" for of, line in heads)
            name = sentences.name(passage.prompt, token)
            out.append([str(number), str(token), name, *weights])
    return out


def _weight(line: Line, token: int) -> str:
    """What the cell that a token is in gets; "" where the query does not see it."""
    cell = line.cell(token)
    if cell is None or line.weights is None or (line.seen is not None and not line.seen[cell]):
        return ""
    return str(line.weights[cell])
