"""The look Neurons: how one row of weights comes about, number by number."""

import hgviz.gui.views  # noqa: F401  whichever is imported first, the table of looks comes before
