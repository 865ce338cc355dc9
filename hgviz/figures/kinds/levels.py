"""One token through all levels: a strip for every stage, all of them in tokens.

A stage is a run of layers at one level, or a single layer where there is but one level; its strip
shows where the token that speaks for the selected one looks, in one head of that stage.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture
from hgviz.figures.content import Facts, Looked
from hgviz.figures.content.unseen import reason
from hgviz.figures.kinds import between
from hgviz.figures.kinds.stages import (
    BETWEEN,
    STRIP,
    Stage,
    Strip,
    each_token,
    factors_of,
    is_hourglass,
    stage_of,
    stages_of,
    strips_of,
)
from hgviz.figures.paper import labels, style
from hgviz.figures.paper.frame import has_negative_weights, heading, legend, level_name, query_in
from hgviz.figures.paper.page import Page
from hgviz.figures.paper.shades import Shades, level_bar, rgb_of, shades_of
from hgviz.figures.spec import POINTS, Spec
from hgviz.palettes import LIGHT_PAGE, contrasting_colour

LINE = 8.2
MARGIN, BESIDE = 4.5, 9.0  # at right of the strips, and at left of them
BOXES = 1.5  # points per position below which a strip is one raster
WIDEST_NAME, LONGEST_WORD = 80.0, 46.0


def compose(page: Page, spec: Spec, looked: Looked) -> None:
    """Place all stages of a capture on the page."""
    capture, facts = looked.capture, looked.facts
    query = query_in(capture.main, spec.selection.query)
    stages = [stage_of(spec, capture, facts, layers, query) for layers in stages_of(capture)]
    signed = any(has_negative_weights(capture, *stage.head) for stage in stages)
    shades = shades_of(spec.display, signed, [stage.weights for stage in stages])
    top = _title(page, spec, capture, query)
    names = [_names(capture, facts, stage, page.width) for stage in stages]
    left = _left(stages, names, page.width - MARGIN)
    strips = strips_of(stages, (left, page.width - MARGIN))
    arcs = between.arcs_of(page, shades, strips[0], None)
    highest = max((arc.height for arc in arcs), default=0.0)
    strips = [replace(strip, y=strip.y + top + highest + 3) for strip in strips]

    between.silhouette(page, strips)
    for upper, lower in zip(strips, strips[1:], strict=False):
        if upper.stage.prompt is lower.stage.prompt:
            between.meeting(page, upper, lower)
    own = [strip for strip in strips if strip.stage.column is not None]
    for upper, lower in pairwise([*own, strips[-1]] if own else []):
        between.thread(page, upper, lower)
    origin = None  # from where arcs start that lead to another text
    for strip, lines in zip(strips, names, strict=True):
        cell = strip.chosen
        origin = origin if cell is None else sum(cell) / 2
        _cells(page, shades, strip)
        _letters(page, shades, strip)
        between.arcs(page, shades, strip, origin)
        _selected(page, strip)
        _beside(page, strip, lines)
    bottom = strips[-1].y + max(STRIP, LINE * len(names[-1]))
    if not strips[-1].size:
        chosen = query if strips[-1].stage.prompt is capture.main else None
        bottom = max(bottom, _words(page, strips[-1], chosen))
    if any(len(s.stage.spans) * POINTS / style.dots(page.width) > s.width for s in strips):
        page.notes.append("where positions are finer than dots, the largest of them is shown")
    notes = [reason(capture, (stage.head for stage in stages))]
    if not is_hourglass(capture) and (some := _some(capture, len(stages))):
        notes.append(some)
    _foot(page, shades, notes, left, bottom + 10)


def _some(capture: Capture, shown: int) -> str:
    """How many of a model's layers are shown, "" where all are."""
    level = 1 if capture.spec.two_texts else 0
    every = sum(one.level == level and bool(one.heads) for one in capture.spec.layers)
    return f"{shown} of {every} layers" if shown < every else ""


def _foot(page: Page, shades: Shades, notes: list[str], left: float, y: float) -> None:
    """The colour bar and the legend."""
    page.text(
        left - 4, y + 6, "Weight", size=style.SMALL, colour=LIGHT_PAGE.secondary, across="right"
    )
    below = level_bar(page, shades, left, y, page.width - left)
    page.close(legend(page, notes, left, below + 2, page.width - left) + 2)


def _title(page: Page, spec: Spec, capture: Capture, query: int) -> float:
    """From which token, in words; gives where the line ends."""
    if spec.title is not None:
        return heading(page, spec.title, "")
    prompt = capture.main
    words = labels.token_words(prompt, query, query + 1)
    words = labels.elide(words, 0.4 * page.width, style.TITLE, bold=True)
    around = labels.context(prompt, query)
    place = f"{prompt.unit} {query:,}"
    return heading(page, f"From “{words}”", f"in “{around}”, {place}" if around else place)


def _cells(page: Page, shades: Shades, strip: Strip) -> None:
    """The weights, each over the tokens its key stands for."""
    stage, left, right = strip.stage, strip.edges[0], strip.edges[-1]
    page.box(left, strip.y, right - left, STRIP, fill=LIGHT_PAGE.unseen)
    if len(stage.spans) * BOXES > strip.width:
        page.image(_raster(page, shades, strip), left, strip.y, right - left, STRIP)
    else:
        # each a little wider than it is, so that no light shines through between two
        for at in np.flatnonzero(stage.seen):
            a, b = strip.ends(int(at))
            fill = tuple(shades.paint(stage.weights[at : at + 1])[0] / 255)
            page.box(a, strip.y, min(b + 0.3, right) - a, STRIP, fill=fill)
        _gaps(page, strip)
    _unseen(page, strip)
    page.box(left, strip.y, right - left, STRIP, edge=LIGHT_PAGE.line, line=0.4)


def _gaps(page: Page, strip: Strip) -> None:
    """White lines between positions of several tokens, so that they can be counted."""
    spans = strip.stage.spans[strip.stage.spans[:, 1] > 0]
    wide = (strip.edges[-1] - strip.edges[0]) / max(len(spans), 1)
    if (spans[:, 1] - spans[:, 0]).max(initial=1) > 1 and wide > 3:
        at = strip.edges[np.unique(spans[:, 0])[1:]]
        page.lines([[(x, strip.y), (x, strip.y + STRIP)] for x in at], LIGHT_PAGE.paper, 0.4)


def _unseen(page: Page, strip: Strip) -> None:
    """Hatch what comes after the query, where no text is printed over it."""
    spans = strip.stage.spans[strip.stage.seen]
    if strip.size or not len(spans):
        return
    start, end = float(strip.edges[spans[:, 1].max()]), float(strip.edges[-1])
    if end - start > 1:
        page.hatch(start, strip.y, end - start, STRIP, None)


def _raster(page: Page, shades: Shades, strip: Strip) -> NDArray[np.uint8]:
    """uint8 (1, dots, 3): where several positions share a dot, the largest of them."""
    left, right = strip.edges[0], strip.edges[-1]
    dots = max(1, round((right - left) / POINTS * style.dots(page.width)))
    weights, seen = np.zeros(dots, np.float32), np.zeros(dots, bool)
    stage = strip.stage
    order = np.flatnonzero(stage.seen)
    for at in order[np.argsort(np.abs(stage.weights[order]), kind="stable")]:
        a, b = ((edge - left) / (right - left) * dots for edge in strip.ends(int(at)))
        first = min(int(a), dots - 1)
        last = max(first + 1, round(b))
        weights[first:last], seen[first:last] = stage.weights[at], True
    return shades.paint(weights, seen)[None]


def _letters(page: Page, shades: Shades, strip: Strip) -> None:
    """The text in the cells."""
    if not strip.size:
        return
    tokens = len(strip.stage.prompt)
    ground = np.tile(np.array(rgb_of(LIGHT_PAGE.unseen)), (tokens, 1))
    over = np.zeros(tokens, bool)
    for at in np.flatnonzero(strip.stage.seen):
        start, end = strip.stage.spans[at]
        ground[start:end] = shades.paint(strip.stage.weights[at : at + 1])[0]
        over[start:end] = True
    inks = contrasting_colour(ground) / 255
    for mark in labels.singles(strip.stage.prompt, each_token(tokens)):
        x = (strip.edges[mark.start] + strip.edges[mark.end]) / 2
        page.text(
            x, strip.y + STRIP / 2, mark.words, size=strip.size, middle=True, across="center",
            fixed=True,
            colour=tuple(inks[mark.start]) if over[mark.start] else LIGHT_PAGE.secondary,
        )  # fmt: skip


def _selected(page: Page, strip: Strip) -> None:
    cell = strip.chosen
    if cell is None:
        return
    left, right = cell
    page.box(left, strip.y - 0.6, right - left, STRIP + 1.2, edge=LIGHT_PAGE.mark, line=1.1)


def _names(capture: Capture, facts: Facts, stage: Stage, width: float) -> list[str]:
    """Level, head and what it does."""
    role = facts[stage.head].role if stage.head in facts else ""
    if stage.head in capture.off:
        role = "off"
    rest = _folded(role, min(WIDEST_NAME, 0.22 * width))
    if is_hourglass(capture):
        return [capture.spec.levels[stage.level].label, f"head {stage.head}", *rest]
    where = level_name(capture, stage.head.layer)
    return [f"head {stage.head}", *([where] if where else []), *rest]


def _beside(page: Page, strip: Strip, lines: list[str]) -> None:
    """Names left of a strip."""
    inks = [LIGHT_PAGE.text, LIGHT_PAGE.text, LIGHT_PAGE.secondary, LIGHT_PAGE.secondary]
    for at, (words, ink) in enumerate(zip(lines, inks, strict=False)):
        y = strip.y + _down(at, len(lines))
        page.text(0, y, words, size=style.SMALL, middle=True, bold=at == 0, colour=ink)


def _down(line: int, lines: int) -> float:
    """How far below the top of a strip the middle of a line beside it lies."""
    return STRIP / 2 + LINE * (line - min(lines - 1, 1) / 2)


def _left(stages: list[Stage], names: list[list[str]], right: float) -> float:
    """Where the widest strip begins, so that there is room for names beside the narrower ones."""
    spare = [(1 - factor) / 2 for factor in factors_of(stages)]
    left = 0.0
    for number, lines in enumerate(names):
        after = min(spare[number], spare[min(number + 1, len(spare) - 1)])
        for line, words in enumerate(lines):
            low = _down(line, len(lines)) + LINE / 2
            part = min(max((low - STRIP) / BETWEEN, 0.0), 1.0)  # of the way to the next strip
            beside = spare[number] + part * (after - spare[number])
            need = style.extent(words, style.SMALL, bold=line == 0) + BESIDE
            left = max(left, (need - beside * right) / (1 - beside))
    return left


def _folded(words: str, room: float) -> list[str]:
    """At most two lines that fit."""
    lines: list[str] = []
    for word in words.split():
        if lines and style.extent(f"{lines[-1]} {word}", style.SMALL) <= room:
            lines[-1] += f" {word}"
        elif len(lines) < 2:
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return [labels.elide(line, room, style.SMALL) for line in lines]


def _words(page: Page, strip: Strip, query: int | None) -> float:
    """The words of the text under the last strip; gives where they end."""
    prompt = strip.stage.prompt
    cell = float(strip.edges[-1] - strip.edges[0]) / len(prompt)
    size, left = labels.size_for(cell), float(strip.edges[0])
    marks = labels.axis_marks(prompt, each_token(len(prompt)), cell, size, LONGEST_WORD, query)
    places = labels.level(marks, cell, cell * len(prompt), size)
    turned, y = places is None, strip.y + STRIP + 3
    deepest = size
    for mark, place in zip(marks, places or [mark.middle * cell for mark in marks], strict=True):
        x = left + mark.middle * cell
        page.lines([[(x, y - 3), (x, y - 1)]], LIGHT_PAGE.line)
        page.text(
            left + place, y if turned else y + size, mark.words, size=size, turned=turned,
            middle=turned, across="right" if turned else "center", bold=mark.bold,
            colour=LIGHT_PAGE.mark_text if mark.chosen else LIGHT_PAGE.text,
        )  # fmt: skip
        if turned:
            deepest = max(deepest, style.extent(mark.words, size, mark.bold))
    return y + deepest
