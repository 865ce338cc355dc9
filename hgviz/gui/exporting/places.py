"""Where a figure is written: the ending of its file, and what lies there already."""

from __future__ import annotations

import os
from pathlib import Path

from hgviz.core import HgvizError
from hgviz.figures.spec import TABLE, WORDS, format_of, name_beside


def with_ending(path: str, asked: str) -> tuple[str, str]:
    """A path as it was typed, with the ending of the format asked for where it has none of a
    figure (fig1.2, fig.txt); and the format that its name says."""
    try:
        return path, format_of(path)
    except HgvizError:
        return f"{path}.{asked}", asked


def require_free(path: str, numbers: bool, words: bool, ended: bool) -> None:
    """What lies beside a figure is replaced with it, and never without it, as the dialog that asks
    where to asks about the figure alone. ended: its ending was added, so not even about that.

    Errors: HgvizError where another file would go.
    """
    figure = Path(path)
    files = [figure.name] if ended else []
    if not os.path.exists(path):
        files += [name_beside(figure, TABLE)] * numbers + [name_beside(figure, WORDS)] * words
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
