"""Two captures head by head, and two models on the same data.

Captures need not have the same tokens, lengths or levels (see alignment). Answers are paired place
by place, so that what both models get right or wrong says nothing of the difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS
from hgviz.analysis.alignment import (
    Alignment,
    SharedPieces,
    common_pieces,
    paired_heads,
    paired_layers,
)
from hgviz.analysis.metrics import (
    COLUMNS_AT_ONCE,
    LIKENESS_ROWS,
    NEAR_ZERO,
    Array,
    Cells,
    Doubles,
    MetricMeans,
    RankSample,
    RowSums,
    TextMetrics,
    distance_of,
    distances,
    divergence,
    effective_ranks,
    ratio,
    row_blocks,
)
from hgviz.analysis.statistics import (
    COSINE_TO_A,
    Z95,
    Answers,
    Evaluation,
    benjamini_hochberg,
    evaluation_of,
    finite_or_none,
    mcnemar,
    paired_difference,
    ratio_interval,
)
from hgviz.analysis.tokens import Bools, Layout, TokenReading
from hgviz.core import (
    Capture,
    HeadId,
    HeadSet,
    HgvizError,
    Integers,
    Layer,
    MetricEstimate,
    ModelSpec,
    Prompt,
    progress,
    progress_within,
)
from hgviz.examples import EACH, IGNORE_INDEX, Example, Examples
from hgviz.language import counted

EVERY_CELL = 1 << 62
SAME_IMAGE = 8.0  # of 255: two ways of making one image smaller differ less, on average
MAX_GAP = 64  # rows that are read along with those wanted on both sides
MAX_ROWS = 1024  # of B, read with one block of A's rows
LOGIT_ROWS = 256  # at once
STATE_ROWS = 256
LISTED_EXAMPLES = 20
CHARACTERS_BEFORE = 60  # of what stands before a token
EQUAL_COSINES = 1e-9

Pair = tuple[float, float]  # of A and of B


# --- captures -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeadDifference:
    """A head of A beside that of B; pairs are A's number and B's, NaN where there is none.

    rows of the of rows that both have were measured, on so many columns. largest and mean are of
    |A - B|, the mean over the cells that exist; relative ones are divided by the largest weight of
    the row on either side, and the mean is over rows. js: the Jensen-Shannon distance of |A| and
    |B|, divided by their row sums: the square root of the divergence in bits, from 0 (alike) to 1
    (nothing in common), its mean over the rows that both give weight to. entropy, near_zero and
    negative (negative_mass) are those of METRICS. rank: the effective rank (Roy and Vetterli 2007)
    of rank_rows rows, spread evenly. outside: the share of weight on columns that the other has
    not. broken: rows left out, as they hold what is no number.
    """

    head: HeadId
    other: HeadId
    layer: str
    role: str
    activation: tuple[str, str]
    rows: int
    of: int
    columns: int
    largest: float
    mean: float
    relative_largest: float
    relative_mean: float
    js: float
    entropy: Pair
    near_zero: Pair
    negative: Pair
    rank: Pair
    rank_rows: int
    outside: Pair
    broken: int = 0

    def to_dict(self) -> dict[str, Any]:
        """One level deep, None for what is no number."""
        numbers: dict[str, Any] = {}
        for name, value in asdict(self).items():
            if isinstance(value, HeadId):
                numbers[name] = str(value)
            elif isinstance(value, tuple):
                numbers |= {f"{name}_{side}": x for side, x in zip("ab", value, strict=True)}
            else:
                numbers[name] = value
        return {name: _finite(value) for name, value in numbers.items()}


def _finite(value: Any) -> Any:
    """The value, None for a number that is not finite."""
    return None if isinstance(value, float) and not np.isfinite(value) else value


@dataclass(frozen=True, slots=True)
class LogitDifference:
    """How far apart the logits of two models are, at the places that both have.

    largest, mean: of |A - B|. same: the share of places where both have the largest logit at the
    same token or class, NaN for hidden states; moved: the mean of 1 - cosine of hidden states, NaN
    for logits. places of so many (of) are compared.
    """

    largest: float
    mean: float
    same: float
    places: int
    of: int
    moved: float = float("nan")

    def to_dict(self) -> dict[str, Any]:
        """As `hgviz compare --json` prints it."""
        numbers = {name: _finite(value) for name, value in asdict(self).items()}
        if numbers["moved"] is None:
            del numbers["moved"]
        return numbers


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two captures: the heads that both have, those that only one has, and their logits, None
    where these cannot be compared; notes are sentences on what was not compared."""

    heads: tuple[HeadDifference, ...]
    only_a: tuple[HeadId, ...] = ()
    only_b: tuple[HeadId, ...] = ()
    logits: LogitDifference | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As `hgviz compare --json` prints it."""
        return {
            "near_zero": NEAR_ZERO,
            "heads": [head.to_dict() for head in self.heads],
            "only_a": list(map(str, self.only_a)),
            "only_b": list(map(str, self.only_b)),
            "logits": self.logits and self.logits.to_dict(),
            "notes": list(self.notes),
        }


def compare(a: Capture, b: Capture, every_row: bool = False) -> Comparison:
    """Compare two captures head by head; progress carries the HeadDifferences so far.

    Layers are paired by name, or by number where no name is in both; rows and columns by the piece
    of text that they stand for, rows of a piece averaged, columns added up. Of maps above 2^26
    weights only rows spread evenly are measured, unless every row is asked for. Holds at most 256
    rows of both maps. Raises HgvizError where the two have no piece of text in common.
    """
    alignment = Alignment(a, b)
    if not alignment.tokens().count:
        raise _nothing_shared(a.main, b.main)
    layers = paired_layers(a, b)
    differences: list[HeadDifference] = []
    unpaired: list[Layer] = []
    heads: list[tuple[HeadId, HeadId]] = []
    readings: tuple[dict[str, TokenReading], dict[str, TokenReading]] = {}, {}
    for number, (layer_a, layer_b) in enumerate(layers):
        numbers = paired_heads(a, b, layer_a, layer_b)
        heads += [(HeadId(layer_a.index, head), HeadId(layer_b.index, head)) for head in numbers]
        pair = _LayerPair(alignment, layer_a, layer_b, readings, every_row)
        if not pair.blocks:
            unpaired.append(layer_a)
            continue
        for place, head in enumerate(numbers):
            share = number + place / len(numbers), number + (place + 1) / len(numbers)
            with progress_within(*share, len(layers)):
                differences.append(pair.compare_head(head, tuple(differences)))
    progress(len(layers), len(layers), "", tuple(differences))
    logits, reason = compare_logits(alignment)
    notes = [*_notes(alignment, layers, unpaired, differences), *([reason] if reason else [])]
    in_a, in_b = {one for one, _ in heads}, {other for _, other in heads}
    return Comparison(
        tuple(differences),
        tuple(head for head in _captured_heads(a) if head not in in_a),
        tuple(head for head in _captured_heads(b) if head not in in_b),
        logits,
        tuple(notes),
    )


def most_alike(a: Capture, b: Capture, head: HeadId) -> tuple[HeadId, float] | None:
    """The head of B whose map is most like that of a head of A, among layers of its role, and their
    distance: the mean Jensen-Shannon distance of at most 32 rows, spread evenly over what both
    have. None where nothing can be compared. Heads of models that were trained apart have nothing
    in common but their number."""
    if head not in _captured_heads(a):
        return None
    alignment, layer_a = Alignment(a, b), a.spec.layers[head.layer]
    readings: tuple[dict[str, TokenReading], dict[str, TokenReading]] = {}, {}
    layers = [one for one in b.spec.layers if one.role == layer_a.role and b.maps[one.index]]
    found: list[tuple[float, HeadId]] = []
    for number, layer_b in enumerate(layers):
        progress(number, len(layers), f"layer {layer_b.index} of B")
        pair = _LayerPair(alignment, layer_a, layer_b, readings, every_row=True)
        pieces = np.array([piece for block in pair.blocks for piece in block], np.int64)
        if not len(pieces):
            continue
        at = np.unique(np.linspace(0, len(pieces) - 1, LIKENESS_ROWS).round().astype(int))
        rows = [range(piece, piece + 1) for piece in pieces[at].tolist()]
        own = pair.shares(0, head.head, rows)
        for other in pair.sides[1].maps.heads:
            distance = float(distances(own[None], pair.shares(1, other, rows)[None])[0, 0])
            if math.isfinite(distance):
                found.append((distance, HeadId(layer_b.index, other)))
    return min(found)[::-1] if found else None


def _captured_heads(capture: Capture) -> Iterator[HeadId]:
    for index, maps in enumerate(capture.maps):
        if maps:
            yield from (HeadId(index, head) for head in sorted(maps.heads))


def _nothing_shared(a: Prompt, b: Prompt) -> HgvizError:
    """Why no position of A stands for the same as one of B."""
    if a.signal is None and b.signal is None:
        return HgvizError(
            "A and B have no token in common: "
            "maps are compared where both have the same tokens of a text",
            "Capture the same text with both",
        )

    def describe(prompt: Prompt) -> str:
        if prompt.signal is None:
            return "a text"
        if prompt.signal.grid is not None:
            rows, columns = prompt.signal.grid
            return f"an image in {rows} x {columns} patches"
        if prompt.signal.seconds > 0:
            return f"a sound in {len(prompt):,} frames"
        return f"a signal of {len(prompt):,} positions"

    return HgvizError(
        f"the maps of A and B cannot be compared: A reads {describe(a)}, B reads {describe(b)}",
        "Choose two models that divide the same input in the same way",
    )


class _LayerSide:
    """The maps of a layer of one capture, read by the pieces that both captures share."""

    def __init__(
        self, capture: Capture, layer: Layer, readings: dict[str, TokenReading], columns: Integers
    ) -> None:
        maps = capture.maps[layer.index]
        assert maps is not None  # paired_layers gives no other
        self.maps, self.layout = maps, Layout(capture, layer.index, readings)
        self.has_all_columns = len(columns) == int(columns.max(initial=-1)) + 1
        self.shared_columns = np.flatnonzero(columns >= 0)
        self.column_pieces = columns[self.shared_columns]

    def read(self, head: int, row_pieces: Integers, pieces: range) -> tuple[Array, Bools, Array]:
        """Weights and which cells exist (pieces, columns), and the share of weight (pieces,) on
        columns that the other side lacks."""
        is_shared = row_pieces >= 0
        first, stop = np.searchsorted(row_pieces[is_shared], [pieces.start, pieces.stop])
        rows = np.flatnonzero(is_shared)[first:stop]
        # what lies between rows that are far apart need not be read
        runs = np.split(rows, np.flatnonzero(np.diff(rows) > MAX_GAP) + 1)
        parts = [self._read_run(head, run) for run in runs]
        weights, exists = (np.concatenate(part) for part in zip(*parts, strict=True))
        outside = np.zeros(len(weights))
        if not self.has_all_columns:
            mass = np.abs(weights).sum(1, dtype=float)
            weights, exists = weights[:, self.shared_columns], exists[:, self.shared_columns]
            inside = np.abs(weights).sum(1, dtype=float)
            outside = np.divide(mass - inside, mass, out=outside, where=mass > 0)
            weights = _fold(weights, self.column_pieces, 1, np.add)
            exists = _fold(exists, self.column_pieces, 1, np.logical_or)
        numbers = row_pieces[rows]
        weights, outside = _fold(weights, numbers, 0, np.add), _fold(outside, numbers, 0, np.add)
        if len(weights) < len(numbers):
            sizes = np.bincount(numbers - pieces.start)
            weights, outside = weights / sizes[:, None], outside / sizes
        return weights, _fold(exists, numbers, 0, np.logical_or), outside

    def _read_run(self, head: int, rows: Integers) -> tuple[Array, Bools]:
        """Weights and which cells exist (rows, keys), of rows that lie close together."""
        span, wanted = slice(int(rows[0]), int(rows[-1]) + 1), rows - rows[0]
        weights: Array = self.maps.read(head, span)
        exists = self.layout.block(span, slice(0, weights.shape[1])).seen | (weights != 0)
        if len(wanted) == len(weights):
            return weights, exists
        return weights[wanted], exists[wanted]


def _fold(values: Array, numbers: Integers, axis: int, function: np.ufunc) -> Array:
    """Values with equal numbers, which are neighbours, folded into one."""
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    return values if len(starts) == len(numbers) else function.reduceat(values, starts, axis)


class _LayerPair:
    """Two layers and the blocks of pieces in which their rows are compared."""

    def __init__(
        self,
        alignment: Alignment,
        layer_a: Layer,
        layer_b: Layer,
        readings: tuple[dict[str, TokenReading], dict[str, TokenReading]],
        every_row: bool,
    ) -> None:
        columns = alignment.columns(layer_a, layer_b)
        self.layers, self.columns = (layer_a, layer_b), columns.count
        self.sides = (
            _LayerSide(alignment.a, layer_a, readings[0], columns.a),
            _LayerSide(alignment.b, layer_b, readings[1], columns.b),
        )
        rows = alignment.rows(layer_a, layer_b)
        is_real = [side.layout.real for side in self.sides]  # not padding
        self.rows = common_pieces(
            np.where(is_real[0], rows.a, -1), np.where(is_real[1], rows.b, -1)
        )
        shape = self.sides[0].maps.shape[1:]
        self.blocks = _blocks(self.rows, shape, every_row) if self.columns else []

    def shares(self, side: int, head: int, rows: Sequence[range]) -> Doubles:
        """(rows, columns) the sizes of a head's weights on side 0 or 1, over the sum of their row;
        0 in rows without weight."""
        numbers = (self.rows.a, self.rows.b)[side]
        weights = [self.sides[side].read(head, numbers, row)[0] for row in rows]
        sizes = np.nan_to_num(np.abs(np.concatenate(weights).astype(float)))
        shares: Doubles = sizes / np.maximum(sizes.sum(1, keepdims=True), np.finfo(float).tiny)
        return shares

    def compare_head(self, head: int, so_far: tuple[HeadDifference, ...]) -> HeadDifference:
        """The head of this number in both layers; so_far: what the progress carries."""
        count, (layer_a, layer_b) = sum(map(len, self.blocks)), self.layers
        shape = 1, count, self.columns
        sums = [RowSums(shape, [side.maps.signed]) for side in self.sides]
        samples = [RankSample(np.arange(count), self.columns) for _ in self.sides]
        outside, between = np.zeros((2, count)), np.zeros((4, count))
        is_broken = np.zeros(count, bool)
        stop = 0
        for number, pieces in enumerate(self.blocks):
            progress(number, len(self.blocks), f"head {layer_a.index}.{head}", so_far)
            rows, stop = slice(stop, stop + len(pieces)), stop + len(pieces)
            with np.errstate(invalid="ignore"):  # weights may be NaN
                read = [
                    side.read(head, row_pieces, pieces)
                    for side, row_pieces in zip(self.sides, (self.rows.a, self.rows.b), strict=True)
                ]
                cells = [
                    Cells(rows, slice(0, self.columns), weights[None], exists)
                    for weights, exists, _ in read
                ]
                for side, summed in zip(cells, sums, strict=True):
                    summed.add(side)
                broken = ~np.isfinite(sums[0].mass[0, rows] + sums[1].mass[0, rows])
                is_broken[rows] = broken
                if broken.any():
                    cells = [
                        side._replace(weights=np.where(broken[:, None], np.nan, side.weights))
                        for side in cells
                    ]
                for side, sample in zip(cells, samples, strict=True):
                    sample.add(side)
                between[:, rows] = _row_differences(cells, sums)
            outside[:, rows] = [share for *_, share in read]
        is_good = ~is_broken
        mass, peak = (
            np.concatenate([getattr(one, name) for one in sums]) for name in ("mass", "peak")
        )
        has_weight, highest = (mass > 0) & is_good, peak.max(0)
        largest, total, cell_count, nats = between
        metrics = []
        for summed in sums:
            means = MetricMeans(1, ("entropy", "near_zero", "negative_mass"))
            means.add(summed, is_good)
            metrics.append(means.metrics()[0])

        def both(name: str) -> Pair:
            return metrics[0][name], metrics[1][name]

        maps = [sample.maps() for sample in samples]
        activations = [
            layer.activations[layer.heads.index(head)] if head in layer.heads else ""
            for layer in self.layers
        ]
        return HeadDifference(
            head=HeadId(layer_a.index, head),
            other=HeadId(layer_b.index, head),
            layer=layer_a.name,
            role=layer_a.role,
            activation=(activations[0], activations[1]),
            rows=int(is_good.sum()),
            of=self.rows.count,
            columns=self.columns,
            largest=_largest(largest[is_good]),
            mean=float(ratio(total[is_good].sum(), cell_count[is_good].sum(), np.nan)),
            relative_largest=_largest(ratio(largest, highest)[is_good]),
            relative_mean=_mean(ratio(total, highest * np.maximum(cell_count, 1))[is_good]),
            js=_mean(distance_of(nats)[has_weight.all(0)]),
            entropy=both("entropy"),
            near_zero=both("near_zero"),
            negative=both("negative_mass"),
            rank=(float(effective_ranks(maps[0])[0]), float(effective_ranks(maps[1])[0])),
            rank_rows=maps[0].shape[1],
            outside=(_mean(outside[0, has_weight[0]]), _mean(outside[1, has_weight[1]])),
            broken=int(is_broken.sum()),
        )


def _row_differences(cells: Sequence[Cells], sums: Sequence[RowSums]) -> Array:
    """(4, rows) of whole rows of A and B: the largest |A - B|, their sum, the cells that either
    has, and the Jensen-Shannon divergence in nats."""
    rows, exists = cells[0].rows, cells[0].seen | cells[1].seen
    mass = [np.where(one.mass > 0, one.mass, 1.0)[0, rows, None] for one in sums]
    largest, total, count, nats = np.zeros((4, len(exists)))
    for start in range(0, exists.shape[1], COLUMNS_AT_ONCE):
        part = slice(start, start + COLUMNS_AT_ONCE)
        if exists[:, part].any():
            a, b = (one.weights[0, :, part].astype(float) for one in cells)
            apart = np.abs(a - b)
            largest = np.maximum(largest, apart.max(1))
            total += apart.sum(1)
            count += exists[:, part].sum(1)
            nats += divergence(np.abs(a) / mass[0], np.abs(b) / mass[1])
    return np.stack([largest, total, count, nats])


def _blocks(rows: SharedPieces, shape: Sequence[int], every_row: bool) -> list[range]:
    """The pieces that begin in each block of A's rows that is measured, few rows of B at a time."""
    first_rows = np.unique(rows.a[rows.a >= 0], return_index=True)[1]
    starts_a = np.flatnonzero(rows.a >= 0)[first_rows]
    starts_b = np.searchsorted(rows.b[rows.b >= 0], np.arange(len(starts_a)))
    blocks = []
    for block in row_blocks(shape[0], shape[1], EVERY_CELL if every_row else None):
        start, stop = (int(end) for end in np.searchsorted(starts_a, [block.start, block.stop]))
        cuts = np.flatnonzero(np.diff(starts_b[start:stop] // MAX_ROWS)) + start + 1
        ends = [start, *cuts.tolist(), stop]
        blocks += [range(*pair) for pair in zip(ends[:-1], ends[1:], strict=True)]
    return [block for block in blocks if block]


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _largest(values: Array) -> float:
    return float(values.max()) if len(values) else float("nan")


def _notes(
    alignment: Alignment,
    layers: list[tuple[Layer, Layer]],
    unpaired: list[Layer],
    differences: list[HeadDifference],
) -> Iterator[str]:
    """Sentences on what differs besides the weights, and on what could not be compared."""
    a, b = alignment.a, alignment.b
    if a.main.signal is not None:
        yield from _signal_notes(a.main, b.main, alignment)
    elif not alignment.same_tokens:
        shared, texts = alignment.tokens(), "texts" if a.main.text != b.main.text else "tokens"
        yield (
            f"the {texts} differ: {counted(shared.count, 'shared token')}, "
            f"of {len(a.main):,} in A and {len(b.main):,} in B"
        )
    if any(layer_a.name != layer_b.name for layer_a, layer_b in layers):
        yield "layers are matched by index, because their names differ"
    for name, capture in (("A", a), ("B", b)):
        if missing := [str(index) for index, maps in enumerate(capture.maps) if maps is None]:
            yield f"the capture of {name} was interrupted: layers {', '.join(missing)} are missing"
    if unpaired:
        names = _listed(layer.name for layer in unpaired)
        yield f"A and B have no positions in common in {names}"
    if sampled := [head for head in differences if head.rows + head.broken < head.of]:
        rows = max(head.rows for head in sampled)
        yield f"at most {rows:,} evenly spaced rows are measured of {len(sampled)} long maps"
    if outside := dict.fromkeys(head.layer for head in differences if max(head.outside) > 0):
        yield f"weight on tokens that only one side has is left out in {_listed(outside)}"
    if broken := [str(head.head) for head in differences if head.broken]:
        yield f"rows with NaN or infinite weights are left out in {', '.join(broken)}"


def _signal_notes(a: Prompt, b: Prompt, alignment: Alignment) -> Iterator[str]:
    """What differs in two images or sounds, and in their positions."""
    images = [None if prompt.signal is None else prompt.signal.picture for prompt in (a, b)]
    if a.text != b.text:
        yield f"A reads {a.text or 'unnamed input'}, B reads {b.text or 'unnamed input'}"
    elif not _looks_same(*images):
        yield f"both read {a.text}, but the images differ"
    if not alignment.same_tokens:
        shared = alignment.tokens().count
        yield f"{counted(shared, 'shared position')}, of {len(a):,} in A and {len(b):,} in B"


def _looks_same(a: NDArray[np.uint8] | None, b: NDArray[np.uint8] | None) -> bool:
    """Whether two pictures (height, width, 3) are nearly equal; other sizes count as the same."""
    if a is None or b is None or a.shape != b.shape:
        return True
    return bool(np.abs(a.astype(float) - b).mean() <= SAME_IMAGE)


def _listed(names: Iterable[str]) -> str:
    """The names, or how many layers they are."""
    names = list(names)
    return ", ".join(names) if len(names) <= 4 else f"{len(names)} layers"


def compare_logits(alignment: Alignment) -> tuple[LogitDifference | None, str]:
    """The logits of two captures at the tokens that both have; or None, and the reason why not."""
    a, b = alignment.a, alignment.b
    if a.logits is None or b.logits is None:
        missing = [name for name, one in (("A", a), ("B", b)) if one.logits is None]
        return None, "neither has logits" if len(missing) == 2 else f"{missing[0]} has no logits"
    are_states = a.spec.goal == "states"
    noun = "last hidden states" if are_states else "logits"
    refusal = f"{noun} cannot be compared: A and B have different"
    if a.spec.goal != b.spec.goal:
        return None, f"{refusal} goals, {a.spec.goal} and {b.spec.goal}"
    logits_a, logits_b = a.logits, b.logits
    sizes = logits_a.shape[-1], logits_b.shape[-1]
    if sizes[0] != sizes[1] or a.spec.labels != b.spec.labels:
        return None, f"{refusal} outputs, {sizes[0]:,} and {sizes[1]:,} of them"
    if a.spec.goal == "classes":
        logits_a, logits_b = np.atleast_2d(logits_a), np.atleast_2d(logits_b)
        rows_a = rows_b = np.zeros(1, np.int64)
        total = 1
    else:
        shared = alignment.tokens()
        is_single = [
            np.bincount(side[side >= 0], minlength=shared.count) == 1
            for side in (shared.a, shared.b)
        ]
        pieces = np.flatnonzero(is_single[0] & is_single[1])
        rows_a, rows_b = (np.flatnonzero(np.isin(side, pieces)) for side in (shared.a, shared.b))
        total = max(len(shared.a), len(shared.b))
        if not len(pieces):
            return None, f"{refusal} tokens"
        same_ids = (a.main.ids[rows_a] == b.main.ids[rows_b]).all()
        if (len(logits_a), len(logits_b)) != (len(shared.a), len(shared.b)) or not same_ids:
            return None, f"{refusal} vocabularies"
    largest = summed = same = moved = 0.0
    for start in range(0, len(rows_a), LOGIT_ROWS):
        block = slice(start, start + LOGIT_ROWS)
        one = np.asarray(logits_a[rows_a[block]], float)
        other = np.asarray(logits_b[rows_b[block]], float)
        with np.errstate(invalid="ignore"):
            difference = np.abs(one - other)
        largest = float(np.maximum(largest, difference.max()))
        summed += float(difference.sum())
        same += float((one.argmax(-1) == other.argmax(-1)).sum())
        if are_states:
            lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
            cosines = (one * other).sum(-1) / np.maximum(lengths, np.finfo(float).tiny)
            moved += float((1 - cosines).sum())
    if not np.isfinite(largest):
        return None, f"{noun} contain NaN or infinite values"
    count = len(rows_a)
    mean = summed / (count * sizes[0])
    if are_states:
        nan = float("nan")
        return LogitDifference(largest, mean, nan, count, total, max(0.0, moved / count)), ""
    return LogitDifference(largest, mean, same / count, count, total), ""


# --- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DifferentAnswer:
    """A place that A and B answer differently: the number of the example and, within it, of the
    place. a and b are the answers, loss_a and loss_b their losses in nats; right is "a", "b" or ""
    for neither."""

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

    difference: of B to A in the metric of both, with its interval of 95 %: Bonett and Price (2012)
    for shares, for bits per byte the normal one of a ratio over windows (Cochran 1977, 2.11).
    agreement: the share of places with the same answer; a_only and b_only: places that only one
    gets right; p: of McNemar's exact test. differing: all places with another answer, those that
    one side gets right first; of hidden states the examples that are nearer to another of A's.
    pairs: the number of paired places. All are None or empty where the two were not asked the
    same; notes say why.
    """

    a: Evaluation
    b: Evaluation
    difference: tuple[float, float, float] | None = None
    agreement: float | None = None
    a_only: int | None = None
    b_only: int | None = None
    p: float | None = None
    differing: tuple[DifferentAnswer, ...] = ()
    notes: tuple[str, ...] = ()
    pairs: int = 0

    def to_dict(self, most: int | None = LISTED_EXAMPLES) -> dict[str, Any]:
        """As `hgviz compare --data --json` prints it, with at most so many examples."""
        difference = self.difference and dict(
            zip(("value", "low", "high"), map(_finite, self.difference), strict=True)
        )
        return {
            "score_a": self.a.to_dict(),
            "score_b": self.b.to_dict(),
            "difference": difference,
            "agreement": self.agreement,
            "a_only": self.a_only,
            "b_only": self.b_only,
            "p": self.p,
            "differing": None if self.agreement is None else len(self.differing),
            "examples": [asdict(answer) for answer in self.differing[:most]],
            "notes": list(self.notes),
        }


def compare_answers(
    examples: tuple[Examples, Examples],
    answers: tuple[Answers, Answers],
    name_answer: Callable[[int], str],
    heads_off: tuple[HeadSet, HeadSet] = (frozenset(), frozenset()),
) -> Disagreement:
    """Compare what two models answered to the same data, each asked with its own tokens.

    name_answer: what A calls a class or token. Classes are paired row by row, those of tokens word
    by word, by their names in the file; ends of answers by their characters; tokens only where
    both models read the same ones.
    """
    (asked_a, asked_b), (a, b) = examples, answers
    evaluations = evaluation_of(asked_a, a, heads_off[0]), evaluation_of(asked_b, b, heads_off[1])
    pairs = _paired_places(asked_a, asked_b)
    if pairs is None:
        note = "predictions are not paired: the tokens differ"
        return Disagreement(*evaluations, notes=(note,))
    right_a = (a.predictions == asked_a.wanted)[pairs[0]]
    right_b = (b.predictions == asked_b.wanted)[pairs[1]]
    count, a_only, b_only = (
        len(right_a), int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
    )  # fmt: skip
    if asked_a.asked == "next":
        difference = _bits_per_byte(asked_a, b.loss.astype(float) - a.loss)
    else:
        low, high = map(float, paired_difference(a_only, b_only, count))
        difference = (b_only - a_only) / count, low, high
    places = _PairedPlaces(examples, answers, pairs, name_answer)
    differing = np.flatnonzero(~places.same)
    differing = differing[np.argsort(~(right_a | right_b)[differing], kind="stable")]
    notes: tuple[str, ...] = ()
    if (len(asked_a.wanted), len(asked_b.wanted)) != (count, count):
        notes = (
            f"predictions are paired at {count:,} shared positions, of {len(asked_a.wanted):,} "
            f"in A and {len(asked_b.wanted):,} in B",
        )
    return Disagreement(
        *evaluations,
        difference,
        float(places.same.mean()),
        a_only,
        b_only,
        float(mcnemar(a_only, b_only)),
        tuple(places.describe(pair) for pair in differing.tolist()),
        notes,
        count,
    )


def compare_states(
    examples: Examples,
    states: tuple[NDArray[np.float64], NDArray[np.float64]],
    heads_off: tuple[HeadSet, HeadSet],
) -> Disagreement:
    """Cosine distance between the hidden states of A and B, per example.

    states (examples, width) have length 1. agreement is the share of examples whose nearest state
    of A is that of the same example.
    """
    a, b = states
    distances, nearest = np.zeros(len(a)), np.zeros(len(a), np.int64)
    for start in range(0, len(a), STATE_ROWS):
        cosines = b[start : start + STATE_ROWS] @ a.T
        numbers = np.arange(start, start + len(cosines))
        own = cosines[np.arange(len(cosines)), numbers]
        # of examples with equal states each is its own nearest
        is_own = own >= cosines.max(1) - EQUAL_COSINES
        nearest[numbers] = np.where(is_own, numbers, cosines.argmax(1))
        distances[numbers] = 1 - own
    distances = distances.clip(min=0)
    value, low, high = map(float, ratio_interval(distances))
    count = len(examples)
    estimates = (0.0, 0.0, 0.0), (value, max(low, 0.0), high)
    evaluation_a, evaluation_b = (
        Evaluation(MetricEstimate(COSINE_TO_A, *ends, count, count, off), ends[0], cut=examples.cut)
        for ends, off in zip(estimates, heads_off, strict=True)
    )
    texts = [row.text for row in examples.rows]
    moved = np.flatnonzero(nearest != np.arange(count))
    differing = tuple(
        DifferentAnswer(
            number, 0, texts[number], texts[number], texts[number], texts[nearest[number]], "a",
            0.0, distances[number],
        )
        for number in moved[np.argsort(-distances[moved], kind="stable")].tolist()
    )  # fmt: skip
    return Disagreement(
        evaluation_a,
        evaluation_b,
        estimates[1],
        1 - len(moved) / count,
        differing=differing,
        pairs=count,
    )


def _bits_per_byte(examples: Examples, nats: NDArray[np.float64]) -> tuple[float, float, float]:
    """Nats (places,) as bits per byte, with the interval of 95 % over windows."""
    bits = np.add.reduceat(nats, examples.places[:-1]) / np.log(2)
    sizes = np.array([row.size for row in examples.rows])
    value, low, high = map(float, ratio_interval(bits, sizes))
    return value, low, high


def _paired_places(a: Examples, b: Examples) -> tuple[Integers, Integers] | None:
    """The places of A and of B that ask the same, (pairs,) each; None where there are none."""
    if a.digest == b.digest:
        places = np.arange(len(a.wanted), dtype=np.int64)
        return places, places
    if a.asked not in EACH or (a.asked != "ends" and len(a) != len(b)):
        return None
    place_b = {question: place for place, question in enumerate(_questions(b))}
    pairs = [
        (place, place_b[question])
        for place, question in enumerate(_questions(a))
        if question in place_b
    ]
    if not pairs:
        return None
    places_a, places_b = np.array(pairs, np.int64).T
    return places_a, places_b


def _questions(examples: Examples) -> Iterator[tuple[int, int]]:
    """What each place asks, whatever the tokens are: the number of the example, and the end of its
    answer, or the character where its word begins."""
    for number, row in enumerate(examples.rows):
        if examples.asked == "tags":
            for token in np.flatnonzero(row.wanted != IGNORE_INDEX).tolist():
                yield number, _first_character(row, token)
        else:
            source = row.source if examples.asked == "ends" else number
            yield from ((source, place) for place in range(len(row.wanted)))


def _first_character(row: Example, token: int) -> int:
    """Where a token begins in its text, without the space before it."""
    start, end = (int(one) for one in row.spans[token])
    while 0 <= start < end and row.text[start] == " ":
        start += 1
    return start


class _PairedPlaces:
    """Places where two models were asked the same; same (pairs,): whether they answer the same."""

    def __init__(
        self,
        examples: tuple[Examples, Examples],
        answers: tuple[Answers, Answers],
        places: tuple[Integers, Integers],
        name_answer: Callable[[int], str],
    ) -> None:
        self.examples, self.places, self.name_answer = examples, places, name_answer
        self.names: dict[int, str] = {}
        asked_a, asked_b = examples
        given_a, given_b = (one.predictions[at] for one, at in zip(answers, places, strict=True))
        wanted_a, wanted_b = (one.wanted[at] for one, at in zip(examples, places, strict=True))
        self.losses = [one.loss[at] for one, at in zip(answers, places, strict=True)]
        self.right = given_a == wanted_a, given_b == wanted_b
        if asked_a.asked == "ends":
            self.given: list[list[Any]] = [
                [self._end_of_answer(side, *pair) for pair in zip(at.tolist(), given, strict=True)]
                for side, at, given in zip(
                    examples, places, (given_a.tolist(), given_b.tolist()), strict=True
                )
            ]
            self.same = np.array(
                [one[0] == other[0] for one, other in zip(*self.given, strict=True)], bool
            )
            return
        if asked_a.asked in ("classes", "tags"):
            # classes of B as A numbers them: by name, but those wanted at one place are the same
            numbers = {name: number for number, name in enumerate(asked_a.labels)}
            number_in_a = {
                number: numbers.get(name, IGNORE_INDEX)
                for number, name in enumerate(asked_b.labels)
            }
            number_in_a |= dict(zip(wanted_b.tolist(), wanted_a.tolist(), strict=True))
            given_b = np.array(
                [number_in_a.get(number, IGNORE_INDEX) for number in given_b.tolist()], np.int64
            )
        self.given = [given_a.tolist(), given_b.tolist()]
        self.same = given_a == given_b

    def describe(self, pair: int) -> DifferentAnswer:
        """A pair in words."""
        examples, place = self.examples[0], int(self.places[0][pair])
        number, within = _example_of(examples, place)
        row, wanted = examples.rows[number], int(examples.wanted[place])
        right_a, right_b = (bool(side[pair]) for side in self.right)
        if examples.asked == "ends":
            _, wanted_words = self._end_of_answer(examples, place, wanted)
            words = [side[pair][1] for side in self.given]
        else:
            wanted_words = self._name(wanted)
            words = [self._name(side[pair]) for side in self.given]
        text = row.text
        if examples.asked not in ("classes", "ends"):
            text = _text_before(row, within, examples.asked)
        return DifferentAnswer(
            number, within, text, wanted_words, words[0], words[1],
            "a" if right_a else "b" if right_b else "",
            float(self.losses[0][pair]), float(self.losses[1][pair]),
        )  # fmt: skip

    @staticmethod
    def _end_of_answer(examples: Examples, place: int, token: int) -> tuple[int, str]:
        """The character where an answer begins or ends, -1 for no answer, and the word there."""
        number, within = _example_of(examples, place)
        row = examples.rows[number]
        if row.spans[token, 0] < 0:
            return -1 - (token > 0), "no answer" if token == 0 else "a special token"
        start, stop = _first_character(row, token), int(row.spans[token, 1])
        return (stop if within else start), f"{'to' if within else 'from'} {row.text[start:stop]}"

    def _name(self, answer: int) -> str:
        if answer not in self.names:
            self.names[answer] = self.name_answer(answer) if answer >= 0 else "another class"
        return self.names[answer]


def _example_of(examples: Examples, place: int) -> tuple[int, int]:
    """The number of the example that a place belongs to, and the number of the place in it."""
    number = int(np.searchsorted(examples.places, place, "right")) - 1
    return number, place - int(examples.places[number])


def _text_before(row: Example, within: int, asked: str) -> str:
    """The text before the token that is wanted, or up to the end of the word whose tag is."""
    token = int(np.flatnonzero(row.wanted != IGNORE_INDEX)[within])
    if asked == "tags":
        end = row.text.find(" ", _first_character(row, token))
        end = end if end >= 0 else len(row.text)
    else:
        end = int(row.spans[token, 1 if asked == "next" else 0])
    return row.text[max(0, end - CHARACTERS_BEFORE) : max(end, 0)]


# --- metrics of two models over many texts --------------------------------------------------------


Triple = tuple[float, float, float]  # a value and its interval of 95 %


@dataclass(frozen=True)
class ModelMetrics:
    """The metrics of a model's N heads over many texts, each of which is one observation.

    values: by metric (texts, N); the rest as in TextMetrics: apart as the mean over texts, cells,
    at_scores and at_weights as sums.
    """

    spec: ModelSpec
    heads: tuple[HeadId, ...]
    values: dict[str, Doubles]
    apart: Doubles
    cells: Doubles
    at_scores: Doubles
    at_weights: Doubles

    @property
    def texts(self) -> int:
        """How many texts were measured."""
        return len(self.values["entropy"])

    def activations(self) -> tuple[str, ...]:
        """The activation of every head."""
        layers = self.spec.layers
        by_layer = [dict(zip(one.heads, one.activations, strict=False)) for one in layers]
        return tuple(by_layer[head.layer].get(head.head, "softmax") for head in self.heads)

    @property
    def signed(self) -> bool:
        """Whether any head may weigh below 0."""
        return any(ACTIVATIONS[name].signed for name in self.activations())

    def of_heads(self, name: str) -> tuple[Doubles, Doubles, Doubles]:
        """(N,) the mean over texts of each head, and the ends of its interval."""
        return ratio_interval(self.values[name])

    def of_texts(self, name: str) -> Doubles:
        """(texts,) means over heads."""
        values = self.values[name]
        exists = np.isfinite(values)
        return ratio(np.where(exists, values, 0.0).sum(1), exists.sum(1), np.nan)


@dataclass(frozen=True, slots=True)
class MetricChange:
    """A metric of A and of B, each a mean over heads with its interval over texts, and B less A
    text by text. p: of no difference, normal, adjusted for all metrics (Benjamini and Hochberg
    1995); NaN where nothing varies. exact: both sides have the same number in every text."""

    name: str
    a: Triple
    b: Triple
    difference: Triple
    p: float
    exact: bool = False

    @property
    def differs(self) -> bool:
        """Whether more than chance."""
        return self.p < 0.05

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        facts: dict[str, Any] = {"metric": self.name}
        for side, triple in (("a", self.a), ("b", self.b), ("difference", self.difference)):
            for end, value in zip(("", "_low", "_high"), triple, strict=True):
                facts[side + end] = finite_or_none(value)
        return facts | {"p": finite_or_none(self.p)}


def metric_changes(a: ModelMetrics, b: ModelMetrics) -> tuple[MetricChange, ...]:
    """Every metric of two models on the same texts."""
    changes = []
    for name in a.values:
        side_a, side_b = a.of_texts(name), b.of_texts(name)
        change = side_b - side_a
        value, _, high = triple = _triple(change)
        error = (high - value) / Z95
        exact = bool((np.abs(change) <= 1e-6).all())
        p = float("nan")
        if math.isfinite(error):
            p = 1.0 if exact else math.erfc(abs(value) / error / math.sqrt(2)) if error else 0.0
        changes.append(MetricChange(name, _triple(side_a), _triple(side_b), triple, p, exact))
    adjusted = benjamini_hochberg(np.array([change.p for change in changes]))
    return tuple(replace(change, p=float(p)) for change, p in zip(changes, adjusted, strict=True))


def _triple(values: Doubles) -> Triple:
    value, low, high = ratio_interval(values)
    return float(value), float(low), float(high)


class NanMean:
    """A mean over texts of arrays of one shape; what is no finite number does not count."""

    def __init__(self) -> None:
        self.total: Doubles | None = None
        self._count: Doubles | None = None

    def add(self, values: Doubles) -> None:
        """Add a text."""
        exists = np.isfinite(values)
        finite = np.where(exists, values, 0.0)
        self.total = finite if self.total is None else self.total + finite
        self._count = exists.astype(float) if self._count is None else self._count + exists

    def value(self) -> Doubles | None:
        """The mean, NaN where no text had a number, None where nothing was known at all."""
        if self.total is None or self._count is None or not self._count.any():
            return None
        return ratio(self.total, self._count, np.nan)


class MetricCollector:
    """Adds up texts, one by one, to the metrics of a model."""

    def __init__(self, spec: ModelSpec) -> None:
        self.spec = spec
        self._texts: list[dict[str, Doubles]] = []
        names = ("apart", "cells", "at_scores", "at_weights")
        self._means = {name: NanMean() for name in names}

    def add(self, text: TextMetrics) -> None:
        """Add a text."""
        self._texts.append(text.values)
        for name, mean in self._means.items():
            mean.add(getattr(text, name))

    def metrics(self) -> ModelMetrics:
        """The metrics over all texts so far, of which there is at least one."""
        values = {name: np.stack([text[name] for text in self._texts]) for name in self._texts[0]}
        found: dict[str, Any] = {name: mean.total for name, mean in self._means.items()}
        apart = self._means["apart"].value()
        found["apart"] = np.full_like(found["apart"], np.nan) if apart is None else apart
        return ModelMetrics(self.spec, self.spec.heads, values, **found)
