"""All heads in a chart and a table, with examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from PySide6.QtCore import (
    QAbstractListModel,
    QAbstractTableModel,
    QObject,
    QRect,
    QSignalBlocker,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFontMetrics, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QListView,
    QScrollArea,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from hgviz import tasks
from hgviz.analysis.metrics import METRICS, applicable
from hgviz.analysis.roles import CorpusRoles, HeadExample, HeadRole, Passage
from hgviz.core import Capture, HeadId, ModelSpec, Step, progress, progress_as
from hgviz.figures.spec import Spec
from hgviz.gui import charts as plots
from hgviz.gui import sentences, theme
from hgviz.gui.charts import Axis, Chart, ChartView, ChartWidget, Note, Plot, Points
from hgviz.gui.language import tr
from hgviz.gui.sentences import Citation, explained, explanation, measured, metric_name
from hgviz.gui.tables import SORT, Index, SortedTable
from hgviz.gui.view import CAPTURE
from hgviz.gui.widgets import (
    Button,
    PaneHead,
    Picker,
    Segments,
    Words,
    hbox,
    label,
    splitter,
    vbox,
)
from hgviz.tasks.heads import corpus_notes, role_evidence, role_sentence, role_words

if TYPE_CHECKING:
    from hgviz.session import Session

# --- examples -------------------------------------------------------------------------------------


ROW, PAD = 28, 16  # px
SHARE, TEXT = 44, 56  # px: the share at the right, the number of the text at the left
CONTEXT = 24  # characters on either side
LOOKS = "{query} looks at {key}, share {share}"
LOOKS_IN = "Text {n:,}: {query} looks at {key}, share {share}"


class HeadExamples(QWidget):
    """The chosen head: its sentence, everything it shows, the head most like it, examples."""

    opened = Signal(object)  # HeadExample
    picked = Signal(object)  # HeadId

    def __init__(self) -> None:
        super().__init__()
        self.sentence = Words(factor=1.08, weight=600)
        self.like = Button("", kind="link", weight=400)
        self.like.setToolTip(tr("Go to the head whose rows are most like this one's"))
        self.like.clicked.connect(self._go)
        self._nearest: HeadId | None = None
        top = hbox(None, (self.sentence, 1), self.like, margins=(PAD, 6, PAD - 4, 0), spacing=-1)
        self.shown = label(factor=0.92, kind="secondary", wrap=True)
        self.shown.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.shown.setContentsMargins(PAD, 0, PAD, 2)
        self.title = Words(factor=0.92, weight=600)
        self.title.setContentsMargins(PAD, 2, PAD, 0)
        self.examples = QListView()
        self.rows = ExampleModel(self)
        self.examples.setModel(self.rows)
        self.examples.setItemDelegate(ExamplePainter(self.examples))
        self.examples.setUniformItemSizes(True)
        self.examples.setMouseTracking(True)
        self.examples.setFrameShape(QFrame.Shape.NoFrame)
        self.examples.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.examples.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.examples.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.examples.setAccessibleName(tr("Where this head does it most"))
        self.examples.clicked.connect(self._open)
        self.examples.activated.connect(self._open)
        inside = QWidget()
        vbox(inside, top, self.shown, self.title, self.examples, 1, margins=(0, 0, 0, 6), spacing=2)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inside)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inside.setProperty("kind", "pane")
        inside.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        vbox(self, area, spacing=-1)
        self.setMinimumHeight(96)

    def sizeHint(self) -> QSize:
        """A few examples."""
        return QSize(400, 190)

    def show_head(self, facts: HeadRole | None, many: bool) -> None:
        """Say what is known of a head; many: of several texts."""
        for one in (self.shown, self.title, self.examples, self.like):
            one.setVisible(facts is not None)
        if facts is None:
            self.sentence.say(tr("Not measured: this head's layer is not captured"))
            return
        self.sentence.say(f"{facts.head}: {tr(role_sentence(facts))}")
        told = [f"{tr(one.words)}: {tr(one.evidence)}" for one in role_words(facts)]
        self.shown.setText("\n".join(told or [tr(role_evidence(facts))]))
        self._nearest = facts.nearest
        self.like.setVisible(facts.nearest is not None)
        if facts.nearest is not None:
            apart = sentences.weight(facts.metrics["nearest"])
            said = tr("Most like {head}, {distance} apart", head=facts.nearest, distance=apart)
            self.like.setText(said)
        self.title.setVisible(bool(facts.examples))
        said = "Where it does so most" if facts.has_role else "Where it is most focused"
        self.title.say(tr(said))
        self.rows.take(facts.examples, many)
        self.examples.setFixedHeight(ROW * len(facts.examples))

    def _open(self, index: Index) -> None:
        self.opened.emit(self.rows.examples[index.row()])

    def _go(self) -> None:
        if self._nearest is not None:
            self.picked.emit(self._nearest)


class ExampleModel(QAbstractListModel):
    """The examples of a head."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.examples: tuple[HeadExample, ...] = ()
        self.many = False

    def take(self, examples: tuple[HeadExample, ...], many: bool) -> None:
        """Hold those of another head."""
        self.beginResetModel()
        self.examples, self.many = examples, many
        self.endResetModel()

    def rowCount(self, parent: Any = None) -> int:
        """How many there are."""
        return 0 if parent is not None and parent.isValid() else len(self.examples)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """A sentence, for screen readers and as a tooltip; the example for the painter."""
        one = self.examples[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            looks = sentences.shown(one.to[1]) if one.key is not None else tr("no token")
            return tr(
                LOOKS_IN if self.many else LOOKS, n=one.text + 1, query=sentences.shown(one.at[1]),
                key=looks, share=sentences.weight(one.share),
            )  # fmt: skip
        return one if role == Qt.ItemDataRole.UserRole else None


class ExamplePainter(QStyledItemDelegate):
    """Text number, the query in its place, what it looks at in its own, the share."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """All rows are equally high."""
        return QSize(100, ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw one row."""
        one, model = index.data(Qt.ItemDataRole.UserRole), index.model()
        assert isinstance(one, HeadExample) and isinstance(model, ExampleModel)
        now, box = theme.current(), option.rect.adjusted(8, 1, -8, -1)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(now.hover)
            painter.drawRoundedRect(box, 6, 6)
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(now.press, 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), 6, 6)
        box = box.adjusted(8, 0, -8, 0)
        painter.setFont(theme.font(0.85))
        painter.setPen(now.secondary)
        if model.many:
            painter.drawText(box, theme.TO_LEFT, tr("text {n:,}", n=one.text + 1))
            box.setLeft(box.left() + TEXT)
        painter.setFont(theme.font(0.92, 600))
        painter.setPen(now.text)
        painter.drawText(box, theme.TO_RIGHT, sentences.weight(one.share))
        box.setRight(box.right() - SHARE)
        arrow = 22
        half = (box.width() - arrow) // 2
        _quote(painter, QRect(box.left(), box.top(), half, box.height()), one.at)
        painter.setFont(theme.font())
        painter.setPen(now.secondary)
        middle = QRect(box.left() + half, box.top(), arrow, box.height())
        painter.drawText(middle, Qt.AlignmentFlag.AlignCenter, "→")
        to = one.to if one.key is not None else ("", tr("no token"), "")
        _quote(painter, QRect(middle.right(), box.top(), half, box.height()), to)
        painter.restore()


def _quote(painter: QPainter, box: QRect, passage: Passage) -> None:
    """A passage whose middle stands in the middle of a box, cut at both ends."""
    now = theme.current()
    before, it, after = (sentences.shown(one, 2 * CONTEXT).replace("·", " ") for one in passage)
    it = sentences.shown(passage[1], CONTEXT)
    plain, bold = theme.mono(0.92), theme.mono(0.92, 700)
    wide = min(QFontMetrics(bold).horizontalAdvance(it) + 6, box.width())
    side = (box.width() - wide) // 2
    chip = QRect(box.left() + side, box.top() + 4, wide, box.height() - 8)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(now.hover)
    painter.drawRoundedRect(chip, 3, 3)
    painter.setFont(bold)
    painter.setPen(now.text)
    painter.drawText(chip, Qt.AlignmentFlag.AlignCenter, it)
    metrics = QFontMetrics(plain)
    painter.setFont(plain)
    painter.setPen(now.secondary)
    first = metrics.elidedText(before, Qt.TextElideMode.ElideLeft, max(0, side - 3))
    last = metrics.elidedText(after, Qt.TextElideMode.ElideRight, max(0, side - 3))
    painter.drawText(QRect(box.left(), box.top(), side - 3, box.height()), theme.TO_RIGHT, first)
    painter.drawText(
        QRect(chip.right() + 4, box.top(), side - 3, box.height()), theme.TO_LEFT, last
    )


# --- table ----------------------------------------------------------------------------------------


KINDS = {"self": "self", "down": "pools", "up": "spreads", "cross": "cross"}
FIXED = ("Head", "Level", "Kind", "Role", "Score", "Shows also", "Nearest")
MEANT = {  # of FIXED: what it means, its formula
    "Role": (
        "What the head does: the keys whose share of its weight stands out most against chance",
        Citation("mean_i Σ_j∈R p_ij : mean_i |R_i| / |V_i|", "Voita et al. 2019; what-heads-do.md"),
    ),
    "Score": (
        "The share of its weight on the keys of its role, averaged over rows",
        Citation(
            "mean_i Σ_j∈R p_ij, p_ij = |a_ij| / Σ_k |a_ik|", "Voita et al. 2019; what-heads-do.md"
        ),
    ),
    "Shows also": (
        "Up to three more roles that stand out against chance, and what goes by position alone",
        Citation("mean_i Σ_j∈R p_ij : mean_i |R_i| / |V_i|", "what-heads-do.md"),
    ),
    "Nearest": (
        "The head of the same kind whose rows are most like this one's",
        Citation(METRICS["nearest"].formula, METRICS["nearest"].source),
    ),
}  # fmt: skip
WIDEST = 200  # px


class HeadsTable(SortedTable):
    """One row per head; a click on a title sorts, a row chooses its head."""

    picked = Signal(object)  # HeadId

    def __init__(self) -> None:
        self.rows = Heads()
        super().__init__(self.rows, tr("All heads"), by=0)
        self._fitted: tuple[str, ...] = ()
        self.walked.connect(self._walked)

    def show_heads(self, facts: Mapping[HeadId, HeadRole], spec: ModelSpec, unit: str) -> None:
        """Show what is known of all heads; order and choice stay."""
        chosen = self.chosen
        self._quiet = True
        self.rows.take(facts, spec, unit)
        if self._fitted != self.rows.titles:
            self._fitted = self.rows.titles
            self.resizeColumnsToContents()
            for column in range(self.rows.columnCount()):
                self.setColumnWidth(column, min(WIDEST, self.columnWidth(column) + 8))
        self._quiet = False
        if chosen is not None:
            self.mark(chosen)

    @property
    def chosen(self) -> HeadId | None:
        """The head of the current row."""
        return None if self.number is None else self.rows.heads[self.number]

    def mark(self, head: HeadId) -> None:
        """Show a head as chosen without saying so; one that is not there changes nothing."""
        if head in self.rows.heads:
            self.go_to(self.rows.heads.index(head))

    def cells(self) -> list[list[str]]:
        """The titles, then every number in full, in the order that is shown."""
        columns = range(self.rows.columnCount())
        rows = ([self.rows.full(at, one) for one in columns] for at in self.order)
        return [list(self.rows.titles), *rows]

    def _walked(self, number: int) -> None:
        self.picked.emit(self.rows.heads[number])


class Heads(QAbstractTableModel):
    """One row per head: name, level, kind, role, score, then every metric of any of them."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.heads: list[HeadId] = []
        self.titles: tuple[str, ...] = tuple(map(tr, FIXED))
        self._facts: Mapping[HeadId, HeadRole] = {}
        self._levels: list[str] = []
        self._unit = "letter"
        self._shown: tuple[str, ...] = ()

    def take(self, facts: Mapping[HeadId, HeadRole], spec: ModelSpec, unit: str) -> None:
        """Hold other facts."""
        self.beginResetModel()
        self._facts, self.heads, self._unit = facts, sorted(facts), unit
        self._levels = [sentences.level(spec, number) for number in range(len(spec.levels))]
        self._shown = applicable(one.metrics for one in facts.values())
        self.titles = (*map(tr, FIXED), *(metric_name(name, unit) for name in self._shown))
        self.endResetModel()

    def rowCount(self, parent: Any = None) -> int:
        """Every head."""
        return 0 if parent is not None and parent.isValid() else len(self.heads)

    def columnCount(self, parent: Any = None) -> int:
        """Every fact."""
        return 0 if parent is not None and parent.isValid() else len(self.titles)

    def headerData(self, section: int, orientation: Any, role: int = 0) -> Any:
        """The names of the columns, with what they mean as a tooltip."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.titles[section]
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._meant(section)
        if role == Qt.ItemDataRole.TextAlignmentRole and self._is_number(section):
            return theme.TO_RIGHT
        return None

    def _meant(self, section: int) -> str | None:
        if section >= len(FIXED):
            return explained(self._shown[section - len(FIXED)], self._unit)
        if FIXED[section] not in MEANT:
            return None
        meaning, cited = MEANT[FIXED[section]]
        return explanation(tr(meaning), cited)

    def data(self, index: Any, role: int = 0) -> Any:
        """A fact as text, as a value to sort by, with its evidence as a tooltip."""
        facts = self._facts[self.heads[index.row()]]
        column = index.column()
        if role == SORT:
            value = self._value(facts, column)
            if isinstance(value, HeadId):
                return value[0] * 4096 + value[1]
            return float("-inf") if value != value else value  # NaN is in no order
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(self._value(facts, column), column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return tr(role_evidence(facts))
        if role == Qt.ItemDataRole.TextAlignmentRole and self._is_number(column):
            return theme.TO_RIGHT
        if role == Qt.ItemDataRole.FontRole and column == 0:
            return theme.font(weight=600)
        return None

    def full(self, row: int, column: int) -> str:
        """A fact as it is written elsewhere: numbers in full, nothing where there is none."""
        value = self._value(self._facts[self.heads[row]], column)
        if isinstance(value, float):
            return repr(value) if value == value else ""
        return self._text(value, column).replace("—", "")

    def _is_number(self, column: int) -> bool:
        return column >= len(FIXED) or FIXED[column] == "Score"

    def _text(self, value: Any, column: int) -> str:
        if column >= len(FIXED):
            return measured(self._shown[column - len(FIXED)], value)
        if isinstance(value, HeadId):
            return str(value) if value.layer >= 0 else "—"
        if isinstance(value, float):
            return sentences.weight(value) if value == value else "—"
        return str(value)

    def _value(self, facts: HeadRole, column: int) -> Any:
        if column >= len(FIXED):
            return float(facts.metrics[self._shown[column - len(FIXED)]])
        others = [tr(one.words) for one in role_words(facts) if one.words != facts.role]
        level = facts.level
        return (
            facts.head,
            self._levels[level] if level < len(self._levels) else str(level),
            tr(KINDS.get(facts.kind, facts.kind)),
            tr(facts.role) or "—",
            float(facts.score) if facts.role else float("nan"),
            ", ".join(others) or "—",
            facts.nearest or HeadId(-1, 0),
        )[column]


# --- heads ----------------------------------------------------------------------------------------


AT_ONCE = 2048  # tokens: longer texts are measured in depth when that is asked for
TALL, WIDE = 560, 940  # px: from which on all parts stand below, or beside, each other
AXES = ("distance", "focus")  # what is across and up at first
PARTS = (("scatter", "Picture", ""), ("table", "Table", ""), ("deeds", "This head", ""))
ONE, ALL = "text", "corpus"
ORANGE = 1  # of the colours of series
NAMED = 16  # heads whose numbers stand beside their points


@dataclass(frozen=True, slots=True)
class HeadMeasures:
    """What a request found: roles, of one text or of all, and whether they are whole."""

    roles: CorpusRoles
    scope: str
    capture: Capture
    whole: bool = True

    def serves(self, scope: str, capture: Capture) -> bool:
        """Whether this is what is wanted: of the same text, or of the same corpus."""
        if scope == ALL == self.scope:
            mine, other = self.capture, capture
            same = mine.path == other.path and mine.spec.digest == other.spec.digest
            return self.whole and same and len(mine.items) == len(other.items)
        return self.whole and scope == self.scope and self.capture.maps is capture.maps


class HeadsView(ChartView):
    """All heads as points and as rows; what the chosen one is for, and where it shows that."""

    name: ClassVar[str] = "heads"
    topic: ClassVar[str] = "heads"
    figureless = "It is drawn of one text: choose This text first"
    title: ClassVar[str] = "All heads"
    icon: ClassVar[str] = "table"
    needs: ClassVar[tuple[str, ...]] = ("capture", "facts")
    watches: ClassVar[tuple[str, ...]] = ("selection", "hover")
    lane = "facts"
    empty = (
        "No head is measured yet",
        "Capture a text; what every head does on it stands here then.",
    )
    empty_actions = CAPTURE

    found = Signal(object)  # CorpusRoles that are whole
    example = Signal(object, object)  # HeadId, HeadExample

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.known: HeadMeasures | None = None
        self._deep: Capture | None = None  # a long text that is to be measured in depth
        self.head = PaneHead(tr(self.title))
        self.parts = Segments([(name, tr(said), icon) for name, said, icon in PARTS])
        self.parts.setAccessibleName(tr("Which part is shown"))
        self.parts.chosen.connect(self._arrange)
        self.scope = Segments(((ONE, tr("This text"), ""), (ALL, tr("All texts"), "")))
        self.scope.setAccessibleName(tr("Over which texts heads are measured"))
        self.scope.chosen.connect(self._rescoped)
        self.more = Button(tr("Measure in depth"), "table")
        self.more.setToolTip(tr("Also find kernels of distance and the heads most like each other"))
        self.more.clicked.connect(self._deepen)
        self.export = self.export_button()
        self.head.add(self.more, self.scope, self.parts, self.export)
        self.across, self.up = Picker(), Picker()
        for one, said in ((self.across, tr("What is across")), (self.up, tr("What is up"))):
            one.setAccessibleName(said)
            one.setToolTip(said)
            one.setMinimumWidth(90)
            one.currentIndexChanged.connect(self._redraw)
        bar = hbox(None, margins=(16, 0, 16, 0), spacing=8)
        for said, one in ((tr("Across"), self.across), (tr("Up"), self.up)):
            bar.addWidget(label(said, factor=0.92, kind="secondary"))
            bar.addWidget(one, 1)
        self.picture = self.chart = ChartWidget(tr("Heads over two metrics"))
        self.table, self.deeds = HeadsTable(), HeadExamples()
        self.missing = label(factor=0.85, kind="secondary")
        self.missing.setContentsMargins(16, 0, 16, 2)
        self.plot = QWidget()
        vbox(self.plot, bar, (self.picture, 1), self.missing, spacing=2)
        self.beside = splitter(Qt.Orientation.Vertical, self.table, self.deeds)
        self.whole = splitter(Qt.Orientation.Vertical, self.plot, self.beside)
        self.whole.setSizes([320, 330])
        self.beside.setSizes([180, 170])
        self.note = label(factor=0.85, kind="secondary", wrap=True)
        self.note.setContentsMargins(16, 2, 16, 4)
        vbox(self.content, self.head, (self.whole, 1), self.note)
        for part in (self.picture, self.table, self.deeds):
            part.picked.connect(self.select_head)
        for part in (self.picture, self.table):
            part.entered.connect(self._enter)
        self.picture.hovered.connect(self._hover)
        self.deeds.opened.connect(self._open)
        self.start_at(self.picture)
        self._arrange()

    # --- the view ---------------------------------------------------------------------------------

    def request(self, session: Session) -> Callable[[], HeadMeasures] | None:
        """What every head does on this text, or over all of them; at once what is known already."""
        capture = session.capture
        if capture is None or not (session.facts or capture.complete):
            return None
        many = len(capture.items) > 1
        self.scope.setVisible(many)
        scope = self.scope.choice if many else ONE
        ready = self.known
        if ready is not None and ready.serves(scope, capture):
            return lambda: ready
        at_hand = CorpusRoles(capture.spec, session.facts, 1, len(capture.main))
        if scope == ALL:
            return partial(_over_all, capture)
        if len(capture.main) > AT_ONCE and not self._went_deep(capture):
            known = HeadMeasures(at_hand, ONE, capture, whole=False)
            return (lambda: known) if session.facts else None
        return partial(_in_depth, capture, at_hand)

    def draw(self, result: HeadMeasures) -> None:
        """Fill the picture, the table and what is said."""
        assert self.session is not None  # results come while it is bound
        new = self.known is None or self.known.roles is not result.roles
        self.known = result
        roles, spec = result.roles, result.roles.spec
        self._fill(roles)
        self.table.show_heads(roles.heads, spec, self._unit)
        self._redraw()
        self.head.note.say(_noted(result))
        notes = "; ".join(map(tr, corpus_notes(roles)))
        self.note.setText(f"{notes[:1].upper()}{notes[1:]}")
        self.note.setVisible(bool(notes))
        capture = self.session.capture
        long = capture is not None and len(capture.main) > AT_ONCE and result.scope == ONE
        self.more.setVisible(long and not result.whole)
        self.noticed("selection")
        if new and result.whole:
            self.found.emit(roles)

    def noticed(self, name: str) -> None:
        """Mark the chosen head and the one pointed at, at once."""
        if self.session is None or self.known is None:
            return
        if name in ("selection", "hover"):
            chosen, hover = self.session.selection.head_id, self.session.hover
            self.picture.mark(chosen, hover.head_id if hover is not None else None)
        if name == "selection":
            self.table.mark(chosen)
            facts = self.known.roles.heads.get(chosen)
            self.deeds.show_head(facts, self.known.roles.texts > 1)

    def figure(self, session: Session) -> Spec | None:
        """The two numbers that are drawn, layer by layer."""
        if session.capture is None or self.known is None or self.known.scope == ALL:
            return None
        metrics = tuple(dict.fromkeys((self.across.currentData(), self.up.currentData())))
        return Spec("profile", session.selection, metrics=metrics)

    def as_text(self) -> str:
        """The table, in full."""
        return "\n".join(map("\t".join, self.as_table() or ()))

    def as_table(self) -> list[list[str]] | None:
        """Every number of every head in full, in the order of the table."""
        return self.table.cells() if self.known is not None else None

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Other sizes have room for other parts."""
        super().resizeEvent(event)
        self._arrange()

    # --- inside -----------------------------------------------------------------------------------

    @property
    def _unit(self) -> str:
        capture = self.session.capture if self.session is not None else None
        return capture.main.unit if capture is not None else "letter"

    def _fill(self, roles: CorpusRoles) -> None:
        """Offer the metrics that say something of these heads; choices stay where they can."""
        names = applicable(one.metrics for one in roles.heads.values())
        for picker, first in zip((self.across, self.up), AXES, strict=True):
            now = picker.currentData() or first
            titles = [metric_name(name, self._unit) for name in names]
            if [picker.itemText(at) for at in range(picker.count())] == titles:
                continue
            with QSignalBlocker(picker):
                picker.clear()
                for name, title in zip(names, titles, strict=True):
                    picker.addItem(title, name)
                    why = explained(name, self._unit)
                    picker.setItemData(picker.count() - 1, why, Qt.ItemDataRole.ToolTipRole)
                picker.setCurrentIndex(max(0, picker.findData(now)))

    def _redraw(self) -> None:
        if self.known is None:
            return
        across, up = self.across.currentData(), self.up.currentData()
        if across is None or up is None:
            self.picture.show_chart(Chart())
            return
        spec, every = self.known.roles.spec, sorted(self.known.roles.heads.items())
        facts = [one for _, one in every if across in one.metrics and up in one.metrics]
        for picker, metric in ((self.across, across), (self.up, up)):
            picker.setToolTip("\n".join([picker.accessibleName(), explained(metric, self._unit)]))
        titles = self.across.currentText(), self.up.currentText()
        levels = [sentences.level(spec, number) for number in range(len(spec.levels))]
        told = partial(self._said, across=across, up=up, spec=spec)
        self.picture.show_chart(chart_of(facts, (across, up), titles, levels, told))
        missing = len(every) - len(facts)
        self.missing.setText(tr("{n:,} without", n=missing))
        self.missing.setVisible(bool(missing))

    def _said(self, facts: HeadRole, *, across: str, up: str, spec: ModelSpec) -> str:
        numbers = [
            f"{metric_name(name, self._unit)}: {measured(name, facts.metrics[name])}"
            for name in dict.fromkeys((across, up))
        ]
        ends = filter(
            None, [tr("Head {head}", head=facts.head), sentences.ends(spec, facts.head.layer)]
        )
        return "\n".join([", ".join(ends), tr(facts.role or "no single role"), *numbers])

    def _arrange(self, *_: object) -> None:
        """All parts where there is room; else the one that is chosen."""
        wide, tall = self.width() >= WIDE, self.height() >= TALL
        way = Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical
        if self.whole.orientation() != way:
            self.whole.setOrientation(way)
        all_of_it = tall or (wide and self.height() >= TALL * 0.6)
        self.parts.setVisible(not all_of_it)
        chosen = self.parts.choice
        self.plot.setVisible(all_of_it or chosen == "scatter")
        self.table.setVisible(all_of_it or chosen == "table")
        self.deeds.setVisible(all_of_it or chosen == "deeds")
        self.beside.setVisible(all_of_it or chosen != "scatter")

    def _rescoped(self, scope: str) -> None:
        self.refresh()

    def _deepen(self) -> None:
        self._deep = self.session.capture if self.session is not None else None
        self.refresh()

    def _went_deep(self, capture: Capture) -> bool:
        return self._deep is not None and self._deep.maps is capture.maps

    def _hover(self, head: HeadId | None) -> None:
        if self.session is None:
            return
        now = self.session.at(head) if head is not None else None
        if now != self.session.hover:
            self.session.put(hover=now)

    def _enter(self) -> None:
        self.asked.emit("look_map")

    def _open(self, example: HeadExample) -> None:
        if self.session is not None:
            self.example.emit(self.session.selection.head_id, example)


def chart_of(
    facts: Sequence[HeadRole],
    metrics: tuple[str, str],
    titles: tuple[str, str],
    levels: Sequence[str],
    told: Callable[[HeadRole], str],
) -> Chart:
    """Heads as points over two metrics: a colour and a shape for each level, hollow where the layer
    goes from one level to another."""
    if not facts:
        return Chart(words=tr("No head has both numbers"))
    xs, ys = ([one.metrics[metric] for one in facts] for metric in metrics)
    parts: list[Points | Note] = [
        Note(f"  {facts[at].head}", xs[at], ys[at], "secondary", (0, 0.5)) for at in apart(xs, ys)
    ]
    for resamples, level in sorted({(one.kind != "self", one.level) for one in facts}):
        mine = [one for one in facts if (one.kind != "self", one.level) == (resamples, level)]
        name = tr("to {level}", level=levels[level]) if resamples else levels[level]
        colour = level + (level >= ORANGE)  # orange means chosen
        x, y = ([one.metrics[metric] for one in mine] for metric in metrics)
        words, heads = partial(_words_of, mine, told), tuple(one.head for one in mine)
        parts.append(Points(x, y, colour, level, 9.0, resamples, words, heads, name))
    plot = Plot(Axis.around(xs, title=titles[0]), Axis.around(ys, title=titles[1]), tuple(parts))
    said = tr(
        "{heads}; across: {across}, {xs}; up: {up}, {ys}",
        heads=sentences.counted(len(facts), "head"), across=titles[0], up=titles[1],
        xs=_range(xs), ys=_range(ys),
    )  # fmt: skip
    return Chart((plot,), said, of=metrics)


def apart(xs: Sequence[float], ys: Sequence[float]) -> list[int]:
    """The points whose numbers have room at their right, those farthest from others first."""
    places = np.stack([xs, ys], axis=1).astype(float)
    places /= np.ptp(places, axis=0) + 1e-12
    dx, dy = (places[None] - places[:, None]).transpose(2, 0, 1)
    in_the_way = (dx > -0.01) & (dx < 0.09) & (np.abs(dy) < 0.07)
    far = np.hypot(dx, dy) + np.diag(np.full(len(xs), np.inf))
    alone = np.flatnonzero(in_the_way.sum(axis=1) == 1)  # itself
    return sorted(alone.tolist(), key=lambda at: -far[at].min())[:NAMED]


def _words_of(facts: Sequence[HeadRole], told: Callable[[HeadRole], str], at: int) -> str:
    return told(facts[at])


def _range(values: Sequence[float]) -> str:
    low, high = (plots.number(end(values)) for end in (min, max))
    return tr("{low} to {high}", low=low, high=high)


def _noted(known: HeadMeasures) -> str:
    """How many heads are shown, measured on what."""
    heads, texts = sentences.counted(len(known.roles.heads), "head"), known.roles.texts
    if texts == 1 and (known.whole or known.scope == ONE):
        return tr("{heads} on this text", heads=heads)
    so_far = not known.whole and known.scope == ALL
    said = "{heads} on {texts}, so far" if so_far else "{heads} on {texts}"
    return tr(said, heads=heads, texts=sentences.counted(texts, "text"))


def _in_depth(capture: Capture, at_hand: CorpusRoles) -> HeadMeasures:
    """What is known of the text at once, and everything when it is measured."""
    if at_hand.heads:
        progress(0, 1, "measuring heads", HeadMeasures(at_hand, ONE, capture, whole=False))
    with _known_so_far(ONE, capture):
        return HeadMeasures(tasks.roles_of_capture(capture, alone=True), ONE, capture)


def _over_all(capture: Capture) -> HeadMeasures:
    with _known_so_far(ALL, capture):
        return HeadMeasures(tasks.roles_of_capture(capture), ALL, capture)


def _known_so_far(scope: str, capture: Capture) -> AbstractContextManager[None]:
    """Report the CorpusRoles measured inside as Known, which is not whole yet."""

    def known(step: Step) -> Step:
        if not isinstance(step.value, CorpusRoles):
            return step
        return replace(step, value=HeadMeasures(step.value, scope, capture, whole=False))

    return progress_as(known)
