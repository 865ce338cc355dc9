"""The verbs that look: at a checkpoint, at a capture, at the window."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hgviz.cli import terminal
from hgviz.cli.options import (
    AsJson,
    Device,
    Head,
    ItemNumber,
    Layer,
    Npy,
    Rows,
    Source,
    Target,
    Window,
    ends_in,
    interval,
)
from hgviz.errors import no_attention_error
from hgviz.files import find_sample

if TYPE_CHECKING:
    from hgviz.core import Capture, Map


def demo(
    context: typer.Context,
    headless: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Do the same work off screen and leave it in DIR."),
    ] = None,
) -> int:
    """Open the sample in the window, or write it to ./hgviz-demo where there is no display."""
    window: Window = context.obj
    return window.demo(headless)


def info(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", parser=find_sample, help="A checkpoint, a capture or a study."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Show the levels, layers and heads of a checkpoint or capture, or what a study measured."""
    from hgviz import tasks

    facts = tasks.info(path)
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        terminal.show(facts)
        if facts["kind"] == "checkpoint" and not facts["layers"]:
            terminal.say(" ".join(no_attention_error(facts["family"]).lines))


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
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Of the tokens that slots are mixed of, signed.")
    ] = False,
    item: ItemNumber = 0,
) -> None:
    """Write the attention map of one head as float32: rows are queries, columns are keys."""
    opened = open_item(source, item)
    if tokens:
        from hgviz import tasks

        opened = tasks.of_tokens(opened)
    found = _map(opened, layer, head)
    for name, asked, size in zip(("row", "column"), (rows, columns), found.shape[1:], strict=True):
        _require_within(name, asked, size)
    terminal.write(out, found.read(head, rows, columns, zoom, reduce))


def logits(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", parser=find_sample, help="A capture (.h5), or a checkpoint."
        ),
    ],
    out: Npy,
    text: Annotated[str | None, typer.Option(metavar="T", help="Of a checkpoint: a text.")] = None,
    target: Target = None,
    text_file: Annotated[Path | None, typer.Option(metavar="F", help="Text in UTF-8.")] = None,
    generate: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Of a checkpoint: go on for up to N tokens first."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="S", min=0, help="Draw them; else the likeliest follow.")
    ] = None,
    item: ItemNumber = 0,
    device: Device = "auto",
) -> None:
    """Write a model's logits, or its last hidden states if it has no output layer.

    Of a capture, or of any checkpoint on a text, also of one that does not attend.
    """
    from hgviz import tasks
    from hgviz.core import HgvizError

    if text is not None and text_file is not None:
        raise typer.BadParameter("Give one of --text and --text-file.")
    if text is None and text_file is None:
        if generate is not None or seed is not None or target is not None:
            raise typer.BadParameter("--generate, --seed and --target go with a text.")
        if tasks.kind_of(source) == "checkpoint":
            raise typer.BadParameter(f"{source.name} is a checkpoint: give it a text, --text T.")
        opened = open_item(source, item)
        if opened.logits is None:
            raise HgvizError(
                f"{source} holds no logits: "
                "its capture was interrupted before the end of the model",
                "Run the same capture again to complete it",
            )
        terminal.write(out, opened.logits)
        return
    if tasks.kind_of(source) == "capture":
        raise typer.BadParameter(f"{source.name} is a capture, which has its text: give none.")
    model = terminal.run(partial(tasks.load, source, device), f"Opening {source.name}")
    prompt, second = tasks.prompt_from(model, text, text_file, target=target)
    if generate is not None:
        given = prompt if second is None else second
        work = partial(tasks.write, model, prompt, generate, second, seed)
        whole = terminal.run(work, "Writing")
        terminal.quote(whole.words(len(given), len(whole)) or " ".join(whole.pieces[len(given) :]))
        prompt, second = (whole, None) if second is None else (prompt, whole)
    terminal.write(out, terminal.run(partial(tasks.answers, model, prompt, second), "Answering"))


def selftest(context: typer.Context) -> int:
    """Check this installation: model, capture, file, figure and window."""
    window: Window = context.obj
    return window.selftest()


def open_item(path: Path, item: int) -> Capture:
    """A text of a capture, as it lies in its file."""
    from hgviz import tasks

    return tasks.capture_at(path, item)


def _map(opened: Capture, layer: int, head: int) -> Map:
    """The maps of a layer that is there and has that head; raises HgvizError."""
    from hgviz.core import HgvizError

    look = f"Run `hgviz info {opened.path}` to see every layer"
    if layer >= len(opened.maps):
        last = len(opened.maps) - 1
        raise HgvizError(f"There is no layer {layer}: the layers are 0 to {last}", look)
    found = opened.maps[layer]
    if found is None:
        raise HgvizError(
            f"Layer {layer} is not in {opened.path}: "
            "its capture was interrupted before it came so far",
            "Run the same capture again to complete it",
        )
    if head not in found.heads:
        heads = ", ".join(map(str, found.heads)) or "none"
        raise HgvizError(f"Layer {layer} has no head {head}: its heads are {heads}", look)
    return found


def _require_within(name: str, asked: range | None, size: int) -> None:
    from hgviz.core import HgvizError

    if asked and asked.stop > size:
        raise HgvizError(
            f"There is no {name} {asked.stop - 1:,}: "
            f"this map has {size:,} {name}s, 0 to {size - 1:,}",
            f"End the interval at {size} or before",
        )
