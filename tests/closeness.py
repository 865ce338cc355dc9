"""How far two arrays are apart, in a measure that holds on any processor."""

from typing import Any

import numpy as np


def scaled_error(found: Any, wanted: Any) -> float:
    """Largest difference of two arrays, relative to the largest wanted value where that exceeds 1.

    Rounding in float32 grows with the values: another instruction set moves logits of 30 thirty
    times as far as weights, which are at most 1.
    """
    pair = (one.detach() if hasattr(one, "detach") else one for one in (found, wanted))
    mine, theirs = (np.asarray(one, dtype=float) for one in pair)
    largest = np.abs(theirs).max(initial=1.0)
    return float(np.abs(mine - theirs).max(initial=0.0) / largest)
