"""The kinds of figures, what one shows, and the options of each kind.

FIGURES lists the kinds and OPTIONS what can be set of a figure: keyword arguments of a notebook,
words of `hgviz figure` and the command that draws a figure again are all made from these rows.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import filterfalse, groupby
from math import isfinite, nan
from operator import attrgetter, index
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Literal, Protocol

from hgviz.core import (
    HEAD_FUSIONS,
    Capture,
    Display,
    HeadId,
    HgvizError,
    RolloutOptions,
    Selection,
    parse_heads,
)
from hgviz.errors import choose, require
from hgviz.files import SAMPLE, resource
from hgviz.maps.links import FUSES, LinkOptions
from hgviz.palettes import PALETTES, SCALES

POINTS = 72.0  # per inch
UNITS = {"in": POINTS, "": POINTS, "mm": POINTS / 25.4, "cm": POINTS / 2.54, "pt": 1.0}
NARROWEST, WIDEST = 108.0, 2880.0

# name -> width and label; from the style files and author guides of each
WIDTHS: dict[str, tuple[str, str]] = {
    "neurips": ("5.5 in", "NeurIPS"),
    "icml": ("3.25 in", "ICML, one column"),
    "icml2": ("6.75 in", "ICML, two columns"),
    "acl": ("3.03 in", "ACL, one column"),
    "acl2": ("6.30 in", "ACL, two columns"),
    "ieee": ("3.5 in", "IEEE, one column"),
    "ieee2": ("7.16 in", "IEEE, two columns"),
    "nature": ("89 mm", "Nature, one column"),
    "nature2": ("183 mm", "Nature, two columns"),
}
FORMATS: dict[str, str] = {
    "pdf": "PDF",
    "svg": "SVG",
    "png": "PNG, 300 dots per inch",
    "pgf": "PGF, for LaTeX",
}
TABLE = ".csv"  # the ending of a figure's numbers
Row = tuple[Any, ...]  # of the table of a figure's numbers
Items = int | tuple[int, ...]  # which text of all files, or of each
AXES = ("heads", "parameters", "flops", "time")  # that a curve is drawn over

# --- kinds ----------------------------------------------------------------------------------------

Of = Literal["capture", "pair", "captures", "study", "studies", "sweep", "answer"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of figure: its name, its label, what it is drawn of, and the options it uses.

    of "pair": of two captures, A and B; "captures" and "studies": of one or more; "sweep": of the
    folder of many runs; "answer": of a model that is asked by the command `verb`. options: places
    of a Spec, separated by spaces. drawing: the class that draws a capture, called with it and the
    facts about its heads; it has draw(page, spec) and rows(spec). Classes of hgviz.figures are
    named as module.Class, so that matplotlib loads when the first figure is drawn. "" where the
    content is a chart, which draws itself.
    """

    name: str
    label: str
    of: Of
    options: str = ""
    drawing: str | type = ""
    verb: str = "figure"

    def load(self) -> Any:
        """The class that draws a capture."""
        if not isinstance(self.drawing, str):
            return self.drawing
        module, _, name = self.drawing.partition(".")
        return getattr(import_module(f"hgviz.figures.{module}"), name)


HEAD = "selection.layer selection.head"
SHADES = "display.palette display.scale display.limits"
LINKS = (
    "links.heads links.queries links.fuse links.mass links.least links.most links.words "
    "links.special links.values links.across"
)
RECIPE = "recipe.heads recipe.fuse recipe.residual recipe.nothing recipe.signed"
FIGURES: dict[str, Kind] = {
    row.name: row
    for row in (
        Kind("map", "Attention map of one head", "capture",
             f"{HEAD} selection.query selection.key tokens {SHADES}", "heatmap.HeadMap"),
        Kind("links", "Attention links between tokens", "capture",
             f"{HEAD} selection.query tokens {LINKS}", "links.TokenLinks"),
        Kind("wall", "Attention maps of all heads", "capture",
             f"tokens {SHADES} display.shared", "heatmap.Wall"),
        Kind("levels", "One token through all levels", "capture",
             f"{HEAD} selection.query heads tokens {SHADES}", "levels.Levels"),
        Kind("rollout", "Attention rollout", "capture",
             f"selection.query selection.key {RECIPE} {SHADES}", "heatmap.Rollout"),
        Kind("image", "Attention of one query over an image", "capture",
             f"{HEAD} selection.query heads {SHADES}", "heatmap.ImagePatches"),
        Kind("compare", "Two heads and their difference", "pair",
             f"{HEAD} selection.beside tokens {SHADES}"),
        Kind("neurons", "One query and its keys, per dimension", "capture",
             f"{HEAD} selection.query selection.key order display.palette display.scale"),
        Kind("profile", "Head metrics by layer", "captures", "tokens metrics"),
        Kind("activation", "Activations of attention", "captures", "display.limits"),
        Kind("spectrum", "Singular values of an attention map", "captures",
             f"{HEAD} tokens display.limits"),
        Kind("curve", "Pruning curve", "studies", "methods axis display.limits"),
        Kind("scores", "Head importance", "study", "methods display.limits"),
        Kind("seeds", "Scores over seeds", "sweep", "display.limits"),
        Kind("budgets", "Scores by share of heads kept", "sweep", "methods display.limits"),
    )
}  # fmt: skip

# drawn where a model is asked: no file holds what they show
ANSWERS: dict[str, Kind] = {
    row.name: row
    for row in (
        Kind("attribution", "Attribution of an output", "answer", verb="attribute"),
        Kind("reach", "Reach of outputs", "answer", verb="reach"),
        Kind("redundancy", "Similarity of heads", "answer", verb="redundancy"),
    )
}


def kind_of(name: str) -> Kind:
    """The kind of this name. Raises HgvizError where there is none."""
    return ANSWERS[name] if name in ANSWERS else FIGURES[choose(name, FIGURES, "kind of figure")]


@dataclass(frozen=True, slots=True)
class Spec:
    """One figure. width: a preset's name, or a length such as 3.25, 3.25in, 89mm, 252pt.

    format "": from the file's name. title None: the figure's own; "": none. heads: in a figure of
    all levels, the head of each stage; a stage without one here shows its clearest; in one of an
    image, the heads that are shown. recipe: how all maps are composed to the one that is shown.
    methods, axis: of studies, which scores, and what curves are drawn over. metrics: of a profile,
    which of METRICS; () for those that say something of its heads. order: of the keys of neurons.
    tokens: those behind slots in place of these.
    """

    kind: str = "map"
    selection: Selection = field(default_factory=Selection)
    display: Display = field(default_factory=Display)
    width: str = "neurips"
    format: str = ""
    title: str | None = None
    heads: tuple[HeadId, ...] = ()
    links: LinkOptions = field(default_factory=LinkOptions)
    recipe: RolloutOptions = field(default_factory=RolloutOptions)
    methods: tuple[str, ...] = ()
    axis: str = "heads"
    metrics: tuple[str, ...] = ()
    order: Literal["text", "weight"] = "text"
    tokens: bool = False


# --- what figures are drawn of --------------------------------------------------------------------


class Fact(Protocol):
    """What a figure asks of the facts about a head: what it does, and how clearly it does so."""

    @property
    def role(self) -> str: ...

    @property
    def clarity(self) -> float: ...


Facts = Mapping[HeadId, Fact]


@dataclass(frozen=True, slots=True, eq=False)
class CaptureFacts:
    """A capture to draw, and what is known of its heads."""

    capture: Capture
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Chart:
    """Base of charts, which hold what they show: a title (bold) and more (plain) above, notes
    below; about: what identifies the data, for the file."""

    title: str = ""
    more: str = ""
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """The table of the numbers, the names of its columns first."""
        raise NotImplementedError

    def draw(self, page: Any, spec: Spec) -> None:
        """Place the chart on a page and cut the page below it."""
        raise NotImplementedError


Content = CaptureFacts | Chart


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One figure ready to be drawn. files: the captures or studies it is of, by name, for the
    command that draws it again; item: which text of all of them, or of each.
    """

    spec: Spec
    content: Content
    files: tuple[str, ...] = ()
    item: Items = 0


# --- widths and formats ---------------------------------------------------------------------------


def points(width: str) -> float:
    """The width of a figure in points. Raises HgvizError for what is no width."""
    text = WIDTHS[width][0] if width in WIDTHS else width
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)", text.strip().lower())
    if not match or match[2] not in UNITS:
        raise HgvizError(
            f"{width!r} is not a figure width: "
            f"give a number with in, mm, cm or pt, or one of {', '.join(WIDTHS)}",
            "Try 3.25in or 89mm",
        )
    length = float(match[1]) * UNITS[match[2]]
    require(
        NARROWEST <= length <= WIDEST,
        f"the width {width} is out of range: "
        f"it must be {NARROWEST / POINTS:.3g} in to {WIDEST / POINTS:.3g} in",
        "Try 3.25in or 89mm",
    )
    return length


def format_of(path: str | Path, asked: str = "") -> str:
    """The format asked for, else that of the file's name. Raises HgvizError for others."""
    name = (asked or Path(path).suffix).lower().removeprefix(".")
    require(
        name in FORMATS,
        f"a figure cannot be saved as {name or Path(path).name!r}: "
        f"the formats are {', '.join(FORMATS)}",
        "Use a file name ending in one of these, such as figure.pdf",
    )
    return name


def csv_beside(path: Path) -> Path:
    """Return where the numbers of a figure are written: FIG.csv in the folder of FIG.pdf."""
    return path if path.suffix.lower() == TABLE else path.with_name(path.stem + TABLE)


# --- what options take ----------------------------------------------------------------------------

Value = str | int | float | bool | list[str]


@dataclass(frozen=True, slots=True)
class Form:
    """What an option takes, in words; how its value is read and written.

    read: (value, the spec so far, the captures it is drawn of) -> what a Spec holds; raises
    TypeError, ValueError or OverflowError for what does not fit, HgvizError where words can say
    more. write: back to a Value.
    """

    takes: str
    read: Callable[[Any, Spec, Sequence[Capture]], Any]
    write: Callable[[Any], Value]


def one_of(names: Iterable[str]) -> Form:
    """One of some words."""
    known = tuple(names)
    return Form(f"one of {', '.join(known)}", lambda value, *_: known[known.index(value)], str)


def _require_type(kind: type, value: Any, *_: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError
    return value


def shortest_number(value: float) -> str:
    """A number in as few digits as tell it from all others."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def _integer(value: Any, *_: Any) -> int:
    number = -1 if isinstance(value, bool) else index(value)
    if number < 0:
        raise ValueError
    return number


def _number(value: Any, *_: Any) -> float:
    number = nan if isinstance(value, bool | str) else float(value)
    if not isfinite(number):
        raise ValueError
    return number


def _texts(value: Any, *_: Any) -> tuple[str, ...]:
    return tuple(
        _require_type(str, text) for text in ([value] if isinstance(value, str) else value)
    )


def _limits(value: Any, *_: Any) -> tuple[float, float]:
    parts = value.split(":") if isinstance(value, str) else list(value)
    low, high = (_number(float(end) if isinstance(end, str) else end) for end in parts)
    require(
        low < high,
        f"limits cannot be {shortest_number(low)}:{shortest_number(high)}: "
        "in MIN:MAX, MIN must be below MAX",
        "Try 0:0.5, or -1:1 for negative weights",
    )
    return low, high


def _head_name(value: Any) -> str:
    if isinstance(value, str):
        return value
    layer, head = value
    return f"{_integer(layer)}.{_integer(head)}"


def _heads(value: Any, _: Spec, captures: Sequence[Capture]) -> tuple[HeadId, ...]:
    """Heads in the order in which they are named; those of LAYER.* in their own."""
    layers = captures[0].spec.layers
    heads = value.split(",") if isinstance(value, str) else map(_head_name, value)
    names = [name.strip() for name in heads]
    parse_heads(",".join(names), layers)  # refuses what is not there, and what is named twice
    return tuple(head for name in names for head in sorted(parse_heads(name, layers)))


def _head_of_b(value: Any, _: Spec, captures: Sequence[Capture]) -> HeadId:
    name = _head_name(value)
    heads = parse_heads(name, captures[-1].spec.layers)
    require(
        len(heads) == 1, f"{name!r} names {len(heads)} heads: A is compared with one", "Name one"
    )
    return next(iter(heads))


def _tokens(value: Any, spec: Spec, captures: Sequence[Capture]) -> tuple[int, ...]:
    layer, capture = spec.selection.layer, captures[0]
    count = len(capture.query_prompt(layer)) if layer < len(capture.spec.layers) else 0
    if value == "all":
        return tuple(range(count))
    return parse_tokens(value, count) if isinstance(value, str) else tuple(map(_integer, value))


def parse_tokens(text: str, count: int) -> tuple[int, ...]:
    """3,5:8 as 3, 5, 6, 7; of a range beyond the count of tokens only its last one.
    Raises HgvizError."""
    tokens: list[int] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, between, last = part.partition(":")
        if not first.isdecimal() or (between and not (last.isdecimal() and int(first) < int(last))):
            raise HgvizError(
                f"{part!r} is not a token or a range: write 3, or 5:8 for 5 to 7, or all",
                "Separate several with commas",
            )
        interval = range(int(first), int(last) if between else int(first) + 1)
        tokens += interval if interval.stop <= count else interval[-1:]
    return tuple(tokens)


def _write_tokens(numbers: Iterable[int]) -> str:
    """Numbers as 3,5:8."""
    runs = groupby(enumerate(sorted(set(numbers))), lambda pair: pair[1] - pair[0])
    parts = ([number for _, number in run] for _, run in runs)
    return ",".join(f"{first}:{rest[-1] + 1}" if rest else str(first) for first, *rest in parts)


WHOLE = Form("a whole number, 0 or more", _integer, int)
NUMBER = Form("a number", _number, float)
FLAG = Form("true or false", partial(_require_type, bool), bool)
TEXT = Form("text", partial(_require_type, str), str)
TEXTS = Form("text, or a list of texts", _texts, list)
LIMITS = Form("a range MIN:MAX, such as 0:0.5", _limits,
              lambda limits: ":".join(map(shortest_number, limits)))  # fmt: skip
HEADS = Form("heads, such as 3.5,4.*", _heads, lambda heads: ",".join(map(str, heads)))
HEAD_OF_B = Form("a head, such as 3.5", _head_of_b, str)
TOKENS = Form("tokens, such as 3,5:8, or all", _tokens, _write_tokens)

# --- options --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its place in a Spec, what it takes, and its name, "" for the end of its place."""

    at: str
    form: Form
    named: str = ""

    @property
    def name(self) -> str:
        """What it is called on a command line and as a keyword argument."""
        return self.named or self.at.rpartition(".")[2]

    def default(self, spec: Spec) -> Any:
        """The value where nothing is said: of links, the first of the heads named, and all of the
        links where a limit of weight is named."""
        if spec.kind == "links":
            if self.at in HEAD.split() and spec.links.heads:
                return getattr(spec.links.heads[0], self.name)
            if self.at == "links.most" and (spec.links.mass or spec.links.least):
                return 0
        return attrgetter(self.at)(Spec())

    def put(self, spec: Spec, value: Any) -> Spec:
        """The spec with another value here."""
        part, _, name = self.at.rpartition(".")
        if part:
            name, value = part, replace(getattr(spec, part), **{name: value})
        return replace(spec, **{name: value})


ALWAYS = ("title", "width", "format")  # options that every kind uses

# in the order in which they are read: the default of one depends on those before it
OPTIONS: tuple[Option, ...] = (
    Option("links.heads", HEADS),
    Option("recipe.heads", HEADS),
    Option("selection.layer", WHOLE),
    Option("selection.head", WHOLE),
    Option("selection.beside", HEAD_OF_B),
    Option("selection.query", WHOLE),
    Option("selection.key", WHOLE),
    Option("heads", HEADS),
    Option("links.queries", TOKENS),
    Option("links.fuse", one_of(FUSES), "together"),
    Option("links.mass", NUMBER),
    Option("links.least", NUMBER),
    Option("links.most", WHOLE),
    Option("links.words", FLAG),
    Option("links.special", FLAG),
    Option("links.values", FLAG),
    Option("links.across", FLAG),
    Option("recipe.fuse", one_of(HEAD_FUSIONS)),
    Option("recipe.residual", NUMBER),
    Option("recipe.nothing", FLAG),
    Option("recipe.signed", FLAG),
    Option("methods", TEXTS, "method"),
    Option("axis", one_of(AXES)),
    Option("tokens", FLAG),
    Option("order", one_of(("text", "weight"))),
    Option("metrics", TEXTS, "metric"),
    Option("display.palette", one_of(PALETTES)),
    Option("display.scale", one_of(SCALES)),
    Option("display.limits", LIMITS),
    Option("display.shared", FLAG),
    Option("title", TEXT),
    Option("width", TEXT),
    Option("format", TEXT),
)


def options_of(kind: str) -> dict[str, Option]:
    """The options that a kind of figures uses, by name."""
    places = (*kind_of(kind).options.split(), *ALWAYS)
    return {option.name: option for option in OPTIONS if option.at in places}


def spec_of(kind: str, options: Mapping[str, Any], sources: Sequence[object] = ()) -> Spec:
    """The figure that some options ask for, of some captures; those it does not use are ignored.

    Raises HgvizError for an unknown kind, and for values that an option does not take.
    """
    spec = Spec(kind_of(kind).name)
    captures = [source for source in sources if isinstance(source, Capture)]
    for name, option in options_of(kind).items():
        if name not in options:
            value = option.default(spec)
        else:
            try:
                value = option.form.read(options[name], spec, captures)
            except (TypeError, ValueError, OverflowError):
                raise HgvizError(
                    f"{name} cannot be {options[name]!r}: it must be {option.form.takes}",
                    "Choose another value",
                ) from None
        spec = option.put(spec, value)
    return spec


def set_options(spec: Spec, item: Items = 0) -> dict[str, Value]:
    """The options of a figure that differ from their defaults, by name."""
    options: dict[str, Value] = {}
    for name, option in options_of(spec.kind).items():
        value = attrgetter(option.at)(spec)
        if value != option.default(spec):
            options[name] = option.form.write(value)
    if isinstance(item, tuple) and len(set(item)) == 1:
        item = item[0]
    if item:
        options["item"] = item if isinstance(item, int) else ",".join(map(str, item))
    return options


def arguments(spec: Spec, item: Items = 0) -> list[str]:
    """What follows the files of `hgviz figure`; item: which text of all of them, or of each."""
    words = ["--kind", spec.kind]
    for name, value in set_options(spec, item).items():
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
            continue
        for part in value if isinstance(value, list) else [value]:
            words += [f"--{name}", shortest_number(part) if isinstance(part, float) else str(part)]
    return words


# --- the command that draws a figure again --------------------------------------------------------

# what a command says in place of files that are not saved yet
MISSING: dict[str, tuple[str, ...]] = {
    "capture": ("CAPTURE.h5",),
    "pair": ("A.h5", "B.h5"),
    "captures": ("CAPTURE.h5",),
    "study": ("STUDY.h5",),
    "studies": ("STUDY.h5",),
    "sweep": ("STUDY",),
    "answer": ("MODEL",),
}


def figure_command(spec: Spec, files: Sequence[str], item: Items, out: str) -> str:
    """The command that draws a figure of files, as they are named; one that is not saved yet has
    a name that stands for it."""
    missing = MISSING[kind_of(spec.kind).of]
    names = [name or missing[at % len(missing)] for at, name in enumerate(files or missing)]
    names = [f"./{name}" if name.startswith("-") else name for name in names]
    if spec.title:
        spec = replace(spec, title=_drawn_title(spec.title))
    if spec.format and Path(out).name.lower().endswith(f".{spec.format}"):
        spec = replace(spec, format="")
    return shlex.join(["hgviz", "figure", *names, *arguments(spec, item), "-o", out])


def answer_command(spec: Spec, asked: Sequence[str], models: Sequence[str], out: str) -> str:
    """The command that asks models again what a figure shows of them; asked: what follows them."""
    width = () if spec.width == Spec().width else ("--width", spec.width)
    title = () if spec.title is None else ("--title", _drawn_title(spec.title))
    words = ["hgviz", kind_of(spec.kind).verb, *models, *asked, *width, *title, "-o", out]
    return " ".join(map(quoted, words))


def option_words(options: Iterable[tuple[str, Any]]) -> tuple[str, ...]:
    """Options of a command, as its words; those that are None are left out."""
    return tuple(str(word) for option in options if option[1] is not None for word in option)


def _drawn_title(title: str) -> str:
    from hgviz.figures.labels import visible  # loads matplotlib

    return visible(title, space=" ")


def quoted(word: str) -> str:
    """A word of a command on one line: lines and invisible signs as shells spell them, since a
    file's header could not carry them."""
    if word.isprintable():
        return shlex.quote(word)
    spelled = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t"}
    for sign in filterfalse(str.isprintable, word):
        number = ord(sign)
        spelled.setdefault(sign, f"\\x{number:02x}" if number < 0x80 else f"\\U{number:08x}")
    return f"$'{''.join(spelled.get(sign, sign) for sign in word)}'"


def known_name(path: str) -> str:
    """The name of a file without its folder; of what comes with hgviz, the one it has everywhere:
    sample/first.h5."""
    if path and Path(path).parent == resource(SAMPLE):
        return f"{SAMPLE}/{Path(path).name}"
    return bare_name(path)


def bare_name(name: str) -> str:
    """The last part of a path, of either kind of system; other words stay as they are."""
    if "/" not in name and "\\" not in name:
        return name
    return PureWindowsPath(PurePosixPath(name).name or "folder").name or "folder"


def describe_capture(capture: Capture, shown: Mapping[str, str]) -> dict[str, str]:
    """What identifies a capture, for a file; shown: what a figure shows of it. "" where a field
    does not apply."""
    return {
        "model": bare_name(capture.spec.name),
        "checkpoint": capture.spec.digest,
        **shown,
        "off": ", ".join(map(str, sorted(capture.off))),
        "streaming": capture.streaming.describe(),
        "text": capture.prompt.digest,
        "target": capture.target.digest if capture.target is not None else "",
        "generated": capture.made.generated,
    }
