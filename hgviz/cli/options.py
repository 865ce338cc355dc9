"""The options of the command line, each declared once, in groups that verbs take as one argument.

A verb declares `inputs: Inputs` and gets all options of that group; `expanded` makes one option of
each field when the verb becomes a command.
"""

from __future__ import annotations

import atexit
import inspect
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from hgviz.cli import terminal
from hgviz.errors import HgvizError, choose, require
from hgviz.files import find_sample

if TYPE_CHECKING:
    from hgviz.core import (
        Capture,
        HeadSet,
        Modality,
        ModelSpec,
        Prompt,
        RolloutOptions,
        Streaming,
    )
    from hgviz.figures.spec import Spec
    from hgviz.models.model import Model

NOT_HDF5 = {
    ".csv", ".html", ".json", ".npy", ".npz", ".pdf", ".png", ".safetensors", ".svg", ".tex",
    ".toml", ".tsv", ".txt",
}  # fmt: skip
FIGURE_FILES = (".pdf", ".svg", ".png", ".pgf", ".csv")


@dataclass(frozen=True, slots=True)
class Window:
    """What the window does for the verbs demo and selftest; __main__ passes it, since the command
    line does not import the window."""

    demo: Callable[[Path | None], int]
    selftest: Callable[[], int]


# --- parsers and checks of single options ---------------------------------------------------------


def interval(text: str) -> range:
    """A:B as range(A, B). Raises BadParameter."""
    first, _, last = text.partition(":")
    if not (first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise typer.BadParameter(f"{text!r} is not a range; write START:END with START < END.")
    return range(int(first), int(last))


def label_names(text: str) -> dict[str, str]:
    """A=B,C=D as a dictionary. Raises BadParameter."""
    names: dict[str, str] = {}
    for item in filter(None, text.split(",")):
        label, sign, name = (part.strip() for part in item.partition("="))
        if not (sign and label and name):
            raise typer.BadParameter(f"{item!r} is not DATA=MODEL, such as positive=LABEL_1.")
        if names.setdefault(label, name) != name:
            raise typer.BadParameter(f"{label!r} is mapped to two labels.")
    return names


def data_file(name: str) -> Path:
    """A file of data by its path, or of what is on standard input ("-"), for as long as this runs.

    That is JSON lines where it begins with a brace, a table where its first line has tabs or is
    names with commas between them, else a text. Raises HgvizError where there is nothing.
    """
    if Path(name) != terminal.STDOUT:
        return find_sample(name)
    from hgviz.models.prompts import read_standard_input

    text = read_standard_input()
    first = text.split("\n", 1)[0].strip()
    is_names = re.fullmatch(r'[\w"]+(,[\w"]+)+', first)
    ending = (
        "jsonl" if first[:1] == "{" else "tsv" if "\t" in first else "csv" if is_names else "txt"
    )
    folder = tempfile.TemporaryDirectory(prefix="hgviz-")
    atexit.register(folder.cleanup)
    path = Path(folder.name) / f"standard-input.{ending}"
    path.write_text(text, "utf-8")
    return path


def ends_in(*endings: str, or_stdout: bool = False) -> Callable[[Path | None], Path | None]:
    """A callback that requires one of some endings and that the folder exists, before any work.

    or_stdout: whether "-" is accepted, too.
    """

    def check(path: Path | None) -> Path | None:
        if or_stdout and path == terminal.STDOUT:
            return path
        if path is not None and not path.name.lower().endswith(endings):
            raise typer.BadParameter(f"{path.name} does not end in {' or '.join(endings)}.")
        require(
            path is None or path.parent.is_dir(),
            f"{path} cannot be written: the folder {path and path.parent} does not exist",
            "Create it first, or choose another one",
        )
        return path

    return check


def mask_file(path: Path | None) -> Path | None:
    """Require a name ending in .json, and a mask where there is such a file. Raises HgvizError."""
    from hgviz.maskfile import read_mask_file

    if ends_in(".json")(path) is not None and path is not None and path.exists():
        read_mask_file(path)
    return path


def hdf5(path: Path | None) -> Path | None:
    """Refuse a name that ends like another kind of file. Raises BadParameter."""
    if path is not None and (ending := path.suffix.lower()) in NOT_HDF5:
        raise typer.BadParameter(f"{path.name} will be HDF5: end it in .h5, not {ending}.")
    return path


def require_unread(out: Path | None, *read: Path | None) -> None:
    """Require that writing out replaces no file that is read. Raises BadParameter."""
    if out is None or not out.exists():
        return
    for path in read:
        if path is None or not path.exists():
            continue
        if path.samefile(out) or (path.is_dir() and path.samefile(out.parent)):
            raise typer.BadParameter(f"{out.name} is also an input, which would be replaced.")


def one_of(name: str, names: Iterable[str], noun: str) -> str:
    """One of some names. Raises BadParameter with the nearest one, or with all of them."""
    try:
        return choose(name, names, noun)
    except HgvizError as error:
        raise typer.BadParameter(str(error)) from None


def require_one(**inputs: object) -> None:
    """Require that exactly one of some options is given. Raises BadParameter."""
    flags = [f"--{name.replace('_', '-')}" for name in inputs]
    if sum(value is not None for value in inputs.values()) != 1:
        raise typer.BadParameter(f"Give exactly one of {', '.join(flags[:-1])} and {flags[-1]}.")


# --- single options -------------------------------------------------------------------------------

Checkpoint = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        parser=find_sample,
        help="Checkpoint: a folder, a weights file, a name in the Hugging Face cache, or one that "
        "comes with hgviz: sample/hourglass, sample/softmax, sample/ymish, sample/mixed.",
    ),
]
CaptureFile = Annotated[
    Path, typer.Argument(metavar="CAPTURE", parser=find_sample, help="A capture (.h5).")
]
CaptureOrModel = Annotated[
    Path,
    typer.Argument(metavar="PATH", parser=find_sample, help="A capture (.h5) or a checkpoint."),
]
Item = Annotated[
    int,
    typer.Option("--item", metavar="N", min=0, help="Index of the text in a corpus, from 0."),
]
Layer = Annotated[
    int | None,
    typer.Option("--layer", min=0, help="Layer index, from 0, unless --head names it."),
]
Head = Annotated[
    str, typer.Option("--head", metavar="11.2|2", help="LAYER.HEAD, or HEAD with --layer.")
]
Rows = Annotated[
    range | None,
    typer.Option(parser=interval, metavar="START:END", help="Only these rows, without row END."),
]
Off = Annotated[
    str,
    typer.Option(
        "--off", metavar="3.5,4.*|@FILE", help="Heads to switch off, or a mask file of them."
    ),
]
Keep = Annotated[
    str, typer.Option(metavar="N|P%", help="Keep this many heads, the most important ones.")
]
MaskOut = Annotated[
    Path | None,
    typer.Option(
        "--mask",
        metavar="FILE.json",
        callback=mask_file,
        help="Also save the other heads as a mask file, for --off @FILE.",
    ),
]
AblatedBy = Annotated[
    Literal["zero", "mean", "resample"],
    typer.Option(
        "--ablation",
        help="What replaces the output of a head that is off: zeros, its mean over the data, or "
        "its output for another example at the same position.",
    ),
]
Activation = Annotated[
    str | None,
    typer.Option(
        "--activation",
        metavar="A",
        help="Replace the activation of all heads: ymish, topk:8 (8 keys), ymish:l2-literal (with "
        "a norm), or a list for equal blocks of heads: softmax,ymish.",
    ),
]
Device = Annotated[
    Literal["auto", "cpu", "cuda", "mps"],
    typer.Option("--device", envvar="HGVIZ_DEVICE", help="Device that the model runs on."),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=1, help="Use a random sample of N examples."),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        metavar="N",
        min=1,
        show_default="32 texts; 8,192 tokens of one text",
        help="Maximum number of examples per batch; fewer need less memory.",
    ),
]
Corpus = Annotated[
    Path | None,
    typer.Option(
        "--corpus",
        metavar="F.txt|.tsv|.csv|.jsonl",
        parser=find_sample,
        help="File of many texts: one per line, or rows with a column of texts.",
    ),
]
Generate = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="First generate up to N tokens."),
]
DrawSeed = Annotated[
    int | None, typer.Option(metavar="S", min=0, help="Sample with this seed (default: greedy).")
]
OutHdf5 = Annotated[
    Path, typer.Option("-o", "--out", metavar="OUT.h5", callback=hdf5, help="Output file.")
]
OutArray = Annotated[
    Path,
    typer.Option(
        "-o",
        "--out",
        metavar="OUT.npy|.csv|.npz|-",
        callback=ends_in(".npy", ".csv", ".npz", or_stdout=True),
        help="Output file; .npz also holds the tokens; -: CSV to standard output.",
    ),
]
OutFolder = Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Output folder.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing output.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


# --- groups ---------------------------------------------------------------------------------------


class Group:
    """A dataclass whose fields are options."""

    def options(self) -> dict[str, Any]:
        """The options by their names on the command line."""
        return {f"--{name.replace('_', '-')}": value for name, value in vars(self).items()}


@dataclass(frozen=True)
class Texts(Group):
    """A text that a model reads."""

    text: Annotated[str | None, typer.Option(metavar="T", help="Input text.")] = None
    text_file: Annotated[
        Path | None, typer.Option(metavar="F|-", help="Input text file (UTF-8); -: standard input.")
    ] = None
    text_pair: Annotated[
        str | None, typer.Option(metavar="T2", help="Second text of a pair (BERT).")
    ] = None
    target: Annotated[
        str | None, typer.Option(metavar="T3", help="Decoder text (encoder-decoders).")
    ] = None

    def __post_init__(self) -> None:
        """Read the text where it is on standard input, once for all uses of it."""
        if self.text is None and self.text_file == Path("-"):
            from hgviz.models.prompts import read_standard_input

            object.__setattr__(self, "text", read_standard_input())
            object.__setattr__(self, "text_file", None)

    def alternatives(self) -> dict[str, Any]:
        """The options of which one is given, with their values."""
        names = ("text", "text_file", "ids", "image", "audio")
        found = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if found.get("image") or found.get("audio"):
            found.pop("ids", None)  # what the decoder reads beside an image or a sound
        return found

    @property
    def any(self) -> bool:
        """Whether one of the alternatives is given."""
        return any(value is not None for value in self.alternatives().values())

    @property
    def signal(self) -> Path | None:
        """The file of an image or a sound."""
        return getattr(self, "image", None) or getattr(self, "audio", None)

    @property
    def files(self) -> list[Path]:
        """All files that are read."""
        return [value for value in vars(self).values() if isinstance(value, Path)]

    @property
    def modality(self) -> Modality:
        """What the model has to read."""
        if getattr(self, "image", None) is not None:
            return "image"
        return "audio" if getattr(self, "audio", None) is not None else "text"

    def require_one(self, **others: object) -> None:
        """Require exactly one input, and that a second text goes with one. others: options of the
        verb that take the place of an input. Raises BadParameter."""
        require_one(**self.alternatives(), **others)
        self.require_first()

    def require_first(self) -> None:
        """Require that --text-pair and --target go with a text. Raises BadParameter."""
        if (self.text_pair, self.target) != (None, None):
            if getattr(self, "ids", None) is not None:
                raise typer.BadParameter(
                    "--text-pair and --target need a text; --ids holds all inputs itself."
                )
            if not self.any or (self.text_pair is not None and self.signal):
                raise typer.BadParameter("--text-pair and --target need --text or --text-file.")

    def require_read_by(self, spec: ModelSpec) -> None:
        """Require that the model reads what is given. Raises HgvizError."""
        for name, noun in (("image", "images"), ("audio", "sound")):
            require(
                getattr(self, name, None) is None or spec.modality == name,
                f"this model does not read {noun}: its family is {spec.family}",
                f"Use --{spec.modality}",
            )

    def read(
        self, model: Model, boundaries: str = "", writes: bool = False
    ) -> tuple[Prompt, Prompt | None]:
        """The prompt of a model and, where it has a decoder with a second text, that text's.

        boundaries: where segments end. writes: the model will go on with it. Raises HgvizError.
        """
        from hgviz import tasks

        self.require_read_by(model.spec)
        ids = getattr(self, "ids", None)
        return tasks.read_prompts(
            model, self.text, text_file=self.text_file, ids_file=ids, pair=self.text_pair,
            target=self.target, boundaries=boundaries, signal_file=self.signal, writes=writes,
        )  # fmt: skip

    def full_text(self) -> str:
        """The text itself, "" where none is given. Raises HgvizError for a file that is no text."""
        from hgviz.models.prompts import read_text

        return read_text(self.text_file) if self.text_file is not None else self.text or ""


@dataclass(frozen=True)
class TextsOrIds(Texts):
    """A text, or its token ids."""

    ids: Annotated[
        Path | None,
        typer.Option(
            metavar="F.json",
            help='Token IDs: {"input_ids": [...]}, optional "attention_mask", "token_type_ids", '
            '"position_ids", "decoder_input_ids", "decoder_attention_mask", '
            '"encoder_hidden_states", "encoder_attention_mask", "boundaries".',
        ),
    ] = None


@dataclass(frozen=True)
class TextsOrSignals(Texts):
    """A text, an image or a sound."""

    image: Annotated[
        Path | None,
        typer.Option(metavar="F.png|.npy", help="Image, for models of images."),
    ] = None
    audio: Annotated[
        Path | None, typer.Option(metavar="F.wav|.npy", help="Sound, for models of sound.")
    ] = None


@dataclass(frozen=True)
class Inputs(TextsOrSignals, TextsOrIds):
    """Everything that models read."""


@dataclass(frozen=True)
class Labelled(Group):
    """Columns of the data, and names of their labels."""

    text_column: Annotated[
        str, typer.Option(metavar="C", help="Column of the texts: name or index from 0.")
    ] = ""
    label_column: Annotated[
        str, typer.Option(metavar="C", help="Column of the labels: name or index from 0.")
    ] = ""
    labels: Annotated[
        dict[str, str] | None,
        typer.Option(
            metavar="A=B,...",
            parser=label_names,
            help="Map labels of the data to classes, such as positive=LABEL_1.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Data(Labelled):
    """Data that a model is scored on."""

    data: Annotated[
        Path,
        typer.Option(
            metavar="D|-",
            parser=data_file,
            help="Labelled rows (TSV, CSV, JSONL; language models read only the texts), or a text "
            "file; sample/reviews.tsv comes with hgviz; -: standard input.",
        ),
    ]


@dataclass(frozen=True)
class StreamingHeads(Group):
    """Heads that attend to the first keys and the latest ones only."""

    streaming: Annotated[
        str,
        typer.Option(metavar="3.5,4.*", help="Heads limited to the first and latest keys."),
    ] = ""
    sink: Annotated[
        int, typer.Option(metavar="S", min=0, help="Number of first keys of streaming heads.")
    ] = 4
    recent: Annotated[
        int,
        typer.Option(metavar="W", min=1, help="Number of latest keys, with the query's own."),
    ] = 256

    def with_mask(self, off: str, spec: ModelSpec) -> tuple[HeadSet, Streaming]:
        """The heads that --off switches off, and the streaming heads: those named here and those
        of the mask file that --off may name. Raises HgvizError for heads that the model lacks."""
        from hgviz.core import Streaming, parse_heads
        from hgviz.maskfile import read_mask

        heads_off, streaming = read_mask(off, spec)
        streaming |= parse_heads(self.streaming, spec.layers)
        return heads_off, Streaming(streaming, self.sink, self.recent)


@dataclass(frozen=True)
class Page(Group):
    """How a figure is drawn."""

    width: Annotated[
        str,
        typer.Option(metavar="W", help="Figure width: 3.25in, 89mm, or a preset such as acl."),
    ] = "neurips"
    title: Annotated[
        str | None,
        typer.Option(metavar="T", help="Figure title in place of the default; '' for none."),
    ] = None
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Also save the numbers of the figure, as FIG.csv.")
    ] = False

    def require(self, out: Path | None, *read: Path | None) -> bool:
        """Whether out is a figure; require that it can be drawn, before any work.

        Raises BadParameter for a file that is read, HgvizError for an unknown width.
        """
        from hgviz.figures import points

        is_figure = out is not None and out.name.lower().endswith(FIGURE_FILES)
        require_unread(out, *read)
        require_numbers(out if is_figure else None, self.numbers, *read)
        if is_figure:
            points(self.width)
        return is_figure

    def spec(self, kind: str, **more: Any) -> Spec:
        """The figure of a kind."""
        from hgviz.figures.spec import Spec

        return Spec(kind, width=self.width, title=self.title, **more)

    def draw(self, panel: Any, out: Path) -> None:
        """Write the figure, and its numbers with --numbers."""
        from hgviz import tasks

        terminal.run(partial(tasks.draw, panel, out, numbers=self.numbers), "Drawing")


@dataclass(frozen=True)
class Recipe(Group):
    """How maps are composed."""

    fuse: Annotated[
        Literal["mean", "max", "min"],
        typer.Option(
            help="How the heads of a layer are combined: mean, maximum or minimum of the weights."
        ),
    ] = "mean"
    heads: Annotated[
        str, typer.Option(metavar="3.5,4.*", help="In their layers, use only these heads.")
    ] = ""
    residual: Annotated[
        float,
        typer.Option(metavar="A", help="Weight of the residual connection, 0 to 1."),
    ] = 0.5
    nothing: Annotated[
        bool, typer.Option("--nothing", help="Add a column for contributions from no token.")
    ] = False
    signed: Annotated[
        bool,
        typer.Option(
            "--signed", help="Keep negative weights: the product of A + I, not normalised."
        ),
    ] = False

    def of(self, capture: Capture) -> RolloutOptions:
        """The recipe for a capture. Raises HgvizError for what does not fit."""
        from hgviz.core import RolloutOptions, parse_heads

        heads = tuple(sorted(parse_heads(self.heads, capture.spec.layers)))
        return RolloutOptions(self.fuse, heads, self.residual, self.nothing, self.signed)


def expanded(verb: Callable[..., object]) -> Callable[..., object]:
    """A verb whose groups of options are replaced by the options themselves."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    hints = get_type_hints(verb, include_extras=True)
    for name, parameter in inspect.signature(verb).parameters.items():
        group = hints[name]
        if not (isinstance(group, type) and is_dataclass(group)):
            parameters.append(_option(name, hints[name], parameter.default))
            continue
        options = get_type_hints(group, include_extras=True)
        groups[name] = group, [field.name for field in fields(group)]
        for field in fields(group):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            parameters.append(_option(field.name, options[field.name], default))

    def call(**values: Any) -> object:
        for name, (group, names) in groups.items():
            values[name] = group(**{field: values.pop(field) for field in names})
        return verb(**values)

    call.__name__, call.__doc__ = verb.__name__, verb.__doc__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


# --- shared steps of verbs ------------------------------------------------------------------------


def layer_and_head(layer: int | None, head: str) -> tuple[int | None, int]:
    """The numbers of --layer and --head, where --head is 2 or 11.2. Raises BadParameter."""
    first, dot, second = head.partition(".")
    if not first.isdecimal() or (dot and not second.isdecimal()):
        raise typer.BadParameter(f"--head cannot be {head!r}; write 11.2, or 2 with --layer 11.")
    if not dot:
        return layer, int(first)
    if layer not in (None, int(first)):
        raise typer.BadParameter(f"--head {head} is in layer {first}, but --layer is {layer}.")
    return int(first), int(second)


def require_numbers(out: Path | None, numbers: bool, *read: Path | None) -> None:
    """Require that --numbers goes with a figure and replaces no file that is read."""
    from hgviz.figures.spec import csv_beside

    if numbers and out is None:
        raise typer.BadParameter("--numbers requires a figure: -o FIG.pdf.")
    if numbers and out is not None:
        require_unread(csv_beside(out), *read)


def open_model(path: Path, device: str = "auto", **more: Any) -> Model:
    """Open a checkpoint with a bar. more: as tasks.load takes it. Raises HgvizError."""
    from hgviz import tasks

    return terminal.run(partial(tasks.load, path, device, **more), f"Opening {path.name}")


def heads_of(names: str, model: Model) -> HeadSet:
    """The heads of a model that 3.5,4.* or @FILE names. Raises HgvizError."""
    from hgviz.maskfile import read_heads

    return read_heads(names, model.spec)


def command_words(options: dict[str, Any]) -> tuple[str, ...]:
    """The options that are given, as words of a command; files without their folders."""

    def words() -> Iterator[str]:
        for flag, value in options.items():
            if flag == "--off" and value.startswith("@"):
                value = f"@{Path(value[1:]).name}"
            if isinstance(value, dict):
                value = ",".join(f"{label}={name}" for label, name in value.items())
            if value not in (None, ""):
                yield from (flag, value.name if isinstance(value, Path) else str(value))

    return tuple(words())
