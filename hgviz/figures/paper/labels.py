"""What stands beside the rows and columns: the text itself, never dropped and never overlapping."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from hgviz.core import Integers, Prompt
from hgviz.figures.paper import style

BOX = "□"
SPACE = "·"
NOTHING = "∅"  # what is no part of the text, such as a null group
SHOWN = {"\n": "↵", "\r": "↵", "\t": "⇥"}
JOINERS = "\u200c\u200d"
VARIANTS = {chr(code) for code in range(0xFE00, 0xFE10)}  # how the character before is drawn
TONES = {chr(code) for code in range(0x1F3FB, 0x1F400)}
LINE = 1.18  # the room of a label along its axis, in sizes
LONGEST = 2000
LEAST = 5.0  # the size of a label that can still be read in print
BESIDE, ASIDE, APART = 3.0, 7.0, 5.0  # of level labels: over the end, off their place, between two
NUMBER = 24.0  # the room of a number that is written level
CROWDED = 4.0  # words per label that still make sense thinned out


@dataclass(frozen=True, slots=True)
class Mark:
    """A label for the positions start..end-1 of an axis."""

    start: int
    end: int
    words: str
    chosen: bool = False
    bold: bool = False

    @property
    def middle(self) -> float:
        """Where it stands, in positions."""
        return (self.start + self.end) / 2


_boxed: ContextVar[set[str] | None] = ContextVar("_boxed", default=None)


@contextmanager
def recorded_boxes() -> Iterator[set[str]]:
    """Collect the characters that visible() replaces by a box because no font has them."""
    boxed = set[str]()
    before = _boxed.set(boxed)
    try:
        yield boxed
    finally:
        _boxed.reset(before)


def visible(words: str, space: str = SPACE) -> str:
    """A text as it can be drawn: every character has a sign, those no font has a box.

    No label is as long as LONGEST characters: what a stranger wrote beyond them is left out.
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
        out.append(space if character == " " else _sign(character, first=not out))
    return "".join(out)


def elide(words: str, room: float, size: float, bold: bool = False, fixed: bool = False) -> str:
    """The text, or as much of its beginning as fits into room, with an ellipsis."""
    if style.extent(words, size, bold, fixed) <= room:
        return words
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if style.extent(words[:middle] + "…", size, bold, fixed) <= room:
            low = middle
        else:
            high = middle - 1
    return words[:low] + "…"


def bold_in(words: str, room: float, size: float) -> bool:
    """Whether a text may be bold in this room: one that fits only in plain letters stays whole."""
    return not style.extent(words, size) <= room < style.extent(words, size, bold=True)


def wrapped(
    words: str, room: float, size: float, bold: bool = False, most: int = 10_000
) -> list[str]:
    """A text in lines, at most so many; a word longer than a line, and the last line, is elided."""
    lines: list[str] = []
    for word in re.split(r" (?!%)", visible(words, space=" ")):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and (len(lines) == most or style.extent(longer, size, bold) <= room):
            lines[-1] = longer
        else:
            lines.append(word)
    return [elide(line, room, size, bold) for line in lines]


def axis_marks(
    prompt: Prompt,
    spans: Integers,
    cell: float,
    size: float,
    room: float,
    chosen: int | None = None,
    null: bool = False,
) -> list[Mark]:
    """The labels of an axis whose positions stand for spans (positions, 2) of tokens.

    cell: points per position; room: points a label may be long. Every position where there is
    room, else words, thinned out, else numbers of tokens. null: the first is a null group.
    """
    need = size * LINE
    name = singles if cell >= need else words_of
    marks = [Mark(0, 1, NOTHING)] if null else []
    marks = [_chosen(mark, chosen) for mark in (*marks, *name(prompt, spans))]
    if cell < need and len(marks) * need > CROWDED * len(spans) * cell:
        kept = [mark for mark in marks if mark.chosen]
        marks = kept + [
            one
            for one in numbers(spans, cell, prompt)
            if all(abs(one.middle - other.middle) * cell >= NUMBER for other in kept)
        ]
    fitted = [
        replace(one, words=elide(one.words, room, size, bold), bold=bold)
        for one in marks
        for bold in [one.chosen and bold_in(one.words, room, size)]
    ]
    return thinned(fitted, cell, need)


def size_for(cell: float) -> float:
    """The size of labels of positions so far apart: as small as all of them need, if that can be
    read, else the usual, and some are left out.
    """
    needed = cell / LINE
    return min(style.SMALL, needed) if needed >= LEAST else style.SMALL


def level(marks: Sequence[Mark], cell: float, length: float, size: float) -> list[float] | None:
    """Where the middles of labels lie that are written level over an axis of so many points, None
    where they would meet; those at its ends are moved inwards a little.
    """
    places: list[float] = []
    before = -inf
    for mark in marks:
        half = style.extent(mark.words, size, mark.bold) / 2
        at = mark.middle * cell
        place = max(half - BESIDE, min(at, length - half + BESIDE))
        if abs(place - at) > ASIDE or place - half < before + APART:
            return None
        if place + half > length + BESIDE + 1e-6:
            return None
        places.append(place)
        before = place + half
    return places


def thinned(marks: Sequence[Mark], cell: float, need: float) -> list[Mark]:
    """As many marks as fit, in order; the chosen one stays."""
    kept: list[Mark] = []
    for mark in sorted(marks, key=lambda one: (not one.chosen, one.start)):
        if all(abs(mark.middle - other.middle) * cell >= need for other in kept):
            kept.append(mark)
    return sorted(kept, key=lambda one: one.start)


def singles(prompt: Prompt, spans: Integers) -> list[Mark]:
    """One label for every position; positions that share their characters share a label."""
    marks: list[Mark] = []
    before: object = None
    first = 0  # token of the label
    for at, (start, end) in enumerate(spans.tolist()):
        if end <= 0:
            continue
        here = _characters(prompt, start, end)
        same = here is not None and here == before
        first = first if same else start
        cell = marks.pop().start if same else at
        marks.append(Mark(cell, at + 1, token_words(prompt, first, end)))
        before = here
    return marks


def words_of(prompt: Prompt, spans: Integers) -> list[Mark]:
    """One label for every word: the positions whose newest token lies in it."""
    word = np.full(len(prompt.text) + 1, -1)
    for number, found in enumerate(re.finditer(r"\S+", prompt.text)):
        word[found.start() : found.end()] = number
    marks: list[Mark] = []
    before = -1
    for at, (_, end) in enumerate(spans):
        if end <= 0:
            before = -1
            continue
        first, last = prompt.spans[end - 1]
        here = int(word[first:last].max(initial=-1)) if first >= 0 else -1
        if first >= 0 and here < 0:
            before = -1
        elif first >= 0 and here == before:
            marks[-1] = Mark(marks[-1].start, at + 1, marks[-1].words)
        else:
            whole = _word(prompt.text, int(first), int(last)) if first >= 0 else ""
            marks.append(Mark(at, at + 1, visible(whole or prompt.label(int(end) - 1))))
            before = here
    return marks


def numbers(spans: Integers, cell: float, prompt: Prompt | None = None) -> list[Mark]:
    """Numbers of tokens, at round steps; of a sound their times."""
    newest = spans[:, 1] - 1
    tokens = int(newest.max(initial=0)) + 1
    target = (NUMBER + APART) * tokens / max(len(spans) * cell, 1e-9)
    step = next(s for p in range(12) for s in (10**p, 2 * 10**p, 5 * 10**p) if s >= target)
    rising = np.maximum.accumulate(newest)
    at = np.searchsorted(rising, np.arange(0, tokens, step))
    timed = prompt is not None and prompt.signal is not None and prompt.signal.seconds > 0
    if prompt is not None and timed:
        return [Mark(int(p), int(p) + 1, prompt.pieces[n * step]) for n, p in enumerate(at)]
    return [Mark(int(p), int(p) + 1, f"{n * step:,}") for n, p in enumerate(at)]


def token_words(prompt: Prompt, start: int, end: int) -> str:
    """The characters of tokens start..end-1 as they can be drawn; a piece's name where none."""
    words = prompt.words(start, end)
    if not words:  # a name, whose spaces are only spaces
        return visible(" ".join(prompt.pieces[start:end]).strip(), space=" ") or BOX
    return visible(words.strip() or words) or BOX


def context(prompt: Prompt, token: int) -> str:
    """The word around a token, "" where it is a word by itself."""
    first, last = (int(one) for one in prompt.spans[token])
    whole = _word(prompt.text, first, last) if first >= 0 else ""
    return "" if whole == prompt.text[first:last].strip() else visible(whole)


def _chosen(mark: Mark, position: int | None) -> Mark:
    if position is None or not mark.start <= position < mark.end:
        return mark
    return Mark(mark.start, mark.end, mark.words, True)


def _characters(prompt: Prompt, start: int, end: int) -> tuple[int, int] | None:
    first, last = (int(one) for one in (prompt.spans[start][0], prompt.spans[end - 1][1]))
    return (first, last) if first >= 0 else None


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


def _sign(character: str, first: bool) -> str:
    if character in SHOWN:
        return SHOWN[character]
    if character in JOINERS and not first and style.drawable(character):
        return character  # Persian and Hindi words are spelled with them
    kind = unicodedata.category(character)
    if kind == "Cc":
        return f"\\x{ord(character):02x}"
    has_glyph = style.drawable(character)
    if not has_glyph and (boxed := _boxed.get()) is not None:
        boxed.add(character)
    if kind[0] in "CZ" or not has_glyph:
        return BOX
    if kind[0] == "M" and first:
        return "◌" + character  # a mark alone needs something to stand on
    return character
