"""What the heads of a layer did, added up row by row over one text or over many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hgviz.analysis.judging import Fit, Showing, fitting
from hgviz.analysis.metrics import HEADS, Array, HeadMetrics, MetricMeans, RowSums, ratio
from hgviz.analysis.tokens import Bools

EXAMPLES = 8  # that are kept of a role
_ENOUGH = 16  # keys from which on a row counts, or a quarter of the longest row's


Passage = tuple[str, str, str]  # what stands before, it, what stands after


class Example(NamedTuple):
    """A row in which a head does its thing: the number of the text, query and key as tokens (key
    None: no token), the part of the row's weight that goes to keys of the role. at and to: where
    query and key stand in the text, in words."""

    text: int
    query: int
    key: int | None
    share: float
    at: Passage = ("", "", "")
    to: Passage = ("", "", "")


class Gathered:
    """Sums over all rows of the texts that were added, so that any number of them needs no more
    room than one.

    rows: how many count, of texts. columns (heads, keys) is the mass of each key, of one text only.
    longest: the keys that a row sees at most.
    """

    def __init__(self, signed: Bools) -> None:
        heads = len(signed)
        self.signed, self.heads = signed, heads
        self.texts = self.rows = 0
        self.longest = 0.0
        self.columns: Array = np.zeros((heads, 0))
        self._means = MetricMeans(heads, HEADS)
        self._even: Array = np.zeros(heads)
        self._fits: dict[str, Fit] = {}
        self._best: dict[str, _Best] = {}

    def add(self, tally: RowSums, text: int = 0, each: int = EXAMPLES) -> None:
        """Add a text that is counted; of each role at most so many of its rows become examples."""
        rows = counting(tally)
        self.texts += 1
        self.rows += int(rows.sum())
        self.longest = max(self.longest, float(tally.seen.max(initial=0)))
        self.columns = tally.columns if self.texts == 1 else self.columns[:, :0]
        self._means.add(tally, rows)
        even = ratio(tally.entropy, np.log(np.maximum(tally.seen, 1)))
        self._even += even[:, rows].sum(1)
        focus = ratio(tally.peak, tally.mass)
        self._keep("", tally, np.flatnonzero(rows & (tally.seen > 1)), focus, focus, text, each)
        for name in tally.key_sets:
            fit = fitting(tally, name, rows)
            if len(fit):
                share = tally.share(name)
                self._fits.setdefault(name, Fit(self.heads)).add(tally, name, fit, share[:, fit])
                lift = share - ratio(tally.chance[name], tally.seen)
                self._keep(name, tally, fit, lift, share, text, each)

    def _keep(
        self, name: str, tally: RowSums, rows: Array, values: Array, shares: Array, text: int,
        each: int,
    ) -> None:  # fmt: skip
        if len(rows):
            best = self._best.setdefault(name, _Best(self.heads))
            order = np.argsort(-values[:, rows], axis=1, kind="stable")[:, :each]
            chosen = rows[order]
            layout = tally.layout
            assert layout is not None
            column = np.take_along_axis(tally.peak_column, chosen, 1)
            key = np.where(column >= 0, layout.key[np.maximum(column, 0), 1] - 1, -1)
            best.add(
                np.take_along_axis(values, chosen, 1), np.take_along_axis(shares, chosen, 1),
                np.stack([np.full(chosen.shape, text), layout.newest_token[chosen], key], -1),
            )  # fmt: skip

    # --- what it comes to -------------------------------------------------------------------------

    def metrics(self) -> list[HeadMetrics]:
        """For each head those of METRICS that say something of it."""
        return self._means.metrics()

    @property
    def even(self) -> Array:
        """(heads,): how even rows are on average, from 0 to 1."""
        return self._even / self.rows if self.rows else self._even

    def showing(self) -> list[list[Showing]]:
        """For each head how the roles fit it that enough rows have a key for."""
        fits = [one.showing(name, self.rows) for name, one in self._fits.items()]
        return [[one[head] for one in fits if one] for head in range(self.heads)]

    def examples(self, head: int, role: str) -> tuple[Example, ...]:
        """Where a head does it most, the clearest first; of role "" where it is most focused."""
        best = self._best.get(role)
        return best.of(head) if best is not None else ()


class _Best:
    """The rows with the largest values of each head, of all texts."""

    def __init__(self, heads: int) -> None:
        self._values = np.zeros((heads, 0))
        self._shares = np.zeros((heads, 0))
        self._rows = np.zeros((heads, 0, 3), np.int64)

    def add(self, values: Array, shares: Array, rows: Array) -> None:
        """(heads, some) values and shares, (heads, some, 3) text, query, key."""
        values = np.concatenate([self._values, values], 1)
        order = np.argsort(-values, axis=1, kind="stable")[:, :EXAMPLES]
        self._values = np.take_along_axis(values, order, 1)
        self._shares = np.take_along_axis(np.concatenate([self._shares, shares], 1), order, 1)
        rows = np.concatenate([self._rows, rows], 1)
        self._rows = np.take_along_axis(rows, order[..., None], 1)

    def of(self, head: int) -> tuple[Example, ...]:
        found = [
            Example(int(text), int(query), int(key) if key >= 0 else None, float(share))
            for value, share, (text, query, key) in zip(
                self._values[head], self._shares[head], self._rows[head], strict=True
            )
            if value > 0
        ]
        return tuple(sorted(found, key=lambda one: -one.share))


def counting(tally: RowSums) -> Bools:
    """(rows,) True for the rows that count: real ones, measured, with enough keys."""
    assert tally.layout is not None
    real = tally.layout.real.copy()
    enough = max(1.0, min(_ENOUGH, tally.seen.max(initial=0) / 4))
    real &= tally.seen >= enough
    return real
