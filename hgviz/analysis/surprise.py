"""How well a model foretold the text that it was captured with."""

from __future__ import annotations

import numpy as np

from hgviz.core import Capture, Prompt

_ROWS = 256  # of logits at once


def bits_per_byte(capture: Capture) -> float | None:
    """-log2 of what the model gave to every token but the first, over their bytes of UTF-8.

    Of a decoder with a source, its own text. None where there is nothing to say: for other models
    than those that give the next token, without logits or characters, and for a text of one token.
    """
    prompt, logits = capture.main, capture.logits
    if capture.spec.goal != "next" or logits is None or np.ndim(logits) != 2 or len(prompt) < 2:
        return None
    size = _bytes(prompt)
    if not size or len(logits) != len(prompt):
        return None
    total, ids = 0.0, np.asarray(prompt.ids)
    for start in range(0, len(ids) - 1, _ROWS):
        stop = min(start + _ROWS, len(ids) - 1)
        some = np.asarray(logits[start:stop], np.float64)
        most = some.max(axis=1)
        every = np.log(np.exp(some - most[:, None]).sum(axis=1)) + most
        total += float((every - some[np.arange(stop - start), ids[start + 1 : stop + 1]]).sum())
    bits = total / np.log(2) / size
    return float(bits) if np.isfinite(bits) else None


def _bytes(prompt: Prompt) -> int:
    """The bytes of UTF-8 that all tokens but the first stand for; bytes of one character count
    once each."""
    spans = np.asarray(prompt.spans)
    if prompt.unit == "letter" and not (spans[:, 0] < 0).any():
        same = (spans[1:] == spans[:-1]).all(axis=1)
        if same.any():  # several tokens a character: they are its bytes
            return len(prompt) - 1
    real = spans[1:][spans[1:, 0] >= 0]
    if not len(real):
        return 0
    start = max(int(spans[0, 1]), 0)  # white space that is in no token was foretold, too
    return len(prompt.text[start : int(real[:, 1].max())].encode(errors="replace"))


__all__ = ["bits_per_byte"]
