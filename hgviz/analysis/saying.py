"""What is said of a head: its role, one sentence, and the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hgviz.analysis.finders import Finder
from hgviz.analysis.judging import Showing

_STRONG = 0.3  # the share from which on a sentence says what a head does, not what it leans to


class Said(NamedTuple):
    """The fields of HeadFacts that are words, with the numbers they stand on."""

    role: str
    sentence: str
    evidence: str
    score: float = 0.0
    finder: str = ""
    clarity: float = 0.0


@dataclass(frozen=True, slots=True)
class Words:
    """How a layer speaks of what it looks at; unit and place are those of Finder.

    sampled: what is added where only some rows were measured.
    """

    unit: str
    place: str
    signed: bool
    sampled: str = ""

    def role(self, one: Showing, finder: Finder) -> Said:
        """A role that shows."""
        rows = "" if one.coverage > 0.9 else f" ({_percent(one.coverage)} of rows have one)"
        evidence = f"{_percent(one.share)} of {self._weight}, on average, goes there"
        name = self._fill(finder.name)
        strong = one.share >= _STRONG
        return Said(
            name, self._fill(finder.sentence) if strong else f"Leans towards: {name}",
            f"{evidence}; by chance {_percent(one.chance)}{rows}{self.sampled}",
            one.share, one.name, one.clarity,
        )  # fmt: skip

    def everything(self, even: float) -> Said:
        """A head that looks nowhere in particular; even: its entropy over that of an even row."""
        return Said(
            "everything", "Spreads over everything it sees",
            f"its rows are {_percent(even)} as even as they could be{self.sampled}", even,
        )  # fmt: skip

    def nothing(self, nearest: Showing | None, finders: Mapping[str, Finder]) -> Said:
        """A head that does none of what it was tried for."""
        evidence = "too few rows to tell"
        if nearest is not None:
            evidence = (
                f"closest: {self._fill(finders[nearest.name].name)}, {_percent(nearest.share)} "
                f"of {self._weight}; by chance {_percent(nearest.chance)}{self.sampled}"
            )
        return Said("", "No single role shows on this text", evidence)

    @staticmethod
    def trivial() -> Said:
        """A layer whose rows have one key each."""
        return Said(
            "one key", "One key, always 1 (trivial)",
            "its windows hold a single key, so there is nothing to choose",
        )  # fmt: skip

    def _fill(self, text: str) -> str:
        return text.format(unit=self.unit, place=self.place)

    @property
    def _weight(self) -> str:
        return "the size of its weights" if self.signed else "its weight"


def _percent(share: float) -> str:
    return "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
