"""How a role fits a head, and when it may be named."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hgviz.analysis.metrics import Array, RowSums, ratio
from hgviz.analysis.tokens import Bools

_FEWEST = 8  # rows that a role must be seen in, and
_COVERAGE = 0.15  # of the rows that count
_EXCESS = 0.1  # of what chance leaves: (share - chance) / (1 - chance)
_CLEAR = 0.1  # nats a row
_EVIDENCE = 7.5  # nats over all rows; chance alone reaches it in 1 of 10,000 tries
_STEADY = 0.5  # each half of the rows shows at least this part of the excess
_PART = 0.25  # every second target shows at least this part of the lift over chance
_NEAR = ("same", "previous", "two back", "three back")


@dataclass(frozen=True, slots=True)
class Showing:
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


class Fit:
    """How the heads of a layer fit a role: sums over the rows that have such a key, of one text or
    of many. rows counts them; share (heads,) and chance are sums over them, halves the same of the
    first and of the second part of each text. parts: of every second target, and of the others.
    """

    def __init__(self, heads: int) -> None:
        self.rows, self.chance = 0, 0.0
        self.share = np.zeros(heads)
        self._halves = [(np.zeros(heads), np.zeros(2)) for _ in range(2)]
        self._parts: list[tuple[Array, Array]] = []

    def add(self, tally: RowSums, name: str, rows: Array, share: Array) -> None:
        """Count the rows (by number) of a text, of which share (heads, rows) is the role's."""
        chance = ratio(tally.chance[name], tally.seen)[rows]
        self.rows += len(rows)
        self.chance += float(chance.sum())
        self.share += share.sum(1)
        middle = len(rows) // 2
        for (shares, sums), half in zip(
            self._halves, (slice(None, middle), slice(middle, None)), strict=True
        ):
            shares += share[:, half].sum(1)
            sums += len(chance[half]), chance[half].sum()
        if name in tally.even_hits:
            self._split(tally, name, rows)

    def _split(self, tally: RowSums, name: str, rows: Array) -> None:
        if not self._parts:
            self._parts = [(np.zeros(len(self.share)), np.zeros(1)) for _ in range(2)]
        even = tally.even_hits[name][:, rows], tally.even_chance[name][rows]
        odd = tally.hits[name][:, rows] - even[0], tally.chance[name][rows] - even[1]
        for (shares, by_chance), (hits, chance) in zip(self._parts, (even, odd), strict=True):
            there = chance > 0
            shares += ratio(hits, tally.mass[:, rows])[:, there].sum(1)
            by_chance += ratio(chance, tally.seen[rows])[there].sum()

    def showing(self, name: str, counted: int) -> list[Showing]:
        """How the role fits each head, of so many rows that count; empty where too few have one."""
        if self.rows < max(_FEWEST, _COVERAGE * counted):
            return []
        shares, mean = self.share / self.rows, self.chance / self.rows
        excess = _excess(shares, mean)
        nats = np.array([_nats(float(one), mean) for one in shares])
        shows = (excess >= _EXCESS) & (nats >= max(_CLEAR, _EVIDENCE / self.rows))
        shows &= self._steady(excess) & self._spread(shares / mean)
        coverage = self.rows / counted
        return [
            Showing(name, float(one), mean, coverage, bool(seen))
            for one, seen in zip(shares, shows, strict=True)
        ]

    def _steady(self, excess: Array) -> Bools:
        """(heads,): whether a role shows in both halves of the texts."""
        found = [
            _excess(share / rows, chance / rows) for share, (rows, chance) in self._halves if rows
        ]
        lowest: Array = np.min(found, axis=0)
        return lowest >= _STEADY * excess

    def _spread(self, lift: Array) -> Bools:
        """(heads,): whether every second of a role's targets is looked at, and every other one.

        A head that rests on one place, which happens to be a capital letter, does not look at
        capital letters.
        """
        alike = np.ones(len(lift), bool)
        for share, by_chance in self._parts:
            alike &= (share > 0) & (share - by_chance >= _PART * (lift - 1) * by_chance)
        return alike


def fitting(tally: RowSums, name: str, rows: Bools) -> Array:
    """The numbers of the rows that have a key of a role, and keys that are none."""
    chance = ratio(tally.chance[name], tally.seen)
    return np.flatnonzero(rows & (chance > 0) & (chance <= 0.5))


def best_of(fits: list[Showing]) -> Showing | None:
    """The clearest role that shows; a single place near by that takes half of the weight is named
    rather than its neighbourhood."""
    shown = [one for one in fits if one.shows]
    best = max(shown, key=lambda one: one.clarity, default=None)
    if best is not None and best.name == "near":
        half = [one for one in shown if one.name in _NEAR and one.share >= 0.5]
        return max(half, key=lambda one: one.share, default=best)
    return best


def _excess(share: Array, chance: float) -> Array:
    """(heads,): what a share adds to chance, of what it could add."""
    return (share - chance) / (1 - chance)


def _nats(share: float, chance: float) -> float:
    """The divergence of a share from chance; 0 where the share is not larger."""
    if share <= chance:
        return 0.0
    rest = (1 - share) * np.log((1 - share) / (1 - chance)) if share < 1 else 0.0
    return float(share * np.log(share / chance) + rest)
