"""The stages of one letter's way through a model: where it reads, is shortened, comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from hgviz.core import HeadId, ModelSpec
from hgviz.gui.views import words
from hgviz.gui.views.silhouette import visits
from hgviz.tasks.drawing import long

if TYPE_CHECKING:
    from hgviz.session import Session

Kind = Literal["first", "in", "waist", "out", "last", "flat", "own", "cross", "text", "slots"]

GROUPS = 4  # stages of a model that has one resolution only
PAIRS = 2  # of a decoder's layers, each looking at its own text and at the other


@dataclass(frozen=True, slots=True)
class Stage:
    """A stay at one level: its layers, and the layers of resampling that lead into it.

    level is that of the strip; asks that of the letter, where it looks at another text.
    """

    number: int
    level: int
    layers: tuple[int, ...]
    entries: tuple[int, ...]
    kind: Kind
    asks: int = -1

    @property
    def away(self) -> bool:
        """Whether the strip is of another text than the letter's."""
        return self.kind in ("cross", "slots")

    @property
    def beside(self) -> bool:
        """Whether its words stand beside the strip: arcs may go both ways above it."""
        return self.kind in ("flat", "own", "cross", "text", "slots")

    @property
    def own(self) -> int:
        """The level that the letter is followed at."""
        return self.level if self.asks < 0 else self.asks

    def title(self, spec: ModelSpec, noun: str) -> str:
        """What happens here, in words."""
        many = words.number(spec.levels[self.level].stride or 0)
        become = f"{many.capitalize()} {noun}s become one"
        if spec.levels[self.level].stride is None:
            become = f"{noun.capitalize()}s become segments"
        layers = words.listed(self.layers, "layer").capitalize() if self.layers else ""
        return {
            "first": f"Read every {noun}",
            "in": become,
            "waist": f"{become}: look far, cheaply",
            "out": f"Spread back to {many} {noun}s",
            "last": f"Back at every {noun}, with what was learnt",
            "text": f"Every {noun}",
        }.get(self.kind, layers)

    def note(self, spec: ModelSpec, positions: int) -> str:
        """Positions, layers and, going down, the cost."""
        if self.beside:
            return {"own": "its text", "cross": "the source", "slots": "the slots"}.get(
                self.kind, ""
            )
        said = f"{words.counted(positions, 'position')}, {words.listed(self.layers, 'layer')}"
        stride = spec.levels[self.level].stride or 1
        cheap = self.kind in ("in", "waist") and stride > 1
        return f"{said}, {words.part(stride**2)} of the cost" if cheap else said


def stages(spec: ModelSpec, level: int = 0) -> tuple[Stage, ...]:
    """One stage per visit of a level that has layers; a flat model in a few groups of layers.

    level: of two texts, the one that the letter is in.
    """
    if len({one.sequence for one in spec.levels}) > 1:
        return _apart(spec, level)
    stays: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
    entries: tuple[int, ...] = ()
    for visit in visits(spec):
        if visit.entry is not None:
            entries += (visit.entry.index,)
        if visit.rows:
            stays.append((visit.level, tuple(one.index for one in visit.rows), entries))
            entries = ()
    if len({level for level, _, _ in stays}) == 1:
        level, layers, _ = stays[0]
        groups = enumerate(_groups(layers, GROUPS))
        return tuple(Stage(n + 1, level, one, (), "flat") for n, one in groups)
    strides = [words.coarseness(spec.levels[level]) for level, _, _ in stays]
    waist = strides.index(max(strides))
    return tuple(
        Stage(n + 1, level, layers, before, _kind(n, strides, waist))
        for n, (level, layers, before) in enumerate(stays)
    )


def followed(session: Session) -> tuple[HeadId, ...]:
    """The heads that a figure of all levels shows: those last opened, one at a level.

    A stage that has none of them shows its clearest, which in a long text is named here, as far as
    it is known: to find it for the figure alone takes minutes.
    """
    opened, capture = tuple(session.opened.values()), session.capture
    if capture is None or not long(capture):
        return opened
    chosen = {one.layer for one in (session.selection.head_id, *opened)}
    found = list(opened)
    for stage in stages(capture.spec):
        if not stage.beside and chosen.isdisjoint(stage.layers):
            heads = [HeadId(n, h) for n in stage.layers for h in capture.spec.layers[n].heads]
            on = [one for one in heads if one not in capture.off] or heads
            facts = session.facts
            found.append(max(on, key=lambda one: facts[one].score if one in facts else -1.0))
    return tuple(found)


def _apart(spec: ModelSpec, level: int) -> tuple[Stage, ...]:
    """A decoder by turns at its own text and the source; a projected text and its slots."""
    mine = [one for one in spec.layers if one.level == level]
    crossing = [one.index for one in mine if one.role == "cross"]
    own = [one.index for one in mine if one.role == "self"]
    away = next((one.key_level for one in mine if one.key_level != level), level)
    found: list[tuple[int, tuple[int, ...], Kind]] = []
    if crossing:
        turns = zip(_groups(own, PAIRS), _groups(crossing, PAIRS), strict=False)
        for one, other in turns:
            found += [(level, one, "own"), (away, other, "cross")]
    elif away != level:
        found = [(level, (), "text"), *((away, one, "slots") for one in _groups(own, GROUPS))]
    else:
        found = [(level, one, "flat") for one in _groups(own, GROUPS)]
    return tuple(
        Stage(n + 1, at, layers, (), kind, level) for n, (at, layers, kind) in enumerate(found)
    )


def _groups(layers: Sequence[int], most: int) -> list[tuple[int, ...]]:
    if not layers:
        return []
    return [tuple(map(int, one)) for one in np.array_split(layers, min(most, len(layers)))]


def _kind(number: int, strides: Sequence[float], waist: int) -> Kind:
    if strides[number] == max(strides):
        return "waist"
    if strides[number] == min(strides):
        return "first" if number < waist else "last"
    return "in" if number < waist else "out"
