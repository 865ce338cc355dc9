"""Figures for papers from a terminal."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from hgviz.cli import terminal
from hgviz.cli.options import layer_and_head, one_of, require_numbers, require_unread
from hgviz.files import find_sample

HEAD = "Which head, which token"
COLOURS = "Colours and ranges"
LINKS = "Links"
ROLLOUT = "Rollout"
CHARTS = "Charts"
NO_OPTIONS = ("sources", "kind", "out", "item", "numbers")  # of what is drawn


def figure(
    context: typer.Context,
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            parser=find_sample,
            help="Captures, or studies (.h5), or the folder of hgviz study run.",
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="K",
            help="Of a capture map, image, links, wall, levels, rollout, neurons; of two compare; "
            "of some profile, activation; of studies curve, scores; of a folder seeds, budgets.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FIG.pdf",
            help="Where to: .pdf, .svg, .png, .pgf; .csv for its numbers.",
        ),
    ] = None,
    width: Annotated[
        str | None,
        typer.Option(metavar="W", help="Of the page: 3.25in, 89mm, or a preset such as acl."),
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="T", help="In place of its own; '' for none.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="F", help="Where the name of the file does not say it."),
    ] = None,
    item: Annotated[
        str | None,
        typer.Option(metavar="N", help="Which text of a corpus, from 0; of several files 3,0."),
    ] = None,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Write the numbers beside it, as FIG.csv.")
    ] = False,
    layer: Annotated[
        int | None,
        typer.Option(min=0, help="Its number, from 0.", rich_help_panel=HEAD),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="11.2|2",
            help="A head: LAYER.HEAD, or with --layer HEAD.",
            rich_help_panel=HEAD,
        ),
    ] = None,
    query: Annotated[
        int | None,
        typer.Option(
            min=0, help="A token, from 0; the last one when left out.", rich_help_panel=HEAD
        ),
    ] = None,
    key: Annotated[
        int | None,
        typer.Option(
            min=0, help="Map, rollout, neurons: a token that is looked at.", rich_help_panel=HEAD
        ),
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(
            metavar="4.2", help="Compare: the head of B, where it is another.", rich_help_panel=HEAD
        ),
    ] = None,
    heads: Annotated[
        str | None,
        typer.Option(
            metavar="3.5,4.*",
            help="Links, image: these heads; rollout: only these count in their layers; levels: "
            "the head of each stage.",
            rich_help_panel=HEAD,
        ),
    ] = None,
    tokens: Annotated[
        bool | None,
        typer.Option(
            "--tokens",
            help="Of a projected sequence: the tokens behind its slots, signed.",
            rich_help_panel=HEAD,
        ),
    ] = None,
    order: Annotated[
        Literal["text", "weight"] | None,
        typer.Option(help="Neurons: how the keys stand.", rich_help_panel=HEAD),
    ] = None,
    palette: Annotated[
        str | None,
        typer.Option(
            metavar="P",
            help="viridis, cividis, magma; blue-red where weights can be negative.",
            rich_help_panel=COLOURS,
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(metavar="S", help="sqrt, linear or log.", rich_help_panel=COLOURS),
    ] = None,
    limits: Annotated[
        str | None,
        typer.Option(
            metavar="A:B",
            help="From which weight to which, 0:0.5 or -1:1; of charts the y axis.",
            rich_help_panel=COLOURS,
        ),
    ] = None,
    shared: Annotated[
        bool | None,
        typer.Option("--shared", help="Wall: one range for all heads.", rich_help_panel=COLOURS),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            metavar="3,5:8|all",
            help="Tokens that have some, in place of --query.",
            rich_help_panel=LINKS,
        ),
    ] = None,
    together: Annotated[
        Literal["each", "mean", "sum", "max"] | None,
        typer.Option(
            help="Of each of --heads, or of their mean, sum or largest weight.",
            rich_help_panel=LINKS,
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="The N strongest of each query, 0 for all; 10.",
            rich_help_panel=LINKS,
        ),
    ] = None,
    mass: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="P",
            help="As few as have a part P of the weight.",
            rich_help_panel=LINKS,
        ),
    ] = None,
    least: Annotated[
        float | None,
        typer.Option(min=0, metavar="W", help="Of weight W or more.", rich_help_panel=LINKS),
    ] = None,
    words: Annotated[
        bool | None,
        typer.Option(
            "--words",
            help="Between words: rows averaged, columns added.",
            rich_help_panel=LINKS,
        ),
    ] = None,
    special: Annotated[
        bool | None,
        typer.Option(
            "--special/--no-special",
            help="Special tokens; they are shown.",
            rich_help_panel=LINKS,
        ),
    ] = None,
    values: Annotated[
        bool | None,
        typer.Option(
            "--values", help="Weight x |v W_O|, what a key has to give.", rich_help_panel=LINKS
        ),
    ] = None,
    across: Annotated[
        bool | None,
        typer.Option(
            "--across",
            help="The texts run across, for CJK and for pages.",
            rich_help_panel=LINKS,
        ),
    ] = None,
    fuse: Annotated[
        Literal["mean", "max", "min"] | None,
        typer.Option(
            help="What the heads of a layer become: their mean, the largest, the smallest.",
            rich_help_panel=ROLLOUT,
        ),
    ] = None,
    residual: Annotated[
        float | None,
        typer.Option(
            metavar="A",
            help="How much of every sum is the residual path, 0 to 1; 0.5.",
            rich_help_panel=ROLLOUT,
        ),
    ] = None,
    nothing: Annotated[
        bool | None,
        typer.Option(
            "--nothing",
            help="A last column for what comes from no token.",
            rich_help_panel=ROLLOUT,
        ),
    ] = None,
    signed: Annotated[
        bool | None,
        typer.Option(
            "--signed",
            help="Weights below zero stay so: the product of A + I, undivided.",
            rich_help_panel=ROLLOUT,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="M", help="Profile: entropy, distance, ...", rich_help_panel=CHARTS),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="M",
            help="Curve, scores, budgets: a score of heads; of curves several may be named.",
            rich_help_panel=CHARTS,
        ),
    ] = None,
    axis: Annotated[
        Literal["heads", "parameters", "flops", "time"] | None,
        typer.Option(
            help="Curve: what it is drawn over; time: of hgviz curve --time.",
            rich_help_panel=CHARTS,
        ),
    ] = None,
) -> None:
    """Draw a figure for a paper.

    The metadata of the file (Keywords of a PDF, Description of an SVG or PNG) end with the command
    that draws it again.
    """
    from hgviz import tasks
    from hgviz.figures import FIGURES
    from hgviz.figures.spec import options_of

    asked = {name: one for name, one in context.params.items() if one not in (None, [], ())}
    options = {
        name if name != "form" else "format": one
        for name, one in asked.items()
        if name not in NO_OPTIONS
    }
    if head is not None:
        layer, number = layer_and_head(layer, head)
        options |= {"head": number} if layer is None else {"head": number, "layer": layer}
    kind = _kind(kind, len(sources))
    if unused := [name for name in options if name not in options_of(kind)]:
        raise typer.BadParameter(
            f"A figure of kind {kind} takes no --{unused[0].replace('_', '-')}; it takes "
            f"{', '.join(f'--{name}' for name in options_of(kind))}."
        )
    if out is None:
        raise typer.BadParameter("-o is missing: where to draw, such as -o figure.pdf.")
    require_unread(out, *sources)
    require_numbers(out, numbers, *sources)
    found = tasks.sources_of(kind, sources, _items(item or "0", len(sources)))
    spec = tasks.spec_from(kind, options, found)
    work = partial(tasks.figure, spec, found, out, numbers=numbers)
    terminal.say(f"{terminal.run(work, 'Drawing')}: {FIGURES[kind].label.lower()}.")


def _items(text: str, count: int) -> tuple[int, ...]:
    """Which text of each file: 3 of all of them, or 3,0. Raises BadParameter."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (1, count) or not all(part.isdecimal() for part in parts):
        raise typer.BadParameter(f"--item cannot be {text!r}; it is 3, or 3,0 for two files.")
    numbers = tuple(map(int, parts))
    return numbers * count if len(numbers) == 1 else numbers


def _kind(kind: str | None, files: int) -> str:
    """The kind asked for. Errors: BadParameter for none, and for one of more or fewer files."""
    from hgviz.figures import ANSWERS, FIGURES

    if kind is None:
        raise typer.BadParameter(f"--kind is missing; there are {', '.join(FIGURES)}.")
    if kind in ANSWERS:
        raise typer.BadParameter(
            f"What {kind} shows is drawn where a model is asked: "
            f"hgviz {ANSWERS[kind].verb} MODEL --text T -o FIG.pdf."
        )
    wanted = FIGURES[one_of(kind, FIGURES, "kind of figure")].of
    if files > 1 and wanted in ("capture", "study", "sweep"):
        one = "folder" if wanted == "sweep" else "file"
        raise typer.BadParameter(f"A figure of kind {kind} is of one {one}.")
    if files != 2 and wanted == "pair":
        raise typer.BadParameter(f"A figure of kind {kind} is of two captures: A.h5 B.h5.")
    return kind
