"""Two captures beside each other: every head that both have, in numbers, and the logits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hgviz.analysis.alignment import Alignment, common_pieces, paired_heads, paired_layers
from hgviz.analysis.differences import (
    NEAR_ZERO,
    Array,
    HeadDifference,
    Pair,
    compared,
    effective_rank,
)
from hgviz.analysis.heads import row_blocks
from hgviz.analysis.layout import Layout
from hgviz.analysis.logits import LogitDifference, logits_apart
from hgviz.analysis.reading import Bools, Reading
from hgviz.core import Capture, HeadId, HgvizError, Integers, Layer, Prompt, Signal, progress

RANK_ROWS = 256  # whose singular values are taken, fewer where
RANK_CELLS = 1 << 23  # they would hold more weights
FAINT = 8.0  # of 255: what two ways of making an image smaller differ by at most, on the mean
_FAR = 64  # rows
_TOGETHER = 1024  # rows of B that are read with one block of A's


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two captures: heads that both have, those that only one has, the logits where they can be
    compared, and notes: sentences on what was not."""

    heads: tuple[HeadDifference, ...]
    only_a: tuple[HeadId, ...] = ()
    only_b: tuple[HeadId, ...] = ()
    logits: LogitDifference | None = None
    notes: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """As `hgviz compare --json` prints it."""
        return {
            "near_zero": NEAR_ZERO,
            "heads": [one.facts() for one in self.heads],
            "only_a": list(map(str, self.only_a)),
            "only_b": list(map(str, self.only_b)),
            "logits": self.logits and self.logits.facts(),
            "notes": list(self.notes),
        }


def compare(a: Capture, b: Capture, every: bool = False) -> Comparison:
    """Compare two captures head by head; the progress carries the HeadDifferences so far.

    Layers meet by name, or by number where no names are alike; rows and columns by what they stand
    for (see alignment), those of one piece put together: their rows averaged, their columns added.
    Of maps above 2^26 weights only rows spread evenly are measured, unless every one is asked for.
    Holds at most 256 rows of both maps. Errors: HgvizError where the texts have nothing in common.
    """
    alignment = Alignment(a, b)
    tokens = alignment.tokens()
    if not tokens.count:
        raise _nothing_shared(a.main, b.main)
    pairs = paired_layers(a, b)
    found: list[HeadDifference] = []
    apart: list[Layer] = []
    readings: tuple[dict[str, Reading], dict[str, Reading]] = ({}, {})
    for number, (one, other) in enumerate(pairs):
        layer = _Pair(alignment, one, other, readings, every)
        if not layer.blocks:
            apart.append(one)
            continue
        for at, head in enumerate(layer.heads):
            for done in layer.measure(head):
                share = number + (at + done) / len(layer.heads)
                progress(share, len(pairs), f"head {one.index}.{head}", tuple(found))
            found.append(layer.found)
    progress(len(pairs), len(pairs), "", tuple(found))
    logits, why = logits_apart(alignment)
    notes = [*_notes(a, b, alignment, pairs, apart, found), *([why] if why else [])]
    met = [
        (HeadId(x.index, h), HeadId(y.index, h)) for x, y in pairs for h in paired_heads(a, b, x, y)
    ]
    only_a = tuple(one for one in _heads(a) if one not in {x for x, _ in met})
    only_b = tuple(one for one in _heads(b) if one not in {x for _, x in met})
    return Comparison(tuple(found), only_a, only_b, logits, tuple(notes))


def _nothing_shared(a: Prompt, b: Prompt) -> HgvizError:
    """Why no row of A stands for the same as one of B."""
    if a.signal is None and b.signal is None:
        return HgvizError(
            "these two share no token: "
            "maps are compared where both stand for the same part of a text",
            "Capture the same text with both",
        )
    return HgvizError(
        f"the maps of these two are not compared: A reads {_cut_into(a)} and B {_cut_into(b)}",
        "Choose two models that cut the same thing alike",
    )


def _cut_into(prompt: Prompt) -> str:
    """What a model reads, and into what it cuts it."""
    if prompt.signal is None:
        return "a text"
    if prompt.signal.grid is not None:
        rows, columns = prompt.signal.grid
        return f"an image in {rows} x {columns} patches"
    if prompt.signal.seconds > 0:
        return f"a sound in {len(prompt):,} frames"
    return f"{len(prompt):,} positions of its own"


# --- which heads ----------------------------------------------------------------------------------


def _heads(capture: Capture) -> tuple[HeadId, ...]:
    """The heads that are captured."""
    maps = enumerate(capture.maps)
    return tuple(HeadId(index, head) for index, one in maps if one for head in sorted(one.heads))


# --- a pair of layers -----------------------------------------------------------------------------


class _Side:
    """The maps of a layer of one capture, read by the pieces that both share."""

    def __init__(
        self, capture: Capture, layer: Layer, readings: dict[str, Reading], columns: Integers
    ) -> None:
        known = capture.maps[layer.index]
        assert known is not None  # layers gives no other
        self.known, self.layout = known, Layout(capture, layer.index, readings)
        self.every = len(columns) == int(columns.max(initial=-1)) + 1
        self.kept = np.flatnonzero(columns >= 0)
        self.columns = columns[self.kept]

    def strip(self, head: int, rows: Integers, pieces: range) -> tuple[Array, Bools, Array]:
        """Weights and which cells exist (pieces, columns), and the share of weight outside."""
        first, stop = np.searchsorted(rows[rows >= 0], [pieces.start, pieces.stop])
        positions = np.flatnonzero(rows >= 0)[first:stop]
        parts = [self._read(head, some) for some in np.split(positions, _gaps(positions))]
        weights, seen = (np.concatenate(one) for one in zip(*parts, strict=True))
        numbers = rows[positions]
        outside = np.zeros(len(weights))
        if not self.every:
            every = np.abs(weights).sum(1, dtype=float)
            weights, seen = weights[:, self.kept], seen[:, self.kept]
            inside = np.abs(weights).sum(1, dtype=float)
            outside = np.divide(every - inside, every, out=outside, where=every > 0)
            weights = _gathered(weights, self.columns, 1, np.add)
            seen = _gathered(seen, self.columns, 1, np.logical_or)
        weights, outside = (_gathered(one, numbers, 0, np.add) for one in (weights, outside))
        if len(weights) < len(numbers):
            sizes = np.bincount(numbers - pieces.start)
            weights, outside = weights / sizes[:, None], outside / sizes
        return weights, _gathered(seen, numbers, 0, np.logical_or), outside

    def _read(self, head: int, rows: Integers) -> tuple[Array, Bools]:
        """Weights and which cells exist (rows, keys), of rows that lie close together."""
        span, some = slice(int(rows[0]), int(rows[-1]) + 1), rows - rows[0]
        weights: Array = self.known.read(head, span)
        seen = self.layout.block(span, slice(0, weights.shape[1])).seen | (weights != 0)
        return (weights, seen) if len(some) == len(weights) else (weights[some], seen[some])


def _gaps(rows: Integers) -> Integers:
    """Where rows that are far apart begin: what lies between need not be read."""
    return np.flatnonzero(np.diff(rows) > _FAR) + 1


def _gathered(values: Array, numbers: Integers, axis: int, fold: np.ufunc) -> Array:
    """Values of equal numbers, which stand side by side, folded into one."""
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    return values if len(starts) == len(numbers) else fold.reduceat(values, starts, axis)


class _Pair:
    """Two layers that meet. found: of the head that was measured last."""

    found: HeadDifference

    def __init__(
        self,
        alignment: Alignment,
        one: Layer,
        other: Layer,
        readings: tuple[dict[str, Reading], dict[str, Reading]],
        every: bool,
    ) -> None:
        a, b = alignment.a, alignment.b
        columns = alignment.columns(one, other)
        self.layers, self.columns = (one, other), columns.count
        self.sides = (
            _Side(a, one, readings[0], columns.a),
            _Side(b, other, readings[1], columns.b),
        )
        rows = alignment.rows(one, other)
        # rows of padding stand for nothing
        real = [side.layout.real for side in self.sides]
        self.rows = common_pieces(np.where(real[0], rows.a, -1), np.where(real[1], rows.b, -1))
        maps = [side.known for side in self.sides]
        self.heads = paired_heads(a, b, one, other)
        self.blocks = self._blocks(maps[0].shape[1:], every) if self.columns else []
        self.measured = sum(map(len, self.blocks))
        most = min(self.measured, RANK_ROWS, max(1, RANK_CELLS // max(self.columns, 1)))
        self.sampled = np.unique(np.linspace(0, self.measured - 1, most).astype(int))

    def _blocks(self, shape: tuple[int, ...], every: bool) -> list[range]:
        """The pieces that begin in each block of A's rows that is measured."""
        numbers, found = self.rows.a, []
        first = np.unique(numbers[numbers >= 0], return_index=True)[1]
        places = np.flatnonzero(numbers >= 0)[first]
        together = np.searchsorted(self.rows.b[self.rows.b >= 0], np.arange(len(places)))
        for rows in row_blocks(shape[0], shape[1], every):
            start, stop = np.searchsorted(places, [rows.start, rows.stop])
            cuts = np.flatnonzero(np.diff(together[start:stop] // _TOGETHER)) + start + 1
            ends = [int(start), *map(int, cuts), int(stop)]
            found += [range(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True) if a < b]
        return found

    def measure(self, head: int) -> Iterator[float]:
        """How much of a head is measured, from 0; then it is in found."""
        parts: list[dict[str, Array]] = []
        some: list[tuple[Array, Array]] = []
        start = 0
        for done, pieces in enumerate(self.blocks):
            yield done / len(self.blocks)
            with np.errstate(invalid="ignore"):  # of what is no number
                (a, has_a, out_a), (b, has_b, out_b) = (
                    side.strip(head, rows, pieces)
                    for side, rows in zip(self.sides, (self.rows.a, self.rows.b), strict=True)
                )
            part = compared(a, b, has_a, has_b)
            parts.append(part | {"outside": np.stack([out_a, out_b])})
            chosen = self.sampled[(self.sampled >= start) & (self.sampled < start + len(a))] - start
            chosen = chosen[~part["broken"][chosen]]
            some.append((a[chosen], b[chosen]))
            start += len(a)
        rows = {name: np.concatenate([one[name] for one in parts], -1) for name in parts[0]}
        samples = [np.concatenate(one) for one in zip(*some, strict=True)]
        self.found = self._difference(head, rows, samples)

    def _difference(self, head: int, rows: dict[str, Array], some: list[Array]) -> HeadDifference:
        broken = rows["broken"]
        good = {name: one[..., ~broken] for name, one in rows.items()}
        weighing = good["mass"] > 0
        both = weighing.all(0)

        def means(name: str) -> Pair:
            pairs = zip(good[name], weighing, strict=True)
            first, second = (_mean(values[some]) for values, some in pairs)
            return first, second

        near = good["near"].sum(1), good["has"].sum(1)
        one, other = self.layers
        kinds = [
            layer.activations[layer.heads.index(head)] if head in layer.heads else ""
            for layer in self.layers
        ]
        return HeadDifference(
            head=HeadId(one.index, head),
            other=HeadId(other.index, head),
            layer=one.name,
            role=one.role,
            activation=(kinds[0], kinds[1]),
            rows=int((~broken).sum()),
            of=self.rows.count,
            columns=self.columns,
            largest=_most(good["largest"]),
            mean=_ratio(good["total"].sum(), good["cells"].sum()),
            relative_largest=_most(good["relative"]),
            relative_mean=_mean(good["relative_mean"]),
            js=_mean(good["js"][both]),
            entropy=means("entropy"),
            near_zero=(_ratio(near[0][0], near[1][0]), _ratio(near[0][1], near[1][1])),
            negative=means("negative"),
            rank=(effective_rank(some[0]), effective_rank(some[1])),
            rank_rows=len(some[0]),
            outside=means("outside"),
            broken=int(broken.sum()),
        )


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _most(values: Array) -> float:
    return float(values.max()) if len(values) else float("nan")


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else float("nan")


# --- what was not compared ------------------------------------------------------------------------


def _notes(
    a: Capture,
    b: Capture,
    alignment: Alignment,
    pairs: list[tuple[Layer, Layer]],
    apart: list[Layer],
    found: list[HeadDifference],
) -> Iterator[str]:
    """Sentences on what differs beside the weights, and on what could not be compared."""
    if a.main.signal is not None:
        yield from _of_signals(a.main, b.main, alignment)
    elif not alignment.same_tokens:
        shared, texts = alignment.tokens(), "texts" if a.main.text != b.main.text else "tokens"
        yield (
            f"the {texts} differ: {shared.count:,} pieces are in both, "
            f"of {len(a.main):,} tokens in A and {len(b.main):,} in B"
        )
    if any(one.name != other.name for one, other in pairs):
        yield "layers meet by their numbers, as no names are alike"
    for name, one in (("A", a), ("B", b)):
        if missing := [str(i) for i, known in enumerate(one.maps) if known is None]:
            yield f"{name} was interrupted: it has no layers {', '.join(missing)}"
    if apart:
        names = _listed(one.name for one in apart)
        yield f"no position stands for the same tokens on both sides in {names}"
    if some := [one for one in found if one.rows + one.broken < one.of]:
        rows = max(one.rows for one in some)
        yield f"of {len(some)} long maps at most {rows:,} rows are measured, evenly spread"
    if left := dict.fromkeys(one.layer for one in found if max(one.outside) > 0):
        yield f"weight on columns that the other has not is left out in {_listed(left)}"
    if broken := [str(one.head) for one in found if one.broken]:
        yield f"rows that hold what is no number are left out in {', '.join(broken)}"


def _of_signals(a: Prompt, b: Prompt, alignment: Alignment) -> Iterator[str]:
    """What differs in two pictures or sounds, and in their positions."""
    if a.text != b.text:
        yield f"A reads {a.text or 'what has no name'} and B {b.text or 'what has no name'}"
    elif _apart(a.signal, b.signal) > FAINT:
        yield f"both read {a.text}, and these are not the same image"
    if not alignment.same_tokens:
        shared = alignment.tokens().count
        yield f"{shared:,} positions are in both, of {len(a):,} in A and {len(b):,} in B"


def _apart(a: Signal | None, b: Signal | None) -> float:
    """The mean difference of two pictures of one size, of 255; 0 where there are none."""
    pictures = [None if one is None else one.picture for one in (a, b)]
    if pictures[0] is None or pictures[1] is None or pictures[0].shape != pictures[1].shape:
        return 0.0
    return float(np.abs(pictures[0].astype(float) - pictures[1]).mean())


def _listed(names: Iterable[str]) -> str:
    """Some names, or how many they are."""
    found = list(names)
    return ", ".join(found) if len(found) <= 4 else f"{len(found)} layers"
