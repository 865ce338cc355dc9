"""Which cells of a map exist: those that the query could look at."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, HeadId
from hgviz.maps import LazyMap, Rule


class Sight(Protocol):
    """Which cells of a map exist, where no Rule can say it."""

    @property
    def causal(self) -> bool:
        """Whether a query looks at nothing that comes after it."""

    def seen(self, rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[np.bool_]:
        """As the function of that name."""


def seen(rule: Rule | Sight, rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[np.bool_]:
    """bool (rows, columns): whether any cell exists in ranges (n, 2) of rows and of columns."""
    if not isinstance(rule, Rule):
        return rule.seen(rows, columns)
    top, bottom = (rows[:, end, None] * rule.stride_q for end in (0, 1))
    left, right = (columns[None, :, end] * rule.stride_k for end in (0, 1))
    found = np.ones((len(rows), len(columns)), bool)
    if rule.causal:
        found &= left < bottom
    if rule.windowed:
        group = max(rule.stride_q, rule.stride_k)
        found &= top // group <= (right - 1) // group
        found &= left // group <= (bottom - 1) // group
    if rule.band is not None:
        found &= (right - 1 >= top - rule.band[0]) & (left <= bottom - 1 + rule.band[1])
    if rule.chunk is not None:
        found &= top // rule.chunk <= (right - 1) // rule.chunk
        found &= left // rule.chunk <= (bottom - 1) // rule.chunk
    real = None if rule.keep is None else np.concatenate([[0], np.cumsum(rule.keep)])
    ends = columns if real is None else np.minimum(columns, len(real) - 1)
    if (
        rule.nearest is not None
    ):  # the first column may be of the first keys, the last of the latest
        first, last = (rule.nears(rows[:, 0], ends[:, side] - side, real) for side in (0, 1))
        found &= first | last
    if real is not None:
        found &= real[ends[:, 1]] > real[ends[:, 0]]
    return found


def below(rule: Rule | Sight, row: int, column: int) -> bool:
    """Whether a cell, and all that lie further down or left, are below a causal map's diagonal."""
    if not (isinstance(rule, Rule) and rule.causal and rule.whole) or rule.keep is not None:
        return False
    return column * rule.stride_k < (row + 1) * rule.stride_q


def rule_of(capture: Capture, head: HeadId) -> Rule:
    """Which cells exist in the map of a head."""
    one = capture.spec.layers[head.layer]
    own = capture.maps[head.layer]
    if isinstance(own, LazyMap):
        return own.factors.rule.of(own.place(head.head))
    levels = capture.spec.levels
    strides = levels[one.level].stride, levels[one.key_level].stride
    return Rule(
        scale=1.0,
        activations=one.activations,
        norms=(),
        stride_q=levels[one.level].stride or 1,
        stride_k=levels[one.key_level].stride or 1,
        causal=one.causal and (one.level == one.key_level or all(strides)),
        windowed=one.window is not None,
    )
