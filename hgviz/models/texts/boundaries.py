"""Where segments end, said by somebody else than the model that reads them (models.md A.6).

A boundary is a token that closes a segment: (tokens,) bool, True there. Whoever edits them hands
the prompt that `Model.cut` makes of them to a capture like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hgviz.core import HgvizError, Prompt
from hgviz.models.formats.readers import line_of
from hgviz.models.texts.text import MOST_IDS, Pieces, read_bytes

if TYPE_CHECKING:
    from hgviz.models.model import Model

Ends = NDArray[np.bool_]

SPIKES_LEFT = 2  # of the released configurations of dynamic pooling
ANY = 2**31  # a vocabulary that every tokenizer fits


@dataclass(frozen=True, slots=True)
class Way:
    """A way to say where segments end: needs is what follows its name and a colon, "" nothing."""

    name: str
    needs: str
    says: str


WAYS = (
    Way("fixed", "K", "every K-th token, from the first on"),
    Way("whitespace", "", "every token that ends with white space"),
    Way("unigram", "TOKENIZER.json", "the end of every piece, with the space behind it"),
    Way("entropy", "MODEL", "where another model grows less sure of what follows"),
)


def cut(model: Model, prompt: Prompt, how: str) -> Prompt:
    """A prompt with the boundaries that a text says: one of WAYS, such as "fixed:3", or the path of
    a file of a 0 or 1 for each token, as JSON or one after the other.

    Errors: HgvizError for models that read no segments, and for what cannot be read or done.
    """
    if not model.shortens:
        return model.cut(prompt, how)  # which says that it takes none
    name, colon, rest = how.partition(":")
    way = next((one for one in WAYS if one.name == name and bool(one.needs) == bool(colon)), None)
    if way is None:
        return model.cut(prompt, read_boundaries(how))
    if way.name == "fixed":
        return model.cut(prompt, fixed(len(prompt), _count(how, rest)))
    if way.name == "whitespace":
        return model.cut(prompt, whitespace(prompt))
    if not rest:  # "" as a path would be the folder one stands in
        raise HgvizError(
            f"the boundaries {how!r} cannot be used",
            f"{name} needs a path behind the colon",
            f"Write it as {name}:{way.needs}",
        )
    if way.name == "unigram":
        return model.cut(prompt, pieces(prompt, Pieces(Path(rest), ANY)))
    from hgviz.models.model import open_model

    other = open_model(rest, model.device, model.dtype)
    return model.cut(prompt, rises(uncertainty(other, prompt)))


def fixed(tokens: int, factor: int) -> Ends:
    """Every factor-th token from the first on, which aligns segments as a shift of factor - 1."""
    return np.arange(tokens) % factor == 0


def whitespace(prompt: Prompt) -> Ends:
    """Tokens whose last character is white space. Errors: HgvizError where there is no text."""
    _require_text(prompt)
    return np.array([prompt.label(at)[-1:].isspace() for at in range(len(prompt))], bool)


def pieces(prompt: Prompt, tokenizer: Pieces) -> Ends:
    """Tokens in which a piece of another tokenizer ends; one that ends a word with the white space
    behind it. The end of the text closes nothing. Errors: HgvizError where there is no text.
    """
    _require_text(prompt)
    text, found = prompt.text, np.zeros(len(prompt), bool)
    starts = np.maximum.accumulate(prompt.spans[:, 0])  # special tokens stand before all of it
    for end in tokenizer.encode(text).spans[:, 1]:
        stop = int(end)
        while 0 < stop < len(text) and text[stop].isspace():
            stop += 1
        if 0 < stop < len(text):
            found[np.searchsorted(starts, stop - 1, side="right") - 1] = True
    return found


def uncertainty(model: Model, prompt: Prompt) -> NDArray[Any]:
    """(tokens,) The entropy, in nats, of what a model says follows each token. Errors: HgvizError
    for one that does not say the next token, or reads other ids."""
    if model.spec.goal != "next" or model.spec.two_texts:
        raise HgvizError(
            f"{model.spec.name} does not say what follows",
            "boundaries by entropy need a model that says the next token",
            "Name another model",
        )
    logits = model.run(prompt.ids).logits.astype(np.float64)
    logs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    entropy: NDArray[Any] = -(np.exp(logs) * logs).sum(axis=1)
    return entropy


def rises(values: NDArray[Any], left: int = SPIKES_LEFT) -> Ends:
    """Where values (..., tokens) are above each of so many before them, as far as there are any."""
    found = np.ones(values.shape, bool)
    for back in range(1, min(left, values.shape[-1] - 1) + 1):
        found[..., back:] &= values[..., back:] > values[..., :-back]
    return found


def read_boundaries(path: str | Path) -> NDArray[np.int64]:
    """(tokens,) The 0s and 1s of a file: a JSON list, or one after the other.

    Errors: HgvizError for anything else.
    """
    path = Path(path)
    if not path.exists():
        ways = ", ".join(f"{one.name}:{one.needs}".strip(":") for one in WAYS)
        raise HgvizError(
            f"there are no boundaries {str(path)[:80]!r}",
            "no file has that name",
            f"Name a file of 0 and 1 for each token, or {ways}",
        )
    data = read_bytes(path, MOST_IDS)
    try:
        bits = msgspec.json.decode(data, type=list[int]) if data[:1] == b"[" else _digits(data)
        return np.array(bits, np.int64)
    except (msgspec.DecodeError, ValueError, OverflowError) as error:
        raise HgvizError(
            f"{path.name} does not hold boundaries", line_of(error), "Write [1, 0, 0, 1] or 1001"
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
        f"the boundaries {how[:80]!r} cannot be used",
        "fixed needs a number of tokens, at least 1",
        "Write it as fixed:3",
    )


def _require_text(prompt: Prompt) -> None:
    if not (prompt.spans[:, 0] >= 0).any():
        raise HgvizError(
            "these ids have no text",
            "such boundaries are found by characters",
            "Give a text, or the boundaries themselves",
        )


__all__ = [
    "WAYS", "Way", "cut", "fixed", "pieces", "read_boundaries", "rises", "uncertainty",
    "whitespace",
]  # fmt: skip
