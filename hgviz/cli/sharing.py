"""The verbs about what heads share: the same queries and keys, or what each repeats of another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgviz import terminal
from hgviz.cli.options import (
    DRAWN,
    AsJson,
    BesideNumbers,
    Checkpoint,
    FigureTitle,
    FigureWidth,
    LabelColumn,
    TextColumn,
    ends_in,
    require_drawable,
    require_unread,
)
from hgviz.language import counted
from hgviz.resources import bundled

if TYPE_CHECKING:
    from hgviz.analysis.redundancy import Redundancy
    from hgviz.tasks.sharing import Collaboration


def collaborate(
    model: Checkpoint,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="The new folder.")],
    width: Annotated[
        int | None,
        typer.Option(
            metavar="R",
            min=1,
            help="How wide the queries are that the heads of a layer share; left out, as wide as "
            "those of all its heads together, which changes nothing.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="D",
            parser=bundled,
            help="What both models are scored on: labelled rows, or a text. Else only their logits "
            "are compared, on texts that come with hgviz.",
        ),
    ] = None,
    text_column: TextColumn = "",
    label_column: LabelColumn = "",
    as_json: AsJson = False,
) -> None:
    """Write a model whose heads share one projection of queries and keys.

    At full width its logits are those of the model, or no folder is left; below, every layer's
    products of queries and keys are brought nearest by alternating least squares, and what that
    costs is told.
    """
    from hgviz import tasks

    task = tasks.collaborate(model, out, width or 0, data, text_column, label_column)
    found = terminal.run(task, "Sharing", f"Nothing was left in {out}")
    if as_json:
        print(json.dumps(found.facts(), allow_nan=False))
        return
    for line in _collaboration(found):
        terminal.say(line)


def _collaboration(found: Collaboration) -> Iterator[str]:
    from hgviz.analysis.evaluation import told

    before, after = found.parameters
    yield (
        f"{found.path}: the heads of each layer share {found.width:,} queries and keys; "
        f"{before:,} parameters before, {after:,} after."
    )
    off = {layer: error for layer, error in found.errors.items() if error}
    if off:
        each = ", ".join(f"{layer}: {100 * error:.2f} %" for layer, error in off.items())
        yield f"Products of queries and keys are off by, in layer {each}."
    yield (
        f"Logits differ by at most {found.difference:.1e} in {found.dtype}, the largest is "
        f"{found.largest:.1f}, on {counted(found.texts, 'text')} from {found.source}."
    )
    for when, score in zip(("Before", "After"), found.scores, strict=False):
        yield f"{when}: {told(score)}."


# --- redundancy -----------------------------------------------------------------------------------


def redundancy(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            parser=bundled,
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
        task = tasks.redundancy(sources[0])
    else:
        task = tasks.redundancy_of_captures([tasks.capture_at(one) for one in sources])
    found = terminal.run(task, "Comparing heads")
    if out is not None and drawn:
        spec = Spec("redundancy", width=width, title=title)
        panel = tasks.redundancy_panel(spec, found, sources)
        terminal.run(tasks.draw(panel, out, numbers=numbers), "Drawing")
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
