"""Which cells of a map exist: what comes later, lies outside a window or is padding is not seen.

Judged by the tokens that positions stand for, so that unequal segments are ordinary.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, HeadId, Integers, Map, Prompt
from hgviz.maps import LazyMap, Rule

NEVER = np.iinfo(np.int64).max


def seen_cells(
    capture: Capture,
    layer: int,
    zoom: int | tuple[int, int] = 0,
    rows: tuple[int, int] | None = None,
    head: int | None = None,
) -> NDArray[np.bool_]:
    """bool (rows, columns) in cells of 2^zoom, or of 2^a rows and 2^b columns: where any weight of
    a cell can be other than 0, of a head, or of any of the layer."""
    zooms = (zoom, zoom) if isinstance(zoom, int) else zoom
    one = capture.spec.layers[layer]
    queries, keys = capture.query_spans(layer), capture.key_spans(layer)
    start, end = rows or (0, len(queries))
    prompts = capture.query_prompt(layer), capture.key_prompt(layer)
    real = ~_padding(prompts[0], queries)
    last = np.maximum(queries[:, 1] - 1, -1)  # a null group looks at itself
    newest = np.where(real, last if one.causal else NEVER - 1, -2)[start:end]
    oldest = np.where(_padding(prompts[1], keys), NEVER, keys[:, 1] - 1 if one.causal else -1)
    newest = _pooled(np.maximum, newest, zooms[0])
    oldest = _pooled(np.minimum, np.maximum(oldest, -1), zooms[1])
    seen: NDArray[np.bool_] = oldest[None, :] <= newest[:, None]
    if one.window is not None:
        seen &= _same_window(seen.shape, one.window, one.role == "down", zooms, start)
    if head is not None and (rule := _streamed(capture.maps[layer], head)) is not None:
        seen &= _near(rule, seen.shape, len(keys), zooms, start)
    return seen


def reason(capture: Capture, heads: Iterable[HeadId]) -> str:
    """Why cells of these heads' maps are not seen, "" where all are."""
    heads = list(heads)
    few = any(_streamed(capture.maps[layer], head) is not None for layer, head in heads)
    later = outside = padding = False
    for layer in dict.fromkeys(layer for layer, _ in heads):
        one = capture.spec.layers[layer]
        outside |= one.window is not None
        query, key = capture.query_prompt(layer), capture.key_prompt(layer)
        later |= one.window is None and one.causal and len(key) > 1
        padding |= bool(_padding(query, capture.query_spans(layer)).any())
        padding |= bool(_padding(key, capture.key_spans(layer)).any())
    words = [
        *(["comes after the query"] if later else []),
        *(["outside the window"] if outside else []),
        *(["neither among the first keys nor the latest"] if few else []),
        *(["padding"] if padding else []),
    ]
    return f"not seen: {', or '.join(words)}" if words else ""


def _padding(prompt: Prompt, spans: Integers) -> NDArray[np.bool_]:
    """True for positions that stand for no token, after the first that does, or masked ones only.

    The zeros of the causal shift come before it and are looked at like any key.
    """
    real = spans[:, 1] > 0
    mask = prompt.attention_mask
    if mask is not None:
        before = np.concatenate([[0], np.cumsum(mask)])
        first, last = np.clip(spans.T, 0, len(mask))
        real &= before[last] > before[first]
    begun = np.maximum.accumulate(spans[:, 1] > 0) if len(spans) else real
    return begun & ~real


def _pooled(by: np.ufunc, values: Integers, zoom: int) -> Integers:
    pooled: Integers = by.reduceat(values, np.arange(0, len(values), 1 << zoom))
    return pooled


def _streamed(one: Map | None, head: int) -> Rule | None:
    """The rule of a head that streams, None for others."""
    if not isinstance(one, LazyMap):
        return None
    rule = one.factors.rule.of(one.place(head))
    return None if rule.streaming_window is None else rule


def _near(
    rule: Rule, shape: tuple[int, int], keys: int, zooms: tuple[int, int], start: int
) -> NDArray[np.bool_]:
    """Whether a cell meets the first keys, by its first column, or the latest ones of its
    first row, by its last column."""
    tall, side = (1 << zoom for zoom in zooms)
    row, column = start + np.arange(shape[0]) * tall, np.arange(shape[1]) * side
    before = None if rule.keep is None else np.append(0, np.cumsum(rule.keep))
    last = np.minimum(column + side, keys) - 1
    met: NDArray[np.bool_] = rule.in_streaming_window(
        row, column, before
    ) | rule.in_streaming_window(row, last, before)
    return met


def _same_window(
    shape: tuple[int, int], window: int, down: bool, zooms: tuple[int, int], start: int
) -> NDArray[np.bool_]:
    """Whether a cell meets the windows: row g with columns g w .. g w + w - 1."""
    tall, side = (1 << zoom for zoom in zooms)
    row = start + np.arange(shape[0]) * tall
    column = np.arange(shape[1]) * side
    if down:
        first, last = row * window, (row + tall) * window - 1
    else:
        first, last = row // window, (row + tall - 1) // window
    met: NDArray[np.bool_] = (column[None] <= last[:, None]) & (column + side > first[:, None])
    return met
