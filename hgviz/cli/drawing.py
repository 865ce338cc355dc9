"""Figures for papers from a terminal."""

from __future__ import annotations

from dataclasses import make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hgviz.cli import terminal
from hgviz.cli.options import Group, layer_and_head, one_of, require_numbers, require_unread
from hgviz.files import find_sample

# by headings of the help: name: (type, metavar, help); names are those of figures.spec.OPTIONS
OPTIONS: dict[str, dict[str, tuple[Any, str, str]]] = {
    "Page": {
        "width": (
            str, "W", "Page width: 3.25in, 89mm (without a unit: inches), or a preset: neurips "
            "(the default), icml, acl, ieee, nature; icml2, acl2, ieee2, nature2 for two columns.",
        ),
        "title": (str, "T", "Title in place of the default; '' for none."),
        "format": (str, "F", "File format, if the name of the file does not give it."),
    },
    "Which head, which token": {
        "layer": (int, "N", "Layer index, from 0."),
        "head": (str, "11.2|2", "LAYER.HEAD, or HEAD with --layer."),
        "query": (int, "N", "Query token, from 0; default: the last one."),
        "key": (int, "N", "Map, rollout, neurons: key token, from 0."),
        "beside": (str, "4.2", "Compare: the head of B, if it is another one."),
        "heads": (
            str, "3.5,4.*", "Links, image: heads to draw; rollout: in their layers, use only "
            "these heads; levels: a head for each stage.",
        ),
        "tokens": (bool, "", "Expand projected slots to the tokens behind them, signed."),
        "order": (Literal["text", "weight"], "", "Neurons: order of the keys."),
    },
    "Colours and ranges": {
        "palette": (
            str, "P", "viridis, cividis, magma; blue-red where weights can be negative."
        ),
        "scale": (str, "S", "sqrt (the default), linear or log."),
        "limits": (
            str, "MIN:MAX", "Colour range, such as 0:0.5 or -1:1; of charts, the y axis."
        ),
        "shared": (bool, "", "Wall: one colour range for all heads."),
    },
    "Links": {
        "queries": (str, "3,5:8|all", "Query tokens to draw links of, in place of --query."),
        "together": (
            Literal["each", "mean", "sum", "max"], "",
            "Draw each of --heads, or their mean, sum or maximum.",
        ),
        "most": (int, "N", "The N strongest links of each query, 0 for all; default 10."),
        "mass": (float, "P", "The fewest links that cover a share P of the weight, 0 to 1."),
        "least": (float, "W", "Only links of weight W or more."),
        "words": (bool, "", "Links between words: rows averaged, columns added."),
        "special": (bool, "", "Show special tokens (the default) or not."),
        "values": (bool, "", "Weight x |v W_O|, the size of what a key contributes."),
        "across": (bool, "", "Lay the texts out horizontally, for CJK or a page."),
    },
    "Rollout": {
        "fuse": (
            Literal["mean", "max", "min"], "",
            "How the heads of a layer are combined: mean, maximum or minimum of the weights.",
        ),
        "residual": (float, "A", "Weight of the residual connection, 0 to 1; default 0.5."),
        "nothing": (bool, "", "Add a column for contributions from no token."),
        "signed": (bool, "", "Keep negative weights: the product of A + I, not normalised."),
    },
    "Charts": {
        "metric": (list[str], "M", "Profile: entropy, distance, ..."),
        "method": (
            list[str], "M", "Curve, scores, budgets: importance score of heads; several for "
            "curve.",
        ),
        "axis": (
            Literal["heads", "parameters", "flops", "time"], "",
            "Curve: its x axis; time needs hgviz curve --time.",
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
            help="Captures or studies (.h5), or the output folder of hgviz study run.",
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="K",
            help="One capture: map, image, links, wall, levels, rollout, neurons; two: compare; "
            "one or more: profile, activation, spectrum; studies: curve, scores; a folder: seeds, "
            "budgets.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FIG.pdf",
            help="Output file: .pdf, .svg, .png, .pgf; .csv for its numbers; .html for a map that "
            "shows weights under the pointer.",
        ),
    ] = None,
    item: Annotated[
        str | None,
        typer.Option(metavar="N", help="Index of the text in a corpus, from 0; of two files 3,0."),
    ] = None,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Also save the numbers of the figure, as FIG.csv.")
    ] = False,
    *,
    options: Group,
) -> None:
    """Draw a figure for a paper.

    The metadata of the file (Keywords of a PDF, Description of an SVG or PNG) end with the command
    that reproduces it.
    """
    from hgviz import tasks
    from hgviz.figures import FIGURES
    from hgviz.figures.spec import options_of, spec_of

    chosen = {name: value for name, value in vars(options).items() if value not in (None, [])}
    if "head" in chosen:
        layer, number = layer_and_head(chosen.get("layer"), chosen["head"])
        chosen |= {"head": number} if layer is None else {"head": number, "layer": layer}
    kind = _kind(kind, len(sources))
    if unused := [name for name in chosen if name not in options_of(kind)]:
        raise typer.BadParameter(
            f"Figures of kind {kind} do not take --{unused[0]}, but "
            f"{', '.join(f'--{name}' for name in options_of(kind))}."
        )
    if out is None:
        raise typer.BadParameter("-o is missing: name an output file, such as -o figure.pdf.")
    require_unread(out, *sources)
    require_numbers(out, numbers, *sources)
    found = tasks.sources_of(kind, sources, _items(item or "0", len(sources)))
    spec = spec_of(kind, chosen, found)

    def work() -> str:
        return tasks.draw(tasks.panel(spec, found), out, numbers=numbers)

    terminal.say(f"{terminal.run(work, 'Drawing')}: {FIGURES[kind].label.lower()}.")


figure.__annotations__["options"] = FigureOptions  # a class that is made from a table


def _items(text: str, count: int) -> tuple[int, ...]:
    """Which text of each file: 3 of all of them, or 3,0. Raises BadParameter."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (1, count) or not all(part.isdecimal() for part in parts):
        raise typer.BadParameter(f"--item cannot be {text!r}; write 3, or 3,0 for two files.")
    numbers = tuple(map(int, parts))
    return numbers * count if len(numbers) == 1 else numbers


def _kind(kind: str | None, files: int) -> str:
    """The kind of figure. Raises BadParameter for none or for a wrong number of files."""
    from hgviz.figures import ANSWERS, FIGURES

    if kind is None:
        raise typer.BadParameter(f"--kind is missing: choose from {', '.join(FIGURES)}.")
    if kind in ANSWERS:
        raise typer.BadParameter(
            f"Figures of kind {kind} are drawn by the command that runs the model: "
            f"hgviz {ANSWERS[kind].verb} MODEL --text T -o FIG.pdf."
        )
    wanted = FIGURES[one_of(kind, FIGURES, "kind of figure")].of
    if files > 1 and wanted in ("capture", "study", "sweep"):
        one = "folder" if wanted == "sweep" else "file"
        raise typer.BadParameter(f"Figures of kind {kind} take one {one}.")
    if files != 2 and wanted == "pair":
        raise typer.BadParameter(f"Figures of kind {kind} take two captures: A.h5 B.h5.")
    return kind
