"""The head of the page: what is asked, how much is done, how long it takes, Run and Stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from hgviz.core import Step, Task
from hgviz.gui import theme
from hgviz.gui.controls import Button, PaneHead, Words
from hgviz.gui.language import tr
from hgviz.gui.sweeps.about import COUNTS, MEANS, STATES
from hgviz.gui.sweeps.raster import paint
from hgviz.gui.sweeps.running import RUN
from hgviz.gui.views.base import View, time_left
from hgviz.gui.working import GOING

if TYPE_CHECKING:
    from hgviz.session import Session
    from hgviz.sweep import State, Sweep

SWATCH, BETWEEN = 13, 18  # px
PROGRESS = (
    "Done, then what runs as far as it is; at the right what failed or cannot run. The time left "
    "is the mean time of finished cells of each kind times how many are left, over how many run."
)


class SummaryView(View):
    """One line of words, one of progress; what is wrong with the folder, if anything is."""

    title = "Study"
    topic = "study"
    icon = "table"
    figureless = "It says how a study stands"
    needs = ("sweep", "sweep_trouble", "dark")
    watches = ("work",)
    lane = "here"
    empty = ("No study is open", "Open a study file (.toml), or the folder that one was run into.")
    empty_actions = (("open_sweep_file", "Open a study file…"),)

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr("Study"))
        self.run = Button(tr("Run…"), kind="filled")
        self.run.setProperty("action", "run_sweep")
        self.stop = Button(tr("Stop"), "stop")
        self.stop.setProperty("action", "stop_sweep")
        for button in (self.run, self.stop):
            button.setFixedWidth(92)
            button.clicked.connect(self._asked)
        self.head.add(self.run, self.stop)
        self.head.setFixedHeight(44)
        self.bar = Bar()
        self.bar.setAccessibleName(tr("How far the study is"))
        self.bar.setToolTip(tr(PROGRESS))
        self.counts = Counts()
        self.counts.setToolTip(tr(MEANS["State"]))
        self.left = Words(factor=0.92, kind="secondary")
        self.left.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.trouble = Words(kind="bad")
        row = QHBoxLayout()
        row.setContentsMargins(16, 0, 16, 0)
        row.setSpacing(16)
        row.addWidget(self.counts)
        row.addWidget(self.left, 1)
        around = QHBoxLayout()
        around.setContentsMargins(16, 0, 16, 0)
        around.addWidget(self.bar)
        below = QHBoxLayout()
        below.setContentsMargins(16, 0, 16, 0)
        below.addWidget(self.trouble)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 10)
        column.setSpacing(6)
        column.addWidget(self.head)
        column.addLayout(around)
        column.addLayout(row)
        column.addLayout(below)
        self.trouble.hide()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def request(self, session: Session) -> Task[Sweep] | None:
        """The study as it was seen last."""
        return None if session.sweep is None else _given(session.sweep)

    def draw(self, result: Sweep) -> None:
        """Say it."""
        session = self.session
        assert session is not None
        counts = result.counts
        self.head.title.setText(result.title)
        asked = result.asked.question
        self.head.note.say(asked or result.path)
        self.head.note.setAccessibleName(asked or result.path)
        parts = {state: counts[state] / max(1, len(result.standings)) for state in STATES}
        running = sum(one.share for one in result.standings if one.state == "running")
        self.bar.show_parts(parts, running / max(1, len(result.standings)))
        self.counts.show_counts(counts)
        self.bar.setAccessibleDescription(self.counts.words)
        self.left.say(told(result))
        self.trouble.say(session.sweep_trouble)
        self.trouble.setVisible(bool(session.sweep_trouble))
        self._show_work()

    def noticed(self, name: str) -> None:
        """Run, or Stop what runs from here."""
        if name == "work":
            self._show_work()

    def as_text(self) -> str:
        """The same in words."""
        sweep = self.session.sweep if self.session is not None else None
        if sweep is None:
            return ""
        return f"{sweep.title}: {self.counts.words}. {told(sweep)}"

    def as_table(self) -> list[list[str]] | None:
        """How many cells are in each state."""
        sweep = self.session.sweep if self.session is not None else None
        if sweep is None:
            return None
        rows = [[tr(state), str(sweep.counts[state])] for state in STATES]
        return [[tr("State"), tr("Cells")], *rows]

    def _show_work(self) -> None:
        session = self.session
        if session is None or session.sweep is None:
            return
        going = any(one.key == RUN and one.state in GOING for one in session.work)
        counts = session.sweep.counts
        todo = counts["waiting"] + counts["running"] + counts["failed"]
        typed = self.isAncestorOf(self.window().focusWidget() or self)
        self.run.setVisible(not going)
        self.stop.setVisible(going)
        self.run.setEnabled(bool(todo))
        self.run.setToolTip(tr("Compute what is missing" if todo else "Everything is done"))
        self.stop.setToolTip(tr("Stop what runs from here; what is done is kept"))
        if typed and self.run.isEnabled():
            (self.stop if going else self.run).setFocus()

    def _asked(self) -> None:
        self.asked.emit(self.sender().property("action"))


class Bar(QWidget):
    """How many of all cells are done, run and failed."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedHeight(8)
        self._parts: Mapping[State, float] = {}
        self._share = 0.0

    def show_parts(self, parts: Mapping[State, float], share: float) -> None:
        """parts: of all cells by state; share: what is done of those that run."""
        self._parts, self._share = parts, share
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Done, then what runs, then what failed; the rest is still to come."""
        now = theme.current()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(now.hover)
            painter.drawRoundedRect(QRectF(self.rect()), 4, 4)
            at = 0.0
            for part, colour in (
                (self._parts.get("done", 0.0), now.good), (self._share, now.press),
            ):  # fmt: skip
                if part > 0:
                    wide = max(2.0, part * self.width())
                    painter.setBrush(colour)
                    painter.drawRoundedRect(QRectF(at, 0, wide, self.height()), 4, 4)
                    at += wide + 1
            bad = self._parts.get("failed", 0.0) + self._parts.get("blocked", 0.0)
            if bad > 0:
                wide = max(4.0, bad * self.width())
                painter.setBrush(now.bad)
                painter.drawRoundedRect(QRectF(self.width() - wide, 0, wide, self.height()), 4, 4)


class Counts(QWidget):
    """How many cells are in which state, beside what that state looks like in the grid."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: Mapping[State, int] = Counter()
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    @property
    def words(self) -> str:
        """12 done, 2 running."""
        return ", ".join(tr(COUNTS[state], n=count) for state, count in self._parts)

    @property
    def _parts(self) -> list[tuple[State, int]]:
        return [(one, self._counts[one]) for one in STATES if self._counts.get(one)]

    def show_counts(self, counts: Mapping[State, int]) -> None:
        """Show others."""
        if dict(counts) != dict(self._counts):
            self._counts = dict(counts)
            self.setAccessibleName(self.words)
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        """The room of all words."""
        metrics = QFontMetricsF(theme.font(0.92, 500))
        wide = sum(
            SWATCH + 6 + metrics.horizontalAdvance(tr(COUNTS[state], n=count)) + BETWEEN
            for state, count in self._parts
        )
        return QSize(round(wide), 20)

    def paintEvent(self, event: QPaintEvent) -> None:
        """A cell and its count, state by state."""
        font = theme.font(0.92, 500)
        metrics, x = QFontMetricsF(font), 0.0
        with QPainter(self) as painter:
            for state, count in self._parts:
                middle = self.height() / 2
                box = QRectF(round(x), round(middle - SWATCH / 2), SWATCH, SWATCH)
                paint(painter, box, state, 0.5)
                words = tr(COUNTS[state], n=count)
                painter.setFont(font)
                painter.setPen(theme.current().text)
                x += SWATCH + 6
                room = QRectF(x, 0, metrics.horizontalAdvance(words) + 4, self.height())
                painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, words)
                x += metrics.horizontalAdvance(words) + BETWEEN

    def changeEvent(self, event: QEvent) -> None:
        """Another theme."""
        if event.type() == QEvent.Type.PaletteChange:
            self.update()
        super().changeEvent(event)


def told(sweep: Sweep) -> str:
    """How long it takes, who runs it, and what of the folder is of another question."""
    hosts = Counter(one.host for one in sweep.standings if one.state == "running" and one.host)
    parts = [tr("{n:,} on {host}", n=n, host=host) for host, n in hosts.most_common(3)]
    one, many = "{n:,} more machine", "{n:,} more machines"
    parts += [tr(many if len(hosts) > 4 else one, n=len(hosts) - 3)] if len(hosts) > 3 else []
    running = tr("running: {where}", where=", ".join(parts)) if parts else ""
    over = tr("everything is done") if sweep.complete and sweep.standings else ""
    left = tr(time_left(sweep.left)) if not sweep.complete and hosts else ""
    other = tr("{n:,} of other settings kept", n=sweep.changed) if sweep.changed else ""
    return "   ·   ".join(filter(None, (left, running, over, other)))


def _given(sweep: Sweep) -> Task[Sweep]:
    yield Step(0, 1)
    return sweep
