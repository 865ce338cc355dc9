"""Predictions that change with heads off, by example, class and slice."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen

from hgviz.analysis.importance import By, Ends, MaskTrial, SliceScore, Which
from hgviz.core import MetricEstimate, progress
from hgviz.gui import sentences, theme
from hgviz.gui.headgrid import place_noun
from hgviz.gui.language import tr
from hgviz.gui.sentences import counted, score_words
from hgviz.gui.sentences import term_explained as explained
from hgviz.gui.tables import REST, Column, RowTable
from hgviz.gui.trials import possible
from hgviz.gui.view import Empty, View
from hgviz.gui.widgets import PaneHead, Segments, vbox
from hgviz.language import decimals

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.session import Session

MOST = 2000  # rows: those whose loss rose most
SHOWN = 200  # characters of a text that are drawn
NARROW, NARROWEST = 620, 440  # px: below, the loss is left out
BITS_PER_NAT = 1 / math.log(2)

HEADS = {
    "classes": "Label", "next": "Next token", "masked": "Masked token", "tags": "Class",
    "ends": "Position", "states": "Nearest text",
}  # fmt: skip
WHOLE = ("classes", "states", "ends")  # asked of a whole text
HINT = "Return: open in Inspect; B: toggle pruned / full model"
KINDS: dict[Which, str] = {"lost": "Wrong", "won": "Right", "all": "All"}


@dataclass(frozen=True, slots=True)
class Change:
    """A place: the text before it, what was wanted, what both gave, bits of loss before and now."""

    example: int
    before: str
    wanted: str
    whole: str
    now: str
    was_right: bool
    is_right: bool
    loss: tuple[float, float]

    @property
    def more(self) -> float:
        return self.loss[1] - self.loss[0]


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows of one kind of what changed in a trial, and how many there are of each kind."""

    trial: MaskTrial
    rows: tuple[Change, ...]
    counts: dict[Which, int]


def changes(trial: MaskTrial, which: Which, model: Model | None) -> Changes:
    """The predictions that changed, those whose loss rose most first."""
    progress(0, 1)
    counts = {kind: len(trial.changed(kind)) for kind in KINDS}
    places = trial.changed(which)
    if trial.before is None or trial.now is None or not len(places):
        return Changes(trial, (), counts)
    more = trial.now.loss[places] - trial.before.loss[places]
    places = places[np.argsort(-more if which != "won" else more, kind="stable")][:MOST]
    name_of = _answer_namer(trial, model)
    rows = tuple(_change_at(trial, place, name_of) for place in places.tolist())
    return Changes(trial, rows, counts)


def pruned_title(trial: MaskTrial) -> str:
    """12 heads off: the title of a column of the model without them."""
    words = "{heads} off" if trial.off else "No head off"
    return tr(words, heads=counted(len(trial.off), "head"))


def _answer_namer(trial: MaskTrial, model: Model | None) -> Callable[[int], str]:
    """What an answer is called: a class, a token, or a place."""
    labels, asked = trial.examples.labels, trial.examples.asked
    if asked in ("classes", "tags"):
        return lambda number: labels[number] if 0 <= number < len(labels) else str(number)
    if asked in WHOLE or model is None:
        return str

    @lru_cache(maxsize=4096)
    def token(number: int) -> str:
        name = sentences.name(model.tokenizer.decode(np.array([number], np.int64)), 0)
        return tr("space") if name in (sentences.SPACE, " ") else name

    return token


def _change_at(trial: MaskTrial, place: int, name_of: Callable[[int], str]) -> Change:
    examples = trial.examples
    number = int(np.searchsorted(examples.places, place, side="right")) - 1
    row = examples.rows[number]
    text = row.text
    if examples.asked not in WHOLE:
        at = np.flatnonzero(row.wanted >= 0)[place - int(examples.places[number])]
        end = max(0, int(row.spans[at, int(examples.asked == "next")]))
        text = text[max(0, end - SHOWN) : end]
    wanted = int(examples.wanted[place])
    was, now = (int(side.predictions[place]) for side in (trial.before, trial.now))
    full, masked = (BITS_PER_NAT * float(side.loss[place]) for side in (trial.before, trial.now))
    return Change(
        number, text, name_of(wanted), name_of(was), name_of(now), was == wanted, now == wanted,
        (full, masked),
    )  # fmt: skip


def text_of(row: Change, most: int = SHOWN) -> str:
    """The text before an answer, with plain spaces."""
    return sentences.shown(row.before, most).replace(sentences.SPACE, " ")


def change_columns(listed: Changes) -> list[Column]:
    """The columns of a list of changes: right and wrong in word and colour, a bar of loss."""
    most = max((abs(row.more) for row in listed.rows), default=1.0) or 1.0
    asked = listed.trial.examples.asked
    ends = asked not in WHOLE  # then a text ends where the answer is

    def paint_text_before(painter: QPainter, box: QRectF, row: Change, chosen: bool) -> None:
        now, cut = theme.current(), Qt.TextElideMode
        text, font = text_of(row), theme.mono(0.92) if ends else theme.font(0.92)
        if not ends:
            theme.write(painter, box, text, font, now.text, cut=cut.ElideMiddle)
            return
        before = box.adjusted(0, 0, -12, 0)
        theme.write(painter, before, text, font, now.text, theme.TO_RIGHT, cut.ElideLeft)
        mark = QRectF(box.right() - 8, box.center().y() - 7, 8, 15)
        theme.draw_box(painter, mark, 2, now.mark if chosen else now.edge)

    def answer_column(title: str, answer: Callable[[Change], tuple[str, bool]]) -> Column:
        def words(row: Change) -> str:
            name, is_right = answer(row)
            return f"{name} {tr('right' if is_right else 'wrong')}"

        def paint(painter: QPainter, box: QRectF, row: Change, chosen: bool) -> None:
            now, (name, is_right), font = theme.current(), answer(row), theme.font(0.92)
            verdict = tr("right" if is_right else "wrong")
            room = QFontMetrics(font).horizontalAdvance(verdict) + 8
            left, colour = box.adjusted(0, 0, -room, 0), now.good if is_right else now.bad
            used = theme.write(painter, left, name, theme.mono(0.92, 600), colour)
            rest = box.adjusted(used + 8, 0, 0, 0)
            theme.write(painter, rest, verdict, font, now.secondary)

        return Column(title, words, width=122, paint=paint)

    def more_words(row: Change) -> str:
        return decimals(row.more, 2, signed=True)

    def paint_more(painter: QPainter, box: QRectF, row: Change, chosen: bool) -> None:
        now = theme.current()
        theme.write(painter, box, more_words(row), theme.font(0.85), now.text, theme.TO_RIGHT)
        room = box.width() - painter.fontMetrics().horizontalAdvance("+00.00") - 6
        wide = max(2.0, min(1.0, abs(row.more) / most) * room)
        bar = QRectF(box.left(), box.center().y() - 3, wide, 7)
        theme.draw_box(painter, bar, 2, now.bad if row.more > 0 else now.good)

    return [
        Column(tr("Context" if ends else "Text"), text_of, width=REST, right=ends,
               paint=paint_text_before),
        Column(tr(HEADS[asked]), lambda row: row.wanted, width=96, mono=True),
        answer_column(tr("Full model"), lambda row: (row.whole, row.was_right)),
        answer_column(pruned_title(listed.trial), lambda row: (row.now, row.is_right)),
        Column(tr("Loss increase"), more_words, lambda row: row.more, 116, explained("more"),
               least=NARROW, paint=paint_more),
        Column(tr("Loss, bits"), lambda row: f"{row.loss[0]:.2f} → {row.loss[1]:.2f}",
               lambda row: row.loss[1], 110, explained("loss"), right=True, least=NARROWEST),
    ]  # fmt: skip


class ChangedView(View):
    """Predictions that are newly wrong, newly right, or both; Return opens the text of one."""

    title = "Predictions that changed"
    figureless = "It is a list of texts"
    needs = ("trial", "dark")
    topic = "prune-changed"

    opened = Signal(str)  # a text

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title), tr(HINT))
        kinds = [(name, f"{tr(words)} 8,888") for name, words in KINDS.items()]
        about = tr("Predictions that are newly wrong, newly right, or both")
        self.which = Segments(kinds, about, wide=72)
        self.which.chosen.connect(self.refresh)
        self.head.add(self.which)
        self.table = RowTable(tr(self.title), id, partial(text_of, most=600))
        self.table.opened.connect(self._open)
        vbox(self.content, self.head, (self.table, 1))
        self.start_at(self.table)

    def request(self, session: Session) -> Callable[[], Changes] | Empty:
        trial, title = session.trial, "No prediction changed yet"
        if trial is None:
            return Empty(title, "Choose data to evaluate the model on.")
        if not trial.off:
            words = "Switch heads off to see which predictions change."
            return Empty(title, words, (("switch_head", "Switch this head off"),))
        if not trial.done and trial.stopped:
            resume = (("resume_score", "Resume"),)
            return Empty("Evaluation was stopped", "Resume it to list the predictions.", resume)
        if not trial.done:
            return Empty("Running…", "Changes are listed once all texts are evaluated.")
        if not len(trial.changed("all")):
            keep = ("keep_mask", "Save mask"), ("remove_heads", "Prune and save model…")
            words = "The model predicts the same on all texts."
            return Empty("No prediction changed", words, possible(session, *keep))
        kind: Which = self.which.choice  # type: ignore[assignment]
        return partial(changes, trial, kind, session.model)

    def draw(self, result: Changes) -> None:
        for number, (name, words) in enumerate(KINDS.items()):
            button = self.which._group.button(number)
            button.setText(f"{tr(words)} {result.counts[name]:,}")
        self.table.show_rows(change_columns(result), result.rows)
        shown = len(result.rows)
        is_part = result.counts[self.which.choice] > shown  # type: ignore[index]
        words = "{n:,} with the largest loss increase" if is_part else HINT
        self.head.note.say(tr(words, n=shown))
        self.table.setAccessibleName(tr("Predictions that changed: {n:,}", n=shown))
        if shown and self.table.chosen is None:
            self.table.choose(id(self.table.rows[0]))

    def as_table(self) -> list[list[str]] | None:
        return self.table.cells() if self.table.rows else None

    def _open(self, row: Change) -> None:
        trial = self.session.trial
        if trial is not None:
            text = trial.examples.rows[row.example].text
            self.opened.emit(row.before if trial.examples.asked != "classes" else text)


# --- slices ---------------------------------------------------------------------------------------

CALM = 30  # places from which on an interval may set the scale of all pictures
SLICES_NARROW, SLICES_NARROWER, SLICES_NARROWEST = 900, 750, 470  # px: below, columns are left out
NO_CHANGE = "not significant"
BY: dict[By, str] = {"all": "All", "label": "Label", "length": "Length"}


@dataclass(frozen=True, slots=True)
class Measure:
    """What slices are compared by."""

    title: str
    scores: Callable[[SliceScore], tuple[float, float]]  # of the full model and with heads off
    change: Callable[[SliceScore], Ends]  # from one to the other, with its interval
    factor: float  # of both, as they are written
    sign: int  # 1 where more is better, -1 where less is
    places: int
    score: str

    def ends(self, part: SliceScore) -> tuple[float, ...]:
        """The change of a slice and the ends of its interval, in points or bits."""
        return tuple(self.factor * end for end in self.change(part))

    def signed(self, value: float) -> str:
        """+0.05, −1.20, 0."""
        return decimals(value, self.places, signed=True)

    def verdict(self, part: SliceScore) -> str:
        """Whether a slice is worse, better or not significantly different, for tr."""
        _, low, high = self.change(part)
        if low <= 0 <= high:
            return NO_CHANGE
        return "better" if (low > 0) == (self.sign > 0) else "worse"


MEASURES = {
    "right": Measure(
        "Change, points", lambda part: (part.before[0], part.now[0]), lambda part: part.change,
        100.0, 1, 2, "{:.1f} %",
    ),
    "loss": Measure(
        "Change, bits", lambda part: (part.loss[0][0], part.loss[1][0]),
        lambda part: part.loss_change, BITS_PER_NAT, -1, 3, "{:.3f}",
    ),
}  # fmt: skip


def slice_columns(
    parts: Sequence[SliceScore], measure: Measure, noun: str, pruned: str
) -> list[Column]:
    """The columns of classes and slices; noun: what is counted; pruned: the title of the model with
    heads off."""
    calm = [part for part in parts if part.n >= CALM] or parts
    ends = [abs(end) for part in calm for end in measure.ends(part) if math.isfinite(end)]
    most = max(ends, default=1.0) or 1.0

    def score_column(title: str, at: int, width: int, term: str, least: int = 0) -> Column:
        def score(part: SliceScore) -> float:
            return measure.factor * measure.scores(part)[at]

        def words(part: SliceScore) -> str:
            return measure.score.format(score(part)) if part.n else "–"

        return Column(title, words, score, width, explained(term), True, least=least)

    def gain(part: SliceScore) -> float:
        return measure.sign * measure.ends(part)[0]

    def change_words(part: SliceScore) -> str:
        return measure.signed(measure.ends(part)[0]) if part.n else "–"

    def interval_words(part: SliceScore) -> str:
        _, low, high = measure.ends(part)
        if not part.n:
            return "–"
        if not math.isfinite(low):
            return tr("no interval for 1 text")
        return tr("{least} to {most}", least=measure.signed(low), most=measure.signed(high))

    def paint(painter: QPainter, box: QRectF, part: SliceScore, chosen: bool) -> None:
        """The interval around the middle, worse at its left; hollow where it includes 0."""
        now, middle, reach = theme.current(), box.center(), box.width() / 2
        painter.setPen(QPen(now.edge, 1))
        painter.drawLine(QPointF(middle.x(), box.top()), QPointF(middle.x(), box.bottom() + 1))
        if not part.n:
            return
        way, kind = measure.sign * (reach - 6) / most, measure.verdict(part)
        value, low, high = (
            QPointF(middle.x() + max(-reach, min(reach, end * way)), middle.y())
            for end in measure.ends(part)
        )
        colour = {"worse": now.bad, "better": now.good}.get(kind, now.secondary)
        painter.setPen(QPen(colour, 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        painter.drawLine(low, high)
        painter.setPen(QPen(colour, 1.5))
        painter.setBrush(now.pane if kind == NO_CHANGE else colour)
        painter.drawEllipse(value, 3.5, 3.5)

    def quiet(part: SliceScore) -> QColor:
        return theme.current().secondary

    seen = tr("{noun}s", noun=tr(noun))
    return [
        Column(tr("Part"), lambda part: tr(BY[part.by]), width=76, colour=quiet),
        Column(tr("Slice"), slice_name, width=REST),
        Column(f"{seen[:1].upper()}{seen[1:]}", lambda part: f"{part.n:,}", lambda part: part.n,
               84, right=True),
        score_column(tr("Full model"), 0, 96, "whole"),
        score_column(pruned, 1, 104, "right", SLICES_NARROWER),
        Column(tr(measure.title), change_words, gain, 116, explained("change"), True, 600),
        Column(tr("95 % interval"), interval_words, lambda part: [*measure.ends(part)[1:]], 146,
               explained("ends"), True, least=SLICES_NARROW, colour=quiet),
        Column(tr("worse  ·  better"), lambda part: tr(measure.verdict(part)), gain, 150,
               explained("ends"), least=SLICES_NARROWEST, paint=paint),
    ]  # fmt: skip


def slice_name(part: SliceScore) -> str:
    """What a slice is called; classes have names of their own."""
    return part.name if part.by == "label" else tr(part.name)


def slice_words(part: SliceScore) -> str:
    """A slice in a few lines."""
    name = f"{tr(BY[part.by])}  {slice_name(part)}".strip()
    if not part.n:
        return tr("{name}: none evaluated yet", name=name)
    before, now = (
        score_words(MetricEstimate("accuracy", *score, part.n, part.total))
        for score in (part.before, part.now)
    )
    full, pruned = (BITS_PER_NAT * loss[0] for loss in part.loss)
    return "\n".join((
        tr("{name}: {n:,} of {total:,}", name=name, n=part.n, total=part.total),
        tr("right, full model: {share}", share=before),
        tr("right, heads off: {share}", share=now),
        tr("{lost:,} newly wrong, {won:,} newly right", lost=part.lost, won=part.won),
        tr("loss: {full:.3f} → {pruned:.3f} bits", full=full, pruned=pruned),
    ))  # fmt: skip


class SlicesView(View):
    """One row for every class or slice; sorted by any column."""

    title = "Classes and slices"
    figureless = "Copy its values as a table instead"
    needs = ("trial", "dark", "data")
    lane = "here"
    topic = "prune-slices"

    def __init__(self) -> None:
        super().__init__()
        hint = tr("intervals are per slice, not simultaneous; click a title to sort")
        self.head = PaneHead(tr(self.title), hint)
        self.which = Segments((("right", "Right"), ("loss", "Loss")), wide=72)
        self.which.chosen.connect(self.refresh)
        self.head.add(self.which)
        self.table = RowTable(
            tr(self.title), lambda part: (part.by, part.name), slice_words,
            is_first=lambda part: part.by == "all",
        )  # fmt: skip
        vbox(self.content, self.head, (self.table, 1))
        self.start_at(self.table)

    def request(self, session: Session) -> Callable[[], MaskTrial] | Empty:
        trial = session.trial
        if trial is not None and trial.slices:
            return lambda: trial
        if session.data:
            return Empty("Running…", "Results appear as they are computed.")
        words = "Each is listed with its 95 % interval."
        return Empty("Choose data to compare classes and slices", words)

    def draw(self, result: MaskTrial) -> None:
        noun = place_noun(result.examples.asked, self.session.spec)
        measure = MEASURES[self.which.choice]
        columns = slice_columns(result.slices, measure, noun, pruned_title(result))
        self.table.show_rows(columns, result.slices)
        self.table.setAccessibleName(tr("Classes and slices: {n}", n=len(result.slices)))
        if result.slices and self.table.chosen is None:
            self.table.choose(self.table.key(self.table.rows[0]))

    def as_table(self) -> list[list[str]] | None:
        return self.table.cells() if self.table.rows else None
