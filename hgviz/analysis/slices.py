"""Parts of some data that may behave differently: classes, short and long texts, kinds of tokens.

All are reductions of what was answered; no model is asked again. numpy only.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.evaluation import Answers
from hgviz.analysis.importance import Importance
from hgviz.analysis.statistics import agresti_coull, paired_difference, ratio_interval
from hgviz.core import HeadId, Integers, ModelSpec
from hgviz.examples import EACH, IGNORE_INDEX, Asked, Example, Examples
from hgviz.study import NO_PREDICTION, Study

By = Literal["all", "label", "length", "token", "context", "level"]
Ends = tuple[float, float, float]  # a value and its interval of 95 %

KINDS, SPACE = ("letters", "digits", "spaces", "other signs"), 2
PARTS = 4  # of the lengths, with as many examples each; of what comes before; of long groups


class Asking(Protocol):
    """What is asked of a model and where, as Examples and Study both have it."""

    @property
    def asked(self) -> Asked:
        """What kind of answer is wanted."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of classes."""

    @property
    def wanted(self) -> Integers:
        """(P,): what is wanted at every place."""

    @property
    def places(self) -> Integers:
        """(E + 1,): where the places of each example begin."""

    @property
    def lengths(self) -> Integers:
        """(E,): tokens of each example."""


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """Some places under a name; places (P,) says which."""

    by: By
    name: str
    places: NDArray[np.bool_]


def slices(asking: Asking) -> tuple[Slice, ...]:
    """Classes, where there are any, then quarters of the lengths; empty ones are left out."""
    return (*_labels(asking), *_lengths(asking))


def of_examples(examples: Examples, spec: ModelSpec) -> tuple[Slice, ...]:
    """All places, then every kind of slice that makes two or more of them.

    Texts have classes and lengths; tokens what they are, what comes before them, and their place
    in a group of the coarsest level.
    """
    if examples.asked in EACH:
        found = list(slices(examples))
    else:
        at = np.concatenate([np.flatnonzero(one.wanted != IGNORE_INDEX) for one in examples.rows])
        found = [*_tokens(examples), *_groups(at, spec)]
        if examples.asked == "next":
            found += _contexts(at)
    kinds = [one.by for one in found]
    every = Slice("all", "", np.ones(len(examples.wanted), bool))
    return (every, *(one for one in found if kinds.count(one.by) > 1))


@dataclass(frozen=True, slots=True)
class Part:
    """How a slice fares: n of its total places seen, shares right of the whole model and with heads
    off, both with Agresti and Coull's interval, lost and won, the change of the share with Bonett
    and Price's interval; mean nats of both, and their change over examples drawn at random (Cochran
    1977, 2.11; endless for one example).
    """

    by: By
    name: str
    n: int
    total: int
    before: Ends
    now: Ends
    lost: int
    won: int
    change: Ends
    loss: tuple[float, float]
    more: Ends


def table(
    asking: Asking, whole: Answers, answers: Answers, which: Sequence[Slice]
) -> tuple[Part, ...]:
    """What heads off do to each slice, at the places that both have answered so far."""
    seen = np.flatnonzero((whole.given != NO_PREDICTION) & (answers.given != NO_PREDICTION))
    example = np.searchsorted(asking.places, seen, side="right")
    right = [one.given[seen] == asking.wanted[seen] for one in (whole, answers)]
    loss = [one.loss[seen].astype(float) for one in (whole, answers)]
    return tuple(_part(one, one.places[seen], right, loss, example) for one in which)


def _part(
    one: Slice,
    at: NDArray[np.bool_],
    right: Sequence[NDArray[np.bool_]],
    loss: Sequence[NDArray[np.float64]],
    example: Integers,
) -> Part:
    before, now = (each[at] for each in right)
    n, lost, won = len(before), int((before & ~now).sum()), int((now & ~before).sum())
    change, more, means = (0.0, -1.0, 1.0), (0.0, -np.inf, np.inf), (0.0, 0.0)
    if n:
        low, high = map(float, paired_difference(lost, won, n))
        change = ((won - lost) / n, low, high)
        was, is_now = (each[at] for each in loss)
        sizes = np.bincount(example[at])
        sums, there = np.bincount(example[at], is_now - was), sizes > 0
        _, low, high = map(float, ratio_interval(sums[there], sizes[there]))
        means = (float(was.mean()), float(is_now.mean()))
        more = (means[1] - means[0], low, high)
    return Part(
        one.by, one.name, n, int(one.places.sum()), _share(before), _share(now), lost, won, change,
        means, more,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Worth:
    """The heads of a level, or of the layers between two: their scores together.

    mean of the scores; harmful, needed: heads whose whole interval lies below or above 0.
    """

    name: str
    heads: tuple[HeadId, ...]
    mean: float
    needed: int
    harmful: int


def levels(study: Study, found: Importance) -> tuple[Worth, ...]:
    """Scores level by level; layers that go down, up or across stand by themselves."""
    spec = study.spec
    grouped = _level_groups(spec)
    turned = found.method.needed
    ends = np.sort(np.stack([found.low * turned, found.high * turned]), axis=0)
    result = []
    for number in dict.fromkeys(grouped.tolist()):
        at = np.flatnonzero((grouped == number) & ~np.isnan(found.score))
        layer = spec.layers[found.heads[int(np.argmax(grouped == number))].layer]
        away = "" if layer.role == "self" else f", {layer.role}"
        result.append(
            Worth(
                spec.levels[layer.level].label + away,
                tuple(found.heads[i] for i in at),
                float(found.score[at].mean()) if len(at) else float("nan"),
                int((ends[0, at] > 0).sum()),
                int((ends[1, at] < 0).sum()),
            )
        )
    return tuple(result)


def _labels(asking: Asking) -> Iterator[Slice]:
    if asking.asked == "classes":
        for number in np.unique(asking.wanted).tolist():
            name = asking.labels[number] if number < len(asking.labels) else str(number)
            yield Slice("label", name, asking.wanted == number)


def _lengths(asking: Asking) -> Iterator[Slice]:
    """Quarters by length; texts of one length are never in two of them."""
    lengths = asking.lengths
    edges = np.quantile(lengths, np.linspace(0, 1, PARTS + 1)[1:-1], method="lower")
    part = np.searchsorted(np.unique(edges), lengths, side="left")
    for number in np.unique(part):
        rows = part == number
        name = f"{between(int(lengths[rows].min()), int(lengths[rows].max()))} tokens"
        yield Slice("length", name, np.repeat(rows, np.diff(asking.places)))


def _tokens(examples: Examples) -> Iterator[Slice]:
    """Letters, digits, spaces and other signs, by the first sign of what is wanted."""
    found = np.concatenate([_kinds(one, examples.asked) for one in examples.rows])
    for number, name in enumerate(KINDS):
        if (found == number).any():
            yield Slice("token", name, found == number)


def _kinds(one: Example, asked: Asked) -> Integers:
    """(places,): the kind of the first sign of what is wanted, a space before it passed over."""
    at = np.flatnonzero(one.wanted != IGNORE_INDEX)
    starts, ends = one.spans[at].T
    if asked == "next":  # the last token does not know where the one after it ends
        starts = np.append(starts[1:], ends[-1:])
        ends = np.append(ends[1:], ends[-1:] + 1)
    first = int(starts.min(initial=len(one.text)))
    part = one.text[first : int(ends.max(initial=0)) + 1] + "\0"
    codes = np.frombuffer(part.encode("utf-32-le", "surrogatepass"), np.uint32)
    unique, which = np.unique(codes, return_inverse=True)
    kinds = np.array([_kind(chr(int(code))) for code in unique], np.int64)[which]
    at = np.minimum(starts - first, len(kinds) - 1)
    passed = (kinds[at] == SPACE) & (ends - starts > 1)
    found: Integers = kinds[np.minimum(at + passed, len(kinds) - 1)]
    return found


def _kind(sign: str) -> int:
    if sign.isspace():
        return SPACE
    return {"L": 0, "M": 0, "N": 1}.get(unicodedata.category(sign)[0], 3)


def _contexts(at: Integers) -> Iterator[Slice]:
    """By how many tokens of the window come before what is wanted, each time four times as many."""
    before = at + 1
    edges = [0, *(int(before.max()) >> (2 * power) for power in (2, 1, 0))]
    for low, high in zip(edges, edges[1:], strict=False):
        some = (before > low) & (before <= high)
        if some.any():
            yield Slice("context", between(low + 1, high), some)


def _level_groups(spec: ModelSpec) -> Integers:
    """(H,): the number of the level of each head; heads that go down, up or across are groups of
    their own, as they do other work."""
    names: list[tuple[int, str]] = []
    for layer in spec.layers:
        role = layer.role if layer.role != "self" else ""
        names += [(spec.levels[layer.level].index, role)] * len(layer.heads)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], np.int64)


def _groups(at: Integers, spec: ModelSpec) -> Iterator[Slice]:
    """By the place in a group of the coarsest level: how long ago that level last heard."""
    level = max((one for one in spec.levels if one.stride), key=lambda one: one.stride or 0)
    stride = level.stride or 1
    if stride > 1:
        parts = np.array_split(np.arange(stride), min(stride, PARTS))
        for part in parts:
            name = f"{between(int(part[0]) + 1, int(part[-1]) + 1)} of {stride}"
            yield Slice("level", name, np.isin(at % stride, part))


def between(low: int, high: int) -> str:
    """3, 3 to 12."""
    return f"{low:,} to {high:,}" if low < high else f"{low:,}"


def _share(right: NDArray[np.bool_]) -> tuple[float, float, float]:
    count, n = int(right.sum()), len(right)
    low, high = map(float, agresti_coull(count, n))
    return count / max(n, 1), low, high
