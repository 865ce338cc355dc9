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
from hgviz.maps import LazyMap, thumb_zoom
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
    only (one key per window, its weight always 1). streaming_window: how many first and latest keys
    a head that streams sees, None for all.
    """

    values: Floats
    shape: tuple[int, int]
    slope: float | None
    signed: bool
    focus: float
    kind: str = "map"
    streaming_window: StreamingWindow = None


def thumb(capture: Capture, attention: Map, layer: Layer, head: int) -> Thumb:
    """The small picture of one head."""
    _, queries, keys = attention.shape
    signed = grid.is_signed(attention, head)
    if layer.window is not None:
        if layer.role == "up" and not signed:
            only = np.ones((1, 1), np.float32)
            return Thumb(only, (queries, keys), None, False, 1.0, "only")
        values = grid.Band(attention, layer.window, layer.role == "down").read(head)
        focus = float(np.abs(values).max(axis=1).mean()) if values.size else 0.0
        return Thumb(values, (queries, keys), None, signed, focus, "places")
    summary = attention.summary(head)  # type: ignore[attr-defined]
    focus = float(np.abs(summary.rowmax).mean()) if summary.rowmax.size else 0.0
    step = 1 << thumb_zoom(queries, keys)
    covered = (summary.thumb.shape[0] * step, summary.thumb.shape[1] * step)
    window = None
    if isinstance(attention, LazyMap):
        window = attention.factors.rule.of(attention.place(head)).streaming_window
    own = slope(capture, layer)
    return Thumb(summary.thumb, covered, own, signed, focus, streaming_window=window)


def slope(capture: Capture, layer: Layer) -> float | None:
    """How many more keys each further query sees; None without a causal mask."""
    if not layer.causal:
        return None
    mine = capture.spec.levels[layer.level].stride
    theirs = capture.spec.levels[layer.key_level].stride
    if mine and theirs:
        return mine / theirs
    return len(capture.spans[layer.key_level]) / max(1, len(capture.spans[layer.level]))


def largest(image: Thumb) -> float:
    """What is drawn as full colour: the 99.5 % quantile of what is seen, early rows left out."""
    if image.kind != "map" or not image.values.size:
        return float(np.abs(image.values).max(initial=0.0))
    is_seen = visible_cells(image)
    if image.slope is not None:
        is_seen[: len(is_seen) // EARLY] = False
    values = np.abs(image.values[is_seen])
    return float(np.quantile(values, QUANTILE)) if values.size else 0.0


def visible_cells(image: Thumb) -> NDArray[np.bool_]:
    """bool (rows, columns): which of the values hold a key that is seen by any of their rows."""
    rows, columns = image.values.shape
    if image.slope is None:
        return np.ones((rows, columns), bool)
    queries, keys = image.shape
    last = np.arange(1, rows + 1) * queries // rows  # the row of the map just past this one
    first = np.arange(columns) * keys // columns
    is_seen = np.asarray(first[None, :] < last[:, None] * image.slope)
    if image.streaming_window is not None:
        sink, recent = image.streaming_window
        # keys that the first of its rows sees
        own = np.ceil((np.arange(rows) * queries // rows + 1) * image.slope)
        stop = np.arange(1, columns + 1) * keys // columns
        is_seen &= (first < sink)[None, :] | (stop[None, :] > own[:, None] - recent)
    return is_seen


def fitted(values: NDArray[Any], height: int, width: int, signed: bool) -> Floats:
    """Values at a new size: pooled by the largest magnitude, or repeated, never averaged."""
    if not signed:
        return _pool_axis(_pool_axis(values, height, 0, np.maximum), width, 1, np.maximum)
    high = _pool_axis(_pool_axis(values, height, 0, np.maximum), width, 1, np.maximum)
    low = _pool_axis(_pool_axis(values, height, 0, np.minimum), width, 1, np.minimum)
    return larger(high, low)


def _pool_axis(values: NDArray[Any], size: int, axis: int, pool: np.ufunc) -> Floats:
    have = values.shape[axis]
    starts = np.arange(size) * have // size
    if size >= have:
        return values.take(starts, axis=axis)
    return np.asarray(pool.reduceat(values, starts, axis=axis), np.float32)


def painted(
    image: Thumb, height: int, width: int, palette: str, dark: bool = False, most: float = 0.0
) -> Pixels:
    """uint8 (height, width, 4), BGRA: one thumbnail; what is not seen stays clear.

    most: the weight in full colour, 0 for its own largest.
    """
    table = palettes.colours(palettes.matching_palette(palette, image.signed), dark)
    values = image.values
    if image.kind == "places":  # a row for each, or where that is too fine its mean share
        is_fine = width < 2 * len(values)
        values = values.mean(axis=0, keepdims=True, dtype=np.float32) if is_fine else values.T
    values = fitted(values, height, width, image.signed)
    out = coloured(values / (most or largest(image) or 1.0), image.signed, table)
    if image.kind == "map":
        # The mask is pooled as the values are: else zeros show along its edge.
        out[fitted(visible_cells(image).astype(np.float32), height, width, False) == 0] = 0
    return out


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
    most = {head: largest(image) for head, image in drawn.items()}
    if shared:
        maps = [head for head, image in drawn.items() if image.kind == "map"]
        most |= dict.fromkeys(maps, max((most[head] for head in maps), default=0.0))
    return {
        head: painted(image, *sizes[head][::-1], palette, dark, most[head])
        for head, image in drawn.items()
    }
