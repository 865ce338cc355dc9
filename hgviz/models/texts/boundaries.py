"""Where segments end, said by somebody else than the model that reads them (models.md A.6).

A boundary is a token that closes a segment: (tokens,) bool, True there. Whoever edits them hands
the prompt that `Model.cut` makes of them to a capture like any other.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from hgviz.core import HgvizError, Prompt
from hgviz.errors import require
from hgviz.files import first_line
from hgviz.models.texts.text import MOST_IDS, read_bytes

if TYPE_CHECKING:
    from hgviz.models.model import Model

Ends = NDArray[np.bool_]


def cut(model: Model, prompt: Prompt, how: str) -> Prompt:
    """A prompt with the boundaries that a text says: "fixed:3" for every third token from the first
    on, "whitespace" for every token that ends with white space, or the path of a file of a 0 or 1
    for each token, as JSON or one after the other.

    Errors: HgvizError for models that read no segments, and for what cannot be read or done.
    """
    if not model.shortens:
        return model.cut(prompt, how)  # which says that it takes none
    name, colon, count = how.partition(":")
    if name == "fixed" and colon:
        return model.cut(prompt, fixed(len(prompt), _count(how, count)))
    if how == "whitespace":
        return model.cut(prompt, whitespace(prompt))
    return model.cut(prompt, read_boundaries(how))


def fixed(tokens: int, factor: int) -> Ends:
    """Every factor-th token from the first on, which aligns segments as a shift of factor - 1."""
    return np.arange(tokens) % factor == 0


def whitespace(prompt: Prompt) -> Ends:
    """Tokens whose last character is white space. Errors: HgvizError where there is no text."""
    _require_text(prompt)
    return np.array([prompt.label(at)[-1:].isspace() for at in range(len(prompt))], bool)


def read_boundaries(path: str | Path) -> NDArray[np.int64]:
    """(tokens,) The 0s and 1s of a file: a JSON list, or one after the other.

    Errors: HgvizError for anything else.
    """
    path = Path(path)
    if not path.exists():
        raise HgvizError(
            f"there are no boundaries {str(path)[:80]!r}: no file has that name",
            "Name a file of 0 and 1 for each token, or fixed:K, whitespace",
        )
    data = read_bytes(path, MOST_IDS)
    try:
        bits = msgspec.json.decode(data, type=list[int]) if data[:1] == b"[" else _digits(data)
        return np.array(bits, np.int64)
    except (msgspec.DecodeError, ValueError, OverflowError) as error:
        raise HgvizError(
            f"{path.name} does not hold boundaries: {first_line(error)}",
            "Write [1, 0, 0, 1] or 1001",
        ) from None


def _digits(data: bytes) -> list[int]:
    marks = b"".join(data.split())
    if other := set(marks) - {*b"01"}:
        raise ValueError(f"it holds {chr(min(other))!r}, which is neither 0 nor 1")
    return [mark - ord("0") for mark in marks]


def _count(how: str, text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 9 and int(text):
        return int(text)
    raise HgvizError(
        f"the boundaries {how[:80]!r} cannot be used: fixed needs a number of tokens, at least 1",
        "Write it as fixed:3",
    )


def _require_text(prompt: Prompt) -> None:
    require(
        (prompt.spans[:, 0] >= 0).any(),
        "these ids have no text: such boundaries are found by characters",
        "Give a text, or the boundaries themselves",
    )


__all__ = ["cut", "fixed", "read_boundaries", "whitespace"]
