"""Tokens that are bytes: how each is shown, and which characters they make together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hgviz.core import Integers

SIGNS = {" ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥"}


def _name(byte: int) -> str:
    char = chr(byte)
    return SIGNS.get(char) or (char if byte < 128 and char.isprintable() else f"<{byte:02X}>")


NAMES = tuple(_name(byte) for byte in range(256))
# byte-level BPE writes a byte as itself where that can be seen, the others from U+0100 on
_SEEN = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_UNSEEN = [byte for byte in range(256) if byte not in _SEEN]
ALPHABET = {chr(byte): byte for byte in _SEEN} | {
    chr(0x100 + i): byte for i, byte in enumerate(_UNSEEN)
}


def spelled(token: str) -> bytes | None:
    """The bytes that a token of byte-level BPE writes; None where it is no such token."""
    if not all(char in ALPHABET for char in token):
        return None
    return bytes(ALPHABET[char] for char in token)


def shown(data: bytes) -> str:
    """Bytes as people see them: by their characters, or one by one where they make none."""
    try:
        return "".join(SIGNS.get(char, char) for char in data.decode())
    except UnicodeDecodeError:
        return "".join(NAMES[byte] for byte in data)


def characters(data: bytes) -> Iterator[bytes]:
    """The bytes of each character; a byte that starts none stands alone."""
    start = 0
    while start < len(data):
        first = data[start]
        size = 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
        part = data[start : start + size]
        try:
            part.decode()
        except UnicodeDecodeError:
            part = part[:1]
        yield part
        start += len(part)


def joined(parts: Sequence[bytes]) -> tuple[str, Integers]:
    """The text that the bytes of tokens make, and which characters each token has a byte of:
    (tokens, 2), (-1, -1) for a token without bytes. What is not UTF-8 becomes U+FFFD."""
    found = list(characters(b"".join(parts)))
    char = np.repeat(np.arange(len(found)), [len(one) for one in found])
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    spans = np.full((len(parts), 2), -1, np.int64)
    for i, (part, end) in enumerate(zip(parts, ends, strict=True)):
        if part:
            spans[i] = char[end - len(part)], char[end - 1] + 1
    return "".join(one.decode(errors="replace") for one in found), spans
