"""The colours of links: two hues by sign where there is one strand, else one for each head."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QColor

from hgviz import palettes
from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.maps.links import Links

RED, BLUE = 215, 40  # of the 256 colours of signed weights


@dataclass(frozen=True, slots=True)
class Strands:
    """One strand of every query: its name, and its colours above and below zero."""

    name: str
    above: QColor
    below: QColor
    off: bool = False


def strands_of(links: Links, off: frozenset[object]) -> list[Strands]:
    """How each strand is named and coloured; off: heads that are switched off."""
    dark = theme.current().dark
    hues = palettes.CATEGORICAL_DARK if dark else palettes.CATEGORICAL
    if links.single:
        alone = len(links.heads) == 1
        name = str(links.heads[0]) if alone else tr(links.fuse)
        table = palettes.colours("blue-red", dark)
        plain = QColor(hues[0])
        above = QColor(*table[RED].tolist()) if links.signed else plain
        below = QColor(*table[BLUE].tolist()) if links.signed else plain
        return [Strands(name, above, below, alone and links.heads[0] in off)]
    found = []
    for at, head in enumerate(links.heads):
        hue = QColor(hues[at % len(hues)])
        found.append(Strands(str(head), hue, hue, head in off))
    return found
