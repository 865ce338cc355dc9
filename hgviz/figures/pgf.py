r"""Figures as PGF for LaTeX: texts in the document's own font, rasters as files beside it.

Nothing in a text is a command, and no character stops the run: what every LaTeX can set is written
in ASCII; anything else is kept beside boxes that stand for it, as \hgvizother{boxes}{text}. The
document decides: what its font lacks is a box.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from hashlib import sha256
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_pgf import RendererPgf
from matplotlib.figure import Figure
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D
from numpy.typing import NDArray
from PIL import Image

from hgviz.figures.spec import POINTS

# --- texts ----------------------------------------------------------------------------------------

BOX = r"\hgvizbox{}"
SIGNS = {
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
    "□": BOX,
}  # fmt: skip
ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u",
    "\u0307": ".", "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c",
}  # fmt: skip
DOTLESS = {"i": r"\i", "j": r"\j"}
JOINERS = "\u200c\u200d"
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
    for part, written in _parts(unicodedata.normalize("NFC", words)):
        if before + part in LIGATURES:
            out.append(r"\kern0pt ")
        elif part == before == " ":
            written = r"\ "
        out.append(written)
        before = part
    return "".join(out)


def _parts(words: str) -> Iterator[tuple[str, str]]:
    """The parts of a text and what is written for each: its characters, and runs of a script."""
    for script, part in _runs(words):
        if not script:
            yield part, _sign(part)
            continue
        boxes = "".join(r"\ " if sign == " " else BOX for sign in part if not _joins(sign))
        written = rf"\hgvizother{{{boxes or BOX}}}{{{part}}}"
        is_leftward = any(unicodedata.bidirectional(sign) in ("R", "AL") for sign in part)
        yield part, rf"\hgvizleftward{{{written}}}" if is_leftward else written


def _runs(words: str) -> list[tuple[str, str]]:
    """(script, characters): "" and one character that every LaTeX has, or a run of one script, the
    marks on its characters and the spaces between them included."""
    runs: list[tuple[str, str]] = []
    for sign in words:
        script = _script(sign)
        if runs and runs[-1][0] and (script == runs[-1][0] or _joins(sign)):
            runs[-1] = runs[-1][0], runs[-1][1] + sign
        elif script and len(runs) > 1 and runs[-1] == ("", " ") and runs[-2][0] == script:
            runs[-2:] = [(script, f"{runs[-2][1]} {sign}")]
        else:
            runs.append((script, sign))
    return runs


def _script(character: str) -> str:
    """The first word of a character's name, such as HANGUL; "" where LaTeX needs no font for it."""
    if character in SIGNS or character.isascii() or unicodedata.category(character)[0] in "CZ":
        return ""
    return "" if _accented(character) else unicodedata.name(character, "UNKNOWN").split()[0]


def _sign(character: str) -> str:
    if character in SIGNS:
        return SIGNS[character]
    is_plain = character.isascii() and character.isprintable()
    return character if is_plain else _accented(character) or BOX


def _accented(character: str) -> str:
    """A letter of ASCII with one accent, "" for any other."""
    letter, *marks = tuple(unicodedata.normalize("NFD", character))
    if len(marks) != 1 or marks[0] not in ACCENTS or not (letter.isascii() and letter.isalpha()):
        return ""
    return rf"\{ACCENTS[marks[0]]}{{{DOTLESS.get(letter, letter)}}}"


def _joins(character: str) -> bool:
    """Whether it belongs to the character before."""
    return unicodedata.category(character)[0] == "M" or character in JOINERS


# --- rasters --------------------------------------------------------------------------------------


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


def raster_name(path: Path, number: int) -> str:
    """What raster number 0, 1 ... of a file is called: a name that LaTeX takes as it is."""
    stem = path.name.removesuffix(".pgf")
    plain = "".join(
        sign if sign.isascii() and (sign.isalnum() or sign in "-_") else "-" for sign in stem
    )
    if plain != stem:
        plain += "-" + sha256(stem.encode()).hexdigest()[:6]
    return f"{plain}-pgf{number}.png"


# --- the picture ----------------------------------------------------------------------------------


def render_pgf(figure: Figure, path: Path, record: Mapping[str, str]) -> dict[str, bytes]:
    """The .pgf of a figure, headed by its record, and the .png files that it names."""
    lines = [f"% {key}: {' '.join(value.split())}" for key, value in record.items()]
    lines += [r"% \usepackage{pgf} and \input this file; its pictures lie beside it", ""]
    width, height = figure.get_size_inches()
    file = StringIO()
    file.write("\n".join(lines) + "\\begingroup%\n" + MACROS)
    file.write("\\makeatletter\\begin{pgfpicture}\n")
    file.write(
        rf"\pgfpathrectangle{{\pgfpointorigin}}{{\pgfqpoint{{{width:f}in}}{{{height:f}in}}}}"
    )
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
        """An outline, filled or not."""
        self.clip(self._clip_of(gc))
        super().draw_path(gc, path, transform, rgbFace)  # type: ignore[no-untyped-call]

    def draw_markers(
        self, gc: Any, marker_path: Any, marker_trans: Any, path: Any, trans: Any,
        rgbFace: Any = None,
    ) -> None:  # fmt: skip
        """The same outline at many places."""
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
        if self._last and self._last[0] == clip[0] and self._last[1] is outline and (
            self._last[2] == transform
        ):  # fmt: skip
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
