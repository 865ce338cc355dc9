"""Which heads can weigh negatively: in a mixed layer some can and others cannot."""

from __future__ import annotations

from hgviz.core import Capture, HeadId, Map
from hgviz.gui.views.band import Band
from hgviz.maps import signed_head


def signed(capture: Capture, head: HeadId) -> bool:
    """Whether weights of a captured head can be negative."""
    found = capture.maps[head.layer]
    return found is not None and of(found, head.head)


def of(found: Map, head: int) -> bool:
    """The same for a head of a map, by its own activation where the map knows it."""
    return signed_head(found.whole if isinstance(found, Band) else found, head)
