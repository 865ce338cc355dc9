"""The text at every resolution, coloured by what the chosen letter looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from hgviz.core import Capture, Display, Integers, Selection
from hgviz.figures.spec import Spec
from hgviz.gui import sentences
from hgviz.gui.language import tr
from hgviz.gui.layouts import followed
from hgviz.gui.tables import Table
from hgviz.gui.textrows import (
    LEFT,
    Passage,
    Strip,
    StripOptions,
    StripRow,
    Tokens,
    passages,
    segment_ends,
)
from hgviz.gui.view import View
from hgviz.gui.widgets import Button, IconButton, PaneHead, Words, hbox, label, vbox
from hgviz.session import Session
from hgviz.session.navigation import step_item

NOTE = "attention of the selected {unit}"
NOTES = {
    "levels": "attention of the selected {unit} at every resolution",
    "texts": "attention of the selected {unit} in both texts",
    "copy": "the target is a copy of the source; change it with Edit text…",
}
CHANGE = {"text": "Edit text…", "image": "Choose image…", "audio": "Choose sound…"}
STEPS = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (0, 1)}
KEYS = (("← / →", "letter"), ("J / K", "layer"), ("H / L", "head"))


@dataclass(frozen=True, slots=True, eq=False)
class TextStripData:
    """What a request brings."""

    capture: Capture
    passages: tuple[Passage, ...]
    display: Display
    segment_ends: Integers | None = None

    @property
    def lines(self) -> tuple[StripRow, ...]:
        """Every row."""
        return tuple(line for one in self.passages for line in one.lines)

    @property
    def unit(self) -> str:
        """What is asked with: a letter or a token of the text that the queries come from."""
        asking = [one.prompt for one in self.passages if one.asks]
        return (asking[0] if asking else self.capture.main).unit


class TextStrip(View):
    """One row per level, and each of two texts apart, the source above.

    A click chooses the query, Alt+click the key, dragging the mean of several. In the text that
    only the keys come from a click chooses the key; in one that the selected head does not read,
    the head shown there and its query.
    """

    title: ClassVar[str] = "Text"
    topic: ClassVar[str] = "text"
    needs: ClassVar[tuple[str, ...]] = (
        "capture", "selection", "hover", "opened", "display", "off", "text",
    )  # fmt: skip
    watches: ClassVar[tuple[str, ...]] = ("work",)
    empty: tuple[str, str] = (
        "No text yet",
        "Write one to see the attention of every token.",
    )
    empty_actions: tuple[tuple[str, str], ...] = (("edit_text", "Edit text…"),)

    rows_changed = Signal(int)  # how many rows there are now

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._queries: Tokens | None = None
        self._shown: TextStripData | None = None
        self._said = tr(NOTE, unit=tr("letter"))
        self.head = PaneHead(tr("Text"), self._said)
        self.verdict = label(factor=0.92, weight=500, kind="chip")
        self.verdict.setToolTip(tr("What the model says of this text"))
        self.verdict.hide()
        self.steps = (
            IconButton("arrow-left", tr("Previous text (Ctrl+PgUp)")),
            IconButton("arrow-right", tr("Next text (Ctrl+PgDown)")),
        )
        for one, name in zip(self.steps, ("last_text", "next_text"), strict=True):
            one.setFixedSize(24, 24)
            one.setProperty("action", name)
            one.clicked.connect(self._step)
            one.hide()
        self.head.add_beside_title(*self.steps, self.verdict)
        self.edit = Button(tr("Edit text…"), "edit")
        self.edit.clicked.connect(self._edit)
        self.capture_button = Button(tr("Capture"), "capture")
        self.capture_button.clicked.connect(self._capture)
        self.capture_button.setMinimumWidth(self.capture_button.sizeHint().width())  # for Stop too
        self.head.add(self.edit, self.capture_button)
        self.strips = (Strip(), Strip())
        self.strip = self.strips[0]
        for number, strip in enumerate(self.strips):
            strip.pointed.connect(partial(self._point, number))
            strip.queried.connect(partial(self._choose, number))
            strip.keyed.connect(partial(self._key, number))
            strip.opened.connect(self.select_head)
            strip.installEventFilter(self)
        self.legend = Words(factor=0.92, kind="secondary")
        self._foot = QWidget()
        self._foot.setFixedHeight(36)
        row = hbox(self._foot, (self.legend, 1), margins=(LEFT, 0, 16, 8), spacing=8)
        self._units = []
        for number, (keys, what) in enumerate(KEYS):
            row.addSpacing(8 if number else 0)
            row.addWidget(label(keys, factor=0.85, weight=500, kind="key"))
            said = label(tr(what), factor=0.92, kind="secondary")
            row.addWidget(said)
            self._units.append(said)
        column = vbox(self.content, self.head)
        for strip in self.strips:
            column.addWidget(strip, 1)
        self.strips[1].hide()
        column.addWidget(self._foot)
        self.start_at(self.strip)

    # --- View -------------------------------------------------------------------------------------

    def request(self, session: Session) -> Callable[[], TextStripData] | None:
        """Read what the chosen letters give in the head open at each level."""
        capture = session.capture
        if capture is None or not len(capture.main):
            return None
        chosen = session.looked_at
        tokens = {one.index: session.last_token(one.index) for one in capture.spec.levels}
        off = session.off | capture.off
        wish = StripOptions(
            replace(chosen, layer=session.selection.layer, head=session.selection.head),
            self._several(chosen), session.opened, tokens, session.display, off,
        )  # fmt: skip
        return partial(_shown, capture, wish)

    def draw(self, result: TextStripData) -> None:
        """Show the rows."""
        assert self.session is not None
        self._shown = result
        unit, spec = result.unit, result.capture.spec
        at = result.capture.place_in_corpus
        self.head.title.setText(
            tr("Text {number:,} of {total:,}", number=at[0], total=at[1])
            if at
            else sentences.read(spec)
        )
        self.edit.setText(tr(CHANGE[spec.modality]))
        for by, one in zip((-1, 1), self.steps, strict=True):
            one.setVisible(at is not None)
            one.setEnabled(step_item(self.session, by) is not None)
        self._said = tr(_note(result.capture), unit=tr(unit))
        self._say_work()
        said = sentences.of_text(result.capture).sentence()
        self.verdict.setText(said)
        self.verdict.setVisible(bool(said))
        self._units[0].setText(tr(unit))
        chosen = self.session.selection.head_id
        for number, strip in enumerate(self.strips):
            strip.setVisible(number < len(result.passages))
        self.rows_changed.emit(len(result.lines))
        for strip, one in zip(self.strips, result.passages, strict=False):
            mine = one.prompt is result.capture.main
            written = self.session.written if mine else None
            same = strip.show_lines(
                one.prompt, one.lines, result.display, chosen, written, result.segment_ends
            )
            strip.show_queries(one.queries, follow=self.session.hover is None and not same)
            strip.setAccessibleDescription(_told(one))
        self.legend.say("    ".join(self._legend(result)))

    def noticed(self, name: str) -> None:
        """Forget a mean when one query is chosen elsewhere."""
        if name == "selection" and self.session is not None and self._queries is not None:
            if self.session.selection.query != self._queries[1]:
                self._queries = None
        elif name == "capture" and self.session is not None and not self.session.grew:
            self._queries = None
        elif name == "work" and self.session is not None:
            busy = self.session.at_work
            self.capture_button.setText(tr("Stop") if busy else tr("Capture"))
            self.capture_button.wear("stop" if busy else "capture")
            self._say_work()

    def figure(self, session: Session) -> Spec | None:
        """The letter through all levels on paper."""
        if session.capture is None:
            return None
        return Spec(
            kind="levels",
            selection=session.selection,
            display=session.display,
            heads=followed(session),
        )

    def as_text(self) -> str:
        """The text itself."""
        return self.session.capture.main.text if self.session and self.session.capture else ""

    def as_table(self) -> list[list[str]] | None:
        """One row for each token, with its weight in every row of the strip."""
        return passage_table(self._shown.passages) if self._shown is not None else None

    def show_legend(self, there: bool) -> None:
        """Show or hide the legend, for which a low strip has no room."""
        self._foot.setVisible(there)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """In the text Shift and an arrow take one more query to those whose mean is shown."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            by = STEPS.get(Qt.Key(event.key()))
            number = next((n for n, one in enumerate(self.strips) if one is watched), 0)
            passage = self._passage(number)
            shifted = event.modifiers() == Qt.KeyboardModifier.ShiftModifier
            if shifted and by is not None and passage and passage.asks and passage.queries:
                first, last = passage.queries
                most = len(passage.prompt) - 1
                self._choose(number, (max(0, first + by[0]), min(most, last + by[1])))
                return True
        return super().eventFilter(watched, event)

    # --- inside -----------------------------------------------------------------------------------

    def _several(self, chosen: Selection) -> Tokens | None:
        if chosen.query is None:
            return None
        if self._queries is not None and self._queries[1] == chosen.query:
            return self._queries
        return chosen.query, chosen.query

    def _legend(self, result: TextStripData) -> Iterator[str]:
        assert self.session is not None
        if self.session.stale:
            yield tr("Text before: it was edited since. Capture it to see the new one.")
            return
        asked = next((one.queries for one in result.passages if one.asks), None)
        if asked is None:
            yield tr("Click a {unit} to see its attention.", unit=tr(result.unit))
            return
        if asked[0] != asked[1]:
            many = sentences.counted(asked[1] - asked[0] + 1, result.unit)
            yield tr("The mean of {many}.", many=many)
        signs = {line.signed for line in result.lines if line.weights is not None}
        if True in signs:
            yield tr("Red: added, blue: taken away.")
        if False in signs:
            yield tr("Brighter: more attention.")
        kinds = result.capture.prompt.token_type_ids
        if kinds is not None and (kinds == 1).any():
            yield tr("Underlined: the second text.")
        if self.session.written is not None:
            yield tr("Dotted: written by the model.")
        spec = result.capture.spec
        if spec.two_texts:
            layer = spec.layers[self.session.selection.layer]
            yield (
                tr("A click below chooses the query, above the key.")
                if layer.role == "cross"
                else tr("A click in a text shows its head.")
            )
        elif len(result.passages) > 1:
            yield tr("The text is read from slots, into which all of it is mixed.")
        elif result.segment_ends is not None:
            yield tr("▾ A segment ends.")
        elif len(result.lines) > 1:
            yield tr("One head for each resolution (dashed in the hourglass).")

    def _say_work(self) -> None:
        """What the model is doing meanwhile, else what is shown."""
        assert self.session is not None
        going = next((one for one in self.session.work if one.keeps and one.note), None)
        said = self._said
        if going and self.session.at_work:
            said = f"{tr(going.title)}: {tr(going.note)}"
        self.head.note.say(said[:1].lower() + said[1:])

    def _edit(self) -> None:
        self.asked.emit("edit_text")

    def _capture(self) -> None:
        assert self.session is not None
        self.asked.emit("stop" if self.session.at_work else "capture")

    def _step(self) -> None:
        self.asked.emit(self.sender().property("action"))

    def _passage(self, number: int) -> Passage | None:
        found = self._shown.passages if self._shown is not None else ()
        return found[number] if number < len(found) else None

    def _point(self, number: int, token: int | None) -> None:
        passage = self._passage(number)
        if self.session is None or passage is None:
            return
        chosen = self.session.selection
        here = token is not None and chosen.query is not None and passage.answers
        self.session.put(hover=replace(chosen, key=token) if here else None)

    def _choose(self, number: int, tokens: Tokens) -> None:
        passage = self._passage(number)
        if self.session is None or passage is None:
            return
        if not passage.asks and passage.answers:
            self._key(number, tokens[1])
            return
        chosen = self.session.selection
        if not passage.asks:
            head = next((one.head for one in passage.lines if one.head is not None), None)
            if head is None:
                return
            chosen = self.session.at(head)
        self._queries = tokens if tokens[0] != tokens[1] and passage.asks else None
        changed = chosen.query != tokens[1] or not passage.asks
        self.session.put(hover=None, selection=replace(chosen, query=tokens[1]))
        if not changed:
            self.refresh()

    def _key(self, number: int, token: int) -> None:
        passage = self._passage(number)
        if self.session is not None and passage is not None and passage.answers:
            self.session.put(selection=replace(self.session.selection, key=token))


def _shown(capture: Capture, wish: StripOptions) -> TextStripData:
    found = passages(capture, wish)
    return TextStripData(capture, found, wish.display, segment_ends(capture))


def passage_table(passages: Sequence[Passage]) -> Table:
    """One row for each token of each text, with the weight of the cell that it is in, level by
    level."""
    heads = [
        (passage, line)
        for passage in passages
        for line in passage.lines
        if line.weights is not None
    ]
    names = [
        " ".join(filter(None, (line.level, tr("head {head}", head=line.head)))) for _, line in heads
    ]
    out = [[tr("Text"), tr("Position"), tr("Token"), *names]]
    for number, passage in enumerate(passages, 1):
        for token in range(len(passage.prompt)):
            weights = (_weight(line, token) if of is passage else "" for of, line in heads)
            name = sentences.name(passage.prompt, token)
            out.append([str(number), str(token), name, *weights])
    return out


def _weight(line: StripRow, token: int) -> str:
    """What the cell that a token is in gets; "" where the query does not see it."""
    cell = line.cell(token)
    if cell is None or line.weights is None or (line.seen is not None and not line.seen[cell]):
        return ""
    return str(line.weights[cell])


def _told(passage: Passage) -> str:
    """What is chosen in a text, for those who cannot see it: “s”, in hourglass, position 60."""
    if passage.queries is None or not passage.asks:
        return ""
    first, last = passage.queries
    prompt = passage.prompt
    where = sentences.place(prompt, sentences.word_spans(prompt), first, last + 1)
    return f"{sentences.quoted(sentences.glyph(prompt, first, last + 1))}, {where}"


def _note(capture: Capture) -> str:
    """What the rows show: at which resolutions, in which texts."""
    spec, target = capture.spec, capture.target
    if spec.two_texts:
        copied = target is not None and target.text and capture.prompt.text.startswith(target.text)
        return NOTES["copy" if copied else "texts"]
    alone = len({level.sequence for level in spec.levels}) == 1
    return NOTES["levels"] if len(spec.levels) > 1 and alone else NOTE
