"""Text on paper: fonts that can be embedded, how wide a text is, and the labels of an axis.

Sizes and widths are in points. Labels are never dropped silently and never overlap.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np
from matplotlib import font_manager, style
from matplotlib.ft2font import LoadFlags

from hgviz.core import Integers, Prompt

TEXT, SMALL, TITLE = 7.0, 6.5, 8.0  # sizes
LEAST = 5.0  # the size of a label that can still be read in print
MEASURED = 100.0  # the size texts are measured at
DOTS = 300  # per inch, of a PNG and of the rasters inside the other formats

# Asked in turn for each character. TrueType only: a CFF font cannot be embedded as Type 42.
FALLBACKS = (
    "NanumGothic", "Noto Sans Arabic", "Noto Naskh Arabic", "Noto Sans Hebrew",
    "Noto Sans Devanagari", "Noto Sans Bengali", "Noto Sans Tamil", "Noto Sans Thai",
    "Noto Sans Armenian", "Noto Sans Georgian", "Noto Sans Ethiopic", "Noto Sans Symbols",
    "Noto Sans Symbols2", "Noto Sans Math",
)  # fmt: skip
PROPORTIONAL, FIXED = "DejaVu Sans", "DejaVu Sans Mono"  # matplotlib brings these two itself
SETTINGS: dict[str, Any] = {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "hgviz",
    "image.interpolation": "none",
    "image.composite_image": False,
    "text.parse_math": False,
    "text.hinting": "none",
    "font.size": TEXT,
    "savefig.dpi": DOTS,
    "pgf.rcfonts": False,
}

BOX = "□"
SPACE = "·"
NOTHING = "∅"  # what is no part of the text, such as a null group
SHOWN = {"\n": "↵", "\r": "↵", "\t": "⇥"}
JOINERS = "\u200c\u200d"
VARIANTS = {chr(code) for code in range(0xFE00, 0xFE10)}  # how the character before is drawn
TONES = {chr(code) for code in range(0x1F3FB, 0x1F400)}
LINE = 1.18  # the room of a label along its axis, in sizes
LONGEST = 2000  # characters of a label
BEYOND, ASIDE, APART = 3.0, 7.0, 5.0  # of level labels: over the end, off their place, between two
NUMBER = 24.0  # the room of a number that is written level
CROWDED = 4.0  # words per label that still make sense thinned out

# --- fonts ----------------------------------------------------------------------------------------


@contextmanager
def figure_settings() -> Iterator[None]:
    """Draw with the settings of figures, whatever those of this machine are."""
    logs = [logging.getLogger(name) for name in ("fontTools", "matplotlib.font_manager")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)  # they report tables of no use in a subset
    try:
        with style.context(["default", SETTINGS]):
            yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)


@lru_cache(maxsize=64)
def font(size: float, bold: bool = False, fixed: bool = False) -> Any:
    """The font of a text: of its families, the first that has a character draws it."""
    files = {font.name: font.fname for font in font_manager.fontManager.ttflist}
    families = [FIXED, PROPORTIONAL] if fixed else [PROPORTIONAL]
    families += [name for name in FALLBACKS if files.get(name, "").lower().endswith(".ttf")]
    weight = "bold" if bold else "normal"
    return font_manager.FontProperties(family=families, size=size, weight=weight)


@lru_cache(maxsize=4)
def _font_files(bold: bool, fixed: bool) -> tuple[str, ...]:
    weight, families = "bold" if bold else "normal", font(TEXT, fixed=fixed).get_family()
    fonts = (font_manager.FontProperties(family=[name], weight=weight) for name in families)
    return tuple(map(font_manager.findfont, fonts))


@lru_cache(maxsize=8192)
def has_glyph(character: str) -> bool:
    """Whether an installed font has this character."""
    fonts = map(font_manager.get_font, _font_files(False, False))
    return any(font.get_char_index(ord(character)) for font in fonts)


@lru_cache(maxsize=16384)
def text_width(words: str, size: float, bold: bool = False, fixed: bool = False) -> float:
    """The width of a line of text."""
    measure = font_manager.get_font(_font_files(bold, fixed))  # one for each thread
    measure.set_size(MEASURED, 72)  # dots per inch: one is a point
    measure.set_text(words, 0.0, flags=LoadFlags.NO_HINTING)
    width: float = measure.get_width_height()[0] / 64 * size / MEASURED
    return width


# --- what can be drawn ----------------------------------------------------------------------------

_missing: ContextVar[set[str] | None] = ContextVar("_missing", default=None)


@contextmanager
def record_missing() -> Iterator[set[str]]:
    """Collect the characters that visible() replaces by a box because no font has them."""
    characters = set[str]()
    before = _missing.set(characters)
    try:
        yield characters
    finally:
        _missing.reset(before)


def visible(words: str, space: str = SPACE) -> str:
    """A text as it can be drawn: every character has a sign, those no font has a box.

    No label is longer than LONGEST characters: what is beyond them is left out.
    """
    out: list[str] = []
    joined = False
    for character in words if len(words) <= LONGEST else words[:LONGEST] + "…":
        if out and character in VARIANTS:
            continue
        if out and out[-1] == BOX and (joined or character in TONES or character == JOINERS[1]):
            joined = character == JOINERS[1]  # the rest of an emoji that is a box already
            continue
        joined = False
        out.append(space if character == " " else _sign(character, is_first=not out))
    return "".join(out)


def _sign(character: str, is_first: bool) -> str:
    if character in SHOWN:
        return SHOWN[character]
    if character in JOINERS and not is_first and has_glyph(character):
        return character  # Persian and Hindi words are spelled with them
    category = unicodedata.category(character)
    if category == "Cc":
        return f"\\x{ord(character):02x}"
    if not has_glyph(character):
        if (missing := _missing.get()) is not None:
            missing.add(character)
        return BOX
    if category[0] in "CZ":
        return BOX
    # a mark alone needs something to stand on
    return "◌" + character if category[0] == "M" and is_first else character


def elide(words: str, room: float, size: float, bold: bool = False, fixed: bool = False) -> str:
    """The text, or as much of its beginning as fits into room, with an ellipsis."""
    if text_width(words, size, bold, fixed) <= room:
        return words

    def is_too_long(end: int) -> bool:
        return text_width(words[:end] + "…", size, bold, fixed) > room

    return words[: bisect_left(range(1, len(words) + 1), True, key=is_too_long)] + "…"


def may_be_bold(words: str, room: float, size: float) -> bool:
    """Whether a text may be bold in this room: one that fits only in plain letters stays whole."""
    return not text_width(words, size) <= room < text_width(words, size, bold=True)


def wrap(words: str, room: float, size: float, bold: bool = False, most: int = 10_000) -> list[str]:
    """A text in lines, at most so many; a word longer than a line, and the last line, is elided."""
    lines: list[str] = []
    for word in re.split(r" (?!%)", visible(words, space=" ")):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and (len(lines) == most or text_width(longer, size, bold) <= room):
            lines[-1] = longer
        else:
            lines.append(word)
    return [elide(line, room, size, bold) for line in lines]


# --- labels of an axis ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mark:
    """A label for the positions start..end-1 of an axis; chosen: of the selected position."""

    start: int
    end: int
    words: str
    chosen: bool = False
    bold: bool = False

    @property
    def middle(self) -> float:
        """Where it stands, in positions."""
        return (self.start + self.end) / 2


def axis_marks(
    prompt: Prompt, spans: Integers, cell: float, size: float, room: float,
    chosen: int | None = None, has_null: bool = False,
) -> list[Mark]:  # fmt: skip
    """The labels of an axis whose positions stand for spans (positions, 2) of tokens.

    cell: points per position; room: points a label may be long; chosen: the selected position;
    has_null: the first position is a null group. Every position where there is room, else words,
    thinned out, else numbers of tokens.
    """
    need = size * LINE
    marks = [Mark(0, 1, NOTHING)] if has_null else []
    marks += token_marks(prompt, spans) if cell >= need else word_marks(prompt, spans)
    if chosen is not None:
        marks = [replace(mark, chosen=mark.start <= chosen < mark.end) for mark in marks]
    if cell < need and len(marks) * need > CROWDED * len(spans) * cell:
        selected = [mark for mark in marks if mark.chosen]
        marks = selected + [
            mark
            for mark in number_marks(prompt, spans, cell)
            if all(abs(mark.middle - other.middle) * cell >= NUMBER for other in selected)
        ]
    labels = []
    for mark in marks:
        bold = mark.chosen and may_be_bold(mark.words, room, size)
        labels.append(replace(mark, words=elide(mark.words, room, size, bold), bold=bold))
    return thin(labels, cell, need)


def size_for(cell: float) -> float:
    """The size of labels of positions so far apart: as small as all of them need, if that can be
    read, else the usual, and some are left out."""
    needed = cell / LINE
    return min(SMALL, needed) if needed >= LEAST else SMALL


def level_places(
    marks: Sequence[Mark], cell: float, length: float, size: float
) -> list[float] | None:
    """Where the middles of labels lie that are written level over an axis of so many points, None
    where they would meet; those at its ends are moved inwards a little."""
    places: list[float] = []
    before = -inf
    for mark in marks:
        half = text_width(mark.words, size, mark.bold) / 2
        at = mark.middle * cell
        place = max(half - BEYOND, min(at, length - half + BEYOND))
        if abs(place - at) > ASIDE or place - half < before + APART:
            return None
        if place + half > length + BEYOND + 1e-6:
            return None
        places.append(place)
        before = place + half
    return places


def thin(marks: Sequence[Mark], cell: float, need: float) -> list[Mark]:
    """As many marks as fit, in order; the chosen one stays."""
    fitting: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: (not mark.chosen, mark.start)):
        if all(abs(mark.middle - other.middle) * cell >= need for other in fitting):
            fitting.append(mark)
    return sorted(fitting, key=lambda mark: mark.start)


def unit_spans(count: int) -> Integers:
    """[[0, 1], [1, 2], ...]: a position for each token."""
    numbers = np.arange(count)
    return np.stack([numbers, numbers + 1], axis=1)


def token_marks(prompt: Prompt, spans: Integers) -> list[Mark]:
    """One label for every position; positions that share their characters share a label."""
    marks: list[Mark] = []
    before: object = None
    first = 0  # token of the label
    for at, (start, end) in enumerate(spans.tolist()):
        if end <= 0:
            continue
        low, high = (int(place) for place in (prompt.spans[start][0], prompt.spans[end - 1][1]))
        is_same = low >= 0 and (low, high) == before
        first = first if is_same else start
        cell = marks.pop().start if is_same else at
        marks.append(Mark(cell, at + 1, token_words(prompt, first, end)))
        before = (low, high) if low >= 0 else None
    return marks


def word_marks(prompt: Prompt, spans: Integers) -> list[Mark]:
    """One label for every word: the positions whose newest token lies in it."""
    word = np.full(len(prompt.text) + 1, -1)
    for number, match in enumerate(re.finditer(r"\S+", prompt.text)):
        word[match.start() : match.end()] = number
    marks: list[Mark] = []
    before = -1
    for at, (_, end) in enumerate(spans.tolist()):
        first, last = map(int, prompt.spans[end - 1]) if end > 0 else (0, 0)
        here = int(word[first:last].max(initial=-1)) if first >= 0 else -1
        if first < 0 or here not in (-1, before):
            whole = _word(prompt.text, first, last) if first >= 0 else ""
            marks.append(Mark(at, at + 1, visible(whole or prompt.label(end - 1))))
        elif here >= 0:
            marks[-1] = replace(marks[-1], end=at + 1)
        before = here
    return marks


def number_marks(prompt: Prompt, spans: Integers, cell: float) -> list[Mark]:
    """Numbers of tokens, at round steps; of a sound their times."""
    newest = spans[:, 1] - 1
    tokens = int(newest.max(initial=0)) + 1
    target = (NUMBER + APART) * tokens / max(len(spans) * cell, 1e-9)
    numbers = range(0, tokens, round_step(target))
    places = np.searchsorted(np.maximum.accumulate(newest), numbers).tolist()
    is_timed = prompt.signal is not None and prompt.signal.seconds > 0
    words = [prompt.pieces[number] if is_timed else f"{number:,}" for number in numbers]
    return [Mark(at, at + 1, word) for at, word in zip(places, words, strict=True)]


def round_step(least: float) -> int:
    """The first of 1, 2, 5, 10, 20 ... that is not below least."""
    steps = (first * 10**power for power in range(15) for first in (1, 2, 5))
    return next(int(step) for step in steps if step >= least)


def token_words(prompt: Prompt, start: int, end: int) -> str:
    """The characters of tokens start..end-1 as they can be drawn; the name of a token without."""
    words = prompt.words(start, end)
    if not words:  # a name, whose spaces are only spaces
        return visible(" ".join(prompt.pieces[start:end]).strip(), space=" ") or BOX
    return visible(words.strip() or words) or BOX


def surrounding_word(prompt: Prompt, token: int) -> str:
    """The word around a token, "" where it is a word by itself."""
    first, last = (int(place) for place in prompt.spans[token])
    whole = _word(prompt.text, first, last) if first >= 0 else ""
    return "" if whole == prompt.text[first:last].strip() else visible(whole)


def _word(text: str, first: int, last: int) -> str:
    """The word that the last visible character of text[first:last] belongs to."""
    inside = text[first:last].rstrip()
    if not inside:
        return ""
    at = first + len(inside) - 1
    start, end = at, at + 1
    while start > max(0, at - LONGEST) and not text[start - 1].isspace():
        start -= 1
    while end < min(len(text), at + LONGEST) and not text[end].isspace():
        end += 1
    return text[start:end]
