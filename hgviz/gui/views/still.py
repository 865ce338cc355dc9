"""A pane as it stands while nobody points at it or types in it: what a picture of it shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QEvent, QMimeData, Qt
from PySide6.QtGui import QGuiApplication, QPixmap, QStandardItemModel, QTextDocumentFragment
from PySide6.QtWidgets import QApplication, QWidget


def put_on_clipboard(picture: QPixmap, words: str) -> None:
    """Copy a picture in every pixel of its screen, and words for programs that take those."""
    both = _blank()
    if words:
        both.setText(words)
    both.setImageData(picture.toImage())
    QGuiApplication.clipboard().setMimeData(both)


def _blank() -> QMimeData:
    """Data for the clipboard that Qt made itself: what Python makes is still there when a program
    ends, and takes it down when Qt lets go of it after Python has."""
    model = QStandardItemModel(1, 1)
    out = model.mimeData([model.index(0, 0)])
    for name in out.formats():
        out.removeFormat(name)
    return out


def plain(html: str) -> str:
    """What markup says, without the marks that keep scripts apart on screen."""
    words = QTextDocumentFragment.fromHtml(html).toPlainText()
    return words.replace("\u2068", "").replace("\u2069", "")


@contextmanager
def left_alone(pane: QWidget) -> Iterator[None]:
    """A pane without the ring of the keyboard, and without what the pointer does to it."""
    here = QApplication.focusWidget()
    typed = here if here is not None and (here is pane or pane.isAncestorOf(here)) else None
    under = [one for one in (pane, *pane.findChildren(QWidget)) if one.underMouse()]
    for one in reversed(under):
        QApplication.sendEvent(one, QEvent(QEvent.Type.Leave))
        one.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, False)
    if typed is not None:
        typed.clearFocus()
    try:
        yield
    finally:
        if typed is not None:
            typed.setFocus(Qt.FocusReason.OtherFocusReason)
        for one in under:
            one.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, True)


__all__ = ["left_alone", "plain", "put_on_clipboard"]
