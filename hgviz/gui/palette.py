"""The palette: commands, heads, metrics, settings and files, found by the words of the field."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from itertools import groupby
from typing import Any, Literal, NamedTuple

from PySide6 import QtWidgets
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter

from hgviz.analysis.metrics import applicable
from hgviz.files import resource
from hgviz.gui import theme
from hgviz.gui.actions import ACTIONS
from hgviz.gui.dialogs import offered
from hgviz.gui.language import tr
from hgviz.gui.sentences import ends, measured, metric_name
from hgviz.gui.sessions import place_of
from hgviz.gui.sources import name_of
from hgviz.gui.tables import Index, paint_runs
from hgviz.gui.widgets import RETURN_KEYS, hbox, label, line, make, vbox
from hgviz.gui.window import FIND
from hgviz.session import Session

# Metrics that say how much a head does one thing: the head that does most of it is its example
BEHAVIOURS = (
    "previous", "first", "same", "next", "last", "separators", "words", "same token", "induction",
    "diagonal", "positional", "rare", "convolution",
)  # fmt: skip

# --- keys -----------------------------------------------------------------------------------------

SYMBOLS = {
    "Left": "←", "Right": "→", "Up": "↑", "Down": "↓", "Return": "Enter", ".": "full stop",
    ",": "comma", "PgDown": "PgDn",
}  # fmt: skip

# What keys do while a pane, a list or a dialog has the keyboard: where, what, keys
LOCAL = (
    ("Everywhere", "Next control", "Tab"),
    ("Everywhere", "Press a button, tick a box", "Space"),
    ("Everywhere", "Close a dialog", "Esc"),
    ("Everywhere", "Press the default button of a dialog", "Return"),
    ("Maps", "Previous query, next query", "Up", "Down"),
    ("Maps", "Previous key, next key", "Left", "Right"),
    ("Maps", "Zoom in, zoom out", "+", "-"),
    ("Maps", "Clear the selection", "Esc"),
    ("Text strip", "Extend the queries", "Shift+Left", "Shift+Right"),
    ("Links", "Previous query, next query", "Up", "Down"),
    ("Links", "Extend the queries", "Shift+Up", "Shift+Down"),
    ("Links", "Previous key, next key", "Left", "Right"),
    ("Links", "Strongest key out of view, above or below", "Ctrl+Up", "Ctrl+Down"),
    ("Links", "Scroll", "PgUp", "PgDown", "Home", "End"),
    ("Links", "Clear the selection", "Esc"),
    ("Follow", "Previous token, next token", "Left", "Right"),
    ("Lists of keys", "Previous key, next key", "Up", "Down"),
    ("Lists of keys", "Previous page, next page", "PgUp", "PgDown"),
    ("Lists of keys", "Choose the key", "Return"),
    ("Attribution", "Next head", "Left", "Right", "Up", "Down"),
    ("Images", "Next patch", "Left", "Right", "Up", "Down"),
    ("Head grid", "Next head", "Left", "Right", "Up", "Down"),
    ("Head grid", "First head, last head of a layer", "Home", "End"),
    ("Head grid", "Switch head off or on", "Space"),
    ("Head grid", "Switch layer off or on", "Shift+Space"),
    ("Pruning curve", "One head fewer, one more", "Left", "Right"),
    ("Pruning curve", "Five heads fewer, five more", "PgDown", "PgUp"),
    ("Pruning curve", "No heads off, k* heads off", "Home", "End"),
    ("Masks", "Apply the mask", "Return"),
    ("Masks", "Delete the mask", "Del"),
    ("Tables", "Previous row, next row", "Up", "Down"),
    ("Tables", "Open the row", "Return"),
    ("Tables", "Sort by another column", "Left", "Right"),
    ("Tables", "Reverse the order", "Space"),
    ("Text fields", "Run or compare", "Ctrl+Return"),
    ("Text fields", "New line", "Return"),
)  # fmt: skip


class Entry(NamedTuple):
    """A line of the palette, and what it leads to."""

    words: str
    note: str
    icon: str = "info"
    kind: Literal["", "action", "file", "head", "metric", "setting"] = ""  # "": it only informs
    value: Any = None
    keys: str = ""
    terms: str = ""  # words that find it and are not shown
    off: str = ""  # why it cannot be chosen now


@cache
def terms() -> dict[str, dict[str, str]]:
    """Words that find an action, a metric or a setting by its name, besides its own."""
    return tomllib.loads(resource("terms.toml").read_text("utf-8"))


def entries(session: Session) -> list[Entry]:
    """Everything that can be found, in the order in which equally good matches are listed."""
    files = (
        Entry(tr("Open {name}", name=name_of(path)), place_of(path), "open", "file", path)
        for path in session.recent
    )
    settings = (
        Entry(tr(meta.title or name), tr("Preferences"), "more", "setting", name,
              terms=terms()["setting"].get(name, ""))
        for name, _, meta in offered()
    )  # fmt: skip
    keys = (Entry(tr(words), tr(pane), keys=key) for pane, words, key, *_ in LOCAL)
    actions = (
        Entry(tr(one.words), tr(one.menu), one.icon, "action", one.name, one.keys[0],
              terms()["action"].get(one.name, ""), tr(one.why_off(session)))
        for one in ACTIONS if one.name != "find"
    )  # fmt: skip
    return [*actions, *files, *settings, *_heads(session), *keys]


def _heads(session: Session) -> Iterator[Entry]:
    """The best head at each behaviour, each metric as a colour of the heads, and all heads."""
    spec, facts, unit = session.spec, session.facts, session.unit
    for name in applicable(fact.metrics for fact in facts.values()):
        title, found_by = metric_name(name, unit).lower(), terms()["metric"].get(name, "")
        title += f" ({tr('attention sink')})" if name == "first" else ""
        if name in BEHAVIOURS:
            best = max(facts, key=lambda head: facts[head].metrics.get(name, -math.inf))
            value, words = facts[best].metrics[name], "Best at {behaviour}: {head}, {value}"
            words = tr(words, behaviour=title, head=best, value=measured(name, value))
            yield Entry(words, tr("head"), "eye", "head", best, terms=found_by)
        words = tr("Colour heads by {metric}", metric=title)
        yield Entry(words, tr("metric"), "palette", "metric", name, terms=found_by)
    for head in spec.heads if spec else ():
        fact, level = facts.get(head), ends(spec, head.layer)
        note = tr("at {level}", level=level) if level else tr("in layer {layer}", layer=head.layer)
        if fact is not None and fact.role:
            note = tr(fact.role)
        found_by = "" if fact is None else fact.name  # a role at every resolution: previous token
        words = tr("Go to head {head}", head=head)
        yield Entry(words, note, "eye", "head", head, terms=found_by)


# --- search ---------------------------------------------------------------------------------------

IN_WORD, IN_TERMS = 20, 60  # costs of a match; at a word's start: 0
OF_PANE = 150  # more for keys of a pane, which only inform
LATELY = 19  # less for what was found lately: it goes before an equally good match
NEAREST = 5  # entries that are offered where none matches

Match = tuple[float, tuple[int, ...]]  # the cost, 0 for the best; which letters match


def match(query: str, words: str, terms: str = "") -> Match | None:
    """How badly an entry matches a query, and which letters of its words do; None for no match.

    Every part of the query has to be there, at a word's start or within a word.
    """
    cost, letters = 0.0, set[int]()
    for part in query.lower().split():
        places = [one.start() for one in re.finditer(re.escape(part), words.lower())]
        starts = [at for at in places if at == 0 or not words[at - 1].isalnum()]
        if places:
            at = (starts or places)[0]
            cost += min(at, 15) + (0 if starts else IN_WORD)
            letters.update(range(at, at + len(part)))
        elif part in terms.lower():
            cost += IN_TERMS
        else:
            return None
    return cost, tuple(sorted(letters))


ROW, ROWS, WIDE = 40, 8, 620  # px; rows seen at once; px
TOP = 0.16  # of the height of the window, above it
STEPS = {
    Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: ROWS, Qt.Key.Key_PageUp: -ROWS,
}  # fmt: skip
LISTENS = ("capture", "spec", "facts", "work", "checkpoint", "recent")


class CommandPalette(QtWidgets.QDialog):
    """Type, choose with the arrows, press Return. used: names of actions, the latest first."""

    chosen = Signal(object)  # an Entry

    def __init__(
        self, window: QtWidgets.QWidget, session: Session, used: tuple[str, ...] = ()
    ) -> None:
        super().__init__(window, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(tr(FIND))
        self.setProperty("kind", "float")
        self.setFixedWidth(min(WIDE, window.width() - 48))
        self.field = make(
            QtWidgets.QLineEdit, frame=False, font=theme.font(1.15), placeholderText=tr(FIND),
            accessibleName=tr(FIND), textChanged=self._search,
        )  # fmt: skip
        self.field.setStyleSheet("border: 0; background: transparent;")
        self.field.installEventFilter(self)
        self.count = label(factor=0.92, kind="secondary")
        sign = QtWidgets.QLabel()
        sign.setPixmap(theme.pixmap("search", 16, theme.current().secondary))
        top = hbox(None, sign, (self.field, 1), self.count, margins=(18, 12, 18, 12), spacing=-1)
        self.nothing = label(kind="secondary", margins=(20, 8, 20, 2))
        pixels = QtWidgets.QListWidget.ScrollMode.ScrollPerPixel
        self.list = make(
            QtWidgets.QListWidget, verticalScrollMode=pixels, mouseTracking=True,
            focusPolicy=Qt.FocusPolicy.NoFocus,  # the field's arrows move in it
            accessibleName=tr("Matches"), itemClicked=self._choose,
        )  # fmt: skip
        self.list.setItemDelegate(EntryDelegate(self))
        self.list.setFixedHeight(ROW * ROWS)
        vbox(self, top, line(), self.nothing, self.list, margins=(1, 1, 1, 8))
        self.entries: list[Entry] = []
        self.found: list[tuple[Entry, tuple[int, ...]]] = []  # in view, and the letters that match
        self._session, self._used = session, used
        session.changed.connect(self._changed)
        self.finished.connect(lambda: session.changed.disconnect(self._changed))
        self._changed(LISTENS[0])

    def open(self) -> None:
        window = self.parentWidget()
        left, top = (window.width() - self.width()) // 2, round(window.height() * TOP)
        self.move(window.mapToGlobal(QPoint(left, top)))
        self.show()
        self.field.setFocus()

    def _changed(self, name: str) -> None:
        if name in LISTENS:
            self.entries = entries(self._session)
            self._search(self.field.text())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The field's arrows move in the list; Return takes what is chosen there."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            rows, step = len(self.found), STEPS.get(Qt.Key(event.key()))
            if step is not None and rows:
                row = self.list.currentRow() + step
                row = row % rows if abs(step) == 1 else max(0, min(rows - 1, row))
                self.list.setCurrentRow(row)
                return True
            if event.key() in RETURN_KEYS:
                self._choose()
                return True
        return super().eventFilter(watched, event)

    def _search(self, query: str) -> None:
        """List what matches a query, best first, or where nothing does what is spelt most alike."""
        matches = self._matches(query)
        is_empty = not matches
        if is_empty:
            known = {word for one in self.entries for word in f"{one.words} {one.terms}".split()}
            nearest = (get_close_matches(part, known, 1, cutoff=0)[0] for part in query.split())
            matches = self._matches(next(nearest))[:NEAREST]
        self.found = [(self.entries[place], letters) for _, place, letters in matches]
        self.list.clear()
        for entry, _ in self.found:  # the words are for screen readers
            words = (entry.words, entry.off or entry.note, entry.keys)
            self.list.addItem(", ".join(filter(None, words)))
        self.list.setCurrentRow(0)
        self.list.scrollToTop()
        count, total = len(self.found), len(self.entries)
        self.count.setText(tr("{count} of {total}", count=count, total=total))
        self.count.setHidden(is_empty)
        self.nothing.setText(tr("Nothing matches “{query}”. Similar:", query=query.strip()))
        self.nothing.setVisible(is_empty)

    def _matches(self, query: str) -> list[tuple[float, int, tuple[int, ...]]]:
        """The cost of each match, 0 for the best, its place among the entries, and its letters."""
        found = []
        for place, entry in enumerate(self.entries):
            matched = match(query, entry.words, f"{entry.note} {entry.terms}")
            if matched is not None:
                cost, letters = matched
                if entry.kind == "action" and entry.value in self._used:
                    # before anything is typed, in the order in which they were used
                    cost -= LATELY if query else len(self._used) - self._used.index(entry.value)
                found.append((cost + OF_PANE * (not entry.kind), place, letters))
        return sorted(found)

    def _choose(self) -> None:
        entry, _ = self.found[self.list.currentRow()]
        if entry.kind and not entry.off:  # the reason why not is in its line
            self.accept()
            self.chosen.emit(entry)


class EntryDelegate(QtWidgets.QStyledItemDelegate):
    """A line: icon, words with the letters that match in bold, note; keys, or why it is off."""

    def sizeHint(self, option: QtWidgets.QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(100, ROW)

    def paint(
        self, painter: QPainter, option: QtWidgets.QStyleOptionViewItem, index: Index
    ) -> None:
        palette = self.parent()
        assert isinstance(palette, CommandPalette)
        entry, letters = palette.found[index.row()]
        now, box = theme.current(), option.rect.adjusted(8, 0, -8, 0)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        chosen = bool(option.state & QtWidgets.QStyle.StateFlag.State_Selected)
        if chosen or option.state & QtWidgets.QStyle.StateFlag.State_MouseOver:
            theme.draw_box(painter, box, 6, now.tint if chosen else now.hover)
        icon = theme.icon(entry.icon, now.press if chosen and not entry.off else now.secondary)
        icon.paint(painter, QRect(box.x() + 12, box.center().y() - 7, 16, 16))
        room = QRectF(box.adjusted(42, 0, -12, 0))
        if entry.off:
            half = room.adjusted(room.width() / 2, 0, 0, 0)
            font = theme.font(0.92)
            used = theme.write(painter, half, entry.off, font, now.warning, theme.TO_RIGHT)
        else:
            used = self._draw_keys(painter, box, entry.keys)
        ink = now.secondary if entry.off else now.text
        matching = groupby(enumerate(entry.words), lambda row: row[0] in letters)
        runs = [
            ("".join(letter for _, letter in run), theme.font(weight=600 if is_bold else 400), ink)
            for is_bold, run in matching
        ]
        note = f"   {entry.note}", theme.font(0.92), now.secondary
        paint_runs(painter, room.adjusted(0, 0, -12 - used, 0), *runs, note)
        painter.restore()

    def _draw_keys(self, painter: QPainter, box: QRect, keys: str) -> int:
        """Draw a cap for each key, from the right; return the px that they take."""
        now, right, font = theme.current(), box.right() - 12, theme.font(0.85)
        x = right
        for key in reversed(re.findall(r"[^+]+|\+$", keys)):  # the last key may be + itself
            words = tr(SYMBOLS[key]) if key in SYMBOLS else key
            wide = max(20, QFontMetrics(font).horizontalAdvance(words) + 12)
            cap = QRect(x - wide, box.center().y() - 9, wide, 20)
            theme.draw_box(painter, cap, 4, now.pane, now.edge)
            theme.write(painter, cap, words, font, now.secondary, theme.CENTRE)
            x -= wide + 4
        return right - x
