"""Figures for papers. This package loads without matplotlib; output draws and writes.

spec has the kinds and their options, heatmap, levels, links, charts and attribution what
draws them; page, labels and cells are what these stand on.
"""

from hgviz.figures.spec import (
    ANSWERS,
    FIGURES,
    FORMATS,
    WIDTHS,
    CaptureFacts,
    Panel,
    Spec,
    format_of,
    kind_of,
    points,
)

__all__ = [
    "ANSWERS", "FIGURES", "FORMATS", "WIDTHS", "CaptureFacts", "Panel", "Spec", "format_of",
    "kind_of", "points",
]  # fmt: skip
