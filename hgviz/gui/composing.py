"""The dialogs before a capture: the text, or both; and another activation for the attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QMimeData, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QWidget

from hgviz.activations import ACTIVATIONS, SIX
from hgviz.core import HgvizError
from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.overlay import Overlay, ctrl_return
from hgviz.gui.reasons import reads_pairs, reads_text
from hgviz.gui.views.words import counted
from hgviz.gui.widgets import Button, Picker, label

if TYPE_CHECKING:
    from hgviz.core import ModelSpec
    from hgviz.models.model import Model
    from hgviz.tasks import Estimate

MOST_SHOWN = 100_000  # characters
COUNTED = 20_000  # characters: longer texts are counted when they are captured
LARGEST = 8  # scores that topk keeps
HIGH, LOW = 240, 96  # px of a text alone, of each of two


@dataclass(frozen=True, slots=True)
class Reads:
    """What a model reads. text: it reads texts at all; second: what the other is called, "" for
    none; needed: whether there must be one."""

    text: bool = True
    second: str = ""
    needed: bool = False

    @classmethod
    def of(cls, model: Model | None) -> Reads:
        """What an open model reads; of one that is not, nothing but a text is known."""
        if model is None:
            return cls()
        if model.takes_states or not reads_text(model):
            return cls(text=False)
        if model.spec.needs_target:
            return cls(second="Target", needed=True)
        return cls(second="Second text (optional)" if reads_pairs(model) else "")


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
        self._model, self._reads = model, Reads.of(model)
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
        row = QHBoxLayout()
        row.addWidget(self.agree)
        row.addStretch(1)
        row.addWidget(self.default)
        self.body.addSpacing(12)
        self.body.addLayout(row)

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
        if heads and heads % len(SIX) == 0:
            words = tr("Six, over the heads: {names}", names=", ".join(SIX))
            self.names.addItem(words, ",".join(SIX))
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


__all__ = ["ExchangeDialog", "Reads", "TextDialog", "counted_text", "counted_tokens"]
