"""The look Neurons: one query with all its keys, from q . k element by element to the weights."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from hgviz.core import Integers, Prompt, Selection, Task
from hgviz.figures.spec import Spec
from hgviz.gui.language import tr
from hgviz.gui.neurons import KeyTable
from hgviz.gui.neurons_parts.dissected import Dissected, dissected
from hgviz.gui.neurons_parts.pair import Pair
from hgviz.gui.view import View
from hgviz.gui.views import words
from hgviz.gui.views.grid import Words as Texts
from hgviz.gui.widgets import IconButton, PaneHead, Segments, label, line, tip
from hgviz.maps import LazyMap, Mixed

if TYPE_CHECKING:
    from hgviz.core import Capture
    from hgviz.session import Session

LOW = 320  # px of height
ORDERS = (("text", "In order", ""), ("weight", "By weight", ""))
NOTHING = ("No attention to take apart yet", "Capture a text, and its numbers appear here.")
CAPTURE = (("capture", "Capture this text"), ("open_sample", "Open the sample"))
OPEN = (("open_folder", "Open a checkpoint…"),)
NO_QUERY = ("No query is chosen", "Choose one in the text below; all its keys are listed here.")
MIXED = (
    "Queries meet slots here",
    "The tokens behind them come after: they have no product to take apart.",
)
DENSE = (
    "This capture holds weights alone",
    "They were kept as the model gave them: the queries and keys they came from are not there.\n"
    "Capture the text again, without --dense, to see every number on the way.",
)


class NeuronView(View):
    """Every number between a query, its keys and their weights; a click chooses the key."""

    name, title = "neurons", "Neurons"
    topic = "neurons"
    lane = "map"
    icon: ClassVar[str] = "table"
    needs: ClassVar[tuple[str, ...]] = ("capture", "selection", "hover")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.found: Dissected | None = None
        self._texts = Texts()
        self._of: tuple[Prompt, Prompt | None] | None = None
        self.head = PaneHead(tr("Head"))
        self.level = label(factor=0.92, weight=500, kind="chip")
        self.level.hide()
        self.order = Segments([(name, tr(said), icon) for name, said, icon in ORDERS])
        self.order.setToolTip(tr("How the keys are listed"))
        self.order.setAccessibleName(tr("How the keys are listed"))
        self.order.chosen.connect(self._reorder)
        self.copy_button = IconButton("copy", tr("Copy every number as a table"))
        self.copy_button.clicked.connect(self.copy_table)
        self.head.add_beside_title(self.level)
        self.export = IconButton("export", tr("Export figure… (Ctrl+E)"))
        self.export.clicked.connect(lambda: self.asked.emit("export"))
        self.head.add(self.order, self.copy_button, self.export)
        self.pair, self.keys = Pair(), KeyTable()
        self.keys.picked.connect(self._pick)
        self.keys.pointed.connect(self._point)
        self.sentence = label(kind="secondary")
        self.sentence.setWordWrap(True)
        self.sentence.setMargin(0)
        self.sentence.setContentsMargins(16, 6, 16, 8)
        self.sentence.setMinimumHeight(2 * self.sentence.fontMetrics().height() + 14)
        self._foot = line()
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignVCenter)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for one in (self.head, self.pair, line()):
            column.addWidget(one)
        column.addWidget(self.keys, 1)
        column.addWidget(self._foot)
        column.addWidget(self.sentence)
        self.start_at(self.keys)

    # --- View -------------------------------------------------------------------------------------

    def request(self, session: Session) -> Task[Dissected] | None:
        """Take the row of the query looked at apart."""
        capture, chosen, query = session.capture, session.selection, session.looked_at.query
        self.empty_actions: tuple[tuple[str, str], ...] = ()
        if capture is None or not all(map(len, capture.spans)):
            self.empty, self.empty_actions = NOTHING, CAPTURE
            return None
        one = capture.maps[chosen.layer] if chosen.layer < len(capture.maps) else None
        if one is None:
            reached = tr("It appears here as soon as the capture has reached it.")
            self.empty = tr("Layer {layer} is not captured yet", layer=chosen.layer), reached
            self.empty_actions = () if session.at_work else CAPTURE[:1]
            return None
        if isinstance(one, Mixed):
            self.empty, self.empty_actions = MIXED, (("tokens", "Show the slots"),)
            return None
        if not isinstance(one, LazyMap):
            self.empty = DENSE
            self.empty_actions = CAPTURE[:1] if session.checkpoint else OPEN
            return None
        if query is None or query >= len(capture.query_prompt(chosen.layer)):
            self.empty, self.empty_actions = NO_QUERY, (("next_query", "Choose a query"),)
            return None
        return dissected(capture, chosen.head_id, query, self._named(capture))

    def draw(self, result: Dissected) -> None:
        """Show the row."""
        if self.session is None:
            return
        self.found = result
        spec, head = result.capture.spec, result.head
        self.head.title.setText(tr("Head {head}", head=head))
        self.level.setText(words.ends(spec, head.layer))
        self.level.setVisible(bool(self.level.text()))
        glyph, place = result.rows.glyph(result.row), result.rows.place(result.row)
        self.head.note.say(tr("query {glyph} {place}", glyph=glyph, place=place))
        self.keys.show_keys(result, self._ordered(), self._column())
        self._follow()

    def noticed(self, name: str) -> None:
        """Another key of the same row is there at once."""
        if name in ("selection", "hover") and self._same():
            self.keys.choose(self._column())
            self._follow()

    def figure(self, session: Session) -> Spec | None:
        """The same row on paper, in the same order."""
        if session.capture is None or self.found is None or not self._same():
            return None
        chosen = replace(session.selection, key=session.marked.key)  # its query is what is drawn
        spec = Spec("neurons", chosen, session.display)
        return replace(spec, order="weight") if self.order.choice == "weight" else spec

    def as_text(self) -> str:
        """Every number of the row, in full, tab-separated."""
        return "".join("\t".join(row) + "\n" for row in self.as_table() or ())

    def as_table(self) -> list[list[str]] | None:
        """Every number of the row, in full."""
        return None if self.found is None else self.found.table(self._ordered())

    def copy_table(self) -> None:
        """The table, for a spreadsheet."""
        if self.found is not None:
            QGuiApplication.clipboard().setText(self.as_text())
            count = words.counted(len(self.found.anatomy.weights), "key")
            self.head.note.say(tr("{things} copied as a table", things=count))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where there is little room the keys have it, with their sentences as tooltips."""
        super().resizeEvent(event)
        low = self.height() < LOW
        self.pair.set_low(low)
        for one in (self._foot, self.sentence):
            one.setHidden(low)

    # --- inside -----------------------------------------------------------------------------------

    def _named(self, capture: Capture) -> Texts:
        """The words of the texts of a capture, found once."""
        of = (capture.prompt, capture.target)
        if self._of is None or any(a is not b for a, b in zip(of, self._of, strict=True)):
            self._texts, self._of = Texts(), of
        return self._texts

    def _same(self) -> bool:
        """Whether what is on screen is the row that is chosen."""
        session, found = self.session, self.found
        if session is None or found is None or found.capture is not session.capture:
            return False
        chosen, query = session.selection, session.looked_at.query
        return (
            chosen.head_id == found.head
            and query is not None
            and found.capture.row(chosen.layer, query) == found.row
        )

    def _ordered(self) -> Integers:
        assert self.found is not None
        return self.found.order(self.order.choice == "weight")

    def _column(self) -> int | None:
        """The column of the key looked at; without one, the strongest."""
        assert self.found is not None and self.session is not None
        key = self.session.looked_at.key
        if key is not None:
            column = self.found.capture.column(self.found.head.layer, key)
            if column < len(self.found.anatomy.weights):
                return column
        return self.found.strongest

    def _follow(self) -> None:
        """The elements and the sentence of the key looked at."""
        column = self._column()
        self.pair.show_pair(self.found, column)
        none = tr("This query has no keys.")
        said = none if column is None else self.found.sentence(column)
        self.sentence.setText(said)
        self.sentence.setToolTip(tip(said))

    def _reorder(self, name: str) -> None:
        if self.found is not None:
            self.keys.show_keys(self.found, self._ordered(), None)
            self.keys.verticalScrollBar().setValue(0)
            self.keys.choose(self._column())

    def _token(self, column: int) -> int | None:
        assert self.found is not None
        return self.found.capture.column_token(self.found.head.layer, column)

    def _pick(self, column: int) -> None:
        if self.session is not None and (token := self._token(column)) is not None:
            self.session.put(hover=None)
            self.session.select(key=token)

    def _point(self, column: int | None) -> None:
        """Ring the same key in the other panes."""
        session = self.session
        if session is None or self.found is None:
            return
        key = None if column is None else self._token(column)
        query = session.selection.query
        hover = None
        if key is not None and query is not None:
            hover = replace(Selection(*self.found.head), query=query, key=key)
        session.put(hover=hover)
