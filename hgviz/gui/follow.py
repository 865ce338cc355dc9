"""One token followed through every level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPixmap,
    QPolygonF,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from hgviz import palettes, tasks
from hgviz.core import (
    Capture,
    Display,
    Floats,
    HeadId,
    HgvizError,
    Integers,
    Map,
    Prompt,
    Selection,
    Step,
    progress,
    progress_as,
)
from hgviz.gui import atlas, grid, sentences, theme
from hgviz.gui.atlas import Thumb, thumb
from hgviz.gui.ink import faint, focus_ring, sides
from hgviz.gui.language import tr
from hgviz.gui.layouts import Stage, stages
from hgviz.gui.sentences import (
    Verdict,
    coarseness,
    counted,
    name,
    of_text,
    of_token,
    quoted,
    region,
    shown,
    word_at,
    word_spans,
)
from hgviz.gui.sentences import share as in_percent
from hgviz.gui.tables import Table
from hgviz.gui.view import CAPTURE, View
from hgviz.gui.widgets import PaneHead, label, shows_tip, vbox

if TYPE_CHECKING:
    from hgviz.analysis.roles import HeadRole
    from hgviz.figures import Spec
    from hgviz.session import Session

# --- layout ---------------------------------------------------------------------------------------


TOP, ARCS_HEIGHT = 16, 62  # px above all, and for the arcs
HIGH, ASIDE = 32, 8  # px of a strip, and of its silhouette's margin
PITCH, PITCH_MOST = 142, 260  # px from stage to stage
TOGETHER = 156  # the last row and its words
NARROWER, NARROWEST = 0.84, 0.6  # how strips shrink from level to level
WIDEST = 15.0  # px a character
SHORT = 620  # px: the words over a strip may take this much even where the text is short
THREAD = 14.0  # px: the thread at most, where a cell holds a whole word
PAST = 0.7  # of a window that is too short for the text lies before the letter
LONGEST = 12  # characters of a word piece that are shown


# --- the strips -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StageStrip:
    """The text at one resolution.

    cells: position, left and right of each that is shown. first: the token that x counts from,
    before: the characters that the first cell reaches out before it.
    """

    level: int
    left: float
    top: float
    high: float
    unit: float
    before: float
    first: int
    edges: NDArray[np.float64]
    cells: tuple[tuple[int, float, float], ...]

    @property
    def right(self) -> float:
        """Where the last cell ends."""
        return self.cells[-1][2] if self.cells else self.left

    @property
    def bottom(self) -> float:
        """Where the cells end."""
        return self.top + self.high

    def x(self, token: int) -> float:
        """Where a token begins."""
        return self.left + (self.before + self.edges[token] - self.edges[self.first]) * self.unit

    def cell(self, position: int) -> tuple[float, float] | None:
        """Left and right of a position; None where it is not shown."""
        if not self.cells:
            return None
        at = position - self.cells[0][0]
        return self.cells[at][1:] if 0 <= at < len(self.cells) else None

    def at(self, x: float, y: float) -> int | None:
        """The position under a point."""
        if not self.top <= y < self.bottom:
            return None
        return next((p for p, left, right in self.cells if left <= x < right), None)


@dataclass(frozen=True, slots=True)
class StageGap:
    """Between two stages: the thread as left and right at its top and bottom, and who else gets."""

    top: float
    bottom: float
    thread: tuple[float, float, float, float] | None
    others: tuple[float, float, float, float] | None
    lines: tuple[tuple[float, float, bool], ...]


@dataclass(frozen=True, slots=True)
class FollowRoom:
    """What the picture may take; char is the least width of a letter that can still be read."""

    width: float
    height: float
    left: float = 148
    right: float = 65
    char: float = 6.8


@dataclass(frozen=True, slots=True)
class FollowLayout:
    """The whole picture. shown: the tokens it shows. own: the letter's position at each stage.

    right: where the words over a strip end at the latest. cells: left and right of the letter at
    each stage; where the strip is of another text, of the stage before.
    """

    width: float
    height: float
    right: float
    shown: tuple[int, int]
    strips: tuple[StageStrip, ...]
    crossings: tuple[StageGap, ...]
    together: StageStrip
    own: tuple[int | None, ...]
    outline: tuple[tuple[float, float], ...]
    cells: tuple[tuple[float, float] | None, ...] = ()


def char_edges(capture: Capture, level: int = 0) -> NDArray[np.float64]:
    """(tokens + 1,): where each token begins, in characters; letters are one wide."""
    prompt = capture.prompt_of(level)
    if prompt.unit == "letter":
        return np.arange(len(prompt) + 1, dtype=np.float64)
    wide = [min(LONGEST, max(1, len(prompt.label(t)))) + 1.0 for t in range(len(prompt))]
    return np.concatenate([[0.0], np.cumsum(wide)])


def window(edges: NDArray[np.float64], token: int, fits: float, unit: int) -> tuple[int, int]:
    """The tokens shown where not all fit: around the letter, most of them before it.

    It begins at a multiple of unit, so that no position is cut at any level.
    """
    tokens = len(edges) - 1
    if edges[-1] <= fits:
        return 0, tokens
    start = min(max(0.0, edges[token] - PAST * fits), edges[-1] - fits)
    first = int(np.searchsorted(edges, start)) // unit * unit
    last = int(np.searchsorted(edges, edges[first] + fits, side="right")) - 1
    return first, min(tokens, max(last, token + 1))


def lay(
    capture: Capture, way: Sequence[Stage], token: int, edges: NDArray[np.float64], room: FollowRoom
) -> FollowLayout:
    """Strips for every stage, narrower where the text is shorter, with the letter's own cells."""
    levels = capture.spec.levels
    steps = [coarseness(levels[one.level]) for one in way]
    depths = sorted({*steps})
    scales = [max(NARROWEST, NARROWER ** depths.index(one)) for one in steps]
    wide = max(80.0, room.width - room.left - room.right)
    unit = max((one.stride or 1 for one in levels), default=1)
    shown = window(edges, token, wide * min(scales) / room.char, unit)
    per_char = min(WIDEST, wide / max(1.0, edges[shown[1]] - edges[shown[0]]))
    free = room.height - TOP - TOGETHER - ARCS_HEIGHT - HIGH
    pitch = min(PITCH_MOST, max(PITCH, free / max(1, len(way) - 1)))
    middle = room.left + wide / 2
    strips = []
    for number, (stage, scale) in enumerate(zip(way, scales, strict=True)):
        top = TOP + ARCS_HEIGHT + number * pitch
        part = (edges, shown, per_char * scale)
        if stage.away:
            part = _other(capture, stage, token, wide, room)
        strips.append(_strip(capture, stage.level, *part[:2], middle, top, wide * scale, part[2]))
    below = strips[-1].bottom + 44
    finest = next((n for n, one in enumerate(capture.spec.levels) if one.stride == 1), 0)
    home = way[0].own if way[0].beside else finest
    last = _strip(capture, home, edges, shown, middle, below, wide, per_char)
    own = tuple(None if s.away else capture.position(s.level, token) for s in way)
    cells = _own_cells(strips, own)
    crossings = tuple(
        _cross(capture, strips[n], strips[n + 1], own[n], own[n + 1], token)
        if not way[n].beside
        else _straight(strips[n], strips[n + 1], cells[n], cells[n + 1])
        for n in range(len(way) - 1)
    )
    height = max(room.height, strips[-1].bottom + TOGETHER)
    right = max(last.right, min(room.left + wide, last.left + SHORT))
    return FollowLayout(
        room.width, height, right, shown, tuple(strips), crossings, last, own,
        _outline(strips), cells,
    )  # fmt: skip


def _other(
    capture: Capture, stage: Stage, token: int, wide: float, room: FollowRoom
) -> tuple[NDArray[np.float64], tuple[int, int], float]:
    """Edges, tokens shown and the width of a character in a strip of another text."""
    edges = char_edges(capture, stage.level)
    tokens, mine = len(edges) - 1, len(capture.prompt_of(stage.own))
    near = min(max(0, tokens - 1), token * tokens // max(1, mine))
    shown = window(edges, near, wide / room.char, 1)
    return edges, shown, min(WIDEST, wide / max(1.0, edges[shown[1]] - edges[shown[0]]))


def _own_cells(
    strips: Sequence[StageStrip], own: Sequence[int | None]
) -> tuple[tuple[float, float] | None, ...]:
    """Where the letter is at each stage; beside a strip of another text where it was before."""
    found: list[tuple[float, float] | None] = []
    for strip, position in zip(strips, own, strict=True):
        before = found[-1] if found else None
        found.append(before if position is None else strip.cell(position))
    return tuple(found)


def _straight(
    above: StageStrip,
    below: StageStrip,
    mine: tuple[float, float] | None,
    next_: tuple[float, float] | None,
) -> StageGap:
    """Between two strips of one resolution: a thread no wider than it need be."""
    if mine is None or next_ is None:
        return StageGap(above.bottom, below.top, None, None, ())
    a, b = (_narrow(one) for one in (mine, next_))
    return StageGap(above.bottom, below.top, (*a, *b), None, ())


def _narrow(cell: tuple[float, float]) -> tuple[float, float]:
    half, middle = min(THREAD, cell[1] - cell[0]) / 2, sum(cell) / 2
    return middle - half, middle + half


def _strip(
    capture: Capture,
    level: int,
    edges: NDArray[np.float64],
    shown: tuple[int, int],
    middle: float,
    top: float,
    wide: float,
    unit: float,
) -> StageStrip:
    spans: Integers = capture.spans[level]
    first, last = shown
    inside = np.flatnonzero((spans[:, 0] >= 0) & (spans[:, 1] > first) & (spans[:, 1] <= last))
    if not len(inside):
        return StageStrip(level, middle, top, HIGH, unit, 0, first, edges, ())
    start, end = (int(one) for one in spans[inside[0]])
    before = float(edges[first] - edges[min(start, first)])
    stride, shift = capture.spec.levels[level].stride, capture.spec.levels[level].shift
    if inside[0] == 0 and shift and stride and stride > end - start and len(inside) > 1:
        before = float(stride - (end - start))  # the zeros of the causal shift
    chars = before + float(edges[spans[inside[-1], 1]] - edges[first])
    unit = min(unit, wide / chars)
    left = middle - chars * unit / 2
    rights = left + (before + edges[spans[inside, 1]] - edges[first]) * unit
    lefts = np.concatenate([[left], rights[:-1]])
    cells = tuple(zip(map(int, inside), map(float, lefts), map(float, rights), strict=True))
    return StageStrip(level, left, top, HIGH, unit, before, first, edges, cells)


def _cross(
    capture: Capture,
    above: StageStrip,
    below: StageStrip,
    mine: int | None,
    next_: int | None,
    token: int,
) -> StageGap:
    upper, lower = (coarseness(capture.spec.levels[s.level]) for s in (above, below))
    top, bottom = above.bottom, below.top
    assert mine is not None and next_ is not None  # resolutions of one text
    a, b = above.cell(mine), below.cell(next_)
    if a is None or b is None:
        return StageGap(top, bottom, None, None, ())
    if upper < lower:
        start, end = (int(one) for one in capture.spans[below.level][next_])
        shown = max(start, above.first)
        thread = (above.x(shown), above.x(max(end, shown + 1)), *b)
        return StageGap(top, bottom, thread, None, _lines(capture, above, below, token, True))
    lines = _lines(capture, below, above, token, False) if upper > lower else ()
    back = _receivers(capture, above.level, below.level, mine) if upper > lower else range(0)
    found = [one for q in back if (one := below.cell(q))]
    others = (*a, found[0][0], found[-1][1]) if found else None
    reached = upper <= lower or next_ in back  # what was left out gets nothing back
    return StageGap(top, bottom, (*a, *b) if reached else None, others, lines)


def _receivers(capture: Capture, inner: int, outer: int, mine: int) -> range:
    """All positions that a shortened one goes back to."""
    upper, lower = (capture.spec.levels[one].stride for one in (inner, outer))
    if upper and lower:
        times, apart = upper // lower, capture.spec.levels[inner].apart
        first = (mine - apart) * times + apart
        return range(max(0, first), first + times)
    ends = capture.spans[inner][:, 1]  # a segment is read from its last token on
    stop = int(ends[mine + 1]) - 1 if mine + 1 < len(ends) else len(capture.spans[outer])
    return range(max(0, int(ends[mine]) - 1), stop)


def _lines(
    capture: Capture, outer: StageStrip, inner: StageStrip, token: int, inward: bool
) -> tuple[tuple[float, float, bool], ...]:
    """Which positions meet: x above, x below, and whether the letter can know of it.

    Going in a position ends where its newest token ends; going out it begins at the first token
    that receives it, which is later by the causal shift.
    """
    spans, level = capture.spans[inner.level], capture.spec.levels[inner.level]
    stride, apart = level.stride, level.apart
    every = -(-len(inner.cells) * 6 // max(1, int(inner.right - inner.left)))
    out = []
    for position, left, right in inner.cells[:: max(1, every)]:
        end = int(spans[position, 1])
        at = end if inward else end - 1
        if not inward and stride is not None:
            at = max(0, (position - apart) * stride + apart)
        if outer.cells and outer.first <= at < len(outer.edges):
            x = outer.x(at)
            if outer.left <= x <= outer.right + 1:
                ends = (x, right) if inward else (left, x)
                out.append((*ends, int(spans[position, 1]) <= token + 1))
    return tuple(out)


def _outline(strips: Sequence[StageStrip]) -> tuple[tuple[float, float], ...]:
    left: list[tuple[float, float]] = []
    right: list[tuple[float, float]] = []
    for one in strips:
        top, bottom = one.top - ASIDE, one.bottom + ASIDE
        left += [(one.left - ASIDE, top), (one.left - ASIDE, bottom)]
        right += [(one.right + ASIDE, top), (one.right + ASIDE, bottom)]
    return tuple(right + left[::-1])


# --- trace ----------------------------------------------------------------------------------------


ARCS = 5  # strongest keys of a stage
SOURCES = 3  # named in the sentence beneath the last row
UNSEEN = {"": "nothing", " ": "space", "\n": "line end", "\t": "tab"}


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage: the weights of the letter's own position in one head.

    weights (keys,): None where the layers are not captured. seen: how many keys it sees.
    top: the strongest keys, position and weight, strongest first.
    """

    head: HeadId | None
    weights: Floats | None
    seen: int
    signed: bool
    top: tuple[tuple[int, float], ...]
    name: str
    role: str
    small: Thumb | None

    @property
    def most(self) -> float:
        """The largest weight by magnitude."""
        return float(np.abs(self.weights).max(initial=0)) if self.weights is not None else 0.0


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything the picture says about one letter. chips: one per crossing, "" for none."""

    token: int
    looks: tuple[StageRow, ...]
    chips: tuple[str, ...]
    together: Floats | None
    sentence: str
    verdict: Verdict
    level: int = 0

    @property
    def expected(self) -> tuple[tuple[str, float], ...]:
        """What the model says in the end, the likeliest first."""
        return self.verdict.answers


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """The heads to follow: the selected one, those opened last, and what is known of all."""

    selection: Selection
    opened: Mapping[int, HeadId]
    facts: Mapping[HeadId, HeadRole]


def follow(
    capture: Capture,
    way: Sequence[Stage],
    token: int,
    wish: FollowOptions,
    name_of: Callable[[int], str],
) -> Trace:
    """Read one row per stage, then compose all levels for this one letter.

    The progress carries the trace without its last row, which takes longest, once it is there.
    """
    looks, chips = [], []
    for number, stage in enumerate(way):
        progress(number, len(way) + 1, "following")
        looks.append(_look(capture, stage, token, wish))
        if number:
            chips.append(_chip(capture, way[number - 1], stage, token))
    level = way[0].own if way else 0
    main = capture.prompt_of(level) is capture.main
    told = of_token(capture, token, name_of) if main else of_text(capture)
    first = Trace(token, tuple(looks), tuple(chips), None, "", told, level)
    progress(len(way), len(way) + 1, "composing all levels", first)
    # with the value each time: of reports that come fast only the newest is heard
    with progress_as(lambda step: Step(len(way), len(way) + 1, "composing all levels", first)):
        together, sentence = _together(capture, token, level)
    return replace(first, together=together, sentence=sentence)


def quoted_token(text: str) -> str:
    """A piece of text in a sentence: in quotation marks, or a word for what cannot be seen."""
    return tr(UNSEEN[text]) if text in UNSEEN else f"“{shown(text, 12)}”"


# --- one stage ------------------------------------------------------------------------------------


def _look(capture: Capture, stage: Stage, token: int, wish: FollowOptions) -> StageRow:
    heads = [
        HeadId(index, head)
        for index in stage.layers
        if capture.maps[index] is not None
        for head in capture.spec.layers[index].heads
        if HeadId(index, head) not in capture.off
    ]
    if not heads:
        why = "" if stage.kind == "text" else tr("not captured")
        return StageRow(None, None, 0, False, (), "", why, None)
    head = chosen(heads, stage, wish)
    facts, layer = wish.facts.get(head), capture.spec.layers[head.layer]
    row = capture.position(stage.own, token)
    weights = _row(capture, head, row)
    causal = capture.spec.layers[stage.layers[0]].causal
    seen = min(row + 1, len(weights)) if causal else len(weights)
    order = np.argsort(-np.abs(weights), kind="stable")[:ARCS]
    return StageRow(
        head, weights, seen, grid.signed(capture, head),
        tuple((int(key), float(weights[key])) for key in order if weights[key] != 0),
        tr("head {head}", head=head), tr(facts.role) if facts is not None else "",
        thumb(capture, _map(capture, head.layer), layer, head.head),
    )  # fmt: skip


def chosen(heads: Sequence[HeadId], stage: Stage, wish: FollowOptions) -> HeadId:
    """The selected head, the one last opened at this level, or the one with the clearest role."""
    for one in (wish.selection.head_id, wish.opened.get(stage.level)):
        if one in heads:
            return one
    return max(heads, key=lambda one: wish.facts[one].clarity if one in wish.facts else 0.0)


def _map(capture: Capture, layer: int) -> Map:
    found = capture.maps[layer]
    assert found is not None  # only heads of captured layers are asked for
    return found


def _row(capture: Capture, head: HeadId, row: int) -> Floats:
    read: Floats = _map(capture, head.layer).read(head.head, rows=(row, row + 1))[0]
    return read


# --- between two stages ---------------------------------------------------------------------------


def _chip(capture: Capture, before: Stage, stage: Stage, token: int) -> str:
    """How resampling weighed, in a few words."""
    if stage.level == before.level or stage.beside:
        return ""
    mine, other = (capture.spec.levels[one.level] for one in (stage, before))
    inward = sentences.coarseness(mine) > sentences.coarseness(other)
    said = _weighed(capture, before, stage, token, inward)
    spans, position = capture.spans[stage.level], capture.position(stage.level, token)
    if inward and not spans[position, 0] <= token < spans[position, 1]:
        where = "{name} is left out" if mine.apart else "{name} is pooled into the next"
        if mine.stride is None and position + 1 == len(spans):
            where = "{name} is in no segment yet"
        said += f"; {tr(where, name=quoted_token(capture.prompt.label(token)))}"
    return said


def _weighed(capture: Capture, before: Stage, stage: Stage, token: int, inward: bool) -> str:
    index = stage.entries[-1] if stage.entries else None
    if index is not None and capture.spec.layers[index].level != stage.level:
        index = None  # of a level between, that nothing stays at
    if index is None or capture.maps[index] is None or not capture.spec.layers[index].heads:
        return _pooled(capture, stage, token) if inward else _given(capture, before, stage, token)
    layer = capture.spec.layers[index]
    if layer.window is not None and layer.role == "up":
        return _given(capture, before, stage, token)
    weights = np.mean(
        [_row(capture, HeadId(index, head), capture.row(index, token)) for head in layer.heads],
        axis=0,
    )
    own = _text(capture, capture.query_spans(index)[capture.row(index, token)])
    keys = capture.key_spans(index)
    if layer.window is not None:
        start = capture.row(index, token) * layer.window
        parts = range(start, min(start + layer.window, len(weights)))
        said = [f"{_text(capture, keys[c])} {sentences.weight(float(weights[c]))}" for c in parts]
        return " + ".join(said[-4:])
    best = int(np.abs(weights).argmax())
    return tr("{name} attends most to {other} {weight}", name=own,
              other=_text(capture, keys[best]), weight=sentences.weight(weights[best]))  # fmt: skip


def _pooled(capture: Capture, stage: Stage, token: int) -> str:
    """What one position was made of, where no attention weighed it."""
    start, end = (int(o) for o in capture.spans[stage.level][capture.position(stage.level, token)])
    if end - start > 4:
        return _text(capture, np.array([start, end]))
    return " + ".join(quoted_token(capture.prompt.label(one)) for one in range(start, end))


def _given(capture: Capture, before: Stage, stage: Stage, token: int) -> str:
    """Who receives a shortened position."""
    spans, prompt = capture.spans, capture.prompt
    mine = capture.position(before.level, token)
    source = _text(capture, spans[before.level][mine])
    position = capture.position(stage.level, token)
    own = _text(capture, spans[stage.level][position])
    upper, lower = (capture.spec.levels[one.level].stride for one in (before, stage))
    plain = tr("{source} goes to {name}", source=source, name=own)
    if not upper or not lower:
        return plain
    times, apart = upper // lower, capture.spec.levels[before.level].apart
    more = (times - 1) * lower
    if (position - apart) // times + apart != mine:
        return tr("{name} was left out", name=own)
    if position < apart:
        return plain
    if (position - apart) % times:
        return tr("{source} goes to {name} and {many} more", source=source, name=own,
                  many=sentences.number(times - 1))  # fmt: skip
    following = tr(prompt.unit) if more == 1 else sentences.number(more)
    return tr("{source} goes to {name} and the next {many}", source=source, name=own,
              many=following)  # fmt: skip


def _text(capture: Capture, span: Floats) -> str:
    start, end = (int(one) for one in span)
    if start < 0:
        return tr("padding at the start")
    return quoted_token(capture.prompt.words(start, end) or capture.prompt.label(start))


# --- all levels together --------------------------------------------------------------------------


def _together(capture: Capture, token: int, level: int) -> tuple[Floats | None, str]:
    prompt = capture.prompt_of(level)
    if prompt is not capture.main:
        return None, tr("Rollout ends at the target: choose one of its tokens.")
    try:
        rows = tasks.rollout(capture, (token, token + 1))
    except HgvizError as error:
        return None, " ".join(map(tr, error.lines))
    before = rows.shape[1] - len(prompt)  # columns of the source come first
    found, source = rows[0][before:], rows[0][:before]
    said = [tr("itself {share}", share=sentences.weight(float(found[token])))]
    said += _sources(prompt, found, token, SOURCES - int(before > 0))
    if before:
        share = sentences.weight(float(source.sum(dtype=np.float64)))
        best = ", ".join(_sources(capture.prompt, source, None, 2))
        said.append(tr("the source {share} ({best})", share=share, best=best))
    told = "Attention rollout with residual connections: {sources}."
    return found, tr(told, sources=", ".join(said))


def _sources(prompt: Prompt, found: Floats, token: int | None, most: int) -> list[str]:
    """The tokens that most of an answer comes from, with their shares."""
    spans = word_spans(prompt)
    order = [int(one) for one in np.argsort(-found, kind="stable") if found[one] > 0]
    return [
        f"{_in_word(prompt, spans, one)} {sentences.weight(float(found[one]))}"
        for one in [key for key in order if key != token][:most]
    ]


def _in_word(prompt: Prompt, spans: np.ndarray, token: int) -> str:
    at = word_at(spans, token)
    label = prompt.label(token)
    if at is None or prompt.spans[token, 0] < 0:
        return quoted_token(label)
    word = prompt.words(*at).strip()
    if word == label.strip():
        return quoted_token(label)
    return tr("{name} of {word}", name=quoted_token(label), word=quoted_token(word))


# --- strips ---------------------------------------------------------------------------------------


SMALL = 40  # px: the thumbnail of a stage
LARGEST = 16  # px: the largest letters


@dataclass(frozen=True, slots=True)
class FollowScene:
    """Everything the picture shows."""

    capture: Capture
    way: tuple[Stage, ...]
    course: FollowLayout
    trace: Trace
    display: Display
    noun: str
    prompts: tuple[Prompt, ...]

    @property
    def seen(self) -> int:
        """How many tokens can have had a part in the answer."""
        layers = [one for one in self.capture.spec.layers if one.level == self.trace.level]
        causal = all(one.causal for one in layers if one.role == "self")
        return self.trace.token + 1 if causal else len(self.prompts[self.trace.level])

    def head_box(self, number: int) -> QRectF:
        """Where the head of a stage is shown: right of the strip, or over its right end."""
        strip, right = self.course.strips[number], self.course.right
        if self.way[number].beside:
            return QRectF(
                strip.right + ASIDE + 10, (strip.top + strip.bottom - SMALL) / 2, SMALL, SMALL
            )
        return QRectF(strip.right - 220, strip.top - 54, right - strip.right + 220, 46)


class CellPainter:
    """Paints strips and words of a story."""

    def __init__(self, painter: QPainter, story: FollowScene) -> None:
        self.painter, self.story = painter, story
        self.theme = theme.current()

    def strip(self, strip: StageStrip, weights: Floats | None, seen: int, signed: bool) -> None:
        """Cells that are seen in the colour of their weight, the rest grey; then the letters."""
        grounds = self._grounds(strip, weights, seen, signed)
        gap = 1.0 if strip.cells and strip.cells[0][2] - strip.cells[0][1] > 12 else 0.0
        spans = self.story.capture.spans[strip.level]
        inks = palettes.contrasting_colour(grounds)
        font = self._letter_font(strip)
        metrics = QFontMetricsF(font)
        faded: dict[int, tuple[QPen, QPen]] = {}
        self.painter.setFont(font)
        for number, (position, left, right) in enumerate(strip.cells):
            known = weights is not None and position < seen
            ground = QColor(*map(int, grounds[number])) if known else self.theme.unseen
            area = QRectF(left, strip.top, right - left - (gap if known else 0), strip.high)
            self.painter.fillRect(area, ground)
            ink = QColor(*map(int, inks[number])) if known else self.theme.secondary
            faded[ink.rgb()] = faded.get(ink.rgb()) or (QPen(ink), QPen(faint(ink, 0.45)))
            start, end = (int(one) for one in spans[position])
            for token in range(start, end):
                self._letter(strip, token, (left, right), faded[ink.rgb()], metrics)

    def _grounds(
        self, strip: StageStrip, weights: Floats | None, seen: int, signed: bool
    ) -> palettes.Colours:
        shown_here = np.zeros(len(strip.cells), np.float32)
        for number, (position, _, _) in enumerate(strip.cells):
            if weights is not None and position < min(seen, len(weights)):
                shown_here[number] = weights[position]
        display = self.story.display
        most = float(np.abs(weights).max(initial=0)) if weights is not None else 1.0
        table = palettes.colours(
            palettes.matching_palette(display.palette, signed), self.theme.dark
        )
        limits = palettes.limits_of(-most if signed else 0.0, most, signed)
        return palettes.paint(
            palettes.palette_coordinates(shown_here, limits, display.scale, signed), table
        )

    def _letter_font(self, strip: StageStrip) -> QFont:
        font = theme.mono()
        font.setPixelSize(max(theme.SMALLEST, min(LARGEST, int(strip.unit / 0.61))))
        return font

    def _letter(
        self,
        strip: StageStrip,
        token: int,
        cell: tuple[float, float],
        pens: tuple[QPen, QPen],
        metrics: QFontMetricsF,
    ) -> None:
        """One letter in the middle of its place; a space is faint."""
        left, right = strip.x(token), strip.x(token + 1)
        if right > cell[1] + 0.5 or left < cell[0] - 0.5:
            left, right = cell
        prompt = self.story.prompts[strip.level]
        text, said = prompt.label(token), name(prompt, token)
        if len(said) > 1:
            said = metrics.elidedText(said, Qt.TextElideMode.ElideRight, right - left)
        self.painter.setPen(pens[text == " "])
        x = (left + right - metrics.horizontalAdvance(said)) / 2
        y = strip.top + (strip.high + metrics.ascent() - metrics.descent()) / 2
        self.painter.drawText(QPointF(x, y), said)

    def own(self, strip: StageStrip, own: int) -> None:
        """Frame the cell of the letter itself."""
        cell = strip.cell(own)
        if cell is None:
            return
        self.painter.setBrush(Qt.BrushStyle.NoBrush)
        self.painter.setPen(QPen(self.theme.mark, 2.5))
        box = QRectF(cell[0], strip.top, cell[1] - cell[0], strip.high).adjusted(-1, -2, 1, 2)
        self.painter.drawRoundedRect(box, 4, 4)

    def word(self, x: float, y: float, said: str, font: QFont, colour: QColor) -> float:
        """Write a text; where it ends."""
        wide = QFontMetricsF(font).horizontalAdvance(said)
        self.write(QRectF(x, y, wide + 4, 18), said, font, colour)
        return x + wide

    def elided(self, said: str, font: QFont, room: float) -> str:
        """A text cut to a room."""
        return QFontMetricsF(font).elidedText(said, Qt.TextElideMode.ElideRight, max(0, room))

    def write(
        self,
        box: QRectF,
        said: str,
        font: QFont,
        colour: QColor,
        side: Qt.AlignmentFlag = theme.TO_LEFT,
    ) -> None:
        """Write a text into a box."""
        self.painter.setFont(font)
        self.painter.setPen(colour)
        self.painter.drawText(box, side, said)


def width(font: QFont, said: str) -> float:
    """How wide a text is in a font."""
    return QFontMetricsF(font).horizontalAdvance(said)


def of_story(story: FollowScene) -> Table:
    """One row for each stage of a letter's way with its strongest keys, then all of them
    together."""
    capture, most = story.capture, max((len(one.top) for one in story.trace.looks), default=0)
    numbered = (
        (tr("Key {number}", number=one + 1), tr("Weight {number}", number=one + 1))
        for one in range(most)
    )
    heads = [tr("Stage"), tr("Step"), tr("Level"), tr("Head"), tr("Role")]
    out = [[*heads, *(one for pair in numbered for one in pair)]]
    for stage, look in zip(story.way, story.trace.looks, strict=True):
        known = [str(stage.number), stage.title(capture.spec, story.noun)]
        known += [sentences.level(capture.spec, stage.level), look.name, look.role]
        from_layers = [look.head.layer] if look.head is not None else stage.layers[:1]
        spans = [capture.key_spans(one) for one in from_layers]  # a stranger's map may have more
        out.append(known + _keys(story, stage.level, look.top, most, *spans))
    together = story.trace.together
    if together is not None:
        order = np.argsort(-together, kind="stable")[:most]
        top = [(int(key), float(together[key])) for key in order if together[key] > 0]
        level = story.trace.level
        all_of = [str(len(story.way) + 1), tr("All levels"), sentences.level(capture.spec, level)]
        out.append([*all_of, "", "", *_keys(story, level, top, most)])
    return out


def _keys(
    story: FollowScene, level: int, top: Iterable[tuple[int, float]], most: int,
    spans: Integers | None = None,
) -> list[str]:  # fmt: skip
    """Glyph and weight of the strongest keys, as many cells as there are names. spans: what the
    keys stand for, where that is not the level's own."""
    cells, prompt = [], story.prompts[level]
    spans = story.capture.spans[level] if spans is None else spans
    for key, weight in top:
        start, end = (int(one) for one in spans[key])
        glyph = sentences.glyph(prompt, start, end) if start >= 0 else "∅"
        cells += [f"{key} {glyph}", repr(weight)]
    return cells + [""] * (2 * most - len(cells))


# --- follow ---------------------------------------------------------------------------------------


MARGIN = 16
ARC = 56.0  # px: the highest arc
LOW = 18.0  # px: the highest where a title stands above

Middle = Qt.AlignmentFlag.AlignCenter


class FollowPainter(CellPainter):
    """One painting of a story."""

    def paint(self) -> None:
        course, trace = self.story.course, self.story.trace
        self._ground()
        for crossing in course.crossings:
            self._lines(crossing)
        for crossing in course.crossings:
            self._thread(crossing)
        for number, look in enumerate(trace.looks):
            self._stage(number, look)
        for crossing, said in zip(course.crossings, trace.chips, strict=False):
            self._chip(crossing, said)
        if any(one.kind == "last" for one in self.story.way):
            self._residual()
        self._together()

    # --- the ground -------------------------------------------------------------------------------

    def _ground(self) -> None:
        self.painter.setPen(Qt.PenStyle.NoPen)
        self.painter.setBrush(faint(self.theme.silhouette[0], 0.65))
        outline = [QPointF(x, y) for x, y in self.story.course.outline]
        self.painter.drawPolygon(QPolygonF(outline))

    def _lines(self, one: StageGap) -> None:
        past, future = QPen(self.theme.edge, 1), QPen(faint(self.theme.edge, 0.4), 1)
        for above, below, known in one.lines:
            self.painter.setPen(past if known else future)
            self.painter.drawLine(QPointF(above, one.top + 5), QPointF(below, one.bottom - 6))

    def _thread(self, one: StageGap) -> None:
        """Draw the orange ribbon of the letter, and a pale one to others that get the same."""
        if one.thread is None:
            return
        self.painter.setPen(Qt.PenStyle.NoPen)
        for ribbon, alpha in ((one.others, 0.35), (one.thread, 0.94)):
            if ribbon is not None:
                self.painter.setBrush(faint(self.theme.mark, alpha))
                a, b, c, d = ribbon
                top, bottom = one.top + 3, one.bottom - 3
                corners = ((a, top), (b, top), (d, bottom), (c, bottom))
                self.painter.drawPolygon(QPolygonF([QPointF(x, y) for x, y in corners]))

    # --- a stage ----------------------------------------------------------------------------------

    def _stage(self, number: int, look: StageRow) -> None:
        course, beside = self.story.course, self.story.way[number].beside
        strip, own = course.strips[number], course.own[number]
        raised = False
        if beside:
            self._beside(number, strip, look)
        else:
            raised = self._words(number, strip, look)
        self.strip(strip, look.weights, look.seen, look.signed)
        if own is None:
            self._fan(number, strip, look)
        else:
            self._arcs(strip, own, look, LOW if raised else ARC)
            self.own(strip, own)
        self._badge(number, strip)

    def _badge(self, number: int, strip: StageStrip) -> None:
        stage = self.story.way[number]
        y = (strip.top + strip.bottom) / 2
        self.painter.setPen(Qt.PenStyle.NoPen)
        self.painter.setBrush(self.theme.text)
        self.painter.drawEllipse(QPointF(MARGIN + 12, y), 12, 12)
        bold = theme.font(0.92, 600)
        spot = QRectF(MARGIN, y - 12, 24, 24)
        self.write(spot, str(stage.number), bold, self.theme.pane, Middle)
        if stage.beside:
            return
        label = self.story.capture.spec.levels[stage.level].label
        self.write(
            QRectF(MARGIN + 34, y - 12, 90, 24), label, theme.font(1.08, 600), self.theme.text
        )

    def _beside(self, number: int, strip: StageStrip, look: StageRow) -> None:
        """Layers, head and role left of a strip, the head's small map right of it."""
        stage, capture = self.story.way[number], self.story.capture
        x = MARGIN + 34
        room = strip.left - ASIDE - 6 - x
        bold, quiet = theme.font(1.0, 600), theme.font(0.85)
        said = stage.named(look.name)
        y = (strip.top + strip.bottom) / 2 - 25
        for words, font, colour in (
            (stage.title(capture.spec, self.story.noun), bold, self.theme.text),
            (said, quiet, self.theme.secondary),
            (look.role, quiet, self.theme.secondary),
        ):
            self.write(QRectF(x, y, room, 17), self.elided(words, font, room), font, colour)
            y += 17
        if look.small is not None:
            self._thumb(look, self.story.head_box(number))

    def _words(self, number: int, strip: StageStrip, look: StageRow) -> bool:
        """Title and head over a strip; True where the title stands above lower arcs.

        The title goes right of the letter where there is room, else left of it, else further
        right, past the end of the strip.
        """
        stage, capture = self.story.way[number], self.story.capture
        title = stage.title(capture.spec, self.story.noun)
        note = stage.note(capture.spec, len(capture.spans[stage.level]))
        bold, quiet = theme.font(1.15, 600), theme.font(0.92)
        wide = max(width(bold, title), width(quiet, note)) + 2
        head = self._head_width(look)
        cell = self.story.course.cells[number] or (strip.left, strip.left)
        x, right = cell[1] + 22, strip.right
        left = self._clear_of(number, cell[0]) - 14 - wide
        end = x + wide + head
        raised = end > right and left >= MARGIN + 90
        raised &= left >= strip.left or end > self.story.course.right
        room = min(wide, max(right, min(end, self.story.course.right)) - head - x)
        if not raised and left + wide - MARGIN - 90 > room < wide:  # cut, but less than there
            raised, wide = True, left + wide - MARGIN - 90
            left = MARGIN + 90
        right = max(right, min(x + head if raised else end, self.story.course.right))
        x = left if raised else x
        self._head(strip, look, right)
        top = strip.top - ASIDE - 44 - (14 if raised else 0)
        room = wide if raised else room
        line = QFontMetricsF(bold).height()
        for y, said, font, colour in (
            (top, title, bold, self.theme.text),
            (top + line + 1, note, quiet, self.theme.secondary),
        ):
            self.write(QRectF(x, y, room, line), self.elided(said, font, room), font, colour)
        return raised

    def _head_width(self, look: StageRow) -> float:
        said = max(
            width(theme.font(0.92, 600), look.name), min(180.0, width(theme.font(0.92), look.role))
        )
        return said + 16 + (SMALL + 10 if look.small is not None else 0)

    def _head(self, strip: StageStrip, look: StageRow, right: float) -> None:
        top = strip.top - ASIDE - SMALL - 2
        if look.small is not None:
            self._thumb(look, QRectF(right - SMALL, top, SMALL, SMALL))
            right -= SMALL + 10
        bold, quiet, room = theme.font(0.92, 600), theme.font(0.92), 180.0
        for y, said, font, colour in (
            (top + 2, look.name, bold, self.theme.text),
            (top + 20, look.role, quiet, self.theme.secondary),
        ):
            box = QRectF(right - room, y, room, 18)
            self.write(box, self.elided(said, font, room), font, colour, theme.TO_RIGHT)

    def _thumb(self, look: StageRow, box: QRectF) -> None:
        assert look.small is not None
        size = round(SMALL * self.painter.device().devicePixelRatioF())
        name = palettes.matching_palette(self.story.display.palette, look.small.signed)
        table = palettes.colours(name, self.theme.dark)
        pixels = np.ascontiguousarray(
            atlas.painted(look.small, size, size, atlas.largest(look.small), table)
        )
        image = QImage(pixels.data, size, size, 4 * size, QImage.Format.Format_ARGB32_Premultiplied)
        path = QPainterPath()
        path.addRoundedRect(box, 3, 3)
        self.painter.fillPath(path, self.theme.pane)
        self.painter.drawImage(box, image)
        self.painter.strokePath(path, QPen(self.theme.edge, 1))

    def _clear_of(self, number: int, left: float) -> float:
        """The left edge of the letter's cell and of the thread that leads to it."""
        crossings = self.story.course.crossings
        thread = crossings[number - 1].thread if number else None
        return left if thread is None else min(left, *thread[::2])

    def _arcs(self, strip: StageStrip, own: int, look: StageRow, highest: float) -> None:
        here = strip.cell(own)
        if here is None or not look.top:
            return
        start = QPointF((here[0] + here[1]) / 2, strip.top - 2)
        most = look.most or 1.0
        for key, weight in reversed(look.top):
            if key == own:
                continue
            there = strip.cell(key)
            x = (there[0] + there[1]) / 2 if there else self._beyond(strip, key)
            share = abs(weight) / most
            far = abs(start.x() - x)
            peak = min(highest, 14 + 0.1 * far) * 4 / 3
            path = QPainterPath(QPointF(x, strip.top - 4))
            up = strip.top - 4 - peak
            path.cubicTo(QPointF(x, up), QPointF(start.x(), up), start)
            self._stroke(path, weight, share)
            self._dot(QPointF(x, strip.top - 4), weight, bool(there))

    def _fan(self, number: int, strip: StageStrip, look: StageRow) -> None:
        """From the letter in the text above to its strongest keys in another text."""
        here, above = self.story.course.cells[number], self.story.course.strips[number - 1]
        if here is None or not number:
            return
        start = QPointF(sum(here) / 2, above.bottom + 4)
        for key, weight in reversed(look.top):
            there = strip.cell(key)
            x = sum(there) / 2 if there else self._beyond(strip, key)
            end = QPointF(x, strip.top - 4)
            path, middle = QPainterPath(start), (start.y() + end.y()) / 2
            path.cubicTo(QPointF(start.x(), middle + 10), QPointF(x, middle - 10), end)
            self._stroke(path, weight, abs(weight) / (look.most or 1.0))
            self._dot(end, weight, bool(there))

    def _stroke(self, path: QPainterPath, weight: float, share: float) -> None:
        """What is added in orange, what is taken away in blue dashes, wider for more."""
        colour = self.theme.mark if weight >= 0 else sides()[0]
        pen = QPen(faint(colour, 0.45 + 0.55 * share), 1.1 + 3.2 * share * share)
        if weight < 0:
            pen.setDashPattern([4, 2])
        self.painter.strokePath(path, pen)

    def _dot(self, place: QPointF, weight: float, filled: bool) -> None:
        colour = self.theme.mark if weight >= 0 else sides()[0]
        self.painter.setPen(QPen(colour, 1.2))
        self.painter.setBrush(colour if filled else self.theme.pane)
        self.painter.drawEllipse(place, 2.4, 2.4)

    def _beyond(self, strip: StageStrip, key: int) -> float:
        """Where an arc ends whose key lies outside the window: at its edge, on a hollow dot."""
        first = strip.cells[0][0] if strip.cells else 0
        return strip.left if key < first else strip.right

    # --- between and below ------------------------------------------------------------------------

    def _chip(self, one: StageGap, said: str) -> None:
        if not said or one.thread is None:
            return
        font = theme.font(0.92)
        wide = QFontMetricsF(font).horizontalAdvance(said) + 20
        y = one.top + 16
        part = (y + 11 - one.top) / (one.bottom - one.top)
        a, b, c, d = one.thread
        left, right = a + (c - a) * part, b + (d - b) * part
        x = left - wide - 10
        if x < MARGIN:
            x = min(right + 10, self.story.course.width - wide - MARGIN)
        box = QRectF(x, y, wide, 22)
        self.painter.setPen(QPen(self.theme.edge, 1))
        self.painter.setBrush(self.theme.pane)
        self.painter.drawRoundedRect(box, 11, 11)
        self.write(box, said, font, self.theme.text, Middle)

    def _residual(self) -> None:
        course = self.story.course
        first, last = course.strips[0], course.strips[-1]
        x, lane = first.right + ASIDE, course.right + ASIDE + 30
        top, bottom = (first.top + first.bottom) / 2, (last.top + last.bottom) / 2
        path = QPainterPath(QPointF(x, top))
        path.lineTo(lane - 8, top)
        path.quadTo(lane, top, lane, top + 8)
        path.lineTo(lane, bottom - 8)
        path.quadTo(lane, bottom, lane - 8, bottom)
        path.lineTo(x + 10, bottom)
        self.painter.strokePath(path, QPen(self.theme.secondary, 1.5))
        self.painter.setPen(Qt.PenStyle.NoPen)
        self.painter.setBrush(self.theme.secondary)
        tip = QPointF(x + 4, bottom)
        self.painter.drawPolygon(QPolygonF([tip, tip + QPointF(8, -4.5), tip + QPointF(8, 4.5)]))
        font = theme.font(0.85)
        units = tr(f"{self.story.noun}s")
        said = tr("residual connection: {units} skip the bottleneck", units=units)
        self.painter.save()
        self.painter.translate(lane + 14, (top + bottom) / 2)
        self.painter.rotate(-90)
        room = bottom - top - 24
        box = QRectF(-room / 2, -9, room, 18)
        self.write(box, self.elided(said, font, room), font, self.theme.secondary, Middle)
        self.painter.restore()

    def _together(self) -> None:
        course, trace, capture = self.story.course, self.story.trace, self.story.capture
        strip = course.together
        self.painter.setPen(QPen(self.theme.line, 1))
        y = round(strip.top - 17) + 0.5
        self.painter.drawLine(QPointF(0, y), QPointF(course.width, y))
        bold = theme.font(0.92, 600)
        step = QFontMetricsF(bold).lineSpacing()
        middle = (strip.top + strip.bottom) / 2
        flat = all(one.stride == 1 for one in capture.spec.levels)
        for number, said in enumerate(
            (tr("All layers") if flat else tr("All levels"), tr("together"))
        ):
            box = QRectF(MARGIN, middle - step + number * step, 120, step)
            self.write(box, said, bold, self.theme.text)
        self.strip(strip, trace.together, self.story.seen, False)
        self.own(strip, trace.token)
        quiet = theme.font(0.92)
        left = strip.left if strip.left < 240 else 148.0
        room = course.width - left - MARGIN
        metrics = QFontMetricsF(quiet)
        wraps = metrics.horizontalAdvance(trace.sentence) > room
        high = metrics.lineSpacing() * (2 if wraps else 1)
        said = self.elided(trace.sentence, quiet, room * 1.9 if wraps else room)
        self.painter.setFont(quiet)
        self.painter.setPen(self.theme.secondary)
        box = QRectF(left, strip.bottom + 12, room, high + 2)
        self.painter.drawText(box, Qt.TextFlag.TextWordWrap | theme.TO_LEFT, said)
        y = box.bottom() + 6
        self._key(self._expected(left, y), y)

    def _expected(self, x: float, y: float) -> float:
        if not self.story.trace.expected:
            return x
        quiet, mono = theme.font(0.92), theme.mono(0.92, 600)
        said = self.story.trace.verdict.question(self.story.noun)
        x = self.word(x, y, said, quiet, self.theme.secondary) + 10
        for token, share in self.story.trace.expected:
            wide = QFontMetricsF(mono).horizontalAdvance(token) + 16
            self.painter.setPen(Qt.PenStyle.NoPen)
            self.painter.setBrush(self.theme.hover)
            box = QRectF(x, y - 1, wide, 20)
            self.painter.drawRoundedRect(box, 4, 4)
            self.write(box, token, mono, self.theme.text, Middle)
            x = self.word(x + wide + 6, y, in_percent(share), quiet, self.theme.secondary) + 14
        return x

    def _key(self, least: float, y: float) -> None:
        """Write what → does, at the right, where there is room."""
        quiet, small = theme.font(0.92), theme.font(0.85)
        said = tr("next {unit}", unit=tr(self.story.noun))
        wide = QFontMetricsF(small).horizontalAdvance("→") + 14
        room = wide + 8 + QFontMetricsF(quiet).horizontalAdvance(said)
        x = self.story.course.width - MARGIN - room
        if x < least + 16:
            return
        box = QRectF(x, y - 1, wide, 20)
        self.painter.setPen(QPen(self.theme.edge, 1))
        self.painter.setBrush(self.theme.pane)
        self.painter.drawRoundedRect(box, 4, 4)
        self.write(box, "→", small, self.theme.secondary, Middle)
        self.word(x + wide + 8, y, said, quiet, self.theme.secondary)


# --- canvas ---------------------------------------------------------------------------------------


WALKS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}  # by key: how many letters on


class FollowCanvas(QAbstractScrollArea):
    """Paints the way of a letter, and says what was clicked."""

    own_keys = tuple(WALKS)
    picked = Signal(int)  # a token
    head_picked = Signal(object)  # HeadId

    def __init__(self) -> None:
        super().__init__()
        self.story: FollowScene | None = None
        self._told: tuple[Capture, tuple[Stage, ...], Trace, Session] | None = None
        self._picture: tuple[int, float, QPixmap] | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Follow one token"))
        self.viewport().setMouseTracking(True)
        self.verticalScrollBar().setSingleStep(24)

    @property
    def looks(self) -> tuple[StageRow, ...]:
        """What is shown at each stage."""
        return self.story.trace.looks if self.story is not None else ()

    def show_trace(
        self, capture: Capture, way: tuple[Stage, ...], trace: Trace, session: Session
    ) -> None:
        """Show one letter's way."""
        self._told = (capture, way, trace, session)
        self.rearrange()

    def rearrange(self) -> None:
        """Lay out again, for another letter or another size."""
        if self._told is None:
            return
        capture, way, trace, session = self._told
        view = self.viewport().size()
        mono = theme.mono(0.85)
        room = FollowRoom(
            view.width(),
            view.height(),
            left=_left(way),
            right=65 if any(one.kind == "last" or one.beside for one in way) else 24,
            char=QFontMetricsF(mono).horizontalAdvance("m"),
        )
        course = lay(capture, way, trace.token, char_edges(capture, trace.level), room)
        prompts = tuple(capture.prompt_of(one.index) for one in capture.spec.levels)
        self._picture = None
        noun = prompts[trace.level].unit
        self.story = FollowScene(capture, way, course, trace, session.display, noun, prompts)
        name = quoted(shown(prompts[trace.level].label(trace.token)))
        self.setAccessibleDescription(f"{tr(noun)} {trace.token:,} {name}. {trace.sentence}")
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, round(course.height - view.height())))
        bar.setPageStep(view.height())
        self.viewport().update()

    def _walk(self, by: int) -> None:
        if self.story is not None:
            last = len(self.story.prompts[self.story.trace.level]) - 1
            self.picked.emit(max(0, min(last, self.story.trace.token + by)))

    # --- events -----------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Follow the letter before or after by the arrows."""
        if event.key() not in WALKS or event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().keyPressEvent(event)
        else:
            self._walk(WALKS[Qt.Key(event.key())])

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose a letter, or the head a stage shows."""
        if self.story is None or event.button() != Qt.MouseButton.LeftButton:
            return
        x, y = event.position().x(), event.position().y() + self.verticalScrollBar().value()
        found = self._at(x, y)
        if found is not None:
            strip, position = found
            levels, own = self.story.capture.spec.levels, self.story.trace.level
            if levels[strip.level].sequence == levels[own].sequence:
                self.picked.emit(int(self.story.capture.spans[strip.level][position][1]) - 1)
            return
        for number, look in enumerate(self.looks):
            if look.head is not None and self.story.head_box(number).contains(x, y):
                self.head_picked.emit(look.head)

    def _at(self, x: float, y: float) -> tuple[StageStrip, int] | None:
        if self.story is None:
            return None
        for strip in (*self.story.course.strips, self.story.course.together):
            position = strip.at(x, y)
            if position is not None:
                return strip, position
        return None

    def viewportEvent(self, event: QEvent) -> bool:
        return shows_tip(event, self, self._told_at) or super().viewportEvent(event)

    def _told_at(self, point: QPointF) -> str:
        found = self._at(point.x(), point.y() + self.verticalScrollBar().value())
        return self._said(*found) if found is not None else ""

    def _said(self, strip: StageStrip, position: int) -> str:
        story = self.story
        if story is None:
            return ""
        start, end = (int(one) for one in story.capture.spans[strip.level][position])
        prompt = story.prompts[strip.level]
        name = shown(prompt.label(start) if end - start == 1 else prompt.words(start, end))
        weights, seen = story.trace.together, story.seen
        if strip is not story.course.together:
            look = self.looks[story.course.strips.index(strip)]
            weights, seen = look.weights, look.seen
        if weights is None:
            return name
        if position >= seen:
            return tr("{name}: masked (causal)", name=name)
        return f"{name} {sentences.weight(float(weights[position]), 3)}"

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.rearrange()

    def sizeHint(self) -> QSize:
        return QSize(1600, 890)

    def changeEvent(self, event: QEvent) -> None:
        """Another theme or font: paint anew."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self.rearrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self.viewport()) as painter:
            painter.fillRect(self.viewport().rect(), theme.current().pane)
            if self.story is None:
                return
            painter.translate(0, -self.verticalScrollBar().value())
            painter.drawPixmap(0, 0, self._painted(self.story))
            if self.hasFocus():
                painter.resetTransform()
                focus_ring(painter, QRectF(self.viewport().rect()))

    def _painted(self, story: FollowScene) -> QPixmap:
        """The picture of a story; painting it takes longer than a frame, so it is kept."""
        ratio = self.devicePixelRatioF()
        if self._picture is None or self._picture[:2] != (id(story), ratio):
            size = QSizeF(story.course.width, story.course.height) * ratio
            pixels = QPixmap(size.toSize())
            pixels.setDevicePixelRatio(ratio)
            pixels.fill(theme.current().pane)
            painter = theme.smooth_painter(pixels)
            FollowPainter(painter, story).paint()
            painter.end()
            self._picture = (id(story), ratio, pixels)
        return self._picture[2]


def _left(way: tuple[Stage, ...]) -> int:
    noted = any(one.kind in ("own", "cross", "slots") for one in way)  # head 1.0 on the source
    return 184 if noted or any(one.beside for one in way) else 148


# --- follow ---------------------------------------------------------------------------------------


class FollowView(View):
    """One letter through all levels: what it looks at, how it is pooled and spread again."""

    title = "Follow"
    topic = "follow"
    needs = ("capture", "selection", "opened", "facts", "display", "dark")
    empty = (
        "Run the model on a text to follow a token",
        "Follow shows one token at every stage of the model.",
    )
    empty_actions = CAPTURE

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._followed: Capture | None = None
        self.head = PaneHead(tr(self.title))
        self._letter = label(factor=1.08, weight=600, kind="mark")
        self.head.add_beside_title(self._letter)
        self.export = self.export_button()
        self.head.add(self.export)
        self.trail = FollowCanvas()
        self.start_at(self.trail)
        vbox(self.content, self.head, (self.trail, 1))
        self.trail.picked.connect(self._pick)
        self.trail.head_picked.connect(self.select_head)

    # --- the view ---------------------------------------------------------------------------------

    def request(self, session: Session) -> Callable[[], Trace] | None:
        """One row of every stage's head, and all levels composed for this letter."""
        capture = session.capture
        if capture is None or not len(capture.main):
            return None
        self._followed = capture
        level = capture.spec.layers[session.selection.layer].level
        token, prompt = session.selection.query, capture.prompt_of(level)
        token = prompt.last if token is None else token
        wish = FollowOptions(session.selection, session.opened, session.facts)
        name_of = sentences.namer(capture, session.model)
        return partial(follow, capture, stages(capture.spec, level), token, wish, name_of)

    def draw(self, result: Trace) -> None:
        """Lay it out and paint it."""
        session, capture = self.session, self._followed  # the session may be at the next by now
        if session is None or capture is None:
            return
        prompt = capture.prompt_of(result.level)
        if result.token >= len(prompt):
            return
        label_, noun = prompt.label(result.token), prompt.unit
        self._letter.setText(shown(label_, 12))
        at = tr("({unit} {number:,})", unit=tr(noun), number=result.token)
        where = [region(prompt, word_spans(prompt), result.token), at, _way(capture, result.level)]
        said = " ".join(filter(None, where))
        if capture.off:
            said += "; " + tr("without {heads}", heads=counted(len(capture.off), "head"))
        self.head.note.say(said)
        self.trail.show_trace(capture, stages(capture.spec, result.level), result, session)

    def figure(self, session: Session) -> Spec | None:
        """All levels, with the heads on show."""
        if session.capture is None:
            return None
        from hgviz.figures import Spec

        heads = tuple(one.head for one in self.trail.looks if one.head is not None)
        return Spec("levels", session.selection, session.display, heads=heads)

    def as_text(self) -> str:
        """Where the answer comes from, all maps together."""
        return self.trail.story.trace.sentence if self.trail.story is not None else ""

    def as_table(self) -> list[list[str]] | None:
        """One row for each stage, with the strongest keys and their weights."""
        return of_story(self.trail.story) if self.trail.story is not None else None

    # --- inside -----------------------------------------------------------------------------------

    def _pick(self, token: int) -> None:
        if self.session is not None:
            self.session.select(query=token, key=None)


def _way(capture: Capture, level: int) -> str:
    if any(one.stride != 1 for one in capture.spec.levels):
        return tr("through the bottleneck and back")
    if not capture.spec.two_texts:
        return tr("through the layers")
    return tr("through the encoder") if level == 0 else tr("through the decoder")
