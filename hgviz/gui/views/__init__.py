"""The pictures of the window. A new view is one more name in VIEWS."""

from hgviz.gui.views.follow import FollowView
from hgviz.gui.views.hourglass import HourglassView
from hgviz.gui.views.map import MapView
from hgviz.gui.views.text import TextStrip

VIEWS = (HourglassView, MapView, TextStrip, FollowView)

__all__ = ["VIEWS", "FollowView", "HourglassView", "MapView", "TextStrip"]
