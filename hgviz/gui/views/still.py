"""A pane as it stands while nobody points at it or types in it: what a picture of it shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QEvent, QMimeData, Qt
from PySide6.QtGui import QGuiApplication, QPixmap
from PySide6.QtWidgets import QApplication, QWidget


def picture(pane: QWidget) -> QPixmap:
    """A pane in every pixel of its screen, without the ring of the keyboard and what the pointer
    does to it."""
    with _left_alone(pane):
        return pane.grab()


def put_on_clipboard(pane: QWidget, words: str) -> None:
    """Copy a pane as a picture, and what it says for programs that take words."""
    both = QMimeData()
    if words:
        both.setText(words)
    both.setImageData(picture(pane).toImage())
    QGuiApplication.clipboard().setMimeData(both)


@contextmanager
def _left_alone(pane: QWidget) -> Iterator[None]:
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


__all__ = ["picture", "put_on_clipboard"]
