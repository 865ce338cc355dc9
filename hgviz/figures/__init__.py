"""Figures for papers: every kind, from one Spec. matplotlib loads when the first one is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgviz.core import Capture, HeadId, HgvizError
from hgviz.figures.spec import FORMATS, WIDTHS, Fact, Spec, format_of, points

if TYPE_CHECKING:
    from hgviz.figures.page import Page

Facts = Mapping[HeadId, Fact]
Compose = Callable[["Page", Spec, Capture, Facts], None]


def _map(page: Page, spec: Spec, capture: Capture, facts: Facts) -> None:
    from hgviz.figures.matrix import compose

    compose(page, spec, capture, facts)


def _wall(page: Page, spec: Spec, capture: Capture, facts: Facts) -> None:
    from hgviz.figures.wall import compose

    compose(page, spec, capture, facts)


def _levels(page: Page, spec: Spec, capture: Capture, facts: Facts) -> None:
    from hgviz.figures.levels import compose

    compose(page, spec, capture, facts)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of figure: its name, what people call it, and the function that composes it."""

    name: str
    label: str
    compose: Compose


FIGURES: dict[str, Kind] = {
    row.name: row
    for row in (
        Kind("map", "Map of one head", _map),
        Kind("wall", "All heads of all layers", _wall),
        Kind("levels", "One token through all levels", _levels),
    )
}


def composed(spec: Spec, capture: Capture, facts: Facts | None = None) -> Page:
    """The page of a figure, not yet written; call it within style.dressed().

    Raises HgvizError for an unknown kind or width, and for a capture that lacks what is shown.
    """
    if spec.kind not in FIGURES:
        raise HgvizError(
            f"there is no kind of figure named {spec.kind!r}",
            f"the kinds are {', '.join(FIGURES)}",
            "Choose one of these",
        )
    width = points(spec.width)
    from hgviz.figures.page import Page

    page = Page(width)
    FIGURES[spec.kind].compose(page, spec, capture, facts or {})
    return page


def draw(
    spec: Spec,
    capture: Capture,
    path: str | Path,
    *,
    facts: Facts | None = None,
    command: str = "",
) -> Path:
    """Write a figure to path and give the path.

    command: what draws it again, kept in the file with everything else that identifies it; names
    of folders are left out of it. The file appears whole or not at all. Raises HgvizError.
    """
    path = Path(path)
    form = format_of(path, spec.format)
    from hgviz.figures import export, provenance, style

    export.require_folder(path)
    with style.dressed():
        page = composed(spec, capture, facts)
        record = provenance.record(spec, capture, page.notes, command, path)
        files = export.render(page.figure, form, path, record)
    export.write(path, files)
    return path


__all__ = [
    "FIGURES", "FORMATS", "WIDTHS", "Fact", "Facts", "Kind", "Spec", "composed", "draw",
    "format_of", "points",
]  # fmt: skip
