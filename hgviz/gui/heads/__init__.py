"""All heads at once: a scatter of two metrics, a table of all, and where each does its thing."""

# the table of views names the look of this package: whoever comes in here first goes through it
import hgviz.gui.views  # noqa: F401
