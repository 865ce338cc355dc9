"""What an attention map is: factors or weights, read by tiles at any zoom. numpy only."""

from hgviz.maps.lazy import (
    ROUNDED,
    LazyMap,
    has_negative_weights,
    recompute_statistics,
    with_statistics,
)
from hgviz.maps.overview import Summary, pool, thumb_zoom
from hgviz.maps.rule import Diagonals, Factors, Grouped, Quadratic, Relative, Rule
from hgviz.maps.stored import Axis, DenseMap, Difference, Projected, SlotMap
from hgviz.maps.tiles import TILE, Tiled

__all__ = [
    "ROUNDED", "TILE", "Axis", "DenseMap", "Diagonals", "Difference", "Factors", "Grouped",
    "LazyMap", "SlotMap", "Projected", "Quadratic", "Relative", "Rule", "Summary", "Tiled",
    "with_statistics", "pool", "recompute_statistics", "has_negative_weights", "thumb_zoom",
]  # fmt: skip
