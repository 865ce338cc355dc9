"""Beside the grid: the chosen cell, with what it left; and the cells that failed, a line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from hgviz.core import Step, Task
from hgviz.gui import theme
from hgviz.gui.controls import Button, PaneHead, Words, label
from hgviz.gui.language import tr
from hgviz.gui.rows import walks
from hgviz.gui.sweeps import about
from hgviz.gui.sweeps.commands import chosen
from hgviz.gui.views.base import View
from hgviz.sweep import Standing

if TYPE_CHECKING:
    from hgviz.session import Session
    from hgviz.sweep import Sweep

ROW = 44  # px
EXPORT = "Export figure…"
MOST = 500  # failures that are listed


class CellView(View):
    """Everything known of the chosen cell, and a button that opens what it left."""

    title = "This cell"
    topic = "study-cell"
    icon = "info"
    figureless = "It says what is known of one cell"
    needs = ("sweep", "cell", "dark")
    lane = "here"
    empty = ("No cell is chosen", "Choose one in the grid to see what it found.")
    empty_actions = (("next_cell", "Choose one"),)

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title))
        self.place = QLabel()
        self.place.setFont(theme.font(1.08, 600))
        self.place.setTextFormat(Qt.TextFormat.PlainText)
        self.place.setWordWrap(True)
        self.grid = QGridLayout()
        self.grid.setHorizontalSpacing(12)
        self.grid.setVerticalSpacing(4)
        self.grid.setColumnStretch(1, 1)
        self._facts: list[tuple[QLabel, QLabel]] = []
        self.open = Button(tr("Open"))
        self.open.setProperty("action", "open_cell")
        self.again = Button(tr("Try again…"))
        self.again.setProperty("action", "retry_sweep")
        for button in (self.open, self.again):
            button.clicked.connect(self._asked)
        self.fold = Button(tr("Details"), "chevron-right", kind="link")
        self.fold.clicked.connect(self._turn)
        self.copy_button = Button(tr("Copy"), "copy", kind="link")
        self.copy_button.clicked.connect(self._copy)
        self.details = QPlainTextEdit()
        self.details.setReadOnly(True)
        self.details.setFont(theme.mono(0.85))
        self.details.setAccessibleName(tr("Details"))
        self.details.setMinimumHeight(80)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        for button in (self.open, self.again):
            buttons.addWidget(button)
        buttons.addStretch(1)
        folded = QHBoxLayout()
        folded.addWidget(self.fold)
        folded.addWidget(self.copy_button)
        folded.addStretch(1)
        room = QWidget()
        room.setProperty("kind", "pane")
        room.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        inside = QVBoxLayout(room)
        inside.setContentsMargins(16, 4, 16, 12)
        inside.setSpacing(8)
        inside.addWidget(self.place)
        inside.addLayout(self.grid)
        inside.addLayout(buttons)
        inside.addLayout(folded)
        inside.addWidget(self.details, 4)
        inside.addStretch(1)
        scroll = QScrollArea()
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(room)
        scroll.viewport().setAutoFillBackground(False)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(scroll, 1)
        self.details.hide()

    def request(self, session: Session) -> Task[Standing] | None:
        """The chosen cell as it stands."""
        one = chosen(session)
        return None if one is None else _given(one)

    def draw(self, result: Standing) -> None:
        """Say all of it."""
        cell = result.cell
        self.place.setText(about.name(cell))
        rows = about.facts(result)
        while len(self._facts) < len(rows):
            self._add_row()
        for number, (name, words) in enumerate(self._facts):
            said = rows[number] if number < len(rows) else ("", "")
            name.setText(tr(said[0]))
            words.setText(said[1])
            for one in (name, words):
                one.setVisible(number < len(rows))
                one.setToolTip(about.explained(said[0], cell.work))
        failed = result.state in ("failed", "blocked")
        self.open.setText(tr(about.OPENS.get(cell.work, "Open")))
        self.open.setVisible(not failed)
        self.open.setEnabled(result.state == "done")
        self.open.setToolTip("" if result.state == "done" else tr("It is not done yet"))
        self.again.setVisible(failed)
        self.details.setPlainText(result.details)
        for one in (self.fold, self.copy_button):
            one.setVisible(bool(result.details))
        if not result.details:
            self.details.hide()
            self.fold.wear("chevron-right")

    def as_text(self) -> str:
        """All of it, a fact a line."""
        one = chosen(self.session) if self.session is not None else None
        if one is None:
            return ""
        rows = [f"{tr(name)}: {words}" for name, words in about.facts(one)]
        return "\n".join([about.name(one.cell), *rows])

    def as_table(self) -> list[list[str]] | None:
        """What is known of it, a fact a row."""
        one = chosen(self.session) if self.session is not None else None
        if one is None:
            return None
        rows = zip(about.VALUES, about.values(one), strict=True)
        return [[tr("Fact"), tr("Value")], *([tr(name), said] for name, said in rows if said)]

    def _add_row(self) -> None:
        row = len(self._facts)
        name, words = label(factor=0.92, kind="secondary"), label(factor=0.92, weight=500)
        words.setWordWrap(True)
        words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.grid.addWidget(name, row, 0, Qt.AlignmentFlag.AlignTop)
        self.grid.addWidget(words, row, 1)
        self._facts.append((name, words))

    def _turn(self) -> None:
        shown = self.details.isHidden()
        self.details.setVisible(shown)
        self.fold.wear("chevron" if shown else "chevron-right")

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(f"{self.as_text()}\n\n{self.details.toPlainText()}")

    def _asked(self) -> None:
        self.asked.emit(self.sender().property("action"))


class FailuresView(View):
    """Cells that were given up, why in one line each. picked: the key of one."""

    title = "Failures"
    topic = "study-failures"
    icon = "warning"
    figureless = "It lists what failed"
    needs = ("sweep", "dark")
    watches = ("cell",)
    lane = "here"
    empty = ("Nothing failed", "A cell that fails three times is given up and listed here.")

    picked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title))
        self.again = Button(tr("Try again…"))
        self.again.clicked.connect(self._again)
        self.head.add(self.again)
        self.rows = FailureList()
        self.rows.itemSelectionChanged.connect(self._picked)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.rows, 1)
        self._quiet = False

    def request(self, session: Session) -> Task[tuple[Standing, ...]] | None:
        """Those that failed; what only waits for them is not listed."""
        found, sweep = self._failed(session.sweep), session.sweep
        done = sweep is not None and sweep.complete
        self.empty_actions = (("export", EXPORT),) if done else (("run_sweep", "Run…"),)
        return _given(found) if found else None

    def draw(self, result: tuple[Standing, ...]) -> None:
        """List them."""
        blocked = self.session.sweep.counts["blocked"] if self.session.sweep else 0
        waits = tr("{n:,} more cannot run", n=blocked) if blocked else ""
        many = f"{len(result):,}"
        if len(result) > MOST:
            many = tr("the first {n:,} of {all:,}", n=MOST, all=len(result))
        self.head.note.say("; ".join(filter(None, (many, waits))))
        self._quiet = True
        self.rows.show_failures(result[:MOST])
        self.rows.mark(self.session.cell)
        self._quiet = False

    def noticed(self, name: str) -> None:
        """The chosen one is marked here, too."""
        if name == "cell" and self.session is not None:
            self._quiet = True
            self.rows.mark(self.session.cell)
            self._quiet = False

    def as_text(self) -> str:
        """A line each."""
        return "\n".join(self.rows.item(row).toolTip() for row in range(self.rows.count()))

    def as_table(self) -> list[list[str]] | None:
        """What failed, with its line."""
        found = self._failed(self.session.sweep) if self.session is not None else ()
        if not found:
            return None
        return [[*map(tr, about.VALUES)], *(about.values(one) for one in found)]

    @staticmethod
    def _failed(sweep: Sweep | None) -> tuple[Standing, ...]:
        some = () if sweep is None else sweep.standings
        return tuple(one for one in some if one.state == "failed")

    def _picked(self) -> None:
        item = self.rows.currentItem()
        if item is not None and not self._quiet:
            self.picked.emit(item.data(Qt.ItemDataRole.UserRole))

    def _again(self) -> None:
        self.asked.emit("retry_sweep")


class FailureList(QListWidget):
    """Two lines a cell: which, and why."""

    def __init__(self) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setProperty("kind", "rows")
        self.setAccessibleName(tr("Cells that failed"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._shown: tuple[tuple[str, str], ...] = ()

    def show_failures(self, found: tuple[Standing, ...]) -> None:
        """Show these; rows are kept while they stay the same."""
        shown = tuple((one.cell.key, one.line) for one in found)
        if shown == self._shown:
            return
        self._shown = shown
        self.clear()
        for one in found:
            name, line = about.name(one.cell), about.why(one)
            item = QListWidgetItem()
            item.setData(Qt.ItemDataRole.UserRole, one.cell.key)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{name}. {line}")
            item.setToolTip(f"{name}. {line}")
            item.setSizeHint(QSize(100, ROW))
            self.addItem(item)
            self.setItemWidget(item, _Row(name, line))

    def mark(self, key: str) -> None:
        """Show one as chosen without saying so."""
        keys = [one for one, _ in self._shown]
        if key in keys:
            self.setCurrentRow(keys.index(key))
        else:
            self.clearSelection()
            self.setCurrentRow(-1)

    def event(self, event: QEvent) -> bool:
        """Arrows walk its rows while it has the keyboard."""
        if walks(event):
            event.accept()
            return True
        return super().event(event)


class _Row(QFrame):
    def __init__(self, name: str, line: str) -> None:
        super().__init__()
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 3, 16, 3)
        column.setSpacing(0)
        column.addWidget(Words(name, weight=500))
        column.addWidget(Words(line, factor=0.92, kind="bad"))


def _given(found):  # type: ignore[no-untyped-def]
    yield Step(0, 1)
    return found
