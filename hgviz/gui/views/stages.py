"""The stages of one letter's way through a model: where it reads, is shortened, comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from hgviz.core import HeadId, ModelSpec
from hgviz.gui.language import tr
from hgviz.gui.views import words
from hgviz.gui.views.silhouette import visits

if TYPE_CHECKING:
    from hgviz.session import Session

Kind = Literal["first", "in", "waist", "out", "last", "flat", "own", "cross", "text", "slots"]

GROUPS = 4  # stages of a model that has one resolution only
PAIRS = 2  # of a decoder's layers, each looking at its own text and at the other
READS = {"own": "its text", "cross": "the source", "slots": "the slots"}
# of a kind of stage, and of one whose positions are segments of unequal length
TITLES = {
    "first": ("Read every {unit}", "Read every {unit}"),
    "in": ("{many} {units} become one", "{units} become segments"),
    "waist": (
        "{many} {units} become one: look far, cheaply",
        "{units} become segments: look far, cheaply",
    ),
    "out": ("Spread back to {many} {units}", "Spread back to {many} {units}"),
    "last": (
        "Back at every {unit}, with what was learnt", "Back at every {unit}, with what was learnt",
    ),
    "text": ("Every {unit}", "Every {unit}"),
}  # fmt: skip


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
        if self.kind not in TITLES:
            said = words.layers(self.layers) if self.layers else ""
        else:
            stride = spec.levels[self.level].stride
            said = tr(
                TITLES[self.kind][stride is None],
                many=words.number(stride or 0),
                unit=tr(noun),
                units=tr(f"{noun}s"),
            )
        return said[:1].upper() + said[1:]

    def note(self, spec: ModelSpec, positions: int) -> str:
        """Positions, layers and, going down, the cost; "" beside a strip."""
        if self.beside:
            return ""
        said = [words.counted(positions, "position"), words.layers(self.layers)]
        stride = spec.levels[self.level].stride or 1
        if self.kind in ("in", "waist") and stride > 1:
            said.append(tr("{part} of the cost", part=words.part(stride**2)))
        return ", ".join(said)

    def named(self, head: str) -> str:
        """A head and which text it looks at, where there are two: "head 1.2 on the source"."""
        on = READS.get(self.kind)
        if on is None:
            return head
        return tr("{head} on {text}", head=head, text=tr(on)) if head else tr(on)


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
        rows = tuple(one.index for one in visit.rows if one.role == "self" and not one.cuts)
        if rows:
            stays.append((visit.level, rows, entries))
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
    from hgviz.tasks.drawing import long

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
