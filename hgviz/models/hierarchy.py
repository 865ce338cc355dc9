"""How a text shrinks and grows back: hierarchy strings and depth tuples (models.md A.2)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hgviz.core import HgvizError, Integers, readonly

_TOKEN = re.compile(r"([0-9]{1,7})@([0-9]{1,7})")
MOST_LAYERS, MOST_FACTOR = 1000, 2**16  # far above any use: a stranger may have written these
_EXAMPLE = 'Write "LAYERS@FACTOR" down to the waist and back up, such as "2@1 1@2 3@4 1@2 2@1"'
_DEPTH_EXAMPLE = "Give depth as (2, (1, 4, 1), 2) with shorten_factor (3, 2), or as a number"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Layers before and after each shortening, outside in; factors[l] shortens level l to l + 1.

    "2@1 1@2 3@4 1@2 2@1" is pre (2, 1), middle 3, post (2, 1), factors (2, 2); a model without
    shortening has pre = post = factors = ().
    """

    pre: tuple[int, ...]
    middle: int
    post: tuple[int, ...]
    factors: tuple[int, ...]

    @property
    def strides(self) -> tuple[int, ...]:
        """Tokens per position of every level, full resolution first."""
        strides = [1]
        for factor in self.factors:
            strides.append(strides[-1] * factor)
        return tuple(strides)

    def __str__(self) -> str:
        down = [f"{n}@{k}" for n, k in zip(self.pre, self.strides, strict=False)]
        up = [f"{n}@{k}" for n, k in zip(self.post, self.strides, strict=False)]
        return " ".join([*down, f"{self.middle}@{self.strides[-1]}", *reversed(up)])

    def cost(self, tokens: int, width: int) -> float:
        """Multiply-adds of one pass, sum of n_i (12 d^2 n / K + 2 n^2 d / K^2)."""
        counts = [a + b for a, b in zip(self.pre, self.post, strict=True)] + [self.middle]
        return sum(
            count * (12 * width**2 * tokens / k + 2 * tokens**2 * width / k**2)
            for count, k in zip(counts, self.strides, strict=True)
        )


def parse_hierarchy(text: str, vanilla: Sequence[int] | None = None) -> Hierarchy:
    """Read "2@1 1@2 3@4 1@2 2@1", or its shortened part with vanilla = (layers before, after).

    Errors: HgvizError for anything that is not a palindrome of growing, dividing factors.
    """
    matches = [_TOKEN.fullmatch(part) for part in text.split()]
    if not matches or None in matches:
        raise _illegal(text, "it is not a row of LAYERS@FACTOR")
    counts = [int(match[1]) for match in matches if match]
    factors = [int(match[2]) for match in matches if match]
    if len(counts) % 2 == 0:
        raise _illegal(text, "it has no single waist: the number of stages is even")
    if factors[0] != 1:
        if vanilla is None or len(vanilla) != 2:
            raise _illegal(
                text, "it starts shortened and vanilla_layers (before, after) is missing"
            )
        counts, factors = [vanilla[0], *counts, vanilla[1]], [1, *factors, 1]
    elif vanilla is not None and list(vanilla) != [counts[0], counts[-1]]:
        raise _illegal(text, f"its full-resolution layers differ from vanilla_layers {vanilla}")
    return _checked(text, counts, factors)


def _checked(text: str, counts: list[int], totals: list[int]) -> Hierarchy:
    waist = len(counts) // 2
    if totals != totals[::-1]:
        raise _illegal(text, "its factors do not mirror around the waist")
    if counts[1:-1] != counts[1:-1][::-1]:
        raise _illegal(text, "its shortened layers do not mirror around the waist")
    for upper, lower in zip(totals[:waist], totals[1 : waist + 1], strict=True):
        if lower <= upper or lower % upper:
            raise _illegal(
                text, f"factor {lower} is not 2, 3, ... times the factor {upper} around it"
            )
    if min(counts[1:-1] or counts) < 1 or sum(counts) > MOST_LAYERS:
        raise _illegal(text, f"a shortened stage needs a layer; all have at most {MOST_LAYERS:,}")
    if totals[waist] > MOST_FACTOR:
        raise _illegal(text, f"it shortens by more than {MOST_FACTOR:,}")
    steps = [b // a for a, b in zip(totals[:waist], totals[1 : waist + 1], strict=True)]
    post = counts[waist + 1 :][::-1]
    return Hierarchy(tuple(counts[:waist]), counts[waist], tuple(post), tuple(steps))


def from_depth(depth: Any, shorten_factor: Any = None) -> Hierarchy:
    """Read (2, (1, 4, 1), 2) with shorten_factor (3, 2); a single factor serves every level."""
    pre: list[int] = []
    post: list[int] = []
    inner = depth
    while isinstance(inner, (tuple, list)):
        if len(inner) != 3 or not all(isinstance(inner[i], int) for i in (0, 2)):
            raise _illegal(depth, "a depth is a number or (before, inner, after)")
        pre.append(inner[0])
        post.append(inner[2])
        inner = inner[1]
        if len(pre) > 16:
            raise _illegal(depth, "it is nested more than 16 deep")
    if not isinstance(inner, int) or isinstance(inner, bool):
        raise _illegal(depth, "a depth is a number or (before, inner, after)")
    factors = _factors(depth, shorten_factor, len(pre))
    counts = [*pre, inner, *post]
    if min(counts) < 0 or sum(counts) > MOST_LAYERS or inner < 1:
        raise _illegal(depth, f"the innermost needs a layer; all have at most {MOST_LAYERS:,}")
    if math.prod(factors) > MOST_FACTOR:
        raise _illegal(depth, f"it shortens by more than {MOST_FACTOR:,}")
    return Hierarchy(tuple(pre), inner, tuple(post), factors)


def _factors(depth: Any, given: Any, levels: int) -> tuple[int, ...]:
    if levels == 0:
        return ()
    factors = tuple(given) if isinstance(given, (tuple, list)) else (given,) * levels
    if len(factors) != levels or not all(
        isinstance(k, int) and not isinstance(k, bool) and k >= 2 for k in factors
    ):
        why = f"shorten_factor {str(given)[:40]} is no number >= 2 for each of its {levels} levels"
        raise _illegal(depth, why)
    return factors


def level_spans(tokens: int, strides: Sequence[int], causal: bool) -> tuple[Integers, ...]:
    """The tokens behind every position of every level, models.md A.7: [gK-K+1, gK] when causal."""
    out = []
    for stride in strides:
        first = np.arange(-(-tokens // stride), dtype=np.int64) * stride
        start = np.maximum(first - stride + 1, 0) if causal else first
        end = first + 1 if causal else np.minimum(first + stride, tokens)
        out.append(readonly(np.stack([start, end], axis=1)))
    return tuple(out)


def _illegal(given: Any, why: str) -> HgvizError:
    do = _EXAMPLE if isinstance(given, str) else _DEPTH_EXAMPLE
    return HgvizError(f"the hierarchy {repr(given)[:80]} cannot be built: {why}", do)
