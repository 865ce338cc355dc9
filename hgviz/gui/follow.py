"""One token followed through every level."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
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
from PySide6.QtWidgets import QAbstractScrollArea, QFrame

from hgviz import palettes, tasks
from hgviz.core import (
    Capture,
    Display,
    Floats,
    HeadId,
    HgvizError,
    Integers,
    Prompt,
    Selection,
    Step,
    progress,
    progress_as,
)
from hgviz.figures.spec import Spec
from hgviz.gui import atlas, grid, ink, sentences, theme
from hgviz.gui.language import tr
from hgviz.gui.layouts import GROUPS, Stage, stages
from hgviz.gui.sentences import Verdict, coarseness
from hgviz.gui.textrows import CellTexts, Ruler, TextRow, Units, paint_row
from hgviz.gui.theme import write
from hgviz.gui.view import CAPTURE, Empty, View
from hgviz.gui.widgets import PaneHead, label, shows_tip, vbox
from hgviz.session import Session

if TYPE_CHECKING:
    from hgviz.analysis.roles import HeadRole

# --- layout ---------------------------------------------------------------------------------------

TOP, ARCS_HEIGHT = 16, 62  # px above all, and for the arcs
HIGH, ASIDE = 32, 8  # px of a strip, and of the margin of its silhouette
LEFT, THUMB, LANE = 184, 40, 54  # px: words, the small map of a head, the residual connection
PITCH, PITCH_BESIDE, PITCH_MOST = 142, 90, 320  # px between stages, between layers of a level
ROLLOUT = 156  # px of the last row and its words
NARROWER, NARROWEST = 0.87, 0.6  # how strips shrink from level to level
WIDEST, READABLE = 15.0, 6.8  # px of a character: at most, and where a long text is cut
THREAD = 14.0  # px: the thread at most, where a cell holds a whole word
PAST = 0.7  # of a window that is too short for the text lies before the token
LONGEST = 12  # characters of a word piece that are shown
MERGE_LINES = 6  # px between two lines of positions that meet
PAGE, ZOOM_MOST = (1600, 890), 1.6  # px of a page from which the picture grows, and how far

Ends = tuple[float, float]  # left and right, in px
Thread = tuple[float, float, float, float]  # left and right, at its top and at its bottom


@dataclass(frozen=True, slots=True, eq=False)
class StageStrip:
    """The text at one resolution.

    ruler: where its tokens are. tokens: those that are shown. first: the first position shown.
    before: the characters that the first cell reaches out before it.
    """

    level: int
    top: float
    ruler: Ruler
    tokens: Units
    first: int
    lefts: NDArray[np.float64]
    rights: NDArray[np.float64]
    before: float = 0.0

    @property
    def left(self) -> float:
        """The left edge of the first cell."""
        return float(self.lefts[0]) if len(self.lefts) else self.ruler.x(self.tokens[0])

    @property
    def right(self) -> float:
        """The right edge of the last cell."""
        return float(self.rights[-1]) if len(self.rights) else self.left

    @property
    def bottom(self) -> float:
        """The lower edge of the cells."""
        return self.top + HIGH

    @property
    def middle(self) -> float:
        """Half way down them."""
        return self.top + HIGH / 2

    def cell(self, position: int) -> Ends | None:
        """Left and right of a position; None where it is not shown."""
        at = position - self.first
        is_shown = 0 <= at < len(self.lefts)
        return (float(self.lefts[at]), float(self.rights[at])) if is_shown else None

    def at(self, x: float, y: float) -> int | None:
        """The position under a point."""
        if not self.top <= y < self.bottom:
            return None
        at = int(np.searchsorted(self.rights, x, side="right"))
        inside = at < len(self.lefts) and self.lefts[at] <= x
        return self.first + at if inside else None


@dataclass(frozen=True, slots=True)
class StageGap:
    """Between two stages: the thread, and who else gets the same; lines: x above, x below, and
    whether the token can know of it."""

    top: float
    bottom: float
    thread: Thread | None = None
    others: Thread | None = None
    lines: tuple[tuple[float, float, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class FollowLayout:
    """The whole picture. rollout: the strip of the last row. own: the token's position at each
    stage. cells: its left and right; where the strip is of another text, of the stage before."""

    width: float
    height: float
    strips: tuple[StageStrip, ...]
    gaps: tuple[StageGap, ...]
    rollout: StageStrip
    own: tuple[int | None, ...]
    cells: tuple[Ends | None, ...]


def stages_that_fit(height: float) -> int:
    """How many stages of a model of one resolution have room on a page, GROUPS at least."""
    free = height - TOP - ARCS_HEIGHT - HIGH - ROLLOUT
    return max(GROUPS, 1 + int(free // PITCH_BESIDE))


def margins(way: Sequence[Stage]) -> tuple[int, int]:
    """Px left and right of the strips, for words and small maps."""
    return LEFT, THUMB + 25 + (LANE if way[-1].kind == "last" else 0)


def zoom_of(way: Sequence[Stage], characters: float, width: float, height: float) -> float:
    """How much larger a picture is drawn on a page of width x height px: it grows with the page as
    long as all of the text and every stage stay on it."""
    pitch = PITCH_BESIDE if way[0].one_level else PITCH
    needed = TOP + ARCS_HEIGHT + HIGH + pitch * (len(way) - 1) + ROLLOUT
    zooms = width / PAGE[0], height / PAGE[1], height / needed
    return max(1.0, min(ZOOM_MOST, *zooms, width / (sum(margins(way)) + characters * WIDEST)))


def window(edges: NDArray[np.float64], token: int, fits: float, unit: int) -> Units:
    """The tokens shown where not all fit: around the token, most of them before it.

    It begins at a multiple of unit, so that no position is cut at any level.
    """
    tokens = len(edges) - 1
    if edges[-1] <= fits:
        return 0, tokens
    start = min(max(0.0, edges[token] - PAST * fits), edges[-1] - fits)
    first = int(np.searchsorted(edges, start)) // unit * unit
    last = int(np.searchsorted(edges, edges[first] + fits, side="right")) - 1
    return first, min(tokens, max(last, token + 1))


def lay_out(
    capture: Capture,
    way: Sequence[Stage],
    token: int,
    texts: Sequence[CellTexts],
    size: tuple[float, float],
    readable: float = READABLE,
) -> FollowLayout:
    """Strips for every stage, narrower where the text is shorter, with the token's own cells.

    texts: what is written at each level. size: width and height, in px. readable: the least width
    of a character.
    """
    levels, left, right = capture.spec.levels, *margins(way)
    finest = next((level.index for level in levels if level.stride == 1), 0)
    home = way[0].own if way[0].one_level else finest
    edges = [np.concatenate([[0.0], np.cumsum(text.widths)]) for text in texts]
    steps = [coarseness(levels[stage.level]) for stage in way]
    depths = sorted({*steps})
    scales = [max(NARROWEST, NARROWER ** depths.index(step)) for step in steps]
    wide = max(80.0, size[0] - left - right)
    unit = max((level.stride or 1 for level in levels), default=1)
    shown = window(edges[home], token, wide * min(scales) / readable, unit)
    character = min(WIDEST, wide / max(1.0, edges[home][shown[1]] - edges[home][shown[0]]))
    free = size[1] - TOP - ROLLOUT - ARCS_HEIGHT - HIGH
    least = PITCH_BESIDE if way[0].one_level else PITCH
    pitch = min(PITCH_MOST, max(least, free / max(1, len(way) - 1)))
    middle, top = left + wide / 2, float(TOP + ARCS_HEIGHT)
    strips = []
    for stage, scale in zip(way, scales, strict=True):
        written, tokens, width = edges[stage.level], shown, character * scale
        if stage.away:  # another text, about as far along
            count, own_count = len(written) - 1, len(capture.prompt_of(stage.own))
            near = min(max(0, count - 1), token * count // max(1, own_count))
            tokens = window(written, near, wide / readable, 1)
            width = min(WIDEST, wide / max(1.0, written[tokens[1]] - written[tokens[0]]))
        place = middle, wide * scale
        strips.append(_strip(capture, stage.level, written, tokens, place, top, width))
        top += pitch
    below = strips[-1].bottom + 44
    rollout = _strip(capture, home, edges[home], shown, (middle, wide), below, character)
    own = tuple(None if s.away else capture.position(s.level, token) for s in way)
    cells: list[Ends | None] = []
    for strip, position in zip(strips, own, strict=True):
        cells.append(strip.cell(position) if position is not None else cells[-1] if cells else None)
    gaps = tuple(
        StageGap(above.bottom, below.top, _thread(*cells[number : number + 2]))
        if way[number].one_level
        else _gap(capture, above, below, token)
        for number, (above, below) in enumerate(zip(strips, strips[1:], strict=False))
    )
    height = max(size[1], strips[-1].bottom + ROLLOUT)
    return FollowLayout(size[0], height, tuple(strips), gaps, rollout, own, tuple(cells))


def _strip(
    capture: Capture,
    level: int,
    edges: NDArray[np.float64],
    tokens: Units,
    place: tuple[float, float],
    top: float,
    width: float,
) -> StageStrip:
    """The strip of some tokens at a level. place: its middle, and its width at most."""
    (first, last), (middle, wide) = tokens, place
    spans: Integers = capture.spans[level]
    inside = np.flatnonzero((spans[:, 0] >= 0) & (spans[:, 1] > first) & (spans[:, 1] <= last))
    if not len(inside):
        ruler = Ruler(edges, width, wide, float(edges[first]) * width - middle)
        return StageStrip(level, top, ruler, tokens, 0, np.zeros(0), np.zeros(0))
    start, end = spans[inside[0]].tolist()
    before = float(edges[first] - edges[min(start, first)])
    stride, shift = capture.spec.levels[level].stride, capture.spec.levels[level].shift
    if inside[0] == 0 and shift and stride and stride > end - start and len(inside) > 1:
        before = float(stride - (end - start))  # the zeros of the causal shift
    characters = before + float(edges[spans[inside[-1], 1]] - edges[first])
    width = min(width, wide / characters)
    left = middle - characters * width / 2
    ruler = Ruler(edges, width, wide, (float(edges[first]) - before) * width - left)
    rights = edges[spans[inside, 1]] * width - ruler.offset
    lefts = np.concatenate([[left], rights[:-1]])
    return StageStrip(level, top, ruler, tokens, int(inside[0]), lefts, rights, before)


def _thread(cell: Ends | None, next_cell: Ends | None) -> Thread | None:
    """Between two strips of one resolution a thread is no wider than it need be."""
    if cell is None or next_cell is None:
        return None
    ends = [((a + b) / 2, min(THREAD, b - a) / 2) for a, b in (cell, next_cell)]
    (a, wide), (b, wide_below) = ends
    return a - wide, a + wide, b - wide_below, b + wide_below


def _gap(capture: Capture, above: StageStrip, below: StageStrip, token: int) -> StageGap:
    """Between two levels of one text: what is pooled on the way in, who receives on the way out."""
    upper, lower = (coarseness(capture.spec.levels[s.level]) for s in (above, below))
    own, next_own = (capture.position(s.level, token) for s in (above, below))
    top, bottom = above.bottom, below.top
    a, b = above.cell(own), below.cell(next_own)
    if a is None or b is None:
        return StageGap(top, bottom)
    if upper < lower:
        start, end = capture.spans[below.level][next_own].tolist()
        start = max(start, above.tokens[0])
        thread = (above.ruler.x(start), above.ruler.x(max(end, start + 1)), *b)
        return StageGap(top, bottom, thread, None, _meeting(capture, above, below, token, True))
    lines = _meeting(capture, below, above, token, False) if upper > lower else ()
    back = _receivers(capture, above.level, below.level, own) if upper > lower else range(0)
    cells = [cell for position in back if (cell := below.cell(position))]
    others = (*a, cells[0][0], cells[-1][1]) if cells else None
    reached = upper <= lower or next_own in back  # what was left out gets nothing back
    return StageGap(top, bottom, (*a, *b) if reached else None, others, lines)


def _receivers(capture: Capture, inner: int, outer: int, position: int) -> range:
    """The positions that a shortened one was pooled from."""
    upper, lower = (capture.spec.levels[level].stride for level in (inner, outer))
    if upper and lower:
        times, apart = upper // lower, capture.spec.levels[inner].apart
        first = (position - apart) * times + apart
        return range(max(0, first), min(first + times, len(capture.spans[outer])))
    ends = capture.spans[inner][:, 1]  # a segment is read from its last token on
    is_last = position + 1 >= len(ends)
    stop = len(capture.spans[outer]) if is_last else int(ends[position + 1]) - 1
    return range(max(0, int(ends[position]) - 1), stop)


def _meeting(
    capture: Capture, outer: StageStrip, inner: StageStrip, token: int, inward: bool
) -> tuple[tuple[float, float, bool], ...]:
    """Which positions meet: x above, x below, and whether the token can know of it.

    Going in a position ends where its newest token ends; going out it begins at the first token
    that receives it, which is later by the causal shift.
    """
    spans, level = capture.spans[inner.level], capture.spec.levels[inner.level]
    stride, apart = level.stride, level.apart
    every = max(1, -(-len(inner.lefts) * MERGE_LINES // max(1, int(inner.right - inner.left))))
    lines = []
    for at in range(0, len(inner.lefts), every):
        position = inner.first + at
        end = int(spans[position, 1])
        meets = end if inward else end - 1
        if not inward and stride is not None:
            meets = max(0, (position - apart) * stride + apart)
        if not len(outer.lefts) or not outer.tokens[0] <= meets < len(outer.ruler.edges):
            continue
        x = outer.ruler.x(meets)
        if outer.left <= x <= outer.right + 1:
            ends = (x, float(inner.rights[at])) if inward else (float(inner.lefts[at]), x)
            lines.append((*ends, end <= token + 1))
    return tuple(lines)


# --- trace ----------------------------------------------------------------------------------------

ARCS = 5  # strongest keys of a stage
SOURCES = 3  # named in the sentence beneath the last row
BLANKS = {"": "nothing", **sentences.BLANKS}


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage: the weights of the token's own position in one head.

    weights (keys,): None where there are none. seen: how many keys it sees.
    top: the strongest keys, position and weight, strongest first. thumb: the head's small map.
    """

    head: HeadId | None = None
    weights: Floats | None = None
    seen: int = 0
    signed: bool = False
    top: tuple[tuple[int, float], ...] = ()
    name: str = ""
    role: str = ""
    thumb: atlas.Thumb | None = None

    @property
    def most(self) -> float:
        """The largest weight by magnitude."""
        return float(np.abs(self.weights).max(initial=0)) if self.weights is not None else 0.0


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything the picture says about one token. chips: one per gap, "" for none. rollout: the
    row of the token in the attention rollout, None where there is none."""

    capture: Capture
    token: int
    way: tuple[Stage, ...]
    rows: tuple[StageRow, ...]
    chips: tuple[str, ...]
    verdict: Verdict
    rollout: Floats | None = None
    sentence: str = ""
    level: int = 0


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """The heads to follow: the selected one, those opened last, and the roles of all. name_of: what
    a token of the vocabulary is called."""

    selection: Selection
    opened: Mapping[int, HeadId]
    facts: Mapping[HeadId, HeadRole]
    name_of: Callable[[int], str] = str


def follow(capture: Capture, way: Sequence[Stage], token: int, options: FollowOptions) -> Trace:
    """Read one row per stage, then compute the rollout of this one token.

    The progress carries the trace without its last row, which takes longest, once it is there.
    """
    rows, chips = [], []
    for number, stage in enumerate(way):
        progress(number, len(way) + 1, "Reading the row of every stage")
        rows.append(_read_stage(capture, stage, token, options))
        if number:
            chips.append(_resampling(capture, way[number - 1], stage, token))
    level = way[0].own if way else 0
    is_main = capture.prompt_of(level) is capture.main
    verdict = sentences.of_text(capture)
    if is_main:
        verdict = sentences.of_token(capture, token, options.name_of)
    first = Trace(capture, token, tuple(way), tuple(rows), tuple(chips), verdict, level=level)
    composing = Step(len(way), len(way) + 1, "Computing the attention rollout", first)
    progress(composing.done, composing.total, composing.note, first)
    # with the value each time: of reports that come fast only the newest is heard
    with progress_as(lambda step: composing):
        weights, sentence = _rollout(capture, token, level)
    return replace(first, rollout=weights, sentence=sentence)


def _read_stage(capture: Capture, stage: Stage, token: int, options: FollowOptions) -> StageRow:
    captured = {index for index in stage.layers if capture.maps[index] is not None}
    heads = [head for head in capture.spec.heads if head.layer in captured]
    heads = [head for head in heads if head not in capture.off]
    if not heads:
        return StageRow(role="" if stage.kind == "text" else tr("not captured"))
    preferred = options.selection.head_id, options.opened.get(stage.level)
    head = next((head for head in preferred if head in heads), None)
    if head is None:  # the one with the clearest role
        facts = options.facts
        head = max(heads, key=lambda head: facts[head].clarity if head in facts else 0.0)
    role, attention = options.facts.get(head), capture.maps[head.layer]
    row = capture.position(stage.own, token)
    weights = attention.read(head.head, rows=(row, row + 1))[0]
    causal = capture.spec.layers[stage.layers[0]].causal
    order = np.argsort(-np.abs(weights), kind="stable")[:ARCS]
    return StageRow(
        head, weights, min(row + 1, len(weights)) if causal else len(weights),
        grid.signed(capture, head),
        tuple((int(key), float(weights[key])) for key in order if weights[key] != 0),
        tr("head {head}", head=head), tr(role.role) if role is not None else "",
        atlas.thumb(capture, attention, capture.spec.layers[head.layer], head.head),
    )  # fmt: skip


def quoted_token(text: str) -> str:
    """A piece of text in a sentence: in quotation marks, or a word for what cannot be seen."""
    return tr(BLANKS[text]) if text in BLANKS else f"“{sentences.shown(text, LONGEST)}”"


def _quoted_span(capture: Capture, span: Integers) -> str:
    start, end = span.tolist()
    if start < 0:
        return tr("padding at the start")
    return quoted_token(capture.prompt.words(start, end) or capture.prompt.label(start))


def _resampling(capture: Capture, before: Stage, stage: Stage, token: int) -> str:
    """The resampling between two stages in a few words."""
    if stage.level == before.level or stage.one_level:
        return ""
    level, level_before = (capture.spec.levels[place.level] for place in (stage, before))
    inward = coarseness(level) > coarseness(level_before)
    words = _weighed(capture, stage, token)
    if not words:
        words = _pooled(capture, stage, token) if inward else _given(capture, before, stage, token)
    spans, position = capture.spans[stage.level], capture.position(stage.level, token)
    if inward and not spans[position, 0] <= token < spans[position, 1]:
        rest = "{name} is left out" if level.apart else "{name} is pooled into the next group"
        if level.stride is None and position + 1 == len(spans):
            rest = "{name} is not in a segment yet"
        words += f"; {tr(rest, name=quoted_token(capture.prompt.label(token)))}"
    return words


def _weighed(capture: Capture, stage: Stage, token: int) -> str:
    """The strongest key of the attention that resamples; "" without one."""
    index = stage.entries[-1] if stage.entries else None
    if index is None or capture.spec.layers[index].level != stage.level:
        return ""  # or of a level between, that nothing stays at
    layer, attention = capture.spec.layers[index], capture.maps[index]
    if attention is None or not layer.heads or (layer.window is not None and layer.role == "up"):
        return ""
    row = capture.row(index, token)
    weights = np.mean([attention.read(head, rows=(row, row + 1))[0] for head in layer.heads], 0)
    keys = capture.key_spans(index)
    if layer.window is not None:
        start = row * layer.window
        places = range(start, min(start + layer.window, len(weights)))
        parts = [f"{_quoted_span(capture, keys[at])} {sentences.weight(float(weights[at]))}"
                 for at in places]  # fmt: skip
        return " + ".join(parts[-4:])
    best = int(np.abs(weights).argmax())
    return tr(
        "{name} attends most to {other} {weight}",
        name=_quoted_span(capture, capture.query_spans(index)[row]),
        other=_quoted_span(capture, keys[best]),
        weight=sentences.weight(weights[best]),
    )


def _pooled(capture: Capture, stage: Stage, token: int) -> str:
    """The positions that were pooled into one, where no attention weighed them."""
    span = capture.spans[stage.level][capture.position(stage.level, token)]
    if span[1] - span[0] > 4:
        return _quoted_span(capture, span)
    return " + ".join(quoted_token(capture.prompt.label(token)) for token in range(*map(int, span)))


def _given(capture: Capture, before: Stage, stage: Stage, token: int) -> str:
    """Who receives a shortened position."""
    source = capture.position(before.level, token)
    position = capture.position(stage.level, token)
    receivers = _receivers(capture, before.level, stage.level, source)
    name = _quoted_span(capture, capture.spans[stage.level][position])
    if position not in receivers:
        return tr("{name} was left out", name=name)
    others = " and {many} more" if len(receivers) > 1 else ""
    many = sentences.number(len(receivers) - 1)
    source_name = _quoted_span(capture, capture.spans[before.level][source])
    words = "{source} goes to {name}" + others
    return tr(words, source=source_name, name=name, many=many)


def _rollout(capture: Capture, token: int, level: int) -> tuple[Floats | None, str]:
    """The row of a token in the attention rollout, and a sentence of it, or why there is none."""
    prompt = capture.prompt_of(level)
    if prompt is not capture.main:
        return None, tr("Rollout needs a token of the target: choose one.")
    try:
        rows = tasks.rollout(capture, (token, token + 1))
    except HgvizError as error:
        return None, " ".join(map(tr, error.lines))
    before = rows.shape[1] - len(prompt)  # columns of the source come first
    weights, source = rows[0][before:], rows[0][:before]
    parts = [tr("itself {share}", share=sentences.weight(float(weights[token])))]
    parts += _sources(prompt, weights, token, SOURCES - int(before > 0))
    if before:
        share = sentences.weight(float(source.sum(dtype=np.float64)))
        best = ", ".join(_sources(capture.prompt, source, None, 2))
        parts.append(tr("the source {share} ({best})", share=share, best=best))
    return weights, tr("Attention rollout (with residual): {sources}.", sources=", ".join(parts))


def _sources(prompt: Prompt, weights: Floats, token: int | None, most: int) -> list[str]:
    """The tokens with the largest shares of an answer, in words."""
    words = sentences.word_spans(prompt)
    order = [key for key in np.argsort(-weights, kind="stable").tolist()
             if weights[key] > 0 and key != token]  # fmt: skip
    sources = []
    for key in order[:most]:
        text, word = prompt.label(key), sentences.word_at(words, key)
        name = quoted_token(text)
        if word is not None and prompt.spans[key, 0] >= 0:
            around = prompt.words(*word).strip()
            if around != text.strip():
                name = tr("{name} of {word}", name=name, word=quoted_token(around))
        sources.append(f"{name} {sentences.weight(float(weights[key]))}")
    return sources


# --- scene ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FollowScene:
    """Everything the picture shows. texts: what is written at each level."""

    layout: FollowLayout
    trace: Trace
    display: Display
    texts: tuple[CellTexts, ...]

    @property
    def unit(self) -> str:
        """The name of a followed token."""
        return self.texts[self.trace.level].prompt.unit

    @property
    def rollout(self) -> StageRow:
        """The last row: the tokens that can have had a part in the answer count as seen."""
        weights, level = self.trace.rollout, self.trace.level
        if weights is None:
            return StageRow()
        layers = [layer for layer in self.trace.capture.spec.layers if layer.level == level]
        causal = all(layer.causal for layer in layers if layer.role == "self")
        return StageRow(weights=weights, seen=self.trace.token + 1 if causal else len(weights))

    def head_box(self, number: int) -> QRectF:
        """The box of the small map of a stage's head, right of its strip."""
        strip = self.layout.strips[number]
        return QRectF(strip.right + ASIDE + 10, strip.middle - THUMB / 2, THUMB, THUMB)


# --- painting -------------------------------------------------------------------------------------

MARGIN, LINE = 16, 17  # px: around all, and from line to line
ARC = 54.0  # px: the highest arc


class FollowPainter:
    """One painting of a scene."""

    def __init__(self, painter: QPainter, scene: FollowScene, zoom: float) -> None:
        self.painter, self.scene, self.zoom = painter, scene, zoom
        self.layout, self.theme = scene.layout, theme.current()

    def paint(self) -> None:
        trace, gaps, strips, side = self.scene.trace, self.layout.gaps, self.layout.strips, ASIDE
        corners = [QPointF(strip.right + side, y) for strip in strips
                   for y in (strip.top - side, strip.bottom + side)]  # fmt: skip
        corners += [QPointF(strip.left - side, y) for strip in reversed(strips)
                    for y in (strip.bottom + side, strip.top - side)]  # fmt: skip
        self._fill(ink.faint(self.theme.silhouette[0], 0.65), corners)
        pens = [QPen(ink.faint(self.theme.edge, alpha), 1) for alpha in (0.4, 1.0)]
        for gap in gaps:
            for above, below, is_known in gap.lines:
                self.painter.setPen(pens[is_known])
                self.painter.drawLine(QPointF(above, gap.top + 5), QPointF(below, gap.bottom - 6))
        for gap in gaps:
            for ribbon, alpha in ((gap.others, 0.35), (gap.thread, 0.94)):
                if gap.thread is not None and ribbon is not None:
                    (a, b, c, d), top, bottom = ribbon, gap.top + 3, gap.bottom - 3
                    ends = (a, top), (b, top), (d, bottom), (c, bottom)
                    corners = [QPointF(*end) for end in ends]
                    self._fill(ink.faint(self.theme.mark, alpha), corners)
        for number, row in enumerate(trace.rows):
            self._stage(number, row)
        for gap, words in zip(gaps, trace.chips, strict=False):
            if words and gap.thread is not None:
                self._chip(gap, words, gap.thread)
        if trace.way[-1].kind == "last":
            x, top = self.scene.head_box(0).right() + 4, strips[0].middle
            box = QRectF(x, top, 26, strips[-1].middle - top)
            ink.bypass(self.painter, box, tr("residual (skip) connection"))
        self._rollout()

    def _fill(self, colour: QColor, corners: list[QPointF]) -> None:
        self.painter.setPen(Qt.PenStyle.NoPen)
        self.painter.setBrush(colour)
        self.painter.drawPolygon(QPolygonF(corners))

    def _stage(self, number: int, row: StageRow) -> None:
        """Number and words left of a strip, its cells and links, the small map right of it."""
        strip = self.layout.strips[number]
        stage, capture, now = self.scene.trace.way[number], self.scene.trace.capture, self.theme
        self.painter.setPen(Qt.PenStyle.NoPen)
        self.painter.setBrush(now.text)
        self.painter.drawEllipse(QPointF(MARGIN + 12, strip.middle), 12, 12)
        badge = QRectF(MARGIN, strip.middle - 12, 24, 24)
        write(self.painter, badge, str(stage.number), theme.font(0.92, 600), now.pane, theme.CENTRE)
        notes = stage.notes(capture.spec, len(capture.spans[stage.level]))
        lines = [stage.title(capture.spec), *notes, stage.named(row.name), row.role]
        x, room = MARGIN + 34, strip.left - ASIDE - 6 - MARGIN - 34
        y, font, colour = strip.middle - LINE * len(lines) / 2, theme.font(1.0, 600), now.text
        for line in lines:
            write(self.painter, QRectF(x, y, room, LINE), line, font, colour)
            y, font, colour = y + LINE, theme.font(0.85), now.secondary
        if row.thumb is not None:
            self._thumb(row.thumb, self.scene.head_box(number))
        self._strip(strip, row)
        self._links(number, row)
        self._frame(strip, self.layout.own[number])

    def _strip(self, strip: StageStrip, row: StageRow) -> None:
        """Cells that are seen in the colour of their weight, the rest grey, with their letters."""
        capture, stop = self.scene.trace.capture, strip.first + len(strip.lefts)
        weights = np.zeros(stop - strip.first, np.float32)
        if row.weights is not None:  # a stranger's map may have fewer keys
            weights[: max(0, len(row.weights) - strip.first)] = row.weights[strip.first : stop]
        cells = TextRow(
            "", self.scene.texts[strip.level], capture.spans[strip.level][strip.first : stop],
            weights=weights, seen=np.arange(strip.first, stop) < row.seen, signed=row.signed,
            limits=palettes.limits_of(-row.most, row.most, row.signed),
            merged=capture.spec.levels[strip.level].stride != 1,
        )  # fmt: skip
        band, display = QRectF(0, strip.top, 0, HIGH), self.scene.display
        paint_row(self.painter, cells, band, strip.ruler, strip.tokens, display, strip.before)

    def _frame(self, strip: StageStrip, own: int | None) -> None:
        cell = None if own is None else strip.cell(own)
        if cell is not None:
            box = QRectF(cell[0], strip.top, cell[1] - cell[0], HIGH).adjusted(-1, -2, 1, 2)
            theme.draw_box(self.painter, box, 4, edge=self.theme.mark, width=2.5)

    def _thumb(self, thumb: atlas.Thumb, box: QRectF) -> None:
        size = round(THUMB * self.zoom * self.painter.device().devicePixelRatioF())
        palette = self.scene.display.palette
        pixels = atlas.painted(thumb, size, size, palette, self.theme.dark)
        theme.draw_box(self.painter, box, 3, self.theme.pane)
        self.painter.drawImage(box, ink.image(pixels))
        theme.draw_box(self.painter, box, 3, edge=self.theme.edge)

    def _links(self, number: int, row: StageRow) -> None:
        """Draw arcs from the token to its strongest keys, or curves to another text.

        Orange, or blue dashes below zero, wider for more; hollow where the key is not shown.
        """
        strip, own = self.layout.strips[number], self.layout.own[number]
        cell = self.layout.cells[number]
        if cell is None or (own is None and not number):
            return
        is_arc = own is not None
        top = strip.top - 2 if is_arc else self.layout.strips[number - 1].bottom + 4
        start = QPointF(sum(cell) / 2, top)
        for key, weight in reversed(row.top):
            if key == own:
                continue
            there = strip.cell(key)
            edge = strip.left if key < strip.first else strip.right
            end = QPointF(edge if there is None else sum(there) / 2, strip.top - 4)
            up = end.y() - min(ARC, 14 + 0.1 * abs(start.x() - end.x())) * 4 / 3
            middle = (start.y() + end.y()) / 2
            bends = (up, up) if is_arc else (middle + 10, middle - 10)
            path = QPainterPath(start)
            path.cubicTo(QPointF(start.x(), bends[0]), QPointF(end.x(), bends[1]), end)
            share = abs(weight) / (row.most or 1.0)
            colour = self.theme.mark if weight >= 0 else ink.sides()[0]
            pen = QPen(ink.faint(colour, 0.45 + 0.55 * share), 1.1 + 3.2 * share * share)
            if weight < 0:
                pen.setDashPattern([4, 2])
            self.painter.strokePath(path, pen)
            self.painter.setPen(QPen(colour, 1.2))
            self.painter.setBrush(self.theme.pane if there is None else colour)
            self.painter.drawEllipse(end, 2.4, 2.4)

    def _chip(self, gap: StageGap, words: str, thread: Thread) -> None:
        font = theme.font(0.92)
        wide, y = _width(font, words) + 20, gap.top + 16
        part = (y + 11 - gap.top) / (gap.bottom - gap.top)
        a, b, c, d = thread
        x = a + (c - a) * part - wide - 10
        if x < MARGIN:
            x = min(b + (d - b) * part + 10, self.layout.width - wide - MARGIN)
        self._pill(QRectF(x, y, wide, 22), words, font, self.theme.text, framed=True)

    def _rollout(self) -> None:
        """The last row, a sentence of it, and what the model predicts."""
        strip, trace, now = self.layout.rollout, self.scene.trace, self.theme
        self.painter.setPen(QPen(now.line, 1))
        y = round(strip.top - 17) + 0.5
        self.painter.drawLine(QPointF(0, y), QPointF(self.layout.width, y))
        bold, quiet = theme.font(0.92, 600), theme.font(0.92)
        line = QFontMetricsF(bold).lineSpacing()
        for number, word in enumerate(tr("Attention rollout").split(" ", 1)):
            box = QRectF(MARGIN, strip.middle - line + number * line, 120, line)
            write(self.painter, box, word, bold, now.text)
        self._strip(strip, self.scene.rollout)
        self._frame(strip, trace.token)
        room, metrics = self.layout.width - LEFT - MARGIN, QFontMetricsF(quiet)
        sentence = metrics.elidedText(trace.sentence, Qt.TextElideMode.ElideRight, 1.9 * room)
        lines = 2 if metrics.horizontalAdvance(sentence) > room else 1
        box = QRectF(LEFT, strip.bottom + 12, room, metrics.lineSpacing() * lines + 2)
        self.painter.setFont(quiet)
        self.painter.setPen(now.secondary)
        self.painter.drawText(box, Qt.TextFlag.TextWordWrap | theme.TO_LEFT, sentence)
        self._answers(LEFT, box.bottom() + 6)

    def _answers(self, x: float, y: float) -> None:
        """The likeliest answers with their shares, and at the right what the → key does."""
        verdict, unit = self.scene.trace.verdict, self.scene.unit
        now, end = self.theme, self.layout.width
        quiet, mono, small = theme.font(0.92), theme.mono(0.92, 600), theme.font(0.85)
        if verdict.answers:
            question = verdict.question(unit)
            x += write(self.painter, QRectF(x, y, end - x, 18), question, quiet, now.secondary) + 10
        for answer, part in verdict.answers:
            box = QRectF(x, y - 1, _width(mono, answer) + 16, 20)
            self._pill(box, answer, mono, now.text)
            box = QRectF(box.right() + 6, y, end, 18)
            x = box.left() + write(self.painter, box, sentences.share(part), quiet, now.secondary)
            x += 14
        words, wide = tr("next {unit}", unit=tr(unit)), _width(small, "→") + 14
        left = end - MARGIN - wide - 8 - _width(quiet, words)
        if left >= x + 16:
            self._pill(QRectF(left, y - 1, wide, 20), "→", small, now.secondary, framed=True)
            box = QRectF(left + wide + 8, y, end, 18)
            write(self.painter, box, words, quiet, now.secondary)

    def _pill(
        self, box: QRectF, text: str, font: QFont, colour: QColor, framed: bool = False
    ) -> None:
        """A few words on a ground of their own, with a frame or without."""
        radius, edge = 11 if box.height() > 20 else 4, self.theme.edge if framed else None
        ground = self.theme.pane if framed else self.theme.hover
        theme.draw_box(self.painter, box, radius, ground, edge)
        write(self.painter, box, text, font, colour, theme.CENTRE)


def _width(font: QFont, text: str) -> float:
    return QFontMetricsF(font).horizontalAdvance(text)


# --- canvas ---------------------------------------------------------------------------------------

WALKS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}  # by key: how many tokens on


class FollowCanvas(QAbstractScrollArea):
    """Paints the way of a token, and says what was clicked."""

    own_keys = tuple(WALKS)
    picked = Signal(int)  # a token
    head_picked = Signal(object)  # HeadId

    def __init__(self) -> None:
        super().__init__()
        self.scene: FollowScene | None = None
        self.zoom = 1.0
        self._picture: QPixmap | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Follow one token"))
        self.viewport().setMouseTracking(True)
        self.verticalScrollBar().setSingleStep(24)

    def show_trace(self, trace: Trace, display: Display) -> None:
        """Show the way of one token."""
        prompts = [trace.capture.prompt_of(level) for level in range(len(trace.capture.spans))]
        by_prompt = {id(prompt): CellTexts.of_tokens(prompt, LONGEST) for prompt in prompts}
        texts = tuple(by_prompt[id(prompt)] for prompt in prompts)
        view = self.viewport().size()
        characters = float(texts[trace.level].widths.sum())
        self.zoom = zoom_of(trace.way, characters, view.width(), view.height())
        size = view.width() / self.zoom, view.height() / self.zoom
        narrow = QFontMetricsF(theme.mono(0.85)).horizontalAdvance("m")
        layout = lay_out(trace.capture, trace.way, trace.token, texts, size, narrow)
        self.scene, self._picture = FollowScene(layout, trace, display, texts), None
        name = sentences.quoted(sentences.shown(texts[trace.level].prompt.label(trace.token)))
        about = f"{tr(self.scene.unit)} {trace.token:,} {name}. {trace.sentence}"
        self.setAccessibleDescription(about)
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, round(layout.height * self.zoom - view.height())))
        bar.setPageStep(view.height())
        self.viewport().update()

    def rearrange(self) -> None:
        """Lay out again, for another size, theme or font."""
        if self.scene is not None:
            self.show_trace(self.scene.trace, self.scene.display)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        by = WALKS.get(Qt.Key(event.key()))
        if by is None or event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().keyPressEvent(event)
        elif self.scene is not None:
            trace = self.scene.trace
            last = len(self.scene.texts[trace.level].prompt) - 1
            self.picked.emit(max(0, min(last, trace.token + by)))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        scene = self.scene
        if scene is None or event.button() != Qt.MouseButton.LeftButton:
            return
        place = self._in_scene(event.position())
        cell = self._cell_at(place)
        if cell is not None:
            strip, position = cell
            capture = scene.trace.capture
            sequences = [level.sequence for level in capture.spec.levels]
            if sequences[strip.level] == sequences[scene.trace.level]:
                self.picked.emit(int(capture.spans[strip.level][position][1]) - 1)
            return
        for number, row in enumerate(scene.trace.rows):
            if row.head is not None and scene.head_box(number).contains(place):
                self.head_picked.emit(row.head)

    def _in_scene(self, place: QPointF) -> QPointF:
        return QPointF(place.x(), place.y() + self.verticalScrollBar().value()) / self.zoom

    def _cell_at(self, place: QPointF) -> tuple[StageStrip, int] | None:
        for strip in (*self.scene.layout.strips, self.scene.layout.rollout):
            position = strip.at(place.x(), place.y())
            if position is not None:
                return strip, position
        return None

    def viewportEvent(self, event: QEvent) -> bool:
        return shows_tip(event, self, self.words_at) or super().viewportEvent(event)

    def words_at(self, place: QPointF) -> str:
        """The token under a place of the viewport, and its weight."""
        cell, scene = self._cell_at(self._in_scene(place)), self.scene
        if cell is None or scene is None:
            return ""
        strip, position = cell
        start, end = scene.trace.capture.spans[strip.level][position].tolist()
        name = sentences.shown(scene.texts[strip.level].prompt.words(start, end))
        row = scene.rollout
        if strip is not scene.layout.rollout:
            row = scene.trace.rows[scene.layout.strips.index(strip)]
        if row.weights is None:
            return name
        if position >= row.seen:
            return tr("{name}: masked (causal)", name=name)
        return f"{name} {sentences.weight(float(row.weights[position]), 3)}"

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.rearrange()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self.rearrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self.viewport()) as painter:
            painter.fillRect(self.viewport().rect(), theme.current().pane)
            if self.scene is None:
                return
            picture = self._painted(self.scene)
            painter.drawPixmap(0, -self.verticalScrollBar().value(), picture)
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(self.viewport().rect()))

    def _painted(self, scene: FollowScene) -> QPixmap:
        """The picture of a scene; painting it takes longer than a frame, so it is kept."""
        ratio = self.devicePixelRatioF()
        if self._picture is None or self._picture.devicePixelRatio() != ratio:
            size = QSizeF(scene.layout.width, scene.layout.height) * self.zoom * ratio
            self._picture = QPixmap(size.toSize())
            self._picture.setDevicePixelRatio(ratio)
            self._picture.fill(theme.current().pane)
            painter = theme.smooth_painter(self._picture)
            painter.scale(self.zoom, self.zoom)
            FollowPainter(painter, scene, self.zoom).paint()
            painter.end()
        return self._picture


# --- view -----------------------------------------------------------------------------------------


class FollowView(View):
    """One token through all levels: what it attends to, how it is pooled and spread again."""

    title, topic = "Follow", "follow"
    needs = ("capture", "selection", "opened", "facts", "display", "dark")
    empty = Empty(
        "Run the model on a text to follow a token",
        "Follow shows one token at every stage of the model.", CAPTURE,
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title))
        self.token = label(factor=1.08, weight=600, kind="mark")
        self.head.add_beside_title(self.token)
        self.head.add(self.export_button())
        self.canvas = FollowCanvas()
        self.start_at(self.canvas)
        vbox(self.content, self.head, (self.canvas, 1))
        self.canvas.picked.connect(lambda token: self.session.select(query=token, key=None))
        self.canvas.head_picked.connect(self.select_head)

    def request(self, session: Session) -> Callable[[], Trace] | None:
        capture = session.capture
        if capture is None or not len(capture.main):
            return None
        level = capture.spec.layers[session.selection.layer].level
        token, prompt = session.selection.query, capture.prompt_of(level)
        token = prompt.last if token is None else token
        way = stages(capture.spec, level, stages_that_fit(self.canvas.viewport().height()))
        name_of = sentences.namer(capture, session.model)
        options = FollowOptions(session.selection, session.opened, session.facts, name_of)
        return partial(follow, capture, way, token, options)

    def draw(self, result: Trace) -> None:
        capture = result.capture  # the session may be at the next by now
        prompt = capture.prompt_of(result.level)
        if result.token >= len(prompt):
            return
        self.token.setText(sentences.shown(prompt.label(result.token), LONGEST))
        at = tr("({unit} {number:,})", unit=tr(prompt.unit), number=result.token)
        region = sentences.region(prompt, sentences.word_spans(prompt), result.token)
        words = " ".join(filter(None, [region, at, _way_words(capture, result.level)]))
        if capture.off:
            heads = sentences.counted(len(capture.off), "head")
            words += "; " + tr("{heads} off", heads=heads)
        self.head.note.say(words)
        self.canvas.show_trace(result, self.session.display)

    def figure(self, session: Session) -> Spec | None:
        if session.capture is None:
            return None
        rows = self.canvas.scene.trace.rows if self.canvas.scene is not None else ()
        heads = tuple(row.head for row in rows if row.head is not None)
        return Spec("levels", session.selection, session.display, heads=heads)

    def as_text(self) -> str:
        """The sentence on where the answer comes from, by the rollout."""
        return self.canvas.scene.trace.sentence if self.canvas.scene is not None else ""

    def resizeEvent(self, event: QResizeEvent) -> None:
        """A page with room for more stages, or fewer, shows its layers in others."""
        super().resizeEvent(event)
        scene = self.canvas.scene
        if scene is not None:
            most = stages_that_fit(self.canvas.viewport().height())
            trace = scene.trace
            if stages(trace.capture.spec, trace.level, most) != trace.way:
                self.refresh()


def _way_words(capture: Capture, level: int) -> str:
    coarsest = max(capture.spec.levels, key=coarseness)
    if coarsest.stride is None:
        return tr("through the bottleneck and back")
    if coarsest.stride > 1:
        return tr("through the {level} bottleneck and back", level=coarsest.label)
    if not capture.spec.two_texts:
        return tr("through the layers")
    return tr("through the encoder") if level == 0 else tr("through the decoder")
