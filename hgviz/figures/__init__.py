"""Figures for papers: every kind, from one Spec. matplotlib loads when the first one is drawn.

A kind of figure has a row in spec.FIGURES and one in pictures.DRAWINGS. paper has the page, its
text and its axes; files writes pages, tables has the numbers behind maps and links, report puts
charts and tables on one HTML page.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from hgviz.core import Capture
from hgviz.errors import HgvizWarning
from hgviz.figures.content import Content, Fact, Facts, Looked, Panel
from hgviz.figures.spec import (
    ANSWERS,
    FIGURES,
    FORMATS,
    TABLE,
    WIDTHS,
    Kind,
    Spec,
    csv_beside,
    format_of,
    kind_of,
    points,
)

if TYPE_CHECKING:
    from hgviz.figures.paper.page import Page

MOST_BOXED = 8  # characters without a font that a warning names


def composed(spec: Spec, content: Content | Capture) -> Page:
    """The page of a figure, not yet written; call it within style.dressed().

    A capture stands for itself with nothing known of its heads. Raises HgvizError for an unknown
    kind or width, and for a capture that lacks what is shown.
    """
    kind = kind_of(spec.kind).name
    width = points(spec.width)
    from hgviz.figures.paper.page import Page
    from hgviz.figures.pictures import DRAWINGS

    page = Page(width)
    DRAWINGS[kind].compose(page, spec, Looked(content) if isinstance(content, Capture) else content)
    return page


def draw(panel: Panel, path: str | Path) -> Path:
    """Write a figure to path and return the path; a .csv has its numbers in place of a picture.

    The file says what identifies it and the command that draws it again; names of folders are left
    out of it. It appears whole or not at all. Raises HgvizError.
    """
    path = Path(path)
    if not panel.spec.format and path.suffix.lower() == TABLE:
        write_numbers(panel, path)
        return path
    form = format_of(path, panel.spec.format)
    from hgviz.figures import provenance
    from hgviz.figures.files import export
    from hgviz.figures.paper import labels, style

    export.require_folder(path)
    with style.dressed(), labels.recorded_boxes() as boxed:
        page = composed(panel.spec, panel.content)
        record = provenance.record(panel, page.notes, path)
        files = export.render(page.figure, form, path, record)
    export.write(path, files)
    if boxed:
        some = ", ".join(f"U+{ord(one):04X}" for one in sorted(boxed)[:MOST_BOXED])
        more = f" and {len(boxed) - MOST_BOXED} more" if len(boxed) > MOST_BOXED else ""
        line = f"{path.name}: no installed font has {some}{more}; printed as {labels.BOX}."
        warnings.warn(f"{line} Install a font that has them.", HgvizWarning, stacklevel=2)
    return path


def write_numbers(panel: Panel, path: str | Path) -> Path:
    """Write the numbers of a figure as a CSV named after its path. Raises HgvizError."""
    kind = kind_of(panel.spec.kind).name
    from hgviz.figures.files import export
    from hgviz.figures.pictures import DRAWINGS

    out = csv_beside(Path(path))
    export.require_folder(out)
    rows = DRAWINGS[kind].rows(panel.spec, panel.content)
    export.write(out, {out.name: export.table(rows)})
    return out


__all__ = [
    "ANSWERS", "FIGURES", "FORMATS", "WIDTHS", "Content", "Fact", "Facts", "Kind", "Looked",
    "Panel", "Spec", "composed", "draw", "format_of", "kind_of", "points", "write_numbers",
]  # fmt: skip
