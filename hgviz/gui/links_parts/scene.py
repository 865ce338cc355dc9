"""What is shown of links, and how tokens and weights are written there."""

from __future__ import annotations

from dataclasses import dataclass

from hgviz.gui import sentences
from hgviz.gui.links_parts.inks import Strands
from hgviz.gui.links_parts.track import Track
from hgviz.gui.views import words
from hgviz.maps.links import Links, Side


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """What is shown. links: of the chosen queries, or of all in view; hot: of the query under the
    pointer, where it is none of these. chosen: places of the queries chosen; key: of the key.
    """

    links: Links
    tracks: tuple[Track, Track]
    strands: tuple[Strands, ...]
    chosen: frozenset[int] = frozenset()
    key: int | None = None
    hot: Links | None = None
    titles: tuple[str, str] = ("Query", "Key")

    def stays(self, other: Scene) -> bool:
        """Whether the same texts stood there before."""
        mine, its = self.links, other.links
        return mine.queries is its.queries and mine.keys is its.keys

    @property
    def shown(self) -> Links:
        """The links whose numbers are said: of the query pointed at, else of those chosen."""
        return self.hot or self.links

    def beyond(self, view: tuple[int, int]) -> list[tuple[bool, int, int, float]]:
        """Links of chosen queries to keys that are not in view: whether before, the strongest, how
        many, how strong that is.
        """
        if not self.chosen and self.hot is None:
            return []
        size: dict[int, float] = {}
        for many in self.shown.strands.values():
            for strand in many:
                for key, weight in zip(strand.keys.tolist(), strand.weights.tolist(), strict=True):
                    size[key] = max(size.get(key, 0.0), abs(weight))
        found = []
        for before in (True, False):
            out = [key for key in size if (key < view[0] if before else key >= view[1])]
            if out:
                top = max(out, key=lambda one: size[one])
                found.append((before, top, len(out), size[top]))
        return found


def label(side: Side, place: int) -> str:
    """The label of a unit: a token's own, so that bytes of one character are named each."""
    unit = int(side.shown[place])
    start, end = (int(one) for one in side.tokens[unit])
    if start < 0:
        return "∅"
    if end - start == 1:
        return sentences.name(side.prompt, start).strip() or sentences.SPACE
    found = side.prompt.words(start, end)
    return sentences.shown(found.strip() or found) or " ".join(side.prompt.pieces[start:end])


def amount(value: float, signed: bool, digits: int = 2) -> str:
    """0.42; with signs, where there can be some."""
    return words.with_sign(value, digits) if signed else words.weight(value, digits)
