"""What the look Across levels shows, worked out step by step off the GUI thread."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hgviz import tasks
from hgviz.analysis.resolution import Composed
from hgviz.analysis.together import Composer, Together
from hgviz.core import Capture, Floats, HeadId, HgvizError, Step, Task, finish
from hgviz.gui.language import tr
from hgviz.gui.views.opened import Opened, Opener
from hgviz.gui.views.tiles import Tiles
from hgviz.recipe import Recipe

WHOLE = 2048  # tokens of which the whole map is composed
TOO_LONG = (
    "The whole map is composed for texts of up to {most:,} {unit}s; of this one, the row of the "
    "selected answer."
)
COMPOSERS, FLOWS = 3, 16  # kept for when one comes back to them


@dataclass(frozen=True, slots=True, eq=False)
class Across:
    """All levels of one capture for one answer, as far as they are known.

    row: what the answer at `query` is made of; opened: the whole map, ready for a canvas; flow
    (columns,): the largest flow to each token, NaN where it is not known yet. why: what is
    missing, in words. still: more is on its way.
    """

    of: Capture
    recipe: Recipe
    query: int | None
    row: Composed | None = None
    opened: Opened | None = None
    flow: Floats | None = None
    why: str = ""
    still: bool = True


class Kept:
    """What was composed of the capture on screen, so that another answer is there at once."""

    def __init__(self, tiles: Tiles) -> None:
        self.opener = Alone(tiles)
        self._capture: Capture | None = None
        self._composers: dict[Recipe, Composer] = {}
        self._flows: dict[tuple[Recipe, int], Floats] = {}
        self._opened: tuple[Together, Opened] | None = None

    def across(
        self, capture: Capture, query: int | None, recipe: Recipe, flow: bool
    ) -> Task[Across]:
        """The row of an answer, the whole map, then the flow: each is a step's value when there."""
        if self._capture is None or capture.maps is not self._capture.maps:
            self._capture = capture
            self._composers.clear()
            self._flows.clear()
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
        if flow and query is not None:
            yield Step(0, 1, "measuring the flow", found)
            found = yield from self._flow(found, query)
        return replace(found, still=False)

    def _open(self, whole: Together) -> Opened:
        if self._opened is None or self._opened[0] is not whole:
            view = self.opener.view
            task = self.opener.open(
                whole.capture, HeadId(0, 0), query=None, whole=True, shared=False, view=view
            )
            self._opened = whole, finish(task)
        return self._opened[1]

    def _flow(self, found: Across, query: int) -> Task[Across]:
        key = found.recipe, query
        if key not in self._flows:
            task = tasks.attention_flow(found.of, (query, query + 1), found.recipe)
            try:
                while True:
                    step = next(task)
                    told = None if step.value is None else step.value.copy()
                    yield replace(step, value=replace(found, flow=told))
            except StopIteration as end:
                while len(self._flows) >= FLOWS:
                    del self._flows[next(iter(self._flows))]
                self._flows[key] = end.value[0]
            except HgvizError as error:
                return replace(found, why=" ".join(map(tr, error.lines)))
        return replace(found, flow=self._flows[key])


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
