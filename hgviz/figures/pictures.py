"""What draws every kind of figure, and what a report shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hgviz.figures import (
    curve,
    grids,
    levels,
    links,
    matrix,
    neurons,
    plots,
    profile,
    rollout,
    scores,
    strips,
    three,
    wall,
)
from hgviz.figures.document import Picture
from hgviz.figures.page import Page
from hgviz.figures.spec import Spec


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a kind is drawn: compose places spec and content on a page, and closes it."""

    compose: Callable[[Page, Spec, Any], None]


DRAWINGS: dict[str, Drawing] = {
    "map": Drawing(matrix.compose),
    "links": Drawing(links.compose),
    "wall": Drawing(wall.compose),
    "levels": Drawing(levels.compose),
    "rollout": Drawing(rollout.compose),
    "compare": Drawing(three.compose),
    "neurons": Drawing(neurons.compose),
    "profile": Drawing(profile.compose),
    "activation": Drawing(plots.compose),
    "curve": Drawing(curve.compose),
    "scores": Drawing(scores.compose),
    # of reports alone
    "grids": Drawing(grids.compose),
    "plots": Drawing(plots.compose),
    "strips": Drawing(strips.compose),
    "three": Drawing(three.compose),
}


def composed(picture: Picture, width: float, page: Page | None = None) -> Page:
    """The page of a picture, so wide; call it within style.dressed()."""
    page = page or Page(width)
    DRAWINGS[picture.kind].compose(page, Spec(picture.kind), picture.chart)
    return page
