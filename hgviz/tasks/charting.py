"""Figures of a pair of heads, and of the activations of captures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, HeadId, HgvizError, Integers, Selection
from hgviz.errors import require

if TYPE_CHECKING:
    from hgviz.analysis.alignment import GridAxis, SharedGrid
    from hgviz.figures.charts import Plots
    from hgviz.figures.heatmap import Edge, Three
    from hgviz.figures.page import Many

Cells = NDArray[np.bool_]

STEP = 1e-5  # of the central difference
REACH, STEPS = 4.0, 321  # of scores whose activation is drawn
MOST = 620  # cells across that a figure shows
MASKED = 1 << 22  # cells of which is told one by one whether they exist


def activation_chart(names: Sequence[str]) -> Plots:
    """The shapes of some activations and their derivatives, side by side."""
    from hgviz.activations import ACTIVATIONS
    from hgviz.figures.charts import Line, Plot, Plots

    kinds = list(dict.fromkeys(names))
    if not kinds:
        raise HgvizError("there is no head: so there is no activation to draw")
    x = np.linspace(-REACH, REACH, STEPS)
    lines = tuple(Line(ACTIVATIONS[name].label, x, weight_of_score(name, x)) for name in kinds)
    slopes = tuple(Line(ACTIVATIONS[name].label, x, slope_of_score(name, x)) for name in kinds)
    notes = []
    for statistic, beside in (("lse", 0), ("sum", 1)):
        shared = [row.label for row in map(ACTIVATIONS.__getitem__, kinds)
                  if row.statistic == statistic]  # fmt: skip
        if shared:
            notes.append(f"{', '.join(shared)}: of a row of two keys, the other of score {beside}.")
    if "ymish" in kinds:
        notes.append("ymish is applied to rows of length 1, so its scores lie between −1 and 1.")
    return Plots(
        (
            Plot("Weight", "Score", "Weight", lines),
            Plot("Derivative", "Score", "d weight / d score", slopes, most=1.0),
        ),
        title="What scores become",
        notes=tuple(notes),
        about={"activations": ", ".join(kinds)},
    )


def weight_of_score(name: str, scores: Many) -> Many:
    """The weight (n,) that a key of such a score gets. Where rows share their weight out, beside
    one other key of score 0, for kernels over their sum of 1: the logistic function for softmax."""
    from hgviz.activations import ACTIVATIONS

    row = ACTIVATIONS[name]
    scores = np.asarray(scores, float)
    if row.statistic == "lse":
        scores, terms = row.split(scores, np)
        stat = np.logaddexp(terms, row.split(np.zeros(1), np)[1])
        stat = stat if row.sink is None else np.logaddexp(stat, row.sink)
    elif row.statistic == "sum":
        if row.features is not None:
            scores = np.maximum(scores, 0.0)  # their products are never below 0
        stat = scores**row.power + 1.0
    else:
        stat = None
    found: Many = np.asarray(row.apply(scores, stat, np), float)
    return found


def slope_of_score(name: str, scores: Many) -> Many:
    """Its derivative (n,), by central differences."""
    scores = np.asarray(scores, float)
    rise = weight_of_score(name, scores + STEP) - weight_of_score(name, scores - STEP)
    found: Many = rise / (2 * STEP)
    return found


def activations_of(capture: Capture) -> tuple[str, ...]:
    """Those of a capture's heads, in order."""
    return tuple(dict.fromkeys(name for one in capture.spec.layers for name in one.activations))


# --- one text -------------------------------------------------------------------------------------


def pair_chart(
    a: Capture, b: Capture, selection: Selection, names: tuple[str, str] = ("", "")
) -> Three:
    """A head of A, that of B beside it, and A - B, on the grid where both meet.

    selection.beside: the head of B, where it is another one. Errors: HgvizError where a capture
    lacks the head, or both share nothing.
    """
    from hgviz.analysis.alignment import Alignment, SharedGrid, counterpart
    from hgviz.figures.cells import is_signed, map_of
    from hgviz.figures.heatmap import Three
    from hgviz.maps import Difference, Projected

    head = selection.head_id
    one = map_of(a, head)
    other = counterpart(a, b, head, selection.beside)
    if other is None:
        raise HgvizError(
            f"B has no head beside {head} of A: its layers and heads are others", "Choose another"
        )
    two = map_of(b, other)
    grid = SharedGrid.of(Alignment(a, b), head, other)
    require(all(grid.shape), "these two share no token", "Capture the same text with both")
    rows, columns = grid.rows, grid.columns
    laid = [one, two]
    if not grid.is_identity:
        laid = [Projected(one, rows.a, columns.a), Projected(two, rows.b, columns.b)]
    zoom = max(0, int(np.ceil(np.log2(max(grid.shape) / MOST))))
    apart = Difference(laid[0], laid[1], {head.head: other.head}, off=grid.heads_off)
    maps = (
        laid[0].read(head.head, zoom=zoom),
        laid[1].read(other.head, zoom=zoom),
        apart.read(head.head, zoom=zoom),
    )
    seen = [_seen(grid, side, zoom) for side in (0, 1)]
    both = seen[0] & seen[1] if grid.is_identity else _pooled(
        np.outer(rows.in_both, columns.in_both), zoom) & (seen[0] | seen[1])  # fmt: skip
    said = [given or side.spec.name for given, side in zip(names, (a, b), strict=True)]
    signed = is_signed(a, head) or is_signed(b, other)
    title = f"Head {head}" if head == other else f"Head {head} of A, {other} of B"
    notes: tuple[str, ...] = () if grid.is_identity else ("Hatched: what only one of the two has.",)
    notes += tuple(
        f"Head {number} is off in {side}: it counts as 0 in A - B."
        for side, number, off in zip("AB", (head, other), grid.heads_off, strict=True) if off
    )  # fmt: skip
    return Three(
        maps, (seen[0], seen[1], both), grid.shape, zoom, signed,
        _labels(a.query_prompt(head.layer), rows), _labels(a.key_prompt(head.layer), columns),
        (said[0], said[1]), title=title, notes=notes, about=_about(a, b, head, other),
    )  # fmt: skip


def _labels(prompt: object, edge: GridAxis) -> Edge:
    from hgviz.figures.heatmap import Edge

    spans: Integers = np.where(edge.a.there[:, None], edge.spans[0], -1)
    return Edge(prompt, spans)  # type: ignore[arg-type]


def _seen(
    grid: SharedGrid, side: int, zoom: int
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Where one side has anything, in cells of 2^zoom."""
    from hgviz.figures.cells import seen_cells
    from hgviz.maps import DenseMap, Projected

    capture, head = (grid.a, grid.head_a) if side == 0 else (grid.b, grid.head_b)
    if grid.is_identity:
        return seen_cells(capture, head.layer, zoom)
    rows, columns = ((edge.a, edge.b)[side] for edge in (grid.rows, grid.columns))
    there = np.outer(rows.there, columns.there)
    if there.size <= MASKED:
        own = seen_cells(capture, head.layer).astype(np.float32)[None]
        there &= Projected(DenseMap(own, (0,), False), rows, columns).read(0) > 0
    return _pooled(there, zoom)


def _pooled(cells: Cells, zoom: int) -> Cells:
    for axis in (0, 1):
        starts = np.arange(0, cells.shape[axis], 1 << zoom)
        cells = np.logical_or.reduceat(cells, starts, axis=axis)
    return cells


def _about(a: Capture, b: Capture, head: HeadId, other: HeadId) -> dict[str, str]:
    return {
        "model": f"{a.spec.name}, {b.spec.name}",
        "checkpoint": f"{a.spec.digest}, {b.spec.digest}",
        "heads": f"{head}, {other}",
        "text": f"{a.main.digest}, {b.main.digest}",
    }


__all__ = ["activation_chart", "activations_of", "pair_chart"]
