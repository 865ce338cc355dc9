"""The chosen cell of a study: what it found, or why it failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from hgviz.core import Step, Task
from hgviz.gui import runs, theme
from hgviz.gui.language import tr
from hgviz.gui.sweeps.commands import chosen
from hgviz.gui.view import View
from hgviz.gui.widgets import Button, PaneHead, label
from hgviz.sweep import Standing

if TYPE_CHECKING:
    from hgviz.session import Session


class CellView(View):
    """Everything known of the chosen cell, and a button that opens what it left."""

    title = "This cell"
    topic = "study-cell"
    icon = "info"
    figureless = "It says what is known of one cell"
    needs = ("sweep", "cell", "dark")
    lane = "here"
    empty = ("No cell is chosen", "Choose one in the table to see what it found.")

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
        self.open.clicked.connect(self._open)
        self.fold = Button(tr("Details"), "chevron-right", kind="link")
        self.fold.clicked.connect(self._turn)
        self.copy_button = Button(tr("Copy"), "copy", kind="link")
        self.copy_button.clicked.connect(self._copy)
        self.details = QPlainTextEdit()
        self.details.setReadOnly(True)
        self.details.setFont(theme.mono(0.85))
        self.details.setAccessibleName(tr("Details"))
        self.details.setMinimumHeight(80)
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
        inside.addWidget(self.open, 0, Qt.AlignmentFlag.AlignLeft)
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
        self.place.setText(runs.name(cell))
        rows = runs.facts(result)
        while len(self._facts) < len(rows):
            self._add_row()
        for number, (name, words) in enumerate(self._facts):
            said = rows[number] if number < len(rows) else ("", "")
            name.setText(tr(said[0]))
            words.setText(said[1])
            for one in (name, words):
                one.setVisible(number < len(rows))
                one.setToolTip(runs.explained(said[0], cell.work))
        self.open.setText(tr(runs.OPENS.get(cell.work, "Open")))
        self.open.setVisible(result.state not in ("failed", "blocked"))
        self.open.setEnabled(result.state == "done")
        self.open.setToolTip("" if result.state == "done" else tr("It is not done yet"))
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
        rows = [f"{tr(name)}: {words}" for name, words in runs.facts(one)]
        return "\n".join([runs.name(one.cell), *rows])

    def as_table(self) -> list[list[str]] | None:
        """What is known of it, a fact a row."""
        one = chosen(self.session) if self.session is not None else None
        if one is None:
            return None
        rows = zip(runs.VALUES, runs.values(one), strict=True)
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

    def _open(self) -> None:
        self.asked.emit("open_cell")


def _given(standing: Standing) -> Task[Standing]:
    yield Step(0, 1)
    return standing


__all__ = ["CellView"]
