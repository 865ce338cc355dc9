"""What draws every kind of figure, and what a report shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hgviz.figures import heatmap, image, levels, links, tables, wall
from hgviz.figures.charts import Chart, Row
from hgviz.figures.paper.page import Page
from hgviz.figures.spec import Spec


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a kind is drawn: compose places spec and content on a page, and closes it.

    rows: its numbers, the names of their columns first; a chart has its own.
    """

    compose: Callable[[Page, Spec, Any], None]
    rows: Callable[[Spec, Any], Iterable[Row]] = tables.charted


def _draw_chart(page: Page, spec: Spec, chart: Chart) -> None:
    chart.draw(page, spec)


CHART = Drawing(_draw_chart)
DRAWINGS: dict[str, Drawing] = {
    "map": Drawing(heatmap.compose_map, tables.of_map),
    "image": Drawing(image.compose, tables.of_image),
    "links": Drawing(links.compose, tables.of_links),
    "wall": Drawing(wall.compose, tables.of_wall),
    "levels": Drawing(levels.compose, tables.of_levels),
    "rollout": Drawing(heatmap.compose_rollout, tables.of_rollout),
    "compare": Drawing(_draw_chart, tables.of_three),
    # of `hgviz attribute`, not of a capture
    "attribution": CHART,
    # of `hgviz reach`
    "reach": CHART,
    # of `hgviz redundancy`
    "redundancy": CHART,
    "neurons": CHART,
    "profile": CHART,
    "activation": CHART,
    "curve": CHART,
    "scores": CHART,
    "seeds": CHART,
    "budgets": CHART,
    # of reports alone
    "grids": CHART,
    "plots": CHART,
    "strips": CHART,
    "three": Drawing(_draw_chart, tables.of_three),
}
