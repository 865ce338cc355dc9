"""Figures as files: PDF, SVG, PNG, PGF, HTML, tables and reports, the same bytes every time.

A file appears whole or not at all. It says what its figure is of, by names and digests, never
folders or people, and the command that draws it again.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import unicodedata
import warnings
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from hashlib import sha256
from html import escape
from io import BytesIO, StringIO
from math import isfinite, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_pgf import RendererPgf
from matplotlib.figure import Figure
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D
from numpy.typing import NDArray
from PIL import Image

import hgviz
from hgviz.core import Capture, HgvizError, Integers, Prompt
from hgviz.errors import HgvizWarning, require
from hgviz.figures.cells import (
    CaptureFigure,
    head_details,
    is_signed,
    map_of,
    read_cells,
    seen_cells,
    shades_of,
    unseen_reason,
)
from hgviz.figures.labels import BOX, DOTS, JOINERS, figure_settings, record_missing, token_marks
from hgviz.figures.page import Page, dots_per_inch
from hgviz.figures.spec import (
    MISSING,
    POINTS,
    TABLE,
    CaptureFacts,
    Chart,
    Content,
    Panel,
    Spec,
    answer_command,
    bare_name,
    csv_beside,
    describe_capture,
    figure_command,
    format_of,
    kind_of,
    known_name,
    points,
)
from hgviz.files import path_errors, resource, write_atomic
from hgviz.palettes import (
    CATEGORICAL,
    CATEGORICAL_DARK,
    DARK_PAGE,
    LIGHT_PAGE,
    PageColours,
    colours,
)

LISTED = 8  # characters without a font that a warning names
PREVIEW_PIXELS = 24e6  # of a picture on a screen: a larger one has fewer dots

# --- drawing --------------------------------------------------------------------------------------


@figure_settings()
def compose(spec: Spec, content: Content | Capture) -> Page:
    """The page of a figure, not yet written; a capture stands for itself with nothing known of its
    heads.

    Raises HgvizError for an unknown kind or width, and for a capture that lacks what is shown.
    """
    kind, page = kind_of(spec.kind), Page(points(spec.width), spec.title)
    drawing: Any = CaptureFacts(content) if isinstance(content, Capture) else content
    if isinstance(drawing, CaptureFacts):
        drawing = kind.load()(drawing.capture, drawing.facts)
    drawing.draw(page, spec)
    return page


@figure_settings()
def draw(panel: Panel, path: str | Path) -> Path:
    """Write a figure to path and return the path; a .csv has its numbers in place of a picture, a
    .html a map that tells its weights under the pointer.

    It appears whole or not at all. Warns of characters that no font has. Raises HgvizError.
    """
    path = Path(path)
    suffix = "" if panel.spec.format else path.suffix.lower()
    if suffix in (TABLE, PAGE):
        return (write_numbers if suffix == TABLE else _write_map_page)(panel, path)
    form = format_of(path, panel.spec.format)
    require_folder(path)
    with record_missing() as missing:
        page = compose(panel.spec, panel.content)
        files = render(page.figure, form, path, record(panel, page.notes, path))
    write(path, files)
    if missing:
        names = ", ".join(f"U+{ord(character):04X}" for character in sorted(missing)[:LISTED])
        more = f" and {len(missing) - LISTED} more" if len(missing) > LISTED else ""
        line = f"{path.name}: no installed font has {names}{more}; printed as {BOX}."
        warnings.warn(f"{line} Install a font with these.", HgvizWarning, stacklevel=3)
    return path


@dataclass(frozen=True, slots=True)
class Preview:
    """A page as a picture. png: at so many dots per inch; width and height: of the page, in points;
    smallest: its smallest text in points, None where it has none; notes: what its file says of how
    it was drawn."""

    png: bytes
    dots: float
    width: float
    height: float
    smallest: float | None
    notes: tuple[str, ...]


@figure_settings()
def preview(panel: Panel, dots: float) -> Preview:
    """The picture of a figure at so many dots per inch, fewer for a poster. Raises HgvizError."""
    page = compose(panel.spec, panel.content)
    pixels = page.width * page.height * (dots / POINTS) ** 2
    dots /= sqrt(max(1.0, pixels / PREVIEW_PIXELS))
    buffer = BytesIO()
    page.figure.savefig(
        buffer, format="png", dpi=dots, bbox_inches=None, pil_kwargs={"compress_level": 1}
    )
    return Preview(
        buffer.getvalue(), dots, page.width, page.height, page.smallest, tuple(page.notes)
    )


# --- what a file says of its figure ---------------------------------------------------------------


def record(panel: Panel, notes: Sequence[str], path: Path) -> dict[str, str]:
    """What identifies a figure, in words, in the order it is written."""
    content, spec = panel.content, panel.spec
    if isinstance(content, CaptureFacts):
        chosen, layers = spec.selection, content.capture.spec.layers
        is_there = 0 <= chosen.layer < len(layers)
        shown = {
            "layer": f"{chosen.layer} ({layers[chosen.layer].name})" if is_there else "",
            "head": str(chosen.head),
            "query": "" if chosen.query is None else str(chosen.query),
        }
        places = kind_of(spec.kind).options.split()
        shown = {name: words for name, words in shown.items() if f"selection.{name}" in places}
        about: Mapping[str, str] = describe_capture(content.capture, shown)
    else:
        about = content.about
    about = {**about, "reduction": "; ".join(notes)}
    return _entries(spec.kind, about, command(panel, path))


def _entries(kind: str, about: Mapping[str, str], command: str) -> dict[str, str]:
    """What a file says, without what its header could not carry."""
    program = f"hgviz {hgviz.__version__}"
    entries = {"program": program, "kind": kind, **about, "command": command}
    return {
        name: "".join(sign if sign.isprintable() else "?" for sign in value)
        for name, value in entries.items()
        if value
    }


def command(panel: Panel, path: Path) -> str:
    """The command that draws a figure again; files are named without their folders."""
    spec, files = panel.spec, [known_name(name) for name in panel.files]
    if len(set(files)) < len(set(panel.files)):
        files = []  # several of one name: no folder could hold them
    if kind_of(spec.kind).of == "answer":
        models = [name for name in files if name] or MISSING["answer"]
        return answer_command(spec, getattr(panel.content, "asked", ()), models, path.name)
    return figure_command(spec, files, panel.item, path.name)


def metadata(form: str, record: dict[str, str]) -> dict[str, Any]:
    """The record as a file of this format keeps it."""
    title = ": ".join(filter(None, (kind_of(record["kind"]).label, record.get("model"))))
    lines = "; ".join(f"{name}: {value}" for name, value in record.items())
    if form == "png":
        return {"Title": title, "Software": record["program"], "Description": lines}
    entries = {"Title": title, "Creator": record["program"]}
    if form == "svg":
        entries["Description"] = lines
    else:
        entries |= {"Subject": record["command"], "Keywords": lines}
    # a date makes two runs differ, so there is one only where it was asked for
    is_dated = bool(os.environ.get("SOURCE_DATE_EPOCH"))
    return entries if is_dated else {**entries, "Date" if form == "svg" else "CreationDate": None}


def without_folders(command: str) -> str:
    """A command whose files are named without their folders."""
    try:
        parts = shlex.split(command)
    except ValueError:
        parts = command.split()
    return shlex.join(map(bare_name, parts))


# --- pictures -------------------------------------------------------------------------------------


def render(figure: Figure, form: str, path: Path, record: dict[str, str]) -> dict[str, bytes]:
    """The files of a figure, name -> content: one, or for LaTeX also its rasters."""
    if form == "pgf":
        return render_pgf(figure, path, record)
    buffer = BytesIO()
    dots = dots_per_inch(figure.get_figwidth() * POINTS) if form == "png" else DOTS
    figure.savefig(buffer, format=form, dpi=dots, bbox_inches=None, metadata=metadata(form, record))
    content = buffer.getvalue()
    return {path.name: compact_svg(content.decode()).encode() if form == "svg" else content}


def compact_png(dots: NDArray[np.uint8]) -> bytes:
    """A PNG of dots (rows, columns, 3 or 4): a table of colours and one byte a dot where 256
    colours are enough. A palette has no more, so that every map fits; the dots stay the same."""
    buffer = BytesIO()
    (_indexed(dots) or Image.fromarray(dots)).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def _indexed(dots: NDArray[np.uint8]) -> Image.Image | None:
    """Dots as places in a table of their colours, None where these are more than 256."""
    if dots.ndim != 3 or dots.shape[2] not in (3, 4) or (dots[..., 3:] != 255).any():
        return None
    packed = dots[..., :3].astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    is_used = np.zeros(1 << 24, bool)
    is_used[packed] = True
    colours = np.flatnonzero(is_used)
    if len(colours) > 256:
        return None
    places = np.zeros(1 << 24, np.uint8)
    places[colours] = np.arange(len(colours))
    image = Image.fromarray(places[packed], "P")
    table = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], 1).astype(np.uint8)
    image.putpalette(table.tobytes())
    return image


RASTER = re.compile(r"(data:image/png;base64,)\s*([A-Za-z0-9+/=\s]+)")  # inside an SVG


def compact_svg(text: str) -> str:
    """An SVG whose rasters are written as compact_png writes them, where that is smaller."""

    def rewrite(match: re.Match[str]) -> str:
        content = b64decode(match[2])
        with Image.open(BytesIO(content)) as image:
            smaller = compact_png(np.asarray(image))
        return match[1] + b64encode(min(smaller, content, key=len)).decode()

    return RASTER.sub(rewrite, text)


# --- PGF for LaTeX: texts in the document's own font, rasters as files beside it ------------------

# Nothing in a text is a command, and no character stops the run: what every LaTeX can set is
# written in ASCII; anything else is kept beside boxes that stand for it, as
# \hgvizother{boxes}{text}. The document decides: what its font lacks is a box.

LATEX_BOX = r"\hgvizbox{}"
LATEX_SIGNS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\^{}", "~": r"\textasciitilde{}", "`": r"\`{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}",
    "→": r"\ensuremath{\rightarrow}", "←": r"\ensuremath{\leftarrow}",
    "↓": r"\ensuremath{\downarrow}", "↑": r"\ensuremath{\uparrow}",
    "↵": r"\ensuremath{\hookleftarrow}", "⇥": r"\ensuremath{\mapsto}",
    "×": r"\ensuremath{\times}", "−": r"\ensuremath{-}", "±": r"\ensuremath{\pm}",
    "≈": r"\ensuremath{\approx}", "∅": r"\ensuremath{\emptyset}", "⋯": r"\ensuremath{\cdots}",
    "√": r"\ensuremath{\surd}", "φ": r"\ensuremath{\varphi}", "·": r"\textperiodcentered{}",
    "…": "...", "–": r"\textendash{}", "—": r"\textemdash{}", "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}", "‘": r"\textquoteleft{}", "’": r"\textquoteright{}",
    "•": r"\textbullet{}", "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}",
    "Œ": r"\OE{}", "ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}",
    "□": LATEX_BOX,
}  # fmt: skip
LATEX_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u",
    "\u0307": ".", "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c",
}  # fmt: skip
DOTLESS = {"i": r"\i", "j": r"\j"}
LIGATURES = {"--", "''", "``", ",,", "<<", ">>", "!`", "?`"}  # two signs that fonts make one

# In every file, for what a document has not defined itself.
MACROS = r"""\providecommand\hgvizbox{\kern.08em\vbox{\hrule height.3pt
  \hbox{\vrule width.3pt\kern.5em\vrule width.3pt height1.3ex}\hrule height.3pt}\kern.08em}
\def\hgvizfirst#1#2\relax{#1}
\providecommand\hgvizother[2]{\ifdefined\Umathcode
  \expandafter\iffontchar\expandafter\font\expandafter`\hgvizfirst#2\relax\relax#2\else#1\fi
  \else#1\fi}
\providecommand\hgvizleftward[1]{{\ifdefined\textdir\textdir TRT #1\else
  \ifdefined\XeTeXversion\TeXXeTstate1 \beginR#1\endR\else#1\fi\fi}}
\def\hgvizfolder{\ifdefined\CurrentFilePath\ifx\CurrentFilePath\empty\else\CurrentFilePath/\fi\fi}
\edef\hgvizfolder{\hgvizfolder}
\def\do#1{\catcode`#1=12 }\do\;\do\:\do\!\do\?\do\'\do\`\do\"\do\<\do\>\do\=\do\-
""".replace("\n", "%\n")  # the end of a line would be a space beside the picture


def latex_text(words: str) -> str:
    """A line of text as LaTeX takes it."""
    out: list[str] = []
    before = ""
    for script, part in _runs(unicodedata.normalize("NFC", words)):
        written = _sign(part) if not script else _other_script(part)
        if before + part in LIGATURES:
            out.append(r"\kern0pt ")
        elif part == before == " ":
            written = r"\ "
        out.append(written)
        before = part
    return "".join(out)


def _other_script(run: str) -> str:
    """A run of a script that a document may have a font for, beside boxes that stand for it."""
    boxes = "".join(r"\ " if sign == " " else LATEX_BOX for sign in run if not _joins(sign))
    written = rf"\hgvizother{{{boxes or LATEX_BOX}}}{{{run}}}"
    is_leftward = any(unicodedata.bidirectional(sign) in ("R", "AL") for sign in run)
    return rf"\hgvizleftward{{{written}}}" if is_leftward else written


def _runs(words: str) -> list[tuple[str, str]]:
    """(script, characters): "" and one character that every LaTeX has, or a run of one script, the
    marks on its characters and the spaces between them included."""
    runs: list[tuple[str, str]] = []
    for sign in words:
        # the first word of a character's name is its script, such as HANGUL
        script = "" if _sign(sign) else unicodedata.name(sign, "UNKNOWN").split()[0]
        if runs and runs[-1][0] and (script == runs[-1][0] or _joins(sign)):
            runs[-1] = runs[-1][0], runs[-1][1] + sign
        elif script and len(runs) > 1 and runs[-1] == ("", " ") and runs[-2][0] == script:
            runs[-2:] = [(script, f"{runs[-2][1]} {sign}")]
        else:
            runs.append((script, sign))
    return runs


def _sign(character: str) -> str:
    """A character as every LaTeX can set it, in ASCII, "" where it needs a font for that."""
    if character in LATEX_SIGNS:
        return LATEX_SIGNS[character]
    if character.isascii():
        return character if character.isprintable() else LATEX_BOX
    letter, *marks = tuple(unicodedata.normalize("NFD", character))
    accent = LATEX_ACCENTS.get("".join(marks))
    if accent is not None and letter.isascii() and letter.isalpha():
        return rf"\{accent}{{{DOTLESS.get(letter, letter)}}}"
    return LATEX_BOX if unicodedata.category(character)[0] in "CZ" else ""


def _joins(character: str) -> bool:
    """Whether it belongs to the character before."""
    return unicodedata.category(character)[0] == "M" or character in JOINERS


def raster_name(path: Path, number: int) -> str:
    """What raster number 0, 1 ... of a file is called: a name that LaTeX takes as it is."""
    stem = path.name.removesuffix(".pgf")
    plain = re.sub(r"[^\w-]", "-", stem, flags=re.ASCII)
    if plain != stem:
        plain += "-" + sha256(stem.encode()).hexdigest()[:6]
    return f"{plain}-pgf{number}.png"


def render_pgf(figure: Figure, path: Path, record: Mapping[str, str]) -> dict[str, bytes]:
    """The .pgf of a figure, headed by its record, and the .png files that it names."""
    lines = [f"% {key}: {' '.join(value.split())}" for key, value in record.items()]
    lines += [r"% \usepackage{pgf}, then \input this file; keep its .png files next to it", ""]
    width, height = figure.get_size_inches()
    file = StringIO()
    file.write("\n".join(lines) + "\\begingroup%\n" + MACROS)
    file.write("\\makeatletter\\begin{pgfpicture}\n\\pgfpathrectangle{\\pgfpointorigin}")
    file.write(rf"{{\pgfqpoint{{{width:f}in}}{{{height:f}in}}}}")
    file.write("\n\\pgfusepath{use as bounding box}\n")
    renderer = PgfRenderer(figure, file, path)
    figure.draw(renderer)
    renderer.clip("")
    file.write("\\end{pgfpicture}\\endgroup\n")
    return {**renderer.files, path.name: file.getvalue().encode()}


def _number(value: float) -> str:
    """A number of points: three decimals at most."""
    digits = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits


class PgfRenderer(RendererPgf):
    """Texts are escaped, and measured without asking LaTeX, which need not be installed."""

    def __init__(self, figure: Figure, file: StringIO, path: Path) -> None:
        super().__init__(figure, file)  # type: ignore[no-untyped-call]
        self.files: dict[str, bytes] = {}
        self._path = path
        self._clip = ""
        self._last: tuple[Any, ...] = ()  # what clipped before
        self._clip_words = ""

    def draw_path(self, gc: Any, path: Any, transform: Any, rgbFace: Any = None) -> None:
        self.clip(self._clip_of(gc))
        super().draw_path(gc, path, transform, rgbFace)  # type: ignore[no-untyped-call]

    def draw_markers(
        self, gc: Any, marker_path: Any, marker_trans: Any, path: Any, trans: Any,
        rgbFace: Any = None,
    ) -> None:  # fmt: skip
        self.clip(self._clip_of(gc))
        super().draw_markers(gc, marker_path, marker_trans, path, trans, rgbFace)  # type: ignore[no-untyped-call]

    def draw_text(
        self, gc: Any, x: float, y: float, s: str, prop: Any, angle: float,
        ismath: Any = False, mtext: Any = None,
    ) -> None:  # fmt: skip
        """A line of text, from its beginning, its middle or its end."""
        across = "left"
        if mtext is not None and mtext.get_verticalalignment() == "baseline":
            x, y = mtext.get_transform().transform(mtext.get_unitless_position())
            across = mtext.get_horizontalalignment()
        options = ["base", f"x={x / self.dpi:f}in", f"y={y / self.dpi:f}in"]
        options += [across] if across != "center" else []
        options += [f"rotate={angle:g}"] if angle else []
        red, green, blue = gc.get_rgb()[:3]
        size, bold = prop.get_size_in_points(), prop.get_weight() == "bold"
        font = rf"\fontsize{{{_number(size)}}}{{{_number(1.2 * size)}}}\selectfont"
        font += r"\bfseries" if bold else ""
        self.clip("")
        self.fh.write("\\begin{pgfscope}\n")
        self.fh.write(rf"\definecolor{{textcolor}}{{rgb}}{{{red:f},{green:f},{blue:f}}}" + "\n")
        self.fh.write(rf"\pgftext[{','.join(options)}]{{\color{{textcolor}}{font} ")
        self.fh.write(latex_text(s) + "}\n\\end{pgfscope}\n")

    def draw_image(self, gc: Any, x: float, y: float, im: Any, transform: Any = None) -> None:
        """A raster in a file beside this one, over the unit square that transform places."""
        place = transform or Affine2D().scale(im.shape[1], im.shape[0])
        a, b, c, d, e, f = (value / self.dpi for value in place.frozen().to_values())
        name = raster_name(self._path, len(self.files))
        self.files[name] = compact_png(im[::-1])
        self.clip(self._clip_of(gc))
        self.fh.write("\\begin{pgfscope}\n")
        e, f = e + x / self.dpi, f + y / self.dpi
        self.fh.write(
            rf"\pgfsys@transformcm{{{a:f}}}{{{b:f}}}{{{c:f}}}{{{d:f}}}{{{e:f}in}}{{{f:f}in}}"
        )
        size = "width=1in,height=1in"
        self.fh.write(rf"\pgftext[left,bottom]{{\includegraphics[{size}]{{\hgvizfolder {name}}}}}")
        self.fh.write("\n\\end{pgfscope}\n")

    def clip(self, wanted: str) -> None:
        """Begin a scope of these clips, and end the one before.

        Each line of a hatch has the same, and a large map's outline is long.
        """
        if wanted == self._clip:
            return
        self.fh.write("\\end{pgfscope}\n" if self._clip else "")
        self.fh.write(f"\\begin{{pgfscope}}\n{wanted}" if wanted else "")
        self._clip = wanted

    def _clip_of(self, gc: Any) -> str:
        box, (outline, transform) = gc.get_clip_rectangle(), gc.get_clip_path()
        clip = (box and box.bounds, outline, transform)
        if self._last == clip:
            return self._clip_words
        file, self.fh = self.fh, StringIO()
        super()._print_pgf_clip(gc)  # type: ignore[no-untyped-call]
        self._last, self._clip_words = clip, self.fh.getvalue()
        self.fh = file
        return self._clip_words

    def _print_pgf_clip(self, gc: Any) -> None:
        """Nothing: the scope around it clips."""

    def get_text_width_height_descent(
        self, s: str, prop: Any, ismath: Any
    ) -> tuple[float, float, float]:
        """In dots, as the other formats have it."""
        size = text_to_path.get_text_width_height_descent(s, prop, ismath=False)
        width, height, descent = (value * self.dpi / POINTS for value in size)
        return width, height, descent


# --- tables ---------------------------------------------------------------------------------------

DIGITS = 7
NUMBERS = float, np.floating  # as isinstance is quickest with
FORMULA = frozenset("=+-@\t\r\n＝＋－＠")  # what formulas begin with


def write_numbers(panel: Panel, path: str | Path) -> Path:
    """Write the numbers of a figure as a CSV named after its path. Raises HgvizError."""
    kind, content = kind_of(panel.spec.kind), panel.content
    out = csv_beside(Path(path))
    require_folder(out)
    if isinstance(content, CaptureFacts):
        rows = kind.load()(content.capture, content.facts).rows(panel.spec)
    else:
        rows = content.rows()
    write(out, {out.name: csv_table(rows)})
    return out


def csv_table(rows: Iterable[tuple[Any, ...]]) -> bytes:
    """Rows as CSV (RFC 4180) in UTF-8; what is no number is empty, and no cell a formula."""
    buffer = StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerows([csv_cell(value) for value in row] for row in rows)
    return buffer.getvalue().encode(errors="backslashreplace")


def csv_cell(value: Any) -> str:
    """A value as a table has it: a number with seven digits that count, nothing for no number.

    A text that a spreadsheet would take for a formula has an apostrophe before it, and so has one
    that looks so already: whoever reads it takes one away.
    """
    if isinstance(value, NUMBERS):
        return f"{value:.{DIGITS}g}" if isfinite(value) else ""
    return _csv_text(value)


@lru_cache(maxsize=1 << 14, typed=True)  # tokens and their numbers come back in every line
def _csv_text(value: str | int) -> str:
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.lstrip("'")[:1] in FORMULA else text


# --- files ----------------------------------------------------------------------------------------


def require_folder(path: Path) -> None:
    """Raise HgvizError where a file of this name cannot be."""
    if os.path.isdir(path):  # False also for names that no system takes
        raise HgvizError(f"{path.name} is a folder", "Choose another file name")
    if not os.path.isdir(path.absolute().parent):
        raise HgvizError(
            f"the folder {path.parent} does not exist", "Create it first, or choose another folder"
        )


def write(path: Path, files: dict[str, bytes]) -> None:
    """Write files beside each other, the one named path last. Raises HgvizError."""
    for name in sorted(files, key=lambda name: name == path.name):
        with path_errors(path.with_name(name), "could not be written"):
            write_atomic(path.with_name(name), files[name])


# --- a map as one HTML page -----------------------------------------------------------------------

PAGE = ".html"
MOST_POSITIONS = 512  # along a side: the page holds every weight


def _write_map_page(panel: Panel, path: Path) -> Path:
    """Write the map of a head as a page without a network: every weight, as float32, and a picture.

    Raises HgvizError for other kinds of figure, and for maps of more than MOST_POSITIONS.
    """
    content, spec = panel.content, panel.spec
    if spec.kind != "map" or not isinstance(content, CaptureFacts):
        raise HgvizError(
            f"HTML export supports the map of one head only: this figure is of kind {spec.kind}",
            "Use a file name ending in .pdf, .svg or .png",
        )
    require_folder(path)
    capture, head = content.capture, spec.selection.head_id
    maps = map_of(capture, head)
    rows, columns = maps.shape[1:]
    require(
        max(rows, columns) <= MOST_POSITIONS,
        f"this map has {rows:,} × {columns:,} weights: "
        f"the limit for HTML is {MOST_POSITIONS} × {MOST_POSITIONS}",
        "Export it as a PDF, or capture a shorter text",
    )
    weights = read_cells(maps, head.head, (0, 0))
    seen = seen_cells(capture, head.layer, head=head.head)
    shades = shades_of(spec.display, is_signed(capture, head), [weights])
    title = f"Head {head}" if spec.title is None else spec.title
    details = head_details(capture, head, CaptureFigure(capture, content.facts).role(head))
    about = capture.spec.name, details, unseen_reason(capture, [head])

    def names(prompt: Prompt, spans: Integers) -> list[str]:
        """What each position is called, "" for one that stands for nothing."""
        names = [""] * len(spans)
        for mark in token_marks(prompt, spans):
            names[mark.start : mark.end] = [mark.words] * (mark.end - mark.start)
        return names

    def text(content: bytes) -> str:
        return b64encode(content).decode()

    data: dict[str, Any] = {
        "title": title,
        "about": "  ·  ".join(filter(None, about)),
        "rows": names(capture.query_prompt(head.layer), capture.query_spans(head.layer)),
        "columns": names(capture.key_prompt(head.layer), capture.key_spans(head.layer)),
        "weights": text(weights.astype("<f4").tobytes()),
        "seen": text(np.packbits(seen).tobytes()),
        "bar": text(compact_png(colours(shades.palette)[None])),
        "ticks": shades.ticks(220.0, 32.0),
        "picture": text(compact_png(np.dstack([shades.paint(weights), np.uint8(255) * seen]))),
        "record": "; ".join(f"{name}: {line}" for name, line in record(panel, [], path).items()),
    }
    page = resource("report/map.html").read_text("utf-8")
    script = json.dumps(data).replace("<", "\\u003c")  # no text ends the script
    page = page.replace("{{ title }}", escape(title)).replace("{{ data }}", script)
    write(path, {path.name: page.encode()})
    return path


# --- reports as one HTML page ---------------------------------------------------------------------

REPORT_WIDTH = 487.0  # of figures, in points


@dataclass(frozen=True, slots=True)
class Notes:
    """A list of sentences under a title."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of words under the names of columns; text: the columns that do not hold numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: frozenset[int] = frozenset({0})
    caption: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A chart with a caption below it."""

    title: str
    chart: Chart
    caption: str


Block = Notes | Table | Picture


@dataclass(frozen=True, slots=True)
class Document:
    """A report; a block without a title continues the one before it. about: what identifies the
    data, for the metadata of the file."""

    title: str
    subtitle: str
    blocks: tuple[Block, ...]
    about: Mapping[str, str] = field(default_factory=dict)


def require_page(path: Path) -> None:
    """Require that a report of this name can be written, before it is made. Raises HgvizError."""
    name = path.suffix.lower() or path.name
    require(
        name == PAGE,
        f"a report cannot be saved as {name!r}: reports are HTML pages",
        "Use a file name ending in .html",
    )
    require_folder(path)


def write_report(report: Document, path: Path, command: str) -> Path:
    """Write a report without scripts, light or dark as the reader has it, and return its path.

    command: what makes it again; names of folders are left out of it. Raises HgvizError.
    """
    import jinja2
    from markupsafe import Markup

    require_page(path)
    record = _entries("report", report.about, without_folders(command))
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    template = environment.from_string(resource("report/page.html").read_text("utf-8"))
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in _report_colours(*theme).items())
        for theme in ((LIGHT_PAGE, CATEGORICAL), (DARK_PAGE, CATEGORICAL_DARK))
    )

    def svg(picture: Picture, number: int) -> Markup:
        return Markup(_report_svg(picture, f"f{number}-"))

    with figure_settings():
        page = template.render(
            report=report, record=record, svg=svg, light=light, dark=dark,
            text=Markup(' class="text"'),
        )  # fmt: skip
    write(path, {path.name: page.encode()})
    return path


def _report_colours(ink: PageColours, lines: tuple[str, ...]) -> dict[str, str]:
    """All that follows the page, by the names of its variables; of lines the last is plain ink."""
    names = (row.name for row in fields(ink) if row.name != "silhouette")
    inks = {name.replace("_", "-"): getattr(ink, name) for name in names}
    return inks | {f"line-{number}": colour for number, colour in enumerate(lines[:-1])}


def _report_svg(picture: Picture, prefix: str) -> str:
    """A figure whose ink follows the page and whose names are those of no other figure."""
    page, buffer = Page(REPORT_WIDTH), BytesIO()
    picture.chart.draw(page, Spec())
    page.figure.savefig(buffer, format="svg", dpi=DOTS, bbox_inches=None, metadata={"Date": None})
    text = compact_svg(buffer.getvalue().decode())
    text = re.sub(r"^.*?(?=<svg )|\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", text)
    for name, colour in _report_colours(LIGHT_PAGE, CATEGORICAL).items():
        text = re.sub(re.escape(colour), f"var(--{name})", text, flags=re.IGNORECASE)
    label = f'<svg role="img" aria-label="{escape(picture.caption)}" '
    return text.replace("<svg ", label, 1).strip()
