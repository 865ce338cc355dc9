"""The look Links: what tokens are linked with by the strongest weights of some heads."""

import hgviz.gui.views  # noqa: F401  its table of looks names this one: it comes first
