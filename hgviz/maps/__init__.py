"""What an attention map is: factors or weights, read by tiles at any zoom. numpy only."""

from hgviz.maps.lazy import ROUNDED, LazyMap, measured, settled, signed_head
from hgviz.maps.overview import Summary, pool, thumb_zoom
from hgviz.maps.rule import Diagonals, Factors, Grouped, Quadratic, Relative, Rule
from hgviz.maps.stored import Axis, DenseMap, Difference, Mixed, Projected
from hgviz.maps.tiles import TILE, Tiled

__all__ = [
    "ROUNDED", "TILE", "Axis", "DenseMap", "Diagonals", "Difference", "Factors", "Grouped",
    "LazyMap", "Mixed", "Projected", "Quadratic", "Relative", "Rule", "Summary", "Tiled",
    "measured", "pool", "settled", "signed_head", "thumb_zoom",
]  # fmt: skip
