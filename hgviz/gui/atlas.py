"""Maps made small: numpy in, pixels out, no Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz import palettes
from hgviz.core import Capture, Floats, HeadId, Layer, Map
from hgviz.gui import grid
from hgviz.maps import LazyMap
from hgviz.maps.overview import larger
from hgviz.maps.rule import StreamingWindow

QUANTILE, EXPONENT = 0.995, 0.6
EARLY = 8  # the first eighth of the rows of a causal map has few keys and so large weights

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Thumb:
    """A map made small: values (rows, columns), how the real map's cells lie, and its focus.

    shape: (queries, keys) that the values cover. slope: keys that become seen per query, None
    when every query sees every key. kind: map, places (a row per window, a column per place) or
    only (one key per window, its weight always 1). near: how many first and latest keys a head that
    streams sees, None for all.
    """

    values: Floats
    shape: tuple[int, int]
    slope: float | None
    signed: bool
    focus: float
    kind: str = "map"
    near: StreamingWindow = None


def thumb(capture: Capture, one: Map, layer: Layer, head: int) -> Thumb:
    """The small picture of one head."""
    _, queries, keys = one.shape
    signed = grid.is_signed(one, head)
    if layer.window is not None:
        if layer.role == "up" and not signed:
            only = np.ones((1, 1), np.float32)
            return Thumb(only, (queries, keys), None, False, 1.0, "only")
        values = grid.Band(one, layer.window, layer.role == "down").read(head)
        focus = float(np.abs(values).max(axis=1).mean()) if values.size else 0.0
        return Thumb(values, (queries, keys), None, signed, focus, "places")
    summary = one.summary(head)  # type: ignore[attr-defined]
    focus = float(np.abs(summary.rowmax).mean()) if summary.rowmax.size else 0.0
    step = cell(queries, summary.thumb.shape[0])
    covered = (summary.thumb.shape[0] * step, summary.thumb.shape[1] * step)
    near = (
        one.factors.rule.of(one.place(head)).streaming_window if isinstance(one, LazyMap) else None
    )
    return Thumb(summary.thumb, covered, slope(capture, layer), signed, focus, near=near)


def cell(queries: int, rows: int) -> int:
    """How many rows of the map one row of its small picture stands for: a power of two."""
    step = 1
    while rows * step < queries:
        step *= 2
    return step


def slope(capture: Capture, layer: Layer) -> float | None:
    """How many more keys each further query sees; None without a causal mask."""
    if not layer.causal:
        return None
    mine = capture.spec.levels[layer.level].stride
    theirs = capture.spec.levels[layer.key_level].stride
    if mine and theirs:
        return mine / theirs
    return len(capture.spans[layer.key_level]) / max(1, len(capture.spans[layer.level]))


def largest(one: Thumb) -> float:
    """What is drawn as full colour: the 99.5 % quantile of what is seen, early rows left out."""
    if one.kind != "map" or not one.values.size:
        return float(np.abs(one.values).max(initial=0.0))
    known = seen(one)
    if one.slope is not None:
        known[: len(known) // EARLY] = False
    values = np.abs(one.values[known])
    return float(np.quantile(values, QUANTILE)) if values.size else 0.0


def seen(one: Thumb) -> NDArray[np.bool_]:
    """bool (rows, columns): which of the values hold a key that is seen by any of their rows."""
    rows, columns = one.values.shape
    if one.slope is None:
        return np.ones((rows, columns), bool)
    queries, keys = one.shape
    last = np.arange(1, rows + 1) * queries // rows  # the row of the map just past this one
    first = np.arange(columns) * keys // columns
    found = np.asarray(first[None, :] < last[:, None] * one.slope)
    if one.near is not None:
        sink, recent = one.near
        own = np.ceil((np.arange(rows) * queries // rows + 1) * one.slope)  # keys of the first row
        stop = np.arange(1, columns + 1) * keys // columns
        found &= (first < sink)[None, :] | (stop[None, :] > own[:, None] - recent)
    return found


def fitted(values: NDArray[Any], height: int, width: int, signed: bool) -> Floats:
    """Values at a new size: pooled by the largest magnitude, or repeated, never averaged."""
    if not signed:
        return _along(_along(values, height, 0, np.maximum), width, 1, np.maximum)
    high = _along(_along(values, height, 0, np.maximum), width, 1, np.maximum)
    low = _along(_along(values, height, 0, np.minimum), width, 1, np.minimum)
    return larger(high, low)


def _along(values: NDArray[Any], size: int, axis: int, pool: np.ufunc) -> Floats:
    have = values.shape[axis]
    starts = np.arange(size) * have // size
    if size >= have:
        return values.take(starts, axis=axis)
    return np.asarray(pool.reduceat(values, starts, axis=axis), np.float32)


def painted(
    one: Thumb, height: int, width: int, palette: str, dark: bool = False, most: float | None = None
) -> Pixels:
    """uint8 (height, width, 4), BGRA: one thumbnail; what is not seen stays clear.

    most: the weight in full colour, None for its own largest.
    """
    table = palettes.colours(palettes.matching_palette(palette, one.signed), dark)
    most = largest(one) if most is None else most
    values = _band(one.values, width) if one.kind == "places" else one.values
    values = fitted(values, height, width, one.signed)
    out = coloured(values / (most or 1.0), one.signed, table)
    if one.kind == "map":
        # The mask is pooled as the values are: else zeros show along its edge.
        out[fitted(seen(one).astype(np.float32), height, width, False) == 0] = 0
    return out


def _band(values: Floats, width: int) -> Floats:
    """Windows side by side with a row per place; each place's mean share where that is too fine."""
    if width >= 2 * len(values):
        return values.T
    return values.mean(axis=0, keepdims=True, dtype=np.float32)


def coloured(shares: Floats, signed: bool, table: Pixels) -> Pixels:
    """uint8 (..., 4), BGRA: shares of the largest weight, in -1..1, through the colour table."""
    bent = np.sign(shares) * np.minimum(np.abs(shares), 1.0) ** EXPONENT
    index = np.rint((bent + 1) * 127.5 if signed else np.maximum(bent, 0) * 255).astype(np.intp)
    out = np.empty((*shares.shape, 4), np.uint8)
    out[..., :3] = table[index][..., ::-1]
    out[..., 3] = 255
    return out


def paint_all(
    thumbs: Mapping[HeadId, Thumb],
    sizes: Mapping[HeadId, tuple[int, int]],
    palette: str,
    *,
    dark: bool = False,
    shared: bool = False,
) -> dict[HeadId, Pixels]:
    """All thumbnails at these sizes (width, height, in device pixels).

    shared: one maximum for all maps.
    """
    drawn = {head: thumbs[head] for head in sizes if head in thumbs and thumbs[head].kind != "only"}
    most = {head: largest(one) for head, one in drawn.items()}
    if shared:
        maps = [head for head, one in drawn.items() if one.kind == "map"]
        most |= dict.fromkeys(maps, max((most[head] for head in maps), default=0.0))
    return {
        head: painted(one, *sizes[head][::-1], palette, dark, most[head])
        for head, one in drawn.items()
    }
