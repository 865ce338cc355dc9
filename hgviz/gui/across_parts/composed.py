"""What the look Across levels shows, worked out step by step off the GUI thread."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hgviz.analysis.resolution import Composed
from hgviz.analysis.together import Composer, Together
from hgviz.core import Capture, HeadId, Step, Task, finish
from hgviz.gui.language import tr
from hgviz.gui.tiles import Tiles
from hgviz.gui.views.opened import Opened, Opener
from hgviz.recipe import Recipe

WHOLE = 2048  # tokens of which the whole map is composed
TOO_LONG = (
    "The whole map is composed for texts of up to {most:,} {unit}s; of this one, the row of the "
    "selected answer."
)
COMPOSERS = 3  # kept for when one comes back to them


@dataclass(frozen=True, slots=True, eq=False)
class Across:
    """All levels of one capture for one answer, as far as they are known.

    row: what the answer at `query` is made of; opened: the whole map, ready for a canvas. why:
    what is missing, in words. still: more is on its way.
    """

    of: Capture
    recipe: Recipe
    query: int | None
    row: Composed | None = None
    opened: Opened | None = None
    why: str = ""
    still: bool = True


class Kept:
    """What was composed of the capture on screen, so that another answer is there at once."""

    def __init__(self, tiles: Tiles) -> None:
        self.opener = Alone(tiles)
        self._capture: Capture | None = None
        self._composers: dict[Recipe, Composer] = {}
        self._opened: tuple[Together, Opened] | None = None

    def across(self, capture: Capture, query: int | None, recipe: Recipe) -> Task[Across]:
        """The row of an answer, a step's value once it is there, then the whole map."""
        if self._capture is None or capture.maps is not self._capture.maps:
            self._capture = capture
            self._composers.clear()
        composer = self._composers.pop(recipe, None) or Composer(capture, recipe)
        self._composers[recipe] = composer
        while len(self._composers) > COMPOSERS:
            del self._composers[next(iter(self._composers))]
        found = Across(capture, recipe, query)
        if query is not None:
            found = replace(found, row=(yield from composer.row(query)))
        yield Step(0, 1, "composing all maps", found)
        if len(capture.main) <= WHOLE:
            whole = yield from composer.all()
            found = replace(found, opened=self._open(whole))
        else:
            found = replace(found, why=tr(TOO_LONG, most=WHOLE, unit=tr(capture.main.unit)))
        return replace(found, still=False)

    def _open(self, whole: Together) -> Opened:
        if self._opened is None or self._opened[0] is not whole:
            view = self.opener.view
            task = self.opener.open(
                whole.capture, HeadId(0, 0), query=None, whole=True, shared=False, view=view
            )
            self._opened = whole, finish(task)
        return self._opened[1]


class Alone(Opener):
    """Opens a map that has no others beside it."""

    def __init__(self, tiles: Tiles) -> None:
        super().__init__(tiles)
        from hgviz.gui.views.viewport import Viewport

        self.view = Viewport.fitted((1, 1), (512, 512))

    def beside(self, opened: Opened) -> Task[list[Opened]]:
        """Nothing: there is one map only."""
        yield Step(0, 1)
        return []
