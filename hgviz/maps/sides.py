"""What stands along the two sides of a map: positions one by one, or the words they make up."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, Integers, Prompt, readonly

NOTHING = -1
JOINTS, POINTS = "'’", ".,"  # inside words, and inside numbers
# written without spaces: no word of theirs ends where a run of letters does
UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF),
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The units along one side of a map, in order.

    edges (units + 1,): the positions between which each lies; tokens (units, 2): the tokens behind
    it, half-open, (-1, -1) for padding and the zeros of a shift; special (units,): whether it is a
    special token, or none; shown (n,): the units that are to be seen.
    """

    prompt: Prompt
    edges: Integers
    tokens: Integers
    special: NDArray[np.bool_]
    shown: Integers

    def __len__(self) -> int:
        return len(self.shown)

    def place(self, position: int) -> int | None:
        """The place, among those shown, of the unit that a position is in; None: it is hidden."""
        unit = int(np.searchsorted(self.edges, position, side="right")) - 1
        at = int(np.searchsorted(self.shown, unit))
        return at if at < len(self.shown) and self.shown[at] == unit else None

    def rows(self, place: int) -> tuple[int, int]:
        """The positions (first, stop) of the unit shown at a place."""
        unit = self.shown[place]
        return int(self.edges[unit]), int(self.edges[unit + 1])

    def token(self, place: int) -> int | None:
        """The newest token of the unit shown at a place, None where none is behind it."""
        end = int(self.tokens[self.shown[place], 1])
        return end - 1 if end > 0 else None

    def words(self, place: int) -> str:
        """The characters of the unit shown at a place; the name of a special token; "" for none."""
        start, end = (int(one) for one in self.tokens[self.shown[place]])
        if start < 0:
            return ""
        found = self.prompt.words(start, end)
        return found.strip() or found or " ".join(self.prompt.pieces[start:end]).strip()


def side_of(capture: Capture, layer: int, axis: str, words: bool, special: bool) -> Side:
    """The queries or the keys ("query", "key") of a layer; words: positions of one word are one
    unit; special: special tokens, padding and the zeros of a shift are shown, too.
    """
    query = axis == "query"
    prompt = capture.query_prompt(layer) if query else capture.key_prompt(layer)
    spans = capture.query_spans(layer) if query else capture.key_spans(layer)
    none = _none(prompt, spans)
    firsts = np.arange(len(spans))
    if words and len(spans):
        number = _numbers(prompt, spans, none)
        firsts = np.flatnonzero(np.diff(number, prepend=number[0] - 1))
    edges = np.append(firsts, len(spans))
    lasts = edges[1:] - 1
    tokens = np.stack([spans[firsts, 0], spans[lasts, 1]], axis=1).reshape(-1, 2)
    hidden = none[firsts] if len(firsts) else np.zeros(0, bool)
    shown = np.arange(len(firsts)) if special else np.flatnonzero(~hidden)
    return Side(prompt, readonly(edges), readonly(tokens), readonly(hidden), readonly(shown))


def _none(prompt: Prompt, spans: Integers) -> NDArray[np.bool_]:
    """(positions,): whether nothing of the text is behind a position; slots and states are all of
    theirs.
    """
    empty = spans[:, 1] <= 0
    if prompt.unit in ("slot", "state") or not (prompt.spans[:, 0] >= 0).any():
        return empty
    written = np.append(0, np.cumsum(prompt.spans[:, 0] >= 0))
    start, end = np.clip(spans, 0, len(prompt)).T
    found: NDArray[np.bool_] = empty | (written[end] == written[start])
    return found


def _numbers(prompt: Prompt, spans: Integers, none: NDArray[np.bool_]) -> Integers:
    """(positions,): the number of the word that the newest token of each ends in; of special
    tokens, and of what has no characters, numbers of their own.
    """
    word = words_of(prompt.text)
    found = -2 - np.arange(len(spans))
    there = np.flatnonzero(~none)
    ends = prompt.spans[spans[there, 1] - 1]
    real = ends[:, 1] > ends[:, 0]
    last = ends[real, 1] - 1
    found[there[real]] = word[last]
    return found


def words_of(text: str) -> Integers:
    """(characters,): the number of the word each belongs to, spaces to the word after them.

    A word is a run of letters and digits with what stands inside of it (don't, 3.14); all other
    characters are words by themselves, and so are those of scripts written without spaces.
    """
    out = np.empty(len(text), np.int64)
    number, inside = 0, False
    for at, character in enumerate(text):
        kind = _kind(character)
        if kind == "joint":
            near = text[at - 1 : at] + text[at + 1 : at + 2]
            whole = str.isdigit if character in POINTS else str.isalpha
            kind = "letter" if inside and len(near) == 2 and whole(near) else "sign"
        number += not (inside and kind == "letter")
        inside = kind == "letter"
        out[at] = number
    spaces = np.array([one.isspace() for one in text], bool)
    for at in np.flatnonzero(spaces)[::-1]:
        if at + 1 < len(text):
            out[at] = out[at + 1]
    return out


@lru_cache(maxsize=4096)
def _kind(character: str) -> str:
    """letter, joint or sign."""
    if character in JOINTS or character in POINTS:
        return "joint"
    code = ord(character)
    if any(first <= code <= last for first, last in UNSPACED):
        return "sign"
    whole = character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"
    return "letter" if whole else "sign"
