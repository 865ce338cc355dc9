"""Dialogs: forms, errors, questions, texts to capture, preferences, files."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import PySide6
from msgspec import Meta
from PySide6.QtCore import QEvent, QMimeData, QRect, QRectF, QSignalBlocker, Qt, QTimer
from PySide6.QtGui import QFontMetrics, QGuiApplication, QPainterPath, QRegion, QResizeEvent
from PySide6.QtWidgets import (
    QDialog,
    QDoubleSpinBox,
    QFileDialog,
    QFormLayout,
    QFrame,
    QGridLayout,
    QLabel,
    QLayout,
    QLineEdit,
    QPlainTextEdit,
    QSizePolicy,
    QSpinBox,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

import hgviz
from hgviz import settings, tasks
from hgviz.activations import ACTIVATIONS, SIX_ACTIVATIONS
from hgviz.analysis.importance import METHODS, MaskTrial
from hgviz.core import HgvizError, ModelSpec
from hgviz.errors import LabelError
from hgviz.figures import FORMATS, WIDTHS
from hgviz.files import IMAGE_SUFFIXES, SOUND_SUFFIXES, VALUES_SUFFIX, resource
from hgviz.gui import theme
from hgviz.gui.actions import reads_text
from hgviz.gui.language import tr
from hgviz.gui.sentences import counted, explained_all, shown, title_and_reason
from hgviz.gui.widgets import Button, Check, Picker, Segments, Words, hbox, label, tip, vbox
from hgviz.language import duration
from hgviz.palettes import PALETTES, SCALES
from hgviz.session import PatchedTexts
from hgviz.session.document import SUFFIX
from hgviz.settings import Settings

if TYPE_CHECKING:
    from hgviz.models.model import Model

# --- forms ----------------------------------------------------------------------------------------

MARGIN = 24  # px of the window that stay free around a dialog
RADIUS = 10  # px of its corners


class Form(QDialog):
    """A dialog over its window: a title, notes, fields in rows, and buttons.

    It opens once every other dialog of the window is closed. Return presses `default`. Where it is
    accepted, `then` is called with what `answer` returns.
    """

    wide = 560  # px
    failure = ""  # what went wrong when it was accepted before; gone once a field changes

    def __init__(self, window: QWidget, title: str, words: str = "") -> None:
        super().__init__(window, Qt.WindowType.Dialog | Qt.WindowType.FramelessWindowHint)
        self.then: Callable[..., object] | None = None
        self.default: Button | None = None
        self.first: QWidget | None = None  # what has the keyboard at first, else the default
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        # X11 may have no compositor: there the round corners are cut, not transparent
        self._cuts_corners = QGuiApplication.platformName() == "xcb"
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground, not self._cuts_corners)
        self.setProperty("kind", "form" if self._cuts_corners else "clear")
        self.setWindowTitle(title)
        # not every window manager gives the keyboard back to where it was
        self.finished.connect(window.window().activateWindow)
        frame = QFrame()
        frame.setProperty("kind", "float")
        vbox(self, frame).setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        self.title = label(title, factor=1.15, weight=600, wrap=True)
        self.body = vbox(frame, self.title, margins=(24, 20, 24, 16), spacing=8)
        self._rows: QFormLayout | None = None
        self.wrong = note("", "bad")
        self.wrong.setParent(self)
        self.wrong.hide()
        if words:
            self.body.addWidget(note(words))

    def row(self, words: str, field: Any, description: str = "") -> None:
        """Add a field (a widget or a layout) beside its name; across both columns without one."""
        if self._rows is None:
            self._rows = QFormLayout()
            self._rows.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
            self._rows.setLabelAlignment(theme.TO_LEFT)
            self._rows.setHorizontalSpacing(16)
            self._rows.setVerticalSpacing(8)
            self.body.addSpacing(4)
            self.body.addLayout(self._rows)
        if isinstance(field, QWidget):
            field.setAccessibleName(field.accessibleName() or words)
            if self.first is None and field.focusPolicy() & Qt.FocusPolicy.TabFocus:
                self.first = field
        self._rows.addRow(*((words, field) if words else (field,)))
        if description:
            about = note(description)
            about.setAlignment(Qt.AlignmentFlag.AlignTop)
            self._rows.addRow(*(("", about) if words else (about,)))

    def offer(self, default: Button | None, *left: QWidget, close: str = "Cancel") -> None:
        """End the form with the button that accepts it, if there is one, and one that closes it."""
        buttons = [Button(tr(close))]
        buttons[0].clicked.connect(self.reject)
        if default is not None:
            self.body.addWidget(self.wrong)
            self.body.addSpacing(8)
            default.clicked.connect(self.accept)
            buttons.insert(0, default)
        self.default = buttons[0]
        self.default.setDefault(True)
        self.body.addLayout(hbox(None, *left, 1, *buttons, spacing=8))
        self.check()

    def answer(self) -> tuple[Any, ...]:
        """What was entered."""
        return ()

    def problem(self) -> str:
        """Why it cannot be accepted as it is, or an empty string."""
        return ""

    def check(self) -> None:
        """Show what is wrong, and enable the default button where nothing is."""
        problem = self.problem()
        self.wrong.setText(problem or self.failure)
        self.wrong.setVisible(bool(problem or self.failure))
        if self.default is not None:
            self.default.setEnabled(not problem)

    def check_changed(self) -> None:
        """Check it after a change, which may be right this time."""
        self.failure = ""
        self.check()

    def ask(self, then: Callable[..., object]) -> None:
        """Show it, and call `then` with what is answered."""
        self.then = then
        self.open()

    def open(self) -> None:
        """Show it once no other dialog of the window is open."""
        for dialog in self.parentWidget().window().findChildren(QDialog):
            if dialog is not self and dialog.isVisible() and dialog.isModal():
                dialog.finished.connect(self.open, Qt.ConnectionType.SingleShotConnection)
                return
        first = self.first or self.default
        if first is not None:
            first.setFocus(Qt.FocusReason.PopupFocusReason)
        self.place()
        super().open()

    def accept(self) -> None:
        """Close it and hand on what was entered."""
        answer = self.answer()
        super().accept()
        if self.then is not None:
            self.then(*answer)

    def place(self) -> None:
        """Put it in the middle of the window, as high as it needs and no larger than the window."""
        over, layout = self.parentWidget().window().geometry(), self.layout()
        wide = min(self.wide, over.width() - 2 * MARGIN)
        layout.activate()
        high = layout.totalHeightForWidth(wide)
        if not layout.hasHeightForWidth():
            high = layout.totalSizeHint().height()
        box = QRect(0, 0, wide, min(high, over.height() - 2 * MARGIN))
        box.moveCenter(over.center())
        self.setGeometry(box)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._cuts_corners:
            shape = QPainterPath()
            shape.addRoundedRect(QRectF(self.rect()), RADIUS, RADIUS)
            self.setMask(QRegion(shape.toFillPolygon().toPolygon()))

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest and self.isVisible():
            self.place()
        return super().event(event)


def note(words: str, kind: str = "secondary", factor: float = 0.92) -> QLabel:
    """A paragraph of a form."""
    out = label(words, kind=kind, factor=factor, wrap=True)
    out.setMinimumWidth(QFontMetrics(out.font()).averageCharWidth() * 20)
    policy = out.sizePolicy()
    policy.setVerticalPolicy(QSizePolicy.Policy.Fixed)
    out.setSizePolicy(policy)
    return out


# --- messages -------------------------------------------------------------------------------------


class ErrorDialog(Form):
    """What is wrong and what to do, with folded details. act: the words of a button that helps, and
    what it does."""

    wide = 580

    def __init__(
        self,
        window: QWidget,
        error: HgvizError,
        act: tuple[str, Callable[[], object]] | None = None,
    ) -> None:
        what, *rest = map(tr, error.lines)
        title, reason = title_and_reason(what)
        super().__init__(window, title)
        self.error, self.then = error, act[1] if act else None
        sign = QLabel()
        sign.setPixmap(theme.pixmap("warning", 18, theme.current().bad))
        self.body.removeWidget(self.title)
        lines = vbox(None, self.title, spacing=8)
        for words in filter(None, (reason, *rest)):
            lines.addWidget(note(words, "", 1.0))
        if error.details:
            self._add_details(lines)
        top = Qt.AlignmentFlag.AlignTop
        self.body.addLayout(hbox(None, (sign, 0, top), (lines, 1), spacing=12))
        copy = Button(tr("Copy details"), kind="link")
        copy.clicked.connect(self._copy)
        self.offer(Button(act[0], kind="filled") if act else None, copy, close="Close")

    def _add_details(self, lines: QVBoxLayout) -> None:
        self.fold = Button(tr("Details"), "chevron-right", kind="link")
        self.fold.clicked.connect(self._unfold)
        self.details = QPlainTextEdit(self.error.details)
        self.details.setReadOnly(True)
        self.details.setFont(theme.mono(0.92))
        self.details.setAccessibleName(tr("Details"))
        self.details.setTabChangesFocus(True)
        self.details.setFixedHeight(130)
        self.details.hide()
        lines.addWidget(self.fold, 0, Qt.AlignmentFlag.AlignLeft)
        lines.addWidget(self.details)

    def _unfold(self) -> None:
        is_folded = self.details.isHidden()
        self.details.setVisible(is_folded)
        self.fold.wear("chevron" if is_folded else "chevron-right")

    def _copy(self) -> None:
        error = self.error
        lines = (*error.lines, "", error.details) if error.details else error.lines
        QGuiApplication.clipboard().setText("\n".join(lines))


class Question(Form):
    """A question with an answer on each button; the last one is the default.

    answers: what is done by the words of the button; None only closes it. otherwise: what is done
    where it is closed without an answer.
    """

    wide = 500

    def __init__(
        self,
        window: QWidget,
        title: str,
        lines: Sequence[str | tuple[str, str]],
        answers: Mapping[str, Callable[[], object] | None],
        otherwise: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(window, title)
        for line in lines:
            if isinstance(line, str):
                self.body.addWidget(note(line, "", 1.0))
            else:
                self.row(line[0], Words(line[1], kind="secondary"))
        if otherwise is not None:
            self.rejected.connect(otherwise)
        self.buttons: list[Button] = []
        for words, act in answers.items():
            button = Button(words, kind="filled" if words == [*answers][-1] else "")
            button.clicked.connect(self.reject if act is None else self.accept)
            if act is not None:
                button.clicked.connect(act)
            self.buttons.append(button)
        self.default = self.buttons[-1]
        self.default.setDefault(True)
        self.body.addSpacing(12)
        self.body.addLayout(hbox(None, self.buttons[0], 1, *self.buttons[1:], spacing=8))


class About(Form):
    """The program, its version and what it runs on."""

    wide = 460

    def __init__(self, window: QWidget) -> None:
        super().__init__(window, tr("About hgviz"))
        self.title.hide()
        sign = QLabel()
        sign.setPixmap(theme.pixmap("hgviz", 64))
        name = label(f"hgviz {hgviz.__version__}", factor=1.55, weight=600)
        what = note(tr("Attention maps of transformers, at every resolution"), "", 1.0)
        words = vbox(None, name, what, spacing=4)
        self.body.addLayout(
            hbox(None, (sign, 0, Qt.AlignmentFlag.AlignTop), (words, 1), spacing=16)
        )
        self.body.addSpacing(8)
        for line in (
            tr("MIT licence. Qt is used under the LGPL, version 3."),
            tr("The sample Hourglass was trained on WikiText-2, which is CC BY-SA."),
            f"Python {platform.python_version()}, PySide6 {PySide6.__version__}",
        ):
            self.body.addWidget(note(line))
        licences = Button(tr("Licences"), kind="link")
        licences.clicked.connect(self.reject)
        licences.clicked.connect(lambda: Licences(window).open())
        self.body.addSpacing(8)
        self.offer(None, licences, close="Close")


class Licences(Form):
    """The licences of hgviz and of what it uses; in a bundle, of everything in it."""

    wide = 860

    def __init__(self, window: QWidget) -> None:
        super().__init__(window, tr("Licences"))
        self.title.hide()
        folder = resource("licenses")
        texts = [folder / "README.md", folder / "bundled.md"]
        view = QTextBrowser()
        view.setOpenExternalLinks(True)
        view.setAccessibleName(tr("Licences"))
        view.setMarkdown("\n\n".join(file.read_text("utf-8") for file in texts if file.exists()))
        view.setMinimumHeight(420)
        self.body.addWidget(view, 1)
        place = note(tr("The licence texts are in {folder}", folder=folder))
        place.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.body.addWidget(place)
        self.offer(None, close="Close")


# --- text -----------------------------------------------------------------------------------------

MOST_SHOWN = 100_000  # characters
COUNTED = 20_000  # characters: longer texts are counted when they are captured
HIGH, LOW = 240, 96  # px of a text alone, of each of two


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """What a model reads. text: it reads texts at all; second: the name of its second text, or an
    empty string; needed: whether there must be one."""

    text: bool = True
    second: str = ""
    needed: bool = False

    @classmethod
    def of(cls, model: Model | None) -> ModelInputs:
        """What an open model reads; without one, a single text."""
        if model is None:
            return cls()
        if model.takes_states or not reads_text(model):
            return cls(text=False)
        if model.spec.needs_target:
            return cls(second="Target", needed=True)
        return cls(second="Second text (optional)" if model.reads_pairs else "")


class TextField(QPlainTextEdit):
    """A field for a text of any length. Of a long one it shows the beginning and takes no keys:
    laying out 9 MB takes Qt seconds."""

    def __init__(self, text: str, name: str, high: int) -> None:
        super().__init__()
        self.setFont(theme.mono())
        self.setTabChangesFocus(True)
        self.setAccessibleName(name)
        self.setMinimumHeight(high)
        self._long: str | None = None
        self.put(text)

    def put(self, text: str) -> None:
        """Replace the text."""
        self._long = text if len(text) > MOST_SHOWN else None
        self.setReadOnly(self.is_cut)
        self.setPlainText(text[:MOST_SHOWN] + ("…" if self.is_cut else ""))

    def text(self) -> str:
        """All of the text, shown or not."""
        return self.toPlainText() if self._long is None else self._long

    @property
    def is_cut(self) -> bool:
        """Whether only the beginning of the text is shown."""
        return self._long is not None

    def insertFromMimeData(self, source: QMimeData) -> None:
        more = source.text()
        if len(more) + self.document().characterCount() <= MOST_SHOWN:
            super().insertFromMimeData(source)
            return
        cursor, now = self.textCursor(), self.toPlainText()
        units = now.encode("utf-16-le")  # as Qt counts
        first, last = 2 * cursor.selectionStart(), 2 * cursor.selectionEnd()
        before, after = (part.decode("utf-16-le") for part in (units[:first], units[last:]))
        self.put(before + more + after)


class TextDialog(Form):
    """The input text, or both of them, with its length and the length that the model can read.

    ask_file: asks for a file of token IDs instead.
    """

    wide = 760

    def __init__(
        self,
        window: QWidget,
        text: str,
        spec: ModelSpec | None,
        second: str = "",
        model: Model | None = None,
        ask_file: Callable[[], object] | None = None,
    ) -> None:
        inputs = ModelInputs.of(model)
        both = tr("The encoder reads the source, the decoder reads the target.")
        super().__init__(window, tr("Input text"), both if inputs.needed else "")
        self._model = model
        self._most = spec.max_positions if spec is not None else None
        self._bytes = spec is not None and spec.vocabulary == 256
        two = bool(inputs.second)
        self.edit = TextField(text, tr("Input text"), LOW if two else HIGH)
        self.second = TextField(second if two else "", tr(inputs.second or "Second text"), LOW)
        self.second.setVisible(two)
        for field, name in ((self.edit, "Source" if inputs.needed else ""),
                            (self.second, inputs.second)):  # fmt: skip
            if name:
                self.body.addWidget(label(tr(name), weight=600, factor=0.92))
            self.body.addWidget(field, 1)
        self.first = self.edit
        self.edit.selectAll()  # so that typing replaces it
        self.count = label("", kind="secondary", factor=0.92)
        self.clear = Button(tr("Clear"), kind="link")
        self.clear.setToolTip(tr("Clear the text to type another one"))
        self.clear.clicked.connect(self._clear)
        ids = Button(tr("Token IDs from file…"), "open", kind="link")
        ids.setToolTip(tr("A JSON file with input_ids, as hgviz capture --ids reads it"))
        ids.clicked.connect(self.reject)
        if ask_file is not None:
            ids.clicked.connect(ask_file)
        self._wait = QTimer(self, singleShot=True, interval=50)
        self._wait.timeout.connect(self.check)
        for field in (self.edit, self.second):
            field.textChanged.connect(self._wait.start)
        capture = Button(tr("Run model"), "capture", kind="filled")
        capture.setShortcut("Ctrl+Return")  # Return alone is a new line
        capture.setToolTip("Ctrl+Return")
        self.offer(capture, self.count, self.clear, ids)

    def answer(self) -> tuple[str, str]:
        return self.edit.text(), self.second.text()

    def problem(self) -> str:
        words, fits = self._measure(*self.answer())
        is_cut = self.edit.is_cut or self.second.is_cut
        self.clear.setVisible(is_cut)
        if is_cut:
            words = tr("{count}; only the beginning is shown", count=words)
        self.count.setText(words if fits else "")
        return "" if fits else words

    def _measure(self, text: str, second: str) -> tuple[str, bool]:
        """The length of the texts in words, and whether they can be captured: in tokens where the
        model is open and they are short, in bytes where it reads those."""
        model = self._model
        try:
            if model is not None and not self._bytes and len(text) + len(second) <= COUNTED:
                return counted_tokens(model, text, second)
        except HgvizError as error:
            return tr(error.what), False
        if not text:
            return tr("The text is empty"), False
        if not self._bytes:
            return counted(len(text), "character"), True
        return _length_words(len(text.encode(errors="replace")), self._most, "byte")

    def _clear(self) -> None:
        for field in (self.edit, self.second):
            if field.is_cut:
                field.put("")
                field.setFocus()


def counted_tokens(model: Model, text: str, second: str) -> tuple[str, bool]:
    """The length in the model's own tokens; special tokens make even an empty text one."""
    if not model.spec.needs_target:
        counts = [len(model.tokenizer.encode(text, second or None))]
    elif second:
        counts = [len(model.encode(text)), len(model.encode_target(second))]
    else:
        return tr("The target is empty"), False
    if not min(counts):
        return tr("The text is empty"), False
    lengths = [_length_words(count, model.spec.max_positions, "token") for count in counts]
    words, fits = zip(*lengths, strict=True)
    if len(words) == 1:
        return words[0], fits[0]
    return tr("source {source}, target {target}", source=words[0], target=words[1]), all(fits)


def _length_words(length: int, most: int | None, unit: str) -> tuple[str, bool]:
    if most is None:
        return counted(length, unit), True
    parts = {"length": length, "most": counted(most, unit)}
    if length > most:
        return tr("{length:,} of {most}: {over:,} too many", over=length - most, **parts), False
    return tr("{length:,} of {most}", **parts), True


# --- activation -----------------------------------------------------------------------------------

LARGEST = 8  # scores that topk keeps


def activation_choices(spec: ModelSpec | None) -> Iterator[tuple[str, str]]:
    """The activations that a checkpoint can be opened with, and their names on screen."""
    for row in ACTIVATIONS.values():
        if row.name == "topk":
            yield f"topk:{LARGEST}", tr("softmax of the top {count}", count=LARGEST)
        else:
            yield row.name, tr(row.label)
    heads = {1 + max(layer.heads) for layer in spec.layers if layer.heads} if spec else set()
    if heads and all(count % len(SIX_ACTIVATIONS) == 0 for count in heads):
        yield ",".join(SIX_ACTIVATIONS), tr("Six, split across heads")


class ExchangeDialog(Form):
    """The activation that the open checkpoint is opened with again."""

    wide = 480

    def __init__(self, window: QWidget, name: str, activation: str, spec: ModelSpec | None) -> None:
        words = tr("{name} keeps its weights and is not retrained.", name=name)
        super().__init__(window, tr("Replace activation function"), words)
        self.names = Picker()
        self.names.offer([("", tr("Original")), *activation_choices(spec)], activation)
        self.row(tr("Activation"), self.names)
        self.offer(Button(tr("Open"), "open", kind="filled"))

    def answer(self) -> tuple[str]:
        return (self.names.currentData(),)


# --- generating text ------------------------------------------------------------------------------

MOST = 100_000  # tokens at a time, where the model sets no limit
END = 48  # characters of the text that are shown
WAYS = (("likeliest", "Greedy"), ("chance", "Random"))


@dataclass(frozen=True, slots=True)
class WritingOptions:
    """How a model continues a text. seed None: always the likeliest token."""

    count: int = 64
    seed: int | None = None
    temperature: float = 1.0


class WriteDialog(Form):
    """How many tokens to generate, and how they are drawn.

    room: how many more tokens the model can read; None where that is not known.
    """

    wide = 480

    def __init__(
        self, window: QWidget, text: str, unit: str, room: int | None, last: WritingOptions
    ) -> None:
        words = tr("Continues the text. Stop keeps the text generated so far.")
        super().__init__(window, tr("Generate text"), words)
        self._room = room
        most = MOST if room is None else room
        end = Words(kind="secondary")
        end.setFont(theme.mono(0.92))
        end.say(shown(text if len(text) <= END else "…" + text[-END:], END + 1) + "▏")
        self.body.addWidget(end)
        self.count = _spin(QSpinBox(), min(1, most), max(1, most), min(last.count, most))
        self.count.setGroupSeparatorShown(True)
        self.way = Segments(WAYS, wide=110)
        self.way.choose(WAYS[last.seed is not None][0])
        self.way.chosen.connect(self._fit)
        self.temperature = _spin(QDoubleSpinBox(), 0.05, 10.0, last.temperature)
        self.temperature.setSingleStep(0.1)
        self.temperature.setToolTip(tr("Below 1 favours likely tokens, above 1 is more random"))
        self.seed = _spin(QSpinBox(), 0, 2**31 - 1, last.seed or 0)
        self.seed.setToolTip(tr("The same seed gives the same text"))
        units = tr(f"{unit}s")
        self.row(units[:1].upper() + units[1:], self.count)
        self.row(tr("Sampling"), self.way)
        self.row(tr("Temperature"), self.temperature)
        self.row(tr("Seed"), self.seed)
        if room:
            left = tr("The model has room for {tokens} more.", tokens=counted(room, unit))
            self.body.addWidget(note(left))
        self.first = self.count
        self.count.selectAll()
        self.offer(Button(tr("Generate"), "edit", kind="filled"))
        self._fit()

    def problem(self) -> str:
        full = tr("The text already has the maximum length.")
        return full if self._room == 0 else ""

    def answer(self) -> tuple[WritingOptions]:
        seed = self.seed.value() if self.way.choice == "chance" else None
        return (WritingOptions(self.count.value(), seed, self.temperature.value()),)

    def _fit(self) -> None:
        """Only random sampling has a temperature and a seed."""
        for field in (self.temperature, self.seed):
            field.setEnabled(self.way.choice == "chance")


def _spin(spin: Any, least: float, most: float, value: float) -> Any:
    spin.setRange(least, most)
    spin.setValue(value)
    spin.lineEdit().setTextMargins(6, 0, 6, 0)
    return spin


# --- importance -----------------------------------------------------------------------------------

# arrays of a study, their name, the evaluations of all examples that they take (and for each head),
# whether they are measured at first
CHOICES = (
    (("gradient",), "Predicted loss change, from gradients", (2, 0), True),
    (("loss_change", "change"), "Exact loss change, one head off at a time", (0, 0.5), True),
    (("token_gradient",), "Sensitivity per token", (2, 0), False),
    (("alone",), "Loss change with only this head on in its layer", (0, 0.5), False),
    (("shapley",), "Shapley values, 20 random orders", (0, 20), False),
)
CURVE = 143  # evaluations of a curve and 20 random orders of many heads
ORDERS = 10.5  # evaluations for each number of heads off: 21 orders at half of the examples
GRADIENTS = {"gradient", "token_gradient"}


def measurements() -> tuple[tuple[tuple[str, ...], str, tuple[float, float], bool], ...]:
    """CHOICES, and the scores that measure an array of their own."""
    own = (method for method in METHODS.values() if method.measure is not None)
    return *CHOICES, *(((method.needs,), method.label, (1, 0), False) for method in own)


def cost_words(evaluations: float, seconds: float) -> str:
    """about 3 s; about 40 evaluations of all data, while nobody knows how long one takes."""
    if seconds:
        return tr("about {time}", time=duration(max(1.0, evaluations * seconds)))
    return tr("about {n:,} evaluations", n=round(evaluations))


NO_GRADIENTS = (
    "Gradient scores are undefined for this model: it outputs hidden states, whose distance "
    "from the baseline has no gradient at the baseline."
)
PATCHING_HELP = (
    "Replaces the context of each head on one text by its context on the other. The cells show how "
    "much of the logit difference between the two answers is restored or lost."
)
PATCHING_FIELDS = (
    ("Clean text", "The sea is at the …"), ("Corrupted text", "A text with as many tokens"),
    ("Answer", "Correct token or class of the clean text"),
    ("Wrong answer", "Token or class to compare it with"),
)  # fmt: skip
HOW = "Results appear as they are computed. Stop keeps the results so far."


class MeasureDialog(Form):
    """The scores to measure, and whether to compute the pruning curve afterwards.

    measured: arrays that the study has; heads: how many there are to measure. trial: the latest,
    whose seconds say how long the rest takes; None for none.
    """

    wide = 620

    def __init__(
        self, window: QWidget, measured: frozenset[str], heads: int, trial: MaskTrial | None
    ) -> None:
        super().__init__(window, tr("Compute head importance"), tr(HOW))
        states = trial is not None and trial.examples.asked == "states"  # have no gradients
        seconds = trial.seconds if trial is not None else 0.0
        if states:
            self.body.addWidget(note(tr(NO_GRADIENTS)))
        grid = QGridLayout()
        grid.setColumnStretch(0, 1)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(6)
        self.boxes: list[Check] = []
        for names, words, (once, each), first in measurements():
            cost = cost_words(once + each * heads, seconds)
            is_measured = set(names) <= measured
            undefined = states and not GRADIENTS.isdisjoint(names)
            box = Check(tr(words))
            box.setToolTip(tip(explained_all(names)))
            box.setChecked((first or is_measured) and not undefined)
            box.setEnabled(not undefined)
            state = tr("undefined here") if undefined else tr("measured") if is_measured else cost
            box.setAccessibleDescription(f"{state}\n{explained_all(names)}")
            box.toggled.connect(self.check)
            self.boxes.append(box)
            _add_row(grid, box, state)
        self.first = self.boxes[0]
        self.curve = Check(tr("Then compute the pruning curve"))
        self.curve.setChecked(True)
        _add_row(grid, self.curve, cost_words(min(CURVE, ORDERS * (heads + 1)), seconds))
        self.body.addSpacing(8)
        self.body.addLayout(grid)
        self.offer(Button(tr("Compute"), kind="filled"))

    def problem(self) -> str:
        return "" if any(box.isChecked() for box in self.boxes) else tr("Choose a score.")

    def answer(self) -> tuple[frozenset[str], bool]:
        rows = zip(self.boxes, measurements(), strict=True)
        needs = (name for box, (names, *_) in rows if box.isChecked() for name in names)
        return frozenset(needs), self.curve.isChecked()


class PatchDialog(Form):
    """Two texts of as many tokens, and two answers; before: what was asked last."""

    wide = 560

    def __init__(self, window: QWidget, before: PatchedTexts) -> None:
        super().__init__(window, tr("Patch heads between two texts"), tr(PATCHING_HELP))
        self.fields: list[QLineEdit] = []
        for (name, hint), value in zip(PATCHING_FIELDS, astuple(before), strict=True):
            field = QLineEdit(value)
            field.setPlaceholderText(tr(hint))
            field.textChanged.connect(self.check)
            self.fields.append(field)
            self.row(tr(name), field)
        self.offer(Button(tr("Patch"), kind="filled"))

    def problem(self) -> str:
        return "" if all(field.text() for field in self.fields) else tr("Fill in all four fields.")

    def answer(self) -> tuple[PatchedTexts]:
        return (PatchedTexts(*(field.text() for field in self.fields)),)


def _add_row(grid: QGridLayout, box: Check, cost: str) -> None:
    row = grid.rowCount()
    grid.addWidget(box, row, 0)
    grid.addWidget(label(cost, factor=0.92, kind="secondary"), row, 1)


# --- labels ---------------------------------------------------------------------------------------


class LabelsDialog(Form):
    """The class of each label of a file that the model does not know."""

    wide = 460

    def __init__(self, window: QWidget, file: str, error: LabelError) -> None:
        words = tr("The labels in {file} are not classes of the model.", file=file)
        super().__init__(window, tr("Assign labels to classes"), words)
        self.lists: dict[str, Picker] = {}
        for name in error.labels:
            classes = self.lists[name] = Picker()
            classes.addItems(error.classes)
            classes.setCurrentIndex(classes.findText(error.likely.get(name, "")))
            classes.currentIndexChanged.connect(self.check)
            self.row(name, classes)
        self.offer(Button(tr("Use these classes"), kind="filled"))

    def problem(self) -> str:
        names = [name for name, classes in self.lists.items() if classes.currentIndex() < 0]
        return tr("Choose a class for {labels}.", labels=", ".join(names)) if names else ""

    def answer(self) -> tuple[dict[str, str]]:
        return ({name: classes.currentText() for name, classes in self.lists.items()},)


# --- preferences ----------------------------------------------------------------------------------

# the values of a setting that its type does not list, by its extra "from": value and words
SOURCES: dict[str, Callable[[], dict[str, str]]] = {
    "palettes": lambda: {row.name: row.label for row in PALETTES.values() if not row.signed},
    "devices": lambda: {
        "auto": "Auto", "cpu": "CPU", "cuda": "GPU (CUDA)", "mps": "GPU (Apple)",
    },
    "widths": lambda: {name: f"{tr(words)}: {long}" for name, (long, words) in WIDTHS.items()},
    "formats": lambda: dict(FORMATS),
}  # fmt: skip
WORDS = SCALES | {  # of values in types
    "auto": "Auto", "light": "Light", "dark": "Dark",
    "right": "Right", "left": "Left", "hidden": "Hidden", "en": "English", "ko": "한국어",
}  # fmt: skip


class Preferences(Form):
    """A row for each setting. changed: called with a setting and its new value at once."""

    def __init__(self, window: QWidget, changed: Callable[[str, Any], object]) -> None:
        super().__init__(window, tr("Preferences"))
        self.controls: dict[str, QWidget] = {}
        current = settings.load()
        for name, kind, meta in offered():
            control = _control(kind, meta, partial(changed, name))
            title, description = tr(meta.title or name), tr(meta.description or "")
            control.setAccessibleName(title)
            control.setAccessibleDescription(description)
            self.controls[name] = control
            with QSignalBlocker(control):
                _show(control, getattr(current, name))
            if isinstance(control, Check):
                control.setText(title)
            self.row("" if isinstance(control, Check) else title, control, description)
        reset = Button(tr("Reset to defaults"), kind="link")
        reset.clicked.connect(self.reset)
        self.body.addSpacing(8)
        self.offer(None, reset, close="Close")

    def reset(self) -> None:
        """Set every setting to its default."""
        for name, control in self.controls.items():
            _show(control, getattr(Settings(), name))


def offered() -> list[tuple[str, Any, Meta]]:
    """The settings that people can change, in order: name, type and description."""
    rows = []
    for name, hint in get_type_hints(Settings, include_extras=True).items():
        kind, *more = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
        meta = next((extra for extra in more if isinstance(extra, Meta) and extra.title), None)
        if meta is not None:
            rows.append((name, kind, meta))
    return rows


def _control(kind: Any, meta: Meta, changed: Callable[[Any], object]) -> QWidget:
    """The field for a value of a type: a check box, a list, or a line of text."""
    if kind is bool:
        box = Check()
        box.toggled.connect(changed)
        return box
    values = {str(value): WORDS.get(value, value) for value in get_args(kind)}
    if get_origin(kind) is not Literal:
        source = (meta.extra or {}).get("from", "")
        values = SOURCES[source]() if source in SOURCES else {}
    if values:
        picker = Picker()
        picker.offer((value, tr(words)) for value, words in values.items())
        picker.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        picker.currentIndexChanged.connect(lambda at: changed(picker.itemData(at)))
        return picker
    field = QLineEdit()
    field.editingFinished.connect(lambda: changed(field.text()))
    return field


def _show(control: QWidget, value: Any) -> None:
    """Show a value, which reports it as a change."""
    if isinstance(control, Check):
        control.setChecked(value)
    elif isinstance(control, Picker):
        if control.findData(value) < 0:  # one that was chosen elsewhere, such as 3.25in
            control.addItem(str(value), value)
        control.setCurrentIndex(control.findData(value))
    elif isinstance(control, QLineEdit):
        control.setText(str(value))
        control.editingFinished.emit()


# --- files ----------------------------------------------------------------------------------------

WEIGHTS = tuple(f"*{suffix}" for suffix in tasks.checkpoint_suffixes())
TEXT_SUFFIXES = (".txt", ".tsv", ".csv", ".jsonl")
TEXT_ENDINGS = tuple(f"*{suffix}" for suffix in TEXT_SUFFIXES)
ENDINGS = ("*.h5", "*.hdf5", f"*{SUFFIX}", "*.toml", "config.json", *WEIGHTS, *TEXT_ENDINGS)
FILES = f"Checkpoints, captures, studies, sessions, texts ({' '.join(ENDINGS)});;All files (*)"
CAPTURES = "Captures (*.h5)"
READABLE = {
    "image": (*IMAGE_SUFFIXES, VALUES_SUFFIX),
    "audio": (*SOUND_SUFFIXES, VALUES_SUFFIX),
}  # files of what models read
READ = {  # by what a model reads: what is asked for where that is no text, and which files
    "text": ("Choose a file of token IDs", "Token IDs (*.json);;All files (*)"),
    "image": ("Choose an image", "Images ({endings});;All files (*)"),
    "audio": ("Choose a sound file", "Sounds ({endings});;All files (*)"),
}
TEXTS = f"Texts ({' '.join(TEXT_ENDINGS)});;All files (*)"


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
    dialog.selectFile("".join(char if char.isalnum() or char in "-_." else "-" for char in name))
    _open(dialog, chosen)


def _open(dialog: QFileDialog, chosen: Callable[[str], None]) -> None:
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setLabelText(QFileDialog.DialogLabel.LookIn, tr("Look in:"))  # Qt lacks these two
    dialog.setLabelText(QFileDialog.DialogLabel.FileType, tr("Files of type:"))
    dialog.fileSelected.connect(chosen)
    # not every window manager gives the keyboard back to where it was
    dialog.finished.connect(dialog.parentWidget().activateWindow)
    dialog.open()
