"""How a text goes on: the tokens that follow as text, and the tokens that end it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hgviz.core import HgvizError, Integers, Prompt, readonly
from hgviz.files import CONFIG, read_object
from hgviz.models.texts.text import MOST_TOKENIZER, PATIENCE, Pieces, Tokenizer, run_with_timeout

SAYING_ENDS = (CONFIG, "generation_config.json")
SETTINGS = "tokenizer_config.json"
CONTEXT = 6  # how many tokens a decoder is shown before the first that it is asked about


def continued(tokenizer: Tokenizer, prompt: Prompt, ids: Sequence[int]) -> Prompt:
    """The prompt with ids after it, and their text after its own.

    The ids are what the model was given and gives, whatever a tokenizer would make of the text:
    each new token has the characters that it is, or is part of. Special tokens have none, as
    everywhere; bytes that make no character become U+FFFD.
    """
    if not len(ids):
        return prompt
    new = np.asarray(ids, np.int64)
    every = np.concatenate([prompt.ids, new])
    whole = tokenizer.decode(every)
    if not _same(tokenizer.decode(prompt.ids), prompt) or _by_decoder(tokenizer):
        # what the text was is kept, such as the spaces that its tokenizer takes away
        text, spans = _tail(tokenizer, prompt.ids, new)
        moved = np.where(spans < 0, spans, spans + len(prompt.text))
        whole = Prompt(
            text=prompt.text + text,
            ids=readonly(every),
            pieces=(*prompt.pieces, *whole.pieces[len(prompt) :]),
            spans=readonly(np.concatenate([prompt.spans, moved])),
        )
    mask, kinds = prompt.attention_mask, prompt.token_type_ids
    return replace(
        whole,
        attention_mask=None if mask is None else readonly(np.pad(mask, (0, len(new)), "edge")),
        token_type_ids=None if kinds is None else readonly(np.pad(kinds, (0, len(new)), "edge")),
    )


def _same(one: Prompt, other: Prompt) -> bool:
    return one.text == other.text and np.array_equal(one.spans, other.spans)


def _by_decoder(tokenizer: Tokenizer) -> bool:
    """Whether only the tokenizer's own decoder knows what its tokens say."""
    return isinstance(tokenizer, Pieces) and not tokenizer.spells


def _tail(tokenizer: Tokenizer, before: Integers, new: Integers) -> tuple[str, Integers]:
    """The text of new ids after others, and the characters of each: (ids, 2)."""
    if not (isinstance(tokenizer, Pieces) and _by_decoder(tokenizer)):
        found = tokenizer.decode(new)
        return found.text, found.spans
    limit = PATIENCE + len(new) / 100
    try:
        parts = run_with_timeout(
            limit, lambda: list(_said(tokenizer, before.tolist(), new.tolist()))
        )
    except TimeoutError:
        raise HgvizError(
            "the tokenizer could not say what tokens mean: "
            f"it was not done after {limit:.0f} seconds, as with a pattern that runs away",
            "Use the tokenizer.json the model came with",
        ) from None
    spans, text = np.full((len(new), 2), -1, np.int64), ""
    for first, stop, more in parts:
        spans[first:stop] = len(text), len(text) + len(more)
        text += more
    return text, spans


def _said(tokenizer: Pieces, before: list[int], new: list[int]) -> Iterator[tuple[int, int, str]]:
    """Runs of new tokens (first, stop) and the characters that they make together.

    A decoder looks at what stands before a token, for a space between words, and after it, for
    the rest of a character: it is shown a few tokens at a time.
    """
    ids, start, done = before + new, max(0, len(before) - CONTEXT), len(before)
    known = tokenizer.said(ids[start:done])
    for stop in range(done + 1, len(ids) + 1):
        more = tokenizer.said(ids[start:stop])[len(known) :]
        if not more and stop - done == 1:
            done = stop  # a special token is no part of what follows
        if not more or (more.endswith("\N{REPLACEMENT CHARACTER}") and stop < len(ids)):
            continue
        yield done - len(before), stop - len(before), more
        start, done = done, stop
        known = tokenizer.said(ids[start:done])


# --- the end --------------------------------------------------------------------------------------


def ends_of(folder: Path, tokenizer: Tokenizer) -> frozenset[int]:
    """The tokens that end a text, by what lies beside a checkpoint: eos_token_id in its
    configurations, eos_token of its tokenizer. What is damaged or not there says nothing."""
    found: set[int] = set()
    for name in SAYING_ENDS:
        stated = _said_in(folder / name).get("eos_token_id")
        for one in stated if isinstance(stated, list) else [stated]:
            if type(one) is int:
                found.add(one)
    if isinstance(tokenizer, Pieces):
        token = _said_in(folder / SETTINGS).get("eos_token")
        token = token.get("content") if isinstance(token, dict) else token
        number = tokenizer.id_of(token) if isinstance(token, str) else None
        found |= set() if number is None else {number}
    return frozenset(found)


def _said_in(file: Path) -> dict[str, Any]:
    with suppress(HgvizError):
        return read_object(file, MOST_TOKENIZER)
    return {}


__all__ = ["continued", "ends_of"]
