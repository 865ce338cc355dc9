"""Dialogs: forms, errors, texts to capture, preferences."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import PySide6
from msgspec import Meta
from PySide6.QtCore import QEvent, QMimeData, QObject, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QDoubleSpinBox,
    QFileDialog,
    QFrame,
    QGraphicsDropShadowEffect,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

import hgviz
from hgviz import settings, tasks
from hgviz.activations import ACTIVATIONS, SIX_ACTIVATIONS
from hgviz.analysis.importance import METHODS
from hgviz.core import HgvizError, ModelSpec
from hgviz.errors import LabelError
from hgviz.figures import FORMATS, WIDTHS
from hgviz.files import (
    IMAGE_SUFFIXES,
    SOUND_SUFFIXES,
    VALUES_SUFFIX,
    resource,
)
from hgviz.gui import theme
from hgviz.gui.actions import reads_text
from hgviz.gui.language import tr
from hgviz.gui.sentences import counted, explained_all, shown, title_and_reason
from hgviz.gui.widgets import (
    RETURN_KEYS,
    Button,
    Check,
    Picker,
    Segments,
    Words,
    hbox,
    label,
    tip,
    vbox,
)
from hgviz.palettes import PALETTES, SCALES
from hgviz.session.saved import SUFFIX
from hgviz.settings import Settings

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.tasks import Estimate

# --- overlay --------------------------------------------------------------------------------------


MARGIN = 24  # px of scrim that always shows around a card


class Overlay(QWidget):
    """A card over the window. A subclass fills `card`; `default` is what Return presses."""

    closed = Signal()
    wide = 560  # px
    top_part = 0.5  # where the free height goes: 0.5 centres, less moves up

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self.default: QPushButton | None = None
        self.card = QFrame(self)
        self.card.setProperty("kind", "float")
        self.body = QVBoxLayout(self.card)
        self.body.setContentsMargins(24, 20, 24, 16)
        self.body.setSpacing(8)
        shadow = QGraphicsDropShadowEffect(self.card)
        shadow.setBlurRadius(40)
        shadow.setOffset(0, 8)
        shadow.setColor(theme.current().scrim)
        self.card.setGraphicsEffect(shadow)
        self._before = QApplication.focusWidget()
        self.hide()

    def open(self) -> None:
        """Show it over the whole window and take the keyboard."""
        self.parentWidget().installEventFilter(self)
        self.setGeometry(self.parentWidget().rect())
        self.show()
        self.raise_()
        self.place()
        self._app.focusChanged.connect(self._keep_keyboard)
        if not self.isAncestorOf(QApplication.focusWidget() or self):
            self._take_keyboard()

    def offer(self, default: QPushButton) -> None:
        """End the card with the button that does it, and Cancel."""
        self.default = default
        cancel = Button(tr("Cancel"))
        cancel.clicked.connect(self.finish)
        self.body.addSpacing(12)
        self.body.addLayout(hbox(None, 1, default, cancel, spacing=-1))

    def finish(self) -> None:
        """Close, and give the keyboard back to where it was."""
        if self.isVisible():
            self.leave()
            self.closed.emit()
            self.deleteLater()

    def leave(self) -> None:
        """Hide, to be opened again, and give the keyboard back to where it was."""
        self.parentWidget().removeEventFilter(self)
        self._app.focusChanged.disconnect(self._keep_keyboard)
        self.hide()
        before = self._before  # which may be gone by now, with the dialog that it was part of
        if before is not None and isValid(before) and before.isVisible():
            before.setFocus(Qt.FocusReason.PopupFocusReason)

    def place(self) -> None:
        """Put the card where it belongs, never larger than the window."""
        wide = min(self.wide, self.width() - 2 * MARGIN)
        self.card.setFixedWidth(wide)
        self.card.layout().activate()
        need = self.card.layout().totalHeightForWidth(wide)
        need = max(need, self.card.layout().totalMinimumSize().height())
        if need <= 0:
            need = self.card.sizeHint().height()
        high = min(need, self.height() - 2 * MARGIN)
        top = max(MARGIN, round((self.height() - high) * self.top_part))
        self.card.setGeometry((self.width() - wide) // 2, top, wide, high)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the window's size, and have the keys that nobody in the window has."""
        if watched is not self.parentWidget():
            return False
        if event.type() == QEvent.Type.Resize:
            self.setGeometry(self.parentWidget().rect())
            self.place()
        elif event.type() in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress):
            QApplication.sendEvent(self, event)
            return True
        return False

    @property
    def _app(self) -> QApplication:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        return app

    def _keep_keyboard(self, _: QWidget | None, now: QWidget | None) -> None:
        """Take the keyboard back from what lies beneath: the window gives it there once it is
        active again after a file dialog."""
        above = now
        while above is not None and not isinstance(above, Overlay):
            above = above.parentWidget()
        window = self.window()
        if now is not None and above is None and now is not window and now.window() is window:
            self._take_keyboard()

    def _take_keyboard(self) -> None:
        first = self.default or next(iter(self._stops()), None)
        if first is not None:
            first.setFocus(Qt.FocusReason.PopupFocusReason)

    def event(self, event: QEvent) -> bool:
        """Keep the window's shortcuts away while it is open, and its own keys once it is not."""
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        if event.type() == QEvent.Type.KeyPress and self.isHidden():
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape closes, Return presses the default button."""
        if event.key() == Qt.Key.Key_Escape:
            self.finish()
        elif event.key() in RETURN_KEYS:
            here = QApplication.focusWidget()
            button = here if isinstance(here, QAbstractButton) else self.default
            if button is not None and button.isEnabled():
                button.click()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click beside the card closes it."""
        if not self.card.geometry().contains(event.position().toPoint()):
            self.finish()

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Tab goes round inside the card."""
        stops = self._stops()
        if stops:
            here = QApplication.focusWidget()
            at = stops.index(here) if here in stops else -1
            to = stops[(at + (1 if forward else -1)) % len(stops)]
            to.setFocus(Qt.FocusReason.TabFocusReason)
            for area in self.card.findChildren(QScrollArea):
                if area.isAncestorOf(to):
                    area.ensureWidgetVisible(to)
        return True

    def paintEvent(self, event: QPaintEvent) -> None:
        """The scrim."""
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), theme.current().scrim)

    def _stops(self) -> list[QWidget]:
        return [
            one
            for one in self.card.findChildren(QWidget)
            if one.focusPolicy() & Qt.FocusPolicy.TabFocus and one.isVisible() and one.isEnabled()
        ]


def ctrl_return(event: QKeyEvent) -> bool:
    """Whether Ctrl+Return was pressed: Ctrl by itself has its own modifier, too, and is not."""
    held = event.modifiers() & Qt.KeyboardModifier.ControlModifier
    return event.key() in RETURN_KEYS and bool(held)


# --- dialogs --------------------------------------------------------------------------------------


class ErrorDialog(Overlay):
    """What is wrong and what to do; details folded, and the button that does it."""

    asked = Signal(str)

    def __init__(
        self, over: QWidget, error: HgvizError, action: tuple[str, str] | None = None
    ) -> None:
        super().__init__(over)
        self.error = error
        self._action = action
        self.wide = 580
        row = QHBoxLayout()
        row.setSpacing(12)
        sign = QLabel()
        sign.setPixmap(theme.pixmap("warning", 18, theme.current().bad))
        row.addWidget(sign, 0, Qt.AlignmentFlag.AlignTop)
        self._lines = QVBoxLayout()
        self._lines.setSpacing(8)
        what, *rest = map(tr, error.lines)
        title, reason = title_and_reason(what)
        self._lines.addWidget(_wrapped(title, 1.15, 600))
        for words in filter(None, (reason, *rest)):
            self._lines.addWidget(_wrapped(words))
        row.addLayout(self._lines, 1)
        self.body.addLayout(row)
        if error.details:
            self._add_details()
        self.body.addSpacing(12)
        buttons = QHBoxLayout()
        copy = Button(tr("Copy details"), kind="link")
        copy.clicked.connect(self._copy)
        buttons.addSpacing(30)
        buttons.addWidget(copy)
        buttons.addStretch(1)
        close = Button(tr("Close"))
        close.clicked.connect(self.finish)
        self.default = close
        if action is not None:
            self.default = Button(action[1], kind="filled")
            self.default.clicked.connect(self._act)
            buttons.addWidget(self.default)
        buttons.addWidget(close)
        self.body.addLayout(buttons)

    def open(self) -> None:
        """Show it, once the one that is shown already was closed."""
        for one in self.parentWidget().findChildren(ErrorDialog):
            if one is not self and one.isVisible():
                one.closed.connect(self.open)
                return
        super().open()

    def _add_details(self) -> None:
        self._fold = Button(tr("Details"), "chevron-right", kind="link")
        self._fold.clicked.connect(self._unfold)
        self._details = QPlainTextEdit(self.error.details)
        self._details.setReadOnly(True)
        self._details.setFont(theme.mono(0.92))
        self._details.setAccessibleName(tr("Details"))
        self._details.setTabChangesFocus(True)
        self._details.setFixedHeight(130)
        self._details.hide()
        self._lines.addWidget(self._fold, 0, Qt.AlignmentFlag.AlignLeft)
        self._lines.addWidget(self._details)

    def _unfold(self) -> None:
        open_ = self._details.isHidden()
        self._details.setVisible(open_)
        self._fold.wear("chevron" if open_ else "chevron-right")
        self.place()

    def _copy(self) -> None:
        error = self.error
        lines = (*error.lines, "", error.details) if error.details else error.lines
        QGuiApplication.clipboard().setText("\n".join(lines))

    def _act(self) -> None:
        self.finish()
        self.asked.emit(self._action[0])


class About(Overlay):
    """The program, its version and what it runs on."""

    wide = 460

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        sign = QLabel()
        sign.setPixmap(theme.pixmap("hgviz", 64))
        name = label(f"hgviz {hgviz.__version__}", factor=1.55, weight=600)
        what = _wrapped(tr("Looks into transformer attention, at every resolution."))
        words = vbox(None, name, what, spacing=4)
        self.body.addLayout(
            hbox(None, (sign, 0, Qt.AlignmentFlag.AlignTop), (words, 1), spacing=16)
        )
        self.body.addSpacing(8)
        versions = f"Python {platform.python_version()}, PySide6 {PySide6.__version__}"
        for line in (
            tr("MIT licence. Qt is used under the LGPL, version 3."),
            tr("The sample Hourglass was trained on WikiText-2, which is CC BY-SA."),
            versions,
        ):
            self.body.addWidget(_wrapped(line, 0.92, kind="secondary"))
        licences = Button(tr("Licences"), kind="link")
        licences.clicked.connect(self._licences)
        self.body.addSpacing(8)
        _close_row(self, licences)

    def _licences(self) -> None:
        self.finish()
        Licences(self.parentWidget()).open()


class Licences(Overlay):
    """Under which licences hgviz and what it uses are given; in a bundle, what is in it."""

    wide = 860

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        folder = resource("licenses")
        texts = [folder / "README.md", folder / "bundled.md"]
        view = QTextBrowser()
        view.setOpenExternalLinks(True)
        view.setAccessibleName(tr("Licences"))
        view.setMarkdown("\n\n".join(one.read_text("utf-8") for one in texts if one.exists()))
        view.setMinimumHeight(420)
        self.body.addWidget(view, 1)
        where = _wrapped(tr("The texts are in {folder}", folder=folder), 0.92, kind="secondary")
        where.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.body.addWidget(where)
        _close_row(self)


def _close_row(dialog: Overlay, *others: QWidget) -> None:
    dialog.default = Button(tr("Close"))
    dialog.default.clicked.connect(dialog.finish)
    dialog.body.addLayout(hbox(None, *others, 1, dialog.default, spacing=-1))


def _wrapped(words: str, factor: float = 1.0, weight: int = 400, kind: str = "") -> QLabel:
    out = label(words, factor=factor, weight=weight, kind=kind, wrap=True)
    out.setMinimumWidth(QFontMetrics(out.font()).averageCharWidth() * 20)
    return out


# --- text -----------------------------------------------------------------------------------------


MOST_SHOWN = 100_000  # characters
COUNTED = 20_000  # characters: longer texts are counted when they are captured
LARGEST = 8  # scores that topk keeps
HIGH, LOW = 240, 96  # px of a text alone, of each of two


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """What a model reads. text: it reads texts at all; second: what the other is called, "" for
    none; needed: whether there must be one."""

    text: bool = True
    second: str = ""
    needed: bool = False

    @classmethod
    def of(cls, model: Model | None) -> ModelInputs:
        """What an open model reads; of one that is not, nothing but a text is known."""
        if model is None:
            return cls()
        if model.takes_states or not reads_text(model):
            return cls(text=False)
        if model.spec.needs_target:
            return cls(second="Target", needed=True)
        return cls(second="Second text (optional)" if model.reads_pairs else "")


class TextField(QPlainTextEdit):
    """A field for a text of any length. Of a long one it shows the beginning, and cannot be typed
    in: laying out 9 MB takes Qt seconds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._held: str | None = None
        self.put(text)

    def put(self, text: str) -> None:
        """Have it hold a text."""
        self._held = text if len(text) > MOST_SHOWN else None
        self.setReadOnly(self.is_cut)
        self.setPlainText(text[:MOST_SHOWN] + ("…" if self.is_cut else ""))

    def text(self) -> str:
        """All of the text, shown or not."""
        return self.toPlainText() if self._held is None else self._held

    @property
    def is_cut(self) -> bool:
        """Whether there is more than it shows."""
        return self._held is not None

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Paste, or take what was dropped."""
        more = source.text()
        if len(more) + self.document().characterCount() <= MOST_SHOWN:
            super().insertFromMimeData(source)
            return
        cursor, now = self.textCursor(), self.toPlainText()
        units = now.encode("utf-16-le")  # as Qt counts
        first, last = 2 * cursor.selectionStart(), 2 * cursor.selectionEnd()
        before, after = (part.decode("utf-16-le") for part in (units[:first], units[last:]))
        self.put(before + more + after)


class TextDialog(Overlay):
    """The text to capture, or both, with how much of it the model can read."""

    chosen = Signal(str, str)
    file_wanted = Signal()
    wide = 760

    def __init__(
        self,
        over: QWidget,
        text: str,
        spec: ModelSpec | None,
        second: str = "",
        model: Model | None = None,
    ) -> None:
        super().__init__(over)
        self._model, self._reads = model, ModelInputs.of(model)
        self._most = spec.max_positions if spec is not None else None
        self._bytes = spec is not None and spec.vocabulary == 256
        two = bool(self._reads.second)
        self.body.addWidget(label(tr("Text"), factor=1.15, weight=600))
        said = "Type or paste what the model shall read."
        if self._reads.needed:
            said = "The source is read by the encoder, the target by the decoder."
        self.body.addWidget(label(tr(said), kind="secondary", factor=0.92))
        if self._reads.needed:
            self.body.addWidget(label(tr("Source"), weight=600, factor=0.92))
        self.edit = self._field(text, tr("Text"), LOW if two else HIGH)
        other = tr(self._reads.second)
        self.second = self._field("", other or tr("Second text"), LOW, other)
        self.second.put(second if two else "")
        self.second.setVisible(two)
        self.count = label("", kind="secondary", factor=0.92)
        ids = Button(tr("Ids from a file…"), "open", kind="link")
        ids.setToolTip(tr("A JSON file with input_ids, as hgviz capture --ids takes it"))
        ids.clicked.connect(self._ask_file)
        cancel = Button(tr("Cancel"))
        cancel.clicked.connect(self.finish)
        self.default = Button(tr("Capture"), "capture", kind="filled")
        self.default.clicked.connect(self._accept)
        self.default.setToolTip("Ctrl+Return")
        row = QHBoxLayout()
        self.clear = Button(tr("Clear"), kind="link")
        self.clear.setToolTip(tr("Empty the field, so that it can be typed in"))
        self.clear.clicked.connect(self._clear)
        row.addWidget(self.count, 1)
        row.addWidget(self.clear)
        row.addWidget(ids)
        row.addWidget(self.default)
        row.addWidget(cancel)
        self.body.addSpacing(4)
        self.body.addLayout(row)
        self._wait = QTimer(self, singleShot=True, interval=50)
        self._wait.timeout.connect(self._counted)
        for one in (self.edit, self.second):
            one.textChanged.connect(self._wait.start)
        self._counted()

    def open(self) -> None:
        """Start in the text, all of it selected, so that typing replaces it."""
        super().open()
        self.edit.setFocus()
        self.edit.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ctrl+Return captures; Return alone is a new line."""
        writing = self.edit.hasFocus() or self.second.hasFocus()
        if event.key() == Qt.Key.Key_Escape or not writing:
            super().keyPressEvent(event)
        elif ctrl_return(event) and self.default.isEnabled():
            self._accept()

    def _field(self, text: str, name: str, high: int, title: str = "") -> TextField:
        if title:
            self.body.addWidget(label(title, weight=600, factor=0.92))
        edit = TextField(text)
        edit.setFont(theme.mono())
        edit.setTabChangesFocus(True)
        edit.setAccessibleName(name)
        edit.setMinimumHeight(high)
        self.body.addWidget(edit, 1)
        return edit

    def _counted(self) -> None:
        words, fits = self._measured(self.edit.text(), self.second.text())
        cut = self.edit.is_cut or self.second.is_cut
        self.count.setText(tr("{count}; the beginning is shown", count=words) if cut else words)
        self.clear.setVisible(cut)
        self.count.setProperty("kind", "secondary" if fits else "bad")
        self.count.style().polish(self.count)
        self.default.setEnabled(fits)

    def _measured(self, text: str, second: str) -> tuple[str, bool]:
        known = self._model is not None and not self._bytes
        if known and len(text) + len(second) <= COUNTED:
            assert self._model is not None
            return counted_tokens(self._model, text, second)
        return counted_text(text, self._bytes, self._most)

    def _accept(self) -> None:
        self.finish()
        self.chosen.emit(self.edit.text(), self.second.text())

    def _clear(self) -> None:
        for one in (self.edit, self.second):
            if one.is_cut:
                one.put("")
                one.setFocus()

    def _ask_file(self) -> None:
        self.finish()
        self.file_wanted.emit()


class LongDialog(Overlay):
    """Says what a capture will take before it begins. agreed: begin it all the same; refused: it
    was closed otherwise."""

    agreed = Signal()
    refused = Signal()
    wide = 480

    def __init__(self, over: QWidget, estimate: Estimate) -> None:
        super().__init__(over)
        self.body.addWidget(label(tr("This takes long"), factor=1.15, weight=600))
        said = label(
            tr(
                "Capturing {tokens:,} tokens takes about {time} and {size} of memory. It can be "
                "stopped at any time; layers that are done stay.",
                tokens=estimate.tokens, time=estimate.time, size=estimate.size,
            )
        )  # fmt: skip
        said.setWordWrap(True)
        self.body.addWidget(said)
        self.agree = Button(tr("Capture all the same"), "capture")
        self.agree.clicked.connect(self._agree)
        self.closed.connect(self.refused)
        self.default = Button(tr("Cancel"), kind="filled")
        self.default.clicked.connect(self.finish)
        self.body.addSpacing(12)
        self.body.addLayout(hbox(None, self.agree, 1, self.default, spacing=-1))

    def _agree(self) -> None:
        self.closed.disconnect(self.refused)
        self.finish()
        self.agreed.emit()


class ExchangeDialog(Overlay):
    """Which activation the attention of the checkpoint at hand is opened with."""

    chosen = Signal(str)
    wide = 480

    def __init__(self, over: QWidget, name: str, now: str, heads: int = 0) -> None:
        super().__init__(over)
        self.body.addWidget(label(tr("Open with another activation"), factor=1.15, weight=600))
        said = label(
            tr(
                "{name} as it is, but for the function that turns scores into weights. It was not "
                "trained with the other one.",
                name=name,
            ),
            kind="secondary",
        )
        said.setWordWrap(True)
        self.body.addWidget(said)
        self.names = Picker()
        self.names.setAccessibleName(tr("Activation"))
        self.names.addItem(tr("Its own"), "")
        for row in ACTIVATIONS.values():
            if row.name == "topk":
                words = tr("softmax of the {count} largest", count=LARGEST)
                self.names.addItem(words, f"topk:{LARGEST}")
            else:
                self.names.addItem(tr(row.label), row.name)
        if heads and heads % len(SIX_ACTIVATIONS) == 0:
            words = tr("Six, over the heads: {names}", names=", ".join(SIX_ACTIVATIONS))
            self.names.addItem(words, ",".join(SIX_ACTIVATIONS))
        self.names.setCurrentIndex(max(0, self.names.findData(now)))
        self.body.addWidget(self.names)
        open_ = Button(tr("Open"), "open", kind="filled")
        open_.clicked.connect(self._accept)
        self.offer(open_)

    def _accept(self) -> None:
        self.finish()
        self.chosen.emit(self.names.currentData())


def counted_text(text: str, in_bytes: bool, most: int | None) -> tuple[str, bool]:
    """How long a text is, in words, and whether it can be captured.

    Only bytes can be counted without the model's tokenizer.
    """
    if not text:
        return tr("Empty: there is nothing to capture"), False
    if not in_bytes:
        return counted(len(text), "character"), True
    return _against(len(text.encode(errors="replace")), most, "byte")


def counted_tokens(model: Model, text: str, second: str) -> tuple[str, bool]:
    """The same in the model's own tokens; an empty text is one where special tokens frame it."""
    try:
        if model.spec.needs_target:
            if not second:
                return tr("The target is empty"), False
            counts = [len(model.encode(text)), len(model.encode_target(second))]
        else:
            counts = [len(model.tokenizer.encode(text, second or None))]
    except HgvizError as error:
        return tr(error.what), False
    if not min(counts):
        return tr("Empty: there is nothing to capture"), False
    told = [_against(one, model.spec.max_positions, "token") for one in counts]
    fits = all(one for _, one in told)
    if len(told) == 1:
        return told[0][0], fits
    return tr("source {source}, target {target}", source=told[0][0], target=told[1][0]), fits


def _against(length: int, most: int | None, unit: str) -> tuple[str, bool]:
    if most is None:
        return counted(length, unit), True
    over, said = length - most, {"length": length, "most": counted(most, unit)}
    if over > 0:
        return tr("{length:,} of {most}: {over:,} too many", over=over, **said), False
    return tr("{length:,} of {most}", **said), True


# --- let the model write --------------------------------------------------------------------------


MOST = 100_000  # tokens at a time, where the model sets no limit
END = 48  # characters of the text that are shown
WAYS = (("likeliest", "The likeliest", ""), ("chance", "By chance", ""))


@dataclass(frozen=True, slots=True)
class WritingOptions:
    """How a model goes on with a text. seed None: always the likeliest token."""

    count: int = 64
    seed: int | None = None
    temperature: float = 1.0


class WriteDialog(Overlay):
    """How many tokens; the likeliest ones, or drawn by chance with a seed and a temperature.

    room: how many more tokens the model can read; None where nobody knows.
    """

    chosen = Signal(object)  # a Writing
    wide = 480

    def __init__(
        self, over: QWidget, text: str, unit: str, room: int | None, last: WritingOptions
    ) -> None:
        super().__init__(over)
        most = MOST if room is None else room
        self.body.addWidget(label(tr("Let the model write"), factor=1.15, weight=600))
        said = "It goes on where the text ends, {unit} by {unit}. Stop keeps what is written."
        self.body.addWidget(_note_label(tr(said, unit=tr(unit))))
        end = Words(kind="secondary")
        end.setFont(theme.mono(0.92))
        end.say(shown(text if len(text) <= END else "…" + text[-END:], END + 1) + "▏")
        self.body.addWidget(end)
        self.count = QSpinBox()
        self.count.setRange(min(1, most), max(1, most))
        self.count.setValue(min(last.count, most))
        self.count.setGroupSeparatorShown(True)
        self.way = Segments([(name, tr(words), icon) for name, words, icon in WAYS], wide=110)
        self.way.choose(WAYS[last.seed is not None][0])
        self.way.chosen.connect(self._fit)
        self.temperature = QDoubleSpinBox()
        self.temperature.setRange(0.05, 10.0)
        self.temperature.setSingleStep(0.1)
        self.temperature.setValue(last.temperature)
        self.temperature.setToolTip(
            tr("Below 1 the likely tokens come more often, above 1 the others")
        )
        self.seed = QSpinBox()
        self.seed.setRange(0, 2**31 - 1)
        self.seed.setValue(last.seed or 0)
        self.seed.setToolTip(tr("The same seed writes the same text"))
        for spin in (self.count, self.temperature, self.seed):
            spin.lineEdit().setTextMargins(6, 0, 6, 0)
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(8)
        grid.setColumnStretch(1, 1)
        self._chance: list[QWidget] = []
        for row, (words, box) in enumerate(
            (
                (tr("How many {units}", units=tr(f"{unit}s")), self.count),
                (tr("Which"), self.way),
                (tr("Temperature"), self.temperature),
                (tr("Seed"), self.seed),
            )
        ):
            name = label(words)
            name.setBuddy(box)
            box.setAccessibleName(words)
            grid.addWidget(name, row, 0)
            grid.addWidget(box, row, 1)
            if row > 1:
                self._chance += [name, box]
        self.body.addSpacing(4)
        self.body.addLayout(grid)
        if room is not None:
            left = tr("The model reads {tokens} more at most.", tokens=counted(room, unit))
            full = tr("The text is as long as the model can read: there is no room to write.")
            self.body.addWidget(_note_label(left if room else full, "secondary" if room else "bad"))
        write = Button(tr("Write"), "edit", kind="filled")
        write.setEnabled(most > 0)
        write.clicked.connect(self._accept)
        self.offer(write)
        self._fit()

    def open(self) -> None:
        """Start with how many."""
        super().open()
        self.count.setFocus()
        self.count.selectAll()

    def _fit(self) -> None:
        """Chance alone has a temperature and a seed."""
        for one in self._chance:
            one.setEnabled(self.way.choice == "chance")

    def _accept(self) -> None:
        by_chance = self.way.choice == "chance"
        seed = self.seed.value() if by_chance else None
        self.finish()
        self.chosen.emit(WritingOptions(self.count.value(), seed, self.temperature.value()))


def _note_label(words: str, kind: str = "secondary") -> QLabel:
    out = label(words, kind=kind, factor=0.92, wrap=True)
    return out


# --- measure --------------------------------------------------------------------------------------


# arrays of a study, what they are called, what they cost, whether they are measured at first
CHOICES = (
    (("gradient",), "Predicted loss change, from gradients", "about 2 scorings", True),
    (("loss_change", "change"), "Loss change, each head off by itself: exact",
     "half a scoring a head", True),
    (("token_gradient",), "Sensitivity per token", "about 2 scorings", False),
    (("alone",), "Loss change with one head alone in its layer", "half a scoring a head", False),
    (("shapley",), "Shapley values, 20 random orders", "20 scorings a head", False),
)  # fmt: skip
GRADIENTS = {"gradient", "token_gradient"}


def measurements() -> tuple[tuple[tuple[str, ...], str, str, bool], ...]:
    """CHOICES, and the scores that measure an array of their own."""
    own = (method for method in METHODS.values() if method.measure is not None)
    return *CHOICES, *(
        ((method.needs,), method.label, "about one scoring", False) for method in own
    )


NO_GRADIENTS = (
    "Gradient scores are undefined for this model. It gives hidden states, and how far they are "
    "from those with all heads on has no gradient where all heads are on."
)
HOW = (
    "The quickest comes first, and colours the wall while the rest is on its way. Stop keeps what "
    "is measured."
)


class MeasureDialog(Overlay):
    """Which scores to measure; what is there is kept. chosen: arrays, whether to draw the curve.

    states: whether the model gives hidden states alone, which have no gradients.
    """

    chosen = Signal(object, bool)
    wide = 620

    def __init__(self, over: QWidget, there: frozenset[str], states: bool = False) -> None:
        super().__init__(over)
        self.body.addWidget(label(tr("Measure what every head is worth"), factor=1.15, weight=600))
        for words in (HOW, NO_GRADIENTS) if states else (HOW,):
            said = label(tr(words), kind="secondary", wrap=True)
            self.body.addWidget(said)
        grid = QGridLayout()
        grid.setColumnStretch(0, 1)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(6)
        self.boxes: list[Check] = []
        choices = measurements()
        for row, (names, words, cost, first) in enumerate(choices):
            box = Check(tr(words))
            box.setToolTip(tip(explained_all(names)))
            known = set(names) <= there
            undefined = states and not GRADIENTS.isdisjoint(names)
            box.setChecked((first or known) and not undefined)
            box.setEnabled(not undefined)
            grid.addWidget(box, row, 0)
            told = tr("undefined here" if undefined else "measured" if known else cost)
            box.setAccessibleDescription(f"{told}\n{explained_all(names)}")
            grid.addWidget(label(told, factor=0.92, kind="secondary"), row, 1)
            box.toggled.connect(self._fit)
            self.boxes.append(box)
        self.curve = Check(tr("Then compute the pruning curve"))
        self.curve.setChecked(True)
        grid.addWidget(self.curve, len(choices), 0)
        grid.addWidget(label(tr("21 orders"), factor=0.92, kind="secondary"), len(choices), 1)
        self.body.addSpacing(8)
        self.body.addLayout(grid)
        self.body.addSpacing(8)
        self.go = Button(tr("Measure"), kind="filled")
        self.go.clicked.connect(self._accept)
        self.offer(self.go)

    def _fit(self) -> None:
        self.go.setEnabled(any(one.isChecked() for one in self.boxes))

    def _accept(self) -> None:
        needs = frozenset(
            name
            for box, (names, *_) in zip(self.boxes, measurements(), strict=True)
            if box.isChecked()
            for name in names
        )
        curve = self.curve.isChecked()
        self.finish()
        self.chosen.emit(needs, curve)


# --- labels ---------------------------------------------------------------------------------------


class LabelsDialog(Overlay):
    """One list of classes for each label of a file. chosen: the class of each label."""

    chosen = Signal(object)
    wide = 460

    def __init__(self, over: QWidget, file: str, error: LabelError) -> None:
        super().__init__(over)
        self.body.addWidget(label(tr("Assign labels to classes"), factor=1.15, weight=600))
        said = tr(
            "The model does not know the labels of {file}. Choose a class for each.", file=file
        )
        self.body.addWidget(label(said, kind="secondary", factor=0.92))
        grid = QGridLayout()
        grid.setColumnStretch(1, 1)
        grid.setHorizontalSpacing(16)
        self.lists: dict[str, Picker] = {}
        for row, name in enumerate(error.labels):
            found = Picker()
            found.addItems(error.classes)
            found.setCurrentIndex(found.findText(error.likely.get(name, "")))
            found.setAccessibleName(name)
            found.currentIndexChanged.connect(self._fit)
            grid.addWidget(label(name), row, 0)
            grid.addWidget(found, row, 1)
            self.lists[name] = found
        self.body.addLayout(grid)
        self.go = Button(tr("Use these classes"), kind="filled")
        self.go.clicked.connect(self._accept)
        self._fit()
        self.offer(self.go)

    def _fit(self) -> None:
        self.go.setEnabled(all(one.currentIndex() >= 0 for one in self.lists.values()))

    def _accept(self) -> None:
        labels = {name: one.currentText() for name, one in self.lists.items()}
        self.finish()
        self.chosen.emit(labels)


# --- preferences ----------------------------------------------------------------------------------


# where the values of a field stand that its type does not say, by its extra "from": value and words
SOURCES: dict[str, Callable[[], dict[str, str]]] = {
    "palettes": lambda: {one.name: one.label for one in PALETTES.values() if not one.signed},
    "devices": lambda: {
        "auto": "Auto", "cpu": "CPU", "cuda": "GPU (CUDA)", "mps": "GPU (Apple)",
    },
    "widths": lambda: {name: f"{tr(words)}: {long}" for name, (long, words) in WIDTHS.items()},
    "formats": lambda: dict(FORMATS),
}  # fmt: skip
WORDS = SCALES | {  # of values in types
    "auto": "Auto", "light": "Light", "dark": "Dark",
    "right": "At the right", "left": "At the left", "hidden": "Hidden",
}  # fmt: skip


EDGE, FRAME = 24, 170  # px: at the sides of the rows, and above and below them in a window


class Preferences(Overlay):
    """A row for each setting: its title, its control, what it does. changed: a field, its value."""

    changed = Signal(str, object)
    wide = 560

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self.controls: dict[str, QWidget] = {}
        self.body.addWidget(label(tr("Preferences"), factor=1.15, weight=600))
        inside = QWidget()
        self._grid = grid = QGridLayout(inside)
        grid.setContentsMargins(0, 8, 8, 0)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(1, 1)
        kept = settings.load()
        for name, kind, meta in offered():
            self._add(name, kind, meta, getattr(kept, name))
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setWidget(inside)
        for one in (inside, self._scroll.viewport()):
            one.setAutoFillBackground(False)
        self.body.addWidget(self._scroll, 1)
        self.body.addSpacing(8)
        close, back = Button(tr("Close")), Button(tr("Back to the defaults"), kind="link")
        close.clicked.connect(self.finish)
        back.clicked.connect(self._reset)
        self.default = close
        self.body.addLayout(hbox(None, back, 1, close, spacing=-1))

    def place(self) -> None:
        """All settings where there is room, else as many, to be scrolled."""
        wide = min(self.wide, self.width() - 2 * MARGIN) - 2 * EDGE
        need = self._grid.totalHeightForWidth(wide) + 2
        self._scroll.setMinimumHeight(max(0, min(self.height() - FRAME, need)))
        super().place()

    def _add(self, name: str, kind: Any, meta: Meta, value: Any) -> None:
        row = self._grid.rowCount()
        control = _control(kind, meta, value, partial(self.changed.emit, name))
        title, description = tr(meta.title or name), tr(meta.description or "")
        control.setAccessibleName(title)
        control.setAccessibleDescription(description)
        self.controls[name] = control
        if isinstance(control, Check):
            control.setText(title)
            self._grid.addWidget(control, row, 0, 1, 2)
        else:
            shown = label(title)
            shown.setBuddy(control)
            self._grid.addWidget(shown, row, 0)
            self._grid.addWidget(control, row, 1)
        if description:
            said = label(description, factor=0.92, kind="secondary", wrap=True)
            indent = 22 if isinstance(control, Check) else 0
            said.setContentsMargins(indent, 0, 0, 4)
            column = 0 if isinstance(control, Check) else 1
            self._grid.addWidget(said, row + 1, column, 1, 2 - column)

    def _reset(self) -> None:
        for name, *_ in offered():
            _show(self.controls[name], getattr(Settings(), name))


def offered() -> list[tuple[str, Any, Meta]]:
    """The settings that people choose: name, type and what is said of it, in order."""
    found = []
    for name, hint in get_type_hints(Settings, include_extras=True).items():
        kind, *more = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
        meta = next((one for one in more if isinstance(one, Meta) and one.title), None)
        if meta is not None:
            found.append((name, kind, meta))
    return found


def _control(kind: Any, meta: Meta, value: Any, chosen: Callable[[Any], None]) -> QWidget:
    """What a value of a type is changed with: a box to tick, a list, or a line to write in."""
    if kind is bool:
        box = Check()
        box.setChecked(value)
        box.toggled.connect(chosen)
        return box
    values = {str(one): WORDS.get(one, one) for one in get_args(kind)}
    if get_origin(kind) is not Literal:
        source = (meta.extra or {}).get("from", "")
        values = SOURCES[source]() if source in SOURCES else {}
    if not values:
        field = QLineEdit(str(value))
        field.editingFinished.connect(lambda: chosen(field.text()))
        return field
    values.setdefault(str(value), str(value))  # one that was chosen elsewhere, such as 3.25in
    out = Picker()
    for one, words in values.items():
        out.addItem(tr(words), one)
    out.setCurrentIndex(out.findData(value))
    out.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    out.currentIndexChanged.connect(lambda at: chosen(out.itemData(at)))
    return out


def _show(control: QWidget, value: Any) -> None:
    """Show another value, which says that it changed."""
    if isinstance(control, Check):
        control.setChecked(value)
    elif isinstance(control, Picker):
        control.setCurrentIndex(control.findData(value))
    elif isinstance(control, QLineEdit):
        control.setText(value)
        control.editingFinished.emit()


# --- files ----------------------------------------------------------------------------------------


WEIGHTS = tuple(f"*{one}" for one in tasks.checkpoint_suffixes())
ENDINGS = ("*.h5", "*.hdf5", f"*{SUFFIX}", "*.toml", "config.json", *WEIGHTS)
FILES = f"Checkpoints, captures, studies and sessions ({' '.join(ENDINGS)});;All files (*)"
CAPTURES = "Captures (*.h5)"
READABLE = {
    "image": (*IMAGE_SUFFIXES, VALUES_SUFFIX),
    "audio": (*SOUND_SUFFIXES, VALUES_SUFFIX),
}  # files of what models read
READ = {  # by what a model reads: what is asked for where that is no text, and which files
    "text": ("Choose a file of ids", "Token ids (*.json);;All files (*)"),
    "image": ("Choose an image", "Images ({endings});;All files (*)"),
    "audio": ("Choose a sound", "Sounds ({endings});;All files (*)"),
}
TEXTS = "Texts (*.txt *.tsv *.csv *.jsonl);;All files (*)"


def ask_for(
    parent: QWidget,
    title: str,
    mode: QFileDialog.FileMode,
    chosen: Callable[[str], None],
    kinds: str = "",
) -> None:
    """Ask for a checkpoint or a capture, a file or a folder; kinds: what files are offered, ""
    for all that can be opened."""
    dialog = QFileDialog(parent, title, settings.load().folder, kinds or tr(FILES))
    dialog.setFileMode(mode)
    _open(dialog, chosen)


def ask_where(
    parent: QWidget, title: str, kinds: str, name: str, chosen: Callable[[str], None]
) -> None:
    """Ask where to write, from a suggested name whose ending is added where none is given."""
    dialog = QFileDialog(parent, title, settings.load().folder, kinds)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(name.rpartition(".")[2])
    dialog.selectFile("".join(one if one.isalnum() or one in "-_." else "-" for one in name))
    _open(dialog, chosen)


def _open(dialog: QFileDialog, chosen: Callable[[str], None]) -> None:
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setLabelText(QFileDialog.DialogLabel.LookIn, tr("Look in:"))  # Qt lacks these two
    dialog.setLabelText(QFileDialog.DialogLabel.FileType, tr("Files of type:"))
    dialog.fileSelected.connect(chosen)
    # not every window manager gives the keyboard back to where it was
    dialog.finished.connect(dialog.parentWidget().activateWindow)
    dialog.open()
