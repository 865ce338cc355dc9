"""Figures from their options, and sheets of several from what is written down of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.core import Capture, HgvizError, Step, Task, replace
from hgviz.resources import bundled
from hgviz.tasks.drawing import panel, sheet
from hgviz.tasks.opening import Path_, capture_at, study_at
from hgviz.tasks.sweeping import sweep_at

if TYPE_CHECKING:
    from hgviz.figures import Panel, Sheet, Spec
    from hgviz.figures.plan import Planned
    from hgviz.study import Study
    from hgviz.sweep import Sweep


def sources_of(
    kind: str, files: Sequence[Path_], items: Sequence[int] = (0,)
) -> list[Capture | Study | Sweep]:
    """What a figure of this kind is drawn of: captures, which text of each of them, studies, or the
    folder of a sweep.

    Errors: HgvizError for files that hold something else.
    """
    from hgviz.figures import kind_of

    if kind_of(kind).of == "sweep":
        return [sweep_at(one) for one in files]
    if kind_of(kind).of in ("study", "studies"):
        return [study_at(one) for one in files]
    return [capture_at(one, items[min(at, len(items) - 1)]) for at, one in enumerate(files)]


def spec_from(kind: str, options: Mapping[str, Any], of: Sequence[Capture | Study | Sweep]) -> Spec:
    """The figure that some options ask for. Errors: HgvizError, as figures.options.spec_of."""
    from hgviz.figures.options import spec_of

    return spec_of(kind, options, [one for one in of if isinstance(one, Capture)])


def sheet_at(path: Path_, out: Path_, *, numbers: bool = False) -> Task[str]:
    """Draw all that a FIG.toml says, numbers as in drawing.draw. Errors: as sheet_of."""
    whole, panels = yield from sheet_of(path)
    return (yield from sheet(whole, panels, out, numbers=numbers))


def sheet_of(path: Path_) -> Task[tuple[Sheet, list[Panel]]]:
    """What a FIG.toml says, ready to be drawn; its files lie beside it. Errors: HgvizError that
    names the panel."""
    from hgviz.figures import plan

    path = Path(path)
    found = plan.read(path)
    panels: list[Panel] = []
    for at, one in enumerate(found.panels):
        yield Step(at, len(found.panels), f"reading panel {at + 1}")
        try:
            panels.append((yield from _panel(one, path.parent)))
        except HgvizError as error:
            what = f"Panel {at + 1} of {path}: {error.what}"
            raise HgvizError(what, error.why, error.do, error.details) from error
    return found.sheet, panels


def _panel(planned: Planned, folder: Path) -> Task[Panel]:
    files = [_beside(folder, one) for one in planned.files]
    options = dict(planned.options)
    of = sources_of(planned.kind, files, planned.items)
    ready = yield from panel(spec_from(planned.kind, options, of), of)
    return replace(ready, span=planned.span)


def _beside(folder: Path, name: str) -> Path:
    """A file beside a FIG.toml, else what comes with hgviz under that name."""
    found = folder / name
    return found if found.exists() else (other if (other := bundled(name)) != Path(name) else found)


__all__ = ["sheet_at", "sheet_of", "sources_of", "spec_from"]
