"""The look Attribution: where an answer comes from, beside what a head looks at."""

import hgviz.gui.views  # noqa: F401  whichever is imported first, the table of looks comes before
