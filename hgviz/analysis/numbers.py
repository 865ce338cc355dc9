"""What is told of a head beside another: six numbers, the same for every activation.

Weights count by their size wherever shares are told, as in differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.differences import NEAR_ZERO, effective_rank
from hgviz.analysis.tokens import Layout, TokenReading
from hgviz.core import Capture, HeadId, Map, progress
from hgviz.maps.overview import entropy_of

ROWS = 256  # of a map in one block; longer ones are measured in blocks spread evenly,
CELLS = 1 << 24  # of so many weights at most
HELD = 1 << 20  # weights at once
RANK_ROWS = 256  # whose singular values are taken, fewer where
RANK_CELLS = 1 << 22  # they would hold more weights

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a head: what people call it, and what it means. percent: it is a share.

    formula: of the weights a_ij of query i on key j, and p_ij, the part that the size of a weight
    has of its row; source: the paper that it is from, or the page that says more.
    """

    label: str
    means: str
    formula: str
    source: str
    percent: bool = False


NUMBERS: dict[str, Number] = {
    "entropy": Number(
        "Entropy of |A|, nats", "How many keys a row spreads over: e to this power",
        "mean_i −Σ_j p_ij ln p_ij, p_ij = |a_ij| / Σ_k |a_ik|", "Clark et al. 2019",
    ),
    "near_zero": Number(
        "Near-zero weights",
        f"Share of cells below {NEAR_ZERO:.0%} of the largest weight of their row",
        f"mean_ij [|a_ij| < {NEAR_ZERO} max_k |a_ik|]", "does-ymish-help.md", True,
    ),
    "negative": Number(
        "Negative mass", "Share of a row’s weight |A| that is below 0",
        "mean_i Σ_j max(−a_ij, 0) / Σ_j |a_ij|", "does-ymish-help.md", True,
    ),
    "rank": Number(
        "Effective rank / n",
        "e to the entropy of the map’s singular values, over its smaller side; 1 / n is one pattern"
        " for all rows",
        "exp(−Σ_k s_k ln s_k) / n, s_k = σ_k / Σ_l σ_l", "Roy and Vetterli 2007",
    ),
    "sum": Number(
        "Row sum", "What a row of A adds up to; exactly 1 for softmax",
        "mean_i Σ_j a_ij", "activations.md",
    ),
    "focus": Number(
        "Focus (max |A|)", "The largest part of a row’s weight |A| on one key",
        "mean_i max_j p_ij, p_ij = |a_ij| / Σ_k |a_ik|", "Voita et al. 2019",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class HeadNumbers:
    """NUMBERS of a head by name, NaN where there is none: means over the rows with weight, rows of
    the `of` that stand for something; near_zero over cells, sum over all these rows."""

    values: dict[str, float]
    rows: int = 0
    of: int = 0


def numbers(
    capture: Capture, heads: Iterable[HeadId], known: MutableMapping[HeadId, HeadNumbers]
) -> None:
    """Measure these heads in their order and put them into known, those left out that are there.

    Holds at most 2^20 weights of a map and 2^22 more for its rank. Of maps above 2^24 weights only
    rows spread evenly are measured. Heads that are not captured, and whose maps have nothing, have
    no numbers.
    """
    wanted = [one for one in heads if one not in known]
    readings: dict[str, TokenReading] = {}
    layouts: dict[int, Layout] = {}
    for done, head in enumerate(wanted):
        one = capture.maps[head.layer]
        if one is None or head.head not in one.heads:
            continue
        layout = layouts.setdefault(head.layer, Layout(capture, head.layer, readings))
        measuring = _Measuring(one, head.head, layout)
        for share in measuring.steps():
            progress(done + share, len(wanted), f"head {head}")
        known[head] = measuring.found()


class _Measuring:
    """Sums over the rows of one head, block by block."""

    def __init__(self, whole: Map, head: int, layout: Layout) -> None:
        self.whole, self.head, self.layout = whole, head, layout
        self.rows = _spread(np.flatnonzero(layout.real), whole.shape[2])
        most = min(len(self.rows), RANK_ROWS, max(1, RANK_CELLS // max(whole.shape[2], 1)))
        self.ranked = {*self.rows[np.linspace(0, len(self.rows) - 1, most).astype(int)].tolist()} \
            if len(self.rows) else set()  # fmt: skip
        self.parts: list[Array] = []  # (5, rows): mass, entropy, below 0, sum, peak
        self.near = self.cells = 0
        self.kept: list[Array] = []

    def steps(self) -> Iterator[float]:
        """How much is measured, from 0."""
        at_once = max(1, HELD // max(1, self.whole.shape[2]))
        runs = [
            one[i : i + at_once] for one in _runs(self.rows) for i in range(0, len(one), at_once)
        ]
        for done, rows in enumerate(runs):
            yield done / len(runs)
            with np.errstate(invalid="ignore", over="ignore"):
                self._add(slice(int(rows[0]), int(rows[-1]) + 1))

    def _add(self, rows: slice) -> None:
        weights = self.whole.read(self.head, rows)
        good = np.isfinite(weights).all(1)
        weights = weights[good]
        seen = self.layout.block(rows, slice(0, weights.shape[1])).seen[good] | (weights != 0)
        sizes = np.abs(weights)
        mass = sizes.sum(1, dtype=float)
        peak = sizes.max(1, initial=0).astype(float)
        logs = np.einsum("rk,rk->r", sizes, np.log(np.maximum(sizes, 1e-30)), dtype=float)
        below = np.maximum(-weights, 0).sum(1, dtype=float)
        total = weights.sum(1, dtype=float)
        self.parts.append(np.stack([mass, entropy_of(mass, logs), below, total, peak]))
        # a row without weight has no largest one that others could be near
        some = mass > 0
        self.near += int(((sizes < NEAR_ZERO * peak[:, None]) & seen)[some].sum())
        self.cells += int(seen[some].sum())
        numbers = np.arange(rows.start, rows.stop)[good]
        self.kept.append(weights[[int(one) in self.ranked for one in numbers]])

    def found(self) -> HeadNumbers:
        """The numbers of all rows that were added."""
        rows = np.concatenate([np.zeros((5, 0)), *self.parts], 1)
        mass, entropy, below, total, peak = rows
        some = mass > 0
        share = np.divide(np.stack([below, peak]), mass, where=some, out=np.zeros((2, len(mass))))
        kept = np.concatenate(self.kept) if self.kept else np.zeros((0, 0))
        side = min(kept.shape) if kept.size else 0
        values = {
            "entropy": _mean(entropy[some]),
            "near_zero": self.near / self.cells if self.cells else float("nan"),
            "negative": _mean(share[0][some]),
            "rank": effective_rank(kept) / side if side else float("nan"),
            "sum": _mean(total),
            "focus": _mean(share[1][some]),
        }
        return HeadNumbers(values, rows.shape[1], int(self.layout.real.sum()))


def _spread(rows: NDArray[np.int64], keys: int) -> NDArray[np.int64]:
    """All of some rows, or blocks of them spread evenly where they hold too many weights."""
    blocks = [rows[at : at + ROWS] for at in range(0, len(rows), ROWS)]
    most = max(2, CELLS // (ROWS * max(keys, 1)))
    if len(blocks) <= most:
        return rows
    chosen = np.linspace(0, len(blocks) - 1, most).round().astype(int)
    return np.concatenate([blocks[at] for at in chosen])


def _runs(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows that follow each other, together."""
    return [one for one in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if len(one)]


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")


def peers(capture: Capture, head: HeadId) -> list[HeadId]:
    """The heads that one is told beside: those of self-attention, of cross-attention, or of the
    layers between levels; itself among them."""
    kinds = {"self": ("self",), "cross": ("cross",)}
    layers = capture.spec.layers
    roles = kinds.get(layers[head.layer].role, ("down", "up"))
    return [
        HeadId(layer.index, one)
        for layer in layers
        if layer.role in roles and (known := capture.maps[layer.index]) is not None
        for one in layer.heads
        if one in known.heads
    ]


__all__ = ["NUMBERS", "HeadNumbers", "Number", "numbers", "peers"]
