"""A text as a model reads it, and what may stand in place of one."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, log10
from typing import Any, Literal
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Modality = Literal["text", "image", "audio"]

SLOT = "slot {}"
SPACES = "▁␣"  # how names of tokens write a space
_BYTE = re.compile("<(?:0x)?([0-9A-F]{2})>")  # the name of a byte that is no character


def readonly(array: Any, dtype: Any = None) -> NDArray[Any]:
    """The array as a read-only view; the caller's own array stays writable."""
    view = np.asarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True)
class Signal:
    """A picture or a sound as a model reads it, in place of ids.

    values: pixels (channels, height, width), frames (mel bins, frames) or samples (samples,), as
    its processor makes them. picture (height, width, 3) uint8: what is seen of them. grid: rows and
    columns of the patches, which are the model's last positions. seconds: how long a sound is.
    """

    values: Floats
    picture: NDArray[np.uint8] | None = None
    grid: tuple[int, int] | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text as the model reads it.

    spans (tokens, 2): half-open character offsets into text, (-1, -1) for special tokens, empty for
    a token that reads none of its characters. attention_mask: True where a token is real.
    position_ids: the position of each token, None where the model counts them.
    states (tokens, width): an encoder's states, given in place of a text; ids are then 0.
    boundaries: True where a token closes a segment, whatever a model that reads segments thinks;
    None: it finds them itself. signal: a picture or a sound, whose patches or frames stand for
    tokens; ids are then 0.
    """

    text: str
    ids: Integers
    pieces: tuple[str, ...]
    spans: Integers
    attention_mask: NDArray[np.bool_] | None = None
    token_type_ids: Integers | None = None
    states: Floats | None = None
    boundaries: NDArray[np.bool_] | None = None
    signal: Signal | None = None
    position_ids: Integers | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def unit(self) -> str:
        """What people call one of its tokens: letter for bytes and characters, else token.

        An encoder's states and the rows of a projected sequence go by their own names.
        """
        if self.states is not None:
            return "state"
        if self.signal is not None:
            return "position" if self.signal.grid else "frame"
        plain = self.spans[:, 0] >= 0
        if not len(plain) or not plain.any():
            # ids alone have no text either, but nobody calls those slots
            return "slot" if self.pieces[:1] == (SLOT.format(0),) else "token"
        whole = plain.all() and bool((np.diff(self.spans, axis=1) <= 1).all())
        return "letter" if whole and all(map(_is_letter, {*self.pieces})) else "token"

    @property
    def last(self) -> int:
        """The last position that is no padding, and no part of a sound that has ended before."""
        count = len(self)
        if self.attention_mask is not None and self.attention_mask.any():
            return int(np.flatnonzero(self.attention_mask)[-1])
        if self.signal is None or self.signal.picture is not None or self.signal.grid:
            return count - 1
        values = np.moveaxis(self.signal.values, np.argmax(self.signal.values.shape), 0)
        values = values.reshape(len(values), -1)
        ends = np.flatnonzero((values != values[-1:]).any(axis=1)).max(initial=-1) + 1
        return ceil(count * (ends or len(values)) / len(values)) - 1

    @property
    def digest(self) -> str:
        """A fingerprint of what the model was given."""
        parts = [np.asarray(self.ids, np.int64).tobytes()]
        for extra in (self.attention_mask, self.token_type_ids):
            parts.append(b"" if extra is None else np.asarray(extra, np.int64).tobytes())
        if self.position_ids is not None:
            parts.append(b"positions" + np.asarray(self.position_ids, np.int64).tobytes())
        if self.states is not None:
            parts.append(np.asarray(self.states, np.float32).tobytes())
        if self.boundaries is not None:
            parts.append(b"boundaries" + np.asarray(self.boundaries, np.uint8).tobytes())
        if self.signal is not None:
            parts.append(np.asarray(self.signal.values, np.float32).tobytes())
        return hashlib.sha256(b"|".join(parts)).hexdigest()

    def continues(self, other: Prompt) -> bool:
        """Whether this is the other text, or that and what was written after it."""
        given = len(other)
        if len(self) <= given:
            return self.digest == other.digest
        text = self.states is None and self.signal is None
        return text and bool((self.ids[:given] == other.ids).all())

    def label(self, token: int) -> str:
        """What a token reads: its characters, or its own name where it is a special token, shares
        its characters with the token before or after it, or has none."""
        start, end = self.spans[token]
        if start < 0:
            return self.pieces[token]
        near = self.spans[max(token - 1, 0) : token + 2]
        shared = (near[:, 0] < end) & (start < near[:, 1]) & (near[:, 0] >= 0)
        text = self.text[start:end]
        alone = shared.sum() == 1 and "\N{REPLACEMENT CHARACTER}" not in text
        return text if alone else normalize("NFC", text_of_piece(self.pieces[token]))

    def words(self, start: int, end: int) -> str:
        """The characters that tokens start..end-1 stand for; of one token its label."""
        start = max(start, 0)
        spans = self.spans[start:end]
        if len(spans) == 1 and spans[0, 0] >= 0:
            return self.label(start)
        spans = spans[spans[:, 0] >= 0]
        return self.text[spans[:, 0].min() : spans[:, 1].max()] if len(spans) else ""

    def byte_counts(self) -> NDArray[np.float64]:
        """(tokens,) Bytes of UTF-8 of the text that each token spells.

        White space in no token counts to the token after it. Tokens that share characters, such as
        the bytes of one, divide them by what each spells.
        """
        counts = np.zeros(len(self))
        plain = np.flatnonzero(self.spans[:, 0] >= 0)
        if not len(plain):
            return counts
        starts, ends = self.spans[plain].T
        last = np.maximum.accumulate(ends)
        shared = np.append(False, (starts[1:] < last[:-1]) & (starts[1:] < ends[1:]))
        first = np.flatnonzero(~shared)
        sizes = np.diff(first, append=len(plain))
        groups = np.repeat(np.arange(len(first)), sizes)
        before = _byte_ends(self.text)
        stop = before[np.maximum.reduceat(last, first)]
        start = np.minimum(before[np.minimum.reduceat(starts, first)], stop)
        begin = np.minimum(np.append(0, stop[:-1]), start)
        pieces = [self.pieces[at] for at in plain]
        several = sizes[groups] > 1
        spelled = np.ones(len(plain))
        spelled[several] = [_bytes_of_piece(pieces[at]) for at in np.flatnonzero(several)]
        # a tokenizer may put a space of its own before a text or a word
        extra = (sizes > 1) & (np.add.reduceat(spelled, first) == stop - start + 1)
        spelled[first[extra]] -= [pieces[at].startswith(tuple(SPACES)) for at in first[extra]]
        total = np.maximum(np.add.reduceat(spelled, first), 1.0)
        counts[plain] = spelled * ((stop - start) / total)[groups]
        counts[plain[first]] += start - begin
        return counts


def slots(count: int) -> Prompt:
    """What stands in place of a text for the rows of a projected sequence."""
    return unread(tuple(map(SLOT.format, range(count))))


def unread(pieces: tuple[str, ...]) -> Prompt:
    """Positions by name that no text stands behind."""
    nowhere = np.full((len(pieces), 2), -1, np.int64)
    return Prompt("", readonly(np.zeros(len(pieces), np.int64)), pieces, readonly(nowhere))


def pictured(signal: Signal, positions: int) -> Prompt:
    """A picture or a sound of so many positions: patches by row and column, from 0, after those
    that the model adds; frames by the second that they begin at."""
    rows, columns = signal.grid or (0, 0)
    if not signal.grid:
        step = signal.seconds / positions
        digits = max(0, ceil(-log10(step))) if step else 0
        names = (f"{at * step:.{digits}f}s" if step else str(at) for at in range(positions))
        return replace(unread(tuple(names)), signal=signal)
    added = positions - rows * columns
    pieces = [f"special {at}" if at else "[CLS]" for at in range(added)]
    pieces += [f"{row},{column}" for row in range(rows) for column in range(columns)]
    return replace(unread(tuple(pieces)), signal=signal)


def _is_letter(piece: str) -> bool:
    return len(piece) <= 1 or _BYTE.fullmatch(piece) is not None


def text_of_piece(piece: str) -> str:
    """What a token reads by its name alone, without the marks of its tokenizer."""
    plain = re.sub(f"[{SPACES}]", " ", _BYTE.sub(r"<\1>", piece)).removesuffix("</w>")
    return plain.removeprefix("##") or piece


@cache
def _bytes_of_piece(piece: str) -> int:
    """How many bytes of UTF-8 a token spells by its name."""
    return len(_BYTE.sub(" ", re.sub(f"[{SPACES}↵␍⇥]", " ", text_of_piece(piece))).encode())


def _byte_ends(text: str) -> Integers:
    """(characters + 1,): how many bytes of UTF-8 the first so many characters take."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    sizes = 1 + (codes > 0x7F) + (codes > 0x7FF) + (codes > 0xFFFF)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
