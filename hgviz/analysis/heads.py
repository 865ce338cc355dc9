"""What each head does: its numbers, its role in words with the evidence, and the clearest ones.

A role is judged by the mean share of a row's weight on the keys that it means, against the share
that an even row would put there (after Voita et al. 2019, who name heads by what they do on text).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hgviz.analysis.finders import finders_for
from hgviz.analysis.judging import Showing, best_of, showing
from hgviz.analysis.layout import Layout
from hgviz.analysis.reading import Bools, Reading
from hgviz.analysis.saying import Said, Words
from hgviz.analysis.tally import METRICS, Array, Metric, Tally, ratio
from hgviz.core import Capture, HeadId, Layer, Map, Selection, Step, Task

_ROWS, _COLUMNS = 256, 1024  # whole tiles
_CELLS = 1 << 26  # of one head; longer texts are measured on rows spread over them
_ENOUGH = 16  # keys from which on a row counts, or a quarter of the longest row's
_EVEN = 0.9  # of the entropy of an even row
_PLAIN = ("first", "same", "near")


@dataclass(frozen=True, slots=True)
class HeadFacts:
    """What is known of a head.

    role is "" where none shows, score the mean share of its weight that goes there; finder is the
    role's key in FINDERS, clarity (nats a row) how far it is from chance, both empty without a
    role. level and kind are those of its layer.
    """

    head: HeadId
    metrics: dict[str, float]
    role: str
    sentence: str
    evidence: str
    score: float
    finder: str = ""
    clarity: float = 0.0
    level: int = 0
    kind: str = "self"


def measure(capture: Capture) -> Task[dict[HeadId, HeadFacts]]:
    """The facts of every head that is captured, layer by layer.

    Yields a Step after each block of rows; when a layer is done, its value is the facts so far.
    Holds at most 256 rows by 1,024 keys of a layer's maps. Rows with few keys do not count. Of
    texts above 8,192 tokens only rows spread evenly over the text are read; the evidence says so.
    """
    reading = Reading(capture.prompt)
    found: dict[HeadId, HeadFacts] = {}
    total = len(capture.spec.layers)
    for layer in capture.spec.layers:
        known = capture.maps[layer.index]
        if known is not None and known.heads:
            layout = Layout(capture, layer.index)
            tally = Tally(len(known.heads), known.shape[1], finders_for(layout))
            blocks = _row_blocks(*known.shape[1:])
            for done, rows in enumerate(blocks):
                yield Step(layer.index + done / len(blocks), total, "Measuring heads")
                _count(tally, known, layout, reading, rows)
            place = _place(capture, layer, reading.unit)
            words = Words(reading.unit, place, known.signed, _sampled(blocks, known))
            found.update(_facts(layer, known.heads, tally, _rows(tally, layout, reading), words))
        yield Step(layer.index + 1, total, "Measuring heads", dict(found))
    return found


def _row_blocks(queries: int, keys: int) -> list[slice]:
    starts = np.arange(0, queries, _ROWS)
    most = min(len(starts), max(2, _CELLS // (_ROWS * keys)))
    chosen = starts[np.linspace(0, len(starts) - 1, most).round().astype(int)]
    return [slice(int(one), min(int(one) + _ROWS, queries)) for one in chosen]


def _place(capture: Capture, layer: Layer, unit: str) -> str:
    if layer.role != "self":
        return "group"
    return unit if capture.spec.levels[layer.level].stride == 1 else "position"


def _sampled(blocks: list[slice], known: Map) -> str:
    rows = sum(one.stop - one.start for one in blocks)
    whole = known.shape[1]
    return "" if rows == whole else f"; measured on {rows:,} of {whole:,} rows"


def _count(tally: Tally, known: Map, layout: Layout, reading: Reading, rows: slice) -> None:
    keys = known.shape[2]
    for start in range(0, keys, _COLUMNS):
        columns = slice(start, min(start + _COLUMNS, keys))
        block = layout.block(reading, rows, columns)
        # the zeros of the causal shift stand for no token, and yet take weight
        if block.seen.any() or start == 0:
            sizes = np.abs(np.stack([known.read(head, rows, columns) for head in known.heads]))
            tally.add(rows, sizes, block)


def _rows(tally: Tally, layout: Layout, reading: Reading) -> Bools:
    """(rows,) True for the rows that count: real ones, measured, with enough keys."""
    real: Bools = layout.query[:, 0] >= 0
    if reading.real is not None:
        real &= reading.real[layout.now]
    enough = max(1.0, min(_ENOUGH, tally.seen.max(initial=0) / 4))
    real &= tally.seen >= enough
    return real


def _facts(
    layer: Layer, heads: tuple[int, ...], tally: Tally, rows: Bools, words: Words
) -> Iterator[tuple[HeadId, HeadFacts]]:
    values = {name: _mean(one.of(tally), rows) for name, one in METRICS.items()}
    even = _mean(ratio(METRICS["entropy"].of(tally), np.log(np.maximum(tally.seen, 1))), rows)
    fits = list(showing(tally, rows))
    for number, head in enumerate(heads):
        metrics = {name: float(one[number]) for name, one in values.items()}
        said = _said(tally, [one[number] for one in fits], float(even[number]), words)
        one = HeadId(layer.index, head)
        yield one, HeadFacts(one, metrics, *said, level=layer.level, kind=layer.role)


def _said(tally: Tally, fits: list[Showing], even: float, words: Words) -> Said:
    if tally.seen.max(initial=0) <= 1:
        return words.trivial()
    best = best_of(fits)
    if best is not None:
        return words.role(best, tally.roles[best.name])
    if even >= _EVEN:
        return words.everything(even)
    return words.nothing(max(fits, key=lambda one: one.clarity, default=None), tally.roles)


def _mean(values: Array, rows: Bools) -> Array:
    """(heads,): the mean over the rows that count."""
    return values[:, rows].mean(axis=1) if rows.any() else np.zeros(len(values))


# --- what the window asks -------------------------------------------------------------------------


def worth_a_look(facts: Mapping[HeadId, HeadFacts], count: int = 4) -> list[HeadFacts]:
    """The clearest heads of different roles, from different levels where possible.

    Self-attention comes first, and roles that say something of the text before those that any text
    would show; heads without a role are never among them.
    """
    left = [one for one in facts.values() if one.clarity > 0]
    chosen: list[HeadFacts] = []
    while left and len(chosen) < count:
        levels = [one.level for one in chosen]
        best = max(
            left,
            key=lambda one: (
                one.kind == "self",
                one.finder not in _PLAIN,
                one.clarity / (1 + levels.count(one.level)),
            ),
        )
        chosen.append(best)
        left = [one for one in left if one.finder != best.finder]
    return chosen


class Place(NamedTuple):
    """A head's rank by a metric, 1 for the largest, among how many heads."""

    rank: int
    total: int


def place(metric: str, head: HeadId, facts: Mapping[HeadId, HeadFacts]) -> Place:
    """Where a head stands among all self-attention heads; itself counts, whatever its kind."""
    others = [one for one in facts.values() if one.kind == "self" and one.head != head]
    value = facts[head].metrics[metric]
    return Place(1 + sum(one.metrics[metric] > value for one in others), 1 + len(others))


def top_keys(
    capture: Capture, selection: Selection, count: int = 5
) -> list[tuple[int | None, int, float]]:
    """Where the selected query looks most: (key token, column, weight), the largest size first.

    The last token's row where no query is chosen. The token is the newest that a column stands
    for, None for the zeros of the causal shift. Keys without weight are left out.
    """
    known = capture.maps[selection.layer]
    if known is None or not len(capture.prompt):
        return []
    token = len(capture.prompt) - 1 if selection.query is None else selection.query
    row = capture.row(selection.layer, token)
    weights = known.read(selection.head, (row, row + 1))[0]
    order = np.argsort(-np.abs(weights), kind="stable")[:count]
    return [
        (capture.column_token(selection.layer, int(column)), int(column), float(weights[column]))
        for column in order
        if weights[column] != 0
    ]


__all__ = [
    "METRICS", "HeadFacts", "Metric", "Place", "measure", "place", "top_keys", "worth_a_look",
]  # fmt: skip
