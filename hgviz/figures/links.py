"""Token-to-token links: queries on one side, keys on the other, curves between them.

As in BertViz's head view (Vig 2019). Where a text is too long, the ends of links are shown with
their neighbours. Widths and heights are in points.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hgviz.figures.cells import (
    KEY,
    OFF,
    QUERY,
    SEEN,
    CaptureFigure,
    head_details,
    level_name,
    map_of,
    sign_colour,
    table_side,
)
from hgviz.figures.labels import NOTHING, SMALL, TEXT, elide, text_width, visible
from hgviz.figures.page import GREY, LineStyle, Page, line_style
from hgviz.figures.spec import Row, Spec
from hgviz.language import decimals
from hgviz.maps.links import Links, Side, find_links
from hgviz.palettes import LIGHT_PAGE

NEIGHBOURS = 3  # units around the ends of links that are shown where there is room
MOST_UNITS = 64  # in a column
PITCH = 9.5  # of lines
PAD = 4.0
MARKER_ROOM = 8.0  # before a name
TITLES = "Query", "Key"
Point = tuple[float, float]


class TokenLinks(CaptureFigure):
    """The links of the chosen queries and heads."""

    def links(self, spec: Spec) -> Links:
        """What is drawn. Raises HgvizError for heads and tokens that are missing."""
        map_of(self.capture, spec.selection.head_id)
        return find_links(self.capture, spec.selection, spec.links)

    def rows(self, spec: Spec) -> Iterator[Row]:
        """A row for each link, the strongest of each query and head first."""
        links = self.links(spec)
        reduction = "; ".join(spec.links.captions[1:])
        names, off = list(map(str, links.heads)), [head in self.capture.off for head in links.heads]
        if links.fuse != "each" and len(names) > 1:
            names, off = [f"{links.fuse} of {', '.join(names)}"], [False]

        def unit(side: Side, place: int) -> tuple[int | str, ...]:
            span = side.tokens[side.shown[place]]
            return table_side(side.prompt, span[None])[0][2:]  # its tokens and their text

        yield "head", *QUERY[2:], *KEY[2:], "weight", "state", "reduction"
        for place, strands in links.strands.items():
            query = unit(links.queries, place)
            for name, is_off, strand in zip(names, off, strands, strict=True):
                if is_off:
                    yield (name, *query, "", "", "", "", OFF, reduction)
                    continue
                for key, weight in zip(strand.keys.tolist(), strand.weights.tolist(), strict=True):
                    yield (name, *query, *unit(links.keys, key), weight, SEEN, reduction)

    def draw(self, page: Page, spec: Spec) -> None:
        capture, links = self.capture, self.links(spec)
        first = links.heads[0]
        if len(links.heads) == 1:
            title = f"Head {first}", head_details(capture, first, self.role(first))
        else:
            name = f"Heads {', '.join(map(str, links.heads))}"
            if len(links.heads) > 8:
                name = f"{len(links.heads)} heads, {first} to {links.heads[-1]}"
            name += "" if links.fuse == "each" else f": {links.fuse}"
            title = name, level_name(capture, first.layer)
        top = page.heading(*title)
        is_across = spec.links.across
        layout: _Rows | _Columns = _Rows(page, links) if is_across else _Columns(page, links)
        bottom = layout.draw(top)
        notes = [*spec.links.captions, *_notes(links, layout.missing)]
        off = [str(head) for head in links.heads if head in capture.off]
        if off:
            notes.insert(0, f"switched off: {', '.join(off)}")
        page.notes += notes
        lines = notes[:1]  # short notes beside each other, a dot between
        for note in notes[1:]:
            if text_width(longer := f"{lines[-1]}  ·  {note}", SMALL) <= page.width - 2:
                lines[-1] = longer
            else:
                lines.append(note)
        page.close(page.footnotes(lines, 0, bottom + 4) + 4)


def _notes(links: Links, missing: int) -> Iterator[str]:
    """What cannot be seen, and what dashes mean."""
    strands = [strand for strands in links.strands.values() for strand in strands]
    total = sum(strand.total for strand in strands) or 1
    hidden = sum(strand.hidden for strand in strands) / total
    if not links.strands:
        yield "no links: the query is a special token, and special tokens are hidden"
    if hidden > 0:
        yield f"{100 * hidden:.0f} % of the weight is on hidden special tokens"
    if missing:
        ends = "1 link ends" if missing == 1 else f"{missing} links end"
        yield f"{ends} outside the figure"
    if links.signed:
        yield "dashed: negative weights"


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
    strands = [strand for strands in links.strands.values() for strand in strands]
    ends = np.concatenate([np.zeros(0, int), *(strand.keys for strand in strands)])
    sizes = np.concatenate([np.zeros(0), *(np.abs(strand.weights) for strand in strands)])
    keys = list(dict.fromkeys(ends[np.lexsort((ends, -sizes))].tolist()))  # the strongest first
    a, b = links.queries, links.keys
    is_one_text = a.prompt is b.prompt and np.array_equal(a.tokens, b.tokens)
    if is_one_text and np.array_equal(a.shown, b.shown):
        both = _choose(len(b), [*queries, *keys], lambda items: fits(items, (0, 1)))
        return both, both
    left = _choose(len(a), queries, lambda items: fits(items, (0,)))
    return left, _choose(len(b), keys, lambda items: fits(items, (1,)))


def _choose(count: int, wanted: list[int], fits: Callable[[list[Item]], bool]) -> list[Item]:
    """All units if they fit, else as many of the wanted as do, in their order, then neighbours."""
    if count < 1 << 12 and fits(units := [Item(place) for place in range(count)]):
        return units
    ranked = list(wanted) or [0]
    for distance in range(1, NEIGHBOURS + 1):
        near = [place + side * distance for place in wanted for side in (-1, 1)]
        ranked += [place for place in near if 0 <= place < count]
    ranked = list(dict.fromkeys(ranked))
    places = range(1, len(ranked) + 1)
    most = bisect_left(places, True, key=lambda end: not fits(_with_gaps(count, ranked[:end])))
    return _with_gaps(count, ranked[: max(1, most)])


def _with_gaps(count: int, places: list[int]) -> list[Item]:
    """Items for some places of so many, and for what is left out between them."""
    items: list[Item] = []
    for before, place in pairwise([-1, *sorted(places), count]):
        if missing := place - before - 1:
            items.append(Item(before + 1) if missing == 1 else Item(None, missing))
        items.append(Item(place))
    return items[:-1]


Colour = str | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StrandStyle:
    """How the links of a head look: a line, and colours of weights above and below 0."""

    name: str
    line: LineStyle
    colours: tuple[Colour, Colour]


class _Layout:
    """What both layouts share. missing: links with an end that is not shown."""

    is_across = False

    def __init__(self, page: Page, links: Links) -> None:
        self.page, self.links, self.missing = page, links, 0
        self.sides = links.queries, links.keys
        self.has_markers = not links.single  # marks tell the lines of several heads apart
        is_fused = links.single and len(links.heads) > 1
        self.styles: list[StrandStyle] = []
        for number, name in enumerate([links.fuse] if is_fused else map(str, links.heads)):
            look = line_style(number)
            colours: tuple[Colour, Colour] = look.colour, look.colour
            if links.single and links.signed:
                colours = sign_colour(1), sign_colour(-1)
            self.styles.append(StrandStyle(name, look, colours))
        strands = list(links.strands.values())
        self.numbers: list[dict[int | None, str]] = [  # mean weights over the queries, by key
            {key: decimals(float(weights[key]), signed=links.signed)
             for query in strands for key in query[number].keys.tolist()}
            for number, weights in enumerate(links.joint)
        ]  # fmt: skip

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
        for share, weight, number, (x0, y0), (x1, y1) in sorted(curves, key=lambda curve: curve[0]):
            look = self.styles[number]
            offset = step * (number - (len(self.styles) - 1) / 2)
            if self.is_across:
                x1, half = x1 + offset, (y1 - y0) / 2
                controls = [(x0, y0 + half), (x1, y1 - half)]
            else:
                y1, half = y1 + offset, (x1 - x0) / 2
                controls = [(x0 + half, y0), (x1 - half, y1)]
            dash = (2.4, 1.5) if weight < 0 else ()
            self.page.curve([(x0, y0), *controls, (x1, y1)], look.colours[weight < 0],
                            0.3 + 2.3 * share, 0.3 + 0.65 * share, dash)  # fmt: skip
            if self.has_markers:
                self.page.marks([(x1, y1)], look.line.marker, look.line.colour, 2.6)

    def draw_name(self, look: StrandStyle, x: float, y: float, is_left: bool) -> None:
        """Draw the name of a strand before a row, or over a column that ends at x."""
        if self.has_markers:
            width = text_width(look.name, SMALL)
            place = (x + 3, y) if is_left else (x - width - MARKER_ROOM / 2, y - 2.3)
            self.page.marks([place], look.line.marker, look.line.colour, 3.2)
            x += MARKER_ROOM if is_left else 0.0
        self.page.caption(x, y, look.name, across="left" if is_left else "right", middle=is_left)

    def draw_label(
        self, side: Side, item: Item, x: float, y: float, room: float, across: str
    ) -> None:
        """Draw the words of an item, bold for a query that has links."""
        is_chosen = side is self.links.queries and item.place in self.links.strands
        is_plain = item.place is not None and not side.special[side.shown[item.place]]
        colour = LIGHT_PAGE.mark_text if is_chosen else LIGHT_PAGE.text if is_plain else GREY
        words = elide(_words(side, item), room, TEXT, is_chosen)
        self.page.text(x, y, words, across=across, middle=True, bold=is_chosen, colour=colour)


def _words(side: Side, item: Item) -> str:
    if item.place is None:
        return f"⋯ {item.left_out:,}"
    return visible(side.words(item.place)) or NOTHING


class _Columns(_Layout):
    """Two columns of text, and the weights of the keys in columns beside them."""

    def draw(self, top: float) -> float:
        page = self.page

        def fits(items: list[Item], _: tuple[int, ...]) -> bool:
            is_cut = any(item.place is None for item in items) and len(self.links.strands) <= 8
            most = 1.7 * page.width / PITCH if is_cut else MOST_UNITS  # less of a text is enough
            return len(items) <= min(MOST_UNITS, most)

        items = choose_items(self.links, fits)
        longest = page.width * 0.3
        widths = []
        for side, column, title in zip(self.sides, items, TITLES, strict=True):
            texts = title, *(_words(side, item) for item in column)
            widest = max(text_width(words, TEXT, bold=True) for words in texts)
            widths.append(min(longest, widest) + 1)
        room = page.width - sum(widths) - 4 * PAD - 44  # 44: of curves at least
        ends = [0.0]  # of the columns of numbers, each with the room before it
        for look, numbers in zip(self.styles, self.numbers, strict=True):
            name = text_width(look.name, SMALL) + MARKER_ROOM * self.has_markers
            width = max([name, *(text_width(words, SMALL) for words in numbers.values())]) + 5
            ends.append(ends[-1] + width)
        ends = ends[1:]
        fitting = sum(end <= room for end in ends)
        start = widths[0] + PAD
        end = start + min(300.0, room + 44 - (ends[fitting - 1] if fitting else 0.0))
        first = top + PITCH
        page.caption(widths[0], first - 0.3 * PITCH, TITLES[0], across="right")
        page.caption(end + PAD, first - 0.3 * PITCH, TITLES[1])
        points = [
            {item.place: (x, first + (row + 0.5) * PITCH) for row, item in enumerate(column)}
            for column, x in zip(items, (start + 2, end - 2), strict=True)
        ]
        self.draw_curves(points[0], points[1])
        for side, column, x, across in zip(
            self.sides, items, (widths[0], end + PAD), ("right", "left"), strict=True
        ):
            for row, item in enumerate(column):
                self.draw_label(side, item, x, first + (row + 0.5) * PITCH, longest, across)
        for strand in range(fitting):
            x = end + PAD + widths[1] + ends[strand]
            self.draw_name(self.styles[strand], x, first - 0.3 * PITCH, is_left=False)
            for row, item in enumerate(items[1]):
                if words := self.numbers[strand].get(item.place, ""):
                    y = first + (row + 0.5) * PITCH
                    page.small(x, y, words, middle=True, across="right")
        bottom = first + PITCH * max(map(len, items))
        return self._draw_names_below(self.styles[fitting:], bottom)

    def _draw_names_below(self, styles: list[StrandStyle], y: float) -> float:
        """Name the strands whose numbers have no room; one alone is named in the title."""
        if not (styles and self.has_markers):
            return y
        x, y = 0.0, y + PITCH
        for look in styles:
            width = text_width(look.name, SMALL) + 2 * MARKER_ROOM
            if x and x + width > self.page.width:
                x, y = 0.0, y + PITCH
            self.draw_name(look, x, y, is_left=True)
            x += width
        return y + PITCH / 2


class _Rows(_Layout):
    """Two rows of text, and the weights of the keys in rows below, for pages and scripts that are
    read across."""

    is_across = True
    number_size, longest = 5.5, 90.0  # of a word

    def draw(self, top: float) -> float:
        page = self.page
        names = [text_width(title, SMALL) for title in TITLES]
        names += [text_width(look.name, SMALL) + MARKER_ROOM for look in self.styles]
        left = max(names) + 2 * PAD

        def fits(items: list[Item], numbers: tuple[int, ...]) -> bool:
            sides = [self.sides[number] for number in numbers]
            return sum(self._width(sides, item) for item in items) <= page.width - left

        rows = choose_items(self.links, fits)
        is_same = [item.place for item in rows[0]] == [item.place for item in rows[1]]
        tops = top + PITCH, top + PITCH + 78
        places: list[dict[int | None, float]] = []
        for side, items, y, title in zip(self.sides, rows, tops, TITLES, strict=True):
            page.caption(0, y, title, middle=True)
            # equal items lie below each other
            sides = self.sides if is_same else [side]
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
        for strand, look in enumerate(self.styles):
            self.draw_name(look, 0, y, is_left=True)
            for place, x in places[1].items():
                if words := self.numbers[strand].get(place, ""):
                    page.text(x, y, words, size=self.number_size, middle=True, across="center")
            y += PITCH
        return y - PITCH / 2

    def _width(self, sides: Sequence[Side], item: Item) -> float:
        """The room of an item in each of some sides."""
        widths = [4.0]
        for side in sides:
            is_chosen = side is self.links.queries and item.place in self.links.strands
            words = text_width(_words(side, item), TEXT, is_chosen)
            widths.append(min(self.longest, words) + 4)
            if side is self.links.keys:
                numbers = (words.get(item.place, "") for words in self.numbers)
                widths += [text_width(words, self.number_size) + 4 for words in numbers if words]
        return max(widths)
