"""How a role fits a head, and when it may be named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hgviz.analysis.reading import Bools
from hgviz.analysis.tally import Array, Tally, ratio

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


def showing(tally: Tally, rows: Bools) -> Iterator[list[Showing]]:
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
            Showing(name, float(one), mean, coverage, bool(seen))
            for one, seen in zip(shares, shows, strict=True)
        ]


def _steady(share: Array, chance: Array, excess: Array) -> Bools:
    """(heads,): whether a role shows in both halves of the text."""
    middle = len(chance) // 2
    first = _excess(share[:, :middle], chance[:middle])
    second = _excess(share[:, middle:], chance[middle:])
    return np.minimum(first, second) >= _STEADY * excess


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


def best_of(fits: list[Showing]) -> Showing | None:
    """The clearest role that shows; a single place near by that takes half of the weight is named
    rather than its neighbourhood."""
    shown = [one for one in fits if one.shows]
    best = max(shown, key=lambda one: one.clarity, default=None)
    if best is not None and best.name == "near":
        half = [one for one in shown if one.name in _NEAR and one.share >= 0.5]
        return max(half, key=lambda one: one.share, default=best)
    return best


def _excess(share: Array, chance: Array) -> Array:
    """(heads,): what a share adds to chance, of what it could add."""
    return (share.mean(1) - chance.mean()) / (1 - chance.mean())  # type: ignore[no-any-return]


def _nats(share: float, chance: float) -> float:
    """The divergence of a share from chance; 0 where the share is not larger."""
    if share <= chance:
        return 0.0
    rest = (1 - share) * np.log((1 - share) / (1 - chance)) if share < 1 else 0.0
    return float(share * np.log(share / chance) + rest)
