"""The verb about how much the heads of a layer repeat each other."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgviz.cli import terminal
from hgviz.cli.options import (
    DRAWN,
    AsJson,
    BesideNumbers,
    FigureTitle,
    FigureWidth,
    ends_in,
    require_drawable,
    require_unread,
)
from hgviz.files import find_sample
from hgviz.language import counted

if TYPE_CHECKING:
    from hgviz.analysis.metrics import Redundancy


def redundancy(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            parser=find_sample,
            help="A checkpoint, whose weights are looked at, or captures (.h5), their maps.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FIG.pdf|.json|.csv",
            callback=ends_in(".json", *DRAWN),
            help="Where to: a figure for a paper (.pdf, .svg, .png, .pgf), its numbers "
            "(.csv), or all that is known (.json).",
        ),
    ] = None,
    width: FigureWidth = "neurips",
    title: FigureTitle = None,
    numbers: BesideNumbers = False,
    as_json: AsJson = False,
) -> None:
    """Measure how similar the heads of each layer are.

    Of a checkpoint: how many dimensions hold 90, 95 and 99 % of what the heads compare tokens by,
    W_QK = W_Q^T W_K, of all that they have; and the cosines of these between heads. Of captures:
    the mean Jensen-Shannon distance between their maps, 0 alike, 1 nothing in common.
    """
    from hgviz import tasks
    from hgviz.figures.spec import Spec, points

    kinds = {tasks.kind_of(one) for one in sources}
    if "study" in kinds or (kinds == {"checkpoint"} and len(sources) > 1) or len(kinds) > 1:
        raise typer.BadParameter("Give one checkpoint, or one capture or more.")
    drawn = out is not None and out.name.lower().endswith(DRAWN)
    require_unread(out, *sources)
    require_drawable(out if drawn else None, *sources, numbers=numbers)
    if drawn:
        points(width)  # before any work
    if kinds == {"checkpoint"}:
        work = partial(tasks.redundancy, sources[0])
    else:
        work = partial(tasks.redundancy_of_captures, [tasks.capture_at(one) for one in sources])
    found = terminal.run(work, "Comparing heads")
    if out is not None and drawn:
        spec = Spec("redundancy", width=width, title=title)
        panel = tasks.redundancy_panel(spec, found, sources)
        terminal.run(partial(tasks.draw, panel, out, numbers=numbers), "Drawing")
    elif out is not None:
        terminal.write_facts(out, found.facts(), [])
    if as_json:
        print(json.dumps(found.facts(), allow_nan=False))
    elif out is None:
        terminal.show({"layers": [_line(one) for one in found.layers]})
        for note in found.notes:
            terminal.say(note)
    else:
        terminal.say(f"{out}: {counted(len(found.layers), 'layer')}.")


def _line(one: Redundancy) -> dict[str, Any]:
    """What a terminal has room for; --json and -o have the rest."""
    first: dict[str, Any] = {"layer": one.layer.index, "heads": len(one.heads)}
    if one.stacked is not None and one.over_heads is not None:
        first["dimensions"] = one.stacked.most
        first |= {f"{100 * share:.0f} %": rank for share, rank in one.stacked.ranks().items()}
        ranks = one.over_heads.ranks()
        first["heads for 99 %"] = ranks[max(ranks)]
    else:
        first["rows"] = one.rows
    name = "cosine" if one.cosines else "distance"
    nearest = one.pairs[:1]
    return first | {
        f"mean |{name}|" if one.cosines else f"mean {name}": one.mean,
        "most alike": " and ".join(map(str, nearest[0][:2])) if nearest else "",
        name: nearest[0][2] if nearest else None,
    }
