"""What an attention map is: factors or weights, read by tiles at any zoom. numpy only."""

from hgviz.maps.dense import DenseMap
from hgviz.maps.difference import Difference
from hgviz.maps.lazy import LazyMap, signed_head
from hgviz.maps.mixed import Mixed
from hgviz.maps.pooling import pool
from hgviz.maps.projected import Axis, Projected
from hgviz.maps.rule import Diagonals, Factors, Grouped, Quadratic, Relative, Rule
from hgviz.maps.statistic import ROUNDED, measured, settled
from hgviz.maps.summary import Summary, thumb_zoom
from hgviz.maps.tiles import TILE, Tiled

__all__ = [
    "ROUNDED", "TILE", "Axis", "DenseMap", "Diagonals", "Difference", "Factors", "Grouped",
    "LazyMap", "Mixed", "Projected", "Quadratic", "Relative", "Rule", "Summary", "Tiled",
    "measured", "pool", "settled", "signed_head", "thumb_zoom",
]  # fmt: skip
