"""How far the outputs of a model reach: what follows from how each depends on every token it reads.

A reach matrix R (outputs, inputs) has the length of the gradient of output i by the embedding of
token j: 0.0 exactly where there is no way from j to i. Numbers are on one text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.core import ModelSpec, Prompt

Matrix = NDArray[np.float64]

SHARES = (0.1, 0.01)  # of the strongest distance, below which a distance counts as faded


@dataclass(frozen=True, eq=False)
class Reach:
    """What was measured of a model. own (n, n): outputs by the tokens of the text they stand in;
    source (n, m): by those of a decoder's other text, or by given states, None where there is none.
    of: what an output is, "logits" or "states".
    """

    spec: ModelSpec
    prompt: Prompt
    own: Matrix
    of: str = "logits"
    source: Matrix | None = None
    target: Prompt | None = None

    @property
    def main(self) -> Prompt:
        """The text that outputs stand in."""
        return self.prompt if self.target is None else self.target

    @property
    def matrix(self) -> Matrix:
        """Outputs by all that they could depend on: (n, n), or the source first (n, m + n)."""
        parts = [one for one in (self.source, self.own) if one is not None]
        return np.concatenate(parts, axis=1)

    @property
    def later(self) -> float:
        """The largest influence of a later token on an output."""
        return float(np.triu(self.own, 1).max(initial=0.0))

    @property
    def causal(self) -> bool:
        """Whether no output depends on a later token: exactly, not nearly."""
        return self.later == 0.0

    @property
    def farthest(self) -> int:
        """The largest distance in tokens over which anything reaches."""
        rows, columns = np.nonzero(self.own)
        return int(np.abs(rows - columns).max(initial=0))

    @property
    def whole(self) -> bool:
        """Whether every output depends on all that it could: all tokens, or all before it."""
        could = np.tril(np.ones(self.own.shape, bool)) if self.causal else np.ones_like(self.own)
        return bool((self.own != 0)[could.astype(bool)].all())

    @property
    def lag(self) -> int:
        """How many tokens right before its own some output does not hear of, though it hears of
        earlier ones."""
        most = 0
        for row in range(len(self.own)):
            heard = np.flatnonzero(self.own[row, :row])
            most = max(most, row - 1 - int(heard[-1])) if len(heard) else most
        return most

    @cached_property
    def profile(self) -> Matrix:
        """(n,): the mean influence over a distance, of tokens before; of both sides where a model
        reads both ways."""
        sums = np.array([_diagonal(self.own, at) for at in range(len(self.own))])
        if not self.causal:
            other = np.array([_diagonal(self.own.T, at) for at in range(len(self.own))])
            sums = (sums + other) / 2
        return sums

    @property
    def shares(self) -> Matrix:
        """(n,): the profile over its largest value."""
        return self.profile / (self.profile.max(initial=0.0) or 1.0)

    @property
    def steady(self) -> int:
        """How many distances, from 0 on, are means over an eighth of the outputs or more: what is
        further apart are a few pairs."""
        return len(self.own) - len(self.own) // 8

    def fades(self, share: float) -> int | None:
        """The distance from which on influence stays below a share of the strongest, as far as
        distances are steady; share 0: from which on all of it is exactly 0. None where it does not.
        """
        values = self.shares[: self.steady] if share else self.shares
        strong = np.flatnonzero(values >= share if share else values > 0)
        found = int(strong[-1]) + 1 if len(strong) else 0
        return found if found < len(values) else None

    def facts(self) -> dict[str, Any]:
        """The numbers, fit for JSON."""
        return {
            "model": self.spec.name, "family": self.spec.family,
            "parameters": self.spec.parameters, "tokens": len(self.own), "of": self.of,
            "causal": self.causal, "later": self.later, "farthest": self.farthest,
            "whole": self.whole, "lag": self.lag,
            **{f"below_{100 * share:g}_percent": self.fades(share) for share in SHARES},
            "zero_from": self.fades(0.0),
        }  # fmt: skip


def _diagonal(matrix: Matrix, at: int) -> float:
    return float(np.diagonal(matrix, -at).mean())


__all__ = ["SHARES", "Matrix", "Reach"]
