"""The look Links: the strongest weights as links between tokens, of several heads and queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtWidgets import QVBoxLayout, QWidget

from hgviz.core import Capture, HgvizError, Selection, Step, Task
from hgviz.figures.spec import Spec
from hgviz.gui.language import tr
from hgviz.gui.links_parts.bar import Bar
from hgviz.gui.links_parts.inks import strands_of
from hgviz.gui.links_parts.scene import Scene
from hgviz.gui.links_parts.telling import table_of, told
from hgviz.gui.links_parts.track import Track
from hgviz.gui.links_parts.web import QUERY, Spot, Web
from hgviz.gui.view import Notice, View
from hgviz.gui.views import words
from hgviz.gui.widgets import IconButton, PaneHead, Words, label, line
from hgviz.maps.links import Linking, Links, Side, linked, places_of, sides_of
from hgviz.session import Session, step_token

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes

AHEAD = 8  # units beyond those in view whose links are read, where all have some
FIRST = 60  # of all, before anybody knows what is in view
NOTHING = ("No links to show yet", "Capture a text, and its strongest weights appear here.")
CAPTURE = (("capture", "Capture this text"), ("open_sample", "Open the sample"))


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What was read: the links of the queries chosen (or of all in view), and of the one pointed
    at; or why there are none.
    """

    capture: Capture
    selection: Selection
    linking: Linking
    links: Links | None = None
    hot: Links | None = None
    chosen: frozenset[int] = frozenset()
    error: HgvizError | None = None


class LinksView(View):
    """Queries on one side, keys on the other; click, Ctrl+click or drag chooses queries."""

    name, title = "links", "Links"
    topic = "links"
    figureless = "No links are drawn yet"
    lane = "map"
    icon: ClassVar[str] = "follow"
    needs: ClassVar[tuple[str, ...]] = ("capture", "selection", "hover", "off")
    watches: ClassVar[tuple[str, ...]] = ("text",)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.found: Found | None = None
        self._queries: tuple[int, ...] = ()  # tokens chosen beside the one of the session
        self._sides: tuple[object, tuple[Side, Side]] | None = None
        self._failed: Notice | None = None
        self.head = PaneHead(tr(self.title))
        self.level = label(factor=0.92, weight=500, kind="chip")
        self.before = label(tr("text before"), factor=0.92, weight=500, kind="chip")
        self.before.setToolTip(tr("The text was edited since this was captured"))
        self.level.hide()
        self.before.hide()
        self.everything = IconButton("text", tr("Show the links of every query in view (Esc)"))
        self.everything.clicked.connect(self.show_all)
        self.export = IconButton("export", tr("Export figure… (Ctrl+E)"))
        self.export.clicked.connect(self._ask_export)
        self.head.add_beside_title(self.level, self.before)
        self.head.add(self.everything, self.export)
        self.bar, self.web = Bar(), Web()
        self.bar.changed.connect(self._rechosen)
        self.web.pointed.connect(self._point)
        self.web.queried.connect(self._query)
        self.web.keyed.connect(self._key)
        self.web.stepped.connect(self._step)
        self.web.left.connect(self.show_all)
        self.web.moved.connect(self._moved)
        self.sentence = Words(factor=0.92, kind="secondary")
        self.sentence.setFixedHeight(26)
        self.sentence.setContentsMargins(16, 0, 16, 0)
        self._column = QVBoxLayout(self.content)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        for one in (self.head, self.bar, line()):
            self._column.addWidget(one)
        self._column.addWidget(self.web, 1)
        self._column.addWidget(line())
        self._column.addWidget(self.sentence)
        self.start_at(self.web)

    # --- View -------------------------------------------------------------------------------------

    def bind(self, session: Session, lanes: Lanes) -> None:
        """Listen to a session."""
        super().bind(session, lanes)
        self.everything.setEnabled(session.selection.query is not None)

    def request(self, session: Session) -> Task[Found] | None:
        """Read the rows of the queries that have links to be seen."""
        capture, chosen = session.capture, session.selection
        if capture is None or not all(map(len, capture.spans)):
            self.empty, self.empty_actions = NOTHING, CAPTURE
            return None
        if chosen.layer >= len(capture.maps) or capture.maps[chosen.layer] is None:
            reached = tr("They appear here as soon as the capture has reached it.")
            self.empty = tr("Layer {layer} is not captured yet", layer=chosen.layer), reached
            self.empty_actions = () if session.at_work else CAPTURE[:1]
            return None
        self.bar.fit(capture, chosen)
        hover = session.hover
        pointed = None if hover is None or session.looked_at is not hover else hover.query
        try:
            linking = replace(self.bar.linking(capture, chosen), queries=self._tokens(session))
        except HgvizError as error:
            return self._refused(Found(capture, chosen, Linking(), error=error))
        return self._read(capture, chosen, linking, pointed, self.web.in_view())

    def draw(self, result: Found) -> None:
        """Show the links, or why there are none."""
        if self.session is None:
            return
        self.found = result
        self._entitle(result)
        if result.error is not None or result.links is None:
            self._fail(result.error)
            return
        self._fail(None)
        links, key, capture = result.links, result.selection.key, result.capture
        off = frozenset(capture.off | self.session.off)
        place = (
            None if key is None else links.keys.place(capture.column(result.selection.layer, key))
        )
        scene = Scene(
            links, self._tracks(links), tuple(strands_of(links, off)), result.chosen, place,
            result.hot, self._titles(capture, result.selection.layer),
        )  # fmt: skip
        self.web.show_scene(scene)
        self.sentence.say(told(result.links, result.hot, result.linking, capture))
        self.web.setAccessibleDescription(self.sentence.full)

    def noticed(self, name: str) -> None:
        """Another text: nothing chosen in the one before is in it."""
        if name == "capture" and self.session is not None and not self.session.grew:
            self._queries, self._sides = (), None
        if name == "text" and self.session is not None:
            self.before.setVisible(self.session.stale)

    def figure(self, session: Session) -> Spec | None:
        """The same links on paper."""
        if session.capture is None or self.found is None or self.found.error is not None:
            return None
        linking = self.found.linking
        if not linking.queries and self.found.links is not None:
            rows = (self.found.links.queries.token(one) for one in self.found.links.strands)
            linking = replace(linking, queries=tuple(one for one in rows if one is not None))
        return Spec("links", session.selection, session.display, links=linking)

    def as_text(self) -> str:
        """The sentence beneath the links."""
        return self.sentence.full

    def as_table(self) -> list[list[str]] | None:
        """Every link that is drawn, of all queries that have some."""
        links = None if self.found is None or self.found.error is not None else self.found.links
        return None if links is None else table_of(links)

    # --- reading ----------------------------------------------------------------------------------

    def _tokens(self, session: Session) -> tuple[int, ...]:
        """The tokens chosen: the session's query, and what was added to it."""
        query = session.selection.query
        if query is None:
            return ()
        return self._queries if query in self._queries else (query,)

    def _read(
        self,
        capture: Capture,
        chosen: Selection,
        linking: Linking,
        pointed: int | None,
        window: tuple[int, int],
    ) -> Task[Found]:
        found = Found(capture, chosen, linking)
        yield Step(0, 1, "reading links")
        try:
            sides = self._sides_of(capture, chosen.layer, linking)
            places: tuple[int, ...]
            if linking.queries:
                places = places_of(capture, chosen, linking, sides[0])
            else:
                first, stop = window if window[1] > window[0] else (0, FIRST)
                places = tuple(range(max(0, first - AHEAD), min(len(sides[0]), stop + AHEAD)))
            links = yield from linked(capture, chosen, linking, places, sides)
            hot = None
            if pointed is not None and pointed < len(sides[0].prompt):
                place = sides[0].place(capture.row(chosen.layer, pointed))
                if place is not None and (place not in links.strands or len(places) > 1):
                    hot = yield from linked(capture, chosen, linking, (place,), sides)
        except HgvizError as error:
            return replace(found, error=error)
        marked = frozenset(places) if linking.queries else frozenset()
        return replace(found, links=links, hot=hot, chosen=marked)

    def _sides_of(self, capture: Capture, layer: int, linking: Linking) -> tuple[Side, Side]:
        """What stands along both sides; the same object as long as it is the same."""
        of = capture.spec.layers[layer]
        key = (id(capture), of.level, of.key_level, of.role in ("down", "up"), linking.words,
               linking.special, capture.maps[layer] and capture.maps[layer].shape[1:])  # fmt: skip
        if self._sides is None or self._sides[0] != key:
            self._sides = key, sides_of(capture, layer, linking)
        return self._sides[1]

    def _refused(self, found: Found) -> Task[Found]:
        yield Step(0, 1)
        return found

    def _tracks(self, links: Links) -> tuple[Track, Track]:
        old = self.web.scene
        if old is not None and (old.links.queries, old.links.keys) == (links.queries, links.keys):
            return old.tracks
        return Track.of(links.queries), Track.of(links.keys)

    # --- showing ----------------------------------------------------------------------------------

    def _entitle(self, result: Found) -> None:
        assert self.session is not None
        heads, linking = result.linking.heads, result.linking
        title = tr("Head {head}", head=heads[0] if heads else result.selection.head_id)
        if len(heads) > 1:
            mean = "{n:,} heads: mean" if linking.fuse == "mean" else "{n:,} heads"
            title = tr(mean, n=len(heads))
        self.head.title.setText(title)
        self.level.setText(words.ends(result.capture.spec, result.selection.layer))
        self.level.setVisible(bool(self.level.text()))
        self.before.setVisible(self.session.stale)
        many = len(result.chosen)
        noun = "word" if linking.words else result.capture.query_prompt(result.selection.layer).unit
        note = words.counted(many, noun) if many > 1 else ""
        self.head.note.say(note if linking.queries else tr("every query in view"))
        self.everything.setEnabled(bool(linking.queries))

    def _titles(self, capture: Capture, layer: int) -> tuple[str, str]:
        one, levels = capture.spec.layers[layer], capture.spec.levels
        sides = levels[one.level].sequence, levels[one.key_level].sequence
        if sides[0] == sides[1]:
            return tr("Query"), tr("Key")
        return tr(sides[0].capitalize()), tr(sides[1].capitalize())

    def _fail(self, error: HgvizError | None) -> None:
        """In place of the links, what is wrong; the controls stay, to mend it."""
        if self._failed is not None:
            self._column.removeWidget(self._failed)
            self._failed.deleteLater()
            self._failed = None
        self.web.setVisible(error is None)
        if error is not None:
            self._failed = Notice.of_error(error.what, error.why, error.do)
            self._column.insertWidget(self._column.indexOf(self.web), self._failed, 1)
            self.sentence.say("")

    # --- what people do ---------------------------------------------------------------------------

    def _rechosen(self) -> None:
        self.refresh()

    def _moved(self) -> None:
        """Other queries are in view: where all have links, theirs are read."""
        links = None if self.found is None else self.found.links
        if links is None or self.found is None or self.found.linking.queries:
            return
        first, stop = self.web.in_view()
        if not set(range(first, stop)) <= links.strands.keys():
            self.refresh()

    def _token(self, side: int, place: int) -> int | None:
        links = None if self.found is None else self.found.links
        if links is None:
            return None
        return (links.queries if side == QUERY else links.keys).token(place)

    def _point(self, spot: Spot | None) -> None:
        if self.session is None:
            return
        hover, chosen = None, self.session.selection
        if spot is not None and (token := self._token(spot.side, spot.place)) is not None:
            if spot.side == QUERY:
                hover = replace(chosen, query=token, key=None)
            elif chosen.query is not None:
                hover = replace(chosen, key=token)
        self.session.put(hover=hover)

    def _query(self, place: int, adds: bool, upto: bool) -> None:
        """Choose a query; one more or one less; or all from the one of the session to it."""
        token = self._token(QUERY, place)
        if self.session is None or token is None or self.found is None or not self.found.links:
            return
        before = set(self._tokens(self.session))
        query = self.session.selection.query
        if adds and before:
            before = before - {token} if token in before else before | {token}
            query = token if token in before else max(before, default=None)
        elif upto and query is not None:
            rows = self.found.links.queries
            start = rows.place(self.found.capture.row(self.found.selection.layer, query))
            low, high = sorted((place, place if start is None else start))
            tokens = (rows.token(one) for one in range(low, high + 1))
            before = {query, *(one for one in tokens if one is not None)}
        else:
            before, query = {token}, token
        self._choose(tuple(sorted(before)), query)

    def _choose(self, tokens: tuple[int, ...], query: int | None) -> None:
        assert self.session is not None
        same = query == self.session.selection.query
        self._queries = tokens
        self.session.put(hover=None, selection=replace(self.session.selection, query=query))
        if same:
            self.refresh()

    def _key(self, place: int) -> None:
        token = self._token(1, place)
        if self.session is not None and token is not None:
            self.session.put(hover=None, selection=replace(self.session.selection, key=token))

    def _step(self, side: str, by: int, adding: bool) -> None:
        if self.session is None:
            return
        chosen = step_token(self.session, by, "query" if side == "query" else "key")
        if side == "query" and chosen.query is not None:
            kept = self._tokens(self.session) if adding else ()
            self._choose(tuple(sorted({*kept, chosen.query})), chosen.query)
            self._show_query()
        else:
            self.session.put(hover=None, selection=chosen)

    def _show_query(self) -> None:
        """Keep the query in view."""
        links = None if self.found is None else self.found.links
        query = None if self.session is None else self.session.selection.query
        if links is not None and query is not None and self.found is not None:
            place = links.queries.place(self.found.capture.row(self.found.selection.layer, query))
            if place is not None:
                self.web.reveal(place)

    def show_all(self) -> None:
        """The links of every query in view: none is chosen."""
        if self.session is not None:
            self._queries = ()
            self.session.put(
                hover=None, selection=replace(self.session.selection, query=None, key=None)
            )

    def _ask_export(self) -> None:
        self.asked.emit("export")
