"""The verbs that look: at a checkpoint, at a capture, at the window."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hgviz import terminal
from hgviz.cli import linking
from hgviz.cli.options import (
    AsJson,
    Fuse,
    Head,
    ItemNumber,
    Layer,
    Npy,
    OfHeads,
    Residual,
    Rows,
    Signed,
    Source,
    Window,
    ends_in,
    interval,
    recipe_of,
)
from hgviz.resources import bundled

if TYPE_CHECKING:
    from hgviz.core import Capture, Map
    from hgviz.study import Study


def demo(
    context: typer.Context,
    headless: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Do the same work off screen and leave it in DIR."),
    ] = None,
) -> int:
    """Open the window on the sample; off screen into ./hgviz-demo where there is no display."""
    window: Window = context.obj
    return window.demo(headless)


def info(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", parser=bundled, help="A checkpoint, a capture or a study."),
    ],
    as_json: AsJson = False,
) -> None:
    """Say what a checkpoint, a capture or a study holds: its levels, layers and heads."""
    from hgviz import tasks

    facts = tasks.info(path)
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        terminal.show(facts)


def map_(
    source: Source,
    layer: Layer,
    head: Head,
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", metavar="OUT.npy|.csv", callback=ends_in(".npy", ".csv"), help="Where."
        ),
    ],
    rows: Rows = None,
    columns: Annotated[
        range | None,
        typer.Option(parser=interval, metavar="A:B", help="Only columns from A up to B."),
    ] = None,
    zoom: Annotated[
        int, typer.Option(min=0, metavar="Z", help="A cell covers 2^Z x 2^Z weights.")
    ] = 0,
    reduce: Annotated[Literal["max", "mean"], typer.Option(help="What a cell shows.")] = "max",
    item: ItemNumber = 0,
) -> None:
    """Write the weights of one head, queries down and keys across, in float32."""
    found = _map(open_item(source, item), layer, head)
    for name, asked, size in zip(("row", "column"), (rows, columns), found.shape[1:], strict=True):
        _require_within(name, asked, size)
    terminal.write(out, found.read(head, rows, columns, zoom, reduce))


def logits(source: Source, out: Npy, item: ItemNumber = 0) -> None:
    """Write what the model gave: logits, or the last hidden states where it has no head."""
    from hgviz.core import HgvizError

    opened = open_item(source, item)
    if opened.logits is None:
        raise HgvizError(
            f"{source} holds no logits",
            "its capture was interrupted before the end of the model",
            "Run the same capture again to complete it",
        )
    terminal.write(out, opened.logits)


def figure(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", parser=bundled, help="Captures, or studies (.h5)."),
    ],
    kind: Annotated[
        str,
        typer.Option(
            metavar="K",
            help="Of a capture map, links, wall, levels, rollout; of two compare; of some "
            "activation; of studies curve, scores.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "-o",
            "--out",
            metavar="FIG.pdf",
            help="Where to; .csv: the numbers of compare, activation, curve and scores.",
        ),
    ],
    layer: Layer = 0,
    head: Head = 0,
    query: Annotated[
        int | None, typer.Option(min=0, help="A token, from 0; the last one when left out.")
    ] = None,
    width: Annotated[
        str, typer.Option(metavar="W", help="Of the page: 3.25in, 89mm, or a preset such as acl.")
    ] = "neurips",
    item: ItemNumber = 0,
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="M", help="Of studies: a score; curves of several may be named."),
    ] = None,
    axis: Annotated[
        Literal["heads", "parameters", "flops", "time"],
        typer.Option(help="What curves are drawn over; time: of hgviz curve --time."),
    ] = "heads",
    fuse: Fuse = "mean",
    heads: OfHeads = "",
    residual: Residual = 0.5,
    signed: Signed = False,
    queries: linking.Queries = "",
    together: linking.Together = "each",
    most: linking.Most = None,
    mass: linking.Mass = 0.0,
    least: linking.Least = 0.0,
    words: linking.Words = False,
    special: linking.Special = True,
    values: linking.Values = False,
    across: linking.Across = False,
) -> None:
    """Draw a figure for a paper; every kind ignores the options it does not use."""
    from hgviz import tasks
    from hgviz.core import Selection, replace
    from hgviz.figures import FIGURES, Spec

    if kind not in FIGURES:
        raise typer.BadParameter(f"There is no kind {kind!r}; there are {', '.join(FIGURES)}.")
    wanted = FIGURES[kind].of
    if len(sources) > 1 and wanted in ("capture", "study"):
        raise typer.BadParameter(f"A figure of kind {kind} is of one file.")
    if len(sources) != 2 and wanted == "pair":
        raise typer.BadParameter(f"A figure of kind {kind} is of two captures: A.h5 B.h5.")
    spec = Spec(kind, Selection(layer, head, query), width=width, methods=tuple(method or ()),
                axis=axis)  # fmt: skip
    if wanted in ("study", "studies"):
        task = tasks.figure(spec, [_study(source) for source in sources], out)
    else:
        captures = [open_item(source, item) for source in sources]
        if kind == "rollout":
            recipe = recipe_of(captures[0], fuse, heads, residual, signed)
            spec = replace(spec, recipe=recipe)
        if kind == "links":
            links = linking.linking_of(
                captures[0], layer, queries, heads, fuse=together, most=most, mass=mass,
                least=least, words=words, special=special, values=values, across=across,
            )  # fmt: skip
            first = links.heads[0] if links.heads else spec.selection.head_id
            spec = replace(spec, links=links, selection=Selection(*first, query))
        task = tasks.figure(spec, captures, out)
    terminal.say(f"{terminal.run(task, 'Drawing')}: {FIGURES[kind].label.lower()}.")


def selftest(context: typer.Context) -> int:
    """Prove that this installation works: model, capture, file, figure and window."""
    window: Window = context.obj
    return window.selftest()


def open_item(path: Path, item: int) -> Capture:
    """A text of a capture, as it lies in its file."""
    from hgviz.core import HgvizError
    from hgviz.store import is_capture, open_capture

    if path.is_dir() and not is_capture(path):
        raise HgvizError(
            f"{path} is no capture",
            "it is a folder, and a capture is a file that hgviz capture wrote",
            f"Capture a text first: hgviz capture {path} --text T -o OUT.h5",
        )
    return open_capture(path, item)


def _study(path: Path) -> Study:
    from hgviz.core import HgvizError
    from hgviz.store import is_study, open_study

    if path.exists() and not path.is_dir() and not is_study(path):
        raise HgvizError(
            f"{path} is no study",
            "figures of this kind show what was measured of all heads",
            "Measure them first: hgviz importance MODEL --data D -o STUDY.h5",
        )
    return open_study(path)


def _map(opened: Capture, layer: int, head: int) -> Map:
    """The maps of a layer that is there and has that head; raises HgvizError."""
    from hgviz.core import HgvizError

    look = f"Run `hgviz info {opened.path}` to see every layer"
    if layer >= len(opened.maps):
        last = len(opened.maps) - 1
        raise HgvizError(f"There is no layer {layer}", f"the layers are 0 to {last}", look)
    found = opened.maps[layer]
    if found is None:
        raise HgvizError(
            f"Layer {layer} is not in {opened.path}",
            "its capture was interrupted before it came so far",
            "Run the same capture again to complete it",
        )
    if head not in found.heads:
        heads = ", ".join(map(str, found.heads)) or "none"
        raise HgvizError(f"Layer {layer} has no head {head}", f"its heads are {heads}", look)
    return found


def _require_within(name: str, asked: range | None, size: int) -> None:
    from hgviz.core import HgvizError

    if asked and asked.stop > size:
        raise HgvizError(
            f"There is no {name} {asked.stop - 1:,}",
            f"this map has {size:,} {name}s, 0 to {size - 1:,}",
            f"End the interval at {size} or before",
        )
