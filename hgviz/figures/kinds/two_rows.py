"""Links between two rows of text, for pages and for scripts that are read across."""

from __future__ import annotations

from hgviz.figures.kinds.shown import Item, items_of
from hgviz.figures.kinds.strands import (
    MARK,
    PITCH,
    TITLES,
    Kind,
    Place,
    curves,
    head,
    label,
    linked_keys,
    numbers_of,
    words_of,
)
from hgviz.figures.paper import style
from hgviz.figures.paper.page import Page
from hgviz.language import decimals
from hgviz.maps.links import Links, Side
from hgviz.palettes import LIGHT_PAGE

PAD = 4.0
HIGH = 78.0  # between the two rows
TINY = 5.5  # of numbers
LONGEST = 90.0  # of a word
BETWEEN, LOOSE = 4.0, 9.0  # of words, at least, and what more there is at most


def in_two_rows(page: Page, links: Links, kinds: list[Kind], top: float) -> tuple[float, int]:
    """Two rows of text and numbers beneath the keys; gives where they end, and how many links are
    not there.
    """
    joint, marked = linked_keys(links), set(links.strands)
    name = max(style.extent(one, style.SMALL) for one in TITLES)
    name = max([name, *(style.extent(kind.name, style.SMALL) + MARK for kind in kinds)]) + 2 * PAD

    least = {
        key: max(style.extent(words, TINY) for words in numbers_of(links, joint, key))
        for key in set().union(*joint)
    }

    def width(side: Side, one: Item) -> float:
        numbers = least.get(one.place, 0.0) if one.place is not None and side is links.keys else 0.0
        bold = side is links.queries and one.place in marked
        words = min(LONGEST, style.extent(words_of(side, one), style.TEXT, bold))
        return max(numbers, words) + BETWEEN

    def fits(items: list[Item], sides: tuple[int, ...]) -> bool:
        named = [(links.queries, links.keys)[side] for side in sides]
        wide = sum(max(width(side, one) for side in named) for one in items)
        return wide <= page.width - name

    rows = items_of(links, fits)
    tops = top + PITCH, top + PITCH + HIGH
    spots: list[dict[int | None, float]] = []
    alike = [one.place for one in rows[0]] == [one.place for one in rows[1]]
    for side, items, y, words in zip((links.queries, links.keys), rows, tops, TITLES, strict=True):
        page.text(0, y, words, size=style.SMALL, colour=LIGHT_PAGE.secondary, middle=True)
        x, found = name, {}
        wides = [
            max(width(each, one) for each in ((links.queries, links.keys) if alike else (side,)))
            for one in items  # one above the other, where they are the same
        ]
        loose = min(LOOSE, max(0.0, (page.width - name - sum(wides)) / len(items)))
        for one, wide in zip(items, (wide + loose for wide in wides), strict=True):
            found[one.place] = x + wide / 2
            chosen = side is links.queries and one.place in marked
            label(page, side, one, x + wide / 2, y, LONGEST, "center", chosen)
            x += wide
        spots.append(found)

    def at(side: int, y: float) -> Place:
        def place_of(place: int) -> tuple[float, float] | None:
            x = spots[side].get(place)
            return None if x is None else (x, y)

        return place_of

    ends = tops[0] + PITCH * 0.6, tops[1] - PITCH * 0.6
    missing = curves(page, links, kinds, at(0, ends[0]), at(1, ends[1]), across=True)
    y = tops[1] + PITCH
    for row, kind in enumerate(kinds):
        head(page, kind, 0, y, "left")
        for place, x in spots[1].items():
            if place is not None and place in joint[row]:
                words = decimals(float(links.joint[row, place]), signed=links.signed)
                page.text(x, y, words, size=TINY, middle=True, across="center")
        y += PITCH
    return y - PITCH / 2, missing
