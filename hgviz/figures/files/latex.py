r"""Texts as LaTeX takes them: nothing in one is a command, and no character stops the run.

What every LaTeX can set is written in ASCII; anything else is kept as it is beside boxes that
stand for it, as \hgvizother{boxes}{text}. The document decides: what its font lacks is a box.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

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

# Said in every file, for what a document has not said itself.
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


def text(words: str) -> str:
    """A line of text."""
    out: list[str] = []
    before = ""
    for character, written in _signs(unicodedata.normalize("NFC", words)):
        if before + character in LIGATURES:
            out.append(r"\kern0pt ")
        elif character == before == " ":
            written = r"\ "
        out.append(written)
        before = character
    return "".join(out)


def font(size: float, bold: bool) -> str:
    """What sets the size of a text in points, in the document's own font."""
    return rf"\fontsize{{{number(size)}}}{{{number(1.2 * size)}}}\selectfont" + (
        r"\bfseries" if bold else ""
    )


def head(record: Mapping[str, str]) -> str:
    """What stands over a picture: what it is, and how a document takes it."""
    lines = [f"% {key}: {' '.join(value.split())}" for key, value in record.items()]
    lines += [r"% \usepackage{pgf} and \input this file; its pictures lie beside it", ""]
    return "\n".join(lines) + "\\begingroup%\n" + MACROS


def raster(path: Path, at: int) -> str:
    """What the raster number `at` of a file is called: a name that LaTeX takes as it is."""
    stem = path.name.removesuffix(".pgf")
    plain = "".join(
        one if one.isascii() and (one.isalnum() or one in "-_") else "-" for one in stem
    )
    if plain != stem:
        plain += "-" + sha256(stem.encode()).hexdigest()[:6]
    return f"{plain}-pgf{at}.png"


def number(value: float) -> str:
    """A number of points: three decimals at most."""
    found = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if found == "-0" else found


def _signs(words: str) -> Iterator[tuple[str, str]]:
    """The parts of a text and what is written for each: its characters, and runs of a script."""
    for script, part in _runs(words):
        if not script:
            yield part, _sign(part)
            continue
        boxes = "".join(r"\ " if one == " " else BOX for one in part if not _joins(one))
        found = rf"\hgvizother{{{boxes or BOX}}}{{{part}}}"
        left = any(unicodedata.bidirectional(one) in ("R", "AL") for one in part)
        yield part, rf"\hgvizleftward{{{found}}}" if left else found


def _runs(words: str) -> list[tuple[str, str]]:
    """(script, characters): "" and one character that every LaTeX has, or some of one script,
    the marks on them and the spaces between them included."""
    runs: list[tuple[str, str]] = []
    for one in words:
        script = _script(one)
        if runs and runs[-1][0] and (script == runs[-1][0] or _joins(one)):
            runs[-1] = runs[-1][0], runs[-1][1] + one
        elif script and len(runs) > 1 and runs[-1] == ("", " ") and runs[-2][0] == script:
            runs[-2:] = [(script, f"{runs[-2][1]} {one}")]
        else:
            runs.append((script, one))
    return runs


def _script(character: str) -> str:
    """The first word of a character's name, such as HANGUL; "" where LaTeX needs no font for it."""
    if character in SIGNS or character.isascii() or unicodedata.category(character)[0] in "CZ":
        return ""
    return "" if _accented(character) else unicodedata.name(character, "UNKNOWN").split()[0]


def _sign(character: str) -> str:
    if character in SIGNS:
        return SIGNS[character]
    if character.isascii() and character.isprintable():
        return character
    return _accented(character) or BOX


def _accented(character: str) -> str:
    """A letter of ASCII with one accent, "" for any other."""
    letter, *marks = tuple(unicodedata.normalize("NFD", character))
    if len(marks) != 1 or marks[0] not in ACCENTS or not (letter.isascii() and letter.isalpha()):
        return ""
    return rf"\{ACCENTS[marks[0]]}{{{DOTLESS.get(letter, letter)}}}"


def _joins(character: str) -> bool:
    """Whether it belongs to the character before."""
    return unicodedata.category(character)[0] == "M" or character in JOINERS
