"""One token through all levels: a strip for every stage, all of them in tokens.

A stage is a run of layers at one level, or a single layer where there is but one level; its strip
shows where the token that speaks for the selected one looks, in one head of that stage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture
from hgviz.figures import labels, style
from hgviz.figures.content import Facts, Looked
from hgviz.figures.frame import heading, legend, level_name, signed_head, token_in
from hgviz.figures.page import Page
from hgviz.figures.shades import Shades, level_bar, rgb_of, shades_of
from hgviz.figures.spec import POINTS, Spec
from hgviz.figures.stages import (
    STRIP,
    Stage,
    Strip,
    each_token,
    is_hourglass,
    stage_of,
    stages_of,
    strips_of,
)
from hgviz.figures.unseen import reason
from hgviz.palettes import PAPER, readable

ARCS, LINE = 25.0, 8.2
ARC_KEYS, FAINTEST = 5, 0.02
MARGIN = 4.5
THREAD = 7.0  # the widest it gets
BOXES = 1.5  # points per position below which a strip is one raster
WIDEST_NAME = 80.0


@dataclass(frozen=True, slots=True)
class Arc:
    """From where to where along x, how high, and what part of the largest weight."""

    start: float
    end: float
    height: float
    part: float


def compose(page: Page, spec: Spec, looked: Looked) -> None:
    """Place all stages of a capture on the page."""
    capture, facts = looked.capture, looked.facts
    last = len(capture.main) - 1
    query = token_in(capture.main, last if spec.selection.query is None else spec.selection.query)
    stages = [stage_of(spec, capture, facts, layers, query) for layers in stages_of(capture)]
    signed = any(signed_head(capture, *stage.head) for stage in stages)
    shades = shades_of(spec.display, signed, [stage.weights for stage in stages])
    top = _title(page, spec, capture, query)
    names = [_names(capture, facts, stage, page.width) for stage in stages]
    left = max(style.extent(name, style.SMALL, bold=True) for lines in names for name in lines) + 10
    strips = strips_of(capture, stages, (left, page.width - MARGIN))
    highest = max((arc.height for arc in _arcs_of(page, shades, strips[0], None)), default=0.0)
    strips = [replace(strip, y=strip.y + top + highest + 3) for strip in strips]

    _silhouette(page, strips)
    for upper, lower in zip(strips, strips[1:], strict=False):
        if upper.stage.prompt is lower.stage.prompt:
            _meeting(page, upper, lower)
    own = [strip for strip in strips if strip.stage.column is not None]
    for upper, lower in pairwise([*own, strips[-1]] if own else []):
        _thread(page, upper, lower)
    origin = None  # from where arcs start that lead to another text
    for strip, lines in zip(strips, names, strict=True):
        cell = _cell(strip)
        origin = origin if cell is None else sum(cell) / 2
        _cells(page, shades, strip)
        _letters(page, shades, strip)
        _arcs(page, shades, strip, origin)
        _selected(page, strip)
        _beside(page, strip, lines)
    bottom = strips[-1].y + max(STRIP, LINE * len(names[-1]))
    if not strips[-1].size:
        chosen = query if strips[-1].stage.prompt is capture.main else None
        bottom = max(bottom, _words(page, strips[-1], chosen))
    if any(len(s.stage.spans) * POINTS / style.DOTS > s.width for s in strips):
        page.notes.append("where positions are finer than dots, the largest of them is shown")
    notes = [reason(capture, (stage.head.layer for stage in stages))]
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
    page.text(left - 4, y + 6, "Weight", size=style.SMALL, colour=PAPER.secondary, across="right")
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
    return heading(page, f"From “{words}”", f"in {around}, {place}" if around else place)


def _silhouette(page: Page, strips: list[Strip]) -> None:
    """The shape of the model behind the strips."""
    for upper, lower in zip(strips, strips[1:], strict=False):
        a, b = upper.edges[[0, -1]], lower.edges[[0, -1]]
        y0, y1 = upper.y, lower.y + STRIP
        page.polygon(
            [(a[0], y0), (a[1], y0), (a[1], y0 + STRIP), (b[1], lower.y), (b[1], y1),
             (b[0], y1), (b[0], lower.y), (a[0], y0 + STRIP)],
            PAPER.unseen,
        )  # fmt: skip


def _meeting(page: Page, upper: Strip, lower: Strip) -> None:
    """Slanted lines between two strips: the same tokens in both."""
    coarser = max(upper, lower, key=lambda strip: strip.stage.level)
    starts = coarser.stage.spans[coarser.stage.spans[:, 1] > 0, 0]
    wanted = max(1, int((coarser.edges[-1] - coarser.edges[0]) / 7))
    chosen = starts[:: max(1, -(-len(starts) // wanted))]
    page.lines(
        [[(upper.edges[t], upper.y + STRIP + 1), (lower.edges[t], lower.y - 1)] for t in chosen],
        PAPER.line, 0.35,
    )  # fmt: skip


def _thread(page: Page, upper: Strip, lower: Strip) -> None:
    """The selected token from strip to strip."""
    start = _cell(upper)
    assert start is not None
    a, b = _narrowed(*start), _narrowed(*(_cell(lower) or start))
    page.polygon(
        [(a[0], upper.y + STRIP), (a[1], upper.y + STRIP), (b[1], lower.y), (b[0], lower.y)],
        PAPER.mark,
    )


def _narrowed(left: float, right: float) -> tuple[float, float]:
    spare = max(0.0, right - left - THREAD) / 2
    return left + spare, right - spare


def _cell(strip: Strip) -> tuple[float, float] | None:
    """Left and right of the selected cell, never so thin that it is lost; None for none."""
    if strip.stage.column is None:
        return None
    left, right = strip.ends(strip.stage.column)
    spare = max(0.0, 1.6 - (right - left)) / 2
    return left - spare, right + spare


def _cells(page: Page, shades: Shades, strip: Strip) -> None:
    """The weights, each over the tokens its key stands for."""
    stage, left, right = strip.stage, strip.edges[0], strip.edges[-1]
    page.box(left, strip.y, right - left, STRIP, fill=PAPER.unseen)
    if len(stage.spans) * BOXES > strip.width:
        page.image(_raster(shades, strip), left, strip.y, right - left, STRIP)
    else:
        # each a little wider than it is, so that no light shines through between two
        for at in np.flatnonzero(stage.seen):
            a, b = strip.ends(int(at))
            fill = tuple(shades.paint(stage.weights[at : at + 1])[0] / 255)
            page.box(a, strip.y, min(b + 0.3, right) - a, STRIP, fill=fill)
        _gaps(page, strip)
    _unseen(page, strip)
    page.box(left, strip.y, right - left, STRIP, edge=PAPER.line, line=0.4)


def _gaps(page: Page, strip: Strip) -> None:
    """White lines between positions of several tokens, so that they can be counted."""
    spans = strip.stage.spans[strip.stage.spans[:, 1] > 0]
    wide = (strip.edges[-1] - strip.edges[0]) / max(len(spans), 1)
    if (spans[:, 1] - spans[:, 0]).max(initial=1) > 1 and wide > 3:
        at = strip.edges[np.unique(spans[:, 0])[1:]]
        page.lines([[(x, strip.y), (x, strip.y + STRIP)] for x in at], PAPER.paper, 0.4)


def _unseen(page: Page, strip: Strip) -> None:
    """Hatch what comes after the query, where no text is printed over it."""
    spans = strip.stage.spans[strip.stage.seen]
    if strip.size or not len(spans):
        return
    start, end = float(strip.edges[spans[:, 1].max()]), float(strip.edges[-1])
    if end - start > 1:
        page.hatch(start, strip.y, end - start, STRIP, None)


def _raster(shades: Shades, strip: Strip) -> NDArray[np.uint8]:
    """uint8 (1, dots, 3): where several positions share a dot, the largest of them."""
    left, right = strip.edges[0], strip.edges[-1]
    dots = max(1, round((right - left) / POINTS * style.DOTS))
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
    ground = np.tile(np.array(rgb_of(PAPER.unseen)), (tokens, 1))
    over = np.zeros(tokens, bool)
    for at in np.flatnonzero(strip.stage.seen):
        start, end = strip.stage.spans[at]
        ground[start:end] = shades.paint(strip.stage.weights[at : at + 1])[0]
        over[start:end] = True
    inks = readable(ground) / 255
    for mark in labels.singles(strip.stage.prompt, each_token(tokens)):
        x = (strip.edges[mark.start] + strip.edges[mark.end]) / 2
        page.text(
            x, strip.y + STRIP / 2, mark.words, size=strip.size, middle=True, across="center",
            fixed=True, colour=tuple(inks[mark.start]) if over[mark.start] else PAPER.secondary,
        )  # fmt: skip


def _arcs_of(page: Page, shades: Shades, strip: Strip, origin: float | None) -> list[Arc]:
    """From the selected cell, or from where it lies in its own text, to its strongest keys."""
    stage, cell = strip.stage, _cell(strip)
    start = origin if cell is None else sum(cell) / 2
    if start is None:
        return []
    limit = max(abs(one) for one in shades.limits)
    strength = np.where(stage.seen, np.abs(stage.weights), 0)
    if stage.column is not None:
        strength[stage.column] = 0
    arcs = []
    for key in np.argsort(-strength, kind="stable")[:ARC_KEYS]:
        end = sum(strip.ends(int(key))) / 2
        far = min(1.0, abs(end - start) / (0.5 * page.width))
        part = float(min(strength[key] / limit, 1))
        if part >= FAINTEST:
            arcs.append(Arc(start, end, 5 + (ARCS - 5) * far, part))
    return arcs


def _arcs(page: Page, shades: Shades, strip: Strip, origin: float | None) -> None:
    """Arcs over a strip, wider for more weight."""
    y = strip.y - 1
    for arc in _arcs_of(page, shades, strip, origin):
        high = y - arc.height * 4 / 3  # a cubic curve reaches three quarters of its controls
        page.curve(
            [(arc.start, y), (arc.start, high), (arc.end, high), (arc.end, y)],
            PAPER.mark, 0.4 + 1.6 * arc.part, 0.35 + 0.65 * arc.part,
        )  # fmt: skip
        page.polygon(_dot(arc.end, y), PAPER.mark)


def _dot(x: float, y: float, radius: float = 1.2) -> list[tuple[float, float]]:
    turn = np.linspace(0, 2 * np.pi, 13)[:-1]
    return [(x + radius * float(np.cos(t)), y + radius * float(np.sin(t))) for t in turn]


def _selected(page: Page, strip: Strip) -> None:
    cell = _cell(strip)
    if cell is None:
        return
    left, right = cell
    page.box(left, strip.y - 0.6, right - left, STRIP + 1.2, edge=PAPER.mark, line=1.1)


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
    inks = [PAPER.text, PAPER.text, PAPER.secondary, PAPER.secondary]
    for at, (words, ink) in enumerate(zip(lines, inks, strict=False)):
        y = strip.y + STRIP / 2 - 4 + LINE * at
        page.text(0, y, words, size=style.SMALL, middle=True, bold=at == 0, colour=ink)


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
    cell = (strip.edges[-1] - strip.edges[0]) / len(prompt)
    marks = labels.axis_marks(
        prompt, each_token(len(prompt)), float(cell), style.SMALL, 46.0, query
    )
    y = strip.y + STRIP + 3
    deepest = 0.0
    for mark in marks:
        x = float(strip.edges[0] + mark.middle * cell)
        page.lines([[(x, y - 3), (x, y - 1)]], PAPER.line)
        page.text(
            x, y, mark.words, size=style.SMALL, turned=True, middle=True, across="right",
            bold=mark.chosen, colour=PAPER.mark_text if mark.chosen else PAPER.text,
        )  # fmt: skip
        deepest = max(deepest, style.extent(mark.words, style.SMALL, mark.chosen))
    return y + deepest
