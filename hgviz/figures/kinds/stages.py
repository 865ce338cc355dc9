"""The stages of a model as one token passes through them, and where each lies on a page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, Floats, HeadId, HgvizError, Integers, Layer, Prompt
from hgviz.figures.content import Facts
from hgviz.figures.content.unseen import seen_cells
from hgviz.figures.paper import labels, style
from hgviz.figures.paper.frame import map_of
from hgviz.figures.spec import Spec

SHRINK, NARROWEST = 0.88, 0.72  # of a strip from one level to the next, and of the innermost
STRIP, BETWEEN = 12.0, 36.0
MOST = 12  # layers of a model without levels
LARGEST, LEGIBLE = 8.0, 5.0  # sizes of the text in the strips


@dataclass(frozen=True, slots=True)
class Stage:
    """What one strip shows: weights (keys,) of a row, the tokens of each key, and whose they are.

    column is the query's own place among the keys, None where these are another text.
    """

    level: int
    head: HeadId
    prompt: Prompt
    weights: Floats
    seen: NDArray[np.bool_]
    spans: Integers
    column: int | None


@dataclass(frozen=True, slots=True)
class Strip:
    """Where a stage lies: edges (tokens + 1,) along x, its top, its size of text (0: none)."""

    stage: Stage
    edges: NDArray[np.float64]
    y: float
    size: float

    @property
    def width(self) -> float:
        """Of the whole strip."""
        return float(self.edges[-1] - self.edges[0])

    def ends(self, position: int) -> tuple[float, float]:
        """Left and right of a position."""
        start, end = self.stage.spans[position]
        return float(self.edges[start]), float(self.edges[end])

    @property
    def chosen(self) -> tuple[float, float] | None:
        """Left and right of the selected cell, never so thin that it is lost; None for none."""
        if self.stage.column is None:
            return None
        left, right = self.ends(self.stage.column)
        spare = max(0.0, 1.6 - (right - left)) / 2
        return left - spare, right + spare


def is_hourglass(capture: Capture) -> bool:
    """Whether levels differ in resolution; else every layer is a stage by itself."""
    return len({level.stride for level in capture.spec.levels}) > 1


def stages_of(capture: Capture) -> list[list[int]]:
    """The self-attention layers of each stage, in order of computation.

    Without levels of several resolutions these are single layers, MOST of them spread over the
    model at most; where there are two texts, those of the decoder, cross-attention included.
    """
    if not is_hourglass(capture):
        return _single(capture)
    stages: list[list[int]] = []
    before: object = None
    for layer in capture.spec.layers:
        if layer.cuts:
            continue
        if layer.role == "self" and layer.heads:
            here = (layer.level, _sequence(capture, layer))
            if here != before:
                stages.append([])
            stages[-1].append(layer.index)
            before = here
        elif layer.role in ("down", "up") and before != (layer.level, _sequence(capture, layer)):
            before = None
    if not stages:
        raise HgvizError("this capture has no self-attention: every such head was removed")
    return stages


def _sequence(capture: Capture, layer: Layer) -> str:
    return capture.spec.levels[layer.level].sequence


def _single(capture: Capture) -> list[list[int]]:
    level = 1 if capture.spec.two_texts else 0
    found = [one.index for one in capture.spec.layers if one.level == level and one.heads]
    if not found:
        raise HgvizError("this capture has no heads to follow a token through: all were removed")
    chosen = np.linspace(0, len(found) - 1, min(len(found), MOST)).round().astype(int)
    return [[found[at]] for at in chosen]


def stage_of(spec: Spec, capture: Capture, facts: Facts, layers: list[int], query: int) -> Stage:
    """Where the position that speaks for a token looks, in one head of these layers."""
    head = _head_of(spec, capture, facts, layers)
    one = map_of(capture, head.layer, head.head)
    row = min(capture.row(head.layer, query), one.shape[1] - 1)
    spans = capture.key_spans(head.layer)
    seen = seen_cells(capture, head.layer, rows=(row, row + 1), head=head.head)[0]
    seen &= spans[:, 1] > 0
    layer, levels = capture.spec.layers[head.layer], capture.spec.levels
    same = levels[layer.level].sequence == levels[layer.key_level].sequence
    return Stage(
        level=layer.level,
        head=head,
        prompt=capture.key_prompt(head.layer),
        weights=one.read(head.head, rows=(row, row + 1))[0],
        seen=seen & (head not in capture.off),
        spans=spans,
        column=min(capture.column(head.layer, query), len(spans) - 1) if same else None,
    )


def _head_of(spec: Spec, capture: Capture, facts: Facts, layers: list[int]) -> HeadId:
    """The head chosen in a stage, else its clearest, else the first that is on."""
    for head in (spec.selection.head_id, *spec.heads):
        if head.layer in layers:
            return head
    heads = [HeadId(n, h) for n in layers for h in map_of(capture, n, _first(capture, n)).heads]
    on = [head for head in heads if head not in capture.off] or heads
    return max(on, key=lambda head: facts[head].score if head in facts else -np.inf)


def _first(capture: Capture, layer: int) -> int:
    return capture.spec.layers[layer].heads[0]


def factors_of(stages: list[Stage]) -> list[float]:
    """What part of the widest strip the strip of each stage is: the coarser, the narrower."""
    order = sorted({stage.level for stage in stages})
    shrink = max(SHRINK, NARROWEST ** (1 / max(len(order) - 1, 1)))
    return [shrink ** order.index(stage.level) for stage in stages]


def strips_of(stages: list[Stage], room: tuple[float, float]) -> list[Strip]:
    """Where every stage lies; text is printed where it is legible at every level."""
    middle, factors = sum(room) / 2, factors_of(stages)
    strips = []
    for number, (stage, factor) in enumerate(zip(stages, factors, strict=True)):
        widths, size = _natural(stage.prompt, room[1] - room[0], min(factors))
        outer = np.concatenate([[0.0], np.cumsum(widths)])
        edges = middle + (outer - outer[-1] / 2) * factor
        strips.append(Strip(stage, edges, number * (STRIP + BETWEEN), size * factor))
    return strips


def _natural(prompt: Prompt, room: float, smallest: float) -> tuple[NDArray[np.float64], float]:
    """Widths of the tokens that fill the room, and the size their text has there, 0 for none."""
    tokens = len(prompt)
    even = np.full(tokens, room / tokens)
    if tokens * 3 > room:
        return even, 0.0
    widths = np.empty(tokens)
    for mark in labels.singles(prompt, each_token(tokens)):
        wide = max(style.extent(mark.words, 10.0, fixed=True), 4.0) + 2.5
        widths[mark.start : mark.end] = wide / (mark.end - mark.start)
    size = min(LARGEST, 10.0 * room / widths.sum())
    if size * smallest < LEGIBLE:
        return even, 0.0
    return widths * min(room / widths.sum(), 3.0 * size / 10.0), size


def each_token(count: int) -> Integers:
    """The spans of tokens themselves."""
    at = np.arange(count)
    return np.stack([at, at + 1], axis=1)
