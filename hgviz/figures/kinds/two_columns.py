"""Links between two columns of text, and the weight of every key beside it."""

from __future__ import annotations

from itertools import accumulate

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
    words_of,
)
from hgviz.figures.paper import style
from hgviz.figures.paper.page import Page
from hgviz.language import decimals
from hgviz.maps.links import Links
from hgviz.palettes import LIGHT_PAGE

PAD = 4.0
MOST_ROWS = 64  # a page has no more
TALLEST, FEW = 1.7, 8  # of the width, where a text is cut for few queries
REACH = (44.0, 300.0)  # of curves, the least and the most
APART = 5.0  # columns of numbers, at least


def in_two_columns(page: Page, links: Links, kinds: list[Kind], top: float) -> tuple[float, int]:
    """Two columns of text; gives where they end, and how many links are not there."""
    left, right = items_of(links, lambda items, _: _fits(page, links, items))
    most = page.width * 0.3
    wide = [
        min(
            most,
            max(
                style.extent(words, style.TEXT, bold=True)
                for words in (title, *(words_of(side, one) for one in items))
            ),
        )
        + 1
        for side, items, title in zip(
            (links.queries, links.keys), (left, right), TITLES, strict=True
        )
    ]
    joint, marked = linked_keys(links), set(links.strands)
    room = page.width - wide[0] - wide[1] - 4 * PAD - REACH[0]
    columns = [
        _column(links, kind, *one) for kind, one in zip(kinds, enumerate(joint), strict=True)
    ]
    fits = sum(sum(columns[: at + 1]) <= room for at in range(len(columns)))
    numbered = list(zip(kinds, accumulate(columns[:fits]), strict=False))
    reach = min(REACH[1], room + REACH[0] - sum(columns[:fits]))
    start = wide[0] + PAD
    end = start + reach
    first = top + PITCH
    for x, words, across in ((wide[0], TITLES[0], "right"), (end + PAD, TITLES[1], "left")):
        page.text(x, first - 0.3 * PITCH, words, size=style.SMALL, colour=LIGHT_PAGE.secondary,
                  across=across)  # fmt: skip
    places = [{one.place: at for at, one in enumerate(items)} for items in (left, right)]

    def at(side: int, x: float) -> Place:
        def found(place: int) -> tuple[float, float] | None:
            row = places[side].get(place)
            return None if row is None else (x, first + (row + 0.5) * PITCH)

        return found

    missing = curves(page, links, kinds, at(0, start + 2), at(1, end - 2), across=False)
    for items, side, x, across in (
        (left, links.queries, wide[0], "right"), (right, links.keys, end + PAD, "left"),
    ):  # fmt: skip
        for row, one in enumerate(items):
            chosen = side is links.queries and one.place in marked
            label(page, side, one, x, first + (row + 0.5) * PITCH, most, across, chosen)
    for column, (kind, beyond) in enumerate(numbered):
        x = end + PAD + wide[1] + beyond
        head(page, kind, x, first - 0.3 * PITCH, "right")
        for row, one in enumerate(right):
            if one.place is not None and one.place in joint[column]:
                words = decimals(float(links.joint[column, one.place]), signed=links.signed)
                page.text(x, first + (row + 0.5) * PITCH, words, size=style.SMALL, middle=True,
                          across="right")  # fmt: skip
    bottom = first + PITCH * max(len(left), len(right))
    return _unnumbered(page, kinds[fits:], bottom), missing


def _fits(page: Page, links: Links, items: list[Item]) -> bool:
    """Whether items have room: a whole text has all there is, part of one for few queries less."""
    cut = any(one.place is None for one in items) and len(links.strands) <= FEW
    return len(items) <= (min(MOST_ROWS, TALLEST * page.width / PITCH) if cut else MOST_ROWS)


def _column(links: Links, kind: Kind, at: int, keys: set[int]) -> float:
    """The width of a strand's numbers, with the room before them."""
    words = [decimals(float(links.joint[at, key]), signed=links.signed) for key in keys]
    wide = [style.extent(one, style.SMALL) for one in words]
    return max([style.extent(kind.name, style.SMALL) + MARK * kind.marked, *wide]) + APART


def _unnumbered(page: Page, kinds: list[Kind], y: float) -> float:
    """What the strands are whose numbers have no room; gives where it ends. One alone is named in
    the title."""
    kinds = [kind for kind in kinds if kind.marked]
    x, y = 0.0, y + PITCH if kinds else y
    for kind in kinds:
        wide = style.extent(kind.name, style.SMALL) + 2 * MARK
        if x and x + wide > page.width:
            x, y = 0.0, y + PITCH
        head(page, kind, x, y, "left")
        x += wide
    return y + PITCH / 2 if kinds else y
