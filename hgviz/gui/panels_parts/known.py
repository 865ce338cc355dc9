"""The docks at the right. A new one is one more name in PANELS, in the order they stand in."""

from __future__ import annotations

from hgviz.gui.panels import LooksPanel
from hgviz.gui.panels_parts.display import DisplayPanel
from hgviz.gui.panels_parts.heads import HeadPanel
from hgviz.gui.panels_parts.texts import TextsPanel
from hgviz.gui.panels_parts.worth import WorthPanel

PANELS = (TextsPanel, HeadPanel, LooksPanel, WorthPanel, DisplayPanel)
