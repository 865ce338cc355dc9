"""The text at every resolution, coloured by the attention of the chosen token."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from hgviz import palettes
from hgviz.analysis.alignment import unit_spans
from hgviz.core import Capture, Display, HeadId, HeadSet, Integers, Selection, Side, progress
from hgviz.figures.spec import Spec
from hgviz.gui import grid, sentences
from hgviz.gui.language import tr
from hgviz.gui.layouts import followed
from hgviz.gui.textrows import LEFT, OTHERS, CellTexts, TextRow, TextRows
from hgviz.gui.view import Empty, View
from hgviz.gui.widgets import Button, PaneHead, Words, chip, hbox, label, vbox
from hgviz.session import Session

# --- reading --------------------------------------------------------------------------------------

MOST_QUERIES = 1024  # that a mean is taken over

Tokens = tuple[int, int]  # first and last, last included


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """One text with its rows. queries: the tokens chosen in it.

    asks, answers: whether the queries and the keys of the selected head are tokens of it.
    """

    texts: CellTexts
    rows: tuple[TextRow, ...]
    queries: Tokens | None
    asks: bool
    answers: bool


@dataclass(frozen=True, slots=True, eq=False)
class StripOptions:
    """What to show: the selected head and tokens, the heads opened before, what is switched off.

    tokens: the query last chosen in each text by level, for rows of another text's head.
    """

    selection: Selection
    queries: Tokens | None
    opened: Mapping[int, HeadId]
    tokens: Mapping[int, int | None]
    display: Display
    off: HeadSet


@dataclass(frozen=True, slots=True)
class RowRequest:
    """A row to read: a level, the head shown there, its query, and whether it shows its keys."""

    level: int
    head: HeadId | None
    queries: Tokens | None
    keys: bool = True


def read_passages(capture: Capture, options: StripOptions) -> tuple[Passage, ...]:
    """Read one row of weights for each row of the strip."""
    spec, chosen = capture.spec, options.selection
    requests = list(_requests(capture, options))
    texts: dict[Side, CellTexts] = {}
    rows = []
    for number, request in enumerate(requests):
        progress(number, len(requests), "Reading the text's weights")
        side = spec.levels[request.level].sequence
        if side not in texts:
            texts[side] = CellTexts.of_tokens(capture.prompt_of(request.level))
        rows.append(_read_row(capture, request, options, texts[side]))
    most, display = max((row.most for row in rows), default=0.0), options.display
    for number, row in enumerate(rows):
        reach = most if display.shared or row.weights is None else row.most
        limits = palettes.limits_of(*(display.limits or (-reach, reach)), row.signed)
        rows[number] = replace(row, limits=limits)
    layer = spec.layers[chosen.layer]
    asking, answering = (spec.levels[at].sequence for at in (layer.level, layer.key_level))
    passages = []
    for side, written in texts.items():
        own = [n for n, row in enumerate(requests) if spec.levels[row.level].sequence == side]
        first = requests[own[0]]
        queries = first.queries
        if side == asking:
            queries = options.queries
        elif side == answering and first.keys:
            queries = None
        main, *merged = (rows[n] for n in own)
        if queries is not None and queries[0] != queries[1]:
            main = replace(main, chosen=(queries[0], queries[1] + 1))
        merged = [replace(row, merged=True, height=OTHERS) for row in merged]
        passages.append(
            Passage(written, (main, *merged), queries, side == asking, side == answering)
        )
    return tuple(passages)


def _requests(capture: Capture, options: StripOptions) -> Iterator[RowRequest]:
    """Of one text a row for each level; of two texts, and of slots, a row for each of both."""
    spec, chosen = capture.spec, options.selection
    layer = spec.layers[chosen.layer]
    if len({level.sequence for level in spec.levels}) == 1:
        for level in spec.levels:
            head = options.opened.get(level.index)
            if head is not None and capture.maps[head.layer] is not None:
                yield RowRequest(level.index, head, options.queries)
        return
    for level in spec.levels:
        opened = options.opened.get(level.index)
        if level.index == layer.key_level:
            yield RowRequest(level.index, chosen.head_id, options.queries)
        elif level.index == layer.level and layer.role == "cross" and opened is not None:
            yield RowRequest(level.index, opened, options.queries)
        elif level.index == layer.level:  # its keys are slots
            yield RowRequest(level.index, None, options.queries, keys=False)
        elif level.sequence == "source":
            yield RowRequest(level.index, _cross_head(capture, chosen), options.queries)
        else:
            token = options.tokens.get(level.index)
            queries = None if token is None else (token, token)
            yield RowRequest(level.index, opened, queries, keys=False)


def _cross_head(capture: Capture, chosen: Selection) -> HeadId | None:
    """The head by which the selected decoder layer's block attends to the other text."""
    after = capture.spec.layers[chosen.layer + 1 :]
    crossing = next((layer for layer in after if layer.role == "cross" and layer.heads), None)
    if crossing is None:
        return None
    head = min(crossing.heads, key=lambda head: (abs(head - chosen.head), head))
    return HeadId(crossing.index, head)


def _read_row(
    capture: Capture, request: RowRequest, options: StripOptions, texts: CellTexts
) -> TextRow:
    spec, head, chosen = capture.spec, request.head, options.selection
    name = "" if len(spec.levels) == 1 else sentences.level(spec, request.level)
    attention = None if head is None else capture.maps[head.layer]
    if head is None or attention is None:
        spans = capture.spans[request.level]
        at = None if request.queries is None else _units(spans, request.queries[1])
        return TextRow(name, texts, spans, chosen=at)
    layer = spec.layers[head.layer]
    real = capture.key_spans(head.layer)
    null = capture.null(layer.key_level)  # which is there before any token
    count = 1 + int(np.flatnonzero(real[:, 1] > 0).max(initial=0 if null else -1))  # less padding
    spans = real[:count]
    row = TextRow(
        name, texts, spans, head, signed=grid.signed(capture, head), off=head in options.off
    )
    if request.queries is None:
        return row
    first, last = (
        min(capture.row(head.layer, query), attention.shape[1] - 1) for query in request.queries
    )
    first = max(first, last + 1 - MOST_QUERIES)
    rule, rows = grid.rule_of(capture, head), np.array([[first, last + 1]])
    seen, levels, key = grid.seen(rule, rows, unit_spans(count))[0], spec.levels, None
    if head == chosen.head_id and chosen.key is not None:
        key = capture.column(head.layer, chosen.key)
    own = levels[layer.level].sequence == levels[request.level].sequence
    weights = attention.read(head.head, rows=(first, last + 1)).mean(axis=0)[:count]
    at = _units(spans, last) if own and last < count else None
    key_at = _units(spans, key) if key is not None and key < count else None
    return replace(row, weights=weights, seen=seen, chosen=at, key=key_at)


def _units(spans: Integers, cell: int) -> Tokens:
    """The tokens of a cell, half-open; (-1, -1) for the null group."""
    start, stop = (int(end) for end in spans[cell])
    return (-1, -1) if stop < 0 else (start, max(start + 1, stop))


# --- view -----------------------------------------------------------------------------------------

NOTE = "attention of the selected {unit}"
NOTES = {
    "levels": "attention of the selected {unit} at every resolution",
    "texts": "attention of the selected {unit} in both texts",
    "copy": "the target is a copy of the source; change it with Edit text…",
}
CHANGE = {"text": "Edit text…", "image": "Choose image…", "audio": "Choose sound…"}
STEPS = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (0, 1)}
KEYS = (("← / →", "token"), ("J / K", "layer"), ("H / L", "head"))


@dataclass(frozen=True, slots=True, eq=False)
class TextStripData:
    """What a request brings."""

    capture: Capture
    passages: tuple[Passage, ...]
    display: Display

    @property
    def rows(self) -> tuple[TextRow, ...]:
        """Every row."""
        return tuple(row for passage in self.passages for row in passage.rows)

    @property
    def unit(self) -> str:
        """What the queries are called."""
        asking = [passage.texts.prompt for passage in self.passages if passage.asks]
        return (asking[0] if asking else self.capture.main).unit


class TextStrip(View):
    """One row per level, and each of two texts apart, the source above.

    A click chooses the query, Alt+click the key, dragging the mean of several. In the text that
    only the keys come from a click chooses the key; in one that the selected head does not read,
    the head shown there and its query.
    """

    title, topic = "Text", "text"
    needs = ("capture", "selection", "hover", "opened", "display", "off", "text")
    watches = ("work",)
    empty = Empty(
        "No text yet", "Enter a text to see the attention of each token.",
        (("edit_text", "Edit text…"),),
    )  # fmt: skip

    rows_changed = Signal(int)  # how many rows there are now

    def __init__(self) -> None:
        super().__init__()
        self._queries: Tokens | None = None
        self._data: TextStripData | None = None
        self._note = tr(NOTE, unit=tr("token"))
        self.head = PaneHead(tr("Text"), self._note)
        self.verdict = chip(about=tr("Prediction of the model for this text"))
        self.head.add_beside_title(self.verdict)
        self.edit = Button(tr("Edit text…"), "edit")
        self.edit.clicked.connect(lambda: self.asked.emit("edit_text"))
        self.capture_button = Button(tr("Run model"), "capture")
        self.capture_button.clicked.connect(
            lambda: self.asked.emit("stop" if self.session.at_work else "capture")
        )
        self.capture_button.setMinimumWidth(self.capture_button.sizeHint().width())  # for Stop too
        self.head.add(self.edit, self.capture_button)
        self.strips = tuple(TextRows(tr("Text, one row for each resolution")) for _ in range(2))
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
        for number, (keys, unit) in enumerate(KEYS):
            row.addSpacing(8 if number else 0)
            row.addWidget(label(keys, factor=0.85, weight=500, kind="key"))
            self._units.append(label(tr(unit), factor=0.92, kind="secondary"))
            row.addWidget(self._units[-1])
        column = vbox(self.content, self.head)
        for strip in self.strips:
            column.addWidget(strip, 1)
        self.strips[1].hide()
        column.addWidget(self._foot)
        self.start_at(self.strip)

    def request(self, session: Session) -> Callable[[], TextStripData] | None:
        """Read the rows of the chosen tokens in the head open at each level."""
        capture = session.capture
        if capture is None or not len(capture.main):
            return None
        looked_at = session.looked_at
        queries = None
        if looked_at.query is not None:
            several = self._queries is not None and self._queries[1] == looked_at.query
            queries = self._queries if several else (looked_at.query, looked_at.query)
        selected = session.selection
        options = StripOptions(
            replace(looked_at, layer=selected.layer, head=selected.head),
            queries, session.opened,
            {level.index: session.last_token(level.index) for level in capture.spec.levels},
            session.display, session.off | capture.off,
        )  # fmt: skip
        return lambda: TextStripData(capture, read_passages(capture, options), options.display)

    def draw(self, result: TextStripData) -> None:
        session, capture = self.session, result.capture
        old, self._data = self._data, result
        unit, spec = result.unit, capture.spec
        at = capture.place_in_corpus
        numbered = "Text {number:,} of {total:,}"
        title = tr(numbered, number=at[0], total=at[1]) if at else sentences.read(spec)
        self.head.title.setText(title)
        self.edit.setText(tr(CHANGE[spec.modality]))
        self._note = tr(_note(capture), unit=tr(unit))
        self._show_note()
        verdict = sentences.of_text(capture).sentence()
        self.verdict.setText(verdict)
        self.verdict.setVisible(bool(verdict))
        self._units[0].setText(tr(unit))
        self.rows_changed.emit(len(result.rows))
        for number, strip in enumerate(self.strips):
            strip.setVisible(number < len(result.passages))
        for number, (strip, passage) in enumerate(zip(self.strips, result.passages, strict=False)):
            prompt, queries = passage.texts.prompt, passage.queries
            is_known = old is not None and number < len(old.passages)
            before = old.passages[number].texts.prompt if is_known else None
            grown = is_known and len(prompt) > len(before) and prompt.continues(before)
            strip.selected = session.selection.head_id
            strip.underlines = _underlines(capture, passage, session.written)
            strip.show_rows(
                passage.rows, passage.texts.widths, result.display,
                query=None if queries is None else queries[1],
                stay=grown or prompt is before, reveal=session.hover is None and not grown,
            )  # fmt: skip
            strip.setAccessibleDescription(_description(passage))
        self.legend.say("    ".join(self._legend(result)))

    def noticed(self, name: str) -> None:
        """Forget a mean when one query is chosen elsewhere; say what the model does."""
        session = self.session
        if name == "selection" and self._queries is not None:
            if session.selection.query != self._queries[1]:
                self._queries = None
        elif name == "capture" and not self.grew:
            self._queries = None
        elif name == "work":
            self.capture_button.setText(tr("Stop") if session.at_work else tr("Run model"))
            self.capture_button.wear("stop" if session.at_work else "capture")
            self._show_note()

    def figure(self, session: Session) -> Spec | None:
        if session.capture is None:
            return None
        heads = followed(session)
        return Spec("levels", session.selection, session.display, heads=heads)

    def as_text(self) -> str:
        return self.session.capture.main.text if self.session.capture is not None else ""

    def show_legend(self, is_shown: bool) -> None:
        """Show or hide the legend, for which a low strip has no room."""
        self._foot.setVisible(is_shown)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """In the text Shift and an arrow take one more query to those whose mean is shown."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            number, by = self.strips.index(watched), STEPS.get(Qt.Key(event.key()))
            passage = self._data.passages[number]
            shifted = event.modifiers() == Qt.KeyboardModifier.ShiftModifier
            if shifted and by is not None and passage.asks and passage.queries:
                first, last = passage.queries
                most = len(passage.texts.prompt) - 1
                self._choose(number, (max(0, first + by[0]), min(most, last + by[1])))
                return True
        return super().eventFilter(watched, event)

    def _legend(self, result: TextStripData) -> Iterator[str]:
        session, capture = self.session, result.capture
        if session.stale:
            yield tr("Previous text: it was edited since. Run the model to see the new one.")
            return
        queries = next((passage.queries for passage in result.passages if passage.asks), None)
        if queries is None:
            yield tr("Click a {unit} to see its attention.", unit=tr(result.unit))
            return
        if queries[0] != queries[1]:
            many = sentences.counted(queries[1] - queries[0] + 1, result.unit)
            yield tr("Mean of {many}.", many=many)
        signs = {row.signed for row in result.rows if row.weights is not None}
        if True in signs:
            yield tr("Red: positive, blue: negative.")
        if False in signs:
            yield tr("Brighter: more attention.")
        kinds = capture.prompt.token_type_ids
        if kinds is not None and (kinds == 1).any():
            yield tr("Underlined: the second text.")
        if session.written is not None:
            yield tr("Dotted: generated by the model.")
        if capture.spec.two_texts:
            is_cross = capture.spec.layers[session.selection.layer].role == "cross"
            below = tr("Click below to choose the query, above to choose the key.")
            yield below if is_cross else tr("Click in a text to show its head.")
        elif len(result.passages) > 1:
            yield tr("The keys are slots, each a mix of the whole text.")
        elif len(result.rows) > 1:
            yield tr("One head per resolution (dashed in the hourglass).")

    def _show_note(self) -> None:
        """What the model is doing meanwhile, else what is shown."""
        going = next((job for job in self.session.work if job.keeps and job.note), None)
        note = self._note
        if going and self.session.at_work:
            note = f"{tr(going.title)}: {tr(going.note)}"
        self.head.note.say(note[:1].lower() + note[1:])

    def _point(self, number: int, token: int | None) -> None:
        chosen = self.session.selection
        is_key = token is not None and chosen.query is not None
        is_key = is_key and self._data.passages[number].answers
        self.session.put(hover=replace(chosen, key=token) if is_key else None)

    def _choose(self, number: int, tokens: Tokens) -> None:
        passage = self._data.passages[number]
        if not passage.asks and passage.answers:
            self._key(number, tokens[1])
            return
        chosen = self.session.selection
        if not passage.asks:
            head = next((row.head for row in passage.rows if row.head is not None), None)
            if head is None:
                return
            chosen = self.session.at(head)
        self._queries = tokens if tokens[0] != tokens[1] and passage.asks else None
        changed = chosen.query != tokens[1] or not passage.asks
        self.session.put(hover=None, selection=replace(chosen, query=tokens[1]))
        if not changed:
            self.refresh()

    def _key(self, number: int, token: int) -> None:
        if self._data.passages[number].answers:
            self.session.put(selection=replace(self.session.selection, key=token))


def _underlines(
    capture: Capture, passage: Passage, written: int | None
) -> list[tuple[int, int, Qt.PenStyle]]:
    """What is underlined: the second text of a pair, and dotted what the model wrote."""
    prompt, lines = passage.texts.prompt, []
    kinds = prompt.token_type_ids
    if kinds is not None and (kinds == 1).any():
        second = np.flatnonzero(kinds == 1)
        lines.append((int(second[0]), int(second[-1]) + 1, Qt.PenStyle.SolidLine))
    if written is not None and prompt is capture.main:
        lines.append((written, len(prompt), Qt.PenStyle.DotLine))
    return lines


def _description(passage: Passage) -> str:
    """What is chosen in a text, for screen readers: “s”, in hourglass, position 60."""
    if passage.queries is None or not passage.asks:
        return ""
    first, last = passage.queries
    prompt = passage.texts.prompt
    place = sentences.place(prompt, passage.texts.words, first, last + 1)
    return f"{sentences.quoted(sentences.glyph(prompt, first, last + 1))}, {place}"


def _note(capture: Capture) -> str:
    """What the rows show: at which resolutions, in which texts."""
    spec, target = capture.spec, capture.target
    if spec.two_texts:
        copied = target is not None and target.text and capture.prompt.text.startswith(target.text)
        return NOTES["copy" if copied else "texts"]
    alone = len({level.sequence for level in spec.levels}) == 1
    return NOTES["levels"] if len(spec.levels) > 1 and alone else NOTE
