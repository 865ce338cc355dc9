"""The key of a chart: what its lines, marks and bands are, in words below it."""

from __future__ import annotations

from hgviz.figures.paper import style
from hgviz.figures.paper.axes import Look
from hgviz.figures.paper.labels import wrapped
from hgviz.figures.paper.page import Page
from hgviz.palettes import LIGHT_PAGE

SWATCH, MARKED = 20.0, 12.0  # the room of a sample that is a line, and of one that is a mark
LEADING, BETWEEN, RIGHT = 10.0, 12.0, 2.0
MIDDLE = 2.4  # of a line of words, above its baseline
MARK, LINE = 3.0, 1.1


class Key:
    """Entries beside each other from left on, on as many lines as they take, the first at base.

    base: the baseline of the last line so far.
    """

    def __init__(self, page: Page, left: float, base: float) -> None:
        self.base = base
        self._page, self._left, self._at = page, left, left

    def entry(
        self, words: str, swatch: float = SWATCH, colour: str = LIGHT_PAGE.text
    ) -> tuple[float, float]:
        """Write one; gives where its sample begins, and the middle of its line."""
        room = self._page.width - RIGHT - self._left - swatch
        lines = wrapped(words, room, style.SMALL)
        need = swatch + max(style.extent(line, style.SMALL) for line in lines)
        if self._at > self._left and self._at + need > self._page.width - RIGHT:
            self._at, self.base = self._left, self.base + LEADING
        start, middle = self._at, self.base - MIDDLE
        for number, line in enumerate(lines):
            self.base += LEADING if number else 0.0
            self._page.text(start + swatch, self.base, line, size=style.SMALL, colour=colour)
        self._at += need + BETWEEN if len(lines) == 1 else self._page.width
        return start, middle

    def line(self, words: str, how: Look, width: float = LINE) -> None:
        """What a line with markers is."""
        x, y = self.entry(words)
        self._page.stroke([(x, y), (x + SWATCH - 4, y)], how.colour, width, how.dash)
        self._page.marks([(x + SWATCH / 2 - 2, y)], how.marker, how.colour, MARK)

    def mark(self, words: str, how: Look, size: float) -> None:
        """What a marker is."""
        x, y = self.entry(words, MARKED)
        self._page.marks([(x + 4, y)], how.marker, how.colour, size)
