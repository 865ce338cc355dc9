"""Between resolutions: pooling, spreading, and where each answer comes from through all levels."""

from __future__ import annotations

import numpy as np

from hgviz.analysis.composition import Decoder, Level, Net
from hgviz.analysis.operators import pool, spread
from hgviz.core import Capture, Floats, HgvizError, Interval, readonly

FULL_LIMIT = 8192  # rows


class Rollout:
    """All maps of a capture multiplied once, to give any rows; see rollout."""

    def __init__(self, capture: Capture) -> None:
        _check(capture)
        self.tokens = len(capture.main)
        net = Net(capture)
        self.level: Level | Decoder = (
            Level(net, 0, self.tokens)
            if capture.target is None
            else Decoder(net, len(capture.prompt), self.tokens)
        )

    def rows(self, rows: Interval = None) -> Floats:
        """float32 (rows, columns); errors and meaning as rollout."""
        start, stop = _bounds(rows, self.tokens)
        chosen = np.zeros((stop - start, self.tokens))
        chosen[np.arange(stop - start), np.arange(start, stop)] = 1
        return readonly(self.level.left(chosen), np.float32)


def rollout(capture: Capture, rows: Interval = None) -> Floats:
    """Where each output position's answer comes from: all maps multiplied, residuals included.

    float32 (rows, tokens); rows is half-open, None for all. Where a decoder looks at another
    text, rows are tokens of the target and columns those of the source, then of the target:
    self-attention, cross-attention and the encoder behind it are composed by the same rule, and an
    encoder's given states count as source tokens. Every row adds up to 1, less where a row of a
    map has no key at all; a causal model looks at no later token. For few rows nothing larger than
    (rows, columns) is multiplied.
    models.md A.8, rn form, a = 1/2, mean over the heads that are on; signed maps as |A| divided
    by their row sums. Errors: HgvizError for a partial capture, a projected sequence, levels of
    unequal segments, rows outside the text, and more than 8,192 rows at once.
    """
    _check(capture)  # before any map is read
    _bounds(rows, len(capture.main))
    return Rollout(capture).rows(rows)


def _bounds(rows: Interval, tokens: int) -> tuple[int, int]:
    if rows is None:
        rows = slice(0, tokens)
    elif isinstance(rows, tuple):
        rows = slice(*rows)
    elif isinstance(rows, range):
        rows = slice(rows.start, rows.stop, rows.step)
    start, stop, step = rows.indices(tokens)
    if step != 1 or start >= stop or (rows.stop or 0) > tokens:
        raise HgvizError(
            f"rows {rows.start}:{rows.stop} are not rows of this text",
            f"it has {tokens:,} tokens, and A:B counts from 0 and leaves B out",
            "Choose rows within it",
        )
    if stop - start > FULL_LIMIT:
        raise HgvizError(
            f"a map of {stop - start:,} by {tokens:,} tokens does not fit into memory",
            f"up to {FULL_LIMIT:,} rows at a time do",
            "Choose fewer rows",
        )
    return start, stop


def _check(capture: Capture) -> None:
    spec = capture.spec
    missing = [str(i) for i, one in enumerate(capture.maps) if one is None]
    if missing:
        raise HgvizError(
            "all levels together need every layer",
            f"layers {', '.join(missing)} are not captured yet",
            "Capture the text to its end",
        )
    if any(level.sequence == "slots" for level in spec.levels):
        raise HgvizError(
            "the maps of a projected sequence cannot be composed",
            "their keys are mixtures of all tokens, which the capture does not hold",
            "Look at its layers one by one",
        )
    if len(spec.levels) > 1 and not spec.two_texts and spec.form not in ("official", "windowed"):
        raise HgvizError(
            f"the levels of a {spec.form or spec.family} model cannot be composed",
            "only the official and the windowed form of the Hourglass can",
            "Look at its layers one by one",
        )


__all__ = ["FULL_LIMIT", "Rollout", "pool", "rollout", "spread"]
