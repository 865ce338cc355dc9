"""All levels composed: the map of all maps, the flow of one answer, what takes the long way."""

import hgviz.gui.views  # noqa: F401  whichever is imported first, the table of looks comes before
