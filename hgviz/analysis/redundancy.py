"""How much the heads of a layer repeat each other: by their weights alone, and by their maps.

Of weights: W_QK^(h) = W_Q^(h)T W_K^(h), what a head compares tokens by (Cordonnier, Loukas and
Jaggi 2020, section 3). Of maps: the Jensen-Shannon distance of their rows. Shapes: H heads, D head
width, R terms of which the products of a layer are sums, d width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.differences import finite
from hgviz.analysis.likeness import Likeness
from hgviz.analysis.tokens import Layout, TokenReading
from hgviz.core import Capture, HeadId, Layer

Array = NDArray[np.float64]

SHARES = (0.9, 0.95, 0.99)  # of the energy, the sum of squares of singular values
NOTHING = 1e-6  # of the largest singular value: what is below is rounding
ROWS = 512  # of each text


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Singular values (p,) from the largest on; most: how many there could be."""

    values: Array
    most: int

    @property
    def captured(self) -> Array:
        """(p,): the share of the energy that the largest so many hold."""
        squares = self.values**2
        total = squares.sum()
        found: Array = np.cumsum(squares) / (total if total > 0 else 1.0)
        return found

    @property
    def rank(self) -> int:
        """How many are more than rounding."""
        return int((self.values > NOTHING * self.values.max(initial=0.0)).sum())

    def ranks(self) -> dict[float, int]:
        """How many hold each of SHARES of the energy; 0 where there is none."""
        held = self.captured
        if not len(held) or not held[-1]:
            return dict.fromkeys(SHARES, 0)
        return {one: int(np.searchsorted(held, one - 1e-12) + 1) for one in SHARES}

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        named = {f"rank_{100 * share:.0f}": rank for share, rank in self.ranks().items()}
        return {"of": self.most, "rank": self.rank, **named, "values": self.values.tolist()}


@dataclass(frozen=True, slots=True, eq=False)
class Redundancy:
    """How much the heads of a layer repeat each other.

    alike (H, H): cosines of vec(W_QK), or distances of maps; NaN where there is none. Of weights
    stacked is the spectrum of all W_QK one below the other, (H d, d), of at most H D singular
    values, and over_heads that of vec(W_QK) one below the other, (H, d^2), of at most H. Of maps
    rows are how many were compared.
    """

    layer: Layer
    alike: Array
    stacked: Spectrum | None = None
    over_heads: Spectrum | None = None
    rows: int = 0
    notes: tuple[str, ...] = field(default=())

    @property
    def heads(self) -> tuple[HeadId, ...]:
        """Its heads, in the order of alike."""
        return tuple(HeadId(self.layer.index, head) for head in self.layer.heads)

    @property
    def cosines(self) -> bool:
        """Whether alike holds cosines, of which 1 is the same, else distances, of which 0 is."""
        return self.stacked is not None

    @property
    def pairs(self) -> list[tuple[HeadId, HeadId, float]]:
        """Every two heads, the most alike first; those without a number are left out."""
        rows, columns = np.triu_indices(len(self.heads), 1)
        values = self.alike[rows, columns]
        size = -np.abs(values) if self.cosines else values
        order = [at for at in np.argsort(size, kind="stable") if np.isfinite(values[at])]
        return [(self.heads[rows[at]], self.heads[columns[at]], float(values[at])) for at in order]

    @property
    def mean(self) -> float:
        """The mean of the sizes of alike over all pairs, NaN of a single head."""
        values = [abs(value) for *_, value in self.pairs]
        return float(np.mean(values)) if values else float("nan")

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        name = "cosines" if self.cosines else "distances"
        spectra = {"stacked": self.stacked, "over_heads": self.over_heads}
        return {
            "layer": self.layer.index, "name": self.layer.name, "heads": list(self.layer.heads),
            **{key: one.facts() for key, one in spectra.items() if one is not None},
            "mean": finite(self.mean),
            name: [[finite(float(x)) for x in row] for row in self.alike],
            **({} if self.cosines else {"rows": self.rows}),
            "notes": list(self.notes),
        }  # fmt: skip


def of_weights(
    layer: Layer, q: Array, mix: Array, k: Array, width: int, notes: tuple[str, ...] = ()
) -> Redundancy:
    """The redundancy of W_QK^(h) = q^T diag(mix_h) k of a layer: q (R, d), mix (H, R), k (R, d).

    width: H D. No d x d matrix is formed.
    """
    core = np.linalg.qr(k.T)[1]  # (p, R)
    squares = np.linalg.eigvalsh(core @ ((q @ q.T) * (mix.T @ mix)) @ core.T)[::-1]
    grams = mix @ ((q @ q.T) * (k @ k.T)) @ mix.T  # (H, H): inner products of the W_QK
    sizes = np.sqrt(np.maximum(np.diag(grams), 0.0))
    both = np.outer(sizes, sizes)
    cosines = np.full(grams.shape, np.nan)
    np.divide(grams, both, out=cosines, where=both > 0)
    over = np.sqrt(np.maximum(np.linalg.eigvalsh(grams)[::-1], 0.0))
    return Redundancy(
        layer, np.clip(cosines, -1.0, 1.0), Spectrum(np.sqrt(np.maximum(squares, 0.0)), width),
        Spectrum(over, len(grams)), notes=notes,
    )  # fmt: skip


class OfMaps:
    """The redundancy of maps, over one text or many."""

    def __init__(self) -> None:
        self._alike: dict[int, Likeness] = {}
        self._layers: dict[int, Layer] = {}

    def add(self, capture: Capture) -> Iterator[float]:
        """A text; yields the share of it that is done."""
        readings: dict[str, TokenReading] = {}
        for layer in capture.spec.layers:
            known = capture.maps[layer.index]
            if known is None or not known.heads:
                continue
            heads = [HeadId(layer.index, head) for head in known.heads]
            alike = self._alike.setdefault(layer.index, Likeness(heads, ROWS))
            self._layers[layer.index] = layer
            for part in alike.steps([known], Layout(capture, layer.index, readings)):
                yield (layer.index + part) / len(capture.spec.layers)

    def found(self) -> tuple[Redundancy, ...]:
        """Of every layer that was captured."""
        return tuple(
            Redundancy(self._layers[index], alike.distances(), rows=alike.rows)
            for index, alike in sorted(self._alike.items())
        )
