"""Figures for papers: every kind, from one Spec. matplotlib loads when the first one is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.core import Capture, HeadId, HgvizError
from hgviz.figures.spec import FORMATS, WIDTHS, Fact, Spec, format_of, points

if TYPE_CHECKING:
    from hgviz.figures.document import Drawn
    from hgviz.figures.page import Page

Facts = Mapping[HeadId, Fact]
TABLE = ".csv"  # what a chart's numbers are written as


def _map(page: Page, spec: Spec, capture: Capture, facts: Facts) -> None:
    from hgviz.figures.matrix import compose

    compose(page, spec, capture, facts)


def _wall(page: Page, spec: Spec, capture: Capture, facts: Facts) -> None:
    from hgviz.figures.wall import compose

    compose(page, spec, capture, facts)


def _levels(page: Page, spec: Spec, capture: Capture, facts: Facts) -> None:
    from hgviz.figures.levels import compose

    compose(page, spec, capture, facts)


def _links(page: Page, spec: Spec, capture: Capture, facts: Facts) -> None:
    from hgviz.figures.links import compose

    compose(page, spec, capture, facts)


def _rollout(page: Page, spec: Spec, capture: Capture, facts: Facts) -> None:
    from hgviz.figures.rollout import compose

    compose(page, spec, capture, facts)


def _curve(page: Page, spec: Spec, chart: Any) -> None:
    from hgviz.figures.curve import compose

    compose(page, spec, chart)


def _scores(page: Page, spec: Spec, chart: Any) -> None:
    from hgviz.figures.scores import compose

    compose(page, spec, chart)


def _three(page: Page, spec: Spec, chart: Any) -> None:
    from hgviz.figures.three import compose

    compose(page, spec, chart)


def _plots(page: Page, spec: Spec, chart: Any) -> None:
    from hgviz.figures.plots import compose

    compose(page, spec, chart)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of figure: its name, what people call it, and the function that composes it.

    Those of COMPOSED are of captures whose maps tasks have made one, those of CHARTS are of
    studies, those of BESIDE of one or two captures; tasks make their numbers ready: (page, spec,
    chart).
    """

    name: str
    label: str
    compose: Callable[..., None]


FIGURES: dict[str, Kind] = {
    row.name: row
    for row in (
        Kind("map", "Map of one head", _map),
        Kind("links", "Links between tokens", _links),
        Kind("wall", "All heads of all layers", _wall),
        Kind("levels", "One token through all levels", _levels),
    )
}


COMPOSED: dict[str, Kind] = {"rollout": Kind("rollout", "All maps composed", _rollout)}


CHARTS: dict[str, Kind] = {
    row.name: row
    for row in (
        Kind("curve", "What is lost as heads go", _curve),
        Kind("scores", "What every head is worth", _scores),
    )
}


BESIDE: dict[str, Kind] = {
    row.name: row
    for row in (
        Kind("compare", "Two heads and their difference", _three),
        Kind("activation", "What scores become", _plots),
    )
}


def composed(spec: Spec, capture: Capture, facts: Facts | None = None) -> Page:
    """The page of a figure, not yet written; call it within style.dressed().

    Raises HgvizError for an unknown kind or width, and for a capture that lacks what is shown.
    """
    kinds = FIGURES | COMPOSED
    if spec.kind not in kinds:
        raise HgvizError(
            f"there is no kind of figure named {spec.kind!r}",
            f"the kinds are {', '.join(kinds)}",
            "Choose one of these",
        )
    width = points(spec.width)
    from hgviz.figures.page import Page

    page = Page(width)
    kinds[spec.kind].compose(page, spec, capture, facts or {})
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
    from hgviz.figures import provenance

    def page_and_record() -> tuple[Page, dict[str, str]]:
        page = composed(spec, capture, facts)
        return page, provenance.record(spec, capture, page.notes, command, Path(path))

    return _written(page_and_record, Path(path), spec.format)


def draw_chart(spec: Spec, chart: Drawn, path: str | Path, command: str = "") -> Path:
    """Write a figure of CHARTS or BESIDE to path and give the path; a .csv has its numbers in place
    of a picture. command as in draw. Raises HgvizError.
    """
    path = Path(path)
    from hgviz.figures import export, provenance
    from hgviz.figures.page import Page

    if not spec.format and path.suffix.lower() == TABLE:
        export.require_folder(path)
        export.write(path, {path.name: export.table(chart.rows())})
        return path

    def page_and_record() -> tuple[Page, dict[str, str]]:
        page = Page(points(spec.width))
        (CHARTS | BESIDE)[spec.kind].compose(page, spec, chart)
        return page, provenance.record_of_chart(spec, chart.about, command)

    return _written(page_and_record, path, spec.format)


def _written(
    page_and_record: Callable[[], tuple[Page, dict[str, str]]], path: Path, asked: str
) -> Path:
    """Compose and write a figure, with what it says of itself."""
    form = format_of(path, asked)
    from hgviz.figures import export, style

    export.require_folder(path)
    with style.dressed():
        page, record = page_and_record()
        files = export.render(page.figure, form, path, record)
    export.write(path, files)
    return path


__all__ = [
    "BESIDE", "CHARTS", "COMPOSED", "FIGURES", "FORMATS", "WIDTHS", "Fact", "Facts", "Kind", "Spec",
    "composed", "draw", "draw_chart", "format_of", "points",
]  # fmt: skip
