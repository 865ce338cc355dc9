"""How tokens are named to people: their glyph, their word, their place in the text."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hgviz.core import HeadId, Integers, Layer, Off, Prompt
from hgviz.gui.language import tr

if TYPE_CHECKING:
    pass

SPACE = "·"
SIGNS = {" ": SPACE, "\n": "↵", "\r": "↵", "\t": "⇥", "\u00a0": "⍽", "\u3000": SPACE}
JOINER, LINE_ENDS = "\u200d", "\x85\u2028\u2029"
NULL = "null group"  # what is read of segments before any ends
LIMIT = 40  # characters of a text that stand in one sentence


def shown(text: str, limit: int = LIMIT) -> str:
    """A text with everything in it visible and nothing that could move other text, elided.

    Control and format characters (right-to-left marks among them) become signs or U+FFFD.
    """
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(_sign(char) for char in cut)


def marked_up(text: str) -> str:
    """Shown text for a label that reads HTML, isolated so that right-to-left text moves nothing."""
    return f"\u2068{html.escape(text)}\u2069"


def quoted(text: str) -> str:
    """“text” for a sentence, which it cannot turn around where it is read from right to left, not
    even as its first words."""
    return f"\u200e“\u2068{text}\u2069”" if right_to_left(text) else f"“{text}”"


def word_spans(prompt: Prompt) -> Integers:
    """(words, 2): the tokens of every word, half-open; white space parts words, tokens it is in
    belong to the word they end in. A special token is a word of its own.
    """
    spans, text = prompt.spans, prompt.text
    if not len(spans):
        return np.zeros((0, 2), np.int64)
    solid = np.array([not char.isspace() for char in text] + [False])
    number = np.cumsum(solid & ~np.concatenate([[False], solid[:-1]]))
    places = np.where(solid, np.arange(len(solid)), len(text))
    following = np.minimum.accumulate(places[::-1])[::-1]  # the next character that is no space
    start, end = spans[:, 0], spans[:, 1]
    first = following[np.clip(start, 0, len(text))]
    of = np.where((start >= 0) & (first < end), number[first], 0)
    special = start < 0
    of = np.where(special, -1 - np.arange(len(spans)), of)
    edges = np.flatnonzero(np.diff(of)) + 1
    bounds = np.concatenate([[0], edges, [len(of)]])
    runs = np.stack([bounds[:-1], bounds[1:]], axis=1)
    return runs[of[runs[:, 0]] != 0]


def word_at(spans: Integers, token: int) -> tuple[int, int] | None:
    """The tokens of the word a token is in; None between words."""
    at = int(np.searchsorted(spans[:, 0], token, side="right")) - 1
    if at < 0 or token >= spans[at, 1]:
        return None
    return int(spans[at, 0]), int(spans[at, 1])


def glyph(prompt: Prompt, start: int, end: int) -> str:
    """What stands for tokens start..end-1, everything in it visible."""
    if end - start == 1:
        return name(prompt, start)
    return shown(prompt.words(start, end)) or "∅"


def name(prompt: Prompt, token: int) -> str:
    """A token as one sees it; the space in the name of a slot is none of the text."""
    if prompt.spans[token, 0] >= 0:
        return shown(prompt.label(token))
    return " ".join(shown(part) for part in prompt.pieces[token].split(" "))


def place(prompt: Prompt, spans: Integers, start: int, end: int) -> str:
    """Where tokens start..end-1 are: "in hourglass, position 60", "letters 57 to 60"."""
    if end - start > 1:
        unit = tr(f"{prompt.unit}s")
        return tr("{unit} {first:,} to {last:,}", unit=unit, first=start, last=end - 1)
    position = tr("position {number:,}", number=start)
    return ", ".join(filter(None, (region(prompt, spans, start), position)))


def region(prompt: Prompt, spans: Integers, token: int) -> str:
    """The word a token is in, and that it is of the second text of a pair: "in hourglass"."""
    kinds = prompt.token_type_ids
    other = tr("second text") if kinds is not None and kinds[token] == 1 else ""
    return ", ".join(filter(None, (near(prompt, spans, token), other)))


def right_to_left(text: str) -> bool:
    """Whether a text has letters of a script that is written from the right."""
    return any(unicodedata.bidirectional(char) in ("R", "AL") for char in text)


def clusters(prompt: Prompt) -> Integers:
    """(clusters, 2): the tokens that share one character, such as the bytes of an emoji."""
    spans = prompt.spans
    if not len(spans):
        return np.zeros((0, 2), np.int64)
    same: NDArray[np.bool_] = (spans[1:] == spans[:-1]).all(axis=1) & (spans[1:, 0] >= 0)
    bounds = np.concatenate([[0], np.flatnonzero(~same) + 1, [len(spans)]])
    return np.stack([bounds[:-1], bounds[1:]], axis=1)


def near(prompt: Prompt, spans: Integers, token: int) -> str:
    """The word a token is in or comes after, in words; empty where it is the word itself."""
    how, word = beside(prompt, spans, token)
    if not word:
        return tr(how)
    return tr("in {word}", word=word) if how == "in" else tr("after {word}", word=word)


def beside(prompt: Prompt, spans: Integers, token: int) -> tuple[str, str]:
    """("in", word) or ("after", word) of a token, ("special", "") and ("", "") without a word."""
    if prompt.spans[token, 0] < 0:
        # beside a text; of slots, states and bare ids none is more special than another
        return ("special" if prompt.text else ""), ""
    at = int(np.searchsorted(spans[:, 0], token, side="right")) - 1
    if at < 0:
        return "", ""
    start, end = (int(one) for one in spans[at])
    text = prompt.words(start, end).strip()
    label = prompt.label(token).strip()
    if token >= end or not any(char.isalnum() for char in label):
        before = prompt.words(start, min(token, end)).strip().rstrip(_PUNCTUATION)
        return ("after", shown(before)) if before else ("", "")
    core = text.strip(_PUNCTUATION)
    return ("", "") if core == label else ("in", shown(core))


_PUNCTUATION = ".,;:!?…\"'()[]{}«»“”‘’-–—"


def _sign(char: str) -> str:
    if char in SIGNS:
        return SIGNS[char]
    if char.isprintable() or char == JOINER:
        return char
    if char < " ":
        return chr(0x2400 + ord(char))
    if char == "\x7f":
        return "␡"
    return SPACE if char.isspace() and char not in LINE_ENDS else "\ufffd"


def named(off: Off, layers: Iterable[Layer]) -> str:
    """Heads as `--off` takes them, a whole layer in one: "3.5,4.*"."""
    words: list[str] = []
    for layer in layers:
        gone = [head for head in layer.heads if HeadId(layer.index, head) in off]
        whole = len(gone) == len(layer.heads) > 1
        words += [f"{layer.index}.*"] if whole else [f"{layer.index}.{head}" for head in gone]
    return ",".join(words)
