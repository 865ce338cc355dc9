"""What a profile shows, as tasks make it: metrics of heads, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hgviz.core import HeadId
from hgviz.figures.content.charts import Many, Row


@dataclass(frozen=True, slots=True)
class Place:
    """A layer on the axis of layers. rank, key_rank: how coarse the levels of its queries and keys
    are among those of their text, 0 for the finest; level: what the level of its queries is called;
    sequence: the text that its queries come from; known: whether it is captured.
    """

    index: int
    name: str
    role: str
    level: str
    rank: int
    key_rank: int
    sequence: str
    known: bool = True

    @property
    def kind(self) -> str:
        """cross, or self, which what changes levels belongs to."""
        return "cross" if self.role == "cross" else "self"


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One capture of a profile: its layers, its heads in order, and which of these are off."""

    name: str
    layers: tuple[Place, ...]
    heads: tuple[HeadId, ...]
    off: NDArray[np.bool_]

    @property
    def shape(self) -> tuple[tuple[int, int, str], ...]:
        """What two models of one shape have alike."""
        return tuple((one.rank, one.key_rank, one.sequence) for one in self.layers)

    def of_layer(self, layer: int) -> NDArray[np.bool_]:
        """(heads,) The heads of a layer."""
        return np.array([head.layer == layer for head in self.heads], bool)

    def mean(self, values: Many, layer: int) -> float:
        """The mean of a layer's heads that are on and have such a number; NaN for none."""
        mine = values[self.of_layer(layer) & ~self.off & np.isfinite(values)]
        return float(mine.mean()) if len(mine) else float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A metric: values, of each side (heads,), NaN where a head has no such number."""

    name: str
    label: str
    values: tuple[Many, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Metrics over the layers of one or more captures; title, more, notes, about as in Curves."""

    sides: tuple[Side, ...]
    metrics: tuple[Measured, ...]
    title: str = ""
    more: str = ""
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """The numbers: a line for each head, and one of the mean for each layer."""
        found: list[Row] = [
            ("metric", "capture", "layer", "name", "level", "kind", "head", "off", "value")
        ]
        for metric in self.metrics:
            for side, values in zip(self.sides, metric.values, strict=True):
                for one in side.layers:
                    said = (metric.label, side.name, str(one.index), one.name, one.level, one.role)
                    mine = np.flatnonzero(side.of_layer(one.index))
                    found += [
                        (*said, str(side.heads[at]), "yes" if side.off[at] else "", values[at])
                        for at in mine
                    ]
                    if len(mine):
                        found.append((*said, "mean", "", side.mean(values, one.index)))
        return found


__all__ = ["Measured", "Place", "Profile", "Side"]
