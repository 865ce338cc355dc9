"""Predictions that change with heads off, by example, class and slice."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen

from hgviz.analysis.importance import By, Ends, MaskTrial, SliceScore, Which
from hgviz.core import progress
from hgviz.gui import sentences, theme
from hgviz.gui.headgrid import place_noun
from hgviz.gui.language import tr
from hgviz.gui.livescore import score_words
from hgviz.gui.sentences import term_explained as explained
from hgviz.gui.tables import REST, Column, RowTable, paint_text
from hgviz.gui.trials import DATA_ACTIONS, possible
from hgviz.gui.view import View
from hgviz.gui.widgets import PaneHead, Segments, vbox
from hgviz.language import decimals

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.session import Session

# --- changes --------------------------------------------------------------------------------------


MOST = 2000  # rows: those whose loss rose most
SHOWN = 200  # characters of a text that are drawn
BITS_PER_NAT = 1 / math.log(2)
NO_CHANGE = "not significant"

HEADS = {
    "classes": "Label", "next": "Next token", "masked": "Hidden token", "tags": "Class",
    "ends": "Position", "states": "Nearest text",
}  # fmt: skip
WHOLE = ("classes", "states", "ends")  # asked of a whole text


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
        """Bits of loss more."""
        return self.loss[1] - self.loss[0]


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows of one kind, how many of each there are, and the titles of their columns; ends: whether
    a text ends where the answer is."""

    rows: tuple[Change, ...]
    counts: dict[Which, int]
    columns: tuple[str, ...]
    most: float = 1.0
    ends: bool = False


def changes(trial: MaskTrial, which: Which, model: Model | None) -> Changes:
    """The predictions that changed, those whose loss rose most first."""
    progress(0, 1)
    kinds: tuple[Which, ...] = ("lost", "won", "all")
    counts: dict[Which, int] = {kind: len(trial.changed(kind)) for kind in kinds}
    examples = trial.examples
    ends = examples.asked not in WHOLE
    heads = (tr("Context") if ends else tr("Text"),
             tr(HEADS[examples.asked]), tr("Full model"),
             off_words(len(trial.off)), tr("Loss increase"), tr("Loss, bits"))  # fmt: skip
    found = trial.changed(which)
    if trial.before is None or trial.now is None or not len(found):
        return Changes((), counts, heads, ends=ends)
    more = trial.now.loss[found] - trial.before.loss[found]
    found = found[np.argsort(-more if which != "won" else more, kind="stable")][:MOST]
    say = _sayer(trial, model)
    rows = tuple(_row(trial, int(place), say) for place in found)
    most = max((abs(one.more) for one in rows), default=1.0) or 1.0
    return Changes(rows, counts, heads, most, ends)


def off_words(count: int) -> str:
    """12 heads off."""
    return tr("1 head off") if count == 1 else tr("{n:,} heads off", n=count)


def verdict(right: bool) -> str:
    """right, or wrong."""
    return tr("right") if right else tr("wrong")


def _sayer(trial: MaskTrial, model: Model | None) -> Callable[[int], str]:
    """What an answer is called: a class, or a token."""
    labels = trial.examples.labels
    if trial.examples.asked in ("classes", "tags"):
        return lambda number: labels[number] if 0 <= number < len(labels) else str(number)

    if trial.examples.asked in WHOLE:
        return str

    @lru_cache(maxsize=4096)
    def token(number: int) -> str:
        if model is None:
            return str(number)
        prompt = model.tokenizer.decode(np.array([number], np.int64))
        said = sentences.name(prompt, 0)
        return tr("space") if said in (sentences.SPACE, " ") else said

    return token


def _row(trial: MaskTrial, place: int, say: Callable[[int], str]) -> Change:
    assert trial.before is not None and trial.now is not None
    examples = trial.examples
    number = int(np.searchsorted(examples.places, place, side="right")) - 1
    one = examples.rows[number]
    if examples.asked in WHOLE:
        text = one.text
    else:
        at = np.flatnonzero(one.wanted >= 0)[place - int(examples.places[number])]
        start, end = (int(side) for side in one.spans[at])
        end = end if examples.asked == "next" else start
        text = one.text[max(0, end - SHOWN) : max(0, end)]
    wanted = int(examples.wanted[place])
    was, now = int(trial.before.predictions[place]), int(trial.now.predictions[place])
    whole, masked = float(trial.before.loss[place]), float(trial.now.loss[place])
    return Change(
        number, text, say(wanted), say(was), say(now), was == wanted, now == wanted,
        (whole * BITS_PER_NAT, masked * BITS_PER_NAT),
    )  # fmt: skip


def row_cells(row: Change) -> list[str]:
    """A row for a spreadsheet: answers, whether they are right, bits of loss before and now."""
    return [
        text_of(row), row.wanted, row.whole, f"{int(row.was_right)}", row.now,
        f"{int(row.is_right)}", f"{row.loss[0]:.6g}", f"{row.loss[1]:.6g}",
    ]  # fmt: skip


def text_of(row: Change, most: int = SHOWN) -> str:
    """The text before an answer, with plain spaces."""
    return sentences.shown(row.before, most).replace(sentences.SPACE, " ")


def change_columns(found: Changes) -> list[Column]:
    """The columns of a list of changes: right and wrong in word and colour, a bar of loss."""

    def paint_text_before(painter: QPainter, box: QRectF, row: Change, chosen: bool) -> None:
        now, cut = theme.current(), Qt.TextElideMode
        painter.setFont(theme.mono(0.92) if found.ends else theme.font(0.92))
        if not found.ends:
            paint_text(painter, box, text_of(row), now.text, cut=cut.ElideMiddle)
            return
        before = box.adjusted(0, 0, -12, 0)
        paint_text(painter, before, text_of(row), now.text, theme.TO_RIGHT, cut.ElideLeft)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.mark if chosen else now.edge)
        painter.drawRoundedRect(QRectF(box.right() - 8, box.center().y() - 7, 8, 15), 2, 2)

    def paint_answer(painter: QPainter, box: QRectF, words: str, is_right: bool) -> None:
        now = theme.current()
        painter.setFont(theme.font(0.92))
        room = painter.fontMetrics().horizontalAdvance(verdict(is_right)) + 8
        painter.setFont(theme.mono(0.92, 600))
        answer = box.adjusted(0, 0, -room, 0)
        used = paint_text(painter, answer, words, now.good if is_right else now.bad)
        painter.setFont(theme.font(0.92))
        paint_text(painter, box.adjusted(used + 8, 0, 0, 0), verdict(is_right), now.secondary)

    def paint_more(painter: QPainter, box: QRectF, row: Change, chosen: bool) -> None:
        now = theme.current()
        painter.setFont(theme.font(0.85))
        paint_text(painter, box, more_words(row), now.text, theme.TO_RIGHT)
        room = box.width() - painter.fontMetrics().horizontalAdvance("+00.00") - 6
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.bad if row.more > 0 else now.good)
        wide = max(2.0, min(1.0, abs(row.more) / found.most) * room)
        painter.drawRoundedRect(QRectF(box.left(), box.center().y() - 3, wide, 7), 2, 2)

    def more_words(row: Change) -> str:
        return decimals(row.more, 2, signed=True)

    text, wanted, full, pruned, more, loss = found.columns
    return [
        Column(text, text_of, width=REST, right=found.ends, paint=paint_text_before),
        Column(wanted, lambda row: row.wanted, width=96, mono=True),
        Column(
            full, lambda row: f"{row.whole} {verdict(row.was_right)}", width=122,
            paint=lambda painter, box, row, _: paint_answer(painter, box, row.whole, row.was_right),
        ),
        Column(
            pruned, lambda row: f"{row.now} {verdict(row.is_right)}", width=122,
            paint=lambda painter, box, row, _: paint_answer(painter, box, row.now, row.is_right),
        ),
        Column(
            more, more_words, lambda row: row.more, 116, explained("more"), least=NARROW,
            paint=paint_more,
        ),
        Column(
            loss, lambda row: f"{row.loss[0]:.2f} → {row.loss[1]:.2f}", lambda row: row.loss[1],
            110, explained("loss"), right=True, least=NARROWEST,
        ),
    ]  # fmt: skip


# --- changes in a view ----------------------------------------------------------------------------


CHANGE_HINT = "Return opens one in Inspect; B shows it before and after"
KEEP = (("keep_mask", "Save mask"), ("remove_heads", "Prune and save model…"))
KINDS: tuple[tuple[Which, str], ...] = (
    ("lost", "Wrong"), ("won", "Right"), ("all", "All"),
)  # fmt: skip
NARROW, NARROWEST = 620, 440  # px: below, the loss is left out


class ChangedView(View):
    """Predictions that are newly wrong, newly right, or both; Return opens the text of one."""

    title = "Predictions that changed"
    figureless = "It is a list of texts"
    needs = ("trial", "dark")
    empty = ("No prediction changed yet", "Switch heads off: what they change is listed here.")

    empty_actions: tuple[tuple[str, str], ...] = (("switch_head", "Switch this head off"),)
    topic = "prune-changed"

    opened = Signal(str)  # a text

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title), tr(CHANGE_HINT))
        self.which = Segments(
            tuple((name, f"{tr(words)} 8,888", "") for name, words in KINDS), wide=72
        )
        self.which.setToolTip(tr("Predictions that are newly wrong, newly right, or both"))
        self.which.chosen.connect(self.refresh)
        self.head.add(self.which)
        self.found: Changes | None = None
        self.table = RowTable(tr(self.title), id, partial(text_of, most=600))
        self.table.opened.connect(self._open)
        vbox(self.content, self.head, (self.table, 1))
        self.start_at(self.table)

    def request(self, session: Session) -> Callable[[], Changes] | None:
        """The rows, once every place was seen."""
        trial = session.trial
        self.empty_actions = ()
        if trial is None:
            self.empty = ("No prediction changed yet", "Choose data for the model to answer.")
            self.empty_actions = possible(session, *DATA_ACTIONS)[:1]
            return None
        if not trial.off:
            self.empty, self.empty_actions = type(self).empty, type(self).empty_actions
            return None
        if not trial.done:
            if trial.stopped:
                self.empty = ("Evaluation was stopped", "Resume it to list the predictions.")
                self.empty_actions = (("resume_score", "Resume"),)
                return None
            self.empty = (
                "Running…",
                "They are listed when all texts were evaluated.",
            )
            return None
        if not len(trial.changed("all")):
            self.empty = ("No prediction changed", "The model gives the same answers everywhere.")
            self.empty_actions = possible(session, *KEEP)
            return None
        kind: Which = self.which.choice  # type: ignore[assignment]
        return partial(changes, trial, kind, session.model)

    def draw(self, result: Changes) -> None:
        for number, (name, words) in enumerate(KINDS):
            button = self.which._group.button(number)
            button.setText(f"{tr(words)} {result.counts[name]:,}")
        self.found = result
        self.table.show_rows(change_columns(result), result.rows)
        shown = len(result.rows)
        more = result.counts.get(self.which.choice, shown) - shown  # type: ignore[call-overload]
        largest = tr("{n:,} with the largest loss increase", n=shown)
        self.head.note.say(largest if more > 0 else tr(CHANGE_HINT))
        self.table.setAccessibleName(tr("Predictions that changed: {n:,}", n=shown))
        if shown and self.table.chosen is None:
            self.table.choose(id(self.table.rows[0]))

    def as_table(self) -> list[list[str]] | None:
        """The rows that are listed, texts as long as they are shown."""
        found = self.found
        if found is None or not found.rows or self._stack.currentWidget() is not self.content:
            return None
        was, now = found.columns[2:4]
        names = (*found.columns[:2], was, tr("right"), now, tr("right"), tr("bits, full model"),
                 tr("bits, heads off"))  # fmt: skip
        return [list(names), *map(row_cells, self.table.rows)]

    def _open(self, row: Change) -> None:
        trial = self.session.trial if self.session else None
        if trial is not None:
            text = trial.examples.rows[row.example].text
            self.opened.emit(row.before if trial.examples.asked != "classes" else text)


# --- slices ---------------------------------------------------------------------------------------


Measure = Literal["right", "loss"]

CALM = 30  # places from which on an interval may set the scale of all pictures
BY: dict[By, str] = {"all": "All", "label": "Label", "length": "Length"}
COLUMNS = (
    "by", "slice", "seen", "of", "right, full model", "low", "high", "right, heads off", "low",
    "high", "newly wrong", "newly right", "change", "low", "high", "bits, full model",
    "bits, heads off", "more bits", "low", "high",
)  # fmt: skip


def change_of(part: SliceScore, measure: Measure) -> Ends:
    """The change of a slice with its interval, in points of right answers or in bits."""
    times, ends = (100.0, part.change) if measure == "right" else (BITS_PER_NAT, part.loss_change)
    value, low, high = (times * end for end in ends)
    return value, low, high


def slice_columns(
    parts: Sequence[SliceScore], measure: Measure, noun: str, pruned: str
) -> list[Column]:
    """The columns of classes and slices; noun: what is counted; pruned: the title of the model with
    heads off."""
    is_right = measure == "right"
    calm = [part for part in parts if part.n >= CALM] or parts
    ends = [abs(end) for part in calm for end in change_of(part, measure) if math.isfinite(end)]
    most = max(ends, default=1.0) or 1.0

    def score(part: SliceScore, at: int) -> float:
        now = (part.before, part.now)[at][0]
        return 100 * now if is_right else BITS_PER_NAT * part.loss[at][0]

    def score_words(part: SliceScore, at: int) -> str:
        if not part.n:
            return "–"
        value = score(part, at)
        return tr("{share:.1f} %", share=value) if is_right else f"{value:.3f}"

    def colour(part: SliceScore) -> QColor:
        now, kind = theme.current(), part_verdict(part, measure)
        return {"worse": now.bad, "better": now.good}.get(kind, now.secondary)

    def worth(part: SliceScore) -> float:
        return change_of(part, measure)[0] * (1 if is_right else -1)

    def paint(painter: QPainter, box: QRectF, part: SliceScore, chosen: bool) -> None:
        """The interval around the middle, worse at its left; hollow where it includes 0."""
        now, middle, reach = theme.current(), box.center(), box.width() / 2
        painter.setPen(QPen(now.edge, 1))
        painter.drawLine(QPointF(middle.x(), box.top()), QPointF(middle.x(), box.bottom() + 1))
        if not part.n:
            return
        way = (1 if is_right else -1) * (reach - 6) / most
        value, low, high = (
            QPointF(middle.x() + max(-reach, min(reach, end * way)), middle.y())
            for end in change_of(part, measure)
        )
        painter.setPen(QPen(colour(part), 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        painter.drawLine(low, high)
        painter.setPen(QPen(colour(part), 1.5))
        painter.setBrush(now.pane if part_verdict(part, measure) == NO_CHANGE else colour(part))
        painter.drawEllipse(value, 3.5, 3.5)

    seen = tr("{noun}s", noun=tr(noun))
    change = tr("Change, points") if is_right else tr("Change, bits")
    before, after = (partial(score, at=at) for at in (0, 1))
    return [
        Column(
            tr("Part"), lambda part: tr(BY[part.by]), lambda part: BY[part.by], 76,
            colour=lambda part: theme.current().secondary,
        ),
        Column(tr("Slice"), name_words, width=REST),
        Column(
            f"{seen[:1].upper()}{seen[1:]}", lambda part: f"{part.n:,}", lambda part: part.n, 84,
            right=True,
        ),
        Column(
            tr("Full model"), partial(score_words, at=0), before, 96, explained("whole"), True,
        ),
        Column(
            pruned, partial(score_words, at=1), after, 104, explained("right"), True,
            least=SLICES_NARROWER,
        ),
        Column(
            change, partial(change_words, measure=measure), worth, 116, explained("change"), True,
            600,
        ),
        Column(
            tr("95 % interval"), partial(interval_words, measure=measure),
            lambda part: change_of(part, measure)[1], 146, explained("ends"), True,
            least=SLICES_NARROW, colour=lambda part: theme.current().secondary,
        ),
        Column(
            tr("worse  ·  better"), lambda part: tr(part_verdict(part, measure)), worth, 150,
            explained("ends"), least=SLICES_NARROWEST, paint=paint,
        ),
    ]  # fmt: skip


def change_words(part: SliceScore, measure: Measure) -> str:
    """The change of a slice, or a dash where nothing of it was seen."""
    return signed(change_of(part, measure)[0], measure) if part.n else "–"


def interval_words(part: SliceScore, measure: Measure) -> str:
    """The interval of the change of a slice."""
    _, low, high = change_of(part, measure)
    if not part.n:
        return "–"
    if not math.isfinite(low):
        return tr("one text has no interval")
    return tr("{least} to {most}", least=signed(low, measure), most=signed(high, measure))


def name_words(part: SliceScore) -> str:
    """What a slice is called; classes have names of their own."""
    return part.name if part.by == "label" else tr(part.name)


def part_verdict(part: SliceScore, measure: Measure) -> str:
    """Whether a slice is worse, better or not significantly different, for tr."""
    _, low, high = change_of(part, measure)
    if low <= 0 <= high:
        return NO_CHANGE
    return "better" if (low > 0) == (measure == "right") else "worse"


def signed(value: float, measure: Measure) -> str:
    """+0.05, −1.20, 0; bits with three places."""
    places = 2 if measure == "right" else 3
    return decimals(value, places, signed=True)


def slice_words(part: SliceScore) -> str:
    """A slice in a few lines."""
    name = f"{tr(BY[part.by])}  {name_words(part)}".strip()
    if not part.n:
        return tr("{name}: none evaluated yet", name=name)
    before, now = (score_words("accuracy", *score) for score in (part.before, part.now))
    full, pruned = (BITS_PER_NAT * loss[0] for loss in part.loss)
    return "\n".join((
        tr("{name}: {n:,} of {total:,}", name=name, n=part.n, total=part.total),
        tr("right, full model: {share}", share=before),
        tr("right, heads off: {share}", share=now),
        tr("{lost:,} newly wrong, {won:,} newly right", lost=part.lost, won=part.won),
        tr("loss: {full:.3f} → {pruned:.3f} bits", full=full, pruned=pruned),
    ))  # fmt: skip


def slice_table(parts: Sequence[SliceScore]) -> list[list[str]]:
    """Every number of every slice: shares of right answers, losses in bits."""
    lines = [[tr(title) for title in COLUMNS]]
    for part in parts:
        bits = [
            f"{BITS_PER_NAT * loss:.6g}"
            for loss in (part.loss[0][0], part.loss[1][0], *part.loss_change)
        ]
        shares = [[f"{end:.6g}" for end in ends] for ends in (part.before, part.now, part.change)]
        counts = [f"{part.lost}", f"{part.won}"]
        words = [tr(BY[part.by]), name_words(part), f"{part.n}", f"{part.total}"]
        lines.append([*words, *shares[0], *shares[1], *counts, *shares[2], *bits])
    return lines


# --- slices in a view -----------------------------------------------------------------------------


SLICES_NARROW, SLICES_NARROWER, SLICES_NARROWEST = 900, 750, 470  # px: below, columns are left out
SLICE_HINT = "each interval is of one slice by itself; click a title to sort"


class SlicesView(View):
    """One row for every class or slice; sorted by any column."""

    title = "Classes and slices"
    figureless = "Copy its values as a table instead"
    needs = ("trial", "dark", "data")
    lane = "here"
    topic = "prune-slices"
    empty = ("Choose data to compare classes and slices", "Each is listed here with its interval.")

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title), tr(SLICE_HINT))
        self.which = Segments((("right", tr("Right"), ""), ("loss", tr("Loss"), "")), wide=72)
        self.which.chosen.connect(self.refresh)
        self.head.add(self.which)
        self.table = RowTable(
            tr(self.title), lambda part: (part.by, part.name), slice_words,
            is_first=lambda part: part.by == "all",
        )  # fmt: skip
        vbox(self.content, self.head, (self.table, 1))
        self.start_at(self.table)

    def request(self, session: Session) -> Callable[[], MaskTrial] | None:
        """The trial so far; nothing without data."""
        trial = session.trial
        if trial is None or not trial.slices:
            there = bool(session.data)
            self.empty = (
                ("Running…", "Results appear as they are computed.")
                if there
                else (type(self).empty)
            )
            self.empty_actions = () if there else possible(session, *DATA_ACTIONS)[:1]
            return None
        return lambda: trial

    def draw(self, result: MaskTrial) -> None:
        assert self.session is not None
        measure: Measure = self.which.choice  # type: ignore[assignment]
        noun = place_noun(result.examples.asked, self.session.spec)
        now = off_words(len(result.off)) if result.off else tr("No head off")
        columns = slice_columns(result.slices, measure, noun, now)
        self.table.show_rows(columns, result.slices)
        self.table.setAccessibleName(tr("Classes and slices: {n}", n=len(result.slices)))
        if result.slices and self.table.chosen is None:
            self.table.choose(self.table.key(self.table.rows[0]))

    def as_text(self) -> str:
        return "".join("\t".join(row) + "\n" for row in self.as_table() or ())

    def as_table(self) -> list[list[str]] | None:
        return slice_table(self.table.rows) if self.table.rows else None
