"""The verbs from a terminal. Everything heavy is imported by the verb that needs it."""

from __future__ import annotations

import json
import shlex
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import hgviz
from hgviz import terminal

if TYPE_CHECKING:
    from hgviz.core import Capture, Map

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Window:
    """What the verbs of the window do; __main__ brings it, since no face knows the other."""

    demo: Callable[[Path | None], int]
    selftest: Callable[[], int]


app = typer.Typer(
    name="hgviz",
    help="Look into transformer attention at every resolution.\n\n"
    "Without a command, hgviz opens the window: hgviz [PATH]... on checkpoints and captures. "
    "A file with the name of a command needs ./ before it.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(arguments: Sequence[str], window: Window) -> int:
    """Run one command line and give its exit code: 0 done, 2 wrong use, 1 anything else."""
    debug = "--debug" in arguments
    given = [one for one in arguments if one != "--debug"]
    try:
        code = app(args=given, prog_name="hgviz", standalone_mode=False, obj=window) or 0
    except typer.TyperException as error:
        verb = getattr(getattr(error, "ctx", None), "command_path", "hgviz")
        terminal.complain(f"{error.format_message()} `{verb} --help` shows what it takes.")
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except SystemExit:
        raise
    except BaseException as error:  # a panic in a Rust library is no Exception
        if debug:
            traceback.print_exc()
        terminal.complain(" ".join(terminal.explained(error).lines))
        return 1
    if code == INTERRUPTED:
        terminal.complain("Stopped.")
        return 1
    return int(code)


def verbs() -> frozenset[str]:
    """The names of all commands."""
    return frozenset(
        str(one.name or one.callback.__name__) for one in app.registered_commands if one.callback
    )


# --- options that several verbs share -------------------------------------------------------------


def _interval(text: str) -> range:
    first, _, last = text.partition(":")
    if not (first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise typer.BadParameter(f"{text!r} is no interval; it is A:B, from A up to B, A below B.")
    return range(int(first), int(last))


def _ends_in(*endings: str) -> Callable[[Path], Path]:
    def check(path: Path) -> Path:
        if not path.name.endswith(endings):
            raise typer.BadParameter(f"{path.name} does not end in {' or '.join(endings)}.")
        return path

    return check


Source = Annotated[Path, typer.Argument(metavar="CAPTURE", help="A capture (.h5).")]
Rows = Annotated[
    range | None,
    typer.Option(parser=_interval, metavar="A:B", help="Only rows from A up to B."),
]
Layer = Annotated[int, typer.Option("--layer", min=0, help="Its number, from 0.")]
Head = Annotated[int, typer.Option("--head", min=0, help="Its number, from 0.")]
Npy = Annotated[
    Path,
    typer.Option("-o", "--out", metavar="OUT.npy", callback=_ends_in(".npy"), help="Where to."),
]


def _tell_version(wanted: bool) -> None:
    if wanted:
        terminal.say(f"hgviz {hgviz.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_tell_version, help="Say the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error comes from; may stand anywhere.")
    ] = False,
) -> None:
    """The options of no verb; main takes --debug out, it stands here for the help."""


# --- the verbs ------------------------------------------------------------------------------------


@app.command()
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


@app.command()
def info(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A checkpoint or a capture.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a checkpoint or a capture holds: its levels, layers and heads."""
    from hgviz import tasks

    facts = tasks.info(path)
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        terminal.show(facts)


@app.command()
def capture(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A checkpoint: a folder or a weights file.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="OUT.h5", help="Where to.")],
    text: Annotated[str | None, typer.Option(metavar="T", help="The text itself.")] = None,
    text_file: Annotated[Path | None, typer.Option(metavar="F", help="Text in UTF-8.")] = None,
    ids: Annotated[Path | None, typer.Option(metavar="F.json", help='{"input_ids": [...]}')] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT.h5.")] = False,
    off: Annotated[str, typer.Option(metavar="3.5,4.*", help="Heads to switch off.")] = "",
    masking: Annotated[
        Literal["compat", "strict"] | None,
        typer.Option(help="Treat masks as the model's own package does, or strictly."),
    ] = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda", "mps"],
        typer.Option(envvar="HGVIZ_DEVICE", help="Where the model runs."),
    ] = "auto",
    dtype: Annotated[
        Literal["float64", "float32", "bfloat16", "float16"],
        typer.Option(help="What the model computes in."),
    ] = "float32",
) -> None:
    """Run a model on one text and keep the attention of every head.

    Give the text by --text, --text-file or --ids. An interrupted capture leaves OUT.h5.part; the
    same command goes on from there.
    """
    from hgviz import tasks

    if sum(one is not None for one in (text, text_file, ids)) != 1:
        raise typer.BadParameter("Give exactly one of --text, --text-file and --ids.")
    loaded = terminal.run(tasks.load(model, device, dtype, masking), f"Opening {model.name}")
    prompt = tasks.prompt_from(loaded, text, text_file, ids)
    task = tasks.capture(loaded, prompt, out, tasks.heads_from(off, loaded.spec), force)
    kept = f"The layers that were done are kept in {out}.part; the same command goes on from there"
    made = terminal.run(task, "Capturing", kept)
    heads, layers = len(made.spec.heads), len(made.maps)
    terminal.say(f"{out}: {heads:,} heads in {layers} layers on {len(prompt):,} tokens.")


@app.command("map")
def map_(
    source: Source,
    layer: Layer,
    head: Head,
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", metavar="OUT.npy|.csv", callback=_ends_in(".npy", ".csv"), help="Where."
        ),
    ],
    rows: Rows = None,
    columns: Annotated[
        range | None,
        typer.Option(parser=_interval, metavar="A:B", help="Only columns from A up to B."),
    ] = None,
    zoom: Annotated[
        int, typer.Option(min=0, metavar="Z", help="A cell covers 2^Z x 2^Z weights.")
    ] = 0,
    reduce: Annotated[Literal["max", "mean"], typer.Option(help="What a cell shows.")] = "max",
) -> None:
    """Write the weights of one head, queries down and keys across, in float32."""
    found = _map(_open(source), layer, head)
    for name, asked, size in zip(("row", "column"), (rows, columns), found.shape[1:], strict=True):
        _require_within(name, asked, size)
    terminal.write(out, found.read(head, rows, columns, zoom, reduce))


@app.command()
def logits(source: Source, out: Npy) -> None:
    """Write what the model gave: logits, or the last hidden states where it has no head."""
    from hgviz.core import HgvizError

    opened = _open(source)
    if opened.logits is None:
        raise HgvizError(
            f"{source} holds no logits",
            "its capture was interrupted before the end of the model",
            "Run the same capture again to complete it",
        )
    terminal.write(out, opened.logits)


@app.command()
def rollout(source: Source, out: Npy, rows: Rows = None) -> None:
    """Write all maps composed: how much of each token reaches each token."""
    from hgviz import tasks

    limits = (rows.start, rows.stop) if rows else None
    terminal.write(out, terminal.run(tasks.rollout(_open(source), limits), "Composing the maps"))


@app.command()
def train(
    config: Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="What to train on what.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="The checkpoint.")],
) -> None:
    """Train a small Hourglass on text files; after a kill, the same command goes on."""
    from hgviz import tasks

    kept = f"The last checkpoint is kept in {out}; the same command goes on from there"
    report = terminal.run(tasks.train(config, out), "Training", kept)
    terminal.say(
        f"{out}: {report.bits_per_byte:.3f} bits per byte on the held-out text "
        f"after {report.steps:,} steps in {report.seconds / 60:.0f} minutes."
    )


@app.command()
def figure(
    source: Source,
    kind: Annotated[str, typer.Option(metavar="K", help="What: map, wall or levels.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FIG.pdf", help="Where to.")],
    layer: Layer = 0,
    head: Head = 0,
    query: Annotated[
        int | None, typer.Option(min=0, help="A token, from 0; the last one when left out.")
    ] = None,
    width: Annotated[
        str, typer.Option(metavar="W", help="Of the page: 3.25in, 89mm, or a preset such as acl.")
    ] = "neurips",
) -> None:
    """Draw a figure for a paper; every kind ignores the options it does not use."""
    from hgviz import tasks
    from hgviz.core import Selection
    from hgviz.figures import FIGURES, Spec

    if kind not in FIGURES:
        raise typer.BadParameter(f"There is no kind {kind!r}; there are {', '.join(FIGURES)}.")
    command = ["hgviz", "figure", source.name, "--kind", kind, "--layer", layer, "--head", head]
    command += [] if query is None else ["--query", query]
    command += ["--width", width, "-o", out.name]
    spec = Spec(kind, Selection(layer, head, query), width=width)
    task = tasks.figure(spec, _open(source), out, shlex.join(map(str, command)))
    terminal.say(f"{terminal.run(task, 'Drawing')}: {FIGURES[kind].label.lower()}.")


@app.command()
def selftest(context: typer.Context) -> int:
    """Prove that this installation works: model, capture, file, figure and window."""
    window: Window = context.obj
    return window.selftest()


def _open(path: Path) -> Capture:
    from hgviz.store import open_capture

    return open_capture(path)


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
