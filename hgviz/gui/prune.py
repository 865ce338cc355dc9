"""The left side of the Prune page: the wall of heads, what colours it, and the masks kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QIcon, QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from hgviz.core import HeadId, Off, Step, Task
from hgviz.figures.spec import Spec
from hgviz.gui import theme
from hgviz.gui.headgrid import HeadWall
from hgviz.gui.jobs import GOING
from hgviz.gui.language import tr
from hgviz.gui.prune_parts.bar import ShadeBar
from hgviz.gui.prune_parts.explained import explained
from hgviz.gui.prune_parts.masks import MaskList
from hgviz.gui.prune_parts.shades import Shades, offered, shades
from hgviz.gui.trials import LONG
from hgviz.gui.view import View
from hgviz.gui.widgets import GAP, Button, IconButton, PaneHead, Picker, Words, label, line, tip
from hgviz.study import Study

if TYPE_CHECKING:
    from hgviz.session import Session

NARROW = 420  # px
HINT = "Click or Space switches a head off; drag paints; Shift takes a whole layer."


class HeadsView(View):
    """All heads as cells; the masks below."""

    title = "Heads"
    figureless = "They are not measured yet"
    icon = "prune"
    needs = ("spec", "study", "score", "dark")
    watches = (
        "off", "selection", "history", "masks", "trial", "data", "work", "capture",
    )  # fmt: skip
    empty = ("Open a model to switch its heads off", "Every head is one cell here.")
    empty_actions = (("open_sample", "Open the sample"),)

    topic = "prune-heads"

    switched = Signal(object, bool)
    coloured = Signal(str)  # by which score
    picked = Signal(object)  # a set of heads that was kept
    dropped = Signal(str)  # the name of one
    halted = Signal()
    told = Signal(str)  # about the head under the pointer

    def __init__(self) -> None:
        super().__init__()
        self.head = PaneHead(tr(self.title))
        self.undo = IconButton("undo", tr("Undo (Ctrl+Z)"))
        self.redo = IconButton("redo", tr("Redo (Ctrl+Shift+Z)"))
        self.clear = IconButton("eye", tr("Switch all heads on (Ctrl+Shift+A)"))
        self.export = IconButton("export", tr("Export figure… (Ctrl+E)"))
        for button, action in (
            (self.undo, "undo"), (self.redo, "redo"), (self.clear, "all_on"),
            (self.export, "export"),
        ):  # fmt: skip
            button.setProperty("action", action)
            button.clicked.connect(self._asked)
        self.head.add(self.undo, self.redo, self.clear, self.export)
        self.colour = Picker()
        self.colour.setAccessibleName(tr("Colour"))
        self.colour.setSizeAdjustPolicy(
            Picker.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.colour.setMinimumContentsLength(10)
        self.colour.activated.connect(self._coloured)
        self.measure = Button(tr("Measure…"))
        self.measure.setProperty("action", "measure_heads")
        self.measure.clicked.connect(self._measure)
        controls = QHBoxLayout()
        controls.setContentsMargins(16, 4, 16, 4)
        controls.setSpacing(8)
        self._word = label(tr("Colour"), factor=0.92, kind="secondary")
        controls.addWidget(self._word)
        controls.addWidget(self.colour, 1)
        controls.addWidget(self.measure)
        self._measuring = False
        self.wall = HeadWall()
        self._left: tuple[Off, str] = (frozenset(), "")  # off in a new model, and what to say of it
        self.wall.switched.connect(self.switched)
        self.wall.chosen.connect(self._choose)
        self.wall.pointed.connect(self._point)
        self.room = QScrollArea()
        self.room.setFrameShape(QFrame.Shape.NoFrame)
        self.room.setWidgetResizable(True)
        self.room.setWidget(self.wall)
        self.room.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.room.viewport().installEventFilter(self)
        self.room.viewport().setAutoFillBackground(False)
        self.wall.setAutoFillBackground(False)
        self.bar = ShadeBar()
        self.hint = Words(tr(HINT), factor=0.92, kind="secondary")
        self.masks = MaskList()
        self.masks.picked.connect(self.picked)
        self.masks.dropped.connect(self.dropped)
        self.masks.told.connect(self.told)
        self.masks.keep.clicked.connect(self._keep)
        said = QWidget()
        row = QGridLayout(said)
        row.setContentsMargins(16, 4, 16, 8)
        row.addWidget(self.hint)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addLayout(controls)
        column.addWidget(self.room, 1)
        column.addWidget(self.bar)
        column.addWidget(said)
        column.addWidget(line())
        column.addWidget(self.masks)
        self.start_at(self.wall)

    # --- what it shows ----------------------------------------------------------------------------

    def request(self, session: Session) -> Task[Shades] | None:
        """The scores of all heads, by the chosen method."""
        if session.spec is None:
            return None
        if session.study is None or not session.score:
            return _plain()
        return shades(session.study, session.score)

    def draw(self, result: Shades) -> None:
        """Colour the cells."""
        session = self.session
        assert session is not None
        self.wall.show_model(session.spec)
        self.wall.show_shades(result)
        self.bar.show_shades(result)
        self._offer(session.study)
        for name in self.watches:
            self.noticed(name)

    def as_table(self) -> list[list[str]] | None:
        """Every head: whether it is off, and its score as the wall says it."""
        session = self.session
        if session is None or session.spec is None:
            return None
        found = self.wall.shades
        rows = [[tr("head"), tr("switched off"), found.label or tr("score"), tr("low"), tr("high")]]
        for head in session.spec.heads:
            one = found.heads.get(head)
            numbers = (one.value, one.low, one.high) if one is not None else ()
            cells = [f"{number:.6g}" for number in numbers] or [""] * 3
            rows.append([f"{head}", f"{int(head in session.off)}", *cells])
        return rows

    def figure(self, session: Session) -> Spec | None:
        """The scores that colour the wall, the most needed head first."""
        if session.study is None or not session.score:
            return None
        return Spec("scores", session.selection, methods=(session.score,))

    def noticed(self, name: str) -> None:
        """What needs no work shows at once."""
        session = self.session
        if session is None or session.spec is None:
            return
        if name == "spec":
            if session.spec != self.wall.spec:
                self._left = session.off, left_words(self.wall.off, session)
            self.wall.show_model(session.spec)
        if name in ("off", "spec"):
            self.wall.show_off(session.off)
            self.head.note.say(changed_words(session, "{n:,} of {total:,} switched off"))
            self.clear.setEnabled(bool(session.off))
        if name == "selection":
            self.wall.show_cursor(session.selection.head_id)
        if name in ("history", "spec"):
            self.undo.setEnabled(bool(session.history.past))
            self.redo.setEnabled(bool(session.history.future))
        if name in ("off", "selection") and session.mode == "prune":
            self.told.emit(status_words(session, self.wall))
        if name in ("off", "masks", "trial"):
            self.masks.show_masks(session.masks, session.off, session.trial, session.spec)
        if name in ("data", "trial", "work", "off"):
            self._offer_measuring(session)

    def _offer_measuring(self, session: Session) -> None:
        job = next((one for one in session.work if one.key in LONG and one.state in GOING), None)
        ready = session.trial is not None
        self._measuring = job is not None
        self.measure.setText(tr("Stop") if job else tr("Measure…"))
        self.measure.setIcon(theme.icon("stop", gap=GAP) if job else QIcon())
        self.measure.setEnabled(ready or job is not None)
        self.measure.setToolTip(tr(
            "What is measured stays" if job else "Measure what every head is worth"
            if ready else "Choose data first"
        ))  # fmt: skip
        if job is None:
            off, left = self._left
            self.hint.say(left if left and off == session.off else tr(HINT))
        else:
            far = 100 * job.done / job.total if job.total else 0.0
            part = tr("{percent:.0f} %", percent=far) if job.total else ""
            self.hint.say(" · ".join(filter(None, (tr(job.title), tr(job.note), part))))

    def _offer(self, study: Study | None) -> None:
        session = self.session
        assert session is not None
        there = [(one.name, tr(one.label)) for one in offered(study)]
        shown = [(self.colour.itemData(n), self.colour.itemText(n))
                 for n in range(self.colour.count())]  # fmt: skip
        if not there:
            there = [("", tr("Not measured yet"))]
        if there != shown:
            self.colour.clear()
            for at, (name, words) in enumerate(there):
                self.colour.addItem(words, name)
                said = explained(name) if name else ""
                self.colour.setItemData(at, tip(said), Qt.ItemDataRole.ToolTipRole)
        self.colour.setEnabled(study is not None)
        self.colour.setCurrentIndex(max(0, self.colour.findData(session.score)))
        self.colour.setToolTip(tip(explained(session.score)) if session.score else "")

    # --- what it asks for -------------------------------------------------------------------------

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Tell the wall how much room there is."""
        if event.type() == QEvent.Type.Resize:
            self.wall.set_room(self.room.viewport().height())
        return super().eventFilter(watched, event)

    def _point(self, head: HeadId | None) -> None:
        if head is not None:
            self.told.emit(self.wall.words(head).replace("\n", " · "))
        elif self.session is not None:
            self.told.emit(status_words(self.session, self.wall))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The word before the pickers gives way, and masks in a low window."""
        super().resizeEvent(event)
        self._word.setVisible(self.width() >= NARROW)
        self.masks.fit()

    def _choose(self, head: HeadId) -> None:
        assert self.session is not None
        self.session.select(layer=head.layer, head=head.head)
        box = self.wall.wall.box(head) if self.wall.wall else None
        if box is not None:
            self.room.ensureVisible(round(box.center().x()), round(box.center().y()), 20, 40)

    def _coloured(self) -> None:
        self.coloured.emit(self.colour.currentData())

    def _measure(self) -> None:
        if self._measuring:
            self.halted.emit()
        else:
            self.asked.emit("measure_heads")

    def _keep(self) -> None:
        self.asked.emit("keep_mask")

    def _asked(self) -> None:
        self.asked.emit(self.sender().property("action"))


def left_words(before: Off, session: Session) -> str:
    """This is another model: all its heads are on · Ctrl+Z switches off what was off before: 6."""
    if not before or before == session.off:
        return ""
    now = (
        tr("This is another model: {n:,} of its heads are off", n=len(session.off))
        if session.off
        else tr("This is another model: all its heads are on")
    )
    again = tr("Ctrl+Z switches off what was off before: {n:,}", n=len(before))
    return f"{now} · {again}" if session.history.past else now


def status_words(session: Session, wall: HeadWall) -> str:
    """12 heads off of 78 · Head 9.5 · on · Loss change: +0.4 thousandths of a bit per token."""
    spec = session.spec
    if spec is None:
        return ""
    chosen = wall.words(session.selection.head_id).replace("\n", " · ")
    return f"{changed_words(session, '{n:,} of {total:,} heads off')}   ·   {chosen}"


def changed_words(session: Session, said: str) -> str:
    """2 of 78 switched off."""
    total = len(session.spec.heads) if session.spec else 0
    return tr(said, n=len(session.off), total=total)


def _plain() -> Task[Shades]:
    yield Step(0, 1)
    return Shades()
