"""Which weights of a head stand out: the largest, the least, and the key that gets most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, Floats, HeadId, Map
from hgviz.figures.content.unseen import seen_cells
from hgviz.figures.paper.frame import map_of, signed_head

ROWS = 256  # that are read at once
WHOLE = 1 << 26  # cells of a map that is read to its last weight
LARGE = 1 << 28  # cells of all maps together of which that is done
SIDE = 1024  # cells along a map that is not
TRIES = 64  # cells that are read to their last weight to find where its largest is


@dataclass(frozen=True, slots=True)
class Peak:
    """One weight of a map."""

    row: int
    column: int
    weight: float


@dataclass(frozen=True, slots=True)
class Peaks:
    """What stands out among the rows of a map that see two keys or more, of all rows where none
    does. rows: how many these are, of how many that see any. most, least: the largest weight, the
    first of equals, and the least where that is below 0. column, share: the key on which all these
    rows put most of their weight, and its part of it; None where weights are signed. whole: whether
    most is the largest; else it is the one of largest magnitude.
    """

    rows: int
    seeing: int
    most: Peak | None
    least: Peak | None = None
    column: int | None = None
    share: float = 0.0
    whole: bool = True


def peaks_of(capture: Capture, head: HeadId) -> Peaks:
    """What stands out in a head's map. Errors: HgvizError where it is not there."""
    one = map_of(capture, *head)
    if one.shape[1] * one.shape[2] > WHOLE:
        return _of_large(capture, head, one)
    found = _of_rows(capture, head, one, 2)
    return found if found.rows else _of_rows(capture, head, one, 1)


def row_peaks(capture: Capture, head: HeadId) -> float:
    """The mean over a head's rows of the largest magnitude in each."""
    one = map_of(capture, *head)
    summary = getattr(one, "summary", None) if getattr(one, "summarised", False) else None
    if summary is not None:
        return float(np.abs(summary(head.head).rowmax).mean(dtype=np.float64))
    total, rows = 0.0, one.shape[1]
    for start in range(0, rows, ROWS):
        weights = one.read(head.head, (start, min(start + ROWS, rows)))
        total += float(np.nan_to_num(np.abs(weights)).max(axis=1, initial=0).sum(dtype=np.float64))
    return total / max(rows, 1)


def _of_rows(capture: Capture, head: HeadId, one: Map, keys: int) -> Peaks:
    """Of the rows that see at least so many keys."""
    rows = one.shape[1]
    signed = signed_head(capture, *head)
    most: Peak | None = None
    least: Peak | None = None
    sums, used, seeing = np.zeros(one.shape[2]), 0, 0
    for start in range(0, rows, ROWS):
        run = start, min(start + ROWS, rows)
        seen = seen_cells(capture, head.layer, rows=run, head=head.head)
        counts = seen.sum(axis=1)
        seeing += int((counts > 0).sum())
        used += int((counts >= keys).sum())
        seen &= (counts >= keys)[:, None]
        weights = one.read(head.head, run)
        seen &= np.isfinite(weights)
        if not seen.any():
            continue
        high = _largest(weights, seen, start)
        most = high if most is None or high.weight > most.weight else most
        if signed:
            low = _largest(-weights, seen, start)
            low = Peak(low.row, low.column, -low.weight)
            least = low if low.weight < (0 if least is None else least.weight) else least
        sums += np.where(seen, weights, 0).sum(axis=0, dtype=np.float64)
    total = float(sums.sum())
    if signed or not total > 0:
        return Peaks(used, seeing, most, least)
    at = int(sums.argmax())
    return Peaks(used, seeing, most, None, at, float(sums[at]) / total)


def _largest(weights: Floats, seen: NDArray[np.bool_], start: int) -> Peak:
    at = int(np.where(seen, weights, -np.inf).argmax())
    row, column = divmod(at, weights.shape[1])
    return Peak(start + row, column, float(weights[row, column]))


def _of_large(capture: Capture, head: HeadId, one: Map) -> Peaks:
    """The weight of largest magnitude, found in cells of many weights and then among these."""
    rows, columns = one.shape[1:]
    zoom = max(0, int(np.ceil(np.log2(max(rows, columns) / SIDE))))
    size = np.nan_to_num(np.abs(one.read(head.head, zoom=zoom)))
    best: Peak | None = None
    for at in np.argsort(-size, axis=None, kind="stable")[:TRIES]:
        i, j = divmod(int(at), size.shape[1])
        if best is not None and size[i, j] <= abs(best.weight):
            break
        run = i << zoom, min((i + 1) << zoom, rows)
        across = j << zoom, min((j + 1) << zoom, columns)
        every = seen_cells(capture, head.layer, rows=run, head=head.head)
        seen = (every & (every.sum(axis=1) > 1)[:, None])[:, slice(*across)]
        weights = one.read(head.head, run, across)
        if seen.any():
            found = _largest(np.abs(weights), seen, run[0])
            column = found.column + across[0]
            weight = float(weights[found.row - run[0], found.column])
            best = max(
                filter(None, (best, Peak(found.row, column, weight))), key=lambda p: abs(p.weight)
            )
    return Peaks(rows, rows, best, whole=not signed_head(capture, *head))
