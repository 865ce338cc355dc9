"""The Compare page: maps, texts and numbers of two models."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from math import isfinite
from typing import TYPE_CHECKING, cast

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QSizePolicy, QWidget

from hgviz import palettes
from hgviz.analysis.alignment import SharedGrid, same_tokens, unit_spans
from hgviz.analysis.metrics import PAIR, HeadMetrics, measure, metrics_for, peers
from hgviz.analysis.statistics import bits_per_byte
from hgviz.core import Capture, Floats, HeadId, Selection, progress, progress_within
from hgviz.figures.spec import Spec
from hgviz.gui import sentences, theme, tiles
from hgviz.gui.grid import Viewport, exists, seen
from hgviz.gui.heatmap import HeadMapsView
from hgviz.gui.language import tr
from hgviz.gui.opened import OpenedMap, PairOpener
from hgviz.gui.panels import Ticks
from hgviz.gui.sentences import counted, explanation, weight, with_sign
from hgviz.gui.sides import GUIDE, SideBar, SideNames, head_of_b, is_one_text, sides_of
from hgviz.gui.tables import Table, span
from hgviz.gui.textrows import LEFT, RIGHT, Bools, CellTexts, TextRow, TextRows
from hgviz.gui.tiles import Tiles
from hgviz.gui.view import Empty, View, scale_choice, uncaptured
from hgviz.gui.widgets import PaneHead, Segments, Words, hbox, label, line, tip, vbox
from hgviz.session import Session

if TYPE_CHECKING:
    from hgviz.gui.commands import Commands
    from hgviz.maps import Difference

SIDES = ["A", "B", "A − B"]
COMPARE_WITH = (("compare_with", "Compare with…"),)

# --- cells ----------------------------------------------------------------------------------------


def cell_cards(opened: OpenedMap[SharedGrid], row: int | None, column: int | None) -> list[str]:
    """HTML for the cards of A, B and A − B beside a cell: its weight, or "–" and why there is none;
    "" of what has no map, and while the row is being read."""
    if row is None or column is None or row not in opened.rows:
        return ["", "", ""]
    big = f"font-size:{theme.font(1.15).pixelSize()}px;font-weight:600"
    cards, quiet = [], theme.current().secondary.name()
    for number, source in enumerate(opened.sources):
        there, is_masked = opened.there[number], not exists(source.rule, row, column)
        has_cell = there is None or bool(there[0][row] and there[1][column])
        value, why = "–", ""
        if number == 2 and (is_masked or not has_cell):
            why = tr("nothing to compare")
        elif not has_cell:
            why = tr("not in {side}", side=SIDES[number])
        elif is_masked:
            why = tr("masked")
        elif number < 2 and opened.grid.heads_off[number]:
            value, why = "0", tr("off")
        elif number == 2:
            difference = cast("Difference", source.map).subtract(*opened.rows[row])
            value = with_sign(float(difference[column]))
        else:
            write = with_sign if source.signed else weight
            value = write(float(opened.rows[row][number][column]), 3)
        note = f'&nbsp; <span style="color:{quiet}">{why}</span>' if why else ""
        card = f'<span style="{big}">{html.escape(value)}</span>{note}'
        cards.append(card if opened.lacks[number] is None else "")
    return cards


def map_table(opened: OpenedMap[SharedGrid], cache: Tiles, view: Viewport) -> Table:
    """What A, B and A − B weigh at every cell on screen that one of them sees; from afar, where a
    pixel stands for many, the largest of these, and their range. Empty: not there, or still read.
    """
    values, masks = [], []
    for source in opened.shown:
        masks.append(tiles.unseen(source, view))
        is_read = tiles.quality(cache, source, view) != "coarse"
        weights = tiles.compose(cache, source, view)
        values.append(np.where(masks[-1] | (not is_read), np.float32(np.nan), weights))
    queries, keys = (
        [[span(first, stop - 1), names.glyph(first)] for first, stop in axis.ranges().tolist()]
        for axis, names in zip(view.axes, opened.names[0], strict=True)
    )
    table = [[tr("Query"), tr("Query text"), tr("Key"), tr("Key text"), *SIDES]]
    lacking = [""] * (len(SIDES) - len(values))
    for row, column in np.argwhere(~np.logical_and.reduce(masks)).tolist():
        weights = (side[row, column] for side in values)
        cells = ["" if np.isnan(value) else str(value) for value in weights]
        table.append([*queries[row], *keys[column], *cells, *lacking])
    return table


# --- maps -----------------------------------------------------------------------------------------

NOTHING = Empty(
    "Choose a second model",
    "Compare with another model, activation function or input to see both maps and their "
    "difference.", (*COMPARE_WITH, ("bundled_pair", "Compare the bundled pair")),
)  # fmt: skip
OPEN = (("open_sample", "Open sample model"), ("open_folder", "Open checkpoint folder…"))


class CompareView(HeadMapsView):
    """A, B and A − B at equal size, with one cursor, one scale and one part on screen."""

    count = 3
    figureless = "B is not ready"
    title = "Compare"
    topic = "compare"
    wait = 0
    needs = "capture", "capture_b", "selection", "hover", "display", "facts"

    def __init__(self) -> None:
        super().__init__()
        self._opener = PairOpener(self.tiles)
        ways = ("beside", "Side by side"), ("blink", "Blink")
        self.way = Segments(ways, tr("A and B side by side, or alternating in one place"))
        self.way.chosen.connect(lambda name: self.canvas.blink(name == "blink"))
        self.scale = scale_choice()
        self.scale.chosen.connect(
            lambda name: self.session.put(display=replace(self.session.display, scale=name))
        )
        self.head.add(self.way, self.scale)
        self._add_buttons(tr("Fit maps to pane (F)"))
        difference = label("A − B", factor=0.92, weight=600, kind="side")
        words = tr("Weight in A minus weight in B")
        difference.setToolTip(explanation(words, "a_ij − b_ij", GUIDE))
        difference.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        difference.setFixedHeight(28)
        self.legend = Words(factor=0.92, kind="secondary")
        self.put_over(2, difference, stretch=0)
        self.put_over(2, self.legend)

    def put_over(self, number: int, widget: QWidget, stretch: int = 1) -> None:
        cast("QHBoxLayout", self.canvas.seats[number].layout()).addWidget(widget, stretch)

    def unbind(self) -> None:
        super().unbind()
        self.canvas.blink(False)

    def request(self, session: Session) -> Callable[[], OpenedMap[SharedGrid]] | Empty | None:
        a, b, chosen = session.capture, session.capture_b, session.selection
        if a is None or b is None or not all(map(len, (*a.spans, *b.spans))):
            return NOTHING._replace(actions=OPEN) if a is None else NOTHING
        if a.maps[chosen.layer] is None:
            return uncaptured(session, chosen.layer)
        query = session.looked_at.query
        return partial(self._opener.open, a, b, chosen.head_id, chosen.beside, query)

    def draw(self, result: OpenedMap[SharedGrid]) -> None:
        is_other, self._opened = result is not self._opened, result
        self.scale.choose(self.session.display.scale)
        self._name_heads(result.grid)
        self._show_maps(reveal=is_other)

    def noticed(self, name: str) -> None:
        super().noticed(name)
        if name in ("capture", "capture_b"):
            self._pointed = self._opened = None
            self._supply.forget()

    def figure(self, session: Session) -> Spec | None:
        if session.capture is None or session.capture_b is None:
            return None
        return Spec(kind="compare", selection=session.marked, display=session.display)

    def as_table(self) -> list[list[str]] | None:
        opened, view = self._opened, self.canvas.view
        return map_table(opened, self.tiles, view) if opened else None

    def _off(self, opened: OpenedMap[SharedGrid]) -> tuple[bool, ...]:
        a, b = opened.grid.heads_off
        return a, b, a and b

    def _name_heads(self, grid: SharedGrid) -> None:
        title = "Head {head}" if grid.head_a == grid.head_b else "Heads {head} and {other}"
        levels = (sentences.ends(side.spec, head.layer) for side, head in grid.sides)
        self._entitle(
            tr(title, head=grid.head_a, other=grid.head_b), grid.head_a,
            " | ".join(dict.fromkeys(filter(None, levels))),
        )  # fmt: skip
        a, b = sides_of(self.session).phrases
        legend = [tr("red: {a} higher, blue: {b} higher", a=a, b=b)]
        if grid.rows.by_token or grid.columns.by_token:
            unit = tr(f"{grid.a.query_prompt(grid.head_a.layer).unit}s")
            legend.append(tr("both upsampled to {units}", units=unit))
        elif not grid.is_identity:
            legend.append(tr("hatched: not in both"))
        self.legend.say("  ·  ".join(legend))

    def _follow(self, reveal: bool = False) -> None:
        opened, session = self._opened, self.session
        if opened is None or opened.head != session.selection.head_id:
            return  # the next one brings its own
        row, column = self._cell()
        if reveal:
            self.canvas.reveal(row, column)
        self.canvas.point(row, column, cell_cards(opened, row, column))


# --- metrics --------------------------------------------------------------------------------------

TITLE, ROW = 20, 18  # px: of a metric's name, of A and of B
LETTER, VALUE = 16, 54  # px: the name of a side, its value
PAD = 5  # px at either side, for the ring of what has the keyboard
FOOT = 10  # px below
GAP = 12  # px between a metric and the line beside it
OFTEN = 6  # heads between two pictures while they are measured
KEPT = 4  # captures whose heads stay known
NUMBERS = metrics_for(PAIR)
KINDS = {"self": "self-attention heads", "cross": "cross-attention heads"}

MetricsByHead = dict[HeadId, HeadMetrics]


@dataclass(frozen=True, slots=True)
class SideHead:
    """A head of one capture among its peers, and what is measured; head None: there is none."""

    letter: str
    capture: Capture
    head: HeadId | None
    peers: tuple[HeadId, ...]
    by_head: MetricsByHead

    @property
    def metrics(self) -> HeadMetrics:
        """What is measured of the head; NaN for each metric until it is."""
        return self.by_head.get(self.head, HeadMetrics()) if self.head else HeadMetrics()

    def values(self, name: str) -> list[float]:
        """The same metric of all peers that are measured."""
        values = (self.by_head[head][name] for head in self.peers if head in self.by_head)
        return [value for value in values if isfinite(value)]

    def rank(self, name: str) -> int | None:
        """The place of the head among its peers, 1 for the largest; None where it has no value."""
        value, values = self.metrics[name], self.values(name)
        return 1 + sum(other > value for other in values) if isfinite(value) and values else None

    def shown(self, name: str) -> str:
        """The metric as people read it."""
        value = self.metrics[name]
        if not isfinite(value):
            return "–"
        return (sentences.share if NUMBERS[name].unit == "share" else weight)(value)

    def words(self, name: str) -> str:
        """The metric and its place in a sentence; "" until it is measured."""
        if self.head is None:
            return tr("{side} has no such head.", side=self.letter)
        metrics, rank = self.metrics, self.rank(name)
        if not metrics:
            return ""
        value, words = self.shown(name), "{side}, head {head}: {value}."
        if rank is not None:
            place, count = "rank {rank:,} of {count:,}, largest first", len(self.values(name))
            value = f"{value}, {tr(place, rank=rank, count=count)}"
        if metrics.rows < metrics.all_rows:
            words = f"{words} Measured on {{rows:,}} of {{of:,}} rows."
        return tr(words, side=self.letter, head=self.head, value=value, rows=metrics.rows,
                  of=metrics.all_rows)  # fmt: skip


class NumberPair(QWidget):
    """One metric of A and of B, each as a dot among ticks for all other heads."""

    described = Signal(str)  # its words while a line has the keyboard, "" when that goes

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.words = name, ""
        self.setFixedHeight(TITLE + 2 * ROW)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        grid = QGridLayout(self)
        grid.setContentsMargins(PAD, 0, PAD, 0)
        grid.setSpacing(0)
        grid.setColumnStretch(1, 1)
        title = Words(tr(NUMBERS[name].words), factor=0.92, weight=500)
        title.setFixedHeight(TITLE)
        grid.addWidget(title, 0, 0, 1, 3)
        self.lines: dict[str, tuple[Ticks, QLabel]] = {}
        for row, letter in enumerate("AB", 1):
            side, ticks = label(letter, factor=0.85, kind="secondary"), Ticks()
            side.setFixedWidth(LETTER)
            value = label(factor=0.92, weight=600)
            value.setFixedWidth(VALUE)
            value.setAlignment(theme.TO_RIGHT)
            ticks.described.connect(lambda words: self.described.emit(words and self.words))
            self.lines[letter] = ticks, value
            for column, widget in enumerate((side, ticks, value)):
                grid.addWidget(widget, row, column)

    def show_sides(self, *sides: SideHead) -> None:
        """Show another head of A and of B, or the same among more others."""
        number, name = NUMBERS[self.name], self.name
        words = [*filter(None, (side.words(name) for side in sides))]
        self.words = " ".join((tr(number.words) + ":", *words))
        means = explanation(tr(number.description), number.formula, number.source)
        self.setToolTip(tip("\n".join((*words, means))))
        values = [
            value for side in sides for value in (*side.values(name), side.metrics[name])
            if isfinite(value)
        ]  # fmt: skip
        ends = (min(values), max(values)) if values else None
        for side in sides:
            ticks, value_label = self.lines[side.letter]
            ticks.show_values(side.values(name), side.metrics[name], side.words(name), ends)
            ticks.setToolTip("")  # that of the pair says both sides
            value_label.setText(side.shown(name))
        if any(ticks.hasFocus() for ticks, _ in self.lines.values()):
            self.described.emit(self.words)


class NumbersView(View):
    """NUMBERS of the selected head and of the one beside it, each among all heads of its model."""

    title = "Head metrics"
    figureless = "The metrics of all heads have a figure"
    needs = ("capture", "capture_b", "selection")
    lane = "facts"
    empty = Empty(
        "Metrics of A and B", "Choose what to compare with to see them.",
        COMPARE_WITH,
    )  # fmt: skip
    topic = "compare-numbers"

    def __init__(self) -> None:
        super().__init__()
        self._measured: list[tuple[Capture, MetricsByHead]] = []  # the newest first
        self._sides: tuple[SideHead, ...] = ()
        self._note = ""  # what the head says while no metric has the keyboard
        self.head = PaneHead(tr("Head metrics"))
        self.head.setFixedHeight(30)
        self.pairs = {name: NumberPair(name) for name in NUMBERS}
        row = hbox(None, margins=(16 - PAD, 0, 16 - PAD, FOOT), spacing=GAP - PAD)
        for number, pair in enumerate(self.pairs.values()):
            if number:
                row.addWidget(line(vertical=True))
            row.addWidget(pair, 1)
            pair.described.connect(lambda words: self.head.note.say(words or self._note))
        vbox(self.content, self.head, row)
        self.setFixedHeight(30 + TITLE + 2 * ROW + FOOT)

    def request(self, session: Session) -> Callable[[], tuple[SideHead, ...]] | None:
        """Measure what is not measured yet: the two heads first, then all others of their kind."""
        sides = self._measured_sides(session)
        return partial(measure_sides, sides) if sides else None

    def draw(self, result: tuple[SideHead, ...]) -> None:
        self._sides, (a, b) = result, result
        many, dots = f"{len(a.peers):,}", tr("head {head}", head=a.head)
        if b.head is not None and len(a.peers) != len(b.peers):
            many = tr("{a:,} and {b:,}", a=len(a.peers), b=len(b.peers))
        if b.head is not None and a.head != b.head:
            dots = tr("{a} and {b}", a=a.head, b=b.head)
        role = a.capture.spec.layers[self.session.selection.layer].role
        kind = tr(KINDS.get(role, "heads between levels"))
        words = "grey: all {many} {kind}; dot: {dots}; A above, B below"
        self._note = tr(words, many=many, kind=kind, dots=dots)
        self.head.note.say(self._note)
        for pair in self.pairs.values():
            pair.show_sides(a, b)  # the one with the keyboard says itself again

    def as_text(self) -> str:
        return "\n".join(filter(None, (pair.words for pair in self.pairs.values())))

    def noticed(self, name: str) -> None:
        """Another head whose metrics are measured has them at once, whatever is still measured."""
        if name == "selection" and (sides := self._measured_sides(self.session)):
            self.draw(_snapshots(sides))

    def _measured_sides(self, session: Session) -> tuple[SideHead, ...]:
        """The heads of A and of B with what is measured so far; () where nothing is compared."""
        a, b, head = session.capture, session.capture_b, session.selection.head_id
        if a is None or b is None or not a.spec.heads:
            return ()
        return tuple(
            SideHead(letter, side, one, tuple(peers(side, one)) if one else (), self._metrics(side))
            for letter, side, one in (("A", a, head), ("B", b, head_of_b(session)))
        )

    def _metrics(self, capture: Capture) -> MetricsByHead:
        """What is measured of a capture, which becomes the newest."""
        by_head = next((by_head for one, by_head in self._measured if one.maps is capture.maps), {})
        others = [row for row in self._measured if row[0].maps is not capture.maps]
        self._measured = [(capture, by_head), *others][:KEPT]
        return by_head


def _snapshots(sides: tuple[SideHead, ...]) -> tuple[SideHead, ...]:
    """Both heads with what is measured by now, while more may be measured."""
    return tuple(replace(side, by_head=dict(side.by_head)) for side in sides)


def measure_sides(sides: tuple[SideHead, ...]) -> tuple[SideHead, ...]:
    """Measure the heads of both sides, then their peers in turn; some steps carry both so far."""
    heads = [[side.head, *side.peers] if side.head is not None else [] for side in sides]
    rows = [
        (side, head)
        for turn in zip_longest(*heads)
        for side, head in zip(sides, turn, strict=True) if head is not None
    ]  # fmt: skip
    for number, (side, head) in enumerate(rows):
        if head not in side.by_head:
            with progress_within(number, number + 1, len(rows)):
                side.by_head.update(measure(side.capture, NUMBERS, [head]))
        if number == 1 or number % OFTEN == 0:
            progress(number, len(rows), "Computing head metrics", _snapshots(sides))
    return _snapshots(sides)


# --- rows of two heads ----------------------------------------------------------------------------

MUCH = 0.3  # of a row's weight on one key: then the key is what the row is about
ROW_HEIGHT = 32  # px


@dataclass(frozen=True, slots=True, eq=False)
class PairedRow:
    """A row of A, of B and of A − B on the cells of their grid.

    names: the texts of the cells in A and in B. row, query, key: cells, None for none. weights
    (cells,) of each, 0 where its head is off; None where no query is chosen, and of a side without
    such a row. seen (cells,) of each: which cells it has and may attend to.
    """

    opened: OpenedMap[SharedGrid]
    names: tuple[CellTexts, CellTexts]
    row: int | None
    query: int | None
    key: int | None
    weights: tuple[Floats | None, ...] = (None, None, None)
    seen: tuple[Bools | None, ...] = (None, None, None)


def read_pair(
    opened: OpenedMap[SharedGrid],
    query: int | None,
    key: int | None,
    names: tuple[CellTexts, CellTexts] | None = None,
) -> PairedRow:
    """Read the row of a token of A in both maps. names: the texts of the cells, if known."""
    grid = opened.grid
    if names is None:
        a, b = (
            CellTexts.of_axis(grid.columns, number, side.key_prompt(head.layer))
            for number, (side, head) in enumerate(grid.sides)
        )
        names = a, b
    row, column = grid.cell(query, key)
    layer, levels = grid.a.spec.layers[grid.head_a.layer], grid.a.spec.levels
    is_one_text = levels[layer.level].sequence == levels[layer.key_level].sequence
    own = grid.cell(None, query)[1] if is_one_text else None
    if row is None:
        return PairedRow(opened, names, None, own, column)
    opened.read_row(row)
    sides = zip(opened.rows[row], grid.heads_off, (grid.rows.a, grid.rows.b), strict=True)
    a_row, b_row = (
        (0 * weights if is_off else weights) if axis.there[row] else None
        for weights, is_off, axis in sides
    )
    b_row = b_row if opened.lacks[1] is None else None
    difference = None if a_row is None or b_row is None else a_row - b_row
    cells = unit_spans(len(grid.columns))
    masks = (seen(source.rule, unit_spans(1) + row, cells)[0] for source in opened.sources)
    return PairedRow(opened, names, row, own, column, (a_row, b_row, difference), tuple(masks))


def rows_of(pair: PairedRow, sides: SideNames, limit: float = 1.0) -> list[TextRow]:
    """The rows of A, of B and of A − B, coloured up to a limit."""
    edge = pair.opened.grid.columns
    messages = ["", "", ""]
    if pair.opened.lacks[1] is not None:
        messages[1:] = tr("there is no such head"), tr("nothing to subtract")
    elif not edge.in_both.any():
        messages[2] = tr("no shared tokens")
    elif pair.row is not None and pair.weights[2] is None:
        messages[2] = tr("only one side has this row")
    names = [f"{letter} {name}" if name != letter else letter
             for letter, name in zip("AB", (sides.a, sides.b), strict=True)]  # fmt: skip
    cells, rows = unit_spans(len(edge)), []
    for at, present in enumerate((edge.a.there, edge.b.there, edge.in_both)):
        is_signed = pair.opened.signed or at == 2
        query, key = (
            (cell, cell + 1) if cell is not None and present[cell] and not messages[at] else None
            for cell in (pair.query, pair.key)
        )
        rows.append(TextRow(
            (*names, SIDES[2])[at], (*pair.names, pair.names[0])[at], cells, None,
            pair.weights[at], pair.seen[at], present,
            palettes.limits_of(-limit, limit, is_signed), is_signed,
            chosen=query, key=key, height=ROW_HEIGHT, message=messages[at],
        ))  # fmt: skip
    return rows


# --- sentences ------------------------------------------------------------------------------------


def sentence(pair: PairedRow, sides: SideNames) -> str:
    """“s” with softmax: 89 % of the weight on “.” after “sea”. With ymish: spread over about 31
    tokens, 48 % of the mass negative; +0.058 on “.”.
    """
    a, b, _ = pair.weights
    if pair.row is None or a is None:
        return ""
    grid, names = pair.opened.grid, pair.names
    start, stop = (int(end) for end in grid.rows.spans[0][pair.row])
    prompt = grid.a.query_prompt(grid.head_a.layer)
    query = sentences.quoted(sentences.glyph(prompt, start, stop) if stop > start else "∅")
    first = tr("{query} {side}: {row}.", query=query, side=sides.phrases[0], row=row_words(pair, 0))
    if b is None:
        lacks_head = pair.opened.lacks[1] is not None
        return f"{first} {tr('B has no such head.' if lacks_head else 'B has no such row.')}"
    second, top = row_words(pair, 1), int(np.abs(a).argmax())
    if a.any() and b.any() and grid.columns.b.there[top] and top != np.abs(b).argmax():
        value = float(b[top])
        words = with_sign(value) if pair.opened.signed else weight(value)
        key = sentences.quoted(names[0].text(top))
        second = tr("{row}; {value} on {key}", row=second, value=words, key=key)
    side = sides.phrases[1]
    return f"{first} {tr('{side}: {row}.', side=side[:1].upper() + side[1:], row=second)}"


def row_words(pair: PairedRow, side: int) -> str:
    """What a row of A (0) or B (1) does: one key, or how many it spreads over, e to the entropy; of
    a signed row also the negative part."""
    weights = pair.weights[side]
    sizes = np.abs(weights).astype(float)
    mass = float(sizes.sum())
    if not mass > 0:
        return tr("no weight")
    top, shares = int(sizes.argmax()), sizes[sizes > 0] / mass
    key, share = _key_words(pair, top), sentences.share(float(sizes[top]) / mass)
    if sizes[top] >= MUCH * mass:
        words = tr("{share} of the weight on {key}", share=share, key=key)
    else:
        spread = float(np.exp(-(shares * np.log(shares)).sum()))
        single = np.diff(pair.opened.grid.columns.spans[0], axis=1).max(initial=1) <= 1
        unit = pair.names[0].prompt.unit if single else "position"
        many = counted(max(1, round(spread)), unit)
        words = tr("spread over about {many}, {share} on {key}", many=many, share=share, key=key)
    below = float(np.maximum(-weights, 0).sum(dtype=float)) / mass
    if below:
        negative = sentences.share(below)
        words = tr("{row}, {below} of the mass negative", row=words, below=negative)
    return words


def _key_words(pair: PairedRow, cell: int) -> str:
    """“.” after “sea”, “o” in “hourglass”, “lass”."""
    names = pair.names[0 if pair.names[0].present[cell] else 1]
    start, stop = (int(end) for end in names.spans[cell])
    key = sentences.quoted(names.text(cell))
    if not names.present[cell] or stop - start != 1:
        return key
    how, word = sentences.word_relation(names.prompt, names.words, start)
    known = {"in": "{key} in {word}", "after": "{key} after {word}"}
    return tr(known[how], key=key, word=sentences.quoted(word)) if how in known else key


def answer_words(
    a: Capture, b: Capture, bits: tuple[float | None, float | None], sides: SideNames
) -> str:
    """This text: 2.70 bits per byte with softmax, 2.95 with ymish; of classifiers their classes."""
    answers = [
        sentences.of_text(side).sentence() if value is None
        else tr("{bits} bits per byte", bits=f"{value:.2f}")
        for side, value in zip((a, b), bits, strict=True)
    ]  # fmt: skip
    if a is b or not any(answers):
        return ""
    if None not in bits:
        answers[1] = f"{bits[1]:.2f}"
    both = zip(answers, sides.phrases, strict=True)
    words = ", ".join(f"{answer} {phrase}" for answer, phrase in both if answer)
    for letter, answer in zip("AB", answers, strict=True):
        words += "" if answer else f"; {tr('{side} has no logits', side=letter)}"
    return tr("This text: {answers}", answers=words) if is_one_text(a, b) else words


def difference_words(grid: SharedGrid) -> str:
    """How much of the text both have, "" where both have the same tokens."""
    a, b = grid.a.main, grid.b.main
    shared = int(grid.columns.in_both.sum())
    if same_tokens(a, b) or (len(a), a.unit) == (len(b), b.unit) == (shared, a.unit):
        return ""  # of other tokenizers, too, that cut it into the same pieces
    words = "{n} of {a} in A and {b} in B; hatched: in one only"
    if not shared:
        words = "A has {a}, B {b}, and none in common"
    sizes = {"a": counted(len(a), a.unit), "b": counted(len(b), b.unit)}
    return tr(words, n=counted(shared, "shared token"), **sizes)


# --- texts ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextRead:
    """What a request brings: bits per byte of both, None for none; the rows, None where A has no
    such head, or not yet."""

    a: Capture
    b: Capture
    bits: tuple[float | None, float | None]
    pair: PairedRow | None = None


class TextsView(View):
    """Rows of text for A, B and A − B, and in words what they show.

    A click chooses the query, Alt+click the key; where the keys are of another text than the
    queries, the key.
    """

    title = "Text of A and B"
    figureless = "The maps have figures"
    needs = "capture", "capture_b", "comparison", "selection", "hover", "display"
    empty = Empty("Text of A and B", "Choose what to compare with to see it.", COMPARE_WITH)
    topic = "compare-texts"

    def __init__(self) -> None:
        super().__init__()
        self._opener = PairOpener(Tiles())
        self._result: TextRead | None = None
        self.head = PaneHead(tr("Text"))
        self.head.setFixedHeight(34)
        self.rows = TextRows(tr("Text with the weights of A, of B, and their difference"))
        self.rows.pointed.connect(self._point)
        self.rows.queried.connect(lambda cells: self._query(cells[1]))
        self.rows.keyed.connect(self._key)
        self.words = label(factor=0.92, kind="secondary", wrap=True)
        self.words.setAlignment(theme.TO_LEFT)
        named = label(tr("In words"), factor=0.92, weight=600)
        named.setFixedWidth(LEFT - 16)
        named.setAlignment(Qt.AlignmentFlag.AlignVCenter)
        self.foot = QWidget()
        self.foot.setFixedHeight(40)
        hbox(self.foot, named, (self.words, 1), margins=(16, 0, RIGHT, 6))
        vbox(self.content, self.head, (self.rows, 1), self.foot)
        self.start_at(self.rows)

    @property
    def pair(self) -> PairedRow | None:
        return self._result.pair if self._result is not None else None

    def request(self, session: Session) -> Callable[[], TextRead] | None:
        a, b, cell = session.capture, session.capture_b, session.looked_at
        if a is None or b is None or not len(a.main) or not a.spec.layers:
            return None
        chosen = replace(session.selection, query=cell.query, key=cell.key)
        return partial(self._read, a, b, chosen)

    def _read(self, a: Capture, b: Capture, chosen: Selection) -> TextRead:
        """Read the row; what holds for the texts as a whole is taken from what was read before."""
        progress(0, 2, "Reading the text’s weights")
        old = self._result
        if old is not None and (old.a is not a or old.b is not b):
            old = None
        bits = old.bits if old is not None else (bits_per_byte(a), bits_per_byte(b))
        maps = a.maps[chosen.layer]
        if maps is None or chosen.head not in maps.heads:
            return TextRead(a, b, bits)
        progress(1, 2, "Reading the text’s weights")
        opened = self._opener.pair(a, b, chosen.head_id, chosen.beside)
        known = old.pair if old is not None else None
        names = known.names if known is not None and known.opened is opened else None
        pair = read_pair(opened, chosen.query, chosen.key, names)
        for texts in pair.names:  # found here, not while they are painted
            _ = texts.widths, texts.words
        return TextRead(a, b, bits, pair)

    def draw(self, result: TextRead) -> None:
        session, pair, old = self.session, result.pair, self.pair
        self._result = result
        sides, display = sides_of(session), session.display
        unit = tr(result.a.query_prompt(session.selection.layer).unit)
        answers = answer_words(result.a, result.b, result.bits, sides)
        difference = difference_words(pair.opened.grid) if pair is not None else ""
        notes = tr("attention of the selected {unit}", unit=unit), answers, difference
        self.head.note.say("      ".join(filter(None, notes)))
        has_bits = answers and any(value is not None for value in result.bits)
        bits = tr("Bits per byte: mean loss of the next byte; lower is better")
        about = explanation(bits, "−Σ_t log₂ P(x_t | x_<t) / bytes", GUIDE)
        self.head.setToolTip(tip(about) if has_bits else "")
        if pair is None:
            self.rows.show_rows((), np.zeros(0), display)
            self.words.setText(tr("This layer is not captured yet."))
            return
        (a, b), limits = pair.names, display.limits
        sides_read = (side for side in pair.weights[:2] if side is not None)
        reach = max((float(np.abs(side).max(initial=0)) for side in sides_read), default=0.0)
        limit = max(map(abs, limits)) if limits is not None else reach or 1.0
        stay = old is not None and old.names[0].prompt is a.prompt
        stay = stay and np.array_equal(old.names[0].spans, a.spans)
        self.rows.show_rows(
            rows_of(pair, sides, limit), np.maximum(1.0, np.maximum(a.widths, b.widths)), display,
            query=pair.query, stay=stay, reveal=session.hover is None,
        )  # fmt: skip
        words = sentence(pair, sides)
        asking = tr("Click a {unit} to see what it attends to in A and B.", unit=unit)
        self.words.setText(words or asking)
        self.words.setToolTip(words)
        self.rows.setAccessibleDescription(words)

    def as_text(self) -> str:
        return self.words.text()

    # --- what people do ---------------------------------------------------------------------------

    def _token(self, cell: int) -> int | None:
        return self.pair.opened.grid.columns.token(cell) if self.pair is not None else None

    def _point(self, cell: int | None) -> None:
        chosen = self.session.selection
        token = None if cell is None or chosen.query is None else self._token(cell)
        self.session.put(hover=None if token is None else replace(chosen, key=token))

    def _query(self, cell: int) -> None:
        token, session = self._token(cell), self.session
        if session.capture is None or token is None:
            return
        layer, capture = session.selection.layer, session.capture
        if capture.query_prompt(layer) is not capture.key_prompt(layer):
            self._key(cell)
        else:
            session.put(hover=None, selection=replace(session.selection, query=token))

    def _key(self, cell: int) -> None:
        token = self._token(cell)
        if token is not None:
            self.session.select(key=token)


# --- page -----------------------------------------------------------------------------------------

HIGH = 900  # px of the window's height
TEXT, TEXT_LOW = 190, 164  # px of the text, and in windows lower than HIGH
NUMBERS_FROM = 760  # px of the window's height with metrics: in lower ones maps need the room


class ComparePage(QWidget):
    """A, B and A − B over the metrics of the head and the text of both."""

    def __init__(self) -> None:
        super().__init__()
        self.maps, self.sides = CompareView(), SideBar()
        self.numbers, self.texts = NumbersView(), TextsView()
        self._line, below = line(), QWidget()
        vbox(below, line(), self.numbers, self._line, self.texts)
        self.maps.put_over(0, self.sides.a)
        self.maps.put_over(1, self.sides.b)
        self.sides.explained.connect(self.maps.head.note.say)
        self.sides.paired.connect(below.setVisible)
        vbox(self, self.sides, (self.maps, 1), below)

    @property
    def views(self) -> tuple[View, ...]:
        return self.maps, self.numbers, self.texts, self.sides

    def join(self, commands: Commands) -> None:
        self.sides.stopped.connect(lambda: commands.comparing.stop())

    def take_focus(self) -> bool:
        return self.maps.take_focus()

    def respond(self, width: int, height: int) -> None:
        """Lower the text in low windows, and leave out the metrics in the lowest."""
        self.numbers.setVisible(height >= NUMBERS_FROM)
        self._line.setVisible(height >= NUMBERS_FROM)
        self.texts.setFixedHeight(TEXT if height >= HIGH else TEXT_LOW)
