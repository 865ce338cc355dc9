"""How well a model foretold the text that it was captured with."""

from __future__ import annotations

import numpy as np

from hgviz.core import Capture

_ROWS = 256  # of logits at once


def bits_per_byte(capture: Capture) -> float | None:
    """-log2 of what the model gave to every token but the first, over their bytes of UTF-8.

    Of a decoder with a source, its own text. None where there is nothing to say: for other models
    than those that give the next token, without logits or characters, and for a text of one token.
    """
    prompt, logits = capture.main, capture.logits
    if capture.spec.goal != "next" or logits is None or np.ndim(logits) != 2 or len(prompt) < 2:
        return None
    size = float(prompt.byte_counts()[1:].sum())
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


__all__ = ["bits_per_byte"]
