"""Token-to-token links: queries on one side, keys on the other, curves between them.

As in BertViz's head view (Vig 2019). Where a text is too long, the ends of links are shown with
their neighbours. Widths and heights are in points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from hgviz.core import Capture
from hgviz.figures.content import Facts, Looked
from hgviz.figures.paper import style
from hgviz.figures.paper.axes import LineStyle, line_style
from hgviz.figures.paper.frame import (
    activation_of,
    footnotes,
    heading,
    level_name,
    map_of,
    together,
)
from hgviz.figures.paper.labels import NOTHING, elide, visible
from hgviz.figures.paper.page import Page
from hgviz.figures.spec import Spec
from hgviz.language import decimals
from hgviz.maps.links import Links, QueryLinks, Side, find_links
from hgviz.palettes import LIGHT_PAGE, colours

NEIGHBOURS = 3  # units around the ends of links that are shown where there is room
PITCH = 9.5  # of lines
PAD = 4.0
MARKER_ROOM = 8.0  # before a name
TITLES = "Query", "Key"
Point = tuple[float, float]


def compose(page: Page, spec: Spec, looked: Looked) -> None:
    """Place the links of the chosen queries and heads on the page."""
    capture = looked.capture
    map_of(capture, spec.selection.layer, spec.selection.head)
    links = find_links(capture, spec.selection, spec.links)
    top = _draw_title(page, spec, capture, links, looked.facts)
    layout = (_Rows if spec.links.across else _Columns)(page, links)
    bottom = layout.draw(top)
    notes = [*spec.links.captions, *_notes(links, layout.missing)]
    off = [str(head) for head in links.heads if head in capture.off]
    if off:
        notes.insert(0, f"off: {', '.join(off)} {'is' if len(off) == 1 else 'are'} switched off")
    page.notes += notes
    page.close(footnotes(page, together(notes, page.width - 2), 0, bottom + 4) + 4)


def _draw_title(page: Page, spec: Spec, capture: Capture, links: Links, facts: Facts) -> float:
    if spec.title is not None:
        return heading(page, spec.title, "")
    first = links.heads[0]
    parts = [level_name(capture, first.layer)]
    if len(links.heads) == 1:
        name = f"Head {first}"
        parts += [activation_of(capture, first), facts[first].role if first in facts else ""]
    else:
        name = f"Heads {', '.join(map(str, links.heads))}"
        if len(links.heads) > 8:
            name = f"{len(links.heads)} heads, {first} to {links.heads[-1]}"
        name += "" if links.fuse == "each" else f": {links.fuse}"
    return heading(page, name, "  ·  ".join(filter(None, parts)))


def _notes(links: Links, missing: int) -> Iterator[str]:
    """What cannot be seen, and what dashes mean."""
    strands = [strand for many in links.strands.values() for strand in many]
    total = sum(strand.total for strand in strands) or 1
    hidden = sum(strand.hidden for strand in strands) / total
    if not links.strands:
        yield "the query is a special token, which are left out"
    if hidden > 0:
        yield f"{100 * hidden:.0f} % of the weight lies on special tokens, left out"
    if missing:
        ends = "1 link ends" if missing == 1 else f"{missing} links end"
        yield f"{ends} outside of what is shown"
    if links.signed:
        yield "dashed: below zero"


# --- what is shown of a long text -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Item:
    """A unit (token or word) at a place of its side; or, place None, so many that are left out."""

    place: int | None
    left_out: int = 0


Fits = Callable[[list[Item], tuple[int, ...]], bool]  # items, and on which of the two sides


def choose_items(links: Links, fits: Fits) -> tuple[list[Item], list[Item]]:
    """The items of the queries and of the keys; the same where both sides have the same units."""
    queries = sorted(links.strands)
    weight_of: dict[int, float] = {}
    for strands in links.strands.values():
        for strand in strands:
            for key, weight in zip(strand.keys.tolist(), strand.weights.tolist(), strict=True):
                weight_of[key] = max(weight_of.get(key, 0.0), abs(weight))
    keys = sorted(weight_of, key=lambda key: (-weight_of[key], key))
    one, other = links.queries, links.keys
    if (
        one.prompt is other.prompt
        and one.tokens.shape == other.tokens.shape
        and (one.tokens == other.tokens).all()
        and (one.shown == other.shown).all()
    ):
        both = _choose(len(other), [*queries, *keys], lambda items: fits(items, (0, 1)))
        return both, both
    left = _choose(len(one), queries, lambda items: fits(items, (0,)))
    return left, _choose(len(other), keys, lambda items: fits(items, (1,)))


def _choose(count: int, wanted: list[int], fits: Callable[[list[Item]], bool]) -> list[Item]:
    """All units if they fit, else as many of the wanted as do, in their order, then neighbours."""
    every = [Item(place) for place in range(count)] if count < 1 << 12 else []
    if len(every) == count and fits(every):
        return every
    ranked = list(dict.fromkeys(wanted)) or [0]
    for distance in range(1, NEIGHBOURS + 1):
        near = [place + side * distance for place in wanted for side in (-1, 1)]
        ranked += [place for place in near if 0 <= place < count]
    ranked = list(dict.fromkeys(ranked))
    low, high = 0, len(ranked)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(_with_gaps(count, ranked[:middle])):
            low = middle
        else:
            high = middle - 1
    return _with_gaps(count, ranked[: max(1, low)])


def _with_gaps(count: int, places: list[int]) -> list[Item]:
    """Items for some places of so many, and for what is left out between them."""
    items: list[Item] = []
    before = -1
    for place in [*sorted(places), count]:
        missing = place - before - 1
        if missing:
            items.append(Item(before + 1) if missing == 1 else Item(None, missing))
        if place < count:
            items.append(Item(place))
        before = place
    return items


# --- how links look -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StrandStyle:
    """How the links of a head look: colours by sign, and a marker where there are several heads."""

    name: str
    line: LineStyle
    positive: Any
    negative: Any
    has_marker: bool


def _styles(links: Links) -> list[StrandStyle]:
    if links.single:
        name = str(links.heads[0]) if len(links.heads) == 1 else links.fuse
        line = line_style(0)
        if not links.signed:
            return [StrandStyle(name, line, line.colour, line.colour, has_marker=False)]
        red, blue = (tuple(colour) for colour in colours("blue-red")[[215, 40]] / 255)
        return [StrandStyle(name, line, red, blue, has_marker=False)]
    lines = map(line_style, range(len(links.heads)))
    return [
        StrandStyle(str(head), line, line.colour, line.colour, has_marker=True)
        for head, line in zip(links.heads, lines, strict=True)
    ]


class _Layout:
    """What both layouts share. missing: links with an end that is not shown."""

    is_across = False

    def __init__(self, page: Page, links: Links) -> None:
        self.page, self.links, self.missing = page, links, 0
        self.sides = links.queries, links.keys
        self.styles = _styles(links)
        strands: list[tuple[QueryLinks, ...]] = list(links.strands.values())
        self.keys = [  # that each strand has a link to
            {int(key) for many in strands for key in many[number].keys}
            for number in range(len(links.joint))
        ]

    def draw(self, top: float) -> float:
        """Draw texts, curves and numbers; returns where they end."""
        raise NotImplementedError

    def draw_curves(self, starts: dict[int | None, Point], ends: dict[int | None, Point]) -> None:
        """Draw every link, the weakest first; starts and ends: points by place of query and key."""
        curves, peak = [], self.links.peak or 1.0
        for query, strands in self.links.strands.items():
            for number, strand in enumerate(strands):
                for key, weight in zip(strand.keys.tolist(), strand.weights.tolist(), strict=True):
                    if query in starts and key in ends:
                        curve = abs(weight) / peak, weight, number, starts[query], ends[key]
                        curves.append(curve)
                    else:
                        self.missing += 1
        step = min(1.7, 0.7 * PITCH / max(1, len(self.styles)))
        for share, weight, number, (x0, y0), (x1, y1) in sorted(curves, key=lambda one: one[0]):
            strand_style = self.styles[number]
            offset = step * (number - (len(self.styles) - 1) / 2)
            if self.is_across:
                x1, half = x1 + offset, (y1 - y0) / 2
                points = [(x0, y0), (x0, y0 + half), (x1, y1 - half), (x1, y1)]
            else:
                y1, half = y1 + offset, (x1 - x0) / 2
                points = [(x0, y0), (x0 + half, y0), (x1 - half, y1), (x1, y1)]
            colour = strand_style.negative if weight < 0 else strand_style.positive
            width, alpha = 0.3 + 2.3 * share, 0.3 + 0.65 * share
            self.page.curve(points, colour, width, alpha, (2.4, 1.5) if weight < 0 else ())
            if strand_style.has_marker:
                line = strand_style.line
                self.page.marks([(x1, y1)], line.marker, line.colour, 2.6)

    def draw_head(self, strand_style: StrandStyle, x: float, y: float, across: str) -> None:
        """Draw the name of a strand over a column (across "right") or before a row ("left")."""
        line, is_left = strand_style.line, across == "left"
        if strand_style.has_marker:
            width = style.extent(strand_style.name, style.SMALL)
            place = (x + 3, y) if is_left else (x - width - MARKER_ROOM / 2, y - 2.3)
            self.page.marks([place], line.marker, line.colour, 3.2)
            x += MARKER_ROOM if is_left else 0.0
        self.page.text(x, y, strand_style.name, size=style.SMALL, across=across,
                       colour=LIGHT_PAGE.secondary, middle=is_left)  # fmt: skip

    def draw_label(
        self, side: Side, item: Item, x: float, y: float, room: float, across: str
    ) -> None:
        """Draw the words of an item, bold for a query that has links."""
        is_chosen = side is self.links.queries and item.place in self.links.strands
        is_plain = item.place is not None and not side.special[side.shown[item.place]]
        colour = LIGHT_PAGE.text if is_plain else LIGHT_PAGE.secondary
        colour = LIGHT_PAGE.mark_text if is_chosen else colour
        words = elide(_words(side, item), room, style.TEXT, is_chosen)
        self.page.text(x, y, words, across=across, middle=True, bold=is_chosen, colour=colour)

    def number(self, strand: int, key: int) -> str:
        """The mean weight of a key over the queries, as words."""
        return decimals(float(self.links.joint[strand, key]), signed=self.links.signed)


def _words(side: Side, item: Item) -> str:
    if item.place is None:
        return f"⋯ {item.left_out:,}"
    return visible(side.words(item.place)) or NOTHING


class _Columns(_Layout):
    """Two columns of text, and the weights of the keys in columns beside them."""

    def draw(self, top: float) -> float:
        page, links = self.page, self.links
        items = choose_items(links, self._fits)
        longest = page.width * 0.3
        widths = []
        for side, some, title in zip(self.sides, items, TITLES, strict=True):
            texts = title, *(_words(side, item) for item in some)
            widest = max(style.extent(one, style.TEXT, bold=True) for one in texts)
            widths.append(min(longest, widest) + 1)
        room = page.width - sum(widths) - 4 * PAD - 44  # 44: of curves at least
        ends = list(accumulate(map(self._width_of_numbers, range(len(self.styles)))))
        fitting = sum(end <= room for end in ends)
        start = widths[0] + PAD
        end = start + min(300.0, room + 44 - (ends[fitting - 1] if fitting else 0.0))
        first = top + PITCH
        for x, title, across in ((widths[0], TITLES[0], "right"), (end + PAD, TITLES[1], "left")):
            page.text(x, first - 0.3 * PITCH, title, size=style.SMALL,
                      colour=LIGHT_PAGE.secondary, across=across)  # fmt: skip
        points = [
            {item.place: (x, first + (row + 0.5) * PITCH) for row, item in enumerate(some)}
            for some, x in zip(items, (start + 2, end - 2), strict=True)
        ]
        self.draw_curves(points[0], points[1])
        for side, some, x, across in zip(
            self.sides, items, (widths[0], end + PAD), ("right", "left"), strict=True
        ):
            for row, item in enumerate(some):
                self.draw_label(side, item, x, first + (row + 0.5) * PITCH, longest, across)
        for strand in range(fitting):
            x = end + PAD + widths[1] + ends[strand]
            self.draw_head(self.styles[strand], x, first - 0.3 * PITCH, "right")
            for row, item in enumerate(items[1]):
                if item.place is not None and item.place in self.keys[strand]:
                    page.text(x, first + (row + 0.5) * PITCH, self.number(strand, item.place),
                              size=style.SMALL, middle=True, across="right")  # fmt: skip
        bottom = first + PITCH * max(map(len, items))
        return self._draw_heads_below(self.styles[fitting:], bottom)

    def _fits(self, items: list[Item], _: tuple[int, ...]) -> bool:
        """Whether items have room: at most 64, and fewer of part of a text for few queries."""
        is_cut = any(item.place is None for item in items) and len(self.links.strands) <= 8
        return len(items) <= (min(64, 1.7 * self.page.width / PITCH) if is_cut else 64)

    def _width_of_numbers(self, strand: int) -> float:
        """The width of a strand's column, with the room before it."""
        strand_style = self.styles[strand]
        name = style.extent(strand_style.name, style.SMALL) + MARKER_ROOM * strand_style.has_marker
        words = (self.number(strand, key) for key in self.keys[strand])
        return max([name, *(style.extent(one, style.SMALL) for one in words)]) + 5

    def _draw_heads_below(self, styles: list[StrandStyle], y: float) -> float:
        """Name the strands whose numbers have no room; one alone is named in the title."""
        styles = [one for one in styles if one.has_marker]
        if not styles:
            return y
        x, y = 0.0, y + PITCH
        for strand_style in styles:
            width = style.extent(strand_style.name, style.SMALL) + 2 * MARKER_ROOM
            if x and x + width > self.page.width:
                x, y = 0.0, y + PITCH
            self.draw_head(strand_style, x, y, "left")
            x += width
        return y + PITCH / 2


class _Rows(_Layout):
    """Two rows of text, and the weights of the keys in rows below, for pages and scripts that are
    read across."""

    is_across = True
    numbers, longest = 5.5, 90.0  # the size of numbers; of a word

    def draw(self, top: float) -> float:
        page = self.page
        names = [style.extent(title, style.SMALL) for title in TITLES]
        names += [style.extent(one.name, style.SMALL) + MARKER_ROOM for one in self.styles]
        left = max(names) + 2 * PAD

        def fits(items: list[Item], numbers: tuple[int, ...]) -> bool:
            sides = [self.sides[number] for number in numbers]
            return sum(self._width(sides, item) for item in items) <= page.width - left

        rows = choose_items(self.links, fits)
        is_same = [item.place for item in rows[0]] == [item.place for item in rows[1]]
        tops = top + PITCH, top + PITCH + 78
        places: list[dict[int | None, float]] = []
        for side, items, y, title in zip(self.sides, rows, tops, TITLES, strict=True):
            page.text(0, y, title, size=style.SMALL, colour=LIGHT_PAGE.secondary, middle=True)
            # equal items lie below each other
            sides = list(self.sides) if is_same else [side]
            widths = [self._width(sides, item) for item in items]
            spare = min(9.0, max(0.0, (page.width - left - sum(widths)) / len(items)))
            x, middles = left, {}
            for item, width in zip(items, widths, strict=True):
                middles[item.place] = x + (width + spare) / 2
                self.draw_label(side, item, middles[item.place], y, self.longest, "center")
                x += width + spare
            places.append(middles)
        starts = {place: (x, tops[0] + PITCH * 0.6) for place, x in places[0].items()}
        ends = {place: (x, tops[1] - PITCH * 0.6) for place, x in places[1].items()}
        self.draw_curves(starts, ends)
        y = tops[1] + PITCH
        for strand, strand_style in enumerate(self.styles):
            self.draw_head(strand_style, 0, y, "left")
            for place, x in places[1].items():
                if place is not None and place in self.keys[strand]:
                    page.text(x, y, self.number(strand, place), size=self.numbers, middle=True,
                              across="center")  # fmt: skip
            y += PITCH
        return y - PITCH / 2

    def _width(self, sides: list[Side], item: Item) -> float:
        """The room of an item in each of some sides."""
        widths = [4.0]
        for side in sides:
            is_chosen = side is self.links.queries and item.place in self.links.strands
            words = style.extent(_words(side, item), style.TEXT, is_chosen)
            widths.append(min(self.longest, words) + 4)
            if side is self.links.keys and item.place is not None:
                widths += [
                    style.extent(self.number(strand, item.place), self.numbers) + 4
                    for strand, keys in enumerate(self.keys)
                    if item.place in keys
                ]
        return max(widths)
