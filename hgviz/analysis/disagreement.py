"""Two models on the same data: how good each is, and where they answer differently. numpy only.

Answers are paired example by example, so that what both get right or wrong tells nothing of the
difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.evaluation import COSINE_TO_A, Answers, Evaluation, evaluated
from hgviz.analysis.statistics import mcnemar, paired_difference, ratio_interval
from hgviz.core import HeadSet, Integers, MetricEstimate
from hgviz.examples import EACH, IGNORE_INDEX, Example, Examples

SHOWN = 20  # examples that are listed
_BEFORE = 60  # characters of what stands before a token
_ROWS = 256  # whose states are compared with all others at once
_SAME = 1e-9  # between cosines that are equal

Names = Callable[[int], str]
States = NDArray[np.float64]
Labels = tuple[str, ...]


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
    right first; of states those that are nearer to another of A's. pairs: how many places were
    paired. All None or empty where the two were not asked the same; notes say why.
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
    pairs: int = 0

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
    off: tuple[HeadSet, HeadSet] = (frozenset(), frozenset()),
) -> Disagreement:
    """What two models made of the same data, each asked in its own way.

    names: what A calls an answer. Classes are paired row by row, those of tokens word by word, by
    what the file calls them; ends of answers by their characters; tokens where both read the same.
    """
    (one, other), (a, b) = asked, answers
    whole = evaluated(one, a, off[0]), evaluated(other, b, off[1])
    if (met := _met(one, other)) is None:
        return Disagreement(*whole, notes=("answers are not paired: the tokens are not the same",))
    at, to = met
    right, wins = ((x.given == side.wanted)[i] for x, side, i in ((a, one, at), (b, other, to)))
    lost, won = int((right & ~wins).sum()), int((wins & ~right).sum())
    if one.asked == "next":
        change = _bits(one, b.loss.astype(float) - a.loss)
    else:
        low, high = map(float, paired_difference(lost, won, len(at)))
        change = ((won - lost) / len(at), low, high)
    found = _Places((one, other), (a, b), met, names)
    apart = np.flatnonzero(~found.same)
    apart = apart[np.argsort(~(right | wins)[apart], kind="stable")]
    counts = len(one.wanted), len(other.wanted)
    notes = () if counts == (len(at), len(at)) else (
        f"answers are paired at {len(at):,} places that both read, of {counts[0]:,} of A and "
        f"{counts[1]:,} of B",
    )  # fmt: skip
    return Disagreement(
        *whole, change, float(found.same.mean()), lost, won, float(mcnemar(lost, won)),
        tuple(found.at(int(pair)) for pair in apart), notes, len(at),
    )  # fmt: skip


def states_apart(
    asked: Examples, states: tuple[States, States], off: tuple[HeadSet, HeadSet]
) -> Disagreement:
    """How far what B makes of each example is from what A makes of it; states (examples, d) are
    of unit length. agreement: the share of which the nearest of A's is its own."""
    a, b = states
    apart, nearest = np.zeros(len(a)), np.zeros(len(a), np.int64)
    for start in range(0, len(a), _ROWS):
        near = b[start : start + _ROWS] @ a.T
        rows = np.arange(len(near))
        own = near[rows, start + rows]
        # of texts that are alike, a text is its own nearest
        best = np.where(own >= near.max(1) - _SAME, start + rows, near.argmax(1))
        apart[start : start + _ROWS], nearest[start : start + _ROWS] = 1 - own, best
    apart = apart.clip(min=0)
    value, low, high = map(float, ratio_interval(apart))
    count = len(asked)
    sides = [
        Evaluation(MetricEstimate(COSINE_TO_A, *ends, count, count, gone), ends[0], cut=asked.cut)
        for ends, gone in zip(((0.0, 0.0, 0.0), (value, max(low, 0.0), high)), off, strict=True)
    ]
    texts = [row.text for row in asked.rows]
    others = np.flatnonzero(nearest != np.arange(count))
    differing = tuple(
        Differing(int(i), 0, texts[i], texts[i], texts[i], texts[nearest[i]], "a", 0.0, apart[i])
        for i in others[np.argsort(-apart[others], kind="stable")]
    )
    return Disagreement(
        sides[0], sides[1], (value, max(low, 0.0), high), 1 - len(others) / count,
        differing=differing, pairs=count,
    )  # fmt: skip


def _met(one: Examples, other: Examples) -> tuple[Integers, Integers] | None:
    """The places of both that ask the same, (pairs,) each; None where there are none."""
    if one.digest == other.digest:
        every = np.arange(len(one.wanted), dtype=np.int64)
        return every, every
    if one.asked not in EACH or (one.asked != "ends" and len(one) != len(other)):
        return None
    places = {what: place for place, what in enumerate(_asks(other))}
    found = [(at, places[what]) for at, what in enumerate(_asks(one)) if what in places]
    pairs = np.array(found, np.int64).reshape(-1, 2)
    return (pairs[:, 0], pairs[:, 1]) if found else None


def _asks(examples: Examples) -> Iterator[tuple[int, int]]:
    """What every place asks, whatever its tokens are: of which example, and which end of its
    answer, or the character that its word begins at."""
    for number, row in enumerate(examples.rows):
        if examples.asked == "tags":
            for token in np.flatnonzero(row.wanted != IGNORE_INDEX):
                yield number, _begins(row, int(token))
        else:
            source = row.source if examples.asked == "ends" else number
            yield from ((source, at) for at in range(len(row.wanted)))


def _begins(row: Example, token: int) -> int:
    """The character of a token that is its first, but for the space before it."""
    start, end = row.spans[token]
    while 0 <= start < end and row.text[start] == " ":
        start += 1
    return int(start)


def _as_asked(
    one: Integers, other: Integers, labels: tuple[Labels, Labels], given: Integers
) -> Integers:
    """Classes of B as A numbers them: those that are wanted at one place (pairs,) are the same,
    else those of one name."""
    number = {name: i for i, name in enumerate(labels[0])}
    known = {i: number.get(name, IGNORE_INDEX) for i, name in enumerate(labels[1])}
    known |= dict(zip(other.tolist(), one.tolist(), strict=True))
    return np.array([known.get(int(i), IGNORE_INDEX) for i in given], np.int64)


def _bits(examples: Examples, nats: NDArray[np.float64]) -> tuple[float, float, float]:
    """Bits per byte that so many nats more at each place come to, with the interval."""
    sums = np.add.reduceat(nats, examples.places[:-1]) / np.log(2)
    sizes = np.array([row.size for row in examples.rows])
    value, low, high = map(float, ratio_interval(sums, sizes))
    return value, low, high


class _Places:
    """Places that two models were both asked at, in words. same (pairs,): whether they answer the
    same there."""

    def __init__(
        self,
        asked: tuple[Examples, Examples],
        answers: tuple[Answers, Answers],
        met: tuple[Integers, Integers],
        names: Names,
    ) -> None:
        self.asked, self.met, self._names = asked, met, names
        self._known: dict[int, str] = {}
        self._said: list[list[Any]]
        given = [one.given[at] for one, at in zip(answers, met, strict=True)]
        wanted = [one.wanted[at] for one, at in zip(asked, met, strict=True)]
        self._losses = [one.loss[at] for one, at in zip(answers, met, strict=True)]
        self._right = [x == y for x, y in zip(given, wanted, strict=True)]
        one, other = asked
        if one.asked == "ends":
            self._said = [
                [
                    self._end(side, int(place), int(token))
                    for place, token in zip(at, x, strict=True)
                ]
                for side, at, x in zip(asked, met, given, strict=True)
            ]
        elif one.asked in ("classes", "tags"):
            mine = _as_asked(wanted[0], wanted[1], (one.labels, other.labels), given[1])
            self._said = [given[0].tolist(), mine.tolist()]
        else:
            self._said = [x.tolist() for x in given]
        at = [[x[0] if isinstance(x, tuple) else x for x in side] for side in self._said]
        self.same = np.array([x == y for x, y in zip(*at, strict=True)], bool)

    def at(self, pair: int) -> Differing:
        """One of the pairs by its number."""
        examples, place = self.asked[0], int(self.met[0][pair])
        number, within = _place(examples, place)
        row, wanted = examples.rows[number], int(examples.wanted[place])
        what: Any = self._end(examples, place, wanted) if examples.asked == "ends" else wanted
        one, other = (side[pair] for side in self._said)
        right = [bool(side[pair]) for side in self._right]
        loss_a, loss_b = (float(side[pair]) for side in self._losses)
        return Differing(
            number, within, self._text(row, within), self._name(what), self._name(one),
            self._name(other), "a" if right[0] else "b" if right[1] else "", loss_a, loss_b,
        )  # fmt: skip

    def _text(self, row: Example, within: int) -> str:
        asked = self.asked[0].asked
        return row.text if asked in ("classes", "ends") else _before(row, within, asked)

    def _end(self, examples: Examples, place: int, token: int) -> tuple[int, str]:
        """Where an answer begins or ends in its text, whatever the tokens are, and the word there;
        -1 where it says that there is none."""
        number, within = _place(examples, place)
        row = examples.rows[number]
        if row.spans[token, 0] < 0:
            return -1 - (token > 0), "no answer" if token == 0 else "a special token"
        start, stop = _begins(row, token), int(row.spans[token, 1])
        return (stop if within else start), f"{'to' if within else 'from'} {row.text[start:stop]}"

    def _name(self, answer: Any) -> str:
        if isinstance(answer, tuple):
            return str(answer[1])
        if answer not in self._known:
            self._known[answer] = self._names(answer) if answer >= 0 else "another class"
        return self._known[answer]


def _place(examples: Examples, place: int) -> tuple[int, int]:
    """The example of a place, and which of its places it is."""
    number = int(np.searchsorted(examples.places, place, "right")) - 1
    return number, place - int(examples.places[number])


def _before(row: Example, within: int, asked: str) -> str:
    """What stands before the token that is wanted, or up to the word whose class is."""
    token = int(np.flatnonzero(row.wanted != IGNORE_INDEX)[within])
    if asked == "tags":
        end = row.text.find(" ", _begins(row, token))
        end = end if end >= 0 else len(row.text)
    else:
        end = int(row.spans[token, 1 if asked == "next" else 0])
    return row.text[max(0, end - _BEFORE) : max(end, 0)]
