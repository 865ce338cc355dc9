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
    ranges,
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

    rows: its numbers, the names of their columns first; a chart has its own. reach: how far those
    numbers go that can share a range with other figures on a sheet.
    """

    compose: Callable[[Page, Spec, Any], None]
    rows: Callable[[Spec, Any], Iterable[Row]] = tables.charted
    reach: Callable[[Spec, Any], ranges.Reach] = ranges.nothing


DRAWINGS: dict[str, Drawing] = {
    "map": Drawing(matrix.compose, tables.of_map, ranges.of_map),
    "image": Drawing(image.compose, tables.of_image, ranges.of_image),
    "links": Drawing(links.compose, tables.of_links),
    "wall": Drawing(wall.compose, tables.of_wall, ranges.of_wall),
    "levels": Drawing(levels.compose, tables.of_levels, ranges.of_levels),
    "rollout": Drawing(rollout.compose, tables.of_rollout, ranges.of_rollout),
    "compare": Drawing(three.compose, tables.of_three, ranges.of_three),
    # of `hgviz attribute`, not of a capture
    "attribution": Drawing(attribution.compose),
    # of `hgviz reach`
    "reach": Drawing(reach.compose),
    # of `hgviz redundancy`
    "redundancy": Drawing(redundancy.compose),
    "neurons": Drawing(neurons.compose),
    "profile": Drawing(profile.compose, reach=ranges.of_profile),
    "activation": Drawing(plots.compose, reach=ranges.of_plots),
    "curve": Drawing(curve.compose, reach=ranges.of_curves),
    "scores": Drawing(scores.compose, reach=ranges.of_scores),
    "seeds": Drawing(seeds.compose),
    "budgets": Drawing(plots.compose, reach=ranges.of_plots),
    # of reports alone
    "grids": Drawing(grids.compose),
    "plots": Drawing(plots.compose),
    "strips": Drawing(strips.compose),
    "three": Drawing(three.compose, tables.of_three),
}
