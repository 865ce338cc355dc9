"""What links look like: their curves, the names of their heads, and the numbers of their keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hgviz.figures.kinds.shown import Item
from hgviz.figures.paper import style
from hgviz.figures.paper.axes import LineStyle, line_style
from hgviz.figures.paper.labels import NOTHING, elide, visible
from hgviz.figures.paper.page import Page
from hgviz.language import decimals
from hgviz.maps.links import Links, QueryLinks, Side
from hgviz.palettes import LIGHT_PAGE, colours

PITCH = 9.5  # of lines
THIN, THICK = 0.3, 2.6
PALE, FULL = 0.3, 0.95
MARK = 8.0  # of a marker before a name
NEGATIVE = (2.4, 1.5)
RED, BLUE = 215, 40  # of the 256 colours of signed weights
TITLES = "Query", "Key"
Place = Callable[[int], tuple[float, float] | None]


@dataclass(frozen=True, slots=True)
class Kind:
    """What the links of one strand look like: colours by sign, a marker where there are several."""

    name: str
    look: LineStyle
    positive: Any
    negative: Any
    marked: bool


def kinds_of(links: Links) -> list[Kind]:
    """How each strand is drawn and what it is called."""
    table = colours("blue-red") / 255
    red, blue = tuple(table[RED]), tuple(table[BLUE])
    if links.single:
        name = str(links.heads[0]) if len(links.heads) == 1 else links.fuse
        plain = line_style(0)
        ends = (red, blue) if links.signed else (plain.colour, plain.colour)
        return [Kind(name, plain, ends[0], ends[1], marked=False)]
    return [
        Kind(str(head), line_style(at), line_style(at).colour, line_style(at).colour, marked=True)
        for at, head in enumerate(links.heads)
    ]


def curves(
    page: Page, links: Links, kinds: list[Kind], query: Place, key: Place, across: bool
) -> int:
    """Every link as a curve, the weakest first; gives how many have an end that is not there."""
    drawn, missing, peak = [], 0, links.peak or 1.0
    for place, many in links.strands.items():
        for number, strand in enumerate(many):
            for end, weight in zip(strand.keys.tolist(), strand.weights.tolist(), strict=True):
                a, b = query(place), key(end)
                if a is None or b is None:
                    missing += 1
                else:
                    drawn.append((abs(weight) / peak, weight, number, a, b))
    step = min(1.7, 0.7 * PITCH / max(1, len(kinds)))
    for part, weight, number, a, b in sorted(drawn, key=lambda one: one[0]):
        kind = kinds[number]
        beside = step * (number - (len(kinds) - 1) / 2)
        (x0, y0), (x1, y1) = a, b
        if across:
            x1, half = x1 + beside, (y1 - y0) / 2
            points = [(x0, y0), (x0, y0 + half), (x1, y1 - half), (x1, y1)]
        else:
            y1, half = y1 + beside, (x1 - x0) / 2
            points = [(x0, y0), (x0 + half, y0), (x1 - half, y1), (x1, y1)]
        below = weight < 0
        page.curve(
            points, kind.negative if below else kind.positive, THIN + (THICK - THIN) * part,
            PALE + (FULL - PALE) * part, NEGATIVE if below else (),
        )  # fmt: skip
        if kind.marked:
            page.marks([(x1, y1)], kind.look.marker, kind.look.colour, 2.6)
    return missing


def head(page: Page, kind: Kind, x: float, y: float, across: str) -> None:
    """What a column or row of numbers is of."""
    middle = across == "left"
    if kind.marked and middle:
        page.marks([(x + 3, y)], kind.look.marker, kind.look.colour, 3.2)
    elif kind.marked:
        wide = style.extent(kind.name, style.SMALL)
        page.marks([(x - wide - MARK / 2, y - 2.3)], kind.look.marker, kind.look.colour, 3.2)
    page.text(x + (MARK if kind.marked and middle else 0), y, kind.name, size=style.SMALL,
              across=across, colour=LIGHT_PAGE.secondary, middle=middle)  # fmt: skip


def linked_keys(links: Links) -> list[set[int]]:
    """The keys that each strand has a link to."""
    many: list[tuple[QueryLinks, ...]] = list(links.strands.values())
    return [
        {int(key) for strands in many for key in strands[number].keys}
        for number in range(len(links.joint))
    ]


def numbers_of(links: Links, joint: list[set[int]], key: int) -> list[str]:
    """What stands beneath a key."""
    return [
        decimals(float(links.joint[row, key]), signed=links.signed)
        for row, found in enumerate(joint)
        if key in found
    ]


def words_of(side: Side, one: Item) -> str:
    if one.place is None:
        return f"⋯ {one.left_out:,}"
    return visible(side.words(one.place)) or NOTHING


def label(
    page: Page, side: Side, one: Item, x: float, y: float, room: float, across: str, chosen: bool
) -> None:
    plain = one.place is not None and not side.special[side.shown[one.place]]
    colour = LIGHT_PAGE.mark_text if chosen else LIGHT_PAGE.text if plain else LIGHT_PAGE.secondary
    words = elide(words_of(side, one), room, style.TEXT, chosen)
    page.text(x, y, words, across=across, middle=True, bold=chosen, colour=colour)
