"""Two models on the same data: how good each is, and where they answer differently. numpy only.

Answers are paired example by example, so that what both get right or wrong tells nothing of the
difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis import scores
from hgviz.analysis.evaluation import Answers, Evaluation, evaluated
from hgviz.analysis.scores import Z95
from hgviz.core import Integers, Off
from hgviz.examples import NOTHING, Example, Examples

SHOWN = 20  # examples that are listed
_BEFORE = 60  # characters of what stands before a token

Names = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Differing:
    """A place that A and B answer differently: the number of the example and, within it, of the
    place; a and b are the answers, their losses in nats; right is "a", "b" or "" for neither."""

    example: int
    place: int
    text: str
    wanted: str
    a: str
    b: str
    right: str
    loss_a: float
    loss_b: float


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two evaluations and, where the answers are paired, how they differ.

    difference: of B to A in the metric of both, with its interval of 95 %: Bonett and Price's
    (2012) for shares, for bits per byte the normal one of a ratio over windows (Cochran 1977,
    2.11). agreement: the share of places with the same answer; a_only and b_only: places that only
    one gets right; p: McNemar's exact one. differing: all such places, those that one side gets
    right first. All None or empty where the two were not asked the same; notes say why.
    """

    a: Evaluation
    b: Evaluation
    difference: tuple[float, float, float] | None = None
    agreement: float | None = None
    a_only: int | None = None
    b_only: int | None = None
    p: float | None = None
    differing: tuple[Differing, ...] = ()
    notes: tuple[str, ...] = ()

    def facts(self, most: int | None = SHOWN) -> dict[str, Any]:
        """As `hgviz compare --data --json` prints it; most: so many examples, None for all."""
        names = ("value", "low", "high")
        ends = self.difference and [
            float(one) if np.isfinite(one) else None for one in self.difference
        ]
        return {
            "score_a": self.a.facts(),
            "score_b": self.b.facts(),
            "difference": ends and dict(zip(names, ends, strict=True)),
            "agreement": self.agreement,
            "a_only": self.a_only,
            "b_only": self.b_only,
            "p": self.p,
            "differing": None if self.agreement is None else len(self.differing),
            "examples": [asdict(one) for one in self.differing[:most]],
            "notes": list(self.notes),
        }


def disagreement(
    asked: tuple[Examples, Examples],
    answers: tuple[Answers, Answers],
    names: Names,
    off: tuple[Off, Off] = (frozenset(), frozenset()),
) -> Disagreement:
    """What two models made of the same data, each asked in its own way.

    names: what A calls an answer. Classes are paired row by row, by what the file calls them;
    tokens where both read the same ones.
    """
    (one, other), (a, b) = asked, answers
    whole = evaluated(one, a, off[0]), evaluated(other, b, off[1])
    classes = one.asked == "classes" and len(one) == len(other)
    if not (classes or one.digest == other.digest):
        return Disagreement(*whole, notes=("answers are not paired: the tokens are not the same",))
    given = _as_asked(one, other, b.given) if classes else b.given
    right, wins = a.given == one.wanted, given == one.wanted
    lost, won = int((right & ~wins).sum()), int((wins & ~right).sum())
    if one.asked == "next":
        change = _bits(one, b.loss.astype(float) - a.loss)
    else:
        ends = scores.paired_difference(lost, won, len(right))
        change = ((won - lost) / len(right), *ends)
    apart = np.flatnonzero(a.given != given)
    apart = apart[np.argsort(~(right | wins)[apart], kind="stable")]
    found = _Places(one, names)
    differing = tuple(found.at(int(i), a, Answers(b.loss, given)) for i in apart)
    agreement = float((a.given == given).mean())
    return Disagreement(*whole, change, agreement, lost, won, scores.mcnemar(lost, won), differing)


def _as_asked(one: Examples, other: Examples, given: Integers) -> Integers:
    """Classes of B as A numbers them: those of one row are the same, else those of one name."""
    number = {name: i for i, name in enumerate(one.labels)}
    known = {i: number.get(name, NOTHING) for i, name in enumerate(other.labels)}
    known |= dict(zip(other.wanted.tolist(), one.wanted.tolist(), strict=True))
    return np.array([known.get(int(i), NOTHING) for i in given], np.int64)


def _bits(examples: Examples, nats: NDArray[np.float64]) -> tuple[float, float, float]:
    """Bits per byte that so many nats more at each place come to, with the interval."""
    sums = np.add.reduceat(nats, examples.places[:-1]) / np.log(2)
    sizes = np.array([row.size for row in examples.rows])
    value, low, high = scores.ratios(sums[:, None], sizes[:, None], Z95)
    return float(value[0]), float(low[0]), float(high[0])


class _Places:
    """The places of some examples in words."""

    def __init__(self, examples: Examples, names: Names) -> None:
        self.examples, self._names = examples, names
        self._known: dict[int, str] = {}

    def at(self, place: int, a: Answers, b: Answers) -> Differing:
        """A place by its number among all."""
        examples = self.examples
        number = int(np.searchsorted(examples.places, place, "right")) - 1
        row, within = examples.rows[number], place - int(examples.places[number])
        wanted, one, other = (int(side[place]) for side in (examples.wanted, a.given, b.given))
        asked = examples.asked
        return Differing(
            example=number,
            place=within,
            text=row.text if asked == "classes" else _before(row, within, asked),
            wanted=self._name(wanted),
            a=self._name(one),
            b=self._name(other),
            right="a" if one == wanted else "b" if other == wanted else "",
            loss_a=float(a.loss[place]),
            loss_b=float(b.loss[place]),
        )

    def _name(self, answer: int) -> str:
        if answer not in self._known:
            self._known[answer] = self._names(answer) if answer >= 0 else "another class"
        return self._known[answer]


def _before(row: Example, within: int, asked: str) -> str:
    """What stands before the token that is wanted."""
    token = int(np.flatnonzero(row.wanted != NOTHING)[within])
    end = int(row.spans[token, 1 if asked == "next" else 0])
    return row.text[max(0, end - _BEFORE) : max(end, 0)]
