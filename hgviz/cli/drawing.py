"""Figures for papers from a terminal."""

from __future__ import annotations

from dataclasses import make_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hgviz.cli import terminal
from hgviz.cli.options import Group, layer_and_head, one_of, require_numbers, require_unread
from hgviz.files import find_sample

# by headings of the help: name: (type, metavar, help); names are those of figures.spec.OPTIONS
OPTIONS: dict[str, dict[str, tuple[Any, str, str]]] = {
    "Page": {
        "width": (str, "W", "Of the page: 3.25in, 89mm, or a preset such as acl."),
        "title": (str, "T", "In place of its own; '' for none."),
        "format": (str, "F", "Where the name of the file does not say it."),
    },
    "Which head, which token": {
        "layer": (int, "N", "Its number, from 0."),
        "head": (str, "11.2|2", "A head: LAYER.HEAD, or with --layer HEAD."),
        "query": (int, "N", "A token, from 0; the last one when left out."),
        "key": (int, "N", "Map, rollout, neurons: a token that is looked at."),
        "beside": (str, "4.2", "Compare: the head of B, where it is another."),
        "heads": (
            str, "3.5,4.*", "Links, image: these heads; rollout: only these count in their "
            "layers; levels: the head of each stage.",
        ),
        "tokens": (bool, "", "Of a projected sequence: the tokens behind its slots, signed."),
        "order": (Literal["text", "weight"], "", "Neurons: how the keys stand."),
    },
    "Colours and ranges": {
        "palette": (
            str, "P", "viridis, cividis, magma; blue-red where weights can be negative."
        ),
        "scale": (str, "S", "sqrt, linear or log."),
        "limits": (
            str, "A:B", "From which weight to which, 0:0.5 or -1:1; of charts the y axis."
        ),
        "shared": (bool, "", "Wall: one range for all heads."),
    },
    "Links": {
        "queries": (str, "3,5:8|all", "Tokens that have some, in place of --query."),
        "together": (
            Literal["each", "mean", "sum", "max"], "",
            "Of each of --heads, or of their mean, sum or largest weight.",
        ),
        "most": (int, "N", "The N strongest of each query, 0 for all; 10."),
        "mass": (float, "P", "As few as have a part P of the weight, 0 to 1."),
        "least": (float, "W", "Of weight W or more."),
        "words": (bool, "", "Between words: rows averaged, columns added."),
        "special": (bool, "", "Special tokens; they are shown."),
        "values": (bool, "", "Weight x |v W_O|, what a key has to give."),
        "across": (bool, "", "The texts run across, for CJK and for pages."),
    },
    "Rollout": {
        "fuse": (
            Literal["mean", "max", "min"], "",
            "What the heads of a layer become: their mean, the largest, the smallest.",
        ),
        "residual": (float, "A", "How much of every sum is the residual path, 0 to 1; 0.5."),
        "nothing": (bool, "", "A last column for what comes from no token."),
        "signed": (bool, "", "Weights below zero stay so: the product of A + I, undivided."),
    },
    "Charts": {
        "metric": (list[str], "M", "Profile: entropy, distance, ..."),
        "method": (
            list[str], "M", "Curve, scores, budgets: a score of heads; of curves several may be "
            "named.",
        ),
        "axis": (
            Literal["heads", "parameters", "flops", "time"], "",
            "Curve: what it is drawn over; time: of hgviz curve --time.",
        ),
    },
}  # fmt: skip


def _option(name: str, type_: Any, metavar: str, help_: str, heading: str) -> Any:
    """The annotation of an option that may be left out."""
    flags = [f"--{name}/--no-{name}"] if name == "special" else [f"--{name}"]
    details: dict[str, Any] = {"help": help_, "metavar": metavar or None}
    details |= {"min": 0} if type_ in (int, float) and name != "residual" else {}
    details |= {"max": 1} if name == "mass" else {}
    panel = None if heading == "Page" else heading
    return Annotated[type_ | None, typer.Option(*flags, rich_help_panel=panel, **details)]


FigureOptions = make_dataclass(
    "FigureOptions",
    [
        (name, _option(name, *row, heading), None)
        for heading, rows in OPTIONS.items()
        for name, row in rows.items()
    ],
    bases=(Group,),
    frozen=True,
)


def figure(
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
            help="Where to: .pdf, .svg, .png, .pgf; .csv for its numbers; .html for a map whose "
            "weights are told under the pointer.",
        ),
    ] = None,
    item: Annotated[
        str | None,
        typer.Option(metavar="N", help="Which text of a corpus, from 0; of several files 3,0."),
    ] = None,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Write the numbers beside it, as FIG.csv.")
    ] = False,
    *,
    options: Group,
) -> None:
    """Draw a figure for a paper.

    The metadata of the file (Keywords of a PDF, Description of an SVG or PNG) end with the command
    that draws it again.
    """
    from hgviz import tasks
    from hgviz.figures import FIGURES
    from hgviz.figures.spec import options_of

    chosen = {name: value for name, value in vars(options).items() if value not in (None, [])}
    if "head" in chosen:
        layer, number = layer_and_head(chosen.get("layer"), chosen["head"])
        chosen |= {"head": number} if layer is None else {"head": number, "layer": layer}
    kind = _kind(kind, len(sources))
    if unused := [name for name in chosen if name not in options_of(kind)]:
        raise typer.BadParameter(
            f"A figure of kind {kind} takes no --{unused[0]}; it takes "
            f"{', '.join(f'--{name}' for name in options_of(kind))}."
        )
    if out is None:
        raise typer.BadParameter("-o is missing: where to draw, such as -o figure.pdf.")
    require_unread(out, *sources)
    require_numbers(out, numbers, *sources)
    found = tasks.sources_of(kind, sources, _items(item or "0", len(sources)))
    spec = tasks.spec_from(kind, chosen, found)
    work = partial(tasks.figure, spec, found, out, numbers=numbers)
    terminal.say(f"{terminal.run(work, 'Drawing')}: {FIGURES[kind].label.lower()}.")


figure.__annotations__["options"] = FigureOptions  # a class that is made from a table


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
