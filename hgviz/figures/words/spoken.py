"""Figures in words, for those who cannot see them: what is said of them all.

No word depends on the machine: no font decides which characters stand here, and no folder is named.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from math import isfinite

from hgviz.core import Capture, HeadId, Prompt
from hgviz.figures.paper.labels import BOX, JOINERS, SHOWN, SPACE, VARIANTS
from hgviz.figures.provenance import bare_name
from hgviz.language import counted, listed

LONGEST = 1200  # characters of the words of a figure; readers of screens cannot skip in them
TEXT, TOKEN, NAME = 80, 24, 60  # of the text that it is of, of one token, of a name
FEW = 8  # of a list


def visible(words: str, longest: int = TEXT) -> str:
    """A text on one line whose every character can be read aloud or stands for itself."""
    shown = "".join(map(_sign, words.strip(" "))) or (SPACE if words else "")
    if unicodedata.category(shown[:1] or " ")[0] == "M":
        shown = f"◌{shown}"  # a mark alone needs something to stand on
    return shown if len(shown) <= longest else f"{shown[: longest - 1].rstrip()}…"


def quoted(words: str, longest: int = TOKEN) -> str:
    """A text in quotes."""
    return f"“{visible(words, longest)}”"


def said(value: float) -> str:
    """A number with three digits that count, and a real minus."""
    if not isfinite(value):
        return "no number"
    size = abs(value)
    if 0 < size < 1e-4:
        digits, power = f"{size:.1e}".split("e")
        words = f"{digits}e−{abs(int(power))}"
    elif size < 999.5:
        words = f"{size:.3g}"
    else:
        words = f"{size:,.0f}"
    return f"−{words}" if value < 0 and words != "0" else words


def percent(share: float) -> str:
    """A share."""
    return f"{100 * share:.3g} %"


def upper(words: str) -> str:
    """As it stands at the start of a sentence."""
    return f"{words[:1].upper()}{words[1:]}"


def joined(sentences: Iterable[str], longest: int = LONGEST) -> str:
    """Sentences one after the other, those without words left out; not too long."""
    found = " ".join(one if one[-1:] in ".…?!" else f"{one}." for one in sentences if one)
    if len(found) <= longest:
        return found
    return f"{found[:longest].rsplit(' ', 1)[0].rstrip(' .,;:')}…"


def tokens_of(prompt: Prompt, start: int, end: int) -> str:
    """Tokens start..end-1: their numbers, counted from 0, and their characters."""
    if end <= 0:
        return "none (padding)"
    start = max(start, 0)
    number = f"{start:,}" if end == start + 1 else f"{start:,} to {end - 1:,}"
    words = prompt.words(start, end) or " ".join(prompt.pieces[start:end])
    return f"{number} {quoted(words)}" if words else number


def text_of(prompt: Prompt) -> str:
    """How long a text is, and how it begins."""
    words = prompt.text or ("" if prompt.unit in ("slot", "state") else " ".join(prompt.pieces))
    length = counted(len(prompt), prompt.unit)
    return f"{length}, {quoted(words, TEXT)}" if words.strip() else length


def texts_of(capture: Capture, layer: int | None = None) -> str:
    """The text that a figure is over: of one layer its queries' and its keys'."""
    if layer is None:
        texts = [capture.prompt] if capture.target is None else [capture.prompt, capture.target]
        names = "source", "target"
    else:
        query, key = capture.query_prompt(layer), capture.key_prompt(layer)
        texts = [query] if query is key else [query, key]
        names = "queries", "keys"
    if len(texts) == 1:
        return f"over {text_of(texts[0])}"
    said = (f"{name}: {text_of(one)}" for name, one in zip(names, texts, strict=True))
    return f"over two texts ({'; '.join(said)})"


def model_of(capture: Capture) -> str:
    """Of which model, "" where it has no name."""
    name = visible(bare_name(capture.spec.name), NAME) if capture.spec.name else ""
    return f" of {name}" if name else ""


def heads_off(capture: Capture) -> str:
    """How many heads are switched off, "" for none."""
    if not capture.off:
        return ""
    every = len(capture.spec.heads)
    are = "is" if len(capture.off) == 1 else "are"
    return f"{len(capture.off):,} of {counted(every, 'head')} {are} switched off"


def heads_streaming(capture: Capture) -> str:
    """How many heads stream over how many keys, "" for none."""
    few = capture.streaming
    if not few.heads:
        return ""
    see = "sees" if len(few.heads) == 1 else "see"
    every = counted(len(capture.spec.heads), "head")
    keys = f"the first {few.sink:,} keys and the latest {few.recent:,}"
    return f"{len(few.heads):,} of {every} {see} {keys} alone"


def named(heads: Iterable[HeadId]) -> str:
    """Heads by their numbers."""
    return listed(map(str, sorted(heads)), FEW)


def _sign(character: str) -> str:
    if character in SHOWN:
        return SHOWN[character]
    if character in JOINERS or character in VARIANTS or character == " ":
        return character
    kind = unicodedata.category(character)
    if kind == "Cc":
        return f"\\x{ord(character):02x}"
    return BOX if kind[0] in "CZ" else character
