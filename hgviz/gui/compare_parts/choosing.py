"""The dialog that asks what to put beside the capture at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from hgviz.analysis.texts import texts_of
from hgviz.core import HeadId, HgvizError, heads_named
from hgviz.gui import theme
from hgviz.gui.compare_parts.offers import activations
from hgviz.gui.compare_parts.told import wrong
from hgviz.gui.composing import Reads
from hgviz.gui.language import tr
from hgviz.gui.overlay import Overlay, ctrl_return
from hgviz.gui.sentences import named
from hgviz.gui.widgets import Button, Picker, Segments, Words, label
from hgviz.session.other import Other

if TYPE_CHECKING:
    from hgviz.session import Session

KINDS = (
    ("activation", "Activation", ""), ("model", "Model", ""), ("text", "Text", ""),
    ("off", "Heads off", ""), ("head", "Head or level", ""),
)  # fmt: skip
SAID = {
    "activation": "The same checkpoint on the same text, with another function that turns scores "
    "into weights. It is not trained again.",
    "model": "Another checkpoint, which reads the same text, or a capture as it is.",
    "text": "The same model on another text. What both texts have in common is compared.",
    "off": "The same model on the same text without these heads.",
    "head": "Another head of the same capture, such as one of another level.",
}
NAMING = "12.5, 4.* for a whole layer; nothing for the whole model"
MODELLESS = "Open the checkpoint first: this capture was opened from a file."


class CompareDialog(Overlay):
    """One of five ways to a second side, with what each needs.

    more: checkpoints and captures that were opened before, path and name.
    """

    chosen = Signal(object, object)  # an Other, and the HeadId of B's head or None
    file_wanted = Signal(bool)  # whether a folder is asked for
    wide = 640

    def __init__(
        self, over: QWidget, session: Session, more: Mapping[str, str], kind: str = ""
    ) -> None:
        super().__init__(over)
        assert session.capture is not None
        self._session, self._capture = session, session.capture
        self.body.addWidget(label(tr("Compare with…"), factor=1.15, weight=600))
        self.kinds = Segments([(name, tr(words), icon) for name, words, icon in KINDS], wide=104)
        self.kinds.setAccessibleName(tr("What to compare with"))
        row = QHBoxLayout()
        row.addWidget(self.kinds)
        row.addStretch(1)
        self.body.addLayout(row)
        self.said = label(kind="secondary", factor=0.92)
        self.said.setWordWrap(True)
        self.said.setMinimumHeight(2 * self.said.fontMetrics().height())
        self.said.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.body.addWidget(self.said)
        self.pages = QStackedWidget()
        pages = self._activation(), self._model(more), self._text(), self._off(), self._head()
        for page in pages:
            self.pages.addWidget(page)
        self.body.addWidget(self.pages)
        self.told = label(factor=0.92, kind="bad")
        self.told.setWordWrap(True)
        self.body.addWidget(self.told)
        go = Button(tr("Compare"), "compare", kind="filled")
        go.clicked.connect(self._accept)
        self.offer(go)
        self.kinds.chosen.connect(self._turn)
        now = session.other.kind if session.other is not None else "activation"
        first = now if session.checkpoint and now in self.kinds.names else "model"
        self.kinds.choose(kind or first)
        self._turn(self.kinds.choice)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Return in a text is a new line; with Ctrl it compares."""
        writing = any(one.hasFocus() for one in self.texts)
        if event.key() == Qt.Key.Key_Escape or not writing:
            super().keyPressEvent(event)
        elif ctrl_return(event) and self.default.isEnabled():
            self._accept()

    # --- the five ways ----------------------------------------------------------------------------

    def _activation(self) -> QWidget:
        self.activations = Picker()
        self.activations.setAccessibleName(tr("Activation of B"))
        for name, words in activations(self._capture.spec, self._session.activation):
            self.activations.addItem(words, name)
        return _column(self.activations)

    def _model(self, more: Mapping[str, str]) -> QWidget:
        self.paths = Picker()
        self.paths.setAccessibleName(tr("Checkpoint or capture"))
        now = self._session.checkpoint or self._capture.path
        for path, words in more.items():
            if path != now:
                self.paths.addItem(words, path)
        self.paths.setEnabled(self.paths.count() > 0)
        row = QHBoxLayout()
        for words, folder in (("Another file…", False), ("Another folder…", True)):
            button = Button(tr(words), "open")
            button.setProperty("folder", folder)
            button.clicked.connect(self._ask_file)
            row.addWidget(button)
        row.addStretch(1)
        buttons = QWidget()
        row.setContentsMargins(0, 0, 0, 0)
        buttons.setLayout(row)
        return _column(self.paths, buttons)

    def _text(self) -> QWidget:
        texts = texts_of(self._capture)
        reads = Reads.of(self._session.model)
        self.texts = []
        for text, name in ((texts[0], "Text of B"), (texts[1], "Second text of B")):
            edit = QPlainTextEdit(text)
            edit.setFont(theme.mono())
            edit.setTabChangesFocus(True)
            edit.setAccessibleName(tr(name))
            edit.setFixedHeight(96)
            edit.textChanged.connect(self._check)
            self.texts.append(edit)
        two = bool(texts[1]) or (self._session.model is not None and bool(reads.second))
        self.texts[1].setVisible(two)
        return _column(*self.texts)

    def _off(self) -> QWidget:
        session = self._session
        spec = self._capture.spec
        off = session.off if session.off != self._capture.off else frozenset()
        first = off or frozenset({session.selection.head_id}) - self._capture.off
        self.heads = QLineEdit(named(first, spec.layers))
        self.heads.setPlaceholderText(tr(NAMING))
        self.heads.setAccessibleName(tr("Heads that are off in B"))
        self.heads.textChanged.connect(self._check)
        here = named(self._capture.off, spec.layers)
        said = tr("A is without {heads}.", heads=here) if here else tr("A has all its heads.")
        return _column(self.heads, Words(said, factor=0.92, kind="secondary"))

    def _head(self) -> QWidget:
        self.layer, self.number = Picker(), Picker()
        spec, chosen = self._capture.spec, self._session.selection
        levels = len(spec.levels) > 1
        for one in spec.layers:
            if one.heads and self._capture.maps[one.index] is not None:
                parts = [tr("Layer {layer}", layer=one.index)]
                parts += [spec.levels[one.level].label] if levels else []
                parts += [] if one.role == "self" else [tr(one.role)]
                self.layer.addItem(", ".join(parts), one.index)
        now = chosen.beside or chosen.head_id
        self.layer.currentIndexChanged.connect(self._fill_heads)
        self.layer.setCurrentIndex(max(0, self.layer.findData(now.layer)))
        self._fill_heads()
        self.number.setCurrentIndex(max(0, self.number.findData(now.head)))
        self.number.currentIndexChanged.connect(self._check)
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(16)
        grid.setColumnStretch(1, 1)
        rows = ("Layer", "Layer of B", self.layer), ("Head", "Head of B", self.number)
        for row, (words, whole, box) in enumerate(rows):
            name = label(tr(words))
            name.setBuddy(box)
            box.setAccessibleName(tr(whole))
            grid.addWidget(name, row, 0)
            grid.addWidget(box, row, 1)
        out = QWidget()
        column = QVBoxLayout(out)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(grid)
        column.addStretch(1)
        return out

    def _fill_heads(self) -> None:
        at = self.layer.currentData()
        self.number.clear()
        if at is not None:
            for head in self._capture.spec.layers[at].heads:
                self.number.addItem(str(head), head)

    # --- what is chosen ---------------------------------------------------------------------------

    @property
    def wish(self) -> tuple[Other, HeadId | None]:
        """What is chosen now. Errors: HgvizError for what cannot be."""
        kind = self.kinds.choice
        if kind == "activation":
            return Other("activation", self.activations.currentData()), None
        if kind == "model":
            return Other("model", path=self.paths.currentData() or ""), None
        if kind == "text":
            first, second = (one.toPlainText() for one in self.texts)
            return Other("text", text=first, second=second), None
        if kind == "off":
            layers = self._capture.spec.layers
            off = heads_named(self.heads.text(), layers)
            return Other("off", off=off), None
        at, head = self.layer.currentData(), self.number.currentData()
        return Other("head"), None if head is None else HeadId(at, head)

    def _turn(self, kind: str) -> None:
        self.said.setText(tr(SAID[kind]))
        self.pages.setCurrentIndex(self.kinds.names.index(kind))
        self._check()
        self.place()

    def _check(self) -> None:
        """Say what is in the way, if anything is."""
        said = self._wrong()
        self.told.setText(said)
        self.told.setVisible(bool(said))
        if self.default is not None:
            self.default.setEnabled(not said)

    def _wrong(self) -> str:
        kind = self.kinds.choice
        if kind in ("activation", "text", "off") and not self._session.checkpoint:
            return tr(MODELLESS)
        if kind == "model" and not self.paths.currentData():
            return tr("Choose a checkpoint or a capture.")
        if kind == "text" and not self.texts[0].toPlainText():
            return tr("Empty: there is nothing to capture.")
        try:
            other, _ = self.wish
        except HgvizError as error:
            return wrong(error)
        if kind == "off" and other.off == self._capture.off:
            return tr("These are the heads that are off in A: B would be the same.")
        return ""

    def _accept(self) -> None:
        other, head = self.wish
        self.finish()
        self.chosen.emit(other, head)

    def _ask_file(self) -> None:
        folder = bool(self.sender().property("folder"))
        self.finish()
        self.file_wanted.emit(folder)


def _column(*widgets: QWidget) -> QWidget:
    out = QWidget()
    column = QVBoxLayout(out)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(8)
    for one in widgets:
        column.addWidget(one)
    column.addStretch(1)
    return out
