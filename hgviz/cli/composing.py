"""All maps as one, from a terminal."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from hgviz.cli import terminal
from hgviz.cli.looking import open_item
from hgviz.cli.options import (
    Fuse,
    ItemNumber,
    Npy,
    OfHeads,
    Residual,
    Rows,
    Signed,
    Source,
    recipe_of,
)


def rollout(
    source: Source,
    out: Npy,
    rows: Rows = None,
    item: ItemNumber = 0,
    fuse: Fuse = "mean",
    heads: OfHeads = "",
    residual: Residual = 0.5,
    nothing: Annotated[
        bool,
        typer.Option("--nothing", help="A last column for what comes from no token."),
    ] = False,
    signed: Signed = False,
) -> None:
    """Write the attention rollout: how much each input token contributes to each output token."""
    from hgviz import tasks

    capture = open_item(source, item)
    recipe = recipe_of(capture, fuse, heads, residual, signed, nothing)
    limits = (rows.start, rows.stop) if rows else None
    work = partial(tasks.rollout, capture, limits, recipe)
    terminal.write(out, terminal.run(work, "Composing the maps"))
