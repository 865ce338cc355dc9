"""The options that several verbs share, and what a verb gets from the window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hgviz.errors import HgvizError
from hgviz.files import find_sample

if TYPE_CHECKING:
    from hgviz.core import Capture, Modality, ModelSpec, RolloutOptions


OTHERS = {
    ".csv", ".html", ".json", ".npy", ".npz", ".pdf", ".png", ".safetensors", ".svg", ".tex",
    ".toml", ".tsv", ".txt",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Window:
    """What the verbs of the window do; __main__ brings it, since no face knows the other."""

    demo: Callable[[Path | None], int]
    selftest: Callable[[], int]


def interval(text: str) -> range:
    first, _, last = text.partition(":")
    if not (first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise typer.BadParameter(f"{text!r} is no interval; it is A:B, from A up to B, A below B.")
    return range(int(first), int(last))


def ends_in(*endings: str) -> Callable[[Path | None], Path | None]:
    """A check of an option, before any work: the ending of its path, and that its folder exists."""

    def check(path: Path | None) -> Path | None:
        if path is not None and not path.name.lower().endswith(endings):
            raise typer.BadParameter(f"{path.name} does not end in {' or '.join(endings)}.")
        if path is not None and not path.parent.is_dir():
            raise HgvizError(
                f"{path} cannot be written: there is no folder {path.parent}",
                "Make it first, or choose another",
            )
        return path

    return check


def no_other(path: Path) -> Path:
    """A check of the option that names a capture or a study: not the ending of another file."""
    ending = path.suffix.lower()
    if ending in OTHERS:
        raise typer.BadParameter(f"{path.name} is written as HDF5: end it in .h5, not {ending}.")
    return path


def require_unread(out: Path | None, *given: Path | None) -> None:
    """Errors: BadParameter where what is written would replace a file that is read."""
    if out is None or not out.exists():
        return
    for one in given:
        if one is None or not one.exists():
            continue
        if one.samefile(out) or (one.is_dir() and one.samefile(out.parent)):
            raise typer.BadParameter(f"{out.name} is a file that is read; it would be replaced.")


def require_drawable(out: Path | None, *given: Path | None, numbers: bool = False) -> None:
    """The same of a figure, and of the numbers that are written beside it."""
    from hgviz.figures.spec import csv_beside

    require_unread(out, *given)
    if numbers and out is None:
        raise typer.BadParameter("--numbers goes with a figure: -o FIG.pdf.")
    if numbers and out is not None:
        require_unread(csv_beside(out), *given)


Checkpoint = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        parser=find_sample,
        help="A checkpoint: a folder, a weights file, a name in Hugging Face's cache, or "
        "sample/hourglass, sample/softmax, sample/ymish, sample/mixed, which come with hgviz.",
    ),
]
Off = Annotated[str, typer.Option("--off", metavar="3.5,4.*", help="Heads to switch off.")]
Streaming = Annotated[
    str,
    typer.Option(
        "--streaming",
        metavar="3.5,4.*",
        help="Heads that see only the first keys and the latest ones.",
    ),
]
Sink = Annotated[
    int, typer.Option("--sink", metavar="S", min=0, help="How many first keys these see.")
]
Recent = Annotated[
    int,
    typer.Option(
        "--recent", metavar="W", min=1, help="How many latest keys, their own among them."
    ),
]
Activation = Annotated[
    str | None,
    typer.Option(
        "--activation",
        metavar="A",
        help="Another activation for all heads: ymish, topk:8 (keys), ymish:l2-literal "
        "(norm), or a list that goes over the heads, softmax,ymish.",
    ),
]
TextColumn = Annotated[
    str, typer.Option("--text-column", metavar="C", help="Its name, or its number from 0.")
]
LabelColumn = Annotated[
    str, typer.Option("--label-column", metavar="C", help="Its name, or its number from 0.")
]
Data = Annotated[
    Path,
    typer.Option(
        "--data",
        metavar="D",
        parser=find_sample,
        help="Labelled rows (TSV, CSV, JSONL), of which a language model reads the texts alone, or "
        "a text; sample/reviews.tsv comes with hgviz.",
    ),
]


def renamed(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in filter(None, text.split(",")):
        one, sign, other = item.partition("=")
        if not (sign and one.strip() and other.strip()):
            raise typer.BadParameter(f"{item!r} does not say DATA=MODEL, as positive=LABEL_1 does.")
        if found.setdefault(one.strip(), other.strip()) != other.strip():
            raise typer.BadParameter(f"{one.strip()!r} is said to be two labels.")
    return found


Labels = Annotated[
    dict[str, str] | None,
    typer.Option(
        "--labels",
        metavar="A=B,...",
        parser=renamed,
        help="What the model calls the labels of the data: positive=LABEL_1,negative=LABEL_0.",
    ),
]
Device = Annotated[
    Literal["auto", "cpu", "cuda", "mps"],
    typer.Option("--device", envvar="HGVIZ_DEVICE", help="Where the model runs."),
]


def _scheduled(scheduler: str) -> str:
    """A check before any work. Errors: HgvizError."""
    if scheduler:
        from hgviz.cluster import require_scheduler

        require_scheduler(scheduler)
    return scheduler


Scheduler = Annotated[
    str,
    typer.Option(
        "--scheduler",
        metavar="S",
        callback=_scheduled,
        help="Where it is computed: local:N for N workers on this machine, tcp://host:8786, "
        "slurm:profile.yaml; here when left out.",
    ),
]
# of verbs that measure, and may draw what they found, or write its numbers
DRAWN = (".pdf", ".svg", ".png", ".pgf", ".csv")
FigureWidth = Annotated[
    str,
    typer.Option(
        "--width", metavar="W", help="Of a figure: 3.25in, 89mm, or a preset such as acl."
    ),
]
FigureTitle = Annotated[
    str | None,
    typer.Option("--title", metavar="T", help="Of a figure: in place of its own; '' for none."),
]
BesideNumbers = Annotated[
    bool, typer.Option("--numbers", help="Of a figure: its numbers beside it, as FIG.csv.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Source = Annotated[
    Path, typer.Argument(metavar="CAPTURE", parser=find_sample, help="A capture (.h5).")
]
ItemNumber = Annotated[
    int,
    typer.Option("--item", metavar="N", min=0, help="Which text, where many are in one file."),
]
TextPair = Annotated[
    str | None, typer.Option(metavar="T2", help="A second text of the same input (BERT).")
]
Target = Annotated[
    str | None, typer.Option(metavar="T3", help="The decoder's text, of an encoder-decoder.")
]
Image = Annotated[
    Path | None,
    typer.Option(metavar="F.png|.npy", help="An image, for models that read these."),
]
Audio = Annotated[
    Path | None,
    typer.Option(metavar="F.wav|.npy", help="A sound, for models that read these."),
]
Rows = Annotated[
    range | None,
    typer.Option(parser=interval, metavar="A:B", help="Only rows from A up to B."),
]
Layer = Annotated[int, typer.Option("--layer", min=0, help="Its number, from 0.")]
Head = Annotated[int, typer.Option("--head", min=0, help="Its number, from 0.")]
Npy = Annotated[
    Path,
    typer.Option("-o", "--out", metavar="OUT.npy", callback=ends_in(".npy"), help="Where to."),
]
Fuse = Annotated[
    Literal["mean", "max", "min"],
    typer.Option(help="What the heads of a layer become: their mean, the largest, the smallest."),
]
OfHeads = Annotated[
    str,
    typer.Option("--heads", metavar="3.5,4.*", help="Only these count in their layers."),
]
Residual = Annotated[
    float,
    typer.Option(metavar="A", help="How much of every sum is the residual path, 0 to 1."),
]
Signed = Annotated[
    bool,
    typer.Option("--signed", help="Weights below zero stay so: the product of A + I, undivided."),
]


def reads_of(image: Path | None, audio: Path | None) -> Modality:
    """What a model is to read."""
    return "image" if image is not None else "audio" if audio is not None else "text"


def require_read(spec: ModelSpec, image: Path | None, audio: Path | None) -> None:
    """Errors: HgvizError for an image or a sound that is not what a model reads."""
    for name, noun, given in (("image", "images", image), ("audio", "sound", audio)):
        if given is not None and spec.modality != name:
            raise HgvizError(
                f"this model reads no {noun}: its family is {spec.family}",
                f"Give what it reads: --{spec.modality}",
            )


def recipe_of(
    capture: Capture, fuse: str, heads: str, residual: float, signed: bool, nothing: bool = False
) -> RolloutOptions:
    """What the options ask for. Errors: HgvizError for what cannot be."""
    from hgviz.core import RolloutOptions, parse_heads

    named = tuple(sorted(parse_heads(heads, capture.spec.layers)))
    return RolloutOptions(fuse, named, residual, nothing, signed)  # type: ignore[arg-type]
