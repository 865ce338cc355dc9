"""Token-to-token links: the queries on one side, the keys on the other, curves between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from hgviz.core import Capture, finish
from hgviz.figures import style
from hgviz.figures.axes import Look, look
from hgviz.figures.content import Facts, Looked
from hgviz.figures.frame import activation_of, footnotes, heading, level_name, map_of, together
from hgviz.figures.labels import elide, visible
from hgviz.figures.page import Page
from hgviz.figures.shown import Item, items_of
from hgviz.figures.spec import Spec
from hgviz.maps.linking import Links, Strand, linked
from hgviz.maps.sides import Side
from hgviz.palettes import PAPER, colours, written

PITCH, PAD = 9.5, 4.0
MOST_ROWS = 64  # a page has no more
REACH = (44.0, 300.0)  # of curves, the least and the most
APART = 5.0  # columns of numbers, at least
HIGH = 78.0  # between the two rows of a text that runs across
THIN, THICK = 0.3, 2.6
PALE, FULL = 0.3, 0.95
TINY = 5.5  # of numbers beneath a text that runs across
MARK = 8.0  # of a marker before a name
NEGATIVE = (2.4, 1.5)
RED, BLUE = 215, 40  # of the 256 colours of signed weights
TITLES = "Query", "Key"
Place = Callable[[int], tuple[float, float] | None]


@dataclass(frozen=True, slots=True)
class Kind:
    """What the links of one strand look like: colours by sign, a marker where there are several."""

    name: str
    look: Look
    positive: Any
    negative: Any
    marked: bool


def compose(page: Page, spec: Spec, looked: Looked) -> None:
    """Place the links of the chosen queries and heads on the page."""
    capture, facts = looked.capture, looked.facts
    map_of(capture, spec.selection.layer, spec.selection.head)
    links = finish(linked(capture, spec.selection, spec.links))
    top = _title(page, spec, capture, links, facts)
    kinds = kinds_of(links)
    if spec.links.across:
        bottom, missing = _across(page, links, kinds, top)
    else:
        bottom, missing = _down(page, links, kinds, top)
    notes = [*spec.links.said, *_missing(links, missing)]
    if links.signed:
        notes.append("dashed: below zero")
    off = [str(one) for one in links.heads if one in capture.off]
    if off:
        notes.insert(0, f"off: {', '.join(off)} {'is' if len(off) == 1 else 'are'} switched off")
    page.notes += notes
    page.close(footnotes(page, together(notes, page.width - 2), 0, bottom + 4) + 4)


def kinds_of(links: Links) -> list[Kind]:
    """How each strand is drawn and what it is called."""
    table = colours("blue-red") / 255
    red, blue = tuple(table[RED]), tuple(table[BLUE])
    if links.single:
        name = str(links.heads[0]) if len(links.heads) == 1 else links.fuse
        plain = look(0)
        ends = (red, blue) if links.signed else (plain.colour, plain.colour)
        return [Kind(name, plain, ends[0], ends[1], marked=False)]
    return [
        Kind(str(head), look(at), look(at).colour, look(at).colour, marked=True)
        for at, head in enumerate(links.heads)
    ]


def _title(page: Page, spec: Spec, capture: Capture, links: Links, facts: Facts) -> float:
    if spec.title is not None:
        return heading(page, spec.title, "")
    first = links.heads[0]
    parts = [level_name(capture, first.layer)]
    if len(links.heads) == 1:
        role = facts[first].role if first in facts else ""
        parts += [activation_of(capture, first), role]
        name = f"Head {first}"
    else:
        name = f"Heads {', '.join(map(str, links.heads))}"
        if len(links.heads) > 8:
            name = f"{len(links.heads)} heads, {first} to {links.heads[-1]}"
        name += "" if links.fuse == "each" else f": {links.fuse}"
    return heading(page, name, "  ·  ".join(filter(None, parts)))


def _missing(links: Links, missing: int) -> list[str]:
    """What is not to be seen."""
    strands = [one for many in links.strands.values() for one in many]
    hidden = sum(one.hidden for one in strands) / (sum(one.total for one in strands) or 1)
    notes = []
    if not links.strands:
        notes.append("the query is a special token, which are left out")
    if hidden > 0:
        notes.append(f"{100 * hidden:.0f} % of the weight lies on special tokens, left out")
    if missing:
        many = "1 link ends" if missing == 1 else f"{missing} links end"
        notes.append(f"{many} outside of what is shown")
    return notes


# --- the text runs down ---------------------------------------------------------------------------


def _down(page: Page, links: Links, kinds: list[Kind], top: float) -> tuple[float, int]:
    """Two columns of text; gives where they end, and how many links are not there."""
    left, right = items_of(links, lambda items, _: len(items) <= MOST_ROWS)
    most = page.width * 0.3
    wide = [
        min(
            most,
            max(
                style.extent(words, style.TEXT, bold=True)
                for words in (title, *(_words(side, one) for one in items))
            ),
        )
        + 1
        for side, items, title in zip(
            (links.queries, links.keys), (left, right), TITLES, strict=True
        )
    ]
    joint, marked = _linked(links), set(links.strands)
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
        page.text(x, first - 0.3 * PITCH, words, size=style.SMALL, colour=PAPER.secondary,
                  across=across)  # fmt: skip
    places = [{one.place: at for at, one in enumerate(items)} for items in (left, right)]

    def at(side: int, x: float) -> Place:
        def found(place: int) -> tuple[float, float] | None:
            row = places[side].get(place)
            return None if row is None else (x, first + (row + 0.5) * PITCH)

        return found

    missing = _curves(page, links, kinds, at(0, start + 2), at(1, end - 2), across=False)
    for items, side, x, across in (
        (left, links.queries, wide[0], "right"), (right, links.keys, end + PAD, "left"),
    ):  # fmt: skip
        for row, one in enumerate(items):
            chosen = side is links.queries and one.place in marked
            _label(page, side, one, x, first + (row + 0.5) * PITCH, most, across, chosen)
    for column, (kind, beyond) in enumerate(numbered):
        x = end + PAD + wide[1] + beyond
        _head(page, kind, x, first - 0.3 * PITCH, "right")
        for row, one in enumerate(right):
            if one.place is not None and one.place in joint[column]:
                words = number(float(links.joint[column, one.place]), links.signed)
                page.text(x, first + (row + 0.5) * PITCH, words, size=style.SMALL, middle=True,
                          across="right")  # fmt: skip
    bottom = first + PITCH * max(len(left), len(right))
    return _unnumbered(page, kinds[fits:], bottom), missing


def _column(links: Links, kind: Kind, at: int, keys: set[int]) -> float:
    """The width of a strand's numbers, with the room before them."""
    words = [number(float(links.joint[at, key]), links.signed) for key in keys]
    wide = [style.extent(one, style.SMALL) for one in words]
    return max([style.extent(kind.name, style.SMALL) + MARK * kind.marked, *wide]) + APART


def _unnumbered(page: Page, kinds: list[Kind], y: float) -> float:
    """What the strands are whose numbers have no room; gives where it ends."""
    x, y = 0.0, y + PITCH if kinds else y
    for kind in kinds:
        wide = style.extent(kind.name, style.SMALL) + 2 * MARK
        if x and x + wide > page.width:
            x, y = 0.0, y + PITCH
        _head(page, kind, x, y, "left")
        x += wide
    return y + PITCH / 2 if kinds else y


# --- the text runs across -------------------------------------------------------------------------


def _across(page: Page, links: Links, kinds: list[Kind], top: float) -> tuple[float, int]:
    """Two rows of text, and numbers beneath the keys; as _down."""
    joint = _linked(links)
    name = max(style.extent(one, style.SMALL) for one in TITLES)
    name = max([name, *(style.extent(kind.name, style.SMALL) + MARK for kind in kinds)]) + 2 * PAD

    least = {
        key: max(style.extent(words, TINY) for words in _numbers(links, joint, key))
        for key in set().union(*joint)
    }

    def width(side: Side, one: Item) -> float:
        numbers = least.get(one.place, 0.0) if one.place is not None and side is links.keys else 0.0
        return max(numbers, min(90.0, style.extent(_words(side, one), style.TEXT))) + 2.8

    def fits(items: list[Item], sides: tuple[int, ...]) -> bool:
        named = [(links.queries, links.keys)[side] for side in sides]
        wide = sum(max(width(side, one) for side in named) for one in items)
        return wide <= page.width - name

    rows = items_of(links, fits)
    tops = top + PITCH, top + PITCH + HIGH
    spots: list[dict[int | None, float]] = []
    marked = set(links.strands)
    alike = [one.place for one in rows[0]] == [one.place for one in rows[1]]
    for side, items, y, words in zip((links.queries, links.keys), rows, tops, TITLES, strict=True):
        page.text(0, y, words, size=style.SMALL, colour=PAPER.secondary, middle=True)
        x, found = name, {}
        for one in items:
            wide = width(side, one)
            if alike:  # one above the other
                wide = max(width(links.queries, one), width(links.keys, one))
            found[one.place] = x + wide / 2
            chosen = side is links.queries and one.place in marked
            _label(page, side, one, x + wide / 2, y, 90.0, "center", chosen)
            x += wide
        spots.append(found)

    def at(side: int, y: float) -> Place:
        def place_of(place: int) -> tuple[float, float] | None:
            x = spots[side].get(place)
            return None if x is None else (x, y)

        return place_of

    ends = tops[0] + PITCH * 0.6, tops[1] - PITCH * 0.6
    missing = _curves(page, links, kinds, at(0, ends[0]), at(1, ends[1]), across=True)
    y = tops[1] + PITCH
    for row, kind in enumerate(kinds):
        _head(page, kind, 0, y, "left")
        for place, x in spots[1].items():
            if place is not None and place in joint[row]:
                words = number(float(links.joint[row, place]), links.signed)
                page.text(x, y, words, size=TINY, middle=True, across="center")
        y += PITCH
    return y - PITCH / 2, missing


# --- both -----------------------------------------------------------------------------------------


def _curves(
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


def _head(page: Page, kind: Kind, x: float, y: float, across: str) -> None:
    """What a column or row of numbers is of."""
    middle = across == "left"
    if kind.marked and middle:
        page.marks([(x + 3, y)], kind.look.marker, kind.look.colour, 3.2)
    elif kind.marked:
        wide = style.extent(kind.name, style.SMALL)
        page.marks([(x - wide - MARK / 2, y - 2.3)], kind.look.marker, kind.look.colour, 3.2)
    page.text(x + (MARK if kind.marked and middle else 0), y, kind.name, size=style.SMALL,
              across=across, colour=PAPER.secondary, middle=middle)  # fmt: skip


def number(value: float, signed: bool) -> str:
    """A weight with two decimals, a real minus, a plus where signs matter; 0 only if exact."""
    if value and abs(value) < 0.005:
        return "<0.01" if value > 0 else "−<0.01"
    size = f"{abs(value):.2f}" if value and abs(value) < 100 else written(abs(value))
    sign = "−" if value < 0 else "+" if signed and value > 0 else ""
    return sign + size


def _linked(links: Links) -> list[set[int]]:
    """The keys that each strand has a link to."""
    many: list[tuple[Strand, ...]] = list(links.strands.values())
    return [
        {int(key) for strands in many for key in strands[number].keys}
        for number in range(len(links.joint))
    ]


def _numbers(links: Links, joint: list[set[int]], key: int) -> list[str]:
    """What stands beneath a key."""
    return [
        number(float(links.joint[row, key]), links.signed)
        for row, found in enumerate(joint)
        if key in found
    ]


def _words(side: Side, one: Item) -> str:
    if one.place is None:
        return f"⋯ {one.left_out:,}"
    return visible(side.words(one.place)) or "–"


def _label(
    page: Page, side: Side, one: Item, x: float, y: float, room: float, across: str, chosen: bool
) -> None:
    plain = one.place is not None and not side.special[side.shown[one.place]]
    colour = PAPER.mark_text if chosen else PAPER.text if plain else PAPER.secondary
    words = elide(_words(side, one), room, style.TEXT, chosen)
    page.text(x, y, words, across=across, middle=True, bold=chosen, colour=colour)


__all__ = ["Kind", "compose", "kinds_of"]
