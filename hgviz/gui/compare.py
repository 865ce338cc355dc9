"""The Compare page: maps, texts and numbers of two models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from math import isfinite
from string import Template
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QSizePolicy, QWidget

from hgviz import palettes
from hgviz.analysis.alignment import Alignment, SharedGrid, counterpart
from hgviz.analysis.metrics import PAIR, HeadMetrics, measure, metrics_for, peers
from hgviz.analysis.statistics import bits_per_byte
from hgviz.core import Capture, Display, Floats, HeadId, Selection, Step, progress, progress_as
from hgviz.figures.spec import Spec
from hgviz.gui import sentences, theme, tiles
from hgviz.gui.grid import Names, Viewport, exists
from hgviz.gui.heatmap import HeadMapsView
from hgviz.gui.language import tr
from hgviz.gui.opened import QUICK, OpenedMap, PairOpener, There
from hgviz.gui.panels import Ticks
from hgviz.gui.sentences import counted, explanation, weight, with_sign
from hgviz.gui.sides import GUIDE, SideBar, SideNames, head_of_b, sides_of
from hgviz.gui.tables import Table, span
from hgviz.gui.textrows import (
    LEFT,
    RIGHT,
    Bools,
    CellTexts,
    PairedRow,
    SideRow,
    TextRow,
    TextRows,
    column_texts,
    read_pair,
)
from hgviz.gui.tiles import Tiles
from hgviz.gui.view import View, scale_choice
from hgviz.gui.widgets import PaneHead, Segments, Words, hbox, label, line, tip, vbox
from hgviz.session import Session

if TYPE_CHECKING:
    from hgviz.gui.commands import Commands
    from hgviz.gui.jobs import Lanes
    from hgviz.maps import Difference

# --- cells ----------------------------------------------------------------------------------------


CARD = Template('<span style="$big">$value</span>$note')
NOTE = Template('&nbsp; <span style="color:$colour">$why</span>')


def cell_cards(opened: OpenedMap[SharedGrid], row: int | None, column: int | None) -> list[str]:
    """HTML for the cards of A, B and A − B beside a cell: its weight, or "–" and why there is none;
    "" of what has no map, and while the row is being read."""
    if row is None or column is None or row not in opened.rows:
        return ["", "", ""]
    grid, weights = opened.grid, [float(side[column]) for side in opened.rows[row]]
    on_both = grid.rows.in_both[row] and grid.columns.in_both[column]
    cards = []
    for number, source in enumerate(opened.sources):
        is_masked = not exists(source.rule, row, column)
        if opened.lacks[number] is not None:
            cards.append("")
        elif number == 2 and (is_masked or not on_both):
            cards.append(_card("–", tr("nothing to compare")))
        elif number == 2:
            difference = cast("Difference", source.map).subtract(*opened.rows[row])[column]
            cards.append(_card(sentences.with_sign(float(difference), 3)))
        elif not _has_cell(opened.there[number], row, column):
            cards.append(_card("–", tr("not in {side}", side="AB"[number])))
        elif is_masked:
            cards.append(_card("–", tr("not seen")))
        else:
            write = sentences.with_sign if source.signed else sentences.weight
            cards.append(_card(write(weights[number], 3)))
    return cards


def _has_cell(there: There, row: int, column: int) -> bool:
    return there is None or bool(there[0][row] and there[1][column])


def _card(value: str, why: str = "") -> str:
    big = f"font-size:{theme.font(1.15).pixelSize()}px;font-weight:600"
    colour = theme.current().secondary.name()
    note = NOTE.substitute(colour=colour, why=why) if why else ""
    return CARD.substitute(big=big, value=value.replace("<", "&lt;"), note=note)


# --- metrics of two heads -------------------------------------------------------------------------


TITLE, ROW = 20, 18  # px: of a metric's name, of A and of B
LETTER, VALUE = 16, 54  # px: the name of a side, its value
PAD = 5  # px at either side, for the ring of what has the keyboard
NUMBERS = metrics_for(PAIR)


@dataclass(frozen=True, slots=True)
class SideHead:
    """A head of one capture among its peers, and what is measured; head None: there is none."""

    letter: str
    head: HeadId | None
    peers: tuple[HeadId, ...]
    known: Mapping[HeadId, HeadMetrics]

    @property
    def metrics(self) -> HeadMetrics | None:
        """What is measured of the head."""
        return self.known.get(self.head) if self.head is not None else None

    def value(self, name: str) -> float:
        """A metric of the head; NaN where it has none, or is not measured yet."""
        return self.metrics[name] if self.metrics is not None else float("nan")

    def values(self, name: str) -> list[float]:
        """The same metric of all peers that are measured."""
        found = (self.known[head][name] for head in self.peers if head in self.known)
        return [value for value in found if isfinite(value)]

    def rank(self, name: str) -> int | None:
        """The place of the head among its peers, 1 for the largest; None where it has no value."""
        value, values = self.value(name), self.values(name)
        return 1 + sum(other > value for other in values) if isfinite(value) and values else None

    def shown(self, name: str) -> str:
        """The metric as people read it."""
        value = self.value(name)
        if not isfinite(value):
            return "–"
        return (sentences.share if NUMBERS[name].unit == "share" else sentences.weight)(value)

    def words(self, name: str) -> str:
        """The metric and its place in a sentence; "" until it is measured."""
        if self.head is None:
            return tr("{side} has no such head.", side=self.letter)
        metrics, rank = self.metrics, self.rank(name)
        if metrics is None:
            return ""
        values = [self.shown(name)]
        if rank is not None:
            count = len(self.values(name))
            values.append(tr("place {rank:,} of {count:,}, from the largest", rank=rank,
                             count=count))  # fmt: skip
        words = tr("{side}, head {head}: {value}.", side=self.letter, head=self.head,
                   value=", ".join(values))  # fmt: skip
        if metrics.rows < metrics.all_rows:
            words += " " + tr("Measured on {rows:,} of {of:,} rows.", rows=metrics.rows,
                              of=metrics.all_rows)  # fmt: skip
        return words


class NumberPair(QWidget):
    """One metric of A and of B, each as a dot among ticks for all other heads."""

    told = Signal(str)  # its words while a line has the keyboard, "" when that goes

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
            ticks.described.connect(self._tell)
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
            value for side in sides for value in (*side.values(name), side.value(name))
            if isfinite(value)
        ]  # fmt: skip
        ends = (min(values), max(values)) if values else None
        for side in sides:
            ticks, value_label = self.lines[side.letter]
            ticks.show_values(side.values(name), side.value(name), side.words(name), ends)
            ticks.setToolTip("")  # that of the pair says both sides
            value_label.setText(side.shown(name))
        if any(ticks.hasFocus() for ticks, _ in self.lines.values()):
            self.told.emit(self.words)

    def _tell(self, words: str) -> None:
        """Say both sides while a line has the keyboard."""
        has_focus = any(ticks.hasFocus() for ticks, _ in self.lines.values())
        self.told.emit(self.words if has_focus or words else "")


# --- tables ---------------------------------------------------------------------------------------


THREE = ["A", "B", "A − B"]


def of_maps(opened: OpenedMap[SharedGrid], cache: Tiles, view: Viewport) -> Table:
    """What A, B and A − B weigh at every cell on screen that one of them sees; from afar, where a
    pixel stands for many, the largest of these, and their range. Empty: not there, or still read.
    """
    values, unseen = [], []
    for source in opened.shown:
        found = tiles.compose(cache, source, view)
        known = tiles.quality(cache, source, view) != "coarse"
        values.append(found if known else np.full_like(found, np.nan))
        unseen.append(tiles.unseen(source, view))
    rows, columns = cast("tuple[Names, Names]", opened.names[0])
    down, across = (axis.ranges() for axis in view.axes)
    queries = [[span(int(one[0]), int(one[1]) - 1), _text(rows, one)] for one in down]
    keys = [[span(int(one[0]), int(one[1]) - 1), _text(columns, one)] for one in across]
    table = [[tr("Query"), tr("Query text"), tr("Key"), tr("Key text"), *THREE]]
    lacking = [""] * (len(THREE) - len(values))
    for row, column in np.argwhere(~np.logical_and.reduce(unseen)).tolist():
        cells = [
            "" if hidden[row, column] or np.isnan(found[row, column]) else str(found[row, column])
            for found, hidden in zip(values, unseen, strict=True)
        ]
        table.append([*queries[row], *keys[column], *cells, *lacking])
    return table


def of_row(pair: PairedRow) -> Table:
    """A row of A, of B and of A − B, key by key; empty where a side has nothing or may not look."""
    header = [tr("Key"), tr("Key text in A"), tr("Key text in B"), *THREE]
    a, b = pair.names
    sides = [
        _cells(one.weights, one.seen) if one is not None else [""] * len(a.spans)
        for one in (pair.a, pair.b)
    ]
    less = pair.difference
    both = _cells(less, pair.both) if less is not None else [""] * len(a.spans)
    return [
        header,
        *(
            [str(cell), a.text(cell), b.text(cell), sides[0][cell], sides[1][cell], both[cell]]
            for cell in range(len(a.spans))
        ),
    ]


def of_numbers(*sides: SideHead) -> Table:
    """Every metric of both heads, its place among those of all heads, and on how many rows it was
    measured."""
    table = [
        [tr("Number"), tr("Side"), tr("Head"), tr("Value"), tr("Place"), tr("Heads"), tr("Rows"),
         tr("Of rows")],
    ]  # fmt: skip
    for name, number in NUMBERS.items():
        for side in sides:
            if (metrics := side.metrics) is not None:
                value, rank = side.value(name), side.rank(name)
                table.append(
                    [tr(number.words), side.letter, str(side.head),
                     str(value) if isfinite(value) else "", "" if rank is None else str(rank),
                     str(len(side.values(name))), str(metrics.rows), str(metrics.all_rows)]
                )  # fmt: skip
    return table


def _cells(weights: Floats, seen: Bools) -> list[str]:
    return [str(one) if here else "" for one, here in zip(weights, seen, strict=True)]


def _text(names: Names, ends: np.ndarray) -> str:
    """What stands for some cells along an edge of A."""
    first, last = int(ends[0]), int(ends[1]) - 1
    start, stop = int(names.spans[first, 0]), int(names.spans[last, 1])
    return sentences.glyph(names.prompt, start, stop) if 0 <= start < stop else ""


# --- compare --------------------------------------------------------------------------------------


NOTHING = (
    "Choose a second model",
    "Compare with another model, activation function or text to see both maps and their "
    "difference.",
)
ASK = (("compare_with", "Compare with…"),)
OPEN = (("open_sample", "Open sample model"), ("open_folder", "Open checkpoint folder…"))
CAPTURE = (("capture", "Run model on this text"),)
REACHED = "It is shown as soon as it is captured."
WAYS = (("beside", "Side by side", ""), ("blink", "Blink", ""))


class CompareView(HeadMapsView):
    """A, B and A − B at equal size, with one cursor, one scale and one part on screen."""

    count = 3
    figureless = "B is not ready"
    title = "Compare"
    topic = "compare"
    wait = 0
    needs: ClassVar[tuple[str, ...]] = (
        "capture", "beside", "selection", "hover", "display", "facts",
    )  # fmt: skip
    empty = NOTHING
    empty_actions: tuple[tuple[str, str], ...] = ASK

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opener = PairOpener(self.tiles)
        self._supply.came.connect(self._say_share)
        self.way = Segments([(name, tr(words), icon) for name, words, icon in WAYS])
        self.way.setToolTip(tr("Side by side, or alternating in one place"))
        self.way.setAccessibleName(tr("How A and B are shown"))
        self.way.chosen.connect(lambda name: self.canvas.blink(name == "blink"))
        self.scale = scale_choice()
        self.scale.chosen.connect(self._choose_scale)
        self.head.add(self.way, self.scale)
        self._add_buttons(tr("Fit maps to pane (F)"))
        difference = label("A − B", factor=0.92, weight=600, kind="side")
        words = tr("Weight in A minus weight in B")
        difference.setToolTip(explanation(words, "a_ij − b_ij", GUIDE))
        difference.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        difference.setFixedHeight(28)
        self.legend = Words(factor=0.92, kind="secondary")
        self._seat(2, difference, stretch=0)
        self._seat(2, self.legend)

    def seat(self, a: QWidget, b: QWidget) -> None:
        """Put what names and chooses the sides over their maps."""
        self._seat(0, a)
        self._seat(1, b)

    def _seat(self, number: int, widget: QWidget, stretch: int = 1) -> None:
        cast("QHBoxLayout", self.canvas.seats[number].layout()).addWidget(widget, stretch)

    # --- View -------------------------------------------------------------------------------------

    def bind(self, session: Session, lanes: Lanes) -> None:
        """Listen, and show the scale in use."""
        super().bind(session, lanes)
        self.scale.choose(session.display.scale)

    def unbind(self) -> None:
        super().unbind()
        self.canvas.blink(False)

    def request(self, session: Session) -> Callable[[], OpenedMap[SharedGrid]] | None:
        """Open both heads on one grid, and read the row looked at."""
        a, b, chosen = session.capture, session.beside, session.selection
        if a is None:
            self.empty, self.empty_actions = NOTHING, OPEN
            return None
        if b is None or not all(map(len, (*a.spans, *b.spans))):
            self.empty, self.empty_actions = NOTHING, ASK
            return None
        if chosen.layer >= len(a.maps) or a.maps[chosen.layer] is None:
            self.empty = f"Layer {chosen.layer} of A is not captured yet", REACHED
            self.empty_actions = () if session.at_work else CAPTURE
            return None
        return partial(
            self._opener.open, a, b, chosen.head_id, chosen.beside, session.looked_at.query
        )

    def draw(self, result: OpenedMap[SharedGrid]) -> None:
        """Show the three; their tiles follow as they are read."""
        is_other, self._opened = result is not self._opened, result
        self._name_heads(result.grid)
        self._show_maps(reveal=is_other)

    def noticed(self, name: str) -> None:
        """Move the cursor and change colours at once; another capture is another pair."""
        super().noticed(name)
        if name == "display" and self.session is not None:
            self.scale.choose(self.session.display.scale)
        elif name in ("capture", "beside"):
            self._pointed = self._opened = None
            self._supply.forget()

    def figure(self, session: Session) -> Spec | None:
        if session.capture is None or session.beside is None:
            return None
        return Spec(kind="compare", selection=session.marked, display=session.display)

    def as_table(self) -> list[list[str]] | None:
        """The weights of the cells on screen, of A, B and A − B."""
        opened, view = self._opened, self.canvas.view
        return of_maps(opened, self.tiles, view) if opened and view else None

    # --- showing ----------------------------------------------------------------------------------

    def _fetch(self, hurry: bool = False) -> None:
        super()._fetch(hurry)
        self._say_share()

    def _say_share(self) -> None:
        """How much of a large difference is computed: every weight of both goes into it."""
        opened, view, share = self._opened, self.canvas.view, 1.0
        if opened is None or view is None:
            return
        if view.zoom > QUICK:
            found = [self.tiles.get(key) for key in tiles.wanted(opened.sources[2], view)]
            shares = [0.0 if tile is None else float(tile.exact.mean()) for tile in found]
            share = sum(shares) / len(shares) if shares else 1.0
        part = sentences.percent(f"{int(100 * share)}")
        self.canvas.panes[2].note = tr("{share} computed", share=part) if share < 1 else ""
        self.canvas.update()

    def _off(self, opened: OpenedMap[SharedGrid]) -> tuple[bool, ...]:
        a, b = opened.grid.heads_off
        return a, b, a and b

    def _name_heads(self, grid: SharedGrid) -> None:
        """Name both heads, and say what the colours mean."""
        assert self.session is not None
        title = tr("Head {head}", head=grid.head_a)
        if grid.head_a != grid.head_b:
            title = tr("Heads {head} and {other}", head=grid.head_a, other=grid.head_b)
        levels = (sentences.ends(side.spec, head.layer) for side, head in grid.sides)
        levels_words = " | ".join(dict.fromkeys(filter(None, levels)))
        self._entitle(title, grid.head_a, levels_words)
        names = sides_of(self.session)
        legend = [tr("red: more with {a}, blue: more with {b}", a=names.a, b=names.b)]
        if grid.rows.by_token or grid.columns.by_token:
            unit = tr(f"{grid.a.query_prompt(grid.head_a.layer).unit}s")
            legend.append(tr("both upsampled to {units}", units=unit))
        elif not grid.is_identity:
            legend.append(tr("hatched: not in both"))
        self.legend.say("  ·  ".join(legend))

    # --- what is looked at ------------------------------------------------------------------------

    def _follow(self, reveal: bool = False) -> None:
        """The cursor and the cards for what is looked at."""
        opened, session = self._opened, self.session
        if opened is None or session is None or opened.head != session.selection.head_id:
            return  # the next one brings its own
        row, column = self._cell()
        if reveal:
            self.canvas.reveal(row, column)
        self.canvas.point(row, column, cell_cards(opened, row, column))

    # --- what people do ---------------------------------------------------------------------------

    def _choose_scale(self, name: str) -> None:
        if self.session is not None:
            scale = cast("palettes.Scale", name)
            self.session.put(display=replace(self.session.display, scale=scale))


# --- metrics --------------------------------------------------------------------------------------


FOOT = 10  # px below
GAP = 12  # px between a metric and the line beside it
OFTEN = 6  # heads between two pictures while they are measured
KEPT = 4  # captures whose heads stay known
KINDS = {"self": "self-attention heads", "cross": "cross-attention heads"}

Known = dict[HeadId, HeadMetrics]
Sides = tuple[tuple[Capture, SideHead], tuple[Capture, SideHead]]


class NumbersView(View):
    """NUMBERS of the selected head and of the one beside it, each among all heads of its model."""

    title: ClassVar[str] = "Numbers"
    figureless = "The metrics of all heads have a figure"
    needs: ClassVar[tuple[str, ...]] = ("capture", "beside", "selection")
    lane = "facts"
    empty = ("Metrics of A and B", "They are shown once there is something to compare with.")
    empty_actions = (("compare_with", "Compare with…"),)
    topic: ClassVar[str] = "compare-numbers"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._measured: list[tuple[Capture, Known]] = []  # the newest first
        self._sides: tuple[SideHead, SideHead] | None = None
        self._note = ""  # what the head says while no metric has the keyboard
        self.head = PaneHead(tr("Head metrics"))
        self.head.setFixedHeight(30)
        self.pairs = {name: NumberPair(name) for name in NUMBERS}
        row = hbox(None, margins=(16 - PAD, 0, 16 - PAD, FOOT), spacing=GAP - PAD)
        for number, pair in enumerate(self.pairs.values()):
            if number:
                row.addWidget(line(vertical=True))
            row.addWidget(pair, 1)
            pair.told.connect(lambda words: self.head.note.say(words or self._note))
        vbox(self.content, self.head, row)
        self.setFixedHeight(30 + TITLE + 2 * ROW + FOOT)

    def request(self, session: Session) -> Callable[[], tuple[SideHead, SideHead]] | None:
        """Measure what is not known: the two heads first, then all others of their kind."""
        sides = self._known_sides(session)
        return None if sides is None else partial(_measure, sides)

    def draw(self, result: tuple[SideHead, SideHead]) -> None:
        assert self.session is not None and self.session.capture is not None
        self._sides, (a, b) = result, result
        count, other = len(a.peers), len(b.peers)
        alone = b.head is None
        many = f"{count:,}" if count == other or alone else tr("{a:,} and {b:,}", a=count, b=other)
        dots = tr("head {head}", head=a.head)
        if not alone and a.head != b.head:
            dots = tr("{a} and {b}", a=a.head, b=b.head)
        role = self.session.capture.spec.layers[a.head.layer].role
        kind = tr(KINDS.get(role, "heads between levels"))
        words = "grey: all {many} {kind}; dot: {dots}; A above, B below"
        self._note = tr(words, many=many, kind=kind, dots=dots)
        self.head.note.say(self._note)
        for pair in self.pairs.values():
            pair.show_sides(a, b)  # the one with the keyboard says itself again

    def as_table(self) -> list[list[str]] | None:
        """Every metric of both heads, and its place among those of all."""
        return of_numbers(*self._sides) if self._sides is not None else None

    def as_text(self) -> str:
        return "\n".join(filter(None, (pair.words for pair in self.pairs.values())))

    def noticed(self, name: str) -> None:
        """Another head whose metrics are known has them at once, whatever is still measured."""
        if name == "selection" and self.session is not None:
            sides = self._known_sides(self.session)
            if sides is not None:
                self.draw(_so_far(sides))

    def _known_sides(self, session: Session) -> Sides | None:
        """Both captures and their heads, with what is measured of them so far."""
        a, b, head = session.capture, session.beside, session.selection.head_id
        if a is None or b is None or not a.spec.heads:
            return None
        other = head_of_b(session)
        return (
            (a, SideHead("A", head, tuple(peers(a, head)), self._known(a))),
            (b, SideHead("B", other, tuple(peers(b, other)) if other else (), self._known(b))),
        )

    def _known(self, capture: Capture) -> Known:
        """What is measured of a capture, which becomes the newest."""
        known = next((known for one, known in self._measured if one.maps is capture.maps), {})
        others = [row for row in self._measured if row[0].maps is not capture.maps]
        self._measured = [(capture, known), *others][:KEPT]
        return known


def _so_far(sides: Sides) -> tuple[SideHead, SideHead]:
    """Both heads with what is measured by now, while more may be measured."""
    a, b = (replace(side, known=dict(side.known)) for _, side in sides)
    return a, b


def _measure(sides: Sides) -> tuple[SideHead, SideHead]:
    """Measure the heads of both sides, then their peers in turn; some steps carry both so far."""
    heads = [[side.head, *side.peers] if side.head is not None else [] for _, side in sides]
    rows = [
        (capture, side, head)
        for turn in zip_longest(*heads)
        for (capture, side), head in zip(sides, turn, strict=True) if head is not None
    ]  # fmt: skip
    for number, (capture, side, head) in enumerate(rows):
        if head not in side.known:
            with progress_as(partial(_as_one_of, number, len(rows))):
                cast("Known", side.known).update(measure(capture, NUMBERS, [head]))
        if number == 1 or number % OFTEN == 0:
            progress(number, len(rows), "Computing head metrics", _so_far(sides))
    return _so_far(sides)


def _as_one_of(number: int, total: int, step: Step) -> Step:
    """The progress of one of several parts, without how far it is itself."""
    return Step(number, total, step.note)


# --- sentences ------------------------------------------------------------------------------------


MUCH = 0.3  # of a row's weight on one key: then the key is what the row is about
TWO_TEXTS = "two texts"


@dataclass(frozen=True, slots=True)
class RowFacts:
    """A row (keys,) in numbers: mass is the sum of |weights|, top the key with the largest of them,
    share its part of the mass, spread e to the entropy of the parts, negative the part below 0."""

    mass: float
    top: int
    share: float
    spread: float
    negative: float

    @classmethod
    def of(cls, weights: Floats) -> RowFacts:
        """The numbers of one row."""
        sizes = np.abs(weights).astype(float)
        mass, top = float(sizes.sum()), int(sizes.argmax()) if len(sizes) else 0
        if not mass > 0:
            return cls(0.0, top, 0.0, 0.0, 0.0)
        shares = sizes[sizes > 0] / mass
        spread = float(np.exp(-(shares * np.log(shares)).sum()))
        below = float(np.maximum(-weights, 0).sum(dtype=float)) / mass
        return cls(mass, top, float(sizes[top]) / mass, spread, below)


def sentence(pair: PairedRow, told: SideNames, alone: bool = False) -> str:
    """“s” with softmax: 89 % of the weight on “.” after “sea”. With ymish: spread over about 31
    tokens, 48 % of the mass negative; +0.058 on “.”. alone: B has no such head.
    """
    if pair.row is None or pair.a is None:
        return ""
    start, stop = (int(end) for end in pair.grid.rows.spans[0][pair.row])
    prompt = pair.grid.a.query_prompt(pair.grid.head_a.layer)
    query = sentences.quoted(sentences.glyph(prompt, start, stop) if stop > start else "∅")
    a = RowFacts.of(pair.a.weights)
    first = tr("{query} {side}: {row}.", query=query, side=told.within[0],
               row=_row_words(a, pair.a, pair.names[0], pair))  # fmt: skip
    if pair.b is None:
        return f"{first} {tr('B has no such head.') if alone else tr('B has no such row.')}"
    b = RowFacts.of(pair.b.weights)
    names = pair.names[0] if pair.names[0].present[b.top] else pair.names[1]
    second = _row_words(b, pair.b, names, pair)
    if a.mass and b.mass and pair.b.present[a.top] and a.top != b.top:
        value = float(pair.b.weights[a.top])
        said = with_sign(value) if pair.signed else weight(value)
        key = sentences.quoted(pair.names[0].text(a.top))
        second = tr("{row}; {value} on {key}", row=second, value=said, key=key)
    side = told.within[1]
    return f"{first} {tr('{side}: {row}.', side=side[:1].upper() + side[1:], row=second)}"


def _row_words(facts: RowFacts, half: SideRow, names: CellTexts, pair: PairedRow) -> str:
    """What a row does: one key, or how far it spreads; of a signed row also the negative mass."""
    if not facts.mass:
        return tr("no weight")
    key, share = _key_words(names, facts.top), sentences.share(facts.share)
    if facts.share >= MUCH:
        said = tr("{share} of the weight on {key}", share=share, key=key)
    else:
        unit = pair.names[0].prompt.unit
        single = np.diff(pair.grid.columns.spans[0], axis=1).max(initial=1) <= 1
        many = counted(max(1, round(facts.spread)), unit if single else "position")
        said = tr("spread over about {many}, {share} on {key}", many=many, share=share, key=key)
    if half.signed and facts.negative:
        below = sentences.share(facts.negative)
        said = tr("{row}, {below} of the mass negative", row=said, below=below)
    return said


def _key_words(names: CellTexts, cell: int) -> str:
    """“.” after “sea”, “o” in “hourglass”, “lass”."""
    start, stop = (int(end) for end in names.spans[cell])
    key = sentences.quoted(names.text(cell))
    if not names.present[cell] or stop - start != 1:
        return key
    how, word = sentences.beside(names.prompt, names.words, start)
    known = {"in": "{key} in {word}", "after": "{key} after {word}"}
    return tr(known[how], key=key, word=sentences.quoted(word)) if how in known else key


def of_text(a: Capture, b: Capture, told: SideNames) -> str:
    """This text: 2.70 bits per byte with softmax, 2.95 with ymish; of classifiers their classes."""
    bits = [bits_per_byte(side) for side in (a, b)]
    answers = [
        sentences.of_text(side).sentence() if value is None
        else tr("{bits} bits per byte", bits=f"{value:.2f}")
        for side, value in zip((a, b), bits, strict=True)
    ]  # fmt: skip
    if a is b or not any(answers):
        return ""
    if None not in bits:
        answers[1] = f"{bits[1]:.2f}"
    both = zip(answers, told.within, strict=True)
    said = ", ".join(f"{answer} {within}" for answer, within in both if answer)
    for letter, answer in zip("AB", answers, strict=True):
        said += "" if answer else f"; {tr('{side} has no logits', side=letter)}"
    return said if same(a, b) == TWO_TEXTS else tr("This text: {answers}", answers=said)


def same(a: Capture, b: Capture) -> str:
    """same text; same text, other tokens; two texts: in English, for tr to translate."""
    one, other = a.main, b.main
    if one is other or (one.pieces == other.pieces and one.text == other.text):
        return "same text"
    return "same text, other tokens" if one.text and one.text == other.text else TWO_TEXTS


# --- texts ----------------------------------------------------------------------------------------


SELECTED_NOTE = "attention of the selected {unit}"
APART = "no shared tokens"
NO_LAYER = "This layer is not captured yet."
BITS = "Bits per byte: mean loss of the next byte; lower is better"
ASKING = "Click a {unit} to see what it attends to in A and B."


@dataclass(frozen=True, slots=True)
class TextRead:
    """What a request brings: the rows, None where A has none; how the texts differ. unit: what a
    query is called. alone: B has no such head, and the rows are those of A alone."""

    a: Capture
    b: Capture
    pair: PairedRow | None
    told: SideNames
    display: Display
    unit: str
    of_text: str = ""
    differs: str = ""
    alone: bool = False


class PairReader:
    """Opens rows of two captures, in any thread; what they share is found once."""

    def __init__(self) -> None:
        self._alignment: Alignment | None = None
        self._shared_grid: SharedGrid | None = None
        self._names: tuple[CellTexts, CellTexts] | None = None  # of the grid
        self._said: tuple[str, str] = ("", "")
        self._of: tuple[object, ...] = ()

    def read(
        self, a: Capture, b: Capture, chosen: Selection, told: SideNames, display: Display
    ) -> TextRead:
        """The row of the chosen query on both sides."""
        progress(0, 2, "Reading the text’s weights")
        known = self._alignment
        if known is None or known.a is not a or known.b is not b:
            self._alignment = known = Alignment(a, b)
            self._shared_grid, self._of = None, ()
        of = (told, a.logits is None, b.logits is None)
        if self._of != of:
            self._said = of_text(a, b, told), differing(known)
            self._of = of
        there = chosen.layer < len(a.spec.layers)
        asking = a.query_prompt(chosen.layer) if there else a.main
        blank = TextRead(a, b, None, told, display, asking.unit, *self._said)
        other = counterpart(a, b, chosen.head_id, chosen.beside)
        mine = a.maps[chosen.layer] if chosen.layer < len(a.maps) else None
        if mine is None or chosen.head not in mine.heads:
            return blank
        progress(1, 2, "Reading the text’s weights")
        if other is None:
            alone = SharedGrid.of(Alignment(a, a), chosen.head_id, chosen.head_id)
            pair = replace(read_pair(alone, chosen.query, chosen.key), b=None)
            return replace(blank, pair=pair, alone=True)
        grid = self._met(known, chosen.head_id, other)
        pair = read_pair(grid, chosen.query, chosen.key, self._names)
        return replace(blank, pair=pair, differs=differing(known, grid))

    def _met(self, known: Alignment, head: HeadId, other: HeadId) -> SharedGrid:
        grid = self._shared_grid
        if grid is None or (grid.a, grid.head_a, grid.head_b) != (known.a, head, other):
            self._shared_grid = grid = SharedGrid.of(known, head, other)
            self._names = column_texts(grid)
            for names in self._names:  # found here, not while it is painted
                _ = names.widths, names.words
        return grid


class TextsView(View):
    """Rows of text for A, B and A − B, and in words what they show.

    A click chooses the query, Alt+click the key; where the keys are of another text than the
    queries, the key.
    """

    title: ClassVar[str] = "Text of A and B"
    figureless = "Its maps have figures"
    needs: ClassVar[tuple[str, ...]] = (
        "capture", "beside", "other", "selection", "hover", "display",
    )  # fmt: skip
    empty = ("Text of A and B", "It is shown once there is something to compare with.")
    empty_actions = (("compare_with", "Compare with…"),)
    topic: ClassVar[str] = "compare-texts"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._reader = PairReader()
        self._pair: PairedRow | None = None
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

    # --- View -------------------------------------------------------------------------------------

    def request(self, session: Session) -> Callable[[], TextRead] | None:
        """Read the row of the chosen query in both."""
        a, b = session.capture, session.beside
        if a is None or b is None or not len(a.main) or not a.spec.layers:
            return None
        chosen = session.selection
        looked = session.looked_at
        chosen = replace(chosen, query=looked.query, key=looked.key)
        return partial(self._reader.read, a, b, chosen, sides_of(session), session.display)

    def draw(self, result: TextRead) -> None:
        assert self.session is not None
        told, pair = result.told, result.pair
        unit = tr(result.unit)
        note = tr(SELECTED_NOTE, unit=unit)
        said = (note, result.of_text, result.differs)
        self.head.note.say("      ".join(filter(None, said)))
        self.head.setToolTip(tip(_explained(result)))
        old, self._pair = self._pair, pair
        if pair is None:
            self.rows.show_rows((), np.zeros(0), result.display)
            self.words.setText(tr(NO_LAYER))
            return
        limits = result.display.limits
        limit = max(map(abs, limits)) if limits is not None else pair.reach or 1.0
        stay = old is not None and old.names[0].prompt is pair.names[0].prompt
        stay = stay and np.array_equal(old.grid.columns.spans[0], pair.grid.columns.spans[0])
        self.rows.show_rows(
            rows_of(pair, told, limit, result.alone),
            np.maximum(1.0, np.maximum(pair.names[0].widths, pair.names[1].widths)),
            result.display, query=pair.query, stay=stay, reveal=self.session.hover is None,
        )  # fmt: skip
        words = sentence(pair, told, result.alone)
        self.words.setText(words or tr(ASKING, unit=unit))
        self.words.setToolTip(words)
        self.rows.setAccessibleDescription(words)

    def as_table(self) -> list[list[str]] | None:
        """Both rows and their difference, key by key."""
        pair = self._pair
        return of_row(pair) if pair is not None and pair.row is not None else None

    def as_text(self) -> str:
        return self.words.text()

    # --- inside -----------------------------------------------------------------------------------

    def _token(self, cell: int) -> int | None:
        return self._pair.grid.columns.token(cell) if self._pair is not None else None

    def _point(self, cell: int | None) -> None:
        if self.session is None:
            return
        chosen = self.session.selection
        token = None if cell is None else self._token(cell)
        here = token is not None and chosen.query is not None
        self.session.put(hover=replace(chosen, key=token) if here else None)

    def _query(self, cell: int) -> None:
        token = self._token(cell)
        if self.session is None or self.session.capture is None or token is None:
            return
        chosen, capture = self.session.selection, self.session.capture
        if capture.query_prompt(chosen.layer) is not capture.key_prompt(chosen.layer):
            self._key(cell)
        else:
            self.session.put(hover=None, selection=replace(chosen, query=token))

    def _key(self, cell: int) -> None:
        token = self._token(cell)
        if self.session is not None and token is not None:
            self.session.put(selection=replace(self.session.selection, key=token))


ROW_HEIGHT = 32  # px


def rows_of(
    pair: PairedRow, told: SideNames, limit: float = 1.0, alone: bool = False
) -> list[TextRow]:
    """The rows of A, of B and of A − B, coloured up to a limit; alone: B has no such head."""
    edge = pair.grid.columns
    messages = ["", "", ""]
    if alone:
        messages[1:] = tr("there is no such head"), tr("nothing to subtract")
    elif not edge.in_both.any():
        messages[2] = tr(APART)
    elif pair.row is not None and pair.difference is None:
        messages[2] = tr("only one side has this row")
    names = [f"{letter} {name}" if name != letter else letter
             for letter, name in zip("AB", (told.a, told.b), strict=True)]  # fmt: skip
    weights = [*(None if side is None else side.weights for side in (pair.a, pair.b)), None]
    seen = [*(None if side is None else side.seen for side in (pair.a, pair.b)), None]
    if not messages[2]:
        weights[2], seen[2] = pair.difference, pair.both
    texts, cells = (*pair.names, pair.names[0]), np.arange(len(edge))[:, None] + np.arange(2)
    rows = []
    for at, present in enumerate((edge.a.there, edge.b.there, edge.in_both)):
        is_signed = pair.signed or at == 2
        query, key = (
            (cell, cell + 1) if cell is not None and present[cell] and not messages[at] else None
            for cell in (pair.query, pair.key)
        )
        rows.append(TextRow(
            (*names, "A − B")[at], texts[at], cells, None, weights[at], seen[at], present,
            palettes.limits_of(-limit if is_signed else 0.0, limit, is_signed), is_signed,
            chosen=query, key=key, height=ROW_HEIGHT, message=messages[at],
        ))  # fmt: skip
    return rows


def differing(alignment: Alignment, grid: SharedGrid | None = None) -> str:
    """How much of the text both have, "" where both have the same tokens. grid: of the levels
    at hand, where there may be less of it than among the tokens."""
    if alignment.same_tokens:
        return ""
    a, b = alignment.a.main, alignment.b.main
    pieces = grid.columns.in_both.sum() if grid is not None else alignment.tokens().count
    shared = int(pieces)
    sizes = [counted(len(one), one.unit) for one in (a, b)]
    if not shared:
        return tr("A has {a}, B {b}, and none in common", a=sizes[0], b=sizes[1])
    if (len(a), a.unit) == (len(b), b.unit) == (shared, a.unit):
        return ""  # cut by other tokenizers, into the same pieces
    if shared == 1:
        said = "1 shared token of {a} in A and {b} in B; hatched: in one only"
        return tr(said, a=sizes[0], b=sizes[1])
    said = "{n:,} shared tokens of {a} in A and {b} in B; hatched: in one only"
    return tr(said, n=shared, a=sizes[0], b=sizes[1])


def _explained(result: TextRead) -> str:
    """What bits per byte are, where they are told."""
    writes = any(one.spec.goal == "next" for one in (result.a, result.b))
    if not writes or not result.of_text:
        return ""
    return explanation(tr(BITS), "−Σ_t log₂ P(x_t | x_<t) / bytes", GUIDE)


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
        self.maps.seat(self.sides.a, self.sides.b)
        self.sides.explained.connect(self.maps.head.note.say)
        self.sides.paired.connect(below.setVisible)
        vbox(self, self.sides, (self.maps, 1), below)

    @property
    def views(self) -> tuple[View, ...]:
        return self.maps, self.numbers, self.texts, self.sides

    def join(self, commands: Commands) -> None:
        self.sides.stopped.connect(commands.comparing.stop)

    def take_focus(self) -> bool:
        return self.maps.take_focus()

    def respond(self, width: int, height: int) -> None:
        """Lower the text in low windows, and leave out the metrics in the lowest."""
        self.numbers.setVisible(height >= NUMBERS_FROM)
        self._line.setVisible(height >= NUMBERS_FROM)
        self.texts.setFixedHeight(TEXT if height >= HIGH else TEXT_LOW)
