"""The docks at the right. A new one is one more name in PANELS, in the order they stand in."""

from hgviz.gui.panels.display import DisplayPanel
from hgviz.gui.panels.heads import HeadPanel
from hgviz.gui.panels.looks import LooksPanel
from hgviz.gui.panels.texts import TextsPanel
from hgviz.gui.panels.worth import WorthPanel

PANELS = (TextsPanel, HeadPanel, LooksPanel, WorthPanel, DisplayPanel)
