"""The pictures of the window. A new one is one more name in VIEWS, in LOOKS a tab of its own."""

from hgviz.gui.across.view import AcrossView
from hgviz.gui.attribution.view import AttributionView
from hgviz.gui.heads.view import HeadsView
from hgviz.gui.links.view import LinksView
from hgviz.gui.neurons.view import NeuronView
from hgviz.gui.views.follow import FollowView
from hgviz.gui.views.hourglass import HourglassView
from hgviz.gui.views.map import MapView
from hgviz.gui.views.text import TextStrip

# the ways to look at what is selected, in the middle of the Inspect page
LOOKS = (MapView, LinksView, NeuronView, AttributionView, AcrossView, HeadsView)

VIEWS = (HourglassView, *LOOKS, TextStrip, FollowView)

__all__ = ["LOOKS", "VIEWS", "FollowView", "HourglassView", "MapView", "TextStrip"]
