"""What each head does: its numbers, its role in words with the evidence, and the clearest ones.

A role is judged by the mean share of a row's weight on the keys that it means, against the share
that an even row would put there (after Voita et al. 2019, who name heads by what they do on text).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hgviz.analysis.finders import Finder, finders_for
from hgviz.analysis.layout import Layout
from hgviz.analysis.reading import Bools, Reading
from hgviz.analysis.tally import METRICS, Array, Metric, Tally, ratio
from hgviz.core import Capture, HeadId, Layer, Map, Selection, Step, Task

_ROWS, _COLUMNS = 256, 1024  # whole tiles
_CELLS = 1 << 26  # of one head; longer texts are measured on rows spread over them
_ENOUGH = 16  # keys from which on a row counts, or a quarter of the longest row's
_FEWEST = 8  # rows that a role must be seen in, and
_COVERAGE = 0.15  # of the rows that count
_EXCESS = 0.1  # of what chance leaves: (share - chance) / (1 - chance)
_CLEAR = 0.1  # nats a row
_EVIDENCE = 7.5  # nats over all rows; chance alone reaches it in 1 of 10,000 tries
_HALF = 0.5  # each half of the rows shows at least this part of the excess
_PART = 0.25  # every second target shows at least this part of the lift over chance
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
            words = _Words(reading.unit, place, known.signed, _sampled(blocks, known))
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


# --- from numbers to words ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Words:
    """How a layer speaks of what it looks at; unit and place are those of Finder."""

    unit: str
    place: str
    signed: bool
    sampled: str

    def fill(self, text: str) -> str:
        return text.format(unit=self.unit, place=self.place)

    @property
    def weight(self) -> str:
        return "the size of its weights" if self.signed else "its weight"


@dataclass(frozen=True, slots=True)
class _Showing:
    """How a role fits one head: share and chance are means over the rows that have such a key."""

    name: str
    share: float
    chance: float
    coverage: float
    shows: bool

    @property
    def clarity(self) -> float:
        """Nats by which the share differs from chance, less where few rows have such a key."""
        return _nats(self.share, self.chance) * float(np.sqrt(self.coverage))


def _facts(
    layer: Layer, heads: tuple[int, ...], tally: Tally, rows: Bools, words: _Words
) -> Iterator[tuple[HeadId, HeadFacts]]:
    values = {name: _mean(one.of(tally), rows) for name, one in METRICS.items()}
    even = _mean(ratio(METRICS["entropy"].of(tally), np.log(np.maximum(tally.seen, 1))), rows)
    showing = list(_showing(tally, rows))
    trivial = tally.seen.max(initial=0) <= 1
    for number, head in enumerate(heads):
        metrics = {name: float(one[number]) for name, one in values.items()}
        mine = [one[number] for one in showing]
        best = max((one for one in mine if one.shows), key=lambda one: one.clarity, default=None)
        nearest = max(mine, key=lambda one: one.clarity, default=None)
        if trivial:
            said = _trivial()
        elif best is not None:
            said = _role(best, tally.roles[best.name], words)
        elif even[number] >= _EVEN:
            said = _everything(float(even[number]), words)
        else:
            said = _nothing(nearest, tally.roles, words)
        yield (
            HeadId(layer.index, head),
            HeadFacts(
                HeadId(layer.index, head), metrics, *said, level=layer.level, kind=layer.role
            ),
        )


def _mean(values: Array, rows: Bools) -> Array:
    """(heads,): the mean over the rows that count."""
    return values[:, rows].mean(axis=1) if rows.any() else np.zeros(len(values))


def _showing(tally: Tally, rows: Bools) -> Iterator[list[_Showing]]:
    """For each role that enough rows have a key for, how it fits each head."""
    counted = int(rows.sum())
    for name in tally.roles:
        chance = ratio(tally.chance[name], tally.seen)
        fit = np.flatnonzero(rows & (chance > 0) & (chance <= 0.5))
        if len(fit) < max(_FEWEST, _COVERAGE * counted):
            continue
        share, mean = tally.share(name)[:, fit], float(chance[fit].mean())
        shares, excess = share.mean(1), _excess(share, chance[fit])
        nats = np.array([_nats(float(one), mean) for one in shares])
        shows = (excess >= _EXCESS) & (nats >= max(_CLEAR, _EVIDENCE / len(fit)))
        shows &= _steady(share, chance[fit], excess) & _spread(tally, name, fit, shares / mean)
        coverage = len(fit) / counted
        yield [
            _Showing(name, float(one), mean, coverage, bool(seen))
            for one, seen in zip(shares, shows, strict=True)
        ]


def _steady(share: Array, chance: Array, excess: Array) -> Bools:
    """(heads,): whether a role shows in both halves of the text."""
    middle = len(chance) // 2
    first = _excess(share[:, :middle], chance[:middle])
    second = _excess(share[:, middle:], chance[middle:])
    return np.minimum(first, second) >= _HALF * excess


def _spread(tally: Tally, name: str, fit: Array, lift: Array) -> Bools:
    """(heads,): whether every second of a role's targets is looked at, and every other one.

    A head that rests on one place, which happens to be a capital letter, does not look at capital
    letters.
    """
    alike = np.ones(len(lift), bool)
    if name in tally.even_hits:
        even = tally.even_hits[name][:, fit], tally.even_chance[name][fit]
        odd = tally.hits[name][:, fit] - even[0], tally.chance[name][fit] - even[1]
        for hits, chance in (even, odd):
            there = chance > 0
            share = ratio(hits, tally.mass[:, fit])[:, there].sum(1)
            by_chance = ratio(chance, tally.seen[fit])[there].sum()
            alike &= (share > 0) & (share - by_chance >= _PART * (lift - 1) * by_chance)
    return alike


def _excess(share: Array, chance: Array) -> Array:
    """(heads,): what a share adds to chance, of what it could add."""
    return (share.mean(1) - chance.mean()) / (1 - chance.mean())  # type: ignore[no-any-return]


def _nats(share: float, chance: float) -> float:
    """The divergence of a share from chance; 0 where the share is not larger."""
    if share <= chance:
        return 0.0
    rest = (1 - share) * np.log((1 - share) / (1 - chance)) if share < 1 else 0.0
    return float(share * np.log(share / chance) + rest)


# --- words ----------------------------------------------------------------------------------------

_Said = tuple[str, str, str, float, str, float]  # role, sentence, evidence, score, finder, clarity


def _role(one: _Showing, finder: Finder, words: _Words) -> _Said:
    where = (
        "" if one.coverage > 0.9 else f" where there is one, in {_percent(one.coverage)} of rows"
    )
    evidence = (
        f"{_percent(one.share)} of {words.weight}, on average, goes there{where}; "
        f"by chance {_percent(one.chance)}{words.sampled}"
    )
    name, sentence = words.fill(finder.name), words.fill(finder.sentence)
    return name, sentence, evidence, one.share, one.name, one.clarity


def _everything(even: float, words: _Words) -> _Said:
    evidence = f"its rows are {_percent(even)} as even as they could be{words.sampled}"
    return "everything", "Spreads over everything it sees", evidence, even, "", 0.0


def _trivial() -> _Said:
    return (
        "one key", "One key, always 1 (trivial)",
        "its windows hold a single key, so there is nothing to choose", 0.0, "", 0.0,
    )  # fmt: skip


def _nothing(nearest: _Showing | None, roles: Mapping[str, Finder], words: _Words) -> _Said:
    evidence = "too few rows to tell"
    if nearest is not None:
        evidence = (
            f"closest: {words.fill(roles[nearest.name].name)}, {_percent(nearest.share)} "
            f"of {words.weight}; by chance {_percent(nearest.chance)}{words.sampled}"
        )
    return "", "No single role shows on this text", evidence, 0.0, "", 0.0


def _percent(share: float) -> str:
    return "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


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
