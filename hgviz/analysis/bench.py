"""What many texts say of the heads of a model, and of two models on the same texts. numpy only.

A text is one observation: means over texts have intervals of 95 %, and differences of two models
are taken text by text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS
from hgviz.analysis.passes import MEASURES, Text
from hgviz.analysis.statistics import Z95, benjamini_hochberg, ratio_interval
from hgviz.core import HeadId, ModelSpec

Many = NDArray[np.float64]
Triple = tuple[float, float, float]  # a value and its interval


@dataclass(frozen=True)
class Bench:
    """What was measured of one model: values (texts, heads) of every metric; the rest as in Text,
    spectra and apart as means over texts, cells, at_scores and at_weights as sums.
    """

    spec: ModelSpec
    heads: tuple[HeadId, ...]
    values: dict[str, Many]
    spectra: Many
    apart: Many
    cells: Many
    at_scores: Many
    at_weights: Many

    @property
    def texts(self) -> int:
        """How many were measured."""
        return len(self.values["entropy"])

    def activations(self) -> tuple[str, ...]:
        """Of every head."""
        layers = self.spec.layers
        kinds = [dict(zip(one.heads, one.activations, strict=False)) for one in layers]
        return tuple(kinds[head.layer].get(head.head, "softmax") for head in self.heads)

    @property
    def signed(self) -> bool:
        """Whether any head may weigh below 0."""
        return any(ACTIVATIONS[name].signed for name in self.activations())

    def of_heads(self, name: str) -> tuple[Many, Many, Many]:
        """The mean over texts of each head, with its interval: (heads,) each."""
        values = self.values[name]
        return ratio_interval(values)

    def of_texts(self, name: str) -> Many:
        """(texts,) means over heads."""
        values = self.values[name]
        known = np.isfinite(values)
        total, count = np.where(known, values, 0.0).sum(1), known.sum(1)
        found = np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0)
        return np.asarray(found)

    def mean(self, name: str) -> Triple:
        """Over heads and texts, with its interval over texts."""
        return _triple(self.of_texts(name))


@dataclass(frozen=True, slots=True)
class Change:
    """A metric of A and of B, each a mean over heads with its interval over texts, and B less A
    text by text. p: of no difference, normal, adjusted for so many metrics (Benjamini and Hochberg
    1995); NaN where nothing varies. exact: both sides have the same number in every text."""

    name: str
    a: Triple
    b: Triple
    difference: Triple
    p: float
    exact: bool = False

    @property
    def measured(self) -> bool:
        """Whether both sides have it."""
        return math.isfinite(self.a[0]) and math.isfinite(self.b[0])

    @property
    def differs(self) -> bool:
        """Whether more than chance."""
        return self.p < 0.05

    def facts(self) -> dict[str, Any]:
        """As JSON has it."""
        found: dict[str, Any] = {"metric": self.name}
        for side, triple in (("a", self.a), ("b", self.b), ("difference", self.difference)):
            for end, value in zip(("", "_low", "_high"), triple, strict=True):
                found[side + end] = value if math.isfinite(value) else None
        return found | {"p": self.p if math.isfinite(self.p) else None}


def changes(a: Bench, b: Bench) -> tuple[Change, ...]:
    """Every metric of two models on the same texts."""
    found: list[tuple[str, Triple, Triple, Triple, float, bool]] = []
    for name in MEASURES:
        one, other = a.of_texts(name), b.of_texts(name)
        apart = other - one
        value, low, high = _triple(apart)
        error = (high - value) / Z95
        exact = bool((np.abs(apart) <= 1e-6).all())
        p = float("nan")
        if math.isfinite(error):
            p = 1.0 if exact else math.erfc(abs(value) / error / math.sqrt(2)) if error else 0.0
        found.append((name, _triple(one), _triple(other), (value, low, high), p, exact))
    adjusted = benjamini_hochberg(np.array([one[4] for one in found]))
    return tuple(
        Change(name, one, other, apart, float(p), exact)
        for (name, one, other, apart, _, exact), p in zip(found, adjusted, strict=True)
    )


def _triple(values: Many) -> Triple:
    value, low, high = map(float, ratio_interval(values))
    return value, low, high


class Mean:
    """A mean over texts of arrays of one shape; what is no number does not count."""

    def __init__(self) -> None:
        self._total: Many | None = None
        self._count: Many | None = None

    def add(self, values: Many) -> None:
        """One text more."""
        known = np.isfinite(values)
        some = np.where(known, values, 0.0)
        self._total = some if self._total is None else self._total + some
        self._count = known.astype(float) if self._count is None else self._count + known

    @property
    def total(self) -> Many:
        """The sum of all."""
        assert self._total is not None
        return self._total

    def value(self) -> Many:
        """The mean, NaN where nothing was known."""
        assert self._total is not None and self._count is not None
        nothing = np.full(self._total.shape, np.nan)
        found = np.divide(self._total, self._count, out=nothing, where=self._count > 0)
        return np.asarray(found)


class Gathering:
    """Texts that are added one by one, and the Bench of all so far."""

    def __init__(self, spec: ModelSpec) -> None:
        self.spec = spec
        self._texts: list[dict[str, Many]] = []
        names = ("spectra", "apart", "cells", "at_scores", "at_weights")
        self._means = {name: Mean() for name in names}

    def add(self, text: Text) -> None:
        """One text more."""
        self._texts.append(text.values)
        for name, mean in self._means.items():
            mean.add(getattr(text, name))

    def bench(self) -> Bench:
        """What all of them come to."""
        values = {name: np.stack([one[name] for one in self._texts]) for name in MEASURES}
        sums = (self._means[name].total for name in ("cells", "at_scores", "at_weights"))
        means = (self._means[name].value() for name in ("spectra", "apart"))
        return Bench(self.spec, self.spec.heads, values, *means, *sums)


class Beside:
    """The distances of the heads of A to those of B, over texts that both cut alike."""

    def __init__(self) -> None:
        self._mean, self._some = Mean(), False

    def add(self, found: Many) -> None:
        """What passes.between gives of one text."""
        self._some |= bool(np.isfinite(found).any())
        self._mean.add(found)

    def value(self) -> Many | None:
        """(heads of A, heads of B), None where nothing could be compared."""
        return self._mean.value() if self._some else None


__all__ = ["Beside", "Bench", "Change", "Gathering", "Mean", "changes"]
