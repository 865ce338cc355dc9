"""Writing a figure: the same bytes every time, whole or not at all."""

from __future__ import annotations

import csv
import errno
import os
from collections.abc import Iterable
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from hgviz.core import HgvizError
from hgviz.figures import provenance
from hgviz.figures.files import pgf, rasters
from hgviz.figures.paper import style
from hgviz.figures.spec import POINTS
from hgviz.figures.tables import cell
from hgviz.files import write_atomic


def render(figure: Figure, form: str, path: Path, record: dict[str, str]) -> dict[str, bytes]:
    """The files of a figure, name -> content: one, or for LaTeX also its rasters."""
    if form == pgf.ENDING:
        return pgf.render(figure, path, record)
    buffer = BytesIO()
    figure.savefig(
        buffer,
        format=form,
        dpi=style.dots(figure.get_figwidth() * POINTS) if form == "png" else style.DOTS,
        bbox_inches=None,
        metadata=provenance.metadata(form, record),
    )
    content = buffer.getvalue()
    if form == "svg":
        content = rasters.smaller(content.decode()).encode()
    return {path.name: content}


def svg(figure: Figure) -> str:
    """A figure as the SVG that a page holds inside."""
    buffer = BytesIO()
    figure.savefig(buffer, format="svg", dpi=style.DOTS, bbox_inches=None, metadata={"Date": None})
    return rasters.smaller(buffer.getvalue().decode())


def table(rows: Iterable[tuple[Any, ...]]) -> bytes:
    """Rows as CSV (RFC 4180) in UTF-8; what is no number is empty, and no cell a formula."""
    buffer = StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerows([cell(one) for one in row] for row in rows)
    return buffer.getvalue().encode(errors="backslashreplace")


def require_folder(path: Path) -> None:
    """Errors: HgvizError where a file of this name cannot be."""
    if os.path.isdir(path):  # False also for names that no system takes
        raise HgvizError(
            f"{path.name} is a folder: a figure is a file", "Give the figure another name"
        )
    if not os.path.isdir(path.absolute().parent):
        raise HgvizError(
            f"there is no folder {path.parent}: a figure is written into a folder that exists",
            "Make it first, or choose another",
        )


def write(path: Path, files: dict[str, bytes]) -> None:
    """Write files beside each other, the one named path last. Errors: HgvizError."""
    for name in sorted(files, key=lambda one: one == path.name):
        try:
            write_atomic(path.with_name(name), files[name])
        except OSError as error:
            raise _said(path.with_name(name), error) from error


def _said(path: Path, error: OSError) -> HgvizError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return HgvizError(
            f"{path.name} could not be written: the disk is full", "Make room and try again"
        )
    if error.errno == errno.ENAMETOOLONG:
        return HgvizError(
            "the figure could not be written: its name is too long", "Give it a shorter one"
        )
    return HgvizError(
        f"{path.name} could not be written: {path.parent}: {error.strerror or error}",
        "Choose a folder you may write to",
    )
