"""What draws every kind of figure, and what a report shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hgviz.figures import tables
from hgviz.figures.content.charts import Row
from hgviz.figures.kinds import (
    attribution,
    curve,
    grids,
    image,
    levels,
    links,
    matrix,
    neurons,
    plots,
    profile,
    reach,
    redundancy,
    rollout,
    scores,
    seeds,
    strips,
    three,
    wall,
)
from hgviz.figures.paper.page import Page
from hgviz.figures.spec import Spec


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a kind is drawn: compose places spec and content on a page, and closes it.

    rows: its numbers, the names of their columns first; a chart has its own.
    """

    compose: Callable[[Page, Spec, Any], None]
    rows: Callable[[Spec, Any], Iterable[Row]] = tables.charted


DRAWINGS: dict[str, Drawing] = {
    "map": Drawing(matrix.compose, tables.of_map),
    "image": Drawing(image.compose, tables.of_image),
    "links": Drawing(links.compose, tables.of_links),
    "wall": Drawing(wall.compose, tables.of_wall),
    "levels": Drawing(levels.compose, tables.of_levels),
    "rollout": Drawing(rollout.compose, tables.of_rollout),
    "compare": Drawing(three.compose, tables.of_three),
    # of `hgviz attribute`, not of a capture
    "attribution": Drawing(attribution.compose),
    # of `hgviz reach`
    "reach": Drawing(reach.compose),
    # of `hgviz redundancy`
    "redundancy": Drawing(redundancy.compose),
    "neurons": Drawing(neurons.compose),
    "profile": Drawing(profile.compose),
    "activation": Drawing(plots.compose),
    "curve": Drawing(curve.compose),
    "scores": Drawing(scores.compose),
    "seeds": Drawing(seeds.compose),
    "budgets": Drawing(plots.compose),
    # of reports alone
    "grids": Drawing(grids.compose),
    "plots": Drawing(plots.compose),
    "strips": Drawing(strips.compose),
    "three": Drawing(three.compose, tables.of_three),
}
