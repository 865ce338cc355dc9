"""The maps of one head in A and in B, and the difference of the two."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from hgviz import palettes
from hgviz.core import Selection, Task, finish
from hgviz.figures.spec import Spec
from hgviz.gui.compare_parts import tables
from hgviz.gui.compare_parts.feed import Feed
from hgviz.gui.compare_parts.reading import crosses, read
from hgviz.gui.compare_parts.told import GUIDE, sides_of
from hgviz.gui.compare_parts.trio import Trio
from hgviz.gui.heads_parts.metrics import explanation
from hgviz.gui.language import tr
from hgviz.gui.opened import Compared, Comparer
from hgviz.gui.tiles import Tiles
from hgviz.gui.views import words
from hgviz.gui.views.choosing import MapsView, scale_choice
from hgviz.gui.views.picture import Scene
from hgviz.gui.views.supply import QUICK
from hgviz.gui.widgets import IconButton, PaneHead, Segments, Words, label
from hgviz.session import Session

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes

NOTHING = (
    "Nothing to compare with yet",
    "Put a second model, activation or text beside this one: two maps and their difference appear.",
)
ASK = (("compare_with", "Compare with…"),)
OPEN = (("open_sample", "Open the sample"), ("open_folder", "Open a checkpoint folder…"))
CAPTURE = (("capture", "Capture this text"),)
REACHED = "It appears here as soon as the capture has reached it."
MOST_ROLE = 240  # px
WAYS = (("beside", "Side by side", ""), ("blink", "Blink", ""))


class CompareView(MapsView):
    """A, B and A − B at equal size, with one cursor, one scale and one part on screen."""

    figureless = "There is no B yet"
    title = "Compare"
    topic = "compare"
    lane = "map"
    wait = 0
    icon: ClassVar[str] = "compare"
    needs: ClassVar[tuple[str, ...]] = (
        "capture", "beside", "selection", "hover", "display", "facts",
    )  # fmt: skip
    empty = NOTHING
    empty_actions: tuple[tuple[str, str], ...] = ASK

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tiles = Tiles()
        self.trio = Trio(self.tiles)
        self._comparer = Comparer(self.tiles)
        self._feed = Feed(self.tiles, self.trio.panes)
        self._compared: Compared | None = None
        self._build()

    def _build(self) -> None:
        self.head = PaneHead(tr("Head"))
        self.role = label(factor=0.92, weight=500, kind="chip")
        self.level = label(factor=0.92, weight=500, kind="chip")
        self.way = Segments([(name, tr(said), icon) for name, said, icon in WAYS])
        self.way.setToolTip(tr("A and B beside each other, or in turn in one place"))
        self.way.setAccessibleName(tr("How A and B are shown"))
        self.way.chosen.connect(self._choose_way)
        self.scale = scale_choice()
        self.scale.chosen.connect(self._choose_scale)
        self.fit_button = IconButton("fit", tr("Fit the maps (F)"))
        self.fit_button.clicked.connect(self.fit)
        self.export = IconButton("export", tr("Export figure… (Ctrl+E)"))
        self.export.clicked.connect(lambda: self.asked.emit("export"))
        self.head.add_beside_title(self.role, self.level)
        self.head.add(self.way, self.scale, self.fit_button, self.export)
        self.least = label("A − B", factor=0.92, weight=600, kind="side")
        less = tr("What a query weighs a key in A, less what it weighs it in B")
        self.least.setToolTip(explanation(less, "a_ij − b_ij", GUIDE))
        self.legend = Words(factor=0.92, kind="secondary")
        self.least.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.least.setFixedHeight(28)
        self._add(2, self.least)
        self._add(2, self.legend)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.trio, 1)
        for one in self.trio.panes:
            one.pointed.connect(self._point)
            one.clicked.connect(self._click)
            one.installEventFilter(self)
        self.trio.moved.connect(self._fetch)
        self._feed.outgrown.connect(self._present)
        self._feed.added_up.connect(self._present)
        self._feed.came.connect(self._say_share)
        self.start_at(self.trio.panes[0])

    def seat(self, a: QWidget, b: QWidget) -> None:
        """Put what names and chooses the sides over their maps."""
        for number, one in enumerate((a, b)):
            self._add(number, one)

    def explain(self, words: str) -> None:
        """Say in the head how B differs from A."""
        self.head.note.say(words)

    def _add(self, seat: int, widget: QWidget) -> None:
        layout = self.trio.seats[seat].layout()
        assert isinstance(layout, QHBoxLayout)
        layout.addWidget(widget, 0 if widget is self.least else 1)

    # --- View -------------------------------------------------------------------------------------

    def bind(self, session: Session, lanes: Lanes) -> None:
        """Listen, and show the scale in use."""
        super().bind(session, lanes)
        self._feed.start(lanes, self.show_error)
        self.scale.choose(session.display.scale)

    def unbind(self) -> None:
        """Stop listening and reading."""
        super().unbind()
        self._feed.stop()
        self.trio.blink(False)

    def request(self, session: Session) -> Task[Compared] | None:
        """Open both heads on one grid, and read the row looked at."""
        a, b, chosen = session.capture, session.beside, session.selection
        if a is None:
            self.empty, self.empty_actions = NOTHING, OPEN
            return None
        if b is None or not all(map(len, (*a.spans, *b.spans))):
            self.empty, self.empty_actions = NOTHING, ASK
            return None
        if chosen.layer >= len(a.maps) or a.maps[chosen.layer] is None:
            self.empty = f"Layer {chosen.layer} of A is not captured yet", REACHED
            self.empty_actions = () if session.at_work else CAPTURE
            return None
        return self._comparer.open(a, b, chosen.head_id, chosen.beside, session.looked_at.query)

    def draw(self, result: Compared) -> None:
        """Show the three; their tiles follow as they are read."""
        fresh, self._compared = result is not self._compared, result
        self._entitle()
        self._present()
        self._follow(reveal=fresh)
        self._fetch()

    def noticed(self, name: str) -> None:
        """Move the cursor and change colours at once."""
        if name in ("selection", "hover"):
            self._follow(reveal=name == "selection" and self._pointed is None)
        elif name == "display" and self.session is not None:
            self.scale.choose(self.session.display.scale)
            self._present()
        elif name in ("capture", "beside"):
            self._pointed = self._compared = None
            self._feed.forget()

    def figure(self, session: Session) -> Spec | None:
        """The same maps on paper."""
        if session.capture is None or session.beside is None:
            return None
        return Spec(kind="compare", selection=session.marked, display=session.display)

    def as_table(self) -> list[list[str]] | None:
        """The weights of the cells on screen, of A, B and A − B."""
        compared, view = self._compared, self.trio.view
        return tables.of_maps(compared, self.tiles, view) if compared and view else None

    @property
    def zoomed(self) -> bool:
        """Whether some of the map is off the pane."""
        return self.trio.view is not None and not self.trio.view.whole

    def fit(self) -> None:
        """The whole maps."""
        self.trio.fit()

    def settle(self) -> None:
        """Ask, read every tile on screen and draw, now."""
        super().settle()
        compared, view = self._compared, self.trio.view
        if compared is not None and view is not None:
            lacking = [key for one in compared.shown for key in self.tiles.lacking(one, view)]
            finish(compared.load(self.tiles, lacking))
            for one in self.trio.panes:
                one.compose(afresh=True)
            self._present()

    # --- showing ----------------------------------------------------------------------------------

    def _fetch(self) -> None:
        """Have the tiles read that the screen lacks."""
        if self._compared is not None and self.isVisible():
            self._feed.want(self._compared)
            self._say_share()

    def _present(self) -> None:
        compared, session = self._compared, self.session
        if compared is None or session is None:
            return
        peak = session.display.limits or (-compared.peak, compared.peak)
        names = (*compared.names, compared.names[0])
        masses = compared.masses or (None, None, None)
        scenes = []
        for source, (rows, columns), mass, off in zip(
            compared.sources, names, masses, self._off(compared), strict=True
        ):
            about_zero = compared.signed or source.signed
            limits = palettes.limits_of(*peak, about_zero)
            scenes.append(
                Scene(
                    source, rows, columns, limits, session.display, off, mass=mass,
                    sides=compared.sides, about_zero=about_zero,
                )
            )  # fmt: skip
        self.trio.show_scenes(
            scenes, compared.there, compared.names[0][0] is not compared.names[1][0]
        )
        self.trio.lack(*compared.lacks)

    def _say_share(self) -> None:
        """How much of a large difference is computed: every weight of both goes into it."""
        compared, view = self._compared, self.trio.view
        if compared is None or view is None:
            return
        share = compared.computed(self.tiles, view) if view.zoom > QUICK else 1.0
        part = words.percent(f"{int(100 * share)}")
        done = tr("{share} computed", share=part) if share < 1 else ""
        self.trio.panes[2].hidden_words = done
        self.trio.panes[2].update()

    def _off(self, compared: Compared) -> tuple[bool, bool, bool]:
        """Whether the head is switched off in A, in B, and in both."""
        a, b = compared.meeting.off
        return a, b, a and b

    def _entitle(self) -> None:
        assert self._compared is not None and self.session is not None
        met, facts = self._compared.meeting, self.session.facts.get(self._compared.meeting.head)
        title = tr("Head {head}", head=met.head)
        if met.head != met.other:
            title = tr("Head {head} beside {other}", head=met.head, other=met.other)
        self.head.title.setText(title)
        said = tr(facts.role) if facts else ""
        self.role.setText(
            self.role.fontMetrics().elidedText(said, Qt.TextElideMode.ElideRight, MOST_ROLE)
        )
        self.role.setToolTip(said)
        self.role.setVisible(bool(said))
        levels = (words.ends(one.spec, head.layer) for one, head in met.sides)
        self.level.setText(" | ".join(dict.fromkeys(filter(None, levels))))
        self.level.setVisible(bool(self.level.text()))
        told = sides_of(self.session)
        legend = tr("red: more with {a}, blue: more with {b}", a=told.a, b=told.b)
        self.legend.say("  ·  ".join(filter(None, (legend, self._compared.laid))))

    # --- what is looked at ------------------------------------------------------------------------

    def _cell(self) -> tuple[int | None, int | None]:
        """The row and column: of the pointer, its row kept where a query is chosen."""
        if self._compared is None or self.session is None:
            return None, None
        chosen = self.session.looked_at
        row, column = self._compared.meeting.cell(chosen.query, chosen.key)
        if self._pointed is None:
            return row, column
        kept = self.session.selection.query is not None and row is not None
        return (row if kept else self._pointed[0]), self._pointed[1]

    def _follow(self, reveal: bool = False) -> None:
        """The cursor and the cards for what is looked at."""
        compared, session = self._compared, self.session
        if compared is None or session is None:
            return
        if compared.meeting.head != session.selection.head_id:  # the next one brings its own
            return
        row, column = self._cell()
        if reveal:
            self.trio.reveal(row, column)
        found = read(compared, row, column)
        self.trio.point(crosses(compared, row, column), [one.card for one in found])

    # --- what people do ---------------------------------------------------------------------------

    def _point(self, cell: tuple[int, int] | None) -> None:
        if self.session is None or self._compared is None or cell == self._pointed:
            return
        self._pointed, before = cell, self.session.hover
        row, column = self._cell()
        hover = None
        if cell is not None and row is not None and column is not None:
            query, key = self._compared.meeting.tokens(row, column)
            hover = Selection(*self._compared.meeting.head, query=query, key=key)
        self.session.put(hover=hover)
        if hover == before:  # the same tokens, or cells that A has not
            self._follow()

    def _click(self, row: int, column: int) -> None:
        if self.session is None or self._compared is None:
            return
        query, key = self._compared.meeting.tokens(row, column)
        if query is not None:
            self._choose(replace(self.session.selection, query=query, key=key))

    def _choose_way(self, name: str) -> None:
        self.trio.blink(name == "blink")
