"""What is said of a head: its role, one sentence, and the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hgviz.analysis.finders import Finder
from hgviz.analysis.judging import Showing
from hgviz.core import Prompt
from hgviz.language import rounded_percent

POSITIONAL = 0.9  # of a head's rows look most at one distance (Voita et al. 2019)
_OTHERS = 3  # roles that are named beside the clearest
_REST = 0.5  # the share of all rows that a single key must have to be named
_STRONG = 0.3  # the share from which on a sentence says what a head does, not what it leans to


class Said(NamedTuple):
    """The fields of HeadFacts that are words, with the numbers they stand on."""

    role: str
    sentence: str
    evidence: str
    score: float = 0.0
    finder: str = ""
    clarity: float = 0.0


class Named(NamedTuple):
    """One thing that a head shows: its key (of FINDERS, or of METRICS), in words, the evidence, and
    its strength from 0 to 1."""

    name: str
    words: str
    evidence: str
    score: float


@dataclass(frozen=True, slots=True)
class Words:
    """How a head speaks of what it looks at; unit, place and text are those of Finder.

    keys: the text of its keys; sampled: what is added where only some rows were measured; texts: of
    how many texts. signed,
    most and metrics are the head's own: whether its weights can be negative, the key that is
    looked at most with its share, and its numbers.
    """

    unit: str
    place: str
    text: str
    keys: Prompt
    sampled: str = ""
    texts: int = 1
    signed: bool = False
    most: tuple[int | None, float] = (None, 0.0)
    metrics: Mapping[str, float] = field(default_factory=dict)

    def role(self, one: Showing, finder: Finder) -> Said:
        """A role that shows."""
        rows = "" if one.coverage > 0.9 else f" ({rounded_percent(one.coverage)} of rows have one)"
        evidence = f"{rounded_percent(one.share)} of {self._weight}, on average, goes there"
        name = self._fill(finder.name)
        strong = one.share >= _STRONG
        return Said(
            name, self._fill(finder.sentence) if strong else f"Leans towards: {name}",
            f"{evidence}; by chance {rounded_percent(one.chance)}{rows}{self._rest}",
            one.share, one.name, one.clarity,
        )  # fmt: skip

    def everything(self, even: float) -> Said:
        """A head that looks nowhere in particular; even: its entropy over that of an even row."""
        return Said(
            "everything", "Spreads over everything it sees",
            f"its rows are {rounded_percent(even)} as even as they could be{self._rest}", even,
        )  # fmt: skip

    def nothing(
        self, nearest: Showing | None, finders: Mapping[str, Finder], ordered: bool
    ) -> Said:
        """A head that does none of what it was tried for; ordered: its rows see other keys each."""
        key, share = self.most
        evidence = "too few rows to tell"
        if nearest is None and key is not None and not ordered:
            evidence = f"most of {self._weight}, {rounded_percent(share)}, on “{self._name(key)}”"
        elif nearest is not None:
            evidence = (
                f"closest: {self._fill(finders[nearest.name].name)}, "
                f"{rounded_percent(nearest.share)} of {self._weight}; by chance "
                f"{rounded_percent(nearest.chance)}{self._rest}"
            )
        where = "this text" if self.texts == 1 else "these texts"
        return Said("", f"No single role shows on {where}", evidence)

    def named(
        self, said: Said, shown: list[Showing], finders: Mapping[str, Finder]
    ) -> tuple[Named, ...]:
        """Everything that shows in a head: its role, then the clearest of the others, then whether
        it goes by position alone."""
        found = [Named(said.finder, said.role, said.evidence, said.score)] if said.role else []
        others = sorted(shown, key=lambda one: -one.clarity)
        for one in [one for one in others if one.name != said.finder][:_OTHERS]:
            other = self.role(one, finders[one.name])
            found.append(Named(one.name, other.role, other.evidence, other.score))
        share, offset = (self.metrics.get(name, 0.0) for name in ("positional", "offset"))
        if share >= POSITIONAL:
            evidence = (
                f"{rounded_percent(share)} of its rows look most {self._at(offset)}{self.sampled}"
            )
            found.append(Named("positional", "positional", evidence, share))
        return tuple(found)

    def _at(self, offset: float) -> str:
        if not offset:
            return f"at the {self.unit} itself" if self.place == self.unit else "at themselves"
        way = "on" if offset > 0 else "back"
        return f"{abs(offset):.0f} {self.unit}{'' if abs(offset) == 1 else 's'} {way}"

    def favourite(self, keys: int) -> Said | None:
        """A head that rests on one key, whatever that stands for, or None."""
        key, share = self.most
        if key is None or share < max(_REST, 2 / keys):
            return None
        evidence = f"{rounded_percent(share)} of {self._weight}, over all rows, goes there"
        return Said(
            f"one {self.unit}", f"Rests on “{self._name(key)}”",
            f"{evidence}; by chance {rounded_percent(1 / keys)}{self._rest}", share,
        )  # fmt: skip

    def trivial(self, windowed: bool) -> Said:
        """A layer whose rows have one key each."""
        whose = "its windows hold" if windowed else "there is"
        return Said(
            "one key", "One key (trivial)" if self.signed else "One key, always 1 (trivial)",
            f"{whose} a single key, so there is nothing to choose",
        )  # fmt: skip

    def _name(self, key: int) -> str:
        label = self.keys.label(key) if key < len(self.keys) else ""
        return label.strip() or label

    def _fill(self, text: str) -> str:
        return text.format(unit=self.unit, place=self.place, text=self.text)

    @property
    def _rest(self) -> str:
        """What is added to all evidence: the two sums of signed rows, and how much was measured."""
        plus, minus = (self.metrics.get(name, 0.0) for name in ("positive", "negative"))
        if not self.signed:
            return self.sampled
        return f"; a row adds up to {plus:.2f} above 0 and −{abs(minus):.2f} below{self.sampled}"

    @property
    def _weight(self) -> str:
        return "the size of its weights" if self.signed else "its weight"
