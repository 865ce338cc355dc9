"""What the text strip shows: each text of a capture, and a head's weights over it, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from hgviz import palettes
from hgviz.core import Capture, Display, Floats, HeadId, Off, Prompt, Selection, Side, Step, Task
from hgviz.gui.views import signs, words
from hgviz.gui.views.cells import Line
from hgviz.gui.views.sight import rule_of, seen

MOST_ROWS = 1024  # queries that a mean is taken over

Tokens = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """One text with its rows. queries: the tokens chosen in it, the last included.

    asks, answers: whether the queries and the keys of the selected head are tokens of it.
    """

    prompt: Prompt
    lines: tuple[Line, ...]
    queries: Tokens | None = None
    asks: bool = True
    answers: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """What to show: the selected head and tokens, the heads opened before, what is switched off.

    tokens: the query last chosen in each text by level, for rows of another text's head.
    """

    selection: Selection
    queries: Tokens | None
    opened: Mapping[int, HeadId]
    tokens: Mapping[int, int | None]
    display: Display
    off: Off


@dataclass(frozen=True, slots=True)
class Row:
    """A row to read: a level, the head shown there, its query, and whether it shows its keys."""

    level: int
    head: HeadId | None
    queries: Tokens | None
    keys: bool = True


def passages(capture: Capture, wish: Wish) -> Task[tuple[Passage, ...]]:
    """Read one row of weights for each row of the strip."""
    spec = capture.spec
    rows = list(_rows(capture, wish))
    lines = []
    for number, row in enumerate(rows):
        yield Step(number, len(rows), "Reading the text's weights")
        lines.append(_line(capture, row, wish))
    reached = [_reach(line.weights) for line in lines if line.weights is not None]
    most = max(reached, default=0.0)
    lines = [replace(line, limits=_limits(line, wish.display, most)) for line in lines]
    one = spec.layers[wish.selection.layer]
    asking, answering = (spec.levels[at].sequence for at in (one.level, one.key_level))
    found = []
    sides: list[Side] = list(dict.fromkeys(spec.levels[row.level].sequence for row in rows))
    for side in sides:
        mine = [n for n, row in enumerate(rows) if spec.levels[row.level].sequence == side]
        first = rows[mine[0]]
        queries = wish.queries if side == asking else None if first.keys else first.queries
        if side not in (asking, answering):
            queries = first.queries
        prompt = capture.prompt_of(first.level)
        told = tuple(lines[n] for n in mine)
        found.append(Passage(prompt, told, queries, side == asking, side == answering))
    return tuple(found)


def _rows(capture: Capture, wish: Wish) -> Iterator[Row]:
    """Of one text a row for each level; of two texts, and of slots, a row for each of both."""
    spec, chosen = capture.spec, wish.selection
    layer = spec.layers[chosen.layer]
    if len({level.sequence for level in spec.levels}) == 1:
        for level in spec.levels:
            head = wish.opened.get(level.index)
            if head is not None and capture.maps[head.layer] is not None:
                yield Row(level.index, head, wish.queries)
        return
    for level in spec.levels:
        if level.index == layer.key_level:
            yield Row(level.index, chosen.head_id, wish.queries)
        elif level.index == layer.level and layer.role == "cross" and level.index in wish.opened:
            yield Row(level.index, wish.opened[level.index], wish.queries)
        elif level.index == layer.level:  # its keys are slots
            yield Row(level.index, None, wish.queries, keys=False)
        elif level.sequence == "source":
            yield Row(level.index, _beside(capture, chosen), wish.queries)
        else:
            token = wish.tokens.get(level.index)
            queries = None if token is None else (token, token)
            yield Row(level.index, wish.opened.get(level.index), queries, keys=False)


def _beside(capture: Capture, chosen: Selection) -> HeadId | None:
    """The head by which the selected decoder layer's block looks at the other text."""
    after = capture.spec.layers[chosen.layer + 1 :]
    crossing = next((one for one in after if one.role == "cross" and one.heads), None)
    if crossing is None:
        return None
    head = min(crossing.heads, key=lambda one: (abs(one - chosen.head), one))
    return HeadId(crossing.index, head)


def _line(capture: Capture, row: Row, wish: Wish) -> Line:
    name = "" if len(capture.spec.levels) == 1 else words.level(capture.spec, row.level)
    head = row.head
    layer = None if head is None else capture.maps[head.layer]
    if head is None or layer is None:
        spans = capture.spans[row.level]
        chosen = None if row.queries is None else row.queries[1]
        return Line(name, None, spans, chosen=chosen)
    facts = capture.spec.layers[head.layer]
    real = capture.key_spans(head.layer)
    null = capture.null(facts.key_level)  # which is there before any token
    last = np.flatnonzero(real[:, 1] > 0).max(initial=0 if null else -1)
    count = 1 + int(last)  # padding stands at the end
    line = Line(name, head, real[:count], signed=signs.signed(capture, head), off=head in wish.off)
    if row.queries is None:
        return line
    first, last = (min(capture.row(head.layer, one), layer.shape[1] - 1) for one in row.queries)
    first = max(first, last + 1 - MOST_ROWS)
    weights = layer.read(head.head, rows=(first, last + 1)).mean(axis=0)[:count]
    cells = np.arange(count)
    inside = seen(
        rule_of(capture, head),
        np.array([[first, last + 1]]),
        np.stack([cells, cells + 1], axis=1),
    )[0]
    key = wish.selection.key if _same_keys(capture, head, wish.selection) else None
    column = None if key is None else capture.column(head.layer, key)
    alike = capture.spec.levels[facts.level].sequence == capture.spec.levels[row.level].sequence
    return replace(
        line,
        weights=weights,
        seen=inside,
        chosen=last if alike and last < count else None,
        key=column if column is not None and column < count else None,
    )


def _same_keys(capture: Capture, head: HeadId, chosen: Selection) -> bool:
    spec = capture.spec
    mine, its = (spec.levels[spec.layers[one].key_level] for one in (head.layer, chosen.layer))
    return mine.sequence == its.sequence


def _limits(line: Line, display: Display, most: float) -> tuple[float, float]:
    if display.limits is not None:
        return palettes.limits_of(*display.limits, line.signed)
    reach = most if display.shared or line.weights is None else _reach(line.weights)
    return palettes.limits_of(-reach, reach, line.signed)


def _reach(weights: Floats) -> float:
    return float(np.abs(weights).max(initial=0.0))
