"""Reports as files: HTML or PDF by the name of the file."""

from __future__ import annotations

from pathlib import Path

import hgviz
from hgviz.core import HgvizError
from hgviz.figures import provenance
from hgviz.figures.content.document import Document
from hgviz.figures.files import export
from hgviz.figures.paper import style

FORMATS = (".html", ".pdf")


def require(path: Path) -> None:
    """Errors: HgvizError where no report of this name can be written, known before it is made."""
    if path.suffix.lower() not in FORMATS:
        raise HgvizError(
            f"a report cannot be written as {path.suffix.lower() or path.name!r}",
            "it is a page to read (.html) or to print (.pdf)",
            "Give the file a name that ends in one of these",
        )
    export.require_folder(path)


def write(report: Document, path: Path, command: str) -> Path:
    """Write a report and give its path. The same report gives the same bytes, whole or not at all.

    command: what makes it again; names of folders are left out of it. Errors: HgvizError.
    """
    require(path)
    from hgviz.figures.report import html, sheets

    record = {
        "program": f"hgviz {hgviz.__version__}",
        "kind": "report",
        **report.about,
        "command": provenance.without_folders(command),
    }
    record = {name: provenance.plain(value) for name, value in record.items() if value}
    with style.dressed():
        content = (html if path.suffix.lower() == ".html" else sheets).written(report, record)
    export.write(path, {path.name: content})
    return path
