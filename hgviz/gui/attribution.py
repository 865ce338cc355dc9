"""The look Attribution: where an answer comes from, beside what the selected head looks at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from hgviz import tasks
from hgviz.analysis.attribution import Attribution, Beside, Question
from hgviz.core import Capture, Display, HeadId, Prompt, Step, Task
from hgviz.figures.spec import Spec
from hgviz.gui.attribution_parts.asking import EXPLAIN, Choice, asked, choices, complete_words
from hgviz.gui.attribution_parts.rows import BarRows
from hgviz.gui.attribution_parts.telling import (
    COMPLETENESS,
    COMPLETES,
    CONDUCTANCE,
    CONDUCTS,
    RANKED,
    SPEARMAN,
    agreement_words,
    heads_of,
    table_of,
)
from hgviz.gui.attribution_parts.wall import ConductanceWall
from hgviz.gui.grid import Names
from hgviz.gui.heads_parts.metrics import explanation
from hgviz.gui.jobs import GOING
from hgviz.gui.language import tr
from hgviz.gui.view import View
from hgviz.gui.views import sayings, words
from hgviz.gui.views.busy import time_left
from hgviz.gui.views.grid import Words as Texts
from hgviz.gui.widgets import (
    Button,
    IconButton,
    PaneHead,
    Picker,
    Segments,
    Words,
    label,
    line,
    tip,
)

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.session import Session, Work

STEPS = (32, 64, 128, 256, 512)
BASELINES = (
    ("blank", "blanks", "Every token begins as a mask, a padding or a space"),
    ("mean", "the mean", "Every token begins as the average of all tokens"),
    ("zero", "zero", "Every token begins as nothing; paths from there are rough"),
)
ROWS = (("query", "This query", ""), ("all", "All queries", ""))
LOW, NARROW = 360, 560  # px
CONDUCTED = "What every head conducts"
CONDUCTED_BESIDE = (
    "What every head conducts; at the right what each layer attends, by integrated gradients"
)
NOTHING = ("No answer to explain yet", "Capture a text with a model, and ask where it came from.")
CAPTURE = (("capture", "Capture this text"), ("open_sample", "Open the sample"))
OPEN = (("open_folder", "Open a checkpoint…"),)
HINT = "Attribute asks the model which tokens and heads this answer comes from."


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What a request brings: what can be asked, and one head beside what was found."""

    capture: Capture
    question: Question
    choices: tuple[Choice, ...]
    found: Attribution | None = None
    beside: Beside | None = None
    names: Names | None = None


class AttributionView(View):
    """Asks on request; then every head and query is compared at once."""

    name, title = "attribution", "Attribution"
    topic = "attribution"
    figureless = "Nothing is attributed yet"
    lane = "map"  # the engine may be busy asking
    icon: ClassVar[str] = "eye"
    needs: ClassVar[tuple[str, ...]] = ("capture", "selection", "question", "explained", "off")
    watches: ClassVar[tuple[str, ...]] = ("work",)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.told: Told | None = None
        self._texts = Texts()
        self._of: tuple[Prompt | None, Prompt | None] = (None, None)
        self.head = PaneHead(tr("Head"))
        self.level = label(factor=0.92, weight=500, kind="chip")
        self.rows = Segments([(name, tr(said), icon) for name, said, icon in ROWS])
        self.rows.setToolTip(tr("Whose attention is compared"))
        self.rows.setAccessibleName(tr("Whose attention is compared"))
        self.rows.chosen.connect(self._again)
        self.head.add_beside_title(self.level)
        self.export = IconButton("export", tr("Export figure… (Ctrl+E)"))
        self.export.clicked.connect(lambda: self.asked.emit("export"))
        self.head.add(self.rows, self.export)
        self.answer, self.steps, self.baseline = Picker(), Picker(), Picker()
        for one, said, long in (
            (self.answer, "The answer", 12), (self.steps, "Points of the path", 7),
            (self.baseline, "Where the path begins", 8),
        ):  # fmt: skip
            one.setAccessibleName(tr(said))
            one.setToolTip(tr(said))
            one.setSizeAdjustPolicy(Picker.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            one.setMinimumContentsLength(long)
            one.activated.connect(self._ask_for)
        self.answer.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        for count in STEPS:
            self.steps.addItem(words.counted(count, "step"), count)
        for name, said, why in BASELINES:
            self.baseline.addItem(tr(said), name)
            self.baseline.setItemData(
                self.baseline.count() - 1, tr(why), Qt.ItemDataRole.ToolTipRole
            )
        self.button = Button(tr("Attribute"), kind="filled")
        self.button.clicked.connect(self._press)
        self.button.setMinimumWidth(self.button.sizeHint().width())
        self._asks = label(tr("Answer"), factor=0.92, kind="secondary")
        controls = QHBoxLayout()
        controls.setContentsMargins(16, 4, 16, 8)
        controls.setSpacing(8)
        controls.addWidget(self._asks)
        controls.addWidget(self.answer, 1)
        for one in (self.steps, self.baseline, self.button):
            controls.addWidget(one)
        self.agreement = label()
        self.agreement.setWordWrap(True)
        self.agreement.setTextFormat(Qt.TextFormat.PlainText)
        self.agreement.setContentsMargins(16, 4, 16, 8)
        self.agreement.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.agreement.setToolTip(explanation(tr(RANKED), SPEARMAN))
        self.bars, self.wall = BarRows(), ConductanceWall()
        self.bars.picked.connect(self._pick)
        self.wall.picked.connect(self._open)
        self.room = QScrollArea()
        self.room.setFrameShape(QFrame.Shape.NoFrame)
        self.room.setWidgetResizable(True)
        self.room.setWidget(self.wall)
        self.room.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.room.viewport().setAutoFillBackground(False)
        self.wall.setAutoFillBackground(False)
        self.heads = Words("", factor=0.85, weight=600, kind="secondary")
        self.heads.setContentsMargins(16, 6, 16, 2)
        self.wall.setToolTip(explanation(tr(CONDUCTS), CONDUCTANCE))
        self._line = line()
        self.complete = label(factor=0.92, kind="secondary")
        self.complete.setWordWrap(True)
        self.complete.setContentsMargins(16, 4, 16, 8)
        self.complete.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.complete.setToolTip(explanation(tr(COMPLETES), COMPLETENESS))
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addLayout(controls)
        column.addWidget(line())
        column.addWidget(self.agreement)
        column.addWidget(self.bars, 3)
        column.addWidget(self._line)
        column.addWidget(self.heads)
        column.addWidget(self.room, 2)
        column.addWidget(self.complete)
        self.start_at(self.bars)

    # --- View -------------------------------------------------------------------------------------

    def request(self, session: Session) -> Task[Told] | None:
        """What can be asked, and the selected head beside what was found for this text."""
        capture = session.capture
        self.empty, self.empty_actions = NOTHING, CAPTURE
        if capture is None or not len(capture.main):
            return None
        self.empty_actions = ()
        if capture.spec.goal == "states":
            self.empty = (
                "This model gives hidden states, no answer",
                "Open it with its classifier or its language model, and ask where one comes from.",
            )
            self.empty_actions = OPEN
            return None
        question = asked(session)
        if question is None:
            self.empty = ("This capture has no answer", "It was stopped before the model gave one.")
            self.empty_actions = CAPTURE[:1]
            return None
        if session.model is None and not session.checkpoint:
            self.empty = (
                "Attribution asks the model itself",
                "This capture came without it: open the checkpoint that it was made with.",
            )
            self.empty_actions = OPEN
            return None
        found = session.explained
        there = found is not None and found.of(capture)
        return self._told(
            session.model, capture, question, found if there else None,
            session.selection.head_id,
            None if self.rows.choice == "all" else session.selection.query,
        )  # fmt: skip

    def _told(
        self,
        model: Model | None,
        capture: Capture,
        question: Question,
        found: Attribution | None,
        head: HeadId,
        query: int | None,
    ) -> Task[Told]:
        yield Step(0, 1)
        told = Told(capture, question, choices(capture, question, model), found)
        if found is None or found.slopes is None:
            return told
        layer = capture.spec.layers[head.layer]
        names = self._named(capture).names(capture, layer.key_level, capture.key_spans(head.layer))
        beside = yield from tasks.head_beside(found, capture, head, query)
        return replace(told, beside=beside, names=names)

    def draw(self, result: Told) -> None:
        """Show all of it."""
        if self.session is None:
            return
        self.told, head = result, self.session.selection.head_id
        self.head.title.setText(tr("Head {head}", head=head))
        self.level.setText(words.ends(result.capture.spec, head.layer))
        self.level.setVisible(bool(self.level.text()))
        self._offer(result)
        self.bars.show_rows(result.beside, result.names, self._column())
        self.wall.show_heads(result.found, result.capture.spec if result.found else None)
        self.wall.choose(head)
        for one in (self._line, self.heads, self.room):
            one.setVisible(result.found is not None and self.height() >= LOW)
        self.room.setMaximumHeight(self.wall.height() + 4)
        self.heads.say(self._heading(result))
        if self._work is None:
            self._say(result)
        if self._work is None or result.found is not None:
            self._agree(result)
        QTimer.singleShot(0, self, self._reveal)  # once the wall has its place

    def noticed(self, name: str) -> None:
        """Another key, and whether the model is asked now."""
        if self.session is None:
            return
        if name == "selection" and self.told is not None:
            self.bars.choose(self._column())
            self.wall.choose(self.session.selection.head_id)
            self._reveal()
        if name == "work":
            now = self._work
            self.button.setText(tr("Stop" if now else "Attribute"))
            if now is not None:
                part = sayings.share(round(now.done / now.total, 2)) if now.total else ""
                note = tr(now.note or now.title)
                said = " · ".join(filter(None, (note, part, time_left(now.left))))
                fresh = self.told is None or self.told.found is None
                (self.agreement if fresh else self.complete).setText(said)
            elif self.told is not None:
                self._say(self.told)
                self._agree(self.told)

    def figure(self, session: Session) -> Spec | None:
        """The keys of the head as they stand here; without them, what every head conducts."""
        told = self.told
        if told is None or told.found is None or told.capture is not session.capture:
            return None
        chosen = session.selection
        if self.rows.choice == "all":
            chosen = replace(chosen, query=None)
        method = "heads" if told.beside is None else "attention"
        return Spec("attribution", chosen, Display(scale="linear"), methods=(method,))

    def as_text(self) -> str:
        """The numbers of the keys, in full, tab-separated."""
        return "".join("\t".join(row) + "\n" for row in self.as_table() or ())

    def as_table(self) -> list[list[str]] | None:
        """The numbers of the keys; before they are there, what every head conducts."""
        told = self.told
        if told is None or told.found is None:
            return None
        if told.beside is None or told.names is None:
            return heads_of(told.found)
        return table_of(told.beside, told.names)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The keys come first where there is little room."""
        super().resizeEvent(event)
        there = self.told is not None and self.told.found is not None
        for one in (self._line, self.heads, self.room):
            one.setVisible(there and self.height() >= LOW)
        self._asks.setVisible(self.width() >= NARROW)

    # --- inside -----------------------------------------------------------------------------------

    @property
    def _work(self) -> Work | None:
        """The job that asks the model now."""
        work = self.session.work if self.session is not None else ()
        return next((one for one in work if one.key == EXPLAIN and one.state in GOING), None)

    def _offer(self, told: Told) -> None:
        question = told.question
        self.answer.clear()
        for one in told.choices:
            self.answer.addItem(one.words, one.number)
        self.answer.setCurrentIndex(self.answer.findData(question.number))
        if question.position is not None:
            at = told.capture.main.label(question.position)
            self.answer.setToolTip(tip(tr("What the model says after “{token}”", token=at)))
        self.steps.setCurrentIndex(self.steps.findData(question.steps))
        self.baseline.setCurrentIndex(self.baseline.findData(question.baseline))

    def _reveal(self) -> None:
        """Bring the chosen head of the wall into sight."""
        box = next((box for one, box in self.wall.cells() if one == self.wall.chosen), None)
        if box is not None:
            self.room.ensureVisible(0, int(box.center().y()), 0, 24)

    def _heading(self, told: Told) -> str:
        layers = told.found.layers if told.found is not None else None
        return tr(CONDUCTED_BESIDE if layers else CONDUCTED)

    def _say(self, told: Told) -> None:
        """How good what was found is, and whether it is what is asked now."""
        if told.found is None:
            self.complete.setText("")
            return
        said = [complete_words(told.found)]
        if told.found.question != told.question:
            said.insert(0, tr("This was asked about another answer or path; Attribute asks anew."))
        self.complete.setText(" ".join(said))

    def _agree(self, told: Told) -> None:
        if told.found is None:
            self.agreement.setText(tr(HINT))
        else:
            self.agreement.setText("" if told.beside is None else agreement_words(told.beside))

    def _named(self, capture: Capture) -> Texts:
        of = (capture.prompt, capture.target)
        if any(a is not b for a, b in zip(of, self._of, strict=True)):
            self._texts, self._of = Texts(), of
        return self._texts

    def _column(self) -> int | None:
        assert self.session is not None
        chosen, capture = self.session.selection, self.session.capture
        if chosen.key is None or capture is None:
            return None
        return capture.column(chosen.layer, chosen.key)

    def _ask_for(self) -> None:
        if self.session is None or self.told is None:
            return
        self.session.put(
            question=replace(
                self.told.question,
                number=self.answer.currentData(),
                steps=self.steps.currentData(),
                baseline=self.baseline.currentData(),
            )
        )

    def _press(self) -> None:
        self.asked.emit("stop_attributing" if self._work else "attribute")

    def _again(self, name: str) -> None:
        self.refresh()

    def _pick(self, column: int) -> None:
        if self.session is None or self.told is None:
            return
        if self.told.capture is not self.session.capture:
            return  # another is on its way
        token = self.told.capture.column_token(self.session.selection.layer, column)
        if token is not None:
            self.session.select(key=token)

    def _open(self, head: HeadId) -> None:
        if self.session is not None:
            self.session.put(selection=self.session.at(head))
