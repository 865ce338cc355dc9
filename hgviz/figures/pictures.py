"""The pages of charts, by the kinds that a report has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hgviz.figures import curve, grids, plots, scores, strips, three
from hgviz.figures.document import Picture
from hgviz.figures.page import Page
from hgviz.figures.spec import Spec

COMPOSE: dict[str, Callable[[Page, Spec, Any], None]] = {
    "curve": curve.compose,
    "grids": grids.compose,
    "plots": plots.compose,
    "scores": scores.compose,
    "strips": strips.compose,
    "three": three.compose,
}


def composed(picture: Picture, width: float, page: Page | None = None) -> Page:
    """The page of a picture, so wide; call it within style.dressed()."""
    page = page or Page(width)
    COMPOSE[picture.kind](page, Spec(picture.kind), picture.chart)
    return page
