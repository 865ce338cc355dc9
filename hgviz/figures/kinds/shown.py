"""Which part of a text is shown where not all of it fits: the ends of links, and what is near."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hgviz.maps.links import Links

NEAR = 3  # units around the ends of links that are shown where there is room


@dataclass(frozen=True, slots=True)
class Item:
    """A unit at a place of its side; or, place None, so many that are left out."""

    place: int | None
    left_out: int = 0


Fits = Callable[[list[Item], tuple[int, ...]], bool]  # items, and on which of the two sides


def items_of(links: Links, fits: Fits) -> tuple[list[Item], list[Item]]:
    """What stands on both sides; the same on both where they are the same text and positions."""
    queries = sorted(links.strands)
    size: dict[int, float] = {}
    for many in links.strands.values():
        for strand in many:
            for key, weight in zip(strand.keys.tolist(), strand.weights.tolist(), strict=True):
                size[key] = max(size.get(key, 0.0), abs(weight))
    keys = sorted(size, key=lambda key: (-size[key], key))
    if _same(links):
        both = _items(len(links.keys), [*queries, *keys], lambda items: fits(items, (0, 1)))
        return both, both
    left = _items(len(links.queries), queries, lambda items: fits(items, (0,)))
    return left, _items(len(links.keys), keys, lambda items: fits(items, (1,)))


def _same(links: Links) -> bool:
    one, two = links.queries, links.keys
    alike = one.prompt is two.prompt and one.tokens.shape == two.tokens.shape
    return bool(alike and (one.tokens == two.tokens).all() and (one.shown == two.shown).all())


def _items(count: int, wanted: list[int], fits: Callable[[list[Item]], bool]) -> list[Item]:
    """All units where they fit, else as many of the wanted as do, the first of them first, and
    those near them.
    """
    whole = [Item(place) for place in range(count)] if count < 1 << 12 else []
    if len(whole) == count and fits(whole):
        return whole
    ranked = list(dict.fromkeys(wanted)) or [0]
    for away in range(1, NEAR + 1):
        near = [place + side * away for place in wanted for side in (-1, 1)]
        ranked += [place for place in near if 0 <= place < count]
    ranked = list(dict.fromkeys(ranked))
    low, high = 0, len(ranked)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if fits(_with_gaps(count, ranked[:middle])) else (low, middle - 1)
        )
    return _with_gaps(count, ranked[: max(1, low)])


def _with_gaps(count: int, places: list[int]) -> list[Item]:
    out: list[Item] = []
    before = -1
    for place in [*sorted(places), count]:
        if place - before > 1:
            missing = place - before - 1
            out.append(Item(before + 1) if missing == 1 else Item(None, missing))
        if place < count:
            out.append(Item(place))
        before = place
    return out
