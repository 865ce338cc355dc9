"""What draws every kind of figure, and what a report shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hgviz.figures.content.charts import Row
from hgviz.figures.content.document import Picture
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
from hgviz.figures.words import charted, measured, tables, telling


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a kind is drawn: compose places spec and content on a page, and closes it.

    words: what it shows, in sentences that are true of its numbers, for those who cannot see it;
    rows: these numbers, the names of their columns first; a chart has its own. reach: how far those
    numbers go that can share a range with other figures on a sheet.
    """

    compose: Callable[[Page, Spec, Any], None]
    words: Callable[[Spec, Any], str]
    rows: Callable[[Spec, Any], Iterable[Row]] = tables.charted
    reach: Callable[[Spec, Any], ranges.Reach] = ranges.nothing


DRAWINGS: dict[str, Drawing] = {
    "map": Drawing(matrix.compose, telling.of_map, tables.of_map, ranges.of_map),
    "image": Drawing(image.compose, telling.of_image, tables.of_image, ranges.of_image),
    "links": Drawing(links.compose, telling.of_links, tables.of_links),
    "wall": Drawing(wall.compose, telling.of_wall, tables.of_wall, ranges.of_wall),
    "levels": Drawing(levels.compose, telling.of_levels, tables.of_levels, ranges.of_levels),
    "rollout": Drawing(rollout.compose, telling.of_rollout, tables.of_rollout, ranges.of_rollout),
    "compare": Drawing(three.compose, charted.of_three, tables.of_three, ranges.of_three),
    # of `hgviz attribute`, not of a capture
    "attribution": Drawing(attribution.compose, measured.of_answer),
    # of `hgviz reach`
    "reach": Drawing(reach.compose, charted.of_reaches),
    # of `hgviz redundancy`
    "redundancy": Drawing(redundancy.compose, charted.of_repeats),
    "neurons": Drawing(neurons.compose, measured.of_neurons),
    "profile": Drawing(profile.compose, measured.of_profile, reach=ranges.of_profile),
    "activation": Drawing(plots.compose, charted.of_plots, reach=ranges.of_plots),
    "curve": Drawing(curve.compose, charted.of_curves, reach=ranges.of_curves),
    "scores": Drawing(scores.compose, charted.of_scores, reach=ranges.of_scores),
    "seeds": Drawing(seeds.compose, charted.of_seeds),
    "budgets": Drawing(plots.compose, charted.of_plots, reach=ranges.of_plots),
    # of reports alone
    "grids": Drawing(grids.compose, charted.of_grids),
    "plots": Drawing(plots.compose, charted.of_plots),
    "strips": Drawing(strips.compose, charted.of_strips),
    "three": Drawing(three.compose, charted.of_three, tables.of_three),
}


def composed(picture: Picture, width: float, page: Page | None = None) -> Page:
    """The page of a picture, so wide; call it within style.dressed()."""
    page = page or Page(width)
    DRAWINGS[picture.kind].compose(page, Spec(picture.kind), picture.chart)
    return page
