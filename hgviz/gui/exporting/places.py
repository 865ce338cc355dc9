"""Where a figure is written: the ending of its file, and what lies there already."""

from __future__ import annotations

import os
from pathlib import Path

from hgviz.core import HgvizError
from hgviz.figures.spec import csv_beside, format_of


def with_ending(path: str, asked: str) -> tuple[str, str]:
    """A path as it was typed, with the ending of the format asked for where it has none of a
    figure (fig1.2, fig.txt); and the format that its name says."""
    try:
        return path, format_of(path)
    except HgvizError:
        return f"{path}.{asked}", asked


def require_free(path: str, numbers: bool, ended: bool) -> None:
    """Require that only files that the user agreed to replace are replaced.

    The dialog that asks where to asks about the figure alone: its numbers are replaced with it, and
    never without it. ended: its ending was added, so that nobody was asked about the figure either.

    Errors: HgvizError where another file would go.
    """
    figure = Path(path)
    files = [figure.name] if ended else []
    if not os.path.exists(path):
        files += [csv_beside(figure).name] * numbers
    taken = [one for one in files if os.path.exists(figure.with_name(one))]
    if taken:
        several = len(taken) > 1
        names = " and ".join(taken)
        raise HgvizError(
            f"{names} are there already" if several else f"{names} is there already",
            "nobody was asked whether they may go" if several
            else "nobody was asked whether it may go",
            "Give the figure another name",
        )  # fmt: skip


__all__ = ["require_free", "with_ending"]
