"""Figures made ready once and drawn as often as their width, words or colours change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hgviz import tasks
from hgviz.core import Capture, Display, HeadId, Task, replace
from hgviz.gui.exporting.answers import Answered
from hgviz.gui.exporting.places import require_free

if TYPE_CHECKING:
    from hgviz.analysis.heads import HeadFacts
    from hgviz.figures import Panel, Spec
    from hgviz.figures.preview import Preview
    from hgviz.study import Study
    from hgviz.sweep import Sweep

Of = tuple["Capture | Study | Sweep", ...] | Answered  # what a figure is drawn of


class Drafts:
    """The figures of one dialog. What is drawn last is kept: to compose all maps of a long text
    takes much longer than to set the result in another width. Used in one lane alone.
    """

    def __init__(self, facts: Mapping[HeadId, HeadFacts]) -> None:
        self._facts = facts
        self._kept: tuple[Spec, Of, Panel] | None = None

    def panel(self, spec: Spec, of: Of) -> Task[Panel]:
        """A figure made ready. Errors: HgvizError."""
        content = replace(spec, width="", format="", title=None, display=Display())
        kept = self._kept
        if kept is not None and kept[0] == content and _same(kept[1], of):
            return replace(kept[2], spec=spec)
        if isinstance(of, Answered):
            ready = yield from of.panel(spec)
        else:
            ready = yield from tasks.panel(spec, of, self._facts)
        self._kept = content, of, ready
        return ready

    def preview(self, spec: Spec, of: Of, dots: float) -> Task[Preview]:
        """Return a figure as a screen shows it. Errors: HgvizError."""
        ready = yield from self.panel(spec, of)
        return (yield from tasks.preview(ready, dots))

    def export(
        self,
        spec: Spec,
        of: Of,
        path: str,
        numbers: bool = False,
        ended: bool = False,
    ) -> Task[str]:
        """Write a figure; numbers: also as CSV; ended as in require_free. Errors: HgvizError."""
        require_free(path, numbers, ended)
        ready = yield from self.panel(spec, of)
        return (yield from tasks.draw(ready, path, numbers=numbers))


def _same(some: Of, others: Of) -> bool:
    if isinstance(some, Answered) or isinstance(others, Answered):
        return some is others
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))


__all__ = ["Drafts"]
