"""Sums over the keys of every row of a layer, and the metrics made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.analysis.finders import Finder
from hgviz.analysis.tokens import Block, Layout
from hgviz.maps.overview import entropy_of

Array = NDArray[Any]


class Tally:
    """Sums over the keys of each row; weights count by their size.

    mass, positive (the part of it above 0), peak, where (its column, -1 in rows without weight),
    plain (the peak without special tokens), logs (of a log a), distance and placed (mass on keys
    that stand for tokens) are (heads, rows); columns (heads, keys) is the mass of each key over the
    real rows, signed (heads,) whether weights can be negative; hits[role] (heads, rows) and
    chance[role] (rows,) are the mass and the number of the keys that a role means, even_hits and
    even_chance of every second of its targets; seen (rows,) counts the keys that a row sees.
    """

    def __init__(self, layout: Layout, roles: Mapping[str, Finder], signed: Sequence[bool]) -> None:
        heads, rows = len(signed), len(layout.query)
        self.roles, self.layout, self.signed = roles, layout, np.array(signed, bool)
        self.mass, self.peak, self.logs, self.distance, self.placed = np.zeros((5, heads, rows))
        self.positive, self.plain = np.zeros((2, heads, rows))
        self.where = np.full((heads, rows), -1)
        self.columns = np.zeros((heads, len(layout.key)))
        self.seen = np.zeros(rows)
        split = [name for name, one in roles.items() if one.members]
        self.hits = {name: np.zeros((heads, rows)) for name in roles}
        self.chance = {name: np.zeros(rows) for name in roles}
        self.even_hits = {name: np.zeros((heads, rows)) for name in split}
        self.even_chance = {name: np.zeros(rows) for name in split}

    def add(self, rows: slice, columns: slice, weights: Array, block: Block) -> None:
        """Count the weights (heads, rows, columns) of one block."""
        seen, sizes = block.seen, np.abs(weights)
        self.mass[:, rows] += sizes.sum(2)
        if self.signed.any():
            self.positive[:, rows] += np.maximum(weights, 0).sum(2)
        self.columns[:, columns] += sizes[:, self.layout.real[rows]].sum(1)
        self._look(rows, columns.start, sizes)
        if self.layout.key_tokens.special.any():
            words = sizes * ~block.special
            self.plain[:, rows] = np.maximum(self.plain[:, rows], words.max(2))
        self.logs[:, rows] += np.einsum("hrc,hrc->hr", sizes, np.log(np.maximum(sizes, 1e-30)))
        self.seen[rows] += seen.sum(1)
        far = np.where(seen, block.distance, 0)
        self.distance[:, rows] += np.einsum("hrc,rc->hr", sizes, far)
        self.placed[:, rows] += np.einsum("hrc,rc->hr", sizes, seen.astype(np.float32))
        found = {name: one.find(block) & seen for name, one in self.roles.items()}
        self._hit(self.hits, self.chance, rows, sizes, found)
        even = {
            name: found[name] & block.with_second_member(members)
            for name, one in self.roles.items()
            if (members := one.members)
        }
        self._hit(self.even_hits, self.even_chance, rows, sizes, even)

    def _look(self, rows: slice, first: int, sizes: Array) -> None:
        """Where each row looks most; the first of several equal ones."""
        best = sizes.argmax(2)
        most = np.take_along_axis(sizes, best[..., None], 2)[..., 0]
        better = most > self.peak[:, rows]
        self.where[:, rows] = np.where(better, best + first, self.where[:, rows])
        self.peak[:, rows] = np.where(better, most, self.peak[:, rows])

    @staticmethod
    def _hit(
        hits: dict[str, Array], chance: dict[str, Array], rows: slice, sizes: Array,
        found: dict[str, NDArray[np.bool_]],
    ) -> None:  # fmt: skip
        found = {name: keys for name, keys in found.items() if keys.any()}
        if not found:  # far from the diagonal most roles have no key
            return
        # one small product per row: (roles, columns) x (columns, heads)
        keys = np.stack(list(found.values()), axis=1)
        mass = keys.astype(np.float32) @ sizes.transpose(1, 2, 0)
        counts = keys.sum(2)
        for number, name in enumerate(found):
            hits[name][:, rows] += mass[:, number].T
            chance[name][rows] += counts[:, number]

    def share(self, role: str) -> Array:
        """(heads, rows): the part of each row's weight on the keys of a role; NaN where a layer is
        not tried for it."""
        if role not in self.hits:
            return np.full(self.mass.shape, np.nan)
        return ratio(self.hits[role], self.mass)

    def share_where(self, role: str) -> Array:
        """The same, NaN for rows that see no such key."""
        if role not in self.hits:
            return self.share(role)
        return np.where(self.chance[role] > 0, self.share(role), np.nan)

    def offsets(self) -> Array:
        """(heads, rows): how far from the query the key lies that each row looks at most, in
        tokens; -1 is the previous one. NaN for rows without weight, for keys that stand for no
        token, and between two texts. A position of a level counts as many tokens as its stride.
        """
        layout = self.layout
        if layout.is_cross:
            return np.full(self.mass.shape, np.nan)
        column = np.maximum(self.where, 0)
        far = layout.key[column, 1] - layout.query[:, 1]
        if layout.role == "self" and layout.stride is not None:
            far = (self.where - np.arange(len(layout.query))) * layout.stride
        there = (self.where >= 0) & (layout.key[column, 0] >= 0)
        return np.where(there, far, np.nan)

    def rarest(self) -> Array:
        """(heads, rows): 1 where the key looked at most is of the rarest word of the sentence, NaN
        where no word of it is rare, or nobody counted words."""
        if "rare word" not in self.roles or not self.chance["rare word"].any():
            return np.full(self.mass.shape, np.nan)
        layout = self.layout
        first, end = (
            one[layout.newest_token] for one in layout.key_tokens.rarest_word(layout.causal)
        )
        column = np.maximum(self.where, 0)
        inside = (layout.key[column, 0] < end) & (layout.key[column, 1] > first)
        found = np.where(inside & (self.where >= 0), 1.0, 0.0)
        return np.where(self.chance["rare word"] > 0, found, np.nan)

    def of_signed(self, values: Array) -> Array:
        """(heads, rows): the values, NaN for heads whose weights cannot be negative."""
        return np.where(self.signed[:, None], values, np.nan)


def ratio(part: Array, whole: Array) -> Array:
    """part / whole, 0 where there is nothing to divide by."""
    out = np.zeros(np.broadcast(part, whole).shape)
    return np.divide(part, whole, out=out, where=whole > 0)


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of every head: its name, what it means, and how rows give it (heads, rows).

    NaN where it says nothing of a row; of no rows at all, the head has no such number. formula: of
    p_ij, the part that the size of the weight of query i on key j has of its row, and x_i, the
    token there; source: the paper that it is from or after, or the page that says more. of None:
    it is no mean over rows, and measured otherwise (gathered, kernels, likeness).
    """

    words: str
    description: str
    formula: str
    source: str
    of: Callable[[Tally], Array] | None = None

    def named(self, unit: str) -> str:
        """The label for a text of letters or of tokens."""
        return self.words.format(unit=unit)

    @property
    def label(self) -> str:
        """The label for a text of letters."""
        return self.named("letter")


def _entropy(tally: Tally) -> Array:
    return entropy_of(tally.mass, tally.logs)


def _distance(tally: Tally) -> Array:
    if "same" not in tally.roles:  # between two texts there is no distance
        return np.full(tally.mass.shape, np.nan)
    return ratio(tally.distance, tally.placed)


def _plain(tally: Tally) -> Array:
    if not tally.layout.key_tokens.special.any():
        return np.full(tally.mass.shape, np.nan)
    return ratio(tally.plain, tally.mass)


_CLARK, _VOITA = "Clark et al. 2019", "Voita et al. 2019"
_CORDONNIER, _GUIDE = "Cordonnier et al. 2020; mechanisms.md", "what-heads-do.md"

METRICS: dict[str, Metric] = {
    "focus": Metric(
        "Focus (max)", "The largest weight of a row, averaged over rows",
        "mean_i max_j p_ij, p_ij = |a_ij| / Σ_k |a_ik|", _VOITA,
        lambda tally: ratio(tally.peak, tally.mass),
    ),
    "entropy": Metric(
        "Entropy, nats", "How evenly a row spreads, averaged over rows; 0 is a single key",
        "mean_i −Σ_j p_ij ln p_ij", _CLARK, _entropy,
    ),
    "distance": Metric(
        "Distance, {unit}s", "How far it looks on average",
        "mean_i Σ_j p_ij |i − j|", "Vig and Belinkov 2019", _distance,
    ),
    "previous": Metric(
        "Previous {unit}", "Weight on the position before its own, averaged over rows",
        "mean_i p_i,i−1", _CLARK, lambda tally: tally.share("previous"),
    ),
    "first": Metric(
        "First {unit}", "Weight on the first position, averaged over rows",
        "mean_i p_i,0", "Xiao et al. 2024", lambda tally: tally.share("first"),
    ),
    "same": Metric(
        "Itself", "Weight on its own position, averaged over rows",
        "mean_i p_ii", _CLARK, lambda tally: tally.share("same"),
    ),
    "next": Metric(
        "Next {unit}", "Weight on the position after its own, averaged over rows",
        "mean_i p_i,i+1", _CLARK, lambda tally: tally.share("next"),
    ),
    "last": Metric(
        "Last {unit}", "Weight on the last position, averaged over rows",
        "mean_i p_i,n−1", _GUIDE, lambda tally: tally.share("final"),
    ),
    "separators": Metric(
        "Separators", "Weight on special tokens between and after the texts, averaged over rows",
        "mean_i Σ_j p_ij, x_j = [SEP]", _CLARK, lambda tally: tally.share_where("separators"),
    ),
    "words": Metric(
        "Focus on words", "The largest weight of a row on a token that is not special, averaged",
        "mean_i max_j p_ij, x_j ≠ [SEP], [CLS], …", _VOITA, _plain,
    ),
    "same token": Metric(
        "Same {unit}", "Weight on the same {unit} elsewhere, over the rows that have one",
        "mean_i Σ_j p_ij, x_j = x_i, j ≠ i", "Wang et al. 2023",
        lambda tally: tally.share_where(
            "same elsewhere" if "same elsewhere" in tally.roles else "same earlier"
        ),
    ),
    "induction": Metric(
        "Induction", "Weight on what followed the same {unit} before, over the rows that have it",
        "mean_i Σ_j p_ij, x_j−1 = x_i, j < i", "Olsson et al. 2022",
        lambda tally: tally.share_where("after one"),
    ),
    "diagonal": Metric(
        "Same place", "Weight on keys as far through their text as the query is through its own",
        "mean_i Σ_j p_ij, j / m ≈ i / n", _GUIDE, lambda tally: tally.share("alongside"),
    ),
    "positive": Metric(
        "Positive sum", "The positive weights of a row added up, averaged over rows",
        "mean_i Σ_j max(a_ij, 0)", "activations.md",
        lambda tally: tally.of_signed(tally.positive),
    ),
    "negative": Metric(
        "Negative sum", "The negative weights of a row added up, averaged over rows",
        "mean_i Σ_j min(a_ij, 0)", "activations.md",
        lambda tally: tally.of_signed(tally.positive - tally.mass),
    ),
    "positional": Metric(
        "Positional", "The share of rows that look most at one and the same distance",
        "max_d mean_i [argmax_j p_ij − i = d]", _VOITA,
    ),
    "offset": Metric(
        "Offset, {unit}s", "The distance at which most rows look most; −1 is the one before",
        "argmax_d mean_i [argmax_j p_ij − i = d]", _VOITA,
    ),
    "rare": Metric(
        "Rarest word", "The share of rows that look most at the rarest word of their sentence",
        "mean_i [argmax_j p_ij ∈ w_i]", _VOITA, Tally.rarest,
    ),
    "convolution": Metric(
        "Convolution-like", "How much of what tells rows from even ones is one kernel of distance",
        "1 − ‖A − T‖² / ‖A − U‖², T_ij ∝ κ(j − i), U_ij = 1 / n_i", _CORDONNIER,
    ),
    "centre": Metric(
        "Kernel centre, {unit}s", "The mean distance of that kernel; −1 is the one before",
        "c = Σ_d d κ(d) / Σ_d κ(d)", _CORDONNIER,
    ),
    "width": Metric(
        "Kernel width, {unit}s", "How wide that kernel is: one standard deviation",
        "√(Σ_d (d − c)² κ(d) / Σ_d κ(d))", _CORDONNIER,
    ),
    "variance": Metric(
        "Content variance", "How much the same cell of the map varies between texts, on average",
        "mean_ij Var(p_ij), i, j < 64", _GUIDE,
    ),
    "nearest": Metric(
        "Nearest head", "The Jensen-Shannon distance to the head most like it; 0 is the same map",
        "min_h mean_i √JS₂(p_i, q_i), JS₂ = H₂((p + q) / 2) − (H₂(p) + H₂(q)) / 2", _CLARK,
    ),
}  # fmt: skip


class Numbers(dict[str, float]):
    """The metrics of one head by name; one that says nothing of it is NaN and not listed."""

    def __missing__(self, name: str) -> float:
        return float("nan")


def applying(metrics: Iterable[Mapping[str, float]]) -> tuple[str, ...]:
    """The names of METRICS that say something of at least one of these heads."""
    found = list(metrics)
    return tuple(name for name in METRICS if any(name in one for one in found))
