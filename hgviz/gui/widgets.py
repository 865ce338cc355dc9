"""Buttons, switches, pane heads and rows that every page uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from PySide6.QtCore import QEvent, QPointF, QSignalBlocker, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFontMetrics, QHelpEvent, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtGui import Qt as TextQt
from PySide6.QtWidgets import (
    QApplication,
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QSplitter,
    QStyle,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QStylePainter,
    QToolButton,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from hgviz.gui import theme
from hgviz.gui.language import tr

ICON_GAP = 5  # px between an icon and its words
RETURN_KEYS = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
STAYS = 2500  # ms that what somebody is told stays in the status bar at least


Made = TypeVar("Made")


def make(kind: Callable[..., Made], *args: Any, **how: Any) -> Made:
    """An object of a class of Qt. how: its properties, of which PySide's types know only a part,
    and what its signals call, by their names."""
    calls = _take_calls(how)
    return _connect(kind(*args, **how), calls)


def _take_calls(how: dict[str, Any]) -> dict[str, Callable[..., object]]:
    return {name: how.pop(name) for name in list(how) if callable(how[name])}


def _connect(one: Made, calls: dict[str, Callable[..., object]]) -> Made:
    """Connect signals by their names; a constructor of PySide hands every argument to a partial."""
    for name, call in calls.items():
        getattr(one, name).connect(call)
    return one


class Words(QLabel):
    """A line of text that elides with a tooltip where it does not fit, and never asks for room."""

    def __init__(
        self, text: str = "", *, factor: float = 1.0, weight: int = 400, kind: str = ""
    ) -> None:
        super().__init__()
        self.full, self._padding = "", 16 if kind == "chip" else 0
        self.setFont(theme.font(factor, weight))
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.setTextFormat(Qt.TextFormat.PlainText)
        if kind:
            self.setProperty("kind", kind)
        self.say(text)

    def say(self, text: str) -> None:
        """Show a text; the whole of it is the tooltip where it had to be cut."""
        self.full = text
        self._fit()
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        wide = self.fontMetrics().horizontalAdvance(self.full) + 2 + self._padding
        return QSize(wide, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def resizeEvent(self, event: QEvent) -> None:
        self._fit()

    def _fit(self) -> None:
        room, cut = max(0, self.width() - self._padding), Qt.TextElideMode.ElideRight
        shown = self.fontMetrics().elidedText(self.full, cut, room)
        self.setText(shown)
        self.setToolTip(tip(self.full) if shown != self.full else "")


class StatusLine(Words):
    """Words of what is looked at; what somebody is told stays for a while before these go on."""

    went_on = Signal()  # the while is over
    _stays: QTimer | None = None

    def tell(self, text: str) -> None:
        """Show what came of something that was done."""
        if self._stays is None:
            self._stays = QTimer(self, singleShot=True, interval=STAYS)
            self._stays.timeout.connect(self.went_on)
        self._stays.stop()
        self.say(text)
        self._stays.start()

    def say(self, text: str) -> None:
        """Show a text, but not over what somebody was told a moment ago."""
        if self._stays is None or not self._stays.isActive():
            super().say(text)

    def go_on(self) -> None:
        """What was told was long enough there."""
        if self._stays is not None:
            self._stays.stop()


def tip(words: str) -> str:
    """Words as a tooltip that shows them as they are, whatever markup they look like."""
    return TextQt.convertFromPlainText(words) if TextQt.mightBeRichText(words) else words


def label(
    text: str = "",
    *,
    factor: float = 1.0,
    weight: int = 400,
    kind: str = "",
    wrap: bool = False,
    margins: Sequence[int] = (0, 0, 0, 0),
    **how: Any,
) -> QLabel:
    """A label that takes the room its text needs. kind: secondary, chip, key, mark, warning; how:
    as in make."""
    out = QLabel(text, **how)
    out.setContentsMargins(*margins)
    out.setWordWrap(wrap)
    out.setFont(theme.font(factor, weight))
    out.setTextFormat(Qt.TextFormat.PlainText)
    if kind:
        out.setProperty("kind", kind)
    if kind in ("chip", "key"):
        out.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
    return out


def chip(text: str = "", about: str = "") -> QLabel:
    """A few words beside a title, hidden until they are needed; about: their tooltip."""
    out = label(text, factor=0.92, weight=500, kind="chip", toolTip=about)
    out.hide()
    return out


def line(vertical: bool = False) -> QFrame:
    """The one 1 px line between panes."""
    out = QFrame()
    out.setProperty("kind", "line")
    if vertical:
        out.setFixedWidth(1)
    else:
        out.setFixedHeight(1)
    return out


class Themed:
    """What draws its icons again in the colours of another theme, or of what cannot be pressed."""

    def changeEvent(self, event: QEvent) -> None:
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.EnabledChange):
            self._draw()  # type: ignore[attr-defined]
        super().changeEvent(event)  # type: ignore[misc]


class Button(Themed, QPushButton):
    """A push button, 28 px high, with an icon that follows the theme. kind: filled, link, find;
    how: as in make."""

    def __init__(
        self, text: str, icon: str = "", *, kind: str = "", weight: int = 500, **how: Any
    ) -> None:
        calls = _take_calls(how)
        super().__init__(text, **how)
        _connect(self, calls)
        self._icon = icon
        self.setFont(theme.font(weight=weight))
        if kind:
            self.setProperty("kind", kind)
        self._draw()

    def wear(self, icon: str) -> None:
        self._icon = icon
        self._draw()

    def _draw(self) -> None:
        if self._icon:
            now = theme.current()
            on = now.on_press if self.isEnabled() else now.secondary
            colours = {"filled": on, "find": now.secondary}
            colour = colours.get(self.property("kind"), now.text)
            self.setIcon(theme.icon(self._icon, colour, gap=ICON_GAP))
            self.setIconSize(QSize(16 + ICON_GAP, 16))


class IconButton(Themed, QToolButton):
    """A quiet 28 px button that is only an icon; its words are the tooltip. how: as in make."""

    def __init__(self, icon: str, words: str, **how: Any) -> None:
        calls = _take_calls(how)
        super().__init__(**how)
        _connect(self, calls)
        self._icon = icon
        self.setFixedSize(28, 28)
        self.setIconSize(QSize(16, 16))
        self.setToolTip(words)
        self.setAccessibleName(words)
        self._draw()

    def wear(self, icon: str, words: str = "") -> None:
        self._icon = icon
        if words:
            self.setToolTip(words)
            self.setAccessibleName(words)
        self._draw()

    def _draw(self) -> None:
        self.setIcon(theme.icon(self._icon, theme.current().secondary))


class Toggle(QToolButton):
    """A quiet button, 28 px high, that is on or off; about: what it switches, its tooltip."""

    def __init__(self, text: str, about: str, on: bool = False) -> None:
        super().__init__()
        self.setText(text)
        self.setToolTip(about)
        self.setCheckable(True)
        self.setChecked(on)
        self.setFixedHeight(28)


class Segments(Themed, QFrame):
    """A row of which one is chosen, like Inspect | Follow. Choices are (name, words) and maybe an
    icon; about: what is chosen here.
    """

    chosen = Signal(str)

    def __init__(
        self, choices: Sequence[tuple[str, ...]], about: str = "", *, wide: int = 0
    ) -> None:
        super().__init__()
        self.setToolTip(about)
        self.setAccessibleName(about)
        self.setProperty("kind", "segments")
        self.setFixedHeight(28)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        row = hbox(self)
        self._group = QButtonGroup(self)
        self._icons = ["".join(icon) for _, _, *icon in choices]
        self.names = [name for name, *_ in choices]
        bold = QFontMetrics(theme.font(weight=600))  # the face of the one that is chosen
        for number, (icon, (_, words, *_)) in enumerate(zip(self._icons, choices, strict=True)):
            button = make(
                QPushButton, tr(words), checkable=True, iconSize=QSize(16 + ICON_GAP, 16),
                autoDefault=False,  # Return in a dialog is for its default button
            )  # fmt: skip
            button.setProperty("kind", "segment")
            button.setFixedHeight(26)
            room = bold.horizontalAdvance(tr(words)) + 24 + (16 + ICON_GAP if icon else 0)
            button.setFixedWidth(max(wide, room))
            self._group.addButton(button, number)
            row.addWidget(button)
        self._group.idClicked.connect(self._clicked)
        self.choose(self.names[0])

    def choose(self, name: str) -> None:
        """Show a choice as chosen without saying so."""
        self._group.button(self.names.index(name)).setChecked(True)
        self._draw()

    def allow(self, name: str, may: bool, words: str) -> None:
        """Let a choice be chosen or not; words: its tooltip, which says why not."""
        button = self._group.button(self.names.index(name))
        button.setEnabled(may)
        button.setToolTip(words)

    def offer(self, name: str, there: bool) -> None:
        """Have a choice among the others, or not."""
        self._group.button(self.names.index(name)).setVisible(there)

    @property
    def choice(self) -> str:
        """The name of what is chosen."""
        return self.names[self._group.checkedId()]

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            QTimer.singleShot(0, self, self._draw)  # the buttons lose their faces after this

    def _clicked(self, number: int) -> None:
        self._draw()
        self.chosen.emit(self.names[number])

    def _draw(self) -> None:
        now = theme.current()
        self.setFocusProxy(self._group.checkedButton())
        for number, icon in enumerate(self._icons):
            button = self._group.button(number)
            on = button.isChecked()
            button.setFont(theme.font(weight=600 if on else 400))
            if icon:
                button.setIcon(theme.icon(icon, now.press if on else now.secondary, ICON_GAP))


class Picker(QComboBox):
    """A list to choose from, with a chevron of its own: a stylesheet takes Fusion's away. What is
    too long for it is elided, which Qt does not. characters: its width, 0 for that of the words.
    """

    def __init__(self, about: str = "", characters: int = 0) -> None:
        super().__init__()
        self._rows: list[tuple[Any, ...]] = []
        self.setAccessibleName(about)
        self.setToolTip(about)
        if characters:
            self.setSizeAdjustPolicy(self.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            self.setMinimumContentsLength(characters)

    def offer(self, choices: Iterable[tuple[Any, ...]], chosen: Any = None) -> None:
        """Offer values, each with its words and maybe a tooltip, without a signal; choose one, or
        the first where it is not among them."""
        rows = [*choices]
        with QSignalBlocker(self):
            if rows != self._rows:  # or an open list would close
                self._rows = rows
                self.clear()
            for value, words, *about in rows[self.count() :]:
                self.addItem(words, value)
                self.setItemData(self.count() - 1, tip("".join(about)), Qt.ItemDataRole.ToolTipRole)
            self.setCurrentIndex(max(0, self.findData(chosen)))

    def paintEvent(self, event: QPaintEvent) -> None:
        option, kind = QStyleOptionComboBox(), QStyle.ComplexControl.CC_ComboBox
        self.initStyleOption(option)
        part = QStyle.SubControl.SC_ComboBoxEditField
        room = self.style().subControlRect(kind, option, part, self).width() - 4
        option.currentText = self.fontMetrics().elidedText(
            option.currentText, Qt.TextElideMode.ElideRight, room
        )
        mark = theme.icon("chevron", theme.current().secondary)
        painter = QStylePainter(self)
        painter.drawComplexControl(kind, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        mark.paint(painter, self.width() - 22, (self.height() - 14) // 2, 14, 14)
        painter.end()


class Check(QCheckBox):
    """A box to tick. Its tick is drawn here: a stylesheet, which the dark theme needs so that the
    box can be seen, takes Fusion's away.
    """

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.isChecked():
            option = QStyleOptionButton()
            self.initStyleOption(option)
            part = QStyle.SubElement.SE_CheckBoxIndicator
            box = self.style().subElementRect(part, option, self)
            now = theme.current()
            mark = theme.icon("check", now.on_press if self.isEnabled() else now.secondary)
            with QPainter(self) as painter:
                mark.paint(painter, box.adjusted(1, 1, -1, -1))


class PaneHead(QWidget):
    """The 36 px head of a pane: its title, a quiet note, and controls at the right."""

    def __init__(self, title: str, note: str = "") -> None:
        super().__init__()
        self.setFixedHeight(36)
        self.title = label(title, factor=1.08, weight=600)
        self.note = Words(note, factor=0.92, kind="secondary")
        self._row = hbox(self, self.title, (self.note, 1), margins=(16, 0, 16, 0), spacing=8)

    def add(self, *widgets: QWidget) -> None:
        for one in widgets:
            self._row.addWidget(one)

    def add_beside_title(self, *widgets: QWidget) -> None:
        for one in widgets:
            self._row.insertWidget(self._row.indexOf(self.note), one)

    def explain_by(self, asked: Callable[[], None]) -> None:
        """End with the sign that asks what the pane shows, as Shift+F1 does for the keyboard."""
        words = tr("About this pane (Shift+F1)")
        sign = IconButton("info", words, focusPolicy=Qt.FocusPolicy.NoFocus, clicked=asked)
        self._row.addWidget(sign)


class Progress(QProgressBar):
    """A thin bar with round ends: how much is done, blue while it runs, green when it is."""

    def __init__(self, height: int = 6) -> None:
        super().__init__(maximum=1000, textVisible=False)
        self.setFixedHeight(height)

    def show_part(self, part: float, done: bool = False) -> None:
        """part in 0..1."""
        self.setValue(round(1000 * part))
        if done != self.property("done"):
            self.setProperty("done", done)
            self.style().polish(self)


def vbox(
    parent: QWidget | None, *items: Any, margins: Sequence[int] = (0, 0, 0, 0), spacing: int = 0
) -> QVBoxLayout:
    """Items from top to bottom in a widget, or, without a parent, within another layout.

    An item is a widget or a layout, a tuple of one with its stretch and alignment, or a number:
    an empty stretch. spacing: px between items, -1 for that of the style.
    """
    return _fill(QVBoxLayout(), parent, items, margins, spacing)


def hbox(
    parent: QWidget | None, *items: Any, margins: Sequence[int] = (0, 0, 0, 0), spacing: int = 0
) -> QHBoxLayout:
    """Items from left to right, as vbox has them from top to bottom."""
    return _fill(QHBoxLayout(), parent, items, margins, spacing)


def _fill(
    box: Any, parent: QWidget | None, items: Sequence[Any], margins: Sequence[int], spacing: int
) -> Any:
    if parent is not None:
        parent.setLayout(box)
    box.setContentsMargins(*margins)
    box.setSpacing(spacing)
    for item in items:
        if isinstance(item, int):
            box.addStretch(item)
            continue
        part, *room = item if isinstance(item, tuple) else (item,)
        (box.addLayout if isinstance(part, QLayout) else box.addWidget)(part, *room)
    return box


def has_focus(widget: QWidget) -> bool:
    """Whether a widget, or one inside it, has the keyboard."""
    here = QApplication.focusWidget()
    return here is not None and (here is widget or widget.isAncestorOf(here))


def splitter(way: Qt.Orientation, *widgets: QWidget) -> QSplitter:
    """Panes side by side or one below the other, which none of them leaves."""
    out = QSplitter(way, handleWidth=1, childrenCollapsible=False)
    for one in widgets:
        out.addWidget(one)
    return out


NOTCH = 120  # units of the wheel for one turn
ARROWS = {
    Qt.Key.Key_Up: (-1, "query"), Qt.Key.Key_Down: (1, "query"),
    Qt.Key.Key_Left: (-1, "key"), Qt.Key.Key_Right: (1, "key"),
}  # fmt: skip


def arrow_of(event: QKeyEvent) -> tuple[int, Any] | None:
    """A step of the query or the key, where the key pressed is an arrow alone."""
    plain = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
    return None if plain else ARROWS.get(Qt.Key(event.key()))


def shows_tip(event: QEvent, widget: QWidget, words_at: Callable[[QPointF], str]) -> bool:
    """Whether the pointer rests on a widget, which shows what it says of that place then."""
    if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
        QToolTip.showText(event.globalPos(), words_at(QPointF(event.pos())), widget)  # "" hides it
        return True
    return False
