"""Sums over the keys of every row of a layer, and the metrics made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.finders import Finder
from hgviz.analysis.layout import Block

Array = NDArray[Any]


class Tally:
    """Sums over the keys of each row; weights count by their size.

    mass, peak, logs (of a log a), distance and placed (mass on keys that stand for tokens) are
    (heads, rows); hits[role] (heads, rows) and chance[role] (rows,) are the mass and the number of
    the keys that a role means, even_hits and even_chance of every second of its targets; seen
    (rows,) counts the keys that a row sees.
    """

    def __init__(self, heads: int, rows: int, roles: Mapping[str, Finder]) -> None:
        self.roles = roles
        self.mass, self.peak, self.logs, self.distance, self.placed = np.zeros((5, heads, rows))
        self.seen = np.zeros(rows)
        split = [name for name, one in roles.items() if one.members]
        self.hits = {name: np.zeros((heads, rows)) for name in roles}
        self.chance = {name: np.zeros(rows) for name in roles}
        self.even_hits = {name: np.zeros((heads, rows)) for name in split}
        self.even_chance = {name: np.zeros(rows) for name in split}

    def add(self, rows: slice, sizes: Array, block: Block) -> None:
        """Count the sizes (heads, rows, columns) of one block of weights."""
        seen = block.seen
        self.mass[:, rows] += sizes.sum(2)
        self.peak[:, rows] = np.maximum(self.peak[:, rows], sizes.max(2))
        self.logs[:, rows] += np.einsum("hrc,hrc->hr", sizes, np.log(np.maximum(sizes, 1e-30)))
        self.seen[rows] += seen.sum(1)
        far = np.where(seen, block.distance, 0)
        self.distance[:, rows] += np.einsum("hrc,rc->hr", sizes, far)
        self.placed[:, rows] += np.einsum("hrc,rc->hr", sizes, seen.astype(np.float32))
        found = {name: one.find(block) & seen for name, one in self.roles.items()}
        self._hit(self.hits, self.chance, rows, sizes, found)
        even = {
            name: found[name] & block.every_second(members)
            for name, one in self.roles.items()
            if (members := one.members)
        }
        self._hit(self.even_hits, self.even_chance, rows, sizes, even)

    @staticmethod
    def _hit(
        hits: dict[str, Array], chance: dict[str, Array], rows: slice, sizes: Array,
        found: dict[str, NDArray[np.bool_]],
    ) -> None:  # fmt: skip
        # one small product per row: (roles, columns) x (columns, heads)
        keys = np.stack(list(found.values()), axis=1)
        mass = keys.astype(np.float32) @ sizes.transpose(1, 2, 0)
        counts = keys.sum(2)
        for number, name in enumerate(found):
            hits[name][:, rows] += mass[:, number].T
            chance[name][rows] += counts[:, number]

    def share(self, role: str) -> Array:
        """(heads, rows): the part of each row's weight on the keys of a role."""
        return ratio(self.hits[role], self.mass)


def ratio(part: Array, whole: Array) -> Array:
    """part / whole, 0 where there is nothing to divide by."""
    shape = np.broadcast_shapes(part.shape, whole.shape)
    return np.divide(part, whole, out=np.zeros(shape), where=whole > 0)


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of every head: its name, what it means, and how rows give it (heads, rows)."""

    words: str
    description: str
    of: Callable[[Tally], Array]

    def named(self, unit: str) -> str:
        """The label for a text of letters or of tokens."""
        return self.words.format(unit=unit)

    @property
    def label(self) -> str:
        """The label for a text of letters."""
        return self.named("letter")


def _entropy(tally: Tally) -> Array:
    # of a / mass: log mass - (sum of a log a) / mass
    mass = np.maximum(tally.mass, 1e-30)
    entropy = np.log(mass) - tally.logs / mass
    return np.where(tally.mass > 0, entropy, 0).clip(min=0)


METRICS: dict[str, Metric] = {
    "focus": Metric(
        "Focus (max)", "The largest weight of a row, averaged over rows",
        lambda tally: ratio(tally.peak, tally.mass),
    ),
    "entropy": Metric(
        "Entropy, nats", "How evenly a row spreads, averaged over rows; 0 is a single key", _entropy
    ),
    "distance": Metric(
        "Distance, {unit}s", "How far it looks on average",
        lambda tally: ratio(tally.distance, tally.placed),
    ),
    "previous": Metric(
        "Previous {unit}", "Weight on the position before its own, averaged over rows",
        lambda tally: tally.share("previous"),
    ),
    "first": Metric(
        "First {unit}", "Weight on the first position, averaged over rows",
        lambda tally: tally.share("first"),
    ),
    "same": Metric(
        "Itself", "Weight on its own position, averaged over rows",
        lambda tally: tally.share("same"),
    ),
}  # fmt: skip
