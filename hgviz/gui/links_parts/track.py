"""Where the tokens of one side lie: a row each, from top to bottom."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hgviz.maps.links import Side

LONGEST = 18  # letters of a unit that are shown
PITCH, LETTER = 22, 17  # px of a row, and of one of a letter


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """edges (units + 1,) px of the units shown, from 0; letters (units,): how wide each is."""

    edges: NDArray[np.float64]
    letters: NDArray[np.int64]

    @classmethod
    def of(cls, side: Side) -> Track:
        """A row for each unit."""
        letters = _letters(side)
        pitch = LETTER if letters.max(initial=0) <= 2 else PITCH
        return cls(np.arange(len(side) + 1, dtype=np.float64) * pitch, letters)

    def __len__(self) -> int:
        return len(self.letters)

    @property
    def length(self) -> float:
        """Px of all of it."""
        return float(self.edges[-1])

    def middle(self, place: int) -> float:
        """The middle of a unit."""
        return float(self.edges[place] + self.edges[place + 1]) / 2

    def at(self, along: float) -> int | None:
        """The unit at a place."""
        if not 0 <= along < self.length:
            return None
        return int(np.searchsorted(self.edges, along, side="right")) - 1

    def within(self, first: float, last: float) -> tuple[int, int]:
        """The units between two places, half-open."""
        start = int(np.searchsorted(self.edges, first, side="right")) - 1
        stop = int(np.searchsorted(self.edges, last))
        return max(0, start), max(0, min(stop, len(self)))


def _letters(side: Side) -> NDArray[np.int64]:
    """(units,) How many letters wide each is; those of Chinese, Japanese and Korean are two."""
    prompt, tokens = side.prompt, side.tokens[side.shown]
    wide = np.array([_width(one) for one in prompt.text], np.int64)
    ends = np.concatenate([[0], np.cumsum(wide)])
    found = np.ones(len(tokens), np.int64)
    there = np.flatnonzero(tokens[:, 0] >= 0)
    starts = prompt.spans[tokens[there, 0], 0]
    stops = prompt.spans[tokens[there, 1] - 1, 1]
    plain = (starts >= 0) & (stops > starts)
    limit = len(prompt.text)
    found[there[plain]] = (
        ends[np.minimum(stops[plain], limit)] - ends[np.minimum(starts[plain], limit)]
    )
    for at in there[~plain]:
        found[at] = len(" ".join(prompt.pieces[tokens[at, 0] : tokens[at, 1]]))
    return np.clip(found, 1, LONGEST)


@lru_cache(maxsize=4096)
def _width(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
