"""One token through all levels: a strip for every stage, all of them in tokens.

A stage is a run of layers at one level, or a single layer where there is but one level; its strip
shows where the token that speaks for the selected one looks, in one head of that stage. Widths and
heights are in points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, Floats, HeadId, Integers, Prompt
from hgviz.errors import require
from hgviz.figures.cells import (
    KEY,
    OFF,
    QUERY,
    SEEN,
    UNSEEN,
    Bools,
    CaptureFigure,
    Shades,
    is_signed,
    level_name,
    map_of,
    seen_cells,
    shades_of,
    table_side,
    token_in,
    unseen_reason,
)
from hgviz.figures.labels import (
    SMALL,
    TITLE,
    axis_marks,
    elide,
    size_for,
    surrounding_word,
    text_width,
    token_marks,
    token_words,
    unit_spans,
)
from hgviz.figures.page import GREY, AxisLabels, Many, Page, dots_per_inch
from hgviz.figures.spec import POINTS, Row, Spec
from hgviz.palettes import LIGHT_PAGE, contrasting_colour

STRIP, BETWEEN = 12.0, 36.0  # heights of a strip, and of what lies between two
LINE = 8.2  # of a name beside a strip
MARGIN, NAME_GAP = 4.5, 9.0  # at right of the strips, and at left of them
MAX_LAYERS = 12  # that are shown of a model without levels
LARGEST_TEXT, LEGIBLE_TEXT = 8.0, 5.0  # in the strips
ARC_KEYS, FAINTEST_ARC = 5, 0.02
INKS = LIGHT_PAGE.text, LIGHT_PAGE.text, GREY, GREY  # of the lines of a name

Arc = tuple[float, float, float, float]  # from, to along x, height, part of the largest weight


@dataclass(frozen=True, slots=True)
class Stage:
    """What one strip shows: weights (keys,) of a row, the tokens of each key, and whose they are.

    column is the query's own place among the keys, None where these are another text.
    """

    level: int
    head: HeadId
    row: int
    prompt: Prompt
    weights: Floats
    seen: Bools
    spans: Integers
    column: int | None


def is_hourglass(capture: Capture) -> bool:
    """Whether levels differ in resolution; else every layer is a stage by itself."""
    return len({level.stride for level in capture.spec.levels}) > 1


def stages_of(capture: Capture) -> list[list[int]]:
    """The self-attention layers of each stage, in order of computation.

    Without levels of several resolutions these are single layers, at most MAX_LAYERS spread over
    the model; where there are two texts, those of the decoder, cross-attention included. Raises
    HgvizError where no heads are left.
    """
    stages: list[list[int]] = []
    if is_hourglass(capture):
        before = None
        for layer in capture.spec.layers:
            if layer.role == "self" and layer.heads and not layer.cuts:
                if layer.level != before:
                    stages.append([])
                stages[-1].append(layer.index)
                before = layer.level
            elif layer.role in ("down", "up") and before != layer.level and not layer.cuts:
                before = None
    else:
        layers = _attending_layers(capture)
        places = np.linspace(0, len(layers) - 1, min(len(layers), MAX_LAYERS)).round()
        stages = [[layers[place]] for place in places.astype(int)]
    require(stages, "this capture has no heads: all were removed from the model")
    return stages


def _attending_layers(capture: Capture) -> list[int]:
    """The layers with heads, of two texts those of the decoder."""
    level = 1 if capture.spec.two_texts else 0
    return [row.index for row in capture.spec.layers if row.level == level and row.heads]


class Levels(CaptureFigure):
    """The row of one token in every stage."""

    def stages(self, spec: Spec) -> list[Stage]:
        """What each strip shows: where the position that speaks for the token looks, in one head of
        the stage. Raises HgvizError for a token that is not there."""
        capture, levels = self.capture, self.capture.spec.levels
        query, stages = token_in(capture.main, spec.selection.query), []
        for layers in stages_of(capture):
            head = self._head(spec, layers)
            maps, layer = map_of(capture, head), capture.spec.layers[head.layer]
            row = min(capture.row(head.layer, query), maps.shape[1] - 1)
            spans, column = capture.key_spans(head.layer), None
            seen = seen_cells(capture, head.layer, rows=(row, row + 1), head=head.head)[0]
            seen &= (spans[:, 1] > 0) & (head not in capture.off)
            if levels[layer.level].sequence == levels[layer.key_level].sequence:
                column = min(capture.column(head.layer, query), len(spans) - 1)
            weights = maps.read(head.head, rows=(row, row + 1))[0]
            prompt = capture.key_prompt(head.layer)
            stages.append(Stage(layer.level, head, row, prompt, weights, seen, spans, column))
        return stages

    def _head(self, spec: Spec, layers: list[int]) -> HeadId:
        """The chosen head of these layers, else the clearest, else the first that is on."""
        for head in (spec.selection.head_id, *spec.heads):
            if head.layer in layers:
                return head
        first = [HeadId(layer, self.capture.spec.layers[layer].heads[0]) for layer in layers]
        maps = zip(layers, (map_of(self.capture, head) for head in first), strict=True)
        heads = [HeadId(layer, number) for layer, row in maps for number in row.heads]
        heads = [head for head in heads if head not in self.capture.off] or heads
        return max(heads, key=lambda head: self.facts[head].clarity if head in self.facts else -inf)

    def rows(self, spec: Spec) -> Iterator[Row]:
        """A row for each position that the token may look at, in every stage."""
        capture = self.capture
        yield "stage", "level", "head", *QUERY, *KEY, "weight", "state"
        for number, stage in enumerate(self.stages(spec), 1):
            layer, row = stage.head.layer, stage.row
            spans = capture.query_spans(layer)[row : row + 1]
            (asking,) = table_side(capture.query_prompt(layer), spans)
            start = number, capture.spec.levels[stage.level].label, str(stage.head)
            is_off = stage.head in capture.off
            keys = table_side(stage.prompt, stage.spans)
            for key, weight, is_seen in zip(keys, stage.weights, stage.seen, strict=True):
                state = OFF if is_off else SEEN if is_seen else UNSEEN
                value = float(weight) if is_seen else ""
                yield (*start, row, row, *asking[2:], *key, value, state)

    def draw(self, page: Page, spec: Spec) -> None:
        capture = self.capture
        query = token_in(capture.main, spec.selection.query)
        stages = self.stages(spec)
        signed = any(is_signed(capture, stage.head) for stage in stages)
        shades = shades_of(spec.display, signed, [stage.weights for stage in stages])
        words = token_words(capture.main, query, query + 1)
        words = elide(words, 0.4 * page.width, TITLE, bold=True)
        word, place = surrounding_word(capture.main, query), f"{capture.main.unit} {query:,}"
        top = page.heading(f"From “{words}”", f"in “{word}”, {place}" if word else place)
        names = [self._names(stage, page.width) for stage in stages]
        right = page.width - MARGIN
        left = _widest_left(stages, names, right)
        strips = _strips(page, stages, shades, left, right)
        highest = max((height for _, _, height, _ in strips[0].arcs(None)), default=0.0)
        strips = [replace(strip, y=strip.y + top + highest + 3) for strip in strips]
        for upper, lower in pairwise(strips):
            upper.draw_silhouette(lower)
        for upper, lower in pairwise(strips):
            if upper.stage.prompt is lower.stage.prompt:
                upper.draw_tokens_to(lower)
        own = [strip for strip in strips if strip.stage.column is not None]
        for upper, lower in pairwise([*own, strips[-1]] if own else []):
            upper.draw_thread_to(lower)
        origin = None  # from where arcs start that lead to another text
        for strip, lines in zip(strips, names, strict=True):
            cell = strip.selected
            origin = origin if cell is None else sum(cell) / 2
            strip.draw_cells()
            strip.draw_text()
            strip.draw_arcs(origin)
            if cell is not None:
                box = cell[0], strip.y - 0.6, cell[1] - cell[0], STRIP + 1.2
                page.box(*box, edge=LIGHT_PAGE.mark, line=1.1)
            for line, words in enumerate(lines[:4]):
                y, colour = strip.y + _name_middle(line, len(lines)), INKS[line]
                page.small(0, y, words, middle=True, bold=line == 0, colour=colour)
        last = strips[-1]
        bottom = last.y + max(STRIP, LINE * len(names[-1]))
        if not last.size:
            selected = query if last.stage.prompt is capture.main else None
            bottom = max(bottom, last.draw_words_below(selected))
        dots = dots_per_inch(page.width) / POINTS
        if any(len(strip.stage.spans) > strip.width * dots for strip in strips):
            page.note("where positions are narrower than a dot, the largest weight is shown")
        notes = [unseen_reason(capture, (stage.head for stage in stages))]
        layers = len(_attending_layers(capture))
        if not is_hourglass(capture) and len(stages) < layers:
            notes.append(f"{len(stages)} of {layers} layers")
        y = bottom + 10
        page.caption(left - 4, y + 6, "Weight", across="right")
        end = shades.draw_level(page, left, y, page.width - left)
        page.close(page.legend(notes, left, end + 2, page.width - left) + 2)

    def _names(self, stage: Stage, width: float) -> list[str]:
        """Level, head and what it does, in at most two lines that fit."""
        role = "off" if stage.head in self.capture.off else self.role(stage.head)
        room = min(80.0, 0.22 * width)
        lines: list[str] = []
        for word in role.split():
            is_full = lines and text_width(f"{lines[-1]} {word}", SMALL) > room
            if not lines or (is_full and len(lines) < 2):
                lines.append(word)
            else:
                lines[-1] += f" {word}"
        lines = [elide(line, room, SMALL) for line in lines]
        if is_hourglass(self.capture):
            return [self.capture.spec.levels[stage.level].label, f"head {stage.head}", *lines]
        level = level_name(self.capture, stage.head.layer)
        return [f"head {stage.head}", *([level] if level else []), *lines]


# --- where strips lie -----------------------------------------------------------------------------


def _factors(stages: list[Stage]) -> list[float]:
    """What part of the widest strip the strip of each stage is: the coarser, the narrower."""
    levels = sorted({stage.level for stage in stages})
    shrink = max(0.88, 0.72 ** (1 / max(len(levels) - 1, 1)))
    return [shrink ** levels.index(stage.level) for stage in stages]


def _strips(
    page: Page, stages: list[Stage], shades: Shades, left: float, right: float
) -> list[_Strip]:
    """Strips below each other; text is printed where it is legible at every level."""
    factors, strips = _factors(stages), []
    for number, (stage, factor) in enumerate(zip(stages, factors, strict=True)):
        widths, size = _token_widths(stage.prompt, right - left, min(factors))
        edges = np.concatenate([[0.0], np.cumsum(widths)])
        edges = (left + right) / 2 + (edges - edges[-1] / 2) * factor
        y = number * (STRIP + BETWEEN)
        strips.append(_Strip(page, stage, shades, edges, y, size * factor))
    return strips


def _token_widths(prompt: Prompt, room: float, smallest: float) -> tuple[Many, float]:
    """Widths of the tokens that fill the room, and the size of their text, 0 for none."""
    tokens = len(prompt)
    even = np.full(tokens, room / tokens)
    if tokens * 3 > room:
        return even, 0.0
    widths = np.empty(tokens)
    for mark in token_marks(prompt, unit_spans(tokens)):
        width = max(text_width(mark.words, 10.0, fixed=True), 4.0) + 2.5
        widths[mark.start : mark.end] = width / (mark.end - mark.start)
    size = min(LARGEST_TEXT, 10.0 * room / widths.sum())
    if size * smallest < LEGIBLE_TEXT:
        return even, 0.0
    return widths * min(room / widths.sum(), 3.0 * size / 10.0), size


def _widest_left(stages: list[Stage], names: list[list[str]], right: float) -> float:
    """Where the widest strip begins, so that there is room for names beside the narrower ones."""
    spare = [(1 - factor) / 2 for factor in _factors(stages)]
    left = 0.0
    for number, lines in enumerate(names):
        after = min(spare[number], spare[min(number + 1, len(spare) - 1)])
        for line, words in enumerate(lines):
            low = _name_middle(line, len(lines)) + LINE / 2
            part = min(max((low - STRIP) / BETWEEN, 0.0), 1.0)  # of the way to the next strip
            share = spare[number] + part * (after - spare[number])
            need = text_width(words, SMALL, bold=line == 0) + NAME_GAP
            left = max(left, (need - share * right) / (1 - share))
    return left


def _name_middle(line: int, lines: int) -> float:
    """How far below the top of a strip the middle of a line beside it lies."""
    return STRIP / 2 + LINE * (line - min(lines - 1, 1) / 2)


@dataclass(frozen=True, slots=True, eq=False)
class _Strip:
    """A stage on the page: edges (tokens + 1,) along x, its top, its size of text (0: none)."""

    page: Page
    stage: Stage
    shades: Shades
    edges: Many
    y: float
    size: float

    @property
    def width(self) -> float:
        """The width of the whole strip."""
        return float(self.edges[-1] - self.edges[0])

    def ends(self, position: int) -> tuple[float, float]:
        """Left and right of a position."""
        start, end = self.stage.spans[position]
        return float(self.edges[start]), float(self.edges[end])

    @property
    def selected(self) -> tuple[float, float] | None:
        """Left and right of the selected cell, never so thin that it is lost; None for none."""
        if self.stage.column is None:
            return None
        left, right = self.ends(self.stage.column)
        spare = max(0.0, 1.6 - (right - left)) / 2
        return left - spare, right + spare

    def draw_cells(self) -> None:
        """Draw the weights, each over the tokens that its key stands for."""
        page, stage, left, right = self.page, self.stage, self.edges[0], self.edges[-1]
        page.box(left, self.y, right - left, STRIP, fill=LIGHT_PAGE.unseen)
        if len(stage.spans) * 1.5 > self.width:
            page.image(self._raster(), left, self.y, right - left, STRIP)
        else:
            for (first, last), rgb in self._fills():
                # a little wider than it is, so that no light shines through between two
                start = float(self.edges[first])
                width = min(float(self.edges[last]) + 0.3, right) - start
                page.box(start, self.y, width, STRIP, fill=tuple(rgb / 255))
            spans = stage.spans[stage.spans[:, 1] > 0]
            is_coarse = (spans[:, 1] - spans[:, 0]).max(initial=1) > 1
            if is_coarse and self.width / max(len(spans), 1) > 3:
                # white lines between positions of several tokens, so that they can be counted
                places = self.edges[np.unique(spans[:, 0])[1:]]
                lines = [[(x, self.y), (x, self.y + STRIP)] for x in places]
                page.lines(lines, LIGHT_PAGE.paper, 0.4)
        spans = stage.spans[stage.seen]
        if not self.size and len(spans):  # hatched after the query, where no text is printed
            start = float(self.edges[spans[:, 1].max()])
            if right - start > 1:
                page.hatch(start, self.y, float(right - start), STRIP)
        page.box(left, self.y, right - left, STRIP, edge=LIGHT_PAGE.line, line=0.4)

    def _fills(self) -> Iterator[tuple[tuple[int, int], NDArray[np.uint8]]]:
        """The tokens of each key that is seen, and its colour."""
        stage = self.stage
        fills = self.shades.paint(stage.weights[stage.seen])
        return zip(stage.spans[stage.seen].tolist(), fills, strict=True)

    def _raster(self) -> NDArray[np.uint8]:
        """uint8 (1, dots, 3): where several positions share a dot, the largest of them."""
        left, width = self.edges[0], self.width
        dots = max(1, round(width / POINTS * dots_per_inch(self.page.width)))
        weights, seen = np.zeros(dots, np.float32), np.zeros(dots, bool)
        positions = np.flatnonzero(self.stage.seen)
        order = np.argsort(np.abs(self.stage.weights[positions]), kind="stable")
        for position in positions[order].tolist():
            start, end = ((edge - left) / width * dots for edge in self.ends(position))
            first = min(int(start), dots - 1)
            last = max(first + 1, round(end))
            weights[first:last], seen[first:last] = self.stage.weights[position], True
        return self.shades.paint(weights, seen)[None]

    def draw_text(self) -> None:
        """Draw the text in the cells, if there is room."""
        if not self.size:
            return
        prompt, inks = self.stage.prompt, dict[int, tuple[float, ...]]()
        for (start, end), rgb in self._fills():
            inks |= dict.fromkeys(range(start, end), tuple(contrasting_colour(rgb) / 255))
        for mark in token_marks(prompt, unit_spans(len(prompt))):
            x = (self.edges[mark.start] + self.edges[mark.end]) / 2
            self.page.text(
                x, self.y + STRIP / 2, mark.words, size=self.size, middle=True, across="center",
                fixed=True, colour=inks.get(mark.start, GREY),
            )  # fmt: skip

    def draw_words_below(self, selected: int | None) -> float:
        """Draw the words of the text under the strip; returns where they end."""
        prompt = self.stage.prompt
        cell, left = self.width / len(prompt), float(self.edges[0])
        size = size_for(cell)
        marks = axis_marks(prompt, unit_spans(len(prompt)), cell, size, 46.0, selected)
        labels = AxisLabels(marks, size).levelled(cell, cell * len(prompt))
        labels.draw_across(self.page, left, self.y + STRIP, cell, is_below=True)
        return self.y + STRIP + 3 + max(size, labels.depth)

    def draw_silhouette(self, lower: _Strip) -> None:
        """Draw the shape of the model behind this strip and the next."""
        left, right = (
            [(strip.edges[side], strip.y + y) for strip in (self, lower) for y in (0.0, STRIP)]
            for side in (0, -1)
        )
        self.page.polygon([left[0], *right, *left[:0:-1]], LIGHT_PAGE.unseen)

    def draw_tokens_to(self, lower: _Strip) -> None:
        """Draw slanted lines to the same tokens in the next strip."""
        coarser = max(self, lower, key=lambda strip: strip.stage.level)
        starts = coarser.stage.spans[coarser.stage.spans[:, 1] > 0, 0]
        count = max(1, int(coarser.width / 7.0))
        chosen = starts[:: max(1, -(-len(starts) // count))]
        top, bottom = self.y + STRIP + 1, lower.y - 1
        lines = [[(self.edges[token], top), (lower.edges[token], bottom)] for token in chosen]
        self.page.lines(lines, LIGHT_PAGE.line, 0.35)

    def draw_thread_to(self, lower: _Strip) -> None:
        """Draw the selected token on its way to the next strip."""
        assert self.selected is not None
        corners = []
        for (left, right), y in (
            (self.selected, self.y + STRIP), (lower.selected or self.selected, lower.y)
        ):  # fmt: skip
            spare = max(0.0, right - left - 3.0) / 2
            corners += [(left + spare, y), (right - spare, y)]
        self.page.polygon([corners[at] for at in (0, 1, 3, 2)], LIGHT_PAGE.mark)

    def arcs(self, origin: float | None) -> list[Arc]:
        """Arcs to the strongest keys, from the selected cell, or from where it lies in its own
        text (origin)."""
        stage, cell = self.stage, self.selected
        start = origin if cell is None else sum(cell) / 2
        if start is None:
            return []
        limit = max(map(abs, self.shades.limits)) or 1.0
        strength = np.where(stage.seen, np.abs(stage.weights), 0)
        if stage.column is not None:
            strength[stage.column] = 0
        arcs = []
        for key in np.argsort(-strength, kind="stable")[:ARC_KEYS].tolist():
            end = sum(self.ends(key)) / 2
            distance = min(1.0, abs(end - start) / (0.5 * self.page.width))
            part = float(min(float(strength[key]) / limit, 1.0))
            if part >= FAINTEST_ARC:
                arcs.append((start, end, 5.0 + 20.0 * distance, part))
        return arcs

    def draw_arcs(self, origin: float | None) -> None:
        """Draw arcs over the strip, wider for more weight, each with a dot at its end."""
        y, turn = self.y - 1, np.linspace(0, 2 * np.pi, 13)[:-1]
        circle = 1.2 * np.stack([np.cos(turn), np.sin(turn)], 1)
        for start, end, height, part in self.arcs(origin):
            high = y - height * 4 / 3  # a cubic curve reaches three quarters of its controls
            points = [(start, y), (start, high), (end, high), (end, y)]
            self.page.curve(points, LIGHT_PAGE.mark, 0.4 + 1.6 * part, 0.35 + 0.65 * part)
            self.page.polygon((circle + (end, y)).tolist(), LIGHT_PAGE.mark)
