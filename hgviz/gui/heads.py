"""The look All heads: every head over two metrics, in a table, and what the chosen one is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from hgviz import tasks
from hgviz.analysis.habits import Habits
from hgviz.analysis.heads import HeadFacts, applying
from hgviz.core import Capture, HeadId, ModelSpec, Step, Task
from hgviz.figures.spec import Spec
from hgviz.gui import plots
from hgviz.gui.charts import ChartWidget
from hgviz.gui.heads_parts.deeds import Deeds
from hgviz.gui.heads_parts.metrics import explained, named
from hgviz.gui.heads_parts.table import HeadsTable
from hgviz.gui.language import tr
from hgviz.gui.plots import Axis, Chart, Entry, Plot, Points
from hgviz.gui.view import View
from hgviz.gui.views import words
from hgviz.gui.views.words import measured
from hgviz.gui.widgets import Button, IconButton, PaneHead, Picker, Segments, label, splitter

if TYPE_CHECKING:
    from hgviz.gui.heads_parts.deeds import Example
    from hgviz.session import Session

AT_ONCE = 2048  # tokens: longer texts are measured in depth when that is asked for
TALL, WIDE = 560, 940  # px: from which on all parts stand below, or beside, each other
AXES = ("distance", "focus")  # what is across and up at first
PARTS = (("scatter", "Picture", ""), ("table", "Table", ""), ("deeds", "This head", ""))
ONE, ALL = "text", "corpus"
ORANGE = 1  # of the colours of series


@dataclass(frozen=True, slots=True)
class Known:
    """What a request found: habits, of one text or of all, and whether they are whole."""

    habits: Habits
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


class HeadsView(View):
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
    empty_actions = (("capture", "Capture this text"), ("open_sample", "Open the sample"))

    found = Signal(object)  # Habits that are whole
    example = Signal(object, object)  # HeadId, Example

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.known: Known | None = None
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
        self.export = IconButton("export", tr("Export figure… (Ctrl+E)"))
        self.export.clicked.connect(lambda: self.asked.emit("export"))
        self.head.add(self.more, self.scope, self.parts, self.export)
        self.across, self.up = Picker(), Picker()
        for one, said in ((self.across, tr("What is across")), (self.up, tr("What is up"))):
            one.setAccessibleName(said)
            one.setToolTip(said)
            one.setMinimumWidth(90)
            one.currentIndexChanged.connect(self._redraw)
        bar = QHBoxLayout()
        bar.setContentsMargins(16, 0, 16, 0)
        bar.setSpacing(8)
        for said, one in ((tr("Across"), self.across), (tr("Up"), self.up)):
            bar.addWidget(label(said, factor=0.92, kind="secondary"))
            bar.addWidget(one, 1)
        self.picture = ChartWidget(tr("Heads over two metrics"))
        self.table, self.deeds = HeadsTable(), Deeds()
        self.missing = label(factor=0.85, kind="secondary")
        self.missing.setContentsMargins(16, 0, 16, 2)
        self.plot = QWidget()
        column = QVBoxLayout(self.plot)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addLayout(bar)
        column.addWidget(self.picture, 1)
        column.addWidget(self.missing)
        self.beside = splitter(Qt.Orientation.Vertical, self.table, self.deeds)
        self.whole = splitter(Qt.Orientation.Vertical, self.plot, self.beside)
        self.whole.setSizes([320, 330])
        self.beside.setSizes([180, 170])
        self.note = label(factor=0.85, kind="secondary")
        self.note.setWordWrap(True)
        self.note.setContentsMargins(16, 2, 16, 4)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.whole, 1)
        column.addWidget(self.note)
        for part in (self.picture, self.table, self.deeds):
            part.picked.connect(self._pick)
        for part in (self.picture, self.table):
            part.entered.connect(self._enter)
        self.picture.hovered.connect(self._hover)
        self.deeds.opened.connect(self._open)
        self.start_at(self.picture)
        self._arrange()

    # --- the view ---------------------------------------------------------------------------------

    def request(self, session: Session) -> Task[Known] | None:
        """What every head does on this text, or over all of them; at once what is known already."""
        capture = session.capture
        if capture is None or not (session.facts or capture.complete):
            return None
        many = len(capture.items) > 1
        self.scope.setVisible(many)
        scope = self.scope.choice if many else ONE
        if self.known is not None and self.known.serves(scope, capture):
            return _again(self.known)
        at_hand = Habits(capture.spec, session.facts, 1, len(capture.main))
        if scope == ALL:
            return _over_all(capture)
        if len(capture.main) > AT_ONCE and not self._went_deep(capture):
            known = Known(at_hand, ONE, capture, whole=False)
            return _again(known) if session.facts else None
        return _in_depth(capture, at_hand)

    def draw(self, result: Known) -> None:
        """Fill the picture, the table and what is said."""
        assert self.session is not None  # results come while it is bound
        new = self.known is None or self.known.habits is not result.habits
        self.known = result
        habits, spec = result.habits, result.habits.spec
        self._fill(habits)
        self.table.show_heads(habits.facts, spec, self._unit)
        self._redraw()
        self.head.note.say(_noted(result))
        notes = "; ".join(map(tr, habits.notes))
        self.note.setText(f"{notes[:1].upper()}{notes[1:]}")
        self.note.setVisible(bool(notes))
        capture = self.session.capture
        long = capture is not None and len(capture.main) > AT_ONCE and result.scope == ONE
        self.more.setVisible(long and not result.whole)
        self.noticed("selection")
        if new and result.whole:
            self.found.emit(habits)

    def noticed(self, name: str) -> None:
        """Mark the chosen head and the one pointed at, at once."""
        if self.session is None or self.known is None:
            return
        if name in ("selection", "hover"):
            chosen, hover = self.session.selection.head_id, self.session.hover
            self.picture.mark(chosen, hover.head_id if hover is not None else None)
        if name == "selection":
            self.table.mark(chosen)
            facts = self.known.habits.facts.get(chosen)
            self.deeds.show_head(facts, self.known.habits.texts > 1)

    def figure(self, session: Session) -> Spec | None:
        """The two numbers that are drawn, layer by layer."""
        if session.capture is None or self.known is None or self.known.scope == ALL:
            return None
        metrics = tuple(dict.fromkeys((self.across.currentData(), self.up.currentData())))
        return Spec("profile", session.selection, metrics=metrics)

    @property
    def zoomed(self) -> bool:
        """Whether only a part of the points is on screen."""
        return self.picture.zoomed

    def fit(self) -> None:
        """Show all points."""
        self.picture.reset()

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

    def _fill(self, habits: Habits) -> None:
        """Offer the metrics that say something of these heads; choices stay where they can."""
        names = applying(one.metrics for one in habits.facts.values())
        for picker, first in zip((self.across, self.up), AXES, strict=True):
            now = picker.currentData() or first
            titles = [named(name, self._unit) for name in names]
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
        spec, every = self.known.habits.spec, sorted(self.known.habits.facts.items())
        facts = [one for _, one in every if across in one.metrics and up in one.metrics]
        for picker, metric in ((self.across, across), (self.up, up)):
            picker.setToolTip("\n".join([picker.accessibleName(), explained(metric, self._unit)]))
        titles = self.across.currentText(), self.up.currentText()
        levels = [words.level(spec, number) for number in range(len(spec.levels))]
        told = partial(self._said, across=across, up=up, spec=spec)
        self.picture.show_chart(chart_of(facts, (across, up), titles, levels, told))
        missing = len(every) - len(facts)
        self.missing.setText(tr("{n:,} without", n=missing))
        self.missing.setVisible(bool(missing))

    def _said(self, facts: HeadFacts, *, across: str, up: str, spec: ModelSpec) -> str:
        numbers = [
            f"{named(name, self._unit)}: {measured(name, facts.metrics[name])}"
            for name in dict.fromkeys((across, up))
        ]
        ends = filter(
            None, [tr("Head {head}", head=facts.head), words.ends(spec, facts.head.layer)]
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

    def _pick(self, head: HeadId) -> None:
        if self.session is not None:
            self.session.select(layer=head.layer, head=head.head)

    def _hover(self, head: HeadId | None) -> None:
        if self.session is None:
            return
        now = self.session.at(head) if head is not None else None
        if now != self.session.hover:
            self.session.put(hover=now)

    def _enter(self) -> None:
        self.asked.emit("look_map")

    def _open(self, example: Example) -> None:
        if self.session is not None:
            self.example.emit(self.session.selection.head_id, example)


def chart_of(
    facts: Sequence[HeadFacts],
    metrics: tuple[str, str],
    titles: tuple[str, str],
    levels: Sequence[str],
    told: Callable[[HeadFacts], str],
) -> Chart:
    """Heads as points over two metrics: a colour and a shape for each level, hollow where the layer
    goes from one level to another."""
    if not facts:
        return Chart(words=tr("No head has both numbers"))
    xs, ys = ([one.metrics[metric] for one in facts] for metric in metrics)
    points, legend = [], []
    for stays, level in sorted({(one.kind != "self", one.level) for one in facts}):
        mine = [one for one in facts if (one.kind != "self", one.level) == (stays, level)]
        # orange means chosen
        colour, heads = level + (level >= ORANGE), tuple(one.head for one in mine)
        points.append(
            Points(
                [one.metrics[metrics[0]] for one in mine],
                [one.metrics[metrics[1]] for one in mine], colour, level, 9.0, stays,
                partial(_told_of, mine, told), heads, tuple(map(str, heads)),
            )
        )  # fmt: skip
        name = levels[level]
        said = tr("to {level}", level=name) if stays else name
        legend.append(Entry(said, colour, level, stays))
    plot = Plot(Axis.around(xs, title=titles[0]), Axis.around(ys, title=titles[1]), tuple(points))
    said = tr(
        "{heads}; across: {across}, {xs}; up: {up}, {ys}",
        heads=words.counted(len(facts), "head"), across=titles[0], up=titles[1],
        xs=_range(xs), ys=_range(ys),
    )  # fmt: skip
    shown = tuple(legend) if len(legend) > 1 else ()
    return Chart((plot,), said, shown, of=metrics)


def _told_of(facts: Sequence[HeadFacts], told: Callable[[HeadFacts], str], at: int) -> str:
    return told(facts[at])


def _range(values: Sequence[float]) -> str:
    low, high = (plots.number(end(values)) for end in (min, max))
    return tr("{low} to {high}", low=low, high=high)


def _noted(known: Known) -> str:
    """How many heads are shown, measured on what."""
    heads, texts = words.counted(len(known.habits.facts), "head"), known.habits.texts
    if texts == 1 and (known.whole or known.scope == ONE):
        return tr("{heads} on this text", heads=heads)
    so_far = not known.whole and known.scope == ALL
    said = "{heads} on {texts}, so far" if so_far else "{heads} on {texts}"
    return tr(said, heads=heads, texts=words.counted(texts, "text"))


def _again(known: Known) -> Task[Known]:
    yield Step(1, 1)
    return known


def _in_depth(capture: Capture, at_hand: Habits) -> Task[Known]:
    """What is known of the text at once, and everything when it is measured."""
    if at_hand.facts:
        yield Step(0, 1, "measuring heads", Known(at_hand, ONE, capture, whole=False))
    found = yield from _carried(tasks.habits(capture, alone=True), ONE, capture)
    return found


def _over_all(capture: Capture) -> Task[Known]:
    found = yield from _carried(tasks.habits(capture), ALL, capture)
    return found


def _carried(task: Task[Habits], scope: str, capture: Capture) -> Task[Known]:
    """A task whose values are Known; what is found so far is not whole."""
    while True:
        try:
            step = next(task)
        except StopIteration as end:
            return Known(end.value, scope, capture)
        if isinstance(step.value, Habits):
            known = Known(step.value, scope, capture, whole=False)
            step = Step(step.done, step.total, step.note, known)
        yield step
