"""The dialogs: an error, what this is, and its licences."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import PySide6
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics, QGuiApplication
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

import hgviz
from hgviz.gui import theme
from hgviz.gui.language import tr
from hgviz.gui.overlay import Overlay
from hgviz.gui.widgets import Button, label
from hgviz.resources import resource

if TYPE_CHECKING:
    from hgviz.core import HgvizError


class ErrorDialog(Overlay):
    """What went wrong, why, and what to do; details folded, and the button that does it."""

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
        self._lines.addWidget(_wrapped(what.rstrip("."), 1.15, 600))
        for words in rest:
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
        words = QVBoxLayout()
        words.setSpacing(4)
        words.addWidget(label(f"hgviz {hgviz.__version__}", factor=1.55, weight=600))
        words.addWidget(_wrapped(tr("Looks into transformer attention, at every resolution.")))
        row = QHBoxLayout()
        row.setSpacing(16)
        row.addWidget(sign, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(words, 1)
        self.body.addLayout(row)
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
    row = QHBoxLayout()
    for one in others:
        row.addWidget(one)
    row.addStretch(1)
    row.addWidget(dialog.default)
    dialog.body.addLayout(row)


def _wrapped(words: str, factor: float = 1.0, weight: int = 400, kind: str = "") -> QLabel:
    out = label(words, factor=factor, weight=weight, kind=kind)
    out.setWordWrap(True)
    out.setMinimumWidth(QFontMetrics(out.font()).averageCharWidth() * 20)
    return out


__all__ = ["About", "ErrorDialog", "Licences"]
