"""The kinds of figures, and what one shows and how wide it is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hgviz.core import Display, HeadId, HgvizError, RolloutOptions, Selection
from hgviz.errors import choose
from hgviz.maps.links import LinkOptions

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


Of = Literal["capture", "pair", "captures", "study", "studies", "sweep", "answer"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of figure: its name, what people call it, and what it is drawn of.

    of "pair": of two captures, A and B; "captures" and "studies": of one or more; "sweep": of the
    folder of many runs; "answer": of a model that is asked. verb: the command that draws it. What
    draws it stands under its name in pictures.DRAWINGS; tasks.panel makes ready what is drawn.
    """

    name: str
    label: str
    of: Of
    verb: str = "figure"


FIGURES: dict[str, Kind] = {
    row.name: row
    for row in (
        Kind("map", "Map of one head", "capture"),
        Kind("links", "Links between tokens", "capture"),
        Kind("wall", "All heads of all layers", "capture"),
        Kind("levels", "One token through all levels", "capture"),
        Kind("rollout", "All maps composed", "capture"),
        Kind("image", "Where one query looks in its image", "capture"),
        Kind("compare", "Two heads and their difference", "pair"),
        Kind("neurons", "One query and its keys, element by element", "capture"),
        Kind("profile", "Metrics of heads, layer by layer", "captures"),
        Kind("activation", "What scores become", "captures"),
        Kind("curve", "What is lost as heads go", "studies"),
        Kind("scores", "What every head is worth", "study"),
        Kind("seeds", "What models reach, over seeds", "sweep"),
        Kind("budgets", "What is left at every share of heads", "sweep"),
    )
}

# drawn where a model is asked: no file holds what they show
ANSWERS: dict[str, Kind] = {
    row.name: row
    for row in (
        Kind("attribution", "Where an answer comes from", "answer", "attribute"),
        Kind("reach", "How far outputs depend on tokens", "answer", "reach"),
        Kind("redundancy", "How much heads repeat each other", "answer", "redundancy"),
    )
}


def kind_of(name: str) -> Kind:
    """The kind of this name. Errors: HgvizError where there is none."""
    if name in ANSWERS:
        return ANSWERS[name]
    return FIGURES[choose(name, FIGURES, "kind of figure")]


@dataclass(frozen=True, slots=True)
class Spec:
    """One figure. width: a preset's name, or a length such as 3.25, 3.25in, 89mm, 252pt.

    format "": from the file's name. title None: it says itself; "": none. heads: in a figure of
    all levels, the head of each stage; a stage that has none here shows its clearest; in one of an
    image, the heads that are shown. links: which
    links a figure of kind links has. recipe: how all maps are composed to the one that is shown.
    methods, axis: of studies, which scores, and what curves are drawn over.
    metrics: of a profile, which of METRICS; () for those that say something of its heads.
    order: of neurons, how the keys stand. tokens: those behind slots in place of these.
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


def points(width: str) -> float:
    """The width of a figure in points. Errors: HgvizError for what is no width."""
    text = WIDTHS[width][0] if width in WIDTHS else width
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)", text.strip().lower())
    if not match or match[2] not in UNITS:
        raise HgvizError(
            f"{width!r} is no width for a figure: "
            f"it is a number with in, mm, cm or pt, or one of {', '.join(WIDTHS)}",
            "Try 3.25in or 89mm",
        )
    found = float(match[1]) * UNITS[match[2]]
    if not NARROWEST <= found <= WIDEST:
        raise HgvizError(
            f"a figure cannot be {width} wide: "
            f"nothing legible fits below {NARROWEST / POINTS:.3g} in, and pages end at "
            f"{WIDEST / POINTS:.3g} in",
            "Try 3.25in or 89mm",
        )
    return found


def format_of(path: str | Path, asked: str = "") -> str:
    """The format asked for, else that of the file's name. Errors: HgvizError for others."""
    found = (asked or Path(path).suffix).lower().removeprefix(".")
    if found not in FORMATS:
        raise HgvizError(
            f"a figure cannot be written as {found or Path(path).name!r}: "
            f"the formats are {', '.join(FORMATS)}",
            "Give the file a name that ends in one of these, such as figure.pdf",
        )
    return found


def csv_beside(path: Path) -> Path:
    """Return where the numbers of a figure are written: FIG.csv in the folder of FIG.pdf."""
    return path if path.suffix.lower() == TABLE else path.with_name(path.stem + TABLE)
