"""What a capture says of its texts: which they are, which of how many, who wrote them."""

from __future__ import annotations

import re

import numpy as np

from hgviz.core import Capture

GENERATED = re.compile(r"\d+ tokens after (\d+)")  # as tasks.generate says it


def place(capture: Capture) -> tuple[int, int] | None:
    """Which text of how many a capture is, counted from 1; None for a text alone."""
    numbers = [one.number for one in capture.items]
    return (numbers.index(capture.item) + 1, len(numbers)) if capture.item in numbers else None


def goes_on(old: Capture, new: Capture) -> bool:
    """Whether a capture is of the same text as another, or of that and what came after it."""
    if old.spec != new.spec or (old.target is None) != (new.target is None):
        return False
    if new.items and new.item != old.item:
        return False
    same = new.target is None or new.prompt.digest == old.prompt.digest
    return same and new.main.continues(old.main)


def first_written(capture: Capture) -> int | None:
    """The first token of the main text that the model wrote itself; None where it wrote none."""
    found = GENERATED.match(capture.made.generated)
    return int(found[1]) if found is not None else None


def texts_of(capture: Capture) -> tuple[str, str]:
    """The text and the second text of a capture: the decoder's, or the other of a pair."""
    prompt = capture.prompt
    if capture.target is not None:
        return prompt.text, capture.target.text
    kinds = prompt.token_type_ids
    if kinds is None or not (kinds == 1).any():
        return prompt.text, ""
    real = np.flatnonzero((kinds == 1) & (prompt.spans[:, 0] >= 0))
    start = int(prompt.spans[real[0], 0]) if len(real) else len(prompt.text)
    cut = prompt.text.rfind("\n", 0, start)  # a pair is joined by a line break
    return (prompt.text[:cut], prompt.text[cut + 1 :]) if cut >= 0 else (prompt.text, "")
