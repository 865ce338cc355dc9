"""A figure as a screen shows it before it is written: the same page, at the screen's dots."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from math import sqrt

from hgviz.figures import composed
from hgviz.figures.content import Panel
from hgviz.figures.paper import style
from hgviz.figures.spec import POINTS

MOST = 24e6  # pixels of a picture on a screen: a larger one has fewer dots


@dataclass(frozen=True, slots=True)
class Preview:
    """A page as a picture. png: at so many dots per inch; width and height: of the page, in points;
    smallest: its smallest text in points, None where it has none; notes: what its file says of how
    it was drawn.
    """

    png: bytes
    dots: float
    width: float
    height: float
    smallest: float | None
    notes: tuple[str, ...]


def preview(panel: Panel, dots: float) -> Preview:
    """The picture of a figure at so many dots per inch, as composed has it. Raises HgvizError."""
    with style.dressed():
        page = composed(panel.spec, panel.content)
        pixels = page.width * page.height * (dots / POINTS) ** 2
        dots /= sqrt(max(1.0, pixels / MOST))
        buffer = BytesIO()
        page.figure.savefig(
            buffer, format="png", dpi=dots, bbox_inches=None, pil_kwargs={"compress_level": 1}
        )
    return Preview(
        buffer.getvalue(), dots, page.width, page.height, page.smallest, tuple(page.notes)
    )


__all__ = ["Preview", "preview"]
