"""The dock that lists where the chosen letter or token looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from hgviz.analysis.heads import top_keys
from hgviz.core import Capture, Integers, Prompt, Selection, Step, Task
from hgviz.gui import ink, sentences, theme
from hgviz.gui.language import tr
from hgviz.gui.view import View
from hgviz.gui.views import signs, words
from hgviz.gui.views.choosing import CAPTURE, NOTHING
from hgviz.gui.widgets import Words, label

if TYPE_CHECKING:
    from hgviz.session import Session

TOP = 5  # keys that are listed
NONE_CHOSEN = ("Nothing chosen", "Choose a query in the map or in the text.")
CHOOSE = (("next_query", "Choose a query"),)
PAD = 16
HIGH = 20  # px: a row
STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
TAKE = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
GLYPH, WORD, VALUE = 28, 108, 44  # px: the columns beside the bar
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, slots=True)
class Key:
    """One key that is looked at: its glyph, the word it is in, which part of it, its weight.

    letter: whether it is a letter, which is shown both alone and in its word.
    """

    token: int | None
    glyph: str
    before: str
    inside: str
    after: str
    weight: float
    letter: bool = True


@dataclass(frozen=True, slots=True)
class Looked:
    """The chosen letter, where it stands, and its strongest keys."""

    glyph: str
    where: str
    keys: tuple[Key, ...]
    signed: bool = False
    side: str = ""


class LooksPanel(View):
    """The five keys that the chosen query looks at most in the chosen head."""

    title = "Where it looks"
    topic = "looks"
    icon = "eye"
    figureless = "It is a list of keys: Links draws them"
    needs = ("selection", "capture", "dark")

    def __init__(self) -> None:
        super().__init__()
        self.letter = label(weight=600, kind="mark")
        self.letter.setFont(theme.mono(1.0, 600))
        self.where = Words(factor=0.92, kind="secondary")
        self.keys = KeyList()
        self.keys.picked.connect(self._pick)
        top = QHBoxLayout()
        top.setSpacing(8)
        top.addWidget(self.letter)
        top.addWidget(self.where, 1)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(PAD, 8, PAD, 8)
        column.setSpacing(2)
        column.addLayout(top)
        column.addWidget(self.keys)
        column.addStretch(1)

    def request(self, session: Session) -> Task[Looked] | None:
        """The strongest keys, read from one row."""
        capture, chosen = session.capture, session.selection
        self.empty, self.empty_actions = NOTHING, CAPTURE
        if capture is None:
            return None
        self.empty, self.empty_actions = NONE_CHOSEN, CHOOSE
        if chosen.query is None:
            return None
        if chosen.query >= len(capture.query_prompt(chosen.layer)):
            return None
        if capture.maps[chosen.layer] is None:
            return None
        return _looked(capture, chosen)

    def draw(self, result: Looked) -> None:
        """List them."""
        self.letter.setText(result.glyph)
        side = tr("in the {text}:", text=result.side) if result.side else ""
        self.where.say(", ".join(filter(None, (result.where, side))))
        self.keys.show_keys(result.keys, result.signed)

    def as_table(self) -> list[list[str]] | None:
        """The keys that are listed, with their weights."""
        heads = [tr("Key"), tr("Key token"), tr("Weight")]
        return [heads] + [
            ["" if one.token is None else str(one.token), one.glyph, repr(one.weight)]
            for one in self.keys.keys
        ] if self.keys.keys else None  # fmt: skip

    def _pick(self, token: int) -> None:
        if self.session is not None:
            self.session.select(key=token)


class KeyList(QWidget):
    """Five rows, painted: glyph, word with the letter bold, bar, weight. A click chooses a key."""

    picked = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.keys: tuple[Key, ...] = ()
        self.signed = False
        self.setFixedHeight(TOP * HIGH)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._under = -1

    def show_keys(self, keys: tuple[Key, ...], signed: bool = False) -> None:
        """Show other keys; the height stays."""
        self.keys, self.signed = keys, signed
        said = (f"{one.glyph} {words.weight(one.weight)}" for one in keys)
        self.setAccessibleName(tr("Looks at {keys}", keys=", ".join(said)))
        self.update()

    def event(self, event: QEvent) -> bool:
        """With the keyboard here, Up and Down walk this list, not the keys of the map."""
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.key() in (*STEPS, *TAKE)
            and not event.modifiers()
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Up and Down go through the rows, Enter or Space chooses the key of one."""
        key = Qt.Key(event.key())
        if key in STEPS and self.keys:
            self._hover(max(0, min(self._under + STEPS[key], len(self.keys) - 1)))
        elif key in TAKE and 0 <= self._under < len(self.keys):
            self._take(self._under)
        else:
            super().keyPressEvent(event)

    def _take(self, row: int) -> None:
        if 0 <= row < len(self.keys) and (token := self.keys[row].token) is not None:
            self.picked.emit(token)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the key under the pointer."""
        self._take(int(event.position().y()) // HIGH)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show which row a click would choose."""
        self._hover(int(event.position().y()) // HIGH)

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is pointed at."""
        self._hover(-1)

    def _hover(self, row: int) -> None:
        if row != self._under:
            self._under = row
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw every row."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            most = max((abs(one.weight) for one in self.keys), default=1.0)
            whole = 1.0 if most <= 1.0 else most
            for row, key in enumerate(self.keys):
                area = QRectF(0, row * HIGH, self.width(), HIGH)
                if row == self._under:
                    painter.fillRect(area.adjusted(-4, 0, 4, 0), theme.current().hover)
                self._row(painter, area, key, abs(key.weight) / whole, first=row == 0)
            if self.hasFocus():
                ink.focus_ring(painter, QRectF(self.rect()).adjusted(-2, 0, 2, 0))

    def _row(self, painter: QPainter, area: QRectF, key: Key, share: float, *, first: bool) -> None:
        now = theme.current()
        mono, x = theme.mono(0.92, 500), 2.0
        if key.letter or not key.inside:
            room = GLYPH + (12 if key.inside or key.before else WORD - 8)
            glyph = QFontMetricsF(mono).elidedText(key.glyph, Qt.TextElideMode.ElideRight, room)
            painter.setFont(mono)
            painter.setPen(now.text)
            painter.drawText(area.adjusted(2, 0, 0, 0), LEFT, glyph)
            x = max(GLYPH, QFontMetricsF(mono).horizontalAdvance(glyph) + 10)
        self._word(painter, area.adjusted(x, 0, 0, 0), key, GLYPH + WORD - x - 4)
        value = QRectF(area.right() - VALUE, area.top(), VALUE, area.height())
        painter.setFont(theme.font(weight=600))
        painter.setPen(now.text)
        said = words.with_sign(key.weight, 2) if self.signed else words.weight(key.weight)
        painter.drawText(value, RIGHT, said)
        left = GLYPH + WORD
        bar = QRectF(left, area.center().y() - 5, max(20.0, value.left() - left - 4), 10)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(now.hover)
        painter.drawRoundedRect(bar, 2, 2)
        painter.setBrush(now.mark if first else now.secondary)
        if self.signed:
            painter.setBrush(ink.sides()[int(key.weight > 0)])
        bar.setWidth(max(2.0, bar.width() * share))
        painter.drawRoundedRect(bar, 2, 2)

    def _word(self, painter: QPainter, area: QRectF, key: Key, room: float) -> None:
        now = theme.current()
        x = area.x()
        end = x + room
        for text, font, colour in (
            (key.before, theme.font(0.92), now.secondary),
            (key.inside, theme.font(0.92, 700), now.text),
            (key.after, theme.font(0.92), now.secondary),
        ):
            metrics = QFontMetricsF(font)
            said = metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(0.0, end - x))
            painter.setFont(font)
            painter.setPen(colour)
            painter.drawText(QRectF(x, area.y(), room, area.height()), LEFT, said)
            x += metrics.horizontalAdvance(said)


def _looked(capture: Capture, chosen: Selection) -> Task[Looked]:
    yield Step(0, 1, "reading one row")
    asking, prompt = capture.query_prompt(chosen.layer), capture.key_prompt(chosen.layer)
    same = asking is prompt
    spans = sentences.word_spans(prompt)
    query = chosen.query or 0
    start, end = capture.query_spans(chosen.layer)[capture.row(chosen.layer, query)]
    one = capture.spec.layers[chosen.layer]
    segments = capture.spec.levels[one.level].stride is None
    null = capture.null(one.level) and start < 0
    if start < 0:
        start, end = query, query + 1
    found = top_keys(capture, chosen, TOP)
    behind = capture.key_spans(chosen.layer)
    keys = tuple(
        _key(prompt, spans, token, tuple(map(int, behind[column])), weight, segments)
        for token, column, weight in found
    )
    own = spans if same else sentences.word_spans(asking)
    where = tr(sentences.NULL) if null else sentences.place(asking, own, int(start), int(end))
    glyph = "∅" if null else sentences.glyph(asking, int(start), int(end))
    side = "" if same else words.level(capture.spec, one.key_level)
    return Looked(glyph, where, keys, signs.signed(capture, chosen.head_id), side)


def _key(
    prompt: Prompt,
    spans: Integers,
    token: int | None,
    behind: tuple[int, ...],
    weight: float,
    segments: bool = False,
) -> Key:
    start, end = behind
    if token is None or start < 0:
        place = tr(sentences.NULL) if segments else tr("before the text")
        return Key(None, "∅", place, "", "", weight)
    around = sentences.word_at(spans, end - 1) or sentences.word_at(spans, start)
    if around is None:
        way, _ = sentences.beside(prompt, spans, end - 1)
        after = sentences.near(prompt, spans, end - 1) if way == "after" else ""
        return Key(token, sentences.glyph(prompt, start, end), after, "", "", weight)
    if prompt.spans[start, 0] < 0:  # a special token is its own word
        return Key(token, sentences.glyph(prompt, start, end), "", "", "", weight)
    letter = prompt.unit == "letter"
    first, last = min(around[0], start), max(around[1], end)
    before, inside, after = (
        sentences.shown(prompt.words(a, b)) for a, b in ((first, start), (start, end), (end, last))
    )
    glyph = sentences.glyph(prompt, start, end)
    return Key(token, glyph, before, inside, after, weight, letter)
