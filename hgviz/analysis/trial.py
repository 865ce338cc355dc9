"""A set of heads that is tried out: its score while it grows, and which answers it changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from hgviz.core import HeadSet

if TYPE_CHECKING:
    from hgviz.analysis.evaluation import Answers
    from hgviz.analysis.paired import Paired
    from hgviz.core import HeadCost, Integers
    from hgviz.examples import Examples

Which = Literal["lost", "won", "all"]

Kept = TypeVar("Kept")

MOST = 200  # sets that can be undone


class Point(NamedTuple):
    """The share of right answers after so many places, and its interval of 95 %."""

    seen: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """Heads that are off, and what the model scored without them, as far as it is.

    points: one per block of examples. before and now: the answers of the whole model and those
    with heads off, None until every place was seen. stopped: nobody goes on with it.
    weights: by layer, those of one head; None where they do not go by heads.
    """

    off: HeadSet
    examples: Examples
    points: tuple[Point, ...] = ()
    paired: Paired | None = None
    before: Answers | None = None
    now: Answers | None = None
    stopped: bool = False
    weights: tuple[HeadCost, ...] | None = None

    @property
    def whole(self) -> bool:
        """Whether it is the whole model that is tried."""
        return not self.off

    @property
    def done(self) -> bool:
        """Whether every place was seen."""
        return self.now is not None

    @property
    def seen(self) -> int:
        """How many places were."""
        return self.points[-1].seen if self.points else 0

    @property
    def total(self) -> int:
        """How many there are."""
        return int(self.examples.places[-1])

    def changed(self, which: Which = "all") -> Integers:
        """Places, by number, that were answered otherwise: lost ones, won ones, or all of them.

        All: also where one wrong answer became another.
        """
        if self.before is None or self.now is None:
            return np.zeros(0, np.int64)
        wanted = self.examples.wanted
        was, now = self.before.given == wanted, self.now.given == wanted
        if which == "lost":
            found = was & ~now
        elif which == "won":
            found = ~was & now
        else:
            found = self.before.given != self.now.given
        return np.flatnonzero(found)


@dataclass(frozen=True, slots=True)
class History(Generic[Kept]):
    """What was there before, such as sets of heads, the newest last, and what was undone."""

    past: tuple[Kept, ...] = ()
    future: tuple[Kept, ...] = ()

    def went(self, old: Kept) -> History[Kept]:
        """After leaving one for another."""
        return History((*self.past, old)[-MOST:])

    def back(self, now: Kept) -> tuple[Kept, History[Kept]]:
        """The one before, and the history there."""
        return self.past[-1], History(self.past[:-1], (now, *self.future))

    def forth(self, now: Kept) -> tuple[Kept, History[Kept]]:
        """The one that was undone last, and the history there."""
        return self.future[0], History((*self.past, now), self.future[1:])
