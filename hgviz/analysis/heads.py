"""What each head does: its numbers, its role in words with the evidence, and the clearest ones.

A role is judged by the mean share of a row's weight on the keys that it means, against the share
that an even row would put there (after Voita et al. 2019, who name heads by what they do on text).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hgviz.analysis.finders import FINDERS, finders_for
from hgviz.analysis.gathered import Example, Gathered
from hgviz.analysis.judging import Showing, best_of
from hgviz.analysis.metrics import (
    BLOCK_COLUMNS,
    Array,
    HeadMetrics,
    RowSums,
    row_blocks,
    signed_heads,
)
from hgviz.analysis.saying import Named, Said, Words
from hgviz.analysis.tokens import Layout, TokenReading
from hgviz.core import Capture, HeadId, Layer, Map, Selection, progress

_EVEN = 0.9  # of the entropy of an even row
_PLAIN = ("first", "final", "same", "near", "around", "opening", "separators", "special")


@dataclass(frozen=True, slots=True)
class HeadFacts:
    """What is known of a head.

    role is "" where none shows, score the mean share of its weight that goes there; finder is the
    role's key in FINDERS, clarity (nats a row) how far it is from chance, both empty without a
    role. level and kind are those of its layer. metrics lists those of METRICS that say something
    of such a head, others read as NaN. most is the key (a column) that all rows together look at
    most, most_share its part of their weight. named: everything that it shows, the role first;
    examples: the rows in which it shows that most; nearest: the head most like it.
    """

    head: HeadId
    metrics: HeadMetrics
    role: str
    sentence: str
    evidence: str
    score: float
    finder: str = ""
    clarity: float = 0.0
    level: int = 0
    kind: str = "self"
    most: int | None = None
    most_share: float = 0.0
    named: tuple[Named, ...] = ()
    examples: tuple[Example, ...] = ()
    nearest: HeadId | None = None


def measure(capture: Capture) -> dict[HeadId, HeadFacts]:
    """The facts of every head that is captured, layer by layer.

    The progress carries the facts so far whenever a layer is done.
    Holds at most 256 rows by 512 keys of a layer's maps. Rows with few keys do not count. Of
    texts above 8,192 tokens only rows spread evenly over the text are read; the evidence says so.
    """
    found: dict[HeadId, HeadFacts] = {}
    readings: dict[str, TokenReading] = {}
    total = len(capture.spec.layers)
    for layer in capture.spec.layers:
        known = capture.maps[layer.index]
        if known is not None and known.heads:
            layout = Layout(capture, layer.index, readings)
            sums = sums_of(layout, known, signed_heads(layer, known))
            blocks = row_blocks(*known.shape[1:])
            for done, rows in enumerate(blocks):
                progress(layer.index + done / len(blocks), total, "Measuring heads")
                add_rows(sums, known, rows)
            one = Gathered(sums.signed)
            one.add(sums)
            words = words_for(capture, layout, sampled(blocks, known.shape[1]))
            found.update(facts_of(layer, known.heads, one, layout, words))
        progress(layer.index + 1, total, "Measuring heads", dict(found))
    return found


def words_for(capture: Capture, layout: Layout, more: str, texts: int = 1) -> Words:
    """How heads of a layer are spoken of; more: what is added to all evidence."""
    unit = layout.key_tokens.unit
    layer = capture.spec.layers[layout.layer]
    place = unit if capture.spec.levels[layer.level].stride == 1 else "position"
    text = "the source" if layout.is_cross else "the text"
    group = layer.role in ("down", "up")
    keys = capture.key_prompt(layer.index)
    return Words(unit, "group" if group else place, text, keys, more, texts)


def sampled(blocks: list[slice], whole: int) -> str:
    """What is said where only some of the rows were measured."""
    rows = sum(one.stop - one.start for one in blocks)
    return "" if rows == whole else f"; measured on {rows:,} of {whole:,} rows"


def sums_of(layout: Layout, maps: Map, signed: Sequence[bool]) -> RowSums:
    """Empty sums of a layer, with the sets of keys of its roles."""
    finders = finders_for(layout)
    key_sets = {name: finder.find for name, finder in finders.items()}
    members = {name: finder.members for name, finder in finders.items() if finder.members}
    return RowSums(maps.shape, signed, layout, key_sets, members)


def add_rows(sums: RowSums, maps: Map, rows: slice) -> None:
    """Add a block of rows of all heads of a layer."""
    assert sums.layout is not None
    for start in range(0, sums.keys, BLOCK_COLUMNS):
        columns = slice(start, min(start + BLOCK_COLUMNS, sums.keys))
        block = sums.layout.block(rows, columns)
        # the zeros of the causal shift stand for no token, and yet take weight
        if start == 0 or block.seen.any():
            weights = np.stack([maps.read(head, rows, columns) for head in maps.heads])
            sums.add_block(rows, columns, weights, block)


def facts_of(
    layer: Layer, heads: tuple[int, ...], found: Gathered, layout: Layout, words: Words
) -> Iterator[tuple[HeadId, HeadFacts]]:
    """What is known of each head of a layer, of the texts that were gathered.

    layout: of one of these texts; they are alike in what heads are tried for.
    """
    metrics, fits, even = found.metrics(), found.showing(), found.even
    for number, head in enumerate(heads):
        most = _most(found.columns[number])
        speaking = replace(
            words, signed=bool(found.signed[number]), most=most, metrics=metrics[number]
        )
        said = _said(found, layout, fits[number], float(even[number]), speaking)
        one = HeadId(layer.index, head)
        yield one, HeadFacts(
            one, metrics[number], *said, layer.level, layer.role, *most,
            named=speaking.named(said, [each for each in fits[number] if each.shows], FINDERS),
            examples=found.examples(number, said.finder),
        )  # fmt: skip


def _most(columns: Array) -> tuple[int | None, float]:
    """The key with the largest mass, and its part of all."""
    whole = float(columns.sum())
    key = int(columns.argmax()) if whole else None
    return key, float(columns[key]) / whole if key is not None else 0.0


def _said(found: Gathered, layout: Layout, fits: list[Showing], even: float, words: Words) -> Said:
    if found.longest <= 1:
        return words.trivial(layout.window is not None)
    best = best_of(fits)
    if best is not None:
        return words.role(best, FINDERS[best.name])
    if even >= _EVEN:
        return words.everything(even)
    # in a causal map the first keys gather weight only because more rows see them
    ordered = layout.causal or layout.step > 1
    if not ordered and (one := words.favourite(found.columns.shape[1])):
        return one
    nearest = max(fits, key=lambda one: one.clarity, default=None)
    return words.nothing(nearest, FINDERS, ordered)


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
    """A head's rank by a metric, 1 for the largest, among how many heads; 0 of 0 for no number."""

    rank: int
    total: int


def peers(head: HeadId, facts: Mapping[HeadId, HeadFacts]) -> list[HeadFacts]:
    """The heads that one is compared with: all of cross-attention, or all of self-attention."""
    kind = "cross" if facts[head].kind == "cross" else "self"
    return [one for one in facts.values() if one.kind == kind]


def place(metric: str, head: HeadId, facts: Mapping[HeadId, HeadFacts]) -> Place:
    """Where a head stands among its peers; itself counts, whatever its kind."""
    others = [one for one in peers(head, facts) if one.head != head]
    value = facts[head].metrics[metric]
    if metric not in facts[head].metrics:
        return Place(0, 0)
    numbers = [one.metrics[metric] for one in others if metric in one.metrics]
    return Place(1 + sum(one > value for one in numbers), 1 + len(numbers))


def top_keys(
    capture: Capture, selection: Selection, count: int = 5
) -> list[tuple[int | None, int, float]]:
    """Where the selected query looks most: (key token, column, weight), the largest size first.

    The last token's row where no query is chosen. The token is the newest that a column stands
    for, None for the zeros of the causal shift. Keys without weight are left out.
    """
    known = capture.maps[selection.layer]
    prompt = capture.query_prompt(selection.layer)
    if known is None or not len(prompt):
        return []
    token = prompt.last if selection.query is None else selection.query
    row = capture.row(selection.layer, token)
    weights = known.read(selection.head, (row, row + 1))[0]
    order = np.argsort(-np.abs(weights), kind="stable")[:count]
    return [
        (capture.column_token(selection.layer, int(column)), int(column), float(weights[column]))
        for column in order
        if weights[column] != 0
    ]
